//! DCSO's `.bloom` files.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use mayhap::{Bloom, BuildError, DecodeError, ItemEncoding};
use mayhap_formats::dcso::{self, Dcso, Packing};
use mayhap_formats::guava::{self, Rounding, Strategy};
use mayhap_formats::{Resemblance, WriteError};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::corrupt::{Corruptor, Damage};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{bytes, float, items, json, number, probes, text, unhex};

const LIMIT: u64 = 1 << 20;

fn written(filter: &Bloom, data: &[u8], packing: Packing) -> Vec<u8> {
    let mut file = Vec::new();
    dcso::write(filter, data, packing, &mut file).unwrap();
    file
}

/// The uncompressed bytes.
fn unpacked(file: &[u8]) -> Vec<u8> {
    let Dcso { filter, data, .. } = dcso::read(file, LIMIT).unwrap();
    written(&filter, &data, Packing::Plain)
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(plain).unwrap();
    packed.finish().unwrap()
}

fn check_case(case: &Value) {
    let name = text(case, "name");
    let file = bytes(&format!("dcso/{}", text(case, "file")));
    let data = unhex(text(case, "trailing_data_hex"));
    let packing = if case["gzip"].as_bool().unwrap() { Packing::Gzip } else { Packing::Plain };
    let (n, p) = (number(case, "n"), float(case, "p"));

    // Built from the items: same measurements, same bytes.
    let mut built = dcso::create(n, p).unwrap();
    let (bits, probes_each) = dcso::size(n, p).unwrap();
    assert_eq!((bits, u64::from(probes_each)), (number(case, "m_bits"), number(case, "k")), "{name}");
    assert_eq!(
        built.insert_batch(&items(case)),
        number(case, "N"),
        "{name}: N counts insertions that changed a bit"
    );
    let plain = written(&built, &data, Packing::Plain);
    assert_eq!(plain.len() as u64, 48 + 8 * number(case, "words") + data.len() as u64, "{name}");

    // Read from the bytes: every field, the same answers, the same bytes again, through our own format as well.
    let read = dcso::read(&file, LIMIT).unwrap();
    assert_eq!((&read.data, read.packing), (&data, packing), "{name}");
    let filter = &read.filter;
    assert_eq!(
        (filter.capacity(), filter.target_fpr(), filter.inserted()),
        (n, p, number(case, "N")),
        "{name}"
    );
    assert_eq!((filter.shape().bits(), filter.shape().probes()), (bits, probes_each), "{name}");
    let ours = Bloom::decode(&filter.encode()).unwrap();
    assert_eq!(ours.scheme(), filter.scheme(), "{name}");
    let probed = probes(case);
    for filter in [&built, filter, &ours] {
        assert!(items(case).iter().all(|item| filter.may_contain(item)), "{name}");
        for (probe, answer) in &probed {
            assert_eq!(filter.may_contain(probe), *answer, "{name}: {probe:?}");
        }
        let again = written(filter, &data, Packing::Plain);
        match packing {
            Packing::Plain => assert!(again == file, "{name}"),
            // Two programs pack the same bytes differently.
            Packing::Gzip => assert!(again == plain, "{name}"),
        }
        assert!(unpacked(&written(filter, &data, Packing::Gzip)) == plain, "{name}");
    }
    assert_eq!(dcso::resembles(&file), Resemblance::Could, "{name}");

    // With one more bit per item, the same file no longer finds them: the test can fail.
    if !items(case).is_empty() {
        let mut spoiled = plain;
        spoiled[24] += 1; // k
        let spoiled = dcso::read(&spoiled, LIMIT).unwrap().filter;
        assert!(items(case).iter().any(|item| !spoiled.may_contain(item)), "{name}: k matters");
    }
}

#[test]
fn every_case_is_rebuilt_read_and_written() {
    let cases = json("dcso/cases.json");
    let cases = cases["cases"].as_array().unwrap();
    cases.iter().for_each(check_case);
    println!("dcso/cases.json: {} cases", cases.len());
}

#[test]
fn impossible_headers_are_rejected() {
    let specimen = bytes("dcso/words.bloom");
    let with = |at: usize, field: u64| {
        let mut file = specimen.clone();
        file[at..at + 8].copy_from_slice(&field.to_le_bytes());
        dcso::read(&file, LIMIT).unwrap_err()
    };
    assert_eq!(with(0, 2), DecodeError::BadField { field: "version", got: 2 });
    assert!(matches!(with(8, 0), DecodeError::Unbuildable(BuildError::CapacityOutOfRange { got: 0, .. })));
    for rate in [2.0, -1.0, f64::NAN, f64::INFINITY] {
        let cause = with(16, rate.to_bits());
        assert!(matches!(cause, DecodeError::Unbuildable(BuildError::RateOutOfRange { .. })), "{cause}");
    }
    assert!(matches!(with(24, 0), DecodeError::Unbuildable(BuildError::ProbesOutOfRange { got: 0, .. })));
    assert!(matches!(with(24, 256), DecodeError::Unbuildable(BuildError::ProbesOutOfRange { got: 256, .. })));
    assert_eq!(with(24, 1 << 32 | 7), DecodeError::BadField { field: "k", got: 1 << 32 | 7 });
    assert!(matches!(with(32, 0), DecodeError::Unbuildable(BuildError::BitsOutOfRange { got: 0, .. })));
    assert_eq!(with(32, 193), DecodeError::TooShort { need: 80, got: 72 });
    assert_eq!(with(32, 1 << 40), DecodeError::TooShort { need: 48 + (1 << 37), got: 72 });
    assert_eq!(with(40, u64::MAX), DecodeError::BadField { field: "N", got: u64::MAX });
    assert_eq!(with(64, u64::MAX), DecodeError::StrayBit { bit: 191 });
    assert_eq!(dcso::read(&[], LIMIT).unwrap_err(), DecodeError::TooShort { need: 48, got: 0 });
    for kept in 0..specimen.len() {
        assert!(matches!(dcso::read(&specimen[..kept], LIMIT), Err(DecodeError::TooShort { .. })), "{kept}");
    }
    // The program ignores and drops unknown flags.
    let mut flagged = specimen.clone();
    flagged[1] = 0x11;
    assert_eq!(unpacked(&flagged), specimen);
    assert_eq!(dcso::resembles(&flagged), Resemblance::No);

    assert!(dcso::create(0, 0.01).is_err() && dcso::create(u64::MAX, 0.01).is_err());
    assert!(dcso::create(10, 0.0).is_err() && dcso::create(10, 1.0).is_err());
    assert!(matches!(dcso::create(1, 0.9), Err(BuildError::BitsOutOfRange { got: 0, .. })));
    assert!(matches!(dcso::create(10, 1e-300), Err(BuildError::ProbesOutOfRange { got: 997, limit: 255 })));
}

#[test]
fn only_filters_that_place_items_so_are_written() {
    let guavas = guava::create(10, 0.01, Rounding::Since33, Strategy::Mitz64, ItemEncoding::Bytes).unwrap();
    for other in [Bloom::for_capacity(10, 0.01, 0).unwrap(), guavas] {
        let refusal = dcso::write(&other, b"", Packing::Gzip, &mut Vec::new()).unwrap_err();
        assert!(matches!(refusal, WriteError::OtherPlacement { .. }));
        assert!(refusal.to_string().contains("DCSO's FNV-1"), "{refusal}");
        assert!(dcso::create(10, 0.01).unwrap().union(&other).is_err());
    }
}

#[test]
fn data_of_any_length_is_kept() {
    let mut filter = dcso::create(3, 0.5).unwrap();
    assert!(filter.insert(""), "an empty line is an item too");
    for data in [vec![], vec![0], vec![0x1f; 100_000]] {
        for packing in [Packing::Plain, Packing::Gzip] {
            let read = dcso::read(&written(&filter, &data, packing), LIMIT).unwrap();
            assert_eq!((read.data, read.packing), (data.clone(), packing));
            assert!(read.filter.may_contain(""));
        }
    }
}

#[test]
fn nothing_is_unpacked_past_the_limit() {
    let filter = dcso::create(1_000, 0.01).unwrap(); // 48 + 1200 bytes
    let packed = written(&filter, &[7; 1000], Packing::Gzip);
    assert!(packed.len() < 100);
    assert_eq!(dcso::read(&packed, 2248).unwrap().data.len(), 1000);
    for limit in [0, 47, 48, 1247, 1248, 2247] {
        let refusal = dcso::read(&packed, limit).unwrap_err();
        assert_eq!(refusal, DecodeError::UnpacksTooLarge { limit });
        assert!(refusal.to_string().contains(&limit.to_string()), "{refusal}");
    }
    // The limit applies to compressed files; plain bytes are in memory already.
    assert!(dcso::read(&written(&filter, b"", Packing::Plain), 0).is_ok());
    // A header that speaks of more than so few bytes can unpack to is found out before memory is taken.
    let mut claims = written(&filter, b"", Packing::Plain);
    claims[32..40].copy_from_slice(&(1_u64 << 45).to_le_bytes());
    let packed = gzip(&claims);
    let cause = dcso::read(&packed, u64::MAX).unwrap_err();
    assert_eq!(cause, DecodeError::TooShort { need: 48 + (1 << 42), got: packed.len() as u64 * 1032 });
    assert_eq!(dcso::resembles(&packed), Resemblance::No);
}

#[test]
fn compressed_files_are_whole() {
    let plain = bytes("dcso/words_data.bloom");
    let packed = gzip(&plain);
    assert_eq!(unpacked(&packed), plain);
    // Two concatenated streams are one file, as for every reader of gzip.
    let (start, end) = plain.split_at(50);
    assert_eq!(unpacked(&[gzip(start), gzip(end)].concat()), plain);
    let mut wrong_sum = packed.clone();
    let at = packed.len() - 6;
    wrong_sum[at] ^= 1;
    for damaged in [&packed[..packed.len() - 1], &wrong_sum, &[&packed[..], b"junk"].concat(), &packed[..5]] {
        assert_eq!(dcso::read(damaged, LIMIT).unwrap_err(), DecodeError::BadCompression);
    }
    assert_eq!(dcso::resembles(&gzip(b"something else")), Resemblance::No);
}

/// The bytes inside gzip as they are, with the right sum.
fn stored(plain: &[u8]) -> Vec<u8> {
    let length = plain.len() as u16;
    let mut sum = flate2::Crc::new();
    sum.update(plain);
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(plain);
    packed.extend(sum.sum().to_le_bytes());
    packed.extend(u32::from(length).to_le_bytes());
    packed
}

fn use_it(bytes: &[u8], limit: u64) -> Result<(), DecodeError> {
    let mut read = dcso::read(bytes, limit)?;
    read.filter.insert("grace");
    assert!(read.filter.may_contain("grace"));
    let _ = (read.filter.expected_fpr(), read.filter.estimated_items());
    let _ = (written(&read.filter, &read.data, Packing::Plain), read.filter.encode());
    Ok(())
}

fn small_file(packing: Packing) -> Vec<u8> {
    let mut filter = dcso::create(20, 0.01).unwrap();
    filter.insert("ada");
    written(&filter, b"data", packing)
}

const FIELDS: [(usize, usize); 7] = [(0, 1), (0, 8), (8, 8), (16, 8), (24, 8), (32, 8), (40, 8)];

#[test]
fn damaged_files_are_survived() {
    // Longer is more data, and shorter less.
    hostile::survives("dcso", &small_file(Packing::Plain), &FIELDS, true, |bytes| use_it(bytes, 0));
}

/// [`use_it`], within the memory of the decompressor's window and tables, and of the longest name and extra field of gzip.
fn use_packed(bytes: &[u8], limit: u64, damage: &Damage) -> Result<(), DecodeError> {
    let (read, used) = AllocMeter::measure(|| use_it(bytes, limit));
    assert!(used.peak_bytes < 192 << 10, "{damage}: {} bytes", used.peak_bytes);
    let _ = dcso::resembles(bytes);
    read
}

/// Nearly every damage breaks the checksum; the rest is ignored by every reader of gzip.
#[test]
fn damaged_gzip_is_found_out() {
    let packed = small_file(Packing::Gzip);
    let plain = unpacked(&packed);
    let show = |bytes: &[u8], damage: &Damage| {
        let read = use_packed(bytes, plain.len() as u64, damage);
        match damage {
            Damage::Truncated { .. } | Damage::Extended { .. } => assert!(read.is_err(), "{damage}"),
            _ => assert!(read.is_err() || unpacked(bytes) == plain, "{damage}"),
        }
    };
    let mut corruptor = Corruptor::new(&packed);
    corruptor.truncations(show);
    corruptor.extensions(70, show);
    corruptor.extremes(&[(2, 1), (3, 1), (10, 2), (packed.len() - 4, 4)], show);
    corruptor.flips(7, 50_000, show);
}

/// The same where the sum is right.
#[test]
fn files_damaged_before_they_were_packed_are_survived() {
    let plain = small_file(Packing::Plain);
    let show = |bytes: &[u8], damage: &Damage| {
        let _ = use_packed(&stored(bytes), 4 * plain.len() as u64, damage);
    };
    let mut corruptor = Corruptor::new(&plain);
    corruptor.truncations(show);
    corruptor.extremes(&FIELDS, show);
    corruptor.flips(7, 100_000, show);
}
