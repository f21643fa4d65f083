//! The measurements as text.

use std::io::{self, Write};

use anstyle::Style;
use mayhap::say;

use super::measure::Measured;
use super::sample::SampleOrigin;
use super::{BenchReport, Sort};
use crate::kind_name::name_of;
use crate::output::{ASIDE, BEST, HEADING, paragraph};

/// The width of the mark and the name.
const NAME_WIDTH: usize = 21;

/// A column of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Rate,
    Sure,
    Memory,
    Bits,
    MemoryRatio,
    Build,
    NoEach,
    NoBatch,
    MayhapEach,
    MayhapBatch,
    LookupRatio,
}

/// All columns, in order.
const COLUMNS: [Column; 11] = [
    Column::Rate,
    Column::Sure,
    Column::Memory,
    Column::Bits,
    Column::MemoryRatio,
    Column::Build,
    Column::NoEach,
    Column::NoBatch,
    Column::MayhapEach,
    Column::MayhapBatch,
    Column::LookupRatio,
];

/// The columns that a narrow terminal drops, in this order.
const LEAVE: [Column; 6] = [
    Column::Sure,
    Column::Bits,
    Column::MemoryRatio,
    Column::LookupRatio,
    Column::MayhapEach,
    Column::NoEach,
];

/// The best values.
struct Least {
    memory_bytes: f64,
    lookup: f64,
}

impl Column {
    /// Both lines of its heading, and its width.
    const fn heading(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::Rate => ("", "FPR", 8),
            Self::Sure => ("", "95% interval", 13),
            Self::Memory => ("", "memory", 10),
            Self::Bits => ("bits/", "item", 6),
            Self::MemoryRatio => ("", "", 6),
            Self::Build => ("build", "ns", 6),
            Self::NoEach => ("no", "each", 5),
            Self::NoBatch => ("", "batch", 6),
            Self::MayhapEach => ("maybe", "each", 7),
            Self::MayhapBatch => ("", "batch", 6),
            Self::LookupRatio => ("", "", 6),
        }
    }

    fn of(self, measured: &Measured, least: &Least) -> String {
        let lookup = &measured.lookup;
        match self {
            Self::Rate => percent(measured.observed_fpr()),
            Self::Sure => sure(measured),
            Self::Memory => say::bytes(measured.memory_bytes),
            Self::Bits => bits(measured.bits_per_item()),
            Self::MemoryRatio => ratio(measured.memory_bytes as f64, least.memory_bytes),
            Self::Build => short(measured.build_ns),
            Self::NoEach => short(lookup.no_each),
            Self::NoBatch => short(lookup.no_batch),
            Self::MayhapEach => short(lookup.mayhap_each),
            Self::MayhapBatch => short(lookup.mayhap_batch),
            Self::LookupRatio => ratio(lookup.mean(), least.lookup),
        }
    }
}

pub(super) fn write(out: &mut dyn Write, report: &BenchReport<'_>, width: usize) -> io::Result<()> {
    let (items, rate) = (say::items(report.needs.items), say::rate(report.needs.target_fpr));
    writeln!(out, "{HEADING}Measured with {items} at a target FPR of {rate}{HEADING:#}\n")?;
    paragraph(out, &sample(report), "", width)?;
    writeln!(out)?;
    table(out, report, width)?;
    writeln!(out)?;
    paragraph(
        out,
        "Times are CPU nanoseconds per item, the median of the rounds: for the build, and for lookups of non-members (no) and of members \
         (maybe), single and in batches. The x after memory and after the lookups is the multiple of the best; for lookups, of the mean of all four.",
        "",
        width,
    )?;
    writeln!(out)?;
    paragraph(out, &verdict(report), "", width)?;
    if !report.left_out.is_empty() {
        let left_out: Vec<_> = report
            .left_out
            .iter()
            .map(|(structure, why)| format!("{} ({why})", name_of(*structure)))
            .collect();
        write!(out, "{ASIDE}")?;
        paragraph(out, &format!("Not measured: {}.", left_out.join("; ")), "", width)?;
        write!(out, "{ASIDE:#}")?;
    }
    Ok(())
}

/// The members and non-members.
fn sample(report: &BenchReport<'_>) -> String {
    let sample = report.sample;
    let non_members = sample.non_members.len() as u64;
    let origin = match sample.origin {
        SampleOrigin::Generated => {
            return format!(
                "The items are generated: {} members and {} non-members. Your own items may be longer and take longer to hash.",
                say::count(sample.members.len() as u64),
                say::count(non_members)
            );
        }
        SampleOrigin::Read { records, sampled: 1 } => format!("{} read.", plural(records, "record")),
        SampleOrigin::Read { records, sampled } => format!(
            "{} read. The items exceed {} (--memory), so this is a sample: one in {} of the distinct items. A filter for all items is larger \
             than those below, and slower if it does not fit the cache.",
            plural(records, "record"),
            say::bytes(report.bench.memory),
            say::count(sampled)
        ),
    };
    let held_back = non_members - sample.altered as u64;
    let altered = match sample.altered as u64 {
        0 => String::new(),
        altered => format!(" and {} altered members", say::count(altered)),
    };
    format!(
        "{origin} Members: {}. Non-members: {} held back{altered}; all distinct.",
        say::count(sample.members.len() as u64),
        say::count(held_back)
    )
}

fn table(out: &mut dyn Write, report: &BenchReport<'_>, width: usize) -> io::Result<()> {
    let least = Least {
        memory_bytes: smallest(report, |measured| measured.memory_bytes as f64),
        lookup: smallest(report, |measured| measured.lookup.mean()),
    };
    let mut columns = COLUMNS.to_vec();
    let mut leave = LEAVE.into_iter();
    let taken =
        |columns: &[Column]| NAME_WIDTH + columns.iter().map(|column| column.heading().2).sum::<usize>();
    while taken(&columns) > width
        && let Some(next) = leave.next()
    {
        columns.retain(|column| *column != next);
    }
    let row = |name: &str, cell: &dyn Fn(Column) -> String| {
        let cells: String =
            columns.iter().map(|&column| format!("{:>1$}", cell(column), column.heading().2)).collect();
        format!("{name:<NAME_WIDTH$}{cells}").trim_end().to_owned()
    };
    for heading in
        [row("", &|column| column.heading().0.into()), row("  kind", &|column| column.heading().1.into())]
    {
        writeln!(out, "{HEADING}{heading}{HEADING:#}")?;
    }
    for measured in &report.measured {
        let best = report.recommended == Some(measured.structure);
        let style = if best { BEST } else { Style::new() };
        let name = format!("{} {}", if best { '*' } else { ' ' }, measured.structure.name());
        writeln!(out, "{style}{}{style:#}", row(&name, &|column| column.of(measured, &least)))?;
    }
    Ok(())
}

/// The best of each sort, and the recommendation of `plan`.
fn verdict(report: &BenchReport<'_>) -> String {
    let best = |by: fn(&Measured) -> f64| {
        let best = report.measured.iter().min_by(|one, other| by(one).total_cmp(&by(other)));
        best.map_or_else(String::new, |best| best.structure.name().to_owned())
    };
    let mut text = vec![format!(
        "No false negatives. Least memory: {}. Fastest lookups: {}. Fastest build: {}.",
        best(|measured| measured.memory_bytes as f64),
        best(|measured| measured.lookup.mean()),
        best(|measured| measured.build_ns)
    )];
    let over: Vec<_> = report
        .measured
        .iter()
        .filter(|measured| measured.interval().0 > report.needs.target_fpr)
        .map(|measured| measured.structure.name())
        .collect();
    if !over.is_empty() {
        text.push(format!("FPR above the target: {}.", over.join(", ")));
    }
    match report.recommended {
        Some(recommended) if report.measured.iter().any(|measured| measured.structure == recommended) => {
            text.push("* `mayhap plan` recommends this kind for these needs.".into());
        }
        Some(recommended) => {
            text.push(format!(
                "`mayhap plan` recommends {recommended} for these needs, which was not measured."
            ));
        }
        None => {}
    }
    let order = match report.bench.sort {
        Sort::Memory => "Sorted by memory (--sort lookup, build or rate for another order).",
        Sort::Lookup => "Sorted by lookup time.",
        Sort::Build => "Sorted by build time.",
        Sort::Rate => "Sorted by the measured FPR.",
    };
    text.push(order.into());
    text.join(" ")
}

pub(super) fn smallest(report: &BenchReport<'_>, by: impl Fn(&Measured) -> f64) -> f64 {
    report.measured.iter().map(by).fold(f64::INFINITY, f64::min)
}

fn plural(count: u64, word: &str) -> String {
    format!("{} {word}{}", say::count(count), if count == 1 { "" } else { "s" })
}

/// `0.93-1.05%`; `< 0.003%` without false positives; `exact` if there can be none.
fn sure(measured: &Measured) -> String {
    let (low, high) = measured.interval();
    match () {
        () if measured.exact => "exact".into(),
        () if measured.wrong == 0 => format!("< {}", percent(high)),
        () if high < 1e-4 => format!("{low:.0e}-{high:.0e}"),
        () => format!("{}-{}", percent(low.max(1e-4)).trim_end_matches('%'), percent(high)),
    }
}

/// Three digits of a percentage: `1.02%`, `0.391%`, `2e-5`.
fn percent(rate: f64) -> String {
    match rate {
        0.0 => "0%".into(),
        _ if rate < 1e-4 => format!("{rate:.1e}"),
        _ if rate < 0.01 => format!("{:.3}%", rate * 100.0),
        _ if rate < 0.1 => format!("{:.2}%", rate * 100.0),
        _ => format!("{:.1}%", rate * 100.0),
    }
}

/// Two or three digits.
fn short(number: f64) -> String {
    if number < 9.95 { format!("{number:.1}") } else { format!("{number:.0}") }
}

/// Three or four digits.
fn bits(number: f64) -> String {
    if number < 99.95 { format!("{number:.1}") } else { format!("{number:.0}") }
}

fn ratio(number: f64, least: f64) -> String {
    let times = number / least;
    if times < 9.95 { format!("{times:.1}x") } else { format!("{times:.0}x") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_take_few_columns() {
        assert_eq!(
            [percent(0.0), percent(0.010_23), percent(0.003_912), percent(0.5), percent(2e-5)],
            ["0%", "1.02%", "0.391%", "50.0%", "2.0e-5"]
        );
        assert_eq!([ratio(3.0, 2.0), ratio(200.0, 2.0)], ["1.5x", "100x"]);
    }
}
