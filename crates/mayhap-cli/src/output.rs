//! The standard output: coloured and as wide as the terminal where it is one, quiet when its reader leaves.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

use anstyle::{AnsiColor, Style};

use crate::error::CliError;

/// Headings.
pub(crate) const HEADING: Style = Style::new().bold();
/// What is recommended.
pub(crate) const BEST: Style = AnsiColor::Green.on_default().bold();
/// What is there for completeness.
pub(crate) const ASIDE: Style = Style::new().dimmed();

/// Columns written to where there is no terminal and `COLUMNS` does not say how many.
const UNKNOWN_WIDTH: usize = 100;
/// Lines longer than this are hard to read, however wide the terminal.
const WIDEST: usize = 110;
/// A terminal narrower than this gets lines that it has to break.
const NARROWEST: usize = 60;

/// Runs `write` with the standard output and its width. That the reader left, as `head` does, is not an error.
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

/// Bytes gathered before they are written.
const RECORDS_BYTES: usize = 1 << 18;

/// The standard output for records, byte for byte: no colours, and nobody looks for line ends in them. It must be flushed.
pub(crate) fn records() -> Result<BufWriter<File>, CliError> {
    let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    Ok(BufWriter::with_capacity(RECORDS_BYTES, file))
}

/// Writes `value` as one JSON object.
pub(crate) fn json(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<(), CliError> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

/// Says something on the standard error that is not error: `mayhap: warning: …`.
pub(crate) fn warn(what: impl std::fmt::Display) {
    // If it cannot be said there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "mayhap: warning: {what}");
}

/// Says on the standard error how it went: `mayhap: …`.
pub(crate) fn tell(what: impl std::fmt::Display) {
    // If it cannot be said there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "mayhap: {what}");
}

/// `Ok` for a pipe nobody reads any more.
pub(crate) fn unless_reader_left(written: io::Result<()>) -> Result<(), CliError> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Writes `text` broken into lines of at most `width` columns, the first after `first`, the others after as many spaces.
pub(crate) fn paragraph(out: &mut dyn Write, text: &str, first: &str, width: usize) -> io::Result<()> {
    let indent = " ".repeat(first.len());
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).iter().try_for_each(|line| writeln!(out, "{line}"))
}
