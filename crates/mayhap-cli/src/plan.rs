//! `mayhap plan`: recommends a kind of filter, with its size and the reasons.

mod json;
mod plot;
mod text;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use mayhap::say;
use mayhap_advise::solve::{Known, complete};
use mayhap_advise::{Advice, Deletes, Growth, ItemShape, Needs, advise};

use crate::error::CliError;
use crate::kind_name::{self, KindName};
use crate::needs_args::{NeedsArgs, small_count};
use crate::quantity;

/// Choose a filter: recommend a kind, show its cost, and print the lines that create it
#[derive(Args, Debug)]
#[command(after_help = "\
Give two of --items, --fpr and --memory; the third is computed for every kind. If
all three are given, --memory is a limit. The recommended kind is the one that
`mayhap build` makes without --kind. It can be a bitmap, for integers in a range
not much larger than the set. If a hash set or a sorted array in your own program
is better than a filter in a file, a note says so. Then come the lines that create
the filter in the shell, in Rust and in Redis, and a summary.

--probes K asks for a classic filter that sets K bits per item (a counting one
with --deletes). Any three of --items, --fpr, --memory and --probes determine the
fourth. --probes with only --items or --memory gives the filter for which K probes
are optimal: half of its bits are set, and its FPR is 1 in 2^K.

Formats of numbers:
  items   1e9   1_000_000   1,000,000   10M
  rates   0.01   1%   1-in-1M   1e-6
  memory  64MiB   64M (the same)   64MB (64 million)   1e9

Examples:
  mayhap plan --items 1e9 --fpr 1%                   how much memory?
  mayhap plan --items 50M --memory 64MiB             what FPR?
  mayhap plan --fpr 0.1% --memory 512MiB             how many items?
  mayhap plan --items 1e9 --fpr 1% --deletes         items come and go
  mayhap plan --items 1e6 --fpr 1% --static          the set never changes
  mayhap plan --items 1e6 --fpr 1% --grows           the number is a guess
  mayhap plan --items 1e6 --fpr 1% --window          seen among the last million?
  mayhap plan --items 1e6 --memory 1MiB --probes 4   what FPR?
  mayhap plan --items 1e6 --fpr 1% --kind cuckoo     the cost of this kind
  mayhap plan --items 1e6 --fpr 1% --json            for programs
  mayhap plan --items 1e6 --fpr 1% --plot plan.svg   a picture of all kinds
  mayhap plan --items 1e9 --fpr 1% --range 13000000000..19999999999
                                                     phone numbers: a bitmap!")]
pub(crate) struct Plan {
    #[command(flatten)]
    asked: NeedsArgs,
    /// Show the cost of this kind only: bloom, blocked-bloom, cuckoo, binary-fuse, …, as for `mayhap build`
    #[arg(long, value_name = "KIND", value_parser = kind_name::parse)]
    kind: Option<KindName>,
    /// Several threads insert at the same time
    #[arg(long)]
    threads: bool,
    /// Items are strings of about this many bytes (matters for a hash set)
    #[arg(long, value_name = "BYTES", value_parser = small_count, conflicts_with = "range", allow_hyphen_values = true)]
    item_bytes: Option<u32>,
    /// Lookups of non-members per day
    #[arg(long, value_name = "N", value_parser = quantity::count, allow_hyphen_values = true)]
    lookups: Option<u64>,
    /// Draw FPR against load and size against FPR for all kinds
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// The numbers that were not given and are solved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Solved {
    Items,
    Rate,
    Memory,
    /// The rate follows from the probes; the memory follows from both.
    RateAndMemory,
    /// The rate follows from the probes; the items follow from both.
    RateAndItems,
    /// All were given.
    Nothing,
}

impl Solved {
    /// Whether the rate is solved for, separately for every kind.
    const fn is_rate_of_each(self) -> bool {
        matches!(self, Self::Rate)
    }

    /// Whether the items are solved for, separately for every kind.
    const fn is_items_of_each(self) -> bool {
        matches!(self, Self::Items | Self::RateAndItems)
    }
}

impl Plan {
    /// Writes the plan as JSON, or as text in lines of at most `width` columns where possible.
    pub(crate) fn run(&self, out: &mut dyn Write, width: usize) -> Result<(), CliError> {
        let (needs, solved) = self.needs()?;
        let advice = advise(&needs)?;
        let without_file = self.without_file(&needs)?;
        if let Some(path) = &self.plot {
            plot::save(path, &plot::draw(&needs, solved, &advice)?)?;
        }
        let written = if self.json {
            json::write(out, &needs, solved, &advice, without_file.as_ref())
        } else {
            text::write(out, &needs, solved, &advice, without_file.as_ref(), width)
        };
        Ok(written?)
    }

    fn needs(&self) -> Result<(Needs, Solved), CliError> {
        let (known, solved) = self.known()?;
        // `complete` overwrites two of the three numbers.
        let mut others = self.asked.without_items_and_rate();
        if let Some(typical_len) = self.item_bytes {
            others.item = ItemShape::Bytes { typical_len };
        }
        (others.threads, others.lookups_per_day) = (self.threads, self.lookups);
        // Recommend only what `mayhap build` can make.
        others.in_file = true;
        let needs = complete(known, &others)?;
        let Some(kind) = self.kind else { return Ok((needs, solved)) };
        let structure = kind.structure(&needs)?;
        others.growth = kind_name::growth_of(structure, others.growth);
        Ok((complete(known, &others.only(structure))?, solved))
    }

    /// The advice if no file is needed, if it differs: a set in memory.
    fn without_file(&self, needs: &Needs) -> Result<Option<Advice>, CliError> {
        if self.kind.is_some() {
            return Ok(None);
        }
        let mut needs = needs.clone();
        needs.in_file = false;
        let advice = advise(&needs)?;
        let is_other = advice.recommended().is_some_and(|best| best.structure.kind().is_none());
        Ok(is_other.then_some(advice))
    }

    /// Which of the four numbers were given, and which are solved for.
    fn known(&self) -> Result<(Known, Solved), CliError> {
        let asked = &self.asked;
        Ok(match (asked.items, asked.fpr, asked.memory, asked.probes) {
            (Some(items), Some(target_fpr), None, _) => {
                (Known::ItemsAndRate { items, target_fpr }, Solved::Memory)
            }
            (Some(items), Some(target_fpr), Some(_), _) => {
                (Known::ItemsAndRate { items, target_fpr }, Solved::Nothing)
            }
            (Some(items), None, Some(memory_bytes), _) => {
                (Known::ItemsAndMemory { items, memory_bytes }, Solved::Rate)
            }
            (None, Some(target_fpr), Some(memory_bytes), _) => {
                (Known::RateAndMemory { target_fpr, memory_bytes }, Solved::Items)
            }
            (Some(items), None, None, Some(probes)) => {
                (Known::ItemsAndProbes { items, probes: Self::balanced(probes)? }, Solved::RateAndMemory)
            }
            (None, None, Some(memory_bytes), Some(probes)) => {
                let probes = Self::balanced(probes)?;
                (Known::MemoryAndProbes { memory_bytes, probes }, Solved::RateAndItems)
            }
            (None, Some(_), None, Some(_)) => {
                let what =
                    "--fpr and --probes determine only the bits per item: give --items or --memory, too";
                return Err(CliError::Usage(what.into()));
            }
            (None, None, None, Some(_)) => {
                let what = "--probes alone determines only the rate: give --items or --memory, too";
                return Err(CliError::Usage(what.into()));
            }
            _ => {
                let what = "give two of --items, --fpr and --memory: the third is solved for; see `mayhap plan --help`";
                return Err(CliError::Usage(what.into()));
            }
        })
    }

    /// Returns `probes` if a filter can exist for which this number of probes is optimal.
    fn balanced(probes: u32) -> Result<u32, CliError> {
        /// 2^-49 is the last power of two above the lowest rate.
        const MOST: u32 = 49;
        // Above 64, a later check reports that the number is too large.
        if probes <= MOST || probes > 64 {
            return Ok(probes);
        }
        let what =
            format!("--probes: {probes} is not optimal at any rate (at most {MOST} is): give --fpr, too");
        Err(CliError::Usage(what))
    }
}

/// The question, and the number that was solved for.
fn title(needs: &Needs, solved: Solved, advice: &Advice) -> String {
    let (items, rate) = (say::items(needs.items), say::rate(needs.target_fpr));
    let solved_rate = advice.recommended().and_then(|price| Some(price.cost?.target_fpr));
    let memory = say::bytes(needs.memory_limit_bytes.unwrap_or_default());
    let exact = advice.recommended().map(|price| price.can.exact);
    let probes = needs.probes.map_or_else(String::new, |probes| match probes {
        1 => " with 1 probe".to_owned(),
        _ => format!(" with {probes} probes"),
    });
    match solved {
        Solved::Memory => format!("Plan for {items} at an FPR of {rate}{probes}"),
        Solved::Nothing => format!("Plan for {items} at an FPR of {rate} in {memory}{probes}"),
        Solved::Rate if exact == Some(true) => format!("Plan for {items} in {memory}: no false positives"),
        Solved::Rate if exact.is_none() => format!("Plan for {items} in {memory}{probes}"),
        Solved::Items if exact.is_none() => format!("Plan for an FPR of {rate} in {memory}{probes}"),
        Solved::Rate => {
            let rate = solved_rate.map_or(rate, say::rate);
            format!("Plan for {items} in {memory}{probes}: FPR {rate}")
        }
        Solved::Items => format!("Plan for an FPR of {rate} in {memory}{probes}: {items}"),
        Solved::RateAndMemory => format!("Plan for {items}{probes}: FPR {rate}"),
        Solved::RateAndItems => format!("Plan for {memory}{probes}: FPR {rate}, {items}"),
    }
}

/// The other properties of the set, in a few words each.
fn circumstances(needs: &Needs) -> Vec<String> {
    let deletes = match needs.deletes {
        Deletes::UpTo(removals) => Some(format!("items are removed, at most {} times", say::count(removals))),
        Deletes::Endlessly => Some("items are removed".into()),
        _ => None,
    };
    let growth = match needs.growth {
        Growth::AllAtOnce => Some("the set never changes"),
        Growth::Unknown => Some("the number of items is unknown"),
        Growth::Window => Some("only the most recent items count"),
        _ => None,
    };
    let item = match needs.item {
        ItemShape::IntegerRange { low, high } => Some(format!("integers from {low} to {high}")),
        ItemShape::Bytes { typical_len } => Some(format!("strings of {typical_len} bytes")),
        _ => None,
    };
    let others =
        [(needs.untrusted, "attackers may choose items"), (needs.threads, "inserted by several threads")];
    let others = others.into_iter().filter(|(is_so, _)| *is_so).map(|(_, words)| words.to_owned());
    deletes.into_iter().chain(growth.map(str::to_owned)).chain(item).chain(others).collect()
}
