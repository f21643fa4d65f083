//! The d-left filter: four sub-tables of buckets of eight slots, with a fingerprint in each slot in use.

use super::{AIM, MAX_BITS};

/// Sub-tables. An item has one bucket in each of them.
pub const TABLES: u64 = 4;
/// Slots in a bucket.
pub const SLOTS: u64 = 8;
/// Bits of the counter in a slot.
pub const COUNTER_BITS: u32 = 2;
/// The most copies one slot counts. An item with more copies takes more slots.
pub const MAX_COUNT: u32 = (1 << COUNTER_BITS) - 1;
/// The most slots an item takes.
pub const MAX_SLOTS: u32 = 5;
/// The most copies of an item that are counted. This count means "this many or more", and never goes down.
pub const MAX_COPIES: u32 = MAX_COUNT * MAX_SLOTS;
/// The fewest bits a fingerprint can have.
pub const MIN_FINGERPRINT_BITS: u32 = 1;
/// The most bits a fingerprint can have.
pub const MAX_FINGERPRINT_BITS: u32 = 38;
/// The lowest rate it can promise.
pub const MIN_RATE: f64 = 1e-10;

/// The share of slots in use at capacity. With items inserted and removed at this load for ever, an insertion meets four full
/// buckets once in 4·10^17, by the fluid limit (see the tests); at 0.80 once in 4·10^9, at 0.85 once in 6 000.
pub const LOAD: f64 = 0.77;
/// Additional free slots, for tables of one or two buckets, where different items often have the same four buckets.
const SPARE_SLOTS: f64 = 5.0;
/// With shorter fingerprints too many items share all four of their buckets.
const LEAST_CHOSEN_BITS: u32 = 5;

/// The rate of `buckets` buckets in each sub-table, with fingerprints of `r` bits and `n` different items.
///
/// This is exact: an item is one of `buckets · 2^r` pairs of bucket and fingerprint, and a non-member is a false positive if
/// and only if a member is the same pair.
#[must_use]
pub fn expected_fpr(buckets: u64, r: u32, n: u64) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let none = n as f64 * (-1.0 / pairs(buckets, r)).max(-1.0).ln_1p();
    -none.exp_m1()
}

/// The number of different pairs of bucket and fingerprint.
#[must_use]
pub fn pairs(buckets: u64, r: u32) -> f64 {
    buckets as f64 * f64::from(r).exp2()
}

/// The size with the fewest bytes that keeps `rate` with `n` items: buckets per sub-table and bits of a fingerprint,
/// `(buckets, r)`.
#[must_use]
pub fn size(n: u64, rate: f64) -> (u64, u32) {
    let sized = (LEAST_CHOSEN_BITS..=MAX_FINGERPRINT_BITS).map(|r| {
        let buckets = least_buckets(n).max(buckets_for(n, rate, r));
        (buckets.saturating_mul(u64::from(r + COUNTER_BITS)), buckets, r)
    });
    // If two take the same memory, the one with fewer, longer fingerprints has the lower rate.
    let (_, buckets, r) = sized.min().unwrap_or((0, 1, MAX_FINGERPRINT_BITS));
    (buckets, r)
}

/// The fewest buckets per sub-table that hold `n` items without rejecting any.
#[must_use]
pub fn least_buckets(n: u64) -> u64 {
    let slots = (n as f64 + SPARE_SLOTS) / LOAD;
    (slots / (TABLES * SLOTS) as f64).ceil() as u64
}

/// The fewest buckets per sub-table that keep `rate` with `n` items and fingerprints of `r` bits.
fn buckets_for(n: u64, rate: f64, r: u32) -> u64 {
    let pairs = n as f64 / -(-rate * AIM).ln_1p();
    let guess = (pairs / f64::from(r).exp2()).ceil().min(MAX_BITS as f64) as u64;
    super::fewest(guess, |buckets| expected_fpr(buckets, r, n) <= rate * AIM)
}

/// The probable number of items inserted, if they have `distinct` different pairs.
#[must_use]
pub fn items_from_pairs(buckets: u64, r: u32, distinct: u64) -> u64 {
    let pairs = pairs(buckets, r);
    // If all pairs are taken, that only tells "very many": count as if one were still free.
    let share = (distinct as f64 / pairs).min((pairs - 1.0) / pairs);
    (-(-share).ln_1p() * pairs).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_keeps_its_rate_and_its_load() {
        for n in [1, 2, 20, 1_000, 1_000_000, 1 << 36] {
            for rate in [0.9, 0.5, 0.1, 0.01, 1e-3, 1e-6, 1e-9] {
                let (buckets, r) = size(n, rate);
                assert!(expected_fpr(buckets, r, n) <= rate * AIM, "{n} items at {rate}");
                let load = n as f64 / (buckets * TABLES * SLOTS) as f64;
                assert!(load <= LOAD, "{n} items at {rate}: load {load}");
                // No neighbouring size is smaller.
                let bytes = |buckets: u64, r: u32| buckets * u64::from(r + COUNTER_BITS);
                for other in [r - 1, r + 1].into_iter().filter(|r| *r >= LEAST_CHOSEN_BITS) {
                    let needed = least_buckets(n).max(buckets_for(n, rate, other));
                    assert!(bytes(needed, other) >= bytes(buckets, r), "{n} items at {rate}: {other} bits");
                }
            }
        }
    }

    #[test]
    fn bits_per_item_are_half_of_a_counting_filter() {
        let n = 1_000_000;
        let bits = |rate| {
            let (buckets, r) = size(n, rate);
            (buckets * TABLES * SLOTS * u64::from(r + COUNTER_BITS)) as f64 / n as f64
        };
        assert!((bits(0.01) - 18.18).abs() < 0.01, "{}", bits(0.01));
        assert!((bits(0.001) - 22.08).abs() < 0.01, "{}", bits(0.001));
    }

    #[test]
    fn pairs_give_the_number_of_items() {
        assert_eq!(items_from_pairs(10, 5, 0), 0);
        assert!(items_from_pairs(10, 5, 320) > 1_000, "all taken: very many");
        let distinct = expected_fpr(100, 12, 300_000) * pairs(100, 12);
        assert!((items_from_pairs(100, 12, distinct as u64) as i64 - 300_000).abs() < 5);
    }

    /// The share of buckets with at least `k` slots in use, for each sub-table, in the fluid limit of many buckets.
    type Tails = [[f64; SLOTS as usize + 3]; TABLES as usize];

    /// The growth of the tails when items go to the bucket with the fewest, ties to the left; per item and bucket of a
    /// sub-table.
    fn arrivals(tails: &Tails) -> Tails {
        let mut grown = [[0.0; SLOTS as usize + 3]; TABLES as usize];
        for k in 0..=SLOTS as usize + 1 {
            for table in 0..TABLES as usize {
                let others = (0..TABLES as usize).filter(|&other| other != table);
                // The buckets to the left have more items, those to the right at least as many.
                let rest: f64 = others.map(|other| tails[other][k + usize::from(other < table)]).product();
                grown[table][k + 1] = (tails[table][k] - tails[table][k + 1]) * rest;
            }
        }
        grown
    }

    /// The probability that an item meets four full buckets after the filter has been at `load` for `lifetimes` of its
    /// items, with items removed at random.
    fn refusal_chance(load: f64, lifetimes: f64) -> f64 {
        const STEP: f64 = 0.02;
        let per_bucket = load * SLOTS as f64;
        let mut tails: Tails = [[0.0; SLOTS as usize + 3]; TABLES as usize];
        tails.iter_mut().for_each(|table| table[0] = 1.0);
        let filling = (per_bucket / STEP).round() as usize;
        let churning = (per_bucket * lifetimes / STEP).round() as usize;
        for step in 0..filling + churning {
            let grown = arrivals(&tails);
            for (table, grown) in tails.iter_mut().zip(grown) {
                let before = *table;
                for k in 1..=SLOTS as usize + 1 {
                    let leaving = k as f64 * (before[k] - before[k + 1]) / per_bucket;
                    table[k] +=
                        STEP * (TABLES as f64 * grown[k] - if step < filling { 0.0 } else { leaving });
                }
            }
        }
        tails.iter().map(|table| table[SLOTS as usize]).product()
    }

    #[test]
    fn the_load_never_leads_to_rejections() {
        assert!(refusal_chance(LOAD, 0.0) < 1e-60, "filled once: {:e}", refusal_chance(LOAD, 0.0));
        let churned = refusal_chance(LOAD, 15.0);
        assert!((1e-18..1e-17).contains(&churned), "{churned:e}");
        // It does not rise with time.
        assert!((refusal_chance(LOAD, 30.0) / churned - 1.0).abs() < 0.01);
        // Denser tables do reject items; this is why the limit is where it is.
        assert!(refusal_chance(0.85, 15.0) > 1e-4);
    }
}
