//! `tools/cluster`: a start that fails leaves nothing running.

mod program;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use mayhap_testkit::host::{module_path, programs};

use program::{empty_folder, said};

/// Processes whose working directory is in `folder`.
fn processes_in(folder: &Path) -> usize {
    let links = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cwd"));
    links.filter_map(|link| fs::read_link(link).ok()).filter(|cwd| cwd.starts_with(folder)).count()
}

#[test]
fn a_start_that_fails_leaves_nothing_running() {
    let Some(redis) = programs().into_iter().next() else { return };
    if Command::new("redis-cli").arg("--version").output().is_err() {
        return;
    }
    let folder = empty_folder("tools_cluster", "fails").canonicalize().unwrap();
    // The fourth port is taken, so its server ends.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let first = taken.local_addr().unwrap().port() - 3;
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/cluster");
    let mut start = Command::new(tool);
    start.arg("start").arg(folder.join("cluster")).env("MAYHAP_CLUSTER_PORT", first.to_string());
    start.env("REDIS_SERVER", redis).env("MAYHAP_MODULE", module_path());
    let (code, out, error) = said(&start.output().unwrap());
    assert_eq!((code, out.as_str()), (2, ""), "{error}");
    assert!(error.contains("cluster: the server on port "), "{error}");
    assert_eq!(processes_in(&folder), 0, "{error}");
    assert!(!folder.join("cluster").exists());
}
