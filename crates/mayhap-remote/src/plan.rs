//! What a filter is to hold, and how large its shards have to be for that.

use std::fmt;
use std::time::Duration;

use crate::plain::PlainShape;
use crate::route::MOST_SHARDS;

/// RedisBloom makes no larger filters.
const MOST_BLOOM_CAPACITY: u64 = 1 << 30;
/// How often, of all filters ever made, one has a shard with more items than it was made for.
const UNLUCKY: f64 = 1e-6;
/// Shards of this size are moved from node to node in no time.
const HANDY_BYTES: f64 = (4_u64 << 20) as f64;
/// Shards, if nobody says how many: enough for a cluster to share.
const USUAL_SHARDS: u32 = 64;
/// The lowest rate that the servers' filters are asked for.
const MIN_RATE: f64 = 1e-12;
/// The highest.
const MAX_RATE: f64 = 0.5;

/// What keeps the shards of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// Bloom filters by `BF.` commands: RedisBloom, valkey-bloom, mayhap.
    Bloom,
    /// Filters by the `MF.` commands of mayhap's server and module.
    Mayhap,
    /// Ordinary strings: any Redis or Valkey.
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

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Bloom, Self::Mayhap, Self::Plain].into_iter().find(|backend| backend.name() == name)
    }
}

/// What a filter is to hold.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterPlan {
    backend: Backend,
    capacity: u64,
    target_fpr: f64,
    shards: Option<u32>,
    lease: Duration,
}

impl FilterPlan {
    /// A filter for `capacity` items, at most `target_fpr` of all others being called *mayhap* by mistake.
    #[must_use]
    pub fn new(backend: Backend, capacity: u64, target_fpr: f64) -> Self {
        Self { backend, capacity, target_fpr, shards: None, lease: Duration::from_secs(1) }
    }

    /// In so many shards: a power of two from 1 to 65 536. Without this: 64, or more if they would be larger than 4 MiB.
    #[must_use]
    pub fn shards(mut self, shards: u32) -> Self {
        self.shards = Some(shards);
        self
    }

    /// For how long a client may use what it knows about the filter before it looks again: 1 s, if nothing is said. It is the filter's: later
    /// generations keep that of the first, whatever their plan says.
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

    /// The measurements that keep the promise.
    ///
    /// # Errors
    /// Numbers out of range, or shards larger than their keeper allows.
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

/// Items by which a complete shard of [`Backend::Bloom`] is known; they take room.
pub(crate) const SENTINELS: u64 = 2;
/// The shortest lease: less than a round trip makes no sense.
pub(crate) const LEAST_LEASE_MS: u64 = 10;
/// The longest: builders wait for it several times.
pub(crate) const MOST_LEASE_MS: u64 = 600_000;

/// How large a filter is, in numbers that keep the promise.
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
    /// What keeps the shards.
    #[must_use]
    pub const fn backend(&self) -> Backend {
        self.backend
    }

    /// How many shards there are.
    #[must_use]
    pub const fn shards(&self) -> u32 {
        self.shards
    }

    /// Items it is sized for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The rate that was asked for.
    #[must_use]
    pub const fn target_fpr(&self) -> f64 {
        self.target_fpr
    }

    /// Items that each shard is sized for: its share, and what chance may add to that in the fullest of them.
    #[must_use]
    pub const fn shard_capacity(&self) -> u64 {
        self.shard_capacity
    }

    /// The blocks of a plain shard.
    #[must_use]
    pub const fn plain(&self) -> Option<&PlainShape> {
        self.plain.as_ref()
    }

    /// The rate of a shard with as many items as it is sized for: the worst there is in a filter that is full, and not
    /// above the target.
    #[must_use]
    pub fn worst_shard_fpr(&self) -> f64 {
        self.shard_fpr(self.shard_capacity)
    }

    /// The rate of a shard that holds `items`, by the model; of a server's own filters by that of a classic one.
    #[must_use]
    pub fn shard_fpr(&self, items: u64) -> f64 {
        if let Some(plain) = &self.plain {
            return plain.expected_fpr(items);
        }
        let (bits, probes) = mayhap::sizing::classic::size(self.shard_capacity, self.target_fpr);
        mayhap::sizing::classic::expected_fpr(bits, probes, items).min(1.0)
    }

    /// The rate of a shard that says of itself that it holds `counted` items, also if that is more than it was made for.
    ///
    /// A filter counts only what it has not taken for known. The fuller it is, the less that is of what was added: the rest
    /// follows from the rate on the way. Of a plain shard the count is an estimate from its bits, which tell the rate.
    pub(crate) fn counted_fpr(&self, counted: u64) -> f64 {
        /// Steps for as many items as the shard was made for.
        const STEPS: f64 = 64.0;
        /// From here on it says *mayhap* to everything.
        const ALL: f64 = 0.9999;
        if let Some(plain) = &self.plain {
            return plain.expected_fpr(counted).max(plain.fill_fpr(counted));
        }
        let step = (self.shard_capacity as f64 / STEPS).max(1.0);
        if self.backend != Backend::Mayhap || counted <= self.shard_capacity {
            return self.shard_fpr(counted);
        }
        let (mut items, mut heard) = (self.shard_capacity as f64, self.shard_capacity as f64);
        let mut rate = self.shard_fpr(self.shard_capacity);
        while heard < counted as f64 && rate < ALL {
            heard += (1.0 - rate) * step;
            items += step;
            rate = self.shard_fpr(items as u64);
        }
        rate
    }

    /// The rate of the whole with `capacity` items in: that of a shard with its share.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.shard_fpr(self.capacity.div_ceil(u64::from(self.shards)))
    }
}

/// A shard's share of the items, and room for what chance adds: all shards have enough, but for one filter in a million.
fn shard_capacity(capacity: u64, shards: u32) -> u64 {
    if shards == 1 {
        return capacity;
    }
    let mean = capacity as f64 / f64::from(shards);
    // Bernstein: more than mean + t with a chance of at most exp(-t² / 2(mean + t/3)), of which every shard gets its part.
    let odds = (f64::from(shards) / UNLUCKY).ln();
    let slack = odds / 3.0 + (odds * odds / 9.0 + 2.0 * mean * odds).sqrt();
    ((mean + slack).ceil() as u64).min(capacity)
}

fn usual_shards(capacity: u64, target_fpr: f64) -> u32 {
    let bytes = capacity as f64 * -target_fpr.log2() * 1.5 / 8.0;
    let wanted = (bytes / HANDY_BYTES).ceil().min(f64::from(MOST_SHARDS)) as u32;
    wanted.max(USUAL_SHARDS).next_power_of_two()
}

/// Why a filter cannot be made of these numbers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// A rate that this backend cannot keep.
    Rate {
        /// What was asked for.
        got: f64,
        /// The lowest.
        least: f64,
        /// The highest.
        most: f64,
    },
    /// No items, or too many.
    Capacity {
        /// What was asked for.
        got: u64,
        /// The most.
        most: u64,
    },
    /// Not a power of two, or too many shards.
    Shards {
        /// What was asked for.
        got: u32,
        /// The most.
        most: u32,
    },
    /// Shards that are larger than their keeper allows: more of them make them smaller.
    ShardTooLarge {
        /// Bytes of one, at least.
        bytes: u64,
        /// Bytes it may have.
        limit: u64,
    },
    /// Shards for more items than their keeper allows: more of them make them smaller.
    ShardCapacity {
        /// Items of one.
        got: u64,
        /// Items it may be made for.
        most: u64,
    },
    /// A lease that nobody could keep, or nobody would wait for.
    Lease {
        /// Milliseconds that were asked for.
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
                write!(f, "a shard needs {bytes} bytes, limit is {limit}: more shards make it smaller")
            }
            Self::ShardCapacity { got, most } => {
                write!(f, "a shard would hold {got} items, limit is {most}: more shards make it smaller")
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
        // Never more than all there are.
        let tiny = FilterPlan::new(Backend::Bloom, 3, 0.01).shards(4096).measure().unwrap();
        assert_eq!(tiny.shard_capacity(), 3);
    }

    #[test]
    fn chance_stays_within_the_slack_and_would_not_within_a_third_of_it() {
        let (capacity, shards) = (100_000_u64, 64);
        let room = shard_capacity(capacity, shards);
        let fullest = |round: u64| {
            let key = mayhap::SecretKey::new([round as u8; 16]);
            let mut counts = vec![0_u64; shards as usize];
            for item in 0..capacity {
                counts[crate::route::Place::of(&key, &item.to_le_bytes()).shard(shards) as usize] += 1;
            }
            counts.into_iter().max().unwrap()
        };
        let fullest: Vec<u64> = (0..20).map(fullest).collect();
        assert!(fullest.iter().all(|&items| items <= room), "{fullest:?} > {room}");
        let mean = capacity / u64::from(shards);
        assert!(fullest.iter().any(|&items| items > mean + (room - mean) / 3), "{fullest:?}");
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
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
    fn shards_are_handy_if_nobody_says_how_many() {
        let shards = |capacity| FilterPlan::new(Backend::Plain, capacity, 0.01).measure().unwrap().shards();
        assert_eq!(shards(1000), 64);
        assert_eq!(shards(10_000_000_000), 4096);
    }
}
