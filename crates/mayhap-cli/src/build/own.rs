//! Builds mayhap's own filters: by streaming items, or from hashes that were kept.

use std::path::Path;

use mayhap::say;
use mayhap::{BuildOptions, Filter, HashScheme, InsertError, ItemHash};
use mayhap_advise::{CreateError, Growth, Structure};
use mayhap_formats::Format;

use super::choice::{self, Choice, choose};
use super::distinct::Distinct;
use super::estimate::DistinctEstimate;
use super::kept::RecordBatches;
use super::{Built, Work};
use crate::error::CliError;
use crate::filling::{self, InsertForm, Prepared, Refused};
use crate::in_order::in_order;
use crate::item_form::ItemForm;
use crate::kind_name::KindName;

/// The number of attempts, each with a slightly larger filter, before the build fails as a bug.
const ATTEMPTS: u32 = 16;
/// The tolerance for the rounding of a model.
const ROUNDING: f64 = 1.0 + 1e-6;

/// The hashes that were kept.
pub(super) enum Hashes {
    /// In the order of the input.
    AsTheyCame(RecordBatches<ItemHash>),
    /// Each hash once.
    Once(Distinct),
}

impl Hashes {
    fn for_each<E: From<CliError>>(
        &mut self,
        each: impl FnMut(&[ItemHash]) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::AsTheyCame(kept) => kept.for_each(each),
            Self::Once(distinct) => distinct.for_each(each),
        }
    }

    fn spilled_bytes(&self) -> u64 {
        match self {
            Self::AsTheyCame(kept) => kept.spilled_bytes(),
            Self::Once(distinct) => distinct.spilled_bytes(),
        }
    }
}

/// Why a filter could not be filled.
enum NotFilled {
    /// The filter rejected an item.
    Refused(InsertError),
    CliError(CliError),
}

impl From<CliError> for NotFilled {
    fn from(error: CliError) -> Self {
        Self::CliError(error)
    }
}

impl From<Refused> for NotFilled {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused.cause)
    }
}

impl Work<'_> {
    /// Builds a filter whose kind and size are known beforehand.
    pub(super) fn known(&self, choice: &Choice) -> Result<Built, CliError> {
        let scheme = self.args.scheme()?;
        let told = self.args.asked.items;
        match choice.structure {
            structure if structure.is_static() => {
                let mut kept = self.kept();
                let read = self.hashes(scheme, |hashes| kept.push(hashes))?;
                self.at_once(choice, kept, scheme, read)
            }
            _ if choice.counts_copies() && !self.args.copies => {
                let mut distinct = self.distinct();
                let read = self.hashes(scheme, |hashes| distinct.push(&hashes))?;
                let count = distinct.count()?;
                self.of_hashes(choice, Hashes::Once(distinct), scheme, (read, Some(count)), told)
            }
            structure => {
                let mut filter = structure.create(&choice.needs, scheme)?;
                let read = self.stream(&mut filter)?;
                Ok(self.built(choice, filter, read, None, told, 0))
            }
        }
    }

    /// Counts the items, chooses the kind, and builds. It reads the input once, except for numbers that may become a
    /// bitmap.
    pub(super) fn counted(&self) -> Result<Built, CliError> {
        let scheme = self.args.scheme()?;
        let structure = match self.args.kind {
            Some(KindName::Exactly(Structure::Bitmap)) => return self.bitmap_of_found_range(),
            None if self.args.asked.range.is_some() => return self.counted_beforehand(scheme),
            Some(KindName::Exactly(structure)) => Some(structure),
            _ => None,
        };
        if structure.is_some_and(choice::counts_copies) && !self.args.copies {
            let mut distinct = self.distinct();
            let read = self.hashes(scheme, |hashes| distinct.push(&hashes))?;
            return self.of_distinct(distinct, scheme, read);
        }
        let mut kept = self.kept();
        let mut estimate = DistinctEstimate::new();
        let mut streamed = None;
        let grows = self.args.asked.grows;
        let read = self.hashes(scheme, |hashes| {
            if let Some((_, filter)) = &mut streamed {
                return self.take(filter, &hashes);
            }
            hashes.iter().for_each(|&hash| estimate.add(hash));
            if grows && kept.is_full(hashes.len()) {
                // The filter grows from here; the items seen so far are the first capacity.
                let choice = choose(self.args.kind, &self.args.needs(estimate.at_most(u64::MAX))?)?;
                if !choice.structure.is_static() && !choice.counts_copies() {
                    let mut filter = choice.structure.create(&choice.needs, scheme)?;
                    kept.for_each(|hashes| self.take(&mut filter, hashes))?;
                    self.take(&mut filter, &hashes)?;
                    kept = self.kept();
                    streamed = Some((choice, filter));
                    return Ok(());
                }
            }
            kept.push(hashes)
        })?;
        if let Some((choice, filter)) = streamed {
            return Ok(self.built(&choice, filter, read, None, None, 0));
        }
        let mut choice = choose(self.args.kind, &self.args.needs(estimate.at_most(read))?)?;
        if self.args.copies && choice.counts_copies() {
            // Every copy takes room.
            choice = choose(self.args.kind, &self.args.needs(read.max(1))?)?;
        }
        match choice.structure {
            structure if structure.is_static() => self.at_once(&choice, kept, scheme, read),
            _ if choice.counts_copies() && !self.args.copies => {
                let mut distinct = self.distinct();
                kept.for_each(|hashes| distinct.push(hashes))?;
                drop(kept);
                self.of_distinct(distinct, scheme, read)
            }
            _ => self.of_hashes(&choice, Hashes::AsTheyCame(kept), scheme, (read, None), None),
        }
    }

    /// The kind depends on the number of items, and so does what must be kept of them. So the input is read twice.
    fn counted_beforehand(&self, scheme: HashScheme) -> Result<Built, CliError> {
        let items = self.count_items("--range", " or --kind bitmap")?;
        // The estimate may exceed the size of the range.
        let possible =
            self.args.asked.range.map_or(u64::MAX, |(low, high)| high.saturating_sub(low).saturating_add(1));
        let items = items.min(possible);
        let choice = choose(None, &self.args.needs(items)?)?;
        let mut built = match choice.structure {
            Structure::Bitmap => {
                let mut filter = choice.structure.create(&choice.needs, scheme)?;
                let read = self.stream(&mut filter)?;
                self.built(&choice, filter, read, None, None, 0)
            }
            _ => self.known(&choice)?,
        };
        built.told = None;
        Ok(built)
    }

    /// Reads all input to count the distinct items. The caller then reads it again.
    pub(super) fn count_items(&self, because_of: &str, or: &str) -> Result<u64, CliError> {
        self.args.check_files()?;
        if !self.args.reads_twice() {
            let input = match self.args.input.files.iter().all(|file| *file == Path::new("-")) {
                true => "standard input",
                false => "the input",
            };
            let what = format!(
                "{because_of}: give --items{or}, because {input} cannot be read twice (once to count the items)"
            );
            return Err(CliError::Usage(what));
        }
        let mut estimate = DistinctEstimate::new();
        let read = self.hashes(HashScheme::fast(0), |hashes| {
            hashes.iter().for_each(|&hash| estimate.add(hash));
            Ok(())
        })?;
        self.progress.phase("reading again", None);
        Ok(estimate.at_most(read))
    }

    /// A filter of hashes that are known to be distinct.
    fn of_distinct(&self, mut distinct: Distinct, scheme: HashScheme, read: u64) -> Result<Built, CliError> {
        let count = distinct.count()?;
        let choice = choose(self.args.kind, &self.args.needs(count.max(1))?)?;
        self.of_hashes(&choice, Hashes::Once(distinct), scheme, (read, Some(count)), None)
    }

    /// A filter built from all its hashes in one step.
    fn at_once(
        &self,
        choice: &Choice,
        kept: RecordBatches<ItemHash>,
        scheme: HashScheme,
        read: u64,
    ) -> Result<Built, CliError> {
        self.progress.phase("building", None);
        let spilled = kept.spilled_bytes();
        let options = BuildOptions::default().threads(self.threads);
        let rate = choice.needs.target_fpr;
        let filter = choice.structure.build_hashes(kept.into_iter()?, rate, scheme, &options)?;
        Ok(self.built(choice, filter, read, None, None, spilled))
    }

    /// A filter into which the kept hashes are inserted one by one. Without `--items`, it is built again and larger until
    /// it meets the rate.
    fn of_hashes(
        &self,
        choice: &Choice,
        mut hashes: Hashes,
        scheme: HashScheme,
        (read, distinct): (u64, Option<u64>),
        told: Option<u64>,
    ) -> Result<Built, CliError> {
        let mut needs = choice.needs.clone();
        for _ in 0..ATTEMPTS {
            self.progress.phase("inserting", None);
            self.progress.expect_items(distinct.unwrap_or(read));
            let mut filter = choice.structure.create(&needs, scheme)?;
            let filled = hashes.for_each(|hashes| {
                filling::insert_hashes(&mut filter, hashes)?;
                self.progress.add_items(hashes.len() as u64);
                Ok(())
            });
            match (filled, told) {
                (Ok(()), told) if told.is_some() || keeps_its_promise(&filter, choice.needs.target_fpr) => {
                    return Ok(self.built(choice, filter, read, distinct, told, hashes.spilled_bytes()));
                }
                (Err(NotFilled::Refused(cause)), Some(told)) => {
                    return Err(self.no_room(choice, told, distinct, &cause));
                }
                (Err(NotFilled::CliError(error)), _) => return Err(error),
                (Ok(()) | Err(NotFilled::Refused(_)), _) => {
                    let items = needs.items.max(filter.inserted());
                    needs.items = items.saturating_add(items / 50 + 8);
                }
            }
        }
        let what = format!("no {} of these items met its false-positive rate", choice.structure);
        Err(CliError::Filter { name: self.target.name(), what })
    }

    /// The error if there are more items than `--items` and the kind rejects them.
    fn no_room(&self, choice: &Choice, told: u64, distinct: Option<u64>, cause: &InsertError) -> CliError {
        let what = match distinct.filter(|&got| got > told) {
            Some(got) => {
                let (told, got, kind) = (say::count(told), say::count(got), choice.structure);
                format!(
                    "--items is {told}, but there are {got} distinct items, too many for this {kind}: raise --items or omit it"
                )
            }
            None => format!("{cause}; raise --items or omit it"),
        };
        CliError::Filter { name: self.target.name(), what }
    }

    /// Inserts every item of the input into `filter`. Returns how many were read.
    pub(super) fn stream(&self, filter: &mut Filter) -> Result<u64, CliError> {
        let blocks = self.args.input.open(self.progress)?;
        let insert_form = InsertForm::of(filter);
        let mut read = 0;
        in_order(
            blocks,
            self.threads,
            |block| insert_form.prepare(block),
            |block, prepared| {
                let taken = filling::insert(filter, block, &prepared);
                taken.map_err(|refused| {
                    let what = format!("{}; raise --items or omit it", refused.cause);
                    let what = match refused.cause {
                        InsertError::Full { .. } => what,
                        cause => cause.to_string(),
                    };
                    CliError::Input { name: block.place(refused.index), what }
                })?;
                read += block.len() as u64;
                self.progress.add_items(block.len() as u64);
                Ok(())
            },
        )?;
        Ok(read)
    }

    /// Calls `each` with the hashes of the input's items, block by block. Returns how many there were.
    pub(super) fn hashes(
        &self,
        scheme: HashScheme,
        mut each: impl FnMut(Vec<ItemHash>) -> Result<(), CliError>,
    ) -> Result<u64, CliError> {
        let blocks = self.args.input.open(self.progress)?;
        let insert_form = InsertForm::Hashes(scheme, ItemForm::Bytes);
        let mut read = 0;
        in_order(
            blocks,
            self.threads,
            |block| insert_form.prepare(block),
            |block, prepared| {
                read += block.len() as u64;
                self.progress.add_items(block.len() as u64);
                match prepared {
                    Prepared::Hashes(hashes) => each(hashes),
                    Prepared::Numbers(_) | Prepared::Items => Ok(()),
                }
            },
        )?;
        Ok(read)
    }

    /// Inserts hashes into a filter that accepts any number of items.
    fn take(&self, filter: &mut Filter, hashes: &[ItemHash]) -> Result<(), CliError> {
        let taken = filling::insert_hashes(filter, hashes);
        taken
            .map(drop)
            .map_err(|refused| CliError::Filter { name: self.target.name(), what: refused.cause.to_string() })
    }

    pub(super) fn kept<T: super::kept::Record>(&self) -> RecordBatches<T> {
        RecordBatches::new(self.args.hash_memory, self.target.folder())
    }

    fn distinct(&self) -> Distinct {
        Distinct::new(self.args.hash_memory, self.target.folder())
    }

    pub(super) fn built(
        &self,
        choice: &Choice,
        filter: Filter,
        read: u64,
        distinct: Option<u64>,
        told: Option<u64>,
        spilled_bytes: u64,
    ) -> Built {
        Built {
            filter,
            format: Format::Mayhap,
            read,
            distinct,
            kind: choice.name(),
            target_fpr: choice.needs.target_fpr,
            told: told.filter(|_| !matches!(choice.needs.growth, Growth::Unknown | Growth::Window)),
            why: choice.why.clone(),
            spilled_bytes,
        }
    }
}

/// Returns `true` if the filter meets its false-positive rate.
fn keeps_its_promise(filter: &Filter, target_fpr: f64) -> bool {
    filter.expected_fpr() <= target_fpr * ROUNDING
}

impl From<mayhap::BuildError> for CliError {
    fn from(error: mayhap::BuildError) -> Self {
        CreateError::from(error).into()
    }
}
