//! The points of the lines, computed from the library's models.

use std::ops::RangeInclusive;

use super::restyle::is_solid;
use mayhap_advise::{Advice, Filling, Needs, Price, Structure, Unsuitable, price_list};

/// Loads to compute, in hundredths of the capacity.
const FILL_PERCENT: RangeInclusive<u32> = 10..=300;
/// Rates computed per decade.
const STEPS_PER_DECADE: u32 = 100;
/// Lines above this many bits per item are off the chart, unless even the smallest takes a sixteenth of that, as with very few items.
const MOST_BITS: f64 = 512.0;

/// One kind in the picture.
pub(super) struct Drawn<'a> {
    /// The index that determines its colour and dashes.
    pub(super) index: usize,
    pub(super) structure: Structure,
    pub(super) price: &'a Price,
}

/// One line.
pub(super) struct Curve {
    pub(super) index: usize,
    pub(super) structure: Structure,
    pub(super) points: Vec<(f64, f64)>,
    /// It stops at its last point because the filter accepts no more items.
    pub(super) ends: bool,
    /// It is a single point because the filter is static.
    pub(super) is_fixed: bool,
}

/// All kinds that have a price, in the order of the plan.
pub(super) fn drawn(advice: &Advice) -> impl Iterator<Item = Drawn<'_>> {
    advice.prices.iter().filter_map(|price| {
        let index = Structure::all().position(|structure| structure == price.structure)?;
        let drawn = Drawn { index, structure: price.structure, price };
        // A bitmap can be off any chart; if it is too large, no other rate helps.
        let off = price.structure == Structure::Bitmap && drawn.is_too_large();
        let shown = price.structure.kind().is_some() && price.cost.is_some() && !off;
        shown.then_some(drawn)
    })
}

impl Drawn<'_> {
    /// Whether it takes more than the memory limit.
    pub(super) fn is_too_large(&self) -> bool {
        self.price.unsuitable.iter().any(|reason| matches!(reason, Unsuitable::OverMemory { .. }))
    }
}

impl Curve {
    /// The model of this filter while it fills.
    pub(super) fn filling(needs: &Needs, price: &Price) -> Option<Filling> {
        Filling::of(price.structure, &price.sized(needs))
    }
}

/// Solid lines first, then dashed ones over them; within each, the best last.
fn in_order(mut curves: Vec<Curve>) -> Vec<Curve> {
    curves.reverse();
    curves.sort_by_key(|curve| !is_solid(curve.structure));
    curves
}

/// The logarithm of the rate by load.
pub(super) fn while_filling(needs: &Needs, advice: &Advice) -> Vec<Curve> {
    let curve = |drawn: Drawn<'_>| {
        let items = drawn.price.sized(needs).items;
        let filling = Curve::filling(needs, drawn.price)?;
        let at = |percent: u32| {
            let inserted = (u128::from(items) * u128::from(percent)).div_ceil(100);
            let rate = filling.expected_fpr(u64::try_from(inserted).ok()?)?;
            (rate > 0.0).then(|| (f64::from(percent) / 100.0, rate.log10()))
        };
        Some(Curve {
            index: drawn.index,
            structure: drawn.structure,
            points: FILL_PERCENT.filter_map(at).collect(),
            ends: at(*FILL_PERCENT.end()).is_none(),
            is_fixed: filling.is_fixed(),
        })
    };
    // If rates are solved for, a structure that does not fit the memory has none.
    let has_rate = |drawn: &Drawn<'_>| !needs.rate_from_memory || !drawn.is_too_large();
    in_order(drawn(advice).filter(has_rate).filter_map(curve).collect())
}

/// The logarithm of the bits per item by the logarithm of the rate.
pub(super) fn by_rate(needs: &Needs, advice: &Advice, (left, right): (f64, f64)) -> Vec<Curve> {
    let mut asked = needs.clone();
    (asked.memory_limit_bytes, asked.rate_from_memory, asked.items_from_memory) = (None, false, false);
    let mut curves: Vec<Curve> = drawn(advice)
        .map(|drawn| Curve {
            index: drawn.index,
            structure: drawn.structure,
            points: Vec::new(),
            ends: false,
            is_fixed: false,
        })
        .collect();
    let steps = ((right - left) * f64::from(STEPS_PER_DECADE)).ceil() as u32;
    for step in 0..=steps {
        let power = left + (right - left) * f64::from(step) / f64::from(steps);
        asked.target_fpr = 10_f64.powf(-power);
        // The ends of the axis may be invalid rates.
        let Ok(prices) = price_list(&asked) else { continue };
        for curve in &mut curves {
            let price = prices.iter().find(|price| price.structure == curve.structure);
            let bits = price.and_then(|price| Some(price.cost?.bits_per_item));
            curve.points.extend(bits.map(|bits| (power, bits.log2())));
        }
    }
    let heights = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1);
    let most = MOST_BITS.log2().max(heights.fold(f64::INFINITY, f64::min) + 4.0);
    for curve in &mut curves {
        curve.points.retain(|point| point.1 <= most);
    }
    curves.retain(|curve| curve.points.len() > 1);
    in_order(curves)
}
