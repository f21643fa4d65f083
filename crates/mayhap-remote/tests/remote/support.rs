//! Common parts of the tests.

use std::ops::RangeInclusive;
use std::time::Duration;

use mayhap_remote::{Answer, Backend, Inserted, Link, LinkOptions, ShardedFilter};
use mayhap_testkit::binomial::band_with_model_error;
use mayhap_testkit::host::{Host, HostOptions};
use mayhap_testkit::items::{member, non_member};

pub(crate) const BACKENDS: [Backend; 3] = [Backend::Bloom, Backend::Mayhap, Backend::Plain];

/// A server with our module. `None` if no server program is installed.
pub(crate) fn host() -> Option<Host> {
    Host::start(&HostOptions::new().our_module(&[]))
}

pub(crate) async fn link(url: &str) -> Link {
    Link::open([url], LinkOptions::default()).await.unwrap()
}

/// A link that gives up soon.
pub(crate) async fn impatient(url: &str) -> Link {
    let mut options = LinkOptions::default();
    options.patience = Duration::from_millis(300);
    Link::open([url], options).await.unwrap()
}

/// The key of a shard, given everything but the mark of its generation, such as `{seen:0001}:g2`.
pub(crate) fn shard_key(host: &Host, begin: &str) -> String {
    let keys = host.talk().must(&["KEYS", &format!("{begin}:????????")]);
    assert_eq!(keys.list().len(), 1, "{keys:?}");
    keys.list()[0].text()
}

pub(crate) fn members(range: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    range.map(member).collect()
}

/// Inserts items in batches, all of which must succeed. Returns the number of new ones.
pub(crate) async fn add_all(filter: &ShardedFilter, items: &[Vec<u8>]) -> usize {
    let mut new = 0;
    for batch in items.chunks(5000) {
        let added = filter.insert(batch).await;
        assert!(added.all_inserted(), "{:?}", added.error());
        new += added.count(Inserted::New);
    }
    new
}

/// Fails unless every item is found.
pub(crate) async fn must_have(filter: &ShardedFilter, items: &[Vec<u8>]) {
    for batch in items.chunks(5000) {
        let answers = filter.may_contain(batch).await;
        assert_eq!(answers.count(Answer::No), 0, "lost");
        assert_eq!(answers.count(Answer::Maybe), batch.len(), "{:?}", answers.error());
    }
}

/// The number of false positives among this many non-members.
pub(crate) async fn false_positives(filter: &ShardedFilter, non_members: u64) -> u64 {
    let mut wrong = 0;
    for from in (0..non_members).step_by(5000) {
        let batch: Vec<Vec<u8>> = (from..non_members.min(from + 5000)).map(non_member).collect();
        let answers = filter.may_contain(&batch).await;
        assert_eq!(answers.count(Answer::NotReady), 0, "{:?}", answers.error());
        wrong += answers.count(Answer::Maybe) as u64;
    }
    wrong
}

/// The number of false positives of a filter with this fill, by the model. For our own blocks the model is
/// within 2 %, and the estimate of their items about the same. The filters of servers are rounded up in their
/// own way.
pub(crate) fn promised(backend: Backend, non_members: u64, rate: f64) -> RangeInclusive<u64> {
    let model_error = if backend == Backend::Plain { 0.04 } else { 0.10 };
    band_with_model_error(non_members, rate, 1e-6, model_error)
}
