//! A new generation in one step.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mayhap::{Bloom, ItemEncoding};
use mayhap_formats::redisson;
use mayhap_remote::guava::{GuavaBitmap, GuavaImage, GuavaShape, Rounding, Strategy};
use mayhap_remote::{Answer, Link, LinkOptions, RedissonFilter, RemoteError};
use mayhap_testkit::host::{Cluster, HostOptions, Wire};

use crate::server;

fn users() -> Vec<String> {
    (0..200).map(|i| format!("user:{i}")).collect()
}

fn filled(capacity: u64, items: &[String]) -> Bloom {
    let mut filter = redisson::create(capacity, 0.001, ItemEncoding::Utf8).unwrap();
    filter.insert_batch(items);
    filter
}

/// Looks up the users again and again while `rebuild` runs several times. Returns the number of answers other
/// than *maybe*.
async fn wrong_answers<F: Future<Output = ()>>(
    link: &Link,
    rounds: usize,
    rebuild: impl Fn(usize) -> F,
) -> usize {
    let (done, wrong, asked) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (link, done, wrong, asked) = (link.clone(), done.clone(), wrong.clone(), asked.clone());
            tokio::spawn(async move {
                let filter = RedissonFilter::open(&link, "users", ItemEncoding::Utf8).await.unwrap();
                while !done.load(Ordering::Relaxed) {
                    let answers = filter.may_contain(&users()).await;
                    wrong.fetch_add(200 - answers.count(Answer::Maybe), Ordering::Relaxed);
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for round in 0..rounds {
        rebuild(round).await;
        let before = asked.load(Ordering::Relaxed);
        while asked.load(Ordering::Relaxed) < before + 2 {
            tokio::task::yield_now().await;
        }
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    wrong.load(Ordering::Relaxed)
}

/// Every other generation has another shape.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_never_see_half_of_a_new_generation() {
    let Some((_host, link, mut talk)) = server().await else { return };
    let filter = &RedissonFilter::open(&link, "users", ItemEncoding::Utf8).await.unwrap();
    filter.replace_with(&filled(1_000, &users())).await.unwrap();
    let wrong = wrong_answers(&link, 30, |round| async move {
        filter.replace_with(&filled(1_000 + 50_000 * (round as u64 % 3), &users())).await.unwrap();
    });
    assert_eq!(wrong.await, 0);
    let names = talk.must(&["KEYS", "*"]).list().iter().map(Wire::text).collect::<Vec<_>>();
    assert!(names.iter().all(|name| !name.contains(":loading:") || name.ends_with(":done")), "{names:?}");

    // The usual way, to delete and fill again, is noticed.
    let link_of_builder = &link;
    let wrong = wrong_answers(&link, 3, |round| async move {
        filter.delete().await.unwrap();
        let size = 1_000 + 50_000 * (round as u64 % 3);
        let made = RedissonFilter::try_init(link_of_builder, "users", size, 0.001, ItemEncoding::Utf8).await;
        for user in users() {
            assert!(made.as_ref().unwrap().insert(&[user]).await.all_inserted());
        }
    });
    assert!(wrong.await > 0);
}

#[tokio::test]
async fn a_new_generation_takes_over_name_config_and_expiry() {
    let Some((_host, link, mut talk)) = server().await else { return };
    let filter = RedissonFilter::open(&link, "users", ItemEncoding::Utf8).await.unwrap();
    let first = filled(100, &users()[..50]);
    filter.replace_with(&first).await.unwrap();
    assert_eq!(talk.must(&["GET", "users"]).bytes(), redisson::bitmap(&first).unwrap());
    talk.must(&["PEXPIRE", "users", "500000"]);
    // More than one piece, and more than one batch of pieces.
    let large = filled(5_000_000, &users());
    let mut watched = Vec::new();
    let watch = |bytes| {
        watched.push(bytes);
        ControlFlow::Continue(())
    };
    filter.replace_watched(&large, watch).await.unwrap();
    let expected = redisson::bitmap(&large).unwrap();
    assert_eq!(watched, [0, 8 << 20, expected.len() as u64]);
    assert!(talk.must(&["GET", "users"]).bytes() == expected);
    for name in ["users", "{users}:config"] {
        assert!((1..=500_000).contains(&talk.must(&["PTTL", name]).integer()), "{name}");
    }
    assert_eq!(filter.config().await.unwrap(), redisson::config(&large).unwrap());
    assert_eq!(filter.may_contain(&users()).await.count(Answer::Maybe), 200);

    // A transfer that was stopped, a filter without Redisson's layout and one with other items change
    // nothing.
    let stopped = filter.replace_watched(&first, |_| ControlFlow::Break(())).await;
    assert!(matches!(stopped, Err(RemoteError::Stopped)));
    let ours = Bloom::for_capacity(10, 0.01, 0).unwrap();
    assert!(matches!(filter.replace_with(&ours).await, Err(RemoteError::OtherLayout { .. })));
    let kryo = redisson::create(10, 0.01, ItemEncoding::Kryo5).unwrap();
    let refused = filter.replace_with(&kryo).await.unwrap_err().to_string();
    assert!(refused.contains("its items are kryo5, not utf8"), "{refused}");
    assert!(talk.must(&["GET", "users"]).bytes() == expected);

    // An empty filter has no bitmap.
    filter.replace_with(&filled(100, &[])).await.unwrap();
    assert_eq!(talk.ask("EXISTS users"), Wire::Integer(0));
    assert_eq!(talk.ask("HGET {users}:config expectedInsertions"), Wire::Bulk(b"100".to_vec()));
    let names = talk.must(&["KEYS", "*:loading:*"]).list().iter().map(Wire::text).collect::<Vec<_>>();
    assert!(names.iter().all(|name| name.ends_with(":done")), "{names:?}");
}

#[tokio::test]
async fn a_new_generation_stays_in_its_slot_of_a_cluster() {
    let Some(cluster) = Cluster::start(3, 0, &HostOptions::new()) else { return };
    let link = Link::open(cluster.urls(), LinkOptions::default()).await.unwrap();
    let shape = GuavaShape::sized(1_000, 0.01, Rounding::Since33, Strategy::Mitz64).unwrap();
    let mut image = GuavaImage::empty(shape, ItemEncoding::Utf8).unwrap();
    users().iter().for_each(|user| {
        image.insert(user);
    });
    let mut owners = Vec::new();
    for name in ["users", "seen", "{tag}:users", "a{b", "three", "four"] {
        let bitmap = GuavaBitmap::new(&link, &format!("g:{name}"), shape, ItemEncoding::Utf8);
        bitmap.replace_with(&image).await.unwrap();
        assert_eq!(bitmap.may_contain(&users()).await.count(Answer::Maybe), 200, "{name}");
        owners.push(cluster.owner(0, cluster.slot(name)));
        if name == "a{b" {
            // Then Redisson keeps its config in another slot.
            continue;
        }
        let filter = RedissonFilter::open(&link, name, ItemEncoding::Utf8).await.unwrap();
        filter.replace_with(&filled(1_000, &users())).await.unwrap();
        assert!(filter.insert(&["one more"]).await.all_inserted(), "{name}");
        assert_eq!(filter.may_contain(&users()).await.count(Answer::Maybe), 200, "{name}");
    }
    // While its slot migrates, key by key.
    let users_filter = RedissonFilter::open(&link, "users", ItemEncoding::Utf8).await.unwrap();
    let slot = cluster.slot("users");
    let from = cluster.owner(0, slot);
    let to = (from + 1) % 3;
    let all_there = async || users_filter.may_contain(&users()).await.count(Answer::Maybe) == 200;
    cluster.begin_move(slot, from, to);
    assert!(all_there().await, "before the first key");
    cluster.move_names(slot, from, to);
    assert!(all_there().await, "after the last key");
    assert!(users_filter.insert(&["on the way"]).await.all_inserted());
    cluster.end_move(slot, to);
    assert!(all_there().await, "when it is done");
    assert_eq!(users_filter.may_contain(&["on the way"]).await.as_slice(), [Answer::Maybe]);
    owners.sort_unstable();
    owners.dedup();
    assert!(owners.len() > 1, "names on more than one node");
}
