//! The engine: many named filters, from a hundred million small ones to one that fills the memory.
//!
//! ```text
//! requests ─▶ Engine ─▶ Keyspace (shards of names) ─▶ Entry (one name) ─▶ its value
//!                ├────▶ Expiries (deadlines)   ├────▶ Watchers (WATCH)   └────▶ Statistics
//! ```
//!
//! * Lookups and inserts into Bloom filters share the lock of an entry: they never wait for each other.
//!   Requests that create, grow, clear or remove a filter lock the entry exclusively. Requests for other
//!   names do not wait for them.
//! * Consecutive requests of one pipeline for one name run as one batch, so that their memory loads overlap.
//! * While a transaction runs, no other request does.
//! * Every change of an entry goes through one function, which updates memory and statistics and notifies
//!   watchers.
#![forbid(unsafe_code)]

mod busy;
mod commands;
mod digest;
pub mod disk;
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
mod unknown_losses;
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

/// Runs the code of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
