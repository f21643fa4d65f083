//! Reads one filter from the RDB file of a Redis or Valkey server, by its key.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use mayhap_formats::redis_rdb::{EntryValue, FileReader, RdbFileError};

/// The first bytes of RDB files.
const BEGINNINGS: [&[u8; 6]; 2] = [b"REDIS0", b"VALKEY"];
/// The number of keys that a message names.
const NAMED: usize = 20;
/// The most bytes of a value: four times the limit of a string in Redis, for a filter of many layers.
const MAX_VALUE_BYTES: u64 = 2 << 30;

/// Returns `true` for an RDB file.
pub(super) fn is_rdb(path: &Path) -> bool {
    super::begins_with(path, &BEGINNINGS)
}

/// The payload of the filter under `key`, as `DUMP` would return it. Without a key, the file must hold exactly one filter.
/// The file is read to its end, so its checksum is checked. An error is a clause for a message that names the file.
pub(super) fn payload(path: &Path, key: Option<&str>) -> Result<Vec<u8>, String> {
    let said = |error: RdbFileError| error.to_string();
    let file = File::open(path).map_err(|cause| format!("cannot be opened: {cause}"))?;
    let (mut found, mut filters, mut others) = (None, Vec::new(), 0_u64);
    for entry in FileReader::new(BufReader::with_capacity(1 << 20, file), MAX_VALUE_BYTES).map_err(said)? {
        let entry = entry.map_err(said)?;
        let wanted = key.is_none_or(|key| key.as_bytes() == entry.name);
        match entry.value {
            EntryValue::RedisBloom(_, payload) => {
                filters.push(entry.name.escape_ascii().to_string());
                if wanted {
                    found = Some(payload);
                }
            }
            EntryValue::Mayhap(_) if wanted && key.is_some() => {
                return Err(format!(
                    "key {} is a filter of a type that RedisBloom does not have: load the file into a server (`mayhap serve --load`), then `mayhap pull` it",
                    entry.name.escape_ascii()
                ));
            }
            EntryValue::Other(what) if wanted && key.is_some() => {
                return Err(format!(
                    "key {} of the rdb file is of type {what}, not a Bloom or cuckoo filter",
                    entry.name.escape_ascii()
                ));
            }
            _ => others += 1,
        }
    }
    let shown = filters.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = filters.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    match (found, key, filters.len()) {
        (None, None, _) => Err(format!("rdb file has no Bloom or cuckoo filter, only {others} other keys")),
        (None, Some(key), 0) => Err(format!("rdb file has no key {key}, and no Bloom or cuckoo filter")),
        (None, Some(key), _) => {
            Err(format!("rdb file has no filter under key {key}; it holds {shown}{more}"))
        }
        (Some(_), None, 2..) => {
            Err(format!("rdb file has {} filters: choose one with --rdb-key: {shown}{more}", filters.len()))
        }
        (Some(payload), ..) => Ok(payload),
    }
}
