//! The plan of a filter, and the shard size that follows from it.

use std::fmt;
use std::time::Duration;

use crate::plain::PlainShape;
use crate::route::MOST_SHARDS;

/// The largest capacity that RedisBloom accepts.
const MOST_BLOOM_CAPACITY: u64 = 1 << 30;
/// The probability that a filter has a shard with more items than the shard was sized for.
const UNLUCKY: f64 = 1e-6;
/// Shards up to this size move between nodes quickly.
const HANDY_BYTES: f64 = (4_u64 << 20) as f64;
/// The default number of shards: enough for a cluster to share.
const USUAL_SHARDS: u32 = 64;
/// The lowest rate that is requested from the servers' filters.
const MIN_RATE: f64 = 1e-12;
/// The highest rate that is requested from the servers' filters.
const MAX_RATE: f64 = 0.5;

/// The kind of value that stores a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// Bloom filters of the `BF.` commands: RedisBloom, valkey-bloom, mayhap.
    Bloom,
    /// Filters of the `MF.` commands of mayhap's server and module.
    Mayhap,
    /// Ordinary strings, on any Redis or Valkey.
    Plain,
}

impl Backend {
    /// Its name in descriptors: `bf`, `mf`, `plain`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bf",
            Self::Mayhap => "mf",
            Self::Plain => "plain",
        }
    }

    /// The backend with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Bloom, Self::Mayhap, Self::Plain].into_iter().find(|backend| backend.name() == name)
    }
}

/// The parameters that a filter is created from.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterPlan {
    backend: Backend,
    capacity: u64,
    target_fpr: f64,
    shards: Option<u32>,
    lease: Duration,
}

impl FilterPlan {
    /// A plan for `capacity` items, with a false-positive rate of at most `target_fpr`.
    #[must_use]
    pub fn new(backend: Backend, capacity: u64, target_fpr: f64) -> Self {
        Self { backend, capacity, target_fpr, shards: None, lease: Duration::from_secs(1) }
    }

    /// Sets the number of shards: a power of two from 1 to 65 536. The default is 64, or more if shards would
    /// be larger than 4 MiB.
    #[must_use]
    pub fn shards(mut self, shards: u32) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Sets how long a client may use the descriptor before it reads it again. The default is 1 s. The lease
    /// belongs to the filter: later generations keep that of the first, whatever their plan says.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    pub(crate) fn lease_ms(&self) -> Result<u64, PlanError> {
        let got = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        let range = LEAST_LEASE_MS..=MOST_LEASE_MS;
        if range.contains(&got) { Ok(got) } else { Err(PlanError::Lease { got_ms: got }) }
    }

    /// Computes the measures that keep the target rate.
    ///
    /// # Errors
    /// A number is out of range, or a shard would be larger than its backend allows.
    pub fn measure(&self) -> Result<Measures, PlanError> {
        if !(MIN_RATE..=MAX_RATE).contains(&self.target_fpr) {
            return Err(PlanError::Rate { got: self.target_fpr, least: MIN_RATE, most: MAX_RATE });
        }
        if !(1..=mayhap::sizing::MAX_CAPACITY).contains(&self.capacity) {
            return Err(PlanError::Capacity { got: self.capacity, most: mayhap::sizing::MAX_CAPACITY });
        }
        let shards = self.shards.unwrap_or_else(|| usual_shards(self.capacity, self.target_fpr));
        if !shards.is_power_of_two() || shards > MOST_SHARDS {
            return Err(PlanError::Shards { got: shards, most: MOST_SHARDS });
        }
        let shard_capacity = shard_capacity(self.capacity, shards);
        let plain = match self.backend {
            Backend::Plain => Some(PlainShape::for_capacity(shard_capacity, self.target_fpr)?),
            Backend::Bloom if shard_capacity + SENTINELS > MOST_BLOOM_CAPACITY => {
                return Err(PlanError::ShardCapacity { got: shard_capacity, most: MOST_BLOOM_CAPACITY });
            }
            _ => None,
        };
        Ok(Measures {
            backend: self.backend,
            shards,
            capacity: self.capacity,
            target_fpr: self.target_fpr,
            shard_capacity,
            plain,
        })
    }
}

/// The number of sentinels: items that mark a complete shard. They take room.
pub(crate) const SENTINELS: u64 = 2;
/// The shortest lease. Less than a round trip makes no sense.
pub(crate) const LEAST_LEASE_MS: u64 = 10;
/// The longest lease. Builders wait for it several times.
pub(crate) const MOST_LEASE_MS: u64 = 600_000;

/// The dimensions of a filter that keep the target rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    pub(crate) backend: Backend,
    pub(crate) shards: u32,
    pub(crate) capacity: u64,
    pub(crate) target_fpr: f64,
    pub(crate) shard_capacity: u64,
    pub(crate) plain: Option<PlainShape>,
}

impl Measures {
    /// The backend of the shards.
    #[must_use]
    pub const fn backend(&self) -> Backend {
        self.backend
    }

    /// The number of shards.
    #[must_use]
    pub const fn shards(&self) -> u32 {
        self.shards
    }

    /// The number of items that the filter is sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The requested false-positive rate.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// The number of items that each shard is sized for: its share, plus the slack for the fullest shard.
    #[must_use]
    pub const fn shard_capacity(&self) -> u64 {
        self.shard_capacity
    }

    /// The blocks of a plain shard.
    #[must_use]
    pub const fn plain(&self) -> Option<&PlainShape> {
        self.plain.as_ref()
    }

    /// The false-positive rate of a shard at its capacity: the worst in a full filter, and not above the
    /// target.
    #[must_use]
    pub fn worst_shard_fpr(&self) -> f64 {
        self.shard_fpr(self.shard_capacity)
    }

    /// The false-positive rate of a shard with `items` items, by the model. For a server's own filters it is
    /// that of a classic Bloom filter.
    #[must_use]
    pub fn shard_fpr(&self, items: u64) -> f64 {
        if let Some(plain) = &self.plain {
            return plain.expected_fpr(items);
        }
        let (bits, probes) = mayhap::sizing::classic::size(self.shard_capacity, self.target_fpr);
        mayhap::sizing::classic::expected_fpr(bits, probes, items).min(1.0)
    }

    /// The false-positive rate of a shard that reports `counted` items, even above its capacity.
    ///
    /// A filter counts only items that it did not report as members already. The fuller it is, the smaller
    /// that part of the insertions. The rest follows from the rate at each step. For a plain shard the count
    /// is an estimate from its bits, and the bits determine the rate.
    pub(crate) fn counted_fpr(&self, counted: u64) -> f64 {
        /// The number of steps per shard capacity.
        const STEPS: f64 = 64.0;
        /// At this rate the filter practically answers *maybe* for every item.
        const ALL: f64 = 0.9999;
        if let Some(plain) = &self.plain {
            return plain.expected_fpr(counted).max(plain.fill_fpr(counted));
        }
        let step = (self.shard_capacity as f64 / STEPS).max(1.0);
        if self.backend != Backend::Mayhap || counted <= self.shard_capacity {
            return self.shard_fpr(counted);
        }
        let (mut items, mut counted_so_far) = (self.shard_capacity as f64, self.shard_capacity as f64);
        let mut rate = self.shard_fpr(self.shard_capacity);
        while counted_so_far < counted as f64 && rate < ALL {
            counted_so_far += (1.0 - rate) * step;
            items += step;
            rate = self.shard_fpr(items as u64);
        }
        rate
    }

    /// The false-positive rate of the filter at capacity: that of a shard with its share.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.shard_fpr(self.capacity.div_ceil(u64::from(self.shards)))
    }
}

/// The capacity of a shard: its share of the items, plus slack for uneven hashing. In all but one filter in a
/// million, every shard has enough room.
fn shard_capacity(capacity: u64, shards: u32) -> u64 {
    if shards == 1 {
        return capacity;
    }
    let mean = capacity as f64 / f64::from(shards);
    // Bernstein: more than mean + t has a probability of at most exp(-t² / 2(mean + t/3)), shared among all
    // shards.
    let odds = (f64::from(shards) / UNLUCKY).ln();
    let slack = odds / 3.0 + (odds * odds / 9.0 + 2.0 * mean * odds).sqrt();
    ((mean + slack).ceil() as u64).min(capacity)
}

fn usual_shards(capacity: u64, target_fpr: f64) -> u32 {
    let bytes = capacity as f64 * -target_fpr.log2() * 1.5 / 8.0;
    let wanted = (bytes / HANDY_BYTES).ceil().min(f64::from(MOST_SHARDS)) as u32;
    wanted.max(USUAL_SHARDS).next_power_of_two()
}

/// Why a plan is invalid.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// The backend cannot keep this rate.
    Rate {
        /// The requested rate.
        got: f64,
        /// The lowest possible rate.
        least: f64,
        /// The highest possible rate.
        most: f64,
    },
    /// The capacity is zero or too large.
    Capacity {
        /// The requested capacity.
        got: u64,
        /// The largest possible capacity.
        most: u64,
    },
    /// The number of shards is not a power of two, or too large.
    Shards {
        /// The requested number.
        got: u32,
        /// The maximum.
        most: u32,
    },
    /// A shard would be larger than the backend allows. More shards make it smaller.
    ShardTooLarge {
        /// The size of a shard, in bytes, at least.
        bytes: u64,
        /// The maximum, in bytes.
        limit: u64,
    },
    /// A shard would hold more items than the backend allows. More shards make it smaller.
    ShardCapacity {
        /// The number of items per shard.
        got: u64,
        /// The maximum.
        most: u64,
    },
    /// The lease is too short to keep or too long to wait for.
    Lease {
        /// The requested lease, in milliseconds.
        got_ms: u64,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate { got, least, most } => {
                write!(f, "false-positive rate must be between {least:e} and {most}, got {got}")
            }
            Self::Capacity { got, most } => write!(f, "capacity must be between 1 and {most}, got {got}"),
            Self::Shards { got, most } => {
                write!(f, "shards must be a power of two between 1 and {most}, got {got}")
            }
            Self::ShardTooLarge { bytes, limit } => {
                write!(f, "a shard needs {bytes} bytes, limit is {limit}: use more shards")
            }
            Self::ShardCapacity { got, most } => {
                write!(f, "a shard would hold {got} items, limit is {most}: use more shards")
            }
            Self::Lease { got_ms } => {
                write!(f, "a lease must be between {LEAST_LEASE_MS} and {MOST_LEASE_MS} ms, got {got_ms}")
            }
        }
    }
}

impl std::error::Error for PlanError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_shard_has_room() {
        // 1 562 500 items each on average, with a standard deviation of 1 240.
        let measures = FilterPlan::new(Backend::Plain, 100_000_000, 0.01).shards(64).measure().unwrap();
        assert!((1_568_000..1_575_000).contains(&measures.shard_capacity()), "{measures:?}");
        assert!(measures.worst_shard_fpr() <= 0.01 && measures.expected_fpr() < measures.worst_shard_fpr());
        let single = FilterPlan::new(Backend::Plain, 1000, 0.01).shards(1).measure().unwrap();
        assert_eq!(single.shard_capacity(), 1000);
        // Never more than the capacity of the filter.
        let tiny = FilterPlan::new(Backend::Bloom, 3, 0.01).shards(4096).measure().unwrap();
        assert_eq!(tiny.shard_capacity(), 3);
    }

    #[test]
    fn the_fullest_shard_uses_between_a_third_and_all_of_the_slack() {
        let (capacity, shards) = (100_000_u64, 64);
        let room = shard_capacity(capacity, shards);
        let fullest = |round: u64| {
            let key = mayhap::SecretKey::new([round as u8; 16]);
            let mut counts = vec![0_u64; shards as usize];
            for item in 0..capacity {
                counts[crate::route::ItemRoute::of(&key, &item.to_le_bytes()).shard(shards) as usize] += 1;
            }
            counts.into_iter().max().unwrap()
        };
        let fullest: Vec<u64> = (0..20).map(fullest).collect();
        assert!(fullest.iter().all(|&items| items <= room), "{fullest:?} > {room}");
        let mean = capacity / u64::from(shards);
        assert!(fullest.iter().any(|&items| items > mean + (room - mean) / 3), "{fullest:?}");
    }

    #[test]
    fn numbers_out_of_range_are_rejected() {
        let plan = |capacity, rate| FilterPlan::new(Backend::Bloom, capacity, rate);
        assert!(matches!(plan(0, 0.01).measure(), Err(PlanError::Capacity { .. })));
        assert!(matches!(plan(1, 1.0).measure(), Err(PlanError::Rate { .. })));
        assert!(matches!(plan(1, f64::NAN).measure(), Err(PlanError::Rate { .. })));
        for shards in [0, 3, 1 << 17] {
            assert!(matches!(plan(1, 0.01).shards(shards).measure(), Err(PlanError::Shards { .. })));
        }
        assert!(matches!(plan(1 << 31, 0.01).shards(1).measure(), Err(PlanError::ShardCapacity { .. })));
        let plain = FilterPlan::new(Backend::Plain, 1 << 31, 0.01).shards(1).measure();
        assert!(matches!(plain, Err(PlanError::ShardTooLarge { .. })));
        assert!(plan(1, 0.01).lease(Duration::ZERO).lease_ms().is_err());
    }

    #[test]
    fn the_default_number_of_shards_keeps_them_small() {
        let shards = |capacity| FilterPlan::new(Backend::Plain, capacity, 0.01).measure().unwrap().shards();
        assert_eq!(shards(1000), 64);
        assert_eq!(shards(10_000_000_000), 4096);
    }
}
