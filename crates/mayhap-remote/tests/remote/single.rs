//! One server.

use std::collections::HashSet;
use std::time::Duration;

use mayhap_remote::{
    Answer, Backend, FilterPlan, Inserted, Link, LinkOptions, PlainFilter, RemoteError, Request,
    ShardedFilter,
};
use mayhap_testkit::host::{Host, HostOptions};
use mayhap_testkit::items::non_member;
use redis::Value;

use super::support::{
    BACKENDS, add_all, false_positives, host, impatient, link, members, must_have, promised, shard_key,
};

const CAPACITY: u64 = 40_000;
const NON_MEMBERS: u64 = 150_000;

fn plan(backend: Backend) -> FilterPlan {
    FilterPlan::new(backend, CAPACITY, 0.01).shards(8)
}

#[tokio::test]
async fn members_are_found_and_false_positives_match_the_model() {
    let Some(host) = host() else { return };
    for protocol in ["resp2", "resp3"] {
        let link = link(&format!("{}?protocol={protocol}", host.url())).await;
        for backend in BACKENDS {
            let name = format!("seen-{}-{protocol}", backend.name());
            let filter = ShardedFilter::create(&link, &name, &plan(backend)).await.unwrap();
            let items = members(0..CAPACITY);
            let new = add_all(&filter, &items).await;
            assert!(new as u64 > CAPACITY * 98 / 100, "{backend:?}: {new} new");
            assert_eq!(add_all(&filter, &items[..5000]).await, 0, "none of them is new");
            must_have(&filter, &items).await;
            let report = filter.info().await.unwrap();
            assert_eq!(report.missing().count(), 0);
            let band = promised(backend, NON_MEMBERS, report.expected_fpr());
            let wrong = false_positives(&filter, NON_MEMBERS).await;
            assert!(band.contains(&wrong), "{backend:?}: {wrong} not in {band:?}");
            assert!(wrong as f64 <= NON_MEMBERS as f64 * 0.01 * 1.1, "{backend:?}: {wrong}");
            let opened = ShardedFilter::open(&link, &name).await.unwrap();
            must_have(&opened, &items[..1000]).await;
        }
    }
}

#[tokio::test]
async fn a_filter_that_is_too_full_is_caught() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    let filter = ShardedFilter::create(&link, "seen", &plan(Backend::Plain)).await.unwrap();
    add_all(&filter, &members(0..CAPACITY)).await;
    let band = promised(Backend::Plain, NON_MEMBERS, filter.info().await.unwrap().expected_fpr());
    add_all(&filter, &members(CAPACITY..CAPACITY * 5 / 4)).await;
    let wrong = false_positives(&filter, NON_MEMBERS).await;
    assert!(!band.contains(&wrong), "{wrong} is in {band:?}");
    // A Bloom filter of the server returns an error for every item that it rejects.
    let filter = ShardedFilter::create(&link, "full", &plan(Backend::Bloom)).await.unwrap();
    let added = filter.insert(&members(0..CAPACITY * 2)).await;
    assert!(added.count(Inserted::Full) > 0 && added.count(Inserted::NotReady) == 0, "{:?}", added.error());
    assert!(matches!(added.error(), Some(RemoteError::Full { .. })));
    let answers = filter.may_contain(&members(0..CAPACITY * 2)).await;
    for (added, answer) in added.iter().zip(answers.iter()) {
        assert!(added == Inserted::Full || answer == Answer::Maybe);
    }
}

/// Checks that exactly the items of one damaged shard are not ready.
async fn check_lost_shard(filter: &ShardedFilter, items: &[Vec<u8>], key: &[u8], what: &str) {
    let keys = filter.shard_keys(items).await.unwrap();
    let answers = filter.may_contain(items).await;
    let mut lost = 0;
    for (of, answer) in keys.iter().zip(answers.iter()) {
        let wanted = if of == key { Answer::NotReady } else { Answer::Maybe };
        assert_eq!(answer, wanted, "{what}: {}", String::from_utf8_lossy(of));
        lost += usize::from(of == key);
    }
    assert!(lost > 50, "{what}");
    assert!(answers.error().is_some());
}

#[tokio::test]
async fn exactly_the_items_of_a_lost_shard_are_not_ready() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    let mut talk = host.talk();
    for backend in BACKENDS {
        let filter = ShardedFilter::create(&link, backend.name(), &plan(backend)).await.unwrap();
        let items = members(0..2000);
        add_all(&filter, &items).await;
        let key = filter.shard_keys(&items[..1]).await.unwrap().remove(0);
        talk.must(&[b"DEL".as_slice(), &key]);
        check_lost_shard(&filter, &items, &key, "removed").await;
        // An insertion reports it, and creates no shard that would answer.
        let added = filter.insert(&items).await;
        let keys = filter.shard_keys(&items).await.unwrap();
        for (of, added) in keys.iter().zip(added.iter()) {
            assert_eq!(added == Inserted::NotReady, *of == key);
        }
        check_lost_shard(&filter, &items, &key, "after an insertion").await;
        let stray: &[&[u8]] = match backend {
            Backend::Bloom => &[b"BF.ADD", &key, b"stray"],
            Backend::Mayhap => &[b"MF.RESERVE", &key, b"CAPACITY", b"1000", b"FPR", b"0.01"],
            _ => &[b"SETBIT", &key, b"100000", b"1"],
        };
        talk.must(stray);
        check_lost_shard(&filter, &items, &key, "created again by another client").await;
        talk.must(&[b"DEL".as_slice(), &key]);
        talk.must(&[b"RPUSH".as_slice(), &key, b"a list"]);
        check_lost_shard(&filter, &items, &key, "something else").await;
        let report = filter.info().await.unwrap();
        assert_eq!(report.missing().count(), 1);
    }
}

#[tokio::test]
async fn a_string_that_is_too_short_is_not_ready_after_its_end() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    let filter = PlainFilter::create(&link, "seen", CAPACITY, 0.01).await.unwrap();
    let items = members(0..4000);
    assert!(filter.insert(&items).await.all_inserted());
    let mut talk = host.talk();
    let key = shard_key(&host, "{seen:0000}:g1");
    let half = talk.must(&["GETRANGE", &key, "0", "19999"]);
    talk.must(&[b"SET".as_slice(), key.as_bytes(), half.bytes()]);
    let answers = filter.may_contain(&items).await;
    assert_eq!(answers.count(Answer::No), 0);
    // 20 000 of about 50 000 bytes.
    let there = answers.count(Answer::Maybe);
    assert!((1300..=1900).contains(&there), "{there}");
    // A string that was lost and created again by an insertion has one bit among zeros.
    talk.must(&["DEL", &key]);
    assert_eq!(filter.insert(&items).await.count(Inserted::NotReady), items.len());
    assert_eq!(filter.may_contain(&items).await.count(Answer::NotReady), items.len());
}

#[tokio::test]
async fn no_item_is_denied_when_the_server_is_down() {
    let Some(mut host) = Host::start(&HostOptions::new()) else { return };
    let link = impatient(&host.url()).await;
    let filter = PlainFilter::create(&link, "seen", 1000, 0.01).await.unwrap();
    assert!(filter.insert(&["ada"]).await.all_inserted());
    host.kill();
    let answers = filter.may_contain(&["ada", "alan"]).await;
    assert_eq!(answers.count(Answer::NotReady), 2);
    assert!(matches!(answers.error(), Some(RemoteError::Patience { .. })), "{:?}", answers.error());
    assert_eq!(filter.insert(&["ada"]).await.as_slice(), [Inserted::NotReady]);
    // The server lost everything: the filter is missing, and there is still no *no*.
    host.restart();
    let answers = filter.may_contain(&["ada", "alan"]).await;
    assert_eq!(answers.count(Answer::NotReady), 2);
    assert!(matches!(answers.error(), Some(RemoteError::Missing { .. })), "{:?}", answers.error());
    let again = PlainFilter::create(&link, "seen", 1000, 0.01).await.unwrap();
    assert_eq!(again.may_contain(&["ada"]).await.as_slice(), [Answer::No]);
}

#[tokio::test]
async fn foreign_values_at_the_filters_name_are_rejected() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = impatient(&host.url()).await;
    let filter = PlainFilter::create(&link, "seen", 1000, 0.01).await.unwrap();
    assert!(filter.insert(&["ada"]).await.all_inserted());
    let mut talk = host.talk();
    let good = talk.must(&["GET", "seen"]).text();
    let huge = "a".repeat(100_000);
    let lost = [
        "",
        "hello",
        &huge,
        &good.replace("blocks=", "blocks=9"),
        &good.replace("shards=1", "shards=65536"),
        &good.replace("lease_ms 1000", "lease_ms 18446744073709551615"),
        &good[..good.len() / 2],
        "mayhap-remote 1\n",
    ];
    for text in lost {
        talk.must(&["SET", "seen", text]);
        let opened = PlainFilter::open(&link, "seen").await;
        match opened {
            Err(RemoteError::Descriptor { .. } | RemoteError::Missing { .. }) => {}
            // 65 536 shards that do not exist: no answer.
            Ok(filter) => {
                assert_eq!(filter.may_contain(&["ada"]).await.as_slice(), [Answer::NotReady], "{text}");
            }
            Err(error) => panic!("{text}: {error}"),
        }
    }
    talk.must(&["DEL", "seen"]);
    talk.must(&["RPUSH", "seen", "a list"]);
    let opened = PlainFilter::open(&link, "seen").await;
    assert!(matches!(opened, Err(RemoteError::Refused { .. })), "{opened:?}");
    let created = PlainFilter::create(&link, "seen", 1000, 0.01).await;
    assert!(matches!(created, Err(RemoteError::Refused { .. })), "{created:?}");
    assert_eq!(talk.must(&["LLEN", "seen"]).integer(), 1, "the value is not changed");
}

#[tokio::test]
async fn filters_are_created_once_and_removed_completely() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    for backend in BACKENDS {
        let plan = plan(backend).lease(Duration::from_millis(50));
        let filter = ShardedFilter::create(&link, "seen", &plan).await.unwrap();
        let second = ShardedFilter::create(&link, "seen", &plan).await;
        assert!(matches!(second, Err(RemoteError::Exists { .. })), "{second:?}");
        add_all(&filter, &members(0..100)).await;
        let other = ShardedFilter::open(&link, "seen").await.unwrap();
        must_have(&other, &members(0..100)).await;
        filter.delete().await.unwrap();
        assert_eq!(host.talk().must(&["DBSIZE"]).integer(), 0, "{backend:?}");
        assert_eq!(other.may_contain(&["ada"]).await.as_slice(), [Answer::NotReady]);
        let gone = ShardedFilter::open(&link, "seen").await;
        assert!(matches!(gone, Err(RemoteError::Missing { .. })), "{gone:?}");
    }
    let names = ["", "a}b"];
    for name in names {
        let refused = ShardedFilter::create(&link, name, &plan(Backend::Plain)).await;
        assert!(matches!(refused, Err(RemoteError::Name(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn replies_stay_with_their_requests() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let requests = (0..5000_u64).map(|number| match number % 3 {
        0 => Request::write("SET", format!("k{number}").as_bytes()).arg(number),
        1 => Request::write("NONSENSE", b"k"),
        _ => Request::read("STRLEN", format!("k{}", number - 2).as_bytes()),
    });
    let answers = link.ask(requests.collect()).await;
    assert_eq!(answers.len(), 5000);
    for (number, answer) in answers.iter().enumerate() {
        match (number % 3, answer) {
            (0, Ok(_)) => {}
            (1, Err(error)) => assert_eq!(error.code(), Some("ERR")),
            (2, Ok(Value::Int(length))) => {
                assert_eq!(*length as usize, (number - 2).to_string().len());
            }
            other => panic!("{number}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn addresses_are_checked() {
    let none: [&str; 0] = [];
    assert!(matches!(Link::open(none, LinkOptions::default()).await, Err(RemoteError::Address { .. })));
    for odd in ["http://localhost", "rediss://localhost/#insecure", "nonsense"] {
        let opened = Link::open([odd], LinkOptions::default()).await;
        assert!(matches!(opened, Err(RemoteError::Address { .. })), "{odd}: {opened:?}");
    }
    let mut options = LinkOptions::default();
    options.connecting = Duration::from_millis(500);
    let unreachable = Link::open(["redis://127.0.0.1:1"], options).await;
    assert!(matches!(unreachable, Err(RemoteError::Connect { .. })), "{unreachable:?}");
    assert!(!format!("{:?}", unreachable.err()).contains("secret"));
}

#[tokio::test]
async fn a_filter_can_be_filled_before_it_serves() {
    let Some(host) = host() else { return };
    let link = link(&host.url()).await;
    for backend in BACKENDS {
        let items = members(0..CAPACITY);
        let mut build =
            ShardedFilter::begin(&link, backend.name(), &plan(backend), Default::default()).await.unwrap();
        for batch in items.chunks(10_000) {
            build.insert(batch).await.unwrap();
        }
        let early = ShardedFilter::open(&link, backend.name()).await;
        assert!(matches!(early, Err(RemoteError::Missing { .. })), "{early:?}");
        assert_eq!(build.commit().await.unwrap(), 1);
        let filter = ShardedFilter::open(&link, backend.name()).await.unwrap();
        must_have(&filter, &items).await;
        let keys: HashSet<Vec<u8>> = filter.shard_keys(&items).await.unwrap().into_iter().collect();
        assert_eq!(keys.len(), 8);
        let few: Vec<Vec<u8>> = (0..500).map(non_member).collect();
        assert!(filter.may_contain(&few).await.count(Answer::No) > 450);
    }
}
