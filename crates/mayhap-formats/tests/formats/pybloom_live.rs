//! pybloom_live, 3.x and 4.x.

use std::io::Read as _;

use flate2::read::GzDecoder;
use mayhap::hash::named::NamedHash;
use mayhap::{Answers, BuildError, DecodeError, Filter, ItemEncoding, WideBloom};
use mayhap_formats::Resemblance;
use mayhap_formats::pybloom_live::{self, PybloomScalable, PybloomVersion};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{Given, bytes, float, items, json, number, probes, text};

const UTF8: ItemEncoding = ItemEncoding::Utf8;

/// The file of a case, decompressed if it is gzip.
fn file(case: &Value) -> Vec<u8> {
    let name = text(case, "file");
    let stored = bytes(&format!("python/{name}"));
    let mut file = Vec::new();
    match name.strip_suffix(".gz") {
        Some(_) => GzDecoder::new(&stored[..]).read_to_end(&mut file).map(drop).unwrap(),
        None => file = stored,
    }
    if let Some(expected) = case["sha256"].as_str() {
        let digest = NamedHash::Sha256.digest(&file).to_string();
        assert_eq!(digest, expected, "{name} is the file that Python wrote");
    }
    file
}

/// The two tables and the version that wrote each.
const TABLES: [(&str, PybloomVersion, PybloomVersion); 2] = [
    ("python/pybloom_live_3.1.0.json", PybloomVersion::V3, PybloomVersion::V4),
    ("python/pybloom_live_4.0.0.json", PybloomVersion::V4, PybloomVersion::V3),
];

fn check_case(case: &Value, version: PybloomVersion, other: PybloomVersion) {
    let name = text(case, "name");
    let file = file(case);
    let read = pybloom_live::read(&file, version, UTF8).unwrap();
    let (slices, slice_bits) = (number(case, "num_slices"), number(case, "bits_per_slice"));
    assert_eq!(u64::from(read.shape().probes()), slices, "{name}");
    assert_eq!(read.shape().bits(), slices * slice_bits, "{name}");
    assert_eq!(read.capacity(), number(case, "capacity"), "{name}");
    assert_eq!(read.target_fpr(), float(case, "error_rate"), "{name}");
    assert_eq!(read.inserted(), number(case, "count"), "{name}");

    // Rebuilt from the items: every bit and the count are equal.
    let mut built = read.try_clone().unwrap();
    built.clear();
    assert_eq!(built.insert_batch(&items(case)), number(case, "count"), "{name}");
    assert!(built.encode() == read.encode(), "{name}: the bits of the items are those of the file");

    let ours = WideBloom::decode(&read.encode()).unwrap();
    let Ok(Filter::WideBloom(any)) = Filter::decode(&read.encode()) else { panic!("{name}") };
    for filter in [&built, &read, &ours, &any] {
        assert!(items(case).iter().all(|item| filter.may_contain(item)), "{name}");
        for (probe, answer) in probes(case) {
            assert_eq!(filter.may_contain(&probe), answer, "{name}: {probe:?}");
        }
    }
    assert_eq!(pybloom_live::resembles(&file), Resemblance::Could, "{name}");
    assert_eq!(pybloom_live::resembles_scalable(&file), Resemblance::No, "{name}");
    assert_eq!(pybloom_live::resembles(&file[..file.len() - 1]), Resemblance::No, "{name}");

    // The version matters exactly where the small function is used, the encoding always.
    let confused = pybloom_live::read(&file, other, UTF8).unwrap();
    let all_there = items(case).iter().all(|item| confused.may_contain(item));
    assert_eq!(all_there, text(case, "hash").starts_with("sha"), "{name}: the version matters");
    let confused = pybloom_live::read(&file, version, ItemEncoding::Utf16Le).unwrap();
    assert!(items(case).iter().any(|item| !confused.may_contain(item)), "{name}: the encoding matters");
}

fn check_scalable(case: &Value, version: PybloomVersion) {
    let file = file(case);
    let read = pybloom_live::read_scalable(&file, version, UTF8).unwrap();
    assert_eq!(u64::from(read.growth), number(case, "mode"));
    assert_eq!(read.initial_capacity, number(case, "initial_capacity"));
    assert_eq!((read.error_rate, read.ratio), (float(case, "error_rate"), 0.9));
    let filters = case["filters"].as_array().unwrap();
    assert_eq!(read.layers.len(), filters.len());
    for (layer, filter) in read.layers.iter().zip(filters) {
        let [capacity, slices, slice_bits, count] = [0, 1, 2, 3].map(|i| filter[i].as_u64().unwrap());
        assert_eq!((layer.capacity(), layer.inserted()), (capacity, count));
        assert_eq!((u64::from(layer.shape().probes()), layer.shape().bits()), (slices, slices * slice_bits));
    }
    assert!(items(case).iter().all(|item| read.may_contain(item)));
    let probed = probes(case);
    for (probe, answer) in &probed {
        assert_eq!(read.may_contain(probe), *answer, "{probe:?}");
    }
    let mut answers = Answers::new();
    let asked: Vec<Given> = probed.iter().map(|(probe, _)| probe.clone()).collect();
    read.may_contain_batch(&asked, &mut answers);
    assert!(answers.iter().eq(probed.iter().map(|(_, answer)| *answer)));
    assert_eq!((read.inserted(), read.capacity()), (985, 2_100));
    let wrong = answers.maybe_count() as f64 / probed.len() as f64;
    assert!((read.expected_fpr() / wrong - 1.0).abs() < 0.25, "{} and {wrong}", read.expected_fpr());

    // Rebuilt: every item is inserted into the first filter that is not full, unless one of the filters contains it already.
    let mut layers: Vec<WideBloom> = read.layers.iter().map(|layer| layer.try_clone().unwrap()).collect();
    layers.iter_mut().for_each(WideBloom::clear);
    for item in items(case) {
        if !layers.iter().any(|layer| layer.may_contain(&item)) {
            layers.iter_mut().find(|layer| layer.inserted() < layer.capacity()).unwrap().insert(&item);
        }
    }
    for (built, layer) in layers.iter().zip(&read.layers) {
        assert!(built.encode() == layer.encode(), "the bits of the items are those of the file");
    }
    assert_eq!(pybloom_live::resembles_scalable(&file), Resemblance::Could);
    assert_eq!(pybloom_live::resembles(&file), Resemblance::No);
    let confused = pybloom_live::read_scalable(&file, PybloomVersion::V3, UTF8).unwrap();
    assert!(items(case).iter().any(|item| !confused.may_contain(item)), "the version matters");
}

#[test]
fn every_case_is_read_and_rebuilt() {
    for (table, version, other) in TABLES {
        let cases = json(table);
        let cases = cases["cases"].as_array().unwrap();
        let (scalable, plain): (Vec<&Value>, Vec<&Value>) =
            cases.iter().partition(|case| !case["filters"].is_null());
        plain.iter().for_each(|case| check_case(case, version, other));
        scalable.iter().for_each(|case| check_scalable(case, version));
        println!("{table}: {} cases, {} of them scalable", cases.len(), scalable.len());
    }
}

/// A file of these fields and as many zero bytes as `bytes`.
fn made(error_rate: f64, fields: [u64; 4], bytes: usize) -> Vec<u8> {
    let mut file = error_rate.to_le_bytes().to_vec();
    fields.iter().for_each(|field| file.extend_from_slice(&field.to_le_bytes()));
    file.resize(file.len() + bytes, 0);
    file
}

fn made_scalable(growth: i32, ratio: f64, layers: &[Vec<u8>]) -> Vec<u8> {
    let mut file = growth.to_le_bytes().to_vec();
    file.extend_from_slice(&ratio.to_le_bytes());
    file.extend_from_slice(&2_u64.to_le_bytes());
    file.extend_from_slice(&0.1_f64.to_le_bytes());
    file.extend_from_slice(&(layers.len() as u32).to_le_bytes());
    layers.iter().for_each(|layer| file.extend_from_slice(&(layer.len() as u64).to_le_bytes()));
    layers.iter().for_each(|layer| file.extend_from_slice(layer));
    file
}

#[test]
fn numbers_are_the_text_they_print_as() {
    let mut filter = pybloom_live::read(&made(0.01, [7, 28, 20, 0], 25), PybloomVersion::V4, UTF8).unwrap();
    filter.insert(&7_u32);
    assert!(filter.may_contain("7") && filter.may_contain(&7_i64) && !filter.may_contain(&8_i64));
}

#[test]
fn files_that_no_version_wrote_are_rejected() {
    let read = |file: &[u8]| pybloom_live::read(file, PybloomVersion::V4, UTF8).map(drop);
    assert_eq!(read(&made(0.5, [1, 3, 2, 0], 1)), Ok(()));
    for rate in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY] {
        let refusal = read(&made(rate, [1, 3, 2, 0], 1));
        assert!(
            matches!(refusal, Err(DecodeError::Unbuildable(BuildError::RateOutOfRange { .. }))),
            "{rate}"
        );
    }
    assert!(matches!(read(&made(0.5, [0, 3, 2, 0], 1)), Err(DecodeError::Unbuildable(_))));
    assert!(matches!(read(&made(0.5, [1, 0, 2, 0], 1)), Err(DecodeError::Unbuildable(_))));
    assert!(matches!(read(&made(0.5, [1, 3, 0, 0], 1)), Err(DecodeError::Unbuildable(_))));
    assert_eq!(read(&made(0.5, [255, 8, 2, 0], 255)), Ok(()));
    assert!(matches!(
        read(&made(0.5, [256, 8, 2, 0], 256)),
        Err(DecodeError::Unbuildable(BuildError::ProbesOutOfRange { got: 256, limit: 255 }))
    ));
    let no_number = DecodeError::BadField { field: "number of slices", got: 1 << 32 };
    assert_eq!(read(&made(0.5, [1 << 32, 1, 2, 0], 1)), Err(no_number));
    let overflow = DecodeError::BadField { field: "bits per slice", got: 1 << 63 };
    assert_eq!(read(&made(0.5, [2, 1 << 63, 2, 0], 1)), Err(overflow));
    // Slices past 2^31 bits: as a header only.
    assert_eq!(
        read(&made(0.5, [2, 1 << 33, 2, 0], 1)),
        Err(DecodeError::TooShort { need: 40 + (1 << 31), got: 41 })
    );
    assert_eq!(read(&made(0.5, [1, 3, 2, 0], 2)), Err(DecodeError::TrailingBytes { extra: 1 }));
    let mut stray = made(0.5, [1, 3, 2, 0], 1);
    stray[40] = 0b1000;
    assert_eq!(read(&stray), Err(DecodeError::StrayBit { bit: 3 }));
    // Python does not check the count; neither overflows here.
    let counted = pybloom_live::read(&made(0.5, [1, 3, 2, u64::MAX], 1), PybloomVersion::V3, UTF8).unwrap();
    assert_eq!(counted.inserted(), 1 << 62);
    assert!(counted.expected_fpr() <= 1.0);
}

#[test]
fn chains_are_checked_link_by_link() {
    let read = |file: &[u8]| pybloom_live::read_scalable(file, PybloomVersion::V4, UTF8);
    let empty = read(&made_scalable(2, 0.9, &[])).unwrap();
    assert!(empty.layers.is_empty() && !empty.may_contain("anything"));
    assert_eq!((empty.inserted(), empty.capacity(), empty.expected_fpr()), (0, 0, 0.0));
    let layer = made(0.5, [1, 3, 2, 0], 1);
    let file = made_scalable(2, 0.9, &[layer.clone(), layer.clone()]);
    assert_eq!(read(&file).unwrap().layers.len(), 2);
    assert_eq!(pybloom_live::resembles_scalable(&file), Resemblance::Could);
    for (growth, ratio, field) in
        [(0, 0.9, "growth"), (-1, 0.9, "growth"), (2, 0.0, "ratio"), (2, f64::NAN, "ratio")]
    {
        let refusal = read(&made_scalable(growth, ratio, &[])).unwrap_err();
        assert!(matches!(refusal, DecodeError::BadField { field: named, .. } if named == field));
    }
    let mut many = file.clone();
    many[28..32].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&many), Err(DecodeError::TooShort { .. })));
    assert_eq!(pybloom_live::resembles_scalable(&many), Resemblance::No);
    let mut long = file.clone();
    long[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(read(&long), Err(DecodeError::TooShort { need: u64::MAX, .. })));
    assert_eq!(pybloom_live::resembles_scalable(&long), Resemblance::No);
    let mut shifted = file;
    shifted[32] -= 1;
    shifted[40] += 1;
    assert!(read(&shifted).is_err(), "the length of each filter must match its fields");
}

fn use_chain(filter: &PybloomScalable) {
    let _ = (filter.may_contain("ada"), filter.inserted(), filter.memory_bytes());
}

#[test]
fn damaged_files_are_survived() {
    let mut file = made(0.01, [7, 28, 20, 3], 25);
    file[41..60].fill(0x5a);
    let fields = [(0, 8), (8, 8), (16, 8), (24, 8), (32, 8)];
    for version in [PybloomVersion::V3, PybloomVersion::V4] {
        hostile::survives("pybloom_live", &file, &fields, false, |bytes| {
            let mut filter = pybloom_live::read(bytes, version, UTF8)?;
            filter.insert("grace");
            assert!(filter.may_contain("grace"));
            let _ = (filter.fill(), filter.estimated_items());
            WideBloom::decode(&filter.encode()).map(drop)
        });
    }
    let chain = made_scalable(2, 0.9, &[made(0.5, [1, 3, 2, 2], 1), made(0.25, [2, 5, 4, 1], 2)]);
    let fields = [(0, 4), (4, 8), (12, 8), (20, 8), (28, 4), (32, 8), (40, 8), (48, 8), (56, 8), (64, 8)];
    hostile::survives("pybloom_live, scalable", &chain, &fields, false, |bytes| {
        use_chain(&pybloom_live::read_scalable(bytes, PybloomVersion::V4, UTF8)?);
        Ok(())
    });
}
