//! `CF.INFO`, `CF.DEBUG`. They also work for a filter that is being loaded: its header has all the data they need.

use mayhap::ScalableCuckoo;
use mayhap_formats::redis_cuckoo;

use crate::context::Context;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::Request;
use crate::value::Value;

fn look(value: Option<&Value>) -> Result<&ScalableCuckoo, Refusal> {
    match value {
        None => Err(Refusal::NotFound),
        Some(Value::Cuckoo(filter)) => Ok(filter),
        Some(Value::LoadingCuckoo(loader)) => loader.filter().ok_or(Refusal::NotFound),
        Some(_) => Err(Refusal::WrongType),
    }
}

/// `CF.INFO key`. *Number of buckets* is that of the first sub-filter.
pub(super) fn info(_: &Request<'_>, value: Option<&Value>, _: &Context<'_>) -> Result<Reply, Refusal> {
    let filter = look(value)?;
    let shape = filter.shape();
    let fields = [
        ("Size", redis_cuckoo::info_size_bytes(filter)),
        ("Number of buckets", shape.buckets()),
        ("Number of filters", filter.tables() as u64),
        ("Number of items inserted", filter.inserted()),
        ("Number of items deleted", filter.removed()),
        ("Bucket size", shape.bucket_size().into()),
        ("Expansion rate", shape.expansion().into()),
        ("Max iterations", shape.max_iterations().into()),
    ];
    let pair = |(name, number)| (Reply::simple(name), Reply::count(number));
    Ok(Reply::Map(fields.into_iter().map(pair).collect()))
}

/// `CF.DEBUG key`.
pub(super) fn debug(_: &Request<'_>, value: Option<&Value>, _: &Context<'_>) -> Result<Reply, Refusal> {
    let filter = look(value)?;
    let shape = filter.shape();
    Ok(Reply::bulk(format!(
        "bktsize:{} buckets:{} items:{} deletes:{} filters:{} max_iterations:{} expansion:{}",
        shape.bucket_size(),
        shape.buckets(),
        filter.inserted(),
        filter.removed(),
        filter.tables(),
        shape.max_iterations(),
        shape.expansion(),
    )))
}
