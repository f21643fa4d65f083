//! See `mayhap_fuzz::formats`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mayhap_fuzz::formats::run(data));
