//! Cassandra's `Filter.db`. The hash is that of the real class, by its vectors; the files are put together here, byte by byte.

use mayhap::{Bloom, BuildError, DecodeError, ItemEncoding};
use mayhap_formats::cassandra::{self, BitOrder};
use mayhap_formats::{Resemblance, WriteError};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{json_lines, text, unhex};

/// The item of a row, and the two words Cassandra's class hashed it to.
fn item_and_hash(row: &Value) -> (Vec<u8>, [i64; 2]) {
    let words = row["cassandra_murmur3_x64_128_seed0"].as_array().unwrap();
    let word = |at: usize| u64::from_str_radix(words[at].as_str().unwrap(), 16).unwrap().cast_signed();
    (unhex(text(row, "input_hex")), [word(0), word(1)])
}

/// Builds the file as described, from the hash words alone.
fn assembled(probes: u32, words: u32, hashes: &[[i64; 2]], order: BitOrder) -> Vec<u8> {
    let (bits, mut bitmap) = (i128::from(words) * 64, vec![0_u8; words as usize * 8]);
    for &[first, second] in hashes {
        let mut base = second;
        for _ in 0..probes {
            let position = (i128::from(base) % bits).unsigned_abs() as usize;
            bitmap[position / 8] |= 1 << (position % 8);
            base = base.wrapping_add(first);
        }
    }
    if order == BitOrder::Before40 {
        bitmap.chunks_mut(8).for_each(<[u8]>::reverse);
    }
    [&probes.to_be_bytes()[..], &words.to_be_bytes(), &bitmap].concat()
}

fn written(filter: &Bloom, order: BitOrder) -> Vec<u8> {
    let mut file = Vec::new();
    cassandra::write(filter, order, &mut file).unwrap();
    file
}

#[test]
fn every_hashed_item_lands_where_its_words_say() {
    let rows = json_lines("cassandra/murmur3_variant.jsonl");
    let all: Vec<_> = rows.iter().map(item_and_hash).collect();
    let items: Vec<&[u8]> = all.iter().map(|(item, _)| item.as_slice()).collect();
    let hashes: Vec<[i64; 2]> = all.iter().map(|&(_, hash)| hash).collect();
    for order in [BitOrder::Since40, BitOrder::Before40] {
        for (keys, chance, words, probes) in [(87, 0.01, 14, 5), (1000, 0.1, 79, 3), (3, 0.0001, 2, 10)] {
            let mut filter = cassandra::create(keys, chance, ItemEncoding::Bytes).unwrap();
            assert_eq!((filter.shape().bits(), filter.shape().probes()), (u64::from(words) * 64, probes));
            // Each alone, then all together.
            for (item, hash) in &all {
                filter.clear();
                filter.insert(item);
                assert_eq!(written(&filter, order), assembled(probes, words, &[*hash], order), "{item:?}");
            }
            filter.clear();
            filter.insert_batch(&items);
            let file = assembled(probes, words, &hashes, order);
            assert_eq!(written(&filter, order), file);
            assert_eq!(cassandra::resembles(&file), Resemblance::Could);

            let read = cassandra::read(&file, order, ItemEncoding::Bytes).unwrap();
            let ours = Bloom::decode(&read.encode()).unwrap();
            assert_eq!(ours.scheme(), read.scheme());
            for filter in [&filter, &read, &ours] {
                assert!(items.iter().all(|item| filter.may_contain(item)));
                assert_eq!(written(filter, order), file);
            }
            assert!((0..1000).any(|i| !read.may_contain(&format!("absent-{i}"))) || keys == 3);
        }
    }
    assert_eq!(rows.len(), 87);
    println!("cassandra/murmur3_variant.jsonl: {} items, each in 6 filters", rows.len());
}

/// One item in two words, written out.
#[test]
fn a_file_lies_as_drawn() {
    // The hash of "a" is 85555565f6597889, e6b53a48510e895a, both below zero: positions 38, 99 and 20.
    let mut filter = cassandra::create(10, 0.1, ItemEncoding::Utf8).unwrap();
    filter.insert("a");
    let since = unhex(
        "0000000300000002\
                       00001000400000000000000008000000",
    );
    let before = unhex(
        "0000000300000002\
                        00000040001000000000000800000000",
    );
    let a = [0x8555_5565_f659_7889_u64.cast_signed(), 0xe6b5_3a48_510e_895a_u64.cast_signed()];
    assert_eq!(assembled(3, 2, &[a], BitOrder::Since40), since);
    assert_eq!(written(&filter, BitOrder::Since40), since);
    assert_eq!(written(&filter, BitOrder::Before40), before);
    // Read in the wrong order it is still a filter, but of other items.
    let confused = cassandra::read(&since, BitOrder::Before40, ItemEncoding::Utf8).unwrap();
    assert!(!confused.may_contain("a"));
}

/// Worked out by hand from the published table of rates; (10, 5) for 1 % is Cassandra's default.
#[test]
fn sizes_follow_the_table() {
    let per_key = |chance| {
        let (bits, probes) = cassandra::size(64_000, chance).unwrap();
        ((bits - 64) / 64_000, probes)
    };
    for (chance, bits, probes) in [
        (0.01, 10, 5),
        (0.1, 5, 3),
        (0.092, 5, 3),
        (0.0919, 6, 2),
        (0.05, 7, 3),
        (0.001, 15, 7),
        (0.0001, 20, 10),
        (6.71e-5, 20, 14),
        (0.3, 3, 1),
        (0.392, 3, 1),
        (0.393, 1, 2),
        (0.9, 1, 2),
    ] {
        assert_eq!(per_key(chance), (bits, probes), "{chance}");
    }
    assert_eq!(cassandra::size(0, 0.01).unwrap(), (64, 5));
    assert_eq!(cassandra::size(4, 0.01).unwrap(), (64, 5), "60 bits");
    assert_eq!(cassandra::size(5, 0.01).unwrap(), (128, 5), "70 bits");
    assert_eq!(
        cassandra::size(10, 6.7e-5),
        Err(BuildError::RateTooLow { got: 6.7e-5, limit: 6.71e-5 }),
        "Cassandra rejects it, too"
    );
    for chance in [0.0, 1.0, f64::NAN] {
        assert!(matches!(cassandra::size(10, chance), Err(BuildError::RateOutOfRange { .. })));
    }
    assert!(matches!(cassandra::size(1 << 35, 0.01), Err(BuildError::BitsOutOfRange { .. })));
    assert!(cassandra::size(u64::MAX, 0.01).is_err());
}

#[test]
fn bytes_that_are_not_a_file_are_rejected() {
    for (bytes, cause) in [
        ("", DecodeError::TooShort { need: 4, got: 0 }),
        ("00000005", DecodeError::TooShort { need: 8, got: 4 }),
        ("0000000580000000", DecodeError::BadField { field: "number of words", got: 1 << 31 }),
        ("000000057fffffff", DecodeError::TooShort { need: 17_179_869_184, got: 8 }),
        ("0000000500000001000000000000000000", DecodeError::TrailingBytes { extra: 1 }),
    ] {
        let read = cassandra::read(&unhex(bytes), BitOrder::Since40, ItemEncoding::Bytes);
        assert_eq!(read.unwrap_err(), cause, "{bytes}");
        assert_eq!(cassandra::resembles(&unhex(bytes)), Resemblance::No);
    }
    for bytes in ["00000000000000010000000000000000", "00000100000000010000000000000000", "0000000500000000"]
    {
        let read = cassandra::read(&unhex(bytes), BitOrder::Since40, ItemEncoding::Bytes);
        assert!(matches!(read, Err(DecodeError::Unbuildable(_))), "{bytes}");
    }
    let ours = Bloom::for_capacity(10, 0.01, 0).unwrap();
    let refusal = cassandra::write(&ours, BitOrder::Since40, &mut Vec::new()).unwrap_err();
    assert!(matches!(refusal, WriteError::OtherPlacement { .. }));
    assert!(refusal.to_string().contains("Cassandra's murmur3"), "{refusal}");
}

#[test]
fn damaged_files_are_survived() {
    let mut filter = cassandra::create(30, 0.001, ItemEncoding::Utf8).unwrap();
    filter.insert("ada");
    let file = written(&filter, BitOrder::Since40);
    hostile::survives("cassandra", &file, &[(0, 4), (4, 4)], false, |bytes| {
        let mut filter = cassandra::read(bytes, BitOrder::Since40, ItemEncoding::Utf8)?;
        filter.insert("grace");
        assert!(filter.may_contain("grace"));
        let _ = written(&filter, BitOrder::Before40);
        hostile::now_and_then(bytes, || (filter.expected_fpr(), filter.estimated_items(), filter.encode()));
        Ok(())
    });
    for kept in 0..file.len() {
        assert!(cassandra::read(&file[..kept], BitOrder::Before40, ItemEncoding::Utf8).is_err());
    }
}

#[test]
fn forged_mayhap_files_are_harmless() {
    let mut filter = cassandra::create(10, 0.01, ItemEncoding::Utf8).unwrap();
    filter.insert("ada");
    hostile::survives_forged("cassandra", &filter.encode(), |bytes| {
        let Ok(mut filter) = Bloom::decode(bytes) else { return false };
        filter.insert("grace");
        assert!(filter.may_contain("grace"));
        let mut out = Vec::new();
        if cassandra::write(&filter, BitOrder::Since40, &mut out).is_ok() {
            let same =
                cassandra::read(&out, BitOrder::Since40, hostile::encoding_of(filter.scheme())).unwrap();
            assert!(same.may_contain("grace"));
        }
        true
    });
    let mut forged = filter.encode();
    forged[72..80].copy_from_slice(&100_u64.to_le_bytes());
    hostile::seal(&mut forged);
    let refusal = cassandra::write(&Bloom::decode(&forged).unwrap(), BitOrder::Since40, &mut Vec::new());
    assert!(refusal.unwrap_err().to_string().contains("bits after the last whole word"));
}
