//! Reads the test vectors in `crates/mayhap-formats/tests/vectors`: filters of other programs, with the answers of those programs.
//! It needs the feature `vectors`.

use std::path::{Path, PathBuf};

use mayhap::{Item, ItemValue};
use serde_json::Value;

/// Returns the path of a file in the folder of the vectors.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mayhap-formats/tests/vectors").join(name)
}

/// Returns the bytes of a file.
#[must_use]
pub fn bytes(name: &str) -> Vec<u8> {
    let path = path(name);
    std::fs::read(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}

/// Reads a file with one JSON value.
#[must_use]
pub fn json(name: &str) -> Value {
    serde_json::from_slice(&bytes(name)).unwrap_or_else(|cause| panic!("{name}: {cause}"))
}

/// Reads a file with one JSON value per line.
#[must_use]
pub fn json_lines(name: &str) -> Vec<Value> {
    let bytes = bytes(name);
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap_or_else(|cause| panic!("{name}: {cause}"))).collect()
}

/// Returns the cases of a JSON file.
#[must_use]
pub fn cases(name: &str) -> Vec<Value> {
    let all = json(name);
    all["cases"].as_array().unwrap_or_else(|| panic!("{name} has no cases")).clone()
}

/// Decodes hex digits.
#[must_use]
pub fn unhex(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "{hex:?} has half a byte");
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16);
    (0..hex.len()).step_by(2).map(|at| byte(at).unwrap_or_else(|_| panic!("{hex:?} is not hex"))).collect()
}

/// Returns a text field.
#[must_use]
pub fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_else(|| panic!("{field} is not text in {case}"))
}

/// Returns a field with a whole number. Numbers that a JSON reader may round are written as text.
#[must_use]
pub fn number(case: &Value, field: &str) -> u64 {
    let value = &case[field];
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.unwrap_or_else(|| panic!("{field} is not a number in {case}"))
}

/// Returns a field with a number. Numbers that a JSON reader may round are written as text.
#[must_use]
pub fn float(case: &Value, field: &str) -> f64 {
    let value = &case[field];
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    number.unwrap_or_else(|| panic!("{field} is not a number in {case}"))
}

/// Returns bytes of a case: the inline field `<name>_hex`, or the file named by `<name>_file` in `folder`.
#[must_use]
pub fn inline_or_file(case: &Value, name: &str, folder: &str) -> Vec<u8> {
    match case[format!("{name}_hex")].as_str() {
        Some(hex) => unhex(hex),
        None => bytes(&format!("{folder}/{}", text(case, &format!("{name}_file")))),
    }
}

/// An item of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A 32-bit integer.
    I32(i32),
    /// A 64-bit integer.
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

/// Returns the items of a generator: `prefix` and a number, or consecutive numbers.
#[must_use]
pub fn generated(generator: &Value) -> Vec<Given> {
    let end = number(generator, "to_exclusive");
    if let Some(prefix) = generator["prefix"].as_str() {
        return (number(generator, "from")..end).map(|i| Given::Text(format!("{prefix}{i}"))).collect();
    }
    let whole = |field: &str| generator[field].as_i64().or_else(|| generator[field].as_str()?.parse().ok());
    let end = i64::try_from(end).expect("the end is not huge");
    if let Some(from) = whole("int_from") {
        return (from..end).map(|i| Given::I32(i.try_into().expect("32 bits"))).collect();
    }
    let from = whole("long_from").unwrap_or_else(|| panic!("unknown generator {generator}"));
    (from..end).map(Given::I64).collect()
}

/// Returns the positions of the probes with the answer *maybe*, as listed in the case.
#[must_use]
pub fn offsets(case: &Value, field: &str) -> Vec<usize> {
    let list = case[field].as_array().unwrap_or_else(|| panic!("{field} is not a list"));
    let offset = |value: &Value| value.as_u64().and_then(|offset| usize::try_from(offset).ok());
    list.iter().map(|value| offset(value).unwrap_or_else(|| panic!("{value} is not an offset"))).collect()
}

/// Returns the items of a case, listed or generated. `listed` converts an entry of the list.
pub fn items_as(case: &Value, listed: impl Fn(&Value) -> Given) -> Vec<Given> {
    match case["items"].as_array() {
        Some(items) => items.iter().map(|item| listed(entry(item))).collect(),
        None => generated(&case["items_generator"]),
    }
}

/// Returns the item of a list entry: its field `item` if it has one, otherwise the entry itself.
fn entry(listed: &Value) -> &Value {
    if listed["item"].is_null() { listed } else { &listed["item"] }
}

/// Returns every probe of a case with the other program's answer.
pub fn probes_as(case: &Value, listed: impl Fn(&Value) -> Given) -> Vec<(Given, bool)> {
    if let Some(probes) = case["probes"].as_array() {
        let answer = |probe: &Value| probe["contains"].as_bool().or(probe["might_contain"].as_bool());
        let answer = |probe| answer(probe).unwrap_or_else(|| panic!("{probe} has no answer"));
        return probes.iter().map(|probe| (listed(entry(probe)), answer(probe))).collect();
    }
    let wrong = offsets(case, "probe_false_positive_offsets");
    if !case["probe_false_positives"].is_null() {
        assert_eq!(wrong.len() as u64, number(case, "probe_false_positives"), "the case contradicts itself");
    }
    let probes = generated(&case["probes_generator"]);
    probes.into_iter().enumerate().map(|(i, probe)| (probe, wrong.contains(&i))).collect()
}

/// Converts a text entry.
fn listed_text(item: &Value) -> Given {
    Given::Text(item.as_str().unwrap_or_else(|| panic!("{item} is not text")).to_owned())
}

/// Returns the items of a case with text items.
#[must_use]
pub fn items(case: &Value) -> Vec<Given> {
    items_as(case, listed_text)
}

/// Returns every probe of a case with text items.
#[must_use]
pub fn probes(case: &Value) -> Vec<(Given, bool)> {
    probes_as(case, listed_text)
}

/// Returns the items of a case with text items, as strings.
#[must_use]
pub fn text_items(case: &Value) -> Vec<String> {
    items(case).into_iter().map(into_text).collect()
}

/// Returns every probe of a case with text items, as strings.
#[must_use]
pub fn text_probes(case: &Value) -> Vec<(String, bool)> {
    probes(case).into_iter().map(|(probe, answer)| (into_text(probe), answer)).collect()
}

fn into_text(given: Given) -> String {
    match given {
        Given::Text(text) => text,
        other => panic!("{other:?} is not text"),
    }
}

/// Converts an item of Guava's cases: numbers are written in decimal and byte arrays in hex.
#[must_use]
pub fn guava_item(case: &Value, item: &Value) -> Given {
    let item = item.as_str().unwrap_or_else(|| panic!("{item} is not text"));
    match text(case, "funnel") {
        "byteArrayFunnel" => Given::Bytes(unhex(item)),
        "integerFunnel" => Given::I32(item.parse().expect("an integer")),
        "longFunnel" => Given::I64(item.parse().expect("an integer")),
        _ => Given::Text(item.to_owned()),
    }
}

/// Converts an item of Redisson's cases: text, or an object that names the type.
#[must_use]
pub fn redisson_item(item: &Value) -> Given {
    match (item.as_str(), item["int"].as_i64(), item["bytes_hex"].as_str()) {
        (Some(text), ..) => Given::Text(text.to_owned()),
        (_, Some(number), _) => Given::I32(number.try_into().expect("32 bits")),
        (.., Some(hex)) => Given::Bytes(unhex(hex)),
        _ => Given::I64(text(item, "long").parse().expect("an integer")),
    }
}
