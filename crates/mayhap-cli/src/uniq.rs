//! `mayhap uniq`: writes every line once, in the order of first appearance.
//!
//! ```text
//! Block ─▶ hashes ─▶ Memory: seen before? ─▶ LineWriter: runs of kept lines ─▶ standard output
//!                    (fingerprints or window)          └▶ suspects
//! ```

mod count;
mod keep;
mod loss;
mod machine;
mod memory;
mod report;
mod state;
mod suspects;
mod window;

use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::Args;
use mayhap::{HashScheme, ItemHash};
use mayhap_server::quantity;

use self::keep::{LineWriter, WantedLines};
use self::memory::Memory;
use self::report::{ReportArgs, UniqReport};
use self::state::State;
use self::suspects::Suspects;
use self::window::WindowLength;
use crate::error::CliError;
use crate::in_order::{self, in_order};
use crate::input::{Block, Blocks, InputArgs};
use crate::progress::{Progress, ProgressArgs};
use crate::{interrupt, output, whole_file};

/// Drop duplicate lines anywhere in the input; the first of each is kept, in input order
#[derive(Args, Debug)]
#[command(after_help = "\
Lines are written as they arrive; the input is not sorted. Each line is remembered by a
64-bit fingerprint, which takes 9 to 11 bytes whatever the length of the line. With a billion
distinct lines, 97 of 100 runs drop none by mistake. When --memory is used up, all
fingerprints are shortened in place to half their length, which makes room for as many again.
With 32 bits, at most 1 new line in 18 million is dropped by mistake; with 16 bits, at most
1 in 1,250 (only if --fpr allows it). When that is full too, new lines are written but no
longer remembered, so their copies are written as well. (--strict stops instead.)

At the end, standard error reports how many lines were kept, how they were remembered, and
how many were dropped by mistake: the expected number and an upper bound.

With -k, --csv or --jsonl, two lines are duplicates if that field is equal. Whole lines are
written, CSV lines below their header (except with --count).
With --window, old lines are forgotten: a line that was last seen more than N lines (or
TIME) ago may be written again, and after a third more than that it certainly is. Each time
a line is seen, its age starts again at zero.

Examples:
  mayhap uniq urls.txt > distinct.txt
  zcat access.*.gz | mayhap uniq --memory 64MiB --fpr 0.1% > distinct.txt
  tail -f app.log | mayhap uniq                          each message once, immediately
  mayhap uniq --state seen.mayhap today.txt              only lines no earlier run has seen
  mayhap uniq --window 1h events.fifo                    again if unseen for an hour
  mayhap uniq --count words.txt | sort -rn | head        the most frequent lines
  mayhap uniq --repeated ids.txt                         only lines that occur twice or more
  mayhap uniq --csv email people.csv                     one row for each address

Exact result in little memory:
  mayhap uniq --memory 64MiB --suspects doubtful.txt big.txt > out.txt
  LC_ALL=C comm -13 <(LC_ALL=C sort -u out.txt) <(LC_ALL=C sort -u doubtful.txt) >> out.txt")]
pub(crate) struct Uniq {
    #[command(flatten)]
    input: InputArgs,
    /// Memory limit [default: a quarter of the machine's memory; 64MiB for --window TIME]. A limit below 16MiB applies to the remembered lines only, not to buffers
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, allow_hyphen_values = true)]
    memory: Option<u64>,
    /// The share of new lines that may be dropped by mistake after --memory is used up
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, default_value = "1e-6", allow_hyphen_values = true)]
    fpr: f64,
    /// Stop with an error when --memory is used up and new lines could no longer be remembered within --fpr
    #[arg(long)]
    strict: bool,
    /// Remember lines across runs: read FILE if it exists, and write it at the end, also after Ctrl-C
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Remember only the last N lines, or only the lines of the last TIME: 1000, 1e6, 30s, 15m, 1h, 7d
    #[arg(long, value_name = "N|TIME", value_parser = window::length, allow_hyphen_values = true)]
    window: Option<WindowLength>,
    /// Write each line once, after the number of its occurrences, at the end of the input; all distinct lines must fit in --memory
    #[arg(short, long, conflicts_with_all = ["state", "window", "suspects", "inverse"])]
    count: bool,
    /// Write only lines that occur more than once, each once
    #[arg(short = 'd', long, conflicts_with_all = ["state", "window", "suspects", "inverse"])]
    repeated: bool,
    /// Write only the lines that are dropped without this flag
    #[arg(short = 'v', long)]
    inverse: bool,
    /// Write the lines that were dropped because of a shortened fingerprint to FILE, to check them exactly later
    #[arg(long, value_name = "FILE", conflicts_with_all = ["window", "inverse"])]
    suspects: Option<PathBuf>,
    /// Write lines as soon as they are read, even if more input is waiting
    #[arg(long)]
    line_buffered: bool,
    /// Number of threads that find and hash lines [default: 1]; it does not change the output
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// Lines that are hashed and looked up together.
const BATCH: usize = 1024;

impl Uniq {
    /// Writes the lines to standard output and the report to standard error.
    pub(crate) fn run(&self) -> Result<(), CliError> {
        // On Ctrl-C, the lines read until then are still written, saved and reported.
        let _polite = interrupt::polite();
        self.check_files()?;
        if self.count {
            return self.count();
        }
        let mut state = self.state.as_deref().map(State::claim).transpose()?;
        let mut memory = self.memory(state.as_mut())?;
        let mut suspects = self.suspects.as_deref().map(Suspects::create).transpose()?;
        let selection = match () {
            () if self.repeated => WantedLines::Repeated,
            () if self.inverse => WantedLines::Dropped,
            () => WantedLines::New,
        };
        let mut kept = LineWriter::new(selection, self.line_buffered)?;
        let progress = Progress::start(self.progress);
        let blocks = self.input.open(&progress)?;
        let read = read_all(blocks, self.threads(), &progress, &mut memory, &mut kept, suspects.as_mut());
        // Lines that were not written must not count as seen: after a failed write, no state is saved.
        let interrupted = match read {
            Ok(()) => false,
            Err(CliError::Interrupted) => true,
            Err(error) => return kept.unless_reader_left(error),
        };
        if let Err(error) = kept.flush() {
            return kept.unless_reader_left(error);
        }
        if let Some(suspects) = suspects {
            suspects.finish()?;
        }
        if let Some(state) = &state {
            progress.phase("saving", None);
            memory.save(state)?;
        }
        drop(progress);
        self.report.warn_of_skipped(&self.input);
        self.report.write(&UniqReport::of(&memory, self, state.as_ref(), interrupted))?;
        if interrupted { Err(CliError::Interrupted) } else { Ok(()) }
    }

    /// Checks that no output file is also an input, and that no file is used for two outputs.
    fn check_files(&self) -> Result<(), CliError> {
        let written =
            [("--state", &self.state), ("--suspects", &self.suspects), ("--report", &self.report.report)];
        let written: Vec<_> =
            written.iter().filter_map(|(flag, path)| Some((*flag, path.as_deref()?))).collect();
        let inputs = self.input.files.iter().map(|file| ("an input", file.as_path()));
        for (index, &(flag, path)) in written.iter().enumerate() {
            let others = inputs.clone().chain(written[..index].iter().copied());
            if let Some((other, _)) = others.into_iter().find(|(_, other)| whole_file::is_same(path, other)) {
                return Err(CliError::Usage(format!("{flag}: {} is also {other}", path.display())));
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).metadata();
            folder.map_err(|cause| CliError::CannotWrite { path: path.to_owned(), cause })?;
        }
        Ok(())
    }

    /// The number of threads. One by default, because reading and remembering usually take longer than hashing.
    fn threads(&self) -> usize {
        in_order::threads(self.threads.or(NonZero::new(1)))
    }

    fn memory_bytes(&self) -> u64 {
        self.memory.unwrap_or_else(machine::quarter_of_memory)
    }

    fn memory(&self, state: Option<&mut State>) -> Result<Memory, CliError> {
        let settings = memory::Settings {
            limit_bytes: self.memory_bytes(),
            fpr: self.fpr,
            strict: self.strict,
            quiet: self.report.quiet,
            repeated: self.repeated,
        };
        match self.window {
            Some(length) => Memory::of_window(length, self.memory, &settings, state),
            None => Memory::of_fingerprints(&settings, state),
        }
    }

    /// `--count`: holds the lines themselves in memory and writes them at the end.
    fn count(&self) -> Result<(), CliError> {
        let progress = Progress::start(self.progress);
        let blocks = self.input.open(&progress)?;
        let mut counts = count::Counts::new(self.memory_bytes());
        let read = in_order(
            blocks,
            self.threads(),
            |_| Ok(()),
            |block, ()| {
                counts.add(block)?;
                progress.add_items(block.len() as u64);
                Ok(())
            },
        );
        let interrupted = match read {
            Ok(()) => false,
            Err(CliError::Interrupted) => true,
            Err(error) => return Err(error),
        };
        drop(progress);
        match counts.write(&mut output::records()?, self.repeated) {
            // The reader of the pipe has closed it: end without a report.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
        self.report.warn_of_skipped(&self.input);
        self.report.write(&UniqReport::of_counts(&counts, self, interrupted))?;
        if interrupted { Err(CliError::Interrupted) } else { Ok(()) }
    }
}

/// Reads all blocks and writes the lines to be kept.
fn read_all(
    mut blocks: Blocks,
    threads: usize,
    progress: &Progress,
    memory: &mut Memory,
    kept: &mut LineWriter,
    mut suspects: Option<&mut Suspects>,
) -> Result<(), CliError> {
    let scheme = memory.scheme();
    if let Some(header) = blocks.header()? {
        kept.write(&header)?;
    }
    if threads > 1 {
        let hash = |block: &Block| {
            let mut hashes = Vec::with_capacity(block.len());
            hash_all(block, 0..block.len(), &scheme, &mut hashes);
            Ok(hashes)
        };
        return in_order(blocks, threads, hash, |block, hashes| {
            memory.block_arrived();
            kept.begin(block);
            let mut batches = hashes.chunks(BATCH).enumerate();
            let judged = batches.try_for_each(|(index, hashes)| {
                judge(block, index * BATCH, hashes, memory, kept, suspects.as_deref_mut())
            });
            // The lines judged before an error are still written.
            kept.end(block)?;
            judged?;
            progress.add_items(block.len() as u64);
            Ok(())
        });
    }
    let mut hashes = Vec::with_capacity(BATCH);
    while let Some(block) = blocks.next()? {
        memory.block_arrived();
        kept.begin(&block);
        let mut batches = (0..block.len()).step_by(BATCH);
        let judged = batches.try_for_each(|first| {
            hash_all(&block, first..block.len().min(first + BATCH), &scheme, &mut hashes);
            judge(&block, first, &hashes, memory, kept, suspects.as_deref_mut())
        });
        kept.end(&block)?;
        judged?;
        progress.add_items(block.len() as u64);
        blocks.reuse(block);
    }
    Ok(())
}

/// Notes which of these lines are kept. `first` is the index of the first of them in the block.
fn judge(
    block: &Block,
    first: usize,
    hashes: &[ItemHash],
    memory: &mut Memory,
    kept: &mut LineWriter,
    suspects: Option<&mut Suspects>,
) -> Result<(), CliError> {
    memory.judge(hashes)?;
    if let Some(suspects) = suspects {
        memory.suspects().try_for_each(|index| suspects.add(block.record(first + index)))?;
    }
    kept.note(memory.selected(hashes, kept.selection())?, hashes.len());
    Ok(())
}

fn hash_all(block: &Block, range: std::ops::Range<usize>, scheme: &HashScheme, hashes: &mut Vec<ItemHash>) {
    hashes.clear();
    match *scheme {
        // The match is outside the loop, so each loop is compiled for one scheme.
        HashScheme::Fast { seed } => {
            let scheme = HashScheme::Fast { seed };
            hashes.extend(range.map(|index| scheme.hash(block.item(index))));
        }
        _ => hashes.extend(range.map(|index| scheme.hash(block.item(index)))),
    }
}
