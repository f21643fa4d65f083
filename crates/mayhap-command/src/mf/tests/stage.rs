//! Names and their values without an engine. Requests run on them as an engine would run them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::{Budget, Context, Environment, Limits};
use crate::parameters::Parameters;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Ran, Request, Run, Scratch, Slot, Source};
use crate::table;
use crate::value::Value;

/// A clock that stands still until it is moved, and random numbers that are predictable.
#[derive(Debug)]
pub(crate) struct Still {
    pub(crate) now_ms: AtomicU64,
    drawn: AtomicU64,
}

impl Environment for Still {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
            *byte = (drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        }
    }
}

/// A small keyspace.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) values: BTreeMap<Vec<u8>, Value>,
    pub(crate) environment: Still,
    pub(crate) limits: Limits,
    pub(crate) budget: Budget,
    pub(crate) changed: bool,
    parameters: Parameters,
    scratch: Scratch,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self {
            values: BTreeMap::new(),
            environment: Still { now_ms: AtomicU64::new(1_800_000_000_000), drawn: AtomicU64::new(1) },
            limits: Limits::default(),
            budget: Budget::default(),
            changed: false,
            parameters: Parameters::default(),
            scratch: Scratch::default(),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.environment.now_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn set_now(&self, ms: u64) {
        self.environment.now_ms.store(ms, Ordering::Relaxed);
    }

    pub(crate) fn wait(&self, ms: u64) {
        self.environment.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Runs a line of words separated by blanks.
    pub(crate) fn run(&mut self, line: &str) -> Reply {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.run_words(&words)
    }

    /// The text with which a line is refused.
    pub(crate) fn refused(&mut self, line: &str) -> String {
        match self.run(line) {
            Reply::Refused(refusal) => refusal.to_string(),
            reply => panic!("{line}: {reply:?}"),
        }
    }

    pub(crate) fn run_words(&mut self, words: &[&[u8]]) -> Reply {
        let command = table::find(words[0]).unwrap_or_else(|| panic!("{words:?}"));
        if !command.arity.admits(words.len()) {
            return Refusal::WrongArity { command: command.name }.into();
        }
        self.run_all(&[Request { command, words }]).remove(0)
    }

    /// Runs requests on one name, and batches those that can be batched.
    pub(crate) fn run_all(&mut self, mut requests: &[Request<'_>]) -> Vec<Reply> {
        let mut replies = Vec::new();
        let context = Context {
            limits: &self.limits,
            budget: &self.budget,
            parameters: &self.parameters,
            environment: &self.environment,
        };
        self.changed = false;
        while let [request, rest @ ..] = requests {
            let name = request.name().to_vec();
            let mut value = self.values.remove(&name);
            let before = value.as_ref().map_or(0, Value::memory_bytes);
            let reply = match request.command.run {
                Run::Look(look) => look(request, value.as_ref(), &context),
                Run::Change(change) => {
                    let mut slot = Slot::new(&mut value);
                    let reply = change(request, &mut slot, &context);
                    self.changed |= slot.is_changed();
                    reply
                }
                Run::Ask(asks) => {
                    let (scratch, run) = (&mut self.scratch, &mut replies);
                    asks.answer(requests, value.as_ref(), &context, scratch, run);
                    requests = &[];
                    self.budget.book(before, value.as_ref().map_or(0, Value::memory_bytes));
                    self.values.extend(value.map(|value| (name, value)));
                    continue;
                }
                Run::Add(adds) => {
                    let (scratch, run) = (&mut self.scratch, &mut replies);
                    let added = adds.add_together(requests, value.as_ref(), None, scratch, run);
                    self.changed |= added.new_items > 0;
                    requests = match added.ran {
                        Ran::All => &[],
                        Ran::Rest { done, begun } => {
                            let mut slot = Slot::new(&mut value);
                            let reply = adds.add_alone(&requests[done], &begun, &mut slot, &context);
                            self.changed |= slot.is_changed();
                            replies.push(reply.unwrap_or_else(Reply::from));
                            &requests[done + 1..]
                        }
                    };
                    self.budget.book(before, value.as_ref().map_or(0, Value::memory_bytes));
                    self.values.extend(value.map(|value| (name, value)));
                    continue;
                }
                Run::Gather(gather) => {
                    let first = request.command.names.first;
                    let sources: Vec<Source<'_>> = request.words[first + 1..]
                        .iter()
                        .map(|source| match *source == name {
                            true => Source::Target,
                            false => Source::Other(self.values.get(*source)),
                        })
                        .collect();
                    let mut slot = Slot::new(&mut value);
                    let reply = gather(request, &mut slot, &sources, &context);
                    self.changed |= slot.is_changed();
                    reply
                }
                _ => panic!("{} cannot run on a stage", request.command.name),
            };
            self.budget.book(before, value.as_ref().map_or(0, Value::memory_bytes));
            self.values.extend(value.map(|value| (name, value)));
            replies.push(reply.unwrap_or_else(Reply::from));
            requests = rest;
        }
        replies
    }
}

/// All the booleans of an array.
pub(crate) fn booleans(reply: &Reply) -> Vec<bool> {
    match reply {
        Reply::Booleans(answers) => answers.iter().collect(),
        Reply::Array(replies) => replies
            .iter()
            .map(|reply| match reply {
                Reply::Boolean(answer) => *answer,
                reply => panic!("{reply:?}"),
            })
            .collect(),
        reply => panic!("{reply:?}"),
    }
}

/// The field of a map.
pub(crate) fn field<'r>(reply: &'r Reply, name: &str) -> &'r Reply {
    let Reply::Map(pairs) = reply else { panic!("{reply:?}") };
    let found = pairs.iter().find(|(key, _)| *key == Reply::bulk(name));
    &found.unwrap_or_else(|| panic!("no {name} in {reply:?}")).1
}
