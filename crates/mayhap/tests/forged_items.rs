//! Items forged to collide in a fixed-seed filter do nothing to a keyed one beyond its honest rate.
//!
//! `mayhap-formats/tests/vectors/attacks/forged-items.txt` holds items computed against MurmurHash64A with a public seed, as RedisBloom uses it:
//! `collide` share all positions with `user:7`, `pollute` set only fresh bits.

use std::collections::BTreeMap;

use mayhap::{Bloom, HashScheme, SecretKey};
use mayhap_testkit::{binomial_band, non_member};

fn forged() -> BTreeMap<String, Vec<Vec<u8>>> {
    let text = include_str!("../../mayhap-formats/tests/vectors/attacks/forged-items.txt");
    let mut sets: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for line in text.lines() {
        let (set, hex) = line.split_once(' ').expect("a set and its item");
        let bytes =
            (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
        sets.entry(set.to_owned()).or_default().push(bytes);
    }
    sets
}

fn keyed(number: u128, capacity: u64, rate: f64) -> Bloom {
    let key = SecretKey::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_le_bytes());
    Bloom::for_capacity(capacity, rate, HashScheme::keyed(key)).unwrap()
}

const NON_MEMBERS: u64 = 400_000;

/// Wrong answers among honest non-members.
fn wrong(filter: &Bloom) -> u64 {
    (0..NON_MEMBERS).filter(|&i| filter.may_contain(&non_member(i))).count() as u64
}

#[test]
fn forged_collisions_are_non_members_like_any_other() {
    let collide = &forged()["collide"];
    assert_eq!(collide.len(), 200);
    // 100 keys: 20 000 queries at 10 % expect 2 000 false positives; RedisBloom answers maybe to all of them.
    let mut mayhaps = 0;
    for number in 0..100 {
        let mut filter = keyed(number, 1_000, 0.1);
        filter.insert("user:7");
        (1..1_000_u64).for_each(|i| {
            filter.insert(&i);
        });
        assert!(filter.may_contain("user:7"));
        mayhaps += collide.iter().filter(|item| filter.may_contain(*item)).count() as u64;
    }
    let rate = keyed(0, 1_000, 0.1).shape().expected_fpr(1_000);
    let honest = binomial_band(20_000, rate, 1e-6);
    assert!(honest.contains(&mayhaps), "{mayhaps} outside {honest:?}");
}

#[test]
fn forged_pollution_fills_no_faster_than_honest_items() {
    let pollute = &forged()["pollute"];
    assert_eq!(pollute.len(), 20_000);
    let mut polluted = keyed(1, 20_000, 0.01);
    polluted.insert_batch(pollute);
    let rate = polluted.shape().expected_fpr(20_000);
    let honest = binomial_band(NON_MEMBERS, rate, 1e-6);
    let seen = wrong(&polluted);
    assert!(honest.contains(&seen), "{seen} outside {honest:?}: polluted");
    let fill = polluted.fill();
    assert!((0.50..0.53).contains(&fill), "{fill}");
}

/// The twin that must fail: the same items against the fixed-seed placement they were forged for.
#[test]
fn the_same_items_break_the_filter_they_were_forged_for() {
    use mayhap::hash::named::murmur2::murmur64a;
    let sets = forged();
    let hashes = |item: &[u8]| {
        let first = murmur64a(item, 0xc6a4_a793_5bd1_e995);
        (first, murmur64a(item, first))
    };
    assert!(sets["collide"].iter().all(|item| hashes(item) == hashes(b"user:7")));

    let bits = 191_744_u64; // BF.RESERVE 0.01 20000 NONSCALING
    let mut set = vec![false; bits as usize];
    let positions = |item: &[u8]| {
        let (a, b) = hashes(item);
        (0..7_u64).map(move |i| (a.wrapping_add(i.wrapping_mul(b)) % bits) as usize)
    };
    sets["pollute"].iter().for_each(|item| positions(item).for_each(|position| set[position] = true));
    let wrong = (0..NON_MEMBERS).filter(|&i| positions(&non_member(i)).all(|position| set[position])).count();
    let rate = wrong as f64 / NON_MEMBERS as f64;
    assert!(rate > 0.1, "ten times the promised rate, got {rate}");
}
