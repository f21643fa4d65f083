//! The measurements as people read them.

use std::io::{self, Write};

use anstyle::Style;
use mayhap::advise::say;

use super::measure::Measured;
use super::people::Origin;
use super::{Report, Sort};
use crate::kind_name::name_of;
use crate::output::{ASIDE, BEST, HEADING, paragraph};

/// Columns of the mark and the name.
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

/// In the order of the table.
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

/// Those a narrow terminal does without, the first of them first.
const LEAVE: [Column; 6] = [
    Column::Sure,
    Column::Bits,
    Column::MemoryRatio,
    Column::LookupRatio,
    Column::MayhapEach,
    Column::NoEach,
];

/// The best of each.
struct Least {
    memory_bytes: f64,
    lookup: f64,
}

impl Column {
    /// Both lines of its heading, and how wide it is.
    const fn heading(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::Rate => ("", "rate", 8),
            Self::Sure => ("", "95% sure", 13),
            Self::Memory => ("", "memory", 10),
            Self::Bits => ("bits/", "item", 6),
            Self::MemoryRatio => ("", "", 6),
            Self::Build => ("build", "ns", 6),
            Self::NoEach => ("no", "each", 5),
            Self::NoBatch => ("", "batch", 6),
            Self::MayhapEach => ("mayhap", "each", 7),
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

pub(super) fn write(out: &mut dyn Write, report: &Report<'_>, width: usize) -> io::Result<()> {
    let (items, rate) = (say::items(report.needs.items), say::rate(report.needs.target_fpr));
    writeln!(out, "{HEADING}Measured with {items} at a rate of {rate}{HEADING:#}\n")?;
    paragraph(out, &people(report), "", width)?;
    writeln!(out)?;
    table(out, report, width)?;
    writeln!(out)?;
    paragraph(
        out,
        "Times are CPU nanoseconds per item, the median of the rounds: of building, and of asking for non-members (no) and for members \
         (mayhap), each by itself and in batches. The x behind memory and behind lookups: times the best; lookups by the mean of the four.",
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

/// Who was in and who was asked about.
fn people(report: &Report<'_>) -> String {
    let people = report.people;
    let non_members = people.non_members.len() as u64;
    let origin = match people.origin {
        Origin::Generated => {
            return format!(
                "The items are generated: {} for members, as many others as it takes for {} non-members. Your own items may be longer, and \
                 take longer to hash.",
                say::count(people.members.len() as u64),
                say::count(non_members)
            );
        }
        Origin::Read { records, sampled: 1 } => format!("{} read.", plural(records, "record")),
        Origin::Read { records, sampled } => format!(
            "{} read. They take more than {} (--memory), so this is a sample: one in {} of the distinct items. A filter of them all is larger \
             than those below, and where it is larger than the cache it is slower.",
            plural(records, "record"),
            say::bytes(report.bench.memory),
            say::count(sampled)
        ),
    };
    let held_back = non_members - people.altered as u64;
    let altered = match people.altered as u64 {
        0 => String::new(),
        altered => format!(" and {} slightly altered", say::count(altered)),
    };
    format!(
        "{origin} Members: {}. Non-members: {} held back{altered}; all distinct.",
        say::count(people.members.len() as u64),
        say::count(held_back)
    )
}

fn table(out: &mut dyn Write, report: &Report<'_>, width: usize) -> io::Result<()> {
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

/// The best of each sort, and what `plan` says.
fn verdict(report: &Report<'_>) -> String {
    let best = |by: fn(&Measured) -> f64| {
        let best = report.measured.iter().min_by(|one, other| by(one).total_cmp(&by(other)));
        best.map_or_else(String::new, |best| best.structure.name().to_owned())
    };
    let mut said = vec![format!(
        "No member was lost. Least memory: {}. Fastest lookups: {}. Fastest built: {}.",
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
        said.push(format!("Wrong more often than asked for: {}.", over.join(", ")));
    }
    match report.recommended {
        Some(recommended) if report.measured.iter().any(|measured| measured.structure == recommended) => {
            said.push("* is what `mayhap plan` recommends for these needs.".into());
        }
        Some(recommended) => {
            said.push(format!(
                "`mayhap plan` recommends {recommended} for these needs, which was not measured."
            ));
        }
        None => {}
    }
    let order = match report.bench.sort {
        Sort::Memory => "Sorted by memory (--sort lookup, build or rate for another order).",
        Sort::Lookup => "Sorted by lookups.",
        Sort::Build => "Sorted by building.",
        Sort::Rate => "Sorted by the measured rate.",
    };
    said.push(order.into());
    said.join(" ")
}

pub(super) fn smallest(report: &Report<'_>, by: impl Fn(&Measured) -> f64) -> f64 {
    report.measured.iter().map(by).fold(f64::INFINITY, f64::min)
}

fn plural(count: u64, word: &str) -> String {
    format!("{} {word}{}", say::count(count), if count == 1 { "" } else { "s" })
}

/// `0.93-1.05%`; `< 0.003%` where no answer was wrong; nothing to be unsure of where none can be.
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
