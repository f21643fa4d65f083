//! `--suspects`: the lines that were dropped because of shortened fingerprints, so that a few of them may have been new.
//! The file is written completely or not at all.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::error::CliError;
use crate::whole_file::Sink;

/// The file, under a temporary name until it is complete.
#[derive(Debug)]
pub(super) struct Suspects {
    path: PathBuf,
    out: BufWriter<Sink>,
}

impl Suspects {
    pub(super) fn create(path: &Path) -> Result<Self, CliError> {
        let out = BufWriter::with_capacity(1 << 16, Sink::create(path)?);
        Ok(Self { path: path.to_owned(), out })
    }

    pub(super) fn add(&mut self, line: &[u8]) -> Result<(), CliError> {
        self.out.write_all(line).map_err(cannot_write(&self.path))
    }

    /// Moves the file to its real name.
    pub(super) fn finish(self) -> Result<(), CliError> {
        let out = self.out.into_inner();
        out.map_err(|error| cannot_write(&self.path)(error.into_error()))?.finish()
    }
}

fn cannot_write(path: &Path) -> impl Fn(std::io::Error) -> CliError {
    move |cause| CliError::CannotWrite { path: path.to_owned(), cause }
}
