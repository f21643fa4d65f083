//! Placeholders for the hash functions of other crates, used if the feature `named-hashes` is off. They are never called: decoding
//! refuses every filter that needs one, and only `mayhap-formats` creates such filters, which switches the feature on.

/// Panics. It is never called.
pub(crate) fn never() -> ! {
    unreachable!("a filter that needs the feature `named-hashes` exists without it")
}

/// In place of HighwayHash with 128 bits.
pub(super) fn highway128(_: &[u8], _: [u64; 4]) -> [u64; 2] {
    never()
}

/// In place of SHA-256.
pub(super) fn sha256(_: &[u8]) -> [u8; 32] {
    never()
}
