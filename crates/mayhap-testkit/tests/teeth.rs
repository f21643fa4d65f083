//! Every suite accepts correct filters and rejects wrong ones: checks the table in the documentation of `suite` row by row.

use mayhap_testkit::bad::*;
use mayhap_testkit::honest::{PlainBloom, PlainCounting, PlainSet};
use mayhap_testkit::suite::{
    Failure, Operation, RatePlan, Refusals, Report, Script, keeps_its_rate, never_forgets,
};
use mayhap_testkit::{Built, Rebuilt, Shape, Subject, band_with_model_error};

const CAPACITY: u64 = 2_000;
const FPR: f64 = 0.02;
const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
const NON_MEMBERS: u64 = 50_000;

fn script(seed: u64) -> Script {
    Script { seed, ..Script::new(30_000, CAPACITY) }
}

/// 8 × 50 000 × 2 % ≈ 8 000 false positives, and the model of a filter of 2 000 items is accurate to 3 %.
fn plan(shape: Shape) -> RatePlan<'static> {
    let rate = PlainBloom::for_capacity(CAPACITY, FPR, 0).expected_fpr(CAPACITY);
    RatePlan {
        shape,
        items: CAPACITY,
        non_members: NON_MEMBERS,
        seeds: &SEEDS,
        promised: band_with_model_error(SEEDS.len() as u64 * NON_MEMBERS, rate, 1e-6, 0.03),
    }
}

/// The results of the two suites for one filter: the first failure of `never_forgets` over the seeds, and the failure of `keeps_its_rate`.
fn judged<S: Subject>(make: impl Fn(u64, f64, u64) -> S) -> (Option<Failure>, Option<Failure>) {
    let make = |seed| make(CAPACITY, FPR, seed);
    let forgets = SEEDS.iter().find_map(|&seed| never_forgets(make, &script(seed)).err());
    (forgets, keeps_its_rate(make, &plan(Shape::Url)).err())
}

/// Rejected on every seed, not by luck on one.
fn caught_by_never_forgets<S: Subject>(make: impl Fn(u64, f64, u64) -> S) {
    for seed in SEEDS {
        let verdict = never_forgets(|seed| make(CAPACITY, FPR, seed), &script(seed));
        assert!(verdict.is_err(), "accepted at seed {seed}: {verdict:?}");
    }
}

#[test]
fn correct_filters_are_accepted() {
    assert_eq!(judged(PlainBloom::for_capacity), (None, None));
    assert_eq!(judged(PlainCounting::for_capacity), (None, None));
    let (forgets, rate) = judged(|_, _, _| PlainSet::new());
    assert_eq!(forgets, None);
    assert!(matches!(rate, Some(Failure::RateOff { wrong: 0, .. })), "an exact set is far below the rate");
}

#[test]
fn the_correct_rate_is_accepted_for_every_shape() {
    for shape in Shape::ALL {
        if shape.distinct() >= NON_MEMBERS && shape != Shape::Huge {
            let report = keeps_its_rate(|seed| PlainBloom::for_capacity(CAPACITY, FPR, seed), &plan(shape));
            let report = report.unwrap_or_else(|failure| panic!("{}: {failure}", shape.name()));
            assert!((0.018..0.022).contains(&report.observed_fpr()));
            assert!(report.new > SEEDS.len() as u64 * CAPACITY * 95 / 100);
        }
    }
}

#[test]
fn both_suites_reject_the_three_simplest_bad_filters() {
    caught_by_never_forgets(AlwaysMayhap::for_capacity);
    caught_by_never_forgets(AlwaysNo::for_capacity);
    caught_by_never_forgets(ForgetsOnDecode::for_capacity);

    let (forgets, rate) = judged(AlwaysMayhap::for_capacity);
    assert!(matches!(forgets, Some(Failure::SaysMayhapTooOften { .. })), "{forgets:?}");
    assert!(matches!(rate, Some(Failure::RateOff { .. })), "{rate:?}");

    let (forgets, rate) = judged(AlwaysNo::for_capacity);
    assert!(matches!(forgets, Some(Failure::Forgot { .. })), "{forgets:?}");
    assert!(matches!(rate, Some(Failure::Forgot { .. })), "{rate:?}");

    let (forgets, rate) = judged(ForgetsOnDecode::for_capacity);
    assert!(matches!(forgets, Some(Failure::Forgot { .. } | Failure::DecodedDiffers { .. })), "{forgets:?}");
    assert!(matches!(rate, Some(Failure::Forgot { .. } | Failure::DecodedDiffers { .. })), "{rate:?}");
}

#[test]
fn forgetful_filters_are_rejected_by_both_suites() {
    caught_by_never_forgets(ForgetsSometimes::for_capacity);
    caught_by_never_forgets(LosesOnRefusal::for_capacity);
    caught_by_never_forgets(WrapsCounters::for_capacity);

    let (forgets, rate) = judged(ForgetsSometimes::for_capacity);
    assert!(matches!(forgets, Some(Failure::Forgot { .. } | Failure::NewTwice { .. })), "{forgets:?}");
    assert!(matches!(rate, Some(Failure::Forgot { .. })), "{rate:?}");

    let (forgets, rate) = judged(LosesOnRefusal::for_capacity);
    assert!(matches!(forgets, Some(Failure::Refused { .. })), "{forgets:?}");
    assert!(matches!(rate, Some(Failure::Refused { .. })), "{rate:?}");

    let (forgets, rate) = judged(WrapsCounters::for_capacity);
    let broken = matches!(forgets, Some(Failure::Forgot { .. } | Failure::NewTwice { .. }));
    assert!(broken, "{forgets:?}");
    assert!(matches!(rate, Some(Failure::Forgot { .. })), "{rate:?}");
}

#[test]
fn some_bad_filters_are_rejected_only_by_random_operations() {
    caught_by_never_forgets(ForgetsOnMerge::for_capacity);
    caught_by_never_forgets(ForgetsInBatch::for_capacity);
    caught_by_never_forgets(MissesInBatch::for_capacity);
    caught_by_never_forgets(LyingInsert::for_capacity);
    caught_by_never_forgets(UnsticksCounters::for_capacity);
    caught_by_never_forgets(KeepsRemoved::for_capacity);

    let (forgets, rate) = judged(ForgetsOnMerge::for_capacity);
    let merge = |failure: &Failure| matches!(failure, Failure::Forgot { place, .. } if place.step == Operation::Merge);
    assert!(forgets.as_ref().is_some_and(merge), "{forgets:?}");
    assert_eq!(rate, None);

    let (forgets, rate) = judged(ForgetsInBatch::for_capacity);
    let batch = |failure: &Failure| matches!(failure, Failure::Forgot { place, .. } if place.step == Operation::InsertBatch);
    assert!(forgets.as_ref().is_some_and(batch), "{forgets:?}");
    assert_eq!(rate, None);

    let (forgets, rate) = judged(MissesInBatch::for_capacity);
    assert!(matches!(forgets, Some(Failure::Forgot { .. } | Failure::BatchDisagrees { .. })), "{forgets:?}");
    assert_eq!(rate, None);

    let (forgets, rate) = judged(LyingInsert::for_capacity);
    assert!(matches!(forgets, Some(Failure::NewTwice { .. })), "{forgets:?}");
    assert_eq!(rate, None);

    let (forgets, rate) = judged(UnsticksCounters::for_capacity);
    let broken = |failure: &Failure| {
        matches!(failure, Failure::Forgot { .. } | Failure::NewTwice { .. } | Failure::WouldNotRemove { .. })
    };
    assert!(forgets.as_ref().is_some_and(broken), "{forgets:?}");
    assert_eq!(rate, None);

    let (forgets, rate) = judged(KeepsRemoved::for_capacity);
    let kept = |failure: &Failure| {
        matches!(
            failure,
            Failure::SaysMayhapTooOften { step: Operation::LookupRemoved | Operation::LookupNonMember, .. }
        )
    };
    assert!(forgets.as_ref().is_some_and(kept), "{forgets:?}");
    assert_eq!(rate, None);
}

#[test]
fn some_bad_filters_are_rejected_only_by_the_rate() {
    let (forgets, rate) = judged(TooFull::for_capacity);
    assert_eq!(forgets, None);
    assert!(matches!(rate, Some(Failure::RateOff { wrong, high, .. }) if wrong > high), "{rate:?}");

    let (forgets, rate) = judged(Oversized::for_capacity);
    assert_eq!(forgets, None);
    assert!(matches!(rate, Some(Failure::RateOff { wrong, low, .. }) if wrong < low), "{rate:?}");

    let (forgets, rate) = judged(ReadsOnlyTheHead::for_capacity);
    assert_eq!(forgets, None);
    assert!(matches!(rate, Some(Failure::RateOff { wrong, high, .. }) if wrong > high), "{rate:?}");
}

#[test]
fn a_filter_a_tenth_too_full_is_rejected() {
    let plan = RatePlan { items: CAPACITY * 11 / 10, ..plan(Shape::Url) };
    let verdict = keeps_its_rate(|seed| PlainBloom::for_capacity(CAPACITY, FPR, seed), &plan);
    assert!(matches!(verdict, Err(Failure::RateOff { .. })), "{verdict:?}");
}

#[test]
fn a_rejection_that_loses_an_item_is_detected_even_if_rejections_are_allowed() {
    let script = Script { refusals: Refusals::Counted, ..script(1) };
    let verdict = never_forgets(|seed| LosesOnRefusal::for_capacity(CAPACITY, FPR, seed), &script);
    assert!(matches!(verdict, Err(Failure::Forgot { .. })), "{verdict:?}");
}

#[test]
fn a_filter_that_rejects_everything_fails_the_suite() {
    struct Full;
    impl Subject for Full {
        fn insert(&mut self, _item: &[u8]) -> mayhap_testkit::Inserted {
            mayhap_testkit::Inserted::Refused
        }
        fn may_contain(&self, _item: &[u8]) -> bool {
            false
        }
    }
    let script = Script { refusals: Refusals::Counted, ..script(1) };
    assert_eq!(never_forgets(|_| Full, &script), Err(Failure::NothingHeld { seed: 1 }));
}

#[test]
fn every_kind_of_operation_occurs() {
    let run = |seed| never_forgets(|seed| PlainCounting::for_capacity(CAPACITY, FPR, seed), &script(seed));
    let report: Report = run(1).expect("an honest filter");
    assert_eq!(report.missing(), []);
    assert_eq!(report.times(Operation::RoundTrip), 16);
    assert_eq!(report.times(Operation::Merge), 8);
    assert_eq!(report.times(Operation::Sweep), 16 + 8 + 1);
    assert!(report.times(Operation::Remove) > 2_000);
    assert!(report.held > CAPACITY / 2, "held {}", report.held);
    assert_eq!(run(1), Ok(report.clone()), "the same seed gives the same run");
    assert_ne!(run(2), Ok(report), "another seed gives another run");
}

/// Without removal a long script leaves the filter exactly full, so it was judged full.
#[test]
fn a_filter_that_cannot_remove_ends_up_full() {
    let make = |seed| PlainBloom::for_capacity(CAPACITY, FPR, seed);
    let report = never_forgets(make, &script(1)).expect("an honest filter");
    assert_eq!(report.missing(), [Operation::LookupRemoved, Operation::Remove]);
    assert_eq!(report.held, CAPACITY);
}

#[test]
fn a_limit_of_one_copy_is_kept() {
    /// A set, not a multiset: the second copy of an item would be lost with the first.
    #[derive(Clone, Default)]
    struct OneCopy(std::collections::HashSet<Vec<u8>>);
    impl Subject for OneCopy {
        fn insert(&mut self, item: &[u8]) -> mayhap_testkit::Inserted {
            self.0.insert(item.to_vec()).into()
        }
        fn may_contain(&self, item: &[u8]) -> bool {
            self.0.contains(item)
        }
        fn remove(&mut self, item: &[u8]) -> Option<bool> {
            Some(self.0.remove(item))
        }
        fn merge(&mut self, other: &Self) -> Option<Result<(), String>> {
            self.0.extend(other.0.iter().cloned());
            Some(Ok(()))
        }
    }
    let once = Script { max_copies: 1, ..script(3) };
    assert!(never_forgets(|_| OneCopy::default(), &once).is_ok());
    assert!(never_forgets(|_| OneCopy::default(), &Script { max_copies: 2, ..script(3) }).is_err());
}

/// A static set, and one that loses an item when it is encoded.
struct BuiltSet<const LOSES: bool>(Vec<Vec<u8>>);

impl<const LOSES: bool> Built for BuiltSet<LOSES> {
    fn build(items: &[Vec<u8>], _: u64) -> Result<Self, String> {
        let mut sorted = items.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        Ok(Self(sorted))
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.0.binary_search_by(|held| held.as_slice().cmp(item)).is_ok()
    }

    fn may_contain_batch(&self, items: &[&[u8]]) -> Vec<bool> {
        items.iter().map(|item| self.may_contain(item)).collect()
    }

    fn round_trip(&self) -> Result<Self, String> {
        let kept = self.0.len().saturating_sub(usize::from(LOSES));
        Ok(Self(self.0[..kept].to_vec()))
    }
}

#[test]
fn static_sets_are_rebuilt_on_insert_and_a_lossy_one_is_rejected() {
    let script = Script::new(5_000, 64);
    let report = never_forgets(Rebuilt::<BuiltSet<false>>::new, &script).unwrap();
    assert!(report.members_asked > 1_000);
    assert!(never_forgets(Rebuilt::<BuiltSet<true>>::new, &script).is_err());
}
