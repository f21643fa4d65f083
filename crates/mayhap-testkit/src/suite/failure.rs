//! The failures that a suite reports, with what is needed to reproduce them.

use super::Operation;
use std::fmt;

/// Where a failure happened: the same script with this seed reproduces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The seed of the filter, the items and the operations.
    pub seed: u64,
    /// The number of operations before this one.
    pub operation: u64,
    /// The current step.
    pub step: Operation,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at seed {}, operation {} ({})", self.seed, self.operation, self.step.name())
    }
}

/// A broken guarantee.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Failure {
    /// The filter answered `no` to a member.
    Forgot {
        /// When.
        place: Place,
        /// The item, in full.
        item: Vec<u8>,
    },
    /// The filter reported a member as certainly new: a hidden false negative.
    NewTwice {
        /// When.
        place: Place,
        /// The item, in full.
        item: Vec<u8>,
    },
    /// The filter did not remove a member.
    WouldNotRemove {
        /// When.
        place: Place,
        /// The item, in full.
        item: Vec<u8>,
    },
    /// The filter rejected an item below its capacity, and the script allows no rejections.
    Refused {
        /// When.
        place: Place,
        /// The item, in full.
        item: Vec<u8>,
    },
    /// A batch gave another answer than single lookups of the same items.
    BatchDisagrees {
        /// When.
        place: Place,
        /// The queried item, in full.
        item: Vec<u8>,
    },
    /// A batch had another number of answers than of items.
    BatchLength {
        /// When.
        place: Place,
        /// The number of items.
        items: usize,
        /// The number of answers.
        answers: usize,
    },
    /// The decoded filter gives another answer than the encoded one.
    DecodedDiffers {
        /// When.
        place: Place,
        /// The queried item, in full.
        item: Vec<u8>,
    },
    /// Encoding or decoding failed.
    RoundTripFailed {
        /// When.
        place: Place,
        /// The filter's error text.
        reason: String,
    },
    /// Merging with a filter of the same parameters failed.
    MergeFailed {
        /// When.
        place: Place,
        /// The filter's error text.
        reason: String,
    },
    /// The filter answers *maybe* to nearly everything: it has no false negatives, and is useless.
    SaysMayhapTooOften {
        /// Seed of the run.
        seed: u64,
        /// Which lookups: of non-members, of members that are not in the filter, or of items just removed.
        step: Operation,
        /// The number of queried items that are not in the filter.
        asked: u64,
        /// The number of them that were answered *maybe*.
        mayhap: u64,
        /// The largest accepted share.
        limit: f64,
    },
    /// At the end of the script the filter was empty, so nothing was tested.
    NothingHeld {
        /// Seed of the run.
        seed: u64,
    },
    /// The number of false positives is outside the promised band.
    RateOff {
        /// False positives over all seeds.
        wrong: u64,
        /// Non-members queried over all seeds.
        trials: u64,
        /// The lower end of the band.
        low: u64,
        /// The upper end of the band.
        high: u64,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forgot { place, item } => write!(f, "forgot {} {place}", Shown(item)),
            Self::NewTwice { place, item } => {
                write!(f, "reported the member {} as new {place}", Shown(item))
            }
            Self::WouldNotRemove { place, item } => {
                write!(f, "did not remove the member {} {place}", Shown(item))
            }
            Self::Refused { place, item } => write!(f, "rejected {} below capacity {place}", Shown(item)),
            Self::BatchDisagrees { place, item } => {
                write!(f, "batch and single lookup disagree about {} {place}", Shown(item))
            }
            Self::BatchLength { place, items, answers } => {
                write!(f, "batch of {items} items got {answers} answers {place}")
            }
            Self::DecodedDiffers { place, item } => {
                write!(f, "decoded filter gives another answer for {} {place}", Shown(item))
            }
            Self::RoundTripFailed { place, reason } => write!(f, "round trip failed ({reason}) {place}"),
            Self::MergeFailed { place, reason } => write!(f, "merge failed ({reason}) {place}"),
            Self::SaysMayhapTooOften { seed, step, asked, mayhap, limit } => write!(
                f,
                "answered maybe to {mayhap} of {asked} items that are not members ({}) at seed {seed}, limit is {limit}",
                step.name()
            ),
            Self::NothingHeld { seed } => write!(f, "empty at the end of the script at seed {seed}"),
            Self::RateOff { wrong, trials, low, high } => {
                write!(f, "{wrong} false positives in {trials} queries, expected {low} to {high}")
            }
        }
    }
}

impl std::error::Error for Failure {}

/// An item in readable form: printable bytes unchanged, others escaped, long items cut.
struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 80;
        let head = &self.0[..self.0.len().min(MOST)];
        match std::str::from_utf8(head) {
            Ok(text) => write!(f, "{text:?}")?,
            Err(_) => write!(f, "\"{}\"", head.escape_ascii())?,
        }
        if self.0.len() > MOST { write!(f, "… of {} bytes", self.0.len()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_item_seed_and_operation() {
        let place = Place { seed: 7, operation: 12, step: Operation::Merge };
        let said = |item: &[u8]| Failure::Forgot { place, item: item.to_vec() }.to_string();
        assert_eq!(said(b"a\"b"), "forgot \"a\\\"b\" at seed 7, operation 12 (merge)");
        assert_eq!(said(&[0xff, 1]), "forgot \"\\xff\\x01\" at seed 7, operation 12 (merge)");
        assert!(said(&[b'x'; 1000]).contains("… of 1000 bytes"));
    }
}
