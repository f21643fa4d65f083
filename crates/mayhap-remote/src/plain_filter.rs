//! A plain filter in one string: the case of a single shard.

use crate::answer::{Additions, Answers};
use crate::build::{Build, BuildOptions};
use crate::report::FilterReport;
use crate::sharded::ShardedFilter;
use crate::{Backend, FilterPlan, Link, RemoteError};

/// A filter in one ordinary string of any Redis or Valkey: one `GETRANGE` for a lookup, one `BITFIELD` for an addition.
///
/// The same as a [`ShardedFilter`] of the plain backend with one shard, for up to some 430 million items at 1 %; its answers
/// mean the same.
#[derive(Clone, Debug)]
pub struct PlainFilter(ShardedFilter);

impl PlainFilter {
    /// Makes a new, empty filter for `capacity` items.
    ///
    /// # Errors
    /// There is one of this name, numbers make no sense, or servers do not do as they should.
    pub async fn create(
        link: &Link,
        name: impl AsRef<[u8]>,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, RemoteError> {
        Ok(Self(ShardedFilter::create(link, name, &plan(capacity, target_fpr)).await?))
    }

    /// The filter of this name.
    ///
    /// # Errors
    /// There is none, or something else.
    pub async fn open(link: &Link, name: impl AsRef<[u8]>) -> Result<Self, RemoteError> {
        Ok(Self(ShardedFilter::open(link, name).await?))
    }

    /// Asks about items; an answer for each.
    pub async fn ask<I: AsRef<[u8]>>(&self, items: &[I]) -> Answers {
        self.0.ask(items).await
    }

    /// Adds items; what became of each.
    pub async fn add<I: AsRef<[u8]>>(&self, items: &[I]) -> Additions {
        self.0.add(items).await
    }

    /// Begins to build the next generation, for `capacity` items.
    ///
    /// # Errors
    /// As [`ShardedFilter::begin_build`].
    pub async fn begin_build(
        &self,
        capacity: u64,
        target_fpr: f64,
        options: BuildOptions,
    ) -> Result<Build, RemoteError> {
        self.0.begin_build(&plan(capacity, target_fpr), options).await
    }

    /// What it is, and how full.
    ///
    /// # Errors
    /// There is no such filter, or nobody says what it is.
    pub async fn info(&self) -> Result<FilterReport, RemoteError> {
        self.0.info().await
    }

    /// Removes it.
    ///
    /// # Errors
    /// As [`ShardedFilter::delete`].
    pub async fn delete(self) -> Result<(), RemoteError> {
        self.0.delete().await
    }

    /// The same filter, as one of shards.
    #[must_use]
    pub fn as_sharded(&self) -> &ShardedFilter {
        &self.0
    }
}

fn plan(capacity: u64, target_fpr: f64) -> FilterPlan {
    FilterPlan::new(Backend::Plain, capacity, target_fpr).shards(1)
}
