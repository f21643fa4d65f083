//! What a filter must do to be measured. The loop over items lives inside the implementor, so that a timing
//! holds no virtual call per item.

/// What is compared with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// One bit array, k probes anywhere in it.
    Bloom,
    /// The same, filled through a shared reference.
    BloomAtomic,
    /// All probes of an item in one block.
    Blocked,
    /// The same, filled through a shared reference.
    BlockedAtomic,
    /// Counters instead of bits: items can be taken out again.
    Counting,
    /// Started at a sixteenth of its final size.
    Growable,
    /// Not a filter: what memory alone costs.
    Limit,
}

impl Kind {
    /// The order of the table.
    pub(crate) const FILTERS: [Kind; 6] =
        [Kind::Bloom, Kind::BloomAtomic, Kind::Blocked, Kind::BlockedAtomic, Kind::Counting, Kind::Growable];

    /// As written in JSON and on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Bloom => "bloom",
            Kind::BloomAtomic => "bloom-atomic",
            Kind::Blocked => "blocked",
            Kind::BlockedAtomic => "blocked-atomic",
            Kind::Counting => "counting",
            Kind::Growable => "growable",
            Kind::Limit => "limit",
        }
    }

    /// The best rival of this kind, by name: what ratios are taken against.
    pub(crate) fn yardstick(self) -> Option<&'static str> {
        match self {
            Kind::Bloom => Some("fastbloom+foldhash"),
            Kind::BloomAtomic => Some("fastbloom-atomic+foldhash"),
            Kind::Blocked | Kind::BlockedAtomic => Some("sbbf-rs-safe"),
            Kind::Counting => Some("fastbloom-rs counting"),
            Kind::Growable => Some("growable-bloom-filter (n/16)"),
            Kind::Limit => None,
        }
    }
}

/// A filter being measured on items of type `T`.
pub(crate) trait Contender<T> {
    /// Inserts one by one.
    fn insert_each(&mut self, items: &[T]);

    /// Asks one by one; how many may be members.
    fn count_each(&self, items: &[T]) -> usize;

    /// The batch calls, if the filter has them.
    fn batch(&mut self) -> Option<&mut dyn Batch<T>> {
        None
    }

    /// Bytes in use by the filter's own account. None: believe the allocator.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }
}

/// The calls of a filter that take many items at once.
pub(crate) trait Batch<T> {
    /// Inserts all of `items`.
    fn insert(&mut self, items: &[T]);

    /// Asks for all of `items`; how many may be members.
    fn count(&mut self, items: &[T]) -> usize;
}

/// A filter that takes one item at a time: implement this and wrap it in [`OneByOne`].
pub(crate) trait Single<T> {
    /// Records `item`.
    fn insert_one(&mut self, item: &T);

    /// Is `item` mayhap a member?
    fn contains_one(&self, item: &T) -> bool;
}

/// The loops over a [`Single`], compiled for that one filter.
pub(crate) struct OneByOne<F>(pub(crate) F);

impl<T, F: Single<T>> Contender<T> for OneByOne<F> {
    #[inline(never)]
    fn insert_each(&mut self, items: &[T]) {
        for item in items {
            self.0.insert_one(item);
        }
    }

    #[inline(never)]
    fn count_each(&self, items: &[T]) -> usize {
        items.iter().map(|item| usize::from(self.0.contains_one(item))).sum()
    }
}

/// One line of the table before it is measured.
pub(crate) struct Entry<T> {
    /// As printed and as named to `--only`.
    pub(crate) name: &'static str,
    /// What it is compared with.
    pub(crate) kind: Kind,
    /// Ours, or a rival.
    pub(crate) ours: bool,
    /// So slow that it is left out of large runs unless it is named.
    pub(crate) slow: bool,
    /// Which bits go where, if the name does not say it.
    pub(crate) layout: Option<&'static str>,
    /// An empty filter for so many items at such a rate.
    pub(crate) make: fn(items: u64, fpr: f64) -> Box<dyn Contender<T>>,
}
