//! Facts about a command that server, engine and module need before it runs, in addition to its arguments and keys. A row states only
//! the unusual ones: `Traits { cost: Cost::LargeValue, ..Traits::USUAL }`.

use crate::server::Subcommand;
use crate::touch::Touch;

/// The traits of one row.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// When a request may occupy a thread for many milliseconds.
    pub cost: Cost,
    /// Whether one reply may be as long as a whole value.
    pub long_reply: bool,
    /// How the command accesses its keys.
    pub touches: Touches,
    /// How much its reply reveals of a filter's secret key.
    pub reveals: Reveals,
    /// The words that other users must not see.
    pub secrets: Secrets,
    /// What happens between `MULTI` and `EXEC`.
    pub in_transaction: InTransaction,
    /// What happens if the data of its key is lost.
    pub after_loss: AfterLoss,
    /// Whether clients may run it before they authenticate. If so, it cannot be disabled.
    pub needs_no_authentication: bool,
    /// Whether it is disabled unless the settings enable it.
    pub off_by_default: bool,
    /// Whether `SLOWLOG` omits it.
    pub skips_slow_log: bool,
    /// Whether it deletes its keys.
    pub deletes_keys: bool,
    /// Whether it is in the ACL category `@dangerous` although it is not for administrators.
    pub dangerous: bool,
    /// Whether RedisBloom has it in `@fast`. For commands of other families the flag `fast` decides.
    pub redis_bloom_fast: bool,
    /// The ACL category that replaces the family's.
    pub category: Option<&'static str>,
    /// The hints of `COMMAND INFO` for clients that use several servers.
    pub tips: &'static [&'static str],
    /// Its table of subcommands, or an empty one.
    pub subcommands: &'static [Subcommand],
}

impl Traits {
    /// A short request without secrets that transactions queue.
    pub const USUAL: Self = Self {
        cost: Cost::Short,
        long_reply: false,
        touches: Touches::Usual,
        reveals: Reveals::Nothing,
        secrets: Secrets::None,
        in_transaction: InTransaction::Queued,
        after_loss: AfterLoss::Refused,
        needs_no_authentication: false,
        off_by_default: false,
        skips_slow_log: false,
        deletes_keys: false,
        dangerous: false,
        redis_bloom_fast: false,
        category: None,
        tips: &[],
        subcommands: &[],
    };
    /// As usual, but it processes a whole value.
    pub const LARGE_VALUE: Self = Self { cost: Cost::LargeValue, ..Self::USUAL };
    /// As usual, but it always takes a long time.
    pub const LONG: Self = Self { cost: Cost::Long, ..Self::USUAL };
    /// It returns a whole value, or a part of any length.
    pub const LONG_REPLY: Self = Self { long_reply: true, ..Self::LARGE_VALUE };
}

/// When a request may occupy a thread for many milliseconds. A request with many bytes or words may do so, whatever the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Never.
    Short,
    /// Always.
    Long,
    /// When the value is large, because the request processes the whole value.
    LargeValue,
    /// When the payload is large, because decoding is slow for its size.
    LargePayload,
    /// When it inserts many items into a large filter, because the memory may be untouched so far.
    ManyItems,
    /// When a word is an offset far beyond the end of the value, because the bytes in between must be allocated.
    FarOffset {
        /// The number of such offsets in one byte.
        per_byte: u64,
    },
    /// When it visits many keys, or its pattern is slow to match.
    ManyKeys,
}

/// How a command accesses its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touches {
    /// It writes them if it changes values. Otherwise it reads them.
    Usual,
    /// It accesses all of them in this way.
    Each(Touch),
    /// It accesses the first key in the first way, and the others in the second.
    FirstAndRest(Touch, Touch),
    /// It accesses them in one way if one of these words follows, and otherwise in another.
    If {
        /// The words, in lower case.
        words: &'static [&'static str],
        /// The position from which to look for them.
        from: usize,
        /// How it accesses its keys if one of the words follows.
        then: Touch,
        /// How it accesses its keys otherwise.
        otherwise: Touch,
    },
    /// It names no key and changes every key. No other request runs at the same time.
    Everything,
}

/// How much a reply reveals of a filter's secret key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reveals {
    /// Nothing.
    Nothing,
    /// It returns the bytes of a value. The bytes of a filter contain its key.
    Bytes,
    /// It returns the key, or the positions of items, which depend on the key.
    Key,
}

/// Words of a request that other users must not see: passwords, and the keys of filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// None.
    None,
    /// The word at this position.
    At(usize),
    /// All words from this position on.
    From(usize),
    /// The words after each occurrence of a word.
    After {
        /// The word, in lower case.
        word: &'static str,
        /// The number of words after it.
        count: usize,
    },
}

/// What happens to a request between `MULTI` and `EXEC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InTransaction {
    /// It is queued until `EXEC`.
    Queued,
    /// It runs immediately.
    AtOnce,
    /// It is refused.
    Refused,
}

/// What happens to a request on a key whose data is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterLoss {
    /// It is refused.
    Refused,
    /// It creates the key again.
    Creates,
    /// It creates the key again, unless a word at or after a position needs the lost value.
    CreatesUnless {
        /// The word, in lower case.
        word: &'static str,
        /// The position from which to look for it.
        from: usize,
    },
}

/// Returns whether one of `words`, from position `from` on, is one of `wanted`, in upper or lower case.
#[must_use]
pub(crate) fn has_word(words: &[&[u8]], from: usize, wanted: &[&str]) -> bool {
    let is_wanted = |word: &&[u8]| wanted.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes()));
    words.get(from..).unwrap_or_default().iter().any(is_wanted)
}

/// Hints that several commands share.
pub(crate) mod tips {
    pub(crate) const EVERY_SERVER: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
    pub(crate) const SUM_OF_EVERY_SERVER: &[&str] = &["request_policy:all_shards", "response_policy:agg_sum"];
    pub(crate) const SUM_BY_KEYS: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];
    pub(crate) const NONDETERMINISTIC: &[&str] = &["nondeterministic_output"];
    pub(crate) const ANY_ORDER: &[&str] = &["nondeterministic_output_order"];
    pub(crate) const NOT_CACHED: &[&str] = &["dont_cache"];
}
