//! What a suite found wrong, with what is needed to see it again.

use super::Operation;
use std::fmt;

/// When it happened: run the same script again with this seed and it happens again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The seed of the filter, the items and the operations.
    pub seed: u64,
    /// How many operations were done before this one.
    pub operation: u64,
    /// What was being done.
    pub step: Operation,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at seed {}, operation {} ({})", self.seed, self.operation, self.step.name())
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Failure {
    /// The filter said `no` to an item it holds.
    Forgot {
        /// When.
        place: Place,
        /// The item, in full.
        item: Vec<u8>,
    },
    /// The filter called an item certainly new that it holds: a false negative in disguise.
    NewTwice {
        /// When.
        place: Place,
        /// The item, in full.
        item: Vec<u8>,
    },
    /// The filter would not remove an item it holds.
    WouldNotRemove {
        /// When.
        place: Place,
        /// The item, in full.
        item: Vec<u8>,
    },
    /// The filter refused an item below its capacity, and the script allows no refusals.
    Refused {
        /// When.
        place: Place,
        /// The item, in full.
        item: Vec<u8>,
    },
    /// A batch answered otherwise than the same items one by one.
    BatchDisagrees {
        /// When.
        place: Place,
        /// The item answered about, in full.
        item: Vec<u8>,
    },
    /// A batch had another number of answers than of items.
    BatchLength {
        /// When.
        place: Place,
        /// How many items were given.
        items: usize,
        /// How many answers came back.
        answers: usize,
    },
    /// What was decoded answers otherwise than what was encoded.
    DecodedDiffers {
        /// When.
        place: Place,
        /// The item answered about, in full.
        item: Vec<u8>,
    },
    /// Encoding or decoding failed.
    RoundTripFailed {
        /// When.
        place: Place,
        /// The filter's own words.
        reason: String,
    },
    /// Merging with a filter made alike failed.
    MergeFailed {
        /// When.
        place: Place,
        /// The filter's own words.
        reason: String,
    },
    /// The filter says `mayhap` to nearly everything: it never forgets, and is of no use.
    SaysMayhapTooOften {
        /// Seed of the run.
        seed: u64,
        /// Which lookups: of non-members, of members that are not in, or of items just removed.
        step: Operation,
        /// How many items that are not in were asked about.
        asked: u64,
        /// How many of them got a `mayhap`.
        mayhap: u64,
        /// The largest share that is let through.
        limit: f64,
    },
    /// At the end of the script the filter held nothing, so nothing was tested.
    NothingHeld {
        /// Seed of the run.
        seed: u64,
    },
    /// The number of wrong answers lies outside the promised band.
    RateOff {
        /// Wrong answers over all seeds.
        wrong: u64,
        /// Non-members asked about over all seeds.
        trials: u64,
        /// Fewest wrong answers promised.
        low: u64,
        /// Most wrong answers promised.
        high: u64,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forgot { place, item } => write!(f, "forgot {} {place}", Shown(item)),
            Self::NewTwice { place, item } => {
                write!(f, "called {} new, which it holds, {place}", Shown(item))
            }
            Self::WouldNotRemove { place, item } => {
                write!(f, "would not remove {}, which it holds, {place}", Shown(item))
            }
            Self::Refused { place, item } => write!(f, "refused {} below capacity {place}", Shown(item)),
            Self::BatchDisagrees { place, item } => {
                write!(f, "batch and single lookup disagree about {} {place}", Shown(item))
            }
            Self::BatchLength { place, items, answers } => {
                write!(f, "batch of {items} items got {answers} answers {place}")
            }
            Self::DecodedDiffers { place, item } => {
                write!(f, "decoded filter answers otherwise about {} {place}", Shown(item))
            }
            Self::RoundTripFailed { place, reason } => write!(f, "round trip failed ({reason}) {place}"),
            Self::MergeFailed { place, reason } => write!(f, "merge failed ({reason}) {place}"),
            Self::SaysMayhapTooOften { seed, step, asked, mayhap, limit } => write!(
                f,
                "said mayhap to {mayhap} of {asked} items that were not in ({}) at seed {seed}, limit is {limit}",
                step.name()
            ),
            Self::NothingHeld { seed } => write!(f, "held nothing at the end of the script at seed {seed}"),
            Self::RateOff { wrong, trials, low, high } => {
                write!(f, "gave {wrong} wrong answers of {trials}, promised were {low} to {high}")
            }
        }
    }
}

impl std::error::Error for Failure {}

/// An item as one can read it: printable bytes as they are, others escaped, long ones cut.
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
