//! The tables: bytes in words, all of them one behind the other, in segments that stay where they are when another is added.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use super::shape::{FINGERPRINTS, ScalableCuckooShape};
use crate::error::BuildError;
use crate::hash::ItemHash;
use crate::simd::{prefetch, word_at_byte};
use crate::store::{Lines, Relocate, Segments, Start, relocate_vec};

/// What leads from one bucket of a fingerprint to the other.
const OTHER_BUCKET: u64 = 0x5bd1_e995;

/// More than there can be of tables that grow: a growth doubles at least, up to 2^32 slots.
const MANY_TABLES: usize = 64;

/// What a move costs, in [work](super::ScalableCuckoo::work): it waits for memory that the move before led to.
const MOVE: u64 = 16;

/// The most buckets that are searched for a way to a free slot.
const MAX_SEARCHED: usize = 512;

/// A bucket on the way to a free slot.
#[derive(Clone, Copy, Debug)]
struct Step {
    bucket: u64,
    /// What would move here: the step whose bucket it is in, and its slot. `None`: the search began here.
    from: Option<(usize, usize)>,
}

/// Where an item may be: two buckets, to be cut to the number of buckets of each table, and what stands there for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    buckets: [u64; 2],
    fingerprint: u8,
}

impl Place {
    #[inline]
    pub(super) fn of(hash: ItemHash) -> Self {
        let fingerprint = (hash.low % FINGERPRINTS) as u8 + 1;
        Self::of_bucket(hash.low, fingerprint)
    }

    /// What stands for the item in a slot; never 0.
    pub(super) const fn fingerprint(self) -> u8 {
        self.fingerprint
    }

    /// Either bucket and the fingerprint lead to the other.
    #[inline]
    fn of_bucket(bucket: u64, fingerprint: u8) -> Self {
        let other = bucket ^ u64::from(fingerprint).wrapping_mul(OTHER_BUCKET);
        Self { buckets: [bucket, other], fingerprint }
    }
}

/// One table: where its slots begin, and one less than its buckets, which are a power of two.
#[derive(Clone, Copy, Debug)]
struct Table {
    segment: u32,
    /// In 32 bits: a table has 2^32 slots at most.
    mask: u32,
    /// Its first slot, in its segment.
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

/// All tables, the oldest first; there is always one.
#[derive(Debug)]
pub(super) struct Tables {
    slots: Segments,
    tables: Vec<Table>,
    bucket_size: usize,
    /// See [`ScalableCuckoo::moves`](super::ScalableCuckoo::moves).
    moves: u64,
    /// See [`ScalableCuckoo::work`](super::ScalableCuckoo::work).
    work: u64,
}

impl Tables {
    pub(super) fn new(shape: &ScalableCuckooShape, count: u64) -> Result<Self, BuildError> {
        // There can be so many, before any memory is taken.
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

    /// Tables that stand one behind the other in these lines, which are as long as the shape says.
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

    /// One more table, or everything as it was.
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

    /// Slots in all tables.
    pub(super) fn len(&self) -> usize {
        let (start, length) = self.range(self.count().wrapping_sub(1));
        start + length
    }

    /// The slots of table `index`: the first, counted over all tables, and how many.
    pub(super) fn range(&self, index: usize) -> (usize, usize) {
        let range = |&table: &Table| (self.slots.number(table.start()), table.buckets() * self.bucket_size);
        self.tables.get(index).map_or((0, 0), range)
    }

    /// The table that has this slot, if one does.
    #[cfg(feature = "formats")]
    pub(super) fn table_of(&self, slot: u64) -> Option<usize> {
        let behind = self.tables.partition_point(|table| self.slots.number(table.start()) as u64 <= slot);
        behind.checked_sub(1).filter(|_| slot < self.len() as u64)
    }

    /// The slots of all tables.
    pub(super) const fn slots(&self) -> &Segments {
        &self.slots
    }

    #[cfg(feature = "formats")]
    pub(super) const fn slots_mut(&mut self) -> &mut Segments {
        &mut self.slots
    }

    pub(super) const fn moves(&self) -> u64 {
        self.moves
    }

    pub(super) const fn work(&self) -> u64 {
        self.work
    }

    /// Words of eight slots that a bucket takes.
    const fn bucket_words(&self) -> u64 {
        self.bucket_size.div_ceil(8) as u64
    }

    /// The work of looking at both buckets of an item in so many tables.
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

    /// Gives back what is behind the last table, where nothing is left.
    fn shrink(&mut self) {
        self.slots.truncate(self.len());
    }

    /// The words that a table is in.
    #[inline(always)]
    fn words(&self, table: Table) -> &[AtomicU64] {
        self.slots.words(table.segment)
    }

    /// A bucket of a table, in the words that it is in.
    #[inline]
    fn bucket(&self, table: Table, bucket: u64) -> Bucket {
        let number = bucket & u64::from(table.mask);
        Bucket { at: table.at + number as usize * self.bucket_size, size: self.bucket_size }
    }

    #[inline]
    fn buckets(&self, table: Table, place: Place) -> [Bucket; 2] {
        place.buckets.map(|bucket| self.bucket(table, bucket))
    }

    /// Buckets of table `index`, and which two of them are the item's.
    pub(super) fn bucket_numbers(&self, index: usize, place: Place) -> (u64, [u64; 2]) {
        let table = self.tables[index];
        let numbers = place.buckets.map(|bucket| bucket & u64::from(table.mask));
        (table.buckets() as u64, numbers)
    }

    /// What is in the slots of a bucket of table `index`.
    pub(super) fn content(&self, index: usize, bucket: u64) -> Vec<u8> {
        let first = bucket as usize * self.bucket_size;
        (first..first + self.bucket_size).map(|slot| self.get(index, slot)).collect()
    }

    /// Starts loading both buckets of table `index`.
    #[inline]
    pub(super) fn prefetch(&self, index: usize, place: Place) {
        let table = self.tables[index];
        let words = self.words(table);
        for bucket in self.buckets(table, place) {
            prefetch(words, bucket.at / 8);
        }
    }

    #[inline]
    pub(super) fn table_holds(&self, index: usize, place: Place) -> bool {
        self.holds_in(self.tables[index], place)
    }

    #[inline]
    fn holds_in(&self, table: Table, place: Place) -> bool {
        let [first, second] = self.buckets(table, place);
        let words = self.words(table);
        if self.bucket_size <= 8 {
            // Both at once: one question that most often has one answer.
            return first.equal(words, 0, place.fingerprint) | second.equal(words, 0, place.fingerprint) != 0;
        }
        first.holds(words, place.fingerprint) || second.holds(words, place.fingerprint)
    }

    /// Is the fingerprint in one of its buckets, in any table?
    #[inline]
    pub(super) fn holds(&self, place: Place) -> bool {
        self.tables.iter().any(|&table| self.holds_in(table, place))
    }

    /// How many slots hold the fingerprint. Where both buckets are one, `twice` says how often that counts.
    pub(super) fn count_of(&self, place: Place, twice: bool) -> u64 {
        let in_table = |&table: &Table| {
            let words = self.words(table);
            let [first, second] = self.buckets(table, place);
            let others =
                if twice || first.at != second.at { second.count(words, place.fingerprint) } else { 0 };
            first.count(words, place.fingerprint) + others
        };
        self.tables.iter().map(in_table).sum()
    }

    /// Puts the fingerprint into a free slot of one of its buckets, in the newest table that has one.
    pub(super) fn put(&mut self, place: Place) -> bool {
        let found = (0..self.count()).rev().find(|&index| self.put_in(index, place));
        self.work += self.lookup_work(self.count() - found.unwrap_or(0));
        found.is_some()
    }

    fn put_in(&mut self, index: usize, place: Place) -> bool {
        let table = self.tables[index];
        let free = self.find(table, place, FREE);
        if let Some(slot) = free {
            self.set(table, slot, place.fingerprint);
        }
        free.is_some()
    }

    /// The first slot, in the words that the table is in, of either bucket that holds `byte`.
    #[inline(always)]
    fn find(&self, table: Table, place: Place, byte: u8) -> Option<usize> {
        let (words, buckets) = (self.words(table), self.buckets(table, place));
        if self.bucket_size > 8 {
            return buckets.into_iter().find_map(|bucket| bucket.find(words, byte));
        }
        // Both at once: nobody can foretell which of them it is.
        let [first, second] = buckets.map(|bucket| (bucket.at, bucket.equal(words, 0, byte)));
        let (at, found) = if first.1 != 0 { first } else { second };
        (found != 0).then(|| at + found.trailing_zeros() as usize / 8)
    }

    /// Takes the fingerprint out of the newest table that has it.
    pub(super) fn take(&mut self, place: Place) -> bool {
        let found = |&table: &Table| Some((table, self.find(table, place, place.fingerprint)?));
        let found = self.tables.iter().rev().find_map(found);
        if let Some((table, slot)) = found {
            self.set(table, slot, FREE);
        }
        found.is_some()
    }

    /// Makes room in the newest table by moving others to their other buckets, `moves` of them at most, or leaves everything as it was.
    ///
    /// From the first bucket on, slot 0, 1, 2 … in turn gives way. The order is RedisBloom's: with another, a filter grows at other items than there.
    pub(super) fn put_by_moving(&mut self, place: Place, moves: u32) -> bool {
        let Some(&newest) = self.tables.last() else { return false };
        let (mut bucket, mut homeless, mut victim) = (place.buckets[0], place.fingerprint, 0);
        for moved in 1..=moves {
            let slot = self.bucket(newest, bucket).at + victim;
            homeless = self.set(newest, slot, homeless);
            bucket = Place::of_bucket(bucket, homeless).buckets[1];
            if let Some(free) = self.bucket(newest, bucket).find(self.words(newest), FREE) {
                self.set(newest, free, homeless);
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
            bucket = Place::of_bucket(bucket, homeless).buckets[1];
            let slot = self.bucket(newest, bucket).at + victim;
            homeless = self.set(newest, slot, homeless);
        }
        false
    }

    /// Makes room in the newest table by the shortest chain of moves that there is within [`MAX_SEARCHED`] buckets, or leaves everything as it was.
    pub(super) fn put_by_searching(&mut self, place: Place) -> bool {
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
                let other = Place::of_bucket(step.bucket, held).buckets[1] & mask;
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

    /// Moves what is in `slot`, of a bucket of step `at`, to the free one, and so on back to a bucket that the search began with, where the fingerprint then has room.
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

    /// Moves what is in table `index` into free slots of older ones, as far as there are any. Is it empty now,
    /// and was anything moved?
    fn move_to_older(&mut self, index: usize, not_full_from: &mut [u32]) -> (bool, bool) {
        let table = self.tables[index];
        let (_, length) = self.range(index);
        let (mut emptied, mut moved) = (true, false);
        for slot in 0..length {
            let fingerprint = self.get(index, slot);
            if fingerprint == FREE {
                continue;
            }
            let place = Place::of_bucket((slot / self.bucket_size) as u64, fingerprint);
            // Older tables have as many buckets, or fewer by a power of two: a bucket's number says its number there.
            if self.put_before(index, place, not_full_from) {
                self.set(table, table.at + slot, FREE);
                moved = true;
            } else {
                emptied = false;
            }
        }
        (emptied, moved)
    }

    /// Puts the fingerprint into a free slot of one of its buckets, in the oldest table before `index` that has one.
    ///
    /// `not_full_from` says for every bucket the oldest table where it may have room, or nothing at all.
    fn put_before(&mut self, index: usize, place: Place, not_full_from: &mut [u32]) -> bool {
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

    /// Empties newer tables into older ones and gives those at the end back that nothing is left of. `all`: goes on past one that
    /// cannot be emptied. `false`: there was nothing to move and nothing to give back.
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

    /// What [`put_before`](Self::put_before) remembers while tables are emptied, which only fills those before them. Only where there are many tables, and so
    /// all of one size: asking all of them for every slot took 23 seconds for 65 536 tables of one slot.
    fn rooms(&self) -> Vec<u32> {
        let buckets = self.tables.last().map_or(0, |table| table.buckets());
        let mut rooms = Vec::new();
        if self.count() >= MANY_TABLES && rooms.try_reserve_exact(buckets).is_ok() {
            rooms.resize(buckets, 0);
        }
        rooms
    }

    /// Slots taken in table `index`.
    pub(super) fn taken(&self, index: usize) -> u64 {
        let table = self.tables[index];
        let (_, length) = self.range(index);
        let free = Bucket { at: table.at, size: length }.count(self.words(table), FREE);
        length as u64 - free
    }

    /// What is in a slot of table `index`.
    #[inline]
    pub(super) fn get(&self, index: usize, slot: usize) -> u8 {
        let table = self.tables[index];
        gather(self.words(table), table.at + slot) as u8
    }

    /// Puts `byte` into a slot of the words that the table is in, and says what was there.
    #[inline(always)]
    fn set(&mut self, table: Table, slot: usize, byte: u8) -> u8 {
        let words = self.slots.words_mut(table.segment);
        let (word, shift) = (&mut words[slot / 8], slot % 8 * 8);
        let before = (*word >> shift) as u8;
        *word ^= u64::from(before ^ byte) << shift;
        before
    }
}

/// What stands in a free slot.
const FREE: u8 = 0;

/// Some slots in a row.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    at: usize,
    size: usize,
}

impl Bucket {
    /// The first slot that holds `byte`.
    #[inline]
    fn find(self, words: &[AtomicU64], byte: u8) -> Option<usize> {
        // Most buckets are a part of eight slots, and those are asked without a loop.
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

    /// The top bit of every byte of the eight slots from `from` on that holds `byte`; nothing of what is behind the bucket.
    #[inline(always)]
    fn equal(self, words: &[AtomicU64], from: usize, byte: u8) -> u64 {
        const LOW: u64 = u64::MAX / 255 * 0x7f;
        let differing = gather(words, self.at + from) ^ (u64::MAX / 255 * u64::from(byte));
        // No carry leaves its byte, so this is exact for every one of them.
        let equal = !(((differing & LOW) + LOW) | differing | LOW);
        match self.size - from {
            slots @ 0..8 => equal & ((1 << (8 * slots)) - 1),
            _ => equal,
        }
    }
}

/// Eight bytes from byte `at` on, the first one lowest; zeroes behind the last word.
#[inline(always)]
fn gather(words: &[AtomicU64], at: usize) -> u64 {
    // One load, wherever it begins: to ask whether that is where a word does took a fifth of a lookup, because nobody can foretell it.
    if at + 8 <= words.len() * 8 {
        return word_at_byte(words, at);
    }
    words.get(at / 8).map_or(0, |word| word.load(Ordering::Relaxed)) >> (at % 8 * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every slot of every table, in the words that the table is in.
    fn every_slot(tables: &Tables) -> Vec<(Table, usize)> {
        let slots = |&table: &Table| {
            let length = table.buckets() * tables.bucket_size;
            (table.at..table.at + length).map(move |slot| (table, slot))
        };
        tables.tables.iter().flat_map(slots).collect()
    }

    #[test]
    fn slots_are_found_and_counted_wherever_a_bucket_begins() {
        for size in [1_usize, 2, 3, 5, 7, 8, 9, 16, 23, 255] {
            let shape = ScalableCuckooShape::from_parts(8, size as u32, 20, 1).unwrap();
            let mut tables = Tables::new(&shape, 1).unwrap();
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
    fn a_failed_move_is_undone_to_the_last_byte() {
        for (size, moves) in [(1, 1), (1, 20), (2, 20), (3, 7), (4, 500), (7, 3)] {
            let shape = ScalableCuckooShape::from_parts(16, size, 20, 0).unwrap();
            let mut tables = Tables::new(&shape, 1).unwrap();
            let mut failed = 0;
            for item in 0_u64..3_000 {
                let place = Place::of(ItemHash { low: item.wrapping_mul(0x9e37_79b9_7f4a_7c15), high: 0 });
                let before = tables.slots.checksum();
                if !tables.put(place) && !tables.put_by_moving(place, moves) {
                    assert_eq!(tables.slots.checksum(), before, "{size} slots, {moves} moves");
                    failed += 1;
                }
            }
            assert!(failed > 2_000);
        }
    }

    /// What is in is in still, and tables fill to what two buckets of this size allow for.
    #[test]
    fn a_search_for_room_loses_nothing_and_fills_tables() {
        for (buckets, size, least) in [(1024, 1, 0.4), (1024, 2, 0.85), (256, 4, 0.95), (64, 8, 0.97)] {
            let shape = ScalableCuckooShape::from_parts(buckets, size, 20, 1).unwrap();
            let mut tables = Tables::new(&shape, 1).unwrap();
            let mut places = Vec::new();
            loop {
                let low = (places.len() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let place = Place::of(ItemHash { low: low ^ low >> 29, high: 0 });
                let before = tables.slots.checksum();
                if !tables.put(place) && !tables.put_by_searching(place) {
                    assert_eq!(tables.slots.checksum(), before, "nothing was moved in vain");
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

    /// Many tables are compacted with a memory of where room may be, and to the same bytes as without.
    #[test]
    fn many_tables_are_compacted_as_few_are() {
        for (buckets, size) in [(1, 1), (1, 3), (2, 1), (4, 2), (8, 9)] {
            let shape = ScalableCuckooShape::from_parts(buckets, size, 20, 1).unwrap();
            for (share, all) in [(9_u64, true), (5, true), (1, true), (9, false), (1, false)] {
                let mut random = buckets * 100 + share;
                let mut quick = Tables::new(&shape, 2 * MANY_TABLES as u64).unwrap();
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
        // Asking all tables for every slot takes half a minute here.
        let shape = ScalableCuckooShape::from_parts(1, 1, 20, 1).unwrap();
        let mut tables = Tables::new(&shape, 65_536).unwrap();
        for (table, slot) in every_slot(&tables) {
            tables.set(table, slot, 7);
        }
        tables.compact(true);
        assert_eq!((tables.count(), tables.taken(65_535)), (65_536, 1));
    }

    #[test]
    fn compaction_keeps_every_copy() {
        let shape = ScalableCuckooShape::from_parts(4, 2, 5, 2).unwrap();
        let mut tables = Tables::new(&shape, 1).unwrap();
        let places: Vec<Place> = (0_u64..200)
            .map(|item| Place::of(ItemHash { low: item.wrapping_mul(0x9e37_79b9_7f4a_7c15), high: 0 }))
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

    /// Tables whose slots are no multiple of a line, and then of eight, and then of nothing at all.
    const ODD_SHAPES: [(u64, u32, u32); 6] =
        [(1, 3, 1), (1, 1, 2), (4, 13, 1), (16, 255, 1), (2, 7, 2), (8, 5, 8)];

    fn place(item: u64) -> Place {
        let low = (item + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Place::of(ItemHash { low: low ^ low >> 31, high: 0 })
    }

    /// So many bytes of slots at least, filled as far as it goes with moves.
    fn grown(shape: &ScalableCuckooShape, slots: usize) -> (Tables, Vec<Place>) {
        let (mut tables, mut places) = (Tables::new(shape, 1).unwrap(), Vec::new());
        while tables.len() < slots {
            let next = place(places.len() as u64);
            while !tables.put(next) && !tables.put_by_moving(next, 5) {
                tables.grow(shape).unwrap();
            }
            places.push(next);
        }
        (tables, places)
    }

    /// A growth asks for the new table and leaves those alone that fill a page.
    #[test]
    fn a_growth_moves_no_table_but_small_ones() {
        let shapes = ODD_SHAPES.into_iter().chain([(64, 1, 1), (512, 2, 1), (512, 2, 4), (32_768, 2, 1)]);
        for (buckets, size, expansion) in shapes {
            let shape = ScalableCuckooShape::from_parts(buckets, size, 20, expansion).unwrap();
            let mut tables = Tables::new(&shape, 1).unwrap();
            let (mut stayed, mut steps) = (0, 0);
            while tables.len() < 1 << 19 && tables.count() < 3_000 {
                let address =
                    |tables: &Tables, table: Table| tables.words(table).as_ptr().wrapping_byte_add(table.at);
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

    /// What is written is table behind table, slot behind slot, wherever they lie.
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
            // The same slots in one array are the same tables.
            let mut one = Lines::zeroed(plain.len() / 64).unwrap();
            for (word, bytes) in one.words_mut().iter_mut().zip(plain.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            let one = Tables::of_slots(&shape, tables.count() as u64, one).unwrap();
            assert_eq!(one.slots.checksum(), tables.slots.checksum());
            assert!(tables.tables.iter().any(|table| table.at == 0 && table.segment > 0));
            for index in 0..tables.count() {
                assert_eq!((one.range(index), one.taken(index)), (tables.range(index), tables.taken(index)));
            }
        }
    }

    /// Against tables that lie in one array: every step comes to the same bytes and the same answers.
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
            let mut one = Tables::of_slots(&shape, tables.count() as u64, packed).unwrap();
            let mut held: Vec<Place> = places.clone();
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
                    assert!(tables.take(gone) && one.take(gone), "{shape}: what is in can be taken out");
                }
                if step % 200 == 150 {
                    // Most of what is in, so that tables become empty.
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
    fn moves_are_counted_with_those_that_were_undone() {
        let shape = ScalableCuckooShape::from_parts(1, 2, 20, 1).unwrap();
        let mut tables = Tables::new(&shape, 1).unwrap();
        assert!(tables.put(place(0)) && tables.put(place(1)) && !tables.put(place(2)));
        assert_eq!(tables.moves(), 0);
        assert!(!tables.put_by_moving(place(2), 7));
        assert_eq!(tables.moves(), 14);
        assert!(!tables.put_by_searching(place(2)));
        assert_eq!(tables.moves(), 15, "the one bucket there is");
        assert!(tables.take(place(1)) && tables.put_by_moving(place(2), 7));
        assert_eq!((tables.moves(), tables.try_clone().unwrap().moves()), (16, 0));
    }

    /// Wide buckets, many tables and moves are all work, whether they led to anything or not.
    #[test]
    fn work_is_what_was_looked_at() {
        let shape = ScalableCuckooShape::from_parts(1, 2, 20, 1).unwrap();
        let mut tables = Tables::new(&shape, 1).unwrap();
        assert!(tables.put(place(0)) && tables.put(place(1)) && !tables.put(place(2)));
        assert_eq!(tables.work(), 6);
        assert!(!tables.put_by_moving(place(2), 7));
        assert_eq!(tables.work(), 6 + 7 * (2 * MOVE + 1));
        let wide = ScalableCuckooShape::from_parts(1, 255, 20, 1).unwrap();
        let mut tables = Tables::new(&wide, 10).unwrap();
        assert!(tables.put(place(0)));
        assert_eq!(tables.work(), 64, "the newest of them has room");
        assert_eq!((tables.lookup_work(10), tables.try_clone().unwrap().work()), (640, 0));
    }
}
