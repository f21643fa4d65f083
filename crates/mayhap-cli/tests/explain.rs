//! `mayhap explain` as its users run it: every kind, as text, as JSON, as a picture.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use mayhap::{
    BinaryFuse8, BinaryFuse16, Bitmap, BlockedBloom, BlockedLayout, BlockedShape, Bloom, CountingBloom,
    Cuckoo, CuckooShape, DLeft, DualBloom, Filter, FingerprintSet, Gcs, GrowableCuckoo, Growing, HashScheme,
    ItemEncoding, Kind, Quotient, Ribbon, ScalableBloom, ScalableCuckoo, SecretKey, Window, Xor8, file,
};
use mayhap_formats::Format;
use serde_json::Value;

const MEMBERS: u64 = 1_000;
const RATE: f64 = 0.02;

fn member(i: u64) -> String {
    format!("https://example.org/page/{i}")
}

fn non_member(i: u64) -> String {
    format!("ftp://nowhere.example/{i}")
}

fn members() -> impl Iterator<Item = String> {
    (0..MEMBERS).map(member)
}

/// A folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("explain").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn filled(mut filter: Filter) -> Filter {
    for item in members() {
        filter.insert(&item).unwrap();
    }
    filter
}

fn fingerprints(cuts: u32) -> Filter {
    let mut set = FingerprintSet::within(1 << 15, 1).unwrap();
    for item in members() {
        set.insert(&item).unwrap();
    }
    (0..cuts).for_each(|_| set.cut().unwrap());
    Filter::Fingerprints(set)
}

/// One filter of every kind with its own form of lookup, under the name of its file.
fn filters() -> Vec<(&'static str, Filter)> {
    let blocked = |layout, rate| {
        let shape = BlockedShape::with_layout(layout, MEMBERS, rate).unwrap();
        filled(Filter::BlockedBloom(BlockedBloom::with_shape(shape, 3).unwrap()))
    };
    let mut dual = DualBloom::for_capacity(2 * MEMBERS, MEMBERS, RATE, 5).unwrap();
    for i in 0..MEMBERS {
        dual.insert(&member(i)).unwrap();
        if i % 3 == 0 {
            dual.remove(&member(i));
        }
    }
    let semi_sorted = CuckooShape::semi_sorted(MEMBERS, RATE).unwrap();
    let mut bitmap = Bitmap::of_range(5_000, 14_999).unwrap();
    for bit in (0..10_000).step_by(7) {
        bitmap.set(bit).unwrap();
    }
    vec![
        ("bitmap", Filter::Bitmap(bitmap)),
        ("bloom", filled(Filter::Bloom(Bloom::for_capacity(MEMBERS, RATE, 1).unwrap()))),
        ("blocked-split", blocked(BlockedLayout::Split256, RATE)),
        ("blocked-line", blocked(BlockedLayout::Line512, RATE)),
        ("blocked-lines", blocked(BlockedLayout::Line512, 1e-4)),
        ("counting", filled(Filter::CountingBloom(CountingBloom::for_capacity(MEMBERS, RATE, 2).unwrap()))),
        ("dual", Filter::DualBloom(dual)),
        ("scalable", filled(Filter::ScalableBloom(ScalableBloom::for_capacity(100, RATE, 1).unwrap()))),
        ("d-left", filled(Filter::DLeft(DLeft::for_capacity(MEMBERS, RATE, 1).unwrap()))),
        ("cuckoo", filled(Filter::Cuckoo(Cuckoo::for_capacity(MEMBERS, RATE, 1).unwrap()))),
        ("cuckoo-semi-sorted", filled(Filter::Cuckoo(Cuckoo::with_shape(semi_sorted, 4).unwrap()))),
        ("growable-cuckoo", {
            filled(Filter::GrowableCuckoo(GrowableCuckoo::for_growth(100, 10_000, RATE, 1).unwrap()))
        }),
        ("scalable-cuckoo", {
            filled(Filter::ScalableCuckoo(ScalableCuckoo::for_capacity(300, 1).unwrap()))
        }),
        ("fingerprints", fingerprints(0)),
        ("fingerprints-cut", fingerprints(2)),
        ("quotient", filled(Filter::Quotient(Quotient::for_capacity(MEMBERS, RATE, 1).unwrap()))),
        ("growing", filled(Filter::Growing(Growing::for_capacity(100, RATE, 1).unwrap()))),
        ("xor", Filter::Xor8(Xor8::build(members(), 1).unwrap())),
        ("fuse", Filter::BinaryFuse8(BinaryFuse8::build(members(), 1).unwrap())),
        ("fuse-16", Filter::BinaryFuse16(BinaryFuse16::build(members(), 1).unwrap())),
        ("ribbon", Filter::Ribbon(Ribbon::build(members(), RATE, 1).unwrap())),
        ("golomb", Filter::Gcs(Gcs::build(members(), RATE, 1).unwrap())),
        ("window", filled(Filter::Window(Window::of_items(MEMBERS, RATE, 1).unwrap()))),
    ]
}

fn saved(folder: &Path) -> Vec<(&'static str, Filter, PathBuf)> {
    let save = |(name, filter): (&'static str, Filter)| {
        let path = folder.join(format!("{name}.mayhap"));
        file::save(&filter, &path).unwrap();
        (name, filter, path)
    };
    filters().into_iter().map(save).collect()
}

fn mayhap(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayhap"));
    command.arg("explain").args(arguments).env_remove("CLICOLOR_FORCE").env_remove("COLUMNS");
    command
}

fn run(arguments: &[&str]) -> Output {
    mayhap(arguments).output().expect("the program starts")
}

/// Exit code and output of a run; standard error is empty.
fn answer(arguments: &[&str]) -> (i32, String) {
    let output = run(arguments);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

fn json(arguments: &[&str]) -> (i32, Value) {
    let (code, said) = answer(&[arguments, &["--json"]].concat());
    (code, serde_json::from_str(&said).expect("one JSON object"))
}

/// The one line of a run that fails.
fn error_line(arguments: &[&str]) -> String {
    let output = run(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?} wrote to the standard output");
    assert!(said.starts_with("mayhap: ") && said.lines().count() == 1, "{arguments:?}: {said}");
    said
}

/// Two items: the first gets a maybe, the second a no.
fn items(filter: &Filter) -> (String, String) {
    if filter.kind() == Kind::Bitmap {
        return ("5007".into(), "5008".into());
    }
    let held = members().skip(1).find(|item| filter.may_contain(item)).unwrap();
    let never = (0..1_000).map(non_member).find(|item| {
        let explanation = filter.explain(item);
        !explanation.answer && explanation.certain
    });
    (held, never.unwrap())
}

#[test]
fn every_kind_is_explained_in_text_json_and_a_picture() {
    let folder = folder("every-kind");
    for (name, filter, path) in saved(&folder) {
        let path = path.to_str().unwrap();
        let (held, never) = items(&filter);
        for (item, code) in [(&held, 0), (&never, 1)] {
            let picture = folder.join(format!("{name}-{code}.svg"));
            let (got, text) = answer(&[path, item, "--svg", picture.to_str().unwrap()]);
            assert_eq!(got, code, "{name}: {text}");
            let explanation = match filter.kind() {
                Kind::Bitmap => filter.explain(&item.parse::<u64>().unwrap()),
                _ => filter.explain(item),
            };
            let reason = explanation.reason();
            let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(one_line(&text).contains(&one_line(&reason)), "{name}: {text}");
            assert!(text.contains(&format!("{path}: {}", filter.kind())), "{name}: {text}");
            assert!(text.contains(&format!("{item:?}")), "{name}: {text}");
            let width = |line: &str| line.replace(path, "").chars().count();
            assert!(text.lines().all(|line| width(line) <= 110), "{name}: {text}");

            let (got, json) = json(&[path, item]);
            assert_eq!(got, code, "{name}");
            assert_eq!(json["filter"]["kind"], filter.kind().name(), "{name}");
            let said = &json["explanations"][0];
            assert_eq!(said["answer"], if code == 0 { "mayhap" } else { "no" }, "{name}");
            assert_eq!(said["reason"], reason.as_str(), "{name}");
            assert_eq!(said["item"], item.as_str(), "{name}");
            assert_eq!(said["hash"].is_null(), filter.kind() == Kind::Bitmap, "{name}");
            assert!(said["lookup"]["sort"].is_string(), "{name}");

            let picture = Picture::read(&picture);
            picture.check(name);
            assert!(picture.words().contains(explanation.verdict()), "{name}");
            picture.shows(name, &explanation.lookup);
        }
    }
}

/// A picture, parsed by a minimal XML reader that notices what is not well-formed.
struct Picture {
    /// Elements with their attributes.
    elements: Vec<(String, BTreeMap<String, String>)>,
    /// All text in it.
    texts: Vec<String>,
    width: f64,
    height: f64,
}

impl Picture {
    fn read(path: &Path) -> Self {
        let source = fs::read_to_string(path).unwrap();
        let body =
            source.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").expect("a declaration");
        let mut picture = Self { elements: vec![], texts: vec![], width: 0.0, height: 0.0 };
        let (mut open, mut rest) = (Vec::new(), body);
        while let Some(start) = rest.find('<') {
            let between = &rest[..start];
            assert!(!between.contains('>') && entities_are_sound(between), "{between}");
            if open.last().is_some_and(|tag: &String| tag == "text") {
                picture.texts.push(between.into());
            }
            let end = start + rest[start..].find('>').expect("a tag ends");
            let tag = &rest[start + 1..end];
            rest = &rest[end + 1..];
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name), "tags nest");
                continue;
            }
            let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
            let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
            picture.elements.push((name.into(), attributes_of(attributes)));
            if !closed {
                open.push(name.to_owned());
            }
        }
        assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
        assert_eq!(picture.elements[0].0, "svg");
        (picture.width, picture.height) = (picture.number(0, "width"), picture.number(0, "height"));
        picture
    }

    fn number(&self, element: usize, name: &str) -> f64 {
        self.elements[element].1[name].parse().unwrap()
    }

    /// Everything is inside the picture, and no text crosses the edge in the widest of common fonts.
    fn check(&self, name: &str) {
        let mut texts = self.texts.iter();
        for (index, (element, attributes)) in self.elements.iter().enumerate() {
            let inside = |x: f64, y: f64| {
                assert!(x >= -0.5 && x <= self.width + 0.5, "{name}: {element} at {x},{y}");
                assert!(y >= -0.5 && y <= self.height + 0.5, "{name}: {element} at {x},{y}");
            };
            match element.as_str() {
                "rect" if attributes.contains_key("x") => {
                    let (x, y) = (self.number(index, "x"), self.number(index, "y"));
                    inside(x, y);
                    inside(x + self.number(index, "width"), y + self.number(index, "height"));
                }
                "text" => {
                    let (x, y, size) =
                        (self.number(index, "x"), self.number(index, "y"), self.number(index, "font-size"));
                    let letters = texts.next().unwrap().replace("&quot;", "\"").chars().count() as f64;
                    let width = letters * size * if attributes["class"] == "mono" { 0.602 } else { 0.5 };
                    let start = match attributes["text-anchor"].as_str() {
                        "start" => x,
                        "middle" => x - width / 2.0,
                        _ => x - width,
                    };
                    inside(start, y);
                    inside(start + width, y);
                }
                "line" => {
                    inside(self.number(index, "x1"), self.number(index, "y1"));
                    inside(self.number(index, "x2"), self.number(index, "y2"));
                }
                _ => {}
            }
        }
    }

    fn words(&self) -> String {
        self.texts.join(" ")
    }

    /// The number of groups with this class.
    fn count(&self, class: &str) -> usize {
        let groups = self.elements.iter().filter(|(name, _)| name == "g");
        groups.filter(|(_, attributes)| attributes.get("class").is_some_and(|there| there == class)).count()
    }

    /// Everything the lookup reads is marked.
    fn shows(&self, name: &str, lookup: &mayhap::explain::Lookup) {
        use mayhap::explain::Lookup;
        let (mut set, mut clear) = (0, 0);
        let mut count = |there: bool| if there { set += 1 } else { clear += 1 };
        match lookup {
            Lookup::Number(lookup) => lookup.probe.iter().for_each(|probe| count(probe.set)),
            Lookup::Bits(lookup) => lookup.probes.iter().for_each(|probe| count(probe.set)),
            Lookup::Blocks(lookup) => lookup.probes().for_each(|probe| count(probe.set)),
            Lookup::Counters(lookup) => lookup.probes.iter().for_each(|probe| count(probe.count > 0)),
            Lookup::Rows(lookup) => {
                lookup.columns.iter().for_each(|column| count(column.parity == column.wanted));
            }
            Lookup::Generations(lookup) => {
                let probes = lookup.generations.iter().flat_map(|generation| generation.blocks.probes());
                probes.for_each(|probe| count(probe.set));
            }
            Lookup::Layers(lookup) => {
                let probes = lookup.layers.iter().flat_map(|layer| &layer.bits.probes);
                let set = probes.clone().filter(|probe| probe.set).count();
                let clear = probes.count() - set;
                assert_eq!((self.count("mark set"), self.count("mark clear")), (set, clear), "{name}");
            }
            Lookup::Buckets(lookup) => {
                let slots: Vec<_> = lookup.buckets.iter().flat_map(|bucket| &bucket.slots).collect();
                let matches = slots.iter().filter(|slot| slot.is_some_and(|slot| slot.matches)).count();
                assert_eq!(self.count("slot match"), matches, "{name}");
                assert_eq!(
                    self.count("slot free"),
                    slots.iter().filter(|slot| slot.is_none()).count(),
                    "{name}"
                );
                for slot in slots.into_iter().flatten() {
                    let width = 2 + (lookup.fingerprint_bits as usize).div_ceil(4);
                    let shown = format!("{:#0width$x}", slot.fingerprint);
                    assert!(self.words().contains(&shown), "{name}: {shown}");
                }
            }
            Lookup::Run(lookup) => {
                let matches = lookup.entries.iter().filter(|entry| entry.matches).count();
                assert_eq!(self.count("slot match"), matches, "{name}");
                assert_eq!(self.count("slot taken"), lookup.entries.len() - matches, "{name}");
            }
            Lookup::Slots(lookup) => {
                assert_eq!(self.count("slot taken"), 3, "{name}");
                assert_eq!(self.count("sum match"), usize::from(lookup.holds()), "{name}");
                assert!(self.words().contains('⊕'), "{name}");
            }
            Lookup::Values(lookup) => {
                assert_eq!(self.count("value match"), usize::from(lookup.found), "{name}");
                assert_eq!(self.count("value missing"), usize::from(!lookup.found), "{name}");
            }
            _ => {}
        }
        assert_eq!((self.count("probe set"), self.count("probe clear")), (set, clear), "{name}");
    }
}

fn attributes_of(mut text: &str) -> BTreeMap<String, String> {
    let mut attributes = BTreeMap::new();
    while let Some((name, rest)) = text.split_once("=\"") {
        let (value, rest) = rest.split_once('"').expect("a value ends");
        assert!(entities_are_sound(value) && !value.contains('<'), "{value}");
        let new = attributes.insert(name.trim().to_owned(), value.to_owned()).is_none();
        assert!(new, "{name} is there twice");
        text = rest;
    }
    assert!(text.trim().is_empty(), "{text}");
    attributes
}

fn entities_are_sound(text: &str) -> bool {
    let known = ["&amp;", "&lt;", "&gt;", "&quot;"];
    text.match_indices('&').all(|(at, _)| known.iter().any(|entity| text[at..].starts_with(entity)))
        && !text.chars().any(|letter| letter.is_control() && letter != '\n')
}

#[test]
fn items_come_as_arguments_as_lines_and_as_bytes() {
    let folder = folder("items");
    let path = folder.join("seen.mayhap");
    let mut seen = Bloom::for_capacity(100, 1e-6, 0).unwrap();
    for item in [&b"ada"[..], b"\xff\x00", b"", b"-5", b"two words"] {
        seen.insert(item);
    }
    file::save(&seen, &path).unwrap();
    let path = path.to_str().unwrap();
    for item in ["ada", "", "-5", "two words"] {
        assert_eq!(answer(&[path, item]).0, 0, "{item}");
    }
    assert_eq!(answer(&[path, "--hex", "ff00"]).0, 0);
    assert_eq!(answer(&[path, "--hex", "FF01"]).0, 1);
    assert_eq!(answer(&[path, "grace"]).0, 1);
    // As with grep, one maybe among several items is a success.
    let (code, several) = json(&[path, "grace", "ada"]);
    assert_eq!((code, several["explanations"].as_array().unwrap().len()), (0, 2));
    let (code, text) = answer(&[path, "grace", "linus"]);
    assert_eq!((code, text.matches("no: ").count()), (1, 2));
    let (_, bytes) = json(&[path, "--hex", "ff00"]);
    assert_eq!(bytes["explanations"][0]["item"], Value::Null);
    assert_eq!(bytes["explanations"][0]["item_hex"], "ff00");

    let piped = |input: &[u8], arguments: &[&str]| {
        let mut child = mayhap(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(piped(b"ada\ngrace\n", &[path, "-"]).0, 0);
    assert_eq!(piped(b"ada", &[path, "-"]).0, 0, "no final newline");
    assert_eq!(piped(b"\xff\x00\n", &[path, "-"]).0, 0, "bytes that are not text");
    assert_eq!(piped(b"\n", &[path, "-"]).0, 0, "an empty line is an item");
    assert_eq!(piped(b"grace\nada\n", &[path, "-", "-"]).0, 0, "one line for each");
    let (code, said) = piped(b"", &[path, "-"]);
    assert_eq!((code, said.as_str()), (2, "mayhap: the standard input: there is no line left to explain\n"));

    assert!(error_line(&[path, "--hex", "abc"]).contains("two digits for every byte"));
    assert!(error_line(&[path, "--hex", "zz"]).contains("digits 0 to 9 and a to f"));
    assert!(error_line(&[path]).contains("ITEM"));
}

#[test]
fn a_bitmap_needs_numbers_and_items_of_other_programs_are_encoded() {
    let folder = folder("forms");
    let path = folder.join("ids.mayhap");
    let mut ids = Bitmap::new(100).unwrap();
    ids.set(42).unwrap();
    file::save(&ids, &path).unwrap();
    let ids = path.to_str().unwrap();
    let (code, text) = answer(&[ids, "42"]);
    assert!(
        code == 0 && text.contains("yes: bit 42 is set") && text.contains("no false positives"),
        "{text}"
    );
    assert!(answer(&[ids, "100"]).1.contains("numbers from 0 to 99"));
    assert!(error_line(&[ids, "ada"]).contains("\"ada\" is not an integer"));

    let guava = folder.join("guava.bin");
    let filter = Format::Guava.build(["ada"], 100, 0.01, ItemEncoding::Utf16Le).unwrap();
    let mut bytes = Vec::new();
    Format::Guava.write(&filter, &mut bytes).unwrap();
    fs::write(&guava, bytes).unwrap();
    let guava = guava.to_str().unwrap();
    let (code, text) = answer(&[guava, "ada", "--items-as", "utf16le"]);
    assert!(code == 0 && text.contains("61 00 64 00 61 00") && text.contains("Guava's murmur3"), "{text}");
    let (_, json) = json(&[guava, "ada", "--items-as", "utf16le"]);
    assert_eq!(json["explanations"][0]["hashed_hex"], "610064006100");
    assert_eq!(json["explanations"][0]["encoding"], "utf16le");
    assert!(error_line(&[guava, "ada"]).contains("--items-as"));

    let wide = folder.join("go.bloom");
    let filter = Format::BitsAndBlooms.build(["ada"], 100, 0.01, ItemEncoding::Utf8).unwrap();
    let mut bytes = Vec::new();
    Format::BitsAndBlooms.write(&filter, &mut bytes).unwrap();
    fs::write(&wide, bytes).unwrap();
    let picture = folder.join("wide.svg");
    let arguments = [
        wide.to_str().unwrap(),
        "ada",
        "--items-as",
        "utf8",
        "--from",
        "bits-and-blooms",
        "--svg",
        picture.to_str().unwrap(),
    ];
    assert_eq!(answer(&arguments).0, 0);
    Picture::read(&picture).check("wide");
}

#[test]
fn the_secret_key_is_never_shown() {
    let path = folder("secret").join("keyed.mayhap");
    let key: [u8; 16] = std::array::from_fn(|i| 0xa0 + i as u8);
    let mut filter = Bloom::for_capacity(100, 0.01, HashScheme::keyed(SecretKey::new(key))).unwrap();
    filter.insert("ada");
    file::save(&filter, &path).unwrap();
    let (path, picture) = (path.to_str().unwrap(), path.with_extension("svg"));
    let (_, text) = answer(&[path, "ada", "--svg", picture.to_str().unwrap()]);
    let all = [text, answer(&[path, "ada", "--json"]).1, fs::read_to_string(&picture).unwrap()].concat();
    assert!(all.contains("secret key"));
    for shown in ["a0a1a2", "a0 a1 a2", "160, 161", "a7a6a5"] {
        assert!(!all.to_lowercase().contains(shown), "{shown}");
    }
}

#[test]
fn a_picture_is_written_completely_or_not_at_all() {
    let folder = folder("pictures");
    let path = folder.join("seen.mayhap");
    let mut seen = Bloom::for_capacity(100, 0.01, 0).unwrap();
    seen.insert("ada");
    file::save(&seen, &path).unwrap();
    let path = path.to_str().unwrap();
    let before = fs::read_dir(&folder).unwrap().count();

    let nowhere = folder.join("no/such/folder/a.svg");
    let said = error_line(&[path, "ada", "--svg", nowhere.to_str().unwrap()]);
    assert!(said.contains("cannot write") && said.contains("a.svg"), "{said}");
    assert!(!nowhere.exists());
    let said = error_line(&[path, "ada", "--svg", folder.to_str().unwrap()]);
    assert!(said.contains("is a directory"), "{said}");
    let said = error_line(&[path, "ada", "--svg", "/dev/full"]);
    assert!(said.contains("cannot write /dev/full: no space left on device"), "{said}");
    assert!(error_line(&[path, "ada", "grace", "--svg", "a.svg"]).contains("--svg draws one ITEM, got 2"));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), before, "a temporary file remains");

    let ugly = "<a href=\"x\">&amp;\u{7}\u{1b}[31m \u{202e}é漢字 ".repeat(20);
    let picture = folder.join("ugly.svg");
    assert_eq!(answer(&[path, &ugly, "--svg", picture.to_str().unwrap()]).0, 1);
    Picture::read(&picture).check("ugly");
    // Again, replacing the first.
    assert_eq!(answer(&[path, "ada", "--svg", picture.to_str().unwrap()]).0, 0);
    assert!(Picture::read(&picture).words().contains("maybe"));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), before + 1);

    let terminal = answer(&[path, &ugly]).1;
    assert!(!terminal.contains(['\u{7}', '\u{1b}']), "control characters of an item are escaped");
}

#[test]
fn files_that_are_not_filters_are_errors() {
    let folder = folder("not_filters");
    let missing = folder.join("none.mayhap");
    assert!(
        error_line(&[missing.to_str().unwrap(), "ada"]).contains("none.mayhap: no such file or directory")
    );
    assert!(error_line(&[folder.to_str().unwrap(), "ada"]).contains("not a regular file"));
    let damaged = folder.join("damaged.mayhap");
    let mut seen = Bloom::for_capacity(100, 0.01, 0).unwrap();
    seen.insert("ada");
    let mut bytes = seen.encode();
    bytes[100] ^= 1;
    fs::write(&damaged, &bytes).unwrap();
    assert!(error_line(&[damaged.to_str().unwrap(), "ada"]).contains("damaged"));
    fs::write(&damaged, b"").unwrap();
    error_line(&[damaged.to_str().unwrap(), "ada"]);
}

#[test]
fn a_closed_pipe_is_not_an_error_but_a_full_disk_is() {
    let path = folder("streams").join("seen.mayhap");
    let mut seen = Bloom::for_capacity(100, 0.01, 0).unwrap();
    seen.insert("ada");
    file::save(&seen, &path).unwrap();
    let path = path.to_str().unwrap();
    let mut child = mayhap(&[path, "ada"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = mayhap(&[path, "ada"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "mayhap: cannot write the output: no space left on device\n");
}

#[test]
fn help_has_options_and_examples() {
    let help = answer(&["--help"]).1;
    for word in ["Examples:", "--svg <FILE.svg>", "--hex", "Exit codes: 0 maybe", "each - is one line"] {
        assert!(help.contains(word), "{word} in {help}");
    }
}
