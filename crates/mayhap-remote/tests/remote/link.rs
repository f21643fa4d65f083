//! How a link treats servers: replicas, servers that do not answer or are still loading, and requests that
//! must not run twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mayhap::ItemEncoding;
use mayhap_remote::redis::{Value, cmd};
use mayhap_remote::{
    Access, Answer, Inserted, Link, LinkOptions, PlainFilter, RedissonFilter, RemoteError, Request,
};
use mayhap_testkit::host::{Act, Host, HostOptions, Scripted, programs};

use super::support::{link, members, must_have};

/// A link that gives up soon.
fn hasty(patience_ms: u64, answering_ms: u64) -> LinkOptions {
    let mut options = LinkOptions::default();
    options.patience = Duration::from_millis(patience_ms);
    (options.answering, options.connecting) =
        (Duration::from_millis(answering_ms), Duration::from_millis(answering_ms));
    options
}

/// A server and its replica.
fn pair(options: &HostOptions) -> Option<(Host, Host)> {
    let options = options.clone().words(&["--repl-diskless-sync-delay", "0", "--repl-timeout", "3600"]);
    let (master, replica) = (Host::start(&options)?, Host::start(&options)?);
    replica.follow(&master);
    Some((master, replica))
}

fn pairs() -> impl Iterator<Item = (Host, Host)> {
    programs().into_iter().filter_map(|program| pair(&HostOptions::new().program(program)))
}

/// Waits until the replica has everything.
fn catch_up(master: &Host, replica: &Host) {
    let begun = Instant::now();
    while master.talk().info("master_repl_offset") != replica.talk().info("master_repl_offset") {
        assert!(begun.elapsed() < Duration::from_secs(60), "the replica does not catch up");
        thread::sleep(Duration::from_millis(5));
    }
}

fn get(key: &str, access: Access) -> Request {
    Request::whole(cmd("GET").arg(key).take(), key.as_bytes(), access)
}

/// A master did not answer for a while, and a stale replica was given too. The link used the replica as the
/// server, for ever, and it answered *no* for acknowledged items.
#[tokio::test]
async fn a_replica_is_never_used_as_the_server() {
    let Some((master, replica)) = pair(&HostOptions::new()) else { return };
    let link = Link::open([master.url(), replica.url()], hasty(2500, 300)).await.unwrap();
    let filter = PlainFilter::create(&link, "seen", 10_000, 0.01).await.unwrap();
    catch_up(&master, &replica);
    // From here on it gets no changes.
    replica.talk().must(&["REPLICAOF", "127.0.0.1", "1"]);
    must_be_in(&filter, &members(0..100)).await;
    master.pause();
    let answers = filter.may_contain(&members(0..100)).await;
    assert_eq!(answers.count(Answer::NotReady), 100, "{:?}", answers.error());
    master.resume();
    must_have(filter.as_sharded(), &members(0..100)).await;
    assert_eq!(link.masters(), [format!("127.0.0.1:{}", master.port())]);
}

/// A caller that knows that a server is down can test whether it is back, without the full wait.
#[tokio::test]
async fn a_hurried_link_gives_up_soon_and_notices_a_server_that_is_back() {
    let is_silent = Arc::new(AtomicBool::new(false));
    let silent = is_silent.clone();
    let server = Scripted::start(move |words| match (words[0].as_str(), Act::of_a_master(words, false)) {
        _ if silent.load(Ordering::Relaxed) => Act::BeSilent,
        (_, Some(act)) => act,
        _ => Act::text("here"),
    });
    let link = Link::open([server.url()], hasty(600_000, 600_000)).await.unwrap();
    link.set_hurried(true);
    is_silent.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        // Two waits of a second each for a server that does not answer, not ten minutes.
        let begun = Instant::now();
        let error = link.ask_one(get("a", Access::Read)).await.unwrap_err();
        assert!(matches!(error, RemoteError::Patience { .. }), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    }
    let once = link.ask_one(get("a", Access::Once)).await.unwrap_err();
    assert!(matches!(once, RemoteError::Unsure { .. }), "it may have run: {once}");
    is_silent.store(false, Ordering::Relaxed);
    let begun = Instant::now();
    while link.ask_one(get("a", Access::Read)).await.is_err() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the server is back, but the link does not notice"
        );
    }
    link.set_hurried(false);
    assert_eq!(link.ask_one(get("a", Access::Read)).await.unwrap(), Value::BulkString(b"here".to_vec()));
}

async fn must_be_in(filter: &PlainFilter, items: &[Vec<u8>]) {
    let added = filter.insert(items).await;
    assert!(added.all_inserted(), "{:?}", added.error());
}

/// Given only a replica, a link used it as the server, for users with and without permission for `INFO`.
#[tokio::test]
async fn a_link_to_a_replica_alone_fails() {
    for (master, replica) in pairs() {
        replica.talk().must(&["ACL", "SETUSER", "bob", "on", ">x", "~*", "+get"]);
        let address = format!("127.0.0.1:{}", replica.port());
        for url in [replica.url(), format!("redis://bob:x@{address}")] {
            for may_ask_replicas in [false, true] {
                let mut options = LinkOptions::default();
                options.read_from_replicas = may_ask_replicas;
                let opened = Link::open([url.as_str()], options).await.unwrap_err();
                assert!(
                    matches!(&opened, RemoteError::Replica { address: of } if *of == address),
                    "{opened}"
                );
                assert!(opened.to_string().contains(&format!("{address} is a replica")), "{opened}");
            }
        }
        let link = Link::open([replica.url(), master.url()], LinkOptions::default()).await.unwrap();
        assert_eq!(link.masters(), [format!("127.0.0.1:{}", master.port())]);
    }
}

/// A server became a replica, as a returning master does after a failover. Its clients are disconnected. They
/// came back, and it answered them.
#[tokio::test]
async fn a_server_that_became_a_replica_is_no_longer_used() {
    let Some((old, new)) = pair(&HostOptions::new()) else { return };
    let link = Link::open([old.url(), new.url()], hasty(2500, 300)).await.unwrap();
    let alone = Link::open([old.url()], hasty(500, 300)).await.unwrap();
    link.ask_one(Request::write("SET", b"x").arg("1")).await.unwrap();
    new.talk().must(&["REPLICAOF", "NO", "ONE"]);
    old.talk().must(&["REPLICAOF", "127.0.0.1", "1"]);
    new.talk().must(&["SET", "x", "2"]);
    old.talk().must(&["CLIENT", "KILL", "TYPE", "normal"]);
    for access in [Access::Read, Access::ReadLatest] {
        let asked = alone.ask_one(get("x", access)).await.unwrap_err();
        assert!(asked.to_string().contains("is a replica"), "{asked}");
        assert_eq!(link.ask_one(get("x", access)).await.unwrap(), Value::BulkString(b"2".to_vec()));
    }
    assert_eq!(link.masters(), [format!("127.0.0.1:{}", new.port())]);
}

/// Replicas that were given with their master are used if that is allowed, and only for reads that may be
/// stale. Replicas of another master, and disconnected ones, are not used.
#[tokio::test]
async fn replicas_given_with_their_master_answer_stale_reads() {
    for ((master, replica), (_, other)) in pairs().zip(pairs()) {
        let mut options = LinkOptions::default();
        options.read_from_replicas = true;
        let urls = [master.url(), replica.url(), other.url()];
        let link = Link::open(urls.clone(), options.clone()).await.unwrap();
        assert_eq!(link.masters(), [format!("127.0.0.1:{}", master.port())]);
        link.ask_one(Request::write("SET", b"x").arg("1")).await.unwrap();
        catch_up(&master, &replica);
        let gets = |host: &Host| {
            let stats = host.talk().ask("INFO commandstats").text();
            let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_get:calls="));
            calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
        };
        for (access, expected) in
            [(Access::Read, (0, 9, 0)), (Access::ReadLatest, (9, 9, 0)), (Access::Write, (18, 9, 0))]
        {
            for _ in 0..9 {
                let answer = link.ask_one(get("x", access)).await.unwrap();
                assert_eq!(answer, Value::BulkString(b"1".to_vec()));
            }
            assert_eq!((gets(&master), gets(&replica), gets(&other)), expected, "{access:?}");
        }
        replica.talk().must(&["REPLICAOF", "127.0.0.1", "1"]);
        let late = Link::open(urls, options).await.unwrap();
        late.ask_one(get("x", Access::Read)).await.unwrap();
        assert_eq!((gets(&master), gets(&replica), gets(&other)), (19, 9, 0));
    }
}

/// With `replicas = 1` and a disconnected replica, a second client that inserted the same item got an
/// acknowledgement. For Valkey, setting bits that are already set is not a change, so `WAIT` had nothing to
/// wait for.
#[tokio::test]
async fn changes_without_a_replica_ack_are_not_acknowledged() {
    for (master, replica) in pairs() {
        let mut options = hasty(500, 5000);
        options.replicas = 1;
        let open = async || Link::open([master.url()], options.clone()).await.unwrap();
        let first = PlainFilter::create(&open().await, "seen", 10_000, 0.01).await.unwrap();
        must_be_in(&first, &members(0..10)).await;
        replica.pause();
        let added = first.insert(&members(10..11)).await;
        assert_eq!(added.as_slice(), [Inserted::NotReady]);
        for _ in 0..2 {
            let second = PlainFilter::open(&open().await, "seen").await.unwrap();
            let added = second.insert(&members(10..11)).await;
            assert_eq!(added.as_slice(), [Inserted::NotReady], "{:?}", master.talk().info("redis_version"));
        }
        replica.resume();
        let second = PlainFilter::open(&open().await, "seen").await.unwrap();
        assert_eq!(second.insert(&members(10..11)).await.as_slice(), [Inserted::MaybeBefore]);
        // The extra key does not stay.
        thread::sleep(Duration::from_millis(1100));
        assert!(master.talk().must(&["KEYS", "*heard*"]).list().is_empty());
    }
}

/// A request that must not run twice, and ran, is not sent again if no replica has acknowledged it. It is not
/// reported as done either.
#[tokio::test]
async fn once_requests_without_a_replica_ack_do_not_run_twice() {
    let Some((master, replica)) = pair(&HostOptions::new()) else { return };
    let mut options = hasty(500, 5000);
    options.replicas = 1;
    let link = Link::open([master.url()], options).await.unwrap();
    replica.pause();
    let counted = link.ask_one(Request::once("INCR", b"count")).await;
    assert!(matches!(counted, Err(RemoteError::Unsure { .. })), "{counted:?}");
    assert_eq!(master.talk().must(&["GET", "count"]).text(), "1");
    replica.resume();
    assert_eq!(link.ask_one(Request::once("INCR", b"count")).await.unwrap(), Value::Int(2));
}

/// The request is not sent again, but replicas may acknowledge it later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_replica_ack_completes_a_once_request() {
    let Some((master, replica)) = pair(&HostOptions::new()) else { return };
    let mut options = hasty(20_000, 5000);
    options.replicas = 1;
    let link = Link::open([master.url()], options).await.unwrap();
    replica.pause();
    let counting = tokio::spawn(async move { link.ask_one(Request::once("INCR", b"count")).await });
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!counting.is_finished());
    replica.resume();
    assert_eq!(counting.await.unwrap().unwrap(), Value::Int(1));
    assert_eq!(master.talk().must(&["GET", "count"]).text(), "1");
}

/// A user without permission for the extra key gets an error immediately.
#[tokio::test]
async fn missing_permission_for_the_extra_key_is_an_error() {
    let Some((master, _replica)) = pair(&HostOptions::new()) else { return };
    master.talk().must(&["ACL", "SETUSER", "bob", "on", ">x", "~{seen}", "~{free}*", "+@all"]);
    let mut options = LinkOptions::default();
    options.replicas = 1;
    let link = Link::open([format!("redis://bob:x@127.0.0.1:{}", master.port())], options).await.unwrap();
    let begun = Instant::now();
    let said = link.ask_one(Request::write("SET", b"{seen}").arg("1")).await.unwrap_err();
    assert_eq!(said.code(), Some("NOPERM"), "{said}");
    assert!(said.to_string().contains("{seen}:mayhap-heard"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let counted = link.ask_one(Request::once("INCR", b"{seen}")).await;
    assert!(matches!(counted, Err(RemoteError::Unsure { .. })), "it ran: {counted:?}");
    assert_eq!(link.ask_one(Request::write("SET", b"{free}").arg("1")).await.unwrap(), Value::Okay);
}

/// A server that accepts every login. Once silenced, it does not answer the commands that `is_unanswered`
/// selects.
fn silenced(is_unanswered: impl Fn(&str) -> bool + Send + Sync + 'static) -> (Scripted, Arc<AtomicBool>) {
    let is_silent: Arc<AtomicBool> = Arc::default();
    let told = is_silent.clone();
    let server = Scripted::start(move |words| match Act::of_a_master(words, false) {
        _ if told.load(Ordering::Relaxed) && is_unanswered(&words[0]) => Act::BeSilent,
        Some(act) => act,
        None => Act::line("$-1"),
    });
    (server, is_silent)
}

/// Ten pipelines for a server that does not answer. The link waited for each, one after another.
#[tokio::test]
async fn a_silent_server_costs_the_time_of_one_pipeline() {
    let (server, is_silent) = silenced(|word| word == "GET");
    let link = Link::open([server.url()], hasty(300, 300)).await.unwrap();
    let many = || (0..10 * 1024).map(|_| get("x", Access::Read)).collect();
    assert!(link.ask(many()).await.iter().all(Result::is_ok));
    is_silent.store(true, Ordering::Relaxed);
    let begun = Instant::now();
    let answers = link.ask(many()).await;
    let took = begun.elapsed();
    println!("ten pipelines for a silent server: {:.2} s", took.as_secs_f64());
    assert!(answers.iter().all(|answer| matches!(answer, Err(RemoteError::Patience { .. }))));
    assert!(took < Duration::from_secs(2), "{took:?}; one after another they took three seconds");
}

/// Eight callers of a server that does not answer. Each read the slot map again, after all others before it.
#[tokio::test]
async fn waiting_tasks_share_one_read_of_the_slot_map() {
    let (server, is_silent) = silenced(|word| word != "CLIENT");
    let link = Link::open([server.url()], hasty(1000, 900)).await.unwrap();
    is_silent.store(true, Ordering::Relaxed);
    let begun = Instant::now();
    let answers = join_all((0..8).map(|_| link.ask_one(get("x", Access::Read)))).await;
    let took = begun.elapsed();
    println!("eight callers of a silent server: {:.2} s", took.as_secs_f64());
    assert!(answers.iter().all(|answer| matches!(answer, Err(RemoteError::Patience { .. }))));
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// A cluster node that still loads its data answers `CLUSTER SLOTS` with an error. The link used it as a
/// server outside a cluster.
#[tokio::test]
async fn a_loading_node_is_not_used_as_a_single_server() {
    let loading = |is_shy: bool| {
        Scripted::start(move |words| match (words[0].as_str(), Act::of_a_master(words, true)) {
            ("HELLO", _) if is_shy => Act::line("-ERR unknown command 'HELLO'"),
            ("INFO", _) if is_shy => {
                Act::line("-NOPERM this user has no permissions to run the 'info' command")
            }
            (_, Some(act)) => act,
            _ => Act::line("-LOADING Redis is loading the dataset in memory"),
        })
    };
    for is_shy in [false, true] {
        let loading = loading(is_shy);
        let known: Arc<AtomicUsize> = Arc::default();
        let port = known.clone();
        let other = Scripted::start(move |words| match Act::of_a_master(words, true) {
            Some(act) => act,
            None if words[0] == "CLUSTER" => Act::Say(format!(
                "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{}\r\n",
                port.load(Ordering::Relaxed)
            )),
            None => Act::line("+here"),
        });
        known.store(other.port().into(), Ordering::Relaxed);
        let link = Link::open([loading.url(), other.url()], LinkOptions::default()).await.unwrap();
        assert!(link.is_cluster());
        assert_eq!(link.masters(), [format!("127.0.0.1:{}", other.port())]);
        let answer = link.ask_one(get("x", Access::Read)).await.unwrap();
        assert_eq!(answer, Value::SimpleString("here".into()));
        let alone = Link::open([loading.url()], LinkOptions::default()).await;
        assert!(matches!(&alone, Err(error) if error.code() == Some("LOADING")), "{alone:?}");
    }
}

/// A count whose answer was lost was sent again.
#[tokio::test]
async fn once_requests_are_sent_once() {
    let lose = |how_many: usize, what: Act| {
        let left = AtomicUsize::new(how_many);
        Scripted::start(move |words| match Act::of_a_master(words, false) {
            Some(act) => act,
            None if words[0] == "WAIT" => Act::line(":0"),
            None if left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok() =>
            {
                what.clone()
            }
            None => Act::line(":1"),
        })
    };
    let count = |access| Request::whole(cmd("INCR").arg("x").take(), b"x", access);
    for what in [Act::HangUp, Act::BeSilent] {
        let server = lose(1, what.clone());
        let link = Link::open([server.url()], hasty(2000, 300)).await.unwrap();
        let counted = link.ask_one(count(Access::Once)).await.unwrap_err();
        assert!(matches!(counted, RemoteError::Unsure { .. }), "{counted}");
        assert!(counted.to_string().contains("must not run twice"), "{counted}");
        assert_eq!(server.heard("INCR"), 1);
        // The next request is independent.
        assert_eq!(link.ask_one(count(Access::Once)).await.unwrap(), Value::Int(1));
        let server = lose(1, what);
        let link = Link::open([server.url()], hasty(2000, 300)).await.unwrap();
        assert_eq!(link.ask_one(count(Access::Write)).await.unwrap(), Value::Int(1));
        assert_eq!(server.heard("INCR"), 2);
    }
    // A refused request did not run.
    for line in ["-LOADING not yet", "-TRYAGAIN soon", "-READONLY not here"] {
        let server = lose(3, Act::line(line));
        let link = Link::open([server.url()], hasty(2000, 300)).await.unwrap();
        assert_eq!(link.ask_one(count(Access::Once)).await.unwrap(), Value::Int(1), "{line}");
        assert_eq!(server.heard("INCR"), 4);
    }
    // Many pipelines: those after the lost one were not sent.
    let server = lose(1, Act::HangUp);
    let link = Link::open([server.url()], hasty(2000, 300)).await.unwrap();
    let answers = link.ask((0..3 * 1024).map(|_| count(Access::Once)).collect()).await;
    let unsure = answers.iter().filter(|answer| matches!(answer, Err(RemoteError::Unsure { .. }))).count();
    assert_eq!((unsure, answers.iter().filter(|answer| answer.is_ok()).count()), (1024, 2048));
    assert!(answers[..1024].iter().all(Result::is_err));
}

/// If no server accepted the connection, nothing was sent, and a retry is safe.
#[tokio::test]
async fn once_requests_that_were_not_sent_are_retried() {
    let Some(mut host) = Host::start(&HostOptions::new()) else { return };
    let link = Link::open([host.url()], hasty(100, 5000)).await.unwrap();
    host.kill();
    link.ask_one(get("x", Access::Read)).await.unwrap_err();
    let restart = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        host.restart();
        host
    });
    let count = || Request::once("INCR", b"x");
    let mut counted = link.ask_one(count()).await;
    while matches!(counted, Err(RemoteError::Patience { .. })) {
        counted = link.ask_one(count()).await;
    }
    assert_eq!(counted.unwrap(), Value::Int(1));
    drop(restart.join());
}

/// With `replicas`, every lookup in a Redisson bitmap waited for replicas, and failed without any.
#[tokio::test]
async fn lookups_wait_for_no_replica() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let filter = RedissonFilter::try_init(&link(&host.url()).await, "seen", 1000, 0.01, ItemEncoding::Bytes)
        .await
        .unwrap();
    let added = filter.insert(&members(0..10)).await;
    assert!(added.all_inserted(), "{:?}", added.error());
    let mut options = hasty(300, 3000);
    (options.read_from_replicas, options.replicas) = (true, 1);
    let link = Link::open([host.url()], options).await.unwrap();
    let filter = RedissonFilter::open(&link, "seen", ItemEncoding::Bytes).await.unwrap();
    let answers = filter.may_contain(&members(0..10)).await;
    assert_eq!(answers.count(Answer::Maybe), 10, "{:?}", answers.error());
    assert_eq!(host.talk().ask("INFO commandstats").text().matches("cmdstat_wait:").count(), 0);
}
