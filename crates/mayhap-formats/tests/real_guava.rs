//! Guava and this library, one on the other's filters, in one run of a Java program of ours (`real/GuavaCheck.java`).

mod real;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mayhap::{Bloom, ItemEncoding};
use mayhap_formats::guava::{self, Rounding, Strategy};

use real::Folder;
use real::items::{Given, Items};

/// Items to choose from, and questions to every filter.
const MEMBERS: u64 = 100_600;
const PROBES: u64 = 10_000;
/// Items Guava adds to a filter that we began, as `GuavaCheck` has it.
const MORE: usize = 500;

/// A funnel, as `GuavaCheck` calls it: its items, and how they are encoded.
const FUNNELS: [(&str, Items, ItemEncoding); 5] = [
    ("utf8", Items::Texts, ItemEncoding::Utf8),
    ("unencodedChars", Items::Texts, ItemEncoding::Utf16Le),
    ("bytes", Items::Texts, ItemEncoding::Bytes),
    ("int", Items::Ints, ItemEncoding::I32Le),
    ("long", Items::Longs, ItemEncoding::I64Le),
];

const ITEMS: [(Items, &str); 3] = [(Items::Texts, "texts"), (Items::Ints, "ints"), (Items::Longs, "longs")];

/// Half of them members of the largest filter, half non-members.
fn probes(items: Items) -> Vec<Given> {
    [items.some(0, PROBES / 2), items.some(1_000_000, PROBES / 2)].concat()
}

/// One filter each way.
struct Case {
    strategy: Strategy,
    funnel: &'static str,
    items: Items,
    encoding: ItemEncoding,
    count: usize,
    rate: f64,
}

impl Case {
    fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for strategy in [Strategy::Mitz32, Strategy::Mitz64] {
            for (funnel, items, encoding) in FUNNELS {
                for (count, rate) in [(1, 0.5), (100, 0.2), (5_000, 0.01), (100_000, 0.03)] {
                    cases.push(Self { strategy, funnel, items, encoding, count, rate });
                }
            }
        }
        cases
    }

    const fn ordinal(&self) -> u8 {
        match self.strategy {
            Strategy::Mitz32 => 0,
            Strategy::Mitz64 => 1,
        }
    }

    fn name(&self) -> String {
        format!("{}-{}-{}", self.ordinal(), self.funnel, self.count)
    }

    fn plan(&self) -> String {
        format!("{}\t{}\t{}\t{}\t{}\n", self.name(), self.ordinal(), self.funnel, self.count, self.rate)
    }

    fn built(&self, rounding: Rounding, items: &[Given]) -> Bloom {
        let mut filter =
            guava::create(self.count as u64, self.rate, rounding, self.strategy, self.encoding).unwrap();
        filter.insert_batch(items);
        filter
    }
}

fn written(filter: &Bloom) -> Vec<u8> {
    let mut stream = Vec::new();
    guava::write(filter, &mut stream).unwrap();
    stream
}

fn write_lines(file: PathBuf, items: &[Given]) {
    let lines: String = items.iter().map(|item| item.line() + "\n").collect();
    fs::write(file, lines).unwrap();
}

/// Java's compiler, Java, and Guava.
struct Java {
    javac: PathBuf,
    java: PathBuf,
    jar: PathBuf,
}

impl Java {
    fn find() -> Option<Self> {
        Some(Self {
            javac: real::find("MAYHAP_TEST_JAVAC", "javac")?,
            java: real::find("MAYHAP_TEST_JAVA", "java")?,
            jar: real::find("MAYHAP_TEST_GUAVA_JAR", "/usr/share/java/guava.jar")?,
        })
    }

    /// Compiles `GuavaCheck`, runs it on the folder, and returns its output.
    fn check(&self, folder: &Folder) -> String {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/GuavaCheck.java");
        let classes = folder.join("classes");
        let mut compile = Command::new(&self.javac);
        compile.args(["-proc:none", "-cp"]).arg(&self.jar).arg("-d").arg(&classes).arg(source);
        real::run(&mut compile, &[]);
        let mut run = Command::new(&self.java);
        run.args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp"])
            .arg(std::env::join_paths([&classes, &self.jar]).unwrap())
            .arg("GuavaCheck")
            .arg(folder.path());
        String::from_utf8(real::run(&mut run, &[])).unwrap()
    }
}

#[test]
fn guava_and_we_read_each_other() {
    let Some(java) = Java::find() else { return };
    let folder = Folder::new("guava");
    let cases = Case::all();
    let members: HashMap<Items, Vec<Given>> =
        ITEMS.iter().map(|&(items, _)| (items, items.some(0, MEMBERS))).collect();
    for (items, name) in ITEMS {
        write_lines(folder.join(format!("{name}.members")), &members[&items]);
        write_lines(folder.join(format!("{name}.probes")), &probes(items));
    }
    fs::write(folder.join("plan"), cases.iter().map(Case::plan).collect::<String>()).unwrap();
    for case in &cases {
        let ours = case.built(Rounding::Until33, &members[&case.items][..case.count]);
        fs::write(folder.join(format!("{}.ours", case.name())), written(&ours)).unwrap();
    }
    let printed = java.check(&folder);

    let mut roundings = vec![Rounding::Until33, Rounding::Since33];
    assert_eq!(printed.lines().count(), cases.len());
    for (case, line) in cases.iter().zip(printed.lines()) {
        check(case, line, &folder, &members[&case.items], &mut roundings);
    }
    assert!(!roundings.is_empty(), "one and the same rule sizes all its filters");
    println!("{} filters each way, {PROBES} questions each", cases.len());
}

fn check(case: &Case, line: &str, folder: &Folder, members: &[Given], roundings: &mut Vec<Rounding>) {
    let name = case.name();
    let file = |ending: &str| fs::read(folder.join(format!("{name}.{ending}"))).unwrap();
    let fields: Vec<&str> = line.split('\t').collect();
    let [said, answers, expected_fpp, approximate_count] = fields[..] else { panic!("{name}: {line:.100}") };
    assert_eq!(said, name);

    // Guava on our filter.
    let mut ours = guava::read(&file("ours"), case.encoding).unwrap();
    let probes = probes(case.items);
    let ask = |filter: &Bloom| -> String {
        probes.iter().map(|probe| if filter.may_contain(probe) { '1' } else { '0' }).collect()
    };
    assert!(ask(&ours) == answers, "{name}: at least one answer differs");
    let inside = case.count.min(probes.len() / 2);
    assert!(answers.starts_with(&"1".repeat(inside)), "{name}: every member is found");
    assert_eq!(ours.estimated_items().to_string(), approximate_count, "{name}");
    let expected_fpp = f64::from_bits(u64::from_str_radix(expected_fpp, 16).unwrap());
    let from_fill = ours.fill().powi(ours.shape().probes() as i32);
    assert!((from_fill / expected_fpp - 1.0).abs() < 1e-12, "{name}: {from_fill}, {expected_fpp}");
    if case.count >= 5_000 {
        assert!((ours.expected_fpr() / expected_fpp - 1.0).abs() < 0.02, "{name}: {}", ours.expected_fpr());
    }
    ours.insert_batch(&members[case.count..case.count + MORE]);
    assert!(written(&ours) == file("continued"), "{name}: both continue in the same way");

    // We on Guava's.
    let stream = file("theirs");
    let theirs = guava::read(&stream, case.encoding).unwrap();
    let last = &members[members.len() - case.count..];
    assert!(last.iter().all(|item| theirs.may_contain(item)), "{name}");
    assert!(written(&theirs) == stream, "{name}");
    roundings.retain(|&rounding| written(&case.built(rounding, last)) == stream);
    // A difference would be detected.
    if case.funnel == "utf8" && case.count >= 100 {
        let confused = guava::read(&stream, ItemEncoding::Utf16Le).unwrap();
        assert!(!last.iter().all(|item| confused.may_contain(item)), "{name}: the encoding matters");
        assert!(ask(&guava::read(&file("ours"), ItemEncoding::Utf16Le).unwrap()) != answers, "{name}");
    }
}
