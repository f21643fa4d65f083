//! The measurements as JSON. The field names must not change.

use std::io::Write;

use serde::Serialize;

use super::measure::Measured;
use super::sample::SampleOrigin;
use super::{BenchReport, text};
use crate::error::CliError;
use crate::kind_name::name_of;
use crate::output;

#[derive(Serialize)]
struct Answer {
    /// `files` or `generated`.
    source: &'static str,
    /// Records read; null for generated items.
    records: Option<u64>,
    /// One in this many of the distinct items was measured.
    sampled_one_in: u64,
    members: u64,
    #[serde(rename = "strangers")]
    non_members: u64,
    /// The number of non-members that are altered members; the others were held back.
    #[serde(rename = "altered_strangers")]
    altered_non_members: u64,
    target_fpr: f64,
    keyed_hash: bool,
    rounds: u32,
    /// The kind that `mayhap plan` recommends for these needs.
    recommended: Option<String>,
    kinds: Vec<Kind>,
    left_out: Vec<LeftOut>,
}

#[derive(Serialize)]
struct Kind {
    kind: String,
    recommended: bool,
    members_lost: u64,
    wrong_answers: u64,
    observed_fpr: f64,
    /// The bounds of the 95 % confidence interval.
    observed_fpr_low: f64,
    observed_fpr_high: f64,
    expected_fpr: f64,
    memory_bytes: u64,
    bits_per_item: f64,
    /// Multiple of the smallest memory.
    memory_ratio: f64,
    build_ns_per_item: f64,
    lookup_ns_per_item: Lookup,
    /// Multiple of the fastest mean of the four lookup times.
    lookup_ratio: f64,
}

#[derive(Serialize)]
struct Lookup {
    no_each: f64,
    no_batch: f64,
    mayhap_each: f64,
    mayhap_batch: f64,
}

#[derive(Serialize)]
struct LeftOut {
    kind: String,
    why: String,
}

pub(super) fn write(out: &mut dyn Write, report: &BenchReport<'_>) -> Result<(), CliError> {
    let least_memory = text::smallest(report, |measured| measured.memory_bytes as f64);
    let least_lookup = text::smallest(report, |measured| measured.lookup.mean());
    let (source, records, sampled_one_in) = match report.sample.origin {
        SampleOrigin::Read { records, sampled } => ("files", Some(records), sampled),
        SampleOrigin::Generated => ("generated", None, 1),
    };
    let kind = |measured: &Measured| {
        let (observed_fpr_low, observed_fpr_high) = measured.interval();
        Kind {
            kind: name_of(measured.structure),
            recommended: report.recommended == Some(measured.structure),
            members_lost: measured.members_lost,
            wrong_answers: measured.wrong,
            observed_fpr: measured.observed_fpr(),
            observed_fpr_low,
            observed_fpr_high,
            expected_fpr: measured.expected_fpr,
            memory_bytes: measured.memory_bytes,
            bits_per_item: measured.bits_per_item(),
            memory_ratio: measured.memory_bytes as f64 / least_memory,
            build_ns_per_item: measured.build_ns,
            lookup_ns_per_item: Lookup {
                no_each: measured.lookup.no_each,
                no_batch: measured.lookup.no_batch,
                mayhap_each: measured.lookup.mayhap_each,
                mayhap_batch: measured.lookup.mayhap_batch,
            },
            lookup_ratio: measured.lookup.mean() / least_lookup,
        }
    };
    let left_out = |(structure, why): &(mayhap_advise::Structure, String)| LeftOut {
        kind: name_of(*structure),
        why: why.clone(),
    };
    output::json(
        out,
        &Answer {
            source,
            records,
            sampled_one_in,
            members: report.sample.members.len() as u64,
            non_members: report.sample.non_members.len() as u64,
            altered_non_members: report.sample.altered as u64,
            target_fpr: report.needs.target_fpr,
            keyed_hash: report.bench.untrusted,
            rounds: report.bench.rounds.get(),
            recommended: report.recommended.map(name_of),
            kinds: report.measured.iter().map(kind).collect(),
            left_out: report.left_out.iter().map(left_out).collect(),
        },
    )
}
