//! `MF.RESERVE`, `MF.DEL`, `MF.COUNT`, `MF.CARD`, `MF.CLEAR`.

use mayhap::Filter;

use super::body::Body;
use super::holder::Holder;
use super::options::{Options, number};
use super::recipe::Recipe;
use super::refused::{MayhapRefusal, NotReady, unbuildable};
use super::served::Served;
use super::{holder_mut, holder_of};
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Expiry, Request, Slot};
use crate::value::Value;

/// `MF.RESERVE key [option …]`.
pub(super) fn reserve(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    if let Some(value) = slot.get() {
        return Err(MayhapRefusal::Exists { held: value.family() }.into());
    }
    let options = Options::parse(&request.words[2..])?;
    create(slot, &options, options.recipe()?, context)?;
    Ok(Reply::Ok)
}

/// Stores an empty filter in the slot.
pub(super) fn create(
    slot: &mut Slot<'_>,
    options: &Options,
    recipe: Recipe,
    context: &Context<'_>,
) -> Result<(), Refusal> {
    let now_ms = context.environment.now_ms();
    let served = Served::begin(recipe.shared(), options.scheme(context), context)?;
    slot.put(Value::Filter(Box::new(Holder::new(served, now_ms))));
    if let Some(seconds) = options.expire_secs() {
        slot.expire(Expiry::At(now_ms.saturating_add(seconds.saturating_mul(1_000))));
    }
    Ok(())
}

/// `MF.DEL key item`.
pub(super) fn delete(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let holder = holder_mut(slot)?.ok_or(NotReady::Missing)?;
    let served = holder.ready_mut()?;
    let item = request.words[2];
    let exact = matches!(&served.body, Body::Plain(filter) if matches!(**filter, Filter::Bitmap(_)));
    let removed = match &mut served.body {
        Body::Plain(filter) => match (&**filter, number(item)) {
            (Filter::Bitmap(_), Some(number)) => filter.remove(&number),
            (Filter::Bitmap(_), None) => Ok(false),
            _ => filter.remove(item),
        },
        _ => match served.kind() {
            Some(kind) => Err(mayhap::RemoveError::CannotRemove { kind }),
            None => Ok(false),
        },
    };
    let removed = removed.map_err(MayhapRefusal::Remove)?;
    if removed {
        if let (true, Some(number), Some(building)) = (exact, number(item), holder.building_mut()) {
            building.follow_number(number);
        }
        slot.mark_changed();
    }
    Ok(Reply::Boolean(removed))
}

/// `MF.COUNT key item`.
pub(super) fn count(
    request: &Request<'_>,
    value: Option<&Value>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let served = holder_of(value)?.ok_or(NotReady::Missing)?.ready()?;
    let item = request.words[2];
    let copies = match &served.body {
        Body::Plain(filter) => match (&**filter, number(item)) {
            (Filter::Bitmap(_), Some(number)) => filter.count(&number),
            (Filter::Bitmap(_), None) => Some(0),
            _ => filter.count(item),
        },
        _ => None,
    };
    match (copies, served.kind()) {
        (Some(copies), _) => Ok(Reply::count(copies)),
        (None, Some(kind)) => Err(MayhapRefusal::CountsNoCopies { kind }.into()),
        (None, None) => Err(NotReady::Missing.into()),
    }
}

/// `MF.CARD key`.
pub(super) fn card(
    _request: &Request<'_>,
    value: Option<&Value>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let served = holder_of(value)?.ok_or(NotReady::Missing)?.ready()?;
    Ok(Reply::count(super::facts::inserted(served)))
}

/// `MF.CLEAR key`.
pub(super) fn clear(
    _request: &Request<'_>,
    slot: &mut Slot<'_>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    holder_mut(slot)?.ok_or(NotReady::Missing)?.ready_mut()?.clear();
    slot.mark_changed();
    Ok(Reply::Ok)
}

/// `MF.EXPLAIN key item`.
pub(super) fn explain(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let served = holder_mut(slot)?.ok_or(NotReady::Missing)?.ready_mut()?;
    let item = request.words[2];
    let now_ms = context.environment.now_ms();
    let explained = served.with_filter(|filter| -> Result<String, Refusal> {
        if let Filter::Window(_) = filter {
            // Advances the window on a copy: a read-only command must change nothing, because it is not logged.
            let bytes = filter.memory_bytes();
            context.admit(bytes, bytes)?;
            let mut copy = filter.try_clone().map_err(unbuildable)?;
            if let Filter::Window(window) = &mut copy {
                window.advance(now_ms);
            }
            context.budget.release(bytes);
            return Ok(copy.explain(item).reason());
        }
        Ok(match (&*filter, number(item)) {
            (Filter::Bitmap(_), Some(number)) => filter.explain(&number).reason(),
            _ => filter.explain(item).reason(),
        })
    });
    match explained {
        Some(text) => Ok(Reply::Text(text.map_err(unbuildable)??)),
        None => Err(NotReady::Missing.into()),
    }
}
