//! Creates the filter for a structure and needs.

use std::fmt;

use mayhap::{
    BinaryFuse8, BinaryFuse16, BinaryFuse32, BinaryFuseShape, Bitmap, BlockedBloom, BlockedShape, Bloom,
    BloomShape, BuildError, BuildOptions, CountingBloom, CountingShape, Cuckoo, CuckooShape, DLeft,
    DualBloom, Filter, Gcs, GrowableCuckoo, Growing, HashScheme, ItemHash, Quotient, Ribbon, ScalableBloom,
    Window, Xor8, Xor16, Xor32, XorShape,
};

use crate::needs::{ItemShape, Needs};
use crate::price::{GROWABLE_TO, Structure, removals};

/// Why a structure could not be created.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CreateError {
    /// A filter cannot be built from these numbers.
    Build(BuildError),
    /// It is built once, from all items: use [`Structure::build_hashes`].
    NeedsAllItems {
        /// Which.
        structure: Structure,
    },
    /// It is filled item by item: use [`Structure::create`].
    TakesItemsOneByOne {
        /// Which.
        structure: Structure,
    },
    /// The items must be integers of a known range.
    NeedsRange,
    /// It is not a filter: the standard library has it.
    NoFilter {
        /// Which.
        structure: Structure,
    },
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => error.fmt(f),
            Self::NeedsAllItems { structure } => write!(f, "{structure} is built once, from all items"),
            Self::TakesItemsOneByOne { structure } => write!(f, "{structure} is filled item by item"),
            Self::NeedsRange => f.write_str("a bitmap needs the range of its integers"),
            Self::NoFilter { structure } => write!(f, "{structure} is not a filter"),
        }
    }
}

impl std::error::Error for CreateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Build(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BuildError> for CreateError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl Structure {
    /// An empty filter for `needs`, as [`rust_for`](super::rust_for) writes it.
    ///
    /// ```
    /// use mayhap_advise::{Needs, Structure};
    /// use mayhap::HashScheme;
    ///
    /// let mut seen = Structure::Cuckoo.create(&Needs::new(1_000, 0.01), HashScheme::fast(0))?;
    /// assert!(seen.insert("ada")? && seen.may_contain("ada"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CreateError`] for a structure that is built once from all items, and for invalid numbers.
    pub fn create(self, needs: &Needs, scheme: HashScheme) -> Result<Filter, CreateError> {
        let (items, rate) = (needs.items, needs.target_fpr);
        Ok(match self {
            Self::Bitmap => {
                let ItemShape::IntegerRange { low, high } = needs.item else {
                    return Err(CreateError::NeedsRange);
                };
                Filter::Bitmap(Bitmap::of_range(low, high)?)
            }
            Self::Bloom => Filter::Bloom(match needs.probes {
                Some(probes) => Bloom::with_shape(BloomShape::for_probes(items, rate, probes)?, scheme)?,
                None => Bloom::for_capacity(items, rate, scheme)?,
            }),
            Self::BlockedBloom(layout) => Filter::BlockedBloom(BlockedBloom::with_shape(
                BlockedShape::with_layout(layout, items, rate)?,
                scheme,
            )?),
            Self::CountingBloom => Filter::CountingBloom(match needs.probes {
                Some(probes) => {
                    CountingBloom::with_shape(CountingShape::for_probes(items, rate, probes)?, scheme)?
                }
                None => CountingBloom::for_capacity(items, rate, scheme)?,
            }),
            Self::DualBloom => {
                Filter::DualBloom(DualBloom::for_capacity(items, removals(needs), rate, scheme)?)
            }
            Self::ScalableBloom => Filter::ScalableBloom(ScalableBloom::for_capacity(items, rate, scheme)?),
            Self::DLeft => Filter::DLeft(DLeft::for_capacity(items, rate, scheme)?),
            Self::Cuckoo => Filter::Cuckoo(Cuckoo::for_capacity(items, rate, scheme)?),
            Self::CuckooSemiSorted => {
                Filter::Cuckoo(Cuckoo::with_shape(CuckooShape::semi_sorted(items, rate)?, scheme)?)
            }
            Self::GrowableCuckoo => {
                let largest = items.saturating_mul(GROWABLE_TO);
                Filter::GrowableCuckoo(GrowableCuckoo::for_growth(items, largest, rate, scheme)?)
            }
            Self::Quotient => Filter::Quotient(Quotient::for_capacity(items, rate, scheme)?),
            Self::Window => Filter::Window(Window::of_items(items, rate, scheme)?),
            Self::Growing => Filter::Growing(Growing::for_capacity(items, rate, scheme)?),
            Self::Xor | Self::BinaryFuse | Self::Ribbon | Self::Gcs => {
                return Err(CreateError::NeedsAllItems { structure: self });
            }
            Self::SortedArray | Self::HashSet => return Err(CreateError::NoFilter { structure: self }),
        })
    }

    /// An immutable filter of all these items, already hashed by `scheme`, with a rate of `target_fpr`.
    ///
    /// # Errors
    /// [`CreateError`] for a structure that is filled item by item, and for invalid numbers.
    pub fn build_hashes(
        self,
        hashes: impl IntoIterator<Item = ItemHash>,
        target_fpr: f64,
        scheme: HashScheme,
        options: &BuildOptions,
    ) -> Result<Filter, CreateError> {
        Ok(match self {
            Self::Xor => match XorShape::bits_for(target_fpr)? {
                8 => Filter::Xor8(Xor8::build_hashes(hashes, options, scheme)?),
                16 => Filter::Xor16(Xor16::build_hashes(hashes, options, scheme)?),
                _ => Filter::Xor32(Xor32::build_hashes(hashes, options, scheme)?),
            },
            Self::BinaryFuse => match BinaryFuseShape::bits_for(target_fpr)? {
                8 => Filter::BinaryFuse8(BinaryFuse8::build_hashes(hashes, options, scheme)?),
                16 => Filter::BinaryFuse16(BinaryFuse16::build_hashes(hashes, options, scheme)?),
                _ => Filter::BinaryFuse32(BinaryFuse32::build_hashes(hashes, options, scheme)?),
            },
            Self::Ribbon => Filter::Ribbon(Ribbon::build_hashes(hashes, target_fpr, scheme)?),
            Self::Gcs => Filter::Gcs(Gcs::build_hashes(hashes, target_fpr, scheme)?),
            Self::SortedArray | Self::HashSet => return Err(CreateError::NoFilter { structure: self }),
            _ => return Err(CreateError::TakesItemsOneByOne { structure: self }),
        })
    }
}
