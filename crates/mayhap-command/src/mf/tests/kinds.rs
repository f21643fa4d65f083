//! Every kind: reserved, filled, queried, cleared, dumped, loaded, merged, built.

use super::stage::{Stage, booleans, field};
use crate::reply::Reply;

/// The options of each kind, and whether it deletes items, counts them, merges, or is immutable.
const KINDS: &[(&str, Traits)] = &[
    ("KIND bitmap RANGE 0 9999999", Traits { deletes: true, counts: true, merges: true, fixed: false }),
    ("KIND bloom CAPACITY 4000", MERGES),
    ("KIND bloom CAPACITY 200000 PROBES 4", MERGES),
    ("KIND bloom BITS 40000 PROBES 7 CAPACITY 4000", MERGES),
    ("KIND blocked CAPACITY 4000 FPR 0.001", MERGES),
    ("KIND blocked-bloom-split CAPACITY 200000", MERGES),
    ("KIND blocked-bloom-line CAPACITY 4000", MERGES),
    ("KIND counting CAPACITY 4000", Traits { deletes: true, counts: true, merges: true, fixed: false }),
    (
        "KIND dual CAPACITY 4000 DELETES 500",
        Traits { deletes: true, counts: false, merges: true, fixed: false },
    ),
    ("KIND scalable TIERS 1000,10000,100000 FPR 0.01 GROWTH 2 TIGHTENING 0.5", PLAIN),
    ("KIND scalable", PLAIN),
    ("KIND dleft CAPACITY 4000", Traits { deletes: true, counts: true, merges: true, fixed: false }),
    ("KIND cuckoo CAPACITY 4000", COUNTS),
    ("KIND cuckoo-semi-sorted CAPACITY 4000", COUNTS),
    ("KIND growable-cuckoo CAPACITY 1000 MAX 8000", COUNTS),
    ("KIND quotient CAPACITY 4000", Traits { deletes: true, counts: true, merges: true, fixed: false }),
    ("KIND growing CAPACITY 500", COUNTS),
    ("KIND scalable-cuckoo CAPACITY 1000", COUNTS),
    ("KIND fingerprints", MERGES),
    ("KIND window WINDOW 10000", PLAIN),
    ("KIND window SECONDS 3600 CAPACITY 10000 GENERATIONS 6", PLAIN),
    ("KIND xor8", FIXED),
    ("KIND xor16", FIXED),
    ("KIND xor BITS 32", FIXED),
    ("KIND fuse8", FIXED),
    ("KIND fuse16 CAPACITY 3000", FIXED),
    ("KIND binary-fuse FPR 1e-9", FIXED),
    ("KIND ribbon FPR 0.02", FIXED),
    ("KIND gcs", Traits { deletes: false, counts: false, merges: true, fixed: true }),
];

#[derive(Clone, Copy)]
struct Traits {
    deletes: bool,
    counts: bool,
    merges: bool,
    fixed: bool,
}

const PLAIN: Traits = Traits { deletes: false, counts: false, merges: false, fixed: false };
const MERGES: Traits = Traits { merges: true, ..PLAIN };
const COUNTS: Traits = Traits { deletes: true, counts: true, ..PLAIN };
const FIXED: Traits = Traits { fixed: true, ..PLAIN };

const KEY: &str = "KEY 000102030405060708090a0b0c0d0e0f";
const ITEMS: u64 = 3_000;
const NON_MEMBERS: u64 = 2_000;

/// Items that are also numbers, for the bitmap.
fn members(from: u64) -> Vec<String> {
    (from..from + ITEMS).map(|item| (item * 7 + 1).to_string()).collect()
}

fn non_members() -> Vec<String> {
    (0..NON_MEMBERS).map(|item| (5_000_000 + item * 7).to_string()).collect()
}

fn many(stage: &mut Stage, command: &str, name: &str, items: &[String]) -> Reply {
    let mut words = vec![command.as_bytes(), name.as_bytes()];
    words.extend(items.iter().map(String::as_bytes));
    stage.run_words(&words)
}

/// Fills a reserved filter in the way its kind requires.
fn fill(stage: &mut Stage, name: &str, traits: Traits, items: &[String]) {
    if !traits.fixed {
        let new = booleans(&many(stage, "MF.MADD", name, items));
        assert_eq!(new.len(), items.len());
        assert!(new.iter().filter(|new| **new).count() > items.len() * 9 / 10, "{name}");
        assert!(stage.changed);
        return;
    }
    assert!(stage.refused(&format!("MF.ADD {name} x")).starts_with("NOTREADY "));
    assert!(stage.refused(&format!("MF.EXISTS {name} x")).starts_with("NOTREADY "));
    assert_eq!(stage.run(&format!("MF.BUILD {name} BEGIN")), Reply::Ok);
    for some in items.chunks(700) {
        let words: Vec<&[u8]> = ["MF.BUILD", name, "ADD"]
            .into_iter()
            .map(str::as_bytes)
            .chain(some.iter().map(String::as_bytes))
            .collect();
        assert!(matches!(stage.run_words(&words), Reply::Integer(_)));
    }
    assert!(stage.refused(&format!("MF.EXISTS {name} x")).starts_with("NOTREADY "));
    assert_eq!(stage.run(&format!("MF.BUILD {name} COMMIT")), Reply::Integer(1));
}

/// Checks that all members are found, and few non-members.
fn judge(stage: &mut Stage, name: &str, items: &[String]) {
    assert!(booleans(&many(stage, "MF.MEXISTS", name, items)).iter().all(|held| *held), "{name}");
    let wrong =
        booleans(&many(stage, "MF.MEXISTS", name, &non_members())).iter().filter(|held| **held).count();
    assert!(wrong < NON_MEMBERS as usize / 8, "{name}: {wrong}");
}

#[test]
fn every_kind_answers_correctly_after_dump_load_and_clear() {
    for (number, &(options, traits)) in KINDS.iter().enumerate() {
        let mut stage = Stage::new();
        let name = &format!("filter-{number}");
        assert_eq!(stage.run(&format!("MF.RESERVE {name} {options}")), Reply::Ok, "{options}");
        assert_eq!(
            stage.refused(&format!("MF.RESERVE {name} {options}")),
            "ERR item exists: the key holds a filter (use MF.* commands)"
        );
        let items = members(0);
        fill(&mut stage, name, traits, &items);
        judge(&mut stage, name, &items);
        let card = stage.run(&format!("MF.CARD {name}"));
        let Reply::Integer(inserted) = card else { panic!("{card:?}") };
        assert!(inserted as u64 > ITEMS * 9 / 10 && inserted as u64 <= ITEMS, "{options}: {inserted}");
        let info = stage.run(&format!("MF.INFO {name}"));
        assert_eq!(field(&info, "inserted"), &card);
        assert_eq!(field(&info, "state"), &Reply::bulk("ready"));
        assert_eq!(field(&info, "generation"), &Reply::Integer(1));
        assert_eq!(stage.run(&format!("MF.INFO {name} inserted")), card);
        let Reply::Double(fill) = field(&info, "fill") else { panic!() };
        assert!((0.0..=1.0).contains(fill) && *fill > 0.0, "{options}: {fill}");

        // Loaded in pieces into another server, it gives the same answers.
        let mut other = Stage::new();
        copy(&mut stage, &mut other, name);
        judge(&mut other, name, &items);
        assert_eq!(other.run(&format!("MF.CARD {name}")), card);
        let theirs = booleans(&many(&mut other, "MF.MEXISTS", name, &non_members()));
        let listed =
            matches!(&stage.values[name.as_bytes()], crate::Value::Filter(holder) if holder.served_as_list());
        assert!(listed || theirs == booleans(&many(&mut stage, "MF.MEXISTS", name, &non_members())));

        let explained = stage.run(&format!("MF.EXPLAIN {name} {}", items[5]));
        assert!(
            matches!(&explained, Reply::Text(text) if text.starts_with("maybe") || text.starts_with("yes")),
            "{explained:?}"
        );
        counts_and_deletes(&mut stage, name, traits, &items);

        assert_eq!(stage.run(&format!("MF.CLEAR {name}")), Reply::Ok);
        if traits.fixed {
            assert!(stage.refused(&format!("MF.EXISTS {name} 1")).starts_with("NOTREADY a "));
        } else {
            let held = booleans(&many(&mut stage, "MF.MEXISTS", name, &items));
            assert!(held.iter().all(|held| !held), "{options}");
            assert_eq!(stage.run(&format!("MF.CARD {name}")), Reply::Integer(0));
        }
    }
}

fn copy(from: &mut Stage, to: &mut Stage, name: &str) {
    let mut iterator = 0;
    loop {
        let Reply::Array(mut pair) = from.run(&format!("MF.DUMP {name} {iterator}")) else { panic!() };
        let (Some(Reply::Bulk(piece)), Some(Reply::Integer(next))) = (pair.pop(), pair.pop()) else {
            panic!()
        };
        let loaded = to.run_words(&[b"MF.LOAD", name.as_bytes(), iterator.to_string().as_bytes(), &piece]);
        let Reply::Integer(missing) = loaded else { panic!("{loaded:?}") };
        assert_eq!(missing == 0, next == 0);
        if next == 0 {
            return;
        }
        assert!(to.refused(&format!("MF.EXISTS {name} 1")).starts_with("NOTREADY "));
        iterator = next;
    }
}

fn counts_and_deletes(stage: &mut Stage, name: &str, traits: Traits, items: &[String]) {
    let item = &items[0];
    if traits.counts {
        let Reply::Integer(copies) = stage.run(&format!("MF.COUNT {name} {item}")) else { panic!("{name}") };
        assert!(copies >= 1, "{name}");
    } else {
        assert!(stage.refused(&format!("MF.COUNT {name} {item}")).ends_with("does not count copies"));
    }
    if !traits.deletes {
        assert!(stage.refused(&format!("MF.DEL {name} {item}")).starts_with("ERR "), "{name}");
        return;
    }
    for item in &items[..200] {
        assert_eq!(stage.run(&format!("MF.DEL {name} {item}")), Reply::Boolean(true), "{name}");
        assert!(stage.changed);
    }
    let held = booleans(&many(stage, "MF.MEXISTS", name, &items[200..]));
    // The only kind that can deny a member after a removal.
    let dual = stage.run(&format!("MF.INFO {name} kind")) == Reply::bulk("dual-bloom");
    let lost = held.iter().filter(|held| !**held).count();
    assert!(if dual { lost < 100 } else { lost == 0 }, "{name}: {lost}");
    let gone = booleans(&many(stage, "MF.MEXISTS", name, &items[..200]));
    assert!(gone.iter().filter(|held| **held).count() < 50, "{name}");
    assert_eq!(stage.run(&format!("MF.DEL {name} never-there")), Reply::Boolean(false), "{name}");
    assert!(!stage.changed);
}

#[test]
fn merge_succeeds_or_gives_the_reason_for_every_kind() {
    for &(options, traits) in KINDS {
        let mut stage = Stage::new();
        let (ours, theirs) = (members(0), members(1_000));
        for (name, items) in [("a", &ours), ("b", &theirs)] {
            // Filters with a capacity for both: the numbers are the same for each.
            let options = options.replace("4000", "9000").replace("40000", "90000");
            assert_eq!(stage.run(&format!("MF.RESERVE {name} {options} {KEY}")), Reply::Ok);
            fill(&mut stage, name, traits, items);
        }
        for line in ["MF.MERGE both a b", "MF.MERGE a a b"] {
            let reply = stage.run(line);
            if traits.merges {
                assert_eq!(reply, Reply::Ok, "{options}");
                let target = line.split(' ').nth(1).unwrap();
                judge(&mut stage, target, &ours);
                judge(&mut stage, target, &theirs);
            } else {
                assert!(
                    matches!(&reply, Reply::Refused(why) if why.to_string().contains("cannot be merged")),
                    "{options}: {reply:?}"
                );
                assert!(stage.refused("MF.EXISTS both 1").starts_with("NOTREADY "));
                judge(&mut stage, "a", &ours);
            }
        }
        judge(&mut stage, "b", &theirs);
    }
}

#[test]
fn failed_merge_changes_nothing() {
    let mut stage = Stage::new();
    for (name, options) in [
        ("a", format!("KIND bloom CAPACITY 9000 {KEY}")),
        ("b", format!("KIND bloom CAPACITY 9000 {KEY}")),
        ("other-key", "KIND bloom CAPACITY 9000".into()),
        ("other-shape", format!("KIND bloom CAPACITY 9001 {KEY}")),
        ("other-kind", format!("KIND blocked CAPACITY 9000 {KEY}")),
    ] {
        assert_eq!(stage.run(&format!("MF.RESERVE {name} {options}")), Reply::Ok);
        stage.run(&format!("MF.ADD {name} {name}"));
    }
    assert!(stage.refused("MF.MERGE a b other-key").contains("secret keys"));
    assert!(stage.refused("MF.MERGE a b other-shape").contains("different shape"));
    assert!(stage.refused("MF.MERGE a b other-kind").contains("different kinds"));
    assert!(stage.refused("MF.MERGE a b missing").starts_with("NOTREADY "));
    assert!(stage.refused("MF.MERGE missing missing").starts_with("NOTREADY "));
    assert_eq!(stage.run("MF.EXISTS a b"), Reply::Boolean(false));
    assert_eq!(stage.run("MF.MERGE a a"), Reply::Ok);
    assert_eq!(stage.run("MF.MERGE copy b"), Reply::Ok);
    assert_eq!(stage.run("MF.EXISTS copy b"), Reply::Boolean(true));
}

#[test]
fn build_does_not_affect_the_serving_generation() {
    let mut stage = Stage::new();
    assert!(stage.refused("MF.BUILD users ADD a").starts_with("NOTREADY "));
    assert_eq!(stage.run("MF.BUILD users BEGIN KIND ribbon FPR 0.0001"), Reply::Ok);
    assert!(stage.refused("MF.BUILD users BEGIN KIND ribbon").contains("a build is in progress"));
    assert_eq!(stage.run("MF.BUILD users ADD ada grace"), Reply::Integer(2));
    assert_eq!(stage.refused("MF.EXISTS users ada"), "NOTREADY the filter is being built");
    assert_eq!(stage.run("MF.INFO users state"), Reply::bulk("building"));
    assert_eq!(field(&stage.run("MF.BUILD users INFO"), "inserted"), &Reply::Integer(2));
    assert_eq!(stage.run("MF.BUILD users COMMIT"), Reply::Integer(1));
    assert_eq!(stage.run("MF.EXISTS users ada"), Reply::Boolean(true));

    // The next one is of another kind; the first serves on meanwhile.
    assert_eq!(stage.run("MF.BUILD users BEGIN KIND cuckoo CAPACITY 1000 FPR 0.0001"), Reply::Ok);
    assert_eq!(stage.run("MF.BUILD users ADD edsger barbara"), Reply::Integer(2));
    let asked = stage.run("MF.MEXISTS users ada edsger");
    assert_eq!(booleans(&asked), [true, false]);
    assert_eq!(stage.run("MF.INFO users next"), Reply::bulk("building"));
    assert_eq!(stage.run("MF.BUILD users COMMIT"), Reply::Integer(2));
    assert_eq!(booleans(&stage.run("MF.MEXISTS users ada edsger barbara")), [false, true, true]);
    assert!(stage.refused("MF.BUILD users COMMIT").contains("no build is in progress"));

    // Given up.
    assert_eq!(stage.run("MF.BUILD users BEGIN"), Reply::Ok);
    assert_eq!(stage.run("MF.BUILD users ADD alan"), Reply::Integer(1));
    assert_eq!(stage.run("MF.BUILD users ABORT"), Reply::Ok);
    assert_eq!(stage.run("MF.EXISTS users edsger"), Reply::Boolean(true));
    assert_eq!(stage.run("MF.INFO users generation"), Reply::Integer(2));
    assert_eq!(stage.run("MF.BUILD fresh BEGIN KIND gcs"), Reply::Ok);
    assert_eq!(stage.run("MF.BUILD fresh ABORT"), Reply::Ok);
    assert!(!stage.values.contains_key(&b"fresh"[..]));
    assert!(stage.refused("MF.BUILD users DANCE").contains("unknown subcommand 'DANCE'"));
    assert!(stage.refused("MF.BUILD users COMMIT now").contains("wrong number of arguments"));
}

#[test]
fn windows_forget_items_after_their_time() {
    let mut stage = Stage::new();
    assert_eq!(stage.run("MF.RESERVE seen SECONDS 60 CAPACITY 1000 GENERATIONS 6"), Reply::Ok);
    assert_eq!(stage.run("MF.ADD seen a"), Reply::Boolean(true));
    stage.wait(45_000);
    assert_eq!(stage.run("MF.EXISTS seen a"), Reply::Boolean(true));
    assert_eq!(stage.run("MF.ADD seen b"), Reply::Boolean(true));
    stage.wait(45_000);
    assert_eq!(booleans(&stage.run("MF.MEXISTS seen a b")), [false, true]);
    assert!(matches!(stage.run("MF.EXPLAIN seen a"), Reply::Text(text) if text.starts_with("no")));
}

#[test]
fn bitmaps_hold_numbers() {
    let mut stage = Stage::new();
    assert_eq!(stage.run("MF.RESERVE ids KIND bitmap RANGE 100 199"), Reply::Ok);
    let Reply::Array(added) = stage.run("MF.MADD ids 100 199 200 ada 100") else { panic!() };
    assert_eq!(added[0], Reply::Boolean(true));
    assert_eq!(added[1], Reply::Boolean(true));
    assert!(matches!(&added[2], Reply::Refused(why) if why.to_string().contains("out of range")));
    assert!(matches!(&added[3], Reply::Refused(why) if why.to_string().contains("holds numbers")));
    assert_eq!(added[4], Reply::Boolean(false));
    assert_eq!(
        booleans(&stage.run("MF.MEXISTS ids 100 101 ada 0100 18446744073709551615")),
        [true, false, false, false, false]
    );
    assert_eq!(stage.run("MF.RESERVE dense KIND bitmap CAPACITY 10"), Reply::Ok);
    assert_eq!(booleans(&stage.run("MF.MADD dense 0 9")), [true, true]);
}

#[test]
fn window_works_after_the_clock_was_ahead() {
    const DAY_MS: u64 = 86_400_000;
    let mut stage = Stage::new();
    let start = stage.now();
    assert_eq!(stage.run("MF.RESERVE seen SECONDS 60 CAPACITY 1000"), Reply::Ok);
    assert_eq!(stage.run("MF.ADD seen before"), Reply::Boolean(true));
    stage.set_now(start + 365 * DAY_MS);
    assert_eq!(stage.run("MF.ADD seen ahead"), Reply::Boolean(true));
    stage.set_now(start + 1_000);
    assert_eq!(stage.run("MF.ADD seen after"), Reply::Boolean(true));
    assert_eq!(booleans(&stage.run("MF.MEXISTS seen before ahead after")), [true; 3]);
    stage.set_now(start + 30 * DAY_MS);
    assert_eq!(booleans(&stage.run("MF.MEXISTS seen before ahead after")), [false; 3]);
    // Emptied while the clock was ahead.
    stage.set_now(start + 365 * DAY_MS);
    assert_eq!(stage.run("MF.ADD seen again"), Reply::Boolean(true));
    assert_eq!(stage.run("MF.CLEAR seen"), Reply::Ok);
    stage.set_now(start + 31 * DAY_MS);
    assert_eq!(stage.run("MF.ADD seen fresh"), Reply::Boolean(true));
    stage.wait(60_000);
    assert_eq!(booleans(&stage.run("MF.MEXISTS seen again fresh")), [false, true]);
    stage.wait(21_000);
    assert_eq!(stage.run("MF.EXISTS seen fresh"), Reply::Boolean(false));
}

#[test]
fn insert_creates_a_filter_and_adds_items() {
    let mut stage = Stage::new();
    assert!(stage.refused("MF.INSERT user NOCREATE ITEMS a").starts_with("NOTREADY"));
    assert_eq!(
        booleans(&stage.run("MF.INSERT user CAPACITY 1000 FPR 0.001 ITEMS a b a")),
        [true, true, false]
    );
    assert_eq!(booleans(&stage.run("MF.INSERT user CAPACITY 5 ITEMS b c")), [false, true]);
    assert_eq!(booleans(&stage.run("mf.insert user nocreate items items")), [true]);
    assert_eq!(booleans(&stage.run("MF.MEXISTS user a b c items d")), [true, true, true, true, false]);
    assert_eq!(booleans(&stage.run("MF.INSERT seen SECONDS 60 CAPACITY 100 ITEMS x")), [true]);
    assert!(stage.refused("MF.INSERT user CAPACITY 10").contains("ITEMS"));
    assert!(stage.refused("MF.INSERT user CAPACITY 10 ITEMS").contains("ITEMS"));
    assert!(stage.refused("MF.INSERT user DANCE ITEMS a").contains("unknown option 'DANCE'"));
    // A kind that is built of all its items at once, or no recipe: nothing is made.
    assert!(stage.refused("MF.INSERT fixed KIND xor8 CAPACITY 10 ITEMS a").starts_with("NOTREADY"));
    assert!(stage.refused("MF.INSERT fixed CAPACITY 10 FPR 7 ITEMS a").starts_with("ERR"));
    assert!(!stage.values.contains_key(&b"fixed"[..]));
}

#[test]
fn errors_name_the_existing_kind() {
    let mut stage = Stage::new();
    assert_eq!(
        stage.refused("MF.RESERVE tiers TIERS 100,1000,1000"),
        "ERR TIERS must ascend, but 1000 follows 1000"
    );
    assert_eq!(stage.refused("MF.RESERVE tiers TIERS 5,3"), "ERR TIERS must ascend, but 3 follows 5");
    assert_eq!(stage.run("MF.RESERVE tiers TIERS 3,5"), Reply::Ok);
    assert!(stage.refused("MF.RESERVE tiers TIERS 3,5").contains("the key holds a filter"));
    stage.run("BF.ADD bloom a");
    stage.run("CF.ADD cuckoo a");
    let held = "WRONGTYPE Operation against a key holding the wrong kind of value: it holds a ";
    for (name, what) in
        [("bloom", "Bloom filter (use BF.* commands)"), ("cuckoo", "cuckoo filter (use CF.* commands)")]
    {
        for line in
            [format!("MF.ADD {name} a"), format!("MF.EXISTS {name} a"), format!("MF.INSERT {name} ITEMS a")]
        {
            assert_eq!(stage.refused(&line), format!("{held}{what}"), "{line}");
        }
        assert!(stage.refused(&format!("MF.RESERVE {name} CAPACITY 5")).contains(what));
    }
}

/// 100 µs without the memory; the limit leaves room for a busy machine.
#[test]
fn repeated_choices_are_cached() {
    let mut stage = Stage::new();
    let mut each = Vec::new();
    for user in 0..2_000 {
        let line = format!("MF.RESERVE user:{user} CAPACITY 100 FPR 0.01");
        let since = std::time::Instant::now();
        assert_eq!(stage.run(&line), Reply::Ok);
        each.push(since.elapsed());
    }
    each.sort_unstable();
    println!("median {:?}", each[1_000]);
    assert!(each[1_000] < std::time::Duration::from_micros(25), "median {:?}", each[1_000]);
}
