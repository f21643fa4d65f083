//! `ribbon-filter`: standard ribbon, 64 wide, one word of memory per row.

use std::hash::Hash;

use foldhash::fast::FixedState;
use ribbon_filter::{Mode, Params, RibbonBuilder, RibbonFilter};

use super::SEED;
use crate::{
    contender::{Ask, Entry, Whole},
    items::BenchItem,
};

const WIDTH: usize = 64;

/// The share of extra rows, without which it finds no solution.
const OVERHEAD: f64 = 0.15;

impl<T: Hash> Ask<T> for RibbonFilter<FixedState> {
    #[inline]
    fn contains_one(&self, item: &T) -> bool {
        self.contains(item)
    }
}

pub(super) fn entry<T: BenchItem>() -> Entry<T> {
    Entry::whole_rival("ribbon-filter", |items, fpr| {
        let params = Params::r_from_fpr(fpr)
            .and_then(|bits| Params::from_expected_items(items.len(), OVERHEAD, WIDTH, bits, Mode::Standard))
            .and_then(|params| params.with_seed(SEED).with_retry_policy(8, 8))
            .expect("checked parameters");
        let builder = RibbonBuilder::new(params, FixedState::with_seed(SEED)).expect("checked parameters");
        Box::new(Whole(builder.build(items).expect("it may grow until it fits")))
    })
    .slow()
}
