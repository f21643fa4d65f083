//! `BF.INFO`, `BF.CARD`, `BF.DEBUG`. They also work for a filter that is being loaded: its header has all the data they need.

use mayhap::ScalableBloom;
use mayhap_formats::redis_bloom;

use crate::context::Context;
use crate::number;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::Request;
use crate::value::Value;

/// The filter and the number of items it counted.
fn look(value: Option<&Value>) -> Result<(&ScalableBloom, u64), Refusal> {
    match value {
        None => Err(Refusal::NotFound),
        Some(Value::Bloom(filter)) => Ok((filter.uncounted(), filter.inserted())),
        Some(Value::LoadingBloom(loader)) => {
            let filter = loader.filter().ok_or(Refusal::NotFound)?;
            Ok((filter, filter.inserted()))
        }
        Some(_) => Err(Refusal::WrongType),
    }
}

/// `BF.CARD key`.
pub(super) fn card(_: &Request<'_>, value: Option<&Value>, _: &Context<'_>) -> Result<Reply, Refusal> {
    match look(value) {
        Ok((_, inserted)) => Ok(Reply::count(inserted)),
        Err(Refusal::NotFound) => Ok(Reply::Integer(0)),
        Err(refusal) => Err(refusal),
    }
}

/// `BF.INFO key [field]`. The reply for a single field is an array of one value, in RESP3 a map of one pair.
pub(super) fn info(request: &Request<'_>, value: Option<&Value>, _: &Context<'_>) -> Result<Reply, Refusal> {
    if request.words.len() > 3 {
        return Err(Refusal::WrongArity { command: request.command.name });
    }
    let (filter, inserted) = look(value)?;
    let expansion = match filter.shape().grows() {
        true => Reply::count(filter.shape().growth_factor() as u64),
        false => Reply::Null,
    };
    let fields = [
        ("CAPACITY", "Capacity", Reply::count(filter.capacity())),
        ("SIZE", "Size", Reply::count(redis_bloom::info_size_bytes(filter))),
        ("FILTERS", "Number of filters", Reply::count(filter.layers().len() as u64)),
        ("ITEMS", "Number of items inserted", Reply::count(inserted)),
        ("EXPANSION", "Expansion rate", expansion),
    ];
    let Some(word) = request.words.get(2) else {
        let pair = |(_, name, value)| (Reply::simple(name), value);
        return Ok(Reply::Map(fields.into_iter().map(pair).collect()));
    };
    let field = fields.into_iter().find(|(option, ..)| word.eq_ignore_ascii_case(option.as_bytes()));
    let (_, name, value) = field.ok_or(Refusal::InvalidInformation)?;
    Ok(Reply::Split {
        resp2: Box::new(Reply::Array(vec![value.clone()])),
        resp3: Box::new(Reply::Map(vec![(Reply::simple(name), value)])),
    })
}

/// `BF.DEBUG key`.
pub(super) fn debug(_: &Request<'_>, value: Option<&Value>, _: &Context<'_>) -> Result<Reply, Refusal> {
    let (filter, inserted) = look(value)?;
    let layers = filter.layers();
    let older = layers.iter().rev().skip(1).map(mayhap::Bloom::inserted).sum::<u64>();
    let mut lines = vec![Reply::bulk(format!("size:{inserted}"))];
    for (index, layer) in layers.iter().enumerate() {
        let shape = layer.shape();
        let is_newest = index + 1 == layers.len();
        let size = if is_newest { inserted.saturating_sub(older) } else { layer.inserted() };
        lines.push(Reply::bulk(format!(
            "bytes:{} bits:{} hashes:{} hashwidth:64 capacity:{} size:{size} ratio:{}",
            shape.bits() / 8,
            shape.bits(),
            shape.probes(),
            shape.capacity(),
            number::general(shape.target_fpr()),
        )));
    }
    Ok(Reply::Array(lines))
}
