//! The cases in `tests/vectors`, and the meaning of their fields.

use std::path::{Path, PathBuf};

use mayhap::{Item, ItemValue};
use serde_json::Value;

/// A file below `tests/vectors`.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name)
}

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let path = path(name);
    std::fs::read(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}

pub(crate) fn json(name: &str) -> Value {
    serde_json::from_slice(&bytes(name)).unwrap_or_else(|cause| panic!("{name}: {cause}"))
}

/// The rows of a file with one JSON value per line.
pub(crate) fn json_lines(name: &str) -> Vec<Value> {
    let text = String::from_utf8(bytes(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn unhex(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "{hex:?} has half a byte");
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

pub(crate) fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_else(|| panic!("{field} is not text in {case}"))
}

pub(crate) fn number(case: &Value, field: &str) -> u64 {
    let value = &case[field];
    value
        .as_u64()
        .or_else(|| value.as_str()?.parse().ok())
        .unwrap_or_else(|| panic!("{field} is not a number"))
}

/// Numbers that no reader may round are text.
pub(crate) fn float(case: &Value, field: &str) -> f64 {
    let value = &case[field];
    value
        .as_f64()
        .or_else(|| value.as_str()?.parse().ok())
        .unwrap_or_else(|| panic!("{field} is not a number"))
}

/// The bytes of a case: `<name>_hex` inline, or the file `<name>_file` in `folder`.
pub(crate) fn inline_or_file(case: &Value, name: &str, folder: &str) -> Vec<u8> {
    match case[format!("{name}_hex")].as_str() {
        Some(hex) => unhex(hex),
        None => bytes(&format!("{folder}/{}", text(case, &format!("{name}_file")))),
    }
}

/// An item of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Text(String),
    Bytes(Vec<u8>),
    I32(i32),
    I64(i64),
}

impl Item for Given {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::Text(text) => text.with_bytes(read),
            Self::Bytes(bytes) => bytes.with_bytes(read),
            Self::I32(number) => number.with_bytes(read),
            Self::I64(number) => number.with_bytes(read),
        }
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        match self {
            Self::Text(text) => text.with_value(read),
            Self::Bytes(bytes) => bytes.with_value(read),
            Self::I32(number) => number.with_value(read),
            Self::I64(number) => number.with_value(read),
        }
    }
}

/// The items of a generator: `prefix` and a number, or consecutive numbers.
pub(crate) fn generated(generator: &Value) -> Vec<Given> {
    let end = number(generator, "to_exclusive");
    let whole = |field: &str| generator[field].as_i64().or_else(|| generator[field].as_str()?.parse().ok());
    if let Some(prefix) = generator["prefix"].as_str() {
        return (number(generator, "from")..end).map(|i| Given::Text(format!("{prefix}{i}"))).collect();
    }
    if let Some(from) = whole("int_from") {
        return (from..end as i64).map(|i| Given::I32(i.try_into().unwrap())).collect();
    }
    let from = whole("long_from").unwrap_or_else(|| panic!("unknown generator {generator}"));
    (from..end as i64).map(Given::I64).collect()
}

/// The probes that were answered *maybe*, as listed in the case.
pub(crate) fn offsets(case: &Value, field: &str) -> Vec<usize> {
    let list = case[field].as_array().unwrap_or_else(|| panic!("{field} is not a list"));
    list.iter().map(|offset| offset.as_u64().unwrap() as usize).collect()
}

/// The items of a case, listed or generated; `listed` converts an item of the list.
pub(crate) fn items_as(case: &Value, listed: impl Fn(&str) -> Given) -> Vec<Given> {
    match case["items"].as_array() {
        Some(items) => items.iter().map(|item| listed(item.as_str().unwrap())).collect(),
        None => generated(&case["items_generator"]),
    }
}

/// The items of a case that are text.
pub(crate) fn items(case: &Value) -> Vec<Given> {
    items_as(case, |item| Given::Text(item.to_owned()))
}

/// Every probe of a case with the answer the program gave.
pub(crate) fn probes_as(case: &Value, listed: impl Fn(&str) -> Given) -> Vec<(Given, bool)> {
    if let Some(probes) = case["probes"].as_array() {
        let answer =
            |probe: &Value| probe["contains"].as_bool().or(probe["might_contain"].as_bool()).unwrap();
        return probes.iter().map(|probe| (listed(text(probe, "item")), answer(probe))).collect();
    }
    let wrong = offsets(case, "probe_false_positive_offsets");
    if !case["probe_false_positives"].is_null() {
        assert_eq!(wrong.len() as u64, number(case, "probe_false_positives"), "the case contradicts itself");
    }
    let probes = generated(&case["probes_generator"]);
    probes.into_iter().enumerate().map(|(i, probe)| (probe, wrong.contains(&i))).collect()
}

/// The same for probes that are text.
pub(crate) fn probes(case: &Value) -> Vec<(Given, bool)> {
    probes_as(case, |item| Given::Text(item.to_owned()))
}

/// Every file is used: a case or a test names it.
#[test]
fn every_file_is_read_by_somebody() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut sources = String::new();
    for folder in [tests.clone(), tests.join("formats")] {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.extension().is_some_and(|extension| extension == "rs") {
                sources += &std::fs::read_to_string(entry).unwrap();
            }
        }
    }
    sources += &std::fs::read_to_string(tests.join("../src/gcs/rice.rs")).unwrap();
    let mut counted = 0;
    for folder in std::fs::read_dir(path("")).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        let names = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().to_owned();
        let tables: String = files
            .iter()
            .filter(|file| names(file).contains(".json"))
            .map(|file| std::fs::read_to_string(file).unwrap())
            .collect();
        let folder_name = names(&folder);
        assert!(sources.contains(&format!("{folder_name}/")), "no test reads the folder {folder_name}");
        for name in files.iter().map(names).filter(|name| name != "README.md") {
            let stem = name.trim_end_matches(".json").trim_end_matches("_scandump");
            assert!(
                sources.contains(&name) || tables.contains(&name) || sources.contains(stem),
                "no test reads {folder_name}/{name}"
            );
            counted += 1;
        }
    }
    println!("{counted} files, each read by a test");
}
