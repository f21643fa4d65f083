//! `Format`: files detected by their bytes, read, converted where possible, rejected otherwise, and built from items.

use mayhap::{Bloom, BuildError, Filter, ItemEncoding};
use mayhap_formats::{
    Argument, Format, ReadError, ReadOptions, RebuildError, Resemblance, Sniffed, WriteError, block_filter,
    cassandra, pybloom_live, redisson,
};

use crate::vectors::{bytes, inline_or_file, json, path, text, unhex};

/// All read options.
fn told() -> ReadOptions {
    let config = redisson::Config::sized(1_000, 0.03).unwrap();
    ReadOptions::default()
        .items(ItemEncoding::Utf8)
        .redisson(config)
        .golomb(block_filter::BASIC, [7; 16])
        .pybloom_live(pybloom_live::PybloomVersion::V4)
        .cassandra(cassandra::BitOrder::Since40)
        .column(0, "s")
        .fingerprint_bits(8)
}

/// Files of other programs with their format: every file below `tests/vectors` that is a filter and nothing else, and some of those in cases.
fn files() -> Vec<(String, Format, Vec<u8>)> {
    let mut files = Vec::new();
    let mut file = |name: String, format| files.push((name.clone(), format, bytes(&name)));
    for (folder, format_of) in [
        ("guava", (|_| Some(Format::Guava)) as fn(&str) -> Option<Format>),
        ("spark", |_| Some(Format::Spark)),
        ("datasketches", |_| Some(Format::DataSketches)),
        ("go_bits_and_blooms", |_| Some(Format::BitsAndBlooms)),
        ("dcso", |name| Some(if name.ends_with(".gz") { Format::DcsoGzip } else { Format::Dcso })),
        ("parquet_sbbf", |name| {
            let format = if name.ends_with(".parquet") { Format::Parquet } else { Format::Sbbf };
            Some(format)
        }),
        ("python", |name| match name {
            // Scalable ones are several filters, and that one is compressed.
            _ if name.contains("scalable") || name.ends_with(".gz") => None,
            _ if name.starts_with("pybloom") => Some(Format::PybloomLive),
            _ if name.starts_with("pyprobables") => Some(Format::Pyprobables),
            _ => Some(Format::Rbloom),
        }),
        ("fuse", |name| match name {
            _ if name.starts_with("c_bfuse") && name.contains("packed") => Some(Format::FuseCPacked),
            _ if name.starts_with("c_bfuse") => Some(Format::FuseC),
            _ if name.starts_with("go_bfuse") => Some(Format::FuseGo),
            _ if name.starts_with("xorf_bfuse") => Some(Format::FuseXorf),
            _ => Some(Format::XorC),
        }),
    ] {
        let mut names: Vec<String> = std::fs::read_dir(path(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| [".bin", ".bloom", ".gz", ".parquet"].iter().any(|end| name.ends_with(end)))
            .collect();
        names.sort();
        for name in names {
            if let Some(format) = format_of(&name) {
                file(format!("{folder}/{name}"), format);
            }
        }
    }
    for (name, body, format) in [("bf", "bits", Format::RedisBloom), ("cf", "buckets", Format::RedisCuckoo)] {
        let cases = json(&format!("redisbloom/{name}_scandump.json"));
        for case in cases["cases"].as_array().unwrap() {
            let whole = [unhex(text(case, "header_hex")), inline_or_file(case, body, "redisbloom")].concat();
            files.push((format!("redisbloom {}", text(case, "name")), format, whole));
        }
    }
    files
}

fn written(format: Format, filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    format.write(filter, &mut bytes).unwrap_or_else(|cause| panic!("{format}: {cause}"));
    bytes
}

#[test]
fn files_are_detected_read_and_written() {
    let (mut alone, mut among, mut most) = (0, 0, 0);
    for (name, format, bytes) in files() {
        match Format::sniff(&bytes) {
            Sniffed::Is(found) => {
                assert_eq!(found, format, "{name}");
                alone += 1;
            }
            Sniffed::CouldBe(could_be) => {
                assert!(could_be.contains(&format), "{name} is {format}, not {could_be:?}");
                if could_be.len() == 1 {
                    alone += 1;
                } else {
                    among += 1;
                }
                most = most.max(could_be.len());
            }
            Sniffed::Unknown => panic!("{name} is {format}"),
        }
        let filter = format.read(&bytes, &told()).unwrap_or_else(|cause| panic!("{name}: {cause}"));
        assert_eq!(Format::sniff(&filter.encode()), Sniffed::Is(Format::Mayhap));
        let ours = Format::Mayhap.read(&filter.encode(), &ReadOptions::default()).unwrap();
        assert_eq!(ours.encode(), filter.encode(), "{name}");
        // Data attached to a filter is handled by the module itself; compression may differ.
        let exactly = format.writes() && !name.contains("words_data") && format != Format::DcsoGzip;
        if exactly {
            assert_eq!(written(format, &ours), bytes, "{name}");
        }
    }
    println!("sniffed: {alone} files alone, {among} among others, {most} at most");
    assert!(alone > 5 * among && most <= 4, "{alone} {among} {most}");
}

/// rbloom's first number is 1 in every plain file of DCSO's.
#[test]
fn weakly_recognizable_formats_are_named_only_if_no_other_fits() {
    let dcso = written(Format::Dcso, &Format::Dcso.build(["ada"], 1_000, 0.01, ItemEncoding::Bytes).unwrap());
    assert_eq!(Format::Rbloom.resembles(&dcso), Resemblance::Could);
    assert_eq!(Format::sniff(&dcso), Sniffed::CouldBe(vec![Format::Dcso]));
    let either = [&7_u64.to_le_bytes()[..], &[7; 24]].concat();
    assert_eq!(Format::sniff(&either), Sniffed::CouldBe(vec![Format::Rbloom, Format::LevelDb]));
}

#[test]
fn files_that_are_not_filters_are_unknown() {
    for non_member in
        [&b""[..], b"x", b"PK\x03\x04", b"a longer line of text that is no filter at all\n", &[0; 100]]
    {
        match Format::sniff(non_member) {
            Sniffed::Unknown => {}
            could_be => panic!("{non_member:?} is detected as {could_be:?}"),
        }
    }
}

#[test]
fn missing_read_options_are_named() {
    let nothing = ReadOptions::default();
    for (name, format, bytes) in files() {
        match (format.needs(), format.read(&bytes, &nothing)) {
            ([], Ok(_)) => {}
            ([..], Err(ReadError::Needs { format: of, argument })) => {
                assert_eq!(of, format);
                assert!(format.needs().contains(&argument), "{name}");
            }
            (needs, result) => panic!("{name} needs {needs:?}: {result:?}"),
        }
    }
    let bitmap = bytes("redisson/string_n1000_p0.03.bin");
    let refused = Format::Redisson.read(&bitmap, &nothing.clone().items(ItemEncoding::Utf8)).unwrap_err();
    assert!(matches!(refused, ReadError::Needs { argument: Argument::RedissonConfig, .. }));
    assert!(Format::Redisson.read(&bitmap, &told()).unwrap().inserted() > 900);
    let refused =
        Format::Parquet.read(&bytes("parquet_sbbf/rust.parquet"), &told().column(7, "s")).unwrap_err();
    assert!(
        refused.to_string().starts_with("no filter for column \"s\" in row group 7; filters in the file: "),
        "{refused}"
    );
}

/// Every format that can be built, in every format that can be written: the same bytes if the rule is the same, an error with the reason otherwise.
#[test]
fn filters_move_where_their_rule_is_the_same() {
    let items: Vec<String> = (0..500).map(|i| format!("item-{i}")).collect();
    let (mut moved, mut refused) = (0, 0);
    for from in Format::ALL {
        let encoding = match from {
            // Their items are numbers, or text that is hashed to one.
            _ if from.name().starts_with("fuse") || from == Format::XorC => ItemEncoding::Bytes,
            _ => ItemEncoding::Utf8,
        };
        let Ok(filter) = from.build(&items, 500, 0.01, encoding) else { continue };
        assert!(items.iter().all(|item| filter.may_contain(item)), "{from}");
        let non_members = (0..10_000).filter(|i| filter.may_contain(&format!("stranger-{i}"))).count();
        assert!(non_members < 400, "{from}: {non_members} of 10000");
        for to in Format::ALL {
            let mut bytes = Vec::new();
            match to.write(&filter, &mut bytes) {
                Ok(()) => {
                    moved += 1;
                    let config = || redisson::Config::sized(500, 0.01).unwrap();
                    let same = to.read(&bytes, &told().items(encoding).redisson(config())).unwrap();
                    assert!(items.iter().all(|item| same.may_contain(item)), "{from} to {to}");
                    let again = (0..10_000).filter(|i| same.may_contain(&format!("stranger-{i}"))).count();
                    assert_eq!(again, non_members, "{from} to {to}");
                    assert_ne!(
                        to == Format::Redisson,
                        to.resembles(&bytes) != Resemblance::No,
                        "{from} to {to}"
                    );
                }
                Err(cause) => {
                    refused += 1;
                    assert!(bytes.is_empty(), "{from} to {to}: half written");
                    let said = cause.to_string();
                    match cause {
                        WriteError::OtherPlacement { .. } => {
                            assert!(said.contains("without its items"), "{said}");
                        }
                        WriteError::OtherKind { .. } | WriteError::ReadOnly { .. } => {}
                        _ => panic!("{from} to {to}: {said}"),
                    }
                    assert_ne!(from, to, "{said}");
                }
            }
        }
    }
    println!("{moved} moves, {refused} refusals");
    assert!(moved > 30 && refused > 300, "{moved} {refused}");
}

#[test]
fn invalid_rates_and_rates_below_every_width_build_nothing() {
    for format in Format::ALL.into_iter().filter(|&format| format != Format::RedisCuckoo) {
        for rate in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(format.build([1_u64], 10, rate, ItemEncoding::U64Le).is_err(), "{format} {rate}");
        }
    }
    assert!(Format::XorC.build([1_u64], 10, 1e-4, ItemEncoding::U64Le).is_ok());
    assert!(Format::XorC.build([1_u64], 10, 1e-6, ItemEncoding::U64Le).is_err());
    let refused = Format::FuseXorfJson
        .read(b"{}", &ReadOptions::default().items(ItemEncoding::U64Le).fingerprint_bits(8))
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "not a valid fuse-xorf-json file: not JSON of a filter of xorf: byte 1 is wrong"
    );
}

#[test]
fn a_filter_of_ours_moves_nowhere() {
    let ours = Filter::Bloom(Bloom::for_capacity(100, 0.01, 0).unwrap());
    for to in Format::ALL {
        assert_eq!(to.write(&ours, &mut Vec::new()).is_ok(), to == Format::Mayhap, "{to}");
    }
}

#[test]
fn built_filters_keep_the_requested_rate() {
    let items = ["ada", "grace", "edsger"];
    for format in [Format::XorC, Format::FuseC, Format::FuseGo, Format::FuseXorf] {
        for rate in [0.5, 1.0 / 256.0, 0.003, 1.0 / 65_536.0, 1e-5, 1e-9] {
            // C's are of 8 and 16 bits.
            if format == Format::XorC && rate < 1.0 / 65_536.0 {
                continue;
            }
            let filter = format.build(items, 3, rate, ItemEncoding::Utf8).unwrap();
            assert!(filter.expected_fpr() <= rate, "{format} at {rate}: {}", filter.expected_fpr());
            assert!(items.iter().all(|item| filter.may_contain(item)));
        }
    }
    for format in [Format::XorC, Format::FuseC, Format::LevelDb, Format::Guava, Format::Cassandra] {
        for rate in [0.0, 1.0, -1.0, f64::NAN] {
            let refusal = format.build(items, 3, rate, ItemEncoding::Utf8).unwrap_err();
            let is_of_the_rate = matches!(refusal, RebuildError::Build(BuildError::RateOutOfRange { .. }));
            assert!(is_of_the_rate, "{format} at {rate}: {refusal}");
        }
    }
}

#[test]
fn names_lead_back_to_their_format() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
        assert!(!format.about().is_empty());
    }
    let unknown = "guawa".parse::<Format>().unwrap_err().to_string();
    assert!(
        unknown.starts_with("format \"guawa\" is not known; known formats are mayhap guava redisson"),
        "{unknown}"
    );
}

/// Text in a filter of numbers: no lookup treats it as an item, no insertion that can fail accepts it, and a filter read with the wrong encoding answers
/// *no* to its own items.
#[test]
fn values_without_an_encoding_are_not_items() {
    let names: Vec<String> = (0..1_000).map(|i| format!("user-{i}")).collect();
    let right = Format::Guava.build(&names, 1_000, 0.01, ItemEncoding::Utf8).unwrap();
    let stream = written(Format::Guava, &right);
    for wrong in ItemEncoding::all().filter(|&encoding| encoding != ItemEncoding::Utf8) {
        let confused = Format::Guava.read(&stream, &ReadOptions::default().items(wrong)).unwrap();
        assert_eq!(confused.items(), Some(wrong));
        let found = names.iter().filter(|name| confused.may_contain(*name)).count();
        // Bytes of text are its UTF-8.
        assert!(wrong == ItemEncoding::Bytes || found < 50, "{wrong}: {found} of 1000");
    }
    let mut numbers = Format::Guava.build([-1_i64, 7], 10, 0.001, ItemEncoding::I64Le).unwrap();
    assert!(numbers.may_contain("7") && !numbers.may_contain(&u64::MAX), "that is not -1");
    let before = numbers.encode();
    let refused = numbers.insert("ada").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "item cannot be encoded for this filter's format: \"ada\" cannot be encoded as i64le"
    );
    assert!(numbers.insert(&u64::MAX).is_err());
    assert_eq!(numbers.encode(), before);
    let some = numbers.insert_batch(&["8", "ada", "9"]).unwrap_err();
    assert_eq!(some, refused);
    assert!(numbers.may_contain("8") && !numbers.may_contain("9"), "the items before it were inserted");
    assert!(Format::Guava.build(["x"], 10, 0.01, ItemEncoding::F64Le).is_err());
    // A bare kind cannot reject an item; whatever it accepted, it finds.
    let Filter::Bloom(mut bloom) = numbers else { panic!() };
    assert!(bloom.insert("ada") && bloom.may_contain("ada"));
}
