//! The classic filter of programs that place items with more bits than an [`ItemHash`](crate::ItemHash) has.

mod explain;
mod placement;
mod slices;

pub use placement::WidePlacement;
pub(crate) use placement::{BIP37_MAX_BYTES, BIP37_MAX_FUNCTIONS, FIRST_NUMBER};

use std::sync::atomic::Ordering;

use self::placement::WidePositions;
use crate::answers::Answers;
use crate::bloom::BloomShape;
use crate::codec::{self, Body, DecodeError, Header, MAX_INSERTED, Parts, SELF_HASHED, Storable};
use crate::error::{BuildError, MergeError};
use crate::fill::{Fill, Sampling};
use crate::item::{Item, ItemEncoding};
use crate::kind::Kind;
use crate::sizing::{classic, counted};
use crate::store::Lines;

/// **Take a [`Bloom`](crate::Bloom) instead**, unless another program reads or wrote the filter: this one is slower.
///
/// A classic Bloom filter of a program that places items with more bits than an [`ItemHash`](crate::ItemHash)
/// has.
///
/// * **no** is certain. **maybe** has the false-positive rate that the program which sized the filter
///   intended, as for a [`Bloom`](crate::Bloom); both have the same kind.
/// * There is no `hash` method and there are no `_hash` twins: 128 bits are not enough to place an item, so
///   every lookup needs the item itself. These filters cannot share a hash with others.
/// * A lookup costs as much as in the original program, and most of that is hashing: two murmur3 for a filter
///   of bits-and-blooms; one murmur3 or FNV per probe (about two for a non-member) for BIP-37 and
///   pyprobables; one XXH3, MD5 or SHA per 16 to 64 bytes of positions for pybloom_live. Batches are not faster
///   than single calls.
/// * Created by the readers in the crate `mayhap-formats`, and by `create` in those that also write
///   (`bits_and_blooms`, `bip37`). A `.mayhap` file keeps the whole filter. For all other purposes there are better
///   filters.
#[derive(Debug)]
pub struct WideBloom {
    shape: BloomShape,
    placement: WidePlacement,
    items: ItemEncoding,
    positions: WidePositions,
    bits: Lines,
    inserted: u64,
}

impl WideBloom {
    /// Creates an empty filter. The caller guarantees that the placement allows the shape.
    pub(crate) fn placed(
        shape: BloomShape,
        placement: WidePlacement,
        items: ItemEncoding,
    ) -> Result<Self, BuildError> {
        Ok(Self::of_counted_bits(shape, placement, items, Lines::zeroed(shape.lines())?, 0))
    }

    /// Takes over bits that another program has set. Estimates the number of insertions from the fill.
    ///
    /// `bits` must have the length that the shape needs, and be clear after its last bit. The caller
    /// guarantees that the placement allows the shape.
    pub(crate) fn of_bits(
        shape: BloomShape,
        placement: WidePlacement,
        items: ItemEncoding,
        bits: Lines,
    ) -> Self {
        let filter = Self::of_counted_bits(shape, placement, items, bits, 0);
        Self { inserted: filter.estimated_count(), ..filter }
    }

    /// The same, for a program that counted its insertions.
    pub(crate) fn of_counted_bits(
        shape: BloomShape,
        placement: WidePlacement,
        items: ItemEncoding,
        bits: Lines,
        inserted: u64,
    ) -> Self {
        let positions = WidePositions::new(placement, &shape, items);
        Self { shape, placement, items, positions, bits, inserted: inserted.min(MAX_INSERTED) }
    }

    /// Returns the bits, for writing them in another program's format.
    pub(crate) const fn bits(&self) -> &Lines {
        &self.bits
    }

    /// Inserts `item`. `true`: the filter changed, so the item was certainly new. `false`: it may have been
    /// here already, and nothing changed.
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        let words = self.bits.words_mut();
        let mut changed = 0;
        let set = |position: u64| {
            let (word, bit) = (&mut words[(position / 64) as usize], 1 << (position % 64));
            changed |= bit & !*word;
            *word |= bit;
            true
        };
        item.with_value(|value| self.items.encode_with(value, |bytes| self.positions.all(bytes, set)));
        self.inserted += u64::from(changed != 0);
        changed != 0
    }

    /// Inserts all `items` and returns how many of them changed the filter.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> u64 {
        items.iter().map(|item| u64::from(self.insert(item))).sum()
    }

    /// `false`: never inserted. `true`: maybe.
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        let words = self.bits.words();
        let is_set = |position: u64| {
            words[(position / 64) as usize].load(Ordering::Relaxed) >> (position % 64) & 1 == 1
        };
        item.with_value(|value| self.items.encode_with(value, |bytes| self.positions.all(bytes, is_set)))
    }

    /// Looks up all `items`.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        answers.reset(items.len());
        for (index, item) in items.iter().enumerate() {
            if self.may_contain(item) {
                answers.set(index);
            }
        }
    }

    /// Adds everything in `other`, as if each of its items had been inserted here.
    ///
    /// The number of items that both contain is unknown: [`inserted`](Self::inserted) becomes the estimate
    /// from the fill.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same bits, probes, placement and item encoding; nothing has
    /// changed then.
    /// [`MergeError`] unless both have the same bits, probes, placement and item encoding; nothing has changed then.
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        self.combine(other, |ours, theirs| ours | theirs)
    }

    /// Keeps only the bits that are set in both. The result still answers *maybe* for every item in both. Its
    /// rate is at best that of the fuller of the two, not that of a filter built from the common items alone.
    ///
    /// # Errors
    /// [`MergeError`] unless both have the same bits, probes, placement and item encoding; nothing has
    /// changed then.
    /// [`MergeError`] unless both have the same bits, probes, placement and item encoding; nothing has changed then.
    pub fn intersect(&mut self, other: &Self) -> Result<(), MergeError> {
        self.combine(other, |ours, theirs| ours & theirs)
    }

    fn combine(&mut self, other: &Self, join: impl Fn(u64, u64) -> u64) -> Result<(), MergeError> {
        if !self.shape.places_like(&other.shape) {
            return Err(MergeError::shapes(&self.shape, &other.shape));
        }
        if (self.placement, self.items) != (other.placement, other.items) {
            return Err(MergeError::HashDiffers { ours: self.hashing(), theirs: other.hashing() });
        }
        for (ours, theirs) in self.bits.words_mut().iter_mut().zip(other.bits.words()) {
            *ours = join(*ours, theirs.load(Ordering::Relaxed));
        }
        self.inserted = self.estimated_count();
        Ok(())
    }

    /// Describes how it hashes and places its items, for messages.
    pub(crate) fn hashing(&self) -> String {
        format!("{:?} of {} items", self.placement, self.items)
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.bits.words_mut().fill(0);
        self.inserted = 0;
    }

    /// Returns the measurements: bits, probes, capacity, promised rate.
    #[must_use]
    pub const fn shape(&self) -> &BloomShape {
        &self.shape
    }

    /// Returns the rule that turns an item into positions.
    #[must_use]
    pub const fn placement(&self) -> WidePlacement {
        self.placement
    }

    /// Returns how items become the bytes that are hashed.
    #[must_use]
    pub const fn items(&self) -> ItemEncoding {
        self.items
    }

    /// Returns the number of items it was sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Returns the rate it promised at [`capacity`](Self::capacity).
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Returns the number of items counted so far: insertions that changed a bit, or all of them if the
    /// program that wrote the filter counts that way.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the false-positive rate by the model for the number of items counted so far.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        counted::expected_fpr(self.shape.bits(), self.shape.probes(), self.inserted)
    }

    /// Returns the number of set bits. Counts all of them, so it takes time in proportion to the size.
    #[must_use]
    pub fn ones(&self) -> u64 {
        self.bits.ones()
    }

    /// Returns the share of set bits: half of them at capacity.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.ones() as f64 / self.shape.bits() as f64
    }

    /// Measures the fill by all bits or by a sample of them, and computes the rate from it.
    #[must_use]
    pub fn fill_by(&self, sampling: Sampling) -> Fill {
        Fill::of_bits(self.bits.words(), self.shape.bits(), self.shape.probes(), sampling)
    }

    /// Estimates the number of items from the fill, independently of the count.
    #[must_use]
    pub fn estimated_items(&self) -> u64 {
        classic::items_from_fill(self.shape.bits(), self.shape.probes(), self.ones())
    }

    /// Estimates from the fill how many insertions changed a bit.
    fn estimated_count(&self) -> u64 {
        counted::from_fill(self.shape.bits(), self.shape.probes(), self.ones())
    }

    /// Returns the memory of the bits.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.bits.memory_bytes()
    }

    /// Returns the bits of memory per item at capacity.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.shape.bits_per_item()
    }

    /// Returns an independent copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self { bits: self.bits.try_clone()?, positions: self.positions.clone(), ..*self })
    }

    /// Encodes the filter as the bytes of a `.mayhap` file, described in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a filter, checking every byte.
    ///
    /// # Errors
    /// [`DecodeError`] for any bytes that are not an intact encoded `WideBloom`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

impl codec::sealed::Sealed for WideBloom {}

impl Storable for WideBloom {
    const KIND: Option<Kind> = Some(Kind::Bloom);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::Bloom, self.placement.number(), None);
        header.hash_scheme = SELF_HASHED;
        header.secret = self.placement.secret();
        header.item_encoding = self.items.number();
        header.capacity = self.shape.capacity();
        header.inserted = self.inserted;
        header.target_fpr = self.shape.target_fpr();
        header.parameters[0] = self.shape.bits();
        header.parameters[1] = u64::from(self.shape.probes());
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Words(&self.bits)
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        let placement = WidePlacement::from_parts(header.placement, header.secret)
            .ok_or(DecodeError::UnknownPlacement { got: header.placement })?;
        if let Some(function) = placement.is_not_compiled_in() {
            return Err(DecodeError::NotCompiledIn { function });
        }
        if header.hash_scheme != SELF_HASHED {
            return Err(DecodeError::UnknownHashScheme { got: header.hash_scheme });
        }
        if let Some(stray) = header.secret.iter().zip(placement.secret()).position(|(a, b)| *a != b) {
            return Err(DecodeError::BadField { field: "seed", got: header.secret[stray].into() });
        }
        let items = header.items()?;
        header.expect_parameters(2)?;
        let probes = header.parameter_u32(1, "probes")?;
        let shape = BloomShape::from_parts(header.parameters[0], probes, header.capacity, header.target_fpr)?;
        if let Some((field, got)) = placement.unfit_field(&shape) {
            return Err(DecodeError::BadField { field, got });
        }
        let bits = body.lines(shape.memory_bytes())?;
        bits.check_zero_from(shape.bits()).map_err(|bit| DecodeError::StrayBit { bit })?;
        Ok(Self::of_counted_bits(shape, placement, items, bits, header.inserted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bloom, Filter};

    fn filter(placement: WidePlacement, items: ItemEncoding) -> WideBloom {
        let shape = BloomShape::from_parts(7 * 144, 7, 100, 0.01).unwrap();
        WideBloom::placed(shape, placement, items).unwrap()
    }

    #[cfg(feature = "named-hashes")]
    const ALL: [WidePlacement; 5] = [
        WidePlacement::BitsAndBlooms,
        WidePlacement::Bip37 { tweak: 77 },
        WidePlacement::PybloomLive3,
        WidePlacement::PybloomLive4,
        WidePlacement::Pyprobables,
    ];
    #[cfg(not(feature = "named-hashes"))]
    const ALL: [WidePlacement; 3] =
        [WidePlacement::BitsAndBlooms, WidePlacement::Bip37 { tweak: 77 }, WidePlacement::Pyprobables];

    fn members() -> Vec<String> {
        (0..100).map(|i| format!("member {i}")).collect()
    }

    fn non_members() -> Vec<String> {
        (0..2_000).map(|i| format!("non-member {i}")).collect()
    }

    #[test]
    fn batches_and_single_calls_give_the_same_filter() {
        for placement in ALL {
            for items in [ItemEncoding::Utf8, ItemEncoding::Utf32Le] {
                let (mut single, mut batch) = (filter(placement, items), filter(placement, items));
                let changed: u64 = members().iter().map(|item| u64::from(single.insert(item))).sum();
                assert_eq!(batch.insert_batch(&members()), changed);
                assert_eq!((single.inserted(), batch.inserted()), (changed, changed));
                assert!(single.encode() == batch.encode());
                assert!(!single.insert("member 7") && single.inserted() == changed);
                let mut answers = Answers::new();
                batch.may_contain_batch(&non_members(), &mut answers);
                for (non_member, answer) in non_members().iter().zip(answers.iter()) {
                    assert_eq!(single.may_contain(non_member), answer);
                }
                // 1 % of 2 000. The hash functions of pyprobables are similar to each other, so its false
                // positives come in clusters.
                assert!((4..60).contains(&answers.maybe_count()), "{placement:?}: {}", answers.maybe_count());
                assert!(members().iter().all(|member| single.may_contain(member)));
                assert!((80..=120).contains(&single.estimated_items()), "{placement:?}");
                single.clear();
                assert_eq!((single.ones(), single.inserted()), (0, 0));
                assert!(!single.may_contain("member 7"));
            }
        }
    }

    #[test]
    fn encoded_it_is_a_bloom_filter_that_only_this_type_opens() {
        for placement in ALL {
            let mut wide = filter(placement, ItemEncoding::Utf16Le);
            wide.insert_batch(&members());
            let bytes = wide.encode();
            let got = placement.number();
            assert_eq!(Bloom::decode(&bytes).unwrap_err(), DecodeError::UnknownPlacement { got });
            let same = WideBloom::decode(&bytes).unwrap();
            assert_eq!((same.placement(), same.items()), (placement, ItemEncoding::Utf16Le));
            assert!(same.encode() == bytes && same.try_clone().unwrap().encode() == bytes);
            assert!(members().iter().all(|member| same.may_contain(member)));
            let Ok(Filter::WideBloom(any)) = Filter::decode(&bytes) else { panic!("{placement:?}") };
            assert!(any.encode() == bytes);
        }
        let ours = Bloom::for_capacity(10, 0.01, 0).unwrap().encode();
        assert_eq!(WideBloom::decode(&ours).unwrap_err(), DecodeError::UnknownPlacement { got: 1 });
    }

    #[test]
    fn forged_headers_are_rejected_with_the_reason() {
        let refusal = |placement: WidePlacement, forge: fn(&mut Header)| {
            let bytes = filter(placement, ItemEncoding::Utf8).encode();
            let mut header = Header::from_bytes(bytes.first_chunk().unwrap()).unwrap();
            forge(&mut header);
            let forged = [&header.to_bytes()[..], &bytes[192..]].concat();
            assert!(Filter::decode(&forged).is_err());
            WideBloom::decode(&forged).unwrap_err()
        };
        let bad = |field: &'static str, got: u64| DecodeError::BadField { field, got };
        let bip37 = WidePlacement::Bip37 { tweak: 77 };
        for placement in ALL {
            let unknown = |got| DecodeError::UnknownHashScheme { got };
            assert_eq!(
                refusal(placement, |header| header.placement = 69),
                DecodeError::UnknownPlacement { got: 69 }
            );
            assert_eq!(refusal(placement, |header| header.hash_scheme = 16), unknown(16));
            assert_eq!(refusal(placement, |header| header.item_encoding = 0), bad("item encoding", 0));
            assert_eq!(refusal(placement, |header| header.item_encoding = 999), bad("item encoding", 999));
            assert_eq!(refusal(placement, |header| header.secret[15] = 3), bad("seed", 3));
            assert_eq!(refusal(placement, |header| header.parameters[2] = 4), bad("unused parameter", 4));
            let probes = refusal(placement, |header| header.parameters[1] = 256);
            assert!(matches!(probes, DecodeError::Unbuildable(BuildError::ProbesOutOfRange { .. })));
        }
        assert_eq!(refusal(WidePlacement::BitsAndBlooms, |header| header.secret[0] = 9), bad("seed", 9));
        // Without the feature no such filter can be made; a header of one is refused.
        let of_pybloom_live = refusal(bip37, |header| {
            (header.placement, header.secret, header.parameters[0]) = (66, [0; 16], 1007);
        });
        let function = "pybloom_live's salted MD5 or SHA";
        let expected = if cfg!(feature = "named-hashes") {
            bad("bits", 1007)
        } else {
            DecodeError::NotCompiledIn { function }
        };
        assert_eq!(of_pybloom_live, expected);
        assert_eq!(refusal(bip37, |header| header.parameters[0] -= 1), bad("bits", 1007));
        assert_eq!(refusal(bip37, |header| header.parameters[1] = 51), bad("probes", 51));
        let scheme_of_ours = refusal(WidePlacement::Pyprobables, |header| {
            (header.hash_scheme, header.item_encoding) = (1, 0);
        });
        assert_eq!(scheme_of_ours, DecodeError::UnknownHashScheme { got: 1 });
    }

    #[test]
    fn only_filters_that_place_alike_merge() {
        for placement in ALL {
            let mut left = filter(placement, ItemEncoding::Utf8);
            let mut right = filter(placement, ItemEncoding::Utf8);
            left.insert_batch(&["a", "b"]);
            right.insert_batch(&["b", "c"]);
            let mut both = left.try_clone().unwrap();
            both.union(&right).unwrap();
            assert!(["a", "b", "c"].iter().all(|item| both.may_contain(item)));
            left.intersect(&right).unwrap();
            assert!(left.may_contain("b") && !left.may_contain("a") && !left.may_contain("c"));
            for other in ALL.into_iter().chain([WidePlacement::Bip37 { tweak: 78 }]) {
                let (utf8, utf16) = (filter(other, ItemEncoding::Utf8), filter(other, ItemEncoding::Utf16Le));
                assert_eq!(left.union(&utf8).is_ok(), other == placement);
                assert!(matches!(left.union(&utf16), Err(MergeError::HashDiffers { .. })));
            }
        }
        let mut ours = filter(WidePlacement::BitsAndBlooms, ItemEncoding::Utf8);
        let shape = BloomShape::from_parts(7 * 145, 7, 100, 0.01).unwrap();
        let longer = WideBloom::placed(shape, ours.placement(), ours.items()).unwrap();
        assert!(matches!(ours.union(&longer), Err(MergeError::ShapeDiffers { .. })));
    }
}
