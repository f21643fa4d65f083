//! The guarantees of the set of fingerprints: nothing is forgotten, however it grows and however often its fingerprints are shortened; the rates of
//! shortened sets; the memory per item; a limit that is kept, and reported before anything changes.

use std::collections::BTreeSet;
use std::env;

use mayhap::{Answers, BuildError, FingerprintSet, InsertError, ItemHash, MergeError, WellMixed};
use mayhap_testkit::bad::{AlwaysMayhap, AlwaysNo};
use mayhap_testkit::rng::Rng;
use mayhap_testkit::suite::{Operation, Script, never_forgets};
use mayhap_testkit::{Inserted, Subject, band_with_model_error, binomial_band, member, non_member};

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];

/// A set whose fingerprints are shortened whenever it is full.
struct CutWhenFull(FingerprintSet);

impl CutWhenFull {
    fn within(limit_bytes: u64, seed: u64) -> Self {
        Self(FingerprintSet::within(limit_bytes, seed).unwrap())
    }
}

impl Subject for CutWhenFull {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        match self.0.insert(item) {
            Err(_) if self.0.cut().is_ok() => self.0.insert(item).into(),
            outcome => outcome.into(),
        }
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.may_contain(item)
    }

    fn round_trip(&self) -> Option<Result<Self, String>> {
        let limit_bytes = self.0.memory_limit_bytes();
        Some(FingerprintSet::decode(&self.0.encode()).map_err(|error| error.to_string()).map(|mut set| {
            set.set_memory_limit_bytes(limit_bytes);
            Self(set)
        }))
    }

    fn merge(&mut self, other: &Self) -> Option<Result<(), String>> {
        // Until one of them was cut.
        (self.0.fingerprint_bits() == 64 && other.0.fingerprint_bits() == 64)
            .then(|| self.0.union(&other.0).map_err(|error| error.to_string()))
    }

    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        let mut answers = Answers::new();
        self.0.may_contain_batch(items, &mut answers);
        answers.iter().collect()
    }
}

/// `MAYHAP_OPERATIONS` sets a longer run.
fn operations() -> u64 {
    env::var("MAYHAP_OPERATIONS").map_or(200_000, |number| number.parse().expect("a number"))
}

#[test]
fn nothing_is_forgotten_however_it_grows_and_is_cut() {
    // Room for all as they are; for all once they were cut; for all once they were cut twice.
    for (limit_bytes, bits) in [(u64::MAX, 64), (48 << 10, 32), (24 << 10, 16)] {
        let script = Script { mayhap_limit: 0.01, ..Script::new(operations(), 10_000) };
        let mut last = 0;
        let report = never_forgets(|seed| CutWhenFull::within(limit_bytes, seed), &script)
            .unwrap_or_else(|failure| panic!("{limit_bytes}: {failure}"));
        assert!(report.missing().contains(&Operation::Remove), "{limit_bytes}");
        // As wide as the test intends.
        let mut set = CutWhenFull::within(limit_bytes, 1);
        (0..10_000).for_each(|i| {
            set.insert(&member(i));
            assert!(last == 0 || set.0.fingerprint_bits() <= last);
            last = set.0.fingerprint_bits();
        });
        assert_eq!(set.0.fingerprint_bits(), bits);
        assert!(set.0.memory_bytes() <= limit_bytes);
    }
    let script = Script { mayhap_limit: 0.01, ..Script::new(10_000, 1_000) };
    assert!(never_forgets(|_| AlwaysNo, &script).is_err());
    assert!(never_forgets(|_| AlwaysMayhap, &script).is_err());
}

#[test]
fn whole_fingerprints_are_exact_and_batches_are_like_their_items() {
    let mut rng = Rng::new(7);
    let mut one_by_one = FingerprintSet::new().unwrap().with_seed(3);
    let mut in_batches = FingerprintSet::new().unwrap().with_seed(3);
    let (mut model, mut answers) = (BTreeSet::new(), Answers::new());
    for _ in 0..2_000 {
        // Small numbers repeat, inside a batch as well.
        let most = 1 + rng.below(200_000);
        let items: Vec<u64> = (0..rng.below(700)).map(|_| rng.below(most)).collect();
        let hashes: Vec<ItemHash> = items.iter().map(|item| in_batches.hash(item)).collect();
        in_batches.insert_hash_batch(&hashes, &mut answers).unwrap();
        assert_eq!(answers.len(), items.len());
        for (item, held) in items.iter().zip(answers.iter()) {
            assert_eq!(model.insert(*item), !held, "{item}");
            assert_eq!(one_by_one.insert(item), Ok(!held), "{item}");
        }
    }
    assert!(model.len() > 50_000);
    for set in [&one_by_one, &in_batches] {
        assert_eq!(set.inserted(), model.len() as u64);
        assert!((0..250_000_u64).all(|item| set.may_contain(&item) == model.contains(&item)));
        let fingerprints: BTreeSet<u64> = set.fingerprints().collect();
        let of_model: BTreeSet<u64> = model.iter().map(|item| set.hash(item).to_u128() as u64).collect();
        assert_eq!(fingerprints, of_model);
    }
}

fn filled(limit_bytes: u64, seed: u64, bits: u32) -> FingerprintSet {
    let mut set = CutWhenFull::within(limit_bytes, seed);
    let mut i = 0;
    while set.0.fingerprint_bits() > bits || set.0.inserted() < set.0.capacity() {
        set.insert(&member(i));
        i += 1;
    }
    assert_eq!((set.0.fingerprint_bits(), set.0.inserted()), (bits, set.0.capacity()));
    set.0
}

/// Two-sided. The model looks at the lines themselves; those it samples are within 3 %.
#[test]
fn fingerprints_cut_twice_keep_their_rate_when_full() {
    const NON_MEMBERS: u64 = 150_000;
    let (mut wrong, mut expected) = (0, 0.0);
    for seed in SEEDS {
        let set = filled(1 << 19, seed, 16);
        wrong += (0..NON_MEMBERS).filter(|&i| set.may_contain(&non_member(i))).count() as u64;
        expected += set.expected_fpr() / SEEDS.len() as f64;
        assert!(set.expected_fpr() <= FingerprintSet::highest_fpr(16), "{}", set.expected_fpr());
        assert!(set.expected_fpr() > 0.8 * FingerprintSet::highest_fpr(16), "{}", set.expected_fpr());
    }
    let band = |rate| band_with_model_error(SEEDS.len() as u64 * NON_MEMBERS, rate, 1e-6, 0.03);
    assert!(band(expected).contains(&wrong), "{wrong}, expected {expected:e}: {:?}", band(expected));
    assert!(!band(expected * 1.3).contains(&wrong) && !band(expected / 1.3).contains(&wrong));
}

/// With 28 bits no false positive would be seen, so all items share 14 of them: the rate is 2^14 times as high.
#[test]
fn fingerprints_cut_once_keep_their_rate_when_full() {
    const NON_MEMBERS: u64 = 150_000;
    let narrow = |set: &FingerprintSet, item: &[u8]| {
        ItemHash::from(WellMixed(set.hash(item).to_u128() & !(0x3fff << 14) | 1 << 14))
    };
    let (mut wrong, mut expected) = (0, 0.0);
    for seed in SEEDS {
        let mut set = FingerprintSet::within(1 << 19, seed).unwrap();
        let mut i = 0;
        // The first half is inserted as whole fingerprints, which differ in the bits that are cut off later.
        while set.fingerprint_bits() == 64 || set.inserted() < set.capacity() {
            let hash = narrow(&set, &member(i));
            if set.insert_hash(hash).is_err() {
                set.cut().unwrap();
            } else {
                i += 1;
            }
        }
        assert_eq!(set.fingerprint_bits(), 32);
        wrong +=
            (0..NON_MEMBERS).filter(|&i| set.may_contain_hash(narrow(&set, &non_member(i)))).count() as u64;
        let rate = set.expected_fpr() * 2_f64.powi(14);
        assert!((rate / 2_f64.powi(14) / FingerprintSet::highest_fpr(32) - 1.0).abs() < 0.001);
        expected += rate / SEEDS.len() as f64;
    }
    let band = |rate| binomial_band(SEEDS.len() as u64 * NON_MEMBERS, rate, 1e-6);
    assert!(band(expected).contains(&wrong), "{wrong}, expected {expected:e}: {:?}", band(expected));
    assert!(!band(expected * 1.3).contains(&wrong) && !band(expected / 1.3).contains(&wrong));
}

#[test]
fn it_takes_nine_to_ten_and_a_half_bytes_an_item() {
    let mut set = FingerprintSet::new().unwrap().with_seed(0);
    for i in 0..600_000_u64 {
        let before = set.memory_bytes();
        assert!(set.insert(&i).unwrap());
        let per_item = set.memory_bytes() as f64 / set.inserted() as f64;
        assert!(per_item > 9.14, "{i}: {per_item}");
        if before > 1 << 20 {
            assert!(per_item < 10.6, "{i}: {per_item}");
        }
    }
    assert!(set.memory_bytes() > 4 << 20);
}

#[test]
fn a_limit_is_kept_and_reported_before_anything_changes() {
    let limit = 100_000;
    let mut set = FingerprintSet::within(limit, 1).unwrap();
    let mut i = 0;
    let refused = loop {
        let before = set.inserted();
        match set.insert(&member(i)) {
            Ok(new) => assert!(new),
            Err(error) => {
                assert_eq!(set.inserted(), before);
                break error;
            }
        }
        assert!(set.memory_bytes() <= limit);
        i += 1;
    };
    assert_eq!((set.inserted(), set.capacity()), (limit / 64 / 2 * 15, limit / 64 / 2 * 15));
    assert!(matches!(
        &refused,
        InsertError::CannotGrow { cause: BuildError::TooLarge { limit: 100_000, .. }, .. }
    ));
    let bytes = set.encode();
    assert!(set.insert(&member(i)).is_err() && set.encode() == bytes);
    assert_eq!(set.insert(&member(0)), Ok(false), "a member needs no room");

    // A batch is inserted up to the first item without room, with answers up to there.
    let mut set = FingerprintSet::within(limit, 1).unwrap();
    let hashes: Vec<ItemHash> = (0..20_000).map(|i| set.hash(&member(i / 2))).collect();
    let mut answers = Answers::new();
    assert!(set.insert_hash_batch(&hashes, &mut answers).is_ok());
    let hashes: Vec<ItemHash> = (0..20_000).map(|i| set.hash(&non_member(i))).collect();
    assert!(matches!(set.insert_hash_batch(&hashes, &mut answers), Err(InsertError::CannotGrow { .. })));
    assert_eq!(set.inserted(), set.capacity());
    assert_eq!((answers.len() as u64, answers.maybe_count()), (set.capacity() - 10_000, 0));
    assert!((0..answers.len()).all(|i| set.may_contain_hash(hashes[i])));

    assert!(matches!(FingerprintSet::within(100, 1), Err(BuildError::TooLarge { limit: 100, .. })));
    set.cut().unwrap();
    set.cut().unwrap();
    assert!(matches!(set.cut(), Err(BuildError::FingerprintOutOfRange { .. })));
    assert!((0..answers.len()).all(|i| set.may_contain_hash(hashes[i])));
}

/// Where the last line is full the first one has the rest, also after growing and cutting.
#[test]
fn the_last_line_continues_in_the_first() {
    let at_the_end = |i: u64| ItemHash::from(WellMixed(u128::from(u64::MAX - i * 0x0001_2345)));
    let mut set = FingerprintSet::within(64 << 10, 1).unwrap();
    for i in 0..120 {
        assert_eq!(set.insert_hash(at_the_end(i)), Ok(true));
    }
    let mut rounds = 0;
    while set.inserted() < 5_000 {
        set.insert(&member(rounds)).unwrap();
        rounds += 1;
        assert!(rounds % 500 != 0 || (0..120).all(|i| set.may_contain_hash(at_the_end(i))), "{rounds}");
    }
    for bits in [32, 16] {
        set.cut().unwrap();
        assert_eq!(set.fingerprint_bits(), bits);
        assert!((0..120).all(|i| set.may_contain_hash(at_the_end(i))), "{bits}");
        assert!((0..rounds).all(|i| set.may_contain(&member(i))), "{bits}");
    }
}

#[test]
fn items_chosen_to_collide_are_not_lost() {
    let chosen = |i: u64| ItemHash::from(WellMixed(u128::from(1 << 63 | i)));
    let mut set = FingerprintSet::within(1 << 20, 1).unwrap();
    (0..2_000).for_each(|i| assert_eq!(set.insert_hash(chosen(i)), Ok(true)));
    let bytes = set.encode();
    assert!(matches!(set.cut(), Err(BuildError::Unsolvable { items: 2_000, .. })));
    assert!(set.encode() == bytes && set.fingerprint_bits() == 64);
    assert!((0..2_000).all(|i| set.may_contain_hash(chosen(i))));
    // A set that was already shortened has no slot far from home, and reports that.
    let mut set = FingerprintSet::within(1 << 20, 1).unwrap();
    (0..20_000).for_each(|i| assert_eq!(set.insert(&member(i)), Ok(true)));
    set.cut().unwrap();
    let placed = (0..2_000).take_while(|&i| set.insert_hash(chosen(i)).is_ok()).count() as u64;
    // Up to 16 lines of 16: items whose home is after the first of them move.
    assert!((200..=257).contains(&placed), "{placed}");
    assert!((0..20_000).all(|i| set.may_contain(&member(i))));
    assert!(matches!(set.insert_hash(chosen(placed)), Err(InsertError::Full { .. })));
    assert!((0..placed).all(|i| set.may_contain_hash(chosen(i))));
    let mut answers = Answers::new();
    let hashes: Vec<ItemHash> = (placed - 40..placed + 40).map(chosen).collect();
    assert!(set.insert_hash_batch(&hashes, &mut answers).is_err());
    assert_eq!((answers.len(), answers.maybe_count()), (40, 40));
}

#[test]
fn only_whole_fingerprints_of_one_hash_merge() {
    let mut odd = FingerprintSet::new().unwrap().with_seed(1);
    let mut even = FingerprintSet::new().unwrap().with_seed(1);
    (0..10_000_u64).for_each(|i| {
        (if i % 2 == 1 { &mut odd } else { &mut even }).insert(&i).unwrap();
        odd.insert(&(i / 4 * 4)).unwrap();
    });
    odd.union(&even).unwrap();
    assert_eq!(odd.inserted(), 10_000);
    assert!((0..10_000_u64).all(|i| odd.may_contain(&i)));
    assert!(matches!(
        odd.union(&FingerprintSet::new().unwrap().with_seed(2)),
        Err(MergeError::HashDiffers { .. })
    ));
    odd.set_memory_limit_bytes(odd.memory_bytes());
    let mut many = FingerprintSet::new().unwrap().with_seed(1);
    (0..100_000_u64).for_each(|i| assert!(many.insert(&(i + 20_000)).unwrap()));
    let bytes = odd.encode();
    assert!(matches!(odd.union(&many), Err(MergeError::Unbuildable(BuildError::TooLarge { .. }))));
    assert!(odd.encode() == bytes);
    even.cut().unwrap();
    assert!(matches!(odd.union(&even), Err(MergeError::NeverMerges { .. })));
    assert!(matches!(even.union(&odd), Err(MergeError::NeverMerges { .. })));
    even.clear();
    assert_eq!((even.inserted(), even.fingerprint_bits(), even.may_contain(&2_u64)), (0, 64, false));
}
