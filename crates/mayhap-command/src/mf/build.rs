//! `MF.BUILD key BEGIN | ADD | COMMIT | ABORT | INFO`: builds a new generation while the current one answers, and swaps it in atomically.
//!
//! While a build is open, the key works as usual, and **every acknowledged change to the current generation reaches the build as well**:
//! items of `MF.ADD` and `MF.MADD`, and the sources of `MF.MERGE`. So a *no* after `COMMIT` is certain for every item that was added since
//! `BEGIN`, by any of these commands, and not removed since.
//!
//! * If the build cannot apply a change (it is full, has another shape, or there is no memory), the change is missing from it. From then on
//!   `ADD` and `COMMIT` are refused, and the current generation stays.
//! * `MF.DEL` removes nothing from the build: an item that was not added to it may share its place with other items, which would be lost. An
//!   item that stays is at worst a false positive. Bitmaps are exact, so the number is removed from both. `MF.CLEAR` does not change the
//!   build.
//! * `MF.LOAD` and another `BEGIN` are refused. Commands that replace or delete the whole key end the build: `COMMIT` finds none.
//!
//! A static filter collects the hashes of its items, sixteen bytes each, and is built by `COMMIT`. That takes some 50 to 200 ns per item.
//! The server does it without holding a lock, see [`Aside`]. Without another thread, the key does not answer meanwhile.

use std::sync::Arc;

use mayhap::{Filter, ItemHash};

use super::aside::{Aside, set_of};
use super::body::Body;
use super::holder::{Holder, Next};
use super::options::Options;
use super::recipe::{Recipe, StaticRecipe};
use super::refused::{MayhapRefusal, NotReady};
use super::served::Served;
use super::{facts, give_up, holder_mut, merge};
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Request, Slot};
use crate::value::Value;

/// A generation that is being built.
#[derive(Debug)]
pub(crate) struct Building {
    served: Served,
    /// The hashes of a static filter's items.
    hashes: Arc<Vec<ItemHash>>,
    /// Hashes that arrived while a filter is being built from the others.
    late: Vec<ItemHash>,
    /// The filter of all hashes, if it was built ahead of `COMMIT`.
    built: Option<Box<Filter>>,
    missed: Option<Box<Missed>>,
}

/// Changes to the current generation that a build could not apply.
#[derive(Debug)]
pub(crate) struct Missed {
    /// The number of changes: items, or merges.
    pub(crate) changes: u64,
    /// The error of the first of them.
    pub(crate) why: String,
}

impl Building {
    pub(crate) fn memory_bytes(&self) -> u64 {
        let missed = self.missed.as_ref().map_or(0, |missed| size_of::<Missed>() + missed.why.capacity());
        let hashes = (self.hashes.capacity() + self.late.capacity()) * size_of::<ItemHash>();
        let built = self.built.as_ref().map_or(0, |built| built.memory_bytes());
        self.served.body.memory_bytes() + built + (hashes + missed) as u64
    }

    /// A build with these parts.
    pub(crate) fn of(served: Served, hashes: Vec<ItemHash>, missed: Option<Missed>) -> Self {
        let hashes = Arc::new(hashes);
        Self { served, hashes, late: Vec::new(), built: None, missed: missed.map(Box::new) }
    }

    /// The generation being filled, the hashes of a static filter's items, and the changes it lacks.
    pub(crate) fn parts_mut(&mut self) -> (&mut Served, [&[ItemHash]; 2], Option<&Missed>) {
        (&mut self.served, [&self.hashes, &self.late], self.missed.as_deref())
    }

    /// Inserts `items` that the current generation has accepted.
    pub(crate) fn follow(&mut self, items: &[&[u8]], context: &Context<'_>) {
        let (refused, outcome) = self.add(items, context);
        if let Err(why) = outcome {
            self.miss(refused.len() as u64, why.to_string());
        }
    }

    /// Merges what the current generation was merged with.
    pub(crate) fn follow_merge(&mut self, others: &[&Served], context: &Context<'_>) {
        if let (Some(_), Some(kind)) = (self.fixed(), self.served.kind()) {
            return self.miss(1, format!("a {kind} is built from items, not from filters"));
        }
        match self.united(others, context) {
            Ok(filter) => self.served.body = Body::of(filter),
            Err(why) => self.miss(1, why.to_string()),
        }
    }

    fn united(&self, others: &[&Served], context: &Context<'_>) -> Result<Filter, Refusal> {
        let mut united = merge::copy(&self.served, context)?;
        others.iter().try_for_each(|other| merge::unite(&mut united, other, context))?;
        Ok(united)
    }

    /// Removes a number that was removed from the current bitmap.
    pub(crate) fn follow_number(&mut self, number: u64) {
        if let Body::Plain(filter) = &mut self.served.body
            && let Filter::Bitmap(_) = **filter
        {
            // A number outside its range was never a member.
            let _ = filter.remove(&number);
        }
    }

    fn miss(&mut self, changes: u64, why: String) {
        let why = why.strip_prefix("ERR ").map(str::to_owned).unwrap_or(why);
        let missed = self.missed.get_or_insert_with(|| Box::new(Missed { changes: 0, why }));
        missed.changes = missed.changes.saturating_add(changes);
    }

    /// Checks that it has all changes made during the build. A replay skips the check: the request was allowed once.
    fn complete(&self, context: &Context<'_>) -> Result<(), Refusal> {
        match &self.missed {
            Some(missed) if context.limits.bound_by_settings => {
                Err(MayhapRefusal::Missed { changes: missed.changes, why: missed.why.clone() }.into())
            }
            _ => Ok(()),
        }
    }

    fn fixed(&self) -> Option<&StaticRecipe> {
        match self.served.recipe.as_deref() {
            Some(Recipe::Static(fixed)) => Some(fixed),
            _ => None,
        }
    }

    fn inserted(&self) -> u64 {
        match self.fixed() {
            Some(_) => (self.hashes.len() + self.late.len()) as u64,
            None => facts::inserted(&self.served),
        }
    }

    /// Inserts `items` and returns those that it did not accept.
    fn add(&mut self, items: &[&[u8]], context: &Context<'_>) -> (Vec<usize>, Result<(), Refusal>) {
        if self.fixed().is_none() {
            let (mut at, mut refused, mut why) = (0, Vec::new(), None);
            self.served.add(items, context, |outcome| {
                if let Err(refusal) = outcome {
                    refused.push(at);
                    why.get_or_insert(refusal);
                }
                at += 1;
            });
            return (refused, why.map_or(Ok(()), Err));
        }
        match self.collect(items, context) {
            Ok(()) => (Vec::new(), Ok(())),
            refused => ((0..items.len()).collect(), refused),
        }
    }

    /// Appends the hashes of all `items`, or none.
    fn collect(&mut self, items: &[&[u8]], context: &Context<'_>) -> Result<(), Refusal> {
        let hashes = match Arc::get_mut(&mut self.hashes) {
            Some(hashes) => hashes,
            // A filter is being built from them.
            None => &mut self.late,
        };
        let free = hashes.capacity() - hashes.len();
        if free < items.len() {
            let more = items.len().max(hashes.len() / 2);
            let bytes = |hashes: usize| (hashes * size_of::<ItemHash>()) as u64;
            context.admit(bytes(hashes.len() + more), bytes(more))?;
            hashes.try_reserve_exact(more).map_err(|_| Refusal::OutOfMemory)?;
        }
        let scheme = self.served.scheme;
        hashes.extend(items.iter().map(|item| scheme.hash(*item)));
        self.built = None;
        Ok(())
    }

    /// Appends the late hashes to the others, unless a filter is being built from those.
    fn gather(&mut self) -> Option<&Arc<Vec<ItemHash>>> {
        if !self.late.is_empty() {
            let hashes = Arc::get_mut(&mut self.hashes)?;
            hashes.try_reserve(self.late.len()).ok()?;
            hashes.append(&mut self.late);
            self.late = Vec::new();
        }
        Some(&self.hashes)
    }

    /// The recipe and hashes of a filter to build; `None` if there is nothing to build.
    pub(super) fn aside(&mut self) -> Option<Aside> {
        let (recipe, scheme) = (*self.fixed()?, self.served.scheme);
        if self.missed.is_some() || self.built.is_some() {
            return None;
        }
        Some(Aside { hashes: Arc::clone(self.gather()?), recipe, scheme })
    }

    /// Stores the filter that was built, if it has all hashes.
    pub(super) fn take_built(&mut self, aside: &Aside, built: Filter) -> bool {
        let all = self.late.is_empty() && Arc::ptr_eq(&self.hashes, &aside.hashes);
        if all {
            self.built = Some(Box::new(built));
        }
        all
    }

    /// Returns the generation to swap in. On an error the build is unchanged.
    fn finish(&mut self, context: &Context<'_>) -> Result<Served, Refusal> {
        let (recipe, scheme) = (self.served.recipe.clone(), self.served.scheme);
        let body = match (self.fixed().copied(), self.built.take()) {
            (None, _) => std::mem::replace(&mut self.served.body, Body::Nothing),
            (_, Some(built)) => Body::of(*built),
            (Some(fixed), None) => Body::of(match self.gather() {
                Some(hashes) => set_of(&fixed, hashes, scheme, context)?,
                None => {
                    let bytes = ((self.hashes.len() + self.late.len()) * size_of::<ItemHash>()) as u64;
                    context.admit(bytes, bytes)?;
                    set_of(&fixed, &[&self.hashes[..], &self.late].concat(), scheme, context)?
                }
            }),
        };
        Ok(Served { body, recipe, scheme })
    }
}

/// `MF.BUILD key subcommand …`.
pub(super) fn build(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let (step, words) = (request.words[2], &request.words[3..]);
    let is = |name: &str| step.eq_ignore_ascii_case(name.as_bytes());
    let arity = |fits: bool| {
        if fits { Ok(()) } else { Err(Refusal::WrongArity { command: request.command.name }) }
    };
    match () {
        () if is("BEGIN") => begin(words, slot, context),
        () if is("ADD") => {
            arity(!words.is_empty())?;
            let building = building_mut(slot)?;
            building.complete(context)?;
            let (refused, outcome) = building.add(words, context);
            let inserted = building.inserted();
            if refused.len() < words.len() {
                slot.mark_changed();
                refused.into_iter().for_each(|at| slot.leave_out(words.len() - at));
            }
            outcome.map(|()| Reply::count(inserted))
        }
        () if is("COMMIT") => {
            arity(words.is_empty())?;
            commit(slot, context)
        }
        () if is("ABORT") => {
            arity(words.is_empty())?;
            abort(slot)
        }
        () if is("INFO") => {
            arity(words.is_empty())?;
            info(slot)
        }
        () => Err(MayhapRefusal::UnknownStep { word: MayhapRefusal::quote(step) }.into()),
    }
}

fn begin(words: &[&[u8]], slot: &mut Slot<'_>, context: &Context<'_>) -> Result<Reply, Refusal> {
    let options = Options::parse(words)?;
    let holder = holder_mut(slot)?;
    if let Some(next) = holder.as_ref().and_then(|holder| holder.next()) {
        let with = if matches!(next, Next::Building(_)) { "build" } else { "load" };
        return Err(MayhapRefusal::Busy { with }.into());
    }
    let same = holder.as_ref().and_then(|holder| {
        let recipe = holder.served.recipe.clone()?;
        options.is_empty().then_some((recipe, holder.served.scheme))
    });
    let (recipe, scheme) = match same {
        Some(same) => same,
        None => (options.recipe()?.shared(), options.scheme(context)),
    };
    let building = Building::of(Served::begin(recipe, scheme, context)?, Vec::new(), None);
    let next = Next::Building(building);
    match holder {
        Some(holder) => *holder.next_mut() = Some(next),
        None => {
            let holder = Holder::awaiting(next, context.environment.now_ms());
            slot.put(Value::Filter(Box::new(holder)));
        }
    }
    slot.mark_changed();
    Ok(Reply::Ok)
}

fn building_mut<'s>(slot: &'s mut Slot<'_>) -> Result<&'s mut Building, Refusal> {
    let holder = holder_mut(slot)?.ok_or(NotReady::Missing)?;
    match holder.side.as_mut().and_then(|side| side.next.as_mut()) {
        Some(Next::Building(building)) => Ok(building),
        _ => Err(MayhapRefusal::NoBuild.into()),
    }
}

fn commit(slot: &mut Slot<'_>, context: &Context<'_>) -> Result<Reply, Refusal> {
    let building = building_mut(slot)?;
    building.complete(context)?;
    let served = building.finish(context)?;
    let holder = holder_mut(slot)?.ok_or(NotReady::Missing)?;
    holder.take_next();
    let generation = holder.serve(served, context.environment.now_ms());
    slot.mark_changed();
    Ok(Reply::Integer(generation.into()))
}

/// Cancels the next generation: a build or a load.
fn abort(slot: &mut Slot<'_>) -> Result<Reply, Refusal> {
    let holder = holder_mut(slot)?.ok_or(NotReady::Missing)?;
    if holder.take_next().is_none() {
        return Err(MayhapRefusal::NoBuild.into());
    }
    if !holder.is_ready() && holder.served.recipe.is_none() {
        give_up(slot);
    }
    slot.mark_changed();
    Ok(Reply::Ok)
}

fn info(slot: &mut Slot<'_>) -> Result<Reply, Refusal> {
    let building = building_mut(slot)?;
    let numbers = facts::of(&building.served, crate::health::glance());
    let kind = building.served.kind().map_or("", mayhap::Kind::name);
    let pair = |name: &str, value| (Reply::bulk(name), value);
    Ok(Reply::Map(vec![
        pair("kind", Reply::bulk(kind)),
        pair("capacity", Reply::count(numbers.capacity)),
        pair("inserted", Reply::count(building.inserted())),
        pair("target_fpr", Reply::Double(numbers.target_fpr)),
        pair("memory_bytes", Reply::count(building.memory_bytes())),
        pair("missed", Reply::count(building.missed.as_ref().map_or(0, |missed| missed.changes))),
    ]))
}
