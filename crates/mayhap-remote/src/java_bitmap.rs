//! A string of bits in a Redis that programs in Java drive with `SETBIT` and `GETBIT`: what Redisson's filters and those made by hand share.
//!
//! ```text
//! NAME   bit i is byte i/8, mask 80 >> i % 8
//! look   BITFIELD_RO NAME GET u1 a GET u1 b …           one request for an item, whatever its number of bits
//! set    EVAL "if it is ready then BITFIELD NAME SET u1 a 1 …"    one for hundreds of items, which nobody gets in between of
//! ```
//!
//! CPU time of a Redis 7.0 for an item of 7 bits, in a bitmap of 8 MB, 100 items at once (microseconds): 7 × `GETBIT` 3.6, one
//! `BITFIELD_RO` for each item 2.3, one for all of them 2.8, the same in a script 5.4; 7 × `SETBIT` 3.7. Redisson's own script for each item
//! takes 7.8. So looking goes without a script. Adding pays for one: bits that are set in a bitmap which is gone would make another of
//! this name, with nearly nothing in it.

use redis::Value;

use crate::{Access, Added, Answer, Link, RemoteError, Request};

/// How many items go out in one batch, with what tells whether they may be believed.
pub(crate) const AT_ONCE: usize = 1000;
/// Lua hands no more than 8000 words on to a command.
const SCRIPT_WORDS: usize = 7_600;
/// `SET u1 position 1`.
const WORDS_PER_BIT: usize = 4;
/// A string in Redis has no bit behind this one.
pub(crate) const LAST_BIT: u64 = u32::MAX as u64;

/// How to look at several keys, or at one several times, so that the answers go together: at the master, for what one replica says need not go
/// with what another one does.
pub(crate) const TOGETHER: Access = Access::ReadLatest;

/// The request for the bits at these positions.
pub(crate) fn look(name: &str, positions: impl IntoIterator<Item = u64>, access: Access) -> Request {
    let mut command = redis::cmd("BITFIELD_RO");
    command.arg(name);
    for position in positions {
        command.arg("GET").arg("u1").arg(position);
    }
    Request::whole(command, name.as_bytes(), access)
}

/// The request for how many bytes there are: none, if there is no such key.
pub(crate) fn len(name: &str, access: Access) -> Request {
    let mut command = redis::cmd("STRLEN");
    command.arg(name);
    Request::whole(command, name.as_bytes(), access)
}

/// The bits that a server answered with; it has been asked for so many.
pub(crate) fn bits(value: &Value, expected: usize) -> Result<impl Iterator<Item = bool> + '_, RemoteError> {
    let odd = || RemoteError::reply("as many bits as were asked for", value);
    let Value::Array(values) = value else { return Err(odd()) };
    if values.len() != expected || values.iter().any(|bit| !matches!(bit, Value::Int(0 | 1))) {
        return Err(odd());
    }
    Ok(values.iter().map(|bit| *bit == Value::Int(1)))
}

/// A number that a server answered with.
pub(crate) fn number(value: &Value) -> Result<u64, RemoteError> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
    .ok_or_else(|| RemoteError::reply("a number", value))
}

/// Answers as far as they are known, the last reason of those that are not, and room for the others.
#[derive(Debug, Default)]
pub(crate) struct Gathered<A> {
    pub(crate) given: Vec<A>,
    pub(crate) error: Option<RemoteError>,
}

impl<A: Clone> Gathered<A> {
    pub(crate) fn push(&mut self, answer: Result<A, RemoteError>, not_ready: A) {
        self.given.push(answer.unwrap_or_else(|cause| {
            self.error = Some(cause);
            not_ready
        }));
    }

    /// Nothing more is to be had.
    pub(crate) fn give_up(&mut self, len: usize, not_ready: A, cause: RemoteError) {
        self.given.resize(len, not_ready);
        self.error = Some(cause);
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.given.extend(other.given);
        self.error = other.error.or(self.error.take());
    }
}

/// *Mayhap*, if all of its bits are set.
pub(crate) fn answer(mut bits: impl Iterator<Item = bool>) -> Answer {
    if bits.all(|bit| bit) { Answer::Mayhap } else { Answer::Absent }
}

/// Bits are set only if a script says that they may.
pub(crate) struct Guarded<'a> {
    /// Lua: `KEYS[1]` is the bitmap, and the words of `BITFIELD` stand behind `words`. It answers nil if it set nothing.
    pub(crate) script: &'static str,
    pub(crate) keys: &'a [&'a str],
    pub(crate) words: &'a [String],
}

impl Guarded<'_> {
    /// Sets the bits of all items, each of which has `probes` of the positions. `None`: the script did not want to, at least for some.
    pub(crate) async fn set(&self, link: &Link, probes: usize, positions: &[u64]) -> Option<Gathered<Added>> {
        let items_at_once = (SCRIPT_WORDS / (WORDS_PER_BIT * probes)).max(1);
        let groups = positions.chunks(items_at_once * probes);
        let replies = link.ask(groups.clone().map(|group| self.request(group)).collect()).await;
        let mut gathered = Gathered { given: Vec::with_capacity(positions.len() / probes), error: None };
        for (group, reply) in groups.zip(replies) {
            let end = gathered.given.len() + group.len() / probes;
            let old = match &reply {
                Ok(Value::Nil) => return None,
                Ok(value) => bits(value, group.len()),
                Err(cause) => Err(cause.clone()),
            };
            match old.map(Iterator::collect::<Vec<bool>>) {
                Ok(old) => gathered.given.extend(old.chunks(probes).map(added)),
                Err(cause) => gathered.give_up(end, Added::NotReady, cause),
            }
        }
        Some(gathered)
    }

    fn request(&self, positions: &[u64]) -> Request {
        let mut command = redis::cmd("EVAL");
        command.arg(self.script).arg(self.keys.len()).arg(self.keys).arg(self.words);
        for position in positions {
            command.arg("SET").arg("u1").arg(position).arg(1);
        }
        Request::whole(command, self.keys[0].as_bytes(), Access::Write)
    }
}

fn added(old: &[bool]) -> Added {
    if old.iter().all(|&bit| bit) { Added::Mayhap } else { Added::New }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bits_are_taken_for_bits() {
        let reply = |numbers: &[i64]| Value::Array(numbers.iter().map(|&bit| Value::Int(bit)).collect());
        assert!(bits(&reply(&[1, 0, 1]), 3).unwrap().eq([true, false, true]));
        for odd in [reply(&[1, 0]), reply(&[1, 0, 2]), reply(&[1, 0, -1]), Value::Nil, Value::Int(1)] {
            assert!(matches!(bits(&odd, 3).map(Iterator::count), Err(RemoteError::Reply { .. })), "{odd:?}");
        }
        assert!(number(&Value::Int(-1)).is_err() && number(&Value::Okay).is_err());
        assert_eq!((answer([true; 3].into_iter()), added(&[true; 3])), (Answer::Mayhap, Added::Mayhap));
        assert_eq!((answer([true, false].into_iter()), added(&[true, false])), (Answer::Absent, Added::New));
    }
}
