//! Runs requests on the keyspace.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use mayhap_command::run::Keyspace as KeyspaceCommand;
use mayhap_command::{
    Batch, Budget, Context, Environment, Limits, Parameters, Refusal, Reply, Request, Run, Scratch,
};
use parking_lot::Mutex;

use crate::entry::{Entry, Now};
use crate::expiries::Expiries;
use crate::gate::Gate;
use crate::keyspace::Keyspace;
use crate::reclaim::{Garbage, Reclaim};
use crate::statistics::{Statistics, Totals};
use crate::watch::{Watch, Watchers};

/// Many named filters, and the limits and parameters they live under.
#[derive(Debug)]
pub struct Engine {
    pub(crate) keyspace: Keyspace,
    pub(crate) expiries: Expiries,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) statistics: Statistics,
    pub(crate) reclaim: Reclaim,
    /// Passed by ordinary requests, closed by a transaction.
    pub(crate) gate: Gate,
    limits: Limits,
    pub(crate) budget: Budget,
    /// Read by every pipeline, changed hardly ever.
    parameters: ArcSwap<Parameters>,
    /// One change of the parameters at a time.
    changing: Mutex<()>,
    pub(crate) environment: Arc<dyn Environment>,
    start_ms: u64,
}

/// Requests run without a pause: a transaction waits for no more than these.
const AT_ONCE: usize = 256;

/// Names that a sweep removes between two looks at the clock.
const SWEPT_AT_ONCE: usize = 64;

impl Engine {
    /// An empty one.
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
            gate: Gate::default(),
            limits,
            budget: Budget::default(),
            parameters: ArcSwap::default(),
            changing: Mutex::default(),
            start_ms: environment.now_ms(),
            environment,
        }
    }

    /// What one filter may take.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What all filters take and may take.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The clock and randomness.
    #[must_use]
    pub fn environment(&self) -> &dyn Environment {
        &*self.environment
    }

    /// What new filters are like unless a request says otherwise.
    #[must_use]
    pub fn parameters(&self) -> Arc<Parameters> {
        self.parameters.load_full()
    }

    /// Changes the parameters; requests that run already keep the old ones.
    pub fn set_parameters(&self, change: impl FnOnce(&mut Parameters)) {
        let _alone = self.changing.lock();
        let mut changed = Parameters::clone(&self.parameters.load());
        change(&mut changed);
        self.parameters.store(Arc::new(changed));
    }

    /// What happened so far; who runs other commands than the engine's counts them here, too.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The sums of everything, in a few hundred loads however many names there are.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let memory_bytes = self.budget.used();
        Totals { memory_bytes, expiring: self.expiries.len(), ..self.statistics.totals() }
    }

    /// Runs requests that touch filters, one behind the other, and pushes one reply for each.
    pub fn run(&self, mut requests: &[Request<'_>], scratch: &mut Scratch, replies: &mut Vec<Reply>) {
        while let Some(first) = requests.first() {
            if is_flush(first) {
                let (flush, rest) = requests.split_at(1);
                self.run_alone(flush, scratch, replies);
                requests = rest;
                continue;
            }
            let most = requests.len().min(AT_ONCE);
            let flush = requests[..most].iter().position(is_flush);
            let (run, rest) = requests.split_at(flush.unwrap_or(most));
            let _open = self.gate.pass();
            self.run_inside(run, scratch, replies);
            requests = rest;
        }
    }

    /// Runs requests with nobody else running any.
    pub fn run_alone(&self, requests: &[Request<'_>], scratch: &mut Scratch, replies: &mut Vec<Reply>) {
        let _closed = self.gate.close();
        self.run_inside(requests, scratch, replies);
    }

    /// Runs requests with nobody else running any, unless `watch` is disturbed. Were they run?
    pub fn run_watched(
        &self,
        watch: &Watch,
        requests: &[Request<'_>],
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) -> bool {
        let _closed = self.gate.close();
        // What expired by now may not have been noticed yet.
        watch.names().for_each(|name| drop(self.find(name, self.now())));
        if watch.is_disturbed() {
            return false;
        }
        self.run_inside(requests, scratch, replies);
        true
    }

    /// Watches some names: [`run_watched`](Self::run_watched) does nothing once one of them was changed.
    pub fn watch(&self, names: &[&[u8]]) -> Watch {
        let now = self.now();
        {
            let _open = self.gate.pass();
            names.iter().for_each(|name| drop(self.find(name, now)));
        }
        let watch = self.watchers.watch(names);
        // Whoever did not see that somebody watches is done now, and what it did can be read.
        drop(self.gate.close());
        watch
    }

    /// Removes names that have expired, for about as long as `budget`. Says whether there are more: call it soon again then.
    pub fn sweep(&self, budget: Duration) -> bool {
        let end = self.environment.monotonic_ns().saturating_add(budget.as_nanos() as u64);
        loop {
            let now = self.now();
            {
                let _open = self.gate.pass();
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

    pub(crate) fn with_context<T>(&self, work: impl FnOnce(&Context<'_>) -> T) -> T {
        let parameters = self.parameters.load();
        work(&Context {
            limits: &self.limits,
            budget: &self.budget,
            parameters: &parameters,
            environment: &*self.environment,
        })
    }

    /// The same with no limit for all filters together: what is there is to be saved and loaded again, whatever the limit is by now.
    pub(crate) fn with_unlimited<T>(&self, work: impl FnOnce(&Context<'_>) -> T) -> T {
        self.with_context(|context| work(&Context { budget: &Budget::default(), ..*context }))
    }

    fn run_inside(&self, requests: &[Request<'_>], scratch: &mut Scratch, replies: &mut Vec<Reply>) {
        let now = self.now();
        self.with_context(|context| self.run_all(requests, context, now, scratch, replies));
    }

    fn run_all(
        &self,
        mut requests: &[Request<'_>],
        context: &Context<'_>,
        now: Now,
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) {
        let mut began_ns = self.environment.monotonic_ns();
        while let [first, rest @ ..] = requests {
            let answered = replies.len();
            let mut done = 1;
            if first.command.flags.deny_oom && self.budget.admit(0).is_err() {
                replies.push(Refusal::OutOfMemory.into());
                self.statistics.rejected(first.command);
                requests = rest;
                continue;
            }
            if let Run::Items(batch) = first.command.run {
                let alike = |next: &&Request<'_>| {
                    matches!(next.command.run, Run::Items(other) if other == batch)
                        && next.name() == first.name()
                };
                done += rest.iter().take_while(alike).count();
                self.run_batch(batch, &requests[..done], context, now, scratch, replies);
            } else {
                let reply = self.run_one(first, context, now);
                replies.push(reply.unwrap_or_else(Reply::from));
            }
            let ended_ns = self.environment.monotonic_ns();
            self.count_run(&requests[..done], &replies[answered..], ended_ns.saturating_sub(began_ns));
            began_ns = ended_ns;
            requests = &requests[done..];
        }
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

    /// Runs what can be run with the entry shared, and one request alone wherever that is not enough.
    fn run_batch(
        &self,
        batch: Batch,
        mut requests: &[Request<'_>],
        context: &Context<'_>,
        now: Now,
        scratch: &mut Scratch,
        replies: &mut Vec<Reply>,
    ) {
        while let Some(first) = requests.first() {
            let name = first.name();
            scratch.added = 0;
            let together = match self.find(name, now) {
                None => batch.together(requests, None, context, scratch, replies),
                Some(entry) => {
                    let value = entry.read();
                    let together = batch.together(requests, value.as_ref(), context, scratch, replies);
                    entry.touch(now);
                    self.statistics.answered(&entry, together.hits, together.misses);
                    self.statistics.added(scratch.added);
                    if together.changed {
                        self.changed(name);
                    }
                    together
                }
            };
            requests = &requests[together.done..];
            if let [next, rest @ ..] = requests {
                let reply = self.alone(name, now, |slot| batch.alone(next, slot, context, scratch));
                replies.push(reply.unwrap_or_else(Reply::from));
                requests = rest;
            }
        }
    }

    fn run_one(&self, request: &Request<'_>, context: &Context<'_>, now: Now) -> Result<Reply, Refusal> {
        match request.command.run {
            Run::Look(look) => match self.find(request.name(), now) {
                None => look(request, None, context),
                Some(entry) => {
                    let value = entry.read();
                    entry.touch(now);
                    look(request, value.as_ref(), context)
                }
            },
            Run::Change(change) => self.alone(request.name(), now, |slot| change(request, slot, context)),
            Run::Keyspace(command) => self.run_keyspace(command, request, context, now),
            Run::Gather(gather) => {
                self.gather(request, now, |slot, sources| gather(request, slot, sources, context))
            }
            Run::Items(_) | Run::Server(_) => Err(Refusal::Syntax),
        }
    }

    /// Removes everything. The gate is closed.
    pub(crate) fn flush(&self) {
        for name in self.watchers.names() {
            if self.keyspace.get(&name).is_some() {
                self.watchers.changed(&name);
            }
        }
        self.statistics.changed();
        let all = self.keyspace.take_all();
        self.expiries.clear();
        self.statistics.forget_all();
        self.budget.book(self.budget.used(), 0);
        self.reclaim.later(Garbage::All(all));
    }

    /// The entry of `name`; one whose time is up is removed instead.
    pub(crate) fn find(&self, name: &[u8], now: Now) -> Option<Entry> {
        let entry = self.keyspace.get(name)?;
        let is_due = {
            // Only an entry with a deadline needs the lock to be sure of it.
            entry.expires() && {
                let _value = entry.read();
                self.expiries.is_due(&entry, now.ms)
            }
        };
        if is_due {
            self.remove_expired(&entry, now);
            return None;
        }
        Some(entry)
    }
}

fn is_flush(request: &Request<'_>) -> bool {
    matches!(request.command.run, Run::Keyspace(KeyspaceCommand::Flush))
}
