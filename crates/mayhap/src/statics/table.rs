//! The common part of xor and binary fuse filters: shards of fingerprints in one array. Three of them decide
//! about an item.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use super::fingerprint::{self, Fingerprint, per_word};
use super::graph::{Graph, OwnGraph, Sharded, seed_of};
use super::options::BuildOptions;
use super::peel::{Twins, Workbench};
use super::shards::{dedup_parts, partition, partition_into_shards, shard_of, side_by_side};
use super::{key, reserve};
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::codec::{Body, DecodeError, Header};
use crate::error::BuildError;
use crate::hash::{HashScheme, ItemHash};
use crate::simd::fuse::{difference, prefetch_slot};
use crate::sizing::fuse::{fullest_shard, rate};
use crate::sizing::{MAX_BITS, check_capacity};
use crate::store::{LINE_BYTES, Lines};

/// The number of seeds tried before a set is declared unsolvable. Most sets need one.
pub(crate) const MAX_ATTEMPTS: u32 = 128;

/// Fingerprints in their slots.
pub(crate) struct StaticTable<F, G> {
    places: Sharded<G>,
    /// Has no lines if there are no items.
    lines: Lines,
    /// The number of items it was made for ...
    items: u64,
    /// ... and, if they were counted, the number inserted; otherwise 0.
    inserted: u64,
    /// The number of the seed in the header.
    seed_number: u64,
    fingerprint: PhantomData<F>,
}

impl<F: Fingerprint, G: OwnGraph> StaticTable<F, G> {
    pub(super) fn empty() -> Result<Self, BuildError> {
        Ok(Self::of_counted(sharded::<F, G>(0, 0, 0)?, Lines::zeroed(0)?, 0, 0))
    }

    fn of_counted(places: Sharded<G>, lines: Lines, items: u64, attempt: u32) -> Self {
        Self::of_parts(places, lines, [items, items], attempt.into())
    }

    /// Builds a table from these keys, which may contain duplicates.
    pub(crate) fn build(mut keys: Vec<u64>, options: &BuildOptions) -> Result<Self, BuildError> {
        let mut twins = Twins::Refuse;
        let mut attempt = 0;
        loop {
            if keys.is_empty() {
                return Self::empty();
            }
            let items = keys.len() as u64;
            let mut bits = options.shard_bits(items);
            let mut parts = partition_into_shards(&mut keys, bits, options.threads_for(1 << bits))?;
            let mut fullest = parts.iter().map(|part| part.len() as u64).max().unwrap_or(0);
            if too_uneven(items, fullest, bits) {
                (bits, fullest) = (0, items);
                parts = partition(&mut keys, 1, |_| 0);
            }
            let places = sharded::<F, G>(items, fullest, bits)?;
            let mut lines = Lines::zeroed(lines_of::<F>(places.slots()))?;
            while attempt < MAX_ATTEMPTS {
                let places = places.with_seed(seed_of(attempt));
                if fill::<F, G>(&places, &keys, &parts, lines.words_mut(), options, twins)? {
                    return Ok(Self::of_counted(places, lines, items, attempt));
                }
                // Duplicates never solve. They are only looked for now, because most sets have none.
                if twins == Twins::Refuse {
                    twins = Twins::Merge;
                    dedup_parts(&mut keys, &parts, options.threads_for(parts.len()))?;
                    if (keys.len() as u64) < items {
                        break;
                    }
                }
                attempt += 1;
            }
            if attempt == MAX_ATTEMPTS {
                return Err(BuildError::Unsolvable { attempts: attempt, items });
            }
        }
    }

    /// Builds the same table from items that can be iterated several times: first to count them, then in
    /// `passes` passes, each of which keeps only the keys of its own shards.
    pub(crate) fn build_in_passes<H: Hashed, I: IntoIterator<Item = H>>(
        source: impl Fn() -> I,
        passes: usize,
        options: &BuildOptions,
        scheme: &HashScheme,
    ) -> Result<Self, BuildError> {
        /// The base-2 logarithm of the number of shards that are counted separately.
        const COUNTED_BITS: u32 = 12;
        let mut counts = vec![0_u64; 1 << COUNTED_BITS];
        for item in source() {
            counts[shard_of(key(item.hashed(scheme)), COUNTED_BITS)] += 1;
        }
        let items = counts.iter().sum();
        if items == 0 {
            return Self::empty();
        }
        check_capacity(items)?;
        let mut bits = options.shard_bits(items).min(COUNTED_BITS);
        let mut counts: Vec<u64> =
            counts.chunks(1 << (COUNTED_BITS - bits)).map(|finer| finer.iter().sum()).collect();
        let mut fullest = counts.iter().copied().max().unwrap_or(0);
        if too_uneven(items, fullest, bits) {
            (bits, counts, fullest) = (0, vec![items], items);
        }
        let places = sharded::<F, G>(items, fullest, bits)?;
        let mut lines = Lines::zeroed(lines_of::<F>(places.slots()))?;
        let shards_per_pass = counts.len().div_ceil(passes.max(1));
        for attempt in 0..MAX_ATTEMPTS {
            let places = places.with_seed(seed_of(attempt));
            let words_per_shard = words_of::<F>(places.slots_per_shard());
            let mut rest = lines.words_mut();
            let (mut distinct, mut solved) = (0, true);
            for (pass, counts) in counts.chunks(shards_per_pass).enumerate() {
                let shards = pass * shards_per_pass..pass * shards_per_pass + counts.len();
                let mut keys = keys_of_shards(source(), scheme, shards.clone(), bits, counts.iter().sum())?;
                let mut parts = partition(&mut keys, counts.len(), |key| shard_of(key, bits) - shards.start);
                let words = rest.split_off_mut(..(words_per_shard * counts.len()).min(rest.len()));
                let words = words.unwrap_or_default();
                solved = fill::<F, G>(&places, &keys, &parts, words, options, Twins::Refuse)?;
                if !solved {
                    parts = dedup_parts(&mut keys, &parts, options.threads_for(parts.len()))?;
                    solved = fill::<F, G>(&places, &keys, &parts, words, options, Twins::Merge)?;
                }
                if !solved {
                    break;
                }
                distinct += keys.len() as u64;
            }
            if solved {
                return Ok(Self::of_counted(places, lines, distinct, attempt));
            }
        }
        Err(BuildError::Unsolvable { attempts: MAX_ATTEMPTS, items })
    }
}

impl<F: Fingerprint, G: Graph> StaticTable<F, G> {
    /// Assembles a table of these slots, made for `items` items, of which `inserted` were counted. There are
    /// lines for all slots, or none if it was made for no items.
    pub(super) fn of_parts(
        places: Sharded<G>,
        lines: Lines,
        [items, inserted]: [u64; 2],
        seed_number: u64,
    ) -> Self {
        Self { places, lines, items, inserted, seed_number, fingerprint: PhantomData }
    }

    /// Zero: maybe a member. Another number: certainly not. `None` for an empty table, which has no lines and
    /// so no slots.
    #[inline(always)]
    pub(crate) fn difference(&self, hash: ItemHash) -> Option<F> {
        difference::<F, G>(self.lines.words(), &self.places, key(hash))
    }

    /// Looks up many items. The slots of one chunk are loading while the chunk before it is answered.
    #[inline(always)]
    pub(crate) fn may_contain_batch<H: Hashed>(
        &self,
        scheme: &HashScheme,
        items: &[H],
        answers: &mut Answers,
    ) {
        /// Each item loads three lines.
        const CHUNK: usize = 64;
        answers.reset(items.len());
        if self.items == 0 {
            return;
        }
        let (table, words) = (self.places, self.lines.words());
        let start = |hash| {
            let key = key(hash);
            let (places, _) = table.places(key);
            places.into_iter().for_each(|place| prefetch_slot::<F>(words, place));
            key
        };
        let bits = answers.words_mut();
        hash_one_chunk_behind::<CHUNK, _, _>(items, scheme, start, |first, keys| {
            let mut chunk = 0;
            for (bit, &key) in keys.iter().enumerate() {
                let there = difference::<F, G>(words, &table, key) == Some(F::default());
                chunk |= u64::from(there) << bit;
            }
            bits[first / CHUNK] = chunk;
        });
    }

    pub(crate) const fn items(&self) -> u64 {
        self.items
    }

    pub(crate) const fn inserted(&self) -> u64 {
        self.inserted
    }

    pub(crate) const fn places(&self) -> &Sharded<G> {
        &self.places
    }

    pub(crate) const fn lines(&self) -> &Lines {
        &self.lines
    }

    pub(crate) fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { lines: self.lines.try_clone()?, ..*self })
    }

    /// Fills in the parts of the header that describe the table.
    pub(crate) fn describe(&self, header: &mut Header) {
        header.capacity = self.items;
        header.inserted = self.inserted;
        header.target_fpr = rate(F::BITS);
        let [first, second] = self.places.graph().parts();
        let shard_bits = u64::from(self.places.shard_bits());
        let numbers = [u64::from(F::BITS), self.seed_number, shard_bits, first, second];
        header.parameters[..numbers.len()].copy_from_slice(&numbers);
    }

    /// Returns the table that a header describes, after checking it.
    pub(crate) fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        let bad = |field, got| DecodeError::BadField { field, got };
        header.expect_parameters(5)?;
        let [width, seed_number, shard_bits, first, second, ..] = header.parameters;
        if width != u64::from(F::BITS) {
            return Err(bad("fingerprint bits", width));
        }
        let seed = G::seed(seed_number).ok_or(bad("attempt", seed_number))?;
        let (items, inserted) = (header.capacity, header.inserted);
        if items != 0 || !G::COUNTED {
            check_capacity(items)?;
        }
        if inserted != items && (G::COUNTED || inserted != 0) {
            return Err(bad("inserted", inserted));
        }
        if header.target_fpr.to_bits() != rate(F::BITS).to_bits() {
            return Err(bad("target rate", header.target_fpr.to_bits()));
        }
        let graph = G::from_parts([first, second]).ok_or(bad("segments", first))?;
        let shard_bits = u32::try_from(shard_bits).map_err(|_| bad("shards", shard_bits))?;
        let places =
            Sharded::new(graph, shard_bits, seed, F::BITS).ok_or(bad("shards", u64::from(shard_bits)))?;
        if items > places.slots() {
            return Err(bad("capacity", items));
        }
        let lines = if items == 0 { 0 } else { lines_of::<F>(places.slots()) };
        let lines = body.lines(lines as u64 * LINE_BYTES as u64)?;
        if items != 0 {
            let end = places.slots() * u64::from(F::BITS);
            lines.check_zero_from(end).map_err(|bit| DecodeError::StrayBit { bit })?;
        }
        Ok(Self::of_parts(places, lines, [items, inserted], seed_number))
    }
}

/// Returns whether one shard is so much fuller than chance allows that sizing all shards for it would waste
/// memory. The keys were then chosen on purpose, and one shard is better.
fn too_uneven(items: u64, fullest: u64, bits: u32) -> bool {
    let expected = fullest_shard(items, bits);
    fullest > expected + expected / 8
}

/// Returns the shards for `items` items of which the fullest shard has `fullest`.
pub(crate) fn sharded<F: Fingerprint, G: Graph>(
    items: u64,
    fullest: u64,
    bits: u32,
) -> Result<Sharded<G>, BuildError> {
    sharded_for(items, fullest, bits, F::BITS)
}

pub(crate) fn sharded_for<G: Graph>(
    items: u64,
    fullest: u64,
    bits: u32,
    width: u32,
) -> Result<Sharded<G>, BuildError> {
    // The size follows from the number of items, so that it is known beforehand. Exception: a set that is
    // spread very unevenly.
    let graph = G::for_items(fullest.max(fullest_shard(items, bits)));
    let too_large = || BuildError::TooLarge {
        bytes: (u128::from(graph.slots()) << bits)
            .saturating_mul(u128::from(width / 8))
            .min(u128::from(u64::MAX)) as u64,
        limit: MAX_BITS / 8,
    };
    Sharded::new(graph, bits, seed_of(0), width).ok_or_else(too_large)
}

fn words_of<F: Fingerprint>(slots: u64) -> usize {
    usize::try_from(slots.div_ceil(per_word::<F>() as u64)).unwrap_or(usize::MAX)
}

/// Returns the number of lines for this number of slots.
pub(crate) fn lines_of<F: Fingerprint>(slots: u64) -> usize {
    words_of::<F>(slots).div_ceil(LINE_BYTES / 8)
}

/// Builds the shards of `parts` into `words`, several in parallel. `false` if one of them has no solution.
fn fill<F: Fingerprint, G: OwnGraph>(
    places: &Sharded<G>,
    keys: &[u64],
    parts: &[Range<usize>],
    words: &mut [u64],
    options: &BuildOptions,
    twins: Twins,
) -> Result<bool, BuildError> {
    let shards = words.chunks_mut(words_of::<F>(places.slots_per_shard())).zip(parts);
    side_by_side(options.threads_for(parts.len()), shards, Workbench::<F>::new, |bench, (words, part)| {
        let solved = bench.solve(places.graph(), &keys[part.clone()], places.seed(), twins)?;
        let Some(fingerprints) = solved else { return Ok(false) };
        fingerprint::pack(fingerprints, words);
        Ok(true)
    })
}

/// Returns the keys of the items in some of the shards.
fn keys_of_shards<H: Hashed>(
    items: impl IntoIterator<Item = H>,
    scheme: &HashScheme,
    shards: Range<usize>,
    bits: u32,
    expected: u64,
) -> Result<Vec<u64>, BuildError> {
    let mut keys = Vec::new();
    reserve(&mut keys, usize::try_from(expected).unwrap_or(usize::MAX))?;
    for item in items {
        let key = key(item.hashed(scheme));
        if shards.contains(&shard_of(key, bits)) {
            if keys.len() == keys.capacity() {
                let more = keys.len().max(1024);
                reserve(&mut keys, more)?;
            }
            keys.push(key);
        }
    }
    Ok(keys)
}

impl<F, G: PartialEq> PartialEq for StaticTable<F, G> {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |table: &Self| (table.items, table.inserted, table.seed_number);
        numbers(self) == numbers(other) && self.places == other.places && self.lines == other.lines
    }
}

impl<F: Fingerprint, G: Graph> fmt::Debug for StaticTable<F, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StaticTable({} items in {} slots of {} bits)", self.items, self.places.slots(), F::BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statics::graph::FuseGraph;

    /// A graph with one slot too few for every three items: it never has a solution.
    #[derive(Clone, Copy)]
    struct Cramped(FuseGraph);

    impl OwnGraph for Cramped {
        const LOCAL: bool = true;
    }

    impl Graph for Cramped {
        fn for_items(items: u64) -> Self {
            Self(FuseGraph::for_items(items * 2 / 3))
        }

        fn from_parts(parts: [u64; 2]) -> Option<Self> {
            FuseGraph::from_parts(parts).map(Self)
        }

        fn parts(&self) -> [u64; 2] {
            self.0.parts()
        }

        fn slots(&self) -> u64 {
            self.0.slots()
        }

        fn places(&self, mixed: u64) -> [usize; 3] {
            self.0.places(mixed)
        }
    }

    fn keys(count: u64) -> Vec<u64> {
        (0..count).map(|i| ItemHash::from_unmixed(i).low).collect()
    }

    #[test]
    fn an_unsolvable_set_is_an_error() {
        let twice = [keys(5_000), keys(5_000)].concat();
        let unsolvable = BuildError::Unsolvable { attempts: MAX_ATTEMPTS, items: 5_000 };
        for per_shard in [1_000, 1_000_000] {
            let options = BuildOptions::default().items_per_shard(per_shard).threads(2);
            let built = StaticTable::<u8, Cramped>::build(twice.clone(), &options);
            assert_eq!(built.err(), Some(unsolvable.clone()));
            let source = || (0..5_000_u64).map(ItemHash::from_unmixed);
            let built =
                StaticTable::<u16, Cramped>::build_in_passes(source, 2, &options, &HashScheme::fast(0));
            assert_eq!(built.err(), Some(unsolvable.clone()));
            assert!(
                StaticTable::<u8, FuseGraph>::build(twice.clone(), &options).is_ok(),
                "the true graph has room"
            );
        }
    }

    #[test]
    fn keys_forged_for_one_seed_get_another() {
        // The first seed mixes these to 0, 1, 2, …: all differ only in the byte that does not place them.
        let inverse = 0xf1de_83e1_9937_733d_u64;
        let forged: Vec<u64> = (0..200).map(|i| inverse.wrapping_mul(i)).collect();
        assert!((0..200).zip(&forged).all(|(i, &key)| super::super::graph::mix(key, seed_of(0)) == i));
        let table = StaticTable::<u8, FuseGraph>::build(forged.clone(), &BuildOptions::default()).unwrap();
        assert!(table.seed_number > 0 && table.items() == 200);
        let hash = |low| ItemHash { low, high: 0 };
        assert!(forged.iter().all(|&key| table.difference(hash(key)) == Some(0)));
    }
}
