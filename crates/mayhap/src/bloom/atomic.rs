//! Setting the bits of the classic filter from many threads, for [`Shared`](crate::Shared).

use super::{Bloom, BloomShape};
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::error::BuildError;
use crate::hash::{HashScheme, ItemHash};
use crate::probe::{BloomPlacement, ForeignProbes, PositionStream, Probes, RedisProbes};
use crate::shared::Shareable;
use crate::simd::prefetch;
use crate::sizing::counted;
use crate::together::set_bits;

impl Shareable for Bloom {
    type Shape = BloomShape;

    fn make(shape: BloomShape, scheme: HashScheme) -> Result<Self, BuildError> {
        Self::with_shape(shape, scheme)
    }

    fn shape_for(capacity: u64, target_fpr: f64) -> Result<BloomShape, BuildError> {
        BloomShape::for_capacity(capacity, target_fpr)
    }

    fn shape(&self) -> &BloomShape {
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
        self.bits.memory_bytes()
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
        counted::expected_fpr(self.shape.bits(), self.shape.probes(), inserted)
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
        match self.placement {
            BloomPlacement::Mayhap => self.prefetch_at(Probes::new(hash)),
            BloomPlacement::RedisBloom => self.prefetch_at(RedisProbes::new(hash)),
            placement => self.prefetch_at(ForeignProbes::new(placement, hash)),
        }
    }

    #[inline(always)]
    fn set_shared(&self, hash: ItemHash) -> bool {
        match self.placement {
            BloomPlacement::Mayhap => self.set_shared_at(Probes::new(hash)),
            BloomPlacement::RedisBloom => self.set_shared_at(RedisProbes::new(hash)),
            placement => self.set_shared_at(ForeignProbes::new(placement, hash)),
        }
    }
}

impl Bloom {
    #[inline(always)]
    fn prefetch_at<P: PositionStream>(&self, mut stream: P) {
        for _ in 0..self.shape.probes() {
            prefetch(self.bits.words(), (stream.next(self.shape.range()) / 64) as usize);
        }
    }

    #[inline(always)]
    fn set_shared_at<P: PositionStream>(&self, mut stream: P) -> bool {
        if stream.is_nowhere() {
            return false;
        }
        let positions = (0..self.shape.probes()).map(|_| stream.next(self.shape.range()));
        set_bits(self.bits.words(), positions)
    }
}
