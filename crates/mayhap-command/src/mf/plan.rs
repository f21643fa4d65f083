//! `MF.PLAN capacity fpr [option …]`, or with the options of `MF.RESERVE`: recommends a kind, with the reasons and the cost of every
//! kind.

use mayhap_advise::{Price, advise, mayhap_reserve};

use super::options::Options;
use super::refused::MayhapRefusal;
use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::Request;
use crate::value::Value;

/// `MF.PLAN capacity fpr [option …]`. It accesses no key.
pub(super) fn plan(
    request: &Request<'_>,
    _value: Option<&Value>,
    _context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let needs = Options::parse_needs(&request.words[1..])?;
    let advice = advise(&needs).map_err(MayhapRefusal::Needs)?;
    let best = advice.recommended();
    let served = advice.prices.iter().find(|price| price.suits() && price.structure.kind().is_some());
    let line = served.and_then(|price| mayhap_reserve(price.structure, &price.sized(&needs)));
    let bytes = best.and_then(|price| price.cost).map_or(Reply::Null, |cost| Reply::count(cost.memory_bytes));
    let text = |text: &str| Reply::bulk(text);
    Ok(Reply::Map(vec![
        (text("kind"), best.map_or(Reply::Null, |price| text(price.structure.name()))),
        (text("memory_bytes"), bytes),
        (text("why"), Reply::Array(advice.why.iter().map(|why| text(why)).collect())),
        (text("reserve"), line.map_or(Reply::Null, Reply::bulk)),
        (text("prices"), Reply::Array(advice.prices.iter().map(price).collect())),
    ]))
}

fn price(price: &Price) -> Reply {
    let text = |text: &str| Reply::bulk(text);
    let unsuitable = price.unsuitable.iter().map(|reason| Reply::bulk(reason.to_string())).collect();
    let cost = |of: fn(&mayhap_advise::Cost) -> Reply| price.cost.as_ref().map_or(Reply::Null, of);
    Reply::Map(vec![
        (text("kind"), text(price.structure.name())),
        (text("suits"), Reply::Boolean(price.suits())),
        (text("memory_bytes"), cost(|cost| Reply::count(cost.memory_bytes))),
        (text("bits_per_item"), cost(|cost| Reply::Double(cost.bits_per_item))),
        (text("expected_fpr"), cost(|cost| Reply::Double(cost.expected_fpr))),
        (text("misfits"), Reply::Array(unsuitable)),
    ])
}
