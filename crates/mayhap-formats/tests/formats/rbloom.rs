//! rbloom.

use mayhap::{Bloom, BloomPlacement, DecodeError, Filter, ItemEncoding};
use mayhap_formats::Resemblance;
use mayhap_formats::rbloom::{self, HashFunction};

use crate::hostile;
use crate::vectors::{bytes, float, items, json, number, probes, text};

fn read(file: &[u8]) -> Result<Bloom, DecodeError> {
    rbloom::read(file, HashFunction::Sha256, ItemEncoding::Utf8)
}

#[test]
fn every_case_is_read_and_rebuilt() {
    let table = json("python/rbloom.json");
    assert_eq!(text(&table, "hash_func"), "int.from_bytes(sha256(utf8)[:16], big, signed)");
    let cases = table["cases"].as_array().unwrap();
    for case in cases {
        let name = text(case, "name");
        let file = bytes(&format!("python/{}", text(case, "file")));
        let filter = read(&file).unwrap();
        assert_eq!(filter.shape().bits(), number(case, "bits"), "{name}");
        assert_eq!(u64::from(filter.shape().probes()), number(case, "k"), "{name}");
        assert_eq!(filter.placement(), BloomPlacement::Rbloom, "{name}");
        assert_eq!(filter.estimated_items(), float(case, "approx_items").round() as u64, "{name}");

        // Rebuilt from the items, every bit is equal.
        let mut built = filter.try_clone().unwrap();
        built.clear();
        built.insert_batch(&items(case));
        assert!(built.encode()[192..] == filter.encode()[192..], "{name}: the bits are those of the file");

        let ours = Bloom::decode(&filter.encode()).unwrap();
        assert_eq!(ours.scheme(), filter.scheme(), "{name}");
        let Ok(Filter::Bloom(any)) = Filter::decode(&filter.encode()) else { panic!("{name}") };
        for filter in [&built, &filter, &ours, &any] {
            assert!(items(case).iter().all(|item| filter.may_contain(item)), "{name}");
            for (probe, answer) in probes(case) {
                assert_eq!(filter.may_contain(&probe), answer, "{name}: {probe:?}");
                assert_eq!(filter.may_contain_hash(filter.hash(&probe)), answer, "{name}: {probe:?}");
            }
        }
        assert_eq!(rbloom::resembles(&file), Resemblance::Could, "{name}");
        let confused = rbloom::read(&file, HashFunction::Sha256, ItemEncoding::Utf16Le).unwrap();
        assert!(items(case).iter().any(|item| !confused.may_contain(item)), "{name}: the encoding matters");
        let mut plain = filter.try_clone().unwrap();
        assert!(plain.union(&Bloom::for_capacity(20, 0.01, 0).unwrap()).is_err(), "{name}");
    }
    println!("python/rbloom.json: {} cases", cases.len());
}

#[test]
fn bytes_that_are_not_a_filter_are_rejected() {
    let made = |probes: u64, bytes: usize| [&probes.to_le_bytes()[..], &vec![0; bytes]].concat();
    assert!(read(&made(1, 1)).is_ok() && read(&made(255, 1)).is_ok());
    assert_eq!(read(&[0; 7]).unwrap_err(), DecodeError::TooShort { need: 8, got: 7 });
    for (probes, bytes) in [(0, 1), (256, 1), (1, 0)] {
        assert!(matches!(read(&made(probes, bytes)), Err(DecodeError::Unbuildable(_))));
        assert_eq!(rbloom::resembles(&made(probes, bytes)), Resemblance::No);
    }
    assert_eq!(read(&made(1 << 40, 1)).unwrap_err(), DecodeError::BadField { field: "k", got: 1 << 40 });
    assert_eq!(rbloom::resembles(b"short"), Resemblance::No);
}

#[test]
fn damaged_files_are_survived() {
    let file = [&2_u64.to_le_bytes()[..], &[0x5a; 24]].concat();
    // All bytes after the first eight are bits.
    hostile::survives("rbloom", &file, &[(0, 8)], true, |bytes| {
        let mut filter = read(bytes)?;
        filter.insert("grace");
        assert!(filter.may_contain("grace"));
        let _ = (filter.fill(), filter.estimated_items());
        Bloom::decode(&filter.encode()).map(drop)
    });
}
