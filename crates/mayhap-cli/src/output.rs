//! Standard output: with colours and the width of the terminal if it is one. A closed pipe is not an error.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

use anstyle::{AnsiColor, Style};

use crate::error::CliError;

/// Headings.
pub(crate) const HEADING: Style = Style::new().bold();
/// The style of recommended entries.
pub(crate) const BEST: Style = AnsiColor::Green.on_default().bold();
/// The style of entries listed for completeness.
pub(crate) const ASIDE: Style = Style::new().dimmed();

/// The width if there is no terminal and `COLUMNS` is not set.
const UNKNOWN_WIDTH: usize = 100;
/// The largest width. Longer lines are hard to read, however wide the terminal.
const WIDEST: usize = 110;
/// The smallest width. A narrower terminal has to wrap the lines.
const NARROWEST: usize = 60;

/// Runs `write` with standard output and its width. A reader that closes the pipe early, as `head` does, is not an error.
pub(crate) fn to_stdout(
    write: impl FnOnce(&mut dyn Write, usize) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    let told = || std::env::var("COLUMNS").ok()?.trim().parse().ok();
    let width = width.or_else(told).unwrap_or(UNKNOWN_WIDTH).clamp(NARROWEST, WIDEST);
    let mut out = BufWriter::new(anstream::stdout());
    match write(&mut out, width) {
        Ok(()) => unless_reader_left(out.flush()),
        Err(CliError::Write(error)) => unless_reader_left(Err(error)),
        Err(error) => Err(error),
    }
}

/// The size of the output buffer.
const RECORDS_BYTES: usize = 1 << 18;

/// Standard output for records, byte for byte: without colours and without line buffering. It must be flushed.
pub(crate) fn records() -> Result<BufWriter<File>, CliError> {
    let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    Ok(BufWriter::with_capacity(RECORDS_BYTES, file))
}

/// Writes `value` as one JSON object.
pub(crate) fn json(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<(), CliError> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

/// Prints a warning on standard error: `mayhap: warning: …`.
pub(crate) fn warn(what: impl std::fmt::Display) {
    // If standard error cannot be written, the warning is lost.
    let _ = writeln!(anstream::stderr(), "mayhap: warning: {what}");
}

/// Prints a message on standard error: `mayhap: …`.
pub(crate) fn tell(what: impl std::fmt::Display) {
    // If standard error cannot be written, the message is lost.
    let _ = writeln!(anstream::stderr(), "mayhap: {what}");
}

/// Returns `Ok` for a pipe whose reader has left.
pub(crate) fn unless_reader_left(written: io::Result<()>) -> Result<(), CliError> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Writes `text` in lines of at most `width` columns. The first line begins with `first`, the others with as many spaces.
pub(crate) fn paragraph(out: &mut dyn Write, text: &str, first: &str, width: usize) -> io::Result<()> {
    let indent = " ".repeat(first.len());
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).iter().try_for_each(|line| writeln!(out, "{line}"))
}
