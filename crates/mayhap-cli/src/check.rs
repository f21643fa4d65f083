//! `mayhap check`: prints the records that are maybe in the filter, or those that are not.

mod ask;
mod distant;
mod write;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::num::NonZero;
use std::ops::ControlFlow;

use clap::Args;
use mayhap::{BatchBits, Filter};
use mayhap_server::quantity;
use serde::Serialize;

use self::ask::{Answered, Asker};
use self::distant::{Opening, ServerFilter};
use self::write::{Form, Writer};
use crate::error::CliError;
use crate::filter_file::{self, ForeignArgs};
use crate::in_order::{in_order_until, threads};
use crate::input::InputArgs;
use crate::place::{self, Place};
use crate::progress::{Progress, ProgressArgs};
use crate::remote::RemoteArgs;
use crate::remote_filter::LayoutArgs;
use crate::{Verdict, health, output};

/// Print the lines that are maybe in a filter, or those that are certainly not
#[derive(Args, Debug)]
#[command(after_help = "\
A printed line is maybe in the filter. A line that is not printed is certainly not
in it. Some printed lines are false positives: the false-positive rate is the share
of non-members that are printed. With -v, only lines that are certainly not in the
filter are printed.

An item is the bytes of a line without the line ending. Some filters of other
programs hold numbers; they accept only lines that are numbers. Any other line
is an error; with --allow-misfits it counts as not in the filter.

With -k, --csv or --jsonl, the item is that field. Whole lines are printed, CSV
lines below their header. Input from a pipe is answered as soon as it arrives.

A mayhap file larger than 16 MiB is mapped, not read, so even a filter of many
gigabytes answers immediately. Do not write to the file while it is in use;
`mayhap add` and `build` are safe, because they replace the file. If the file
changes, the command stops with an error; lines printed before that are correct.

FILTER may be on a server: redis://host:port/NAME. The type of the filter is
detected: a filter of the server (BF.*, CF.*, MF.*), a sharded filter, or a
Redisson filter (set --items-as to its codec). A bitmap that a program filled at
Guava's positions needs --as guava.

If the server cannot answer for a line, the line is not ready: it is printed neither
with nor without -v (--annotate prints `not-ready`). The command counts such lines
and ends with an error. When a server is down, lines become not ready after at most
5 seconds. The server is tried again for later lines, briefly, until it is back.

Exit codes: 0 a line was selected, 1 no line was selected, 2 error.

Examples:
  mayhap check seen.mayhap urls.txt               print lines that may be members
  mayhap check -v seen.mayhap urls.txt.gz         print lines that are not members
  mayhap check -c seen.mayhap urls.txt            count them
  mayhap check --json seen.mayhap urls.txt        counts and expected false positives
  mayhap check -q seen.mayhap --item ada && echo maybe
  tail -f access.log | mayhap check --annotate -k 1 bad.mayhap
  mayhap check -v --csv email blocked.mayhap people.csv > allowed.csv
  mayhap check users.bloom --items-as utf8 names.txt
                                                  a Guava filter
  mayhap check redis://localhost:6399/seen urls.txt
  mayhap check redis://cache.local/users --items-as kryo5 names.txt
                                                  a Redisson filter on its server")]
pub(crate) struct Check {
    /// The filter: a file of mayhap or of another program, or redis://host[:port]/NAME
    #[arg(value_name = "FILTER", value_parser = place::parser())]
    filter: Place,
    #[command(flatten)]
    input: InputArgs,
    /// Select the lines that are certainly not in the filter
    #[arg(short = 'v', long)]
    invert_match: bool,
    /// Print only the number of selected lines
    #[arg(short, long)]
    count: bool,
    /// Print nothing, and stop at the first selected line: the exit code is the answer
    #[arg(short, long, conflicts_with_all = ["count", "json", "annotate"])]
    quiet: bool,
    /// Check this item; may be given more than once. Standard input is then read only if FILE is `-`
    #[arg(long, value_name = "TEXT")]
    item: Vec<OsString>,
    /// Print every line after its answer and a tab; the answer is `mayhap` (maybe a member) or `no`
    #[arg(long, visible_alias = "tag", conflicts_with = "count")]
    annotate: bool,
    /// Print each line after its line number in its file
    #[arg(short = 'n', long)]
    line_number: bool,
    /// Stop after N selected lines
    #[arg(short, long, value_name = "N", value_parser = quantity::count)]
    max_count: Option<u64>,
    /// Write each selected line immediately, without waiting for a full buffer
    #[arg(long)]
    line_buffered: bool,
    /// Treat a line that is not a valid item (text where the filter holds numbers) as not in the filter
    #[arg(long)]
    allow_misfits: bool,
    /// Number of threads [default: one per core]
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Print only counts, as one JSON object: lines with each answer, and expected false positives
    #[arg(long, conflicts_with = "annotate")]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    server: RemoteArgs,
}

/// Totals over the lines that were asked about.
#[derive(Clone, Debug, Default)]
struct Counts {
    lines: u64,
    mayhap: u64,
    not_ready: u64,
    selected: u64,
    /// Why the last line without an answer has none.
    why: String,
}

impl Counts {
    /// Adds the answers to the first `asked` records; `selected` of them were selected.
    fn add(&mut self, answered: &Answered, asked: usize, selected: u64) {
        self.lines += asked as u64;
        self.mayhap += answered.maybe.count_first(asked) as u64;
        self.selected += selected;
        if let Some(unready) = &answered.unready {
            self.not_ready += unready.records.count_first(asked) as u64;
            self.why.clone_from(&unready.why);
        }
    }

    const fn no_count(&self) -> u64 {
        self.lines - self.mayhap - self.not_ready
    }
}

/// The report of `--json`. The field names are a stable interface.
#[derive(Serialize)]
struct Report<'a> {
    filter: String,
    lines: u64,
    mayhap: u64,
    no: u64,
    /// Lines the server could not answer for; only for a filter on a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_ready: Option<u64>,
    #[serde(flatten)]
    rates: Option<Rates>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    items: &'a [ItemReport],
}

/// Where the filter is.
enum Source<'a> {
    Local(&'a Filter),
    OnServer(&'a ServerFilter<'a>),
}

/// The filter's false-positive rates, if they are known.
#[derive(Serialize)]
struct Rates {
    /// The rate by the model, for the items in the filter now.
    expected_fpr: f64,
    target_fpr: f64,
    /// The number of false positives among the maybe answers, by the model.
    expected_wrong_mayhaps: f64,
    over_capacity: bool,
}

#[derive(Serialize)]
struct ItemReport {
    item: String,
    /// `None` if the server could not answer.
    mayhap: Option<bool>,
}

impl Check {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        match self.ask() {
            // The reader of the pipe has closed it, as `head` does: that is not an error.
            Err(CliError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Verdict::Yes),
            done => done,
        }
    }

    fn ask(&self) -> Result<Verdict, CliError> {
        match &self.filter {
            Place::File(path) => {
                let opened = filter_file::open(path, &self.foreign)?;
                if !self.quiet {
                    for warning in health::warnings(&opened.filter) {
                        output::warn(format_args!("{}: {warning}", self.filter));
                    }
                }
                self.ask_with(&Asker::local(&opened, self.allow_misfits), &Source::Local(&opened.filter))
            }
            Place::Server(remote) => {
                let opening = Opening {
                    remote,
                    args: &self.server,
                    layout: &self.layout,
                    items_as: self.foreign.items_as,
                    quiet: self.quiet,
                };
                let filter = ServerFilter::open(opening, self.annotate || self.json)?;
                self.ask_with(&Asker::on_server(&filter, self.allow_misfits), &Source::OnServer(&filter))
            }
        }
    }

    fn ask_with(&self, asker: &Asker<'_>, source: &Source<'_>) -> Result<Verdict, CliError> {
        let mut counts = Counts::default();
        let mut writer = Writer::new(self.form(), self.input.terminator(), self.line_buffered)?;
        let items = self.ask_items(asker, &mut writer, &mut counts)?;
        let asks_files = self.item.is_empty() || !self.input.files.is_empty();
        if asks_files && !self.has_enough(&counts) {
            self.ask_files(asker, &mut writer, &mut counts)?;
        }
        writer.flush()?;
        let fullness = match source {
            // A filter that gave no answer is not asked for its fullness.
            Source::OnServer(filter) if !self.quiet && counts.not_ready == 0 => {
                filter.filter().ok().and_then(|filter| filter.quick_fullness())
            }
            _ => None,
        };
        if let Some(warning) = fullness.and_then(|full| full.health()) {
            output::warn(format_args!("{}: {warning}", self.filter));
        }
        if self.json {
            let rates = match source {
                Source::Local(filter) => {
                    Some((filter.expected_fpr(), filter.target_fpr(), health::is_over_capacity(filter)))
                }
                Source::OnServer(_) => {
                    fullness.map(|full| (full.expected_fpr, full.target_fpr, full.is_over_capacity()))
                }
            };
            let report = Report {
                filter: self.filter.to_string(),
                lines: counts.lines,
                mayhap: counts.mayhap,
                no: counts.no_count(),
                not_ready: matches!(source, Source::OnServer(_)).then_some(counts.not_ready),
                rates: rates.map(|(expected_fpr, target_fpr, over_capacity)| Rates {
                    expected_fpr,
                    target_fpr,
                    expected_wrong_mayhaps: expected_false_positives(&counts, expected_fpr),
                    over_capacity,
                }),
                items: &items,
            };
            output::to_stdout(|out, _| output::json(out, &report))?;
        } else if self.count {
            output::to_stdout(|out, _| Ok(writeln!(out, "{}", counts.selected)?))?;
        }
        match (counts.selected, counts.not_ready) {
            // As grep does: with --quiet, one selected line outweighs an error.
            (1.., _) if self.quiet => Ok(Verdict::Yes),
            (_, 1..) => {
                let (name, of) = (self.filter.to_string(), counts.lines);
                Err(CliError::NotReady { name, lines: counts.not_ready, of, why: counts.why })
            }
            (1.., _) => Ok(Verdict::Yes),
            (0, _) => Ok(Verdict::No),
        }
    }

    fn form(&self) -> Form {
        match () {
            () if self.quiet || self.count || self.json => Form::Nothing,
            () if self.annotate => Form::Annotated { numbers: self.line_number },
            () if self.line_number => Form::Numbered,
            () => Form::Plain,
        }
    }

    /// The most lines to select.
    fn most(&self) -> u64 {
        if self.quiet { 1 } else { self.max_count.unwrap_or(u64::MAX) }
    }

    fn has_enough(&self, counts: &Counts) -> bool {
        counts.selected >= self.most()
    }

    /// The records to print. Records without an answer are never selected.
    fn select(&self, answered: &Answered) -> BatchBits {
        let maybe = answered.maybe.clone();
        let mut selected = if self.invert_match { !maybe } else { maybe };
        if let Some(unready) = &answered.unready {
            selected.clear_those_in(&unready.records);
        }
        selected
    }

    /// Answers the items given with `--item`.
    fn ask_items(
        &self,
        asker: &Asker<'_>,
        writer: &mut Writer,
        counts: &mut Counts,
    ) -> Result<Vec<ItemReport>, CliError> {
        let mut reports = Vec::new();
        for item in &self.item {
            if self.has_enough(counts) {
                break;
            }
            let bytes = item.as_encoded_bytes();
            let answered = asker.ask_one(bytes)?;
            asker.check_answers()?;
            let selected = self.select(&answered).get(0) == Some(true);
            counts.add(&answered, 1, u64::from(selected));
            writer.item(bytes, &answered, selected, counts.lines)?;
            if self.json {
                let mayhap = answered.unready.is_none().then(|| answered.maybe.get(0) == Some(true));
                reports.push(ItemReport { item: String::from_utf8_lossy(bytes).into_owned(), mayhap });
            }
        }
        Ok(reports)
    }

    fn ask_files(&self, asker: &Asker<'_>, writer: &mut Writer, counts: &mut Counts) -> Result<(), CliError> {
        // If lines are written to the terminal, a progress bar would mix with them.
        let shows_lines = self.form() != Form::Nothing && io::stdout().is_terminal();
        let progress = if shows_lines && !self.progress.progress {
            Progress::unseen()
        } else {
            Progress::start(self.progress)
        };
        let mut blocks = self.input.open(&progress)?;
        if let Some(header) = blocks.header()? {
            writer.header(&header)?;
        }
        let work = |block: &_| asker.ask(block);
        let done = in_order_until(blocks, threads(self.threads), work, |block, answered: Answered| {
            // Checked after the lookups and before any answer is used, so each printed "no" comes from the filter
            // that was opened.
            asker.check_answers()?;
            let left = self.most().saturating_sub(counts.selected);
            let mut selected = self.select(&answered);
            let asked = selected.keep_first(usize::try_from(left).unwrap_or(usize::MAX));
            counts.add(&answered, asked, selected.count_ones() as u64);
            progress.add_items(asked as u64);
            writer.block(block, &answered, &selected, asked)?;
            Ok(if self.has_enough(counts) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        drop(progress);
        if !self.quiet {
            self.input.warn_of_skipped();
        }
        done
    }
}

/// The expected number of false positives among the maybe answers, if all lines are distinct.
///
/// The filter answers "no" to all non-members except the share `rate`. So the "no" answers are the share `1 - rate`
/// of the non-members, and the rest of the non-members are the false positives.
fn expected_false_positives(counts: &Counts, rate: f64) -> f64 {
    let (mayhap, no) = (counts.mayhap as f64, counts.no_count() as f64);
    if rate >= 1.0 { mayhap } else { (no * rate / (1.0 - rate)).min(mayhap) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn false_positives_are_estimated_from_the_no_answers() {
        let counts = |lines, mayhap| Counts { lines, mayhap, ..Counts::default() };
        // 990 "no" at 1 % come from 1,000 non-members: the other 10 are false positives.
        assert!((expected_false_positives(&counts(1_490, 500), 0.01) - 10.0).abs() < 1e-9);
        assert_eq!(expected_false_positives(&counts(500, 500), 0.01), 0.0);
        assert_eq!(
            expected_false_positives(&counts(1_000, 1), 0.5),
            1.0,
            "never more than the maybe answers"
        );
        assert_eq!(expected_false_positives(&counts(1_000, 1_000), 1.0), 1_000.0);
        assert_eq!(expected_false_positives(&counts(0, 0), 0.01), 0.0);
    }
}
