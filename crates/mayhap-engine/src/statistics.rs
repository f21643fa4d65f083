//! What happened so far, readable at any time without stopping anyone.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use mayhap_command::{Command, table};
use parking_lot::Mutex;

use crate::entry::Entry;
use crate::gate::{Apart, LANES, lane};

/// More than there are types of values.
const TYPES: usize = 16;

/// Running totals. Threads count on lines of memory of their own; who reads adds them up.
#[derive(Debug)]
pub struct Statistics {
    lanes: Box<[Apart<Lane>]>,
    by_type: [OfType; TYPES],
    /// What the counters of single entries could not hold, by the entry's address.
    large: Mutex<HashMap<usize, (u64, u64)>>,
    large_len: AtomicUsize,
}

#[derive(Debug)]
struct Lane {
    hits: AtomicU64,
    misses: AtomicU64,
    /// Wraps: items that one thread added may be removed by another.
    items: AtomicU64,
    expired: AtomicU64,
    changes: AtomicU64,
    commands: Box<[OfCommand]>,
}

#[derive(Debug, Default)]
struct OfType {
    name: OnceLock<&'static str>,
    names: AtomicU64,
    memory_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct OfCommand {
    calls: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
    nanos: AtomicU64,
}

/// What became of all calls of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandTotals {
    /// The row of the table.
    pub command: &'static str,
    /// Calls that were run.
    pub calls: u64,
    /// Calls that were refused before they were run.
    pub rejected: u64,
    /// Calls that were run and refused.
    pub failed: u64,
    /// How long they took together.
    pub nanos: u64,
}

/// What one type takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeTotals {
    /// What `TYPE` says.
    pub type_name: &'static str,
    /// Names that hold one.
    pub names: u64,
    /// Bytes they take.
    pub memory_bytes: u64,
}

/// The sums of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Names that hold something.
    pub names: u64,
    /// Names that expire some time.
    pub expiring: u64,
    /// Items in all filters.
    pub items: u64,
    /// Bytes of all filters and their names.
    pub memory_bytes: u64,
    /// Items asked about that got *mayhap*.
    pub hits: u64,
    /// Items asked about that got *no*.
    pub misses: u64,
    /// Names that expired.
    pub expired: u64,
    /// Changes of what names hold, and of when they expire: what a snapshot does not have that was taken before them.
    pub changes: u64,
    /// Names that were removed for want of memory: none ever is.
    pub evicted: u64,
    /// The same by type, for types that occurred.
    pub by_type: Vec<TypeTotals>,
}

impl Totals {
    /// Names of which data is lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.by_type.iter().find(|of| of.type_name == "lost").map_or(0, |of| of.names)
    }
}

impl Default for Statistics {
    fn default() -> Self {
        let lane = || Lane {
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            items: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            commands: table::all().map(|_| OfCommand::default()).collect(),
        };
        Self {
            lanes: (0..LANES).map(|_| Apart(lane())).collect(),
            by_type: std::array::from_fn(|_| OfType::default()),
            large: Mutex::default(),
            large_len: AtomicUsize::new(0),
        }
    }
}

/// What a name counts for in the totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// Nothing for a name that holds nothing.
    pub(crate) type_name: Option<&'static str>,
    pub(crate) memory_bytes: u64,
    pub(crate) items: u64,
}

impl Statistics {
    fn lane(&self) -> &Lane {
        &self.lanes[lane()].0
    }

    /// A command was run `calls` times, refused `failed` of them, and all took `nanos`.
    pub fn ran(&self, command: &'static Command, calls: u64, failed: u64, nanos: u64) {
        let Some(of) = table::number(command).and_then(|number| self.lane().commands.get(number)) else {
            return;
        };
        of.calls.fetch_add(calls, Relaxed);
        of.nanos.fetch_add(nanos, Relaxed);
        if failed > 0 {
            of.failed.fetch_add(failed, Relaxed);
        }
    }

    /// A command was refused before it was run: a wrong number of words, no right to it, no memory.
    pub fn rejected(&self, command: &'static Command) {
        if let Some(of) = table::number(command).and_then(|number| self.lane().commands.get(number)) {
            of.rejected.fetch_add(1, Relaxed);
        }
    }

    /// All commands that were called.
    #[must_use]
    pub fn commands(&self) -> Vec<CommandTotals> {
        let sum = |of: &dyn Fn(&OfCommand) -> &AtomicU64, number: usize| -> u64 {
            self.lanes.iter().map(|lane| of(&lane.0.commands[number]).load(Relaxed)).sum()
        };
        let totals = table::all().enumerate().map(|(number, command)| CommandTotals {
            command: command.name,
            calls: sum(&|of| &of.calls, number),
            rejected: sum(&|of| &of.rejected, number),
            failed: sum(&|of| &of.failed, number),
            nanos: sum(&|of| &of.nanos, number),
        });
        totals.filter(|totals| totals.calls + totals.rejected > 0).collect()
    }

    /// Forgets what happened; what is there stays counted. `CONFIG RESETSTAT`.
    pub fn reset(&self) {
        for Apart(lane) in &self.lanes {
            let counters = [&lane.hits, &lane.misses, &lane.expired];
            let of_commands =
                lane.commands.iter().flat_map(|of| [&of.calls, &of.rejected, &of.failed, &of.nanos]);
            counters.into_iter().chain(of_commands).for_each(|counter| counter.store(0, Relaxed));
        }
    }

    /// Items were asked about.
    pub(crate) fn answered(&self, entry: &Entry, hits: u64, misses: u64) {
        if hits == 0 && misses == 0 {
            return;
        }
        entry.count(hits, misses, |hits, misses| self.count_large(entry, hits, misses));
        let lane = self.lane();
        for (counter, more) in [(&lane.hits, hits), (&lane.misses, misses)] {
            if more > 0 {
                counter.fetch_add(more, Relaxed);
            }
        }
    }

    #[cold]
    pub(crate) fn count_large(&self, entry: &Entry, hits: u64, misses: u64) {
        let mut large = self.large.lock();
        let counted = large.entry(entry.address()).or_default();
        *counted = (counted.0.saturating_add(hits), counted.1.saturating_add(misses));
        self.large_len.store(large.len(), Relaxed);
    }

    /// Items asked about in `entry` that got *mayhap*, and those that got *no*.
    pub(crate) fn answers_of(&self, entry: &Entry) -> (u64, u64) {
        let (hits, misses) = entry.counted();
        let large = match self.large_len.load(Relaxed) {
            0 => (0, 0),
            _ => self.large.lock().get(&entry.address()).copied().unwrap_or_default(),
        };
        (hits.saturating_add(large.0), misses.saturating_add(large.1))
    }

    /// The same, taken away from the entry, which the caller has for itself.
    pub(crate) fn take_answers_of(&self, entry: &Entry) -> (u64, u64) {
        let (hits, misses) = entry.take_counted();
        if self.large_len.load(Relaxed) == 0 {
            return (hits, misses);
        }
        let mut large = self.large.lock();
        let counted = large.remove(&entry.address()).unwrap_or_default();
        self.large_len.store(large.len(), Relaxed);
        (hits.saturating_add(counted.0), misses.saturating_add(counted.1))
    }

    /// New items came to a filter that is shared.
    pub(crate) fn added(&self, items: u64) {
        if items > 0 {
            self.lane().items.fetch_add(items, Relaxed);
        }
    }

    pub(crate) fn changed(&self, changes: u64) {
        self.lane().changes.fetch_add(changes, Relaxed);
    }

    pub(crate) fn expired(&self) {
        self.lane().expired.fetch_add(1, Relaxed);
    }

    /// What a name counts for has changed.
    pub(crate) fn book(&self, before: Account, after: Account) {
        if before == after {
            return;
        }
        self.lane().items.fetch_add(after.items.wrapping_sub(before.items), Relaxed);
        let same = before.type_name == after.type_name;
        if let Some(of) = before.type_name.and_then(|name| self.of_type(name)) {
            of.memory_bytes.fetch_sub(before.memory_bytes, Relaxed);
            of.names.fetch_sub(u64::from(!same), Relaxed);
        }
        if let Some(of) = after.type_name.and_then(|name| self.of_type(name)) {
            of.memory_bytes.fetch_add(after.memory_bytes, Relaxed);
            of.names.fetch_add(u64::from(!same), Relaxed);
        }
    }

    /// The place of a type; the first one that sees it takes a free one.
    fn of_type(&self, type_name: &'static str) -> Option<&OfType> {
        self.by_type.iter().find(|of| *of.name.get_or_init(|| type_name) == type_name)
    }

    /// Everything is gone. Nobody else must be at work.
    pub(crate) fn forget_all(&self) {
        for of in &self.by_type {
            of.names.store(0, Relaxed);
            of.memory_bytes.store(0, Relaxed);
        }
        self.lanes.iter().for_each(|lane| lane.0.items.store(0, Relaxed));
        self.large.lock().clear();
        self.large_len.store(0, Relaxed);
    }

    /// The sums; what they do not know is 0.
    pub(crate) fn totals(&self) -> Totals {
        let sum = |of: fn(&Lane) -> &AtomicU64| {
            self.lanes.iter().fold(0, |sum: u64, lane| sum.wrapping_add(of(&lane.0).load(Relaxed)))
        };
        let of_type = |of: &OfType| {
            let memory_bytes = of.memory_bytes.load(Relaxed);
            Some(TypeTotals { type_name: of.name.get()?, names: of.names.load(Relaxed), memory_bytes })
        };
        let by_type: Vec<TypeTotals> = self.by_type.iter().map_while(of_type).collect();
        Totals {
            names: by_type.iter().map(|of| of.names).sum(),
            // Read while others count, a sum may be short of what was removed already.
            items: (sum(|lane| &lane.items) as i64).max(0) as u64,
            hits: sum(|lane| &lane.hits),
            misses: sum(|lane| &lane.misses),
            expired: sum(|lane| &lane.expired),
            changes: sum(|lane| &lane.changes),
            by_type,
            ..Totals::default()
        }
    }

    /// Names that hold something.
    pub(crate) fn names(&self) -> u64 {
        self.by_type.iter().map(|of| of.names.load(Relaxed)).sum()
    }
}
