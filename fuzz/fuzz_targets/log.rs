//! See `mayhap_fuzz::log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mayhap_fuzz::log::run(data));
