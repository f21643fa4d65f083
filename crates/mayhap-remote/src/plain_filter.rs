//! A plain filter in one string: a filter with a single shard.

use crate::answer::{Answers, Insertions};
use crate::build::{Build, BuildOptions};
use crate::report::FilterReport;
use crate::sharded::ShardedFilter;
use crate::{Backend, FilterPlan, Link, RemoteError};

/// A filter in one ordinary string of any Redis or Valkey: one `GETRANGE` for a lookup, one `BITFIELD` for an
/// insertion.
///
/// The same as a [`ShardedFilter`] with the plain backend and one shard, with the same answers. It holds up
/// to about 430 million items at 1 %.
#[derive(Clone, Debug)]
pub struct PlainFilter(ShardedFilter);

impl PlainFilter {
    /// Creates a new, empty filter for `capacity` items.
    ///
    /// # Errors
    /// The name is in use, a parameter is invalid, or a server fails.
    pub async fn create(
        link: &Link,
        name: impl AsRef<[u8]>,
        capacity: u64,
        target_fpr: f64,
    ) -> Result<Self, RemoteError> {
        Ok(Self(ShardedFilter::create(link, name, &plan(capacity, target_fpr)).await?))
    }

    /// Opens the filter with this name.
    ///
    /// # Errors
    /// There is no such filter, or the name holds something else.
    pub async fn open(link: &Link, name: impl AsRef<[u8]>) -> Result<Self, RemoteError> {
        Ok(Self(ShardedFilter::open(link, name).await?))
    }

    /// Looks up items and returns an answer for each.
    pub async fn may_contain<I: AsRef<[u8]>>(&self, items: &[I]) -> Answers {
        self.0.may_contain(items).await
    }

    /// Inserts items and returns a result for each.
    pub async fn insert<I: AsRef<[u8]>>(&self, items: &[I]) -> Insertions {
        self.0.insert(items).await
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

    /// Reports the parameters and the fill.
    ///
    /// # Errors
    /// There is no such filter, or its descriptor cannot be read.
    pub async fn info(&self) -> Result<FilterReport, RemoteError> {
        self.0.info().await
    }

    /// Removes the filter.
    ///
    /// # Errors
    /// As [`ShardedFilter::delete`].
    pub async fn delete(self) -> Result<(), RemoteError> {
        self.0.delete().await
    }

    /// The same filter, as a [`ShardedFilter`].
    #[must_use]
    pub fn as_sharded(&self) -> &ShardedFilter {
        &self.0
    }
}

fn plan(capacity: u64, target_fpr: f64) -> FilterPlan {
    FilterPlan::new(Backend::Plain, capacity, target_fpr).shards(1)
}
