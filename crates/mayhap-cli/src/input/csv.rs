//! CSV: the ends of records, which may span many lines, and the fields in them.
//!
//! A field that begins with a quote ends with a quote. Everything between is literal, except that a quote is written
//! twice. A quote elsewhere is an ordinary character. These are the rules of the crate `csv`, and tests compare with it.
//! That crate returns fields without their original bytes, but records must be written as they were read.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2};

use super::fields;
use super::item::Found;

const QUOTE: u8 = b'"';

/// Finds the ends of records while they are read.
#[derive(Debug)]
pub(super) struct Records {
    delimiter: u8,
    state: State,
}

/// The position in a quoted field, at the end of the bytes examined so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unquoted,
    Quoted,
    /// After a quote inside a quoted field. It ends the field unless another quote follows.
    QuoteInQuoted,
}

impl Records {
    pub(super) fn new(delimiter: u8) -> Self {
        Self { delimiter, state: State::Unquoted }
    }

    /// Notes the ends of the records in `bytes`. The first `looked_at` bytes were examined before.
    pub(super) fn find_ends(&mut self, bytes: &[u8], looked_at: usize, ends: &mut Vec<u32>) {
        let mut at = looked_at;
        while at < bytes.len() {
            at = match self.state {
                State::Unquoted => {
                    let Some(found) = memchr2(QUOTE, b'\n', &bytes[at..]) else { return };
                    let found = at + found;
                    let record = ends.last().map_or(0, |&end| end as usize);
                    if bytes[found] == b'\n' {
                        ends.push(found as u32 + 1);
                    } else if found == record || bytes[found - 1] == self.delimiter {
                        self.state = State::Quoted;
                    }
                    found + 1
                }
                State::Quoted => {
                    let Some(found) = memchr(QUOTE, &bytes[at..]) else { return };
                    self.state = State::QuoteInQuoted;
                    at + found + 1
                }
                State::QuoteInQuoted if bytes[at] == QUOTE => {
                    self.state = State::Quoted;
                    at + 1
                }
                State::QuoteInQuoted => {
                    self.state = State::Unquoted;
                    at
                }
            };
        }
    }

    /// Returns `true` if the examined bytes end inside quotes.
    pub(super) fn in_quotes(&self) -> bool {
        self.state == State::Quoted
    }
}

/// The number of lines in `bytes`.
pub(super) fn lines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// `record` without the CR before its line feed, if it has one.
fn without_cr(record: &[u8]) -> &[u8] {
    record.strip_suffix(b"\r").unwrap_or(record)
}

/// Field `number` of `record`, counted from 1, or else the number of fields.
pub(super) fn find(
    record: &[u8],
    delimiter: u8,
    number: usize,
    unescaped: &mut Vec<u8>,
) -> Result<Found, usize> {
    let record = without_cr(record);
    if record.is_empty() {
        return Ok(Found::Blank);
    }
    let mut at = 0;
    for field in 1.. {
        let range = field_at(record, delimiter, at);
        let next = range.end + 1;
        if field == number {
            return Ok(value(record, range, unescaped));
        }
        if next > record.len() {
            return Err(field);
        }
        at = next;
    }
    Err(0)
}

/// The range of the field that begins at `start`, with its quotes.
fn field_at(record: &[u8], delimiter: u8, start: usize) -> Range<usize> {
    let mut at = start;
    if record.get(at) == Some(&QUOTE) {
        at += 1;
        // Finds the closing quote: the first that is not followed by another quote.
        while let Some(found) = memchr(QUOTE, &record[at..]) {
            at += found + 1;
            if record.get(at) != Some(&QUOTE) {
                break;
            }
            at += 1;
        }
    }
    let length = memchr(delimiter, &record[at..]).unwrap_or(record.len() - at);
    start..at + length
}

/// The content of the field in `range`.
fn value(record: &[u8], range: Range<usize>, unescaped: &mut Vec<u8>) -> Found {
    let Some(quoted) = record[range.clone()].strip_prefix(&[QUOTE]) else { return Found::Read(range) };
    let start = range.start + 1;
    match memchr(QUOTE, quoted) {
        // Most quoted fields contain no quotes.
        Some(end) if end + 1 == quoted.len() => return Found::Read(start..start + end),
        _ => {}
    }
    let from = unescaped.len();
    let mut rest = quoted;
    while let Some(at) = memchr(QUOTE, rest) {
        unescaped.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix(&[QUOTE]) {
            Some(after) => {
                unescaped.push(QUOTE);
                rest = after;
            }
            // Bytes after the closing quote are kept as they are.
            None => break,
        }
    }
    unescaped.extend_from_slice(rest);
    Found::Unescaped(from..unescaped.len())
}

/// The contents of all fields of `record`.
pub(super) fn all_fields(record: &[u8], delimiter: u8) -> Vec<Vec<u8>> {
    let mut unescaped = Vec::new();
    let mut fields = Vec::new();
    let mut at = 0;
    let record = without_cr(record);
    while at <= record.len() {
        let range = field_at(record, delimiter, at);
        at = range.end + 1;
        fields.push(match value(record, range, &mut unescaped) {
            Found::Read(range) => record[range].to_vec(),
            Found::Unescaped(range) => unescaped[range].to_vec(),
            Found::Blank | Found::Missing(_) | Found::Bad(_) => Vec::new(),
        });
    }
    fields
}

/// The number of the column `asked`, which is a name in `header` or a number: `2`, `#2`.
pub(super) fn column(header: &[u8], delimiter: u8, asked: &str) -> Result<usize, String> {
    let header = header.strip_suffix(b"\n").unwrap_or(header);
    let fields = all_fields(header, delimiter);
    let named = |name: &Vec<u8>| name.trim_ascii() == asked.trim_ascii().as_bytes();
    if let Some(at) = fields.iter().position(named) {
        return Ok(at + 1);
    }
    match number(asked) {
        Some(number) if number <= fields.len() => Ok(number),
        Some(number) => Err(format!("no column {number}: the header has {}", fields::counted(fields.len()))),
        None => {
            let names: Vec<_> =
                fields.iter().map(|name| String::from_utf8_lossy(name.trim_ascii())).collect();
            Err(format!("no column {asked:?} in the header: {}", shortened(&names.join(", "))))
        }
    }
}

/// Parses the number of a column, counted from 1: `2`, `#2`.
pub(super) fn number(text: &str) -> Option<usize> {
    text.strip_prefix('#').unwrap_or(text).parse().ok().filter(|&number| number > 0)
}

/// The beginning of a text that may be very long.
fn shortened(text: &str) -> String {
    const LETTERS: usize = 200;
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::drip::Random;

    /// All records of `text`, raw, found in steps of 1 to `at_most` bytes.
    fn records(text: &[u8], delimiter: u8, at_most: usize, random: &mut Random) -> (Vec<Vec<u8>>, bool) {
        let mut records = Records::new(delimiter);
        let (mut ends, mut looked_at) = (Vec::new(), 0);
        while looked_at < text.len() {
            let now = text.len().min(looked_at + 1 + random.below(at_most));
            records.find_ends(&text[..now], looked_at, &mut ends);
            looked_at = now;
        }
        if ends.last().map_or(0, |&end| end as usize) < text.len() {
            ends.push(text.len() as u32);
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let raw =
            starts.zip(&ends).map(|(start, &end)| text[start as usize..end as usize].to_vec()).collect();
        (raw, records.in_quotes())
    }

    #[test]
    fn records_and_fields_are_those_of_the_crate_csv() {
        let mut random = Random(11);
        let pieces = ["a", "bc", ",", ",", "\"", "\"\"", "\n", "\r\n", "\",\"", "\"\n", "é", " ", ";"];
        let (mut quoted, mut many_lines, mut odd) = (0, 0, 0);
        for round in 0..30_000 {
            let text = random.text(&pieces, 30);
            let delimiter = if round % 3 == 0 { b';' } else { b',' };
            let at_most = 1 + random.below(9);
            let (raw, in_quotes) = records(&text, delimiter, at_most, &mut random);
            assert_eq!(raw.concat(), text, "nothing is lost");
            if in_quotes {
                // Cut inside quotes: an error, not a record.
                odd += 1;
                continue;
            }
            let ours: Vec<_> = raw
                .iter()
                .map(|record| record.strip_suffix(b"\n").unwrap_or(record))
                .filter(|record| !without_cr(record).is_empty())
                .map(|record| all_fields(record, delimiter))
                .collect();
            let theirs: Vec<Vec<Vec<u8>>> = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .delimiter(delimiter)
                .from_reader(&text[..])
                .byte_records()
                .map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect())
                .collect();
            assert_eq!(ours, theirs, "{:?}", String::from_utf8_lossy(&text));
            quoted += usize::from(text.contains(&QUOTE));
            many_lines += usize::from(raw.iter().any(|record| lines(record) > 1));
        }
        assert!(quoted > 5_000 && many_lines > 1_000 && odd > 1_000, "{quoted} {many_lines} {odd}");
    }

    #[test]
    fn one_field_is_the_same_as_that_of_all() {
        let mut random = Random(12);
        for _ in 0..30_000 {
            let record = random.text(&["a", "b", ",", "\"", "\"\"", "\",", "\n"], 12);
            let all = all_fields(&record, b',');
            for number in 1..=8 {
                let mut unescaped = b"before".to_vec();
                let found = find(&record, b',', number, &mut unescaped).map(|found| match found {
                    Found::Read(range) => Some(record[range].to_vec()),
                    Found::Unescaped(range) => Some(unescaped[range].to_vec()),
                    _ => None,
                });
                let expected = match () {
                    () if record.is_empty() => Ok(None),
                    () => all.get(number - 1).cloned().map(Some).ok_or(all.len()),
                };
                assert_eq!(found, expected, "{:?} {number}", String::from_utf8_lossy(&record));
            }
        }
    }
}
