//! A stretch of rows and its equations: elimination on insertion, then back substitution from the end.
//!
//! ```text
//!        rows ─▶                     every equation has 64 coefficients from its first row on, the first of them 1
//!  e0    1 x x x x x x x
//!  e1      1 x x x x x x x           two that begin in the same row are added, which cancels the first coefficient;
//!  e2          1 x x x x x x x       the sum begins further down, and so on, until it finds a row without an equation
//! ```

use crate::error::BuildError;
use crate::simd::ribbon::Equation;
use crate::sizing::ribbon::BLOCK_ROWS;

/// The equations of a stretch of rows, each stored at the row in which it begins.
#[derive(Debug)]
pub(super) struct Band {
    equations: Vec<Equation>,
    /// One bit for each existing column. Only these can contradict.
    columns: u64,
}

/// The result of inserting an equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// It is stored at this row.
    At(u32),
    /// It follows from the others.
    Implied,
    /// It contradicts the others. Nothing was changed.
    Contradiction,
}

impl Band {
    /// Creates a band without equations for `rows` rows of up to `columns` columns.
    pub(super) fn new(rows: u64, columns: u64) -> Result<Self, BuildError> {
        let mut equations = Vec::new();
        let bytes = rows.saturating_mul(size_of::<Equation>() as u64);
        usize::try_from(rows)
            .ok()
            .and_then(|rows| equations.try_reserve_exact(rows).ok())
            .ok_or(BuildError::OutOfMemory { bytes })?;
        Ok(Self { equations, columns: (1 << columns) - 1 })
    }

    /// Removes all equations and sets the number of rows, which must not exceed the original number.
    pub(super) fn reset(&mut self, rows: u64) {
        self.equations.clear();
        self.equations.resize(rows as usize, Equation::default());
    }

    pub(super) fn rows(&self) -> u64 {
        self.equations.len() as u64
    }

    /// Inserts an equation that begins in `row`. Its first coefficient is 1, and no coefficient is after the
    /// last row.
    #[inline(always)]
    pub(super) fn insert(&mut self, row: u64, equation: Equation) -> Inserted {
        let (mut row, mut equation) = (row as usize, equation);
        loop {
            let there = &mut self.equations[row];
            if there.coefficients == 0 {
                *there = equation;
                return Inserted::At(row as u32);
            }
            equation.coefficients ^= there.coefficients;
            equation.value ^= there.value;
            if equation.coefficients == 0 {
                let implied = equation.value & self.columns == 0;
                return if implied { Inserted::Implied } else { Inserted::Contradiction };
            }
            let skipped = equation.coefficients.trailing_zeros();
            row += skipped as usize;
            equation.coefficients >>= skipped;
        }
    }

    /// Removes the equation that begins in `row`. It must be the last one inserted, because later ones may
    /// depend on it.
    #[inline(always)]
    pub(super) fn remove(&mut self, row: u32) {
        self.equations[row as usize] = Equation::default();
    }

    /// Returns the blocks, last first, with the equations of their rows.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (u64, &[Equation; BLOCK_ROWS as usize])> {
        let (blocks, _) = self.equations.as_chunks();
        blocks.iter().enumerate().rev().map(|(number, block)| (number as u64, block))
    }
}
