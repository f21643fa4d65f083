//! Lines become items of one filter, and the filter takes them: for all verbs that put items in.
//!
//! ```text
//! Block ──[ Taking::prepare, many threads ]──▶ Prepared ──[ insert, one thread, in order ]──▶ Filter
//! ```
//!
//! Hashing and parsing cost more than inserting into a filter that fits the cache, and everything about them can be done by many
//! threads at once. One thread inserts: then the filter does not depend on how many threads there were, to the last byte.

use mayhap::{Filter, HashScheme, InsertError, ItemHash};

use crate::error::CliError;
use crate::input::Block;
use crate::item_form::{ItemForm, LineItem};

/// In what form a filter takes its items.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Taking {
    /// As hashes.
    Hashes(HashScheme, ItemForm),
    /// As numbers: a bitmap.
    Numbers,
    /// As they are: it hashes them in a way of its own.
    Items(ItemForm),
}

/// The items of a block, ready to be taken.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// Of every item its hash.
    Hashes(Vec<ItemHash>),
    /// The items are numbers.
    Numbers(Vec<u64>),
    /// There was nothing to do but to look whether they are items.
    Items,
}

/// An item that a filter did not take. All items before it are in.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Which of the block.
    pub(crate) index: usize,
    /// Why.
    pub(crate) cause: InsertError,
}

impl Taking {
    /// How `filter` takes items.
    pub(crate) fn of(filter: &Filter) -> Self {
        let form = ItemForm::of(filter);
        match (filter, filter.scheme()) {
            (Filter::Bitmap(_), _) => Self::Numbers,
            (_, Some(&scheme)) => Self::Hashes(scheme, form),
            (_, None) => Self::Items(form),
        }
    }

    /// The items of `block` in that form.
    ///
    /// # Errors
    /// The first line that is no item of such a filter.
    pub(crate) fn prepare(self, block: &Block) -> Result<Prepared, CliError> {
        match self {
            Self::Hashes(scheme, ItemForm::Bytes) => {
                // Settled here, not for every item.
                let hashes = match scheme {
                    HashScheme::Fast { seed } => {
                        let scheme = HashScheme::Fast { seed };
                        block.items().map(|item| scheme.hash(item)).collect()
                    }
                    scheme => block.items().map(|item| scheme.hash(item)).collect(),
                };
                Ok(Prepared::Hashes(hashes))
            }
            Self::Hashes(scheme, form) => {
                let hash = |(index, line)| Ok(scheme.hash(&item(form, block, index, line)?));
                block.items().enumerate().map(hash).collect::<Result<_, _>>().map(Prepared::Hashes)
            }
            Self::Numbers => numbers(block).map(Prepared::Numbers),
            Self::Items(form) => {
                for (index, line) in block.items().enumerate() {
                    item(form, block, index, line)?;
                }
                Ok(Prepared::Items)
            }
        }
    }
}

/// The numbers of a block, for a bitmap.
pub(crate) fn numbers(block: &Block) -> Result<Vec<u64>, CliError> {
    let form = ItemForm::Integer { bits: 64, signed: false };
    let number = |(index, line)| match item(form, block, index, line)? {
        // The form has checked that it fits.
        LineItem::Integer { value, .. } => Ok(value as u64),
        _ => Ok(0),
    };
    block.items().enumerate().map(number).collect()
}

/// A line as an item of this form.
pub(crate) fn item<'a>(
    form: ItemForm,
    block: &Block,
    index: usize,
    line: &'a [u8],
) -> Result<LineItem<'a>, CliError> {
    form.item(line).map_err(|error| CliError::Input { name: block.place(index), what: error.to_string() })
}

/// Puts all items of `block` into `filter` and says how many of them were certainly new.
///
/// # Errors
/// [`Refused`] for the first item that is not taken; those before it are in.
pub(crate) fn insert(filter: &mut Filter, block: &Block, prepared: &Prepared) -> Result<u64, Refused> {
    match prepared {
        Prepared::Hashes(hashes) => insert_hashes(filter, hashes),
        Prepared::Numbers(numbers) => insert_numbers(filter, numbers),
        Prepared::Items => {
            let form = ItemForm::of(filter);
            let mut new = 0;
            for (index, line) in block.items().enumerate() {
                // What is no item was refused when it was prepared.
                if let Ok(item) = form.item(line) {
                    new += u64::from(filter.insert(&item).map_err(|cause| Refused { index, cause })?);
                }
            }
            Ok(new)
        }
    }
}

/// Puts all `hashes` in and says how many of them were certainly new.
///
/// # Errors
/// [`Refused`] for the first that is not taken; those before it are in.
pub(crate) fn insert_hashes(filter: &mut Filter, hashes: &[ItemHash]) -> Result<u64, Refused> {
    let before = filter.inserted();
    filter.insert_hash_batch(hashes).map_err(|cause| {
        // Those that keep copies have counted every item they took; the others are never full of what is in already.
        let index = match filter {
            Filter::ScalableBloom(_) | Filter::DualBloom(_) => {
                hashes.iter().position(|&hash| !filter.may_contain_hash(hash)).unwrap_or(0)
            }
            filter => (filter.inserted() - before) as usize,
        };
        Refused { index, cause }
    })
}

/// Puts all `numbers` into a bitmap and says how many of them were new.
///
/// # Errors
/// [`Refused`] for the first that is out of its range; those before it are in.
pub(crate) fn insert_numbers(filter: &mut Filter, numbers: &[u64]) -> Result<u64, Refused> {
    let Filter::Bitmap(bitmap) = filter else {
        return Err(Refused { index: 0, cause: InsertError::NotANumber });
    };
    let mut indexes = Vec::with_capacity(numbers.len());
    let refused = numbers.iter().position(|&number| match bitmap.index_of(number) {
        Some(index) => {
            indexes.push(index);
            false
        }
        None => true,
    });
    let set = bitmap.set_batch(&indexes).map_err(|cause| Refused { index: 0, cause })?;
    match refused {
        None => Ok(set),
        Some(index) => {
            let (number, first, bits) = (numbers[index], bitmap.first(), bitmap.len());
            Err(Refused { index, cause: InsertError::OutOfRange { number, first, bits } })
        }
    }
}
