//! Filters of other crates, each called as its documentation describes, with the fastest hash that works with stock settings.
//!
//! Evaluated and left out:
//!
//! | crate | reason |
//! |---|---|
//! | `golomb-coded-set` | decodes from the start on every query: 1.8 ms each at 10^5 items |
//! | `golomb-set` | depends on a yanked version: cannot be built |
//! | `quotient-filter` | answers *no* to a quarter of its members at 60 % load |
//! | `pdatastructs` | 1 200 bits per item (quotient), 3 400 (cuckoo) |
//! | `probabilistic-collections` | allocates per query: 250 to 850 ns (cuckoo), collapses at 94 % load (quotient) |
//! | `sux` | its `VFilter` is good (8.85 bits for 8-bit fingerprints, 1.7 times `jdb_xorf`'s lookup) but needs 86 crates |
//! | `sketch_oxide` | its ribbon filter is not a filter and keeps all keys; its vacuum filter has a false-positive rate of 10 % |
//! | `cuckoo-clock` | locks per bucket: 490 ns per query |
//! | `parquet` | its split blocks round up to a power of two, four times slower than `sbbf-rs` |
//! | `cbloom`, `bloom` | false-positive rates of 57 % and 1.8 % at a target of 1 % |
//! | `bloom2`, `mqfilters`, `bloomcraft` | slower than those kept here |
//!
//! No crate has a d-left filter, a Golomb-coded set with an index, or a window.

use crate::{contender::Entry, items::BenchItem};

mod aleph;
mod autoscale_cuckoo;
mod bloom_lib;
mod bloomfilter;
mod cuckoofilter;
mod fastbloom;
mod fastbloom_rs;
mod growable;
mod jdb_xorf;
mod qfilter;
mod ribbon;
mod sbbf;
mod scalable_cuckoo;
mod xorf;
mod xorfilter;

pub(crate) use qfilter::fpr_of as qfilter_fpr;
pub(crate) use sbbf::blocks_for;

/// The seed for rivals that accept one, so that runs are reproducible.
const SEED: u64 = 0x6d61_7968_6170;

/// Every rival, the best of each kind first.
pub(crate) fn entries<T: BenchItem>() -> Vec<Entry<T>> {
    let mut all = fastbloom::entries();
    all.extend(bloom_lib::entries());
    all.push(bloomfilter::entry());
    all.push(sbbf::entry());
    all.extend(fastbloom_rs::entries());
    all.extend(autoscale_cuckoo::entries());
    all.extend(scalable_cuckoo::entries());
    all.push(cuckoofilter::entry());
    all.extend(qfilter::entries());
    all.extend(jdb_xorf::entries());
    all.extend(xorf::entries());
    all.push(xorfilter::entry());
    all.push(ribbon::entry());
    all.push(growable::entry());
    all.push(aleph::entry());
    all
}
