//! `mayhap uniq`: every line once, in the order of their first appearance.
//!
//! ```text
//! Block ─▶ hashes ─▶ Memory: seen before? ─▶ Kept: runs of kept lines ─▶ the standard output
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

use self::keep::{Kept, Selection};
use self::memory::Memory;
use self::report::{Report, ReportArgs};
use self::state::State;
use self::suspects::Suspects;
use self::window::WindowLength;
use crate::error::CliError;
use crate::in_order::{self, in_order};
use crate::input::{Block, Blocks, InputArgs};
use crate::progress::{Progress, ProgressArgs};
use crate::{interrupt, output, quantity, whole_file};

/// Drop lines seen before, anywhere in the input; the first of each is kept, in order
#[derive(Args, Debug)]
#[command(after_help = "\
Nothing is sorted and nothing waits for the end of the input. A line is remembered by a
64-bit fingerprint in 9 to 11 bytes, however long it is: a billion lines are all
told apart in 97 of 100 runs. When --memory is used up, all fingerprints are cut in half
where they lie, and there is room for as many again: to 32 bits, which drops at most one
new line in 18 million wrongly, then, if --fpr allows it, to 16 bits: at most one in 1,250.
When that is full too, new lines are still kept but not remembered: they may come again.
(--strict stops instead.)

At the end the standard error says how many lines were kept, how they were remembered, how
many lines must be expected to be dropped wrongly, and how many at the most.

With -k, --csv or --jsonl lines are the same if that field is; whole lines are written, those of
CSV below their header (but not with --count).
A window forgets: what came longer ago than N lines (or so long) is kept again, at the latest
after a third more. Seeing a line again begins its time anew.

Examples:
  mayhap uniq urls.txt > distinct.txt
  zcat access.*.gz | mayhap uniq --memory 64MiB --fpr 0.1% > distinct.txt
  tail -f app.log | mayhap uniq                          each message once, at once
  mayhap uniq --state seen.mayhap today.txt              only what no earlier run has seen
  mayhap uniq --window 1h events.fifo                    again if not seen for an hour
  mayhap uniq --count words.txt | sort -rn | head        the most frequent
  mayhap uniq --repeated ids.txt                         only those that come twice
  mayhap uniq --csv email people.csv                     one row for each address

Exactly, in little memory:
  mayhap uniq --memory 64MiB --suspects doubtful.txt big.txt > out.txt
  LC_ALL=C comm -13 <(LC_ALL=C sort -u out.txt) <(LC_ALL=C sort -u doubtful.txt) >> out.txt")]
pub(crate) struct Uniq {
    #[command(flatten)]
    input: InputArgs,
    /// How much memory it may take (default: a quarter of the machine's); below 16 MiB, for what is remembered alone
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, allow_hyphen_values = true)]
    memory: Option<u64>,
    /// How many new lines may be dropped wrongly once --memory is used up
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, default_value = "1e-6", allow_hyphen_values = true)]
    fpr: f64,
    /// Stop when --memory is used up and --fpr would be broken or lines no longer remembered
    #[arg(long)]
    strict: bool,
    /// Remember across runs: read FILE if it is there, write it at the end, also after Ctrl-C
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Remember only the last N lines, or so long: 1000, 1e6, 30s, 15m, 1h, 7d
    #[arg(long, value_name = "N|TIME", value_parser = window::length, allow_hyphen_values = true)]
    window: Option<WindowLength>,
    /// Write each line once with how often it came in front, at the end; the lines have to fit --memory
    #[arg(short, long, conflicts_with_all = ["state", "window", "suspects", "inverse"])]
    count: bool,
    /// Write only lines that come more than once, each once
    #[arg(short = 'd', long, conflicts_with_all = ["state", "window", "suspects", "inverse"])]
    repeated: bool,
    /// Write the lines that would be dropped, and drop the others
    #[arg(short = 'v', long)]
    inverse: bool,
    /// Write lines to FILE that were dropped by cut fingerprints alone, so that a second pass can tell
    #[arg(long, value_name = "FILE", conflicts_with_all = ["window", "inverse"])]
    suspects: Option<PathBuf>,
    /// Write lines as soon as they were read, also while there are more to read
    #[arg(long)]
    line_buffered: bool,
    /// Threads that find and hash lines [default: 1]; what is kept does not depend on it
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// Lines hashed and looked up at a time.
const BATCH: usize = 1024;

impl Uniq {
    /// Writes the lines to the standard output and the report to the standard error.
    pub(crate) fn run(&self) -> Result<(), CliError> {
        // What was read is finished, saved and reported before the program ends.
        let _polite = interrupt::polite();
        self.check_files()?;
        if self.count {
            return self.count();
        }
        let mut state = self.state.as_deref().map(State::claim).transpose()?;
        let mut memory = self.memory(state.as_mut())?;
        let mut suspects = self.suspects.as_deref().map(Suspects::create).transpose()?;
        let selection = match () {
            () if self.repeated => Selection::Repeated,
            () if self.inverse => Selection::Dropped,
            () => Selection::New,
        };
        let mut kept = Kept::new(selection, self.line_buffered)?;
        let progress = Progress::start(self.progress);
        let blocks = self.input.open(&progress)?;
        let read = read_all(blocks, self.threads(), &progress, &mut memory, &mut kept, suspects.as_mut());
        // Lines nobody got must not count as seen: after a failed write nothing is saved.
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
        self.report.write(&Report::of(&memory, self, state.as_ref(), interrupted))?;
        if interrupted { Err(CliError::Interrupted) } else { Ok(()) }
    }

    /// What is written must not be what is read, nor one file two things.
    fn check_files(&self) -> Result<(), CliError> {
        let written =
            [("--state", &self.state), ("--suspects", &self.suspects), ("--report", &self.report.report)];
        let written: Vec<_> =
            written.iter().filter_map(|(flag, path)| Some((*flag, path.as_deref()?))).collect();
        let inputs = self.input.files.iter().map(|file| ("an input", file.as_path()));
        for (index, &(flag, path)) in written.iter().enumerate() {
            let others = inputs.clone().chain(written[..index].iter().copied());
            if let Some((other, _)) = others.into_iter().find(|(_, other)| whole_file::is_same(path, other)) {
                return Err(CliError::Usage(format!("{flag}: {} is {other}, too", path.display())));
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).metadata();
            folder.map_err(|cause| CliError::NoPlace { path: path.to_owned(), cause })?;
        }
        Ok(())
    }

    /// One, unless told otherwise: mostly reading and remembering take longer than hashing.
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

    /// The lines themselves are held, and written at the end.
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
            // Who has seen enough does not want to hear more.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
        self.report.warn_of_skipped(&self.input);
        self.report.write(&Report::of_counts(&counts, self, interrupted))?;
        if interrupted { Err(CliError::Interrupted) } else { Ok(()) }
    }
}

/// Reads all blocks and writes what is to be kept of them.
fn read_all(
    mut blocks: Blocks,
    threads: usize,
    progress: &Progress,
    memory: &mut Memory,
    kept: &mut Kept,
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
            // What was judged before something went wrong is good.
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

/// Notes which of the lines with these hashes are kept; they begin with line `first` of the block.
fn judge(
    block: &Block,
    first: usize,
    hashes: &[ItemHash],
    memory: &mut Memory,
    kept: &mut Kept,
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
        // Which scheme it is, is settled outside of the loop.
        HashScheme::Fast { seed } => {
            let scheme = HashScheme::Fast { seed };
            hashes.extend(range.map(|index| scheme.hash(block.item(index))));
        }
        _ => hashes.extend(range.map(|index| scheme.hash(block.item(index)))),
    }
}
