//! Every text a client may be refused with, in one place: clients and their tests match on them.

use std::fmt;

use mayhap::codec::DecodeError;

use crate::bits::BitsRefusal;
use crate::lost::Lost;
use crate::mf::MayhapRefusal;
use crate::parameters::ParameterError;
use crate::server::SessionRefusal;

/// Why a request was refused. `Display` is the text on the wire, its code included; several of RedisBloom's have none.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such command.
    UnknownCommand {
        /// As it was sent, what cannot be shown replaced.
        name: String,
        /// The first words behind it, quoted.
        arguments: String,
    },
    /// What is about the connection or the server itself.
    Session(SessionRefusal),
    /// The number of words does not fit.
    WrongArity {
        /// The command, in lower case.
        command: &'static str,
    },
    /// The name holds something else.
    WrongType,
    /// The name holds nothing.
    NotFound,
    /// The name holds something already.
    Exists,
    /// The words make no sense together.
    Syntax,
    /// A pattern for names is longer than any.
    PatternTooLong {
        /// Its bytes.
        bytes: usize,
        /// The most it may have.
        limit: usize,
    },
    /// Not a number of 64 bits.
    NotAnInteger,
    /// The memory of all filters is at its limit.
    OutOfMemory,
    /// The filter would be larger than a single one may be.
    TooLarge {
        /// Bytes it would take.
        bytes: u64,
        /// Bytes it may take.
        limit: u64,
    },
    /// The name holds nothing, where it must.
    NoSuchName,
    /// `SCAN`: not a cursor.
    InvalidCursor,
    /// `COPY`, `MOVE`: from and to the same name.
    SameName,
    /// There is one database, number 0.
    NoSuchDatabase,
    /// `EXPIRE`, …: a time that no clock ever shows.
    InvalidExpiry {
        /// The command, in lower case.
        command: &'static str,
    },
    /// `EXPIRE`, …: a word it does not know.
    UnsupportedOption {
        /// The word.
        option: String,
    },
    /// `EXPIRE`, …: conditions that exclude each other.
    NewAndOthers,
    /// `EXPIRE`, …: conditions that exclude each other.
    GreaterAndLess,
    /// `RESTORE`: the name holds something already.
    BusyName,
    /// `RESTORE`: a negative time to live.
    InvalidTtl,
    /// `RESTORE`: a negative time.
    InvalidIdleTime,
    /// `RESTORE`: past its limits.
    InvalidFrequency,
    /// `OBJECT FREQ`: not counted.
    NoFrequency,
    /// `WAIT`: not a number.
    BadTimeout,
    /// `WAIT`: less than nothing.
    NegativeTimeout,
    /// A word behind `MEMORY`, `OBJECT`, … that is none of theirs.
    UnknownSubcommand {
        /// The command, in upper case.
        command: &'static str,
        /// The word.
        word: String,
    },
    /// The number of words does not fit what was asked of `MEMORY`, `OBJECT`, …
    WrongSubcommandArity {
        /// The command, in lower case.
        command: &'static str,
        /// The word behind it, in lower case.
        word: &'static str,
    },
    /// `BF.*`: the system, or a limit, refuses the memory of a new filter.
    InsufficientMemory,
    /// `BF.RESERVE`: not a number.
    BadErrorRate,
    /// `BF.RESERVE`: not between 0 and 1.
    ErrorRateOutOfRange,
    /// `BF.RESERVE`: not a number.
    BadCapacity,
    /// `BF.RESERVE`: past its limits.
    CapacityOutOfRange,
    /// `BF.ADD`: it is full and may not grow.
    NonScalingFull,
    /// `BF.ADD`: it cannot grow any more.
    ProblemInserting,
    /// `SETBIT` and the like: [`BitsRefusal`] has the words.
    Bits(BitsRefusal),
    /// `MF.*`: [`MayhapRefusal`] has the words.
    Mayhap(Box<MayhapRefusal>),
    /// The filter's bytes are still coming in: an answer would be wrong.
    HalfLoaded {
        /// Bytes that came.
        came: u64,
        /// Bytes there are.
        all: u64,
    },
    /// What the name held is lost: *no* would be wrong.
    Lost(Lost),
    /// `BF.RESERVE`: `EXPANSION` is the last word.
    NoExpansion,
    /// `BF.RESERVE`: not a number.
    BadExpansion,
    /// `BF.RESERVE`: past its limits.
    ExpansionOutOfRange,
    /// `BF.RESERVE`: both not growing and growing.
    NonScalingExpands,
    /// `BF.*`: no such filter can be made.
    CouldNotCreate,
    /// `BF.INSERT`: no rate.
    InsertErrorRate,
    /// `BF.INSERT`: no expansion.
    InsertExpansion,
    /// `BF.INSERT`, `CF.*`: no capacity.
    PlainBadCapacity,
    /// `BF.INSERT`, `CF.INSERT`: a word that is none of the options.
    UnknownArgument,
    /// `BF.INSERT`: no ratio.
    BadTightening,
    /// `BF.INSERT`: not between 0 and 1.
    TighteningOutOfRange,
    /// `BF.INSERT`: a seed has 32 bytes.
    InvalidSeed,
    /// `BF.INSERT`: a seed of 32 bytes, which this layout has no place for.
    SeedNotHonoured,
    /// `BF.INSERT`: no capacity to scale to.
    BadScaleTo,
    /// `BF.INSERT`: it could never hold so many.
    ScaleToTooLarge,
    /// `BF.INSERT`: before it held so many, no error would be left to share.
    ScaleToNoRate,
    /// `BF.INSERT`: both not growing and growing.
    NonScalingScaleTo,
    /// `BF.INFO`: no such field.
    InvalidInformation,
    /// `BF.SCANDUMP`: no iterator.
    ScanNotNumeric,
    /// `BF.LOADCHUNK`: no iterator.
    LoadNotNumeric,
    /// `BF.LOADCHUNK`: no header, or one where there is a filter.
    BadData,
    /// `BF.LOADCHUNK`: behind the last sub-filter.
    NoLink,
    /// `BF.LOADCHUNK`: past the end of its sub-filter.
    ChunkTooBig,
    /// `*.LOADCHUNK`: too many gaps are left.
    ChunkScattered,
    /// `CF.RESERVE`: past its limits.
    CuckooCapacity,
    /// `CF.INSERT`: past its limits.
    CuckooInsertCapacity,
    /// `CF.RESERVE`: an option without a number.
    CuckooOption {
        /// The option.
        option: &'static str,
    },
    /// `CF.RESERVE`: an option past its limits.
    CuckooOptionOutOfRange {
        /// The option.
        option: &'static str,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// `CF.*`: no such filter can be made.
    CuckooNotCreated,
    /// `CF.ADD`: it is full and may not grow.
    CuckooFull,
    /// `CF.ADD`: it grew as often as it may.
    MaxExpansions,
    /// `CF.ADD`: the system, or a limit, refuses the memory of another sub-filter.
    CuckooInsufficientMemory,
    /// `CF.INSERT`: the items before this one took as much work as one request may ask for.
    TooManyMoves,
    /// `CF.DEL`: there is no such filter.
    CuckooItemNotFound,
    /// `CF.COMPACT`: there is no such filter.
    CuckooNotFound,
    /// `CF.SCANDUMP`, `CF.LOADCHUNK`: no iterator.
    InvalidPosition,
    /// `CF.LOADCHUNK`: no header, for it has another length.
    InvalidHeader,
    /// `CF.LOADCHUNK`: the header announces what no filter has, or what there is no memory for.
    ChunkNotCreated,
    /// `CF.LOADCHUNK`: it belongs nowhere.
    ChunkNotLoaded,
    /// `*.SCANDUMP`: RedisBloom would misread a filter with a secret key.
    KeyedHasNoChunks,
    /// `*.LOADCHUNK`: chunks are of RedisBloom's layout, and the filter that is there has a secret key.
    KeyedTakesNoChunks,
    /// `RESTORE`: not what `DUMP` said, or from a newer server.
    PayloadVersionOrChecksum,
    /// `RESTORE`: no value.
    PayloadFormat,
    /// `RESTORE`: a value of a type, or of a version, that is known by name and not held here.
    PayloadOther(DecodeError),
    /// `DUMP`: there is no payload for this kind of value.
    NoPayload,
    /// The log cannot be written for want of room on the disk: changes are refused until there is some.
    NoSpace,
    /// The disk of the log failed: changes are refused until a restart.
    DiskFailed,
    /// `CONFIG SET`: the value was not taken.
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Why not.
        fault: ParameterError,
    },
}

impl Refusal {
    /// Only so many bytes came, of so many.
    #[must_use]
    pub const fn half_loaded((came, all): (u64, u64)) -> Self {
        Self::HalfLoaded { came, all }
    }
}

impl Refusal {
    /// There is no command of the first of `words`. As much of them is repeated as Redis repeats: 128 bytes.
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
        // Said plainly, behind the text that clients know.
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
                write!(f, "ERR unknown subcommand '{word}'. Try {command} HELP.")
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
                f.write_str("NOTREADY what this name held is lost: make it again or delete it")
            }
            Self::Lost(Lost::Changes) => {
                f.write_str("NOTREADY changes to this name are lost: make it again or delete it")
            }
            Self::Lost(Lost::Unknown) => f.write_str("NOTREADY names of this server are lost, this one may be one of them: make it again, or accept the loss with mayhap repair"),
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
            Self::NoSpace => f.write_str("NOSPACE the disk is full: changes are refused until there is room on it, lookups go on"),
            Self::DiskFailed => f.write_str("READONLY the disk failed: changes are refused until a restart, lookups go on"),
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
