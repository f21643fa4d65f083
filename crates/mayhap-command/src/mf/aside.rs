//! `MF.BUILD name COMMIT` of a set that is built of all its items at once, without having the name meanwhile.
//!
//! A caller with threads asks the holder what [`Aside`] there is to do, does it with nothing locked, and gives it back. `COMMIT` itself, which
//! comes then, finds the set made. Items that are added in between go on being collected; the holder does not take a set that lacks them.

use std::sync::Arc;

use mayhap::{Filter, HashScheme, ItemHash};

use super::holder::Holder;
use super::recipe::StaticRecipe;
use super::refused::unbuildable;
use crate::context::Context;
use crate::refusal::Refusal;
use crate::run::Request;

/// A set to be made of items that no longer change.
#[derive(Debug)]
pub struct Aside {
    pub(super) hashes: Arc<Vec<ItemHash>>,
    pub(super) recipe: StaticRecipe,
    pub(super) scheme: HashScheme,
}

/// Fewer items are built before anything has waited for them.
const FEW: usize = 20_000;
/// Bytes that building takes for each item, beside the hashes and the set itself.
const WORKING_BYTES: u64 = 24;

impl Aside {
    /// The set.
    ///
    /// # Errors
    /// [`Refusal`] where it cannot be had: `COMMIT` will say so.
    pub fn build(&self, context: &Context<'_>) -> Result<Filter, Refusal> {
        set_of(&self.recipe, &self.hashes, self.scheme, context)
    }
}

/// The set of all these items, if there is memory for it.
pub(super) fn set_of(
    recipe: &StaticRecipe,
    hashes: &[ItemHash],
    scheme: HashScheme,
    context: &Context<'_>,
) -> Result<Filter, Refusal> {
    let items = hashes.len() as u64;
    let bytes = recipe.memory_bytes(items.max(1)).map_err(unbuildable)?;
    context.admit(bytes, bytes.saturating_add(items.saturating_mul(WORKING_BYTES)))?;
    recipe.build(hashes, scheme).map_err(unbuildable)
}

/// Is it `MF.BUILD name COMMIT`?
#[must_use]
pub fn is_commit(request: &Request<'_>) -> bool {
    request.command.name == "mf.build"
        && matches!(request.words, [_, _, step] if step.eq_ignore_ascii_case(b"COMMIT"))
}

impl Holder {
    /// What there is to do before `COMMIT`; nothing where that takes no time.
    pub fn begin_aside(&mut self) -> Option<Aside> {
        let aside = self.building_mut()?.aside()?;
        (aside.hashes.len() >= FEW).then_some(aside)
    }

    /// Takes the set that was made, unless the build is another one by now or has more items.
    pub fn end_aside(&mut self, aside: &Aside, built: Filter) -> bool {
        self.building_mut().is_some_and(|building| building.take_built(aside, built))
    }
}
