//! The whole way from bytes to items, compared with simple implementations, for input in small pieces with pauses.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use clap::Parser;

use super::compression::Unpacked;
use super::drip::{Drip, Random};
use super::*;
use crate::progress::ProgressArgs;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    input: InputArgs,
}

fn input(arguments: &str) -> InputArgs {
    Command::try_parse_from(["mayhap"].into_iter().chain(arguments.split_whitespace())).unwrap().input
}

/// The records with their terminators, items and places.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    header: Option<Vec<u8>>,
    records: Vec<Vec<u8>>,
    items: Vec<Vec<u8>>,
    places: Vec<String>,
}

fn take_all(mut blocks: Blocks) -> Result<Seen, String> {
    let mut seen = Seen { header: blocks.header().map_err(|error| error.to_string())?, ..Seen::default() };
    while let Some(block) = blocks.next().map_err(|error| error.to_string())? {
        assert_eq!(block.items().len(), block.len());
        assert_eq!(
            (0..block.len()).map(|index| block.record(index)).collect::<Vec<_>>().concat(),
            block.records(0..block.len())
        );
        for index in 0..block.len() {
            seen.records.push(block.record(index).to_vec());
            seen.items.push(block.item(index).to_vec());
            seen.places.push(block.place(index));
        }
        blocks.reuse(block);
    }
    Ok(seen)
}

/// Reads `text`, which arrives in pieces of at most `at_most` bytes with occasional pauses.
fn see(arguments: &str, text: &[u8], random: &mut Random, at_most: usize) -> Result<Seen, String> {
    let drip = Drip::new(text.to_vec(), random.below(1 << 30) as u64, at_most);
    let pauses = RefCell::new(Random(random.below(1 << 30) as u64));
    take_all(reader::start_with(input(arguments).asked().unwrap(), move |reader| {
        let unpacked = Unpacked::new(Box::new(drip)).unwrap();
        reader.read_records("it".into(), unpacked, || pauses.borrow_mut().below(4) == 0, false)
    }))
}

/// The records of `text` by a simple split, with their terminators.
fn split(text: &[u8], end: u8, missing: &[u8]) -> Vec<Vec<u8>> {
    let mut records: Vec<_> = text.split_inclusive(|&byte| byte == end).map(<[u8]>::to_vec).collect();
    if let Some(last) = records.last_mut().filter(|last| last.last() != Some(&end)) {
        last.extend_from_slice(missing);
    }
    records
}

#[test]
fn lines_match_a_simple_split_for_any_read_size() {
    let mut random = Random(1);
    for round in 0..1_000 {
        let text = random.text(&["a", "bc", "\n", "\r\n", "\0", "\r", " ", "é", "\u{ff}"], 40);
        let at_most = [1, 3, 1000][round % 3];
        let expect = |arguments: &str, end: u8, missing: &[u8], item: &dyn Fn(&[u8]) -> Vec<u8>| {
            let records = split(&text, end, missing);
            let items = records.iter().map(|record| item(record)).collect();
            let places = (1..=records.len())
                .map(|line| format!("it, {} {line}", if end == 0 { "record" } else { "line" }))
                .collect();
            (arguments.to_owned(), Seen { header: None, records, items, places })
        };
        let without = |end: &'static [u8]| move |record: &[u8]| record.strip_suffix(end).unwrap().to_vec();
        let crlf =
            |record: &[u8]| record.strip_suffix(b"\r\n").or(record.strip_suffix(b"\n")).unwrap().to_vec();
        let trim = |record: &[u8]| record.trim_ascii().to_vec();
        for (arguments, expected) in [
            expect("", b'\n', b"\n", &without(b"\n")),
            expect("-0", 0, b"\0", &without(b"\0")),
            expect("--crlf", b'\n', b"\r\n", &crlf),
            expect("--trim", b'\n', b"\n", &trim),
        ] {
            let seen = see(&arguments, &text, &mut random, at_most).unwrap();
            assert_eq!(seen, expected, "{arguments} {:?}", String::from_utf8_lossy(&text));
        }
    }
}

#[test]
fn large_input_is_read_completely_in_many_blocks() {
    let lines: Vec<_> = (0..400_000).map(|line| format!("https://example.org/{line}\n")).collect();
    let text = lines.concat();
    let mut random = Random(9);
    let seen = see("", text.as_bytes(), &mut random, 1 << 17).unwrap();
    assert_eq!(seen.records.concat(), text.as_bytes());
    assert_eq!(seen.items.len(), lines.len());
    assert_eq!(seen.places.last().unwrap(), "it, line 400,000");
}

#[test]
fn columns_match_a_simple_split() {
    let mut random = Random(2);
    let mut skipped_some = 0;
    for _ in 0..1_000 {
        let text = random.text(&["a", "b", ",", ",", "\n"], 40);
        let records = split(&text, b'\n', b"\n");
        let field = |record: &[u8]| {
            let line = record.strip_suffix(b"\n").unwrap();
            line.split(|&byte| byte == b',').nth(1).map(<[u8]>::to_vec)
        };
        let seen = see("-t , -k 2 --skip-missing", &text, &mut random, 7).unwrap();
        let kept: Vec<_> = records.iter().enumerate().filter(|(_, record)| field(record).is_some()).collect();
        skipped_some += usize::from(kept.len() < records.len() && !kept.is_empty());
        assert_eq!(seen.items, kept.iter().map(|(_, record)| field(record).unwrap()).collect::<Vec<_>>());
        assert_eq!(seen.records, kept.iter().map(|(_, record)| record.to_vec()).collect::<Vec<_>>());
        assert_eq!(
            seen.places,
            kept.iter().map(|(at, _)| format!("it, line {}", at + 1)).collect::<Vec<_>>(),
            "lines keep their numbers when others are skipped"
        );
        match see("-t , -k 2", &text, &mut random, 7) {
            Ok(seen) => assert_eq!(seen.items.len(), records.len()),
            Err(said) => {
                let (line, record) =
                    records.iter().enumerate().find(|(_, record)| field(record).is_none()).unwrap();
                assert_eq!(field(record), None);
                assert_eq!(said, format!("it, line {}: no field 2: the record has 1 field", line + 1));
            }
        }
    }
    assert!(skipped_some > 400);
}

#[test]
fn csv_matches_the_csv_crate() {
    let mut random = Random(4);
    let pieces = ["a", "b", ",", ",", "\"x,\"\"\n\",", "\"y\"", "\n", "\r\n", "c\"d"];
    let mut compared = 0;
    for _ in 0..1_500 {
        let mut text = b"\xef\xbb\xbfid,\"name\",rest\n".to_vec();
        text.extend(random.text(&pieces, 25));
        let whole = ::csv::ReaderBuilder::new().flexible(true).from_reader(&text[..]);
        let items: Vec<_> = whole
            .into_byte_records()
            .filter_map(|record| record.unwrap().get(1).map(<[u8]>::to_vec))
            .collect();
        for arguments in ["--csv name --skip-missing", "--csv 2 --skip-missing", "--csv #2 --skip-missing"] {
            match see(arguments, &text, &mut random, 9) {
                Ok(seen) => {
                    assert_eq!(seen.header.as_deref(), Some(&b"id,\"name\",rest\n"[..]));
                    assert_eq!(seen.items, items, "{:?}", String::from_utf8_lossy(&text));
                    compared += seen.items.len();
                }
                Err(said) => assert!(said.contains("a quoted field does not end"), "{said}"),
            }
        }
    }
    assert!(compared > 3_000, "{compared}");
}

#[test]
fn lines_of_csv_are_counted_as_an_editor_counts_them() {
    let text = b"\n\nid,name\n1,\"two\nlines\"\n\n2,b\n3\n4,\"c\n\nd\"\n";
    let mut random = Random(1);
    for at_most in [1, 5, 100] {
        let seen = see("--csv name --skip-missing", text, &mut random, at_most).unwrap();
        assert_eq!(seen.places, ["it, line 4", "it, line 7", "it, line 9"]);
        assert_eq!(seen.items, [&b"two\nlines"[..], b"b", b"c\n\nd"]);
        assert_eq!(seen.records, [&b"1,\"two\nlines\"\n"[..], b"2,b\n", b"4,\"c\n\nd\"\n"]);
        let said = see("--csv name", text, &mut random, at_most).unwrap_err();
        assert_eq!(said, "it, line 8: no column \"name\": the record has 1 field");
        let said = see("--csv nick", text, &mut random, at_most).unwrap_err();
        assert_eq!(said, "it: no column \"nick\" in the header: id, name");
        let said = see("--csv 3", text, &mut random, at_most).unwrap_err();
        assert_eq!(said, "it: no column 3: the header has 2 fields");
        let cut = &text[..text.len() - 2];
        let said = see("--csv id", cut, &mut random, at_most).unwrap_err();
        assert_eq!(
            said,
            "it, line 9: a quoted field does not end: is a quote missing, or is the file truncated?"
        );
    }
}

#[test]
fn csv_without_rows_has_a_header_and_empty_csv_has_none() {
    let mut random = Random(1);
    for text in ["id,name", "id,name\n", "\n id,name\n\n\r\n"] {
        let seen = see("--csv id", text.as_bytes(), &mut random, 3).unwrap();
        assert_eq!(
            (seen.header.map(|header| header.trim_ascii().to_vec()), seen.items.len()),
            (Some(b"id,name".to_vec()), 0)
        );
    }
    let seen = see("--csv id", b"", &mut random, 3).unwrap();
    assert_eq!(seen, Seen::default());
    let seen = see("--csv 1 --no-header", b"7,a\n8,b", &mut random, 3).unwrap();
    assert_eq!((seen.header, seen.items), (None, vec![b"7".to_vec(), b"8".to_vec()]));
    let seen = see("--csv 2 -t ; --crlf", b"id;name\r\n7;a\r\n8;\"b;\"", &mut random, 3).unwrap();
    assert_eq!(seen.items, [&b"a"[..], b"b;"]);
    assert_eq!(seen.records, [&b"7;a\r\n"[..], b"8;\"b;\"\r\n"]);
}

#[test]
fn json_lines_give_their_fields() {
    let text = b"\xef\xbb\xbf{\"u\":{\"id\":\" a\\u00e9 \"}}\n\n{\"u\":{}}\n{\"u\":{\"id\":12.50}}\r\n{\"u\":{\"id\":null}}\n{\"u\":{\"id\":true}}";
    let mut random = Random(1);
    for at_most in [1, 5, 100] {
        let seen = see("--jsonl u.id --skip-missing", text, &mut random, at_most).unwrap();
        assert_eq!(seen.items, [" aé ".as_bytes(), b"12.50", b"true"]);
        assert_eq!(seen.places, ["it, line 1", "it, line 4", "it, line 6"]);
        assert_eq!(seen.records[2], b"{\"u\":{\"id\":true}}\n");
        let seen = see("--jsonl .u.id --skip-missing --trim", text, &mut random, at_most).unwrap();
        assert_eq!(seen.items[0], "aé".as_bytes());
        let said = see("--jsonl u.id", text, &mut random, at_most).unwrap_err();
        assert_eq!(said, "it, line 3: no field \"u.id\"");
    }
    let said = see("--jsonl a --skip-missing", b"{}\n{\"a\":1}\n{\"a\" 1}\n", &mut random, 4).unwrap_err();
    assert_eq!(said, "it, line 3: invalid JSON at column 6: expected `:`");
}

#[test]
fn skipped_records_are_counted() {
    let args = input("-k 2 --skip-missing");
    let text = b"a b\nc\n\nd e\n".to_vec();
    let blocks = reader::start_with(args.asked().unwrap(), move |reader| {
        reader.read_records("it".into(), Unpacked::plain(Box::new(&*text.leak())), || false, false)
    });
    assert_eq!(take_all(blocks).unwrap().items, [b"b", b"e"]);
    assert_eq!(args.skipped(), 2);
}

#[test]
fn contradictory_options_are_rejected() {
    for arguments in [
        "-t ,",
        "-t tab --jsonl a",
        "-k 1 --csv a",
        "-k 0",
        "--csv a --jsonl b",
        "-0 --crlf",
        "-0 --csv a",
        "--skip-missing",
        "--no-header",
        "-k 1 -t ab",
        "-k 1 -t é",
        "-k 1 -t=",
        "--jsonl a..b",
    ] {
        let words = ["mayhap"].into_iter().chain(arguments.split_whitespace());
        assert!(Command::try_parse_from(words).is_err(), "{arguments}");
    }
    for (arguments, said) in [
        ("--csv a --no-header", "--csv: with --no-header a column must be a number, got \"a\""),
        ("--csv a -t \"", "-t: a quote cannot separate CSV fields"),
    ] {
        assert_eq!(input(arguments).asked().unwrap_err().to_string(), said);
    }
    assert_eq!(input("-k 1 -t \\t").delimiter, Some(b'\t'));
    assert_eq!(input("-k 1 -t tab").delimiter, Some(b'\t'));
}

/// A new temporary directory.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("mayhap-input-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn files_are_read_in_order_and_lines_are_not_joined() {
    let folder = folder("files");
    let (first, second) = (folder.join("first"), folder.join("second"));
    fs::write(&first, "a\nb").unwrap();
    fs::write(&second, "c\n").unwrap();
    let args =
        InputArgs { files: vec![first.clone(), second.clone(), first.clone()], ..InputArgs::default() };
    let progress = Progress::start(ProgressArgs::default());
    let seen = take_all(args.open(&progress).unwrap()).unwrap();
    assert_eq!(seen.records, [b"a\n", b"b\n", b"c\n", b"a\n", b"b\n"]);
    assert_eq!(seen.places[2], format!("{}, line 1", second.display()));

    let said = |files: &[PathBuf]| {
        let args = InputArgs { files: files.to_vec(), ..InputArgs::default() };
        args.open(&progress).map(|_| ()).unwrap_err().to_string()
    };
    let missing = folder.join("missing");
    assert_eq!(
        said(&[first.clone(), missing.clone()]),
        format!("cannot read {}: no such file or directory", missing.display())
    );
    assert_eq!(
        said(std::slice::from_ref(&folder)),
        format!("cannot read {}: is a directory", folder.display())
    );
    assert_eq!(
        said(&["-".into(), first, "-".into()]),
        "standard input (-) is named twice, but can be read only once"
    );
    fs::remove_dir_all(folder).unwrap();
}
