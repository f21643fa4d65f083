//! `MF.MERGE target source [source …]`: adds the items of the sources to the target.

use mayhap::{Filter, MergeError};

use super::body::Body;
use super::holder::Holder;
use super::refused::{MayhapRefusal, NotReady, unbuildable};
use super::served::Served;
use super::{holder_mut, holder_of};
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Request, Slot, Source};
use crate::value::Value;

/// `MF.MERGE target source [source …]`. An existing target keeps its items; a missing one is created like the first source. All or
/// nothing: the union is built separately from the target.
pub(super) fn merge(
    _request: &Request<'_>,
    slot: &mut Slot<'_>,
    sources: &[Source<'_>],
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let others: Vec<&Served> = sources
        .iter()
        .filter_map(|source| match source {
            Source::Target => None,
            Source::Other(value) => {
                Some(holder_of(*value).and_then(|holder| holder.ok_or(NotReady::Missing)?.ready()))
            }
        })
        .collect::<Result<_, _>>()?;
    let names_target = sources.iter().any(|source| matches!(source, Source::Target));
    let target = match holder_of(slot.get())? {
        Some(holder) => Some(holder.ready()?),
        None if names_target => return Err(NotReady::Missing.into()),
        None => None,
    };
    let (first, rest) = match (target, &others[..]) {
        (Some(target), others) => (target, others),
        (None, [first, rest @ ..]) => (*first, rest),
        (None, []) => return Err(NotReady::Missing.into()),
    };
    if rest.is_empty() && target.is_some() {
        return Ok(Reply::Ok);
    }
    let mut merged = copy(first, context)?;
    for other in rest {
        unite(&mut merged, other, context)?;
    }
    let served = Served { body: Body::of(merged), recipe: first.recipe.clone(), scheme: first.scheme };
    match holder_mut(slot)? {
        Some(holder) => {
            holder.served = served;
            if let Some(building) = holder.building_mut() {
                building.follow_merge(&others, context);
            }
        }
        None => slot.put(Value::Filter(Box::new(Holder::new(served, context.environment.now_ms())))),
    }
    slot.mark_changed();
    Ok(Reply::Ok)
}

/// Bytes of a plain copy.
fn copied_bytes(served: &Served) -> u64 {
    let listed = served.recipe.as_ref().and_then(|recipe| recipe.memory_bytes().ok()).unwrap_or(0);
    served.body.memory_bytes().max(listed)
}

pub(super) fn copy(served: &Served, context: &Context<'_>) -> Result<Filter, Refusal> {
    let bytes = copied_bytes(served);
    context.admit(bytes, bytes)?;
    match served.copy() {
        Some(filter) => filter.map_err(unbuildable),
        None => Err(NotReady::Missing.into()),
    }
}

pub(super) fn unite(merged: &mut Filter, other: &Served, context: &Context<'_>) -> Result<(), Refusal> {
    let before = merged.memory_bytes();
    let outcome = match &other.body {
        Body::Plain(filter) => merged.union(filter),
        _ => {
            let outcome = merged.union(&copy(other, context)?);
            // That copy was dropped.
            context.budget.release(copied_bytes(other));
            outcome
        }
    };
    // Some kinds grow in a merge.
    let after = merged.memory_bytes();
    context.admit(after, after.saturating_sub(before))?;
    outcome.map_err(|error| match error {
        MergeError::Unbuildable(cause) => unbuildable(cause),
        error => MayhapRefusal::Merge(error).into(),
    })
}
