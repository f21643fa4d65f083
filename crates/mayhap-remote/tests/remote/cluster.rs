//! A cluster of three masters and three replicas.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mayhap_remote::{Answer, Backend, FilterPlan, Inserted, Link, LinkOptions, ShardedFilter};
use mayhap_testkit::host::{Cluster, HostOptions};
use mayhap_testkit::items::member;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::support::{BACKENDS, false_positives, members, must_have, promised};

const SHARDS: u32 = 64;
const NON_MEMBERS: u64 = 150_000;

/// One cluster at a time: six servers are enough for a small machine.
static ALONE: Mutex<()> = Mutex::const_new(());

/// The number of items: by the variable for a long run. The default is enough to judge by.
fn items() -> u64 {
    std::env::var("MAYHAP_CLUSTER_ITEMS").map_or(100_000, |text| text.parse().expect("a number of items"))
}

/// The backends: by the variable for a long run, such as `bf,mf`. The default is all.
fn backends() -> Vec<Backend> {
    let named = std::env::var("MAYHAP_CLUSTER_BACKENDS").ok();
    let is_named = |backend: &Backend| {
        named.as_ref().is_none_or(|named| named.split(',').any(|name| name == backend.name()))
    };
    BACKENDS.into_iter().filter(is_named).collect()
}

fn cluster() -> Option<Cluster> {
    Cluster::start(3, 1, &HostOptions::new().our_module(&[]))
}

async fn open(cluster: &Cluster, replicas: u32) -> Link {
    let mut options = LinkOptions::default();
    (options.replicas, options.patience) = (replicas, Duration::from_secs(40));
    let link = Link::open(cluster.urls(), options).await.unwrap();
    assert!(link.is_cluster());
    assert_eq!(link.masters().len(), 3);
    link
}

/// Inserts this many members in large batches.
async fn fill(filter: &ShardedFilter, items: u64) -> Duration {
    const BATCH: u64 = 20_000;
    let begun = Instant::now();
    for from in (0..items).step_by(BATCH as usize) {
        let added = filter.insert(&members(from..items.min(from + BATCH))).await;
        assert!(added.all_inserted(), "{:?}", added.error());
    }
    begun.elapsed()
}

/// Looks up some of the members, spread over all of them.
async fn sample(filter: &ShardedFilter, items: u64) {
    let step = (items / 100_000).max(1) as usize;
    let some: Vec<Vec<u8>> = (0..items).step_by(step).map(member).collect();
    must_have(filter, &some).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_filter_over_many_nodes() {
    let _alone = ALONE.lock().await;
    let Some(cluster) = cluster() else { return };
    let link = open(&cluster, 0).await;
    let items = items();
    for backend in backends() {
        let plan = FilterPlan::new(backend, items, 0.01).shards(SHARDS);
        let filter = ShardedFilter::create(&link, backend.name(), &plan).await.unwrap();
        let batched = fill(&filter, items).await.as_secs_f64() / items as f64;
        sample(&filter, items).await;
        let report = filter.info().await.unwrap();
        let wrong = false_positives(&filter, NON_MEMBERS).await;
        let band = promised(backend, NON_MEMBERS, report.expected_fpr());
        assert!(band.contains(&wrong), "{backend:?}: {wrong} not in {band:?}");
        assert!(wrong as f64 <= NON_MEMBERS as f64 * 0.01 * 1.1, "{backend:?}: {wrong}");
        // The fullest shard has room: sizing allows for this spread. At 10^8 items the slack is 0.5 %.
        let measures = report.measures();
        let room = measures.shard_capacity() as f64 * f64::from(SHARDS) / items as f64 - 1.0;
        // A plain shard's items are estimated from its bits.
        let estimate = if backend == Backend::Plain { 0.02 } else { 0.0 };
        assert!(report.spread() <= room + estimate, "{backend:?}: {} > {room}", report.spread());
        assert!(room <= if items >= 100_000_000 { 0.02 } else { 0.2 }, "{room}");
        let few = 2000;
        let begun = Instant::now();
        for item in members(items..items + few) {
            let added = filter.insert(&[item]).await;
            assert_ne!(added.as_slice(), [Inserted::NotReady], "{:?}", added.error());
        }
        let one_by_one = begun.elapsed().as_secs_f64() / few as f64;
        println!(
            "{}: {items} items in {SHARDS} shards: {:.1} µs an item in batches, {:.1} µs alone ({:.0}×); \
             {wrong} of {NON_MEMBERS} wrong ({band:?}); fullest shard {:.2} % above the mean, room for {:.2} %",
            backend.name(),
            batched * 1e6,
            one_by_one * 1e6,
            one_by_one / batched,
            report.spread() * 100.0,
            room * 100.0,
        );
        assert!(one_by_one >= 5.0 * batched, "{backend:?}: {one_by_one} against {batched}");
        if backend == Backend::Plain {
            ask_replicas(&cluster, items).await;
        }
        lose_a_shard(&cluster, &filter).await;
    }
}

/// With permission, lookups go to replicas, and find items that were inserted a while ago.
async fn ask_replicas(cluster: &Cluster, items: u64) {
    let mut options = LinkOptions::default();
    options.read_from_replicas = true;
    let link = Link::open(cluster.urls(), options).await.unwrap();
    let filter = ShardedFilter::open(&link, Backend::Plain.name()).await.unwrap();
    let asked =
        |node: usize| cluster.nodes[node].talk().ask("INFO commandstats").text().contains("cmdstat_getrange");
    assert!(!(3..6).any(asked), "no lookup went to them before");
    sample(&filter, items).await;
    assert!((3..6).all(asked));
}

/// Removes one shard: exactly its items are not ready.
async fn lose_a_shard(cluster: &Cluster, filter: &ShardedFilter) {
    let some = members(0..5000);
    let keys = filter.shard_keys(&some).await.unwrap();
    let key = String::from_utf8(keys[0].clone()).unwrap();
    let owner = cluster.owner(0, cluster.slot(&key));
    cluster.nodes[owner].talk().must(&["DEL", &key]);
    let answers = filter.may_contain(&some).await;
    for (of, answer) in keys.iter().zip(answers.iter()) {
        assert_eq!(answer, if *of == keys[0] { Answer::NotReady } else { Answer::Maybe });
    }
    assert_eq!(filter.info().await.unwrap().missing().count(), 1);
}

/// Inserts and looks up until stopped.
struct Traffic {
    /// Items that were inserted before.
    from: u64,
    stop: AtomicBool,
    /// All items below this number are inserted.
    added: AtomicU64,
    false_negatives: AtomicU64,
    not_ready: AtomicU64,
    failed: AtomicU64,
}

fn traffic(filter: &ShardedFilter, from: u64) -> (Arc<Traffic>, Vec<JoinHandle<()>>) {
    let traffic = Arc::new(Traffic {
        from,
        stop: false.into(),
        added: from.into(),
        false_negatives: 0.into(),
        not_ready: 0.into(),
        failed: 0.into(),
    });
    let (writing, reading) = (traffic.clone(), traffic.clone());
    let (writer, reader) = (filter.clone(), filter.clone());
    let write = tokio::spawn(async move {
        while !writing.stop.load(Ordering::Relaxed) {
            let from = writing.added.load(Ordering::Relaxed);
            let added = writer.insert(&members(from..from + 50)).await;
            match added.all_inserted() {
                true => drop(writing.added.fetch_add(50, Ordering::Release)),
                false => drop(writing.failed.fetch_add(1, Ordering::Relaxed)),
            }
        }
    });
    let read = tokio::spawn(async move {
        let mut turn = 0;
        while !reading.stop.load(Ordering::Relaxed) {
            let added = reading.added.load(Ordering::Acquire);
            turn = (turn + 997) % added.max(1);
            let items: Vec<Vec<u8>> =
                (added.saturating_sub(25)..added).chain(turn..added.min(turn + 25)).map(member).collect();
            let answers = reader.may_contain(&items).await;
            reading.false_negatives.fetch_add(answers.count(Answer::No) as u64, Ordering::Relaxed);
            reading.not_ready.fetch_add(answers.count(Answer::NotReady) as u64, Ordering::Relaxed);
        }
    });
    (traffic, vec![write, read])
}

impl Traffic {
    /// Waits until this many more items are inserted.
    async fn run(&self, more: u64) {
        let (goal, begun) = (self.added.load(Ordering::Relaxed) + more, Instant::now());
        while self.added.load(Ordering::Relaxed) < goal {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing moves");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Fails if an item was lost or a request was not answered.
    async fn end(&self, all: Vec<JoinHandle<()>>, filter: &ShardedFilter, what: &str) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for one in all {
            one.await.unwrap();
        }
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        assert_eq!(count(&self.false_negatives), 0, "{what}: false negatives");
        assert_eq!(count(&self.not_ready), 0, "{what}: not ready");
        assert_eq!(count(&self.failed), 0, "{what}: insertions failed");
        let added = count(&self.added);
        sample(filter, self.from).await;
        must_have(filter, &members(self.from..added)).await;
        added
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_right_while_slots_move_and_masters_die() {
    let _alone = ALONE.lock().await;
    let Some(mut cluster) = cluster() else { return };
    // A change that only the master has is lost with it. A change that a replica has as well is not.
    let link = open(&cluster, 1).await;
    let (mut filters, items) = (Vec::new(), items());
    for backend in backends() {
        let plan = FilterPlan::new(backend, items + 400_000, 0.01).shards(SHARDS);
        let filter = ShardedFilter::create(&link, backend.name(), &plan).await.unwrap();
        fill(&filter, items).await;
        move_a_shard(&cluster, &filter, backend, items).await;
        filters.push(filter);
    }
    if let Some(filter) = filters.last() {
        kill_a_master(&mut cluster, filter, items).await;
    }
    // The other filters were on the same servers, without requests in between.
    for filter in &filters {
        sample(filter, items).await;
    }
}

/// Moves the slot of a shard, step by step, and the slot of the descriptor as well.
async fn move_a_shard(cluster: &Cluster, filter: &ShardedFilter, backend: Backend, items: u64) {
    let (traffic, all) = traffic(filter, items);
    let shard = filter.shard_keys(&members(0..1)).await.unwrap().remove(0);
    let shard = String::from_utf8(shard).unwrap();
    for key in [shard.as_str(), backend.name()] {
        let slot = cluster.slot(key);
        let from = cluster.owner(0, slot);
        let to = (from + 1) % 3;
        traffic.run(500).await;
        cluster.begin_move(slot, from, to);
        traffic.run(500).await;
        assert!(cluster.move_names(slot, from, to) >= 1);
        // Now every request about it goes to the old node, is redirected with ASK, and runs at the new one.
        traffic.run(500).await;
        cluster.end_move(slot, to);
        traffic.run(500).await;
    }
    let added = traffic.end(all, filter, "moving").await;
    println!(
        "{}: {} items inserted and looked up while two slots moved, {items} before",
        backend.name(),
        added - items
    );
}

/// Kills the master of a shard and waits until its replica has taken over.
async fn kill_a_master(cluster: &mut Cluster, filter: &ShardedFilter, items: u64) {
    let (traffic, all) = traffic(filter, items);
    traffic.run(1000).await;
    let shard = filter.shard_keys(&members(0..1)).await.unwrap().remove(0);
    let slot = cluster.slot(&String::from_utf8(shard).unwrap());
    let dead = cluster.owner(0, slot);
    let replica = cluster.replicas(dead)[0];
    let begun = Instant::now();
    cluster.nodes[dead].kill();
    cluster.wait_until("it took over", |cluster| cluster.owner(replica, slot) == replica);
    // The new master has no replica: insertions succeed after the dead node is back as its replica.
    cluster.nodes[dead].restart();
    traffic.run(1000).await;
    let took = begun.elapsed();
    let added = traffic.end(all, filter, "failover").await;
    println!(
        "{} items while a master died, {items} before; insertions succeeded after {:.1} s",
        added - items,
        took.as_secs_f64()
    );
}
