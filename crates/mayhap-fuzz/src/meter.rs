//! The time of the longest request of this thread. A busy machine makes requests slower, never faster, so the shortest of several attempts counts.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// The time limit of one request to a filter of a mebibyte, whatever was loaded: all other requests wait for it.
pub const LONGEST_REQUEST: Duration = Duration::from_millis(100);
/// The number of attempts until all requests keep the limit.
const ATTEMPTS: usize = 5;

/// A request and its time.
#[derive(Clone, Debug, Default)]
pub struct Longest {
    /// The time it took.
    pub took: Duration,
    /// The beginning of its words.
    pub request: String,
}

thread_local! {
    static LONGEST: RefCell<Longest> = RefCell::default();
}

/// Runs a request, and records it if it is the longest so far.
pub fn measure<T>(words: &[&[u8]], run: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = run();
    let took = begun.elapsed();
    LONGEST.with_borrow_mut(|longest| {
        if took > longest.took {
            let word = |word: &&[u8]| word[..word.len().min(24)].escape_ascii().to_string();
            let request = words.iter().take(4).map(word).collect::<Vec<_>>().join(" ");
            *longest = Longest { took, request };
        }
    });
    done
}

/// Returns the longest request of this thread since the last call.
#[must_use]
pub fn take_longest() -> Longest {
    LONGEST.take()
}

/// Returns the longest request of `run`; runs it again if one took too long.
pub fn longest_of(mut run: impl FnMut()) -> Longest {
    let mut once = || {
        let _ = take_longest();
        run();
        take_longest()
    };
    let mut shortest = once();
    for _ in 1..ATTEMPTS {
        if shortest.took < LONGEST_REQUEST {
            break;
        }
        let again = once();
        if again.took < shortest.took {
            shortest = again;
        }
    }
    shortest
}
