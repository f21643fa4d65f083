//! Deadlines of names. They are stored outside the keyspace because most names never expire.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use hashbrown::HashTable;
use hashbrown::hash_table;
use parking_lot::Mutex;

use crate::entry::Entry;

const SHARDS: usize = 64;

/// Memory of a deadline in both tables.
pub(crate) const DEADLINE_BYTES: u64 = 64;

/// All deadlines, by name and in the order of time. A thread that changes the deadline of an entry holds the
/// entry exclusively.
#[derive(Debug)]
pub(crate) struct Expiries {
    shards: Box<[Shard]>,
    deadlines: AtomicU64,
    /// The shard where the next sweep begins.
    turn: AtomicUsize,
}

#[derive(Debug)]
struct Shard {
    /// The earliest deadline. It shows without a lock that nothing is due.
    earliest: AtomicU64,
    deadlines: Mutex<Deadlines>,
}

#[derive(Debug, Default)]
struct Deadlines {
    of: HashTable<Deadline>,
    in_order: BTreeMap<(u64, usize), Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    /// The address of the entry.
    address: usize,
    ms: u64,
}

/// Addresses are multiples of 16, and close together.
const fn spread(address: usize) -> u64 {
    (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

impl Expiries {
    pub(crate) fn new() -> Self {
        let shard = || Shard { earliest: AtomicU64::new(u64::MAX), deadlines: Mutex::default() };
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            deadlines: AtomicU64::new(0),
            turn: AtomicUsize::new(0),
        }
    }

    fn shard(&self, entry: &Entry) -> &Shard {
        &self.shards[(spread(entry.address()) >> 32) as usize % SHARDS]
    }

    /// The deadline of `entry`, if it has one. The caller holds a lock of the entry.
    pub(crate) fn get(&self, entry: &Entry) -> Option<u64> {
        if !entry.expires() {
            return None;
        }
        let address = entry.address();
        let deadlines = self.shard(entry).deadlines.lock();
        deadlines.of.find(spread(address), |deadline| deadline.address == address).map(|deadline| deadline.ms)
    }

    /// Whether the deadline of `entry` has passed. The caller holds a lock of the entry.
    pub(crate) fn is_due(&self, entry: &Entry, now_ms: u64) -> bool {
        entry.expires()
            && self.shard(entry).earliest.load(Relaxed) <= now_ms
            && self.get(entry).is_some_and(|deadline| deadline <= now_ms)
    }

    /// Sets or removes the deadline of `entry` and returns the previous one. The caller holds the entry
    /// exclusively.
    pub(crate) fn set(&self, entry: &Entry, deadline: Option<u64>) -> Option<u64> {
        if deadline.is_none() && !entry.expires() {
            return None;
        }
        let shard = self.shard(entry);
        let before = {
            let mut deadlines = shard.deadlines.lock();
            let before = deadlines.set(entry, deadline);
            let earliest = deadlines.in_order.first_key_value().map_or(u64::MAX, |((ms, _), _)| *ms);
            shard.earliest.store(earliest, Relaxed);
            before
        };
        entry.set_expires(deadline.is_some());
        match (before, deadline) {
            (None, Some(_)) => drop(self.deadlines.fetch_add(1, Relaxed)),
            (Some(_), None) => drop(self.deadlines.fetch_sub(1, Relaxed)),
            _ => {}
        }
        before
    }

    /// Returns at most `most` entries whose deadline has passed, beginning with the shard whose turn it is.
    pub(crate) fn due(&self, now_ms: u64, most: usize) -> Vec<Entry> {
        let turn = self.turn.fetch_add(1, Relaxed);
        let mut due = Vec::new();
        for number in 0..SHARDS {
            let shard = &self.shards[turn.wrapping_add(number) % SHARDS];
            if shard.earliest.load(Relaxed) > now_ms {
                continue;
            }
            let deadlines = shard.deadlines.lock();
            let past = deadlines.in_order.range(..=(now_ms, usize::MAX)).map(|(_, entry)| entry.clone());
            due.extend(past.take(most - due.len()));
            if due.len() >= most {
                break;
            }
        }
        due
    }

    /// The number of entries with a deadline.
    pub(crate) fn len(&self) -> u64 {
        self.deadlines.load(Relaxed)
    }

    /// Removes all deadlines. No other thread may be at work.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            *shard.deadlines.lock() = Deadlines::default();
            shard.earliest.store(u64::MAX, Relaxed);
        }
        self.deadlines.store(0, Relaxed);
    }
}

impl Deadlines {
    fn set(&mut self, entry: &Entry, deadline: Option<u64>) -> Option<u64> {
        let address = entry.address();
        let found = self.of.entry(
            spread(address),
            |deadline| deadline.address == address,
            |deadline| spread(deadline.address),
        );
        let before = match (found, deadline) {
            (hash_table::Entry::Occupied(mut found), Some(ms)) => {
                Some(std::mem::replace(&mut found.get_mut().ms, ms))
            }
            (hash_table::Entry::Occupied(found), None) => Some(found.remove().0.ms),
            (hash_table::Entry::Vacant(vacant), Some(ms)) => {
                vacant.insert(Deadline { address, ms });
                None
            }
            (hash_table::Entry::Vacant(_), None) => None,
        };
        if let Some(ms) = before {
            self.in_order.remove(&(ms, address));
        }
        if let Some(ms) = deadline {
            self.in_order.insert((ms, address), entry.clone());
        }
        if self.of.len() * 4 < self.of.capacity() {
            self.of.shrink_to(self.of.len() * 2, |deadline| spread(deadline.address));
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Now;

    #[test]
    fn due_names_come_first_and_both_tables_agree() {
        let expiries = Expiries::new();
        let entries: Vec<Entry> = (0..1_000_u32)
            .map(|number| Entry::new(&number.to_le_bytes(), Now { ms: 0, start_ms: 0 }))
            .collect();
        for (number, entry) in entries.iter().enumerate() {
            assert_eq!(expiries.set(entry, Some(number as u64)), None);
            assert_eq!(expiries.set(entry, Some(2 * number as u64)), Some(number as u64));
        }
        assert_eq!(expiries.len(), 1_000);
        assert_eq!(expiries.due(99, usize::MAX).len(), 50);
        assert_eq!(expiries.due(99, 7).len(), 7);
        assert!(expiries.is_due(&entries[49], 98) && !expiries.is_due(&entries[50], 99));
        for entry in &entries[..50] {
            assert!(expiries.set(entry, None).is_some());
            assert_eq!(expiries.get(entry), None);
        }
        assert!(expiries.due(99, usize::MAX).is_empty());
        assert_eq!(expiries.len(), 950);
        expiries.clear();
        assert!(expiries.due(u64::MAX, usize::MAX).is_empty());
    }
}
