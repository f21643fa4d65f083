//! Have I seen this before? Filters that answer `no` (certain) or `maybe`, with a false-positive rate you choose.
//!
//! ```
//! use mayhap::Bloom;
//!
//! let mut seen = Bloom::new(1_000_000, 0.01)?; // 1.2 MB
//! assert!(seen.insert("https://example.org/"));
//! assert!(seen.may_contain("https://example.org/"));
//! # Ok::<(), mayhap::BuildError>(())
//! ```
//!
//! | kind | for | cannot |
//! |---|---|---|
//! | [`Bloom`] | the least memory among the filters that only insert | remove, grow |
//! | [`BlockedBloom`] | speed: one cache line per lookup | remove, grow |
//! | [`AtomicBloom`], [`AtomicBlockedBloom`] | many threads through `&self` | remove, grow |
//! | [`CountingBloom`] | removing, simply | grow |
//! | [`Cuckoo`] | removing, in little memory; low rates | grow; hold more than a few copies of an item |
//! | [`ScalableCuckoo`] | compatibility with RedisBloom's cuckoo filter: removing, growing table by table | keep its rate while it grows |
//! | [`Quotient`] | removing, counting, merging, doubling, without the items | hold more than 95 % of its slots: it is full then |
//! | [`ScalableBloom`] | an unknown number of items | remove, merge |
//! | [`Growing`] | an unknown number of items, removing, and lookups that stay fast | be small: 12 to 32 bits per item at 1 % if it starts at a million items |
//! | [`Ribbon`] | static sets, close to the minimum of memory: 6.74 bits per item at 1 %, the minimum is 6.64 | insert, remove, grow |
//! | [`Gcs`] | static sets, in few bytes to send or store; built from a sorted stream | insert, remove; answer fast |
//! | [`BinaryFuse`] | static sets, small and fast | insert, remove, grow |
//! | [`Xor`] | static sets of up to about 16,000 items, where it is smaller than a `BinaryFuse` | insert, remove, grow |
//! | [`Window`] | the last N items, or the items of the last N seconds | remove |
//! | [`FingerprintSet`] | items of any length, practically exactly, in 9.2 to 10.6 bytes each; fewer with a memory limit | remove |
//! | [`Bitmap`] | integers from a known range, exactly | hold anything else |
//!
//! Four kinds are here to be studied, compared, and read from files. For a new program another one is better:
//!
//! | kind | for | take instead |
//! |---|---|---|
//! | [`DLeft`] | removing and counting in half the memory of a `CountingBloom` | [`Cuckoo`] or [`Quotient`]: faster, in about half the memory |
//! | [`DualBloom`] | removing a few items, in little memory | [`Cuckoo`]: as small, and *no* stays certain after a removal |
//! | [`GrowableCuckoo`] | removing, and growing up to a known maximum | [`Growing`], which needs no maximum, or a [`Cuckoo`] of that size |
//! | `WideBloom` | filters of programs that place items by more than 128 bits | [`Bloom`], if no other program reads the filter |
//!
//! # Making one
//!
//! `new` draws a random seed, as the standard library does for its sets, so two filters make different mistakes. An empty
//! filter takes another hash with `with_seed` (every run gives the same answers), `keyed` (clients cannot forge items that
//! collide) or `with_scheme` (the hash of another filter, to be merged with it):
//!
//! ```
//! use mayhap::{Cuckoo, Growing, Ribbon, ScalableBloom};
//!
//! let valid = Cuckoo::new(1_000_000, 0.001)?.keyed()?;
//! let online = Growing::new(1_000, 0.01)?.with_seed(7);
//! let seen: ScalableBloom = ["ada", "grace"].into_iter().collect(); // grows; 1 %
//! let blocked = Ribbon::from_items(["eve", "mallory"], 0.01)?; // static: built from all items together
//! assert!(seen.clone() == seen && seen.may_contain("ada") && blocked.may_contain("eve"));
//! # Ok::<(), mayhap::BuildError>(())
//! ```
//!
//! [`Filter`] is a filter of any kind, known at run time. The traits [`Membership`] and [`Insert`] have what all kinds share,
//! for generic code.
//!
//! # In common
//!
//! The filters have one shape. Items are bytes ([`Item`]: text, integers, byte strings, tuples, addresses, paths; [`ByHash`]
//! takes any type with `Hash`). A [`HashScheme`] hashes each
//! item once, to an [`ItemHash`]. `insert`, `may_contain` and their batches have a `_hash` twin for items that are
//! already hashed. *Batch* methods overlap their memory loads. There are two exceptions: an [`AtomicScalableBloom`] has
//! only the `_hash` methods, and a [`Bitmap`] takes numbers through `set` and `get` and hashes nothing.
//!
//! Sizes are computed and checked before memory is allocated (`BloomShape` and its siblings). [`sizing`] has the formulas, `file`
//! saves and opens filters, [`codec`] encodes them as bytes. The crate `mayhap-advise` picks a kind for your needs.
//!
//! The crate `mayhap-formats` reads filters of other programs (Guava, Redisson, RedisBloom, Parquet, Spark and more) as these
//! kinds, and writes most of them back.
//!
//! [`explain`] shows which bits or slots a lookup reads for one item, and why it gives its answer.
//!
//! Features: `file` (on by default) for files and memory maps, `named-hashes` for the hash functions of other systems that come from
//! other crates, and all of them by name (filters of Redisson, rbloom and pybloom_live need it). `serde` serializes all kinds, as the
//! bytes of a `.mayhap` file; `uuid` makes an [`Item`] of a `Uuid`.
#![deny(unsafe_code)]
// Only on docs.rs, which has a nightly compiler.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod answers;
mod batch;
mod bitmap;
mod blocked;
mod bloom;
mod choose_hash;
pub mod codec;
mod convert;
mod counting;
mod cuckoo;
mod dleft;
mod dual;
mod error;
pub mod explain;
pub mod figures;
#[cfg(feature = "file")]
pub mod file;
mod fill;
mod filter;
mod fingerprints;
mod gcs;
mod growing;
pub mod hash;
#[doc(hidden)]
pub mod internals;
mod item;
mod kind;
mod membership;
mod probe;
mod quotient;
mod ribbon;
mod run_table;
pub mod say;
mod scalable;
mod scalable_cuckoo;
#[cfg(feature = "serde")]
mod serialized;
mod shared;
mod simd;
pub mod sizing;
mod statics;
mod std_traits;
mod store;
mod together;
mod wide;
mod window;
pub mod xor_fuse;

pub use answers::{Answers, BatchBits, NewItems};
pub use bitmap::Bitmap;
pub use blocked::{BlockedBloom, BlockedLayout, BlockedPlacement, BlockedShape};
pub use bloom::{Bloom, BloomShape};
pub use codec::DecodeError;
pub use convert::WrongKind;
pub use counting::{CountingBloom, CountingShape};
pub use cuckoo::{Cuckoo, CuckooShape, GrowableCuckoo, GrowableCuckooShape};
pub use dleft::{DLeft, DLeftShape};
pub use dual::{DualAnswer, DualBloom, DualShape};
pub use error::{BuildError, InsertError, MergeError, RemoveError};
pub use fill::{Fill, Sampling};
pub use filter::Filter;
pub use fingerprints::FingerprintSet;
pub use gcs::{Gcs, GcsBuilder, GcsShape, GcsValues};
pub use growing::{Growing, GrowingShape};
pub use hash::{ForeignHash, ForeignScheme, HashScheme, ItemHash, SecretKey, WellMixed};
pub use item::{ByHash, EncodedItem, EncodingError, Item, ItemEncoding, ItemValue, UnknownEncoding};
pub use kind::Kind;
pub use membership::{Insert, Membership};
pub use probe::BloomPlacement;
pub use quotient::{Quotient, QuotientFingerprint, QuotientShape};
pub use ribbon::{Ribbon, RibbonShape};
pub use scalable::{AtomicScalableBloom, ScalableBloom, ScalableShape};
pub use scalable_cuckoo::{ScalableCuckoo, ScalableCuckooShape};
pub use shared::{AtomicBlockedBloom, AtomicBloom, Shared};
pub use statics::{BuildOptions, Fingerprint};
pub use store::{Relocate, give_memory_back, relocate_box, take_all_from_heap};
pub use wide::{WideBloom, WidePlacement};
pub use window::{Generation, Pace, Window, WindowShape};
#[doc(inline)]
pub use xor_fuse::{
    BinaryFuse, BinaryFuse8, BinaryFuse16, BinaryFuse32, BinaryFuseShape, Xor, Xor8, Xor16, Xor32, XorShape,
};
/// Runs the code of this crate's README as tests. `mayhap-testkit` runs that of the other pages.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
