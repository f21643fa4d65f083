//! Tests of the filters that the advisor creates.

use mayhap::{Answers, BuildOptions, HashScheme, ItemHash};
use mayhap_advise::{Deletes, ItemShape, Needs, Structure};

/// The methods that only `Filter` has behave the same for every kind.
#[test]
fn hashes_copies_counts_and_clearing_work_for_every_kind() {
    let needs = Needs::new(1_000, 0.01)
        .of(ItemShape::IntegerRange { low: 0, high: 9_999 })
        .deleting(Deletes::UpTo(100));
    let mut made = 0;
    for structure in Structure::all() {
        let Ok(mut filter) = structure.create(&needs, HashScheme::fast(3)) else { continue };
        made += 1;
        let scheme = filter.scheme().copied();
        for item in 0..500_u64 {
            let new = match scheme {
                Some(scheme) => filter.insert_hash(scheme.hash(&item)),
                None => filter.insert(&item),
            };
            assert!(new.is_ok(), "{structure}");
        }
        let copy = filter.try_clone().unwrap();
        assert_eq!(copy.encode(), filter.encode(), "{structure}");
        if let Some(scheme) = scheme {
            let hashes: Vec<ItemHash> = (0..2_000_u64).map(|item| scheme.hash(&item)).collect();
            let (mut by_hash, mut by_item) = (Answers::new(), Answers::new());
            filter.may_contain_hash_batch(&hashes, &mut by_hash);
            filter.may_contain_batch(&(0..2_000_u64).collect::<Vec<_>>(), &mut by_item);
            assert_eq!(by_hash, by_item, "{structure}");
            assert!(by_hash.maybe_count() >= 500);
        }
        if let Some(count) = filter.count(&7_u64) {
            assert!(count >= 1, "{structure}");
            assert!(filter.remove(&7_u64).unwrap());
            assert!(filter.count(&7_u64) < Some(count), "{structure}");
        }
        assert!(filter.clear() && filter.inserted() == 0, "{structure}");
        assert!((0..500_u64).all(|item| !filter.may_contain(&item)), "{structure}");
        assert!((0..500_u64).all(|item| copy.may_contain(&item)), "{structure}");
    }
    assert!(made >= 12, "{made}");
    let fixed = Structure::Ribbon.build_hashes(
        (0..100_u64).map(ItemHash::from_unmixed),
        0.01,
        HashScheme::fast(0),
        &BuildOptions::default(),
    );
    let mut fixed = fixed.unwrap();
    assert!(!fixed.clear() && fixed.inserted() == 100 && fixed.count(&1_u64).is_none());
}
