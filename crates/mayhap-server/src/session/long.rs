//! Finds requests that might keep a worker, and so all its connections, busy for many milliseconds. They run
//! on threads of their own.

use mayhap_command::run::Keyspace;
use mayhap_command::{Access, Request, Run, args};
use mayhap_engine::Engine;

/// A request of more bytes takes long.
pub(super) const LARGE_BYTES: usize = 1 << 20;
/// A request of more words takes long, whatever the filter.
const MANY_WORDS: usize = 4_096;
/// A request of more words takes long in a filter of at least [`LARGE_FILTER_BYTES`]: most of its memory may
/// be untouched, and the system clears such memory page by page.
const SOME_WORDS: usize = 32;
/// The size of a filter from which on untouched memory matters. A smaller filter is cleared in less than 100
/// ms.
const LARGE_FILTER_BYTES: u64 = 1 << 30;
/// The size of a value from which on operations on all of it take long.
const LARGE_VALUE_BYTES: u64 = 1 << 20;

/// A longer pattern may need more than a few steps for every byte of a name.
const LONG_PATTERN_BYTES: usize = 256;

/// Whether this request of `bytes` bytes might take long.
pub(super) fn takes_long(request: &Request<'_>, bytes: usize, engine: &Engine) -> bool {
    let words = request.words;
    bytes > LARGE_BYTES
        || words.len() > MANY_WORDS
        || engine.is_busy(request)
        || match request.command.run {
            // Lookups touch no memory that has to be cleared.
            Run::Items(_) => {
                words.len() > SOME_WORDS
                    && request.command.flags.access == Access::Write
                    && reaches(engine, request) >= LARGE_FILTER_BYTES
            }
            Run::Gather(_) => true,
            Run::Keyspace(which) => match which {
                Keyspace::List | Keyspace::Flush => true,
                Keyspace::Dump | Keyspace::Copy => engine.bytes_of(request.name()) >= LARGE_VALUE_BYTES,
                // Decoding is slow for its size: some kinds are rebuilt.
                Keyspace::Restore => bytes > 64 << 10,
                Keyspace::Scan => asks_for_many(words),
                _ => false,
            },
            Run::Change(_) | Run::Look(_) => match request.command.name {
                "mf.build" | "mf.load" => true,
                "mf.dump" | "cf.compact" | "mf.clear" | "mf.info" | "mf.card" | "mf.explain" | "get"
                | "getdel" | "set" | "getrange" | "bitcount" | "bitpos" | "append" | "bf.scandump"
                | "cf.scandump" | "bf.debug" | "cf.debug" => {
                    engine.bytes_of(request.name()) >= LARGE_VALUE_BYTES
                }
                // Bytes between the end and the offset have to be allocated.
                "setbit" | "setrange" | "bitfield" => {
                    names_far_place(request, engine.bytes_of(request.name()))
                }
                "bf.insert" | "cf.insert" | "cf.insertnx" => {
                    words.len() > SOME_WORDS && reaches(engine, request) >= LARGE_FILTER_BYTES
                }
                _ => false,
            },
            Run::Server(_) => false,
        }
}

/// The size of the filter, or the size it may grow to with these items.
fn reaches(engine: &Engine, request: &Request<'_>) -> u64 {
    engine.reach_of(request.name())
}

/// Whether `SCAN … COUNT n MATCH pattern` visits many names or has a pattern that is slow to match.
fn asks_for_many(words: &[&[u8]]) -> bool {
    let many = |word: &&[u8]| {
        args::integer(word).is_some_and(|count| count > 10_000) || word.len() > LONG_PATTERN_BYTES
    };
    words.get(2..).is_some_and(|options| options.iter().any(many))
}

/// Whether a word is an offset far beyond the end of a string of `bytes` bytes.
fn names_far_place(request: &Request<'_>, bytes: u64) -> bool {
    let near = bytes.saturating_add(LARGE_VALUE_BYTES);
    let per_byte = if request.command.name == "setrange" { 1 } else { 8 };
    let far = |word: &&[u8]| match word.strip_prefix(b"#") {
        // A field has at most 64 bits.
        Some(fields) => args::integer(fields).is_some_and(|field| field.unsigned_abs() > near / 8),
        None => args::integer(word).is_some_and(|offset| offset.unsigned_abs() / per_byte > near),
    };
    request.words.get(2..).is_some_and(|words| words.iter().any(far))
}
