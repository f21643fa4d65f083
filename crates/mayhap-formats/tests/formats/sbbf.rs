//! Parquet's split-block filter as a blob. `parquet` tests the files that contain it.

use mayhap::{
    Answers, AtomicBlockedBloom, BlockedBloom, BlockedLayout, BlockedPlacement, BlockedShape, BuildError,
    DecodeError, ItemEncoding, MergeError,
};
use mayhap_formats::sbbf::{self, Sizing};
use mayhap_formats::{Resemblance, WriteError};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{Given, bytes, float, json, json_lines, number, offsets, text};

const MEMBERS: u32 = 1000;
const PROBES: u32 = 10_000;

/// The items of a column of the four files: `values` in `cases.json`.
pub(crate) fn member(column: &str, i: u32) -> Given {
    match column {
        "s" => Given::Text(format!("item-{i}")),
        "i32" => Given::I32(i as i32),
        "i64" => Given::I64(i64::from(i) * 1_000_003),
        "f64" => Given::Bytes((f64::from(i) / 7.0).to_le_bytes().to_vec()),
        "bin" => Given::Bytes(i.to_be_bytes().repeat(1 + i as usize % 5)),
        other => panic!("no column {other}"),
    }
}

pub(crate) fn members(column: &str) -> Vec<Given> {
    (0..MEMBERS).map(|i| member(column, i)).collect()
}

pub(crate) fn encoding(column: &str) -> ItemEncoding {
    match column {
        "s" => ItemEncoding::Utf8,
        "i32" => ItemEncoding::I32Le,
        "i64" => ItemEncoding::I64Le,
        "f64" => ItemEncoding::F64Le,
        _ => ItemEncoding::Bytes,
    }
}

/// The non-members of a case, each with the answer of the real program, for the columns it was queried for.
pub(crate) fn probes(case: &Value) -> Vec<(Given, bool)> {
    let probe = match text(case, "column") {
        "s" => |i| Given::Text(format!("absent-{i}")),
        "i32" => |i| Given::I32(i as i32 + 1000),
        _ => return Vec::new(),
    };
    let wrong = offsets(case, "probe_false_positive_offsets");
    (0..PROBES).map(|i| (probe(i), wrong.contains(&(i as usize)))).collect()
}

pub(crate) fn written(filter: &BlockedBloom) -> Vec<u8> {
    let mut blob = Vec::new();
    sbbf::write(filter, &mut blob).unwrap();
    blob
}

pub(crate) fn blob(case: &Value) -> Vec<u8> {
    bytes(&format!("parquet_sbbf/{}", text(case, "filter_file")))
}

fn check_case(case: &Value) {
    let (column, blob) = (text(case, "column"), blob(case));
    let name = format!("{} {column}", text(case, "writer"));
    let (members, items) = (members(column), encoding(column));
    let header = text(case, "header_hex");
    assert_eq!(crate::vectors::unhex(header), blob[..header.len() / 2], "{name}");

    // Built from the items: same size, same bytes.
    let mut built = sbbf::create(MEMBERS.into(), 0.01, Sizing::Arrow, items).unwrap();
    assert_eq!(built.shape().blocks(), number(case, "num_blocks"), "{name}");
    for like in [Sizing::ParquetJava, Sizing::Arrow, Sizing::Rust] {
        assert_eq!(sbbf::size(MEMBERS.into(), 0.01, like).unwrap().1, number(case, "num_bytes"), "{name}");
    }
    built.insert_batch(&members);
    assert_eq!(written(&built), blob, "{name}");
    let mut one_by_one = sbbf::with_blocks(built.shape().blocks(), items).unwrap();
    let changed = members.iter().filter(|item| one_by_one.insert(*item)).count() as u64;
    assert_eq!((one_by_one.inserted(), changed), (built.inserted(), built.inserted()), "{name}");
    assert_eq!(written(&one_by_one), blob, "{name}");

    // Read from the bytes: the same answers, the same bytes again, through our own format as well.
    let read = sbbf::read(&blob, items).unwrap();
    assert!((990..=1010).contains(&read.inserted()), "{name}: {} items by the fill", read.inserted());
    let ours = BlockedBloom::decode(&read.encode()).unwrap();
    assert_eq!((ours.scheme(), ours.placement()), (read.scheme(), BlockedPlacement::Parquet), "{name}");
    let probed = probes(case);
    for filter in [&built, &read, &ours] {
        assert!(members.iter().all(|item| filter.may_contain(item)), "{name}");
        for (probe, answer) in &probed {
            assert_eq!(filter.may_contain(probe), *answer, "{name}: {probe:?}");
        }
        assert_eq!(written(filter), blob, "{name}");
    }
    assert_eq!(sbbf::resembles(&blob), Resemblance::Surely, "{name}");

    // A number in another width is another item.
    if matches!(column, "i32" | "i64") {
        let other = if column == "i32" { ItemEncoding::I64Le } else { ItemEncoding::I32Le };
        let confused = sbbf::read(&blob, other).unwrap();
        assert!(members.iter().any(|item| !confused.may_contain(item)), "{name}: the encoding matters");
    }
}

#[test]
fn every_case_is_rebuilt_read_and_written() {
    let cases = json("parquet_sbbf/cases.json");
    let cases = cases["cases"].as_array().unwrap();
    cases.iter().for_each(check_case);
    println!("parquet_sbbf/cases.json: {} cases", cases.len());
}

#[test]
fn the_official_sample_holds_its_four_strings() {
    let sample = bytes("parquet_sbbf/parquet-testing_bloom_filter.xxhash.bin");
    let read = sbbf::read(&sample, ItemEncoding::Utf8).unwrap();
    let words = ["hello", "parquet", "bloom", "filter"];
    assert!(words.iter().all(|word| read.may_contain(word)));
    assert_eq!((read.shape().blocks(), read.inserted(), read.ones()), (32, 4, 32));
    let non_members = (0..10_000_u32).filter(|i| read.may_contain(&i.to_string())).count();
    assert_eq!(non_members, 0);
    let mut built = sbbf::with_blocks(32, ItemEncoding::Utf8).unwrap();
    built.insert_batch(&words);
    assert_eq!(written(&built), sample);
    assert_eq!(written(&read), sample);
    println!("parquet_sbbf/parquet-testing_bloom_filter.xxhash.bin: 1 blob");
}

#[test]
fn the_table_of_sizes_is_reproduced() {
    let rows = json_lines("parquet_sbbf/sizing_parquet_java_1.17.0.jsonl");
    let mut doubled = Vec::new();
    for row in &rows {
        let (ndv, fpp) = (number(row, "ndv"), float(row, "fpp"));
        let (bits, bytes) = sbbf::size(ndv, fpp, Sizing::ParquetJava).unwrap();
        assert_eq!(bits, number(row, "optimal_num_of_bits"), "{row}");
        assert_eq!(bytes, number(row, "num_bytes"), "{row}");
        let (_, rust) = sbbf::size(ndv, fpp, Sizing::Rust).unwrap();
        let (_, arrow) = sbbf::size(ndv, fpp, Sizing::Arrow).unwrap();
        assert_eq!(rust, arrow, "{row}");
        if rust != bytes {
            assert_eq!(rust * 2, bytes, "{row}");
            doubled.push((ndv, fpp));
        }
    }
    assert_eq!(rows.len(), 60);
    assert!(doubled.contains(&(100, 0.01)), "the slip of parquet-java doubles this one, among {doubled:?}");
    println!("parquet_sbbf/sizing_parquet_java_1.17.0.jsonl: {} cells, {doubled:?} doubled", rows.len());
}

#[test]
fn limits_of_the_writers_apply_here() {
    for like in [Sizing::ParquetJava, Sizing::Arrow, Sizing::Rust] {
        assert_eq!(sbbf::size(0, 0.5, like).unwrap().1, 32, "never less than a block");
        assert_eq!(sbbf::size(1 << 40, 1e-6, like).unwrap().1, 128 << 20, "never more than 128 MiB");
        assert!(sbbf::size(10, 0.0, like).is_err() && sbbf::size(10, 1.0, like).is_err());
        assert!(sbbf::size(u64::MAX, 0.01, like).is_err());
    }
    // Rounding bits or bytes up to a power of two is not the same.
    let differ = (1..2_000).filter(|&ndv| {
        sbbf::size(ndv, 0.01, Sizing::Arrow).unwrap().1 != sbbf::size(ndv, 0.01, Sizing::Rust).unwrap().1
    });
    assert!(differ.count() > 0);
    // A rate too low to measure is stored in our own file as the lowest possible one.
    let strict = sbbf::create(1, 1e-40, Sizing::Rust, ItemEncoding::Utf8).unwrap();
    assert_eq!(BlockedBloom::decode(&strict.encode()).unwrap().target_fpr(), strict.target_fpr());
    let full = sbbf::create(1 << 32, 0.01, Sizing::Arrow, ItemEncoding::Utf8).unwrap();
    assert!(full.target_fpr() > 0.9, "128 MiB do not keep 1 % of 2^32 items, and the target shows it");
    assert!(matches!(sbbf::with_blocks(0, ItemEncoding::Utf8), Err(BuildError::BitsOutOfRange { .. })));
    assert!(matches!(sbbf::with_blocks(1 << 31, ItemEncoding::Utf8), Err(BuildError::BitsOutOfRange { .. })));
}

const LENGTH_32: [u8; 2] = [0x15, 64];
const UNIONS: [[u8; 4]; 3] = [[0x1c, 0x1c, 0, 0]; 3];

fn with_header(parts: &[&[u8]]) -> Vec<u8> {
    [&parts.concat()[..], &[0; 32]].concat()
}

#[test]
fn headers_are_parsed_not_compared() {
    let [one, two, three] = &UNIONS;
    let plain = with_header(&[&LENGTH_32, one, two, three, &[0]]);
    assert!(sbbf::read(&plain, ItemEncoding::Bytes).is_ok());
    // Fields of a later version, numbers written the long way, another order: all the same header.
    for odd in [
        with_header(&[&LENGTH_32, one, two, three, &[0x18, 2, b'h', b'i', 0x19, 0x15, 2, 0]]),
        with_header(&[&[0x05, 2, 64], one, two, three, &[0]]),
        with_header(&[&[0x0c, 4, 0x1c, 0, 0, 0x0c, 6, 0x1c, 0, 0, 0x0c, 8, 0x1c, 0, 0, 0x05, 2, 64, 0]]),
        with_header(&[&[0x15, 0xc0, 0], one, two, three, &[0]]),
        with_header(&[&LENGTH_32, &[0x1c, 0x1c, 0x15, 7, 0, 0], two, three, &[0]]),
    ] {
        let filter = sbbf::read(&odd, ItemEncoding::Bytes).unwrap();
        assert_eq!(written(&filter), plain);
    }
    let refused = |parts: &[&[u8]]| sbbf::read(&with_header(parts), ItemEncoding::Bytes).unwrap_err();
    let other = [0x1c, 0x2c, 0, 0];
    for (cause, text) in [
        (refused(&[&LENGTH_32, &other, two, three, &[0]]), "algorithm (1 is split blocks) cannot be 2"),
        (refused(&[&LENGTH_32, one, &other, three, &[0]]), "hash function (1 is XXH64) cannot be 2"),
        (refused(&[&LENGTH_32, one, two, &other, &[0]]), "compression (1 is none) cannot be 2"),
        (refused(&[&LENGTH_32, one, two, &[0]]), "compression (1 is none) cannot be 0"),
        (refused(&[&LENGTH_32, one, &[0x1c, 0], three, &[0]]), "hash function (1 is XXH64) cannot be 0"),
        (
            refused(&[&LENGTH_32, one, &[0x1c, 0x1c, 0, 0x1c, 0, 0], three, &[0]]),
            "hash function (1 is XXH64) cannot be 2",
        ),
        (refused(&[&[0x2c, 0x1c, 0, 0], two, three, &[0]]), "number of bytes cannot be 0"),
        (refused(&[&[0x15, 62], one, two, three, &[0]]), "number of bytes cannot be 31"),
        (refused(&[&[0x15, 63], one, two, three, &[0]]), "number of bytes cannot be 18446744073709551584"),
        (refused(&[&[0x16, 64], one, two, three, &[0]]), "thrift type cannot be 6"),
        (refused(&[&[0x15, 128, 1], one, two, three, &[0]]), "needs 80 bytes, got 48"),
    ] {
        assert!(cause.to_string().contains(text), "{cause} / {text}");
    }
    let extra = [&plain[..], &[0]].concat();
    assert_eq!(sbbf::read(&extra, ItemEncoding::Bytes).unwrap_err(), DecodeError::TrailingBytes { extra: 1 });
    assert_eq!(sbbf::resembles(&extra), Resemblance::No);
    // As parquet-java 1.10 wrote it: length, hash strategy 0, algorithm 0.
    let deprecated = [&[0, 4, 0, 0][..], &[0; 8], &[0xaa; 1024]].concat();
    let refusal = sbbf::read(&deprecated, ItemEncoding::Utf8).unwrap_err();
    assert!(refusal.to_string().contains("murmur3"), "{refusal}");
    assert_eq!(sbbf::resembles(&deprecated), Resemblance::No);
}

#[test]
fn only_parquets_filters_are_written() {
    let ours = BlockedBloom::for_capacity(10, 0.01, 0).unwrap();
    let refusal = sbbf::write(&ours, &mut Vec::new()).unwrap_err();
    assert!(matches!(refusal, WriteError::OtherPlacement { .. }), "{refusal}");
    assert!(refusal.to_string().contains("cannot be converted without its items"), "{refusal}");
    // Untouched pages cost no memory.
    let large = sbbf::with_blocks(1 << 26, ItemEncoding::Bytes).unwrap();
    let refusal = sbbf::write(&large, &mut std::io::sink()).unwrap_err();
    assert!(matches!(refusal, WriteError::NoRoom { got: 0x8000_0000, limit: 0x7fff_ffff, .. }), "{refusal}");
}

/// Any number of blocks; the rule differs from ours for all but powers of two.
#[test]
fn every_way_to_ask_or_insert_agrees() {
    for blocks in [1, 2, 3, 7, 64, 1000, 4096, 99_991] {
        let items: Vec<u32> = (0..blocks as u32 * 10).collect();
        let mut one_by_one = sbbf::with_blocks(blocks, ItemEncoding::I32Le).unwrap();
        items.iter().for_each(|item| {
            one_by_one.insert(item);
        });
        let mut batch = sbbf::with_blocks(blocks, ItemEncoding::I32Le).unwrap();
        assert_eq!(batch.insert_batch(&items), one_by_one.inserted());
        let mut hashed = sbbf::with_blocks(blocks, ItemEncoding::I32Le).unwrap();
        let hashes: Vec<_> = items.iter().map(|item| hashed.hash(item)).collect();
        hashed.insert_hash_batch(&hashes);
        let shared = AtomicBlockedBloom::from(sbbf::with_blocks(blocks, ItemEncoding::I32Le).unwrap());
        let (some, others) = items.split_at(items.len() / 2);
        std::thread::scope(|scope| {
            scope.spawn(|| some.iter().filter(|item| shared.insert(*item)).count());
            scope.spawn(|| shared.insert_batch(others));
        });
        let asked: Vec<u32> = (0..blocks as u32 * 10 + 5_000).collect();
        let mut answers = Answers::new();
        one_by_one.may_contain_batch(&asked, &mut answers);
        for (index, item) in asked.iter().enumerate() {
            let answer = one_by_one.may_contain(item);
            assert_eq!(answers.get(index), Some(answer), "{blocks} blocks, {item}");
            assert_eq!(shared.may_contain(item), answer);
            assert!(answer || index >= items.len());
        }
        let shared = shared.into_inner();
        assert_eq!(shared.placement(), BlockedPlacement::Parquet);
        let expected = one_by_one.encode();
        for filter in [batch, hashed, BlockedBloom::decode(&expected).unwrap()] {
            assert_eq!(filter.encode(), expected, "{blocks} blocks");
        }
        assert_eq!(written(&shared), written(&one_by_one), "{blocks} blocks");
        assert_eq!(written(&sbbf::read(&written(&shared), ItemEncoding::I32Le).unwrap()), written(&shared));
    }
}

#[test]
fn filters_of_another_placement_are_not_merged() {
    let mut parquet = sbbf::create(1_000, 0.01, Sizing::Rust, ItemEncoding::I32Le).unwrap();
    parquet.insert(&7);
    let mut other = sbbf::create(1_000, 0.01, Sizing::Rust, ItemEncoding::I32Le).unwrap();
    other.insert(&8);
    other.union(&parquet).unwrap();
    assert!(other.may_contain(&7) && other.may_contain(&8) && other.inserted() == 2);
    // The same blocks and the same hashes, by our own rule.
    let mut ours = BlockedBloom::with_shape(*parquet.shape(), *parquet.scheme()).unwrap();
    let refusal = ours.union(&parquet).unwrap_err();
    assert!(matches!(refusal, MergeError::BlocksDiffer { ours: BlockedPlacement::Split, .. }), "{refusal}");
    let text = sbbf::create(1_000, 0.01, Sizing::Rust, ItemEncoding::Utf8).unwrap();
    assert!(matches!(other.union(&text), Err(MergeError::HashDiffers { .. })), "other items");
    assert!(sbbf::write(&ours, &mut Vec::new()).is_err());
}

/// Our own file must not combine Parquet's placement with another hash or more blocks than it can choose among.
#[test]
fn forged_mayhap_files_are_rejected() {
    let filter = sbbf::with_blocks(2, ItemEncoding::Utf8).unwrap();
    let file = filter.encode();
    let forged = |edits: &[(usize, &[u8])]| {
        let mut file = file.clone();
        for &(at, bytes) in edits {
            file[at..at + bytes.len()].copy_from_slice(bytes);
        }
        let checksum = xxh3(&file[..184]);
        file[184..192].copy_from_slice(&checksum.to_le_bytes());
        BlockedBloom::decode(&file)
    };
    assert!(forged(&[]).is_ok());
    assert_eq!(forged(&[(12, &[1, 0])]).unwrap().placement(), BlockedPlacement::Split);
    let native = forged(&[(14, &[1, 0]), (136, &[0, 0])]).unwrap_err();
    assert_eq!(native, DecodeError::UnknownPlacement { got: 3 });
    let guava = forged(&[(14, &[16, 0])]).unwrap_err();
    assert_eq!(guava, DecodeError::UnknownPlacement { got: 3 });
    assert_eq!(forged(&[(12, &[4, 0])]).unwrap_err(), DecodeError::UnknownPlacement { got: 4 });
    let many = forged(&[(72, &(1_u64 << 31).to_le_bytes())]).unwrap_err();
    assert_eq!(many, DecodeError::BadField { field: "blocks", got: 1 << 31 });
}

fn xxh3(bytes: &[u8]) -> u64 {
    let function = mayhap::hash::named::NamedHash::Xxh3_64 { seed: 0 };
    function.digest(bytes).to_u64().unwrap()
}

/// Half of a filter is the filter built at that size: in every layout, by every rule, whatever the number of blocks.
#[test]
fn a_halved_filter_is_one_built_at_that_size() {
    let shape = |layout, fpr| BlockedShape::with_layout(layout, 4_000, fpr).unwrap();
    let ours = |shape| BlockedBloom::with_shape(shape, 7).unwrap();
    let mut seen = 0;
    for empty in [
        sbbf::create(4_000, 0.01, Sizing::Rust, ItemEncoding::I32Le).unwrap(),
        sbbf::with_blocks(1006, ItemEncoding::I32Le).unwrap(),
        ours(shape(BlockedLayout::Split256, 0.01)),
        ours(shape(BlockedLayout::Split256, 0.011)),
        ours(shape(BlockedLayout::Line512, 0.01)),
        ours(shape(BlockedLayout::Line512, 1e-4)),
        ours(shape(BlockedLayout::Line512, 1e-6)),
    ] {
        let items: Vec<i32> = (0..2_000).collect();
        let mut full = empty.try_clone().unwrap();
        full.insert_batch(&items);
        let mut small = empty;
        while small.shape().blocks().is_multiple_of(2) {
            let half = full.halved().unwrap();
            small = small.halved().unwrap();
            assert_eq!(small.shape().blocks() * 2, full.shape().blocks());
            let mut built = small.try_clone().unwrap();
            built.insert_batch(&items);
            assert_eq!(half.encode()[192..], built.encode()[192..], "{}", half.shape());
            assert!(items.iter().all(|item| half.may_contain(item)));
            assert!(half.target_fpr() >= half.shape().expected_fpr(half.capacity()));
            let again = BlockedBloom::decode(&half.encode()).unwrap();
            assert_eq!((again.shape(), again.placement()), (half.shape(), full.placement()));
            full = half;
            seen += 1;
        }
        let blocks = full.shape().blocks();
        assert_eq!(full.halved().unwrap_err(), BuildError::OddBlocks { got: blocks });
    }
    assert!(seen > 12, "{seen} halvings");
    // Down to the file Parquet's writers would have made.
    let blob = bytes("parquet_sbbf/i32_2048_1.sbbf.bin");
    let mut large = sbbf::with_blocks(64 << 5, ItemEncoding::I32Le).unwrap();
    large.insert_batch(&members("i32"));
    let folded = sbbf::folded(&large, 0.01).unwrap();
    assert_eq!(written(&folded), blob);
    assert_eq!(written(&(0..5).fold(large, |filter, _| filter.halved().unwrap())), blob);
    let nothing = sbbf::with_blocks(64, ItemEncoding::I32Le).unwrap();
    assert_eq!(sbbf::folded(&nothing, 0.01).unwrap().shape().blocks(), 1);
    let odd = sbbf::with_blocks(7, ItemEncoding::I32Le).unwrap();
    assert_eq!(sbbf::folded(&odd, 0.01).unwrap().shape().blocks(), 7);
    assert!(sbbf::folded(&odd, 1.0).is_err());
}

#[test]
fn damaged_blobs_are_survived() {
    let mut filter = sbbf::with_blocks(3, ItemEncoding::I64Le).unwrap();
    filter.insert(&1_i64);
    let blob = written(&filter);
    hostile::survives("sbbf", &blob, &[(0, 1), (1, 2), (3, 4), (7, 4), (11, 4), (15, 1)], false, |bytes| {
        let mut filter = sbbf::read(bytes, ItemEncoding::I64Le)?;
        filter.insert(&2_i64);
        assert!(filter.may_contain(&2_i64));
        let _ = (filter.expected_fpr(), written(&filter), filter.encode());
        Ok(())
    });
}
