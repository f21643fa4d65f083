//! The log on real files: committed records are read back, in order, whichever thread wrote them.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use mayhap_engine::log::{Commit, Log, Policy, Recovered, Refused, State};
use mayhap_engine::{Files, LogError};

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mayhap-log-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

type Opened = (Arc<Log>, Recovered, Vec<(u64, Vec<u8>)>);

fn open(folder: &Path, from: u64, policy: Policy) -> Result<Opened, LogError> {
    let mut played = Vec::new();
    let disk = Arc::new(Files::open(folder).unwrap());
    let (log, recovered) = Log::open(disk, from, policy, |number, record| {
        played.push((number, record.to_vec()));
        Ok::<_, Infallible>(())
    })?;
    Ok((log, recovered, played))
}

fn record(number: u64) -> Vec<u8> {
    format!("record {number}").repeat(1 + number as usize % 30).into_bytes()
}

#[test]
fn records_committed_by_many_threads_are_read_back() {
    for policy in [Policy::Always, Policy::EverySec, Policy::No] {
        let folder = Folder::new(policy.name());
        let (log, recovered, played) = open(&folder.0, 0, policy).unwrap();
        assert_eq!((recovered.next, played.len()), (0, 0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        log.may_change().unwrap();
                        let number = log.append(b"one of many");
                        if log.commit(number + 1).unwrap() == Commit::Wait {
                            log.wait_synced(number + 1).unwrap();
                            assert!(log.synced() > number);
                        }
                        assert!(log.figures().written > number);
                    }
                });
            }
        });
        assert_eq!(log.next(), 400);
        drop(log);
        let (log, recovered, played) = open(&folder.0, 0, policy).unwrap();
        assert_eq!((recovered.next, recovered.clean, recovered.cut_bytes), (400, false, 0));
        assert!(played.iter().enumerate().all(|(at, (number, _))| at as u64 == *number));
        log.close().unwrap();
        assert_eq!(log.may_change(), Err(Refused::Closed));
        assert_eq!(log.state(), State::Closed);
        let (_, recovered, played) = open(&folder.0, 100, policy).unwrap();
        assert!(recovered.clean);
        assert_eq!(played.len(), 300);
    }
}

#[test]
fn old_segments_are_removed_and_the_rest_is_replayed() {
    let folder = Folder::new("rotate");
    let (log, ..) = open(&folder.0, 0, Policy::No).unwrap();
    let mut begins = Vec::new();
    for number in 0..100 {
        assert_eq!(log.append(&record(number)), number);
        assert_eq!(log.commit(number + 1), Ok(Commit::Done));
        if number % 10 == 9 {
            begins.push(log.rotate().unwrap());
        }
    }
    assert_eq!(begins, (1..=10).map(|ten| ten * 10).collect::<Vec<u64>>());
    assert_eq!(log.rotate().unwrap(), 100, "nothing was written since");
    assert_eq!(log.figures().segments, 11);
    let all = log.bytes_since(0);
    log.forget_before(55).unwrap();
    assert_eq!(log.figures().segments, 6);
    assert!(log.bytes_since(50) < all);
    assert!(log.bytes_since(95) < log.bytes_since(50));
    drop(log);
    let (_, recovered, played) = open(&folder.0, 55, Policy::No).unwrap();
    assert_eq!((recovered.from, recovered.next, recovered.played), (55, 100, 45));
    assert!(played.iter().all(|(number, bytes)| *bytes == record(*number)));
    assert!(matches!(open(&folder.0, 45, Policy::No), Err(LogError::Missing { number: 45 })));
    assert!(matches!(open(&folder.0, 101, Policy::No), Err(LogError::Missing { number: 100 })));
}
