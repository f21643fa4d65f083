//! The plan as people read it.

use std::io::{self, Write};

use mayhap::advise::{Advice, Cost, Misfit, Needs, Price, say};

use super::Solved;
use crate::output::{ASIDE, BEST, HEADING, paragraph};

pub(super) fn write(
    out: &mut dyn Write,
    needs: &Needs,
    solved: Solved,
    advice: &Advice,
    width: usize,
) -> io::Result<()> {
    for line in textwrap::wrap(&title(needs, solved, advice), width) {
        writeln!(out, "{HEADING}{line}{HEADING:#}")?;
    }
    writeln!(out)?;
    paragraph(out, &advice.why.join(" "), "", width)?;
    writeln!(out)?;
    table(out, solved, advice, width)?;
    if let Some(rust) = &advice.rust {
        writeln!(out, "\n{HEADING}In Rust{HEADING:#}")?;
        rust.lines().try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    if !advice.notes.is_empty() {
        writeln!(out, "\n{HEADING}Notes{HEADING:#}")?;
        advice.notes.iter().try_for_each(|note| paragraph(out, &note.to_string(), "- ", width))?;
    }
    Ok(())
}

/// What was asked, and the number that was solved for.
fn title(needs: &Needs, solved: Solved, advice: &Advice) -> String {
    let (items, rate) = (say::items(needs.items), say::rate(needs.target_fpr));
    let solved_rate = advice.recommended().and_then(|price| Some(price.cost?.target_fpr));
    let memory = say::bytes(needs.memory_limit_bytes.unwrap_or_default());
    let exact = advice.recommended().map(|price| price.can.exact);
    match solved {
        Solved::Memory => format!("Plan for {items} at a rate of {rate}"),
        Solved::Nothing => format!("Plan for {items} at a rate of {rate} in {memory}"),
        Solved::Rate if exact == Some(true) => format!("Plan for {items} in {memory}: never wrong"),
        Solved::Rate if exact.is_none() => format!("Plan for {items} in {memory}"),
        Solved::Items if exact.is_none() => format!("Plan for a rate of {rate} in {memory}"),
        Solved::Rate => {
            let rate = solved_rate.map_or(rate, say::rate);
            format!("Plan for {items} in {memory}: a rate of {rate}")
        }
        Solved::Items => format!("Plan for a rate of {rate} in {memory}: {items}"),
    }
}

/// A column of numbers in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Bits,
    Memory,
    Lines,
    OverBound,
    Rate,
}

impl Column {
    /// Those shown where the terminal is wide enough, and the order in which they go where it is not.
    const fn shown(solved: Solved) -> ([Self; 4], [Self; 3]) {
        match solved {
            // Every structure has its own rate, so what they cost for it cannot be compared by looking.
            Solved::Rate => {
                ([Self::Bits, Self::Memory, Self::Lines, Self::Rate], [Self::Bits, Self::Lines, Self::Memory])
            }
            _ => (
                [Self::Bits, Self::Memory, Self::Lines, Self::OverBound],
                [Self::OverBound, Self::Lines, Self::Bits],
            ),
        }
    }

    /// Both lines of its heading, and how wide it is.
    const fn heading(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::Bits => ("bits/", "item", 7),
            Self::Memory => ("", "memory", 10),
            Self::Lines => ("lines per", "lookup", 9),
            Self::OverBound => ("over", "bound", 7),
            Self::Rate => ("", "rate", 9),
        }
    }

    fn of(self, cost: &Cost) -> String {
        match self {
            Self::Bits => short(cost.bits_per_item),
            Self::Memory => say::bytes(cost.memory_bytes),
            Self::Lines => format!("{}/{}", lines(cost.lines_miss), lines(cost.lines_hit)),
            Self::OverBound => format!("{}x", short(cost.over_bound)),
            Self::Rate => rate(cost.target_fpr),
        }
    }

    /// What it means, where that needs saying.
    const fn legend(self) -> &'static str {
        match self {
            Self::Lines => "Lines per lookup: to answer no / mayhap. ",
            Self::OverBound => "Over bound: times log2(1/rate) bits an item, the least a filter can take. ",
            Self::Rate => "Rate: the lowest it reaches in this memory. ",
            Self::Bits | Self::Memory => "",
        }
    }
}

/// Columns of the mark and the name, and of what it can do, with the space on both sides of it.
const NAME_WIDTH: usize = 21;
const CAN_WIDTH: usize = 9;
/// Room for the longest verdict in few words.
const VERDICT_WIDTH: usize = 17;

fn table(out: &mut dyn Write, solved: Solved, advice: &Advice, width: usize) -> io::Result<()> {
    let (shown, mut leave) = (Column::shown(solved).0.to_vec(), Column::shown(solved).1.into_iter());
    let mut columns = shown;
    let taken = |columns: &[Column]| {
        columns.iter().map(|column| column.heading().2).sum::<usize>() + NAME_WIDTH + CAN_WIDTH
    };
    while taken(&columns) + VERDICT_WIDTH > width
        && let Some(next) = leave.next()
    {
        columns.retain(|column| *column != next);
    }
    let room = width.saturating_sub(taken(&columns));
    let row = |name: &str, number: &dyn Fn(Column) -> String, can: &str, verdict: &str| {
        let numbers: String =
            columns.iter().map(|&column| format!("{:>1$}", number(column), column.heading().2)).collect();
        format!("{name:<NAME_WIDTH$}{numbers}  {can:<5}  {verdict}").trim_end().to_owned()
    };
    let above = row("", &|column| column.heading().0.into(), "", "");
    let heading = row("  kind", &|column| column.heading().1.into(), "can", "verdict");
    for line in [above, heading].iter().filter(|line| !line.is_empty()) {
        writeln!(out, "{HEADING}{line}{HEADING:#}")?;
    }
    for price in &advice.prices {
        let best = advice.recommended() == Some(price);
        let style = match () {
            () if best => BEST,
            () if price.suits() => anstyle::Style::new(),
            () => ASIDE,
        };
        let mark = if best { '*' } else { ' ' };
        let uncertain = if price.can.certain_no { "" } else { "?" };
        let name = format!("{mark} {}{uncertain}", price.structure.name());
        let number = |column: Column| price.cost.as_ref().map_or_else(|| "-".into(), |cost| column.of(cost));
        let verdict = if best { "recommended".to_owned() } else { verdict(price, room) };
        writeln!(out, "{style}{}{style:#}", row(&name, &number, &abilities(price), &verdict))?;
    }
    let legend: String = columns.iter().map(|column| column.legend()).collect();
    paragraph(
        out,
        &format!(
            "{legend}Can: d delete, g grow, m merge, e be exact, t be shared by threads without a lock. \
             ?: after a removal its no may be wrong, and it merges no more."
        ),
        "",
        width,
    )
}

/// A rate in few columns: `0.917%`, `1.23e-6`.
fn rate(rate: f64) -> String {
    let said = say::rate(rate);
    if said.len() < 9 {
        return said;
    }
    let digits = format!("{rate:.2e}");
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
}

/// Three or four digits.
fn short(number: f64) -> String {
    match number {
        _ if number < 10.0 => format!("{number:.2}"),
        _ if number < 100.0 => format!("{number:.1}"),
        _ if number < 10_000.0 => format!("{number:.0}"),
        _ => format!("{number:.0e}"),
    }
}

/// `1` for a line, `3.4` for more or less three of them.
fn lines(lines: f64) -> String {
    let text = format!("{lines:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// `d g m e t`, each a dash where it cannot.
fn abilities(price: &Price) -> String {
    let can = &price.can;
    let letters =
        [(can.deletes, 'd'), (can.grows, 'g'), (can.merges, 'm'), (can.exact, 'e'), (can.threads, 't')];
    letters.map(|(able, letter)| if able { letter } else { '-' }).iter().collect()
}

/// Why not; in few words where there is little room, and in fewer where even those are too many.
fn verdict(price: &Price, room: usize) -> String {
    if price.suits() {
        return "suits".into();
    }
    let long: Vec<String> = price.misfits.iter().map(ToString::to_string).collect();
    let brief: Vec<&str> = price.misfits.iter().map(few_words).collect();
    let cut = (1..brief.len()).rev().map(|kept| format!("{}, …", brief[..kept].join(", ")));
    [long.join(", "), brief.join(", ")]
        .into_iter()
        .chain(cut)
        .find(|verdict| verdict.chars().count() <= room)
        .unwrap_or_else(|| brief[0].into())
}

fn few_words(misfit: &Misfit) -> &'static str {
    match misfit {
        Misfit::NeedsAllAtOnce => "only for --static",
        Misfit::NeedsRange => "needs --range",
        Misfit::OverMemory { .. } => "too large",
        Misfit::OnlyForRemovals => "for --deletes",
        Misfit::WearsOut => "removals fill it",
        Misfit::WrongTooOften { .. } => "wrong too often",
        Misfit::CannotDelete => "cannot delete",
        Misfit::CannotGrow => "cannot grow",
        Misfit::GrowsToALimit => "grows to a limit",
        Misfit::NeverForgets => "never forgets",
        Misfit::ForgetsOldItems => "for --window",
        _ => "cannot be built",
    }
}
