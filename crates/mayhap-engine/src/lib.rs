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

mod commands;
pub mod disk;
pub mod engine;
mod entry;
pub mod environment;
mod expiries;
mod gate;
pub mod glob;
mod hold;
mod keyspace;
mod reclaim;
pub mod report;
pub mod snapshot;
pub mod statistics;
pub mod watch;

pub use disk::{Disk, DiskFile, Files};
pub use engine::Engine;
pub use environment::System;
pub use report::{Detail, Page};
pub use statistics::{CommandTotals, Statistics, Totals, TypeTotals};
pub use watch::Watch;
