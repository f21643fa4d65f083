//! The ends of records.

/// The end of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terminator {
    /// A line feed.
    Lf,
    /// Carriage return and line feed; a line feed alone also ends a line.
    CrLf,
    /// A zero byte.
    Null,
}

impl Terminator {
    /// The last byte of every record.
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Lf | Self::CrLf => b'\n',
            Self::Null => 0,
        }
    }

    /// The bytes that are added to a last record without an end.
    pub(crate) const fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::Null => b"\0",
        }
    }
}

/// Notes the ends of the records in `bytes`. The first `looked_at` bytes contain no end.
pub(super) fn find_ends(bytes: &[u8], looked_at: usize, terminator: Terminator, ends: &mut Vec<u32>) {
    ends.extend(
        memchr::memchr_iter(terminator.byte(), &bytes[looked_at..]).map(|at| (looked_at + at + 1) as u32),
    );
}
