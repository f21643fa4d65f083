//! `mayhap check`: which of these records are mayhap in the filter, which certainly are not.

mod ask;
mod distant;
mod selection;
mod write;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::num::NonZero;
use std::ops::ControlFlow;

use clap::Args;
use mayhap::Filter;
use serde::Serialize;

use self::ask::{Answered, Asker};
use self::distant::{Distant, Opening};
use self::selection::Selection;
use self::write::{Form, Writer};
use crate::error::CliError;
use crate::filter_file::{self, ForeignArgs};
use crate::in_order::{in_order_until, threads};
use crate::input::InputArgs;
use crate::place::{self, Place};
use crate::progress::{Progress, ProgressArgs};
use crate::remote::RemoteArgs;
use crate::remote_filter::LayoutArgs;
use crate::{Verdict, health, output, quantity};

/// Print the lines that are mayhap in a filter, or those that certainly are not
#[derive(Args, Debug)]
#[command(after_help = "\
A line that is printed is mayhap in the filter: wrong as often as the filter
was made to be. A line that is not printed certainly is not in it. With -v it
is the other way round.

Lines are bytes, as they are, without their end. A filter of another program
that holds numbers takes lines that are numbers; a line that is none stops the
work, unless --allow-misfits: then it certainly is not in.

With -k, --csv or --jsonl it is that field which is asked about; whole lines are
printed, those of CSV below their header. What comes from a pipe is answered as
soon as it is there.

A filter of ours of more than 16 MiB is mapped, not read: one of many gigabytes
answers at once. Its file must not be written to meanwhile (`mayhap add` and `build`
put a new one in its place). If it is, the work stops as error; lines that were
printed before are right.

FILTER may be in a server: redis://host:port/NAME. What it is there is seen by
itself: a filter of the server's (BF.*, CF.*, MF.*), one in shards, Redisson's (with
--items-as for its codec); a bitmap by hand needs --as guava. A server may be
unable to say: then a line is neither mayhap nor no. Such lines are not printed,
with or without -v, but counted and told as error; --annotate calls them
not-ready. If a server is gone, lines are not ready after five seconds at most,
and each later one is tried again without waiting: it may come back.

Exit codes: 0 a line was selected, 1 none was, 2 error.

Examples:
  mayhap check seen.mayhap urls.txt               lines that are mayhap in
  mayhap check -v seen.mayhap urls.txt.gz         lines that certainly are not
  mayhap check -c seen.mayhap urls.txt            how many
  mayhap check --json seen.mayhap urls.txt        how many, and how many wrongly
  mayhap check -q seen.mayhap --item ada && echo mayhap
  tail -f access.log | mayhap check --annotate -k 1 bad.mayhap
  mayhap check -v --csv email blocked.mayhap people.csv > allowed.csv
  mayhap check users.bloom --items-as utf8 names.txt
                                                  a filter of Guava
  mayhap check redis://localhost:6399/seen urls.txt
  mayhap check redis://cache.local/users --items-as kryo5 names.txt
                                                  Redisson's, where it is")]
pub(crate) struct Check {
    /// The filter: ours, or one of another program; a file, or redis://host[:port]/NAME
    #[arg(value_name = "FILTER", value_parser = place::parser())]
    filter: Place,
    #[command(flatten)]
    input: InputArgs,
    /// Select the lines that certainly are not in the filter
    #[arg(short = 'v', long)]
    invert_match: bool,
    /// Print only how many lines were selected
    #[arg(short, long)]
    count: bool,
    /// Print nothing: the exit code is the answer, known at the first selected line
    #[arg(short, long, conflicts_with_all = ["count", "json", "annotate"])]
    quiet: bool,
    /// Ask about this item; may be given several times, and then files are read only if there are any
    #[arg(long, value_name = "TEXT")]
    item: Vec<OsString>,
    /// Print every line behind its answer, `mayhap` or `no`, and a tab
    #[arg(long, visible_alias = "tag", conflicts_with = "count")]
    annotate: bool,
    /// Print the number of the line in its file in front of it
    #[arg(short = 'n', long)]
    line_number: bool,
    /// Stop after so many selected lines
    #[arg(short, long, value_name = "N", value_parser = quantity::count)]
    max_count: Option<u64>,
    /// Write out what is selected at once, however little it is
    #[arg(long)]
    line_buffered: bool,
    /// A line that is no item of the filter, such as text where it holds numbers, certainly is not in it
    #[arg(long)]
    allow_misfits: bool,
    /// Threads that work; as many as there are cores unless told otherwise
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Print only how many lines are in and out, as one JSON object
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

/// What was counted.
#[derive(Clone, Debug, Default)]
struct Counts {
    lines: u64,
    mayhap: u64,
    not_ready: u64,
    selected: u64,
    /// Why the last line that has no answer has none.
    why: String,
}

impl Counts {
    /// The first `asked` of some records, of which so many were selected.
    fn add(&mut self, answered: &Answered, asked: usize, selected: u64) {
        self.lines += asked as u64;
        self.mayhap += answered.mayhaps.count_first(asked);
        self.selected += selected;
        if let Some(unready) = &answered.unready {
            self.not_ready += unready.records.count_first(asked);
            self.why.clone_from(&unready.why);
        }
    }

    const fn noes(&self) -> u64 {
        self.lines - self.mayhap - self.not_ready
    }
}

/// The counts as a program reads them. Field names are a promise.
#[derive(Serialize)]
struct Report<'a> {
    filter: String,
    lines: u64,
    mayhap: u64,
    no: u64,
    /// Lines of which the server could not say anything; only of a filter in a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_ready: Option<u64>,
    #[serde(flatten)]
    rates: Option<Rates>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    items: &'a [ItemReport],
}

/// Where the filter is.
enum Source<'a> {
    Here(&'a Filter),
    There(&'a Distant<'a>),
}

/// How often it is wrong, where that is known.
#[derive(Serialize)]
struct Rates {
    /// The rate by the model, for what is in the filter now.
    expected_fpr: f64,
    target_fpr: f64,
    /// How many of the mayhaps are wrong, as far as the model knows.
    expected_wrong_mayhaps: f64,
    over_capacity: bool,
}

#[derive(Serialize)]
struct ItemReport {
    item: String,
    /// Nothing, if the server could not say.
    mayhap: Option<bool>,
}

impl Check {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        match self.ask() {
            // Whoever read the answers has seen enough.
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
                self.ask_with(&Asker::here(&opened, self.allow_misfits), &Source::Here(&opened.filter))
            }
            Place::Server(remote) => {
                let opening = Opening {
                    remote,
                    args: &self.server,
                    layout: &self.layout,
                    items_as: self.foreign.items_as,
                    quiet: self.quiet,
                };
                let filter = Distant::open(opening, self.annotate || self.json)?;
                self.ask_with(&Asker::there(&filter, self.allow_misfits), &Source::There(&filter))
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
            // One that does not answer is not asked for more.
            Source::There(filter) if !self.quiet && counts.not_ready == 0 => {
                filter.filter().ok().and_then(|filter| filter.quick_fullness())
            }
            _ => None,
        };
        if let Some(warning) = fullness.and_then(|full| full.health()) {
            output::warn(format_args!("{}: {warning}", self.filter));
        }
        if self.json {
            let rates = match source {
                Source::Here(filter) => {
                    Some((filter.expected_fpr(), filter.target_fpr(), health::is_over_capacity(filter)))
                }
                Source::There(_) => {
                    fullness.map(|full| (full.expected_fpr, full.target_fpr, full.is_over_capacity()))
                }
            };
            let report = Report {
                filter: self.filter.to_string(),
                lines: counts.lines,
                mayhap: counts.mayhap,
                no: counts.noes(),
                not_ready: matches!(source, Source::There(_)).then_some(counts.not_ready),
                rates: rates.map(|(expected_fpr, target_fpr, over_capacity)| Rates {
                    expected_fpr,
                    target_fpr,
                    expected_wrong_mayhaps: wrong_mayhaps(&counts, expected_fpr),
                    over_capacity,
                }),
                items: &items,
            };
            output::to_stdout(|out, _| output::json(out, &report))?;
        } else if self.count {
            output::to_stdout(|out, _| Ok(writeln!(out, "{}", counts.selected)?))?;
        }
        match (counts.selected, counts.not_ready) {
            // As grep: who asks for nothing but an exit code has an answer.
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

    /// What was asked for; what has no answer never is among it.
    fn select(&self, answered: &Answered) -> Selection {
        let mayhaps = &answered.mayhaps;
        let selected = if self.invert_match { mayhaps.inverted() } else { mayhaps.clone() };
        match &answered.unready {
            Some(unready) => selected.without(&unready.records),
            None => selected,
        }
    }

    /// Those of the command line.
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
            let selected = self.select(&answered).contains(0);
            counts.add(&answered, 1, u64::from(selected));
            writer.item(bytes, &answered, selected, counts.lines)?;
            if self.json {
                let mayhap = answered.unready.is_none().then(|| answered.mayhaps.contains(0));
                reports.push(ItemReport { item: String::from_utf8_lossy(bytes).into_owned(), mayhap });
            }
        }
        Ok(reports)
    }

    fn ask_files(&self, asker: &Asker<'_>, writer: &mut Writer, counts: &mut Counts) -> Result<(), CliError> {
        // Where lines go to the terminal, the bar would be among them.
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
            // After the answers, before any of them is used: a no that is told is one of the filter that was opened.
            asker.check_answers()?;
            let left = self.most().saturating_sub(counts.selected);
            let mut selected = self.select(&answered);
            let asked = selected.cut_after(left);
            counts.add(&answered, asked, selected.count_first(asked));
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

/// How many of the mayhaps are wrong, if lines are different from each other: of the non-members among the lines, the filter
/// says no to all but `rate`. So those that got a no are that part of the non-members, and the others follow.
fn wrong_mayhaps(counts: &Counts, rate: f64) -> f64 {
    let (mayhap, no) = (counts.mayhap as f64, counts.noes() as f64);
    if rate >= 1.0 { mayhap } else { (no * rate / (1.0 - rate)).min(mayhap) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noes_tell_how_many_mayhaps_are_wrong() {
        let counts = |lines, mayhap| Counts { lines, mayhap, ..Counts::default() };
        // 990 noes at 1 % are what is left of 1,000 non-members: 10 of the mayhaps are wrong.
        assert!((wrong_mayhaps(&counts(1_490, 500), 0.01) - 10.0).abs() < 1e-9);
        assert_eq!(wrong_mayhaps(&counts(500, 500), 0.01), 0.0);
        assert_eq!(wrong_mayhaps(&counts(1_000, 1), 0.5), 1.0, "never more than there are");
        assert_eq!(wrong_mayhaps(&counts(1_000, 1_000), 1.0), 1_000.0);
        assert_eq!(wrong_mayhaps(&counts(0, 0), 0.01), 0.0);
    }
}
