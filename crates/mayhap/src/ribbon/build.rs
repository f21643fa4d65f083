//! From keys to layers.
//!
//! Sorted keys are also sorted by their first row, so the items of a bucket are adjacent. A layer is built
//! stretch by stretch, the last one first, so only the equations of one stretch are in memory. In a stretch,
//! buckets go from left to right and the items of a bucket from right to left. Items that reach into the next
//! bucket are inserted while there is room. The items that find none are at the beginning of the bucket,
//! where the previous bucket reaches in. They are bumped.

use super::band::{Band, Inserted};
use super::layout::{
    RibbonLayer, RibbonLayout, RibbonPlace, THRESHOLDS, coefficients, fingerprint, next_key, rekeyed,
};
use crate::error::BuildError;
use crate::simd::ribbon::{Equation, solve_block};
use crate::sizing::ribbon::{
    BLOCK_ROWS, BUCKET_ROWS, COLUMN, LAST_LAYER_ITEMS, MAX_LAYERS, bumping_blocks, expected_blocks,
    last_blocks,
};
use crate::store::{Lines, WORDS_PER_LINE};

/// Rows whose equations are in memory together: 4 MiB. About a hundred rows are wasted at the end of a
/// stretch.
const STRETCH_ROWS: u64 = 1 << 18;
/// Attempts at the last layer. It fails for one filter in twenty, and gets more rows after every fourth
/// attempt.
pub(super) const MAX_ATTEMPTS: u32 = 64;

/// Builds the layers of `keys`, which are sorted and distinct.
pub(super) fn build(mut keys: Vec<u64>, columns: u64) -> Result<(RibbonLayout, Lines), BuildError> {
    let mut layout = RibbonLayout::empty(columns);
    let mut lines = Lines::zeroed(0)?;
    if keys.is_empty() {
        return Ok((layout, lines));
    }
    let items = keys.len() as u64;
    let room = RibbonLayout::of(columns, expected_blocks(items), 0).map_or(0, |layout| layout.words());
    let room = lines_for(room + room / 512);
    let mut band = Band::new(STRETCH_ROWS.min(items + BLOCK_ROWS), columns.div_ceil(COLUMN))?;
    while keys.len() as u64 > LAST_LAYER_ITEMS && layout.layers().len() < MAX_LAYERS - 1 {
        let layer = layout.push(bumping_blocks(keys.len() as u64), RibbonPlace::Before)?;
        lines.grow(lines_for(layout.words()), room)?;
        let words = &mut lines.words_mut()[layer.word as usize..layer.end as usize];
        let mut bumped = place(&layer, &keys, &mut band, words)?;
        bumped.sort_unstable();
        keys = bumped;
    }
    drop(band);
    let mut last = keys.clone();
    for attempt in 0..MAX_ATTEMPTS {
        if attempt > 0 {
            for (last, &key) in last.iter_mut().zip(&keys) {
                *last = rekeyed(key, u64::from(attempt));
            }
            last.sort_unstable();
        }
        let mut tried = layout;
        tried.attempt = attempt;
        let layer = tried.push(last_blocks(keys.len() as u64, attempt), RibbonPlace::Last)?;
        let mut band = Band::new(layer.blocks * BLOCK_ROWS, columns.div_ceil(COLUMN))?;
        band.reset(layer.blocks * BLOCK_ROWS);
        let contradiction = last.iter().rev().any(|&key| {
            let equation = Equation { coefficients: coefficients(key), value: fingerprint(key) };
            band.insert(layer.start(key), equation) == Inserted::Contradiction
        });
        if !contradiction {
            lines.grow(lines_for(tried.words()), 0)?;
            solve(&layer, &band, 0, &mut lines.words_mut()[layer.word as usize..layer.end as usize]);
            return Ok((tried, lines));
        }
    }
    Err(BuildError::Unsolvable { attempts: MAX_ATTEMPTS, items })
}

fn lines_for(words: u64) -> usize {
    usize::try_from(words.div_ceil(WORDS_PER_LINE as u64)).unwrap_or(usize::MAX)
}

/// Fills the words of a layer that bumps. Returns the keys of the bumped items in the next layer.
fn place(
    layer: &RibbonLayer,
    keys: &[u64],
    band: &mut Band,
    words: &mut [u64],
) -> Result<Vec<u64>, BuildError> {
    let rows = layer.blocks * BLOCK_ROWS;
    let (mut bumped, mut placed, mut left) = (Vec::new(), Vec::new(), keys);
    for stretch in (0..rows.div_ceil(STRETCH_ROWS)).rev() {
        let first = stretch * STRETCH_ROWS;
        let end = rows.min(first + STRETCH_ROWS);
        let (before, mut here) = left.split_at(left.partition_point(|&key| layer.start(key) < first));
        left = before;
        band.reset(end - first);
        let mut bucket = first;
        while bucket < end {
            let bucket_end = end.min(bucket + BUCKET_ROWS);
            let count = here.iter().take_while(|&&key| layer.start(key) < bucket_end).count();
            let (items, rest) = here.split_at(count);
            here = rest;
            placed.clear();
            let code = place_bucket(layer, items, band, first, bucket, words, &mut placed);
            let (word, shift) = layer.threshold(bucket);
            words[(word - layer.word) as usize] |= (code as u64) << shift;
            let turned_away = &items[..items.len() - placed.len()];
            bumped
                .try_reserve(turned_away.len())
                .map_err(|_| BuildError::OutOfMemory { bytes: 8 * keys.len() as u64 })?;
            bumped.extend(turned_away.iter().map(|&key| next_key(key)));
            bucket = bucket_end;
        }
        solve(layer, band, first / BLOCK_ROWS, words);
    }
    Ok(bumped)
}

/// Inserts the items of a bucket, starting with the last one, and returns the threshold they need. `placed`
/// receives the items that stay: their row and the place of their equation.
fn place_bucket(
    layer: &RibbonLayer,
    items: &[u64],
    band: &mut Band,
    first: u64,
    bucket: u64,
    words: &[u64],
    placed: &mut Vec<(u64, Inserted)>,
) -> usize {
    let end = first + band.rows();
    for &key in items.iter().rev() {
        let start = layer.start(key);
        let mut equation = Equation { coefficients: coefficients(key), value: fingerprint(key) };
        if start + BLOCK_ROWS > end {
            fold_known(layer, end, start + BLOCK_ROWS - end, words, &mut equation);
        }
        let inserted = band.insert(start - first, equation);
        if inserted != Inserted::Contradiction {
            placed.push((start - bucket, inserted));
            continue;
        }
        let code = THRESHOLDS.iter().take_while(|&&threshold| u64::from(threshold) <= start - bucket).count();
        let threshold = u64::from(THRESHOLDS[code]);
        while let Some((_, inserted)) = placed.pop_if(|(row, _)| *row < threshold) {
            if let Inserted::At(row) = inserted {
                band.remove(row);
            }
        }
        return code;
    }
    0
}

/// Folds the last `beyond` coefficients into the value. They belong to rows from `end` on, which are already
/// solved.
fn fold_known(layer: &RibbonLayer, end: u64, beyond: u64, words: &[u64], equation: &mut Equation) {
    let known = equation.coefficients >> (BLOCK_ROWS - beyond);
    equation.coefficients &= u64::MAX >> beyond;
    let block = end / BLOCK_ROWS;
    let at = (layer.word_of(block) - layer.word) as usize;
    for (column, word) in words[at..at + layer.columns_of(block) as usize].iter().enumerate() {
        equation.value ^= u64::from((word & known).count_ones() & 1) << column;
    }
}

/// Solves a stretch that begins with block `first` into the words of its layer. The rows after it are already
/// solved.
fn solve(layer: &RibbonLayer, band: &Band, first: u64, words: &mut [u64]) {
    let nothing = [0; 64];
    for (block, equations) in band.blocks() {
        let block = first + block;
        let (from, to) = (layer.word_of(block) - layer.word, layer.word_of(block + 1) - layer.word);
        let (before, after) = words.split_at_mut(to as usize);
        let next = if block + 1 == layer.blocks { &nothing[..] } else { &*after };
        solve_block(equations, next, &mut before[from as usize..]);
    }
}
