//! Golden files: the exact bytes of a filter of every kind, and the exact number of wrong answers it gives.
//!
//! Any drift in hashing, placement or format shows here. Files are added, never edited: a new format version gets new
//! ones, and the old ones must decode for ever. `just golden` writes those that are missing.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use mayhap::{
    Bitmap, BlockedBloom, BlockedLayout, BlockedShape, Bloom, CountingBloom, DualBloom, HashScheme,
    ScalableBloom, ScalableShape, SecretKey,
};
use mayhap_testkit::{member, stranger};

const SEED: u64 = 0x006d_6179_6861_7031;
const MEMBERS: u64 = 300;
const STRANGERS: u64 = 200_000;

/// A filter as it must be: its name, its bytes, and how to ask what is in a file.
struct Golden {
    name: &'static str,
    bytes: Vec<u8>,
    /// Members that are there and strangers that seem to be, in the filter decoded from these bytes.
    ask: fn(&[u8]) -> (u64, u64),
}

fn counts(may_contain: impl Fn(&[u8]) -> bool) -> (u64, u64) {
    let members = (0..MEMBERS).filter(|&i| may_contain(&member(i))).count();
    let strangers = (0..STRANGERS).filter(|&i| may_contain(&stranger(i))).count();
    (members as u64, strangers as u64)
}

fn ask_bloom(bytes: &[u8]) -> (u64, u64) {
    let filter = Bloom::decode(bytes).unwrap();
    counts(|item| filter.may_contain(item))
}

fn ask_blocked(bytes: &[u8]) -> (u64, u64) {
    let filter = BlockedBloom::decode(bytes).unwrap();
    counts(|item| filter.may_contain(item))
}

fn ask_counting(bytes: &[u8]) -> (u64, u64) {
    let filter = CountingBloom::decode(bytes).unwrap();
    counts(|item| filter.may_contain(item))
}

fn ask_dual(bytes: &[u8]) -> (u64, u64) {
    let filter = DualBloom::decode(bytes).unwrap();
    counts(|item| filter.may_contain(item))
}

fn ask_scalable(bytes: &[u8]) -> (u64, u64) {
    let filter = ScalableBloom::decode(bytes).unwrap();
    counts(|item| filter.may_contain(item))
}

/// For the exact bitmap: its set bits, and how many of the ids up to 10 000 are set.
fn ask_bitmap(bytes: &[u8]) -> (u64, u64) {
    let bitmap = Bitmap::decode(bytes).unwrap();
    (bitmap.count(), (0..10_000).filter(|&id| bitmap.get(id)).count() as u64)
}

fn bloom(scheme: HashScheme) -> Vec<u8> {
    let mut filter = Bloom::for_capacity(MEMBERS, 0.01, scheme).unwrap();
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
        filter.insert(&stranger(i));
    });
    (0..MEMBERS).for_each(|i| {
        assert!(filter.remove(&stranger(i)));
    });
    filter.encode()
}

/// No stranger is ever taken out: a hidden member would make the count of members depend on luck.
fn dual() -> Vec<u8> {
    let mut filter = DualBloom::for_capacity(MEMBERS + 20, 20, 0.001, SEED).unwrap();
    (0..MEMBERS).for_each(|i| {
        filter.insert(&member(i)).unwrap();
    });
    (0..20).for_each(|i| {
        filter.insert(&stranger(STRANGERS + i)).unwrap();
        filter.remove(&stranger(STRANGERS + i));
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

fn bitmap() -> Vec<u8> {
    let mut bitmap = Bitmap::new(5_000).unwrap();
    (0..MEMBERS).for_each(|i| {
        bitmap.set(i * i % 5_000).unwrap();
    });
    bitmap.encode()
}

fn all() -> Vec<Golden> {
    let key = SecretKey::new(*b"not very secret!");
    let tiers = ScalableShape::with_tiers(&[10, 100, 1_000], 0.01).unwrap();
    vec![
        Golden { name: "bloom", bytes: bloom(HashScheme::fast(SEED)), ask: ask_bloom },
        Golden { name: "bloom-keyed", bytes: bloom(HashScheme::keyed(key)), ask: ask_bloom },
        Golden { name: "blocked-split", bytes: blocked(BlockedLayout::Split256, 0.01), ask: ask_blocked },
        Golden { name: "blocked-line", bytes: blocked(BlockedLayout::Line512, 0.01), ask: ask_blocked },
        Golden { name: "blocked-two-lines", bytes: blocked(BlockedLayout::Line512, 1e-4), ask: ask_blocked },
        Golden {
            name: "blocked-three-lines",
            bytes: blocked(BlockedLayout::Line512, 1e-6),
            ask: ask_blocked,
        },
        Golden { name: "counting", bytes: counting(), ask: ask_counting },
        Golden { name: "dual", bytes: dual(), ask: ask_dual },
        Golden {
            name: "scalable",
            bytes: scalable(ScalableShape::for_capacity(20, 0.01).unwrap()),
            ask: ask_scalable,
        },
        Golden { name: "scalable-tiers", bytes: scalable(tiers), ask: ask_scalable },
        Golden { name: "bitmap", bytes: bitmap(), ask: ask_bitmap },
    ]
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// `name members strangers` on every line.
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
fn bytes_and_wrong_answers_never_change() {
    let writing = std::env::var_os("MAYHAP_WRITE_GOLDEN").is_some();
    let mut pinned = pinned();
    for Golden { name, bytes, ask } in all() {
        let path = folder().join(format!("{name}.mayhap"));
        if writing && !path.exists() {
            fs::create_dir_all(folder()).unwrap();
            fs::write(&path, &bytes).unwrap();
            pinned.insert(name.to_owned(), ask(&bytes));
            let lines =
                pinned.iter().map(|(name, (members, strangers))| format!("{name} {members} {strangers}\n"));
            fs::write(folder().join("answers.txt"), lines.collect::<String>()).unwrap();
        }
        let golden = fs::read(&path).unwrap_or_else(|error| {
            panic!("{}: {error}; `just golden` writes what is missing", path.display())
        });
        assert!(golden == bytes, "{name}: the bytes of this filter have changed");
        let expected = pinned.get(name).unwrap_or_else(|| panic!("answers.txt says nothing of {name}"));
        assert_eq!(ask(&golden), *expected, "{name}: members found, strangers taken for members");
    }
}

#[test]
fn members_are_there_and_strangers_seldom() {
    for (name, (members, strangers)) in pinned().into_iter().filter(|(name, _)| name != "bitmap") {
        assert_eq!(members, MEMBERS, "{name}");
        assert!(strangers < STRANGERS / 50, "{name}: {strangers} of {STRANGERS}");
    }
}

/// A file of every kind that is there decodes, also of kinds and versions nobody writes any more.
#[test]
fn every_golden_file_is_known() {
    let known: Vec<String> = all().iter().map(|golden| format!("{}.mayhap", golden.name)).collect();
    for entry in fs::read_dir(folder()).expect("the golden files are in the tree") {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "answers.txt" || known.contains(&name), "{name} is not read by any test");
    }
}
