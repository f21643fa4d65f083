//! The promises of the dual filter.

use std::collections::HashSet;

use mayhap::{
    Answers, Bloom, BloomShape, BuildError, DecodeError, DualAnswer, DualBloom, DualShape, HashScheme,
    InsertError, MergeError,
};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::corrupt::Corruptor;
use mayhap_testkit::rng::Rng;
use mayhap_testkit::suite::{Failure, Operation, RatePlan, Script, keeps_its_rate, never_forgets};
use mayhap_testkit::{
    Inserted, Shape, Subject, band_with_model_error, member, member_u64, non_member, non_member_u64,
};
use xxhash_rust::xxh3::xxh3_64;

#[global_allocator]
static METER: AllocMeter = AllocMeter;

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
const RATES: [f64; 3] = [0.1, 0.01, 0.001];
const HEADER_BYTES: usize = 192;

/// `MAYHAP_OPERATIONS` sets a longer run.
fn operations() -> u64 {
    std::env::var("MAYHAP_OPERATIONS").map_or(200_000, |number| number.parse().expect("a number"))
}

/// The filter for the suites; without removals it has the usual guarantees.
struct Dual<const REMOVES: bool>(DualBloom);

impl<const REMOVES: bool> Subject for Dual<REMOVES> {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        self.0.insert(item).into()
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn remove(&mut self, item: &[u8]) -> Option<bool> {
        REMOVES.then(|| self.0.remove(item))
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        Some(DualBloom::decode(&self.0.encode()).map(Self).map_err(|error| error.to_string()))
    }

    fn merge(&mut self, other: &Self) -> Option<Result<(), String>> {
        (!REMOVES).then(|| self.0.union(&other.0).map_err(|error| error.to_string()))
    }

    /// Every item of the batch is looked up before and after it: a batch returns only the number of changes.
    fn insert_batch(&mut self, items: &[&[u8]]) -> Vec<Inserted> {
        let mut before = HashSet::new();
        let expected =
            items.iter().map(|item| !self.0.may_contain(item) && before.insert(*item)).collect::<Vec<bool>>();
        // A new item may meet its bits set by those before it in the batch.
        let changed = self.0.insert_batch(items).unwrap();
        let most = expected.iter().filter(|new| **new).count() as u64;
        assert!(changed <= most && changed + 2 >= most, "{changed} of {most}");
        expected.into_iter().map(Inserted::from).collect()
    }

    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        let mut answers = Answers::new();
        self.0.may_contain_batch(items, &mut answers);
        answers.iter().collect()
    }
}

#[test]
fn without_removals_a_no_is_certain() {
    let make = |seed| Dual::<false>(DualBloom::for_capacity(2_000, 100, 0.01, seed).unwrap());
    let report = never_forgets(make, &Script::new(operations(), 2_000)).unwrap();
    assert_eq!(report.missing(), [Operation::LookupRemoved, Operation::Remove]);
}

/// At a rate too low for any run, nothing is hidden: only the chain of generations is tested, and it forgets nothing.
#[test]
fn removing_and_reinserting_forget_nothing_at_a_tiny_rate() {
    let operations = operations();
    let shape = DualShape::for_rates(operations, operations / 8, 1e-6, 1e-14).unwrap();
    let make = |seed| Dual::<true>(DualBloom::with_shape(shape, seed).unwrap());
    // A set has no copies; and every item must stay below its generations.
    let capacity = (operations / 100).max(2_000);
    let script = Script { max_copies: 1, ..Script::new(operations, capacity) };
    let report = never_forgets(make, &script).unwrap();
    assert_eq!(report.missing(), [Operation::InsertAgain, Operation::Merge]);
    assert!(report.times(Operation::Remove) > operations / 20);
}

const CAPACITY: u64 = 10_000;

/// 4 000 false positives expected, whatever the rate; ± 2 % is the stated error of the model.
fn plan(fpr: f64, items: u64) -> RatePlan<'static> {
    let non_members = (4_000.0 / fpr) as u64 / SEEDS.len() as u64;
    let rate = DualShape::for_capacity(CAPACITY, 1_000, fpr).unwrap().expected_fpr(CAPACITY, 0);
    let promised = band_with_model_error(non_members * SEEDS.len() as u64, rate, 1e-6, 0.02);
    RatePlan { shape: Shape::Url, items, non_members, seeds: &SEEDS, promised }
}

#[test]
fn full_filters_keep_their_rate_and_a_tenth_too_full_is_detected() {
    for fpr in RATES {
        let make = |seed| Dual::<true>(DualBloom::for_capacity(CAPACITY, 1_000, fpr, seed).unwrap());
        let report = keeps_its_rate(make, &plan(fpr, CAPACITY)).unwrap();
        assert!(report.observed_fpr() <= fpr * 1.05, "{fpr}: {}", report.observed_fpr());
        let failure = keeps_its_rate(make, &plan(fpr, CAPACITY * 11 / 10)).unwrap_err();
        assert!(matches!(failure, Failure::RateOff { .. }), "{fpr}: {failure}");
    }
}

/// Members in the order of their numbers: the first ones will be removed, the others stay.
struct Crowd {
    removals: u64,
    staying: u64,
    non_members: u64,
}

impl Crowd {
    /// Enough for 2 000 hidden items and 4 000 false positives at this rate.
    fn at(rate: f64, removals: u64) -> Self {
        let per_seed = |wrong: f64| (wrong / rate) as u64 / SEEDS.len() as u64;
        Self { removals, staying: per_seed(2_000.0), non_members: per_seed(4_000.0) }
    }

    fn shape(&self, rate: f64) -> DualShape {
        DualShape::for_capacity(self.removals + self.staying, self.removals, rate).unwrap()
    }

    /// Returns the hidden items and the false positives, over all seeds, after `removals` removals.
    fn wrong_answers(&self, rate: f64, removals: u64) -> (u64, u64) {
        let (mut hidden, mut mayhap) = (0, 0);
        for seed in SEEDS {
            let mut filter = DualBloom::with_shape(self.shape(rate), seed).unwrap();
            let items: Vec<u64> = (0..removals + self.staying).map(|i| member_u64(seed, i)).collect();
            filter.insert_batch(&items).unwrap();
            let (leaving, staying) = items.split_at(removals as usize);
            leaving.iter().for_each(|item| {
                filter.remove(item);
            });
            let filter = DualBloom::decode(&filter.encode()).unwrap();
            assert!(items.iter().all(|item| filter.lookup(item) != DualAnswer::Never));
            hidden += staying.iter().filter(|item| !filter.may_contain(*item)).count() as u64;
            mayhap += (0..self.non_members).filter(|&i| filter.may_contain(&non_member_u64(seed, i))).count()
                as u64;
        }
        (hidden, mayhap)
    }
}

#[test]
fn hidden_items_and_non_members_are_as_many_as_the_model_says() {
    // Few and many removals. With most items removed, two filters with the same false positives would give half as many in total, and neither rate would
    // match the model.
    for (rate, removals) in [(0.1, 10_000), (0.1, 100_000), (0.01, 10_000), (0.01, 200_000), (0.001, 10_000)]
    {
        let crowd = Crowd::at(rate, removals);
        let (shape, seeds) = (crowd.shape(rate), SEEDS.len() as u64);
        let band = |asked, rate| band_with_model_error(asked * seeds, rate, 1e-6, 0.02);
        let inserted = crowd.removals + crowd.staying;
        let hiding = band(crowd.staying, shape.expected_false_no(inserted, crowd.removals));
        let answering = band(crowd.non_members, shape.expected_fpr(inserted, crowd.removals));

        let (hidden, mayhap) = crowd.wrong_answers(rate, crowd.removals);
        assert!(hiding.contains(&hidden), "{rate}: {hidden} hidden, promised were {hiding:?}");
        assert!(answering.contains(&mayhap), "{rate}: {mayhap} false positives, expected {answering:?}");
        assert!(hidden as f64 <= (crowd.staying * seeds) as f64 * shape.target_false_no() * 1.05);

        let (hidden, _) = crowd.wrong_answers(rate, crowd.removals * 11 / 10);
        assert!(
            !hiding.contains(&hidden),
            "{rate}: a tenth too many removals must be detected, {hidden} hidden"
        );
    }
}

#[test]
fn the_filter_knows_its_rates() {
    let crowd = Crowd::at(0.01, 10_000);
    let mut filter = DualBloom::with_shape(crowd.shape(0.01), 3).unwrap();
    let inserted = crowd.removals + crowd.staying;
    (0..inserted).for_each(|i| {
        filter.insert(&member_u64(3, i)).unwrap();
    });
    assert_eq!((filter.expected_false_no(), filter.removed()), (0.0, 0));
    (0..crowd.removals).for_each(|i| {
        filter.remove(&member_u64(3, i));
    });
    let near = |rate: f64, model: f64| (rate / model - 1.0).abs() < 0.02;
    let shape = *filter.shape();
    assert!(near(filter.expected_fpr(), shape.expected_fpr(inserted, crowd.removals)));
    assert!(near(filter.expected_false_no(), shape.expected_false_no(inserted, crowd.removals)));
    assert!(filter.inserted() <= inserted && near(filter.inserted() as f64, inserted as f64));
    assert!(filter.removed() <= crowd.removals && near(filter.removed() as f64, crowd.removals as f64));
}

/// The most expensive order: all removals first, so that every later insertion may have to avoid them.
#[test]
fn the_rate_holds_whatever_the_order() {
    for rate in RATES {
        let (removals, later, non_members) = (2_000, 8_000, (4_000.0 / rate) as u64 / SEEDS.len() as u64);
        let mut mayhap = 0;
        for seed in SEEDS {
            let mut filter = DualBloom::for_capacity(removals + later, removals, rate, seed).unwrap();
            for i in 0..removals {
                filter.insert(&member_u64(seed, i)).unwrap();
                filter.remove(&member_u64(seed, i));
            }
            for i in removals..removals + later {
                filter.insert(&member_u64(seed, i)).unwrap();
            }
            assert!(
                (removals..removals + later).all(|i| filter.may_contain(&member_u64(seed, i))),
                "an item inserted after the last removal is never hidden"
            );
            mayhap +=
                (0..non_members).filter(|&i| filter.may_contain(&non_member_u64(seed, i))).count() as u64;
        }
        let trials = non_members * SEEDS.len() as u64;
        assert!(
            mayhap <= *band_with_model_error(trials, rate, 1e-6, 0.02).end(),
            "{rate}: {mayhap} of {trials}"
        );
    }
}

/// The interface for the cycles below, so that faulty filters can be tested too.
trait Removes {
    fn insert(&mut self, item: &[u8]);
    fn remove(&mut self, item: &[u8]);
    fn lookup(&self, item: &[u8]) -> DualAnswer;
}

impl Removes for DualBloom {
    fn insert(&mut self, item: &[u8]) {
        Self::insert(self, item).unwrap();
    }

    fn remove(&mut self, item: &[u8]) {
        Self::remove(self, item);
    }

    fn lookup(&self, item: &[u8]) -> DualAnswer {
        Self::lookup(self, item)
    }
}

/// Two filters without generations: an item that was removed once stays removed.
struct WithoutGenerations {
    added: Bloom,
    removed: Bloom,
}

impl Removes for WithoutGenerations {
    fn insert(&mut self, item: &[u8]) {
        self.added.insert(item);
    }

    fn remove(&mut self, item: &[u8]) {
        self.removed.insert(item);
    }

    fn lookup(&self, item: &[u8]) -> DualAnswer {
        match (self.added.may_contain(item), self.removed.may_contain(item)) {
            (false, _) => DualAnswer::Never,
            (true, true) => DualAnswer::Removed,
            (true, false) => DualAnswer::Present,
        }
    }
}

/// Forgets an item completely when it is removed, and answers `Never` for it.
struct Forgets {
    filter: DualBloom,
    forgotten: HashSet<Vec<u8>>,
}

impl Removes for Forgets {
    fn insert(&mut self, item: &[u8]) {
        self.forgotten.remove(item);
        Removes::insert(&mut self.filter, item);
    }

    fn remove(&mut self, item: &[u8]) {
        self.forgotten.insert(item.to_vec());
        Removes::remove(&mut self.filter, item);
    }

    fn lookup(&self, item: &[u8]) -> DualAnswer {
        if self.forgotten.contains(item) { DualAnswer::Never } else { self.filter.lookup(item) }
    }
}

/// Inserts and removes items at random, many times, and compares with an exact set. Returns how many lookups of members found them hidden, and the number
/// of these lookups.
fn cycles(filter: &mut impl Removes, operations: u64, seed: u64) -> Result<(u64, u64), String> {
    let pool = (operations / 100).max(500);
    let mut rng = Rng::new(seed);
    let (mut present, mut ever) = (HashSet::new(), HashSet::new());
    let (mut hidden, mut asked) = (0, 0);
    for operation in 0..operations {
        let number = rng.below(pool);
        let item = member(number);
        match rng.below(4) {
            0 => {
                filter.insert(&item);
                present.insert(number);
                ever.insert(number);
                if filter.lookup(&item) != DualAnswer::Present {
                    return Err(format!(
                        "operation {operation}: item {number} was just inserted and is not present"
                    ));
                }
            }
            1 => {
                filter.remove(&item);
                present.remove(&number);
            }
            _ if present.contains(&number) => {
                asked += 1;
                match filter.lookup(&item) {
                    DualAnswer::Present => {}
                    DualAnswer::Removed => hidden += 1,
                    DualAnswer::Never => {
                        return Err(format!("operation {operation}: never for the member {number}"));
                    }
                }
            }
            _ => {
                let answer = filter.lookup(&item);
                if answer == DualAnswer::Never && ever.contains(&number) {
                    return Err(format!("operation {operation}: never for the former member {number}"));
                }
            }
        }
    }
    Ok((hidden, asked))
}

#[test]
fn items_come_and_go_as_often_as_they_like() {
    let operations = operations() / 4;
    for seed in SEEDS {
        let mut filter = DualBloom::for_capacity(operations / 6, operations / 6, 0.01, seed).unwrap();
        let (hidden, asked) = cycles(&mut filter, operations, seed).unwrap();
        assert!(asked > operations / 8);
        assert!(hidden as f64 <= asked as f64 * filter.target_false_no(), "{hidden} of {asked} hidden");
        assert!(filter.removed() > operations / 10, "{} removals", filter.removed());
    }
}

#[test]
fn the_cycles_have_teeth() {
    let bloom = || Bloom::for_capacity(10_000, 0.01, 1).unwrap();
    let failure =
        cycles(&mut WithoutGenerations { added: bloom(), removed: bloom() }, 50_000, 1).unwrap_err();
    assert!(failure.contains("was just inserted"), "{failure}");
    let filter = DualBloom::for_capacity(10_000, 10_000, 0.01, 1).unwrap();
    let failure = cycles(&mut Forgets { filter, forgotten: HashSet::new() }, 50_000, 1).unwrap_err();
    assert!(failure.contains("former member"), "{failure}");
}

#[test]
fn a_hidden_item_reappears_when_it_is_inserted_again() {
    let mut filter = DualBloom::for_capacity(10_000, 2_000, 0.05, 1).unwrap();
    (0..10_000).for_each(|i| {
        filter.insert(&member(i)).unwrap();
    });
    (0..2_000).for_each(|i| {
        filter.remove(&member(i));
    });
    let hidden: Vec<Vec<u8>> = (2_000..10_000).map(member).filter(|item| !filter.may_contain(item)).collect();
    assert!(hidden.len() > 100);
    for item in hidden {
        if filter.may_contain(&item) {
            continue; // Reinserting other items has set its bits by chance.
        }
        assert_eq!(filter.lookup(&item), DualAnswer::Removed);
        assert!(!filter.remove(&item), "a hidden item is not removed");
        assert_eq!(filter.insert(&item), Ok(true));
        assert_eq!(filter.lookup(&item), DualAnswer::Present);
        assert_eq!(filter.insert(&item), Ok(false));
    }
}

#[test]
fn generations_come_to_an_end_and_nothing_is_lost_by_it() {
    let mut filter = DualBloom::for_capacity(1_000, 1_000, 1e-9, 1).unwrap();
    (0..100).for_each(|i| {
        filter.insert(&member(i)).unwrap();
    });
    for _ in 0..DualBloom::MAX_GENERATIONS {
        assert_eq!(filter.insert("restless"), Ok(true));
        assert_eq!(filter.insert("restless"), Ok(false));
        assert!(filter.remove("restless") && !filter.remove("restless"));
    }
    assert_eq!(filter.inserted(), 100 + u64::from(DualBloom::MAX_GENERATIONS));
    assert_eq!(filter.removed(), u64::from(DualBloom::MAX_GENERATIONS));
    let before = filter.encode();
    let error = filter.insert("restless").unwrap_err();
    assert_eq!(error, InsertError::TooManyGenerations { got: 256, limit: 255 });
    assert_eq!(error.to_string(), "item needs 256 generations, limit is 255");
    assert_eq!(filter.encode(), before);
    assert_eq!(filter.lookup("restless"), DualAnswer::Removed);
    // In a batch the others go in all the same.
    assert_eq!(filter.insert_batch(&["one", "restless", "two"]), Err(error));
    assert!(filter.may_contain("one") && filter.may_contain("two") && !filter.may_contain("restless"));
    assert!((0..100).all(|i| filter.may_contain(&member(i))));
}

#[test]
fn a_filter_overrun_by_removals_refuses_instead_of_walking_for_ever() {
    let shape = DualShape::exactly(
        BloomShape::for_capacity(10_000, 0.01).unwrap(),
        BloomShape::exactly(64, 1, 10).unwrap(),
    );
    let mut filter = DualBloom::with_shape(shape, 1).unwrap();
    let mut refused = 0;
    for i in 0..2_000 {
        refused += u64::from(filter.insert(&member(i)).is_err());
        filter.remove(&member(i));
    }
    assert!(refused > 1_000, "{refused}");
    assert_eq!(filter.removed(), 64, "every bit of the second filter is set");
    assert!(filter.expected_fpr() < 1e-9 && !filter.may_contain(&non_member(1)));
}

#[test]
fn hashes_and_items_are_the_same() {
    let mut by_item = DualBloom::for_capacity(600, 300, 0.05, HashScheme::keyed_random().unwrap()).unwrap();
    let mut by_hash = by_item.try_clone().unwrap();
    let items: Vec<Vec<u8>> = (0..600).map(member).collect();
    let hashes: Vec<_> = items.iter().map(|item| by_hash.hash(item)).collect();
    assert_eq!(by_item.insert_batch(&items), by_hash.insert_hash_batch(&hashes));
    for (item, hash) in items[..300].iter().zip(&hashes) {
        assert_eq!(by_item.remove(item), by_hash.remove_hash(*hash));
        assert_eq!(by_item.lookup(item), by_hash.lookup_hash(*hash));
        assert_eq!(by_item.may_contain(item), by_hash.may_contain_hash(*hash));
    }
    assert_eq!(by_item.insert_batch(&items[..150]), by_hash.insert_hash_batch(&hashes[..150]));
    assert_eq!(by_item.insert(&items[200]), by_hash.insert_hash(hashes[200]));
    assert_eq!(by_item.encode(), by_hash.encode());
    let (mut of_items, mut of_hashes) = (Answers::new(), Answers::new());
    by_item.may_contain_batch(&items, &mut of_items);
    by_hash.may_contain_hash_batch(&hashes, &mut of_hashes);
    assert_eq!(of_items, of_hashes);
    assert!(of_items.iter().zip(&items).all(|(answer, item)| answer == by_item.may_contain(item)));
}

/// Longer than one chunk, with everything in it: new items, removed ones, present ones, and the same item twice.
#[test]
fn long_batches_are_as_one_by_one() {
    let mut batched = DualBloom::for_capacity(20_000, 3_000, 0.01, 1).unwrap();
    let mut one_by_one = batched.try_clone().unwrap();
    let first: Vec<u64> = (0..5_000).map(|i| member_u64(1, i)).collect();
    let again: Vec<u64> = (0..9_000).map(|i| member_u64(1, i * 7 % 8_500)).collect();
    for filter in [&mut batched, &mut one_by_one] {
        filter.insert_batch(&first).unwrap();
        assert!(first[..3_000].iter().filter(|item| filter.remove(*item)).count() > 2_900);
    }
    let changed = again.iter().filter(|item| one_by_one.insert(*item).unwrap()).count() as u64;
    assert!(
        batched.insert_batch(&again).unwrap().abs_diff(changed) <= 3,
        "in another order chance differs a little"
    );
    assert!(again.iter().all(|item| batched.may_contain(item)), "nothing was removed since");
    let asked: Vec<u64> = again.iter().copied().chain((0..9_000).map(|i| non_member_u64(1, i))).collect();
    let mut answers = Answers::new();
    batched.may_contain_batch(&asked, &mut answers);
    assert_eq!(answers.len(), asked.len());
    assert!(answers.iter().zip(&asked).all(|(answer, item)| answer == batched.may_contain(item)));
}

#[test]
fn only_filters_without_removals_are_merged() {
    let empty = DualBloom::for_capacity(1_000, 100, 0.01, 1).unwrap();
    let [mut left, mut right, mut both] = std::array::from_fn(|_| empty.try_clone().unwrap());
    for i in 0..1_000 {
        let filter = if i % 3 == 0 { &mut left } else { &mut right };
        filter.insert(&member(i)).unwrap();
        both.insert(&member(i)).unwrap();
    }
    left.union(&right).unwrap();
    let payload = 2 * HEADER_BYTES;
    assert_eq!(left.encode()[payload..], both.encode()[payload..]);
    assert!(left.inserted().abs_diff(both.inserted()) < 20);

    let before = left.encode();
    right.remove(&member(1));
    assert_eq!(left.union(&right), Err(MergeError::HasRemovals { ours: 0, theirs: 1 }));
    assert_eq!(right.union(&left), Err(MergeError::HasRemovals { ours: 1, theirs: 0 }));
    let other_shape = DualBloom::for_capacity(1_000, 200, 0.01, 1).unwrap();
    let other_hash = DualBloom::for_capacity(1_000, 100, 0.01, 2).unwrap();
    assert!(matches!(left.union(&other_shape), Err(MergeError::ShapeDiffers { .. })));
    assert!(matches!(left.union(&other_hash), Err(MergeError::HashDiffers { .. })));
    assert_eq!(left.encode(), before);

    right.clear();
    assert_eq!((right.inserted(), right.removed(), right.expected_fpr()), (0, 0, 0.0));
    assert_eq!(right.encode(), empty.encode());
}

/// `outer` with these filters inside, lengths and checksums made right.
fn composed(outer: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let (mut bytes, inside) = (outer[..HEADER_BYTES].to_vec(), parts.concat());
    let headers: Vec<u8> = parts.iter().flat_map(|part| &part[..HEADER_BYTES]).copied().collect();
    bytes[16..24].copy_from_slice(&(inside.len() as u64).to_le_bytes());
    bytes[24..32].copy_from_slice(&xxh3_64(&headers).to_le_bytes());
    let checksum = xxh3_64(&bytes[..HEADER_BYTES - 8]);
    bytes[HEADER_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
    bytes.extend(inside);
    bytes
}

#[test]
fn only_two_filters_that_belong_together_are_decoded() {
    let mut filter = DualBloom::for_capacity(100, 10, 0.01, 1).unwrap();
    (0..100).for_each(|i| {
        filter.insert(&member(i)).unwrap();
    });
    filter.remove(&member(3));
    let bytes = filter.encode();
    let decode =
        |parts: &[&[u8]]| DualBloom::decode(&composed(&bytes, parts)).map(|filter| filter.capacity());
    let part = |shape: &BloomShape, seed: u64| Bloom::with_shape(*shape, seed).unwrap().encode();
    let (added, removed) = (filter.shape().added(), filter.shape().removed());
    let (one, two) = (part(added, 1), part(removed, 1));
    assert_eq!(decode(&[&one, &two]), Ok(100));
    let number = |got| Err(DecodeError::BadField { field: "number of filters", got });
    assert_eq!(decode(&[]), number(0));
    assert_eq!(decode(&[&one]), number(1));
    assert_eq!(decode(&[&one, &two, &two]), number(3));
    assert!(matches!(decode(&[&one, &part(removed, 2)]), Err(DecodeError::BadField { .. })));
    assert!(matches!(decode(&[&part(added, 2), &two]), Err(DecodeError::BadField { .. })));
    assert!(matches!(decode(&[&one, &bytes]), Err(DecodeError::WrongKind { .. })));
    let smaller = part(&BloomShape::for_capacity(99, 0.01).unwrap(), 1);
    assert_eq!(decode(&[&smaller, &two]), Err(DecodeError::BadField { field: "capacity", got: 100 }));
    let another_rate = part(&BloomShape::for_capacity(200, 0.02).unwrap(), 1);
    assert!(matches!(
        decode(&[&another_rate, &two]),
        Err(DecodeError::BadField { field: "target rate", .. })
    ));
    assert!(matches!(Bloom::decode(&bytes), Err(DecodeError::WrongKind { .. })));
}

#[test]
fn damaged_bytes_are_errors_without_large_allocations() {
    let mut filter = DualBloom::for_capacity(50, 10, 0.01, 1).unwrap();
    filter.insert("item").unwrap();
    filter.remove("item");
    let bytes = filter.encode();
    let mut corruptor = Corruptor::new(&bytes);
    let check = |bytes: &[u8], damage: &mayhap_testkit::corrupt::Damage| {
        let (decoded, measured) = AllocMeter::measure(|| DualBloom::decode(bytes));
        assert!(decoded.is_err(), "{damage}");
        assert!(measured.largest_request <= bytes.len() as u64 + 64, "{damage}: {measured:?}");
    };
    corruptor.truncations(check);
    corruptor.extensions(64, check);
    corruptor.bit_flips(0..bytes.len(), check);
}

#[test]
fn bad_parameters_are_errors_before_anything_is_allocated() {
    let refused = |capacity, removals, fpr: f64, false_no: f64| {
        let build = || DualBloom::with_shape(DualShape::for_rates(capacity, removals, fpr, false_no)?, 0);
        let (built, measured) = AllocMeter::measure(build);
        assert_eq!(measured.total_bytes, 0, "{capacity} {removals} {fpr} {false_no}");
        built.map(|_| ()).unwrap_err()
    };
    for rate in [0.0, -0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(refused(1_000, 10, rate, 0.01), BuildError::RateOutOfRange { .. }), "{rate}");
        assert!(matches!(refused(1_000, 10, 0.01, rate), BuildError::RateOutOfRange { .. }), "{rate}");
        assert!(DualBloom::for_capacity(1_000, 10, rate, 0).is_err());
    }
    assert!(matches!(refused(1_000, 10, 1e-300, 0.01), BuildError::RateTooLow { .. }));
    assert!(matches!(refused(1_000, 10, 0.01, 1e-300), BuildError::RateTooLow { .. }));
    for number in [0, u64::MAX, (1 << 42) + 1] {
        assert!(matches!(refused(number, 10, 0.01, 0.01), BuildError::CapacityOutOfRange { .. }), "{number}");
        assert!(
            matches!(refused(1_000, number, 0.01, 0.01), BuildError::CapacityOutOfRange { .. }),
            "{number}"
        );
    }
    // Impossible: nearly every item may be hidden, so nearly every insertion needs many generations.
    assert!(matches!(refused(1 << 42, 10, 0.01, 0.9), BuildError::CapacityOutOfRange { .. }));
}

#[test]
fn a_shape_has_its_price_before_it_is_built() {
    let shape = DualShape::for_rates(100_000, 5_000, 0.01, 0.001).unwrap();
    let filter = DualBloom::with_shape(shape, 1).unwrap();
    assert_eq!((filter.target_fpr(), filter.target_false_no()), (0.01, 0.001));
    assert_eq!((filter.capacity(), shape.removals()), (100_000, 5_000));
    assert_eq!(filter.memory_bytes(), shape.memory_bytes());
    assert_eq!(filter.memory_bytes() as f64 * 8.0 / 100_000.0, filter.bits_per_item());
    assert!(shape.expected_fpr(100_000, 5_000) <= 0.01 && shape.expected_false_no(100_000, 5_000) <= 0.001);
    let error = shape.within(shape.memory_bytes() - 1).unwrap_err();
    assert_eq!(error, BuildError::TooLarge { bytes: shape.memory_bytes(), limit: shape.memory_bytes() - 1 });
    assert_eq!(shape.within(shape.memory_bytes()), Ok(shape));
}
