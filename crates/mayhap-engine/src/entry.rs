//! One name and its value.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mayhap_command::Value;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use triomphe::ThinArc;

/// One name of the keyspace. It is reference-counted: threads keep it while they use it, so it outlives its
/// removal.
///
/// ```text
/// one allocation:  count 8 │ lock 8 │ value 16 │ number 8 │ times 8 │ hits 4 │ misses 4 │ length 8 │ name
/// ```
///
/// There may be a hundred million of them. Therefore deadlines, and counts beyond 32 bits, are stored
/// elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Entry(ThinArc<EntryHeader, u8>);

#[derive(Debug)]
struct EntryHeader {
    /// Locked shared by lookups and inserts into Bloom filters, exclusively by all other requests. `None`: a
    /// name without a filter, which is about to get one or has just lost it.
    value: RwLock<Option<Value>>,
    /// The value contains the changes of all log records about it below this number, and no others; see
    /// [`Entry::number`].
    number: AtomicU64,
    /// When it was created, in seconds since 1970.
    made_secs: AtomicU32,
    /// When it was last used, in seconds since the start of the engine, above two flag bits.
    used: AtomicU32,
    hits: AtomicU32,
    misses: AtomicU32,
}

/// The entry is no longer in the keyspace and must not be filled: look the name up again.
const UNLINKED: u32 = 1;
/// The entry has a deadline.
const EXPIRES: u32 = 2;
const FLAG_BITS: u32 = 2;

/// Memory of an entry apart from its name and value: the allocation, the header of the allocator, and its
/// slot in a segment.
pub(crate) const ENTRY_BYTES: u64 = (8 + size_of::<EntryHeader>() + 8 + 8 + 16) as u64;

/// The count from which on a counter is moved into the table of large counts.
const SPILL_AT: u32 = 1 << 31;

impl Entry {
    /// Creates an empty entry.
    pub(crate) fn new(name: &[u8], now: Now) -> Self {
        let header = EntryHeader {
            value: RwLock::new(None),
            number: AtomicU64::new(0),
            made_secs: AtomicU32::new(now.unix_secs()),
            used: AtomicU32::new(now.since_start_secs() << FLAG_BITS),
            hits: AtomicU32::new(0),
            misses: AtomicU32::new(0),
        };
        Self(ThinArc::from_header_and_slice(header, name))
    }

    fn header(&self) -> &EntryHeader {
        &self.0.header.header
    }

    /// The name.
    pub(crate) fn name(&self) -> &[u8] {
        &self.0.slice
    }

    /// Its address: the order in which several entries are locked, and the key in tables outside the
    /// keyspace.
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self.header()).addr()
    }

    /// Locks its value for shared use.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Option<Value>> {
        self.header().value.read()
    }

    /// As [`read`](Self::read), unless another thread holds it exclusively for longer than `patience`.
    pub(crate) fn read_within(&self, patience: Duration) -> Option<RwLockReadGuard<'_, Option<Value>>> {
        self.header().value.try_read_for(patience)
    }

    /// Locks its value exclusively.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Option<Value>> {
        self.header().value.write()
    }

    /// One more than the number of the last log record about it. The value contains the changes of all
    /// records about it below this number, and of none at or above, when no other thread is changing it.
    pub(crate) fn number(&self) -> u64 {
        self.header().number.load(Relaxed)
    }

    /// Records that a log record about it got this number. The caller holds at least a shared lock.
    pub(crate) fn log(&self, number: u64) {
        self.header().number.fetch_max(number + 1, Relaxed);
    }

    /// Whether it is in the keyspace. The caller holds a lock.
    pub(crate) fn is_linked(&self) -> bool {
        self.header().used.load(Relaxed) & UNLINKED == 0
    }

    /// Whether it has a deadline. The caller holds a lock.
    pub(crate) fn expires(&self) -> bool {
        self.header().used.load(Relaxed) & EXPIRES != 0
    }

    /// Marks it as removed from the keyspace. The caller holds it exclusively.
    pub(crate) fn set_unlinked(&self) {
        self.header().used.fetch_or(UNLINKED, Relaxed);
    }

    /// Sets or clears the flag for a deadline. The caller holds it exclusively.
    pub(crate) fn set_expires(&self, expires: bool) {
        match expires {
            true => self.header().used.fetch_or(EXPIRES, Relaxed),
            false => self.header().used.fetch_and(!EXPIRES, Relaxed),
        };
    }

    /// Records that it was used now. The flags cannot change meanwhile because the caller holds a lock.
    pub(crate) fn touch(&self, now: Now) {
        let used = &self.header().used;
        let before = used.load(Relaxed);
        let after = now.since_start_secs() << FLAG_BITS | before & (UNLINKED | EXPIRES);
        if after != before {
            used.store(after, Relaxed);
        }
    }

    /// Seconds since it was last used.
    pub(crate) fn idle_secs(&self, now: Now) -> u32 {
        now.since_start_secs().saturating_sub(self.header().used.load(Relaxed) >> FLAG_BITS)
    }

    /// Sets the time since its last use. The caller holds it exclusively.
    pub(crate) fn set_idle_secs(&self, now: Now, idle_secs: u32) {
        let flags = self.header().used.load(Relaxed) & (UNLINKED | EXPIRES);
        let used = now.since_start_secs().saturating_sub(idle_secs) << FLAG_BITS | flags;
        self.header().used.store(used, Relaxed);
    }

    /// When it was created, in seconds since 1970.
    pub(crate) fn made_secs(&self) -> u32 {
        self.header().made_secs.load(Relaxed)
    }

    /// Sets when its value was created.
    pub(crate) fn set_made_secs(&self, secs: u32) {
        self.header().made_secs.store(secs, Relaxed);
    }

    /// Counts answers. Counts that do not fit are passed to `spill`.
    pub(crate) fn count(&self, hits: u64, misses: u64, spill: impl FnOnce(u64, u64)) {
        let hits = add(&self.header().hits, hits);
        let misses = add(&self.header().misses, misses);
        if hits > 0 || misses > 0 {
            spill(hits, misses);
        }
    }

    /// The number of lookups with the answers *maybe* and *no*, without those in the table of large counts.
    pub(crate) fn counted(&self) -> (u64, u64) {
        (self.header().hits.load(Relaxed).into(), self.header().misses.load(Relaxed).into())
    }

    /// Takes the counts.
    pub(crate) fn take_counted(&self) -> (u64, u64) {
        (self.header().hits.swap(0, Relaxed).into(), self.header().misses.swap(0, Relaxed).into())
    }
}

/// Adds to a counter and returns how much must be counted elsewhere.
fn add(counter: &AtomicU32, more: u64) -> u64 {
    match u32::try_from(more) {
        Ok(0) => 0,
        // Leaves room for threads that add at the same time.
        Ok(more) if more < SPILL_AT / 128 => match counter.fetch_add(more, Relaxed) {
            before if before >= SPILL_AT => counter.swap(0, Relaxed).into(),
            _ => 0,
        },
        _ => more,
    }
}

impl PartialEq for Entry {
    /// Whether it is the same entry, not just one with the same name.
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address()
    }
}

/// The time as one request sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Now {
    /// Milliseconds since 1970.
    pub(crate) ms: u64,
    /// The same, when the engine was created.
    pub(crate) start_ms: u64,
}

impl Now {
    /// Seconds since 1970.
    pub(crate) fn unix_secs(self) -> u32 {
        u32::try_from(self.ms / 1_000).unwrap_or(u32::MAX)
    }

    /// Seconds since the start of the engine, in thirty bits, which are 34 years.
    fn since_start_secs(self) -> u32 {
        (self.ms.saturating_sub(self.start_ms) / 1_000).min(u64::from(u32::MAX >> FLAG_BITS)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_small_allocation() {
        assert_eq!(size_of::<EntryHeader>(), 48);
        assert_eq!(size_of::<Option<Entry>>(), 8);
    }

    #[test]
    fn counts_beyond_32_bits_are_spilled_and_none_is_lost() {
        let entry = Entry::new(b"a", Now { ms: 0, start_ms: 0 });
        let mut spilled = (0, 0);
        for _ in 0..1_000 {
            entry.count(1 << 23, 1, |hits, misses| spilled = (spilled.0 + hits, spilled.1 + misses));
        }
        entry.count(1 << 40, 0, |hits, misses| spilled = (spilled.0 + hits, spilled.1 + misses));
        let (hits, misses) = entry.counted();
        assert_eq!((hits + spilled.0, misses + spilled.1), (1_000 * (1 << 23) + (1 << 40), 1_000));
    }

    #[test]
    fn using_an_entry_keeps_its_flags() {
        let at = |ms| Now { ms, start_ms: 5_000 };
        let entry = Entry::new(b"a", at(5_000));
        entry.set_expires(true);
        entry.touch(at(9_999));
        assert!(entry.expires() && entry.is_linked());
        assert_eq!(entry.idle_secs(at(15_999)), 6);
        entry.set_unlinked();
        entry.touch(at(20_000));
        entry.set_expires(false);
        assert!(!entry.expires() && !entry.is_linked());
    }
}
