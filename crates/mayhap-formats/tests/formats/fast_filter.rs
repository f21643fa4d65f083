//! Binary fuse and xor filters of the FastFilter libraries.

use std::collections::BTreeMap;

use mayhap::{
    Answers, BinaryFuse, BinaryFuse8, BinaryFuse16, BinaryFuse32, DecodeError, Filter, Fingerprint,
    ItemEncoding, Xor, Xor8, Xor16, Xor32,
};
use mayhap_formats::fast_filter::{self, FuseLayout, xor};
use mayhap_formats::{Resemblance, WriteError};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{bytes, json, number, text};

const NUMBERS: ItemEncoding = ItemEncoding::U64Le;

/// The keys of the vectors.
fn key(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Every query of a case with its answer.
fn questions(case: &Value) -> Vec<(u64, bool)> {
    let n = number(case, "n");
    let wrong: Vec<u64> = case["false_positive_probe_indexes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i.as_u64().unwrap())
        .collect();
    assert!(wrong.iter().all(|i| (n + 1..=n + 5_000).contains(i)));
    (1..=n + 5_000).map(|i| (key(i), i <= n || wrong.contains(&i))).collect()
}

/// The operations of both kinds of filter.
trait Asked: Sized {
    fn has(&self, item: u64) -> bool;
    fn has_text(&self, item: &str) -> bool;
    fn has_hash(&self, item: u64) -> bool;
    fn has_all(&self, items: &[u64]) -> Answers;
    fn through_our_file(&self) -> Self;
    fn counts(&self) -> (u64, u64);
}

macro_rules! asked {
    ($kind:ident) => {
        impl<F: Fingerprint> Asked for $kind<F> {
            fn has(&self, item: u64) -> bool {
                self.may_contain(&item)
            }
            fn has_text(&self, item: &str) -> bool {
                self.may_contain(item)
            }
            fn has_hash(&self, item: u64) -> bool {
                self.may_contain_hash(self.hash(&item))
            }
            fn has_all(&self, items: &[u64]) -> Answers {
                let mut answers = Answers::default();
                self.may_contain_batch(items, &mut answers);
                answers
            }
            fn through_our_file(&self) -> Self {
                let encoded = self.encode();
                let ours = Self::decode(&encoded).unwrap();
                assert_eq!((ours.scheme(), ours.shape()), (self.scheme(), self.shape()));
                assert_eq!(ours.encode(), encoded);
                assert_eq!(self.try_clone().unwrap().encode(), encoded);
                assert_eq!(Filter::decode(&encoded).unwrap().inserted(), self.inserted());
                ours
            }
            fn counts(&self) -> (u64, u64) {
                (self.capacity(), self.inserted())
            }
        }
    };
}
asked!(BinaryFuse);
asked!(Xor);

/// Queries everything in every way.
fn check_answers(filter: &impl Asked, questions: &[(u64, bool)], name: &str) {
    let items: Vec<u64> = questions.iter().map(|&(item, _)| item).collect();
    let answers = filter.has_all(&items);
    for (i, &(item, answer)) in questions.iter().enumerate() {
        assert_eq!(filter.has(item), answer, "{name}: {item}");
        assert_eq!(filter.has_hash(item), answer, "{name}: {item}");
        assert_eq!(answers.get(i), Some(answer), "{name}: {item}");
        assert_eq!(filter.has_text(&item.to_string()), answer, "{name}: {item} in digits");
    }
}

fn fuse_bytes<F: Fingerprint>(filter: &BinaryFuse<F>, layout: FuseLayout) -> Vec<u8> {
    let mut written = Vec::new();
    fast_filter::write(filter, layout, &mut written).unwrap();
    written
}

fn xor_bytes<F: Fingerprint>(filter: &Xor<F>, layout: xor::XorLayout) -> Vec<u8> {
    let mut written = Vec::new();
    xor::write(filter, layout, &mut written).unwrap();
    written
}

fn check_fuse<F: Fingerprint>(file: &[u8], layout: FuseLayout, case: &Value) {
    let (name, n, questions) = (text(case, "file"), number(case, "n"), questions(case));
    let read: BinaryFuse<F> = fast_filter::read(file, layout, NUMBERS).unwrap();
    let ours = read.through_our_file();
    for filter in [&read, &ours] {
        assert_eq!(fuse_bytes(filter, layout), file, "{name}");
        check_answers(filter, &questions, name);
        let (capacity, inserted) = filter.counts();
        let counted = matches!(layout, FuseLayout::C | FuseLayout::CPacked);
        assert_eq!(inserted, if counted { n } else { 0 }, "{name}");
        assert!(capacity >= n && (capacity == n) == counted || !counted, "{name}: {capacity}");
        assert_eq!(filter.expected_fpr(), (-f64::from(F::BITS)).exp2());
    }
    // The size is the one the libraries choose.
    let built = fast_filter::build::<F, _>((1..=n).map(key), NUMBERS).unwrap();
    assert_eq!(built.shape().slots(), read.shape().slots(), "{name}");
    assert_eq!(built.shape().segment_slots(), read.shape().segment_slots(), "{name}");

    // Through every other layout and back.
    for other in [FuseLayout::C, FuseLayout::CPacked, FuseLayout::Go, FuseLayout::Xorf, FuseLayout::XorfJson]
    {
        if other == FuseLayout::CPacked && F::BITS > 16 {
            assert!(matches!(
                fast_filter::write(&read, other, &mut Vec::new()),
                Err(WriteError::NoRoom { limit: 16, .. })
            ));
            continue;
        }
        let between = fuse_bytes(&read, other);
        assert_eq!(fast_filter::resembles(&between, other), Resemblance::Could, "{name} as {other:?}");
        let again: BinaryFuse<F> = fast_filter::read(&between, other, NUMBERS).unwrap();
        assert_eq!(
            fuse_bytes(&again, FuseLayout::Go),
            fuse_bytes(&read, FuseLayout::Go),
            "{name} as {other:?}"
        );
        assert!((1..=n).all(|i| again.has(key(i))), "{name} as {other:?}");
    }
    // Width and layout are not confused with others.
    assert_eq!(fast_filter::width(file, layout), Some(F::BITS), "{name}");
    assert!(fast_filter::read_any(file, layout, NUMBERS).is_ok(), "{name}");
    let narrow = fast_filter::read::<u8>(file, layout, NUMBERS);
    let wide = fast_filter::read::<u16>(file, layout, NUMBERS);
    let widest = fast_filter::read::<u32>(file, layout, NUMBERS);
    let as_expected = [narrow.is_ok(), wide.is_ok(), widest.is_ok()];
    assert_eq!(as_expected, [F::BITS == 8, F::BITS == 16, F::BITS == 32], "{name}");
    for other in [FuseLayout::C, FuseLayout::CPacked, FuseLayout::Go, FuseLayout::Xorf, FuseLayout::XorfJson]
    {
        if other != layout {
            assert!(fast_filter::read::<F>(file, other, NUMBERS).is_err(), "{name} read as {other:?}");
        }
    }
    // Another seed, other answers.
    let mut spoiled = file.to_vec();
    spoiled[0] ^= 1;
    let spoiled: BinaryFuse<F> = fast_filter::read(&spoiled, layout, NUMBERS).unwrap();
    assert!((1..=n).any(|i| !spoiled.has(key(i))) || n < 3, "{name}");
}

fn check_xor<F: Fingerprint>(file: &[u8], case: &Value) {
    let (name, n, questions) = (text(case, "file"), number(case, "n"), questions(case));
    let layout = xor::XorLayout::C;
    let read: Xor<F> = xor::read(file, layout, NUMBERS).unwrap();
    let json = xor_bytes(&read, xor::XorLayout::XorfJson);
    let from_json: Xor<F> = xor::read(&json, xor::XorLayout::XorfJson, NUMBERS).unwrap();
    let ours = read.through_our_file();
    for filter in [&read, &ours, &from_json] {
        assert_eq!(xor_bytes(filter, layout), file, "{name}");
        check_answers(filter, &questions, name);
        assert!(filter.capacity() >= n && filter.inserted() == 0, "{name}");
    }
    let built = xor::build::<F, _>((1..=n).map(key), NUMBERS).unwrap();
    assert_eq!(built.shape().block_slots(), read.shape().block_slots(), "{name}");
    assert_eq!(xor::width(file, layout), Some(F::BITS), "{name}");
    assert_eq!(xor::resembles(file, layout), Resemblance::Could, "{name}");
    assert!(xor::read_any(file, layout, NUMBERS).is_ok(), "{name}");
    let others = [
        xor::read::<u8>(file, layout, NUMBERS).is_ok(),
        xor::read::<u16>(file, layout, NUMBERS).is_ok(),
        xor::read::<u32>(file, layout, NUMBERS).is_ok(),
    ];
    assert_eq!(others, [F::BITS == 8, F::BITS == 16, F::BITS == 32], "{name}");
    let mut spoiled = file.to_vec();
    spoiled[0] ^= 1;
    let spoiled: Xor<F> = xor::read(&spoiled, layout, NUMBERS).unwrap();
    assert!((1..=n).any(|i| !spoiled.has(key(i))) || n < 3, "{name}");
}

#[test]
fn every_case_is_read_written_and_asked() {
    let cases = json("fuse/cases.json");
    let mut seen = BTreeMap::new();
    for case in cases["cases"].as_array().unwrap() {
        let file = bytes(&format!("fuse/{}", text(case, "file")));
        assert_eq!(file.len() as u64, number(case, "len"));
        let (library, kind) = (text(case, "impl"), text(case, "kind"));
        let layout = match (library, kind.ends_with("_packed")) {
            ("c", false) => FuseLayout::C,
            ("c", true) => FuseLayout::CPacked,
            ("go", false) => FuseLayout::Go,
            ("xorf", false) => FuseLayout::Xorf,
            other => panic!("{other:?} is not known"),
        };
        match kind.trim_end_matches("_packed") {
            "bfuse8" => check_fuse::<u8>(&file, layout, case),
            "bfuse16" => check_fuse::<u16>(&file, layout, case),
            "bfuse32" => check_fuse::<u32>(&file, layout, case),
            "xor8" => check_xor::<u8>(&file, case),
            "xor16" => check_xor::<u16>(&file, case),
            "xor32" => check_xor::<u32>(&file, case),
            other => panic!("{other} is not known"),
        }
        *seen.entry(format!("{library} {kind}")).or_insert(0) += 1;
    }
    let all: usize = seen.values().sum();
    let files = std::fs::read_dir(crate::vectors::path("fuse")).unwrap().count();
    assert_eq!(all + 2, files, "every file but the list of cases and the sample of JSON");
    println!("fuse/cases.json: {all} filters, {seen:?}");
}

#[test]
fn the_sample_of_json_is_read_and_written() {
    let sample = bytes("fuse/xorf_bfuse8_n3.serde.json");
    let read: BinaryFuse8 = fast_filter::read(&sample, FuseLayout::XorfJson, NUMBERS).unwrap();
    assert_eq!(fuse_bytes(&read, FuseLayout::XorfJson), sample.trim_ascii_end());
    assert!((1..=3).all(|i| read.has(key(i))));
    // Slots no item took are random, but those of the items are these.
    let beside: BinaryFuse8 =
        fast_filter::read(&bytes("fuse/xorf_bfuse8_n3.bin"), FuseLayout::Xorf, NUMBERS).unwrap();
    assert_eq!(fuse_bytes(&read, FuseLayout::Xorf)[..20], fuse_bytes(&beside, FuseLayout::Xorf)[..20]);
    assert_eq!(fast_filter::width(&sample, FuseLayout::XorfJson), None);
    assert!(fast_filter::read_any(&sample, FuseLayout::XorfJson, NUMBERS).is_err());
    let text = String::from_utf8(sample).unwrap();
    for (from, to) in
        [("226,", "256,"), ("226,", ""), ("226,", "-1,"), ("_mask\":7", "_mask\":6"), ("seed", "sead")]
    {
        let spoiled = text.replacen(from, to, 1);
        assert_ne!(spoiled, text);
        let refused = fast_filter::read::<u8>(spoiled.as_bytes(), FuseLayout::XorfJson, NUMBERS);
        assert!(
            matches!(refused, Err(DecodeError::BadField { .. } | DecodeError::Malformed { .. })),
            "{from} -> {to}"
        );
    }
    println!("fuse/xorf_bfuse8_n3.serde.json: 1 filter");
}

fn built_ones_are_right<F: Fingerprint>() {
    for n in [0, 1, 2, 3, 10, 99, 1_000, 50_000_u64] {
        let non_members = 100_000;
        let twice = || (0..n).chain(0..n / 2).map(key);
        let expected = f64::from(non_members) * (-f64::from(F::BITS)).exp2();
        let band = expected + 6.0 * expected.sqrt() + 3.0;
        let fuse = fast_filter::build::<F, _>(twice(), NUMBERS).unwrap();
        let again: BinaryFuse<F> =
            fast_filter::read(&fuse_bytes(&fuse, FuseLayout::C), FuseLayout::C, NUMBERS).unwrap();
        assert_eq!((again.encode(), fuse.inserted()), (fuse.encode(), n), "{n}");
        let xor = xor::build::<F, _>(twice(), NUMBERS).unwrap();
        let again: Xor<F> =
            xor::read(&xor_bytes(&xor, xor::XorLayout::C), xor::XorLayout::C, NUMBERS).unwrap();
        assert_eq!(xor.inserted(), n);
        assert!((0..n).all(|i| fuse.has(key(i)) && xor.has(key(i)) && again.has(key(i))), "{n}");
        let non_members = || (n..n + u64::from(non_members as u32)).map(key);
        let wrong =
            [non_members().filter(|&i| fuse.has(i)).count(), non_members().filter(|&i| xor.has(i)).count()];
        assert!(wrong.iter().all(|&wrong| (wrong as f64) < band), "{n}: {wrong:?} of {expected}");
    }
}

#[test]
fn built_filters_contain_their_items_and_few_others() {
    built_ones_are_right::<u8>();
    built_ones_are_right::<u16>();
    built_ones_are_right::<u32>();
}

#[test]
fn items_that_are_not_numbers_are_hashed_to_one() {
    let names: BinaryFuse16 = fast_filter::build(["ada", "grace", "barbara"], ItemEncoding::Utf8).unwrap();
    assert!(names.has_text("ada") && !names.has_text("alan"));
    let number = mayhap::hash::named::xxhash::xxh3_64(b"ada", 0);
    assert!(names.may_contain(&number.to_le_bytes()), "the XXH3-64 of its bytes");
    // Eight bytes are a number already.
    assert!(!names.has_text("8 bytes!"));
    let eight: BinaryFuse16 = fast_filter::build(["8 bytes!"], ItemEncoding::Utf8).unwrap();
    assert!(eight.may_contain(&u64::from_le_bytes(*b"8 bytes!").to_le_bytes()));
    let other: BinaryFuse16 =
        fast_filter::read(&fuse_bytes(&names, FuseLayout::Go), FuseLayout::Go, ItemEncoding::Utf16Le)
            .unwrap();
    assert!(!other.has_text("ada"), "the encoding matters");
}

fn header(seed: u64, numbers: &[u32]) -> Vec<u8> {
    seed.to_le_bytes().into_iter().chain(numbers.iter().flat_map(|number| number.to_le_bytes())).collect()
}

#[test]
fn inconsistent_fields_are_rejected() {
    let slots = |front: Vec<u8>| [front, vec![0; 12]].concat();
    let read = |layout, numbers: &[u32]| {
        fast_filter::read::<u8>(&slots(header(9, numbers)), layout, NUMBERS).map(|_| ())
    };
    let bad = |field, got| Err(DecodeError::BadField { field, got });
    assert_eq!(read(FuseLayout::C, &[2, 4, 1, 4, 12]), Ok(()));
    assert_eq!(read(FuseLayout::Go, &[4, 3, 1, 4, 12]), Ok(()));
    assert_eq!(read(FuseLayout::Xorf, &[4, 3, 4]), Ok(()));
    for (numbers, refusal) in [
        ([13, 4, 1, 4, 12], bad("size", 13)),
        ([2, 3, 1, 4, 12], bad("segment length", 3)),
        ([2, 0, 1, 4, 12], bad("segment length", 0)),
        ([2, 1 << 19, 1, 1 << 19, 3 << 19], bad("slots to begin in", 1 << 19)),
        ([2, 4, 2, 4, 12], bad("segments", 2)),
        ([2, 4, 1, 5, 12], bad("slots to begin in", 5)),
        ([2, 4, 0, 0, 8], bad("slots to begin in", 0)),
        ([2, 4, 1, 4, 13], bad("number of slots", 13)),
        ([2, 4, 2, 8, 16], Err(DecodeError::TooShort { need: 44, got: 40 })),
        ([2, 2, 1, 2, 6], bad("fingerprint bits", 16)),
        ([2, 2, 2, 4, 8], Err(DecodeError::TrailingBytes { extra: 4 })),
        ([u32::MAX; 5], bad("segment length", u64::from(u32::MAX))),
    ] {
        assert_eq!(read(FuseLayout::C, &numbers), refusal, "{numbers:?}");
    }
    assert_eq!(read(FuseLayout::Go, &[4, 4, 1, 4, 12]), bad("segment length - 1", 4));
    assert_eq!(read(FuseLayout::Go, &[0, u32::MAX, 0, 0, 0]), bad("segment length - 1", u64::from(u32::MAX)));
    // Segments half as long as C would choose: Go tries that.
    let halved = [header(9, &[2, 1, 4, 8, 12]), vec![7; 12]].concat();
    let halved: BinaryFuse8 = fast_filter::read(&halved, FuseLayout::Go, NUMBERS).unwrap();
    assert_eq!(fuse_bytes(&halved, FuseLayout::C)[8..12], [0; 4], "no number of items leads to it");
    let refusal = fast_filter::write(&halved, FuseLayout::CPacked, &mut Vec::new()).unwrap_err();
    assert!(refusal.to_string().contains("follow from the number of items"), "{refusal}");
    assert_eq!(halved.through_our_file().encode(), halved.encode());
    // More slots than 32-bit numbers have room for.
    let huge = header(9, &[1 << 18, (1 << 18) - 1, 1 << 13, 1 << 31, (1 << 31) + (1 << 19)]);
    assert!(fast_filter::read::<u8>(&huge, FuseLayout::Go, NUMBERS).is_err());
    for block in [0, 1 << 31, u64::MAX, u64::MAX / 3 + 1] {
        let file = [[0; 8], block.to_le_bytes()].concat();
        let refused = xor::read::<u8>(&file, xor::XorLayout::C, NUMBERS);
        assert_eq!(refused.unwrap_err(), DecodeError::BadField { field: "block length", got: block });
    }
    // The four extra bytes after C's slots of 16 bits are optional and may have any value.
    let file = bytes("fuse/c_bfuse16_n10.bin");
    let exact = &file[..file.len() - 4];
    let odd = [exact, &[1, 2, 3, 4]].concat();
    for variant in [exact, &odd] {
        let read: BinaryFuse16 = fast_filter::read(variant, FuseLayout::C, NUMBERS).unwrap();
        assert_eq!(fuse_bytes(&read, FuseLayout::C)[..exact.len()], *exact);
    }
    for extra in [1, 2, 3, 5, 8] {
        let long = [exact, &vec![0; extra]].concat();
        assert!(fast_filter::read::<u16>(&long, FuseLayout::C, NUMBERS).is_err(), "{extra}");
    }
}

#[test]
fn packed_filters_that_c_cannot_write_are_rejected() {
    let file = bytes("fuse/c_bfuse8_packed_n100.bin");
    let read = |file: &[u8]| fast_filter::read::<u8>(file, FuseLayout::CPacked, NUMBERS).map(|_| ());
    let mut zero = file.clone();
    zero[40] = 0;
    assert_eq!(read(&zero), Err(DecodeError::BadField { field: "packed slot", got: 0 }));
    let mut more = file.clone();
    more[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&more), Err(DecodeError::TooShort { .. })));
    // Twelve slots have four bits to spare.
    let empty = [header(9, &[0]), vec![0, 0]].concat();
    assert_eq!(read(&empty), Ok(()));
    let stray = [header(9, &[0]), vec![0, 0b10_0000]].concat();
    assert_eq!(read(&stray), Err(DecodeError::StrayBit { bit: 13 }));
    assert!(fast_filter::read::<u32>(&empty, FuseLayout::CPacked, NUMBERS).is_err());
}

#[test]
fn filters_of_two_rules_do_not_mix() {
    let ours = BinaryFuse8::build(0..100_u64, 0).unwrap();
    let refusal = fast_filter::write(&ours, FuseLayout::Go, &mut Vec::new()).unwrap_err();
    assert!(refusal.to_string().contains("FastFilter"), "{refusal}");
    let ours = Xor8::build(0..100_u64, 0).unwrap();
    assert!(xor::write(&ours, xor::XorLayout::C, &mut Vec::new()).is_err());
    // Their numbers with our slots are still not their filter.
    let theirs: BinaryFuse8 = fast_filter::build(0..100_u64, NUMBERS).unwrap();
    let between = BinaryFuse8::build(0..100_u64, *theirs.scheme()).unwrap();
    assert!(between.has(7) && between.through_our_file().has(7));
    assert!(fast_filter::write(&between, FuseLayout::Go, &mut Vec::new()).is_err());
    // A placement of theirs with a hash of ours, and the other way about.
    let forge = |bytes: Vec<u8>, at: usize, value: &[u8]| {
        let mut forged = bytes;
        forged[at..at + value.len()].copy_from_slice(value);
        let checksum = mayhap::hash::named::xxhash::xxh3_64(&forged[..184], 0);
        forged[184..192].copy_from_slice(&checksum.to_le_bytes());
        BinaryFuse8::decode(&forged).map(|filter| filter.inserted())
    };
    let own = BinaryFuse8::build(0..100_u64, 0).unwrap().encode();
    assert_eq!(forge(own, 12, &[2]), Err(DecodeError::UnknownPlacement { got: 2 }));
    let theirs = theirs.encode();
    assert_eq!(forge(theirs.clone(), 12, &[3]), Err(DecodeError::UnknownPlacement { got: 3 }));
    let bad = |field, got| Err(DecodeError::BadField { field, got });
    assert_eq!(forge(theirs.clone(), 56, &[7]), bad("inserted", 7));
    assert_eq!(forge(theirs.clone(), 56, &[0]), Ok(0), "not counted");
    assert!(forge(theirs.clone(), 48, &[0; 8]).is_err(), "a capacity of 0");
    assert_eq!(forge(theirs.clone(), 72 + 16, &[1]), bad("shards", 1));
    assert!(forge(theirs.clone(), 72 + 24, &[19]).is_err(), "segments too long");
    assert_eq!(forge(theirs, 72 + 8, &[0xff; 8]), Ok(100), "any seed will do");
}

#[test]
fn no_items_make_a_filter_too() {
    let none: BinaryFuse32 = fast_filter::build(Vec::<u64>::new(), NUMBERS).unwrap();
    assert_eq!((none.inserted(), none.shape().slots()), (0, 12));
    assert!(!none.has(7));
    assert_eq!(fuse_bytes(&none, FuseLayout::C)[8..12], [0; 4]);
    assert_eq!(none.through_our_file().encode(), none.encode());
    let none: Xor32 = xor::build(Vec::<u64>::new(), NUMBERS).unwrap();
    assert_eq!((none.inserted(), none.shape().block_slots()), (0, 10));
    let one: Xor16 = xor::build([5_u64], NUMBERS).unwrap();
    assert!(one.has(5) && !one.has(6));
}

/// Damages a filter with these fields, and uses whatever is read.
fn fuse_survives<F: Fingerprint>(name: &str, specimen: &[u8], layout: FuseLayout, fields: &[(usize, usize)]) {
    // C's extra bytes after 16-bit slots are optional, and text may end in spaces.
    let free = layout == FuseLayout::XorfJson || layout == FuseLayout::C && F::BITS == 16;
    hostile::survives(name, specimen, fields, free, |bytes| {
        let filter = fast_filter::read::<F>(bytes, layout, NUMBERS)?;
        let mut answers = Answers::default();
        filter.may_contain_batch(&[1_u64, u64::MAX], &mut answers);
        assert_eq!(answers.get(0), Some(filter.may_contain(&1_u64)));
        let mut again = Vec::with_capacity(bytes.len());
        fast_filter::write(&filter, layout, &mut again).unwrap();
        // A size of 0 means unknown, and another may be written for it.
        let same = layout != FuseLayout::C || bytes[8..12] != [0; 4];
        assert!(free || !same || again == bytes, "a filter that is read is written back unchanged");
        assert!(bytes[0] % 16 != 0 || BinaryFuse::<F>::decode(&filter.encode()).is_ok());
        Ok(())
    });
}

#[test]
fn damaged_fuse_filters_are_survived() {
    let fields = [(0, 8), (8, 4), (12, 4), (16, 4), (20, 4), (24, 4)];
    fuse_survives::<u8>("c fuse 8", &bytes("fuse/c_bfuse8_n2.bin"), FuseLayout::C, &fields);
    let c = bytes("fuse/c_bfuse16_n2.bin");
    fuse_survives::<u16>("c fuse 16", &c, FuseLayout::C, &fields);
    fuse_survives::<u32>("go fuse", &bytes("fuse/go_bfuse32_n2.bin"), FuseLayout::Go, &fields);
    fuse_survives::<u8>("xorf fuse", &bytes("fuse/xorf_bfuse8_n2.bin"), FuseLayout::Xorf, &fields[..4]);
    let small: BinaryFuse16 = fast_filter::read(&c, FuseLayout::C, NUMBERS).unwrap();
    fuse_survives::<u16>(
        "packed fuse",
        &fuse_bytes(&small, FuseLayout::CPacked),
        FuseLayout::CPacked,
        &fields[..2],
    );
    fuse_survives::<u16>("json fuse", &fuse_bytes(&small, FuseLayout::XorfJson), FuseLayout::XorfJson, &[]);
}

#[test]
fn damaged_xor_filters_are_survived() {
    let xor: Xor8 = xor::read(&bytes("fuse/c_xor8_n1.bin"), xor::XorLayout::C, NUMBERS).unwrap();
    for (name, layout, fields) in
        [("c xor", xor::XorLayout::C, &[(0, 8), (8, 8)][..]), ("json xor", xor::XorLayout::XorfJson, &[])]
    {
        let specimen = xor_bytes(&xor, layout);
        hostile::survives(name, &specimen, fields, layout == xor::XorLayout::XorfJson, |bytes| {
            let filter = xor::read::<u8>(bytes, layout, NUMBERS)?;
            let _ = (filter.may_contain(&1_u64), filter.expected_fpr());
            let again = xor_bytes(&filter, layout);
            assert!(
                layout == xor::XorLayout::XorfJson || again == bytes,
                "a filter that is read is written back unchanged"
            );
            assert!(bytes[0] % 16 != 0 || Xor8::decode(&filter.encode()).is_ok());
            Ok(())
        });
    }
}
