//! Redisson's `RBloomFilter`: bitmap and config.

use std::collections::HashMap;

use mayhap::{Bloom, BuildError, DecodeError, Item, ItemEncoding};
use mayhap_formats::WriteError;
use mayhap_formats::redisson::{self, Config, ConfigError, config_key};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{Given, float, generated, inline_or_file, json, number, offsets, text, unhex};

/// The SETBIT commands, as key and offset, in the order in which Redisson sends them when `items` are added to the filter `name`. The value is 1 in all of
/// them. Together with the config at [`config_key`] they make a complete filter.
pub(crate) fn setbit_commands<I: Item>(
    name: &str,
    config: &Config,
    encoding: ItemEncoding,
    items: &[I],
) -> Vec<(String, u64)> {
    let offsets = items.iter().flat_map(|item| config.positions(item, encoding));
    offsets.map(|offset| (name.to_owned(), offset)).collect()
}

/// Executes the commands like Redis: strings that grow with the highest bit; the first bit is the highest of the first byte.
#[derive(Default)]
struct Redis(HashMap<String, Vec<u8>>);

impl Redis {
    fn set_bit(&mut self, key: &str, offset: u64) {
        let value = self.0.entry(key.to_owned()).or_default();
        let byte = offset as usize / 8;
        value.resize(value.len().max(byte + 1), 0);
        value[byte] |= 0x80 >> (offset % 8);
    }

    /// Absent and empty are the same to a reader of bitmaps.
    fn get(&self, key: &str) -> &[u8] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }
}

fn encoding(case: &Value) -> ItemEncoding {
    match text(case, "codec") {
        "Kryo5Codec (default since 3.19.0)" => ItemEncoding::Kryo5,
        "StringCodec" => ItemEncoding::Utf8,
        "JsonJacksonCodec" => ItemEncoding::Json,
        "ByteArrayCodec" => ItemEncoding::Bytes,
        "LongCodec" => ItemEncoding::Decimal,
        other => panic!("codec {other} is not known"),
    }
}

fn given(item: &Value) -> Given {
    if let Some(text) = item.as_str() {
        return Given::Text(text.to_owned());
    }
    if let Some(number) = item["int"].as_i64() {
        return Given::I32(number.try_into().unwrap());
    }
    match item["bytes_hex"].as_str() {
        Some(hex) => Given::Bytes(unhex(hex)),
        None => Given::I64(text(item, "long").parse().unwrap()),
    }
}

fn items(case: &Value) -> Vec<Given> {
    match case["items"].as_array() {
        Some(items) => items.iter().map(|row| given(&row["item"])).collect(),
        None => generated(&case["items_generator"]),
    }
}

/// Every probe with the answer Redisson gave.
fn probes(case: &Value) -> Vec<(Given, bool)> {
    if let Some(probes) = case["probes"].as_array() {
        let answered = |probe: &Value| (given(&probe["item"]), probe["contains"].as_bool().unwrap());
        return probes.iter().map(answered).collect();
    }
    let wrong = offsets(case, "probe_false_positive_offsets");
    assert_eq!(wrong.len() as u64, number(case, "probe_false_positives"));
    let probes = generated(&case["probes_generator"]);
    probes.into_iter().enumerate().map(|(i, probe)| (probe, wrong.contains(&i))).collect()
}

fn fields(case: &Value) -> Vec<(String, String)> {
    let fields = case["config_hash"].as_object().unwrap();
    fields.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect()
}

/// The bytes, hash and positions of every item that is listed with them.
fn check_items(case: &Value, filter: &Bloom, config: &Config) -> usize {
    let rows = case["items"].as_array().map_or(&[][..], Vec::as_slice);
    for row in rows {
        let item = given(&row["item"]);
        let encoded = unhex(text(row, "encoded_hex"));
        item.with_value(|value| assert_eq!(encoding(case).encode(value).unwrap().as_ref(), encoded, "{row}"));
        let hash = filter.hash(&item);
        let words = [hash.to_u128() as u64, (hash.to_u128() >> 64) as u64].map(|word| format!("{word:016x}"));
        let expected: Vec<&str> =
            row["highwayhash128"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        assert_eq!(words, *expected, "{row}");
        let positions: Vec<u64> = config.positions(&item, encoding(case)).collect();
        let expected: Vec<u64> =
            row["indexes"].as_array().unwrap().iter().map(|index| index.as_u64().unwrap()).collect();
        assert_eq!(positions, expected, "{row}");
        assert!(config.positions(&encoded, encoding(case)).eq(positions), "{row}: encoded already");
    }
    rows.len()
}

fn check_case(case: &Value) -> usize {
    let name = text(case, "name");
    let bitmap = inline_or_file(case, "bitmap", "redisson");
    assert_eq!(bitmap.len() as u64, number(case, "bitmap_len"), "{name}");
    let (items, probed) = (items(case), probes(case));

    // The config, there and back.
    let (n, p) = (number(case, "expected_insertions"), float(case, "fpp"));
    let config = Config::sized(n, p).unwrap();
    assert_eq!(config.size(), number(case, "size_bits"), "{name}");
    assert_eq!(u64::from(config.hash_iterations()), number(case, "hash_iterations"), "{name}");
    assert_eq!(Config::from_fields(fields(case)), Ok(config), "{name}");
    let mut ours = config.fields().map(|(field, value)| (field.to_owned(), value)).to_vec();
    ours.sort();
    assert_eq!(ours, fields(case), "{name}");
    assert_eq!(config_key(text(case, "bitmap_key")), text(case, "config_key"), "{name}");

    // Built from the items: the same bits, and as many of the additions changed some.
    let mut built = redisson::create(n, p, encoding(case)).unwrap();
    let listed = check_items(case, &built, &config);
    assert_eq!(built.insert_batch(&items), number(case, "adds_returning_true"), "{name}");
    assert_eq!(redisson::bitmap(&built).unwrap(), bitmap, "{name}");
    let mut redis = Redis::default();
    for (key, offset) in setbit_commands(name, &config, encoding(case), &items) {
        redis.set_bit(&key, offset);
    }
    assert_eq!(redis.get(name), bitmap, "{name}: bit by bit");

    // Read from bitmap and config: the same answers, the same values again, through our own format as well.
    let read = redisson::read(&bitmap, &config, encoding(case)).unwrap();
    let ours = Bloom::decode(&read.encode()).unwrap();
    assert_eq!(ours.scheme(), read.scheme(), "{name}: our own file remembers the codec");
    for filter in [&built, &read, &ours] {
        assert_eq!(redisson::count(filter), number(case, "count"), "{name}");
        assert_eq!(filter.estimated_items(), number(case, "count"), "{name}");
        assert!(items.iter().all(|item| filter.may_contain(item)), "{name}");
        for (probe, answer) in &probed {
            assert_eq!(filter.may_contain(probe), *answer, "{name}: {probe:?}");
        }
        assert_eq!(redisson::bitmap(filter).unwrap(), bitmap, "{name}");
        assert_eq!(redisson::config(filter).unwrap(), config, "{name}");
    }

    // With another codec or iteration the filter forgets its own items: the tests above could have failed.
    let other =
        if encoding(case) == ItemEncoding::Utf8 { ItemEncoding::Kryo5 } else { ItemEncoding::Utf32Le };
    let other_size = Config::new(config.size() + 8, config.hash_iterations(), n, p).unwrap();
    let spoiled = [
        redisson::read(&bitmap, &config, other).unwrap(),
        redisson::read(&bitmap, &other_size, encoding(case)).unwrap(),
    ];
    for spoiled in &spoiled[usize::from(encoding(case) == ItemEncoding::Bytes)..] {
        assert!(items.iter().any(|item| !spoiled.may_contain(item)), "{name}: {:?}", spoiled.scheme());
    }
    listed
}

#[test]
fn every_case_is_rebuilt_read_and_written() {
    let cases = json("redisson/cases.json");
    let cases = cases["cases"].as_array().unwrap();
    let listed: usize = cases.iter().map(check_case).sum();
    assert_eq!((cases.len(), listed), (9, 84));
    println!("redisson/cases.json: {} cases, {listed} items byte by byte", cases.len());
}

#[test]
fn numbers_that_come_as_text_have_encodings_of_their_own() {
    let config = Config::sized(100, 0.01).unwrap();
    let positions = |item: &Given, items| config.positions(item, items).collect::<Vec<_>>();
    let text = Given::Text("-65".to_owned());
    let (int, long) = (Given::I32(-65), Given::I64(-65));
    assert_eq!(positions(&text, ItemEncoding::Kryo5Int), positions(&int, ItemEncoding::Kryo5));
    assert_eq!(positions(&text, ItemEncoding::Kryo5Long), positions(&long, ItemEncoding::Kryo5));
    assert_ne!(positions(&int, ItemEncoding::Kryo5), positions(&long, ItemEncoding::Kryo5), "two classes");
    assert_ne!(positions(&text, ItemEncoding::Kryo5), positions(&int, ItemEncoding::Kryo5), "and a third");
    assert_eq!(config.positions("ada", ItemEncoding::Kryo5).len(), 7);
}

#[test]
fn a_config_is_accepted_only_as_redisson_writes_it() {
    let good = [
        ("size", "958"),
        ("hashIterations", "7"),
        ("expectedInsertions", "100"),
        ("falseProbability", "0.01"),
    ];
    let with = |name: &str, value: &'static str| {
        let fields = good.map(|(field, there)| (field, if field == name { value } else { there }));
        Config::from_fields(fields)
    };
    assert_eq!(Config::from_fields(good), Config::sized(100, 0.01).map_err(ConfigError::from));
    assert_eq!(
        Config::from_fields(good.map(|(name, value)| (name.as_bytes(), value.as_bytes().to_vec()))),
        with("", "")
    );
    assert_eq!(Config::from_fields(good.into_iter().rev().chain([("later", "?")])), with("", ""));
    for (field, value) in [
        ("size", "0958"),
        ("size", ""),
        ("size", "9e2"),
        ("hashIterations", "+7"),
        ("expectedInsertions", "100 "),
        ("falseProbability", "1"),
        ("falseProbability", "1e-2"),
        ("falseProbability", "NaN"),
    ] {
        let refusal = with(field, value).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            format!("config field {field} is {value:?}, not a number as Java writes it")
        );
    }
    for (field, value) in [
        ("size", "0"),
        ("size", "4294967295"),
        ("hashIterations", "0"),
        ("hashIterations", "256"),
        ("hashIterations", "4294967303"),
        ("expectedInsertions", "0"),
        ("falseProbability", "1.5"),
    ] {
        assert!(matches!(with(field, value), Err(ConfigError::Unbuildable(_))), "{field} {value}");
    }
    assert!(with("falseProbability", "1.0E-2").is_ok(), "no Java writes that, and it does no harm");
    assert_eq!(with("falseProbability", "0.0").unwrap().fields()[3].1, "0.0");
    assert_eq!(
        Config::from_fields(good[1..].iter().copied().collect::<HashMap<_, _>>()).unwrap_err(),
        ConfigError::Missing { field: "size" }
    );
    let twice = Config::from_fields(good.into_iter().chain([good[1]])).unwrap_err();
    assert_eq!(twice, ConfigError::Repeated { field: "hashIterations" });
    assert_eq!(config_key("a{b"), "a{b:config", "any brace will do");
    assert_eq!(config_key(""), "{}:config");
}

#[test]
fn the_bitmap_is_as_long_as_its_highest_bit_needs() {
    let empty = redisson::create(100, 0.01, ItemEncoding::Utf8).unwrap();
    assert!(redisson::bitmap(&empty).unwrap().is_empty());
    assert_eq!(redisson::count(&empty), 0);
    let config = Config::new(958, 1, 100, 0.01).unwrap();
    let read = |bitmap: &[u8]| redisson::read(bitmap, &config, ItemEncoding::Utf8);
    for highest in (0..958).step_by(7).chain([63, 64, 65, 956, 957]) {
        let mut redis = Redis::default();
        redis.set_bit("seen", highest);
        let filter = read(redis.get("seen")).unwrap();
        assert_eq!((filter.ones(), redisson::bitmap(&filter).unwrap()), (1, redis.get("seen").to_vec()));
        // Trailing zeroes, as SETBIT of a 0 leaves them, are dropped.
        let mut longer = redis.get("seen").to_vec();
        longer.resize(120, 0);
        assert_eq!(redisson::bitmap(&read(&longer).unwrap()).unwrap(), redis.get("seen"));
    }
    assert_eq!(read(&[0; 121]).unwrap_err(), DecodeError::TrailingBytes { extra: 1 });
    let mut stray = [0; 120];
    stray[119] = 0b10;
    assert_eq!(read(&stray).unwrap_err(), DecodeError::StrayBit { bit: 958 });
    let mut full = vec![0xff; 120];
    full[119] = 0xfc;
    let full = read(&full).unwrap();
    assert_eq!((full.ones(), redisson::count(&full)), (958, i64::MAX.unsigned_abs()), "as Java rounds it");
}

#[test]
fn the_commands_store_both_values() {
    let mut filter = redisson::create(10, 0.1, ItemEncoding::Utf8).unwrap();
    let written = |filter: &Bloom| {
        let mut commands = Vec::new();
        redisson::write_commands(filter, "sé", &mut commands).unwrap();
        commands
    };
    let before = "*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nDEL\r\n$3\r\nsé\r\n$12\r\n{sé}:config\r\n";
    let after = "*10\r\n$4\r\nHSET\r\n$12\r\n{sé}:config\r\n$4\r\nsize\r\n$2\r\n47\r\n$14\r\nhashIterations\r\n$1\r\n3\r\n\
                 $18\r\nexpectedInsertions\r\n$2\r\n10\r\n$16\r\nfalseProbability\r\n$3\r\n0.1\r\n*1\r\n$4\r\nEXEC\r\n";
    assert_eq!(written(&filter), [before, after].concat().as_bytes(), "no bitmap while it is empty");
    filter.insert("ada");
    let bitmap = redisson::bitmap(&filter).unwrap();
    let set = format!("*3\r\n$3\r\nSET\r\n$3\r\nsé\r\n${}\r\n", bitmap.len());
    assert_eq!(
        written(&filter),
        [before.as_bytes(), set.as_bytes(), &bitmap, b"\r\n", after.as_bytes()].concat()
    );
}

#[test]
fn numbers_that_redisson_rejects_are_rejected() {
    let create = |n, p| redisson::create(n, p, ItemEncoding::Utf8);
    assert!(create(0, 0.01).is_err() && create(100, 1.0).is_err(), "no bits");
    assert!(create(100, -0.1).is_err() && create(100, 1.1).is_err() && create(100, f64::NAN).is_err());
    assert!(matches!(create(1 << 40, 0.01), Err(BuildError::BitsOutOfRange { limit: 4_294_967_294, .. })));
    // Redisson replaces "never" by the smallest positive number, and accepts the resulting size.
    assert_eq!(create(10, 0.0).unwrap_err(), BuildError::ProbesOutOfRange { got: 1074, limit: 255 });
    let largest = Config::new(4_294_967_294, 1, 100, 0.01).unwrap();
    assert!(largest.positions("ada", ItemEncoding::Utf8).all(|position| position < 4_294_967_294));
    let refusal = redisson::read_within(&[], &largest, 1 << 20, ItemEncoding::Utf8).unwrap_err();
    assert_eq!(refusal, DecodeError::Unbuildable(BuildError::TooLarge { bytes: 1 << 29, limit: 1 << 20 }));

    let ours = Bloom::for_capacity(10, 0.01, 0).unwrap();
    let mut out = Vec::new();
    for refusal in [
        redisson::config(&ours).unwrap_err(),
        redisson::bitmap(&ours).unwrap_err(),
        redisson::write(&ours, &mut out).unwrap_err(),
        redisson::write_commands(&ours, "seen", &mut out).unwrap_err(),
    ] {
        assert!(matches!(refusal, WriteError::OtherPlacement { .. }));
        assert!(refusal.to_string().contains("cannot be converted without its items"), "{refusal}");
    }
    assert!(out.is_empty());
}

#[test]
fn damaged_bitmaps_and_configs_are_survived() {
    let use_it = |bitmap: &[u8], config: &Config| {
        let mut filter = redisson::read_within(bitmap, config, 1 << 12, ItemEncoding::Kryo5)?;
        filter.insert("grace");
        assert!(filter.may_contain("grace"));
        let _ = (redisson::count(&filter), redisson::bitmap(&filter).unwrap(), filter.encode());
        Ok(())
    };
    let mut filter = redisson::create(13, 1e-4, ItemEncoding::Kryo5).unwrap();
    filter.insert_batch(&["ada", "alan", "edsger"]);
    let (bitmap, config) = (redisson::bitmap(&filter).unwrap(), redisson::config(&filter).unwrap());
    hostile::survives("redisson, bitmap", &bitmap, &[(0, 4), (8, 4)], true, |bytes| use_it(bytes, &config));

    // The four values of the config, one per line: any change is rejected or makes a valid filter.
    let values = config.fields().map(|(_, value)| value).join("\n");
    let names = config.fields().map(|(name, _)| name);
    hostile::survives("redisson, config", values.as_bytes(), &[], true, |bytes| {
        match Config::from_fields(names.into_iter().zip(bytes.split(|&byte| byte == b'\n'))) {
            Ok(config) => {
                assert_eq!(Config::from_fields(config.fields()), Ok(config));
                assert!(
                    config.positions("ada", ItemEncoding::Kryo5).all(|position| position < config.size())
                );
                use_it(&[], &config)
            }
            Err(cause) => {
                assert!(!cause.to_string().is_empty());
                Ok(())
            }
        }
    });
}
