//! The report that `uniq` prints at the end.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use mayhap::say;
use serde::Serialize;

use super::Uniq;
use super::count::Counts;
use super::loss::{CONFIDENCE, Loss};
use super::memory::Memory;
use super::state::State;
use crate::error::CliError;
use crate::input::InputArgs;
use crate::output;
use crate::whole_file;

/// The destination of the report.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReportArgs {
    /// Print no report and no warnings
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Print the report as one JSON object on standard error
    #[arg(long)]
    json: bool,
    /// Write the report as JSON to FILE
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
}

/// The field names are a stable interface.
#[derive(Debug, Serialize)]
pub(super) struct UniqReport {
    /// Lines read.
    lines: u64,
    /// Records skipped because they have no item.
    skipped: u64,
    /// Lines that were not seen before.
    kept: u64,
    /// Lines that were seen before.
    dropped: u64,
    remembered: Remembered,
    wrongly_dropped: WronglyDropped,
    /// The state that was saved.
    state: Option<String>,
    /// Stopped by Ctrl-C; the report covers the lines until then.
    interrupted: bool,
}

#[derive(Debug, Serialize)]
struct Remembered {
    /// `fingerprints`, `window` or `lines`.
    by: &'static str,
    memory_bytes: u64,
    /// The sizes of the fingerprints in bits, each with the first line for which it was used; empty for a window.
    stages: Vec<StageReport>,
    /// The first line that was no longer remembered, if there is one.
    full_from_line: Option<u64>,
    /// The number of new lines that were not remembered.
    not_remembered: u64,
    /// The length of a window, as a time or a number of lines.
    window: Option<String>,
}

#[derive(Debug, Serialize)]
struct StageReport {
    bits: u32,
    from_line: u64,
}

#[derive(Debug, Serialize)]
struct WronglyDropped {
    /// The expected number of distinct lines, on average over many such runs.
    expected: f64,
    /// An upper bound, with this confidence.
    at_most: u64,
    confidence: f64,
}

impl From<&Loss> for WronglyDropped {
    fn from(loss: &Loss) -> Self {
        Self { expected: loss.expected(), at_most: loss.at_most(), confidence: CONFIDENCE }
    }
}

impl UniqReport {
    pub(super) fn of(memory: &Memory, uniq: &Uniq, state: Option<&State>, interrupted: bool) -> Self {
        let fingerprints = memory.fingerprints();
        let stages = fingerprints.map_or(&[][..], |fingerprints| &fingerprints.stages);
        Self {
            lines: memory.lines,
            skipped: uniq.input.skipped(),
            kept: memory.kept,
            dropped: memory.lines - memory.kept,
            remembered: Remembered {
                by: if fingerprints.is_some() { "fingerprints" } else { "window" },
                memory_bytes: memory.memory_bytes(),
                stages: stages
                    .iter()
                    .map(|stage| StageReport { bits: stage.bits, from_line: stage.from_line })
                    .collect(),
                full_from_line: fingerprints.and_then(|fingerprints| fingerprints.full_from_line),
                not_remembered: fingerprints.map_or(0, |fingerprints| fingerprints.forgotten),
                window: memory.window().map(super::window::Recent::said),
            },
            wrongly_dropped: (&memory.loss).into(),
            state: state.map(|state| state.path().display().to_string()),
            interrupted,
        }
    }

    pub(super) fn of_counts(counts: &Counts, uniq: &Uniq, interrupted: bool) -> Self {
        let mut loss = Loss::default();
        let different = counts.different();
        loss.add(different, counts.lines - different, different as f64 / 2.0 / 2_f64.powi(64));
        Self {
            lines: counts.lines,
            skipped: uniq.input.skipped(),
            kept: different,
            dropped: counts.lines - different,
            remembered: Remembered {
                by: "lines",
                memory_bytes: counts.memory_bytes(),
                stages: vec![StageReport { bits: 64, from_line: 1 }],
                full_from_line: None,
                not_remembered: 0,
                window: None,
            },
            wrongly_dropped: (&loss).into(),
            state: None,
            interrupted,
        }
    }

    fn text(&self) -> String {
        let Remembered { by, memory_bytes, stages, full_from_line, not_remembered, window } =
            &self.remembered;
        let memory = say::bytes(*memory_bytes);
        let how = match (window, &stages[..]) {
            (Some(window), _) => format!("remembered for {window}, in {memory}"),
            (None, [StageReport { bits: 64, .. }]) if *by == "lines" => format!("counted in {memory}"),
            (None, stages) => {
                let since = |stage: &StageReport| {
                    let StageReport { bits, from_line } = *stage;
                    if from_line <= 1 {
                        format!("{bits} bits")
                    } else {
                        format!("{bits} from line {} on", say::count(from_line))
                    }
                };
                let stages: Vec<String> = stages.iter().map(since).collect();
                format!("remembered as fingerprints of {}, in {memory}", stages.join(", "))
            }
        };
        let full = full_from_line.map_or_else(String::new, |line| {
            format!(
                "\nmayhap: {} new lines from line {} on were not remembered",
                say::count(*not_remembered),
                say::count(line)
            )
        });
        format!(
            "mayhap: read {} {}, kept {}, dropped {}\nmayhap: {how}{full}\nmayhap: {}",
            say::count(self.lines),
            if self.lines == 1 { "line" } else { "lines" },
            say::count(self.kept),
            say::count(self.dropped),
            self.wrongly_dropped.text()
        )
    }
}

impl WronglyDropped {
    fn text(&self) -> String {
        // For smaller numbers, the share of runs in which it happens at all is easier to understand.
        const SELDOM: f64 = 0.01;
        match self.expected {
            expected if expected <= 0.0 => "no line was dropped by mistake".into(),
            expected if expected < SELDOM => {
                let runs = three_digits(1.0 / expected);
                format!("chance that a line was dropped by mistake: 1 in {runs}")
            }
            expected => format!(
                "lines dropped by mistake: {} expected, at most {} ({}% confidence)",
                if expected < 10.0 { format!("{expected:.2}") } else { three_digits(expected) },
                say::count(self.at_most),
                self.confidence * 100.0
            ),
        }
    }
}

/// `753,000` for 752,911; `2e18` for very large numbers.
fn three_digits(number: f64) -> String {
    if number >= 1e15 {
        return format!("{number:.0e}");
    }
    let unit = 10_f64.powf((number.max(1.0).log10().floor() - 2.0).max(0.0));
    say::count(((number / unit).round() * unit) as u64)
}

impl ReportArgs {
    pub(super) fn warn_of_skipped(&self, input: &InputArgs) {
        if !self.quiet && !self.json {
            input.warn_of_skipped();
        }
    }

    pub(super) fn write(&self, report: &UniqReport) -> Result<(), CliError> {
        if let Some(path) = &self.report {
            let mut bytes = Vec::new();
            output::json(&mut bytes, report)?;
            whole_file::write(path, &bytes)?;
        }
        let mut out = anstream::stderr();
        match () {
            () if self.json => output::json(&mut out, report)?,
            () if !self.quiet => {
                // If standard error cannot be written, the report is lost.
                let _ = writeln!(out, "{}", report.text());
            }
            () => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_printed_readably() {
        let said = |expected, at_most| WronglyDropped { expected, at_most, confidence: CONFIDENCE }.text();
        assert_eq!(said(0.0, 0), "no line was dropped by mistake");
        assert_eq!(said(1.328e-6, 0), "chance that a line was dropped by mistake: 1 in 753,000");
        assert_eq!(said(1e-19, 0), "chance that a line was dropped by mistake: 1 in 1e19");
        assert_eq!(said(0.19, 3), "lines dropped by mistake: 0.19 expected, at most 3 (99.9% confidence)");
        assert_eq!(
            said(312.4, 381),
            "lines dropped by mistake: 312 expected, at most 381 (99.9% confidence)"
        );
    }
}
