//! A program for the crate `fastbloom`, rewritten for mayhap: the same steps in the same order, with mayhap's names.
//!
//! | `fastbloom` | mayhap |
//! |---|---|
//! | `BloomFilter::with_num_bits(1024).expected_items(2)` | `Bloom::with_shape(BloomShape::for_memory(128, 2)?, HashScheme::random())` |
//! | `BloomFilter::with_false_pos(0.001).expected_items(1_000)` | `Bloom::new(1_000, 0.001)` |
//! | `.seed(&7)` | `.with_seed(7)` |
//! | `.items(iter)` | `.extend(iter)` |
//! | `.insert(x)`, `true`: it was there | `.insert(x)`, `true`: it is new, as in the standard library's sets |
//! | `.contains(x)` | `.may_contain(x)` |
//! | `.hasher(state)` | `.insert_hash(ItemHash::from_unmixed(state.hash_one(x)))` |
//! | `AtomicBloomFilter` | `AtomicBloom` |
//! | `.union(&other)`, `.intersect(&other)` | the same, with a `Result`; or `\|=` and `&=` |
//!
//! `cargo run -p mayhap --features serde --example from_fastbloom`

use std::hash::{BuildHasher as _, RandomState};

use mayhap::{AtomicBloom, Bloom, BloomShape, ByHash, HashScheme, ItemHash};

type Error = Box<dyn std::error::Error>;

/// Create, insert, look up.
fn basic_usage() -> Result<(), Error> {
    let mut filter = Bloom::with_shape(BloomShape::for_memory(128, 2)?, HashScheme::random())?;
    filter.insert("42");
    filter.insert("🦀");
    assert!(filter.may_contain("42") && filter.may_contain("🦀"));
    Ok(())
}

/// Create from a false-positive rate and an iterator. A clone changes independently.
fn from_a_rate() -> Result<Bloom, Error> {
    let mut filter = Bloom::new(1_000, 0.001)?;
    filter.extend(["42", "🦀"].iter());
    assert!(filter.may_contain("42"));
    assert!(filter.may_contain("🦀"));

    let mut copy = filter.clone();
    assert_eq!(copy, filter);
    copy.insert("more");
    assert_ne!(copy, filter);

    // Items of any type with `Hash`: `fastbloom` takes them directly, mayhap in a `ByHash`.
    let mut pairs = Bloom::new(1_000, 0.001)?.with_seed(7);
    pairs.insert(&ByHash(Some(('x', 1.5_f64.to_bits()))));
    assert!(pairs.may_contain(&ByHash(Some(('x', 1.5_f64.to_bits())))));
    Ok(filter)
}

/// Use hashes from another hasher, such as one that the program already has.
fn any_hasher() -> Result<(), Error> {
    let state = RandomState::default();
    let hash = |item: &str| ItemHash::from_unmixed(state.hash_one(item));

    let mut filter = Bloom::new(1_000, 0.001)?;
    for item in ["42", "🦀"].iter() {
        filter.insert_hash(hash(item));
    }
    assert!(filter.may_contain_hash(hash("42")));
    Ok(())
}

/// Insert from many threads through `&self`.
fn threads() -> Result<(), Error> {
    let filter = AtomicBloom::new(1_000, 0.001)?;
    std::thread::scope(|scope| {
        scope.spawn(|| filter.insert("42"));
        scope.spawn(|| filter.insert("🦀"));
    });
    assert!(filter.may_contain("42") && filter.may_contain("🦀"));
    Ok(())
}

/// Serialize in any format, with the feature `serde`.
#[cfg(feature = "serde")]
fn serialized(filter: &Bloom) -> Result<(), Error> {
    let text = serde_json::to_string(filter)?;
    let back: Bloom = serde_json::from_str(&text)?;
    assert_eq!(&back, filter);
    Ok(())
}

/// Without `serde`: encode as the bytes of a file.
#[cfg(not(feature = "serde"))]
fn serialized(filter: &Bloom) -> Result<(), Error> {
    assert_eq!(&Bloom::decode(&filter.encode())?, filter);
    Ok(())
}

fn main() -> Result<(), Error> {
    basic_usage()?;
    serialized(&from_a_rate()?)?;
    any_hasher()?;
    threads()?;
    println!("created, inserted, looked up, copied, hashed, shared and serialized");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_step_works() {
        super::main().unwrap();
    }
}
