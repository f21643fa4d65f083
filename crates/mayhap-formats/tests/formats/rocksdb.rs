//! RocksDB's Bloom filters and its Ribbon filter.

use std::collections::BTreeMap;

use mayhap::{
    Answers, AtomicBlockedBloom, BlockedBloom, BlockedLayout, BlockedPlacement, BlockedShape, BuildError,
    DecodeError, ItemEncoding,
};
use mayhap_formats::rocksdb::{self, BloomStyle, RocksdbFilter};
use mayhap_formats::{Resemblance, WriteError};
use serde_json::Value;

use crate::hostile;
use crate::leveldb::{items, probes};
use crate::vectors::{json_lines, number, text, unhex};

fn written(filter: &BlockedBloom) -> Vec<u8> {
    let mut bytes = Vec::new();
    rocksdb::write(filter, &mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> RocksdbFilter {
    rocksdb::read(bytes, ItemEncoding::Bytes).unwrap()
}

/// The Bloom filter in bytes that hold one.
fn read_bloom(bytes: &[u8]) -> BlockedBloom {
    read(bytes).into_bloom().unwrap()
}

fn bits_per_key(case: &Value) -> f64 {
    let policy = text(case, "policy");
    policy.split(['(', ')']).nth(1).unwrap().parse().unwrap()
}

fn check_answers(name: &str, case: &Value, may_contain: impl Fn(&[u8]) -> bool) -> (usize, usize) {
    assert!(items(case).iter().all(|item| may_contain(item)), "{name}");
    let probes = probes(case);
    for (probe, answer) in &probes {
        assert_eq!(may_contain(probe.as_bytes()), *answer, "{name}: {probe}");
    }
    (probes.len(), probes.iter().filter(|(_, answer)| *answer).count())
}

fn check_bloom(name: &str, case: &Value, bytes: &[u8], style: BloomStyle) {
    let mut built =
        rocksdb::create(style, bits_per_key(case), number(case, "n"), ItemEncoding::Bytes).unwrap();
    built.insert_batch(&items(case));
    assert_eq!(written(&built), bytes, "{name}");
    let read = read_bloom(bytes);
    let ours = BlockedBloom::decode(&read.encode()).unwrap();
    assert_eq!(
        (ours.scheme(), ours.shape(), ours.inserted()),
        (read.scheme(), read.shape(), read.inserted())
    );
    for filter in [&built, &read, &ours] {
        check_answers(name, case, |item| filter.may_contain(item));
        assert_eq!(written(filter), bytes, "{name}");
    }
    // As many as there are, by the fill. The legacy hash sends keys that differ in their last letters to the same bits, and the fill of
    // three quarters as many.
    let n = number(case, "n");
    assert!(
        style == BloomStyle::Legacy || read.estimated_items().abs_diff(n) <= 2 + n / 6,
        "{name}: {}",
        read.estimated_items()
    );
}

#[test]
fn every_case_is_rebuilt_read_and_written() {
    let cases = json_lines("leveldb_rocksdb/rocksdb.jsonl");
    let (mut ran, mut answers, mut wrong) = (BTreeMap::new(), 0, 0);
    for case in &cases {
        let name = format!("{}, {}, {} items", text(case, "kind"), text(case, "policy"), case["n"]);
        let bytes = unhex(text(case, "filter_hex"));
        let filter = read(&bytes);
        let (asked, mayhap) = check_answers(&name, case, |item| filter.may_contain(item));
        (answers, wrong) = (answers + asked, wrong + mayhap);
        let style = match number(case, "format_version") {
            4 => BloomStyle::Legacy,
            _ => BloomStyle::FastLocal,
        };
        let what = match &filter {
            RocksdbFilter::Empty => {
                assert_eq!(number(case, "n"), 0, "{name}");
                if !bytes.is_empty() {
                    assert_eq!(rocksdb::empty(style, bits_per_key(case)).unwrap(), bytes[..], "{name}");
                }
                "empty"
            }
            RocksdbFilter::Bloom(_) => {
                // A Ribbon policy makes such a filter for few items, too.
                check_bloom(&name, case, &bytes, style);
                assert_eq!(rocksdb::resembles(&bytes), Resemblance::Could, "{name}");
                if style == BloomStyle::Legacy { "legacy" } else { "fast local" }
            }
            RocksdbFilter::Ribbon(ribbon) => {
                assert_eq!(text(case, "kind"), "ribbon128");
                let mut again = Vec::new();
                ribbon.write(&mut again).unwrap();
                assert_eq!(again, bytes, "{name}");
                assert_eq!(rocksdb::resembles(&bytes), Resemblance::Could, "{name}");
                assert!((6.5..7.0).contains(&ribbon.columns()), "{}", ribbon.columns());
                assert_eq!(ribbon.memory_bytes(), bytes.len() as u64 - 5);
                // 15 and 25 of 2000 non-members, where 18 are expected.
                assert!((0.0085..0.0095).contains(&ribbon.expected_fpr()), "{}", ribbon.expected_fpr());
                "ribbon"
            }
            other => panic!("{name}: {other:?}"),
        };
        *ran.entry(what).or_insert(0) += 1;
    }
    assert_eq!(cases.len(), 38);
    assert_eq!(ran, BTreeMap::from([("empty", 7), ("fast local", 16), ("legacy", 13), ("ribbon", 2)]));
    println!("rocksdb.jsonl: {} cases, {ran:?}, {answers} answers, {wrong} of them maybe", cases.len());
}

/// `rocksdb_hashes.jsonl` through the filters: every item is found at the position of its recorded hash.
#[test]
fn every_hashed_item_lands_where_its_hash_says() {
    let rows = json_lines("leveldb_rocksdb/rocksdb_hashes.jsonl");
    for row in &rows {
        let item = match row["item"].as_str() {
            Some(item) => item.as_bytes().to_vec(),
            None => {
                let len = number(row, "len");
                (0..len).map(|i| (i * 7 + len) as u8).collect()
            }
        };
        let recorded = |field| u64::from_str_radix(text(row, field), 16).unwrap();
        let legacy = rocksdb::create(BloomStyle::Legacy, 10.0, 1000, ItemEncoding::Bytes).unwrap();
        let fast = rocksdb::create(BloomStyle::FastLocal, 10.0, 1000, ItemEncoding::Bytes).unwrap();
        assert_eq!(legacy.hash(&item).to_u128() as u64, recorded("bloom_hash32"));
        assert_eq!(fast.hash(&item).to_u128() as u64, recorded("hash64_xxph3"));

        let (lines, mut bitmap) = (legacy.shape().blocks(), vec![0_u8; legacy.memory_bytes() as usize]);
        let hash = recorded("bloom_hash32") as u32;
        for i in 0..6 {
            let bit = hash.wrapping_add(hash.rotate_right(17).wrapping_mul(i)) % 512;
            bitmap[(u64::from(hash) % lines * 64) as usize + bit as usize / 8] |= 1 << (bit % 8);
        }
        check_alone(legacy, &item, &bitmap);

        let (lines, mut bitmap) = (fast.shape().blocks(), vec![0_u8; fast.memory_bytes() as usize]);
        let hash = recorded("hash64_xxph3");
        for i in 0..6 {
            let bit = ((hash >> 32) as u32).wrapping_mul(0x9e37_79b9_u32.wrapping_pow(i)) >> 23;
            let line = (hash & 0xffff_ffff) * lines / (1 << 32);
            bitmap[line as usize * 64 + bit as usize / 8] |= 1 << (bit % 8);
        }
        check_alone(fast, &item, &bitmap);
    }
    assert_eq!(rows.len(), 124);
    println!("rocksdb_hashes.jsonl: {} items, each in 2 filters", rows.len());
}

fn check_alone(mut filter: BlockedBloom, item: &[u8], bitmap: &[u8]) {
    assert!(filter.insert(item));
    let bytes = written(&filter);
    assert_eq!(&bytes[..bytes.len() - 5], bitmap, "{item:?}");
}

/// From RocksDB 7.8.3, queried for every setting.
#[test]
fn sizes_are_rocksdbs() {
    let fast = |bits| rocksdb::size(BloomStyle::FastLocal, bits, 1000).unwrap();
    let legacy = |bits| rocksdb::size(BloomStyle::Legacy, bits, 1000).unwrap();
    for (bits, lines, probes) in [
        (0.5, 2, 1),
        (1.0, 2, 1),
        (2.08, 5, 1),
        (2.081, 5, 2),
        (9.9, 20, 6),
        (10.0, 20, 6),
        (10.071, 20, 7),
        (14.001, 28, 8),
        (14.002, 28, 9),
        (25.501, 50, 12),
        (28.0, 55, 12),
        (28.001, 55, 13),
        (50.0, 98, 23),
        (50.001, 98, 24),
        (100.0, 196, 24),
        (1e9, 196, 24),
    ] {
        assert_eq!(fast(bits), (lines, probes), "{bits}");
    }
    for (bits, lines, probes) in
        [(0.5, 3, 1), (1.4, 3, 1), (9.5, 21, 6), (9.4, 19, 6), (44.0, 87, 30), (100.0, 197, 30)]
    {
        assert_eq!(legacy(bits), (lines, probes), "{bits}");
    }
    for style in [BloomStyle::Legacy, BloomStyle::FastLocal] {
        assert_eq!(rocksdb::size(style, 10.0, 0).unwrap().0, 0);
        for bits in [0.49, 0.0, -1.0, f64::NAN] {
            assert!(matches!(rocksdb::size(style, bits, 10), Err(BuildError::BitsOutOfRange { got: 0, .. })));
        }
        assert!(matches!(rocksdb::size(style, 10.0, 1 << 32), Err(BuildError::BitsOutOfRange { .. })));
        assert!(rocksdb::size(style, 100.0, u64::MAX).is_err());
        assert!(rocksdb::create(style, 10.0, 0, ItemEncoding::Bytes).is_err());
    }
}

#[test]
fn bytes_that_are_not_a_filter_are_rejected() {
    let line = "00".repeat(64);
    let refused = |bytes: String| rocksdb::read(&unhex(&bytes), ItemEncoding::Bytes).unwrap_err();
    let bad = |field, got| DecodeError::BadField { field, got };
    assert_eq!(refused("ff0006".to_owned()), DecodeError::TooShort { need: 5, got: 3 });
    for (trailer, cause) in [
        ("0001000000", bad("number of probes", 0)),
        (
            "0602000000",
            DecodeError::Unsupported { what: "a legacy RocksDB filter with lines of other than 64 bytes" },
        ),
        ("0603000000", bad("number of lines", 3)),
        ("0600000000", bad("number of lines", 0)),
        ("06ffffffff", bad("number of lines", u32::MAX.into())),
        ("ff00000000", bad("number of probes", 0)),
        ("ff001f0000", bad("number of probes", 31)),
        (
            "ff00260000",
            DecodeError::Unsupported { what: "a FastLocalBloom with lines of more than 64 bytes" },
        ),
        ("ff01060000", DecodeError::Unsupported { what: "a RocksDB Bloom filter of an unknown type" }),
        ("ff00060001", DecodeError::Unsupported { what: "a RocksDB Bloom filter of an unknown type" }),
        ("fd00060000", DecodeError::Unsupported { what: "a RocksDB filter of an unknown type" }),
        ("8001000000", DecodeError::Unsupported { what: "a RocksDB filter of an unknown type" }),
        ("fe00010000", bad("number of blocks", 1)),
    ] {
        assert_eq!(refused(format!("{line}{trailer}")), cause, "{trailer}");
        assert_eq!(rocksdb::resembles(&unhex(&format!("{line}{trailer}"))), Resemblance::No);
    }
    assert_eq!(refused(format!("{line}00ff00060000")), bad("bytes of all lines", 65));
    assert_eq!(refused(format!("{line}00fe00040000")), bad("bytes of all segments", 65));
    assert_eq!(refused("fe00040000".to_owned()), bad("bytes of all segments", 0));
    let tall = "00".repeat(16 * 2 * 32 + 16);
    assert_eq!(refused(format!("{tall}fe00020000")), bad("bytes of all segments", 1040), "33 columns");
    assert!(
        matches!(read(&unhex(&format!("{}fe00020000", &tall[32..]))), RocksdbFilter::Ribbon(_)),
        "32 columns"
    );
    assert!(matches!(read(&[]), RocksdbFilter::Empty));
    assert!(!read(&[]).may_contain("x"));
}

#[test]
fn a_filter_is_placed_by_its_own_rule() {
    let create = |style| rocksdb::create(style, 10.0, 100, ItemEncoding::Bytes).unwrap();
    let (mut legacy, fast) = (create(BloomStyle::Legacy), create(BloomStyle::FastLocal));
    assert_eq!(legacy.placement(), BlockedPlacement::RocksDbLegacy);
    assert_eq!(fast.placement(), BlockedPlacement::RocksDbFastLocal);
    assert!(legacy.union(&fast).is_err());

    let shape = BlockedShape::with_layout(BlockedLayout::Line512, 100, 0.01).unwrap();
    let ours = BlockedBloom::with_shape(shape, *fast.scheme()).unwrap();
    assert_eq!(ours.placement(), BlockedPlacement::Line);
    let refusal = rocksdb::write(&ours, &mut Vec::new()).unwrap_err();
    assert!(matches!(refusal, WriteError::OtherPlacement { .. }));
    assert!(refusal.to_string().contains("cannot be converted without its items"), "{refusal}");

    let own = BlockedBloom::with_shape(*fast.shape(), 0).unwrap();
    assert_eq!(own.placement(), BlockedPlacement::Line, "a shape alone does not define the rule");
    let crowded = rocksdb::create(BloomStyle::FastLocal, 60.0, 100, ItemEncoding::Bytes).unwrap();
    assert!(BlockedBloom::with_shape(*crowded.shape(), 0).is_err(), "more probes than ours may have");
}

/// RocksDB makes an odd number of lines, but reads any.
#[test]
fn a_halved_filter_is_one_built_at_that_size() {
    let empty = |style, lines: u8| {
        let trailer = match style {
            BloomStyle::Legacy => [6, lines, 0, 0, 0],
            BloomStyle::FastLocal => [0xff, 0, 6, 0, 0],
        };
        read_bloom(&[&vec![0; 64 * usize::from(lines)][..], &trailer].concat())
    };
    for style in [BloomStyle::Legacy, BloomStyle::FastLocal] {
        for lines in [1, 3, 4, 64, 127] {
            let (mut full, mut small) = (empty(style, 2 * lines), empty(style, lines));
            for i in 0..200_u64 {
                full.insert(&i);
                small.insert(&i);
            }
            let half = full.halved().unwrap();
            assert!((0..200_u64).all(|i| half.may_contain(&i)), "{style:?}, {lines} lines");
            assert_eq!(written(&half), written(&small), "{style:?}, {lines} lines");
        }
        assert_eq!(empty(style, 5).halved().unwrap_err(), BuildError::OddBlocks { got: 5 });
    }
}

/// One by one, in batches, by hash, by many threads, through our own file: the same bits, the same answers.
#[test]
fn all_ways_to_insert_and_query_agree() {
    for (style, bits) in
        [(BloomStyle::Legacy, 10.0), (BloomStyle::FastLocal, 10.0), (BloomStyle::FastLocal, 60.0)]
    {
        let create = || rocksdb::create(style, bits, 3000, ItemEncoding::Utf8).unwrap();
        let items: Vec<String> = (0..3000).map(|i| format!("item-{i}")).collect();
        let (mut one, mut batch, mut hashed) = (create(), create(), create());
        let changed = items.iter().filter(|item| one.insert(*item)).count() as u64;
        assert_eq!(batch.insert_batch(&items), changed);
        let hashes: Vec<_> = items.iter().map(|item| hashed.hash(item)).collect();
        assert_eq!(hashed.insert_hash_batch(&hashes), changed);
        let shared = AtomicBlockedBloom::from(create());
        assert_eq!(items.iter().filter(|item| shared.insert(*item)).count() as u64, changed);
        let shared = shared.into_inner();
        assert_eq!(one.inserted(), changed);
        assert_eq!(shared.inserted(), changed);

        let mut merged = create();
        merged.union(&one).unwrap();
        let decoded = BlockedBloom::decode(&one.encode()).unwrap();
        let probes: Vec<String> = (0..5000).map(|i| format!("item-{}", i * 3)).collect();
        let mut answers = Answers::new();
        one.may_contain_batch(&probes, &mut answers);
        for filter in [&batch, &hashed, &shared, &merged, &decoded, &one.try_clone().unwrap()] {
            assert_eq!(written(filter), written(&one));
            for (i, probe) in probes.iter().enumerate() {
                assert_eq!(answers.get(i), Some(filter.may_contain(probe)), "{probe}");
                assert_eq!(answers.get(i), Some(filter.may_contain_hash(filter.hash(probe))));
            }
        }
        // A wrong hash in the header, or another placement, is detected.
        let mut other = one.encode();
        other[12] = if style == BloomStyle::Legacy { 5 } else { 4 };
        assert!(BlockedBloom::decode(&other).is_err());
    }
}

#[test]
fn another_rule_or_hash_would_be_detected() {
    let cases = json_lines("leveldb_rocksdb/rocksdb.jsonl");
    let case = |kind: &str, n: u64| {
        let found = cases.iter().find(|case| text(case, "kind") == kind && number(case, "n") == n);
        unhex(text(found.unwrap(), "filter_hex"))
    };
    let forgets = |bytes: &[u8]| {
        let filter = read(bytes);
        (0..1000).filter(|i| !filter.may_contain(&format!("item-{i}"))).count()
    };
    // The same bits under the other trailer.
    let legacy = case("legacy_bloom", 1000);
    let (lines, trailer) = legacy.split_at(legacy.len() - 5);
    assert!(forgets(&legacy) == 0 && forgets(&[lines, &[0xff, 0, trailer[0], 0, 0]].concat()) > 500);
    // Another seed, another number of blocks.
    let ribbon = case("ribbon128", 1000);
    assert_eq!(forgets(&ribbon), 0);
    let (seed_at, blocks_at) = (ribbon.len() - 4, ribbon.len() - 3);
    for at in [seed_at, blocks_at] {
        let mut spoiled = ribbon.clone();
        spoiled[at] ^= 1;
        assert!(forgets(&spoiled) > 900);
    }
    // Text of two bytes a letter is other items.
    let utf16 = rocksdb::read(&ribbon, ItemEncoding::Utf16Le).unwrap();
    assert!((0..100).any(|i| !utf16.may_contain(&format!("item-{i}"))));
}

fn survives_as(name: &str, bytes: &[u8]) {
    let end = bytes.len();
    let fields = [(end - 5, 1), (end - 4, 1), (end - 3, 1), (end - 2, 2), (end - 4, 4), (end - 3, 2)];
    // Cut after any line it is a filter again; cut to nothing, an empty one.
    hostile::survives(name, bytes, &fields, true, |bytes| {
        match rocksdb::read(bytes, ItemEncoding::Utf8)? {
            RocksdbFilter::Bloom(mut filter) => {
                filter.insert("grace");
                assert!(filter.may_contain("grace"));
                let _ = written(&filter);
                hostile::now_and_then(bytes, || (filter.expected_fpr(), filter.encode()));
            }
            RocksdbFilter::Ribbon(filter) => {
                let _ = (filter.may_contain("ada"), filter.columns(), filter.expected_fpr());
                let mut again = Vec::new();
                filter.write(&mut again).unwrap();
                assert_eq!(again, bytes);
            }
            _ => {}
        }
        Ok(())
    });
}

#[test]
fn damaged_bloom_filters_are_survived() {
    for style in [BloomStyle::Legacy, BloomStyle::FastLocal] {
        let mut filter = rocksdb::create(style, 10.0, 10, ItemEncoding::Utf8).unwrap();
        filter.insert("ada");
        survives_as(&format!("rocksdb {style:?}"), &written(&filter));
    }
}

#[test]
fn damaged_ribbon_filters_are_survived() {
    // Two blocks of three and four columns.
    let segments: Vec<u8> = (0..7 * 16).map(|i| (i * 37 + 11) as u8).collect();
    survives_as("rocksdb ribbon", &[&segments[..], &[0xfe, 12, 2, 0, 0]].concat());
}

#[test]
fn forged_mayhap_files_are_harmless() {
    for style in [BloomStyle::Legacy, BloomStyle::FastLocal] {
        let mut filter = rocksdb::create(style, 10.0, 10, ItemEncoding::Utf8).unwrap();
        filter.insert("ada");
        hostile::survives_forged(&format!("rocksdb {style:?}"), &filter.encode(), |bytes| {
            let Ok(mut filter) = BlockedBloom::decode(bytes) else { return false };
            filter.insert("grace");
            assert!(filter.may_contain("grace"));
            let mut out = Vec::new();
            match rocksdb::write(&filter, &mut out) {
                Ok(()) => drop(rocksdb::read(&out, ItemEncoding::Utf8).unwrap()),
                Err(refusal) => assert!(!refusal.to_string().is_empty()),
            }
            true
        });
        // More lines than 32 bits of a hash can address, two lines for each item, more probes than a trailer can hold.
        for (at, value) in [(72, 1_u64 << 32), (88, 2), (80, 128)] {
            let mut forged = filter.encode();
            forged[at..at + 8].copy_from_slice(&value.to_le_bytes());
            hostile::seal(&mut forged);
            assert!(BlockedBloom::decode(&forged).is_err(), "{value} at {at}");
        }
        let mut many_probes = filter.encode();
        many_probes[80] = 100;
        hostile::seal(&mut many_probes);
        let many_probes = BlockedBloom::decode(&many_probes).unwrap();
        let written = rocksdb::write(&many_probes, &mut Vec::new());
        assert_eq!(written.is_ok(), style == BloomStyle::Legacy, "{written:?}");
    }
}

/// Thirty probes in each of many lines once took seconds to read, for the sake of an exact estimate.
#[test]
fn the_most_probes_are_read_at_once() {
    let mut filter = rocksdb::create(BloomStyle::Legacy, 44.0, 3000, ItemEncoding::Bytes).unwrap();
    filter.insert_batch(&(0..3000_u64).collect::<Vec<_>>());
    let bytes = written(&filter);
    let begin = std::time::Instant::now();
    let read = read_bloom(&bytes);
    assert!((1.0e-8..1.0e-5).contains(&read.expected_fpr()), "{}", read.expected_fpr());
    assert!(begin.elapsed().as_secs_f64() < 1.0, "{:?}", begin.elapsed());
}
