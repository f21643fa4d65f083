//! Real programs write Parquet files, and we answer from the filters in them: pyarrow and DuckDB as writers, and DuckDB as a reader of pyarrow's filters,
//! whose answers must match ours.
//!
//! `MAYHAP_TEST_PYTHON` names the interpreter; `./test` installs it with both packages, and also sets `MAYHAP_REQUIRE_REAL`, which makes a missing
//! program a failure. Without them the test prints a message and does nothing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use mayhap::{BlockedBloom, Item, ItemEncoding};
use mayhap_formats::parquet::{InRowGroup, ParquetFilters};
use mayhap_formats::sbbf::{self, Sizing};
use mayhap_testkit::binomial::binomial_band;
use serde_json::Value;

const ROWS: u64 = 20_000;
const GROUP: u64 = 5_000;
const DUCKDB_GROUP: u64 = 4_096;
const GROUPS: usize = 4;

type Filters = ParquetFilters<File>;

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether a missing program is a failure.
fn required() -> bool {
    std::env::var_os("MAYHAP_REQUIRE_REAL").is_some()
}

/// The files that the script wrote into the folder, if there is an interpreter for it.
fn run(folder: &Path) -> Option<Value> {
    let Some(python) = std::env::var_os("MAYHAP_TEST_PYTHON") else {
        assert!(!required(), "MAYHAP_TEST_PYTHON is not set, and MAYHAP_REQUIRE_REAL is");
        eprintln!("pyarrow was not run: MAYHAP_TEST_PYTHON names no interpreter; ./test sets it");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_pyarrow.py");
    let output = Command::new(&python).arg(script).arg(folder).output();
    let output = output.unwrap_or_else(|cause| panic!("{}: {cause}", python.display()));
    let complaint = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && complaint.contains("No module named 'pyarrow'") {
        assert!(!required(), "{} has no pyarrow, and MAYHAP_REQUIRE_REAL is set", python.display());
        eprintln!("pyarrow was not run: {} does not have it", python.display());
        return None;
    }
    assert!(output.status.success(), "{complaint}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The value of row `i` in `column`, and a value that no row has: as text, or as bytes if the column holds bytes.
fn value(column: &str, i: u64, is_member: bool) -> Held {
    let non_member = u64::from(!is_member);
    let whole = |number: i128| Held::Text(number.to_string());
    match column {
        "s" if is_member => Held::Text(format!("row-{i}")),
        "outer.inner" if is_member => Held::Text(format!("in-{i}")),
        "s" | "outer.inner" => Held::Text(format!("nobody-{i}")),
        "b" => Held::Bytes([&i.to_be_bytes()[..], &[0xff - non_member as u8]].concat()),
        "i32" => whole(i128::from(i) * 7 - 50_000 + i128::from(non_member)),
        "i64" => whole(i128::from(i) * 1_000_003 + i128::from(non_member)),
        "u64" => whole((1 << 63) + i128::from(i) + i128::from(non_member * ROWS)),
        "f32" => Held::Text((i as f32 / 4.0 + non_member as f32 / 8.0).to_string()),
        "f64" => Held::Text((i as f64 / 7.0 + non_member as f64 / 100.0).to_string()),
        "fixed" => Held::Bytes([non_member.to_be_bytes(), i.to_be_bytes()].concat()),
        "date" => whole(i128::from(i) + i128::from(non_member * ROWS)),
        "crowded" => whole(i128::from(i) * 3 + i128::from(non_member)),
        other => panic!("no column {other}"),
    }
}

#[derive(Debug)]
enum Held {
    Text(String),
    Bytes(Vec<u8>),
}

impl Item for Held {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::Text(text) => text.with_bytes(read),
            Self::Bytes(bytes) => bytes.with_bytes(read),
        }
    }

    fn with_value<R>(&self, read: impl FnOnce(mayhap::ItemValue<'_>) -> R) -> R {
        match self {
            Self::Text(text) => text.with_value(read),
            Self::Bytes(bytes) => bytes.with_value(read),
        }
    }
}

/// All filters of a column, in the order of row groups.
fn filters_of(file: &mut Filters, column: &str) -> Vec<BlockedBloom> {
    let listed: Vec<_> = file.filters().iter().filter(|filter| *filter.column == *column).cloned().collect();
    assert_eq!(listed.len(), GROUPS, "{column}");
    assert!(listed.iter().enumerate().all(|(index, filter)| filter.row_group == index), "{column}");
    listed.iter().map(|filter| file.read(filter).unwrap()).collect()
}

/// Checks that every member gets maybe in its own row group. Returns the number of false positives, and of queried non-members.
fn check_column(file: &mut Filters, column: &str) -> (u64, u64) {
    let filters = filters_of(file, column);
    let rows = file.row_groups()[0];
    for i in 0..rows * GROUPS as u64 {
        let (group, item) = ((i / rows) as usize, value(column, i, true));
        assert!(filters[group].may_contain(&item), "{column}, row {i}: {item:?}");
        if i % 500 == 0 {
            let answers = file.may_contain(column, &item).unwrap();
            let expected = filters
                .iter()
                .map(|filter| if filter.may_contain(&item) { InRowGroup::Mayhap } else { InRowGroup::No });
            assert_eq!(answers, expected.collect::<Vec<_>>(), "{column}, row {i}");
        }
    }
    let non_members: Vec<Held> = (0..ROWS).map(|i| value(column, i, false)).collect();
    let wrong = filters.iter().flat_map(|filter| non_members.iter().filter(|item| filter.may_contain(*item)));
    (wrong.count() as u64, ROWS * GROUPS as u64)
}

fn open(folder: &Path, name: &str, row_groups: &[u64]) -> Filters {
    let file = ParquetFilters::open(File::open(folder.join(name)).unwrap()).unwrap();
    assert_eq!(file.row_groups(), row_groups, "{name}");
    file
}

/// Checks `wrong` false positives among `asked` non-members of filters of this shape, each with this many items.
fn check_rate(name: &str, like: &BlockedBloom, items: u64, (wrong, asked): (u64, u64)) {
    let rate = like.shape().expected_fpr(items);
    let band = |rate| binomial_band(asked, rate, 1e-6);
    let promised = *band(rate * 0.98).start()..=*band(rate * 1.02).end();
    assert!(promised.contains(&wrong), "{name}: {wrong} of {asked} non-members, promised {promised:?}");
    println!("{name}: {wrong} of {asked} non-members answered maybe, promised {promised:?}");
}

const ENCODINGS: [(&str, ItemEncoding); 10] = [
    ("s", ItemEncoding::Utf8),
    ("b", ItemEncoding::Bytes),
    ("i32", ItemEncoding::I32Le),
    ("i64", ItemEncoding::I64Le),
    ("u64", ItemEncoding::U64Le),
    ("f32", ItemEncoding::F32Le),
    ("f64", ItemEncoding::F64Le),
    ("fixed", ItemEncoding::Bytes),
    ("date", ItemEncoding::I32Le),
    ("outer.inner", ItemEncoding::Utf8),
];

fn written(filter: &BlockedBloom) -> Vec<u8> {
    let mut blob = Vec::new();
    sbbf::write(filter, &mut blob).unwrap();
    blob
}

#[test]
fn pyarrow_writes_and_we_answer() {
    let folder = Folder(std::env::temp_dir().join(format!("mayhap-pyarrow-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let Some(said) = run(&folder.0) else { return };

    let mut file = open(&folder.0, "pyarrow.parquet", &[GROUP; GROUPS]);
    let folded = said["folded"].as_object().unwrap();
    assert_eq!(file.filters().len(), (ENCODINGS.len() + 1 + folded.len()) * GROUPS);
    let (mut wrong, mut asked) = (0, 0);
    for (column, encoding) in ENCODINGS {
        assert!(
            file.filters().iter().all(|filter| *filter.column != *column || filter.items == encoding),
            "{column}"
        );
        let (more, of) = check_column(&mut file, column);
        (wrong, asked) = (wrong + more, asked + of);
    }
    check_rate("pyarrow", &filters_of(&mut file, "s")[0], GROUP, (wrong, asked));
    let crowded = check_column(&mut file, "crowded");
    check_rate("pyarrow, crowded", &filters_of(&mut file, "crowded")[0], GROUP, crowded);
    assert_eq!(file.may_contain("plain", &1_i64).unwrap(), [InRowGroup::NoFilter; GROUPS]);

    // Rebuilt from the items, the filter is the same to the last byte.
    let mut built = sbbf::create(GROUP, 0.01, Sizing::Arrow, ItemEncoding::Utf8).unwrap();
    (GROUP..2 * GROUP).for_each(|i| {
        built.insert(&value("s", i, true));
    });
    assert_eq!(written(&filters_of(&mut file, "s")[1]), written(&built));
    assert_eq!(written(&sbbf::folded(&built, 0.01).unwrap()), written(&built), "it has the right size");
    // The same for filters that were created far too large and folded.
    for (column, fpp) in folded {
        let fpp = fpp.as_f64().unwrap();
        let mut large = sbbf::create(1_000_000, fpp, Sizing::Arrow, ItemEncoding::I64Le).unwrap();
        large.insert_batch(&(GROUP..2 * GROUP).collect::<Vec<_>>());
        let ours = sbbf::folded(&large, fpp).unwrap();
        assert!(ours.shape().blocks() < large.shape().blocks() / 32, "{column}");
        assert_eq!(written(&filters_of(&mut file, column)[1]), written(&ours), "{column}");
    }

    check_sizes(&folder.0, &said["sizes"]);
    println!("pyarrow {}", said["pyarrow"]);
    match &said["duckdb"] {
        Value::Null => {
            assert!(!required(), "the interpreter has no duckdb, and MAYHAP_REQUIRE_REAL is set");
            eprintln!("DuckDB was not run: the interpreter does not have it");
        }
        duckdb => check_duckdb(&folder.0, &mut file, duckdb),
    }
}

/// A column for every pair of parameters.
fn check_sizes(folder: &Path, pairs: &Value) {
    let file = open(folder, "sizes.parquet", &[ROWS]);
    let (mut checked, mut unlike_rust) = (0, 0);
    for (filter, pair) in file.filters().iter().zip(pairs.as_array().unwrap()) {
        assert_eq!(*filter.column, format!("c{checked}"));
        let (ndv, fpp) = (pair[0].as_u64().unwrap(), pair[1].as_f64().unwrap());
        let (_, bytes) = sbbf::size(ndv, fpp, Sizing::Arrow).unwrap();
        // 13 bytes of the header are fixed, and the length takes one more and as many as it needs.
        let length = u64::from(filter.length.unwrap());
        assert!((bytes + 15..=bytes + 18).contains(&length), "{ndv} {fpp}: {length}, computed {bytes}");
        unlike_rust += u32::from(sbbf::size(ndv, fpp, Sizing::Rust).unwrap().1 != bytes);
        checked += 1;
    }
    assert_eq!(checked, pairs.as_array().unwrap().len());
    assert!(unlike_rust >= 7, "{unlike_rust}: where the rules differ, Arrow's must apply");
    println!("sizes: {checked} equal to pyarrow's, {unlike_rust} of them different by Rust's rule");
}

fn check_duckdb(folder: &Path, pyarrows: &mut Filters, duckdb: &Value) {
    // Its answers from pyarrow's filters.
    let probes = duckdb["probes"].as_array().unwrap();
    let (mut excluded, mut mayhap) = (0, 0);
    for probe in probes {
        let (column, item) = (probe[0].as_str().unwrap(), probe[1].as_str().unwrap());
        let expected: Vec<InRowGroup> = probe[2]
            .as_array()
            .unwrap()
            .iter()
            .map(|excludes| if excludes.as_bool().unwrap() { InRowGroup::No } else { InRowGroup::Mayhap })
            .collect();
        assert_eq!(pyarrows.may_contain(column, item).unwrap(), expected, "{column} {item}");
        excluded += expected.iter().filter(|answer| **answer == InRowGroup::No).count();
        mayhap += expected.iter().filter(|answer| **answer == InRowGroup::Mayhap).count();
    }
    assert!(excluded > 300 && mayhap > 300, "{excluded} and {mayhap}: both answers must occur");
    println!("DuckDB {}: {} probes, {excluded} no, {mayhap} maybe", duckdb["version"], probes.len());

    // Its own file.
    let mut file = open(folder, "duckdb.parquet", &[DUCKDB_GROUP; GROUPS]);
    let (mut wrong, mut asked) = (0, 0);
    for column in ["s", "i64", "f64"] {
        let (more, of) = check_column(&mut file, column);
        (wrong, asked) = (wrong + more, asked + of);
        let (_, bytes) = sbbf::size(DUCKDB_GROUP, 0.01, Sizing::Rust).unwrap();
        assert_eq!(filters_of(&mut file, column)[0].shape().blocks() * 32, bytes, "{column}");
    }
    check_rate("DuckDB", &filters_of(&mut file, "s")[0], DUCKDB_GROUP, (wrong, asked));
}
