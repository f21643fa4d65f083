//! Setting the blocks of the blocked filter from many threads, for [`Shared`](crate::Shared).

use super::{BlockPlace, BlockedBloom, BlockedLayout, BlockedPlacement, BlockedShape, place};
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::error::BuildError;
use crate::hash::{HashScheme, ItemHash};
use crate::shared::Shareable;
use crate::simd::{generic, prefetch};
use crate::sizing::blocked::MAX_REGIONS;
use crate::together::set_masks;

impl BlockedBloom {
    /// Returns the lines of an item in the dense layout: one per region.
    #[inline(always)]
    fn for_each_line(&self, hash: ItemHash, mut each: impl FnMut(&BlockPlace)) {
        let rule = self.placement;
        if rule.is_rocksdbs() {
            return each(&rule.line(hash, self.shape.blocks()));
        }
        let places = place::lines::<{ MAX_REGIONS as usize }>(hash, &self.shape);
        places[..self.shape.lines_per_item() as usize].iter().for_each(each);
    }
}

impl Shareable for BlockedBloom {
    type Shape = BlockedShape;

    fn make(shape: BlockedShape, scheme: HashScheme) -> Result<Self, BuildError> {
        Self::with_shape(shape, scheme)
    }

    fn shape_for(capacity: u64, target_fpr: f64) -> Result<BlockedShape, BuildError> {
        BlockedShape::for_capacity(capacity, target_fpr)
    }

    fn shape(&self) -> &BlockedShape {
        &self.shape
    }

    #[inline(always)]
    fn scheme(&self) -> &HashScheme {
        &self.scheme
    }

    fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    fn target_fpr(&self) -> f64 {
        self.shape.target_fpr()
    }

    fn memory_bytes(&self) -> u64 {
        self.words.memory_bytes()
    }

    fn inserted(&self) -> u64 {
        self.inserted
    }

    fn fill(&self) -> f64 {
        Self::fill(self)
    }

    fn estimated_items(&self) -> u64 {
        Self::estimated_items(self)
    }

    fn with_inserted(self, inserted: u64) -> Self {
        Self { inserted, ..self }
    }

    fn set_scheme(&mut self, scheme: HashScheme) {
        self.set_scheme(scheme);
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        Self::try_clone(self)
    }

    fn expected_fpr_at(&self, inserted: u64) -> f64 {
        self.shape.expected_fpr_when_counted(inserted)
    }

    #[inline(always)]
    fn may_contain_hash(&self, hash: ItemHash) -> bool {
        Self::may_contain_hash(self, hash)
    }

    fn answer_all<H: Hashed>(&self, items: &[H], answers: &mut Answers) {
        Self::answer_all(self, items, answers);
    }

    #[inline(always)]
    fn prefetch(&self, hash: ItemHash) {
        let words = self.words.words();
        match self.shape.layout() {
            BlockedLayout::Split256 => prefetch(words, self.split_place(hash).word),
            BlockedLayout::Line512 => self.for_each_line(hash, |place| prefetch(words, place.word)),
        }
    }

    #[inline(always)]
    fn set_shared(&self, hash: ItemHash) -> bool {
        let words = self.words.words();
        match self.shape.layout() {
            BlockedLayout::Split256 => {
                let place = self.split_place(hash);
                let masks: [u64; generic::SPLIT_WORDS] =
                    std::array::from_fn(|index| generic::split_mask(place.bits, index));
                set_masks(&words[place.word..], &masks)
            }
            BlockedLayout::Line512 => {
                let mut changed = false;
                self.for_each_line(hash, |place| {
                    let mask = match self.placement {
                        BlockedPlacement::Line => generic::line_mask(place.bits, self.shape.probes()),
                        rule => rule.mask(place.bits, self.shape.probes()),
                    };
                    changed |= set_masks(&words[place.word..], &mask);
                });
                changed
            }
        }
    }
}
