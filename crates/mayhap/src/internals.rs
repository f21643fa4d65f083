//! Internals of filters, for the crates that read and write other programs' formats. **Not a public interface**: any release may change
//! or remove anything here, without a note in the changelog. Do not use it outside this repository.
//!
//! The types of this crate keep their promises only if callers follow the comments of these functions. Nothing here can break memory
//! safety.

use crate::answers::Answers;
use crate::error::BuildError;
use crate::hash::{ForeignHash, ForeignScheme, HashScheme, ItemHash};
use crate::item::{ItemEncoding, ItemValue};

pub use crate::probe::Positions;
pub use crate::store::Lines;

/// The number of bytes in a line of memory.
pub const LINE_BYTES: usize = crate::store::LINE_BYTES;
/// The number of words in a line of memory.
pub const WORDS_PER_LINE: usize = crate::store::WORDS_PER_LINE;
/// The highest number of insertions that a filter counts.
pub const MAX_INSERTED: u64 = crate::codec::MAX_INSERTED;

/// Returns `capacity` if a filter can be sized for it.
pub fn check_capacity(capacity: u64) -> Result<u64, BuildError> {
    crate::sizing::check_capacity(capacity)
}

/// Returns `rate` if a filter can promise it.
pub fn check_rate(rate: f64) -> Result<f64, BuildError> {
    crate::sizing::check_rate(rate)
}

/// Returns `probes` if a classic filter can have this many.
pub fn check_probes(probes: u32) -> Result<u32, BuildError> {
    crate::sizing::check_probes(probes)
}

/// Returns `Ok` if `bytes` fit in `limit_bytes`.
pub fn check_memory(bytes: u64, limit_bytes: u64) -> Result<(), BuildError> {
    crate::sizing::check_memory(bytes, limit_bytes)
}

/// Returns the scheme of filters with this hash function and item encoding.
#[must_use]
pub fn foreign_scheme(hash: ForeignHash, items: ItemEncoding) -> HashScheme {
    ForeignScheme::new(hash, items).into()
}

/// Returns the low half of a hash. For functions of at most 64 bits this is the whole hash.
#[must_use]
pub const fn low_half(hash: ItemHash) -> u64 {
    hash.low
}

/// Passes the bytes of `value` in this encoding to `read`. If the encoding has no bytes for the value, `read` gets a mark and then the
/// plain bytes.
pub fn encode_with<R>(encoding: ItemEncoding, value: ItemValue<'_>, read: impl FnOnce(&[u8]) -> R) -> R {
    encoding.encode_with(value, read)
}

/// Resets `answers` to `len` times *no*.
pub fn reset_answers(answers: &mut Answers, len: usize) {
    answers.reset(len);
}

/// Sets answer `index` to *maybe*.
pub fn answer_maybe(answers: &mut Answers, index: usize) {
    answers.set(index);
}

/// Classic filters.
pub mod bloom {
    use super::{BuildError, HashScheme, ItemHash, Lines, Positions};
    use crate::bloom::{Bloom, BloomShape};
    use crate::probe::BloomPlacement;

    /// Checks all numbers of a shape and returns the shape.
    pub fn from_parts(
        bits: u64,
        probes: u32,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<BloomShape, BuildError> {
        BloomShape::from_parts(bits, probes, capacity, target_fpr)
    }

    /// Returns the shape of another program's filter that does not record its capacity. The capacity is the number of items that fill
    /// half the bits.
    pub fn of_unknown_capacity(bits: u64, probes: u32) -> Result<BloomShape, BuildError> {
        BloomShape::of_unknown_capacity(bits, probes)
    }

    /// Returns a shape whose number of probes this placement allows.
    pub fn of_placement(
        placement: BloomPlacement,
        bits: u64,
        probes: u32,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<BloomShape, BuildError> {
        BloomShape::of_placement(placement, bits, probes, capacity, target_fpr)
    }

    /// Returns the number of 64-bit words that hold the bits.
    #[must_use]
    pub const fn words(shape: &BloomShape) -> u64 {
        shape.words()
    }

    /// Returns the number of lines that hold the bits.
    #[must_use]
    pub fn lines(shape: &BloomShape) -> usize {
        shape.lines()
    }

    /// Returns an empty filter with another program's placement.
    pub fn placed(
        shape: BloomShape,
        scheme: HashScheme,
        placement: BloomPlacement,
    ) -> Result<Bloom, BuildError> {
        Bloom::placed(shape, scheme, placement)
    }

    /// Returns a filter with the bits that another program set. `bits` has the length of the shape and is clear after its last bit.
    #[must_use]
    pub fn of_placed_bits(
        shape: BloomShape,
        scheme: HashScheme,
        placement: BloomPlacement,
        bits: Lines,
    ) -> Bloom {
        Bloom::of_placed_bits(shape, scheme, placement, bits)
    }

    /// Returns the same filter with this number of insertions.
    #[must_use]
    pub fn with_count(filter: Bloom, inserted: u64) -> Bloom {
        filter.with_count(inserted)
    }

    /// Returns the bits.
    #[must_use]
    pub const fn bits(filter: &Bloom) -> &Lines {
        filter.bits()
    }

    /// Returns the bits. The unused bits after the last one must stay clear.
    pub const fn bits_mut(filter: &mut Bloom) -> &mut Lines {
        filter.bits_mut()
    }

    /// Returns the positions of an item's bits, `probes` of them, at least one, among `bits` bits, in the order in which the other
    /// program sets them.
    #[must_use]
    pub fn positions(placement: BloomPlacement, hash: ItemHash, bits: u64, probes: u32) -> Positions {
        Positions::new(placement, hash, bits, probes)
    }
}

/// Blocked filters.
pub mod blocked {
    use super::{BuildError, HashScheme, ItemHash, Lines};
    use crate::blocked::{BlockPlace, BlockedBloom, BlockedPlacement, BlockedShape, place};
    use crate::simd;

    /// The maximum number of blocks in a Parquet filter.
    pub const MAX_PARQUET_BLOCKS: u64 = crate::blocked::MAX_PARQUET_BLOCKS;

    /// Returns the shape of another program's split blocks. `meant_for` has the number of items and the rate, if the program records
    /// them.
    pub fn of_split_blocks(blocks: u64, meant_for: Option<(u64, f64)>) -> Result<BlockedShape, BuildError> {
        BlockedShape::of_split_blocks(blocks, meant_for)
    }

    /// Returns the shape of RocksDB's lines for a known number of keys.
    pub fn rocksdb_lines(
        blocks: u64,
        probes: u32,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<BlockedShape, BuildError> {
        BlockedShape::rocksdb_lines(blocks, probes, capacity, target_fpr)
    }

    /// Returns the shape of RocksDB's lines for an unknown number of keys: RocksDB's filters do not record it.
    pub fn rocksdb_lines_of_unknown_capacity(blocks: u64, probes: u32) -> Result<BlockedShape, BuildError> {
        BlockedShape::rocksdb_lines_of_unknown_capacity(blocks, probes)
    }

    /// Returns the same shape. Its target is now the rate that it has at capacity.
    #[must_use]
    pub fn promising_what_it_keeps(shape: BlockedShape) -> BlockedShape {
        shape.promising_what_it_keeps()
    }

    /// Returns an empty filter with this placement.
    pub fn placed(
        shape: BlockedShape,
        scheme: HashScheme,
        placement: BlockedPlacement,
    ) -> Result<BlockedBloom, BuildError> {
        BlockedBloom::placed(shape, scheme, placement)
    }

    /// Returns a filter with the blocks that another program filled. `words` has the length of the shape and is clear after its last
    /// block.
    #[must_use]
    pub fn of_placed_blocks(
        shape: BlockedShape,
        scheme: HashScheme,
        placement: BlockedPlacement,
        words: Lines,
    ) -> BlockedBloom {
        BlockedBloom::of_placed_blocks(shape, scheme, placement, words)
    }

    /// Returns the words of all blocks.
    #[must_use]
    pub const fn words(filter: &BlockedBloom) -> &Lines {
        filter.words()
    }

    /// Returns the index of the word at which an item's split block begins in a Parquet filter of `blocks` blocks.
    #[must_use]
    pub fn parquet_word(hash: ItemHash, blocks: u64) -> usize {
        place::parquet(hash, blocks).word
    }

    /// Returns whether the bits of an item are set in its split block, the first of `block`.
    #[must_use]
    pub fn parquet_block_covers(hash: ItemHash, block: &Lines) -> bool {
        let place = BlockPlace { word: 0, ..place::parquet(hash, 1) };
        simd::split_covers_chunk(block.words(), &[place]) == 1
    }
}

/// Filters that grow layer by layer.
pub mod scalable {
    use super::{BuildError, HashScheme};
    use crate::bloom::{Bloom, BloomShape};
    use crate::scalable::{self, ScalableBloom, ScalableShape};

    pub use crate::scalable::Plan;

    /// The rate of every RedisBloom layer relative to the one before, and of the first relative to the promised rate.
    pub const REDIS_TIGHTENING: f64 = scalable::REDIS_TIGHTENING;
    /// The tightening that takes the least memory over many growths.
    pub const COMPACT_TIGHTENING: f64 = scalable::COMPACT_TIGHTENING;

    /// Returns the rule that sizes the layers.
    #[must_use]
    pub const fn plan(shape: &ScalableShape) -> Plan {
        shape.plan()
    }

    /// Returns the shape of a RedisBloom filter.
    pub fn of_redis_bloom(
        plan: Plan,
        entries: u64,
        target_fpr: f64,
        growth: u32,
        tightening: f64,
    ) -> Result<ScalableShape, BuildError> {
        ScalableShape::of_redis_bloom(plan, entries, target_fpr, growth, tightening)
    }

    /// Returns a filter with these layers.
    #[must_use]
    pub fn of_layers(shape: ScalableShape, scheme: HashScheme, layers: Vec<Bloom>) -> ScalableBloom {
        ScalableBloom::of_layers(shape, scheme, layers)
    }

    /// Returns the layers, oldest first.
    pub fn layers_mut(filter: &mut ScalableBloom) -> &mut [Bloom] {
        filter.layers_mut()
    }

    /// Returns the shape of a layer as RedisBloom sizes it.
    pub fn redis_layer(entries: u64, error: f64) -> Result<BloomShape, BuildError> {
        scalable::redis_layer(entries, error)
    }

    /// Returns the bits per entry that RedisBloom stores for this error and number of probes.
    #[must_use]
    pub fn redis_bits_for_probes(error: f64, probes: u32) -> Option<f64> {
        scalable::redis_bits_for_probes(error, probes)
    }

    /// Returns whether this error has these bits per entry, up to rounding in the last digits of a logarithm.
    #[must_use]
    pub fn redis_bits_agree(error: f64, bits_per_entry: f64) -> bool {
        scalable::redis_bits_agree(error, bits_per_entry)
    }

    /// Returns the number of probes for these bits per entry.
    #[must_use]
    pub fn redis_probes(bits_per_entry: f64) -> u32 {
        scalable::redis_probes(bits_per_entry)
    }
}

/// RedisBloom's cuckoo filters.
pub mod scalable_cuckoo {
    use super::{BuildError, HashScheme, ItemHash};
    use crate::scalable_cuckoo::{ScalableCuckoo, ScalableCuckooShape};

    /// Checks all numbers of a shape and returns the shape.
    pub fn from_parts(
        buckets: u64,
        bucket_size: u32,
        max_iterations: u32,
        expansion: u32,
    ) -> Result<ScalableCuckooShape, BuildError> {
        ScalableCuckooShape::from_parts(buckets, bucket_size, max_iterations, expansion)
    }

    /// Returns the number of buckets in table `index`. The oldest table is 0.
    pub fn table_buckets(shape: &ScalableCuckooShape, index: u64) -> Result<u64, BuildError> {
        shape.table_buckets(index)
    }

    /// Returns the false-positive rate of a table with this fill.
    #[must_use]
    pub fn full_table_fpr(shape: &ScalableCuckooShape, fill: f64) -> f64 {
        shape.full_table_fpr(fill)
    }

    /// Returns a filter with empty tables and these counts.
    pub fn of_tables(
        shape: ScalableCuckooShape,
        scheme: HashScheme,
        tables: u64,
        inserted: u64,
        removed: u64,
    ) -> Result<ScalableCuckoo, BuildError> {
        ScalableCuckoo::of_tables(shape, scheme, tables, inserted, removed)
    }

    /// Returns the first slot and the number of slots of table `index`. The oldest table is 0.
    #[must_use]
    pub fn table_range(filter: &ScalableCuckoo, index: usize) -> (usize, usize) {
        filter.table_range(index)
    }

    /// Returns the first slot and the number of slots of the table that contains `slot`.
    #[must_use]
    pub fn table_around(filter: &ScalableCuckoo, slot: u64) -> Option<(usize, usize)> {
        filter.table_around(slot)
    }

    /// Returns at most `count` slots, starting at slot `at`. Slots are counted over all tables.
    #[must_use]
    pub fn slot_bytes(filter: &ScalableCuckoo, at: usize, count: usize) -> Vec<u8> {
        filter.slot_bytes(at, count)
    }

    /// Writes `slots`, starting at slot `at`. Slots are counted over all tables. They must fit.
    pub fn put_slots(filter: &mut ScalableCuckoo, at: usize, slots: &[u8]) {
        filter.put_slots(at, slots);
    }

    /// Counts copies as RedisBloom does. If both buckets of an item are the same, each copy counts twice.
    #[must_use]
    pub fn count_bucket_by_bucket(filter: &ScalableCuckoo, hash: ItemHash) -> u64 {
        filter.count_bucket_by_bucket(hash)
    }
}

/// Classic filters that need more than 128 bits of an item.
pub mod wide {
    use super::{BuildError, ItemEncoding, Lines};
    use crate::bloom::BloomShape;
    use crate::wide::{WideBloom, WidePlacement};

    /// The maximum number of bytes in a `filterload` message.
    pub const BIP37_MAX_BYTES: u64 = crate::wide::BIP37_MAX_BYTES;
    /// The maximum number of hash functions that a `filterload` message may request.
    pub const BIP37_MAX_FUNCTIONS: u32 = crate::wide::BIP37_MAX_FUNCTIONS;

    /// Returns an empty filter. Filters with this placement must be able to have this shape.
    pub fn placed(
        shape: BloomShape,
        placement: WidePlacement,
        items: ItemEncoding,
    ) -> Result<WideBloom, BuildError> {
        WideBloom::placed(shape, placement, items)
    }

    /// Returns a filter with the bits that another program set. `bits` has the length of the shape and is clear after its last bit.
    #[must_use]
    pub fn of_bits(
        shape: BloomShape,
        placement: WidePlacement,
        items: ItemEncoding,
        bits: Lines,
    ) -> WideBloom {
        WideBloom::of_bits(shape, placement, items, bits)
    }

    /// As `of_bits`, for a program that counted its insertions.
    #[must_use]
    pub fn of_counted_bits(
        shape: BloomShape,
        placement: WidePlacement,
        items: ItemEncoding,
        bits: Lines,
        inserted: u64,
    ) -> WideBloom {
        WideBloom::of_counted_bits(shape, placement, items, bits, inserted)
    }

    /// Returns the bits.
    #[must_use]
    pub const fn bits(filter: &WideBloom) -> &Lines {
        filter.bits()
    }

    /// Describes how the filter hashes and places its items, for error messages.
    #[must_use]
    pub fn hashing(filter: &WideBloom) -> String {
        filter.hashing()
    }
}

/// Golomb-coded sets whose values lie in one range, as in Bitcoin.
pub mod gcs {
    use std::io::{self, Write};

    use super::{BuildError, HashScheme};
    use crate::codec::DecodeError;
    use crate::gcs::{self, Gcs, GcsPlacement, GcsShape};
    use crate::hash::reduce;
    use crate::item::Item;
    use crate::statics;

    /// Returns the shape of a set of `items` items, with `values_per_item` possible values for each item.
    pub fn in_one_range(items: u64, values_per_item: u64, low_bits: u32) -> Result<GcsShape, BuildError> {
        GcsShape::in_one_range(items, values_per_item, low_bits)
    }

    /// Returns the value of an item in a set with this range.
    pub fn value_of<I: Item + ?Sized>(scheme: &HashScheme, item: &I, range: u64) -> u64 {
        reduce(statics::key(scheme.hash(item)), range)
    }

    /// Returns the set of these values. They must ascend, and they must be below the range of `shape`.
    pub fn of_values(
        values: impl IntoIterator<Item = u64>,
        shape: GcsShape,
        scheme: HashScheme,
    ) -> Result<Gcs, BuildError> {
        Gcs::of_values(values.into_iter().map(Ok::<_, BuildError>), shape, scheme)
    }

    /// Decodes a set of `items` values from their plain differences. These take all bytes from position `front` on.
    pub fn of_differences(
        bytes: &[u8],
        front: usize,
        items: u64,
        shape: GcsShape,
        scheme: HashScheme,
    ) -> Result<Gcs, DecodeError> {
        Gcs::of_differences(bytes, front, items, shape, scheme)
    }

    /// Writes all values as plain differences, padded with zeroes to a full byte.
    pub fn write_differences(set: &Gcs, out: &mut dyn Write) -> io::Result<()> {
        set.write_differences(out)
    }

    /// Returns the range of a set with Bitcoin's hash and placement, and `None` for other sets.
    #[must_use]
    pub fn one_range(set: &Gcs) -> Option<u64> {
        match set.shape().placement() {
            GcsPlacement::InOneRange(range) if gcs::suits(set.scheme()) => Some(range),
            _ => None,
        }
    }
}

/// Binary fuse and xor filters with the slots of the FastFilter libraries.
pub mod statics {
    use super::{BuildError, HashScheme, Lines};
    use crate::item::Item;
    use crate::statics::collect;
    use crate::statics::fingerprint::{self, Fingerprint};
    use crate::statics::foreign::{ForeignFuse, ForeignGraph, ForeignXor};
    use crate::statics::graph::Graph;
    use crate::statics::table::{self, StaticTable};
    use crate::xor_fuse::{BinaryFuse, Xor};

    /// Returns the number of slots in one word.
    #[must_use]
    pub const fn per_word<F: Fingerprint>() -> usize {
        fingerprint::per_word::<F>()
    }

    /// Returns the number of lines that `slots` slots take.
    #[must_use]
    pub fn lines_of<F: Fingerprint>(slots: u64) -> usize {
        table::lines_of::<F>(slots)
    }

    /// Returns the number in a slot.
    #[must_use]
    pub fn slot<F: Fingerprint>(lines: &Lines, slot: usize) -> u64 {
        fingerprint::load::<F>(lines.words(), slot).widen()
    }

    /// Returns whether this number fits in a slot.
    #[must_use]
    pub fn fits<F: Fingerprint>(number: u64) -> bool {
        F::lowest(number).widen() == number
    }

    /// The slots of a filter.
    #[derive(Clone, Copy)]
    pub struct Slots<'a, M> {
        /// The measurements of the filter.
        pub measurements: M,
        /// The seed of the filter.
        pub seed: u64,
        /// The slots, without gaps.
        pub lines: &'a Lines,
    }

    /// The measurements of a binary fuse filter.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FuseMeasurements(ForeignFuse);

    /// The measurements of an xor filter.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct XorMeasurements(ForeignXor);

    impl FuseMeasurements {
        /// Returns the measurements for segments of 2^`segment_bits` slots. The first slot of an item may be in `segments` of them.
        #[must_use]
        pub fn new(segment_bits: u64, segments: u64) -> Option<Self> {
            ForeignFuse::from_parts([segment_bits, segments]).map(Self)
        }

        /// Returns the measurements that the libraries choose for `items` items.
        #[must_use]
        pub fn for_items(items: u64) -> Self {
            Self(ForeignFuse::for_items(items))
        }

        /// Returns the number of slots.
        #[must_use]
        pub fn slots(&self) -> u64 {
            self.0.slots()
        }

        /// Returns the number of slots in a segment, and the number of segments in which the first slot of an item may be.
        #[must_use]
        pub fn segments(&self) -> [u64; 2] {
            self.0.segments()
        }

        /// Returns the smallest number of items for which the libraries choose these measurements, if there is one.
        #[must_use]
        pub fn fewest_items(&self) -> Option<u64> {
            self.0.fewest_items()
        }
    }

    impl XorMeasurements {
        /// Returns the measurements for three blocks of `block` slots.
        #[must_use]
        pub fn new(block: u64) -> Option<Self> {
            ForeignXor::from_parts([block, 0]).map(Self)
        }

        /// Returns the number of slots.
        #[must_use]
        pub fn slots(&self) -> u64 {
            self.0.slots()
        }

        /// Returns the number of slots in a block.
        #[must_use]
        pub fn block(&self) -> u64 {
            self.0.block()
        }
    }

    /// Returns a binary fuse filter with these slots, which fill the lines up to the end. Returns `None` if a filter cannot have this
    /// many slots.
    pub fn fuse_of_slots<F: Fingerprint>(
        FuseMeasurements(graph): FuseMeasurements,
        seed: u64,
        slots: Lines,
        inserted: Option<u64>,
        scheme: HashScheme,
    ) -> Option<Result<BinaryFuse<F>, BuildError>> {
        StaticTable::of_slots(graph, seed, slots, inserted).map(|table| BinaryFuse::of_foreign(table, scheme))
    }

    /// Returns an xor filter with these slots, which fill the lines up to the end. Returns `None` if a filter cannot have this many
    /// slots.
    pub fn xor_of_slots<F: Fingerprint>(
        XorMeasurements(graph): XorMeasurements,
        seed: u64,
        slots: Lines,
        scheme: HashScheme,
    ) -> Option<Result<Xor<F>, BuildError>> {
        StaticTable::of_slots(graph, seed, slots, None).map(|table| Xor::of_foreign(table, scheme))
    }

    /// Builds a binary fuse filter with the size and the seeds that the libraries choose.
    pub fn build_fuse<F: Fingerprint, I: Item>(
        items: impl IntoIterator<Item = I>,
        scheme: HashScheme,
    ) -> Result<BinaryFuse<F>, BuildError> {
        BinaryFuse::of_foreign(StaticTable::build_foreign(collect(items, &scheme)?)?, scheme)
    }

    /// Builds an xor filter with the size and the seeds that the libraries choose.
    pub fn build_xor<F: Fingerprint, I: Item>(
        items: impl IntoIterator<Item = I>,
        scheme: HashScheme,
    ) -> Result<Xor<F>, BuildError> {
        Xor::of_foreign(StaticTable::build_foreign(collect(items, &scheme)?)?, scheme)
    }

    /// Returns the slots of a binary fuse filter, if it has the layout of other programs.
    #[must_use]
    pub fn fuse_slots<F: Fingerprint>(filter: &BinaryFuse<F>) -> Option<Slots<'_, FuseMeasurements>> {
        filter.foreign().map(|table| slots_of(table, FuseMeasurements))
    }

    /// Returns the slots of an xor filter, if it has the layout of other programs.
    #[must_use]
    pub fn xor_slots<F: Fingerprint>(filter: &Xor<F>) -> Option<Slots<'_, XorMeasurements>> {
        filter.foreign().map(|table| slots_of(table, XorMeasurements))
    }

    fn slots_of<F: Fingerprint, G: ForeignGraph, M>(
        table: &StaticTable<F, G>,
        measurements: impl Fn(G) -> M,
    ) -> Slots<'_, M> {
        let places = table.places();
        Slots { measurements: measurements(*places.graph()), seed: places.seed(), lines: table.lines() }
    }
}
