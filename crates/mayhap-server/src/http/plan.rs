//! `/api/v1/plan`: advice on which filter to use and how large it is.

use axum::http::StatusCode;
use axum::response::Json;
use mayhap_advise::{Deletes, Growth, Needs, Price, advise, build_line, mayhap_reserve, redis_reserve};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Problem;

/// The requirements for a filter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    items: u64,
    target_fpr: f64,
    #[serde(default)]
    memory_limit_bytes: Option<u64>,
    #[serde(default)]
    growth: Option<AskedGrowth>,
    /// Items are added and removed continuously.
    #[serde(default)]
    deletes: bool,
    #[serde(default)]
    untrusted: bool,
    #[serde(default)]
    lookups_per_day: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AskedGrowth {
    UpToItems,
    Static,
    Unknown,
    Window,
}

/// Returns the advice for these requirements.
pub(super) async fn plan(Json(asked): Json<Asked>) -> Result<Json<Value>, Problem> {
    let mut needs = Needs::new(asked.items, asked.target_fpr);
    needs.memory_limit_bytes = asked.memory_limit_bytes;
    needs.lookups_per_day = asked.lookups_per_day;
    needs.untrusted = asked.untrusted;
    needs.deletes = if asked.deletes { Deletes::Endlessly } else { Deletes::Never };
    needs.growth = match asked.growth.unwrap_or(AskedGrowth::UpToItems) {
        AskedGrowth::UpToItems => Growth::UpToItems,
        AskedGrowth::Static => Growth::AllAtOnce,
        AskedGrowth::Unknown => Growth::Unknown,
        AskedGrowth::Window => Growth::Window,
    };
    let advice =
        advise(&needs).map_err(|error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?;
    let prices: Vec<Value> = advice.prices.iter().map(|price| describe(price, &needs)).collect();
    Ok(Json(json!({
        "items": needs.items,
        "target_fpr": needs.target_fpr,
        "memory_limit_bytes": needs.memory_limit_bytes,
        "recommended": advice.recommended().map(|price| price.structure.name()),
        "why": advice.why,
        "notes": advice.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "prices": prices,
    })))
}

fn describe(price: &Price, needs: &Needs) -> Value {
    let (structure, sized) = (price.structure, price.sized(needs));
    let cost = price.cost.as_ref();
    let make = cost.is_some();
    let reserve = redis_reserve(structure, &sized).ok().filter(|_| make).map(|reserve| reserve.line);
    json!({
        "name": structure.name(),
        "kind": structure.kind().map(mayhap::Kind::name),
        "suits": price.suits(),
        "why_not": price.unsuitable.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "memory_bytes": cost.map(|cost| cost.memory_bytes),
        "bits_per_item": cost.map(|cost| cost.bits_per_item),
        "expected_fpr": cost.map(|cost| cost.expected_fpr),
        "lines_miss": cost.map(|cost| cost.lines_miss),
        "lines_hit": cost.map(|cost| cost.lines_hit),
        "redis_reserve": reserve,
        "mf_reserve": mayhap_reserve(structure, &sized).filter(|_| make),
        "build": build_line(structure, &sized).filter(|_| make),
    })
}
