//! RedisBloom's `CF.SCANDUMP` and `CF.LOADCHUNK`.

use mayhap::{Answers, BuildError, DecodeError, Filter, InsertError, ScalableCuckoo, ScalableCuckooShape};
use mayhap_formats::redis_cuckoo::{self, CuckooLoader, LoadError};
use mayhap_formats::{Resemblance, WriteError, redis_rdb};
use serde_json::Value;

use crate::hostile;

use crate::vectors::{Given, bytes, inline_or_file, items, json, number, offsets, probes, text, unhex};

fn shape(capacity: u64, bucket_size: u32, iterations: u32, expansion: u32) -> ScalableCuckooShape {
    let shape = ScalableCuckooShape::for_capacity(capacity).unwrap();
    let shape = shape.with_bucket_size(bucket_size).unwrap().with_max_iterations(iterations).unwrap();
    shape.with_expansion(expansion).unwrap()
}

pub(crate) fn created(capacity: u64) -> ScalableCuckoo {
    redis_cuckoo::create(ScalableCuckooShape::for_capacity(capacity).unwrap()).unwrap()
}

fn written(filter: &ScalableCuckoo) -> Vec<u8> {
    let mut dump = Vec::new();
    redis_cuckoo::write(filter, &mut dump).unwrap();
    dump
}

fn loaded(chunks: &[(i64, Vec<u8>)]) -> ScalableCuckoo {
    let mut loader = CuckooLoader::new(1 << 30);
    for (iterator, chunk) in chunks {
        loader.load(*iterator, chunk).unwrap();
    }
    loader.finish().unwrap()
}

fn check_case(case: &Value) {
    let name = text(case, "name");
    let header = unhex(text(case, "header_hex"));
    let dump = [header.clone(), inline_or_file(case, "buckets", "redisbloom")].concat();
    let (items, probed) = (items(case), probes(case));
    let [capacity] = &case["reserve_args"].as_array().unwrap()[..] else { panic!("{name}") };

    // The order in which items are evicted is known, so even the slots are the same.
    let mut built = created(capacity.as_str().unwrap().parse().unwrap());
    items.iter().for_each(|item| built.insert_copy(item).unwrap());
    let mut batch = created(capacity.as_str().unwrap().parse().unwrap());
    batch.insert_batch(&items).unwrap();
    assert_eq!(redis_cuckoo::header(&built).unwrap(), header, "{name}");

    let read = redis_cuckoo::read(&dump).unwrap();
    let ours = ScalableCuckoo::decode(&read.encode()).unwrap();
    let Filter::ScalableCuckoo(any) = Filter::decode(&read.encode()).unwrap() else { panic!("{name}") };
    let chunks: Vec<(i64, Vec<u8>)> = redis_cuckoo::chunks(&read).unwrap().collect();
    let iterators: Vec<usize> = chunks.iter().map(|(iterator, _)| *iterator as usize).collect();
    assert_eq!(iterators, offsets(case, "iterators"), "{name}");
    let mut backwards = chunks.clone();
    backwards[1..].reverse();
    backwards.push(chunks[1].clone());
    let info = &case["info"];
    for filter in [&built, &batch, &read, &ours, &any, &loaded(&chunks), &loaded(&backwards)] {
        assert_eq!(written(filter), dump, "{name}");
        assert!(items.iter().all(|item| filter.may_contain(item)), "{name}");
        for (probe, answer) in &probed {
            assert_eq!(filter.may_contain(probe), *answer, "{name}: {probe:?}");
            assert_eq!(filter.may_contain_hash(filter.hash(probe)), *answer, "{name}");
            assert_eq!(filter.count(probe) > 0, *answer, "{name}");
        }
        let mut answers = Answers::new();
        let (asked, expected): (Vec<Given>, Vec<bool>) = probed.iter().cloned().unzip();
        filter.may_contain_batch(&asked, &mut answers);
        assert_eq!(answers.iter().collect::<Vec<_>>(), expected, "{name}");
        assert_eq!(redis_cuckoo::info_size_bytes(filter), number(info, "Size"), "{name}");
        assert_eq!(filter.shape().buckets(), number(info, "Number of buckets"), "{name}");
        assert_eq!(filter.tables() as u64, number(info, "Number of filters"), "{name}");
        assert_eq!(filter.inserted(), number(info, "Number of items inserted"), "{name}");
        assert_eq!(filter.removed(), number(info, "Number of items deleted"), "{name}");
        assert_eq!(u64::from(filter.shape().bucket_size()), number(info, "Bucket size"), "{name}");
        assert_eq!(u64::from(filter.shape().expansion()), number(info, "Expansion rate"), "{name}");
        assert_eq!(u64::from(filter.shape().max_iterations()), number(info, "Max iterations"), "{name}");
    }
    assert_eq!(redis_cuckoo::resembles(&dump), Resemblance::Could, "{name}");
    assert_eq!(redis_cuckoo::resembles(&header), Resemblance::Could, "{name}");
    assert_eq!(redis_cuckoo::resembles(&dump[..dump.len() - 1]), Resemblance::No, "{name}");
    let mut spoiled = dump.clone();
    spoiled[38..].rotate_right(filter_step(&read));
    let spoiled = redis_cuckoo::read(&spoiled).unwrap();
    assert!(items.iter().any(|item| !spoiled.may_contain(item)), "{name}: the test has teeth");
}

/// A whole bucket.
fn filter_step(filter: &ScalableCuckoo) -> usize {
    filter.shape().bucket_size() as usize
}

#[test]
fn every_case_is_rebuilt_read_and_written() {
    let cases = json("redisbloom/cf_scandump.json");
    let cases = cases["cases"].as_array().unwrap();
    cases.iter().for_each(check_case);
    assert_eq!(cases.len(), 2);
    println!("redisbloom/cf_scandump.json: {} cases, slot by slot", cases.len());
}

/// Pinned by RedisBloom's own tests: the number of tables that 1 000 items take in a filter reserved for 64.
#[test]
fn tables_are_as_many_as_redis_bloom_pins() {
    let tables = |shape: ScalableCuckooShape, add: &dyn Fn(&mut ScalableCuckoo, &str)| {
        let mut filter = redis_cuckoo::create(shape).unwrap();
        (0..1_000_u32).for_each(|i| add(&mut filter, &i.to_string()));
        filter.tables()
    };
    let add: &dyn Fn(&mut ScalableCuckoo, &str) = &|filter, item| filter.insert_copy(item).unwrap();
    assert_eq!(tables(shape(64, 1, 20, 1), add), 18);
    assert_eq!(tables(shape(64, 2, 20, 1), add), 17);
    assert_eq!(tables(shape(256, 4, 500, 1), add), 4);
    assert_eq!(tables(shape(64, 2, 20, 2), add), 5);
    assert_eq!(tables(shape(64, 2, 20, 4), add), 3);
    let reserved = created(1_000);
    assert_eq!((redis_cuckoo::info_size_bytes(&reserved), reserved.shape().buckets()), (1_080, 512));
    assert_eq!(shape(1_000, 3, 20, 1).buckets(), 512);
    assert_eq!(shape(1_000_000, 2, 20, 1).buckets(), 524_288);
    // With a limit of 32 tables, checked before each addition, a filter reserved for 4 accepts 124 items.
    let mut four = created(4);
    let adds = (0..1_000_u32).take_while(|i| four.tables() < 32 && four.insert_copy(&i.to_string()).is_ok());
    assert_eq!(adds.count(), 124);
}

#[test]
fn one_bucket_counts_twice_on_the_wire_only() {
    let mut filter = redis_cuckoo::create(shape(2, 2, 20, 1)).unwrap();
    for _ in 0..133 {
        filter.insert_copy("again").unwrap();
    }
    assert_eq!((redis_cuckoo::count(&filter, "again"), filter.count("again")), (266, 133));
    assert_eq!(filter.inserted(), 133);
}

#[test]
fn empty_filters_are_not_dumped_but_written() {
    let mut filter = created(64);
    for iterator in [0, 1, 5, -1] {
        assert_eq!(redis_cuckoo::chunk(&filter, iterator).unwrap(), (0, vec![]), "{iterator}");
    }
    assert_eq!(redis_cuckoo::chunks(&filter).unwrap().count(), 2);
    assert_eq!(written(&redis_cuckoo::read(&written(&filter)).unwrap()), written(&filter));
    filter.insert("ada").unwrap();
    assert_eq!(redis_cuckoo::chunk(&filter, 0).unwrap().0, 1);
}

#[test]
fn chunks_are_loaded_in_any_order_and_nowhere_else() {
    let mut filter = redis_cuckoo::create(shape(64, 2, 20, 2)).unwrap();
    (0..300_u32).for_each(|i| filter.insert_copy(&i.to_string()).unwrap());
    assert_eq!(filter.tables(), 3);
    let chunks: Vec<(i64, Vec<u8>)> = redis_cuckoo::chunks(&filter).unwrap().collect();
    let sizes: Vec<(i64, usize)> = chunks.iter().map(|(iterator, chunk)| (*iterator, chunk.len())).collect();
    assert_eq!(sizes, [(1, 38), (65, 64), (193, 128), (449, 256)]);
    // A small table is answered whole, wherever the iterator points.
    for iterator in 65..193 {
        assert_eq!(redis_cuckoo::chunk(&filter, iterator).unwrap(), chunks[2], "{iterator}");
    }
    for iterator in [-1, i64::MIN, 449, 450, i64::MAX] {
        assert_eq!(redis_cuckoo::chunk(&filter, iterator).unwrap(), (0, vec![]), "{iterator}");
    }
    let mut loader = CuckooLoader::new(1 << 10);
    assert_eq!(loader.load(65, &chunks[1].1), Err(LoadError::NoHeader { iterator: 65 }));
    assert!(matches!(loader.load(1, &[0; 37]), Err(LoadError::BadHeader(DecodeError::TooShort { .. }))));
    let long = [&chunks[0].1[..], b"x"].concat();
    assert!(matches!(loader.load(1, &long), Err(LoadError::BadHeader(DecodeError::TrailingBytes { .. }))));
    loader.load(1, &chunks[0].1).unwrap();
    for iterator in [i64::MIN, -1, 0, 1, 64] {
        let refused = loader.load(iterator, &chunks[1].1);
        assert!(matches!(refused, Err(LoadError::BadPosition { .. })), "{iterator}");
    }
    assert_eq!(loader.load(450, b"x"), Err(LoadError::NoLayer { offset: 448, bytes: 448 }));
    assert!(matches!(loader.load(i64::MAX, b"x"), Err(LoadError::NoLayer { .. })));
    assert_eq!(loader.load(66, &[0; 65]), Err(LoadError::TooBig { chunk: 65, room: 64 }));
    let dump = written(&filter);
    for (at, byte) in dump[38..].iter().enumerate().rev() {
        loader.load(at as i64 + 2, &[*byte]).unwrap();
    }
    assert_eq!(written(&loader.finish().unwrap()), dump);
    assert!(matches!(CuckooLoader::new(1).finish(), Err(DecodeError::TooShort { .. })));
    let refused = CuckooLoader::new(447).load(1, &chunks[0].1).unwrap_err();
    assert!(matches!(refused, LoadError::BadHeader(DecodeError::Unbuildable(BuildError::TooLarge { .. }))));
}

#[test]
fn large_tables_are_dumped_in_chunks_of_16_mib_from_any_byte() {
    let mut filter = redis_cuckoo::create(shape(1 << 25, 4, 20, 1)).unwrap();
    filter.insert_batch(&(0..1_000_u32).map(|i| i.to_string()).collect::<Vec<_>>()).unwrap();
    let sizes: Vec<(i64, usize)> =
        redis_cuckoo::chunks(&filter).unwrap().map(|(next, chunk)| (next, chunk.len())).collect();
    assert_eq!(sizes, [(1, 38), (1 + (16 << 20), 16 << 20), (1 + (32 << 20), 16 << 20)]);
    let (next, chunk) = redis_cuckoo::chunk(&filter, 1_000).unwrap();
    assert_eq!((next, chunk.len()), (1_000 + (16 << 20), 16 << 20));
    let chunks: Vec<(i64, Vec<u8>)> = redis_cuckoo::chunks(&filter).unwrap().collect();
    assert!(written(&loaded(&chunks)) == written(&filter));
}

/// A filter is dumped as the same bytes whether its tables are in one array, as decoded, or in many, as added.
#[test]
fn chunks_are_the_same_wherever_tables_lie() {
    for (shape, items) in [
        (shape(6, 3, 20, 1), 6_000_u32),
        (shape(6, 3, 20, 2), 20_000),
        (shape(4_000, 255, 20, 1), 60_000),
        (shape(64, 5, 20, 8), 100_000),
    ] {
        let mut filter = redis_cuckoo::create(shape).unwrap();
        (0..items).for_each(|i| filter.insert_copy(&i.to_string()).unwrap());
        let one = ScalableCuckoo::decode(&filter.encode()).unwrap();
        let dump = written(&filter);
        assert!(dump == written(&one) && dump.len() as u64 == 38 + filter.capacity(), "{shape}");
        // The encoding has the same slots in the same order.
        let payload = &filter.encode()[192..];
        let (slots, behind) = payload.split_at(filter.capacity() as usize);
        assert!(slots == &dump[38..] && behind.iter().all(|&byte| byte == 0), "{shape}");
        let chunks: Vec<(i64, Vec<u8>)> = redis_cuckoo::chunks(&filter).unwrap().collect();
        assert!(
            chunks.len() == filter.tables() + 1 && redis_cuckoo::chunks(&one).unwrap().eq(chunks.clone())
        );
        let mut backwards = chunks.clone();
        backwards[1..].reverse();
        let value = redis_rdb::write_value(&filter).unwrap();
        assert!(value == redis_rdb::write_value(&one).unwrap(), "{shape}");
        let from_rdb = redis_rdb::read_value(redis_rdb::ValueType::Cuckoo, 4, &value, 1 << 30).unwrap();
        let redis_rdb::Value::Cuckoo(from_rdb) = from_rdb else { panic!("{shape}") };
        for same in [loaded(&chunks), loaded(&backwards), redis_cuckoo::read(&dump).unwrap(), from_rdb] {
            assert!(same.encode() == filter.encode(), "{shape}");
            assert_eq!(same.memory_bytes(), filter.memory_bytes());
            assert!((0..items).step_by(7).all(|i| same.may_contain(&i.to_string())));
        }
    }
}

#[test]
fn headers_that_redisbloom_rejects_are_rejected() {
    let dump = written(&{
        let mut filter = created(64);
        filter.insert("ada").unwrap();
        filter
    });
    let forged = |at: usize, field: &[u8]| {
        let mut forged = dump.clone();
        forged[at..at + field.len()].copy_from_slice(field);
        redis_cuckoo::read(&forged).unwrap_err()
    };
    assert_eq!(forged(0, &[65]), DecodeError::BadField { field: "items", got: 65 });
    for buckets in [0, 33] {
        let refused = forged(8, &[buckets]);
        assert!(matches!(refused, DecodeError::Unbuildable(BuildError::BucketCountOutOfRange { .. })));
    }
    assert!(matches!(forged(8, &[0, 0, 0, 0, 0, 0, 0, 128]), DecodeError::Unbuildable(_)));
    assert!(matches!(forged(16, &[0xff; 8]), DecodeError::BadField { field: "deletes", .. }));
    for tables in [0_u64, 1 << 17, u64::MAX] {
        let refused = forged(24, &tables.to_le_bytes());
        assert!(matches!(refused, DecodeError::Unbuildable(BuildError::LayersOutOfRange { .. })));
    }
    assert!(matches!(forged(24, &[2]), DecodeError::TooShort { .. }));
    for size in [0_u16, 256] {
        let refused = forged(32, &size.to_le_bytes());
        assert!(matches!(refused, DecodeError::Unbuildable(BuildError::SlotsOutOfRange { .. })), "{size}");
    }
    assert!(matches!(forged(34, &[0]), DecodeError::Unbuildable(BuildError::IterationsOutOfRange { .. })));
    for expansion in [3_u16, 32_769] {
        let refused = forged(36, &expansion.to_le_bytes());
        assert!(matches!(refused, DecodeError::Unbuildable(BuildError::GrowthOutOfRange { .. })));
    }
    assert!(matches!(
        redis_cuckoo::read(&[&dump[..], b"x"].concat()),
        Err(DecodeError::TrailingBytes { extra: 1 })
    ));
    // A filter of more than 4 GiB in one table: RedisBloom would only ever use the first four.
    let mut vast = dump.clone();
    vast[8..16].copy_from_slice(&(1_u64 << 32).to_le_bytes());
    let refused = redis_cuckoo::read(&vast).unwrap_err();
    assert!(matches!(refused, DecodeError::Unbuildable(BuildError::CapacityOutOfRange { .. })), "{refused}");
}

#[test]
fn only_filters_with_redis_blooms_hash_are_written() {
    let mut ours = ScalableCuckoo::for_capacity(64, 7).unwrap();
    ours.insert("ada").unwrap();
    let refused = redis_cuckoo::write(&ours, &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, WriteError::OtherPlacement { .. }));
    assert!(refused.to_string().contains("but this filter uses fast(seed 0x7)"), "{refused}");
    assert!(redis_cuckoo::header(&ours).is_err() && redis_cuckoo::chunk(&ours, 5).is_err());
    assert!(redis_cuckoo::chunks(&ours).is_err());
    assert_eq!(redis_cuckoo::load_chunk(&mut ours, 65, &[0; 8]), Err(LoadError::OtherPlacement));
}

/// 4 000 items with one hash: no two tables hold more than four of them, and all of them can be taken out again.
#[test]
fn forged_items_cost_tables_and_lose_nothing() {
    let forged = String::from_utf8(bytes("attacks/forged-items.txt")).unwrap();
    let lines = forged.lines().filter_map(|line| line.split_once(' '));
    let forged: Vec<Vec<u8>> = lines.filter(|(set, _)| *set == "cuckoo").map(|(_, hex)| unhex(hex)).collect();
    assert_eq!(forged.len(), 4_000);
    let mut filter = created(1_024);
    filter.insert("victim").unwrap();
    assert!(forged.iter().all(|item| filter.may_contain(item)));
    filter.limit_memory(Some(64 << 10));
    let fitting = forged.iter().take_while(|item| filter.insert_copy(*item).is_ok()).count();
    assert_eq!((fitting, filter.tables()), (64 * 4 - 1, 64));
    let refused = filter.insert(&forged[0]).unwrap_err();
    assert!(matches!(refused, InsertError::CannotGrow { layers: 64, .. }), "{refused}");
    (0..fitting).for_each(|i| assert!(filter.remove(&forged[i])));
    assert!(filter.may_contain("victim") && filter.inserted() == 1);
    println!("attacks/forged-items.txt: 4000 cuckoo");
}

#[test]
fn damaged_dumps_are_survived() {
    let mut filter = redis_cuckoo::create(shape(8, 2, 20, 4)).unwrap();
    ["ada", "grace", "edsger", "barbara", "donald", "tony", "leslie", "john", "alan"]
        .iter()
        .for_each(|item| filter.insert_copy(item).unwrap());
    assert_eq!(filter.tables(), 2);
    let dump = written(&filter);
    let fields = [(0, 8), (8, 8), (16, 8), (24, 8), (32, 2), (34, 2), (36, 2)];
    let used = |filter: &mut ScalableCuckoo| {
        filter.limit_memory(Some(1 << 8));
        // Into the slot that was just freed, so that no forged number of moves is made, which would cost time.
        let _ = (filter.remove("ada"), filter.insert("ada"), filter.expected_fpr(), filter.count("grace"));
        filter.compact();
        assert_eq!(written(&redis_cuckoo::read(&written(filter)).unwrap()), written(filter));
        ScalableCuckoo::decode(&filter.encode()).map(drop)
    };
    hostile::survives("redis_cuckoo::read", &dump, &fields, false, |bytes| {
        used(&mut redis_cuckoo::read(bytes)?)
    });
    hostile::survives("redis_cuckoo::CuckooLoader", &dump[..38], &fields, false, |bytes| {
        let mut loader = CuckooLoader::new(1 << 10);
        match loader.load(1, bytes) {
            Err(LoadError::BadHeader(cause)) => return Err(cause),
            refused => refused.unwrap(),
        }
        for (iterator, chunk) in redis_cuckoo::chunks(&filter).unwrap().skip(1) {
            let _ = loader.load(iterator, &chunk);
        }
        used(&mut loader.finish()?)
    });
}
