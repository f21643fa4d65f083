//! `mayhap build` to a server that is not a cluster: one filter of that name, which every client can query.

mod program;
#[path = "program/remote.rs"]
mod remote;

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mayhap_testkit::host::{Act, Cluster, Host, HostOptions, Scripted, Talk, Wire, programs};
use serde_json::{Value, json};

use program::{empty_folder, error_line, mayhap_in, run};
use remote::{ITEMS, serve, told, well, write_items};

fn names(talk: &mut Talk) -> Vec<String> {
    let mut names: Vec<String> = talk.must(&["KEYS", "*"]).list().iter().map(Wire::text).collect();
    names.sort();
    names
}

/// `check` and a plain client give the same answers for all lines, and no member gets a no.
#[track_caller]
fn answers_as_its_server(folder: &Path, address: &str, talk: &mut Talk, command: &str) {
    let name = address.rsplit('/').next().unwrap();
    let lines = well(folder, &["check", "--annotate", address, "asked.txt"]);
    assert_eq!(lines.lines().count(), 2 * ITEMS);
    let mut wrong = 0;
    for line in lines.lines() {
        let (answer, item) = line.split_once('\t').unwrap();
        let said = talk.must(&[command, name, item]).integer();
        assert_eq!(said, i64::from(answer == "mayhap"), "{command} {name} {item}");
        assert!(answer == "mayhap" || !item.starts_with("member "), "{item} is denied");
        wrong += usize::from(answer == "mayhap" && item.starts_with("other "));
    }
    assert!(wrong < ITEMS / 10, "{wrong} of {ITEMS} others");
}

/// Everything that a server with `MF.*` and `BF.*` must do.
fn one_filter(folder: &Path, port: u16) {
    write_items(folder);
    let mut talk = Talk::connect(port).unwrap();
    let url = format!("redis://127.0.0.1:{port}");
    let seen = format!("{url}/seen");
    let build = ["build", &seen, "members.txt", "--json", "--quiet"];
    let report = told(folder, &build);
    assert_eq!(
        json!([report["out"], report["layout"], report["shards"], report["generation"], report["replaced"]]),
        json!([seen, "mf", null, 1, false])
    );
    assert_eq!(report["items_read"], json!(ITEMS));
    assert_eq!(names(&mut talk), ["seen"], "one name");
    answers_as_its_server(folder, &seen, &mut talk, "MF.EXISTS");
    let taken = error_line(folder, &build);
    assert!(taken.contains("exists already; --force replaces it"), "{taken}");

    // A new generation of another kind: the old one serves until then, and items added to it are in the new one.
    let words = ["build", &seen, "--items", "5000", "--kind", "cuckoo", "--force", "--json", "--quiet"];
    let mut child =
        mayhap_in(folder).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&fs::read(folder.join("members.txt")).unwrap()).unwrap();
    let begun = Instant::now();
    while talk.ask("MF.BUILD seen INFO").is_refused() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the build does not begin");
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(talk.must(&["MF.ADD", "seen", "meanwhile"]).integer(), 1);
    assert_eq!(talk.must(&["MF.EXISTS", "seen", "member 7"]).integer(), 1);
    drop(pipe);
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(child.wait().unwrap().success(), "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json!([report["kind"], report["generation"], report["replaced"]]), json!(["cuckoo", 2, true]));
    assert_eq!(talk.must(&["MF.EXISTS", "seen", "meanwhile"]).integer(), 1);
    assert_eq!(names(&mut talk), ["seen"]);
    answers_as_its_server(folder, &seen, &mut talk, "MF.EXISTS");

    // A BF filter stays one when it is replaced, and no message suggests deleting anything.
    let bloom = format!("{url}/bloom");
    let report =
        told(folder, &["build", &bloom, "members.txt", "--format", "redis-bloom", "--json", "--quiet"]);
    assert_eq!(json!([report["layout"], report["replaced"]]), json!(["bf", false]));
    answers_as_its_server(folder, &bloom, &mut talk, "BF.EXISTS");
    talk.must(&["BF.ADD", "bloom", "gone"]);
    let taken = error_line(folder, &["build", &bloom, "members.txt"]);
    assert!(taken.contains("--force") && !taken.contains("delete"), "{taken}");
    let report = told(folder, &["build", &bloom, "members.txt", "--force", "--json", "--quiet"]);
    assert_eq!(json!([report["layout"], report["replaced"]]), json!(["bf", true]));
    assert_eq!(talk.must(&["BF.EXISTS", "bloom", "gone"]).integer(), 0);
    answers_as_its_server(folder, &bloom, &mut talk, "BF.EXISTS");
    let report =
        told(folder, &["build", &bloom, "members.txt", "--backend", "mf", "--force", "--json", "--quiet"]);
    assert_eq!(json!([report["layout"], report["replaced"]]), json!(["mf", true]));
    answers_as_its_server(folder, &bloom, &mut talk, "MF.EXISTS");
    talk.must(&["CF.RESERVE", "cuckoo", "10"]);
    let cuckoo = format!("{url}/cuckoo");
    well(folder, &["build", &cuckoo, "members.txt", "--force", "--quiet"]);
    answers_as_its_server(folder, &cuckoo, &mut talk, "CF.EXISTS");
    assert_eq!(names(&mut talk), ["bloom", "cuckoo", "seen"], "a temporary name remains");

    // The other verbs.
    well(folder, &["add", &seen, "others.txt", "--quiet", "--new-only"]);
    assert_eq!(well(folder, &["check", "-c", &seen, "asked.txt"]).trim(), (2 * ITEMS).to_string());
    let removed = told(folder, &["remove", &seen, "members.txt", "--json", "--quiet"]);
    assert_eq!(json!([removed["items_read"], removed["items_removed"]]), json!([ITEMS, ITEMS]));
    let left: usize = well(folder, &["check", "-c", &seen, "asked.txt"]).trim().parse().unwrap();
    assert!(left < ITEMS + ITEMS / 10, "{left}");
    let kept = error_line(folder, &["remove", &bloom, "members.txt"]);
    assert!(kept.contains("members.txt, line 1") && kept.contains("remove"), "{kept}");
    well(folder, &["pull", &seen, "back.mayhap", "--quiet", "--force"]);
    well(folder, &["push", "back.mayhap", &format!("{url}/copy"), "--quiet"]);
    assert_eq!(
        well(folder, &["check", &seen, "asked.txt"]),
        well(folder, &["check", &format!("{url}/copy"), "asked.txt"])
    );
    assert!(well(folder, &["info", &seen]).contains("cuckoo"));
    // A full filter is reported.
    for (name, reserve) in [
        ("small", "MF.RESERVE small KIND cuckoo CAPACITY 1000"),
        ("fixed", "BF.RESERVE fixed 0.01 1000 NONSCALING"),
        ("tight", "CF.RESERVE tight 1000 EXPANSION 0"),
    ] {
        talk.ask(reserve);
        let full = error_line(folder, &["add", &format!("{url}/{name}"), "members.txt"]);
        assert!(full.contains(&format!("/{name}: is full")) && full.contains("--force"), "{full}");
        assert!(full.contains("members.txt, line "), "{full}");
    }
}

/// Ctrl-C while items arrive: nothing remains of a first build, and an existing filter continues to serve.
fn stops_without_a_trace(folder: &Path, port: u16) {
    let mut talk = Talk::connect(port).unwrap();
    talk.must(&["FLUSHALL"]);
    let url = format!("redis://127.0.0.1:{port}");
    well(folder, &["build", &format!("{url}/seen"), "members.txt", "--quiet"]);
    talk.must(&["BF.ADD", "bloom", "ada"]);
    for (name, more) in
        [("seen", &["--force"][..]), ("fresh", &[]), ("bloom", &["--force", "--backend", "mf"])]
    {
        let before = names(&mut talk);
        let address = format!("{url}/{name}");
        let words = [&["build", &address, "--items", "100000", "--quiet"][..], more].concat();
        let mut child =
            mayhap_in(folder).args(&words).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&b"one more\n".repeat(50_000)).unwrap();
        let begun = Instant::now();
        let is_begun = |talk: &mut Talk| match name {
            "seen" => !talk.ask("MF.BUILD seen INFO").is_refused(),
            _ => names(talk).len() > before.len(),
        };
        while !is_begun(&mut talk) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{name} does not begin");
            thread::sleep(Duration::from_millis(10));
        }
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let code = child.wait().unwrap().code();
        drop(pipe);
        assert_eq!(code, Some(130), "{name}");
        assert_eq!(names(&mut talk), before, "{name}");
    }
    assert!(talk.ask("MF.BUILD seen INFO").is_refused(), "no build is left open");
    answers_as_its_server(folder, &format!("{url}/seen"), &mut talk, "MF.EXISTS");
    assert_eq!(talk.must(&["BF.EXISTS", "bloom", "ada"]).integer(), 1);
}

#[test]
fn one_filter_in_mayhaps_server() {
    let (_server, port) = serve();
    let folder = empty_folder("remote_build", "server");
    one_filter(&folder, port);
    stops_without_a_trace(&folder, port);
}

#[test]
fn one_filter_in_every_host_of_the_module() {
    for program in programs() {
        let Some(host) = Host::start(&HostOptions::new().program(program).our_module(&[])) else { continue };
        let folder = empty_folder("remote_build", "module");
        one_filter(&folder, host.port());
        stops_without_a_trace(&folder, host.port());
    }
}

#[test]
fn a_redis_without_a_module_gets_the_alternatives_or_shards_on_request() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let folder = empty_folder("remote_build", "no module");
    write_items(&folder);
    let mut talk = host.talk();
    let address = format!("{}/seen", host.url());
    for more in [&[][..], &["--kind", "cuckoo"], &["--format", "redis-bloom"]] {
        let said = error_line(&folder, &[&["build", &address, "members.txt"][..], more].concat());
        for choice in ["--backend plain", "--format redisson", "mayhap module"] {
            assert!(said.contains(choice), "{choice}: {said}");
        }
        assert!(names(&mut talk).is_empty(), "a name remains");
    }
    let report =
        told(&folder, &["build", &address, "members.txt", "--backend", "plain", "--json", "--quiet"]);
    assert_eq!(json!([report["layout"], report["shards"]]), json!(["plain", 64]));
    // A sharded filter stays sharded.
    let again = told(&folder, &["build", &address, "members.txt", "--force", "--json", "--quiet"]);
    assert_eq!(json!([again["layout"], again["generation"]]), json!(["plain", 2]));
    assert_eq!(well(&folder, &["check", "-c", &address, "members.txt"]).trim(), ITEMS.to_string());
}

#[test]
fn shards_are_used_in_a_cluster_or_on_request() {
    let (_server, port) = serve();
    let folder = empty_folder("remote_build", "shards");
    write_items(&folder);
    let address = format!("redis://127.0.0.1:{port}/seen");
    let report = told(&folder, &["build", &address, "members.txt", "--shards", "4", "--json", "--quiet"]);
    assert_eq!(json!([report["layout"], report["shards"]]), json!(["mf", 4]));
    let mut talk = Talk::connect(port).unwrap();
    talk.must(&["BF.ADD", "bloom", "ada"]);
    let bloom = format!("redis://127.0.0.1:{port}/bloom");
    let one = error_line(&folder, &["build", &bloom, "members.txt", "--shards", "4", "--force"]);
    assert!(one.contains("omit --shards") && !one.contains("delete"), "{one}");

    let Some(cluster) = Cluster::start(3, 0, &HostOptions::new()) else { return };
    let address = format!("{}/seen", cluster.urls()[1]);
    let report = told(&folder, &["build", &address, "members.txt", "--json", "--quiet"]);
    assert_eq!(json!([report["layout"], report["shards"]]), json!(["plain", 64]));
}

/// A server that has RedisBloom's commands but not mayhap's.
#[test]
fn a_server_with_redisblooms_commands_alone_gets_a_bf_filter() {
    let server = Scripted::start(move |words| match (words[0].as_str(), Act::of_a_master(words, false)) {
        (_, Some(act)) => act,
        ("COMMAND", _) => {
            let known = |name: &String| if name.starts_with("BF.") { "*1\r\n$1\r\nx\r\n" } else { "*-1\r\n" };
            let asked = &words[2..];
            Act::Say(format!("*{}\r\n{}", asked.len(), asked.iter().map(known).collect::<String>()))
        }
        ("TYPE", _) => Act::line("+none"),
        ("BF.LOADCHUNK" | "WATCH" | "MULTI", _) => Act::line("+OK"),
        ("BF.CARD", _) => Act::line(&format!(":{ITEMS}")),
        ("EXPIRE", _) => Act::line(":1"),
        ("PERSIST" | "RENAMENX", _) => Act::line("+QUEUED"),
        ("EXEC", _) => Act::line("*2\r\n:1\r\n:1"),
        _ => Act::line("-ERR unknown command"),
    });
    let folder = empty_folder("remote_build", "redisbloom");
    write_items(&folder);
    let address = format!("{}/seen", server.url());
    let report =
        told(&folder, &["build", &address, "members.txt", "--json", "--quiet", "--items", "1000000"]);
    assert_eq!(json!([report["layout"], report["replaced"]]), json!(["bf", false]));
    assert!(server.heard("BF.LOADCHUNK") >= 2 && server.heard("RENAMENX") == 1);
}

/// The names at the beginning of the lines, in their order.
fn labels(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    lines.filter_map(|line| line.trim_start().split("  ").next()).map(str::to_owned).collect()
}

/// The offset of each field.
fn order<'a>(json: &str, names: &'a [&'a str]) -> Vec<(usize, &'a str)> {
    let found = names.iter().map(|name| {
        let at = json.find(&format!("\"{name}\":"));
        (at.unwrap_or_else(|| panic!("no {name} in {json}")), *name)
    });
    found.collect()
}

#[test]
fn info_explain_and_verify_accept_an_address_like_a_file() {
    const FIELDS: [&str; 28] = [
        "file",
        "format",
        "kind",
        "shape",
        "hash",
        "secret_key",
        "placement",
        "items_as",
        "items_as_unknown",
        "capacity",
        "inserted",
        "inserted_unknown",
        "load",
        "target_fpr",
        "expected_fpr",
        "fpr_from_count",
        "over_capacity",
        "fill",
        "fill_of",
        "estimated_items",
        "fpr_from_fill",
        "fill_not_counted",
        "file_bytes",
        "memory_bytes",
        "bits_per_item",
        "bits_per_inserted",
        "bound_bits_per_item",
        "can",
    ];
    let (_server, port) = serve();
    let folder = empty_folder("remote_build", "like a file");
    write_items(&folder);
    let url = format!("redis://127.0.0.1:{port}");
    let [seen, bloom, shards] = ["seen", "bloom", "shards"].map(|name| format!("{url}/{name}"));
    well(&folder, &["build", &seen, "members.txt", "--kind", "bloom", "--quiet"]);
    well(&folder, &["build", &bloom, "members.txt", "--format", "redis-bloom", "--quiet"]);
    well(&folder, &["build", &shards, "members.txt", "--shards", "2", "--quiet"]);
    well(&folder, &["pull", &seen, "seen.mayhap", "--quiet"]);
    let of_file = labels(&well(&folder, &["info", "seen.mayhap"]));
    for place in ["seen.mayhap", &seen, &bloom, &shards] {
        let json = well(&folder, &["info", "--json", place]);
        assert!(order(&json, &FIELDS).is_sorted(), "{json}");
        let report = &serde_json::from_str::<Value>(&json).unwrap()["filters"][0];
        assert_eq!(report["file"], json!(place));
        assert!(report["capacity"].as_u64().unwrap() >= ITEMS as u64 * 9 / 10, "{json}");
        assert!(report["inserted"].as_u64().unwrap() > ITEMS as u64 * 9 / 10, "{json}");
        // The shared lines are in the same order.
        let labels = labels(&well(&folder, &["info", place]));
        let both: Vec<&String> = labels.iter().filter(|label| of_file.contains(label)).collect();
        let wanted: Vec<&String> = of_file.iter().filter(|label| labels.contains(label)).collect();
        assert!(both == wanted && both.len() >= 5, "{labels:?} {of_file:?}");
    }
    let [here, there] = ["seen.mayhap", &seen].map(|place| told(&folder, &["info", "--json", place]));
    for field in ["kind", "format", "capacity", "inserted", "target_fpr", "secret_key"] {
        assert_eq!(here["filters"][0][field], there["filters"][0][field], "{field}");
    }
    // File and server report the higher of the two rates. The rate from the bits of a file is computed from the estimated
    // number of items.
    let rate = |report: &Value, field: &str| report["filters"][0][field].as_f64().unwrap();
    let worse = rate(&here, "fpr_from_count").max(rate(&here, "fpr_from_fill"));
    assert!((rate(&here, "expected_fpr") / worse - 1.0).abs() < 1e-12, "{here}");
    assert!((rate(&there, "expected_fpr") / worse - 1.0).abs() < 2e-3, "{here} {there}");

    let explained = |place: &str| well(&folder, &["explain", place, "member 7"]);
    assert_eq!(explained(&seen).replace(&seen, "seen.mayhap"), explained("seen.mayhap"));
    assert!(explained(&bloom).contains("\nmaybe: "));
    let shard = error_line(&folder, &["explain", &shards, "member 7"]);
    assert!(shard.contains("{shards:000") && shard.contains("explain that name"), "{shard}");

    assert_eq!(well(&folder, &["verify", &seen]), format!("{seen}: intact\n"));
    let verified = told(&folder, &["verify", "--json", &seen, &bloom, &shards, "seen.mayhap"]);
    let files = verified["files"].as_array().unwrap();
    assert!(files.iter().all(|file| file["intact"] == json!(true)), "{verified}");
    assert_eq!(json!([files[1]["format"], files[2]["format"]]), json!(["redis-bloom", "shards"]));
    let mut talk = Talk::connect(port).unwrap();
    let shard = names(&mut talk).into_iter().find(|name| name.starts_with("{shards:0001}")).unwrap();
    talk.must(&["DEL", &shard]);
    let (code, out, _) = run(&folder, &["verify", &shards]);
    assert_eq!((code, out), (1, format!("{shards}: damaged: 1 of 2 shards are not ready\n")));
}

#[test]
fn an_error_for_an_address_without_a_port_names_both_default_ports() {
    let folder = empty_folder("remote_build", "ports");
    for words in
        [&["check", "redis://127.0.0.99/seen", "--item", "x"][..], &["pull", "redis://127.0.0.99/seen", "x"]]
    {
        let said = error_line(&folder, words);
        assert!(said.contains("6379") && said.contains("6399"), "{said}");
    }
    let given = error_line(&folder, &["check", "redis://127.0.0.99:6379/seen", "--item", "x"]);
    assert!(!given.contains("6399"), "{given}");
}
