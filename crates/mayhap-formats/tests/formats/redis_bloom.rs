//! RedisBloom's `BF.SCANDUMP` and `BF.LOADCHUNK`.

use mayhap::{
    Answers, Bloom, BuildError, DecodeError, Filter, InsertError, ItemEncoding, MergeError, ScalableBloom,
};
use mayhap_formats::redis_bloom::{self, BloomLoader, LoadError, Scaling};
use mayhap_formats::{Resemblance, WriteError};
use serde_json::Value;

use crate::hostile;
use crate::vectors::{Given, bytes, inline_or_file, items, json, number, offsets, probes, text, unhex};

/// The filter `BF.RESERVE` makes of these arguments.
pub(crate) fn reserved(arguments: &Value) -> ScalableBloom {
    let words: Vec<&str> = arguments.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let scaling = match words[2..] {
        [] => Scaling::By(2),
        ["NONSCALING"] => Scaling::Never,
        ["EXPANSION", by] => Scaling::By(by.parse().unwrap()),
        _ => panic!("{words:?}"),
    };
    redis_bloom::create(words[1].parse().unwrap(), words[0].parse().unwrap(), scaling).unwrap()
}

fn written(filter: &ScalableBloom) -> Vec<u8> {
    let mut dump = Vec::new();
    redis_bloom::write(filter, &mut dump).unwrap();
    dump
}

/// Loads these chunks in this order, and returns the filter.
fn loaded(chunks: &[(i64, Vec<u8>)]) -> ScalableBloom {
    let mut loader = BloomLoader::new(1 << 30);
    for (iterator, chunk) in chunks {
        loader.load(*iterator, chunk).unwrap();
    }
    loader.finish().unwrap()
}

fn check_header(name: &str, filter: &ScalableBloom, header: &Value) {
    assert_eq!(filter.inserted(), number(header, "size"), "{name}");
    assert_eq!(filter.shape().growth_factor(), number(header, "growth") as f64, "{name}");
    assert_eq!(filter.shape().grows(), number(header, "options") == 5, "{name}");
    let links = header["links"].as_array().unwrap();
    assert_eq!(filter.layers().len(), links.len(), "{name}");
    for (layer, link) in filter.layers().iter().zip(links) {
        assert_eq!(layer.shape().bits(), number(link, "bits"), "{name}");
        assert_eq!(u64::from(layer.shape().probes()), number(link, "hashes"), "{name}");
        assert_eq!(layer.capacity(), number(link, "entries"), "{name}");
        assert_eq!(layer.inserted(), number(link, "size"), "{name}");
        assert_eq!(layer.target_fpr(), text(link, "error").parse::<f64>().unwrap(), "{name}");
    }
}

fn check_case(case: &Value) {
    let name = text(case, "name");
    let header = unhex(text(case, "header_hex"));
    let dump = [header.clone(), inline_or_file(case, "bits", "redisbloom")].concat();
    let (items, probed) = (items(case), probes(case));

    // Built from the items, one by one and as a batch.
    let mut built = reserved(&case["reserve_args"]);
    let added = items.iter().filter(|item| built.insert(*item).unwrap()).count() as u64;
    let mut batch = reserved(&case["reserve_args"]);
    assert_eq!(batch.insert_batch(&items).unwrap(), added, "{name}");
    check_header(name, &built, &case["header"]);
    assert_eq!(redis_bloom::header(&built).unwrap(), header, "{name}");

    // Read in one piece, through our own format, and chunk by chunk.
    let read = redis_bloom::read(&dump).unwrap();
    let ours = ScalableBloom::decode(&read.encode()).unwrap();
    let Filter::ScalableBloom(any) = Filter::decode(&read.encode()).unwrap() else { panic!("{name}") };
    let chunks: Vec<(i64, Vec<u8>)> = redis_bloom::chunks(&read).unwrap().collect();
    let iterators: Vec<u64> = chunks.iter().map(|(iterator, _)| *iterator as u64).collect();
    assert_eq!(iterators, offsets(case, "iterators").iter().map(|&i| i as u64).collect::<Vec<_>>(), "{name}");
    let mut backwards = chunks.clone();
    backwards[1..].reverse();
    backwards.push(chunks[1].clone());
    let info = &case["info"];
    for filter in [&built, &batch, &read, &ours, &any, &loaded(&chunks), &loaded(&backwards)] {
        assert_eq!(written(filter), dump, "{name}");
        check_header(name, filter, &case["header"]);
        assert!(items.iter().all(|item| filter.may_contain(item)), "{name}");
        for (probe, answer) in &probed {
            assert_eq!(filter.may_contain(probe), *answer, "{name}: {probe:?}");
            assert_eq!(filter.may_contain_hash(filter.hash(probe)), *answer, "{name}");
        }
        let mut answers = Answers::new();
        let (asked, expected): (Vec<Given>, Vec<bool>) = probed.iter().cloned().unzip();
        filter.may_contain_batch(&asked, &mut answers);
        assert_eq!(answers.iter().collect::<Vec<_>>(), expected, "{name}");
        assert_eq!(filter.capacity(), number(info, "Capacity"), "{name}");
        assert_eq!(redis_bloom::info_size_bytes(filter), number(info, "Size"), "{name}");
        assert_eq!(filter.layers().len() as u64, number(info, "Number of filters"), "{name}");
        assert_eq!(filter.inserted(), number(info, "Number of items inserted"), "{name}");
        let expansion = filter.shape().grows().then(|| filter.shape().growth_factor());
        assert_eq!(expansion, info["Expansion rate"].as_f64(), "{name}");
        assert_eq!(filter.shape(), built.shape(), "{name}");
    }
    assert_eq!(redis_bloom::resembles(&dump), Resemblance::Could, "{name}");
    assert_eq!(redis_bloom::resembles(&header), Resemblance::Could, "{name}");
    assert_eq!(redis_bloom::resembles(&dump[..dump.len() - 1]), Resemblance::No, "{name}");
    // A filter with every layer's bits one place further forgets its items.
    let mut spoiled = dump.clone();
    spoiled[header.len()..].rotate_right(1);
    let spoiled = redis_bloom::read(&spoiled).unwrap();
    assert!(items.iter().any(|item| !spoiled.may_contain(item)), "{name}: the test has teeth");
}

#[test]
fn every_case_is_rebuilt_read_and_written() {
    let cases = json("redisbloom/bf_scandump.json");
    let cases = cases["cases"].as_array().unwrap();
    cases.iter().for_each(check_case);
    assert_eq!(cases.len(), 4);
    println!("redisbloom/bf_scandump.json: {} cases", cases.len());
}

/// Pinned by RedisBloom's own tests; another hash, size or order of layers gives other numbers.
#[test]
fn counts_are_those_redis_bloom_pins() {
    let filled = |error, capacity, scaling, count: u32| {
        let mut filter = redis_bloom::create(capacity, error, scaling).unwrap();
        (0..count).for_each(|i| {
            filter.insert(&i.to_string()).unwrap();
        });
        filter
    };
    assert_eq!(filled(0.01, 10, Scaling::By(2), 100).inserted(), 99);
    assert_eq!(filled(0.001, 100, Scaling::By(2), 4_000).inserted(), 3_997);
    assert_eq!(filled(0.01, 4, Scaling::By(1), 100).layers().len(), 23);
    let size = |error, capacity, scaling| {
        redis_bloom::info_size_bytes(&redis_bloom::create(capacity, error, scaling).unwrap())
    };
    assert_eq!(size(0.001, 100, Scaling::By(2)), 296);
    assert_eq!(size(0.01, 100, Scaling::By(2)), 240);
    assert_eq!(size(0.01, 1_000_000, Scaling::By(2)), 1_378_568);
    assert_eq!(size(0.01, 1_000_000, Scaling::Never), 1_198_232);
    assert_eq!(size(0.000_001, 300_000_000, Scaling::By(2)), 1_132_420_232);
    // Sizes of filters grown item by item.
    let grown = filled(0.01, 1_000, Scaling::By(2), 100_000);
    assert_eq!(grown.layers().len(), 7);
    assert!(grown.layers().windows(2).all(|two| two[1].capacity() == 2 * two[0].capacity()));
    assert!(grown.layers().windows(2).all(|two| two[1].target_fpr() == two[0].target_fpr() / 2.0));
}

/// Placement 4 is frozen: the rates of its layers, their bits, and the growth of an encoded filter.
#[test]
fn tightened_layers_are_those_of_their_plan_and_grow_on_after_decoding() {
    let scaling = Scaling::Tightened { by: 2, tightening: redis_bloom::COMPACT };
    let mut filter = redis_bloom::create(100, 0.01, scaling).unwrap();
    for i in 0..1_000_u32 {
        let mut decoded = ScalableBloom::decode(&filter.encode()).unwrap();
        for filter in [&mut filter, &mut decoded] {
            filter.insert(&i.to_string()).unwrap();
        }
        assert!(filter.encode() == decoded.encode());
    }
    let layers: Vec<(u64, u64, u32)> = filter
        .layers()
        .iter()
        .map(|layer| (layer.capacity(), layer.shape().bits(), layer.shape().probes()))
        .collect();
    assert_eq!(layers, [(100, 1_152, 8), (200, 3_008, 11), (400, 6_144, 11), (800, 12_544, 11)]);
    let rates: Vec<f64> = filter.layers().iter().map(Bloom::target_fpr).collect();
    assert_eq!(rates[..2], [0.005, 0.005 * (1.0 - redis_bloom::COMPACT)]);
    assert!(filter.layers().windows(2).skip(1).all(|two| two[1].target_fpr() == two[0].target_fpr() * 0.85));
    // RedisBloom reads it as its own, and continues by halving.
    let read = redis_bloom::read(&written(&filter)).unwrap();
    assert_eq!((read.inserted(), read.target_fpr()), (filter.inserted(), 0.01));
    // With 1/2 it is RedisBloom's own plan.
    let half = redis_bloom::shape(100, 0.01, Scaling::Tightened { by: 2, tightening: 0.5 }).unwrap();
    let theirs = redis_bloom::shape(100, 0.01, Scaling::By(2)).unwrap();
    assert!((0..20).all(|index| half.layer(index) == theirs.layer(index)));
    for tightening in [0.0, 1.0, -0.5, f64::NAN] {
        let refused = redis_bloom::shape(100, 0.01, Scaling::Tightened { by: 2, tightening });
        assert!(matches!(refused, Err(BuildError::TighteningOutOfRange { .. })), "{tightening}");
    }
}

#[test]
fn a_filter_that_never_grows_refuses_the_item_past_its_capacity_and_stays_as_it_was() {
    let mut filter = redis_bloom::create(3, 0.01, Scaling::Never).unwrap();
    assert_eq!(redis_bloom::info_size_bytes(&filter), 104);
    let mut next = 0..;
    while filter.inserted() < 3 {
        filter.insert(&next.next().unwrap().to_string()).unwrap();
    }
    let before = filter.encode();
    let refused = filter.insert("one more").unwrap_err();
    let cause = BuildError::LayersOutOfRange { got: 2, limit: 1 };
    assert_eq!(refused, InsertError::CannotGrow { capacity: 3, layers: 1, cause });
    assert_eq!(refused.to_string(), "filter is full with 3 items and cannot grow");
    assert_eq!(filter.insert_batch(&["one more", "and another"]), Err(refused));
    assert_eq!(filter.insert("0"), Ok(false), "a member is not a new item");
    assert!(filter.encode() == before);
    let same = ScalableBloom::decode(&before).unwrap();
    assert!(!same.shape().grows() && same.shape().layer(1).is_err());
    assert_eq!(same.shape().to_string(), "RedisBloom's one layer of 3 items");
}

#[test]
fn a_read_filter_grows_on_as_redis_bloom_would() {
    let mut grown = redis_bloom::create(10, 0.02, Scaling::By(3)).unwrap();
    for i in 0..200_u32 {
        let mut read = redis_bloom::read(&written(&grown)).unwrap();
        let mut ours = ScalableBloom::decode(&grown.encode()).unwrap();
        for filter in [&mut grown, &mut read, &mut ours] {
            filter.insert(&i.to_string()).unwrap();
        }
        assert!(written(&grown) == written(&read) && written(&grown) == written(&ours), "{i}");
    }
    assert!(grown.layers().len() > 3);
    // Growth follows the previous layer, whatever its origin: here one with more entries than planned.
    let mut dump = written(&redis_bloom::create(10, 0.02, Scaling::By(3)).unwrap());
    dump[64..72].copy_from_slice(&15_u64.to_le_bytes());
    let mut odd = redis_bloom::read(&dump).unwrap();
    (0..30_u32).for_each(|i| {
        odd.insert(&i.to_string()).unwrap();
    });
    assert_eq!(odd.layers()[1].capacity(), 45);
    assert_eq!(ScalableBloom::decode(&odd.encode()).unwrap().encode(), odd.encode());
}

/// Rates down to the smallest number there is, with more probes than any filter of ours takes.
#[test]
fn extreme_rates_make_the_filters_they_make_there() {
    for error in [0.9, 0.25, 0.125, 0.5, 1e-20, 1e-100, 1e-300, 1e-310, f64::MIN_POSITIVE] {
        for scaling in [Scaling::By(2), Scaling::Never] {
            let mut filter = redis_bloom::create(5, error, scaling).unwrap();
            let first = if scaling == Scaling::Never { 1.0 } else { 0.5 };
            assert_eq!(filter.layers()[0].target_fpr(), error.min(0.25) * first);
            filter.insert("ada").unwrap();
            let read = redis_bloom::read(&written(&filter)).unwrap();
            assert_eq!(written(&ScalableBloom::decode(&read.encode()).unwrap()), written(&filter));
            assert!(read.may_contain("ada") && !read.may_contain("grace"));
        }
    }
    let probes = |error| redis_bloom::create(5, error, Scaling::Never).unwrap().layers()[0].shape().probes();
    assert_eq!((probes(1e-300), probes(0.01)), (997, 7));
    // Past a thousand halvings there is nothing left to halve.
    let mut filter = redis_bloom::create(1, 1e-308, Scaling::By(1)).unwrap();
    let refused = (0..100_u32).find_map(|i| filter.insert(&i.to_string()).err());
    assert!(matches!(refused, Some(InsertError::CannotGrow { .. })), "{refused:?}");
}

#[test]
fn headers_that_redisbloom_rejects_are_rejected() {
    assert!(matches!(redis_bloom::create(100, 0.0, Scaling::Never), Err(BuildError::RateOutOfRange { .. })));
    assert!(redis_bloom::create(100, 1.0, Scaling::Never).is_err());
    assert!(redis_bloom::create(100, f64::NAN, Scaling::Never).is_err());
    assert!(redis_bloom::create(0, 0.01, Scaling::Never).is_err());
    assert!(matches!(redis_bloom::create(1, 0.01, Scaling::By(0)), Err(BuildError::GrowthOutOfRange { .. })));
    assert!(redis_bloom::create(1, 0.01, Scaling::By(32_769)).is_err());

    let dump = written(&{
        let mut filter = redis_bloom::create(10, 0.01, Scaling::By(2)).unwrap();
        filter.insert_batch(&["ada", "grace"]).unwrap();
        filter
    });
    let forged = |at: usize, field: &[u8]| {
        let mut forged = dump.clone();
        forged[at..at + field.len()].copy_from_slice(field);
        redis_bloom::read(&forged).unwrap_err()
    };
    let bad = |field, got| DecodeError::BadField { field, got };
    assert_eq!(forged(0, &[3]), bad("items", 3));
    assert_eq!(forged(8, &[0]), bad("number of layers", 0));
    assert!(matches!(forged(8, &[0xff; 4]), DecodeError::TooShort { .. }));
    assert_eq!(forged(12, &[21]), bad("options", 21));
    for options in [0_u8, 1, 4, 6, 7, 9, 15] {
        assert!(matches!(forged(12, &[options]), DecodeError::Unsupported { .. }), "options {options}");
    }
    assert_eq!(
        forged(12, &[1]).to_string(),
        "unsupported: a RedisBloom filter of before version 2, with a hash of 32 bits"
    );
    assert!(matches!(forged(16, &[0]), DecodeError::Unbuildable(BuildError::GrowthOutOfRange { .. })));
    assert_eq!(forged(20, &[17]), bad("bits of a layer", 128));
    assert_eq!(forged(28, &[0, 0]), bad("bits of a layer", 0));
    assert_eq!(forged(36, &[9]), bad("items", 2));
    assert_eq!(forged(44, &0.0_f64.to_le_bytes()), bad("error of a layer", 0));
    assert_eq!(forged(44, &f64::NAN.to_le_bytes()), bad("error of a layer", f64::NAN.to_bits()));
    assert!(matches!(forged(44, &0.1_f64.to_le_bytes()), DecodeError::BadField { .. }), "of another rate");
    assert!(matches!(forged(52, &f64::INFINITY.to_le_bytes()), DecodeError::BadField { .. }));
    assert_eq!(forged(60, &[9]), bad("probes of a layer", 9));
    assert!(matches!(forged(64, &[0; 8]), DecodeError::Unbuildable(_)), "no entries");
    assert!(matches!(forged(72, &[7]), DecodeError::Unsupported { .. }));
    assert_eq!(forged(72, &[64]), bad("n2 of a layer", 64));
    assert!(matches!(redis_bloom::read(&dump[..80]), Err(DecodeError::TooShort { .. })));
    assert!(matches!(
        redis_bloom::read(&[&dump[..], b"x"].concat()),
        Err(DecodeError::TrailingBytes { extra: 1 })
    ));
    // A hash count that hangs a server with every item.
    let mut hanging = dump.clone();
    hanging[60..64].copy_from_slice(&0x7fff_fff0_u32.to_le_bytes());
    hanging[52..60].copy_from_slice(&(f64::from(0x7fff_fff0_u32) / std::f64::consts::LN_2).to_le_bytes());
    assert!(redis_bloom::read(&hanging).is_err());
    // Two layers of a filter that never grows.
    let mut two = written(&{
        let mut filter = redis_bloom::create(1, 0.01, Scaling::By(2)).unwrap();
        filter.insert_batch(&["ada", "grace"]).unwrap();
        filter
    });
    two[12] = 13;
    assert_eq!(redis_bloom::read(&two).unwrap_err(), bad("number of layers", 2));
}

#[test]
fn chunks_are_loaded_in_any_order_and_nowhere_else() {
    let mut filter = redis_bloom::create(100, 0.01, Scaling::By(2)).unwrap();
    (0..250_u32).for_each(|i| {
        filter.insert(&i.to_string()).unwrap();
    });
    let chunks: Vec<(i64, Vec<u8>)> = redis_bloom::chunks(&filter).unwrap().collect();
    let mut loader = BloomLoader::new(1 << 20);
    assert_eq!(loader.load(145, &chunks[1].1), Err(LoadError::NoHeader { iterator: 145 }));
    assert!(matches!(loader.load(1, b"no header"), Err(LoadError::BadHeader(DecodeError::TooShort { .. }))));
    let long = [&chunks[0].1[..], b"x"].concat();
    assert!(matches!(loader.load(1, &long), Err(LoadError::BadHeader(DecodeError::TrailingBytes { .. }))));
    loader.load(1, &chunks[0].1).unwrap();
    assert_eq!(
        loader.load(1, &chunks[0].1),
        Err(LoadError::BadPosition { iterator: 1, length: chunks[0].1.len() as u64 })
    );
    for iterator in [i64::MIN, -1, 0, 1, 144] {
        let refused = loader.load(iterator, &chunks[1].1);
        assert!(matches!(refused, Err(LoadError::BadPosition { .. })), "{iterator}");
    }
    let total = chunks.last().unwrap().0 - 1;
    let past = loader.load(total + 2, b"x").unwrap_err();
    assert_eq!(past, LoadError::NoLayer { offset: total as u64, bytes: total as u64 });
    assert!(matches!(loader.load(i64::MAX, b"x"), Err(LoadError::NoLayer { .. })));
    let too_big = loader.load(146, &[0; 145]).unwrap_err();
    assert_eq!(too_big, LoadError::TooBig { chunk: 145, room: 144 });
    assert_eq!(too_big.to_string(), "the chunk has 145 bytes, but its layer ends after 144");
    // Byte by byte, from the last to the first.
    let dump = written(&filter);
    let body = &dump[chunks[0].1.len()..];
    for (at, byte) in body.iter().enumerate().rev() {
        loader.load(at as i64 + 2, &[*byte]).unwrap();
    }
    assert_eq!(written(&loader.finish().unwrap()), dump);
    assert!(matches!(BloomLoader::new(1).finish(), Err(DecodeError::TooShort { .. })));
    let refused = BloomLoader::new(255).load(1, &chunks[0].1).unwrap_err();
    assert!(matches!(refused, LoadError::BadHeader(DecodeError::Unbuildable(BuildError::TooLarge { .. }))));

    // As `SCANDUMP` answers any iterator.
    let answer = |iterator| redis_bloom::chunk(&filter, iterator).unwrap();
    assert_eq!(answer(0), (1, chunks[0].1.clone()));
    assert_eq!(answer(100), (145, body[99..144].to_vec()));
    for iterator in [-1, i64::MIN, total + 1, total + 2, i64::MAX] {
        assert_eq!(answer(iterator), (0, vec![]), "{iterator}");
    }
}

/// A layer larger than a chunk: chunks have the sizes of the original, and none crosses into the next layer.
#[test]
fn large_layers_are_dumped_in_chunks_of_16_mib() {
    let mut filter = redis_bloom::create(13_000_000, 0.01, Scaling::By(1)).unwrap();
    filter.insert_batch(&(0..100_000_u32).map(|i| i.to_string()).collect::<Vec<_>>()).unwrap();
    let sizes: Vec<(i64, usize)> =
        redis_bloom::chunks(&filter).unwrap().map(|(next, chunk)| (next, chunk.len())).collect();
    let bytes = filter.layers()[0].shape().bits() as usize / 8;
    assert_eq!(sizes, [(1, 73), (1 + (16 << 20), 16 << 20), (bytes as i64 + 1, bytes - (16 << 20))]);
    let chunks: Vec<(i64, Vec<u8>)> = redis_bloom::chunks(&filter).unwrap().collect();
    assert!(written(&loaded(&chunks)) == written(&filter));
}

#[test]
fn only_filters_of_redis_bloom_are_written() {
    let ours = ScalableBloom::for_capacity(100, 0.01, 0).unwrap();
    let refused = redis_bloom::write(&ours, &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, WriteError::OtherPlacement { .. }));
    assert!(
        refused.to_string().contains("the format needs items placed by RedisBloom's MurmurHash64A"),
        "{refused}"
    );
    assert!(redis_bloom::header(&ours).is_err() && redis_bloom::chunk(&ours, 5).is_err());
    assert!(redis_bloom::chunks(&ours).is_err());
    let mut ours = ours;
    assert_eq!(redis_bloom::load_chunk(&mut ours, 65, &[0; 8]), Err(LoadError::OtherPlacement));
    // Its plan needs its hash, or a key.
    let theirs = redis_bloom::create(100, 0.01, Scaling::By(2)).unwrap();
    let refused = ScalableBloom::with_shape(*theirs.shape(), 7).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a filter of this shape needs RedisBloom's MurmurHash64A or a secret key"
    );
    assert!(ScalableBloom::with_shape(*theirs.shape(), *theirs.scheme()).is_ok());
    assert!(theirs.shape().growth(2.5).is_err() && theirs.shape().tightening(0.6).is_err());
    assert!(theirs.shape().growth(3.0).is_ok());
    // Its layers are not our layers, and they cannot be merged.
    let mut layer = theirs.layers()[0].try_clone().unwrap();
    let shape = mayhap::BloomShape::exactly(1152, 8, 100).unwrap();
    let other = Bloom::with_shape(shape, *theirs.scheme()).unwrap();
    assert!(matches!(layer.union(&other), Err(MergeError::PlacementDiffers { .. })));
}

/// The readers of a dump hash items as bytes, so a filter with another item encoding would lose its items there.
#[test]
fn only_filters_of_bytes_are_written() {
    const AT: usize = 136;
    let mut forged = redis_bloom::create(100, 0.01, Scaling::By(2)).unwrap().encode();
    forged[192 + AT] = ItemEncoding::Utf8.number() as u8;
    hostile::seal(&mut forged[192..]);
    forged[AT] = ItemEncoding::Utf8.number() as u8;
    let sum = |bytes: &[u8]| mayhap::hash::named::xxhash::xxh3_64(bytes, 0).to_le_bytes();
    let checksum = sum(&forged[192..384]);
    forged[24..32].copy_from_slice(&checksum);
    let checksum = sum(&forged[..184]);
    forged[184..192].copy_from_slice(&checksum);
    let mut filter = ScalableBloom::decode(&forged).unwrap();
    filter.insert(&7_u64).unwrap();
    let refused = redis_bloom::write(&filter, &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, WriteError::OtherPlacement { .. }), "{refused}");
}

/// The hash has no secret, and these items were made to prove it: RedisBloom takes every one of them for `user:7`.
#[test]
fn forged_items_have_the_same_effect_as_in_redisbloom() {
    let forged = String::from_utf8(bytes("attacks/forged-items.txt")).unwrap();
    let set = |wanted: &str| -> Vec<Vec<u8>> {
        let lines = forged.lines().filter_map(|line| line.split_once(' '));
        lines.filter(|(set, _)| *set == wanted).map(|(_, hex)| unhex(hex)).collect()
    };
    let mut filter = redis_bloom::create(1_000, 0.0001, Scaling::By(2)).unwrap();
    filter.insert("user:7").unwrap();
    let collide = set("collide");
    assert!(collide.len() == 200 && collide.iter().all(|item| filter.may_contain(item)));
    let mut polluted = redis_bloom::create(20_000, 0.01, Scaling::Never).unwrap();
    let pollute = set("pollute");
    assert_eq!((pollute.len(), polluted.insert_batch(&pollute)), (20_000, Ok(20_000)));
    let layer = &polluted.layers()[0];
    assert_eq!(layer.ones(), 20_000 * u64::from(layer.shape().probes()), "each sets only fresh bits");
    println!("attacks/forged-items.txt: 200 collide, 20000 pollute");
}

/// A header may contain any count of items; the filter must still encode and decode.
#[test]
fn forged_counts_are_harmless() {
    const MOST: u64 = 1 << 62;
    let mut filter = redis_bloom::create(2, 0.05, Scaling::By(1)).unwrap();
    filter.insert_batch(&[1_u64, 2, 3, 4, 5, 6, 7, 8, 9, 10]).unwrap();
    let layers = filter.layers().len();
    assert!(layers > 4);
    let mut header = redis_bloom::header(&filter).unwrap();
    header[..8].copy_from_slice(&MOST.to_le_bytes());
    for layer in 0..layers {
        let items = if layer == 0 { MOST } else { 0 };
        header[36 + 53 * layer..][..8].copy_from_slice(&items.to_le_bytes());
    }
    let mut loaded = redis_bloom::from_header(&header, 1 << 20).unwrap();
    loaded.insert("ada").unwrap();
    let decoded = ScalableBloom::decode(&loaded.encode()).unwrap();
    assert!(decoded.may_contain("ada"));

    // The sum over all layers is past 64 bits.
    let mut forged = filter.encode();
    let (mut at, mut headers) = (192, Vec::new());
    while at < forged.len() {
        let length = u64::from_le_bytes(forged[at + 16..at + 24].try_into().unwrap()) as usize;
        forged[at + 56..at + 64].copy_from_slice(&MOST.to_le_bytes());
        hostile::seal(&mut forged[at..at + 192 + length]);
        headers.extend_from_slice(&forged[at..at + 192]);
        at += 192 + length;
    }
    let sum = |bytes: &[u8]| mayhap::hash::named::xxhash::xxh3_64(bytes, 0).to_le_bytes();
    forged[56..64].copy_from_slice(&MOST.to_le_bytes());
    forged[24..32].copy_from_slice(&sum(&headers));
    let checksum = sum(&forged[..184]);
    forged[184..192].copy_from_slice(&checksum);
    let mut crowded = ScalableBloom::decode(&forged).unwrap();
    crowded.insert("ada").unwrap();
    assert!(ScalableBloom::decode(&crowded.encode()).unwrap().may_contain("ada"));
}

/// A forged `.mayhap` file that decodes is written as a dump or refused, and reading the dump returns.
#[test]
fn forged_files_are_written_without_harm() {
    let mut filter = redis_bloom::create(20, 0.01, Scaling::By(2)).unwrap();
    filter.insert_batch(&(0..100).collect::<Vec<u64>>()).unwrap();
    hostile::survives_forged("redis_bloom::write", &filter.encode(), |bytes| {
        let Ok(filter) = ScalableBloom::decode(bytes) else { return false };
        let mut dump = Vec::new();
        if redis_bloom::write(&filter, &mut dump).is_ok() {
            let _ = redis_bloom::read(&dump);
        }
        true
    });
}

#[test]
fn damaged_dumps_are_survived() {
    let mut filter = redis_bloom::create(4, 0.05, Scaling::By(2)).unwrap();
    filter.insert_batch(&["ada", "grace", "edsger", "barbara", "donald", "tony"]).unwrap();
    assert_eq!(filter.layers().len(), 2);
    let dump = written(&filter);
    let layer = [0, 8, 16, 24, 32, 40, 44, 52].map(|at| (20 + at, if at == 40 { 4 } else { 8 }));
    let layer = layer.map(|(at, length)| (at, if at == 72 { 1 } else { length }));
    let fields = [&[(0, 8), (8, 4), (12, 4), (16, 4)], &layer[..]].concat();
    let used = |filter: &mut ScalableBloom| {
        filter.limit_memory(Some(1 << 12));
        let _ = filter.insert("annie");
        let _ = (filter.may_contain("ada"), filter.expected_fpr(), filter.capacity());
        assert_eq!(written(&redis_bloom::read(&written(filter)).unwrap()), written(filter));
    };
    hostile::survives("redis_bloom::read", &dump, &fields, false, |bytes| {
        let mut filter = redis_bloom::read(bytes)?;
        used(&mut filter);
        ScalableBloom::decode(&filter.encode()).map(drop)
    });
    let header = redis_bloom::header(&filter).unwrap();
    hostile::survives("redis_bloom::BloomLoader", &header, &fields, false, |bytes| {
        let mut loader = BloomLoader::new(1 << 10);
        match loader.load(1, bytes) {
            Err(LoadError::BadHeader(cause)) => return Err(cause),
            refused => refused.unwrap(),
        }
        for (iterator, chunk) in redis_bloom::chunks(&filter).unwrap().skip(1) {
            let _ = loader.load(iterator, &chunk);
        }
        used(&mut loader.finish()?);
        Ok(())
    });
}
