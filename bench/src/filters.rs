//! `filters`: selects the filters to run and their items, and writes the rows.

use std::process::ExitCode;

use crate::{
    bars,
    contender::Entry,
    count,
    items::{BenchItem, Shape},
    measure::{Plan, measure},
    ours, record, rivals,
    row::Row,
    table,
};

/// Slow rivals are left out above this many items unless they are named.
const SLOW_UP_TO: u64 = 20_000_000;

/// The arguments of `filters`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Items in each filter: 1000000, 1_000_000 or 1e6.
    #[arg(long, value_parser = count::parse, default_value = "1e6")]
    items: u64,

    /// Target false-positive rate.
    #[arg(long, value_parser = rate, default_value = "0.01")]
    fpr: f64,

    /// Only these filters: full names, parts of names, kinds, `ours` or `rivals`, separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,

    /// One JSON object per line on standard output instead of the table.
    #[arg(long)]
    json: bool,

    /// The shape of the items.
    #[arg(long, value_enum, default_value = "u64")]
    shape: Shape,

    /// Rounds of queries.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,

    /// Keep the rows, with a line about the machine, in `bench/record/`.
    #[arg(long)]
    record: bool,

    /// The date in the record (YYYY-MM-DD); today if omitted.
    #[arg(long)]
    date: Option<String>,
}

/// Measures and prints. Fails if a filter answered *no* to a member.
pub(crate) fn run(args: &Args) -> ExitCode {
    let rows = match args.shape {
        Shape::U64 => rows::<u64>(args),
        Shape::Str16 => rows::<[u8; 16]>(args),
        Shape::Url => rows::<String>(args),
    };
    let rows = match rows {
        Ok(rows) => rows,
        Err(problem) => {
            eprintln!("error: {problem}");
            return ExitCode::from(2);
        }
    };
    if args.json {
        rows.iter().for_each(|row| println!("{}", record::line(row)));
    } else {
        print!("{}{}", table::render(&rows), bars::render(&bars::bars(&rows)));
    }
    if args.record {
        let date = args.date.clone().unwrap_or_else(record::today);
        match record::keep(&rows, &date) {
            Ok(path) => eprintln!("recorded in {}", path.display()),
            Err(problem) => {
                eprintln!("error: could not write the record: {problem}");
                return ExitCode::from(2);
            }
        }
    }
    verdict(&rows)
}

fn rows<T: BenchItem + mayhap::Item>(args: &Args) -> Result<Vec<Row>, String> {
    let entries = chosen(everyone::<T>(), &args.only, args.items)?;
    let plan = Plan { items: args.items, fpr: args.fpr, shape: args.shape, rounds: usize::from(args.rounds) };
    Ok(measure(&plan, entries))
}

/// Ours first, then the rivals.
fn everyone<T: BenchItem + mayhap::Item>() -> Vec<Entry<T>> {
    let mut all = ours::entries();
    all.extend(rivals::entries());
    all
}

/// Prints which filters broke a guarantee.
fn verdict(rows: &[Row]) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for row in rows.iter().filter(|row| row.is_broken()) {
        eprintln!(
            "BROKEN: {} answered no to {} of {} members; batch and single calls agree: {}",
            row.name,
            row.false_negatives.unwrap_or(0),
            row.members_asked,
            row.batch_agrees.map_or("no batch".to_owned(), |agrees| agrees.to_string()),
        );
        code = ExitCode::FAILURE;
    }
    code
}

/// Returns the entries that `only` names; if it is empty all entries, except the slow ones in a large run.
fn chosen<T>(all: Vec<Entry<T>>, only: &[String], items: u64) -> Result<Vec<Entry<T>>, String> {
    let mut keep = vec![only.is_empty(); all.len()];
    for wanted in only {
        let exact = all.iter().any(|entry| entry.name.eq_ignore_ascii_case(wanted.trim()));
        let mut found = false;
        for (entry, keep) in all.iter().zip(&mut keep) {
            if matches(entry, wanted.trim(), exact) {
                (*keep, found) = (true, true);
            }
        }
        if !found {
            let names: Vec<&str> = all.iter().map(|entry| entry.name).collect();
            return Err(format!("unknown filter {wanted:?}; known filters are {}", names.join(", ")));
        }
    }
    if only.is_empty() && items > SLOW_UP_TO {
        for (entry, keep) in all.iter().zip(&mut keep).filter(|(entry, _)| entry.slow) {
            eprintln!("left out above {SLOW_UP_TO} items; use --only to include it: {}", entry.name);
            *keep = false;
        }
    }
    Ok(all.into_iter().zip(keep).filter_map(|(entry, keep)| keep.then_some(entry)).collect())
}

/// Returns whether `wanted` selects the entry. A full name selects only that entry; anything else is a kind, a side or a part of a name.
fn matches<T>(entry: &Entry<T>, wanted: &str, exact: bool) -> bool {
    let wanted = wanted.to_lowercase();
    if exact {
        return entry.name.to_lowercase() == wanted;
    }
    match wanted.as_str() {
        "" => false,
        "ours" => entry.ours,
        "rivals" => !entry.ours,
        _ => entry.kind.name() == wanted || entry.name.to_lowercase().contains(&wanted),
    }
}

/// Parses a rate strictly between 0 and 1.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err(format!("false-positive rate must be between 0 and 1, got {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(only: &[&str], items: u64) -> Result<Vec<&'static str>, String> {
        let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
        Ok(chosen(rivals::entries::<u64>(), &only, items)?.iter().map(|entry| entry.name).collect())
    }

    #[test]
    fn a_full_name_selects_only_that_filter() {
        assert_eq!(names(&["fastbloom"], 1_000), Ok(vec!["fastbloom"]));
    }

    #[test]
    fn parts_kinds_and_sides_select_filters() {
        assert_eq!(names(&["SBBF"], 1_000), Ok(vec!["sbbf-rs-safe"]));
        assert_eq!(names(&["counting", "blocked"], 1_000), Ok(vec!["sbbf-rs-safe", "fastbloom-rs counting"]));
        assert_eq!(names(&["rivals"], 1_000), names(&[], 1_000));
        assert!(names(&["no such filter"], 1_000).is_err());
    }

    #[test]
    fn slow_filters_are_left_out_of_large_runs_unless_named() {
        assert!(names(&[], SLOW_UP_TO).unwrap().contains(&"bloomfilter"));
        assert!(!names(&[], SLOW_UP_TO + 1).unwrap().contains(&"bloomfilter"));
        assert_eq!(names(&["bloomfilter"], SLOW_UP_TO + 1), Ok(vec!["bloomfilter"]));
    }

    #[test]
    fn rates_are_checked() {
        assert_eq!(rate("0.01"), Ok(0.01));
        for text in ["0", "1", "-1", "nan", "often"] {
            assert!(rate(text).is_err(), "{text} was accepted");
        }
    }
}
