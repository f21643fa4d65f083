//! Recommends a structure for given needs: a ranked list with the reasons and the price of every kind.
//!
//! ```text
//! Needs ──▶ price_list ──▶ every structure: memory, lines per lookup, abilities, why it does not suit
//!   │                            │
//!   │                            ▼
//!   └───────────▶ advise ──▶ the same, best first ──▶ reasons, Rust code, notes
//! ```
//!
//! These functions build no filter and allocate no memory for one. A plan for a trillion items takes microseconds, or
//! milliseconds if it solves for the rate. The best choice may be no filter at all:
//!
//! ```
//! use mayhap_advise::{ItemShape, Needs, Structure, advise};
//!
//! // A billion phone numbers out of seven billion possible ones: one bit for each is less than a filter takes.
//! let phones = ItemShape::IntegerRange { low: 13_000_000_000, high: 19_999_999_999 };
//! let advice = advise(&Needs::new(1_000_000_000, 0.01).of(phones))?;
//! assert_eq!(advice.recommended().unwrap().structure, Structure::Bitmap);
//! assert!(advice.why[0].starts_with("Use an exact bitmap"));
//! # Ok::<(), mayhap_advise::NeedsError>(())
//! ```
#![forbid(unsafe_code)]

mod choice;
mod commands;
mod create;
mod exact;
mod filling;
mod filters;
mod needs;
mod note;
mod phrase;
mod price;
mod recipe;
pub mod solve;

pub use choice::{Advice, advise, recommend};
pub use commands::{NoReserve, Reserve, build_line, mayhap_reserve, redis_reserve};
pub use create::CreateError;
pub use filling::Filling;
pub use needs::{Deletes, Growth, ItemShape, Needs, NeedsError};
pub use note::Note;
pub use price::{Abilities, Cost, GROWABLE_TO, Price, Structure, Unsuitable, price_list};
pub use recipe::rust_for;

/// Runs the code of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
