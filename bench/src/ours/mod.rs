//! Our own filters, called as a user would call them.

use mayhap::Item;

use crate::{contender::Entry, items::BenchItem};

mod filled;
mod whole;

const SEED: u64 = 0;

/// All our filters. The first of a kind determines the footprint of the limits.
pub(crate) fn entries<T: BenchItem + Item>() -> Vec<Entry<T>> {
    let mut all = filled::entries();
    all.extend(whole::entries());
    all
}
