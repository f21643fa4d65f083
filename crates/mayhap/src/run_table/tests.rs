//! Compares the table with a simple model: a vector of numbers for every home.

use super::*;
use crate::codec::DecodeError;
use crate::simd::select::Plain;
use mayhap_testkit::rng::Rng;
use std::sync::atomic::Ordering;

struct Model {
    runs: Vec<Vec<u64>>,
}

impl Model {
    fn new(homes: u64) -> Self {
        Self { runs: vec![Vec::new(); homes as usize] }
    }

    /// Returns where every run must be: at its home, or right after the runs before it.
    fn ranges(&self) -> Vec<Range<u64>> {
        let mut end = 0;
        (0..)
            .zip(&self.runs)
            .map(|(home, run)| {
                let start = end.max(home);
                if !run.is_empty() {
                    end = start + run.len() as u64;
                }
                start..start + run.len() as u64
            })
            .collect()
    }

    fn numbers(&self) -> Vec<(u64, u64)> {
        (0..).zip(&self.runs).flat_map(|(home, run)| run.iter().map(move |&value| (home, value))).collect()
    }
}

/// Asserts that all lookups in the table return what the model returns.
fn assert_same(table: &RunTable, model: &Model, context: &str) {
    assert_eq!(table.check(), Ok(model.runs.iter().map(|run| run.len() as u64).sum()), "{context}");
    assert_eq!(table.check(), Ok(table.used()), "{context}");
    assert_eq!(table.iter().collect::<Vec<_>>(), model.numbers(), "{context}");
    for (home, range) in (0..).zip(model.ranges()) {
        let run = (!range.is_empty()).then_some(range.clone());
        assert_eq!(table.run(home), run, "{context}, home {home}");
        assert_eq!(table.view(Plain).run(home), run, "{context}, home {home}, plain");
        assert_eq!(table.run_or_gap(home), range, "{context}, home {home}");
    }
    let mut appender = Appender::with_homes(table.homes(), table.bits()).unwrap();
    for (home, value) in model.numbers() {
        appender.push(home, value).unwrap();
    }
    let appended = appender.finish();
    assert_eq!(appended.used(), table.used());
    assert_eq!(words(&appended), words(table), "{context}: written in one go");
}

fn words(table: &RunTable) -> Vec<u64> {
    table.lines().words().iter().map(|word| word.load(Ordering::Relaxed)).collect()
}

/// Random insertions and removals with up to `most` slots in use, homes drawn by `draw`.
fn storm(homes: u64, bits: u32, most: u64, steps: u64, draw: impl Fn(&mut Rng) -> u64) {
    let context = format!("{homes} homes, {bits} bits, up to {most} slots");
    let mut rng = Rng::new(homes * 64 + u64::from(bits) + most);
    let (mut table, mut model) = (RunTable::with_homes(homes, bits).unwrap(), Model::new(homes));
    let mut refusals = 0;
    let assert_every = (steps / 40).max(1);
    for step in 0..steps {
        // In waves: full, nearly empty, full.
        let filling = table.used() < most
            && (rng.below(8) < if (step / (steps / 4).max(1)).is_multiple_of(2) { 7 } else { 3 });
        let home = draw(&mut rng);
        let run = table.run_or_gap(home);
        let inside = |rng: &mut Rng, len: u64| rng.below(len.max(1));
        if filling {
            let (place, value) = (inside(&mut rng, run.end - run.start + 1), rng.next_u64() >> (64 - bits));
            match table.insert(home, &run, run.start + place, value) {
                Ok(()) => model.runs[home as usize].insert(place as usize, value),
                Err(RunTableFull) => {
                    refusals += 1;
                    assert_eq!(table.iter().collect::<Vec<_>>(), model.numbers(), "{context}");
                }
            }
        } else if !run.is_empty() {
            let place = inside(&mut rng, run.end - run.start);
            if rng.below(2) == 0 {
                table.remove(home, &run, run.start + place);
                model.runs[home as usize].remove(place as usize);
            } else {
                let value = rng.next_u64() >> (64 - bits);
                table.set(run.start + place, value);
                model.runs[home as usize][place as usize] = value;
            }
        }
        if step % assert_every == 0 {
            assert_same(&table, &model, &format!("{context}, step {step}, {refusals} refusals"));
        }
    }
    assert_same(&table, &model, &context);
    let copy = table.try_clone().unwrap();
    table.clear();
    assert_same(&table, &Model::new(homes), &context);
    // Empties the table one number at a time.
    let mut table = copy;
    while let Some((home, run)) = table.runs().next() {
        table.remove(home, &run, run.end - 1);
    }
    assert_same(&table, &Model::new(homes), &context);
}

#[test]
fn storms_at_every_load_agree_with_the_model() {
    for (homes, bits) in [
        (1, 1),
        (2, 58),
        (59, 3),
        (60, 8),
        (61, 8),
        (119, 13),
        (120, 32),
        (121, 33),
        (500, 7),
        (1_000, 58),
        (1_337, 11),
    ] {
        let slots = slots_for(homes);
        for most in [homes / 4 + 1, homes * 3 / 4 + 1, homes * 19 / 20 + 1, homes + 3, slots] {
            storm(homes, bits, most, 4 * homes + 400, |rng| rng.below(homes));
        }
    }
}

/// Offsets of 255 and more: all numbers in a few homes.
#[test]
fn storms_on_few_homes_agree_with_the_model() {
    for (homes, bits) in [(700, 5), (2_000, 9), (1_201, 3)] {
        let slots = slots_for(homes);
        storm(homes, bits, slots, 3 * homes, |_| 3);
        storm(homes, bits, slots, 3 * homes, |rng| rng.below(2) * 100 + 7);
        storm(homes, bits, slots, 4 * homes, |rng| if rng.below(2) == 0 { 50 } else { rng.below(homes) });
        storm(homes, bits, slots, 2 * homes, |rng| homes - 1 - rng.below(3));
    }
}

#[test]
fn a_full_table_refuses_and_stays_as_it_was() {
    let mut table = RunTable::with_homes(100, 7).unwrap();
    let slots = slots_for(100);
    for count in 0..slots {
        let run = table.run_or_gap(0);
        assert_eq!(table.insert(0, &run, run.end, count % 128), Ok(()));
    }
    let before = words(&table);
    for home in 0..100 {
        let run = table.run_or_gap(home);
        assert_eq!(table.insert(home, &run, run.start, 1), Err(RunTableFull), "home {home}");
    }
    assert_eq!((words(&table), table.used()), (before, slots));
    let mut appender = Appender::with_homes(100, 7).unwrap();
    (0..slots).for_each(|_| appender.push(5, 1).unwrap_or_default());
    assert_eq!((appender.push(5, 1), appender.push(99, 1)), (Err(RunTableFull), Err(RunTableFull)));
    assert_eq!(appender.used(), slots - 5);
}

#[test]
fn absurd_sizes_are_errors() {
    for bits in [0, 59, 64, u32::MAX] {
        let error = RunTable::lines_for(10, bits).unwrap_err();
        assert!(matches!(error, BuildError::FingerprintOutOfRange { got, .. } if got == bits));
    }
    for homes in [0, u64::MAX, MAX_BITS, MAX_BITS / 8] {
        assert!(matches!(RunTable::lines_for(homes, 10), Err(BuildError::BitsOutOfRange { .. })), "{homes}");
    }
    for homes in [1, 59, 60, 1 << 20, 1 << 44] {
        let lines = RunTable::lines_for(homes, 8).unwrap();
        let bits = lines as f64 * 512.0 / slots_for(homes) as f64;
        assert!(homes < 1000 || (10.13..10.14).contains(&bits), "{homes} homes: {bits} bits a slot");
    }
}

/// Flips every single bit of a table: the result is either rejected or another sound table that contains all
/// its runs. The numbers themselves are unchecked, so there is no third case.
#[test]
fn every_flipped_bit_is_refused_or_makes_another_sound_table() {
    for (homes, bits, items) in [(70, 4, 60), (130, 2, 125), (400, 1, 398)] {
        let mut rng = Rng::new(homes);
        let mut table = RunTable::with_homes(homes, bits).unwrap();
        for item in 0..items {
            // Half of the numbers are in one home, for offsets too large to be stored.
            let home = if item % 2 == 0 { 5 } else { rng.below(homes) };
            let run = table.run_or_gap(home);
            table.insert(home, &run, run.start, rng.next_u64()).unwrap();
        }
        let (mut refused, mut sound) = (0, 0);
        let total = table.lines().words().len() * 64;
        for bit in 0..total {
            let mut lines = table.lines().try_clone().unwrap();
            lines.words_mut()[bit / 64] ^= 1 << (bit % 64);
            let Ok(mut table) = RunTable::from_lines(lines, homes, bits) else {
                refused += 1;
                continue;
            };
            sound += 1;
            let mut model = Model::new(homes);
            table.iter().for_each(|(home, value)| model.runs[home as usize].push(value));
            assert_same(&table, &model, &format!("bit {bit} of {homes} homes"));
            for home in [0, 5, homes - 1] {
                let run = table.run_or_gap(home);
                if table.insert(home, &run, run.end, 1).is_ok() {
                    model.runs[home as usize].push(1);
                }
            }
            assert_same(&table, &model, &format!("bit {bit} of {homes} homes"));
        }
        assert!(sound > 0 && refused > total / 4, "{refused} of {total} refused, {sound} sound");
    }
}

#[test]
fn tables_of_another_size_and_random_words_are_refused() {
    let lines = |table: &RunTable| table.lines().try_clone().unwrap();
    let table = RunTable::with_homes(1_000, 8).unwrap();
    assert!(RunTable::from_lines(lines(&table), 1_000, 8).is_ok());
    let length = RunTable::from_lines(lines(&table), 1_500, 8).unwrap_err();
    assert!(matches!(length, DecodeError::BadField { field: "payload length", .. }));
    assert!(RunTable::from_lines(lines(&table), 0, 8).is_err());
    assert!(RunTable::from_lines(lines(&table), 1_000, 59).is_err());
    let mut rng = Rng::new(9);
    for _ in 0..2_000 {
        let mut random = lines(&table);
        random.words_mut().iter_mut().for_each(|word| *word = rng.next_u64() & rng.next_u64());
        assert!(RunTable::from_lines(random, 1_000, 8).is_err());
    }
}
