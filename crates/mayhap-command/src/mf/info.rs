//! `MF.INFO key [field]`.

use mayhap::figures;

use super::holder_of;
use super::refused::{MayhapRefusal, NotReady};
use crate::context::Context;
use crate::health;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::Request;
use crate::value::Value;

/// The fields that need the bits to be read. A request for another field skips that work.
const FROM_BITS: [&str; 4] = ["fill", "expected_fpr", "health", "inserted"];

/// `MF.INFO key [field]`. Works for a filter that cannot answer yet.
pub(super) fn info(
    request: &Request<'_>,
    value: Option<&Value>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let holder = holder_of(value)?.ok_or(NotReady::Missing)?;
    let asks =
        |name: &&str| request.words.get(2).is_none_or(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let sampling =
        if FROM_BITS.iter().any(asks) { health::look(holder.memory_bytes()) } else { health::glance() };
    let facts = holder.facts(sampling);
    let age_ms = context.environment.now_ms().saturating_sub(facts.created_ms);
    let bits_per = |items| Reply::Double(figures::bits_per(facts.memory_bytes, items).unwrap_or(0.0));
    let fields = [
        ("kind", Reply::bulk(facts.kind.map_or("unknown", mayhap::Kind::name))),
        ("state", Reply::bulk(facts.state)),
        ("next", Reply::bulk(facts.next)),
        ("generation", Reply::Integer(facts.generation.into())),
        ("age_secs", Reply::count(age_ms / 1_000)),
        ("placement", Reply::bulk(facts.placement)),
        ("keyed", Reply::Boolean(facts.keyed)),
        ("capacity", Reply::count(facts.capacity)),
        ("inserted", Reply::count(facts.inserted)),
        ("target_fpr", Reply::Double(facts.target_fpr)),
        ("expected_fpr", Reply::Double(facts.expected_fpr)),
        ("load", Reply::Double(figures::load(facts.inserted, facts.capacity))),
        ("fill", Reply::Double(facts.fill)),
        ("health", Reply::bulk(facts.health.name())),
        ("layers", Reply::count(facts.layers)),
        ("memory_bytes", Reply::count(facts.memory_bytes)),
        ("bits_per_item", bits_per(facts.capacity)),
        ("bits_per_inserted", bits_per(facts.inserted)),
    ];
    match request.words.get(2) {
        None => Ok(Reply::Map(fields.map(|(name, value)| (Reply::bulk(name), value)).into())),
        Some(word) => fields
            .into_iter()
            .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
            .ok_or_else(|| MayhapRefusal::UnknownField { word: MayhapRefusal::quote(word) }.into()),
    }
}
