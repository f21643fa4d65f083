//! Writes the table of figures in `README.md` and `README.zh-CN.md`: our filters and the fastest rivals of each family, from the newest record, losses
//! included.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use serde_json::Value;

use crate::kinds::newest_record;

const BEGIN: &str = "<!-- figures: `just readme` writes this table from bench/record -->\n";
const END: &str = "<!-- end of figures -->\n";

/// Rivals shown per family: those with the fastest single lookups.
const RIVALS: usize = 2;
/// A filter whose rate is lower than requested by more than this factor belongs to another comparison.
const LOWEST_FPR: f64 = 0.001;

/// The arguments of `readme`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The record of `filters` to show [default: the newest of 10^6 items at 1 %].
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// The project's folder.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
}

/// A page with the table, in its language.
struct Page {
    file: &'static str,
    /// The text above the table, with the placeholders `{machine}`, `{cpus}`, `{date}` and `{record}`.
    about: &'static str,
    header: &'static str,
    /// The names of [`FAMILIES`].
    families: [&'static str; 5],
}

const PAGES: [Page; 2] = [
    Page {
        file: "README.md",
        about: "One million integers, target rate 1 %, all in one process on one machine ({machine}, {cpus} cores, {date}); CPU time per item. \
                Bold is the best of a family. From {record}.",
        header: "| family | crate | bits per item | measured FPR | lookup, non-member | lookup, member | lookup, in batches | insert or build |",
        families: [
            "Bloom",
            "blocked Bloom",
            "deletes: cuckoo",
            "deletes, merges: quotient",
            "static: binary fuse",
        ],
    },
    Page {
        file: "README.zh-CN.md",
        about: "一百万个整数，目标误判率 1 %，同一台机器、同一个进程（{machine}，{cpus} 核，{date}），每个元素的 CPU 时间。粗体为同类最佳。数据来自 {record}。",
        header: "| 类别 | crate | 每元素位数 | 实测误判率 | 查询（不存在） | 查询（存在） | 批量查询 | 插入或构建 |",
        families: ["布隆", "分块布隆", "可删除：布谷鸟", "可删除、可合并：商过滤器", "静态：binary fuse"],
    },
];

/// Our row of each family, and the kind of its rivals in a record.
const FAMILIES: [(&str, &str); 5] = [
    ("mayhap Bloom", "bloom"),
    ("mayhap BlockedBloom split256", "blocked"),
    ("mayhap Cuckoo", "cuckoo"),
    ("mayhap Quotient", "quotient"),
    ("mayhap BinaryFuse8", "static"),
];

pub(crate) fn run(args: &Args) -> ExitCode {
    match write(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mayhap-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(args: &Args) -> io::Result<()> {
    let newest = || newest_record(&args.root.join("bench/record"));
    let record = args.record.clone().or_else(newest).ok_or_else(|| io::Error::other("no record found"))?;
    let rows = rows(&fs::read_to_string(&record)?);
    for page in &PAGES {
        let path = args.root.join(page.file);
        let text = fs::read_to_string(&path)?;
        let Some((before, _, after)) = parts(&text) else {
            return Err(io::Error::other(format!("{} has no markers for the table", page.file)));
        };
        fs::write(path, format!("{before}{BEGIN}{}{END}{after}", table(page, &record, &rows)))?;
    }
    Ok(())
}

/// Splits a page into the text before the table, the table, and the text after it.
fn parts(page: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (table, after) = rest.split_once(END)?;
    Some((before, table, after))
}

fn rows(record: &str) -> Vec<Value> {
    record.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn table(page: &Page, record: &Path, rows: &[Value]) -> String {
    let name = record.file_name().unwrap_or_default().to_string_lossy();
    let link = format!("[`{name}`](bench/record/{name})");
    let machine = rows.iter().find(|row| row["machine"].is_string());
    let said = |field: &str| {
        machine.map_or("?".to_owned(), |row| match &row[field] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    };
    let about =
        ["machine", "cpus", "date"].iter().fold(page.about.replace("{record}", &link), |text, field| {
            text.replace(&format!("{{{field}}}"), &said(field))
        });
    let mut table = format!("{about}\n\n{}\n|---|---|--:|--:|--:|--:|--:|--:|\n", page.header);
    for ((ours, kind), family) in FAMILIES.iter().zip(page.families) {
        let Some(ours) = rows.iter().find(|row| row["name"] == *ours) else { continue };
        let shown: Vec<&Value> = [ours].into_iter().chain(rivals(rows, kind)).collect();
        for (number, row) in shown.iter().enumerate() {
            let _ = writeln!(
                table,
                "| {} | {} | {} | {:.2} % | {} | {} | {} | {} |",
                if number == 0 { family } else { "" },
                row["name"].as_str().unwrap_or_default(),
                cell(row, &shown, "bits_per_item", ""),
                row["observed_fpr"].as_f64().unwrap_or(f64::NAN) * 100.0,
                cell(row, &shown, "miss_ns", " ns"),
                cell(row, &shown, "hit_ns", " ns"),
                cell(row, &shown, "batch_miss_ns", " ns"),
                cell(row, &shown, "insert_ns", " ns"),
            );
        }
    }
    table
}

/// Returns the fastest rivals of this kind.
fn rivals<'a>(rows: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let is_rival = |row: &&Value| {
        let rate = row["observed_fpr"].as_f64();
        row["kind"] == kind && row["ours"] == false && rate.is_some_and(|rate| rate > LOWEST_FPR)
    };
    let mut rivals: Vec<&Value> = rows.iter().filter(is_rival).collect();
    let miss = |row: &Value| or_last(figure(row, "miss_ns"));
    rivals.sort_by(|one, other| miss(one).total_cmp(&miss(other)));
    rivals.truncate(RIVALS);
    rivals
}

/// Returns a figure of a row. Static filters have no time of a single insertion.
fn figure(row: &Value, field: &str) -> Option<f64> {
    match field {
        "insert_ns" => row["insert_ns"].as_f64().or_else(|| row["build_ns"].as_f64()),
        _ => row[field].as_f64(),
    }
}

fn or_last(figure: Option<f64>) -> f64 {
    figure.unwrap_or(f64::INFINITY)
}

/// Formats a figure, in bold if no other of its family is shown smaller; a dash if there is none.
fn cell(row: &Value, family: &[&Value], field: &str, unit: &str) -> String {
    let Some(shown) = figure(row, field) else { return "–".to_owned() };
    let least = family.iter().map(|row| or_last(figure(row, field))).fold(f64::INFINITY, f64::min);
    let (shown, least) = (format!("{shown:.1}{unit}"), format!("{least:.1}{unit}"));
    if shown == least { format!("**{shown}**") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_in_the_tree_are_those_of_the_newest_record() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let record = newest_record(&root.join("bench/record")).unwrap();
        let rows = rows(&fs::read_to_string(&record).unwrap());
        for page in &PAGES {
            let text = fs::read_to_string(root.join(page.file)).unwrap();
            let (_, shown, _) = parts(&text).unwrap_or_else(|| panic!("{} has no table", page.file));
            assert_eq!(shown, table(page, &record, &rows), "{}: run `just readme`", page.file);
        }
    }

    #[test]
    fn a_loss_is_shown_as_one() {
        let record = r#"{"machine":"x","cpus":2,"date":"2026-01-01"}
{"name":"mayhap Bloom","kind":"bloom","ours":true,"bits_per_item":9.6,"observed_fpr":0.01,"miss_ns":14.5,"hit_ns":15.0,"batch_miss_ns":11.0,"insert_ns":26.0}
{"name":"rival","kind":"bloom","ours":false,"bits_per_item":9.7,"observed_fpr":0.01,"miss_ns":20.0,"hit_ns":12.0,"batch_miss_ns":null,"insert_ns":13.0}
{"name":"too exact","kind":"bloom","ours":false,"bits_per_item":30.0,"observed_fpr":0.0001,"miss_ns":1.0,"hit_ns":1.0,"batch_miss_ns":null,"insert_ns":1.0}"#;
        let table = table(&PAGES[0], Path::new("filters-x.jsonl"), &rows(record));
        let ours =
            "| Bloom | mayhap Bloom | **9.6** | 1.00 % | **14.5 ns** | 15.0 ns | **11.0 ns** | 26.0 ns |";
        let theirs = "|  | rival | 9.7 | 1.00 % | 20.0 ns | **12.0 ns** | – | **13.0 ns** |";
        assert!(table.contains(ours) && table.contains(theirs), "{table}");
        assert!(table.contains("(x, 2 cores, 2026-01-01)") && !table.contains("too exact"), "{table}");
    }
}
