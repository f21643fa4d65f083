//! How a request accesses each of its keys, and so which permissions its user needs.

use crate::command::{Command, Names};
use crate::run::Request;
use crate::traits::{Touches, has_word};

/// How a request accesses one of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Learns whether it exists and its size: any permission on the key is enough.
    Notice,
    /// Reads or copies its value.
    Read,
    /// Changes or deletes its value, and reveals no more of it than any write does.
    Write,
    /// Both.
    ReadWrite,
}

impl Touch {
    /// Does the user need permission to read it?
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// Does the user need permission to write it?
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

impl Names {
    /// The positions of the keys in a request of this many words.
    pub fn positions(self, words: usize) -> impl Iterator<Item = usize> {
        let end = match usize::try_from(self.last) {
            Ok(last) => last.saturating_add(1),
            Err(_) => {
                (words + 1).saturating_sub(usize::try_from(self.last.unsigned_abs()).unwrap_or(usize::MAX))
            }
        };
        let end = if self.first == 0 { 0 } else { end.min(words) };
        (self.first..end.max(self.first)).step_by(self.step.max(1))
    }
}

impl<'a> Request<'a> {
    /// Every key of the request and how it is accessed.
    pub fn touches(&self) -> impl Iterator<Item = (&'a [u8], Touch)> {
        let Self { command, words } = *self;
        let positions = command.names.positions(words.len()).enumerate();
        positions.map(move |(number, at)| (words[at], touch(command, words, number)))
    }
}

/// How the key with this number, from 0, is accessed.
fn touch(command: &Command, words: &[&[u8]], number: usize) -> Touch {
    match command.traits.touches {
        Touches::Usual if command.changes() => Touch::Write,
        Touches::Usual => Touch::Read,
        Touches::Each(touch) => touch,
        Touches::FirstAndRest(first, _) if number == 0 => first,
        Touches::FirstAndRest(_, rest) => rest,
        Touches::If { words: wanted, from, then, .. } if has_word(words, from, wanted) => then,
        Touches::If { otherwise, .. } => otherwise,
        Touches::Everything => Touch::Write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    fn touches(line: &str) -> Vec<(String, Touch)> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let command = table::find(words[0]).unwrap();
        assert!(command.arity.admits(words.len()), "{line}");
        let request = Request { command, words: &words };
        let names: Vec<&[u8]> = request.touches().map(|(name, _)| name).collect();
        assert_eq!(names, request.names(), "{line}");
        request.touches().map(|(name, touch)| (String::from_utf8(name.to_vec()).unwrap(), touch)).collect()
    }

    #[test]
    fn sources_are_read_and_targets_written() {
        use Touch::{Notice, Read, ReadWrite, Write};
        for (line, expected) in [
            ("RENAME a b", vec![("a", ReadWrite), ("b", Write)]),
            ("RENAMENX a b", vec![("a", ReadWrite), ("b", Write)]),
            ("COPY a b REPLACE", vec![("a", Read), ("b", Write)]),
            ("BITOP AND t a b", vec![("t", Write), ("a", Read), ("b", Read)]),
            ("MF.MERGE t a b", vec![("t", Write), ("a", Read), ("b", Read)]),
            ("DEL a b", vec![("a", Write), ("b", Write)]),
            ("EXISTS a b", vec![("a", Notice), ("b", Notice)]),
            ("WATCH a b", vec![("a", Notice), ("b", Notice)]),
            ("BF.ADD a b", vec![("a", Write)]),
            ("BF.EXISTS a b", vec![("a", Read)]),
            ("DUMP a", vec![("a", Read)]),
            ("RESTORE a 0 b", vec![("a", Write)]),
            ("SET a get", vec![("a", Write)]),
            ("SET a b GET", vec![("a", ReadWrite)]),
            ("SETBIT a 1 1", vec![("a", ReadWrite)]),
            ("BITFIELD a GET u8 0", vec![("a", Read)]),
            ("BITFIELD a GET u8 0 incrby u8 0 1", vec![("a", ReadWrite)]),
            ("MEMORY USAGE a", vec![("a", Notice)]),
            ("OBJECT HELP", vec![]),
            ("SCAN 0", vec![]),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|(name, touch)| (name.to_owned(), touch)).collect();
            assert_eq!(touches(line), expected, "{line}");
        }
    }
}
