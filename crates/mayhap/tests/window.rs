//! The promises of the window.

mod support;

use std::collections::HashMap;

use mayhap::{
    Answers, Bloom, BuildError, DecodeError, Generation, HashScheme, ItemHash, Pace, Window, WindowShape,
};
use mayhap_testkit::alloc_meter::AllocMeter;
use mayhap_testkit::bad::{AlwaysMayhap, AlwaysNo};
use mayhap_testkit::corrupt::Corruptor;
use mayhap_testkit::rng::Rng;
use mayhap_testkit::suite::{Failure, RatePlan, Script, keeps_its_rate, never_forgets};
use mayhap_testkit::{
    Inserted, Shape, Subject, band_with_model_error, member, member_u64, non_member, non_member_u64,
};
use xxhash_rust::xxh3::xxh3_64;

use self::support::{Tested, operations};

#[global_allocator]
static METER: AllocMeter = AllocMeter;

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
const HEADER_BYTES: usize = 192;

fn of_items(window: u64, fpr: f64, generations: u32, seed: u64) -> Window {
    let shape = WindowShape::of_items(window, fpr).unwrap().with_generations(generations).unwrap();
    Window::with_shape(shape, seed).unwrap()
}

fn of_time(span: u64, items: u64, fpr: f64, generations: u32, seed: u64) -> Window {
    let shape = WindowShape::of_time(span, items, fpr).unwrap().with_generations(generations).unwrap();
    Window::with_shape(shape, seed).unwrap()
}

#[test]
fn never_forgets_while_the_clock_stands_still() {
    // Three rates: one block an item, one line, three lines.
    for (fpr, generations, seed) in [(0.01, 4, 1), (0.1, 2, 2), (1e-6, 7, 3)] {
        let script = Script { merges: 0, seed, ..Script::new(operations() / 8, 2_000) };
        // All of them are in one generation, so it is sized for them.
        let window = 2_000 * u64::from(generations - 1);
        let make = |seed| Tested::new(of_time(1_000, window, fpr, generations, seed));
        never_forgets(make, &script).unwrap();
    }
}

/// The model of a window of items: the position of the last insertion of each item.
struct LastItems {
    window: u64,
    /// Items of a generation.
    turn: u64,
    generations: u64,
    came: u64,
    last: HashMap<u64, u64>,
}

impl LastItems {
    fn of(window: &Window) -> Self {
        let shape = window.shape();
        let (turn, generations) = (shape.generation_items(), u64::from(shape.generations()));
        Self { window: shape.capacity(), turn, generations, came: 0, last: HashMap::new() }
    }

    fn insert(&mut self, item: u64) {
        self.last.insert(item, self.came);
        self.came += 1;
    }

    /// Insertions since this one, inclusive; `None` if it was never inserted.
    fn age(&self, item: u64) -> Option<u64> {
        self.last.get(&item).map(|&at| self.came - at)
    }

    fn in_window(&self, item: u64) -> bool {
        self.age(item).is_some_and(|age| age <= self.window)
    }

    /// Whether the generations hold it exactly: everything in a generation that was not dropped.
    fn held(&self, item: u64) -> bool {
        self.held_in_turn(item, self.came.saturating_sub(1) / self.turn)
    }

    /// The same for an item that is about to be inserted: a generation may be dropped first.
    fn held_by_next(&self, item: u64) -> bool {
        self.held_in_turn(item, self.came / self.turn)
    }

    fn held_in_turn(&self, item: u64, newest: u64) -> bool {
        self.last.get(&item).is_some_and(|&at| newest - at / self.turn < self.generations)
    }
}

/// Inserts, batches across rotations, round trips in between; after every step some items are queried, and from time to time all.
fn follows_the_model_by_items(window: u64, generations: u32, seed: u64, operations: u64) {
    let mut filter = of_items(window, 1e-6, generations, seed);
    let mut model = LastItems::of(&filter);
    let mut rng = Rng::new(seed);
    // Some items are repeated, inside the window or after it; most are new.
    let pool = (window * 4).max(8);
    let (mut wrong, mut asked_forgotten) = (0, 0);
    for step in 0..operations {
        match rng.below(100) {
            0..2 => filter = Window::decode(&filter.encode()).unwrap(),
            2..8 => {
                let items: Vec<u64> = (0..rng.below(window * 2 + 3)).map(|_| rng.below(pool)).collect();
                let mut new = 0;
                for &item in &items {
                    new += u64::from(!model.held_by_next(item));
                    model.insert(item);
                }
                let said = filter.insert_batch(&items);
                assert!(said <= new && new - said <= 1, "{said} new of {new}");
                wrong += new - said;
            }
            _ => {
                let item = rng.below(pool);
                let new = filter.insert(&item);
                assert!(!(new && model.held_by_next(item)), "{item} was a member");
                wrong += u64::from(!new && !model.held_by_next(item));
                model.insert(item);
            }
        }
        let all = step % 512 == 0;
        let some = if all { (0..pool).collect() } else { vec![rng.below(pool), rng.below(pool)] };
        let mut answers = Answers::new();
        filter.may_contain_batch(&some, &mut answers);
        for (item, answer) in some.into_iter().zip(answers.iter()) {
            assert_eq!(answer, filter.may_contain(&item));
            assert!(answer || !model.in_window(item), "{item}, {:?} old, was forgotten", model.age(item));
            assert!(answer || !model.held(item));
            if !model.held(item) {
                asked_forgotten += 1;
                wrong += u64::from(answer);
            }
        }
    }
    assert!(asked_forgotten > operations / 10, "{asked_forgotten}");
    assert!(wrong <= 2, "{wrong} false positives of {asked_forgotten} at 1e-6: something was not forgotten");
}

#[test]
fn the_last_items_are_held_and_older_ones_forgotten() {
    for (window, generations) in
        [(1, 2), (1, 5), (2, 2), (3, 4), (10, 3), (100, 4), (101, 4), (100, 16), (500, 2)]
    {
        follows_the_model_by_items(window, generations, window + u64::from(generations), operations() / 100);
    }
}

/// The model of a window of time: the highest time of an insertion of each item.
fn follows_the_model_by_time(span: u64, generations: u32, seed: u64, operations: u64) {
    let mut filter = of_time(span, 500, 1e-6, generations, seed);
    let length = filter.shape().generation_span().unwrap();
    let mut rng = Rng::new(seed);
    let (mut now, mut last) = (rng.below(1 << 40), HashMap::<u64, u64>::new());
    let pool = 300;
    let (mut wrong, mut asked_forgotten, mut asked_later) = (0, 0, 0);
    filter.advance(now);
    for _ in 0..operations {
        match rng.below(100) {
            0..2 => filter = Window::decode(&filter.encode()).unwrap(),
            2..60 => now += rng.below(span / 16 + 2),
            60..62 => now += rng.below(span * 3),
            62..80 => {
                let item = rng.below(pool);
                // Sometimes an older time is given: the item is as new as the latest.
                let given = if rng.below(4) == 0 { now.saturating_sub(rng.below(span * 2)) } else { now };
                let new = filter.insert_at(&item, given);
                let time = filter.latest();
                assert!(time >= given && time <= now);
                let held =
                    last.get(&item).is_some_and(|&at| time / length - at / length < u64::from(generations));
                assert!(!(new && held));
                last.insert(item, time);
            }
            80..84 => {
                let items: Vec<u64> = (0..rng.below(10)).map(|_| rng.below(pool)).collect();
                filter.insert_batch_at(&items, now);
                last.extend(items.into_iter().map(|item| (item, now)));
            }
            84..88 => filter.advance(now),
            _ => {}
        }
        for _ in 0..3 {
            let item = rng.below(pool);
            let later = now + if rng.below(2) == 0 { 0 } else { rng.below(span * 2) };
            let answer = filter.may_contain_at(&item, later);
            asked_later += u64::from(later > now);
            let mut answers = Answers::new();
            filter.may_contain_batch_at(&[item], later, &mut answers);
            assert_eq!(answers.get(0), Some(answer));
            let age = last.get(&item).map(|&at| later.max(filter.latest()) - at);
            assert!(answer || age.is_none_or(|age| age > span), "{item}, {age:?} old, was forgotten");
            // A window and one generation: certainly forgotten.
            if age.is_none_or(|age| age >= length * u64::from(generations)) {
                asked_forgotten += 1;
                wrong += u64::from(answer);
            }
        }
    }
    assert!(asked_forgotten > operations / 10 && asked_later > operations / 4, "{asked_forgotten}");
    assert!(wrong <= 2, "{wrong} false positives of {asked_forgotten} at 1e-6: something was not forgotten");
}

#[test]
fn the_last_span_is_held_and_older_items_are_forgotten() {
    for (span, generations) in [(1, 2), (1, 4), (2, 3), (7, 4), (60, 4), (60, 16), (3_600, 4), (1_000_000, 5)]
    {
        follows_the_model_by_time(span, generations, span + u64::from(generations), operations() / 20);
    }
}

#[test]
fn a_window_is_held_to_the_item() {
    // Three generations of ten before the newest: between thirty and forty are held.
    let mut filter = of_items(30, 1e-9 * 4.0, 4, 1);
    for i in 0..400_u64 {
        filter.insert(&i);
        let held = (0..=i).rev().take_while(|item| filter.may_contain(item)).count() as u64;
        assert_eq!(held, if i < 40 { i + 1 } else { 30 + i % 10 + 1 });
        assert_eq!(filter.inserted(), held);
    }
}

#[test]
fn to_insert_again_refreshes() {
    let mut filter = of_items(30, 1e-8, 4, 1);
    for i in 0..1_000_u64 {
        filter.insert(&i);
        if i % 25 == 0 {
            filter.insert("always there");
        }
        assert!(filter.may_contain("always there"), "after {i}");
    }
    let mut hour = Window::of_time(60, 1_000, 1e-6, 1).unwrap();
    for minute in (0..1_000).step_by(50) {
        assert_eq!(hour.insert_at("beat", minute), minute == 0);
    }
    assert!(hour.may_contain_at("beat", 950 + 60) && !hour.may_contain_at("beat", 950 + 80));
}

#[test]
fn time_may_stand_still_go_back_leap_and_end() {
    let mut filter = Window::of_time(100, 1_000, 1e-6, 3).unwrap();
    filter.insert_at("first", 1_000);
    // Back: the item is as new as the latest time, and nothing is given up.
    filter.insert_at("from the past", 5);
    assert_eq!(filter.latest(), 1_000);
    filter.advance(0);
    assert!(filter.may_contain_at("first", 0) && filter.may_contain_at("from the past", 1_100));
    // After many windows without insertions everything has expired, whether queried or advanced.
    assert!(!filter.may_contain_at("first", 1_000_000));
    assert!(filter.may_contain("first"), "the latest time is still 1 000");
    filter.advance(1_000_000);
    assert!(!filter.may_contain("first") && !filter.may_contain("from the past"));
    assert_eq!((filter.inserted(), filter.expected_fpr(), filter.fill()), (0, 0.0, 0.0));
    // The end of time.
    filter.insert_at("last", u64::MAX);
    assert!(filter.may_contain_at("last", u64::MAX) && filter.insert_at("more", u64::MAX - 1));
    // The longest span there is.
    let mut ages = Window::of_time(u64::MAX, 10, 0.01, 3).unwrap();
    ages.insert_at("dawn", 0);
    assert!(ages.may_contain_at("dawn", u64::MAX));
    // A window of items does not look at the time.
    let mut items = Window::of_items(10, 1e-6, 3).unwrap();
    items.insert_at("a", 5);
    items.advance(u64::MAX);
    assert!(items.may_contain_at("a", u64::MAX) && items.latest() == 0);
}

/// A clock that jumps: it does not always show the correct time.
struct Jumpy {
    /// The time that passes.
    time: u64,
    /// The current error of the clock.
    off: i64,
    /// The time at which it is correct again.
    until: u64,
}

impl Jumpy {
    fn shows(&self) -> u64 {
        self.time.saturating_add_signed(self.off)
    }
}

/// Random jumps of the clock, ahead and back, by more than two windows and for less than a generation, with insertions and lookups in between. By the
/// correct time: items inserted inside the window are found, whatever the clock showed at the time; items inserted more than two windows and two
/// generations ago, with a correct clock since, are not.
fn follows_a_clock_that_jumps(span: u64, generations: u32, seed: u64, operations: u64) {
    let mut filter = of_time(span, 2_000, 1e-6, generations, seed);
    let length = filter.shape().generation_span().unwrap();
    let far = 2 * span + length * u64::from(generations);
    let mut rng = Rng::new(seed);
    let mut clock = Jumpy { time: (1 << 40) + rng.below(1 << 20), off: 0, until: 0 };
    let mut last = HashMap::<u64, u64>::new();
    // Many jumps in a window, or windows without a jump.
    let often = 1 + seed % 2 * 20;
    let (pool, mut held, mut forgotten, mut wrong, mut jumps) = (300, 0, 0, 0, 0);
    for _ in 0..operations {
        match rng.below(100) {
            0..2 => filter = Window::decode(&filter.encode()).unwrap(),
            2..40 => clock.time += rng.below(span / 32 + 2),
            40..44 if clock.off == 0 && rng.below(often) == 0 => {
                // It shows the right time once more, and then is wrong for a moment.
                filter.advance(clock.time);
                // Never near to where it jumped before.
                let by = (far * (1 + 8 * jumps) + rng.below(far)) as i64;
                clock.off = if rng.below(2) == 0 { by } else { -by };
                clock.until = clock.time + length - 1;
                jumps += 1;
            }
            44..52 if clock.off != 0 => clock.until = clock.time,
            _ => {
                let item = rng.below(pool);
                filter.insert_at(&item, clock.shows());
                last.insert(item, clock.time);
            }
        }
        if clock.off != 0 && clock.time >= clock.until {
            (clock.off, clock.until) = (0, clock.time);
            filter.advance(clock.time);
        }
        for _ in 0..3 {
            let item = rng.below(pool);
            let answer = filter.may_contain_at(&item, clock.shows());
            if clock.off != 0 {
                continue;
            }
            let age = last.get(&item).map(|&at| clock.time - at);
            if age.is_some_and(|age| age <= span) {
                held += 1;
                assert!(answer, "{item}, {age:?} old, was forgotten: {span}, {generations}, {seed}");
            }
            let right_for = clock.time - clock.until;
            if age.is_none_or(|age| age.min(right_for) > 2 * span + 2 * length) {
                forgotten += 1;
                wrong += u64::from(answer);
            }
        }
    }
    assert!(
        held > operations / 10 && (forgotten > 10 || often == 1) && jumps >= 5,
        "{held} {forgotten} {jumps}"
    );
    assert!(wrong <= 2, "{wrong} of {forgotten} at 1e-6 were not forgotten: {span}, {generations}, {seed}");
}

#[test]
fn a_clock_that_jumps_for_a_moment_loses_nothing_and_freezes_nothing() {
    for (span, generations) in [(60, 3), (60, 4), (60_000, 4), (60_000, 16), (3_600, 3), (1_000_000, 5)] {
        for seed in 0..4 {
            follows_a_clock_that_jumps(span, generations, seed, operations() / 40);
        }
    }
}

#[test]
fn an_insertion_while_the_clock_is_ahead_does_not_freeze_a_window() {
    const DAY: u64 = 86_400;
    let now = 20_000 * DAY;
    let fresh = || Window::of_time(60, 1_000, 1e-6, 1).unwrap();
    // The first item was inserted with a clock that was a year ahead, and those after it with the correct one.
    let mut filter = fresh();
    filter.insert_at("ahead", now + 365 * DAY);
    filter.insert_at("right", now);
    assert!(filter.may_contain_at("ahead", now + 60) && filter.may_contain_at("right", now + 60));
    for item in ["ahead", "right"] {
        assert!(!filter.may_contain_at(item, now + 30 * DAY), "{item} is there after 30 days");
    }
    filter.insert_at("later", now + 30 * DAY);
    assert!(!filter.may_contain("ahead") && !filter.may_contain("right") && filter.may_contain("later"));
    // Only lookups after it: they see that the clock is right again.
    let mut filter = fresh();
    filter.insert_at("before", now);
    filter.insert_at("ahead", now + 365 * DAY);
    assert!(!filter.may_contain_at("before", now + 365 * DAY), "it has expired by this clock");
    assert!((0..60).all(|passed| filter.may_contain_at("before", now + passed)));
    assert!((0..60).all(|passed| filter.may_contain_at("ahead", now + passed)));
    assert!((81..2 * DAY).step_by(7).all(|passed| !filter.may_contain_at("before", now + passed)));
    assert!((200..2 * DAY).step_by(7).all(|passed| !filter.may_contain_at("ahead", now + passed)));
    // Emptied, it takes any time.
    filter.clear();
    filter.insert_at("new", now + 40);
    assert!(filter.may_contain_at("new", now + 100) && !filter.may_contain_at("new", now + 121));
    assert_eq!(filter.latest(), now + 40);
}

#[test]
fn a_clock_set_back_for_good_keeps_the_ages_of_items() {
    let mut filter = Window::of_time(60, 1_000, 1e-6, 1).unwrap();
    filter.insert_at("old", 100_000);
    filter.insert_at("young", 100_050);
    // Ten hours back.
    filter.insert_at("back", 64_050);
    for passed in 0..400 {
        filter.advance(64_050 + passed);
        assert!(passed > 10 || filter.may_contain("old"), "after {passed}");
        assert!(passed > 60 || filter.may_contain("young") && filter.may_contain("back"), "after {passed}");
        assert!(passed < 120 || !filter.may_contain("old") && !filter.may_contain("back"), "after {passed}");
        filter = Window::decode(&filter.encode()).unwrap();
    }
}

#[test]
fn clearing_forgets_everything_but_the_time() {
    let mut filter = Window::of_time(100, 1_000, 0.01, 3).unwrap();
    (0..2_000).for_each(|i| {
        filter.insert_at(&member(i), 1_000 + i / 10);
    });
    filter.clear();
    assert_eq!((filter.inserted(), filter.fill(), filter.latest()), (0, 0.0, 1_199));
    assert!((0..2_000).all(|i| !filter.may_contain(&member(i))));
    filter.insert_at("again", 1_200);
    assert!(filter.may_contain_at("again", 1_300));
}

const WINDOW: u64 = 9_000;

/// Members fill all generations, the moment before one is given up; `items` of them.
fn plan(fpr: f64, generations: u32, items: u64) -> RatePlan<'static> {
    let non_members = (4_000.0 / fpr) as u64 / SEEDS.len() as u64;
    let shape = WindowShape::of_items(WINDOW, fpr).unwrap().with_generations(generations).unwrap();
    let rate = shape.expected_fpr(shape.generation_items());
    let promised = band_with_model_error(non_members * SEEDS.len() as u64, rate, 1e-6, 0.02);
    RatePlan { shape: Shape::Url, items, non_members, seeds: &SEEDS, promised }
}

/// A window of items that never gives one up is filled to the brim: `keeps_its_rate` wants all its members back.
#[test]
fn the_rate_holds_at_the_worst_moment_and_a_tenth_too_full_is_detected() {
    for (fpr, generations) in [(0.1, 2), (0.01, 4), (0.01, 9), (0.001, 4)] {
        let make = |seed| Tested::new(of_items(WINDOW, fpr, generations, seed));
        let brim = of_items(WINDOW, fpr, generations, 1).shape().generation_items() * u64::from(generations);
        let report = keeps_its_rate(make, &plan(fpr, generations, brim)).unwrap();
        assert!(report.observed_fpr() <= fpr * 1.05, "{fpr}: {}", report.observed_fpr());
        // The faulty variant is sized for a tenth fewer items: by time, so that it does not rotate early.
        let tenth_less = |seed| {
            let window = of_time(1_000, WINDOW * 10 / 11, fpr, generations, seed);
            Spoiled { window, each: brim / u64::from(generations), came: 0 }
        };
        let failure = keeps_its_rate(tenth_less, &plan(fpr, generations, brim)).unwrap_err();
        assert!(matches!(failure, Failure::RateOff { .. }), "{fpr}: {failure}");
    }
    assert!(keeps_its_rate(|_| AlwaysNo, &plan(0.01, 4, 100)).is_err());
    assert!(keeps_its_rate(|_| AlwaysMayhap, &plan(0.01, 4, 100)).is_err());
}

/// Advances by time after every `each` items, however few its generations are sized for.
struct Spoiled {
    window: Window,
    each: u64,
    came: u64,
}

impl Subject for Spoiled {
    fn insert(&mut self, item: &[u8]) -> Inserted {
        let turn = (self.came / self.each).min(u64::from(self.window.shape().generations()) - 1);
        self.came += 1;
        self.window.insert_at(item, turn * self.window.shape().generation_span().unwrap()).into()
    }

    fn may_contain(&self, item: &[u8]) -> bool {
        self.window.may_contain(item)
    }
}

#[test]
fn a_window_knows_its_rate_and_when_more_came_than_expected() {
    let mut filter = Window::of_time(300, 9_000, 0.01, 7).unwrap();
    assert_eq!(filter.expected_fpr(), 0.0);
    let mut came = 0;
    let mut flood = |filter: &mut Window, items: u64, now: u64| {
        (0..items).for_each(|_| {
            filter.insert_at(&member_u64(7, came), now);
            came += 1;
        });
    };
    // As expected, generation by generation.
    (0..4).for_each(|turn| flood(&mut filter, 3_000, turn * 100));
    assert!(filter.expected_fpr() <= 0.01, "{}", filter.expected_fpr());
    assert!(filter.generations().all(|generation| generation.inserted == generation.capacity));
    // Five times as many: reported, and still correct.
    flood(&mut filter, 15_000, 400);
    let newest: Generation = filter.generations().next().unwrap();
    assert_eq!((newest.inserted, newest.capacity), (15_000, 3_000));
    assert!(newest.expected_fpr > 0.2 && filter.expected_fpr() > newest.expected_fpr);
    let wrong = (0..100_000).filter(|&i| filter.may_contain(&non_member_u64(7, i))).count() as u64;
    assert!(band_with_model_error(100_000, filter.expected_fpr(), 1e-6, 0.03).contains(&wrong), "{wrong}");
    // Duplicates count as insertions, not for the rate.
    let before = filter.expected_fpr();
    (0..1_000).for_each(|_| {
        filter.insert_at("again and again", 400);
    });
    assert!((filter.expected_fpr() / before - 1.0).abs() < 1e-3);
    assert_eq!(filter.generations().next().unwrap().inserted, 16_000);
    // Over once that generation is given up.
    (5..9).for_each(|turn| flood(&mut filter, 3_000, turn * 100));
    assert!(filter.expected_fpr() <= 0.01, "{}", filter.expected_fpr());
}

#[test]
fn hashes_and_items_are_the_same() {
    for fpr in [0.1, 0.01, 1e-4, 1e-6] {
        let mut by_item = Window::of_time(100, 300, fpr, 5).unwrap();
        let mut by_hash = by_item.try_clone().unwrap();
        let items: Vec<Vec<u8>> = (0..300).map(member).collect();
        let hashes: Vec<ItemHash> = items.iter().map(|item| by_hash.hash(item)).collect();
        assert_eq!(by_item.insert_batch(&items), by_hash.insert_hash_batch(&hashes));
        assert_eq!(by_item.insert_batch_at(&items, 40), by_hash.insert_hash_batch_at(&hashes, 40));
        for (item, hash) in items.iter().zip(&hashes) {
            assert_eq!(by_item.insert(item), by_hash.insert_hash(*hash));
            assert_eq!(by_item.insert_at(item, 77), by_hash.insert_hash_at(*hash, 77));
            assert_eq!(by_item.may_contain(item), by_hash.may_contain_hash(*hash));
            assert_eq!(by_item.may_contain_at(item, 500), by_hash.may_contain_hash_at(*hash, 500));
        }
        assert_eq!(by_item.encode(), by_hash.encode());
        let (mut of_items, mut of_hashes) = (Answers::new(), Answers::new());
        by_item.may_contain_batch(&items, &mut of_items);
        by_hash.may_contain_hash_batch(&hashes, &mut of_hashes);
        assert_eq!(of_items, of_hashes);
        by_item.may_contain_batch_at(&items, 500, &mut of_items);
        by_hash.may_contain_hash_batch_at(&hashes, 500, &mut of_hashes);
        assert_eq!((of_items.maybe_count(), of_hashes.maybe_count()), (0, 0));
    }
}

/// Corrects the checksums of a damaged window, so that the checks after them are reached.
fn seal(bytes: &mut [u8]) {
    if bytes.len() < HEADER_BYTES {
        return;
    }
    let (header, payload) = bytes.split_at_mut(HEADER_BYTES);
    header[24..32].copy_from_slice(&xxh3_64(payload).to_le_bytes());
    let checksum = xxh3_64(&header[..HEADER_BYTES - 8]);
    header[HEADER_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
}

/// Uses a window in every way; it only has to return.
fn exercise(mut filter: Window) {
    let items: Vec<u64> = (0..40).collect();
    let mut answers = Answers::new();
    let _ = (filter.insert(&99_u64), filter.insert_batch(&items), filter.may_contain(&7_u64));
    filter.may_contain_batch(&items, &mut answers);
    assert!((0.0..=1.0).contains(&filter.expected_fpr()) && (0.0..=1.0).contains(&filter.fill()));
    Window::decode(&filter.encode()).unwrap();
    for now in [0, 1, 1 << 20, u64::MAX - 1, u64::MAX] {
        filter.insert_batch_at(&items, now);
        let _ = (filter.may_contain_at(&7_u64, u64::MAX), filter.may_contain_at(&7_u64, 0));
    }
    Window::decode(&filter.encode()).unwrap();
    let _ = (filter.inserted(), filter.generations().count(), filter.bits_per_item(), filter.latest());
    filter.clear();
}

#[test]
fn damaged_bytes_are_errors_without_large_allocations() {
    let fields: Vec<(usize, usize)> =
        (8..16).step_by(2).map(|at| (at, 2)).chain((16..184).step_by(8).map(|at| (at, 8))).collect();
    // Split blocks, an odd number of them in all; and lines.
    for (filter, stray) in [(of_items(20, 0.01, 3, 1), true), (of_time(50, 10, 1e-6, 2, 1), false)] {
        let mut filter = filter;
        (0..35_u64).for_each(|i| {
            filter.insert_at(&i, i);
        });
        let bytes = filter.encode();
        let mut corruptor = Corruptor::new(&bytes);
        corruptor.truncations(|bytes, damage| assert!(Window::decode(bytes).is_err(), "{damage}"));
        corruptor.extensions(64, |bytes, damage| assert!(Window::decode(bytes).is_err(), "{damage}"));
        corruptor.bit_flips(0..bytes.len(), |bytes, damage| {
            assert!(Window::decode(bytes).is_err(), "{damage}");
        });
        let mut corruptor = Corruptor::new(&bytes).sealed_by(seal);
        if stray {
            corruptor.bit_flips(bytes.len() - 32..bytes.len(), |bytes, damage| {
                assert!(matches!(Window::decode(bytes), Err(DecodeError::StrayBit { .. })), "{damage}");
            });
        }
        let accounts: Vec<(usize, usize)> = (0..8).map(|word| (HEADER_BYTES + 8 * word, 8)).collect();
        let mut survivors = 0;
        corruptor.extremes(&[&fields[..], &accounts].concat(), |bytes, damage| {
            let (decoded, measured) = AllocMeter::measure(|| Window::decode(bytes));
            assert!(measured.largest_request <= bytes.len() as u64, "{damage}");
            survivors += u32::from(decoded.is_ok());
            decoded.into_iter().for_each(exercise);
        });
        assert!(survivors > 0, "no forgery got past the checks: the seal is wrong");
        corruptor.flips(5, 2_000, |bytes, _| Window::decode(bytes).into_iter().for_each(exercise));
        let plain = Bloom::for_capacity(10, 0.01, 1).unwrap().encode();
        assert!(matches!(Window::decode(&plain), Err(DecodeError::WrongKind { .. })));
    }
}

#[test]
fn contradictory_counts_are_rejected() {
    let mut filter = of_items(20, 0.01, 3, 1);
    (0..35_u64).for_each(|i| {
        filter.insert(&i);
    });
    let forged = |at: usize, value: u64| {
        let mut bytes = filter.encode();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        seal(&mut bytes);
        Window::decode(&bytes).map(|_| ()).unwrap_err()
    };
    let bad = |field, got| DecodeError::BadField { field, got };
    assert_eq!(forged(56, 24), bad("inserted", 24));
    assert_eq!(forged(72 + 5 * 8, 3), bad("newest generation", 3));
    assert_eq!(forged(72 + 6 * 8, 1), bad("latest time", 1));
    assert_eq!(forged(72 + 7 * 8, 1), bad("unused parameter", 1));
    assert_eq!(forged(HEADER_BYTES, 11), bad("items of a generation", 11));
    assert_eq!(forged(HEADER_BYTES + 8, 11), bad("changes of a generation", 11));
    assert_eq!(forged(HEADER_BYTES + 6 * 8, 1), bad("account of no generation", 1));
    assert!(matches!(forged(72, 17), DecodeError::Unbuildable(BuildError::GenerationsOutOfRange { .. })));
    assert!(matches!(forged(72, 1), DecodeError::Unbuildable(BuildError::GenerationsOutOfRange { .. })));
}

#[test]
fn bad_parameters_are_errors_before_anything_is_allocated() {
    let refused = |window, fpr: f64| {
        let (built, measured) = AllocMeter::measure(|| Window::of_items(window, fpr, 0));
        assert_eq!(measured.total_bytes, 0, "{window} {fpr}");
        built.map(|_| ()).unwrap_err()
    };
    for fpr in [0.0, -0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(refused(1_000, fpr), BuildError::RateOutOfRange { .. }), "{fpr}");
    }
    assert_eq!(refused(1_000, 1e-9), BuildError::RateTooLow { got: 1e-9, limit: 4e-9 });
    for window in [0, u64::MAX, (1 << 42) + 1] {
        assert!(matches!(refused(window, 0.01), BuildError::CapacityOutOfRange { .. }), "{window}");
    }
    let shape = WindowShape::of_items(1_000, 0.01).unwrap();
    for generations in [0, 1, 17, u32::MAX] {
        let error = shape.with_generations(generations).unwrap_err();
        assert_eq!(error, BuildError::GenerationsOutOfRange { got: generations, limit: 16 });
    }
    let error = WindowShape::of_time(0, 1_000, 0.01).unwrap_err();
    assert_eq!(error, BuildError::SpanOutOfRange { got: 0, least: 1 });
    assert_eq!(error.to_string(), "a window must span at least 1, got 0");
}

#[test]
fn a_shape_has_its_price_before_it_is_built() {
    let shape = WindowShape::of_time(3_600, 100_000, 0.01).unwrap();
    let filter = Window::with_shape(shape, HashScheme::keyed_random().unwrap()).unwrap();
    assert_eq!((filter.memory_bytes(), shape.pace()), (shape.memory_bytes(), Pace::Time { span: 3_600 }));
    assert_eq!(filter.memory_bytes() as f64 * 8.0 / 100_000.0, filter.bits_per_item());
    let error = shape.within(shape.memory_bytes() - 1).unwrap_err();
    assert_eq!(error, BuildError::TooLarge { bytes: shape.memory_bytes(), limit: shape.memory_bytes() - 1 });
    assert_eq!(shape.within(shape.memory_bytes()), Ok(shape));
    // The numbers of generations in the docs.
    for (generations, bits) in [(2, 24.4), (3, 19.9), (4, 18.8), (5, 18.4), (8, 18.5)] {
        let shape = WindowShape::of_items(1_000_000, 0.01).unwrap().with_generations(generations).unwrap();
        let found = shape.bits_per_item();
        assert!((found - bits).abs() < 0.05, "{generations}: {found}");
    }
    assert!(!filter.may_contain(&non_member(1)));
}
