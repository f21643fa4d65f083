//! The facts that another program's file does not store, and the flags that give them.

use std::path::Path;

use clap::Args;
use mayhap::ItemEncoding;
use mayhap_formats::block_filter::{self, Parameters};
use mayhap_formats::cassandra::BitOrder;
use mayhap_formats::{Argument, Format, ReadError, ReadOptions, pybloom_live, redisson};

use crate::error::CliError;
use crate::whole_file;

/// The section of `--help` for these options. It is set on each option: set on the struct, it would also apply to the
/// options that follow in a command.
const HEADING: &str = "Filters of other programs";

/// The facts that another program's file does not store.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ForeignArgs {
    /// The format of the filter file [default: detected; `mayhap sniff` lists the candidates]
    #[arg(help_heading = HEADING, long, value_name = "FORMAT")]
    pub(crate) from: Option<Format>,
    /// How the other program turns items into bytes: utf8, i64le, kryo5, … (never guessed)
    #[arg(help_heading = HEADING, long, value_name = "ENCODING")]
    pub(crate) items_as: Option<ItemEncoding>,
    /// Parquet: the column whose filter to use, with dots for nested columns
    #[arg(help_heading = HEADING, id = "parquet-column", long = "column", value_name = "PATH", hide_short_help = true)]
    pub(crate) column: Option<String>,
    /// Parquet: the row group, counted from 0; required if there are several
    #[arg(help_heading = HEADING, long, value_name = "N", hide_short_help = true, requires = "parquet-column")]
    pub(crate) row_group: Option<usize>,
    /// RDB file (dump.rdb): the key of the filter; required if there are several
    #[arg(help_heading = HEADING, long, value_name = "NAME", hide_short_help = true)]
    pub(crate) rdb_key: Option<String>,
    /// Redisson: the reply to HGETALL {name}:config, as name=value,… or as a file
    #[arg(help_heading = HEADING, long, value_name = "FIELDS", hide_short_help = true)]
    pub(crate) redisson_config: Option<String>,
    /// Golomb-coded sets: remainder bits and values per item [default: 19,784931 as in BIP 158]
    #[arg(help_heading = HEADING, long, value_name = "P,M", value_parser = golomb, hide_short_help = true)]
    pub(crate) golomb: Option<Parameters>,
    /// Golomb-coded sets: the key of the hash, 32 hex digits
    #[arg(help_heading = HEADING, long, value_name = "HEX", value_parser = golomb_key, hide_short_help = true)]
    pub(crate) golomb_key: Option<[u8; 16]>,
    /// BIP 158: the block hash as explorers show it, 64 hex digits, instead of --golomb-key
    #[arg(help_heading = HEADING, long, value_name = "HEX", value_parser = block_hash, hide_short_help = true, conflicts_with = "golomb_key")]
    pub(crate) block_hash: Option<[u8; 16]>,
    /// pybloom_live: the version that wrote the file, 3 or 4
    #[arg(help_heading = HEADING, long, value_name = "VERSION", value_parser = pybloom_version, hide_short_help = true)]
    pub(crate) pybloom_version: Option<pybloom_live::PybloomVersion>,
    /// Cassandra: the version that wrote the file, for example 3.11 or 4.1
    #[arg(help_heading = HEADING, long, value_name = "VERSION", value_parser = cassandra_version, hide_short_help = true)]
    pub(crate) cassandra_version: Option<BitOrder>,
    /// Fuse filters of xorf in JSON: the bits of a fingerprint, 8, 16 or 32
    #[arg(help_heading = HEADING, long, value_name = "BITS", hide_short_help = true)]
    pub(crate) fingerprint_bits: Option<u32>,
}

impl ForeignArgs {
    /// All values, for the library.
    pub(crate) fn read_options(&self) -> Result<ReadOptions, CliError> {
        let mut options = ReadOptions::default();
        if let Some(items) = self.items_as {
            options = options.items(items);
        }
        if let Some(fields) = &self.redisson_config {
            options = options.redisson(redisson_config(fields)?);
        }
        if let Some(key) = self.golomb_key.or(self.block_hash) {
            options = options.golomb(self.golomb.unwrap_or(block_filter::BASIC), key);
        }
        if let Some(version) = self.pybloom_version {
            options = options.pybloom_live(version);
        }
        if let Some(order) = self.cassandra_version {
            options = options.cassandra(order);
        }
        if let Some(column) = &self.column {
            options = options.column(self.row_group.unwrap_or(0), column);
        }
        if let Some(bits) = self.fingerprint_bits {
            options = options.fingerprint_bits(bits);
        }
        Ok(options)
    }
}

/// The error text for a file that was not read, with the missing flag.
pub(super) fn said(error: &ReadError, format: Format, name: &str) -> String {
    match error {
        ReadError::Needs { argument, .. } => {
            format!("{format} files do not store {}", missing(*argument, name))
        }
        error => error.to_string(),
    }
}

fn missing(argument: Argument, name: &str) -> String {
    match argument {
        Argument::Items => "how items become bytes: give --items-as (utf8 for most text, i64le for 64-bit numbers, bytes; \
                            docs/formats.md lists it for each program)"
            .into(),
        Argument::RedissonConfig => {
            "their size: give --redisson-config size=…,hashIterations=…,expectedInsertions=…,falseProbability=…, \
             as in the reply to HGETALL {name}:config"
                .into()
        }
        Argument::Golomb => "the key of their hash: give --golomb-key or --block-hash, and --golomb P,M unless they \
                             are those of BIP 158"
            .into(),
        Argument::PybloomLive => "the pybloom_live version: give --pybloom-version 3 or 4".into(),
        Argument::Cassandra => {
            "the Cassandra version: give --cassandra-version, for example 3.11 or 4.1".into()
        }
        Argument::Column => format!(
            "which of their filters to use: give --column, and --row-group if there are several \
             (`mayhap info {name}` lists them)"
        ),
        Argument::FingerprintBits => "the bits of a fingerprint: give --fingerprint-bits 8, 16 or 32".into(),
        _ => "a value that this version of mayhap has no flag for".into(),
    }
}

/// The most bytes of a file with Redisson's fields.
const CONFIG_BYTES: u64 = 64 << 10;

/// Parses `name=value,…`, or reads a file with `name=value` lines, or with alternating names and values as printed by
/// redis-cli.
fn redisson_config(text: &str) -> Result<redisson::Config, CliError> {
    let cli_error = |what: String| CliError::Usage(format!("--redisson-config: {what}"));
    let held;
    let fields = if text.contains('=') {
        text
    } else {
        held = whole_file::read_text(Path::new(text), CONFIG_BYTES)?;
        &held
    };
    let words: Vec<&str> = fields
        .split(['=', ',', '\n'])
        .map(|word| word.trim().trim_matches('"'))
        .filter(|word| !word.is_empty())
        .collect();
    // `1) "size"`, as redis-cli prints on a terminal.
    let bare = |word: &str| match word.split_once(") ") {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            rest.trim_matches('"').to_owned()
        }
        _ => word.to_owned(),
    };
    let pairs = words.chunks_exact(2).map(|pair| (bare(pair[0]), bare(pair[1])));
    redisson::Config::from_fields(pairs).map_err(|error| cli_error(error.to_string()))
}

fn golomb(text: &str) -> Result<Parameters, String> {
    let numbers = text.split_once(',').and_then(|(low_bits, values)| {
        Some(Parameters {
            low_bits: low_bits.trim().parse().ok()?,
            values_per_item: values.trim().parse().ok()?,
        })
    });
    numbers.ok_or_else(|| "give two numbers, for example 19,784931".into())
}

fn golomb_key(text: &str) -> Result<[u8; 16], String> {
    hex(text).ok_or_else(|| "a key must be 32 hex digits".into())
}

/// Explorers show the bytes of a hash in reverse order.
fn block_hash(text: &str) -> Result<[u8; 16], String> {
    let mut hash: [u8; 32] = hex(text).ok_or("a block hash must be 64 hex digits")?;
    hash.reverse();
    Ok(block_filter::key_of_block(&hash))
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(bytes)
}

fn major(text: &str) -> Option<u32> {
    text.split('.').next()?.parse().ok()
}

fn pybloom_version(text: &str) -> Result<pybloom_live::PybloomVersion, String> {
    match major(text) {
        Some(3) => Ok(pybloom_live::PybloomVersion::V3),
        Some(4) => Ok(pybloom_live::PybloomVersion::V4),
        _ => Err("only versions 3 and 4 are supported".into()),
    }
}

fn cassandra_version(text: &str) -> Result<BitOrder, String> {
    match major(text) {
        Some(3) => Ok(BitOrder::Before40),
        Some(4..) => Ok(BitOrder::Since40),
        _ => Err("only versions 3.0 and later are supported".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_redisson_config_is_parsed() {
        let given = "size=9585,hashIterations=7,expectedInsertions=1000,falseProbability=0.01";
        let config = redisson_config(given).unwrap();
        assert_eq!((config.size(), config.hash_iterations(), config.expected_insertions()), (9585, 7, 1000));
        let shown = tempfile::NamedTempFile::new().unwrap();
        let text = "1) \"size\"\n2) \"9585\"\n3) \"hashIterations\"\n4) \"7\"\n5) \"expectedInsertions\"\n6) \"1000\"\n\
                    7) \"falseProbability\"\n8) \"0.01\"\n";
        std::fs::write(shown.path(), text).unwrap();
        assert_eq!(redisson_config(shown.path().to_str().unwrap()).unwrap().size(), 9585);
        let error = redisson_config("size=9585").unwrap_err().to_string();
        assert!(error.starts_with("--redisson-config: "), "{error}");

        assert_eq!(golomb("19,784931"), Ok(block_filter::BASIC));
        assert!(golomb("19").is_err() && golomb_key("00").is_err() && golomb_key(&"0g".repeat(16)).is_err());
        assert_eq!(golomb_key(&"01".repeat(16)), Ok([1; 16]));
        let shown = "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943";
        assert_eq!(block_hash(shown).unwrap()[..4], [0x43, 0x49, 0x7f, 0xd7]);
        assert_eq!(cassandra_version("3.11"), Ok(BitOrder::Before40));
        assert_eq!(cassandra_version("4.1"), Ok(BitOrder::Since40));
        assert!(cassandra_version("2.1").is_err() && pybloom_version("2").is_err());
    }
}
