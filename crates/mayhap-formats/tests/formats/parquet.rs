//! The filters inside Parquet files of four writers, and files that no writer wrote.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::Range;

use mayhap::{DecodeError, Item, ItemEncoding};
use mayhap_formats::parquet::{self, FilterHome, InRowGroup, ParquetError, ParquetFilters, PhysicalType};
use mayhap_formats::{Format, ReadError, ReadOptions, Resemblance, sbbf};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::corrupt::Corruptor;
use mayhap_testkit::rng::Rng;
use serde_json::Value;

use crate::sbbf::{blob, encoding, members, probes, written};
use crate::vectors::{Given, bytes, json, number, text};

type File<'a> = ParquetFilters<Cursor<&'a [u8]>>;

fn open(bytes: &[u8]) -> Result<File<'_>, ParquetError> {
    ParquetFilters::open(Cursor::new(bytes))
}

fn cases() -> Vec<Value> {
    json("parquet_sbbf/cases.json")["cases"].as_array().unwrap().clone()
}

fn check_case(case: &Value, file: &mut File<'_>) {
    let column = text(case, "column");
    let name = format!("{} {column}", text(case, "parquet_file"));
    let listed: Vec<_> = file.filters().iter().filter(|filter| *filter.column == *column).cloned().collect();
    let [listed] = &listed[..] else { panic!("{name}: {} filters", listed.len()) };
    assert_eq!(listed.row_group, 0, "{name}");
    assert_eq!(listed.physical_type.to_string(), text(case, "physical_type"), "{name}");
    assert_eq!(listed.offset, number(case, "bloom_filter_offset"), "{name}");
    assert_eq!(listed.length.map(u64::from), Some(number(case, "bloom_filter_length")), "{name}");
    assert_eq!((listed.items, listed.home), (encoding(column), FilterHome::Here), "{name}");

    let filter = file.read(listed).unwrap();
    assert_eq!(written(&filter), blob(case), "{name}");
    for item in &members(column) {
        assert!(filter.may_contain(item), "{name}: {item:?}");
        assert_eq!(file.may_contain(column, item).unwrap(), [InRowGroup::Mayhap], "{name}: {item:?}");
    }
    for (probe, answer) in probes(case) {
        assert_eq!(filter.may_contain(&probe), answer, "{name}: {probe:?}");
        let expected = if answer { InRowGroup::Mayhap } else { InRowGroup::No };
        assert_eq!(file.may_contain(column, &probe).unwrap(), [expected], "{name}: {probe:?}");
    }
    // Without its length, as older files have it, the filter is the same.
    let mut unmeasured = listed.clone();
    unmeasured.length = None;
    assert_eq!(written(&file.read(&unmeasured).unwrap()), blob(case), "{name}");
    // In another encoding numbers are other items.
    if column == "i64" {
        let confused = file.read_as(listed, ItemEncoding::Decimal).unwrap();
        assert!(members(column).iter().any(|item| !confused.may_contain(item)), "{name}");
    }
}

#[test]
fn every_filter_of_every_file_is_listed_and_read() {
    let mut ran: BTreeMap<String, u32> = BTreeMap::new();
    for case in &cases() {
        let name = text(case, "parquet_file");
        let bytes = bytes(&format!("parquet_sbbf/{name}"));
        assert_eq!(parquet::resembles(&bytes), Resemblance::Surely);
        let mut file = open(&bytes).unwrap();
        assert_eq!((file.row_groups(), file.filters().len()), (&[1000][..], 5), "{name}");
        check_case(case, &mut file);
        *ran.entry(name.to_owned()).or_default() += 1;
    }
    assert_eq!(ran.values().sum::<u32>(), 20);
    println!("parquet_sbbf/cases.json, filters per file: {ran:?}");
}

#[test]
fn floats_are_queried_as_text_or_bytes() {
    let bytes = bytes("parquet_sbbf/pyarrow.parquet");
    let mut file = open(&bytes).unwrap();
    let third = 3.0_f64 / 7.0;
    for answers in [
        file.may_contain("f64", &third.to_string()).unwrap(),
        file.may_contain("f64", &third.to_le_bytes()).unwrap(),
    ] {
        assert_eq!(answers, [InRowGroup::Mayhap]);
    }
    assert_eq!(file.may_contain("f64", "0.5").unwrap(), [InRowGroup::No]);
}

#[test]
fn unanswerable_queries_are_errors() {
    let bytes = bytes("parquet_sbbf/rust.parquet");
    let mut file = open(&bytes).unwrap();
    let refusal = |result: Result<Vec<InRowGroup>, ParquetError>| result.unwrap_err().to_string();
    assert_eq!(refusal(file.may_contain("x", "y")), "the Parquet file has no column x");
    assert_eq!(
        refusal(file.may_contain("i32", "ada")),
        "the column cannot hold such an item: \"ada\" cannot be encoded as i32le"
    );
    assert!(file.may_contain("i32", &i64::MAX).is_err(), "no such number in this column");
    assert!(matches!(open(&[]), Err(ParquetError::NotParquet)));
    assert!(matches!(open(b"PAR1 and no more"), Err(ParquetError::NotParquet)));
    let limited = ParquetFilters::open_within(Cursor::new(&bytes[..]), 100).unwrap_err();
    assert!(limited.to_string().ends_with("bytes long, limit is 100"), "{limited}");
    let mut encrypted = bytes.clone();
    let end = encrypted.len();
    encrypted[end - 1] = b'E';
    let refusal = open(&encrypted).unwrap_err();
    let expected = "footer of the Parquet file: unsupported: a Parquet file with an encrypted footer";
    assert_eq!(refusal.to_string(), expected);
}

/// Builds footers as a writer would, from the given parts.
mod forge {
    /// A number in zigzag form.
    pub(super) fn number(number: i64) -> Vec<u8> {
        let mut zigzag = (number << 1 ^ number >> 63) as u64;
        let mut out = Vec::new();
        while zigzag >= 128 {
            out.push(zigzag as u8 | 128);
            zigzag >>= 7;
        }
        out.push(zigzag as u8);
        out
    }

    fn field(id: i64, kind: u8, value: &[u8]) -> Vec<u8> {
        [&[kind][..], &number(id), value].concat()
    }

    pub(super) fn i32(id: i64, value: i64) -> Vec<u8> {
        field(id, 5, &number(value))
    }

    pub(super) fn i64(id: i64, value: i64) -> Vec<u8> {
        field(id, 6, &number(value))
    }

    pub(super) fn text(id: i64, text: &str) -> Vec<u8> {
        field(id, 8, &[&[text.len() as u8], text.as_bytes()].concat())
    }

    pub(super) fn texts(id: i64, texts: &[&str]) -> Vec<u8> {
        let values = texts.iter().flat_map(|text| [&[text.len() as u8], text.as_bytes()].concat());
        field(id, 9, &[&[(texts.len() as u8) << 4 | 8][..], &values.collect::<Vec<_>>()].concat())
    }

    pub(super) fn structure(id: i64, fields: &[Vec<u8>]) -> Vec<u8> {
        field(id, 12, &bare(fields))
    }

    /// A structure that is not a field.
    pub(super) fn bare(fields: &[Vec<u8>]) -> Vec<u8> {
        [&fields.concat()[..], &[0]].concat()
    }

    pub(super) fn list(id: i64, structures: &[Vec<u8>]) -> Vec<u8> {
        assert!(structures.len() < 128);
        field(id, 9, &[&[0xfc, structures.len() as u8][..], &structures.concat()].concat())
    }

    pub(super) fn group(name: &str, children: i64) -> Vec<u8> {
        bare(&[text(4, name), i32(5, children)])
    }

    pub(super) fn leaf(name: &str, kind: i64, more: &[Vec<u8>]) -> Vec<u8> {
        bare(&[i32(1, kind), text(4, name), more.concat()])
    }

    /// A column chunk with a filter.
    pub(super) fn chunk(
        path: &[&str],
        kind: i64,
        offset: i64,
        length: Option<i64>,
        more: &[Vec<u8>],
    ) -> Vec<u8> {
        let length = length.map(|length| i32(15, length)).unwrap_or_default();
        bare(&[structure(3, &[i32(1, kind), texts(3, path), i64(14, offset), length]), more.concat()])
    }

    pub(super) fn row_group(rows: i64, chunks: &[Vec<u8>]) -> Vec<u8> {
        bare(&[list(1, chunks), i64(3, rows)])
    }

    pub(super) fn file(body: &[u8], footer: &[Vec<u8>]) -> Vec<u8> {
        let footer = bare(footer);
        [b"PAR1", body, &footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
    }
}

/// A filter with these items, as stored in a file.
fn blob_of<I: Item>(blocks: u64, items: ItemEncoding, held: &[I]) -> Vec<u8> {
    let mut filter = sbbf::with_blocks(blocks, items).unwrap();
    filter.insert_batch(held);
    written(&filter)
}

/// Two row groups and three columns, one of them nested and unsigned, one without a filter; the filter of the second row group has no length.
fn forged() -> Vec<u8> {
    use forge::{chunk, group, i32, leaf, list, row_group, structure, text};
    let first = blob_of(3, ItemEncoding::U64Le, &[u64::MAX, 7]);
    let second = blob_of(2, ItemEncoding::U64Le, &[8_u64]);
    let named = blob_of(1, ItemEncoding::Utf8, &["ada"]);
    let (at, lengths) = (4, [first.len() as i64, second.len() as i64, named.len() as i64]);
    // INTEGER(64 bits, unsigned): a byte, and a false that is only a type.
    let unsigned = structure(10, &[structure(10, &[vec![0x13, 64, 0x12]])]);
    let schema = [
        group("root", 2),
        group("order", 2),
        leaf("id", 2, &[unsigned]),
        leaf("flag", 0, &[]),
        leaf("name", 6, &[i32(6, 0)]),
    ];
    let no_filter = forge::bare(&[structure(3, &[i32(1, 0), forge::texts(3, &["order", "flag"])])]);
    let groups = [
        row_group(
            10,
            &[
                chunk(&["order", "id"], 2, at, Some(lengths[0]), &[]),
                no_filter.clone(),
                chunk(&["name"], 6, at + lengths[0] + lengths[1], Some(lengths[2]), &[]),
            ],
        ),
        row_group(
            20,
            &[
                chunk(&["order", "id"], 2, at + lengths[0], None, &[]),
                no_filter,
                chunk(&["name"], 6, 4, Some(99), &[text(1, "part-7.parquet")]),
            ],
        ),
    ];
    let footer = [i32(1, 2), list(2, &schema), forge::i64(3, 30), list(4, &groups), text(6, "nobody")];
    forge::file(&[first, second, named].concat(), &footer)
}

#[test]
fn row_groups_columns_and_types_are_distinguished() {
    let bytes = forged();
    let mut file = open(&bytes).unwrap();
    assert_eq!(file.row_groups(), [10, 20]);
    let listed: Vec<_> = file
        .filters()
        .iter()
        .map(|filter| {
            (filter.row_group, filter.column.to_string(), filter.physical_type, filter.items, filter.home)
        })
        .collect();
    let id = |group, home| (group, "order.id".to_owned(), PhysicalType::Int64, ItemEncoding::U64Le, home);
    let name = |group, home| (group, "name".to_owned(), PhysicalType::ByteArray, ItemEncoding::Utf8, home);
    assert_eq!(
        listed,
        [
            id(0, FilterHome::Here),
            name(0, FilterHome::Here),
            id(1, FilterHome::Here),
            name(1, FilterHome::OtherFile)
        ]
    );
    let (no, mayhap, none) = (InRowGroup::No, InRowGroup::Mayhap, InRowGroup::NoFilter);
    assert_eq!(file.may_contain("order.id", &u64::MAX).unwrap(), [mayhap, no]);
    assert_eq!(file.may_contain("order.id", "8").unwrap(), [no, mayhap]);
    assert_eq!(file.may_contain("name", "ada").unwrap(), [mayhap, none]);
    assert_eq!(file.may_contain("name", "grace").unwrap(), [no, none]);
    assert_eq!(file.may_contain("order.flag", &[1]).unwrap(), [none, none]);
    assert!(matches!(file.may_contain("order", "x"), Err(ParquetError::UnknownColumn { .. })));
    let elsewhere = file.filters()[3].clone();
    assert_eq!(
        file.read(&elsewhere).unwrap_err().to_string(),
        "filter of column name in row group 1: unsupported: a filter stored in another file"
    );
    assert_eq!(file.read(&file.filters()[0].clone()).unwrap().shape().blocks(), 3);
}

/// One column and one row group with a filter directly after the magic number.
fn simple(chunk: Vec<u8>, body: &[u8]) -> Vec<u8> {
    use forge::{group, leaf, list, row_group};
    let schema = [group("root", 1), leaf("x", 1, &[])];
    forge::file(body, &[list(2, &schema), list(4, &[row_group(1, &[chunk])])])
}

/// A path is stored once and shared by all row groups; an error that listed every filter would repeat it for each.
#[test]
fn an_error_for_a_wrong_column_is_small() {
    use forge::{group, i32, i64, leaf, list, row_group, structure};
    let name = "n".repeat(120);
    let mut schema: Vec<Vec<u8>> = (0..60).map(|_| group(&name, 1)).collect();
    schema.push(leaf(&name, 1, &[]));
    let chunk = forge::bare(&[structure(3, &[i32(1, 1), i64(14, 4)])]);
    let groups = vec![row_group(1, &[chunk]); 127];
    let file = forge::file(&[0; 8], &[list(2, &schema), list(4, &groups)]);
    assert_eq!(open(&file).unwrap().filters().len(), 127);
    let options = ReadOptions::default().column(0, "no such");
    let (refusal, used) = AllocMeter::measure(|| Format::Parquet.read(&file, &options).unwrap_err());
    assert!(matches!(refusal, ReadError::NoSuchColumn { .. }));
    assert!(used.peak_bytes < file.len() as u64 * 16, "{} bytes for {}", used.peak_bytes, file.len());
    assert!(refusal.to_string().len() < 2_000);
}

#[test]
fn encrypted_and_impossible_filters_are_rejected() {
    use forge::{chunk, structure, text};
    let body = blob_of(1, ItemEncoding::I32Le, &[7_i32]);
    let length = body.len() as i64;
    let refusal = |chunk, body: &[u8]| {
        let bytes = simple(chunk, body);
        let mut file = open(&bytes)?;
        let filter = file.filters()[0].clone();
        let asked = file.may_contain("x", &7_i32).map(drop);
        let read = file.read(&filter).map(drop);
        if filter.home == FilterHome::Here {
            assert_eq!(asked.is_ok(), read.is_ok());
        }
        read
    };
    let with = |offset, length, more: &[Vec<u8>]| chunk(&["x"], 1, offset, length, more);
    assert!(refusal(with(4, Some(length), &[]), &body).is_ok());
    let zeros = [0; 32];
    let mut wrong_hash = body.clone();
    wrong_hash[7] = 0x2c;
    for (result, text) in [
        (refusal(with(4, Some(length), &[structure(8, &[structure(1, &[])])]), &body), "encrypted column"),
        (refusal(with(4, Some(length), &[text(9, "secret")]), &body), "encrypted column"),
        (refusal(with(4, Some(length - 1), &[]), &body), "filter length cannot be 46"),
        (refusal(with(4, None, &[]), &body[..length as usize - 1]), "needs 47 bytes, got 46"),
        (refusal(with(3, Some(length), &[]), &body), "filter offset cannot be 3"),
        (refusal(with(4 + length, None, &[]), &body), "filter offset cannot be 51"),
        (refusal(with(i64::MAX, None, &[]), &body), "filter offset cannot be 9223372036854775807"),
        (refusal(with(-1, None, &[]), &body), "filter offset cannot be 18446744073709551615"),
        (refusal(with(4, None, &[]), &zeros), "algorithm (1 is split blocks) cannot be 0"),
        (refusal(with(4, None, &[]), &wrong_hash), "hash function (1 is XXH64) cannot be 2"),
        (refusal(chunk(&["y"], 1, 4, None, &[]), &body), "path in a row group of column cannot be 0"),
        (refusal(chunk(&["x", "x"], 1, 4, None, &[]), &body), "path in a row group of column cannot be 0"),
        (refusal(chunk(&["x"], 2, 4, None, &[]), &body), "type of a column in a row group cannot be 2"),
    ] {
        let cause = result.unwrap_err().to_string();
        assert!(cause.contains(text), "{cause} / {text}");
    }
}

#[test]
fn inconsistent_schemas_are_rejected() {
    use forge::{group, i32, leaf, list, row_group};
    let of = |schema: &[Vec<u8>], groups: &[Vec<u8>]| {
        open(&forge::file(&[], &[list(2, schema), list(4, groups)])).map(|file| file.filters().len())
    };
    let x = || leaf("x", 1, &[]);
    assert_eq!(of(&[group("root", 1), x()], &[]).unwrap(), 0);
    assert!(of(&[group("root", 2), x()], &[]).is_err(), "a child is missing");
    assert!(of(&[group("root", 1), x(), x()], &[]).is_err(), "one too many");
    assert!(of(&[group("root", -1)], &[]).is_err());
    assert!(of(&[], &[]).is_err(), "no root");
    assert!(of(&[group("root", 1), leaf("x", 8, &[])], &[]).is_err(), "no such type");
    assert!(of(&[group("root", 1), x()], &[row_group(1, &[])]).is_err(), "a column is missing");
    let footer = |parts: &[Vec<u8>]| open(&forge::file(&[], parts)).map(drop);
    let schema = || list(2, &[group("root", 0)]);
    assert!(footer(&[schema(), list(4, &[])]).is_ok());
    assert!(footer(&[list(4, &[]), schema()]).is_err(), "row groups of no schema");
    assert!(footer(&[schema(), schema(), list(4, &[])]).is_err());
    assert!(footer(&[schema(), list(4, &[]), list(4, &[])]).is_err());
    assert!(footer(&[schema(), i32(4, 1)]).is_err());
    assert!(footer(&[schema()]).is_err());
    let deep: Vec<_> = std::iter::once(group("root", 1)).chain((0..70).map(|_| group("g", 1))).collect();
    let refusal = of(&deep, &[]).unwrap_err().to_string();
    assert!(refusal.contains("depth of the schema cannot be 65"), "{refusal}");
    // Sixty long names around sixty columns would be a path of six thousand bytes for each.
    let long = "n".repeat(100);
    let mut wide: Vec<_> = (0..60).map(|_| group(&long, 1)).collect();
    wide.push(group(&long, 60));
    wide.extend((0..60).map(|_| x()));
    let refusal = of(&wide, &[]).unwrap_err().to_string();
    assert!(refusal.contains("length of all paths"), "{refusal}");
    // Two columns, one path.
    let dotted = [group("root", 2), leaf("a.b", 1, &[]), group("a", 1), leaf("b", 1, &[])];
    let bytes = forge::file(&[], &[list(2, &dotted), list(4, &[])]);
    let ambiguous = open(&bytes).unwrap().may_contain("a.b", &1_i32).unwrap_err();
    assert_eq!(ambiguous.to_string(), "the Parquet file has two columns a.b");
}

/// Reads everything, and queries every column.
fn use_all(bytes: &[u8]) -> Result<(), ParquetError> {
    let mut file = open(bytes)?;
    let filters = file.filters().to_vec();
    let mut result = Ok(());
    for listed in filters {
        let items: &[Given] = &[Given::Text("7".to_owned()), Given::Bytes(vec![1, 2, 3, 4])];
        result = result.and(file.may_contain(&listed.column, &items[1]).map(drop));
        match file.read(&listed) {
            Ok(mut filter) => {
                items.iter().for_each(|item| {
                    filter.insert(item);
                    assert!(filter.may_contain(item));
                });
                let _ = (filter.expected_fpr(), written(&filter));
            }
            Err(cause) => result = result.and(Err(cause)),
        }
    }
    result
}

/// Damages only the parts that are read: a flip in a data page changes nothing.
fn survives(name: &str, file: &[u8], parts: &[Range<usize>], flips: u64) {
    use_all(file).unwrap();
    let limit = file.len() as u64 * 16 + (64 << 10);
    let (mut shown, mut read) = (0_u64, 0_u64);
    let mut show = |bytes: &[u8], damage: &dyn std::fmt::Display| {
        shown += 1;
        let (result, used) = AllocMeter::measure(|| use_all(bytes));
        assert!(used.peak_bytes <= limit, "{name}, {damage}: {} bytes", used.peak_bytes);
        match result {
            Ok(()) => read += 1,
            Err(cause) => assert!(!cause.to_string().is_empty()),
        }
    };
    let mut corruptor = Corruptor::new(file);
    // Cut inside the footer or lengthened, a file has no tail where it should be.
    let footer = parts.last().unwrap().start;
    for kept in footer..file.len() {
        assert!(matches!(open(&file[..kept]), Err(ParquetError::NotParquet)), "{name} cut to {kept}");
    }
    corruptor.extensions(20, |bytes, damage| assert!(open(bytes).is_err(), "{name}: read although {damage}"));
    for part in parts {
        // Of a real file every bit would take a minute; the random flips reach all of it.
        if file.len() > 1_000 {
            continue;
        }
        corruptor.bit_flips(part.clone(), |bytes, damage| show(bytes, damage));
        let fields: Vec<_> = part.clone().filter(|at| at + 4 <= file.len()).map(|at| (at, 4)).collect();
        corruptor.extremes(&fields, |bytes, damage| show(bytes, damage));
    }
    let reach: Vec<usize> = parts.iter().cloned().flatten().collect();
    let (mut rng, mut copy) = (Rng::new(11), file.to_vec());
    for _ in 0..flips {
        // One to three bytes: damage that compensates other damage gets further.
        let places: Vec<usize> =
            (0..=rng.below(3)).map(|_| reach[rng.below(reach.len() as u64) as usize]).collect();
        places.iter().for_each(|&at| copy[at] ^= 1 + rng.below(255) as u8);
        show(&copy, &format_args!("bytes {places:?} changed"));
        places.iter().for_each(|&at| copy[at] = file[at]);
    }
    println!("{name}: {shown} damaged copies survived, {read} of them read without an error");
    assert!(read > 0 && read < shown, "both happen");
}

/// The footer with its tail, and the headers of all filters in front of it.
fn read_parts(file: &[u8]) -> Vec<Range<usize>> {
    let end = file.len();
    let length = u32::from_le_bytes(file[end - 8..end - 4].try_into().unwrap()) as usize;
    let footer = end - 8 - length;
    let opened = open(file).unwrap();
    let here = opened.filters().iter().filter(|filter| filter.home == FilterHome::Here);
    let headers = here.map(|filter| filter.offset as usize..filter.offset as usize + 18);
    headers.chain(std::iter::once(footer..end)).collect()
}

#[test]
fn damaged_files_are_survived() {
    // Two row groups; the one that points to another file cannot be read, so it is left out here.
    let blob = blob_of(1, ItemEncoding::I32Le, &[7_i32]);
    let chunk = forge::chunk(&["x"], 1, 4, Some(blob.len() as i64), &[]);
    let small = simple(chunk, &blob);
    survives("a small Parquet file", &small, &read_parts(&small), 1_000_000);
}

#[test]
fn damaged_files_of_real_writers_are_survived() {
    for name in ["pyarrow", "duckdb", "parquet-java", "rust"] {
        let file = bytes(&format!("parquet_sbbf/{name}.parquet"));
        survives(name, &file, &read_parts(&file), 2_500);
    }
}

/// A file that has only its end, after a hole of two tebibytes: the hole is neither read nor allocated.
#[test]
fn the_size_of_the_file_does_not_matter() {
    use std::io::{Read, Result, Seek, SeekFrom};

    struct Hole<'a> {
        before: u64,
        end: &'a [u8],
        at: u64,
        read: u64,
    }

    impl Read for Hole<'_> {
        fn read(&mut self, out: &mut [u8]) -> Result<usize> {
            let at = self.at.checked_sub(self.before).expect("the hole is never read") as usize;
            let count = (&self.end[at..]).read(out)?;
            self.at += count as u64;
            self.read += count as u64;
            Ok(count)
        }
    }

    impl Seek for Hole<'_> {
        fn seek(&mut self, to: SeekFrom) -> Result<u64> {
            self.at = match to {
                SeekFrom::Start(at) => at,
                SeekFrom::End(by) => (self.before + self.end.len() as u64).checked_add_signed(by).unwrap(),
                SeekFrom::Current(by) => self.at.checked_add_signed(by).unwrap(),
            };
            Ok(self.at)
        }
    }

    let blob = blob_of(1 << 15, ItemEncoding::I32Le, &[7_i32]);
    let before = 2 << 40;
    let chunk = forge::chunk(&["x"], 1, before + 4, Some(blob.len() as i64), &[]);
    let end = simple(chunk, &blob);
    let mut hole = Hole { before: before as u64, end: &end, at: 0, read: 0 };
    let mut file = ParquetFilters::open(&mut hole).unwrap();
    assert_eq!(file.may_contain("x", &7_i32).unwrap(), [InRowGroup::Mayhap]);
    assert_eq!(file.may_contain("x", &8_i32).unwrap(), [InRowGroup::No]);
    let only = file.filters()[0].clone();
    assert!(hole_read(&file) < 4096, "two questions of a filter of 1 MiB read {} bytes", hole_read(&file));
    assert!(file.read(&only).unwrap().may_contain(&7_i32));

    fn hole_read(file: &ParquetFilters<&mut Hole<'_>>) -> u64 {
        file.source().read
    }
}

/// The text of `DecodeError` for an unsupported form.
#[test]
fn unsupported_forms_are_named() {
    let refusal = DecodeError::Unsupported { what: "the filter of an encrypted column" };
    assert_eq!(refusal.to_string(), "unsupported: the filter of an encrypted column");
}
