//! See `mayhap_fuzz::payloads`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mayhap_fuzz::payloads::run(data));
