//! `MF.BUILD name BEGIN | ADD | COMMIT | ABORT | INFO`: a new generation beside the one that serves, swapped in in one step.
//!
//! A set that never changes collects the hashes of its items, sixteen bytes each, and is built when it is committed. That takes as long as
//! building it takes (some 50 to 200 ns for each item), and the name is not answered meanwhile.

use mayhap::ItemHash;

use super::body::Body;
use super::holder::{Holder, Next};
use super::options::Options;
use super::recipe::{Recipe, StaticRecipe};
use super::refused::{MayhapRefusal, NotReady, unbuildable};
use super::served::Served;
use super::{facts, holder_mut};
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Request, Slot};
use crate::value::Value;

/// A generation that is being built.
#[derive(Debug)]
pub(crate) struct Building {
    served: Served,
    /// Of a set that is built of all its items at once.
    hashes: Vec<ItemHash>,
}

/// Bytes that building takes for each item, beside the hashes and the set itself.
const WORKING_BYTES: u64 = 24;

impl Building {
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.served.body.memory_bytes() + (self.hashes.capacity() * size_of::<ItemHash>()) as u64
    }

    /// The one with these parts.
    pub(crate) const fn of(served: Served, hashes: Vec<ItemHash>) -> Self {
        Self { served, hashes }
    }

    /// What is being filled, and the hashes of a set that is built of all its items at once.
    pub(crate) fn parts_mut(&mut self) -> (&mut Served, &[ItemHash]) {
        (&mut self.served, &self.hashes)
    }

    fn fixed(&self) -> Option<&StaticRecipe> {
        match self.served.recipe.as_deref() {
            Some(Recipe::Static(fixed)) => Some(fixed),
            _ => None,
        }
    }

    fn inserted(&self) -> u64 {
        match self.fixed() {
            Some(_) => self.hashes.len() as u64,
            None => facts::of(&self.served).inserted,
        }
    }

    /// Takes `items` in, and says which of them it did not take.
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

    /// Takes the hashes of all `items`, or none.
    fn collect(&mut self, items: &[&[u8]], context: &Context<'_>) -> Result<(), Refusal> {
        let free = self.hashes.capacity() - self.hashes.len();
        if free < items.len() {
            let more = items.len().max(self.hashes.len() / 2);
            let bytes = |hashes: usize| (hashes * size_of::<ItemHash>()) as u64;
            context.admit(bytes(self.hashes.len() + more), bytes(more))?;
            self.hashes.try_reserve_exact(more).map_err(|_| Refusal::OutOfMemory)?;
        }
        let scheme = self.served.scheme;
        self.hashes.extend(items.iter().map(|item| scheme.hash(*item)));
        Ok(())
    }

    /// What is to serve. Where it cannot be had, the build is as it was.
    fn finish(&mut self, context: &Context<'_>) -> Result<Served, Refusal> {
        let (recipe, scheme) = (self.served.recipe.clone(), self.served.scheme);
        let body = match self.fixed().copied() {
            None => std::mem::replace(&mut self.served.body, Body::Nothing),
            Some(fixed) => {
                let items = self.hashes.len() as u64;
                let bytes = fixed.memory_bytes(items.max(1)).map_err(unbuildable)?;
                context.admit(bytes, bytes.saturating_add(items.saturating_mul(WORKING_BYTES)))?;
                Body::of(fixed.build(&self.hashes, scheme).map_err(unbuildable)?)
            }
        };
        Ok(Served { body, recipe, scheme })
    }
}

/// `MF.BUILD name step …`.
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
    let building = Building { served: Served::begin(recipe, scheme, context)?, hashes: Vec::new() };
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
    let served = building_mut(slot)?.finish(context)?;
    let holder = holder_mut(slot)?.ok_or(NotReady::Missing)?;
    holder.take_next();
    let generation = holder.serve(served, context.environment.now_ms());
    slot.mark_changed();
    Ok(Reply::Integer(generation.into()))
}

/// Gives up what is coming: a build, or a load.
fn abort(slot: &mut Slot<'_>) -> Result<Reply, Refusal> {
    let holder = holder_mut(slot)?.ok_or(NotReady::Missing)?;
    if holder.take_next().is_none() {
        return Err(MayhapRefusal::NoBuild.into());
    }
    if !holder.is_ready() && holder.served.recipe.is_none() {
        slot.take();
    }
    slot.mark_changed();
    Ok(Reply::Ok)
}

fn info(slot: &mut Slot<'_>) -> Result<Reply, Refusal> {
    let building = building_mut(slot)?;
    let numbers = facts::of(&building.served);
    let kind = building.served.kind().map_or("", mayhap::Kind::name);
    let pair = |name: &str, value| (Reply::bulk(name), value);
    Ok(Reply::Map(vec![
        pair("kind", Reply::bulk(kind)),
        pair("capacity", Reply::count(numbers.capacity)),
        pair("inserted", Reply::count(building.inserted())),
        pair("target_fpr", Reply::Double(numbers.target_fpr)),
        pair("memory_bytes", Reply::count(building.memory_bytes())),
    ]))
}
