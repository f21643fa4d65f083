//! Writing the records that were selected.

use std::fs::File;
use std::io::{BufWriter, Write};

use super::ask::Answered;
use super::selection::Selection;
use crate::error::CliError;
use crate::input::{Block, Terminator};
use crate::output;

/// What is written of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// None.
    Nothing,
    /// Those that were selected, as they are.
    Plain,
    /// Those that were selected, with the number of their line.
    Numbered,
    /// All of them, behind their answer.
    Annotated {
        /// And the number of their line.
        numbers: bool,
    },
}

/// The answer in front of an annotated record.
fn tag(answered: &Answered, index: usize) -> &'static str {
    match &answered.unready {
        Some(unready) if unready.records.contains(index) => "not-ready\t",
        _ if answered.mayhaps.contains(index) => "mayhap\t",
        _ => "no\t",
    }
}

/// Writes to the standard output.
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

    /// The first `asked` records of a block, with their answers, some of them selected.
    pub(super) fn block(
        &mut self,
        block: &Block,
        answered: &Answered,
        selected: &Selection,
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
                for index in selected.runs().flatten() {
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
        // Whoever waits for the answers sees them while the input pauses.
        if self.at_once || block.pause_follows() {
            self.out.flush()?;
        }
        Ok(())
    }

    /// The header of CSV, which comes before records that are written as they are.
    pub(super) fn header(&mut self, header: &[u8]) -> Result<(), CliError> {
        if self.form == Form::Plain {
            self.out.write_all(header)?;
        }
        Ok(())
    }

    /// An item that came by itself, the `number`th.
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
