//! `with_seed`, `keyed` and `with_scheme` of every kind that begins empty.
//!
//! `new` draws a random seed, as the standard library does for its sets: two filters then make different mistakes, and
//! nobody relies on the mistakes of one seed. These methods replace it while the filter is still empty.

use crate::error::BuildError;
use crate::hash::HashScheme;
use crate::{
    AtomicBlockedBloom, AtomicBloom, BlockedBloom, Bloom, CountingBloom, Cuckoo, DLeft, DualBloom, Filter,
    FingerprintSet, GrowableCuckoo, Growing, Quotient, ScalableBloom, ScalableCuckoo, Window,
};

/// One macro for the same three methods of sixteen types; it writes no types.
macro_rules! choose_hash {
    ($($filter:ty),* $(,)?) => {$(
        /// Choosing the hash of an empty filter.
        impl $filter {
            /// Gives an empty filter the fast hash with this seed, so that every run gives the same answers.
            ///
            /// # Panics
            /// If the filter holds items, which were hashed with another seed, or if it belongs to another program,
            /// whose hash is part of its format.
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
