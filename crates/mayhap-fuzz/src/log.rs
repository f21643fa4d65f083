//! The files of the log: what is recovered is recovered again, with what was appended behind it; what is refused is left as it was.

use std::convert::Infallible;
use std::sync::Arc;

use mayhap_engine::log::{Limits, Log, LogError, Policy, Salts};

use crate::input::Input;
use crate::seal;
use crate::world::Memory;

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
        assert_eq!(expected, *number, "records are played in order, and none is left out");
    }
    Ok((log, records))
}

/// The first byte says whether the checksums are made right, the second from which record on it is played; then come up to three segments.
///
/// # Panics
/// If a promise is broken.
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
        assert!(disk.files() == before, "a log that is refused is left as it was");
        return;
    };
    // Numbers that no log reaches in a thousand years are not appended to.
    if log.next() > u64::MAX / 2 {
        return;
    }
    let number = log.append(b"one more");
    assert!(log.commit(number + 1).is_ok() && log.sync().is_ok());
    drop(log);
    let (_, again) = open(&disk, from, 2).expect("a log that was written is read");
    let mut expected = records;
    expected.push((number, b"one more".to_vec()));
    assert!(again == expected, "{} records, and {} before", again.len(), expected.len());
}
