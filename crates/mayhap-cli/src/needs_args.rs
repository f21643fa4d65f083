//! The arguments that describe the filter to plan or build. `plan` and `build` share them.

use clap::Args;
use mayhap_advise::{Deletes, Growth, ItemShape, Needs};

use crate::quantity::{self, QuantityError};

/// The number of items, the false-positive rate, the memory, and how the set changes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NeedsArgs {
    /// The number of distinct items: 1000000, 1e6, 10M; with --grows, a first estimate
    #[arg(long, value_name = "N", value_parser = quantity::count, allow_hyphen_values = true)]
    pub(crate) items: Option<u64>,
    /// The false-positive rate to aim for: 0.01, 1%, 1e-6 [default of `build`: 1%, unless --memory is given]
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, allow_hyphen_values = true)]
    pub(crate) fpr: Option<f64>,
    /// The most memory the filter may take: 100MB, 64MiB; without --fpr, the lowest rate that fits is used
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, allow_hyphen_values = true)]
    pub(crate) memory: Option<u64>,
    /// The number of bits each item sets in a Bloom filter [default: chosen for the lowest rate]
    #[arg(long, value_name = "K", value_parser = small_count, allow_hyphen_values = true)]
    pub(crate) probes: Option<u32>,
    /// Items will be removed: at most N removals in total, without N any number
    #[arg(long, value_name = "N", value_parser = removals, num_args = 0..=1, allow_negative_numbers = true)]
    pub(crate) deletes: Option<Option<u64>>,
    /// The number of items is unknown: the filter must grow
    #[arg(long)]
    pub(crate) grows: bool,
    /// All items are known when the filter is built; none are added later
    #[arg(long = "static", conflicts_with_all = ["grows", "deletes"])]
    pub(crate) all_at_once: bool,
    /// The input is endless: only the latest --items of it count
    #[arg(long, conflicts_with_all = ["grows", "deletes", "all_at_once"])]
    pub(crate) window: bool,
    /// Untrusted users choose the items: use a keyed hash, so that they cannot craft false positives
    #[arg(long)]
    pub(crate) untrusted: bool,
    /// The items are integers in this range, both ends included
    #[arg(long, value_name = "LOW..HIGH", value_parser = quantity::range, allow_hyphen_values = true)]
    pub(crate) range: Option<(u64, u64)>,
}

impl NeedsArgs {
    /// The needs without the number of items and the rate. Those two are placeholders that the caller replaces.
    pub(crate) fn without_items_and_rate(&self) -> Needs {
        let mut needs = Needs::new(1, 0.5);
        (needs.memory_limit_bytes, needs.probes) = (self.memory, self.probes);
        needs.deletes = match self.deletes {
            None => Deletes::Never,
            Some(None) => Deletes::Endlessly,
            Some(Some(removals)) => Deletes::UpTo(removals),
        };
        needs.growth = match () {
            () if self.all_at_once => Growth::AllAtOnce,
            () if self.grows => Growth::Unknown,
            () if self.window => Growth::Window,
            () => Growth::UpToItems,
        };
        if let Some((low, high)) = self.range {
            needs.item = ItemShape::IntegerRange { low, high };
        }
        needs.untrusted = self.untrusted;
        needs
    }
}

/// Parses a number of removals. The argument after `--deletes` is read as this number even if it was meant as a file.
fn removals(text: &str) -> Result<u64, String> {
    quantity::count(text).map_err(|error| match error {
        QuantityError::NotANumber { .. } => "not a number; put files before --deletes, or after --".into(),
        error => error.to_string(),
    })
}

/// Parses a count that fits in 32 bits.
pub(crate) fn small_count(text: &str) -> Result<u32, QuantityError> {
    let limit = u64::from(u32::MAX);
    u32::try_from(quantity::count(text)?).map_err(|_| QuantityError::TooLarge { limit })
}
