//! `mayhap convert` and `mayhap sniff` as their users run them.

mod program;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use mayhap::{Bloom, Filter, ItemEncoding, file};
use mayhap_formats::{Format, ReadOptions};
use serde_json::Value;

use program::{error_line, run};

fn folder(name: &str) -> PathBuf {
    program::empty_folder("convert", name)
}

fn vector(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mayhap-formats/tests/vectors").join(name);
    path.to_str().unwrap().to_owned()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// To a mayhap file and back: the same bytes that the other program wrote.
#[test]
fn files_of_other_programs_survive_a_round_trip_byte_for_byte() {
    let folder = folder("and-back");
    let redisson = "size=9585,hashIterations=7,expectedInsertions=1000,falseProbability=0.01";
    let redisson = ["--from", "redisson", "--items-as", "kryo5", "--redisson-config", redisson];
    let cases: [(&str, &[&str], &str); 9] = [
        ("guava/mitz64_n1000_p0.01.bin", &["--items-as", "utf8"], "guava"),
        ("guava/mitz32_n1000_p0.01.bin", &["--items-as", "utf16le"], "guava"),
        ("spark/v1_n1000_p0.01.bin", &["--items-as", "utf8"], "spark"),
        ("spark/v2_seed42_n1000_p0.01.bin", &["--items-as", "utf8"], "spark"),
        ("dcso/n1000_p0.01.bloom", &[], "dcso"),
        ("fuse/c_bfuse8_n1000.bin", &["--from", "fuse-c", "--items-as", "u64le"], "fuse-c"),
        ("fuse/go_bfuse16_n1000.bin", &["--from", "fuse-go", "--items-as", "u64le"], "fuse-go"),
        (
            "go_bits_and_blooms/n1000_p0.01.bin",
            &["--from", "bits-and-blooms", "--items-as", "utf8"],
            "bits-and-blooms",
        ),
        ("redisson/kryo5_n1000_p0.01.bin", &redisson, "redisson"),
    ];
    for (name, flags, format) in cases {
        let (code, out, error) = run(
            &folder,
            &[&["convert", &vector(name), "ours.mayhap", "--to", "mayhap", "--force"], flags].concat(),
        );
        assert_eq!((code, out.as_str()), (0, ""), "{name}: {error}");
        assert!(
            error.starts_with("mayhap: ours.mayhap: ") && error.ends_with("read back and compared\n"),
            "{error}"
        );
        file::verify::<Filter>(folder.join("ours.mayhap")).unwrap();
        let (code, _, error) =
            run(&folder, &["convert", "ours.mayhap", "theirs", "--to", format, "--force", "-q"]);
        assert_eq!((code, error.as_str()), (0, ""), "{name}");
        assert!(fs::read(folder.join("theirs")).unwrap() == fs::read(vector(name)).unwrap(), "{name}");
    }
    // The mayhap file stores the encoding, so the flag is no longer needed.
    let (_, out, _) = run(&folder, &["check", "ours.mayhap", "--item", "item-7"]);
    assert_eq!(out, "item-7\n");
    assert_eq!(files(&folder), ["ours.mayhap", "theirs"], "other files remain");
}

#[test]
fn formats_with_the_same_placement_convert_to_each_other() {
    let folder = folder("alike");
    let convert = |from: &str, out: &str, to: &str, flags: &[&str]| {
        let (code, _, error) = run(&folder, &[&["convert", from, out, "--to", to], flags].concat());
        assert_eq!(code, 0, "{from} to {to}: {error}");
    };
    convert(&vector("fuse/c_bfuse8_n1000.bin"), "fuse.go", "fuse-go", &["--from", "fuse-c"]);
    convert("fuse.go", "fuse.json", "fuse-xorf-json", &["--from", "fuse-go"]);
    convert("fuse.json", "fuse.xorf", "fuse-xorf", &["--fingerprint-bits", "8"]);
    let key = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    fs::write(folder.join("keys"), (1..=1_000).map(|n| format!("{}\n", key(n))).collect::<String>()).unwrap();
    let (_, out, _) =
        run(&folder, &["check", "-c", "fuse.xorf", "--from", "fuse-xorf", "--items-as", "u64le", "keys"]);
    assert_eq!(out, "1000\n");

    // The data after the filter in a DCSO file is kept.
    convert(&vector("dcso/words_data.bloom"), "words.gz", "dcso-gzip", &[]);
    convert("words.gz", "words.bloom", "dcso", &[]);
    assert!(
        fs::read(folder.join("words.bloom")).unwrap() == fs::read(vector("dcso/words_data.bloom")).unwrap()
    );

    convert(&vector("parquet_sbbf/pyarrow.parquet"), "s.sbbf", "sbbf", &["--column", "s"]);
    let blob = fs::read(folder.join("s.sbbf")).unwrap();
    let filter = Format::Sbbf.read(&blob, &ReadOptions::default().items(ItemEncoding::Utf8)).unwrap();
    assert!((0..1_000).all(|number| filter.may_contain(&format!("item-{number}"))));

    let dump = Format::RedisBloom.build(["ada", "grace"], 100, 0.01, ItemEncoding::Bytes).unwrap();
    let mut bytes = Vec::new();
    Format::RedisBloom.write(&dump, &mut bytes).unwrap();
    fs::write(folder.join("seen.bf"), bytes).unwrap();
    convert("seen.bf", "seen.dump", "redis-dump", &[]);
    let (_, out, _) = run(&folder, &["check", "seen.dump", "--item", "ada", "--item", "linus"]);
    assert_eq!(out, "ada\n");
}

#[test]
fn impossible_conversions_are_rejected_with_an_alternative() {
    let folder = folder("refused");
    let mut ours = Bloom::for_capacity(100, 0.01, 1).unwrap();
    ours.insert("ada");
    file::save(&ours, folder.join("seen.mayhap")).unwrap();
    let to = |format: &str| error_line(&folder, &["convert", "seen.mayhap", "out", "--to", format]);
    let said = to("guava");
    assert!(said.contains("seen.mayhap: cannot be written as guava"), "{said}");
    assert!(
        said.contains(
            "cannot be rehashed without its items: build it from them with `mayhap build --format guava`"
        ),
        "{said}"
    );
    assert!(to("redis-bloom").contains("that format holds scalable-bloom filters, this is a bloom filter"));
    assert!(to("rbloom").contains("rbloom files can be read but not written"));
    assert!(to("nonsense").contains("format \"nonsense\" is not known"));
    assert!(error_line(&folder, &["convert", "seen.mayhap", "out"]).contains("--to <FORMAT>"));
    let guava = vector("guava/mitz64_n1000_p0.01.bin");
    assert!(error_line(&folder, &["convert", &guava, "out", "--to", "mayhap"]).contains("give --items-as"));
    assert!(error_line(&folder, &["convert", &guava, "out", "--to", "spark"]).contains("Guava's murmur3"));
    assert_eq!(files(&folder), ["seen.mayhap"], "nothing was written");
}

#[test]
fn an_existing_file_is_replaced_only_with_force() {
    let folder = folder("there");
    let words = vector("dcso/words.bloom");
    fs::write(folder.join("out"), "precious").unwrap();
    assert!(error_line(&folder, &["convert", &words, "out", "--to", "mayhap"]).contains("--force"));
    assert_eq!(fs::read(folder.join("out")).unwrap(), b"precious");
    assert_eq!(run(&folder, &["convert", &words, "out", "--to", "mayhap", "--force"]).0, 0);
    assert!(
        error_line(&folder, &["convert", &words, "no/such/folder/out", "--to", "mayhap"])
            .contains("no/such/folder/out")
    );
    let (_, out, _) = run(&folder, &["convert", &words, "again", "--to", "dcso", "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&report["from"], &report["to"], &report["kind"]),
        (&"dcso".into(), &"dcso".into(), &"bloom".into())
    );
    assert_eq!(report["bytes"], fs::metadata(folder.join("again")).unwrap().len());
    assert_eq!(report["compared_items"], 100_000);
    // To a pipe.
    let output = Command::new(env!("CARGO_BIN_EXE_mayhap"))
        .args(["convert", &words, "-", "--to", "dcso"])
        .output()
        .unwrap();
    assert!(output.stdout == fs::read(&words).unwrap());
}

#[test]
fn the_redisson_config_is_printed_with_the_bitmap() {
    let folder = folder("redisson");
    let filter = Format::Redisson.build(["ada"], 1_000, 0.01, ItemEncoding::Kryo5).unwrap();
    file::save(&filter, folder.join("seen.mayhap")).unwrap();
    let (code, _, error) = run(&folder, &["convert", "seen.mayhap", "bits", "--to", "redisson"]);
    assert_eq!(code, 0);
    assert!(
        error.contains(
            "HSET {NAME}:config size 9585 hashIterations 7 expectedInsertions 1000 falseProbability 0.01"
        ),
        "{error}"
    );
    // The printed config opens the bitmap.
    let config = "size=9585,hashIterations=7,expectedInsertions=1000,falseProbability=0.01";
    let arguments =
        ["check", "bits", "--from", "redisson", "--items-as", "kryo5", "--redisson-config", config];
    assert_eq!(run(&folder, &[&arguments[..], &["--item", "ada"]].concat()).1, "ada\n");
    fs::write(
        folder.join("config.txt"),
        "size\n9585\nhashIterations\n7\nexpectedInsertions\n1000\nfalseProbability\n0.01\n",
    )
    .unwrap();
    let arguments =
        ["check", "bits", "--from", "redisson", "--items-as", "kryo5", "--redisson-config", "config.txt"];
    assert_eq!(run(&folder, &[&arguments[..], &["--item", "ada"]].concat()).1, "ada\n");
}

#[test]
fn sniff_names_the_format_and_how_to_open_it() {
    let folder = folder("sniff");
    let mut ours = Bloom::for_capacity(100, 0.01, 1).unwrap();
    ours.insert("ada");
    file::save(&ours, folder.join("seen.mayhap")).unwrap();
    let sniff = |name: &str| run(&folder, &["sniff", name]);
    assert_eq!(
        sniff("seen.mayhap"),
        (0, "seen.mayhap: a bloom filter of mayhap; opens without flags\n".into(), String::new())
    );
    let (code, out, _) = sniff(&vector("guava/mitz64_n1000_p0.01.bin"));
    assert_eq!(code, 0);
    assert!(
        out.ends_with("could be guava (Guava's BloomFilter.writeTo); open it with --items-as ENCODING\n"),
        "{out}"
    );
    assert!(
        sniff(&vector("dcso/words.bloom"))
            .1
            .ends_with("could be dcso (DCSO's .bloom file); opens without flags\n")
    );
    assert!(sniff(&vector("dcso/words_gzip.bloom.gz")).1.contains("could be dcso-gzip"));
    assert!(
        sniff(&vector("parquet_sbbf/pyarrow.parquet"))
            .1
            .contains("a Parquet file; `mayhap info` lists the filters in it; open it with --column PATH")
    );

    fs::write(folder.join("urls.txt"), "https://example.org/\n".repeat(1_000)).unwrap();
    assert_eq!(
        sniff("urls.txt"),
        (
            1,
            "urls.txt: text, not a filter; build one with `mayhap build OUT urls.txt`\n".into(),
            String::new()
        )
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all("https://example.org/\n".repeat(1_000).as_bytes()).unwrap();
    fs::write(folder.join("urls.gz"), gzip.finish().unwrap()).unwrap();
    let (code, out, _) = sniff("urls.gz");
    assert_eq!(
        (code, out.as_str()),
        (1, "urls.gz: a gzip file of text, not a filter; build one with `mayhap build OUT urls.gz`\n")
    );
    let packed = zstd::encode_all(&b"ada\ngrace\n"[..], 1).unwrap();
    fs::write(folder.join("names.zst"), packed).unwrap();
    assert!(sniff("names.zst").1.starts_with("names.zst: a zstd file of text"));
    fs::write(folder.join("empty"), "").unwrap();
    assert_eq!(sniff("empty"), (1, "empty: an empty file\n".into(), String::new()));
    assert!(error_line(&folder, &["sniff", "not-there"]).contains("no such file"));
    assert!(error_line(&folder, &["sniff", "."]).contains("is a directory"));

    let (code, out, _) = run(
        &folder,
        &["sniff", "--json", "seen.mayhap", "urls.txt", &vector("guava/mitz64_n1000_p0.01.bin")],
    );
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 1, "one of them is not a filter");
    assert_eq!((&report["files"][0]["known"], &report["files"][1]["known"]), (&true.into(), &false.into()));
    assert_eq!(report["files"][0]["formats"][0]["certain"], true);
    assert_eq!(report["files"][2]["formats"][0]["flags"][0], "--items-as ENCODING");
}

/// A sparse file of ten gibibytes: only its beginning is read.
#[test]
fn sniff_does_not_read_huge_files() {
    let folder = folder("huge");
    let file = fs::File::create(folder.join("huge")).unwrap();
    file.set_len(10 << 30).unwrap();
    let (code, out, _) = run(&folder, &["sniff", "huge"]);
    assert_eq!(code, 1);
    assert!(out.contains("files larger than 1 GiB are not examined further"), "{out}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_filter_of_a_redis_dump_file_is_chosen_by_its_key() {
    let folder = folder("rdb");
    let rdb = vector("redisbloom_rdb/redisbloom.rdb");
    let convert = ["convert", &rdb, "seen.mayhap", "--to", "mayhap", "--force"];
    let told = error_line(&folder, &convert);
    assert!(told.contains("rdb file has 3 filters: choose one with --rdb-key: "), "{told}");
    let told = error_line(&folder, &[&convert[..], &["--rdb-key", "none"]].concat());
    assert!(told.contains("rdb file has no filter under key none; it holds "), "{told}");
    for (key, kind, member) in
        [("bloom3", "scalable-bloom", "vector-499"), ("cuckoo", "scalable-cuckoo", "vector-199")]
    {
        let (code, _, error) = run(&folder, &[&convert[..], &["--rdb-key", key]].concat());
        assert_eq!(code, 0, "{error}");
        assert_eq!(file::open::<Filter>(folder.join("seen.mayhap")).unwrap().kind().name(), kind);
        // Queried directly, without a mayhap file in between.
        fs::write(folder.join("items"), format!("{member}\nnobody-42\n")).unwrap();
        let (code, out, error) = run(&folder, &["check", &rdb, "items", "--rdb-key", key]);
        assert_eq!((code, out), (0, format!("{member}\n")), "{error}");
    }
}
