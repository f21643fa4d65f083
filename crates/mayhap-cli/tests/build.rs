//! `mayhap build` as users run it: the real program and real files. The library queries the filters that it writes.

mod program;

use std::fs::{self, File};
use std::io::Write;
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use mayhap::{Filter, ItemEncoding, Kind, file};
use mayhap_formats::{Format, ReadOptions};
use mayhap_testkit::binomial::band_with_model_error;
use mayhap_testkit::items::{member, non_member};
use serde_json::Value;

/// A new empty directory for each test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(program::empty_folder("build", name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(name), bytes).unwrap();
        self
    }

    fn mayhap(&self, arguments: &str) -> Command {
        let mut command = program::mayhap_in(&self.0);
        command.args(arguments.split_whitespace());
        command
    }

    /// Runs a command that must succeed. Returns standard output and standard error.
    fn run(&self, arguments: &str) -> (String, String) {
        let output = self.mayhap(arguments).output().unwrap();
        said_well(&output, arguments)
    }

    fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.run(&format!("{arguments} --json")).0).expect("one JSON object")
    }

    /// The one-line error of a command that must fail and leave no files.
    fn error_line(&self, arguments: &str) -> String {
        let before = self.names();
        let output = self.mayhap(arguments).output().unwrap();
        assert_eq!(self.names(), before, "{arguments}");
        one_line(&output, arguments)
    }

    fn names(&self) -> Vec<String> {
        program::names(&self.0)
    }

    fn open(&self, name: &str) -> Filter {
        file::verify::<Filter>(self.path(name)).unwrap();
        file::open(self.path(name)).unwrap()
    }
}

fn said_well(output: &Output, arguments: &str) -> (String, String) {
    let said = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, error) = (said(&output.stdout), said(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{arguments}: {error}");
    (out, error)
}

fn one_line(output: &Output, arguments: &str) -> String {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
    assert!(output.stdout.is_empty(), "{arguments} wrote to the standard output");
    assert!(said.starts_with("mayhap: ") && said.lines().count() == 1, "{arguments}: {said}");
    said["mayhap: ".len()..].trim_end().to_owned()
}

/// Members `0..count`, one per line.
fn members(count: u64) -> Vec<u8> {
    (0..count).flat_map(|i| [member(i), b"\n".to_vec()].concat()).collect()
}

fn numbers(range: RangeInclusive<u64>) -> String {
    range.map(|number| format!("{number}\n")).collect()
}

fn holds_all(filter: &Filter, count: u64) {
    let lost = (0..count).find(|&i| !filter.may_contain(&member(i)));
    assert_eq!(lost, None, "a member of {:?} is lost", filter.kind());
}

const NON_MEMBERS: u64 = 60_000;

fn wrong_answers(filter: &Filter, non_members: u64) -> u64 {
    (0..non_members).filter(|&i| filter.may_contain(&non_member(i))).count() as u64
}

/// Checks that the false-positive rate is the one the filter reports: exact binomial tails, one in a million per side; 2 % is
/// the stated error of the models.
fn keeps_its_word(filter: &Filter, what: &str) {
    // Enough non-members that a low rate can be judged.
    let non_members = NON_MEMBERS.max((500.0 / filter.expected_fpr()) as u64);
    let band = band_with_model_error(non_members, filter.expected_fpr(), 1e-6, 0.02);
    let wrong = wrong_answers(filter, non_members);
    assert!(band.contains(&wrong), "{what}: wrong {wrong} times, {band:?} would be right");
}

/// Every kind that has a name and accepts any items.
const KINDS: [&str; 16] = [
    "bloom",
    "blocked-bloom",
    "blocked-bloom-split",
    "blocked-bloom-line",
    "counting-bloom",
    "dual-bloom",
    "scalable-bloom",
    "d-left",
    "cuckoo",
    "cuckoo-semi-sorted",
    "growable-cuckoo",
    "quotient",
    "xor",
    "binary-fuse",
    "ribbon",
    "gcs",
];

#[test]
fn every_named_kind_holds_its_items_and_meets_its_rate() {
    const ITEMS: u64 = 20_000;
    let folder = Folder::new("kinds");
    folder.write("items.txt", members(ITEMS));
    for kind in KINDS.into_iter().chain(["growing", "window"]) {
        for told in [true, false] {
            if kind == "window" && !told {
                continue;
            }
            let rate = if told { "2%" } else { "1%" };
            let items = if told { format!("--items {ITEMS}") } else { String::new() };
            let line = format!("build out.mayhap items.txt --force --kind {kind} --fpr {rate} {items}");
            let report = folder.json(&line);
            let filter = folder.open("out.mayhap");
            holds_all(&filter, ITEMS);
            let target = if told { 0.02 } else { 0.01 };
            // A filter sized by its own count meets the rate exactly. With --items, the rate depends on the actual fill.
            let slack = if told { 1.02 } else { 1.000_001 };
            assert!(filter.expected_fpr() <= target * slack, "{line}: {}", filter.expected_fpr());
            keeps_its_word(&filter, &line);
            assert!(report["kind"].as_str().unwrap().starts_with(kind), "{report}");
            assert_eq!(report["items_read"], ITEMS);
            assert_eq!(report["over_capacity"], false);
            assert_eq!(report["file_bytes"], fs::metadata(folder.path("out.mayhap")).unwrap().len());
            let said = report["expected_fpr"].as_f64().unwrap();
            assert!((said / filter.expected_fpr() - 1.0).abs() < 1e-9, "{line}: {said}");
        }
    }
}

/// Three in ten lines are duplicates. Sized by lines, the filter would have a capacity of 143 000; sized by --items of half of
/// them, it would miss its rate.
#[test]
fn duplicates_do_not_enlarge_a_filter_that_counts_distinct_items() {
    const ITEMS: u64 = 100_000;
    let folder = Folder::new("repeats");
    let mut lines = members(ITEMS);
    (0..43_000).for_each(|i| lines.extend([member(i * 7 % ITEMS), b"\n".to_vec()].concat()));
    folder.write("items.txt", lines);
    for kind in ["bloom", "blocked-bloom", "counting-bloom", "cuckoo", "quotient", "ribbon"] {
        let report = folder.json(&format!("build out.mayhap items.txt --force --kind {kind}"));
        let filter = folder.open("out.mayhap");
        holds_all(&filter, ITEMS);
        assert_eq!(report["items_read"], 143_000);
        let capacity = filter.capacity();
        assert!((ITEMS..=104_200).contains(&capacity), "{kind} is for {capacity}");
        assert!(filter.expected_fpr() <= 0.01, "{kind}: {}", filter.expected_fpr());
        keeps_its_word(&filter, kind);
        let distinct = report["items_distinct"].as_u64().unwrap();
        assert!((99_000..=ITEMS).contains(&distinct), "{kind}: {distinct}");
    }
    // A kind that counts copies got each item once, so one removal removes it.
    folder.run("build out.mayhap items.txt --force --kind cuckoo");
    let mut filter = folder.open("out.mayhap");
    assert_eq!(filter.inserted(), ITEMS);
    let strays = (0..1_000).filter(|i| {
        filter.remove(&member(i * 7)).unwrap();
        filter.may_contain(&member(i * 7))
    });
    assert!(strays.count() < 40, "at 1 % some ten of a thousand still answer mayhap");
    // Unless --copies is given.
    folder.run("build out.mayhap items.txt --force --kind cuckoo --copies");
    assert_eq!(folder.open("out.mayhap").inserted(), 143_000);
}

#[test]
fn hashes_beyond_the_memory_limit_go_to_a_file_that_is_removed() {
    let folder = Folder::new("spill");
    folder.write("items.txt", [members(30_000), members(9_000)].concat());
    for kind in ["bloom", "cuckoo", "binary-fuse", "counting-bloom"] {
        folder.run(&format!("build all.mayhap items.txt -f --kind {kind}"));
        let report =
            folder.json(&format!("build spilt.mayhap items.txt -f --kind {kind} --hash-memory 64KiB"));
        assert!(report["spilled_bytes"].as_u64().unwrap() > 300_000, "{report}");
        let [all, spilt] = ["all.mayhap", "spilt.mayhap"].map(|name| fs::read(folder.path(name)).unwrap());
        assert!(all == spilt, "{kind}");
        assert_eq!(folder.names(), ["all.mayhap", "items.txt", "spilt.mayhap"]);
    }
    holds_all(&folder.open("spilt.mayhap"), 30_000);
}

#[test]
fn the_number_of_threads_does_not_change_the_filter() {
    let folder = Folder::new("threads");
    // Several blocks, and two files.
    folder.write("one.txt", members(60_000)).write("two.txt", members(45_000));
    for asked in ["--kind bloom --items 60000", "--kind cuckoo", "--kind ribbon", "--kind scalable-bloom", ""]
    {
        let built = |threads: u32| {
            folder.run(&format!("build out.mayhap one.txt two.txt -f -j {threads} {asked}"));
            fs::read(folder.path("out.mayhap")).unwrap()
        };
        let alone = built(1);
        assert!(built(2) == alone && built(7) == alone, "{asked}");
    }
}

#[test]
fn without_a_kind_the_recommended_one_is_built_and_named() {
    let folder = Folder::new("advised");
    folder.write("items.txt", members(5_000));
    for (asked, kind) in [
        ("", Kind::BlockedBloom),
        ("--items 5000", Kind::BlockedBloom),
        ("--deletes", Kind::Cuckoo),
        ("--static", Kind::Ribbon),
        ("--grows", Kind::ScalableBloom),
        ("--window --items 1000", Kind::Window),
    ] {
        let (out, said) = folder.run(&format!("build out.mayhap items.txt -f {asked}"));
        let filter = folder.open("out.mayhap");
        assert_eq!((filter.kind(), out.as_str()), (kind, ""), "{asked}");
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(lines.len(), 2, "{said}");
        assert!(lines[0].starts_with(&format!("mayhap: kind: {}", kind.name())), "{said}");
        assert!(lines[1].starts_with("mayhap: out.mayhap: ") && lines[1].contains(" items, "), "{said}");
        if kind != Kind::Window {
            holds_all(&filter, 5_000);
        }
    }
    let (_, said) = folder.run("build out.mayhap items.txt -f --quiet");
    assert_eq!(said, "");
    // Five thousand items are few enough for a hash set, which is not a filter.
    assert!(folder.run("build out.mayhap items.txt -f").1.contains("for so small a set, a hash-set of "));
}

#[test]
fn a_growing_filter_needs_no_count_and_keeps_no_hashes() {
    let folder = Folder::new("grows");
    folder.write("items.txt", members(50_000));
    let report = folder
        .json("build out.mayhap items.txt --kind scalable-bloom --grows --fpr 4% --hash-memory 64KiB -j 2");
    let filter = folder.open("out.mayhap");
    holds_all(&filter, 50_000);
    keeps_its_word(&filter, "scalable-bloom");
    assert!(filter.expected_fpr() <= 0.04, "{}", filter.expected_fpr());
    assert_eq!(report["spilled_bytes"], 0);
    assert_eq!(report["over_capacity"], false);
}

#[test]
fn memory_is_a_limit_or_determines_the_rate() {
    let folder = Folder::new("memory");
    folder.write("items.txt", members(50_000));
    for asked in ["", "--items 50000", "--kind bloom", "--kind blocked", "--kind cuckoo --items 50000"] {
        folder.run(&format!("build out.mayhap items.txt -f --memory 64KiB {asked}"));
        let filter = folder.open("out.mayhap");
        let bytes = filter.memory_bytes();
        // A cuckoo filter has no sizes in between.
        let least = if asked.contains("cuckoo") { 40 << 10 } else { 62 << 10 };
        assert!((least..=64 << 10).contains(&bytes), "{asked}: {bytes}");
        assert!((0.000_1..0.04).contains(&filter.expected_fpr()), "{asked}: {}", filter.expected_fpr());
        holds_all(&filter, 50_000);
    }
    let said = folder.error_line("build other.mayhap items.txt --memory 8KiB --fpr 1%");
    assert!(
        said.starts_with("nothing fits in 8.00 KiB: the smallest that meets the other needs, "),
        "{said}"
    );
    let said =
        folder.error_line("build other.mayhap items.txt --memory 8KiB --fpr 1% --kind bloom --items 5e4");
    assert_eq!(said, "--kind bloom: takes 58.6 KiB, limit is 8.00 KiB");
    let said = folder.error_line("build other.mayhap items.txt --memory 1KiB");
    assert!(said.starts_with("--memory: 1.00 KiB are too few for a useful "), "{said}");
}

#[test]
fn more_items_than_stated_cause_a_warning_with_the_actual_rate() {
    let folder = Folder::new("over");
    folder.write("items.txt", members(14_000));
    let (_, said) = folder.run("build out.mayhap items.txt --items 10000 --kind bloom");
    let warning = said.lines().find(|line| line.starts_with("mayhap: warning: ")).expect(&said);
    assert!(
        warning.starts_with("mayhap: warning: out.mayhap: --items is 10,000, but there were at least 13,"),
        "{warning}"
    );
    let filter = folder.open("out.mayhap");
    keeps_its_word(&filter, "over capacity");
    let rate = mayhap::say::rate(filter.expected_fpr());
    assert!(
        warning.ends_with(&format!(" distinct items: the false-positive rate is {rate}, not 1%")),
        "{warning}"
    );
    assert_eq!(
        folder.json("build out.mayhap items.txt -f --items 10000 --kind bloom")["over_capacity"],
        true
    );
    assert_eq!(folder.run("build out.mayhap items.txt -f --items 10000 --kind bloom --quiet").1, "");
    // Fewer items than --items: no warning.
    assert!(!folder.run("build out.mayhap items.txt -f --items 20000 --kind bloom").1.contains("warning"));
    // Static kinds are sized by the actual items, whatever --items is.
    assert!(!folder.run("build out.mayhap items.txt -f --items 10 --kind ribbon").1.contains("warning"));
}

#[test]
fn kinds_that_reject_items_when_full_leave_no_file() {
    let folder = Folder::new("full");
    folder.write("items.txt", members(14_000));
    for kind in ["cuckoo", "quotient", "d-left"] {
        let said = folder.error_line(&format!("build out.mayhap items.txt --items 10000 --kind {kind}"));
        assert_eq!(
            said,
            format!(
                "out.mayhap: --items is 10,000, but there are 14,000 distinct items, too many for this {kind}: raise --items or \
                 omit it"
            )
        );
        let said =
            folder.error_line(&format!("build out.mayhap items.txt --items 10000 --kind {kind} --copies"));
        assert!(said.starts_with("items.txt, line 1") && said.contains("filter is full with 1"), "{said}");
        assert!(said.ends_with("sized for 10000; raise --items or omit it"), "{said}");
    }
    // The named line is the right one: everything before it fits.
    let said = folder.error_line("build out.mayhap items.txt --items 10000 --kind cuckoo --copies");
    let line: u64 =
        said["items.txt, line ".len()..].split(':').next().unwrap().replace(',', "").parse().unwrap();
    folder.write("fits.txt", members(line - 1)).write("does-not.txt", members(line));
    folder.run("build out.mayhap fits.txt --items 10000 --kind cuckoo --copies");
    folder.error_line("build other.mayhap does-not.txt --items 10000 --kind cuckoo --copies");
    // Copies have a separate limit.
    folder.write("same.txt", "again\n".repeat(50));
    let said = folder.error_line("build other.mayhap same.txt --items 100 --kind cuckoo --copies");
    let limit: u64 = said.rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(said, format!("same.txt, line {}: too many copies of one item, limit is {limit}", limit + 1));
    folder.run("build other.mayhap same.txt --items 100 --kind cuckoo");
}

#[test]
fn numbers_become_a_bitmap_if_that_is_smaller() {
    let folder = Folder::new("numbers");
    folder.write("ids.txt", numbers(1_000_000..=1_050_000));
    let holds = |filter: &Filter| {
        (1_000_000..=1_050_000_u64).all(|id| filter.may_contain(&id))
            && !(0..1_000_000_u64).chain(1_050_001..1_100_000).any(|id| filter.may_contain(&id))
    };
    for asked in [
        "--kind bitmap --range 0..2000000",
        "--kind bitmap",
        "--kind bitmap --hash-memory 1KiB",
        "--kind bitmap -j 3",
        "--range 1000000..1099999",
        "--range 1000000..1099999 --items 50001",
    ] {
        let report = folder.json(&format!("build out.mayhap ids.txt -f {asked}"));
        assert_eq!(
            (report["kind"].as_str(), report["items_distinct"].as_u64()),
            (Some("bitmap"), Some(50_001))
        );
        assert_eq!(report["expected_fpr"], 0.0);
        assert!(holds(&folder.open("out.mayhap")), "{asked}");
    }
    let (_, said) = folder.run("build out.mayhap ids.txt -f --kind bitmap");
    assert!(
        said.starts_with("mayhap: kind: bitmap of 1000000 to 1050000, as found in the input\n"),
        "{said}"
    );
    assert!(said.contains(" exact (no false positives), "), "{said}");
    // For a very wide range a filter is smaller, and lines are text again.
    let report = folder.json("build out.mayhap ids.txt -f --range 0..999999999999");
    assert_eq!(report["kind"], "blocked-bloom-split");
    assert!(folder.open("out.mayhap").may_contain("1000007"));

    let said = folder.error_line("build other.mayhap ids.txt --kind bitmap --range 0..1000009");
    assert_eq!(said, "ids.txt, line 11: 1000010 is out of range, the bitmap is for 0 to 1000009");
    folder.write("words.txt", "7\nseven\n");
    let said = folder.error_line("build other.mayhap words.txt --kind bitmap");
    assert!(said.starts_with("words.txt, line 2: \"seven\" is not an integer from 0 to 2^64 - 1"), "{said}");
    folder.write("far.txt", "1\n18446744073709551615\n").write("empty.txt", "");
    let said = folder.error_line("build other.mayhap far.txt --kind bitmap");
    assert!(said.contains("must be between"), "{said}");
    let said = folder.error_line("build other.mayhap far.txt --kind bitmap --memory 1GiB");
    assert_eq!(
        said,
        "other.mayhap: a bitmap from 1 to 18446744073709551615 needs 2.00 EiB, limit is 1.00 GiB"
    );
    let said = folder.error_line("build other.mayhap empty.txt --kind bitmap");
    assert_eq!(said, "other.mayhap: the input has no numbers; give their range with --range");
    let said = folder.error_line("build other.mayhap --range 1..9");
    assert!(said.starts_with("--range: give --items or --kind bitmap, because "), "{said}");
}

#[test]
fn other_programs_filters_are_built_as_those_programs_build_them() {
    const ITEMS: u64 = 5_000;
    let folder = Folder::new("formats");
    folder.write("items.txt", [members(ITEMS), members(1_000)].concat());
    folder.write("ids.txt", numbers(1..=ITEMS));
    let asked = |name: &str, line: &str, options: ReadOptions, format: Format| {
        folder.run(&format!("build {name} -f {line}"));
        let bytes = fs::read(folder.path(name)).unwrap();
        format.read(&bytes, &options).unwrap_or_else(|error| panic!("{line}: {error}"))
    };
    let utf8 = || ReadOptions::default().items(ItemEncoding::Utf8);
    for (format, line, options) in [
        (Format::Guava, "--format guava --items-as utf8", utf8()),
        (Format::Guava, "--format guava --items-as utf8 --items 5000", utf8()),
        (Format::Spark, "--format spark --items-as utf8", utf8()),
        (Format::Dcso, "--format dcso", ReadOptions::default()),
        (Format::DcsoGzip, "--format dcso-gzip", ReadOptions::default()),
        (Format::RedisBloom, "--format redis-bloom", ReadOptions::default()),
        (Format::RedisCuckoo, "--format redis-cuckoo --items 9000", ReadOptions::default()),
        (Format::RedisDump, "--format redis-dump", ReadOptions::default()),
        (Format::BitsAndBlooms, "--format bits-and-blooms --items-as utf8", utf8()),
        (Format::BitsAndBlooms, "--format bits-and-blooms --items-as utf8 --items 5000", utf8()),
    ] {
        let filter = asked("out.bloom", &format!("items.txt {line}"), options, format);
        holds_all(&filter, ITEMS);
        let wrong = wrong_answers(&filter, NON_MEMBERS) as f64 / NON_MEMBERS as f64;
        let limit = if format == Format::RedisCuckoo { 0.03 } else { 0.0125 };
        assert!(wrong < limit, "{line}: wrong for {wrong}");
    }
    let u64le = || ReadOptions::default().items(ItemEncoding::U64Le);
    for (format, name) in [(Format::FuseGo, "fuse-go"), (Format::FuseC, "fuse-c"), (Format::XorC, "xor-c")] {
        let line = format!("ids.txt --format {name} --items-as u64le");
        let filter = asked("out.fuse", &line, u64le().fingerprint_bits(8), format);
        assert!((1..=ITEMS).all(|id| filter.may_contain(&id)), "{name}");
        let wrong = (1_000_000..1_060_000_u64).filter(|id| filter.may_contain(id)).count();
        assert!((150..330).contains(&wrong), "{name}: 1 in 256 of 60,000 are 234, not {wrong}");
    }
    // Exactly the bytes that the library writes for the same items.
    let (name, format) = ("guava", Format::Guava);
    folder.run(&format!("build out.bloom items.txt -f --format {name} --items-as utf8 --items 6000"));
    let items = (0..ITEMS).chain(0..1_000).map(|i| String::from_utf8(member(i)).unwrap());
    let expected = format.build(items, 6_000, 0.01, ItemEncoding::Utf8).unwrap();
    let mut bytes = Vec::new();
    format.write(&expected, &mut bytes).unwrap();
    assert_eq!(fs::read(folder.path("out.bloom")).unwrap(), bytes);

    assert!(
        folder
            .error_line("build x items.txt --format guava")
            .starts_with("--format guava: --items-as is required")
    );
    assert_eq!(
        folder.error_line("build x items.txt --format rbloom"),
        "--format: rbloom filters can be read, but not written"
    );
    assert!(
        folder.error_line("build x items.txt --format guava --items-as utf8 --kind bloom").contains("--kind")
    );
    assert!(folder.error_line("build x items.txt --items-as utf8").contains("--format"));
    let said = folder.error_line("build x --format bits-and-blooms --items-as utf8");
    assert!(said.starts_with("--format: give --items, because "), "{said}");
    let said = folder.error_line("build x items.txt --format fuse-go --items-as u64le");
    assert!(said.starts_with("items.txt, line 1: ") && said.contains("is not an integer"), "{said}");
}

#[test]
fn untrusted_items_get_a_secret_key_in_a_private_file() {
    let folder = Folder::new("untrusted");
    folder.write("items.txt", members(2_000));
    folder.run("build one.mayhap items.txt --untrusted --kind bloom");
    folder.run("build two.mayhap items.txt --untrusted --kind bloom --items 2000");
    folder.run("build open.mayhap items.txt --kind bloom");
    let mode = |name| fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o077;
    assert_eq!((mode("one.mayhap"), mode("two.mayhap")), (0, 0));
    assert_ne!(mode("open.mayhap"), 0);
    for name in ["one.mayhap", "two.mayhap"] {
        let filter = folder.open(name);
        assert_eq!(format!("{:?}", filter.scheme().unwrap()), "keyed(secret)");
        holds_all(&filter, 2_000);
    }
    folder.run("build seed.mayhap items.txt --seed 42 --kind bloom");
    assert_eq!(format!("{:?}", folder.open("seed.mayhap").scheme().unwrap()), "fast(seed 0x2a)");
    assert!(folder.error_line("build x items.txt --seed 1 --untrusted").contains("--untrusted"));
}

#[test]
fn unusual_input_is_read_or_reported() {
    let folder = Folder::new("ugly");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"packed\nalso\n").unwrap();
    folder.write("packed.gz", packed.finish().unwrap());
    folder.write("crlf.txt", "one\r\ntwo\r\n").write("open-end.txt", "first\nlast").write("empty.txt", "");
    folder.write("bytes.bin", b"\xff\xfe\n\n\x80\n");
    let built = |line: &str| {
        folder.run(&format!("build out.mayhap -f --kind bloom --fpr 1e-9 {line}"));
        folder.open("out.mayhap")
    };
    let has = |filter: &Filter, items: &[&[u8]]| items.iter().all(|item| filter.may_contain(*item));
    assert!(has(&built("packed.gz"), &[b"packed", b"also"]));
    assert!(has(&built("crlf.txt --crlf"), &[b"one", b"two"]));
    assert!(has(&built("crlf.txt"), &[b"one\r", b"two\r"]));
    assert!(has(&built("open-end.txt"), &[b"first", b"last"]));
    assert!(has(&built("bytes.bin"), &[b"\xff\xfe", b"", b"\x80"]));
    assert_eq!(built("open-end.txt crlf.txt").inserted(), 4);
    folder.write("table.csv", "id,mail\n1,ada@example.org\n2,\"grace@example.org\"\n");
    assert!(has(&built("table.csv --csv mail"), &[b"ada@example.org", b"grace@example.org"]));

    for kind in ["bloom", "cuckoo", "ribbon", "binary-fuse", "gcs", "xor"] {
        let (_, said) = folder.run(&format!("build out.mayhap -f empty.txt --kind {kind}"));
        assert!(said.contains("mayhap: warning: out.mayhap: the input has no items\n"), "{said}");
        assert!(!folder.open("out.mayhap").may_contain("anything"), "{kind}");
    }
    assert_eq!(
        folder.error_line("build x missing.txt"),
        "cannot read missing.txt: no such file or directory"
    );
    assert_eq!(folder.error_line("build x ."), "cannot read .: is a directory");
}

#[test]
fn invalid_arguments_are_reported_before_anything_is_read() {
    let folder = Folder::new("refusals");
    folder.write("items.txt", members(10)).write("there.mayhap", "mine");
    assert_eq!(
        folder.error_line("build there.mayhap items.txt"),
        "there.mayhap: exists already; --force replaces it"
    );
    assert_eq!(fs::read(folder.path("there.mayhap")).unwrap(), b"mine");
    for (line, said) in [
        ("build . items.txt", ".: is a directory: name a file in it"),
        ("build /dev/full items.txt", "/dev/full: is not a regular file"),
        ("build no/x items.txt", "cannot write no/x: no such file or directory"),
        ("build x --window", "--window needs --items: the number of latest items to keep"),
        ("build x items.txt --kind bloom --items 10 --deletes", "--kind bloom: cannot delete"),
        ("build x items.txt --kind bloom --items 10 --grows", "--kind bloom: cannot grow"),
        ("build x items.txt --kind cuckoo --items 10 --window", "--kind cuckoo: never forgets old items"),
        ("build x items.txt --items 0", "--items: capacity must be between 1 and 4398046511104, got 0"),
        ("build - items.txt --json", "--json: standard output is used by the filter; name a file as OUT"),
    ] {
        assert_eq!(folder.error_line(line), said, "{line}");
    }
    let said = folder.error_line("build x items.txt --kind blom");
    assert!(said.contains("'blom'") && said.contains("known kinds: bitmap, bloom, "), "{said}");
    let said = folder.error_line("build x --deletes items.txt");
    assert!(said.contains("put files before --deletes"), "{said}");
    assert!(folder.error_line("build x items.txt --fpr 1e-300 --items 10").starts_with("--fpr: "));
    assert!(folder.error_line("build x items.txt -j 0").contains("--threads"));
}

#[test]
fn standard_output_gets_only_the_filter() {
    let folder = Folder::new("stdout");
    folder.write("items.txt", members(3_000));
    let output = folder.mayhap("build - items.txt --kind bloom").output().unwrap();
    let (_, said) = (said_well_bytes(&output), String::from_utf8(output.stderr.clone()).unwrap());
    assert!(said.contains("mayhap: standard output: bloom, 3,000 items"), "{said}");
    holds_all(&Filter::decode(&output.stdout).unwrap(), 3_000);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = folder.mayhap("build - items.txt --kind bloom").stdout(full).output().unwrap();
    assert!(one_line(&output, "full").ends_with("cannot write the output: no space left on device"));
}

fn said_well_bytes(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let folder = Folder::new("full-disk");
    folder.write("items.txt", members(100_000)).write("out.mayhap", "the old one");
    let limited = |arguments: &str| {
        // Files are limited to 64 blocks of 512 (or 1024) bytes, which acts as a full disk for this program only.
        let line = format!("ulimit -f 64; exec '{}' {arguments}", env!("CARGO_BIN_EXE_mayhap"));
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(&folder.0).stdin(Stdio::null());
        command.output().unwrap()
    };
    let output = limited("build out.mayhap items.txt -f --items 1e6 --kind bloom --quiet");
    let said = one_line(&output, "limited");
    assert!(said.starts_with("cannot write ") && said.ends_with(": file too large"), "{said}");
    // The same for a temporary file that grows too long.
    let output = limited("build out.mayhap items.txt -f --kind bloom --hash-memory 1KiB --quiet");
    let said = one_line(&output, "limited");
    assert!(
        said.contains("cannot write a temporary file in ") && said.contains(": file too large"),
        "{said}"
    );
    assert_eq!(fs::read(folder.path("out.mayhap")).unwrap(), b"the old one");
    assert_eq!(folder.names(), ["items.txt", "out.mayhap"]);
}

#[test]
fn ctrl_c_leaves_the_old_file() {
    let folder = Folder::new("ctrl-c");
    folder.write("out.mayhap", "the old one");
    for asked in ["--items 1e6", "--hash-memory 1KiB"] {
        let mut child = folder
            .mayhap(&format!("build out.mayhap -f --kind bloom --progress {asked}"))
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(&members(50_000)).unwrap();
        // Once it prints progress, it handles signals.
        let mut said = [0; 8];
        std::io::Read::read_exact(child.stderr.as_mut().unwrap(), &mut said).unwrap();
        assert_eq!(&said, b"mayhap: ");
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let ended = wait(&mut child);
        assert!(ended == Some(130) || ended.is_none(), "{ended:?}");
        drop(input);
        assert_eq!(fs::read(folder.path("out.mayhap")).unwrap(), b"the old one");
        assert_eq!(folder.names(), ["out.mayhap"]);
    }
}

/// The exit code, within some seconds; `None` if a signal ended it.
fn wait(child: &mut std::process::Child) -> Option<i32> {
    for _ in 0..600 {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = child.kill();
    panic!("the program does not end");
}

#[test]
fn progress_is_printed_as_plain_lines_on_request() {
    let folder = Folder::new("progress");
    folder.write("items.txt", members(20_000));
    let (_, said) = folder.run("build out.mayhap items.txt --items 20000 --progress");
    assert!(said.contains("mayhap: saving"), "{said}");
    assert!(!said.contains('\r') && !said.contains('\u{1b}'), "{said}");
    let (_, said) = folder.run("build out.mayhap items.txt -f");
    assert_eq!(said.lines().count(), 2, "without a terminal there is no bar: {said}");
}

#[test]
fn the_help_has_examples() {
    let folder = Folder::new("help");
    for verb in ["build", "add", "remove", "merge"] {
        let (help, _) = folder.run(&format!("{verb} --help"));
        assert!(
            help.contains("Examples:\n") && help.matches(&format!("  mayhap {verb} ")).count() >= 4,
            "{help}"
        );
    }
}
