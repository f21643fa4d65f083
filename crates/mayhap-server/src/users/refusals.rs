//! `ACL LOG`: recent refusals.

use std::collections::VecDeque;

use mayhap_command::Reply;
use parking_lot::Mutex;

/// The maximum number of entries.
const MOST: usize = 128;
/// Equal refusals within this many milliseconds are one entry.
const TOGETHER_MS: u64 = 60_000;
/// The maximum number of bytes of a name.
const LONGEST: usize = 128;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Auth,
    Command,
    Name,
}

/// A refused request, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: Reason,
    pub(crate) in_transaction: bool,
    /// The command or the name.
    pub(crate) object: Vec<u8>,
    pub(crate) user: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    count: u64,
    refused: Refused,
    created_ms: u64,
    updated_ms: u64,
    /// The client, as in `CLIENT LIST`.
    client: Vec<u8>,
}

/// Recent refusals.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    kept: Mutex<(u64, VecDeque<Entry>)>,
}

impl Refusals {
    pub(crate) fn add(&self, mut refused: Refused, client: Vec<u8>, now_ms: u64) {
        refused.object.truncate(LONGEST);
        refused.user.truncate(LONGEST);
        let mut kept = self.kept.lock();
        let (next, entries) = &mut *kept;
        let same = |entry: &Entry| {
            entry.refused == refused && now_ms.saturating_sub(entry.updated_ms) <= TOGETHER_MS
        };
        if let Some(mut entry) = entries.iter().position(same).and_then(|at| entries.remove(at)) {
            entry.count += 1;
            entry.updated_ms = now_ms;
            entry.client = client;
            entries.push_front(entry);
            return;
        }
        let id = *next;
        *next += 1;
        entries.push_front(Entry { id, count: 1, refused, created_ms: now_ms, updated_ms: now_ms, client });
        entries.truncate(MOST);
    }

    pub(crate) fn reset(&self) {
        self.kept.lock().1.clear();
    }

    /// The latest entries, as in `ACL LOG`.
    pub(crate) fn get(&self, most: usize, now_ms: u64) -> Reply {
        let kept = self.kept.lock();
        let show = |entry: &Entry| {
            let reason = match entry.refused.reason {
                Reason::Auth => "auth",
                Reason::Command => "command",
                Reason::Name => "key",
            };
            let context = if entry.refused.in_transaction { "multi" } else { "toplevel" };
            let age = now_ms.saturating_sub(entry.created_ms) as f64 / 1_000.0;
            let pairs = [
                ("count", Reply::count(entry.count)),
                ("reason", Reply::bulk(reason)),
                ("context", Reply::bulk(context)),
                ("object", Reply::bulk(entry.refused.object.as_slice())),
                ("username", Reply::bulk(entry.refused.user.as_slice())),
                ("age-seconds", Reply::Double(age)),
                ("client-info", Reply::bulk(entry.client.as_slice())),
                ("entry-id", Reply::count(entry.id)),
                ("timestamp-created", Reply::count(entry.created_ms)),
                ("timestamp-last-updated", Reply::count(entry.updated_ms)),
            ];
            Reply::Map(pairs.into_iter().map(|(name, value)| (Reply::bulk(name), value)).collect())
        };
        Reply::Array(kept.1.iter().take(most).map(show).collect())
    }
}
