//! The run of one item, for [`explain`](crate::explain).

use super::{Quotient, groups};
use crate::explain::{Density, RunEntry, RunLookup};
use crate::hash::ItemHash;

impl Quotient {
    /// Traces what [`may_contain_hash`](Self::may_contain_hash) reads.
    pub(crate) fn trace(&self, hash: ItemHash) -> RunLookup {
        let (place, table, bits) = (self.place(hash), &self.table, self.table.bits());
        let slots = table.run(place.home).unwrap_or(0..0);
        let (mut entries, mut at) = (Vec::new(), slots.start);
        while at < slots.end {
            let group = groups::read(|slot| table.get(slot), at, slots.end, bits);
            entries.push(RunEntry {
                slots: at..group.end,
                fingerprint: group.remainder,
                fingerprint_bits: bits,
                copies: group.copies,
                matches: group.remainder == place.remainder,
            });
            at = group.end;
        }
        RunLookup {
            home: place.home,
            homes: table.homes(),
            fingerprint: place.remainder,
            fingerprint_bits: bits,
            any_length: false,
            slots,
            entries,
        }
    }

    /// Measures the share of homes with a run in each part.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        self.table.density(name, parts)
    }
}
