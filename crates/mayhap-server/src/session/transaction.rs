//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.

use std::sync::Arc;

use mayhap_command::server::SessionRefusal;
use mayhap_command::traits::InTransaction;
use mayhap_command::{Command, Refusal, Reply, Request, Run, Scratch};
use mayhap_engine::{Engine, Patience, Watch};
use parking_lot::Mutex;

use crate::durable;

use super::long::{LARGE_BYTES, takes_long};
use super::{Answer, Session, Tools};

/// The queued requests and the watched names of a session.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    open: bool,
    /// Whether a request was refused since `MULTI`.
    spoiled: bool,
    queue: Queue,
    watch: Option<Watch>,
    /// Whether a name of an earlier `WATCH` was changed.
    disturbed: bool,
}

/// Requests that wait for `EXEC`, with all their words in one buffer.
#[derive(Debug, Default)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    /// The end of each word in `bytes`.
    ends: Vec<usize>,
    /// The commands, with the number of words of each.
    commands: Vec<(&'static Command, usize)>,
    /// The refusals of requests that are no longer allowed at `EXEC`.
    refused: Vec<Option<Refusal>>,
}

impl Transaction {
    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    /// The number of queued requests, if it is open.
    pub(super) fn queued(&self) -> Option<usize> {
        self.open.then_some(self.queue.commands.len())
    }

    /// The number of watched names.
    pub(super) fn watched(&self) -> usize {
        self.watch.as_ref().map_or(0, |watch| watch.names().count())
    }

    /// Its memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.queue.bytes.capacity()
            + self.queue.ends.capacity() * size_of::<usize>()
            + self.queue.commands.capacity() * size_of::<(&Command, usize)>()
    }

    /// Records that a request was refused. If the transaction is open, `EXEC` will fail.
    pub(super) const fn spoil(&mut self) {
        self.spoiled |= self.open;
    }

    /// Drops the queue and the watched names.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Queues a request for `EXEC`, unless all of them together exceed `limit` bytes.
    pub(super) fn queue(
        &mut self,
        command: &'static Command,
        words: &[&[u8]],
        limit: usize,
    ) -> Result<(), Refusal> {
        if command.traits.in_transaction == InTransaction::Refused {
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

    /// All requests, made from these words.
    fn requests<'a>(&self, words: &'a [&'a [u8]]) -> Vec<Request<'a>> {
        let mut rest = words;
        let request = |(command, count): &(&'static Command, usize)| {
            let (words, after) = rest.split_at(*count);
            rest = after;
            Request { command, words }
        };
        self.commands.iter().map(request).collect()
    }

    /// The refusal of the request with this number, if it is no longer allowed.
    fn refusal(&self, number: usize) -> Option<&Refusal> {
        self.refused.get(number)?.as_ref()
    }

    /// The requests for the engine that are still allowed.
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
        // The new watch sees changes from now on; the old one has seen those before.
        if let Some(watch) = self.shared.engine().try_watch(&names) {
            self.watches(before.as_ref(), watch);
            return Ok(Reply::Ok.into());
        }
        // The engine is busy for long. Other clients of this thread must not wait for it.
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

    /// The refusal of a queued request that is no longer allowed.
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

    /// `EXEC`. Requests for the engine run together, and no other request runs in between. Requests about the
    /// server or the connection touch no filter and run after them. The replies are in the order of the
    /// requests.
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
        // Permissions may have changed since the requests were queued.
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
                    execute_queue(engine, &queue.of_engine(&requests), patience, limit, tools.scratch)
                }
            }
        };
        match outcome {
            Outcome::Disturbed => Ok(Reply::NullArray.into()),
            Outcome::Done(replies, unsynced) => {
                self.unsynced = unsynced.or(self.unsynced);
                Ok(self.answer_rest(&queue, replies))
            }
            // Other clients of this thread must not wait for it.
            Outcome::Busy => {
                let (engine, queue) = (Arc::clone(engine), Arc::new(queue));
                self.later = Some(Later::Exec(Arc::clone(&queue)));
                Ok(Answer::Job(Box::new(move || {
                    let words = queue.words();
                    let patience = (watch.as_ref(), Patience::Any);
                    let requests = queue.of_engine(&queue.requests(&words));
                    match execute_queue(&engine, &requests, patience, limit, &mut Scratch::default()) {
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

    /// Finishes a transaction or `WATCH` after its job has ended with `reply`.
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

    /// Answers the requests of a transaction that are not for the engine, and puts all replies in the order
    /// of the requests.
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
            let mut reply = match self.answer(server, *request) {
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

/// The work after the job of a transaction has ended.
#[derive(Debug)]
pub(super) enum Later {
    /// Answer the requests that are not for the engine.
    Exec(Arc<Queue>),
    /// Replace the watch.
    Watch {
        /// The previous watch.
        before: Option<Watch>,
        /// Where the job puts the new watch.
        place: Arc<Mutex<Option<Watch>>>,
    },
}

/// The outcome of the requests for the engine.
enum Outcome {
    /// The replies, and the number below which log records must be safe before they may leave.
    Done(Vec<Reply>, Option<u64>),
    Disturbed,
    /// Not run: it has to wait, or it takes long.
    Busy,
}

/// Runs the requests for the engine.
fn execute_queue(
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
    match engine.execute_transaction(patience, requests, scratch, &mut replies, each) {
        mayhap_engine::Transaction::Done => {
            let unsynced = durable::commit(engine, requests, &mut replies);
            Outcome::Done(replies, unsynced)
        }
        mayhap_engine::Transaction::Disturbed => Outcome::Disturbed,
        mayhap_engine::Transaction::Busy => Outcome::Busy,
    }
}

/// The space for the replies of one transaction, which are all in memory until the last one is complete.
#[derive(Debug)]
struct Room {
    limit: usize,
    taken: usize,
}

impl Room {
    const fn of(limit: usize) -> Self {
        Self { limit, taken: 0 }
    }

    /// Takes space for a reply. A reply that does not fit is replaced by an error.
    fn take(&mut self, reply: &mut Reply) {
        let bytes = reply.bytes();
        // Never replace a short reply: it may be the only report of what a change did.
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
    fn replies_of_a_transaction_that_do_not_fit_are_replaced() {
        let mut room = Room::of(5_000);
        let taken = |room: &mut Room, mut reply: Reply| {
            room.take(&mut reply);
            !matches!(reply, Reply::Refused(_))
        };
        assert!(taken(&mut room, Reply::Bulk(vec![0; 4_000])));
        assert!(!taken(&mut room, Reply::Bulk(vec![0; 4_000])));
        assert!(!taken(&mut room, Reply::Array(vec![Reply::Bulk(vec![0; 2_000]); 2])));
        assert!(taken(&mut room, Reply::Integer(1)));
        // A single reply may have any length.
        assert!(taken(&mut Room::of(5_000), Reply::Bulk(vec![0; 9_000])));
    }
}
