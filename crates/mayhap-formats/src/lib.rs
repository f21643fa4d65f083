//! Reads and writes the filters of other programs as filters of [`mayhap`].
//!
//! [`Format`] has all formats by name: it recognises files, reads them, writes them and builds filters from items. Each format also has
//! its own module, with the functions that only this format has; `docs/formats.md` has a chapter on each. Most readers need the encoding
//! of the items, an [`ItemEncoding`](mayhap::ItemEncoding).
//!
//! ```text
//! bytes ──[ Format::sniff ]──▶ it is parquet │ it could be guava, or one of several │ unknown
//!   └────[ Format::read ]────▶ Filter ──[ Format::write ]──▶ bytes      (same rule for placing items, or an error)
//! items ─[ Format::build ]───▶ Filter                                    (different rule: only from the items)
//! ```
//!
//! ```
//! use mayhap::ItemEncoding;
//! use mayhap_formats::{Format, ReadOptions, Sniffed};
//!
//! let seen = Format::Guava.build(["ada", "grace"], 1_000, 0.01, ItemEncoding::Utf8)?;
//! let mut stream = Vec::new();
//! Format::Guava.write(&seen, &mut stream)?;
//!
//! // Later, find out the format of the file.
//! assert_eq!(Format::sniff(&stream), Sniffed::CouldBe(vec![Format::Guava]));
//! let unasked = Format::Guava.read(&stream, &ReadOptions::default()).unwrap_err();
//! assert_eq!(unasked.to_string(), "guava files do not record the item encoding; set `ReadOptions::items`");
//! let found = Format::Guava.read(&stream, &ReadOptions::default().items(ItemEncoding::Utf8))?;
//! assert!(found.may_contain("ada"));
//!
//! // Spark hashes differently: the bits cannot be converted, but a filter can be built from the items.
//! assert!(Format::Spark.write(&found, &mut Vec::new()).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | filters of | module | named | written |
//! |---|---|---|---|
//! | Guava | [`guava`] | `guava` | yes |
//! | Redisson | [`redisson`] | `redisson` | yes |
//! | RedisBloom, Bloom filters | [`redis_bloom`], [`redis_rdb`] | `redis-bloom`, `redis-dump` | yes |
//! | RedisBloom, cuckoo filters | [`redis_cuckoo`], [`redis_rdb`] | `redis-cuckoo`, `redis-dump` | yes |
//! | Parquet | [`parquet`] for files, [`sbbf`] for one filter | `parquet`, `sbbf` | `sbbf` only |
//! | Spark | [`spark`] | `spark` | yes |
//! | Apache DataSketches | [`datasketches`] | `datasketches` | yes |
//! | DCSO | [`dcso`] | `dcso`, `dcso-gzip` | yes |
//! | Go, bits-and-blooms | [`bits_and_blooms`] | `bits-and-blooms`, `bits-and-blooms-json` | yes |
//! | C, Go and xorf, binary fuse and xor filters | [`fast_filter`] | `fuse-c`, `fuse-c-packed`, `fuse-go`, `fuse-xorf`, `fuse-xorf-json`, `xor-c` | yes |
//! | Bitcoin | [`block_filter`], [`bip37`] | `bip158`, `bip37` | yes |
//! | Python | [`pybloom_live`], [`pyprobables`], [`rbloom`] | `pybloom-live`, `pyprobables`, `rbloom` | no |
//! | LevelDB, RocksDB | [`leveldb`], [`rocksdb`] | `leveldb`, `rocksdb` | yes |
//! | Cassandra | [`cassandra`] | `cassandra` | yes |
//!
//! A filter read from another program keeps its hash function and its placement, also in a `.mayhap` file. Such a file opens with `mayhap`
//! alone. If its hash function is HighwayHash, MD5 or SHA, `mayhap` needs the feature `named-hashes`, which this crate switches on.
//!
//! Readers do not trust their input: every length is checked against the available bytes before anything is allocated.
#![forbid(unsafe_code)]

mod compact_size;
mod cursor;
mod foreign;
mod format;
mod redis_chunk;
mod redis_loader;
mod thrift;
mod words;

pub mod bip37;
pub mod bits_and_blooms;
pub mod block_filter;
pub mod cassandra;
pub mod datasketches;
pub mod dcso;
pub mod fast_filter;
pub mod guava;
pub mod leveldb;
pub mod parquet;
pub mod pybloom_live;
pub mod pyprobables;
pub mod rbloom;
pub mod redis_bloom;
pub mod redis_cuckoo;
pub mod redis_rdb;
pub mod redisson;
pub mod rocksdb;
pub mod sbbf;
pub mod spark;

pub use foreign::{Resemblance, WriteError};
pub use format::{Argument, Format, ReadError, ReadOptions, RebuildError, Sniffed, UnknownFormat};

/// Runs the code of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
