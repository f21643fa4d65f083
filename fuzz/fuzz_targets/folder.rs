//! See `mayhap_fuzz::folder`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mayhap_fuzz::folder::run(data));
