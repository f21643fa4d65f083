//! The commands that make a structure, for whoever is not writing Rust.
//!
//! ```
//! use mayhap::advise::{Needs, Structure, build_line, mayhap_reserve, redis_reserve};
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
//! # Ok::<(), mayhap::advise::NoReserve>(())
//! ```

use std::fmt;

use super::needs::{ItemShape, Needs};
use super::price::{GROWABLE_TO, Structure, removals};
use super::say;
use crate::bloom::BloomShape;
use crate::counting::CountingShape;
use crate::error::BuildError;
use crate::scalable::redis_layer;
use crate::scalable_cuckoo::ScalableCuckooShape;

/// What the filter is called in commands, and its file before the dot.
const NAME: &str = "seen";

/// The `mayhap build` line that builds `structure` for `needs` from the lines of a file; nothing for what is kept in no file, for
/// probes that the program would choose otherwise, and for a bitmap of what are no integers.
#[must_use]
pub fn build_line(structure: Structure, needs: &Needs) -> Option<String> {
    if !has_best_probes(structure, needs) {
        return None;
    }
    let mut line = format!("mayhap build {NAME}.mayhap items.txt --kind {}", argument(structure)?);
    match (structure, needs.item) {
        // What it takes is known from the range alone, and it is never wrong.
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
    // The second filter is sized by it.
    if structure == Structure::DualBloom {
        line += &format!(" --deletes {}", removals(needs));
    }
    if needs.untrusted {
        line += " --untrusted";
    }
    Some(line)
}

/// A command that makes a filter in Redis, and what it takes there.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reserve {
    /// `BF.RESERVE …` or `CF.RESERVE …`.
    pub line: String,
    /// Memory of its first, and as long as it does not grow its only, array.
    pub memory_bytes: u64,
    /// How often it is wrong by its own numbers, with all items in.
    pub expected_fpr: f64,
}

/// Why RedisBloom has no such filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum NoReserve {
    /// It has classic filters, chains of them, and cuckoo filters.
    OtherKind {
        /// What was asked for.
        structure: Structure,
    },
    /// Its hash has no key, and non-members choose the items.
    NoKey,
    /// Its probes follow from the rate.
    OtherProbes {
        /// Those asked for.
        asked: u32,
        /// Those it takes.
        taken: u32,
    },
    /// More items than it accepts.
    TooManyItems {
        /// Items.
        got: u64,
        /// What it accepts.
        limit: u64,
    },
    /// Fingerprints of eight bits are wrong so often that more slots than it accepts would have to stay empty.
    TooManySlots {
        /// Slots that the items and the rate take.
        got: u64,
        /// What it accepts.
        limit: u64,
    },
    /// Numbers it cannot be made from.
    Unbuildable,
}

impl fmt::Display for NoReserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OtherKind { structure } => write!(f, "RedisBloom has no {structure}"),
            Self::NoKey => {
                f.write_str("RedisBloom's hash has no key, so that clients can forge items; mayhap's server and module have keyed ones (bf-hash, cf-hash)")
            }
            Self::OtherProbes { asked, taken } => {
                write!(f, "RedisBloom takes {taken} probes at this rate, not {asked}")
            }
            Self::TooManyItems { got, limit } => {
                let (got, limit) = (say::count(got), say::count(limit));
                write!(f, "RedisBloom makes filters for at most {limit} items, got {got}")
            }
            Self::TooManySlots { got, limit } => {
                let (got, limit) = (say::count(got), say::count(limit));
                write!(
                    f,
                    "RedisBloom's cuckoo filter has fingerprints of 8 bits, so that this rate takes {got} slots; it makes at most {limit}"
                )
            }
            Self::Unbuildable => f.write_str("RedisBloom cannot make it from these numbers"),
        }
    }
}

impl std::error::Error for NoReserve {}

/// The most that `BF.RESERVE` and `CF.RESERVE` accept as a capacity.
const REDIS_MAX_CAPACITY: u64 = 1 << 30;

/// The command that makes `structure` for `needs` in a Redis with RedisBloom.
///
/// Its cuckoo filter has eight-bit fingerprints and no rate to ask for: the emptier it is kept, the less often it is wrong. So it
/// is asked for slots enough that all items leave it as empty as the rate needs.
///
/// # Errors
/// [`NoReserve`] if RedisBloom has none that serves.
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
    // Its first layer has half of the rate, the next half of that, and so on.
    let layer = bloom_layer(needs, 0.5)?;
    Ok(reserved(format!("BF.RESERVE {NAME} {rate} {} EXPANSION 2", needs.items), &layer, needs))
}

/// The array RedisBloom makes for this share of the rate.
fn bloom_layer(needs: &Needs, share: f64) -> Result<BloomShape, NoReserve> {
    /// A higher rate it takes for this one, without a word.
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

/// Slots of a bucket. With two, RedisBloom's order of moves runs in a circle when half of the slots are taken, however many moves
/// it may make; with four and moves enough it fills up to nineteen in twenty.
const REDIS_BUCKET_SIZE: u32 = 4;
/// Moves it may make for one item, which the 20 it takes by itself are too few for.
const REDIS_MOVES: u32 = 500;
/// How full its only table may get. Past that it takes a second one, which is wrong as often as the first.
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
        let expected_fpr = shape(slots).map_err(unbuildable)?.full_table_fpr(fill);
        if fill <= REDIS_FULLEST && expected_fpr <= needs.target_fpr {
            let line = format!(
                "CF.RESERVE {NAME} {slots} BUCKETSIZE {REDIS_BUCKET_SIZE} MAXITERATIONS {REDIS_MOVES}"
            );
            return Ok(Reserve { line, memory_bytes: slots, expected_fpr });
        }
        slots *= 2;
    }
}

/// The `MF.RESERVE` line that makes `structure` for `needs` on our own server; nothing for what is no filter of ours, and for a bitmap of
/// what are no integers. A set that is built of all its items at once is then built with `MF.BUILD`.
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
        // The second filter is sized by it.
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

/// Are the probes asked for those that would be taken anyway?
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

/// A rate as every parser of numbers reads it: `0.01`, `1e-9`.
fn plain_rate(rate: f64) -> String {
    format!("{rate:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::{Deletes, Growth};
    use crate::scalable_cuckoo::ScalableCuckoo;

    #[test]
    fn redis_is_asked_only_for_what_it_has() {
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
        assert_eq!(three, "RedisBloom takes 7 probes at this rate, not 3");
    }

    /// The filter is the one RedisBloom would make: with all items in it has not grown, and is wrong as seldom as asked.
    #[test]
    fn a_cuckoo_filter_in_redis_keeps_the_rate_by_being_empty_enough() {
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
    fn lines_say_what_the_kind_is_sized_by() {
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
        // The program takes the best number of probes, so it is no way to any other.
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
