//! Salvages a damaged folder: reads everything that is undamaged, and lists the damage.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use mayhap_command::{Lost, Value};

use crate::disk::Disk;
use crate::engine::Engine;
use crate::entry::Entry;
use crate::log::{self, LogError, Needed, Piece};
use crate::snapshot::{self, SnapshotError};

/// The result of a salvage.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Salvage {
    /// The number of names in the engine, including lost ones.
    pub names: u64,
    /// The names with lost data, in order. They answer *not ready*.
    pub lost: Vec<(Vec<u8>, Lost)>,
    /// Whether an unknown set of names is lost. Then every name that does not exist answers *not ready*, or
    /// every such name of some parts.
    pub unknown: bool,
    /// The number of log records that were replayed.
    pub played: u64,
    /// The number of log records that are missing, as far as they can be counted.
    pub missing: u64,
    /// All damage.
    pub damage: Vec<Damage>,
}

/// What happens to names with lost data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Losses {
    /// They answer *not ready*.
    #[default]
    Marked,
    /// They keep what is left of them. Those of which nothing is left do not exist. They answer *no* for lost
    /// members.
    Accepted,
}

/// One piece of damage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The file.
    pub file: String,
    /// The position, in bytes from the beginning of the file.
    pub offset: u64,
    /// The kind of damage.
    pub what: String,
    /// The name whose value is lost, if it is a single one.
    pub name: Option<Vec<u8>>,
}

impl From<SnapshotError> for Damage {
    fn from(error: SnapshotError) -> Self {
        let (file, offset, what) = match error {
            SnapshotError::Damaged { file, offset, what } => (file, offset, what.to_owned()),
            SnapshotError::Value { file, offset, source } => (file, offset, source.to_string()),
            SnapshotError::Missing { file } => (file, 0, "the file is missing".to_owned()),
            SnapshotError::NotASnapshot { file } => (file, 0, "the file is not a snapshot file".to_owned()),
            SnapshotError::Version { file, got, newest } => {
                (file, 8, format!("the file has version {got}, the newest supported is {newest}"))
            }
            other => (String::new(), 0, other.to_string()),
        };
        Self { file, offset, what, name: None }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file, self.offset, self.what)?;
        match &self.name {
            Some(name) => write!(f, "; lost: {}", name.escape_ascii()),
            None => Ok(()),
        }
    }
}

impl Engine {
    /// Reads everything on `disk` that is undamaged into this engine, which is empty and has no log. Nothing
    /// on the disk changes.
    ///
    /// # Errors
    /// [`LogError::Disk`] if the disk cannot be read.
    pub fn salvage(&self, disk: &dyn Disk, losses: Losses) -> Result<Salvage, LogError> {
        let mut salvage = Salvage::default();
        self.replaying.store(true, Relaxed);
        let snapshot = snapshot::salvage(self, disk, &mut salvage.damage);
        let mut replay = self.replay();
        let is_marked = losses == Losses::Marked;
        let in_doubt = self.unknown_losses.parts();
        if !snapshot.parameters.is_empty() {
            // Parameters that it does not contain have their default values.
            let _ = replay.play(snapshot.from, &snapshot.parameters);
        }
        if !is_marked {
            self.forget_losses();
            self.unknown_losses.set(0);
        } else if snapshot.all_lost {
            replay.lose_all(u64::MAX);
        } else if !salvage.damage.is_empty() {
            self.unknown_losses.add(in_doubt);
            replay.tear();
        }
        let mut unreadable = 0;
        let needed = Needed { from: snapshot.from, seen: snapshot.seen, tracked: true };
        let found = log::salvage(disk, needed, |piece| match piece {
            Piece::Record(number, record) => {
                // A record of a newer version counts as missing, like a damaged one.
                if replay.play(number, record).is_err() {
                    unreadable += 1;
                    if is_marked {
                        replay.lose_all(number + 1);
                    }
                }
            }
            Piece::Missing { below } if is_marked => replay.lose_all(below),
            Piece::Missing { .. } => {}
        });
        if !is_marked {
            self.forget_losses();
        }
        self.replaying.store(false, Relaxed);
        let found = found?;
        let of_log = |(file, offset, what): (String, u64, &str)| Damage {
            file,
            offset,
            what: what.into(),
            name: None,
        };
        salvage.damage.extend(found.damage.into_iter().map(of_log));
        (salvage.played, salvage.missing) = (found.played - unreadable, found.missing + unreadable);
        salvage.names = self.totals().names;
        salvage.lost = self.lost_names();
        salvage.unknown = self.has_unknown_losses();
        Ok(salvage)
    }

    /// All names with lost data, in order.
    #[must_use]
    pub fn lost_names(&self) -> Vec<(Vec<u8>, Lost)> {
        let (mut names, mut cursor) = (Vec::new(), 0);
        loop {
            let (next, entries) = self.walk_all(cursor, 1_000);
            let lost = |entry: &Entry| entry.read().as_ref().and_then(Value::lost);
            names.extend(entries.iter().filter_map(|entry| Some((entry.name().to_vec(), lost(entry)?))));
            match next {
                0 => break,
                next => cursor = next,
            }
        }
        names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        names
    }

    /// Whether an unknown set of names is lost.
    #[must_use]
    pub fn has_unknown_losses(&self) -> bool {
        self.unknown_losses.parts() != 0
    }

    /// Removes names of which everything is lost.
    fn forget_losses(&self) {
        self.unknown_losses.set(0);
        for (name, _) in self.lost_names() {
            self.hold(&name, self.now(), |hold| {
                hold.remove();
            });
        }
    }
}
