//! The promises of the cuckoo filter and of its growable twin.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use mayhap::{
    Answers, BuildError, Cuckoo, CuckooShape, DecodeError, GrowableCuckoo, GrowableCuckooShape, HashScheme,
    InsertError, ItemHash, SecretKey,
};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::bad::{AlwaysMayhap, AlwaysNo};
use mayhap_testkit::corrupt::Corruptor;
use mayhap_testkit::rng::Rng;
use mayhap_testkit::suite::{Failure, Operation, RatePlan, Refusals, Script, keeps_its_rate, never_forgets};
use mayhap_testkit::{
    Inserted, Shape, Subject, band_with_model_error, member, member_u64, non_member, non_member_u64,
};
use xxhash_rust::xxh3::xxh3_64;

use self::support::{Tested, operations};

#[global_allocator]
static METER: AllocMeter = AllocMeter;

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
const HEADER_BYTES: usize = 192;

fn plain(capacity: u64, fpr: f64, seed: u64) -> Tested {
    Tested::new(Cuckoo::for_capacity(capacity, fpr, seed).unwrap())
}

/// Shapes of every bucket size and storage, for `capacity` items at 1 %.
fn shapes(capacity: u64) -> Vec<CuckooShape> {
    let sizes = [2, 4, 8].map(|size| CuckooShape::with_bucket_size(size, capacity, 0.01).unwrap());
    let one = CuckooShape::exactly(capacity * 8, 1, 18, capacity).unwrap();
    let wide = CuckooShape::exactly(capacity, 8, 31, capacity).unwrap();
    let sorted = CuckooShape::semi_sorted(capacity, 0.01).unwrap();
    [&sizes[..], &[one, wide, sorted]].concat()
}

#[test]
fn never_forgets_remaining_members() {
    let script = Script::new(operations(), 2_000);
    let report = never_forgets(|seed| plain(2_000, 0.01, seed), &script).unwrap();
    assert_eq!(report.missing(), [Operation::Merge]);
    assert!(report.mayhap_to_removed > 0, "a removed item is a false positive as often as any non-member");
    for shape in shapes(500) {
        let script = Script { refusals: Refusals::Counted, ..Script::new(operations() / 8, 500) };
        never_forgets(|seed| Tested::new(Cuckoo::with_shape(shape, seed).unwrap()), &script)
            .unwrap_or_else(|failure| panic!("{shape}: {failure}"));
    }
}

/// Fingerprints of 4 and 5 bits in few buckets: nearly every item shares both with another, and the table is always full.
#[test]
fn never_forgets_among_collisions_in_a_table_that_rejects() {
    let tiny = [
        CuckooShape::exactly(64, 1, 4, 64).unwrap(),
        CuckooShape::exactly(40, 2, 4, 80).unwrap(),
        CuckooShape::exactly(20, 4, 4, 80).unwrap(),
        CuckooShape::exactly(10, 8, 4, 80).unwrap(),
        CuckooShape::exactly_semi_sorted(20, 5, 80).unwrap(),
    ];
    for shape in tiny {
        let make = |seed| Tested::new(Cuckoo::with_shape(shape, seed).unwrap());
        let script = Script {
            max_copies: 4,
            mayhap_limit: 1.0,
            refusals: Refusals::Counted,
            ..Script::new(operations() / 8, 100)
        };
        let report = never_forgets(make, &script).unwrap_or_else(|failure| panic!("{shape}: {failure}"));
        assert!(report.refused > 100, "{shape}: {} refused", report.refused);
    }
}

#[test]
fn growing_filters_never_forget() {
    let script = Script::new(operations(), 4_000);
    let report =
        never_forgets(|seed| Tested::new(GrowableCuckoo::for_growth(3, 4_000, 0.01, seed).unwrap()), &script)
            .unwrap();
    assert_eq!(report.missing(), [Operation::Merge]);
}

#[test]
fn the_suites_have_teeth() {
    assert!(
        keeps_its_rate(|_| AlwaysNo, &plan(&CuckooShape::for_capacity(CAPACITY, 0.01).unwrap(), CAPACITY))
            .is_err()
    );
    assert!(
        keeps_its_rate(
            |_| AlwaysMayhap,
            &plan(&CuckooShape::for_capacity(CAPACITY, 0.01).unwrap(), CAPACITY)
        )
        .is_err()
    );
    // A filter that forgets on rejection, because it evicts before it has found a free slot.
    struct LosesOne(Cuckoo);
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
    let shape = CuckooShape::exactly(20, 4, 6, 80).unwrap();
    let script = Script { refusals: Refusals::Counted, mayhap_limit: 1.0, ..Script::new(20_000, 100) };
    assert!(never_forgets(|seed| LosesOne(Cuckoo::with_shape(shape, seed).unwrap()), &script).is_err());
}

const CAPACITY: u64 = 10_000;

/// 4 000 false positives expected, whatever the rate; ± 2 % is the stated error of the model.
fn plan(shape: &CuckooShape, items: u64) -> RatePlan<'static> {
    let rate = shape.expected_fpr(CAPACITY);
    let non_members = (4_000.0 / rate) as u64 / SEEDS.len() as u64;
    let promised = band_with_model_error(non_members * SEEDS.len() as u64, rate, 1e-6, 0.02);
    RatePlan { shape: Shape::Url, items, non_members, seeds: &SEEDS, promised }
}

#[test]
fn full_filters_keep_their_rate_and_a_fifth_too_empty_is_detected() {
    let mut shapes: Vec<CuckooShape> =
        [0.1, 0.01, 0.002].map(|fpr| CuckooShape::for_capacity(CAPACITY, fpr).unwrap()).to_vec();
    shapes.push(CuckooShape::with_bucket_size(2, CAPACITY, 0.01).unwrap());
    shapes.push(CuckooShape::with_bucket_size(8, CAPACITY, 0.01).unwrap());
    shapes.push(CuckooShape::semi_sorted(CAPACITY, 0.01).unwrap());
    // The model is exact for short fingerprints too; the usual 2b/2^f is 30 % off there.
    shapes.push(CuckooShape::exactly(2_700, 4, 4, CAPACITY).unwrap());
    for shape in shapes {
        let make = |seed| Tested::new(Cuckoo::with_shape(shape, seed).unwrap());
        let report = keeps_its_rate(make, &plan(&shape, CAPACITY))
            .unwrap_or_else(|failure| panic!("{shape}: {failure}"));
        assert!(report.observed_fpr() <= shape.target_fpr() * 1.05, "{shape}: {}", report.observed_fpr());
        // Too many items do not fit and are rejected, so the variant that must fail is too empty.
        let failure = keeps_its_rate(make, &plan(&shape, CAPACITY * 4 / 5)).unwrap_err();
        assert!(matches!(failure, Failure::RateOff { .. }), "{shape}: {failure}");
    }
}

#[test]
fn semi_sorting_saves_a_bit_at_the_same_rate() {
    let sorted = CuckooShape::exactly_semi_sorted(2_700, 10, CAPACITY).unwrap();
    let packed = CuckooShape::exactly(2_700, 4, 10, CAPACITY).unwrap();
    assert_eq!(sorted.expected_fpr(CAPACITY), packed.expected_fpr(CAPACITY));
    let saved = packed.memory_bytes() - sorted.memory_bytes();
    assert!((saved as i64 * 8 - 4 * 2_700).abs() < 512, "{saved} bytes for a bit in each of 10 800 places");
    // The same items in the same buckets: the same answers, to members and non-members, also after removals.
    let [mut packed, mut sorted] = [packed, sorted].map(|shape| Cuckoo::with_shape(shape, 7).unwrap());
    for i in 0..8_000 {
        assert_eq!(packed.insert(&member_u64(7, i)), sorted.insert(&member_u64(7, i)));
    }
    for i in 0..2_000 {
        assert!(packed.remove(&member_u64(7, i)) && sorted.remove(&member_u64(7, i)));
    }
    for i in 0..200_000 {
        let item = non_member_u64(7, i);
        assert_eq!(packed.may_contain(&item), sorted.may_contain(&item));
    }
    assert!((2_000..8_000).all(|i| sorted.may_contain(&member_u64(7, i))));
}

/// Every capacity up to 5 000, and rates from high to low: no honest item is rejected below capacity.
#[test]
fn capacity_always_fits() {
    for capacity in (1..300).chain((300..5_000).step_by(37)) {
        for (number, fpr) in [0.5, 0.1, 0.01, 1e-4].into_iter().enumerate() {
            let seed = capacity * 31 + number as u64;
            let mut filters = vec![Cuckoo::for_capacity(capacity, fpr, seed).unwrap()];
            if number == 2 {
                let shapes = [
                    CuckooShape::semi_sorted(capacity, fpr),
                    CuckooShape::with_bucket_size(2, capacity, fpr),
                ];
                filters.extend(shapes.map(|shape| Cuckoo::with_shape(shape.unwrap(), seed).unwrap()));
            }
            for mut filter in filters {
                assert!(filter.shape().expected_fpr(capacity) <= fpr);
                for i in 0..capacity {
                    assert!(
                        filter.insert(&member_u64(seed, i)).is_ok(),
                        "{i} of {capacity} at {fpr}: {}",
                        filter.shape()
                    );
                }
            }
        }
    }
}

#[test]
fn a_million_items_fill_95_percent() {
    for fpr in [0.3, 0.01, 0.002, 1e-5] {
        let mut filter = Cuckoo::for_capacity(1_000_000, fpr, 5).unwrap();
        let items: Vec<u64> = (0..1_000_000).map(|i| member_u64(5, i)).collect();
        filter.insert_batch(&items).unwrap();
        assert!(filter.fill() > 0.95, "{fpr}: {}", filter.fill());
        let mut answers = Answers::new();
        filter.may_contain_batch(&items, &mut answers);
        assert_eq!(answers.maybe_count(), items.len());
    }
}

#[test]
fn items_accepted_before_the_first_rejection_stay() {
    for shape in shapes(1_000) {
        let mut filter = Cuckoo::with_shape(shape, 3).unwrap();
        let mut accepted = Vec::new();
        let mut refused = 0;
        for i in 0.. {
            let before = (refused < 20).then(|| filter.encode());
            match filter.insert(&member_u64(3, i)) {
                Ok(_) => accepted.push(i),
                Err(error) => {
                    assert_eq!(
                        error,
                        InsertError::Full { inserted: accepted.len() as u64, capacity: shape.capacity() }
                    );
                    assert!(
                        before.is_none_or(|before| before == filter.encode()),
                        "a rejection changes nothing"
                    );
                    refused += 1;
                    if refused == 20 {
                        break;
                    }
                }
            }
        }
        assert!(accepted.len() as u64 >= shape.capacity(), "{shape}: {}", accepted.len());
        assert!(accepted.iter().all(|&i| filter.may_contain(&member_u64(3, i))));
        // And all of it can be taken out again, to the last one.
        accepted.iter().for_each(|&i| assert!(filter.remove(&member_u64(3, i))));
        assert_eq!(filter.inserted(), 0);
        assert!(filter.encode()[HEADER_BYTES..].iter().all(|&byte| byte == 0), "{shape}");
    }
}

#[test]
fn copies_are_counted_and_there_is_a_limit() {
    for shape in shapes(100) {
        let mut filter = Cuckoo::with_shape(shape, 0).unwrap();
        let limit = 2 * u64::from(shape.bucket_size());
        for copies in 1..=limit {
            assert_eq!(filter.insert("item"), Ok(copies == 1));
            assert_eq!(filter.count("item"), copies);
        }
        let before = filter.encode();
        assert_eq!(filter.insert("item"), Err(InsertError::TooManyCopies { limit }), "{shape}");
        assert_eq!(filter.encode(), before);
        for left in (0..limit).rev() {
            assert!(filter.remove("item"));
            assert_eq!((filter.count("item"), filter.may_contain("item")), (left, left > 0));
        }
        assert!(!filter.remove("item"));
        assert_eq!((filter.inserted(), filter.fill()), (0, 0.0));
    }
}

/// Storms on tables of a few buckets, against an exact multiset of (fingerprint, pair of buckets), which `count` lets us see.
#[test]
fn storms_on_tiny_tables_lose_nothing() {
    for (buckets, slots, bits) in
        [(2, 1, 4), (2, 8, 4), (4, 2, 4), (6, 4, 4), (8, 1, 5), (10, 4, 8), (2, 4, 32)]
    {
        let mut rng = Rng::new(buckets * 100 + u64::from(slots * 10 + bits));
        let mut shapes = vec![CuckooShape::exactly(buckets, slots, bits, 2).unwrap()];
        if slots == 4 && bits > 4 {
            shapes.push(CuckooShape::exactly_semi_sorted(buckets, bits, 2).unwrap());
        }
        for (round, &shape) in (0..20).flat_map(|round| shapes.iter().map(move |shape| (round, shape))) {
            let mut filter = Cuckoo::with_shape(shape, round).unwrap();
            let mut held: BTreeMap<u64, u64> = BTreeMap::new();
            for _ in 0..400 {
                let item = rng.below(40);
                if rng.below(5) < 3 {
                    if filter.insert(&item).is_ok() {
                        *held.entry(item).or_default() += 1;
                    }
                } else if held.get(&item).is_some_and(|&copies| copies > 0) {
                    assert!(filter.remove(&item), "a member can be removed");
                    *held.entry(item).or_default() -= 1;
                }
                assert_eq!(filter.inserted(), held.values().sum::<u64>());
                for (item, &copies) in &held {
                    assert!(filter.count(item) >= copies, "{shape}: {copies} copies of {item}");
                }
            }
        }
    }
}

#[test]
fn removing_a_certain_non_member_changes_nothing() {
    let mut filter = Cuckoo::for_capacity(1_000, 0.01, 3).unwrap();
    (0..1_000).for_each(|i| assert!(filter.insert(&member(i)).is_ok()));
    let before = filter.encode();
    let mut turned_away = 0;
    for item in (0..21_000).map(non_member).filter(|item| !filter.may_contain(item)).collect::<Vec<_>>() {
        assert!(!filter.remove(&item));
        turned_away += 1;
    }
    assert!(turned_away > 20_000, "{turned_away}");
    assert_eq!(filter.encode(), before);
}

/// A client tries to remove 100 000 non-members. With the store in front no item is lost; without it, many are.
#[test]
fn removals_that_the_store_verifies_lose_nothing() {
    let mut store: BTreeSet<u64> = (0..5_000).map(|i| member_u64(3, i)).collect();
    let mut filter = Cuckoo::for_capacity(5_000, 0.01, 3).unwrap();
    store.iter().for_each(|item| assert!(filter.insert(item).is_ok()));
    let mut trusting = filter.try_clone().unwrap();
    let mut asked = 0;
    for i in 0..100_000 {
        let item = if i % 100 == 0 { member_u64(3, i / 100) } else { non_member_u64(3, i) };
        let removed = filter.remove_verified(&item, || {
            asked += 1;
            store.remove(&item)
        });
        assert_eq!(removed, i % 100 == 0);
        trusting.remove(&item);
    }
    assert!((1_000..4_000).contains(&asked), "the store is asked only about possible members: {asked}");
    assert_eq!((store.len(), filter.inserted()), (4_000, 4_000));
    assert!(store.iter().all(|item| filter.may_contain(item)));
    let lost = store.iter().filter(|item| !trusting.may_contain(*item)).count();
    assert!(lost > 100, "the twin that trusts its callers lost {lost}");
}

#[test]
fn hashes_and_items_are_the_same() {
    let mut by_item = Cuckoo::for_capacity(300, 0.01, 5).unwrap();
    let mut by_hash = by_item.try_clone().unwrap();
    let items: Vec<Vec<u8>> = (0..200).map(member).collect();
    let hashes: Vec<ItemHash> = items.iter().map(|item| by_hash.hash(item)).collect();
    assert_eq!(by_item.insert_batch(&items), by_hash.insert_hash_batch(&hashes));
    for (item, &hash) in items[..100].iter().zip(&hashes) {
        assert_eq!(by_item.insert(item), by_hash.insert_hash(hash));
        assert_eq!(by_item.count(item), by_hash.count_hash(hash));
        assert_eq!(by_item.remove(item), by_hash.remove_hash(hash));
        assert_eq!(by_item.remove_verified(item, || false), by_hash.remove_verified_hash(hash, || false));
        assert_eq!(by_item.may_contain(item), by_hash.may_contain_hash(hash));
    }
    assert_eq!(by_item.encode(), by_hash.encode());
    let (mut of_items, mut of_hashes) = (Answers::new(), Answers::new());
    by_item.may_contain_batch(&items, &mut of_items);
    by_hash.may_contain_hash_batch(&hashes, &mut of_hashes);
    assert_eq!((&of_items, of_items.maybe_count()), (&of_hashes, 200));
}

/// The fingerprint and the two buckets of an item by the format. Written from `docs/format.md`, not from the code.
fn place(hash: ItemHash, buckets: u64, fingerprint_bits: u32) -> (u64, [u64; 2]) {
    let (low, high) = (hash.to_u128() as u64, (hash.to_u128() >> 64) as u64);
    let reduce = |x: u64, range: u64| ((u128::from(x) * u128::from(range)) >> 64) as u64;
    let tag = 1 + reduce(high, (1 << fingerprint_bits) - 1);
    let mixed = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let sum = 2 * reduce(mixed, buckets / 2) + 1;
    let first = reduce(low, buckets);
    (tag, [first, (sum + buckets - first) % buckets])
}

fn keyed(number: u128) -> HashScheme {
    let bytes = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_le_bytes();
    HashScheme::keyed(SecretKey::new(bytes))
}

/// 125 items that share one pair of buckets under seed 0, found by search as anyone with the seed can.
fn items_of_one_pair(shape: &CuckooShape) -> Vec<u64> {
    let scheme = HashScheme::fast(0);
    let pair = |item: u64| {
        let (_, mut pair) = place(scheme.hash(&item), shape.buckets(), shape.fingerprint_bits());
        pair.sort_unstable();
        pair
    };
    let wanted = pair(0);
    (0..).filter(|&item| pair(item) == wanted).take(125).collect()
}

#[test]
fn forged_items_stop_a_known_seed_and_nothing_else() {
    const HONEST: u64 = 2_000;
    let shape = CuckooShape::with_bucket_size(4, HONEST, 0.03).unwrap();
    let chosen = items_of_one_pair(&shape);
    // The variant that breaks: eight are inserted; the ninth and all others find no room in a nearly empty filter.
    let mut known = Cuckoo::with_shape(shape, 0).unwrap();
    let outcomes: Vec<bool> = chosen.iter().map(|item| known.insert(item).is_ok()).collect();
    assert_eq!(outcomes.iter().position(|ok| !ok), Some(8));
    assert!(outcomes[8..].iter().all(|ok| !ok) && known.fill() < 0.01);
    assert!(chosen[..8].iter().all(|item| known.may_contain(item)), "a rejection loses nothing");
    // With a secret key the same items are like any others, and this many honest ones fit in addition.
    for number in 0..20 {
        let mut filter = Cuckoo::with_shape(shape, keyed(number)).unwrap();
        assert!(chosen.iter().all(|item| filter.insert(item).is_ok()), "key {number}");
        let mut honest = 0;
        while filter.insert(&non_member_u64(1, honest)).is_ok() {
            honest += 1;
        }
        assert!(filter.fill() >= 0.90 && honest + 125 >= HONEST, "key {number}: {}", filter.fill());
    }
}

/// Items whose two buckets are both in the first 64th: they fill that part and are rejected at 2 % of the capacity.
#[test]
fn forged_items_for_a_part_of_the_table_are_rejected_early() {
    let shape = CuckooShape::with_bucket_size(4, 200_000, 0.002).unwrap();
    let (part, scheme) = (shape.buckets() / 64, HashScheme::fast(0));
    let in_part = |item: &u64| {
        place(scheme.hash(item), shape.buckets(), shape.fingerprint_bits())
            .1
            .iter()
            .all(|&bucket| bucket < part)
    };
    let chosen: Vec<u64> = (0..).filter(in_part).take(4 * part as usize + 1).collect();
    let mut known = Cuckoo::with_shape(shape, 0).unwrap();
    assert!(matches!(known.insert_batch(&chosen), Err(InsertError::Full { .. })));
    assert!(known.fill() < 0.02);
    assert!(chosen[..known.inserted() as usize].iter().all(|item| known.may_contain(item)));
    let mut unknown = Cuckoo::with_shape(shape, keyed(7)).unwrap();
    unknown.insert_batch(&chosen).unwrap();
    (0..200_000 - chosen.len() as u64).for_each(|i| assert!(unknown.insert(&non_member_u64(7, i)).is_ok()));
}

/// In a table of a few buckets nine honest items may want the same two, once in some ten thousand tables: it grows then.
#[test]
fn small_growable_filters_take_every_honest_item() {
    for (initial, rate) in [(1, 0.9), (8, 0.5), (8, 0.01), (12, 0.01)] {
        let shape = GrowableCuckooShape::for_growth(initial, 1_000, rate).unwrap();
        for seed in 0..60_000_u64 {
            let mut filter = GrowableCuckoo::with_shape(shape, seed).unwrap();
            (0..45_u64).for_each(|item| assert!(filter.insert(&item).is_ok(), "seed {seed}, item {item}"));
        }
    }
}

/// One copy too many of an item is rejected before the filter grows for it.
#[test]
fn too_many_copies_do_not_make_a_growable_filter_grow() {
    let mut filter = GrowableCuckoo::for_growth(8, 1_000, 0.01, 0).unwrap();
    let others = filter.capacity_now() - 8;
    (0..8).for_each(|_| assert!(filter.insert("again").is_ok()));
    (0..others).for_each(|item| assert!(filter.insert(&item).is_ok()));
    let before = filter.encode();
    assert_eq!(filter.insert("again"), Err(InsertError::TooManyCopies { limit: 8 }));
    assert_eq!(filter.insert_batch(&["again"]), Err(InsertError::TooManyCopies { limit: 8 }));
    assert!(filter.encode() == before);
}

/// A flood of copies does not make a growable filter grow: it rejects them, and stays as large as its items need.
#[test]
fn forged_items_do_not_blow_up_a_growable_filter() {
    let mut filter = GrowableCuckoo::for_growth(2_000, 2_000 << 8, 0.01, 0).unwrap();
    let (buckets, tag_bits) = (filter.shape().buckets(0), filter.shape().fingerprint_bits(8));
    let scheme = HashScheme::fast(0);
    let wanted = place(scheme.hash(&0_u64), buckets, tag_bits);
    let chosen = (0_u64..).filter(|item| place(scheme.hash(item), buckets, tag_bits) == wanted).take(40);
    let refused = chosen.filter(|item| filter.insert(item).is_err()).count();
    assert_eq!((refused, filter.doublings()), (32, 0));
    assert!((0..1_900).all(|i| filter.insert(&member_u64(1, i)).is_ok()));
}

/// 3 000 false positives expected at the largest size; at each smaller size, as many as the model predicts.
#[test]
fn growing_filters_keep_their_rate_at_every_size() {
    let shape = GrowableCuckooShape::for_growth(400, 400 << 5, 0.02).unwrap();
    let last = shape.max_doublings();
    assert!(last >= 4, "{last} doublings are too few to judge");
    let mut wrong = vec![0; last as usize + 1];
    let asked = 100_000_u64;
    for seed in SEEDS {
        let mut filter = GrowableCuckoo::with_shape(shape, seed).unwrap();
        let mut items = 0;
        for doublings in 0..=last {
            while items < shape.capacity_after(doublings) {
                filter.insert(&member_u64(seed, items)).unwrap();
                items += 1;
            }
            assert_eq!((filter.doublings(), filter.inserted()), (doublings, items));
            assert_eq!(filter.memory_bytes(), shape.memory_bytes(doublings));
            assert!((0..items).all(|i| filter.may_contain(&member_u64(seed, i))), "{doublings} doublings");
            wrong[doublings as usize] +=
                (0..asked).filter(|&i| filter.may_contain(&non_member_u64(seed, i))).count() as u64;
            filter = GrowableCuckoo::decode(&filter.encode()).unwrap();
        }
        assert_eq!(
            filter.insert(&non_member_u64(seed, 0)),
            Err(InsertError::Full { inserted: shape.capacity(), capacity: shape.capacity() }),
            "past the largest size the promise would not hold"
        );
    }
    for doublings in 0..=last {
        let rate = shape.expected_fpr(shape.capacity_after(doublings));
        assert!(rate <= 0.02);
        let (trials, wrong) = (asked * SEEDS.len() as u64, wrong[doublings as usize]);
        // The first sizes have too few false positives to be judged from both sides.
        if rate * trials as f64 > 1_000.0 {
            let band = band_with_model_error(trials, rate, 1e-6, 0.02);
            assert!(band.contains(&wrong), "{doublings} doublings: {wrong} outside {band:?}");
            // Teeth: a filter whose fingerprints lost a bit and gained no bucket would be wrong twice as often.
            assert!(!band.contains(&(2 * wrong)) && !band.contains(&(wrong / 2)));
        } else {
            assert!((wrong as f64) < 1.5 * rate * trials as f64 + 40.0, "{doublings} doublings: {wrong}");
        }
    }
}

#[test]
fn growing_filters_fill_up_before_they_grow_from_any_size() {
    for (initial, largest, fpr) in
        [(1, 1, 0.1), (1, 1_000_000, 0.01), (3, 5_000, 0.5), (1_000, 3_000, 1e-4), (777, 400_000, 0.01)]
    {
        let mut filter = GrowableCuckoo::for_growth(initial, largest, fpr, 9).unwrap();
        let items: Vec<u64> = (0..largest).map(|i| member_u64(9, i)).collect();
        let (one_by_one, batches) = items.split_at(items.len() / 2);
        for item in one_by_one {
            filter.insert(item).unwrap();
        }
        for batch in batches.chunks(1_000) {
            filter.insert_batch(batch).unwrap();
        }
        assert_eq!(filter.inserted(), largest);
        assert_eq!(filter.doublings(), filter.shape().max_doublings());
        assert!(items.iter().all(|item| filter.may_contain(item)));
        assert!(filter.expected_fpr() <= fpr);
        if largest > 100_000 {
            assert!(filter.fill() > 0.94, "{initial} to {largest}: {}", filter.fill());
        }
        // Everything is removed again, copy by copy.
        assert!(items.iter().all(|item| filter.remove(item)));
        assert_eq!(filter.inserted(), 0);
        assert!(filter.encode()[HEADER_BYTES..].iter().all(|&byte| byte == 0));
    }
}

/// A filter that never doubled but has the last size from the start, and one that grew to it, hold the same fingerprints.
#[test]
fn a_grown_filter_answers_like_one_that_began_large() {
    let shape = GrowableCuckooShape::for_growth(100, 6_400, 0.01).unwrap();
    let mut grown = GrowableCuckoo::with_shape(shape, 4).unwrap();
    let mut counted = BTreeMap::new();
    for i in 0..6_000 {
        let item = member_u64(4, i * i % 5_000);
        if grown.insert(&item).is_ok() {
            *counted.entry(item).or_insert(0_u64) += 1;
        }
    }
    assert!(counted.iter().all(|(item, &copies)| grown.count(item) >= copies));
    let removed: Vec<u64> = counted.keys().copied().step_by(2).collect();
    for item in &removed {
        (0..counted.remove(item).unwrap()).for_each(|_| assert!(grown.remove(item)));
    }
    assert_eq!(grown.inserted(), counted.values().sum::<u64>());
    assert!(counted.iter().all(|(item, &copies)| grown.count(item) >= copies));
    let left = removed.iter().filter(|item| grown.may_contain(*item)).count();
    assert!(left < removed.len() / 50, "{left} of {} removed items answer maybe", removed.len());
    grown.clear();
    assert_eq!((grown.inserted(), grown.doublings()), (0, shape.max_doublings()), "its size does not change");
    assert!(counted.keys().all(|item| !grown.may_contain(item)));
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

/// Uses a filter with possibly invalid contents in every way: it must return, and count no more items than it has slots.
fn exercise(filter: &mut Cuckoo) {
    let items: Vec<u64> = (0..50).collect();
    let _ = filter.insert_batch(&items);
    for item in &items {
        let _ = (
            filter.insert(item),
            filter.count(item),
            filter.remove(item),
            filter.remove_verified(item, || true),
        );
    }
    filter.may_contain_batch(&items, &mut Answers::new());
    assert!((0.0..=1.0).contains(&filter.expected_fpr()) && filter.inserted() <= filter.shape().slots());
    assert!(Cuckoo::decode(&filter.encode()).is_ok());
    filter.clear();
}

fn exercise_growable(filter: &mut GrowableCuckoo) {
    let items: Vec<u64> = (0..50).collect();
    let _ = filter.insert_batch(&items);
    for item in &items {
        let _ = (
            filter.insert(item),
            filter.count(item),
            filter.remove(item),
            filter.remove_verified(item, || true),
        );
    }
    filter.may_contain_batch(&items, &mut Answers::new());
    assert!((0.0..=1.0).contains(&filter.expected_fpr()));
    assert!(GrowableCuckoo::decode(&filter.encode()).is_ok());
    filter.clear();
}

/// Every header field after the magic number, and its length.
fn fields() -> Vec<(usize, usize)> {
    (8..16).step_by(2).map(|at| (at, 2)).chain((16..184).step_by(8).map(|at| (at, 8))).collect()
}

#[test]
fn damaged_and_forged_bytes_are_harmless() {
    let shapes = [
        CuckooShape::exactly(10, 4, 10, 20).unwrap(),
        CuckooShape::exactly(10, 8, 31, 20).unwrap(),
        CuckooShape::exactly_semi_sorted(10, 9, 20).unwrap(),
    ];
    for shape in shapes {
        let mut filter = Cuckoo::with_shape(shape, 1).unwrap();
        (0..20_u64).for_each(|i| assert!(filter.insert(&i).is_ok()));
        let bytes = filter.encode();
        let mut corruptor = Corruptor::new(&bytes);
        corruptor.truncations(|bytes, damage| assert!(Cuckoo::decode(bytes).is_err(), "{damage}"));
        corruptor.extensions(64, |bytes, damage| assert!(Cuckoo::decode(bytes).is_err(), "{damage}"));
        corruptor
            .bit_flips(0..bytes.len(), |bytes, damage| assert!(Cuckoo::decode(bytes).is_err(), "{damage}"));

        let mut corruptor = Corruptor::new(&bytes).sealed_by(seal);
        // Four of 9 bits take 32 when semi-sorted; 31 bits take the room of 32.
        let bucket_bits = match (shape.is_semi_sorted(), shape.fingerprint_bits()) {
            (true, bits) => 4 * bits - 4,
            (false, 31) => 32 * shape.bucket_size(),
            (false, bits) => bits * shape.bucket_size(),
        };
        let end = HEADER_BYTES + (shape.buckets() as usize * bucket_bits as usize).div_ceil(8);
        corruptor.bit_flips(end..bytes.len(), |bytes, damage| {
            assert!(matches!(Cuckoo::decode(bytes), Err(DecodeError::StrayBit { .. })), "{damage}");
        });
        corruptor.extremes(&fields(), |bytes, damage| {
            let (decoded, measured) = AllocMeter::measure(|| Cuckoo::decode(bytes));
            assert!(measured.largest_request <= bytes.len() as u64, "{damage}");
            if let Ok(mut filter) = decoded {
                exercise(&mut filter);
            }
        });
        corruptor.flips(5, 5_000, |bytes, _| {
            if let Ok(mut filter) = Cuckoo::decode(bytes) {
                exercise(&mut filter);
            }
        });
        // A payload of all ones, or of random bits: full of fingerprints that no item has.
        let mut rng = Rng::new(7);
        for fill in 0..200 {
            let mut forged = bytes.clone();
            forged[HEADER_BYTES..end - 1]
                .iter_mut()
                .for_each(|byte| *byte = if fill == 0 { 0xff } else { rng.next_u64() as u8 });
            seal(&mut forged);
            exercise(&mut Cuckoo::decode(&forged).unwrap());
        }
    }
}

#[test]
fn damaged_and_forged_growable_bytes_are_harmless() {
    let mut filter = GrowableCuckoo::for_growth(5, 400, 0.01, 1).unwrap();
    (0..20_u64).for_each(|i| assert!(filter.insert(&i).is_ok()));
    assert!(filter.doublings() > 0 && filter.doublings() < filter.shape().max_doublings());
    let bytes = filter.encode();
    let mut corruptor = Corruptor::new(&bytes);
    corruptor.truncations(|bytes, damage| assert!(GrowableCuckoo::decode(bytes).is_err(), "{damage}"));
    corruptor.bit_flips(0..bytes.len(), |bytes, damage| {
        assert!(GrowableCuckoo::decode(bytes).is_err(), "{damage}");
    });
    let mut corruptor = Corruptor::new(&bytes).sealed_by(seal);
    corruptor.extremes(&fields(), |bytes, damage| {
        let (decoded, measured) = AllocMeter::measure(|| GrowableCuckoo::decode(bytes));
        assert!(measured.largest_request <= bytes.len() as u64, "{damage}");
        if let Ok(mut filter) = decoded {
            exercise_growable(&mut filter);
        }
    });
    let mut harmless = 0;
    corruptor.flips(5, 5_000, |bytes, _| {
        if let Ok(mut filter) = GrowableCuckoo::decode(bytes) {
            harmless += 1;
            exercise_growable(&mut filter);
        }
    });
    assert!(harmless > 100, "the seal reaches the fields");
    assert!(matches!(Cuckoo::decode(&bytes), Err(DecodeError::WrongKind { .. })));
}

#[test]
fn forged_fields_are_named() {
    let mut filter = Cuckoo::for_capacity(90, 0.01, 7).unwrap();
    filter.insert("a").unwrap();
    let bytes = filter.encode();
    let forge = |at: usize, value: u64| {
        let mut forged = bytes.clone();
        forged[at..at + 8].copy_from_slice(&value.to_le_bytes());
        seal(&mut forged);
        Cuckoo::decode(&forged).unwrap_err()
    };
    let buckets = filter.shape().buckets();
    assert!(matches!(forge(48, 0), DecodeError::Unbuildable(BuildError::CapacityOutOfRange { .. })));
    assert!(matches!(forge(48, 1 << 40), DecodeError::Unbuildable(BuildError::CapacityOutOfRange { .. })));
    assert_eq!(forge(56, 1 << 40), DecodeError::BadField { field: "inserted", got: 1 << 40 });
    assert!(matches!(
        forge(64, f64::NAN.to_bits()),
        DecodeError::Unbuildable(BuildError::RateOutOfRange { .. })
    ));
    assert!(matches!(forge(72, buckets + 1), DecodeError::Unbuildable(BuildError::BucketsOutOfRange { .. })));
    assert!(matches!(forge(72, buckets * 1024), DecodeError::BadField { field: "payload length", .. }));
    assert!(matches!(forge(80, 3), DecodeError::Unbuildable(BuildError::BucketOutOfRange { got: 3 })));
    assert!(matches!(
        forge(88, 3),
        DecodeError::Unbuildable(BuildError::FingerprintOutOfRange { got: 3, .. })
    ));
    assert!(matches!(
        forge(88, 33),
        DecodeError::Unbuildable(BuildError::FingerprintOutOfRange { got: 33, .. })
    ));
    assert_eq!(forge(88, 1 << 40), DecodeError::BadField { field: "fingerprint bits", got: 1 << 40 });
    assert_eq!(forge(96, 1), DecodeError::BadField { field: "unused parameter", got: 1 });
}

#[test]
fn bad_parameters_are_errors_before_anything_is_allocated() {
    let refused = |capacity, fpr: f64| {
        let (built, measured) = AllocMeter::measure(|| Cuckoo::for_capacity(capacity, fpr, 0));
        assert_eq!(measured.total_bytes, 0, "{capacity} {fpr}");
        assert!(GrowableCuckoo::for_growth(1, capacity, fpr, 0).is_err());
        built.map(|_| ()).unwrap_err()
    };
    for fpr in [0.0, -0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(refused(1_000, fpr), BuildError::RateOutOfRange { .. }), "{fpr}");
    }
    for fpr in [1e-300, 1e-15, 9e-10] {
        assert!(matches!(refused(1_000, fpr), BuildError::RateTooLow { .. }), "{fpr}");
    }
    for capacity in [0, u64::MAX, (1 << 42) + 1] {
        assert!(matches!(refused(capacity, 0.01), BuildError::CapacityOutOfRange { .. }), "{capacity}");
    }
    let exactly =
        |buckets, size, bits, capacity| CuckooShape::exactly(buckets, size, bits, capacity).unwrap_err();
    for buckets in [0, 1, 7, u64::MAX, u64::MAX - 1] {
        assert!(matches!(exactly(buckets, 4, 8, 1), BuildError::BucketsOutOfRange { .. }), "{buckets}");
    }
    for size in [0, 3, 5, 16] {
        assert!(matches!(exactly(2, size, 8, 1), BuildError::BucketOutOfRange { .. }), "{size}");
    }
    for bits in [0, 3, 33, u32::MAX] {
        assert!(matches!(exactly(2, 4, bits, 1), BuildError::FingerprintOutOfRange { .. }), "{bits}");
    }
    assert!(matches!(exactly(2, 4, 8, 9), BuildError::CapacityOutOfRange { got: 9, limit: 8 }));
    assert!(CuckooShape::exactly_semi_sorted(2, 4, 1).is_err());
    let grows = |from, to, fpr| GrowableCuckooShape::for_growth(from, to, fpr);
    assert!(matches!(grows(10, 9, 0.01), Err(BuildError::CapacityOutOfRange { got: 10, limit: 9 })));
    assert!(matches!(grows(0, 9, 0.01), Err(BuildError::CapacityOutOfRange { .. })));
    assert!(grows(1, 1 << 40, 0.01).is_err(), "forty doublings take more bits than there are");
}

#[test]
fn a_shape_has_its_price_before_it_is_built() {
    for (fpr, bits) in [(0.1, 7.4), (0.01, 10.6), (0.001, 13.7), (1e-6, 24.3)] {
        let shape = CuckooShape::for_capacity(1_000_000, fpr).unwrap();
        assert!(shape.bits_per_item() < bits, "{fpr}: {} bits, {shape}", shape.bits_per_item());
        assert!(shape.expected_fpr(1_000_000) <= fpr);
        let filter = Cuckoo::with_shape(shape, HashScheme::keyed_random().unwrap()).unwrap();
        assert_eq!(filter.memory_bytes(), shape.memory_bytes());
        assert_eq!(shape.within(shape.memory_bytes()), Ok(shape));
        let error = shape.within(shape.memory_bytes() - 1).unwrap_err();
        assert_eq!(
            error,
            BuildError::TooLarge { bytes: shape.memory_bytes(), limit: shape.memory_bytes() - 1 }
        );
    }
}
