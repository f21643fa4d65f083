//! Finds requests that might keep a worker, and so all its connections, busy for many milliseconds. They run
//! on threads of their own.

use mayhap_command::traits::Cost;
use mayhap_command::{Request, args};
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
/// A larger payload takes long.
const LARGE_PAYLOAD_BYTES: usize = 64 << 10;

/// A longer pattern may need more than a few steps for every byte of a name.
const LONG_PATTERN_BYTES: usize = 256;

/// Whether this request of `bytes` bytes might take long.
pub(super) fn takes_long(request: &Request<'_>, bytes: usize, engine: &Engine) -> bool {
    let words = request.words;
    bytes > LARGE_BYTES
        || words.len() > MANY_WORDS
        || engine.is_busy(request)
        || match request.command.traits.cost {
            Cost::Short => false,
            Cost::Long => true,
            Cost::LargeValue => engine.bytes_of(request.name()) >= LARGE_VALUE_BYTES,
            Cost::LargePayload => bytes > LARGE_PAYLOAD_BYTES,
            Cost::ManyItems => {
                words.len() > SOME_WORDS && engine.reach_of(request.name()) >= LARGE_FILTER_BYTES
            }
            Cost::FarOffset { per_byte } => names_far_place(words, per_byte, engine.bytes_of(request.name())),
            Cost::ManyKeys => asks_for_many(words),
        }
}

/// Whether `SCAN … COUNT n MATCH pattern` visits many names or has a pattern that is slow to match.
fn asks_for_many(words: &[&[u8]]) -> bool {
    let many = |word: &&[u8]| {
        args::integer(word).is_some_and(|count| count > 10_000) || word.len() > LONG_PATTERN_BYTES
    };
    words.get(2..).is_some_and(|options| options.iter().any(many))
}

/// Whether a word is an offset far beyond the end of a string of `bytes` bytes.
fn names_far_place(words: &[&[u8]], per_byte: u64, bytes: u64) -> bool {
    let near = bytes.saturating_add(LARGE_VALUE_BYTES);
    let far = |word: &&[u8]| match word.strip_prefix(b"#") {
        // A field has at most 64 bits.
        Some(fields) => args::integer(fields).is_some_and(|field| field.unsigned_abs() > near / 8),
        None => args::integer(word).is_some_and(|offset| offset.unsigned_abs() / per_byte > near),
    };
    words.get(2..).is_some_and(|words| words.iter().any(far))
}
