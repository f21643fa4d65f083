//! DCSO's `bloom` program and this library, one on the other's files.

mod real;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mayhap::Bloom;
use mayhap_formats::dcso::{self, Dcso, Packing};

use real::Folder;

const LIMIT: u64 = 16 << 20;

/// The program, and a folder to work in.
struct Program {
    path: PathBuf,
    folder: Folder,
}

impl Program {
    fn find() -> Option<Self> {
        let path = real::find("MAYHAP_TEST_BLOOM", "bloom")?;
        Some(Self { path, folder: Folder::new("dcso") })
    }

    /// Runs it with these arguments, a file and these lines, and returns its output, line by line.
    fn run(&self, packing: Packing, arguments: &[&str], file: &Path, lines: &[String]) -> Vec<String> {
        let mut command = Command::new(&self.path);
        if packing == Packing::Gzip {
            command.arg("--gzip");
        }
        command.args(arguments).arg(file);
        let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let printed = real::run(&mut command, input.as_bytes());
        String::from_utf8(printed).unwrap().lines().map(str::to_owned).collect()
    }

    fn create(&self, packing: Packing, (n, p): (u64, &str), name: &str, lines: &[String]) -> PathBuf {
        let file = self.folder.join(name);
        self.run(packing, &["create", "-n", &n.to_string(), "-p", p], &file, lines);
        file
    }

    fn file(&self, name: &str, filter: &Bloom, data: &[u8], packing: Packing) -> PathBuf {
        let file = self.folder.join(name);
        fs::write(&file, written(filter, data, packing)).unwrap();
        file
    }
}

fn written(filter: &Bloom, data: &[u8], packing: Packing) -> Vec<u8> {
    let mut bytes = Vec::new();
    dcso::write(filter, data, packing, &mut bytes).unwrap();
    bytes
}

fn read(file: &Path) -> Dcso {
    dcso::read(&fs::read(file).unwrap(), LIMIT).unwrap()
}

/// `count` lines of some shape; different `kind`s have no line in common.
fn lines(kind: &str, count: u64) -> Vec<String> {
    let line = |i: u64| match i % 4 {
        0 => format!("{kind}{i}.example"),
        1 => format!("https://{kind}.example/Straße/{i}?q=布隆"),
        2 => format!("{kind}:{:064x}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        _ => format!(" {kind} {i}\t"),
    };
    (0..count).map(line).collect()
}

/// The output of the program for these queries: the possible members.
fn answered(filter: &Bloom, questions: &[String]) -> Vec<String> {
    questions.iter().filter(|question| filter.may_contain(question.as_str())).cloned().collect()
}

#[test]
fn both_make_the_same_empty_files() {
    let Some(program) = Program::find() else { return };
    let mut cells = 0;
    for n in [1, 2, 3, 7, 10, 63, 100, 999, 1_000, 12_345, 100_000, 1_000_000] {
        for p in ["0.5", "0.1", "0.05", "0.01", "0.003", "0.001", "0.0001", "1e-9"] {
            let theirs = fs::read(program.create(Packing::Plain, (n, p), "empty.bloom", &[])).unwrap();
            let ours = written(&dcso::create(n, p.parse().unwrap()).unwrap(), b"", Packing::Plain);
            assert!(ours == theirs, "n {n}, p {p}");
            cells += 1;
        }
    }
    println!("{cells} sizes");
}

#[test]
fn both_build_the_same_files_and_give_the_same_answers() {
    let Some(program) = Program::find() else { return };
    let members = lines("member", 5_000);
    let questions = [&members[..], &lines("stranger", 20_000)].concat();
    for (p, packing) in [("0.01", Packing::Plain), ("0.001", Packing::Gzip)] {
        let theirs = program.create(packing, (5_000, p), "theirs.bloom", &members);
        let mut built = dcso::create(5_000, p.parse().unwrap()).unwrap();
        built.insert_batch(&members);
        let read = read(&theirs);
        let plain = written(&built, b"", Packing::Plain);
        assert_eq!(read.packing, packing);
        assert!(written(&read.filter, &read.data, Packing::Plain) == plain);
        if packing == Packing::Plain {
            assert!(fs::read(&theirs).unwrap() == plain);
        }

        // The program on our file, and we on its.
        let ours = program.file("ours.bloom", &built, b"", packing);
        let found = answered(&read.filter, &questions);
        assert!(
            found.len() > members.len(),
            "some non-members are answered wrongly, and by both the same ones"
        );
        assert_eq!(program.run(packing, &["check"], &ours, &questions), found);
        assert_eq!(program.run(packing, &["check"], &theirs, &questions), found);

        // It would notice a difference.
        let mut spoiled = plain;
        spoiled[48..].iter_mut().step_by(8).for_each(|byte| *byte &= 0x7f);
        let spoiled = dcso::read(&spoiled, 0).unwrap().filter;
        let spoiled = program.file("spoiled.bloom", &spoiled, b"", packing);
        assert_ne!(program.run(packing, &["check"], &spoiled, &questions), found);
    }
}

#[test]
fn each_continues_with_the_file_of_the_other() {
    let Some(program) = Program::find() else { return };
    let (first, second) = (lines("first", 1_000), lines("second", 1_000));
    for packing in [Packing::Plain, Packing::Gzip] {
        let mut whole = dcso::create(2_000, 0.01).unwrap();
        whole.insert_batch(&first);
        let file = program.file("shared.bloom", &whole, b"kept", packing);
        whole.insert_batch(&second);
        // We begin, the program continues.
        program.run(packing, &["insert"], &file, &second);
        let read_back = read(&file);
        assert_eq!((read_back.data.as_slice(), read_back.packing), (&b"kept"[..], packing));
        assert!(written(&read_back.filter, b"", Packing::Plain) == written(&whole, b"", Packing::Plain));
        // The program begins, we go on.
        let file = program.create(packing, (2_000, "0.01"), "begun.bloom", &first);
        let mut begun = read(&file).filter;
        begun.insert_batch(&second);
        assert!(written(&begun, b"", Packing::Plain) == written(&whole, b"", Packing::Plain));
        let ours = program.file("begun.bloom", &begun, b"", packing);
        assert_eq!(program.run(packing, &["check"], &ours, &second), second);
    }
}

#[test]
fn data_is_attached_by_either() {
    let Some(program) = Program::find() else { return };
    let filter = dcso::create(10, 0.1).unwrap();
    for packing in [Packing::Plain, Packing::Gzip] {
        let file = program.file("data.bloom", &filter, b"ours\n", packing);
        assert_eq!(program.run(packing, &["get-data"], &file, &[]), ["ours"]);
        program.run(packing, &["set-data"], &file, &["theirs".to_owned()]);
        assert_eq!(read(&file).data, b"theirs\n");
    }
}

#[test]
fn joined_by_either_is_the_same() {
    let Some(program) = Program::find() else { return };
    let (mut left, mut right) = (dcso::create(1_000, 0.01).unwrap(), dcso::create(1_000, 0.01).unwrap());
    left.insert_batch(&lines("left", 500));
    right.insert_batch(&lines("right", 500));
    let into = program.file("left.bloom", &left, b"", Packing::Plain);
    let from = program.file("right.bloom", &right, b"", Packing::Plain);
    program.run(Packing::Plain, &["join", into.to_str().unwrap()], &from, &[]);
    left.union(&right).unwrap();
    // Both guess how many different items that makes, in different ways.
    let bits = |filter: &Bloom| written(filter, b"", Packing::Plain)[48..].to_vec();
    assert!(bits(&read(&into).filter) == bits(&left));
}

#[test]
fn a_line_is_an_item() {
    let Some(program) = Program::find() else { return };
    let mut filter = dcso::create(100, 1e-6).unwrap();
    for item in ["", "plain", " padded ", "tab\t"] {
        filter.insert(item);
    }
    let file = program.file("lines.bloom", &filter, b"", Packing::Plain);
    let questions = ["", "plain", " padded ", "padded", "tab\t", "tab", "plain\r"].map(str::to_owned);
    // One `\r` before the newline is not part of a line.
    let found = ["", "plain", " padded ", "tab\t", "plain"];
    assert_eq!(program.run(Packing::Plain, &["check"], &file, &questions), found);
}
