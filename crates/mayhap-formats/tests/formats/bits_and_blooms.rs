//! bits-and-blooms, the Go library.

use mayhap::{BuildError, DecodeError, Filter, ItemEncoding, WideBloom};
use mayhap_formats::{Resemblance, WriteError, bip37, bits_and_blooms};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{bytes, float, items, json, number, probes, text, unhex};

const UTF8: ItemEncoding = ItemEncoding::Utf8;

fn cases() -> Vec<Value> {
    json("go_bits_and_blooms/cases.json")["cases"].as_array().unwrap().clone()
}

fn written(filter: &WideBloom) -> Vec<u8> {
    let mut binary = Vec::new();
    bits_and_blooms::write(filter, &mut binary).unwrap();
    binary
}

fn written_json(filter: &WideBloom) -> String {
    let mut json = Vec::new();
    bits_and_blooms::write_json(filter, &mut json).unwrap();
    String::from_utf8(json).unwrap()
}

#[test]
fn every_case_is_rebuilt_read_and_written() {
    for case in cases() {
        let name = text(&case, "name");
        let binary = match case["serialized_hex"].as_str() {
            Some(hex) => unhex(hex),
            None => bytes(&format!("go_bits_and_blooms/{}", text(&case, "file"))),
        };
        let (n, p) = (number(&case, "n"), float(&case, "p"));
        let (m, k) = (number(&case, "m_bits"), number(&case, "k"));

        // Built from the items: same parameters, same bytes.
        assert_eq!(bits_and_blooms::size(n, p), Ok((m, k as u32)), "{name}");
        let mut built = bits_and_blooms::create(n, p, UTF8).unwrap();
        let mut exactly = bits_and_blooms::create_exactly(m, k as u32, UTF8).unwrap();
        built.insert_batch(&items(&case));
        exactly.insert_batch(&items(&case));
        assert_eq!(written(&built), binary, "{name}");
        assert_eq!(written(&exactly), binary, "{name}");
        assert_eq!(built.estimated_items(), number(&case, "approximated_size"), "{name}");

        // Read from the bytes, from JSON, and from our own format after each.
        let read = bits_and_blooms::read(&binary, UTF8).unwrap();
        let from_json = bits_and_blooms::read_json(written_json(&read).as_bytes(), UTF8).unwrap();
        let ours = WideBloom::decode(&from_json.encode()).unwrap();
        let Ok(Filter::WideBloom(any)) = Filter::decode(&read.encode()) else { panic!("{name}") };
        assert_eq!((ours.items(), ours.placement()), (UTF8, built.placement()), "{name}");
        for filter in [&built, &read, &from_json, &ours, &any] {
            assert!(items(&case).iter().all(|item| filter.may_contain(item)), "{name}");
            for (probe, answer) in probes(&case) {
                assert_eq!(filter.may_contain(&probe), answer, "{name}: {probe:?}");
            }
            assert_eq!(written(filter), binary, "{name}");
            if let Some(json) = case["json"].as_str() {
                assert_eq!(written_json(filter), json, "{name}");
            }
        }
        if let Some(json) = case["json"].as_str() {
            assert_eq!(
                written(&bits_and_blooms::read_json(json.as_bytes(), UTF8).unwrap()),
                binary,
                "{name}"
            );
        }
        assert_eq!(bits_and_blooms::resembles(&binary), Resemblance::Could, "{name}");
        assert_eq!(
            bits_and_blooms::resembles_json(written_json(&read).as_bytes()),
            Resemblance::Could,
            "{name}"
        );
        assert_eq!(bits_and_blooms::resembles_json(&binary), Resemblance::No, "{name}");
        let confused = bits_and_blooms::read(&binary, ItemEncoding::Utf16Le).unwrap();
        assert!(items(&case).iter().any(|item| !confused.may_contain(item)), "{name}: the encoding matters");
    }
    let jsons = cases().iter().filter(|case| case["json"].is_string()).count();
    println!("go_bits_and_blooms/cases.json: {} cases, {jsons} of them with JSON", cases().len());
}

/// A filter so long that no location wraps: bit `location mod m` is set for every location Go recorded.
#[test]
fn locations_are_those_of_go() {
    let mut compared = 0;
    for case in cases() {
        for (item, locations) in case["locations_before_mod"].as_object().into_iter().flatten() {
            let locations: Vec<u64> = locations
                .as_array()
                .unwrap()
                .iter()
                .map(|location| u64::from_str_radix(location.as_str().unwrap(), 16).unwrap())
                .collect();
            for m in [192, 1_009, 65_537, 999_983] {
                let mut filter = bits_and_blooms::create_exactly(m, locations.len() as u32, UTF8).unwrap();
                filter.insert(item.as_str());
                let binary = written(&filter);
                for location in &locations {
                    let position = (location % m) as usize;
                    let word = binary[24..].as_chunks::<8>().0[position / 64];
                    assert_eq!(u64::from_be_bytes(word) >> (position % 64) & 1, 1, "{item:?} in {m} bits");
                    compared += 1;
                }
                let different: std::collections::BTreeSet<u64> =
                    locations.iter().map(|location| location % m).collect();
                assert_eq!(filter.ones(), different.len() as u64, "{item:?} in {m} bits");
            }
        }
    }
    assert!(compared > 0);
    println!("go_bits_and_blooms/cases.json: {compared} locations");
}

#[test]
fn filters_that_go_would_not_make_are_rejected() {
    assert_eq!(bits_and_blooms::create(0, 0.01, UTF8).unwrap_err().to_string().as_bytes()[..8], *b"capacity");
    for rate in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(matches!(bits_and_blooms::create(10, rate, UTF8), Err(BuildError::RateOutOfRange { .. })));
    }
    assert!(matches!(
        bits_and_blooms::create(1, 1e-100, UTF8),
        Err(BuildError::ProbesOutOfRange { got: 333, limit: 255 })
    ));
    let smallest = bits_and_blooms::create_exactly(0, 0, UTF8).unwrap();
    assert_eq!((smallest.shape().bits(), smallest.shape().probes()), (1, 1), "as Go does");
    let header = |m: u64, k: u64, length: u64| {
        let words = [0; 8];
        [m.to_be_bytes(), k.to_be_bytes(), length.to_be_bytes(), words].concat()
    };
    let read = |bytes: &[u8]| bits_and_blooms::read(bytes, UTF8).map(drop);
    assert_eq!(read(&header(64, 255, 64)), Ok(()));
    assert_eq!(read(&header(1, 1, 1)), Ok(()));
    assert_eq!(read(&[]), Err(DecodeError::TooShort { need: 8, got: 0 }));
    assert_eq!(
        read(&header(64, 7, 128)),
        Err(DecodeError::BadField { field: "length of the bitset", got: 128 })
    );
    assert!(matches!(
        read(&header(64, 0, 64)),
        Err(DecodeError::Unbuildable(BuildError::ProbesOutOfRange { .. }))
    ));
    assert!(matches!(
        read(&header(64, 256, 64)),
        Err(DecodeError::Unbuildable(BuildError::ProbesOutOfRange { .. }))
    ));
    assert_eq!(read(&header(64, 1 << 40, 64)), Err(DecodeError::BadField { field: "k", got: 1 << 40 }));
    assert!(matches!(read(&header(0, 7, 0)), Err(DecodeError::Unbuildable(_))));
    // Lengths far above the input: in a header only.
    assert_eq!(
        read(&header(1 << 33, 7, 1 << 33)),
        Err(DecodeError::TooShort { need: 24 + (1 << 30), got: 32 })
    );
    assert!(matches!(read(&header(u64::MAX, 7, u64::MAX)), Err(DecodeError::Unbuildable(_))));
    let mut stray = header(60, 7, 60);
    stray[24] = 0x10;
    assert_eq!(read(&stray), Err(DecodeError::StrayBit { bit: 60 }));
    assert_eq!(bits_and_blooms::resembles(&stray[..31]), Resemblance::No);
    assert_eq!(bits_and_blooms::resembles(&header(64, 300, 64)), Resemblance::No);
    assert_eq!(bits_and_blooms::resembles(b"short"), Resemblance::No);
}

#[test]
fn errors_in_json_have_a_position() {
    let read = |json: &str| bits_and_blooms::read_json(json.as_bytes(), UTF8).map(drop);
    let good = written_json(&bits_and_blooms::create(5, 0.1, UTF8).unwrap());
    assert_eq!(read(&good), Ok(()));
    assert_eq!(
        read(&good.replacen('{', "{ \"more\": [1, 2],\n ", 1)),
        Ok(()),
        "Go skips unknown fields and white space"
    );
    assert_eq!(read(""), Err(DecodeError::Malformed { what: "JSON with m, k and b", at: 0 }));
    assert!(matches!(read("{\n\"m\": x}"), Err(DecodeError::Malformed { at: 7, .. })));
    assert!(matches!(read("{\"m\":8,\"k\":1}"), Err(DecodeError::Malformed { .. })));
    assert!(matches!(read("{\"m\":-8,\"k\":1,\"b\":\"\"}"), Err(DecodeError::Malformed { .. })));
    assert_eq!(
        read("{\"m\":8,\"k\":1,\"b\":\"AA*A\"}"),
        Err(DecodeError::Malformed { what: "base64url", at: 2 })
    );
    assert_eq!(
        read("{\"m\":8,\"k\":1,\"b\":\"AA*A\"}").unwrap_err().to_string(),
        "not base64url: byte 2 is wrong"
    );
    assert!(matches!(read("{\"m\":8,\"k\":1,\"b\":\"AAAA\"}"), Err(DecodeError::TooShort { .. })));
    assert!(matches!(read(&good.replace("\"k\":4", "\"k\":0")), Err(DecodeError::Unbuildable(_))));
    assert!(matches!(
        read(&good.replace("\"m\":24", "\"m\":25")),
        Err(DecodeError::BadField { field: "length of the bitset", got: 24 })
    ));
}

#[test]
fn filters_of_other_programs_are_not_written() {
    let bip37::Matcher::Items(other) = bip37::create(3, 0.01, 5, 0).unwrap().matcher else {
        panic!("it has bits")
    };
    for refusal in [
        bits_and_blooms::write(&other, &mut Vec::new()).unwrap_err(),
        bits_and_blooms::write_json(&other, &mut Vec::new()).unwrap_err(),
    ] {
        assert!(matches!(refusal, WriteError::OtherPlacement { .. }));
        let message = refusal.to_string();
        assert!(message.contains("bits-and-blooms") && message.contains("Bip37 { tweak: 5 }"), "{message}");
    }
}

fn use_it(mut filter: WideBloom) -> Result<(), DecodeError> {
    filter.insert("grace");
    assert!(filter.may_contain("grace"));
    let _ = (filter.may_contain("ada"), filter.fill(), filter.estimated_items());
    assert_eq!(written(&WideBloom::decode(&filter.encode())?), written(&filter));
    let _ = written_json(&filter);
    Ok(())
}

#[test]
fn damaged_filters_are_survived() {
    let mut filter = bits_and_blooms::create(5, 0.3, UTF8).unwrap();
    filter.insert("ada");
    let binary = written(&filter);
    hostile::survives("bits-and-blooms", &binary, &[(0, 8), (8, 8), (16, 8)], false, |bytes| {
        use_it(bits_and_blooms::read(bytes, UTF8)?)
    });
    let json = written_json(&filter);
    // White space after JSON is valid JSON.
    hostile::survives("bits-and-blooms, JSON", json.as_bytes(), &[], true, |bytes| {
        use_it(bits_and_blooms::read_json(bytes, UTF8)?)
    });
}
