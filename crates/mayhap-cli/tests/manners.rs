//! How every command behaves with unusual input, closed pipes, Ctrl-C and full disks: the real program, as users run it.

mod program;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A new directory for the program to work in.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(program::empty_folder("manners", name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names of all files, including hidden ones.
    fn names(&self) -> Vec<String> {
        program::names(&self.0)
    }

    /// The program in this directory. An argument that contains blanks is added with [`Command::arg`].
    fn mayhap(&self, arguments: &str) -> Command {
        let mut command = program::mayhap_in(&self.0);
        command.args(arguments.split_whitespace());
        command
    }

    fn run(&self, arguments: &str) -> Output {
        self.mayhap(arguments).output().expect("the program starts")
    }

    /// Runs with `input` on standard input.
    fn run_on(&self, arguments: &str, input: &[u8]) -> Output {
        let mut child = self
            .mayhap(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // The program may end before it has read everything.
        let writing = thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writing.join().unwrap();
        output
    }

    /// Standard output of a command that succeeds with this exit code.
    fn answer(&self, arguments: &str, code: i32) -> Vec<u8> {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {}", said(&output));
        output.stdout
    }

    /// The one-line error of a command that fails.
    fn error_line(&self, arguments: &str) -> String {
        last_error_line(arguments, &self.run(arguments))
    }
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The last line, which is the error. Messages about earlier steps may precede it.
fn last_error_line(arguments: &str, output: &Output) -> String {
    let said = said(output);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
    let last = said.lines().last().unwrap_or_default().to_owned();
    assert!(last.starts_with("mayhap: "), "{arguments}: {said}");
    assert!(!last.contains("os error") && !said.contains("panicked"), "{arguments}: {said}");
    last
}

fn lines(range: std::ops::Range<u32>) -> String {
    range.map(|number| format!("https://example.org/page/{number}\n")).collect()
}

/// `text` in every compression format, as two concatenated streams.
fn packed(text: &[u8]) -> [(&'static str, Vec<u8>); 4] {
    let (first, second) = text.split_at(text.len() / 3);
    let gzip = |part: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap()
    };
    let bzip2 = |part: &[u8]| {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap()
    };
    let xz = |part: &[u8]| {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = |part: &[u8]| {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        // As the `zstd` program does.
        encoder.include_checksum(true).unwrap();
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap()
    };
    [
        ("gzip", [gzip(first), gzip(second)].concat()),
        ("zstd", [zstd(first), zstd(second)].concat()),
        ("bzip2", [bzip2(first), bzip2(second)].concat()),
        ("xz", [xz(first), xz(second)].concat()),
    ]
}

/// Waits for `child` to end, with a time limit.
fn wait(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("it does not end");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success(), "kill {signal}");
}

/// Ended as programs end by Ctrl-C: by the signal, or with the exit code that shells use for it.
fn was_interrupted(status: ExitStatus) -> bool {
    status.code() == Some(130) || matches!(status.signal(), Some(2 | 15))
}

#[test]
fn compressed_input_gives_the_same_results_as_plain_input() {
    let folder = Folder::new("compressed");
    let text = lines(0..5_000) + &lines(0..2_000);
    folder.write("plain", &text);
    folder.write("known", lines(1_000..3_000));
    for arguments in [
        "build known.mayhap known",
        "build live.mayhap known --deletes --items 10000",
        "build plain.mayhap plain",
        "add live.mayhap plain -o added.mayhap",
        "remove added.mayhap plain -o removed.mayhap",
    ] {
        folder.answer(arguments, 0);
    }
    let checked = folder.answer("check known.mayhap plain", 0);
    let distinct = folder.answer("uniq plain", 0);
    assert_eq!(distinct, lines(0..5_000).as_bytes());
    for (packing, bytes) in packed(text.as_bytes()) {
        // The file name has no extension, or a wrong one.
        let name = if packing == "gzip" { "input.xz" } else { "input.txt" };
        folder.write(name, &bytes);
        for arguments in ["check known.mayhap", "uniq"] {
            let expected = if arguments == "uniq" { &distinct } else { &checked };
            let from_file = folder.answer(&format!("{arguments} {name}"), 0);
            assert_eq!(&from_file, expected, "{arguments} {packing}");
            let piped = folder.run_on(arguments, &bytes);
            assert_eq!((piped.status.code(), &piped.stdout), (Some(0), expected), "{arguments} {packing}");
        }
        for (arguments, expected) in [
            (format!("build again.mayhap -f {name}"), "plain.mayhap"),
            (format!("add live.mayhap {name} -o again.mayhap -f"), "added.mayhap"),
            (format!("remove added.mayhap {name} -o again.mayhap -f"), "removed.mayhap"),
        ] {
            folder.answer(&arguments, 0);
            assert!(folder.read("again.mayhap") == folder.read(expected), "{arguments} {packing}");
        }
    }
}

#[test]
fn damaged_compressed_input_is_an_error_and_changes_nothing() {
    let folder = Folder::new("damaged");
    folder.write("known", lines(0..100));
    folder.answer("build known.mayhap known --deletes --items 1000", 0);
    let before = folder.read("known.mayhap");
    let names = folder.names();
    for (packing, bytes) in packed(lines(0..3_000).as_bytes()) {
        folder.write("cut", &bytes[..bytes.len() - 5]);
        let mut changed = bytes.clone();
        changed[bytes.len() / 2] ^= 0x55;
        folder.write("bad", changed);
        for verb in
            ["build new.mayhap", "add known.mayhap", "remove known.mayhap", "check known.mayhap", "uniq"]
        {
            let cut = folder.error_line(&format!("{verb} cut"));
            assert_eq!(
                cut,
                format!("mayhap: cut: the {packing} data ends too early: the file is truncated"),
                "{verb}"
            );
            let bad = folder.error_line(&format!("{verb} bad"));
            let expected = format!("mayhap: bad: the {packing} data ");
            assert!(bad.starts_with(&expected), "{verb}: {bad}");
        }
        fs::remove_file(folder.path("cut")).unwrap();
        fs::remove_file(folder.path("bad")).unwrap();
        assert_eq!(folder.names(), names);
        assert_eq!(folder.read("known.mayhap"), before);
    }
}

#[test]
fn line_endings_follow_the_options() {
    let folder = Folder::new("ends");
    folder.write("known", "ada\ngrace");
    folder.answer("build known.mayhap known --fpr 1e-9", 0);
    folder.write("crlf", "ada\r\nbob\r\ngrace");
    // By default the CR is part of the line. The last line needs no line ending, and gets one in the output.
    assert_eq!(folder.answer("check known.mayhap crlf", 0), b"grace\n");
    assert_eq!(folder.answer("check --crlf known.mayhap crlf", 0), b"ada\r\ngrace\r\n");
    assert_eq!(folder.answer("check --trim known.mayhap crlf", 0), b"ada\r\ngrace\n");
    folder.write("zeros", "bob\nada\0ada\0grace");
    assert_eq!(folder.answer("check -0 known.mayhap zeros", 0), b"ada\0grace\0");
    folder.write("twice", "ada\r\nada\r\nada\nada");
    assert_eq!(folder.answer("uniq twice", 0), b"ada\r\nada\n");
    assert_eq!(folder.answer("uniq --crlf twice", 0), b"ada\r\n");
    // Bytes that are not text are valid.
    folder.write("bytes", b"\xff\xfe\n\xff\xfe\n\0\n");
    assert_eq!(folder.answer("uniq bytes", 0), b"\xff\xfe\n\0\n");
    // Empty lines are items.
    folder.write("empty-lines", "\n\n\n");
    assert_eq!(folder.answer("uniq empty-lines", 0), b"\n");
}

#[test]
fn an_empty_file_has_no_lines() {
    let folder = Folder::new("empty");
    folder.write("known", lines(0..100));
    folder.answer("build known.mayhap known --deletes --items 1000", 0);
    let before = folder.read("known.mayhap");
    folder.write("empty", "");
    folder.write("empty.gz", &packed(b"")[0].1);
    for empty in ["empty", "empty.gz", "/dev/null"] {
        assert_eq!(folder.answer(&format!("check known.mayhap {empty}"), 1), b"");
        assert_eq!(folder.answer(&format!("check -v known.mayhap {empty}"), 1), b"");
        assert_eq!(folder.answer(&format!("uniq {empty}"), 0), b"");
        folder.answer(&format!("build {empty}.mayhap {empty} -f").replace("/dev/null.", "null."), 0);
        folder.answer(&format!("add known.mayhap {empty}"), 0);
        folder.answer(&format!("remove known.mayhap {empty}"), 0);
        assert_eq!(folder.read("known.mayhap"), before);
    }
    // A filter without items is valid: it answers no.
    assert_eq!(folder.answer("check empty.mayhap known", 1), b"");
}

#[test]
fn unreadable_input_is_named() {
    let folder = Folder::new("unreadable");
    folder.write("known", lines(0..100));
    folder.answer("build known.mayhap known --deletes --items 1000", 0);
    fs::create_dir(folder.path("folder")).unwrap();
    let names = folder.names();
    let before = folder.read("known.mayhap");
    for verb in
        ["build new.mayhap", "add known.mayhap", "remove known.mayhap", "check known.mayhap", "uniq", "bench"]
    {
        for (files, expected) in [
            ("known missing", "cannot read missing: no such file or directory"),
            ("folder", "cannot read folder: is a directory"),
            ("known/under", "cannot read known/under: not a directory"),
            ("- known -", "standard input (-) is named twice, but can be read only once"),
        ] {
            let said = folder.error_line(&format!("{verb} {files}"));
            assert_eq!(said, format!("mayhap: {expected}"), "{verb}");
        }
        // As standard input.
        let output = folder.mayhap(verb).stdin(File::open(&folder.0).unwrap()).output().unwrap();
        assert_eq!(last_error_line(verb, &output), "mayhap: cannot read standard input: is a directory");
    }
    for verb in ["add", "remove", "check", "info", "merge new.mayhap known.mayhap"] {
        let said = folder.error_line(&format!("{verb} missing"));
        assert_eq!(said, "mayhap: cannot read missing: no such file or directory", "{verb}");
    }
    assert_eq!(folder.names(), names);
    assert_eq!(folder.read("known.mayhap"), before);
    // The super user may read everything, so there is nothing to test.
    folder.write("secret", "ada\n");
    fs::set_permissions(folder.path("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(folder.path("secret")).is_err() {
        for verb in ["build new.mayhap", "check known.mayhap", "uniq"] {
            let said = folder.error_line(&format!("{verb} secret"));
            assert_eq!(said, "mayhap: cannot read secret: permission denied", "{verb}");
        }
    }
}

#[test]
fn a_file_that_disappears_is_named() {
    let folder = Folder::new("vanishes");
    folder.write("there", "ada\n");
    let mut child = folder
        .mayhap("uniq - there")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"grace\n").unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "grace\n");
    fs::remove_file(folder.path("there")).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(last_error_line("uniq", &output), "mayhap: cannot read there: no such file or directory");
}

#[test]
fn more_files_than_can_be_open_together_are_read() {
    let folder = Folder::new("many");
    for number in 0..300 {
        folder.write(&format!("file{number}"), format!("{number}\n"));
    }
    let output = Command::new("bash")
        .args(["-c", "ulimit -n 64; exec \"$0\" uniq file*", env!("CARGO_BIN_EXE_mayhap")])
        .current_dir(&folder.0)
        .output()
        .unwrap();
    assert_eq!((output.status.code(), output.stdout.split(|&byte| byte == b'\n').count()), (Some(0), 301));
}

/// A line typed into a pipe is answered before the next one is complete.
#[test]
fn typed_lines_are_answered_immediately() {
    let folder = Folder::new("live");
    folder.write("known", "ada\ngrace\n");
    folder.answer("build known.mayhap known --fpr 1e-9", 0);
    for arguments in ["check known.mayhap -j 1", "check known.mayhap -j 4", "uniq", "uniq --line-buffered"] {
        let mut child = folder
            .mayhap(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, answers) = mpsc::channel();
        let reading =
            thread::spawn(move || stdout.lines().for_each(|line| send.send(line.unwrap()).unwrap()));
        let answer = || answers.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{arguments}: {error}"));
        for (typed, answered) in [
            ("ada\n", "ada"),
            ("bob\ngrace\nhalf of", if arguments.starts_with("uniq") { "bob" } else { "grace" }),
        ] {
            stdin.write_all(typed.as_bytes()).unwrap();
            assert_eq!(answer(), answered, "{arguments}");
        }
        if arguments.starts_with("uniq") {
            assert_eq!(answer(), "grace");
        }
        // Many lines, then an incomplete one: the last complete line must not wait for it.
        let many: String = (0..100_000).map(|number| format!(" a line\nline {number}\n")).collect();
        stdin.write_all(many.as_bytes()).unwrap();
        stdin.write_all(b"ada lovelace\nada\nmargaret\nand the beginning of").unwrap();
        if arguments.starts_with("uniq") {
            while answer() != "margaret" {}
        } else {
            assert_eq!(answer(), "ada", "{arguments}");
        }
        drop(stdin);
        let status = wait(&mut child);
        assert_eq!(status.code(), Some(0), "{arguments}");
        reading.join().unwrap();
    }
}

/// As `| head -1` does.
#[test]
fn a_closed_pipe_is_no_error() {
    let folder = Folder::new("head");
    folder.write("many", lines(0..200_000));
    folder.answer("build known.mayhap many", 0);
    for arguments in [
        "check known.mayhap many",
        "check known.mayhap many -j 1",
        "check --annotate known.mayhap many",
        "uniq many",
        "uniq --count many",
        "build - many",
    ] {
        let mut child =
            folder.mayhap(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        // Standard output is closed now.
        let status = wait(&mut child);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(status.code(), Some(0), "{arguments}: {said}");
        let lines = said.lines().filter(|line| !line.starts_with("mayhap: kind: ")).collect::<Vec<_>>();
        assert!(lines.is_empty(), "{arguments}: {said}");
    }
    // A pipe without any reader.
    for arguments in
        ["info known.mayhap", "explain known.mayhap ada", "plan --items 1e6 --fpr 1%", "man", "--help"]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = folder.mayhap(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let no_answer = arguments.starts_with("explain");
        assert!(
            output.status.code() == Some(0) || no_answer && output.status.code() == Some(1),
            "{arguments}: {}",
            said(&output)
        );
        assert_eq!(said(&output), "", "{arguments}");
    }
}

/// `yes | mayhap …` never ends: a command that has enough must not wait for the end of the input.
#[test]
fn a_closed_pipe_ends_endless_input() {
    let folder = Folder::new("endless");
    folder.write("known", "y\n");
    folder.answer("build known.mayhap known", 0);
    for arguments in ["check known.mayhap", "check -q known.mayhap", "check -m 3 known.mayhap"] {
        let mut endless = Command::new("yes").stdout(Stdio::piped()).spawn().unwrap();
        let mut child = folder
            .mayhap(arguments)
            .stdin(endless.stdout.take().unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0];
        let _ = child.stdout.take().unwrap().read(&mut first).unwrap();
        let status = wait(&mut child);
        wait(&mut endless);
        assert_eq!(status.code(), Some(0), "{arguments}");
    }
}

#[test]
fn ctrl_c_while_reading_changes_nothing() {
    let folder = Folder::new("interrupted");
    folder.write("known", lines(0..1_000));
    folder.answer("build known.mayhap known --deletes --items 100000", 0);
    let before = folder.read("known.mayhap");
    let names = folder.names();
    // More than fits in a pipe: when all is written, most of it was read.
    let much = lines(0..50_000);
    for signal in ["-INT", "-TERM"] {
        for arguments in [
            "build new.mayhap",
            "build new.mayhap --hash-memory 64KiB",
            "build new.mayhap --items 1e6",
            "build known.mayhap --force --static",
            "add known.mayhap",
            "remove known.mayhap",
            "check known.mayhap",
            "uniq",
            "uniq --count",
        ] {
            let mut child = folder
                .mayhap(arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(much.as_bytes()).unwrap();
            send(&child, signal);
            // No more input comes, and it does not end.
            let status = wait(&mut child);
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            assert!(was_interrupted(status), "{signal} {arguments}: {status:?} {said}");
            assert!(!said.contains("panicked"), "{arguments}: {said}");
            drop(stdin);
            assert_eq!(folder.names(), names, "{signal} {arguments}");
            assert!(folder.read("known.mayhap") == before, "{signal} {arguments}");
        }
    }
}

/// Lines written before Ctrl-C count as seen, and are reported.
#[test]
fn ctrl_c_saves_the_state_of_uniq() {
    let folder = Folder::new("state");
    let mut child = folder
        .mayhap("uniq --state seen.mayhap")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"ada\ngrace\n").unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(
        (stdout.next().unwrap().unwrap(), stdout.next().unwrap().unwrap()),
        ("ada".into(), "grace".into())
    );
    send(&child, "-INT");
    let status = wait(&mut child);
    assert!(was_interrupted(status), "{status:?}");
    assert_eq!(folder.names(), ["seen.mayhap"]);
    let again = folder.run_on("uniq --state seen.mayhap", b"ada\nbob\ngrace\n");
    assert_eq!((again.status.code(), again.stdout), (Some(0), b"bob\n".to_vec()));
}

#[test]
fn ctrl_c_while_saving_leaves_the_old_file() {
    let folder = Folder::new("saving");
    folder.write("one", "ada\n");
    folder.write("large.mayhap", "the old one");
    let aside = |folder: &Folder| folder.names().into_iter().find(|name| name.starts_with(".mayhap-"));
    let mut interrupted = 0;
    for round in 0..8 {
        let signal = if round % 2 == 0 { "-INT" } else { "-TERM" };
        // 256 MiB, so that saving takes a while.
        let mut child = folder
            .mayhap("build large.mayhap one --force --kind bloom --items 2.2e8")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while aside(&folder).is_none() && child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < PATIENCE);
            thread::sleep(Duration::from_micros(200));
        }
        // Sometimes it has finished before the signal.
        let _ = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let status = wait(&mut child);
        assert_eq!(folder.names(), ["large.mayhap", "one"], "{signal}");
        if was_interrupted(status) {
            assert_eq!(folder.read("large.mayhap"), b"the old one", "{signal}");
            interrupted += 1;
            if interrupted == 2 {
                break;
            }
        } else {
            assert_eq!(status.code(), Some(0));
            assert_eq!(folder.answer("check large.mayhap one", 0), b"ada\n");
            folder.write("large.mayhap", "the old one");
        }
    }
    assert!(interrupted > 0, "it was never caught while it saved");
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let folder = Folder::new("full");
    folder.write("known", lines(0..1_000));
    folder.answer("build known.mayhap known", 0);
    let names = folder.names();
    for arguments in [
        "check known.mayhap known",
        "check -c known.mayhap known",
        "check --json known.mayhap known",
        "uniq known",
        "uniq --count known",
        "build - known",
        "add known.mayhap known -o -",
        "info known.mayhap",
        "explain known.mayhap ada",
        "plan --items 1e6 --fpr 1%",
        "completions bash",
        "man",
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = folder.mayhap(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = last_error_line(arguments, &output);
        assert!(said.ends_with(": no space left on device"), "{arguments}: {said}");
    }
    assert_eq!(folder.names(), names);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_and_the_old_one_stays() {
    let folder = Folder::new("too-large");
    folder.write("known", lines(0..200_000));
    folder.write("few", lines(0..10));
    folder.answer("build known.mayhap known --deletes --items 300000", 0);
    folder.answer("build one.mayhap few --kind bloom --items 300000", 0);
    folder.answer("build two.mayhap few --kind bloom --items 300000", 0);
    let before = folder.read("known.mayhap");
    let inode = fs::metadata(folder.path("known.mayhap")).unwrap().ino();
    let names = folder.names();
    for arguments in [
        "build new.mayhap known",
        "build new.mayhap known --hash-memory 64KiB",
        "build known.mayhap known --force",
        "build new.bloom known --format guava --items-as utf8",
        "add known.mayhap few",
        "remove known.mayhap few",
        "merge new.mayhap one.mayhap two.mayhap",
        "uniq --state seen.mayhap known",
    ] {
        // Blocks of 1 KiB: no file may grow beyond 64 KiB.
        let output = Command::new("bash")
            .args(["-c", "ulimit -f 64; exec \"$@\" > /dev/null", "bash", env!("CARGO_BIN_EXE_mayhap")])
            .args(arguments.split_whitespace())
            .current_dir(&folder.0)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = last_error_line(arguments, &output);
        assert!(said.ends_with(": file too large"), "{arguments}: {said}");
        // The error names the user's file, not the temporary one.
        let named = arguments
            .split_whitespace()
            .any(|word| said == format!("mayhap: cannot write {word}: file too large"));
        assert!(
            named || said == "mayhap: cannot write a temporary file in .: file too large",
            "{arguments}: {said}"
        );
        assert_eq!(folder.names(), names, "{arguments}");
        assert!(folder.read("known.mayhap") == before, "{arguments}");
        assert_eq!(fs::metadata(folder.path("known.mayhap")).unwrap().ino(), inode, "{arguments}");
    }
    // A directory without write permission. The super user can write anyway.
    let locked = folder.path("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    if File::create(locked.join("probe")).is_err() {
        let said = folder.error_line("build locked/new.mayhap few");
        assert_eq!(said, "mayhap: cannot write locked/new.mayhap: permission denied");
    }
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
    let said = folder.error_line("build nowhere/new.mayhap few");
    assert_eq!(said, "mayhap: cannot write nowhere/new.mayhap: no such file or directory");
}

#[test]
fn the_number_of_threads_does_not_change_the_result() {
    let folder = Folder::new("threads");
    let text: String = lines(0..150_000) + &lines(0..50_000);
    folder.write("many", &text);
    folder.write("known", lines(100_000..120_000));
    folder.answer("build known.mayhap known --deletes --items 500000 --fpr 0.1%", 0);
    for arguments in [
        "build one.mayhap many",
        "build one.mayhap many --items 200000",
        "build one.mayhap many --static",
        "build one.mayhap many --deletes --items 200000",
        "build one.bloom many --format guava --items-as utf8",
        "add known.mayhap many -o one.mayhap",
    ] {
        let out = if arguments.contains("bloom") { "one.bloom" } else { "one.mayhap" };
        let made = ["-j 1", "-j 4"].map(|threads| {
            folder.answer(&format!("{arguments} {threads} --force --quiet"), 0);
            folder.read(out)
        });
        assert!(made[0] == made[1], "{arguments}");
    }
    for arguments in [
        "check known.mayhap many",
        "check -v -n known.mayhap many",
        "check --annotate known.mayhap -k 1 many",
    ] {
        let made = ["-j 1", "-j 4"].map(|threads| folder.answer(&format!("{arguments} {threads}"), 0));
        assert!(made[0] == made[1] && !made[0].is_empty(), "{arguments}");
    }
}

#[test]
fn columns_are_items_and_whole_records_are_printed() {
    let folder = Folder::new("columns");
    folder.write("emails", "ada@example.org\n\"g\", the admiral\n7\n");
    folder.answer("build known.mayhap emails --fpr 1e-9", 0);
    let csv = "id,email\n1,ada@example.org\n2,bob@example.org\n3,\"\"\"g\"\", the\nadmiral\"\n4,\"\"\"g\"\", the admiral\"\n";
    folder.write("people.csv", csv);
    assert_eq!(
        String::from_utf8(folder.answer("check --csv email known.mayhap people.csv", 0)).unwrap(),
        "id,email\n1,ada@example.org\n4,\"\"\"g\"\", the admiral\"\n"
    );
    assert_eq!(
        folder.answer("check --csv email -n known.mayhap people.csv -j 3", 0),
        b"2:1,ada@example.org\n6:4,\"\"\"g\"\", the admiral\"\n"
    );
    assert_eq!(folder.answer("check -c -v --csv #2 known.mayhap people.csv people.csv", 0), b"4\n");
    folder.write("none.csv", "id,email\n9,nobody\n");
    assert_eq!(
        folder.answer("check --csv email known.mayhap none.csv", 1),
        b"id,email\n",
        "the header is there, the answer is no"
    );
    assert_eq!(folder.answer("uniq --csv email people.csv people.csv", 0), csv.as_bytes());

    let json = "{\"u\":{\"mail\":\"ada@example\\u002eorg\"}}\n{\"u\":{\"mail\":7}}\n{\"u\":{}}\n";
    folder.write("people.jsonl", json);
    let skipping = folder.run("check --jsonl u.mail --skip-missing known.mayhap people.jsonl");
    assert_eq!(skipping.status.code(), Some(0));
    assert_eq!(
        String::from_utf8_lossy(&skipping.stdout),
        json.split_inclusive('\n').take(2).collect::<String>()
    );
    assert_eq!(said(&skipping), "mayhap: warning: skipped 1 record without field \"u.mail\"\n");
    let quiet = folder.run("check -q --jsonl u.mail --skip-missing known.mayhap people.jsonl");
    assert_eq!((quiet.status.code(), said(&quiet)), (Some(0), String::new()));
    for (arguments, expected) in [
        ("check --jsonl u.mail known.mayhap people.jsonl", "people.jsonl, line 3: no field \"u.mail\""),
        (
            "check --jsonl u.mail known.mayhap people.csv",
            "people.csv, line 1: invalid JSON at column 1: expected value",
        ),
        ("uniq --csv mail people.csv", "people.csv: no column \"mail\" in the header: id, email"),
        ("uniq -k 3 people.csv", "people.csv, line 1: no field 3: the record has 1 field"),
        (
            "uniq -t , -k 2 --skip-missing known.mayhap --csv 3",
            "the argument '--key <N>' cannot be used with '--csv <COLUMN>'",
        ),
        ("build new.mayhap --csv email emails", "emails: no column \"email\" in the header: ada@example.org"),
    ] {
        assert_eq!(folder.error_line(arguments), format!("mayhap: {expected}"));
    }
    assert!(!folder.path("new.mayhap").exists());
}

#[test]
fn a_line_without_end_is_an_error_in_bounded_memory() {
    let folder = Folder::new("long");
    let file = File::create(folder.path("zeros")).unwrap();
    // A sparse file, which takes no room on the disk.
    file.set_len(400 << 20).unwrap();
    let output = Command::new("bash")
        .args([
            "-c",
            "ulimit -v 2000000; exec \"$0\" uniq --memory 16MiB zeros",
            env!("CARGO_BIN_EXE_mayhap"),
        ])
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let said = last_error_line("uniq zeros", &output);
    assert_eq!(said, "mayhap: zeros, line 1: a record is longer than the limit of 256 MiB: is this text?");
}
