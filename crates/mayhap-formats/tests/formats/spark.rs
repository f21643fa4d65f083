//! Spark's `writeTo`, both versions.

use mayhap::{Bloom, BuildError, DecodeError, ItemEncoding};
use mayhap_formats::spark::{self, SparkVersion};
use mayhap_formats::{Resemblance, WriteError, guava};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{Given, float, inline_or_file, items_as, json, number, probes_as, text, unhex};

fn encoding(case: &Value) -> ItemEncoding {
    match text(case, "item_kind") {
        "string" => ItemEncoding::Utf8,
        "long" => ItemEncoding::I64Le,
        "binary" => ItemEncoding::Bytes,
        other => panic!("items of kind {other} are not known"),
    }
}

/// Items listed one by one: numbers are decimal text and byte arrays hex.
fn listed(case: &Value, item: &str) -> Given {
    match encoding(case) {
        ItemEncoding::Bytes => Given::Bytes(unhex(item)),
        ItemEncoding::I64Le => Given::I64(item.parse().unwrap()),
        _ => Given::Text(item.to_owned()),
    }
}

fn items(case: &Value) -> Vec<Given> {
    items_as(case, |item| listed(case, item))
}

fn probes(case: &Value) -> Vec<(Given, bool)> {
    probes_as(case, |item| listed(case, item))
}

fn version(case: &Value) -> SparkVersion {
    match number(case, "version") {
        1 => SparkVersion::V1,
        _ => SparkVersion::V2 { seed: number(case, "seed").try_into().unwrap() },
    }
}

/// The filter of the case; a case without a rate has a number of bits.
fn created(case: &Value) -> Bloom {
    let (n, bits) = (number(case, "expected_items"), number(case, "num_bits_requested"));
    if case["fpp"].is_null() {
        return spark::create_with_bits(n, bits, version(case), encoding(case)).unwrap();
    }
    let fpp = float(case, "fpp");
    assert_eq!(spark::size(n, fpp).unwrap().0, bits);
    let by_bits = spark::create_with_bits(n, bits, version(case), encoding(case)).unwrap();
    let by_rate = spark::create(n, fpp, version(case), encoding(case)).unwrap();
    assert_eq!(by_bits.shape().to_string(), by_rate.shape().to_string());
    by_rate
}

fn written(filter: &Bloom) -> Vec<u8> {
    let mut stream = Vec::new();
    spark::write(filter, &mut stream).unwrap();
    stream
}

fn check_case(case: &Value) {
    let name = text(case, "name");
    let stream = inline_or_file(case, "serialized", "spark");
    let (items, probed) = (items(case), probes(case));

    // Built from the items: same parameters, same bytes.
    let mut built = created(case);
    assert_eq!(built.shape().bits(), number(case, "bit_size"), "{name}");
    assert_eq!(u64::from(built.shape().probes()), number(case, "num_hash_functions"), "{name}");
    let mut one_by_one = created(case);
    let changed = items.iter().filter(|item| one_by_one.insert(*item)).count() as u64;
    assert_eq!(built.insert_batch(&items), changed, "{name}");
    assert_eq!((written(&built), written(&one_by_one)), (stream.clone(), stream.clone()), "{name}");

    // Read from the bytes: the same answers, the same bytes again, through our own format as well.
    let read = spark::read(&stream, encoding(case)).unwrap();
    let ours = Bloom::decode(&read.encode()).unwrap();
    assert_eq!(ours.scheme(), read.scheme(), "{name}: our own file remembers seed and encoding");
    for filter in [&built, &read, &ours] {
        assert_eq!(filter.ones(), number(case, "cardinality"), "{name}");
        let expected_fpp = filter.fill().powf(f64::from(filter.shape().probes()));
        assert!((expected_fpp - float(case, "expected_fpp")).abs() < 1e-15, "{name}: {expected_fpp}");
        assert!(items.iter().all(|item| filter.may_contain(item)), "{name}");
        for (probe, answer) in &probed {
            assert_eq!(filter.may_contain(probe), *answer, "{name}: {probe:?}");
        }
        assert_eq!(written(filter), stream, "{name}");
    }
    assert_eq!(spark::resembles(&stream), Resemblance::Could, "{name}");
    if !items.is_empty() {
        check_spoiled(case, &stream, &items);
    }
}

/// The same bits under another version, seed or encoding forget their own items: the tests above could have failed.
fn check_spoiled(case: &Value, stream: &[u8], items: &[Given]) {
    let name = text(case, "name");
    let mut twins = vec![];
    if version(case) == SparkVersion::V1 {
        let as_v2 = [&[0, 0, 0, 2], &stream[4..8], &[0; 4], &stream[8..]].concat();
        twins.push(spark::read(&as_v2, encoding(case)).unwrap());
    } else {
        let as_v1 = [&[0, 0, 0, 1], &stream[4..8], &stream[12..]].concat();
        twins.push(spark::read(&as_v1, encoding(case)).unwrap());
        let mut other_seed = stream.to_vec();
        other_seed[11] ^= 1;
        twins.push(spark::read(&other_seed, encoding(case)).unwrap());
    }
    if encoding(case) != ItemEncoding::Bytes {
        let other = match encoding(case) {
            ItemEncoding::Utf8 => ItemEncoding::Utf16Le,
            _ => ItemEncoding::I32Le,
        };
        twins.push(spark::read(stream, other).unwrap());
    }
    for twin in twins {
        assert!(items.iter().any(|item| !twin.may_contain(item)), "{name}: {:?}", twin.scheme());
    }
}

#[test]
fn every_case_is_rebuilt_read_and_written() {
    let cases = json("spark/cases.json");
    let cases = cases["cases"].as_array().unwrap();
    cases.iter().for_each(check_case);
    assert_eq!(cases.len(), 18);
    println!("spark/cases.json: {} cases", cases.len());
}

#[test]
fn numbers_of_any_width_are_one_item() {
    let mut filter = spark::create(10, 0.01, SparkVersion::V1, ItemEncoding::I64Le).unwrap();
    filter.insert(&-7_i8);
    assert!(filter.may_contain(&-7_i16) && filter.may_contain(&-7_i64) && filter.may_contain("-7"));
    assert!(filter.may_contain(&(-7_i64).to_le_bytes()), "bytes are taken as they are");
    assert!(!filter.may_contain(&7_i8));
}

#[test]
fn versions_and_seeds_do_not_mix() {
    let filter = |version| spark::create(10, 0.01, version, ItemEncoding::Utf8).unwrap();
    let (v1, v2) = (filter(SparkVersion::V1), filter(SparkVersion::V2 { seed: 0 }));
    let seeded = filter(SparkVersion::V2 { seed: -42 });
    assert!(filter(SparkVersion::V1).union(&v1).is_ok());
    let refusal = filter(SparkVersion::V1).union(&v2).unwrap_err();
    assert!(
        refusal.to_string().contains("different placement cannot be merged: Guava32 and Spark2"),
        "{refusal}"
    );
    assert!(filter(SparkVersion::V2 { seed: 0 }).union(&seeded).is_err());
    assert!(filter(SparkVersion::V2 { seed: -42 }).union(&seeded).is_ok());
    let stream = written(&seeded);
    assert_eq!(&stream[8..12], &(-42_i32).to_be_bytes());
    assert_eq!(spark::read(&stream, ItemEncoding::Utf8).unwrap().scheme(), seeded.scheme());
}

#[test]
fn numbers_that_spark_rejects_are_rejected() {
    let create = |n, fpp| spark::create(n, fpp, SparkVersion::V1, ItemEncoding::Utf8);
    assert!(create(0, 0.01).is_err(), "no items");
    assert!(create(1, 0.9).is_err(), "no bits");
    assert!(create(10, 0.0).is_err() && create(10, 1.0).is_err() && create(10, f64::NAN).is_err());
    assert!(matches!(
        create(1 << 40, 1e-9),
        Err(BuildError::BitsOutOfRange { limit, .. }) if limit == 64 * u64::from(i32::MAX.unsigned_abs())
    ));
    let with_bits = |n, bits| spark::create_with_bits(n, bits, SparkVersion::V1, ItemEncoding::Utf8);
    assert!(with_bits(0, 64).is_err() && with_bits(1, 0).is_err() && with_bits(10, u64::MAX).is_err());
    assert_eq!(with_bits(1, 367).unwrap().shape().probes(), 254);
    assert!(matches!(with_bits(1, 640), Err(BuildError::ProbesOutOfRange { got: 444, limit: 255 })));

    let stream = |fields: &[u32]| fields.iter().flat_map(|field| field.to_be_bytes()).collect::<Vec<_>>();
    for (bytes, cause) in [
        (stream(&[]), DecodeError::TooShort { need: 4, got: 0 }),
        (stream(&[0, 1, 1]), DecodeError::BadField { field: "version", got: 0 }),
        (stream(&[3, 1, 1]), DecodeError::BadField { field: "version", got: 3 }),
        (stream(&[1, 1, 1 << 31]), DecodeError::BadField { field: "number of words", got: 1 << 31 }),
        (stream(&[1, 1, 0x7fff_ffff]), DecodeError::TooShort { need: 17_179_869_188, got: 12 }),
        (stream(&[2, 1, 7, 1, 0, 0, 0]), DecodeError::TrailingBytes { extra: 4 }),
    ] {
        assert_eq!(spark::read(&bytes, ItemEncoding::Utf8).unwrap_err(), cause);
        assert_eq!(spark::resembles(&bytes), Resemblance::No);
    }
    assert!(spark::read(&stream(&[1, 0, 1, 0, 0]), ItemEncoding::Utf8).is_err(), "k = 0");
    assert!(spark::read(&stream(&[1, 256, 1, 0, 0]), ItemEncoding::Utf8).is_err(), "k = 256");
    assert!(spark::read(&stream(&[1, 1, 0]), ItemEncoding::Utf8).is_err(), "no words");

    for filter in [
        Bloom::for_capacity(10, 0.01, 0).unwrap(),
        guava::create(10, 0.01, guava::Rounding::Until33, guava::Strategy::Mitz32, ItemEncoding::Utf8)
            .unwrap(),
    ] {
        let refusal = spark::write(&filter, &mut Vec::new()).unwrap_err();
        assert!(matches!(refusal, WriteError::OtherPlacement { .. }));
        assert!(refusal.to_string().contains("cannot be converted without its items"), "{refusal}");
    }
}

#[test]
fn damaged_streams_are_survived() {
    for (name, version, fields) in [
        ("spark version 1", SparkVersion::V1, &[(0, 4), (4, 4), (8, 4)][..]),
        ("spark version 2", SparkVersion::V2 { seed: 7 }, &[(0, 4), (4, 4), (8, 4), (12, 4)]),
    ] {
        let mut filter = spark::create(13, 1e-4, version, ItemEncoding::Utf8).unwrap();
        filter.insert("ada");
        hostile::survives(name, &written(&filter), fields, false, |bytes| {
            let mut filter = spark::read(bytes, ItemEncoding::Utf8)?;
            filter.insert("grace");
            assert!(filter.may_contain("grace"));
            let _ = (filter.expected_fpr(), written(&filter), filter.encode());
            Ok(())
        });
    }
}
