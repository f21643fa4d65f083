//! Filters on remote servers: Redis, Valkey, a cluster of either, or a mayhap server.
//!
//! ```text
//! items ─▶ shards (pure) ─▶ requests ─▶ Link: nodes, pipelines, redirections ─▶ three answers
//! ```
//!
//! * [`ShardedFilter`] spreads one filter over the servers of a [`Link`]. Its shards are filters of the
//!   servers' own modules, or ordinary strings. [`PlainFilter`] is one such string.
//! * [`Answer`] has three values. If a server cannot tell, the answer is [`Answer::NotReady`], never
//!   [`Answer::No`].
//! * [`Build`] makes the next generation of a filter and swaps it in. The filter answers all the time.
//!
//! `docs/remote.md` draws the layouts and proves that no answer is wrong during a swap.
#![forbid(unsafe_code)]

mod answer;
mod build;
mod descriptor;
mod error;
pub mod guava;
mod java_bitmap;
mod java_swap;
mod link;
mod name;
mod plain;
mod plain_filter;
mod plan;
pub mod redisson;
mod report;
mod request;
mod route;
mod shard;
mod sharded;

pub use answer::{Answer, Answers, Inserted, Insertions};
pub use build::{Build, BuildOptions};
pub use descriptor::DescriptorError;
pub use error::RemoteError;
pub use guava::GuavaBitmap;
pub use link::{Link, LinkOptions};
pub use name::{FilterName, NameError};
pub use plain::{PlainImage, PlainShape};
pub use plain_filter::PlainFilter;
pub use plan::{Backend, FilterPlan, Measures, PlanError};
pub use redis;
pub use redisson::RedissonFilter;
pub use report::{FilterReport, ShardFill};
pub use request::{Access, Request};
pub use sharded::ShardedFilter;

/// Runs the code of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
