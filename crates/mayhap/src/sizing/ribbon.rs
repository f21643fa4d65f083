//! The bumped ribbon filter: the columns for a rate, and the rows for a number of items.
//!
//! A row is one bit in every column. A non-member agrees with a column by chance, once in two, so with `c` columns the rate is
//! `2^-c`. For rates between two powers of two, one part of the rows has `c` columns and the rest `c + 1`.

use super::MIN_RATE;
use crate::error::BuildError;

/// The number of rows that an item uses, and the rows of a block: the bits of a word.
pub const BLOCK_ROWS: u64 = 64;
/// Rows of a bucket. Each bucket stores in [`THRESHOLD_BITS`] which of the items that begin in it were bumped.
pub const BUCKET_ROWS: u64 = 128;
/// Bits of a threshold.
pub const THRESHOLD_BITS: u64 = 2;
/// The most layers, including the last one.
pub const MAX_LAYERS: usize = 6;
/// A layer of at most this many items is the last one: it bumps no items.
pub const LAST_LAYER_ITEMS: u64 = 1500;

/// One column, in the unit of column averages, which are exact to 2^-32 of a column.
pub const COLUMN: u64 = 1 << 32;
/// The most columns that any rate needs, if all rows are wide.
pub const MAX_COLUMNS: u64 = 52;

/// A layer gets this many items per 100 rows. The surplus is bumped, and nearly every row is used: with 100 items per 100
/// rows, one row in fifty would stay empty.
const ITEMS_PER_100_ROWS: u64 = 106;
/// The share of a layer's items that is bumped, measured at 106 items per 100 rows.
pub const BUMPED: f64 = 0.0575;

/// Items that share a 64-bit key add `n / 2^64` to the rate. Below this share of the rate it is ignored.
const NEGLIGIBLE: f64 = 1e-6;

/// The rate added by non-members that have the key of an item; 0 if it is negligible compared with `p`.
#[must_use]
pub fn shared_keys(n: u64, p: f64) -> f64 {
    let shared = n as f64 / 18_446_744_073_709_551_616.0;
    if shared < p * NEGLIGIBLE { 0.0 } else { shared }
}

/// The share of the rate to aim at if blocks differ in width. By chance, bumping removes a little more from one part of the rows
/// than from the other. That shifts the average of the two rates by about 0.5 / √n.
fn aim(n: u64) -> f64 {
    if n <= LAST_LAYER_ITEMS { 1.0 } else { 1.0 - 1.0 / (n as f64).sqrt() }
}

/// The columns that `n` items at rate `p` take on average, in units of [`COLUMN`].
///
/// With `c` columns, `2^-c > p > 2^-(c+1)`, a share `q` of the rows has one more, so that `(1-q)·2^-c + q·2^-(c+1) = p`.
/// The average is above `log2(1/p)` by at most 0.086 columns, and equal to it if `p` is a power of two.
///
/// # Errors
/// [`BuildError::RateTooLow`] if items that share their 64-bit key would take half of the rate or more.
pub fn columns(n: u64, p: f64) -> Result<u64, BuildError> {
    let shared = shared_keys(n, p);
    if shared > p / 2.0 {
        return Err(BuildError::RateTooLow { got: p, limit: (2.0 * shared).max(MIN_RATE) });
    }
    // Scaled up exactly, to a value between a half and 1.
    let (mut left, mut narrow) = (p - shared, 0);
    while left < 0.5 && narrow < MAX_COLUMNS - 2 {
        left *= 2.0;
        narrow += 1;
    }
    let aimed = left * aim(n);
    if aimed <= 0.5 {
        // All rows have the same width: this rate does not vary by chance.
        return Ok((narrow + 1) * COLUMN);
    }
    Ok(narrow * COLUMN + (2.0 * (1.0 - aimed) * COLUMN as f64).ceil() as u64)
}

/// The blocks of a layer that bumps items.
#[must_use]
pub const fn bumping_blocks(n: u64) -> u64 {
    let blocks = (n * 100).div_ceil(ITEMS_PER_100_ROWS * BLOCK_ROWS);
    if blocks == 0 { 1 } else { blocks }
}

/// The blocks of a last layer, in which every item must be placed, after `attempts` failures.
#[must_use]
pub const fn last_blocks(n: u64, attempts: u32) -> u64 {
    let blocks = (n + n / 48 + 2).div_ceil(BLOCK_ROWS);
    let grown = attempts as u64 / 4;
    blocks + grown * (1 + blocks / 16)
}

/// The 64-bit words of the thresholds of this many blocks.
#[must_use]
pub const fn threshold_words(blocks: u64) -> u64 {
    (blocks * BLOCK_ROWS).div_ceil(BUCKET_ROWS).div_ceil(64 / THRESHOLD_BITS)
}

/// The expected blocks of every layer for `n` items, first to last; zeroes after the last one.
#[must_use]
pub fn expected_blocks(n: u64) -> [u64; MAX_LAYERS] {
    let (mut blocks, mut left) = ([0; MAX_LAYERS], n);
    for (index, blocks) in blocks.iter_mut().enumerate() {
        if left <= LAST_LAYER_ITEMS || index == MAX_LAYERS - 1 {
            *blocks = if n == 0 { 0 } else { last_blocks(left, 0) };
            break;
        }
        *blocks = bumping_blocks(left);
        left = (left as f64 * BUMPED).ceil() as u64;
    }
    blocks
}

/// The number of `blocks` blocks without the extra column, if `starts` rows can be the first row of an item.
/// Limited so that the rate of the layer never exceeds the rate that `columns` stand for.
#[must_use]
pub fn narrow_blocks(blocks: u64, starts: u64, columns: u64) -> u64 {
    let share = COLUMN - columns % COLUMN;
    let allowed = ((u128::from(starts) * u128::from(share)) >> 32) as u64;
    if allowed >= starts { blocks } else { allowed / BLOCK_ROWS }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(columns: u64) -> f64 {
        let (narrow, share) = (columns / COLUMN, (columns % COLUMN) as f64 / COLUMN as f64);
        0.5_f64.powi(narrow as i32) * (1.0 - share / 2.0)
    }

    #[test]
    fn powers_of_two_take_whole_columns_and_other_rates_a_little_more_than_their_logarithm() {
        // From 25 on, items that share a key would matter among a million.
        for whole in 1..25 {
            assert_eq!(columns(1_000_000, 0.5_f64.powi(whole)), Ok(whole as u64 * COLUMN), "{whole}");
        }
        for n in [0, 1, 100, 5_000, 1_000_000, 100_000_000] {
            for step in 1..1_000 {
                let p = f64::from(step) / 1_000.0;
                let columns = columns(n, p).unwrap();
                let over = columns as f64 / COLUMN as f64 - (1.0 / p).log2();
                let luck = 2.9 * (1.0 - aim(n));
                assert!(rate(columns) <= p, "{n} {p}");
                assert!((-1e-9..0.0861 + luck).contains(&over), "{n} {p}: {over}");
            }
        }
    }

    #[test]
    fn rates_below_the_share_of_shared_keys_are_rejected() {
        assert_eq!(shared_keys(1 << 20, 0.01), 0.0);
        assert_eq!(shared_keys(1 << 40, 1e-6), 0.5_f64.powi(24));
        let columns_left = columns(1 << 40, 1e-6).unwrap();
        assert!(rate(columns_left) + shared_keys(1 << 40, 1e-6) <= 1e-6);
        assert!(matches!(columns(1 << 40, 1e-7), Err(BuildError::RateTooLow { .. })));
        assert!(columns(1_000, MIN_RATE).unwrap() < MAX_COLUMNS * COLUMN);
    }

    #[test]
    fn narrow_blocks_never_take_more_than_their_share_of_rows() {
        for blocks in 1..200 {
            let starts = blocks * BLOCK_ROWS - (BLOCK_ROWS - 1);
            assert_eq!(narrow_blocks(blocks, starts, 8 * COLUMN), blocks);
            for wide in [1, COLUMN / 3, COLUMN / 2, COLUMN - 1] {
                let narrow = narrow_blocks(blocks, starts, 6 * COLUMN + wide);
                let share = (narrow * BLOCK_ROWS) as f64 / starts as f64;
                assert!(share <= 1.0 - wide as f64 / COLUMN as f64, "{blocks} {wide}");
                assert!(narrow + 2 > ((1.0 - wide as f64 / COLUMN as f64) * blocks as f64) as u64);
            }
        }
    }

    #[test]
    fn layers_shrink_quickly_to_a_last_one() {
        assert_eq!(expected_blocks(0), [0; MAX_LAYERS]);
        assert_eq!(expected_blocks(1)[..2], [1, 0]);
        let million = expected_blocks(1_000_000);
        assert_eq!(million.iter().filter(|&&blocks| blocks > 0).count(), 4);
        assert!((million.iter().sum::<u64>() * BLOCK_ROWS) < 1_002_000, "{million:?}");
        let most = expected_blocks(super::super::MAX_CAPACITY);
        assert!(most.iter().all(|&blocks| blocks > 0));
        assert_eq!(threshold_words(1), 1);
        assert_eq!(threshold_words(64), 1);
        assert_eq!(threshold_words(65), 2);
    }
}
