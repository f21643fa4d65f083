//! The operations a filter supports besides lookups.

use mayhap::Filter;
use mayhap_formats::block_filter;
use serde::Serialize;

/// The operations a filter supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Abilities {
    /// Items can be added.
    pub(super) add: bool,
    /// Items can be removed.
    pub(super) remove: bool,
    /// A filter of the same shape and hash can be merged into it.
    pub(super) merge: bool,
    /// It accepts items beyond its capacity and keeps its rate.
    pub(super) grow: bool,
}

impl Abilities {
    pub(super) fn of(filter: &Filter) -> Self {
        let (add, remove, merge, grow) = match filter {
            Filter::Bitmap(_) => (true, true, true, false),
            Filter::Bloom(_) | Filter::BlockedBloom(_) | Filter::WideBloom(_) => (true, false, true, false),
            Filter::CountingBloom(_) | Filter::DualBloom(_) | Filter::DLeft(_) | Filter::Quotient(_) => {
                (true, true, true, false)
            }
            Filter::ScalableBloom(filter) => (true, false, false, filter.shape().grows()),
            Filter::Cuckoo(_) => (true, true, false, false),
            Filter::GrowableCuckoo(_) | Filter::Growing(_) => (true, true, false, true),
            Filter::ScalableCuckoo(filter) => (true, true, false, filter.shape().expansion() > 0),
            Filter::Window(_) => (true, false, false, false),
            // Once the fingerprints are cut, their size is fixed.
            Filter::Fingerprints(set) => {
                (true, false, set.fingerprint_bits() == 64, set.fingerprint_bits() == 64)
            }
            // The values of a BIP 158 Golomb-coded set depend on the number of items.
            Filter::Gcs(set) => (false, false, block_filter::parameters(set).is_none(), false),
            _ => (false, false, false, false),
        };
        Self { add, remove, merge, grow }
    }

    /// `add, merge; not remove, grow`.
    pub(super) fn described(self) -> String {
        let all = [("add", self.add), ("remove", self.remove), ("merge", self.merge), ("grow", self.grow)];
        let list = |wanted: bool| {
            let names: Vec<_> = all.iter().filter(|(_, can)| *can == wanted).map(|(name, _)| *name).collect();
            names.join(", ")
        };
        match (list(true), list(false)) {
            (can, cannot) if can.is_empty() => format!("answer; not {cannot}"),
            (can, cannot) if cannot.is_empty() => format!("answer, {can}"),
            (can, cannot) => format!("answer, {can}; not {cannot}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mayhap::{BinaryFuse8, Bitmap, BlockedBloom, Bloom, Gcs, HashScheme};

    /// Every operation is tried on a copy of each filter.
    #[test]
    fn abilities_match_what_each_kind_can_do() {
        let scheme = HashScheme::fast(1);
        let items: Vec<u64> = (0..100).collect();
        let mut kinds: Vec<Filter> = vec![
            Filter::Bitmap(Bitmap::new(1_000).unwrap()),
            Filter::Bloom(Bloom::for_capacity(100, 0.01, 1).unwrap()),
            Filter::BlockedBloom(BlockedBloom::for_capacity(100, 0.01, 1).unwrap()),
            Filter::CountingBloom(mayhap::CountingBloom::for_capacity(100, 0.01, 1).unwrap()),
            Filter::ScalableBloom(mayhap::ScalableBloom::for_capacity(100, 0.01, 1).unwrap()),
            Filter::DLeft(mayhap::DLeft::for_capacity(100, 0.01, 1).unwrap()),
            Filter::Cuckoo(mayhap::Cuckoo::for_capacity(100, 0.01, 1).unwrap()),
            Filter::GrowableCuckoo(mayhap::GrowableCuckoo::for_growth(100, 10_000, 0.01, 1).unwrap()),
            Filter::Quotient(mayhap::Quotient::for_capacity(100, 0.01, 1).unwrap()),
            Filter::Growing(mayhap::Growing::for_capacity(100, 0.01, 1).unwrap()),
            Filter::Window(mayhap::Window::of_items(100, 0.01, 1).unwrap()),
            Filter::BinaryFuse8(BinaryFuse8::build(&items, scheme).unwrap()),
            Filter::Gcs(Gcs::build(&items, 0.01, scheme).unwrap()),
        ];
        for filter in &mut kinds {
            let abilities = Abilities::of(filter);
            let other = Filter::decode(&filter.encode()).unwrap();
            assert_eq!(filter.union(&other).is_ok(), abilities.merge, "{}", filter.kind());
            assert_eq!(filter.insert(&7_u64).is_ok(), abilities.add, "{}", filter.kind());
            assert_eq!(filter.remove(&7_u64).is_ok(), abilities.remove, "{}", filter.kind());
            let before = filter.capacity();
            let all_in = (0..900_u64).all(|item| filter.insert(&item).is_ok());
            let kept_rate = all_in && filter.expected_fpr() <= 1.1 * filter.target_fpr();
            let bounded = matches!(filter, Filter::Bitmap(_) | Filter::Window(_));
            assert_eq!(
                kept_rate && !bounded,
                abilities.grow,
                "{}: {before} {}",
                filter.kind(),
                filter.capacity()
            );
        }
    }
}
