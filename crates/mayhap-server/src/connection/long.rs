//! A long request on its own thread.

use std::ops::Range;
use std::sync::Arc;

use mayhap_command::{Command, Reply, Request, Scratch};
use mayhap_engine::Engine;

use super::inbox::words_at;
use crate::durable;
use crate::resp::{Protocol, encode};
use crate::session;
use crate::users::User;

/// A long request, with all input of its connection. It is the first request of that input.
pub(super) struct Long {
    pub(super) engine: Arc<Engine>,
    pub(super) command: &'static Command,
    pub(super) input: Vec<u8>,
    /// The positions of its words.
    pub(super) words: Vec<Range<usize>>,
    /// Its length in bytes.
    pub(super) length: usize,
    /// The protocol for the reply; `None` if the client wants no reply.
    pub(super) protocol: Option<Protocol>,
    /// The user of the request.
    pub(super) user: Arc<User>,
}

impl Long {
    /// Returns the maximum memory for the reply in bytes: the value and its encoded form together.
    pub(super) fn reply_bytes(&self) -> usize {
        if !self.command.traits.long_reply {
            return 0;
        }
        let name = self.words.get(1).map_or(&[][..], |word| &self.input[word.clone()]);
        usize::try_from(self.engine.bytes_of(name)).unwrap_or(usize::MAX).saturating_mul(2)
    }

    /// Executes the request. Returns the rest of the input and the encoded reply. It encodes the reply on this
    /// thread, because that takes long as well for many megabytes.
    pub(super) fn execute(mut self) -> (Vec<u8>, Vec<u8>) {
        let words = words_at(&self.input, &self.words);
        let mut replies = Vec::new();
        let request = Request { command: self.command, words: &words };
        self.engine.execute_long(request, &mut Scratch::default(), &mut replies);
        durable::commit_and_wait(&self.engine, &[request], &mut replies);
        self.input.drain(..self.length);
        let mut out = Vec::new();
        if let Some(protocol) = self.protocol {
            let reply = replies.pop().unwrap_or(Reply::Null);
            encode::reply(&session::conceal(&self.user, self.command, reply), protocol, &mut out);
        }
        (self.input, out)
    }
}
