//! The description as people read it.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use mayhap::advise::say;

use super::facts::{Facts, Part};
use super::parquet::Columns;
use crate::output::{self, ASIDE, HEADING};

/// What should be looked at.
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Columns of the names in front.
const NAMES: usize = 15;

pub(super) fn write(out: &mut dyn Write, facts: &Facts, width: usize) -> io::Result<()> {
    writeln!(out, "{HEADING}{}{HEADING:#}", facts.file)?;
    let mut line =
        |name: &str, text: String| output::paragraph(out, &text, &format!("  {name:<NAMES$}"), width);
    line("kind", format!("{}: {}", facts.kind, facts.shape))?;
    line(
        "format",
        match facts.format {
            "mayhap" => "mayhap".to_owned(),
            format => format!("{format}, placed as {}", facts.placement),
        },
    )?;
    line("hash", facts.hash.clone())?;
    line("items", items(facts))?;
    if let (Some(capacity), Some(rate)) = (facts.capacity, facts.target_fpr) {
        line(
            "made for",
            match rate {
                rate if rate > 0.0 => format!("{} at a rate of {}", say::items(capacity), say::rate(rate)),
                _ => format!("{} numbers, never wrong", say::count(capacity)),
            },
        )?;
    } else if facts.inserted_unknown {
        line("made for", "the file does not say".into())?;
    }
    line("holds", holds(facts))?;
    if facts.target_fpr != Some(0.0) {
        line("wrong now", wrong(facts))?;
    }
    match (facts.fill, facts.fill_of) {
        (Some(fill), Some(of)) => {
            let speaks =
                facts.estimated_items.map(|items| format!(", which speaks of about {}", say::items(items)));
            line("fill", format!("{:.1}% of the {of}{}", fill * 100.0, speaks.unwrap_or_default()))?;
        }
        _ if facts.fill_not_counted => {
            let what = format!("not counted in {}; --fill reads all of it", say::bytes(facts.memory_bytes));
            line("fill", what)?;
        }
        _ => {}
    }
    let sizes = (say::bytes(facts.file_bytes), say::bytes(facts.memory_bytes));
    line("size", format!("{} in the file, {} in memory", sizes.0, sizes.1))?;
    if let Some(said) = bits(facts) {
        line("bits per item", said)?;
    }
    line("can", facts.can.said())?;
    parts(out, "layer", &facts.layers)?;
    parts(out, "generation", &facts.generations)?;
    for warning in &facts.warnings {
        write!(out, "  {WARNING}warning{WARNING:#}{}", " ".repeat(NAMES - "warning".len()))?;
        let first = " ".repeat(2 + NAMES);
        let mut lines = Vec::new();
        output::paragraph(&mut lines, warning, &first, width)?;
        out.write_all(&lines[first.len()..])?;
    }
    Ok(())
}

fn items(facts: &Facts) -> String {
    match (facts.items_as, facts.items_as_unknown) {
        (_, true) => "the file does not say how items became bytes: `check` needs --items-as".into(),
        (Some(encoding), _) => format!("as {encoding}"),
        (None, _) if facts.kind == "bitmap" => "decimal numbers".into(),
        (None, _) => "bytes as they are".into(),
    }
}

fn holds(facts: &Facts) -> String {
    match facts.inserted {
        None if facts.inserted_unknown => match facts.estimated_items {
            Some(items) => format!("about {} by its bits: the file has no count", say::items(items)),
            None => "the file has no count".into(),
        },
        None => "not counted; --fill reads all of it".into(),
        Some(inserted) => match facts.capacity {
            Some(0) => say::items(inserted),
            None => format!("{} by its own count", say::items(inserted)),
            Some(capacity) => {
                let share = inserted as f64 / capacity as f64;
                format!("{} by its own count ({})", say::items(inserted), percent(share))
            }
        },
    }
}

/// A share that may be many times the whole.
fn percent(share: f64) -> String {
    if share >= 10.0 { format!("{share:.1} times") } else { format!("{:.1}%", share * 100.0) }
}

fn wrong(facts: &Facts) -> String {
    if facts.inserted_unknown {
        let rate = facts.fpr_from_fill.unwrap_or(facts.expected_fpr);
        return format!("{}, by the bits", say::rate(rate));
    }
    let counted = match say::rate(facts.expected_fpr) {
        rate if rate.ends_with('%') => format!("{rate} of the non-members, by the count"),
        rate if facts.expected_fpr > 0.0 => format!("{rate} non-members, by the count"),
        rate => format!("{rate}, by the count"),
    };
    match facts.fpr_from_fill {
        Some(rate) if rate > 0.0 => format!("{counted}; {}, by the bits", say::rate(rate)),
        _ => counted,
    }
}

fn bits(facts: &Facts) -> Option<String> {
    let now = facts.bits_per_inserted.map(|now| format!("{now:.2}"));
    let Some(when_full) = facts.bits_per_item else { return now.map(|now| format!("{now} now")) };
    if facts.capacity == Some(0) {
        return None;
    }
    let full = format!("{when_full:.2}");
    let mut said = format!("{full} when full");
    if let Some(bound) = facts.bound_bits_per_item {
        let times = when_full / bound;
        said += &format!(", {times:.2} times the {bound:.2} that no filter of that rate can do without");
    }
    if let Some(now) = now.filter(|now| *now != full) {
        said += &format!("; {now} now");
    }
    Some(said)
}

fn parts(out: &mut dyn Write, name: &str, parts: &[Part]) -> io::Result<()> {
    if parts.is_empty() {
        return Ok(());
    }
    writeln!(out, "  {ASIDE}{name:<NAMES$}{:>16} {:>16}  wrong now{ASIDE:#}", "made for", "holds")?;
    for (index, part) in parts.iter().enumerate() {
        let (capacity, inserted) = (say::count(part.capacity), say::count(part.inserted));
        let rate = say::rate(part.expected_fpr);
        writeln!(out, "  {:<NAMES$}{capacity:>16} {inserted:>16}  {rate}", index + 1)?;
    }
    Ok(())
}

pub(super) fn write_columns(out: &mut dyn Write, columns: &Columns) -> io::Result<()> {
    writeln!(out, "{HEADING}{}{HEADING:#}", columns.file)?;
    let (groups, filters) = (columns.row_groups, columns.columns.len());
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    writeln!(out, "  Parquet, {}, {}", plural(groups, "row group"), plural(filters, "filter"))?;
    let Some(first) = columns.columns.first() else { return Ok(()) };
    let wide = columns.columns.iter().map(|column| column.column.chars().count()).max().unwrap_or(0).max(6);
    writeln!(
        out,
        "  {ASIDE}{:>9}  {:<wide$}  {:<20}  {:<9}  {:>9}{ASIDE:#}",
        "row group", "column", "type", "items as", "size"
    )?;
    for column in &columns.columns {
        let size = column.bytes.map_or_else(|| "?".into(), |bytes| say::bytes(bytes.into()));
        writeln!(
            out,
            "  {:>9}  {:<wide$}  {:<20}  {:<9}  {size:>9}",
            column.row_group, column.column, column.physical_type, column.items_as
        )?;
    }
    writeln!(
        out,
        "  one of them: mayhap info {} --column {} --row-group {}",
        columns.file, first.column, first.row_group
    )
}
