//! `MF.BUILD key COMMIT` of a static filter, without locking the key while the filter is built.
//!
//! A caller with threads asks the holder for an [`Aside`], builds it without holding a lock, and hands the filter back. The `COMMIT` that
//! follows finds the filter ready. Items added in between are still collected; the holder rejects a filter that lacks them.

use std::sync::Arc;

use mayhap::{Filter, HashScheme, ItemHash};

use super::holder::Holder;
use super::recipe::StaticRecipe;
use super::refused::unbuildable;
use crate::context::Context;
use crate::names;
use crate::refusal::Refusal;
use crate::run::Request;

/// A static filter to build from hashes that no longer change.
#[derive(Debug)]
pub struct Aside {
    pub(super) hashes: Arc<Vec<ItemHash>>,
    pub(super) recipe: StaticRecipe,
    pub(super) scheme: HashScheme,
}

/// Fewer items are built so fast that building them aside is not worth it.
const FEW: usize = 20_000;
/// Bytes that building needs per item, besides the hashes and the filter itself.
const WORKING_BYTES: u64 = 24;

impl Aside {
    /// Builds the filter.
    ///
    /// # Errors
    /// [`Refusal`] if it cannot be built. `COMMIT` will report the same.
    pub fn build(&self, context: &Context<'_>) -> Result<Filter, Refusal> {
        set_of(&self.recipe, &self.hashes, self.scheme, context)
    }
}

/// Builds the filter of all these items, if there is memory for it.
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

/// Is it `MF.BUILD key COMMIT`?
#[must_use]
pub fn is_commit(request: &Request<'_>) -> bool {
    request.command.name == names::MF_BUILD
        && matches!(request.words, [_, _, step] if step.eq_ignore_ascii_case(b"COMMIT"))
}

impl Holder {
    /// What to build ahead of `COMMIT`; `None` if that takes no time.
    pub fn begin_aside(&mut self) -> Option<Aside> {
        let aside = self.building_mut()?.aside()?;
        (aside.hashes.len() >= FEW).then_some(aside)
    }

    /// Stores the filter that was built, unless the build was replaced or has more items by now.
    pub fn end_aside(&mut self, aside: &Aside, built: Filter) -> bool {
        self.building_mut().is_some_and(|building| building.take_built(aside, built))
    }
}
