//! Guava's `writeTo`.

use mayhap::{Bloom, BuildError, DecodeError, ItemEncoding};
use mayhap_formats::guava::{self, Rounding, Strategy};
use mayhap_formats::{Resemblance, WriteError};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{
    Given, float, inline_or_file, items_as, json, json_lines, number, probes_as, text, unhex,
};

fn encoding(case: &Value) -> ItemEncoding {
    match text(case, "funnel") {
        "stringFunnel(UTF-8)" => ItemEncoding::Utf8,
        "stringFunnel(UTF-16LE)" | "unencodedCharsFunnel" => ItemEncoding::Utf16Le,
        "integerFunnel" => ItemEncoding::I32Le,
        "longFunnel" => ItemEncoding::I64Le,
        "byteArrayFunnel" => ItemEncoding::Bytes,
        other => panic!("funnel {other} is not known"),
    }
}

/// Items listed one by one: numbers are decimal text and byte arrays hex.
fn listed(case: &Value, item: &str) -> Given {
    match text(case, "funnel") {
        "byteArrayFunnel" => Given::Bytes(unhex(item)),
        "integerFunnel" => Given::I32(item.parse().unwrap()),
        "longFunnel" => Given::I64(item.parse().unwrap()),
        _ => Given::Text(item.to_owned()),
    }
}

fn items(case: &Value) -> Vec<Given> {
    items_as(case, |item| listed(case, item))
}

fn probes(case: &Value) -> Vec<(Given, bool)> {
    probes_as(case, |item| listed(case, item))
}

fn written(filter: &Bloom) -> Vec<u8> {
    let mut stream = Vec::new();
    guava::write(filter, &mut stream).unwrap();
    stream
}

fn check_case(case: &Value, rounding: Rounding) {
    let name = text(case, "name");
    let stream = inline_or_file(case, "serialized", "guava");
    let strategy = match number(case, "strategy_ordinal") {
        0 => Strategy::Mitz32,
        _ => Strategy::Mitz64,
    };
    let (n, fpp) = (number(case, "expected_insertions"), float(case, "fpp"));
    let probed = probes(case);

    // Built from the items: same parameters, same bytes, same answers.
    let mut built = guava::create(n, fpp, rounding, strategy, encoding(case)).unwrap();
    let (requested, k) = guava::size(n, fpp, rounding).unwrap();
    assert_eq!(requested, number(case, "num_bits_requested"), "{name}");
    assert_eq!(u64::from(k), number(case, "num_hash_functions"), "{name}");
    let changed = built.insert_batch(&items(case));
    assert_eq!(changed, number(case, "puts_that_changed_bits"), "{name}");
    assert_eq!(built.shape().bits(), number(case, "bit_size"), "{name}");
    assert_eq!(built.ones(), number(case, "bit_count"), "{name}");
    assert_eq!(written(&built), stream, "{name}");
    assert_eq!(built.estimated_items(), number(case, "approximate_element_count"), "{name}");

    // Read from the bytes: the same answers, the same bytes again, through our own format as well.
    let read = guava::read(&stream, encoding(case)).unwrap();
    let ours = Bloom::decode(&read.encode()).unwrap();
    assert_eq!(ours.scheme(), read.scheme(), "{name}: our own file remembers the encoding");
    for filter in [&built, &read, &ours] {
        assert!(items(case).iter().all(|item| filter.may_contain(item)), "{name}");
        for (probe, answer) in &probed {
            assert_eq!(filter.may_contain(probe), *answer, "{name}: {probe:?}");
        }
        assert_eq!(written(filter), stream, "{name}");
    }
    assert_eq!(guava::resembles(&stream), Resemblance::Could, "{name}");
    let other = match encoding(case) {
        ItemEncoding::Utf8 if items(case).len() > 5 => ItemEncoding::Utf16Le,
        _ => return,
    };
    let confused = guava::read(&stream, other).unwrap();
    assert!(items(case).iter().any(|item| !confused.may_contain(item)), "{name}: the encoding matters");
}

#[test]
fn every_case_is_rebuilt_read_and_written() {
    for (file, rounding) in [("cases.json", Rounding::Until33), ("cases_k33.json", Rounding::Since33)] {
        let cases = json(&format!("guava/{file}"));
        let cases = cases["cases"].as_array().unwrap();
        cases.iter().for_each(|case| check_case(case, rounding));
        println!("guava/{file}: {} cases", cases.len());
    }
}

#[test]
fn the_tables_of_parameters_are_reproduced() {
    for (file, rounding) in [("params.jsonl", Rounding::Until33), ("params_k33.jsonl", Rounding::Since33)] {
        let rows = json_lines(&format!("guava/{file}"));
        for row in &rows {
            let (n, fpp) = (number(row, "n"), float(row, "fpp"));
            match guava::size(n, fpp, rounding) {
                Ok((bits, k)) => {
                    assert_eq!(bits, number(row, "bits"), "{row}");
                    assert_eq!(bits.next_multiple_of(64), number(row, "bit_size"), "{row}");
                    assert_eq!(u64::from(k), number(row, "k"), "{row}");
                }
                // Guava rejects a filter of no bits, too.
                Err(BuildError::BitsOutOfRange { got: 0, .. }) => assert_eq!(number(row, "bits"), 0, "{row}"),
                Err(cause) => panic!("{row}: {cause}"),
            }
        }
        assert_eq!(rows.len(), 600);
        println!("guava/{file}: {} cells", rows.len());
    }
    let old = |row: &Value| guava::size(number(row, "n"), float(row, "fpp"), Rounding::Until33).ok();
    let new = |row: &Value| guava::size(number(row, "n"), float(row, "fpp"), Rounding::Since33).ok();
    let differing = json_lines("guava/params.jsonl").iter().filter(|row| old(row) != new(row)).count();
    assert_eq!(differing, 14, "the two rules are not the same");
}

#[test]
fn funnels_make_the_bytes_that_are_hashed() {
    let rows = json_lines("guava/murmur3_128_of_items.jsonl");
    let hash = |encoding, item: &Given| {
        let filter = guava::create(10, 0.01, Rounding::Since33, Strategy::Mitz64, encoding).unwrap();
        let hash = filter.hash(item).to_u128();
        let words = [hash as u64, (hash >> 64) as u64];
        words.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    for row in &rows {
        if let Some(number) = row["int"].as_i64() {
            let (int, long) = (Given::I32(number.try_into().unwrap()), Given::I64(number));
            assert_eq!(hash(ItemEncoding::I32Le, &int), text(row, "murmur3_128"));
            assert_eq!(hash(ItemEncoding::I64Le, &long), text(row, "as_long_murmur3_128"));
            assert_eq!(
                hash(ItemEncoding::I64Le, &int),
                text(row, "as_long_murmur3_128"),
                "a number is widened"
            );
        } else if let Some(item) = row["item"].as_str() {
            let item = Given::Text(item.to_owned());
            assert_eq!(hash(ItemEncoding::Utf8, &item), text(row, "utf8_murmur3_128"));
            assert_eq!(hash(ItemEncoding::Utf16Le, &item), text(row, "unencoded_chars_murmur3_128"));
        } else {
            // Half a character is not valid Rust text; pass the bytes of such items.
            let units: Vec<u16> = unhex(text(row, "utf16be_hex"))
                .chunks(2)
                .map(|unit| u16::from_be_bytes([unit[0], unit[1]]))
                .collect();
            let utf16 = Given::Bytes(units.iter().flat_map(|unit| unit.to_le_bytes()).collect());
            assert_eq!(hash(ItemEncoding::Utf16Le, &utf16), text(row, "unencoded_chars_murmur3_128"));
            let utf8 = String::from_utf16_lossy(&units).replace('\u{fffd}', "?");
            assert_eq!(hash(ItemEncoding::Utf8, &Given::Text(utf8)), text(row, "utf8_murmur3_128"));
        }
    }
    println!("guava/murmur3_128_of_items.jsonl: {} rows", rows.len());
}

#[test]
fn numbers_that_guava_rejects_are_rejected() {
    let create = |n, fpp| guava::create(n, fpp, Rounding::Since33, Strategy::Mitz64, ItemEncoding::Utf8);
    assert!(create(1, 0.9).is_err(), "no bits");
    assert!(create(0, 0.01).is_ok(), "Guava takes 0 for 1");
    assert!(create(u64::MAX, 0.01).is_err());
    assert!(create(10, 0.0).is_err() && create(10, 1.0).is_err());
    for (bytes, cause) in [
        (&[][..], DecodeError::TooShort { need: 1, got: 0 }),
        (&[2, 1, 0, 0, 0, 1], DecodeError::BadField { field: "strategy", got: 2 }),
        (&[1, 1, 0x80, 0, 0, 0], DecodeError::BadField { field: "number of words", got: 1 << 31 }),
        (&[1, 1, 0x7f, 0xff, 0xff, 0xff, 0], DecodeError::TooShort { need: 17_179_869_182, got: 7 }),
    ] {
        assert_eq!(guava::read(bytes, ItemEncoding::Utf8).unwrap_err(), cause);
    }
    assert!(guava::read(&[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], ItemEncoding::Utf8).is_err(), "k = 0");
    assert!(guava::read(&[1, 1, 0, 0, 0, 0], ItemEncoding::Utf8).is_err(), "no words");
    let ours = Bloom::for_capacity(10, 0.01, 0).unwrap();
    let refusal = guava::write(&ours, &mut Vec::new()).unwrap_err();
    assert!(matches!(refusal, WriteError::OtherPlacement { .. }));
    assert!(refusal.to_string().contains("cannot be converted without its items"), "{refusal}");
}

/// Guava counts bits in words: with a few more or fewer of them, every item would be looked for elsewhere.
#[test]
fn bits_besides_whole_words_are_not_written() {
    let mut filter =
        guava::create(20, 0.01, Rounding::Since33, Strategy::Mitz64, ItemEncoding::Utf8).unwrap();
    filter.clear();
    let mut forged = filter.encode();
    let odd = filter.shape().bits() - 3;
    forged[72..80].copy_from_slice(&odd.to_le_bytes());
    hostile::seal(&mut forged);
    let mut odd = Bloom::decode(&forged).unwrap();
    odd.insert("ada");
    let mut stream = Vec::new();
    let refusal = guava::write(&odd, &mut stream).unwrap_err();
    assert!(matches!(refusal, WriteError::NoRoom { .. }) && stream.is_empty(), "{refusal}");
}

#[test]
fn damaged_streams_are_survived() {
    let stream = {
        let mut filter =
            guava::create(20, 0.01, Rounding::Since33, Strategy::Mitz32, ItemEncoding::Utf8).unwrap();
        filter.insert("ada");
        written(&filter)
    };
    hostile::survives("guava", &stream, &[(0, 1), (1, 1), (2, 4)], false, |bytes| {
        let mut filter = guava::read(bytes, ItemEncoding::Utf8)?;
        filter.insert("grace");
        assert!(filter.may_contain("grace"));
        let _ = (filter.expected_fpr(), filter.estimated_items(), written(&filter));
        Ok(())
    });
}
