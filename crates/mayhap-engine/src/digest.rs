//! The contents of an engine as one number per name, to compare two engines.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::Xxh3;

use crate::engine::Engine;

impl Engine {
    /// Returns every name with a hash of everything that a restart keeps: its value, bit for bit, its
    /// deadline, and when it was created. Includes expired names until they are removed. Needs memory for all
    /// names, and for one value at a time.
    #[must_use]
    pub fn digests(&self) -> BTreeMap<Vec<u8>, u64> {
        let (mut digests, mut cursor, mut bytes) = (BTreeMap::new(), 0, Vec::new());
        loop {
            let _open = self.gate.pass();
            let (next, entries) = self.walk_all(cursor, 1_000);
            for entry in entries {
                let mut held = entry.write();
                let Some(value) = held.as_mut().filter(|_| entry.is_linked()) else { continue };
                bytes.clear();
                // Writing to memory does not fail.
                let _ = value.store(&mut bytes);
                let mut digest = Xxh3::new();
                digest.update(&[value.form() as u8]);
                digest.update(&entry.made_secs().to_le_bytes());
                let deadline = self.expiries.get(&entry);
                digest.update(&[u8::from(deadline.is_some())]);
                digest.update(&deadline.unwrap_or(0).to_le_bytes());
                digest.update(&bytes);
                digests.insert(entry.name().to_vec(), digest.digest());
            }
            match next {
                0 => return digests,
                next => cursor = next,
            }
        }
    }
}
