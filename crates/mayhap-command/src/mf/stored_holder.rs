//! The value of an `MF.*` name as the bytes of a snapshot: the generation that serves, the next one, and
//! their recipes. A load continues after a restart, and so does a build.
//!
//! ```text
//! holder    generation u32 │ made ms u64 │ next │ served
//! next      0 u8  or  1 u8 │ build  or  2 u8 │ all bytes u64 │ length u64 │ the bytes that arrived
//!           or  3 u8 │ changes it lacks u64 │ length u64 │ why │ build  or  4 u8 │ kind of loss u8 │ next: its replacement
//! build     length u64 │ served │ items u64 │ hashes, 16 bytes each
//! served    body u8: 0 nothing, 1 a list, 2 a filter │ recipe │ a tiny filter of length u32 with the hash scheme, if 0
//!           │ the list or the filter, to the end
//! recipe    0 u8: none │ 1 u8: that of the filter │ 2 u8: kind u8 │ bits u8 │ capacity known u8 │ capacity u64 │ rate f64
//!           │ 3 u8: length u32 │ as an empty list │ 4 u8: limit of a set of fingerprints u64, all ones for none
//! ```
//!
//! The filter is at the end, so that a large one can be written piece by piece.

use std::sync::Arc;

use mayhap::{Bloom, BloomShape, DecodeError, Filter, HashScheme, ItemHash, WellMixed};

use super::body::Body;
use super::build::{Building, Missed};
use super::holder::{Holder, Next, Side};
use super::list::List;
use super::load::Load;
use super::recipe::{Recipe, StaticKind, StaticRecipe};
use super::served::Served;
use super::stored_list;
use crate::lost::Lost;

const NONE: u8 = 0;
const BUILDING: u8 = 1;
const LOADING: u8 = 2;
const LACKING: u8 = 3;
const REPLACING: u8 = 4;
const LIST: u8 = 1;
const FILTER: u8 = 2;
const RECIPE_OF_FILTER: u8 = 1;
const RECIPE_FIXED: u8 = 2;
const RECIPE_LISTED: u8 = 3;
const RECIPE_FINGERPRINTS: u8 = 4;
const HASH_BYTES: usize = size_of::<u128>();

fn bad(field: &'static str, got: u64) -> DecodeError {
    DecodeError::BadField { field, got }
}

/// Appends everything except the filter that serves. The caller writes that filter after it.
pub(super) fn head(holder: &mut Holder, out: &mut Vec<u8>) {
    let (generation, created_ms) = holder.history();
    out.extend_from_slice(&generation.to_le_bytes());
    out.extend_from_slice(&created_ms.to_le_bytes());
    if let Some(lost) = holder.lost() {
        out.extend_from_slice(&[REPLACING, lost as u8]);
    }
    match holder.side.as_mut().and_then(|side| side.next.as_mut()) {
        None => out.push(NONE),
        Some(Next::Building(building)) => {
            let (served, hashes, missed) = building.parts_mut();
            match missed {
                None => out.push(BUILDING),
                Some(missed) => {
                    out.push(LACKING);
                    out.extend_from_slice(&missed.changes.to_le_bytes());
                    put(missed.why.as_bytes(), out);
                }
            }
            let mut bytes = Vec::new();
            served_head(served, &mut bytes);
            served.body.encode(&mut bytes);
            put(&bytes, out);
            let items: usize = hashes.iter().map(|some| some.len()).sum();
            out.extend_from_slice(&(items as u64).to_le_bytes());
            hashes
                .into_iter()
                .flatten()
                .for_each(|hash| out.extend_from_slice(&hash.to_u128().to_le_bytes()));
        }
        Some(Next::Loading(load)) => {
            out.push(LOADING);
            let (total, bytes) = load.parts();
            out.extend_from_slice(&total.to_le_bytes());
            put(bytes, out);
        }
    }
    served_head(&holder.served, out);
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a whole list, or the part in front of a filter.
fn served_head(served: &Served, out: &mut Vec<u8>) {
    out.push(match served.body {
        Body::Nothing => NONE,
        Body::List(_) => LIST,
        _ => FILTER,
    });
    put_recipe(served, out);
    match (&served.body, &served.recipe) {
        (Body::Nothing, _) => {
            let tiny = tiny(served.scheme).unwrap_or_default();
            out.extend_from_slice(&(tiny.len() as u32).to_le_bytes());
            out.extend_from_slice(&tiny);
        }
        (Body::List(list), Some(recipe)) => {
            // Writing to memory does not fail. An empty filter that there is no memory for is refused when it
            // is read.
            let _ = stored_list::store(list, recipe, served.scheme, out);
        }
        _ => {}
    }
}

fn put_recipe(served: &Served, out: &mut Vec<u8>) {
    match served.recipe.as_deref() {
        None => out.push(NONE),
        // The encoded filter does not contain the limit.
        Some(Recipe::Fingerprints { limit_bytes }) => {
            out.push(RECIPE_FINGERPRINTS);
            out.extend_from_slice(&limit_bytes.unwrap_or(u64::MAX).to_le_bytes());
        }
        Some(recipe) if served.body.recipe().is_some_and(|own| own.makes_what(recipe)) => {
            out.push(RECIPE_OF_FILTER);
        }
        // The list contains it.
        Some(_) if matches!(served.body, Body::List(_)) => out.push(NONE),
        Some(Recipe::Static(fixed)) => {
            let (kind, bits) = match fixed.kind {
                StaticKind::Xor(bits) => (0, bits),
                StaticKind::Fuse(bits) => (1, bits),
                StaticKind::Ribbon => (2, 0),
                StaticKind::Gcs => (3, 0),
            };
            out.extend_from_slice(&[RECIPE_FIXED, kind, bits as u8, u8::from(fixed.capacity.is_some())]);
            out.extend_from_slice(&fixed.capacity.unwrap_or(0).to_le_bytes());
            out.extend_from_slice(&fixed.target_fpr.to_bits().to_le_bytes());
        }
        Some(recipe) => {
            let mut bytes = Vec::new();
            let small = recipe.listed_items().is_some();
            if small && stored_list::store(&List::default(), recipe, served.scheme, &mut bytes).is_ok() {
                out.push(RECIPE_LISTED);
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(&bytes);
            } else {
                out.push(NONE);
            }
        }
    }
}

/// The smallest filter with this hash scheme.
fn tiny(scheme: HashScheme) -> Result<Vec<u8>, mayhap::BuildError> {
    Ok(Bloom::with_shape(BloomShape::for_capacity(1, 0.5)?, scheme)?.encode())
}

/// The number of bytes in front of the filter in the output of [`head`]; all of them if there is no filter.
pub(super) fn head_bytes(bytes: &[u8]) -> Result<usize, DecodeError> {
    let mut rest = bytes;
    take(&mut rest, 12)?;
    take_lost(&mut rest)?;
    skip_next(&mut rest)?;
    let (what, _) = take_served_head(&mut rest)?;
    match what {
        What::Filter => Ok(bytes.len() - rest.len()),
        What::Nothing(_) | What::List => Ok(bytes.len()),
    }
}

/// Reads a holder. Its memory is proportional to these bytes.
pub(super) fn load(bytes: &[u8]) -> Result<Holder, DecodeError> {
    let mut rest = bytes;
    let generation = u32::from_le_bytes(take_array(&mut rest)?);
    let created_ms = u64::from_le_bytes(take_array(&mut rest)?);
    let lost = take_lost(&mut rest)?;
    let next = take_next(&mut rest)?;
    let served = take_served(rest)?;
    let side = (next.is_some() || lost.is_some()).then(|| Box::new(Side { next, dump: None, lost }));
    Ok(Holder::with(served, side).with_history((generation, created_ms)))
}

/// The kind of loss, if the next generation replaces lost data.
fn take_lost(rest: &mut &[u8]) -> Result<Option<Lost>, DecodeError> {
    let [REPLACING, number, behind @ ..] = *rest else { return Ok(None) };
    *rest = behind;
    Lost::from_number(*number).map(Some).ok_or_else(|| bad("kind of loss", (*number).into()))
}

fn skip_next(rest: &mut &[u8]) -> Result<(), DecodeError> {
    match take_array::<1>(rest)? {
        [NONE] => {}
        [tag @ (BUILDING | LACKING)] => {
            if tag == LACKING {
                take_missed(rest)?;
            }
            let length = take_length(rest)?;
            take(rest, length)?;
            let items = take_length(rest)?;
            take(rest, items.saturating_mul(HASH_BYTES))?;
        }
        [LOADING] => {
            take(rest, 8)?;
            let length = take_length(rest)?;
            take(rest, length)?;
        }
        [got] => return Err(bad("next generation", got.into())),
    }
    Ok(())
}

fn take_next(rest: &mut &[u8]) -> Result<Option<Next>, DecodeError> {
    Ok(match take_array::<1>(rest)? {
        [NONE] => None,
        [tag @ (BUILDING | LACKING)] => {
            let missed = if tag == LACKING { Some(take_missed(rest)?) } else { None };
            let length = take_length(rest)?;
            let served = take_served(take(rest, length)?)?;
            let items = take_length(rest)?;
            let hashes = take(rest, items.saturating_mul(HASH_BYTES))?.as_chunks::<HASH_BYTES>().0;
            let hash = |hash: &[u8; HASH_BYTES]| ItemHash::from(WellMixed(u128::from_le_bytes(*hash)));
            Some(Next::Building(Building::of(served, hashes.iter().map(hash).collect(), missed)))
        }
        [LOADING] => {
            let total = u64::from_le_bytes(take_array(rest)?);
            let length = take_length(rest)?;
            let bytes = take(rest, length)?;
            let load = Load::of(total, bytes).ok_or_else(|| bad("bytes of a load", length as u64))?;
            Some(Next::Loading(load))
        }
        [got] => return Err(bad("next generation", got.into())),
    })
}

/// The changes that a build lacks.
fn take_missed(rest: &mut &[u8]) -> Result<Missed, DecodeError> {
    let changes = u64::from_le_bytes(take_array(rest)?);
    let length = take_length(rest)?;
    let why = String::from_utf8_lossy(take(rest, length)?).into_owned();
    Ok(Missed { changes, why })
}

/// The body that serves.
enum What {
    Nothing(HashScheme),
    List,
    Filter,
}

/// The recipe as it was written.
enum Written {
    None,
    OfFilter,
    This(Arc<Recipe>),
}

fn take_served_head(rest: &mut &[u8]) -> Result<(What, Written), DecodeError> {
    let [what] = take_array(rest)?;
    let recipe = match take_array::<1>(rest)? {
        [NONE] => Written::None,
        [RECIPE_OF_FILTER] => Written::OfFilter,
        [RECIPE_FIXED] => Written::This(Recipe::Static(take_fixed(rest)?).shared()),
        [RECIPE_LISTED] => {
            let length = u32::from_le_bytes(take_array(rest)?) as usize;
            let list = stored_list::load(take(rest, length)?)?;
            list.recipe.map_or(Written::None, Written::This)
        }
        [RECIPE_FINGERPRINTS] => {
            let limit = u64::from_le_bytes(take_array(rest)?);
            let limit_bytes = Some(limit).filter(|&limit| limit != u64::MAX);
            Written::This(Recipe::Fingerprints { limit_bytes }.shared())
        }
        [got] => return Err(bad("recipe", got.into())),
    };
    let what = match what {
        NONE => {
            let length = u32::from_le_bytes(take_array(rest)?) as usize;
            let tiny = take(rest, length)?;
            What::Nothing(if length == 0 { HashScheme::fast(0) } else { *Bloom::decode(tiny)?.scheme() })
        }
        LIST => What::List,
        FILTER => What::Filter,
        got => return Err(bad("what serves", got.into())),
    };
    Ok((what, recipe))
}

fn take_served(mut rest: &[u8]) -> Result<Served, DecodeError> {
    let (what, recipe) = take_served_head(&mut rest)?;
    let mut served = match what {
        What::Nothing(scheme) if rest.is_empty() => Served { body: Body::Nothing, recipe: None, scheme },
        What::Nothing(_) => return Err(DecodeError::TrailingBytes { extra: rest.len() as u64 }),
        What::List => return stored_list::load(rest),
        What::Filter => Served::loaded(Filter::decode(rest)?),
    };
    served.recipe = match recipe {
        Written::None => None,
        Written::OfFilter => served.body.recipe().map(Recipe::shared),
        Written::This(recipe) => Some(recipe),
    };
    if let (Some(Recipe::Fingerprints { limit_bytes }), Body::Plain(filter)) =
        (served.recipe.as_deref(), &mut served.body)
        && let Filter::Fingerprints(set) = &mut **filter
    {
        set.set_memory_limit_bytes(limit_bytes.unwrap_or(u64::MAX));
    }
    Ok(served)
}

fn take_fixed(rest: &mut &[u8]) -> Result<StaticRecipe, DecodeError> {
    let [kind, bits, known] = take_array(rest)?;
    let kind = match (kind, bits) {
        (0, 8 | 16 | 32) => StaticKind::Xor(bits.into()),
        (1, 8 | 16 | 32) => StaticKind::Fuse(bits.into()),
        (2, 0) => StaticKind::Ribbon,
        (3, 0) => StaticKind::Gcs,
        _ => return Err(bad("kind of a set", kind.into())),
    };
    let capacity = u64::from_le_bytes(take_array(rest)?);
    let target_fpr = f64::from_bits(u64::from_le_bytes(take_array(rest)?));
    if !(target_fpr > 0.0 && target_fpr < 1.0) {
        return Err(bad("rate", target_fpr.to_bits()));
    }
    Ok(StaticRecipe { kind, capacity: (known != 0).then_some(capacity), target_fpr })
}

fn take_length(rest: &mut &[u8]) -> Result<usize, DecodeError> {
    let length = u64::from_le_bytes(take_array(rest)?);
    usize::try_from(length).map_err(|_| bad("length", length))
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], DecodeError> {
    let too_short = DecodeError::TooShort { need: N as u64, got: rest.len() as u64 };
    let (taken, behind) = rest.split_first_chunk().ok_or(too_short)?;
    *rest = behind;
    Ok(*taken)
}

fn take<'b>(rest: &mut &'b [u8], bytes: usize) -> Result<&'b [u8], DecodeError> {
    let too_short = DecodeError::TooShort { need: bytes as u64, got: rest.len() as u64 };
    let (taken, behind) = rest.split_at_checked(bytes).ok_or(too_short)?;
    *rest = behind;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mayhap::{
        BlockedShape, BuildError, CountingShape, CuckooShape, DLeftShape, DualShape, GrowableCuckooShape,
        GrowingShape, QuotientShape, ScalableCuckooShape, ScalableShape, SecretKey, WindowShape,
    };

    fn recipes() -> Result<Vec<Recipe>, BuildError> {
        Ok(vec![
            Recipe::Bitmap { low: 0, high: 100 },
            Recipe::Bitmap { low: 17, high: 5_000 },
            Recipe::Bloom(BloomShape::for_capacity(60_000, 0.01)?),
            Recipe::Blocked(BlockedShape::for_capacity(60_000, 0.01)?),
            Recipe::Counting(CountingShape::for_capacity(100, 0.01)?),
            Recipe::Dual(DualShape::for_capacity(100, 20, 0.01)?),
            Recipe::Scalable(ScalableShape::for_capacity(100_000, 0.01)?),
            Recipe::DLeft(DLeftShape::for_capacity(100, 0.01)?),
            Recipe::Cuckoo(CuckooShape::for_capacity(100, 0.01)?),
            Recipe::GrowableCuckoo(GrowableCuckooShape::for_growth(100, 10_000, 0.01)?),
            Recipe::Quotient(QuotientShape::for_capacity(100, 0.01)?),
            Recipe::Growing(GrowingShape::for_capacity(100, 0.01)?),
            Recipe::Window(WindowShape::of_items(100, 0.01)?),
            Recipe::ScalableCuckoo(ScalableCuckooShape::for_capacity(100)?),
            Recipe::Fingerprints { limit_bytes: None },
            Recipe::Fingerprints { limit_bytes: Some(5_000) },
            Recipe::Static(StaticRecipe { kind: StaticKind::Fuse(16), capacity: None, target_fpr: 0.01 }),
        ])
    }

    #[test]
    fn recipes_survive_encoding() -> Result<(), BuildError> {
        for recipe in recipes()? {
            for scheme in [HashScheme::fast(3), HashScheme::keyed(SecretKey::new([7; 16]))] {
                let mut filter = recipe.make(scheme)?;
                if !recipe.is_static() {
                    (17..60_u64).for_each(|item| drop(filter.insert(&item)));
                }
                let served = Served { body: Body::of(filter), recipe: Some(recipe.shared()), scheme };
                let mut holder = Holder::with(served, None).with_history((3, 4));
                let mut bytes = Vec::new();
                head(&mut holder, &mut bytes);
                let at = bytes.len();
                holder.served.body.encode(&mut bytes);
                assert_eq!(head_bytes(&bytes), Ok(at), "{recipe:?}");
                let loaded = load(&bytes).unwrap();
                let again = loaded.served.recipe.as_ref();
                assert!(again.is_some_and(|again| again.makes_what(&recipe)), "{recipe:?}");
                assert_eq!(loaded.history(), (3, 4));
                for cut in 0..bytes.len() {
                    assert!(load(&bytes[..cut]).is_err(), "{recipe:?} cut at {cut}");
                }
            }
        }
        Ok(())
    }
}
