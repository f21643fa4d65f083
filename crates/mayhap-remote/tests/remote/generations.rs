//! Generations replace one another while clients insert and look up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mayhap_remote::{
    Answer, Backend, BuildOptions, FilterPlan, Link, PlainFilter, RemoteError, ShardedFilter,
};
use mayhap_testkit::host::{Host, HostOptions};
use mayhap_testkit::items::{member, non_member};
use tokio::task::JoinHandle;

use super::support::{add_all, host, link, members, must_have, shard_key};

const LEASE: Duration = Duration::from_millis(60);

/// The state that all clients of a test share.
#[derive(Default)]
struct Clients {
    stop: AtomicBool,
    /// Items are numbers. Those below this are inserted, or being inserted.
    next: AtomicU64,
    /// Acknowledged items.
    added: Mutex<Vec<u64>>,
    asked: AtomicU64,
    false_negatives: AtomicU64,
    not_ready: AtomicU64,
    refused: AtomicU64,
}

impl Clients {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn snapshot(&self) -> Vec<u64> {
        self.added.lock().unwrap().clone()
    }

    /// Inserts new items, a few at a time.
    async fn add(self: Arc<Self>, filter: ShardedFilter, batch: u64) {
        while !self.is_over() {
            let from = self.next.fetch_add(batch, Ordering::Relaxed);
            let items = members(from..from + batch);
            let added = filter.insert(&items).await;
            match added.all_inserted() {
                true => self.added.lock().unwrap().extend(from..from + batch),
                false => drop(self.refused.fetch_add(batch, Ordering::Relaxed)),
            }
        }
    }

    /// Looks up items that were acknowledged before: the latest, and random ones.
    async fn ask(self: Arc<Self>, filter: ShardedFilter, seed: u64) {
        let mut random = seed;
        while !self.is_over() {
            let items: Vec<Vec<u8>> = {
                let added = self.added.lock().unwrap();
                let latest = added.iter().rev().take(10).copied();
                let any = (0..10).filter_map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    added.get((random >> 33) as usize % added.len().max(1)).copied()
                });
                latest.chain(any).map(member).collect()
            };
            let answers = filter.may_contain(&items).await;
            self.asked.fetch_add(items.len() as u64, Ordering::Relaxed);
            self.false_negatives.fetch_add(answers.count(Answer::No) as u64, Ordering::Relaxed);
            self.not_ready.fetch_add(answers.count(Answer::NotReady) as u64, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }
}

/// Writers and readers, each with its own cached descriptor.
async fn clients(link: &Link, name: &str) -> (Arc<Clients>, Vec<JoinHandle<()>>) {
    let clients = Arc::new(Clients::default());
    let mut all = Vec::new();
    for number in 0..3 {
        let own = ShardedFilter::open(link, name).await.unwrap();
        all.push(tokio::spawn(clients.clone().add(own, 5 + number)));
        let own = ShardedFilter::open(link, name).await.unwrap();
        all.push(tokio::spawn(clients.clone().ask(own, number)));
    }
    (clients, all)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_item_is_lost_while_generations_change() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    let plan = |backend, shards| FilterPlan::new(backend, 400_000, 0.01).shards(shards).lease(LEASE);
    let filter = ShardedFilter::create(&link, "seen", &plan(Backend::Plain, 4)).await.unwrap();
    let (clients, all) = clients(&link, "seen").await;
    let mut by_bits = BuildOptions::default();
    by_bits.image_bytes = 0;
    let turns = [
        (Backend::Bloom, 8, BuildOptions::default()),
        (Backend::Mayhap, 2, BuildOptions::default()),
        (Backend::Plain, 16, BuildOptions::default()),
        (Backend::Plain, 1, by_bits),
        (Backend::Bloom, 4, BuildOptions::default()),
    ];
    for (turn, (backend, shards, options)) in turns.into_iter().enumerate() {
        let mut build = filter.begin_build(&plan(backend, shards), options).await.unwrap();
        // This has every item that was acknowledged before the build began, and not all of the later ones.
        let source: Vec<Vec<u8>> = clients.snapshot().into_iter().map(member).collect();
        for batch in source.chunks(5000) {
            build.insert(batch).await.unwrap();
        }
        assert_eq!(build.commit().await.unwrap(), turn as u64 + 2);
    }
    clients.stop.store(true, Ordering::Relaxed);
    for one in all {
        one.await.unwrap();
    }
    let added: Vec<Vec<u8>> = clients.snapshot().into_iter().map(member).collect();
    let asked = clients.asked.load(Ordering::Relaxed);
    println!("{} items inserted, {asked} looked up, in 5 changes of generation", added.len());
    assert!(added.len() > 2000 && asked > 2000, "{} {asked}", added.len());
    assert_eq!(clients.false_negatives.load(Ordering::Relaxed), 0, "false negatives");
    assert_eq!(clients.not_ready.load(Ordering::Relaxed), 0, "there was a gap");
    assert_eq!(clients.refused.load(Ordering::Relaxed), 0, "an insertion failed");
    must_have(&filter, &added).await;
    let report = filter.info().await.unwrap();
    assert_eq!((report.generation(), report.building().len(), report.retiring().len()), (6, 0, 0));
    // The descriptor and four shards, and nothing of the earlier generations.
    assert_eq!(host.talk().must(&["DBSIZE"]).integer(), 5);
}

/// The counterpart, which must find false negatives: a builder that does not insert its source.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_without_its_source_is_caught() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let plan = FilterPlan::new(Backend::Plain, 400_000, 0.01).shards(4).lease(LEASE);
    let filter = ShardedFilter::create(&link, "seen", &plan).await.unwrap();
    let (clients, all) = clients(&link, "seen").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut build = filter.begin_build(&plan, BuildOptions::default()).await.unwrap();
    build.commit().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    clients.stop.store(true, Ordering::Relaxed);
    for one in all {
        one.await.unwrap();
    }
    assert!(clients.false_negatives.load(Ordering::Relaxed) > 0);
}

#[tokio::test]
async fn only_one_client_builds_and_a_dead_builder_is_overtaken() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let plan = FilterPlan::new(Backend::Plain, 10_000, 0.01).shards(4).lease(LEASE);
    let filter = ShardedFilter::create(&link, "seen", &plan).await.unwrap();
    add_all(&filter, &members(0..1000)).await;
    let mut options = BuildOptions::default();
    options.expiry = Duration::from_millis(400);
    let mut dead = filter.begin_build(&plan, options.clone()).await.unwrap();
    let second = filter.begin_build(&plan, options.clone()).await;
    assert!(matches!(second, Err(RemoteError::Building { expires_ms }) if expires_ms <= 400), "{second:?}");
    tokio::time::sleep(Duration::from_millis(500)).await;
    // Items that are inserted now also go to a build that will never be finished.
    add_all(&filter, &members(1000..1100)).await;
    let mut third = filter.begin_build(&plan, options).await.unwrap();
    assert_eq!((dead.generation(), third.generation()), (2, 3));
    let overtaken = dead.commit().await;
    assert!(matches!(overtaken, Err(RemoteError::Overtaken { generation: 2 })), "{overtaken:?}");
    add_all(&filter, &members(1100..1200)).await;
    third.insert(&members(0..1100)).await.unwrap();
    third.commit().await.unwrap();
    must_have(&filter, &members(0..1200)).await;
    assert_eq!(filter.info().await.unwrap().generation(), 3);
    assert_eq!(host.talk().must(&["DBSIZE"]).integer(), 5, "the dead build is removed");
}

#[tokio::test]
async fn an_aborted_build_leaves_nothing() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let filter = PlainFilter::create(&link, "seen", 10_000, 0.01).await.unwrap();
    assert!(filter.insert(&members(0..1000)).await.all_inserted());
    let mut build = filter.begin_build(20_000, 1e-4, BuildOptions::default()).await.unwrap();
    build.insert(&members(0..500)).await.unwrap();
    let report = filter.info().await.unwrap();
    assert_eq!((report.generation(), report.building()), (1, &[2][..]));
    build.abort().await.unwrap();
    must_have(filter.as_sharded(), &members(0..1000)).await;
    assert_eq!(host.talk().must(&["DBSIZE"]).integer(), 2);
    // The next build has another number: a client that still knows the aborted one finds nothing.
    let mut build = filter.begin_build(20_000, 1e-4, BuildOptions::default()).await.unwrap();
    build.insert(&members(0..1000)).await.unwrap();
    assert_eq!(build.commit().await.unwrap(), 3);
    must_have(filter.as_sharded(), &members(0..1000)).await;
    let non_members: Vec<Vec<u8>> = (0..2000).map(non_member).collect();
    assert!(
        filter.may_contain(&non_members).await.count(Answer::No) > 1990,
        "the rate is one in ten thousand"
    );
    assert_eq!(filter.info().await.unwrap().measures().plain().unwrap().block_bits(), 4096);
}

#[tokio::test]
async fn a_generation_with_a_lost_shard_never_serves() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    for backend in super::support::BACKENDS {
        let plan = FilterPlan::new(backend, 10_000, 0.01).shards(4).lease(LEASE);
        let filter = ShardedFilter::create(&link, backend.name(), &plan).await.unwrap();
        add_all(&filter, &members(0..1000)).await;
        let mut options = BuildOptions::default();
        options.image_bytes = 0;
        let mut build = filter.begin_build(&plan, options).await.unwrap();
        build.insert(&members(0..1000)).await.unwrap();
        let key = shard_key(&host, &format!("{{{}:0002}}:g2", backend.name()));
        host.talk().must(&["DEL", &key]);
        let committed = build.commit().await;
        assert!(committed.is_err(), "{backend:?}");
        must_have(&filter, &members(0..1000)).await;
        build.abort().await.unwrap();
    }
}

#[tokio::test]
async fn the_generation_of_a_dead_builder_is_removed() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    let plan = FilterPlan::new(Backend::Bloom, 10_000, 0.01).shards(4).lease(LEASE);
    let filter = ShardedFilter::create(&link, "seen", &plan).await.unwrap();
    assert!(!filter.remove_dead_build().await.unwrap());
    let mut options = BuildOptions::default();
    options.expiry = Duration::from_millis(300);
    drop(filter.begin_build(&plan, options).await.unwrap());
    let early = filter.remove_dead_build().await;
    assert!(matches!(early, Err(RemoteError::Building { .. })), "{early:?}");
    // One of its shards is lost: items of that shard cannot be inserted.
    host.talk().must(&["DEL", &shard_key(&host, "{seen:0001}:g2")]);
    assert!(!filter.insert(&members(0..100)).await.all_inserted());
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(filter.remove_dead_build().await.unwrap());
    add_all(&filter, &members(0..100)).await;
    must_have(&filter, &members(0..100)).await;
    assert_eq!(host.talk().must(&["DBSIZE"]).integer(), 5);
}
