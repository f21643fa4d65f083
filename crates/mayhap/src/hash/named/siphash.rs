//! SipHash (Aumasson and Bernstein): keyed, so that an attacker without the key cannot forge collisions.
//!
//! A key of 16 bytes is given as its two little-endian words. SipHash-2-4 is the published function and BIP-158's;
//! SipHash-1-3 is the faster one of many language runtimes.

use siphasher::{sip, sip128};

/// SipHash-1-3, 64 bits.
#[inline]
pub fn sip13(item: &[u8], key: [u64; 2]) -> u64 {
    sip::SipHasher13::new_with_keys(key[0], key[1]).hash(item)
}

/// SipHash-2-4, 64 bits.
#[inline]
pub fn sip24(item: &[u8], key: [u64; 2]) -> u64 {
    sip::SipHasher24::new_with_keys(key[0], key[1]).hash(item)
}

/// SipHash-1-3, 128 bits, as two words in the order the reference writes them.
#[inline]
pub fn sip13_128(item: &[u8], key: [u64; 2]) -> [u64; 2] {
    sip128::SipHasher13::new_with_keys(key[0], key[1]).hash(item).as_u64().into()
}

/// SipHash-2-4, 128 bits, as two words in the order the reference writes them.
#[inline]
pub fn sip24_128(item: &[u8], key: [u64; 2]) -> [u64; 2] {
    sip128::SipHasher24::new_with_keys(key[0], key[1]).hash(item).as_u64().into()
}
