//! Waits until replicas have the changes of a batch.
//!
//! ```text
//! … the batch │ SET {key}:mayhap-heard "" PX 1000 │ WAIT replicas 1000
//! ```
//!
//! `WAIT` waits for the last change of its own connection. For Valkey, and for Redis since 7.2, setting bits
//! that are already set is not a change. If another client has just inserted the same item, `WAIT` alone
//! would report immediately that all replicas have it, although none has. The `SET` is always a change, and a
//! replica that has it has everything before it.

use redis::{Cmd, Value};

use super::ask::{Outcome, REPLICAS_MS, outcome, too_few};
use super::slots::{slot_of, tag_of};
use crate::RemoteError;

/// The end of the extra key. No shard and no filter of ours has a key like this.
const SUFFIX: &str = ":mayhap-heard";
/// The extra key is not needed after the replicas have it.
const EXPIRY_MS: u64 = 1000;

/// The acknowledgement that a batch needs from replicas.
pub(super) struct ReplicaAck {
    key: Vec<u8>,
    is_asking: bool,
    replicas: u32,
}

impl ReplicaAck {
    /// Uses a key in the slot of `changed_key`, a key that the batch changes. `is_asking`: that request
    /// follows an `ASKING`.
    pub(super) fn new(changed_key: &[u8], is_asking: bool, replicas: u32) -> Self {
        Self { key: ack_key(changed_key), is_asking, replicas }
    }

    /// The commands to send after the batch.
    pub(super) fn commands(&self) -> impl Iterator<Item = Cmd> {
        let change = redis::cmd("SET").arg(&self.key).arg("").arg("PX").arg(EXPIRY_MS).take();
        let wait = redis::cmd("WAIT").arg(self.replicas).arg(REPLICAS_MS).take();
        self.is_asking.then(|| redis::cmd("ASKING")).into_iter().chain([change, wait])
    }

    /// Removes the replies to its commands from the end of `answers`. Returns `None` if enough replicas
    /// acknowledged, else the outcome for requests that ran.
    pub(super) fn check(&self, answers: &mut Vec<Value>) -> Option<Outcome> {
        let (waited, changed) = (answers.pop(), answers.pop());
        if self.is_asking {
            answers.pop();
        }
        match outcome(changed.unwrap_or(Value::Nil)) {
            Outcome::Done(Ok(Value::Okay)) => too_few(waited.as_ref(), self.replicas).map(Outcome::Later),
            Outcome::Done(Err(RemoteError::Refused { code, text })) => {
                let key = String::from_utf8_lossy(&self.key);
                let text = format!("{text} (at {key}, which is written for replicas to acknowledge)");
                Some(Outcome::Done(Err(RemoteError::Refused { code, text })))
            }
            // The slot is migrating. The next attempt may use a key in another slot.
            _ => too_few(None, self.replicas).map(Outcome::Later),
        }
    }
}

/// An unused key in the slot of `key`.
fn ack_key(key: &[u8]) -> Vec<u8> {
    if tag_of(key).len() < key.len() {
        return [key, SUFFIX.as_bytes()].concat();
    }
    if !key.contains(&b'}') {
        return [b"{", key, b"}", SUFFIX.as_bytes()].concat();
    }
    // The key cannot be a hash tag. Try numbers until one is in the slot, about 16 000 times.
    let numbered = |number: u32| [key, SUFFIX.as_bytes(), b":", number.to_string().as_bytes()].concat();
    (0..10_000_000)
        .map(numbered)
        .find(|changed_key| slot_of(changed_key) == slot_of(key))
        .unwrap_or_else(|| numbered(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extra_key_is_in_the_slot_of_the_key() {
        for (key, expected) in [
            ("{seen:0421}", "{seen:0421}:mayhap-heard"),
            ("{seen:0421}:g7", "{seen:0421}:g7:mayhap-heard"),
            ("seen", "{seen}:mayhap-heard"),
            ("a{b", "{a{b}:mayhap-heard"),
            ("a}{b}", "a}{b}:mayhap-heard"),
        ] {
            assert_eq!(ack_key(key.as_bytes()), expected.as_bytes());
            assert_eq!(slot_of(expected.as_bytes()), slot_of(key.as_bytes()), "{key}");
        }
        for odd in ["a}b", "{}seen", "}", "a}b{c", "{}{x}"] {
            let changed_key = ack_key(odd.as_bytes());
            assert_eq!(slot_of(&changed_key), slot_of(odd.as_bytes()), "{odd}");
            assert!(changed_key.starts_with(odd.as_bytes()) && changed_key.len() < odd.len() + 24, "{odd}");
        }
    }

    #[test]
    fn unacknowledged_changes_do_not_count() {
        let error = |line: &str| redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        let checked = |is_asking, answers: &[Value]| {
            let mut answers = answers.to_vec();
            let outcome = ReplicaAck::new(b"seen", is_asking, 2).check(&mut answers);
            assert_eq!(answers, [Value::Int(7)], "the reply of the batch itself");
            outcome
        };
        assert!(checked(false, &[Value::Int(7), Value::Okay, Value::Int(2)]).is_none());
        assert!(checked(true, &[Value::Int(7), Value::Okay, Value::Okay, Value::Int(3)]).is_none());
        let moved = error("ASK 7 127.0.0.1:7000");
        for (changed, waited) in [(Value::Okay, 1), (moved, 2), (error("LOADING"), 2), (Value::Nil, 2)] {
            let outcome = checked(false, &[Value::Int(7), changed, Value::Int(waited)]);
            assert!(matches!(outcome, Some(Outcome::Later(_))), "{outcome:?}");
        }
        let outcome = checked(false, &[Value::Int(7), error("NOPERM no"), Value::Int(2)]);
        assert!(matches!(outcome, Some(Outcome::Done(Err(RemoteError::Refused { .. })))), "{outcome:?}");
    }
}
