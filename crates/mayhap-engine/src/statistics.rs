//! Statistics that can be read at any time without blocking other threads.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use mayhap_command::{Command, table};
use parking_lot::Mutex;

use crate::entry::Entry;
use crate::gate::{Apart, LANES, lane};

/// More than the number of types of values.
const TYPES: usize = 16;

/// Running totals. Threads count on cache lines of their own; readers add them up.
#[derive(Debug)]
pub struct Statistics {
    lanes: Box<[Apart<Lane>]>,
    by_type: [OfType; TYPES],
    /// Counts that do not fit into the counters of single entries, by the address of the entry.
    large: Mutex<HashMap<usize, (u64, u64)>>,
    large_len: AtomicUsize,
}

#[derive(Debug)]
struct Lane {
    hits: AtomicU64,
    misses: AtomicU64,
    /// Wraps around: items that one thread added may be removed by another.
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

/// The figures of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandTotals {
    /// The row of the table.
    pub command: &'static str,
    /// Calls that were run.
    pub calls: u64,
    /// Calls that were refused before they ran.
    pub rejected: u64,
    /// Calls that ran and were refused.
    pub failed: u64,
    /// The time of all calls together.
    pub nanos: u64,
}

/// The figures of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeTotals {
    /// The name in replies of `TYPE`.
    pub type_name: &'static str,
    /// The number of names of this type.
    pub names: u64,
    /// Their memory in bytes.
    pub memory_bytes: u64,
}

/// The sums of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of names with a value.
    pub names: u64,
    /// The number of names with a deadline.
    pub expiring: u64,
    /// Items in all filters.
    pub items: u64,
    /// Memory of all filters and their names in bytes.
    pub memory_bytes: u64,
    /// Lookups with the answer *maybe*.
    pub hits: u64,
    /// Lookups with the answer *no*.
    pub misses: u64,
    /// The number of names that have expired.
    pub expired: u64,
    /// The number of changes of values and deadlines. An earlier snapshot does not contain later changes.
    pub changes: u64,
    /// The number of names evicted for lack of memory: always 0.
    pub evicted: u64,
    /// The figures by type, for types that have occurred.
    pub by_type: Vec<TypeTotals>,
}

impl Totals {
    /// The number of names with lost data.
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

/// The figures of one name in the totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// Zero for a name without a value.
    pub(crate) type_name: Option<&'static str>,
    pub(crate) memory_bytes: u64,
    pub(crate) items: u64,
}

impl Statistics {
    fn lane(&self) -> &Lane {
        &self.lanes[lane()].0
    }

    /// Counts `calls` calls of a command that together took `nanos`; `failed` of them were refused.
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

    /// Counts a command that was refused before it ran: wrong number of words, no permission, no memory.
    pub fn rejected(&self, command: &'static Command) {
        if let Some(of) = table::number(command).and_then(|number| self.lane().commands.get(number)) {
            of.rejected.fetch_add(1, Relaxed);
        }
    }

    /// The figures of all commands that were called.
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

    /// Resets the counts of events; the figures of current names stay. For `CONFIG RESETSTAT`.
    pub fn reset(&self) {
        for Apart(lane) in &self.lanes {
            let counters = [&lane.hits, &lane.misses, &lane.expired];
            let of_commands =
                lane.commands.iter().flat_map(|of| [&of.calls, &of.rejected, &of.failed, &of.nanos]);
            counters.into_iter().chain(of_commands).for_each(|counter| counter.store(0, Relaxed));
        }
    }

    /// Counts lookups.
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

    /// The number of lookups in `entry` with the answers *maybe* and *no*.
    pub(crate) fn answers_of(&self, entry: &Entry) -> (u64, u64) {
        let (hits, misses) = entry.counted();
        let large = match self.large_len.load(Relaxed) {
            0 => (0, 0),
            _ => self.large.lock().get(&entry.address()).copied().unwrap_or_default(),
        };
        (hits.saturating_add(large.0), misses.saturating_add(large.1))
    }

    /// As [`answers_of`](Self::answers_of), and removes them from the entry, which the caller holds
    /// exclusively.
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

    /// Counts new items in a filter that is shared.
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

    /// Updates the totals after the figures of a name changed.
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

    /// The index of a type. The first use of a type takes a free one.
    fn of_type(&self, type_name: &'static str) -> Option<&OfType> {
        self.by_type.iter().find(|of| *of.name.get_or_init(|| type_name) == type_name)
    }

    /// Resets the figures after everything was removed. No other thread may be at work.
    pub(crate) fn forget_all(&self) {
        for of in &self.by_type {
            of.names.store(0, Relaxed);
            of.memory_bytes.store(0, Relaxed);
        }
        self.lanes.iter().for_each(|lane| lane.0.items.store(0, Relaxed));
        self.large.lock().clear();
        self.large_len.store(0, Relaxed);
    }

    /// The sums. Figures that are not known here are 0.
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
            // Other threads count meanwhile, so a sum may miss additions whose removal it has.
            items: (sum(|lane| &lane.items) as i64).max(0) as u64,
            hits: sum(|lane| &lane.hits),
            misses: sum(|lane| &lane.misses),
            expired: sum(|lane| &lane.expired),
            changes: sum(|lane| &lane.changes),
            by_type,
            ..Totals::default()
        }
    }

    /// The number of names with a value.
    pub(crate) fn names(&self) -> u64 {
        self.by_type.iter().map(|of| of.names.load(Relaxed)).sum()
    }
}
