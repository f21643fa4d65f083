//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.

use mayhap_command::run::Server;
use mayhap_command::server::SessionRefusal;
use mayhap_command::{Command, Refusal, Reply, Request, Run};
use mayhap_engine::Watch;

use super::{Answer, Session, Tools};

/// What a session has queued and what it watches.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    open: bool,
    /// Was a request refused since it was opened?
    spoiled: bool,
    queue: Queue,
    watch: Option<Watch>,
    /// Was a name that an earlier `WATCH` named changed?
    disturbed: bool,
}

/// Requests that wait for `EXEC`: all their words in one piece of memory.
#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    /// Where each word ends.
    ends: Vec<usize>,
    /// The commands, and how many words each has.
    commands: Vec<(&'static Command, usize)>,
}

impl Transaction {
    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    /// How many requests wait, if it is open.
    pub(super) fn queued(&self) -> Option<usize> {
        self.open.then_some(self.queue.commands.len())
    }

    /// How many names are watched.
    pub(super) fn watched(&self) -> usize {
        self.watch.as_ref().map_or(0, |watch| watch.names().count())
    }

    /// A request was refused: if it is open, `EXEC` will do nothing.
    pub(super) const fn spoil(&mut self) {
        self.spoiled |= self.open;
    }

    /// Forgets everything.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Keeps a request for `EXEC`, as long as all of them take no more than `limit` bytes.
    pub(super) fn queue(
        &mut self,
        command: &'static Command,
        words: &[&[u8]],
        limit: usize,
    ) -> Result<(), Refusal> {
        if matches!(command.run, Run::Server(Server::Save | Server::Shutdown)) {
            return Err(SessionRefusal::NotInMulti.into());
        }
        let queue = &mut self.queue;
        let more: usize = words.iter().map(|word| word.len() + size_of::<usize>()).sum();
        if queue.bytes.len() + queue.ends.len() * size_of::<usize>() + more > limit {
            return Err(SessionRefusal::TransactionTooLarge { limit }.into());
        }
        for word in words {
            queue.bytes.extend_from_slice(word);
            queue.ends.push(queue.bytes.len());
        }
        queue.commands.push((command, words.len()));
        Ok(())
    }
}

impl Queue {
    /// All words, in order.
    fn words(&self) -> Vec<&[u8]> {
        let mut start = 0;
        let word = |end: &usize| &self.bytes[std::mem::replace(&mut start, *end)..*end];
        self.ends.iter().map(word).collect()
    }
}

impl Session {
    /// `MULTI`.
    pub(super) fn multi(&mut self) -> Result<Reply, Refusal> {
        if self.transaction.open {
            return Err(SessionRefusal::NestedMulti.into());
        }
        self.transaction.open = true;
        Ok(Reply::Ok)
    }

    /// `DISCARD`.
    pub(super) fn discard(&mut self) -> Result<Reply, Refusal> {
        if !self.transaction.open {
            return Err(SessionRefusal::DiscardWithoutMulti.into());
        }
        self.transaction.end();
        Ok(Reply::Ok)
    }

    /// `WATCH key [key …]`.
    pub(super) fn watch(&mut self, words: &[&[u8]]) -> Result<Reply, Refusal> {
        if self.transaction.open {
            return Err(SessionRefusal::WatchInMulti.into());
        }
        let before = self.transaction.watch.take();
        let mut names: Vec<&[u8]> = words[1..].to_vec();
        names.extend(before.iter().flat_map(Watch::names));
        // The new one sees what comes; what came until now, the old one has seen.
        let watch = self.shared.engine().watch(&names);
        self.transaction.disturbed |= before.as_ref().is_some_and(Watch::is_disturbed);
        self.transaction.watch = Some(watch);
        Ok(Reply::Ok)
    }

    /// `UNWATCH`.
    pub(super) fn unwatch(&mut self) -> Reply {
        self.transaction.watch = None;
        self.transaction.disturbed = false;
        Reply::Ok
    }

    /// `EXEC`. Requests for the engine are run in one go with nobody else running any; those about the server or the connection,
    /// which touch no filter, right behind them. The replies come in the order of the requests.
    pub(super) fn exec(&mut self, tools: &mut Tools<'_>) -> Result<Answer, Refusal> {
        if !self.transaction.open {
            return Err(SessionRefusal::ExecWithoutMulti.into());
        }
        let transaction = std::mem::take(&mut self.transaction);
        if transaction.spoiled {
            return Err(SessionRefusal::ExecAbort.into());
        }
        if transaction.disturbed {
            return Ok(Reply::NullArray.into());
        }
        let words = transaction.queue.words();
        let mut rest = &words[..];
        let mut requests = Vec::with_capacity(transaction.queue.commands.len());
        for (command, count) in &transaction.queue.commands {
            let (words, behind) = rest.split_at(*count);
            requests.push(Request { command, words });
            rest = behind;
        }
        let of_engine = |request: &&Request<'_>| !matches!(request.command.run, Run::Server(_));
        let for_engine: Vec<Request<'_>> = requests.iter().filter(of_engine).copied().collect();
        let engine = self.shared.engine();
        match &transaction.watch {
            Some(watch) => {
                if !engine.run_watched(watch, &for_engine, tools.scratch, tools.replies) {
                    return Ok(Reply::NullArray.into());
                }
            }
            None => engine.run_alone(&for_engine, tools.scratch, tools.replies),
        }
        let mut from_engine = std::mem::take(tools.replies).into_iter();
        let mut last = false;
        let replies: Vec<Reply> = requests
            .iter()
            .map(|request| match request.command.run {
                Run::Server(server) => match self.answer(server, request.words) {
                    Ok(Answer::Reply(reply)) => reply,
                    Ok(Answer::Silence) => Reply::Ok,
                    Ok(Answer::Last(reply)) => {
                        last = true;
                        reply
                    }
                    Ok(Answer::Job(job)) => job(),
                    Err(refusal) => refusal.into(),
                },
                _ => from_engine.next().unwrap_or(Reply::Null),
            })
            .collect();
        let replies = Reply::Array(replies);
        Ok(if last { Answer::Last(replies) } else { replies.into() })
    }
}
