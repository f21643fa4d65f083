//! Lost values answer *not ready*, never *no*, until they are created again or deleted: after a repair,
//! restarts and snapshots.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::Arc;

use mayhap_command::{Limits, Reply};
use mayhap_engine::log::{self, Policy, Salts};
use mayhap_engine::snapshot::{self, MANIFEST};
use mayhap_engine::{Disk as _, Engine, Losses, RecoverError, Salvage};
use mayhap_testkit::rng::Rng;
use support::simulated::{Simulated, Spoiled};
use support::{FixedClock, one, text};

fn recover(disk: &Simulated, seed: u64) -> Result<Engine, RecoverError> {
    let engine = Engine::new(Limits::default(), FixedClock::new(seed));
    let limits = log::Limits { segment_bytes: 2_000, salts: Salts::Seeded(seed), ..log::Limits::default() };
    engine.recover_quiet(Arc::new(disk.clone()), Policy::Always, limits)?;
    Ok(engine)
}

fn empty() -> Simulated {
    Simulated::new(Spoiled::Not)
}

fn engine_on(disk: &Simulated, seed: u64) -> Engine {
    recover(disk, seed).unwrap()
}

/// Makes values of a few bytes count as large, so that they have files of their own.
fn save(engine: &Engine, disk: &Simulated) {
    let snapshot = engine.begin_snapshot(disk).unwrap();
    snapshot.with_sizes(64, 100, 2).finish().unwrap();
}

fn close(engine: Engine) {
    engine.log().unwrap().close().unwrap();
    drop(engine);
}

/// Salvages `disk` onto a new disk.
fn repaired(disk: &Simulated, losses: Losses) -> (Engine, Salvage, Simulated) {
    let engine = Engine::new(Limits::default(), FixedClock::new(7));
    let salvage = engine.salvage(disk, losses).unwrap();
    let kept = empty();
    snapshot::save(&engine, &kept).unwrap();
    (engine, salvage, kept)
}

fn files(disk: &Simulated, prefix: &str) -> Vec<String> {
    let mut files: Vec<String> =
        disk.list().unwrap().into_iter().filter(|file| file.starts_with(prefix)).collect();
    files.sort();
    files
}

fn run(engine: &Engine, lines: &[&str]) {
    for line in lines {
        let reply = one(engine, line);
        assert!(!matches!(reply, Reply::Refused(_)), "{line}: {}", text(&reply));
    }
}

#[track_caller]
fn not_ready(engine: &Engine, lines: &[&str]) {
    for line in lines {
        let said = text(&one(engine, line));
        assert!(said.starts_with("NOTREADY "), "{line}: {said}");
    }
}

fn lost(salvage: &Salvage) -> Vec<String> {
    salvage.lost.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
}

/// A folder with one filter of each family, each in a file of its own. Then the file of `gone` is removed.
fn without_value(gone: &str) -> Simulated {
    let disk = empty();
    let engine = engine_on(&disk, 1);
    run(&engine, &["BF.RESERVE bloom 0.01 1000", "BF.ADD bloom ada"]);
    save(&engine, &disk);
    let before = files(&disk, "value-");
    run(&engine, &["CF.RESERVE cuckoo 1000", "CF.ADD cuckoo ada"]);
    save(&engine, &disk);
    let middle = files(&disk, "value-");
    run(&engine, &["MF.RESERVE any KIND bloom CAPACITY 1000 FPR 0.01", "MF.MADD any ada bob"]);
    run(&engine, &["SET text hello"]);
    save(&engine, &disk);
    let after = files(&disk, "value-");
    close(engine);
    let new = |old: &[String], now: &[String]| {
        now.iter().find(|file| !old.contains(file)).expect("a value of its own").clone()
    };
    let file = match gone {
        "bloom" => before[0].clone(),
        "cuckoo" => new(&before, &middle),
        _ => new(&middle, &after),
    };
    disk.remove(&file).unwrap();
    disk
}

const OF_BLOOM: &[&str] = &[
    "BF.EXISTS bloom ada",
    "BF.MEXISTS bloom ada bob",
    "BF.ADD bloom eve",
    "BF.MADD bloom eve",
    "BF.INSERT bloom ITEMS eve",
    "BF.CARD bloom",
    "BF.INFO bloom",
    "BF.SCANDUMP bloom 0",
    "MF.EXISTS bloom ada",
    "MF.INFO bloom",
    "GET bloom",
    "SETBIT bloom 1 1",
    "DUMP bloom",
    "COPY bloom other",
];
const OF_CUCKOO: &[&str] = &[
    "CF.EXISTS cuckoo ada",
    "CF.MEXISTS cuckoo ada",
    "CF.ADD cuckoo eve",
    "CF.ADDNX cuckoo eve",
    "CF.INSERT cuckoo ITEMS eve",
    "CF.INSERTNX cuckoo ITEMS eve",
    "CF.DEL cuckoo ada",
    "CF.COUNT cuckoo ada",
    "CF.INFO cuckoo",
    "CF.COMPACT cuckoo",
];
const OF_ANY: &[&str] = &[
    "MF.EXISTS any ada",
    "MF.MEXISTS any ada bob",
    "MF.ADD any eve",
    "MF.MADD any eve",
    "MF.INSERT any CAPACITY 10 ITEMS eve",
    "MF.DEL any ada",
    "MF.INFO any",
    "MF.CLEAR any",
    "MF.DUMP any 0",
    "MF.MERGE any bloom",
    "MF.MERGE new any",
    "BITOP OR new any",
];

#[test]
fn a_name_with_a_lost_value_answers_not_ready_until_it_is_created_again_or_deleted() {
    for (name, asked) in [("bloom", OF_BLOOM), ("cuckoo", OF_CUCKOO), ("any", OF_ANY)] {
        let disk = without_value(name);
        let refused = recover(&disk, 2).unwrap_err().to_string();
        assert!(refused.contains("value-"), "{refused}");
        let (salvaged, salvage, kept) = repaired(&disk, Losses::Marked);
        assert_eq!((lost(&salvage), salvage.unknown), (vec![name.to_owned()], false), "{salvage:?}");
        assert_eq!(salvage.damage[0].name.as_deref(), Some(name.as_bytes()));
        not_ready(&salvaged, asked);
        // After a restart, after a snapshot of unchanged names, and after replaying the log alone.
        for round in 0..4 {
            let engine = engine_on(&kept, 10 + round);
            not_ready(&engine, asked);
            assert_eq!(text(&one(&engine, &format!("TYPE {name}"))), "Simple(\"lost\")");
            assert_eq!(one(&engine, &format!("EXISTS {name}")), Reply::Integer(1));
            assert_eq!(one(&engine, "SCAN 0 TYPE lost COUNT 100").clone(), {
                Reply::Array(vec![Reply::bulk("0"), Reply::Array(vec![Reply::bulk(name)])])
            });
            let detail = engine.detail(name.as_bytes()).unwrap();
            assert!(!detail.description.is_ready && detail.description.type_name == "lost");
            // Other names answer, and so do names that never existed.
            run(&engine, &["BF.EXISTS never x", "GET text", "CF.EXISTS never x"]);
            // It can be renamed and stays lost.
            run(&engine, &[&format!("RENAME {name} moved"), &format!("RENAME moved {name}")]);
            if round % 2 == 1 {
                save(&engine, &kept);
            }
            engine.log().unwrap().sync().unwrap();
        }
        let again = match name {
            "bloom" => ["BF.RESERVE bloom 0.01 100", "BF.ADD bloom x", "BF.EXISTS bloom x"],
            "cuckoo" => ["CF.RESERVE cuckoo 100", "CF.ADD cuckoo x", "CF.EXISTS cuckoo x"],
            _ => ["MF.RESERVE any KIND bloom CAPACITY 100 FPR 0.01", "MF.ADD any x", "MF.EXISTS any x"],
        };
        let engine = engine_on(&kept, 20);
        run(&engine, &again);
        engine.log().unwrap().sync().unwrap();
        drop(engine);
        let engine = engine_on(&kept, 21);
        assert_eq!(one(&engine, again[2]), Reply::Boolean(true));
        let other = engine_on(&repaired(&disk, Losses::Marked).2, 22);
        assert_eq!(one(&other, &format!("DEL {name}")), Reply::Integer(1));
        assert_eq!(one(&other, "BF.EXISTS bloom never"), Reply::Boolean(false));
    }
}

#[test]
fn an_aborted_build_leaves_the_name_lost() {
    let disk = without_value("any");
    let (_, _, kept) = repaired(&disk, Losses::Marked);
    let engine = engine_on(&kept, 2);
    not_ready(&engine, &["MF.BUILD any INFO", "MF.EXISTS any ada"]);
    run(&engine, &["MF.BUILD any BEGIN KIND xor8", "MF.BUILD any ADD ada bob"]);
    not_ready(&engine, &["MF.EXISTS any ada", "MF.ADD any eve"]);
    save(&engine, &kept);
    close(engine);
    let engine = engine_on(&kept, 3);
    run(&engine, &["MF.BUILD any ABORT"]);
    assert_eq!(text(&one(&engine, "TYPE any")), "Simple(\"lost\")");
    not_ready(&engine, OF_ANY);
    close(engine);
    let engine = engine_on(&kept, 4);
    not_ready(&engine, &["BF.EXISTS any ada"]);
    // Loading an invalid filter does the same.
    let said = text(&one(&engine, "MF.LOAD any 0 nonsense"));
    assert!(said.starts_with("ERR "), "{said}");
    not_ready(&engine, &["BF.EXISTS any ada"]);
    run(&engine, &["MF.BUILD any BEGIN KIND xor8", "MF.BUILD any ADD ada bob", "MF.BUILD any COMMIT"]);
    assert_eq!(one(&engine, "MF.EXISTS any bob"), Reply::Boolean(true));
    close(engine);
    let engine = engine_on(&kept, 5);
    assert_eq!(one(&engine, "MF.EXISTS any bob"), Reply::Boolean(true));
    assert!(engine.lost_names().is_empty());
}

#[test]
fn a_lost_name_is_created_again_by_restore_and_by_loads() {
    let disk = without_value("bloom");
    let (engine, ..) = repaired(&disk, Losses::Marked);
    let other = Engine::new(Limits::default(), FixedClock::new(9));
    run(&other, &["BF.ADD bloom ada"]);
    let Reply::Bulk(payload) = one(&other, "DUMP bloom") else { panic!() };
    let words: [&[u8]; 4] = [b"RESTORE", b"bloom", b"0", &payload];
    let request =
        mayhap_command::Request { command: mayhap_command::table::find(b"restore").unwrap(), words: &words };
    let mut replies = Vec::new();
    engine.execute(&[request], &mut mayhap_command::Scratch::default(), &mut replies);
    assert_eq!(replies, [Reply::Ok]);
    assert_eq!(one(&engine, "BF.EXISTS bloom ada"), Reply::Boolean(true));
}

#[test]
fn a_missing_newest_log_file_is_noticed_and_no_name_answers_no() {
    // With and without a snapshot; with one log file and with several.
    for (saves, adds) in [(false, 3), (false, 200), (true, 3), (true, 200)] {
        let disk = empty();
        let engine = engine_on(&disk, 1);
        run(&engine, &["BF.ADD early ada"]);
        if saves {
            save(&engine, &disk);
        }
        for number in 0..adds {
            run(&engine, &[&format!("BF.ADD late {number}")]);
            if number % 50 == 49 {
                engine.log().unwrap().rotate().unwrap();
            }
        }
        run(&engine, &["BF.ADD late last"]);
        close(engine);
        let newest = files(&disk, "log-").pop().unwrap();
        disk.remove(&newest).unwrap();
        for _ in 0..2 {
            let refused = recover(&disk, 2).unwrap_err().to_string();
            assert!(refused.contains(&newest), "{saves}, {adds}: {refused}");
        }
        let (_, salvage, kept) = repaired(&disk, Losses::Marked);
        assert!(salvage.unknown && salvage.damage.iter().any(|damage| damage.file == newest), "{salvage:?}");
        let engine = engine_on(&kept, 3);
        not_ready(&engine, &["BF.EXISTS early ada", "BF.EXISTS late last", "BF.ADD late x", "CF.ADD new x"]);
        save(&engine, &kept);
        close(engine);
        let engine = engine_on(&kept, 4);
        not_ready(&engine, &["BF.EXISTS early ada", "BF.EXISTS late last", "BF.ADD late x"]);
        // Names created from now on answer, after a restart as well.
        run(
            &engine,
            &["BF.RESERVE late 0.01 100", "BF.ADD late x", "MF.RESERVE m KIND bloom CAPACITY 9 FPR 0.1"],
        );
        close(engine);
        let engine = engine_on(&kept, 5);
        assert_eq!(one(&engine, "BF.EXISTS late x"), Reply::Boolean(true));
        assert_eq!(one(&engine, "BF.EXISTS late last"), Reply::Boolean(false));
        not_ready(&engine, &["BF.EXISTS never x"]);
        run(&engine, &["FLUSHALL", "BF.ADD never y"]);
        assert_eq!(one(&engine, "BF.EXISTS gone x"), Reply::Boolean(false));
        close(engine);
        assert!(!engine_on(&kept, 6).has_unknown_losses());
        // With `--accept-loss`, names keep what is left.
        let (engine, salvage, _) = repaired(&disk, Losses::Accepted);
        assert!(!salvage.unknown && salvage.lost.is_empty());
        assert_eq!(one(&engine, "BF.EXISTS late last"), Reply::Boolean(false));
        assert_eq!(one(&engine, "BF.EXISTS early ada"), Reply::Boolean(saves || adds > 100));
    }
}

#[test]
fn a_folder_of_an_older_version_without_a_recorded_number_starts() {
    let disk = empty();
    let engine = engine_on(&disk, 1);
    run(&engine, &["BF.ADD seen ada"]);
    close(engine);
    disk.remove("mayhap.newest").unwrap();
    assert_eq!(one(&engine_on(&disk, 2), "BF.EXISTS seen ada"), Reply::Boolean(true));
    assert!(disk.list().unwrap().contains(&"mayhap.newest".to_owned()));
}

#[test]
fn a_lost_manifest_loses_no_name_that_was_read() {
    for remove in [false, true] {
        let disk = empty();
        let engine = engine_on(&disk, 1);
        run(&engine, &["BF.ADD seen ada", "SET text hello"]);
        save(&engine, &disk);
        run(&engine, &["BF.ADD seen bob"]);
        close(engine);
        match remove {
            true => disk.remove(MANIFEST).unwrap(),
            false => disk.tamper(MANIFEST, |bytes| bytes[20] ^= 1),
        }
        assert!(recover(&disk, 2).is_err());
        let (engine, salvage, _) = repaired(&disk, Losses::Marked);
        assert!(salvage.unknown && salvage.lost.is_empty(), "{salvage:?}");
        assert_eq!(one(&engine, "BF.EXISTS seen ada"), Reply::Boolean(true));
        assert_eq!(one(&engine, "BF.EXISTS seen bob"), Reply::Boolean(true));
        not_ready(&engine, &["BF.EXISTS other x"]);
    }
}

/// The acknowledged members of each name, and of the build of each name.
#[derive(Clone, Debug, Default)]
struct Name {
    family: u8,
    items: BTreeSet<u64>,
    build: Option<BTreeSet<u64>>,
}

type Model = BTreeMap<u64, Name>;

fn ask(family: u8, name: u64, item: u64) -> String {
    let command = ["BF.EXISTS", "CF.EXISTS", "MF.EXISTS"][family as usize];
    format!("{command} n{name} {item}")
}

/// Runs a random request, and remembers the reply.
fn step(engine: &Engine, model: &mut Model, rng: &mut Rng) {
    const NAMES: u64 = 12;
    let (name, item) = (rng.below(NAMES), rng.below(1_000));
    let other = (name + 1 + rng.below(NAMES - 1)) % NAMES;
    let family = model.get(&name).map_or(rng.below(3) as u8, |name| name.family);
    let ok = |line: String| !matches!(one(engine, &line), Reply::Refused(_));
    match rng.below(40) {
        0 => {
            if ok(format!("DEL n{name}")) {
                model.remove(&name);
            }
        }
        1 | 2 => {
            if ok(format!("RENAME n{name} n{other}")) {
                let moved = model.remove(&name).unwrap();
                model.insert(other, moved);
            }
        }
        3 | 4 => {
            if one(engine, &format!("COPY n{name} n{other} REPLACE")) == Reply::Integer(1) {
                let copy = Name { build: None, ..model[&name].clone() };
                model.insert(other, copy);
            }
        }
        5 if rng.below(8) == 0 => {
            run(engine, &["FLUSHALL"]);
            model.clear();
        }
        6 | 7 => {
            if ok(format!("MF.BUILD n{name} BEGIN KIND bloom CAPACITY 1000 FPR 0.01")) {
                model.entry(name).or_insert(Name { family: 2, ..Name::default() }).build =
                    Some(BTreeSet::new());
            }
        }
        8..=11 => {
            if ok(format!("MF.BUILD n{name} ADD {item}")) {
                model.get_mut(&name).unwrap().build.as_mut().unwrap().insert(item);
            }
        }
        12 => {
            if ok(format!("MF.BUILD n{name} COMMIT")) {
                let name = model.get_mut(&name).unwrap();
                name.items = name.build.take().unwrap();
            }
        }
        13 => {
            if ok(format!("MF.BUILD n{name} ABORT")) {
                let left = model.get_mut(&name).unwrap();
                left.build = None;
                if one(engine, &format!("EXISTS n{name}")) == Reply::Integer(0) {
                    model.remove(&name);
                }
            }
        }
        14 | 15 => {
            if ok(format!("MF.MERGE n{name} n{other}")) {
                let from = model[&other].items.clone();
                let to = model.entry(name).or_insert(Name { family: 2, ..Name::default() });
                to.items.extend(&from);
                if let Some(build) = &mut to.build {
                    build.extend(&from);
                }
            }
        }
        16 => {
            let line = match family {
                0 => format!("BF.RESERVE n{name} 0.01 1000"),
                1 => format!("CF.RESERVE n{name} 1000"),
                _ => format!("MF.RESERVE n{name} KIND bloom CAPACITY 1000 FPR 0.01 KEYLESS"),
            };
            if ok(line) {
                model.insert(name, Name { family, ..Name::default() });
            }
        }
        _ => {
            let line = match family {
                0 => format!("BF.ADD n{name} {item}"),
                1 => format!("CF.ADD n{name} {item}"),
                _ => format!("MF.INSERT n{name} KIND bloom CAPACITY 1000 FPR 0.01 KEYLESS ITEMS {item}"),
            };
            if ok(line) {
                let name = model.entry(name).or_insert(Name { family, ..Name::default() });
                name.items.insert(item);
                if let Some(build) = &mut name.build {
                    build.insert(item);
                }
            }
        }
    }
}

/// The number of members with the answers *maybe*, *not ready* and *no*.
fn answers(engine: &Engine, model: &Model) -> [u64; 3] {
    let mut counts = [0; 3];
    for (name, held) in model {
        for item in &held.items {
            match one(engine, &ask(held.family, *name, *item)) {
                Reply::Boolean(true) => counts[0] += 1,
                Reply::Boolean(false) => counts[2] += 1,
                reply if text(&reply).starts_with("NOTREADY ") => counts[1] += 1,
                reply => panic!("{}", text(&reply)),
            }
        }
    }
    counts
}

/// A history, damage to one file of the folder, and a repair. Returns the answers for members, before and
/// after restarts.
fn history(seed: u64, losses: Losses) -> [u64; 3] {
    let mut rng = Rng::new(seed);
    let (disk, mut model) = (empty(), Model::new());
    let mut engine = engine_on(&disk, seed);
    for _ in 0..50 + rng.below(250) {
        step(&engine, &mut model, &mut rng);
        match rng.below(60) {
            0 => save(&engine, &disk),
            1 => drop(engine.log().unwrap().rotate()),
            2 => engine.log().unwrap().sync().unwrap(),
            3 => {
                close(engine);
                engine = engine_on(&disk, rng.next_u64());
            }
            _ => {}
        }
    }
    // Sometimes an incomplete snapshot.
    if rng.below(4) == 0 {
        let mut half = engine.begin_snapshot(&disk).unwrap().with_sizes(64, 100, 1);
        for _ in 0..rng.below(6) {
            step(&engine, &mut model, &mut rng);
            half.step().unwrap();
        }
        if rng.below(2) == 0 {
            half.finish().unwrap();
        }
    }
    assert_eq!(answers(&engine, &model)[1..], [0, 0], "seed {seed}: before any damage");
    close(engine);
    let all = disk.list().unwrap();
    let file = &all[rng.below(all.len() as u64) as usize];
    let length = disk.bytes(file).len() as u64;
    let is_newest = files(&disk, "log-").pop().as_ref() == Some(file);
    match rng.below(3) {
        // The recorded number alone may be missing, as in folders of older versions.
        0 if file != "mayhap.newest" => disk.remove(file).unwrap(),
        // The end of the last file may be one that was never complete. This cannot be distinguished.
        1 if !is_newest => disk.tamper(file, |bytes| bytes.truncate(rng.below(length.max(1)) as usize)),
        _ => disk.tamper(file, |bytes| bytes[rng.below(length) as usize] ^= 1 << rng.below(8)),
    }
    let (salvaged, salvage, kept) = repaired(&disk, losses);
    let mut counts = answers(&salvaged, &model);
    let no = |counts: [u64; 3], when: &str| {
        let wrong = counts[2] > 0 && losses == Losses::Marked;
        assert!(!wrong, "seed {seed}, {file}, {when}: {counts:?}, {salvage:?}");
        counts
    };
    no(counts, "repaired");
    for round in 0..2 {
        let engine = engine_on(&kept, seed ^ 1 << round);
        let now = no(answers(&engine, &model), "started again");
        assert_eq!(now, counts, "seed {seed}, {file}");
        counts = now;
        save(&engine, &kept);
        close(engine);
    }
    counts
}

#[test]
fn no_member_answers_no_after_a_repair_whatever_was_damaged() {
    if let Some(seed) = support::histories::setting("MAYHAP_CRASH_SEED") {
        println!("{:?}", history(seed, Losses::Marked));
        return;
    }
    let histories = support::histories::setting("MAYHAP_CRASH_STATES").unwrap_or(400);
    let mut sum = [0; 3];
    for seed in 0..histories {
        let counts = history(seed, Losses::Marked);
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    println!("members that answer maybe, not ready, no: {sum:?}");
    assert!(sum[0] > histories && sum[1] > histories, "{sum:?}");
    // With `--accept-loss` there are false negatives, which shows that this test would detect them.
    let wrong = (0..40).filter(|seed| history(*seed, Losses::Accepted)[2] > 0).count();
    assert!(wrong > 0);
}

#[test]
fn reading_a_damaged_folder_changes_nothing_in_it() {
    let disk = without_value("bloom");
    let bytes = |disk: &Simulated| -> Vec<(String, Vec<u8>)> {
        let read = |file: String| {
            let mut bytes = Vec::new();
            disk.read(&file).unwrap().read_to_end(&mut bytes).unwrap();
            (file, bytes)
        };
        disk.list().unwrap().into_iter().map(read).collect()
    };
    let before = bytes(&disk);
    repaired(&disk, Losses::Marked);
    repaired(&disk, Losses::Accepted);
    assert!(bytes(&disk) == before);
}
