//! Compares a Bloom filter with a cuckoo filter: 15,800 random strings, queried with as many non-members.
//!
//! Both promise the same false-positive rate. It prints memory, rates and time, deletes half of the members from the cuckoo filter, and
//! fails if a member is ever answered *no* or a rate is far from its promise.
//!
//! `cargo run --release -p mayhap --example bloom_or_cuckoo`, or with another number of strings: `… -- 1000000`.

use std::time::{Duration, Instant};

use mayhap::{Bloom, Cuckoo};

type Error = Box<dyn std::error::Error>;

const RATES: [f64; 3] = [0.03, 0.01, 0.001];

/// Random strings, all different: members and non-members.
fn strings(count: u64) -> [Vec<String>; 2] {
    let word = |number: u64| {
        // A permutation of all 64-bit numbers: no two words are equal.
        let mut state = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^= state >> 32;
        state = state.wrapping_mul(0xd6e8_feb8_6659_fd93);
        (0..14).map(|letter| (b'a' + (state >> (letter * 64 / 14) & 15) as u8) as char).collect::<String>()
            + &format!("{number:x}")
    };
    [(0..count).map(word).collect(), (count..2 * count).map(word).collect()]
}

/// The results of one filter.
struct Row {
    name: &'static str,
    target_fpr: f64,
    bytes: u64,
    false_positives: u64,
    insert: Duration,
    lookup: Duration,
}

fn bloom(members: &[String], others: &[String], target_fpr: f64) -> Result<Row, Error> {
    let begun = Instant::now();
    let mut filter = Bloom::for_capacity(members.len() as u64, target_fpr, 7)?;
    for item in members {
        filter.insert(item);
    }
    let insert = begun.elapsed();
    if let Some(item) = members.iter().find(|item| !filter.may_contain(*item)) {
        return Err(format!("the Bloom filter denies {item}").into());
    }
    let begun = Instant::now();
    let false_positives = others.iter().filter(|item| filter.may_contain(*item)).count() as u64;
    let lookup = begun.elapsed();
    Ok(Row { name: "bloom", target_fpr, bytes: filter.memory_bytes(), false_positives, insert, lookup })
}

fn cuckoo(members: &[String], others: &[String], target_fpr: f64) -> Result<Row, Error> {
    let begun = Instant::now();
    let mut filter = Cuckoo::for_capacity(members.len() as u64, target_fpr, 7)?;
    for item in members {
        filter.insert(item)?;
    }
    let insert = begun.elapsed();
    if let Some(item) = members.iter().find(|item| !filter.may_contain(*item)) {
        return Err(format!("the cuckoo filter denies {item}").into());
    }
    let begun = Instant::now();
    let false_positives = others.iter().filter(|item| filter.may_contain(*item)).count() as u64;
    let lookup = begun.elapsed();
    let bytes = filter.memory_bytes();

    // Half of them go. The others stay.
    let (gone, kept) = members.split_at(members.len() / 2);
    if let Some(item) = gone.iter().find(|item| !filter.remove(*item)) {
        return Err(format!("{item} could not be removed").into());
    }
    if let Some(item) = kept.iter().find(|item| !filter.may_contain(*item)) {
        return Err(format!("after removals the cuckoo filter denies {item}").into());
    }
    Ok(Row { name: "cuckoo", target_fpr, bytes, false_positives, insert, lookup })
}

/// At most the promised rate, within what chance allows.
fn check(row: &Row, asked: u64) -> Result<(), Error> {
    let expected = asked as f64 * row.target_fpr;
    match row.false_positives as f64 > expected + 6.0 * expected.sqrt() + 1.0 {
        true => {
            Err(format!("{}: {} false positives, {expected:.0} promised", row.name, row.false_positives)
                .into())
        }
        false => Ok(()),
    }
}

fn run(count: u64) -> Result<Vec<Row>, Error> {
    let [members, others] = strings(count);
    let mut rows = Vec::new();
    for rate in RATES {
        rows.push(bloom(&members, &others, rate)?);
        rows.push(cuckoo(&members, &others, rate)?);
    }
    rows.iter().try_for_each(|row| check(row, count))?;
    Ok(rows)
}

fn main() -> Result<(), Error> {
    let count = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 15_800,
    };
    let rows = run(count)?;
    println!("{count} members, {count} non-members queried");
    println!(
        "{:8} {:>9} {:>9} {:>9} {:>15} {:>11} {:>11}",
        "filter", "promised", "bytes", "bits/item", "false positives", "insert ns", "lookup ns"
    );
    for row in rows {
        println!(
            "{:8} {:>8}% {:>9} {:>9.1} {:>7} ({:>4.2}%) {:>11.0} {:>11.0}",
            row.name,
            row.target_fpr * 100.0,
            row.bytes,
            row.bytes as f64 * 8.0 / count as f64,
            row.false_positives,
            row.false_positives as f64 * 100.0 / count as f64,
            row.insert.as_nanos() as f64 / count as f64,
            row.lookup.as_nanos() as f64 / count as f64,
        );
    }
    println!("no member was denied, also after half of them were removed from the cuckoo filter");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_member_is_denied_and_rates_are_kept() {
        run(15_800).unwrap();
    }

    #[test]
    fn a_rate_ten_times_too_high_is_detected() {
        let mut row = run(15_800).unwrap().remove(0);
        row.false_positives *= 10;
        assert!(check(&row, 15_800).is_err());
    }
}
