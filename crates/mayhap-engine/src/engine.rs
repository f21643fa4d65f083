//! Runs requests on the keyspace.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use mayhap_command::mf::{Holder, is_commit};
use mayhap_command::run::refuse_all;
use mayhap_command::traits::Touches;
use mayhap_command::{
    Adds, Asks, Budget, Context, Environment, Limits, Parameters, Ran, Refusal, Reply, Request, Run, Scratch,
    Value,
};
use parking_lot::Mutex;

use crate::busy::Busy;
use crate::entry::{Entry, Now};
use crate::environment::Moment;
use crate::expiries::Expiries;
use crate::gate::RequestGate;
use crate::journal::{Copying, Journal};
use crate::keyspace::Keyspace;
use crate::reclaim::{Garbage, Reclaim};
use crate::record;
use crate::snapshot::Saved;
use crate::statistics::{Statistics, Totals};
use crate::unknown_losses::UnknownLosses;
use crate::watch::{Watch, Watchers};

/// Many named filters, with their limits and parameters.
#[derive(Debug)]
pub struct Engine {
    pub(crate) keyspace: Keyspace,
    pub(crate) expiries: Expiries,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) statistics: Statistics,
    pub(crate) reclaim: Reclaim,
    /// Ordinary requests pass it, a transaction closes it.
    pub(crate) gate: RequestGate,
    /// The names of requests that take long.
    pub(crate) busy: Busy,
    /// Empty until the log is open, and always empty without a log.
    pub(crate) journal: OnceLock<Journal>,
    /// Whether the log is being replayed. Then names are removed by records, not by their deadlines.
    pub(crate) replaying: AtomicBool,
    pub(crate) copying: Copying,
    /// Parts that lost an unknown set of names. A name of theirs that does not exist answers *not ready*.
    pub(crate) unknown_losses: UnknownLosses,
    /// The last snapshot. Locked while the next one is written.
    pub(crate) saved: Mutex<Saved>,
    #[cfg(test)]
    pub(crate) spoilt: Mutex<Option<crate::journal::Spoilt>>,
    /// Whether a snapshot pauses between the pieces of a value, so that other threads run in between.
    #[cfg(test)]
    pub(crate) pauses: AtomicBool,
    limits: Limits,
    pub(crate) budget: Budget,
    /// Read by every pipeline, rarely changed.
    parameters: ArcSwap<Parameters>,
    /// Allows one change of the parameters at a time.
    changing: Mutex<()>,
    pub(crate) environment: Arc<dyn Environment>,
    start_ms: u64,
}

/// What all requests of a run have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) moment: &'a Moment<'a>,
    pub(crate) now: Now,
}

/// No size limit.
pub(crate) static UNLIMITED: Limits = Limits::NONE;

/// The number of requests that run without a pause. A transaction waits for at most these.
const AT_ONCE: usize = 256;

/// How long a transaction waits for long requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all.
    None,
    /// As long as needed.
    Any,
}

/// The outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// It was run.
    Done,
    /// A watched name was changed: nothing was run.
    Disturbed,
    /// A long request is running: nothing was run.
    Busy,
}

/// The number of names that a sweep removes between two checks of the time.
const SWEPT_AT_ONCE: usize = 64;

impl Engine {
    /// Creates an empty engine.
    #[must_use]
    pub fn new(limits: Limits, environment: Arc<dyn Environment>) -> Self {
        let mut seed = [0; 8];
        environment.random(&mut seed);
        Self {
            keyspace: Keyspace::new(u64::from_le_bytes(seed)),
            expiries: Expiries::new(),
            watchers: Arc::default(),
            statistics: Statistics::default(),
            reclaim: Reclaim::default(),
            gate: RequestGate::default(),
            busy: Busy::default(),
            journal: OnceLock::new(),
            replaying: AtomicBool::new(false),
            copying: Copying::default(),
            unknown_losses: UnknownLosses::default(),
            saved: Mutex::default(),
            #[cfg(test)]
            spoilt: Mutex::default(),
            #[cfg(test)]
            pauses: AtomicBool::new(false),
            limits,
            budget: Budget::default(),
            parameters: ArcSwap::default(),
            changing: Mutex::default(),
            start_ms: environment.now_ms(),
            environment,
        }
    }

    /// The limits of one filter.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The memory used by all filters, and its limit.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The clock and random numbers.
    #[must_use]
    pub fn environment(&self) -> &dyn Environment {
        &*self.environment
    }

    /// The defaults for new filters.
    #[must_use]
    pub fn parameters(&self) -> Arc<Parameters> {
        self.parameters.load_full()
    }

    /// Changes the parameters after running requests have ended.
    pub fn set_parameters(&self, change: impl FnOnce(&mut Parameters)) {
        let _alone = self.changing.lock();
        let mut changed = Parameters::clone(&self.parameters.load());
        change(&mut changed);
        let _closed = self.gate.close();
        if let Some(log) = self.log()
            && changed != **self.parameters.load()
        {
            log.append(&record::parameters(&changed, self.unknown_losses.parts()));
        }
        self.parameters.store(Arc::new(changed));
    }

    /// The statistics. Callers that run other commands count them here as well.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The sums of everything. Takes a few hundred loads, whatever the number of names.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let memory_bytes = self.budget.used();
        Totals { memory_bytes, expiring: self.expiries.len(), ..self.statistics.totals() }
    }

    /// Runs requests one after another, and pushes one reply for each. All their changes have a log number below the returned one.
    pub fn execute(
        &self,
        mut requests: &[Request<'_>],
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) -> u64 {
        let mut logged = 0;
        while let Some(first) = requests.first() {
            let made = if is_flush(first) {
                let (flush, rest) = requests.split_at(1);
                requests = rest;
                self.execute_alone(flush, scratch, replies)
            } else {
                let most = requests.len().min(AT_ONCE);
                let flush = requests[..most].iter().position(is_flush);
                let (now, rest) = requests.split_at(flush.unwrap_or(most));
                requests = rest;
                let _open = self.gate.pass();
                self.apply_all(now, scratch, replies)
            };
            logged = logged.max(made);
        }
        logged
    }

    /// As [`execute`](Self::execute), for one long request, on a thread that may wait. While it runs,
    /// [`is_busy`](Self::is_busy) is true for its names.
    pub fn execute_long(&self, request: Request<'_>, scratch: &mut Scratch, replies: &mut Vec<Reply>) -> u64 {
        if is_flush(&request) {
            return self.execute_alone(&[request], scratch, replies);
        }
        if is_commit(&request) {
            self.build_aside(request.name());
        }
        let _busy = self.busy.add(&request.names());
        let _open = self.gate.pass_long();
        self.apply_all(&[request], scratch, replies)
    }

    /// Builds the set that `MF.BUILD name COMMIT` is about to serve, without any lock: other requests use the
    /// name meanwhile. Items that they add are in the next attempt. If clients add without a pause, `COMMIT`
    /// builds the set while they wait.
    fn build_aside(&self, name: &[u8]) {
        const ATTEMPTS: usize = 3;
        for _ in 0..ATTEMPTS {
            let promises = self.budget.promises();
            let begun = self.with_holder(name, Holder::begin_aside).flatten();
            let Some(aside) = begun else { return };
            let parameters = self.parameters.load();
            let context = Context {
                limits: &self.limits,
                budget: &self.budget,
                parameters: &parameters,
                environment: &*self.environment,
            };
            // COMMIT reports any refusal.
            let Ok(built) = aside.build(&context) else { return };
            if self.with_holder(name, |holder| holder.end_aside(&aside, built)) != Some(false) {
                return;
            }
            drop(promises);
        }
    }

    /// Calls `work`, which changes nothing that is saved, with the value of an `MF` name.
    fn with_holder<T>(&self, name: &[u8], work: impl FnOnce(&mut Holder) -> T) -> Option<T> {
        let _open = self.gate.pass_long();
        self.find(name, self.now())?;
        self.hold(name, self.now(), |hold| match hold.value_mut() {
            Some(Value::Filter(holder)) => Some(work(holder)),
            _ => None,
        })
    }

    /// Whether this request would have to wait for a long one.
    #[must_use]
    pub fn is_busy(&self, request: &Request<'_>) -> bool {
        self.busy.any() && request.names().iter().any(|name| self.busy.has(name))
    }

    /// Runs requests while no others run, unless `watch` is disturbed. `each` gets the replies after every
    /// few requests, and may shorten them. With [`Patience::None`], nothing is run if a long request is
    /// running.
    pub fn execute_transaction(
        &self,
        (watch, patience): (Option<&Watch>, Patience),
        requests: &[Request<'_>],
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
        mut each: impl FnMut(&mut Vec<Reply>),
    ) -> Transaction {
        let is_busy = || requests.iter().any(|request| self.is_busy(request));
        let closed = match patience {
            Patience::Any => Some(self.gate.close()),
            Patience::None if is_busy() => None,
            Patience::None => self.gate.try_close(),
        };
        let Some(_closed) = closed else { return Transaction::Busy };
        if let Some(watch) = watch {
            // Names that have expired by now may not have been removed yet.
            watch.names().for_each(|name| drop(self.find(name, self.now())));
            if watch.is_disturbed() {
                return Transaction::Disturbed;
            }
        }
        let _together = self.log_together();
        // Replies about items are short; any other reply may be long.
        let is_short = |request: &Request<'_>| matches!(request.command.run, Run::Ask(_) | Run::Add(_));
        for part in requests.chunk_by(|one, next| is_short(one) && is_short(next)) {
            self.apply_all(part, scratch, replies);
            each(replies);
        }
        Transaction::Done
    }

    /// As [`execute`](Self::execute), while no other requests run.
    pub fn execute_alone(
        &self,
        requests: &[Request<'_>],
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) -> u64 {
        let _closed = self.gate.close();
        let _together = self.log_together();
        self.apply_all(requests, scratch, replies)
    }

    /// Watches some names: [`execute_transaction`](Self::execute_transaction) does nothing after one of them was
    /// changed.
    pub fn watch(&self, names: &[&[u8]]) -> Watch {
        let watch = self.begin_watch(names);
        // Writers that did not see the watch are done now, and their changes are visible.
        drop(self.gate.close());
        watch
    }

    /// As [`watch`](Self::watch), unless a long request is running.
    pub fn try_watch(&self, names: &[&[u8]]) -> Option<Watch> {
        if names.iter().any(|name| self.busy.has(name)) {
            return None;
        }
        let watch = self.begin_watch(names);
        self.gate.try_close().map(|_| watch)
    }

    fn begin_watch(&self, names: &[&[u8]]) -> Watch {
        let now = self.now();
        {
            let _open = self.gate.pass();
            names.iter().for_each(|name| drop(self.find(name, now)));
        }
        self.watchers.watch(names)
    }

    /// Removes expired names for about `budget`. Returns whether there are more; then call it again soon.
    pub fn sweep(&self, budget: Duration) -> bool {
        let end = self.environment.monotonic_ns().saturating_add(budget.as_nanos() as u64);
        loop {
            let now = self.now();
            {
                let _open = self.gate.pass();
                if self.may_change().is_err() {
                    return false;
                }
                let due = self.expiries.due(now.ms, SWEPT_AT_ONCE);
                if due.is_empty() {
                    return false;
                }
                due.iter().for_each(|entry| self.remove_expired(entry, now));
            }
            if self.environment.monotonic_ns() >= end {
                return true;
            }
        }
    }

    pub(crate) fn now(&self) -> Now {
        Now { ms: self.environment.now_ms(), start_ms: self.start_ms }
    }

    /// A context without limits, because existing values must be saved and loaded again whatever the limits
    /// are now.
    pub(crate) fn with_unlimited<T>(&self, work: impl FnOnce(&Context<'_>) -> T) -> T {
        work(&Context {
            limits: &UNLIMITED,
            budget: &Budget::default(),
            parameters: &self.parameters.load(),
            environment: &*self.environment,
        })
    }

    /// Applies requests in order, inside the gate. All their changes have a log number below the returned one.
    fn apply_all(
        &self,
        mut requests: &[Request<'_>],
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) -> u64 {
        let now = self.now();
        let moment = Moment::new(now.ms, &*self.environment);
        let parameters = self.parameters.load();
        let context = Context {
            limits: &self.limits,
            budget: &self.budget,
            parameters: &parameters,
            environment: &moment,
        };
        let turn = &Turn { context: &context, moment: &moment, now };
        let mut began_ns = self.environment.monotonic_ns();
        let promises = self.budget.promises();
        while let [first, rest @ ..] = requests {
            let answered = replies.len();
            if let Err(refusal) = self.may_run(first) {
                replies.push(refusal.into());
                self.statistics.rejected(first.command);
                requests = rest;
                continue;
            }
            let done = match first.command.run {
                Run::Ask(asks) => {
                    let done = alike(requests, |run| matches!(run, Run::Ask(other) if *other == asks));
                    self.apply_lookups(asks, &requests[..done], turn, scratch, replies);
                    done
                }
                Run::Add(adds) => {
                    let done = alike(requests, |run| matches!(run, Run::Add(other) if *other == adds));
                    self.apply_additions(adds, &requests[..done], turn, scratch, replies);
                    done
                }
                _ => {
                    replies.push(self.apply(first, turn).unwrap_or_else(Reply::from));
                    1
                }
            };
            promises.settle();
            let ended_ns = self.environment.monotonic_ns();
            self.count_run(&requests[..done], &replies[answered..], ended_ns.saturating_sub(began_ns));
            began_ns = ended_ns;
            requests = &requests[done..];
        }
        moment.logged()
    }

    /// Checks that there is memory and a working log for what `request` may do.
    fn may_run(&self, request: &Request<'_>) -> Result<(), Refusal> {
        if request.command.flags.deny_oom {
            self.budget.admit(0)?;
        }
        if self.journal.get().is_some() && request.command.changes() {
            self.may_change()?;
        }
        Ok(())
    }

    /// Requests of one batch may be of different commands; they share the time.
    fn count_run(&self, requests: &[Request<'_>], replies: &[Reply], nanos: u64) {
        let mut at = 0;
        for run in requests.chunk_by(|one, next| std::ptr::eq(one.command, next.command)) {
            let replies = &replies[at..at + run.len()];
            at += run.len();
            let failed = replies.iter().filter(|reply| matches!(reply, Reply::Refused(_))).count();
            let share = nanos * run.len() as u64 / requests.len() as u64;
            self.statistics.ran(run[0].command, run.len() as u64, failed as u64, share);
        }
    }

    /// Looks up the items of requests on one name, with a shared lock of its entry.
    fn apply_lookups(
        &self,
        asks: Asks,
        requests: &[Request<'_>],
        turn: &Turn<'_>,
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) {
        let (context, name) = (turn.context, requests[0].name());
        let Some(entry) = self.find(name, turn.now) else {
            match self.unknown_losses.of(name) {
                None => asks.answer(requests, None, context, scratch, replies),
                Some(lost) => refuse_all(requests, &Refusal::Lost(lost), replies),
            };
            return;
        };
        let value = entry.read();
        let asked = asks.answer(requests, value.as_ref(), context, scratch, replies);
        entry.touch(turn.now);
        self.statistics.answered(&entry, asked.hits, asked.misses);
    }

    /// Adds the items of requests on one name. It uses a shared lock of the entry where possible, and otherwise runs one request at a
    /// time.
    fn apply_additions(
        &self,
        adds: Adds,
        mut requests: &[Request<'_>],
        turn: &Turn<'_>,
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) {
        while let Some(first) = requests.first() {
            let ran = match adds.joins(first) {
                true => self.add_together(adds, requests, turn, scratch, replies),
                false => Ran::only(0),
            };
            let Ran::Rest { done, begun } = ran else { return };
            let [next, rest @ ..] = &requests[done..] else { return };
            let reply = self.alone(next, turn, |slot| adds.add_alone(next, &begun, slot, turn.context));
            replies.push(reply.unwrap_or_else(Reply::from));
            requests = rest;
        }
    }

    /// Adds items, and logs them, while a shared lock of the entry is enough.
    fn add_together(
        &self,
        adds: Adds,
        requests: &[Request<'_>],
        turn: &Turn<'_>,
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) -> Ran {
        let name = requests[0].name();
        let Some(entry) = self.find(name, turn.now) else {
            return match self.unknown_losses.of(name) {
                None => adds.add_together(requests, None, None, scratch, replies).ran,
                Some(lost) => {
                    refuse_all(requests, &Refusal::Lost(lost), replies);
                    Ran::All
                }
            };
        };
        let answered = replies.len();
        let mut new = std::mem::take(&mut scratch.new);
        new.clear();
        let value = entry.read();
        let wanted = self.journal.get().map(|_| &mut new);
        let added = adds.add_together(requests, value.as_ref(), wanted, scratch, replies);
        entry.touch(turn.now);
        self.statistics.added(added.new_items);
        if added.new_items > 0 {
            if let Some(number) = self.log_items(&entry, &new, &mut scratch.record, turn.moment) {
                entry.log(number);
            }
            self.watchers.changed(name);
            // Counts requests, not batches. Those without a new item changed nothing.
            let new = replies[answered..].iter().filter(|reply| has_new(reply)).count();
            self.statistics.changed(new.max(1) as u64);
        }
        scratch.new = new;
        added.ran
    }

    /// Runs one request on the values it needs, with the locks it needs.
    pub(crate) fn apply(&self, request: &Request<'_>, turn: &Turn<'_>) -> Result<Reply, Refusal> {
        let Turn { context, now, .. } = *turn;
        match request.command.run {
            Run::Look(look) => match self.find(request.name(), now) {
                None => match self.unknown_losses.of(request.name()) {
                    Some(lost) if request.command.names.first > 0 => Err(Refusal::Lost(lost)),
                    _ => look(request, None, context),
                },
                Some(entry) => {
                    let value = entry.read();
                    entry.touch(now);
                    if let Some(lost) = value.as_ref().and_then(Value::lost) {
                        return Err(Refusal::Lost(lost));
                    }
                    look(request, value.as_ref(), context)
                }
            },
            Run::Change(change) => self.alone(request, turn, |slot| change(request, slot, context)),
            Run::Keyspace(command) => self.apply_to_keyspace(command, request, turn),
            Run::Gather(gather) => {
                self.gather(request, turn, |slot, sources| gather(request, slot, sources, context))
            }
            Run::Ask(_) | Run::Add(_) | Run::Server(_) => Err(Refusal::Syntax),
        }
    }

    /// Removes everything. The gate is closed.
    pub(crate) fn flush(&self) {
        for name in self.watchers.names() {
            if self.keyspace.get(&name).is_some() {
                self.watchers.changed(&name);
            }
        }
        self.statistics.changed(1);
        let all = self.keyspace.take_all();
        self.unknown_losses.set(0);
        self.expiries.clear();
        self.statistics.forget_all();
        self.budget.book(self.budget.used(), 0);
        self.reclaim.later(Garbage::All(all));
    }

    /// Returns the entry of `name`. An expired one is removed instead.
    pub(crate) fn find(&self, name: &[u8], now: Now) -> Option<Entry> {
        let entry = self.keyspace.get(name)?;
        let is_due = {
            // Only an entry with a deadline needs the lock for the check.
            entry.expires() && {
                let _value = entry.read();
                self.is_due(&entry, now)
            }
        };
        if is_due {
            // It is gone either way, but if the removal cannot be logged, the entry stays.
            if self.may_change().is_ok() {
                self.remove_expired(&entry, now);
            }
            return None;
        }
        Some(entry)
    }

    /// Whether `entry` has expired. The caller holds a lock of it.
    pub(crate) fn is_due(&self, entry: &Entry, now: Now) -> bool {
        self.expiries.is_due(entry, now.ms) && !self.replaying.load(Relaxed)
    }
}

/// Returns the number of requests, at least one, that concern the same name as the first and run together with it.
fn alike(requests: &[Request<'_>], together: impl Fn(&Run) -> bool) -> usize {
    let name = requests[0].name();
    let is_alike = |next: &&Request<'_>| together(&next.command.run) && next.name() == name;
    1 + requests[1..].iter().take_while(is_alike).count()
}

/// Whether any reply to inserted items is *certainly new*.
fn has_new(reply: &Reply) -> bool {
    match reply {
        Reply::Boolean(new) => *new,
        Reply::Integer(number) => *number == 1,
        Reply::Booleans(answers) => answers.iter().any(|new| new),
        Reply::Array(replies) => replies.iter().any(has_new),
        _ => false,
    }
}

fn is_flush(request: &Request<'_>) -> bool {
    request.command.traits.touches == Touches::Everything
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use mayhap_command::table;

    use super::*;
    use crate::System;

    /// An addition that needs no new memory shares the lock of the filter with others.
    #[test]
    fn additions_share_the_lock_of_the_filter() {
        let engine = Arc::new(Engine::new(Limits::default(), Arc::new(System)));
        let execute = |engine: &Engine, line: &str| {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let request = Request { command: table::find(words[0]).unwrap(), words: &words };
            let mut replies = Vec::new();
            engine.execute(&[request], &mut Scratch::default(), &mut replies);
            format!("{replies:?}")
        };
        execute(&engine, "BF.RESERVE f 0.01 1000");
        execute(&engine, "MF.RESERVE m KIND bloom CAPACITY 100000 FPR 0.01");
        for (name, line) in [
            ("f", "BF.ADD f a"),
            ("f", "BF.MADD f a b"),
            ("f", "BF.INSERT f NOCREATE ITEMS a b c"),
            ("f", "BF.INSERT f ITEMS d"),
            ("m", "MF.MADD m a b"),
        ] {
            let entry = engine.keyspace.get(name.as_bytes()).unwrap();
            let shared = entry.read();
            let (done, answered) = channel();
            let other = Arc::clone(&engine);
            let thread = std::thread::spawn(move || done.send(execute(&other, line)));
            let reply = answered.recv_timeout(Duration::from_secs(30));
            drop(shared);
            thread.join().unwrap().unwrap();
            let reply = reply.unwrap_or_else(|_| panic!("{line} waits for a shared lock"));
            assert!(!reply.contains("Refused"), "{line}: {reply}");
        }
    }
}
