//! The cryptographic functions: slow compared with the rest of this module. They are here to match existing hashes.
//! MD5 and SHA-1 are broken: attackers can make collisions. Use them only for old data.

use sha2::Digest as _;

/// MD5.
#[inline]
pub fn md5(item: &[u8]) -> [u8; 16] {
    md5::Md5::digest(item).into()
}

/// SHA-1.
#[inline]
pub fn sha1(item: &[u8]) -> [u8; 20] {
    sha1::Sha1::digest(item).into()
}

/// SHA-256.
#[inline]
pub fn sha256(item: &[u8]) -> [u8; 32] {
    sha2::Sha256::digest(item).into()
}

/// SHA-384.
#[inline]
pub fn sha384(item: &[u8]) -> [u8; 48] {
    sha2::Sha384::digest(item).into()
}

/// SHA-512.
#[inline]
pub fn sha512(item: &[u8]) -> [u8; 64] {
    sha2::Sha512::digest(item).into()
}

/// RIPEMD-160.
#[inline]
pub fn ripemd160(item: &[u8]) -> [u8; 20] {
    ripemd::Ripemd160::digest(item).into()
}
