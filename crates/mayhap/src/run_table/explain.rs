//! The fill of a table, for [`explain`](crate::explain).

use super::{BLOCK, IN_BLOCK, RunTable};
use crate::explain::Density;
use crate::simd::select::Plain;

impl RunTable {
    /// The share of homes with a run, part by part.
    pub(crate) fn density(&self, name: String, parts: usize) -> Density {
        let view = self.view(Plain);
        Density::of(name, "homes with a run", self.homes.div_ceil(BLOCK), parts, |block| {
            let occupied = (view.words(block)[0] & IN_BLOCK).count_ones();
            (occupied.into(), (self.homes - block * BLOCK).min(BLOCK))
        })
    }
}
