//! The figures that every report of a filter has, each defined once.
//!
//! `mayhap info`, `MF.INFO` and the HTTP API use these names with these meanings. A figure without a value (bits per
//! item of nothing) is `null` in JSON, and 0 in `MF.INFO`, whose fields always have a number.
//!
//! | figure | meaning |
//! |---|---|
//! | `capacity` | the number of items the filter was sized for |
//! | `inserted` | the number of items it counted so far |
//! | `load` | `inserted / capacity`: see [`load`] |
//! | `fill` | the share of bits or slots in use, from 0 to 1 |
//! | `target_fpr` | the false-positive rate asked for, which holds up to `capacity` |
//! | `expected_fpr` | the false-positive rate now: from `inserted` by the model, or from the bits if that is higher |
//! | `memory_bytes` | the memory the filter takes |
//! | `bits_per_item` | `memory_bytes × 8 / capacity`: see [`bits_per`] |
//! | `bits_per_inserted` | `memory_bytes × 8 / inserted`; a nearly empty filter has a huge one |

/// The share of the capacity in use: `inserted / capacity`. It is above 1 past the capacity, and 0 without one.
#[must_use]
pub fn load(inserted: u64, capacity: u64) -> f64 {
    match capacity {
        0 => 0.0,
        capacity => inserted as f64 / capacity as f64,
    }
}

/// Bits of memory per item: with the capacity as `items` it is `bits_per_item`, with the number of inserted items
/// `bits_per_inserted`. `None` without items.
///
/// ```
/// use mayhap::{Bloom, figures};
///
/// let filter = Bloom::new(1_000_000, 0.01)?;
/// let bits = figures::bits_per(filter.memory_bytes(), filter.capacity()).unwrap();
/// assert!((9.5..9.7).contains(&bits));
/// assert_eq!(figures::bits_per(filter.memory_bytes(), filter.inserted()), None);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[must_use]
pub fn bits_per(memory_bytes: u64, items: u64) -> Option<f64> {
    (items > 0).then(|| memory_bytes as f64 * 8.0 / items as f64)
}

/// The least bits per item that any filter of this false-positive rate can have: log2(1 / rate).
#[must_use]
pub fn bound_bits_per_item(fpr: f64) -> Option<f64> {
    (fpr > 0.0).then(|| fpr.recip().log2())
}
