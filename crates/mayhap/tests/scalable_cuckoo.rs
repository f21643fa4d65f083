//! The promises of the cuckoo filter that grows table by table.

mod support;

use std::collections::BTreeMap;

use mayhap::{BuildError, DecodeError, HashScheme, InsertError, ScalableCuckoo, ScalableCuckooShape, file};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::bad::{AlwaysMayhap, AlwaysNo};
use mayhap_testkit::corrupt::Corruptor;
use mayhap_testkit::rng::Rng;
use mayhap_testkit::suite::{Failure, Operation, RatePlan, Refusals, Script, keeps_its_rate, never_forgets};
use mayhap_testkit::{Inserted, Shape, Subject, band_with_model_error, member, member_u64, non_member};
use xxhash_rust::xxh3::xxh3_64;

use self::support::{Tested, operations};

#[global_allocator]
static METER: AllocMeter = AllocMeter;

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
const HEADER_BYTES: usize = 192;

fn shape(capacity: u64, bucket_size: u32, iterations: u32, expansion: u32) -> ScalableCuckooShape {
    let shape = ScalableCuckooShape::for_capacity(capacity).unwrap();
    let shape = shape.with_bucket_size(bucket_size).unwrap().with_max_iterations(iterations).unwrap();
    shape.with_expansion(expansion).unwrap()
}

fn filter(shape: ScalableCuckooShape, seed: u64) -> ScalableCuckoo {
    ScalableCuckoo::with_shape(shape, seed).unwrap()
}

#[test]
fn never_forgets_remaining_members() {
    let script = Script { mayhap_limit: 0.2, ..Script::new(operations(), 2_000) };
    let report = never_forgets(|seed| Tested::new(filter(shape(1_000, 2, 20, 2), seed)), &script).unwrap();
    assert_eq!(report.missing(), [Operation::Merge]);
    assert!(report.mayhap_to_removed > 0, "a removed item is a false positive as often as any non-member");
    for shape in [shape(64, 1, 20, 1), shape(64, 4, 500, 4), shape(300, 3, 1, 2), shape(512, 9, 20, 8)] {
        let script = Script { mayhap_limit: 1.0, ..Script::new(operations() / 8, 500) };
        never_forgets(|seed| Tested::new(filter(shape, seed)), &script)
            .unwrap_or_else(|failure| panic!("{shape}: {failure}"));
    }
}

/// Filters that may not grow, or not far: always full, with few buckets.
#[test]
fn never_forgets_in_tables_that_reject() {
    let bounded = shape(16, 2, 20, 1).within(64 * 2).unwrap();
    for shape in [shape(64, 1, 20, 0), shape(64, 2, 7, 0), shape(64, 4, 500, 0), shape(1, 8, 20, 0), bounded]
    {
        let script = Script {
            max_copies: 4,
            mayhap_limit: 1.0,
            refusals: Refusals::Counted,
            ..Script::new(operations() / 8, 200)
        };
        let make = |seed| Tested::new(filter(shape, seed));
        let report = never_forgets(make, &script).unwrap_or_else(|failure| panic!("{shape}: {failure}"));
        assert!(report.refused > 100, "{shape}: {} refused", report.refused);
    }
}

#[test]
fn the_suites_have_teeth() {
    let plan = plan(&shape(8_192, 4, 20, 0), 6_000);
    assert!(keeps_its_rate(|_| AlwaysNo, &plan).is_err());
    assert!(keeps_its_rate(|_| AlwaysMayhap, &plan).is_err());
    // A filter that forgets on rejection, because it moves items before it has found a free slot.
    struct LosesOne(ScalableCuckoo);
    impl Subject for LosesOne {
        fn insert(&mut self, item: &[u8]) -> Inserted {
            let outcome = self.0.insert(item);
            if outcome.is_err() {
                (0..2_000_u64).find(|i| self.0.remove(i));
            }
            outcome.into()
        }
        fn may_contain(&self, item: &[u8]) -> bool {
            self.0.may_contain(item)
        }
        fn remove(&mut self, item: &[u8]) -> Option<bool> {
            Some(self.0.remove(item))
        }
    }
    let script = Script { refusals: Refusals::Counted, mayhap_limit: 1.0, ..Script::new(20_000, 100) };
    assert!(never_forgets(|seed| LosesOne(filter(shape(64, 2, 20, 0), seed)), &script).is_err());
}

/// 4 000 false positives expected; ± 2 % is the stated error of the model.
fn plan(shape: &ScalableCuckooShape, items: u64) -> RatePlan<'static> {
    let mut filter = filter(*shape, 99);
    (0..items).for_each(|i| {
        filter.insert(&member_u64(99, i)).unwrap();
    });
    let rate = filter.expected_fpr();
    let non_members = (4_000.0 / rate) as u64 / SEEDS.len() as u64;
    let promised = band_with_model_error(non_members * SEEDS.len() as u64, rate, 1e-6, 0.02);
    RatePlan { shape: Shape::Url, items, non_members, seeds: &SEEDS, promised }
}

#[test]
fn filters_keep_the_rate_of_the_model_and_a_fifth_too_empty_is_detected() {
    // One table, and enough tables that their rates add up.
    for (shape, items) in [
        (shape(16_384, 1, 20, 0), 2_000),
        (shape(16_384, 2, 20, 0), 6_000),
        (shape(16_384, 4, 20, 0), 10_000),
        (shape(16_384, 8, 20, 0), 13_000),
        (shape(4_096, 4, 500, 1), 10_000),
    ] {
        let make = |seed| Tested::new(filter(shape, seed));
        keeps_its_rate(make, &plan(&shape, items)).unwrap_or_else(|failure| panic!("{shape}: {failure}"));
        let failure =
            keeps_its_rate(make, &RatePlan { items: items * 4 / 5, ..plan(&shape, items) }).unwrap_err();
        assert!(matches!(failure, Failure::RateOff { .. }), "{shape}: {failure}");
    }
}

#[test]
fn a_refusal_leaves_everything_as_it_was() {
    let limit = 3 * 64;
    for shape in [shape(64, 2, 20, 0), shape(256, 4, 500, 0), shape(64, 1, 20, 1).within(limit).unwrap()] {
        let mut filter = filter(shape, 3);
        let (mut accepted, mut refused) = (Vec::new(), 0);
        for i in 0.. {
            let before = filter.encode();
            match filter.insert(&member_u64(3, i)) {
                Ok(_) => accepted.push(i),
                Err(error) => {
                    match shape.expansion() {
                        0 => assert!(matches!(error, InsertError::Full { .. }), "{error}"),
                        _ => assert!(
                            matches!(
                                error,
                                InsertError::CannotGrow { cause: BuildError::TooLarge { .. }, layers: 3, .. }
                            ),
                            "{error}"
                        ),
                    }
                    assert!(filter.encode() == before, "a rejection changes nothing");
                    assert!(filter.insert_copy(&member_u64(3, i)).is_err() && filter.encode() == before);
                    refused += 1;
                    if refused == 20 {
                        break;
                    }
                }
            }
        }
        assert!(accepted.iter().all(|&i| filter.may_contain(&member_u64(3, i))));
        accepted.iter().for_each(|&i| assert!(filter.remove(&member_u64(3, i))));
        assert_eq!(filter.inserted(), 0);
        assert!(filter.encode()[HEADER_BYTES..].iter().all(|&byte| byte == 0), "{shape}");
    }
}

/// Storms on filters of a few buckets, against an exact multiset.
#[test]
fn storms_on_tiny_tables_lose_nothing() {
    for (capacity, slots, moves, expansion) in
        [(1, 1, 1, 1), (2, 2, 5, 1), (4, 2, 20, 2), (6, 3, 20, 1), (16, 1, 20, 4), (40, 4, 3, 1)]
    {
        let mut rng = Rng::new(capacity * 100 + u64::from(slots * 10 + moves));
        for round in 0..20 {
            let mut filter = filter(shape(capacity, slots, moves, expansion), round);
            let mut held: BTreeMap<u64, u64> = BTreeMap::new();
            for step in 0..400 {
                let item = rng.below(40);
                if rng.below(5) < 3 {
                    filter.insert(&item).unwrap();
                    *held.entry(item).or_default() += 1;
                } else if held.get(&item).is_some_and(|&copies| copies > 0) {
                    assert!(filter.remove(&item), "a member can be removed");
                    *held.entry(item).or_default() -= 1;
                }
                if step % 50 == 49 {
                    filter.compact();
                    assert_eq!(filter.removed(), 0);
                }
                assert_eq!(filter.inserted(), held.values().sum::<u64>());
                for (item, &copies) in &held {
                    assert!(filter.count(item) >= copies, "{copies} copies of {item}");
                }
            }
        }
    }
}

#[test]
fn tables_come_and_go() {
    let mut filter = filter(shape(64, 2, 20, 1), 5);
    (0..1_000).for_each(|i| assert!(filter.insert_copy(&member(i)).is_ok()));
    let full = filter.tables();
    let memory = filter.memory_bytes();
    assert!(full > 10 && memory == 64 * full as u64 && filter.capacity() == memory);
    (100..1_000).for_each(|i| assert!(filter.remove(&member(i))));
    assert!(filter.tables() < full / 2, "{} tables of {full}", filter.tables());
    assert!(filter.memory_bytes() == 64 * filter.tables() as u64);
    filter.compact();
    assert!((0..100).all(|i| filter.may_contain(&member(i))));
    assert_eq!((filter.inserted(), filter.removed()), (100, 0));
    let copy = filter.try_clone().unwrap();
    filter.clear();
    assert_eq!((filter.tables(), filter.inserted(), filter.memory_bytes()), (1, 0, 64));
    assert!(!filter.may_contain(&member(0)) && copy.may_contain(&member(0)));
    // Twice, once, never.
    assert_eq!(filter.insert_unique("a"), Ok(true));
    assert_eq!(filter.insert_unique("a"), Ok(false));
    assert!(filter.remove_verified("a", || true) && !filter.remove_verified("a", || true));
    let mut asked = false;
    assert!(!filter.remove_verified("a", || {
        asked = true;
        true
    }));
    assert!(!asked, "a certain no needs no check of the store");
    assert_eq!(filter.bits_per_item(), f64::INFINITY);
}

/// Tables whose number of slots is not a multiple of eight, or only that of the later ones is; all of them grow past one segment.
fn odd_shapes() -> [ScalableCuckooShape; 5] {
    [shape(3, 3, 20, 1), shape(40, 5, 5, 1), shape(4_000, 255, 20, 1), shape(6, 3, 20, 2), shape(7, 7, 3, 8)]
}

/// Compared with an exact multiset, and with a copy that is decoded from time to time, so that all its tables are in one array and later ones elsewhere.
#[test]
fn growth_loses_nothing_wherever_tables_lie() {
    let path = std::env::temp_dir().join(format!("mayhap-tables-{}.mayhap", std::process::id()));
    for shape in odd_shapes() {
        let (mut filter, mut rng) = (filter(shape, 7), Rng::new(u64::from(shape.bucket_size())));
        let mut twin = ScalableCuckoo::decode(&filter.encode()).unwrap();
        let (mut held, mut most) = (BTreeMap::<u64, u64>::new(), 0);
        for round in 0..8 {
            // Three rounds of many items and few removals, and one the other way round.
            let (inserts, removals) = if round % 4 < 3 { (2_000, 200) } else { (100, 4_000) };
            for _ in 0..inserts {
                let item = rng.below(5_000);
                assert_eq!(filter.insert(&item), twin.insert(&item));
                *held.entry(item).or_default() += 1;
            }
            for _ in 0..removals {
                let item = rng.below(5_000);
                if held.get(&item).is_some_and(|&copies| copies > 0) {
                    assert!(filter.remove(&item) && twin.remove(&item), "a member can be removed");
                    *held.entry(item).or_default() -= 1;
                }
            }
            if round % 4 == 3 {
                let tables = filter.tables();
                assert_eq!(filter.compact(), twin.compact());
                assert!(filter.tables() <= tables);
            }
            most = most.max(filter.capacity());
            assert_eq!(filter.inserted(), held.values().sum::<u64>());
            assert!(
                held.iter().all(|(item, &copies)| filter.count(item) >= copies),
                "{shape}, round {round}"
            );
            assert!((0..6_000_u64).all(|item| filter.count(&item) == twin.count(&item)));
            let bytes = filter.encode();
            assert!(bytes == twin.encode(), "{shape}, round {round}");
            assert_eq!(filter.memory_bytes(), (bytes.len() - HEADER_BYTES) as u64);
            assert_eq!(filter.memory_bytes(), shape.memory_bytes(filter.tables() as u64).unwrap());
            assert!(twin.memory_bytes() - filter.memory_bytes() <= 64, "a line more at most");
            twin = match round % 3 {
                0 => ScalableCuckoo::decode(&bytes).unwrap(),
                1 => filter.try_clone().unwrap(),
                _ => {
                    file::save(&twin, &path).unwrap();
                    file::open(&path).unwrap()
                }
            };
        }
        assert!(most > 8 << 10, "{shape}: {most} slots, all in one segment");
        filter.clear();
        assert_eq!((filter.tables(), filter.memory_bytes()), (1, shape.memory_bytes(1).unwrap()));
        assert!(filter.encode()[HEADER_BYTES..].iter().all(|&byte| byte == 0));
    }
    std::fs::remove_file(path).unwrap();
}

/// A growth allocates the memory of one table, never of all of them together.
#[test]
fn a_growth_allocates_one_table() {
    for (shape, most_besides) in [
        (shape(1 << 20, 2, 20, 1), 4 << 10),
        (shape(1 << 16, 4, 20, 2), 4 << 10),
        // Small ones move to larger memory together, to whole pages and to whole lines.
        (shape(1_024, 2, 20, 1), 8 << 10),
        (shape(4_000, 255, 20, 1), 32 << 10),
    ] {
        let mut filter = filter(shape, 1);
        for _ in 0..if shape.expansion() == 1 { 12 } else { 4 } {
            let (slots, memory) = (filter.capacity(), filter.memory_bytes());
            let (added, used) = AllocMeter::measure(|| filter.add_table());
            added.unwrap();
            let slots = filter.capacity() - slots;
            assert!(used.total_bytes <= slots + most_besides, "{shape}: {used:?} for {slots} slots");
            assert!(filter.memory_bytes() - memory <= slots.next_multiple_of(64));
        }
    }
}

/// The size in a rejection equals the memory that the growth would take, to the byte, and the filter's own figure afterwards.
#[test]
fn a_rejected_growth_reports_the_memory_it_needs() {
    for shape in odd_shapes().into_iter().chain([shape(1_024, 2, 20, 1), shape(64, 1, 20, 4)]) {
        let mut grown = filter(shape, 1);
        let mut from_bytes = ScalableCuckoo::decode(&grown.encode()).unwrap();
        while grown.capacity() < 1 << 18 && grown.tables() < 3_000 {
            for filter in [&mut grown, &mut from_bytes] {
                filter.limit_memory(Some(filter.memory_bytes()));
                let before = (filter.tables(), filter.memory_bytes());
                let Err(InsertError::CannotGrow { cause: BuildError::TooLarge { bytes, limit }, .. }) =
                    filter.add_table()
                else {
                    // The space after the slots of small tables is room for another table.
                    assert_eq!((filter.tables(), filter.memory_bytes()), (before.0 + 1, before.1), "{shape}");
                    continue;
                };
                assert_eq!((filter.tables(), filter.memory_bytes(), limit), (before.0, before.1, before.1));
                filter.limit_memory(Some(bytes));
                filter.add_table().unwrap();
                assert_eq!((filter.tables(), filter.memory_bytes()), (before.0 + 1, bytes), "{shape}");
            }
            if grown.tables().is_multiple_of(50) {
                from_bytes = ScalableCuckoo::decode(&grown.encode()).unwrap();
            }
        }
    }
    let mut one = filter(shape(64, 2, 20, 0), 1);
    assert!(matches!(one.add_table(), Err(InsertError::Full { inserted: 0, capacity: 64 })));
}

/// An additional table is empty, as a growth adds it; and the cost of inserts is counted.
#[test]
fn tables_added_beforehand_take_the_next_items() {
    let mut filter = filter(shape(64, 2, 20, 2), 5);
    while filter.moves() < 40 {
        filter.insert_copy("again").unwrap();
        assert!(filter.inserted() < 10, "four fit into a table");
    }
    // Both buckets were full of it: twenty moves, and twenty back.
    assert_eq!((filter.moves(), filter.tables(), filter.inserted()), (40, 2, 5));
    filter.add_table().unwrap();
    assert_eq!((filter.tables(), filter.capacity()), (3, 64 * 7));
    for copies in 6..=9 {
        filter.insert_copy("again").unwrap();
        assert_eq!((filter.count("again"), filter.moves()), (copies, 40));
    }
    let copy = filter.try_clone().unwrap();
    assert_eq!((copy.moves(), copy.encode()), (0, filter.encode()));
    assert_eq!(ScalableCuckoo::decode(&copy.encode()).unwrap().moves(), 0);
}

#[test]
fn limits_are_named() {
    let base = ScalableCuckooShape::for_capacity(1_000).unwrap();
    assert!(matches!(ScalableCuckooShape::for_capacity(0), Err(BuildError::CapacityOutOfRange { .. })));
    assert!(ScalableCuckooShape::for_capacity(1 << 33).is_err());
    assert_eq!(
        base.with_bucket_size(256).unwrap_err().to_string(),
        "a bucket must have between 1 and 255 slots, got 256"
    );
    assert!(base.with_bucket_size(0).is_err() && base.with_bucket_size(255).is_ok());
    assert_eq!(
        base.with_max_iterations(65_536).unwrap_err().to_string(),
        "moves for an insertion must be between 1 and 65535, got 65536"
    );
    assert!(base.with_max_iterations(0).is_err());
    assert!(base.with_expansion(32_769).is_err());
    assert_eq!(base.with_expansion(32_768).unwrap().expansion(), 32_768);
    assert_eq!(base.with_expansion(5).unwrap().expansion(), 8);
    assert!(base.within(1_023).is_err() && base.within(1_024).is_ok());
    assert!(base.slots(0).is_err() && base.slots(65_537).is_err());
    assert_eq!(base.with_expansion(2).unwrap().slots(3), Ok(7 * 1_024));
    assert!(base.with_expansion(32_768).unwrap().slots(3).is_err(), "4 GiB a table at most");
    assert_eq!(base.to_string(), "tables of 512 buckets of 2, each 1 times the last");
    assert_eq!(base.with_expansion(0).unwrap().to_string(), "one table of 512 buckets of 2");
}

#[test]
fn keyed_filters_and_others_survive_a_round_trip() {
    for scheme in [HashScheme::fast(9), HashScheme::keyed_random().unwrap()] {
        let mut filter = ScalableCuckoo::for_capacity(100, scheme).unwrap();
        (0..500).for_each(|i| assert!(filter.insert(&member(i)).is_ok()));
        filter.limit_memory(Some(4_096));
        let same = ScalableCuckoo::decode(&filter.encode()).unwrap();
        assert_eq!((same.shape(), same.scheme()), (filter.shape(), filter.scheme()));
        assert_eq!((same.tables(), same.encode()), (filter.tables(), filter.encode()));
        assert!((0..500).all(|i| same.may_contain(&member(i))));
        assert!((0..500).filter(|&i| same.may_contain(&non_member(i))).count() < 200);
    }
}

#[test]
fn forged_headers_are_rejected() {
    let mut filter = filter(shape(64, 2, 20, 2), 1);
    (0..100).for_each(|i| assert!(filter.insert(&member(i)).is_ok()));
    let bytes = filter.encode();
    let seal = |bytes: &mut [u8]| {
        let checksum = xxh3_64(&bytes[HEADER_BYTES..]);
        bytes[24..32].copy_from_slice(&checksum.to_le_bytes());
        let checksum = xxh3_64(&bytes[..HEADER_BYTES - 8]);
        bytes[HEADER_BYTES - 8..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    };
    let forged = |at: usize, value: u64| {
        let mut forged = bytes.clone();
        forged[at..at + 8].copy_from_slice(&value.to_le_bytes());
        seal(&mut forged);
        ScalableCuckoo::decode(&forged)
    };
    assert!(forged(56, 99).is_ok(), "the count is the filter's own business");
    for (at, values) in [
        (48, &[0, 1, 63, 1 << 40][..]),
        (56, &[1 << 20]),
        (64, &[0, f64::NAN.to_bits(), 1.0_f64.to_bits()]),
        (72, &[0, 3, 64, 1 << 33, u64::MAX]),
        (80, &[0, 1, 256, 1 << 40]),
        (88, &[0, 65_536, 1 << 40]),
        (96, &[0, 3, 4, 1 << 16, 1 << 40]),
        (104, &[0, 1, 3, 1 << 20, u64::MAX]),
        (112, &[u64::MAX]),
        (128, &[1]),
    ] {
        for &value in values {
            assert!(forged(at, value).is_err(), "{value} at byte {at}");
        }
    }
    assert!(matches!(ScalableCuckoo::decode(b"no filter at all"), Err(DecodeError::BadMagic)));
    let mut shown = 0;
    Corruptor::new(&bytes).sealed_by(seal).flips(3, 50_000, |damaged, damage| {
        let (result, used) = AllocMeter::measure(|| {
            let mut filter = ScalableCuckoo::decode(damaged)?;
            filter.limit_memory(Some(1 << 12));
            let _ = (filter.insert("a"), filter.remove(&member(5)), filter.expected_fpr());
            filter.compact();
            ScalableCuckoo::decode(&filter.encode()).map(drop)
        });
        assert!(used.peak_bytes <= damaged.len() as u64 * 16 + (64 << 10), "{damage}: {}", used.peak_bytes);
        shown += u32::from(result.is_ok());
    });
    assert!(shown > 0, "some forgeries decode");
}
