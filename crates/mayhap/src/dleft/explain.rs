//! The four buckets of one item, for [`explain`](crate::explain).

use super::bucket::{Bucket, Pattern};
use super::place::DLeftPlace;
use super::{DLeft, by_words};
use crate::explain::{BucketLookup, BucketProbe, BucketSlot, Density};
use crate::hash::ItemHash;
use crate::sizing::dleft::{SLOTS, TABLES};

impl DLeft {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> BucketLookup {
        let place = DLeftPlace::of(hash, &self.shape);
        BucketLookup {
            fingerprint: place.fingerprint,
            fingerprint_bits: self.shape.fingerprint_bits(),
            counts: true,
            buckets: by_words!(self.trace_buckets(place)),
        }
    }

    fn trace_buckets<const N: usize>(&self, place: DLeftPlace) -> Vec<BucketProbe> {
        let (of, width) = (self.shape.buckets(), self.shape.slot_bits());
        let pattern = Pattern::<N>::of(place.fingerprint, width);
        let probe = |(table, byte): (usize, usize)| {
            let content = Bucket::<N>::read(self.tables.words(), byte);
            let (taken, matching) = (content.taken(), content.matching(&pattern));
            let slot = |slot: u32| {
                let (fingerprint, copies) = content.slot(slot, width);
                let matches = matching >> slot & 1 == 1;
                (taken >> slot & 1 == 1).then_some(BucketSlot { fingerprint, copies, matches })
            };
            let bucket = byte as u64 / u64::from(width) - table as u64 * of;
            BucketProbe { table, bucket, of, slots: (0..SLOTS as u32).map(slot).collect() }
        };
        place.bytes.into_iter().enumerate().map(probe).collect()
    }

    /// Measures how full each part of its tables is.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        by_words!(self.density_of(name, parts))
    }

    fn density_of<const N: usize>(&self, name: String, parts: usize) -> Density {
        let width = self.shape.slot_bits() as usize;
        Density::of(name, "slots taken", TABLES * self.shape.buckets(), parts, |bucket| {
            let content = Bucket::<N>::read(self.tables.words(), bucket as usize * width);
            (content.taken().count_ones().into(), SLOTS)
        })
    }
}
