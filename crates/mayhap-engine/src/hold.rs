//! Locks names exclusively: one, or several without deadlocks.
//!
//! The order of locks: entries by their address, then shards of names or of deadlines, one at a time. No
//! thread waits for an entry while it holds a shard.

use mayhap_command::run::{Expiry, Source};
use mayhap_command::{Lost, Refusal, Reply, Request, Slot, Value};
use parking_lot::{RwLockReadGuard, RwLockWriteGuard};

use crate::engine::{Engine, Turn};
use crate::entry::{ENTRY_BYTES, Entry, Now};
use crate::expiries::DEADLINE_BYTES;
use crate::statistics::Account;

/// One name, locked exclusively.
#[derive(Debug)]
pub(crate) struct Hold<'a> {
    entry: &'a Entry,
    value: RwLockWriteGuard<'a, Option<Value>>,
    before: Account,
    /// Whether its value or its deadline was changed.
    pub(crate) changed: bool,
    /// The number of the last record about it, if one was appended.
    number: Option<u64>,
    /// Whether the only changes were inserts into a Bloom filter.
    only_items: bool,
    /// The previous value, to be freed when no lock is held.
    freed: Option<Value>,
}

impl<'a> Hold<'a> {
    pub(crate) fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    pub(crate) fn value_mut(&mut self) -> Option<&mut Value> {
        self.value.as_mut()
    }

    pub(crate) const fn entry(&self) -> &'a Entry {
        self.entry
    }

    /// Records the number of the change in the log, if there is one.
    pub(crate) fn log(&mut self, number: Option<u64>) {
        self.number = number.or(self.number);
    }

    /// Takes its value.
    pub(crate) fn take(&mut self) -> Option<Value> {
        let taken = self.value.take();
        self.changed |= taken.is_some();
        taken
    }

    /// Takes its value, to be freed later.
    pub(crate) fn remove(&mut self) -> bool {
        let taken = self.take();
        let held = taken.is_some();
        self.freed = taken.or(self.freed.take());
        held
    }

    /// Replaces its value.
    pub(crate) fn put(&mut self, value: Value) {
        self.remove();
        *self.value = Some(value);
        self.changed = true;
    }
}

impl Engine {
    /// The figures of an entry and its value. The caller holds a lock.
    pub(crate) fn account(&self, entry: &Entry, value: Option<&Value>) -> Account {
        value.map_or_else(Account::default, |value| Account {
            type_name: Some(value.type_name()),
            memory_bytes: value.memory_bytes()
                + ENTRY_BYTES
                + entry.name().len() as u64
                + if entry.expires() { DEADLINE_BYTES } else { 0 },
            items: value.items(),
        })
    }

    /// Locks an entry that is in the keyspace. An expired value is removed first.
    fn begin<'a>(&self, entry: &'a Entry, now: Now) -> Option<Hold<'a>> {
        let value = entry.write();
        if !entry.is_linked() {
            return None;
        }
        let before = self.account(entry, value.as_ref());
        let mut hold =
            Hold { entry, value, before, changed: false, number: None, only_items: false, freed: None };
        if self.is_due(entry, now) {
            hold.remove();
            hold.log(self.log_removed(entry.name(), None));
            self.expiries.set(entry, None);
            self.statistics.expired();
            // A new value has its own age.
            entry.set_made_secs(now.unix_secs());
        }
        entry.touch(now);
        Some(hold)
    }

    /// Updates the figures of an entry. A name without a value leaves the keyspace. The returned value must
    /// be freed when no lock is held.
    fn finish(&self, hold: Hold<'_>) -> Option<Value> {
        let Hold { entry, value, before, changed, number, only_items, freed } = hold;
        #[cfg(test)]
        let only_items = only_items || self.is_spoilt(crate::journal::Spoilt::Copying);
        if changed && !only_items {
            self.copying.changed(entry);
        }
        if let Some(number) = number {
            entry.log(number);
        }
        debug_assert!(
            !changed || number.is_some() || self.journal.get().is_none(),
            "a change was not logged"
        );
        if value.is_none() {
            self.expiries.set(entry, None);
            self.statistics.take_answers_of(entry);
            entry.set_unlinked();
            self.keyspace.unlink(entry);
        }
        let after = self.account(entry, value.as_ref());
        self.budget.book(before.memory_bytes, after.memory_bytes);
        self.statistics.book(before, after);
        if changed {
            self.changed(entry.name());
        }
        freed
    }

    /// Notifies that the value of `name` has changed.
    pub(crate) fn changed(&self, name: &[u8]) {
        self.watchers.changed(name);
        self.statistics.changed(1);
    }

    /// Calls `work` with `name` locked exclusively.
    pub(crate) fn hold<T>(&self, name: &[u8], now: Now, work: impl FnOnce(&mut Hold<'_>) -> T) -> T {
        loop {
            let entry = self.keyspace.get_or_make(name, now);
            let Some(mut hold) = self.begin(&entry, now) else { continue };
            let outcome = work(&mut hold);
            let freed = self.finish(hold);
            self.reclaim.free(freed);
            return outcome;
        }
    }

    /// As above, with the slot that a command sees of a name.
    pub(crate) fn alone<T>(
        &self,
        request: &Request<'_>,
        turn: &Turn<'_>,
        work: impl FnOnce(&mut Slot<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.hold(request.name(), turn.now, |hold| {
            let lost = self.make_way(hold, request)?;
            let mut slot = self.slot(&mut hold.value, turn);
            let outcome = work(&mut slot);
            // A request that stored nothing in place of the lost value has changed nothing.
            if let (Some((_, marker)), None) = (&lost, slot.get()) {
                *hold.value = marker.map(Value::Lost);
                return outcome;
            }
            if slot.is_changed() {
                hold.only_items = slot.items().is_some() && !hold.changed;
                hold.changed = true;
                let number = match (slot.get(), slot.items()) {
                    // A removal must not depend on what else a replay of the log finds.
                    (None, _) => self.log_removed(request.name(), Some(turn.moment)),
                    (_, Some(items)) => self.log_items(hold.entry, items, &mut Vec::new(), turn.moment),
                    (_, None) => self.log_words(&[request.name()], request, slot.left_out(), turn.moment),
                };
                hold.number = number.or(hold.number);
            }
            match slot.expiry() {
                Expiry::Keep if lost.is_none() => {}
                Expiry::Keep | Expiry::Never => {
                    self.expiries.set(hold.entry, None);
                }
                Expiry::At(deadline) => {
                    self.expiries.set(hold.entry, Some(deadline));
                }
            }
            if let (Some((lost, _)), Some(value)) = (lost, hold.value.as_mut()) {
                value.replaces(lost);
                hold.entry.set_made_secs(turn.now.unix_secs());
            }
            outcome
        })
    }

    /// Removes the marker of a lost value from a name that `request` creates again. Returns what was lost,
    /// and the marker if there was one.
    fn make_way(
        &self,
        hold: &mut Hold<'_>,
        request: &Request<'_>,
    ) -> Result<Option<(Lost, Option<Lost>)>, Refusal> {
        let marker = hold.value().and_then(Value::lost);
        let lost = match hold.value() {
            Some(_) => marker,
            None => self.unknown_losses.of(request.name()),
        };
        let Some(lost) = lost else { return Ok(None) };
        lost.admit(request)?;
        *hold.value = None;
        Ok(Some((lost, marker)))
    }

    /// The slot for the value of a name, prepared for the log if there is one.
    fn slot<'v>(&self, value: &'v mut Option<Value>, turn: &Turn<'_>) -> Slot<'v> {
        match self.journal.get() {
            None => Slot::new(value),
            Some(_) => {
                // Discard random bytes that an earlier request drew.
                turn.moment.take_drawn();
                Slot::logged(value)
            }
        }
    }

    /// Calls `work` with two different names locked exclusively.
    pub(crate) fn hold_both<T>(
        &self,
        [one, other]: [&[u8]; 2],
        now: Now,
        work: impl FnOnce(&mut Hold<'_>, &mut Hold<'_>) -> T,
    ) -> T {
        debug_assert_ne!(one, other);
        loop {
            let entries = [one, other].map(|name| self.keyspace.get_or_make(name, now));
            let in_order = entries[0].address() < entries[1].address();
            let [first, second] = if in_order { [0, 1] } else { [1, 0] };
            let Some(first) = self.begin(&entries[first], now) else { continue };
            let Some(second) = self.begin(&entries[second], now) else {
                let freed = self.finish(first);
                self.reclaim.free(freed);
                continue;
            };
            let (mut one, mut other) = if in_order { (first, second) } else { (second, first) };
            let outcome = work(&mut one, &mut other);
            let freed = [self.finish(one), self.finish(other)];
            freed.into_iter().for_each(|freed| self.reclaim.free(freed));
            return outcome;
        }
    }

    /// Calls `work` with the first name of a request locked exclusively and all others locked shared.
    pub(crate) fn gather(
        &self,
        request: &Request<'_>,
        turn: &Turn<'_>,
        work: impl FnOnce(&mut Slot<'_>, &[Source<'_>]) -> Result<Reply, Refusal>,
    ) -> Result<Reply, Refusal> {
        let now = turn.now;
        let names = request.names();
        let Some((&target, sources)) = names.split_first() else { return Err(Refusal::Syntax) };
        loop {
            let target = self.keyspace.get_or_make(target, now);
            let entries: Vec<Option<Entry>> = sources.iter().map(|name| self.keyspace.get(name)).collect();
            let mut in_order: Vec<&Entry> = entries.iter().flatten().chain([&target]).collect();
            in_order.sort_unstable_by_key(|entry| entry.address());
            in_order.dedup();

            let mut hold = None;
            let mut looks: Vec<(&Entry, RwLockReadGuard<'_, Option<Value>>)> = Vec::new();
            for entry in in_order {
                match *entry == target {
                    true => hold = self.begin(entry, now),
                    false => looks.push((entry, entry.read())),
                }
            }
            let Some(mut hold) = hold else { continue };
            // A source was removed or created since it was looked up: the locked entries are not those of the
            // names.
            let is_gone = looks.iter().any(|(entry, _)| !entry.is_linked());
            let came = |(name, entry): (&&[u8], &Option<Entry>)| {
                entry.is_none() && self.keyspace.get(name).is_some()
            };
            if is_gone || sources.iter().zip(&entries).any(came) {
                drop(looks);
                let freed = self.finish(hold);
                self.reclaim.free(freed);
                continue;
            }
            // A value made from a lost one would lack its items, and so would one that it is added to.
            let lost_of = |name: &[u8], value: Option<&Value>| match value {
                Some(value) => value.lost(),
                None => self.unknown_losses.of(name),
            };
            let of_source = |(name, entry): (&&[u8], &Option<Entry>)| {
                let look = entry.as_ref().and_then(|entry| looks.iter().find(|(other, _)| *other == entry));
                match look {
                    Some((_, value)) => lost_of(name, value.as_ref()),
                    None if entry.is_some() => None,
                    None => lost_of(name, None),
                }
            };
            let lost = lost_of(target.name(), hold.value());
            let lost = lost.or_else(|| sources.iter().zip(&entries).find_map(of_source));
            let outcome = if let Some(lost) = lost {
                Err(Refusal::Lost(lost))
            } else {
                let source = |entry: &Option<Entry>| match entry {
                    Some(entry) if *entry == target => Source::Target,
                    Some(entry) if self.expiries.is_due(entry, now.ms) => Source::Other(None),
                    entry => Source::Other(
                        entry
                            .as_ref()
                            .and_then(|entry| looks.iter().find(|(other, _)| *other == entry))
                            .and_then(|(_, value)| value.as_ref()),
                    ),
                };
                let sources: Vec<Source<'_>> = entries.iter().map(source).collect();
                let mut slot = self.slot(&mut hold.value, turn);
                let outcome = work(&mut slot, &sources);
                if slot.is_changed() {
                    hold.changed = true;
                    let number = match slot.get() {
                        Some(_) => self.log_words(&[target.name()], request, slot.left_out(), turn.moment),
                        None => self.log_removed(target.name(), Some(turn.moment)),
                    };
                    hold.number = number.or(hold.number);
                    self.log_made_of_others(target.name());
                }
                // A value made from others is new, and does not inherit a deadline.
                if slot.is_replaced() {
                    self.expiries.set(&target, None);
                }
                outcome
            };
            drop(looks);
            let freed = self.finish(hold);
            self.reclaim.free(freed);
            return outcome;
        }
    }

    /// Removes an entry if it has expired.
    pub(crate) fn remove_expired(&self, entry: &Entry, now: Now) {
        if let Some(hold) = self.begin(entry, now) {
            let freed = self.finish(hold);
            self.reclaim.free(freed);
        }
    }
}
