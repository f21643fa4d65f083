//! Benchmarks of mayhap and its rivals: one process, one item stream, thread-CPU time, ratios.
//!
//! ```text
//! items ─▶ every filter in turn (rotated, interleaved) ─▶ samples ─▶ rows ─▶ table / JSON / record
//! ```
//!
//! `cargo run --release -p mayhap-bench -- filters --items 1e6 --fpr 0.01`
#![deny(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod accuracy;
mod bars;
mod clock;
mod contender;
mod count;
mod filters;
mod hashes;
mod heap;
mod items;
mod kinds;
mod limit;
mod logs;
mod measure;
mod ours;
mod readme;
mod record;
mod rivals;
mod row;
mod samples;
mod server;
mod table;

/// Benchmarks of mayhap and its rivals, as ratios within one run.
#[derive(Parser)]
#[command(name = "mayhap-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Time and size of every filter, ours and rivals', on the same items.
    Filters(filters::Args),
    /// Promised, expected and observed rates of every kind over a grid of sizes and rates.
    Accuracy(accuracy::Args),
    /// Compare all kinds, from their shapes and a kept record.
    Kinds(kinds::Args),
    /// Write the table of figures in README.md from a kept record.
    Readme(readme::Args),
    /// Every hash function: width, speed and an avalanche test; writes docs/hash-functions.md.
    Hashes(hashes::Args),
    /// Compare our server with Debian's Redis: CPU time per request and per item.
    Server(server::Args),
    /// Compare our log of changes with crates that offer one.
    Logs(logs::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Filters(args) => filters::run(&args),
        Command::Accuracy(args) => accuracy::run(&args),
        Command::Kinds(args) => kinds::run(&args),
        Command::Readme(args) => readme::run(&args),
        Command::Hashes(args) => hashes::run(&args),
        Command::Server(args) => server::run(&args),
        Command::Logs(args) => logs::run(&args),
    }
}
