//! The description of a filter file as text.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use mayhap::say;

use super::facts::{Facts, FilterPart};
use super::parquet::ParquetColumns;
use crate::output::{self, ASIDE, HEADING};

/// The style of the word `warning`.
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Columns that the names of the lines take.
const NAMES: usize = 15;

pub(super) fn write(out: &mut dyn Write, facts: &Facts, width: usize) -> io::Result<()> {
    writeln!(out, "{HEADING}{}{HEADING:#}", facts.file)?;
    let mut line = |name: &str, text: &str| output::paragraph(out, text, &format!("  {name:<NAMES$}"), width);
    for (name, text) in facts.figures().lines() {
        line(name, &text)?;
    }
    line("can", &facts.can.described())?;
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

fn parts(out: &mut dyn Write, name: &str, parts: &[FilterPart]) -> io::Result<()> {
    if parts.is_empty() {
        return Ok(());
    }
    writeln!(out, "  {ASIDE}{name:<NAMES$}{:>16} {:>16}  FPR now{ASIDE:#}", "capacity", "inserted")?;
    for (index, part) in parts.iter().enumerate() {
        let (capacity, inserted) = (say::count(part.capacity), say::count(part.inserted));
        let rate = say::rate(part.expected_fpr);
        writeln!(out, "  {:<NAMES$}{capacity:>16} {inserted:>16}  {rate}", index + 1)?;
    }
    Ok(())
}

pub(super) fn write_columns(out: &mut dyn Write, columns: &ParquetColumns) -> io::Result<()> {
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
        "  describe one: mayhap info {} --column {} --row-group {}",
        columns.file, first.column, first.row_group
    )
}
