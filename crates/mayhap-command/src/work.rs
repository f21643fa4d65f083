//! Limits the work of one request on a cuckoo filter in RedisBloom's layout: all other requests wait for it.

use mayhap::ScalableCuckoo;

use crate::context::Context;

/// The work that one request may do in total, in units of [`ScalableCuckoo::work`]: at most 50 ms where memory is slow. A request may
/// have any number of items, and may allow up to 65 535 moves per item (`MAXITERATIONS`).
const WORK: u64 = 8_000_000;
/// Additional work per item: enough for the default number of sub-filters and some moves.
pub(crate) const WORK_PER_ITEM: u64 = 100;

/// The work that one request may still do.
pub(crate) struct Work {
    most: u64,
    for_items: u64,
    /// Lookups, which a filter does not count.
    asked: u64,
}

impl Work {
    /// The limit for a request with `items` items.
    pub(crate) const fn of(filter: &ScalableCuckoo, items: usize, context: &Context<'_>) -> Self {
        // A request that was accepted once is accepted again in a replay, whatever it costs.
        let most = match context.limits.bound_by_settings {
            true => filter.work().saturating_add(WORK),
            false => u64::MAX,
        };
        Self { most, for_items: WORK_PER_ITEM.saturating_mul(items as u64), asked: 0 }
    }

    /// Counts a lookup.
    pub(crate) fn ask(&mut self, filter: &ScalableCuckoo) {
        self.asked = self.asked.saturating_add(filter.lookup_work());
    }

    /// Has the request used up its work? If a single lookup costs more than an item's share, items add nothing to the limit.
    pub(crate) fn is_spent(&self, filter: &ScalableCuckoo) -> bool {
        let for_items = if filter.lookup_work() <= WORK_PER_ITEM { self.for_items } else { 0 };
        filter.work().saturating_add(self.asked) > self.most.saturating_add(for_items)
    }
}
