//! See `mayhap_fuzz::http`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mayhap_fuzz::http::run(data));
