//! Builds a bitmap from numbers whose range is not known beforehand.

use mayhap::say;
use mayhap_advise::{ItemShape, Structure};

use super::choice::Choice;
use super::{Built, Work};
use crate::error::CliError;
use crate::filling;
use crate::in_order::in_order;

impl Work<'_> {
    /// Without `--range`, the numbers are kept, and the bitmap covers the smallest to the largest.
    pub(super) fn bitmap_of_found_range(&self) -> Result<Built, CliError> {
        let mut kept = self.kept::<u64>();
        let mut found: Option<(u64, u64)> = None;
        let blocks = self.args.input.open(self.progress)?;
        in_order(blocks, self.threads, filling::numbers, |_, numbers| {
            for &number in &numbers {
                let (low, high) = found.unwrap_or((number, number));
                found = Some((low.min(number), high.max(number)));
            }
            self.progress.add_items(numbers.len() as u64);
            kept.push(numbers)
        })?;
        let name = self.target.name();
        let Some((low, high)) = found else {
            let what = "the input has no numbers; give their range with --range".into();
            return Err(CliError::Filter { name, what });
        };
        let needs = self.args.needs(1)?.of(ItemShape::IntegerRange { low, high });
        let choice = Choice { structure: Structure::Bitmap, needs, why: None };
        let limit = self.args.asked.memory.unwrap_or(u64::MAX);
        let bytes = (high - low) / 8 + 1;
        if bytes > limit {
            let (bytes, limit) = (say::bytes(bytes), say::bytes(limit));
            let what = format!("a bitmap from {low} to {high} needs {bytes}, limit is {limit}");
            return Err(CliError::Filter { name, what });
        }
        // A bitmap hashes nothing.
        let mut filter = choice.structure.create(&choice.needs, 0.into())?;
        kept.for_each(|numbers| {
            let set = filling::insert_numbers(&mut filter, numbers);
            set.map(drop)
                .map_err(|refused| CliError::Filter { name: name.clone(), what: refused.cause.to_string() })
        })?;
        let (read, spilled) = (kept.len(), kept.spilled_bytes());
        let mut built = self.built(&choice, filter, read, None, None, spilled);
        built.why = Some(format!("bitmap of {low} to {high}, as found in the input"));
        Ok(built)
    }
}
