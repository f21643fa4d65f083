//! How replicas are made to say that they have what a batch changed.
//!
//! ```text
//! … the batch │ SET {key}:mayhap-heard "" PX 1000 │ WAIT replicas 1000
//! ```
//!
//! `WAIT` waits for the last change of its own connection. To Valkey, and to Redis since 7.2, setting bits that are set is no change, so who adds
//! what somebody else has just added would be told at once that all replicas have it, and none has. Whatever came before the `SET` is there where that is.

use redis::{Cmd, Value};

use super::ask::{Fate, REPLICAS_MS, fate, too_few};
use super::slots::{slot_of, tag_of};
use crate::RemoteError;

/// No shard and no filter of ours is called so.
const SUFFIX: &str = ":mayhap-heard";
/// It is of no use once it was heard of.
const EXPIRY_MS: u64 = 1000;

/// What replicas must hear of before a batch is done.
pub(super) struct Heard {
    key: Vec<u8>,
    is_asking: bool,
    replicas: u32,
}

impl Heard {
    /// In the slot of `beside`, a key that the batch changes; `is_asking`: that one is sent behind an `ASKING`.
    pub(super) fn new(beside: &[u8], is_asking: bool, replicas: u32) -> Self {
        Self { key: key_beside(beside), is_asking, replicas }
    }

    /// What is sent behind the batch.
    pub(super) fn commands(&self) -> impl Iterator<Item = Cmd> {
        let change = redis::cmd("SET").arg(&self.key).arg("").arg("PX").arg(EXPIRY_MS).take();
        let wait = redis::cmd("WAIT").arg(self.replicas).arg(REPLICAS_MS).take();
        self.is_asking.then(|| redis::cmd("ASKING")).into_iter().chain([change, wait])
    }

    /// Takes the answers to its commands from behind those of the batch. `Some`: what becomes of what was done, but not heard of.
    pub(super) fn judge(&self, answers: &mut Vec<Value>) -> Option<Fate> {
        let (waited, changed) = (answers.pop(), answers.pop());
        if self.is_asking {
            answers.pop();
        }
        match fate(changed.unwrap_or(Value::Nil)) {
            Fate::Done(Ok(Value::Okay)) => too_few(waited.as_ref(), self.replicas).map(Fate::Later),
            Fate::Done(Err(RemoteError::Refused { code, text })) => {
                let key = String::from_utf8_lossy(&self.key);
                let text = format!("{text} (at {key}, which replicas are to hear of)");
                Some(Fate::Done(Err(RemoteError::Refused { code, text })))
            }
            // The slot is on its way, and another key may be in one that is not.
            _ => too_few(None, self.replicas).map(Fate::Later),
        }
    }
}

/// A key that is nobody's, in the slot of `key`.
fn key_beside(key: &[u8]) -> Vec<u8> {
    if tag_of(key).len() < key.len() {
        return [key, SUFFIX.as_bytes()].concat();
    }
    if !key.contains(&b'}') {
        return [b"{", key, b"}", SUFFIX.as_bytes()].concat();
    }
    // It can be no tag: then it is tried until one has the slot, some 16 000 times.
    let numbered = |number: u32| [key, SUFFIX.as_bytes(), b":", number.to_string().as_bytes()].concat();
    (0..10_000_000)
        .map(numbered)
        .find(|beside| slot_of(beside) == slot_of(key))
        .unwrap_or_else(|| numbered(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_replicas_hear_of_is_in_the_slot_of_the_key() {
        for (key, expected) in [
            ("{seen:0421}", "{seen:0421}:mayhap-heard"),
            ("{seen:0421}:g7", "{seen:0421}:g7:mayhap-heard"),
            ("seen", "{seen}:mayhap-heard"),
            ("a{b", "{a{b}:mayhap-heard"),
            ("a}{b}", "a}{b}:mayhap-heard"),
        ] {
            assert_eq!(key_beside(key.as_bytes()), expected.as_bytes());
            assert_eq!(slot_of(expected.as_bytes()), slot_of(key.as_bytes()), "{key}");
        }
        for odd in ["a}b", "{}seen", "}", "a}b{c", "{}{x}"] {
            let beside = key_beside(odd.as_bytes());
            assert_eq!(slot_of(&beside), slot_of(odd.as_bytes()), "{odd}");
            assert!(beside.starts_with(odd.as_bytes()) && beside.len() < odd.len() + 24, "{odd}");
        }
    }

    #[test]
    fn nothing_counts_that_was_not_heard_of() {
        let error = |line: &str| redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        let judged = |is_asking, answers: &[Value]| {
            let mut answers = answers.to_vec();
            let fate = Heard::new(b"seen", is_asking, 2).judge(&mut answers);
            assert_eq!(answers, [Value::Int(7)], "the batch's own");
            fate
        };
        assert!(judged(false, &[Value::Int(7), Value::Okay, Value::Int(2)]).is_none());
        assert!(judged(true, &[Value::Int(7), Value::Okay, Value::Okay, Value::Int(3)]).is_none());
        let moved = error("ASK 7 127.0.0.1:7000");
        for (changed, waited) in [(Value::Okay, 1), (moved, 2), (error("LOADING"), 2), (Value::Nil, 2)] {
            let fate = judged(false, &[Value::Int(7), changed, Value::Int(waited)]);
            assert!(matches!(fate, Some(Fate::Later(_))), "{fate:?}");
        }
        let fate = judged(false, &[Value::Int(7), error("NOPERM no"), Value::Int(2)]);
        assert!(matches!(fate, Some(Fate::Done(Err(RemoteError::Refused { .. })))), "{fate:?}");
    }
}
