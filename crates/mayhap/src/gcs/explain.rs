//! The value of one item and its neighbours, for [`explain`](crate::explain).

use super::rice::Reader;
use super::{Gcs, GcsPlacement, index};
use crate::explain::ValueLookup;
use crate::hash::ItemHash;
use crate::statics;

/// The number of neighbours kept on each side.
const NEIGHBOURS: usize = 3;

impl Gcs {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads, and the next few values after that.
    pub(crate) fn trace(&self, hash: ItemHash) -> ValueLookup {
        let (bucket, place) = match self.shape.placement() {
            GcsPlacement::InBuckets => self.shape.place(statics::key(hash)),
            GcsPlacement::InOneRange(_) => self.place_in_one_range(hash),
        };
        let (index, stream) = self.sections();
        let stretch = index::stretch(index, bucket);
        let low = self.shape.remainder_bits();
        let value_of = |place: u64| bucket.wrapping_mul(self.shape.bucket_range()).wrapping_add(place);
        let mut reader = Reader::new(stream, stretch.start, stretch.end);
        let mut lookup = ValueLookup {
            value: value_of(place),
            range: self.shape.range(),
            bucket,
            buckets: self.shape.buckets(),
            bits: stretch.start..stretch.end.max(stretch.start),
            remainder_bits: low,
            decoded: 0,
            before: Vec::new(),
            found: false,
            behind: Vec::new(),
        };
        // One past the last position, as in the lookups.
        let mut free = 0_u64;
        while lookup.behind.len() < NEIGHBOURS
            && let Some(gap) = reader.next(low)
        {
            let reached = free >= place.wrapping_add(1);
            free = free.wrapping_add(gap).wrapping_add(self.shape.least_step());
            lookup.decoded += u64::from(!reached);
            let held = free.wrapping_sub(1);
            if held == place {
                lookup.found = true;
            } else if held > place {
                lookup.behind.push(value_of(held));
            } else {
                lookup.before.push(value_of(held));
            }
            if lookup.before.len() > NEIGHBOURS {
                lookup.before.remove(0);
            }
        }
        lookup
    }
}
