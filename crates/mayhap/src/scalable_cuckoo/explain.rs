//! The buckets of one item in every table, for [`explain`](crate::explain).

use super::ScalableCuckoo;
use super::tables::TablePlace;
use crate::explain::{BucketLookup, BucketProbe, BucketSlot, Density};
use crate::hash::ItemHash;

/// Bits of a slot.
const SLOT_BITS: u32 = 8;

impl ScalableCuckoo {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads, and the tables it can skip.
    pub(crate) fn trace(&self, hash: ItemHash) -> BucketLookup {
        let place = TablePlace::of(hash);
        let fingerprint = place.fingerprint();
        let mut buckets = Vec::new();
        for table in 0..self.tables() {
            let (of, numbers) = self.tables.bucket_numbers(table, place);
            for (nth, bucket) in numbers.into_iter().enumerate() {
                // In a small table both buckets may be the same.
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

    /// Measures how full each part of every table is.
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
