//! What a filter must do to be measured. The loop over items lives inside the implementor, so that a timing
//! holds no virtual call per item.

/// What is compared with what: one block of the table each.
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
    /// Counters instead of bits, or another way to take items out again: counting Bloom, d-left, two filters.
    Counting,
    /// Fingerprints in one of two buckets.
    Cuckoo,
    /// Fingerprints in sorted runs.
    Quotient,
    /// Built whole, from all items at once: xor, binary fuse, ribbon, Golomb-coded sets.
    Static,
    /// Started at a sixteenth of its final size.
    Growable,
    /// Started with room for a millionth of its items: twenty doublings.
    Growing,
    /// Forgets all but the last items.
    Window,
    /// Not a filter: what memory alone costs.
    Limit,
}

impl Kind {
    /// The order of the table.
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

    /// As written in JSON and on the command line.
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

    /// The best rival of this kind, by name: what ratios are taken against. Windows have none.
    ///
    /// Best means at a like rate and size. Two cuckoo filters answer sooner than the one named here: `cuckoofilter`,
    /// wrong three times in a hundred, and `bloom-lib`'s, in up to three times the memory.
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

/// A filter being measured on items of type `T`. What a filter cannot do keeps its default.
pub(crate) trait Contender<T> {
    /// Asks one by one; how many may be members.
    fn count_each(&self, items: &[T]) -> usize;

    /// Asks for all at once; how many may be members. None: there is no such call.
    fn count_batch(&mut self, _items: &[T]) -> Option<usize> {
        None
    }

    /// Inserts one by one. Filters that are built whole are never asked to.
    fn insert_each(&mut self, _items: &[T]) {
        unreachable!("a filter that is built whole takes no more items");
    }

    /// Inserts all at once. False: there is no such call, and nothing was inserted.
    fn insert_batch(&mut self, _items: &[T]) -> bool {
        false
    }

    /// Removes one by one; how many it found. None: it cannot remove.
    fn remove_each(&mut self, _items: &[T]) -> Option<usize> {
        None
    }

    /// Bytes in use by the filter's own account. None: believe the allocator.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }

    /// Share of the slots in use, for filters made of slots.
    fn load(&self) -> Option<f64> {
        None
    }
}

/// A filter that takes one item at a time: implement this and wrap it in [`OneByOne`].
pub(crate) trait Single<T> {
    /// Records `item`.
    fn insert_one(&mut self, item: &T);

    /// Is `item` mayhap a member?
    fn contains_one(&self, item: &T) -> bool;

    /// As [`Contender::load`].
    fn load(&self) -> Option<f64> {
        None
    }
}

/// A [`Single`] that also removes: wrap it in [`Removing`].
pub(crate) trait Remove<T>: Single<T> {
    /// Takes `item` out; was it found?
    fn remove_one(&mut self, item: &T) -> bool;
}

/// A filter that is only asked: wrap it in [`Whole`].
pub(crate) trait Ask<T> {
    /// Is `item` mayhap a member?
    fn contains_one(&self, item: &T) -> bool;

    /// As [`Contender::count_batch`].
    fn count_batch(&mut self, _items: &[T]) -> Option<usize> {
        None
    }
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

/// The loops over a filter that was built whole.
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

/// How a filter comes to hold its items.
pub(crate) enum Make<T> {
    /// Made empty for so many items at such a rate, then filled.
    Empty(fn(items: u64, fpr: f64) -> Box<dyn Contender<T>>),
    /// Built in one call from exactly these items, which are distinct.
    Whole(fn(items: &[T], fpr: f64) -> Box<dyn Contender<T>>),
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
    /// Empty and then filled, or whole.
    pub(crate) make: Make<T>,
}

impl<T> Entry<T> {
    /// A rival that is made empty and then filled.
    pub(crate) fn rival(name: &'static str, kind: Kind, make: fn(u64, f64) -> Box<dyn Contender<T>>) -> Self {
        Entry { name, kind, ours: false, slow: false, layout: None, make: Make::Empty(make) }
    }

    /// A rival that is built whole.
    pub(crate) fn whole_rival(name: &'static str, make: fn(&[T], f64) -> Box<dyn Contender<T>>) -> Self {
        Entry { name, kind: Kind::Static, ours: false, slow: false, layout: None, make: Make::Whole(make) }
    }

    /// The same, left out of large runs.
    pub(crate) fn slow(self) -> Self {
        Entry { slow: true, ..self }
    }

    /// The same, with its layout named.
    pub(crate) fn layout(self, layout: &'static str) -> Self {
        Entry { layout: Some(layout), ..self }
    }
}
