//! `mayhap plan` as its users run it: the real program, its output, its exit codes.

use std::io::Read;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn mayhap(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayhap"));
    command.args(arguments.split_whitespace()).env_remove("CLICOLOR_FORCE").env_remove("COLUMNS");
    command
}

fn run(arguments: &str) -> Output {
    mayhap(arguments).output().expect("the program starts")
}

/// What it answers when all goes well.
fn answer(arguments: &str) -> String {
    let output = run(arguments);
    let trouble = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), trouble.as_str()), (Some(0), ""), "{arguments}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &str) -> Value {
    serde_json::from_str(&answer(arguments)).expect("one JSON object")
}

/// The one line it says when something is wrong.
fn trouble(arguments: &[&str]) -> String {
    let output = mayhap("").args(arguments).output().expect("the program starts");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?} wrote to the standard output");
    assert!(said.starts_with("mayhap: ") && said.lines().count() == 1, "{arguments:?}: {said}");
    said
}

#[test]
fn the_text_says_what_why_how_and_how_wrong() {
    let text = answer("plan --items 1e9 --fpr 0.01");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("Plan for 1,000,000,000 items at a rate of 1%"));
    assert!(text.contains(
        "Use blocked-bloom split: 1.23 GiB for 1,000,000,000 items (10.5 bits each), one cache line"
    ));
    assert!(
        text.contains("\n* blocked-bloom split   10.5  1.23 GiB      1/1  1.59x  --m-t  recommended\n"),
        "{text}"
    );
    assert!(
        text.contains("\n  bloom                 9.60  1.12 GiB    3.3/7  1.44x  --m-t  suits\n"),
        "{text}"
    );
    assert!(text.contains("needs integers in a known range"));
    assert!(text.contains("\n  use mayhap::BlockedBloom;\n  let mut seen = BlockedBloom::for_capacity(1_000_000_000, 0.01, 0)?;\n"));
    assert!(text.contains("864,000 wrong mayhaps a day"), "{text}");
    assert!(text.contains("HashScheme::keyed_random()"));
    assert!(!text.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn the_table_is_aligned_and_narrow() {
    for arguments in [
        "plan --items 1e9 --fpr 0.01",
        "plan --items 1e6 --fpr 0.1% --deletes 5000 --memory 3MiB --threads --untrusted",
        "plan --items 1e12 --fpr 1e-9 --grows --deletes",
        "plan --items 1 --fpr 50% --range 0..18446744073709551615",
        "plan --items 1e9 --fpr 1% --range 13000000000..19999999999",
        "plan --items 10 --fpr 1e-15 --static --item-bytes 4000000000",
    ] {
        let text = answer(arguments);
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{arguments}:\n{text}");
        let header = text.lines().find(|line| line.starts_with("  kind ")).unwrap();
        let verdict = header.find("verdict").unwrap();
        let rows = text.lines().skip_while(|line| !line.starts_with("  kind ")).skip(1).take(9);
        for row in rows {
            assert_eq!(row[..verdict].trim_end().len(), verdict - 2, "{arguments}: {row:?} under {header:?}");
        }
    }
}

#[test]
fn a_narrow_terminal_gets_a_narrow_table() {
    for flags in [
        "--items 1e9 --fpr 0.01",
        "--items 1e9 --fpr 0.01 --grows --deletes",
        "--items 1e6 --memory 64MiB --grows",
        "--items 1e6 --memory 1MiB --deletes 1000 --threads",
        "--items 1e6 --fpr 1e-12 --memory 1MiB --grows",
    ] {
        for width in [60, 66, 72, 80, 90, 110] {
            let command = |flags| mayhap(&format!("plan {flags}")).env("COLUMNS", width.to_string()).output();
            let text = String::from_utf8(command(flags).unwrap().stdout).unwrap();
            // Code is not broken into lines that would not be code.
            let lines = text.lines().take_while(|line| *line != "In Rust");
            let widest = lines.map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width && widest + 12 > width, "{flags}: {widest} columns of {width}\n{text}");
            assert!(text.contains("  kind ") && text.contains("  verdict\n"), "{text}");
        }
    }
}

#[test]
fn verdicts_need_no_legend() {
    for flags in ["--items 1e9 --fpr 1% --grows --deletes", "--items 1e6 --memory 64MiB --grows"] {
        let text = answer(&format!("plan {flags}"));
        assert!(!text.contains(" +1") && !text.contains(" +2"), "{text}");
    }
    assert!(
        answer("plan --items 1e6 --fpr 1% --grows --deletes").contains("only for --static, cannot delete, …")
    );
    // A second filter for removals is of no use where there are none, and its no may be wrong where there are.
    let text = answer("plan --items 1e6 --fpr 1%");
    let dual = text.lines().find(|line| line.starts_with("  dual-bloom? ")).expect("a mark");
    assert!(dual.ends_with("d----  only worth it where items are removed"), "{dual}");
    assert!(
        text.replace('\n', " ").contains("?: after a removal its no may be wrong, and it merges no more."),
        "{text}"
    );
}

#[test]
fn numbers_are_said_in_words_that_fit_them() {
    let text = answer("plan --items 1 --fpr 0.999999");
    assert!(text.starts_with("Plan for 1 item at a rate of 99.9999%\n"), "{text}");
    assert!(!text.contains("1 items"), "{text}");
    let text = answer("plan --items 1e6 --fpr 1% --range 0..2_000_000");
    assert!(
        text.contains("\n  use mayhap::Bitmap;\n") && text.contains("\n  seen.set(number)?;\n"),
        "{text}"
    );
}

#[test]
fn a_solved_rate_is_told_for_every_kind() {
    // Not Bloom's lowest rate for all, which a scalable filter never reaches.
    let text = answer("plan --items 1e6 --memory 64MiB --grows");
    assert!(
        text.starts_with("Plan for 1,000,000 items in 64.0 MiB: a rate of 1 in 1,000,000,000\n"),
        "{text}"
    );
    assert!(text.contains("Use growing: 4.52 MiB"), "{text}");
    assert!(text.contains("A rate below 1 in 1,000,000,000 is of no use to anybody"), "{text}");
    assert!(!text.contains("cannot be built"), "{text}");
    // What is never wrong and fits is taken.
    let text = answer("plan --items 1e6 --memory 100MiB");
    assert!(text.starts_with("Plan for 1,000,000 items in 100 MiB: never wrong\n"), "{text}");
    let plan = json("plan --items 1e6 --memory 100MiB --json");
    assert_eq!((&plan["recommended"], &plan["target_fpr"]), (&"hash-set".into(), &0.0.into()));

    // Fingerprints have a rate of their own.
    let text = answer("plan --items 1e6 --memory 16MiB --static");
    assert!(
        text.starts_with("Plan for 1,000,000 items in 16.0 MiB: a rate of 1 in 18,400,000,000,000\n"),
        "{text}"
    );
    assert!(!text.contains("Wrong answers: 1 in 1,000,000,000 strangers"), "{text}");
    // A few bytes too many are told in bytes.
    let plan = json("plan --items 1e6 --memory 10MiB --range 0..1e9 --json");
    assert!(plan.to_string().contains("takes 10,485,776 B, limit is 10,485,760 B"), "{plan}");

    let text = answer("plan --items 50M --memory 64MiB");
    for row in [
        "\n* blocked-bloom split   10.7  64.0 MiB      1/1   0.917%  --m-t  recommended\n",
        "\n  bloom                 10.7  64.0 MiB    3.2/7    0.58%  --m-t  suits\n",
    ] {
        assert!(text.contains(row), "{text}");
    }
    assert!(text.contains("Next is quotient: as much memory for a rate of 0.37%"), "{text}");
    let plan = json("plan --items 50M --memory 64MiB --json");
    for price in plan["prices"].as_array().unwrap() {
        let filter = price["name"].as_str().unwrap().contains("bloom");
        let why_not = price["why_not"].to_string();
        assert!(!filter || !why_not.contains("limit is"), "every filter fits at its own rate: {price}");
        assert!(!filter || price["target_fpr"].as_f64().unwrap() >= price["expected_fpr"].as_f64().unwrap());
    }
    assert_eq!(plan["target_fpr"], plan["prices"][0]["target_fpr"]);
}

#[test]
fn phone_numbers_are_a_bitmap_and_few_items_a_hash_set() {
    let text = answer("plan --items 1e9 --fpr 1% --range 13000000000..19999999999");
    assert!(text.contains("Use an exact bitmap of the range 13000000000 to 19999999999"), "{text}");
    assert!(text.contains("let mut seen = Bitmap::new(7_000_000_000)?;"));
    let text = answer("plan --items 1000 --fpr 1% --item-bytes 20");
    assert!(text.contains("Use a hash set"), "{text}");
}

#[test]
fn json_has_its_fields() {
    let plan = json("plan --items 10M --fpr 1-in-1000 --json");
    assert_eq!((&plan["items"], &plan["target_fpr"]), (&10_000_000.into(), &0.001.into()));
    assert_eq!((&plan["memory_limit_bytes"], &plan["solved_for"]), (&Value::Null, &"memory".into()));
    assert_eq!(plan["recommended"], "blocked-bloom split");
    assert_eq!(
        plan["rust"],
        "use mayhap::BlockedBloom;\nlet mut seen = BlockedBloom::for_capacity(10_000_000, 0.001, 0)?;"
    );
    assert!(plan["why"].as_array().unwrap().iter().all(Value::is_string));
    assert!(plan["notes"].as_array().unwrap().iter().all(Value::is_string));
    let prices = plan["prices"].as_array().unwrap();
    let named = |name: &str| prices.iter().find(|price| price["name"] == name).unwrap();
    let best = named("blocked-bloom split");
    assert_eq!(
        (&best["kind"], &best["layout"], &best["suits"]),
        (&"blocked-bloom".into(), &"split-256".into(), &true.into())
    );
    assert_eq!((&best["probes"], &best["lines_hit"]), (&8.into(), &1.0.into()));
    let classic = mayhap::Bloom::for_capacity(10_000_000, 0.001, 0).unwrap();
    assert_eq!(named("bloom")["memory_bytes"], classic.memory_bytes());
    assert!(named("bloom")["over_bound"].as_f64().unwrap() < 1.45);
    assert_eq!(named("bitmap")["memory_bytes"], Value::Null);
    assert_eq!(named("bitmap")["why_not"][0], "needs integers in a known range");
    assert_eq!(named("counting-bloom")["can"]["delete"], true);
    assert_eq!(named("hash-set")["kind"], Value::Null);
    let fields = ["bits_per_item", "lines_miss", "expected_fpr"];
    assert!(fields.iter().all(|field| best[field].is_number()));
    let abilities = ["delete", "grow", "merge", "exact", "threads", "certain_no"];
    assert!(abilities.iter().all(|ability| best["can"][ability].is_boolean()));
}

#[test]
fn any_two_numbers_give_the_third() {
    let rate = json("plan --items 50M --memory 64MiB --json");
    assert_eq!(rate["solved_for"], "fpr");
    let solved = rate["target_fpr"].as_f64().unwrap();
    assert!((0.005..0.01).contains(&solved), "{solved}");
    let items = json("plan --fpr 0.1% --memory 512MiB --json");
    assert_eq!(items["solved_for"], "items");
    assert!((250_000_000..260_000_000).contains(&items["items"].as_u64().unwrap()), "{}", items["items"]);
    for plan in [rate, items] {
        let limit = plan["memory_limit_bytes"].as_u64().unwrap();
        let best = &plan["prices"][0];
        let bytes = best["memory_bytes"].as_u64().unwrap();
        assert!(best["suits"] == true && bytes <= limit && bytes > limit / 100 * 98, "{bytes} of {limit}");
    }
    // All three: nothing fits, which is an answer too.
    let nothing = json("plan --items 1e9 --fpr 1% --memory 512MiB --json");
    assert_eq!(
        (&nothing["solved_for"], &nothing["recommended"], &nothing["rust"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let note = nothing["notes"][0].as_str().unwrap();
    assert!(note.contains("holds all items at a rate of 12.8%, or 447,"), "{note}");
}

#[test]
fn flags_reach_the_advisor() {
    let best =
        |flags: &str| json(&format!("plan --items 1e6 --fpr 1% --json {flags}"))["recommended"].clone();
    assert_eq!(best("--deletes"), "cuckoo");
    assert_eq!(best("--deletes --threads"), "cuckoo");
    assert_eq!(best("--grows"), "growing");
    assert_eq!(best("--static"), "ribbon");
    assert_eq!(best("--window"), "window");
    assert_eq!(best("--range 0..2_000_000"), "bitmap");
    assert_eq!(best("--deletes --grows"), "growing");
    let rust = |flags: &str| json(&format!("plan --items 1e6 --fpr 1% --json {flags}"))["rust"].to_string();
    assert!(rust("--untrusted").contains("keyed_random"));
    assert!(rust("--threads").contains("AtomicBlockedBloom"));
    let asked = json("plan --items 1e6 --fpr 1% --lookups 5k --json");
    assert!(asked["notes"][0].as_str().unwrap().contains("up to 50 wrong mayhaps a day"), "{asked}");
    let fixed = json("plan --items 1e6 --fpr 1% --static --json");
    let array =
        fixed["prices"].as_array().unwrap().iter().find(|price| price["name"] == "sorted-array").unwrap();
    assert_eq!(array["suits"], true);
}

#[test]
fn nonsense_is_one_clear_line_and_exit_2() {
    for rate in ["0", "1", "1.5", "100%", "0/5"] {
        let said = trouble(&["plan", "--items", "1000", "--fpr", rate]);
        assert!(
            said.contains(&format!("'{rate}' for '--fpr <RATE>': a rate lies between 0 and 1")),
            "{said}"
        );
    }
    for (rate, why) in [("nan", "not a number"), ("inf", "not a number"), ("-1", "negative"), ("", "empty")] {
        let said = trouble(&["plan", "--items", "1000", "--fpr", rate]);
        assert!(said.contains("--fpr <RATE>") && said.contains(why), "{said}");
    }
    for (items, why) in [
        ("-1", "negative"),
        ("1.5", "whole number"),
        ("nan", "not a number"),
        ("inf", "not a number"),
        ("1e30", "at most 18446744073709551615"),
        ("", "empty"),
        ("5 apples", "\"apples\""),
    ] {
        let said = trouble(&["plan", "--items", items, "--fpr", "0.01"]);
        assert!(said.contains(&format!("'{items}' for '--items <N>'")) || items.is_empty(), "{said}");
        assert!(said.contains(why), "{said}");
    }
    // Numbers that are numbers, but no filter has them.
    let capacity = trouble(&["plan", "--items", "0", "--fpr", "0.01"]);
    assert!(capacity.contains("--items: capacity must be between 1 and 4398046511104, got 0"), "{capacity}");
    assert!(trouble(&["plan", "--items", "1e15", "--fpr", "0.01"]).contains("got 1000000000000000"));
    assert!(trouble(&["plan", "--items", "10", "--fpr", "1e-20"]).contains("1e-20 is below 1e-15"));
    // What begins with a hyphen is a value here, and told what is wrong with it.
    let negative = |flag: &str, value: &str| trouble(&["plan", "--items", "9", "--fpr", "1%", flag, value]);
    for (flag, value) in
        [("--range", "-5..5"), ("--memory", "-1MiB"), ("--lookups", "-1k"), ("--item-bytes", "-1k")]
    {
        let said = negative(flag, value);
        assert!(said.contains(flag) && said.contains("it must not be negative"), "{said}");
    }
    let said = trouble(&["plan", "--items", "9", "--fpr", "-1%"]);
    assert!(said.contains("'-1%' for '--fpr <RATE>': it must not be negative"), "{said}");
    assert!(negative("--lookups", "0").contains("--lookups: a number of lookups must be at least 1, got 0"));
    assert!(negative("--memory", "0").contains("--memory: a memory limit"));
    assert!(negative("--deletes", "0").contains("--deletes: a number of removals"));
    assert!(negative("--item-bytes", "0").contains("--item-bytes: items must have"));
    assert!(negative("--memory", "64mb").contains("did you mean MB (a million bytes) or MiB"));
    assert!(trouble(&["plan", "--items", "10m", "--fpr", "1%"]).contains("did you mean M?"));
    assert!(
        trouble(&["plan", "--items", "1e", "--fpr", "1%"]).contains("not a number, write for example 1e9")
    );
    // Combinations.
    assert!(trouble(&["plan", "--items", "1e9"]).contains("give two of --items, --fpr and --memory"));
    assert!(trouble(&["plan"]).contains("give two of"));
    assert!(trouble(&["plan", "--items", "1e9", "--memory", "1MiB"]).contains("1.00 MiB are too few"));
    assert!(trouble(&["plan", "--items", "9", "--fpr", "0.1", "--memory", "0"]).contains("at least 1 byte"));
    assert!(trouble(&["plan", "--items", "9", "--fpr", "0.1", "--range", "9..1"]).contains("9..1 is empty"));
    assert!(
        trouble(&["plan", "--items", "9", "--fpr", "0.1", "--range", "1..5"])
            .contains("9 items cannot differ")
    );
    assert!(trouble(&["plan", "--items", "9", "--fpr", "0.1", "--range", "5"]).contains("LOW..HIGH"));
    assert!(
        trouble(&["plan", "--items", "9", "--fpr", "0.1", "--static", "--grows"])
            .contains("cannot be used with")
    );
    // Slips of the keyboard.
    let typo = trouble(&["plan", "--itms", "9"]);
    assert!(
        typo.contains("'--itms'") && typo.contains("tip: a similar argument exists: '--items'"),
        "{typo}"
    );
    assert!(trouble(&["plna"]).contains("unrecognized subcommand 'plna'"));
    assert!(trouble(&[]).contains("mayhap plan --items 1e9 --fpr 1%"));
}

#[test]
fn a_reader_that_leaves_is_no_trouble() {
    for arguments in
        ["plan --items 1e9 --fpr 1%", "plan --items 1e9 --fpr 1% --json", "plan --help", "--help"]
    {
        let mut child = mayhap(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Gone before the first byte, as far as the program can tell.
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{arguments}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_trouble() {
    for arguments in ["plan --items 1e9 --fpr 1%", "plan --items 1e9 --fpr 1% --json"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = mayhap(arguments).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with("mayhap: cannot write the answer: No space left"), "{said}");
    }
}

#[test]
fn help_teaches_and_the_version_is_told() {
    let help = answer("plan --help");
    for taught in ["--items <N>", "--fpr <RATE>", "--range <LOW..HIGH>", "1-in-1M", "Examples:", "64MiB"] {
        assert!(help.contains(taught), "{taught} is not in\n{help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    assert!(answer("--help").contains("plan"));
    assert_eq!(answer("--version"), format!("mayhap {}\n", env!("CARGO_PKG_VERSION")));
    // Every example of the help is one that works.
    let examples = help.lines().filter_map(|line| line.trim().strip_prefix("mayhap plan"));
    let examples: Vec<&str> = examples.map(|line| line.split("   ").next().unwrap()).collect();
    assert_eq!(examples.len(), 8);
    for example in examples {
        answer(&format!("plan{example}"));
    }
}
