//! `LATENCY`: slow operations and their times.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mayhap_command::Reply;
use parking_lot::Mutex;

/// The maximum number of samples per event.
const MOST: usize = 160;

/// Operations slower than the threshold, by event: `command`, `fast-command`.
#[derive(Debug, Default)]
pub struct Latency {
    /// In milliseconds; 0: nothing is recorded.
    threshold_ms: AtomicU64,
    events: Mutex<BTreeMap<&'static str, Event>>,
}

#[derive(Debug, Default)]
struct Event {
    /// Unix time in seconds, and duration in milliseconds.
    samples: VecDeque<(u64, u64)>,
    longest_ms: u64,
}

impl Latency {
    /// `latency-monitor-threshold` in milliseconds; 0: nothing is recorded.
    #[must_use]
    pub fn threshold_ms(&self) -> u64 {
        self.threshold_ms.load(Ordering::Relaxed)
    }

    /// Sets `latency-monitor-threshold`.
    pub fn set_threshold_ms(&self, millis: u64) {
        self.threshold_ms.store(millis, Ordering::Relaxed);
    }

    /// Whether a duration reaches the threshold.
    pub(crate) fn wants(&self, took: Duration) -> bool {
        let threshold = self.threshold_ms();
        threshold > 0 && took.as_millis() >= u128::from(threshold)
    }

    /// Records a sample. Of each second only the longest is kept.
    pub(crate) fn add(&self, event: &'static str, seconds: u64, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let mut events = self.events.lock();
        let event = events.entry(event).or_default();
        event.longest_ms = event.longest_ms.max(millis);
        match event.samples.back_mut() {
            Some((last, longest)) if *last == seconds => *longest = millis.max(*longest),
            _ => event.samples.push_back((seconds, millis)),
        }
        if event.samples.len() > MOST {
            event.samples.pop_front();
        }
    }

    pub(crate) fn latest(&self) -> Reply {
        let events = self.events.lock();
        let latest = events.iter().filter_map(|(name, event)| {
            let (seconds, millis) = event.samples.back()?;
            Some(Reply::Array(vec![
                Reply::bulk(*name),
                Reply::count(*seconds),
                Reply::count(*millis),
                Reply::count(event.longest_ms),
            ]))
        });
        Reply::Array(latest.collect())
    }

    pub(crate) fn history(&self, name: &[u8]) -> Reply {
        let events = self.events.lock();
        let event = events.iter().find(|(event, _)| event.as_bytes() == name);
        let samples = event.into_iter().flat_map(|(_, event)| &event.samples);
        let pair = |(seconds, millis): &(u64, u64)| {
            Reply::Array(vec![Reply::count(*seconds), Reply::count(*millis)])
        };
        Reply::Array(samples.map(pair).collect())
    }

    /// Drops these events, or all if none is named. Returns the number dropped.
    pub(crate) fn reset(&self, names: &[&[u8]]) -> usize {
        let mut events = self.events.lock();
        let before = events.len();
        events.retain(|name, _| !names.is_empty() && !names.contains(&name.as_bytes()));
        before - events.len()
    }

    pub(crate) fn doctor(&self) -> String {
        let threshold = self.threshold_ms();
        if threshold == 0 {
            return "Latency monitoring is off. CONFIG SET latency-monitor-threshold <milliseconds> turns it on.\n"
                .to_owned();
        }
        let events = self.events.lock();
        if events.is_empty() {
            return format!("Nothing took {threshold} ms or longer.\n");
        }
        let mut text = format!("Events that took {threshold} ms or longer:\n");
        for (name, event) in events.iter() {
            let count = event.samples.len();
            let sum: u64 = event.samples.iter().map(|(_, millis)| millis).sum();
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{name}: {count} samples, {} ms on average, {} ms at the most",
                sum / (count as u64).max(1),
                event.longest_ms
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_sample_of_a_second_is_kept_and_events_are_reset_by_name() {
        let latency = Latency::default();
        assert!(!latency.wants(Duration::MAX));
        latency.set_threshold_ms(5);
        assert!(latency.wants(Duration::from_millis(5)) && !latency.wants(Duration::from_millis(4)));
        for (seconds, millis) in [(1, 7), (1, 9), (1, 8), (2, 6)] {
            latency.add("command", seconds, Duration::from_millis(millis));
        }
        let pair = |a, b| Reply::Array(vec![Reply::Integer(a), Reply::Integer(b)]);
        assert_eq!(latency.history(b"command"), Reply::Array(vec![pair(1, 9), pair(2, 6)]));
        assert_eq!(latency.history(b"other"), Reply::Array(Vec::new()));
        assert!(latency.doctor().contains("command: 2 samples, 7 ms on average, 9 ms at the most"));
        assert_eq!(latency.reset(&[b"other"]), 0);
        assert_eq!(latency.reset(&[]), 1);
        assert_eq!(latency.latest(), Reply::Array(Vec::new()));
    }
}
