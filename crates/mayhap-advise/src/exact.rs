//! The cost of exact structures: sometimes no filter is the best choice.

use mayhap::BuildError;
use mayhap::internals::LINE_BYTES;
use mayhap::sizing::MAX_BITS;

use crate::needs::{ItemShape, Needs};
use crate::price::{Cost, Unsuitable};
use crate::solve::LOWEST_RATE;

/// Bits of a fingerprint in a sorted array.
const FINGERPRINT_BITS: u32 = 64;

/// One bit for every integer of the range.
pub(super) fn bitmap(needs: &Needs) -> Result<Cost, Unsuitable> {
    let possible = needs.item.possible().ok_or(Unsuitable::NeedsRange)?;
    let bits = u64::try_from(possible).unwrap_or(u64::MAX);
    if bits > MAX_BITS {
        return Err(Unsuitable::Unbuildable(BuildError::BitsOutOfRange { got: bits, limit: MAX_BITS }));
    }
    Ok(Cost::exact(bits.div_ceil(8 * LINE_BYTES as u64) * LINE_BYTES as u64, needs))
}

/// A sorted array of the items if they are integers, of their fingerprints otherwise.
pub(super) fn sorted_array(needs: &Needs) -> Cost {
    let (width, expected_fpr) = match needs.item {
        ItemShape::IntegerRange { high, .. } => (integer_bytes(high), 0.0),
        // A non-member is a false positive if its fingerprint is one of `items` among 2^64.
        _ => (u64::from(FINGERPRINT_BITS / 8), needs.items as f64 / 2_f64.powi(FINGERPRINT_BITS as i32)),
    };
    let memory_bytes = needs.items * width;
    // Each step of the binary search touches a line, until the rest lies in one.
    let lines = (memory_bytes as f64 / LINE_BYTES as f64).max(1.0).log2().ceil() + 1.0;
    let probes = needs.items.ilog2() + 1;
    Cost {
        lines_miss: lines,
        lines_hit: lines,
        probes,
        target_fpr: expected_fpr,
        expected_fpr,
        doubled_fpr: 2.0 * expected_fpr,
        ..Cost::exact(memory_bytes, needs)
    }
}

/// The standard library's hash set of the items themselves.
pub(super) fn hash_set(needs: &Needs) -> Cost {
    let (entry, apart) = match needs.item {
        ItemShape::IntegerRange { high, .. } => (integer_bytes(high), 0),
        ItemShape::Bytes { typical_len } => (BOXED_SLICE_BYTES, allocation_bytes(typical_len)),
        ItemShape::Unknown => (BOXED_SLICE_BYTES, allocation_bytes(ItemShape::ASSUMED_LEN)),
    };
    let memory_bytes = table_bytes(needs.items, entry).saturating_add(needs.items.saturating_mul(apart));
    // The control bytes are enough for a non-member. For a member, its entry and the bytes it points to are read too.
    let lines_hit = if apart == 0 { 2.0 } else { 3.0 };
    Cost { lines_miss: 1.0, lines_hit, ..Cost::exact(memory_bytes, needs) }
}

impl Cost {
    /// A structure of `memory_bytes` that is never wrong and touches one line.
    fn exact(memory_bytes: u64, needs: &Needs) -> Self {
        // If every filter has its own rate, the minimum is that of the lowest rate.
        let rate = needs.memory_for_rates().map_or(needs.target_fpr, |_| LOWEST_RATE);
        Self { target_fpr: 0.0, ..Self::of(memory_bytes, 1, needs.items, rate) }
    }
}

/// A `Box<[u8]>`: a pointer and a length.
const BOXED_SLICE_BYTES: u64 = 16;

/// The bytes of the smallest integer type that holds `high`.
fn integer_bytes(high: u64) -> u64 {
    if u32::try_from(high).is_ok() { 4 } else { 8 }
}

/// The real size of a small allocation in glibc: 8 bytes more, rounded up to 16, and at least 32.
fn allocation_bytes(len: u32) -> u64 {
    (u64::from(len) + 8).next_multiple_of(16).max(32)
}

/// The table of a `std::collections::HashSet`: a power of two of buckets, at most seven eighths full, with a control byte
/// each.
fn table_bytes(items: u64, entry_bytes: u64) -> u64 {
    /// Control bytes are read sixteen at a time, so the first sixteen are repeated at the end.
    const GROUP: u64 = 16;
    let buckets = if items < 8 { 8 } else { (items * 8 / 7).next_power_of_two() };
    (buckets * entry_bytes).next_multiple_of(GROUP) + buckets + GROUP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_set_model_matches_the_capacity_of_the_standard_one() {
        use std::collections::HashSet;
        for items in [8_u64, 100, 1000, 57_344, 57_345, 100_000] {
            let buckets = (table_bytes(items, 1) - 16) / 2;
            // The standard set reports how many items fit before it grows: seven eighths of the buckets.
            let real = HashSet::<u8>::with_capacity(items as usize).capacity() as u64;
            assert_eq!(buckets * 7 / 8, real, "{items} items");
        }
    }
}
