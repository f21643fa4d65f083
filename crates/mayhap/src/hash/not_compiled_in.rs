//! What stands for the functions of other crates if the feature `named-hashes` is off. Nothing calls them: decoding refuses every filter that
//! needs one, and only `mayhap-formats`, which switches the feature on, creates such filters.

/// Never called.
pub(crate) fn never() -> ! {
    unreachable!("a filter that needs the feature `named-hashes` exists without it")
}

/// HighwayHash, 128 bits.
pub(super) fn highway128(_: &[u8], _: [u64; 4]) -> [u64; 2] {
    never()
}

/// SHA-256.
pub(super) fn sha256(_: &[u8]) -> [u8; 32] {
    never()
}
