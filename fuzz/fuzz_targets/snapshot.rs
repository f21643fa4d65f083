//! See `mayhap_fuzz::snapshot`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mayhap_fuzz::snapshot::run(data));
