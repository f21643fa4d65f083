//! Names and their values, one request at a time.

use std::collections::HashMap;

use mayhap_command::{
    Budget, Context, Environment, Limits, Parameters, Ran, Refusal, Reply, Request, Run, Scratch, Slot,
    Value, parameters, table,
};

#[derive(Debug)]
struct FixedClock;

impl Environment for FixedClock {
    fn now_ms(&self) -> u64 {
        0
    }

    fn random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

#[derive(Default)]
pub(crate) struct Keyspace {
    values: HashMap<Vec<u8>, Option<Value>>,
    pub(crate) parameters: Parameters,
    limits: Limits,
    pub(crate) budget: Budget,
    scratch: Scratch,
    /// Every addition has exclusive access to the filter.
    pub(crate) adds_alone: bool,
    /// The number of requests that reported a change.
    pub(crate) changes: u64,
}

impl Keyspace {
    /// Creates a keyspace whose filters may take this many bytes each.
    pub(crate) fn limited(filter_bytes: u64) -> Self {
        let mut keyspace = Self::default();
        keyspace.limits.filter_bytes = filter_bytes;
        keyspace
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let parameter = parameters::find(name.as_bytes()).unwrap_or_else(|| panic!("no parameter {name}"));
        (parameter.set)(&mut self.parameters, value.as_bytes()).unwrap();
    }

    /// Runs one request of words without spaces.
    pub(crate) fn line(&mut self, line: &str) -> Reply {
        self.ask(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Reply {
        let mut replies = self.ask_all(&[words]);
        assert_eq!(replies.len(), 1);
        replies.remove(0)
    }

    /// Runs requests on the same name that all belong to one batch.
    pub(crate) fn ask_all(&mut self, all: &[&[&[u8]]]) -> Vec<Reply> {
        let requests: Vec<Request<'_>> =
            all.iter().map(|words| Request { command: table::find(words[0]).unwrap(), words }).collect();
        let first = &requests[0];
        if let Some(wrong) =
            requests.iter().find(|request| !request.command.arity.admits(request.words.len()))
        {
            return vec![Refusal::WrongArity { command: wrong.command.name }.into()];
        }
        // Kept until the request ends, as in an engine.
        let _promises = self.budget.promises();
        let value = self.values.entry(first.name().to_vec()).or_default();
        let before = value.as_ref().map_or(0, Value::memory_bytes);
        let context = Context {
            limits: &self.limits,
            budget: &self.budget,
            parameters: &self.parameters,
            environment: &FixedClock,
        };
        let mut replies = Vec::new();
        match first.command.run {
            Run::Look(look) => {
                replies.push(look(first, value.as_ref(), &context).unwrap_or_else(Reply::from));
            }
            Run::Change(change) => {
                let mut slot = Slot::new(value);
                replies.push(change(first, &mut slot, &context).unwrap_or_else(Reply::from));
                self.changes += u64::from(slot.is_changed());
            }
            Run::Ask(asks) => {
                asks.answer(&requests, value.as_ref(), &context, &mut self.scratch, &mut replies);
            }
            Run::Add(adds) => {
                let mut left = &requests[..];
                while let [first, ..] = left {
                    let ran = if adds.joins(first) && !self.adds_alone {
                        let scratch = &mut self.scratch;
                        let added = adds.add_together(left, value.as_ref(), None, scratch, &mut replies);
                        self.changes += u64::from(added.new_items > 0);
                        added.ran
                    } else {
                        Ran::only(0)
                    };
                    let Ran::Rest { done, begun } = ran else { break };
                    let mut slot = Slot::new(value);
                    let reply = adds.add_alone(&left[done], &begun, &mut slot, &context);
                    replies.push(reply.unwrap_or_else(Reply::from));
                    self.changes += u64::from(slot.is_changed());
                    left = &left[done + 1..];
                }
            }
            _ => panic!("{} is not a command on filters", first.command.name),
        }
        let after = value.as_ref().map_or(0, Value::memory_bytes);
        self.budget.book(before, after);
        replies
    }

    pub(crate) fn value(&mut self, name: &str) -> &mut Value {
        self.values.get_mut(name.as_bytes()).and_then(Option::as_mut).unwrap()
    }

    /// Returns the reply to `DUMP`.
    pub(crate) fn dump(&mut self, name: &str, rdb_version: u16) -> Result<Vec<u8>, Refusal> {
        let value = self.values.get_mut(name.as_bytes()).and_then(Option::as_mut).unwrap();
        mayhap_command::payload::dump(value, rdb_version)
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            limits: &self.limits,
            budget: &self.budget,
            parameters: &self.parameters,
            environment: &FixedClock,
        }
    }

    pub(crate) fn put(&mut self, name: &str, value: Value) {
        self.values.insert(name.as_bytes().to_vec(), Some(value));
    }
}
