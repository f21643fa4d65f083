//! The plan as text.

use std::io::{self, Write};

use mayhap::say;
use mayhap_advise::{
    Advice, Cost, Needs, NoReserve, Price, Unsuitable, build_line, mayhap_reserve, redis_reserve,
};

use super::{Solved, circumstances, title};
use crate::output::{ASIDE, BEST, HEADING, paragraph};

pub(super) fn write(
    out: &mut dyn Write,
    needs: &Needs,
    solved: Solved,
    advice: &Advice,
    without_file: Option<&Advice>,
    width: usize,
) -> io::Result<()> {
    for line in textwrap::wrap(&title(needs, solved, advice), width) {
        writeln!(out, "{HEADING}{line}{HEADING:#}")?;
    }
    let circumstances = circumstances(needs);
    if !circumstances.is_empty() {
        paragraph(out, &format!("({})", circumstances.join(", ")), "", width)?;
    }
    writeln!(out)?;
    paragraph(out, &advice.why.join(" "), "", width)?;
    writeln!(out)?;
    table(out, solved, advice, width)?;
    creation(out, needs, advice, width)?;
    let mut notes: Vec<String> = advice.notes.iter().map(ToString::to_string).collect();
    notes.extend(
        without_file
            .map(|other| format!("In a program of your own, without a file: {}", other.why.join(" "))),
    );
    if !notes.is_empty() {
        writeln!(out, "\n{HEADING}Notes{HEADING:#}")?;
        notes.iter().try_for_each(|note| paragraph(out, note, "- ", width))?;
    }
    short_advice(out, needs, advice, width)
}

/// The advice again, for readers who see only the end of a long answer.
fn short_advice(out: &mut dyn Write, needs: &Needs, advice: &Advice, width: usize) -> io::Result<()> {
    let Some(first) = advice.why.first() else { return Ok(()) };
    writeln!(out, "\n{HEADING}In short{HEADING:#}")?;
    paragraph(out, first, "", width)?;
    match advice.recommended().and_then(|best| build_line(best.structure, &best.sized(needs))) {
        Some(line) => writeln!(out, "  {line}"),
        None => Ok(()),
    }
}

/// The lines that create the recommended structure, or the nearest one, in the shell, in Rust and in Redis.
fn creation(out: &mut dyn Write, needs: &Needs, advice: &Advice, width: usize) -> io::Result<()> {
    let Some(best) = advice.recommended() else { return Ok(()) };
    let heading = |out: &mut dyn Write, text: &str| writeln!(out, "\n{HEADING}{text}{HEADING:#}");
    let suiting = || advice.prices.iter().filter(|price| price.suits());
    let by_build = |price: &Price| build_line(price.structure, &price.sized(needs));
    if let Some((price, line)) = suiting().find_map(|price| Some((price, by_build(price)?))) {
        heading(out, "In the shell")?;
        writeln!(out, "  {line}")?;
        if price != best {
            paragraph(
                out,
                &format!("A {} cannot be stored in a file; this is {}.", best.structure, brief(price)),
                "  # ",
                width,
            )?;
        }
    }
    if needs.probes.is_some() && suiting().all(|price| by_build(price).is_none()) {
        heading(out, "In the shell")?;
        paragraph(out, "None: `mayhap build` uses the optimal number of probes.", "  # ", width)?;
    }
    if let Some(rust) = &advice.rust {
        heading(out, "In Rust")?;
        rust.lines().try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    // Redis has its own bitmaps and sets.
    if best.structure.is_filter() {
        heading(out, "In Redis, with RedisBloom")?;
        let in_redis = |price: &Price| redis_reserve(price.structure, &price.sized(needs));
        match suiting().find_map(|price| Some((price, in_redis(price).ok()?))) {
            Some((price, reserve)) => {
                writeln!(out, "  {}", reserve.line)?;
                let (bytes, rate) = (say::bytes(reserve.memory_bytes), say::rate(reserve.expected_fpr));
                let instead = match price == best {
                    true => String::new(),
                    false => format!("It has no {}; this is a {}. ", best.structure, price.structure),
                };
                let grows = if price.can.grows && !price.can.refuses { " before it grows" } else { "" };
                paragraph(out, &format!("{instead}{bytes}, FPR {rate}{grows}."), "  # ", width)?;
            }
            None => {
                // Prefer the reason of a structure that suits over "the best kind does not exist there".
                let reasons = || suiting().filter_map(|price| in_redis(price).err());
                let specific = reasons().find(|reason| !matches!(reason, NoReserve::OtherKind { .. }));
                if let Some(reason) = specific.or_else(|| reasons().next()) {
                    paragraph(out, &format!("None: {reason}."), "  # ", width)?;
                }
            }
        }
    }
    if let Some(line) = mayhap_reserve(best.structure, &best.sized(needs)) {
        heading(out, "With `mayhap serve`")?;
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// `bloom, 1.14 MiB`.
fn brief(price: &Price) -> String {
    let bytes = price.cost.map_or_else(String::new, |cost| format!(", {}", say::bytes(cost.memory_bytes)));
    format!("{}{bytes}", price.structure)
}

/// A column of numbers in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Bits,
    Memory,
    Lines,
    OverBound,
    Rate,
    Items,
}

impl Column {
    /// The columns of a wide terminal, and the order in which they are dropped on a narrow one.
    const fn shown(solved: Solved) -> ([Self; 4], [Self; 3]) {
        match () {
            // Every structure has its own rate, so the bits for it cannot be compared.
            () if solved.is_rate_of_each() => {
                ([Self::Bits, Self::Memory, Self::Lines, Self::Rate], [Self::Bits, Self::Lines, Self::Memory])
            }
            // All of them fill the memory.
            () if solved.is_items_of_each() => (
                [Self::Bits, Self::Items, Self::Lines, Self::OverBound],
                [Self::OverBound, Self::Lines, Self::Bits],
            ),
            () => (
                [Self::Bits, Self::Memory, Self::Lines, Self::OverBound],
                [Self::OverBound, Self::Lines, Self::Bits],
            ),
        }
    }

    /// Both lines of its heading, and its width.
    const fn heading(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::Bits => ("bits/", "item", 7),
            Self::Memory => ("", "memory", 10),
            Self::Lines => ("lines per", "lookup", 9),
            Self::OverBound => ("over", "bound", 7),
            Self::Rate => ("", "FPR", 9),
            Self::Items => ("", "items", 14),
        }
    }

    fn of(self, cost: &Cost) -> String {
        match self {
            Self::Bits => short(cost.bits_per_item),
            Self::Memory => say::bytes(cost.memory_bytes),
            Self::Lines => format!("{}/{}", lines(cost.lines_miss), lines(cost.lines_hit)),
            Self::OverBound => format!("{}x", short(cost.over_bound)),
            Self::Rate => rate(cost.target_fpr),
            Self::Items => items(cost.items),
        }
    }

    /// An explanation, if the heading needs one.
    const fn legend(self) -> &'static str {
        match self {
            Self::Lines => "Lines per lookup: cache lines read to answer no / maybe. ",
            Self::OverBound => "Over bound: bits per item ÷ log2(1/FPR), the minimum for any filter. ",
            Self::Rate => "FPR: the lowest in this memory. ",
            Self::Items => "Items: the most in this memory at this FPR. ",
            Self::Bits | Self::Memory => "",
        }
    }
}

/// The width of the mark and the name, and of the abilities with the space on both sides.
const NAME_WIDTH: usize = 21;
const CAN_WIDTH: usize = 9;
/// The width of the longest short verdict.
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
            "{legend}Can: d delete, g grow, m merge, e exact, t lock-free use by threads. \
             ?: after a removal a no may be wrong, and the filter can no longer be merged."
        ),
        "",
        width,
    )
}

/// A rate in few columns: `0.917%`, `1.23e-6`.
fn rate(rate: f64) -> String {
    let text = say::rate(rate);
    if text.len() < 9 {
        return text;
    }
    let digits = format!("{rate:.2e}");
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
}

/// A number of items in few columns: `1,243,846`, `4.40e12`.
fn items(items: u64) -> String {
    let text = say::count(items);
    if text.len() < 14 { text } else { format!("{:.2e}", items as f64) }
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

/// `1` for one line, `3.4` for about three.
fn lines(lines: f64) -> String {
    let text = format!("{lines:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// `dgmet`, with a dash for each missing ability.
fn abilities(price: &Price) -> String {
    let can = &price.can;
    let letters =
        [(can.deletes, 'd'), (can.grows, 'g'), (can.merges, 'm'), (can.exact, 'e'), (can.threads, 't')];
    letters.map(|(able, letter)| if able { letter } else { '-' }).iter().collect()
}

/// Why a structure does not suit: in full if there is room, else in a few words, else only the first reasons.
fn verdict(price: &Price, room: usize) -> String {
    if price.suits() {
        return "suits".into();
    }
    let long: Vec<String> = price.unsuitable.iter().map(ToString::to_string).collect();
    let brief: Vec<&str> = price.unsuitable.iter().map(few_words).collect();
    let cut = (1..brief.len()).rev().map(|kept| format!("{}, …", brief[..kept].join(", ")));
    [long.join(", "), brief.join(", ")]
        .into_iter()
        .chain(cut)
        .find(|verdict| verdict.chars().count() <= room)
        .unwrap_or_else(|| brief[0].into())
}

fn few_words(reason: &Unsuitable) -> &'static str {
    match reason {
        Unsuitable::NeedsAllAtOnce => "only for --static",
        Unsuitable::NeedsRange => "needs --range",
        Unsuitable::OverMemory { .. } => "too large",
        Unsuitable::OnlyForRemovals => "for --deletes",
        Unsuitable::WearsOut => "removals fill it",
        Unsuitable::WrongTooOften { .. } => "FPR too high",
        Unsuitable::CannotDelete => "cannot delete",
        Unsuitable::CannotGrow => "cannot grow",
        Unsuitable::GrowsToALimit => "grows to a limit",
        Unsuitable::NeverForgets => "never forgets",
        Unsuitable::ForgetsOldItems => "for --window",
        Unsuitable::NoProbesToChoose => "no --probes",
        Unsuitable::NoFile => "no file",
        _ => "cannot be built",
    }
}
