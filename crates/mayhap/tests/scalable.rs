//! The guarantees of the scalable filter: nothing is forgotten, the rate holds after any growth, a rejected growth loses nothing, and a decoded filter
//! grows like the original.

mod support;

use std::cell::Cell;
use std::error::Error as _;
use std::rc::Rc;

use mayhap::{
    Answers, Bloom, BuildError, DecodeError, Filter, HashScheme, InsertError, ScalableBloom, ScalableShape,
    sizing,
};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::corrupt::Corruptor;
use mayhap_testkit::suite::{Failure, Operation, Script, never_forgets};
use mayhap_testkit::{Inserted, Subject, band_with_model_error, member_u64, non_member_u64};

use self::support::{Tested, operations};

#[global_allocator]
static METER: AllocMeter = AllocMeter;

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];

#[test]
fn nothing_is_forgotten_however_much_it_grows() {
    let plans = [
        ("the defaults", ScalableShape::for_capacity(500, 0.01).unwrap(), 4),
        ("equal layers", ScalableShape::for_capacity(1_000, 0.01).unwrap().growth(1.0).unwrap(), 17),
        ("tiers", ScalableShape::with_tiers(&[64, 1_000, 10_000], 0.001).unwrap(), 4),
    ];
    for (name, plan, layers) in plans {
        let most_layers = Rc::new(Cell::new(0));
        let make = |seed: u64| {
            let most_layers = Rc::clone(&most_layers);
            Tested::watched(ScalableBloom::with_shape(plan, seed).unwrap(), move |filter| {
                let Filter::ScalableBloom(filter) = filter else { panic!("another kind") };
                most_layers.set(most_layers.get().max(filter.layers().len()));
            })
        };
        let report = never_forgets(make, &Script::new(operations(), 20_000)).unwrap_or_else(|failure| {
            panic!("{name}: {failure}");
        });
        let cannot = [Operation::LookupRemoved, Operation::Remove, Operation::Merge];
        assert_eq!(report.missing(), cannot, "{name}");
        assert!(most_layers.get() >= layers, "{name}: only {} layers", most_layers.get());
    }
}

/// A faulty chain that queries only its newest layer; the suite must reject it.
struct AsksTheNewestOnly(ScalableBloom);

impl Subject for AsksTheNewestOnly {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.0.insert(item).into()
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.layers().last().unwrap().may_contain(item)
    }
}

#[test]
fn a_chain_that_queries_only_its_newest_layer_is_detected() {
    let make = |seed: u64| AsksTheNewestOnly(ScalableBloom::for_capacity(500, 0.01, seed).unwrap());
    let failure = never_forgets(make, &Script::new(200_000, 20_000)).unwrap_err();
    assert!(matches!(failure, Failure::Forgot { .. }), "{failure}");
}

/// A filter with every layer full after `growths` growths, and the number of its last member.
fn full(plan: ScalableShape, seed: u64, growths: usize) -> (ScalableBloom, u64) {
    let mut filter = ScalableBloom::with_shape(plan, seed).unwrap();
    let mut members = 0;
    while filter.layers().len() <= growths || filter.inserted() < filter.capacity() {
        let missing =
            if filter.layers().len() > growths { filter.capacity() - filter.inserted() } else { 64 };
        let items: Vec<u64> = (members..members + missing.min(4_096)).map(|i| member_u64(seed, i)).collect();
        members += items.len() as u64;
        filter.insert_batch(&items).unwrap();
    }
    (filter, members)
}

fn wrong_answers(may_contain: impl Fn(&u64) -> bool, seed: u64, non_members: u64) -> u64 {
    (0..non_members).filter(|&i| may_contain(&non_member_u64(seed, i))).count() as u64
}

#[test]
fn the_rate_is_that_of_the_model_and_below_the_promise_after_any_growth() {
    let redis =
        |p| ScalableShape::for_capacity(300, p).unwrap().growth(2.0).unwrap().tightening(0.5).unwrap();
    let crowded =
        |p| ScalableShape::for_capacity(2_000, p).unwrap().growth(1.0).unwrap().tightening(0.3).unwrap();
    let plans = [
        ("the defaults at 1 %", ScalableShape::for_capacity(100, 0.01).unwrap(), 400_000),
        ("the defaults at 5 %", ScalableShape::for_capacity(100, 0.05).unwrap(), 100_000),
        ("twice as large, half as wrong, at 2 %", redis(0.02), 200_000),
        // High rates: a layer sized for its count of items, not for the insertions needed to reach that count, exceeds the rate here.
        ("equal layers at 30 %", crowded(0.3), 200_000),
        ("tiers at 1 %", ScalableShape::with_tiers(&[50, 1_000, 2_000], 0.01).unwrap(), 400_000),
    ];
    for (name, plan, non_members) in plans {
        for growths in [0, 1, 3, 6] {
            let (mut wrong, mut expected) = (0, 0.0);
            for seed in SEEDS {
                let (filter, members) = full(plan, seed, growths);
                assert_eq!(filter.layers().len(), growths + 1);
                assert!((0..members).all(|i| filter.may_contain(&member_u64(seed, i))), "{name}: forgot one");
                assert_eq!(filter.expected_fpr(), plan.expected_fpr(filter.inserted()).unwrap());
                expected = filter.expected_fpr();
                wrong += wrong_answers(|non_member| filter.may_contain(non_member), seed, non_members);
            }
            let trials = non_members * SEEDS.len() as u64;
            let band = band_with_model_error(trials, expected, 1e-6, 0.02);
            assert!(band.contains(&wrong), "{name}, {growths} growths: {wrong} wrong, expected {band:?}");
            assert!(
                expected <= plan.target_fpr(),
                "{name}, {growths} growths: {expected} is past the promise"
            );
            let observed = wrong as f64 / trials as f64;
            assert!(
                observed <= plan.target_fpr(),
                "{name}, {growths} growths: {observed} is past the promise"
            );
        }
    }
}

/// Wrong answers of hand-made chains, full after `growths` growths: capacities of the plan, rates by `share`, and every
/// layer sized for its count of items as if those were any items.
fn hand_made(plan: &ScalableShape, growths: usize, non_members: u64, share: impl Fn(usize) -> f64) -> u64 {
    let of_seed = |seed| {
        let (mut layers, mut i) = (Vec::<Bloom>::new(), 0);
        for index in 0..=growths {
            let capacity = plan.layer(index).unwrap().capacity();
            let mut newest = Bloom::for_capacity(capacity, plan.target_fpr() * share(index), seed).unwrap();
            while newest.inserted() < capacity {
                let item = member_u64(seed, i);
                if !layers.iter().any(|layer| layer.may_contain(&item)) {
                    newest.insert(&item);
                }
                i += 1;
            }
            layers.push(newest);
        }
        wrong_answers(|item| layers.iter().any(|layer| layer.may_contain(item)), seed, non_members)
    };
    SEEDS.map(of_seed).iter().sum()
}

#[test]
fn chains_that_divide_the_rate_wrongly_are_detected() {
    let (growths, non_members) = (4, 50_000);
    let plan = ScalableShape::for_capacity(100, 0.05).unwrap();
    let items: u64 = (0..=growths).map(|layer| plan.layer(layer).unwrap().capacity()).sum();
    let trials = non_members * SEEDS.len() as u64;
    let band = band_with_model_error(trials, plan.expected_fpr(items).unwrap(), 1e-6, 0.02);
    let r = plan.tightening_ratio();
    let geometric = |layer: usize| (1.0 - r) * r.powi(layer as i32);
    let right = hand_made(&plan, growths, non_members, geometric);
    assert!(band.contains(&right), "{right} wrong with the right shares, expected {band:?}");
    let equal = hand_made(&plan, growths, non_members, |_| 1.0);
    assert!(
        !band.contains(&equal) && equal as f64 > 3.0 * 0.05 * trials as f64,
        "{equal} without tightening"
    );
    let greedy =
        hand_made(&plan, growths, non_members, |layer| if layer == 0 { 1.0 } else { geometric(layer - 1) });
    assert!(
        !band.contains(&greedy) && greedy as f64 > 1.5 * 0.05 * trials as f64,
        "{greedy} with a greedy first layer"
    );
}

#[test]
fn layers_sized_as_if_they_counted_every_item_are_detected() {
    let plan = ScalableShape::for_capacity(2_000, 0.3).unwrap().growth(1.0).unwrap().tightening(0.3).unwrap();
    let wrong = hand_made(&plan, 6, 20_000, |layer| 0.7 * 0.3_f64.powi(layer as i32));
    assert!(
        wrong as f64 > 0.305 * 20_000.0 * SEEDS.len() as f64,
        "{wrong} false positives: this chain keeps its rate"
    );
}

#[test]
fn tiers_are_used_exactly_and_growth_continues_from_the_last() {
    let plan = ScalableShape::with_tiers(&[1_000, 10_000, 100_000], 0.01).unwrap().growth(2.0).unwrap();
    let mut filter = ScalableBloom::with_shape(plan, 7).unwrap();
    let mut changes = Vec::new();
    let mut i = 0;
    while filter.layers().len() < 5 {
        let (layers, inserted) = (filter.layers().len(), filter.inserted());
        filter.insert(&member_u64(7, i)).unwrap();
        i += 1;
        if filter.layers().len() != layers {
            changes.push(inserted);
        }
    }
    assert_eq!(changes, [1_000, 11_000, 111_000, 311_000]);
    let capacities: Vec<u64> = filter.layers().iter().map(Bloom::capacity).collect();
    assert_eq!(capacities, [1_000, 10_000, 100_000, 200_000, 400_000]);
    assert_eq!((filter.capacity(), filter.inserted()), (711_000, 311_001));
    let fills: Vec<f64> = filter.layers().iter().map(Bloom::fill).collect();
    assert!(fills[..4].iter().all(|fill| (0.45..0.55).contains(fill)), "{fills:?}");
    assert!(fills[4] < 1e-4);
    assert_eq!(plan.layers_for(0), Ok(1));
    assert_eq!(plan.layers_for(11_000), Ok(2));
    assert_eq!(plan.layers_for(11_001), Ok(3));
    assert_eq!(plan.memory_bytes_for(711_000), Ok(filter.memory_bytes()));
    assert!((filter.bits_per_item() - filter.memory_bytes() as f64 * 8.0 / 311_001.0).abs() < 1e-9);
}

#[test]
fn a_decoded_filter_grows_on_like_the_one_it_came_from() {
    let keyed = HashScheme::keyed_random().unwrap();
    let plans = [
        ScalableShape::for_capacity(100, 0.01).unwrap(),
        ScalableShape::for_capacity(77, 0.003).unwrap().growth(1.7).unwrap().tightening(0.81).unwrap(),
        ScalableShape::with_tiers(&[10, 20, 3_000, 40, 50], 0.02).unwrap().within(1 << 30).unwrap(),
    ];
    for plan in plans {
        for scheme in [HashScheme::fast(3), keyed] {
            let mut never_encoded = ScalableBloom::with_shape(plan, scheme).unwrap();
            let mut often_decoded = ScalableBloom::with_shape(plan, scheme).unwrap();
            for i in 0..20_000_u64 {
                assert_eq!(never_encoded.insert(&i), often_decoded.insert(&i));
                if i.is_power_of_two() || i % 1_537 == 0 {
                    often_decoded = ScalableBloom::decode(&often_decoded.encode()).unwrap();
                    assert_eq!(often_decoded.shape(), &plan);
                }
            }
            assert!(never_encoded.layers().len() >= 4);
            assert!(never_encoded.encode() == often_decoded.encode(), "{plan}");
        }
    }
}

#[test]
fn batches_count_as_their_items_do_one_by_one() {
    // Three copies of everything, near and far, in batches of all lengths around the borders of blocks and layers.
    for length in [1, 2, 63, 500, 4_095, 4_096, 4_097, 30_000] {
        let items: Vec<u64> = (0..10_000).flat_map(|i| [i, i, i * 7 % 10_000]).collect();
        let mut by_batch = ScalableBloom::for_capacity(100, 0.05, 9).unwrap();
        let mut by_hash = ScalableBloom::for_capacity(100, 0.05, 9).unwrap();
        let mut one_by_one = ScalableBloom::for_capacity(100, 0.05, 9).unwrap();
        for batch in items.chunks(length) {
            let new = batch.iter().filter(|&item| one_by_one.insert(item).unwrap()).count() as u64;
            assert_eq!(by_batch.insert_batch(batch), Ok(new));
            let hashes: Vec<_> = batch.iter().map(|item| by_hash.hash(item)).collect();
            assert_eq!(by_hash.insert_hash_batch(&hashes), Ok(new));
        }
        assert!(by_batch.encode() == one_by_one.encode() && by_hash.encode() == one_by_one.encode());
        assert_eq!(one_by_one.layers().len(), 5);

        let asked: Vec<u64> = (0..30_000).map(|i| i * 3).collect();
        let hashes: Vec<_> = asked.iter().map(|item| by_hash.hash(item)).collect();
        let (mut answers, mut hash_answers) = (Answers::new(), Answers::new());
        for (asked, hashes) in asked.chunks(length).zip(hashes.chunks(length)) {
            by_batch.may_contain_batch(asked, &mut answers);
            by_batch.may_contain_hash_batch(hashes, &mut hash_answers);
            assert!(answers.iter().eq(asked.iter().map(|item| one_by_one.may_contain(item))));
            assert_eq!(answers, hash_answers);
        }
    }
}

#[test]
fn a_rejected_growth_loses_nothing_and_gives_the_reason() {
    let plan = ScalableShape::for_capacity(1_000, 0.01).unwrap();
    let limit = plan.memory_bytes_for(4_500).unwrap();
    let mut filter = ScalableBloom::with_shape(plan.within(limit).unwrap(), 5).unwrap();
    let items: Vec<u64> = (0..10_000).collect();
    let refused = filter.insert_batch(&items).unwrap_err();
    let cause = BuildError::TooLarge { bytes: plan.memory_bytes_for(4_501).unwrap(), limit };
    assert_eq!(refused, InsertError::CannotGrow { capacity: 4_500, layers: 2, cause: cause.clone() });
    assert_eq!(refused.to_string(), "filter is full with 4500 items in 2 layers and cannot grow");
    assert_eq!(refused.source().unwrap().to_string(), cause.to_string());

    // The batch got as far as single inserts would have: the next item is the first rejected one.
    let stopped_at = items.iter().position(|item| !filter.may_contain(item)).unwrap() as u64;
    let mut one_by_one = ScalableBloom::with_shape(plan.within(limit).unwrap(), 5).unwrap();
    assert!((0..stopped_at).all(|item| one_by_one.insert(&item).is_ok()));
    assert_eq!(one_by_one.insert(&stopped_at), Err(refused));
    let bytes = filter.encode();
    assert!(bytes == one_by_one.encode());

    // A full filter still answers, and its members may be inserted again.
    assert_eq!(filter.insert(&0_u64), Ok(false));
    assert_eq!(filter.insert_batch(&items[..stopped_at as usize]), Ok(0));
    assert!(filter.insert(&stopped_at).is_err() && filter.encode() == bytes);
    assert!(filter.expected_fpr() <= 0.01);

    // The limit travels with the filter, and can be lifted.
    let mut filter = ScalableBloom::decode(&bytes).unwrap();
    assert!(filter.insert(&stopped_at).is_err());
    filter.limit_memory(None);
    filter.insert_batch(&items).unwrap();
    assert!(items.iter().all(|item| filter.may_contain(item)));
    filter.limit_memory(Some(1));
    assert!(ScalableBloom::decode(&filter.encode()).is_ok(), "a limit set too late must not lose the filter");
}

#[test]
fn a_chain_ends_where_its_layers_do() {
    let mut filter =
        ScalableBloom::with_shape(ScalableShape::for_capacity(1, 0.5).unwrap().growth(1.0).unwrap(), 0)
            .unwrap();
    let refused = (0..100_000_u64).find_map(|item| filter.insert(&item).err()).unwrap();
    let cause = BuildError::LayersOutOfRange { got: 65, limit: 64 };
    assert_eq!(refused, InsertError::CannotGrow { capacity: 64, layers: 64, cause });
    assert_eq!(ScalableBloom::decode(&filter.encode()).unwrap().layers().len(), 64);

    let plan = ScalableShape::for_capacity(1 << 41, 0.01).unwrap();
    assert!(matches!(plan.layer(1), Err(BuildError::CapacityOutOfRange { .. })));
    assert!(matches!(plan.layers_for(u64::MAX), Err(BuildError::CapacityOutOfRange { .. })));
    let plan = ScalableShape::for_capacity(10, 1e-14).unwrap();
    assert!(matches!(plan.expected_fpr(1_000_000), Err(BuildError::RateTooLow { .. })));
    assert!(matches!(plan.layer(usize::MAX), Err(BuildError::LayersOutOfRange { .. })));
}

#[test]
fn a_cleared_filter_is_like_new() {
    let new = ScalableBloom::for_capacity(100, 0.01, 1).unwrap();
    let mut used = new.try_clone().unwrap();
    (0..5_000_u64).for_each(|item| assert!(used.insert(&item).is_ok()));
    let copy = used.try_clone().unwrap();
    assert!(copy.encode() == used.encode());
    used.clear();
    assert!(used.encode() == new.encode());
    assert_eq!((used.expected_fpr(), used.bits_per_item()), (0.0, f64::INFINITY));
    assert!(copy.may_contain(&0_u64) && !used.may_contain(&0_u64));
}

#[test]
fn invalid_numbers_are_rejected_before_any_allocation() {
    let good = ScalableShape::for_capacity(1_000, 0.01).unwrap();
    let built = |work: &dyn Fn() -> Result<ScalableShape, BuildError>| {
        let (outcome, measured) = AllocMeter::measure(work);
        assert_eq!(measured.total_bytes, 0, "{outcome:?}");
        outcome
    };
    let strange = [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    for rate in strange.into_iter().chain([1.0, 1.5]) {
        let outcome = built(&|| ScalableShape::for_capacity(1_000, rate));
        assert!(matches!(outcome, Err(BuildError::RateOutOfRange { .. })), "{rate}: {outcome:?}");
    }
    for rate in [1e-300, sizing::MIN_RATE] {
        let outcome = built(&|| ScalableShape::for_capacity(1_000, rate));
        assert!(matches!(outcome, Err(BuildError::RateTooLow { .. })), "{rate}: {outcome:?}");
    }
    for capacity in [0, sizing::MAX_CAPACITY + 1, u64::MAX] {
        let outcome = built(&|| ScalableShape::for_capacity(capacity, 0.01));
        assert!(matches!(outcome, Err(BuildError::CapacityOutOfRange { .. })), "{capacity}: {outcome:?}");
        let outcome = built(&|| ScalableShape::with_tiers(&[10, capacity], 0.01));
        assert!(matches!(outcome, Err(BuildError::CapacityOutOfRange { .. })), "{capacity}: {outcome:?}");
    }
    for growth in strange.into_iter().chain([0.999, 32_768.1, 1e300]) {
        let outcome = built(&|| good.growth(growth));
        assert!(matches!(outcome, Err(BuildError::GrowthOutOfRange { .. })), "{growth}: {outcome:?}");
    }
    for tightening in strange.into_iter().chain([1.0, 2.0]) {
        let outcome = built(&|| good.tightening(tightening));
        assert!(matches!(outcome, Err(BuildError::TighteningOutOfRange { .. })), "{tightening}: {outcome:?}");
    }
    let next_to_one = 1.0 - f64::EPSILON;
    assert!(matches!(built(&|| good.tightening(next_to_one)), Err(BuildError::RateTooLow { .. })));
    for tiers in [&[][..], &[1; 6], &[1; 1_000]] {
        let outcome = built(&|| ScalableShape::with_tiers(tiers, 0.01));
        assert_eq!(outcome, Err(BuildError::TiersOutOfRange { got: tiers.len(), limit: 5 }));
    }
    assert!(matches!(built(&|| good.within(0)), Err(BuildError::TooLarge { limit: 0, .. })));
    // Only the first layer is checked; later ones are rejected when they are needed.
    assert!(built(&|| good.tightening(1e-300)?.growth(32_768.0)).is_ok());
    let huge = ScalableShape::for_capacity(sizing::MAX_CAPACITY, 1e-12).unwrap();
    assert!(huge.within(1 << 30).is_err());
}

#[test]
fn damage_is_detected_at_every_byte() {
    let mut filter = ScalableBloom::for_capacity(64, 0.01, 1).unwrap();
    (0..400_u64).for_each(|item| assert!(filter.insert(&item).is_ok()));
    assert_eq!(filter.layers().len(), 3);
    let bytes = filter.encode();
    let refused = |damaged: &[u8], damage: &dyn std::fmt::Debug| {
        assert!(ScalableBloom::decode(damaged).is_err(), "{damage:?}");
    };
    let mut corruptor = Corruptor::new(&bytes);
    corruptor.truncations(|damaged, damage| refused(damaged, damage));
    corruptor.extensions(200, |damaged, damage| refused(damaged, damage));
    corruptor.flips(1, 2_000, |damaged, damage| refused(damaged, damage));
    // A layer is a filter, but not a scalable one.
    let layer = filter.layers()[0].encode();
    assert!(matches!(ScalableBloom::decode(&layer), Err(DecodeError::WrongKind { .. })));
}

/// The row of the table in the docs of `ScalableBloom`: bits per item and layers at 1 to 64 times the initial capacity, and
/// on average.
fn row(growth: f64, tightening: f64) -> Vec<(f64, f64)> {
    const FIRST: u64 = 1_000_000;
    const SIZES: u32 = 200;
    let plan = ScalableShape::for_capacity(FIRST, 0.01).unwrap();
    let plan = plan.growth(growth).unwrap().tightening(tightening).unwrap();
    let price = |items: u64| {
        let bits = plan.memory_bytes_for(items).unwrap() as f64 * 8.0 / items as f64;
        (bits, plan.layers_for(items).unwrap() as f64)
    };
    let mut row: Vec<_> = (0..7).map(|doublings| price(FIRST << doublings)).collect();
    let size = |step: u32| (FIRST as f64 * 1024_f64.powf(f64::from(step) / f64::from(SIZES))) as u64;
    let sum = (0..SIZES).map(|step| price(size(step))).fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
    row.push((sum.0 / f64::from(SIZES), sum.1 / f64::from(SIZES)));
    row
}

#[test]
fn the_table_in_the_docs_matches_the_code() {
    let docs = include_str!("../src/scalable/mod.rs");
    let mut rows = 0;
    for line in docs.lines().filter(|line| line.starts_with("/// | ") && line.contains("**")) {
        let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('*')).collect();
        let number = |text: &str| text.trim().parse::<f64>().unwrap();
        let said: Vec<(f64, f64)> = cells[3..11]
            .iter()
            .map(|cell| cell.split_once(',').map(|(bits, layers)| (number(bits), number(layers))).unwrap())
            .collect();
        let found = row(number(cells[1]), number(cells[2]));
        let close = |(said, found): (&(f64, f64), &(f64, f64))| {
            (said.0 - found.0).abs() < 0.2 && (said.1 - found.1).abs() < 0.1
        };
        assert!(said.iter().zip(&found).all(close), "{line} should say {found:.1?}");
        rows += 1;
    }
    assert_eq!(rows, 8);
}
