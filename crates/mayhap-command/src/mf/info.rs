//! `MF.INFO name [field]`.

use super::holder_of;
use super::refused::{MayhapRefusal, NotReady};
use crate::context::Context;
use crate::health;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::Request;
use crate::value::Value;

/// Fields that the bits are read for. Who asks for another one does not wait for that.
const FROM_BITS: [&str; 4] = ["fill", "expected_fpr", "health", "inserted"];

/// `MF.INFO name [field]`: also of a filter that does not serve yet.
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
    let bits_per_item = match facts.inserted {
        0 => 0.0,
        inserted => facts.memory_bytes as f64 * 8.0 / inserted as f64,
    };
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
        ("fill", Reply::Double(facts.fill)),
        ("health", Reply::bulk(facts.health.name())),
        ("layers", Reply::count(facts.layers)),
        ("memory_bytes", Reply::count(facts.memory_bytes)),
        ("bits_per_item", Reply::Double(bits_per_item)),
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
