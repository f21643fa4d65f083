//! The log as the engine uses it: what is appended, and what a snapshot needs to know about it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use mayhap::ItemHash;
use mayhap_command::{Environment, Refusal, Request};
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use crate::engine::Engine;
use crate::entry::Entry;
use crate::environment::Moment;
use crate::log::{Log, Refused};
use crate::record;

/// The number of parts that names are divided into. Each part is a file of a snapshot.
pub(crate) const PARTS: usize = 64;

/// Returns the part of a name. It is stored in files and never changes.
pub(crate) fn part_of(name: &[u8]) -> usize {
    (xxh3_64(name) >> (u64::BITS - PARTS.trailing_zeros())) as usize
}

/// A deliberate fault of the engine, for tests that must detect it.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoilt {
    /// Items are not logged.
    Items,
    /// Requests of this command are not logged.
    Words(&'static str),
    /// Expiries and deletions are not logged.
    Removed,
    /// A snapshot does not write late names.
    Late,
    /// The log is replayed regardless of the snapshot's numbers.
    Numbers,
    /// A snapshot ignores changes of a value that it is copying.
    Copying,
    /// A snapshot keeps the files of parts that changed.
    Parts,
}

#[cfg(test)]
impl Engine {
    pub(crate) fn is_spoilt(&self, how: Spoilt) -> bool {
        *self.spoilt.lock() == Some(how)
    }
}

/// The log, and the parts that changed since the last snapshot.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) log: Arc<Log>,
    /// Parts that the next snapshot must write again. They are set inside the gate, and taken while it is
    /// closed.
    changed: [AtomicBool; PARTS],
    late: Late,
}

/// Late names: those that a running snapshot must write again at its end because their values were made from
/// other names.
#[derive(Debug, Default)]
struct Late {
    wanted: AtomicBool,
    names: Mutex<BTreeSet<Box<[u8]>>>,
}

impl Journal {
    pub(crate) fn new(log: Arc<Log>) -> Self {
        Self { log, changed: [const { AtomicBool::new(false) }; PARTS], late: Late::default() }
    }

    /// Records that `name` is about to change.
    pub(crate) fn mark(&self, name: &[u8]) {
        let changed = &self.changed[part_of(name)];
        // Usually set already. Then a load suffices, and threads do not contend for the cache line.
        if !changed.load(Relaxed) {
            changed.store(true, Relaxed);
        }
    }

    pub(crate) fn mark_all(&self) {
        self.changed.iter().for_each(|changed| changed.store(true, Relaxed));
    }

    /// Takes the set of changed parts. The gate is closed.
    pub(crate) fn take_changed(&self) -> [bool; PARTS] {
        std::array::from_fn(|part| self.changed[part].swap(false, Relaxed))
    }

    /// Marks these parts as changed again.
    pub(crate) fn mark_parts(&self, parts: &[bool; PARTS]) {
        for (changed, again) in self.changed.iter().zip(parts) {
            changed.fetch_or(*again, Relaxed);
        }
    }

    /// Begins to collect late names.
    pub(crate) fn begin_late(&self) {
        self.late.names.lock().clear();
        self.late.wanted.store(true, SeqCst);
    }

    /// Takes a late name. `None` if there are no more; then it stops collecting.
    pub(crate) fn next_late(&self) -> Option<Box<[u8]>> {
        let mut names = self.late.names.lock();
        let name = names.pop_first();
        if name.is_none() {
            self.late.wanted.store(false, SeqCst);
        }
        name
    }

    /// Stops collecting late names.
    pub(crate) fn end_late(&self) {
        self.late.wanted.store(false, SeqCst);
        self.late.names.lock().clear();
    }

    /// Records that the value of `name` was made from other names, by a record that has its number. The locks
    /// of all of them are held.
    pub(crate) fn made_of_others(&self, name: &[u8]) {
        if self.late.wanted.load(SeqCst) {
            let mut names = self.late.names.lock();
            if self.late.wanted.load(SeqCst) {
                names.insert(name.into());
            }
        }
    }
}

impl Engine {
    /// The log, after [`recover`](Self::recover) has opened it.
    #[must_use]
    pub fn log(&self) -> Option<&Arc<Log>> {
        self.journal.get().map(|journal| &journal.log)
    }

    /// Checks that changes are allowed.
    pub(crate) fn may_change(&self) -> Result<(), Refusal> {
        let Some(journal) = self.journal.get() else { return Ok(()) };
        journal.log.may_change().map_err(|refused| match refused {
            Refused::NoSpace => Refusal::NoSpace,
            _ => Refusal::DiskFailed,
        })
    }

    /// Logs that `request` changed the values of `names`, which the caller holds exclusively. Returns the
    /// number of the record, if there is a log.
    pub(crate) fn log_words(
        &self,
        names: &[&[u8]],
        request: &Request<'_>,
        left_out: &[usize],
        moment: &Moment<'_>,
    ) -> Option<u64> {
        let journal = self.journal.get()?;
        names.iter().for_each(|name| journal.mark(name));
        let bytes = record::words(moment.now_ms(), &moment.take_drawn(), request.words, left_out);
        #[cfg(test)]
        let bytes = match self.is_spoilt(Spoilt::Words(request.command.name)) {
            true => record::parameters(&self.parameters(), 0),
            false => bytes,
        };
        let number = journal.log.append(&bytes);
        moment.log(number);
        Some(number)
    }

    /// Logs that these new items were inserted into the filter of `entry`. The caller holds at least a shared
    /// lock.
    pub(crate) fn log_items(
        &self,
        entry: &Entry,
        hashes: &[ItemHash],
        buffer: &mut Vec<u8>,
        moment: &Moment<'_>,
    ) -> Option<u64> {
        let journal = self.journal.get()?;
        journal.mark(entry.name());
        record::items(entry.name(), hashes, buffer);
        #[cfg(test)]
        if self.is_spoilt(Spoilt::Items) {
            record::items(entry.name(), &[], buffer);
        }
        let number = journal.log.append(buffer);
        // Free the memory of a huge batch soon.
        buffer.clear();
        buffer.shrink_to(1 << 20);
        moment.log(number);
        Some(number)
    }

    /// Logs that a name was removed, which the caller holds exclusively. No request waits for the record of
    /// an expired name: there is no `moment` then.
    pub(crate) fn log_removed(&self, name: &[u8], moment: Option<&Moment<'_>>) -> Option<u64> {
        let journal = self.journal.get()?;
        journal.mark(name);
        let bytes = record::removed(name);
        #[cfg(test)]
        let bytes = match self.is_spoilt(Spoilt::Removed) {
            true => record::parameters(&self.parameters(), 0),
            false => bytes,
        };
        let number = journal.log.append(&bytes);
        if let Some(moment) = moment {
            moment.log(number);
        }
        Some(number)
    }

    /// Logs that everything was removed. The gate is closed.
    pub(crate) fn log_flush(&self, request: &Request<'_>, moment: &Moment<'_>) {
        if let Some(journal) = self.journal.get() {
            journal.mark_all();
            self.log_words(&[], request, &[], moment);
        }
    }

    /// Records that the appended record was about a name made from others.
    pub(crate) fn log_made_of_others(&self, name: &[u8]) {
        #[cfg(test)]
        if self.is_spoilt(Spoilt::Late) {
            return;
        }
        if let Some(journal) = self.journal.get() {
            journal.made_of_others(name);
        }
    }

    /// Begins a group: records until it is dropped are in the log all or none. The gate is closed.
    pub(crate) fn log_together(&self) -> Option<Group<'_>> {
        let log = self.log()?;
        log.begin_group();
        Some(Group(log))
    }
}

/// A group of records that are in the log all or none.
pub(crate) struct Group<'a>(&'a Log);

impl Drop for Group<'_> {
    fn drop(&mut self) {
        self.0.end_group();
    }
}

/// The entry that a snapshot is copying piece by piece, and whether a change has spoiled the copy. Inserts
/// into a Bloom filter do not.
#[derive(Debug, Default)]
pub(crate) struct Copying {
    /// Its address; 0 if there is none.
    address: AtomicUsize,
    spoiled: AtomicBool,
}

impl Copying {
    /// The caller holds the entry exclusively.
    pub(crate) fn begin(&self, entry: &Entry) {
        self.spoiled.store(false, Relaxed);
        self.address.store(entry.address(), SeqCst);
    }

    /// Records that `entry`, which the caller holds exclusively, was changed.
    pub(crate) fn changed(&self, entry: &Entry) {
        if self.address.load(SeqCst) == entry.address() {
            self.spoiled.store(true, SeqCst);
        }
    }

    /// The caller holds at least a shared lock of the entry.
    pub(crate) fn is_spoiled(&self) -> bool {
        self.spoiled.load(SeqCst)
    }

    pub(crate) fn end(&self) {
        self.address.store(0, SeqCst);
    }
}
