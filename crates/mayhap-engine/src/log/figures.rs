//! What there is to tell about a log.

/// Figures of a log, from one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Files.
    pub segments: usize,
    /// Bytes of the files.
    pub bytes: u64,
    /// Bytes that are in memory only.
    pub pending_bytes: usize,
    /// The number of the next record.
    pub next: u64,
    /// Records below this number were handed to the system.
    pub written: u64,
    /// Records below this number are safe from a power loss.
    pub synced: u64,
    /// Syncs since the log was opened.
    pub syncs: u64,
    /// How long the last one took.
    pub last_sync_micros: u64,
    /// How long the longest took.
    pub longest_sync_micros: u64,
    /// For how long the one that is going on has been; 0: there is none.
    pub running_sync_millis: u64,
    /// Commits with `everysec` that waited for a sync that had been going on for longer than two seconds.
    pub delayed: u64,
    /// Files that could not be begun, so that the one before went on.
    pub rotations_failed: u64,
}
