//! One generation of a filter: its data, its recipe and its hash scheme.

use std::sync::Arc;

use mayhap::{BuildError, Filter, HashScheme, InsertError, Kind};

use super::body::Body;
use super::list::List;
use super::options::number;
use super::recipe::Recipe;
use super::refused::{MayhapRefusal, unbuildable};
use crate::context::{AdmittedGrowth, Context, ForNow};
use crate::refusal::Refusal;
use crate::work::Work;

/// One generation of a filter.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) body: Body,
    /// `None` for a filter that was loaded.
    pub(crate) recipe: Option<Arc<Recipe>>,
    pub(crate) scheme: HashScheme,
}

impl Served {
    /// An empty generation. A static filter does not exist yet; a small Bloom filter begins as a list.
    pub(crate) fn begin(
        recipe: Arc<Recipe>,
        scheme: HashScheme,
        context: &Context<'_>,
    ) -> Result<Self, Refusal> {
        let body = if recipe.is_static() {
            Body::Nothing
        } else if recipe.listed_items().is_some() {
            Body::List(List::default())
        } else {
            let bytes = recipe.memory_bytes().map_err(unbuildable)?;
            context.admit(bytes, bytes)?;
            Body::of(recipe.make(scheme).map_err(unbuildable)?)
        };
        Ok(Self { body, recipe: Some(recipe), scheme })
    }

    /// A generation of a filter that was loaded.
    pub(crate) fn loaded(filter: Filter) -> Self {
        let scheme = filter.scheme().copied().unwrap_or(HashScheme::fast(0));
        Self { body: Body::of(filter), recipe: None, scheme }
    }

    /// The kind, also of a filter that does not exist yet.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.body.kind().or_else(|| self.recipe.as_ref().map(|recipe| recipe.kind()))
    }

    /// Items in it, by its own count; 0 for a bitmap, whose bits would have to be counted one by one.
    pub(crate) fn items(&self) -> u64 {
        match &self.body {
            Body::Nothing => 0,
            Body::List(list) => list.len() as u64,
            Body::Scalable(filter) => filter.inserted(),
            Body::Bloom(filter) => filter.inserted(),
            Body::Blocked(filter) => filter.inserted(),
            Body::Plain(filter) => match &**filter {
                Filter::Bitmap(_) => 0,
                filter => filter.inserted(),
            },
        }
    }

    /// Looks up one item at time `now_ms`. `false`: certainly not a member. `true`: maybe.
    pub(crate) fn may_contain(&self, item: &[u8], now_ms: u64) -> bool {
        match &self.body {
            Body::Nothing => false,
            Body::List(list) => list.contains(self.scheme.hash(item)),
            Body::Scalable(filter) => filter.may_contain_hash(self.scheme.hash(item)),
            Body::Bloom(filter) => filter.may_contain_hash(self.scheme.hash(item)),
            Body::Blocked(filter) => filter.may_contain_hash(self.scheme.hash(item)),
            Body::Plain(filter) => match &**filter {
                Filter::Bitmap(_) => number(item).is_some_and(|number| filter.may_contain(&number)),
                Filter::Window(window) => window.may_contain_at(item, now_ms),
                filter => filter.may_contain(item),
            },
        }
    }

    /// Inserts `items` in order and passes the result for each to `each`: `true` means certainly new.
    pub(crate) fn add(
        &mut self,
        items: &[&[u8]],
        context: &Context<'_>,
        mut each: impl FnMut(Result<bool, Refusal>),
    ) {
        let mut items = items;
        if let Body::List(_) = self.body {
            items = self.add_to_list(items, context, &mut each);
        }
        if items.is_empty() {
            return;
        }
        let scheme = self.scheme;
        match &mut self.body {
            Body::Nothing | Body::List(_) => {}
            Body::Bloom(filter) => {
                items.iter().for_each(|item| each(Ok(filter.insert_hash(scheme.hash(*item)))));
            }
            Body::Blocked(filter) => {
                items.iter().for_each(|item| each(Ok(filter.insert_hash(scheme.hash(*item)))));
            }
            Body::Scalable(shared) => {
                let filter = shared.get_mut();
                let own = filter.shape().limit_bytes();
                let bytes = filter.memory_bytes();
                let mut growth = AdmittedGrowth::from(bytes);
                filter.limit_memory(Some(bytes));
                for item in items {
                    let hash = scheme.hash(*item);
                    let mut outcome = filter.insert_hash(hash);
                    if let Some(bytes) = more_for(&outcome, own)
                        && growth.to(bytes, context).is_ok()
                    {
                        filter.limit_memory(Some(bytes));
                        outcome = filter.insert_hash(hash);
                    }
                    each(outcome.map_err(|error| refused(error, own, context)));
                }
                filter.limit_memory(own);
            }
            Body::Plain(filter) => add_to_plain(filter, items, context, &mut each),
        }
    }

    /// Inserts as many of `items` as the list can hold. The rest go into the filter that replaces the list; if that cannot be created, they
    /// are refused.
    fn add_to_list<'i>(
        &mut self,
        items: &'i [&'i [u8]],
        context: &Context<'_>,
        each: &mut impl FnMut(Result<bool, Refusal>),
    ) -> &'i [&'i [u8]] {
        let most = self.recipe.as_ref().and_then(|recipe| recipe.listed_items()).unwrap_or(0);
        for (index, item) in items.iter().enumerate() {
            let Body::List(list) = &mut self.body else { return &items[index..] };
            let hash = self.scheme.hash(*item);
            if list.contains(hash) {
                each(Ok(false));
            } else if list.len() < most {
                list.push(hash);
                each(Ok(true));
            } else {
                match self.make_of_list(context) {
                    Ok(()) => return &items[index..],
                    Err(refusal) => each(Err(refusal)),
                }
            }
        }
        &[]
    }

    /// Replaces the list by the filter.
    pub(crate) fn make_of_list(&mut self, context: &Context<'_>) -> Result<(), Refusal> {
        let (Body::List(list), Some(recipe)) = (&self.body, &self.recipe) else { return Ok(()) };
        let bytes = recipe.memory_bytes().map_err(unbuildable)?;
        context.admit(bytes, bytes)?;
        self.body = Body::of(list.filter(recipe, self.scheme).map_err(unbuildable)?);
        Ok(())
    }

    /// Calls `work` with the plain filter. For a list this is a temporary filter: changes to it are lost, unless
    /// [`make_of_list`](Self::make_of_list) was called before.
    pub(crate) fn with_filter<T>(
        &mut self,
        work: impl FnOnce(&mut Filter) -> T,
    ) -> Option<Result<T, BuildError>> {
        if let (Body::List(list), Some(recipe)) = (&self.body, &self.recipe) {
            return Some(list.filter(recipe, self.scheme).map(|mut filter| work(&mut filter)));
        }
        if let Body::Plain(filter) = &mut self.body {
            return Some(Ok(work(filter)));
        }
        let mut filter = std::mem::replace(&mut self.body, Body::Nothing).into_filter()?;
        let outcome = work(&mut filter);
        self.body = Body::of(filter);
        Some(Ok(outcome))
    }

    /// Returns a plain copy of the filter, or `None` if there is none.
    pub(crate) fn copy(&self) -> Option<Result<Filter, BuildError>> {
        match (&self.body, &self.recipe) {
            (Body::List(list), Some(recipe)) => Some(list.filter(recipe, self.scheme)),
            (body, _) => body.copy(),
        }
    }

    /// Returns a copy with all its items.
    pub(crate) fn try_clone(&self) -> Result<Self, BuildError> {
        let body = match &self.body {
            Body::Nothing => Body::Nothing,
            Body::List(list) => Body::List(list.clone()),
            body => match body.copy() {
                Some(copy) => Body::of(copy?),
                None => Body::Nothing,
            },
        };
        Ok(Self { body, recipe: self.recipe.clone(), scheme: self.scheme })
    }

    /// Removes all items. A static filter is unbuilt again.
    pub(crate) fn clear(&mut self) {
        if self.recipe.as_ref().is_some_and(|recipe| recipe.listed_items().is_some()) {
            self.body = Body::List(List::default());
            return;
        }
        let cleared = self.with_filter(Filter::clear);
        if !matches!(cleared, Some(Ok(true))) {
            self.body = Body::Nothing;
        }
    }
}

/// The refusal for an item that did not fit: the text depends on which limit refused it, ours or the filter's own.
fn refused(error: InsertError, own_limit: Option<u64>, context: &Context<'_>) -> Refusal {
    match error {
        InsertError::CannotGrow { cause: BuildError::OutOfMemory { .. }, .. } => Refusal::OutOfMemory,
        InsertError::CannotGrow { cause: BuildError::TooLarge { bytes, .. }, .. }
            if own_limit.is_none_or(|limit| bytes <= limit) =>
        {
            match context.limits.filter_bytes {
                limit if bytes > limit => Refusal::TooLarge { bytes, limit },
                _ => Refusal::OutOfMemory,
            }
        }
        error => MayhapRefusal::Insert(error).into(),
    }
}

/// The number of bytes that a filter would need for an item, if the item was refused for lack of memory and not because of the filter's
/// own limit.
fn more_for(outcome: &Result<bool, InsertError>, own_limit: Option<u64>) -> Option<u64> {
    match outcome {
        Err(InsertError::CannotGrow { cause: BuildError::TooLarge { bytes, .. }, .. })
            if own_limit.is_none_or(|limit| *bytes <= limit) =>
        {
            Some(*bytes)
        }
        _ => None,
    }
}

/// Items whose memory is prefetched together before they are inserted one by one.
const AHEAD: usize = 32;
/// The size from which prefetching pays off.
const AHEAD_FROM_BYTES: u64 = 1 << 20;

fn add_to_plain(
    filter: &mut Filter,
    items: &[&[u8]],
    context: &Context<'_>,
    each: &mut impl FnMut(Result<bool, Refusal>),
) {
    // The filter grows only as far as it was admitted.
    let bytes = filter.memory_bytes();
    let mut growth = AdmittedGrowth::from(bytes);
    let own = limit_growth(filter, Some(bytes));
    if let Filter::Window(window) = filter {
        window.advance(context.environment.now_ms());
    }
    let work = match filter {
        Filter::ScalableCuckoo(cuckoo) => Some(Work::of(cuckoo, items.len(), context)),
        _ => None,
    };
    // The error of a refused item after which other items can still be tried.
    let mut last = None;
    let by_hash = filter.items().is_none();
    match filter.scheme().copied() {
        Some(scheme) if by_hash => {
            let mut answers = mayhap::Answers::new();
            for chunk in items.chunks(AHEAD) {
                let mut hashes = [mayhap::ItemHash::default(); AHEAD];
                for (hash, item) in hashes.iter_mut().zip(chunk) {
                    *hash = scheme.hash(*item);
                }
                let hashes = &hashes[..chunk.len()];
                if chunk.len() > 1 && filter.memory_bytes() >= AHEAD_FROM_BYTES {
                    filter.may_contain_hash_batch(hashes, &mut answers);
                }
                for &hash in hashes {
                    if let (Some(work), Filter::ScalableCuckoo(cuckoo)) = (&work, &*filter)
                        && work.is_spent(cuckoo)
                    {
                        each(Err(last.clone().unwrap_or(Refusal::TooManyMoves)));
                        continue;
                    }
                    let outcome = may_double(filter, &mut growth, context).and_then(|_both| {
                        let mut outcome = filter.insert_hash(hash);
                        if let Some(bytes) = more_for(&outcome, own)
                            && let Ok(_both) = beside(filter, context)
                            && growth.to(bytes, context).is_ok()
                        {
                            limit_growth(filter, Some(bytes));
                            outcome = filter.insert_hash(hash);
                        }
                        outcome.map_err(|error| refused(error, own, context))
                    });
                    if let (Err(refusal), Some(_)) = (&outcome, &work) {
                        last = Some(refusal.clone());
                    }
                    each(outcome);
                }
            }
        }
        _ => {
            for item in items {
                let outcome = match (&*filter, number(item)) {
                    (Filter::Bitmap(_), Some(number)) => filter.insert(&number),
                    (Filter::Bitmap(_), None) => {
                        each(Err(MayhapRefusal::NotANumber.into()));
                        continue;
                    }
                    _ => filter.insert(*item),
                };
                each(outcome.map_err(|error| refused(error, own, context)));
            }
        }
    }
    limit_growth(filter, own);
}

/// Limits how far a filter may grow and returns its old limit. The filter's own limit is part of dumps, so it must be restored.
fn limit_growth(filter: &mut Filter, new: Option<u64>) -> Option<u64> {
    let own = match filter {
        Filter::Growing(filter) => filter.shape().limit_bytes(),
        Filter::ScalableCuckoo(filter) => filter.shape().limit_bytes(),
        Filter::ScalableBloom(filter) => filter.shape().limit_bytes(),
        Filter::Fingerprints(filter) => Some(filter.memory_limit_bytes()).filter(|&limit| limit != u64::MAX),
        _ => return None,
    };
    match filter {
        Filter::Growing(filter) => filter.limit_memory(new),
        Filter::ScalableCuckoo(filter) => filter.limit_memory(new),
        Filter::ScalableBloom(filter) => filter.limit_memory(new),
        Filter::Fingerprints(filter) => filter.set_memory_limit_bytes(new.unwrap_or(u64::MAX)),
        _ => {}
    }
    own
}

/// Admits the present size a second time, while the guard lives, if the filter is about to be rebuilt with twice its size.
fn beside<'a>(filter: &Filter, context: &Context<'a>) -> Result<ForNow<'a>, Refusal> {
    let bytes = match filter {
        Filter::Growing(_) | Filter::GrowableCuckoo(_) => filter.memory_bytes(),
        _ => 0,
    };
    context.budget.admit_for_now(bytes)
}

/// A growable cuckoo filter has no limit of its own: if the next item may double it, the memory must be admitted first.
fn may_double<'a>(
    filter: &Filter,
    growth: &mut AdmittedGrowth,
    context: &Context<'a>,
) -> Result<Option<ForNow<'a>>, Refusal> {
    /// Smaller filters double without a check: they need little memory.
    const SMALL_BYTES: u64 = 4 << 10;
    let Filter::GrowableCuckoo(cuckoo) = filter else { return Ok(None) };
    let (now, doublings) = (cuckoo.memory_bytes(), cuckoo.doublings());
    let near = cuckoo.inserted() >= cuckoo.capacity_now() / 4 * 3 || now < SMALL_BYTES;
    if !near || doublings >= cuckoo.shape().max_doublings() {
        return Ok(None);
    }
    let doubled = cuckoo.shape().memory_bytes(doublings + 1);
    let both = beside(filter, context)?;
    growth.to(doubled, context)?;
    Ok(Some(both))
}
