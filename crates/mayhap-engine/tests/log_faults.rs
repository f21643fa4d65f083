//! A disk that is full, fails or is slow: promises are kept, what cannot be kept is refused, and failures are
//! reported.

mod support;

use std::convert::Infallible;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use mayhap_engine::log::{Commit, Limits, Log, Policy, Recovered, Refused, Salts, State};
use mayhap_engine::{Disk, LogError};
use mayhap_testkit::rng::Rng;
use support::simulated::{Fault, Simulated, Spoiled};

type Opened = (Arc<Log>, Recovered, Vec<Vec<u8>>);

fn quiet(disk: &Simulated, policy: Policy) -> Result<Opened, LogError> {
    let mut played = Vec::new();
    let limits = Limits { pending_bytes: 10_000, segment_bytes: 50_000, salts: Salts::Random };
    let (log, recovered) = Log::open_quiet(Arc::new(disk.clone()), 0, policy, limits, |_, record: &[u8]| {
        played.push(record.to_vec());
        Ok::<_, Infallible>(())
    })?;
    Ok((log, recovered, played))
}

/// A log with its syncing thread.
fn threaded(disk: &Simulated, policy: Policy) -> Arc<Log> {
    let (log, ..) = quiet(disk, policy).unwrap();
    log.start().unwrap();
    log
}

fn record(number: u64) -> Vec<u8> {
    vec![number as u8; 30 + number as usize % 50]
}

fn soon(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what} did not happen");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_disk_that_gets_full_at_any_byte_refuses_changes_and_continues_in_order() {
    let mut refusals = 0;
    for room in 0..1500 {
        let disk = Simulated::new(Spoiled::Not);
        disk.set_room(Some(room));
        // With less than 40 bytes the log cannot even begin.
        let (log, ..) = quiet(&disk, Policy::No).unwrap();
        assert_eq!(log.state(), if room < 40 { State::NoSpace } else { State::Writing });
        let mut committed = 0;
        for number in 0..20 {
            if log.may_change().is_err() {
                break;
            }
            assert_eq!(log.append(&record(number)), number);
            match log.commit(number + 1) {
                Ok(commit) => {
                    assert_eq!(commit, Commit::Done);
                    committed = number + 1;
                }
                Err(refused) => {
                    assert_eq!((refused, log.state()), (Refused::NoSpace, State::NoSpace));
                    refusals += 1;
                }
            }
        }
        assert_eq!(log.sync().is_ok(), log.next() == committed && room >= 40, "nothing fits by itself");
        assert!(log.close().is_ok() == (log.state() == State::Closed));
        // Killed while the disk is full: committed records are there, and reads continue.
        let (full, recovered, played) = quiet(&disk.copied(), Policy::No).unwrap();
        assert!(recovered.next >= committed, "{} of {committed} at {room}", recovered.next);
        assert!(played.iter().zip(0..).all(|(bytes, number)| *bytes == record(number)));
        drop(full);
        if log.state() == State::NoSpace {
            disk.set_room(None);
            log.sync().unwrap();
            assert_eq!((log.state(), log.synced()), (State::Writing, log.next()));
            log.append(&record(log.next()));
            let next = log.next();
            log.close().unwrap();
            let (_, recovered, played) = quiet(&disk.crashed(&mut Rng::new(room)), Policy::No).unwrap();
            assert_eq!((recovered.next, recovered.clean), (next, true));
            assert!(played.iter().zip(0..).all(|(bytes, number)| *bytes == record(number)));
        }
    }
    assert!(refusals > 1000, "{refusals}");
}

/// A script of everything a log does. Returns how much of it was promised to be safe.
fn script(disk: &Simulated) -> Option<u64> {
    let (log, ..) = quiet(disk, Policy::Always).ok()?;
    let mut safe = 0;
    for number in 0..12 {
        if log.may_change().is_err() {
            break;
        }
        log.append(&record(number));
        match number % 4 {
            0 | 2 => drop(log.sync()),
            1 => {}
            _ => drop(log.rotate()),
        }
        safe = log.synced();
    }
    let _ = log.forget_before(0);
    let _ = log.close();
    Some(safe.max(log.synced()))
}

/// If a new file cannot be created, changes go to the old one. They are refused only if it is unknown whether
/// the new file counts.
#[test]
fn if_a_new_file_cannot_be_created_the_old_one_continues() {
    let (mut went_on, mut failed) = (0, 0);
    for after in 0..8 {
        for error in [ErrorKind::Other, ErrorKind::PermissionDenied, ErrorKind::StorageFull] {
            let disk = Simulated::new(Spoiled::Not);
            let (log, ..) = quiet(&disk, Policy::Always).unwrap();
            log.append(&record(0));
            log.sync().unwrap();
            disk.fail(Some(Fault { after, error }));
            let rotated = log.rotate();
            disk.fail(None);
            let files = disk.list().unwrap();
            match rotated {
                Ok(1) => assert_eq!((log.figures().segments, log.figures().rotations_failed), (2, 0)),
                Err(Refused::NoNewFile) => {
                    went_on += 1;
                    assert_eq!(
                        (log.state(), log.failure(), log.may_change()),
                        (State::Writing, None, Ok(()))
                    );
                    assert_eq!(
                        (log.figures().segments, log.figures().rotations_failed, files.len()),
                        (1, 1, 1)
                    );
                }
                // The new file has its name, and may lose it again.
                Err(Refused::Failed) => {
                    failed += 1;
                    assert_eq!((log.state(), files.len()), (State::Failed, 2));
                    assert!(log.failure().is_some_and(|why| why.contains("into place")));
                    continue;
                }
                other => panic!("{other:?} when call {after} fails"),
            }
            // The log continues, a new file is tried again, and everything is there.
            log.append(&record(1));
            log.sync().unwrap();
            assert_eq!(log.rotate(), Ok(2));
            log.append(&record(2));
            log.sync().unwrap();
            let (_, recovered, played) = quiet(&disk.crashed(&mut Rng::new(after)), Policy::No).unwrap();
            assert_eq!(recovered.next, 3);
            assert!(played.iter().zip(0..).all(|(bytes, number)| *bytes == record(number)));
        }
    }
    // Creating, writing, syncing and renaming it, and syncing the folder.
    assert_eq!((went_on, failed), (4 * 3, 3));
}

#[test]
fn no_failing_call_loses_records_that_were_safe() {
    let calls = {
        let disk = Simulated::new(Spoiled::Not);
        assert_eq!(script(&disk), Some(12));
        disk.calls()
    };
    assert!(calls > 40, "{calls}");
    let mut rng = Rng::new(7);
    for after in 0..calls {
        for error in
            [ErrorKind::Other, ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::Interrupted]
        {
            let disk = Simulated::new(Spoiled::Not);
            disk.fail(Some(Fault { after, error }));
            let safe = script(&disk).unwrap_or(0);
            for _ in 0..20 {
                let image = disk.crashed(&mut rng);
                let (_, recovered, played) = quiet(&image, Policy::No).unwrap();
                assert!(recovered.next >= safe, "call {after}, {error}: {} of {safe}", recovered.next);
                assert!(played.iter().zip(0..).all(|(bytes, number)| *bytes == record(number)));
            }
        }
    }
}

#[test]
fn after_a_failed_sync_changes_are_refused_until_a_restart() {
    for error in [ErrorKind::Other, ErrorKind::StorageFull] {
        let disk = Simulated::new(Spoiled::Not);
        let log = threaded(&disk, Policy::Always);
        let number = log.append(b"good");
        assert_eq!(log.commit(number + 1), Ok(Commit::Wait));
        log.wait_synced(number + 1).unwrap();
        disk.fail(Some(Fault { after: 1, error }));
        let number = log.append(b"bad");
        let _ = log.commit(number + 1);
        assert_eq!(log.wait_synced(number + 1), Err(Refused::Failed));
        // The disk works again, which changes nothing.
        disk.fail(None);
        assert_eq!((log.state(), log.may_change()), (State::Failed, Err(Refused::Failed)));
        assert_eq!(log.sync(), Err(Refused::Failed));
        assert_eq!(log.rotate(), Err(Refused::Failed));
        assert_eq!(log.commit(log.append(b"worse") + 1), Err(Refused::Failed));
        assert_eq!(log.close(), Err(Refused::Failed));
        assert!(log.failure().unwrap().starts_with("cannot sync the log: "));
        assert_eq!(log.synced(), 1);
        drop(log);
        // After a restart the power fails: the records that were read were made safe, although their first
        // sync failed.
        let (log, recovered, _) = quiet(&disk, Policy::No).unwrap();
        drop(log);
        let (_, again, _) = quiet(&disk.crashed(&mut Rng::new(1)), Policy::No).unwrap();
        assert_eq!((recovered.next, again.next), (2, 2));
    }
}

#[test]
fn the_log_notices_new_space_by_itself() {
    for policy in [Policy::Always, Policy::EverySec, Policy::No] {
        let disk = Simulated::new(Spoiled::Not);
        let log = threaded(&disk, policy);
        disk.set_room(Some(10));
        let next = log.append(b"does not fit") + 1;
        match log.commit(next) {
            Ok(Commit::Wait) => assert_eq!(log.wait_synced(next), Err(Refused::NoSpace)),
            answer => assert_eq!(answer, Err(Refused::NoSpace)),
        }
        assert_eq!((log.state(), log.may_change()), (State::NoSpace, Err(Refused::NoSpace)));
        disk.set_room(None);
        soon("room", || log.may_change().is_ok());
        soon("the record", || log.figures().written == next);
    }
}

#[test]
fn everysec_syncs_by_itself_and_no_does_not() {
    let (every, never) = (Simulated::new(Spoiled::Not), Simulated::new(Spoiled::Not));
    let (every, never) = (threaded(&every, Policy::EverySec), threaded(&never, Policy::No));
    for log in [&every, &never] {
        let number = log.append(b"something");
        assert_eq!(log.commit(number + 1), Ok(Commit::Done));
    }
    soon("a sync", || every.synced() == 1);
    assert_eq!((never.synced(), never.figures().syncs), (0, 0));
    never.set_policy(Policy::Always);
    soon("a sync", || never.synced() == 1);
}

#[test]
fn segments_end_at_their_limit() {
    for policy in [Policy::No, Policy::EverySec, Policy::Always] {
        let disk = Simulated::new(Spoiled::Not);
        let log = threaded(&disk, policy);
        let record = vec![1; 1000];
        for _ in 0..52 {
            log.may_change().unwrap();
            let next = log.append(&record) + 1;
            if log.commit(next).unwrap() == Commit::Wait {
                log.wait_synced(next).unwrap();
            }
        }
        soon("a new file", || log.figures().segments == 2);
        log.forget_before(log.next()).unwrap();
        assert_eq!(log.figures().segments, disk.list().unwrap().len());
    }
}

#[test]
fn pending_bytes_have_a_limit() {
    let disk = Simulated::new(Spoiled::Not);
    let (log, ..) = quiet(&disk, Policy::Always).unwrap();
    for _ in 0..1000 {
        log.may_change().unwrap();
        log.append(&[1; 100]);
        assert!(log.figures().pending_bytes < 10_200);
    }
    disk.set_room(Some(0));
    while log.may_change().is_ok() {
        log.append(&[1; 100]);
        assert!(log.figures().pending_bytes < 10_200);
    }
    assert_eq!(log.state(), State::NoSpace);
}

/// A task that waits for everything may wait for a part of the group of another thread.
#[test]
fn a_task_that_waits_for_an_open_group_waits_for_its_end() {
    let disk = Simulated::new(Spoiled::Not);
    let log = threaded(&disk, Policy::Always);
    log.append(b"mine");
    log.begin_group();
    log.append(b"theirs");
    let next = log.next();
    assert_eq!(log.commit(next), Ok(Commit::Wait));
    thread::scope(|scope| {
        let waits = scope.spawn(|| log.wait_synced(next));
        soon("mine", || log.synced() == 1);
        log.append(b"theirs, too");
        log.end_group();
        assert_eq!(waits.join().unwrap(), Ok(()));
    });
    soon("theirs", || log.synced() == 3);
    // The other policies write the pending records, and promise no more.
    log.set_policy(Policy::No);
    log.begin_group();
    let next = log.append(b"theirs") + 1;
    assert_eq!((log.commit(next), log.figures().written), (Ok(Commit::Done), 3));
    log.end_group();
}

#[test]
fn uncommitted_records_are_written_soon() {
    for policy in [Policy::EverySec, Policy::No] {
        let disk = Simulated::new(Spoiled::Not);
        let log = threaded(&disk, policy);
        log.append(b"no task waits for this");
        soon("the record", || log.figures().written == 1);
        (0..100).for_each(|_| _ = log.append(&[1; 1000]));
        soon("the rest", || log.figures().pending_bytes == 0);
    }
}

/// With `everysec`, a slow sync delays writers, but only after two seconds. Without the delay any amount
/// could be lost.
#[test]
fn a_slow_sync_delays_commits() {
    let disk = Simulated::new(Spoiled::Not);
    let (log, ..) = quiet(&disk, Policy::EverySec).unwrap();
    let (begins, begun) = mpsc::channel();
    let (ends, ended) = mpsc::channel::<()>();
    disk.during_sync(move || {
        begins.send(()).unwrap();
        ended.recv().unwrap();
    });
    thread::scope(|scope| {
        let next = log.append(b"one") + 1;
        let _ = log.commit(next).unwrap();
        let sync = scope.spawn(|| log.sync().unwrap());
        begun.recv().unwrap();
        let next = log.append(b"two") + 1;
        assert_eq!(log.commit(next), Ok(Commit::Done), "no task waits for a sync");
        // A disk that is slow, but not too slow.
        thread::sleep(Duration::from_millis(1100));
        let next = log.append(b"half way") + 1;
        assert_eq!(log.commit(next), Ok(Commit::Done));
        assert_eq!(log.figures().delayed, 0, "no client waits during the first two seconds");
        thread::sleep(Duration::from_millis(1000));
        let late = scope.spawn(|| {
            let next = log.append(b"three") + 1;
            log.commit(next)
        });
        soon("the delay", || log.figures().delayed == 1);
        assert!(!late.is_finished() && !sync.is_finished());
        ends.send(()).unwrap();
        assert_eq!(late.join().unwrap(), Ok(Commit::Done));
    });
}

#[derive(Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_waiting_task_is_woken_once_by_every_outcome() {
    let disk = Simulated::new(Spoiled::Not);
    let (log, ..) = quiet(&disk, Policy::Always).unwrap();
    let wakes = [(); 3].map(|()| Arc::new(Counts::default()));
    let woken = || wakes.each_ref().map(|wake| wake.0.load(SeqCst));
    let poll = |who: usize, next| {
        let waker = Waker::from(Arc::clone(&wakes[who]));
        log.poll_synced(next, &Context::from_waker(&waker))
    };
    log.append(b"1");
    assert_eq!(log.commit(1), Ok(Commit::Wait));
    // A task that is polled repeatedly waits once.
    (0..100).for_each(|_| assert_eq!(poll(0, 1), Poll::Pending));
    assert_eq!(poll(1, 1), Poll::Pending);
    log.sync().unwrap();
    assert_eq!((woken(), poll(0, 1)), ([1, 1, 0], Poll::Ready(Ok(()))));
    // Another policy demands less. The waiting task writes then.
    log.append(b"2");
    assert_eq!(poll(2, 2), Poll::Pending);
    log.set_policy(Policy::No);
    assert_eq!((woken(), log.figures().written), ([1, 1, 1], 1));
    assert_eq!((poll(2, 2), log.figures().written, log.synced()), (Poll::Ready(Ok(())), 2, 1));
    // A failure wakes all tasks.
    log.set_policy(Policy::Always);
    log.append(b"3");
    assert_eq!((poll(0, 3), poll(1, 3)), (Poll::Pending, Poll::Pending));
    disk.fail(Some(Fault { after: 0, error: ErrorKind::Other }));
    assert_eq!(log.sync(), Err(Refused::Failed));
    assert_eq!((woken(), poll(0, 3)), ([2, 2, 1], Poll::Ready(Err(Refused::Failed))));
    assert_eq!(poll(0, 1), Poll::Ready(Ok(())), "what was safe is safe");
}
