//! `check` at an address whose server is gone: every line is answered *not ready* within seconds, and later lines are tried again.

mod program;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use mayhap_testkit::host::{Cluster, Host, HostOptions};
use serde_json::{Value, json};

use program::{empty_folder, error_line, mayhap_in, run};

const ITEMS: usize = 500;
/// Far more than it takes, and far less than fifteen seconds for each line.
const SOON: Duration = Duration::from_secs(40);

fn write_items(folder: &Path) {
    let lines = |what: &str| (0..ITEMS).map(|item| format!("{what} {item}\n")).collect::<String>();
    fs::write(folder.join("members.txt"), lines("member")).unwrap();
    fs::write(folder.join("asked.txt"), lines("member") + &lines("other")).unwrap();
}

fn well(folder: &Path, words: &[&str]) {
    let (code, _, error) = run(folder, words);
    assert_eq!(code, 0, "{words:?}: {error}");
}

/// A `check` that is fed line by line.
struct Stream {
    child: Child,
    pipe: ChildStdin,
    out: BufReader<ChildStdout>,
}

impl Stream {
    fn start(folder: &Path, words: &[&str]) -> Self {
        let mut command = mayhap_in(folder);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (pipe, out) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, pipe, out }
    }

    fn ask(&mut self, item: &str) -> String {
        self.pipe.write_all(format!("{item}\n").as_bytes()).unwrap();
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }

    /// Its exit code and output.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.pipe);
        let mut error = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        (self.child.wait().unwrap().code(), error)
    }
}

#[test]
fn a_stream_continues_while_its_server_is_gone_and_when_it_is_back() {
    let durable = HostOptions::new().words(&["--appendonly", "yes", "--appendfsync", "always"]);
    let Some(mut host) = Host::start(&durable) else { return };
    let folder = empty_folder("remote_outage", "stream");
    write_items(&folder);
    let address = format!("{}/seen", host.url());
    well(&folder, &["build", &address, "members.txt", "--shards", "2", "--quiet"]);
    let mut stream = Stream::start(&folder, &["check", "--annotate", &address]);
    assert_eq!(stream.ask("member 7"), "mayhap\tmember 7\n");
    host.kill();
    let begun = Instant::now();
    for item in 0..30 {
        let member = format!("member {item}");
        assert_eq!(stream.ask(&member), format!("not-ready\t{member}\n"));
    }
    assert!(begun.elapsed() < SOON, "{:?} for 30 lines", begun.elapsed());
    host.restart();
    let begun = Instant::now();
    while stream.ask("member 9") != "mayhap\tmember 9\n" {
        assert!(begun.elapsed() < SOON, "the server is back but is not queried");
    }
    assert_eq!(stream.ask("member 8"), "mayhap\tmember 8\n");
    let (code, error) = stream.end();
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("/seen: no answer for ") && error.contains(" lines (not ready): "), "{error}");
}

#[test]
fn lines_are_answered_in_a_cluster_that_lost_a_master_without_a_replica() {
    let Some(mut cluster) = Cluster::start(3, 0, &HostOptions::new()) else { return };
    let folder = empty_folder("remote_outage", "cluster");
    write_items(&folder);
    let address = format!("{}/seen", cluster.urls()[0]);
    well(&folder, &["build", &address, "members.txt", "--shards", "8", "--quiet"]);
    cluster.nodes[1].kill();
    let begun = Instant::now();
    let (code, out, error) = run(&folder, &["check", "--annotate", &address, "asked.txt"]);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!((code, out.lines().count()), (2, 2 * ITEMS), "{error}");
    assert!(out.lines().any(|line| line.starts_with("not-ready\tmember ")), "{out}");
    assert!(!out.lines().any(|line| line.starts_with("no\tmember ")), "a member gets a no");
    assert!(error.contains(" lines (not ready): "), "{error}");
    // Now all nodes know that the cluster is down; not even the type of the filter can be read.
    cluster.wait_until("the cluster is down", |cluster| {
        cluster.nodes[0].talk().ask("CLUSTER INFO").text().contains("cluster_state:fail")
    });
    let begun = Instant::now();
    let (code, out, error) = run(&folder, &["check", "--json", &address, "asked.txt"]);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{error}"));
    assert_eq!(code, 2, "{error}");
    assert_eq!(
        json!([report["lines"], report["mayhap"], report["no"], report["not_ready"]]),
        json!([2 * ITEMS, 0, 0, 2 * ITEMS])
    );
}

#[test]
fn lines_are_answered_if_the_server_never_existed() {
    let folder = empty_folder("remote_outage", "never there");
    fs::write(folder.join("asked.txt"), "ada\ngrace\n").unwrap();
    let address = "redis://127.0.0.1:1/seen";
    let (code, out, error) = run(&folder, &["check", "--annotate", address, "asked.txt", "--item", "x"]);
    assert_eq!((code, out.as_str()), (2, "not-ready\tx\nnot-ready\tada\nnot-ready\tgrace\n"), "{error}");
    assert!(error.contains("no server listens there"), "{error}");
    let (code, out, _) = run(&folder, &["check", "--json", address, "--item", "x"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["not_ready"], &report["items"][0]["mayhap"]), (2, &json!(1), &Value::Null));
    // Commands that do not answer line by line end immediately.
    let refused = error_line(&folder, &["check", address, "asked.txt"]);
    assert!(refused.contains("no server listens there"), "{refused}");
}
