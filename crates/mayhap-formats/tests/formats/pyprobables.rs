//! pyprobables.

use mayhap::{BuildError, DecodeError, Filter, ItemEncoding, WideBloom};
use mayhap_formats::{Resemblance, pyprobables};

use crate::hostile;
use crate::vectors::{bytes, items, json, number, probes, text};

/// The hashed form of Python's `str`.
const CODE_POINTS: ItemEncoding = ItemEncoding::Utf32Le;

/// The same filter as `export_hex` gives it.
fn hex(file: &[u8]) -> String {
    let (bits, trailer) = file.split_at(file.len() - 20);
    let mut bytes = bits.to_vec();
    for field in [&trailer[..8], &trailer[8..16], &trailer[16..]] {
        bytes.extend(field.iter().rev());
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_case_is_read_and_rebuilt() {
    let cases = json("python/pyprobables.json");
    let cases = cases["cases"].as_array().unwrap();
    let mut with_hex = 0;
    for case in cases {
        let name = text(case, "name");
        let file = bytes(&format!("python/{}", text(case, "file")));
        let read = pyprobables::read(&file, CODE_POINTS).unwrap();
        assert_eq!(read.shape().bits(), number(case, "bits"), "{name}");
        assert_eq!(u64::from(read.shape().probes()), number(case, "k"), "{name}");
        assert_eq!(read.capacity(), number(case, "est_elements"), "{name}");
        assert_eq!(read.target_fpr() as f32, text(case, "fpr").parse::<f32>().unwrap(), "{name}");
        assert_eq!(read.inserted(), number(case, "elements_added"), "{name}");

        // Rebuilt from the items, every bit is equal. Python counts all items, not only those that changed a bit.
        let mut built = read.try_clone().unwrap();
        built.clear();
        assert!(built.insert_batch(&items(case)) <= read.inserted(), "{name}");
        assert!(built.encode()[192..] == read.encode()[192..], "{name}: the bits are those of the file");

        if let Some(exported) = case["export_hex"].as_str() {
            assert_eq!(hex(&file), exported, "{name}");
            with_hex += 1;
        }
        let from_hex = pyprobables::read_hex(&hex(&file), CODE_POINTS).unwrap();
        assert!(from_hex.encode() == read.encode(), "{name}");
        assert!(
            pyprobables::read_hex(&hex(&file).to_uppercase(), CODE_POINTS).unwrap().encode() == read.encode()
        );
        let ours = WideBloom::decode(&read.encode()).unwrap();
        let Ok(Filter::WideBloom(any)) = Filter::decode(&from_hex.encode()) else { panic!("{name}") };
        for filter in [&built, &read, &ours, &any] {
            assert!(items(case).iter().all(|item| filter.may_contain(item)), "{name}");
            for (probe, answer) in probes(case) {
                assert_eq!(filter.may_contain(&probe), answer, "{name}: {probe:?}");
            }
        }
        assert_eq!(pyprobables::resembles(&file), Resemblance::Could, "{name}");
        assert_eq!(pyprobables::resembles_hex(&hex(&file)), Resemblance::Could, "{name}");
        assert_eq!(pyprobables::resembles(&file[1..]), Resemblance::No, "{name}");
        assert_eq!(pyprobables::resembles_hex(&hex(&file)[2..]), Resemblance::No, "{name}");
    }
    println!("python/pyprobables.json: {} cases, {with_hex} of them in hexadecimal digits", cases.len());
}

/// ASCII is the same in code points and in bytes; nothing else is.
#[test]
fn the_encoding_matters_where_text_is_not_ascii() {
    let file = bytes("python/pyprobables_words.bin");
    let utf8 = pyprobables::read(&file, ItemEncoding::Utf8).unwrap();
    assert!(["", "hello", "user:12345"].iter().all(|item| utf8.may_contain(item)));
    assert!(["café", "你好，世界", "布隆过滤器"].iter().any(|item| !utf8.may_contain(item)));
    let points = pyprobables::read(&file, CODE_POINTS).unwrap();
    assert!(["café", "你好，世界", "布隆过滤器", "😀 emoji"].iter().all(|item| points.may_contain(item)));
    // Whoever has the code points passes them as bytes.
    let encoded: Vec<u8> = "café".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    assert!(points.may_contain(&encoded) && !points.may_contain("café".as_bytes()));
    // Bytes that are not whole code points are an item, too.
    assert!(!points.may_contain(b"abcde"));
}

fn made(bits: usize, estimated: u64, added: u64, rate: f32) -> Vec<u8> {
    let mut file = vec![0; bits];
    file.extend_from_slice(&estimated.to_le_bytes());
    file.extend_from_slice(&added.to_le_bytes());
    file.extend_from_slice(&rate.to_le_bytes());
    file
}

#[test]
fn filters_that_python_would_not_make_are_rejected() {
    let read = |file: &[u8]| pyprobables::read(file, CODE_POINTS).map(drop);
    assert_eq!(read(&made(24, 20, 0, 0.01)), Ok(()));
    assert_eq!(read(&made(25, 20, 0, 0.01)), Err(DecodeError::TrailingBytes { extra: 1 }));
    assert_eq!(read(&made(23, 20, 0, 0.01)), Err(DecodeError::TooShort { need: 24, got: 23 }));
    assert_eq!(read(&[]), Err(DecodeError::TooShort { need: 21, got: 0 }));
    assert_eq!(read(&made(0, 20, 0, 0.01)), Err(DecodeError::TooShort { need: 21, got: 20 }));
    for rate in [0.0, 1.0, -0.1, f32::NAN, f32::INFINITY] {
        assert!(matches!(
            read(&made(24, 20, 0, rate)),
            Err(DecodeError::Unbuildable(BuildError::RateOutOfRange { .. }))
        ));
    }
    for estimated in [0, u64::MAX] {
        assert!(matches!(
            read(&made(24, estimated, 0, 0.01)),
            Err(DecodeError::Unbuildable(BuildError::CapacityOutOfRange { .. }))
        ));
    }
    assert!(
        matches!(
            read(&made(3, 20, 0, 0.9)),
            Err(DecodeError::Unbuildable(BuildError::ProbesOutOfRange { got: 0, .. }))
        ),
        "no probes"
    );
    // As a trailer only: 9.6 thousand million bits.
    assert!(matches!(read(&made(24, 1_000_000_000, 0, 0.01)), Err(DecodeError::TooShort { .. })));
    let mut stray = made(780, 1_000, 0, 0.05); // 6 236 bits
    stray[779] = 0x10;
    assert_eq!(read(&stray), Err(DecodeError::StrayBit { bit: 6_236 }));
    let counted = pyprobables::read(&made(24, 20, u64::MAX, 0.01), CODE_POINTS).unwrap();
    assert_eq!(counted.inserted(), 1 << 62);
}

#[test]
fn errors_in_hexadecimal_text_have_a_position() {
    let good = hex(&made(24, 20, 0, 0.01));
    let read = |hex: &str| pyprobables::read_hex(hex, CODE_POINTS).map(drop);
    let what = "pairs of hexadecimal digits";
    assert_eq!(read(&good), Ok(()));
    assert_eq!(read(&good[1..]), Err(DecodeError::Malformed { what, at: 87 }));
    assert_eq!(read(&good.replacen("00", "0g", 1)), Err(DecodeError::Malformed { what, at: 1 }));
    assert_eq!(read(&format!("{good}\n ")), Err(DecodeError::Malformed { what, at: 88 }));
    assert_eq!(read("é"), Err(DecodeError::Malformed { what, at: 0 }));
    assert_eq!(read(""), Err(DecodeError::TooShort { need: 21, got: 0 }));
    assert_eq!(pyprobables::resembles_hex("no"), Resemblance::No);
}

fn use_it(mut filter: WideBloom) -> Result<(), DecodeError> {
    filter.insert("grace");
    assert!(filter.may_contain("grace"));
    let _ = (filter.may_contain("ada"), filter.fill(), filter.estimated_items());
    WideBloom::decode(&filter.encode()).map(drop)
}

#[test]
fn damaged_files_are_survived() {
    let mut file = made(24, 20, 3, 0.01);
    file[..20].fill(0x5a);
    hostile::survives("pyprobables", &file, &[(24, 8), (32, 8), (40, 4)], false, |bytes| {
        use_it(pyprobables::read(bytes, CODE_POINTS)?)
    });
    hostile::survives("pyprobables, hex", hex(&file).as_bytes(), &[], false, |bytes| {
        use_it(pyprobables::read_hex(&String::from_utf8_lossy(bytes), CODE_POINTS)?)
    });
}
