//! Builds that lose something on the way, are given up, or die: nothing wrong is put in place, and nothing is left behind.

use std::time::Duration;

use mayhap_remote::{Backend, BuildOptions, FilterPlan, Link, RemoteError, ShardedFilter};
use mayhap_testkit::host::{Host, HostOptions};
use tokio::time::{sleep, timeout};

use super::support::{BACKENDS, add_all, host, link, members, must_have, shard_key, wrong_answers};

const LEASE: Duration = Duration::from_millis(60);

fn plan(backend: Backend, capacity: u64, shards: u32) -> FilterPlan {
    FilterPlan::new(backend, capacity, 0.01).shards(shards).lease(LEASE)
}

fn short_lived() -> BuildOptions {
    let mut options = BuildOptions::default();
    options.expiry = Duration::from_millis(300);
    options
}

/// All that is on the server.
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
async fn a_lost_shard_is_not_made_again_by_its_image() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let filter = a_filter(&link).await;
    let mut build = filter.begin_build(&plan(Backend::Plain, 10_000, 4), Default::default()).await.unwrap();
    build.add(&members(0..1000)).await.unwrap();
    // Acknowledged, and in no image.
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

/// Has the server refuse what needs more memory than so much from now on.
fn allow_bytes(host: &Host, more: u64) {
    let used: u64 = host.talk().info("used_memory").parse().unwrap();
    host.talk().must(&["CONFIG", "SET", "maxmemory", &(used + more).to_string()]);
}

#[tokio::test]
async fn a_build_that_cannot_be_made_leaves_nothing() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    // A server that has no such filters.
    let created = ShardedFilter::create(&link, "seen", &plan(Backend::Bloom, 10_000, 4)).await;
    assert!(matches!(created, Err(RemoteError::Refused { .. })), "{created:?}");
    assert_eq!(keys(&host), 0);
    // No room for the first generation, and for one beside another.
    let large = plan(Backend::Plain, 16_000_000, 16);
    allow_bytes(&host, 8 << 20);
    let created = ShardedFilter::create(&link, "seen", &large).await;
    assert!(matches!(&created, Err(error) if error.code() == Some("OOM")), "{created:?}");
    assert_eq!(keys(&host), 0);
    let filter = a_filter(&link).await;
    let begun = filter.begin_build(&large, BuildOptions::default()).await;
    assert!(matches!(&begun, Err(error) if error.code() == Some("OOM")), "{begun:?}");
    assert_eq!(keys(&host), 5, "neither shards nor the lock");
    add_all(&filter, &members(1000..1100)).await;
    // At once, and without waiting for anybody's lock.
    host.talk().must(&["CONFIG", "SET", "maxmemory", "0"]);
    let mut build = filter.begin_build(&large, BuildOptions::default()).await.unwrap();
    build.add(&members(0..1100)).await.unwrap();
    // No room for the images: it can still be given up.
    allow_bytes(&host, 2 << 20);
    let committed = build.commit().await;
    assert!(matches!(&committed, Err(error) if error.code() == Some("OOM")), "{committed:?}");
    build.abort().await.unwrap();
    must_have(&filter, &members(0..1100)).await;
    assert_eq!(keys(&host), 5);
}

#[tokio::test]
async fn what_is_left_of_builds_that_died_early_is_found_and_removed() {
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
async fn a_first_build_that_came_to_nothing_is_no_dead_end() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    for backend in BACKENDS {
        let plan = plan(backend, 10_000, 4);
        let begin = || ShardedFilter::begin(&link, "seen", &plan, short_lived());
        // Given up: there is nothing.
        begin().await.unwrap().abort().await.unwrap();
        assert_eq!(keys(&host), 0, "{backend:?}");
        // Died: somebody may still be at it, until the lock expires.
        drop(begin().await.unwrap());
        let early = begin().await;
        assert!(matches!(early, Err(RemoteError::Building { .. })), "{early:?}");
        sleep(Duration::from_millis(400)).await;
        drop(begin().await.unwrap());
        // The lock is gone: at once.
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
async fn a_filter_with_far_too_many_items_says_so() {
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
            let observed = wrong_answers(&filter, NON_MEMBERS).await as f64 / NON_MEMBERS as f64;
            let expected = report.expected_fpr();
            assert!((expected - observed).abs() < 0.05, "{backend:?}, {items}: {expected}, but {observed}");
            assert!(report.over_capacity(), "{backend:?}, {items}");
        }
    }
}

#[tokio::test]
async fn a_commit_that_was_dropped_can_be_tried_again_or_given_up() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let filter = a_filter(&link).await;
    let large = plan(Backend::Plain, 20_000_000, 64);
    for is_given_up in [true, false] {
        let mut build = filter.begin_build(&large, BuildOptions::default()).await.unwrap();
        build.add(&members(0..1000)).await.unwrap();
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
async fn a_lost_shard_is_named_and_a_lost_descriptor_is_nobodys_doing() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    for backend in BACKENDS {
        let filter = ShardedFilter::create(&link, "seen", &plan(backend, 10_000, 4)).await.unwrap();
        let build = filter.begin_build(&plan(backend, 10_000, 4), short_lived()).await.unwrap();
        let (old, new) = (shard_key(&host, "{seen:0001}:g1"), shard_key(&host, "{seen:0001}:g2"));
        host.talk().must(&["DEL", &new]);
        let added = filter.add(&members(0..100)).await;
        let named = matches!(added.error(), Some(RemoteError::Shard { key, .. }) if *key == new);
        assert!(named, "{backend:?}: {:?}", added.error());
        host.talk().must(&["DEL", &old]);
        let asked = filter.ask(&members(0..100)).await;
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

/// What lies beside a shard is sent in pieces, and joined only if all of them are still there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_is_lost_on_its_way_is_sent_again_or_refused() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let filter = a_filter(&link).await;
    // One shard of several pieces, filled so that each of them matters.
    let large = plan(Backend::Plain, 10_000_000, 1);
    let (mut lost, mut put, mut refused) = (0, 0, 0);
    for round in 0..6 {
        let mut build = filter.begin_build(&large, BuildOptions::default()).await.unwrap();
        build.add(&members(0..20_000)).await.unwrap();
        let beside = shard_key(&host, &format!("{{seen:0000}}:g{}", build.generation())) + ":image";
        // In the last round whatever is sent is removed.
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
    println!("{lost} lost; {put} put in place, {refused} refused");
    assert!(lost > 6 && put > 0 && refused > 0);
}

#[tokio::test]
async fn a_builder_that_was_away_leaves_a_filter_alone_that_began_anew() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let small = plan(Backend::Plain, 10_000, 4);
    let mut away = ShardedFilter::begin(&link, "seen", &small, short_lived()).await.unwrap();
    away.add(&members(5000..9000)).await.unwrap();
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
    assert_eq!(keys(&host), 5, "not even a lock");
}

/// A shard that somebody else made in the place of a lost one has none of what was added to it before.
#[tokio::test]
async fn a_shard_that_somebody_else_made_again_is_never_put_in_place() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    for (backend, remake) in [
        (Backend::Bloom, &["BF.RESERVE", "", "0.01", "10000"][..]),
        (Backend::Mayhap, &["MF.RESERVE", "", "KIND", "bloom", "CAPACITY", "10000"]),
        (Backend::Plain, &["SETBIT", "", "99999", "1"]),
    ] {
        let filter = ShardedFilter::create(&link, "seen", &plan(backend, 10_000, 4)).await.unwrap();
        let mut build = filter.begin_build(&plan(backend, 10_000, 4), short_lived()).await.unwrap();
        build.add(&members(0..1000)).await.unwrap();
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
async fn nothing_is_removed_under_a_builder() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let filter = a_filter(&link).await;
    let mut build =
        filter.begin_build(&plan(Backend::Plain, 10_000, 4), BuildOptions::default()).await.unwrap();
    let refused = filter.clone().delete().await;
    assert!(matches!(refused, Err(RemoteError::Building { .. })), "{refused:?}");
    build.add(&members(0..1000)).await.unwrap();
    build.commit().await.unwrap();
    must_have(&filter, &members(0..1000)).await;
    filter.delete().await.unwrap();
    assert_eq!(keys(&host), 0);
}
