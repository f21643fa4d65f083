//! The tables: bytes in words, all of them one behind the other.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use super::shape::{FINGERPRINTS, ScalableCuckooShape};
use crate::error::BuildError;
use crate::hash::ItemHash;
use crate::simd::prefetch;
use crate::store::{LINE_BYTES, Lines, Relocate, relocate_vec, with_spare_room};

/// What leads from one bucket of a fingerprint to the other.
const OTHER_BUCKET: u64 = 0x5bd1_e995;

/// More than there can be of tables that grow: a growth doubles at least, up to 2^32 slots.
const MANY_TABLES: usize = 64;

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
    start: usize,
    mask: u64,
}

/// All tables, the oldest first; there is always one.
#[derive(Debug)]
pub(super) struct Tables {
    slots: Lines,
    tables: Vec<Table>,
    bucket_size: usize,
}

impl Tables {
    pub(super) fn new(shape: &ScalableCuckooShape, count: u64) -> Result<Self, BuildError> {
        let lines = shape.memory_bytes(count)? / LINE_BYTES as u64;
        let slots = Lines::zeroed(usize::try_from(lines).unwrap_or(usize::MAX))?;
        Self::of_slots(shape, count, slots)
    }

    /// Tables that stand in these lines, which are as long as the shape says.
    pub(super) fn of_slots(
        shape: &ScalableCuckooShape,
        count: u64,
        slots: Lines,
    ) -> Result<Self, BuildError> {
        let mut all = Self { slots, tables: Vec::new(), bucket_size: shape.bucket_size() as usize };
        for index in 0..count {
            all.push(shape.table_buckets(index)?);
        }
        Ok(all)
    }

    fn push(&mut self, buckets: u64) {
        self.tables.push(Table { start: self.len(), mask: buckets - 1 });
    }

    /// One more table, or everything as it was.
    pub(super) fn grow(&mut self, shape: &ScalableCuckooShape) -> Result<(), BuildError> {
        let index = self.count() as u64;
        let bytes = shape.memory_bytes(index + 1)?;
        crate::sizing::check_memory(bytes, shape.limit_bytes().unwrap_or(u64::MAX))?;
        let buckets = shape.table_buckets(index)?;
        let lines = usize::try_from(bytes / LINE_BYTES as u64).unwrap_or(usize::MAX);
        // Tables that are all alike would otherwise move at every growth.
        self.slots.grow(lines, with_spare_room(lines))?;
        self.push(buckets);
        Ok(())
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
        let end = |table: &Table| table.start + (table.mask as usize + 1) * self.bucket_size;
        self.tables.last().map_or(0, end)
    }

    /// The slots of table `index`: the first, and how many.
    pub(super) fn range(&self, index: usize) -> (usize, usize) {
        self.tables
            .get(index)
            .map_or((0, 0), |table| (table.start, (table.mask as usize + 1) * self.bucket_size))
    }

    /// The table that has this slot, if one does.
    #[cfg(feature = "formats")]
    pub(super) fn table_of(&self, slot: u64) -> Option<usize> {
        let behind = self.tables.partition_point(|table| table.start as u64 <= slot);
        behind.checked_sub(1).filter(|_| slot < self.len() as u64)
    }

    pub(super) const fn lines(&self) -> &Lines {
        &self.slots
    }

    #[cfg(feature = "formats")]
    pub(super) const fn lines_mut(&mut self) -> &mut Lines {
        &mut self.slots
    }

    pub(super) fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            slots: self.slots.try_clone()?,
            tables: self.tables.clone(),
            bucket_size: self.bucket_size,
        })
    }

    pub(super) fn clear(&mut self) {
        self.slots.words_mut().fill(0);
        self.tables.truncate(1);
        self.shrink();
    }

    /// Gives back what is behind the last table, where nothing is left.
    fn shrink(&mut self) {
        self.slots.shrink(self.len().div_ceil(LINE_BYTES));
    }

    #[inline]
    fn bucket(&self, table: Table, bucket: u64) -> Bucket {
        Bucket { at: table.start + (bucket & table.mask) as usize * self.bucket_size, size: self.bucket_size }
    }

    #[inline]
    fn buckets(&self, table: Table, place: Place) -> [Bucket; 2] {
        place.buckets.map(|bucket| self.bucket(table, bucket))
    }

    /// Buckets of table `index`, and which two of them are the item's.
    pub(super) fn bucket_numbers(&self, index: usize, place: Place) -> (u64, [u64; 2]) {
        let table = self.tables[index];
        let numbers = self.buckets(table, place).map(|bucket| (bucket.at - table.start) / self.bucket_size);
        (table.mask + 1, numbers.map(|number| number as u64))
    }

    /// What is in the slots of a bucket of table `index`.
    pub(super) fn content(&self, index: usize, bucket: u64) -> Vec<u8> {
        let at = self.bucket(self.tables[index], bucket).at;
        (at..at + self.bucket_size).map(|slot| self.get(slot)).collect()
    }

    /// Starts loading both buckets of table `index`.
    #[inline]
    pub(super) fn prefetch(&self, index: usize, place: Place) {
        for bucket in self.buckets(self.tables[index], place) {
            prefetch(self.slots.words(), bucket.at / 8);
        }
    }

    #[inline]
    pub(super) fn table_holds(&self, index: usize, place: Place) -> bool {
        let [first, second] = self.buckets(self.tables[index], place);
        let words = self.slots.words();
        first.holds(words, place.fingerprint) || second.holds(words, place.fingerprint)
    }

    /// Is the fingerprint in one of its buckets, in any table?
    #[inline]
    pub(super) fn holds(&self, place: Place) -> bool {
        (0..self.count()).any(|index| self.table_holds(index, place))
    }

    /// How many slots hold the fingerprint. Where both buckets are one, `twice` says how often that counts.
    pub(super) fn count_of(&self, place: Place, twice: bool) -> u64 {
        let words = self.slots.words();
        let in_table = |&table: &Table| {
            let [first, second] = self.buckets(table, place);
            let others =
                if twice || first.at != second.at { second.count(words, place.fingerprint) } else { 0 };
            first.count(words, place.fingerprint) + others
        };
        self.tables.iter().map(in_table).sum()
    }

    /// Puts the fingerprint into a free slot of one of its buckets, in the newest table that has one.
    pub(super) fn put(&mut self, place: Place) -> bool {
        (0..self.count()).rev().any(|index| self.put_in(index, place))
    }

    fn put_in(&mut self, index: usize, place: Place) -> bool {
        let buckets = self.buckets(self.tables[index], place);
        let free = buckets.into_iter().find_map(|bucket| bucket.find(self.slots.words(), FREE));
        if let Some(slot) = free {
            self.set(slot, place.fingerprint);
        }
        free.is_some()
    }

    /// Takes the fingerprint out of the newest table that has it.
    pub(super) fn take(&mut self, place: Place) -> bool {
        let found = |table: &Table| {
            let buckets = self.buckets(*table, place).into_iter();
            buckets.into_iter().find_map(|bucket| bucket.find(self.slots.words(), place.fingerprint))
        };
        let slot = self.tables.iter().rev().find_map(found);
        if let Some(slot) = slot {
            self.set(slot, FREE);
        }
        slot.is_some()
    }

    /// Makes room in the newest table by moving others to their other buckets, `moves` of them at most, or leaves everything as it was.
    ///
    /// From the first bucket on, slot 0, 1, 2 … in turn gives way. The order is RedisBloom's: with another, a filter grows at other items than there.
    pub(super) fn put_by_moving(&mut self, place: Place, moves: u32) -> bool {
        let Some(&newest) = self.tables.last() else { return false };
        let (mut bucket, mut homeless, mut victim) = (place.buckets[0], place.fingerprint, 0);
        for _ in 0..moves {
            let slot = self.bucket(newest, bucket).at + victim;
            homeless = self.set(slot, homeless);
            bucket = Place::of_bucket(bucket, homeless).buckets[1];
            if let Some(free) = self.bucket(newest, bucket).find(self.slots.words(), FREE) {
                self.set(free, homeless);
                return true;
            }
            victim = (victim + 1) % self.bucket_size;
        }
        for _ in 0..moves {
            victim = (victim + self.bucket_size - 1) % self.bucket_size;
            bucket = Place::of_bucket(bucket, homeless).buckets[1];
            let slot = self.bucket(newest, bucket).at + victim;
            homeless = self.set(slot, homeless);
        }
        false
    }

    /// Makes room in the newest table by the shortest chain of moves that there is within [`MAX_SEARCHED`] buckets, or leaves everything as it was.
    pub(super) fn put_by_searching(&mut self, place: Place) -> bool {
        let Some(&newest) = self.tables.last() else { return false };
        let mut seen = HashSet::new();
        let mut steps: Vec<Step> = Vec::new();
        for bucket in place.buckets.map(|bucket| bucket & newest.mask) {
            if seen.insert(bucket) {
                steps.push(Step { bucket, from: None });
            }
        }
        let mut at = 0;
        while let Some(&step) = steps.get(at) {
            let start = self.bucket(newest, step.bucket).at;
            for slot in start..start + self.bucket_size {
                let other = Place::of_bucket(step.bucket, self.get(slot)).buckets[1] & newest.mask;
                if let Some(free) = self.bucket(newest, other).find(self.slots.words(), FREE) {
                    self.move_along(&steps, at, slot, free, place.fingerprint);
                    return true;
                }
                if steps.len() < MAX_SEARCHED && seen.insert(other) {
                    steps.push(Step { bucket: other, from: Some((at, slot)) });
                }
            }
            at += 1;
        }
        false
    }

    /// Moves what is in `slot`, of a bucket of step `at`, to the free one, and so on back to a bucket that the search began with, where the fingerprint then has room.
    fn move_along(&mut self, steps: &[Step], mut at: usize, slot: usize, free: usize, fingerprint: u8) {
        let (mut slot, mut free) = (slot, free);
        loop {
            let moved = self.get(slot);
            self.set(free, moved);
            free = slot;
            let Some((before, from)) = steps[at].from else { break };
            (at, slot) = (before, from);
        }
        self.set(free, fingerprint);
    }

    /// Moves what is in table `index` into free slots of older ones, as far as there are any. Is it empty now,
    /// and was anything moved?
    fn move_to_older(&mut self, index: usize, not_full_from: &mut [u32]) -> (bool, bool) {
        let (start, length) = self.range(index);
        let (mut emptied, mut moved) = (true, false);
        for slot in start..start + length {
            let fingerprint = self.get(slot);
            if fingerprint == FREE {
                continue;
            }
            let place = Place::of_bucket(((slot - start) / self.bucket_size) as u64, fingerprint);
            // Older tables have as many buckets, or fewer by a power of two: a bucket's number says its number there.
            if self.put_before(index, place, not_full_from) {
                self.set(slot, FREE);
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
            let from = &mut not_full_from[(bucket & self.tables[index].mask) as usize];
            let is_full = |table: u32| {
                let bucket = self.bucket(self.tables[table as usize], bucket);
                !bucket.holds(self.slots.words(), FREE)
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
        let buckets = self.tables.last().map_or(0, |table| table.mask as usize + 1);
        let mut rooms = Vec::new();
        if self.count() >= MANY_TABLES && rooms.try_reserve_exact(buckets).is_ok() {
            rooms.resize(buckets, 0);
        }
        rooms
    }

    /// Slots taken in table `index`.
    pub(super) fn taken(&self, index: usize) -> u64 {
        let (start, length) = self.range(index);
        let free = Bucket { at: start, size: length }.count(self.slots.words(), FREE);
        length as u64 - free
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> u8 {
        gather(self.slots.words(), slot) as u8
    }

    /// Puts `byte` into a slot and says what was there.
    #[inline]
    fn set(&mut self, slot: usize, byte: u8) -> u8 {
        let (word, shift) = (&mut self.slots.words_mut()[slot / 8], slot % 8 * 8);
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
    let word = |index: usize| words.get(index).map_or(0, |word| word.load(Ordering::Relaxed));
    match at % 8 * 8 {
        0 => word(at / 8),
        shift => word(at / 8) >> shift | word(at / 8 + 1) << (64 - shift),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_found_and_counted_wherever_a_bucket_begins() {
        for size in [1_usize, 2, 3, 5, 7, 8, 9, 16, 23, 255] {
            let shape = ScalableCuckooShape::from_parts(8, size as u32, 20, 1).unwrap();
            let mut tables = Tables::new(&shape, 1).unwrap();
            for bucket in 0..8 {
                let here = tables.bucket(tables.tables[0], bucket);
                let mut plain = vec![0_u8; size];
                for (step, slot) in (0..size).map(|i| i * 7 % size).enumerate() {
                    let byte = [7, 0x80, 0xff, 1, 7][step % 5];
                    assert_eq!(tables.set(here.at + slot, byte), plain[slot]);
                    plain[slot] = byte;
                    for byte in [0, 1, 7, 0x7f, 0x80, 0xff] {
                        let words = tables.slots.words();
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
            assert_eq!(tables.slots.ones(), 0);
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
                for slot in 0..quick.len() {
                    random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                    if (random >> 40) % 10 < share {
                        quick.set(slot, (random >> 48) as u8);
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
        (0..tables.len()).for_each(|slot| {
            tables.set(slot, 7);
        });
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
        assert_eq!(tables.slots.ones(), 0);
    }
}
