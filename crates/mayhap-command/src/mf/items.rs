//! `MF.ADD`, `MF.MADD`, `MF.EXISTS`, `MF.MEXISTS`: many items and many requests together.

use mayhap::{BatchBits, ItemHash};

use super::body::Body;
use super::change::create;
use super::holder::Next;
use super::options::Options;
use super::refused::{MayhapRefusal, NotReady};
use super::served::Served;
use super::{holder_mut, holder_of};
use crate::context::Context;
use crate::pipeline::{ITEMS_FROM, ask_all, is_many, refuse_all};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Added, Asked, Ran, Request, Scratch, Slot};
use crate::value::Value;

/// Returns the current generation, if the name has one that answers.
fn served(value: Option<&Value>) -> Result<&Served, Refusal> {
    holder_of(value)?.ok_or(NotReady::Missing)?.ready()
}

/// `MF.EXISTS`, `MF.MEXISTS`.
pub(crate) fn ask(
    requests: &[Request<'_>],
    value: Option<&Value>,
    context: &Context<'_>,
    scratch: &mut Scratch,
    replies: &mut Vec<Reply>,
) -> Asked {
    let served = match served(value) {
        Ok(served) => served,
        Err(refusal) => return refuse_all(requests, &refusal, replies),
    };
    let now_ms = context.environment.now_ms();
    if served.body.takes_hashes() && !matches!(served.body, Body::List(_)) {
        let hash = |item: &[u8]| served.scheme.hash(item);
        let one = |item: &[u8]| served.may_contain(item, now_ms);
        return ask_all(requests, scratch, replies, hash, one, |hashes, answers| {
            served.body.ask_all(hashes, now_ms, answers);
        });
    }
    let mut asked = Asked::default();
    let mut answer = |item: &[u8]| {
        let held = served.may_contain(item, now_ms);
        *(if held { &mut asked.hits } else { &mut asked.misses }) += 1;
        Reply::Boolean(held)
    };
    for request in requests {
        replies.push(match is_many(request) {
            true => Reply::Array(request.words[ITEMS_FROM..].iter().map(|item| answer(item)).collect()),
            false => answer(request.words[ITEMS_FROM]),
        });
    }
    asked
}

/// Runs `MF.ADD` and `MF.MADD` requests that threads can run together: on large Bloom filters, as long as
/// they need not grow.
pub(crate) fn add_together(
    requests: &[Request<'_>],
    value: Option<&Value>,
    mut new: Option<&mut Vec<ItemHash>>,
    scratch: &mut Scratch,
    replies: &mut Vec<Reply>,
) -> Added {
    let served = match served(value) {
        Ok(served) => served,
        Err(refusal) => {
            refuse_all(requests, &refusal, replies);
            return Added::default();
        }
    };
    if let Some(Value::Filter(holder)) = value
        && let Some(Next::Building(_)) = holder.next()
    {
        // Adding to two generations needs exclusive access to the name.
        return Added::none();
    }
    let mut new_items = 0;
    for (done, request) in requests.iter().enumerate() {
        let items = &request.words[ITEMS_FROM..];
        scratch.hashes.clear();
        if !matches!(served.body, Body::Nothing | Body::List(_) | Body::Plain(_)) {
            scratch.hashes.extend(items.iter().map(|item| served.scheme.hash(*item)));
        }
        let (hashes, inserted) = (&scratch.hashes[..], &mut scratch.inserted);
        let added = match &served.body {
            Body::Scalable(filter) if served.body.takes_hashes() => {
                filter.insert_hash_batch(hashes, inserted)
            }
            Body::Bloom(filter) => {
                filter.insert_hash_batch_each(hashes, inserted);
                hashes.len()
            }
            Body::Blocked(filter) => {
                filter.insert_hash_batch_each(hashes, inserted);
                hashes.len()
            }
            _ => return Added { ran: Ran::only(done), new_items },
        };
        new_items += inserted.new_count() as u64;
        scratch.collect_new(new.as_deref_mut());
        if added < items.len() {
            let begun = scratch.inserted.part(0, added);
            return Added { ran: Ran::Rest { done, begun }, new_items };
        }
        replies.push(match is_many(request) {
            true => Reply::Booleans(std::mem::take(&mut scratch.inserted).into_bits()),
            false => Reply::Boolean(scratch.inserted.get(0).unwrap_or(false)),
        });
    }
    Added { ran: Ran::All, new_items }
}

/// Runs one `MF.ADD` or `MF.MADD` with exclusive access to the filter. Every item has its own reply: a
/// refused item does not stop the others.
pub(crate) fn add_alone(
    request: &Request<'_>,
    begun: &BatchBits,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let mut replies = add_items(&request.words[ITEMS_FROM..], begun, slot, context)?;
    match (is_many(request), replies.pop()) {
        (false, Some(Reply::Refused(refusal))) => Err(*refusal),
        (false, Some(reply)) => Ok(reply),
        (_, last) => {
            replies.extend(last);
            Ok(Reply::Array(replies))
        }
    }
}

/// `MF.INSERT name [NOCREATE] [option …] ITEMS item …`. If the filter exists, the options are checked and
/// ignored.
pub(super) fn insert(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let words = &request.words[ITEMS_FROM..];
    let is = |name: &'static str| move |word: &&[u8]| word.eq_ignore_ascii_case(name.as_bytes());
    let at = words.iter().position(|word| is("ITEMS")(word));
    let at = at.ok_or(MayhapRefusal::NeedsOption { option: "ITEMS", kind: "insertion" })?;
    let (given, items) = (&words[..at], &words[at + 1..]);
    if items.is_empty() {
        return Err(MayhapRefusal::NoValue { option: "ITEMS" }.into());
    }
    let mut given = given.to_vec();
    let no_create = given.iter().position(|word| is("NOCREATE")(word)).map(|at| given.remove(at));
    let options = Options::parse(&given)?;
    if slot.get().is_none() {
        if no_create.is_some() {
            return Err(NotReady::Missing.into());
        }
        let recipe = options.recipe()?;
        if recipe.is_static() {
            return Err(NotReady::Unbuilt { kind: recipe.kind() }.into());
        }
        create(slot, &options, recipe, context)?;
    }
    add_items(items, &BatchBits::new(), slot, context).map(Reply::Array)
}

/// Adds `items`. `begun` has the results of the first items, if they are already in the filter.
fn add_items(
    items: &[&[u8]],
    begun: &BatchBits,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Vec<Reply>, Refusal> {
    let holder = holder_mut(slot)?.ok_or(NotReady::Missing)?;
    let mut replies = Vec::with_capacity(items.len());
    // The items that were just inserted through shared access.
    replies.extend(begun.iter().map(Reply::Boolean));
    let (mut changed, mut refused) = (false, Vec::new());
    holder.add(items, begun.len(), context, |outcome| {
        changed |= !matches!(outcome, Ok(false) | Err(_));
        if outcome.is_err() {
            refused.push(items.len() - replies.len());
        }
        replies.push(outcome.map_or_else(Reply::from, Reply::Boolean));
    })?;
    // These also change without a new item: a counting filter stores another copy, a window refreshes the
    // item, and a build accepts items that the current generation already has.
    let takes_copies = holder.building_mut().is_some()
        || !matches!(
            holder.served.body,
            Body::List(_) | Body::Scalable(_) | Body::Bloom(_) | Body::Blocked(_)
        );
    if changed || (takes_copies && replies.iter().any(|reply| matches!(reply, Reply::Boolean(_)))) {
        slot.mark_changed();
    }
    refused.into_iter().for_each(|from_end| slot.leave_out(from_end));
    Ok(replies)
}
