//! The JSON form of xorf's types, as serde writes it.

use std::io::{self, Write};

use serde::Deserialize;

use mayhap::internals::Lines;
use mayhap::internals::statics::{FuseMeasurements, Slots, XorMeasurements, fits, lines_of, per_word, slot};
use mayhap::{DecodeError, Fingerprint};

use super::slots::check_length;
use super::{Parts, graph_of, xor};
use crate::bits_and_blooms;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fuse {
    seed: u64,
    segment_length: u32,
    segment_length_mask: u32,
    segment_count_length: u32,
    fingerprints: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Xor {
    seed: u64,
    block_length: u64,
    fingerprints: Vec<u32>,
}

pub(super) fn read_fuse<F: Fingerprint>(bytes: &[u8]) -> Result<Parts, DecodeError> {
    let fuse: Fuse = serde_json::from_slice(bytes).map_err(|cause| refusal(bytes, &cause))?;
    if fuse.segment_length_mask != fuse.segment_length.wrapping_sub(1) {
        let got = fuse.segment_length_mask.into();
        return Err(DecodeError::BadField { field: "segment_length_mask", got });
    }
    let graph = graph_of(fuse.segment_length.into(), fuse.segment_count_length.into())?;
    let slots = packed::<F>(&fuse.fingerprints, graph.slots())?;
    Ok(Parts { seed: fuse.seed, graph, inserted: None, slots })
}

pub(super) fn read_xor<F: Fingerprint>(bytes: &[u8]) -> Result<(u64, XorMeasurements, Lines), DecodeError> {
    let filter: Xor = serde_json::from_slice(bytes).map_err(|cause| refusal(bytes, &cause))?;
    let graph = xor::graph_of(filter.block_length)?;
    let slots = packed::<F>(&filter.fingerprints, graph.slots())?;
    Ok((filter.seed, graph, slots))
}

/// The error at the position where the text stops being such a filter.
fn refusal(json: &[u8], cause: &serde_json::Error) -> DecodeError {
    DecodeError::Malformed { what: "JSON of a filter of xorf", at: bits_and_blooms::at(json, cause) }
}

fn packed<F: Fingerprint>(fingerprints: &[u32], slots: u64) -> Result<Lines, DecodeError> {
    check_length(fingerprints.len() as u64, slots)?;
    let mut lines = Lines::zeroed(lines_of::<F>(slots))?;
    for (word, group) in lines.words_mut().iter_mut().zip(fingerprints.chunks(per_word::<F>())) {
        for &fingerprint in group.iter().rev() {
            let got = u64::from(fingerprint);
            if !fits::<F>(got) {
                return Err(DecodeError::BadField { field: "fingerprint", got });
            }
            *word = *word << F::BITS | got;
        }
    }
    Ok(lines)
}

pub(super) fn write_fuse<F: Fingerprint>(
    table: &Slots<'_, FuseMeasurements>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let [length, segments] = table.measurements.segments();
    let (mask, starts) = (length - 1, length * segments);
    write!(out, "{{\"seed\":{},\"segment_length\":{length},", table.seed)?;
    write!(out, "\"segment_length_mask\":{mask},\"segment_count_length\":{starts},")?;
    write_fingerprints::<F>(table.lines, table.measurements.slots(), out)
}

pub(super) fn write_xor<F: Fingerprint>(
    table: &Slots<'_, XorMeasurements>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (seed, block) = (table.seed, table.measurements.block());
    write!(out, "{{\"seed\":{seed},\"block_length\":{block},")?;
    write_fingerprints::<F>(table.lines, table.measurements.slots(), out)
}

fn write_fingerprints<F: Fingerprint>(lines: &Lines, slots: u64, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"\"fingerprints\":[")?;
    for index in 0..slots as usize {
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}{}", slot::<F>(lines, index))?;
    }
    out.write_all(b"]}")
}
