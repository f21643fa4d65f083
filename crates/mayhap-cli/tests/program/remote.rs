//! Tests that build and check filters on a server.

use std::fs;
use std::path::Path;

use mayhap_server::{Running, Server, Settings};
use serde_json::Value;

use crate::program::run;

/// The number of members, and also of non-members.
pub(crate) const ITEMS: usize = 2_000;

/// Starts a server in this process, and returns it with its port.
pub(crate) fn serve() -> (Running, u16) {
    let server = Server::start(Settings { port: Some(0), workers: 2, ..Settings::default() }).unwrap();
    let port = server.addresses()[0].port();
    (server, port)
}

/// Writes `members.txt`, `others.txt`, and `asked.txt`, which contains both.
pub(crate) fn write_items(folder: &Path) {
    let lines = |what: &str| (0..ITEMS).map(|item| format!("{what} {item}\n")).collect::<String>();
    fs::write(folder.join("members.txt"), lines("member")).unwrap();
    fs::write(folder.join("others.txt"), lines("other")).unwrap();
    fs::write(folder.join("asked.txt"), lines("member") + &lines("other")).unwrap();
}

/// Runs a command that must succeed, and returns its output.
#[track_caller]
pub(crate) fn well(folder: &Path, words: &[&str]) -> String {
    let (code, out, error) = run(folder, words);
    assert_eq!(code, 0, "{words:?}: {error}");
    out
}

/// As [`well`], with the output as JSON.
#[track_caller]
pub(crate) fn told(folder: &Path, words: &[&str]) -> Value {
    serde_json::from_str(&well(folder, words)).unwrap()
}
