//! What is asked of a filter, on the command line: the same words for `plan` and `build`.

use clap::Args;
use mayhap::advise::{Deletes, Growth, ItemShape, Needs};

use crate::quantity::{self, QuantityError};

/// How many items, how often wrong, how much memory, and what happens to the set.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NeedsArgs {
    /// How many items; with --grows a first guess
    #[arg(long, value_name = "N", value_parser = quantity::count, allow_hyphen_values = true)]
    pub(crate) items: Option<u64>,
    /// How many of the non-members may be answered mayhap
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, allow_hyphen_values = true)]
    pub(crate) fpr: Option<f64>,
    /// How much memory it may take
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, allow_hyphen_values = true)]
    pub(crate) memory: Option<u64>,
    /// Bits an item sets in a classic filter, where that is not to be chosen for you
    #[arg(long, value_name = "K", value_parser = small_count, allow_hyphen_values = true)]
    pub(crate) probes: Option<u32>,
    /// Items are removed again: at most N times in all, or without an end
    #[arg(long, value_name = "N", value_parser = removals, num_args = 0..=1, allow_negative_numbers = true)]
    pub(crate) deletes: Option<Option<u64>>,
    /// Nobody knows how many items there will be
    #[arg(long)]
    pub(crate) grows: bool,
    /// All items are there when it is built, and none comes later
    #[arg(long = "static", conflicts_with_all = ["grows", "deletes"])]
    pub(crate) all_at_once: bool,
    /// Items never end: only the last --items of them count
    #[arg(long, conflicts_with_all = ["grows", "deletes", "all_at_once"])]
    pub(crate) window: bool,
    /// Non-members choose the items, and some would like the filter to fail
    #[arg(long)]
    pub(crate) untrusted: bool,
    /// Items are integers of this range, both ends included
    #[arg(long, value_name = "LOW..HIGH", value_parser = quantity::range, allow_hyphen_values = true)]
    pub(crate) range: Option<(u64, u64)>,
}

impl NeedsArgs {
    /// All that is asked for but the items and the rate: those are placeholders, to be replaced.
    pub(crate) fn but_for_items_and_rate(&self) -> Needs {
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

/// A number of removals. The word behind `--deletes` is taken for it, and may have been meant for something else.
fn removals(text: &str) -> Result<u64, String> {
    quantity::count(text).map_err(|error| match error {
        QuantityError::NotANumber { .. } => "not a number; files stand before --deletes, or behind --".into(),
        error => error.to_string(),
    })
}

/// A number of few things.
pub(crate) fn small_count(text: &str) -> Result<u32, QuantityError> {
    let limit = u64::from(u32::MAX);
    u32::try_from(quantity::count(text)?).map_err(|_| QuantityError::TooLarge { limit })
}
