//! A program for the crate `xorf`, rewritten for mayhap: the same steps in the same order, with mayhap's names.
//!
//! | `xorf` | mayhap |
//! |---|---|
//! | `BinaryFuse8::try_from(&keys)` | `BinaryFuse8::from_items(&keys)` |
//! | `Xor8::from(&keys)` | `Xor8::from_items(&keys)` |
//! | keys are `u64`, without duplicates; a `HashProxy` hashes other types | keys are any items; duplicates do no harm |
//! | `filter.contains(&key)` | `filter.may_contain(&key)` |
//! | `filter.len()` | `filter.memory_bytes()` |
//!
//! `cargo run --release -p mayhap --example from_xorf`

use mayhap::{BinaryFuse8, ItemHash, Xor8};

type Error = Box<dyn std::error::Error>;

const SAMPLE_SIZE: u64 = 1_000_000;

/// Returns pseudo-random numbers.
fn keys(seed: u64, count: u64) -> Vec<u64> {
    (0..count).map(|number| ItemHash::from_unmixed(seed << 32 | number).to_u128() as u64).collect()
}

fn check(name: &str, contains: impl Fn(&u64) -> bool, bits: f64, non_members: &[u64]) {
    let false_positives = non_members.iter().filter(|key| contains(key)).count();
    let rate = false_positives as f64 / non_members.len() as f64;
    println!("{name}: {bits:.2} bits per key, {:.3} % false positives", rate * 100.0);
    assert!(bits < 9.9, "about as small as possible");
    // The rate is one in 256.
    assert!((0.0035..0.0043).contains(&rate), "{rate}");
}

fn main() -> Result<(), Error> {
    let keys_inside = keys(1, SAMPLE_SIZE);
    let keys_outside = keys(2, SAMPLE_SIZE);

    let filter = BinaryFuse8::from_items(&keys_inside)?;
    for key in &keys_inside {
        assert!(filter.may_contain(key)); // no false negatives
    }
    check("BinaryFuse8", |key| filter.may_contain(key), filter.bits_per_item(), &keys_outside);

    let filter = Xor8::from_items(&keys_inside)?;
    for key in &keys_inside {
        assert!(filter.may_contain(key));
    }
    check("Xor8", |key| filter.may_contain(key), filter.bits_per_item(), &keys_outside);

    // Other keys need no proxy.
    let fruits = ["apple", "banana", "tangerine", "watermelon"];
    let filter = Xor8::from_items(fruits)?;
    for fruit in fruits {
        assert!(filter.may_contain(fruit));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_step_works() {
        super::main().unwrap();
    }
}
