//! The measurement: all filters take turns in changing order, each with the same items.

use std::hint::black_box;

use mayhap::{Answers, HashScheme};
use mayhap_advise::{Needs, Price, Structure};

use super::clock::{all_threads, median, per_item, this_thread};
use super::contender::{CannotBuild, Contender, build, line_item};
use super::interval::interval;
use super::sample::{Arena, Sample};
use crate::progress::Progress;

/// Lookups of each sort in one turn.
const QUESTIONS: usize = 1 << 15;
/// Lookups before the clock starts, to bring a filter that fits the cache back into it.
const WARM_UP: usize = 1 << 13;
/// With few items, the build is repeated up to this many items, because one build is too short to time.
const BUILT_ITEMS: usize = 2_000_000;
const MOST_BUILDS: usize = 5;

/// The results of one structure.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) structure: Structure,
    pub(super) members: u64,
    pub(super) members_lost: u64,
    pub(super) non_members: u64,
    pub(super) wrong: u64,
    /// Whether it never has false positives.
    pub(super) exact: bool,
    pub(super) expected_fpr: f64,
    pub(super) memory_bytes: u64,
    /// CPU nanoseconds per item.
    pub(super) build_ns: f64,
    pub(super) lookup: Lookup,
}

/// CPU nanoseconds per lookup: of non-members and members, one by one and in batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookup {
    pub(super) no_each: f64,
    pub(super) no_batch: f64,
    pub(super) mayhap_each: f64,
    pub(super) mayhap_batch: f64,
}

impl Lookup {
    /// The mean of all four.
    pub(super) fn mean(&self) -> f64 {
        (self.no_each + self.no_batch + self.mayhap_each + self.mayhap_batch) / 4.0
    }
}

impl Measured {
    pub(super) fn observed_fpr(&self) -> f64 {
        self.wrong as f64 / self.non_members.max(1) as f64
    }

    /// The 95 % confidence interval of the rate.
    pub(super) fn interval(&self) -> (f64, f64) {
        if self.exact { (0.0, 0.0) } else { interval(self.wrong, self.non_members) }
    }

    pub(super) fn bits_per_item(&self) -> f64 {
        self.memory_bytes as f64 * 8.0 / self.members.max(1) as f64
    }
}

/// A filter during the run.
struct Track<'a> {
    price: &'a Price,
    filter: Contender,
    build: Vec<f64>,
    /// The times of each sort, in the order of [`Lookup`].
    lookup: [Vec<f64>; 4],
}

/// Measures all of `chosen`. Returns those that could not be built with the reason.
pub(super) fn measure(
    chosen: &[Price],
    sample: &Sample,
    needs: &Needs,
    scheme: &HashScheme,
    rounds: u32,
    progress: &Progress,
) -> (Vec<Measured>, Vec<(Structure, String)>) {
    let (mut tracks, failed) = build_all(chosen, sample, needs, scheme, progress);
    progress.phase("measuring", None);
    progress.expect_items(tracks.len() as u64 * u64::from(rounds) * 4 * QUESTIONS as u64);
    let mut questions = Questions::default();
    for round in 0..rounds as usize {
        questions.choose(sample, round);
        let turns = tracks.len();
        for turn in 0..turns {
            let track = &mut tracks[(turn + round) % turns];
            ask(track, &questions, (turn + round) % 2 == 0);
            progress.add_items(4 * QUESTIONS as u64);
        }
    }
    progress.phase("judging", None);
    progress.expect_items(tracks.len() as u64 * (sample.members.len() + sample.non_members.len()) as u64);
    (tracks.into_iter().map(|track| judge(track, sample, progress)).collect(), failed)
}

fn build_all<'a>(
    chosen: &'a [Price],
    sample: &Sample,
    needs: &Needs,
    scheme: &HashScheme,
    progress: &Progress,
) -> (Vec<Track<'a>>, Vec<(Structure, String)>) {
    let members = &sample.members;
    let builds = (BUILT_ITEMS / members.len().max(1)).clamp(1, MOST_BUILDS);
    progress.phase("building", None);
    progress.expect_items((builds * chosen.len() * members.len()) as u64);
    let (mut tracks, mut failed): (Vec<Track<'a>>, Vec<_>) = (Vec::new(), Vec::new());
    for price in chosen {
        let (built, spent) = all_threads(|| build(price.structure, black_box(members), needs, scheme));
        progress.add_items(members.len() as u64);
        match built {
            Ok(filter) => {
                let build = vec![per_item(spent, members.len())];
                tracks.push(Track { price, filter, build, lookup: [const { Vec::new() }; 4] });
            }
            Err(CannotBuild(why)) => failed.push((price.structure, why)),
        }
    }
    for _ in 1..builds {
        for track in &mut tracks {
            let (built, spent) =
                all_threads(|| build(track.price.structure, black_box(members), needs, scheme));
            progress.add_items(members.len() as u64);
            // The same parameters as before, so the build succeeds again.
            if let Ok(filter) = built {
                track.filter = filter;
                track.build.push(per_item(spent, members.len()));
            }
        }
    }
    (tracks, failed)
}

/// The items of one round, in random order.
#[derive(Default)]
struct Questions {
    members: Arena,
    non_members: Arena,
}

impl Questions {
    fn choose(&mut self, sample: &Sample, round: usize) {
        choose(&sample.members, &mut self.members, round);
        choose(&sample.non_members, &mut self.non_members, round);
    }
}

/// Copies random items into `chosen`, contiguous in memory.
fn choose(items: &Arena, chosen: &mut Arena, round: usize) {
    chosen.clear();
    let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ (round as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..QUESTIONS {
        // An xorshift is good enough to choose items.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chosen.push(items.get(((u128::from(state) * items.len() as u128) >> 64) as usize));
    }
}

/// One filter's turn: all four sorts of lookups, singles or batches first.
fn ask(track: &mut Track<'_>, questions: &Questions, singles_first: bool) {
    let structure = track.price.structure;
    let filter = &track.filter;
    let mut answers = Answers::new();
    for (sort, items) in [&questions.non_members, &questions.members].into_iter().enumerate() {
        let items: Vec<_> = items.iter().map(|item| line_item(structure, item)).collect();
        // Not the items that are timed next.
        black_box(filter.ask_batches(&items[items.len() - WARM_UP..], &mut answers));
        let timed = &items[..items.len() - WARM_UP];
        let (first, second) = timed.split_at(timed.len() / 2);
        let (each, batch) = if singles_first { (first, second) } else { (second, first) };
        let mut one = |in_batches: bool| {
            let asked = if in_batches { batch } else { each };
            let (_, spent) = this_thread(|| {
                black_box(if in_batches {
                    filter.ask_batches(black_box(asked), &mut answers)
                } else {
                    filter.ask_each(black_box(asked))
                })
            });
            per_item(spent, asked.len())
        };
        for in_batches in if singles_first { [false, true] } else { [true, false] } {
            track.lookup[2 * sort + usize::from(in_batches)].push(one(in_batches));
        }
    }
}

/// Looks up all members and non-members.
fn judge(mut track: Track<'_>, sample: &Sample, progress: &Progress) -> Measured {
    let structure = track.price.structure;
    let mut answers = Answers::new();
    let mut maybes = |items: &Arena| {
        let mut batch = Vec::with_capacity(QUESTIONS);
        let (mut count, mut items) = (0, items.iter().peekable());
        while items.peek().is_some() {
            batch.clear();
            batch.extend(items.by_ref().take(QUESTIONS).map(|item| line_item(structure, item)));
            count += track.filter.ask_batches(&batch, &mut answers) as u64;
            progress.add_items(batch.len() as u64);
        }
        count
    };
    let (found, wrong) = (maybes(&sample.members), maybes(&sample.non_members));
    let [no_each, no_batch, mayhap_each, mayhap_batch] = &mut track.lookup;
    Measured {
        structure,
        members: sample.members.len() as u64,
        members_lost: sample.members.len() as u64 - found,
        non_members: sample.non_members.len() as u64,
        wrong,
        exact: track.price.can.exact,
        expected_fpr: track.filter.expected_fpr(),
        // The memory of a set is computed, as in `plan`, not measured.
        memory_bytes: track
            .filter
            .memory_bytes()
            .or_else(|| track.price.cost.map(|cost| cost.memory_bytes))
            .unwrap_or_default(),
        build_ns: median(&mut track.build),
        lookup: Lookup {
            no_each: median(no_each),
            no_batch: median(no_batch),
            mayhap_each: median(mayhap_each),
            mayhap_batch: median(mayhap_batch),
        },
    }
}
