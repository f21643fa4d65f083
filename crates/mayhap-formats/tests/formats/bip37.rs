//! BIP-37, Bitcoin's `filterload`.

use mayhap::{BuildError, DecodeError, Item as _, ItemEncoding, WideBloom, WidePlacement};
use mayhap_formats::bip37::{self, FilterLoad, Matcher};
use mayhap_formats::{Resemblance, WriteError, bits_and_blooms};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{Given, float, generated, json, number, offsets, text, unhex};

fn written(load: &FilterLoad) -> Vec<u8> {
    let mut payload = Vec::new();
    bip37::write(load, &mut payload).unwrap();
    payload
}

fn items(case: &Value) -> Vec<Given> {
    match case["items_hex"].as_array() {
        Some(items) => items.iter().map(|item| Given::Bytes(unhex(item.as_str().unwrap()))).collect(),
        None => generated(&case["items_generator"]),
    }
}

/// Every probe with its answer.
fn probes(case: &Value) -> Vec<(Given, bool)> {
    if let Some(probes) = case["probes"].as_array() {
        let answered = |probe: &Value| {
            (Given::Bytes(unhex(text(probe, "item_hex"))), probe["contains"].as_bool().unwrap())
        };
        return probes.iter().map(answered).collect();
    }
    // The program that made the filter of no bytes answers yes to every probe. The case does not list those answers as false positives, because the
    // filter matches everything.
    let everything = number(case, "filter_bytes") == 0;
    let wrong = offsets(case, "probe_false_positive_offsets");
    let probes = generated(&case["probes_generator"]);
    probes.into_iter().enumerate().map(|(i, probe)| (probe, everything || wrong.contains(&i))).collect()
}

/// Through our own format, which keeps every filter.
fn through_ours(load: &FilterLoad) -> FilterLoad {
    let matcher = match &load.matcher {
        Matcher::Items(filter) => Matcher::Items(WideBloom::decode(&filter.encode()).unwrap()),
        Matcher::Everything { bytes, functions, tweak } => {
            Matcher::Everything { bytes: bytes.clone(), functions: *functions, tweak: *tweak }
        }
    };
    FilterLoad { matcher, flags: load.flags }
}

#[test]
fn every_case_is_rebuilt_read_and_written() {
    let cases = json("bitcoin/bip37.json");
    let cases = cases["cases"].as_array().unwrap();
    for case in cases {
        let payload = unhex(text(case, "serialized_hex"));
        let (n, p) = (number(case, "n_elements"), float(case, "fp_rate"));
        let (tweak, flags) = (number(case, "tweak") as u32, number(case, "flags") as u8);
        let (length, functions) = (number(case, "filter_bytes"), number(case, "hash_funcs") as u32);
        let name = format!("{} items at {p}, tweak {tweak}", items(case).len());

        assert_eq!(bip37::size(n, p), Ok((length, functions)), "{name}");
        let mut built = bip37::create(n, p, tweak, flags).unwrap();
        for item in items(case) {
            built.insert(&item);
        }
        let read = bip37::read(&payload).unwrap();
        assert_eq!(read.flags, flags, "{name}");
        let ours = through_ours(&read);
        for load in [&built, &read, &ours] {
            assert!(items(case).iter().all(|item| load.may_contain(item)), "{name}");
            for (probe, answer) in probes(case) {
                assert_eq!(load.may_contain(&probe), answer, "{name}: {probe:?}");
            }
            assert_eq!(written(load), payload, "{name}");
        }
        let empty = length == 0;
        assert_eq!(bip37::resembles(&payload), if empty { Resemblance::No } else { Resemblance::Could });
        assert_eq!(read.matcher.matches_everything(), empty, "{name}");
        let Matcher::Items(filter) = &read.matcher else { continue };
        assert_eq!(filter.placement(), WidePlacement::Bip37 { tweak }, "{name}");

        // Another tweak, and the members are non-members.
        let mut confused = payload.clone();
        let at = payload.len() - 5;
        confused[at] ^= 1;
        let confused = bip37::read(&confused).unwrap();
        assert!(items(case).iter().any(|item| !confused.may_contain(item)), "{name}: the tweak matters");
    }
    println!("bitcoin/bip37.json: {} cases", cases.len());
}

#[test]
fn filters_without_bytes_or_functions_match_everything() {
    for (bytes, functions) in [(&[][..], 0), (&[], 5), (&[0; 4], 0)] {
        let mut payload = vec![bytes.len() as u8];
        payload.extend_from_slice(bytes);
        payload.extend_from_slice(&u32::to_le_bytes(functions));
        payload.extend_from_slice(&[1, 2, 3, 4, 2]);
        let mut load = bip37::read(&payload).unwrap();
        assert!(load.matcher.matches_everything() && load.may_contain("anything"));
        assert!(!load.insert("anything"), "there is nothing to change");
        assert_eq!(written(&load), payload);
    }
    // So many items that less than two bits are left for each.
    assert_eq!(bip37::size(144_000, 0.01), Ok((36_000, 1)));
    assert_eq!(bip37::size(144_001, 0.01), Ok((36_000, 0)));
    let load = bip37::create(1_000_000, 0.01, 0, 0).unwrap();
    assert!(load.matcher.matches_everything());
    assert_eq!(written(&bip37::read(&written(&load)).unwrap()), written(&load));
}

#[test]
fn the_limits_of_the_protocol_are_kept() {
    assert_eq!(bip37::size(1, 1e-300), Ok((179, 50)), "functions are cut down to 50");
    assert_eq!(bip37::size(20_000, 1e-9), Ok((36_000, 9)), "bytes are cut down to 36 000");
    assert_eq!(bip37::size(u64::MAX, 0.01), Err(bip37::create(u64::MAX, 0.01, 0, 0).unwrap_err()));
    assert!(matches!(bip37::size(0, 0.01), Err(BuildError::CapacityOutOfRange { .. })));
    assert!(matches!(bip37::size(1, 1.0), Err(BuildError::RateOutOfRange { .. })));

    let payload = |length: &[u8], bytes: usize, functions: u32| {
        [length, &vec![0x55; bytes], &functions.to_le_bytes(), &[0; 5]].concat()
    };
    let read = |payload: &[u8]| bip37::read(payload).map(drop);
    assert_eq!(read(&payload(&[0xfd, 0xa0, 0x8c], 36_000, 50)), Ok(()));
    let largest = bip37::read(&payload(&[0xfd, 0xa0, 0x8c], 36_000, 50)).unwrap();
    assert_eq!(written(&through_ours(&largest)), payload(&[0xfd, 0xa0, 0x8c], 36_000, 50));
    assert_eq!(
        read(&payload(&[0xfd, 0xa1, 0x8c], 36_001, 50)),
        Err(DecodeError::BadField { field: "length", got: 36_001 })
    );
    assert_eq!(read(&payload(&[3], 3, 51)), Err(DecodeError::BadField { field: "functions", got: 51 }));
    assert_eq!(
        read(&payload(&[0xfe, 0, 0, 0, 0x80], 1, 1)),
        Err(DecodeError::BadField { field: "length", got: 1 << 31 })
    );
    for too_long in
        [&[0xfd, 3, 0][..], &[0xfd, 0xfc, 0], &[0xfe, 3, 0, 0, 0], &[0xff, 3, 0, 0, 0, 0, 0, 0, 0]]
    {
        assert!(matches!(read(&payload(too_long, 3, 1)), Err(DecodeError::BadField { .. })), "{too_long:?}");
    }
    assert_eq!(read(&payload(&[0xfd, 0xfd, 0], 253, 1)), Ok(()), "253 takes three bytes");
    assert_eq!(read(&payload(&[3], 4, 1)), Err(DecodeError::TrailingBytes { extra: 1 }));
    assert_eq!(read(&[]), Err(DecodeError::TooShort { need: 1, got: 0 }));
    assert_eq!(bip37::resembles(&payload(&[3], 3, 51)), Resemblance::No);
    assert_eq!(bip37::resembles(&payload(&[3], 4, 5)), Resemblance::No);
}

/// Nodes take items for bytes, so a filter of other items would lose them there.
#[test]
fn only_filters_of_bytes_are_written() {
    let Matcher::Items(filter) = bip37::create(10, 0.01, 5, 0).unwrap().matcher else { panic!("no bits") };
    let mut forged = filter.encode();
    forged[136] = ItemEncoding::Utf8.number() as u8;
    hostile::seal(&mut forged);
    let mut filter = WideBloom::decode(&forged).unwrap();
    filter.insert(&7_u64);
    let refused = bip37::write_items(&filter, 0, &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, WriteError::OtherPlacement { .. }), "{refused}");
}

#[test]
fn filters_above_the_limits_are_not_written() {
    let refusal = |load: &FilterLoad| bip37::write(load, &mut Vec::new()).unwrap_err();
    let everything = |bytes: usize, functions: u32| FilterLoad {
        matcher: Matcher::Everything { bytes: vec![0; bytes], functions, tweak: 0 },
        flags: 0,
    };
    assert!(matches!(refusal(&everything(36_001, 0)), WriteError::NoRoom { field: "bytes", .. }));
    assert!(matches!(refusal(&everything(0, 51)), WriteError::NoRoom { field: "functions", .. }));
    let other = bits_and_blooms::create(10, 0.01, ItemEncoding::Bytes).unwrap();
    let refusal = refusal(&FilterLoad { matcher: Matcher::Items(other), flags: 0 });
    assert!(matches!(refusal, WriteError::OtherPlacement { .. }));
    assert!(refusal.to_string().contains("BIP-37"), "{refusal}");
}

#[test]
fn text_is_its_bytes() {
    let mut load = bip37::create(10, 0.001, 9, bip37::UPDATE_NONE).unwrap();
    load.insert("item-1");
    "item-1".with_bytes(|bytes| assert!(load.may_contain(bytes)));
}

#[test]
fn damaged_payloads_are_survived() {
    let mut load = bip37::create(4, 0.1, 7, bip37::UPDATE_ALL).unwrap();
    load.insert("ada");
    let payload = written(&load);
    let fields = [(0, 1), (payload.len() - 9, 4), (payload.len() - 5, 4), (payload.len() - 1, 1)];
    hostile::survives("bip37", &payload, &fields, false, |bytes| {
        let mut load = bip37::read(bytes)?;
        load.insert("grace");
        assert!(load.may_contain("grace"));
        assert_eq!(written(&through_ours(&load)), written(&load));
        Ok(())
    });
}
