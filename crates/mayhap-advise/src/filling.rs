//! The false-positive rate of a structure as it fills, and the point where it is full.

use mayhap::{
    BinaryFuseShape, BlockedShape, BloomShape, BuildError, CountingShape, CuckooShape, DLeftShape, DualShape,
    GcsShape, GrowableCuckooShape, GrowingShape, QuotientShape, RibbonShape, ScalableShape, WindowShape,
    XorShape,
};

use crate::needs::Needs;
use crate::price::{GROWABLE_TO, Structure, removals};

/// A filter sized for some needs, as it fills: its rate by the model after any number of items.
///
/// ```
/// use mayhap_advise::{Filling, Needs, Structure};
///
/// let bloom = Filling::of(Structure::Bloom, &Needs::new(1_000, 0.01)).unwrap();
/// assert!(bloom.expected_fpr(1_000).unwrap() <= 0.01);
/// assert!(bloom.expected_fpr(2_000).unwrap() > 0.1); // it accepts more, and its rate rises
/// let cuckoo = Filling::of(Structure::Cuckoo, &Needs::new(1_000, 0.01)).unwrap();
/// assert_eq!(cuckoo.expected_fpr(2_000), None); // it may reject them
/// ```
#[derive(Clone, Debug)]
pub struct Filling {
    shape: Shape,
    /// The items it is sized for.
    items: u64,
    /// The number of items it accepts with certainty; `None` if there is no limit.
    most: Option<u64>,
}

#[derive(Clone, Debug)]
enum Shape {
    Bloom(BloomShape),
    Blocked(BlockedShape),
    Counting(CountingShape),
    Dual {
        shape: DualShape,
        removals: u64,
    },
    Scalable(ScalableShape),
    DLeft(DLeftShape),
    Cuckoo(CuckooShape),
    GrowableCuckoo(GrowableCuckooShape),
    Quotient(QuotientShape),
    Growing(GrowingShape),
    Window(WindowShape),
    /// An immutable filter of all its items, with a fixed rate.
    Fixed {
        expected_fpr: f64,
    },
}

impl Filling {
    /// `structure` as it would be built for `needs`; `None` if it cannot be built, or is not a filter.
    #[must_use]
    pub fn of(structure: Structure, needs: &Needs) -> Option<Self> {
        let shape = shape(structure, needs)?.ok()?;
        let items = needs.items;
        let most = match &shape {
            Shape::DLeft(_) | Shape::Cuckoo(_) | Shape::Quotient(_) | Shape::Fixed { .. } => Some(items),
            Shape::GrowableCuckoo(_) => Some(items.saturating_mul(GROWABLE_TO)),
            _ => None,
        };
        Some(Self { shape, items, most })
    }

    /// The number of items it accepts with certainty; `None` if there is no limit.
    #[must_use]
    pub const fn most(&self) -> Option<u64> {
        self.most
    }

    /// Is it built once from all items, so that it is always full?
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        matches!(self.shape, Shape::Fixed { .. })
    }

    /// The rate by the model after `inserted` different items. `None` above [`most`](Self::most), and for an immutable
    /// filter for any other number than all its items.
    #[must_use]
    pub fn expected_fpr(&self, inserted: u64) -> Option<f64> {
        if self.most.is_some_and(|most| inserted > most) {
            return None;
        }
        match &self.shape {
            Shape::Bloom(shape) => Some(shape.expected_fpr(inserted)),
            Shape::Blocked(shape) => Some(shape.expected_fpr(inserted)),
            Shape::Counting(shape) => Some(shape.expected_fpr(inserted)),
            Shape::Dual { shape, removals } => Some(shape.expected_fpr(inserted, *removals)),
            Shape::Scalable(shape) => shape.expected_fpr(inserted).ok(),
            Shape::DLeft(shape) => Some(shape.expected_fpr(inserted)),
            Shape::Cuckoo(shape) => Some(shape.expected_fpr(inserted)),
            Shape::GrowableCuckoo(shape) => Some(shape.expected_fpr(inserted)),
            Shape::Quotient(shape) => Some(shape.expected_fpr(inserted)),
            Shape::Growing(shape) => shape.expected_fpr(inserted).ok(),
            Shape::Window(shape) => Some(shape.expected_fpr_after(inserted)),
            Shape::Fixed { expected_fpr } => (inserted == self.items).then_some(*expected_fpr),
        }
    }
}

fn shape(structure: Structure, needs: &Needs) -> Option<Result<Shape, BuildError>> {
    let (items, rate) = (needs.items, needs.target_fpr);
    let fixed = |expected_fpr| Shape::Fixed { expected_fpr };
    Some(match structure {
        Structure::Bitmap | Structure::SortedArray | Structure::HashSet => return None,
        Structure::Bloom => match needs.probes {
            Some(probes) => BloomShape::for_probes(items, rate, probes),
            None => BloomShape::for_capacity(items, rate),
        }
        .map(Shape::Bloom),
        Structure::BlockedBloom(layout) => BlockedShape::with_layout(layout, items, rate).map(Shape::Blocked),
        Structure::CountingBloom => match needs.probes {
            Some(probes) => CountingShape::for_probes(items, rate, probes),
            None => CountingShape::for_capacity(items, rate),
        }
        .map(Shape::Counting),
        Structure::DualBloom => {
            let removals = removals(needs);
            DualShape::for_capacity(items, removals, rate).map(|shape| Shape::Dual { shape, removals })
        }
        Structure::ScalableBloom => ScalableShape::for_capacity(items, rate).map(Shape::Scalable),
        Structure::DLeft => DLeftShape::for_capacity(items, rate).map(Shape::DLeft),
        Structure::Cuckoo => CuckooShape::for_capacity(items, rate).map(Shape::Cuckoo),
        Structure::CuckooSemiSorted => CuckooShape::semi_sorted(items, rate).map(Shape::Cuckoo),
        Structure::GrowableCuckoo => {
            GrowableCuckooShape::for_growth(items, items.saturating_mul(GROWABLE_TO), rate)
                .map(Shape::GrowableCuckoo)
        }
        Structure::Quotient => QuotientShape::for_capacity(items, rate).map(Shape::Quotient),
        Structure::Growing => GrowingShape::for_capacity(items, rate).map(Shape::Growing),
        Structure::Window => WindowShape::of_items(items, rate).map(Shape::Window),
        Structure::Xor => XorShape::for_capacity(items, rate).map(|shape| fixed(shape.expected_fpr())),
        Structure::BinaryFuse => {
            BinaryFuseShape::for_capacity(items, rate).map(|shape| fixed(shape.expected_fpr()))
        }
        Structure::Ribbon => RibbonShape::for_items(items, rate).map(|shape| fixed(shape.expected_fpr())),
        Structure::Gcs => GcsShape::for_capacity(items, rate).map(|shape| fixed(shape.expected_fpr(items))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price_list;

    #[test]
    fn the_rate_of_a_full_filter_is_that_of_the_price_list() {
        let needs = Needs::new(50_000, 0.01);
        for price in price_list(&needs).unwrap() {
            let Some(filling) = Filling::of(price.structure, &needs) else {
                assert!(!price.structure.is_filter(), "{}", price.structure);
                continue;
            };
            let (full, cost) = (filling.expected_fpr(50_000).unwrap(), price.cost.unwrap());
            match price.structure {
                // The price list has the highest rate that a window reaches.
                Structure::Window => assert!(full <= cost.expected_fpr && full > cost.expected_fpr / 2.0),
                structure => assert_eq!(full, cost.expected_fpr, "{structure}"),
            }
            assert_eq!(filling.is_fixed(), price.structure.is_static());
            let doubled = filling.expected_fpr(100_000);
            match price.structure {
                _ if price.structure.is_static() || (price.can.refuses && !price.can.grows) => {
                    assert_eq!(doubled, None, "{}", price.structure);
                }
                Structure::GrowableCuckoo => assert!(doubled.unwrap() > full && doubled.unwrap() < 0.01),
                Structure::ScalableBloom | Structure::Growing | Structure::Window => {
                    assert!(doubled.unwrap() <= 0.01, "{}", price.structure);
                }
                _ => assert_eq!(doubled, Some(cost.doubled_fpr), "{}", price.structure),
            }
        }
    }

    #[test]
    fn the_rate_of_a_window_rises_until_it_is_full_and_then_repeats() {
        let window = Filling::of(Structure::Window, &Needs::new(30_000, 0.01)).unwrap();
        let rate = |items| window.expected_fpr(items).unwrap();
        assert!(rate(0) == 0.0 && rate(5_000) < rate(10_000) && rate(10_000) < rate(40_000));
        assert!((rate(40_000) - rate(70_000)).abs() < 1e-12, "one generation later");
        assert!(rate(40_001) < rate(40_000), "the oldest was forgotten");
    }
}
