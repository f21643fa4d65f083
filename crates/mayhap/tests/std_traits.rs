//! Tests of the Rust interface that users expect of every kind: `new` with a random seed, `Clone`, `PartialEq`, `Extend`,
//! `|=`, conversions, and the traits that all kinds share.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mayhap::{
    Answers, AtomicBlockedBloom, AtomicBloom, BinaryFuse16, Bitmap, BlockedBloom, Bloom, BloomShape,
    BuildError, CountingBloom, Cuckoo, DLeft, DualBloom, Filter, FingerprintSet, Gcs, GrowableCuckoo,
    Growing, HashScheme, Insert, InsertError, ItemHash, Kind, Membership, MergeError, Quotient, Ribbon,
    ScalableBloom, ScalableCuckoo, ScalableCuckooShape, Window, Xor8, Xor16,
};

/// The kinds that can be created empty.
const EMPTY: [Kind; 14] = [
    Kind::Bitmap,
    Kind::Bloom,
    Kind::BlockedBloom,
    Kind::CountingBloom,
    Kind::DualBloom,
    Kind::ScalableBloom,
    Kind::DLeft,
    Kind::Cuckoo,
    Kind::GrowableCuckoo,
    Kind::Quotient,
    Kind::Window,
    Kind::Growing,
    Kind::ScalableCuckoo,
    Kind::Fingerprints,
];

/// A rate that every kind can promise.
const FPR: f64 = 0.05;

/// Returns a filter of every kind, with the numbers from 0 to 199.
fn filled() -> Vec<Filter> {
    let mut filters: Vec<Filter> = EMPTY
        .into_iter()
        .map(|kind| {
            let mut filter = Filter::for_capacity(kind, 1_000, FPR, 7).unwrap();
            assert_eq!(
                filter.insert_batch(&(0..200_u64).collect::<Vec<_>>()).unwrap().min(190),
                190,
                "{kind}"
            );
            filter
        })
        .collect();
    let items = 0..200_u64;
    filters.push(Ribbon::build(items.clone(), FPR, 7).unwrap().into());
    filters.push(Gcs::build(items.clone(), FPR, 7).unwrap().into());
    filters.push(Xor8::build(items.clone(), 7).unwrap().into());
    filters.push(BinaryFuse16::build(items, 7).unwrap().into());
    filters
}

fn fails(run: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

#[test]
fn two_new_filters_hash_differently_and_a_seed_makes_them_alike() {
    let mut seeds = HashSet::new();
    for _ in 0..1_000 {
        assert!(seeds.insert(HashScheme::random()));
    }
    for kind in EMPTY {
        let new = || Filter::new(kind, 1_000, FPR).unwrap();
        let (one, other) = (new(), new());
        if kind == Kind::Bitmap {
            assert!(one == other && one.scheme().is_none());
            continue;
        }
        assert_ne!(one.scheme(), other.scheme(), "{kind}");
        assert_ne!(one, other, "{kind}");
        assert_eq!(one.with_seed(7), other.with_seed(7), "{kind}");
        assert_eq!(new().with_seed(7), Filter::for_capacity(kind, 1_000, FPR, 7).unwrap(), "{kind}");
        let keyed = new().keyed().unwrap();
        assert!(matches!(keyed.scheme(), Some(HashScheme::Keyed { .. })), "{kind}");
        assert_ne!(keyed.scheme(), new().keyed().unwrap().scheme(), "{kind}");
        let twin = new().with_scheme(*keyed.scheme().unwrap());
        assert_eq!(twin, keyed, "{kind}");
    }
}

/// A filter whose hash was replaced while it was empty remembers its items: every part of it uses the new hash.
#[test]
fn a_filter_with_a_chosen_hash_never_forgets() {
    for kind in EMPTY {
        for filter in [
            Filter::new(kind, 1_000, FPR).unwrap(),
            Filter::new(kind, 1_000, FPR).unwrap().with_seed(3),
            Filter::new(kind, 1_000, FPR).unwrap().keyed().unwrap(),
        ] {
            let mut filter = filter;
            for item in 0..900_u64 {
                filter.insert(&item).unwrap();
            }
            assert!((0..900_u64).all(|item| filter.may_contain(&item)), "{kind}");
            let decoded = Filter::decode(&filter.encode()).unwrap();
            assert!((0..900_u64).all(|item| decoded.may_contain(&item)), "{kind}");
            // The seed means the same here as in `for_capacity`.
            if let Some(HashScheme::Fast { seed }) = filter.scheme().copied() {
                let mut explicit = Filter::for_capacity(kind, 1_000, FPR, seed).unwrap();
                for item in 0..900_u64 {
                    explicit.insert(&item).unwrap();
                }
                assert_eq!(explicit.encode(), filter.encode(), "{kind}");
            }
        }
    }
}

#[test]
fn every_kind_has_its_own_new() {
    fn check(filter: impl Into<Filter>, kind: Kind) {
        let filter = filter.into();
        assert_eq!((filter.kind(), filter.inserted()), (kind, 0));
        assert_eq!(filter.scheme(), Some(&HashScheme::fast(7)), "{kind}");
    }
    check(Bloom::new(1_000, FPR).unwrap().with_seed(7), Kind::Bloom);
    check(BlockedBloom::new(1_000, FPR).unwrap().with_seed(7), Kind::BlockedBloom);
    check(CountingBloom::new(1_000, FPR).unwrap().with_seed(7), Kind::CountingBloom);
    check(DualBloom::new(1_000, 10, FPR).unwrap().with_seed(7), Kind::DualBloom);
    check(ScalableBloom::new(1_000, FPR).unwrap().with_seed(7), Kind::ScalableBloom);
    check(DLeft::new(1_000, FPR).unwrap().with_seed(7), Kind::DLeft);
    check(Cuckoo::new(1_000, FPR).unwrap().with_seed(7), Kind::Cuckoo);
    check(GrowableCuckoo::new(1_000, 2_000, FPR).unwrap().with_seed(7), Kind::GrowableCuckoo);
    check(Quotient::new(1_000, FPR).unwrap().with_seed(7), Kind::Quotient);
    check(Window::new(1_000, FPR).unwrap().with_seed(7), Kind::Window);
    check(Growing::new(1_000, FPR).unwrap().with_seed(7), Kind::Growing);
    check(ScalableCuckoo::new(1_000).unwrap().with_seed(7), Kind::ScalableCuckoo);
    check(FingerprintSet::new().unwrap().with_seed(7), Kind::Fingerprints);

    let atomic = AtomicBloom::new(1_000, FPR).unwrap().with_seed(7);
    assert!(atomic.insert("ada") && atomic.may_contain("ada"));
    assert_eq!(atomic.into_inner(), Bloom::new(1_000, FPR).unwrap().with_seed(7).and_insert("ada"));
    let atomic = AtomicBlockedBloom::new(1_000, FPR).unwrap().keyed().unwrap();
    assert!(atomic.insert("ada") && atomic.may_contain("ada"));
    assert!(fails(|| drop(atomic.with_seed(7))));

    let sets = [Gcs::from_items(0..9_u64, FPR).unwrap(), Gcs::from_items(0..9_u64, FPR).unwrap()];
    assert!(sets[0].scheme() != sets[1].scheme() && sets.iter().all(|set| set.may_contain(&8_u64)));
    let sets = [Ribbon::from_items(0..9_u64, FPR).unwrap(), Ribbon::from_items(0..9_u64, FPR).unwrap()];
    assert!(sets[0].scheme() != sets[1].scheme() && sets.iter().all(|set| set.may_contain(&8_u64)));
}

/// Inserts in a chain of calls.
trait AndInsert {
    fn and_insert(self, item: &str) -> Self;
}

impl AndInsert for Bloom {
    fn and_insert(mut self, item: &str) -> Self {
        self.insert(item);
        self
    }
}

#[test]
fn the_hash_of_a_filter_that_holds_items_cannot_change() {
    for filter in filled() {
        let kind = filter.kind();
        assert!(fails(|| drop(filter.clone().with_seed(1))), "{kind}");
        assert!(fails(|| drop(filter.clone().keyed())), "{kind}");
        assert!(fails(|| drop(filter.with_scheme(HashScheme::fast(1)))), "{kind}");
    }
    // The removed items of a dual filter are hashed as well.
    let mut dual = DualBloom::new(100, 100, FPR).unwrap();
    dual.insert("ada").unwrap();
    dual.remove("ada");
    assert!(fails(|| drop(dual.with_seed(1))));
    // A cleared filter is empty.
    let mut cleared = Bloom::new(100, FPR).unwrap().and_insert("ada");
    cleared.clear();
    assert_eq!(cleared.with_seed(1).scheme(), &HashScheme::fast(1));
}

#[test]
fn static_kinds_and_unkept_promises_are_errors() {
    for kind in [Kind::Xor, Kind::BinaryFuse, Kind::Ribbon, Kind::Gcs] {
        let error = Filter::new(kind, 1_000, FPR).unwrap_err();
        assert_eq!(error, BuildError::NeedsItems { kind });
        assert_eq!(
            error.to_string(),
            format!("a {kind} filter is built from all items together and cannot begin empty")
        );
    }
    let own = ScalableCuckooShape::for_capacity(1_000).unwrap().target_fpr();
    let lower = Filter::new(Kind::ScalableCuckoo, 1_000, own / 2.0).unwrap_err();
    assert_eq!(lower, BuildError::RateTooLow { got: own / 2.0, limit: own });
    for kind in EMPTY.into_iter().filter(|&kind| kind != Kind::Bitmap) {
        assert!(matches!(Filter::new(kind, 1_000, 1.5), Err(BuildError::RateOutOfRange { .. })), "{kind}");
        assert!(Filter::new(kind, 0, FPR).is_err(), "{kind}");
    }
}

#[test]
fn copies_are_equal_and_independent() {
    for filter in filled() {
        let kind = filter.kind();
        let mut copy = filter.clone();
        assert_eq!(copy, filter, "{kind}");
        assert_eq!(copy.encode(), filter.encode(), "{kind}");
        assert_eq!(Filter::decode(&filter.encode()).unwrap(), filter, "{kind}");
        if copy.insert(&777_u64).is_ok() {
            assert_ne!(copy, filter, "{kind}");
            assert!(copy.clear());
            assert_ne!(copy, filter, "{kind}");
        }
        assert!((0..200_u64).all(|item| filter.may_contain(&item)), "{kind}");
    }
    let filters = filled();
    for (index, one) in filters.iter().enumerate() {
        for (other_index, other) in filters.iter().enumerate() {
            assert_eq!(one == other, index == other_index);
        }
    }
}

/// One different bit makes filters unequal, wherever it is: also in a count or in the last word.
#[test]
fn a_small_difference_is_seen() {
    let filter = |items: std::ops::Range<u64>| {
        let mut filter = Bloom::new(100_000, 0.01).unwrap().with_seed(7);
        filter.extend(items);
        filter
    };
    assert_eq!(filter(0..50_000), filter(0..50_000));
    assert_ne!(filter(0..50_000), filter(0..50_001));
    // Both are empty, but their shapes or seeds differ.
    let shape = |bits| BloomShape::exactly(bits, 7, 1_000).unwrap();
    assert_ne!(Bloom::with_shape(shape(10_000), 7).unwrap(), Bloom::with_shape(shape(10_001), 7).unwrap());
    assert_ne!(filter(0..0), Bloom::new(100_000, 0.01).unwrap().with_seed(8));
    // One set bit of a bitmap at a time, over the whole length.
    let mut one = Bitmap::new(1 << 20).unwrap();
    let other = Filter::from(one.clone());
    for bit in [0, 63, 64, (1 << 19) - 1, 1 << 19, (1 << 20) - 1] {
        one.set(bit).unwrap();
        assert_ne!(Filter::from(one.clone()), other, "{bit}");
        one.clear(bit);
        assert_eq!(Filter::from(one.clone()), other, "{bit}");
    }
}

/// `extend` gives the same filter as `insert`, over several batches, for items and for references.
#[test]
fn extending_is_inserting() {
    fn check<F>(empty: impl Fn() -> F, insert: impl Fn(&mut F, u64))
    where
        F: Extend<u64> + for<'a> Extend<&'a u64> + PartialEq + std::fmt::Debug,
    {
        for count in [0, 1, 255, 256, 257, 511, 512, 513, 3_000] {
            let items: Vec<u64> = (0..count).collect();
            let (mut one_by_one, mut owned, mut borrowed) = (empty(), empty(), empty());
            items.iter().for_each(|&item| insert(&mut one_by_one, item));
            owned.extend(items.clone());
            borrowed.extend(&items);
            assert_eq!(owned, one_by_one, "{count}");
            assert_eq!(borrowed, one_by_one, "{count}");
        }
    }
    check(|| Bloom::new(1_000, 0.01).unwrap().with_seed(7), |filter, item| _ = filter.insert(&item));
    check(|| BlockedBloom::new(1_000, 0.01).unwrap().with_seed(7), |filter, item| _ = filter.insert(&item));
    check(|| CountingBloom::new(1_000, 0.01).unwrap().with_seed(7), |filter, item| _ = filter.insert(&item));
    check(|| Window::new(1_000, 0.01).unwrap().with_seed(7), |filter, item| _ = filter.insert(&item));
    check(
        || ScalableBloom::new(1_000, 0.01).unwrap().with_seed(7),
        |filter, item| _ = filter.insert(&item).unwrap(),
    );
    let mut set = FingerprintSet::new().unwrap();
    set.extend(0..3_000_u64);
    assert!(set.inserted() == 3_000 && (0..3_000_u64).all(|item| set.may_contain(&item)));
    let mut full = FingerprintSet::within(1 << 10, 7).unwrap();
    assert!(fails(|| full.extend(0..3_000_u64)));
}

#[test]
fn growing_kinds_are_collected() {
    let words = ["ada", "grace", "ada", "barbara"];
    let seen: ScalableBloom = words.iter().collect();
    assert!(seen.inserted() == 3 && words.iter().all(|word| seen.may_contain(word)));
    assert_eq!(seen.target_fpr(), 0.01);
    let many: ScalableBloom = (0..50_000_u64).filter(|item| item % 2 == 0).collect();
    assert!((0..25_000_u64).all(|item| many.may_contain(&(2 * item))));
    assert!(many.layers().len() > 1 && many.expected_fpr() <= 0.01);
    let known: ScalableBloom = (0..50_000_u64).collect();
    assert_eq!(known.layers().len(), 1, "the iterator told how many there are");
    let set: FingerprintSet = words.iter().collect();
    assert!(set.inserted() == 3 && words.iter().all(|word| set.may_contain(word)));
    assert_ne!(set.scheme(), words.iter().collect::<FingerprintSet>().scheme());

    /// An iterator whose `size_hint` is far too large.
    struct Boasting(std::ops::Range<u64>);
    impl Iterator for Boasting {
        type Item = u64;
        fn next(&mut self) -> Option<u64> {
            self.0.next()
        }
        fn size_hint(&self) -> (usize, Option<usize>) {
            (usize::MAX, None)
        }
    }
    let few: ScalableBloom = Boasting(0..10).collect();
    assert!(few.inserted() == 10 && few.memory_bytes() < 2 << 20);
}

#[test]
fn operators_merge_or_panic() {
    fn check<F>(empty: impl Fn() -> F)
    where
        F: Insert + Clone + PartialEq + std::fmt::Debug + for<'a> std::ops::BitOrAssign<&'a F>,
    {
        let (mut one, mut other) = (empty(), empty());
        Insert::insert(&mut one, &1_u64).unwrap();
        Insert::insert(&mut other, &2_u64).unwrap();
        let before = one.clone();
        one |= &other;
        assert!(
            Membership::may_contain(&one, &1_u64) && Membership::may_contain(&one, &2_u64),
            "{}",
            one.kind()
        );
        assert_ne!(one, before);
    }
    check(|| Bloom::new(1_000, FPR).unwrap().with_seed(7));
    check(|| BlockedBloom::new(1_000, FPR).unwrap().with_seed(7));
    check(|| CountingBloom::new(1_000, FPR).unwrap().with_seed(7));
    check(|| DualBloom::new(1_000, 1_000, FPR).unwrap().with_seed(7));
    check(|| DLeft::new(1_000, FPR).unwrap().with_seed(7));
    check(|| Quotient::new(1_000, FPR).unwrap().with_seed(7));
    check(|| FingerprintSet::new().unwrap().with_seed(7));
    check(|| Bitmap::new(1_000).unwrap());
    check(|| Filter::new(Kind::Quotient, 1_000, FPR).unwrap().with_seed(7));
    let mut set = Gcs::build(0..500_u64, FPR, 7).unwrap();
    let shape = *set.shape();
    set |= &Gcs::with_shape(500..600_u64, shape, 7).unwrap();
    assert!((0..600_u64).all(|item| set.may_contain(&item)));

    // Different seeds, kinds and ranges.
    let (mut one, other) = (Bloom::new(1_000, FPR).unwrap(), Bloom::new(1_000, FPR).unwrap());
    let before = one.clone().and_insert("ada");
    one.insert("ada");
    assert!(matches!(one.clone().union(&other), Err(MergeError::HashDiffers { .. })));
    assert!(fails(|| one |= &other) && fails(|| one &= &other));
    assert_eq!(one, before);
    let mut cuckoo = Filter::new(Kind::Cuckoo, 1_000, FPR).unwrap();
    assert!(fails(|| cuckoo |= &Filter::from(other)));
    let mut low = Bitmap::of_range(0, 99).unwrap();
    assert!(fails(|| low |= &Bitmap::of_range(100, 199).unwrap()));
    assert!(fails(|| low &= &Bitmap::of_range(100, 199).unwrap()));

    let common = Bloom::new(1_000, FPR).unwrap().with_seed(7).and_insert("ada");
    let mut both = common.clone().and_insert("grace");
    both &= &common.clone().and_insert("barbara");
    assert!(both.may_contain("ada") && !both.may_contain("grace"));
    let mut bits = Bitmap::new(100).unwrap();
    bits.set_batch(&[1, 2]).unwrap();
    let mut others = Bitmap::new(100).unwrap();
    others.set_batch(&[2, 3]).unwrap();
    bits &= &others;
    assert_eq!(bits.iter_ones().collect::<Vec<_>>(), [2]);
}

#[test]
fn a_filter_becomes_its_kind_again() {
    for filter in filled() {
        let kind = filter.kind();
        // The filter converts to exactly one type.
        let mut fits = 0;
        let mut errors = Vec::new();
        let mut count = |result: Result<Filter, mayhap::WrongKind>| match result {
            Ok(same) => {
                assert_eq!(same, filter);
                fits += 1;
            }
            Err(error) => {
                assert_eq!(error.filter(), &filter);
                errors.push(error.to_string());
                assert_eq!(error.into_filter(), filter);
            }
        };
        count(Bitmap::try_from(filter.clone()).map(Filter::from));
        count(Bloom::try_from(filter.clone()).map(Filter::from));
        count(BlockedBloom::try_from(filter.clone()).map(Filter::from));
        count(CountingBloom::try_from(filter.clone()).map(Filter::from));
        count(DualBloom::try_from(filter.clone()).map(Filter::from));
        count(ScalableBloom::try_from(filter.clone()).map(Filter::from));
        count(DLeft::try_from(filter.clone()).map(Filter::from));
        count(Cuckoo::try_from(filter.clone()).map(Filter::from));
        count(GrowableCuckoo::try_from(filter.clone()).map(Filter::from));
        count(Quotient::try_from(filter.clone()).map(Filter::from));
        count(Window::try_from(filter.clone()).map(Filter::from));
        count(Growing::try_from(filter.clone()).map(Filter::from));
        count(ScalableCuckoo::try_from(filter.clone()).map(Filter::from));
        count(FingerprintSet::try_from(filter.clone()).map(Filter::from));
        count(Ribbon::try_from(filter.clone()).map(Filter::from));
        count(Gcs::try_from(filter.clone()).map(Filter::from));
        count(Xor8::try_from(filter.clone()).map(Filter::from));
        count(Xor16::try_from(filter.clone()).map(Filter::from));
        count(BinaryFuse16::try_from(filter.clone()).map(Filter::from));
        assert_eq!(fits, 1, "{kind}");
        assert_eq!(errors.len(), 18);
    }
    let error = Xor16::try_from(Filter::from(Xor8::build(0..9_u64, 0).unwrap())).unwrap_err();
    assert_eq!(error.to_string(), "the filter is a Xor8, not a Xor16");
}

/// Each trait method returns the same as the filter's own method.
#[test]
fn the_shared_traits_pass_on() {
    fn check<F: Membership>(filter: &F, own: &Filter) {
        let items: Vec<u64> = (0..2_000).collect();
        let (mut answers, mut expected) = (Answers::new(), Answers::new());
        filter.may_contain_batch(&items, &mut answers);
        own.may_contain_batch(&items, &mut expected);
        assert_eq!(answers, expected);
        for item in &items {
            assert_eq!(filter.may_contain(item), own.may_contain(item));
        }
        let object: &dyn Membership = own;
        assert_eq!(object.kind(), filter.kind());
        assert_eq!(filter.scheme(), own.scheme());
        if let Some(scheme) = filter.scheme() {
            let hashes: Vec<ItemHash> = items.iter().map(|item| scheme.hash(item)).collect();
            filter.may_contain_hash_batch(&hashes, &mut answers);
            assert_eq!(answers, expected);
            assert!(
                hashes
                    .iter()
                    .enumerate()
                    .all(|(index, &hash)| { Some(filter.may_contain_hash(hash)) == expected.get(index) })
            );
        }
        assert_eq!(
            (filter.capacity(), filter.inserted(), filter.memory_bytes()),
            (own.capacity(), own.inserted(), own.memory_bytes())
        );
        assert_eq!(
            (filter.target_fpr(), filter.expected_fpr(), filter.bits_per_item()),
            (own.target_fpr(), own.expected_fpr(), own.bits_per_item())
        );
        assert_eq!(filter.encode(), own.encode());
        let decoded = F::decode(&filter.encode()).unwrap();
        assert_eq!(decoded.encode(), own.encode());
        assert!(items[..200].iter().all(|item| decoded.may_contain(item)));
    }
    for filter in filled() {
        check(&filter, &filter);
        match &filter {
            Filter::Bitmap(own) => check(own, &filter),
            Filter::Bloom(own) => check(own, &filter),
            Filter::BlockedBloom(own) => check(own, &filter),
            Filter::CountingBloom(own) => check(own, &filter),
            Filter::DualBloom(own) => check(own, &filter),
            Filter::ScalableBloom(own) => check(own, &filter),
            Filter::DLeft(own) => check(own, &filter),
            Filter::Cuckoo(own) => check(own, &filter),
            Filter::GrowableCuckoo(own) => check(own, &filter),
            Filter::Quotient(own) => check(own, &filter),
            Filter::Window(own) => check(own, &filter),
            Filter::Growing(own) => check(own, &filter),
            Filter::ScalableCuckoo(own) => check(own, &filter),
            Filter::Fingerprints(own) => check(own, &filter),
            Filter::Ribbon(own) => check(own, &filter),
            Filter::Gcs(own) => check(own, &filter),
            Filter::Xor8(own) => check(own, &filter),
            Filter::BinaryFuse16(own) => check(own, &filter),
            other => panic!("{}", other.kind()),
        }
    }
}

#[test]
fn insertions_through_the_trait_are_insertions() {
    fn check<F: Insert + Into<Filter> + Clone>(empty: &F) {
        let own: Filter = empty.clone().into();
        let kind = own.kind();
        let items: Vec<u64> = (0..500).collect();
        let (mut one_by_one, mut together) = (empty.clone(), empty.clone());
        let mut new = 0;
        for item in &items {
            new += u64::from(one_by_one.insert(item).unwrap());
        }
        assert_eq!(together.insert_batch(&items).unwrap(), new, "{kind}");
        let (mut by_hash, mut hashes_together) = (empty.clone(), empty.clone());
        if let Some(scheme) = empty.scheme().copied() {
            let hashes: Vec<ItemHash> = items.iter().map(|item| scheme.hash(item)).collect();
            let by_one: u64 = hashes.iter().map(|&hash| u64::from(by_hash.insert_hash(hash).unwrap())).sum();
            assert_eq!((by_one, hashes_together.insert_hash_batch(&hashes).unwrap()), (new, new), "{kind}");
        } else {
            assert_eq!(by_hash.insert_hash(ItemHash::default()), Err(InsertError::NotANumber));
            assert_eq!(hashes_together.insert_hash_batch(&[]), Err(InsertError::NotANumber));
            hashes_together.insert_batch(&items).unwrap();
            by_hash.insert_batch(&items).unwrap();
        }
        for mut filter in [one_by_one, together, by_hash, hashes_together] {
            assert!(items.iter().all(|item| filter.may_contain(item)), "{kind}");
            filter.clear();
            assert!(!items.iter().any(|item| filter.may_contain(item)), "{kind}");
        }
    }
    for kind in EMPTY {
        check(&Filter::new(kind, 1_000, FPR).unwrap());
    }
    check(&Bitmap::new(1_000).unwrap());
    check(&Bloom::new(1_000, FPR).unwrap());
    check(&BlockedBloom::new(1_000, FPR).unwrap());
    check(&CountingBloom::new(1_000, FPR).unwrap());
    check(&DualBloom::new(1_000, 10, FPR).unwrap());
    check(&ScalableBloom::new(1_000, FPR).unwrap());
    check(&DLeft::new(1_000, FPR).unwrap());
    check(&Cuckoo::new(1_000, FPR).unwrap());
    check(&GrowableCuckoo::new(1_000, 2_000, FPR).unwrap());
    check(&Quotient::new(1_000, FPR).unwrap());
    check(&Window::new(1_000, FPR).unwrap());
    check(&Growing::new(1_000, FPR).unwrap());
    check(&ScalableCuckoo::new(1_000).unwrap());
    check(&FingerprintSet::new().unwrap());
    // A static kind in a `Filter` rejects items.
    let mut fixed = Filter::from(Ribbon::from_items(0..9_u64, FPR).unwrap());
    assert_eq!(Insert::insert(&mut fixed, "ada"), Err(InsertError::NeverChanges { kind: Kind::Ribbon }));
    // A bitmap accepts only the numbers of its range.
    let mut bits = Bitmap::of_range(10, 19).unwrap();
    assert_eq!(Insert::insert(&mut bits, &10_u64), Ok(true));
    assert_eq!(
        Insert::insert(&mut bits, &20_u64),
        Err(InsertError::OutOfRange { number: 20, first: 10, bits: 10 })
    );
    assert_eq!(Insert::insert(&mut bits, "ada"), Err(InsertError::NotANumber));
}

#[cfg(feature = "serde")]
#[test]
fn every_kind_is_serialized_as_its_file() {
    for filter in filled() {
        let kind = filter.kind();
        let json = serde_json::to_string(&filter).unwrap();
        let bytes: Vec<u8> = serde_json::from_str(&json).unwrap();
        assert_eq!(bytes, filter.encode(), "{kind}");
        let back: Filter = serde_json::from_str(&json).unwrap();
        assert_eq!(back, filter, "{kind}");
        assert!((0..200_u64).all(|item| back.may_contain(&item)), "{kind}");
        // A changed byte is always an error, wherever it is. It never gives another filter.
        for at in (0..bytes.len()).step_by(bytes.len() / 50 + 1) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let damaged = serde_json::to_string(&damaged).unwrap();
            assert!(serde_json::from_str::<Filter>(&damaged).is_err(), "{kind} {at}");
        }
        assert!(serde_json::from_str::<Filter>("[1, 2, 3]").is_err());
        assert!(serde_json::from_str::<Filter>("\"mayhap\"").is_err());
    }
    #[derive(serde::Serialize, serde::Deserialize, Clone, PartialEq, Debug)]
    struct Cache {
        name: String,
        seen: Bloom,
    }
    let cache = Cache { name: "pages".to_owned(), seen: Bloom::new(100, FPR).unwrap().and_insert("ada") };
    let back: Cache = serde_json::from_str(&serde_json::to_string(&cache).unwrap()).unwrap();
    assert_eq!(back, cache);
    let other = serde_json::to_string(&Cuckoo::new(100, FPR).unwrap()).unwrap();
    let error = serde_json::from_str::<Bloom>(&other).unwrap_err().to_string();
    assert!(error.contains("cuckoo"), "{error}");
}
