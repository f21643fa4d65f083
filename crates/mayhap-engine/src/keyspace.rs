//! All names. They are divided into shards, so that threads rarely meet, and into small segments, so that
//! growing never blocks for long.

use hashbrown::HashTable;
use parking_lot::RwLock;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::entry::{Entry, Now};

/// The number of shards: far more than there are threads.
const SHARD_BITS: u32 = 10;
/// A shard has up to 2^30 segments.
const MAX_DEPTH: u32 = 30;
/// The number of bits of a [`Position`].
const POSITION_BITS: u32 = SHARD_BITS + MAX_DEPTH;
/// The maximum number of names in a segment, which fill a table of 64 slots. One more, and the segment is
/// split.
const SEGMENT_NAMES: usize = 56;

/// All names.
///
/// ```text
/// hash of a name:  shard (10 bits) │ directory (as many bits as needed) │ …
/// shard:           directory ─▶ segments of up to 56 names, each one range of hashes
/// ```
///
/// The segments are in the order of the hashes, which never change. A walk from the first range to the last
/// therefore returns every name that exists all the time exactly once, even if segments are split meanwhile.
#[derive(Debug)]
pub(crate) struct Keyspace {
    shards: Box<[RwLock<Shard>]>,
    /// Secret, so that clients cannot choose names that collide.
    seed: u64,
}

/// A position among all hashes: their 40 highest bits. It fits the numbers of JavaScript, which some clients
/// use for cursors.
pub(crate) type Position = u64;

/// One past the last [`Position`].
pub(crate) const END: Position = 1 << POSITION_BITS;

#[derive(Debug)]
pub(crate) struct Shard {
    /// The segment for each value of the next hash bits. There are 2^depth entries.
    directory: Vec<u32>,
    segments: Vec<Segment>,
    names: usize,
}

#[derive(Debug, Default)]
struct Segment {
    /// The number of bits after those of the shard that all hashes in it have in common.
    depth: u32,
    names: HashTable<Entry>,
}

impl Default for Shard {
    fn default() -> Self {
        Self { directory: vec![0], segments: vec![Segment::default()], names: 0 }
    }
}

impl Shard {
    fn depth(&self) -> u32 {
        self.directory.len().trailing_zeros()
    }

    /// The index of a hash in the directory.
    fn index(&self, hash: u64) -> usize {
        ((hash << SHARD_BITS) >> 1 >> (63 - self.depth())) as usize
    }

    fn segment(&self, hash: u64) -> &HashTable<Entry> {
        &self.segments[self.directory[self.index(hash)] as usize].names
    }

    fn segment_mut(&mut self, hash: u64) -> &mut HashTable<Entry> {
        let index = self.index(hash);
        &mut self.segments[self.directory[index] as usize].names
    }

    /// Splits segments until that of `hash` has room.
    fn make_room(&mut self, hash: u64, hash_of: impl Fn(&Entry) -> u64) {
        loop {
            let index = self.index(hash);
            let segment = &self.segments[self.directory[index] as usize];
            if segment.names.len() < SEGMENT_NAMES || segment.depth == MAX_DEPTH {
                return;
            }
            if segment.depth == self.depth() {
                self.directory = self.directory.iter().flat_map(|&segment| [segment, segment]).collect();
            } else {
                self.split(index, &hash_of);
            }
        }
    }

    /// Splits the segment at this index of the directory, which has more than one entry there.
    fn split(&mut self, index: usize, hash_of: impl Fn(&Entry) -> u64) {
        let old = self.directory[index];
        let new = self.segments.len() as u32;
        let segment = &mut self.segments[old as usize];
        segment.depth += 1;
        let depth = segment.depth;
        let bit = 1 << (64 - SHARD_BITS - depth);
        let names = std::mem::take(&mut segment.names);
        let upper = names.iter().filter(|entry| hash_of(entry) & bit != 0).count();
        let mut halves = [HashTable::with_capacity(names.len() - upper), HashTable::with_capacity(upper)];
        for entry in names {
            let hash = hash_of(&entry);
            let half = &mut halves[usize::from(hash & bit != 0)];
            half.insert_unique(within(hash), entry, |entry| within(hash_of(entry)));
        }
        let [lower, upper] = halves;
        segment.names = lower;
        self.segments.push(Segment { depth, names: upper });
        // The range of the upper half begins in the middle of the old one.
        let places = 1 << (self.depth() - depth);
        let first = (index & !(2 * places - 1)) + places;
        self.directory[first..first + places].fill(new);
    }

    /// Takes all names out.
    fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

/// The table of a segment uses other bits of the hash than those that its names have in common.
const fn within(hash: u64) -> u64 {
    hash.rotate_left(32)
}

impl Keyspace {
    /// An empty keyspace that distributes its names by `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { shards: (0..1 << SHARD_BITS).map(|_| RwLock::default()).collect(), seed }
    }

    fn hash(&self, name: &[u8]) -> u64 {
        xxh3_64_with_seed(name, self.seed)
    }

    fn shard(&self, hash: u64) -> &RwLock<Shard> {
        &self.shards[(hash >> (64 - SHARD_BITS)) as usize]
    }

    /// Returns the entry of `name`, if it exists.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Entry> {
        let hash = self.hash(name);
        self.shard(hash).read().segment(hash).find(within(hash), |entry| entry.name() == name).cloned()
    }

    /// Returns the entry of `name`. Creates an empty one if it does not exist.
    pub(crate) fn get_or_make(&self, name: &[u8], now: Now) -> Entry {
        if let Some(entry) = self.get(name) {
            return entry;
        }
        let hash = self.hash(name);
        let hash_of = |entry: &Entry| self.hash(entry.name());
        let mut shard = self.shard(hash).write();
        if let Some(entry) = shard.segment(hash).find(within(hash), |entry| entry.name() == name) {
            return entry.clone();
        }
        let entry = Entry::new(name, now);
        shard.make_room(hash, hash_of);
        shard.names += 1;
        shard.segment_mut(hash).insert_unique(within(hash), entry.clone(), |entry| within(hash_of(entry)));
        entry
    }

    /// Removes `entry`. The caller holds it exclusively.
    pub(crate) fn unlink(&self, entry: &Entry) {
        let hash = self.hash(entry.name());
        let mut shard = self.shard(hash).write();
        let segment = shard.segment_mut(hash);
        let Ok(found) = segment.find_entry(within(hash), |there| there == entry) else { return };
        found.remove();
        if segment.is_empty() {
            *segment = HashTable::new();
        } else if segment.len() * 4 < segment.capacity() {
            segment.shrink_to(segment.len() * 2, |entry| within(self.hash(entry.name())));
        }
        shard.names -= 1;
        if shard.names == 0 {
            shard.take();
        }
    }

    /// Appends the names in the range of hashes that contains `from`, and returns the start of the next
    /// range.
    pub(crate) fn stretch(&self, from: Position, names: &mut Vec<Entry>) -> Position {
        debug_assert!(from < END);
        let number = (from >> MAX_DEPTH) as usize;
        let shard = self.shards[number].read();
        let index = ((from & ((1 << MAX_DEPTH) - 1)) >> (MAX_DEPTH - shard.depth())) as usize;
        let segment = &shard.segments[shard.directory[index] as usize];
        names.extend(segment.names.iter().cloned());
        let places = 1 << (shard.depth() - segment.depth);
        let next = (index & !(places - 1)) + places;
        ((number as u64) << MAX_DEPTH) + ((next as u64) << (MAX_DEPTH - shard.depth()))
    }

    /// Removes all names. No other thread may use any of them.
    pub(crate) fn take_all(&self) -> Vec<Shard> {
        self.shards.iter().map(|shard| shard.write().take()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const NOW: Now = Now { ms: 0, start_ms: 0 };

    fn name(number: u32) -> Vec<u8> {
        format!("name:{number}").into_bytes()
    }

    fn walk(keyspace: &Keyspace) -> Vec<Vec<u8>> {
        let (mut at, mut names) = (0, Vec::new());
        while at < END {
            at = keyspace.stretch(at, &mut names);
        }
        names.iter().map(|entry| entry.name().to_vec()).collect()
    }

    #[test]
    fn every_name_is_found_and_walked_once() {
        let keyspace = Keyspace::new(7);
        const NAMES: u32 = 300_000;
        for number in 0..NAMES {
            let made = keyspace.get_or_make(&name(number), NOW);
            assert_eq!(keyspace.get_or_make(&name(number), NOW), made);
        }
        let depths: Vec<u32> = keyspace.shards.iter().map(|shard| shard.read().depth()).collect();
        assert!(depths.iter().all(|&depth| depth >= 2), "the segments were not split: {depths:?}");
        assert!((0..NAMES).all(|number| keyspace.get(&name(number)).unwrap().name() == name(number)));
        assert!(keyspace.get(b"name:").is_none());
        let walked = walk(&keyspace);
        assert_eq!(walked.len(), NAMES as usize);
        assert_eq!(walked.into_iter().collect::<HashSet<_>>().len(), NAMES as usize);
        for number in 0..NAMES {
            keyspace.unlink(&keyspace.get(&name(number)).unwrap());
        }
        assert!(walk(&keyspace).is_empty());
        assert!(keyspace.shards.iter().all(|shard| shard.read().segments.len() == 1));
    }

    #[test]
    fn a_walk_returns_every_lasting_name_while_others_come_and_go() {
        let keyspace = Keyspace::new(7);
        (0..2_000).for_each(|number| drop(keyspace.get_or_make(&name(number), NOW)));
        let (mut at, mut steps, mut walked) = (0, 0_u32, Vec::new());
        while at < END {
            at = keyspace.stretch(at, &mut walked);
            steps += 1;
            if steps < 1_000 {
                (0..200).for_each(|i| drop(keyspace.get_or_make(&name(10_000 + steps * 200 + i), NOW)));
            }
            if steps > 500 {
                for i in 0..300 {
                    if let Some(entry) = keyspace.get(&name(10_000 + (steps - 500) * 200 + i)) {
                        keyspace.unlink(&entry);
                    }
                }
            }
        }
        assert!(steps > 1_500, "nothing was split: {steps} steps");
        let walked: Vec<&[u8]> = walked.iter().map(Entry::name).collect();
        let distinct: HashSet<&[u8]> = walked.iter().copied().collect();
        assert!((0..2_000).all(|number| distinct.contains(&name(number)[..])));
        assert_eq!(walked.iter().filter(|walked| walked.len() <= name(1_999).len()).count(), 2_000);
    }
}
