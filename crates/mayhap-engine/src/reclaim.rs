//! Frees large values on another thread, so that no request waits for it.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use mayhap_command::Value;
use parking_lot::Mutex;

use crate::keyspace::Shard;

/// The size in bytes from which on freeing memory takes longer than handing it to another thread.
const LARGE_BYTES: u64 = 1 << 20;

/// A value that is no longer in the keyspace.
#[derive(Debug)]
pub(crate) enum Garbage {
    Value(#[expect(dead_code, reason = "it is only dropped")] Value),
    All(#[expect(dead_code, reason = "it is only dropped")] Vec<Shard>),
}

/// A thread that frees memory. It starts when first needed and ends when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Reclaim(Mutex<Option<Sender<Garbage>>>);

impl Reclaim {
    /// Frees a value: here if it is small, on the other thread if it is large. Call it with no lock held.
    pub(crate) fn free(&self, value: Option<Value>) {
        match value {
            Some(value) if value.memory_bytes() >= LARGE_BYTES => self.later(Garbage::Value(value)),
            small => drop(small),
        }
    }

    /// Frees it on the other thread.
    pub(crate) fn later(&self, garbage: Garbage) {
        let mut sender = self.0.lock();
        let begin = || {
            let (sender, receiver) = channel::<Garbage>();
            let freeing = move || {
                for garbage in receiver {
                    let was_all = matches!(garbage, Garbage::All(_));
                    drop(garbage);
                    // Names created meanwhile lie between the freed ones and would keep their memory.
                    if was_all {
                        mayhap::give_memory_back();
                    }
                }
            };
            thread::Builder::new().name("free".into()).spawn(freeing).ok().map(|_| sender)
        };
        if sender.is_none() {
            *sender = begin();
        }
        // Without a thread it is dropped here.
        if let Some(sender) = &*sender {
            let _ = sender.send(garbage);
        }
    }
}
