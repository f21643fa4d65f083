//! The tables: slots of one byte, table after table, in segments that stay in place when another is added.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use super::shape::{FINGERPRINTS, ScalableCuckooShape};
use crate::error::BuildError;
use crate::hash::ItemHash;
use crate::simd::{prefetch, word_at_byte};
use crate::store::{Lines, Relocate, Segments, Start, relocate_vec};

/// The factor that leads from one bucket of a fingerprint to the other.
const OTHER_BUCKET: u64 = 0x5bd1_e995;

/// More tables than a filter with growing tables can have: each growth at least doubles, up to 2^32 slots.
const MANY_TABLES: usize = 64;

/// The cost of a move in [work](super::ScalableCuckoo::work): it waits for memory that the previous move led
/// to.
const MOVE: u64 = 16;

/// The most buckets searched for a path to a free slot.
const MAX_SEARCHED: usize = 512;

/// A bucket on the path to a free slot.
#[derive(Clone, Copy, Debug)]
struct Step {
    bucket: u64,
    /// The source of the entry that would move here: the step of its bucket, and its slot. `None`: the search
    /// began here.
    from: Option<(usize, usize)>,
}

/// The place of an item: its fingerprint and two buckets, which are reduced to the number of buckets of each
/// table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TablePlace {
    buckets: [u64; 2],
    fingerprint: u8,
}

impl TablePlace {
    #[inline]
    pub(super) fn of(hash: ItemHash) -> Self {
        let fingerprint = (hash.low % FINGERPRINTS) as u8 + 1;
        Self::of_bucket(hash.low, fingerprint)
    }

    /// Returns the item's fingerprint, which is never 0.
    pub(super) const fn fingerprint(self) -> u8 {
        self.fingerprint
    }

    /// Computes the other bucket from one bucket and the fingerprint.
    #[inline]
    fn of_bucket(bucket: u64, fingerprint: u8) -> Self {
        let other = bucket ^ u64::from(fingerprint).wrapping_mul(OTHER_BUCKET);
        Self { buckets: [bucket, other], fingerprint }
    }
}

/// One table: the start of its slots, and its number of buckets, a power of two, less one.
#[derive(Clone, Copy, Debug)]
struct Table {
    segment: u32,
    /// 32 bits are enough: a table has at most 2^32 slots.
    mask: u32,
    /// The index of its first slot in its segment.
    at: usize,
}

impl Table {
    fn new(start: Start, buckets: u64) -> Self {
        Self { segment: start.segment, mask: (buckets - 1) as u32, at: start.at }
    }

    const fn start(self) -> Start {
        Start { segment: self.segment, at: self.at }
    }

    const fn buckets(self) -> usize {
        self.mask as usize + 1
    }
}

/// All tables, the oldest first; never empty.
#[derive(Debug)]
pub(super) struct CuckooTables {
    slots: Segments,
    tables: Vec<Table>,
    bucket_size: usize,
    /// See [`ScalableCuckoo::moves`](super::ScalableCuckoo::moves).
    moves: u64,
    /// See [`ScalableCuckoo::work`](super::ScalableCuckoo::work).
    work: u64,
}

impl CuckooTables {
    pub(super) fn new(shape: &ScalableCuckooShape, count: u64) -> Result<Self, BuildError> {
        // Checks the number before any memory is allocated.
        shape.slots(count)?;
        let mut all = Self::empty(shape, Segments::new()?);
        for index in 0..count {
            all.add(shape.table_buckets(index)?)?;
        }
        Ok(all)
    }

    fn empty(shape: &ScalableCuckooShape, slots: Segments) -> Self {
        Self { slots, tables: Vec::new(), bucket_size: shape.bucket_size() as usize, moves: 0, work: 0 }
    }

    /// Creates tables from these lines, in which they follow one another. The lines have the length of the
    /// shape.
    pub(super) fn of_slots(
        shape: &ScalableCuckooShape,
        count: u64,
        slots: Lines,
    ) -> Result<Self, BuildError> {
        let length = usize::try_from(shape.slots(count)?).unwrap_or(usize::MAX);
        let mut all = Self::empty(shape, Segments::of_lines(slots, length));
        let mut at = 0;
        for index in 0..count {
            let buckets = shape.table_buckets(index)?;
            all.tables.push(Table::new(Start { segment: 0, at }, buckets));
            at += buckets as usize * all.bucket_size;
        }
        Ok(all)
    }

    fn add(&mut self, buckets: u64) -> Result<(), BuildError> {
        let slots = self.slots_of(buckets);
        if self.tables.try_reserve(1).is_err() {
            return Err(BuildError::OutOfMemory { bytes: slots as u64 });
        }
        self.tables.push(Table::new(self.slots.add(slots)?, buckets));
        Ok(())
    }

    /// Adds a table. On error, nothing has changed.
    pub(super) fn grow(&mut self, shape: &ScalableCuckooShape) -> Result<(), BuildError> {
        let index = self.count() as u64;
        shape.slots(index + 1)?;
        let buckets = shape.table_buckets(index)?;
        let bytes = self.slots.memory_bytes_with(self.slots_of(buckets));
        crate::sizing::check_memory(bytes, shape.limit_bytes().unwrap_or(u64::MAX))?;
        self.add(buckets)
    }

    fn slots_of(&self, buckets: u64) -> usize {
        usize::try_from(buckets).unwrap_or(usize::MAX).saturating_mul(self.bucket_size)
    }

    pub(super) fn relocate(&mut self, by: &mut dyn Relocate) {
        relocate_vec(&mut self.tables, by);
        self.slots.relocate(by);
    }

    pub(super) fn count(&self) -> usize {
        self.tables.len()
    }

    /// Returns the number of slots in all tables.
    pub(super) fn len(&self) -> usize {
        let (start, length) = self.range(self.count().wrapping_sub(1));
        start + length
    }

    /// Returns the first slot of table `index`, counted over all tables, and its number of slots.
    pub(super) fn range(&self, index: usize) -> (usize, usize) {
        let range = |&table: &Table| (self.slots.number(table.start()), table.buckets() * self.bucket_size);
        self.tables.get(index).map_or((0, 0), range)
    }

    /// Returns the table that contains this slot.
    pub(super) fn table_of(&self, slot: u64) -> Option<usize> {
        let first_after =
            self.tables.partition_point(|table| self.slots.number(table.start()) as u64 <= slot);
        first_after.checked_sub(1).filter(|_| slot < self.len() as u64)
    }

    /// Returns the slots of all tables.
    pub(super) const fn slots(&self) -> &Segments {
        &self.slots
    }

    pub(super) const fn slots_mut(&mut self) -> &mut Segments {
        &mut self.slots
    }

    pub(super) const fn moves(&self) -> u64 {
        self.moves
    }

    pub(super) const fn work(&self) -> u64 {
        self.work
    }

    /// The number of words of eight slots that a bucket takes.
    const fn bucket_words(&self) -> u64 {
        self.bucket_size.div_ceil(8) as u64
    }

    /// Returns the work of reading both buckets of an item in this many tables.
    pub(super) const fn lookup_work(&self, tables: usize) -> u64 {
        2 * self.bucket_words() * tables as u64
    }

    pub(super) fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            slots: self.slots.try_clone()?,
            tables: self.tables.clone(),
            bucket_size: self.bucket_size,
            moves: 0,
            work: 0,
        })
    }

    pub(super) fn clear(&mut self) {
        self.tables.truncate(1);
        self.slots.clear(self.len());
    }

    /// Frees the memory after the last table.
    fn shrink(&mut self) {
        self.slots.truncate(self.len());
    }

    /// Returns the words of the segment that contains a table.
    #[inline(always)]
    fn words(&self, table: Table) -> &[AtomicU64] {
        self.slots.words(table.segment)
    }

    /// Returns a bucket of a table, as slots of its segment.
    #[inline]
    fn bucket(&self, table: Table, bucket: u64) -> Bucket {
        let number = bucket & u64::from(table.mask);
        Bucket { at: table.at + number as usize * self.bucket_size, size: self.bucket_size }
    }

    #[inline]
    fn buckets(&self, table: Table, place: TablePlace) -> [Bucket; 2] {
        place.buckets.map(|bucket| self.bucket(table, bucket))
    }

    /// Returns the number of buckets of table `index`, and the item's two buckets in it.
    pub(super) fn bucket_numbers(&self, index: usize, place: TablePlace) -> (u64, [u64; 2]) {
        let table = self.tables[index];
        let numbers = place.buckets.map(|bucket| bucket & u64::from(table.mask));
        (table.buckets() as u64, numbers)
    }

    /// Returns the slots of a bucket of table `index`.
    pub(super) fn content(&self, index: usize, bucket: u64) -> Vec<u8> {
        let first = bucket as usize * self.bucket_size;
        (first..first + self.bucket_size).map(|slot| self.get(index, slot)).collect()
    }

    /// Starts loading both buckets of table `index`.
    #[inline]
    pub(super) fn prefetch(&self, index: usize, place: TablePlace) {
        let table = self.tables[index];
        let words = self.words(table);
        for bucket in self.buckets(table, place) {
            prefetch(words, bucket.at / 8);
        }
    }

    #[inline]
    pub(super) fn table_holds(&self, index: usize, place: TablePlace) -> bool {
        self.holds_in(self.tables[index], place)
    }

    #[inline]
    fn holds_in(&self, table: Table, place: TablePlace) -> bool {
        let [first, second] = self.buckets(table, place);
        let words = self.words(table);
        if self.bucket_size <= 8 {
            // Both together: one branch, which is usually predictable.
            return first.equal(words, 0, place.fingerprint) | second.equal(words, 0, place.fingerprint) != 0;
        }
        first.holds(words, place.fingerprint) || second.holds(words, place.fingerprint)
    }

    /// Returns whether the fingerprint is in one of its buckets in any table.
    #[inline]
    pub(super) fn holds(&self, place: TablePlace) -> bool {
        self.tables.iter().any(|&table| self.holds_in(table, place))
    }

    /// Returns how many slots hold the fingerprint. If both buckets are the same, `twice` counts its slots
    /// twice.
    pub(super) fn count_of(&self, place: TablePlace, twice: bool) -> u64 {
        let in_table = |&table: &Table| {
            let words = self.words(table);
            let [first, second] = self.buckets(table, place);
            let others =
                if twice || first.at != second.at { second.count(words, place.fingerprint) } else { 0 };
            first.count(words, place.fingerprint) + others
        };
        self.tables.iter().map(in_table).sum()
    }

    /// Writes the fingerprint into a free slot of one of its buckets, in the newest table that has one.
    pub(super) fn put(&mut self, place: TablePlace) -> bool {
        let found = (0..self.count()).rev().find(|&index| self.put_in(index, place));
        self.work += self.lookup_work(self.count() - found.unwrap_or(0));
        found.is_some()
    }

    fn put_in(&mut self, index: usize, place: TablePlace) -> bool {
        let table = self.tables[index];
        let free = self.find(table, place, FREE);
        if let Some(slot) = free {
            self.set(table, slot, place.fingerprint);
        }
        free.is_some()
    }

    /// Returns the first slot of either bucket that holds `byte`, as an index into the segment of the table.
    #[inline(always)]
    fn find(&self, table: Table, place: TablePlace, byte: u8) -> Option<usize> {
        let (words, buckets) = (self.words(table), self.buckets(table, place));
        if self.bucket_size > 8 {
            return buckets.into_iter().find_map(|bucket| bucket.find(words, byte));
        }
        // Both together: which bucket it is cannot be predicted.
        let [first, second] = buckets.map(|bucket| (bucket.at, bucket.equal(words, 0, byte)));
        let (at, found) = if first.1 != 0 { first } else { second };
        (found != 0).then(|| at + found.trailing_zeros() as usize / 8)
    }

    /// Removes the fingerprint from the newest table that holds it.
    pub(super) fn take(&mut self, place: TablePlace) -> bool {
        let found = |&table: &Table| Some((table, self.find(table, place, place.fingerprint)?));
        let found = self.tables.iter().rev().find_map(found);
        if let Some((table, slot)) = found {
            self.set(table, slot, FREE);
        }
        found.is_some()
    }

    /// Makes room in the newest table by moving at most `moves` entries to their other buckets. On failure,
    /// nothing has changed.
    ///
    /// Starting at the first bucket, it evicts slot 0, 1, 2 … in turn. This is RedisBloom's order: with
    /// another one, a filter would grow at other items than RedisBloom's.
    pub(super) fn put_by_moving(&mut self, place: TablePlace, moves: u32) -> bool {
        let Some(&newest) = self.tables.last() else { return false };
        let (mut bucket, mut displaced, mut victim) = (place.buckets[0], place.fingerprint, 0);
        for moved in 1..=moves {
            let slot = self.bucket(newest, bucket).at + victim;
            displaced = self.set(newest, slot, displaced);
            bucket = TablePlace::of_bucket(bucket, displaced).buckets[1];
            if let Some(free) = self.bucket(newest, bucket).find(self.words(newest), FREE) {
                self.set(newest, free, displaced);
                self.moves += u64::from(moved);
                self.work += u64::from(moved) * (MOVE + self.bucket_words());
                return true;
            }
            victim = (victim + 1) % self.bucket_size;
        }
        self.moves += 2 * u64::from(moves);
        self.work += u64::from(moves) * (2 * MOVE + self.bucket_words());
        for _ in 0..moves {
            victim = (victim + self.bucket_size - 1) % self.bucket_size;
            bucket = TablePlace::of_bucket(bucket, displaced).buckets[1];
            let slot = self.bucket(newest, bucket).at + victim;
            displaced = self.set(newest, slot, displaced);
        }
        false
    }

    /// Makes room in the newest table by the shortest chain of moves within [`MAX_SEARCHED`] buckets. On
    /// failure, nothing has changed.
    pub(super) fn put_by_searching(&mut self, place: TablePlace) -> bool {
        let Some(&newest) = self.tables.last() else { return false };
        let mut seen = HashSet::new();
        let mut steps: Vec<Step> = Vec::new();
        let mask = u64::from(newest.mask);
        for bucket in place.buckets.map(|bucket| bucket & mask) {
            if seen.insert(bucket) {
                steps.push(Step { bucket, from: None });
            }
        }
        let mut at = 0;
        let step_work = self.bucket_size as u64 * (MOVE + self.bucket_words());
        while let Some(&step) = steps.get(at) {
            self.work += step_work;
            let start = self.bucket(newest, step.bucket).at;
            for slot in start..start + self.bucket_size {
                let held = gather(self.words(newest), slot) as u8;
                let other = TablePlace::of_bucket(step.bucket, held).buckets[1] & mask;
                if let Some(free) = self.bucket(newest, other).find(self.words(newest), FREE) {
                    self.move_along(newest, &steps, at, slot, free, place.fingerprint);
                    self.moves += at as u64 + 1;
                    return true;
                }
                if steps.len() < MAX_SEARCHED && seen.insert(other) {
                    steps.push(Step { bucket: other, from: Some((at, slot)) });
                }
            }
            at += 1;
        }
        self.moves += at as u64;
        false
    }

    /// Moves the entry in `slot`, of the bucket of step `at`, to the free slot, and so on back to a bucket
    /// where the search began. Its slot is then free for the fingerprint.
    fn move_along(
        &mut self,
        table: Table,
        steps: &[Step],
        mut at: usize,
        slot: usize,
        free: usize,
        fingerprint: u8,
    ) {
        let (mut slot, mut free) = (slot, free);
        loop {
            let moved = gather(self.words(table), slot) as u8;
            self.set(table, free, moved);
            free = slot;
            let Some((before, from)) = steps[at].from else { break };
            (at, slot) = (before, from);
        }
        self.set(table, free, fingerprint);
    }

    /// Moves the entries of table `index` into free slots of older tables where possible. Returns whether it
    /// is empty now, and whether anything was moved.
    fn move_to_older(&mut self, index: usize, not_full_from: &mut [u32]) -> (bool, bool) {
        let table = self.tables[index];
        let (_, length) = self.range(index);
        let (mut emptied, mut moved) = (true, false);
        for slot in 0..length {
            let fingerprint = self.get(index, slot);
            if fingerprint == FREE {
                continue;
            }
            let place = TablePlace::of_bucket((slot / self.bucket_size) as u64, fingerprint);
            // Older tables have the same number of buckets, or fewer by a power of two: a bucket's number
            // determines its number there.
            if self.put_before(index, place, not_full_from) {
                self.set(table, table.at + slot, FREE);
                moved = true;
            } else {
                emptied = false;
            }
        }
        (emptied, moved)
    }

    /// Writes the fingerprint into a free slot of one of its buckets, in the oldest table before `index` that
    /// has one.
    ///
    /// `not_full_from` holds, for every bucket, the oldest table where it may have room. It may be empty.
    fn put_before(&mut self, index: usize, place: TablePlace, not_full_from: &mut [u32]) -> bool {
        if not_full_from.is_empty() {
            return (0..index).any(|older| self.put_in(older, place));
        }
        let oldest = place.buckets.map(|bucket| {
            let from = &mut not_full_from[(bucket & u64::from(self.tables[index].mask)) as usize];
            let is_full = |older: u32| {
                let table = self.tables[older as usize];
                !self.bucket(table, bucket).holds(self.words(table), FREE)
            };
            while (*from as usize) < index && is_full(*from) {
                *from += 1;
            }
            *from as usize
        });
        let older = oldest[0].min(oldest[1]);
        older < index && self.put_in(older, place)
    }

    /// Empties newer tables into older ones and frees the tables at the end that become empty. `all`:
    /// continues after a table that cannot be emptied. `false`: nothing could be moved or freed.
    pub(super) fn compact(&mut self, all: bool) -> bool {
        let mut changed = false;
        let mut not_full_from = self.rooms();
        for index in (1..self.count()).rev() {
            let (emptied, moved) = self.move_to_older(index, &mut not_full_from);
            changed |= emptied || moved;
            if emptied && index + 1 == self.count() {
                self.tables.pop();
            } else if !all {
                break;
            }
        }
        self.shrink();
        changed
    }

    /// Returns the memo of [`put_before`](Self::put_before) for emptying tables, which only fills tables
    /// before them. It is used only with many tables, which all have the same size: without it, searching all
    /// tables for every slot took 23 seconds for 65 536 tables of one slot.
    fn rooms(&self) -> Vec<u32> {
        let buckets = self.tables.last().map_or(0, |table| table.buckets());
        let mut rooms = Vec::new();
        if self.count() >= MANY_TABLES && rooms.try_reserve_exact(buckets).is_ok() {
            rooms.resize(buckets, 0);
        }
        rooms
    }

    /// Returns the number of slots taken in table `index`.
    pub(super) fn taken(&self, index: usize) -> u64 {
        let table = self.tables[index];
        let (_, length) = self.range(index);
        let free = Bucket { at: table.at, size: length }.count(self.words(table), FREE);
        length as u64 - free
    }

    /// Returns the content of a slot of table `index`.
    #[inline]
    pub(super) fn get(&self, index: usize, slot: usize) -> u8 {
        let table = self.tables[index];
        gather(self.words(table), table.at + slot) as u8
    }

    /// Writes `byte` into a slot of the table's segment and returns the previous content.
    #[inline(always)]
    fn set(&mut self, table: Table, slot: usize, byte: u8) -> u8 {
        let words = self.slots.words_mut(table.segment);
        let (word, shift) = (&mut words[slot / 8], slot % 8 * 8);
        let before = (*word >> shift) as u8;
        *word ^= u64::from(before ^ byte) << shift;
        before
    }
}

/// The content of a free slot.
const FREE: u8 = 0;

/// A run of slots.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    at: usize,
    size: usize,
}

impl Bucket {
    /// Returns the first slot that holds `byte`.
    #[inline]
    fn find(self, words: &[AtomicU64], byte: u8) -> Option<usize> {
        // Most buckets have at most eight slots and need only one pass.
        let mut from = 0;
        loop {
            let found = self.equal(words, from, byte);
            if found != 0 {
                return Some(self.at + from + found.trailing_zeros() as usize / 8);
            }
            from += 8;
            if from >= self.size {
                return None;
            }
        }
    }

    #[inline]
    fn holds(self, words: &[AtomicU64], byte: u8) -> bool {
        self.find(words, byte).is_some()
    }

    fn count(self, words: &[AtomicU64], byte: u8) -> u64 {
        let ones = |from| u64::from(self.equal(words, from, byte).count_ones());
        (0..self.size).step_by(8).map(ones).sum()
    }

    /// Returns the top bit of every byte equal to `byte` among the eight slots from `from` on, without those
    /// after the bucket.
    #[inline(always)]
    fn equal(self, words: &[AtomicU64], from: usize, byte: u8) -> u64 {
        const LOW: u64 = u64::MAX / 255 * 0x7f;
        let differing = gather(words, self.at + from) ^ (u64::MAX / 255 * u64::from(byte));
        // No carry leaves its byte, so this is exact for each of them.
        let equal = !(((differing & LOW) + LOW) | differing | LOW);
        match self.size - from {
            slots @ 0..8 => equal & ((1 << (8 * slots)) - 1),
            _ => equal,
        }
    }
}

/// Returns eight bytes from byte `at` on, the first one lowest, with zeroes after the last word.
#[inline(always)]
fn gather(words: &[AtomicU64], at: usize) -> u64 {
    // Always one load: checking whether `at` is aligned to a word took a fifth of a lookup, because it cannot
    // be predicted.
    if at + 8 <= words.len() * 8 {
        return word_at_byte(words, at);
    }
    words.get(at / 8).map_or(0, |word| word.load(Ordering::Relaxed)) >> (at % 8 * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every slot of every table, as indexes into the table's segment.
    fn every_slot(tables: &CuckooTables) -> Vec<(Table, usize)> {
        let slots = |&table: &Table| {
            let length = table.buckets() * tables.bucket_size;
            (table.at..table.at + length).map(move |slot| (table, slot))
        };
        tables.tables.iter().flat_map(slots).collect()
    }

    #[test]
    fn slots_are_found_and_counted_at_any_bucket_alignment() {
        for size in [1_usize, 2, 3, 5, 7, 8, 9, 16, 23, 255] {
            let shape = ScalableCuckooShape::from_parts(8, size as u32, 20, 1).unwrap();
            let mut tables = CuckooTables::new(&shape, 1).unwrap();
            for bucket in 0..8 {
                let table = tables.tables[0];
                let here = tables.bucket(table, bucket);
                let mut plain = vec![0_u8; size];
                for (step, slot) in (0..size).map(|i| i * 7 % size).enumerate() {
                    let byte = [7, 0x80, 0xff, 1, 7][step % 5];
                    assert_eq!(tables.set(table, here.at + slot, byte), plain[slot]);
                    plain[slot] = byte;
                    for byte in [0, 1, 7, 0x7f, 0x80, 0xff] {
                        let words = tables.words(table);
                        let first = plain.iter().position(|&there| there == byte);
                        assert_eq!(here.find(words, byte), first.map(|slot| here.at + slot));
                        assert_eq!(here.holds(words, byte), first.is_some());
                        assert_eq!(
                            here.count(words, byte),
                            plain.iter().filter(|&&there| there == byte).count() as u64
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn put_by_moving_undoes_a_failed_chain_exactly() {
        for (size, moves) in [(1, 1), (1, 20), (2, 20), (3, 7), (4, 500), (7, 3)] {
            let shape = ScalableCuckooShape::from_parts(16, size, 20, 0).unwrap();
            let mut tables = CuckooTables::new(&shape, 1).unwrap();
            let mut failed = 0;
            for item in 0_u64..3_000 {
                let place =
                    TablePlace::of(ItemHash { low: item.wrapping_mul(0x9e37_79b9_7f4a_7c15), high: 0 });
                let before = tables.slots.checksum();
                if !tables.put(place) && !tables.put_by_moving(place, moves) {
                    assert_eq!(tables.slots.checksum(), before, "{size} slots, {moves} moves");
                    failed += 1;
                }
            }
            assert!(failed > 2_000);
        }
    }

    /// Keeps all members, and fills tables as far as two buckets of this size allow.
    #[test]
    fn put_by_searching_loses_nothing_and_fills_tables() {
        for (buckets, size, least) in [(1024, 1, 0.4), (1024, 2, 0.85), (256, 4, 0.95), (64, 8, 0.97)] {
            let shape = ScalableCuckooShape::from_parts(buckets, size, 20, 1).unwrap();
            let mut tables = CuckooTables::new(&shape, 1).unwrap();
            let mut places = Vec::new();
            loop {
                let low = (places.len() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let place = TablePlace::of(ItemHash { low: low ^ low >> 29, high: 0 });
                let before = tables.slots.checksum();
                if !tables.put(place) && !tables.put_by_searching(place) {
                    assert_eq!(tables.slots.checksum(), before, "a failed search moves nothing");
                    break;
                }
                places.push(place);
                assert_eq!(tables.taken(0), places.len() as u64);
            }
            assert!(places.iter().all(|&place| tables.holds(place)));
            let fill = places.len() as f64 / tables.len() as f64;
            assert!(fill > least, "buckets of {size} filled to {fill}");
            places.iter().for_each(|&place| assert!(tables.take(place)));
            assert_eq!((0..tables.count()).map(|index| tables.taken(index)).sum::<u64>(), 0);
        }
    }

    /// Compacting many tables uses a memo of buckets with room and gives the same bytes as without.
    #[test]
    fn compact_gives_the_same_bytes_with_and_without_the_memo() {
        for (buckets, size) in [(1, 1), (1, 3), (2, 1), (4, 2), (8, 9)] {
            let shape = ScalableCuckooShape::from_parts(buckets, size, 20, 1).unwrap();
            for (share, all) in [(9_u64, true), (5, true), (1, true), (9, false), (1, false)] {
                let mut random = buckets * 100 + share;
                let mut quick = CuckooTables::new(&shape, 2 * MANY_TABLES as u64).unwrap();
                for (table, slot) in every_slot(&quick) {
                    random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                    if (random >> 40) % 10 < share {
                        quick.set(table, slot, (random >> 48) as u8);
                    }
                }
                let mut plain = quick.try_clone().unwrap();
                assert!(!quick.rooms().is_empty());
                quick.compact(all);
                for index in (1..plain.count()).rev() {
                    let (emptied, _) = plain.move_to_older(index, &mut []);
                    if emptied && index + 1 == plain.count() {
                        plain.tables.pop();
                    } else if !all {
                        break;
                    }
                }
                plain.shrink();
                assert_eq!(quick.count(), plain.count(), "{buckets} buckets of {size}, {share} of 10");
                assert_eq!(quick.slots.checksum(), plain.slots.checksum());
            }
        }
        // Searching all tables for every slot takes half a minute here.
        let shape = ScalableCuckooShape::from_parts(1, 1, 20, 1).unwrap();
        let mut tables = CuckooTables::new(&shape, 65_536).unwrap();
        for (table, slot) in every_slot(&tables) {
            tables.set(table, slot, 7);
        }
        tables.compact(true);
        assert_eq!((tables.count(), tables.taken(65_535)), (65_536, 1));
    }

    #[test]
    fn compaction_keeps_every_copy() {
        let shape = ScalableCuckooShape::from_parts(4, 2, 5, 2).unwrap();
        let mut tables = CuckooTables::new(&shape, 1).unwrap();
        let places: Vec<TablePlace> = (0_u64..200)
            .map(|item| TablePlace::of(ItemHash { low: item.wrapping_mul(0x9e37_79b9_7f4a_7c15), high: 0 }))
            .collect();
        for &place in &places {
            while !tables.put(place) && !tables.put_by_moving(place, 5) {
                tables.grow(&shape).unwrap();
            }
        }
        let before = tables.count();
        assert!(before > 3);
        places[40..].iter().for_each(|&place| assert!(tables.take(place)));
        tables.compact(true);
        assert!(tables.count() < before, "{} tables of {before}", tables.count());
        assert!(places[..40].iter().all(|&place| tables.holds(place)));
        assert_eq!((0..tables.count()).map(|index| tables.taken(index)).sum::<u64>(), 40);
        places[..40].iter().for_each(|&place| assert!(tables.take(place)));
        assert_eq!((0..tables.count()).map(|index| tables.taken(index)).sum::<u64>(), 0);
    }

    /// Tables with a number of slots that is not a multiple of a line, then not of eight, then of nothing.
    const ODD_SHAPES: [(u64, u32, u32); 6] =
        [(1, 3, 1), (1, 1, 2), (4, 13, 1), (16, 255, 1), (2, 7, 2), (8, 5, 8)];

    fn place(item: u64) -> TablePlace {
        let low = (item + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        TablePlace::of(ItemHash { low: low ^ low >> 31, high: 0 })
    }

    /// Returns tables with at least this many bytes of slots, filled by moving until a move fails.
    fn grown(shape: &ScalableCuckooShape, slots: usize) -> (CuckooTables, Vec<TablePlace>) {
        let (mut tables, mut places) = (CuckooTables::new(shape, 1).unwrap(), Vec::new());
        while tables.len() < slots {
            let next = place(places.len() as u64);
            while !tables.put(next) && !tables.put_by_moving(next, 5) {
                tables.grow(shape).unwrap();
            }
            places.push(next);
        }
        (tables, places)
    }

    /// Growing allocates the new table and does not move tables that fill a page.
    #[test]
    fn growth_moves_only_small_tables() {
        let shapes = ODD_SHAPES.into_iter().chain([(64, 1, 1), (512, 2, 1), (512, 2, 4), (32_768, 2, 1)]);
        for (buckets, size, expansion) in shapes {
            let shape = ScalableCuckooShape::from_parts(buckets, size, 20, expansion).unwrap();
            let mut tables = CuckooTables::new(&shape, 1).unwrap();
            let (mut stayed, mut steps) = (0, 0);
            while tables.len() < 1 << 19 && tables.count() < 3_000 {
                let address = |tables: &CuckooTables, table: Table| {
                    tables.words(table).as_ptr().wrapping_byte_add(table.at)
                };
                let before: Vec<_> =
                    tables.tables.iter().map(|&table| (table, address(&tables, table))).collect();
                let memory = tables.slots.memory_bytes();
                tables.grow(&shape).unwrap();
                let (_, slots) = tables.range(tables.count() - 1);
                assert!(tables.slots.memory_bytes() - memory <= slots.next_multiple_of(64) as u64);
                let moved = before.iter().filter(|(table, there)| address(&tables, *table) != *there);
                let moved: usize = moved.map(|(table, _)| table.buckets() * size as usize).sum();
                assert!(moved < 32 << 10, "{shape}: {moved} bytes moved");
                stayed += usize::from(moved == 0);
                steps += 1;
            }
            assert!(steps < 4 || stayed > 0, "{shape}: {stayed} of {steps}");
            assert_eq!(tables.slots.memory_bytes(), shape.memory_bytes(tables.count() as u64).unwrap());
        }
    }

    /// The encoded bytes are table after table, slot after slot, in any segment layout.
    #[test]
    fn slots_are_packed_in_the_order_of_their_tables() {
        for (buckets, size, expansion) in ODD_SHAPES {
            let shape = ScalableCuckooShape::from_parts(buckets, size, 20, expansion).unwrap();
            let (tables, _) = grown(&shape, 30_000);
            let mut plain: Vec<u8> = Vec::new();
            for index in 0..tables.count() {
                let (start, slots) = tables.range(index);
                assert_eq!(start, plain.len());
                plain.extend((0..slots).map(|slot| tables.get(index, slot)));
            }
            assert!(plain.iter().any(|&byte| byte != 0) && plain.len() == tables.len());
            plain.resize(plain.len().next_multiple_of(64), 0);
            let mut packed = Vec::new();
            tables.slots().extend_le_bytes(0, usize::MAX, &mut packed);
            assert!(packed == plain, "{shape}");
            assert!(tables.slots.memory_bytes() == plain.len() as u64, "{shape}");
            let last = tables.tables[tables.count() - 1];
            assert!(last.segment > 0, "{shape}: all in one segment");
            // The same slots in one array give the same tables.
            let mut one = Lines::zeroed(plain.len() / 64).unwrap();
            for (word, bytes) in one.words_mut().iter_mut().zip(plain.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            let one = CuckooTables::of_slots(&shape, tables.count() as u64, one).unwrap();
            assert_eq!(one.slots.checksum(), tables.slots.checksum());
            assert!(tables.tables.iter().any(|table| table.at == 0 && table.segment > 0));
            for index in 0..tables.count() {
                assert_eq!((one.range(index), one.taken(index)), (tables.range(index), tables.taken(index)));
            }
        }
    }

    /// Compares with tables in one array: every step gives the same bytes and the same answers.
    #[test]
    fn segments_change_no_answer_and_no_slot() {
        for (buckets, size, expansion) in ODD_SHAPES {
            let shape = ScalableCuckooShape::from_parts(buckets, size, 5, expansion).unwrap();
            let (mut tables, places) = grown(&shape, 12_000);
            let mut packed = Lines::zeroed(tables.len().div_ceil(64)).unwrap();
            let mut bytes = Vec::new();
            tables.slots().extend_le_bytes(0, usize::MAX, &mut bytes);
            for (word, bytes) in packed.words_mut().iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            let mut one = CuckooTables::of_slots(&shape, tables.count() as u64, packed).unwrap();
            let mut held: Vec<TablePlace> = places.clone();
            for step in 0_u64..600 {
                let random = place(step + 1_000_000).buckets[0] >> 20;
                if random % 8 < 3 {
                    let next = place(2_000_000 + random % 500);
                    for each in [&mut tables, &mut one] {
                        while !each.put(next) && !each.put_by_moving(next, 5) {
                            each.grow(&shape).unwrap();
                        }
                    }
                    held.push(next);
                } else if let Some(gone) =
                    (!held.is_empty()).then(|| held.swap_remove(random as usize % held.len()))
                {
                    assert!(tables.take(gone) && one.take(gone), "{shape}: a member can be removed");
                }
                if step % 200 == 150 {
                    // Removes most members, so tables become empty.
                    for gone in held.drain(held.len() / 3..) {
                        assert!(tables.take(gone) && one.take(gone));
                    }
                    assert_eq!(tables.compact(step % 400 == 150), one.compact(step % 400 == 150));
                }
                let asked = place(random % 3_000);
                assert_eq!(tables.count_of(asked, true), one.count_of(asked, true));
                assert_eq!((tables.holds(asked), tables.count()), (one.holds(asked), one.count()));
                if step % 20 == 0 {
                    assert_eq!(tables.slots.checksum(), one.slots.checksum(), "{shape}, step {step}");
                    let taken: u64 = (0..tables.count()).map(|index| tables.taken(index)).sum();
                    assert_eq!(taken, held.len() as u64, "{shape}: every copy");
                }
            }
            assert!(held.iter().all(|&place| tables.holds(place)));
            tables.clear();
            assert_eq!((tables.count(), tables.taken(0)), (1, 0));
            assert_eq!(tables.slots.memory_bytes(), shape.memory_bytes(1).unwrap());
        }
    }

    #[test]
    fn moves_include_those_that_were_undone() {
        let shape = ScalableCuckooShape::from_parts(1, 2, 20, 1).unwrap();
        let mut tables = CuckooTables::new(&shape, 1).unwrap();
        assert!(tables.put(place(0)) && tables.put(place(1)) && !tables.put(place(2)));
        assert_eq!(tables.moves(), 0);
        assert!(!tables.put_by_moving(place(2), 7));
        assert_eq!(tables.moves(), 14);
        assert!(!tables.put_by_searching(place(2)));
        assert_eq!(tables.moves(), 15, "there is only one bucket");
        assert!(tables.take(place(1)) && tables.put_by_moving(place(2), 7));
        assert_eq!((tables.moves(), tables.try_clone().unwrap().moves()), (16, 0));
    }

    /// Wide buckets, many tables and moves all count as work, whether or not they succeed.
    #[test]
    fn work_counts_the_words_read() {
        let shape = ScalableCuckooShape::from_parts(1, 2, 20, 1).unwrap();
        let mut tables = CuckooTables::new(&shape, 1).unwrap();
        assert!(tables.put(place(0)) && tables.put(place(1)) && !tables.put(place(2)));
        assert_eq!(tables.work(), 6);
        assert!(!tables.put_by_moving(place(2), 7));
        assert_eq!(tables.work(), 6 + 7 * (2 * MOVE + 1));
        let wide = ScalableCuckooShape::from_parts(1, 255, 20, 1).unwrap();
        let mut tables = CuckooTables::new(&wide, 10).unwrap();
        assert!(tables.put(place(0)));
        assert_eq!(tables.work(), 64, "the newest table has room");
        assert_eq!((tables.lookup_work(10), tables.try_clone().unwrap().work()), (640, 0));
    }
}
