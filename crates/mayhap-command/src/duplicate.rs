//! Copies values.

use mayhap::{AtomicScalableBloom, BuildError};

use crate::refusal::Refusal;
use crate::value::Value;

impl Value {
    /// Returns a copy. Admit its memory first.
    ///
    /// # Errors
    /// [`Refusal::InsufficientMemory`] if the system refuses it, [`Refusal::HalfLoaded`] for a filter that is still being loaded, [`Refusal::Lost`]
    /// if its data is lost.
    pub fn try_clone(&self) -> Result<Self, Refusal> {
        let refused = |_: BuildError| Refusal::InsufficientMemory;
        Ok(match self {
            Self::Bloom(filter) => {
                Self::Bloom(Box::new(AtomicScalableBloom::from(filter.snapshot().map_err(refused)?)))
            }
            Self::Cuckoo(filter) => Self::Cuckoo(Box::new(filter.try_clone().map_err(refused)?)),
            Self::LoadingBloom(loader) => return Err(Refusal::half_loaded(loader.progress())),
            Self::LoadingCuckoo(loader) => return Err(Refusal::half_loaded(loader.progress())),
            Self::Text(text) => Self::Text(text.clone()),
            Self::Lost(lost) => return Err(Refusal::Lost(*lost)),
            Self::Filter(holder) => Self::Filter(Box::new(holder.try_clone().map_err(refused)?)),
        })
    }
}
