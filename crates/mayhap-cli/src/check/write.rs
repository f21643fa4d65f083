//! Writes the selected records.

use std::fs::File;
use std::io::{BufWriter, Write};

use mayhap::BatchBits;

use super::ask::Answered;
use crate::error::CliError;
use crate::input::{Block, Terminator};
use crate::output;

/// The form in which records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// None.
    Nothing,
    /// The selected records as they are.
    Plain,
    /// The selected records, each after its line number.
    Numbered,
    /// All records, each after its answer.
    Annotated {
        /// And after its line number.
        numbers: bool,
    },
}

/// The answer before an annotated record.
fn tag(answered: &Answered, index: usize) -> &'static str {
    match &answered.unready {
        Some(unready) if unready.records.get(index) == Some(true) => "not-ready\t",
        _ if answered.maybe.get(index) == Some(true) => "mayhap\t",
        _ => "no\t",
    }
}

/// Writes to standard output.
#[derive(Debug)]
pub(super) struct Writer {
    out: BufWriter<File>,
    form: Form,
    terminator: Terminator,
    at_once: bool,
}

impl Writer {
    pub(super) fn new(form: Form, terminator: Terminator, at_once: bool) -> Result<Self, CliError> {
        Ok(Self { out: output::records()?, form, terminator, at_once })
    }

    /// Writes the first `asked` records of a block, with their answers; some of them are selected.
    pub(super) fn block(
        &mut self,
        block: &Block,
        answered: &Answered,
        selected: &BatchBits,
        asked: usize,
    ) -> Result<(), CliError> {
        match self.form {
            Form::Nothing => return Ok(()),
            Form::Plain => {
                for run in selected.runs() {
                    self.out.write_all(block.records(run))?;
                }
            }
            Form::Numbered => {
                for index in selected.iter_ones() {
                    write!(self.out, "{}:", block.line(index))?;
                    self.out.write_all(block.record(index))?;
                }
            }
            Form::Annotated { numbers } => {
                for index in 0..asked {
                    self.out.write_all(tag(answered, index).as_bytes())?;
                    if numbers {
                        write!(self.out, "{}:", block.line(index))?;
                    }
                    self.out.write_all(block.record(index))?;
                }
            }
        }
        // While the input pauses, the answers so far are flushed for the reader.
        if self.at_once || block.pause_follows() {
            self.out.flush()?;
        }
        Ok(())
    }

    /// Writes the CSV header, before records that are written as they are.
    pub(super) fn header(&mut self, header: &[u8]) -> Result<(), CliError> {
        if self.form == Form::Plain {
            self.out.write_all(header)?;
        }
        Ok(())
    }

    /// Writes an item given with `--item`, the `number`th.
    pub(super) fn item(
        &mut self,
        item: &[u8],
        answered: &Answered,
        selected: bool,
        number: u64,
    ) -> Result<(), CliError> {
        let numbers = match self.form {
            Form::Nothing => return Ok(()),
            Form::Plain | Form::Numbered if !selected => return Ok(()),
            Form::Plain => false,
            Form::Numbered => true,
            Form::Annotated { numbers } => {
                self.out.write_all(tag(answered, 0).as_bytes())?;
                numbers
            }
        };
        if numbers {
            write!(self.out, "{number}:")?;
        }
        self.out.write_all(item)?;
        Ok(self.out.write_all(self.terminator.bytes())?)
    }

    pub(super) fn flush(&mut self) -> Result<(), CliError> {
        Ok(self.out.flush()?)
    }
}
