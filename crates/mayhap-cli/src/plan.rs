//! `mayhap plan`: which structure, how large, and why.

mod json;
mod text;

use std::io::Write;

use clap::Args;
use mayhap::advise::solve::{Known, complete};
use mayhap::advise::{Deletes, Growth, ItemShape, Needs, advise};

use crate::quantity;
use crate::trouble::Trouble;

/// Choose a filter: what suits, what it costs, how to build it
#[derive(Args, Debug)]
#[command(after_help = "\
Give two of --items, --fpr and --memory: the third is solved for. Given all
three, --memory is a limit. The answer may be that the best filter is none: a
hash set for few items, a bitmap for integers of a range not much larger than
the set.

Numbers are written as people write them:
  items   1e9   1_000_000   1,000,000   10M
  rates   0.01   1%   1-in-1M   1e-6
  memory  64MiB   64M (the same)   64MB (64 million)   1e9

Examples:
  mayhap plan --items 1e9 --fpr 1%                 how much memory?
  mayhap plan --items 50M --memory 64MiB           how often wrong?
  mayhap plan --fpr 0.1% --memory 512MiB           how many items?
  mayhap plan --items 1e6 --fpr 1% --deletes       items come and go
  mayhap plan --items 1e6 --fpr 1% --static        all items are there at once
  mayhap plan --items 1e6 --fpr 1% --window        seen among the last million?
  mayhap plan --items 1e6 --fpr 1% --json          for programs
  mayhap plan --items 1e9 --fpr 1% --range 13000000000..19999999999
                                                   phone numbers: a bitmap!")]
pub(crate) struct Plan {
    /// How many items; with --grows a first guess
    #[arg(long, value_name = "N", value_parser = quantity::count, allow_hyphen_values = true)]
    items: Option<u64>,
    /// How many of the strangers may be answered mayhap
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, allow_hyphen_values = true)]
    fpr: Option<f64>,
    /// How much memory it may take
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, allow_hyphen_values = true)]
    memory: Option<u64>,
    /// Items are removed again: at most N times in all, or without an end
    #[arg(long, value_name = "N", value_parser = quantity::count, num_args = 0..=1, allow_negative_numbers = true)]
    deletes: Option<Option<u64>>,
    /// Nobody knows how many items there will be
    #[arg(long)]
    grows: bool,
    /// All items are there when it is built, and none comes later
    #[arg(long = "static", conflicts_with_all = ["grows", "deletes"])]
    all_at_once: bool,
    /// Items never end: only the last --items of them count
    #[arg(long, conflicts_with_all = ["grows", "deletes", "all_at_once"])]
    window: bool,
    /// Strangers choose the items, and some would like the filter to fail
    #[arg(long)]
    untrusted: bool,
    /// Several threads insert at the same time
    #[arg(long)]
    threads: bool,
    /// Items are integers of this range, both ends included
    #[arg(long, value_name = "LOW..HIGH", value_parser = quantity::range, allow_hyphen_values = true)]
    range: Option<(u64, u64)>,
    /// Items are strings of about this many bytes (matters for a hash set)
    #[arg(long, value_name = "BYTES", value_parser = length, conflicts_with = "range", allow_hyphen_values = true)]
    item_bytes: Option<u32>,
    /// How many strangers are asked about every day
    #[arg(long, value_name = "N", value_parser = quantity::count, allow_hyphen_values = true)]
    lookups: Option<u64>,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// Which of the three numbers was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Solved {
    Items,
    Rate,
    Memory,
    /// All were given.
    Nothing,
}

impl Plan {
    /// Writes the plan in lines of at most `width` columns where that is possible, or as JSON.
    pub(crate) fn run(&self, out: &mut dyn Write, width: usize) -> Result<(), Trouble> {
        let (needs, solved) = self.needs()?;
        let advice = advise(&needs)?;
        let written = if self.json {
            json::write(out, &needs, solved, &advice)
        } else {
            text::write(out, &needs, solved, &advice, width)
        };
        Ok(written?)
    }

    fn needs(&self) -> Result<(Needs, Solved), Trouble> {
        let (known, solved) = match (self.items, self.fpr, self.memory) {
            (Some(items), Some(target_fpr), None) => {
                (Known::ItemsAndRate { items, target_fpr }, Solved::Memory)
            }
            (Some(items), Some(target_fpr), Some(_)) => {
                (Known::ItemsAndRate { items, target_fpr }, Solved::Nothing)
            }
            (Some(items), None, Some(memory_bytes)) => {
                (Known::ItemsAndMemory { items, memory_bytes }, Solved::Rate)
            }
            (None, Some(target_fpr), Some(memory_bytes)) => {
                (Known::RateAndMemory { target_fpr, memory_bytes }, Solved::Items)
            }
            _ => {
                let what = "give two of --items, --fpr and --memory: the third is solved for; see `mayhap plan --help`";
                return Err(Trouble::Usage(what.into()));
            }
        };
        // Two of the three numbers are replaced by what is known.
        let mut others = Needs::new(1, 0.5);
        others.memory_limit_bytes = self.memory;
        others.deletes = match self.deletes {
            None => Deletes::Never,
            Some(None) => Deletes::Endlessly,
            Some(Some(removals)) => Deletes::UpTo(removals),
        };
        others.growth = match () {
            () if self.all_at_once => Growth::AllAtOnce,
            () if self.grows => Growth::Unknown,
            () if self.window => Growth::Window,
            () => Growth::UpToItems,
        };
        others.item = match (self.range, self.item_bytes) {
            (Some((low, high)), _) => ItemShape::IntegerRange { low, high },
            (_, Some(typical_len)) => ItemShape::Bytes { typical_len },
            _ => ItemShape::Unknown,
        };
        (others.untrusted, others.threads, others.lookups_per_day) =
            (self.untrusted, self.threads, self.lookups);
        Ok((complete(known, &others)?, solved))
    }
}

/// The length of an item.
fn length(text: &str) -> Result<u32, quantity::QuantityError> {
    let limit = u64::from(u32::MAX);
    u32::try_from(quantity::count(text)?).map_err(|_| quantity::QuantityError::TooLarge { limit })
}
