//! Damaged logs: they are refused, or what is read from them is right.

mod support;

use std::convert::Infallible;
use std::sync::Arc;

use mayhap_engine::log::{Limits, Log, Policy, Recovered, Salts};
use mayhap_engine::{Disk, LogError};
use mayhap_testkit::rng::Rng;
use support::simulated::{Simulated, Spoiled};

type Played = Vec<(u64, Vec<u8>)>;

fn open(disk: &Simulated, from: u64, seed: u64) -> Result<(Arc<Log>, Recovered, Played), LogError> {
    let mut played = Vec::new();
    let limits = Limits { salts: Salts::Seeded(seed), ..Limits::default() };
    let (log, recovered) =
        Log::open_quiet(Arc::new(disk.clone()), from, Policy::No, limits, |number, record: &[u8]| {
            played.push((number, record.to_vec()));
            Ok::<_, Infallible>(())
        })?;
    Ok((log, recovered, played))
}

fn record(number: u64) -> Vec<u8> {
    let mut rng = Rng::new(number);
    (0..10 + rng.below(60)).map(|_| rng.next_u64() as u8).collect()
}

/// Whether the records are a prefix of those that were appended.
fn is_right(played: &Played) -> bool {
    played.iter().enumerate().all(|(at, (number, bytes))| *number == at as u64 && *bytes == record(*number))
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Closed,
    Synced,
    Torn,
}

/// A log of two files and `count` records, one frame for each.
fn written(count: u64, end: End) -> Simulated {
    let disk = Simulated::new(Spoiled::Not);
    let (log, ..) = open(&disk, 0, 1).unwrap();
    for number in 0..count {
        log.append(&record(number));
        let _ = log.commit(number + 1).unwrap();
        if number == count / 2 {
            log.rotate().unwrap();
        } else if number % 3 == 0 && end != End::Torn {
            log.sync().unwrap();
        }
    }
    match end {
        End::Closed => log.close().unwrap(),
        End::Synced => log.sync().unwrap(),
        End::Torn => {}
    }
    disk
}

#[test]
fn every_flipped_bit_is_refused_or_harmless() {
    let (mut refused, mut right) = (0, 0);
    for end in [End::Closed, End::Synced, End::Torn] {
        let disk = written(20, end);
        for file in disk.list().unwrap() {
            for at in 0..disk.bytes(&file).len() {
                for bit in 0..8 {
                    let spoiled = disk.copied();
                    spoiled.tamper(&file, |bytes| bytes[at] ^= 1 << bit);
                    match open(&spoiled, 0, 2) {
                        Ok((_, recovered, played)) => {
                            assert!(is_right(&played), "bit {bit} of byte {at} of {file}");
                            assert!(recovered.next > 10, "records that a later file vouches for are gone");
                            assert!(end != End::Closed || recovered.next == 20, "byte {at} of {file}");
                            assert!(end == End::Torn || recovered.next >= 19, "byte {at} of {file}");
                            right += 1;
                        }
                        Err(LogError::Damaged { file: said, offset, .. }) => {
                            assert!(
                                said == file && offset <= at as u64,
                                "{said} at {offset} is {file} at {at}"
                            );
                            refused += 1;
                        }
                        Err(error) => panic!("byte {at} of {file}: {error}"),
                    }
                }
            }
        }
    }
    println!("{refused} refused, {right} right");
    assert!(refused > 20_000 && right > 1_000);
}

#[test]
fn a_file_truncated_at_any_length_is_refused_or_gives_a_prefix() {
    for end in [End::Closed, End::Synced, End::Torn] {
        let disk = written(20, end);
        let files = disk.list().unwrap();
        for (nth, file) in files.iter().enumerate() {
            for length in 0..disk.bytes(file).len() {
                let spoiled = disk.copied();
                spoiled.tamper(file, |bytes| bytes.truncate(length));
                match open(&spoiled, 0, 2) {
                    Ok((_, recovered, played)) => {
                        assert!(nth == 1 && is_right(&played) && recovered.next >= 11);
                        assert!(recovered.next < 20 || end == End::Closed);
                    }
                    Err(LogError::Damaged { .. }) => assert!(nth == 0 || length < 40),
                    Err(error) => panic!("{file} with {length} bytes: {error}"),
                }
            }
        }
    }
}

/// After a power loss on some file systems the length is right, but the last page is not there.
#[test]
fn a_last_page_of_zeros_is_cut_off_and_reported() {
    for end in [End::Closed, End::Synced, End::Torn] {
        let disk = written(400, end);
        let file = disk.list().unwrap().pop().unwrap();
        let length = disk.bytes(&file).len();
        assert!(length > 3 * 4096);
        for page in [4096, length % 4096] {
            let spoiled = disk.copied();
            spoiled.tamper(&file, |bytes| bytes[length - page..].fill(0));
            let (log, recovered, played) = open(&spoiled, 0, 2).unwrap();
            assert!(is_right(&played) && recovered.next > 201);
            assert!((page as u64..page as u64 + 200).contains(&recovered.cut_bytes), "{recovered:?}");
            assert_eq!(recovered.cut_file.as_ref(), Some(&file));
            assert!(!recovered.clean);
            // The log continues, and the cut is not reported as damage later.
            log.append(&record(recovered.next));
            log.close().unwrap();
            let (_, again, played) = open(&spoiled, 0, 3).unwrap();
            assert_eq!((again.next, again.cut_bytes, again.clean), (recovered.next + 1, 0, true));
            assert!(is_right(&played));
        }
    }
}

#[test]
fn a_hole_in_the_middle_is_refused_with_file_and_position() {
    let disk = written(400, End::Synced);
    let files = disk.list().unwrap();
    for file in &files {
        let spoiled = disk.copied();
        spoiled.tamper(file, |bytes| bytes[4096..4608].fill(0));
        let error = open(&spoiled, 0, 2).unwrap_err();
        assert!(matches!(&error, LogError::Damaged { file: said, offset, .. }
            if said == file && (3900..4608).contains(offset)));
        assert!(error.to_string().starts_with(&format!("{file} is damaged at byte ")), "{error}");
        assert_eq!(spoiled.list().unwrap(), files, "nothing was changed");
    }
    // Parts of the log that are not needed may be damaged.
    disk.tamper(&files[0], |bytes| bytes[4096..4608].fill(0));
    assert_eq!(open(&disk, 201, 2).unwrap().1.played, 199);
}

#[test]
fn a_missing_file_is_refused() {
    let disk = written(20, End::Closed);
    let files = disk.list().unwrap();
    let without = |file: &str| {
        let disk = disk.copied();
        disk.remove(file).unwrap();
        disk
    };
    assert!(matches!(open(&without(&files[0]), 0, 2), Err(LogError::Missing { number: 0 })));
    assert!(matches!(open(&without(&files[1]), 12, 2), Err(LogError::Missing { number: 11 })));
    // A file under the name of another one is not accepted.
    disk.rename(&files[1], "log-00000000000000000012").unwrap();
    assert!(matches!(open(&disk, 0, 2), Err(LogError::Damaged { .. })));
}

#[test]
fn a_log_of_a_newer_version_is_refused() {
    let disk = written(20, End::Closed);
    let file = disk.list().unwrap().pop().unwrap();
    disk.tamper(&file, |bytes| {
        bytes[8] = 2;
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..32]);
        bytes[32..40].copy_from_slice(&sum.to_le_bytes());
    });
    assert!(matches!(open(&disk, 0, 2), Err(LogError::Version { got: 2, newest: 1, .. })));
}

/// A client that knew the bytes of a log could send them: they are frames, but not at their position.
#[test]
fn records_that_look_like_frames_are_only_records() {
    let disk = Simulated::new(Spoiled::Not);
    let (log, ..) = open(&disk, 0, 1).unwrap();
    log.append(b"first");
    log.sync().unwrap();
    log.append(b"second");
    let _ = log.commit(2).unwrap();
    let file = disk.list().unwrap().pop().unwrap();
    let forged = disk.bytes(&file);
    for fill in 0..8 {
        log.append(&vec![0; fill]);
        log.append(&forged.repeat(3));
    }
    let _ = log.commit(18).unwrap();
    let length = disk.bytes(&file).len();
    for cut in [1, 100, 500] {
        let torn = disk.copied();
        torn.tamper(&file, |bytes| bytes.truncate(length - cut));
        let (_, recovered, played) = open(&torn, 0, 2).unwrap();
        assert_eq!((recovered.next, played.len()), (2, 2), "{cut} bytes are missing");
    }
}
