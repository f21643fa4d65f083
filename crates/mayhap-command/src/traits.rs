//! What server, engine and module must know of a command before it runs, beside its words and its keys. A row states what is unusual:
//! `Traits { cost: Cost::LargeValue, ..Traits::USUAL }`.

use crate::server::Subcommand;
use crate::touch::Touch;

/// The further facts of one row.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// When a request may keep a thread busy for many milliseconds.
    pub cost: Cost,
    /// One reply may be as long as a whole value.
    pub long_reply: bool,
    /// How it accesses its keys.
    pub touches: Touches,
    /// What its reply reveals of a filter's secret key.
    pub reveals: Reveals,
    /// Which of its words must not be shown to others.
    pub secrets: Secrets,
    /// What happens between `MULTI` and `EXEC`.
    pub in_transaction: InTransaction,
    /// What happens if the data of its key is lost.
    pub after_loss: AfterLoss,
    /// Clients may run it before they authenticate. It cannot be disabled.
    pub needs_no_authentication: bool,
    /// Disabled unless the settings enable it.
    pub off_by_default: bool,
    /// `SLOWLOG` never has it.
    pub skips_slow_log: bool,
    /// Its keys are gone afterwards.
    pub deletes_keys: bool,
    /// In the ACL category `@dangerous`, though it is not for administrators.
    pub dangerous: bool,
    /// RedisBloom has it in `@fast`. The flag `fast` decides for commands of other families.
    pub redis_bloom_fast: bool,
    /// The ACL category in place of the family's.
    pub category: Option<&'static str>,
    /// The hints of `COMMAND INFO` for clients of several servers.
    pub tips: &'static [&'static str],
    /// Its subcommands, if it has a table of them.
    pub subcommands: &'static [Subcommand],
}

impl Traits {
    /// Short, nothing secret, queued in transactions.
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
    /// As usual, but it works on all of a value.
    pub const LARGE_VALUE: Self = Self { cost: Cost::LargeValue, ..Self::USUAL };
    /// As usual, but it always takes long.
    pub const LONG: Self = Self { cost: Cost::Long, ..Self::USUAL };
    /// Returns all of a value, or a part of any length.
    pub const LONG_REPLY: Self = Self { long_reply: true, ..Self::LARGE_VALUE };
}

/// When a request may keep a thread busy for many milliseconds. Requests of many bytes or words do so whatever the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Never.
    Short,
    /// Always.
    Long,
    /// When the value is large: it works on all of it.
    LargeValue,
    /// When the payload is large: decoding is slow for its size.
    LargePayload,
    /// When it inserts many items into a large filter, whose memory may be untouched.
    ManyItems,
    /// When a word is an offset far beyond the end of the value: the bytes in between have to be allocated.
    FarOffset {
        /// The number of such offsets in one byte.
        per_byte: u64,
    },
    /// When it visits many keys, or has a pattern that is slow to match.
    ManyKeys,
}

/// How a command accesses its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touches {
    /// It writes them if it changes values, otherwise it reads them.
    Usual,
    /// All of them in this way.
    Each(Touch),
    /// The first in one way, the others in another.
    FirstAndRest(Touch, Touch),
    /// In the first way if one of these words follows, otherwise in the second.
    If {
        /// The words, in lower case.
        words: &'static [&'static str],
        /// The position of the first word that may be one of them.
        from: usize,
        /// How it accesses its keys then.
        then: Touch,
        /// How it accesses them otherwise.
        otherwise: Touch,
    },
    /// It names no key and changes every key. No other request runs meanwhile.
    Everything,
}

/// What a reply reveals of a filter's secret key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reveals {
    /// Nothing.
    Nothing,
    /// It is the bytes of a value, and those of a filter contain its key.
    Bytes,
    /// The key, or where the key places items.
    Key,
}

/// Words of a request that must not be shown to others: passwords, and the keys of filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// None.
    None,
    /// The word at this position.
    At(usize),
    /// All words from this position on.
    From(usize),
    /// Those after each occurrence of a word.
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
    /// It waits for `EXEC`.
    Queued,
    /// It runs at once.
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
    /// It creates the key again, unless one of its words from a position on asks for the lost value.
    CreatesUnless {
        /// The word, in lower case.
        word: &'static str,
        /// The position of the first word that may be it.
        from: usize,
    },
}

/// Is one of `words` from the position `from` on one of `wanted`, in upper or lower case?
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
