//! See `mayhap_fuzz::commands`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mayhap_fuzz::commands::run(data));
