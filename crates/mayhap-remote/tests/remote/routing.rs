//! The same load through our own routing and through that of the client library.

use std::time::{Duration, Instant};

use mayhap_remote::{Link, LinkOptions, Request};
use mayhap_testkit::host::{Cluster, HostOptions};
use redis::cluster::ClusterClient;

const KEYS: u64 = 64;
const BATCH: u64 = 2000;
const ROUNDS: usize = 9;

/// A pipeline of the library's cluster connection goes to one node, so its load is sent as this many parallel
/// commands.
async fn by_library(connection: &redis::cluster_async::ClusterConnection) -> Duration {
    let begun = Instant::now();
    let all = (0..BATCH).map(|number| {
        let mut connection = connection.clone();
        async move {
            let key = format!("{{seen:{:04}}}", number % KEYS);
            let command = redis::cmd("GETRANGE").arg(key).arg(number * 64).arg(number * 64 + 63).take();
            command.query_async::<Vec<u8>>(&mut connection).await.unwrap()
        }
    });
    assert_eq!(futures_util::future::join_all(all).await.len(), BATCH as usize);
    begun.elapsed()
}

async fn by_link(link: &Link) -> Duration {
    let begun = Instant::now();
    let requests = (0..BATCH).map(|number| {
        let key = format!("{{seen:{:04}}}", number % KEYS);
        Request::read("GETRANGE", key.as_bytes()).arg(number * 64).arg(number * 64 + 63)
    });
    assert!(link.ask(requests.collect()).await.iter().all(Result::is_ok));
    begun.elapsed()
}

/// Prints the figures of `docs/decisions/0014-cluster-routing.md`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_through_a_link_is_no_slower() {
    let Some(cluster) = Cluster::start(3, 0, &HostOptions::new()) else { return };
    let link = Link::open(cluster.urls(), LinkOptions::default()).await.unwrap();
    let client = ClusterClient::new(cluster.urls()).unwrap();
    let connection = client.get_async_connection().await.unwrap();
    let writes = (0..KEYS).map(|number| {
        Request::write("SETRANGE", format!("{{seen:{number:04}}}").as_bytes()).arg(0).arg(vec![7_u8; 200_000])
    });
    assert!(link.ask(writes.collect()).await.iter().all(Result::is_ok));
    let (mut library, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        library.push(by_library(&connection).await);
        ours.push(by_link(&link).await);
    }
    library.sort();
    ours.sort();
    let per = |times: &[Duration]| times[ROUNDS / 2].as_secs_f64() * 1e6 / BATCH as f64;
    println!(
        "{BATCH} GETRANGEs of 64 bytes over three nodes: {:.2} µs each by the library, {:.2} µs by the link",
        per(&library),
        per(&ours)
    );
    assert!(per(&ours) <= per(&library), "{ours:?} {library:?}");
}
