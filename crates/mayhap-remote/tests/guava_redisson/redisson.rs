//! Redisson's filters.

use mayhap::ItemEncoding;
use mayhap_formats::redisson::Config;
use mayhap_remote::{Answer, Inserted, Link, RedissonFilter, RemoteError};
use mayhap_testkit::host::{Talk, Wire};
use serde_json::Value;

use crate::cases::{self, Given, bytes, float, number, text};
use crate::{expected, only_items, server};

fn encoding(case: &Value) -> ItemEncoding {
    match text(case, "codec") {
        "Kryo5Codec (default since 3.19.0)" => ItemEncoding::Kryo5,
        "StringCodec" => ItemEncoding::Utf8,
        "JsonJacksonCodec" => ItemEncoding::Json,
        "ByteArrayCodec" => ItemEncoding::Bytes,
        "LongCodec" => ItemEncoding::Decimal,
        other => panic!("unknown codec {other}"),
    }
}

fn given(item: &Value) -> Given {
    // In the list, each item has its bytes and positions.
    let item = if item["item"].is_null() { item } else { &item["item"] };
    match (item.as_str(), item["int"].as_i64(), item["bytes_hex"].as_str()) {
        (Some(text), ..) => Given::Text(text.to_owned()),
        (_, Some(number), _) => Given::I32(number.try_into().unwrap()),
        (.., Some(hex)) => Given::Bytes(cases::unhex(hex)),
        _ => Given::I64(text(item, "long").parse().unwrap()),
    }
}

/// The reply to `HGETALL`, sorted by field.
fn config(talk: &mut Talk, key: &str) -> Vec<(String, String)> {
    let fields = talk.must(&["HGETALL", key]);
    let mut pairs: Vec<_> = fields.list().chunks(2).map(|pair| (pair[0].text(), pair[1].text())).collect();
    pairs.sort();
    pairs
}

fn bitmap(talk: &mut Talk, name: &str) -> Vec<u8> {
    match talk.must(&["GET", name]) {
        Wire::Null => Vec::new(),
        value => value.bytes().to_vec(),
    }
}

/// Writes the keys exactly as Redisson left them.
fn put(talk: &mut Talk, case: &Value, name: &str) {
    let bits = bytes(case, "bitmap", "redisson");
    if !bits.is_empty() {
        talk.must(&[b"SET".as_slice(), name.as_bytes(), &bits]);
    }
    let key = format!("{{{name}}}:config");
    for (field, value) in case["config_hash"].as_object().unwrap() {
        talk.must(&["HSET", &key, field, value.as_str().unwrap()]);
    }
}

async fn check_case(case: &Value, link: &Link, talk: &mut Talk) {
    let (name, key) = (text(case, "bitmap_key"), text(case, "config_key"));
    let mut fields: Vec<(String, String)> = case["config_hash"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(field, value)| (field.clone(), value.as_str().unwrap().to_owned()))
        .collect();
    fields.sort();
    let (items, probes) = (cases::items(case, given), cases::probes(case, given));

    // Created and filled here: the same keys as Redisson's.
    let (n, p) = (number(case, "expected_insertions"), float(case, "fpp"));
    let filter = RedissonFilter::try_init(link, name, n, p, encoding(case)).await.unwrap().empty_means_no();
    assert_eq!(config(talk, key), fields, "{name}");
    let added = filter.insert(&items).await;
    assert!(added.all_inserted() && added.error().is_none(), "{name}: {:?}", added.error());
    assert_eq!(added.count(Inserted::New) as u64, number(case, "adds_returning_true"), "{name}");
    assert_eq!(bitmap(talk, name), bytes(case, "bitmap", "redisson"), "{name}");
    assert_eq!(config(talk, key), fields, "{name}: the config is unchanged");
    assert_eq!(filter.count().await.unwrap(), number(case, "count"), "{name}");

    // Redisson's own keys: the same answers as Redisson gave.
    let theirs = format!("theirs:{name}");
    put(talk, case, &theirs);
    let theirs_filter = RedissonFilter::open(link, &theirs, encoding(case)).await.unwrap().empty_means_no();
    for filter in [&filter, &theirs_filter] {
        assert_eq!(filter.may_contain(&only_items(&probes)).await.as_slice(), expected(&probes), "{name}");
        assert_eq!(filter.may_contain(&items).await.count(Answer::Maybe), items.len(), "{name}");
    }
    assert_eq!(bitmap(talk, &theirs), bitmap(talk, name), "{name}: lookups change nothing");

    // With another codec it does not find its members, so the checks above can fail.
    if !items.is_empty() && encoding(case) != ItemEncoding::Bytes {
        let other =
            if encoding(case) == ItemEncoding::Utf8 { ItemEncoding::Kryo5 } else { ItemEncoding::Utf32Le };
        let spoiled = RedissonFilter::open(link, &theirs, other).await.unwrap();
        assert!(spoiled.may_contain(&items).await.count(Answer::No) > 0, "{name}");
    }
}

#[tokio::test]
async fn every_case_of_the_real_redisson_is_created_filled_and_looked_up() {
    let Some((_host, link, mut talk)) = server().await else { return };
    let cases = cases::cases("redisson/cases.json");
    for case in &cases {
        check_case(case, &link, &mut talk).await;
    }
    assert_eq!(cases.len(), 9);
}

#[tokio::test]
async fn missing_parts_are_not_ready() {
    let Some((_host, link, mut talk)) = server().await else { return };
    let users = RedissonFilter::open(&link, "users", ItemEncoding::Utf8).await.unwrap();
    let not_ready = async |why: &str| {
        let answers = users.may_contain(&["ada", "grace"]).await;
        assert_eq!(answers.as_slice(), [Answer::NotReady; 2], "{why}");
        assert!(answers.error().unwrap().to_string().contains(why), "{:?}", answers.error());
    };
    not_ready("users is not ready: it has no config").await;
    let added = users.insert(&["ada"]).await;
    assert_eq!(added.as_slice(), [Inserted::NotReady]);
    assert_eq!(talk.ask("EXISTS users"), Wire::Integer(0), "an insertion creates no bitmap without a config");

    // Created by another client, and found without opening it again.
    RedissonFilter::try_init(&link, "users", 100, 0.01, ItemEncoding::Utf8).await.unwrap();
    not_ready("users is not ready: it has no bitmap").await;
    let empty = RedissonFilter::open(&link, "users", ItemEncoding::Utf8).await.unwrap().empty_means_no();
    assert_eq!(empty.may_contain(&["ada"]).await.as_slice(), [Answer::No]);
    assert_eq!(users.insert(&["ada", "ada"]).await.as_slice(), [Inserted::New, Inserted::MaybeBefore]);
    assert_eq!(users.may_contain(&["ada", "grace"]).await.as_slice(), [Answer::Maybe, Answer::No]);
    assert!(RedissonFilter::is_there(&link, "users").await.unwrap());

    // The name is in use.
    let again = RedissonFilter::try_init(&link, "users", 1_000, 0.01, ItemEncoding::Utf8).await;
    assert!(matches!(again, Err(RemoteError::Taken { name }) if name == "{users}:config"));
    assert_eq!(users.may_contain(&["ada"]).await.as_slice(), [Answer::Maybe]);

    // The bitmap is gone, then both keys are gone, then they hold other types.
    talk.must(&["DEL", "users"]);
    not_ready("it has no bitmap").await;
    assert!(users.insert(&["ada"]).await.all_inserted());
    users.delete().await.unwrap();
    assert_eq!(talk.ask("EXISTS users {users}:config"), Wire::Integer(0));
    assert!(!RedissonFilter::is_there(&link, "users").await.unwrap());
    not_ready("it has no config").await;
    RedissonFilter::try_init(&link, "users", 100, 0.01, ItemEncoding::Utf8).await.unwrap();
    talk.must(&["SADD", "users", "ada"]);
    not_ready("WRONGTYPE").await;
    assert_eq!(users.insert(&["ada"]).await.as_slice(), [Inserted::NotReady]);
    talk.must(&["DEL", "users", "{users}:config"]);
    talk.must(&["SET", "{users}:config", "?"]);
    not_ready("WRONGTYPE").await;
    assert!(RedissonFilter::open(&link, "users", ItemEncoding::Utf8).await.is_err());
}

#[tokio::test]
async fn invalid_configs_are_errors_that_name_the_field() {
    let Some((_host, link, mut talk)) = server().await else { return };
    let good = Config::sized(100, 0.01).unwrap().fields();
    for (field, value, expected) in [
        ("size", "0", "bits"),
        ("size", "4294967295", "4294967294"),
        ("size", "18446744073709551616", "size"),
        ("size", "-1", "size"),
        ("size", "", "size"),
        ("size", "0958", "size"),
        ("hashIterations", "0", "probes"),
        ("hashIterations", "256", "255"),
        ("hashIterations", "9999999999", "probes"),
        ("expectedInsertions", "0", "capacity"),
        ("falseProbability", "NaN", "falseProbability"),
        ("falseProbability", "1.5", "1.5"),
        ("falseProbability", "\u{7f}", "falseProbability"),
    ] {
        talk.must(&["DEL", "{hostile}:config"]);
        for (name, there) in &good {
            talk.must(&["HSET", "{hostile}:config", name, if *name == field { value } else { there }]);
        }
        let refused = RedissonFilter::open(&link, "hostile", ItemEncoding::Utf8).await.err();
        let text = refused.map(|cause| cause.to_string()).unwrap_or_default();
        assert!(
            text.starts_with("{hostile}:config: ") && text.contains(expected),
            "{field} {value:?}: {text}"
        );
    }
    let long = "9".repeat(1 << 20);
    talk.must(&["HSET", "{hostile}:config", "size", &long]);
    let refused = RedissonFilter::open(&link, "hostile", ItemEncoding::Utf8).await.err();
    assert!(refused.is_some_and(|cause| cause.to_string().len() < 200), "only the beginning of a long value");
    talk.must(&["HDEL", "{hostile}:config", "size"]);
    let refused = RedissonFilter::open(&link, "hostile", ItemEncoding::Utf8).await.err();
    assert_eq!(refused.unwrap().to_string(), "{hostile}:config: config has no field size");
}

#[tokio::test]
async fn a_config_that_changes_is_read_again() {
    let Some((_host, link, mut talk)) = server().await else { return };
    let ours = RedissonFilter::try_init(&link, "seen", 100, 0.01, ItemEncoding::Utf8).await.unwrap();
    let old: Vec<String> = (0..50).map(|i| format!("old {i}")).collect();
    assert!(ours.insert(&old).await.all_inserted());

    // Another client creates it again with other numbers.
    talk.must(&["DEL", "seen", "{seen}:config"]);
    let theirs = RedissonFilter::try_init(&link, "seen", 5_000, 1e-6, ItemEncoding::Utf8).await.unwrap();
    let new: Vec<String> = (0..50).map(|i| format!("new {i}")).collect();
    assert!(theirs.insert(&new).await.all_inserted());
    let before = bitmap(&mut talk, "seen");
    assert_eq!(ours.may_contain(&new).await.count(Answer::Maybe), new.len(), "with the present numbers");
    assert_eq!(ours.may_contain(&old).await.count(Answer::No), old.len());
    assert_eq!(bitmap(&mut talk, "seen"), before);

    // An insertion with the old numbers would have set other bits.
    talk.must(&["DEL", "seen", "{seen}:config"]);
    let third = RedissonFilter::try_init(&link, "seen", 100, 0.01, ItemEncoding::Utf8).await.unwrap();
    assert!(ours.insert(&new).await.all_inserted());
    assert_eq!(third.may_contain(&new).await.count(Answer::Maybe), new.len());
    let expected = {
        let mut filter = mayhap_formats::redisson::create(100, 0.01, ItemEncoding::Utf8).unwrap();
        filter.insert_batch(&new);
        mayhap_formats::redisson::bitmap(&filter).unwrap()
    };
    assert_eq!(bitmap(&mut talk, "seen"), expected, "no other bits");
}

/// CPU time of the server for the lookup of an item, with its config check, against one `GETBIT` for each of
/// its bits.
#[tokio::test]
async fn a_lookup_is_cheaper_than_one_getbit_for_every_bit() {
    const ITEMS: usize = 20_000;
    let Some((host, link, mut talk)) = server().await else { return };
    let filter = RedissonFilter::try_init(&link, "seen", 1_000_000, 0.01, ItemEncoding::Utf8).await.unwrap();
    let items: Vec<String> = (0..ITEMS).map(|i| format!("item {i}")).collect();
    assert!(filter.insert(&items).await.all_inserted());
    let config = filter.config().await.unwrap();
    let mut spent = || -> f64 {
        ["used_cpu_user", "used_cpu_sys"].map(|field| talk.info(field).parse::<f64>().unwrap()).iter().sum()
    };
    let mut ratios = Vec::new();
    let mut bits = host.talk();
    for _ in 0..5 {
        let start = spent();
        assert_eq!(filter.may_contain(&items).await.count(Answer::Maybe), ITEMS);
        let middle = spent();
        let positions = items.iter().flat_map(|item| config.positions(item, ItemEncoding::Utf8));
        let replies = bits.ask_all(positions.map(|at| vec!["GETBIT".into(), "seen".into(), at.to_string()]));
        assert!(replies.iter().all(|bit| *bit == Wire::Integer(1)));
        ratios.push((middle - start) / (spent() - middle));
    }
    ratios.sort_by(f64::total_cmp);
    println!("CPU of the server, against one GETBIT for every bit: {:.2}", ratios[2]);
    assert!(ratios[2] < 1.0, "{ratios:?}");
}
