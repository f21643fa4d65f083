//! Every file format: a filter that is read must be the same after it was written and read again, in that format and in ours.

use mayhap::{Filter, ItemEncoding};
use mayhap_formats::{Format, ReadOptions, block_filter, cassandra, pybloom_live, redisson};

use crate::input::Input;
use crate::seal;

/// The limit for uncompressed files, and for filters that consist only of a header.
const LIMIT: u64 = 1 << 20;
const ITEMS: [&str; 6] =
    ["", "a", "user:7", "42", "-1", "some longer item with text in it, of more than one block"];
const ENCODINGS: [ItemEncoding; 4] =
    [ItemEncoding::Bytes, ItemEncoding::Utf8, ItemEncoding::Utf16Le, ItemEncoding::Kryo5];

fn options(input: &mut Input<'_>) -> ReadOptions {
    let options = ReadOptions::default().unpacked_limit(LIMIT).items(*input.of(&ENCODINGS));
    let choice = input.byte();
    let options = options
        .golomb(block_filter::BASIC, [choice; 16])
        .fingerprint_bits([8, 16, 32, 7][usize::from(choice & 3)])
        .column(usize::from(choice & 1), "column");
    let options = match choice & 4 {
        0 => options.pybloom_live(pybloom_live::PybloomVersion::V3).cassandra(cassandra::BitOrder::Before40),
        _ => options.pybloom_live(pybloom_live::PybloomVersion::V4).cassandra(cassandra::BitOrder::Since40),
    };
    match redisson::Config::sized(1 + u64::from(choice), 0.03) {
        Ok(config) => options.redisson(config),
        Err(_) => options,
    }
}

fn answers(filter: &Filter) -> Vec<bool> {
    ITEMS.iter().map(|item| filter.may_contain(*item)).collect()
}

/// Runs the target. The first byte chooses the format, the next two the read options; the others are the file.
///
/// # Panics
/// If a guarantee is broken.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let format = *input.of(&Format::ALL);
    let options = options(&mut input);
    let mut bytes = input.rest().to_vec();
    match format {
        Format::Mayhap => seal::mayhap(&mut bytes),
        Format::RedisDump => bytes = seal::redis_payload(&bytes),
        _ => {}
    }
    let _ = Format::sniff(&bytes);
    let Ok(mut filter) = format.read(&bytes, &options) else { return };
    let encoded = filter.encode();
    let same = Filter::decode(&encoded).expect("an encoded filter can be decoded");
    assert!(same.encode() == encoded, "{format}: differs after decoding and encoding");
    assert_eq!(answers(&same), answers(&filter), "{format}");
    let mut written = Vec::new();
    if format.writes() && format.write(&filter, &mut written).is_ok() {
        let again = format.read(&written, &options).unwrap_or_else(|error| panic!("{format}: {error}"));
        assert_eq!(answers(&again), answers(&filter), "{format}: differs after writing and reading");
        let mut twice = Vec::new();
        format.write(&again, &mut twice).expect("it was written before");
        assert!(twice == written || format == Format::DcsoGzip, "{format}: differs when written twice");
    }
    // A filter that was read must not panic or grow without bound when it is used.
    let _ = (filter.capacity(), filter.inserted(), filter.target_fpr(), filter.expected_fpr());
    if filter.memory_bytes() <= LIMIT {
        for item in ITEMS {
            // Foreign cuckoo chains grow as their header specifies: up to the limit.
            if matches!(filter, Filter::ScalableBloom(_) | Filter::ScalableCuckoo(_)) {
                break;
            }
            let _ = (filter.insert(item), filter.count(item), filter.remove(item));
        }
    }
}
