//! Names that are lost without anyone knowing which.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mayhap_command::Lost;

use crate::journal::{PARTS, part_of};

/// The parts of which names are lost, one bit for each.
#[derive(Debug, Default)]
pub(crate) struct Doubt(AtomicU64);

/// All parts.
pub(crate) const ALL: u64 = u64::MAX;

const _: () = assert!(PARTS == u64::BITS as usize);

/// The bit of a part.
pub(crate) const fn bit(part: usize) -> u64 {
    1 << (part % PARTS)
}

impl Doubt {
    /// The parts.
    pub(crate) fn parts(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// These are the parts from now on.
    pub(crate) fn set(&self, parts: u64) {
        self.0.store(parts, Relaxed);
    }

    /// These as well.
    pub(crate) fn add(&self, parts: u64) {
        self.0.fetch_or(parts, Relaxed);
    }

    /// What may have become of a name that is not there.
    pub(crate) fn of(&self, name: &[u8]) -> Option<Lost> {
        let parts = self.parts();
        (parts != 0 && parts & bit(part_of(name)) != 0).then_some(Lost::Unknown)
    }
}
