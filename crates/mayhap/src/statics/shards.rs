//! Keys in shards: sorted by their top bits in place, and processed in parallel.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::BuildError;

/// Reorders `keys` in place by `part_of`, a number below `parts`, and returns the range of each part.
pub(crate) fn partition(keys: &mut [u64], parts: usize, part_of: impl Fn(u64) -> usize) -> Vec<Range<usize>> {
    let mut ranges = vec![0..0; parts];
    if let [only] = &mut ranges[..] {
        *only = 0..keys.len();
        return ranges;
    }
    for &key in keys.iter() {
        ranges[part_of(key)].end += 1;
    }
    let mut start = 0;
    for range in &mut ranges {
        *range = start..start + range.end;
        start = range.end;
    }
    // All keys before `next[part]` are in their place. Each swap brings one key to its place.
    let mut next: Vec<usize> = ranges.iter().map(|range| range.start).collect();
    for part in 0..parts {
        while next[part] < ranges[part].end {
            let home = part_of(keys[next[part]]);
            if home != part {
                keys.swap(next[part], next[home]);
            }
            next[home] += 1;
        }
    }
    ranges
}

/// [`partition`] into `2^bits` shards: one thread sorts roughly first, then several threads sort the rough
/// parts.
pub(crate) fn partition_into_shards(
    keys: &mut [u64],
    bits: u32,
    threads: usize,
) -> Result<Vec<Range<usize>>, BuildError> {
    let rough_bits = bits.min(threads.next_power_of_two().trailing_zeros());
    let rough = partition(keys, 1 << rough_bits, |key| shard_of(key, rough_bits));
    let parts = 1_usize << (bits - rough_bits);
    let mut ranges = vec![0..0; rough.len() * parts];
    let mut rest = keys;
    let slices = rough.iter().map(|part| rest.split_off_mut(..part.len()).unwrap_or_default());
    let jobs: Vec<_> = slices.zip(ranges.chunks_mut(parts)).collect();
    side_by_side(
        threads,
        jobs.into_iter(),
        || Ok(()),
        |(), (slice, ranges)| {
            ranges.clone_from_slice(&partition(slice, parts, |key| shard_of(key, bits) % parts));
            Ok(true)
        },
    )?;
    for (start, ranges) in rough.iter().map(|part| part.start).zip(ranges.chunks_mut(parts)) {
        ranges.iter_mut().for_each(|range| *range = range.start + start..range.end + start);
    }
    Ok(ranges)
}

/// Returns the shard of `key` among `2^bits`: its top bits, of which there may be none.
#[inline(always)]
pub(crate) fn shard_of(key: u64, bits: u32) -> usize {
    ((key >> 1) >> (63 - bits)) as usize
}

/// Runs `work` for every job, on up to `threads` threads, each with a bench made by `bench`. If one job
/// returns `Ok(false)` or an error, the running jobs finish, no others start, and that is the result.
pub(crate) fn side_by_side<J: Send, B>(
    threads: usize,
    jobs: impl Iterator<Item = J> + Send,
    bench: impl Fn() -> Result<B, BuildError> + Sync,
    work: impl Fn(&mut B, J) -> Result<bool, BuildError> + Sync,
) -> Result<bool, BuildError> {
    let jobs = Mutex::new(jobs);
    let (stop, refusal) = (AtomicBool::new(false), Mutex::new(None));
    let run = || {
        let mut bench = bench();
        while !stop.load(Ordering::Relaxed) {
            // A poisoned lock means that another thread panicked; the scope passes that on.
            let Some(job) = jobs.lock().ok().and_then(|mut jobs| jobs.next()) else { return };
            let done = bench.as_mut().map_err(|error| error.clone()).and_then(|bench| work(bench, job));
            if done != Ok(true) {
                stop.store(true, Ordering::Relaxed);
            }
            if let (Err(error), Ok(mut refusal)) = (done, refusal.lock()) {
                refusal.get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If the system refuses more threads, this one does the work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    match refusal.into_inner().ok().flatten() {
        Some(error) => Err(error),
        None => Ok(!stop.into_inner()),
    }
}

/// Removes duplicates from `keys`, part by part. Every part is sorted afterwards, and all parts move to the
/// front.
pub(crate) fn dedup_parts(
    keys: &mut Vec<u64>,
    parts: &[Range<usize>],
    threads: usize,
) -> Result<Vec<Range<usize>>, BuildError> {
    let mut rest = &mut keys[..];
    let slices = parts.iter().map(|part| rest.split_off_mut(..part.len()).unwrap_or_default());
    let slices: Vec<&mut [u64]> = slices.collect();
    side_by_side(
        threads,
        slices.into_iter(),
        || Ok(()),
        |(), slice| {
            slice.sort_unstable();
            Ok(true)
        },
    )?;
    let (mut kept, mut last) = (0, None);
    let mut moved = Vec::with_capacity(parts.len());
    for part in parts {
        let start = kept;
        for index in part.clone() {
            if last != Some(keys[index]) {
                last = Some(keys[index]);
                keys[kept] = keys[index];
                kept += 1;
            }
        }
        moved.push(start..kept);
    }
    keys.truncate(kept);
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::ItemHash;

    fn keys(count: u64) -> Vec<u64> {
        (0..count).map(|i| ItemHash::from_unmixed(i * i % 997).low).collect()
    }

    #[test]
    fn parts_are_in_order_and_nothing_is_lost() {
        for (count, bits) in [(0, 3), (1, 1), (1_000, 4), (5_000, 0), (5_000, 9)] {
            let mut sorted = keys(count);
            let mut partitioned = sorted.clone();
            let part_of = |key: u64| ((key >> 1) >> (63 - bits)) as usize;
            let parts = partition(&mut partitioned, 1 << bits, part_of);
            assert_eq!(parts.len(), 1 << bits);
            for (number, part) in parts.iter().enumerate() {
                assert!(partitioned[part.clone()].iter().all(|&key| part_of(key) == number));
            }
            let parts = dedup_parts(&mut partitioned, &parts, 3).unwrap();
            assert_eq!(parts.last().unwrap().end, partitioned.len());
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(partitioned, sorted);
        }
    }

    #[test]
    fn every_job_is_done_once_and_failures_are_told() {
        for threads in [1, 2, 5] {
            let done: Vec<AtomicBool> = (0..100).map(|_| AtomicBool::new(false)).collect();
            let work = |_: &mut (), job: usize| Ok(!done[job].swap(true, Ordering::Relaxed));
            assert_eq!(side_by_side(threads, 0..100, || Ok(()), work), Ok(true));
            assert!(done.iter().all(|done| done.load(Ordering::Relaxed)));
            assert_eq!(side_by_side(threads, 0..100, || Ok(()), |(), job| Ok(job != 40)), Ok(false));
            let refused = BuildError::OutOfMemory { bytes: 7 };
            let work = |_: &mut (), job| if job == 40 { Err(refused.clone()) } else { Ok(true) };
            assert_eq!(side_by_side(threads, 0..100, || Ok(()), work), Err(refused.clone()));
        }
    }
}
