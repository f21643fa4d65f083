//! Several parities at once, for the ribbon filter.
//!
//! Lookups compute those of eight columns at once with AVX2. Solving goes row by row, so it computes them one
//! by one: its fast twin is the same code, compiled with the instruction that counts bits, which makes a
//! parity one operation instead of seven.

use std::sync::atomic::AtomicU64;

/// One equation: in every column, the parity of the bits selected by `coefficients` must equal that column's
/// bit of `value`. The lowest coefficient is the equation's own row. All zero: there is no equation for this
/// row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Equation {
    pub(crate) coefficients: u64,
    pub(crate) value: u64,
}

/// The condition for one item: 64 rows across two neighbouring blocks, and the parity that every column
/// should have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probe {
    /// The first word of the block in which the rows begin.
    pub(crate) word: usize,
    /// The first word of the block in which they end.
    pub(crate) next_word: usize,
    pub(crate) columns: usize,
    /// The coefficients in the first block.
    pub(crate) coefficients: u64,
    /// The coefficients in the next block.
    pub(crate) next_coefficients: u64,
    /// Column `c` should have the parity of bit `c`.
    pub(crate) fingerprint: u64,
}

/// Returns whether every column has the parity that the item requires.
///
/// # Panics
/// If a block is not in `words`.
#[inline(always)]
pub(crate) fn agrees(words: &[AtomicU64], probe: &Probe) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function requires only AVX2, checked on the line above.
        return unsafe { avx2::agrees(words, probe) };
    }
    plain::agrees(words, probe)
}

/// [`agrees`] for up to 64 items: bit `i` of the result is the answer for item `i`.
#[inline(always)]
pub(crate) fn agrees_chunk(words: &[AtomicU64], probes: &[Probe]) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function requires only AVX2, checked on the line above.
        return unsafe { avx2::agrees_chunk(words, probes) };
    }
    plain::agrees_chunk(words, probes)
}

/// Solves the 64 equations of a block, the last row first: column by column into the words of `block`, whose
/// rows continue in `next`. Rows without an equation become zero.
///
/// # Panics
/// If `next` has fewer columns than `block`.
pub(crate) fn solve_block(equations: &[Equation; 64], next: &[u64], block: &mut [u64]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("popcnt") {
        // SAFETY: the function requires only the instruction checked on the line above.
        return unsafe { counting::solve_block(equations, next, block) };
    }
    plain::solve_block(equations, next, block);
}

mod plain {
    use std::sync::atomic::Ordering;

    use super::*;

    #[inline(always)]
    pub(super) fn agrees(words: &[AtomicU64], probe: &Probe) -> bool {
        /// A non-member rarely agrees with this many columns; there is a branch before reading more.
        const GROUP: usize = 8;
        let block = &words[probe.word..probe.word + probe.columns];
        let next = &words[probe.next_word..probe.next_word + probe.columns];
        let mut fingerprint = probe.fingerprint;
        for (block, next) in block.chunks(GROUP).zip(next.chunks(GROUP)) {
            let mut wrong = 0;
            for (column, (block, next)) in block.iter().zip(next).enumerate() {
                let rows = (block.load(Ordering::Relaxed) & probe.coefficients)
                    ^ (next.load(Ordering::Relaxed) & probe.next_coefficients);
                wrong |= u64::from(rows.count_ones()) ^ (fingerprint >> column);
            }
            if wrong & 1 != 0 {
                return false;
            }
            fingerprint >>= GROUP;
        }
        true
    }

    #[inline(always)]
    pub(super) fn agrees_chunk(words: &[AtomicU64], probes: &[Probe]) -> u64 {
        let mut answers = 0;
        for (index, probe) in probes.iter().enumerate().take(64) {
            answers |= u64::from(agrees(words, probe)) << index;
        }
        answers
    }

    #[inline(always)]
    pub(super) fn solve_block(equations: &[Equation; 64], next: &[u64], block: &mut [u64]) {
        /// The number of columns solved at once: their chains of dependent operations run in parallel, and
        /// their words stay in registers.
        const GROUP: usize = 4;
        let next = &next[..block.len()];
        let (groups, rest) = block.as_chunks_mut::<GROUP>();
        let (next_groups, next_rest) = next.as_chunks::<GROUP>();
        let mut first = 0;
        for (block, next) in groups.iter_mut().zip(next_groups) {
            *block = solve_columns(equations, *next, first);
            first += GROUP as u32;
        }
        match (rest, next_rest) {
            ([a, b, c], &[x, y, z]) => [*a, *b, *c] = solve_columns(equations, [x, y, z], first),
            ([a, b], &[x, y]) => [*a, *b] = solve_columns(equations, [x, y], first),
            ([a], &[x]) => [*a] = solve_columns(equations, [x], first),
            _ => {}
        }
    }

    /// Returns the words of `N` columns, starting with column `first`. At the start `rows` holds the rows
    /// after the block. It is shifted up by one bit for every solved row, so that it always holds the 64 rows
    /// after the current one.
    #[inline(always)]
    fn solve_columns<const N: usize>(equations: &[Equation; 64], mut rows: [u64; N], first: u32) -> [u64; N] {
        for equation in equations.iter().rev() {
            let later = equation.coefficients >> 1;
            let value = equation.value >> first;
            for (column, rows) in rows.iter_mut().enumerate() {
                let parity = u64::from((*rows & later).count_ones()) ^ (value >> column);
                *rows = *rows << 1 | (parity & 1);
            }
        }
        rows
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod counting {
    use super::*;

    #[target_feature(enable = "popcnt")]
    pub(super) fn solve_block(equations: &[Equation; 64], next: &[u64], block: &mut [u64]) {
        plain::solve_block(equations, next, block);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2 {
    use std::arch::x86_64::*;

    use super::*;

    /// The number of columns whose parities are computed at once.
    const GROUP: usize = 8;

    /// Eight columns at a time, regardless of their number: a group may include words after a block, and
    /// their results are masked out. At the end of the words, where no words follow, the plain twin answers.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn agrees(words: &[AtomicU64], probe: &Probe) -> bool {
        let groups = probe.columns.div_ceil(GROUP);
        let end = probe.word.max(probe.next_word) + groups * GROUP;
        if end > words.len() {
            return plain::agrees(words, probe);
        }
        let mut fingerprint = probe.fingerprint;
        for group in 0..groups {
            let at = group * GROUP;
            // SAFETY: `at + GROUP` is at most `groups * GROUP`, and `words` has this many words from the
            // start of both blocks.
            let parities = unsafe {
                let block = words.as_ptr().add(probe.word + at);
                let next = words.as_ptr().add(probe.next_word + at);
                parities(block.cast(), next.cast(), probe.coefficients, probe.next_coefficients)
            };
            let columns = (probe.columns - at).min(GROUP);
            if (parities ^ fingerprint) << (64 - columns) != 0 {
                return false;
            }
            fingerprint >>= GROUP;
        }
        true
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn agrees_chunk(words: &[AtomicU64], probes: &[Probe]) -> u64 {
        let mut answers = 0;
        for (index, probe) in probes.iter().enumerate().take(64) {
            answers |= u64::from(agrees(words, probe)) << index;
        }
        answers
    }

    /// Returns the parities of eight columns, one bit each.
    ///
    /// # Safety
    /// There must be eight readable words at `block` and at `next`, which no thread writes meanwhile.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn parities(block: *const u64, next: *const u64, mask: u64, next_mask: u64) -> u64 {
        let (mask, next_mask) = (_mm256_set1_epi64x(mask as i64), _mm256_set1_epi64x(next_mask as i64));
        let rows = |four: usize| {
            // SAFETY: the caller guarantees eight words at both; `four` is 0 or 4.
            let (block, next) = unsafe {
                (_mm256_loadu_si256(block.add(four).cast()), _mm256_loadu_si256(next.add(four).cast()))
            };
            _mm256_castsi256_ps(_mm256_xor_si256(
                _mm256_and_si256(block, mask),
                _mm256_and_si256(next, next_mask),
            ))
        };
        let (low, high) = (rows(0), rows(4));
        // Xors the halves of each word: eight lanes of 32 bits, in the order of columns 0 1 4 5 2 3 6 7.
        let mut lanes = _mm256_castps_si256(_mm256_xor_ps(
            _mm256_shuffle_ps::<0b10_00_10_00>(low, high),
            _mm256_shuffle_ps::<0b11_01_11_01>(low, high),
        ));
        // Continues until the highest bit is the parity of the whole lane.
        lanes = _mm256_xor_si256(lanes, _mm256_slli_epi32::<16>(lanes));
        lanes = _mm256_xor_si256(lanes, _mm256_slli_epi32::<8>(lanes));
        lanes = _mm256_xor_si256(lanes, _mm256_slli_epi32::<4>(lanes));
        lanes = _mm256_xor_si256(lanes, _mm256_slli_epi32::<2>(lanes));
        lanes = _mm256_xor_si256(lanes, _mm256_slli_epi32::<1>(lanes));
        let bits = _mm256_movemask_ps(_mm256_castsi256_ps(lanes)) as u64;
        bits & 0b1100_0011 | (bits & 0b0000_1100) << 2 | (bits & 0b0011_0000) >> 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of well mixed words.
    fn words(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed;
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ mixed >> 29
        }
    }

    #[test]
    fn a_solved_block_keeps_every_equation_with_and_without_the_instruction() {
        let mut word = words(1);
        for columns in 0..=52 {
            let mut equations = [Equation::default(); 64];
            for (row, equation) in equations.iter_mut().enumerate() {
                if row % 7 != 3 {
                    *equation = Equation { coefficients: word() | 1, value: word() };
                }
            }
            let next: Vec<u64> = (0..columns).map(|_| word()).collect();
            let (mut block, mut plain) = (vec![0; columns], vec![0; columns]);
            solve_block(&equations, &next, &mut block);
            plain::solve_block(&equations, &next, &mut plain);
            assert_eq!(block, plain);
            let atomics: Vec<AtomicU64> = block.iter().chain(&next).copied().map(AtomicU64::new).collect();
            let mut probes = Vec::new();
            for (row, equation) in equations.iter().enumerate() {
                let next_coefficients = if row == 0 { 0 } else { equation.coefficients >> (64 - row) };
                let mut probe = Probe {
                    word: 0,
                    next_word: columns,
                    columns,
                    coefficients: equation.coefficients << row,
                    next_coefficients,
                    fingerprint: equation.value,
                };
                assert!(agrees(&atomics, &probe), "{columns} columns, row {row}");
                if row % 2 == 1 && columns > 0 {
                    // One wrong bit in one column is detected.
                    probe.fingerprint ^= 1 << (row % columns);
                    assert!(!agrees(&atomics, &probe), "{columns} columns, row {row}");
                }
                assert_eq!(agrees(&atomics, &probe), plain::agrees(&atomics, &probe));
                probes.push(probe);
            }
            let expected = if columns == 0 { u64::MAX } else { 0x5555_5555_5555_5555 };
            assert_eq!(agrees_chunk(&atomics, &probes), expected);
            assert_eq!(plain::agrees_chunk(&atomics, &probes), expected);
        }
    }
}
