//! Fields of a line: separated by a delimiter as in `cut`, or by blanks as in `awk`.

use std::ops::Range;

/// The range of field `number` of `line`, counted from 1, or else the number of fields.
///
/// With a delimiter, each delimiter ends a field, so fields may be empty. Without one, fields are separated by any
/// number of spaces and tabs; blanks before the first field are ignored.
pub(super) fn find(line: &[u8], delimiter: Option<u8>, number: usize) -> Result<Range<usize>, usize> {
    match delimiter {
        Some(delimiter) => between_delimiters(line, delimiter, number),
        None => between_blanks(line, number),
    }
}

fn between_delimiters(line: &[u8], delimiter: u8, number: usize) -> Result<Range<usize>, usize> {
    let (mut start, mut field) = (0, 1);
    for at in memchr::memchr_iter(delimiter, line) {
        if field == number {
            return Ok(start..at);
        }
        (start, field) = (at + 1, field + 1);
    }
    if field == number { Ok(start..line.len()) } else { Err(field) }
}

fn between_blanks(line: &[u8], number: usize) -> Result<Range<usize>, usize> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut at = 0;
    for field in 1.. {
        let Some(blanks) = line[at..].iter().position(|byte| !is_blank(byte)) else { return Err(field - 1) };
        let start = at + blanks;
        let length = line[start..].iter().position(is_blank).unwrap_or(line.len() - start);
        at = start + length;
        if field == number {
            return Ok(start..at);
        }
    }
    Err(0)
}

/// A number of fields: `1 field`, `3 fields`.
pub(super) fn counted(fields: usize) -> String {
    format!("{fields} field{}", if fields == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::drip::Random;

    #[test]
    fn fields_match_a_simple_split() {
        let mut random = Random(3);
        for _ in 0..20_000 {
            let line = random.text(&["a", "bc", " ", "\t", ",", "é"], 12);
            let text = str::from_utf8(&line).unwrap();
            let between_commas: Vec<_> = text.split(',').collect();
            let between_blanks: Vec<_> = text.split([' ', '\t']).filter(|field| !field.is_empty()).collect();
            for number in 1..10 {
                for (delimiter, fields) in [(Some(b','), &between_commas), (None, &between_blanks)] {
                    let expected = fields.get(number - 1).map(|field| field.as_bytes()).ok_or(fields.len());
                    let found = find(&line, delimiter, number).map(|range| &line[range]);
                    assert_eq!(found, expected, "{text:?} {delimiter:?} {number}");
                }
            }
        }
    }
}
