//! How long the longest request of this thread took. A busy machine makes everything longer, and nothing shorter: the shortest of some times
//! counts.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// What one request may take of a filter of a mebibyte, whatever was loaded: everyone else waits for it.
pub const LONGEST_REQUEST: Duration = Duration::from_millis(100);
/// How often something is tried until its requests keep to that.
const ATTEMPTS: usize = 5;

/// A request and its time.
#[derive(Clone, Debug, Default)]
pub struct Longest {
    /// What it took.
    pub took: Duration,
    /// The beginning of its words.
    pub request: String,
}

thread_local! {
    static LONGEST: RefCell<Longest> = RefCell::default();
}

/// Runs a request, and remembers it if none took longer.
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

/// The longest request of this thread since the last time.
#[must_use]
pub fn take_longest() -> Longest {
    LONGEST.take()
}

/// The longest request of `run`, which is tried again while one took too long.
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
