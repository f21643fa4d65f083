//! Golden files: the exact bytes of a filter of every kind, and its exact number of false positives.
//!
//! Any drift in hashing, placement or format shows here. Files are added, never edited: a new format version gets new ones, and the old ones must decode
//! forever. `just golden` writes missing ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use mayhap::internals::{self, scalable::Plan};
use mayhap::{
    BinaryFuse8, BinaryFuse16, BinaryFuse32, Bitmap, BlockedBloom, BlockedLayout, BlockedShape, Bloom,
    BuildOptions, CountingBloom, Cuckoo, CuckooShape, DLeft, DualBloom, Filter, FingerprintSet, ForeignHash,
    Gcs, GrowableCuckoo, Growing, HashScheme, ItemEncoding, Quotient, Ribbon, ScalableBloom, ScalableCuckoo,
    ScalableCuckooShape, ScalableShape, SecretKey, WidePlacement, Window, Xor8, Xor16, Xor32,
};
use mayhap_testkit::{member, non_member};

const SEED: u64 = 0x006d_6179_6861_7031;
const MEMBERS: u64 = 300;
const NON_MEMBERS: u64 = 200_000;

/// A filter as it must be: its name and its bytes.
struct Golden {
    name: &'static str,
    bytes: Vec<u8>,
}

/// The members that are found and the non-members answered *maybe*, in the filter decoded from these bytes. For the exact bitmap: its set bits, and how
/// many of the ids up to 10 000 are set.
fn ask(bytes: &[u8]) -> (u64, u64) {
    let filter = Filter::decode(bytes).unwrap();
    if let Filter::Bitmap(bitmap) = &filter {
        return (bitmap.count(), (0..10_000).filter(|&id| bitmap.get(id)).count() as u64);
    }
    let members = (0..MEMBERS).filter(|&i| filter.may_contain(&member(i))).count();
    let non_members = (0..NON_MEMBERS).filter(|&i| filter.may_contain(&non_member(i))).count();
    (members as u64, non_members as u64)
}

fn bloom(scheme: HashScheme) -> Vec<u8> {
    let mut filter = Bloom::for_capacity(MEMBERS, 0.01, scheme).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i));
    });
    filter.encode()
}

/// As Go's bits-and-blooms makes it; the vectors of `mayhap-formats` pin the placement of other programs.
fn wide_bloom() -> Vec<u8> {
    let shape = internals::bloom::from_parts(2_876, 7, MEMBERS, 0.01).unwrap();
    let mut filter =
        internals::wide::placed(shape, WidePlacement::BitsAndBlooms, ItemEncoding::Bytes).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i));
    });
    filter.encode()
}

fn blocked(layout: BlockedLayout, rate: f64) -> Vec<u8> {
    let shape = BlockedShape::with_layout(layout, MEMBERS, rate).unwrap();
    let mut filter = BlockedBloom::with_shape(shape, SEED).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i));
    });
    filter.encode()
}

fn counting() -> Vec<u8> {
    let mut filter = CountingBloom::for_capacity(MEMBERS, 0.01, SEED).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i));
        filter.insert(&non_member(i));
    });
    (0..MEMBERS).for_each(|i| {
        assert!(filter.remove(&non_member(i)));
    });
    filter.encode()
}

/// No non-member is ever taken out: a hidden member would make the count of members depend on luck.
fn dual() -> Vec<u8> {
    let mut filter = DualBloom::for_capacity(MEMBERS + 20, 20, 0.001, SEED).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i)).unwrap();
    });
    (0..20).for_each(|i| {
        filter.insert(&non_member(NON_MEMBERS + i)).unwrap();
        filter.remove(&non_member(NON_MEMBERS + i));
    });
    filter.encode()
}

fn scalable(shape: ScalableShape) -> Vec<u8> {
    let mut filter = ScalableBloom::with_shape(shape, SEED).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i)).unwrap();
    });
    filter.encode()
}

fn gcs(rate: f64) -> Vec<u8> {
    Gcs::build((0..MEMBERS).map(member), rate, SEED).unwrap().encode()
}

/// Members once, twice and often, and non-members that were taken out again.
fn quotient(doublings: u32) -> Vec<u8> {
    let mut filter = Quotient::for_capacity(2 * MEMBERS, 0.001, SEED).unwrap();
    (0..MEMBERS).for_each(|i| {
        let copies = if i % 50 == 0 { 1 + i * i } else { 1 + i % 2 };
        (0..copies).for_each(|_| {
            filter.insert(&member(i)).unwrap();
        });
        filter.insert(&non_member(i)).unwrap();
        assert!(filter.remove(&non_member(i)));
    });
    (0..doublings).for_each(|_| filter.double().unwrap());
    filter.encode()
}

/// With copies in one slot and in several, some that stuck, and some that were removed.
fn dleft(rate: f64) -> Vec<u8> {
    let mut filter = DLeft::for_capacity(MEMBERS + 20, rate, SEED).unwrap();
    (0..MEMBERS).for_each(|i| {
        let copies = if i % 100 == 0 { 20 } else { 1 + i % 4 };
        (0..copies).for_each(|_| {
            filter.insert(&member(i)).unwrap();
        });
    });
    (0..20).for_each(|i| {
        filter.insert(&non_member(NON_MEMBERS + i)).unwrap();
        assert!(filter.remove(&non_member(NON_MEMBERS + i)));
    });
    filter.encode()
}

/// Non-members first, a window and a generation of them: all are given up again.
fn window_of_items() -> Vec<u8> {
    let mut filter = Window::of_items(MEMBERS, 0.01, SEED).unwrap();
    (0..500).for_each(|i| {
        filter.insert(&non_member(NON_MEMBERS + i));
    });
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i));
    });
    filter.encode()
}

fn window_of_time(rate: f64) -> Vec<u8> {
    let mut filter = Window::of_time(MEMBERS, MEMBERS, rate, SEED).unwrap();
    (0..500).for_each(|i| {
        filter.insert_at(&non_member(NON_MEMBERS + i), 1_000 + i);
    });
    (0..MEMBERS).for_each(|i| {
        filter.insert_at(&member(i), 2_000 + i);
    });
    filter.encode()
}

/// Full enough that members were moved; others were inserted and removed.
fn cuckoo(shape: CuckooShape) -> Vec<u8> {
    let mut filter = Cuckoo::with_shape(shape, SEED).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i)).unwrap();
    });
    (0..20).for_each(|i| {
        filter.insert(&non_member(NON_MEMBERS + i)).unwrap();
        assert!(filter.remove(&non_member(NON_MEMBERS + i)));
    });
    filter.encode()
}

/// Doubled, with more doublings to come.
fn growable_cuckoo() -> Vec<u8> {
    let mut filter = GrowableCuckoo::for_growth(50, 5_000, 0.01, SEED).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i)).unwrap();
    });
    assert!(filter.doublings() > 0 && filter.doublings() < filter.shape().max_doublings());
    filter.encode()
}

/// Five doublings, and items that were inserted and removed.
fn growing() -> Vec<u8> {
    let mut filter = Growing::for_capacity(10, 0.01, SEED).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i)).unwrap();
        filter.insert(&non_member(NON_MEMBERS + i)).unwrap();
    });
    (0..MEMBERS).for_each(|i| assert!(filter.remove(&non_member(NON_MEMBERS + i))));
    filter.encode()
}

/// Several tables, items that were moved, and items that were inserted and removed.
fn scalable_cuckoo() -> Vec<u8> {
    let shape = ScalableCuckooShape::for_capacity(256).unwrap();
    let shape = shape.with_bucket_size(1).unwrap().with_expansion(2).unwrap();
    let mut filter = ScalableCuckoo::with_shape(shape, SEED).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i)).unwrap();
    });
    (0..10).for_each(|i| {
        filter.insert(&non_member(NON_MEMBERS + i)).unwrap();
        assert!(filter.remove(&non_member(NON_MEMBERS + i)));
    });
    assert!(filter.tables() > 1);
    filter.encode()
}

/// Grown several times, and shortened as often.
fn fingerprints(cuts: u32) -> Vec<u8> {
    let mut set = FingerprintSet::new(SEED).unwrap();
    (0..MEMBERS).for_each(|i| {
        set.insert(&member(i)).unwrap();
    });
    (0..cuts).for_each(|_| set.cut().unwrap());
    set.encode()
}

/// With RedisBloom's placement and plan, and its hash or this key.
fn redis_bloom(key: Option<SecretKey>) -> Vec<u8> {
    let shape = internals::scalable::of_redis_bloom(Plan::RedisBloom, 50, 0.01, 2, 0.5).unwrap();
    let theirs = internals::foreign_scheme(ForeignHash::RedisBloom, ItemEncoding::Bytes);
    let mut filter = ScalableBloom::with_shape(shape, key.map_or(theirs, HashScheme::keyed)).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i)).unwrap();
    });
    filter.encode()
}

fn ribbon(members: u64) -> Vec<u8> {
    Ribbon::build((0..members).map(member), 0.01, SEED).unwrap().encode()
}

fn bitmap() -> Vec<u8> {
    let mut bitmap = Bitmap::new(5_000).unwrap();
    (0..MEMBERS).for_each(|i| {
        bitmap.set(i * i % 5_000).unwrap();
    });
    bitmap.encode()
}

fn all() -> Vec<Golden> {
    let key = SecretKey::new(*b"not very secret!");
    let members = || (0..MEMBERS).map(member);
    let shards = BuildOptions::default().items_per_shard(80);
    let tiers = ScalableShape::with_tiers(&[10, 100, 1_000], 0.01).unwrap();
    vec![
        Golden { name: "bloom", bytes: bloom(HashScheme::fast(SEED)) },
        Golden { name: "bloom-keyed", bytes: bloom(HashScheme::keyed(key)) },
        Golden { name: "bloom-wide", bytes: wide_bloom() },
        Golden { name: "blocked-split", bytes: blocked(BlockedLayout::Split256, 0.01) },
        Golden { name: "blocked-line", bytes: blocked(BlockedLayout::Line512, 0.01) },
        Golden { name: "blocked-two-lines", bytes: blocked(BlockedLayout::Line512, 1e-4) },
        Golden { name: "blocked-three-lines", bytes: blocked(BlockedLayout::Line512, 1e-6) },
        Golden { name: "counting", bytes: counting() },
        Golden { name: "dual", bytes: dual() },
        Golden { name: "scalable", bytes: scalable(ScalableShape::for_capacity(20, 0.01).unwrap()) },
        Golden { name: "scalable-tiers", bytes: scalable(tiers) },
        Golden { name: "gcs", bytes: gcs(0.01) },
        Golden { name: "gcs-low-rate", bytes: gcs(1e-9) },
        Golden { name: "quotient", bytes: quotient(0) },
        Golden { name: "quotient-doubled", bytes: quotient(2) },
        Golden { name: "d-left", bytes: dleft(0.01) },
        Golden { name: "d-left-low", bytes: dleft(1e-6) },
        Golden { name: "window-items", bytes: window_of_items() },
        Golden { name: "window-time", bytes: window_of_time(0.01) },
        Golden { name: "window-time-low", bytes: window_of_time(1e-6) },
        Golden { name: "cuckoo", bytes: cuckoo(CuckooShape::exactly(84, 4, 12, MEMBERS).unwrap()) },
        Golden { name: "cuckoo-wide", bytes: cuckoo(CuckooShape::exactly(42, 8, 23, MEMBERS).unwrap()) },
        Golden {
            name: "cuckoo-semi-sorted",
            bytes: cuckoo(CuckooShape::exactly_semi_sorted(84, 13, MEMBERS).unwrap()),
        },
        Golden { name: "growable-cuckoo", bytes: growable_cuckoo() },
        Golden { name: "growing", bytes: growing() },
        Golden { name: "scalable-cuckoo", bytes: scalable_cuckoo() },
        Golden { name: "scalable-redis-bloom", bytes: redis_bloom(None) },
        Golden { name: "scalable-redis-bloom-keyed", bytes: redis_bloom(Some(key)) },
        Golden { name: "ribbon", bytes: ribbon(MEMBERS) },
        Golden { name: "ribbon-layers", bytes: ribbon(6 * MEMBERS) },
        Golden { name: "binary-fuse-8", bytes: BinaryFuse8::build(members(), SEED).unwrap().encode() },
        Golden {
            name: "binary-fuse-8-shards",
            bytes: BinaryFuse8::build_with(members(), &shards, SEED).unwrap().encode(),
        },
        Golden { name: "binary-fuse-16", bytes: BinaryFuse16::build(members(), SEED).unwrap().encode() },
        Golden { name: "binary-fuse-32", bytes: BinaryFuse32::build(members(), SEED).unwrap().encode() },
        Golden { name: "xor-8", bytes: Xor8::build(members(), SEED).unwrap().encode() },
        Golden {
            name: "xor-16-shards",
            bytes: Xor16::build_with(members(), &shards, SEED).unwrap().encode(),
        },
        Golden { name: "xor-32", bytes: Xor32::build(members(), SEED).unwrap().encode() },
        Golden { name: "fingerprints", bytes: fingerprints(0) },
        Golden { name: "fingerprints-cut", bytes: fingerprints(1) },
        Golden { name: "fingerprints-cut-twice", bytes: fingerprints(2) },
        Golden { name: "bitmap", bytes: bitmap() },
    ]
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// `name members non_members` on every line.
fn pinned() -> BTreeMap<String, (u64, u64)> {
    let text = fs::read_to_string(folder().join("answers.txt")).unwrap_or_default();
    let mut pinned = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let number = |words: &mut std::str::SplitWhitespace<'_>| words.next().unwrap().parse().unwrap();
        let name = words.next().unwrap().to_owned();
        pinned.insert(name, (number(&mut words), number(&mut words)));
    }
    pinned
}

#[test]
fn bytes_and_false_positives_never_change() {
    let writing = std::env::var_os("MAYHAP_WRITE_GOLDEN").is_some();
    let mut pinned = pinned();
    for Golden { name, bytes } in all() {
        let path = folder().join(format!("{name}.mayhap"));
        if writing && !path.exists() {
            fs::create_dir_all(folder()).unwrap();
            fs::write(&path, &bytes).unwrap();
            pinned.insert(name.to_owned(), ask(&bytes));
            let lines = pinned
                .iter()
                .map(|(name, (members, non_members))| format!("{name} {members} {non_members}\n"));
            fs::write(folder().join("answers.txt"), lines.collect::<String>()).unwrap();
        }
        let golden = fs::read(&path).unwrap_or_else(|error| {
            panic!("{}: {error}; `just golden` writes missing files", path.display())
        });
        assert!(golden == bytes, "{name}: the bytes of this filter have changed");
        let expected = pinned.get(name).unwrap_or_else(|| panic!("answers.txt has no line for {name}"));
        assert_eq!(ask(&golden), *expected, "{name}: members found, false positives");
    }
}

#[test]
fn members_are_there_and_non_members_seldom() {
    for (name, (members, non_members)) in pinned().into_iter().filter(|(name, _)| name != "bitmap") {
        assert_eq!(members, MEMBERS, "{name}");
        assert!(non_members < NON_MEMBERS / 50, "{name}: {non_members} of {NON_MEMBERS}");
    }
}

/// Every golden file decodes, including kinds and versions that are no longer written.
#[test]
fn every_golden_file_is_known() {
    let known: Vec<String> = all().iter().map(|golden| format!("{}.mayhap", golden.name)).collect();
    for entry in fs::read_dir(folder()).expect("the golden files are in the tree") {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "answers.txt" || known.contains(&name), "{name} is not read by any test");
    }
}
