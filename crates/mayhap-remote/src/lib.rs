//! Filters that live on remote servers: a Redis, a Valkey, a cluster of them, or a mayhap server.
//!
//! ```text
//! items ─▶ shards (pure) ─▶ requests ─▶ Link: nodes, pipelines, redirections ─▶ three answers
//! ```
//!
//! * [`ShardedFilter`] spreads one filter over the servers of a [`Link`], kept by their own filters or by ordinary strings;
//!   [`PlainFilter`] is the case of one string.
//! * [`Answer`] has three values: what cannot be known is [`Answer::NotReady`], and never *absent*.
//! * [`Build`] makes the next generation of a filter and puts it in place, with no moment without an answer.
//!
//! `docs/remote.md` draws the layouts and has the argument for that.
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

pub use answer::{Added, Additions, Answer, Answers};
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
