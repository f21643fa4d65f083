//! The plan as programs read it: one object. Field names are a promise; new ones may come, these stay.

use std::io::{self, Write};

use mayhap::BlockedLayout;
use mayhap::advise::{Advice, Needs, Price, Structure};
use serde::Serialize;

use super::Solved;

#[derive(Serialize)]
struct PlanJson<'a> {
    /// Items it is for.
    items: u64,
    /// The rate asked for, or solved for: then 0 where something exact is recommended, and null where nothing is.
    target_fpr: Option<f64>,
    memory_limit_bytes: Option<u64>,
    /// Which of `items`, `fpr` and `memory` was not given; null if all were.
    solved_for: Option<&'static str>,
    /// The name of the best that suits; null if nothing does.
    recommended: Option<&'static str>,
    why: &'a [String],
    rust: Option<&'a str>,
    notes: Vec<String>,
    /// Best first.
    prices: Vec<PriceJson>,
}

#[derive(Serialize)]
struct PriceJson {
    /// What `recommended` calls it.
    name: &'static str,
    /// The kind of filter; null for the structures that are none of ours.
    kind: Option<&'static str>,
    /// The layout of a blocked filter.
    layout: Option<&'static str>,
    suits: bool,
    why_not: Vec<String>,
    memory_bytes: Option<u64>,
    /// The rate it is sized for; 0 for what is never wrong. Each has its own where the rate was solved for.
    target_fpr: Option<f64>,
    bits_per_item: Option<f64>,
    over_bound: Option<f64>,
    probes: Option<u32>,
    lines_miss: Option<f64>,
    lines_hit: Option<f64>,
    expected_fpr: Option<f64>,
    can: CanJson,
}

#[derive(Serialize)]
struct CanJson {
    delete: bool,
    grow: bool,
    merge: bool,
    exact: bool,
    threads: bool,
    certain_no: bool,
}

pub(super) fn write(out: &mut dyn Write, needs: &Needs, solved: Solved, advice: &Advice) -> io::Result<()> {
    let plan = PlanJson {
        items: needs.items,
        target_fpr: match solved {
            Solved::Rate => advice.recommended().and_then(|price| Some(price.cost?.target_fpr)),
            _ => Some(needs.target_fpr),
        },
        memory_limit_bytes: needs.memory_limit_bytes,
        solved_for: match solved {
            Solved::Items => Some("items"),
            Solved::Rate => Some("fpr"),
            Solved::Memory => Some("memory"),
            Solved::Nothing => None,
        },
        recommended: advice.recommended().map(|price| price.structure.name()),
        why: &advice.why,
        rust: advice.rust.as_deref(),
        notes: advice.notes.iter().map(ToString::to_string).collect(),
        prices: advice.prices.iter().map(PriceJson::from).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &plan)?;
    writeln!(out)
}

impl From<&Price> for PriceJson {
    fn from(price: &Price) -> Self {
        let (cost, can) = (price.cost.as_ref(), &price.can);
        Self {
            name: price.structure.name(),
            kind: price.structure.kind().map(mayhap::Kind::name),
            layout: match price.structure {
                Structure::BlockedBloom(BlockedLayout::Split256) => Some("split-256"),
                Structure::BlockedBloom(BlockedLayout::Line512) => Some("line-512"),
                _ => None,
            },
            suits: price.suits(),
            why_not: price.misfits.iter().map(ToString::to_string).collect(),
            memory_bytes: cost.map(|cost| cost.memory_bytes),
            target_fpr: cost.map(|cost| cost.target_fpr),
            bits_per_item: cost.map(|cost| cost.bits_per_item),
            over_bound: cost.map(|cost| cost.over_bound),
            probes: cost.map(|cost| cost.probes),
            lines_miss: cost.map(|cost| cost.lines_miss),
            lines_hit: cost.map(|cost| cost.lines_hit),
            expected_fpr: cost.map(|cost| cost.expected_fpr),
            can: CanJson {
                delete: can.deletes,
                grow: can.grows,
                merge: can.merges,
                exact: can.exact,
                threads: can.threads,
                certain_no: can.certain_no,
            },
        }
    }
}
