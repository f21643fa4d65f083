//! `docs/hash-functions.md`: every hash function of the library with its width, its seed or key, its speed and an
//! avalanche test, for integers and for strings.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use mayhap::hash::named::NamedHash;
use mayhap::{HashScheme, SecretKey};
use serde::Serialize;
use serde_json::Value;

use crate::{clock, record};

/// Pairs of inputs for each input bit of the avalanche test.
const PAIRS: u64 = 32_768;
/// Input bits that are flipped, one at a time: the last eight bytes.
const FLIPPED_BITS: usize = 64;
/// Output bits that are examined. Filters use at most the first 128.
const OUTPUT_BITS: usize = 128;
/// A bias up to this may be chance: six standard deviations of a fair coin. An item and its flipped twin may both be
/// in the sequence, so that a pair counts twice: [`PAIRS`] / 2 tosses are independent.
const CHANCE: f64 = 6.0 * 0.5 / 128.0;
const _: () = assert!(PAIRS == 2 * 128 * 128);

/// Items hashed in one timed round, and the number of rounds. The fastest round counts.
const ITEMS: usize = 4_096;
const ROUNDS: usize = 60;

/// The arguments of `hashes`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only write the page from the newest record; measure nothing.
    #[arg(long)]
    page_only: bool,
    /// The project's folder.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
}

/// Returns the first 128 bits of an item's hash.
type HashFunction = Box<dyn Fn(&[u8]) -> u128>;

/// A hash function and its properties.
struct Function {
    name: &'static str,
    bits: u32,
    parameter: &'static str,
    used_by: &'static str,
    hash: HashFunction,
}

/// One function in a record.
#[derive(Serialize)]
struct Measured {
    hash: &'static str,
    bits: u32,
    parameter: &'static str,
    used_by: &'static str,
    /// CPU nanoseconds for an item of 8, 32 and 1,024 bytes.
    ns_8: f64,
    ns_32: f64,
    ns_1024: f64,
    /// The largest deviation from ½ of the probability that an output bit changes with an input bit.
    bias_integers: f64,
    bias_strings: f64,
}

/// All functions: our two, then the named ones in the order of the library.
fn functions() -> Vec<Function> {
    let of_scheme = |name, parameter, used_by, scheme: HashScheme| Function {
        name,
        bits: 128,
        parameter,
        used_by,
        hash: Box::new(move |item| scheme.hash(item).to_u128()),
    };
    let mut all = vec![
        of_scheme("mayhap fast", "seed", "mayhap, by default (XXH3-128)", HashScheme::fast(0)),
        of_scheme(
            "mayhap keyed",
            "secret key",
            "mayhap, for items that clients choose (SipHash-1-3-128)",
            HashScheme::keyed(SecretKey::new([7; 16])),
        ),
    ];
    all.extend(NamedHash::all().iter().map(|named| {
        let (named, name) = (*named, named.name());
        Function {
            name,
            bits: named.bits(),
            parameter: parameter(name),
            used_by: used_by(name),
            hash: Box::new(move |item| {
                let digest = named.digest(item);
                let bytes = digest.as_bytes();
                let mut first = [0; 16];
                let len = bytes.len().min(16);
                first[..len].copy_from_slice(&bytes[..len]);
                u128::from_le_bytes(first)
            }),
        }
    }));
    all
}

fn parameter(name: &str) -> &'static str {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if starts(&["sip", "highway"]) {
        "secret key"
    } else if starts(&["fnv", "farm", "jenkins", "md5", "sha", "ripemd", "rocksdb_xxph3"])
        || name == "cityhash64"
    {
        "none"
    } else {
        "seed"
    }
}

fn used_by(name: &str) -> &'static str {
    match name {
        "murmur3_x64_128" => "Guava",
        "cassandra_murmur3_x64_128" => "Cassandra",
        "spark_murmur3_x86_32" => "Spark",
        "murmur3_x86_32" => "BIP 37",
        "murmur64a" => "RedisBloom",
        "xxh64" => "Parquet",
        "highwayhash128" => "Redisson",
        "fnv1_64" => "DCSO bloom",
        "siphash24" => "BIP 158",
        "leveldb" => "LevelDB",
        "rocksdb_legacy" => "RocksDB, legacy filters",
        "rocksdb_xxph3_64" => "RocksDB",
        _ => "",
    }
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let done = match args.page_only {
        true => Ok(()),
        false => keep(&measure_all(&functions())),
    };
    match done.and_then(|()| write_page(&args.root)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mayhap-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn keep(measured: &[Measured]) -> io::Result<()> {
    let date = record::today();
    let path = record::append(&format!("hashes-{date}.jsonl"), measured.iter().map(record::line), &date)?;
    println!("kept in {}", path.display());
    Ok(())
}

fn measure_all(functions: &[Function]) -> Vec<Measured> {
    let items = [8, 32, 1_024].map(items_of);
    // Rounds of all functions alternate, so that a busy moment of the machine meets them all alike.
    let mut best = vec![[f64::INFINITY; 3]; functions.len()];
    for _ in 0..ROUNDS {
        for (function, best) in functions.iter().zip(&mut best) {
            for (items, best) in items.iter().zip(best) {
                *best = best.min(time_once(function, items));
            }
        }
    }
    let measured = functions.iter().zip(best).map(|(function, [ns_8, ns_32, ns_1024])| {
        let rounded = |value: f64, digits: f64| (value * digits).round() / digits;
        let bias = |item: &dyn Fn(u64) -> Vec<u8>| rounded(worst_bias(function, item), 1e4);
        Measured {
            hash: function.name,
            bits: function.bits,
            parameter: function.parameter,
            used_by: function.used_by,
            ns_8: rounded(ns_8, 1e2),
            ns_32: rounded(ns_32, 1e2),
            ns_1024: rounded(ns_1024, 1e2),
            bias_integers: bias(&|number| number.to_le_bytes().to_vec()),
            bias_strings: bias(&|number| format!("https://example.org/item/{number:08}").into_bytes()),
        }
    });
    measured.collect()
}

/// Items of this length, which differ in their last eight bytes.
fn items_of(len: usize) -> Vec<Vec<u8>> {
    let item = |number: usize| {
        let mut item = vec![b'x'; len];
        item[len - 8..].copy_from_slice(&(number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        item
    };
    (0..ITEMS).map(item).collect()
}

fn time_once(function: &Function, items: &[Vec<u8>]) -> f64 {
    let (_, ns) = clock::time(|| {
        black_box(items.iter().fold(0, |sum, item| sum ^ (function.hash)(black_box(item))));
    });
    ns / items.len() as f64
}

/// The avalanche test: flips one bit in the last eight bytes of an item at a time, and counts for every pair of input and
/// output bit how often the output bit changes. A good function changes each with probability ½. Returns the largest
/// distance from it.
fn worst_bias(function: &Function, item: &dyn Fn(u64) -> Vec<u8>) -> f64 {
    let width = (function.bits as usize).min(OUTPUT_BITS);
    let mut changes = vec![[0_u32; OUTPUT_BITS]; FLIPPED_BITS];
    for number in 0..PAIRS {
        let mut item = item(number);
        let hash = (function.hash)(&item);
        let first = item.len() - FLIPPED_BITS / 8;
        for (bit, changes) in changes.iter_mut().enumerate() {
            item[first + bit / 8] ^= 1 << (bit % 8);
            let mut changed = hash ^ (function.hash)(&item);
            item[first + bit / 8] ^= 1 << (bit % 8);
            while changed != 0 {
                changes[changed.trailing_zeros() as usize] += 1;
                changed &= changed - 1;
            }
        }
    }
    let bias = |count: &u32| (f64::from(*count) / PAIRS as f64 - 0.5).abs();
    changes.iter().flat_map(|counts| &counts[..width]).map(bias).fold(0.0, f64::max)
}

fn newest_record(folder: &Path) -> Option<PathBuf> {
    let paths = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hashes-")))
        .max()
}

fn write_page(root: &Path) -> io::Result<()> {
    let path =
        newest_record(&root.join("bench/record")).ok_or_else(|| io::Error::other("no record of hashes"))?;
    let page = page(&path, &fs::read_to_string(&path)?);
    fs::write(root.join("docs/hash-functions.md"), page)
}

/// The page, from a record. A record that was appended to counts with its last run.
fn page(path: &Path, record: &str) -> String {
    let lines: Vec<Value> = record.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let last = lines.iter().rposition(|line| line["machine"].is_string()).unwrap_or(0);
    let (machine, rows) = (&lines[last], &lines[last + 1..]);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut page = format!(
        "# Hash functions

<!-- generated: `just hashes` measures and writes this page -->

[How filters work](how-filters-work.md#hash-functions) explains what a filter needs of a hash function. This page compares all functions of the library.

* **ns**: CPU time of one hash in nanoseconds, for items of 8, 32 and 1,024 bytes. All functions ran in one process ({}, {} cores, {}; [`{name}`](../bench/record/{name})).
  The named functions are called by name at run time and return their value as bytes, which costs each of them a little; our two are called as filters call them.
* **avalanche**: the test flips one bit of the last eight bytes of an item and counts how often each output bit changes, {PAIRS} times for each pair of bits. A good function changes every output bit with
  probability ½. The column shows the largest distance from ½ over all pairs (0.5: some bit never changes, or always does). Up to {CHANCE:.3} may be chance: **pass**.
  *Integers* are 0, 1, 2, … in eight bytes; *strings* are `https://example.org/item/00000000` and so on.
* **seed or key**: a *seed* gives another function of the same family. It does not protect against clients that choose items. A *secret key* does.

| function | bits | seed or key | ns, 8 bytes | ns, 32 bytes | ns, 1 KiB | avalanche, integers | avalanche, strings | used by |
|---|--:|---|--:|--:|--:|--:|--:|---|
",
        text(&machine["machine"]),
        machine["cpus"],
        text(&machine["date"]),
    );
    for row in rows {
        let number = |field: &str| row[field].as_f64().unwrap_or(f64::NAN);
        let verdict = |field: &str| {
            let bias = number(field);
            if bias <= CHANCE { "pass".to_owned() } else { format!("{bias:.3}") }
        };
        let _ = writeln!(
            page,
            "| {} | {} | {} | {:.1} | {:.1} | {:.0} | {} | {} | {} |",
            text(&row["hash"]),
            row["bits"],
            text(&row["parameter"]),
            number("ns_8"),
            number("ns_32"),
            number("ns_1024"),
            verdict("bias_integers"),
            verdict("bias_strings"),
            text(&row["used_by"]),
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_tree_is_that_of_the_newest_record_and_has_every_function() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let path = newest_record(&root.join("bench/record")).unwrap();
        let fresh = page(&path, &fs::read_to_string(&path).unwrap());
        let kept = fs::read_to_string(root.join("docs/hash-functions.md")).unwrap();
        assert_eq!(kept, fresh, "run `just hashes`");
        for function in functions() {
            let (name, bits, parameter) = (function.name, function.bits, function.parameter);
            assert!(
                kept.contains(&format!("| {name} | {bits} | {parameter} |")),
                "{name}: run `just hashes`"
            );
        }
    }

    #[test]
    fn the_avalanche_test_tells_good_functions_from_bad_ones() {
        let integers = |number: u64| number.to_le_bytes().to_vec();
        let of = |name| functions().into_iter().find(|function| function.name == name).unwrap();
        assert!(worst_bias(&of("mayhap fast"), &integers) <= CHANCE);
        assert!(worst_bias(&of("fnv1a_64"), &integers) > 0.4);
        let constant = Function { hash: Box::new(|_| 7), ..of("mayhap fast") };
        assert!((worst_bias(&constant, &integers) - 0.5).abs() < 1e-9);
    }
}
