//! Runs the fuzz targets over their corpora, and over random mutations of them, without a fuzzer; the fuzzer itself is in `fuzz`. `MAYHAP_FUZZ_SECS` sets
//! how many seconds it continues.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mayhap_fuzz::TARGETS;
use mayhap_fuzz::random::Random;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// The seeds of a target, in an order that does not depend on the file system.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = corpus(target);
    let files = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}; `just fuzz-seeds` makes it", folder.display()));
    let mut seeds: Vec<(String, Vec<u8>)> = files
        .map(|file| {
            let path = file.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap())
        })
        .collect();
    seeds.sort();
    assert!(seeds.len() >= 4, "{} seeds for {target}", seeds.len());
    seeds
}

/// Runs one target over its seeds and then over mutated ones.
fn run(name: &str, rounds: u64) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seeds = seeds(name);
    for (seed, bytes) in &seeds {
        println!("{name}/{seed}");
        (target.run)(bytes);
    }
    let seconds: Option<u64> = std::env::var("MAYHAP_FUZZ_SECS").ok().and_then(|text| text.parse().ok());
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut round = 0;
    while end.map_or(round < rounds, |end| Instant::now() < end) {
        let mut random = Random(round);
        let mut bytes = random.of(&seeds).1.clone();
        for _ in 0..=random.below(4) {
            match random.below(3) {
                // Append the end of another seed.
                0 => {
                    let other = &random.of(&seeds).1;
                    bytes.truncate(random.below(bytes.len() + 1));
                    bytes.extend_from_slice(&other[random.below(other.len() + 1)..]);
                }
                _ => random.bytes(&mut bytes),
            }
        }
        let bytes = bytes;
        // Print the input in case it is the last.
        let told = std::panic::catch_unwind(|| (target.run)(&bytes));
        if let Err(panic) = told {
            eprintln!("{name}, round {round}: {}", bytes.escape_ascii());
            std::panic::resume_unwind(panic);
        }
        round += 1;
    }
    println!("{name}: {} seeds, {round} mutations", seeds.len());
}

#[test]
fn resp() {
    run("resp", 5_000);
}

#[test]
fn commands() {
    run("commands", 1_500);
}

#[test]
fn snapshot() {
    run("snapshot", 1_000);
}

#[test]
fn log() {
    run("log", 3_000);
}

#[test]
fn folder() {
    run("folder", 400);
}

#[test]
fn formats() {
    run("formats", 5_000);
}

#[test]
fn payloads() {
    run("payloads", 1_500);
}

#[test]
fn settings() {
    run("settings", 1_000);
}

#[test]
fn http() {
    run("http", 300);
}

#[test]
fn every_target_has_a_test_here_and_a_fuzz_program() {
    let here = include_str!("corpora.rs");
    for target in TARGETS {
        assert!(here.contains(&format!("run(\"{}\", ", target.name)), "{}", target.name);
        let program = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/fuzz_targets")
            .join(format!("{}.rs", target.name));
        assert!(program.exists(), "{}", program.display());
    }
}
