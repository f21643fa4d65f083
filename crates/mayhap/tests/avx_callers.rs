//! Code compiled for AVX may call a filter and keep its own vectors.
//!
//! Single lookups are assembly that ends with `vzeroupper`, which clears the upper halves of all vector registers. The compiler must know that; otherwise a
//! caller loses values it keeps there.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_set_epi64x, _mm256_setzero_si256, _mm256_storeu_si256,
};

use mayhap::{BlockedBloom, ItemHash};

/// Four running sums, kept in one 256-bit register across the calls.
#[target_feature(enable = "avx2")]
#[inline(never)]
fn sums_beside_lookups(filter: &BlockedBloom, hashes: &[ItemHash]) -> ([u64; 4], usize) {
    let (mut sums, mut there) = (_mm256_setzero_si256(), 0);
    for hash in hashes {
        sums = _mm256_add_epi64(sums, _mm256_set_epi64x(4, 3, 2, 1));
        there += usize::from(filter.may_contain_hash(*hash));
    }
    (stored(sums), there)
}

#[target_feature(enable = "avx2")]
#[inline(never)]
fn sums_beside_inserts(filter: &mut BlockedBloom, hashes: &[ItemHash]) -> [u64; 4] {
    let mut sums = _mm256_setzero_si256();
    for hash in hashes {
        sums = _mm256_add_epi64(sums, _mm256_set_epi64x(4, 3, 2, 1));
        filter.insert_hash(*hash);
    }
    stored(sums)
}

#[target_feature(enable = "avx2")]
fn stored(vector: __m256i) -> [u64; 4] {
    let mut out = [0; 4];
    // SAFETY: `out` has room for 256 bits.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), vector) };
    out
}

#[test]
fn vectors_of_the_caller_survive() {
    if !is_x86_feature_detected!("avx2") {
        assert!(std::env::var_os("MAYHAP_REQUIRE_AVX2").is_none(), "AVX2 is required but not there");
        return;
    }
    let mut filter = BlockedBloom::for_capacity(1_000, 0.01, 0).unwrap();
    let hashes: Vec<ItemHash> = (0..10).map(ItemHash::from_unmixed).collect();
    // SAFETY: both need only AVX2, checked above.
    let (inserts, lookups) =
        unsafe { (sums_beside_inserts(&mut filter, &hashes), sums_beside_lookups(&filter, &hashes)) };
    assert_eq!((inserts, lookups), ([10, 20, 30, 40], ([10, 20, 30, 40], 10)));
}
