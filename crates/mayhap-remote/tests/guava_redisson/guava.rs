//! Guava's bit positions by hand.

use mayhap::ItemEncoding;
use mayhap::hash::named::murmur3;
use mayhap_formats::guava as codec;
use mayhap_remote::guava::{GuavaBitmap, GuavaImage, GuavaShape, Rounding, Strategy};
use mayhap_remote::{Answer, Inserted, Link, RemoteError};
use mayhap_testkit::host::{Talk, Wire};
use serde_json::Value;

use crate::cases::{self, Given, bytes, float, number, text};
use crate::{expected, only_items, server};

fn encoding(case: &Value) -> ItemEncoding {
    match text(case, "funnel") {
        "stringFunnel(UTF-8)" => ItemEncoding::Utf8,
        "stringFunnel(UTF-16LE)" | "unencodedCharsFunnel" => ItemEncoding::Utf16Le,
        "integerFunnel" => ItemEncoding::I32Le,
        "longFunnel" => ItemEncoding::I64Le,
        "byteArrayFunnel" => ItemEncoding::Bytes,
        other => panic!("unknown funnel {other}"),
    }
}

/// In the list, numbers are decimal text and byte arrays are hex.
fn given(case: &Value, item: &Value) -> Given {
    let item = item.as_str().unwrap();
    match text(case, "funnel") {
        "byteArrayFunnel" => Given::Bytes(cases::unhex(item)),
        "integerFunnel" => Given::I32(item.parse().unwrap()),
        "longFunnel" => Given::I64(item.parse().unwrap()),
        _ => Given::Text(item.to_owned()),
    }
}

/// The bits of a Guava stream in the order of Redis: bit i of the words is bit i of the string.
fn in_redis_order(stream: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; stream.len() - 6];
    for (word, eight) in stream[6..].chunks(8).enumerate() {
        let word_bits = u64::from_be_bytes(eight.try_into().unwrap());
        for bit in (0..64).filter(|bit| word_bits >> bit & 1 == 1) {
            let position = word * 64 + bit;
            bytes[position / 8] |= 0x80 >> (position % 8);
        }
    }
    bytes
}

async fn check_case(case: &Value, rounding: Rounding, link: &Link, talk: &mut Talk) {
    let name = text(case, "name");
    let stream = bytes(case, "serialized", "guava");
    let strategy = if number(case, "strategy_ordinal") == 0 { Strategy::Mitz32 } else { Strategy::Mitz64 };
    let (n, fpp) = (number(case, "expected_insertions"), float(case, "fpp"));
    let shape = GuavaShape::sized(n, fpp, rounding, strategy).unwrap();
    assert_eq!(shape.bits(), number(case, "num_bits_requested"), "{name}");
    let shape = shape.in_words().unwrap();
    assert_eq!(u64::from(shape.probes()), number(case, "num_hash_functions"), "{name}");
    let items = cases::items(case, |item| given(case, item));
    let probes = cases::probes(case, |item| given(case, item));

    talk.must(&["FLUSHALL"]);
    let bitmap = GuavaBitmap::new(link, name, shape, encoding(case));
    bitmap.create().await.unwrap();
    let added = bitmap.insert(&items).await;
    assert!(added.all_inserted(), "{name}: {:?}", added.error());
    assert_eq!(added.count(Inserted::New) as u64, number(case, "puts_that_changed_bits"), "{name}");
    assert_eq!(talk.must(&["GET", name]).bytes(), in_redis_order(&stream), "{name}");
    assert_eq!(bitmap.estimated_items().await.unwrap(), number(case, "approximate_element_count"), "{name}");

    // The stream as a bitmap, with a marker.
    let marked = GuavaBitmap::new(link, "marked", shape, encoding(case)).with_marker();
    let image = GuavaImage::of(&codec::read(&stream, encoding(case)).unwrap()).unwrap();
    marked.replace_with(&image).await.unwrap();
    assert_eq!(marked.estimated_items().await.unwrap(), number(case, "approximate_element_count"), "{name}");
    for bitmap in [&bitmap, &marked] {
        assert_eq!(bitmap.may_contain(&only_items(&probes)).await.as_slice(), expected(&probes), "{name}");
        assert_eq!(bitmap.may_contain(&items).await.count(Answer::Maybe), items.len(), "{name}");
    }

    // With the other strategy it does not find its members, so the checks above can fail.
    if items.len() > 5 {
        let other = if strategy == Strategy::Mitz32 { Strategy::Mitz64 } else { Strategy::Mitz32 };
        let other = GuavaShape::exactly(shape.bits(), shape.probes(), other).unwrap();
        let spoiled = GuavaBitmap::new(link, name, other, encoding(case));
        assert!(spoiled.may_contain(&items).await.count(Answer::No) > 0, "{name}");
    }
}

#[tokio::test]
async fn every_case_of_the_real_guava_is_inserted_and_looked_up() {
    let Some((_host, link, mut talk)) = server().await else { return };
    let mut counted = 0;
    for (file, rounding) in
        [("guava/cases.json", Rounding::Until33), ("guava/cases_k33.json", Rounding::Since33)]
    {
        for case in &cases::cases(file) {
            check_case(case, rounding, &link, &mut talk).await;
            counted += 1;
        }
    }
    assert!(counted > 32, "{counted} cases");
}

/// The offsets as Java programs compute them by hand: `h1 + i * h2` in 32 bits, flipped if that is negative,
/// modulo the unrounded number of bits.
fn by_hand(item: &str, bits: u64, probes: u32) -> Vec<u64> {
    let hash64 = murmur3::x64_128(item.as_bytes(), 0)[0] as i64;
    let (hash1, hash2) = (hash64 as i32, (hash64 >> 32) as i32);
    let combined = (1..=probes as i32).map(|i| hash1.wrapping_add(i.wrapping_mul(hash2)));
    combined.map(|hash| u64::from((if hash < 0 { !hash } else { hash }).unsigned_abs()) % bits).collect()
}

#[tokio::test]
async fn java_and_mayhap_find_each_others_items() {
    let Some((_host, link, mut talk)) = server().await else { return };
    let shape = GuavaShape::sized(1_000, 0.03, Rounding::Until33, Strategy::Mitz32).unwrap();
    assert_ne!(shape.bits() % 64, 0, "by hand bits are not rounded up");
    let items: Vec<String> = (0..1_000).map(|i| format!("user:{i}")).collect();
    for offset in items.iter().flat_map(|item| by_hand(item, shape.bits(), shape.probes())) {
        talk.must(&["SETBIT", "java", &offset.to_string(), "1"]);
    }
    let java = GuavaBitmap::new(&link, "java", shape, ItemEncoding::Utf8);
    assert_eq!(java.may_contain(&items).await.count(Answer::Maybe), items.len());
    let non_members: Vec<String> = (0..1_000).map(|i| format!("non-member:{i}")).collect();
    let answers = java.may_contain(&non_members).await;
    assert_eq!(answers.count(Answer::NotReady), 0);
    assert!((5..90).contains(&answers.count(Answer::Maybe)), "{}", answers.count(Answer::Maybe));

    let ours = GuavaBitmap::new(&link, "ours", shape, ItemEncoding::Utf8);
    ours.create().await.unwrap();
    assert!(ours.insert(&items).await.all_inserted());
    let (ours, java) = (talk.must(&["GET", "ours"]), talk.must(&["GET", "java"]));
    assert!(ours.bytes().starts_with(java.bytes()), "the same bits");
    assert!(ours.bytes()[java.bytes().len()..].iter().all(|&byte| byte == 0), "and no others");
}

#[tokio::test]
async fn a_missing_bitmap_is_not_ready_and_no_insertion_creates_it() {
    let Some((_host, link, mut talk)) = server().await else { return };
    let shape = GuavaShape::sized(1_000, 0.01, Rounding::Until33, Strategy::Mitz64).unwrap();
    let named = GuavaBitmap::new(&link, "seen", shape, ItemEncoding::Utf8);
    let marked = GuavaBitmap::new(&link, "seen", shape, ItemEncoding::Utf8).with_marker();
    for bitmap in [&named, &marked] {
        assert_eq!(bitmap.may_contain(&["ada"]).await.as_slice(), [Answer::NotReady]);
        let added = bitmap.insert(&["ada"]).await;
        assert_eq!(added.as_slice(), [Inserted::NotReady]);
        assert!(added.error().unwrap().to_string().starts_with("seen is not ready"));
        assert_eq!(talk.ask("EXISTS seen"), Wire::Integer(0));
    }
    assert!(matches!(marked.mark_ready().await, Err(RemoteError::Unready { .. })));

    marked.create().await.unwrap();
    assert!(matches!(marked.create().await, Err(RemoteError::Taken { .. })));
    assert_eq!(marked.insert(&["ada"]).await.as_slice(), [Inserted::New]);
    assert_eq!(marked.may_contain(&["ada", "grace"]).await.as_slice(), [Answer::Maybe, Answer::No]);

    // Evicted, and created again by another client's SETBIT: only the marker shows it.
    talk.must(&["DEL", "seen"]);
    talk.must(&["SETBIT", "seen", "5", "1"]);
    assert_eq!(marked.may_contain(&["ada"]).await.as_slice(), [Answer::NotReady]);
    assert_eq!(marked.insert(&["ada"]).await.as_slice(), [Inserted::NotReady]);
    assert_eq!(named.may_contain(&["ada"]).await.as_slice(), [Answer::No], "the reason for the marker");
    marked.mark_ready().await.unwrap();
    assert_eq!(marked.may_contain(&["ada"]).await.as_slice(), [Answer::No]);
    marked.delete().await.unwrap();
    talk.must(&["SADD", "seen", "ada"]);
    for bitmap in [&named, &marked] {
        assert_eq!(bitmap.may_contain(&["ada"]).await.as_slice(), [Answer::NotReady]);
        assert_eq!(bitmap.insert(&["ada"]).await.as_slice(), [Inserted::NotReady]);
    }
}
