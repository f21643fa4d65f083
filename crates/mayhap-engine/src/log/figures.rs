//! Figures of the log.

/// Figures of a log at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Files.
    pub segments: usize,
    /// Size of all files in bytes.
    pub bytes: u64,
    /// Bytes that are only in memory.
    pub pending_bytes: usize,
    /// The number of the next record.
    pub next: u64,
    /// Records below this number were written to the file.
    pub written: u64,
    /// Records below this number are safe from a power loss.
    pub synced: u64,
    /// Syncs since the log was opened.
    pub syncs: u64,
    /// The duration of the last sync.
    pub last_sync_micros: u64,
    /// The duration of the longest sync.
    pub longest_sync_micros: u64,
    /// The time since the running sync began; 0 if none is running.
    pub running_sync_millis: u64,
    /// Commits with `everysec` that waited because a sync had been running for more than two seconds.
    pub delayed: u64,
    /// Failed attempts to begin a new file, after which the log continued in the old one.
    pub rotations_failed: u64,
}
