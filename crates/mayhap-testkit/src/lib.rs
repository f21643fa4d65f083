//! Test tools that check mayhap's guarantees: seeded items, binomial bands, an exact model, test suites, and filters that are wrong on purpose, which the
//! suites must reject.
//!
//! ```text
//!   items ──▶ suite ──▶ Subject (the filter under test)
//!               │
//!               ├─ never_forgets    random operations against the exact Model
//!               └─ keeps_its_rate   false positives of full filters against a binomial band
//! ```
//!
//! Implement [`Subject`] for a filter; then write one test per guarantee:
//!
//! ```
//! use mayhap_testkit::bad::ForgetsOnDecode;
//! use mayhap_testkit::honest::PlainBloom;
//! use mayhap_testkit::suite::{Script, never_forgets};
//!
//! let script = Script::new(20_000, 1_000);
//! assert!(never_forgets(|seed| PlainBloom::for_capacity(1_000, 0.01, seed), &script).is_ok());
//! assert!(never_forgets(|seed| ForgetsOnDecode::for_capacity(1_000, 0.01, seed), &script).is_err());
//! ```
//!
//! Everything is reproducible: the same seed always gives the same items and the same operations, on every machine.

// One module counts allocations, which needs a `GlobalAlloc`; all others are safe code.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod alloc_meter;
pub mod bad;
pub mod binomial;
pub mod corrupt;
pub mod flow;
pub mod generations;
pub mod honest;
pub mod host;
pub mod items;
pub mod model;
pub mod real;
pub mod rebuilt;
pub mod rng;
pub mod script;
pub mod subject;
pub mod suite;

pub use binomial::{band_with_model_error, binomial_band};
pub use items::{Shape, member, member_u64, non_member, non_member_u64};
pub use rebuilt::{Built, Rebuilt};
pub use subject::{Inserted, Subject};

/// Runs the code blocks of the README and the guide as tests: they use several crates, so no published one has them.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide.md")]
    struct Guide;
    #[doc = include_str!("../../../docs/filters.md")]
    struct Filters;
    #[doc = include_str!("../../../docs/formats.md")]
    struct Formats;
}
