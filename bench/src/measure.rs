//! The measurement: all filters are built and then queried in interleaved turns whose order rotates, each on the same items. Items are generated
//! outside the timed part and are fresh for every timed chunk, because cache lines loaded by one query would make the next one look cheap.

use std::hint::black_box;

use crate::{
    clock::{time, time_all_threads},
    contender::{Contender, Entry, Kind, Make},
    heap,
    items::{self, BenchItem, Shape},
    limit::Gather,
    row::{Row, Timings, thousandths},
    samples::Samples,
};

/// Items per timed chunk: large compared with the cost of the clock, small compared with the noise of the machine.
const CHUNK: usize = 32_768;

/// Timed chunks of each sort per turn of one filter.
const CHUNKS_PER_TURN: usize = 4;

/// Chunks that a filter inserts before the turn of the next one.
const CHUNKS_PER_LEG: usize = 8;

/// The smallest number of non-members to measure a rate with; more if needed to expect [`WRONG_ANSWERS`].
const FEWEST_NON_MEMBERS: u64 = 2_000_000;
const WRONG_ANSWERS: f64 = 1_000.0;
const MOST_NON_MEMBERS: u64 = 50_000_000;

/// A filter that is much better than requested, such as one of fixed width, is queried with more non-members until it has this many false positives,
/// within reason.
const FEWEST_WRONG: u64 = 300;
const REASON: u64 = 20_000_000;

/// The largest number of removed members, in chunks; never more than a quarter of the members.
const CHUNKS_REMOVED: usize = 16;

/// Settings of the measurement.
pub(crate) struct Plan {
    pub(crate) items: u64,
    pub(crate) fpr: f64,
    pub(crate) shape: Shape,
    pub(crate) rounds: usize,
}

impl Plan {
    /// How often every filter is filled; more often if it is cheap.
    fn builds(&self) -> usize {
        match self.items {
            0..=2_000_000 => 5,
            2_000_001..=20_000_000 => 2,
            _ => 1,
        }
    }

    /// How often static filters are built: each build is one sample.
    fn whole_builds(&self) -> usize {
        match self.items {
            0..=2_000_000 => 7,
            2_000_001..=20_000_000 => 3,
            _ => 1,
        }
    }

    /// Items inserted per timed chunk: small filters still get several samples of both ways of inserting.
    fn build_chunk(&self) -> usize {
        (self.items as usize / 16).clamp(1, CHUNK)
    }

    /// Queries before a turn is timed: enough to reload a cacheable filter, which the others evicted. From 2^25 items on no filter fits the cache, and
    /// the chunk only warms the page tables.
    fn warm_up(&self) -> usize {
        if self.items > 1 << 25 { CHUNK } else { (self.items as usize / 32).clamp(CHUNK, 1 << 18) }
    }

    fn non_members_wanted(&self) -> u64 {
        ((WRONG_ANSWERS / self.fpr) as u64).clamp(FEWEST_NON_MEMBERS, MOST_NON_MEMBERS)
    }
}

/// Builds, queries and judges every entry, and measures the limits.
pub(crate) fn measure<T: BenchItem>(plan: &Plan, entries: Vec<Entry<T>>) -> Vec<Row> {
    let mut tracks: Vec<Track<T>> = entries.into_iter().map(Track::new).collect();
    for build in 0..plan.builds() {
        fill_all(plan, &mut tracks, build);
    }
    build_whole(plan, &mut tracks);
    tracks.iter_mut().for_each(Track::weigh);
    let mut limits = limits(plan, &tracks);
    let mut asked = Asked::default();
    for round in 0..plan.rounds {
        ask_all(plan, &mut tracks, &mut limits, &mut asked, round);
    }
    top_up(plan, &mut tracks, &mut asked);
    check_batches(plan, &mut tracks, &mut asked);
    remove_some(plan, &mut tracks);
    let filters = tracks.iter().map(|track| track.row(plan));
    filters.chain(limits.iter().flat_map(|limit| limit.rows(plan))).collect()
}

/// The positions in the streams of queries.
#[derive(Default)]
struct Asked {
    non_members: u64,
    members: u64,
}

/// A filter during the run.
struct Track<T> {
    entry: Entry<T>,
    filter: Box<dyn Contender<T>>,
    /// The figure of the allocator, until [`Track::weigh`] asks the filter itself.
    heap_bytes: i64,
    memory_bytes: u64,
    load: Option<f64>,
    timings: Timings,
    non_members: u64,
    wrong: u64,
    members: u64,
    lost: u64,
    batch_agrees: Option<bool>,
    lost_by_removing: Option<u64>,
}

/// The placeholder before a filter is made.
struct Nothing;

impl<T> Contender<T> for Nothing {
    fn count_each(&self, _items: &[T]) -> usize {
        0
    }
}

impl<T: BenchItem> Track<T> {
    fn new(entry: Entry<T>) -> Track<T> {
        Track {
            entry,
            filter: Box::new(Nothing),
            heap_bytes: 0,
            memory_bytes: 0,
            load: None,
            timings: Timings::default(),
            non_members: 0,
            wrong: 0,
            members: 0,
            lost: 0,
            batch_agrees: None,
            lost_by_removing: None,
        }
    }

    /// Starts again with an empty filter, unless it is static.
    fn renew(&mut self, plan: &Plan) {
        let Make::Empty(make) = self.entry.make else { return };
        self.filter = Box::new(Nothing);
        let before = heap::live_bytes();
        self.filter = make(plan.items, plan.fpr);
        self.heap_bytes = heap::live_bytes() - before;
    }

    /// Builds a static filter again from all items.
    fn build(&mut self, plan: &Plan, items: &[T]) {
        let Make::Whole(make) = self.entry.make else { return };
        self.filter = Box::new(Nothing);
        let before = heap::live_bytes();
        let (filter, spent) = time_all_threads(|| make(black_box(items), plan.fpr));
        self.filter = filter;
        self.heap_bytes = heap::live_bytes() - before;
        self.timings.build.record(spent.process, items.len());
        self.timings.build_wall.record(spent.wall, items.len());
    }

    /// Records the size and load that the full filter reports, before any removal.
    fn weigh(&mut self) {
        self.memory_bytes = self.filter.memory_bytes().unwrap_or(self.heap_bytes.max(0) as u64);
        self.load = self.filter.load();
    }

    /// Inserts `leg`. Chunks alternate between batch and single inserts, so that one build gives both figures.
    fn insert(&mut self, leg: &[T], chunk_items: usize, build: usize) {
        for (turn, chunk) in leg.chunks(chunk_items).enumerate() {
            let wants_batch = (turn + build).is_multiple_of(2) && self.filter.insert_batch(&[]);
            let before = heap::live_bytes();
            let (_, spent) = if wants_batch {
                time(|| self.filter.insert_batch(black_box(chunk)))
            } else {
                time(|| {
                    self.filter.insert_each(black_box(chunk));
                    true
                })
            };
            self.heap_bytes += heap::live_bytes() - before;
            if chunk.len() < chunk_items {
                continue; // the last, shorter chunk: too short to time
            }
            let has_batch = wants_batch || self.filter.insert_batch(&[]);
            if wants_batch || !has_batch {
                self.timings.build.record(spent, chunk.len());
            }
            if !wants_batch {
                self.timings.insert.record(spent, chunk.len());
            }
        }
    }

    /// Queries a chunk of non-members or members, one by one or in a batch, and records the time.
    fn ask(&mut self, questions: &Questions<T>, turn: usize) {
        let chunk = |sort: Sort| black_box(questions.chunk(sort, turn));
        let (wrong, spent) = time(|| black_box(self.filter.count_each(chunk(Sort::Miss))));
        self.timings.miss.record(spent, CHUNK);
        self.wrong += wrong as u64;
        let (found, spent) = time(|| black_box(self.filter.count_each(chunk(Sort::Hit))));
        self.timings.hit.record(spent, CHUNK);
        self.lost += CHUNK.saturating_sub(found) as u64;
        (self.non_members, self.members) = (self.non_members + CHUNK as u64, self.members + CHUNK as u64);

        let (wrong, spent) = time(|| black_box(self.filter.count_batch(chunk(Sort::BatchMiss))));
        let Some(wrong) = wrong else { return };
        self.timings.batch_miss.record(spent, CHUNK);
        self.wrong += wrong as u64;
        let (found, spent) = time(|| black_box(self.filter.count_batch(chunk(Sort::BatchHit))));
        self.timings.batch_hit.record(spent, CHUNK);
        self.lost += CHUNK.saturating_sub(found.unwrap_or(0)) as u64;
        (self.non_members, self.members) = (self.non_members + CHUNK as u64, self.members + CHUNK as u64);
    }

    /// Returns whether enough non-members were queried to determine the rate.
    fn is_judged(&self, plan: &Plan) -> bool {
        self.non_members >= plan.non_members_wanted()
            && (self.wrong >= FEWEST_WRONG || self.non_members >= REASON)
    }

    fn row(&self, plan: &Plan) -> Row {
        Row {
            name: self.entry.name.to_owned(),
            kind: self.entry.kind,
            ours: self.entry.ours,
            layout: self.entry.layout,
            shape: plan.shape,
            items: plan.items,
            target_fpr: plan.fpr,
            observed_fpr: Some(self.wrong as f64 / self.non_members as f64),
            non_members_asked: self.non_members,
            bits_per_item: thousandths(self.memory_bytes as f64 * 8.0 / plan.items as f64),
            memory_bytes: self.memory_bytes,
            median: self.timings.figures(Samples::median),
            build_mean_ns: self.timings.build.mean().map(thousandths),
            build_wall_ns: self.timings.build_wall.median().map(thousandths),
            load: self.load.map(thousandths),
            gather_ns: None,
            p10: self.timings.figures(Samples::p10),
            false_negatives: Some(self.lost),
            members_asked: self.members,
            batch_agrees: self.batch_agrees,
            lost_by_removing: self.lost_by_removing,
        }
    }
}

/// The queries of one round, the same for every filter.
struct Questions<T> {
    warm_up: Vec<T>,
    /// [`CHUNKS_PER_TURN`] chunks of each [`Sort`]; no non-member occurs in two of them.
    chunks: Vec<Vec<T>>,
}

#[derive(Clone, Copy)]
enum Sort {
    Miss,
    Hit,
    BatchMiss,
    BatchHit,
}

impl Sort {
    const ALL: [Sort; 4] = [Sort::Miss, Sort::Hit, Sort::BatchMiss, Sort::BatchHit];
}

impl<T: BenchItem> Questions<T> {
    fn new(plan: &Plan, asked: &mut Asked) -> Questions<T> {
        let mut warm_up = vec![T::default(); plan.warm_up()];
        items::non_members(&mut warm_up, &mut asked.non_members);
        let chunks = (0..CHUNKS_PER_TURN).flat_map(|_| Sort::ALL).map(|sort| {
            let mut chunk = vec![T::default(); CHUNK];
            match sort {
                Sort::Miss | Sort::BatchMiss => items::non_members(&mut chunk, &mut asked.non_members),
                Sort::Hit | Sort::BatchHit => {
                    items::sampled_members(&mut chunk, plan.items, &mut asked.members);
                }
            }
            chunk
        });
        Questions { warm_up, chunks: chunks.collect() }
    }

    fn chunk(&self, sort: Sort, turn: usize) -> &[T] {
        &self.chunks[turn * Sort::ALL.len() + sort as usize]
    }
}

/// Fills every non-static filter, leg by leg.
fn fill_all<T: BenchItem>(plan: &Plan, tracks: &mut [Track<T>], build: usize) {
    let mut tracks: Vec<&mut Track<T>> =
        tracks.iter_mut().filter(|track| matches!(track.entry.make, Make::Empty(_))).collect();
    if tracks.is_empty() {
        return;
    }
    eprintln!("filling {} filters, pass {} of {}", tracks.len(), build + 1, plan.builds());
    tracks.iter_mut().for_each(|track| track.renew(plan));
    let chunk_items = plan.build_chunk();
    let mut leg = vec![T::default(); chunk_items * CHUNKS_PER_LEG];
    let mut first = 0;
    let mut turn = build;
    while first < plan.items {
        let length = leg.len().min((plan.items - first) as usize);
        let leg = &mut leg[..length];
        items::members(leg, first);
        for at in rotated(tracks.len(), turn) {
            tracks[at].insert(leg, chunk_items, build);
        }
        first += length as u64;
        turn += 1;
    }
}

/// Builds every static filter, in turns.
fn build_whole<T: BenchItem>(plan: &Plan, tracks: &mut [Track<T>]) {
    let mut tracks: Vec<&mut Track<T>> =
        tracks.iter_mut().filter(|track| matches!(track.entry.make, Make::Whole(_))).collect();
    if tracks.is_empty() {
        return;
    }
    let mut items = vec![T::default(); plan.items as usize];
    items::members(&mut items, 0);
    for build in 0..plan.whole_builds() {
        eprintln!("building {} static filters, pass {} of {}", tracks.len(), build + 1, plan.whole_builds());
        for at in rotated(tracks.len(), build) {
            tracks[at].build(plan, &items);
        }
    }
}

/// One round of queries to every filter and every limit.
fn ask_all<T: BenchItem>(
    plan: &Plan,
    tracks: &mut [Track<T>],
    limits: &mut [Limit],
    asked: &mut Asked,
    round: usize,
) {
    if round.is_multiple_of(8) {
        eprintln!("querying, round {} of {}", round + 1, plan.rounds);
    }
    let words = Questions::<u64>::new(plan, asked);
    let questions = Questions::<T>::new(plan, asked);
    for at in rotated(tracks.len() + limits.len(), round) {
        if let Some(track) = tracks.get_mut(at) {
            black_box(track.filter.count_each(&questions.warm_up));
            (0..CHUNKS_PER_TURN).for_each(|turn| track.ask(&questions, turn));
        } else {
            limits[at - tracks.len()].ask(&words);
        }
    }
}

/// Queries more non-members, untimed, until the rate can be judged.
fn top_up<T: BenchItem>(plan: &Plan, tracks: &mut [Track<T>], asked: &mut Asked) {
    let mut chunk = vec![T::default(); CHUNK];
    while tracks.iter().any(|track| !track.is_judged(plan)) {
        items::non_members(&mut chunk, &mut asked.non_members);
        for track in tracks.iter_mut().filter(|track| !track.is_judged(plan)) {
            let counted = track.filter.count_batch(&chunk);
            track.wrong += counted.unwrap_or_else(|| track.filter.count_each(&chunk)) as u64;
            track.non_members += CHUNK as u64;
        }
    }
}

/// Queries the same items in a batch and one by one, at lengths that leave every kind of remainder.
fn check_batches<T: BenchItem>(plan: &Plan, tracks: &mut [Track<T>], asked: &mut Asked) {
    let mut mixed = vec![T::default(); 4_099];
    let (non_members, members) = mixed.split_at_mut(2_000);
    items::non_members(non_members, &mut asked.non_members);
    items::sampled_members(members, plan.items, &mut asked.members);
    for track in tracks {
        let lengths = [0, 1, 7, 31, 32, 33, 64, 65, mixed.len()];
        let same = lengths.map(|length| {
            let some = &mixed[mixed.len() - length..];
            let one_by_one = track.filter.count_each(some);
            track.filter.count_batch(some).map(|counted| counted == one_by_one)
        });
        track.batch_agrees = same.into_iter().reduce(|all, next| Some(all? && next?)).flatten();
    }
}

/// Removes some members from every filter that supports it, in turns, and checks that the others are still found.
fn remove_some<T: BenchItem>(plan: &Plan, tracks: &mut [Track<T>]) {
    let chunk_items = (plan.items as usize / 4 / CHUNKS_REMOVED).clamp(1, CHUNK);
    let chunks = (plan.items as usize / 4 / chunk_items).min(CHUNKS_REMOVED);
    let mut tracks: Vec<&mut Track<T>> =
        tracks.iter_mut().filter_map(|track| track.filter.remove_each(&[]).map(|_| track)).collect();
    let mut chunk = vec![T::default(); chunk_items];
    for turn in 0..chunks {
        items::members(&mut chunk, (turn * chunk_items) as u64);
        for at in rotated(tracks.len(), turn) {
            let (removed, spent) = time(|| tracks[at].filter.remove_each(black_box(&chunk)));
            tracks[at].timings.remove.record(spent, chunk_items);
            let missing = chunk_items.saturating_sub(removed.unwrap_or(0)) as u64;
            *tracks[at].lost_by_removing.get_or_insert(0) += missing;
        }
    }
    let removed = (chunks * chunk_items) as u64;
    let mut rest = vec![T::default(); (plan.items - removed).min(1 << 20) as usize];
    items::members(&mut rest, removed);
    for track in tracks {
        let lost = (rest.len() - track.filter.count_each(&rest)) as u64;
        *track.lost_by_removing.get_or_insert(0) += lost;
    }
}

/// Bare memory of one filter's size.
struct Limit {
    footprint: &'static str,
    gather: Gather,
    bare: Timings,
    mixed: Timings,
}

impl Limit {
    fn ask(&mut self, questions: &Questions<u64>) {
        let gather = &self.gather;
        let indexes =
            |items: &[u64]| -> Vec<u32> { items.iter().map(|&item| gather.line_of(item)).collect() };
        black_box(gather.rolling(&indexes(&questions.warm_up)));
        for turn in 0..CHUNKS_PER_TURN {
            let chunk = |sort| black_box(questions.chunk(sort, turn));
            let (first, second) = (indexes(chunk(Sort::Miss)), indexes(chunk(Sort::Hit)));
            let (_, plain) = time(|| black_box(gather.plain(black_box(&first))));
            let (_, rolling) = time(|| black_box(gather.rolling(black_box(&second))));
            let (_, plain_mixed) = time(|| black_box(gather.plain_mixed(chunk(Sort::BatchMiss))));
            let (_, rolling_mixed) = time(|| black_box(gather.rolling_mixed(chunk(Sort::BatchHit))));
            self.bare.miss.record(plain, CHUNK);
            self.bare.batch_miss.record(rolling, CHUNK);
            self.mixed.miss.record(plain_mixed, CHUNK);
            self.mixed.batch_miss.record(rolling_mixed, CHUNK);
        }
    }

    fn rows(&self, plan: &Plan) -> [Row; 2] {
        [("limit: bare prefetched gather", &self.bare), ("limit: prefetched gather + mix", &self.mixed)].map(
            |(name, timings)| Row {
                name: format!("{name}{}", self.footprint),
                kind: Kind::Limit,
                ours: false,
                layout: None,
                shape: plan.shape,
                items: plan.items,
                target_fpr: plan.fpr,
                observed_fpr: None,
                non_members_asked: 0,
                bits_per_item: thousandths((1.0 / plan.fpr).log2()),
                memory_bytes: self.gather.bytes(),
                median: timings.figures(Samples::median),
                build_mean_ns: None,
                build_wall_ns: None,
                load: None,
                gather_ns: timings.batch_miss.median().map(thousandths),
                p10: timings.figures(Samples::p10),
                false_negatives: None,
                members_asked: 0,
                batch_agrees: None,
                lost_by_removing: None,
            },
        )
    }
}

/// The limits at the footprint of the blocked and the classic filter: ours if it runs, else a rival's, else the computed size.
fn limits<T: BenchItem>(plan: &Plan, tracks: &[Track<T>]) -> Vec<Limit> {
    let size_of = |kind: Kind| {
        let of_kind = || tracks.iter().filter(move |track| track.entry.kind == kind);
        of_kind().find(|track| track.entry.ours).or_else(|| of_kind().next()).map(|track| track.memory_bytes)
    };
    let blocked =
        size_of(Kind::Blocked).unwrap_or_else(|| crate::rivals::blocks_for(plan.items, plan.fpr) * 32);
    let classic = size_of(Kind::Bloom).unwrap_or_else(|| {
        (plan.items as f64 * -plan.fpr.ln() / std::f64::consts::LN_2.powi(2) / 8.0) as u64
    });
    [("", blocked), (", classic footprint", classic)]
        .map(|(footprint, bytes)| Limit {
            footprint,
            gather: Gather::new(bytes).expect("memory for the limit"),
            bare: Timings::default(),
            mixed: Timings::default(),
        })
        .into()
}

/// The indexes `0..length`, starting at another one each turn.
fn rotated(length: usize, turn: usize) -> impl Iterator<Item = usize> {
    (0..length).map(move |step| (step + turn) % length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const ITEMS: u64 = 5_000;

    /// A filter that stores its members exactly, and can be made to lie about them.
    #[derive(Default)]
    struct Exact {
        members: HashSet<u64>,
        forgets: u64,
        batch_adds: usize,
        loses_others: bool,
    }

    impl Contender<u64> for Exact {
        fn insert_each(&mut self, items: &[u64]) {
            self.members.extend(items.iter().filter(|&item| self.forgets == 0 || item % self.forgets != 0));
        }

        fn count_each(&self, items: &[u64]) -> usize {
            items.iter().filter(|item| self.members.contains(item)).count()
        }

        fn insert_batch(&mut self, items: &[u64]) -> bool {
            self.insert_each(items);
            true
        }

        fn count_batch(&mut self, items: &[u64]) -> Option<usize> {
            Some(self.count_each(items) + self.batch_adds.min(items.len()))
        }

        fn remove_each(&mut self, items: &[u64]) -> Option<usize> {
            let found = items.iter().filter(|item| self.members.remove(item)).count();
            if self.loses_others && found > 0 {
                self.members.clear();
            }
            Some(found)
        }

        fn memory_bytes(&self) -> Option<u64> {
            Some(8 * self.members.len() as u64)
        }

        fn load(&self) -> Option<f64> {
            Some(self.members.len() as f64 / ITEMS as f64)
        }
    }

    /// A vector that matches everything: no batch, and its size comes from the allocator.
    struct Shelf(Vec<u64>);

    impl Contender<u64> for Shelf {
        fn insert_each(&mut self, items: &[u64]) {
            self.0.extend(items);
        }

        fn count_each(&self, items: &[u64]) -> usize {
            items.len() // always maybe
        }
    }

    fn row(make: fn(u64, f64) -> Box<dyn Contender<u64>>) -> Row {
        measured(Make::Empty(make))
    }

    fn measured(make: Make<u64>) -> Row {
        let entry = Entry { name: "test", kind: Kind::Bloom, ours: true, slow: false, layout: None, make };
        let plan = Plan { items: ITEMS, fpr: 0.01, shape: Shape::U64, rounds: 1 };
        measure(&plan, vec![entry]).swap_remove(0)
    }

    #[test]
    fn an_exact_set_gets_all_figures() {
        let row = row(|_, _| Box::new(Exact::default()));
        assert_eq!(
            (row.observed_fpr, row.false_negatives, row.batch_agrees),
            (Some(0.0), Some(0), Some(true))
        );
        assert_eq!(row.bits_per_item, 64.0, "every member is inserted once, in a batch or one by one");
        assert!(row.non_members_asked >= FEWEST_NON_MEMBERS);
        let ns = &row.median;
        for figure in [ns.build_ns, ns.insert_ns, ns.miss_ns, ns.hit_ns, ns.batch_miss_ns, ns.batch_hit_ns] {
            assert!(figure.is_some_and(|ns| ns > 0.0), "{row:?}");
        }
        assert_eq!(row.load, Some(1.0), "weighed before anything is removed");
        assert!(ns.remove_ns.is_some_and(|ns| ns > 0.0) && row.lost_by_removing == Some(0));
        assert!(!row.is_broken());
    }

    #[test]
    fn a_filter_that_loses_others_by_removing_is_detected() {
        let row = row(|_, _| Box::new(Exact { loses_others: true, ..Exact::default() }));
        assert!(row.is_broken() && row.lost_by_removing.unwrap() > 0 && row.false_negatives == Some(0));
    }

    #[test]
    fn a_static_build_is_one_sample() {
        let row = measured(Make::Whole(|items, _| {
            Box::new(Exact { members: items.iter().copied().collect(), ..Exact::default() })
        }));
        assert_eq!((row.bits_per_item, row.false_negatives), (64.0, Some(0)));
        assert!(row.median.build_ns.is_some_and(|ns| ns > 0.0) && row.build_wall_ns.is_some());
        assert!(row.median.insert_ns.is_none());
        assert!(!row.is_broken());
    }

    #[test]
    fn a_filter_that_forgets_is_detected() {
        let row = row(|_, _| Box::new(Exact { forgets: 1_000, ..Exact::default() }));
        assert!(row.is_broken() && row.false_negatives.unwrap() > 0);
    }

    #[test]
    fn a_batch_that_disagrees_with_single_queries_is_detected() {
        let row = row(|_, _| Box::new(Exact { batch_adds: 1, ..Exact::default() }));
        assert!(row.is_broken() && row.batch_agrees == Some(false));
    }

    #[test]
    fn a_filter_that_always_answers_maybe_is_detected_and_has_no_batch_figures() {
        let row = row(|_, _| Box::new(Shelf(Vec::new())));
        assert_eq!(row.observed_fpr, Some(1.0));
        assert_eq!(row.batch_agrees, None);
        assert!(row.median.batch_miss_ns.is_none() && row.median.batch_hit_ns.is_none());
        assert_eq!(row.median.build_ns, row.median.insert_ns);
        assert_eq!((row.median.remove_ns, row.lost_by_removing), (None, None));
    }

    #[test]
    fn every_turn_visits_all_and_starts_elsewhere() {
        assert_eq!(rotated(3, 0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(rotated(3, 4).collect::<Vec<_>>(), [1, 2, 0]);
        assert_eq!(rotated(0, 4).count(), 0);
    }

    #[test]
    fn low_rates_are_judged_on_more_non_members() {
        let plan = |fpr| Plan { items: 1_000, fpr, shape: Shape::U64, rounds: 1 };
        assert_eq!(plan(0.01).non_members_wanted(), 2_000_000);
        assert_eq!(plan(0.0001).non_members_wanted(), 10_000_000);
        assert_eq!(plan(1e-9).non_members_wanted(), 50_000_000);
    }
}
