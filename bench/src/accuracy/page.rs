//! The table as a page of Markdown, and as lines while it is being made.

use std::fmt::Write as _;

use super::subject::SUBJECTS;
use super::{ALPHA, Cell, MODEL_ERROR};

/// One cell on one line.
pub(crate) fn line(cell: &Cell) -> String {
    format!(
        "{:32} {:>10} items at {:>7}: observed {:.4e}, expected {:.4e} ({:+.1} sigma), {:.2} bits{}",
        cell.name,
        cell.items,
        rate(cell.promised),
        cell.observed(),
        cell.expected,
        cell.sigmas(),
        cell.bits_per_item,
        if cell.passes() { "" } else { "  NOT AS PROMISED" },
    )
}

/// The whole page; of kinds without cells it has the rows that were on the page before.
pub(crate) fn render(cells: &[Cell], before: &str) -> String {
    let mut page = String::from(
        "# Accuracy\n\n\
         Printed by `just accuracy`; not edited by hand. Everything is seeded: another run gives the same table.\n\n",
    );
    let _ = write!(
        page,
        "Each filter is filled to its capacity and asked about non-members (four filters, small ones up to 500, averaged). \
         *Expected* is the model's rate at capacity, *observed* the share of non-members answered *maybe*, *over* the bits per item over \
         log2(1/promised). *As promised* means: observed lies inside the two-sided binomial band (one in {:.0e} a side, model error {} %) \
         around expected; it is not above the promise by more than chance; and the same filter with a tenth too many items is rejected \
         by such a band, or one made of fingerprints refuses half too many (filters that grow, forget, or are built whole have no such twin). \
         Filters of fixed width are asked at the rate they have. A window is as full as it ever gets, and its bits are per item of the window.\n\n",
        1.0 / ALPHA,
        MODEL_ERROR * 100.0,
    );
    page.push_str("| filter | items | promised | expected | observed | of promised | wrong answers | bits per item | over | as promised |\n");
    page.push_str("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n");
    for subject in &SUBJECTS {
        rows(&mut page, subject.name, cells, before);
    }
    page
}

fn rows(page: &mut String, name: &str, cells: &[Cell], before: &str) {
    if !cells.iter().any(|cell| cell.name == name) {
        let beginning = format!("| {name} | ");
        for row in before.lines().filter(|row| row.starts_with(&beginning)) {
            let _ = writeln!(page, "{row}");
        }
    }
    for cell in cells.iter().filter(|cell| cell.name == name) {
        let _ = writeln!(
            page,
            "| {} | {:.0e} | {} | {:.4e} | {:.4e} | {:.3} | {} of {:.0e} | {:.2} | {:.2} x | {} |",
            cell.name,
            cell.items as f64,
            rate(cell.promised),
            cell.expected,
            cell.observed(),
            cell.observed() / cell.promised,
            cell.wrong,
            cell.trials as f64,
            cell.bits_per_item,
            cell.bits_per_item / -cell.promised.log2(),
            verdict(cell),
        );
    }
}

fn verdict(cell: &Cell) -> &'static str {
    match (cell.as_expected, cell.kept, cell.overfull_rejected) {
        (false, _, _) => "**no: not as the model expects**",
        (_, false, _) => "**no: above the promise**",
        (_, _, Some(false)) => "**no: too full goes unnoticed**",
        _ => "yes",
    }
}

fn rate(rate: f64) -> String {
    let power = -rate.log2();
    match rate {
        _ if power.fract() == 0.0 => format!("2^-{power}"),
        _ if rate >= 1e-4 => format!("{} %", rate * 100.0),
        _ => format!("{rate:e}"),
    }
}
