//! How a scalable filter grows: the capacity and rate of every layer it can have.

use std::fmt;

use super::plan::{self, MAX_LAYERS, Plan};
use crate::bloom::BloomShape;
use crate::error::BuildError;
use crate::probe::BloomPlacement;
use crate::sizing::{self, MAX_CAPACITY, counted, scalable};

/// The most tiers that can be given. They are in the header of an encoded filter.
pub(super) const MAX_TIERS: usize = 5;
/// The largest growth factor.
const MAX_GROWTH: f64 = 32_768.0;
/// The value that stands for no limit.
pub(super) const NO_LIMIT: u64 = u64::MAX;
/// See the table in the docs of [`ScalableBloom`](crate::ScalableBloom).
const DEFAULT_GROWTH: f64 = 3.5;
/// See the table in the docs of [`ScalableBloom`](crate::ScalableBloom).
const DEFAULT_TIGHTENING: f64 = 0.65;

/// The shape of a [`ScalableBloom`](crate::ScalableBloom) now and after any growth: its dimensions and
/// memory, checked before any memory is allocated.
///
/// Layer *i* holds `initial capacity · growth^i` items and gets the share `(1 - r) · r^i` of the promised
/// rate, where `r` is the tightening ratio. The shares of all possible layers add up to the promised rate, so
/// it holds after any growth. This is why the first layer also has a lower rate.
///
/// ```
/// use mayhap::ScalableShape;
///
/// let shape = ScalableShape::for_capacity(10_000, 0.01)?.growth(2.0)?.tightening(0.5)?.within(1 << 20)?;
/// assert_eq!(shape.layer(3)?.capacity(), 80_000);
/// assert_eq!(shape.layer(3)?.target_fpr(), 0.01 / 16.0);
/// assert_eq!(shape.layers_for(70_000)?, 3);
/// assert!(shape.expected_fpr(70_000)? <= 0.01);
/// assert!(shape.memory_bytes_for(1_000_000).is_err()); // above the limit of one megabyte
///
/// let tiers = ScalableShape::with_tiers(&[1_000, 10_000, 100_000], 0.01)?;
/// assert_eq!(tiers.layers_for(11_001)?, 3);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalableShape {
    plan: Plan,
    /// The capacities of the first layers, followed by zeroes.
    tiers: [u64; MAX_TIERS],
    growth: f64,
    tightening: f64,
    target_fpr: f64,
    /// The largest number if there is no limit; no memory reaches it.
    limit_bytes: u64,
}

impl ScalableShape {
    /// Returns a shape that begins with one layer for `initial_capacity` items. Every layer is 3.5 times as
    /// large as the one before. The false-positive rate of all layers together is at most `target_fpr`.
    ///
    /// # Errors
    /// [`BuildError`] for a capacity of 0 or a rate outside (0, 1).
    pub fn for_capacity(initial_capacity: u64, target_fpr: f64) -> Result<Self, BuildError> {
        Self::with_tiers(&[initial_capacity], target_fpr)
    }

    /// Returns a shape whose first layers hold exactly `capacities` items. After the last of them, growth
    /// continues from it.
    ///
    /// # Errors
    /// [`BuildError`] for no tiers or more than 5, for a capacity of 0 or a rate outside (0, 1).
    pub fn with_tiers(capacities: &[u64], target_fpr: f64) -> Result<Self, BuildError> {
        if capacities.is_empty() || capacities.len() > MAX_TIERS {
            return Err(BuildError::TiersOutOfRange { got: capacities.len(), limit: MAX_TIERS });
        }
        let mut tiers = [0; MAX_TIERS];
        for (tier, &capacity) in tiers.iter_mut().zip(capacities) {
            *tier = sizing::check_capacity(capacity)?;
        }
        let (growth, tightening) = (DEFAULT_GROWTH, DEFAULT_TIGHTENING);
        Self { plan: Plan::Mayhap, tiers, growth, tightening, target_fpr, limit_bytes: NO_LIMIT }.checked()
    }

    /// Returns RedisBloom's plan for a filter with this rate whose first layer holds `entries` items.
    pub(crate) fn of_redis_bloom(
        plan: Plan,
        entries: u64,
        target_fpr: f64,
        growth: u32,
        tightening: f64,
    ) -> Result<Self, BuildError> {
        let mut tiers = [0; MAX_TIERS];
        tiers[0] = sizing::check_capacity(entries)?;
        let growth = growth.into();
        Self { plan, tiers, growth, tightening, target_fpr, limit_bytes: NO_LIMIT }.checked()
    }

    /// Builds the shape from the fields of an encoded filter, with the same checks as for any other shape.
    pub(super) fn from_parts(
        plan: Plan,
        tiers: [u64; MAX_TIERS],
        growth: f64,
        tightening: f64,
        target_fpr: f64,
        limit_bytes: Option<u64>,
    ) -> Result<Self, BuildError> {
        let shape = Self { plan, tiers, growth, tightening, target_fpr, limit_bytes: NO_LIMIT };
        if shape.tiers().is_empty() {
            return Err(BuildError::TiersOutOfRange { got: 0, limit: MAX_TIERS });
        }
        for &tier in shape.tiers() {
            sizing::check_capacity(tier)?;
        }
        // The limit may have been set below the memory that was already in use.
        Ok(shape.checked()?.limited(limit_bytes))
    }

    fn checked(self) -> Result<Self, BuildError> {
        match self.plan {
            Plan::Mayhap => self.check_ours()?,
            plan => plan.check(self.tiers().len(), self.growth, self.tightening, self.target_fpr)?,
        }
        let first = self.layer(0)?;
        sizing::check_memory(first.memory_bytes(), self.limit_bytes)?;
        Ok(self)
    }

    fn check_ours(&self) -> Result<(), BuildError> {
        sizing::check_rate(self.target_fpr)?;
        if !(1.0..=MAX_GROWTH).contains(&self.growth) {
            return Err(BuildError::GrowthOutOfRange { got: self.growth, limit: MAX_GROWTH });
        }
        if !(self.tightening > 0.0 && self.tightening < 1.0) {
            return Err(BuildError::TighteningOutOfRange { got: self.tightening });
        }
        Ok(())
    }

    /// Makes every layer after the given tiers `factor` times as large as the one before: at least 1 (all
    /// equal), at most 32 768. A larger factor means fewer layers and more unused memory.
    ///
    /// # Errors
    /// [`BuildError::GrowthOutOfRange`].
    pub fn growth(self, factor: f64) -> Result<Self, BuildError> {
        Self { growth: factor, ..self }.checked()
    }

    /// Gives every layer `ratio` times the rate of the one before, strictly between 0 and 1. A smaller ratio
    /// suits filters that rarely grow. The best ratio is the probability that a full chain grows again.
    ///
    /// # Errors
    /// [`BuildError::TighteningOutOfRange`], or [`BuildError::RateTooLow`] if the rate of the first layer
    /// becomes too low.
    pub fn tightening(self, ratio: f64) -> Result<Self, BuildError> {
        Self { tightening: ratio, ..self }.checked()
    }

    /// Limits all layers together to `limit_bytes`. The filter cannot grow past that.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] if not even the first layer fits.
    pub fn within(self, limit_bytes: u64) -> Result<Self, BuildError> {
        Self { limit_bytes, ..self }.checked()
    }

    /// Returns the shape of layer `index`. The first is 0.
    ///
    /// # Errors
    /// [`BuildError`] if the layer cannot exist: more than 64 layers, above the largest capacity, or below
    /// the lowest rate that a filter can promise.
    pub fn layer(&self, index: usize) -> Result<BloomShape, BuildError> {
        let limit = self.plan.max_layers();
        if index >= limit {
            return Err(BuildError::LayersOutOfRange { got: index.saturating_add(1), limit });
        }
        let capacity = self.layer_capacity(index)?;
        if self.plan != Plan::Mayhap {
            return plan::redis_layer(capacity, self.layer_fpr(index));
        }
        let rate = sizing::check_rate(self.layer_fpr(index))?;
        let (bits, probes) = counted::size(capacity, rate);
        BloomShape::from_parts(bits, probes, capacity, rate)
    }

    /// Returns the layer after `layers` others, the last of them being `last`. Ours follows from the plan
    /// alone; RedisBloom's follows from the layer before it, even if that one does not match the plan.
    pub(super) fn layer_after(&self, layers: usize, last: &BloomShape) -> Result<BloomShape, BuildError> {
        let limit = self.plan.max_layers();
        if self.plan == Plan::Mayhap {
            return self.layer(layers);
        }
        if layers >= limit {
            return Err(BuildError::LayersOutOfRange { got: layers.saturating_add(1), limit });
        }
        let capacity = last.capacity() as f64 * self.growth;
        if capacity > MAX_CAPACITY as f64 {
            return Err(BuildError::CapacityOutOfRange { got: capacity as u64, limit: MAX_CAPACITY });
        }
        let rate = self.plan.rate_after(layers, last.target_fpr(), self.tightening);
        plan::redis_layer(capacity as u64, rate)
    }

    /// Returns the capacity of layer `index`. It is multiplied step by step, so every machine computes the
    /// same number.
    pub(super) fn layer_capacity(&self, index: usize) -> Result<u64, BuildError> {
        let tiers = self.tiers();
        if let Some(&capacity) = tiers.get(index) {
            return Ok(capacity);
        }
        let last = tiers[tiers.len() - 1] as f64;
        let capacity = (tiers.len()..=index).fold(last, |capacity, _| capacity * self.growth).ceil();
        if capacity > MAX_CAPACITY as f64 {
            return Err(BuildError::CapacityOutOfRange { got: capacity as u64, limit: MAX_CAPACITY });
        }
        Ok(capacity as u64)
    }

    /// Returns the promised rate of layer `index`.
    pub(super) fn layer_fpr(&self, index: usize) -> f64 {
        match self.plan {
            Plan::Mayhap => self.target_fpr * scalable::share(self.tightening, index),
            plan => (1..=index).fold(plan.first_rate(self.target_fpr), |rate, layers| {
                plan.rate_after(layers, rate, self.tightening)
            }),
        }
    }

    /// Returns the number of layers that hold `items` items.
    ///
    /// # Errors
    /// [`BuildError`] if it can never hold that many, with the reason why it cannot grow.
    pub fn layers_for(&self, items: u64) -> Result<usize, BuildError> {
        Ok(self.chain_for(items)?.len())
    }

    /// Returns the memory of all layers for `items` items.
    ///
    /// # Errors
    /// [`BuildError`] if it can never hold that many.
    pub fn memory_bytes_for(&self, items: u64) -> Result<u64, BuildError> {
        Ok(self.chain_for(items)?.iter().map(BloomShape::memory_bytes).sum())
    }

    /// Returns the false-positive rate that the model predicts for `items` items, accurate within 2 %.
    ///
    /// # Errors
    /// [`BuildError`] if it can never hold that many.
    pub fn expected_fpr(&self, items: u64) -> Result<f64, BuildError> {
        let mut left = items;
        let layers = self.chain_for(items)?;
        let rates = layers.iter().map(|layer| {
            let inside = left.min(layer.capacity());
            left -= inside;
            layer_fpr_now(layer, inside, layers.len())
        });
        Ok(scalable::chain_fpr(rates))
    }

    /// Returns the layers that hold `items` items; at least the first one.
    fn chain_for(&self, items: u64) -> Result<Vec<BloomShape>, BuildError> {
        let (mut layers, mut capacity, mut bytes) = (Vec::new(), 0_u64, 0_u64);
        while layers.is_empty() || capacity < items {
            let layer = self.layer(layers.len())?;
            bytes = self.grown(bytes, &layer)?;
            capacity += layer.capacity();
            layers.push(layer);
        }
        Ok(layers)
    }

    /// Returns the memory of all layers after adding `layer` to layers of `bytes` bytes, if that is within
    /// the limit.
    pub(super) fn grown(&self, bytes: u64, layer: &BloomShape) -> Result<u64, BuildError> {
        let grown = bytes.saturating_add(layer.memory_bytes());
        sizing::check_memory(grown, self.limit_bytes)?;
        Ok(grown)
    }

    /// Returns the same plan with another limit, which may be below the memory already in use.
    pub(super) const fn limited(self, limit_bytes: Option<u64>) -> Self {
        let limit_bytes = match limit_bytes {
            Some(limit) => limit,
            None => NO_LIMIT,
        };
        Self { limit_bytes, ..self }
    }

    /// Returns the capacities given for the first layers: the initial one, or the tiers.
    #[must_use]
    pub fn tiers(&self) -> &[u64] {
        let named = self.tiers.iter().take_while(|&&tier| tier != 0).count();
        &self.tiers[..named]
    }

    /// Returns the tiers as encoded: zeroes after the last one.
    pub(super) const fn tier_slots(&self) -> [u64; MAX_TIERS] {
        self.tiers
    }

    /// Returns the rule that sizes its layers.
    pub(crate) const fn plan(&self) -> Plan {
        self.plan
    }

    /// Returns the rule that places items in its layers.
    pub(super) const fn placement(&self) -> BloomPlacement {
        match self.plan {
            Plan::Mayhap => BloomPlacement::Mayhap,
            Plan::RedisBloom | Plan::RedisBloomFixed | Plan::RedisBloomTightened => {
                BloomPlacement::RedisBloom
            }
        }
    }

    /// Returns `false` for a RedisBloom filter that never grows: it has one layer and accepts no items past
    /// its capacity.
    #[must_use]
    pub const fn grows(&self) -> bool {
        !matches!(self.plan, Plan::RedisBloomFixed)
    }

    /// Returns how many times as large each layer after the given tiers is as the one before.
    #[must_use]
    pub const fn growth_factor(&self) -> f64 {
        self.growth
    }

    /// Returns the rate of every layer relative to the one before.
    #[must_use]
    pub const fn tightening_ratio(&self) -> f64 {
        self.tightening
    }

    /// The promised limit of the false-positive rate, which holds after any growth.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// Returns the memory limit of all layers together, if there is one.
    #[must_use]
    pub const fn limit_bytes(&self) -> Option<u64> {
        if self.limit_bytes == NO_LIMIT { None } else { Some(self.limit_bytes) }
    }
}

/// Returns the rate of one of `layers` layers after it counted `inserted` items.
///
/// Longer chains than ours can be are RedisBloom's, with up to a thousand layers: their rates are computed
/// with a faster formula.
pub(super) fn layer_fpr_now(layer: &BloomShape, inserted: u64, layers: usize) -> f64 {
    let model = if layers <= MAX_LAYERS { counted::expected_fpr } else { counted::quickly_expected_fpr };
    model(layer.bits(), layer.probes(), inserted)
}

impl fmt::Display for ScalableShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.plan != Plan::Mayhap {
            f.write_str("RedisBloom's ")?;
        }
        if !self.grows() {
            return write!(f, "one layer of {} items", self.tiers[0]);
        }
        write!(
            f,
            "layers of {:?} items, then {} times the last, tightened by {}",
            self.tiers(),
            self.growth,
            self.tightening
        )
    }
}
