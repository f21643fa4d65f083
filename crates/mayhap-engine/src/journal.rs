//! The engine's side of the log: what is appended, and what a snapshot must know of it.

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

/// Names are in so many parts, each of which is a file of a snapshot.
pub(crate) const PARTS: usize = 64;

/// The part of a name. It is in files, and never changes.
pub(crate) fn part_of(name: &[u8]) -> usize {
    (xxh3_64(name) >> (u64::BITS - PARTS.trailing_zeros())) as usize
}

/// What a twin of the engine does wrong, for tests that must notice.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoilt {
    /// Items are not logged.
    Items,
    /// Nor are requests of this command.
    Words(&'static str),
    /// Nor what expires or is deleted.
    Removed,
    /// A snapshot does not write again what was made of others.
    Late,
    /// The log is played whatever the snapshot has seen.
    Numbers,
    /// A snapshot takes no notice of changes to what it is copying.
    Copying,
    /// A snapshot keeps parts that changed.
    Parts,
}

#[cfg(test)]
impl Engine {
    pub(crate) fn is_spoilt(&self, how: Spoilt) -> bool {
        *self.spoilt.lock() == Some(how)
    }
}

/// The log, and what changed since the last snapshot.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) log: Arc<Log>,
    /// Parts that the next snapshot has to write again. Whoever says so has passed the gate, and whoever takes it has closed it.
    changed: [AtomicBool; PARTS],
    late: Late,
}

/// Names that a snapshot which is being written must write again at its end, for what they hold came from other names.
#[derive(Debug, Default)]
struct Late {
    wanted: AtomicBool,
    names: Mutex<BTreeSet<Box<[u8]>>>,
}

impl Journal {
    pub(crate) fn new(log: Arc<Log>) -> Self {
        Self { log, changed: [const { AtomicBool::new(false) }; PARTS], late: Late::default() }
    }

    /// `name` is about to change.
    pub(crate) fn mark(&self, name: &[u8]) {
        let changed = &self.changed[part_of(name)];
        // Nearly always said already, and then nobody need fight for its line of memory.
        if !changed.load(Relaxed) {
            changed.store(true, Relaxed);
        }
    }

    pub(crate) fn mark_all(&self) {
        self.changed.iter().for_each(|changed| changed.store(true, Relaxed));
    }

    /// The parts that changed, which have not from now on. The gate is closed.
    pub(crate) fn take_changed(&self) -> [bool; PARTS] {
        std::array::from_fn(|part| self.changed[part].swap(false, Relaxed))
    }

    /// They are to be written after all.
    pub(crate) fn mark_parts(&self, parts: &[bool; PARTS]) {
        for (changed, again) in self.changed.iter().zip(parts) {
            changed.fetch_or(*again, Relaxed);
        }
    }

    /// From now on names that are made of others are remembered.
    pub(crate) fn begin_late(&self) {
        self.late.names.lock().clear();
        self.late.wanted.store(true, SeqCst);
    }

    /// Some name that must be written again. `None`: there is no more, and none is remembered from now on.
    pub(crate) fn next_late(&self) -> Option<Box<[u8]>> {
        let mut names = self.late.names.lock();
        let name = names.pop_first();
        if name.is_none() {
            self.late.wanted.store(false, SeqCst);
        }
        name
    }

    /// Remembers none any more.
    pub(crate) fn end_late(&self) {
        self.late.wanted.store(false, SeqCst);
        self.late.names.lock().clear();
    }

    /// What `name` holds was made of what others hold, by a record that has its number. Their locks are held.
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
    /// The log, once [`recover`](Self::recover) has opened it.
    #[must_use]
    pub fn log(&self) -> Option<&Arc<Log>> {
        self.journal.get().map(|journal| &journal.log)
    }

    /// May something be changed?
    pub(crate) fn may_change(&self) -> Result<(), Refusal> {
        let Some(journal) = self.journal.get() else { return Ok(()) };
        journal.log.may_change().map_err(|refused| match refused {
            Refused::NoSpace => Refusal::NoSpace,
            _ => Refusal::DiskFailed,
        })
    }

    /// Appends that `request` changed what `names` hold, all of which the caller has for itself. Which number did it get, if there is a log?
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

    /// Appends that these items, which were new, are in the filter that `entry` holds. The caller has at least a look at it.
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
        // A huge batch is over soon, and the memory of its record should be too.
        buffer.clear();
        buffer.shrink_to(1 << 20);
        moment.log(number);
        Some(number)
    }

    /// Appends that a name is gone, which the caller has for itself. Nobody waits for what expired to be safe: there is no `moment` then.
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

    /// Appends that everything is gone. The gate is closed.
    pub(crate) fn log_flush(&self, request: &Request<'_>, moment: &Moment<'_>) {
        if let Some(journal) = self.journal.get() {
            journal.mark_all();
            self.log_words(&[], request, &[], moment);
        }
    }

    /// What was appended was about a name that is made of others.
    pub(crate) fn log_made_of_others(&self, name: &[u8]) {
        #[cfg(test)]
        if self.is_spoilt(Spoilt::Late) {
            return;
        }
        if let Some(journal) = self.journal.get() {
            journal.made_of_others(name);
        }
    }

    /// Records until what is returned is dropped are in the log all or none. The gate is closed.
    pub(crate) fn log_together(&self) -> Option<Group<'_>> {
        let log = self.log()?;
        log.begin_group();
        Some(Group(log))
    }
}

/// Records that are in the log all or none.
pub(crate) struct Group<'a>(&'a Log);

impl Drop for Group<'_> {
    fn drop(&mut self) {
        self.0.end_group();
    }
}

/// The entry that a snapshot is copying piece by piece, and whether that was spoiled: by anything but items that go into a Bloom filter.
#[derive(Debug, Default)]
pub(crate) struct Copying {
    /// Its address; 0: none.
    address: AtomicUsize,
    spoiled: AtomicBool,
}

impl Copying {
    /// The caller has the entry for itself.
    pub(crate) fn begin(&self, entry: &Entry) {
        self.spoiled.store(false, Relaxed);
        self.address.store(entry.address(), SeqCst);
    }

    /// `entry`, which the caller has for itself, is not what it was.
    pub(crate) fn changed(&self, entry: &Entry) {
        if self.address.load(SeqCst) == entry.address() {
            self.spoiled.store(true, SeqCst);
        }
    }

    /// The caller has at least a look at the entry.
    pub(crate) fn is_spoiled(&self) -> bool {
        self.spoiled.load(SeqCst)
    }

    pub(crate) fn end(&self) {
        self.address.store(0, SeqCst);
    }
}
