//! Builds that lose data, are aborted, or die: no incomplete generation serves, and no keys are left.

use std::time::Duration;

use mayhap_remote::{Backend, BuildOptions, FilterPlan, Link, RemoteError, ShardedFilter};
use mayhap_testkit::host::{Host, HostOptions};
use tokio::time::{sleep, timeout};

use super::support::{BACKENDS, add_all, false_positives, host, link, members, must_have, shard_key};

const LEASE: Duration = Duration::from_millis(60);

fn plan(backend: Backend, capacity: u64, shards: u32) -> FilterPlan {
    FilterPlan::new(backend, capacity, 0.01).shards(shards).lease(LEASE)
}

fn short_lived() -> BuildOptions {
    let mut options = BuildOptions::default();
    options.expiry = Duration::from_millis(300);
    options
}

/// The number of keys on the server.
fn keys(host: &Host) -> i64 {
    host.talk().must(&["DBSIZE"]).integer()
}

/// A filter of four plain shards with a thousand items.
async fn a_filter(link: &Link) -> ShardedFilter {
    let filter = ShardedFilter::create(link, "seen", &plan(Backend::Plain, 10_000, 4)).await.unwrap();
    add_all(&filter, &members(0..1000)).await;
    filter
}

#[tokio::test]
async fn an_image_does_not_restore_a_lost_shard() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let filter = a_filter(&link).await;
    let mut build = filter.begin_build(&plan(Backend::Plain, 10_000, 4), Default::default()).await.unwrap();
    build.insert(&members(0..1000)).await.unwrap();
    // Acknowledged, but in no image.
    add_all(&filter, &members(1000..1400)).await;
    let key = shard_key(&host, "{seen:0002}:g2");
    host.talk().must(&["DEL", &key]);
    for _ in 0..2 {
        let committed = build.commit().await;
        assert!(matches!(&committed, Err(RemoteError::Shard { key: of, .. }) if *of == key), "{committed:?}");
    }
    must_have(&filter, &members(0..1400)).await;
    assert_eq!(filter.info().await.unwrap().generation(), 1);
    build.abort().await.unwrap();
    must_have(&filter, &members(0..1400)).await;
    assert_eq!(keys(&host), 5);
}

/// From now on the server rejects commands that need more than this much additional memory.
fn allow_bytes(host: &Host, more: u64) {
    let used: u64 = host.talk().info("used_memory").parse().unwrap();
    host.talk().must(&["CONFIG", "SET", "maxmemory", &(used + more).to_string()]);
}

#[tokio::test]
async fn a_build_that_fails_early_leaves_nothing() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    // A server without these filters.
    let created = ShardedFilter::create(&link, "seen", &plan(Backend::Bloom, 10_000, 4)).await;
    assert!(matches!(created, Err(RemoteError::Refused { .. })), "{created:?}");
    assert_eq!(keys(&host), 0);
    // No memory for the first generation, and for a second one.
    let large = plan(Backend::Plain, 16_000_000, 16);
    allow_bytes(&host, 8 << 20);
    let created = ShardedFilter::create(&link, "seen", &large).await;
    assert!(matches!(&created, Err(error) if error.code() == Some("OOM")), "{created:?}");
    assert_eq!(keys(&host), 0);
    let filter = a_filter(&link).await;
    let begun = filter.begin_build(&large, BuildOptions::default()).await;
    assert!(matches!(&begun, Err(error) if error.code() == Some("OOM")), "{begun:?}");
    assert_eq!(keys(&host), 5, "neither shards nor the lock are left");
    add_all(&filter, &members(1000..1100)).await;
    // Immediately, without waiting for a lock.
    host.talk().must(&["CONFIG", "SET", "maxmemory", "0"]);
    let mut build = filter.begin_build(&large, BuildOptions::default()).await.unwrap();
    build.insert(&members(0..1100)).await.unwrap();
    // No memory for the images: the build can still be aborted.
    allow_bytes(&host, 2 << 20);
    let committed = build.commit().await;
    assert!(matches!(&committed, Err(error) if error.code() == Some("OOM")), "{committed:?}");
    build.abort().await.unwrap();
    must_have(&filter, &members(0..1100)).await;
    assert_eq!(keys(&host), 5);
}

#[tokio::test]
async fn keys_of_builds_that_died_early_are_found_and_removed() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let filter = a_filter(&link).await;
    let large = plan(Backend::Plain, 4_000_000, 64);
    let (mut died, mut most) = (0, 0);
    for after_ms in (5..200).step_by(9) {
        let begun = filter.begin_build(&large, BuildOptions::default());
        died += usize::from(timeout(Duration::from_millis(after_ms), begun).await.is_err());
        most = most.max(keys(&host));
        add_all(&filter, &members(1000..1100)).await;
        host.talk().must(&["DEL", "seen:build", "{seen}:build"]);
    }
    assert!(died > 5 && most > 20, "{died} died, {most} keys at most: none died half way");
    filter.begin_build(&large, short_lived()).await.unwrap().abort().await.unwrap();
    must_have(&filter, &members(0..1100)).await;
    assert_eq!(keys(&host), 5);
}

#[tokio::test]
async fn a_failed_first_build_does_not_block_the_name() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    for backend in BACKENDS {
        let plan = plan(backend, 10_000, 4);
        let begin = || ShardedFilter::begin(&link, "seen", &plan, short_lived());
        // Aborted: nothing is left.
        begin().await.unwrap().abort().await.unwrap();
        assert_eq!(keys(&host), 0, "{backend:?}");
        // Died: until the lock expires, the builder may still be alive.
        drop(begin().await.unwrap());
        let early = begin().await;
        assert!(matches!(early, Err(RemoteError::Building { .. })), "{early:?}");
        sleep(Duration::from_millis(400)).await;
        drop(begin().await.unwrap());
        // The lock is gone: the next build begins immediately.
        host.talk().must(&["DEL", "{seen}:build"]);
        let filter = ShardedFilter::create(&link, "seen", &plan).await.unwrap();
        add_all(&filter, &members(0..1000)).await;
        must_have(&filter, &members(0..1000)).await;
        assert_eq!(keys(&host), 5, "{backend:?}");
        filter.delete().await.unwrap();
        assert_eq!(keys(&host), 0, "{backend:?}");
    }
}

#[tokio::test]
async fn an_overfull_filter_reports_its_rate() {
    const NON_MEMBERS: u64 = 20_000;
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    for backend in [Backend::Mayhap, Backend::Plain] {
        let filter = ShardedFilter::create(&link, backend.name(), &plan(backend, 2000, 4)).await.unwrap();
        add_all(&filter, &members(0..1900)).await;
        assert!(!filter.info().await.unwrap().over_capacity(), "{backend:?}");
        for items in [4000, 10_000, 60_000] {
            add_all(&filter, &members(1900..items)).await;
            let report = filter.info().await.unwrap();
            let observed = false_positives(&filter, NON_MEMBERS).await as f64 / NON_MEMBERS as f64;
            let expected = report.expected_fpr();
            assert!((expected - observed).abs() < 0.05, "{backend:?}, {items}: {expected}, but {observed}");
            assert!(report.over_capacity(), "{backend:?}, {items}");
        }
    }
}

#[tokio::test]
async fn a_dropped_commit_can_be_retried_or_aborted() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let filter = a_filter(&link).await;
    let large = plan(Backend::Plain, 20_000_000, 64);
    for is_given_up in [true, false] {
        let mut build = filter.begin_build(&large, BuildOptions::default()).await.unwrap();
        build.insert(&members(0..1000)).await.unwrap();
        let mut dropped = 0;
        for after_ms in 1..12 {
            dropped += usize::from(timeout(Duration::from_millis(after_ms), build.commit()).await.is_err());
        }
        assert!(dropped > 5, "{dropped}");
        if is_given_up {
            build.abort().await.unwrap();
            assert_eq!(keys(&host), 5);
        } else {
            build.commit().await.unwrap();
            assert_eq!(keys(&host), 65);
        }
        must_have(&filter, &members(0..1000)).await;
    }
}

#[tokio::test]
async fn errors_name_a_lost_shard_and_a_lost_descriptor() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    for backend in BACKENDS {
        let filter = ShardedFilter::create(&link, "seen", &plan(backend, 10_000, 4)).await.unwrap();
        let build = filter.begin_build(&plan(backend, 10_000, 4), short_lived()).await.unwrap();
        let (old, new) = (shard_key(&host, "{seen:0001}:g1"), shard_key(&host, "{seen:0001}:g2"));
        host.talk().must(&["DEL", &new]);
        let added = filter.insert(&members(0..100)).await;
        let named = matches!(added.error(), Some(RemoteError::Shard { key, .. }) if *key == new);
        assert!(named, "{backend:?}: {:?}", added.error());
        host.talk().must(&["DEL", &old]);
        let asked = filter.may_contain(&members(0..100)).await;
        let named = matches!(asked.error(), Some(RemoteError::Shard { key, .. }) if *key == old);
        assert!(named, "{backend:?}: {:?}", asked.error());
        build.abort().await.unwrap();
        let mut build = filter.begin_build(&plan(backend, 10_000, 4), short_lived()).await.unwrap();
        host.talk().must(&["DEL", "seen"]);
        let committed = build.commit().await;
        assert!(matches!(committed, Err(RemoteError::Vanished { .. })), "{committed:?}");
        build.abort().await.unwrap();
        assert!(host.talk().must(&["KEYS", "*:g3*"]).list().is_empty(), "shards are left");
        assert_eq!(host.talk().must(&["EXISTS", "{seen}:build"]).integer(), 0, "the lock is left");
        host.talk().must(&["FLUSHALL"]);
    }
}

/// An image is sent in pieces, and joined only if all of them are still there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_image_is_sent_again_or_fails_the_build() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let filter = a_filter(&link).await;
    // One shard of several pieces, filled so that each of them matters.
    let large = plan(Backend::Plain, 10_000_000, 1);
    let (mut lost, mut put, mut refused) = (0, 0, 0);
    for round in 0..6 {
        let mut build = filter.begin_build(&large, BuildOptions::default()).await.unwrap();
        build.insert(&members(0..20_000)).await.unwrap();
        let beside = shard_key(&host, &format!("{{seen:0000}}:g{}", build.generation())) + ":image";
        // In the last round everything that is sent is removed.
        let most = if round == 5 { i64::MAX } else { round };
        let mut talk = host.talk();
        let spoiler = tokio::task::spawn_blocking(move || {
            let mut removed = 0;
            let until = std::time::Instant::now() + Duration::from_secs(2);
            while removed <= most && std::time::Instant::now() < until {
                removed += talk.must(&["DEL", &beside]).integer();
            }
            removed
        });
        match build.commit().await {
            Ok(_) => {
                put += 1;
                must_have(&filter, &members(0..20_000)).await;
            }
            Err(RemoteError::Shard { .. }) => {
                refused += 1;
                build.abort().await.unwrap();
                must_have(&filter, &members(0..1000)).await;
            }
            Err(error) => panic!("{error}"),
        }
        lost += spoiler.await.unwrap();
    }
    println!("{lost} lost; {put} committed, {refused} failed");
    assert!(lost > 6 && put > 0 && refused > 0);
}

#[tokio::test]
async fn a_builder_that_was_stopped_does_not_touch_a_filter_created_again() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let small = plan(Backend::Plain, 10_000, 4);
    let mut away = ShardedFilter::begin(&link, "seen", &small, short_lived()).await.unwrap();
    away.insert(&members(5000..9000)).await.unwrap();
    sleep(Duration::from_millis(400)).await;
    let next = ShardedFilter::begin(&link, "seen", &small, short_lived()).await.unwrap();
    next.abort().await.unwrap();
    // The same name and number.
    let filter = a_filter(&link).await;
    assert_eq!((away.generation(), filter.info().await.unwrap().generation()), (1, 1));
    let key = shard_key(&host, "{seen:0001}:g1");
    let before = host.talk().must(&["BITCOUNT", &key]).integer();
    for _ in 0..2 {
        let committed = away.commit().await;
        assert!(matches!(committed, Err(RemoteError::Overtaken { .. })), "{committed:?}");
    }
    assert!(away.abort().await.is_err());
    must_have(&filter, &members(0..1000)).await;
    assert_eq!(host.talk().must(&["BITCOUNT", &key]).integer(), before);
    assert_eq!(keys(&host), 5, "no lock is left either");
}

/// A shard that another client created in place of a lost one has none of the earlier items.
#[tokio::test]
async fn a_shard_recreated_by_another_client_never_serves() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    for (backend, remake) in [
        (Backend::Bloom, &["BF.RESERVE", "", "0.01", "10000"][..]),
        (Backend::Mayhap, &["MF.RESERVE", "", "KIND", "bloom", "CAPACITY", "10000"]),
        (Backend::Plain, &["SETBIT", "", "99999", "1"]),
    ] {
        let filter = ShardedFilter::create(&link, "seen", &plan(backend, 10_000, 4)).await.unwrap();
        let mut build = filter.begin_build(&plan(backend, 10_000, 4), short_lived()).await.unwrap();
        build.insert(&members(0..1000)).await.unwrap();
        let key = shard_key(&host, "{seen:0001}:g2");
        host.talk().must(&["DEL", &key]);
        let words: Vec<&str> = remake.iter().map(|word| if word.is_empty() { &key } else { *word }).collect();
        host.talk().must(&words);
        let committed = build.commit().await;
        assert!(
            matches!(&committed, Err(RemoteError::Shard { key: of, .. }) if *of == key),
            "{backend:?}: {committed:?}"
        );
        build.abort().await.unwrap();
        filter.delete().await.unwrap();
        assert_eq!(keys(&host), 0, "{backend:?}");
    }
}

#[tokio::test]
async fn delete_fails_during_a_build() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let filter = a_filter(&link).await;
    let mut build =
        filter.begin_build(&plan(Backend::Plain, 10_000, 4), BuildOptions::default()).await.unwrap();
    let refused = filter.clone().delete().await;
    assert!(matches!(refused, Err(RemoteError::Building { .. })), "{refused:?}");
    build.insert(&members(0..1000)).await.unwrap();
    build.commit().await.unwrap();
    must_have(&filter, &members(0..1000)).await;
    filter.delete().await.unwrap();
    assert_eq!(keys(&host), 0);
}
