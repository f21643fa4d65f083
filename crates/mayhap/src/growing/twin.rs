//! A simple model of the growing filter, to compare the real one with.
//!
//! An item has a path of bits: its home in the first table, then the bits that follow. A slot is a prefix of
//! such a path, and covers every item whose path begins with it. Doubling changes no path and no slot, only
//! how many bits of it are the home.

use super::*;

/// Returns the home in the first table as 64 bits, the highest first, then all bits of `high`, the lowest
/// first, then the rest of `low`.
fn path(hash: ItemHash, homes: u64) -> String {
    let product = u128::from(hash.low) * u128::from(homes);
    let from_the_lowest =
        |bits: u64, count| (0..count).map(move |at| if bits >> at & 1 == 1 { '1' } else { '0' });
    let rest = (product >> 32) as u32;
    format!("{:064b}", product >> 64)
        .chars()
        .chain(from_the_lowest(hash.high, 64))
        .chain(from_the_lowest(rest.into(), 32))
        .collect()
}

struct Twin {
    target_fpr: f64,
    first_homes: u64,
    doublings: u32,
    fingerprint_bits: u32,
    slots: Vec<String>,
    inserted: u64,
}

impl Twin {
    fn of(shape: &GrowingShape) -> Self {
        Self {
            target_fpr: shape.target_fpr(),
            first_homes: shape.homes(),
            doublings: 0,
            fingerprint_bits: shape.fingerprint_bits(),
            slots: Vec::new(),
            inserted: 0,
        }
    }

    fn homes(&self) -> u64 {
        self.first_homes << self.doublings
    }

    /// The number of bits of a path that form the home.
    fn home_bits(&self) -> usize {
        64 + self.doublings as usize
    }

    /// A slot shorter than the home is stored in every home that begins with it.
    fn used(&self) -> u64 {
        self.slots.iter().map(|slot| 1 << self.home_bits().saturating_sub(slot.len())).sum()
    }

    fn covered(&self) -> f64 {
        let share = |slot: &String| 0.5_f64.powi(slot.len() as i32 - 64) / self.first_homes as f64;
        self.slots.iter().map(share).sum()
    }

    fn covering(&self, path: &str) -> u64 {
        self.slots.iter().filter(|slot| path.starts_with(slot.as_str())).count() as u64
    }

    fn insert(&mut self, path: &str) {
        if self.used() >= slot_limit(self.homes()) {
            self.doublings += 1;
            let (homes, room) = (self.homes(), slot_limit(self.homes()) - self.used());
            let longest = self.fingerprint_bits - 1;
            let bits = growing::next_fingerprint_bits(homes, room, self.covered(), self.target_fpr, longest);
            self.fingerprint_bits = bits.unwrap();
        }
        self.slots.push(path[..self.home_bits() + self.fingerprint_bits as usize].to_owned());
        self.inserted += 1;
    }

    fn remove(&mut self, path: &str) -> bool {
        let covering = (0..self.slots.len()).filter(|&i| path.starts_with(self.slots[i].as_str()));
        let Some(longest) = covering.max_by_key(|&i| self.slots[i].len()) else { return false };
        let slot = self.slots.swap_remove(longest);
        // A slot stored in many homes is removed only from this item's home. The sibling branches along the
        // path remain.
        for at in slot.len()..self.home_bits() {
            let branch = if path.as_bytes()[at] == b'0' { '1' } else { '0' };
            self.slots.push(format!("{}{branch}", &path[..at]));
        }
        self.inserted -= 1;
        if self.inserted == 0 {
            self.slots.clear();
        }
        true
    }
}

fn agree(filter: &Growing, twin: &Twin, paths: &[(ItemHash, String)]) {
    let facts = (filter.doublings(), filter.fingerprint_bits(), filter.inserted(), filter.table.used());
    assert_eq!(facts, (twin.doublings, twin.fingerprint_bits, twin.inserted, twin.used()));
    assert!((filter.covered() - twin.covered()).abs() < 1e-9, "{} {}", filter.covered(), twin.covered());
    assert_eq!(filter.table.used(), filter.lengths.iter().sum::<u64>());
    for (hash, path) in paths {
        assert_eq!(filter.count_estimate_hash(*hash), twin.covering(path));
        assert_eq!(filter.may_contain_hash(*hash), twin.covering(path) > 0);
    }
}

#[test]
fn growing_agrees_with_the_model() {
    let mut most_voids = 0;
    for (homes, bits, items) in
        [(16, 1, 60), (17, 2, 200), (40, 3, 500), (23, 5, 700), (64, 8, 900), (1000, 4, 900)]
    {
        let shape = GrowingShape::exactly(homes, bits).unwrap();
        let mut rng = mayhap_testkit::rng::Rng::new(homes);
        let mut filter = Growing::with_shape(shape, 3).unwrap();
        let mut twin = Twin::of(&shape);
        let mut paths: Vec<(ItemHash, String)> = Vec::new();
        let mut held: Vec<usize> = Vec::new();
        for step in 0_u64..4 * items {
            let growing = step < 2 * items || step > 3 * items;
            if rng.below(10) < if growing { 8 } else { 2 } {
                let at = rng.below(items) as usize;
                while paths.len() <= at {
                    let hash = ItemHash::from_unmixed(paths.len() as u64);
                    paths.push((hash, path(hash, homes)));
                }
                let (hash, path) = &paths[at];
                let new = twin.covering(path) == 0;
                assert_eq!(filter.insert_hash(*hash), Ok(new));
                twin.insert(path);
                held.push(at);
            } else if !held.is_empty() {
                let (hash, path) = &paths[held.swap_remove(rng.below(held.len() as u64) as usize)];
                assert!(filter.remove_hash(*hash) && twin.remove(path));
            }
            if step % 97 == 0 || step + 1 == 4 * items {
                agree(&filter, &twin, &paths);
                filter = Growing::decode(&filter.encode()).unwrap();
                assert!(held.iter().all(|&at| filter.may_contain_hash(paths[at].0)));
            }
            most_voids = most_voids.max(filter.void_slots());
        }
        for at in held {
            assert!(filter.remove_hash(paths[at].0) && twin.remove(&paths[at].1));
        }
        agree(&filter, &twin, &paths);
        assert_eq!((filter.inserted(), filter.table.used()), (0, 0));
    }
    assert!(most_voids > 20, "only {most_voids} void slots: fingerprints must run out in this test");
}
