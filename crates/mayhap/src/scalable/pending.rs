//! The pending items of a batch on their way through the layers.

use crate::answers::Answers;
use crate::batch::Hashed;
use crate::bloom::Bloom;
use crate::hash::{HashScheme, ItemHash};

/// The items of one block for which no layer has answered *maybe* so far, in order.
#[derive(Default)]
pub(super) struct Pending {
    hashes: Vec<ItemHash>,
    /// The index of each in its block.
    indexes: Vec<u32>,
    /// The number of items taken from the front.
    taken: usize,
    answers: Answers,
}

impl Pending {
    /// Hashes all items of `block`.
    pub(super) fn begin<H: Hashed>(&mut self, block: &[H], scheme: &HashScheme) {
        self.taken = 0;
        self.hashes.clear();
        self.hashes.extend(block.iter().map(|item| item.hashed(scheme)));
        self.indexes.clear();
        self.indexes.extend(0..block.len() as u32);
    }

    /// Looks up all pending items in `layer`. Those with the answer *maybe* are no longer pending; `known` is
    /// called with their indexes.
    pub(super) fn ask(&mut self, layer: &Bloom, mut known: impl FnMut(usize)) {
        layer.may_contain_hash_batch(&self.hashes[self.taken..], &mut self.answers);
        let (mut at, mut kept) = (self.taken, 0);
        for &word in self.answers.words() {
            let end = self.hashes.len().min(at + 64);
            if word == 0 {
                // None of them is in this layer: the most common case.
                self.hashes.copy_within(at..end, kept);
                self.indexes.copy_within(at..end, kept);
                kept += end - at;
                at = end;
                continue;
            }
            let mut found = word;
            while found != 0 {
                known(self.indexes[at + found.trailing_zeros() as usize] as usize);
                found &= found - 1;
            }
            for bit in 0..end - at {
                // Always written, but kept only if it is still pending: no branch to mispredict.
                self.hashes[kept] = self.hashes[at + bit];
                self.indexes[kept] = self.indexes[at + bit];
                kept += usize::from(word >> bit & 1 == 0);
            }
            at = end;
        }
        self.hashes.truncate(kept);
        self.indexes.truncate(kept);
        self.taken = 0;
    }

    /// Takes the next `most` pending items at most. `None` if there are none.
    pub(super) fn take(&mut self, most: u64) -> Option<&[ItemHash]> {
        let left = self.hashes.len() - self.taken;
        let some = left.min(usize::try_from(most).unwrap_or(usize::MAX));
        self.taken += some;
        (some > 0).then(|| &self.hashes[self.taken - some..self.taken])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken == self.hashes.len()
    }
}
