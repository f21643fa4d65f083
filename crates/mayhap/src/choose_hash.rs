//! `with_seed`, `keyed` and `with_scheme` of every kind that begins empty.
//!
//! `new` draws a random seed, as the standard library does for its sets. Two filters then have different false positives,
//! and no program comes to rely on those of one seed. These methods replace the seed while the filter is still empty.

use crate::error::BuildError;
use crate::hash::HashScheme;
use crate::{
    AtomicBlockedBloom, AtomicBloom, BlockedBloom, Bloom, CountingBloom, Cuckoo, DLeft, DualBloom, Filter,
    FingerprintSet, GrowableCuckoo, Growing, Quotient, ScalableBloom, ScalableCuckoo, Window,
};

/// Writes the same three methods for sixteen types. It defines no types.
macro_rules! choose_hash {
    ($($filter:ty),* $(,)?) => {$(
        /// Methods that choose the hash of an empty filter.
        impl $filter {
            /// Gives an empty filter the fast hash with this seed, so that every run gives the same answers.
            ///
            /// # Panics
            /// If the filter holds items, because they were hashed with another seed. Also if the filter belongs to
            /// another program, because the hash is part of that program's format.
            #[must_use]
            pub fn with_seed(self, seed: u64) -> Self {
                self.with_scheme(seed)
            }

            /// Gives an empty filter the keyed hash with a new secret key, for items chosen by clients you do not trust.
            ///
            /// # Errors
            /// [`BuildError::NoRandomness`] if the system returns no random bytes.
            ///
            /// # Panics
            /// As [`with_seed`](Self::with_seed).
            pub fn keyed(self) -> Result<Self, BuildError> {
                Ok(self.with_scheme(HashScheme::keyed_random()?))
            }

            /// Gives an empty filter this hash scheme. Filters that are merged or share hashes need the same one:
            /// `with_scheme(*other.scheme())`.
            ///
            /// # Panics
            /// As [`with_seed`](Self::with_seed).
            #[must_use]
            pub fn with_scheme(mut self, scheme: impl Into<HashScheme>) -> Self {
                HashScheme::check_replaceable(self.scheme(), self.inserted());
                self.set_scheme(scheme.into());
                self
            }
        }
    )*};
}

choose_hash!(
    AtomicBlockedBloom,
    AtomicBloom,
    BlockedBloom,
    Bloom,
    CountingBloom,
    Cuckoo,
    DLeft,
    DualBloom,
    Filter,
    FingerprintSet,
    GrowableCuckoo,
    Growing,
    Quotient,
    ScalableBloom,
    ScalableCuckoo,
    Window,
);
