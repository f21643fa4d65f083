//! `mayhap info` and `mayhap verify` as their users run them.

mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mayhap::{BlockedBloom, Bloom, Filter, HashScheme, ScalableBloom, SecretKey, Window, file};
use serde_json::Value;

use program::{error_line, run};

fn folder(name: &str) -> PathBuf {
    program::empty_folder("info", name)
}

/// The description of one filter, from a run that succeeds.
fn facts(folder: &Path, arguments: &[&str]) -> Value {
    let (code, out, error) = run(folder, &[&["info", "--json"], arguments].concat());
    assert_eq!((code, error.as_str()), (0, ""), "{arguments:?}");
    let report: Value = serde_json::from_str(&out).unwrap();
    report["filters"][0].clone()
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mayhap/tests/golden")
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mayhap-formats/tests/vectors")
}

fn filled(items: u64) -> Bloom {
    let mut filter = Bloom::for_capacity(1_000, 0.01, 7).unwrap();
    (0..items).for_each(|item| {
        filter.insert(&format!("item-{item}"));
    });
    filter
}

#[test]
fn the_text_has_kind_capacity_contents_and_rate() {
    let folder = folder("text");
    file::save(&filled(1_000), folder.join("seen.mayhap")).unwrap();
    let (code, out, error) = run(&folder, &["info", "seen.mayhap"]);
    assert_eq!((code, error.as_str()), (0, ""));
    let line = |name: &str| {
        let found = out.lines().find(|line| line.trim_start().starts_with(name));
        found.unwrap_or_else(|| panic!("no {name} in\n{out}"))[17..].to_owned()
    };
    assert!(out.starts_with("seen.mayhap\n"), "{out}");
    assert!(line("kind").starts_with("bloom: "), "{out}");
    assert_eq!(line("hash"), "XXH3-128, seed 7");
    assert_eq!(line("capacity"), "1,000 items at an FPR of 1%");
    assert!(line("inserted").starts_with("99") || line("inserted").starts_with("1,000"), "{out}");
    assert!(line("FPR now").contains("% (from the item count), "), "{out}");
    assert!(line("fill").contains("% of the bits (about "), "{out}");
    assert!(line("bits per item").contains(" × the information-theoretic minimum of 6.64"), "{out}");
    assert_eq!(line("can"), "answer, add, merge; not remove, grow");
    assert!(!out.contains("warning") && !out.contains('\u{1b}'), "{out}");
}

/// Every kind, from the golden files: the numbers are those of the library.
#[test]
fn every_kind_is_described_with_the_numbers_of_the_library() {
    let folder = folder("kinds");
    let mut described = 0;
    for entry in fs::read_dir(golden()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "mayhap") {
            continue;
        }
        let filter: Filter = file::open(&path).unwrap();
        let facts = facts(&folder, &[path.to_str().unwrap()]);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(facts["kind"], filter.kind().name(), "{name}");
        assert_eq!(facts["format"], "mayhap", "{name}");
        // A value that the other program did not store is not made up.
        let has_capacity = !facts["capacity"].is_null();
        let is_foreign = facts["placement"] != "mayhap";
        assert!(has_capacity || is_foreign || facts["kind"] == "fingerprints", "{name}");
        assert!(!facts["inserted"].is_null() || is_foreign, "{name}");
        if has_capacity {
            assert_eq!(facts["capacity"], filter.capacity(), "{name}");
        }
        if facts["inserted_unknown"] == false {
            assert_eq!(facts["inserted"], filter.inserted(), "{name}");
        }
        // Parsing a decimal number may lose the last bit.
        let same = |field: &str, number: f64| {
            let said = facts[field].as_f64().unwrap();
            assert!((said - number).abs() <= 1e-14 * number, "{name}: {field} {said} {number}");
        };
        if has_capacity {
            same("target_fpr", filter.target_fpr());
            same("bits_per_item", filter.memory_bytes() as f64 * 8.0 / filter.capacity() as f64);
            assert!(run(&folder, &["info", path.to_str().unwrap()]).1.contains("bits per item"), "{name}");
        }
        if facts["inserted_unknown"] == false {
            same("fpr_from_count", filter.expected_fpr());
        }
        let from_fill = facts["fpr_from_fill"].as_f64().unwrap_or(0.0);
        same("expected_fpr", filter.expected_fpr().max(from_fill));
        if has_capacity && facts["inserted_unknown"] == false {
            same("load", filter.inserted() as f64 / filter.capacity() as f64);
        }
        assert_eq!(facts["memory_bytes"], filter.memory_bytes(), "{name}");
        assert_eq!(facts["file_bytes"], fs::metadata(&path).unwrap().len(), "{name}");
        described += 1;
    }
    assert!(described >= 30, "{described}");
}

#[test]
fn parts_of_filters_that_grow_or_forget_are_listed() {
    let folder = folder("parts");
    let mut scalable = ScalableBloom::for_capacity(100, 0.01, 1).unwrap();
    let mut window = Window::of_items(100, 0.01, 1).unwrap();
    (0..500).for_each(|item: u64| {
        scalable.insert(&item).unwrap();
        window.insert(&item);
    });
    file::save(&scalable, folder.join("scalable.mayhap")).unwrap();
    file::save(&window, folder.join("window.mayhap")).unwrap();
    let layers = facts(&folder, &["scalable.mayhap"])["layers"].clone();
    assert_eq!(layers.as_array().unwrap().len(), scalable.layers().len());
    assert_eq!(layers[1]["inserted"], scalable.layers()[1].inserted());
    let generations = facts(&folder, &["window.mayhap"])["generations"].clone();
    assert_eq!(generations.as_array().unwrap().len(), window.generations().len());
    assert!(run(&folder, &["info", "scalable.mayhap"]).1.contains("\n  layer "));
}

#[test]
fn a_secret_key_is_never_shown() {
    let folder = folder("secret");
    let key = *b"0123456789abcdef";
    let mut filter = Bloom::for_capacity(100, 0.01, HashScheme::keyed(SecretKey::new(key))).unwrap();
    filter.insert("ada");
    file::save(&filter, folder.join("keyed.mayhap")).unwrap();
    for arguments in [&["info", "keyed.mayhap"][..], &["info", "--json", "keyed.mayhap"]] {
        let (_, out, _) = run(&folder, arguments);
        assert!(out.contains("secret key"), "{out}");
        for shown in ["0123456789abcdef", "30313233", "3332313", "48, 49"] {
            assert!(!out.contains(shown), "{out}");
        }
    }
    assert_eq!(facts(&folder, &["keyed.mayhap"])["secret_key"], true);
}

/// This header and this payload, with correct checksums.
fn sealed(header: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut header = header.to_vec();
    header[24..32].copy_from_slice(&xxhash_rust::xxh3::xxh3_64(payload).to_le_bytes());
    let checksum = xxhash_rust::xxh3::xxh3_64(&header[..184]);
    header[184..].copy_from_slice(&checksum.to_le_bytes());
    [&header, payload].concat()
}

#[test]
fn warnings_for_an_overfull_filter_and_for_bits_that_disagree_with_the_count() {
    let folder = folder("warnings");
    file::save(&filled(5_000), folder.join("over.mayhap")).unwrap();
    let over = facts(&folder, &["over.mayhap"]);
    assert_eq!(over["over_capacity"], true);
    assert!(
        over["warnings"][0].as_str().unwrap().starts_with("over capacity: made for 1,000 items"),
        "{over}"
    );
    let (code, out, _) = run(&folder, &["info", "over.mayhap"]);
    assert_eq!(code, 0);
    assert!(out.contains("\n  warning        over capacity: made for 1,000 items, holds "), "{out}");

    // The bits of 900 items with a count of 300, as after an attack or a lost count.
    let (few, many) = (filled(300).encode(), filled(900).encode());
    fs::write(folder.join("mixed.mayhap"), sealed(&few[..192], &many[192..])).unwrap();
    let mixed = facts(&folder, &["mixed.mayhap"]);
    let warning = mixed["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("more bits are set than 300 items would set: the bits suggest "),
        "{warning}"
    );
    let estimated = mixed["estimated_items"].as_u64().unwrap();
    assert!((800..1_000).contains(&estimated), "{estimated}");
    fs::write(folder.join("fewer.mayhap"), sealed(&many[..192], &few[192..])).unwrap();
    assert!(
        facts(&folder, &["fewer.mayhap"])["warnings"][0]
            .as_str()
            .unwrap()
            .starts_with("fewer bits are set than ")
    );
    for items in [0, 10, 100, 300, 900, 1_000] {
        file::save(&filled(items), folder.join("good.mayhap")).unwrap();
        assert_eq!(facts(&folder, &["good.mayhap"])["warnings"], Value::Array(Vec::new()), "{items} items");
    }
}

#[test]
fn large_filters_are_not_read_unless_asked() {
    let folder = folder("large");
    let filter = BlockedBloom::for_capacity(60_000_000, 0.01, 1).unwrap(); // about 75 MiB
    file::save(&filter, folder.join("large.mayhap")).unwrap();
    let large = facts(&folder, &["large.mayhap"]);
    assert_eq!((&large["fill"], &large["fill_not_counted"]), (&Value::Null, &true.into()));
    assert!(run(&folder, &["info", "large.mayhap"]).1.contains("--fill reads the whole file"));
    let asked = facts(&folder, &["--fill", "large.mayhap"]);
    assert_eq!((&asked["fill"], &asked["fill_not_counted"]), (&0.0.into(), &false.into()));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn filters_of_other_programs_are_described_without_flags() {
    let folder = folder("foreign");
    let vector = |name: &str| vectors().join(name).to_str().unwrap().to_owned();
    let guava = facts(&folder, &[&vector("guava/mitz64_n1000_p0.01.bin")]);
    assert_eq!((&guava["format"], &guava["kind"]), (&"guava".into(), &"bloom".into()));
    assert_eq!((&guava["items_as_unknown"], &guava["items_as"]), (&true.into(), &Value::Null));
    assert_eq!((&guava["inserted_unknown"], &guava["over_capacity"]), (&true.into(), &false.into()));
    let told = facts(&folder, &[&vector("guava/mitz64_n1000_p0.01.bin"), "--items-as", "utf8"]);
    assert_eq!((&told["items_as_unknown"], &told["items_as"]), (&false.into(), &"utf8".into()));
    let dcso = facts(&folder, &[&vector("dcso/words.bloom")]);
    assert_eq!(
        (&dcso["format"], &dcso["capacity"], &dcso["inserted"]),
        (&"dcso".into(), &20.into(), &12.into())
    );

    let parquet = facts(&folder, &[&vector("parquet_sbbf/pyarrow.parquet")]);
    assert_eq!((&parquet["format"], &parquet["row_groups"]), (&"parquet".into(), &1.into()));
    let columns = parquet["columns"].as_array().unwrap();
    assert_eq!(columns.len(), 5);
    assert_eq!((&columns[1]["column"], &columns[1]["items_as"]), (&"i32".into(), &"i32le".into()));
    let column = facts(&folder, &[&vector("parquet_sbbf/pyarrow.parquet"), "--column", "i32"]);
    assert_eq!((&column["kind"], &column["items_as"]), (&"blocked-bloom".into(), &"i32le".into()));
    let (_, out, _) = run(&folder, &["info", &vector("parquet_sbbf/pyarrow.parquet")]);
    assert!(out.contains("1 row group, 5 filters") && out.contains("--column s --row-group 0"), "{out}");
}

#[test]
fn several_files_are_described_and_invalid_ones_are_errors() {
    let folder = folder("several");
    file::save(&filled(10), folder.join("a.mayhap")).unwrap();
    file::save(&filled(20), folder.join("b.mayhap")).unwrap();
    let (code, out, _) = run(&folder, &["info", "a.mayhap", "b.mayhap"]);
    assert_eq!((code, out.matches("\n  capacity ").count()), (0, 2));
    let (code, out, error) = run(&folder, &["info", "a.mayhap", "not-there", "b.mayhap"]);
    assert_eq!((code, out.matches("\n  capacity ").count()), (2, 2), "the others are still described");
    assert_eq!(error, "mayhap: cannot read not-there: no such file or directory\n");
    assert!(error_line(&folder, &["info", "."]).starts_with("mayhap: "));
    fs::write(folder.join("text.txt"), "ada\n").unwrap();
    assert!(
        error_line(&folder, &["info", "text.txt"])
            .contains("not a filter in a known format; try `mayhap sniff`")
    );
    assert!(error_line(&folder, &["info"]).contains("<FILTER>"));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_mayhap"))
        .args(["info", "a.mayhap"])
        .current_dir(&folder)
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn verify_finds_every_flipped_bit() {
    let folder = folder("verify");
    let good = filled(500).encode();
    fs::write(folder.join("good.mayhap"), &good).unwrap();
    assert_eq!(run(&folder, &["verify", "good.mayhap"]), (0, "good.mayhap: intact\n".into(), String::new()));
    assert_eq!(run(&folder, &["verify", "-q", "good.mayhap"]), (0, String::new(), String::new()));
    let bits: Vec<usize> = (0..good.len() * 8).step_by(397).chain([64 * 8, good.len() * 8 - 1]).collect();
    for bit in bits {
        if bit < 64 {
            continue; // without its magic it is not a mayhap file
        }
        let mut damaged = good.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(folder.join("bad.mayhap"), &damaged).unwrap();
        let (code, out, error) = run(&folder, &["verify", "bad.mayhap"]);
        assert_eq!((code, error.as_str()), (1, ""), "bit {bit}: {out}");
        assert!(out.starts_with("bad.mayhap: damaged: "), "bit {bit}: {out}");
        // A file of this size is also checked when it is opened.
        assert_eq!(run(&folder, &["info", "bad.mayhap"]).0, 2, "bit {bit}");
    }
    for length in [8, 100, 192, good.len() - 1] {
        fs::write(folder.join("bad.mayhap"), &good[..length]).unwrap();
        let (code, out, _) = run(&folder, &["verify", "bad.mayhap", "good.mayhap"]);
        assert_eq!(code, 1, "{length} bytes");
        assert!(out.starts_with("bad.mayhap: damaged: ") && out.ends_with("good.mayhap: intact\n"), "{out}");
    }
    let (_, out, _) = run(&folder, &["verify", "--json", "bad.mayhap", "good.mayhap"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&report["files"][0]["intact"], &report["files"][1]["intact"]), (&false.into(), &true.into()));
    assert!(report["files"][0]["damage"].is_string() && report["files"][1]["damage"].is_null());
    assert!(error_line(&folder, &["verify", "not-there"]).contains("no such file"));
    fs::write(folder.join("text.txt"), "ada\n").unwrap();
    assert!(error_line(&folder, &["verify", "text.txt"]).contains("not a filter in a known format"));
}

#[test]
fn every_kind_is_verified_and_files_of_other_programs_are_read() {
    let folder = folder("verify-kinds");
    for entry in fs::read_dir(golden()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "mayhap") {
            let (code, out, _) = run(&folder, &["verify", path.to_str().unwrap()]);
            assert!(code == 0 && out.ends_with(": intact\n"), "{out}");
        }
    }
    let guava = vectors().join("guava/mitz64_n1000_p0.01.bin");
    let (code, out, _) = run(&folder, &["verify", guava.to_str().unwrap()]);
    assert_eq!(code, 0);
    assert!(out.ends_with("readable guava file (the format has no checksum)\n"), "{out}");
    let bytes = fs::read(&guava).unwrap();
    fs::write(folder.join("cut.bin"), &bytes[..bytes.len() - 8]).unwrap();
    let (code, out, _) = run(&folder, &["verify", "--from", "guava", "cut.bin"]);
    assert_eq!(code, 1, "with --from, an invalid file is damaged");
    assert!(out.starts_with("cut.bin: damaged: not a valid guava file"), "{out}");
}

#[test]
fn values_that_a_file_does_not_store_are_not_made_up() {
    let folder = folder("unsaid");
    let guava = vectors().join("guava/mitz64_n1000_p0.01.bin").to_str().unwrap().to_owned();
    let said = facts(&folder, &[&guava]);
    for field in
        ["capacity", "target_fpr", "inserted", "bits_per_item", "bits_per_inserted", "bound_bits_per_item"]
    {
        assert_eq!(said[field], Value::Null, "{field}");
    }
    assert!(said["estimated_items"].is_number() && said["expected_fpr"].is_number());
    let (_, out, _) = run(&folder, &["info", &guava]);
    assert!(out.contains("capacity       not stored in the file\n"), "{out}");
    assert!(out.contains(", from the bits: the file stores no count\n") && !out.contains("load "), "{out}");
    assert!(!out.contains("bits per item") && !out.contains("from the item count"), "{out}");

    fs::write(folder.join("lines.txt"), "a\nb\na\nc\n").unwrap();
    let (code, _, error) = run(&folder, &["uniq", "--state", "seen.mayhap", "lines.txt"]);
    assert_eq!(code, 0, "{error}");
    let state = facts(&folder, &["seen.mayhap"]);
    assert_eq!((&state["kind"], &state["inserted"]), (&"fingerprints".into(), &3.into()));
    for field in ["capacity", "target_fpr", "bits_per_item", "bound_bits_per_item"] {
        assert_eq!(state[field], Value::Null, "{field}");
    }
    let (_, out, _) = run(&folder, &["info", "seen.mayhap"]);
    assert!(out.contains("  inserted       3 items\n") && !out.contains("capacity"), "{out}");
    assert!(!out.contains("at capacity"), "{out}");
    fs::remove_dir_all(&folder).unwrap();
}
