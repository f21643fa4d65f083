//! How much one request may have a cuckoo filter of RedisBloom's layout work: everyone else waits for it.

use mayhap::ScalableCuckoo;

use crate::context::Context;

/// What one request may ask for in all, in units of [`ScalableCuckoo::work`]: at most 50 ms where memory is slow. A request may say how many
/// moves each of its items is worth (`MAXITERATIONS`), up to 65 535, and has any number of items.
const WORK: u64 = 8_000_000;
/// And this for each of its items: the tables that there are by default, and some moves.
pub(crate) const WORK_PER_ITEM: u64 = 100;

/// What one request may still ask for.
pub(crate) struct Work {
    most: u64,
    for_items: u64,
    /// Questions about items, which a filter does not count.
    asked: u64,
}

impl Work {
    /// For a request of `items` items.
    pub(crate) const fn of(filter: &ScalableCuckoo, items: usize, context: &Context<'_>) -> Self {
        // What was taken once is taken again, whatever it costs.
        let most = match context.limits.bound_by_settings {
            true => filter.work().saturating_add(WORK),
            false => u64::MAX,
        };
        Self { most, for_items: WORK_PER_ITEM.saturating_mul(items as u64), asked: 0 }
    }

    /// A question about an item is asked.
    pub(crate) fn ask(&mut self, filter: &ScalableCuckoo) {
        self.asked = self.asked.saturating_add(filter.lookup_work());
    }

    /// Has it done what one request may? Where a single question takes more than is there for an item, items bring nothing along.
    pub(crate) fn is_spent(&self, filter: &ScalableCuckoo) -> bool {
        let for_items = if filter.lookup_work() <= WORK_PER_ITEM { self.for_items } else { 0 };
        filter.work().saturating_add(self.asked) > self.most.saturating_add(for_items)
    }
}
