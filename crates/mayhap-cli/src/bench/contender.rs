//! One contender: how a kind is built from the members and queried. The standard library's exact set is one of them.

use std::collections::HashSet;

use mayhap::{Answers, BuildOptions, Filter, HashScheme, InsertError};
use mayhap_advise::{CreateError, Needs, Structure};

use super::sample::{Arena, number};
use crate::item_form::LineItem;

/// The number of items in a batch.
pub(super) const BATCH: usize = 1024;

/// A filter, or the standard library's set of the items themselves.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few at a time, and a box would be measured as well")]
pub(super) enum Contender {
    Filter(Filter),
    Exact(HashSet<Box<[u8]>>),
}

/// Builds one from all members.
pub(super) fn build(
    structure: Structure,
    members: &Arena,
    needs: &Needs,
    scheme: &HashScheme,
) -> Result<Contender, CannotBuild> {
    if structure == Structure::HashSet {
        return Ok(Contender::Exact(members.iter().map(Box::from).collect()));
    }
    if structure.is_static() {
        let hashes = members.iter().map(|item| scheme.hash(item));
        // On one thread, like the others.
        let options = BuildOptions::default().threads(1);
        let filter = structure.build_hashes(hashes, needs.target_fpr, *scheme, &options)?;
        return Ok(Contender::Filter(filter));
    }
    let mut filter = structure.create(needs, *scheme)?;
    let mut batch = Vec::with_capacity(BATCH);
    let mut items = members.iter().map(|item| line_item(structure, item)).peekable();
    while items.peek().is_some() {
        batch.clear();
        batch.extend(items.by_ref().take(BATCH));
        filter.insert_batch(&batch)?;
    }
    Ok(Contender::Filter(filter))
}

/// Why it is not measured.
#[derive(Clone, Debug)]
pub(super) struct CannotBuild(pub(super) String);

impl From<CreateError> for CannotBuild {
    fn from(error: CreateError) -> Self {
        Self(error.to_string())
    }
}

impl From<InsertError> for CannotBuild {
    fn from(error: InsertError) -> Self {
        Self(error.to_string())
    }
}

/// How an item is passed to this filter: a bitmap needs numbers; text that is not a number becomes the largest number, which is in none.
pub(super) fn line_item(structure: Structure, item: &[u8]) -> LineItem<'_> {
    match structure {
        Structure::Bitmap => {
            LineItem::Integer { value: i128::from(number(item).unwrap_or(u64::MAX)), bits: 64 }
        }
        _ => LineItem::Bytes(item),
    }
}

impl Contender {
    /// Counts the items that get a maybe, with single lookups.
    pub(super) fn ask_each(&self, items: &[LineItem<'_>]) -> usize {
        match self {
            Self::Filter(filter) => items.iter().filter(|item| filter.may_contain(*item)).count(),
            Self::Exact(set) => {
                let contains =
                    |item: &&LineItem<'_>| matches!(item, LineItem::Bytes(bytes) if set.contains(*bytes));
                items.iter().filter(contains).count()
            }
        }
    }

    /// The same with batched lookups. A set has none, so it uses single ones.
    pub(super) fn ask_batches(&self, items: &[LineItem<'_>], answers: &mut Answers) -> usize {
        match self {
            Self::Filter(filter) => items
                .chunks(BATCH)
                .map(|batch| {
                    filter.may_contain_batch(batch, answers);
                    answers.maybe_count()
                })
                .sum(),
            Self::Exact(_) => self.ask_each(items),
        }
    }

    /// The false-positive rate by its model.
    pub(super) fn expected_fpr(&self) -> f64 {
        match self {
            Self::Filter(filter) => filter.expected_fpr(),
            Self::Exact(_) => 0.0,
        }
    }

    /// Its memory, if it reports it.
    pub(super) fn memory_bytes(&self) -> Option<u64> {
        match self {
            Self::Filter(filter) => Some(filter.memory_bytes()),
            Self::Exact(_) => None,
        }
    }
}
