//! Filters that are correct, slow and easy to read: the suites must accept them.

use crate::rng::{GOLDEN, mix};
use crate::{Inserted, Subject};
use std::collections::HashMap;

/// Hashes all bytes and the length, eight bytes per step.
fn hash(item: &[u8], seed: u64) -> u64 {
    item.chunks(8).fold(mix(seed ^ mix(item.len() as u64)), |state, part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        mix(state ^ u64::from_le_bytes(word)).wrapping_add(GOLDEN)
    })
}

/// The `probes` positions of `item` among `places`, each by its own hash.
fn places(item: &[u8], seed: u64, probes: u32, places: usize) -> impl Iterator<Item = usize> + use<> {
    let hash = hash(item, seed);
    (1..=u64::from(probes)).map(move |probe| {
        let wide = u128::from(mix(hash.wrapping_add(probe.wrapping_mul(GOLDEN)))) * places as u128;
        (wide >> 64) as usize
    })
}

/// Size and number of probes of a Bloom filter for `capacity` items at `fpr`.
fn size(capacity: u64, fpr: f64) -> (usize, u32) {
    let ln2 = std::f64::consts::LN_2;
    let bits = (capacity as f64 * -fpr.ln() / (ln2 * ln2)).ceil() as usize;
    let probes = (-fpr.log2()).round().max(1.0) as u32;
    (bits.max(8), probes)
}

/// A textbook Bloom filter: one `bool` per bit, one hash per probe.
///
/// ```
/// use mayhap_testkit::{Subject, honest::PlainBloom};
/// let mut filter = PlainBloom::for_capacity(100, 0.01, 1);
/// filter.insert(b"seen");
/// assert!(filter.may_contain(b"seen"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainBloom {
    pub(crate) bits: Vec<bool>,
    probes: u32,
    seed: u64,
}

impl PlainBloom {
    /// Creates a filter for `capacity` items at a false-positive rate of `fpr`.
    ///
    /// # Panics
    ///
    /// If `fpr` is not between 0 and 1.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        assert!(fpr > 0.0 && fpr < 1.0, "false-positive rate must be between 0 and 1, got {fpr}");
        let (bits, probes) = size(capacity, fpr);
        Self { bits: vec![false; bits], probes, seed }
    }

    /// The rate by the usual model, with `items` different items.
    #[must_use]
    pub fn expected_fpr(&self, items: u64) -> f64 {
        let untouched = (-1.0 / self.bits.len() as f64).ln_1p() * f64::from(self.probes) * items as f64;
        (-untouched.exp_m1()).powi(self.probes as i32)
    }

    /// Encodes seed, probes and number of bits as 8 bytes each, then the bits, then their sum as a checksum.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [self.seed, u64::from(self.probes), self.bits.len() as u64] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend(self.bits.chunks(8).map(|bits| {
            bits.iter().enumerate().fold(0, |byte, (place, &bit)| byte | u8::from(bit) << place)
        }));
        bytes.extend_from_slice(&hash(&bytes, 0).to_le_bytes());
        bytes
    }

    /// Decodes the output of [`encode`](Self::encode).
    ///
    /// # Errors
    ///
    /// The reason, if the bytes are not valid.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let (body, checksum) = bytes.split_last_chunk::<8>().ok_or("shorter than its checksum")?;
        if hash(body, 0) != u64::from_le_bytes(*checksum) {
            return Err("the checksum does not match".into());
        }
        let (header, packed) = body.split_first_chunk::<24>().ok_or("shorter than its header")?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| header[at * 8 + i]));
        let (seed, probes, bits) = (word(0), word(1), word(2));
        if bits.div_ceil(8) != packed.len() as u64 {
            return Err(format!("the header has {bits} bits, but {} bytes follow", packed.len()));
        }
        let probes = u32::try_from(probes).map_err(|_| format!("{probes} probes are too many"))?;
        let bits = (0..bits as usize).map(|i| packed[i / 8] >> (i % 8) & 1 == 1).collect();
        Ok(Self { bits, probes, seed })
    }

    fn places(&self, item: &[u8]) -> impl Iterator<Item = usize> + use<> {
        places(item, self.seed, self.probes, self.bits.len())
    }
}

impl Subject for PlainBloom {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        let mut changed = false;
        for place in self.places(item) {
            changed |= !std::mem::replace(&mut self.bits[place], true);
        }
        changed.into()
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.places(item).all(|place| self.bits[place])
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        Some(Self::decode(&self.encode()))
    }

    fn merge(&mut self, other: &Self) -> Option<Result<(), String>> {
        if (self.bits.len(), self.probes, self.seed) != (other.bits.len(), other.probes, other.seed) {
            return Some(Err("the filters have different parameters".into()));
        }
        self.bits.iter_mut().zip(&other.bits).for_each(|(bit, other)| *bit |= other);
        Some(Ok(()))
    }
}

/// A counting Bloom filter with counters that cannot overflow; removal is correct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainCounting {
    pub(crate) counters: Vec<u32>,
    probes: u32,
    seed: u64,
}

impl PlainCounting {
    /// Creates a filter for `capacity` copies of items at a false-positive rate of `fpr`.
    #[must_use]
    pub fn for_capacity(capacity: u64, fpr: f64, seed: u64) -> Self {
        let (counters, probes) = size(capacity, fpr);
        Self { counters: vec![0; counters], probes, seed }
    }

    pub(crate) fn places(&self, item: &[u8]) -> impl Iterator<Item = usize> + use<> {
        places(item, self.seed, self.probes, self.counters.len())
    }
}

impl Subject for PlainCounting {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        let new = !self.may_contain(item);
        self.places(item).for_each(|place| self.counters[place] += 1);
        new.into()
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.places(item).all(|place| self.counters[place] > 0)
    }

    fn remove(&mut self, item: &[u8]) -> Option<bool> {
        let here = self.may_contain(item);
        if here {
            self.places(item).for_each(|place| self.counters[place] = self.counters[place].saturating_sub(1));
        }
        Some(here)
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        Some(Ok(self.clone()))
    }

    fn merge(&mut self, other: &Self) -> Option<Result<(), String>> {
        self.counters.iter_mut().zip(&other.counters).for_each(|(counter, other)| *counter += other);
        Some(Ok(()))
    }
}

/// The exact multiset: a filter without false positives, only large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainSet {
    copies: HashMap<Vec<u8>, u64>,
}

impl PlainSet {
    /// Creates an empty multiset.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Subject for PlainSet {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        let copies = self.copies.entry(item.to_vec()).or_default();
        *copies += 1;
        (*copies == 1).into()
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.copies.contains_key(item)
    }

    fn remove(&mut self, item: &[u8]) -> Option<bool> {
        let Some(copies) = self.copies.get_mut(item) else { return Some(false) };
        *copies -= 1;
        if *copies == 0 {
            self.copies.remove(item);
        }
        Some(true)
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        Some(Ok(self.clone()))
    }

    fn merge(&mut self, other: &Self) -> Option<Result<(), String>> {
        for (item, copies) in &other.copies {
            *self.copies.entry(item.clone()).or_default() += copies;
        }
        Some(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_bloom_has_the_textbook_size() {
        let filter = PlainBloom::for_capacity(1_000, 0.01, 1);
        assert_eq!((filter.bits.len(), filter.probes), (9_586, 7));
        assert!((filter.expected_fpr(1_000) / 0.01 - 1.0).abs() < 0.01);
        assert_eq!(filter.expected_fpr(0), 0.0);
    }

    #[test]
    fn a_plain_bloom_survives_a_round_trip() {
        let mut filter = PlainBloom::for_capacity(77, 0.03, 5);
        (0..77).for_each(|i| {
            filter.insert(&crate::member(i));
        });
        assert_eq!(PlainBloom::decode(&filter.encode()), Ok(filter));
    }
}
