//! One command for a server, with the key that decides which node gets it.

use redis::{Cmd, ToRedisArgs};

/// How a command uses its key, and which node it may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only reads. May go to a replica if the link allows that.
    Read,
    /// Only reads, and must see the latest data. Goes to a master.
    ReadLatest,
    /// Changes something. Goes to a master.
    Write,
    /// Changes something and must not run twice, such as counting. Goes to a master. If it is unknown whether
    /// the command ran, it is not sent again, and the result is
    /// [`RemoteError::Unsure`](crate::RemoteError::Unsure).
    Once,
}

impl Access {
    /// Does such a command change anything?
    pub(crate) fn is_change(self) -> bool {
        matches!(self, Self::Write | Self::Once)
    }
}

/// A command about one key, for the node that has this key.
///
/// A request may be sent more than once: if the answer is lost, the client cannot know whether the command
/// ran. Setting bits may run twice. For commands that may not run twice there is [`Access::Once`].
#[derive(Clone, Debug)]
pub struct Request {
    key: Vec<u8>,
    command: Cmd,
    access: Access,
}

impl Request {
    /// `command key`, which only reads. Add more words with [`arg`](Self::arg).
    #[must_use]
    pub fn read(command: &str, key: &[u8]) -> Self {
        Self::new(command, key, Access::Read)
    }

    /// `command key`, which changes something. Add more words with [`arg`](Self::arg).
    #[must_use]
    pub fn write(command: &str, key: &[u8]) -> Self {
        Self::new(command, key, Access::Write)
    }

    /// `command key`, which changes something and must not run twice. Add more words with [`arg`](Self::arg).
    #[must_use]
    pub fn once(command: &str, key: &[u8]) -> Self {
        Self::new(command, key, Access::Once)
    }

    /// A complete command whose key is not its first argument, such as `EVALSHA`.
    #[must_use]
    pub fn whole(command: Cmd, key: &[u8], access: Access) -> Self {
        Self { key: key.to_vec(), command, access }
    }

    fn new(command: &str, key: &[u8], access: Access) -> Self {
        let mut words = redis::cmd(command);
        words.arg(key);
        Self::whole(words, key, access)
    }

    /// Appends one or more arguments.
    #[must_use]
    pub fn arg(mut self, word: impl ToRedisArgs) -> Self {
        self.command.arg(word);
        self
    }

    /// The key that decides which node gets the command.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The command with its arguments.
    #[must_use]
    pub fn command(&self) -> &Cmd {
        &self.command
    }

    /// How the command uses its key.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }
}
