//! The buckets of one item in every table, for [`explain`](crate::explain).

use super::ScalableCuckoo;
use super::tables::Place;
use crate::explain::{BucketLookup, BucketProbe, BucketSlot, Density};
use crate::hash::ItemHash;

/// Bits of a slot.
const SLOT_BITS: u32 = 8;

impl ScalableCuckoo {
    /// What [`may_contain_hash`](Self::may_contain_hash) looks at, and the tables it need not look at.
    pub(crate) fn trace(&self, hash: ItemHash) -> BucketLookup {
        let place = Place::of(hash);
        let fingerprint = place.fingerprint();
        let mut buckets = Vec::new();
        for table in 0..self.tables() {
            let (of, numbers) = self.tables.bucket_numbers(table, place);
            for (nth, bucket) in numbers.into_iter().enumerate() {
                // In a small table both may be one.
                if nth == 1 && numbers[0] == bucket {
                    continue;
                }
                let slot = |held: u8| {
                    let matches = held == fingerprint;
                    (held != 0).then_some(BucketSlot { fingerprint: held.into(), copies: 1, matches })
                };
                let slots = self.tables.content(table, bucket).into_iter().map(slot).collect();
                buckets.push(BucketProbe { table, bucket, of, slots });
            }
        }
        BucketLookup { fingerprint: fingerprint.into(), fingerprint_bits: SLOT_BITS, counts: false, buckets }
    }

    /// How full every table is, part by part.
    pub(crate) fn densities(&self, parts: usize) -> Vec<Density> {
        let density = |table: usize| {
            let (_, slots) = self.tables.range(table);
            let name = if self.tables() == 1 { String::new() } else { format!("table {table}") };
            Density::of(name, "slots taken", slots as u64, parts, |slot| {
                (u64::from(self.tables.get(table, slot as usize) != 0), 1)
            })
        };
        (0..self.tables()).map(density).collect()
    }
}
