//! While a build is open, changes of the generation that serves reach the build as well.

use mayhap_testkit::generations::{Done, KINDS, Server, history};
use mayhap_testkit::host::Wire;

use super::stage::{Stage, booleans, field};
use crate::mf::holder::Next;
use crate::reply::Reply;
use crate::value::Value;

/// The kinds that cannot be added to.
fn is_static(options: &str) -> bool {
    ["xor", "fuse", "ribbon", "gcs"].iter().any(|kind| options.contains(kind))
}

fn joined(items: impl Iterator<Item = u64>) -> String {
    items.map(|item| format!(" {item}")).collect()
}

#[test]
fn items_added_during_a_build_are_in_it_for_every_kind() {
    for serving in KINDS.iter().filter(|options| !is_static(options)) {
        for building in KINDS {
            let mut stage = Stage::new();
            assert_eq!(stage.run(&format!("MF.RESERVE f {serving}")), Reply::Ok, "{serving}");
            assert_eq!(booleans(&stage.run("MF.MADD f 60 61")), [true, true]);
            assert_eq!(stage.run(&format!("MF.BUILD f BEGIN {building}")), Reply::Ok);
            assert!(matches!(stage.run("MF.BUILD f ADD 62 63"), Reply::Integer(2)));
            // Twelve new items, some alone and some together, and one that the old generation already had.
            stage.run("MF.ADD f 64");
            assert!(stage.changed);
            stage.run(&format!("MF.MADD f{}", joined(65..76)));
            stage.run("MF.ADD f 60");
            assert!(stage.changed, "{serving}, {building}");
            assert_eq!(stage.run("MF.BUILD f COMMIT"), Reply::Integer(2), "{serving}, {building}");
            let held = booleans(&stage.run(&format!("MF.MEXISTS f 60{}", joined(62..76))));
            assert!(held.iter().all(|held| *held), "{serving}, {building}: {held:?}");
        }
    }
}

#[test]
fn commit_fails_if_the_build_missed_a_change() {
    for (building, why) in [
        ("KIND bitmap RANGE 0 100", "a bitmap holds numbers"),
        ("KIND quotient CAPACITY 10 FPR 0.01", "full"),
        ("KIND fingerprints MEMORY 1024", ""),
    ] {
        let mut stage = Stage::new();
        assert_eq!(stage.run("MF.RESERVE f KIND bloom CAPACITY 4000"), Reply::Ok);
        assert_eq!(stage.run(&format!("MF.BUILD f BEGIN {building}")), Reply::Ok);
        assert_eq!(stage.run("MF.BUILD f ADD 5"), Reply::Integer(1));
        let items: Vec<String> = (0..1_000).map(|item| format!("item-{item}")).collect();
        let added = booleans(&stage.run(&format!("MF.MADD f {}", items.join(" "))));
        assert_eq!(added.len(), 1_000, "the generation that serves accepts them");
        for line in ["MF.BUILD f COMMIT", "MF.BUILD f ADD 6"] {
            let refused = stage.refused(line);
            assert!(refused.contains("changes made during it (") && refused.contains(why), "{refused}");
        }
        let Reply::Integer(missed) = *field(&stage.run("MF.BUILD f INFO"), "missed") else { panic!() };
        assert!((1..=1_000).contains(&missed), "{missed}");
        // The same after it was stored and loaded.
        restart(&mut stage);
        assert!(stage.refused("MF.BUILD f COMMIT").contains(&format!("{missed} changes made during it")));
        assert!(booleans(&stage.run(&format!("MF.MEXISTS f {}", items.join(" ")))).iter().all(|held| *held));
        assert_eq!(stage.run("MF.BUILD f ABORT"), Reply::Ok);
        assert_eq!(stage.run("MF.BUILD f BEGIN KIND bloom CAPACITY 2000"), Reply::Ok);
        assert_eq!(stage.run("MF.BUILD f COMMIT"), Reply::Integer(2));
    }
}

#[test]
fn refused_item_is_in_neither_generation() {
    let mut stage = Stage::new();
    assert_eq!(stage.run("MF.RESERVE f KIND bitmap RANGE 0 100"), Reply::Ok);
    assert_eq!(stage.run("MF.BUILD f BEGIN KIND fuse16"), Reply::Ok);
    assert!(matches!(stage.run("MF.MADD f 1 x 2"), Reply::Array(_)));
    assert_eq!(field(&stage.run("MF.BUILD f INFO"), "inserted"), &Reply::Integer(2));
}

#[test]
fn merge_during_build_is_applied_or_blocks_commit() {
    const KEY: &str = "KEY 000102030405060708090a0b0c0d0e0f";
    for (building, fits) in [
        ("KIND bloom CAPACITY 4000", true),
        ("KIND bloom CAPACITY 4001", false),
        ("KIND cuckoo CAPACITY 4000", false),
        ("KIND gcs", false),
    ] {
        let mut stage = Stage::new();
        for name in ["f", "g"] {
            assert_eq!(stage.run(&format!("MF.RESERVE {name} KIND bloom CAPACITY 4000 {KEY}")), Reply::Ok);
        }
        stage.run("MF.MADD g 1 2 3");
        assert_eq!(stage.run(&format!("MF.BUILD f BEGIN {building} {KEY}")), Reply::Ok);
        assert_eq!(stage.run("MF.BUILD f ADD 4"), Reply::Integer(1));
        assert_eq!(stage.run("MF.MERGE f g"), Reply::Ok, "{building}");
        assert_eq!(booleans(&stage.run("MF.MEXISTS f 1 2 3")), [true; 3]);
        if fits {
            assert_eq!(stage.run("MF.BUILD f COMMIT"), Reply::Integer(2));
            assert_eq!(booleans(&stage.run("MF.MEXISTS f 1 2 3 4")), [true; 4]);
        } else {
            let refused = stage.refused("MF.BUILD f COMMIT");
            assert!(refused.contains("could not apply 1 changes made during it"), "{refused}");
            assert_eq!(booleans(&stage.run("MF.MEXISTS f 1 2 3")), [true; 3]);
        }
    }
}

#[test]
fn removal_during_build_keeps_other_items() {
    // Fingerprints of few bits: almost all items collide.
    for kind in [
        "KIND cuckoo CAPACITY 400 FPR 0.3",
        "KIND counting CAPACITY 200 FPR 0.3",
        "KIND quotient CAPACITY 400 FPR 0.3",
    ] {
        let mut stage = Stage::new();
        assert_eq!(stage.run(&format!("MF.RESERVE f {kind}")), Reply::Ok);
        stage.run(&format!("MF.MADD f{}", joined(0..150)));
        assert_eq!(stage.run("MF.BUILD f BEGIN"), Reply::Ok);
        stage.run(&format!("MF.BUILD f ADD{}", joined(1_000..1_100)));
        for item in 0..150 {
            assert_eq!(stage.run(&format!("MF.DEL f {item}")), Reply::Boolean(true), "{kind}");
        }
        assert_eq!(stage.run("MF.ADD f 7"), Reply::Boolean(true));
        assert_eq!(stage.run("MF.CLEAR f"), Reply::Ok);
        assert_eq!(stage.run("MF.BUILD f COMMIT"), Reply::Integer(2));
        let held = booleans(&stage.run(&format!("MF.MEXISTS f 7{}", joined(1_000..1_100))));
        assert!(held.iter().all(|held| *held), "{kind}");
    }
    // A bitmap is exact.
    let mut stage = Stage::new();
    assert_eq!(stage.run("MF.RESERVE f KIND bitmap RANGE 0 100"), Reply::Ok);
    stage.run("MF.MADD f 1 2 3");
    assert_eq!(stage.run("MF.BUILD f BEGIN"), Reply::Ok);
    stage.run("MF.BUILD f ADD 2 3");
    assert_eq!(stage.run("MF.DEL f 2"), Reply::Boolean(true));
    assert_eq!(stage.run("MF.BUILD f COMMIT"), Reply::Integer(2));
    assert_eq!(booleans(&stage.run("MF.MEXISTS f 1 2 3")), [false, false, true]);
}

#[test]
fn load_and_second_begin_are_refused_during_a_build() {
    let mut stage = Stage::new();
    assert_eq!(stage.run("MF.RESERVE f KIND bloom CAPACITY 4000"), Reply::Ok);
    assert_eq!(stage.run("MF.BUILD f BEGIN"), Reply::Ok);
    stage.run("MF.ADD f 1");
    assert!(stage.refused("MF.LOAD f 0 x").contains("a build is in progress"));
    assert!(stage.refused("MF.BUILD f BEGIN").contains("a build is in progress"));
    assert_eq!(stage.run("MF.BUILD f COMMIT"), Reply::Integer(2));
    assert_eq!(stage.run("MF.EXISTS f 1"), Reply::Boolean(true));
}

/// Stores and reloads the value of every name.
fn restart(stage: &mut Stage) {
    for value in stage.values.values_mut() {
        let (form, mut bytes) = (value.form(), Vec::new());
        value.store(&mut bytes).unwrap();
        let parameters = crate::Parameters::default();
        let context = crate::Context {
            limits: &crate::Limits::NONE,
            budget: &crate::Budget::default(),
            parameters: &parameters,
            environment: &stage.environment,
        };
        *value = Value::load(form, &bytes, &context).unwrap();
    }
}

/// A server of the commands only.
struct Commands {
    stage: Stage,
    /// The behaviour of an old version: only `MF.BUILD` changes the build.
    forgets: bool,
}

impl Server for Commands {
    fn ask(&mut self, words: &[Vec<u8>]) -> Wire {
        let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
        let changes = [&b"MF.ADD"[..], b"MF.MADD", b"MF.MERGE"].contains(&words[0]);
        let mut aside = None;
        if self.forgets
            && changes
            && let Some(Value::Filter(holder)) = self.stage.values.get_mut(words[1])
            && holder.is_ready()
            && let Some(Next::Building(_)) = holder.next()
        {
            aside = holder.take_next();
        }
        let reply = self.stage.run_words(&words);
        if let (Some(_), Some(Value::Filter(holder))) = (&aside, self.stage.values.get_mut(words[1])) {
            *holder.next_mut() = aside;
        }
        wire(&reply)
    }

    fn restart(&mut self, _crash: bool) {
        restart(&mut self.stage);
    }
}

fn wire(reply: &Reply) -> Wire {
    match reply {
        Reply::Ok => Wire::Simple("OK".into()),
        Reply::Integer(number) => Wire::Integer(*number),
        Reply::Boolean(flag) => Wire::Boolean(*flag),
        Reply::Bulk(bytes) => Wire::Bulk(bytes.clone()),
        Reply::Refused(refusal) => Wire::Refused(refusal.to_string()),
        Reply::Array(replies) => Wire::Array(replies.iter().map(wire).collect()),
        Reply::Booleans(answers) => Wire::Array(answers.iter().map(Wire::Boolean).collect()),
        other => Wire::Simple(format!("{other:?}")),
    }
}

const STEPS: u64 = 80;

#[test]
fn no_false_negative_during_generation_changes() {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let count = number("MAYHAP_GENERATIONS").unwrap_or(600);
    let mut all = Done::default();
    for seed in number("MAYHAP_SEED").unwrap_or(0)..count {
        let mut server = Commands { stage: Stage::new(), forgets: false };
        match history(seed, STEPS, &mut server) {
            Ok(done) => {
                all.commits += done.commits;
                all.refused += done.refused;
                all.asked += done.asked;
            }
            Err(wrong) => panic!("MAYHAP_SEED={seed}: {wrong}"),
        }
    }
    println!("{count} histories: {all:?}");
    assert!(all.commits > count / 4 && all.refused > count / 100 && all.asked > 20 * count, "{all:?}");
}

#[test]
fn a_forgetful_build_is_detected() {
    let noticed = (0..100).find(|seed| {
        let mut server = Commands { stage: Stage::new(), forgets: true };
        history(*seed, STEPS, &mut server).is_err()
    });
    assert!(noticed.is_some());
}
