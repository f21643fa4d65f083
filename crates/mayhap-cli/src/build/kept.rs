//! Keeps records until their number is known: in memory up to a limit, then in an unnamed temporary file.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use mayhap::{ItemHash, WellMixed};

use crate::error::CliError;
use crate::interrupt;

/// A record of fixed length.
pub(super) trait Record: Copy {
    /// The length of a record in bytes.
    const BYTES: usize;
    /// Appends the record to `bytes`.
    fn write(self, bytes: &mut Vec<u8>);
    /// Reads a record from its bytes.
    fn read(bytes: &[u8]) -> Self;
}

impl Record for ItemHash {
    const BYTES: usize = 16;

    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_u128().to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        let mut all = [0; Self::BYTES];
        all.copy_from_slice(bytes);
        WellMixed(u128::from_le_bytes(all)).into()
    }
}

impl Record for u64 {
    const BYTES: usize = 8;

    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        let mut all = [0; Self::BYTES];
        all.copy_from_slice(bytes);
        Self::from_le_bytes(all)
    }
}

/// Records in the order of the input.
#[derive(Debug)]
pub(super) struct RecordBatches<T> {
    /// The batches as they arrived, not copied.
    batches: Vec<Vec<T>>,
    len: u64,
    limit: u64,
    spill: Spill,
    /// Records in the file.
    spilled: u64,
}

impl<T: Record> RecordBatches<T> {
    /// An empty list with `limit_bytes` of memory, and then a file in `folder`.
    pub(super) fn new(limit_bytes: u64, folder: PathBuf) -> Self {
        let limit = limit_bytes / T::BYTES as u64;
        Self { batches: Vec::new(), len: 0, limit, spill: Spill::new(folder), spilled: 0 }
    }

    /// The number of records.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes in the file.
    pub(super) fn spilled_bytes(&self) -> u64 {
        self.spilled * T::BYTES as u64
    }

    /// Returns `true` if `more` records would go to the file.
    pub(super) fn is_full(&self, more: usize) -> bool {
        self.spilled > 0 || self.len + more as u64 > self.limit
    }

    /// Adds these records.
    pub(super) fn push(&mut self, batch: Vec<T>) -> Result<(), CliError> {
        let full = self.is_full(batch.len());
        self.len += batch.len() as u64;
        if full {
            self.spilled += batch.len() as u64;
            self.spill.append(&batch)
        } else {
            self.batches.push(batch);
            Ok(())
        }
    }

    /// Calls `each` with all records in the order of the input, in batches. May be called repeatedly.
    pub(super) fn for_each<E: From<CliError>>(
        &mut self,
        mut each: impl FnMut(&[T]) -> Result<(), E>,
    ) -> Result<(), E> {
        for batch in &self.batches {
            interrupt::check()?;
            each(batch)?;
        }
        let mut read = 0;
        let mut batch = Vec::new();
        while read < self.spilled {
            interrupt::check()?;
            self.spill.read_at(read, (self.spilled - read).min(BATCH), &mut batch)?;
            read += batch.len() as u64;
            each(&batch)?;
        }
        Ok(())
    }

    /// All records together, if they are in memory or fit there.
    pub(super) fn into_iter(mut self) -> Result<impl Iterator<Item = T>, CliError> {
        let mut from_file = Vec::new();
        if self.spilled > 0 {
            self.spill.read_at(0, self.spilled, &mut from_file)?;
        }
        Ok(self.batches.into_iter().flatten().chain(from_file))
    }
}

/// Records read from a file at a time.
pub(super) const BATCH: u64 = 1 << 16;

/// A file without a name, which disappears with the program, however the program ends. It is created when needed.
#[derive(Debug)]
pub(super) struct Spill {
    folder: PathBuf,
    file: Option<BufWriter<File>>,
    bytes: Vec<u8>,
}

impl Spill {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, file: None, bytes: Vec::new() }
    }

    fn cli_error(&self, cause: io::Error) -> CliError {
        let path = format!("a temporary file in {}", self.folder.display()).into();
        CliError::CannotWrite { path, cause }
    }

    /// Appends these records.
    pub(super) fn append<T: Record>(&mut self, records: &[T]) -> Result<(), CliError> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                let file = tempfile::tempfile_in(&self.folder).map_err(|cause| self.cli_error(cause))?;
                BufWriter::with_capacity(1 << 20, file)
            }
        };
        self.bytes.clear();
        records.iter().for_each(|record| record.write(&mut self.bytes));
        let written = file.write_all(&self.bytes);
        self.file = Some(file);
        written.map_err(|cause| self.cli_error(cause))
    }

    /// Reads `count` records, beginning with record `first`.
    pub(super) fn read_at<T: Record>(
        &mut self,
        first: u64,
        count: u64,
        records: &mut Vec<T>,
    ) -> Result<(), CliError> {
        records.clear();
        let Some(file) = &mut self.file else { return Ok(()) };
        self.bytes.resize(count as usize * T::BYTES, 0);
        let read = file
            .flush()
            .and_then(|()| file.get_mut().seek(SeekFrom::Start(first * T::BYTES as u64)))
            .and_then(|_| file.get_mut().read_exact(&mut self.bytes))
            .and_then(|()| file.get_mut().seek(SeekFrom::End(0)).map(drop));
        read.map_err(|cause| self.cli_error(cause))?;
        records.extend(self.bytes.chunks_exact(T::BYTES).map(T::read));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(kept: &mut RecordBatches<u64>) -> Vec<u64> {
        let mut all = Vec::new();
        kept.for_each(|batch| {
            all.extend_from_slice(batch);
            Ok::<(), CliError>(())
        })
        .unwrap();
        all
    }

    #[test]
    fn records_beyond_the_limit_go_to_a_file_and_keep_their_order() {
        for limit in [0, 8 * 100, 8 * 1000, 1 << 20] {
            let mut kept = RecordBatches::<u64>::new(limit, std::env::temp_dir());
            for first in (0..200_000).step_by(1_000) {
                kept.push((first..first + 1_000).collect()).unwrap();
            }
            let expected: Vec<u64> = (0..200_000).collect();
            assert_eq!(kept.len(), 200_000);
            assert_eq!(kept.spilled_bytes() == 0, limit >= 8 * 200_000, "{limit}");
            assert_eq!(all(&mut kept), expected);
            // Reads again, and after more records were added.
            kept.push(vec![7]).unwrap();
            assert_eq!(all(&mut kept).len(), 200_001);
            assert_eq!(kept.into_iter().unwrap().take(200_000).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn hashes_are_read_back_unchanged() {
        let hash = ItemHash::from_unmixed(7);
        let mut bytes = Vec::new();
        Record::write(hash, &mut bytes);
        assert_eq!(bytes.len(), ItemHash::BYTES);
        assert_eq!(<ItemHash as Record>::read(&bytes), hash);
    }
}
