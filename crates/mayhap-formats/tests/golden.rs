//! Golden `.mayhap` files of filters that other programs could have created. These tests create them with this crate. The tests of
//! `mayhap` (its own `tests/golden.rs`) open them without it.

use std::fs;
use std::path::Path;

use mayhap::{Filter, ItemEncoding, ScalableBloom, SecretKey};
use mayhap_formats::bits_and_blooms;
use mayhap_formats::redis_bloom::{self, Scaling};
use mayhap_testkit::member;

const MEMBERS: u64 = 300;

fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mayhap/tests/golden");
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn a_filter_of_bits_and_blooms_has_these_bytes() {
    let mut filter = bits_and_blooms::create(MEMBERS, 0.01, ItemEncoding::Bytes).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i));
    });
    assert!(filter.encode() == golden("bloom-wide.mayhap"));
}

fn filled(mut filter: ScalableBloom) -> Vec<u8> {
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i)).unwrap();
    });
    filter.encode()
}

#[test]
fn filters_of_redis_bloom_have_these_bytes() {
    let plain = redis_bloom::create(50, 0.01, Scaling::By(2)).unwrap();
    assert!(filled(plain) == golden("scalable-redis-bloom.mayhap"));
    let Filter::ScalableBloom(keyed) = Filter::decode(&golden("scalable-redis-bloom-keyed.mayhap")).unwrap()
    else {
        panic!("another kind");
    };
    let mayhap::HashScheme::Keyed { key } = *keyed.scheme() else { panic!("another hash") };
    let keyed: fn(SecretKey) -> _ = |key| redis_bloom::create_keyed(50, 0.01, Scaling::By(2), key);
    assert!(filled(keyed(key).unwrap()) == golden("scalable-redis-bloom-keyed.mayhap"));
}
