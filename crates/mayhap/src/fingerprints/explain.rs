//! The lines of one item, for [`explain`](crate::explain).

use super::table::{self, Width};
use super::{FingerprintSet, fingerprint};
use crate::explain::{BucketLookup, Density};
use crate::hash::ItemHash;

impl FingerprintSet {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> BucketLookup {
        let fingerprint = fingerprint(hash);
        let (stored, buckets) = match self.width {
            Width::Whole => table::trace::<64>(&self.lines, fingerprint),
            Width::Half => table::trace::<32>(&self.lines, fingerprint),
            Width::Quarter => table::trace::<16>(&self.lines, fingerprint),
        };
        BucketLookup { fingerprint: stored, fingerprint_bits: self.width.bits(), counts: false, buckets }
    }

    /// Measures how full each part is.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        let slots = self.width.slots();
        Density::of(name, "slots taken", self.line_count(), parts, |line| {
            let taken = match self.width {
                Width::Whole => table::taken::<64>(&self.lines, line as usize),
                Width::Half => table::taken::<32>(&self.lines, line as usize),
                Width::Quarter => table::taken::<16>(&self.lines, line as usize),
            };
            (taken, slots)
        })
    }
}
