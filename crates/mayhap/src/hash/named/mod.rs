//! The named hash functions: those that other systems use, matched bit for bit.
//!
//! ```text
//! name ─▶ NamedHash ─▶ digest(item) ─▶ Digest            (chosen at run time)
//!         murmur3::x64_128(item, seed) ─▶ [u64; 2]       (known when the code is written)
//! ```
//!
//! Call a function directly from its family's module: no allocation, nothing to set up. Every function accepts every length from
//! zero up, and none can panic. The values never change: each is tested against the program that defined it.
//!
//! The feature `named-hashes` adds the functions that come from other crates (`crypto`, `highwayhash`), and `NamedHash`, which has
//! all functions by name.
//!
//! They are for foreign formats and for data hashed elsewhere. Our own filters do not place their bits by them.

#[cfg(feature = "named-hashes")]
mod by_name;
mod city_core;
#[cfg(feature = "named-hashes")]
mod digest;
mod le;

pub mod city;
#[cfg(feature = "named-hashes")]
pub mod crypto;
pub mod farm;
pub mod fnv;
#[cfg(feature = "named-hashes")]
pub mod highwayhash;
pub mod jenkins;
pub mod leveldb;
pub mod murmur2;
pub mod murmur3;
pub mod siphash;
pub mod spooky;
pub mod xxhash;
pub mod xxph3;

#[cfg(feature = "named-hashes")]
pub use by_name::{NamedHash, ParseNamedHashError};
#[cfg(feature = "named-hashes")]
pub use digest::Digest;
