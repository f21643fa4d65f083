//! A stretch of rows and the equations about them: elimination as they come, solving from the end.
//!
//! ```text
//!        rows ─▶                     every equation has 64 coefficients from its first row on, the first of them 1
//!  e0    1 x x x x x x x
//!  e1      1 x x x x x x x           two that begin alike are added up, which takes the common beginning away; what is
//!  e2          1 x x x x x x x       left begins further down, and so on, until it finds a row that nobody begins in
//! ```

use crate::error::BuildError;
use crate::simd::ribbon::Equation;
use crate::sizing::ribbon::BLOCK_ROWS;

/// The equations of a stretch of rows, each kept at the row it begins in.
#[derive(Debug)]
pub(super) struct Band {
    equations: Vec<Equation>,
    /// The columns there are, a bit each: what a contradiction is about.
    columns: u64,
}

/// What came of an equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// It begins in this row now.
    At(u32),
    /// It follows from the others.
    Implied,
    /// It contradicts the others; nothing was changed.
    Contradiction,
}

impl Band {
    /// No equations about `rows` rows of up to `columns` columns.
    pub(super) fn new(rows: u64, columns: u64) -> Result<Self, BuildError> {
        let mut equations = Vec::new();
        let bytes = rows.saturating_mul(size_of::<Equation>() as u64);
        usize::try_from(rows)
            .ok()
            .and_then(|rows| equations.try_reserve_exact(rows).ok())
            .ok_or(BuildError::OutOfMemory { bytes })?;
        Ok(Self { equations, columns: (1 << columns) - 1 })
    }

    /// Forgets all equations; it has `rows` rows now, at most as many as it was made for.
    pub(super) fn reset(&mut self, rows: u64) {
        self.equations.clear();
        self.equations.resize(rows as usize, Equation::default());
    }

    pub(super) fn rows(&self) -> u64 {
        self.equations.len() as u64
    }

    /// Adds an equation that begins in `row`. Its first coefficient is 1, and none of them is behind the last row.
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

    /// Takes the equation out that begins in `row`. Only the last one that was inserted: others may rest on it.
    #[inline(always)]
    pub(super) fn remove(&mut self, row: u32) {
        self.equations[row as usize] = Equation::default();
    }

    /// The blocks, last first, with the equations of their rows.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (u64, &[Equation; BLOCK_ROWS as usize])> {
        let (blocks, _) = self.equations.as_chunks();
        blocks.iter().enumerate().rev().map(|(number, block)| (number as u64, block))
    }
}
