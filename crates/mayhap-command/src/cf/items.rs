//! `CF.ADD`, `CF.ADDNX`, `CF.EXISTS`, `CF.MEXISTS`, `CF.COUNT`, `CF.DEL`, `CF.COMPACT`.

use mayhap::{BuildError, InsertError, ScalableCuckoo};
use mayhap_formats::redis_cuckoo;

use super::create;
use crate::context::{AdmittedGrowth, Context};
use crate::parameters::Eviction;
use crate::pipeline::{ITEMS_FROM, ask_all, nothing_in, refuse_all};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Request, Scratch, Slot, Together};
use crate::value::Value;
use crate::work::{WORK_PER_ITEM, Work};

/// `CF.EXISTS`, `CF.MEXISTS`: the answer is *no* if the key does not exist or does not hold a cuckoo filter.
pub(crate) fn ask(
    requests: &[Request<'_>],
    value: Option<&Value>,
    scratch: &mut Scratch,
    replies: &mut Vec<Reply>,
) -> Together {
    match value {
        Some(Value::Cuckoo(filter)) => ask_all(
            requests,
            scratch,
            replies,
            |item| filter.hash(item),
            |item| filter.may_contain_hash(filter.hash(item)),
            |hashes, answers| filter.may_contain_hash_batch(hashes, answers),
        ),
        Some(Value::LoadingCuckoo(loader)) => {
            refuse_all(requests, &Refusal::half_loaded(loader.progress()), replies)
        }
        _ => nothing_in(requests, replies),
    }
}

/// `CF.COUNT key item`.
pub(super) fn count(request: &Request<'_>, value: Option<&Value>, _: &Context<'_>) -> Result<Reply, Refusal> {
    match value {
        Some(Value::Cuckoo(filter)) => Ok(Reply::count(redis_cuckoo::count(filter, request.words[2]))),
        Some(Value::LoadingCuckoo(loader)) => Err(Refusal::half_loaded(loader.progress())),
        _ => Ok(Reply::Integer(0)),
    }
}

/// `CF.DEL key item`: removes one copy.
pub(super) fn del(request: &Request<'_>, slot: &mut Slot<'_>, _: &Context<'_>) -> Result<Reply, Refusal> {
    let removed = match slot.get_mut() {
        Some(Value::Cuckoo(filter)) => filter.remove(request.words[2]),
        Some(Value::LoadingCuckoo(loader)) => return Err(Refusal::half_loaded(loader.progress())),
        _ => return Err(Refusal::CuckooItemNotFound),
    };
    if removed {
        slot.mark_changed();
    }
    Ok(Reply::Boolean(removed))
}

/// `CF.COMPACT key`.
pub(super) fn compact(request: &Request<'_>, slot: &mut Slot<'_>, _: &Context<'_>) -> Result<Reply, Refusal> {
    if request.words.len() != 2 {
        return Err(Refusal::WrongArity { command: request.command.name });
    }
    let changed = match slot.get_mut() {
        Some(Value::Cuckoo(filter)) => filter.compact(),
        Some(Value::LoadingCuckoo(loader)) => return Err(Refusal::half_loaded(loader.progress())),
        _ => return Err(Refusal::CuckooNotFound),
    };
    if changed {
        slot.mark_changed();
    }
    Ok(Reply::Ok)
}

/// `CF.ADD key item`.
pub(super) fn add(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    one(request, slot, Copies::Any, context)
}

/// `CF.ADDNX key item`.
pub(super) fn addnx(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    one(request, slot, Copies::One, context)
}

fn one(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    copies: Copies,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let booked = Value::booked_bytes(slot.get());
    if slot.get().is_none() {
        slot.put(create::by_default(context.parameters.cf_initial_size, context)?);
    }
    let mut answer = Ok(Reply::Boolean(false));
    add_all(slot, booked, &request.words[ITEMS_FROM..], copies, context, |outcome| match outcome {
        Outcome::Refused(refusal) => answer = Err(refusal),
        outcome => answer = Ok(Reply::Boolean(outcome == Outcome::Added)),
    })?;
    answer
}

/// How many copies of an item the filter may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copies {
    /// Any number.
    Any,
    /// `NX`: one.
    One,
}

/// The result for an item.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Added,
    /// It may be in the filter already.
    IsIn,
    /// It did not fit.
    Refused(Refusal),
}

/// The default of `MAXITERATIONS`.
const DEFAULT_ITERATIONS: u32 = 20;

/// Inserts `items` into the existing filter, which took `booked` bytes before the request, unless it has its maximum number of
/// sub-filters. As in RedisBloom this is checked once per request, so a request with many items may grow the filter further, but never
/// beyond what can be loaded again. `tell` gets the result for each item.
pub(super) fn add_all(
    slot: &mut Slot<'_>,
    booked: u64,
    items: &[&[u8]],
    copies: Copies,
    context: &Context<'_>,
    mut tell: impl FnMut(Outcome),
) -> Result<(), Refusal> {
    let filter = match slot.get_mut() {
        None => return Err(Refusal::NotFound),
        Some(Value::Cuckoo(filter)) => filter,
        Some(Value::LoadingCuckoo(loader)) => return Err(Refusal::half_loaded(loader.progress())),
        Some(_) => return Err(Refusal::WrongType),
    };
    if filter.tables() as u64 >= context.parameters.cf_max_expansions {
        return Err(Refusal::MaxExpansions);
    }
    let mut growth = AdmittedGrowth::from(booked);
    // A request that was accepted once is accepted again in a replay, whatever it costs.
    let most_tables = match context.limits.bound_by_settings {
        true => context.parameters.max_loaded_tables(),
        false => u64::MAX,
    };
    let mut work = Work::of(filter, items.len(), context);
    // The reply in place of "too many moves": why the filter could not grow when it last had to, or, after that error was sent once, that
    // it is full. A host needs a microsecond for an error, and there may be a million items.
    let mut instead = None;
    let eviction = context.parameters.cf_eviction;
    let add = |item: &&[u8]| {
        let may_grow = may_grow(filter) && (filter.tables() as u64) < most_tables;
        if copies == Copies::One {
            work.ask(filter);
        }
        if work.is_spent(filter) {
            let outcome = add_if_free(filter, item, copies, may_grow);
            return match outcome {
                Outcome::Refused(Refusal::TooManyMoves) => {
                    let why = instead.clone().unwrap_or(Refusal::TooManyMoves);
                    instead.get_or_insert(Refusal::CuckooFull);
                    Outcome::Refused(why)
                }
                outcome => outcome,
            };
        }
        // The filter grows only as far as it was admitted.
        filter.limit_memory(Some(filter.memory_bytes()));
        let mut added = add_one(filter, item, copies, eviction);
        if let Err(InsertError::CannotGrow { cause: BuildError::TooLarge { bytes, .. }, .. }) = added
            && may_grow
        {
            match growth.to(bytes.saturating_add(size_of::<ScalableCuckoo>() as u64), context) {
                Ok(()) => {
                    filter.limit_memory(Some(bytes));
                    // The search for a free slot is over: the new table has some.
                    added = filter.add_table().and_then(|()| add_one(filter, item, copies, eviction));
                }
                Err(refusal) => {
                    let refusal = match refusal {
                        Refusal::OutOfMemory => Refusal::OutOfMemory,
                        _ => Refusal::CuckooInsufficientMemory,
                    };
                    instead = Some(refusal.clone());
                    return Outcome::Refused(refusal);
                }
            }
        }
        match added {
            Ok(true) => Outcome::Added,
            Ok(false) => Outcome::IsIn,
            Err(InsertError::CannotGrow { .. }) if may_grow => {
                Outcome::Refused(Refusal::CuckooInsufficientMemory)
            }
            Err(_) => Outcome::Refused(Refusal::CuckooFull),
        }
    };
    let (mut changed, mut refused) = (false, Vec::new());
    items.iter().map(add).enumerate().for_each(|(at, outcome)| {
        changed |= outcome == Outcome::Added;
        if matches!(outcome, Outcome::Refused(_)) {
            refused.push(items.len() - at);
        }
        tell(outcome);
    });
    filter.limit_memory(None);
    if changed {
        slot.mark_changed();
    }
    refused.into_iter().for_each(|from_end| slot.leave_out(from_end));
    Ok(())
}

/// Inserts an item after the request has used up its work: no moves, no growth, and no search through many tables.
///
/// A filter that cannot grow and has RedisBloom's default number of moves counts as full if the item's buckets have no free slot. A search
/// for a slot, for many items in one request, would delay all other requests.
fn add_if_free(filter: &mut ScalableCuckoo, item: &[u8], copies: Copies, may_grow: bool) -> Outcome {
    if filter.lookup_work() > WORK_PER_ITEM {
        return Outcome::Refused(Refusal::TooManyMoves);
    }
    let hash = filter.hash(item);
    if copies == Copies::One && filter.may_contain_hash(hash) {
        return Outcome::IsIn;
    }
    if filter.insert_copy_hash_if_free(hash) {
        return Outcome::Added;
    }
    let may_grow = may_grow && filter.shape().expansion() > 0;
    match may_grow || filter.shape().max_iterations() > DEFAULT_ITERATIONS {
        true => Outcome::Refused(Refusal::TooManyMoves),
        false => Outcome::Refused(Refusal::CuckooFull),
    }
}

/// Would growth help? If an item finds no room in a filter that is less than an eighth full, it was inserted many times before, or was
/// forged to collide: this layout's hash is public. RedisBloom grows by a whole table for every four copies, until its limit is reached
/// and no items are accepted any more. Here a filter may do so a few times, and small filters without limit.
fn may_grow(filter: &ScalableCuckoo) -> bool {
    const TABLES: usize = 4;
    const SMALL_SLOTS: u64 = 4_096;
    const SHARE: u64 = 8;
    filter.tables() < TABLES
        || filter.capacity() <= SMALL_SLOTS
        || filter.inserted().saturating_mul(SHARE) >= filter.capacity()
}

fn add_one(
    filter: &mut ScalableCuckoo,
    item: &[u8],
    copies: Copies,
    eviction: Eviction,
) -> Result<bool, InsertError> {
    let hash = filter.hash(item);
    if copies == Copies::One && filter.may_contain_hash(hash) {
        return Ok(false);
    }
    match eviction {
        Eviction::RedisBloom => filter.insert_copy_hash(hash)?,
        Eviction::Thorough => filter.insert_copy_hash_thorough(hash)?,
    }
    Ok(true)
}
