//! Every kind with few items, through all unsafe code: created, filled, queried one by one and in batches, encoded, decoded, copied. Also the atomic
//! filters with threads. Small enough for miri (`just miri`), which finds undefined behaviour that a passing test hides.

use mayhap::{
    Answers, AtomicBlockedBloom, AtomicBloom, AtomicScalableBloom, BinaryFuse8, BinaryFuse16, BlockedBloom,
    BlockedLayout, BlockedShape, Bloom, CountingBloom, Cuckoo, DLeft, Gcs, Growing, ItemHash, Quotient,
    Ribbon, ScalableBloom, ScalableCuckoo, Xor8,
};

/// More than one chunk of every batch.
const ITEMS: u64 = 80;
/// Of every thread.
const EACH: u64 = 24;

fn items() -> Vec<u64> {
    (0..ITEMS).collect()
}

/// A kind that accepts items: all of them are found, also after encoding and decoding.
macro_rules! fills {
    ($kind:ident, $made:expr $(, $unwrap:ident)?) => {{
        let mut filter: $kind = $made.unwrap();
        for item in items() {
            let _ = filter.insert(&item)$(.$unwrap())?;
        }
        asks!($kind, filter);
    }};
}

macro_rules! asks {
    ($kind:ident, $filter:expr) => {{
        let filter: $kind = $filter;
        assert!(items().iter().all(|item| filter.may_contain(item)), stringify!($kind));
        let mut answers = Answers::new();
        filter.may_contain_batch(&items(), &mut answers);
        assert_eq!(answers.maybe_count() as u64, ITEMS, stringify!($kind));
        let non_members: Vec<u64> = (1_000_000..1_000_020).collect();
        filter.may_contain_batch(&non_members, &mut answers);
        let single: Vec<bool> = non_members.iter().map(|item| filter.may_contain(item)).collect();
        assert_eq!(answers.iter().collect::<Vec<_>>(), single, stringify!($kind));
        let bytes = filter.encode();
        let again = $kind::decode(&bytes).unwrap();
        assert!(items().iter().all(|item| again.may_contain(item)), stringify!($kind));
        // To miri, a logarithm has another last digit every time.
        assert!(again.encode() == bytes || cfg!(miri), stringify!($kind));
    }};
}

#[test]
fn kinds_that_only_add() {
    fills!(Bloom, Bloom::for_capacity(ITEMS, 0.01, 7));
    fills!(ScalableBloom, ScalableBloom::for_capacity(8, 0.01, 7), unwrap);
    for (layout, rate) in [(BlockedLayout::Split256, 0.01), (BlockedLayout::Line512, 1e-4)] {
        fills!(
            BlockedBloom,
            BlockedBloom::with_shape(BlockedShape::with_layout(layout, ITEMS, rate).unwrap(), 7)
        );
    }
}

#[test]
fn kinds_that_remove() {
    fills!(CountingBloom, CountingBloom::for_capacity(ITEMS, 0.01, 7));
    fills!(Cuckoo, Cuckoo::for_capacity(ITEMS, 0.01, 7), unwrap);
    fills!(Quotient, Quotient::for_capacity(ITEMS, 0.01, 7), unwrap);
    fills!(DLeft, DLeft::for_capacity(ITEMS, 0.01, 7), unwrap);
    fills!(Growing, Growing::for_capacity(8, 0.01, 7), unwrap);
    fills!(ScalableCuckoo, ScalableCuckoo::for_capacity(8, 7), unwrap);
}

#[test]
fn kinds_that_are_built_once() {
    asks!(Xor8, Xor8::build(items(), 7).unwrap());
    asks!(BinaryFuse8, BinaryFuse8::build(items(), 7).unwrap());
    asks!(BinaryFuse16, BinaryFuse16::build(items(), 7).unwrap());
    asks!(Ribbon, Ribbon::build(items(), 0.01, 7).unwrap());
    asks!(Gcs, Gcs::build(items(), 0.01, 7).unwrap());
}

/// Two threads insert, with one item in four in common; a third queries and copies at the same time.
fn together(
    insert: impl Fn(&[u64]) + Sync,
    ask: impl Fn(u64) -> bool + Sync,
    copy: impl Fn() + Sync,
) -> Vec<u64> {
    let of = |thread: u64| -> Vec<u64> {
        (0..EACH).map(|i| if i % 4 == 0 { i } else { i + thread * 1_000 }).collect()
    };
    std::thread::scope(|scope| {
        for thread in 1..3 {
            let (insert, ask) = (&insert, &ask);
            scope.spawn(move || {
                for some in of(thread).chunks(7) {
                    insert(some);
                    assert!(some.iter().all(|&item| ask(item)), "an inserted item is found immediately");
                }
            });
        }
        scope.spawn(|| {
            copy();
            for item in 0..20 {
                ask(item);
            }
        });
    });
    [of(1), of(2)].concat()
}

#[test]
fn the_classic_filter_between_threads() {
    let filter = AtomicBloom::for_capacity(ITEMS, 0.01, 7).unwrap();
    let all = together(
        |items| {
            filter.insert_batch(items);
        },
        |item| filter.may_contain(&item),
        || drop(filter.snapshot().unwrap()),
    );
    let filter = filter.into_inner();
    assert!(all.iter().all(|item| filter.may_contain(item)));
}

#[test]
fn the_blocked_filter_between_threads() {
    for (layout, rate) in [(BlockedLayout::Split256, 0.01), (BlockedLayout::Line512, 1e-4)] {
        let shape = BlockedShape::with_layout(layout, ITEMS, rate).unwrap();
        let filter = AtomicBlockedBloom::with_shape(shape, 7).unwrap();
        let all = together(
            |items| {
                for item in items {
                    filter.insert(item);
                }
            },
            |item| filter.may_contain(&item),
            || drop(filter.snapshot().unwrap()),
        );
        assert!(all.iter().all(|item| filter.may_contain(item)));
    }
}

/// As the engine has it: together until it has to grow, then alone.
#[test]
fn the_growing_chain_between_threads() {
    let made = ScalableBloom::for_capacity(8, 0.01, 7).unwrap();
    let filter = std::sync::RwLock::new(AtomicScalableBloom::from(made));
    let insert = |items: &[u64]| {
        let hashes: Vec<ItemHash> = items.iter().map(|item| filter.read().unwrap().hash(item)).collect();
        let mut done = 0;
        while done < hashes.len() {
            done += filter.read().unwrap().insert_hash_batch(&hashes[done..], &mut mayhap::NewItems::new());
            if done < hashes.len() {
                filter.write().unwrap().get_mut().insert_hash(hashes[done]).unwrap();
                done += 1;
            }
        }
    };
    let ask = |item: u64| {
        let filter = filter.read().unwrap();
        filter.may_contain_hash(filter.hash(&item))
    };
    let all = together(insert, ask, || drop(filter.read().unwrap().snapshot().unwrap()));
    assert!(all.iter().all(|&item| ask(item)));
    let filter = filter.into_inner().unwrap();
    assert!(filter.layers() > 2 && filter.inserted() <= filter.capacity());
    let plain = filter.into_inner();
    assert!(all.iter().all(|item| plain.may_contain(item)));
}
