//! The explanation as one JSON object. Fields may be added; these names must not change.
//!
//! Numbers of bits, slots and items are numbers. Hashes and fingerprints are hexadecimal text, because they are not quantities. 64-bit
//! words are text, too, because many JSON readers lose digits of such numbers.

use std::io::Write;

use mayhap::explain::{
    BitLookup, BitProbe, BlockLookup, BucketLookup, CounterLookup, Density, DualLookup, GenerationLookup,
    LayerLookup, Lookup, NumberLookup, RowLookup, RunLookup, SlotLookup, ValueLookup,
};
use mayhap::{DualAnswer, Filter};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Explained, Subject, shown};
use crate::error::CliError;
use crate::output;

#[derive(Serialize)]
struct ExplainJson {
    filter: FilterJson,
    /// One per item, in their order.
    explanations: Vec<ExplanationJson>,
}

#[derive(Serialize)]
struct FilterJson {
    file: String,
    kind: &'static str,
    inserted: u64,
    capacity: u64,
    memory_bytes: u64,
    /// The share of its bits, counters or slots in use; null for kinds whose slots are always in use, and if there are several arrays.
    fill: Option<f64>,
    target_fpr: f64,
    expected_fpr: f64,
}

#[derive(Serialize)]
struct ExplanationJson {
    /// Null if the item is not text.
    item: Option<String>,
    item_hex: String,
    /// The bytes that were hashed.
    hashed_hex: Option<String>,
    encoding: Option<&'static str>,
    /// `mayhap` or `no`.
    answer: &'static str,
    certain: bool,
    reason: String,
    /// The current false-positive rate.
    expected_fpr: f64,
    expected_false_no: f64,
    function: Option<String>,
    hash: Option<String>,
    /// The lookup; `sort` names its form.
    lookup: Value,
}

pub(super) fn write(
    out: &mut dyn Write,
    subject: &Subject<'_>,
    explained: &[Explained],
) -> Result<(), CliError> {
    let explanations = explained.iter().map(ExplanationJson::from).collect();
    output::json(out, &ExplainJson { filter: FilterJson::of(subject), explanations })
}

impl FilterJson {
    fn of(Subject { name, filter }: &Subject<'_>) -> Self {
        Self {
            file: name.clone(),
            kind: filter.kind().name(),
            inserted: filter.inserted(),
            capacity: filter.capacity(),
            memory_bytes: filter.memory_bytes(),
            fill: fill(filter),
            target_fpr: filter.target_fpr(),
            expected_fpr: filter.expected_fpr(),
        }
    }
}

fn fill(filter: &Filter) -> Option<f64> {
    match &filter.densities(256)[..] {
        [Density { share, .. }] => Some(*share),
        _ => None,
    }
}

impl From<&Explained> for ExplanationJson {
    fn from(Explained { given, explanation }: &Explained) -> Self {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Self {
            item: String::from_utf8(given.clone()).ok(),
            item_hex: hex(given),
            hashed_hex: explanation.item.as_deref().map(hex),
            encoding: explanation.encoding.map(mayhap::ItemEncoding::name),
            answer: if explanation.answer { "mayhap" } else { "no" },
            certain: explanation.certain,
            reason: explanation.reason(),
            expected_fpr: explanation.expected_fpr,
            expected_false_no: explanation.expected_false_no,
            function: explanation.function.clone(),
            hash: explanation.hash.map(|hash| format!("{:032x}", hash.to_u128())),
            lookup: lookup(&explanation.lookup),
        }
    }
}

fn lookup(lookup: &Lookup) -> Value {
    let (sort, mut fields) = match lookup {
        Lookup::Number(lookup) => ("number", number(lookup)),
        Lookup::Bits(lookup) => ("bits", bits(lookup)),
        Lookup::Blocks(lookup) => ("blocks", blocks(lookup)),
        Lookup::Counters(lookup) => ("counters", counters(lookup)),
        Lookup::Dual(lookup) => ("dual", dual(lookup)),
        Lookup::Layers(lookup) => ("layers", layers(lookup)),
        Lookup::Buckets(lookup) => ("buckets", buckets(lookup)),
        Lookup::Run(lookup) => ("run", run(lookup)),
        Lookup::Slots(lookup) => ("slots", slots(lookup)),
        Lookup::Rows(lookup) => ("rows", rows(lookup)),
        Lookup::Values(lookup) => ("values", values(lookup)),
        Lookup::Generations(lookup) => ("generations", generations(lookup)),
        _ => ("unknown", json!({})),
    };
    fields["sort"] = sort.into();
    fields
}

fn word(word: u64) -> Value {
    format!("{word:016x}").into()
}

fn probe(probe: &BitProbe) -> Value {
    json!({ "position": probe.position, "set": probe.set, "word": word(probe.word) })
}

fn number(lookup: &NumberLookup) -> Value {
    json!({
        "number": lookup.number,
        "first": lookup.first,
        "bits": lookup.bits,
        "probe": lookup.probe.as_ref().map(probe),
    })
}

fn bits(lookup: &BitLookup) -> Value {
    json!({
        "bits": lookup.bits,
        "holds": lookup.holds(),
        "probes": lookup.probes.iter().map(probe).collect::<Vec<_>>(),
    })
}

fn blocks(lookup: &BlockLookup) -> Value {
    let block = |block: &mayhap::explain::BlockProbe| {
        json!({
            "block": block.block,
            "words": block.words.iter().map(|&bits| word(bits)).collect::<Vec<_>>(),
            "probes": block.bits.iter().map(probe).collect::<Vec<_>>(),
        })
    };
    json!({
        "blocks": lookup.blocks,
        "block_bits": lookup.block_bits,
        "holds": lookup.holds(),
        "probed": lookup.probed.iter().map(block).collect::<Vec<_>>(),
    })
}

fn counters(lookup: &CounterLookup) -> Value {
    let probes = lookup.probes.iter();
    let probes = probes.map(|probe| json!({ "position": probe.position, "count": probe.count }));
    json!({
        "counters": lookup.counters,
        "limit": lookup.limit,
        "probes": probes.collect::<Vec<_>>(),
    })
}

fn dual(lookup: &DualLookup) -> Value {
    let step = |step: &mayhap::explain::DualStep| {
        json!({
            "generation": step.generation,
            "put_in": bits(&step.added),
            "removed": step.removed.as_ref().map(bits),
        })
    };
    json!({
        "answer": match lookup.answer {
            DualAnswer::Never => "never",
            DualAnswer::Removed => "removed",
            DualAnswer::Present => "present",
        },
        "steps": lookup.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

fn layers(lookup: &LayerLookup) -> Value {
    let layer = |layer: &mayhap::explain::LayerProbe| {
        let mut fields = bits(&layer.bits);
        fields["layer"] = layer.number.into();
        fields["inserted"] = layer.inserted.into();
        fields["capacity"] = layer.capacity.into();
        fields
    };
    json!({ "layers": lookup.layers.iter().map(layer).collect::<Vec<_>>() })
}

fn buckets(lookup: &BucketLookup) -> Value {
    let hex = |number| shown::hex(number, lookup.fingerprint_bits);
    let slot = |slot: &Option<mayhap::explain::BucketSlot>| {
        slot.map(|slot| {
            json!({ "fingerprint": hex(slot.fingerprint), "copies": slot.copies, "matches": slot.matches })
        })
    };
    let bucket = |bucket: &mayhap::explain::BucketProbe| {
        json!({
            "table": bucket.table,
            "bucket": bucket.bucket,
            "of": bucket.of,
            "slots": bucket.slots.iter().map(slot).collect::<Vec<_>>(),
        })
    };
    json!({
        "fingerprint": hex(lookup.fingerprint),
        "fingerprint_bits": lookup.fingerprint_bits,
        "buckets": lookup.buckets.iter().map(bucket).collect::<Vec<_>>(),
    })
}

fn run(lookup: &RunLookup) -> Value {
    let entry = |entry: &mayhap::explain::RunEntry| {
        json!({
            "slot": entry.slots.start,
            "slots": entry.slots.end - entry.slots.start,
            "fingerprint": shown::hex(entry.fingerprint, entry.fingerprint_bits.max(1)),
            "fingerprint_bits": entry.fingerprint_bits,
            "copies": entry.copies,
            "matches": entry.matches,
        })
    };
    json!({
        "home": lookup.home,
        "homes": lookup.homes,
        "fingerprint": shown::hex(lookup.fingerprint, lookup.fingerprint_bits),
        "fingerprint_bits": lookup.fingerprint_bits,
        "entries": lookup.entries.iter().map(entry).collect::<Vec<_>>(),
    })
}

fn slots(lookup: &SlotLookup) -> Value {
    let hex = |number| shown::hex(number, lookup.fingerprint_bits);
    let stored = lookup.stored.iter();
    let stored = stored.map(|slot| json!({ "slot": slot.slot, "fingerprint": hex(slot.fingerprint) }));
    json!({
        "slots": lookup.slots,
        "shard": lookup.shard,
        "shards": lookup.shards,
        "fingerprint": hex(lookup.fingerprint),
        "fingerprint_bits": lookup.fingerprint_bits,
        "stored": stored.collect::<Vec<_>>(),
        "sum": hex(lookup.sum()),
    })
}

fn rows(lookup: &RowLookup) -> Value {
    let layer = |layer: &mayhap::explain::RowLayer| {
        json!({
            "rows": layer.rows,
            "start": layer.start,
            "threshold": layer.threshold,
            "bumped": layer.bumped,
        })
    };
    let column = |column: &mayhap::explain::ColumnProbe| json!({ "rows": word(column.rows), "parity": u8::from(column.parity), "wanted": u8::from(column.wanted) });
    json!({
        "layers": lookup.layers.iter().map(layer).collect::<Vec<_>>(),
        "coefficients": word(lookup.coefficients),
        "columns": lookup.columns.iter().map(column).collect::<Vec<_>>(),
    })
}

fn values(lookup: &ValueLookup) -> Value {
    json!({
        "value": lookup.value,
        "range": lookup.range,
        "bucket": lookup.bucket,
        "buckets": lookup.buckets,
        "first_bit": lookup.bits.start,
        "end_bit": lookup.bits.end,
        "decoded": lookup.decoded,
        "found": lookup.found,
        "before": lookup.before,
        "behind": lookup.behind,
    })
}

fn generations(lookup: &GenerationLookup) -> Value {
    let generation = |generation: &mayhap::explain::GenerationProbe| {
        let mut fields = blocks(&generation.blocks);
        fields["age"] = generation.age.into();
        fields["inserted"] = generation.inserted.into();
        fields["capacity"] = generation.capacity.into();
        fields
    };
    json!({ "generations": lookup.generations.iter().map(generation).collect::<Vec<_>>() })
}
