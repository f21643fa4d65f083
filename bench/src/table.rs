//! The rows as a table: absolute figures, then ratios to the best rival of the kind and to bare memory.

use std::fmt::Write;

use crate::{
    contender::Kind,
    row::{Figures, Row},
};

const COLUMNS: usize = 18;

const HEADER: [&str; COLUMNS] = [
    "filter", "bits", "/bound", "fpr %", "load", "build", "insert", "miss", "hit", "b.miss", "b.hit",
    "remove", "build", "miss", "hit", "b.miss", "b.hit", "/gather",
];

const LEGEND: &str = "\
bits: per item; /bound: over log2(1/observed rate), which makes different rates comparable; load: share of slots in use
build … remove: thread-CPU ns per item, medians (b. = batch); static filters: CPU of all threads of the build
then the ratios to the rival marked *; a batch is compared with the rival's batch, or its single calls if it has none
/gather: batch (or single) miss over the bare prefetched gather of the blocked or classic footprint
";

/// A build used several threads if its CPU time exceeds the elapsed time by this factor.
const SEVERAL_THREADS: f64 = 1.2;

/// Renders the whole table, one block per kind.
pub(crate) fn render(rows: &[Row]) -> String {
    let mut out = String::new();
    if let Some(row) = rows.first() {
        let _ = writeln!(out, "{} items, target rate {}, shape {:?}\n", row.items, row.target_fpr, row.shape);
    }
    let mut lines = vec![HEADER.map(str::to_owned)];
    for kind in Kind::FILTERS {
        let yardstick = rows.iter().find(|row| Some(row.name.as_str()) == kind.yardstick());
        let gather = gather(rows, kind);
        let mut of_kind = rows.iter().filter(|row| row.kind == kind).peekable();
        if of_kind.peek().is_some() {
            lines.push(heading(kind.name()));
        }
        lines.extend(of_kind.map(|row| cells(row, yardstick, gather)));
    }
    let mut limits = rows.iter().filter(|row| row.kind == Kind::Limit).peekable();
    if limits.peek().is_some() {
        lines.push(heading(Kind::Limit.name()));
    }
    lines.extend(limits.map(limit_cells));
    out.push_str(&aligned(&lines));
    out.push('\n');
    out.push_str(LEGEND);
    out.push_str(&notes(rows));
    out
}

/// The name of a block, alone on its line.
fn heading(name: &str) -> [String; COLUMNS] {
    let mut cells = [const { String::new() }; COLUMNS];
    cells[0] = format!("── {name}");
    cells
}

/// Notes that fit no column: builds on several threads, and rivals that lose items.
fn notes(rows: &[Row]) -> String {
    let mut out = String::new();
    for row in rows {
        let threads = ratio(row.median.build_ns, row.build_wall_ns);
        if let (Some(cpu), Some(wall), true) =
            (row.median.build_ns, row.build_wall_ns, threads.is_some_and(|of| of > SEVERAL_THREADS))
        {
            let _ = writeln!(
                out,
                "{}: built by several threads, {cpu:.1} ns of CPU in {wall:.1} ns of time per item",
                row.name
            );
        }
        if let Some(lost) = row.lost_by_removing.filter(|&lost| lost > 0) {
            let _ = writeln!(out, "{}: {lost} members lost by removing others", row.name);
        }
    }
    out
}

/// The bare gather that a filter of `kind` is compared with. The other kinds have other footprints.
fn gather(rows: &[Row], kind: Kind) -> Option<f64> {
    let name = match kind {
        Kind::Blocked | Kind::BlockedAtomic => "limit: bare prefetched gather",
        Kind::Bloom | Kind::BloomAtomic => "limit: bare prefetched gather, classic footprint",
        _ => return None,
    };
    rows.iter().find(|row| row.name == name)?.gather_ns
}

fn cells(row: &Row, yardstick: Option<&Row>, gather: Option<f64>) -> [String; COLUMNS] {
    let is_yardstick = yardstick.is_some_and(|best| best.name == row.name);
    let ns = &row.median;
    let against = |pick: fn(&Figures) -> Option<f64>| {
        // A ratio of the reference to itself is left out.
        if is_yardstick { None } else { ratio(pick(ns), yardstick.and_then(|best| pick(&best.median))) }
    };
    // A batch is compared with the fastest calls of the rival.
    let batch = |own: Option<f64>, pick: fn(&Figures) -> Option<f64>| {
        if is_yardstick { None } else { ratio(own, yardstick.and_then(|best| pick(&best.median))) }
    };
    [
        format!("{}{}", row.name, if is_yardstick { " *" } else { "" }),
        format!("{:.2}", row.bits_per_item),
        times(row.over_the_bound()),
        row.observed_fpr.map_or("-".to_owned(), percent),
        row.load.map_or("-".to_owned(), |load| format!("{load:.3}")),
        nanos(ns.build_ns),
        nanos(ns.insert_ns),
        nanos(ns.miss_ns),
        nanos(ns.hit_ns),
        nanos(ns.batch_miss_ns),
        nanos(ns.batch_hit_ns),
        nanos(ns.remove_ns),
        times(against(|figures| figures.build_ns)),
        times(against(|figures| figures.miss_ns)),
        times(against(|figures| figures.hit_ns)),
        times(batch(ns.batch_miss_ns, |best| best.batch_miss_ns.or(best.miss_ns))),
        times(batch(ns.batch_hit_ns, |best| best.batch_hit_ns.or(best.hit_ns))),
        times(ratio(ns.batch_miss_ns.or(ns.miss_ns), gather)),
    ]
}

fn limit_cells(row: &Row) -> [String; COLUMNS] {
    let mut cells = [const { String::new() }; COLUMNS];
    cells[0] = format!("{} ({:.1} MiB)", row.name, row.memory_bytes as f64 / f64::from(1 << 20));
    cells[1] = format!("{:.2}", row.bits_per_item);
    cells[7] = nanos(row.median.miss_ns);
    cells[9] = nanos(row.median.batch_miss_ns);
    cells
}

/// Three decimals, and more below a hundredth of a percent.
fn percent(fpr: f64) -> String {
    if fpr > 0.0 && fpr < 1e-4 { format!("{:.5}", fpr * 100.0) } else { format!("{:.3}", fpr * 100.0) }
}

fn ratio(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    Some(part? / whole.filter(|&whole| whole > 0.0)?)
}

fn nanos(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |ns| format!("{ns:.1}"))
}

fn times(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |times| format!("{times:.2}x"))
}

/// Aligns names to the left and figures to the right, without trailing spaces.
fn aligned(lines: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for line in lines {
        let mut text = format!("{:<width$}", line[0], width = widths[0]);
        for (cell, width) in line.iter().zip(widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::Shape;

    fn row(name: &str, kind: Kind, miss_ns: f64, batch_miss_ns: Option<f64>) -> Row {
        let median = Figures {
            build_ns: Some(miss_ns * 2.0),
            miss_ns: Some(miss_ns),
            batch_miss_ns,
            ..Figures::default()
        };
        Row {
            name: name.to_owned(),
            kind,
            ours: name.starts_with("mayhap"),
            layout: None,
            shape: Shape::U64,
            items: 1_000,
            target_fpr: 0.01,
            observed_fpr: Some(0.01),
            non_members_asked: 1,
            bits_per_item: 10.53,
            memory_bytes: 1 << 20,
            gather_ns: (kind == Kind::Limit).then_some(miss_ns),
            p10: median.clone(),
            median,
            build_mean_ns: None,
            build_wall_ns: None,
            load: None,
            false_negatives: Some(0),
            members_asked: 1,
            batch_agrees: None,
            lost_by_removing: None,
        }
    }

    fn words(table: &str, name: &str) -> Vec<String> {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}"));
        line[name.len()..].split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn ratios_are_to_the_best_rival_and_to_the_gather() {
        let rows = [
            row("mayhap BlockedBloom split256", Kind::Blocked, 4.0, Some(2.5)),
            row("sbbf-rs-safe", Kind::Blocked, 5.0, None),
            row("limit: bare prefetched gather", Kind::Limit, 2.0, Some(2.0)),
        ];
        let table = render(&rows);
        let ours = words(&table, "mayhap BlockedBloom split256");
        let expected = [
            "10.53", "1.58x", "1.000", "-", "8.0", "-", "4.0", "-", "2.5", "-", "-", "0.80x", "0.80x", "-",
            "0.50x", "-", "1.25x",
        ];
        assert_eq!(ours, expected);
        let rival = words(&table, "sbbf-rs-safe *");
        assert_eq!(rival[11..], ["-", "-", "-", "-", "-", "2.50x"], "the reference has no ratio to itself");
    }

    #[test]
    fn without_the_reference_there_are_figures_but_no_ratios() {
        let table = render(&[row("mayhap Bloom", Kind::Bloom, 4.0, Some(2.5))]);
        let ours = words(&table, "mayhap Bloom");
        assert_eq!(ours[4], "8.0");
        assert!(ours[11..].iter().all(|cell| cell == "-"));
    }

    #[test]
    fn a_block_per_kind_and_notes_below() {
        let mut built = row("mayhap BinaryFuse8", Kind::Static, 4.0, None);
        (built.build_wall_ns, built.lost_by_removing) = (Some(4.0), Some(3));
        let table = render(&[row("mayhap Bloom", Kind::Bloom, 4.0, None), built]);
        assert!(
            table.contains("\n── bloom\nmayhap Bloom") && table.contains("\n── static\nmayhap BinaryFuse8")
        );
        assert!(!table.contains("── cuckoo"), "a block without rows has no heading\n{table}");
        assert!(table.contains("8.0 ns of CPU in 4.0 ns of time"));
        assert!(table.contains("mayhap BinaryFuse8: 3 members lost by removing others"));
    }

    #[test]
    fn columns_line_up() {
        let rows =
            [row("a", Kind::Bloom, 4.0, None), row("a much longer name", Kind::Bloom, 12_345.6, Some(1.0))];
        let table = render(&rows);
        let ends: Vec<usize> = table
            .lines()
            .filter(|line| line.starts_with("filter") || line.starts_with('a'))
            .map(|line| line.chars().count())
            .take(3)
            .collect();
        // The last column is filled or dashed in every line.
        assert_eq!(ends.len(), 3);
        assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "{ends:?}\n{table}");
    }
}
