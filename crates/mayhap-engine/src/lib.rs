//! Many named filters: a hundred million small ones, or one that fills the memory.
//!
//! ```text
//! requests ─▶ Engine ─▶ Keyspace (shards of names) ─▶ Entry (one name) ─▶ what it holds
//!                ├────▶ Expiries (deadlines)   ├────▶ Watchers (WATCH)   └────▶ Statistics
//! ```
//!
//! * Lookups and inserts into Bloom filters share an entry: they never wait for one another. What makes, grows, clears or
//!   removes a filter has the entry for itself, and nobody else waits for it.
//! * Consecutive requests of one pipeline about one name are run as one batch, so that their memory loads overlap.
//! * A transaction has the whole engine for itself.
//! * Everything that changes an entry goes through one door, which books memory and statistics and tells who watches.
#![forbid(unsafe_code)]

mod busy;
mod commands;
mod digest;
pub mod disk;
mod doubt;
pub mod engine;
mod entry;
pub mod environment;
mod expiries;
mod gate;
pub mod glob;
mod hold;
mod journal;
mod keyspace;
pub mod log;
mod overfull;
mod reclaim;
mod record;
mod reload;
pub mod replay;
pub mod report;
pub mod salvage;
pub mod snapshot;
pub mod statistics;
pub mod watch;

pub use disk::{AppendFile, Disk, DiskFile, Files};
pub use engine::{Engine, Patience, Transaction};
pub use environment::System;
pub use log::{Log, LogError};
pub use reload::ReloadError;
pub use replay::{RecoverError, Recovery};
pub use report::{Detail, Page};
pub use salvage::{Damage, Losses, Salvage};
pub use statistics::{CommandTotals, Statistics, Totals, TypeTotals};
pub use watch::Watch;
