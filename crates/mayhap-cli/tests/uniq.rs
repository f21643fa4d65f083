//! `mayhap uniq` as users run it: its output, its report, its state, and its errors.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mayhap::{Filter, Kind, file};
use serde_json::Value;

fn mayhap() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayhap"));
    command.arg("uniq");
    command
}

/// Runs `mayhap uniq` with these arguments and this input.
fn uniq(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = spawn(arguments);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The program may end without reading everything.
    let writer = thread::spawn(move || stdin.write_all(&input).is_ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn spawn(arguments: &[&str]) -> Child {
    mayhap()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Its output, if it succeeded.
fn lines(arguments: &[&str], input: &str) -> String {
    let output = uniq(arguments, input.as_bytes());
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// Its one-line error.
fn error_line(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let said = text(&output.stderr).strip_prefix("mayhap: ").unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said.trim_end()
}

/// A new directory.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("uniq-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

/// Three of every ten lines repeat an earlier one; early lines are repeated more often.
fn urls(count: u64) -> Vec<u8> {
    let (mut out, mut distinct, mut state) = (Vec::new(), 0_u64, 1_u64);
    let mut write = |number: u64| writeln!(out, "https://example.org/{}/{number}", number % 97).unwrap();
    for line in 0..count {
        if line % 10 > 6 && distinct > 0 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let part = (state >> 11) as f64 / (1_u64 << 53) as f64;
            write((distinct as f64 * part * part * part) as u64);
        } else {
            write(distinct);
            distinct += 1;
        }
    }
    out
}

/// The first of each line, in order: the output of `awk '!seen[$0]++'`.
fn first_of_each(input: &[u8]) -> Vec<u8> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for line in input.split_inclusive(|&byte| byte == b'\n') {
        if seen.insert(line) {
            out.extend_from_slice(line);
        }
    }
    out
}

fn distinct(bytes: &[u8]) -> BTreeSet<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').collect()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stderr).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

#[test]
fn the_first_of_each_line_is_kept_in_order() {
    assert_eq!(lines(&[], "b\na\nb\nc\na\n"), "b\na\nc\n");
    assert_eq!(lines(&[], ""), "");
    assert_eq!(lines(&[], "\n\na\n\n"), "\na\n");
    // A missing line ending is added and makes no difference; a CR does.
    assert_eq!(lines(&[], "a\nb\na"), "a\nb\n");
    assert_eq!(lines(&[], "a\r\na\nb"), "a\r\na\nb\n");
    assert_eq!(lines(&["--crlf"], "a\r\na\nb"), "a\r\nb\r\n");
    assert_eq!(lines(&["-0"], "a\nb\0c\0a\nb\0c\0"), "a\nb\0c\0");
    let output = uniq(&[], b"\xff\xfe\n\xff\n\xff\xfe\n");
    assert_eq!(output.stdout, b"\xff\xfe\n\xff\n");
}

#[test]
fn many_lines_match_a_simple_set() {
    let input = urls(300_000);
    let expected = first_of_each(&input);
    let output = uniq(&["--json"], &input);
    assert!(output.stdout == expected);
    let report = report(&output);
    assert_eq!((&report["lines"], &report["kept"]), (&300_000.into(), &210_000.into()));
    assert_eq!(report["remembered"]["stages"], serde_json::json!([{"bits": 64, "from_line": 1}]));
    let expected = report["wrongly_dropped"]["expected"].as_f64().unwrap();
    let square = 210_000_f64.powi(2) / 2_f64.powi(65);
    assert!((0.9..1.1).contains(&(expected / square)), "{expected} for {square}");
    assert_eq!(report["wrongly_dropped"]["at_most"], 0);

    // Several files are one stream.
    let folder = folder("files");
    let (one, two) = input.split_at(input.iter().position(|&byte| byte == b'\n').unwrap() + 1);
    fs::write(folder.join("one"), one).unwrap();
    fs::write(folder.join("two"), two).unwrap();
    let output = mayhap().args([path(&folder, "one"), path(&folder, "two")]).output().unwrap();
    assert!(output.stdout == first_of_each(&input));
    let said = text(&output.stderr);
    assert!(said.starts_with("mayhap: read 300,000 lines, kept 210,000, dropped 90,000\n"), "{said}");
    assert!(said.contains("fingerprints of 64 bits, in "), "{said}");
    assert!(said.contains("dropped by mistake: 1 in 837,000,000"), "{said}");
    assert!(uniq(&["-q"], b"a\n").stderr.is_empty());
}

/// With little memory, the losses are within the reported bound, and no kept line is written twice.
#[test]
fn losses_stay_within_the_reported_bound() {
    let input = urls(550_000);
    let exact = distinct(&input);
    for (arguments, bits) in [
        (&["--memory", "4MiB"][..], &[64][..]),
        (&["--memory", "2MiB"], &[64, 32]),
        (&["--memory", "1MiB", "--fpr", "1e-3"], &[64, 32, 16]),
    ] {
        let output = uniq(&[arguments, &["--json"]].concat(), &input);
        let report = report(&output);
        let stages = report["remembered"]["stages"].as_array().unwrap();
        assert_eq!(stages.iter().map(|stage| stage["bits"].as_u64().unwrap()).collect::<Vec<_>>(), bits);
        assert!(report["remembered"]["full_from_line"].is_null());
        let kept = distinct(&output.stdout);
        assert_eq!(report["kept"], kept.len());
        assert_eq!(
            output.stdout.split_inclusive(|&byte| byte == b'\n').count(),
            kept.len(),
            "no line was written twice"
        );
        assert!(kept.is_subset(&exact));
        let lost = (exact.len() - kept.len()) as u64;
        let most = report["wrongly_dropped"]["at_most"].as_u64().unwrap();
        let expected = report["wrongly_dropped"]["expected"].as_f64().unwrap();
        assert!(lost <= most, "{arguments:?}: {lost} lost, {expected} expected, {most} at the most");
        // The expected number is accurate, not merely large: five standard deviations.
        assert!(
            expected - 5.0 * expected.sqrt() <= lost as f64,
            "{arguments:?}: {lost} lost, {expected} expected"
        );
        assert!((most as f64) < expected * 1.05 + 5.0 * expected.sqrt() + 3.0, "{most}, {expected}");
        match bits.len() {
            3 => assert!(expected > 20.0, "{expected}"),
            _ => assert!(expected < 0.1, "{expected}"),
        }
        // The lines until the first shortening match an exact run.
        if let Some(cut) = stages.get(1) {
            let before = input
                .split_inclusive(|&byte| byte == b'\n')
                .take(cut["from_line"].as_u64().unwrap() as usize - 1);
            let before = first_of_each(&before.collect::<Vec<_>>().concat());
            assert!(output.stdout.starts_with(&before));
        }
        let limit: u64 = if arguments[1] == "1MiB" { 1 << 20 } else { 4 << 20 };
        assert!(report["remembered"]["memory_bytes"].as_u64().unwrap() <= limit);
    }
}

/// The commands of the help text.
#[test]
fn suspects_make_the_result_exact() {
    let folder = folder("suspects");
    let input = urls(550_000);
    fs::write(folder.join("big.txt"), &input).unwrap();
    let script = format!(
        "{} uniq -q --memory 1MiB --fpr 1e-3 --suspects doubtful.txt big.txt > out.txt
         cp out.txt before.txt
         LC_ALL=C comm -13 <(LC_ALL=C sort -u out.txt) <(LC_ALL=C sort -u doubtful.txt) >> out.txt",
        env!("CARGO_BIN_EXE_mayhap")
    );
    let done = Command::new("bash").args(["-euc", &script]).current_dir(&folder).output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{}", text(&done.stderr));
    let (out, before) =
        (fs::read(folder.join("out.txt")).unwrap(), fs::read(folder.join("before.txt")).unwrap());
    assert!(distinct(&before).len() < distinct(&input).len(), "something was lost");
    assert_eq!(distinct(&out), distinct(&input));
    assert_eq!(out.split_inclusive(|&byte| byte == b'\n').count(), distinct(&input).len());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 4, "nothing is left aside");
    // While fingerprints have 64 bits, there are no suspects.
    let suspects = path(&folder, "none");
    lines(&["--suspects", &suspects], "a\na\na\n");
    assert_eq!(fs::read(&suspects).unwrap(), b"");
    let output = uniq(&["--suspects", &path(&folder, "no/such/folder")], b"a\n");
    assert!(
        error_line(&output).contains("no/such/folder: no such file or directory"),
        "{}",
        error_line(&output)
    );
}

#[test]
fn lines_beyond_the_memory_are_kept_with_a_warning() {
    let input = urls(30_000);
    let output = uniq(&["--memory", "64KiB", "--fpr", "1e-6"], &input);
    assert!(output.status.success());
    // Nothing is lost; some lines are written again.
    assert_eq!(distinct(&output.stdout), distinct(&input));
    assert!(output.stdout.len() > first_of_each(&input).len() && output.stdout.len() < input.len());
    let said = text(&output.stderr);
    assert_eq!(said.matches("warning: --memory 64.0 KiB is used up by ").count(), 1, "{said}");
    assert!(said.contains("raise --memory or --fpr"), "{said}");
    assert!(said.contains(" were not remembered\n"), "{said}");
    // With a higher rate it lasts longer, and with more memory to the end.
    let further = uniq(&["--memory", "64KiB", "--fpr", "0.1%", "--json"], &input);
    assert!(further.stdout.len() < output.stdout.len());
    assert!(!text(&further.stderr).contains("or --fpr"));
    let output = uniq(&["--memory", "64KiB", "--strict", "-q"], &input);
    let said = error_line(&output);
    assert!(
        said.starts_with("--memory 64.0 KiB is used up by 13,") && said.ends_with("raise --memory or --fpr"),
        "{said}"
    );
    assert!(first_of_each(&input).starts_with(&output.stdout) && !output.stdout.is_empty());
    assert!(uniq(&["--memory", "64KiB", "-q"], &input).stderr.is_empty());
    let output = uniq(&["--memory", "100"], b"");
    assert!(error_line(&output).starts_with("--memory: filter needs 1024 bytes"), "{}", error_line(&output));
}

#[test]
fn a_state_continues_the_last_run() {
    let folder = folder("state");
    let state = path(&folder, "seen.mayhap");
    let with_state = |input: &str| lines(&["--state", &state], input);
    assert_eq!(with_state("a\nb\n"), "a\nb\n");
    assert_eq!(with_state("b\nc\na\n"), "c\n");
    assert_eq!(with_state("a\nb\nc\n"), "");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left aside");
    // It is an ordinary filter.
    let filter: Filter = file::open(&state).unwrap();
    assert_eq!((filter.kind(), filter.inserted()), (Kind::Fingerprints, 3));
    assert!(filter.may_contain("b") && !filter.may_contain("d"));

    // Shortened fingerprints can be continued, if --fpr allows it.
    let input = urls(550_000);
    let (first, second) = input.split_at(input.len() / 2);
    let cut = path(&folder, "cut.mayhap");
    let small = ["-q", "--memory", "1MiB", "--fpr", "1e-3"];
    let mut out = uniq(&[&small[..], &["--state", &cut]].concat(), first).stdout;
    out.extend(uniq(&[&small[..], &["--state", &cut]].concat(), second).stdout);
    let whole = uniq(&small, &input);
    // The split of the input may cut a line in two.
    assert!(distinct(&out).symmetric_difference(&distinct(&whole.stdout)).count() < 200);
    let said =
        |arguments: &[&str]| error_line(&uniq(&[arguments, &["--state", &cut]].concat(), b"x\n")).to_owned();
    assert!(said(&["--memory", "1MiB"]).ends_with("raise --fpr, or begin a new state"));
    assert!(
        said(&["--memory", "1MiB"]).contains("shortened to 16 bits, which drops up to 0.08%"),
        "{}",
        said(&["--memory", "1MiB"])
    );
    assert!(
        said(&["--memory", "64KiB", "--fpr", "1%"])
            .contains("this state takes 896 KiB, but --memory 64.0 KiB leaves 56.0 KiB for it")
    );
    assert!(said(&["--window", "10"]).contains("was written by a run without --window"));
}

#[test]
fn invalid_states_are_rejected_and_left_unchanged() {
    let folder = folder("no-state");
    let state = path(&folder, "state");
    lines(&["--state", &state, "--window", "100"], "a\n");
    let said = |arguments: &[&str]| {
        error_line(&uniq(&[arguments, &["--state", &state]].concat(), b"x\n")).to_owned()
    };
    assert!(said(&[]).ends_with(
        "this state was written by a run with --window: give the same --window, or begin a new state"
    ));
    assert!(
        said(&["--window", "200"])
            .contains("this state has a window of 100 lines, but --window is 200 lines")
    );
    assert!(said(&["--window", "1h"]).contains("but --window is 1 h 0 min"));
    lines(&["--state", &state, "--window", "100"], "b\n");
    let filter = mayhap::Bloom::for_capacity(100, 0.01, 0).unwrap();
    file::save(&filter, &state).unwrap();
    assert!(said(&[]).ends_with("this is a bloom filter, not a state of `mayhap uniq`"));
    fs::write(&state, "some text, not a state").unwrap();
    assert!(said(&[]).starts_with(&state));
    assert_eq!(fs::read(&state).unwrap(), b"some text, not a state");
    fs::remove_file(&state).unwrap();
    lines(&["--state", &state], "a\nb\nc\n");
    let mut bytes = fs::read(&state).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&state, &bytes).unwrap();
    assert!(said(&[]).starts_with(&state), "{}", said(&[]));
    assert_eq!(fs::read(&state).unwrap(), bytes);
    let output = uniq(&["--state", &path(&folder, "no/such/folder")], b"a\n");
    assert!(error_line(&output).contains("no such file or directory"), "{}", error_line(&output));
}

/// Reads `count` lines of a running program.
fn read_lines(from: impl Read, count: usize) -> Vec<String> {
    BufReader::new(from).lines().take(count).map(Result::unwrap).collect()
}

fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

#[test]
fn lines_are_written_immediately_and_ctrl_c_saves_the_state() {
    let folder = folder("live");
    let state = path(&folder, "state");
    let mut child = spawn(&["--state", &state]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"one\none\ntwo\n").unwrap();
    // The input is still open.
    let mut stdout = child.stdout.take().unwrap();
    assert_eq!(read_lines(&mut stdout, 2), ["one", "two"]);
    stdin.write_all(b"two\nthree\n").unwrap();
    assert_eq!(read_lines(&mut stdout, 1), ["three"]);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(
        text(&output.stderr).starts_with("mayhap: read 5 lines, kept 3, dropped 2\n"),
        "{}",
        text(&output.stderr)
    );
    drop(stdin);
    assert_eq!(lines(&["--state", &state], "three\nfour\none\n"), "four\n");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn lines_that_were_not_written_do_not_count_as_seen() {
    let folder = folder("unread");
    let state = path(&folder, "state");
    // The reader leaves immediately, as `head -0` does.
    let mut child = spawn(&["--state", &state]);
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let input = urls(50_000);
    thread::spawn(move || stdin.write_all(&input).is_ok());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    assert!(!Path::new(&state).exists());
    // The disk is full.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut child = mayhap()
        .args(["--state", &state, "--suspects", &path(&folder, "suspects")])
        .stdin(Stdio::piped())
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(error_line(&output), "cannot write the output: no space left on device");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "neither a state nor suspects, nor anything aside");
}

#[test]
fn two_processes_cannot_share_a_state() {
    let folder = folder("shared");
    let state = path(&folder, "state");
    // Both begin without a state: the later save would undo the earlier one.
    let mut first = spawn(&["--state", &state, "-q"]);
    let mut stdin = first.stdin.take().unwrap();
    stdin.write_all(b"a\n").unwrap();
    assert_eq!(read_lines(first.stdout.as_mut().unwrap(), 1), ["a"]);
    assert_eq!(lines(&["--state", &state], "b\n"), "b\n");
    drop(stdin);
    let output = first.wait_with_output().unwrap();
    assert!(
        error_line(&output).ends_with("the lines of this run were not saved: run it again"),
        "{}",
        error_line(&output)
    );
    assert_eq!(lines(&["--state", &state], "a\nb\n"), "a\n");
    // Now the state exists, and the second process is rejected immediately.
    let mut first = spawn(&["--state", &state, "-q"]);
    let mut stdin = first.stdin.take().unwrap();
    stdin.write_all(b"c\n").unwrap();
    assert_eq!(read_lines(first.stdout.as_mut().unwrap(), 1), ["c"]);
    let second = uniq(&["--state", &state], b"c\n");
    assert!(error_line(&second).contains("another process is using this state"), "{}", error_line(&second));
    drop(stdin);
    assert!(first.wait_with_output().unwrap().status.success());
    assert_eq!(lines(&["--state", &state], "a\nb\nc\nd\n"), "d\n");
}

#[test]
fn a_window_of_lines_forgets() {
    let many =
        |from: u64, count: u64| (from..from + count).map(|number| format!("{number}\n")).collect::<String>();
    // Inside the window a line is dropped; far outside it is written again.
    let input = format!("x\n{}x\n{}x\n", many(0, 90), many(100, 300));
    let kept = lines(&["--window", "100"], &input);
    assert_eq!(kept.matches("x\n").count(), 2, "first, and after 300 others");
    assert!(kept.ends_with("399\nx\n"));
    let output = uniq(&["--window", "1000", "--fpr", "1%", "--json"], many(0, 20_000).as_bytes());
    let report = report(&output);
    let lost = 20_000 - text(&output.stdout).lines().count() as u64;
    assert_eq!(report["remembered"]["window"], "1,000 lines");
    assert!(lost <= report["wrongly_dropped"]["at_most"].as_u64().unwrap() && lost > 0, "{lost}: {report}");
    // The window continues in a state.
    let state = path(&folder("window"), "state");
    assert_eq!(lines(&["--window", "10", "--state", &state], "a\nb\n"), "a\nb\n");
    assert_eq!(lines(&["--window", "10", "--state", &state], "b\nc\n"), "c\n");
    let said = |arguments: &[&str]| error_line(&uniq(arguments, b"")).to_owned();
    assert!(said(&["--window", "1e9", "--memory", "1MiB"]).starts_with("--window needs "));
    assert!(said(&["--window", "1 week"]).contains("'1 week'"), "{}", said(&["--window", "1 week"]));
}

#[test]
fn a_window_of_time_forgets() {
    let mut child = spawn(&["--window", "2s", "--memory", "1MiB", "-q"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        line
    };
    let started = Instant::now();
    stdin.write_all(b"x\nx\n1\n").unwrap();
    assert_eq!([next(), next()], ["x\n", "1\n"]);
    stdin.write_all(b"x\n2\n").unwrap();
    let second = next();
    // Only on a quick machine is it certain that the two seconds are not over.
    if started.elapsed() < Duration::from_secs(2) {
        assert_eq!(second, "2\n");
    }
    // A line is held for at most a third longer than the window.
    thread::sleep(Duration::from_millis(2_000 + 700 + 300));
    stdin.write_all(b"x\n3\n").unwrap();
    drop(stdin);
    let rest: String = std::iter::from_fn(|| Some(next()).filter(|line| !line.is_empty())).collect();
    assert!(rest.ends_with("x\n3\n"), "{rest}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn count_repeated_and_inverse_match_the_usual_tools() {
    let input = "b\na\nb\nc\na\nb\n";
    assert_eq!(lines(&["--count"], input), "      3 b\n      2 a\n      1 c\n");
    assert_eq!(lines(&["-c", "--repeated"], input), "      3 b\n      2 a\n");
    assert_eq!(lines(&["-d"], input), "b\na\n");
    assert_eq!(lines(&["--inverse"], input), "b\na\nb\n");
    assert_eq!(lines(&["-c"], ""), "");
    // The same results as the usual tools, on many lines.
    let folder = folder("counts");
    let input = urls(100_000);
    fs::write(folder.join("in"), &input).unwrap();
    let sorted = |command: &str| {
        let shell = Command::new("bash")
            .args(["-euc", command])
            .current_dir(&folder)
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        assert!(shell.status.success(), "{}", text(&shell.stderr));
        shell.stdout
    };
    let mayhap = env!("CARGO_BIN_EXE_mayhap");
    assert!(sorted(&format!("{mayhap} uniq -q -c in | sort")) == sorted("sort in | uniq -c | sort"));
    assert!(sorted(&format!("{mayhap} uniq -q -d in | sort")) == sorted("sort in | uniq -d"));
    assert!(sorted(&format!("{mayhap} uniq -q -v in")) == sorted("awk 'seen[$0]++' in"));
    assert!(sorted(&format!("{mayhap} uniq -q -d in")) == sorted("awk '++seen[$0] == 2' in"));
    let output = uniq(&["--count", "--memory", "1MiB"], &input);
    let said = error_line(&output);
    assert!(
        said.starts_with("--count keeps all distinct lines in memory")
            && said.ends_with("or use `sort | uniq -c`"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
}

/// The item is a field, and the whole line is written. Compressed input is unpacked.
#[test]
fn lines_with_an_equal_field_are_duplicates() {
    assert_eq!(lines(&["-k", "2"], "1 a x\n2 b x\n3 a y\n"), "1 a x\n2 b x\n");
    assert_eq!(lines(&["-t", ",", "-k", "1"], "a,1\na,2\nb,3\n"), "a,1\nb,3\n");
    let people =
        "name,email\nAda,ada@example.org\n\"Lovelace, Ada\",ada@example.org\nGrace,grace@example.org\n";
    let one_each = "name,email\nAda,ada@example.org\nGrace,grace@example.org\n";
    assert_eq!(lines(&["--csv", "email"], people), one_each);
    let events = "{\"id\":7,\"n\":1}\n{\"n\":2}\n{\"id\":7,\"n\":3}\n";
    let output = uniq(&["--jsonl", "id", "--skip-missing"], events.as_bytes());
    assert_eq!(text(&output.stdout), "{\"id\":7,\"n\":1}\n");
    assert!(
        text(&output.stderr).contains("warning: skipped 1 record without field \"id\""),
        "{}",
        text(&output.stderr)
    );
    let folder = folder("packed");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"a\nb\na\n").unwrap();
    fs::write(folder.join("in.gz"), packed.finish().unwrap()).unwrap();
    assert_eq!(lines(&["-q", &path(&folder, "in.gz")], ""), "a\nb\n");
}

#[test]
fn unreadable_input_is_reported_in_one_line() {
    let folder = folder("errors");
    let output = mayhap().arg(path(&folder, "missing")).output().unwrap();
    assert!(error_line(&output).ends_with("missing: no such file or directory"), "{}", error_line(&output));
    let output = mayhap().arg(folder.to_str().unwrap()).output().unwrap();
    assert!(error_line(&output).contains("is a directory"), "{}", error_line(&output));
    for arguments in [&["--count", "--state", "x"][..], &["--repeated", "--window", "5"], &["--fpr", "2"]] {
        let output = uniq(arguments, b"");
        assert_eq!(output.status.code(), Some(2));
    }
    let report = path(&folder, "report.json");
    lines(&["--report", &report, "-q"], "a\na\n");
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert_eq!(
        (&report["kept"], &report["dropped"], &report["interrupted"]),
        (&1.into(), &1.into(), &false.into())
    );
    let help = mayhap().arg("--help").output().unwrap();
    assert!(text(&help.stdout).contains("mayhap uniq --state seen.mayhap today.txt"));
}

#[test]
fn the_number_of_threads_does_not_change_the_output() {
    let input: String =
        (0..200_000_u64).map(|number| format!("line {}\n", number * number % 70_001)).collect();
    for flags in [&[][..], &["--count"], &["--repeated"], &["--inverse"], &["--window", "500"]] {
        let kept = |threads: &str| lines(&[&["-q", "-j", threads], flags].concat(), &input);
        let (one, four) = (kept("1"), kept("4"));
        assert!(!one.is_empty() && one == four, "{flags:?}");
    }
    assert!(error_line(&uniq(&["-j", "0"], b"")).contains("--threads"));
}
