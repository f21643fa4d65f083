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
//! | [`DLeft`] | removing and counting in half of that memory | grow |
//! | [`Cuckoo`] | removing, in little memory; low rates | grow; take more than a few copies of an item |
//! | [`GrowableCuckoo`] | removing, from an unknown number of items up to a known one | grow past that |
//! | [`ScalableCuckoo`] | being RedisBloom's cuckoo filter: removing, growing table by table | keep a rate as it grows |
//! | [`DualBloom`] | removing a few items, in little memory | be always certain of a *no* |
//! | [`Quotient`] | removing, counting, merging, doubling, without the items | stay fast when more than 95 % full: it refuses |
//! | [`ScalableBloom`] | an unknown number of items | remove, merge |
//! | [`Growing`] | an unknown number of items, removing, and lookups that stay fast | be small: 12 to 30 bits an item at 1 % |
//! | [`Ribbon`] | a set that does not change, within half a per cent of the least memory there can be | insert, remove, grow |
//! | [`Gcs`] | sets that do not change, in few bytes to send or store; built from a sorted stream | insert, remove; be asked fast |
//! | [`BinaryFuse`] | a set that never changes, small and fast | insert, remove, grow |
//! | [`Xor`] | the same, smaller up to some ten thousand items | insert, remove, grow |
//! | [`Window`] | what came in the last so many items, or the last so long | remove |
//! | [`FingerprintSet`] | items of any length, practically exactly, in 9.2 to 10.6 bytes each; less once cut | remove |
//! | [`Bitmap`] | ids from a known range, exactly | take anything else |
//!
//! The filters have one shape. Items are bytes ([`Item`]: text, integers, byte strings) and are hashed once, by a [`HashScheme`], to an [`ItemHash`];
//! every method that takes an item has a `_hash` twin, and *batch* methods overlap their memory loads. (A [`Bitmap`] takes numbers and hashes
//! nothing.) Sizes are known and checked before
//! memory is taken (`BloomShape` and its like). [`advise`] picks a kind, [`sizing`] has the formulas, `file` saves and opens, [`codec`]
//! is their form as bytes.
//!
//! Filters of other programs (Guava, Redisson, RedisBloom, Parquet, Spark and more) are read as these kinds, and most of them written back: [`codec`]
//! lists them, `codec::format` has them all by name.
//!
//! [`explain`] shows what a lookup looks at for one item, and why it answers so.
//!
//! Features: `file` (on by default) for files and memory maps, `formats` (on by default) for the filters of other programs, `named-hashes` for
//! their hash functions by name, which `formats` brings along.
#![deny(unsafe_code)]

pub mod advise;
mod answers;
mod batch;
mod binary_fuse;
mod bitmap;
mod blocked;
mod bloom;
pub mod codec;
mod counting;
mod cuckoo;
mod dleft;
mod dual;
mod error;
pub mod explain;
#[cfg(feature = "file")]
pub mod file;
mod fill;
mod filter;
mod fingerprints;
mod gcs;
mod growing;
pub mod hash;
mod item;
mod kind;
mod probe;
mod quotient;
mod ribbon;
mod run_table;
mod scalable;
mod scalable_cuckoo;
mod shared;
mod simd;
pub mod sizing;
mod statics;
mod store;
mod together;
#[cfg(feature = "formats")]
mod wide;
mod window;
mod xor;

pub use answers::Answers;
pub use binary_fuse::{BinaryFuse, BinaryFuse8, BinaryFuse16, BinaryFuse32, BinaryFuseShape};
pub use bitmap::Bitmap;
pub use blocked::{BlockedBloom, BlockedLayout, BlockedPlacement, BlockedShape};
pub use bloom::{Bloom, BloomShape};
pub use codec::DecodeError;
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
#[cfg(feature = "formats")]
pub use hash::{ForeignHash, ForeignScheme};
pub use hash::{HashScheme, ItemHash, SecretKey, WellMixed};
pub use item::{EncodedItem, EncodingError, Item, ItemEncoding, ItemValue, UnknownEncoding};
pub use kind::Kind;
pub use probe::BloomPlacement;
pub use quotient::{Quotient, QuotientFingerprint, QuotientShape};
pub use ribbon::{Ribbon, RibbonShape};
pub use scalable::{AtomicScalableBloom, ScalableBloom, ScalableShape};
pub use scalable_cuckoo::{ScalableCuckoo, ScalableCuckooShape};
pub use shared::{AtomicBlockedBloom, AtomicBloom, Shared};
pub use statics::{BuildOptions, Fingerprint};
pub use store::{Relocate, give_memory_back, relocate_box, take_all_from_heap};
#[cfg(feature = "formats")]
pub use wide::{WideBloom, WidePlacement};
pub use window::{Generation, Pace, Window, WindowShape};
pub use xor::{Xor, Xor8, Xor16, Xor32, XorShape};

/// The blocks of the README and the guide are tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide.md")]
    struct Guide;
    #[doc = include_str!("../../../docs/filters.md")]
    struct Filters;
    #[cfg(feature = "formats")]
    #[doc = include_str!("../../../docs/formats.md")]
    struct Formats;
}
