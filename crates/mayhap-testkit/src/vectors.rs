//! The filters of other programs in `crates/mayhap-formats/tests/vectors`, with what those programs answered; and the meaning of
//! the fields of a case. It needs the feature `vectors`.

use std::path::{Path, PathBuf};

use mayhap::{Item, ItemValue};
use serde_json::Value;

/// The path of a file below the folder of the vectors.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mayhap-formats/tests/vectors").join(name)
}

/// The bytes of a file.
#[must_use]
pub fn bytes(name: &str) -> Vec<u8> {
    let path = path(name);
    std::fs::read(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}

/// A file that is one JSON value.
#[must_use]
pub fn json(name: &str) -> Value {
    serde_json::from_slice(&bytes(name)).unwrap_or_else(|cause| panic!("{name}: {cause}"))
}

/// The rows of a file with one JSON value per line.
#[must_use]
pub fn json_lines(name: &str) -> Vec<Value> {
    let bytes = bytes(name);
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap_or_else(|cause| panic!("{name}: {cause}"))).collect()
}

/// The cases of a JSON file.
#[must_use]
pub fn cases(name: &str) -> Vec<Value> {
    let all = json(name);
    all["cases"].as_array().unwrap_or_else(|| panic!("{name} has no cases")).clone()
}

/// Bytes written as hex digits.
#[must_use]
pub fn unhex(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "{hex:?} has half a byte");
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16);
    (0..hex.len()).step_by(2).map(|at| byte(at).unwrap_or_else(|_| panic!("{hex:?} is not hex"))).collect()
}

/// A field that is text.
#[must_use]
pub fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_else(|| panic!("{field} is not text in {case}"))
}

/// A field that is a whole number. Numbers that a JSON reader may round are text.
#[must_use]
pub fn number(case: &Value, field: &str) -> u64 {
    let value = &case[field];
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.unwrap_or_else(|| panic!("{field} is not a number in {case}"))
}

/// A field that is a number. Numbers that a JSON reader may round are text.
#[must_use]
pub fn float(case: &Value, field: &str) -> f64 {
    let value = &case[field];
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    number.unwrap_or_else(|| panic!("{field} is not a number in {case}"))
}

/// The bytes of a case: `<name>_hex` inline, or the file `<name>_file` in `folder`.
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
    /// An integer of 32 bits.
    I32(i32),
    /// An integer of 64 bits.
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

/// The positions of the probes that were answered *maybe*, as listed in the case.
#[must_use]
pub fn offsets(case: &Value, field: &str) -> Vec<usize> {
    let list = case[field].as_array().unwrap_or_else(|| panic!("{field} is not a list"));
    let offset = |value: &Value| value.as_u64().and_then(|offset| usize::try_from(offset).ok());
    list.iter().map(|value| offset(value).unwrap_or_else(|| panic!("{value} is not an offset"))).collect()
}

/// The items of a case, listed or generated; `listed` converts an entry of the list.
pub fn items_as(case: &Value, listed: impl Fn(&Value) -> Given) -> Vec<Given> {
    match case["items"].as_array() {
        Some(items) => items.iter().map(|item| listed(entry(item))).collect(),
        None => generated(&case["items_generator"]),
    }
}

/// An item in a list is the entry itself, or stands in its field `item` beside what else is known of it.
fn entry(listed: &Value) -> &Value {
    if listed["item"].is_null() { listed } else { &listed["item"] }
}

/// Every probe of a case with the answer the program gave.
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

/// An entry that is text.
fn listed_text(item: &Value) -> Given {
    Given::Text(item.as_str().unwrap_or_else(|| panic!("{item} is not text")).to_owned())
}

/// The items of a case that are text.
#[must_use]
pub fn items(case: &Value) -> Vec<Given> {
    items_as(case, listed_text)
}

/// Every probe of a case, if they are text.
#[must_use]
pub fn probes(case: &Value) -> Vec<(Given, bool)> {
    probes_as(case, listed_text)
}

/// The items of a case that are text, as text.
#[must_use]
pub fn text_items(case: &Value) -> Vec<String> {
    items(case).into_iter().map(into_text).collect()
}

/// Every probe of a case as text, if they are text.
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

/// An item that Guava's cases list: numbers are decimal text and byte arrays hex.
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

/// An item that Redisson's cases list: text, or an object that names the type.
#[must_use]
pub fn redisson_item(item: &Value) -> Given {
    match (item.as_str(), item["int"].as_i64(), item["bytes_hex"].as_str()) {
        (Some(text), ..) => Given::Text(text.to_owned()),
        (_, Some(number), _) => Given::I32(number.try_into().expect("32 bits")),
        (.., Some(hex)) => Given::Bytes(unhex(hex)),
        _ => Given::I64(text(item, "long").parse().expect("an integer")),
    }
}
