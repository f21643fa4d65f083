//! The guarantees of a filter, each as a function that can fail.
//!
//! A suite returns a report or a [`Failure`] and never panics, so that "this bad filter is rejected" is a test like any other. The table shows which suite
//! detects which filter of [`bad`](crate::bad):
//!
//! | filter | [`never_forgets`] | [`keeps_its_rate`] |
//! |---|---|---|
//! | `AlwaysMayhap` | caught | caught |
//! | `AlwaysNo` | caught | caught |
//! | `ForgetsOnDecode` | caught | caught |
//! | `ForgetsSometimes` | caught | caught |
//! | `LosesOnRefusal` | caught | caught |
//! | `ForgetsOnMerge` | caught | does not merge |
//! | `ForgetsInBatch` | caught | inserts one by one |
//! | `MissesInBatch` | caught | queries one by one |
//! | `LyingInsert` | caught | inserts nothing twice |
//! | `WrapsCounters` | caught | caught |
//! | `UnsticksCounters` | caught | does not remove |
//! | `KeepsRemoved` | caught | does not remove |
//! | `TooFull` | forgets nothing | caught |
//! | `Oversized` | forgets nothing | caught |
//! | `ReadsOnlyTheHead` | forgets nothing | caught |
//!
//! `tests/teeth.rs` checks the table.

mod failure;
mod forgetting;
mod rate;
mod script;

pub use failure::{Failure, Place};
pub use forgetting::never_forgets;
pub use rate::{RatePlan, RateReport, count_wrong, first_forgotten, keeps_its_rate, wrong_answers};
pub use script::{Operation, Refusals, Report, Script};
