//! Results of the real programs, from the library's `tests/vectors`.

use std::fs;
use std::path::{Path, PathBuf};

use mayhap::{Item, ItemValue};
use serde_json::Value;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mayhap-formats/tests/vectors").join(name)
}

fn read(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap_or_else(|cause| panic!("{name}: {cause}"))
}

pub(crate) fn cases(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_slice(&read(name)).unwrap();
    all["cases"].as_array().unwrap().clone()
}

pub(crate) fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

pub(crate) fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_else(|| panic!("{field} is not a text in {case}"))
}

pub(crate) fn number(case: &Value, field: &str) -> u64 {
    let value = &case[field];
    value
        .as_u64()
        .or_else(|| value.as_str()?.parse().ok())
        .unwrap_or_else(|| panic!("{field} is not a number"))
}

pub(crate) fn float(case: &Value, field: &str) -> f64 {
    text(case, field).parse().unwrap()
}

/// `<name>_hex` in the case, or the contents of the file in `<name>_file`.
pub(crate) fn bytes(case: &Value, name: &str, folder: &str) -> Vec<u8> {
    match case[format!("{name}_hex")].as_str() {
        Some(hex) => unhex(hex),
        None => read(&format!("{folder}/{}", text(case, &format!("{name}_file")))),
    }
}

/// An item of a case.
#[derive(Clone, Debug)]
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

/// `prefix` and a number, or consecutive numbers.
fn generated(generator: &Value) -> Vec<Given> {
    let end = number(generator, "to_exclusive") as i64;
    if let Some(prefix) = generator["prefix"].as_str() {
        let from = number(generator, "from") as i64;
        return (from..end).map(|i| Given::Text(format!("{prefix}{i}"))).collect();
    }
    let whole = |field: &str| generator[field].as_i64().or_else(|| generator[field].as_str()?.parse().ok());
    match whole("int_from") {
        Some(from) => (from..end).map(|i| Given::I32(i.try_into().unwrap())).collect(),
        None => (whole("long_from").unwrap()..end).map(Given::I64).collect(),
    }
}

/// The items of a case. `listed` converts an entry of its list.
pub(crate) fn items(case: &Value, listed: impl Fn(&Value) -> Given) -> Vec<Given> {
    match case["items"].as_array() {
        Some(items) => items.iter().map(listed).collect(),
        None => generated(&case["items_generator"]),
    }
}

/// Every probe of a case, with the answer of the real program.
pub(crate) fn probes(case: &Value, listed: impl Fn(&Value) -> Given) -> Vec<(Given, bool)> {
    if let Some(probes) = case["probes"].as_array() {
        let answer =
            |probe: &Value| probe["contains"].as_bool().or(probe["might_contain"].as_bool()).unwrap();
        return probes.iter().map(|probe| (listed(&probe["item"]), answer(probe))).collect();
    }
    let wrong = case["probe_false_positive_offsets"].as_array().unwrap();
    let is_wrong = |index: usize| wrong.iter().any(|offset| offset.as_u64() == Some(index as u64));
    let probes = generated(&case["probes_generator"]);
    probes.into_iter().enumerate().map(|(index, probe)| (probe, is_wrong(index))).collect()
}
