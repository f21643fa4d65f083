//! The bits of one item, for [`explain`](crate::explain).

use super::{WideBloom, WidePlacement};
use crate::bloom::explain::probe;
use crate::explain::{BitLookup, Density};

impl WideBloom {
    /// Traces what [`may_contain`](Self::may_contain) reads for an item with these encoded bytes.
    pub(crate) fn trace(&self, item: &[u8]) -> BitLookup {
        let mut probes = Vec::new();
        self.positions.all(item, |position| {
            probes.push(probe(self.bits.words(), position));
            true
        });
        BitLookup { bits: self.shape.bits(), probes, never_taken: false }
    }

    /// Measures the fill of each part.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        Density::of_bits(name, self.bits.words(), self.shape.bits(), parts)
    }
}

impl WidePlacement {
    /// The name of the hash function.
    pub(crate) fn function(self) -> String {
        match self {
            Self::BitsAndBlooms => "bits-and-blooms' murmur3, 256 bits".into(),
            Self::Bip37 { tweak } => format!("BIP 37's murmur3 for every probe (tweak {tweak:#x})"),
            Self::PybloomLive3 => "pybloom_live's salted MD5 or SHA (version 3)".into(),
            Self::PybloomLive4 => "pybloom_live's salted XXH3 or SHA (version 4)".into(),
            Self::Pyprobables => "pyprobables' FNV-1a for every probe".into(),
        }
    }
}
