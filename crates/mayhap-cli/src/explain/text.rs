//! The explanation as text.

use std::io::{self, Write};

use mayhap::explain::{
    BitLookup, BlockLookup, BucketLookup, CounterLookup, Lookup, NumberLookup, RowLookup, RunLookup,
    SlotLookup, ValueLookup,
};
use mayhap::{Filter, say};

use super::how_it_works::{how_it_works, plural};
use super::{Explained, Subject, shown};
use crate::info::lines::fpr;
use crate::output::{ASIDE, BEST, HEADING, paragraph};

/// Characters shown of an item.
const ITEM_LETTERS: usize = 70;
/// Columns for the slots of a bucket.
const SLOTS_WIDTH: usize = 84;
/// The most steps of one sort to show.
const STEPS: usize = 64;

pub(super) fn write(
    out: &mut dyn Write,
    subject: &Subject<'_>,
    explained: &[Explained],
    width: usize,
) -> io::Result<()> {
    writeln!(out, "{HEADING}{}: {}{HEADING:#}", subject.name, headline(subject.filter))?;
    paragraph(out, &rates(subject.filter), "", width)?;
    if let Some(first) = explained.first() {
        writeln!(out)?;
        paragraph(out, &how_it_works(subject.filter, &first.explanation), "", width)?;
    }
    for explained in explained {
        writeln!(out)?;
        item(out, explained)?;
        writeln!(out)?;
        steps(out, &explained.explanation.lookup)?;
        writeln!(out)?;
        let reason = explained.explanation.reason();
        let (answer, why) = reason.split_once(": ").unwrap_or((&reason, ""));
        let style = if explained.explanation.answer { BEST } else { HEADING };
        let lines = textwrap::fill(&format!("{answer}: {why}"), width);
        match lines.strip_prefix(answer) {
            Some(rest) => writeln!(out, "{style}{answer}{style:#}{rest}")?,
            None => writeln!(out, "{lines}")?,
        }
        if let Some(odds) = odds(explained) {
            paragraph(out, &odds, "", width)?;
        }
    }
    Ok(())
}

/// Kind, items, capacity and size.
pub(super) fn headline(filter: &Filter) -> String {
    let held = match filter {
        Filter::Bitmap(_) => {
            format!("{} of {} numbers set", say::count(filter.inserted()), say::count(filter.capacity()))
        }
        _ if filter.inserted() == filter.capacity() => say::items(filter.capacity()),
        _ => format!("{} (capacity {})", say::items(filter.inserted()), say::count(filter.capacity())),
    };
    format!("{}, {held}, {}", filter.kind(), say::bytes(filter.memory_bytes()))
}

/// Fill and false-positive rate.
pub(super) fn rates(filter: &Filter) -> String {
    let mut facts = Vec::new();
    let densities = filter.densities(256);
    if let [only] = &densities[..] {
        let about = if only.exact { "" } else { "about " };
        facts.push(format!("{about}{:.1}% of {}", only.share * 100.0, of_what(only.what)));
    }
    match filter {
        Filter::Bitmap(_) => facts.push("no false positives".into()),
        _ => {
            let (now, target) = (fpr(filter.expected_fpr()), fpr(filter.target_fpr()));
            facts.push(format!("FPR {now} now, target {target}"));
        }
    }
    facts.join("; ")
}

fn of_what(what: &str) -> &str {
    match what {
        "bits set" => "the bits are set",
        "counters above zero" => "the counters are above zero",
        "slots taken" => "the slots are taken",
        "homes with a run" => "the homes have a run",
        other => other,
    }
}

fn item(out: &mut dyn Write, explained: &Explained) -> io::Result<()> {
    let explanation = &explained.explanation;
    let bytes = plural(explained.given.len(), "byte");
    writeln!(out, "item     {} ({bytes})", shown::item(&explained.given, ITEM_LETTERS))?;
    if let (Some(encoding), Some(hashed)) = (explanation.encoding, &explanation.item)
        && *hashed != explained.given
    {
        writeln!(out, "hashed   {} (as {encoding})", shown::digits(hashed, ITEM_LETTERS))?;
    }
    match (&explanation.function, explanation.hash) {
        (Some(function), Some(hash)) => writeln!(out, "hash     {} ({function})", shown::hash(hash)),
        (Some(function), None) => writeln!(out, "hashed   by {function}"),
        (None, _) => Ok(()),
    }
}

fn steps(out: &mut dyn Write, lookup: &Lookup) -> io::Result<()> {
    match lookup {
        Lookup::Number(lookup) => number(out, lookup),
        Lookup::Bits(lookup) => bits(out, lookup, ""),
        Lookup::Blocks(lookup) => blocks(out, lookup, ""),
        Lookup::Counters(lookup) => counters(out, lookup),
        Lookup::Buckets(lookup) => buckets(out, lookup),
        Lookup::Run(lookup) => run(out, lookup),
        Lookup::Slots(lookup) => slots(out, lookup),
        Lookup::Rows(lookup) => rows(out, lookup),
        Lookup::Values(lookup) => values(out, lookup),
        Lookup::Layers(lookup) => {
            let mut found = false;
            for layer in &lookup.layers {
                let (inserted, capacity) = (say::count(layer.inserted), say::count(layer.capacity));
                let aside = if found { ", not checked: a newer layer holds it" } else { "" };
                writeln!(
                    out,
                    "  {HEADING}layer {}{HEADING:#}: {inserted} of {capacity} items{aside}",
                    layer.number
                )?;
                if !found {
                    bits(out, &layer.bits, "  ")?;
                }
                found |= layer.bits.holds();
            }
            Ok(())
        }
        Lookup::Generations(lookup) => {
            for generation in &lookup.generations {
                let (inserted, capacity) = (say::count(generation.inserted), say::count(generation.capacity));
                let newest = if generation.age == 0 { ", the newest" } else { "" };
                let answer = if generation.blocks.holds() { "holds it" } else { "does not hold it" };
                writeln!(
                    out,
                    "  {HEADING}generation {}{HEADING:#}{newest}: {inserted} of {capacity} items, {answer}",
                    generation.age
                )?;
                blocks(out, &generation.blocks, "  ")?;
            }
            Ok(())
        }
        Lookup::Dual(lookup) => {
            for step in &lookup.steps {
                let answer = |held: bool| if held { "maybe" } else { "no" };
                let number = step.generation;
                let added = answer(step.added.holds());
                writeln!(out, "  {HEADING}generation {number}{HEADING:#}, inserted: {added}")?;
                bits(out, &step.added, "  ")?;
                if let Some(removed) = &step.removed {
                    let gone = answer(removed.holds());
                    writeln!(out, "  {HEADING}generation {number}{HEADING:#}, removed: {gone}")?;
                    bits(out, removed, "  ")?;
                }
            }
            Ok(())
        }
        other => writeln!(out, "  {other:?}"),
    }
}

fn number(out: &mut dyn Write, lookup: &NumberLookup) -> io::Result<()> {
    let Some(probe) = &lookup.probe else { return writeln!(out, "  there is no bit for it") };
    let (bit, word) = (say::count(probe.position), say::count(probe.position / 64));
    writeln!(out, "  bit {bit}: word {word}, bit {} of it: {}", probe.position % 64, state(probe.set))?;
    writeln!(out, "  around it: {}", shown::around(probe))
}

const fn state(set: bool) -> &'static str {
    if set { "set" } else { "clear" }
}

/// Writes the number of steps that are left out, if any.
fn left_out(out: &mut dyn Write, all: usize, indent: &str) -> io::Result<()> {
    if all > STEPS { writeln!(out, "  {indent}… and {} more", all - STEPS) } else { Ok(()) }
}

fn bits(out: &mut dyn Write, lookup: &BitLookup, indent: &str) -> io::Result<()> {
    let widest = say::count(lookup.bits).len().max("position".len());
    let words = say::count(lookup.bits / 64).len().max(4);
    writeln!(
        out,
        "  {indent}{ASIDE}     {:>widest$}  {:>words$}  bit         around it, the lowest bit first{ASIDE:#}",
        "position", "word"
    )?;
    for (nth, probe) in (1..).zip(lookup.probes.iter().take(STEPS)) {
        let (position, word) = (say::count(probe.position), say::count(probe.position / 64));
        let (bit, state) = (probe.position % 64, state(probe.set));
        let around = shown::around(probe);
        writeln!(
            out,
            "  {indent}{nth:>3}  {position:>widest$}  {word:>words$}  {bit:>3}  {state:<5}  {around}"
        )?;
    }
    left_out(out, lookup.probes.len(), indent)
}

fn blocks(out: &mut dyn Write, lookup: &BlockLookup, indent: &str) -> io::Result<()> {
    let mut nth = 0;
    for block in &lookup.probed {
        let first = block.block * lookup.block_bits;
        let number = say::count(block.block);
        writeln!(out, "  {indent}block {number}, bits {} to {}", say::count(first), {
            say::count(first + lookup.block_bits - 1)
        })?;
        let lanes = if lookup.lane_bits == 32 { "lane" } else { "word" };
        for probe in &block.bits {
            nth += 1;
            let within = probe.position - first;
            let (lane, bit) = (within / lookup.lane_bits, within % lookup.lane_bits);
            let (around, state) = (shown::around(probe), state(probe.set));
            writeln!(out, "  {indent}{nth:>3}  {lanes} {lane}  bit {bit:>2}  {state:<5}  {around}")?;
        }
    }
    Ok(())
}

fn counters(out: &mut dyn Write, lookup: &CounterLookup) -> io::Result<()> {
    let widest = say::count(lookup.counters).len().max("position".len());
    let positions = "position";
    writeln!(
        out,
        "  {ASIDE}     {positions:>widest$}  count  the 16 counters of its word (hexadecimal){ASIDE:#}"
    )?;
    for (nth, probe) in (1..).zip(lookup.probes.iter().take(STEPS)) {
        let position = say::count(probe.position);
        writeln!(
            out,
            "  {nth:>3}  {position:>widest$}  {:>5}  {}",
            probe.count,
            shown::counters_around(probe)
        )?;
    }
    left_out(out, lookup.probes.len(), "")
}

fn buckets(out: &mut dyn Write, lookup: &BucketLookup) -> io::Result<()> {
    let fingerprint = shown::hex(lookup.fingerprint, lookup.fingerprint_bits);
    writeln!(out, "  fingerprint {fingerprint} ({} bits)", lookup.fingerprint_bits)?;
    let tables = lookup.buckets.iter().any(|bucket| bucket.table > 0);
    let widest = lookup.buckets.iter().map(|bucket| say::count(bucket.bucket).len()).max().unwrap_or(0);
    for bucket in &lookup.buckets {
        let table = if tables { format!("table {}, ", bucket.table) } else { String::new() };
        let slots: Vec<String> = bucket
            .slots
            .iter()
            .map(|slot| match slot {
                None => "·".into(),
                Some(slot) => {
                    let copies = if lookup.counts { format!("×{}", slot.copies) } else { String::new() };
                    let content = shown::hex(slot.fingerprint, lookup.fingerprint_bits);
                    if slot.matches { format!("[{content}{copies}]") } else { content + &copies }
                }
            })
            .collect();
        let (number, of) = (say::count(bucket.bucket), say::count(bucket.of));
        let found = if bucket.holds() { "  ← holds it" } else { "" };
        // Long fingerprints get lines of their own, with as many as fit in each.
        let longest = slots.iter().map(|slot| slot.chars().count()).max().unwrap_or(0);
        if slots.len() * (longest + 1) <= SLOTS_WIDTH {
            writeln!(out, "  {table}bucket {number:>widest$} of {of}: {}{found}", slots.join(" "))?;
            continue;
        }
        writeln!(out, "  {table}bucket {number:>widest$} of {of}{found}")?;
        for line in slots.chunks((SLOTS_WIDTH / (longest + 1)).max(1)) {
            writeln!(out, "    {}", line.join(" "))?;
        }
    }
    Ok(())
}

fn run(out: &mut dyn Write, lookup: &RunLookup) -> io::Result<()> {
    let fingerprint = |number, bits| {
        if lookup.any_length { shown::first_bits(number, bits) } else { shown::hex(number, bits) }
    };
    let (home, homes) = (say::count(lookup.home), say::count(lookup.homes));
    let what = if lookup.any_length { "fingerprint" } else { "remainder" };
    writeln!(out, "  home {home} of {homes}")?;
    writeln!(out, "  {what} {}", fingerprint(lookup.fingerprint, lookup.fingerprint_bits))?;
    if lookup.entries.is_empty() {
        return writeln!(out, "  no slot belongs to this home");
    }
    let (first, last) = (say::count(lookup.slots.start), say::count(lookup.slots.end - 1));
    match lookup.slots.end - lookup.slots.start {
        1 => writeln!(out, "  its run: slot {first}")?,
        _ => writeln!(out, "  its run: slots {first} to {last}")?,
    }
    for entry in lookup.entries.iter().take(STEPS) {
        let slot = say::count(entry.slots.start);
        let copies = match entry.copies {
            1 => String::new(),
            copies => format!("  ×{}", say::count(copies)),
        };
        let content = match entry.fingerprint_bits {
            0 => "void".into(),
            bits => fingerprint(entry.fingerprint, bits),
        };
        let found = if entry.matches { "  ← matches" } else { "" };
        writeln!(out, "    slot {slot}  {content}{copies}{found}")?;
    }
    left_out(out, lookup.entries.len(), "")
}

fn slots(out: &mut dyn Write, lookup: &SlotLookup) -> io::Result<()> {
    let hex = |number| shown::hex(number, lookup.fingerprint_bits);
    if lookup.stored.is_empty() {
        return writeln!(out, "  the filter is empty and has no slots");
    }
    if lookup.shards > 1 {
        writeln!(out, "  shard {} of {}", lookup.shard, lookup.shards)?;
    }
    let widest = lookup.stored.iter().map(|slot| say::count(slot.slot).len()).max().unwrap_or(0);
    for slot in &lookup.stored {
        writeln!(out, "  slot {:>widest$}  {}", say::count(slot.slot), hex(slot.fingerprint))?;
    }
    let indent = " ".repeat("slot ".len() + widest);
    let stored: Vec<String> = lookup.stored.iter().map(|slot| hex(slot.fingerprint)).collect();
    writeln!(out, "  {indent}  {} = {}", stored.join(" ⊕ "), hex(lookup.sum()))?;
    let agrees = if lookup.holds() { "equal" } else { "not equal" };
    writeln!(out, "  {indent}  {} is its fingerprint: {agrees}", hex(lookup.fingerprint))
}

fn rows(out: &mut dyn Write, lookup: &RowLookup) -> io::Result<()> {
    for (number, layer) in (1..).zip(&lookup.layers) {
        let (start, rows) = (say::count(layer.start), say::count(layer.rows));
        let bumped = match layer.threshold {
            Some(threshold) => {
                let sent = if layer.bumped { "moved" } else { "kept" };
                format!(
                    "; row {} of its bucket, which moves the first {threshold} to the next layer: {sent}",
                    layer.in_bucket
                )
            }
            None => String::new(),
        };
        writeln!(out, "  layer {number}: starts at row {start} of {rows}{bumped}")?;
    }
    if lookup.layers.is_empty() {
        return writeln!(out, "  the filter is empty and has no rows");
    }
    writeln!(out, "  {ASIDE}the next 64 rows: digits for the selected rows, dots for the others{ASIDE:#}")?;
    let parity = |odd: bool| if odd { "odd" } else { "even" };
    for (number, column) in (1..).zip(&lookup.columns) {
        let digits: String = (0..64)
            .map(|row| match (lookup.coefficients >> row & 1, column.rows >> row & 1) {
                (0, _) => '·',
                (_, 0) => '0',
                _ => '1',
            })
            .collect();
        let (is, wanted) = (parity(column.parity), parity(column.wanted));
        let agrees = if column.parity == column.wanted { "" } else { "  ← differs" };
        writeln!(out, "  column {number:>2}  {digits}  {is:<4} expected {wanted}{agrees}")?;
    }
    Ok(())
}

fn values(out: &mut dyn Write, lookup: &ValueLookup) -> io::Result<()> {
    let (value, range) = (say::count(lookup.value), say::count(lookup.range));
    writeln!(out, "  value {value} of {range}")?;
    let (bucket, buckets) = (say::count(lookup.bucket), say::count(lookup.buckets));
    let (start, end) = (say::count(lookup.bits.start), say::count(lookup.bits.end));
    writeln!(out, "  bucket {bucket} of {buckets}: bits {start} to {end} of the codes")?;
    writeln!(out, "  {} decoded (gaps with {} low bits)", plural(lookup.decoded as usize, "value"), {
        lookup.remainder_bits
    })?;
    let widest =
        value.len().max(lookup.behind.iter().map(|&value| say::count(value).len()).max().unwrap_or(0));
    for &before in &lookup.before {
        writeln!(out, "    {:>widest$}  stored", say::count(before))?;
    }
    let there = if lookup.found { "stored  ← its value" } else { "not stored  ← its value" };
    writeln!(out, "    {value:>widest$}  {there}")?;
    for &after in &lookup.behind {
        writeln!(out, "    {:>widest$}  stored", say::count(after))?;
    }
    Ok(())
}

/// The weight of a maybe.
pub(super) fn odds(explained: &Explained) -> Option<String> {
    let explanation = &explained.explanation;
    if !explanation.answer || explanation.certain || explanation.expected_fpr <= 0.0 {
        return None;
    }
    let rate = explanation.expected_fpr.min(1.0);
    // A round number of non-members with about ten or more false positives.
    let asked = 10_f64.powi((10.0 / rate).log10().ceil().clamp(1.0, 15.0) as i32);
    let members = if explanation.expected_false_no > 0.0 { "nearly always" } else { "always" };
    Some(format!(
        "Members {members} get this answer. Of {} non-members, about {} get it, too.",
        say::count(asked as u64),
        say::count((asked * rate).round() as u64),
    ))
}
