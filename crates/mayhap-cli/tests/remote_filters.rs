//! Filters that stay in their server: `check`, `add`, `info`, `build` and `push` by address, against real servers: mayhap's, a Redis
//! with mayhap's module, a Redis without.

mod program;
#[path = "program/remote.rs"]
mod remote;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mayhap_testkit::host::{Act, Cluster, Host, HostOptions, Scripted, Talk, Wire};
use serde_json::{Value, json};

use program::{empty_folder, error_line, mayhap_in, run};
use remote::{ITEMS, serve, told, well, write_items};

/// All members get a maybe, and few of the non-members.
#[track_caller]
fn knows_its_members(folder: &Path, address: &str, more: &[&str]) {
    let words = [&["check", address, "asked.txt"][..], more].concat();
    let lines = well(folder, &words);
    let members = lines.lines().filter(|line| line.starts_with("member ")).count();
    let wrong = lines.lines().count() - members;
    assert_eq!(members, ITEMS, "{address}");
    assert!(wrong < ITEMS / 10, "{address}: {wrong} of {ITEMS} non-members");
    let noes = well(folder, &[&["check", "-v", "--count", address, "asked.txt"][..], more].concat());
    assert_eq!(noes.trim().parse::<usize>().unwrap(), ITEMS - wrong, "{address}");
    let report = told(folder, &[&["check", "--json", address, "asked.txt"][..], more].concat());
    assert_eq!(
        json!([report["filter"], report["lines"], report["mayhap"], report["not_ready"]]),
        json!([address, 2 * ITEMS, ITEMS + wrong, 0])
    );
}

/// The server's own filters.
fn named_filters(url: &str, ask: &mut dyn FnMut(&str)) {
    let folder = empty_folder("remote_filters", &url.replace(['/', ':'], "-"));
    write_items(&folder);
    for (name, reserve) in [
        ("bloom", "BF.RESERVE bloom 0.01 2000"),
        ("cuckoo", "CF.RESERVE cuckoo 4000"),
        ("mayhap", "MF.RESERVE mayhap CAPACITY 2000 FPR 0.01"),
    ] {
        let address = format!("{url}/{name}");
        let refused = error_line(&folder, &["add", &address, "members.txt"]);
        assert!(refused.contains("there is no filter of this name"), "{refused}");
        ask(reserve);
        let added = told(&folder, &["add", &address, "members.txt", "--json", "--quiet"]);
        assert_eq!(json!([added["filter"], added["items_read"]]), json!([address, ITEMS]));
        assert!(added["items_new"].as_u64().unwrap() > ITEMS as u64 * 9 / 10, "{added}");
        knows_its_members(&folder, &address, &[]);
        let info = told(&folder, &["info", &address, "--json"]);
        assert!(info["filters"][0]["layout"].as_str().unwrap().contains("a filter of the server"), "{info}");
        let shown = well(&folder, &["info", &address]);
        assert!(shown.starts_with(&address), "{shown}");
        assert_eq!(run(&folder, &["check", "-q", &address, "--item", "member 7"]).0, 0);
        assert_eq!(run(&folder, &["check", "-q", &address, "--item", "nobody"]).0, 1);
        let annotated = well(&folder, &["check", "--annotate", &address, "--item", "member 7"]);
        assert_eq!(annotated, "mayhap\tmember 7\n");
    }
    // Queries and additions create nothing, and other types are errors.
    let missing = error_line(&folder, &["check", &format!("{url}/missing"), "--item", "x"]);
    assert!(missing.contains("/missing: there is no filter of this name"), "{missing}");
    ask("SETBIT bits 7 1");
    let bits = error_line(&folder, &["check", &format!("{url}/bits"), "--item", "x"]);
    assert!(bits.contains("--as guava"), "{bits}");
    for words in [&["check", "redis://127.0.0.1:1/x", "--item", "x"][..], &["info", "redis://127.0.0.1:1/x"]]
    {
        let refused = error_line(&folder, words);
        assert!(refused.contains("redis://127.0.0.1:1: no server listens there"), "{refused}");
    }
    let removed = error_line(&folder, &["remove", &format!("{url}/bloom"), "members.txt"]);
    assert!(removed.contains("cannot remove items from a Bloom filter (BF.*)"), "{removed}");
}

#[test]
fn filters_of_mayhaps_server_are_queried_there() {
    let (_server, port) = serve();
    let url = format!("redis://127.0.0.1:{port}");
    let mut connection = redis::Client::open(url.clone()).unwrap().get_connection().unwrap();
    named_filters(&url, &mut |words| {
        let mut command = redis::Cmd::new();
        words.split(' ').for_each(|word| {
            command.arg(word);
        });
        let _: redis::Value = command.query(&mut connection).unwrap();
    });
}

#[test]
fn filters_of_mayhaps_module_are_queried_there() {
    let Some(host) = Host::start(&HostOptions::new().our_module(&[])) else { return };
    let mut talk = host.talk();
    named_filters(&host.url(), &mut |words| {
        assert!(!talk.ask(words).is_refused(), "{words}");
    });
}

#[test]
fn not_ready_is_an_error_and_never_a_no() {
    let (_server, port) = serve();
    let url = format!("redis://127.0.0.1:{port}");
    let mut connection = redis::Client::open(url.clone()).unwrap().get_connection().unwrap();
    let folder = empty_folder("remote_filters", "not ready");
    write_items(&folder);
    // Half of it has arrived.
    well(&folder, &["build", "seen.mayhap", "members.txt", "--quiet", "--kind", "bloom"]);
    let bytes = fs::read(folder.join("seen.mayhap")).unwrap();
    let _: redis::Value =
        redis::cmd("MF.LOAD").arg("half").arg(0).arg(&bytes[..1000]).query(&mut connection).unwrap();
    let address = format!("{url}/half");
    for more in [&[][..], &["-v"], &["--count"], &["-q"]] {
        let words = [&["check", &address, "asked.txt"][..], more].concat();
        let (code, out, error) = run(&folder, &words);
        assert_eq!(code, 2, "{words:?}: {out}{error}");
        assert!(out.is_empty() || more == ["--count"], "{words:?}: {out}");
        assert!(error.contains("no answer for 4,000 of 4,000 lines"), "{error}");
    }
    let (code, out, _) = run(&folder, &["check", "--annotate", &address, "--item", "member 7"]);
    assert_eq!((code, out.as_str()), (2, "not-ready\tmember 7\n"));
    let (code, out, _) = run(&folder, &["check", "--json", &address, "--item", "member 7"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["not_ready"], &report["no"]), (2, &json!(1), &json!(0)));
    assert_eq!(report["items"][0]["mayhap"], Value::Null);
    let added = error_line(&folder, &["add", &address, "members.txt"]);
    assert!(added.contains("not ready"), "{added}");
}

fn in_shards(folder: &Path, url: &str, backend: &str, talk: &mut Talk) {
    write_items(folder);
    let address = format!("{url}/{backend}:seen");
    let sized = ["--items", "4000", "--json", "--quiet"];
    let build =
        [&["build", &address, "members.txt", "--shards", "8", "--backend", backend][..], &sized].concat();
    let report = told(folder, &build);
    assert_eq!(
        json!([report["out"], report["layout"], report["shards"], report["generation"], report["replaced"]]),
        json!([address, backend, 8, 1, false])
    );
    knows_its_members(folder, &address, &[]);
    let taken = error_line(folder, &build);
    assert!(taken.contains("exists already; --force replaces it"), "{taken}");
    well(folder, &["add", &address, "others.txt", "--quiet"]);
    assert_eq!(well(folder, &["check", "-c", &address, "asked.txt"]).trim(), (2 * ITEMS).to_string());

    // A new generation of another size, without the non-members.
    let again = [&build[..3], &["--backend", backend, "--shards", "4", "--force"], &sized].concat();
    let report = told(folder, &again);
    assert_eq!(json!([report["shards"], report["generation"], report["replaced"]]), json!([4, 2, true]));
    knows_its_members(folder, &address, &[]);
    let info = &told(folder, &["info", &address, "--json"])["filters"][0];
    let fields = &info["fields"];
    assert_eq!(
        json!([fields["backend"], fields["shards"], fields["generation"], fields["shards_not_ready"]]),
        json!([backend, 4, 2, 0])
    );

    // One shard is gone: exactly its items have no answer.
    let keys = talk.must(&["KEYS", &format!("{{{backend}:seen:0001}}:g2:*")]);
    talk.must(&["DEL", &keys.list()[0].text()]);
    let (code, out, error) = run(folder, &["check", "--annotate", &address, "asked.txt"]);
    let unready = out.lines().filter(|line| line.starts_with("not-ready\t")).count();
    assert_eq!(code, 2, "{error}");
    // A quarter of all, and seven standard deviations of 27 on either side.
    assert!((800..1_200).contains(&unready), "{unready}");
    assert!(error.contains(" lines (not ready): "), "{error}");
    assert!(!out.lines().any(|line| line.starts_with("no\tmember")), "a member gets a no");
}

#[test]
fn items_are_added_to_shards_of_a_redis_without_a_module() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let mut talk = host.talk();
    let folder = empty_folder("remote_filters", "plain shards");
    in_shards(&folder, &host.url(), "plain", &mut talk);
    // The best backend by default; and an error for one that it does not have.
    let other = format!("{}/other", host.url());
    let report = told(&folder, &["build", &other, "members.txt", "--backend", "plain", "--json", "--quiet"]);
    assert_eq!(json!([report["layout"], report["shards"]]), json!(["plain", 64]));
    let refused =
        error_line(&folder, &["build", &format!("{}/bf", host.url()), "members.txt", "--backend", "bf"]);
    assert!(refused.contains("BF.") || refused.contains("unknown command"), "{refused}");
    let words = ["build", &format!("{}/k", host.url()), "members.txt", "--kind", "ribbon", "--shards", "8"];
    let kind = error_line(&folder, &words);
    assert!(kind.contains("--kind: "), "{kind}");
    let here = error_line(&folder, &["build", "seen.mayhap", "members.txt", "--shards", "8"]);
    assert!(here.contains("redis://host:port/NAME"), "{here}");
}

#[test]
fn items_are_added_to_shards_of_the_module() {
    let Some(host) = Host::start(&HostOptions::new().our_module(&[])) else { return };
    let mut talk = host.talk();
    let folder = empty_folder("remote_filters", "module shards");
    for backend in ["bf", "mf"] {
        in_shards(&folder, &host.url(), backend, &mut talk);
    }
}

/// Ctrl-C during a new generation, whose items come from a pipe that stays open.
#[test]
fn ctrl_c_keeps_the_generation_that_serves() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let mut talk = host.talk();
    let folder = empty_folder("remote_filters", "ctrl-c");
    write_items(&folder);
    let address = format!("{}/seen", host.url());
    well(&folder, &["build", &address, "members.txt", "--shards", "2", "--quiet"]);
    let names = |talk: &mut Talk| {
        let mut names: Vec<String> = talk.must(&["KEYS", "*"]).list().iter().map(Wire::text).collect();
        names.sort();
        names
    };
    let before = names(&mut talk);
    let words = ["build", &address, "--items", "1000000", "--shards", "2", "--force", "--quiet"];
    let mut child =
        mayhap_in(&folder).args(words).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&b"one more\n".repeat(100_000)).unwrap();
    let begun = Instant::now();
    while names(&mut talk).len() <= before.len() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the build does not begin");
        thread::sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let code = child.wait().unwrap().code();
    drop(pipe);
    assert_eq!(code, Some(130));
    assert_eq!(names(&mut talk), before, "a name remains");
    knows_its_members(&folder, &address, &[]);
    // The next build need not wait for the one that was stopped.
    well(&folder, &["build", &address, "members.txt", "--shards", "4", "--force", "--quiet"]);
    knows_its_members(&folder, &address, &[]);
}

#[test]
fn a_cluster_is_one_address() {
    let Some(cluster) = Cluster::start(3, 0, &HostOptions::new()) else { return };
    let folder = empty_folder("remote_filters", "cluster");
    write_items(&folder);
    let [first, second] = [0, 1].map(|node| format!("{}/seen", cluster.urls()[node]));
    well(&folder, &["build", &first, "members.txt", "--shards", "32", "--quiet"]);
    knows_its_members(&folder, &second, &[]);
    let users = format!("{}/users", cluster.urls()[2]);
    well(&folder, &["build", &users, "members.txt", "--format", "redisson", "--items-as", "utf8", "--quiet"]);
    knows_its_members(&folder, &users, &["--items-as", "utf8"]);
}

#[test]
fn redisson_filters_are_built_pushed_queried_and_added_to() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let mut talk = host.talk();
    let folder = empty_folder("remote_filters", "redisson");
    write_items(&folder);
    let address = format!("{}/users", host.url());
    let items_as = ["--items-as", "kryo5"];
    let build = [&["build", &address, "members.txt", "--format", "redisson"][..], &items_as].concat();
    let report = told(&folder, &[&build[..], &["--items", "4000", "--json", "--quiet"]].concat());
    assert_eq!(
        json!([report["layout"], report["capacity"], report["replaced"]]),
        json!(["redisson", 4000, false])
    );
    assert_eq!(talk.ask("HGET {users}:config size"), Wire::Bulk(b"38340".to_vec()));
    knows_its_members(&folder, &address, &items_as);
    let unsaid = error_line(&folder, &["check", &address, "--item", "x"]);
    assert!(unsaid.contains("--items-as"), "{unsaid}");
    let taken = error_line(&folder, &build);
    assert!(taken.contains("--force"), "{taken}");
    let bitmap = talk.must(&["GET", "users"]).bytes().to_vec();

    // The bitmap as a file, with its config: after a push it is the same again.
    fs::write(folder.join("users.bits"), &bitmap).unwrap();
    let config = "size=38340,hashIterations=7,expectedInsertions=4000,falseProbability=0.01";
    let copy = format!("{}/copy", host.url());
    let from = ["--from", "redisson", "--redisson-config", config, "--items-as", "kryo5"];
    well(&folder, &[&["push", "users.bits", &copy][..], &from].concat());
    assert_eq!(talk.must(&["GET", "copy"]).bytes(), bitmap);
    knows_its_members(&folder, &copy, &items_as);
    let taken = error_line(&folder, &[&["push", "users.bits", &copy][..], &from].concat());
    assert!(taken.contains("exists already; --force replaces it"), "{taken}");
    let forced = told(&folder, &[&["push", "users.bits", &copy, "--force", "--json"][..], &from].concat());
    assert_eq!(json!([forced["to"], forced["replaced"]]), json!([copy, true]));

    let added =
        told(&folder, &[&["add", &address, "others.txt", "--json", "--quiet"][..], &items_as].concat());
    assert!(added["items_new"].as_u64().unwrap() > ITEMS as u64 * 9 / 10, "{added}");
    let both = well(&folder, &[&["check", "-c", &address, "asked.txt"][..], &items_as].concat());
    assert_eq!(both.trim(), (2 * ITEMS).to_string());
    let info = &told(&folder, &["info", &address, "--json"])["filters"][0];
    assert_eq!(info["fields"]["expected_insertions"], 4000);
    let estimate = info["fields"]["estimated_items"].as_u64().unwrap();
    assert!((3_800..4_200).contains(&estimate), "{estimate}");

    // Without its bitmap it is not ready, rather than empty.
    talk.must(&["DEL", "users"]);
    let gone = run(&folder, &[&["check", &address, "--item", "member 7"][..], &items_as].concat());
    assert_eq!(gone.0, 2);
    assert!(gone.2.contains("it has no bitmap"), "{}", gone.2);

    // If the server lacks a command, the error names the alternatives.
    well(&folder, &["build", "ours.mayhap", "members.txt", "--kind", "bloom", "--quiet"]);
    let refused = error_line(&folder, &["push", "ours.mayhap", &format!("{}/ours", host.url())]);
    assert!(refused.contains("MF.LOAD") && refused.contains("redisson"), "{refused}");
    let refused =
        error_line(&folder, &["push", "ours.mayhap", &format!("{}/ours", host.url()), "--as", "redisson"]);
    assert!(refused.contains("--format redisson"), "{refused}");
}

#[test]
fn guava_bitmaps_need_flags_and_then_answer() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let folder = empty_folder("remote_filters", "guava");
    write_items(&folder);
    let (file, address) = ("seen.guava", format!("{}/seen", host.url()));
    let items = ["--format", "guava", "--items-as", "utf8", "--items", "2000", "--quiet"];
    well(&folder, &[&["build", file, "members.txt"][..], &items].concat());
    well(&folder, &["push", file, &address, "--items-as", "utf8", "--as", "guava", "--marker"]);
    let shape = [
        "--as",
        "guava",
        "--items-as",
        "utf8",
        "--bits",
        "19200",
        "--probes",
        "7",
        "--strategy",
        "mitz-64",
        "--marker",
    ];
    knows_its_members(&folder, &address, &shape);
    let unsaid =
        error_line(&folder, &["check", &address, "--item", "x", "--as", "guava", "--items-as", "utf8"]);
    assert!(unsaid.contains("--bits and --probes"), "{unsaid}");
    let info = &told(&folder, &[&["info", &address, "--json"][..], &shape].concat())["filters"][0];
    assert_eq!(json!([info["fields"]["bits"], info["fields"]["probes"]]), json!([19200, 7]));
    // Deleted and created again by another program: the marker is missing.
    let mut talk = host.talk();
    talk.must(&["DEL", "seen"]);
    talk.must(&["SETBIT", "seen", "7", "1"]);
    let (code, _, error) = run(&folder, &[&["check", &address, "--item", "member 7"][..], &shape].concat());
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("its marker is not set"), "{error}");
    let unsaid =
        error_line(&folder, &["push", file, &format!("{}/unsaid", host.url()), "--items-as", "utf8"]);
    assert!(unsaid.contains("--as guava stores the filter"), "{unsaid}");
    // An application's bitmap with given dimensions, created in the server.
    let direct = format!("{}/direct", host.url());
    well(&folder, &[&["build", &direct, "members.txt"][..], &items].concat());
    let words =
        ["--as", "guava", "--items-as", "utf8", "--bits", "19200", "--probes", "7", "--strategy", "mitz-64"];
    knows_its_members(&folder, &direct, &words);
}

/// The flags that `build` and `push` print are the ones to query with; the numbers of Guava's formulas would miss members.
#[test]
fn build_and_push_print_the_flags_for_a_guava_bitmap() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let folder = empty_folder("remote_filters", "guava words");
    write_items(&folder);
    let address = format!("{}/seen", host.url());
    let items = ["--format", "guava", "--items-as", "utf8", "--items", "2000"];
    let (code, _, said) = run(&folder, &[&["build", &address, "members.txt"][..], &items].concat());
    let words = said.lines().find_map(|line| line.split_once("query it with ")).map(|(_, words)| words);
    assert_eq!(
        (code, words),
        (0, Some("--as guava --items-as utf8 --bits 19200 --probes 7 --strategy mitz-64"))
    );
    knows_its_members(&folder, &address, &words.unwrap().split(' ').collect::<Vec<_>>());
    let other = ["--as", "guava", "--items-as", "utf8", "--expected-insertions", "2000", "--fpp", "0.01"];
    for verb in ["check", "add"] {
        let refused = error_line(&folder, &[&[verb, &address, "members.txt"][..], &other].concat());
        assert!(refused.contains("has 2,400 bytes") && refused.contains("19,170 bits"), "{refused}");
    }
    well(&folder, &[&["build", "seen.guava", "members.txt", "--quiet"][..], &items].concat());
    let pushed = format!("{}/pushed", host.url());
    let push = ["push", "seen.guava", &pushed, "--items-as", "utf8", "--as", "guava", "--marker", "--json"];
    let report = told(&folder, &push);
    assert_eq!(
        json!([report["bits"], report["probes"], report["strategy"], report["marker"], report["items_as"]]),
        json!([19200, 7, "mitz-64", true, "utf8"])
    );
    let shape = ["--as", "guava", "--items-as", "utf8", "--bits", "19200", "--probes", "7"];
    knows_its_members(&folder, &pushed, &[&shape[..], &["--strategy", "mitz64", "--marker"]].concat());
}

#[test]
fn an_unfinished_first_build_is_not_a_filter_and_missing_commands_are_reported_first() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let mut talk = host.talk();
    let folder = empty_folder("remote_filters", "first build");
    write_items(&folder);
    let address = format!("{}/seen", host.url());
    for (backend, family) in [("mf", "MF.*"), ("bf", "BF.*")] {
        let lacks = error_line(&folder, &["build", &address, "members.txt", "--backend", backend]);
        assert!(
            lacks.contains(&format!("this server has no {family} commands; alternatives: --backend plain")),
            "{lacks}"
        );
        assert!(talk.must(&["KEYS", "*"]).list().is_empty(), "a name remains");
    }
    // Killed while its items arrive.
    let words = ["build", &address, "--items", "1000000", "--shards", "2", "--quiet"];
    let mut child = mayhap_in(&folder).args(words).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&b"one more\n".repeat(100_000)).unwrap();
    let begun = Instant::now();
    while talk.must(&["EXISTS", "seen"]) == Wire::Integer(0) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the build does not begin");
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let nothing = error_line(&folder, &["check", &address, "--item", "one more"]);
    assert!(nothing.contains("there is no filter"), "{nothing}");
    let waits = run(&folder, &["build", &address, "members.txt", "--shards", "2", "--quiet"]);
    assert!(waits.0 == 2 && waits.2.contains("another client is building"), "{}", waits.2);
    // As if its time had expired.
    talk.must(&["DEL", "{seen}:build"]);
    well(&folder, &["build", &address, "members.txt", "--shards", "2", "--quiet"]);
    knows_its_members(&folder, &address, &[]);
}

#[test]
fn more_items_than_the_capacity_are_a_warning() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let folder = empty_folder("remote_filters", "over capacity");
    write_items(&folder);
    let address = format!("{}/seen", host.url());
    let build = ["build", &address, "members.txt", "--items", "500", "--shards", "2", "--json"];
    let (code, out, error) = run(&folder, &build);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["over_capacity"]), (0, &json!(true)));
    assert!(report["expected_fpr"].as_f64().unwrap() > 0.05, "{report}");
    assert!(error.contains("sized for 500, got "), "{error}");
    let roomy = format!("{}/roomy", host.url());
    let build = ["build", &roomy, "members.txt", "--items", "2000", "--shards", "2", "--json"];
    let (_, out, error) = run(&folder, &build);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["over_capacity"], json!(false));
    assert!(!error.contains("sized for "), "{error}");
    let (_, out, error) = run(&folder, &["add", &roomy, "others.txt", "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["over_capacity"], json!(true));
    assert!(error.contains("sized for 2,000, got "), "{error}");
    let bitmap = format!("{}/bitmap", host.url());
    let format = ["--format", "redisson", "--items-as", "utf8"];
    let words = [&["build", &bitmap, "members.txt", "--items", "500"][..], &format].concat();
    assert!(run(&folder, &words).2.contains("sized for 500, got "));
}

#[test]
fn invalid_addresses_and_inputs_are_one_line() {
    let (_server, port) = serve();
    let url = format!("redis://127.0.0.1:{port}");
    let folder = empty_folder("remote_filters", "addresses");
    write_items(&folder);
    for (address, what) in [
        ("http://localhost/x", "redis://"),
        ("redis://localhost:99999/x", "not of the form"),
        ("redis://localhost/x#y", "write # as %23"),
        ("redis://localhost/x?y=1", "?db=N"),
        ("redis://localhost/a/../x", "%2E"),
        ("redis://localhost/a//x", "%2F"),
    ] {
        let said = error_line(&folder, &["check", address, "--item", "x"]);
        assert!(said.contains(what) && !said.contains("cannot read"), "{address}: {said}");
    }
    let secret = error_line(&folder, &["check", "redis://ada:secret@localhost:99999/x", "--item", "x"]);
    assert!(secret.contains("'redis://localhost:99999/x'") && !secret.contains("secret"), "{secret}");
    let lines = error_line(&folder, &["check", &format!("{url}/a%0Ab"), "--item", "x"]);
    assert!(lines.contains("a\\nb: there is no filter"), "{lines}");
    let long = error_line(&folder, &["check", &format!("{url}/{}", "x".repeat(3_000)), "--item", "x"]);
    assert!(long.len() < 300 && long.contains("(3000 bytes)"), "{long}");

    let address = format!("{url}/seen");
    let missing = error_line(&folder, &["build", &address, "nofile.txt"]);
    assert!(missing.contains("cannot read nofile.txt: no such file or directory"), "{missing}");
    let java = ["--format", "redisson", "--items-as", "utf8", "--items", "2000"];
    let scripts = error_line(&folder, &[&["build", &address, "members.txt"][..], &java].concat());
    assert!(scripts.contains("this server has no scripts (EVAL)"), "{scripts}");
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let piped = error_line(&folder, &["build", &format!("{}/seen", host.url()), "--backend", "plain"]);
    assert!(piped.contains("--items") && piped.contains("standard input cannot be read twice"), "{piped}");
    let database = error_line(&folder, &["check", &format!("{}/seen?db=99", host.url()), "--item", "x"]);
    assert!(database.ends_with("DB index is out of range\n"), "{database}");
    well(&folder, &["build", &format!("{}/seen", host.url()), "members.txt", "--shards", "2", "--quiet"]);
    let shards = error_line(&folder, &["pull", &format!("{}/seen", host.url()), "seen.mayhap"]);
    assert!(shards.contains("is a sharded filter"), "{shards}");
}

/// Another program listens on the port, or one that does not answer.
#[test]
fn a_port_without_a_redis_server_is_one_line() {
    let folder = empty_folder("remote_filters", "no server");
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = |listener: &TcpListener| format!("redis://{}/x", listener.local_addr().unwrap());
    let (web_url, silent_url) = (url(&web), url(&silent));
    thread::spawn(move || {
        for stream in web.incoming().take(8) {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    for words in [&["check", &web_url, "--item", "x"][..], &["pull", &web_url, "x.mayhap"]] {
        let said = error_line(&folder, words);
        assert!(said.contains("does not speak the Redis protocol") && said.lines().count() == 1, "{said}");
    }
    let said = error_line(&folder, &["check", &silent_url, "--item", "x"]);
    assert!(said.contains("does not answer within 5 s") && said.lines().count() == 1, "{said}");
}

#[test]
fn push_and_pull_find_the_node_of_a_cluster() {
    let Some(cluster) = Cluster::start(3, 0, &HostOptions::new().our_module(&[])) else { return };
    let folder = empty_folder("remote_filters", "push to a cluster");
    write_items(&folder);
    well(&folder, &["build", "seen.mayhap", "members.txt", "--kind", "bloom", "--quiet"]);
    for node in 0..3 {
        let address = format!("{}/seen", cluster.urls()[node]);
        well(&folder, &["push", "seen.mayhap", &address, "--force", "--quiet"]);
        well(&folder, &["pull", &address, "back.mayhap", "--force", "--quiet"]);
        assert_eq!(
            fs::read(folder.join("back.mayhap")).unwrap(),
            fs::read(folder.join("seen.mayhap")).unwrap()
        );
    }
}

/// A server that closes the connection during an addition. If adding twice would store two copies, the request is not sent again.
#[test]
fn copies_whose_answer_was_lost_are_not_added_again() {
    let folder = empty_folder("remote_filters", "lost answers");
    fs::write(folder.join("items.txt"), "ada\n").unwrap();
    let server = |kind: &'static str, of_mayhap: &'static str| {
        let lost = AtomicBool::new(false);
        Scripted::start(move |words| match (words[0].as_str(), Act::of_a_master(words, false)) {
            (_, Some(act)) => act,
            ("TYPE", _) => Act::line(&format!("+{kind}")),
            ("MF.INFO", _) => Act::text(of_mayhap),
            _ if !lost.swap(true, Ordering::Relaxed) => Act::HangUp,
            _ => Act::line("*1\r\n:1"),
        })
    };
    for (kind, of_mayhap, command) in [
        ("MBbloomCF", "", "CF.INSERT"),
        ("mayhap---", "cuckoo", "MF.MADD"),
        ("mayhap---", "counting-bloom", "MF.MADD"),
    ] {
        let server = server(kind, of_mayhap);
        let said = error_line(&folder, &["add", &format!("{}/seen", server.url()), "items.txt"]);
        assert!(said.contains("items.txt, line 1") && said.contains("must not run twice"), "{said}");
        assert_eq!(server.heard(command), 1, "{kind}");
    }
    for (kind, of_mayhap, command, more) in [
        ("MBbloom--", "", "BF.INSERT", &[][..]),
        ("MBbloomCF", "", "CF.INSERTNX", &["--new-only"]),
        ("mayhap---", "bloom", "MF.MADD", &[]),
    ] {
        let server = server(kind, of_mayhap);
        well(
            &folder,
            &[&["add", &format!("{}/seen", server.url()), "items.txt", "--quiet"][..], more].concat(),
        );
        assert_eq!(server.heard(command), 2, "{kind}");
    }
}

/// A lagging replica answers *no* for items that its master has.
#[test]
fn a_replica_is_rejected() {
    let start = || Host::start(&HostOptions::new());
    let (Some(master), Some(replica)) = (start(), start()) else { return };
    let folder = empty_folder("remote_filters", "replica");
    write_items(&folder);
    replica.follow(&master);
    let (at_master, at_replica) = (format!("{}/seen", master.url()), format!("{}/seen", replica.url()));
    well(&folder, &["build", &at_master, "members.txt", "--shards", "2", "--quiet"]);
    for words in [&["check", &at_replica, "--item", "member 7"][..], &["add", &at_replica, "members.txt"]] {
        let said = error_line(&folder, words);
        assert!(said.contains(&format!("127.0.0.1:{} is a replica", replica.port())), "{said}");
    }
    knows_its_members(&folder, &at_master, &[]);
}

#[test]
fn the_module_is_found_next_to_the_program_or_the_error_says_how_to_build_it() {
    let folder = empty_folder("remote_filters", "module");
    let program = Path::new(env!("CARGO_BIN_EXE_mayhap"));
    let copy = folder.join("mayhap");
    fs::copy(program, &copy).unwrap();
    let run = |words: &[&str]| program::said(&Command::new(&copy).args(words).output().unwrap());
    let (code, out, error) = run(&["module", "--path"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        error.contains("cargo build --release -p mayhap-module") && error.contains("libclang-dev"),
        "{error}"
    );
    let name = format!("{}mayhap_module{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let library = folder.canonicalize().unwrap().join(name);
    fs::write(&library, "").unwrap();
    let library = library.to_str().unwrap();
    assert_eq!(run(&["module", "--path"]).1.trim_end(), library);
    let (_, out, _) = run(&["module"]);
    assert!(out.contains(&format!("loadmodule {library}")) && out.contains("MODULE LOAD"), "{out}");
    let report: Value = serde_json::from_str(&run(&["module", "--json"]).1).unwrap();
    assert_eq!(
        json!([report["path"], report["command"]]),
        json!([library, format!("MODULE LOAD {library}")])
    );
}
