//! The guarantees of the growing filter: nothing is forgotten, the rate holds after any growth, removals lose no other item, a rejected growth changes
//! nothing, and a decoded filter grows like the original.

mod support;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::error::Error as _;
use std::rc::Rc;

use mayhap::{
    Answers, BuildError, DecodeError, Filter, Growing, GrowingShape, HashScheme, InsertError, ItemHash,
    WellMixed, sizing,
};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::bad::{AlwaysMayhap, AlwaysNo};
use mayhap_testkit::corrupt::Corruptor;
use mayhap_testkit::rng::Rng;
use mayhap_testkit::suite::{Failure, Operation, RatePlan, Script, keeps_its_rate, never_forgets};
use mayhap_testkit::{
    Inserted, Shape, Subject, band_with_model_error, member, member_u64, non_member, non_member_u64,
};
use xxhash_rust::xxh3::xxh3_64;

use self::support::{Tested, operations};

#[global_allocator]
static METER: AllocMeter = AllocMeter;

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
const HEADER_BYTES: usize = 192;

/// What a filter under test and its copies went through.
#[derive(Clone, Copy, Default)]
struct Most {
    doublings: u32,
    void_slots: u64,
}

fn grows(shape: GrowingShape, seed: u64, seen: &Rc<Cell<Most>>) -> Tested {
    let seen = Rc::clone(seen);
    Tested::watched(Growing::with_shape(shape, seed).unwrap(), move |filter| {
        let Filter::Growing(filter) = filter else { panic!("another kind") };
        let most = seen.get();
        seen.set(Most {
            doublings: most.doublings.max(filter.doublings()),
            void_slots: most.void_slots.max(filter.void_slots()),
        });
    })
}

#[test]
fn nothing_is_forgotten_however_much_it_grows_and_whatever_is_removed() {
    // From usual fingerprints to those of one bit, where every second neighbour matches the item.
    let plans = [
        ("one percent", GrowingShape::for_capacity(14, 0.01).unwrap(), 9, true),
        ("one in a million", GrowingShape::for_capacity(1_000, 1e-6).unwrap(), 3, false),
        ("one half", GrowingShape::for_capacity(3, 0.5).unwrap(), 9, true),
        ("three bits", GrowingShape::exactly(17, 3).unwrap(), 9, true),
        ("one bit", GrowingShape::exactly(2, 1).unwrap(), 12, true),
    ];
    for (name, shape, doublings, voids) in plans {
        let seen = Rc::new(Cell::new(Most::default()));
        let script = Script { mayhap_limit: 1.0, ..Script::new(operations(), 10_000) };
        let report = never_forgets(|seed| grows(shape, seed, &seen), &script)
            .unwrap_or_else(|failure| panic!("{name}: {failure}"));
        assert_eq!(report.missing(), [Operation::Merge], "{name}");
        let most = seen.get();
        assert!(most.doublings >= doublings, "{name}: only {} doublings", most.doublings);
        assert_eq!(most.void_slots > 0, voids, "{name}: {} void slots", most.void_slots);
    }
}

/// A faulty filter that removes another item instead of the requested one; the suite must reject it.
struct RemovesAnother(Tested, Vec<Vec<u8>>);

impl Subject for RemovesAnother {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.1.push(item.to_vec());
        self.0.insert(item)
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn remove(&mut self, _: &[u8]) -> Option<bool> {
        let any = self.1.pop().unwrap_or_default();
        self.0.filter.remove(&any).ok()
    }
}

#[test]
fn the_suites_have_teeth() {
    let seen = Rc::new(Cell::new(Most::default()));
    let shape = GrowingShape::for_capacity(100, 0.01).unwrap();
    let make = |seed| RemovesAnother(grows(shape, seed, &seen), Vec::new());
    let failure = never_forgets(make, &Script::new(20_000, 1_000)).unwrap_err();
    assert!(matches!(failure, Failure::Forgot { .. } | Failure::WouldNotRemove { .. }), "{failure}");
    assert!(keeps_its_rate(|_| AlwaysNo, &first_plan(0.01, 10_000)).is_err());
    assert!(keeps_its_rate(|_| AlwaysMayhap, &first_plan(0.01, 10_000)).is_err());
}

const CAPACITY: u64 = 10_000;

/// 4 000 false positives expected, whatever the rate.
fn first_plan(fpr: f64, items: u64) -> RatePlan<'static> {
    let rate = GrowingShape::for_capacity(CAPACITY, fpr).unwrap().expected_fpr(CAPACITY).unwrap();
    let non_members = (4_000.0 / rate) as u64 / SEEDS.len() as u64;
    let promised = band_with_model_error(non_members * SEEDS.len() as u64, rate, 1e-6, 0.02);
    RatePlan { shape: Shape::Url, items, non_members, seeds: &SEEDS, promised }
}

#[test]
fn before_it_grows_it_has_the_rate_of_the_model() {
    let seen = Rc::new(Cell::new(Most::default()));
    for fpr in [0.3, 0.01, 0.001] {
        let shape = GrowingShape::for_capacity(CAPACITY, fpr).unwrap();
        let make = |seed| grows(shape, seed, &seen);
        let report = keeps_its_rate(make, &first_plan(fpr, CAPACITY)).unwrap();
        assert!(report.observed_fpr() <= fpr, "{fpr}: {}", report.observed_fpr());
        let failure = keeps_its_rate(make, &first_plan(fpr, CAPACITY * 4 / 5)).unwrap_err();
        assert!(matches!(failure, Failure::RateOff { .. }), "{fpr}: {failure}");
    }
}

/// A filter filled until just before its `doublings + 1`-th doubling, and its number of members.
fn full(shape: GrowingShape, seed: u64, doublings: u32) -> (Growing, u64) {
    let mut filter = Growing::with_shape(shape, seed).unwrap();
    let mut members = 0;
    while filter.doublings() < doublings || filter.inserted() < filter.capacity() {
        let missing = (filter.capacity() - filter.inserted()).clamp(1, 4_096);
        let items: Vec<u64> = (members..members + missing).map(|i| member_u64(seed, i)).collect();
        members += missing;
        filter.insert_batch(&items).unwrap();
    }
    assert_eq!((filter.doublings(), filter.inserted()), (doublings, members));
    (filter, members)
}

fn wrong_answers(filter: &Growing, seed: u64, non_members: u64) -> u64 {
    (0..non_members).filter(|&i| filter.may_contain(&non_member_u64(seed, i))).count() as u64
}

#[test]
fn the_rate_is_that_of_the_model_and_below_the_promise_after_any_growth() {
    let plans = [
        ("one percent", GrowingShape::for_capacity(14, 0.01).unwrap(), 60_000),
        ("one percent, odd", GrowingShape::for_capacity(101, 0.01).unwrap(), 60_000),
        ("one in ten", GrowingShape::for_capacity(20, 0.1).unwrap(), 10_000),
        ("one half", GrowingShape::for_capacity(14, 0.5).unwrap(), 4_000),
        ("three bits", GrowingShape::exactly(30, 3).unwrap(), 6_000),
    ];
    for (name, shape, non_members) in plans {
        for doublings in [0, 1, 4, 10] {
            let (mut wrong, mut expected) = (0, 0.0);
            for seed in SEEDS {
                let (filter, members) = full(shape, seed, doublings);
                assert!((0..members).all(|i| filter.may_contain(&member_u64(seed, i))), "{name}: forgot one");
                // The plan gives the same numbers before anything is built.
                let planned = shape.expected_fpr(members).unwrap();
                assert!(
                    (filter.expected_fpr() / planned - 1.0).abs() < 0.01,
                    "{name}: {} {planned}",
                    filter.expected_fpr()
                );
                assert_eq!(shape.doublings_for(members), Ok(doublings), "{name}");
                assert_eq!(shape.memory_bytes_after(members), Ok(filter.memory_bytes()), "{name}");
                assert!(filter.void_slots() as f64 <= shape.target_fpr() * members as f64);
                expected += filter.expected_fpr() / SEEDS.len() as f64;
                wrong += wrong_answers(&filter, seed, non_members);
            }
            let trials = non_members * SEEDS.len() as u64;
            let band = band_with_model_error(trials, expected, 1e-6, 0.03);
            assert!(band.contains(&wrong), "{name}, {doublings} doublings: {wrong} wrong, expected {band:?}");
            assert!(expected <= shape.target_fpr() && wrong as f64 <= shape.target_fpr() * trials as f64);
        }
    }
}

/// The moonshot: twenty doublings, from eight items to eight million.
#[test]
fn after_twenty_doublings_everything_is_there_and_the_rate_holds() {
    const ITEMS: u64 = 8_000_000;
    let mut filter = Growing::for_capacity(8, 0.01, 5).unwrap();
    for block in 0..ITEMS / 4_000 {
        let items: Vec<u64> = (block * 4_000..(block + 1) * 4_000).map(|i| member_u64(5, i)).collect();
        filter.insert_batch(&items).unwrap();
    }
    assert_eq!((filter.doublings(), filter.inserted()), (20, ITEMS));
    assert!(filter.void_slots() > 1_000, "the first fingerprints are long used up");
    let mut answers = Answers::new();
    for block in 0..ITEMS / 4_000 {
        let items: Vec<u64> = (block * 4_000..(block + 1) * 4_000).map(|i| member_u64(5, i)).collect();
        filter.may_contain_batch(&items, &mut answers);
        assert_eq!(answers.maybe_count(), 4_000, "block {block}");
    }
    let wrong = wrong_answers(&filter, 5, 1_000_000);
    let band = band_with_model_error(1_000_000, filter.expected_fpr(), 1e-6, 0.03);
    assert!(band.contains(&wrong) && wrong <= 10_000, "{wrong} wrong, expected {band:?}");
    assert_eq!(filter.shape().memory_bytes_after(ITEMS), Ok(filter.memory_bytes()));
    // Items of every generation are removed, and no others with them.
    let removed = |i: u64| i % 3 == 1 && (i < 1_000 || i % 1_000 < 30);
    (0..ITEMS).filter(|&i| removed(i)).for_each(|i| assert!(filter.remove(&member_u64(5, i))));
    assert!((0..ITEMS).filter(|&i| !removed(i)).all(|i| filter.may_contain(&member_u64(5, i))));
}

/// A filter without variable lengths: at every doubling it drops a bit of every fingerprint, old or new, like rivals whose rate doubles with every growth.
/// Simulated by a filter that begins with the length left at the end.
#[test]
fn a_rate_that_grows_with_the_filter_would_be_detected() {
    let (filter, members) = full(GrowingShape::for_capacity(14, 0.01).unwrap(), 1, 9);
    let planned = filter.shape().expected_fpr(members).unwrap();
    let trials = 200_000;
    let band = band_with_model_error(trials, planned, 1e-6, 0.03);
    assert!(band.contains(&wrong_answers(&filter, 1, trials)));
    // One bit too few in every fingerprint.
    let (short, _) = full(GrowingShape::for_capacity(14, 0.02).unwrap(), 1, 9);
    assert!(!band.contains(&wrong_answers(&short, 1, trials)));
}

/// Tiny fingerprints, where everything collides and runs out all the time, against an exact multiset.
#[test]
fn tiny_fingerprints_lose_no_item() {
    let mut most_voids = 0;
    for (homes, bits) in [(2, 1), (3, 1), (2, 2), (5, 2), (16, 1), (16, 3), (31, 4), (100, 2)] {
        let shape = GrowingShape::exactly(homes, bits).unwrap();
        let mut rng = Rng::new(homes * 100 + u64::from(bits));
        for round in 0..12 {
            let mut filter = Growing::with_shape(shape, round).unwrap();
            let mut copies: BTreeMap<u64, u64> = BTreeMap::new();
            let pool = [12, 100, 400][round as usize % 3];
            for step in 0..1_000 {
                let item = rng.below(pool);
                // It grows, shrinks to a few items, and grows again.
                let odds = if step / 250 == 2 { 1 } else { 3 };
                if rng.below(4) < odds {
                    if let Ok(new) = filter.insert(&item) {
                        assert!(!new || !copies.contains_key(&item), "a member is not new");
                        *copies.entry(item).or_default() += 1;
                    }
                } else if let Some(left) = copies.get_mut(&item) {
                    assert!(filter.remove(&item), "a member can be removed");
                    *left -= 1;
                    copies.retain(|_, left| *left > 0);
                }
                for (item, &copies) in &copies {
                    let estimate = filter.count_estimate(item);
                    assert!(estimate >= copies && filter.may_contain(item), "{estimate} for {copies} copies");
                }
                most_voids = most_voids.max(filter.void_slots());
            }
            assert_eq!(filter.inserted(), copies.values().sum::<u64>());
            assert!(filter.doublings() >= 1);
            for (item, copies) in copies {
                (0..copies).for_each(|_| assert!(filter.remove(&item)));
            }
            assert_eq!((filter.inserted(), filter.fill(), filter.expected_fpr()), (0, 0.0, 0.0));
        }
    }
    assert!(most_voids > 100, "{most_voids}");
}

#[test]
fn items_of_every_generation_can_be_removed_and_the_rate_follows() {
    for fpr in [0.2, 0.01] {
        let shape = GrowingShape::for_capacity(14, fpr).unwrap();
        let (mut filter, members) = full(shape, 3, 10);
        let (bytes, before) = (filter.memory_bytes(), filter.expected_fpr());
        // Every second item of every generation is removed.
        (0..members).step_by(2).for_each(|i| assert!(filter.remove(&member_u64(3, i)), "{i}"));
        assert!((1..members).step_by(2).all(|i| filter.may_contain(&member_u64(3, i))));
        assert_eq!((filter.inserted(), filter.memory_bytes()), (members / 2, bytes));
        assert!(filter.expected_fpr() < before);
        let wrong = wrong_answers(&filter, 3, 300_000);
        assert!(
            band_with_model_error(300_000, filter.expected_fpr(), 1e-6, 0.03).contains(&wrong),
            "{wrong}"
        );
        // The items that replace them keep the rate, however often all are exchanged.
        for round in 1..=4 {
            (0..members).step_by(2).for_each(|i| assert!(filter.insert(&member_u64(100 + round, i)).is_ok()));
            assert!(filter.expected_fpr() <= fpr && filter.doublings() == 10);
            (0..members).step_by(2).for_each(|i| assert!(filter.remove(&member_u64(100 + round, i))));
        }
        assert!((1..members).step_by(2).all(|i| filter.may_contain(&member_u64(3, i))));
        (1..members).step_by(2).for_each(|i| assert!(filter.remove(&member_u64(3, i))));
        assert_eq!((filter.inserted(), filter.fill(), filter.void_slots()), (0, 0.0, 0));
        assert!(!filter.may_contain(&member_u64(3, 0)));
    }
}

/// Filled, emptied except for a few, and filled again, over and over while it grows: the rate includes the traces that removals leave.
#[test]
fn the_promise_holds_whatever_was_removed_on_the_way() {
    for fpr in [0.3, 0.02] {
        let mut filter = Growing::for_capacity(14, fpr, 9).unwrap();
        let mut held: Vec<u64> = Vec::new();
        let mut next = 0;
        for doublings in 1..=12 {
            while filter.doublings() < doublings {
                filter.insert(&member_u64(9, next)).unwrap();
                held.push(next);
                next += 1;
            }
            // All except the oldest of this size are removed, and as many new ones inserted.
            let kept = held.len() / [8, 2, 3][doublings as usize % 3];
            held.drain(kept..).for_each(|i| assert!(filter.remove(&member_u64(9, i))));
            assert!(held.iter().all(|&i| filter.may_contain(&member_u64(9, i))));
            assert!(filter.expected_fpr() <= fpr, "{doublings} doublings: {}", filter.expected_fpr());
        }
        let wrong = wrong_answers(&filter, 9, 200_000);
        assert!(wrong as f64 <= fpr * 200_000.0, "{fpr}: {wrong}");
    }
}

#[test]
fn copies_are_counted_and_have_a_limit() {
    let mut filter = Growing::for_capacity(1_000, 0.001, 0).unwrap();
    for copies in 1..=255 {
        assert_eq!(filter.insert("item"), Ok(copies == 1));
        assert_eq!(filter.count_estimate("item"), copies);
    }
    let before = filter.encode();
    // A hundred thousand more copies neither grow the table nor take long.
    for _ in 0..100_000 {
        assert_eq!(filter.insert("item"), Err(InsertError::TooManyCopies { limit: 255 }));
    }
    assert!(filter.encode() == before);
    assert_eq!(filter.doublings(), 0);
    let refused = filter.insert_batch(&["a", "b", "item", "c"]).unwrap_err();
    assert_eq!(refused.to_string(), "too many copies of one item, limit is 255");
    assert_eq!(filter.inserted(), 257, "the two before it were inserted");
    assert!(filter.may_contain("a") && filter.may_contain("b") && !filter.may_contain("c"));
    for left in (0..255).rev() {
        assert!(filter.remove("item"));
        assert_eq!(filter.count_estimate("item"), left);
    }
    assert!(!filter.remove("item") && filter.remove("a") && filter.remove("b"));
    assert_eq!((filter.inserted(), filter.fill()), (0, 0.0));
}

#[test]
fn insert_if_absent_stores_an_item_once() {
    let mut filter = Growing::for_capacity(10, 0.01, 0).unwrap();
    let mut new = 0;
    for round in 0..3 {
        for item in 0..5_000_u64 {
            let before = filter.may_contain(&item);
            let outcome = filter.insert_if_absent(&item).unwrap();
            assert!(outcome != before && filter.may_contain(&item));
            assert!(round == 0 || !outcome);
            new += u64::from(outcome);
        }
    }
    assert_eq!(filter.inserted(), new);
    assert!(new > 4_900, "{new}");
    (0..1_000_000).for_each(|_| assert_eq!(filter.insert_if_absent(&7_u64), Ok(false)));
}

/// Hashes chosen to meet at the very end of the table do not make it grow for ever.
#[test]
fn a_crowded_end_is_rejected_without_doubling() {
    let mut filter = Growing::for_capacity(100_000, 0.001, 0).unwrap();
    let mut refused = 0;
    for key in 0..60_000_u64 {
        // The last home, with different fingerprints: the low half is the home, the high half the rest.
        let hash = ItemHash::from(WellMixed(u128::from(key % 5_000) << 64 | u128::from(u64::MAX)));
        match filter.insert_hash(hash) {
            Ok(_) => assert!(filter.may_contain_hash(hash)),
            Err(InsertError::Full { .. } | InsertError::TooManyCopies { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 10_000, "{refused}");
    assert_eq!(filter.doublings(), 0);
    (0..1_000).for_each(|i| assert!(filter.insert(&member(i)).is_ok() && filter.may_contain(&member(i))));
}

/// A table of 1 920 homes has 301 slots from its last home on, and so has one of twice the size: growing does not help.
#[test]
fn a_useless_growth_is_undone() {
    let mut filter = Growing::with_shape(GrowingShape::exactly(1_920, 8).unwrap(), 0).unwrap();
    let hash = |low: u64, high: u64| ItemHash::from(WellMixed(u128::from(high) << 64 | u128::from(low)));
    // More than half full, all of it far from the end.
    (0..900).for_each(|i| assert!(filter.insert_hash(hash(i << 53, 0)).is_ok()));
    let crowd: Vec<ItemHash> = (0..302).map(|i| hash(u64::MAX, (i % 2) << 7 | 1)).collect();
    crowd[..301].iter().for_each(|&hash| assert!(filter.insert_hash(hash).is_ok()));
    let before = filter.encode();
    assert!(matches!(filter.insert_hash(crowd[301]), Err(InsertError::Full { .. })));
    assert!(filter.encode() == before && filter.doublings() == 0);
}

#[test]
fn a_rejected_growth_changes_nothing_and_gives_the_reason() {
    let plan = GrowingShape::for_capacity(1_000, 0.01).unwrap();
    let limit = plan.memory_bytes_after(1_001).unwrap();
    let mut filter = Growing::with_shape(plan.within(limit).unwrap(), 5).unwrap();
    let items: Vec<u64> = (0..10_000).collect();
    let refused = filter.insert_batch(&items).unwrap_err();
    let taken = filter.inserted();
    assert_eq!((filter.doublings(), filter.capacity()), (1, taken));
    let cause = BuildError::TooLarge { bytes: plan.memory_bytes_after(taken + 1).unwrap(), limit };
    assert_eq!(refused, InsertError::CannotGrow { capacity: taken, layers: 1, cause: cause.clone() });
    assert_eq!(refused.source().unwrap().to_string(), cause.to_string());
    assert_eq!(plan.within(limit).unwrap().memory_bytes_after(taken + 1), Err(cause));

    let bytes = filter.encode();
    assert_eq!(filter.insert(&taken).unwrap_err(), refused);
    assert!(filter.encode() == bytes);
    assert!(items[..taken as usize].iter().all(|item| filter.may_contain(item)));
    // Room that was made is room.
    assert!(filter.remove(&items[0]));
    assert!(filter.insert(&taken).is_ok() && filter.insert(&(taken + 1)).is_err());

    // The limit travels with the filter, and can be lifted.
    let mut filter = Growing::decode(&bytes).unwrap();
    assert!(filter.insert(&taken).is_err());
    filter.limit_memory(None);
    filter.insert_batch(&items[taken as usize..]).unwrap();
    assert!(items.iter().all(|item| filter.may_contain(item)));
    filter.limit_memory(Some(1));
    assert!(Growing::decode(&filter.encode()).is_ok(), "a limit set too late must not lose the filter");
}

#[test]
fn it_ends_where_the_world_does() {
    let plan = GrowingShape::for_capacity(1 << 41, 0.01).unwrap();
    assert!(plan.memory_bytes_after(1 << 42).is_ok());
    assert!(matches!(plan.memory_bytes_after(1 << 43), Err(BuildError::CapacityOutOfRange { .. })));
    assert!(matches!(plan.doublings_for(u64::MAX), Err(BuildError::CapacityOutOfRange { .. })));
    let strict = GrowingShape::for_capacity(1, 1e-12).unwrap();
    assert!(strict.expected_fpr(1 << 41).unwrap() <= 1e-12);
}

#[test]
fn a_decoded_filter_grows_on_like_the_one_it_came_from() {
    let keyed = HashScheme::keyed_random().unwrap();
    for shape in [
        GrowingShape::for_capacity(20, 0.01).unwrap(),
        GrowingShape::for_capacity(77, 0.003).unwrap().within(1 << 30).unwrap(),
        GrowingShape::exactly(33, 2).unwrap(),
    ] {
        for scheme in [HashScheme::fast(3), keyed] {
            let mut never_encoded = Growing::with_shape(shape, scheme).unwrap();
            let mut often_decoded = Growing::with_shape(shape, scheme).unwrap();
            for i in 0..20_000_u64 {
                assert_eq!(never_encoded.insert(&i), often_decoded.insert(&i));
                if i.is_power_of_two() || i % 1_537 == 0 {
                    often_decoded = Growing::decode(&often_decoded.encode()).unwrap();
                    assert_eq!(often_decoded.shape(), &shape);
                    assert_eq!(often_decoded.expected_fpr(), never_encoded.expected_fpr());
                }
                if i % 3 == 0 {
                    assert_eq!(never_encoded.remove(&(i / 2)), often_decoded.remove(&(i / 2)));
                }
            }
            assert!(never_encoded.doublings() >= 7);
            assert!(never_encoded.encode() == often_decoded.encode(), "{shape}");
        }
    }
}

#[test]
fn the_order_of_insertions_within_a_generation_leaves_no_trace() {
    let shape = GrowingShape::for_capacity(2_000, 0.01).unwrap();
    let [mut forwards, mut backwards] = std::array::from_fn(|_| Growing::with_shape(shape, 1).unwrap());
    (0..2_000).for_each(|i| assert!(forwards.insert(&member(i)).is_ok()));
    (0..2_000).rev().for_each(|i| assert!(backwards.insert(&member(i)).is_ok()));
    assert!(forwards.encode() == backwards.encode());
    // Neither do items that were inserted and removed.
    (0..300).for_each(|i| assert!(backwards.remove(&member(i))));
    (0..300).for_each(|i| assert!(backwards.insert(&member(i)).is_ok()));
    assert!(forwards.encode() == backwards.encode());
}

#[test]
fn removing_a_certain_non_member_changes_nothing() {
    let (mut filter, _) = full(GrowingShape::for_capacity(50, 0.01).unwrap(), 3, 5);
    let before = filter.encode();
    let mut turned_away = 0;
    for item in (0..20_000).map(non_member) {
        if !filter.may_contain(&item) {
            assert!(!filter.remove(&item));
            assert_eq!(filter.count_estimate(&item), 0);
            turned_away += 1;
        }
    }
    assert!(turned_away > 19_000, "{turned_away}");
    assert!(filter.encode() == before);
}

#[test]
fn hashes_and_items_are_the_same() {
    let mut by_item = Growing::for_capacity(30, 0.01, 5).unwrap();
    let mut by_hash = by_item.try_clone().unwrap();
    let items: Vec<Vec<u8>> = (0..1_000).map(member).collect();
    let hashes: Vec<_> = items.iter().map(|item| by_hash.hash(item)).collect();
    assert_eq!(by_item.insert_batch(&items), by_hash.insert_hash_batch(&hashes));
    for (item, hash) in items[..100].iter().zip(&hashes) {
        assert_eq!(by_item.insert(item), by_hash.insert_hash(*hash));
        assert_eq!(by_item.insert_if_absent(item), by_hash.insert_hash_if_absent(*hash));
        assert_eq!(by_item.count_estimate(item), by_hash.count_estimate_hash(*hash));
        assert_eq!(by_item.remove(item), by_hash.remove_hash(*hash));
        assert_eq!(by_item.may_contain(item), by_hash.may_contain_hash(*hash));
    }
    assert!(by_item.encode() == by_hash.encode());
    let (mut of_items, mut of_hashes) = (Answers::new(), Answers::new());
    by_item.may_contain_batch(&items, &mut of_items);
    by_hash.may_contain_hash_batch(&hashes, &mut of_hashes);
    assert_eq!(of_items, of_hashes);
    assert_eq!(of_items.maybe_count(), 1_000);
    // Batches of every length answer like single questions, non-members included.
    for length in [0, 1, 31, 32, 33, 63, 64, 65, 100, 129] {
        let asked: Vec<Vec<u8>> =
            (0..length).map(|i| if i % 3 == 0 { member(i) } else { non_member(i) }).collect();
        by_item.may_contain_batch(&asked, &mut of_items);
        assert!(of_items.iter().eq(asked.iter().map(|item| by_item.may_contain(item))), "{length}");
    }
}

#[test]
fn a_cleared_filter_is_like_new() {
    let new = Growing::for_capacity(100, 0.01, 1).unwrap();
    let mut used = new.try_clone().unwrap();
    (0..5_000_u64).for_each(|item| assert!(used.insert(&item).is_ok()));
    let copy = used.try_clone().unwrap();
    assert!(copy.encode() == used.encode());
    used.clear();
    assert!(used.encode() == new.encode());
    assert_eq!(
        (used.expected_fpr(), used.bits_per_item(), used.capacity()),
        (0.0, f64::INFINITY, new.capacity())
    );
    assert!(copy.may_contain(&0_u64) && !used.may_contain(&0_u64));
}

#[test]
fn a_shape_has_its_price_before_it_is_built() {
    for (capacity, fpr) in [(1, 0.01), (2, 0.9), (14, 1e-12), (100_000, 0.01), (123_457, 0.0004)] {
        let shape = GrowingShape::for_capacity(capacity, fpr).unwrap();
        let filter = Growing::with_shape(shape, HashScheme::keyed_random().unwrap()).unwrap();
        assert_eq!(filter.memory_bytes(), shape.memory_bytes());
        assert_eq!(shape.memory_bytes_after(0), Ok(shape.memory_bytes()));
        assert_eq!(shape.doublings_for(capacity), Ok(0));
        assert!(filter.capacity() >= capacity && shape.expected_fpr(capacity).unwrap() <= fpr);
        let error = shape.within(shape.memory_bytes() - 1).unwrap_err();
        assert_eq!(
            error,
            BuildError::TooLarge { bytes: shape.memory_bytes(), limit: shape.memory_bytes() - 1 }
        );
        assert_eq!(shape.within(shape.memory_bytes()).unwrap().limit_bytes(), Some(shape.memory_bytes()));
    }
    for (homes, bits) in [(2, 1), (3, 40), (1_000, 17), (1 << 40, 5)] {
        let shape = GrowingShape::exactly(homes, bits).unwrap();
        assert_eq!((shape.homes(), shape.fingerprint_bits()), (homes, bits));
    }
}

#[test]
fn bad_parameters_are_errors_before_anything_is_allocated() {
    let refused = |capacity, fpr: f64| {
        let (built, measured) = AllocMeter::measure(|| Growing::for_capacity(capacity, fpr, 0));
        assert_eq!(measured.total_bytes, 0, "{capacity} {fpr}");
        built.map(|_| ()).unwrap_err()
    };
    for fpr in [0.0, -0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(refused(1_000, fpr), BuildError::RateOutOfRange { .. }), "{fpr}");
    }
    for fpr in [1e-300, 1e-15, 9e-13] {
        assert!(matches!(refused(1_000, fpr), BuildError::RateTooLow { .. }), "{fpr}");
    }
    for capacity in [0, u64::MAX, sizing::MAX_CAPACITY + 1] {
        assert!(matches!(refused(capacity, 0.01), BuildError::CapacityOutOfRange { .. }), "{capacity}");
    }
    let exactly = |homes, bits| GrowingShape::exactly(homes, bits).unwrap_err();
    for homes in [0, 1, (1 << 43) + 1, u64::MAX] {
        assert!(matches!(exactly(homes, 8), BuildError::CapacityOutOfRange { .. }), "{homes}");
    }
    for bits in [0, 56, u32::MAX] {
        assert!(matches!(exactly(64, bits), BuildError::FingerprintOutOfRange { .. }), "{bits}");
    }
    assert!(matches!(exactly(64, 41), BuildError::RateTooLow { .. }));
}

/// Corrects the checksums of a damaged filter, so that the checks after them are reached.
fn seal(bytes: &mut [u8]) {
    if bytes.len() < HEADER_BYTES {
        return;
    }
    let (header, payload) = bytes.split_at_mut(HEADER_BYTES);
    header[24..32].copy_from_slice(&xxh3_64(payload).to_le_bytes());
    let checksum = xxh3_64(&header[..HEADER_BYTES - 8]);
    header[HEADER_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn damaged_bytes_are_errors_and_forged_ones_are_harmless() {
    let mut filter = Growing::with_shape(GrowingShape::exactly(20, 2).unwrap(), 1).unwrap();
    (0..60_u64).for_each(|i| assert!(filter.insert(&i).is_ok()));
    assert!(filter.doublings() >= 1 && filter.void_slots() > 0);
    let bytes = filter.encode();
    let mut corruptor = Corruptor::new(&bytes);
    corruptor.truncations(|bytes, damage| assert!(Growing::decode(bytes).is_err(), "{damage}"));
    corruptor.extensions(64, |bytes, damage| assert!(Growing::decode(bytes).is_err(), "{damage}"));
    corruptor.bit_flips(0..bytes.len(), |bytes, damage| assert!(Growing::decode(bytes).is_err(), "{damage}"));

    let mut decoded = 0;
    let mut exercise = |bytes: &[u8], damage: &dyn std::fmt::Display| {
        let (outcome, measured) = AllocMeter::measure(|| Growing::decode(bytes));
        assert!(measured.largest_request <= bytes.len() as u64, "{damage}");
        let Ok(mut filter) = outcome else { return };
        decoded += 1;
        filter.limit_memory(Some(1 << 20));
        assert!((0.0..=1.0).contains(&filter.expected_fpr()), "{damage}");
        for i in 0..150_u64 {
            let inserted = filter.insert(&(1_000 + i)).is_ok();
            assert!(!inserted || filter.may_contain(&(1_000 + i)), "{damage}");
        }
        for i in 0..60_u64 {
            let _ = (filter.count_estimate(&i), filter.remove(&i), filter.insert_if_absent(&i));
        }
        let mut answers = Answers::new();
        filter.may_contain_batch(&(0..100_u64).collect::<Vec<_>>(), &mut answers);
        let _ = (filter.capacity(), filter.fill(), filter.bits_per_item(), filter.void_slots());
        let again = Growing::decode(&filter.encode());
        assert!(again.is_ok(), "{damage}: a decoded filter decodes again");
        filter.clear();
        assert_eq!(filter.inserted(), 0);
    };
    let mut corruptor = Corruptor::new(&bytes).sealed_by(seal);
    let fields: Vec<(usize, usize)> =
        (8..16).step_by(2).map(|at| (at, 2)).chain((16..184).step_by(8).map(|at| (at, 8))).collect();
    corruptor.extremes(&fields, |bytes, damage| exercise(bytes, damage));
    corruptor.bit_flips(0..bytes.len(), |bytes, damage| exercise(bytes, damage));
    corruptor.flips(7, 30_000, |bytes, damage| exercise(bytes, damage));
    assert!(decoded > 100, "{decoded}: some forgeries decode, or the seal does not reach the fields");
}

#[test]
fn forged_fields_are_named() {
    let mut filter = Growing::for_capacity(20, 0.01, 7).unwrap();
    (0..50_u64).for_each(|i| assert!(filter.insert(&i).is_ok()));
    let bytes = filter.encode();
    let forge = |at: usize, field: &[u8]| {
        let mut forged = bytes.clone();
        forged[at..at + field.len()].copy_from_slice(field);
        seal(&mut forged);
        Growing::decode(&forged).unwrap_err()
    };
    assert!(matches!(forge(10, &[2, 0]), DecodeError::WrongKind { .. }));
    assert_eq!(forge(12, &[7, 0]), DecodeError::UnknownPlacement { got: 7 });
    assert!(matches!(forge(48, &[0; 8]), DecodeError::Unbuildable(_)));
    assert_eq!(forge(56, &[0; 8]), DecodeError::BadField { field: "inserted", got: 0 });
    assert_eq!(forge(56, &60_u64.to_le_bytes()), DecodeError::BadField { field: "inserted", got: 60 });
    assert!(matches!(forge(64, &f64::NAN.to_le_bytes()), DecodeError::Unbuildable(_)));
    assert!(matches!(forge(72, &[0; 8]), DecodeError::Unbuildable(_)));
    assert_eq!(forge(80, &[60]), DecodeError::BadField { field: "doublings", got: 60 });
    assert_eq!(forge(88, &[0]), DecodeError::BadField { field: "fingerprint bits", got: 0 });
    assert_eq!(forge(88, &[56]), DecodeError::BadField { field: "fingerprint bits", got: 56 });
    assert!(matches!(forge(104, &[1]), DecodeError::BadField { field: "unused parameter", .. }));
    assert!(matches!(forge(bytes.len() - 1, &[0x80]), DecodeError::StrayBit { .. }));
}

#[test]
fn the_table_in_the_docs_matches_the_code() {
    let row = |capacity: u64, fpr: f64| {
        let shape = GrowingShape::for_capacity(capacity, fpr).unwrap();
        [0, 1, 2, 5, 10, 20].map(|doublings| {
            // The most items it holds with this many doublings.
            let (mut low, mut high) = (1_u64, sizing::MAX_CAPACITY);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                let fits = shape.doublings_for(middle).is_ok_and(|needed| needed <= doublings);
                if fits { low = middle } else { high = middle }
            }
            shape.memory_bytes_after(low).unwrap() as f64 * 8.0 / low as f64
        })
    };
    let docs = include_str!("../src/growing/mod.rs");
    let mut rows = 0;
    for line in docs.lines().filter(|line| line.starts_with("/// | ") && line.contains(" % |")) {
        let cells: Vec<f64> =
            line.split('|').filter_map(|cell| cell.replace(['%', '_', '/', ' '], "").parse().ok()).collect();
        let found = row(cells[0] as u64, cells[1] / 100.0);
        let said = &cells[2..];
        let close =
            said.len() == 6 && said.iter().zip(&found).all(|(said, found)| (said - found).abs() < 0.06);
        assert!(close, "{line} should say {found:.1?}");
        rows += 1;
    }
    assert_eq!(rows, 6);
}
