//! A list as the bytes of a snapshot: its hashes, then the empty filter that it stands for, with the runs of
//! zeroes left out.
//!
//! ```text
//! 2^31 + items u32 │ items × hash, 16 bytes │ scheme u16 │ its secret, 16 bytes │ the empty filter, of seed 0
//! items u32        │ items × hash, 16 bytes │ the empty filter, with the scheme itself: as lists were written at first
//!
//! empty filter     length u32 │ runs: literals u32 │ literal bytes │ zeroes u32 │ …
//! ```
//!
//! In this form a million small filters take half a gigabyte instead of two. Most of them are equal except
//! for their secrets, so the empty filter that was written or read last is reused for the next one.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Arc;

use mayhap::{BuildError, DecodeError, Filter, HashScheme, ItemHash, SecretKey, WellMixed};

use super::body::Body;
use super::list::List;
use super::recipe::Recipe;
use super::served::Served;

/// Longer than any empty filter that begins as a list: its first tier and its headers.
const MAX_EMPTY_BYTES: usize = 128 << 10;
/// The shortest run of zeroes that is encoded as a run.
const SHORTEST_RUN: usize = 16;
const HASH_BYTES: usize = size_of::<u128>();
/// A flag in the number of items: the scheme is stored separately from the empty filter.
const SCHEME_APART: usize = 1 << 31;

thread_local! {
    /// The recipe that was written last, and the bytes of its empty filter.
    static WRITTEN: RefCell<Option<(Recipe, Vec<u8>)>> = const { RefCell::new(None) };
    /// The same for the recipe that was read last.
    static READ: RefCell<Option<(Arc<Recipe>, Vec<u8>)>> = const { RefCell::new(None) };
}

/// Writes the list of `recipe`.
pub(super) fn store(list: &List, recipe: &Recipe, scheme: HashScheme, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(list.len() * HASH_BYTES + 32);
    let apart = secret(scheme);
    put(list.len() | if apart.is_some() { SCHEME_APART } else { 0 }, &mut bytes);
    for hash in list.hashes() {
        bytes.extend_from_slice(&hash.to_u128().to_le_bytes());
    }
    let refused = |_: BuildError| io::Error::from(io::ErrorKind::OutOfMemory);
    let Some(secret) = apart else {
        put_empty(&recipe.make(scheme).map_err(refused)?, &mut bytes);
        return out.write_all(&bytes);
    };
    bytes.extend_from_slice(&scheme.number().to_le_bytes());
    bytes.extend_from_slice(&secret);
    out.write_all(&bytes)?;
    WRITTEN.with_borrow_mut(|written| {
        if written.as_ref().is_none_or(|(last, _)| last != recipe) {
            bytes.clear();
            put_empty(&recipe.make(HashScheme::fast(0)).map_err(refused)?, &mut bytes);
            *written = Some((*recipe, bytes));
        }
        written.as_ref().map_or(Ok(()), |(_, empty)| out.write_all(empty))
    })
}

/// The seed or the key of a scheme of ours.
fn secret(scheme: HashScheme) -> Option<[u8; 16]> {
    match scheme {
        HashScheme::Fast { seed } => Some(u128::from(seed).to_le_bytes()),
        HashScheme::Keyed { key } => Some(*key.expose()),
        _ => None,
    }
}

fn put_empty(filter: &Filter, bytes: &mut Vec<u8>) {
    let empty = filter.encode();
    put(empty.len(), bytes);
    let mut rest = &empty[..];
    while !rest.is_empty() {
        let zeroes_from = next_run(rest);
        let zeroes = rest[zeroes_from..].iter().take_while(|&&byte| byte == 0).count();
        put(zeroes_from, bytes);
        bytes.extend_from_slice(&rest[..zeroes_from]);
        put(zeroes, bytes);
        rest = &rest[zeroes_from + zeroes..];
    }
}

/// The position of the next long run of zeroes, or the end.
fn next_run(bytes: &[u8]) -> usize {
    let mut zeroes = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        zeroes = if byte == 0 { zeroes + 1 } else { 0 };
        if zeroes == SHORTEST_RUN {
            return at + 1 - SHORTEST_RUN;
        }
    }
    bytes.len()
}

fn put(number: usize, bytes: &mut Vec<u8>) {
    // A list and its empty filter are far shorter than that.
    bytes.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

/// Reads what [`store`] wrote. Its memory is proportional to `bytes`, plus the memory of an empty filter.
pub(super) fn load(bytes: &[u8]) -> Result<Served, DecodeError> {
    let mut rest = bytes;
    let number = take_number(&mut rest)?;
    let items = number & !SCHEME_APART;
    let hashes = take(&mut rest, items.saturating_mul(HASH_BYTES))?;
    let (recipe, scheme) = if number == items {
        let (recipe, scheme) = made_from(&take_empty(rest)?)?;
        (recipe.shared(), scheme)
    } else {
        let scheme = take_scheme(&mut rest)?;
        (remembered(rest)?, scheme)
    };
    if recipe.listed_items().is_none_or(|most| items > most) {
        return Err(DecodeError::BadField { field: "items of a list", got: items as u64 });
    }
    let hashes = hashes.as_chunks::<HASH_BYTES>().0.iter();
    let hashes = hashes.map(|hash| ItemHash::from(WellMixed(u128::from_le_bytes(*hash))));
    Ok(Served { body: Body::List(List::of(hashes.collect())), recipe: Some(recipe), scheme })
}

fn take_scheme(rest: &mut &[u8]) -> Result<HashScheme, DecodeError> {
    let got = rest.len() as u64;
    let too_short = DecodeError::TooShort { need: 18, got };
    let Some((number, behind)) = rest.split_first_chunk() else { return Err(too_short) };
    let Some((&secret, behind)) = behind.split_first_chunk() else { return Err(too_short) };
    *rest = behind;
    match u16::from_le_bytes(*number) {
        1 => match u64::try_from(u128::from_le_bytes(secret)) {
            Ok(seed) => Ok(HashScheme::fast(seed)),
            Err(_) => Err(DecodeError::BadField { field: "seed of a list", got: u64::MAX }),
        },
        2 => Ok(HashScheme::keyed(SecretKey::new(secret))),
        other => Err(DecodeError::BadField { field: "scheme of a list", got: other.into() }),
    }
}

/// The recipe of the empty filter that is encoded in these bytes.
fn remembered(bytes: &[u8]) -> Result<Arc<Recipe>, DecodeError> {
    READ.with_borrow_mut(|read| match read {
        Some((recipe, last)) if last == bytes => Ok(Arc::clone(recipe)),
        read => {
            let (recipe, _) = made_from(&take_empty(bytes)?)?;
            let recipe = recipe.shared();
            *read = Some((Arc::clone(&recipe), bytes.to_vec()));
            Ok(recipe)
        }
    })
}

fn take_empty(mut rest: &[u8]) -> Result<Filter, DecodeError> {
    let length = take_number(&mut rest)?;
    if length > MAX_EMPTY_BYTES {
        return Err(DecodeError::BadField { field: "length of an empty filter", got: length as u64 });
    }
    let mut empty = Vec::with_capacity(length);
    while empty.len() < length {
        let literals = take_number(&mut rest)?;
        empty.extend_from_slice(take(&mut rest, literals)?);
        let zeroes = take_number(&mut rest)?;
        if literals + zeroes == 0 || zeroes > length.saturating_sub(empty.len()) {
            return Err(DecodeError::BadField { field: "zeroes of an empty filter", got: zeroes as u64 });
        }
        empty.resize(empty.len() + zeroes, 0);
    }
    if empty.len() != length || !rest.is_empty() {
        return Err(DecodeError::BadField { field: "bytes after a list", got: rest.len() as u64 });
    }
    Filter::decode(&empty)
}

/// The recipe of an empty filter.
fn made_from(filter: &Filter) -> Result<(Recipe, HashScheme), DecodeError> {
    match filter {
        Filter::Bloom(filter) => Ok((Recipe::Bloom(*filter.shape()), *filter.scheme())),
        Filter::BlockedBloom(filter) => Ok((Recipe::Blocked(*filter.shape()), *filter.scheme())),
        Filter::ScalableBloom(filter) => Ok((Recipe::Scalable(*filter.shape()), *filter.scheme())),
        other => {
            Err(DecodeError::BadField { field: "kind of a list", got: u64::from(other.kind().number()) })
        }
    }
}

fn take_number(rest: &mut &[u8]) -> Result<usize, DecodeError> {
    let Some((number, behind)) = rest.split_first_chunk() else {
        return Err(DecodeError::TooShort { need: 4, got: rest.len() as u64 });
    };
    *rest = behind;
    Ok(u32::from_le_bytes(*number) as usize)
}

fn take<'b>(rest: &mut &'b [u8], bytes: usize) -> Result<&'b [u8], DecodeError> {
    let Some((taken, behind)) = rest.split_at_checked(bytes) else {
        return Err(DecodeError::TooShort { need: bytes as u64, got: rest.len() as u64 });
    };
    *rest = behind;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mayhap::{BlockedShape, BloomShape, BuildError, ScalableShape, SecretKey};

    fn recipes() -> Result<Vec<Recipe>, BuildError> {
        Ok(vec![
            Recipe::Bloom(BloomShape::for_capacity(1_000, 0.01)?),
            Recipe::Blocked(BlockedShape::for_capacity(1_000, 0.01)?),
            Recipe::Scalable(ScalableShape::with_tiers(&[1_000, 10_000, 100_000], 0.01)?),
        ])
    }

    fn stored(items: u64, recipe: &Recipe, scheme: HashScheme) -> Vec<u8> {
        let list = List::of((0..items).map(|item| scheme.hash(&item)).collect());
        let mut bytes = Vec::new();
        store(&list, recipe, scheme, &mut bytes).unwrap();
        bytes
    }

    /// Writes a list in the first format, in which the scheme was part of the empty filter.
    fn as_at_first(items: u64, recipe: &Recipe, scheme: HashScheme) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(items as usize, &mut bytes);
        (0..items).for_each(|item| bytes.extend_from_slice(&scheme.hash(&item).to_u128().to_le_bytes()));
        put_empty(&recipe.make(scheme).unwrap(), &mut bytes);
        bytes
    }

    #[test]
    fn lists_survive_encoding_with_recipe_and_key() -> Result<(), BuildError> {
        let scheme = HashScheme::Keyed { key: SecretKey::new([7; 16]) };
        for recipe in recipes()? {
            for items in [0, 1, 20] {
                let bytes = stored(items, &recipe, scheme);
                assert!(bytes.len() < 600 + items as usize * HASH_BYTES, "{recipe:?}: {}", bytes.len());
                let served = load(&bytes).unwrap();
                assert_eq!(load(&as_at_first(items, &recipe, scheme)).unwrap().scheme, scheme);
                assert_eq!(served.recipe.as_deref(), Some(&recipe));
                assert_eq!(served.scheme, scheme);
                assert_eq!(served.items(), items);
                for item in 0..items {
                    assert!(served.may_contain(&item.to_le_bytes(), 0));
                }
                assert!(!served.may_contain(b"stranger", 0));
            }
        }
        Ok(())
    }

    #[test]
    fn truncated_or_oversized_bytes_are_refused() -> Result<(), BuildError> {
        for recipe in recipes()? {
            let bytes = stored(20, &recipe, HashScheme::fast(1));
            for end in 0..bytes.len() {
                assert!(load(&bytes[..end]).is_err(), "cut at {end}");
            }
            assert!(load(&[&bytes[..], &[0]].concat()).is_err());
            for at in [0, 4 + 20 * HASH_BYTES, 22 + 20 * HASH_BYTES, 26 + 20 * HASH_BYTES] {
                let mut forged = bytes.clone();
                forged[at..at + 4].fill(0xff);
                assert!(load(&forged).is_err(), "number at {at}");
            }
        }
        Ok(())
    }
}
