//! Up to 64 items on their way through the layers without an allocation, for batches from the server.

use super::ScalableBloom;
use crate::bloom::WORD;
use crate::hash::ItemHash;
use crate::together::places_in;

impl ScalableBloom {
    /// Returns the answers to at most the first 64 `hashes`, the first in the lowest bit.
    pub(super) fn answer_word(&self, hashes: &[ItemHash]) -> u64 {
        let hashes = &hashes[..hashes.len().min(WORD)];
        if let [hash] = hashes {
            return u64::from(self.may_contain_hash(*hash));
        }
        let mut answers = self.newest().answer_word(hashes);
        let all = low_bits(hashes.len());
        if self.older().is_empty() || answers == all {
            return answers;
        }
        let mut pending = [ItemHash::default(); WORD];
        let mut places = [0_u8; WORD];
        for layer in self.older().iter().rev() {
            let mut left = 0;
            for place in places_in(all & !answers) {
                pending[left] = hashes[place];
                places[left] = place as u8;
                left += 1;
            }
            for found in places_in(layer.answer_word(&pending[..left])) {
                answers |= 1 << places[found];
            }
        }
        answers
    }
}

/// Returns the lowest `count` bits set, at most 64.
pub(super) const fn low_bits(count: usize) -> u64 {
    if count < WORD { (1 << count) - 1 } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::Answers;
    use crate::error::BuildError;

    #[test]
    fn batches_agree_with_single_lookups() -> Result<(), BuildError> {
        for (items, capacity) in [(10, 30), (100, 30), (5_000, 30), (1_000_000, 300_000), (1_000, 20_000_000)]
        {
            let mut filter = ScalableBloom::for_capacity(capacity, 0.1, items)?;
            let members: Vec<u64> = (0..items).collect();
            assert!(filter.insert_batch(&members).is_ok());
            let hashes: Vec<ItemHash> =
                (0..items.min(5_000) + 500).map(|item| filter.hash(&(item * 7))).collect();
            let mut answers = Answers::new();
            for count in [0, 1, 2, 3, 16, 63, 64, 65, 127, 128, 129, 200, 300] {
                for batch in hashes.chunks(count.max(1)).map(|batch| &batch[..batch.len().min(count)]) {
                    filter.may_contain_hash_batch(batch, &mut answers);
                    let single: Vec<bool> = batch.iter().map(|&hash| filter.may_contain_hash(hash)).collect();
                    assert_eq!(answers.iter().collect::<Vec<_>>(), single, "{count} of {items}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn bits_are_counted_and_found() {
        assert_eq!([0, 1, 63, 64].map(low_bits), [0, 1, u64::MAX >> 1, u64::MAX]);
        assert_eq!(places_in(1 << 63 | 0b101).collect::<Vec<_>>(), [0, 2, 63]);
        assert_eq!(places_in(0).count(), 0);
    }
}
