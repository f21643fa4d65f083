//! Writes `docs/kinds.md`, a comparison of all kinds. Sizes are computed from the shapes; times come from a kept record, as ratios to `Bloom` in the
//! same run.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use mayhap::{
    BinaryFuseShape, BlockedShape, BloomShape, BuildError, CountingShape, CuckooShape, DLeftShape, DualShape,
    GcsShape, GrowableCuckooShape, GrowingShape, Kind, QuotientShape, RibbonShape, ScalableShape,
    WindowShape, XorShape,
};
use serde_json::Value;

const ITEMS: u64 = 1_000_000;

/// The columns at the end of the table that come from a record; they do not make a page stale.
const MEASURED: usize = 3;

/// The arguments of `kinds`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The record of `filters` with the times [default: the newest of 10^6 items at 1 %].
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// The page to write.
    #[arg(long, value_name = "FILE", default_value = "docs/kinds.md")]
    out: PathBuf,
    /// Write nothing; fail if the computed columns of the page are stale.
    #[arg(long)]
    check: bool,
}

/// One kind: its purpose and operations, its size computed from its shape.
struct Line {
    kind: Kind,
    name: &'static str,
    purpose: &'static str,
    can: Operations,
    /// The false-positive rates that can be chosen.
    rates: &'static str,
    /// What happens past the capacity.
    past: &'static str,
    cache_lines: &'static str,
    bits: fn(u64, f64) -> Result<f64, BuildError>,
    /// The name of its row in a record.
    row: &'static str,
}

/// The operations of a kind besides lookup.
#[derive(Clone, Copy)]
struct Operations {
    insert: bool,
    remove: bool,
    count: bool,
    grow: bool,
    merge: bool,
}

impl Operations {
    const INSERT: Self = Self { insert: true, remove: false, count: false, grow: false, merge: false };
    const STATIC: Self = Self { insert: false, ..Self::INSERT };

    /// The cells of the table: insert, remove, count, grow, merge.
    fn cells(self) -> String {
        [self.insert, self.remove, self.count, self.grow, self.merge]
            .map(|can| if can { "yes" } else { "–" })
            .join(" | ")
    }
}

const ANY: &str = "any";
const HALVES: &str = "any; steps of a half";
const WIDTHS: &str = "0.39 %, 0.0015 %, 2^-32";
const RISES: &str = "the rate rises";
const REFUSES: &str = "inserts are refused";
const HOLDS: &str = "it grows, the rate holds";

const LINES: [Line; 15] = [
    Line {
        kind: Kind::Bloom,
        name: "Bloom",
        purpose: "least memory, insert only",
        can: Operations { merge: true, ..Operations::INSERT },
        rates: ANY,
        past: RISES,
        cache_lines: "up to k",
        bits: |n, p| Ok(BloomShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap Bloom",
    },
    Line {
        kind: Kind::BlockedBloom,
        name: "BlockedBloom",
        purpose: "speed",
        can: Operations { merge: true, ..Operations::INSERT },
        rates: ANY,
        past: RISES,
        cache_lines: "1",
        bits: |n, p| Ok(BlockedShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap BlockedBloom split256",
    },
    Line {
        kind: Kind::CountingBloom,
        name: "CountingBloom",
        purpose: "simple removal",
        can: Operations { remove: true, count: true, merge: true, ..Operations::INSERT },
        rates: ANY,
        past: RISES,
        cache_lines: "up to k",
        bits: |n, p| Ok(CountingShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap CountingBloom",
    },
    Line {
        kind: Kind::DualBloom,
        name: "DualBloom, 1/10 removed",
        purpose: "few removals, little memory",
        can: Operations { remove: true, ..Operations::INSERT },
        rates: ANY,
        past: RISES,
        cache_lines: "up to 2 k",
        bits: |n, p| Ok(DualShape::for_capacity(n, n / 10, p)?.bits_per_item()),
        row: "mayhap DualBloom (n/10 removals)",
    },
    Line {
        kind: Kind::ScalableBloom,
        name: "ScalableBloom, started at 1/16",
        purpose: "unknown number of items",
        can: Operations { grow: true, ..Operations::INSERT },
        rates: ANY,
        past: HOLDS,
        cache_lines: "up to k per layer",
        bits: |n, p| {
            let shape = ScalableShape::for_capacity(n / 16, p)?;
            Ok(shape.memory_bytes_for(n)? as f64 * 8.0 / n as f64)
        },
        row: "mayhap ScalableBloom (n/16)",
    },
    Line {
        kind: Kind::DLeft,
        name: "DLeft",
        purpose: "removal, half the memory of CountingBloom",
        can: Operations { remove: true, count: true, merge: true, ..Operations::INSERT },
        rates: HALVES,
        past: REFUSES,
        cache_lines: "4",
        bits: |n, p| Ok(DLeftShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap DLeft",
    },
    Line {
        kind: Kind::Cuckoo,
        name: "Cuckoo",
        purpose: "removal, low rates",
        can: Operations { remove: true, count: true, ..Operations::INSERT },
        rates: HALVES,
        past: REFUSES,
        cache_lines: "2",
        bits: |n, p| Ok(CuckooShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap Cuckoo",
    },
    Line {
        kind: Kind::GrowableCuckoo,
        name: "GrowableCuckoo, started at 1/16",
        purpose: "removal and growth up to a known maximum",
        can: Operations { remove: true, count: true, grow: true, ..Operations::INSERT },
        rates: HALVES,
        past: "it doubles up to its maximum, then inserts are refused",
        cache_lines: "2",
        bits: |n, p| Ok(GrowableCuckooShape::for_growth(n / 16, n, p)?.bits_per_item()),
        row: "mayhap GrowableCuckoo (n/16, told n)",
    },
    Line {
        kind: Kind::Quotient,
        name: "Quotient",
        purpose: "removal, counting, merging, resizing without the items",
        can: Operations { remove: true, count: true, merge: true, grow: true, ..Operations::INSERT },
        rates: HALVES,
        past: "inserts are refused; it can be doubled",
        cache_lines: "1 to 2",
        bits: |n, p| Ok(QuotientShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap Quotient",
    },
    Line {
        kind: Kind::Growing,
        name: "Growing, started at 1/2^20",
        purpose: "any number of items, lookups stay fast",
        can: Operations { remove: true, grow: true, ..Operations::INSERT },
        rates: HALVES,
        past: HOLDS,
        cache_lines: "1 to 2",
        bits: |n, p| {
            let shape = GrowingShape::for_capacity((n >> 20).max(1), p)?;
            Ok(shape.memory_bytes_after(n)? as f64 * 8.0 / n as f64)
        },
        row: "mayhap Growing (n/2^20)",
    },
    Line {
        kind: Kind::Xor,
        name: "Xor",
        purpose: "static sets of up to 16,000 items",
        can: Operations::STATIC,
        rates: WIDTHS,
        past: "it takes no more items",
        cache_lines: "3",
        bits: |n, p| Ok(XorShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap Xor8",
    },
    Line {
        kind: Kind::BinaryFuse,
        name: "BinaryFuse",
        purpose: "static sets, small and fast",
        can: Operations::STATIC,
        rates: WIDTHS,
        past: "it takes no more items",
        cache_lines: "3",
        bits: |n, p| Ok(BinaryFuseShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap BinaryFuse8",
    },
    Line {
        kind: Kind::Ribbon,
        name: "Ribbon",
        purpose: "static sets, closest to the size bound",
        can: Operations::STATIC,
        rates: ANY,
        past: "it takes no more items",
        cache_lines: "2 to 3",
        bits: |n, p| Ok(RibbonShape::for_items(n, p)?.bits_per_item()),
        row: "mayhap Ribbon",
    },
    Line {
        kind: Kind::Gcs,
        name: "Gcs",
        purpose: "static sets, smallest to transmit",
        can: Operations { merge: true, ..Operations::STATIC },
        rates: ANY,
        past: "it takes no more items",
        cache_lines: "2 to 3",
        bits: |n, p| Ok(GcsShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap Gcs",
    },
    Line {
        kind: Kind::Window,
        name: "Window",
        purpose: "the last N items, or the items of the last N seconds",
        can: Operations::INSERT,
        rates: ANY,
        past: "the oldest items are forgotten",
        cache_lines: "2",
        bits: |n, p| Ok(WindowShape::of_items(n, p)?.bits_per_item()),
        row: "mayhap Window",
    },
];

pub(crate) fn run(args: &Args) -> ExitCode {
    match write_or_check(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("error: {} is stale: run `mayhap-bench kinds`", args.out.display());
            ExitCode::FAILURE
        }
        Err(problem) => {
            eprintln!("error: {}: {problem}", args.out.display());
            ExitCode::from(2)
        }
    }
}

/// Writes the page, or returns whether the existing page is up to date.
fn write_or_check(args: &Args) -> io::Result<bool> {
    if args.check {
        return Ok(is_current(&fs::read_to_string(&args.out)?));
    }
    let record = match args.record.clone().or_else(|| newest_record(Path::new("bench/record"))) {
        Some(path) => fs::read_to_string(path)?,
        None => String::new(),
    };
    fs::write(&args.out, page(&record))?;
    println!("written to {}", args.out.display());
    Ok(true)
}

/// Returns whether the computed columns of `page` match this library.
fn is_current(page: &str) -> bool {
    computed(page) == computed(&self::page(""))
}

/// The cells of the table, except the measured ones.
fn computed(page: &str) -> Vec<Vec<&str>> {
    page.lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| {
            let mut cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            if cells.len() > MEASURED {
                cells.truncate(cells.len() - MEASURED);
            }
            cells
        })
        .collect()
}

/// Renders the whole page. `record` is JSON lines; figures that are missing from it become a dash.
fn page(record: &str) -> String {
    let rows: Vec<Value> = record.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let figure = |name: &str, field: &str| rows.iter().rfind(|row| row["name"] == name)?[field].as_f64();
    let ratio = |name: &str, field: &str| Some(figure(name, field)? / figure("mayhap Bloom", field)?);
    let mut page = String::from(
        "# Comparison of all kinds\n\n\
         Generated by `mayhap-bench kinds`; do not edit.\n\n\
         * *bits*: bits per item at 10^6 items, computed from the shapes; in brackets, divided by log2(1/rate), the smallest possible size.\n\
         * *lines*: cache lines that a lookup touches; k is the number of probes.\n\
         * *insert*: a kind without it is *static*: it is built from all its items at once and never changes.\n\
         * *remove*, *count*, *grow*, *merge*: remove an item; count the copies of an item; hold more items than it was created for; unite two filters.\n\
         * *rates*: the false-positive rates that can be chosen. *Steps of a half*: fingerprints have whole bits, so the real rate is at most the chosen one and often lower.\n\
         * *past capacity*: what happens when more items come than the filter was created for.\n\
         * *lookup*, *batch*, *build*: thread-CPU time as a ratio to `Bloom`, measured in one run at 10^6 items and 1 % on one machine: single \
         lookups of non-members, batch lookups of non-members, and batch inserts or the build.\n\n\
         `Xor` and `BinaryFuse` have fixed widths: 8 bits for 1 %, 16 for 0.1 %; their times are for 8 bits.\n\n\
         | kind | when | insert | remove | count | grow | merge | rates | past capacity | lines | bits at 1 % | bits at 0.1 % | lookup | batch | build |\n\
         |---|---|---|---|---|---|---|---|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for line in &LINES {
        let bits = |fpr: f64| match (line.bits)(ITEMS, fpr) {
            Ok(bits) => format!("{bits:.2} ({:.2})", bits / -fpr.log2()),
            Err(_) => "-".to_owned(),
        };
        let times = |field| ratio(line.row, field).map_or("-".to_owned(), |times| format!("{times:.2} x"));
        let _ = writeln!(
            page,
            "| {} (`{}`) | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            line.name,
            line.kind,
            line.purpose,
            line.can.cells(),
            line.rates,
            line.past,
            line.cache_lines,
            bits(0.01),
            bits(0.001),
            times("miss_ns"),
            times("batch_miss_ns"),
            times("build_ns"),
        );
    }
    page.push_str(APART);
    page
}

/// The kinds that have no row of figures.
const APART: &str = "\n\
    | kinds without a row above | when |\n\
    |---|---|\n\
    | Bitmap (`bitmap`) | integers from a known range, exactly: one bit for each number of the range; no false positives |\n\
    | FingerprintSet (`fingerprints`) | items of any length, practically exactly: 9.2 to 10.6 bytes each; grows; `mayhap uniq` uses it |\n\
    | ScalableCuckoo (`scalable-cuckoo`) | RedisBloom's cuckoo filter, for its dumps and `CF.*`; its rate is fixed and rises while it grows |\n\
    | AtomicBloom, AtomicBlockedBloom | the same as Bloom and BlockedBloom, for many threads at once |\n\
    | WideBloom | Bloom filters of other programs whose hashes have more than 128 bits or depend on the probe; read, asked and written back |\n";

/// The newest record at 10^6 items and 1 %: the last by name, which contains the date.
pub(crate) fn newest_record(folder: &Path) -> Option<PathBuf> {
    let paths = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_one = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("filters-1000000-0.01-u64-"))
    };
    paths.filter(is_one).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_line() {
        let apart = [Kind::Bitmap, Kind::ScalableCuckoo, Kind::Fingerprints];
        for kind in apart {
            assert!(APART.contains(&format!("(`{kind}`)")), "{kind}");
        }
        for kind in Kind::ALL.into_iter().filter(|kind| !apart.contains(kind)) {
            assert_eq!(LINES.iter().filter(|line| line.kind == kind).count(), 1, "{kind}");
        }
    }

    #[test]
    fn the_page_in_the_tree_is_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/kinds.md");
        let page = fs::read_to_string(&path).expect("docs/kinds.md is there");
        assert!(is_current(&page), "run `cargo run --release -p mayhap-bench -- kinds`");
    }

    #[test]
    fn a_record_changes_the_measured_columns_only() {
        let record = "{\"machine\":\"x\"}\n\
            {\"name\":\"mayhap Bloom\",\"miss_ns\":10.0,\"batch_miss_ns\":5.0,\"build_ns\":8.0}\n\
            {\"name\":\"mayhap Cuckoo\",\"miss_ns\":5.0,\"batch_miss_ns\":4.0,\"build_ns\":20.0}\n";
        let page = page(record);
        assert!(page.contains("| 0.50 x | 0.80 x | 2.50 x |") && is_current(&page), "{page}");
        assert!(!is_current(&page.replace("| removal, low rates |", "| something else |")));
    }

    #[test]
    fn sizes_are_at_least_the_bound() {
        for line in &LINES {
            for fpr in [0.01, 0.001] {
                let bits = (line.bits)(ITEMS, fpr).unwrap();
                assert!(bits >= -fpr.log2(), "{}: {bits} bits at {fpr}", line.name);
            }
        }
    }
}
