//! What a lookup looks at, kind by kind, as plain data.

use std::ops::Range;

use crate::dual::DualAnswer;

/// What a filter looks at for one item, in the order in which it does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lookup {
    /// The one bit of a number, in a [`Bitmap`](crate::Bitmap).
    Number(NumberLookup),
    /// Bits of one large array: [`Bloom`](crate::Bloom) and `WideBloom`.
    Bits(BitLookup),
    /// Bits of one block, or of two or three: [`BlockedBloom`](crate::BlockedBloom).
    Blocks(BlockLookup),
    /// Counters in the place of bits: [`CountingBloom`](crate::CountingBloom).
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
    /// Three slots that are added up: [`Xor`](crate::Xor) and [`BinaryFuse`](crate::BinaryFuse).
    Slots(SlotLookup),
    /// Rows and columns of a [`Ribbon`](crate::Ribbon).
    Rows(RowLookup),
    /// A value among the coded ones of a [`Gcs`](crate::Gcs).
    Values(ValueLookup),
    /// The generations of a [`Window`](crate::Window).
    Generations(GenerationLookup),
}

impl Lookup {
    /// The answer that follows from what is there: `true` is *mayhap*.
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

/// A bit that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BitProbe {
    /// Which bit of the array.
    pub position: u64,
    /// Is it set?
    pub set: bool,
    /// The 64 bits it is one of: bit `position % 64` of them, the lowest being 0.
    pub word: u64,
}

impl BitProbe {
    /// The bit at `position`, in a word of this content.
    pub(crate) const fn of(position: u64, word: u64) -> Self {
        Self { position, set: word >> (position % 64) & 1 == 1, word }
    }
}

/// The bit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NumberLookup {
    /// The number the item is; nothing for an item that is none.
    pub number: Option<u64>,
    /// The number that bit 0 stands for.
    pub first: u64,
    /// Bits there are: one for every number from `first` on.
    pub bits: u64,
    /// Its bit; nothing for a number there is none for.
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
    /// Bits in the array.
    pub bits: u64,
    /// The bits of the item. All are here; a lookup may stop at the first clear one.
    pub probes: Vec<BitProbe>,
    /// An item that such filters neither take nor find, whatever its bits are: empty text, in one of DataSketches.
    pub never_taken: bool,
}

impl BitLookup {
    /// Are all bits set?
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.never_taken && self.probes.iter().all(|probe| probe.set)
    }

    /// The number of the first clear bit, counting from 1, and the bit.
    #[must_use]
    pub fn first_clear(&self) -> Option<(usize, &BitProbe)> {
        (1..).zip(&self.probes).find(|(_, probe)| !probe.set)
    }
}

/// Bits of a few blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockLookup {
    /// Blocks to choose from, for each block of the item.
    pub blocks: u64,
    /// Bits in a block.
    pub block_bits: u64,
    /// Bits that belong together in a block: 32 where every lane has one bit of the item, else 64.
    pub lane_bits: u64,
    /// The blocks of the item.
    pub probed: Vec<BlockProbe>,
}

/// A block, and the bits of the item in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockProbe {
    /// Which block of the array.
    pub block: u64,
    /// All bits of the block, the lowest first.
    pub words: Vec<u64>,
    /// The bits of the item, as positions in the array; two of them may be the same bit.
    pub bits: Vec<BitProbe>,
}

impl BlockLookup {
    /// Are all bits set, in all blocks?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.probes().all(|probe| probe.set)
    }

    /// All bits of the item, one block after the other.
    pub fn probes(&self) -> impl Iterator<Item = &BitProbe> {
        self.probed.iter().flat_map(|block| &block.bits)
    }
}

/// Counters of one array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterLookup {
    /// Counters in the array.
    pub counters: u64,
    /// A counter that reaches this stays there.
    pub limit: u64,
    /// The counters of the item.
    pub probes: Vec<CounterProbe>,
}

/// A counter that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterProbe {
    /// Which counter of the array.
    pub position: u64,
    /// What it counts.
    pub count: u64,
    /// The sixteen counters of four bits it is one of: number `position % 16`, the lowest being 0.
    pub word: u64,
}

impl CounterLookup {
    /// Are all counters above 0?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.probes.iter().all(|probe| probe.count > 0)
    }
}

/// Where the chain of an item's generations leads in a [`DualBloom`](crate::DualBloom).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DualLookup {
    /// One for each generation that is looked at.
    pub steps: Vec<DualStep>,
    /// What they come to.
    pub answer: DualAnswer,
}

/// One generation of an item: a hash of its own in either filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DualStep {
    /// The first is 0.
    pub generation: u32,
    /// In the filter of what was put in.
    pub added: BitLookup,
    /// In the filter of what was removed; nothing if it was never added.
    pub removed: Option<BitLookup>,
}

/// The layers of a [`ScalableBloom`](crate::ScalableBloom), the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerLookup {
    /// All of them. A lookup stops at the first that holds the item.
    pub layers: Vec<LayerProbe>,
}

/// One layer: a Bloom filter of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerProbe {
    /// The oldest is 1.
    pub number: usize,
    /// Items it was sized for.
    pub capacity: u64,
    /// Items counted in it.
    pub inserted: u64,
    /// Its bits.
    pub bits: BitLookup,
}

/// A fingerprint among those in a few buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketLookup {
    /// What would be stored for the item.
    pub fingerprint: u64,
    /// Bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// Do slots count copies?
    pub counts: bool,
    /// The buckets of the item.
    pub buckets: Vec<BucketProbe>,
}

/// A bucket, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketProbe {
    /// Which table it is in, where there are several; the first is 0.
    pub table: usize,
    /// Which bucket of the table.
    pub bucket: u64,
    /// Buckets in that table.
    pub of: u64,
    /// Its slots; nothing for a free one.
    pub slots: Vec<Option<BucketSlot>>,
}

/// A slot that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketSlot {
    /// What is stored.
    pub fingerprint: u64,
    /// How many copies of it, where slots count; else 1.
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

/// What is stored for one home.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunLookup {
    /// The item's home.
    pub home: u64,
    /// Homes there are.
    pub homes: u64,
    /// What would be stored for the item: its remainder, or its fingerprint, as long as fits.
    pub fingerprint: u64,
    /// Bits of that.
    pub fingerprint_bits: u32,
    /// Fingerprints have lengths of their own, and match what begins with them; the first bit is the lowest.
    pub any_length: bool,
    /// The slots of the home; an empty range if it has none.
    pub slots: Range<u64>,
    /// What is in them.
    pub entries: Vec<RunEntry>,
}

/// A fingerprint in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunEntry {
    /// The slots it takes: more than one, if they count copies too.
    pub slots: Range<u64>,
    /// What is stored.
    pub fingerprint: u64,
    /// Bits of it; 0 for a void slot, which matches every item of its home.
    pub fingerprint_bits: u32,
    /// How many copies of it are in.
    pub copies: u64,
    /// Does it match the item?
    pub matches: bool,
}

impl RunLookup {
    /// Does anything in the run match?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.entries.iter().any(|entry| entry.matches)
    }
}

/// Three slots whose fingerprints are added up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotLookup {
    /// The part of the array the item is in; the first is 0.
    pub shard: u64,
    /// Parts there are.
    pub shards: u64,
    /// Slots in all of them.
    pub slots: u64,
    /// Slots in a segment of a fuse filter, or in a third of an xor filter.
    pub segment_slots: u64,
    /// What the three should come to.
    pub fingerprint: u64,
    /// Bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// The three slots; none in a filter of no items.
    pub stored: Vec<StoredSlot>,
}

/// A slot of a static filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredSlot {
    /// Which slot of the array.
    pub slot: u64,
    /// What is in it.
    pub fingerprint: u64,
}

impl SlotLookup {
    /// What the three come to: their exclusive or.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.stored.iter().fold(0, |sum, slot| sum ^ slot.fingerprint)
    }

    /// Is that the fingerprint?
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.stored.is_empty() && self.sum() == self.fingerprint
    }
}

/// The rows of an item in a [`Ribbon`](crate::Ribbon).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowLookup {
    /// The layers that are asked, in order; the last of them is the item's. None in a filter of no items.
    pub layers: Vec<RowLayer>,
    /// Which of the 64 rows from the first one on count: the lowest bit is the first row.
    pub coefficients: u64,
    /// The columns of those rows.
    pub columns: Vec<ColumnProbe>,
}

/// One layer of a [`Ribbon`](crate::Ribbon).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowLayer {
    /// Rows an item may begin in.
    pub rows: u64,
    /// The row this item begins in.
    pub start: u64,
    /// Its bucket of 64 or 128 rows sends away what begins in so many of its first rows; nothing in the last layer.
    pub threshold: Option<u64>,
    /// Where in its bucket it begins.
    pub in_bucket: u64,
    /// Was it sent on to the next layer?
    pub bumped: bool,
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnProbe {
    /// The bits of the column in the 64 rows, the lowest is the first row.
    pub rows: u64,
    /// The parity of those that count.
    pub parity: bool,
    /// The parity it has for a member.
    pub wanted: bool,
}

impl RowLookup {
    /// Has every column the parity it should have?
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.layers.is_empty() && self.columns.iter().all(|column| column.parity == column.wanted)
    }
}

/// A value among the coded ones of its bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueLookup {
    /// What the item is in this set.
    pub value: u64,
    /// Values there may be: those below this.
    pub range: u64,
    /// The bucket of the value.
    pub bucket: u64,
    /// Buckets there are.
    pub buckets: u64,
    /// The bits of the stream that hold the bucket.
    pub bits: Range<u64>,
    /// Low bits of a gap that are stored as they are.
    pub remainder_bits: u32,
    /// How many values were decoded until it was known.
    pub decoded: u64,
    /// The values before it in the bucket, the nearest last; three at most.
    pub before: Vec<u64>,
    /// Is it there?
    pub found: bool,
    /// The values behind it in the bucket, the nearest first; three at most.
    pub behind: Vec<u64>,
}

/// The generations of a [`Window`](crate::Window), the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GenerationLookup {
    /// All of them.
    pub generations: Vec<GenerationProbe>,
}

/// One generation: a blocked filter of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GenerationProbe {
    /// The newest is 0.
    pub age: u32,
    /// Items that came while it was the newest.
    pub inserted: u64,
    /// Items it was sized for.
    pub capacity: u64,
    /// Its bits.
    pub blocks: BlockLookup,
}
