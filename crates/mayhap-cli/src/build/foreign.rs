//! Builds filters in other programs' formats.

use std::cell::RefCell;

use mayhap::{Filter, InsertError, Item, ItemEncoding, ItemHash, ItemValue};
use mayhap_formats::{Format, RebuildError};

use super::estimate::DistinctEstimate;
use super::kept::RecordBatches;
use super::{Built, DEFAULT_RATE, Work};
use crate::error::CliError;
use crate::filling::{self, InsertForm, Prepared};
use crate::in_order::in_order;
use crate::input::Blocks;
use crate::item_form::ItemForm;

impl Work<'_> {
    /// A filter as the format's program would build it.
    pub(super) fn foreign(&self, format: Format) -> Result<Built, CliError> {
        if !format.writes() {
            return Err(CliError::Usage(format!("--format: {format} filters can be read, but not written")));
        }
        if self.args.asked.memory.is_some() {
            let what = "--memory: filters of the other program are sized by --items and --fpr";
            return Err(CliError::Usage(what.into()));
        }
        // A Redis DUMP of a filter is that filter with a wrapper.
        let made_as = if format == Format::RedisDump { Format::RedisBloom } else { format };
        let encoding = self.encoding(made_as)?;
        let rate = self.args.asked.fpr.unwrap_or(DEFAULT_RATE);
        let told = self.args.asked.items;
        let made = |items: u64| {
            let made = made_as.build(std::iter::empty::<&[u8]>(), items, rate, encoding);
            made.map_err(|error| cli_error(format, &error))
        };
        let (filter, read) = match told {
            _ if built_at_once(made_as) => self.foreign_at_once(made_as, rate, encoding)?,
            Some(items) => {
                let mut filter = made(items)?;
                let read = self.stream(&mut filter)?;
                (filter, read)
            }
            None => match InsertForm::of(&made(1)?) {
                insert_form @ InsertForm::Hashes(..) => {
                    let (mut kept, read, estimate) = self.foreign_hashes(insert_form)?;
                    let mut filter = made(estimate.at_most(read))?;
                    kept.for_each(|hashes| {
                        let taken = filling::insert_hashes(&mut filter, hashes);
                        taken.map(drop).map_err(|refused| self.refused(&refused.cause))
                    })?;
                    (filter, read)
                }
                _ => {
                    let items = self.count_items("--format", "")?;
                    let mut filter = made(items)?;
                    let read = self.stream(&mut filter)?;
                    (filter, read)
                }
            },
        };
        Ok(Built {
            format,
            read,
            distinct: None,
            kind: format.name().into(),
            target_fpr: rate,
            told: told.filter(|_| !matches!(filter, Filter::ScalableBloom(_) | Filter::ScalableCuckoo(_))),
            filter,
            why: None,
            spilled_bytes: 0,
        })
    }

    /// How items become bytes. It is never guessed, except for formats that have only one way.
    fn encoding(&self, format: Format) -> Result<ItemEncoding, CliError> {
        match (self.args.items_as, format) {
            (Some(encoding), _) => Ok(encoding),
            (None, Format::RedisBloom | Format::RedisCuckoo | Format::Dcso | Format::DcsoGzip) => {
                Ok(ItemEncoding::Bytes)
            }
            (None, format) => {
                let names: Vec<_> = ItemEncoding::all().map(|encoding| encoding.to_string()).collect();
                let what = format!(
                    "--format {format}: --items-as is required, to state how its program turns items into bytes: {}",
                    names.join(", ")
                );
                Err(CliError::Usage(what))
            }
        }
    }

    /// The hashes of all items as the format computes them, and an estimate of the distinct items by a hash of mayhap.
    fn foreign_hashes(
        &self,
        insert_form: InsertForm,
    ) -> Result<(RecordBatches<ItemHash>, u64, DistinctEstimate), CliError> {
        let mut kept = self.kept();
        let mut estimate = DistinctEstimate::new();
        let mut read = 0;
        let ours = InsertForm::Hashes(0.into(), ItemForm::Bytes);
        in_order(
            self.args.input.open(self.progress)?,
            self.threads,
            |block| Ok((insert_form.prepare(block)?, ours.prepare(block)?)),
            |block, prepared| {
                read += block.len() as u64;
                self.progress.add_items(block.len() as u64);
                if let (Prepared::Hashes(theirs), Prepared::Hashes(ours)) = prepared {
                    ours.iter().for_each(|&hash| estimate.add(hash));
                    kept.push(theirs)?;
                }
                Ok(())
            },
        )?;
        Ok((kept, read, estimate))
    }

    /// A filter that its program builds from all items in one step.
    fn foreign_at_once(
        &self,
        format: Format,
        rate: f64,
        encoding: ItemEncoding,
    ) -> Result<(Filter, u64), CliError> {
        let form = ItemForm::of_encoding(encoding);
        let lines = RefCell::new(Lines::new(self.args.input.open(self.progress)?, form));
        let items = std::iter::from_fn(|| {
            let line = lines.borrow_mut().next()?;
            self.progress.add_items(1);
            Some(line)
        });
        let built = format.build(items, 1, rate, encoding);
        let lines = lines.into_inner();
        if let Some(error) = lines.error {
            return Err(error);
        }
        let filter = built.map_err(|error| cli_error(format, &error))?;
        Ok((filter, lines.read))
    }

    fn refused(&self, cause: &InsertError) -> CliError {
        CliError::Filter { name: self.target.name(), what: cause.to_string() }
    }
}

/// Returns `true` for formats of static filters.
const fn built_at_once(format: Format) -> bool {
    matches!(
        format,
        Format::FuseC
            | Format::FuseCPacked
            | Format::FuseGo
            | Format::FuseXorf
            | Format::FuseXorfJson
            | Format::XorC
    )
}

fn cli_error(format: Format, error: &RebuildError) -> CliError {
    match error {
        RebuildError::NotSo { instead, .. } => {
            CliError::Usage(format!("--format: {format} filters cannot be built this way: {instead}"))
        }
        error => CliError::Usage(format!("--format {format}: {error}")),
    }
}

/// The lines of the input one by one, until the first error.
struct Lines {
    blocks: Blocks,
    block: Option<crate::input::Block>,
    at: usize,
    form: ItemForm,
    read: u64,
    error: Option<CliError>,
}

impl Lines {
    fn new(blocks: Blocks, form: ItemForm) -> Self {
        Self { blocks, block: None, at: 0, form, read: 0, error: None }
    }

    fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(block) = &self.block
                && self.at < block.len()
            {
                let line = block.item(self.at);
                self.at += 1;
                self.read += 1;
                return match filling::item(self.form, block, self.at - 1, line) {
                    Ok(_) => Some(Line { bytes: line.to_vec(), form: self.form }),
                    Err(error) => {
                        self.error = Some(error);
                        None
                    }
                };
            }
            if let Some(block) = self.block.take() {
                self.blocks.reuse(block);
            }
            self.at = 0;
            match self.blocks.next() {
                Ok(Some(block)) => self.block = Some(block),
                Ok(None) => return None,
                Err(error) => {
                    self.error = Some(error);
                    return None;
                }
            }
        }
    }
}

/// A line that is a valid item of its form.
struct Line {
    bytes: Vec<u8>,
    form: ItemForm,
}

impl Item for Line {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self.form.item(&self.bytes) {
            Ok(item) => item.with_bytes(read),
            Err(_) => read(&self.bytes),
        }
    }

    fn with_value<R>(&self, read: impl FnOnce(ItemValue<'_>) -> R) -> R {
        match self.form.item(&self.bytes) {
            Ok(item) => item.with_value(read),
            Err(_) => read(ItemValue::Bytes(&self.bytes)),
        }
    }
}
