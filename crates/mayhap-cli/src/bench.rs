//! `mayhap bench`: measures every kind on the user's own items.
//!
//! ```text
//! input ─▶ distinct items ─┬▶ members ─────────────────────────────┬▶ build every kind; count false negatives
//!                          └▶ a tenth: non-members, altered members ─┼▶ count false positives
//!                                                                  └▶ time lookups, in turns
//! ```

mod clock;
mod contender;
mod interval;
mod json;
mod measure;
mod sample;
mod text;

use std::io::{self, IsTerminal, Write};
use std::num::NonZero;

use clap::{Args, ValueEnum};
use mayhap::HashScheme;
use mayhap_advise::{Advice, Deletes, Growth, Needs, Price, Structure, Unsuitable, advise};
use mayhap_server::quantity;

use self::measure::Measured;
use self::sample::Sample;
use crate::error::CliError;
use crate::input::InputArgs;
use crate::kind_name::{self, KindName, UnknownKind};
use crate::progress::{Progress, ProgressArgs};

/// Measure every kind of filter on your own items and rate
#[derive(Args, Debug)]
#[command(after_help = "\
The distinct items of the input are kept in memory. A tenth of them is held back
as non-members, which look like the members; the FPR is measured on them. If they
are too few to measure the rate, members with altered letters are looked
up as well; those that occur in the input are left out.

All kinds are built and queried in turns, round by round, so that other load on the
machine affects all of them alike. Times are CPU time per item, the median of the
rounds. The measured FPR comes with its 95% confidence interval.

By default, every kind that can hold these items is measured. --deletes, --grows,
--static and --window measure only the kinds that suit such a set. A star marks the kind that
`mayhap plan` recommends. A bitmap is measured if all items are integers. The hash
set is the standard library's, holding the items themselves; its memory is
computed, not measured.

Examples:
  mayhap bench urls.txt                            at 1%
  mayhap bench --fpr 1-in-10000 urls.txt.gz        a lower FPR
  mayhap bench --deletes ids.txt                   only kinds that support removal
  mayhap bench --csv email --static users.csv      one column, a static set
  mayhap bench --kinds bloom,cuckoo,ribbon urls.txt
  mayhap bench --items 10M --sort lookup           no file: generated items
  mayhap bench --json urls.txt                     one JSON object")]
pub(crate) struct Bench {
    /// Target false-positive rate
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, default_value = "1%", allow_hyphen_values = true)]
    fpr: f64,
    /// Generate this many items instead of reading files
    #[arg(long, value_name = "N", value_parser = quantity::count, allow_hyphen_values = true, conflicts_with = "files")]
    items: Option<u64>,
    /// Measure these kinds, separated by commas [default: all that suit]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = kind_name::parse)]
    kinds: Vec<KindName>,
    /// Only kinds that support removal
    #[arg(long)]
    deletes: bool,
    /// Only kinds that grow
    #[arg(long)]
    grows: bool,
    /// Only kinds for a set that never changes; static kinds suit best
    #[arg(long = "static", conflicts_with_all = ["grows", "deletes"])]
    all_at_once: bool,
    /// Only kinds that forget old items
    #[arg(long, conflicts_with_all = ["grows", "deletes", "all_at_once"])]
    window: bool,
    /// Hash with a secret key, as for items that attackers may choose
    #[arg(long)]
    untrusted: bool,
    /// Sort by memory, lookup, build or rate
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, hide_possible_values = true)]
    sort: Sort,
    /// Number of lookup rounds per kind
    #[arg(long, value_name = "N", default_value = "9")]
    rounds: NonZero<u32>,
    /// Approximate memory limit for the items and all filters; above it, a sample of the items is measured
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, default_value = "1GiB", allow_hyphen_values = true)]
    memory: u64,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// The order of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Sort {
    #[default]
    Memory,
    Lookup,
    Build,
    Rate,
}

/// All results.
struct BenchReport<'a> {
    bench: &'a Bench,
    sample: &'a Sample,
    needs: &'a Needs,
    /// The kind that `mayhap plan` recommends for these needs.
    recommended: Option<Structure>,
    /// Best first.
    measured: Vec<Measured>,
    /// Kinds that were not measured, and why.
    left_out: Vec<(Structure, String)>,
}

/// A structure that is not measured, and why.
type LeftOut = (Structure, String);

impl Bench {
    /// Measures, and writes JSON or a table of at most `width` columns.
    pub(crate) fn run(&self, out: &mut dyn Write, width: usize) -> Result<(), CliError> {
        let progress = Progress::start(self.progress);
        let sample = self.sample(&progress)?;
        let needs = self.needs(&sample);
        let advice = advise(&needs)?;
        let (chosen, mut left_out) = self.choose(&advice)?;
        let scheme = if self.untrusted {
            HashScheme::keyed_random().map_err(mayhap_advise::CreateError::from)?
        } else {
            HashScheme::fast(0)
        };
        let (mut measured, failed) =
            measure::measure(&chosen, &sample, &needs, &scheme, self.rounds.get(), &progress);
        left_out.extend(failed);
        self.sort(&mut measured);
        drop(progress);
        if let Some(bad) = measured.iter().find(|measured| measured.members_lost > 0) {
            let name = kind_name::name_of(bad.structure);
            let what = format!(
                "{} members got a no, which must never happen: please report this bug",
                bad.members_lost
            );
            return Err(CliError::Filter { name, what });
        }
        let recommended = advice.recommended().map(|price| price.structure);
        let report =
            BenchReport { bench: self, sample: &sample, needs: &needs, recommended, measured, left_out };
        if self.json { json::write(out, &report) } else { Ok(text::write(out, &report, width)?) }
    }

    /// Reads or generates the items.
    fn sample(&self, progress: &Progress) -> Result<Sample, CliError> {
        if let Some(items) = self.items {
            return sample::generated(items, self.fpr, self.memory);
        }
        if self.input.files.is_empty() && io::stdin().is_terminal() {
            let what =
                "give files to read, or --items N to generate items, for example `mayhap bench --items 1M`";
            return Err(CliError::Usage(what.into()));
        }
        sample::read(&self.input, self.fpr, self.memory, progress)
    }

    fn needs(&self, sample: &Sample) -> Needs {
        let mut needs = Needs::new(sample.members.len() as u64, self.fpr).of(sample.shape());
        needs.untrusted = self.untrusted;
        needs.deletes = if self.deletes { Deletes::Endlessly } else { Deletes::Never };
        needs.growth = match () {
            () if self.all_at_once => Growth::AllAtOnce,
            () if self.grows => Growth::Unknown,
            () if self.window => Growth::Window,
            () => Growth::UpToItems,
        };
        needs
    }

    /// Which structures to measure, and why the others are left out.
    fn choose(&self, advice: &Advice) -> Result<(Vec<Price>, Vec<LeftOut>), CliError> {
        let all = self.kinds.is_empty() && !(self.deletes || self.grows || self.all_at_once || self.window);
        let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
        // The hash set is not a kind of filter, but the baseline for all of them.
        let known = |structure: Structure| {
            structure.kind().is_some() || (structure == Structure::HashSet && self.kinds.is_empty())
        };
        for price in advice.prices.iter().filter(|price| known(price.structure)) {
            let named = self.kinds.iter().any(|kind| match kind {
                KindName::Exactly(structure) => *structure == price.structure,
                KindName::BlockedBloom => matches!(price.structure, Structure::BlockedBloom(_)),
            });
            let reason = if self.kinds.is_empty() {
                // All that can hold the items, or all that suit the given needs.
                price.unsuitable.iter().find(|reason| !all || !matches!(reason, Unsuitable::NeedsAllAtOnce))
            } else if named {
                price
                    .unsuitable
                    .iter()
                    .find(|reason| matches!(reason, Unsuitable::Unbuildable(_) | Unsuitable::NeedsRange))
            } else {
                continue;
            };
            match reason {
                None => chosen.push(price.clone()),
                Some(reason) => left_out.push((price.structure, reason.to_string())),
            }
        }
        match (&chosen[..], &left_out[..]) {
            ([], [(structure, why), ..]) => {
                let what = format!("nothing to measure: {} {why}", kind_name::name_of(*structure));
                Err(CliError::Usage(what))
            }
            ([], []) => Err(CliError::Usage(UnknownKind.to_string())),
            _ => Ok((chosen, left_out)),
        }
    }

    fn sort(&self, measured: &mut [Measured]) {
        let by = |measured: &Measured| match self.sort {
            Sort::Memory => measured.memory_bytes as f64,
            Sort::Lookup => measured.lookup.mean(),
            Sort::Build => measured.build_ns,
            Sort::Rate => measured.observed_fpr(),
        };
        measured.sort_by(|one, other| by(one).total_cmp(&by(other)));
    }
}
