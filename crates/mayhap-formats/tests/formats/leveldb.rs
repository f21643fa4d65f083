//! LevelDB's filters and filter blocks.

use mayhap::{Bloom, BuildError, DecodeError, ItemEncoding};
use mayhap_formats::leveldb::{self, BASE_LG, FilterBlock};
use mayhap_formats::{Resemblance, WriteError};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{json_lines, number, offsets, text, unhex};

/// The items of both engines' cases: `items_hex`, or `item-0`, `item-1`, … up to `n`.
pub(crate) fn items(case: &Value) -> Vec<Vec<u8>> {
    match case["items_hex"].as_array() {
        Some(items) => items.iter().map(|hex| unhex(hex.as_str().unwrap())).collect(),
        None => (0..number(case, "n")).map(|i| format!("item-{i}").into_bytes()).collect(),
    }
}

/// `absent-0` to `absent-1999`, with the answers of the real program; empty if it was not queried.
pub(crate) fn probes(case: &Value) -> Vec<(String, bool)> {
    if case["probe_false_positive_offsets"].is_null() {
        return Vec::new();
    }
    let wrong = offsets(case, "probe_false_positive_offsets");
    assert!(wrong.iter().all(|&offset| offset < 2000));
    (0..2000).map(|i| (format!("absent-{i}"), wrong.contains(&i))).collect()
}

fn written(filter: &Bloom) -> Vec<u8> {
    let mut bytes = Vec::new();
    leveldb::write(filter, &mut bytes).unwrap();
    bytes
}

fn create(case: &Value) -> Bloom {
    let bits_per_key = number(case, "bits_per_key") as u32;
    leveldb::create(bits_per_key, number(case, "n"), ItemEncoding::Bytes).unwrap()
}

#[test]
fn every_case_is_rebuilt_read_and_written() {
    let cases = json_lines("leveldb_rocksdb/leveldb.jsonl");
    let (mut answers, mut wrong) = (0, 0);
    for case in &cases {
        let name = format!("{} bits for each of {}", case["bits_per_key"], case["n"]);
        let bytes = unhex(text(case, "filter_hex"));
        let mut built = create(case);
        built.insert_batch(&items(case));
        assert_eq!(written(&built), bytes, "{name}");
        assert_eq!(leveldb::resembles(&bytes), Resemblance::Could, "{name}");

        let read = leveldb::read(&bytes, ItemEncoding::Bytes).unwrap();
        let ours = Bloom::decode(&read.encode()).unwrap();
        for filter in [&built, &read, &ours] {
            assert!(items(case).iter().all(|item| filter.may_contain(item)), "{name}");
            for (probe, answer) in probes(case) {
                assert_eq!(filter.may_contain(&probe), answer, "{name}: {probe}");
                (answers, wrong) = (answers + 1, wrong + usize::from(answer));
            }
            assert_eq!(written(filter), bytes, "{name}");
        }
        // The encoding matters: the same texts of two bytes a letter are other items.
        if items(case).len() >= 100 {
            let confused = leveldb::read(&bytes, ItemEncoding::Utf16Le).unwrap();
            assert!((0..100).any(|i| !confused.may_contain(&format!("item-{i}"))), "{name}");
        }
    }
    assert_eq!(cases.len(), 21);
    println!("leveldb.jsonl: {} cases, {answers} answers, {wrong} of them maybe", cases.len());
}

#[test]
fn a_block_is_split_into_its_filters() {
    let cases = json_lines("leveldb_rocksdb/leveldb.jsonl");
    let filters: Vec<Bloom> = cases
        .iter()
        .map(|case| leveldb::read(&unhex(text(case, "filter_hex")), ItemEncoding::Bytes).unwrap())
        .collect();
    // Every third stretch of the file has no data block that begins in it.
    let mut stretches: Vec<Option<&Bloom>> = Vec::new();
    for (index, filter) in filters.iter().enumerate() {
        stretches.push(Some(filter));
        stretches.extend((index % 2 == 1).then_some(None));
    }
    let mut bytes = Vec::new();
    leveldb::write_block(&stretches, BASE_LG, &mut bytes).unwrap();
    let block = FilterBlock::parse(&bytes).unwrap();
    assert_eq!((block.len(), block.base_lg(), block.is_empty()), (stretches.len(), 11, false));
    assert_eq!(leveldb::resembles_block(&bytes), Resemblance::Could);
    for (index, stretch) in stretches.iter().enumerate() {
        let offset = (index as u64) << 11;
        for at in [offset, offset + 2047] {
            let found = block.filter_at(at, ItemEncoding::Bytes).unwrap();
            assert_eq!(found.as_ref().map(written), stretch.map(written));
            for item in ["item-0", "absent-1131", "nobody"] {
                let answer = stretch.is_some_and(|filter| filter.may_contain(item));
                assert_eq!(block.may_contain_at(at, ItemEncoding::Bytes, item), answer);
            }
        }
        assert_eq!(block.bytes(index).unwrap(), stretch.map(written).unwrap_or_default());
    }
    assert_eq!(block.bytes(stretches.len()), None);
    assert!(block.filter(usize::MAX, ItemEncoding::Bytes).unwrap().is_none());
    assert!(block.may_contain_at(u64::MAX, ItemEncoding::Bytes, "x"), "no filter, no certainty");
}

/// The block of one filter, byte by byte: `item-0` at 4 bits a key.
#[test]
fn a_block_lies_as_drawn() {
    let filter = leveldb::read(&unhex("000400000000004002"), ItemEncoding::Bytes).unwrap();
    let mut bytes = Vec::new();
    leveldb::write_block(&[Some(&filter), None], BASE_LG, &mut bytes).unwrap();
    assert_eq!(
        bytes,
        unhex(
            "000400000000004002\
                            00000000\
                             09000000\
                             09000000\
                             0b"
        )
    );
    let none = unhex("000000000b");
    assert!(FilterBlock::parse(&none).unwrap().is_empty(), "a table without data");
    assert_eq!(leveldb::resembles_block(&none), Resemblance::No);
}

#[test]
fn sizes_are_leveldbs() {
    assert_eq!(leveldb::size(10, 0).unwrap(), (64, 6));
    assert_eq!(leveldb::size(10, 7).unwrap(), (72, 6), "whole bytes");
    assert_eq!(leveldb::size(0, 7).unwrap(), (64, 1));
    assert_eq!(leveldb::size(1, 100).unwrap(), (104, 1));
    assert_eq!(leveldb::size(43, 100).unwrap().1, 29);
    assert_eq!(leveldb::size(44, 100).unwrap().1, 30);
    assert_eq!(leveldb::size(1000, 1).unwrap(), (1000, 30));
    assert!(matches!(leveldb::size(u32::MAX, u64::MAX), Err(BuildError::BitsOutOfRange { .. })));
}

#[test]
fn filters_that_leveldb_does_not_support_are_rejected() {
    let read = |bytes: &[u8]| leveldb::read(bytes, ItemEncoding::Bytes).map(|filter| filter.shape().probes());
    assert_eq!(read(&[]), Err(DecodeError::TooShort { need: 2, got: 0 }));
    assert_eq!(read(&[6]), Err(DecodeError::TooShort { need: 2, got: 1 }));
    assert_eq!(read(&[0xff, 0]), Err(DecodeError::BadField { field: "number of probes", got: 0 }));
    assert_eq!(read(&[0xff, 30]), Ok(30), "one byte of bits is a filter, if not one LevelDB makes");
    let reserved = read(&[0xff, 31]).unwrap_err();
    assert!(matches!(reserved, DecodeError::Unsupported { .. }));
    assert_eq!(reserved.to_string(), "unsupported: a LevelDB filter of more than 30 probes");
    // In a block those are answered as LevelDB answers.
    for (filter, answer) in [("ff1f", true), ("ff00", true), ("06", false), ("0006", false), ("ff06", true)] {
        let block = unhex(&format!("{filter}00000000{:02x}0000000b", filter.len() / 2));
        let block = FilterBlock::parse(&block).unwrap();
        assert_eq!(block.may_contain_at(0, ItemEncoding::Bytes, "x"), answer, "{filter}");
    }
    for (bytes, cause) in [
        ("", DecodeError::TooShort { need: 5, got: 0 }),
        ("0000000b", DecodeError::TooShort { need: 5, got: 4 }),
        ("0000000040", DecodeError::BadField { field: "base of the filters", got: 64 }),
        ("010000000b", DecodeError::TooShort { need: 6, got: 5 }),
        ("ffffffff0b", DecodeError::TooShort { need: 0x1_0000_0004, got: 5 }),
        ("0000000000000b", DecodeError::TrailingBytes { extra: 2 }),
        ("ff0601000000020000000b", DecodeError::BadField { field: "offset of a filter", got: 1 }),
        ("ff060000000003000000020000000b", DecodeError::BadField { field: "offset of a filter", got: 3 }),
        ("ff060200000001000000020000000b", DecodeError::BadField { field: "offset of a filter", got: 1 }),
        ("ff06020000000b", DecodeError::BadField { field: "offset of a filter", got: 2 }),
    ] {
        assert_eq!(FilterBlock::parse(&unhex(bytes)).unwrap_err(), cause, "{bytes}");
    }
}

#[test]
fn other_filters_are_not_written() {
    let ours = Bloom::for_capacity(10, 0.01, 0).unwrap();
    let refusal = leveldb::write(&ours, &mut Vec::new()).unwrap_err();
    assert!(matches!(refusal, WriteError::OtherPlacement { .. }));
    assert!(refusal.to_string().contains("LevelDB's hash and its rule"), "{refusal}");
    let mut nothing = Vec::new();
    assert!(leveldb::write_block(&[Some(&ours)], BASE_LG, &mut nothing).is_err());
    assert!(leveldb::write_block(&[], 64, &mut nothing).is_err());
    assert!(nothing.is_empty());
    let theirs = leveldb::create(10, 10, ItemEncoding::Bytes).unwrap();
    assert!(Bloom::for_capacity(10, 0.01, 0).unwrap().union(&theirs).is_err());
}

#[test]
fn damaged_filters_are_survived() {
    // So few bits set that computing the rate is fast.
    let mut filter = leveldb::create(10, 60, ItemEncoding::Utf8).unwrap();
    filter.insert("ada");
    let bytes = written(&filter);
    // Any length makes a filter.
    hostile::survives("leveldb", &bytes, &[(bytes.len() - 1, 1)], true, |bytes| {
        let mut filter = leveldb::read(bytes, ItemEncoding::Utf8)?;
        filter.insert("grace");
        assert!(filter.may_contain("grace"));
        let _ = written(&filter);
        hostile::now_and_then(bytes, || (filter.expected_fpr(), filter.estimated_items(), filter.encode()));
        Ok(())
    });
}

#[test]
fn damaged_blocks_are_survived() {
    let mut filter = leveldb::create(10, 60, ItemEncoding::Utf8).unwrap();
    filter.insert("ada");
    let mut bytes = Vec::new();
    leveldb::write_block(&[Some(&filter), None, Some(&filter)], BASE_LG, &mut bytes).unwrap();
    let end = bytes.len();
    let fields = [(end - 1, 1), (end - 5, 4), (end - 9, 4), (end - 13, 4), (end - 17, 4)];
    hostile::survives("leveldb block", &bytes, &fields, true, |bytes| {
        let block = FilterBlock::parse(bytes)?;
        for index in 0..block.len() + 1 {
            let _ = block.may_contain_at((index as u64) << 11, ItemEncoding::Utf8, "ada");
            if let Some(filter) = block.filter(index, ItemEncoding::Utf8)? {
                assert_eq!(written(&filter), block.bytes(index).unwrap());
            }
        }
        Ok(())
    });
}

#[test]
fn forged_mayhap_files_are_harmless() {
    let mut filter = leveldb::create(10, 40, ItemEncoding::Utf8).unwrap();
    filter.insert("ada");
    hostile::survives_forged("leveldb", &filter.encode(), |bytes| {
        let Ok(mut filter) = Bloom::decode(bytes) else { return false };
        filter.insert("grace");
        assert!(filter.may_contain("grace"));
        let mut out = Vec::new();
        if leveldb::write(&filter, &mut out).is_ok() {
            let items = hostile::encoding_of(filter.scheme());
            assert!(leveldb::read(&out, items).unwrap().may_contain("grace"));
        }
        true
    });
    for (at, value, field) in [(72, 401_u64, "bits after the last whole byte"), (80, 31, "number of probes")]
    {
        let mut forged = filter.encode();
        forged[at..at + 8].copy_from_slice(&value.to_le_bytes());
        hostile::seal(&mut forged);
        let refusal = leveldb::write(&Bloom::decode(&forged).unwrap(), &mut Vec::new()).unwrap_err();
        assert!(refusal.to_string().contains(field), "{refusal}");
    }
}

/// Thirty probes in few bits once took a sixth of a second to read, for the sake of an exact estimate.
#[test]
fn the_most_probes_are_read_at_once() {
    let mut filter = leveldb::create(44, 45, ItemEncoding::Bytes).unwrap();
    filter.insert_batch(&(0..45_u64).collect::<Vec<_>>());
    let bytes = written(&filter);
    let begin = std::time::Instant::now();
    for _ in 0..20 {
        assert!(leveldb::read(&bytes, ItemEncoding::Bytes).unwrap().inserted().abs_diff(45) <= 3);
    }
    assert!(begin.elapsed().as_secs_f64() < 1.0, "{:?}", begin.elapsed());
}
