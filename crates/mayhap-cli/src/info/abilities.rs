//! What can be done with a filter besides asking it.

use mayhap::Filter;
use mayhap::codec::block_filter;
use serde::Serialize;

/// What a filter can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Abilities {
    /// Items can be put in.
    pub(super) add: bool,
    /// And taken out again.
    pub(super) remove: bool,
    /// Another filter of the same shape and hash can be put in.
    pub(super) merge: bool,
    /// It takes more items than it was made for and keeps its rate.
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
            // Once cut it has the size it has.
            Filter::Fingerprints(set) => {
                (true, false, set.fingerprint_bits() == 64, set.fingerprint_bits() == 64)
            }
            // The values of a Golomb-coded set of BIP 158 depend on how many there are.
            Filter::Gcs(set) => (false, false, block_filter::parameters(set).is_none(), false),
            _ => (false, false, false, false),
        };
        Self { add, remove, merge, grow }
    }

    /// `add, merge; not remove, grow`.
    pub(super) fn said(self) -> String {
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

    /// What is said is tried: on a copy of each filter.
    #[test]
    fn what_is_said_is_so() {
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
            let said = Abilities::of(filter);
            let other = Filter::decode(&filter.encode()).unwrap();
            assert_eq!(filter.union(&other).is_ok(), said.merge, "{}", filter.kind());
            assert_eq!(filter.insert(&7_u64).is_ok(), said.add, "{}", filter.kind());
            assert_eq!(filter.remove(&7_u64).is_ok(), said.remove, "{}", filter.kind());
            let before = filter.capacity();
            let all_in = (0..900_u64).all(|item| filter.insert(&item).is_ok());
            let kept_rate = all_in && filter.expected_fpr() <= 1.1 * filter.target_fpr();
            let bounded = matches!(filter, Filter::Bitmap(_) | Filter::Window(_));
            assert_eq!(kept_rate && !bounded, said.grow, "{}: {before} {}", filter.kind(), filter.capacity());
        }
    }
}
