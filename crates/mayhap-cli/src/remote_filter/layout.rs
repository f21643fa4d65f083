//! The properties of a bitmap that a server does not store, and the flags that supply them.

use std::fmt;

use clap::{Args, ValueEnum};
use mayhap::ItemEncoding;
use mayhap_remote::guava::{GuavaShape, Rounding, Strategy};
use mayhap_server::quantity;
use serde::Serialize;

use crate::error::CliError;

/// The heading of these options in `--help`.
const HEADING: &str = "Bitmaps in a server without a module";

/// The layout of a bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// Redisson's: a config is stored next to it.
    Redisson,
    /// Guava's placement, written by an application.
    Guava,
}

/// How Guava computes positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StrategyName {
    /// `MURMUR128_MITZ_32`, which applications reimplement from the first 64 bits.
    #[value(name = "mitz-32", alias = "mitz32")]
    Mitz32,
    /// `MURMUR128_MITZ_64`.
    #[value(name = "mitz-64", alias = "mitz64")]
    Mitz64,
}

/// The properties of a bitmap that a server does not store.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LayoutArgs {
    /// Layout of a bitmap, if it cannot be detected
    #[arg(help_heading = HEADING, long = "as", value_name = "LAYOUT", value_enum)]
    pub(crate) named: Option<Layout>,
    /// Guava: number of bits in the bitmap
    #[arg(help_heading = HEADING, long, value_name = "N", value_parser = quantity::count, requires = "bitmap-probes", conflicts_with = "expected_insertions", hide_short_help = true)]
    bits: Option<u64>,
    /// Guava: number of bits that each item sets
    #[arg(help_heading = HEADING, id = "bitmap-probes", long = "probes", value_name = "N", requires = "bits", hide_short_help = true)]
    probes: Option<u32>,
    /// Guava: the expected insertions it was created with, in place of --bits and --probes
    #[arg(help_heading = HEADING, long, value_name = "N", value_parser = quantity::count, requires = "fpp", hide_short_help = true)]
    expected_insertions: Option<u64>,
    /// Guava: the false-positive probability it was created with
    #[arg(help_heading = HEADING, long, value_name = "RATE", value_parser = quantity::rate, requires = "expected_insertions", hide_short_help = true)]
    fpp: Option<f64>,
    /// Guava: how positions are computed; bitmaps filled by hand mostly use the first 64 bits of the hash, which is mitz-32
    #[arg(help_heading = HEADING, long, value_name = "NAME", value_enum, default_value = "mitz-32", hide_short_help = true)]
    strategy: Option<StrategyName>,
    /// Guava: the bit after the last one is a marker that the bitmap is complete; if it is 0, answers are "not ready"
    #[arg(help_heading = HEADING, long, hide_short_help = true)]
    pub(crate) marker: bool,
}

/// The flags to query a bitmap with Guava's placement. The field names are those of `--json` and must not change.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AskedWith {
    items_as: &'static str,
    bits: u64,
    probes: u32,
    strategy: &'static str,
    marker: bool,
}

impl AskedWith {
    pub(crate) fn new(shape: &GuavaShape, items: ItemEncoding, marker: bool) -> Self {
        let strategy = match shape.strategy() {
            Strategy::Mitz64 => "mitz-64",
            _ => "mitz-32",
        };
        Self { items_as: items.name(), bits: shape.bits(), probes: shape.probes(), strategy, marker }
    }
}

/// As flags of a command line.
impl fmt::Display for AskedWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { items_as, bits, probes, strategy, marker } = self;
        let marker = if *marker { " --marker" } else { "" };
        write!(
            f,
            "--as guava --items-as {items_as} --bits {bits} --probes {probes} --strategy {strategy}{marker}"
        )
    }
}

impl LayoutArgs {
    /// The dimensions of a bitmap with Guava's placement.
    ///
    /// # Errors
    /// They were not given or are invalid.
    pub(crate) fn shape(&self) -> Result<GuavaShape, CliError> {
        let strategy = match self.strategy {
            Some(StrategyName::Mitz64) => Strategy::Mitz64,
            _ => Strategy::Mitz32,
        };
        let shape = match (self.bits, self.probes, self.expected_insertions, self.fpp) {
            (Some(bits), Some(probes), ..) => GuavaShape::exactly(bits, probes, strategy),
            (.., Some(items), Some(rate)) => GuavaShape::sized(items, rate, Rounding::Until33, strategy),
            _ => {
                let what = "--as guava: the server does not store the size of a bitmap: give --bits and --probes, or \
                            --expected-insertions and --fpp to compute them with Guava's formulas";
                return Err(CliError::Usage(what.into()));
            }
        };
        shape.map_err(|cause| CliError::Usage(format!("--as guava: {cause}")))
    }
}
