//! What of a damaged folder can still be had: everything that is as it was written, and a list of what is not.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use crate::disk::Disk;
use crate::engine::Engine;
use crate::log::{self, LogError};
use crate::snapshot::{self, SnapshotError};

/// What could be had.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Salvage {
    /// Names that are in the engine now.
    pub names: u64,
    /// Records of the log that were played.
    pub played: u64,
    /// Records of the log that are missing among them.
    pub missing: u64,
    /// What is not as it was written.
    pub damage: Vec<Damage>,
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
    pub fn salvage(&self, disk: &dyn Disk) -> Result<Salvage, LogError> {
        let mut salvage = Salvage::default();
        self.replaying.store(true, Relaxed);
        let from = snapshot::salvage(self, disk, &mut salvage.damage);
        let mut replay = self.replay();
        let found = log::salvage(disk, from, |number, record| {
            // What a newer program wrote is missing like what is damaged.
            let _ = replay.play(number, record);
        });
        self.replaying.store(false, Relaxed);
        let found = found?;
        let of_log = |(file, offset, what): (String, u64, &str)| Damage {
            file,
            offset,
            what: what.into(),
            name: None,
        };
        salvage.damage.extend(found.damage.into_iter().map(of_log));
        (salvage.played, salvage.missing) = (found.played, found.missing);
        salvage.names = self.totals().names;
        Ok(salvage)
    }
}
