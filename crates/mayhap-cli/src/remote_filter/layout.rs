//! What a server does not say of a bitmap, and the flags that say it.

use std::fmt;

use clap::{Args, ValueEnum};
use mayhap::ItemEncoding;
use mayhap_remote::guava::{GuavaShape, Rounding, Strategy};
use serde::Serialize;

use crate::error::CliError;
use crate::quantity;

/// Where `--help` lists these options.
const HEADING: &str = "Bitmaps in a server without a module";

/// Whose layout a bitmap has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// Redisson's: a config lies beside it.
    Redisson,
    /// Guava's placement, by hand.
    Guava,
}

/// How Guava draws positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StrategyName {
    /// `MURMUR128_MITZ_32`, and what is made by hand of the first 64 bits.
    #[value(name = "mitz-32", alias = "mitz32")]
    Mitz32,
    /// `MURMUR128_MITZ_64`.
    #[value(name = "mitz-64", alias = "mitz64")]
    Mitz64,
}

/// What a server does not say of a bitmap.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LayoutArgs {
    /// Whose layout a bitmap has, where that is not seen
    #[arg(help_heading = HEADING, long = "as", value_name = "LAYOUT", value_enum)]
    pub(crate) named: Option<Layout>,
    /// Guava: the bits of the bitmap
    #[arg(help_heading = HEADING, long, value_name = "N", value_parser = quantity::count, requires = "bitmap-probes", conflicts_with = "expected_insertions", hide_short_help = true)]
    bits: Option<u64>,
    /// Guava: the bits that an item sets
    #[arg(help_heading = HEADING, id = "bitmap-probes", long = "probes", value_name = "N", requires = "bits", hide_short_help = true)]
    probes: Option<u32>,
    /// Guava: what its formulas were given, in place of --bits and --probes
    #[arg(help_heading = HEADING, long, value_name = "N", value_parser = quantity::count, requires = "fpp", hide_short_help = true)]
    expected_insertions: Option<u64>,
    /// Guava: the rate they were given
    #[arg(help_heading = HEADING, long, value_name = "RATE", value_parser = quantity::rate, requires = "expected_insertions", hide_short_help = true)]
    fpp: Option<f64>,
    /// Guava: how positions are drawn; by hand mostly from a hash of 64 bits, which is mitz-32
    #[arg(help_heading = HEADING, long, value_name = "NAME", value_enum, default_value = "mitz-32", hide_short_help = true)]
    strategy: Option<StrategyName>,
    /// Guava: a bit behind the last one says that the bitmap is whole; without it, it is not ready
    #[arg(help_heading = HEADING, long, hide_short_help = true)]
    pub(crate) marker: bool,
}

/// What a bitmap with Guava's placement is asked with. The names of the fields are a promise.
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

/// As words of a command line.
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
    /// The measurements of a bitmap with Guava's placement.
    ///
    /// # Errors
    /// They were not given, or make none.
    pub(crate) fn shape(&self) -> Result<GuavaShape, CliError> {
        let strategy = match self.strategy {
            Some(StrategyName::Mitz64) => Strategy::Mitz64,
            _ => Strategy::Mitz32,
        };
        let shape = match (self.bits, self.probes, self.expected_insertions, self.fpp) {
            (Some(bits), Some(probes), ..) => GuavaShape::exactly(bits, probes, strategy),
            (.., Some(items), Some(rate)) => GuavaShape::sized(items, rate, Rounding::Until33, strategy),
            _ => {
                let what = "--as guava: nothing in a server says how large a bitmap is: give --bits and --probes, or \
                            --expected-insertions and --fpp for what Guava's formulas make of them";
                return Err(CliError::Usage(what.into()));
            }
        };
        shape.map_err(|cause| CliError::Usage(format!("--as guava: {cause}")))
    }
}
