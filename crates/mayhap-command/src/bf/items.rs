//! `BF.ADD`, `BF.MADD`, `BF.EXISTS`, `BF.MEXISTS`.

use mayhap::{AtomicScalableBloom, BatchBits, BuildError, InsertError, ItemHash, NewItems};

use super::create;
use crate::context::{AdmittedGrowth, Context};
use crate::parameters::MAX_EXPANSION;
use crate::pipeline::{
    GROUP, ITEMS_FROM, ask_all, group, hash_all, is_many, nothing_in, only_item, refuse_all, reply,
};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Added, Asked, Ran, Request, Scratch, Slot};
use crate::value::Value;

/// `BF.EXISTS`, `BF.MEXISTS`: the answer is *no* if the key does not exist or does not hold a Bloom filter.
pub(crate) fn ask(
    requests: &[Request<'_>],
    value: Option<&Value>,
    scratch: &mut Scratch,
    replies: &mut Vec<Reply>,
) -> Asked {
    match value {
        Some(Value::Bloom(filter)) => ask_all(
            requests,
            scratch,
            replies,
            |item| filter.hash(item),
            |item| filter.may_contain_hash(filter.hash(item)),
            |hashes, answers| filter.may_contain_hash_batch(hashes, answers),
        ),
        Some(Value::LoadingBloom(loader)) => {
            refuse_all(requests, &Refusal::half_loaded(loader.progress()), replies)
        }
        _ => nothing_in(requests, replies),
    }
}

/// `BF.ADD`, `BF.MADD`, while the filter exists and need not grow.
pub(crate) fn add_together(
    requests: &[Request<'_>],
    value: Option<&Value>,
    new: Option<&mut Vec<ItemHash>>,
    scratch: &mut Scratch,
    replies: &mut Vec<Reply>,
) -> Added {
    let Some(Value::Bloom(filter)) = value else { return Added::none() };
    if let Some(item) = only_item(requests) {
        let hash = filter.hash(item);
        let Some(is_new) = filter.insert_hash(hash) else { return Added::none() };
        if let (true, Some(new)) = (is_new, new) {
            new.push(hash);
        }
        replies.push(Reply::Boolean(is_new));
        return Added { ran: Ran::All, new_items: is_new.into() };
    }
    let items = |request: &Request<'_>| request.words.len() - ITEMS_FROM;
    add_groups(filter, requests, items, new, scratch, replies)
}

/// Adds the items of many requests. The last `items(request)` words of a request are its items.
pub(super) fn add_groups(
    filter: &AtomicScalableBloom,
    requests: &[Request<'_>],
    items: impl Fn(&Request<'_>) -> usize,
    mut new: Option<&mut Vec<ItemHash>>,
    scratch: &mut Scratch,
    replies: &mut Vec<Reply>,
) -> Added {
    let (mut done, mut new_items) = (0, 0);
    while done < requests.len() {
        let now = group(&requests[done..], &items);
        hash_all(now, &items, &mut scratch.hashes, |item| filter.hash(item));
        let added = filter.insert_hash_batch(&scratch.hashes, &mut scratch.inserted);
        new_items += scratch.inserted.new_count() as u64;
        scratch.collect_new(new.as_deref_mut());
        let mut at = 0;
        for request in now {
            let count = items(request);
            if at + count > added {
                let begun = scratch.inserted.part(at, added - at);
                return Added { ran: Ran::Rest { done, begun }, new_items };
            }
            replies.push(reply(request, count, &scratch.inserted, at));
            done += 1;
            at += count;
        }
    }
    Added { ran: Ran::All, new_items }
}

/// `BF.ADD`, `BF.MADD` with exclusive access: the filter may be created and may grow.
pub(crate) fn add_alone(
    request: &Request<'_>,
    begun: &BatchBits,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let booked = Value::booked_bytes(slot.get());
    if slot.get().is_none() {
        slot.put(create::by_default(context)?);
    }
    let mut replies = add(slot, booked, &request.words[ITEMS_FROM..], begun, context)?;
    match is_many(request) {
        true => Ok(Reply::Array(replies)),
        false => Ok(replies.pop().unwrap_or(Reply::Null)),
    }
}

/// Inserts `items` into the existing filter, which took `booked` bytes before the request. `begun` has the results of the first items,
/// if they are already in the filter. If the last reply is a refusal, there may be fewer replies than items.
pub(super) fn add(
    slot: &mut Slot<'_>,
    booked: u64,
    items: &[&[u8]],
    begun: &BatchBits,
    context: &Context<'_>,
) -> Result<Vec<Reply>, Refusal> {
    let mut new = (slot.is_logged() && !slot.is_replaced()).then(Vec::new);
    let filter = match slot.get_mut() {
        None => return Err(Refusal::NotFound),
        Some(Value::Bloom(filter)) => filter,
        Some(Value::LoadingBloom(loader)) => return Err(Refusal::half_loaded(loader.progress())),
        Some(_) => return Err(Refusal::WrongType),
    };
    // The filter grows only as far as it was admitted.
    let mut growth = AdmittedGrowth::from(booked);
    let bytes = filter.get_mut().memory_bytes();
    filter.get_mut().limit_memory(Some(bytes));
    let layers = filter.layers();
    let (mut replies, mut changed) = (Vec::with_capacity(items.len()), false);
    let (mut hashes, mut results) = (Vec::new(), NewItems::new());
    'all: for group in items.chunks(GROUP) {
        hashes.clear();
        hashes.extend(group.iter().map(|item| filter.hash(*item)));
        let mut left = &hashes[..];
        while !left.is_empty() {
            let added = filter.insert_hash_batch(left, &mut results);
            changed |= results.new_count() > 0;
            replies.extend(results.iter().map(Reply::Boolean));
            if let Some(new) = &mut new {
                new.extend(left.iter().zip(results.iter()).filter(|(_, new)| *new).map(|(hash, _)| *hash));
            }
            left = &left[added..];
            // The item that needs another layer.
            let [next, rest @ ..] = left else { break };
            match insert_growing(filter, *next, &mut growth, context) {
                Ok(new) => {
                    changed |= new;
                    replies.push(Reply::Boolean(new));
                }
                Err(refusal) => {
                    replies.push(refusal.into());
                    break 'all;
                }
            }
            left = rest;
        }
    }
    filter.get_mut().limit_memory(None);
    let grown = filter.layers() != layers;
    if let Some(Reply::Refused(_)) = replies.last() {
        // Neither this item nor any after it.
        (replies.len() - 1..items.len()).for_each(|at| slot.leave_out(items.len() - at));
    }
    match new {
        Some(new) if changed && !grown => slot.mark_items(new),
        _ if changed => slot.mark_changed(),
        _ => {}
    }
    for (reply, was_new) in replies.iter_mut().zip(begun.iter()) {
        if was_new {
            *reply = Reply::Boolean(true);
        }
    }
    Ok(replies)
}

/// Inserts an item that needs another layer, if there is memory for it.
fn insert_growing(
    filter: &mut AtomicScalableBloom,
    hash: ItemHash,
    growth: &mut AdmittedGrowth,
    context: &Context<'_>,
) -> Result<bool, Refusal> {
    let filter = filter.get_mut();
    let refused = match filter.insert_hash(hash) {
        Err(InsertError::CannotGrow { cause: BuildError::TooLarge { bytes, .. }, .. })
            if filter.shape().grows() =>
        {
            // Such an expansion can only come from a loaded filter. The filter answers, but cannot grow.
            if filter.shape().growth_factor() > MAX_EXPANSION as f64 {
                return Err(Refusal::ProblemInserting);
            }
            match growth.to(bytes.saturating_add(size_of::<AtomicScalableBloom>() as u64), context) {
                Ok(()) => {
                    filter.limit_memory(Some(bytes));
                    filter.insert_hash(hash)
                }
                Err(Refusal::OutOfMemory) => return Err(Refusal::OutOfMemory),
                Err(_) => return Err(Refusal::ProblemInserting),
            }
        }
        outcome => outcome,
    };
    let grows = filter.shape().grows();
    refused.map_err(|_| if grows { Refusal::ProblemInserting } else { Refusal::NonScalingFull })
}
