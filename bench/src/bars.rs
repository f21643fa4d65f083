//! The bars: the goals of the project, judged on the rows of one run, so that no ratio is computed by hand.

use std::fmt::Write;

use serde::Serialize;

use crate::row::{Figures, Row};

/// One goal, and the result of the run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Bar {
    /// What is compared.
    pub(crate) bar: &'static str,
    pub(crate) measured: f64,
    #[serde(flatten)]
    pub(crate) aim: Aim,
    pub(crate) met: bool,
}

/// Which side of the bar is good.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Aim {
    AtMost(f64),
    AtLeast(f64),
}

impl Aim {
    fn is_met_by(self, measured: f64) -> bool {
        match self {
            Aim::AtMost(limit) => measured <= limit,
            Aim::AtLeast(limit) => measured >= limit,
        }
    }
}

const FUSE: &str = "mayhap BinaryFuse8";
const FUSE_RIVAL: &str = "jdb_xorf Bf8";
const CUCKOO: &str = "mayhap Cuckoo 12-bit";
const CUCKOO_RIVAL: &str = "autoscale_cuckoo_filter 12-bit";
const CUCKOO_RIVAL_FOLDED: &str = "autoscale_cuckoo_filter+foldhash 12-bit";
const SEMI_SORTED: &str = "mayhap Cuckoo 12-bit semi-sorted";
const RIBBON: &str = "mayhap Ribbon 8-bit";
const QUOTIENT: &str = "mayhap Quotient at qfilter's rate";
const GROWN: &str = "mayhap Growing (n/2^20)";
const BUILT: &str = "mayhap Growing (built for n)";

const RIBBON_BITS: f64 = 8.0;

/// Returns every bar whose rows are present.
pub(crate) fn bars(rows: &[Row]) -> Vec<Bar> {
    let judged = Rows(rows);
    let bars = [
        ("Cuckoo 12-bit: build of autoscale's", judged.build(CUCKOO, CUCKOO_RIVAL), Aim::AtMost(0.6)),
        ("Cuckoo 12-bit: lookup of autoscale's", judged.lookup(CUCKOO, CUCKOO_RIVAL), Aim::AtMost(0.25)),
        (
            "Cuckoo 12-bit: build of autoscale's with foldhash",
            judged.build(CUCKOO, CUCKOO_RIVAL_FOLDED),
            Aim::AtMost(0.6),
        ),
        (
            "Cuckoo 12-bit: lookup of autoscale's with foldhash",
            judged.lookup(CUCKOO, CUCKOO_RIVAL_FOLDED),
            Aim::AtMost(0.25),
        ),
        ("Cuckoo 12-bit: load", judged.row(CUCKOO).and_then(|row| row.load), Aim::AtLeast(0.95)),
        (
            "Cuckoo semi-sorted: bits saved per item",
            judged.bits_saved(SEMI_SORTED, CUCKOO),
            Aim::AtLeast(1.0),
        ),
        ("BinaryFuse8: build of jdb_xorf's", judged.build(FUSE, FUSE_RIVAL), Aim::AtMost(1.0)),
        ("BinaryFuse8: lookup of jdb_xorf's", judged.lookup(FUSE, FUSE_RIVAL), Aim::AtMost(1.0)),
        ("BinaryFuse8: batch lookup of jdb_xorf's", judged.batch_lookup(FUSE, FUSE_RIVAL), Aim::AtMost(1.0)),
        ("BinaryFuse8: bits per item", judged.bits(FUSE), Aim::AtMost(9.05)),
        ("Ribbon 8-bit: bits over 8", judged.bits(RIBBON).map(|bits| bits / RIBBON_BITS), Aim::AtMost(1.005)),
        ("Ribbon 8-bit: build of BinaryFuse8's", judged.build(RIBBON, FUSE), Aim::AtMost(4.0)),
        ("Ribbon 8-bit: lookup of BinaryFuse8's", judged.lookup(RIBBON, FUSE), Aim::AtMost(4.0)),
        ("Quotient: bits of qfilter's, same rate", judged.size(QUOTIENT, "qfilter"), Aim::AtMost(0.6)),
        ("Quotient: lookup of qfilter's", judged.lookup(QUOTIENT, "qfilter"), Aim::AtMost(1.3)),
        ("Quotient: load, at least", judged.row(QUOTIENT).and_then(|row| row.load), Aim::AtLeast(0.90)),
        (
            "DLeft: bits of CountingBloom's, same rate",
            judged.size("mayhap DLeft", "mayhap CountingBloom"),
            Aim::AtMost(0.55),
        ),
        ("Growing, started tiny: rate of the promise", judged.rate(GROWN), Aim::AtMost(1.0)),
        (
            "Growing, started tiny: lookup of one built so large",
            judged.lookup(GROWN, BUILT),
            Aim::AtMost(2.0),
        ),
    ];
    let judge = |(bar, measured, aim): (_, Option<f64>, Aim)| {
        measured.map(|measured| Bar { bar, measured, aim, met: aim.is_met_by(measured) })
    };
    bars.into_iter().filter_map(judge).collect()
}

/// Renders the block at the end of the table.
pub(crate) fn render(bars: &[Bar]) -> String {
    let mut out = String::new();
    if !bars.is_empty() {
        let _ = writeln!(out, "\n{:<52} {:>9}  {:>9}", "bars", "measured", "bar");
    }
    for bar in bars {
        let aim = match bar.aim {
            Aim::AtMost(limit) => format!("≤ {limit}"),
            Aim::AtLeast(limit) => format!("≥ {limit}"),
        };
        let verdict = if bar.met { "met" } else { "MISSED" };
        let _ = writeln!(out, "{:<52} {:>9.3}  {aim:>9}  {verdict}", bar.bar, bar.measured);
    }
    out
}

struct Rows<'a>(&'a [Row]);

impl Rows<'_> {
    fn row(&self, name: &str) -> Option<&Row> {
        self.0.iter().find(|row| row.name == name)
    }

    fn ratio(&self, part: &str, whole: &str, pick: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
        Some(pick(self.row(part)?)? / pick(self.row(whole)?).filter(|&whole| whole > 0.0)?)
    }

    fn build(&self, part: &str, whole: &str) -> Option<f64> {
        self.ratio(part, whole, |row| row.median.build_ns)
    }

    /// The larger of the ratios for non-members and members, which count the same.
    fn lookup(&self, part: &str, whole: &str) -> Option<f64> {
        self.worse(part, whole, |ns| ns.miss_ns, |ns| ns.hit_ns)
    }

    fn batch_lookup(&self, part: &str, whole: &str) -> Option<f64> {
        self.worse(part, whole, |ns| ns.batch_miss_ns, |ns| ns.batch_hit_ns)
    }

    fn worse(
        &self,
        part: &str,
        whole: &str,
        miss: fn(&Figures) -> Option<f64>,
        hit: fn(&Figures) -> Option<f64>,
    ) -> Option<f64> {
        let miss = self.ratio(part, whole, |row| miss(&row.median))?;
        Some(miss.max(self.ratio(part, whole, |row| hit(&row.median))?))
    }

    fn bits(&self, name: &str) -> Option<f64> {
        Some(self.row(name)?.bits_per_item)
    }

    fn bits_saved(&self, part: &str, whole: &str) -> Option<f64> {
        Some(self.bits(whole)? - self.bits(part)?)
    }

    /// The ratio of the sizes of two filters as if both had the same rate: the observed rates differ a little, so each size is divided by log2 of its
    /// own rate.
    fn size(&self, part: &str, whole: &str) -> Option<f64> {
        self.ratio(part, whole, Row::over_the_bound)
    }

    /// The observed rate divided by the promised one.
    fn rate(&self, name: &str) -> Option<f64> {
        let row = self.row(name)?;
        Some(row.observed_fpr? / row.target_fpr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{contender::Kind, items::Shape};

    fn row(name: &str, build_ns: f64, miss_ns: f64, hit_ns: f64, bits_per_item: f64) -> Row {
        let median = Figures {
            build_ns: Some(build_ns),
            miss_ns: Some(miss_ns),
            hit_ns: Some(hit_ns),
            ..Figures::default()
        };
        Row {
            name: name.to_owned(),
            kind: Kind::Static,
            ours: true,
            layout: None,
            shape: Shape::U64,
            items: 1_000,
            target_fpr: 0.01,
            observed_fpr: Some(0.005),
            non_members_asked: 1,
            bits_per_item,
            memory_bytes: 1,
            p10: median.clone(),
            median,
            build_mean_ns: None,
            build_wall_ns: None,
            load: None,
            gather_ns: None,
            false_negatives: Some(0),
            members_asked: 1,
            batch_agrees: None,
            lost_by_removing: None,
        }
    }

    fn found<'a>(bars: &'a [Bar], part: &str) -> &'a Bar {
        bars.iter().find(|bar| bar.bar.contains(part)).unwrap_or_else(|| panic!("no bar {part}"))
    }

    #[test]
    fn a_bar_is_the_worse_of_two_ratios_and_tells_whether_it_is_met() {
        let bars = bars(&[row(FUSE, 40.0, 5.0, 6.0, 9.06), row(FUSE_RIVAL, 50.0, 5.5, 5.0, 9.04)]);
        assert_eq!(bars.len(), 3, "bars without rows or batch figures must be left out");
        assert!(found(&bars, "8: build").met && found(&bars, "8: build").measured == 0.8);
        assert_eq!(found(&bars, "8: lookup").measured, 1.2);
        assert!(!found(&bars, "8: lookup").met && !found(&bars, "bits per item").met);
        let block = render(&bars);
        assert!(
            block.contains("0.800        ≤ 1  met") && block.contains("1.200        ≤ 1  MISSED"),
            "{block}"
        );
    }

    #[test]
    fn sizes_are_compared_at_equal_rates() {
        let mut qfilter = row("qfilter", 1.0, 1.0, 1.0, 20.0);
        qfilter.observed_fpr = Some(0.005_f64.powi(2)); // the squared rate justifies twice the bits
        let bars = bars(&[row(QUOTIENT, 1.0, 1.0, 1.0, 10.0), qfilter]);
        assert!((found(&bars, "bits of qfilter's").measured - 1.0).abs() < 1e-9);
    }

    #[test]
    fn without_rows_there_are_no_bars() {
        assert!(bars(&[]).is_empty() && render(&[]).is_empty());
    }
}
