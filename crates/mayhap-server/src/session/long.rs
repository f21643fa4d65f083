//! Which requests might keep a worker, and so all its connections, busy for many milliseconds. They are run on threads of their own.

use mayhap_command::run::Keyspace;
use mayhap_command::{Access, Request, Run, args};
use mayhap_engine::Engine;

/// A request with more bytes than this keeps a worker busy for long.
pub(super) const LARGE_BYTES: usize = 1 << 20;
/// As many items take long wherever they go.
const MANY_WORDS: usize = 4_096;
/// As many take long in a filter so large that most of its memory was never touched: the system clears it page by page.
const SOME_WORDS: usize = 32;
/// From this size on, such a filter takes long: all of a smaller one is cleared in less than a tenth of a second.
const LARGE_FILTER_BYTES: u64 = 1 << 30;
/// From this size on, whatever goes over all of a value takes long.
const LARGE_VALUE_BYTES: u64 = 1 << 20;

/// A pattern of more bytes may have a run that takes more than a few steps for every byte of a name.
const LONG_PATTERN_BYTES: usize = 256;

/// Might this request of so many bytes take long?
pub(super) fn takes_long(request: &Request<'_>, bytes: usize, engine: &Engine) -> bool {
    let words = request.words;
    bytes > LARGE_BYTES
        || words.len() > MANY_WORDS
        || engine.is_busy(request)
        || match request.command.run {
            // Who only asks touches nothing that has to be cleared.
            Run::Items(_) => {
                words.len() > SOME_WORDS
                    && request.command.flags.access == Access::Write
                    && reaches(engine, request) >= LARGE_FILTER_BYTES
            }
            Run::Gather(_) => true,
            Run::Keyspace(which) => match which {
                Keyspace::List | Keyspace::Flush => true,
                Keyspace::Dump | Keyspace::Copy => engine.bytes_of(request.name()) >= LARGE_VALUE_BYTES,
                // Decoding takes longer than the bytes would let one think: some kinds are built anew.
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
                // What is between the end and there has to be made.
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

/// The size of the filter, or of the one it may become with these items.
fn reaches(engine: &Engine, request: &Request<'_>) -> u64 {
    engine.reach_of(request.name())
}

/// `SCAN … COUNT n MATCH pattern`: more than is quickly walked over, or a pattern that is not quickly compared?
fn asks_for_many(words: &[&[u8]]) -> bool {
    let many = |word: &&[u8]| {
        args::integer(word).is_some_and(|count| count > 10_000) || word.len() > LONG_PATTERN_BYTES
    };
    words.get(2..).is_some_and(|options| options.iter().any(many))
}

/// Is there an offset far behind the end of a string of so many bytes?
fn names_far_place(request: &Request<'_>, bytes: u64) -> bool {
    let near = bytes.saturating_add(LARGE_VALUE_BYTES);
    let per_byte = if request.command.name == "setrange" { 1 } else { 8 };
    let far = |word: &&[u8]| match word.strip_prefix(b"#") {
        // Fields of 64 bits at the most.
        Some(fields) => args::integer(fields).is_some_and(|field| field.unsigned_abs() > near / 8),
        None => args::integer(word).is_some_and(|offset| offset.unsigned_abs() / per_byte > near),
    };
    request.words.get(2..).is_some_and(|words| words.iter().any(far))
}
