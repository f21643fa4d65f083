//! The buckets of one item, for [`explain`](crate::explain).

use super::Cuckoo;
use super::placement::BucketSpot;
use super::table::CuckooTable;
use crate::explain::{BucketLookup, BucketProbe, BucketSlot, Density};
use crate::hash::ItemHash;

impl Cuckoo {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> BucketLookup {
        self.table.trace(hash)
    }

    /// Measures how full each part is.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        self.table.density(name, parts)
    }
}

impl CuckooTable {
    pub(super) fn trace(&self, hash: ItemHash) -> BucketLookup {
        let BucketSpot { fingerprint, first, second } = self.placement().spot(hash);
        let probe = |bucket| {
            let held = self.read(bucket);
            let slot = |&held: &u32| {
                let matches = held == fingerprint;
                (held != 0).then_some(BucketSlot { fingerprint: held.into(), copies: 1, matches })
            };
            let slots = held.iter().take(self.slots()).map(slot).collect();
            BucketProbe { table: 0, bucket, of: self.placement().buckets(), slots }
        };
        BucketLookup {
            fingerprint: fingerprint.into(),
            fingerprint_bits: self.placement().width(),
            counts: false,
            buckets: [first, second].map(probe).into(),
        }
    }

    pub(super) fn density(&self, name: String, parts: usize) -> Density {
        let slots = self.slots();
        Density::of(name, "slots taken", self.placement().buckets(), parts, |bucket| {
            let taken = self.read(bucket).iter().take(slots).filter(|&&held| held != 0).count();
            (taken as u64, slots as u64)
        })
    }
}
