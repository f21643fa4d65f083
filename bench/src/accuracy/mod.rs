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

use mayhap::BuildError;

use self::subject::{Built, SUBJECTS, Subject, Twin};

/// Settings of the measurement.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A short run of seconds: at most 1e5 items, rates down to 0.1 %; writes nothing without `--out`.
    #[arg(long)]
    quick: bool,
    /// Only kinds whose name contains one of these, separated by commas; the other rows of the page are kept.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The page to write [default: docs/accuracy.md, none with --quick].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The probability, per side, that a correct filter fails the check.
const ALPHA: f64 = 1e-6;
/// The assumed error of the models.
const MODEL_ERROR: f64 = 0.02;

/// One measured cell of the grid.
pub(crate) struct Cell {
    name: &'static str,
    items: u64,
    promised: f64,
    expected: f64,
    trials: u64,
    wrong: u64,
    bits_per_item: f64,
    /// Whether it is inside the band around the expected rate.
    as_expected: bool,
    /// Whether it exceeds the promised rate by no more than chance allows.
    kept: bool,
    /// Whether the same filter with too many items was detected. `None` for filters without such a check.
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
    let wanted = |subject: &&Subject| {
        args.only.is_empty() || args.only.iter().any(|part| subject.name.contains(part.as_str()))
    };
    let grid: Vec<(&Subject, u64, f64)> = SUBJECTS
        .iter()
        .filter(wanted)
        .flat_map(|subject| {
            let rates = subject.fixed.as_ref().map_or(rates, std::slice::from_ref);
            sizes.iter().flat_map(move |&items| rates.iter().map(move |&rate| (subject, items, rate)))
        })
        .collect();
    let cells = measure_all(&grid, args.quick);
    let failed = cells.iter().filter(|cell| !cell.passes()).count();
    println!("{} cells, {} as promised, {failed} not", cells.len(), cells.len() - failed);
    let out = args.out.clone().or_else(|| (!args.quick).then(|| PathBuf::from("docs/accuracy.md")));
    if let Some(path) = out {
        // Kinds that were not measured keep their rows: everything is seeded, so they would come out the same.
        let before = if args.only.is_empty() { None } else { std::fs::read_to_string(&path).ok() };
        if let Err(error) = std::fs::write(&path, page::render(&cells, &before.unwrap_or_default())) {
            eprintln!("mayhap-bench: cannot write {}: {error}", path.display());
            return ExitCode::from(2);
        }
        println!("written to {}", path.display());
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Measures all cells on all cores. Returns them in the order of the grid.
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
                    match measure(subject, items, rate, quick) {
                        Ok(cell) => {
                            println!("{}", page::line(&cell));
                            done.lock()
                                .expect("no thread panics while it holds the cells")
                                .push((number, cell));
                        }
                        Err(error) => println!("{:32} {items:>10} items at {rate}: {error}", subject.name),
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread panics while it holds the cells");
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, cell)| cell).collect()
}

/// The number of non-members queried per cell: enough false positives to make chance small compared with the model error, in acceptable time.
fn trials(rate: f64, quick: bool) -> u64 {
    let wanted = match rate {
        _ if rate >= 0.1 => 20_000_000,
        _ if rate >= 1e-4 => 100_000_000,
        _ => 400_000_000,
    };
    if quick { wanted / 20 } else { wanted }
}

/// The number of filters per cell. Filters vary by chance, small ones most, so several are averaged: four, or as many as have two million items
/// together.
fn filters(items: u64) -> u64 {
    (2_000_000 / items).clamp(4, 500)
}

/// # Errors
/// The reason why there is no such filter: some kinds do not support every rate.
fn measure(subject: &Subject, items: u64, rate: f64, quick: bool) -> Result<Cell, BuildError> {
    // A filter may be much better than promised; there must still be enough false positives to count.
    let expected = (subject.build)(items, items, rate, 1)?.expected;
    let asked = trials(rate, quick).max((400.0 / expected) as u64);
    let full = ask(subject, items, items, rate, asked)?;
    let band = |trials, expected| try_band_with_model_error(trials, expected, ALPHA, MODEL_ERROR);
    let within = |sums: &Sums| band(sums.trials, full.expected).is_ok_and(|band| band.contains(&sums.wrong));
    let too_many = match subject.twin {
        Twin::Tenth => Some(items + items / 10),
        Twin::Half => Some(items + items / 2),
        Twin::None => None,
    };
    let overfull_rejected = match too_many {
        Some(too_many) => {
            let fewer = asked.min((asked / 10).max((500.0 / expected) as u64));
            let twin = ask(subject, items, too_many, rate, fewer)?;
            Some(twin.refused || !within(&twin))
        }
        None => None,
    };
    Ok(Cell {
        name: subject.name,
        items,
        promised: full.promised,
        expected: full.expected,
        trials: full.trials,
        wrong: full.wrong,
        bits_per_item: full.bits_per_item,
        as_expected: !full.refused && within(&full),
        kept: upper_tail(full.trials, full.promised, full.wrong) > ALPHA,
        overfull_rejected,
    })
}

/// The summed results of the filters of one cell.
struct Sums {
    trials: u64,
    wrong: u64,
    /// The rate that the filters promise.
    promised: f64,
    /// The expected rate at capacity, whatever was inserted: the mean over the filters.
    expected: f64,
    bits_per_item: f64,
    /// Whether one of them rejected some items because it was full.
    refused: bool,
}

fn ask(subject: &Subject, capacity: u64, items: u64, rate: f64, trials: u64) -> Result<Sums, BuildError> {
    let filters = filters(capacity);
    let each = trials.div_ceil(filters);
    let mut sums =
        Sums { trials: 0, wrong: 0, promised: rate, expected: 0.0, bits_per_item: 0.0, refused: false };
    for seed in 0..filters {
        let built = (subject.build)(capacity, items, rate, seed + 1)?;
        let Built { filter, promised, expected, bits_per_item, refused } = built;
        sums.refused |= refused;
        if refused {
            break; // its answers no longer matter
        }
        sums.wrong += filter.wrong_answers(seed + 1, each);
        sums.trials += each;
        sums.promised = promised;
        sums.expected += expected / filters as f64;
        sums.bits_per_item = bits_per_item;
    }
    Ok(sums)
}
