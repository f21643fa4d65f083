//! An LSM-tree that reads less: a small store of sorted runs on disk, with a filter for each run and without.
//!
//! A write goes to a table in memory. A full table is written to disk as a sorted run and never changes again. A lookup asks the
//! newest run first and reads one block of each run until it finds the key, so a key that does not exist costs one read per run.
//! A filter of the run's keys stays in memory. Its *no* is certain, so that run needs no read.
//!
//! ```text
//! get ─▶ table in memory ─▶ run 9: filter ─▶ block ─▶ run 8: filter ─▶ block ─▶ …
//!                                 └ no: next run
//! ```
//!
//! `cargo run --release -p mayhap --example lsm_tree -- 1000000` runs it with a million keys. It checks its own claims.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use mayhap::BinaryFuse8;

type Error = Box<dyn std::error::Error>;

/// A key and its value, as stored in a run.
const ENTRY_BYTES: usize = 16;
/// One read fetches a block of entries.
const BLOCK_ENTRIES: usize = 256;

/// Sorted entries in a file that never changes.
struct Run {
    file: File,
    path: PathBuf,
    entries: usize,
    /// The first key of every block.
    index: Vec<u64>,
    filter: BinaryFuse8,
}

impl Run {
    fn write(path: PathBuf, table: &BTreeMap<u64, u64>) -> Result<Self, Error> {
        let mut bytes = Vec::with_capacity(table.len() * ENTRY_BYTES);
        for (key, value) in table {
            bytes.extend(key.to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        fs::write(&path, &bytes)?;
        let keys: Vec<u64> = table.keys().copied().collect();
        Ok(Self {
            file: File::open(&path)?,
            path,
            entries: keys.len(),
            index: keys.iter().step_by(BLOCK_ENTRIES).copied().collect(),
            // All keys are known and the run never changes, so use a static filter: the smallest of the fast ones.
            filter: BinaryFuse8::build(&keys, 0)?,
        })
    }

    /// Reads the block that would hold `key`.
    fn find(&self, key: u64) -> io::Result<Option<u64>> {
        let Some(block) = self.index.partition_point(|first| *first <= key).checked_sub(1) else {
            return Ok(None);
        };
        let from = block * BLOCK_ENTRIES;
        let count = BLOCK_ENTRIES.min(self.entries - from);
        let mut bytes = vec![0; count * ENTRY_BYTES];
        self.file.read_exact_at(&mut bytes, (from * ENTRY_BYTES) as u64)?;
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = usize::midpoint(low, high);
            match number(middle * ENTRY_BYTES).cmp(&key) {
                std::cmp::Ordering::Equal => return Ok(Some(number(middle * ENTRY_BYTES + 8))),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }
}

/// The store: a table in memory, and runs on disk, the newest last.
struct Store {
    folder: PathBuf,
    table: BTreeMap<u64, u64>,
    table_limit: usize,
    runs: Vec<Run>,
}

impl Store {
    fn new(folder: &Path, table_limit: usize) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self { folder: folder.to_owned(), table: BTreeMap::new(), table_limit, runs: Vec::new() })
    }

    fn put(&mut self, key: u64, value: u64) -> Result<(), Error> {
        self.table.insert(key, value);
        if self.table.len() >= self.table_limit {
            let path = self.folder.join(format!("run-{}", self.runs.len()));
            self.runs.push(Run::write(path, &self.table)?);
            self.table.clear();
        }
        Ok(())
    }

    /// The value of a key. Counts the blocks it reads.
    fn get(&self, key: u64, filters: Filters, reads: &mut u64) -> io::Result<Option<u64>> {
        if let Some(value) = self.table.get(&key) {
            return Ok(Some(*value));
        }
        for run in self.runs.iter().rev() {
            if matches!(filters, Filters::Asked) && !run.filter.may_contain(&key) {
                continue;
            }
            *reads += 1;
            if let Some(value) = run.find(key)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

/// Whether lookups use the filters.
#[derive(Clone, Copy)]
enum Filters {
    Asked,
    Ignored,
}

/// The results of a run of the example.
struct Report {
    runs: u64,
    absent_keys: u64,
    /// Blocks read for keys that do not exist.
    absent_reads: u64,
    absent_reads_without: u64,
    /// Blocks read for keys that exist.
    present_reads: u64,
    present_reads_without: u64,
    filter_bytes: u64,
    keys: u64,
}

/// Spreads numbers over all 64 bits, each on another one.
fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn measure(keys: u64, folder: &Path) -> Result<Report, Error> {
    let mut store = Store::new(folder, (keys / 10).max(1) as usize)?;
    for number in 0..keys {
        store.put(scattered(2 * number), number)?;
    }
    let lookups = |odd: u64, filters: Filters| -> Result<u64, Error> {
        let mut reads = 0;
        for number in 0..keys {
            let found = store.get(scattered(2 * number + odd), filters, &mut reads)?;
            // A filter must never hide a key that is there.
            if found != (odd == 0).then_some(number) {
                return Err(format!("key {number}: found {found:?}").into());
            }
        }
        Ok(reads)
    };
    let report = Report {
        runs: store.runs.len() as u64,
        absent_keys: keys,
        absent_reads: lookups(1, Filters::Asked)?,
        absent_reads_without: lookups(1, Filters::Ignored)?,
        present_reads: lookups(0, Filters::Asked)?,
        present_reads_without: lookups(0, Filters::Ignored)?,
        filter_bytes: store.runs.iter().map(|run| run.filter.memory_bytes()).sum(),
        keys,
    };
    for run in &store.runs {
        fs::remove_file(&run.path)?;
    }
    fs::remove_dir(folder)?;
    Ok(report)
}

/// A filter of 8 bits is wrong for 1 in 256 non-members, in each run.
fn check(report: &Report) -> Result<(), Error> {
    let asked = (report.absent_keys * report.runs) as f64;
    let (expected, deviation) = (asked / 256.0, (asked / 256.0).sqrt());
    let reads = report.absent_reads as f64;
    if (reads - expected).abs() > 6.0 * deviation + 1.0 {
        return Err(format!("{reads} reads for absent keys, expected {expected:.0}").into());
    }
    // Without filters a lookup reads a block of nearly every run.
    if report.absent_reads_without < report.absent_reads * 100 {
        return Err(format!("{} reads without filters", report.absent_reads_without).into());
    }
    if report.present_reads >= report.present_reads_without {
        return Err(format!("{} reads for present keys", report.present_reads).into());
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let keys = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 200_000,
    };
    let folder = std::env::temp_dir().join(format!("mayhap-lsm-tree-{}", std::process::id()));
    let report = measure(keys, &folder)?;
    let per_key = |reads: u64| reads as f64 / report.keys as f64;
    println!("{} keys in {} runs", report.keys, report.runs);
    println!(
        "filters: {} bytes, {:.1} bits per key",
        report.filter_bytes,
        report.filter_bytes as f64 * 8.0 / report.keys as f64
    );
    println!("blocks read per lookup        without   with filters");
    println!(
        "  a key that does not exist   {:7.3}   {:12.3}",
        per_key(report.absent_reads_without),
        per_key(report.absent_reads)
    );
    println!(
        "  a key that exists           {:7.3}   {:12.3}",
        per_key(report.present_reads_without),
        per_key(report.present_reads)
    );
    check(&report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_save_nearly_every_read_and_hide_no_key() {
        let folder = std::env::temp_dir().join(format!("mayhap-lsm-tree-test-{}", std::process::id()));
        check(&measure(50_000, &folder).unwrap()).unwrap();
    }

    #[test]
    fn a_store_that_does_not_use_its_filters_is_detected() {
        let folder = std::env::temp_dir().join(format!("mayhap-lsm-tree-twin-{}", std::process::id()));
        let mut report = measure(20_000, &folder).unwrap();
        report.absent_reads = report.absent_reads_without;
        assert!(check(&report).is_err());
    }
}
