//! The files of the log: a recovered log must be recovered again, with the records appended to it; a rejected log must be left unchanged.

use std::convert::Infallible;
use std::sync::Arc;

use mayhap_engine::log::{Limits, Log, LogError, Policy, Salts};

use crate::input::Input;
use crate::seal;
use crate::test_engine::Memory;

type Records = Vec<(u64, Vec<u8>)>;

fn open(disk: &Memory, from: u64, salt: u64) -> Result<(Arc<Log>, Records), LogError> {
    let limits = Limits { salts: Salts::Seeded(salt), ..Limits::default() };
    let mut records = Vec::new();
    let (log, recovered) =
        Log::open_quiet(Arc::new(disk.clone()), from, Policy::No, limits, |number, record| {
            records.push((number, record.to_vec()));
            Ok::<(), Infallible>(())
        })?;
    assert_eq!(recovered.played, records.len() as u64);
    for (expected, (number, _)) in (from..).zip(&records) {
        assert_eq!(expected, *number, "records are replayed in order, without gaps");
    }
    Ok((log, records))
}

/// Runs the target. The first byte decides whether checksums are corrected, the second from which record on the log is replayed; up to three segments
/// follow.
///
/// # Panics
/// If a guarantee is broken.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let sealed = input.byte() & 1 == 1;
    let from = u64::from(input.byte());
    let disk = Memory::default();
    for _ in 0..3 {
        if input.is_empty() {
            break;
        }
        let mut bytes = input.string().to_vec();
        if sealed {
            seal::log_segment(&mut bytes);
        }
        let first =
            bytes.get(24..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        disk.put(&format!("log-{first:020}"), &bytes);
    }
    let before = disk.files();
    let Ok((log, records)) = open(&disk, from, 1) else {
        assert!(disk.files() == before, "a rejected log is left unchanged");
        return;
    };
    // Nothing is appended after record numbers that no real log reaches.
    if log.next() > u64::MAX / 2 {
        return;
    }
    let number = log.append(b"one more");
    assert!(log.commit(number + 1).is_ok() && log.sync().is_ok());
    drop(log);
    let (_, again) = open(&disk, from, 2).expect("a written log can be read");
    let mut expected = records;
    expected.push((number, b"one more".to_vec()));
    assert!(again == expected, "{} records, expected {}", again.len(), expected.len());
}
