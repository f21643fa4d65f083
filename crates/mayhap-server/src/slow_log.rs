//! `SLOWLOG`: slow requests.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use mayhap_command::Reply;
use parking_lot::Mutex;

/// The maximum number of words kept of a request.
const MOST_WORDS: usize = 32;
/// The maximum number of bytes kept of a word.
const MOST_BYTES: usize = 128;

/// Slow requests, the latest first. Requests that ran as one batch are timed as one: the one with the most
/// words stands for all of them.
#[derive(Debug)]
pub struct SlowLog {
    threshold_us: AtomicI64,
    most: AtomicUsize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    next: u64,
    entries: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    seconds: u64,
    micros: u64,
    words: Vec<Vec<u8>>,
    address: String,
    name: Vec<u8>,
}

impl Default for SlowLog {
    fn default() -> Self {
        Self { threshold_us: AtomicI64::new(10_000), most: AtomicUsize::new(128), kept: Mutex::default() }
    }
}

impl SlowLog {
    /// `slowlog-log-slower-than` in microseconds; negative: nothing is recorded.
    #[must_use]
    pub fn threshold_us(&self) -> i64 {
        self.threshold_us.load(Ordering::Relaxed)
    }

    /// Sets `slowlog-log-slower-than`.
    pub fn set_threshold_us(&self, micros: i64) {
        self.threshold_us.store(micros, Ordering::Relaxed);
    }

    /// `slowlog-max-len`.
    #[must_use]
    pub fn max_len(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Sets `slowlog-max-len`, and drops entries beyond it.
    pub fn set_max_len(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
        self.kept.lock().entries.truncate(most);
    }

    /// Whether a duration reaches the threshold.
    pub(crate) fn wants(&self, took: Duration) -> bool {
        let threshold = self.threshold_us();
        u128::try_from(threshold).is_ok_and(|threshold| took.as_micros() >= threshold)
    }

    pub(crate) fn add(&self, seconds: u64, took: Duration, words: &[&[u8]], address: &str, name: Vec<u8>) {
        let mut kept = self.kept.lock();
        let id = kept.next;
        kept.next += 1;
        kept.entries.push_front(Entry {
            id,
            seconds,
            micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            words: shortened(words),
            address: address.to_owned(),
            name,
        });
        kept.entries.truncate(self.max_len());
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.lock().entries.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all entries.
    pub fn reset(&self) {
        self.kept.lock().entries.clear();
    }

    /// The latest `most` entries, as in `SLOWLOG GET`.
    pub(crate) fn get(&self, most: usize) -> Reply {
        let kept = self.kept.lock();
        let entries = kept.entries.iter().take(most).map(|entry| {
            Reply::Array(vec![
                Reply::count(entry.id),
                Reply::count(entry.seconds),
                Reply::count(entry.micros),
                Reply::Array(entry.words.iter().map(|word| Reply::bulk(word.as_slice())).collect()),
                Reply::bulk(entry.address.as_str()),
                Reply::bulk(entry.name.as_slice()),
            ])
        });
        Reply::Array(entries.collect())
    }
}

/// Shortens a request, with Redis's words about the rest.
fn shortened(words: &[&[u8]]) -> Vec<Vec<u8>> {
    let kept = if words.len() > MOST_WORDS { MOST_WORDS - 1 } else { words.len() };
    let mut shortened: Vec<Vec<u8>> = words[..kept]
        .iter()
        .map(|word| match word.len().checked_sub(MOST_BYTES) {
            None | Some(0) => word.to_vec(),
            Some(more) => {
                let mut start = word[..MOST_BYTES].to_vec();
                start.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
                start
            }
        })
        .collect();
    if kept < words.len() {
        shortened.push(format!("... ({} more arguments)", words.len() - kept).into_bytes());
    }
    shortened
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_come_first_and_the_oldest_are_dropped() {
        let log = SlowLog::default();
        log.set_max_len(2);
        for word in [b"a", b"b", b"c"] {
            log.add(1, Duration::from_millis(20), &[word], "here", Vec::new());
        }
        assert_eq!(log.len(), 2);
        let Reply::Array(entries) = log.get(1) else { panic!() };
        let Reply::Array(entry) = &entries[0] else { panic!() };
        assert_eq!(
            entry[..4],
            [
                Reply::Integer(2),
                Reply::Integer(1),
                Reply::Integer(20_000),
                Reply::Array(vec![Reply::bulk("c")])
            ]
        );
        log.reset();
        assert!(log.is_empty());
    }

    #[test]
    fn a_negative_threshold_keeps_nothing_and_zero_keeps_everything() {
        let log = SlowLog::default();
        assert!(log.wants(Duration::from_millis(10)) && !log.wants(Duration::from_micros(9_999)));
        log.set_threshold_us(-1);
        assert!(!log.wants(Duration::MAX));
        log.set_threshold_us(0);
        assert!(log.wants(Duration::ZERO));
    }

    #[test]
    fn long_requests_are_shortened() {
        let long = vec![b'x'; 130];
        let mut words: Vec<&[u8]> = vec![b"w"; 33];
        words[0] = &long;
        let kept = shortened(&words);
        assert_eq!(kept.len(), 32);
        assert!(kept[0].ends_with(b"xx... (2 more bytes)"));
        assert_eq!(kept[31], b"... (2 more arguments)");
        assert_eq!(shortened(&words[1..]).len(), 32);
    }
}
