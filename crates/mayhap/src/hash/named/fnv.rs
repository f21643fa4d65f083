//! Fowler–Noll–Vo: one multiplication a byte. FNV-1 multiplies, then mixes the byte in; FNV-1a the other way.

const OFFSET_32: u32 = 0x811c_9dc5;
const PRIME_32: u32 = 0x0100_0193;
const OFFSET_64: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME_64: u64 = 0x0000_0100_0000_01b3;

/// FNV-1, 32 bits.
#[inline]
pub fn fnv1_32(item: &[u8]) -> u32 {
    item.iter().fold(OFFSET_32, |hash, &byte| hash.wrapping_mul(PRIME_32) ^ u32::from(byte))
}

/// FNV-1a, 32 bits.
#[inline]
pub fn fnv1a_32(item: &[u8]) -> u32 {
    item.iter().fold(OFFSET_32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME_32))
}

/// FNV-1, 64 bits.
#[inline]
pub fn fnv1_64(item: &[u8]) -> u64 {
    item.iter().fold(OFFSET_64, |hash, &byte| hash.wrapping_mul(PRIME_64) ^ u64::from(byte))
}

/// FNV-1a, 64 bits.
#[inline]
pub fn fnv1a_64(item: &[u8]) -> u64 {
    item.iter().fold(OFFSET_64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME_64))
}

/// FNV-1a, 64 bits, from another basis and over units wider than a byte: pyprobables' family of functions.
#[inline]
pub(crate) fn fnv1a_64_units(basis_offset: u64, units: impl Iterator<Item = u32>) -> u64 {
    let basis = OFFSET_64.wrapping_add(basis_offset);
    units.fold(basis, |hash, unit| (hash ^ u64::from(unit)).wrapping_mul(PRIME_64))
}
