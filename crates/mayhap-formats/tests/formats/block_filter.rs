//! BIP 158's Golomb-coded sets.

use mayhap::{Answers, BuildError, DecodeError, Gcs, GcsBuilder, ItemEncoding};
use mayhap_formats::block_filter::{self, BASIC, Parameters};
use mayhap_formats::{Resemblance, WriteError};

use crate::hostile;
use crate::vectors::{Given, generated, json, number, offsets, text, unhex};

fn written(set: &Gcs) -> Vec<u8> {
    let mut bytes = Vec::new();
    block_filter::write(set, &mut bytes).unwrap();
    bytes
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap()
}

/// Converts a displayed hash into its bytes.
fn shown(hex: &str) -> [u8; 32] {
    let mut hash: [u8; 32] = array(&unhex(hex));
    hash.reverse();
    hash
}

/// Built, read, and read from our own file: all three, and all of them have these bytes again.
fn all_ways(items: &[Given], bytes: &[u8], parameters: Parameters, key: [u8; 16], name: &str) -> [Gcs; 3] {
    let encoding = ItemEncoding::Utf8;
    let built = block_filter::build(items, parameters, key, encoding).unwrap();
    let read = block_filter::read(bytes, parameters, key, encoding).unwrap();
    let ours = Gcs::decode(&read.encode()).unwrap();
    assert_eq!(ours.scheme(), read.scheme(), "{name}");
    assert_eq!(ours.shape(), read.shape(), "{name}");
    assert_eq!(built.encode(), read.encode(), "{name}");
    let sets = [built, read, ours];
    for set in &sets {
        assert_eq!(written(set), bytes, "{name}");
        assert_eq!(block_filter::parameters(set), Some(parameters), "{name}");
        assert_eq!(set.inserted(), items.len() as u64, "{name}");
        assert_eq!(set.shape().range(), items.len().max(1) as u64 * parameters.values_per_item, "{name}");
        assert!(items.iter().all(|item| set.may_contain(item)), "{name}");
        assert!(items.iter().all(|item| set.may_contain_hash(set.hash(item))), "{name}");
        let mut answers = Answers::default();
        set.may_contain_batch(items, &mut answers);
        assert_eq!(answers.maybe_count(), items.len(), "{name}");
    }
    assert_eq!(block_filter::resembles(bytes, parameters), Resemblance::Could, "{name}");
    // Another key, another place.
    let mut other = key;
    other[3] ^= 1;
    let confused = block_filter::read(bytes, parameters, other, encoding).unwrap();
    if items.len() > 2 {
        assert!(items.iter().any(|item| !confused.may_contain(item)), "{name}: the key matters");
        let coarser = Parameters { low_bits: parameters.low_bits - 1, ..parameters };
        assert!(block_filter::read(bytes, coarser, key, encoding).is_err(), "{name}: P matters");
    }
    sets
}

#[test]
fn the_blocks_of_the_bip_have_these_filters() {
    let file = json("bitcoin/bip158_items.json");
    let basic = Parameters { low_bits: number(&file, "P") as u32, values_per_item: number(&file, "M") };
    assert_eq!(basic, BASIC);
    let cases = file["cases"].as_array().unwrap();
    let rows = json("bitcoin/bip158_testnet-19.json");
    let rows = rows.as_array().unwrap();
    for case in cases {
        let name = format!("block {}", number(case, "block_height"));
        let items: Vec<Given> = case["items_hex"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| Given::Bytes(unhex(item.as_str().unwrap())))
            .collect();
        let key = block_filter::key_of_block(&shown(text(case, "block_hash")));
        assert_eq!(key.to_vec(), unhex(text(case, "siphash_key_hex")), "{name}");
        let bytes = unhex(text(case, "filter_hex"));
        all_ways(&items, &bytes, basic, key, &name);

        // The same block in the vectors as they were published, with the header before it.
        let row = rows.iter().find(|row| row[0].as_u64() == case["block_height"].as_u64()).unwrap();
        assert_eq!(row[1].as_str(), case["block_hash"].as_str(), "{name}");
        assert_eq!(row[5].as_str(), case["filter_hex"].as_str(), "{name}");
        let header = block_filter::header(&bytes, &shown(row[4].as_str().unwrap()));
        assert_eq!(header, shown(row[6].as_str().unwrap()), "{name}");
        assert_eq!(header, shown(text(case, "filter_header_hex")), "{name}");
    }
    assert_eq!((cases.len(), rows.len()), (10, 11), "the first row names the columns");
    println!("bitcoin/bip158_items.json: {} blocks", cases.len());
    println!("bitcoin/bip158_testnet-19.json: {} blocks", rows.len() - 1);
}

#[test]
fn sets_of_other_parameters_have_these_bytes_and_answers() {
    let file = json("bitcoin/gcs_generic.json");
    let cases = file["cases"].as_array().unwrap();
    for case in cases {
        let name = text(case, "name");
        let parameters =
            Parameters { low_bits: number(case, "P") as u32, values_per_item: number(case, "M") };
        let key = array(&unhex(text(case, "siphash_key_hex")));
        let bytes = unhex(text(case, "filter_hex"));
        let items = generated(&case["items_generator"]);
        let probes = generated(&case["probes_generator"]);
        let wrong = offsets(case, "probe_false_positive_offsets");
        for set in all_ways(&items, &bytes, parameters, key, name) {
            let mut answers = Answers::default();
            set.may_contain_batch(&probes, &mut answers);
            for (i, probe) in probes.iter().enumerate() {
                assert_eq!(set.may_contain(probe), wrong.contains(&i), "{name}: {probe:?}");
                assert_eq!(answers.get(i), Some(wrong.contains(&i)), "{name}: {probe:?}");
            }
        }
        // Another M means other values: answers differ, or the last value is past the range.
        if items.len() > 2 {
            let m = parameters.values_per_item;
            let other = Parameters { values_per_item: m + m / 2, ..parameters };
            let confused = block_filter::read(&bytes, other, key, ItemEncoding::Utf8).unwrap();
            assert!(items.iter().any(|item| !confused.may_contain(item)), "{name}: M matters");
            let less = Parameters { values_per_item: m / 4, ..parameters };
            let refused = block_filter::read(&bytes, less, key, ItemEncoding::Utf8);
            assert!(matches!(refused, Err(DecodeError::BadField { field: "value", .. })), "{name}");
        }
    }
    assert_eq!(cases.len(), 6);
    println!("bitcoin/gcs_generic.json: {} sets", cases.len());
}

const CROWDED: Parameters = Parameters { low_bits: 1, values_per_item: 2 };

/// Five hundred items share a thousand values, so many collide.
fn crowded() -> Gcs {
    let items = (0..500).map(|i| format!("item {i}"));
    block_filter::build(items, CROWDED, [7; 16], ItemEncoding::Utf8).unwrap()
}

#[test]
fn items_that_share_a_value_are_all_kept() {
    let set = crowded();
    let values: Vec<u64> = set.values().collect();
    assert_eq!((values.len() as u64, set.inserted()), (500, 500));
    let mut different = values.clone();
    different.dedup();
    assert!(different.len() < 450 && values.is_sorted(), "{}", different.len());
    // The rate is that of the different values.
    assert_eq!(set.expected_fpr(), different.len() as f64 / 1_000.0);
    let bytes = written(&set);
    // Plainly: N, then every delta in bits.
    let mut bits = String::new();
    let mut last = 0;
    for value in values {
        let delta = value - last;
        bits.extend(std::iter::repeat_n('1', (delta >> 1) as usize));
        bits += &format!("0{}", delta & 1);
        last = value;
    }
    bits.extend(std::iter::repeat_n('0', bits.len().next_multiple_of(8) - bits.len()));
    let mut plain = vec![0xfd, (500 & 0xff) as u8, (500 >> 8) as u8];
    plain.extend((0..bits.len()).step_by(8).map(|at| u8::from_str_radix(&bits[at..at + 8], 2).unwrap()));
    assert_eq!(bytes, plain);
    let read = block_filter::read(&bytes, CROWDED, [7; 16], ItemEncoding::Utf8).unwrap();
    let ours = Gcs::decode(&read.encode()).unwrap();
    assert_eq!((written(&read), written(&ours)), (plain.clone(), plain));
    assert!((0..500).all(|i| ours.may_contain(&format!("item {i}"))));
    // Sorted questions go on where the last one stopped; the answers are the same.
    let mut hashes: Vec<_> = (0..4_000).map(|i| read.hash(&format!("item {i}"))).collect();
    for _ in 0..2 {
        let mut answers = Answers::default();
        read.may_contain_hash_batch(&hashes, &mut answers);
        for (i, &hash) in hashes.iter().enumerate() {
            assert_eq!(answers.get(i), Some(read.may_contain_hash(hash)));
        }
        hashes.sort_unstable();
    }
}

#[test]
fn items_that_come_twice_count_once() {
    let encoding = ItemEncoding::Utf8;
    let once = block_filter::build(["a", "b", "c"], BASIC, [1; 16], encoding).unwrap();
    let twice = block_filter::build(["c", "a", "b", "a", "c"], BASIC, [1; 16], encoding).unwrap();
    assert_eq!(written(&once), written(&twice));
    let none = block_filter::build(Vec::<String>::new(), BASIC, [1; 16], encoding).unwrap();
    assert_eq!(written(&none), [0]);
    assert!(!none.may_contain("a") && none.inserted() == 0 && none.expected_fpr() == 0.0);
    assert_eq!(Gcs::decode(&none.encode()).unwrap().encode(), none.encode());
}

#[test]
fn large_sets_keep_their_bytes() {
    for (parameters, items) in [
        (BASIC, 70_000_u64),
        (Parameters { low_bits: 0, values_per_item: 1 }, 10_000),
        (Parameters { low_bits: 5, values_per_item: 400 }, 20_000),
        (Parameters { low_bits: 40, values_per_item: 1 << 40 }, 2_000),
    ] {
        let set = block_filter::build(0..items, parameters, [9; 16], ItemEncoding::U64Le).unwrap();
        let bytes = written(&set);
        let read = block_filter::read(&bytes, parameters, [9; 16], ItemEncoding::U64Le).unwrap();
        assert_eq!(read.encode(), set.encode(), "{parameters:?}");
        assert_eq!(written(&Gcs::decode(&set.encode()).unwrap()), bytes, "{parameters:?}");
        assert!((0..items).all(|item| read.may_contain(&item)), "{parameters:?}");
        let wrong = (items..items + 20_000).filter(|item| read.may_contain(item)).count() as f64 / 20_000.0;
        assert!((wrong - read.expected_fpr()).abs() < 0.02, "{parameters:?}: {wrong}");
    }
}

#[test]
fn bytes_that_are_not_a_set_are_rejected() {
    let read = |bytes: &[u8]| block_filter::read(bytes, BASIC, [0; 16], ItemEncoding::Bytes);
    for (bytes, cause) in [
        (&[][..], DecodeError::TooShort { need: 1, got: 0 }),
        (&[0xfd, 1, 0, 0x9d, 0xfc, 0xa8], DecodeError::BadField { field: "N", got: 1 }),
        (&[1, 0x9d, 0xfc], DecodeError::TooShort { need: 4, got: 3 }),
        (&[1, 0xfd, 0xfc, 0xa8], DecodeError::TooShort { need: 5, got: 4 }),
        (&[1, 0x1d, 0xfc, 0xa8, 0], DecodeError::TrailingBytes { extra: 1 }),
        (&[0, 0], DecodeError::TrailingBytes { extra: 1 }),
        (&[1, 0x9d, 0xfc, 0xa9], DecodeError::StrayBit { bit: 23 }),
        (&[1, 0xd8, 0, 0, 0], DecodeError::BadField { field: "value", got: (2 << 19) + (3 << 17) }),
    ] {
        assert_eq!(read(bytes).unwrap_err(), cause, "{bytes:?}");
    }
    assert!(matches!(read(&[0xff; 9]), Err(DecodeError::Unbuildable(_))), "more items than there can be");
    assert!(matches!(read(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0]), Err(DecodeError::TooShort { .. })));
    for (low_bits, values_per_item) in [(57, 1 << 57), (19, 0), (0, 1 << 40), (19, u64::MAX)] {
        let parameters = Parameters { low_bits, values_per_item };
        assert!(block_filter::build(["a", "b"], parameters, [0; 16], ItemEncoding::Utf8).is_err());
        assert!(
            block_filter::read(&[1, 0, 0, 0, 0, 0, 0, 0, 0], parameters, [0; 16], ItemEncoding::Utf8)
                .is_err()
        );
    }
    // A code so long that its number would overflow.
    let parameters = Parameters { low_bits: 56, values_per_item: 1 << 40 };
    let endless = [&[1][..], &[0xff; 32], &[0x00; 8]].concat();
    assert!(block_filter::read(&endless, parameters, [0; 16], ItemEncoding::Bytes).is_err());
}

#[test]
fn sets_of_two_rules_do_not_mix() {
    let theirs = crowded();
    let ours = Gcs::build(["a"], 0.01, 0).unwrap();
    let refusal = block_filter::write(&ours, &mut Vec::new()).unwrap_err();
    assert!(matches!(refusal, WriteError::OtherPlacement { .. }));
    assert!(refusal.to_string().contains("one range"), "{refusal}");
    assert_eq!(block_filter::parameters(&ours), None);
    // Their hash in our buckets is still not their set.
    let between = Gcs::build(["a"], 0.01, *theirs.scheme()).unwrap();
    assert!(between.may_contain("a") && Gcs::decode(&between.encode()).is_ok());
    assert!(block_filter::write(&between, &mut Vec::new()).is_err());
    // The range follows from the number of items: nothing can be added.
    let mut united = crowded();
    assert!(united.union(&theirs).is_err() && united.union(&ours).is_err());
    assert_eq!(united.encode(), theirs.encode());
    assert!(matches!(GcsBuilder::new(*theirs.shape(), 0), Err(BuildError::ForeignShape { .. })));
    assert!(Gcs::with_shape(["a"], *theirs.shape(), *theirs.scheme()).is_err());
}

/// Our own file of such a set with one number changed, its checksum made right again.
#[test]
fn forged_headers_of_our_own_format_are_rejected() {
    let honest = crowded().encode();
    let mut refused = 0;
    for at in (12..16).step_by(2).chain((48..136).step_by(8)) {
        for change in [1_u64, 2, 3, 64, 1 << 32, u64::MAX] {
            let mut forged = honest.clone();
            let width = if at < 16 { 2 } else { 8 };
            let mut field = [0; 8];
            field[..width].copy_from_slice(&forged[at..at + width]);
            let field = u64::from_le_bytes(field).wrapping_add(change).to_le_bytes();
            forged[at..at + width].copy_from_slice(&field[..width]);
            if forged == honest {
                continue;
            }
            let checksum = mayhap::hash::named::xxhash::xxh3_64(&forged[..184], 0);
            forged[184..192].copy_from_slice(&checksum.to_le_bytes());
            if let Ok(set) = Gcs::decode(&forged) {
                // The rate may be wrong; the written bytes must still be a set.
                panic!("byte {at} + {change}: {:?}", set.shape());
            }
            refused += 1;
        }
    }
    assert!(refused > 60, "{refused}");
}

#[test]
fn damaged_sets_are_survived() {
    for (name, parameters, items) in [("block filter", BASIC, 9), ("crowded set", CROWDED, 50)] {
        let items = (0..items).map(|i| format!("item {i}"));
        let specimen = written(&block_filter::build(items, parameters, [3; 16], ItemEncoding::Utf8).unwrap());
        hostile::survives(name, &specimen, &[(0, 1), (1, 2), (1, 4), (1, 8)], false, |bytes| {
            let set = block_filter::read(bytes, parameters, [3; 16], ItemEncoding::Utf8)?;
            let _ = (set.may_contain("item 7"), set.expected_fpr(), set.values().last());
            let mut again = Vec::with_capacity(bytes.len());
            block_filter::write(&set, &mut again).unwrap();
            assert_eq!(again, bytes, "a set that is read is written back unchanged");
            assert!(bytes[0] % 16 != 0 || Gcs::decode(&set.encode()).is_ok());
            Ok(())
        });
    }
}
