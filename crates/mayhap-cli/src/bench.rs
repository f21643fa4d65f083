//! `mayhap bench`: every kind on the user's own items, measured.
//!
//! ```text
//! input ─▶ distinct items ─┬▶ members ──▶ every kind, built in turns ─┬▶ is one lost?
//!                          └▶ a tenth: non-members, and altered members ─┼▶ how many are answered mayhap?
//!                                                                      └▶ lookups in turns, timed
//! ```

mod clock;
mod contender;
mod interval;
mod json;
mod measure;
mod people;
mod text;

use std::io::{self, IsTerminal, Write};
use std::num::NonZero;

use clap::{Args, ValueEnum};
use mayhap::HashScheme;
use mayhap::advise::{Advice, Deletes, Growth, Misfit, Needs, Price, Structure, advise};

use self::measure::Measured;
use self::people::People;
use crate::error::CliError;
use crate::input::InputArgs;
use crate::kind_name::{self, KindName, UnknownKind};
use crate::progress::{Progress, ProgressArgs};
use crate::quantity;

/// Measure every kind of filter on your own items and rate
#[derive(Args, Debug)]
#[command(after_help = "\
The distinct items of the input are kept in memory. A tenth of them is held
back: those are the non-members, of the same shape as the members, and the rate is
measured on them. Where they are too few for the rate, members with a
letter or two altered are asked about as well; none of those is in the input.

All kinds are built and asked in turns, round by round, so that a busy machine
is busy for all alike. Times are CPU time, per item, the median of the rounds.
The rate has the interval in which it lies with a certainty of 95%.

Without needs, every kind that can hold these items is measured; with --deletes,
--grows, --static or --window those that suit. The kind `mayhap plan` recommends
for these needs has a star. A bitmap takes part where all items are integers.
The hash set is the standard library's, with the items in it; its memory is
computed, not measured.

Examples:
  mayhap bench urls.txt                            at 1%
  mayhap bench --fpr 1-in-10000 urls.txt.gz        fewer wrong answers
  mayhap bench --deletes ids.txt                   only kinds that can remove
  mayhap bench --csv email --static users.csv      one column, a fixed set
  mayhap bench --kinds bloom,cuckoo,ribbon urls.txt
  mayhap bench --items 10M --sort lookup           no file: generated items
  mayhap bench --json urls.txt                     for programs")]
pub(crate) struct Bench {
    /// How many of the non-members may be answered mayhap
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, default_value = "1%", allow_hyphen_values = true)]
    fpr: f64,
    /// Generate so many items instead of reading any
    #[arg(long, value_name = "N", value_parser = quantity::count, allow_hyphen_values = true, conflicts_with = "files")]
    items: Option<u64>,
    /// Measure these kinds, comma between them (default: all that suit)
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = kind_name::parse)]
    kinds: Vec<KindName>,
    /// Only kinds that items can be removed from
    #[arg(long)]
    deletes: bool,
    /// Only kinds that grow
    #[arg(long)]
    grows: bool,
    /// The set never changes: kinds that are built of all items at once suit best
    #[arg(long = "static", conflicts_with_all = ["grows", "deletes"])]
    all_at_once: bool,
    /// Only kinds that forget what is old
    #[arg(long, conflicts_with_all = ["grows", "deletes", "all_at_once"])]
    window: bool,
    /// Hash with a secret key, as for items that non-members choose
    #[arg(long)]
    untrusted: bool,
    /// Sort by memory, lookup, build or rate
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, hide_possible_values = true)]
    sort: Sort,
    /// How often every kind is asked about some of the items
    #[arg(long, value_name = "N", default_value = "9")]
    rounds: NonZero<u32>,
    /// About how much memory the items and all filters may take; beyond it a sample of the items is measured
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

/// What the best is best at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Sort {
    #[default]
    Memory,
    Lookup,
    Build,
    Rate,
}

/// All that was found out.
struct Report<'a> {
    bench: &'a Bench,
    people: &'a People,
    needs: &'a Needs,
    /// What `mayhap plan` recommends for these needs.
    recommended: Option<Structure>,
    /// Best first.
    measured: Vec<Measured>,
    /// Kinds that were not measured, and why.
    left_out: Vec<(Structure, String)>,
}

/// A structure that is not measured, and why.
type LeftOut = (Structure, String);

impl Bench {
    /// Measures, and writes a table of at most `width` columns or JSON.
    pub(crate) fn run(&self, out: &mut dyn Write, width: usize) -> Result<(), CliError> {
        let progress = Progress::start(self.progress);
        let people = self.people(&progress)?;
        let needs = self.needs(&people);
        let advice = advise(&needs)?;
        let (chosen, mut left_out) = self.choose(&advice)?;
        let scheme = if self.untrusted {
            HashScheme::keyed_random().map_err(mayhap::advise::CreateError::from)?
        } else {
            HashScheme::fast(0)
        };
        let (mut measured, failed) =
            measure::measure(&chosen, &people, &needs, &scheme, self.rounds.get(), &progress);
        left_out.extend(failed);
        self.sort(&mut measured);
        drop(progress);
        if let Some(bad) = measured.iter().find(|measured| measured.members_lost > 0) {
            let name = kind_name::name_of(bad.structure);
            let what = format!(
                "lost {} of its members, which must never happen: please report it",
                bad.members_lost
            );
            return Err(CliError::Filter { name, what });
        }
        let recommended = advice.recommended().map(|price| price.structure);
        let report = Report { bench: self, people: &people, needs: &needs, recommended, measured, left_out };
        if self.json { json::write(out, &report) } else { Ok(text::write(out, &report, width)?) }
    }

    /// The items to measure with.
    fn people(&self, progress: &Progress) -> Result<People, CliError> {
        if let Some(items) = self.items {
            return people::generated(items, self.fpr, self.memory);
        }
        if self.input.files.is_empty() && io::stdin().is_terminal() {
            let what =
                "give files to read, or --items N to generate items, for example `mayhap bench --items 1M`";
            return Err(CliError::Usage(what.into()));
        }
        people::read(&self.input, self.fpr, self.memory, progress)
    }

    fn needs(&self, people: &People) -> Needs {
        let mut needs = Needs::new(people.members.len() as u64, self.fpr).of(people.shape());
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

    /// Which structures to measure, and why not the others.
    fn choose(&self, advice: &Advice) -> Result<(Vec<Price>, Vec<LeftOut>), CliError> {
        let all = self.kinds.is_empty() && !(self.deletes || self.grows || self.all_at_once || self.window);
        let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
        // A hash set is none of ours, but what all of them are measured against.
        let known = |structure: Structure| {
            structure.kind().is_some() || (structure == Structure::HashSet && self.kinds.is_empty())
        };
        for price in advice.prices.iter().filter(|price| known(price.structure)) {
            let named = self.kinds.iter().any(|kind| match kind {
                KindName::Exactly(structure) => *structure == price.structure,
                KindName::BlockedBloom => matches!(price.structure, Structure::BlockedBloom(_)),
            });
            let misfit = if self.kinds.is_empty() {
                // All that can hold the items, or all that suit.
                price.misfits.iter().find(|misfit| !all || !matches!(misfit, Misfit::NeedsAllAtOnce))
            } else if named {
                price
                    .misfits
                    .iter()
                    .find(|misfit| matches!(misfit, Misfit::Unbuildable(_) | Misfit::NeedsRange))
            } else {
                continue;
            };
            match misfit {
                None => chosen.push(price.clone()),
                Some(misfit) => left_out.push((price.structure, misfit.to_string())),
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
