//! Turns lines into items and inserts them into a filter, for all commands that insert.
//!
//! ```text
//! Block ──[ InsertForm::prepare, many threads ]──▶ Prepared ──[ insert, one thread, in order ]──▶ Filter
//! ```
//!
//! Hashing and parsing cost more than an insert into a filter that fits in the cache, so many threads do that work.
//! Only one thread inserts. The filter is therefore the same, byte for byte, whatever the number of threads.

use mayhap::{Filter, HashScheme, InsertError, ItemHash};

use crate::error::CliError;
use crate::input::Block;
use crate::item_form::{ItemForm, LineItem};

/// The form in which a filter receives its items.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InsertForm {
    /// As hashes.
    Hashes(HashScheme, ItemForm),
    /// As numbers: a bitmap.
    Numbers,
    /// As raw bytes: the filter hashes them in its own way.
    Items(ItemForm),
}

/// The items of a block, ready to be inserted.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// The hash of each item.
    Hashes(Vec<ItemHash>),
    /// The items are numbers.
    Numbers(Vec<u64>),
    /// The items were only validated.
    Items,
}

/// An item that a filter rejected. All items before it were inserted.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Its index in the block.
    pub(crate) index: usize,
    /// Why.
    pub(crate) cause: InsertError,
}

impl InsertForm {
    /// The form in which `filter` receives items.
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
    /// The first line that is not a valid item for the filter.
    pub(crate) fn prepare(self, block: &Block) -> Result<Prepared, CliError> {
        match self {
            Self::Hashes(scheme, ItemForm::Bytes) => {
                // The match is outside the loop, so each loop is compiled for one scheme.
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
        // `form` has already checked that it fits.
        LineItem::Integer { value, .. } => Ok(value as u64),
        _ => Ok(0),
    };
    block.items().enumerate().map(number).collect()
}

/// Parses a line as an item of this form.
pub(crate) fn item<'a>(
    form: ItemForm,
    block: &Block,
    index: usize,
    line: &'a [u8],
) -> Result<LineItem<'a>, CliError> {
    form.item(line).map_err(|error| CliError::Input { name: block.place(index), what: error.to_string() })
}

/// Inserts all items of `block` into `filter`. Returns how many of them were certainly new.
///
/// # Errors
/// [`Refused`] for the first item that is rejected; the items before it were inserted.
pub(crate) fn insert(filter: &mut Filter, block: &Block, prepared: &Prepared) -> Result<u64, Refused> {
    match prepared {
        Prepared::Hashes(hashes) => insert_hashes(filter, hashes),
        Prepared::Numbers(numbers) => insert_numbers(filter, numbers),
        Prepared::Items => {
            let form = ItemForm::of(filter);
            let mut new = 0;
            for (index, line) in block.items().enumerate() {
                // Invalid items were rejected when the block was prepared.
                if let Ok(item) = form.item(line) {
                    new += u64::from(filter.insert(&item).map_err(|cause| Refused { index, cause })?);
                }
            }
            Ok(new)
        }
    }
}

/// Inserts all `hashes`. Returns how many of them were certainly new.
///
/// # Errors
/// [`Refused`] for the first hash that is rejected; those before it were inserted.
pub(crate) fn insert_hashes(filter: &mut Filter, hashes: &[ItemHash]) -> Result<u64, Refused> {
    let before = filter.inserted();
    filter.insert_hash_batch(hashes).map_err(|cause| {
        // Kinds that store copies counted every item they accepted, which gives the index. The other kinds never
        // reject an item that they contain.
        let index = match filter {
            Filter::ScalableBloom(_) | Filter::DualBloom(_) => {
                hashes.iter().position(|&hash| !filter.may_contain_hash(hash)).unwrap_or(0)
            }
            filter => (filter.inserted() - before) as usize,
        };
        Refused { index, cause }
    })
}

/// Inserts all `numbers` into a bitmap. Returns how many of them were new.
///
/// # Errors
/// [`Refused`] for the first number outside the bitmap's range; those before it were inserted.
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
