//! Misuse: files named twice, damaged filters, far too little memory, many processes at the same time.

mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use program::{error_line, mayhap_in, names, run, said};
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    program::empty_folder("hard-use", name)
}

fn numbers(range: std::ops::Range<u64>) -> String {
    range.map(|number| format!("{number}\n")).collect()
}

/// All lines are distinct, so every dropped line is a mistake.
fn lost(folder: &Path, arguments: &[&str]) -> (u64, u64) {
    let arguments = [&["uniq", "--quiet", "--report", "report.json", "numbers.txt"], arguments].concat();
    let (code, _, error) = run(folder, &arguments);
    assert_eq!((code, error.as_str()), (0, ""), "{arguments:?}");
    let report: Value = serde_json::from_slice(&fs::read(folder.join("report.json")).unwrap()).unwrap();
    let at_most = report["wrongly_dropped"]["at_most"].as_u64().unwrap();
    (report["dropped"].as_u64().unwrap(), at_most)
}

#[test]
fn uniq_stays_within_its_bound_for_any_memory_limit() {
    let folder = folder("loss");
    fs::write(folder.join("numbers.txt"), numbers(0..300_000)).unwrap();
    let mut all_lost = 0;
    for memory in ["16K", "64K", "300K", "1M"] {
        let (dropped, at_most) = lost(&folder, &["--fpr", "0.1%", "--memory", memory]);
        assert!(dropped <= at_most, "--memory {memory}: {dropped} lost, and it said {at_most} at most");
        all_lost += dropped;
    }
    assert!(all_lost > 100, "only {all_lost} were lost, which proves nothing");
    for memory in ["64K", "1M"] {
        let (dropped, at_most) = lost(&folder, &["--window", "1h", "--fpr", "1%", "--memory", memory]);
        assert!(
            dropped > 1_000 && dropped <= at_most,
            "--memory {memory}: {dropped} lost, it said {at_most}"
        );
    }
}

#[test]
fn inputs_are_never_overwritten() {
    let folder = folder("over");
    let lines = numbers(0..10);
    fs::write(folder.join("in.txt"), &lines).unwrap();
    for flag in ["--suspects", "--report", "--state"] {
        let said = error_line(&folder, &["uniq", "in.txt", flag, "./in.txt"]);
        assert_eq!(said, format!("mayhap: {flag}: ./in.txt is also an input\n"));
    }
    let said = error_line(&folder, &["uniq", "in.txt", "--state", "s", "--report", "s"]);
    assert_eq!(said, "mayhap: --report: s is also --state\n");
    let said = error_line(&folder, &["uniq", "in.txt", "--report", "no/such/folder"]);
    assert!(said.contains("cannot write no/such/folder"), "{said}");
    assert_eq!(run(&folder, &["build", "f.mayhap", "in.txt"]).0, 0);
    let filter = fs::read(folder.join("f.mayhap")).unwrap();
    assert!(
        error_line(&folder, &["explain", "f.mayhap", "7", "--svg", "f.mayhap"]).contains("is the filter")
    );
    assert_eq!(fs::read(folder.join("f.mayhap")).unwrap(), filter);
    assert_eq!(fs::read_to_string(folder.join("in.txt")).unwrap(), lines);
    // A device is written directly, not replaced.
    assert_eq!(run(&folder, &["uniq", "in.txt", "--suspects", "/dev/null", "--report", "/dev/null"]).0, 0);
    assert_eq!(names(&folder), ["f.mayhap", "in.txt"]);
}

/// A damaged filter that is written again would get a valid checksum, with items lost.
#[test]
fn damage_gets_no_new_checksum() {
    let folder = folder("damage");
    fs::write(folder.join("in.txt"), numbers(0..1_000)).unwrap();
    assert_eq!(run(&folder, &["build", "f.mayhap", "in.txt", "--kind", "bloom"]).0, 0);
    let mut bytes = fs::read(folder.join("f.mayhap")).unwrap();
    bytes[600..700].fill(0);
    fs::write(folder.join("f.mayhap"), &bytes).unwrap();
    for verb in [
        &["add", "f.mayhap", "in.txt"][..],
        &["merge", "g.mayhap", "f.mayhap", "f.mayhap"],
        &["convert", "f.mayhap", "g.mayhap", "--to", "mayhap"],
        &["uniq", "--state", "f.mayhap", "in.txt"],
    ] {
        let said = error_line(&folder, verb);
        assert!(said.contains("f.mayhap"), "{verb:?}: {said}");
    }
    assert_eq!(fs::read(folder.join("f.mayhap")).unwrap(), bytes);
    assert_eq!(names(&folder), ["f.mayhap", "in.txt"]);
}

#[test]
fn too_many_threads_are_no_error() {
    let folder = folder("threads");
    fs::write(folder.join("in.txt"), numbers(0..1_000)).unwrap();
    assert_eq!(run(&folder, &["build", "f.mayhap", "in.txt", "-j", "100000"]).0, 0);
    let (code, out, _) = run(&folder, &["check", "f.mayhap", "in.txt", "-j", "100000"]);
    assert_eq!((code, out.lines().count()), (0, 1_000));
}

#[test]
fn only_one_of_several_concurrent_runs_gets_the_state() {
    let folder = folder("together");
    for round in 0..10 {
        let runs: Vec<_> = (0..4_u64)
            .map(|number| {
                let input = folder.join(format!("{number}.txt"));
                fs::write(&input, numbers(number * 1_000..(number + 1) * 1_000)).unwrap();
                let mut command = mayhap_in(&folder);
                command.args(["uniq", "--quiet", "--state", "state"]).arg(input).stdout(Stdio::null());
                command.stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        let ended: Vec<_> = runs.into_iter().map(|run| run.wait_with_output().unwrap()).collect();
        for (number, output) in ended.iter().enumerate() {
            let said = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(0) => {
                    let input = format!("{number}.txt");
                    let (code, out, _) = run(&folder, &["check", "-c", "state", &input]);
                    assert_eq!(
                        (code, out.trim()),
                        (0, "1000"),
                        "round {round}: run {number} has lost its lines"
                    );
                }
                Some(2) => assert!(said.contains("another process"), "{said}"),
                code => panic!("{code:?}: {said}"),
            }
        }
        assert!(ended.iter().any(|output| output.status.success()), "one run got the state");
        fs::remove_file(folder.join("state")).unwrap();
    }
}

#[test]
fn items_can_be_added_to_the_state_of_uniq() {
    let folder = folder("seen");
    fs::write(folder.join("in.txt"), numbers(0..100)).unwrap();
    assert_eq!(run(&folder, &["uniq", "--quiet", "--state", "state", "in.txt"]).0, 0);
    fs::write(folder.join("more.txt"), "grace\n").unwrap();
    assert_eq!(run(&folder, &["add", "state", "more.txt"]).0, 0);
    let (code, out, _) = run(&folder, &["uniq", "--quiet", "--state", "state", "in.txt", "more.txt"]);
    assert_eq!((code, out.as_str()), (0, ""));
}

#[test]
fn endless_files_are_rejected_immediately() {
    let folder = folder("endless");
    let made = Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap();
    assert!(made.success());
    for endless in ["pipe", "/dev/zero"] {
        for verb in ["sniff", "info", "verify", "check", "explain"] {
            let mut arguments = vec![verb, endless];
            arguments.extend((verb == "explain").then_some("ada"));
            let said = error_line(&folder, &arguments);
            assert!(said.contains("not a regular file"), "{said}");
        }
        let said = error_line(&folder, &["uniq", "--state", endless]);
        assert!(said.contains("not a regular file"), "{said}");
    }
    let said = error_line(&folder, &["info", "--from", "guava", "/dev/zero"]);
    assert!(said.contains("cannot read /dev/zero: neither a regular file nor a pipe"), "{said}");
    fs::write(folder.join("bits"), [1; 64]).unwrap();
    let said = error_line(&folder, &["info", "--from", "redisson", "--redisson-config", "/dev/zero", "bits"]);
    assert!(said.contains("cannot read /dev/zero: neither"), "{said}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_filter_of_another_program_is_read_from_a_named_pipe() {
    let folder = folder("piped");
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mayhap-formats/tests/vectors");
    let line = "exec \"$0\" info --from guava <(cat \"$1\")";
    let output = Command::new("bash")
        .args(["-c", line, env!("CARGO_BIN_EXE_mayhap")])
        .arg(vectors.join("guava/mitz64_n1000_p0.01.bin"))
        .output()
        .unwrap();
    let (code, out, error) = said(&output);
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("guava, placement Guava64"), "{out}");
    fs::remove_dir_all(&folder).unwrap();
}

/// If the system refuses memory, every command reports it in one line and exits with 2.
#[test]
fn refused_memory_is_an_error_and_no_abort() {
    use std::fmt::Write as _;
    let folder = folder("refused");
    let lines: String = (0..400_000).fold(String::new(), |mut lines, number| {
        let _ = writeln!(lines, "https://example.org/a/rather/long/path/{number}");
        lines
    });
    fs::write(folder.join("items.txt"), lines).unwrap();
    for arguments in [
        &["build", "large.mayhap", "items.txt", "--items", "2e8", "--fpr", "1%", "-q"][..],
        &[
            "build",
            "quotient.mayhap",
            "items.txt",
            "--items",
            "1e7",
            "--fpr",
            "1%",
            "--kind",
            "quotient",
            "-q",
        ],
    ] {
        assert_eq!(run(&folder, arguments).0, 0);
    }
    let limited = |mebibytes: u32, arguments: &[&str]| {
        let mut command = Command::new("bash");
        let line = format!("ulimit -v {}; exec \"$@\"", mebibytes << 10);
        command
            .env_remove("RUST_BACKTRACE")
            .args(["-c", &line, "bash", env!("CARGO_BIN_EXE_mayhap")])
            .args(arguments);
        said(&command.current_dir(&folder).stdin(Stdio::null()).output().unwrap())
    };
    // Commands that need far more memory than there is report it themselves.
    for (mebibytes, arguments) in [
        (200, &["build", "new.mayhap", "items.txt", "--items", "1e9", "--fpr", "1%", "-f", "-q"][..]),
        (200, &["check", "large.mayhap", "items.txt"]),
        (50, &["uniq", "--count", "-q", "items.txt"]),
        (200, &["merge", "merged.mayhap", "large.mayhap", "large.mayhap", "-f"]),
        (400, &["convert", "large.mayhap", "out.bin", "--to", "mayhap", "-f"]),
        (700, &["convert", "large.mayhap", "out.bin", "--to", "mayhap", "-f"]),
        (900, &["convert", "large.mayhap", "out.bin", "--to", "mayhap", "-f"]),
    ] {
        let (code, _, error) = limited(mebibytes, arguments);
        assert_eq!((code, error.lines().count()), (2, 1), "{arguments:?}: {error}");
        let says_bytes = error.chars().filter(char::is_ascii_digit).count() >= 4 && error.contains("bytes");
        assert!(error.starts_with("mayhap: ") && says_bytes, "{arguments:?}: {error}");
    }
    // Commands that need little fail at some point, or succeed. None aborts.
    for mebibytes in [30, 45, 60, 90] {
        for arguments in [
            &["build", "new.mayhap", "items.txt", "-f", "-q"][..],
            &["check", "-c", "quotient.mayhap", "items.txt"],
            &["uniq", "-q", "items.txt"],
            &["uniq", "-q", "--count", "items.txt"],
            &["plan", "--items", "1e9", "--fpr", "1%"],
        ] {
            let (code, _, error) = limited(mebibytes, arguments);
            assert!([0, 2].contains(&code), "{mebibytes} MiB, {arguments:?}: {code}, {error}");
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}
