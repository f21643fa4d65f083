//! Every error text that a client can receive, in one place: clients and their tests match on them.

use std::fmt;

use mayhap::codec::DecodeError;

use crate::bits::BitsRefusal;
use crate::lost::Lost;
use crate::mf::MayhapRefusal;
use crate::parameters::ParameterError;
use crate::server::SessionRefusal;

/// Why a request was refused. `Display` is the text on the wire, including its error code. Several of RedisBloom's texts have no code.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The command does not exist.
    UnknownCommand {
        /// The command as it was sent; bytes that are not printable are replaced.
        name: String,
        /// The first arguments, quoted.
        arguments: String,
    },
    /// An error about the connection or the server itself.
    Session(SessionRefusal),
    /// Wrong number of arguments.
    WrongArity {
        /// The command, in lower case.
        command: &'static str,
    },
    /// The key holds a value of another type.
    WrongType,
    /// The key does not exist.
    NotFound,
    /// The key exists already.
    Exists,
    /// A syntax error.
    Syntax,
    /// A pattern for keys is too long.
    PatternTooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Not a 64-bit integer.
    NotAnInteger,
    /// The memory limit for all filters is reached.
    OutOfMemory,
    /// The filter would exceed the limit for a single filter.
    TooLarge {
        /// Bytes it would take.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The key does not exist, but must.
    NoSuchName,
    /// `SCAN`: an invalid cursor.
    InvalidCursor,
    /// `COPY`, `MOVE`: source and destination are the same key.
    SameName,
    /// There is only database 0.
    NoSuchDatabase,
    /// `EXPIRE`, …: a time that cannot be represented.
    InvalidExpiry {
        /// The command, in lower case.
        command: &'static str,
    },
    /// `EXPIRE`, …: an unknown option.
    UnsupportedOption {
        /// The option.
        option: String,
    },
    /// `EXPIRE`, …: options that exclude each other.
    NewAndOthers,
    /// `EXPIRE`, …: options that exclude each other.
    GreaterAndLess,
    /// `RESTORE`: the key exists already.
    BusyName,
    /// `RESTORE`: a negative time to live.
    InvalidTtl,
    /// `RESTORE`: a negative idle time.
    InvalidIdleTime,
    /// `RESTORE`: a frequency out of range.
    InvalidFrequency,
    /// `OBJECT FREQ`: access frequencies are not counted.
    NoFrequency,
    /// `WAIT`: the timeout is not a number.
    BadTimeout,
    /// `WAIT`: the timeout is negative.
    NegativeTimeout,
    /// An unknown subcommand of `MEMORY`, `OBJECT`, …
    UnknownSubcommand {
        /// The command.
        command: &'static str,
        /// The subcommand.
        word: String,
    },
    /// Wrong number of arguments for a subcommand of `MEMORY`, `OBJECT`, …
    WrongSubcommandArity {
        /// The command, in lower case.
        command: &'static str,
        /// The subcommand, in lower case.
        word: &'static str,
    },
    /// `BF.*`: the system or a limit refuses the memory for a new filter.
    InsufficientMemory,
    /// `BF.RESERVE`: the error rate is not a number.
    BadErrorRate,
    /// `BF.RESERVE`: the error rate is not between 0 and 1.
    ErrorRateOutOfRange,
    /// `BF.RESERVE`: the capacity is not a number.
    BadCapacity,
    /// `BF.RESERVE`: the capacity is out of range.
    CapacityOutOfRange,
    /// `BF.ADD`: the filter is full and does not scale.
    NonScalingFull,
    /// `BF.ADD`: the filter cannot grow further.
    ProblemInserting,
    /// `SETBIT` and similar commands: see [`BitsRefusal`].
    Bits(BitsRefusal),
    /// `MF.*`: see [`MayhapRefusal`].
    Mayhap(Box<MayhapRefusal>),
    /// The filter is still being loaded: an answer could be wrong.
    HalfLoaded {
        /// Bytes that have arrived.
        came: u64,
        /// Bytes in total.
        all: u64,
    },
    /// The data of the key is lost: *no* could be wrong.
    Lost(Lost),
    /// `BF.RESERVE`: `EXPANSION` is the last word.
    NoExpansion,
    /// `BF.RESERVE`: the expansion is not a number.
    BadExpansion,
    /// `BF.RESERVE`: the expansion is out of range.
    ExpansionOutOfRange,
    /// `BF.RESERVE`: both `NONSCALING` and `EXPANSION`.
    NonScalingExpands,
    /// `BF.*`: the filter cannot be created.
    CouldNotCreate,
    /// `BF.INSERT`: an invalid error rate.
    InsertErrorRate,
    /// `BF.INSERT`: an invalid expansion.
    InsertExpansion,
    /// `BF.INSERT`, `CF.*`: an invalid capacity.
    PlainBadCapacity,
    /// `BF.INSERT`, `CF.INSERT`: an unknown option.
    UnknownArgument,
    /// `BF.INSERT`: an invalid tightening ratio.
    BadTightening,
    /// `BF.INSERT`: the tightening ratio is not between 0 and 1.
    TighteningOutOfRange,
    /// `BF.INSERT`: the seed does not have 32 bytes.
    InvalidSeed,
    /// `BF.INSERT`: a valid seed, but RedisBloom's layout cannot store one.
    SeedNotHonoured,
    /// `BF.INSERT`: an invalid `VALIDATESCALETO` capacity.
    BadScaleTo,
    /// `BF.INSERT`: the filter could never grow to that capacity.
    ScaleToTooLarge,
    /// `BF.INSERT`: before the filter reaches that capacity, the error rate of a layer would become 0.
    ScaleToNoRate,
    /// `BF.INSERT`: both `NONSCALING` and `VALIDATESCALETO`.
    NonScalingScaleTo,
    /// `BF.INFO`: an unknown field.
    InvalidInformation,
    /// `BF.SCANDUMP`: an invalid iterator.
    ScanNotNumeric,
    /// `BF.LOADCHUNK`: an invalid iterator.
    LoadNotNumeric,
    /// `BF.LOADCHUNK`: an invalid header, or a header for a filter that exists already.
    BadData,
    /// `BF.LOADCHUNK`: an offset after the last sub-filter.
    NoLink,
    /// `BF.LOADCHUNK`: the chunk exceeds its sub-filter.
    ChunkTooBig,
    /// `*.LOADCHUNK`: the chunks leave too many gaps.
    ChunkScattered,
    /// `CF.RESERVE`: the capacity is out of range.
    CuckooCapacity,
    /// `CF.INSERT`: the capacity is out of range.
    CuckooInsertCapacity,
    /// `CF.RESERVE`: the value of an option is not a number.
    CuckooOption {
        /// The option.
        option: &'static str,
    },
    /// `CF.RESERVE`: the value of an option is out of range.
    CuckooOptionOutOfRange {
        /// The option.
        option: &'static str,
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// `CF.*`: the filter cannot be created.
    CuckooNotCreated,
    /// `CF.ADD`: the filter is full and does not grow.
    CuckooFull,
    /// `CF.ADD`: the filter has reached its maximum number of sub-filters.
    MaxExpansions,
    /// `CF.ADD`: the system or a limit refuses the memory for another sub-filter.
    CuckooInsufficientMemory,
    /// `CF.INSERT`: the items before this one used up the work that one request may do.
    TooManyMoves,
    /// `CF.DEL`: the filter does not exist.
    CuckooItemNotFound,
    /// `CF.COMPACT`: the filter does not exist.
    CuckooNotFound,
    /// `CF.SCANDUMP`, `CF.LOADCHUNK`: an invalid iterator.
    InvalidPosition,
    /// `CF.LOADCHUNK`: a header of the wrong length.
    InvalidHeader,
    /// `CF.LOADCHUNK`: the header describes an impossible filter, or one that does not fit into memory.
    ChunkNotCreated,
    /// `CF.LOADCHUNK`: the chunk belongs to no sub-filter.
    ChunkNotLoaded,
    /// `*.SCANDUMP`: the filter has a secret key, and RedisBloom would misread it.
    KeyedHasNoChunks,
    /// `*.LOADCHUNK`: the chunk is in RedisBloom's layout, but the existing filter has a secret key.
    KeyedTakesNoChunks,
    /// `RESTORE`: the checksum is wrong, or the payload is from a newer server.
    PayloadVersionOrChecksum,
    /// `RESTORE`: an invalid value.
    PayloadFormat,
    /// `RESTORE`: a value of a known type or version that is not supported.
    PayloadOther(DecodeError),
    /// `DUMP`: this type of value has no payload format.
    NoPayload,
    /// The log cannot be written because the disk is full: writes are refused until there is room.
    NoSpace,
    /// The disk of the log failed: writes are refused until a restart.
    DiskFailed,
    /// `CONFIG SET`: the value was rejected.
    Parameter {
        /// The parameter.
        name: &'static str,
        /// The reason.
        fault: ParameterError,
    },
}

impl Refusal {
    /// `came` of `all` bytes have arrived.
    #[must_use]
    pub const fn half_loaded((came, all): (u64, u64)) -> Self {
        Self::HalfLoaded { came, all }
    }
}

impl Refusal {
    /// The first of `words` is not a command. Like Redis, the error repeats at most 128 bytes of the words.
    #[must_use]
    pub fn unknown_command(words: &[&[u8]]) -> Self {
        const MOST: usize = 128;
        let shown =
            |word: &[u8], most: usize| String::from_utf8_lossy(&word[..word.len().min(most)]).into_owned();
        let (name, rest) = words.split_first().map_or((&[][..], words), |(name, rest)| (*name, rest));
        let mut arguments = String::new();
        for word in rest {
            if arguments.len() >= MOST {
                break;
            }
            let shown = shown(word, MOST - arguments.len());
            arguments.push_str(&format!("'{shown}' "));
        }
        // A plain explanation, after the text that clients match on.
        let lower = name.to_ascii_lowercase();
        let why = match lower.as_slice() {
            b"eval" | b"eval_ro" | b"evalsha" | b"evalsha_ro" | b"script" | b"fcall" | b"fcall_ro"
            | b"function" => "(mayhap has no scripting)",
            b"subscribe" | b"psubscribe" | b"ssubscribe" | b"publish" | b"spublish" | b"pubsub"
            | b"monitor" => "(mayhap has no channels)",
            _ => "",
        };
        arguments.push_str(why);
        Self::UnknownCommand { name: shown(name, MOST), arguments }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownCommand { name, arguments } => {
                write!(f, "ERR unknown command '{name}', with args beginning with: {arguments}")
            }
            Self::Session(refusal) => refusal.fmt(f),
            Self::WrongArity { command } => {
                write!(f, "ERR wrong number of arguments for '{command}' command")
            }
            Self::WrongType => {
                f.write_str("WRONGTYPE Operation against a key holding the wrong kind of value")
            }
            Self::NotFound => f.write_str("ERR not found"),
            Self::Exists => f.write_str("ERR item exists"),
            Self::Syntax => f.write_str("ERR syntax error"),
            Self::PatternTooLong { bytes, limit } => write!(f, "ERR pattern has {bytes} bytes, limit is {limit}"),
            Self::NotAnInteger => f.write_str("ERR value is not an integer or out of range"),
            Self::OutOfMemory => f.write_str("OOM command not allowed when used memory > 'maxmemory'."),
            Self::TooLarge { bytes, limit } => {
                write!(f, "ERR filter needs {bytes} bytes, a single filter may take {limit}")
            }
            Self::NoSuchName => f.write_str("ERR no such key"),
            Self::InvalidCursor => f.write_str("ERR invalid cursor"),
            Self::SameName => f.write_str("ERR source and destination objects are the same"),
            Self::NoSuchDatabase => f.write_str("ERR DB index is out of range"),
            Self::InvalidExpiry { command } => write!(f, "ERR invalid expire time in '{command}' command"),
            Self::UnsupportedOption { option } => write!(f, "ERR Unsupported option {option}"),
            Self::NewAndOthers => f.write_str("ERR NX and XX, GT or LT options at the same time are not compatible"),
            Self::GreaterAndLess => f.write_str("ERR GT and LT options at the same time are not compatible"),
            Self::BusyName => f.write_str("BUSYKEY Target key name already exists."),
            Self::InvalidTtl => f.write_str("ERR Invalid TTL value, must be >= 0"),
            Self::InvalidIdleTime => f.write_str("ERR Invalid IDLETIME value, must be >= 0"),
            Self::InvalidFrequency => f.write_str("ERR Invalid FREQ value, must be >= 0 and <= 255"),
            Self::NoFrequency => f.write_str("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."),
            Self::BadTimeout => f.write_str("ERR timeout is not an integer or out of range"),
            Self::NegativeTimeout => f.write_str("ERR timeout is negative"),
            Self::UnknownSubcommand { command, word } => {
                write!(f, "ERR unknown subcommand '{word}'. Try {} HELP.", command.to_uppercase())
            }
            Self::WrongSubcommandArity { command, word } => {
                write!(f, "ERR wrong number of arguments for '{command}|{word}' command")
            }
            Self::InsufficientMemory => f.write_str("ERR Insufficient memory to create filter"),
            Self::BadErrorRate => f.write_str("ERR bad error rate"),
            Self::ErrorRateOutOfRange => {
                f.write_str("ERR error rate must be in the range (0.000000, 1.000000)")
            }
            Self::BadCapacity => f.write_str("ERR bad capacity"),
            Self::CapacityOutOfRange => f.write_str("ERR capacity must be in the range [1, 1073741824]"),
            Self::NonScalingFull => f.write_str("ERR non scaling filter is full"),
            Self::ProblemInserting => f.write_str("ERR problem inserting into filter"),
            Self::Bits(refusal) => refusal.fmt(f),
            Self::Mayhap(refusal) => refusal.fmt(f),
            Self::Lost(Lost::Value) => {
                f.write_str("NOTREADY the data of this key is lost: create it again or delete it")
            }
            Self::Lost(Lost::Changes) => {
                f.write_str("NOTREADY changes to this key are lost: create it again or delete it")
            }
            Self::Lost(Lost::Unknown) => f.write_str("NOTREADY this server lost keys, possibly this one: create it again, or accept the loss with mayhap repair"),
            Self::NoExpansion => f.write_str("ERR no expansion"),
            Self::BadExpansion => f.write_str("ERR bad expansion"),
            Self::ExpansionOutOfRange => f.write_str("ERR expansion must be in the range [0, 32768]"),
            Self::NonScalingExpands => f.write_str("Nonscaling filters cannot expand"),
            Self::CouldNotCreate => f.write_str("ERR could not create filter"),
            Self::InsertErrorRate => f.write_str("Bad error rate"),
            Self::InsertExpansion => f.write_str("Bad expansion"),
            Self::PlainBadCapacity => f.write_str("Bad capacity"),
            Self::UnknownArgument => f.write_str("Unknown argument received"),
            Self::BadTightening => f.write_str("ERR bad tightening ratio"),
            Self::TighteningOutOfRange => f.write_str("ERR (0 < tightening ratio range < 1)"),
            Self::InvalidSeed => f.write_str("ERR invalid seed"),
            Self::SeedNotHonoured => f.write_str("ERR SEED is not supported: BF filters hash as RedisBloom does, which has no seed; MF.RESERVE makes keyed filters"),
            Self::BadScaleTo => f.write_str("ERR bad VALIDATESCALETO"),
            Self::ScaleToTooLarge => f.write_str("ERR provided VALIDATESCALETO causes bloom object to exceed memory limit"),
            Self::ScaleToNoRate => f.write_str("ERR provided VALIDATESCALETO causes false positive to degrade to 0"),
            Self::NonScalingScaleTo => f.write_str("ERR cannot use NONSCALING and VALIDATESCALETO options together"),
            Self::InvalidInformation => f.write_str("Invalid information value"),
            Self::ScanNotNumeric => f.write_str("Second argument must be numeric"),
            Self::LoadNotNumeric => f.write_str("ERR Second argument must be numeric"),
            Self::BadData => f.write_str("ERR received bad data"),
            Self::NoLink => f.write_str("ERR invalid offset - no link found"),
            Self::ChunkTooBig => f.write_str("ERR invalid chunk - Too big for current filter"),
            Self::ChunkScattered => f.write_str("ERR invalid chunk - too many pieces, send them in order"),
            Self::CuckooCapacity => f.write_str("Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"),
            Self::CuckooInsertCapacity => f.write_str("Capacity must be in the range [cf-bucket-size * 2, 1073741824]"),
            Self::CuckooNotCreated => f.write_str("ERR Could not create filter"),
            Self::CuckooFull => f.write_str("Filter is full"),
            Self::MaxExpansions => f.write_str("Maximum expansions reached"),
            Self::CuckooInsufficientMemory => f.write_str("ERR Insufficient memory"),
            Self::TooManyMoves => {
                f.write_str("ERR too many moves for one request: send fewer items at once, or make the filter larger")
            }
            Self::CuckooItemNotFound => f.write_str("Not found"),
            Self::CuckooNotFound => f.write_str("Cuckoo filter was not found"),
            Self::InvalidPosition => f.write_str("Invalid position"),
            Self::InvalidHeader => f.write_str("Invalid header"),
            Self::ChunkNotCreated => f.write_str("Couldn't create filter!"),
            Self::ChunkNotLoaded => f.write_str("Couldn't load chunk!"),
            Self::KeyedHasNoChunks => {
                f.write_str("ERR this filter has a secret key and RedisBloom cannot read it: use DUMP and RESTORE")
            }
            Self::KeyedTakesNoChunks => {
                f.write_str("ERR this filter has a secret key and takes no chunks: delete it first")
            }
            Self::PayloadVersionOrChecksum => f.write_str("ERR DUMP payload version or checksum are wrong"),
            Self::PayloadFormat => f.write_str("ERR Bad data format"),
            Self::PayloadOther(why) => write!(f, "ERR Bad data format: {why}"),
            Self::NoPayload => f.write_str("ERR this kind of value cannot be dumped"),
            Self::HalfLoaded { came, all } => {
                write!(f, "NOTREADY filter is being loaded: {came} of {all} bytes have arrived")
            }
            Self::CuckooOption { option } => write!(f, "Couldn't parse {option}"),
            Self::CuckooOptionOutOfRange { option, least, most } => {
                write!(f, "{option}: value must be in the range [{least}, {most}]")
            }
            Self::NoSpace => f.write_str("NOSPACE the disk is full: writes are refused until it has room, lookups still work"),
            Self::DiskFailed => f.write_str("READONLY the disk failed: writes are refused until a restart, lookups still work"),
            Self::Parameter { name, fault } => {
                write!(f, "ERR CONFIG SET failed (possibly related to argument '{name}') - {fault}")
            }
        }
    }
}

impl std::error::Error for Refusal {}

impl From<SessionRefusal> for Refusal {
    fn from(refusal: SessionRefusal) -> Self {
        Self::Session(refusal)
    }
}
