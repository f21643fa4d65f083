//! The code of the fuzz targets: each is a function that panics if a guarantee is broken. The targets themselves are in `fuzz`, a separate workspace;
//! `tests/corpora.rs` runs the same functions over the same corpora without a fuzzer.
//!
//! ```text
//! bytes ─▶ Input (choices) ─▶ seal (correct checksums) ─▶ the code under test ─▶ a model, or decode–encode–decode
//! ```
//!
//! * "Did not crash" is not enough: input that was accepted must keep its guarantees afterwards.
//! * Checksums are corrected before the code sees the bytes; otherwise nothing would pass the first check.
//! * Everything is in memory and depends only on the bytes; only [`settings`] and [`http`] need a folder and a socket.
#![forbid(unsafe_code)]

pub mod commands;
pub mod exercise;
pub mod folder;
pub mod formats;
pub mod http;
pub mod input;
pub mod log;
pub mod meter;
pub mod mutate;
pub mod payloads;
pub mod random;
pub mod requests;
pub mod resp;
pub mod seal;
pub mod settings;
pub mod snapshot;
pub mod test_engine;

/// A target: its name, which is also that of its corpus, and its function.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name for `just fuzz`.
    pub name: &'static str,
    /// Panics if a guarantee is broken.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 9] = [
    Target { name: "resp", run: resp::run },
    Target { name: "commands", run: commands::run },
    Target { name: "snapshot", run: snapshot::run },
    Target { name: "log", run: log::run },
    Target { name: "folder", run: folder::run },
    Target { name: "formats", run: formats::run },
    Target { name: "payloads", run: payloads::run },
    Target { name: "settings", run: settings::run },
    Target { name: "http", run: http::run },
];
