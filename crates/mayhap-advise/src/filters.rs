//! The cost of our filters, computed from the shapes they are built from.

use mayhap::internals::{LINE_BYTES, WORDS_PER_LINE};
use mayhap::{
    BinaryFuseShape, BlockedLayout, BlockedShape, BloomShape, BuildError, CountingShape, CuckooShape,
    DLeftShape, DualShape, GcsShape, GrowableCuckooShape, GrowingShape, QuotientShape, RibbonShape,
    ScalableShape, WindowShape, XorShape,
};

use crate::price::{Cost, GROWABLE_TO};

/// With the best number of probes, or with `probes`.
pub(super) fn bloom(items: u64, rate: f64, probes: Option<u32>) -> Result<Cost, BuildError> {
    let shape = match probes {
        Some(probes) => BloomShape::for_probes(items, rate, probes),
        None => BloomShape::for_capacity(items, rate),
    }?;
    Ok(Cost {
        expected_fpr: shape.expected_fpr(items),
        doubled_fpr: shape.expected_fpr(2 * items),
        ..Cost::of(shape.memory_bytes(), shape.probes(), items, rate)
            .scattered(fill(shape.bits(), shape.probes(), items), Rest::OneByOne)
    })
}

/// With the best number of probes, or with `probes`.
pub(super) fn counting(items: u64, rate: f64, probes: Option<u32>) -> Result<Cost, BuildError> {
    let shape = match probes {
        Some(probes) => CountingShape::for_probes(items, rate, probes),
        None => CountingShape::for_capacity(items, rate),
    }?;
    Ok(Cost {
        expected_fpr: shape.expected_fpr(items),
        doubled_fpr: shape.expected_fpr(2 * items),
        ..Cost::of(shape.memory_bytes(), shape.probes(), items, rate)
            .scattered(fill(shape.counters(), shape.probes(), items), Rest::Together)
    })
}

pub(super) fn blocked(layout: BlockedLayout, items: u64, rate: f64) -> Result<Cost, BuildError> {
    let shape = BlockedShape::with_layout(layout, items, rate)?;
    let lines = shape.lines_per_item();
    // Every line rejects most non-members; only the rest go on to the next line.
    let passed = rate.powf(1.0 / f64::from(lines));
    let lines_miss = (0..lines).map(|line| passed.powi(line as i32)).sum();
    Ok(Cost {
        lines_miss,
        lines_hit: f64::from(lines),
        expected_fpr: shape.expected_fpr(items),
        doubled_fpr: shape.expected_fpr(2 * items),
        ..Cost::of(shape.memory_bytes(), shape.probes() * lines, items, rate)
    })
}

/// `removals` is the total number of removals.
pub(super) fn dual(items: u64, removals: u64, rate: f64) -> Result<Cost, BuildError> {
    let shape = DualShape::for_capacity(items, removals, rate)?;
    let half = |half: &BloomShape, items| {
        let cost = Cost::of(half.memory_bytes(), half.probes(), items, rate);
        cost.scattered(fill(half.bits(), half.probes(), items), Rest::OneByOne)
    };
    let (added, removed) = (half(shape.added(), items), half(shape.removed(), removals));
    Ok(Cost {
        lines_miss: added.lines_miss,
        // A member may have been removed, so the second filter is read too. Nearly always it answers no.
        lines_hit: added.lines_hit + removed.lines_miss,
        expected_fpr: shape.expected_fpr(items, removals),
        doubled_fpr: shape.expected_fpr(2 * items, removals),
        ..Cost::of(shape.memory_bytes(), added.probes + removed.probes, items, rate)
    })
}

/// With all items in its first layer.
pub(super) fn scalable(items: u64, rate: f64) -> Result<Cost, BuildError> {
    let shape = ScalableShape::for_capacity(items, rate)?;
    let first = shape.layer(0)?;
    Ok(Cost {
        expected_fpr: shape.expected_fpr(items)?,
        // It keeps its rate at any size.
        doubled_fpr: shape.expected_fpr(2 * items).unwrap_or(rate),
        ..Cost::of(shape.memory_bytes_for(items)?, first.probes(), items, rate)
            .scattered(fill(first.bits(), first.probes(), items), Rest::OneByOne)
    })
}

/// One line in each of its four tables.
pub(super) fn dleft(items: u64, rate: f64) -> Result<Cost, BuildError> {
    let shape = DLeftShape::for_capacity(items, rate)?;
    let lines = distinct(shape.memory_bytes() / LINE_BYTES as u64, 4);
    Ok(Cost::of(shape.memory_bytes(), 4, items, rate)
        .keeping(shape.expected_fpr(items))
        .touching(lines, lines))
}

pub(super) fn cuckoo(items: u64, rate: f64) -> Result<Cost, BuildError> {
    Ok(two_buckets(&CuckooShape::for_capacity(items, rate)?, items, rate))
}

pub(super) fn cuckoo_semi_sorted(items: u64, rate: f64) -> Result<Cost, BuildError> {
    Ok(two_buckets(&CuckooShape::semi_sorted(items, rate)?, items, rate))
}

/// Both buckets are always read: waiting for the result of the first would cost more.
fn two_buckets(shape: &CuckooShape, items: u64, rate: f64) -> Cost {
    let lines = distinct(shape.memory_bytes() / LINE_BYTES as u64, 2);
    Cost::of(shape.memory_bytes(), 2, items, rate).keeping(shape.expected_fpr(items)).touching(lines, lines)
}

/// Created for `items` items, with room to grow.
pub(super) fn growable_cuckoo(items: u64, rate: f64) -> Result<Cost, BuildError> {
    let shape = GrowableCuckooShape::for_growth(items, items.saturating_mul(GROWABLE_TO), rate)?;
    let bytes = shape.memory_bytes(0);
    let lines = distinct(bytes / LINE_BYTES as u64, 2);
    Ok(Cost::of(bytes, 2, items, rate).keeping(shape.expected_fpr(items)).touching(lines, lines))
}

pub(super) fn quotient(items: u64, rate: f64) -> Result<Cost, BuildError> {
    let shape = QuotientShape::for_capacity(items, rate)?;
    let cost = Cost::of(shape.memory_bytes(), 1, items, rate);
    Ok(cost.keeping(shape.expected_fpr(items)).touching(RUN_LINES_MISS, RUN_LINES_HIT))
}

pub(super) fn growing(items: u64, rate: f64) -> Result<Cost, BuildError> {
    let shape = GrowingShape::for_capacity(items, rate)?;
    let cost = Cost::of(shape.memory_bytes(), 1, items, rate);
    Ok(cost.keeping(shape.expected_fpr(items)?).touching(RUN_LINES_MISS, RUN_LINES_HIT))
}

pub(super) fn xor(items: u64, rate: f64) -> Result<Cost, BuildError> {
    let shape = XorShape::for_capacity(items, rate)?;
    let lines = distinct(shape.memory_bytes() / LINE_BYTES as u64, 3);
    Ok(Cost::of(shape.memory_bytes(), 3, items, rate).keeping(shape.expected_fpr()).touching(lines, lines))
}

pub(super) fn binary_fuse(items: u64, rate: f64) -> Result<Cost, BuildError> {
    let shape = BinaryFuseShape::for_capacity(items, rate)?;
    let lines = distinct(shape.memory_bytes() / LINE_BYTES as u64, 3);
    Ok(Cost::of(shape.memory_bytes(), 3, items, rate).keeping(shape.expected_fpr()).touching(lines, lines))
}

/// The threshold of its bucket, and consecutive columns. A line that follows another is fetched along with it.
pub(super) fn ribbon(items: u64, rate: f64) -> Result<Cost, BuildError> {
    let shape = RibbonShape::for_items(items, rate)?;
    let columns = shape.columns().ceil();
    let lines = 2.0 + (columns - 1.0) / WORDS_PER_LINE as f64 / 2.0;
    Ok(Cost::of(shape.memory_bytes(), 1, items, rate).keeping(shape.expected_fpr()).touching(lines, lines))
}

/// An entry of the index, and the codes it points to.
pub(super) fn gcs(items: u64, rate: f64) -> Result<Cost, BuildError> {
    let shape = GcsShape::for_capacity(items, rate)?;
    let stretch = shape.memory_bytes() as f64 / shape.buckets() as f64;
    let lines = 2.0 + stretch / 2.0 / LINE_BYTES as f64;
    Ok(Cost::of(shape.memory_bytes(), 1, items, rate)
        .keeping(shape.expected_fpr(items))
        .touching(lines, lines))
}

/// The lines of all generations that may hold the item.
pub(super) fn window(items: u64, rate: f64) -> Result<Cost, BuildError> {
    let shape = WindowShape::of_items(items, rate)?;
    let lines = f64::from(shape.generations());
    let expected = shape.expected_fpr(shape.generation_items());
    Ok(Cost {
        lines_miss: lines,
        lines_hit: lines,
        expected_fpr: expected,
        doubled_fpr: expected,
        ..Cost::of(shape.memory_bytes(), shape.generations(), items, rate)
    })
}

/// The memory of a scalable filter created for `items` items that now holds `times` as many.
pub(super) fn scalable_bytes_once_grown(items: u64, rate: f64, times: u64) -> Result<u64, BuildError> {
    ScalableShape::for_capacity(items, rate)?.memory_bytes_for(items.saturating_mul(times))
}

/// The memory of a growing filter created for `items` items that now holds `times` as many.
pub(super) fn growing_bytes_once_grown(items: u64, rate: f64, times: u64) -> Result<u64, BuildError> {
    GrowingShape::for_capacity(items, rate)?.memory_bytes_after(items.saturating_mul(times))
}

/// Lines a run table touches: the block of the home, and its slots if the home is in use. Longer runs touch more.
const RUN_LINES_MISS: f64 = 1.8;
const RUN_LINES_HIT: f64 = 2.2;

impl Cost {
    /// A structure of `memory_bytes` that is never wrong and touches one line.
    pub(super) fn of(memory_bytes: u64, probes: u32, items: u64, rate: f64) -> Self {
        let bits_per_item = memory_bytes as f64 * 8.0 / items as f64;
        Self {
            items,
            memory_bytes,
            bits_per_item,
            target_fpr: rate,
            over_bound: bits_per_item / -rate.log2(),
            probes,
            lines_miss: 1.0,
            lines_hit: 1.0,
            expected_fpr: 0.0,
            doubled_fpr: 0.0,
        }
    }

    /// The same with a false-positive rate of `expected_fpr`, which does not rise with more items than it was sized for: it
    /// grows, rejects them, or is immutable.
    fn keeping(self, expected_fpr: f64) -> Self {
        Self { expected_fpr, doubled_fpr: expected_fpr, ..self }
    }

    /// The same with these numbers of lines per lookup.
    fn touching(self, lines_miss: f64, lines_hit: f64) -> Self {
        Self { lines_miss, lines_hit, ..self }
    }

    /// The same with its probes scattered over all of its memory. `fill` is the share of it that is set.
    fn scattered(self, fill: f64, rest: Rest) -> Self {
        /// A lookup reads three probes before its first decision.
        const FIRST_GROUP: u32 = 3;
        let first = self.probes.min(FIRST_GROUP);
        let lines = |probes| distinct(self.memory_bytes / LINE_BYTES as u64, probes);
        let others: f64 = match rest {
            Rest::Together => (lines(self.probes) - lines(first)) * fill.powi(first as i32),
            // The next probe is read if all before it were set.
            Rest::OneByOne => (first..self.probes)
                .map(|read| (lines(read + 1) - lines(read)) * fill.powi(read as i32))
                .sum(),
        };
        Self { lines_miss: lines(first) + others, lines_hit: lines(self.probes), ..self }
    }
}

/// How a lookup reads the other probes if the first three were all set.
#[derive(Clone, Copy)]
enum Rest {
    /// Up to the first clear one, as the classic filter does.
    OneByOne,
    /// All of them, as the counting filter does.
    Together,
}

/// The share of `places` in use after `items` items set `probes` each.
fn fill(places: u64, probes: u32, items: u64) -> f64 {
    -(-(items as f64) * f64::from(probes) / places as f64).exp_m1()
}

/// The average number of different lines, out of `lines`, that `probes` random probes touch.
fn distinct(lines: u64, probes: u32) -> f64 {
    let lines = lines.max(1) as f64;
    // For very many lines `1 - 1/lines` would lose precision.
    lines * -(f64::from(probes) * (-1.0 / lines).ln_1p()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_share_lines_only_in_small_filters() {
        assert_eq!(distinct(1, 7), 1.0);
        assert!((distinct(2, 2) - 1.5).abs() < 1e-12);
        assert!((distinct(1 << 40, 7) - 7.0).abs() < 1e-6);
    }

    #[test]
    fn a_non_member_costs_a_classic_filter_about_three_lines() {
        let cost = bloom(1_000_000, 0.01, None).unwrap();
        // Three read together, then one by one: 3 + 0.52^3 + 0.52^4 + … .
        assert!((3.26..3.28).contains(&cost.lines_miss), "{cost:?}");
        let low = bloom(1_000_000, 1e-6, None).unwrap();
        assert!((3.24..3.26).contains(&low.lines_miss), "{low:?}");
        // The counting filter reads all the others once the first three were set.
        let counting = counting(1_000_000, 0.01, None).unwrap();
        assert!((3.5..3.6).contains(&counting.lines_miss), "{counting:?}");
        assert!((6.99..=7.0).contains(&cost.lines_hit), "{cost:?}");
        assert!((1.44..1.45).contains(&cost.over_bound), "{cost:?}");
        assert!(
            (0.14..0.17).contains(&cost.doubled_fpr),
            "twice as many items: 15.8% in the textbook; {cost:?}"
        );
    }
}
