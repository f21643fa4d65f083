//! `mayhap check` as users run it: the real program, real files, its output and its exit codes.

mod program;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mayhap::{
    BinaryFuse8, BinaryFuse16, BinaryFuse32, Bitmap, BlockedBloom, Bloom, CountingBloom, Cuckoo, DLeft,
    DualBloom, Filter, Gcs, GrowableCuckoo, Growing, HashScheme, Quotient, Ribbon, ScalableBloom, Window,
    Xor8, Xor16, Xor32, file,
};
use serde_json::Value;

use program::{error_line, run, said};

fn folder(name: &str) -> PathBuf {
    program::empty_folder("check", name)
}

fn mayhap(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = program::mayhap_in(folder);
    command.args(arguments);
    command
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let (_, out, error) = run(folder, arguments);
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{arguments:?}: {out} {error}"))
}

const ITEMS: u64 = 2_000;

fn member(number: u64) -> String {
    format!("https://example.org/member/{number}")
}

fn non_member(number: u64) -> String {
    format!("user-{number}@example.net")
}

/// A filter of every kind, all with the same members.
fn every_kind() -> Vec<(&'static str, Filter)> {
    let scheme = HashScheme::fast(5);
    let items = || (0..ITEMS).map(member);
    let mut growing = vec![
        ("bloom", Filter::Bloom(Bloom::for_capacity(ITEMS, 0.01, 5).unwrap())),
        ("blocked-bloom", Filter::BlockedBloom(BlockedBloom::for_capacity(ITEMS, 0.01, 5).unwrap())),
        (
            "keyed",
            Filter::Bloom(Bloom::for_capacity(ITEMS, 0.01, HashScheme::keyed_random().unwrap()).unwrap()),
        ),
        ("counting-bloom", Filter::CountingBloom(CountingBloom::for_capacity(ITEMS, 0.01, 5).unwrap())),
        ("dual-bloom", Filter::DualBloom(DualBloom::for_capacity(ITEMS, 100, 0.01, 5).unwrap())),
        ("scalable-bloom", Filter::ScalableBloom(ScalableBloom::for_capacity(ITEMS / 8, 0.01, 5).unwrap())),
        ("d-left", Filter::DLeft(DLeft::for_capacity(ITEMS, 0.01, 5).unwrap())),
        ("cuckoo", Filter::Cuckoo(Cuckoo::for_capacity(ITEMS, 0.01, 5).unwrap())),
        (
            "growable-cuckoo",
            Filter::GrowableCuckoo(GrowableCuckoo::for_growth(100, 10_000, 0.01, 5).unwrap()),
        ),
        ("quotient", Filter::Quotient(Quotient::for_capacity(ITEMS, 0.01, 5).unwrap())),
        ("growing", Filter::Growing(Growing::for_capacity(100, 0.01, 5).unwrap())),
        ("window", Filter::Window(Window::of_items(ITEMS, 0.01, 5).unwrap())),
    ];
    for (name, filter) in &mut growing {
        items().for_each(|item| {
            filter.insert(&item).unwrap_or_else(|error| panic!("{name}: {error}"));
        });
    }
    growing.extend([
        ("xor8", Filter::Xor8(Xor8::build(items(), scheme).unwrap())),
        ("xor16", Filter::Xor16(Xor16::build(items(), scheme).unwrap())),
        ("xor32", Filter::Xor32(Xor32::build(items(), scheme).unwrap())),
        ("fuse8", Filter::BinaryFuse8(BinaryFuse8::build(items(), scheme).unwrap())),
        ("fuse16", Filter::BinaryFuse16(BinaryFuse16::build(items(), scheme).unwrap())),
        ("fuse32", Filter::BinaryFuse32(BinaryFuse32::build(items(), scheme).unwrap())),
        ("ribbon", Filter::Ribbon(Ribbon::build(items(), 0.01, scheme).unwrap())),
        ("gcs", Filter::Gcs(Gcs::build(items(), 0.01, scheme).unwrap())),
    ]);
    growing
}

fn small_bloom(folder: &Path) -> Bloom {
    let mut filter = Bloom::for_capacity(100, 0.001, 1).unwrap();
    ["ada", "grace", "edsger"].iter().for_each(|name| {
        filter.insert(*name);
    });
    file::save(&filter, folder.join("seen.mayhap")).unwrap();
    filter
}

#[test]
fn every_kind_finds_its_members_and_answers_as_the_library_does() {
    let folder = folder("kinds");
    let members: String = (0..ITEMS).map(|number| member(number) + "\n").collect();
    let non_members: Vec<String> = (0..20_000).map(non_member).collect();
    fs::write(folder.join("members.txt"), &members).unwrap();
    fs::write(folder.join("non-members.txt"), non_members.join("\n")).unwrap(); // the last one without an end
    for (name, filter) in every_kind() {
        let path = format!("{name}.mayhap");
        file::save(&filter, folder.join(&path)).unwrap();
        let (code, out, error) = run(&folder, &["check", &path, "members.txt"]);
        assert_eq!((code, error.as_str()), (0, ""), "{name}");
        assert!(out == members, "{name}: {} members", out.lines().count());
        let (code, out, _) = run(&folder, &["check", "-v", &path, "members.txt"]);
        assert_eq!((code, out.as_str()), (1, ""), "{name}: no member is missing, and the exit code says so");

        let wrong: Vec<&str> =
            non_members.iter().filter(|item| filter.may_contain(*item)).map(String::as_str).collect();
        let (code, out, _) = run(&folder, &["check", &path, "non-members.txt"]);
        assert_eq!(out.lines().collect::<Vec<_>>(), wrong, "{name}");
        assert_eq!(code, i32::from(wrong.is_empty()), "{name}");
        let (code, out, _) = run(&folder, &["check", "-v", "-j1", &path, "non-members.txt"]);
        assert_eq!((code, out.lines().count()), (0, non_members.len() - wrong.len()), "{name}");
        let counts = json(&folder, &["check", "--json", &path, "non-members.txt"]);
        assert_eq!(counts["lines"], non_members.len(), "{name}");
        assert_eq!(
            (&counts["mayhap"], &counts["no"]),
            (&Value::from(wrong.len()), &Value::from(non_members.len() - wrong.len()))
        );
        // The report estimates the false positives from the number of "no" answers.
        let expected = counts["expected_wrong_mayhaps"].as_f64().unwrap();
        let rate = filter.expected_fpr();
        let model = (counts["no"].as_f64().unwrap() * rate / (1.0 - rate)).min(wrong.len() as f64);
        assert!((expected - model).abs() < 1e-6, "{name}: {expected} {model}");
    }
}

#[test]
fn many_blocks_stay_in_order_for_any_number_of_threads() {
    let folder = folder("blocks");
    let mut filter = BlockedBloom::for_capacity(100_000, 0.01, 5).unwrap();
    let lines: Vec<String> = (0..200_000_u64)
        .map(|number| if number % 3 == 0 { member(number) } else { non_member(number) })
        .collect();
    (0..200_000).step_by(3).for_each(|number| {
        filter.insert(&member(number));
    });
    file::save(&filter, folder.join("seen.mayhap")).unwrap();
    fs::write(folder.join("lines.txt"), lines.join("\n") + "\n").unwrap(); // some 7 blocks
    let expected: String =
        lines.iter().filter(|line| filter.may_contain(*line)).map(|line| format!("{line}\n")).collect();
    for threads in ["-j1", "-j2", "-j7"] {
        let (code, out, _) = run(&folder, &["check", threads, "seen.mayhap", "lines.txt"]);
        assert!(code == 0 && out == expected, "{threads}");
    }
    // From several files and standard input, one after another.
    let mut child = mayhap(&folder, &["check", "-c", "seen.mayhap", "lines.txt", "-", "lines.txt"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.join("\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(said(&output).1.trim(), (3 * expected.lines().count()).to_string());
}

#[test]
fn each_output_option_prints_what_it_promises() {
    let folder = folder("forms");
    small_bloom(&folder);
    fs::write(folder.join("names.txt"), "ada\nlinus\n\ngrace\nada\nken").unwrap();
    let out =
        |arguments: &[&str]| run(&folder, &[&["check"], arguments, &["seen.mayhap", "names.txt"]].concat());
    let ok = |text: &str| (0, text.to_owned(), String::new());
    assert_eq!(out(&[]), ok("ada\ngrace\nada\n"));
    assert_eq!(out(&["-v"]), ok("linus\n\nken\n"), "an empty line is an item, the last line gets its end");
    assert_eq!(out(&["-c"]), ok("3\n"));
    assert_eq!(out(&["-vc"]), ok("3\n"));
    assert_eq!(out(&["-n"]), ok("1:ada\n4:grace\n5:ada\n"));
    assert_eq!(out(&["-vn"]), ok("2:linus\n3:\n6:ken\n"));
    assert_eq!(out(&["-q"]), ok(""));
    assert_eq!(out(&["-m", "2"]), ok("ada\ngrace\n"));
    assert_eq!(out(&["-c", "-m", "2"]), ok("2\n"));
    assert_eq!(out(&["-m", "0"]).0, 1);
    let tagged = "mayhap\tada\nno\tlinus\nno\t\nmayhap\tgrace\nmayhap\tada\nno\tken\n";
    assert_eq!(out(&["--annotate"]), ok(tagged));
    assert_eq!(out(&["--tag"]), ok(tagged));
    assert_eq!(out(&["--annotate", "-m", "2"]), ok("mayhap\tada\nno\tlinus\nno\t\nmayhap\tgrace\n"));
    assert_eq!(out(&["--annotate", "-n", "-v", "-m1"]), ok("mayhap\t1:ada\nno\t2:linus\n"));
}

#[test]
fn items_on_the_command_line_are_answered() {
    let folder = folder("items");
    small_bloom(&folder);
    let ask = |arguments: &[&str]| run(&folder, &[&["check", "seen.mayhap"], arguments].concat());
    assert_eq!(ask(&["--item", "ada"]), (0, "ada\n".into(), String::new()));
    assert_eq!(ask(&["--item", "linus"]), (1, String::new(), String::new()));
    assert_eq!(ask(&["-q", "--item", "ada"]), (0, String::new(), String::new()));
    assert_eq!(ask(&["-vq", "--item", "ada"]).0, 1);
    let (code, out, _) = ask(&["--annotate", "--item", "linus", "--item", "ada"]);
    assert_eq!((code, out.as_str()), (0, "no\tlinus\nmayhap\tada\n"));
    let report = json(&folder, &["check", "seen.mayhap", "--json", "--item", "linus", "--item", "ada"]);
    assert_eq!(report["items"][0]["item"], "linus");
    assert_eq!((&report["items"][0]["mayhap"], &report["items"][1]["mayhap"]), (&false.into(), &true.into()));
    assert_eq!(
        (&report["lines"], &report["mayhap"], &report["over_capacity"]),
        (&2.into(), &1.into(), &false.into())
    );
    fs::write(folder.join("more.txt"), "grace\n").unwrap();
    let (_, out, _) = ask(&["--item", "ada", "more.txt"]);
    assert_eq!(out, "ada\ngrace\n", "files are read, too, if there are any");
}

#[test]
fn unusual_lines_are_items_as_they_are() {
    let folder = folder("ugly");
    let mut filter = Bloom::for_capacity(100, 0.0001, 1).unwrap();
    filter.insert(b"caf\xe9".as_slice());
    filter.insert("ada");
    filter.insert("");
    file::save(&filter, folder.join("seen.mayhap")).unwrap();
    fs::write(folder.join("latin1.txt"), b"caf\xe9\ncaf\xe8\n").unwrap();
    let output = mayhap(&folder, &["check", "seen.mayhap", "latin1.txt"]).output().unwrap();
    assert_eq!(output.stdout, b"caf\xe9\n");
    fs::write(folder.join("crlf.txt"), b"ada\r\nada\n").unwrap();
    assert_eq!(run(&folder, &["check", "seen.mayhap", "crlf.txt"]).1, "ada\n");
    assert_eq!(run(&folder, &["check", "--crlf", "seen.mayhap", "crlf.txt"]).1, "ada\r\nada\n");
    fs::write(folder.join("null.txt"), b"ada\0a\nb\0").unwrap();
    assert_eq!(run(&folder, &["check", "-0", "seen.mayhap", "null.txt"]).1, "ada\0");
    fs::write(folder.join("empty.txt"), b"").unwrap();
    assert_eq!(run(&folder, &["check", "seen.mayhap", "empty.txt"]), (1, String::new(), String::new()));
    assert_eq!(run(&folder, &["check", "-c", "seen.mayhap", "empty.txt"]), (1, "0\n".into(), String::new()));
    assert_eq!(
        error_line(&folder, &["check", "seen.mayhap", "not-there.txt"]),
        "mayhap: cannot read not-there.txt: no such file or directory\n"
    );
    assert_eq!(
        error_line(&folder, &["check", "seen.mayhap", "."]),
        "mayhap: cannot read .: is a directory\n"
    );
    assert_eq!(
        error_line(&folder, &["check", "not-there.mayhap", "crlf.txt"]),
        "mayhap: cannot read not-there.mayhap: no such file or directory\n"
    );
    assert!(error_line(&folder, &["check", ".", "crlf.txt"]).contains(": "), "a directory is no filter");
    assert!(
        error_line(&folder, &["check", "crlf.txt", "crlf.txt"]).contains("not a filter in a known format")
    );
    assert!(
        error_line(&folder, &["check", "empty.txt", "crlf.txt"]).contains("an empty file is not a filter")
    );
}

#[test]
fn a_closed_pipe_is_no_error_and_a_full_disk_is() {
    let folder = folder("pipes");
    small_bloom(&folder);
    fs::write(folder.join("many.txt"), "ada\n".repeat(500_000)).unwrap();
    let mut child = mayhap(&folder, &["check", "seen.mayhap", "many.txt"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 4];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap(); // and leaves
    let output = child.wait_with_output().unwrap();
    assert_eq!((&first, said(&output)), (b"ada\n", (0, String::new(), String::new())));
    for flag in ["-v", "-c", "--json"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let lines = if flag == "-v" { "names.txt" } else { "many.txt" };
        fs::write(folder.join("names.txt"), "linus\n").unwrap();
        let output = mayhap(&folder, &["check", flag, "seen.mayhap", lines]).stdout(full).output().unwrap();
        let (code, _, error) = said(&output);
        assert_eq!(
            (code, error.as_str()),
            (2, "mayhap: cannot write the output: no space left on device\n"),
            "{flag}"
        );
    }
}

/// A typed line is answered before the next is typed, and `-q` does not wait for the end of the input.
#[test]
fn answers_do_not_wait_for_the_end_of_the_input() {
    let folder = folder("live");
    small_bloom(&folder);
    for flag in ["--annotate", "--line-buffered"] {
        let mut child = mayhap(&folder, &["check", flag, "seen.mayhap"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut typed, mut answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        for _ in 0..3 {
            typed.write_all(b"ada\n").unwrap();
            let want: &[u8] = if flag == "--annotate" { b"mayhap\tada\n" } else { b"ada\n" };
            let mut got = vec![0; want.len()];
            answers.read_exact(&mut got).unwrap();
            assert_eq!(got, want);
        }
        drop(typed);
        assert!(child.wait().unwrap().success());
    }
    let mut child = mayhap(&folder, &["check", "-q", "seen.mayhap"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut typed = child.stdin.take().unwrap();
    typed.write_all(b"linus\nada\n").unwrap();
    let started = Instant::now();
    assert!(child.wait().unwrap().success(), "the input is still open");
    assert!(started.elapsed() < Duration::from_secs(20));
    drop(typed);
}

#[test]
fn a_filter_over_capacity_causes_one_warning_with_the_numbers() {
    let folder = folder("over");
    let mut filter = Bloom::for_capacity(1_000, 0.01, 3).unwrap();
    (0..5_000).for_each(|number| {
        filter.insert(&member(number));
    });
    file::save(&filter, folder.join("over.mayhap")).unwrap();
    fs::write(folder.join("lines.txt"), "one\ntwo\n".repeat(200_000)).unwrap();
    let (_, _, error) = run(&folder, &["check", "over.mayhap", "lines.txt"]);
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(
        error.starts_with("mayhap: warning: over.mayhap: over capacity: made for 1,000 items, holds "),
        "{error}"
    );
    assert!(error.contains("; the false-positive rate is ") && error.contains(", not 1%"), "{error}");
    assert_eq!(run(&folder, &["check", "-q", "over.mayhap", "lines.txt"]).2, "", "--quiet is quiet");
    assert_eq!(json(&folder, &["check", "--json", "over.mayhap", "lines.txt"])["over_capacity"], true);

    let mut full = Bloom::for_capacity(1_000, 0.01, 3).unwrap();
    (0..1_000).for_each(|number| {
        full.insert(&member(number));
    });
    file::save(&full, folder.join("full.mayhap")).unwrap();
    assert_eq!(run(&folder, &["check", "full.mayhap", "lines.txt"]).2, "", "full is not over");
}

#[test]
fn a_damaged_filter_is_an_error() {
    let folder = folder("damaged");
    let good = small_bloom(&folder).encode();
    let damaged = |name: &str, bytes: &[u8]| {
        fs::write(folder.join(name), bytes).unwrap();
        error_line(&folder, &["check", name, "--item", "ada"])
    };
    let mut header = good.clone();
    header[60] ^= 1;
    assert!(damaged("header.mayhap", &header).contains("header is damaged"));

    assert!(damaged("cut.mayhap", &good[..good.len() - 1]).contains("bytes"));
    let mut newer = good;
    newer[8] = 9;
    assert!(damaged("newer.mayhap", &newer).contains("format version 9 is not known"));
}

/// The words of the filter are a hole in the file. A program that reads them reads 4 GiB; one that maps them reads nothing.
#[test]
fn a_filter_of_four_gibibytes_answers_immediately() {
    let folder = folder("huge");
    let path = folder.join("huge.mayhap");
    let (bits, header_bytes) = (1_u64 << 35, 192);
    // The header of a large filter, made from a small one: bits, payload and checksum are patched.
    let small = Bloom::with_shape(mayhap::BloomShape::exactly(512, 7, 50).unwrap(), 1).unwrap();
    let mut header = small.encode()[..header_bytes].to_vec();
    header[48..56].copy_from_slice(&3_000_000_000_u64.to_le_bytes());
    header[64..72].copy_from_slice(&0.01_f64.to_le_bytes());
    header[16..24].copy_from_slice(&(bits / 8).to_le_bytes());
    header[72..80].copy_from_slice(&bits.to_le_bytes());
    let checksum = xxhash_rust::xxh3::xxh3_64(&header[..header_bytes - 8]);
    header[header_bytes - 8..].copy_from_slice(&checksum.to_le_bytes());
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(&header).unwrap();
    file.set_len(header_bytes as u64 + bits / 8).unwrap();
    drop(file);
    for arguments in [&["check", "huge.mayhap", "--item", "ada"][..], &["info", "huge.mayhap"]] {
        // The best of several runs: a busy machine is slow at times, but reading 4 GiB is slow every time.
        let took = (0..5).map(|_| {
            let started = Instant::now();
            let (code, out, error) = run(&folder, arguments);
            assert_eq!((code, error.as_str()), (i32::from(arguments[0] == "check"), ""), "{out}");
            started.elapsed()
        });
        let took = took.min().unwrap();
        assert!(took < Duration::from_millis(400), "{arguments:?} took {took:?}: was all of it read?");
    }
    fs::remove_file(&path).unwrap();
}

#[test]
fn a_bitmap_accepts_only_numbers() {
    let folder = folder("bitmap");
    let mut filter = Filter::Bitmap(Bitmap::of_range(13_000_000_000, 13_000_009_999).unwrap());
    filter.insert(&13_000_000_007_u64).unwrap();
    file::save(&filter, folder.join("phones.mayhap")).unwrap();
    fs::write(folder.join("phones.txt"), "13000000007\n13000000008\n5\n").unwrap();
    assert_eq!(run(&folder, &["check", "phones.mayhap", "phones.txt"]).1, "13000000007\n");
    fs::write(folder.join("mixed.txt"), "13000000008\nada\n13000000007\n-5\n").unwrap();
    let said = error_line(&folder, &["check", "phones.mayhap", "mixed.txt"]);
    assert!(said.contains("mixed.txt, line 2: \"ada\" is not an integer from 0 to 2^64 - 1"), "{said}");
    assert!(said.contains("--allow-misfits"), "{said}");
    let (code, out, _) =
        run(&folder, &["check", "--allow-misfits", "--annotate", "phones.mayhap", "mixed.txt"]);
    assert_eq!((code, out.as_str()), (0, "no\t13000000008\nno\tada\nmayhap\t13000000007\nno\t-5\n"));
    assert!(
        error_line(&folder, &["check", "phones.mayhap", "--item", "ada"])
            .contains("--item: \"ada\" is not an integer")
    );
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mayhap-formats/tests/vectors")
}

/// Lines of `prefix` and a number.
fn lines(folder: &Path, name: &str, prefix: &str, numbers: std::ops::Range<u64>) {
    fs::write(folder.join(name), numbers.map(|number| format!("{prefix}{number}\n")).collect::<String>())
        .unwrap();
}

/// Filters that other programs wrote give the answers of those programs, false positives included.
#[test]
fn filters_of_other_programs_answer_as_those_programs_do() {
    let folder = folder("foreign");
    lines(&folder, "items.txt", "item-", 0..1_000);
    lines(&folder, "absent.txt", "absent-", 0..10_000);
    lines(&folder, "absent3.txt", "absent-", 0..3_000);
    let redisson = "size=9585,hashIterations=7,expectedInsertions=1000,falseProbability=0.01";
    let cases: [(&str, &[&str], &str, u64); 5] = [
        ("guava/mitz64_n1000_p0.01.bin", &["--items-as", "utf8"], "absent.txt", 98),
        ("guava/mitz32_n1000_p0.01.bin", &["--items-as", "utf8", "--from", "guava"], "absent.txt", 94),
        ("spark/v1_n1000_p0.01.bin", &["--items-as", "utf8"], "absent.txt", 108),
        (
            "redisson/kryo5_n1000_p0.01.bin",
            &["--from", "redisson", "--items-as", "kryo5", "--redisson-config", redisson],
            "absent3.txt",
            43,
        ),
        ("parquet_sbbf/pyarrow.parquet", &["--column", "s"], "absent.txt", 0),
    ];
    for (vector, flags, absent, wrong) in cases {
        let path = vectors().join(vector);
        let path = path.to_str().unwrap();
        let count = |file: &str| {
            let (_, out, error) = run(&folder, &[&["check", "-c", path], flags, &[file]].concat());
            assert_eq!(error, "", "{vector}");
            out.trim().parse::<u64>().unwrap()
        };
        assert_eq!(count("items.txt"), 1_000, "{vector}");
        if wrong > 0 {
            assert_eq!(count(absent), wrong, "{vector}");
        }
    }
    // Numbers, as inserted by a Java program.
    lines(&folder, "longs.txt", "", 0..10_000);
    lines(&folder, "other-longs.txt", "", 10_000..30_000);
    let longs = vectors().join("guava/mitz64_long_n10000_p0.001.bin");
    for (file, maybe) in [("longs.txt", "10000\n"), ("other-longs.txt", "7\n")] {
        let arguments = ["check", "-c", longs.to_str().unwrap(), "--items-as", "i64le", file];
        assert_eq!(run(&folder, &arguments).1, maybe, "{file}");
    }
    // The numbers of xor_singleheader, which are hashes of 1 to 1,000.
    let key = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    fs::write(folder.join("keys.txt"), (1..=1_000).map(|n| format!("{}\n", key(n))).collect::<String>())
        .unwrap();
    let fuse = vectors().join("fuse/c_bfuse8_n1000.bin");
    let fuse = fuse.to_str().unwrap();
    let (_, out, _) =
        run(&folder, &["check", "-c", fuse, "--from", "fuse-c", "--items-as", "u64le", "keys.txt"]);
    assert_eq!(out, "1000\n");
}

#[test]
fn facts_missing_in_a_file_are_requested_by_flag() {
    let folder = folder("flags");
    let ask = |vector: &str, flags: &[&str]| {
        let path = vectors().join(vector);
        error_line(&folder, &[&["check", path.to_str().unwrap(), "--item", "1"], flags].concat())
    };
    assert!(
        ask("guava/mitz64_n1000_p0.01.bin", &[])
            .contains("guava files do not store how items become bytes: give --items-as")
    );
    assert!(
        ask("redisson/kryo5_n1000_p0.01.bin", &["--from", "redisson"])
            .contains("give --redisson-config size=…")
    );
    assert!(ask("parquet_sbbf/pyarrow.parquet", &[]).contains("give --column"));
    assert!(
        ask("parquet_sbbf/pyarrow.parquet", &["--column", "nobody"])
            .contains("no filter for column \"nobody\"")
    );
    assert!(
        ask("fuse/xorf_bfuse8_n3.serde.json", &["--items-as", "u64le"])
            .contains("give --fingerprint-bits 8, 16 or 32")
    );
    assert!(
        ask("python/pybloom_live_4.0.0_n1000_p0.1.bin", &["--from", "pybloom-live"])
            .contains("give --pybloom-version 3 or 4")
    );
    assert!(ask("dcso/words.bloom", &["--from", "nonsense"]).contains("format \"nonsense\" is not known"));
    assert!(
        ask("dcso/words.bloom", &["--from", "guava", "--items-as", "utf8"])
            .contains("not a valid guava file")
    );
}

/// A filter of 18 MB, which is mapped, with the first thousand members.
fn large_filter(folder: &Path) -> PathBuf {
    let mut filter = Bloom::for_capacity(15_000_000, 0.01, 5).unwrap();
    (0..1_000).for_each(|number| _ = filter.insert(&*member(number)));
    let path = folder.join("large.mayhap");
    file::save(&Filter::Bloom(filter), &path).unwrap();
    path
}

/// `check` with a pipe that stays open, after it has answered for one member.
struct Asking {
    child: std::process::Child,
    answers: std::io::BufReader<std::process::ChildStdout>,
}

impl Asking {
    fn begin(folder: &Path, flags: &[&str]) -> Self {
        let mut command = mayhap(folder, &["check", "--annotate", "large.mayhap"]);
        command.args(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let answers = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut asking = Self { child, answers };
        for number in 0..3 {
            assert_eq!(asking.ask(&member(number)), format!("mayhap\t{}\n", member(number)));
        }
        asking
    }

    /// The answer for one line; `None` if the program ends instead.
    fn ask(&mut self, line: &str) -> String {
        use std::io::BufRead as _;
        let asked = writeln!(self.child.stdin.as_mut().unwrap(), "{line}");
        let mut answer = String::new();
        let read = self.answers.read_line(&mut answer).unwrap();
        assert!(asked.is_ok() || read == 0);
        answer
    }

    /// Asks for the other members. No member gets "no", and the program reports why it ends.
    fn end(mut self) -> String {
        for number in 3..1_000 {
            let answer = self.ask(&member(number));
            if answer.is_empty() {
                break;
            }
            assert!(answer.starts_with("mayhap\t"), "{answer}");
        }
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().unwrap();
        let (code, _, error) = said(&output);
        assert_eq!((code, error.lines().count()), (2, 1), "{error}");
        error
    }
}

#[test]
fn a_filter_truncated_while_in_use_is_an_error_and_no_crash() {
    let folder = folder("cut");
    for flags in [["-j", "1"], ["-j", "4"]] {
        let path = large_filter(&folder);
        let asking = Asking::begin(&folder, &flags);
        let from = fs::metadata(&path).unwrap().len();
        fs::File::options().write(true).open(&path).unwrap().set_len(4_096).unwrap();
        let error = asking.end();
        let expected = format!(
            "mayhap: large.mayhap: file was truncated from {from} to 4096 bytes while it was in use\n"
        );
        assert_eq!(error, expected);
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_filter_overwritten_while_in_use_is_an_error_and_no_false_no() {
    let folder = folder("overwritten");
    let path = large_filter(&folder);
    // Another filter of the same size, without these members.
    let mut other = Filter::Bloom(Bloom::for_capacity(15_000_000, 0.01, 5).unwrap());
    other.insert("one").unwrap();
    let other = other.encode();
    assert_eq!(other.len() as u64, fs::metadata(&path).unwrap().len());
    let asking = Asking::begin(&folder, &[]);
    // In place, as `dd conv=notrunc` and `rsync --inplace` do.
    fs::File::options().write(true).open(&path).unwrap().write_all(&other).unwrap();
    assert_eq!(asking.end(), "mayhap: large.mayhap: file was overwritten while it was in use\n");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_filter_whose_file_is_replaced_continues_to_answer() {
    let folder = folder("replaced");
    let path = large_filter(&folder);
    let mut asking = Asking::begin(&folder, &[]);
    let other = folder.join("other.mayhap");
    file::save(&Filter::Bloom(Bloom::for_capacity(1_000, 0.01, 5).unwrap()), &other).unwrap();
    fs::rename(&other, &path).unwrap();
    for number in 3..50 {
        assert_eq!(asking.ask(&member(number)), format!("mayhap\t{}\n", member(number)));
    }
    drop(asking.child.stdin.take());
    assert!(asking.child.wait().unwrap().success());
    // A small filter was read when it was opened, so changes to its file do not matter.
    fs::remove_dir_all(&folder).unwrap();
}
