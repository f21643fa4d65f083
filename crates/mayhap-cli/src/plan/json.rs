//! The plan as one JSON object. Fields may be added; these names must not change.

use std::io::{self, Write};

use mayhap::BlockedLayout;
use mayhap_advise::{Advice, Needs, Price, Structure, build_line, mayhap_reserve, redis_reserve, rust_for};
use serde::Serialize;

use super::Solved;

#[derive(Serialize)]
struct PlanJson<'a> {
    /// The number of items.
    items: u64,
    /// The rate that was given or solved for. If solved for: 0 if something exact is recommended, null if nothing is.
    target_fpr: Option<f64>,
    memory_limit_bytes: Option<u64>,
    /// The number of probes that was given.
    probes: Option<u32>,
    /// Which of `items`, `fpr` and `memory` was not given; null if all were. If probes were given with only one of the others,
    /// the rate follows from the probes, and this is the number that follows from both.
    solved_for: Option<&'static str>,
    /// The name of the best structure that suits; null if none does.
    recommended: Option<&'static str>,
    why: &'a [String],
    /// A better structure if no file is needed; null if there is none.
    recommended_without_file: Option<&'static str>,
    /// How to create the recommended structure; null if that way does not exist.
    #[serde(flatten)]
    make: MakeJson,
    notes: Vec<String>,
    /// Best first.
    prices: Vec<PriceJson>,
}

#[derive(Serialize)]
struct PriceJson {
    /// Its name in `recommended`.
    name: &'static str,
    /// The kind of filter; null for structures that are not mayhap's.
    kind: Option<&'static str>,
    /// The layout of a blocked filter.
    layout: Option<&'static str>,
    suits: bool,
    why_not: Vec<String>,
    /// The items it is sized for. Differs by structure if the items were solved for.
    items: Option<u64>,
    memory_bytes: Option<u64>,
    /// The rate it is sized for; 0 for exact structures. Differs by structure if the rate was solved for.
    target_fpr: Option<f64>,
    bits_per_item: Option<f64>,
    over_bound: Option<f64>,
    probes: Option<u32>,
    lines_miss: Option<f64>,
    lines_hit: Option<f64>,
    expected_fpr: Option<f64>,
    can: CanJson,
    /// How to create it, whether it suits or not; null if that way does not exist.
    #[serde(flatten)]
    make: MakeJson,
}

/// The ways to create one structure.
#[derive(Default, Serialize)]
struct MakeJson {
    /// A `mayhap build` line.
    build: Option<String>,
    /// Lines of Rust.
    rust: Option<String>,
    /// A `BF.RESERVE` command, for a Redis with RedisBloom.
    bf_reserve: Option<String>,
    /// A `CF.RESERVE` command, for a Redis with RedisBloom.
    cf_reserve: Option<String>,
    /// An `MF.RESERVE` command, for mayhap's server.
    mf_reserve: Option<String>,
}

impl MakeJson {
    fn of(price: &Price, needs: &Needs) -> Self {
        if price.cost.is_none() {
            return Self::default();
        }
        let (structure, needs) = (price.structure, &price.sized(needs));
        let reserve = redis_reserve(structure, needs).ok().map(|reserve| reserve.line);
        let beginning = |start: &str| reserve.clone().filter(|line| line.starts_with(start));
        Self {
            build: build_line(structure, needs),
            rust: Some(rust_for(structure, needs)).filter(|lines| !lines.is_empty()),
            bf_reserve: beginning("BF."),
            cf_reserve: beginning("CF."),
            mf_reserve: mayhap_reserve(structure, needs),
        }
    }
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

pub(super) fn write(
    out: &mut dyn Write,
    needs: &Needs,
    solved: Solved,
    advice: &Advice,
    without_file: Option<&Advice>,
) -> io::Result<()> {
    let name = |price: &Price| price.structure.name();
    let plan = PlanJson {
        items: needs.items,
        target_fpr: match solved {
            Solved::Rate => advice.recommended().and_then(|price| Some(price.cost?.target_fpr)),
            _ => Some(needs.target_fpr),
        },
        memory_limit_bytes: needs.memory_limit_bytes,
        probes: needs.probes,
        solved_for: match solved {
            Solved::Items | Solved::RateAndItems => Some("items"),
            Solved::Rate => Some("fpr"),
            Solved::Memory | Solved::RateAndMemory => Some("memory"),
            Solved::Nothing => None,
        },
        recommended: advice.recommended().map(name),
        recommended_without_file: without_file.and_then(Advice::recommended).map(name),
        why: &advice.why,
        make: advice.recommended().map_or_else(MakeJson::default, |price| MakeJson::of(price, needs)),
        notes: advice.notes.iter().map(ToString::to_string).collect(),
        prices: advice.prices.iter().map(|price| PriceJson::of(price, needs)).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &plan)?;
    writeln!(out)
}

impl PriceJson {
    fn of(price: &Price, needs: &Needs) -> Self {
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
            why_not: price.unsuitable.iter().map(ToString::to_string).collect(),
            items: cost.map(|cost| cost.items),
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
            make: MakeJson::of(price, needs),
        }
    }
}
