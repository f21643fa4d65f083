//! Late events: bytes that a network held back, clients that were stopped, and filters that are created again
//! while a client still knows the old one.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mayhap_remote::{Answer, Backend, FilterPlan, Inserted, Link, LinkOptions, RemoteError, ShardedFilter};
use mayhap_testkit::host::{Host, HostOptions};
use tokio::time::sleep;

use super::support::{add_all, link, members, must_have};

fn plan(lease_ms: u64) -> FilterPlan {
    FilterPlan::new(Backend::Plain, 10_000, 0.01).shards(4).lease(Duration::from_millis(lease_ms))
}

/// A network between clients and a server. It can hold back what clients send.
#[derive(Debug, Default)]
struct Network {
    /// Hold back all data.
    holds_all: AtomicBool,
    /// Hold back the connection that sends the next `SETRANGE`, including that command.
    waits_for_one: AtomicBool,
    holds_one: AtomicBool,
}

impl Network {
    /// The address for clients, and the switches.
    fn before(host: &Host) -> (String, Arc<Self>) {
        let network = Arc::new(Self::default());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let (server, held) = (host.port(), network.clone());
        // It ends with the process: a test has at most one.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else { continue };
                let (up, down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let held = held.clone();
                thread::spawn(move || held.carry(up, server));
                thread::spawn(move || carry_back(down, client));
            }
        });
        (url, network)
    }

    /// Forwards to the server, even after the client is gone: sent data still arrives.
    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let (mut buffer, mut is_the_one) = (vec![0; 1 << 16], false);
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            let is_setrange = || buffer[..bytes].windows(8).any(|word| word == b"SETRANGE");
            if self.waits_for_one.load(SeqCst) && is_setrange() && self.waits_for_one.swap(false, SeqCst) {
                self.holds_one.store(true, SeqCst);
                is_the_one = true;
            }
            while self.holds_all.load(SeqCst) || is_the_one && self.holds_one.load(SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
            if to.write_all(&buffer[..bytes]).is_err() {
                return;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}

fn carry_back(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        // The client may be gone.
        let _ = to.write_all(&buffer[..bytes]);
    }
    let _ = to.shutdown(Shutdown::Both);
}

async fn link_with(url: &str, change: impl FnOnce(&mut LinkOptions)) -> Link {
    let mut options = LinkOptions::default();
    change(&mut options);
    Link::open([url], options).await.unwrap()
}

/// If a string were emptied once more after insertions, it would have lost items and still look complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_shard_creation_erases_nothing() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let (url, network) = Network::before(&host);
    let slow = link_with(&url, |options| options.answering = Duration::from_millis(300)).await;
    network.waits_for_one.store(true, SeqCst);
    let first = ShardedFilter::create(&slow, "seen", &plan(60)).await;
    assert!(network.holds_one.load(SeqCst), "nothing was held");
    // Whether or not it was created: another client creates and uses it.
    let direct = link(&host.url()).await;
    let filter = match &first {
        Ok(filter) => filter.clone(),
        Err(_) => ShardedFilter::create(&direct, "seen", &plan(60)).await.unwrap(),
    };
    add_all(&filter, &members(0..1000)).await;
    network.holds_one.store(false, SeqCst);
    sleep(Duration::from_millis(300)).await;
    must_have(&filter, &members(0..1000)).await;
}

/// A late writer knows the old filter and sets bits at its keys. The new filter must have the item before it
/// is acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_insertion_goes_to_the_serving_filter() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let (url, network) = Network::before(&host);
    let direct = link(&host.url()).await;
    let filter = ShardedFilter::create(&direct, "seen", &plan(100)).await.unwrap();
    let late = ShardedFilter::open(&link(&url).await, "seen").await.unwrap();
    network.holds_all.store(true, SeqCst);
    let adding = tokio::spawn(async move { late.insert(&members(0..50)).await });
    sleep(Duration::from_millis(30)).await;
    filter.delete().await.unwrap();
    let again = ShardedFilter::create(&direct, "seen", &plan(100)).await.unwrap();
    assert_eq!(again.info().await.unwrap().generation(), 1, "the same number as before");
    network.holds_all.store(false, SeqCst);
    let added = adding.await.unwrap();
    assert!(added.all_inserted(), "{:?}", added.error());
    must_have(&again, &members(0..50)).await;
    // And of the old filter nothing is left: there are a descriptor and four shards.
    assert_eq!(host.talk().must(&["DBSIZE"]).integer(), 5);
}

/// A client that may still use the old filter gets no *no* from it for items of the new one, and its
/// insertions into the old one are not acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_created_again_waits_for_clients_of_the_old_one() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    for lose in ["delete", "evict"] {
        let filter = ShardedFilter::create(&link, "seen", &plan(400)).await.unwrap();
        add_all(&filter, &members(0..100)).await;
        let reader = ShardedFilter::open(&link, "seen").await.unwrap();
        let writer = ShardedFilter::open(&link, "seen").await.unwrap();
        let removing = match lose {
            "delete" => Some(tokio::spawn(filter.delete())),
            _ => {
                host.talk().must(&["DEL", "seen"]);
                None
            }
        };
        sleep(Duration::from_millis(30)).await;
        // Created again, while both clients may still use the old descriptor.
        let making = tokio::spawn({
            let link = link.clone();
            async move { ShardedFilter::create(&link, "seen", &plan(400)).await.unwrap() }
        });
        let mut acknowledged = Vec::new();
        while !making.is_finished() {
            let next = 1000 + 10 * acknowledged.len() as u64;
            let added = writer.insert(&members(next..next + 10)).await;
            acknowledged.push((Instant::now(), next, added.all_inserted()));
            sleep(Duration::from_millis(10)).await;
        }
        assert!(acknowledged.iter().any(|(.., is_in)| *is_in), "the old one was used for a while");
        let (made_at, again) = (Instant::now(), making.await.unwrap());
        add_all(&again, &members(200..300)).await;
        assert_eq!(reader.may_contain(&members(200..300)).await.count(Answer::No), 0, "{lose}");
        let added = writer.insert(&members(300..400)).await;
        if added.all_inserted() {
            must_have(&again, &members(300..400)).await;
        }
        for (at, next, is_in) in acknowledged {
            if is_in && at > made_at {
                must_have(&again, &members(next..next + 10)).await;
            }
        }
        if let Some(removing) = removing {
            removing.await.unwrap().unwrap();
        }
        must_have(&again, &members(200..300)).await;
        must_have(&reader, &members(200..300)).await;
        again.delete().await.unwrap();
        host.talk().must(&["FLUSHALL"]);
    }
}

/// If many callers wait for a server that does not answer, all of them fail after the time that one would
/// have waited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_do_not_wait_one_after_another() {
    const CALLERS: u32 = 20;
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let (url, network) = Network::before(&host);
    let link = link_with(&url, |options| {
        options.patience = Duration::from_millis(300);
        options.answering = Duration::from_millis(300);
        options.connecting = Duration::from_millis(300);
    })
    .await;
    let filter = ShardedFilter::create(&link, "seen", &plan(60)).await.unwrap();
    sleep(Duration::from_millis(100)).await;
    network.holds_all.store(true, SeqCst);
    let asking = |number: u64| {
        let filter = filter.clone();
        async move {
            let begun = Instant::now();
            let answers = filter.may_contain(&members(number..number + 1)).await;
            assert_eq!(answers.count(Answer::NotReady), 1);
            assert!(matches!(answers.error(), Some(RemoteError::Patience { .. })), "{:?}", answers.error());
            begun.elapsed()
        }
    };
    let alone = asking(0).await;
    let all: Vec<_> = (0..CALLERS.into()).map(|number| tokio::spawn(asking(number))).collect();
    let mut longest = Duration::ZERO;
    for one in all {
        longest = longest.max(one.await.unwrap());
    }
    network.holds_all.store(false, SeqCst);
    // One after another they would wait 20 times as long. A busy machine needs some time, too.
    assert!(longest < alone * CALLERS / 2, "{longest:?}, and {alone:?} alone");
    assert_ne!(filter.insert(&members(0..1)).await.as_slice(), [Inserted::NotReady]);
}
