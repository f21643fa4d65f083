//! A filter of another program keeps that program's hash.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mayhap::ItemEncoding;
use mayhap_formats::guava;

#[test]
fn the_hash_of_another_programs_filter_cannot_change() {
    let empty = b"\x01\x07\0\0\0\x01\0\0\0\0\0\0\0\0";
    let filter = guava::read(empty, ItemEncoding::Utf8).unwrap();
    assert_eq!(filter.inserted(), 0);
    let changed = catch_unwind(AssertUnwindSafe(|| drop(filter.with_seed(7))));
    assert!(changed.is_err());
}
