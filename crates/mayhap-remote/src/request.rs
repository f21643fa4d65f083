//! One command for a server, with what decides where it goes.

use redis::{Cmd, ToRedisArgs};

/// Does a command change anything?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It only looks, and may go to a replica if the link allows that.
    Read,
    /// It only looks, and what it sees must be the latest: it goes to a master.
    ReadLatest,
    /// It changes something, and goes to a master.
    Write,
    /// It changes something and may not run twice, as counting may not. It goes to a master, and is not sent again if nobody knows whether it was
    /// run: then its answer is [`RemoteError::Unsure`](crate::RemoteError::Unsure).
    Once,
}

impl Access {
    /// Does such a command change anything?
    pub(crate) fn is_change(self) -> bool {
        matches!(self, Self::Write | Self::Once)
    }
}

/// A command about one key, to be sent to the node that has it.
///
/// A request may be sent more than once: whoever does not hear an answer cannot know whether the command was run.
/// Setting bits may run twice; for commands that may not there is [`Access::Once`].
#[derive(Clone, Debug)]
pub struct Request {
    key: Vec<u8>,
    command: Cmd,
    access: Access,
}

impl Request {
    /// `command key`, which only looks; more words by [`arg`](Self::arg).
    #[must_use]
    pub fn read(command: &str, key: &[u8]) -> Self {
        Self::new(command, key, Access::Read)
    }

    /// `command key`, which changes something; more words by [`arg`](Self::arg).
    #[must_use]
    pub fn write(command: &str, key: &[u8]) -> Self {
        Self::new(command, key, Access::Write)
    }

    /// `command key`, which changes something and must not run twice; more words by [`arg`](Self::arg).
    #[must_use]
    pub fn once(command: &str, key: &[u8]) -> Self {
        Self::new(command, key, Access::Once)
    }

    /// A whole command whose key is not its first word, such as `EVALSHA`.
    #[must_use]
    pub fn whole(command: Cmd, key: &[u8], access: Access) -> Self {
        Self { key: key.to_vec(), command, access }
    }

    fn new(command: &str, key: &[u8], access: Access) -> Self {
        let mut words = redis::cmd(command);
        words.arg(key);
        Self::whole(words, key, access)
    }

    /// Another word, or several.
    #[must_use]
    pub fn arg(mut self, word: impl ToRedisArgs) -> Self {
        self.command.arg(word);
        self
    }

    /// The key that says which node it goes to.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The words.
    #[must_use]
    pub fn command(&self) -> &Cmd {
        &self.command
    }

    /// Does it change anything?
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }
}
