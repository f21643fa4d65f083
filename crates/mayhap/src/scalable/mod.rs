//! The scalable Bloom filter.

mod atomic;
mod explain;
mod pending;
mod plan;
mod shape;
mod word;

pub use atomic::AtomicScalableBloom;
pub use shape::ScalableShape;

use self::pending::Pending;
pub use self::plan::Plan;
pub(crate) use self::plan::{COMPACT_TIGHTENING, REDIS_TIGHTENING, redis_bits_agree, redis_probes};
pub(crate) use self::plan::{redis_bits_for_probes, redis_layer};
use self::shape::{MAX_TIERS, NO_LIMIT, layer_fpr_now};
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::bloom::{Bloom, BloomShape, WORD};
use crate::codec::{self, Body, DecodeError, Encoding, Header, MAX_INSERTED, Parts, Storable};
use crate::error::{BuildError, InsertError};
use crate::fill::{self, Fill, Sampling};
use crate::hash::{HashScheme, ItemHash};
use crate::item::Item;
use crate::kind::Kind;
use crate::sizing::scalable;
use crate::store::{Relocate, relocate_vec};

/// A Bloom filter that grows: when full, it adds a layer.
///
/// * **no** is certain. **maybe** can be a false positive: the false-positive rate is at most `target_fpr`
///   after any growth. Every layer has a lower rate than the one before, and the rates of all possible layers
///   add up to `target_fpr`.
/// * 11.8 bits per item at its initial capacity and 13.9 at 16 times that, at 1 %. Right after a growth the
///   newest layer is empty, and an item costs two or three times as much; see the table below.
/// * A lookup reads the layers with one hash, the newest and largest first, and stops at the first *maybe*.
///   The batch methods look up many items in each layer together.
/// * It cannot remove, count or list items. Two filters cannot be merged: the layers of both would have to
///   stay, and their rates would add up to twice the promised rate.
/// * An insert fails only if the filter cannot grow: because of the caller's memory limit, the system's
///   memory, or the limit of 64 layers. Nothing is lost then, and lookups still work.
///
/// ```text
/// item ─▶ ItemHash ─┬──▶ layer 2  ████████████░░░░░░░░░░░░░░░░░░    new items go here; full: one more layer
///                   ├──▶ layer 1  █████████                         full
///                   └──▶ layer 0  ███                               full        one layer answers maybe: maybe
/// ```
///
/// ```
/// use mayhap::ScalableBloom;
///
/// let mut seen = ScalableBloom::for_capacity(1_000, 0.01, 0)?;
/// for id in 0..10_000_u64 {
///     seen.insert(&id)?;
/// }
/// assert!((0..10_000_u64).all(|id| seen.may_contain(&id)));
/// assert_eq!(seen.layers().len(), 3);
/// assert!(seen.expected_fpr() <= 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Growth and tightening
///
/// Bits of memory per item, and number of layers, at multiples of the initial capacity, at 1 %:
///
/// | growth | ratio | 1 × | 2 × | 4 × | 8 × | 16 × | 32 × | 64 × | mean |
/// |---|---|---|---|---|---|---|---|---|---|
/// | 2 | 0.5 | 11.0, 1 | 18.0, 2 | 22.9, 3 | 26.8, 4 | 30.2, 5 | 33.4, 6 | 36.4, 7 | **25.1, 5.7** |
/// | 2 | 0.65 | 11.8, 1 | 18.6, 2 | 22.9, 3 | 25.9, 4 | 28.3, 5 | 30.4, 6 | 32.4, 7 | **23.1, 5.7** |
/// | 3.5 | 0.5 | 11.0, 1 | 27.4, 2 | 13.7, 2 | 28.2, 3 | 14.1, 3 | 27.6, 4 | 53.2, 5 | **31.7, 4.0** |
/// | 3.5 | 0.65 | 11.8, 1 | 28.1, 2 | 14.0, 2 | 27.8, 3 | 13.9, 3 | 26.3, 4 | 49.2, 5 | **30.1, 4.0** |
/// | 3.5 | 0.8 | 12.9, 1 | 29.9, 2 | 15.0, 2 | 28.7, 3 | 14.4, 3 | 26.4, 4 | 47.9, 5 | **30.1, 4.0** |
/// | 4 | 0.5 | 11.0, 1 | 30.5, 2 | 15.2, 2 | 35.5, 3 | 17.7, 3 | 39.6, 4 | 19.8, 4 | **33.5, 3.8** |
/// | 4 | 0.65 | 11.8, 1 | 31.3, 2 | 15.6, 2 | 35.0, 3 | 17.5, 3 | 37.7, 4 | 18.8, 4 | **32.1, 3.8** |
/// | 8 | 0.65 | 11.8, 1 | 56.6, 2 | 28.3, 2 | 14.2, 2 | 61.4, 3 | 30.7, 3 | 15.3, 3 | **50.3, 3.1** |
///
/// The cost at one multiple depends on how full the newest layer happens to be, so the last column decides:
/// the mean over all multiples from 1 to 1 024, with equal weight for each order of magnitude. The defaults
/// are 3.5 and 0.65. Growth 2 takes a quarter less memory and has two fifths more layers; growth 8 takes two
/// thirds more memory. 3.5 instead of 4 takes 6 % less memory and has 5 % more layers. It also fills exactly
/// three layers at 16 times the initial capacity, a common size in comparisons. A ratio of 0.5 takes 6 % less
/// for a filter that never grows and 8 % more after four growths; for 0.8 it is the reverse.
///
/// P. S. Almeida, C. Baquero, N. Preguiça, D. Hutchison, *Scalable Bloom Filters*, Information Processing
/// Letters 2007.
#[derive(Debug)]
pub struct ScalableBloom {
    shape: ScalableShape,
    scheme: HashScheme,
    /// The oldest first; never empty. All layers except the newest are full.
    layers: Vec<Bloom>,
}

/// Items looked up in the layers together: their hashes and answers stay in the cache.
const BLOCK: usize = 4096;

/// Batches up to this length go through the layers 64 items at a time, without an allocation.
const SMALL_BATCH: usize = 256;

impl ScalableBloom {
    /// Creates a filter with initial room for `initial_capacity` items, which keeps `target_fpr` after any
    /// growth.
    ///
    /// A number as `scheme` is the seed of the fast hash. Use [`HashScheme::keyed_random`] if untrusted users
    /// choose the items.
    ///
    /// # Errors
    /// [`BuildError`] if a parameter is out of range or the system refuses the memory.
    pub fn for_capacity(
        initial_capacity: u64,
        target_fpr: f64,
        scheme: impl Into<HashScheme>,
    ) -> Result<Self, BuildError> {
        Self::with_shape(ScalableShape::for_capacity(initial_capacity, target_fpr)?, scheme)
    }

    /// Creates an empty filter that grows by this shape.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory of the first layer.
    /// [`BuildError::OtherHash`] if the shape is RedisBloom's and the hash is neither RedisBloom's nor keyed.
    pub fn with_shape(shape: ScalableShape, scheme: impl Into<HashScheme>) -> Result<Self, BuildError> {
        let scheme = scheme.into();
        if !shape.placement().suits(&scheme) {
            return Err(BuildError::OtherHash { needs: "RedisBloom's MurmurHash64A or a secret key" });
        }
        let first = Bloom::placed(shape.layer(0)?, scheme, shape.placement())?;
        Ok(Self { shape, scheme, layers: vec![first] })
    }

    /// Creates a filter of these layers of another program. There is at least one.
    pub(crate) fn of_layers(shape: ScalableShape, scheme: HashScheme, layers: Vec<Bloom>) -> Self {
        Self { shape, scheme, layers }
    }

    /// Returns the layers, for a program that sets their bits itself.
    pub(crate) fn layers_mut(&mut self) -> &mut [Bloom] {
        &mut self.layers
    }

    /// Returns the hash of `item` for the `_hash` methods of this filter and of others with the same scheme.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> ItemHash {
        self.scheme.hash(item)
    }

    /// Inserts `item` and grows if necessary. `true`: the filter changed, so the item was certainly new.
    /// `false`: it may have been inserted before, and nothing changed.
    ///
    /// # Errors
    /// [`InsertError::CannotGrow`] if the item needs another layer and the filter cannot grow. On error,
    /// nothing has changed.
    #[inline]
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, InsertError> {
        self.insert_hash(self.scheme.hash(item))
    }

    /// [`insert`](Self::insert) for an item already hashed.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_hash(&mut self, hash: ItemHash) -> Result<bool, InsertError> {
        if self.older().iter().rev().any(|layer| layer.may_contain_hash(hash)) {
            return Ok(false);
        }
        if self.room() == 0 {
            if self.newest().may_contain_hash(hash) {
                return Ok(false);
            }
            self.grow()?;
        }
        Ok(self.newest_mut().insert_hash(hash))
    }

    /// Inserts all `items` and returns how many of them changed the filter, as if they were inserted one
    /// after the other. If the filter is larger than the cache, this is much faster than single inserts.
    ///
    /// # Errors
    /// [`InsertError::CannotGrow`] at the first item that needs another layer if the filter cannot grow. All
    /// items before it are inserted, and none after it. It is safe to insert the whole batch again.
    pub fn insert_batch<I: Item>(&mut self, items: &[I]) -> Result<u64, InsertError> {
        self.insert_all(items)
    }

    /// [`insert_batch`](Self::insert_batch) for items already hashed.
    ///
    /// # Errors
    /// As [`insert_batch`](Self::insert_batch).
    pub fn insert_hash_batch(&mut self, hashes: &[ItemHash]) -> Result<u64, InsertError> {
        self.insert_all(hashes)
    }

    fn insert_all<H: Hashed>(&mut self, items: &[H]) -> Result<u64, InsertError> {
        let before = self.inserted();
        let mut pending = Pending::default();
        for block in items.chunks(BLOCK) {
            pending.begin(block, &self.scheme);
            for layer in self.older().iter().rev() {
                pending.ask(layer, |_| {});
            }
            self.insert_pending(&mut pending)?;
        }
        Ok(self.inserted() - before)
    }

    /// Inserts the pending items; the older layers contain none of them. Fills the newest layer, adds a layer
    /// when it is full, and then treats the full one as an older layer.
    fn insert_pending(&mut self, pending: &mut Pending) -> Result<(), InsertError> {
        loop {
            while self.room() > 0 {
                let Some(some) = pending.take(self.room()) else { return Ok(()) };
                self.newest_mut().insert_hash_batch(some);
            }
            pending.ask(self.newest(), |_| {});
            if pending.is_empty() {
                return Ok(());
            }
            self.grow()?;
        }
    }

    /// `false`: never inserted. `true`: maybe.
    #[inline]
    #[must_use]
    pub fn may_contain<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.may_contain_hash(self.scheme.hash(item))
    }

    /// [`may_contain`](Self::may_contain) for an item already hashed.
    #[inline]
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        self.layers.iter().rev().any(|layer| layer.may_contain_hash(hash))
    }

    /// Looks up all `items` together, layer by layer. Their memory loads overlap: if the filter is larger
    /// than the cache, this is several times faster than single lookups.
    pub fn may_contain_batch<I: Item>(&self, items: &[I], answers: &mut Answers) {
        match &self.layers[..] {
            [only] => only.may_contain_batch(items, answers),
            _ => self.ask_all(items, answers),
        }
    }

    /// [`may_contain_batch`](Self::may_contain_batch) for items already hashed.
    pub fn may_contain_hash_batch(&self, hashes: &[ItemHash], answers: &mut Answers) {
        match &self.layers[..] {
            [only] => only.may_contain_hash_batch(hashes, answers),
            _ if hashes.len() > SMALL_BATCH => self.ask_all(hashes, answers),
            _ => {
                answers.reset(hashes.len());
                for (word, hashes) in answers.words_mut().iter_mut().zip(hashes.chunks(WORD)) {
                    *word = self.answer_word(hashes);
                }
            }
        }
    }

    fn ask_all<H: Hashed>(&self, items: &[H], answers: &mut Answers) {
        answers.reset(items.len());
        let mut pending = Pending::default();
        for (number, block) in items.chunks(BLOCK).enumerate() {
            pending.begin(block, &self.scheme);
            for layer in self.layers.iter().rev() {
                pending.ask(layer, |index| answers.set(number * BLOCK + index));
            }
        }
    }

    /// Removes all items and frees all layers except the first.
    pub fn clear(&mut self) {
        self.layers.truncate(1);
        self.newest_mut().clear();
    }

    /// Sets the memory limit of all layers together; `None` removes it. A filter that is already larger stays
    /// as it is and accepts items until its newest layer is full.
    pub const fn limit_memory(&mut self, limit_bytes: Option<u64>) {
        self.shape = self.shape.limited(limit_bytes);
    }

    /// Returns the shape that it grows by.
    #[must_use]
    pub const fn shape(&self) -> &ScalableShape {
        &self.shape
    }

    /// Returns the hash scheme.
    #[must_use]
    pub const fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    /// Returns the layers, the oldest first. Each is a complete filter.
    #[must_use]
    pub fn layers(&self) -> &[Bloom] {
        &self.layers
    }

    /// Returns the number of items that all present layers have room for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.layers.iter().map(Bloom::capacity).sum()
    }

    /// Returns the promised false-positive rate, which holds after any growth.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    /// Returns the number of items counted so far: insertions that changed the filter.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        // Layers that were decoded may have any count.
        self.layers.iter().map(Bloom::inserted).fold(0, u64::saturating_add)
    }

    /// Measures the fill of all layers from all bits or a sample, and the false-positive rate that follows
    /// from it.
    #[must_use]
    pub fn fill_by(&self, sampling: Sampling) -> Fill {
        fill::parts(&self.layers, sampling, |layer| layer.shape().bits(), Bloom::fill_by)
    }

    /// Returns the false-positive rate that the model predicts for the items counted so far.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        let rate = |layer: &Bloom| layer_fpr_now(layer.shape(), layer.inserted(), self.layers.len());
        scalable::chain_fpr(self.layers.iter().map(rate))
    }

    /// Returns the memory that the bits of all layers take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.layers.iter().map(Bloom::memory_bytes).sum()
    }

    /// Returns the bits of memory per counted item, or infinity if it holds none.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.inserted() as f64
    }

    /// Moves the memory of all layers to where `by` places it.
    pub fn relocate(&mut self, by: &mut dyn Relocate) {
        relocate_vec(&mut self.layers, by);
        self.layers.iter_mut().for_each(|layer| layer.relocate(by));
    }

    /// Returns an independent copy.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        let layers = self.layers.iter().map(Bloom::try_clone).collect::<Result<_, _>>()?;
        Ok(Self { layers, ..*self })
    }

    /// Encodes the filter as the bytes of a `.mayhap` file, laid out as in `docs/format.md`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Decodes a filter and checks every byte. It continues to grow as the encoded one would have.
    ///
    /// # Errors
    /// [`DecodeError`] unless `bytes` is an intact encoded `ScalableBloom`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }

    #[inline(always)]
    fn newest(&self) -> &Bloom {
        &self.layers[self.layers.len() - 1]
    }

    #[inline(always)]
    fn newest_mut(&mut self) -> &mut Bloom {
        let newest = self.layers.len() - 1;
        &mut self.layers[newest]
    }

    #[inline(always)]
    fn older(&self) -> &[Bloom] {
        &self.layers[..self.layers.len() - 1]
    }

    /// Returns how many more items the newest layer accepts.
    #[inline(always)]
    fn room(&self) -> u64 {
        self.newest().capacity().saturating_sub(self.newest().inserted())
    }

    /// Adds a layer. On error, nothing has changed.
    #[cold]
    fn grow(&mut self) -> Result<(), InsertError> {
        let layer = (|| {
            let layer = self.shape.layer_after(self.layers.len(), self.newest().shape())?;
            self.shape.grown(self.memory_bytes(), &layer)?;
            Bloom::placed(layer, self.scheme, self.shape.placement())
        })();
        let refused =
            |cause| InsertError::CannotGrow { capacity: self.capacity(), layers: self.layers.len(), cause };
        let layer = layer.map_err(refused)?;
        self.layers.push(layer);
        Ok(())
    }
}

impl Plan {
    /// Placement scheme 1: [`Bloom`] layers of placement 1, all with the same hash. 2, 3 and 4: layers with
    /// RedisBloom's placement, sized by its rule. With 4, the tightening ratio is not fixed.
    const fn number(self) -> u16 {
        match self {
            Self::Mayhap => 1,
            Self::RedisBloom => 2,
            Self::RedisBloomFixed => 3,
            Self::RedisBloomTightened => 4,
        }
    }

    fn from_number(number: u16) -> Option<Self> {
        [Self::Mayhap, Self::RedisBloom, Self::RedisBloomFixed, Self::RedisBloomTightened]
            .into_iter()
            .find(|plan| plan.number() == number)
    }
}

/// The index of the tiers among the parameters: after growth, tightening and limit.
const TIERS_AT: usize = 3;

impl codec::sealed::Sealed for ScalableBloom {}

impl Storable for ScalableBloom {
    const KIND: Option<Kind> = Some(Kind::ScalableBloom);

    fn header(&self) -> Header {
        let mut header = Header::new(Kind::ScalableBloom, self.shape.plan().number(), Some(&self.scheme));
        header.capacity = self.capacity();
        header.inserted = self.inserted();
        header.target_fpr = self.shape.target_fpr();
        header.parameters[0] = self.shape.growth_factor().to_bits();
        header.parameters[1] = self.shape.tightening_ratio().to_bits();
        header.parameters[2] = self.shape.limit_bytes().unwrap_or(NO_LIMIT);
        header.parameters[TIERS_AT..].copy_from_slice(&self.shape.tier_slots());
        header
    }

    fn parts(&self) -> Parts<'_> {
        Parts::Filters(self.layers.iter().map(Encoding::of).collect())
    }

    fn restore(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        let plan = Plan::from_number(header.placement)
            .ok_or(DecodeError::UnknownPlacement { got: header.placement })?;
        let scheme = header.scheme()?;
        let [growth, tightening, limit, tiers @ ..] = header.parameters;
        let tiers: [u64; MAX_TIERS] = tiers;
        // A zero ends the list. A tier after it would be lost when the filter is encoded again.
        let named = tiers.iter().take_while(|&&tier| tier != 0).count();
        if let Some(&got) = tiers[named..].iter().find(|&&tier| tier != 0) {
            return Err(DecodeError::BadField { field: "tier", got });
        }
        let shape = ScalableShape::from_parts(
            plan,
            tiers,
            f64::from_bits(growth),
            f64::from_bits(tightening),
            header.target_fpr,
            (limit != NO_LIMIT).then_some(limit),
        )?;
        let filter = Self { shape, scheme, layers: body.filters(plan.max_layers())? };
        filter.check_layers()?;
        let totals = [
            ("capacity", header.capacity, filter.capacity()),
            ("inserted", header.inserted, filter.inserted().min(MAX_INSERTED)),
        ];
        match totals.into_iter().find(|(_, said, summed)| said != summed) {
            Some((field, got, _)) => Err(DecodeError::BadField { field, got }),
            None => Ok(filter),
        }
    }
}

impl ScalableBloom {
    /// Checks that the decoded layers match the plan. Their bits and probes may differ: they were computed
    /// with logarithms, whose last digit differs between machines, and the model uses the actual numbers.
    fn check_layers(&self) -> Result<(), DecodeError> {
        if self.layers.is_empty() {
            return Err(DecodeError::BadField { field: "number of filters", got: 0 });
        }
        for (index, layer) in self.layers.iter().enumerate() {
            if *layer.scheme() != self.scheme {
                let got = layer.scheme().number();
                return Err(DecodeError::BadField { field: "hash scheme of a layer", got: u64::from(got) });
            }
            if layer.placement() != self.shape.placement() {
                let got = layer.placement().number();
                return Err(DecodeError::BadField { field: "placement of a layer", got: u64::from(got) });
            }
            // RedisBloom's chains grow from the last layer on, whatever the layers before it are.
            if self.shape.plan() != Plan::Mayhap {
                check_redis_layer(layer.shape())?;
                continue;
            }
            if layer.capacity() != self.shape.layer_capacity(index)? {
                return Err(DecodeError::BadField { field: "capacity of a layer", got: layer.capacity() });
            }
            if layer.target_fpr() != self.shape.layer_fpr(index) {
                let got = layer.target_fpr().to_bits();
                return Err(DecodeError::BadField { field: "rate of a layer", got });
            }
            if layer.inserted() > layer.capacity() {
                return Err(DecodeError::BadField { field: "items of a layer", got: layer.inserted() });
            }
        }
        Ok(())
    }
}

/// Checks that RedisBloom could have made such a layer. Its dumps store whole bytes, and its readers compute
/// the number of probes from the error rate.
fn check_redis_layer(layer: &BloomShape) -> Result<(), DecodeError> {
    let (bits, probes, error) = (layer.bits(), layer.probes(), layer.target_fpr());
    if !bits.is_multiple_of(8) {
        return Err(DecodeError::BadField { field: "bits of a layer", got: bits });
    }
    if !(error > 0.0 && error < 1.0) {
        return Err(DecodeError::BadField { field: "rate of a layer", got: error.to_bits() });
    }
    if redis_bits_for_probes(error, probes).is_none() {
        return Err(DecodeError::BadField { field: "probes of a layer", got: probes.into() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::HEADER_BYTES;
    use crate::scalable::plan::MAX_LAYERS;

    /// Returns intact bytes with a changed header.
    fn forged(filter: &ScalableBloom, forge: impl FnOnce(&mut Header)) -> Result<ScalableBloom, DecodeError> {
        let mut bytes = filter.encode();
        let header: &mut [u8; HEADER_BYTES] = bytes.first_chunk_mut().unwrap();
        let mut said = Header::from_bytes(header).unwrap();
        forge(&mut said);
        *header = said.to_bytes();
        ScalableBloom::decode(&bytes)
    }

    /// Returns a filter with these layers, even if they contradict the plan.
    fn of_layers(layers: Vec<Bloom>) -> ScalableBloom {
        let (shape, scheme) = (ScalableShape::for_capacity(64, 0.01).unwrap(), HashScheme::fast(1));
        ScalableBloom { shape, scheme, layers }
    }

    fn layer(index: usize, seed: u64) -> Bloom {
        Bloom::with_shape(of_layers(Vec::new()).shape.layer(index).unwrap(), seed).unwrap()
    }

    #[test]
    fn a_header_that_contradicts_the_layers_is_refused() {
        let mut filter = of_layers(vec![layer(0, 1)]);
        (0..500_u64).for_each(|item| assert!(filter.insert(&item).is_ok()));
        assert!(forged(&filter, |_| {}).is_ok());
        assert!(forged(&filter, |header| header.inserted += 1).is_err());
        assert!(forged(&filter, |header| header.capacity += 1).is_err());
        assert!(forged(&filter, |header| header.target_fpr = 0.02).is_err());
        assert!(forged(&filter, |header| header.target_fpr = f64::NAN).is_err());
        assert!(forged(&filter, |header| header.placement = 2).is_err());
        assert!(forged(&filter, |header| header.secret[0] ^= 1).is_err());
        for (index, strange) in [(0, 2.0), (0, 0.0), (0, f64::NAN), (1, 0.5), (1, 1.0), (1, f64::NAN)] {
            let outcome = forged(&filter, |header| header.parameters[index] = f64::to_bits(strange));
            assert!(outcome.is_err(), "parameter {index} is {strange}");
        }
        for tier in [0, 63, u64::MAX] {
            assert!(forged(&filter, |header| header.parameters[TIERS_AT] = tier).is_err());
        }
        let hole = forged(&filter, |header| header.parameters[TIERS_AT + 2] = 64);
        assert_eq!(hole.err(), Some(DecodeError::BadField { field: "tier", got: 64 }));
    }

    #[test]
    fn layers_that_contradict_the_plan_are_refused() {
        let decoded = |layers| ScalableBloom::decode(&of_layers(layers).encode());
        assert!(decoded(vec![layer(0, 1), layer(1, 1)]).is_ok());
        assert!(decoded(vec![]).is_err());
        assert!(decoded(vec![layer(1, 1), layer(0, 1)]).is_err());
        assert!(decoded(vec![layer(0, 1), layer(1, 2)]).is_err());
        assert!(decoded(vec![layer(0, 1), layer(2, 1)]).is_err());
        assert!(decoded((0..=MAX_LAYERS).map(|_| layer(0, 1)).collect()).is_err());
        let mut too_full = layer(0, 1);
        (0..200_u64).for_each(|item| assert!(too_full.insert(&item) || too_full.may_contain(&item)));
        assert!(decoded(vec![too_full]).is_err());
        let other_rate = Bloom::for_capacity(64, 0.01, 1).unwrap();
        assert!(decoded(vec![other_rate]).is_err());
    }
}
