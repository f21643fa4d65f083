//! xxHash (Yann Collet): Parquet's filters use [`xxh64`]; [`xxh3_64`] and [`xxh3_128`] are its successors.

/// XXH64.
#[inline]
pub fn xxh64(item: &[u8], seed: u64) -> u64 {
    xxhash_rust::xxh64::xxh64(item, seed)
}

/// XXH3, 64 bits.
#[inline]
pub fn xxh3_64(item: &[u8], seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(item, seed)
}

/// XXH3, 128 bits, as one number: the reference's `high64` is the upper half.
#[inline]
pub fn xxh3_128(item: &[u8], seed: u64) -> u128 {
    xxhash_rust::xxh3::xxh3_128_with_seed(item, seed)
}
