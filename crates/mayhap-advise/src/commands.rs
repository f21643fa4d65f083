//! The commands that create a structure, for users who do not write Rust.
//!
//! ```
//! use mayhap_advise::{Needs, Structure, build_line, mayhap_reserve, redis_reserve};
//!
//! let needs = Needs::new(1_000_000, 0.01);
//! assert_eq!(
//!     build_line(Structure::Bloom, &needs).as_deref(),
//!     Some("mayhap build seen.mayhap items.txt --kind bloom --items 1000000 --fpr 0.01")
//! );
//! let redis = redis_reserve(Structure::Bloom, &needs)?;
//! assert_eq!(redis.line, "BF.RESERVE seen 0.01 1000000 NONSCALING");
//! assert_eq!(redis.memory_bytes, 1_198_136);
//! assert_eq!(
//!     mayhap_reserve(Structure::Quotient, &needs).as_deref(),
//!     Some("MF.RESERVE seen KIND quotient CAPACITY 1000000 FPR 0.01")
//! );
//! # Ok::<(), mayhap_advise::NoReserve>(())
//! ```

use std::fmt;

use mayhap::internals::scalable::redis_layer;
use mayhap::internals::scalable_cuckoo::full_table_fpr;
use mayhap::{BloomShape, BuildError, CountingShape, ScalableCuckooShape, say};

use crate::needs::{ItemShape, Needs};
use crate::price::{GROWABLE_TO, Structure, removals};

/// The name of the filter in commands, and of its file without the extension.
const NAME: &str = "seen";

/// The `mayhap build` line that builds `structure` for `needs` from the lines of a file. `None` if the structure cannot be
/// saved to a file, if the program would choose another number of probes, and for a bitmap of items that are not integers.
#[must_use]
pub fn build_line(structure: Structure, needs: &Needs) -> Option<String> {
    if !has_best_probes(structure, needs) {
        return None;
    }
    let mut line = format!("mayhap build {NAME}.mayhap items.txt --kind {}", argument(structure)?);
    match (structure, needs.item) {
        // Its memory follows from the range alone, and it is never wrong.
        (Structure::Bitmap, ItemShape::IntegerRange { low, high }) => {
            line += &format!(" --range {low}..{high}");
            return Some(line);
        }
        (Structure::Bitmap, _) => return None,
        _ => {}
    }
    if !structure.is_static() {
        line += &format!(" --items {}", needs.items);
    }
    line += &format!(" --fpr {}", plain_rate(needs.target_fpr));
    // The second filter is sized for the removals.
    if structure == Structure::DualBloom {
        line += &format!(" --deletes {}", removals(needs));
    }
    if needs.untrusted {
        line += " --untrusted";
    }
    Some(line)
}

/// A command that creates a filter in Redis, and its cost there.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reserve {
    /// `BF.RESERVE …` or `CF.RESERVE …`.
    pub line: String,
    /// The memory of its first array. It has no other until it grows.
    pub memory_bytes: u64,
    /// Its false-positive rate with all items inserted, computed from the parameters of RedisBloom.
    pub expected_fpr: f64,
}

/// Why RedisBloom cannot create such a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum NoReserve {
    /// RedisBloom only has classic filters, chains of them, and cuckoo filters.
    OtherKind {
        /// The structure asked for.
        structure: Structure,
    },
    /// Its hash has no key, and untrusted clients choose the items.
    NoKey,
    /// Its number of probes follows from the rate.
    OtherProbes {
        /// The number asked for.
        asked: u32,
        /// The number RedisBloom uses.
        taken: u32,
    },
    /// More items than it accepts.
    TooManyItems {
        /// Items.
        got: u64,
        /// The most it accepts.
        limit: u64,
    },
    /// Eight-bit fingerprints have a high false-positive rate, so this rate needs more empty slots than RedisBloom accepts.
    TooManySlots {
        /// The slots that the items need at this rate.
        got: u64,
        /// The most it accepts.
        limit: u64,
    },
    /// RedisBloom cannot build a filter from these numbers.
    Unbuildable,
}

impl fmt::Display for NoReserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OtherKind { structure } => write!(f, "RedisBloom has no {structure}"),
            Self::NoKey => {
                f.write_str("RedisBloom's hash has no key, so clients can forge items; mayhap's server and module can hash with a key (bf-hash, cf-hash)")
            }
            Self::OtherProbes { asked, taken } => {
                write!(f, "RedisBloom uses {taken} probes at this rate, not {asked}")
            }
            Self::TooManyItems { got, limit } => {
                let (got, limit) = (say::count(got), say::count(limit));
                write!(f, "RedisBloom makes filters for at most {limit} items, got {got}")
            }
            Self::TooManySlots { got, limit } => {
                let (got, limit) = (say::count(got), say::count(limit));
                write!(
                    f,
                    "RedisBloom's cuckoo filter has 8-bit fingerprints, so this rate needs {got} slots, limit is {limit}"
                )
            }
            Self::Unbuildable => f.write_str("RedisBloom cannot build a filter from these numbers"),
        }
    }
}

impl std::error::Error for NoReserve {}

/// The largest capacity that `BF.RESERVE` and `CF.RESERVE` accept.
const REDIS_MAX_CAPACITY: u64 = 1 << 30;

/// The command that creates `structure` for `needs` in a Redis with RedisBloom.
///
/// RedisBloom's cuckoo filter has eight-bit fingerprints and no rate parameter; its rate falls with its fill. So the command
/// asks for enough slots that the filter keeps the rate with all items inserted.
///
/// # Errors
/// [`NoReserve`] if RedisBloom has no suitable filter.
pub fn redis_reserve(structure: Structure, needs: &Needs) -> Result<Reserve, NoReserve> {
    let make = match structure {
        Structure::Bloom => bloom_reserve,
        Structure::ScalableBloom => scalable_reserve,
        Structure::Cuckoo => cuckoo_reserve,
        _ => return Err(NoReserve::OtherKind { structure }),
    };
    if needs.untrusted {
        return Err(NoReserve::NoKey);
    }
    make(needs)
}

fn bloom_reserve(needs: &Needs) -> Result<Reserve, NoReserve> {
    let rate = plain_rate(needs.target_fpr);
    let line = format!("BF.RESERVE {NAME} {rate} {} NONSCALING", needs.items);
    let layer = bloom_layer(needs, 1.0)?;
    match needs.probes {
        Some(asked) if asked != layer.probes() => {
            Err(NoReserve::OtherProbes { asked, taken: layer.probes() })
        }
        _ => Ok(reserved(line, &layer, needs)),
    }
}

fn scalable_reserve(needs: &Needs) -> Result<Reserve, NoReserve> {
    let rate = plain_rate(needs.target_fpr);
    // The first layer gets half of the rate, the next one half of that, and so on.
    let layer = bloom_layer(needs, 0.5)?;
    Ok(reserved(format!("BF.RESERVE {NAME} {rate} {} EXPANSION 2", needs.items), &layer, needs))
}

/// The array that RedisBloom allocates for this share of the rate.
fn bloom_layer(needs: &Needs, share: f64) -> Result<BloomShape, NoReserve> {
    /// RedisBloom silently replaces higher rates by this one.
    const HIGHEST_RATE: f64 = 0.25;
    if needs.items > REDIS_MAX_CAPACITY {
        return Err(NoReserve::TooManyItems { got: needs.items, limit: REDIS_MAX_CAPACITY });
    }
    let rate = needs.target_fpr.min(HIGHEST_RATE) * share;
    redis_layer(needs.items, rate).map_err(|_| NoReserve::Unbuildable)
}

fn reserved(line: String, layer: &BloomShape, needs: &Needs) -> Reserve {
    Reserve { line, memory_bytes: layer.bits() / 8, expected_fpr: layer.expected_fpr(needs.items) }
}

/// Slots per bucket. With two, RedisBloom's order of moves goes in a circle when half of the slots are taken, whatever the
/// number of moves. With four and enough moves it fills up to 95 % of the slots.
const REDIS_BUCKET_SIZE: u32 = 4;
/// Moves it may make for one item. Its default of 20 is too low.
const REDIS_MOVES: u32 = 500;
/// The highest fill of its only table. Above it RedisBloom adds a second table with the same false-positive rate.
const REDIS_FULLEST: f64 = 0.9;

fn cuckoo_reserve(needs: &Needs) -> Result<Reserve, NoReserve> {
    let shape = |slots| {
        ScalableCuckooShape::for_capacity(slots)?
            .with_bucket_size(REDIS_BUCKET_SIZE)?
            .with_max_iterations(REDIS_MOVES)
    };
    let unbuildable = |_: BuildError| NoReserve::Unbuildable;
    let mut slots = needs.items.next_power_of_two().max(2 * u64::from(REDIS_BUCKET_SIZE));
    loop {
        if slots > REDIS_MAX_CAPACITY {
            return Err(NoReserve::TooManySlots { got: slots, limit: REDIS_MAX_CAPACITY });
        }
        let fill = needs.items as f64 / slots as f64;
        let expected_fpr = full_table_fpr(&shape(slots).map_err(unbuildable)?, fill);
        if fill <= REDIS_FULLEST && expected_fpr <= needs.target_fpr {
            let line = format!(
                "CF.RESERVE {NAME} {slots} BUCKETSIZE {REDIS_BUCKET_SIZE} MAXITERATIONS {REDIS_MOVES}"
            );
            return Ok(Reserve { line, memory_bytes: slots, expected_fpr });
        }
        slots *= 2;
    }
}

/// The `MF.RESERVE` line that creates `structure` for `needs` on our own server. `None` if it is not a filter of ours, and
/// for a bitmap of items that are not integers. An immutable filter is then built with `MF.BUILD`.
#[must_use]
pub fn mayhap_reserve(structure: Structure, needs: &Needs) -> Option<String> {
    let (kind, items) = (argument(structure)?, needs.items);
    if structure == Structure::Bitmap {
        let ItemShape::IntegerRange { low, high } = needs.item else { return None };
        return Some(format!("MF.RESERVE {NAME} KIND {kind} RANGE {low} {high}"));
    }
    let mut line =
        format!("MF.RESERVE {NAME} KIND {kind} CAPACITY {items} FPR {}", plain_rate(needs.target_fpr));
    match structure {
        // The second filter is sized for the removals.
        Structure::DualBloom => line += &format!(" DELETES {}", removals(needs)),
        Structure::GrowableCuckoo => line += &format!(" MAX {}", items.saturating_mul(GROWABLE_TO)),
        _ => {}
    }
    if let Some(probes) = needs.probes.filter(|_| !has_best_probes(structure, needs)) {
        line += &format!(" PROBES {probes}");
    }
    Some(line)
}

/// The kind as one word: `blocked-bloom-split`.
fn argument(structure: Structure) -> Option<String> {
    structure.kind()?;
    Some(structure.name().replace(' ', "-"))
}

/// Are the probes asked for the number that would be chosen anyway?
fn has_best_probes(structure: Structure, needs: &Needs) -> bool {
    let best = match structure {
        Structure::Bloom => {
            BloomShape::for_capacity(needs.items, needs.target_fpr).map(|shape| shape.probes())
        }
        Structure::CountingBloom => {
            CountingShape::for_capacity(needs.items, needs.target_fpr).map(|shape| shape.probes())
        }
        _ => return true,
    };
    needs.probes.is_none_or(|asked| best == Ok(asked))
}

/// A rate in a form that every number parser reads: `0.01`, `1e-9`.
fn plain_rate(rate: f64) -> String {
    format!("{rate:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Deletes, Growth};
    use mayhap::ScalableCuckoo;

    #[test]
    fn redis_reserve_rejects_what_redisbloom_lacks() {
        let needs = Needs::new(1_000_000, 0.01);
        let why_not = |structure, needs: &Needs| redis_reserve(structure, needs).unwrap_err();
        assert_eq!(
            redis_reserve(Structure::ScalableBloom, &needs).unwrap().line,
            "BF.RESERVE seen 0.01 1000000 EXPANSION 2"
        );
        assert_eq!(redis_reserve(Structure::ScalableBloom, &needs).unwrap().memory_bytes, 1_378_472);
        let quotient = why_not(Structure::Quotient, &needs);
        assert_eq!(quotient.to_string(), "RedisBloom has no quotient");
        assert_eq!(why_not(Structure::Bloom, &needs.clone().untrusted()), NoReserve::NoKey);
        let many = why_not(Structure::Bloom, &Needs::new((1 << 30) + 1, 0.01)).to_string();
        assert_eq!(many, "RedisBloom makes filters for at most 1,073,741,824 items, got 1,073,741,825");
        // Seven probes at 1 % are its own choice, three are not.
        assert!(redis_reserve(Structure::Bloom, &needs.clone().probing(7)).is_ok());
        let three = why_not(Structure::Bloom, &needs.probing(3)).to_string();
        assert_eq!(three, "RedisBloom uses 7 probes at this rate, not 3");
    }

    /// Builds the filter as RedisBloom would: with all items inserted it has not grown and keeps the rate.
    #[test]
    fn a_redis_cuckoo_filter_has_enough_slots_for_the_rate() {
        for (items, rate, slots) in
            [(100_000, 0.03, 131_072), (100_000, 0.01, 524_288), (116_000, 0.05, 131_072), (3, 0.5, 8)]
        {
            let needs = Needs::new(items, rate).deleting(Deletes::Endlessly);
            let reserve = redis_reserve(Structure::Cuckoo, &needs).unwrap();
            assert_eq!(
                reserve.line,
                format!("CF.RESERVE seen {slots} BUCKETSIZE 4 MAXITERATIONS 500"),
                "{items} at {rate}"
            );
            let shape = ScalableCuckooShape::for_capacity(slots).unwrap().with_bucket_size(4).unwrap();
            let shape = shape.with_max_iterations(500).unwrap();
            for seed in 0..3 {
                let mut filter = ScalableCuckoo::with_shape(shape, seed).unwrap();
                (0..items).for_each(|item| assert!(filter.insert(&item).is_ok()));
                assert_eq!(filter.tables(), 1, "{items} at {rate}");
                assert!(filter.expected_fpr() <= rate);
                let wrong = (items..items + 200_000).filter(|item| filter.may_contain(item)).count();
                assert!(wrong as f64 / 200_000.0 <= rate * 1.05, "{wrong} wrong of {items} at {rate}");
            }
        }
        let many = redis_reserve(Structure::Cuckoo, &Needs::new(1_000_000_000, 0.01)).unwrap_err();
        assert_eq!(many, NoReserve::TooManySlots { got: 1 << 31, limit: 1 << 30 });
    }

    #[test]
    fn lines_contain_the_parameters_of_the_kind() {
        let needs = Needs::new(200_000, 1e-3);
        let build = |structure, needs: &Needs| build_line(structure, needs).unwrap_or_default();
        assert!(
            build(Structure::CuckooSemiSorted, &needs).contains("--kind cuckoo-semi-sorted --items 200000")
        );
        let dual = build(Structure::DualBloom, &needs.clone().deleting(Deletes::UpTo(5_000)));
        assert!(dual.ends_with("--kind dual-bloom --items 200000 --fpr 0.001 --deletes 5000"), "{dual}");
        let fixed = build(Structure::Ribbon, &needs.clone().growing(Growth::AllAtOnce).untrusted());
        assert!(fixed.ends_with("items.txt --kind ribbon --fpr 0.001 --untrusted"), "{fixed}");
        let range = ItemShape::IntegerRange { low: 10, high: 99 };
        let bitmap = build(Structure::Bitmap, &Needs::new(5, 0.01).of(range));
        assert!(bitmap.ends_with("items.txt --kind bitmap --range 10..99"), "{bitmap}");
        for structure in [Structure::HashSet, Structure::SortedArray, Structure::Bitmap] {
            assert_eq!((build_line(structure, &needs), mayhap_reserve(structure, &needs)), (None, None));
        }
        // The program always uses the best number of probes, so there is no line for another one.
        assert_eq!(build_line(Structure::Bloom, &needs.clone().probing(3)), None);
        assert!(build_line(Structure::Bloom, &needs.clone().probing(10)).is_some());
        let reserve = |structure, needs: &Needs| mayhap_reserve(structure, needs).unwrap_or_default();
        assert_eq!(reserve(Structure::Gcs, &needs), "MF.RESERVE seen KIND gcs CAPACITY 200000 FPR 0.001");
        assert!(reserve(Structure::Bloom, &needs.clone().probing(3)).ends_with("FPR 0.001 PROBES 3"));
        assert!(reserve(Structure::DualBloom, &needs).ends_with("FPR 0.001 DELETES 20000"));
        assert!(reserve(Structure::GrowableCuckoo, &needs).ends_with("FPR 0.001 MAX 3200000"));
        assert_eq!(
            reserve(Structure::Bitmap, &Needs::new(5, 0.01).of(range)),
            "MF.RESERVE seen KIND bitmap RANGE 10 99"
        );
        assert_eq!(
            mayhap_reserve(Structure::Window, &Needs::new(7, 1e-9)).unwrap(),
            "MF.RESERVE seen KIND window CAPACITY 7 FPR 1e-9"
        );
    }
}
