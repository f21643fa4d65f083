//! Every kind over a grid of sizes and rates: promised, expected and observed. Writes `docs/accuracy.md`.
//!
//! Everything is seeded, so a run on any machine gives the same table.

mod page;
mod subject;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mayhap_testkit::binomial::{deviations, try_band_with_model_error, upper_tail};

use self::subject::{Built, SUBJECTS, Subject};

/// What to measure, and where to write it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A short form in seconds: sizes up to 1e5, rates down to 0.1 %; writes nothing unless `--out` is given.
    #[arg(long)]
    quick: bool,
    /// Where the page goes [default: docs/accuracy.md, nowhere with --quick].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Chance a side that a right filter is called wrong.
const ALPHA: f64 = 1e-6;
/// The stated error of the models.
const MODEL_ERROR: f64 = 0.02;

/// One cell of the grid, measured.
pub(crate) struct Cell {
    name: &'static str,
    items: u64,
    promised: f64,
    expected: f64,
    trials: u64,
    wrong: u64,
    bits_per_item: f64,
    /// Inside the band around what the model expects?
    as_expected: bool,
    /// Not above the promise by more than chance explains?
    kept: bool,
    /// Was the same filter with a tenth too many items rejected? `None` for filters that grow instead.
    overfull_rejected: Option<bool>,
}

impl Cell {
    fn observed(&self) -> f64 {
        self.wrong as f64 / self.trials as f64
    }

    fn sigmas(&self) -> f64 {
        deviations(self.trials, self.expected, self.wrong)
    }

    fn passes(&self) -> bool {
        self.as_expected && self.kept && self.overfull_rejected != Some(false)
    }
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let sizes: &[u64] = if args.quick { &[1_000, 100_000] } else { &[1_000, 100_000, 10_000_000] };
    let rates: &[f64] = if args.quick { &[0.1, 0.01, 0.001] } else { &[0.1, 0.01, 0.001, 1e-4, 1e-6] };
    let grid: Vec<(&Subject, u64, f64)> = SUBJECTS
        .iter()
        .flat_map(|subject| {
            sizes.iter().flat_map(move |&items| rates.iter().map(move |&rate| (subject, items, rate)))
        })
        .collect();
    let cells = measure_all(&grid, args.quick);
    let failed = cells.iter().filter(|cell| !cell.passes()).count();
    println!("{} cells, {} as promised, {failed} not", cells.len(), cells.len() - failed);
    let out = args.out.clone().or_else(|| (!args.quick).then(|| PathBuf::from("docs/accuracy.md")));
    if let Some(path) = out {
        if let Err(error) = std::fs::write(&path, page::render(&cells)) {
            eprintln!("mayhap-bench: cannot write {}: {error}", path.display());
            return ExitCode::from(2);
        }
        println!("written to {}", path.display());
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// All cells, in the order of the grid, by as many threads as there are cores.
fn measure_all(grid: &[(&Subject, u64, f64)], quick: bool) -> Vec<Cell> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&(subject, items, rate)) = grid.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let number = grid
                        .iter()
                        .position(|cell| cell.0.name == subject.name && (cell.1, cell.2) == (items, rate));
                    let cell = measure(subject, items, rate, quick);
                    println!("{}", page::line(&cell));
                    done.lock().expect("no thread panics while it holds the cells").push((number, cell));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread panics while it holds the cells");
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, cell)| cell).collect()
}

/// Strangers asked for one cell: enough wrong answers that chance is small beside the model's error, in bearable time.
fn trials(rate: f64, quick: bool) -> u64 {
    let wanted = match rate {
        _ if rate >= 0.1 => 20_000_000,
        _ if rate >= 1e-4 => 100_000_000,
        _ => 400_000_000,
    };
    if quick { wanted / 20 } else { wanted }
}

/// Filters differ by luck, small ones most, so that several are averaged: four, or as many as have two million items together.
fn filters(items: u64) -> u64 {
    (2_000_000 / items).clamp(4, 500)
}

fn measure(subject: &Subject, items: u64, rate: f64, quick: bool) -> Cell {
    // A filter may be far better than promised; there must be something to count all the same.
    let expected = (subject.build)(items, items, rate, 1).expected;
    let asked = trials(rate, quick).max((400.0 / expected) as u64);
    let full = ask(subject, items, items, rate, asked);
    let band = |trials, expected| try_band_with_model_error(trials, expected, ALPHA, MODEL_ERROR);
    let within = |sums: &Sums| band(sums.trials, full.expected).is_ok_and(|band| band.contains(&sums.wrong));
    let overfull_rejected = (!subject.grows).then(|| {
        let fewer = asked.min((asked / 10).max((500.0 / rate) as u64));
        !within(&ask(subject, items, items + items / 10, rate, fewer))
    });
    Cell {
        name: subject.name,
        items,
        promised: rate,
        expected: full.expected,
        trials: full.trials,
        wrong: full.wrong,
        bits_per_item: full.bits_per_item,
        as_expected: within(&full),
        kept: upper_tail(full.trials, rate, full.wrong) > ALPHA,
        overfull_rejected,
    }
}

/// What some filters of one cell answered, added up.
struct Sums {
    trials: u64,
    wrong: u64,
    /// What the model says at the capacity, whatever was really put in.
    expected: f64,
    bits_per_item: f64,
}

fn ask(subject: &Subject, capacity: u64, items: u64, rate: f64, trials: u64) -> Sums {
    let filters = filters(capacity);
    let each = trials.div_ceil(filters);
    let mut sums = Sums { trials: 0, wrong: 0, expected: 0.0, bits_per_item: 0.0 };
    for seed in 0..filters {
        let Built { filter, expected, bits_per_item } = (subject.build)(capacity, items, rate, seed + 1);
        sums.wrong += filter.wrong_answers(seed + 1, each);
        sums.trials += each;
        sums.expected = expected;
        sums.bits_per_item = bits_per_item;
    }
    sums
}
