//! The data that a lookup reads, for each kind.

use std::ops::Range;

use crate::dual::DualAnswer;

/// The data that a filter reads for one item, in the order in which it reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lookup {
    /// The one bit of a number, in a [`Bitmap`](crate::Bitmap).
    Number(NumberLookup),
    /// Bits of one large array: [`Bloom`](crate::Bloom) and `WideBloom`.
    Bits(BitLookup),
    /// Bits of one block, or of two or three: [`BlockedBloom`](crate::BlockedBloom).
    Blocks(BlockLookup),
    /// Counters instead of bits: [`CountingBloom`](crate::CountingBloom).
    Counters(CounterLookup),
    /// Both filters of a [`DualBloom`](crate::DualBloom).
    Dual(DualLookup),
    /// The layers of a [`ScalableBloom`](crate::ScalableBloom).
    Layers(LayerLookup),
    /// Fingerprints in buckets: [`Cuckoo`](crate::Cuckoo), [`GrowableCuckoo`](crate::GrowableCuckoo),
    /// [`ScalableCuckoo`](crate::ScalableCuckoo) and [`DLeft`](crate::DLeft).
    Buckets(BucketLookup),
    /// The run of a home: [`Quotient`](crate::Quotient) and [`Growing`](crate::Growing).
    Run(RunLookup),
    /// Three slots that are combined by xor: [`Xor`](crate::Xor) and [`BinaryFuse`](crate::BinaryFuse).
    Slots(SlotLookup),
    /// Rows and columns of a [`Ribbon`](crate::Ribbon).
    Rows(RowLookup),
    /// A value among the encoded ones of a [`Gcs`](crate::Gcs).
    Values(ValueLookup),
    /// The generations of a [`Window`](crate::Window).
    Generations(GenerationLookup),
}

impl Lookup {
    /// The answer that follows from the data: `true` is *maybe*.
    #[must_use]
    pub fn holds(&self) -> bool {
        match self {
            Self::Number(lookup) => lookup.holds(),
            Self::Bits(lookup) => lookup.holds(),
            Self::Blocks(lookup) => lookup.holds(),
            Self::Counters(lookup) => lookup.holds(),
            Self::Dual(lookup) => lookup.answer == DualAnswer::Present,
            Self::Layers(lookup) => lookup.layers.iter().any(|layer| layer.bits.holds()),
            Self::Buckets(lookup) => lookup.holds(),
            Self::Run(lookup) => lookup.holds(),
            Self::Slots(lookup) => lookup.holds(),
            Self::Rows(lookup) => lookup.holds(),
            Self::Values(lookup) => lookup.found,
            Self::Generations(lookup) => {
                lookup.generations.iter().any(|generation| generation.blocks.holds())
            }
        }
    }
}

/// A bit that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BitProbe {
    /// The position of the bit in the array.
    pub position: u64,
    /// Is it set?
    pub set: bool,
    /// The 64-bit word that contains it, as bit `position % 64`; the lowest is 0.
    pub word: u64,
}

impl BitProbe {
    /// The bit at `position`, in a word with this content.
    pub(crate) const fn of(position: u64, word: u64) -> Self {
        Self { position, set: word >> (position % 64) & 1 == 1, word }
    }
}

/// The bit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NumberLookup {
    /// The number that the item is; `None` if it is not a number.
    pub number: Option<u64>,
    /// The number that bit 0 stands for.
    pub first: u64,
    /// The number of bits: one for every number from `first` on.
    pub bits: u64,
    /// The bit of the number; `None` if it is out of range.
    pub probe: Option<BitProbe>,
}

impl NumberLookup {
    fn holds(&self) -> bool {
        self.probe.is_some_and(|probe| probe.set)
    }
}

/// Bits of one array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BitLookup {
    /// The number of bits in the array.
    pub bits: u64,
    /// All bits of the item. A lookup may stop at the first clear one.
    pub probes: Vec<BitProbe>,
    /// Such filters neither store nor find this item, whatever its bits: empty text, in a filter of DataSketches.
    pub never_taken: bool,
}

impl BitLookup {
    /// Are all bits set?
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.never_taken && self.probes.iter().all(|probe| probe.set)
    }

    /// The first clear bit and its number, counting from 1.
    #[must_use]
    pub fn first_clear(&self) -> Option<(usize, &BitProbe)> {
        (1..).zip(&self.probes).find(|(_, probe)| !probe.set)
    }
}

/// Bits of a few blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockLookup {
    /// The number of blocks to choose from, for each block of the item.
    pub blocks: u64,
    /// The number of bits in a block.
    pub block_bits: u64,
    /// The bits of a lane: 32 if every lane has one bit of the item, otherwise 64.
    pub lane_bits: u64,
    /// The blocks of the item.
    pub probed: Vec<BlockProbe>,
}

/// A block, and the bits of the item in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockProbe {
    /// The number of the block in the array.
    pub block: u64,
    /// All bits of the block, the lowest first.
    pub words: Vec<u64>,
    /// The bits of the item, as positions in the array. Two of them may be the same bit.
    pub bits: Vec<BitProbe>,
}

impl BlockLookup {
    /// Are all bits set, in all blocks?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.probes().all(|probe| probe.set)
    }

    /// All bits of the item, block by block.
    pub fn probes(&self) -> impl Iterator<Item = &BitProbe> {
        self.probed.iter().flat_map(|block| &block.bits)
    }
}

/// Counters of one array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterLookup {
    /// The number of counters in the array.
    pub counters: u64,
    /// A counter that reaches this value stays there.
    pub limit: u64,
    /// The counters of the item.
    pub probes: Vec<CounterProbe>,
}

/// A counter that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterProbe {
    /// The position of the counter in the array.
    pub position: u64,
    /// Its value.
    pub count: u64,
    /// The word of sixteen 4-bit counters that contains it, as number `position % 16`; the lowest is 0.
    pub word: u64,
}

impl CounterLookup {
    /// Are all counters above 0?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.probes.iter().all(|probe| probe.count > 0)
    }
}

/// The generations of an item that a lookup in a [`DualBloom`](crate::DualBloom) goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DualLookup {
    /// One step for each generation that is read.
    pub steps: Vec<DualStep>,
    /// The result.
    pub answer: DualAnswer,
}

/// One generation of an item. It has its own hash in both filters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DualStep {
    /// The number of the generation; the first is 0.
    pub generation: u32,
    /// Its bits in the filter of insertions.
    pub added: BitLookup,
    /// Its bits in the filter of removals; `None` if it was never inserted.
    pub removed: Option<BitLookup>,
}

/// The layers of a [`ScalableBloom`](crate::ScalableBloom), the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerLookup {
    /// All layers. A lookup stops at the first that holds the item.
    pub layers: Vec<LayerProbe>,
}

/// One layer: a complete Bloom filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerProbe {
    /// The number of the layer; the oldest is 1.
    pub number: usize,
    /// The items it was sized for.
    pub capacity: u64,
    /// The items counted in it.
    pub inserted: u64,
    /// Its bits.
    pub bits: BitLookup,
}

/// A fingerprint and the buckets that may hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketLookup {
    /// The fingerprint of the item.
    pub fingerprint: u64,
    /// Bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// Do slots count copies?
    pub counts: bool,
    /// The buckets of the item.
    pub buckets: Vec<BucketProbe>,
}

/// A bucket and its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketProbe {
    /// The number of its table, if there are several; the first is 0.
    pub table: usize,
    /// The number of the bucket in the table.
    pub bucket: u64,
    /// The number of buckets in that table.
    pub of: u64,
    /// Its slots; `None` for a free one.
    pub slots: Vec<Option<BucketSlot>>,
}

/// A slot that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketSlot {
    /// The fingerprint stored.
    pub fingerprint: u64,
    /// The number of copies, if slots count them; otherwise 1.
    pub copies: u32,
    /// Is it the item's fingerprint?
    pub matches: bool,
}

impl BucketLookup {
    /// Is the fingerprint in one of the buckets?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.buckets.iter().any(BucketProbe::holds)
    }
}

impl BucketProbe {
    /// Is the fingerprint in it?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.slots.iter().flatten().any(|slot| slot.matches)
    }
}

/// The entries of one home.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunLookup {
    /// The item's home.
    pub home: u64,
    /// The number of homes.
    pub homes: u64,
    /// The remainder or the fingerprint of the item, in full length.
    pub fingerprint: u64,
    /// Its number of bits.
    pub fingerprint_bits: u32,
    /// Fingerprints have different lengths, and match every item that begins with them. The first bit is the lowest.
    pub any_length: bool,
    /// The slots of the home; an empty range if it has no run.
    pub slots: Range<u64>,
    /// The entries in them.
    pub entries: Vec<RunEntry>,
}

/// A fingerprint in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunEntry {
    /// The slots it takes: more than one if they also count copies.
    pub slots: Range<u64>,
    /// The fingerprint stored.
    pub fingerprint: u64,
    /// Its number of bits; 0 for a void slot, which matches every item of its home.
    pub fingerprint_bits: u32,
    /// The number of copies.
    pub copies: u64,
    /// Does it match the item?
    pub matches: bool,
}

impl RunLookup {
    /// Does an entry of the run match?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.entries.iter().any(|entry| entry.matches)
    }
}

/// Three slots and the xor of their fingerprints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotLookup {
    /// The shard of the item; the first is 0.
    pub shard: u64,
    /// The number of shards.
    pub shards: u64,
    /// The number of slots in all shards.
    pub slots: u64,
    /// Slots in a segment of a fuse filter, or in a third of an xor filter.
    pub segment_slots: u64,
    /// The fingerprint of the item, which the xor of the three slots should equal.
    pub fingerprint: u64,
    /// Bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// The three slots; none in an empty filter.
    pub stored: Vec<StoredSlot>,
}

/// A slot of a static filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredSlot {
    /// The position of the slot in the array.
    pub slot: u64,
    /// The fingerprint stored.
    pub fingerprint: u64,
}

impl SlotLookup {
    /// The xor of the three slots.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.stored.iter().fold(0, |sum, slot| sum ^ slot.fingerprint)
    }

    /// Does it equal the fingerprint?
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.stored.is_empty() && self.sum() == self.fingerprint
    }
}

/// The rows of an item in a [`Ribbon`](crate::Ribbon).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowLookup {
    /// The layers that are read, in order; the last of them holds the item. None in an empty filter.
    pub layers: Vec<RowLayer>,
    /// Which of the 64 rows from the first one on are used: the lowest bit is the first row.
    pub coefficients: u64,
    /// The columns of those rows.
    pub columns: Vec<ColumnProbe>,
}

/// One layer of a [`Ribbon`](crate::Ribbon).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowLayer {
    /// The number of rows an item may begin in.
    pub rows: u64,
    /// The row this item begins in.
    pub start: u64,
    /// Its bucket of 64 or 128 rows bumps the items that begin in this many of its first rows; `None` in the last layer.
    pub threshold: Option<u64>,
    /// The row within its bucket.
    pub in_bucket: u64,
    /// Was it bumped to the next layer?
    pub bumped: bool,
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnProbe {
    /// The bits of the column in the 64 rows; the lowest is the first row.
    pub rows: u64,
    /// The parity of the bits in the rows used.
    pub parity: bool,
    /// The parity that a member has.
    pub wanted: bool,
}

impl RowLookup {
    /// Does every column have the parity of a member?
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.layers.is_empty() && self.columns.iter().all(|column| column.parity == column.wanted)
    }
}

/// A value among the encoded ones of its bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueLookup {
    /// The value of the item in this set.
    pub value: u64,
    /// All values are below this.
    pub range: u64,
    /// The bucket of the value.
    pub bucket: u64,
    /// The number of buckets.
    pub buckets: u64,
    /// The bits of the stream that hold the bucket.
    pub bits: Range<u64>,
    /// The low bits of a gap that are stored unchanged.
    pub remainder_bits: u32,
    /// The number of values decoded until the answer was known.
    pub decoded: u64,
    /// Up to three values before it in the bucket, the nearest last.
    pub before: Vec<u64>,
    /// Is the value in the bucket?
    pub found: bool,
    /// Up to three values after it in the bucket, the nearest first.
    pub behind: Vec<u64>,
}

/// The generations of a [`Window`](crate::Window), the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GenerationLookup {
    /// All generations.
    pub generations: Vec<GenerationProbe>,
}

/// One generation: a complete blocked filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GenerationProbe {
    /// Its age; the newest is 0.
    pub age: u32,
    /// The items inserted while it was the newest.
    pub inserted: u64,
    /// The items it was sized for.
    pub capacity: u64,
    /// Its bits.
    pub blocks: BlockLookup,
}
