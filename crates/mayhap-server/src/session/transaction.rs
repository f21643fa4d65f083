//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.

use std::sync::Arc;

use mayhap_command::run::Server;
use mayhap_command::server::SessionRefusal;
use mayhap_command::{Command, Refusal, Reply, Request, Run, Scratch};
use mayhap_engine::{Engine, Patience, Watch};
use parking_lot::Mutex;

use crate::durable;

use super::long::{LARGE_BYTES, takes_long};
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
pub(super) struct Queue {
    bytes: Vec<u8>,
    /// Where each word ends.
    ends: Vec<usize>,
    /// The commands, and how many words each has.
    commands: Vec<(&'static Command, usize)>,
    /// Why those that are not allowed any more are not, once `EXEC` has asked.
    refused: Vec<Option<Refusal>>,
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

    /// Bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.queue.bytes.capacity()
            + self.queue.ends.capacity() * size_of::<usize>()
            + self.queue.commands.capacity() * size_of::<(&Command, usize)>()
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
        let commands = queue.commands.len() * size_of::<(&Command, usize)>();
        if queue.bytes.len() + queue.ends.len() * size_of::<usize>() + commands + more > limit {
            return Err(SessionRefusal::TransactionTooLarge { limit }.into());
        }
        let room = queue.bytes.try_reserve(more).and_then(|()| queue.ends.try_reserve(words.len()));
        room.map_err(|_| SessionRefusal::TransactionTooLarge { limit })?;
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

    /// All requests, of these words.
    fn requests<'a>(&self, words: &'a [&'a [u8]]) -> Vec<Request<'a>> {
        let mut rest = words;
        let request = |(command, count): &(&'static Command, usize)| {
            let (words, behind) = rest.split_at(*count);
            rest = behind;
            Request { command, words }
        };
        self.commands.iter().map(request).collect()
    }

    /// Why the request of this number is not allowed any more, if it is not.
    fn refusal(&self, number: usize) -> Option<&Refusal> {
        self.refused.get(number)?.as_ref()
    }

    /// Those of `requests` that are for the engine, and still allowed.
    fn of_engine<'a>(&self, requests: &[Request<'a>]) -> Vec<Request<'a>> {
        let is_wanted = |(number, request): &(usize, &Request<'a>)| {
            !matches!(request.command.run, Run::Server(_)) && self.refusal(*number).is_none()
        };
        requests.iter().enumerate().filter(is_wanted).map(|(_, request)| *request).collect()
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
    pub(super) fn watch(&mut self, words: &[&[u8]]) -> Result<Answer, Refusal> {
        if self.transaction.open {
            return Err(SessionRefusal::WatchInMulti.into());
        }
        let before = self.transaction.watch.take();
        let mut names: Vec<&[u8]> = words[1..].to_vec();
        names.extend(before.iter().flat_map(Watch::names));
        // The new one sees what comes; what came until now, the old one has seen.
        if let Some(watch) = self.shared.engine().try_watch(&names) {
            self.watches(before.as_ref(), watch);
            return Ok(Reply::Ok.into());
        }
        // Something takes long, and whoever else is served by this thread need not wait for it.
        let names: Vec<Vec<u8>> = names.into_iter().map(<[u8]>::to_vec).collect();
        let (engine, place) = (Arc::clone(self.shared.engine()), Arc::new(Mutex::new(None)));
        self.later = Some(Later::Watch { before, place: Arc::clone(&place) });
        Ok(Answer::Job(Box::new(move || {
            let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
            *place.lock() = Some(engine.watch(&names));
            Reply::Ok
        })))
    }

    fn watches(&mut self, before: Option<&Watch>, watch: Watch) {
        self.transaction.disturbed |= before.is_some_and(Watch::is_disturbed);
        self.transaction.watch = Some(watch);
    }

    /// `UNWATCH`.
    pub(super) fn unwatch(&mut self) -> Reply {
        self.transaction.watch = None;
        self.transaction.disturbed = false;
        Reply::Ok
    }

    /// Why a request that was queued may not be run any more, if so.
    fn no_longer(&self, request: &Request<'_>) -> Option<Refusal> {
        if self.user.is_unlimited() {
            return None;
        }
        match self.permit(request.command, request.words) {
            Err(Refusal::Session(refusal)) => Some(SessionRefusal::NoLonger(Box::new(refusal)).into()),
            Err(refusal) => Some(refusal),
            Ok(()) => None,
        }
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
        let Transaction { mut queue, watch, .. } = transaction;
        // What was allowed when it was queued may no longer be.
        self.refresh();
        queue.refused = {
            let words = queue.words();
            queue.requests(&words).iter().map(|request| self.no_longer(request)).collect()
        };
        let limit = self.shared.settings().output_limit;
        let engine = self.shared.engine();
        let outcome = {
            let words = queue.words();
            let requests = queue.requests(&words);
            let is_long = |request: &Request<'_>| takes_long(request, 0, engine);
            match queue.bytes.len() > LARGE_BYTES || requests.iter().any(is_long) {
                true => Outcome::Busy,
                false => {
                    let patience = (watch.as_ref(), Patience::None);
                    run(engine, &queue.of_engine(&requests), patience, limit, tools.scratch)
                }
            }
        };
        match outcome {
            Outcome::Disturbed => Ok(Reply::NullArray.into()),
            Outcome::Done(replies, unsynced) => {
                self.unsynced = unsynced.or(self.unsynced);
                Ok(self.answer_rest(&queue, replies))
            }
            // Whoever else is served by this thread need not wait for it.
            Outcome::Busy => {
                let (engine, queue) = (Arc::clone(engine), Arc::new(queue));
                self.later = Some(Later::Exec(Arc::clone(&queue)));
                Ok(Answer::Job(Box::new(move || {
                    let words = queue.words();
                    let patience = (watch.as_ref(), Patience::Any);
                    let requests = queue.of_engine(&queue.requests(&words));
                    match run(&engine, &requests, patience, limit, &mut Scratch::default()) {
                        Outcome::Done(replies, None) => Reply::Array(replies),
                        Outcome::Done(replies, Some(next)) => match durable::wait(&engine, next) {
                            Ok(()) => Reply::Array(replies),
                            Err(refusal) => refusal.into(),
                        },
                        Outcome::Disturbed | Outcome::Busy => Reply::NullArray,
                    }
                })))
            }
        }
    }

    /// What is left to be done when the job of a transaction has ended with `reply`.
    pub(super) fn end_transaction(&mut self, later: Later, reply: Reply) -> Reply {
        match (later, reply) {
            (Later::Watch { before, place }, reply) => {
                if let Some(watch) = place.lock().take() {
                    self.watches(before.as_ref(), watch);
                }
                reply
            }
            (Later::Exec(queue), Reply::Array(replies)) => match self.answer_rest(&queue, replies) {
                Answer::Reply(reply) | Answer::Last(reply) => reply,
                Answer::Silence | Answer::Job(_) => Reply::Null,
            },
            (Later::Exec(_), reply) => reply,
        }
    }

    /// Answers those requests of a transaction that are not for the engine, and puts all replies in the order of the requests.
    fn answer_rest(&mut self, queue: &Queue, replies: Vec<Reply>) -> Answer {
        let words = queue.words();
        let mut from_engine = replies.into_iter();
        let (mut last, mut room) = (false, Room::of(self.shared.settings().output_limit));
        let requests = queue.requests(&words);
        let replies = requests.iter().enumerate().map(|(number, request)| {
            if let Some(refusal) = queue.refusal(number) {
                return refusal.clone().into();
            }
            let Run::Server(server) = request.command.run else {
                return self.conceal(request.command, from_engine.next().unwrap_or(Reply::Null));
            };
            let mut reply = match self.answer(server, request.words) {
                Ok(Answer::Reply(reply)) => reply,
                Ok(Answer::Silence) => Reply::Ok,
                Ok(Answer::Last(reply)) => {
                    last = true;
                    reply
                }
                Ok(Answer::Job(job)) => job(),
                Err(refusal) => refusal.into(),
            };
            room.take(&mut reply);
            reply
        });
        let replies = Reply::Array(replies.collect());
        if last { Answer::Last(replies) } else { replies.into() }
    }
}

/// What is to be done when the job of a transaction has ended.
#[derive(Debug)]
pub(super) enum Later {
    /// The requests that are not for the engine are answered.
    Exec(Arc<Queue>),
    /// What is watched from now on is in this place.
    Watch {
        /// What was watched before.
        before: Option<Watch>,
        /// The new one.
        place: Arc<Mutex<Option<Watch>>>,
    },
}

/// What became of the part that is for the engine.
enum Outcome {
    /// The replies, and what of the log must be safe before they may leave.
    Done(Vec<Reply>, Option<u64>),
    Disturbed,
    /// Not run yet: it has to wait, or takes long itself.
    Busy,
}

/// Has the engine run its part.
fn run(
    engine: &Engine,
    requests: &[Request<'_>],
    patience: (Option<&Watch>, Patience),
    limit: usize,
    scratch: &mut Scratch,
) -> Outcome {
    let (mut replies, mut seen, mut room) = (Vec::new(), 0, Room::of(limit));
    let each = |replies: &mut Vec<Reply>| {
        replies[seen..].iter_mut().for_each(|reply| room.take(reply));
        seen = replies.len();
    };
    match engine.run_transaction(patience, requests, scratch, &mut replies, each) {
        mayhap_engine::Transaction::Done => {
            let unsynced = durable::commit(engine, requests, &mut replies);
            Outcome::Done(replies, unsynced)
        }
        mayhap_engine::Transaction::Disturbed => Outcome::Disturbed,
        mayhap_engine::Transaction::Busy => Outcome::Busy,
    }
}

/// The room for the replies of one transaction, which are all kept until the last is there.
#[derive(Debug)]
struct Room {
    limit: usize,
    taken: usize,
}

impl Room {
    const fn of(limit: usize) -> Self {
        Self { limit, taken: 0 }
    }

    /// Takes room for a reply; one that does not fit behind the others is left out, and an error stands in its place.
    fn take(&mut self, reply: &mut Reply) {
        let bytes = reply.bytes();
        // What is short is never left out: it may be all that says what became of a change.
        const SHORT: usize = 1 << 10;
        if bytes > SHORT && self.taken > 0 && self.taken.saturating_add(bytes) > self.limit {
            *reply = Refusal::from(SessionRefusal::RepliesTooLarge { limit: self.limit }).into();
        }
        self.taken += reply.bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_a_transaction_that_do_not_fit_are_left_out() {
        let mut room = Room::of(5_000);
        let taken = |room: &mut Room, mut reply: Reply| {
            room.take(&mut reply);
            !matches!(reply, Reply::Refused(_))
        };
        assert!(taken(&mut room, Reply::Bulk(vec![0; 4_000])));
        assert!(!taken(&mut room, Reply::Bulk(vec![0; 4_000])));
        assert!(!taken(&mut room, Reply::Array(vec![Reply::Bulk(vec![0; 2_000]); 2])));
        assert!(taken(&mut room, Reply::Integer(1)));
        // Alone, it may be as long as any reply.
        assert!(taken(&mut Room::of(5_000), Reply::Bulk(vec![0; 9_000])));
    }
}
