//! What of a damaged folder can still be had: everything that is as it was written, and a list of what is not.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use mayhap_command::{Lost, Value};

use crate::disk::Disk;
use crate::engine::Engine;
use crate::entry::Entry;
use crate::log::{self, LogError, Needed, Piece};
use crate::snapshot::{self, SnapshotError};

/// What could be had.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Salvage {
    /// Names that are in the engine now, those that are lost included.
    pub names: u64,
    /// Those of which data is lost, in order: they answer *not ready*.
    pub lost: Vec<(Vec<u8>, Lost)>,
    /// Are there lost names that are not known? Then every name that is not there answers *not ready*, or every one of some parts.
    pub unknown: bool,
    /// Records of the log that were played.
    pub played: u64,
    /// Records of the log that are missing among them, as far as they can be counted.
    pub missing: u64,
    /// What is not as it was written.
    pub damage: Vec<Damage>,
}

/// What becomes of names of which something is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Losses {
    /// They answer *not ready*.
    #[default]
    Marked,
    /// They hold what is left of them, and those of which nothing is are not there: they answer *no* for members that are lost.
    Accepted,
}

/// One thing that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The file.
    pub file: String,
    /// Where in it, in bytes from its beginning.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// The name whose value is lost, if it is just one.
    pub name: Option<Vec<u8>>,
}

impl From<SnapshotError> for Damage {
    fn from(error: SnapshotError) -> Self {
        let (file, offset, what) = match error {
            SnapshotError::Damaged { file, offset, what } => (file, offset, what.to_owned()),
            SnapshotError::Value { file, offset, source } => (file, offset, source.to_string()),
            SnapshotError::Missing { file } => (file, 0, "it is not there".to_owned()),
            SnapshotError::NotASnapshot { file } => (file, 0, "not a file of a snapshot".to_owned()),
            SnapshotError::Version { file, got, newest } => {
                (file, 8, format!("of version {got}, newest known is {newest}"))
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
    /// Reads whatever is as it was written on `disk` into this engine, which is empty and has no log. Nothing on the disk changes.
    ///
    /// # Errors
    /// [`LogError::Disk`] if the disk refuses to be read.
    pub fn salvage(&self, disk: &dyn Disk, losses: Losses) -> Result<Salvage, LogError> {
        let mut salvage = Salvage::default();
        self.replaying.store(true, Relaxed);
        let snapshot = snapshot::salvage(self, disk, &mut salvage.damage);
        let mut replay = self.replay();
        let is_marked = losses == Losses::Marked;
        let in_doubt = self.doubt.parts();
        if !snapshot.parameters.is_empty() {
            // What it cannot tell is as it is by default.
            let _ = replay.play(snapshot.from, &snapshot.parameters);
        }
        if !is_marked {
            self.forget_losses();
            self.doubt.set(0);
        } else if snapshot.all_lost {
            replay.lose_all(u64::MAX);
        } else if !salvage.damage.is_empty() {
            self.doubt.add(in_doubt);
            replay.tear();
        }
        let mut unreadable = 0;
        let needed = Needed { from: snapshot.from, seen: snapshot.seen, tracked: true };
        let found = log::salvage(disk, needed, |piece| match piece {
            Piece::Record(number, record) => {
                // What a newer program wrote is missing like what is damaged.
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

    /// Every name of which data is lost, in order.
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

    /// Are there lost names that are not known?
    #[must_use]
    pub fn has_unknown_losses(&self) -> bool {
        self.doubt.parts() != 0
    }

    /// Names of which everything is lost are not there from now on.
    fn forget_losses(&self) {
        self.doubt.set(0);
        for (name, _) in self.lost_names() {
            self.hold(&name, self.now(), |hold| {
                hold.remove();
            });
        }
    }
}
