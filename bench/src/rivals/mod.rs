//! Other people's filters, each called as its documentation says.
//!
//! Looked at and left out: `parquet`'s split-block filter (rounds up to a power of two, four times slower than
//! `sbbf-rs`), `cbloom` (57 % wrong answers at 1 %), `bloom` (1.8 %), `bloom2`, `mqfilters`, `pdatastructs`,
//! `probabilistic-collections`, `bloomcraft`, `sketch_oxide` (all slower than those kept here).

use crate::{contender::Entry, items::BenchItem};

mod bloom_lib;
mod bloomfilter;
mod fastbloom;
mod fastbloom_rs;
mod growable;
mod sbbf;

pub(crate) use sbbf::blocks_for;

/// Seed for the rivals that take one: runs repeat exactly.
const SEED: u64 = 0x6d61_7968_6170;

/// Every rival, the best of each kind first.
pub(crate) fn entries<T: BenchItem>() -> Vec<Entry<T>> {
    let mut all = fastbloom::entries();
    all.push(bloom_lib::entry());
    all.push(bloomfilter::entry());
    all.push(sbbf::entry());
    all.extend(fastbloom_rs::entries());
    all.push(growable::entry());
    all
}
