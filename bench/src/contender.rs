//! The interface of a filter to be measured. The loop over items is inside the implementor, so that a timing contains no virtual call per item.

/// The groups of filters that are compared with each other: one block of the table each.
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
    /// Counters instead of bits, or another way to remove items: counting Bloom, d-left, two filters.
    Counting,
    /// Fingerprints in one of two buckets.
    Cuckoo,
    /// Fingerprints in sorted runs.
    Quotient,
    /// Built from all items together: xor, binary fuse, ribbon, Golomb-coded sets.
    Static,
    /// Started at a sixteenth of its final size.
    Growable,
    /// Started with room for a millionth of its items: twenty doublings.
    Growing,
    /// Forgets all but the last items.
    Window,
    /// Not a filter: the cost of memory access alone.
    Limit,
}

impl Kind {
    /// All kinds, in the order of the table.
    pub(crate) const FILTERS: [Kind; 11] = [
        Kind::Bloom,
        Kind::BloomAtomic,
        Kind::Blocked,
        Kind::BlockedAtomic,
        Kind::Counting,
        Kind::Cuckoo,
        Kind::Quotient,
        Kind::Static,
        Kind::Growable,
        Kind::Growing,
        Kind::Window,
    ];

    /// The name in JSON and on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Bloom => "bloom",
            Kind::BloomAtomic => "bloom-atomic",
            Kind::Blocked => "blocked",
            Kind::BlockedAtomic => "blocked-atomic",
            Kind::Counting => "counting",
            Kind::Cuckoo => "cuckoo",
            Kind::Quotient => "quotient",
            Kind::Static => "static",
            Kind::Growable => "growable",
            Kind::Growing => "growing",
            Kind::Window => "window",
            Kind::Limit => "limit",
        }
    }

    /// The name of the best rival of this kind, which ratios refer to. Windows have none.
    ///
    /// Best means at a similar rate and size. Two cuckoo filters are faster than the one named here: `cuckoofilter`, with a false-positive rate of
    /// three percent, and `bloom-lib`'s, with up to three times the memory.
    pub(crate) fn yardstick(self) -> Option<&'static str> {
        match self {
            Kind::Bloom => Some("fastbloom+foldhash"),
            Kind::BloomAtomic => Some("fastbloom-atomic+foldhash"),
            Kind::Blocked | Kind::BlockedAtomic => Some("sbbf-rs-safe"),
            Kind::Counting => Some("fastbloom-rs counting"),
            Kind::Cuckoo => Some("autoscale_cuckoo_filter+foldhash 12-bit"),
            Kind::Quotient => Some("qfilter"),
            Kind::Static => Some("jdb_xorf Bf8"),
            Kind::Growable => Some("growable-bloom-filter (n/16)"),
            Kind::Growing => Some("qfilter (n/2^20, told n)"),
            Kind::Window | Kind::Limit => None,
        }
    }
}

/// A filter being measured on items of type `T`. Operations that a filter does not support keep their default.
pub(crate) trait Contender<T> {
    /// Queries the items one by one, and returns the number of possible members.
    fn count_each(&self, items: &[T]) -> usize;

    /// Queries all items in one call, and returns the number of possible members. `None` if there is no such call.
    fn count_batch(&mut self, _items: &[T]) -> Option<usize> {
        None
    }

    /// Inserts the items one by one. Never called for static filters.
    fn insert_each(&mut self, _items: &[T]) {
        unreachable!("a static filter does not accept items");
    }

    /// Inserts all items in one call. Returns `false` if there is no such call; nothing was inserted then.
    fn insert_batch(&mut self, _items: &[T]) -> bool {
        false
    }

    /// Removes the items one by one, and returns the number found. `None` if the filter cannot remove.
    fn remove_each(&mut self, _items: &[T]) -> Option<usize> {
        None
    }

    /// Bytes in use as reported by the filter. `None`: use the figure of the allocator.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }

    /// Share of the slots in use, for filters made of slots.
    fn load(&self) -> Option<f64> {
        None
    }
}

/// A filter that accepts one item at a time: implement this and wrap it in [`OneByOne`].
pub(crate) trait Single<T> {
    /// Inserts `item`.
    fn insert_one(&mut self, item: &T);

    /// Returns whether `item` may be a member.
    fn contains_one(&self, item: &T) -> bool;

    /// As [`Contender::load`].
    fn load(&self) -> Option<f64> {
        None
    }
}

/// A [`Single`] that also removes: wrap it in [`Removing`].
pub(crate) trait Remove<T>: Single<T> {
    /// Removes `item`, and returns whether it was found.
    fn remove_one(&mut self, item: &T) -> bool;
}

/// A filter that is only queried: wrap it in [`Whole`].
pub(crate) trait Ask<T> {
    /// Returns whether `item` may be a member.
    fn contains_one(&self, item: &T) -> bool;

    /// As [`Contender::count_batch`].
    fn count_batch(&mut self, _items: &[T]) -> Option<usize> {
        None
    }
}

/// The loops over a [`Single`], compiled for that filter.
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

    fn load(&self) -> Option<f64> {
        self.0.load()
    }
}

/// The loops over a filter that also removes.
pub(crate) struct Removing<F>(pub(crate) F);

impl<T, F: Remove<T>> Contender<T> for Removing<F> {
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

    #[inline(never)]
    fn remove_each(&mut self, items: &[T]) -> Option<usize> {
        Some(items.iter().map(|item| usize::from(self.0.remove_one(item))).sum())
    }

    fn load(&self) -> Option<f64> {
        self.0.load()
    }
}

/// The loops over a static filter.
pub(crate) struct Whole<F>(pub(crate) F);

impl<T, F: Ask<T>> Contender<T> for Whole<F> {
    #[inline(never)]
    fn count_each(&self, items: &[T]) -> usize {
        items.iter().map(|item| usize::from(self.0.contains_one(item))).sum()
    }

    fn count_batch(&mut self, items: &[T]) -> Option<usize> {
        self.0.count_batch(items)
    }
}

/// How a filter gets its items.
pub(crate) enum Make<T> {
    /// Created empty for a number of items and a rate, then filled.
    Empty(fn(items: u64, fpr: f64) -> Box<dyn Contender<T>>),
    /// Built in one call from exactly these items, which are distinct.
    Whole(fn(items: &[T], fpr: f64) -> Box<dyn Contender<T>>),
}

/// One line of the table before it is measured.
pub(crate) struct Entry<T> {
    /// The name that is printed and that `--only` accepts.
    pub(crate) name: &'static str,
    /// The group it is compared in.
    pub(crate) kind: Kind,
    /// Whether it is ours or a rival.
    pub(crate) ours: bool,
    /// Too slow for large runs; left out of them unless it is named.
    pub(crate) slow: bool,
    /// The layout of the bits, if it is not part of the name.
    pub(crate) layout: Option<&'static str>,
    /// How it gets its items.
    pub(crate) make: Make<T>,
}

impl<T> Entry<T> {
    /// A rival that is created empty and then filled.
    pub(crate) fn rival(name: &'static str, kind: Kind, make: fn(u64, f64) -> Box<dyn Contender<T>>) -> Self {
        Entry { name, kind, ours: false, slow: false, layout: None, make: Make::Empty(make) }
    }

    /// A static rival.
    pub(crate) fn whole_rival(name: &'static str, make: fn(&[T], f64) -> Box<dyn Contender<T>>) -> Self {
        Entry { name, kind: Kind::Static, ours: false, slow: false, layout: None, make: Make::Whole(make) }
    }

    /// The same entry, left out of large runs.
    pub(crate) fn slow(self) -> Self {
        Entry { slow: true, ..self }
    }

    /// The same entry, with a layout.
    pub(crate) fn layout(self, layout: &'static str) -> Self {
        Entry { layout: Some(layout), ..self }
    }
}
