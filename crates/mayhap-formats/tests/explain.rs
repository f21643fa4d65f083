//! Explanations of other programs' filters match their lookups.

use mayhap::{Filter, ItemEncoding};
use mayhap_formats::{Format, RebuildError, block_filter, rocksdb};

const MEMBERS: u64 = 3_000;
/// High enough for frequent false positives.
const RATE: f64 = 0.05;

fn text(i: u64, who: &str) -> String {
    format!("{who}-{i}@example.org")
}

#[test]
fn filters_of_other_programs_are_explained_by_their_own_rules() {
    let mut explained = 0;
    for format in Format::ALL {
        for rate in [RATE, 0.001] {
            let items = (0..MEMBERS).map(|i| text(i, "member"));
            let filter = match format.build(items, MEMBERS, rate, ItemEncoding::Utf8) {
                Ok(filter) => filter,
                Err(RebuildError::NotSo { .. }) => continue,
                Err(error) => panic!("{format}: {error}"),
            };
            let mut wrong = 0;
            for i in 0..MEMBERS {
                for item in [text(i, "member"), text(i, "non-member")] {
                    let (lookup, answer) = (filter.trace(&item), filter.may_contain(&item));
                    assert_eq!(lookup.holds(), answer, "{format} {item}");
                    wrong += u64::from(answer);
                    if i % 500 != 0 {
                        continue;
                    }
                    let explanation = filter.explain(&item);
                    assert_eq!((explanation.answer, &explanation.lookup), (answer, &lookup), "{format}");
                    assert!(explanation.has_form && explanation.encoding.is_some(), "{format}");
                    assert_eq!(explanation.item.as_deref(), Some(item.as_bytes()), "{format}");
                    assert!(explanation.function.is_some(), "{format}");
                }
            }
            assert!(wrong > MEMBERS || rate < 0.01, "{format}: too few non-members answered maybe");
            assert!(filter.explain("").answer == filter.may_contain(""), "{format}");
            explained += 1;
        }
    }
    assert!(explained > 30, "{explained}");
}

#[test]
fn rocksdb_and_golomb_sets_have_builders_of_their_own() {
    let items = || (0..500).map(|i| text(i, "member"));
    let set = block_filter::build(items(), block_filter::BASIC, [3; 16], ItemEncoding::Utf8).unwrap();
    let mut filters = vec![Filter::Gcs(set)];
    for style in [rocksdb::BloomStyle::Legacy, rocksdb::BloomStyle::FastLocal] {
        let filter = rocksdb::create(style, 5.0, 500, ItemEncoding::Utf8).unwrap();
        let mut filter = Filter::BlockedBloom(filter);
        for item in items() {
            filter.insert(&item).unwrap();
        }
        filters.push(filter);
    }
    for filter in filters {
        for i in 0..1_000 {
            let item = text(i, if i < 500 { "member" } else { "non-member" });
            assert_eq!(filter.explain(&item).answer, filter.may_contain(&item));
        }
    }
}

#[test]
fn items_are_shown_as_they_were_hashed() {
    let filter = Format::Guava.build(["ab"], 10, 0.01, ItemEncoding::Utf16Le).unwrap();
    let explanation = filter.explain("ab");
    assert_eq!(explanation.item.as_deref(), Some(&b"a\0b\0"[..]));
    assert_eq!(explanation.encoding, Some(ItemEncoding::Utf16Le));
    assert_eq!(explanation.function.as_deref(), Some("Guava's murmur3"));

    let numbers = Format::Guava.build(["7"], 10, 0.01, ItemEncoding::I64Le).unwrap();
    assert_eq!(numbers.explain("7").item.as_deref(), Some(&[7, 0, 0, 0, 0, 0, 0, 0][..]));
    let formless = numbers.explain("ada");
    assert!(!formless.has_form && !formless.answer);
    assert!(
        formless
            .reason()
            .ends_with("(the item cannot be encoded as i64le: no other program can have inserted it)")
    );

    let sketches = Format::DataSketches.build(["ada"], 10, 0.01, ItemEncoding::Utf8).unwrap();
    assert_eq!(sketches.explain("").reason(), "no: filters of this format do not store empty text");
}
