//! A `Filter` of any kind behaves like the filter it holds.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use mayhap::{Answers, Filter, InsertError, ItemHash, Kind, MergeError, RemoveError};
use mayhap_testkit::{member, non_member};

/// Members in the golden files.
const MEMBERS: u64 = 300;

fn golden() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "mayhap"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()))
        .collect()
}

/// The kinds whose filters are built once.
const STATIC: [Kind; 4] = [Kind::Xor, Kind::BinaryFuse, Kind::Ribbon, Kind::Gcs];
const REMOVES: [Kind; 9] = [
    Kind::Bitmap,
    Kind::CountingBloom,
    Kind::DualBloom,
    Kind::DLeft,
    Kind::Cuckoo,
    Kind::GrowableCuckoo,
    Kind::Quotient,
    Kind::Growing,
    Kind::ScalableCuckoo,
];

#[test]
fn every_kind_is_opened_without_being_named_and_reencodes_byte_for_byte() {
    let mut kinds = BTreeSet::new();
    for (name, bytes) in golden() {
        let filter = Filter::decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(mayhap::codec::kind_of(&bytes), Ok(filter.kind()), "{name}");
        assert!(filter.encode() == bytes, "{name}");
        assert!(filter.memory_bytes() > 0 && filter.expected_fpr() < 0.05, "{name}");
        kinds.insert(filter.kind());
        if filter.kind() == Kind::Bitmap {
            continue;
        }
        assert!(filter.inserted() > 0 && filter.capacity() > 0 && filter.target_fpr() > 0.0, "{name}");
        let items: Vec<Vec<u8>> = (0..MEMBERS).flat_map(|i| [member(i), non_member(i)]).collect();
        let mut answers = Answers::new();
        filter.may_contain_batch(&items, &mut answers);
        for (item, answer) in items.iter().zip(answers.iter()) {
            assert_eq!(filter.may_contain(item), answer, "{name}");
            match filter.scheme() {
                Some(scheme) => assert_eq!(filter.may_contain_hash(scheme.hash(item)), answer, "{name}"),
                // If a hash is not enough to answer, the answer is not *no*.
                None => assert!(filter.may_contain_hash(ItemHash::from_unmixed(7)), "{name}"),
            }
        }
        assert!((0..MEMBERS).all(|i| filter.may_contain(&member(i))), "{name}");
        assert!(answers.maybe_count() < 330, "{name}: {}", answers.maybe_count());
    }
    assert_eq!(kinds, Kind::ALL.into(), "there is a golden file of every kind");
}

#[test]
fn each_kind_supports_its_operations_and_rejects_others() {
    for (name, bytes) in golden() {
        let mut filter = Filter::decode(&bytes).unwrap();
        let kind = filter.kind();
        let (item, number) = (non_member(1_000_000), 77_u64);
        let put_in = if kind == Kind::Bitmap { filter.insert(&number) } else { filter.insert(&item) };
        if let Ok(_) | Err(InsertError::Full { .. }) = put_in {
            assert!(!STATIC.contains(&kind), "{name}");
            let there =
                if kind == Kind::Bitmap { filter.may_contain(&number) } else { filter.may_contain(&item) };
            assert!(there || filter.inserted() >= filter.capacity(), "{name}");
        } else {
            assert!(STATIC.contains(&kind), "{name}: {put_in:?}");
            assert_eq!(put_in, Err(InsertError::NeverChanges { kind }), "{name}");
            assert!(filter.encode() == bytes, "{name}: nothing has changed");
        }
        match filter.remove(&member(0)) {
            Ok(_) => assert!(REMOVES.contains(&kind), "{name}"),
            Err(error) => {
                assert!(!REMOVES.contains(&kind), "{name}");
                assert_eq!(error, RemoveError::CannotRemove { kind }, "{name}");
            }
        }
    }
}

#[test]
fn only_filters_of_one_kind_merge() {
    let golden = golden();
    let [bloom, line] = ["bloom", "blocked-line"].map(|wanted| {
        let (_, bytes) = golden.iter().find(|(name, _)| name == wanted).unwrap();
        Filter::decode(bytes).unwrap()
    });
    for (name, bytes) in &golden {
        let (mut filter, same) = (Filter::decode(bytes).unwrap(), Filter::decode(bytes).unwrap());
        match filter.union(&same) {
            Ok(()) => assert!(filter.kind() == Kind::Bitmap || filter.may_contain(&member(7)), "{name}"),
            Err(error) => {
                let never = matches!(error, MergeError::NeverMerges { kind } if kind == filter.kind());
                let cannot = matches!(error, MergeError::HasRemovals { .. } | MergeError::Full { .. });
                assert!(never || cannot, "{name}: {error}");
                assert!(filter.encode() == *bytes, "{name}: nothing has changed");
            }
        }
        let other = if filter.kind() == Kind::Bloom { &line } else { &bloom };
        let differs = MergeError::KindDiffers { ours: filter.kind(), theirs: other.kind() };
        assert_eq!(filter.union(other), Err(differs), "{name}");
    }
}

/// Both are of the kind `bloom`, and yet their bits mean different things.
#[test]
fn a_wide_bloom_and_a_plain_one_do_not_merge() {
    let golden = golden();
    let open = |wanted: &str| {
        let (_, bytes) = golden.iter().find(|(name, _)| name == wanted).unwrap();
        Filter::decode(bytes).unwrap()
    };
    let (mut plain, mut wide) = (open("bloom"), open("bloom-wide"));
    assert_eq!((plain.kind(), wide.kind()), (Kind::Bloom, Kind::Bloom));
    assert!(matches!(plain.union(&wide), Err(MergeError::HashDiffers { .. })));
    assert!(matches!(wide.union(&plain), Err(MergeError::HashDiffers { .. })));
    wide.union(&open("bloom-wide")).unwrap();
}

#[test]
fn a_bitmap_takes_eight_bytes_for_a_number_and_nothing_else() {
    let mut filter = Filter::Bitmap(mayhap::Bitmap::new(100).unwrap());
    assert_eq!(filter.insert(&7_u64), Ok(true));
    assert_eq!(filter.insert_batch(&[7_u64, 8, 9]), Ok(2));
    assert_eq!(filter.insert("seven"), Err(InsertError::NotANumber));
    let refused = InsertError::OutOfRange { number: 100, first: 0, bits: 100 };
    assert_eq!(refused.to_string(), "100 is out of range, the bitmap is for 0 to 99");
    assert_eq!(filter.insert(&100_u64), Err(refused));
    assert!(filter.may_contain(&7_u64) && !filter.may_contain(&7_u32) && !filter.may_contain("seven"));
    let mut answers = Answers::new();
    filter.may_contain_batch(&[6_u64, 7, 1000], &mut answers);
    assert_eq!(answers.iter().collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(
        (filter.remove(&7_u64), filter.remove(&7_u64), filter.remove("7")),
        (Ok(true), Ok(false), Ok(false))
    );
    assert_eq!((filter.inserted(), filter.capacity(), filter.target_fpr()), (2, 100, 0.0));
}

#[cfg(feature = "file")]
#[test]
fn a_file_of_any_kind_is_opened() {
    let path = std::env::temp_dir().join(format!("mayhap-any-{}.mayhap", std::process::id()));
    for (name, bytes) in golden() {
        let filter = Filter::decode(&bytes).unwrap();
        mayhap::file::save(&filter, &path).unwrap();
        assert!(fs::read(&path).unwrap() == bytes, "{name}");
        let opened: Filter = mayhap::file::open(&path).unwrap();
        let read: Filter = mayhap::file::read(&path).unwrap();
        mayhap::file::verify::<Filter>(&path).unwrap();
        assert!(opened.encode() == bytes && read.encode() == bytes, "{name}");
    }
    fs::remove_file(&path).unwrap();
}

#[test]
fn a_bitmap_of_a_range_takes_its_numbers_and_remembers_the_range() {
    let bitmap = mayhap::Bitmap::of_range(13_000_000_000, 13_000_000_999).unwrap();
    let mut filter = Filter::Bitmap(bitmap);
    assert_eq!(filter.insert_batch(&[13_000_000_000_u64, 13_000_000_999]), Ok(2));
    for number in [12_999_999_999, 13_000_001_000, 0, u64::MAX] {
        assert!(!filter.may_contain(&number));
        assert!(matches!(filter.insert(&number), Err(InsertError::OutOfRange { .. })), "{number}");
        assert_eq!(filter.remove(&number), Ok(false));
    }
    let mut again = Filter::decode(&filter.encode()).unwrap();
    assert!(again.may_contain(&13_000_000_999_u64) && !again.may_contain(&13_000_000_998_u64));
    // The same bits mean other numbers in another range.
    let other = Filter::Bitmap(mayhap::Bitmap::of_range(5, 1_004).unwrap());
    assert!(matches!(again.union(&other), Err(MergeError::ShapeDiffers { .. })));
    again.union(&filter).unwrap();
    assert_eq!(again.encode(), filter.encode());
    assert!(mayhap::Bitmap::of_range(2, 1).is_err() && mayhap::Bitmap::of_range(0, u64::MAX).is_err());
}
