//! The distinct hashes of the input, each once, for filters that store every copy.
//!
//! Hashes are sorted in memory. If they do not fit, sorted runs go to a file, and are merged when they are read back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use mayhap::ItemHash;

use super::kept::{BATCH, Record, Spill};
use crate::error::CliError;
use crate::interrupt;

/// Distinct hashes, in ascending order.
#[derive(Debug)]
pub(super) struct Distinct {
    memory: Vec<ItemHash>,
    /// The number of hashes in memory that are sorted and distinct.
    sorted: usize,
    limit: usize,
    spill: Spill,
    runs: Vec<Run>,
}

/// A sorted part of the file.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u64,
    end: u64,
}

impl Distinct {
    /// An empty set with `limit_bytes` of memory, and then a file in `folder`.
    pub(super) fn new(limit_bytes: u64, folder: PathBuf) -> Self {
        let limit = (limit_bytes as usize / ItemHash::BYTES).max(1);
        Self { memory: Vec::new(), sorted: 0, limit, spill: Spill::new(folder), runs: Vec::new() }
    }

    /// Bytes in the file.
    pub(super) fn spilled_bytes(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.end * ItemHash::BYTES as u64)
    }

    /// Adds these hashes.
    pub(super) fn push(&mut self, batch: &[ItemHash]) -> Result<(), CliError> {
        if self.memory.is_empty() && batch.len() < self.limit {
            // Reserves everything in one step, because growing would take twice as much for a moment. Unused memory
            // costs nothing. If the system has less, it fails later, when the memory is used.
            let _ = self.memory.try_reserve_exact(self.limit + batch.len());
        }
        self.memory.extend_from_slice(batch);
        if self.memory.len() <= self.limit {
            return Ok(());
        }
        self.sort();
        // If most hashes were duplicates, there is room again. Otherwise the next sort would come too soon.
        if self.memory.len() > self.limit / 2 {
            self.spill_memory()?;
        }
        Ok(())
    }

    fn sort(&mut self) {
        if self.sorted < self.memory.len() {
            self.memory.sort_unstable();
            self.memory.dedup();
            self.sorted = self.memory.len();
        }
    }

    fn spill_memory(&mut self) -> Result<(), CliError> {
        let first = self.runs.last().map_or(0, |run| run.end);
        for batch in self.memory.chunks(BATCH as usize) {
            self.spill.append(batch)?;
        }
        self.runs.push(Run { first, end: first + self.memory.len() as u64 });
        self.memory.clear();
        self.sorted = 0;
        Ok(())
    }

    /// The exact number of distinct hashes.
    pub(super) fn count(&mut self) -> Result<u64, CliError> {
        let mut count = 0;
        self.for_each(|batch| {
            count += batch.len() as u64;
            Ok::<(), CliError>(())
        })?;
        Ok(count)
    }

    /// Calls `each` with all hashes in ascending order, in batches. May be called repeatedly.
    pub(super) fn for_each<E: From<CliError>>(
        &mut self,
        mut each: impl FnMut(&[ItemHash]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sort();
        if self.runs.is_empty() {
            for batch in self.memory.chunks(BATCH as usize) {
                interrupt::check()?;
                each(batch)?;
            }
            return Ok(());
        }
        let mut readers: Vec<Reader> = self.runs.iter().map(|&run| Reader::new(run)).collect();
        let mut in_memory = self.memory.iter().copied();
        let own = readers.len();
        let mut heads = BinaryHeap::new();
        for (index, reader) in readers.iter_mut().enumerate() {
            heads.extend(reader.next(&mut self.spill)?.map(|hash| Reverse((hash, index))));
        }
        heads.extend(in_memory.next().map(|hash| Reverse((hash, own))));
        let mut batch: Vec<ItemHash> = Vec::with_capacity(BATCH as usize);
        let mut last = None;
        while let Some(Reverse((hash, index))) = heads.pop() {
            if last != Some(hash) {
                last = Some(hash);
                batch.push(hash);
            }
            let next = match readers.get_mut(index) {
                Some(reader) => reader.next(&mut self.spill)?,
                None => in_memory.next(),
            };
            heads.extend(next.map(|hash| Reverse((hash, index))));
            if batch.len() == BATCH as usize {
                interrupt::check()?;
                each(&batch)?;
                batch.clear();
            }
        }
        each(&batch)
    }
}

/// Reads one run.
struct Reader {
    run: Run,
    ahead: Vec<ItemHash>,
    taken: usize,
}

impl Reader {
    fn new(run: Run) -> Self {
        Self { run, ahead: Vec::new(), taken: 0 }
    }

    fn next(&mut self, spill: &mut Spill) -> Result<Option<ItemHash>, CliError> {
        if self.taken == self.ahead.len() {
            let count = (self.run.end - self.run.first).min(BATCH);
            spill.read_at(self.run.first, count, &mut self.ahead)?;
            self.run.first += count;
            self.taken = 0;
        }
        let next = self.ahead.get(self.taken).copied();
        self.taken += 1;
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_comes_once_and_in_order_for_any_memory_limit() {
        let hash = ItemHash::from_unmixed;
        let mut expected: Vec<ItemHash> = (0..30_000).map(hash).collect();
        expected.sort_unstable();
        for limit in [0, 100 * 16, 9_999 * 16, 1 << 20, 1 << 24] {
            let mut distinct = Distinct::new(limit, std::env::temp_dir());
            for first in (0..30_000).step_by(500) {
                let batch: Vec<_> =
                    (first..first + 500).flat_map(|item| [hash(item), hash(item / 3)]).collect();
                distinct.push(&batch).unwrap();
            }
            assert_eq!(distinct.spilled_bytes() == 0, limit >= 1 << 20, "{limit}");
            assert_eq!(distinct.count().unwrap(), 30_000);
            let mut all = Vec::new();
            distinct
                .for_each(|batch| {
                    all.extend_from_slice(batch);
                    Ok::<(), CliError>(())
                })
                .unwrap();
            assert_eq!(all, expected, "{limit}");
        }
    }

    #[test]
    fn many_duplicates_stay_in_memory() {
        let mut distinct = Distinct::new(1_000 * 16, std::env::temp_dir());
        for _ in 0..1_000 {
            distinct.push(&(0..100).map(ItemHash::from_unmixed).collect::<Vec<_>>()).unwrap();
        }
        assert_eq!((distinct.spilled_bytes(), distinct.count().unwrap()), (0, 100));
    }
}
