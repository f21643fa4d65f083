//! `docs/kinds.md`: all kinds side by side. Sizes are computed from the shapes; the times are those of a kept record,
//! as ratios to `Bloom` in the same run.

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

/// Columns of the table that come from a record; they stand at its end, and do not make a page stale.
const MEASURED: usize = 3;

/// The arguments of `kinds`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The record of `filters` that the times are taken from [default: the newest of 10^6 items at 1 %].
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Where the page goes.
    #[arg(long, value_name = "FILE", default_value = "docs/kinds.md")]
    out: PathBuf,
    /// Write nothing; fail if the page's computed columns are not what they would be.
    #[arg(long)]
    check: bool,
}

/// One kind: what it is for and what it can, by word; what it takes, by its shape.
struct Line {
    kind: Kind,
    name: &'static str,
    purpose: &'static str,
    can: &'static str,
    cache_lines: &'static str,
    bits: fn(u64, f64) -> Result<f64, BuildError>,
    /// Its row in a record.
    row: &'static str,
}

const LINES: [Line; 15] = [
    Line {
        kind: Kind::Bloom,
        name: "Bloom",
        purpose: "the least memory of those that only insert",
        can: "merge",
        cache_lines: "up to k",
        bits: |n, p| Ok(BloomShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap Bloom",
    },
    Line {
        kind: Kind::BlockedBloom,
        name: "BlockedBloom",
        purpose: "speed",
        can: "merge",
        cache_lines: "1",
        bits: |n, p| Ok(BlockedShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap BlockedBloom split256",
    },
    Line {
        kind: Kind::CountingBloom,
        name: "CountingBloom",
        purpose: "removing, simply",
        can: "remove, count, merge",
        cache_lines: "up to k",
        bits: |n, p| Ok(CountingShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap CountingBloom",
    },
    Line {
        kind: Kind::DualBloom,
        name: "DualBloom, a tenth removed",
        purpose: "removing a few, in little memory",
        can: "remove",
        cache_lines: "up to 2 k",
        bits: |n, p| Ok(DualShape::for_capacity(n, n / 10, p)?.bits_per_item()),
        row: "mayhap DualBloom (n/10 removals)",
    },
    Line {
        kind: Kind::ScalableBloom,
        name: "ScalableBloom, from a sixteenth",
        purpose: "an unknown number of items",
        can: "grow",
        cache_lines: "up to k a layer",
        bits: |n, p| {
            let shape = ScalableShape::for_capacity(n / 16, p)?;
            Ok(shape.memory_bytes_for(n)? as f64 * 8.0 / n as f64)
        },
        row: "mayhap ScalableBloom (n/16)",
    },
    Line {
        kind: Kind::DLeft,
        name: "DLeft",
        purpose: "removing, in half of what counters take",
        can: "remove, count, merge",
        cache_lines: "4",
        bits: |n, p| Ok(DLeftShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap DLeft",
    },
    Line {
        kind: Kind::Cuckoo,
        name: "Cuckoo",
        purpose: "removing, low rates",
        can: "remove, count",
        cache_lines: "2",
        bits: |n, p| Ok(CuckooShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap Cuckoo",
    },
    Line {
        kind: Kind::GrowableCuckoo,
        name: "GrowableCuckoo, from a sixteenth",
        purpose: "removing and growing, up to a size told beforehand",
        can: "remove, count, grow",
        cache_lines: "2",
        bits: |n, p| Ok(GrowableCuckooShape::for_growth(n / 16, n, p)?.bits_per_item()),
        row: "mayhap GrowableCuckoo (n/16, told n)",
    },
    Line {
        kind: Kind::Quotient,
        name: "Quotient",
        purpose: "removing, counting, merging, resizing without the items",
        can: "remove, count, merge, grow",
        cache_lines: "1 to 2",
        bits: |n, p| Ok(QuotientShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap Quotient",
    },
    Line {
        kind: Kind::Growing,
        name: "Growing, from a millionth",
        purpose: "any number of items, lookups that do not slow",
        can: "remove, grow",
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
        purpose: "sets that do not change, of a few hundred items",
        can: "be built whole",
        cache_lines: "3",
        bits: |n, p| Ok(XorShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap Xor8",
    },
    Line {
        kind: Kind::BinaryFuse,
        name: "BinaryFuse",
        purpose: "sets that do not change, small and fast",
        can: "be built whole",
        cache_lines: "3",
        bits: |n, p| Ok(BinaryFuseShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap BinaryFuse8",
    },
    Line {
        kind: Kind::Ribbon,
        name: "Ribbon",
        purpose: "sets that do not change, nearest the bound",
        can: "be built whole",
        cache_lines: "2 to 3",
        bits: |n, p| Ok(RibbonShape::for_items(n, p)?.bits_per_item()),
        row: "mayhap Ribbon",
    },
    Line {
        kind: Kind::Gcs,
        name: "Gcs",
        purpose: "sets that do not change, smallest to send",
        can: "be built whole, merge",
        cache_lines: "2 to 3",
        bits: |n, p| Ok(GcsShape::for_capacity(n, p)?.bits_per_item()),
        row: "mayhap Gcs",
    },
    Line {
        kind: Kind::Window,
        name: "Window",
        purpose: "seen among the last N items, or in the last N seconds",
        can: "forget",
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

/// Writes the page, or says whether the one that is there is up to date.
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

/// Are the computed columns of `page` those of this library?
fn is_current(page: &str) -> bool {
    computed(page) == computed(&self::page(""))
}

/// The cells of the table's lines, but for the measured ones.
fn computed(page: &str) -> Vec<Vec<&str>> {
    page.lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| {
            let mut cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            cells.truncate(cells.len().saturating_sub(MEASURED));
            cells
        })
        .collect()
}

/// The whole page. `record` is JSON lines; what is not in it is a dash.
fn page(record: &str) -> String {
    let rows: Vec<Value> = record.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let figure = |name: &str, field: &str| rows.iter().rfind(|row| row["name"] == name)?[field].as_f64();
    let ratio = |name: &str, field: &str| Some(figure(name, field)? / figure("mayhap Bloom", field)?);
    let mut page = String::from(
        "# The kinds side by side\n\n\
         Printed by `mayhap-bench kinds`; not edited by hand. Bits per item at 10^6 items, computed from the shapes, and over log2(1/rate) in \
         brackets; cache lines that a lookup touches; then, measured in one run at 10^6 items and 1 % on one machine, thread-CPU time as a ratio \
         to `Bloom`: single lookups of non-members, the same by batch, and inserting by batch or building. \
         `Xor` and `BinaryFuse` have fixed widths: 8 bits for 1 %, 16 for 0.1 %; the times are those of 8 bits. \
         A `Bitmap` is exact, one bit for each number of its range. `ScalableCuckoo` has no rate to ask for: it is there for RedisBloom's data.\n\n\
         | kind | for | can also | lines | bits at 1 % | bits at 0.1 % | lookup | by batch | build |\n\
         |---|---|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for line in &LINES {
        let bits = |fpr: f64| match (line.bits)(ITEMS, fpr) {
            Ok(bits) => format!("{bits:.2} ({:.2})", bits / -fpr.log2()),
            Err(_) => "-".to_owned(),
        };
        let times = |field| ratio(line.row, field).map_or("-".to_owned(), |times| format!("{times:.2} x"));
        let _ = writeln!(
            page,
            "| {} (`{}`) | {} | {} | {} | {} | {} | {} | {} | {} |",
            line.name,
            line.kind,
            line.purpose,
            line.can,
            line.cache_lines,
            bits(0.01),
            bits(0.001),
            times("miss_ns"),
            times("batch_miss_ns"),
            times("build_ns"),
        );
    }
    page
}

/// The last by name, and so by date, of the records at 10^6 items and 1 %.
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
        // One is exact, one is for RedisBloom's sake, and one is as good as exact, at any rate asked for.
        let apart = [Kind::Bitmap, Kind::ScalableCuckoo, Kind::Fingerprints];
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
        assert!(!is_current(&page.replace("| removing, low rates |", "| something else |")));
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
