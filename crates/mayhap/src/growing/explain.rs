//! The run of one item, for [`explain`](crate::explain).

use super::{Growing, slot};
use crate::explain::{Density, RunEntry, RunLookup};
use crate::hash::ItemHash;

impl Growing {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> RunLookup {
        let (place, table) = (self.place(hash), &self.table);
        let slots = table.run(place.home).unwrap_or(0..0);
        let entry = |at: u64| {
            let (content, longest) = (table.get(at), u64::MAX >> 1);
            let fingerprint_bits = slot::length(content);
            RunEntry {
                slots: at..at + 1,
                // Without the bit that ends the fingerprint.
                fingerprint: content & !(longest.wrapping_add(1) >> content.leading_zeros().min(63)),
                fingerprint_bits,
                copies: 1,
                matches: slot::covers(content, place.key),
            }
        };
        // A slot has one bit more than the longest fingerprint: the bit that ends it.
        let fingerprint_bits = table.bits() - 1;
        RunLookup {
            home: place.home,
            homes: table.homes(),
            fingerprint: place.key & ((1 << fingerprint_bits) - 1),
            fingerprint_bits,
            any_length: true,
            entries: slots.clone().map(entry).collect(),
            slots,
        }
    }

    /// Measures the share of homes with a run in each part.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        self.table.density(name, parts)
    }
}
