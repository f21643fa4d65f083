//! The rate: false positives of full filters, checked against both ends of a band.

use super::{Failure, Operation, Place};
use crate::{Inserted, Shape, Subject};
use std::ops::RangeInclusive;

/// Non-members for which a decoded filter must give the same answers as the original.
const COMPARED: u64 = 512;

/// The filters to fill and the items to query.
///
/// ```
/// use mayhap_testkit::suite::RatePlan;
/// use mayhap_testkit::{Shape, band_with_model_error};
///
/// let plan = RatePlan {
///     shape: Shape::Mail,
///     items: 10_000,
///     non_members: 50_000,
///     seeds: &[1, 2, 3, 5, 8, 13, 21, 34],
///     promised: band_with_model_error(8 * 50_000, 0.01, 1e-6, 0.02),
/// };
/// assert_eq!(plan.trials(), 400_000);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RatePlan<'a> {
    /// The shape of the items.
    pub shape: Shape,
    /// The number of members in each filter; fill it to judge full filters.
    pub items: u64,
    /// The number of non-members that each filter is queried with.
    pub non_members: u64,
    /// One filter, with its own items, for each seed.
    pub seeds: &'a [u64],
    /// The band of false positives of all filters together, from [`binomial_band`](crate::binomial_band) or
    /// [`band_with_model_error`](crate::band_with_model_error).
    pub promised: RangeInclusive<u64>,
}

impl RatePlan<'_> {
    /// The total number of queried non-members.
    #[must_use]
    pub const fn trials(&self) -> u64 {
        self.non_members * self.seeds.len() as u64
    }
}

/// The answers of the filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateReport {
    /// The number of queried non-members.
    pub trials: u64,
    /// The number of them answered *maybe*.
    pub wrong: u64,
    /// Members that were reported as certainly new when inserted; the others were false positives at that time.
    pub new: u64,
}

impl RateReport {
    /// The share of false positives.
    #[must_use]
    pub fn observed_fpr(&self) -> f64 {
        self.wrong as f64 / self.trials as f64
    }
}

/// Fills a filter for every seed, sends it through a round trip if it supports that, and checks the number of false positives against both ends of
/// `plan.promised`. Too few mean wasted memory, or a filter that was not filled.
///
/// ```
/// use mayhap_testkit::bad::TooFull;
/// use mayhap_testkit::honest::PlainBloom;
/// use mayhap_testkit::suite::{RatePlan, keeps_its_rate};
/// use mayhap_testkit::{Shape, band_with_model_error};
///
/// let rate = PlainBloom::for_capacity(2_000, 0.02, 0).expected_fpr(2_000);
/// let plan = RatePlan {
///     shape: Shape::Url,
///     items: 2_000,
///     non_members: 50_000,
///     seeds: &[1, 2, 3, 5, 8, 13, 21, 34],
///     promised: band_with_model_error(400_000, rate, 1e-6, 0.03),
/// };
/// assert!(keeps_its_rate(|seed| PlainBloom::for_capacity(2_000, 0.02, seed), &plan).is_ok());
/// assert!(keeps_its_rate(|seed| TooFull::for_capacity(2_000, 0.02, seed), &plan).is_err());
/// ```
///
/// # Errors
///
/// [`Failure::RateOff`], or a failure of [`wrong_answers`].
pub fn keeps_its_rate<S: Subject>(
    make: impl Fn(u64) -> S,
    plan: &RatePlan<'_>,
) -> Result<RateReport, Failure> {
    let report = wrong_answers(make, plan)?;
    if plan.promised.contains(&report.wrong) {
        return Ok(report);
    }
    let (low, high) = (*plan.promised.start(), *plan.promised.end());
    Err(Failure::RateOff { wrong: report.wrong, trials: report.trials, low, high })
}

/// Like [`keeps_its_rate`], but does not judge the rate and ignores `plan.promised`; for accuracy tables.
///
/// # Errors
///
/// A member that is rejected or answered *no*, or a round trip that fails or changes an answer.
pub fn wrong_answers<S: Subject>(
    make: impl Fn(u64) -> S,
    plan: &RatePlan<'_>,
) -> Result<RateReport, Failure> {
    let mut report = RateReport { trials: plan.trials(), wrong: 0, new: 0 };
    for &seed in plan.seeds {
        let (filter, new) = filled(make(seed), plan, seed)?;
        report.new += new;
        let filter = decoded(filter, plan, seed)?;
        if let Some((i, item)) =
            first_forgotten(|item| filter.may_contain(item), plan.shape, seed, plan.items)
        {
            return Err(Failure::Forgot {
                place: Place { seed, operation: i, step: Operation::Sweep },
                item,
            });
        }
        report.wrong += count_wrong(|item| filter.may_contain(item), plan.shape, seed, plan.non_members);
    }
    Ok(report)
}

fn filled<S: Subject>(mut filter: S, plan: &RatePlan<'_>, seed: u64) -> Result<(S, u64), Failure> {
    let mut item = Vec::new();
    let mut new = 0;
    for i in 0..plan.items {
        plan.shape.member_into(seed, i, &mut item);
        match filter.insert(&item) {
            Inserted::New => new += 1,
            Inserted::Mayhap => {}
            Inserted::Refused => {
                let place = Place { seed, operation: i, step: Operation::Insert };
                return Err(Failure::Refused { place, item });
            }
        }
    }
    Ok((filter, new))
}

/// Returns the filter after a round trip, or unchanged if it does not support one.
fn decoded<S: Subject>(filter: S, plan: &RatePlan<'_>, seed: u64) -> Result<S, Failure> {
    let place = Place { seed, operation: plan.items, step: Operation::RoundTrip };
    let decoded = match filter.round_trip() {
        None => return Ok(filter),
        Some(Err(reason)) => return Err(Failure::RoundTripFailed { place, reason }),
        Some(Ok(decoded)) => decoded,
    };
    let mut item = Vec::new();
    for i in 0..plan.non_members.min(COMPARED) {
        plan.shape.non_member_into(seed, i, &mut item);
        if filter.may_contain(&item) != decoded.may_contain(&item) {
            return Err(Failure::DecodedDiffers { place, item });
        }
    }
    Ok(decoded)
}

/// Returns how many of the first `non_members` get *maybe* from `answer`. For filters that are not a [`Subject`](crate::Subject), such as static ones.
///
/// ```
/// use mayhap_testkit::{Shape, suite::count_wrong};
/// assert_eq!(count_wrong(|_| true, Shape::Ipv4, 1, 100), 100);
/// ```
pub fn count_wrong(answer: impl Fn(&[u8]) -> bool, shape: Shape, seed: u64, non_members: u64) -> u64 {
    let mut item = Vec::new();
    (0..non_members)
        .filter(|&i| {
            shape.non_member_into(seed, i, &mut item);
            answer(&item)
        })
        .count() as u64
}

/// Returns the first of `items` members that gets *no* from `answer`, with its index; `None` if all get *maybe*.
///
/// ```
/// use mayhap_testkit::{Shape, suite::first_forgotten};
/// assert_eq!(first_forgotten(|_| true, Shape::Ipv4, 1, 100), None);
/// assert_eq!(first_forgotten(|_| false, Shape::Ipv4, 1, 100).unwrap().0, 0);
/// ```
pub fn first_forgotten(
    answer: impl Fn(&[u8]) -> bool,
    shape: Shape,
    seed: u64,
    items: u64,
) -> Option<(u64, Vec<u8>)> {
    let mut item = Vec::new();
    (0..items)
        .find(|&i| {
            shape.member_into(seed, i, &mut item);
            !answer(&item)
        })
        .map(|i| (i, item))
}
