//! The promises of a filter, each as a function that can fail.
//!
//! A suite returns a report or a [`Failure`], never a panic, so that "this bad filter is rejected" is a test
//! like any other. Which filter of [`bad`](crate::bad) each suite catches:
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
//! | `MissesInBatch` | caught | asks one by one |
//! | `LyingInsert` | caught | inserts nothing twice |
//! | `WrapsCounters` | caught | caught |
//! | `UnsticksCounters` | caught | does not remove |
//! | `KeepsRemoved` | caught | does not remove |
//! | `TooFull` | forgets nothing | caught |
//! | `Oversized` | forgets nothing | caught |
//! | `ReadsOnlyTheHead` | forgets nothing | caught |
//!
//! The table is checked by `tests/teeth.rs`.

mod failure;
mod forgetting;
mod rate;
mod script;

pub use failure::{Failure, Place};
pub use forgetting::never_forgets;
pub use rate::{RatePlan, RateReport, count_wrong, first_forgotten, keeps_its_rate, wrong_answers};
pub use script::{Operation, Refusals, Report, Script};
