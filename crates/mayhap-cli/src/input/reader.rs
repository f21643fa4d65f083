//! The thread that reads ahead, and the blocks it sends.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;

use mayhap::say;

use super::block::Block;
use super::compression::Unpacked;
use super::csv;
use super::item::{Asked, Origin};
use super::lines::{self, Terminator};
use super::source::Source;
use crate::error::CliError;
use crate::interrupt;
use crate::progress::{Progress, Reading};

/// The bytes of a block, unless a record is longer.
const BLOCK_BYTES: usize = 1 << 18;
/// The longest record that is accepted. A longer one is most likely not text.
const RECORD_LIMIT: usize = 1 << 28;
/// Blocks read ahead.
const AHEAD: usize = 2;

/// A message from the reader: a block, `None` after the last, or an error. Nothing follows the last two.
pub(crate) type Message = Result<Option<Block>, CliError>;

/// The records of all sources, one after the other.
#[derive(Debug)]
pub(crate) struct Blocks {
    blocks: Receiver<Message>,
    /// Used blocks, whose memory is reused.
    used: Sender<Block>,
    /// A block that arrived while only the header was wanted.
    early: Option<Message>,
    /// A header comes first, unless the input is empty.
    header_comes: bool,
    ended: bool,
}

/// Begins to read `sources`.
pub(super) fn start(sources: Vec<Source>, asked: Asked, progress: &Progress) -> Blocks {
    let reading = progress.reading(sources.iter().map(|source| source.bytes).sum());
    start_with(asked, move |reader| {
        let mut sources = sources.into_iter().peekable();
        while let Some(source) = sources.next() {
            let next_may_wait = sources.peek().is_some_and(Source::may_wait);
            if !reader.read(&source, &reading, next_may_wait)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Begins to run `read`, which returns `true` if all input was read.
pub(super) fn start_with(
    asked: Asked,
    read: impl FnOnce(&mut Reader) -> Result<bool, CliError> + Send + 'static,
) -> Blocks {
    let (blocks_in, blocks) = mpsc::sync_channel(AHEAD);
    let (used, used_out) = mpsc::channel();
    interrupt::wake(blocks_in.clone());
    let header_comes = asked.header_comes();
    let mut reader = Reader { blocks: blocks_in, used: used_out, asked, header_comes, paused: true };
    // The thread is not joined: when the command needs no more input, the thread ends with the process or at its next
    // block.
    thread::spawn(move || {
        // A panic of the thread must not look like the end of the input.
        let _ended = SaysWhenItFails(reader.blocks.clone());
        match read(&mut reader) {
            Ok(false) => {}
            Ok(true) => _ = reader.send(Ok(None)),
            Err(error) => _ = reader.send(Err(error)),
        }
    });
    Blocks { blocks, used, early: None, header_comes, ended: false }
}

impl Blocks {
    /// The next records; `None` after the last.
    ///
    /// # Errors
    /// Invalid or unreadable input, and [`CliError::Interrupted`].
    pub(crate) fn next(&mut self) -> Result<Option<Block>, CliError> {
        with_items(self.next_without_items())
    }

    /// The CSV header with its line ending, for commands that write records: the header of the first file that has one.
    ///
    /// # Errors
    /// Errors of the input before the first record.
    pub(crate) fn header(&mut self) -> Result<Option<Vec<u8>>, CliError> {
        if !self.header_comes || self.early.is_some() {
            return Ok(None);
        }
        match self.wait() {
            Ok(Some(block)) if block.is_header => {
                self.header_comes = false;
                Ok(Some(block.bytes))
            }
            Err(error) => Err(error),
            next => {
                self.early = Some(next);
                Ok(None)
            }
        }
    }

    /// Like [`next`](Self::next), for callers that run [`find_items`](Block::find_items) in another thread.
    pub(crate) fn next_without_items(&mut self) -> Message {
        match self.ready_without_items() {
            Some(next) => next,
            None => self.wait_for_records(),
        }
    }

    /// Like [`next_without_items`](Self::next_without_items), but returns immediately if no block is ready.
    pub(crate) fn ready_without_items(&mut self) -> Option<Message> {
        loop {
            if let Some(early) = self.early.take() {
                return Some(early);
            }
            if self.ended {
                return Some(Ok(None));
            }
            let next = self.blocks.try_recv().ok()?;
            match self.take(next) {
                Ok(Some(header)) if header.is_header => self.header_comes = false,
                next => return Some(next),
            }
        }
    }

    fn wait_for_records(&mut self) -> Message {
        loop {
            match self.wait() {
                Ok(Some(header)) if header.is_header => self.header_comes = false,
                next => return next,
            }
        }
    }

    fn wait(&mut self) -> Message {
        if self.ended {
            return Ok(None);
        }
        // The reader always sends a last message.
        let next = self.blocks.recv().unwrap_or(Ok(None));
        self.take(next)
    }

    fn take(&mut self, next: Message) -> Message {
        self.ended = !matches!(next, Ok(Some(_)));
        interrupt::check()?;
        next
    }

    /// Returns a used block to the reader, which reuses its memory.
    pub(crate) fn reuse(&self, block: Block) {
        // The reader may have ended.
        let _ = self.used.send(block);
    }
}

fn with_items(message: Message) -> Message {
    let Ok(Some(mut block)) = message else { return message };
    block.find_items()?;
    Ok(Some(block))
}

/// Sends an error if the reader panics.
struct SaysWhenItFails(SyncSender<Message>);

impl Drop for SaysWhenItFails {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.0.send(Err(CliError::Input {
                name: "input".into(),
                what: "the thread that reads it panicked; this is a bug in mayhap".into(),
            }));
        }
    }
}

/// The state of the reading thread.
pub(super) struct Reader {
    blocks: SyncSender<Message>,
    used: Receiver<Block>,
    asked: Asked,
    /// A header was announced and not sent yet.
    header_comes: bool,
    /// Nothing was sent since the last announced pause.
    paused: bool,
}

/// How records end, and the state of the search for ends.
enum Ends {
    Lines(Terminator),
    Csv(csv::Records),
}

impl Ends {
    fn find(&mut self, bytes: &[u8], looked_at: usize, ends: &mut Vec<u32>) {
        match self {
            Self::Lines(terminator) => lines::find_ends(bytes, looked_at, *terminator, ends),
            Self::Csv(records) => records.find_ends(bytes, looked_at, ends),
        }
    }

    /// The number of lines in `bytes`, which hold this many records.
    fn lines(&self, bytes: &[u8], records: usize) -> u64 {
        match self {
            Self::Lines(_) => records as u64,
            Self::Csv(_) => csv::lines(bytes),
        }
    }

    /// Returns `true` if the examined bytes end inside quotes.
    fn in_quotes(&self) -> bool {
        matches!(self, Self::Csv(records) if records.in_quotes())
    }
}

/// A source while it is read, and the state of its records.
struct Records {
    name: String,
    ends: Ends,
    /// `None` until the header was read.
    origin: Option<Arc<Origin>>,
    lines_before: u64,
}

impl Records {
    /// The position of the record that begins after these bytes.
    fn place(&self, before: &[u8], records: usize) -> String {
        let line = self.lines_before + self.ends.lines(before, records) + 1;
        let line_name = self.origin.as_ref().map_or("line", |origin| origin.line_name());
        format!("{}, {line_name} {}", self.name, say::count(line))
    }

    /// The error for a record that is too long.
    fn too_long(&self) -> CliError {
        let ask = if self.ends.in_quotes() { "is a quote missing?" } else { "is this text?" };
        let what = format!("a record is longer than the limit of {} MiB: {ask}", RECORD_LIMIT >> 20);
        CliError::Input { name: self.place(&[], 0), what }
    }

    /// Appends the terminator to the last record, if it has none.
    fn end(&self, block: &mut Block, terminator: Terminator) -> Result<(), CliError> {
        let whole = block.whole();
        if block.bytes.len() == whole {
            return Ok(());
        }
        if self.ends.in_quotes() {
            let what = "a quoted field does not end: is a quote missing, or is the file truncated?".into();
            return Err(CliError::Input { name: self.place(&block.bytes[..whole], block.len()), what });
        }
        block.bytes.extend_from_slice(terminator.bytes());
        block.ends.push(block.bytes.len() as u32);
        Ok(())
    }

    /// Takes the header, and blank lines before it, from the beginning of `block`, of which `filled` bytes are filled.
    fn take_header(&mut self, block: &mut Block, filled: &mut usize) -> Option<Vec<u8>> {
        let is_blank = |record: &[u8]| record.trim_ascii().is_empty();
        let blank = (0..block.len()).take_while(|&index| is_blank(block.record(index))).count();
        let header = (blank < block.len()).then(|| block.record(blank).to_vec());
        let taken = blank + usize::from(header.is_some());
        let bytes = block.records(0..taken).len();
        self.lines_before += csv::lines(&block.bytes[..bytes]);
        block.bytes.drain(..bytes);
        *filled -= bytes;
        block.ends.drain(..taken);
        block.ends.iter_mut().for_each(|end| *end -= bytes as u32);
        header
    }
}

impl Reader {
    /// Sends all records of `source`. Returns `false` if the receiver wants no more.
    fn read(&mut self, source: &Source, reading: &Reading, next_may_wait: bool) -> Result<bool, CliError> {
        let open = source.open()?;
        let bytes = open.bytes(reading.clone());
        let unpacked = if self.asked.unpack { Unpacked::new(bytes) } else { Ok(Unpacked::plain(bytes)) };
        let unpacked = unpacked.map_err(|cause| CliError::Read { name: source.name.clone(), cause })?;
        self.read_records(source.name.clone(), unpacked, || open.would_wait(), next_may_wait)
    }

    /// Sends all records of `input`, at the latest before a read that `would_wait`.
    pub(super) fn read_records(
        &mut self,
        name: String,
        mut input: Unpacked,
        would_wait: impl Fn() -> bool,
        next_may_wait: bool,
    ) -> Result<bool, CliError> {
        if self.asked.may_have_mark() {
            input.drop_mark().map_err(|cause| input.cli_error(&name, cause))?;
        }
        let ends = match self.asked.csv_delimiter() {
            Some(delimiter) => Ends::Csv(csv::Records::new(delimiter)),
            None => Ends::Lines(self.asked.terminator),
        };
        let origin = self.asked.origin(&name).map(Arc::new);
        let mut records = Records { name, ends, origin, lines_before: 0 };
        let (mut block, mut filled) = (self.empty_block(), 0);
        loop {
            let whole = block.whole();
            let pause_follows = would_wait();
            if pause_follows && (whole > 0 || !self.paused) || whole > 0 && filled >= BLOCK_BYTES {
                let mut next = self.empty_block();
                let rest = &block.bytes[whole..filled];
                filled = rest.len();
                next.bytes.resize(next.bytes.len().max(filled), 0);
                next.bytes[..filled].copy_from_slice(rest);
                if !self.hand_over(block, &mut records, pause_follows) {
                    return Ok(false);
                }
                block = next;
            } else if whole == 0 && filled > RECORD_LIMIT {
                return Err(records.too_long());
            }
            let read = fill(&mut input, &mut block.bytes, filled);
            let read = read.map_err(|cause| input.cli_error(&records.name, cause))?;
            let at_end = read == 0;
            records.ends.find(&block.bytes[..filled + read], filled, &mut block.ends);
            filled += read;
            if at_end {
                block.bytes.truncate(filled);
                records.end(&mut block, self.asked.terminator)?;
                filled = block.bytes.len();
            }
            if records.origin.is_none()
                && let Some(header) = records.take_header(&mut block, &mut filled)
            {
                records.origin = Some(Arc::new(self.asked.origin_below(&records.name, &header)?));
                if !self.send_header(header) {
                    return Ok(false);
                }
            }
            if at_end {
                return Ok(block.len() == 0 || self.hand_over(block, &mut records, next_may_wait));
            }
        }
    }

    /// A block without records. Its bytes are not cleared, because they will be overwritten.
    fn empty_block(&self) -> Block {
        let mut block = self.used.try_recv().unwrap_or_default();
        block.clear();
        block.terminator_bytes = self.asked.terminator.bytes().len();
        block
    }

    /// Sends `block`. Returns `false` if the receiver wants no more.
    fn hand_over(&mut self, mut block: Block, records: &mut Records, pause_follows: bool) -> bool {
        block.bytes.truncate(block.whole());
        block.origin.clone_from(&records.origin);
        block.lines_before = records.lines_before;
        block.pause_follows = pause_follows;
        self.paused = pause_follows;
        records.lines_before += records.ends.lines(&block.bytes, block.len());
        self.send(Ok(Some(block)))
    }

    /// Sends the first header. Returns `false` if the receiver wants no more.
    fn send_header(&mut self, bytes: Vec<u8>) -> bool {
        if !self.header_comes {
            return true;
        }
        self.header_comes = false;
        self.paused = false;
        self.send(Ok(Some(Block { bytes, is_header: true, ..Block::default() })))
    }

    /// Returns `false` if the receiver wants no more, or if this was the last message.
    fn send(&self, message: Message) -> bool {
        let good = message.is_ok();
        self.blocks.send(message).is_ok() && good
    }
}

/// Reads once, after the `filled` bytes and at most to the end of a block. Returns the number of bytes read.
fn fill(input: &mut Unpacked, bytes: &mut Vec<u8>, filled: usize) -> io::Result<usize> {
    let end = BLOCK_BYTES.max(filled + BLOCK_BYTES / 4);
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    input.read(&mut bytes[filled..end])
}
