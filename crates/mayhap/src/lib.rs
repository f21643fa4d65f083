//! Have I seen this before? A `no` is certain, a `mayhap` is wrong at most as often as you allowed.
//!
//! ```
//! use mayhap::Bloom;
//!
//! let mut seen = Bloom::for_capacity(1_000_000, 0.01, 0)?; // 1.2 MB
//! assert!(seen.insert("https://example.org/"));
//! assert!(seen.may_contain("https://example.org/"));
//! # Ok::<(), mayhap::BuildError>(())
//! ```
//!
//! | kind | for | cannot |
//! |---|---|---|
//! | [`Bloom`] | the least memory of these | remove, grow |
//! | [`BlockedBloom`] | speed: one cache line per lookup | remove, grow |
//! | [`AtomicBloom`], [`AtomicBlockedBloom`] | many threads through `&self` | remove, grow |
//! | [`CountingBloom`] | removing, simply | grow |
//! | [`DualBloom`] | removing a few items, in little memory | be always certain of a *no* |
//! | [`ScalableBloom`] | an unknown number of items | remove, merge |
//! | [`Bitmap`] | ids from a known range, exactly | take anything else |
//!
//! The filters have one shape. Items are bytes ([`Item`]: text, integers, byte strings) and are hashed once, by a [`HashScheme`], to an [`ItemHash`];
//! every method that takes an item has a `_hash` twin, and *batch* methods overlap their memory loads. (A [`Bitmap`] takes numbers and hashes
//! nothing.) Sizes are known and checked before
//! memory is taken (`BloomShape` and its like). [`advise`] picks a kind, [`sizing`] has the formulas, `file` saves and opens, [`codec`]
//! is their form as bytes.
//!
//! Features: `file` (on by default) for files and memory maps, `named-hashes` for the hash functions of other systems.
#![deny(unsafe_code)]

pub mod advise;
mod answers;
mod batch;
mod bitmap;
mod blocked;
mod bloom;
pub mod codec;
mod counting;
mod dual;
mod error;
#[cfg(feature = "file")]
pub mod file;
pub mod hash;
mod item;
mod kind;
mod probe;
mod scalable;
mod shared;
mod simd;
pub mod sizing;
mod store;

pub use answers::Answers;
pub use bitmap::Bitmap;
pub use blocked::{BlockedBloom, BlockedLayout, BlockedShape};
pub use bloom::{Bloom, BloomShape};
pub use codec::DecodeError;
pub use counting::{CountingBloom, CountingShape};
pub use dual::{DualAnswer, DualBloom, DualShape};
pub use error::{BuildError, InsertError, MergeError};
pub use hash::{HashScheme, ItemHash, SecretKey, WellMixed};
pub use item::Item;
pub use kind::Kind;
pub use scalable::{ScalableBloom, ScalableShape};
pub use shared::{AtomicBlockedBloom, AtomicBloom, Shared};

/// The blocks of the README and the guide are tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide.md")]
    struct Guide;
}
