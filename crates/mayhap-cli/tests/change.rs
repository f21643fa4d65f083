//! `mayhap add`, `remove` and `merge` as users run them: the real program and real files.

mod program;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use mayhap::{Filter, ItemEncoding, file};
use mayhap_formats::dcso::{self, Packing};
use mayhap_formats::{Format, ReadOptions};
use mayhap_testkit::binomial::band_with_model_error;
use mayhap_testkit::items::{member, non_member};
use serde_json::Value;

/// A new empty directory for each test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(program::empty_folder("change", name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(name), bytes).unwrap();
        self
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn mayhap(&self, arguments: &str) -> Command {
        let mut command = program::mayhap_in(&self.0);
        command.args(arguments.split_whitespace());
        command
    }

    /// Runs a command that must succeed. Returns standard error.
    fn run(&self, arguments: &str) -> String {
        let output = self.mayhap(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments}: {said}");
        said
    }

    fn json(&self, arguments: &str) -> Value {
        let output = self.mayhap(&format!("{arguments} --json")).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    /// The one-line error of a command that must fail, change no file and leave none.
    fn error_line(&self, arguments: &str) -> String {
        let before = self.files();
        let output = self.mayhap(arguments).output().unwrap();
        assert!(self.files() == before, "{arguments} changed something");
        one_line(&output, arguments)
    }

    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<_> = fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read(&path).unwrap_or_default()))
            .collect();
        files.sort();
        files
    }

    fn open(&self, name: &str) -> Filter {
        file::verify::<Filter>(self.path(name)).unwrap();
        file::open(self.path(name)).unwrap()
    }
}

fn one_line(output: &Output, arguments: &str) -> String {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
    assert!(output.stdout.is_empty(), "{arguments} wrote to the standard output");
    assert!(said.starts_with("mayhap: ") && said.lines().count() == 1, "{arguments}: {said}");
    said["mayhap: ".len()..].trim_end().to_owned()
}

fn members(range: std::ops::Range<u64>) -> Vec<u8> {
    range.flat_map(|i| [member(i), b"\n".to_vec()].concat()).collect()
}

fn holds(filter: &Filter, range: std::ops::Range<u64>) {
    let lost = range.clone().find(|&i| !filter.may_contain(&member(i)));
    assert_eq!(lost, None, "a member of {:?} is lost", filter.kind());
}

fn keeps_its_word(filter: &Filter, what: &str) {
    // Enough non-members that a low rate can be judged.
    let non_members = ((500.0 / filter.expected_fpr()) as u64).max(60_000);
    let band = band_with_model_error(non_members, filter.expected_fpr(), 1e-6, 0.02);
    let wrong = (0..non_members).filter(|&i| filter.may_contain(&non_member(i))).count() as u64;
    assert!(band.contains(&wrong), "{what}: wrong {wrong} times, {band:?} would be right");
}

const TAKING: [&str; 11] = [
    "bloom",
    "blocked-bloom",
    "counting-bloom",
    "dual-bloom",
    "scalable-bloom",
    "d-left",
    "cuckoo",
    "cuckoo-semi-sorted",
    "growable-cuckoo",
    "quotient",
    "growing",
];
const GIVING: [&str; 6] = ["counting-bloom", "d-left", "cuckoo", "growable-cuckoo", "quotient", "growing"];

#[test]
fn two_additions_give_the_same_filter_as_one_build() {
    let folder = Folder::new("add");
    folder.write("one.txt", members(0..6_000)).write("two.txt", members(6_000..10_000));
    for kind in TAKING {
        let build = format!("--kind {kind} --items 10000 --fpr 2%");
        folder.run(&format!("build seen.mayhap one.txt -f {build} --copies"));
        let report = folder.json("add seen.mayhap two.txt -j 2");
        let filter = folder.open("seen.mayhap");
        holds(&filter, 0..10_000);
        keeps_its_word(&filter, kind);
        assert_eq!(report["items_read"], 4_000);
        let (new, before) =
            (report["items_new"].as_u64().unwrap(), report["items_there_before"].as_u64().unwrap());
        assert_eq!(new + before, 4_000);
        assert!(new > 3_850, "{kind}: {report}");
        assert_eq!(report["over_capacity"], false, "{kind}: {report}");
        // The same hashes in the same order: the same filter, byte for byte.
        folder.run(&format!("build once.mayhap one.txt two.txt -f {build} --copies"));
        assert!(folder.read("seen.mayhap") == folder.read("once.mayhap"), "{kind}");
    }
}

#[test]
fn only_the_removed_items_are_gone() {
    let folder = Folder::new("remove");
    folder.write("items.txt", members(0..10_000)).write("gone.txt", members(0..4_000));
    folder.write(
        "never.txt",
        (0..50).flat_map(|i| [non_member(i), b"\n".to_vec()].concat()).collect::<Vec<_>>(),
    );
    for kind in GIVING {
        folder.run(&format!("build seen.mayhap items.txt -f --kind {kind} --fpr 0.1%"));
        let report = folder.json("remove seen.mayhap gone.txt");
        assert_eq!(
            (report["items_removed"].as_u64(), report["items_not_in"].as_u64()),
            (Some(4_000), Some(0))
        );
        let filter = folder.open("seen.mayhap");
        assert_eq!(filter.inserted(), 6_000, "{kind}");
        holds(&filter, 4_000..10_000);
        let still = (0..4_000).filter(|&i| filter.may_contain(&member(i))).count();
        assert!(still < 30, "{kind}: {still} of 4000 still answer mayhap, at 0.1 % some 4 should");
        let said = folder.run("remove seen.mayhap never.txt");
        assert!(said.contains(" items removed, ") && said.contains(" not in the filter; "), "{said}");
    }
    // An exact structure does not remove non-members.
    folder.write("ids.txt", "1\n2\n3\n").write("two.txt", "2\n9\n77\n");
    folder.run("build ids.mayhap ids.txt --kind bitmap --range 0..63");
    let report = folder.json("remove ids.mayhap two.txt");
    assert_eq!((report["items_removed"].as_u64(), report["items_not_in"].as_u64()), (Some(1), Some(2)));
    let filter = folder.open("ids.mayhap");
    assert!(filter.may_contain(&1_u64) && !filter.may_contain(&2_u64) && filter.may_contain(&3_u64));
}

#[test]
fn copies_are_counted_unless_new_only() {
    let folder = Folder::new("copies");
    folder.write("items.txt", members(0..1_000)).write("same.txt", "again\n".repeat(20));
    folder.run("build seen.mayhap items.txt --kind cuckoo --items 3000");
    folder.run("add seen.mayhap items.txt");
    assert_eq!(folder.open("seen.mayhap").inserted(), 2_000);
    let said = folder.run("add seen.mayhap items.txt --new-only");
    assert!(said.contains("1,000 items added, 1,000 of them maybe there before; 2,000 items now"), "{said}");
    let said = folder.error_line("add seen.mayhap same.txt");
    let limit = said.split("limit is ").nth(1).unwrap().split(';').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(
        said,
        format!(
            "same.txt, line {}: too many copies of one item, limit is {limit}; --new-only skips items that are maybe in the filter already",
            limit + 1
        )
    );
    folder.run("add seen.mayhap same.txt --new-only");
    assert!(folder.open("seen.mayhap").may_contain("again"));
}

#[test]
fn kinds_that_cannot_change_name_those_that_can() {
    let folder = Folder::new("cannot");
    folder.write("items.txt", members(0..500));
    for kind in ["xor", "binary-fuse", "ribbon", "gcs"] {
        folder.run(&format!("build {kind}.mayhap items.txt --kind {kind}"));
        let said = folder.error_line(&format!("add {kind}.mayhap items.txt"));
        assert_eq!(
            said,
            format!(
                "{kind}.mayhap: this {kind} filter is immutable: it is built once, from all items; build it again, or use a \
                 kind that accepts new items: bloom, blocked-bloom, cuckoo, …"
            )
        );
    }
    for kind in ["bloom", "blocked-bloom", "scalable-bloom", "ribbon"] {
        folder.run(&format!("build {kind}.mayhap items.txt -f --kind {kind}"));
        let said = folder.error_line(&format!("remove {kind}.mayhap items.txt"));
        assert!(
            said.starts_with(&format!(
                "{kind}.mayhap: a {kind} cannot remove items; these kinds support it: counting-bloom, "
            )),
            "{said}"
        );
    }
    folder.run("build window.mayhap items.txt --kind window --items 100");
    assert!(folder.error_line("remove window.mayhap items.txt").contains("a window cannot remove items"));
}

#[test]
fn a_filter_over_capacity_warns_or_rejects() {
    let folder = Folder::new("over");
    folder.write("items.txt", members(0..1_000)).write("more.txt", members(1_000..2_000));
    folder.run("build seen.mayhap items.txt --kind bloom --items 1000");
    let said = folder.run("add seen.mayhap more.txt");
    let rate = mayhap::say::rate(folder.open("seen.mayhap").expected_fpr());
    let warning = said.lines().next().unwrap();
    let over = "mayhap: warning: seen.mayhap: over capacity: made for 1,000 items, holds 1,9";
    assert!(warning.starts_with(over), "{said}");
    assert!(warning.contains(&format!("the false-positive rate is {rate}, not 1%")), "{said}");
    assert_eq!(folder.run("add seen.mayhap more.txt --quiet"), "");
    folder.run("build seen.mayhap items.txt -f --kind cuckoo --items 1000");
    let said = folder.error_line("add seen.mayhap more.txt");
    assert!(
        said.starts_with("seen.mayhap: filter is full with 1")
            && said.contains("(stopped at more.txt, line "),
        "{said}"
    );
    assert!(
        said.contains("sized for 1000; nothing was added (stopped at ")
            && said.ends_with("): build a larger filter, or one that grows (--grows)"),
        "{said}"
    );
}

#[test]
fn output_elsewhere_leaves_the_filter_and_in_place_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("elsewhere");
    folder.write("items.txt", members(0..100)).write("more.txt", members(100..200));
    folder.run("build seen.mayhap items.txt --kind bloom --items 1000");
    let old = folder.read("seen.mayhap");
    folder.run("add seen.mayhap more.txt -o larger.mayhap");
    assert_eq!(folder.read("seen.mayhap"), old);
    holds(&folder.open("larger.mayhap"), 0..200);
    assert_eq!(
        folder.error_line("add seen.mayhap more.txt -o larger.mayhap"),
        "larger.mayhap: exists already; --force replaces it"
    );
    folder.run("add seen.mayhap more.txt -o larger.mayhap --force");
    let output = folder.mayhap("add seen.mayhap more.txt -o -").output().unwrap();
    assert_eq!(output.stdout, folder.read("larger.mayhap"));

    fs::set_permissions(folder.path("seen.mayhap"), fs::Permissions::from_mode(0o640)).unwrap();
    folder.run("add seen.mayhap more.txt");
    assert_eq!(folder.read("seen.mayhap"), folder.read("larger.mayhap"));
    assert_eq!(fs::metadata(folder.path("seen.mayhap")).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(folder.files().len(), 4, "nothing is left aside");
}

/// A command that waits for more input, so that it can be observed.
fn waiting(folder: &Folder, arguments: &str) -> Child {
    let mut command = folder.mayhap(arguments);
    command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn two_concurrent_additions_both_succeed() {
    let folder = Folder::new("two");
    folder.write("items.txt", members(0..100)).write("second.txt", members(200..300));
    folder.run("build seen.mayhap items.txt --kind bloom --items 1000");
    let mut first = waiting(&folder, "add seen.mayhap --progress");
    let mut input = first.stdin.take().unwrap();
    input.write_all(&members(100..150)).unwrap();
    // Its first line is printed when it holds the filter.
    let mut said = BufReader::new(first.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();

    let mut second = waiting(&folder, "add seen.mayhap second.txt");
    let mut second_said = BufReader::new(second.stderr.take().unwrap());
    line.clear();
    second_said.read_line(&mut line).unwrap();
    assert_eq!(line, "mayhap: waiting for another mayhap process to finish with seen.mayhap\n");
    assert!(second.try_wait().unwrap().is_none());
    input.write_all(&members(150..200)).unwrap();
    drop(input);
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
    holds(&folder.open("seen.mayhap"), 0..300);
}

#[test]
fn a_change_without_the_lock_is_detected() {
    let folder = Folder::new("changed");
    folder.write("items.txt", members(0..100));
    folder.run("build seen.mayhap items.txt --kind bloom --items 1000");
    folder.run("build other.mayhap items.txt --kind bloom --items 2000");
    let mut child = waiting(&folder, "add seen.mayhap --progress");
    let mut input = child.stdin.take().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    input.write_all(&members(100..150)).unwrap();
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    fs::rename(folder.path("other.mayhap"), folder.path("seen.mayhap")).unwrap();
    let theirs = folder.read("seen.mayhap");
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let last = said.lines().last().unwrap().unwrap();
    assert_eq!(
        last,
        "mayhap: seen.mayhap: was changed by another program during the work; it was not replaced, run the command again"
    );
    assert_eq!(folder.read("seen.mayhap"), theirs);
}

#[test]
fn ctrl_c_leaves_the_filter_unchanged() {
    let folder = Folder::new("ctrl-c");
    folder.write("items.txt", members(0..100));
    folder.run("build seen.mayhap items.txt --kind bloom --items 1000");
    let before = folder.files();
    let mut child = waiting(&folder, "add seen.mayhap --progress");
    let mut input = child.stdin.take().unwrap();
    input.write_all(&members(100..150)).unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert!(!child.wait().unwrap().success());
    assert!(folder.files() == before);
}

#[test]
fn other_programs_filters_keep_their_format() {
    let folder = Folder::new("foreign");
    folder.write("items.txt", members(0..500)).write("more.txt", members(500..900));
    let texts = |range: std::ops::Range<u64>| range.map(|i| String::from_utf8(member(i)).unwrap());
    for (format, flags) in [
        (Format::Guava, "--items-as utf8"),
        (Format::Spark, "--items-as utf8"),
        (Format::Dcso, ""),
        (Format::RedisBloom, ""),
        (Format::BitsAndBlooms, "--items-as utf8"),
    ] {
        let name = format.name();
        folder.run(&format!("build theirs items.txt -f --format {name} {flags} --items 1000"));
        folder.run(&format!("add theirs more.txt {flags}"));
        // The bytes that their program would have written.
        let expected = format.build(texts(0..900), 1_000, 0.01, ItemEncoding::Utf8).unwrap();
        let mut bytes = Vec::new();
        format.write(&expected, &mut bytes).unwrap();
        assert!(folder.read("theirs") == bytes, "{name}");
    }
    // RedisBloom's cuckoo filter supports removal.
    folder.run("build theirs items.txt -f --format redis-cuckoo --items 1000");
    let report = folder.json("remove theirs items.txt");
    assert_eq!(report["items_not_in"], 0);
    let options = ReadOptions::default();
    assert_eq!(Format::RedisCuckoo.read(&folder.read("theirs"), &options).unwrap().inserted(), 0);
    // Data attached to a DCSO file is kept.
    let filter = dcso::create(1_000, 0.01).unwrap();
    for packing in [Packing::Plain, Packing::Gzip] {
        let mut bytes = Vec::new();
        dcso::write(&filter, b"from the feed of Monday", packing, &mut bytes).unwrap();
        folder.write("theirs", bytes);
        folder.run("add theirs items.txt");
        let read = dcso::read(&folder.read("theirs"), 1 << 20).unwrap();
        assert_eq!((read.data.as_slice(), read.packing), (&b"from the feed of Monday"[..], packing));
        assert!(texts(0..500).all(|item| read.filter.may_contain(item.as_str())));
    }
    let said = folder.error_line("add items.txt more.txt");
    assert!(said.starts_with("items.txt: "), "{said}");
}

#[test]
fn merged_filters_hold_the_items_of_all() {
    let folder = Folder::new("merge");
    folder.write("one.txt", members(0..4_000)).write("two.txt", members(4_000..8_000));
    folder.write("both.txt", members(0..8_000));
    for kind in ["bloom", "blocked-bloom", "counting-bloom", "dual-bloom", "d-left", "quotient"] {
        for part in ["one", "two", "both"] {
            folder.run(&format!("build {part}.mayhap {part}.txt -f --kind {kind} --items 8000 --fpr 2%"));
        }
        let report = folder.json("merge all.mayhap one.mayhap two.mayhap --force");
        let filter = folder.open("all.mayhap");
        holds(&filter, 0..8_000);
        keeps_its_word(&filter, kind);
        assert_eq!(report["over_capacity"], false, "{kind}");
        assert_eq!(report["filters"], 2);
        let parts: u64 = ["one.mayhap", "two.mayhap"].iter().map(|name| folder.open(name).inserted()).sum();
        assert_eq!(report["items_in_parts"], parts);
        assert!((7_800..=8_100).contains(&filter.inserted()), "{kind}: {}", filter.inserted());
    }
    // Static kinds, too. Each item keeps its bits, so twice the items double the false-positive rate.
    folder.run("build one.mayhap one.txt -f --kind gcs");
    folder.run("build two.mayhap two.txt -f --kind gcs");
    let said = folder.run("merge all.mayhap one.mayhap two.mayhap -f");
    assert!(said.contains("mayhap: all.mayhap: gcs from 2 filters, 8,000 items, "), "{said}");
    assert!(said.contains("the false-positive rate is 1.98%, not 1%"), "{said}");
    holds(&folder.open("all.mayhap"), 0..8_000);
}

#[test]
fn filters_that_cannot_be_merged_are_rejected_with_the_reason() {
    let folder = Folder::new("merge-refusals");
    folder.write("items.txt", members(0..1_000)).write("more.txt", members(1_000..2_000));
    for (name, asked) in [
        ("bloom", "--kind bloom --items 1000"),
        ("larger", "--kind bloom --items 2000"),
        ("seeded", "--kind bloom --items 1000 --seed 7"),
        ("cuckoo", "--kind cuckoo --items 1000"),
        ("fuse", "--kind binary-fuse"),
    ] {
        folder.run(&format!("build {name}.mayhap items.txt {asked}"));
    }
    folder.run("build guava.bloom items.txt --format guava --items-as utf8");
    for (line, said) in [
        (
            "bloom.mayhap larger.mayhap",
            "larger.mayhap: cannot be merged with bloom.mayhap: filters of different shape",
        ),
        (
            "bloom.mayhap seeded.mayhap",
            "seeded.mayhap: cannot be merged with bloom.mayhap: filters that hash differently",
        ),
        (
            "bloom.mayhap cuckoo.mayhap",
            "cuckoo.mayhap: cannot be merged with bloom.mayhap: filters of different kinds cannot be merged: bloom and cuckoo",
        ),
        (
            "cuckoo.mayhap cuckoo.mayhap",
            "cuckoo.mayhap: cannot be merged with cuckoo.mayhap: two filters of kind cuckoo cannot be merged; bloom, ",
        ),
        (
            "fuse.mayhap fuse.mayhap",
            "fuse.mayhap: cannot be merged with fuse.mayhap: two filters of kind binary-fuse",
        ),
        (
            "bloom.mayhap guava.bloom --items-as utf8",
            "guava.bloom: is a guava file, but bloom.mayhap is a mayhap file",
        ),
        ("missing.mayhap bloom.mayhap", "cannot "),
    ] {
        let told = folder.error_line(&format!("merge out.mayhap {line}"));
        assert!(told.starts_with(said), "{line}: {told}");
    }
    assert!(folder.error_line("merge out.mayhap").contains("FILTER"));
    assert_eq!(
        folder.error_line("merge bloom.mayhap bloom.mayhap bloom.mayhap"),
        "bloom.mayhap: exists already; --force replaces it"
    );
    // Damage is detected before anything is written.
    let mut damaged = folder.read("bloom.mayhap");
    damaged[60] ^= 1;
    folder.write("damaged.mayhap", damaged);
    assert!(
        folder.error_line("merge out.mayhap bloom.mayhap damaged.mayhap").starts_with("damaged.mayhap: ")
    );
    assert!(folder.error_line("add damaged.mayhap items.txt").starts_with("damaged.mayhap: "));
    // Too many items for one filter cause a warning.
    folder.run("build more.mayhap more.txt --kind bloom --items 1000");
    let said = folder.run("merge bloom.mayhap bloom.mayhap more.mayhap --force");
    let over = "mayhap: warning: bloom.mayhap: over capacity: made for 1,000 items, holds 1,9";
    assert!(said.starts_with(over) && said.contains(", not 1%"), "{said}");
}
