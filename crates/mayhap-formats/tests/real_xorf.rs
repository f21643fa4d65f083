//! The crate xorf and we on each other's filters.

use mayhap::{BinaryFuse, Fingerprint, ItemEncoding, Xor};
use mayhap_formats::fast_filter::{self, FuseLayout, xor};
use serde::Serialize;
use serde::de::DeserializeOwned;
use xorf::Filter;

const SIZES: [u64; 5] = [1, 2, 10, 1_000, 100_000];
const NON_MEMBERS: u64 = 10_000;

/// Numbers that are not consecutive.
fn keys(count: u64) -> Vec<u64> {
    (0..count).map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

/// All `keys` are found in both, and both have the same false positives.
fn agree(keys: &[u64], theirs: &impl Filter<u64>, ours: impl Fn(u64) -> bool) {
    assert!(keys.iter().all(|key| theirs.contains(key) && ours(*key)));
    for non_member in 0..NON_MEMBERS {
        assert_eq!(theirs.contains(&non_member), ours(non_member), "{non_member}");
    }
}

fn fuse_both_ways<F: Fingerprint, X>()
where
    X: Filter<u64> + Serialize + DeserializeOwned + for<'a> TryFrom<&'a [u64], Error: std::fmt::Debug>,
{
    for count in SIZES {
        let keys = keys(count);
        let built: BinaryFuse<F> = fast_filter::build(&keys, ItemEncoding::U64Le).unwrap();
        let mut json = Vec::new();
        fast_filter::write(&built, FuseLayout::XorfJson, &mut json).unwrap();
        let theirs: X = serde_json::from_slice(&json).unwrap();
        agree(&keys, &theirs, |key| built.may_contain(&key));

        let theirs = X::try_from(&keys).unwrap();
        let json = serde_json::to_vec(&theirs).unwrap();
        let read: BinaryFuse<F> =
            fast_filter::read(&json, FuseLayout::XorfJson, ItemEncoding::U64Le).unwrap();
        agree(&keys, &theirs, |key| read.may_contain(&key));
        let mut again = Vec::new();
        fast_filter::write(&read, FuseLayout::XorfJson, &mut again).unwrap();
        assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(json).unwrap());
    }
}

fn xor_both_ways<F: Fingerprint, X>()
where
    X: Filter<u64> + Serialize + DeserializeOwned + for<'a> From<&'a [u64]>,
{
    for count in SIZES {
        let keys = keys(count);
        let built: Xor<F> = xor::build(&keys, ItemEncoding::U64Le).unwrap();
        let mut json = Vec::new();
        xor::write(&built, xor::XorLayout::XorfJson, &mut json).unwrap();
        let theirs: X = serde_json::from_slice(&json).unwrap();
        agree(&keys, &theirs, |key| built.may_contain(&key));

        let theirs = X::from(&keys[..]);
        let json = serde_json::to_vec(&theirs).unwrap();
        let read: Xor<F> = xor::read(&json, xor::XorLayout::XorfJson, ItemEncoding::U64Le).unwrap();
        agree(&keys, &theirs, |key| read.may_contain(&key));
        let mut again = Vec::new();
        xor::write(&read, xor::XorLayout::XorfJson, &mut again).unwrap();
        assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(json).unwrap());
    }
}

#[test]
fn binary_fuse_filters_of_every_width() {
    fuse_both_ways::<u8, xorf::BinaryFuse8>();
    fuse_both_ways::<u16, xorf::BinaryFuse16>();
    fuse_both_ways::<u32, xorf::BinaryFuse32>();
}

#[test]
fn xor_filters_of_every_width() {
    xor_both_ways::<u8, xorf::Xor8>();
    xor_both_ways::<u16, xorf::Xor16>();
    xor_both_ways::<u32, xorf::Xor32>();
}

/// A filter of other items, or one read with another width, gives other answers: the comparison can fail.
#[test]
fn other_filters_disagree() {
    let keys = keys(1_000);
    let theirs = xorf::BinaryFuse16::try_from(&keys).unwrap();
    let other: BinaryFuse<u16> = fast_filter::build(&keys[1..], ItemEncoding::U64Le).unwrap();
    assert!(theirs.contains(&keys[0]) && !other.may_contain(&keys[0]));
    let json = serde_json::to_vec(&theirs).unwrap();
    assert!(fast_filter::read::<u8>(&json, FuseLayout::XorfJson, ItemEncoding::U64Le).is_err());
}
