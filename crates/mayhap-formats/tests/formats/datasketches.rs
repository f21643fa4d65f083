//! Apache DataSketches' images.

use mayhap::{Answers, Bloom, BuildError, DecodeError, ItemEncoding, Shared};
use mayhap_formats::datasketches::{self, DEFAULT_SEED, Library};
use mayhap_formats::{Resemblance, WriteError};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{Given, bytes, float, items_as, json, number, probes_as, text, unhex};

fn encoding(case: &Value) -> ItemEncoding {
    match text(case, "item_kind") {
        "string" => ItemEncoding::Utf8,
        "long" => ItemEncoding::I64Le,
        "double" => ItemEncoding::F64Le,
        other => panic!("items of kind {other} are not known"),
    }
}

/// Items listed one by one are text, also the numbers.
fn listed(case: &Value, item: &str) -> Given {
    match encoding(case) {
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

fn image(case: &Value) -> Vec<u8> {
    match case["serialized_hex"].as_str() {
        Some(hex) => unhex(hex),
        None => bytes(&format!("datasketches/{}", text(case, "file"))),
    }
}

fn written(filter: &Bloom) -> Vec<u8> {
    let mut image = Vec::new();
    datasketches::write(filter, &mut image).unwrap();
    image
}

fn check_case(case: &Value) {
    let name = text(case, "name");
    let (image, items, probed) = (image(case), items(case), probes(case));
    let (n, fpp, seed) = (number(case, "n"), float(case, "fpp"), number(case, "seed"));

    // Built from the items: same parameters, same bytes.
    let mut built = datasketches::create(n, fpp, Library::Java, seed, encoding(case)).unwrap();
    assert_eq!(built.shape().bits(), number(case, "capacity_bits"), "{name}");
    assert_eq!(u64::from(built.shape().probes()), number(case, "num_hashes"), "{name}");
    built.insert_batch(&items);
    assert_eq!(written(&built), image, "{name}");
    let (bits, probes) = (built.shape().bits(), built.shape().probes());
    let mut one_by_one = datasketches::create_with_bits(bits, probes, seed, encoding(case)).unwrap();
    items.iter().for_each(|item| _ = one_by_one.insert(item));
    assert_eq!(written(&one_by_one), image, "{name}");

    // Read from the bytes: the same answers, the same bytes again, through our own format as well.
    let read = datasketches::read(&image, encoding(case)).unwrap();
    let ours = Bloom::decode(&read.encode()).unwrap();
    assert_eq!(ours.scheme(), read.scheme(), "{name}: our own file remembers seed and encoding");
    for filter in [&built, &read, &ours] {
        assert_eq!(filter.ones(), number(case, "bits_used"), "{name}");
        assert!(items.iter().all(|item| filter.may_contain(item)), "{name}");
        for (probe, answer) in &probed {
            assert_eq!(filter.may_contain(probe), *answer, "{name}: {probe:?}");
        }
        assert_eq!(written(filter), image, "{name}");
    }
    assert_eq!(datasketches::resembles(&image), Resemblance::Could, "{name}");

    // Under another seed or encoding the filter forgets its own items: the tests above could have failed.
    let mut other_seed = image.clone();
    other_seed[8] ^= 1;
    let other = match encoding(case) {
        ItemEncoding::Utf8 => ItemEncoding::Utf16Le,
        ItemEncoding::F64Le => ItemEncoding::F32Le,
        _ => ItemEncoding::I32Le,
    };
    for spoiled in
        [datasketches::read(&other_seed, encoding(case)).unwrap(), datasketches::read(&image, other).unwrap()]
    {
        assert!(items.is_empty() || items.iter().any(|item| !spoiled.may_contain(item)), "{name}");
    }
}

#[test]
fn every_case_is_rebuilt_read_and_written() {
    let cases = json("datasketches/cases.json");
    let cases = cases["cases"].as_array().unwrap();
    cases.iter().for_each(check_case);
    assert_eq!(cases.len(), 5);
    println!("datasketches/cases.json: {} cases", cases.len());
}

#[test]
fn the_ones_are_counted_again_whatever_the_image_says() {
    let mut filter = datasketches::create(20, 0.01, Library::Java, DEFAULT_SEED, ItemEncoding::Utf8).unwrap();
    let count = |filter: &Bloom| {
        let mut image = Vec::new();
        datasketches::write_counted(filter, &mut image).unwrap();
        image
    };
    assert_eq!(count(&filter), written(&filter), "an empty image has no count");
    filter.insert("ada");
    let (uncounted, mut counted) = (written(&filter), count(&filter));
    assert_eq!(uncounted[24..32], [0xff; 8]);
    assert_eq!(counted[24..32], filter.ones().to_le_bytes());
    assert_eq!((&uncounted[..24], &uncounted[32..]), (&counted[..24], &counted[32..]));

    let read = datasketches::read(&counted, ItemEncoding::Utf8).unwrap();
    assert_eq!((read.ones(), count(&read), written(&read)), (filter.ones(), counted.clone(), uncounted));
    // The bytes that C++ leaves there when `query_and_update` follows `update`.
    counted[24] = 1;
    assert_eq!(datasketches::read(&counted, ItemEncoding::Utf8).unwrap().ones(), filter.ones());
    counted[24] = 193;
    assert_eq!(
        datasketches::read(&counted, ItemEncoding::Utf8).unwrap_err(),
        DecodeError::BadField { field: "number of ones", got: 193 }
    );
    // A filter allocated in place for future items does not have the short form.
    let mut in_place = counted[..32].to_vec();
    in_place[24] = 0;
    in_place.extend([0; 24]);
    let empty = datasketches::read(&in_place, ItemEncoding::Utf8).unwrap();
    assert_eq!((empty.ones(), written(&empty).len()), (0, 24));
}

#[test]
fn empty_text_is_ignored_and_never_found() {
    let create = || datasketches::create(20, 0.01, Library::Java, 7, ItemEncoding::Utf8).unwrap();
    let mut filter = create();
    assert!(!filter.insert("") && filter.insert_batch(&["", ""]) == 0);
    assert_eq!((filter.ones(), filter.inserted()), (0, 0));
    assert_eq!(filter.insert_batch(&["", "ada", "", "grace"]), 2);
    let mut without = create();
    without.insert_batch(&["ada", "grace"]);
    assert_eq!(written(&filter), written(&without));

    // Not even in a filter that answers *maybe* to everything else, by no method of lookup.
    let mut full = written(&filter);
    full[32..].fill(0xff);
    for words in [3, 1 << 21] {
        // Batches of large filters are answered by other code.
        full[16..20].copy_from_slice(&u32::to_le_bytes(words));
        full.resize(32 + 8 * words as usize, 0xff);
        let mut full = datasketches::read(&full, ItemEncoding::Utf8).unwrap();
        assert!(!full.may_contain("") && !full.may_contain_hash(full.hash("")) && full.may_contain("x"));
        let items = ["a", "", "b", ""];
        let mut answers = Answers::new();
        full.may_contain_batch(&items, &mut answers);
        assert_eq!(answers.iter().collect::<Vec<_>>(), [true, false, true, false], "{words} words");
        let hashes = items.map(|item| full.hash(item));
        full.may_contain_hash_batch(&hashes, &mut answers);
        assert_eq!(answers.iter().collect::<Vec<_>>(), [true, false, true, false], "{words} words");
        assert!(full.may_contain(b""), "an empty byte string is an item");
        assert!(!full.insert("") && !full.insert(b""));
    }
    assert!(filter.insert(b"") && filter.may_contain(b""));

    let shared = Shared::from(create());
    assert!(!shared.insert("") && shared.insert_batch(&["", "ada", "grace"]) == 2 && !shared.may_contain(""));
    assert_eq!(written(&shared.into_inner()), written(&without));
}

#[test]
fn doubles_are_text_and_integers_any_width() {
    let filled = |items, text: &str| {
        let mut filter = datasketches::create(20, 0.01, Library::Java, 0, items).unwrap();
        filter.insert(text);
        filter
    };
    let doubles = filled(ItemEncoding::F64Le, "0.0");
    assert!(doubles.may_contain("0") && doubles.may_contain(&0_u8) && doubles.may_contain("0e5"));
    assert!(!doubles.may_contain("-0.0"), "as in Java");
    assert!(filled(ItemEncoding::F64Le, "NaN").may_contain(&0x7ff8_0000_0000_0000_u64.to_le_bytes()));
    assert!(filled(ItemEncoding::I64Le, "-7").may_contain(&-7_i8));
    let large = filled(ItemEncoding::U64Le, "18446744073709551615");
    assert!(large.may_contain(&u64::MAX) && !large.may_contain(&255_u8));
}

#[test]
fn the_libraries_compute_the_same_sizes_except_for_powers_of_two() {
    for (n, fpp, java, cpp) in
        [(20, 0.01, (192, 7), (192, 7)), (1_000, 0.01, (9_586, 7), (9_586, 7)), (10, 0.5, (15, 2), (15, 1))]
    {
        assert_eq!(datasketches::size(n, fpp, Library::Java).unwrap(), java);
        assert_eq!(datasketches::size(n, fpp, Library::Cpp).unwrap(), cpp);
    }
}

#[test]
fn numbers_that_datasketches_rejects_are_rejected() {
    let create = |n, fpp| datasketches::create(n, fpp, Library::Cpp, 0, ItemEncoding::Utf8);
    assert!(create(0, 0.01).is_err() && create(10, 0.0).is_err() && create(10, 1.0).is_err());
    assert!(matches!(
        create(1 << 30, 0.01),
        Err(BuildError::BitsOutOfRange { limit, .. }) if limit == 1 << 32
    ));
    let with_bits = |bits, probes| datasketches::create_with_bits(bits, probes, 0, ItemEncoding::Utf8);
    assert!(with_bits(0, 1).is_err() && with_bits(u64::MAX, 1).is_err());
    assert!(with_bits(64, 0).is_err() && with_bits(64, 256).is_err());
    assert_eq!(with_bits(65, 255).unwrap().shape().bits(), 128);

    let filter = |items: &[&str]| {
        let mut filter = with_bits(64, 3).unwrap();
        filter.insert_batch(items);
        filter
    };
    let (empty, image) = (written(&filter(&[])), written(&filter(&["ada"])));
    let spoiled = |image: &[u8], at: usize, field: &[u8]| {
        let mut image = image.to_vec();
        image[at..at + field.len()].copy_from_slice(field);
        datasketches::read(&image, ItemEncoding::Utf8).unwrap_err()
    };
    let bad = |field, got| DecodeError::BadField { field, got };
    assert_eq!(spoiled(&image, 0, &[3]), bad("preamble", 3));
    assert_eq!(spoiled(&empty, 0, &[4]), bad("preamble", 4));
    assert_eq!(spoiled(&image, 1, &[2]), bad("version", 2));
    assert_eq!(spoiled(&image, 2, &[20]), bad("family", 20));
    assert_eq!(spoiled(&image, 3, &[5]), bad("flags", 5));
    assert_eq!(spoiled(&image, 6, &[1]), bad("unused bytes after the number of hashes", 1));
    assert_eq!(spoiled(&image, 20, &[1]), bad("unused bytes after the number of words", 1));
    assert_eq!(spoiled(&image, 16, &[1, 0, 0, 4]), bad("number of words", (1 << 26) + 1));
    assert_eq!(spoiled(&image, 16, &[0, 0, 0, 4]), DecodeError::TooShort { need: 32 + (1 << 29), got: 40 });
    assert!(matches!(spoiled(&image, 4, &[0, 0]), DecodeError::Unbuildable(_)), "no probes");
    assert!(matches!(spoiled(&image, 4, &[0, 1]), DecodeError::Unbuildable(_)), "256 probes");
    assert!(matches!(spoiled(&image, 16, &[0]), DecodeError::Unbuildable(_)), "no words");
    let too_large = DecodeError::Unbuildable(BuildError::TooLarge { bytes: 1 << 29, limit: 64 << 20 });
    assert_eq!(spoiled(&empty, 16, &[0, 0, 0, 4]), too_large, "24 bytes do not get 512 MiB");
    let refusal = datasketches::read_within(&empty, 63, ItemEncoding::Utf8).unwrap_err();
    assert_eq!(refusal, DecodeError::Unbuildable(BuildError::TooLarge { bytes: 64, limit: 63 }));
    assert!(datasketches::read_within(&image, 0, ItemEncoding::Utf8).is_ok(), "it has its bytes");

    let ours = Bloom::for_capacity(10, 0.01, 0).unwrap();
    let refusal = datasketches::write(&ours, &mut Vec::new()).unwrap_err();
    assert!(matches!(refusal, WriteError::OtherPlacement { .. }));
    assert!(refusal.to_string().contains("cannot be converted without its items"), "{refusal}");
    let seeded = datasketches::create_with_bits(64, 3, 1, ItemEncoding::Utf8).unwrap();
    assert!(filter(&[]).union(&seeded).is_err() && filter(&[]).union(&filter(&["ada"])).is_ok());
}

#[test]
fn damaged_images_are_survived() {
    let fields = &[(0, 1), (1, 1), (2, 1), (3, 1), (4, 2), (6, 2), (8, 8), (16, 4), (20, 4), (24, 8)];
    let mut filter = datasketches::create(13, 1e-4, Library::Java, DEFAULT_SEED, ItemEncoding::Utf8).unwrap();
    let empty = written(&filter);
    filter.insert("ada");
    for (name, image, fields) in
        [("datasketches", &written(&filter), &fields[..]), ("datasketches, empty", &empty, &fields[..9])]
    {
        hostile::survives(name, image, fields, false, |bytes| {
            let mut filter = datasketches::read_within(bytes, 1 << 13, ItemEncoding::Utf8)?;
            filter.insert("grace");
            assert!(filter.may_contain("grace"));
            let _ = (filter.expected_fpr(), written(&filter), filter.encode());
            Ok(())
        });
    }
}
