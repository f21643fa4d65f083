//! Details of single names, for lists and pages.

use mayhap::Sampling;
use mayhap_command::{Description, Value, health};

use crate::engine::Engine;
use crate::entry::Entry;
use crate::glob::Pattern;

/// One name, with details of its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// The name.
    pub name: Vec<u8>,
    /// The type and properties of its value.
    pub description: Description,
    /// Memory of its value, its name and everything else that belongs to it.
    pub total_bytes: u64,
    /// Seconds since it was created.
    pub age_secs: u64,
    /// Seconds since it was last used.
    pub idle_secs: u64,
    /// Lookups with the answer *maybe*.
    pub hits: u64,
    /// Lookups with the answer *no*.
    pub misses: u64,
    /// Milliseconds until it expires, if it does.
    pub ttl_ms: Option<u64>,
}

/// A page of a list, with the cursor of the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The names.
    pub details: Vec<Detail>,
    /// The cursor of the next page; 0 if this is the last.
    pub next: u64,
}

impl Engine {
    /// Returns the details of one name, or nothing if it has no value. Does not count as use.
    #[must_use]
    pub fn detail(&self, name: &[u8]) -> Option<Detail> {
        let _open = self.gate.pass();
        let entry = self.find(name, self.now())?;
        self.detail_of(&entry, health::look)
    }

    /// Returns about `count` names that match `pattern`, from `cursor` on. The first cursor is 0, the next
    /// ones are in the pages. A walk to the end returns every name that exists all the time.
    #[must_use]
    pub fn page(&self, cursor: u64, count: u64, pattern: Option<&[u8]>) -> Page {
        let _open = self.gate.pass();
        let (pattern, glance) = (pattern.map(Pattern::new), health::glance());
        let (next, entries) = self.walk(cursor, count.max(1), pattern.as_ref(), self.now(), |_| true);
        Page { details: entries.iter().filter_map(|entry| self.detail_of(entry, |_| glance)).collect(), next }
    }

    /// Memory of the value of `name` in bytes; 0 if there is no value, or a long request holds it. Does not
    /// count as use.
    #[must_use]
    pub fn bytes_of(&self, name: &[u8]) -> u64 {
        self.look_at(name, Value::memory_bytes)
    }

    /// As [`bytes_of`](Self::bytes_of), or the memory the value would need if it had to grow now, if that is
    /// more.
    #[must_use]
    pub fn reach_of(&self, name: &[u8]) -> u64 {
        self.look_at(name, Value::reach_bytes)
    }

    fn look_at(&self, name: &[u8], look: impl FnOnce(&Value) -> u64) -> u64 {
        if self.busy.has(name) {
            return 0;
        }
        self.keyspace.get(name).and_then(|entry| entry.read().as_ref().map(look)).unwrap_or(0)
    }

    fn detail_of(&self, entry: &Entry, sampling: impl FnOnce(u64) -> Sampling) -> Option<Detail> {
        let now = self.now();
        let (description, total_bytes, deadline) = {
            let value = entry.read();
            let described = value.as_ref()?;
            let described = described.describe(sampling(described.memory_bytes()));
            let total_bytes = self.account(entry, value.as_ref()).memory_bytes;
            (described, total_bytes, self.expiries.get(entry))
        };
        let (hits, misses) = self.statistics.answers_of(entry);
        Some(Detail {
            name: entry.name().to_vec(),
            description,
            total_bytes,
            age_secs: now.unix_secs().saturating_sub(entry.made_secs()).into(),
            idle_secs: entry.idle_secs(now).into(),
            hits,
            misses,
            ttl_ms: deadline.map(|deadline| deadline.saturating_sub(now.ms)),
        })
    }
}
