//! `mayhap plan` as its users run it: the real program, its output, its exit codes.

use std::io::Read;
use std::path::{Path, PathBuf};
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

/// The output of a run that succeeds.
fn answer(arguments: &str) -> String {
    let output = run(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{arguments}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &str) -> Value {
    serde_json::from_str(&answer(arguments)).expect("one JSON object")
}

/// An empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plan").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The row of this name.
fn row<'a>(plan: &'a Value, name: &str) -> &'a Value {
    plan["prices"].as_array().unwrap().iter().find(|price| price["name"] == name).expect(name)
}

/// The one line of a run that fails.
fn error_line(arguments: &[&str]) -> String {
    let output = mayhap("").args(arguments).output().expect("the program starts");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?} wrote to the standard output");
    assert!(said.starts_with("mayhap: ") && said.lines().count() == 1, "{arguments:?}: {said}");
    said
}

#[test]
fn the_text_has_the_recommendation_the_reasons_and_the_rate() {
    let text = answer("plan --items 1e9 --fpr 0.01");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("Plan for 1,000,000,000 items at an FPR of 1%"));
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
    assert!(text.contains(
        "\n  use mayhap::BlockedBloom;\n  let mut seen = BlockedBloom::new(1_000_000_000, 0.01)?;\n"
    ));
    assert!(text.contains("864,000 false positives a day"), "{text}");
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
            // Code lines are not wrapped.
            let lines = text.lines().take_while(|line| *line != "In the shell");
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
    // A dual filter is useless without removals; with them, its no may be wrong.
    let text = answer("plan --items 1e6 --fpr 1%");
    let dual = text.lines().find(|line| line.starts_with("  dual-bloom? ")).expect("a mark");
    assert!(dual.ends_with("d----  only useful if items are removed"), "{dual}");
    assert!(
        text.replace('\n', " ")
            .contains("?: after a removal a no may be wrong, and the filter can no longer be merged."),
        "{text}"
    );
}

#[test]
fn numbers_have_the_right_words_and_digits() {
    let text = answer("plan --items 1 --fpr 0.999999");
    assert!(text.starts_with("Plan for 1 item at an FPR of 99.9999%\n"), "{text}");
    assert!(!text.contains("1 items"), "{text}");
    let text = answer("plan --items 1e6 --fpr 1% --range 0..2_000_000");
    assert!(
        text.contains("\n  use mayhap::Bitmap;\n") && text.contains("\n  seen.set(number)?;\n"),
        "{text}"
    );
}

#[test]
fn a_solved_rate_is_shown_for_every_kind() {
    // Not the lowest rate of Bloom for all, which a scalable filter never reaches.
    let text = answer("plan --items 1e6 --memory 64MiB --grows");
    assert!(text.starts_with("Plan for 1,000,000 items in 64.0 MiB: FPR 1 in 1,000,000,000\n"), "{text}");
    assert!(text.contains("Use growing: 4.52 MiB"), "{text}");
    assert!(text.contains("A rate below 1 in 1,000,000,000 has no practical use"), "{text}");
    assert!(!text.contains("cannot be built"), "{text}");
    // An exact structure that fits and can be built is recommended; one without a file is named.
    let text = answer("plan --items 1e6 --memory 100MiB --range 0..2000000");
    assert!(text.starts_with("Plan for 1,000,000 items in 100 MiB: no false positives\n"), "{text}");
    let plan = json("plan --items 1e6 --memory 100MiB --json");
    assert_eq!(plan["recommended_without_file"], "hash-set");
    assert!(plan["build"].is_string() && plan["target_fpr"].as_f64().unwrap() > 0.0, "{plan}");

    // Fingerprints have their own rate, and no file.
    let text = answer("plan --items 1e6 --memory 16MiB --static").replace("\n  ", " ");
    let array = "without a file: Use a sorted array of 64-bit fingerprints: 7.63 MiB for 1,000,000 items";
    assert!(text.contains(array) && text.contains("1 in 18,400,000,000,000"), "{text}");
    // If only a few bytes are missing, sizes are shown in bytes.
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
        "use mayhap::BlockedBloom;\nlet mut seen = BlockedBloom::new(10_000_000, 0.001)?;"
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
    // All three: nothing fits, which is an answer, too.
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
    assert!(rust("--untrusted").contains(".keyed()?"));
    assert!(rust("--threads").contains("AtomicBlockedBloom"));
    let asked = json("plan --items 1e6 --fpr 1% --lookups 5k --json");
    assert!(asked["notes"][0].as_str().unwrap().contains("up to 50 false positives a day"), "{asked}");
    let fixed = json("plan --items 1e6 --fpr 1% --static --json");
    let array =
        fixed["prices"].as_array().unwrap().iter().find(|price| price["name"] == "sorted-array").unwrap();
    assert_eq!((&array["suits"], &array["why_not"][0]), (&false.into(), &"cannot be saved to a file".into()));
}

#[test]
fn invalid_arguments_are_one_line_and_exit_2() {
    for rate in ["0", "1", "1.5", "100%", "0/5"] {
        let said = error_line(&["plan", "--items", "1000", "--fpr", rate]);
        assert!(
            said.contains(&format!(
                "'{rate}' for '--fpr <RATE>': a rate must be greater than 0 and less than 1"
            )),
            "{said}"
        );
    }
    for (rate, why) in [("nan", "not a number"), ("inf", "not a number"), ("-1", "negative"), ("", "empty")] {
        let said = error_line(&["plan", "--items", "1000", "--fpr", rate]);
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
        let said = error_line(&["plan", "--items", items, "--fpr", "0.01"]);
        assert!(said.contains(&format!("'{items}' for '--items <N>'")) || items.is_empty(), "{said}");
        assert!(said.contains(why), "{said}");
    }
    // Valid numbers that no filter supports.
    let capacity = error_line(&["plan", "--items", "0", "--fpr", "0.01"]);
    assert!(capacity.contains("--items: capacity must be between 1 and 4398046511104, got 0"), "{capacity}");
    assert!(error_line(&["plan", "--items", "1e15", "--fpr", "0.01"]).contains("got 1000000000000000"));
    assert!(error_line(&["plan", "--items", "10", "--fpr", "1e-20"]).contains("1e-20 is below 1e-15"));
    // Text that begins with a hyphen is a value here, and rejected as one.
    let negative =
        |flag: &str, value: &str| error_line(&["plan", "--items", "9", "--fpr", "1%", flag, value]);
    for (flag, value) in
        [("--range", "-5..5"), ("--memory", "-1MiB"), ("--lookups", "-1k"), ("--item-bytes", "-1k")]
    {
        let said = negative(flag, value);
        assert!(said.contains(flag) && said.contains("must not be negative"), "{said}");
    }
    let said = error_line(&["plan", "--items", "9", "--fpr", "-1%"]);
    assert!(said.contains("'-1%' for '--fpr <RATE>': must not be negative"), "{said}");
    assert!(negative("--lookups", "0").contains("--lookups: a number of lookups must be at least 1, got 0"));
    assert!(negative("--memory", "0").contains("--memory: a memory limit"));
    assert!(negative("--deletes", "0").contains("--deletes: a number of removals"));
    assert!(negative("--item-bytes", "0").contains("--item-bytes: items must have"));
    assert!(negative("--memory", "64mb").contains("did you mean MB (a million bytes) or MiB"));
    assert!(error_line(&["plan", "--items", "10m", "--fpr", "1%"]).contains("did you mean M?"));
    assert!(
        error_line(&["plan", "--items", "1e", "--fpr", "1%"]).contains("not a number; write for example 1e9")
    );
    // Combinations.
    assert!(error_line(&["plan", "--items", "1e9"]).contains("give two of --items, --fpr and --memory"));
    assert!(error_line(&["plan"]).contains("give two of"));
    assert!(error_line(&["plan", "--items", "1e9", "--memory", "1MiB"]).contains("1.00 MiB are too few"));
    assert!(
        error_line(&["plan", "--items", "9", "--fpr", "0.1", "--memory", "0"]).contains("at least 1 byte")
    );
    assert!(
        error_line(&["plan", "--items", "9", "--fpr", "0.1", "--range", "9..1"]).contains("9..1 is empty")
    );
    assert!(
        error_line(&["plan", "--items", "9", "--fpr", "0.1", "--range", "1..5"])
            .contains("9 items cannot all be different")
    );
    assert!(error_line(&["plan", "--items", "9", "--fpr", "0.1", "--range", "5"]).contains("LOW..HIGH"));
    assert!(
        error_line(&["plan", "--items", "9", "--fpr", "0.1", "--static", "--grows"])
            .contains("cannot be used with")
    );
    // Typing errors.
    let typo = error_line(&["plan", "--itms", "9"]);
    assert!(
        typo.contains("'--itms'") && typo.contains("tip: a similar argument exists: '--items'"),
        "{typo}"
    );
    assert!(error_line(&["plna"]).contains("unrecognized subcommand 'plna'"));
    assert!(error_line(&[]).contains("mayhap plan --items 1e9 --fpr 1%"));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    for arguments in
        ["plan --items 1e9 --fpr 1%", "plan --items 1e9 --fpr 1% --json", "plan --help", "--help"]
    {
        let mut child = mayhap(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The reader is gone before the first byte.
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{arguments}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    for arguments in ["plan --items 1e9 --fpr 1%", "plan --items 1e9 --fpr 1% --json"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = mayhap(arguments).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with("mayhap: cannot write the output: no space left"), "{said}");
    }
}

#[test]
fn help_and_version_are_printed() {
    let help = answer("plan --help");
    for taught in ["--items <N>", "--fpr <RATE>", "--range <LOW..HIGH>", "1-in-1M", "Examples:", "64MiB"] {
        assert!(help.contains(taught), "{taught} is not in\n{help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    assert!(answer("--help").contains("plan"));
    assert_eq!(answer("--version"), format!("mayhap {}\n", env!("CARGO_PKG_VERSION")));
    // Every example of the help works.
    let examples = help.lines().filter_map(|line| line.trim().strip_prefix("mayhap plan"));
    let examples: Vec<&str> = examples.map(|line| line.split("   ").next().unwrap()).collect();
    assert_eq!(examples.len(), 12);
    let folder = folder("help");
    for example in examples {
        let output = mayhap(&format!("plan{example}")).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(folder.join("plan.svg").exists(), "one of them draws");
}

/// The statements on the pages about phone numbers and coupons.
#[test]
fn plan_for_a_billion_removable_items() {
    let text = answer("plan --items 1e9 --fpr 0.01 --deletes");
    assert!(
        text.starts_with("Plan for 1,000,000,000 items at an FPR of 1%\n(items are removed)\n"),
        "{text}"
    );
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Use cuckoo: 1.22 GiB for 1,000,000,000 items (10.5 bits each)"), "{text}");
    assert!(said.contains("Next is quotient: 8% less memory (1.12 GiB)"), "{text}");
    // The cost of removals, and of the alternatives.
    assert!(
        said.contains(
            "- Removing costs no memory: without removals blocked-bloom split would be enough, 1.23 GiB"
        ),
        "{text}"
    );
    assert!(text.contains("counting-bloom        38.4  4.47 GiB"), "{text}");
    assert!(said.contains("A no stays certain if only members are removed."), "{text}");
    for line in [
        "\n  mayhap build seen.mayhap items.txt --kind cuckoo --items 1000000000 --fpr 0.01\n",
        "\n  let mut seen = Cuckoo::new(1_000_000_000, 0.01)?;\n",
        "\nWith `mayhap serve`\n  MF.RESERVE seen KIND cuckoo CAPACITY 1000000000 FPR 0.01\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    assert!(said.contains("# None: RedisBloom's cuckoo filter has 8-bit fingerprints"), "{text}");
}

#[test]
fn plan_for_a_billion_phone_numbers() {
    for width in ["80", "110"] {
        let plan = "plan --items 1e9 --fpr 1% --range 13000000000..19999999999";
        let text = String::from_utf8(mayhap(plan).env("COLUMNS", width).output().unwrap().stdout).unwrap();
        let said = text.replace('\n', " ");
        assert!(
            said.contains("one bit for each of the 7,000,000,000 possible numbers, 834 MiB, never wrong")
        );
        assert!(
            said.contains("would take 1.10 GiB and have false positives for 1% of the non-members."),
            "{text}"
        );
        let line = "mayhap build seen.mayhap items.txt --kind bitmap --range 13000000000..19999999999";
        assert!(text.contains(&format!("\nIn the shell\n  {line}\n")), "{text}");
        // Redis has bitmaps of its own.
        assert!(!text.contains("RedisBloom"), "{text}");
        assert!(text.contains("  MF.RESERVE seen KIND bitmap RANGE 13000000000 19999999999\n"), "{text}");
    }
}

#[test]
fn every_row_has_the_lines_that_create_it() {
    let plan = json("plan --items 1e6 --fpr 0.1% --range 0..1e7 --json");
    assert_eq!(plan["recommended"], "bitmap");
    assert_eq!(plan["build"], "mayhap build seen.mayhap items.txt --kind bitmap --range 0..10000000");
    assert_eq!(plan["bf_reserve"], Value::Null);
    assert_eq!(plan["mf_reserve"], "MF.RESERVE seen KIND bitmap RANGE 0 10000000");
    for price in plan["prices"].as_array().unwrap() {
        let name = price["name"].as_str().unwrap();
        let of_ours = !price["kind"].is_null();
        assert_eq!(price["build"].is_string(), of_ours, "{price}");
        assert!(price["rust"].is_string(), "{price}");
        if let Some(line) = price["build"].as_str() {
            let kind = line.split("--kind ").nth(1).unwrap().split(' ').next().unwrap();
            assert_eq!(kind, name.replace(' ', "-"));
        }
        // mayhap's server supports every kind.
        assert_eq!(price["mf_reserve"].is_string(), of_ours, "{price}");
    }
    assert_eq!(row(&plan, "bloom")["bf_reserve"], "BF.RESERVE seen 0.001 1000000 NONSCALING");
    assert_eq!(row(&plan, "scalable-bloom")["bf_reserve"], "BF.RESERVE seen 0.001 1000000 EXPANSION 2");
    assert_eq!(row(&plan, "cuckoo")["cf_reserve"], "CF.RESERVE seen 33554432 BUCKETSIZE 4 MAXITERATIONS 500");
    assert_eq!(row(&plan, "cuckoo semi-sorted")["cf_reserve"], Value::Null);
    assert_eq!(row(&plan, "quotient")["bf_reserve"], Value::Null);
    let dual = json("plan --items 1e6 --fpr 1% --deletes 5000 --json");
    let line = row(&dual, "dual-bloom")["build"].as_str().unwrap().to_owned();
    assert!(line.ends_with(" --kind dual-bloom --items 1000000 --fpr 0.01 --deletes 5000"), "{line}");
    // Without integers there is no bitmap, and no line that creates one.
    let bitmap = row(&dual, "bitmap");
    assert_eq!((&bitmap["build"], &bitmap["rust"]), (&Value::Null, &Value::Null));
}

#[test]
fn redis_lines_name_a_kind_that_redis_has() {
    let text = answer("plan --items 1e6 --fpr 1%");
    assert!(
        text.contains(
            "\nIn Redis, with RedisBloom\n  BF.RESERVE seen 0.01 1000000 NONSCALING\n  # It has no blocked-bloom split; \
             this is a bloom. 1.14 MiB, FPR 1"
        ),
        "{text}"
    );
    let text = answer("plan --items 1e6 --fpr 1% --untrusted");
    assert!(text.contains("  # None: RedisBloom's hash has no key"), "{text}");
    assert!(text.contains("--fpr 0.01 --untrusted\n"), "{text}");
    let text = answer("plan --items 1e5 --fpr 3% --deletes");
    assert!(text.contains("\n  CF.RESERVE seen 131072 BUCKETSIZE 4 MAXITERATIONS 500\n"), "{text}");
    let text = answer("plan --items 2e9 --fpr 1%");
    assert!(text.replace('\n', " ").contains("at most 1,073,741,824 items, got 2,000,000,000."), "{text}");
    // A structure without a file is not recommended, but named.
    let text = answer("plan --items 1000 --fpr 1%");
    assert!(text.contains("\n- In a program of your own, without a file: Use a hash set: "), "{text}");
}

/// The textbook's numbers, computed by hand: `m = -n k / ln(1 - p^(1/k))`.
#[test]
fn probes_are_the_fourth_number() {
    let bloom = |plan: &Value| row(plan, "bloom").clone();
    let near = |found: f64, hand: f64| (found / hand - 1.0).abs() < 0.003;
    // p^(1/3) = 0.215443, -ln(1 - that) = 0.242636: 12.3642 bits per item.
    let bytes = json("plan --items 1e6 --fpr 1% --probes 3 --json");
    assert_eq!((&bytes["recommended"], &bytes["probes"]), (&"bloom".into(), &3.into()));
    assert!(near(bloom(&bytes)["bits_per_item"].as_f64().unwrap(), 12.3642), "{}", bloom(&bytes));
    assert_eq!(bloom(&bytes)["probes"], 3);
    assert!(bytes["rust"].as_str().unwrap().contains("BloomShape::for_probes(1_000_000, 0.01, 3)?"));
    assert_eq!((&bytes["build"], &bytes["bf_reserve"]), (&Value::Null, &Value::Null));
    // (1 - e^(-3e6 / 8388608))^3 = 0.027181
    let rate = json("plan --items 1e6 --memory 1MiB --probes 3 --json");
    assert_eq!(rate["solved_for"], "fpr");
    assert!(near(bloom(&rate)["expected_fpr"].as_f64().unwrap(), 0.027_181), "{}", bloom(&rate));
    // 8388608 / 12.3642 = 678 459
    let items = json("plan --fpr 1% --memory 1MiB --probes 3 --json");
    assert_eq!(items["solved_for"], "items");
    assert!(near(items["items"].as_f64().unwrap(), 678_459.0), "{}", items["items"]);
    // Seven probes at their optimum: 7 / ln 2 bits per item, and a rate of 2^-7.
    let best = json("plan --items 1e6 --probes 7 --json");
    assert_eq!((&best["target_fpr"], &best["solved_for"]), (&0.007_812_5.into(), &"memory".into()));
    assert!(near(bloom(&best)["bits_per_item"].as_f64().unwrap(), 10.0989), "{}", bloom(&best));
    assert!(best["build"].is_string(), "seven probes are what the program uses anyway");
    let best = json("plan --memory 1MiB --probes 7 --json");
    assert_eq!((&best["target_fpr"], &best["solved_for"]), (&0.007_812_5.into(), &"items".into()));
    assert!(near(best["items"].as_f64().unwrap(), 830_650.0), "{}", best["items"]);
    // All four: does it fit?
    let fits = |memory: &str| {
        json(&format!("plan --items 1e6 --fpr 1% --probes 3 --memory {memory} --json"))["recommended"].clone()
    };
    assert_eq!((fits("2MiB"), fits("1MiB")), ("bloom".into(), Value::Null));
    // A structure without probes says so; its price is there to compare.
    let why_not = &row(&bytes, "quotient")["why_not"];
    assert_eq!(why_not[0], "number of probes cannot be chosen");
    let removed = json("plan --items 1e6 --fpr 1% --probes 3 --deletes --json");
    assert_eq!(removed["recommended"], "counting-bloom");
    assert!(removed["rust"].as_str().unwrap().contains("CountingShape::for_probes(1_000_000, 0.01, 3)?"));
    let text = answer("plan --items 1e6 --fpr 1% --probes 3");
    assert!(text.starts_with("Plan for 1,000,000 items at an FPR of 1% with 3 probes\n"), "{text}");
    assert!(
        text.contains(
            "- Probes: 7 is the best number at this rate and takes 1.14 MiB; 3 cost 29% more memory."
        ),
        "{text}"
    );
    assert!(text.contains("  # None: RedisBloom uses 7 probes at this rate, not 3.\n"), "{text}");
    assert!(text.contains("  # None: `mayhap build` uses the optimal number of probes.\n"), "{text}");
}

#[test]
fn too_few_or_too_many_probes_are_rejected() {
    let said = error_line(&["plan", "--fpr", "1%", "--probes", "7"]);
    assert!(said.contains("give --items or --memory, too"), "{said}");
    assert!(error_line(&["plan", "--probes", "7"]).contains("--probes alone determines only the rate"));
    for probes in ["0", "65"] {
        for rest in [["--items", "9"], ["--memory", "1MiB"]] {
            let said = error_line(&["plan", "--probes", probes, rest[0], rest[1]]);
            assert!(said.contains("--probes: ") && said.contains(&format!("got {probes}")), "{said}");
        }
    }
    let said = error_line(&["plan", "--probes", "50", "--items", "9"]);
    assert!(said.contains("50 is not optimal at any rate (at most 49 is)"), "{said}");
    assert!(error_line(&["plan", "--probes", "-3", "--items", "9"]).contains("must not be negative"));
    assert!(error_line(&["plan", "--probes", "5e9", "--items", "9"]).contains("at most 4294967295"));
}

#[test]
fn every_kind_has_its_own_number_of_items() {
    let plan = json("plan --fpr 1% --memory 64MiB --json");
    let limit = 64 << 20;
    for price in plan["prices"].as_array().unwrap().iter().filter(|price| price["memory_bytes"].is_u64()) {
        let (bytes, items) = (price["memory_bytes"].as_u64().unwrap(), price["items"].as_u64().unwrap());
        assert!(bytes <= limit, "{price}");
        // A growable filter is sized for its final capacity, a hash set by powers of two.
        let steps = ["growable-cuckoo", "hash-set"].contains(&price["name"].as_str().unwrap());
        assert!(steps || bytes > limit / 1000 * 998, "{price}");
        assert!(
            (items as f64 * price["bits_per_item"].as_f64().unwrap() / 8.0 / bytes as f64 - 1.0).abs() < 1e-9
        );
    }
    assert!(row(&plan, "ribbon")["items"].as_u64() > row(&plan, "bloom")["items"].as_u64());
    assert_eq!(plan["items"], plan["prices"][0]["items"]);
    // A bitmap holds its whole range, unlike a filter of the same size.
    let plan = json("plan --fpr 1% --memory 1GiB --range 0..999999999 --json");
    assert_eq!((&plan["recommended"], &plan["items"]), (&"bitmap".into(), &1_000_000_000.into()));
    let text = answer("plan --fpr 1% --memory 64MiB");
    assert!(
        text.contains("  kind                  item         items   lookup  bound  can    verdict\n"),
        "{text}"
    );
}

/// A minimal XML check: tags nest, attributes are quoted, no bare characters.
fn elements(svg: &str) -> Vec<&str> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        let entities = ["amp;", "lt;", "gt;", "quot;", "apos;"];
        let is_entity = |rest: &str| entities.iter().any(|entity| rest.starts_with(entity));
        assert!(!text.contains('>') && text.split('&').skip(1).all(is_entity), "{piece}");
        assert!(tag.matches('"').count().is_multiple_of(2), "{tag}");
        let name = tag.split([' ', '/']).find(|word| !word.is_empty()).expect("a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        all.push(tag);
    }
    assert!(open.is_empty(), "{open:?} are never closed");
    all
}

#[test]
fn the_plot_has_a_line_for_every_kind() {
    let folder = folder("lines");
    for (name, flags) in [
        ("plain", "--items 1e9 --fpr 1%"),
        ("rate", "--items 50M --memory 64MiB --threads"),
        ("items", "--fpr 1e-9 --memory 64MiB --deletes"),
        ("range", "--items 1e6 --fpr 1% --range 0..5e6"),
        ("one", "--items 1 --fpr 99% --grows"),
        ("probes", "--items 1e6 --fpr 1% --probes 3"),
        ("nothing", "--items 1e9 --fpr 1% --memory 1MiB"),
    ] {
        let path = folder.join(format!("{name}.svg"));
        let plan = json(&format!("plan {flags} --json --plot {}", path.display()));
        let svg = std::fs::read_to_string(&path).unwrap();
        let tags = elements(&svg);
        assert!(tags[0].starts_with("svg ") && tags[0].contains("width=\"1200\""), "{}", tags[0]);
        for price in plan["prices"].as_array().unwrap() {
            let drawn = !price["kind"].is_null() && !price["memory_bytes"].is_null();
            let too_large = price["why_not"].to_string().contains("limit is");
            let kind = price["name"].as_str().unwrap().replace(' ', "-");
            let with_id = |chart: &str| {
                let id = format!("id=\"{chart}-{kind}\"");
                tags.iter().filter(|tag| tag.contains(&id)).copied().collect::<Vec<_>>()
            };
            let (fill, size) = (with_id("fill"), with_id("size"));
            if kind == "bitmap" {
                assert!(fill.is_empty() && size.len() == usize::from(drawn && !too_large), "{name}: {kind}");
                continue;
            }
            assert_eq!(size.len(), usize::from(drawn), "{name}: {kind}");
            assert!(size.iter().all(|tag| tag.starts_with("polyline ")));
            let has_rate = drawn && !(plan["solved_for"] == "fpr" && too_large);
            assert_eq!(fill.len(), usize::from(has_rate), "{name}: {kind}");
        }
        // All encoded colours are replaced.
        assert!(!svg.contains("#FA0"), "{name}");
        // Everything is inside the picture.
        for tag in tags.iter().filter(|tag| tag.starts_with("text ")) {
            let number = |name: &str| {
                let value = tag.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap();
                value.parse::<f64>().unwrap()
            };
            assert!((0.0..4800.0).contains(&number("x")) && (0.0..4840.0).contains(&number("y")), "{tag}");
        }
    }
}

/// The lines show the library's numbers.
#[test]
fn the_lines_of_the_plot_follow_the_models() {
    let path = folder("models").join("plan.svg");
    answer(&format!("plan --items 1e6 --fpr 1% --plot {}", path.display()));
    let svg = std::fs::read_to_string(&path).unwrap();
    let points = |id: &str| -> Vec<(f64, f64)> {
        let tag = elements(&svg).into_iter().find(|tag| tag.contains(&format!("id=\"{id}\""))).unwrap();
        let points = tag.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        let pair = |pair: &str| pair.split_once(',').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()));
        points.split_whitespace().filter_map(pair).collect()
    };
    // Two points of the classic filter give the scale; all others must lie where the model puts them.
    let bloom = mayhap::BloomShape::for_capacity(1_000_000, 0.01).unwrap();
    let line = points("fill-bloom");
    let (first, last) = (line[0], line[line.len() - 1]);
    let percent = |index: usize| 300 - (line.len() - 1 - index) as u64;
    let height = |index: usize| bloom.expected_fpr(percent(index) * 10_000).log10();
    let units = (last.1 - first.1) / (height(line.len() - 1) - height(0));
    for (index, point) in line.iter().enumerate() {
        let expected = first.1 + (height(index) - height(0)) * units;
        assert!((point.1 - expected).abs() < 2.0, "{point:?} at {} %", percent(index));
    }
    // It ends at three times the capacity; the line of a cuckoo filter ends where it is full.
    let cuckoo = points("fill-cuckoo");
    let width = (last.0 - first.0) / (percent(line.len() - 1) - percent(0)) as f64;
    let full = last.0 - 200.0 * width;
    assert!((cuckoo[cuckoo.len() - 1].0 - full).abs() < 2.0, "{:?}", cuckoo.last());
}

#[test]
fn a_plot_is_written_completely_or_not_at_all() {
    let folder = folder("whole");
    let plot = |path: &Path| {
        let path = path.to_str().unwrap();
        error_line(&["plan", "--items", "1e6", "--fpr", "1%", "--plot", path])
    };
    let missing = folder.join("no/such/plan.svg");
    let said = plot(&missing);
    assert!(said.contains("cannot write") && said.contains(missing.to_str().unwrap()), "{said}");
    assert!(said.ends_with(": no such file or directory\n"), "{said}");
    let other = folder.join("plan.png");
    assert!(plot(&other).contains("only SVG is supported, so the name must end in .svg"));
    assert!(plot(Path::new("/dev/stdout")).contains("must end in .svg"));
    let taken = folder.join("taken.svg");
    std::fs::create_dir(&taken).unwrap();
    assert!(plot(&taken).contains(taken.to_str().unwrap()), "{}", plot(&taken));
    // No temporary file remains, after these runs or after one that replaces a plot.
    let path = folder.join("plan.svg");
    std::fs::write(&path, "old").unwrap();
    answer(&format!("plan --items 1e6 --fpr 1% --plot {}", path.display()));
    assert!(std::fs::read_to_string(&path).unwrap().ends_with("</svg>\n"));
    let mut left: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["plan.svg", "taken.svg"]);
    // Readable by others, like every file.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        let plain = folder.join("plain");
        std::fs::write(&plain, "").unwrap();
        assert_eq!(mode, std::fs::metadata(&plain).unwrap().permissions().mode());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_plot_on_a_full_disk_is_an_error() {
    let path = folder("full").join("plan.svg");
    // To a writer, a limit on file sizes looks like a full disk.
    let script = format!(
        "ulimit -f 8; exec {} plan --items 1e6 --fpr 1% --plot {}",
        env!("CARGO_BIN_EXE_mayhap"),
        path.display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("mayhap: cannot write ") && said.contains("file too large"), "{said}");
    assert!(output.stdout.is_empty());
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 0, "a temporary file remains");
}

/// `mayhap build` accepts every line that the plan prints, and builds the kind it was printed for.
#[test]
fn every_build_line_builds() {
    let folder = folder("build");
    let numbers: String = (0..2_000).map(|number| format!("{number}\n")).collect();
    std::fs::write(folder.join("items.txt"), numbers).unwrap();
    let plan = json("plan --items 2000 --fpr 0.1% --deletes 300 --range 0..9999 --untrusted --json");
    let mut built = 0;
    for price in plan["prices"].as_array().unwrap() {
        let Some(line) = price["build"].as_str() else { continue };
        let arguments = line.strip_prefix("mayhap ").expect(line);
        let _ = std::fs::remove_file(folder.join("seen.mayhap"));
        let output = mayhap(arguments).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        let path = folder.join("seen.mayhap");
        assert_eq!(mayhap::file::kind(&path).unwrap().name(), price["kind"], "{line}");
        let filter = mayhap::file::open::<mayhap::Filter>(&path).unwrap();
        // The size of a static kind follows from its items, and that of a bitmap from the range.
        // Only the number of rows of a ribbon that find no place depends on the key, which is new every time.
        if filter.kind() != mayhap::Kind::Ribbon {
            assert_eq!(filter.memory_bytes(), price["memory_bytes"].as_u64().unwrap(), "{line}");
        }
        built += 1;
    }
    assert_eq!(built, 18, "all kinds except those without files");
}

#[test]
fn the_recommendation_can_be_built_and_is_repeated_at_the_end() {
    let asked = [
        "--items 100 --fpr 1%",
        "--items 1e6 --fpr 1%",
        "--items 1e6 --memory 100MiB",
        "--items 1e6 --fpr 1% --static",
        "--items 50 --fpr 1% --deletes --grows",
        "--fpr 1% --memory 1MiB",
        "--items 1e6 --fpr 1e-9 --static",
        "--items 1000 --fpr 1% --range 0..5000",
        "--items 1e5 --fpr 1e-6 --threads",
    ];
    for needs in asked {
        let plan = json(&format!("plan {needs} --json"));
        let build = plan["build"].as_str().unwrap_or_else(|| panic!("{needs}: {plan}"));
        let text = answer(&format!("plan {needs}"));
        let (_, last) = text.split_once("\nIn short\n").unwrap_or_else(|| panic!("{needs}: {text}"));
        assert!(last.starts_with("Use ") && last.ends_with(&format!("\n  {build}\n")), "{last}");
        assert!(!text.contains("cannot be stored in a file"), "{text}");
    }
    // The better structure without a file is named, too.
    let few = json("plan --items 100 --fpr 1% --json");
    assert_eq!(few["recommended_without_file"], "hash-set");
    let text = answer("plan --items 100 --fpr 1%");
    assert!(text.contains("without a file: Use a hash set"), "{text}");
}

#[test]
fn one_kind_is_priced_alone() {
    let all = json("plan --items 1e6 --fpr 1% --json");
    for kind in ["cuckoo", "blocked-bloom", "ribbon", "window", "growing"] {
        let plan = json(&format!("plan --items 1e6 --fpr 1% --kind {kind} --json"));
        let [price] = &plan["prices"].as_array().unwrap()[..] else { panic!("{plan}") };
        assert!(price["kind"] == kind && price["suits"] == true, "{plan}");
        assert_eq!(plan["recommended"], price["name"]);
        let same = all["prices"].as_array().unwrap().iter().find(|other| other["name"] == price["name"]);
        assert_eq!(same.unwrap()["memory_bytes"], price["memory_bytes"], "{kind}");
    }
    let text = answer("plan --items 1e6 --fpr 1% --kind bloom --deletes");
    assert!(text.contains("bloom does not meet these needs: cannot delete"), "{text}");
    assert!(
        error_line(&["plan", "--items", "1e6", "--fpr", "1%", "--kind", "nonsense"]).contains("unknown kind")
    );
}
