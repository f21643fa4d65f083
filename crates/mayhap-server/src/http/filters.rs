//! `/api/v1/filters`: the list of filters, one filter, and its answers.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::Json;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mayhap::figures;
use mayhap_command::{Refusal, Reply, Request, Scratch, Touch, Value as Held, names, table};
use mayhap_engine::Detail;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Problem, permit};
use crate::shared::Shared;
use crate::users::User;

/// The default number of filters on a page.
const COUNT: u64 = 50;
/// The maximum number of filters on a page.
const MOST: u64 = 1_000;
/// The maximum number of items in a probe.
const MOST_ITEMS: usize = 10_000;
const PREFIX: &str = "/api/v1/filters/";
const PROBE: &str = "/probe";

#[derive(Debug, Deserialize)]
pub(super) struct ListQuery {
    cursor: Option<u64>,
    count: Option<u64>,
    r#match: Option<String>,
}

/// A page of the list.
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(user): Extension<Arc<User>>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Value>, Problem> {
    permit(&shared, &user, &[names::SCAN.as_bytes(), b"0"])?;
    let count = query.count.unwrap_or(COUNT).clamp(1, MOST);
    let pattern = query.r#match.as_deref().map(str::as_bytes);
    let page = shared.engine().page(query.cursor.unwrap_or(0), count, pattern);
    let seen = page.details.iter().filter(|detail| user.may_touch(&detail.name, Touch::Read));
    let filters: Vec<Value> = seen.map(describe).collect();
    // A string: cursors have 64 bits, JavaScript's numbers only 53.
    let next = (page.next != 0).then(|| page.next.to_string());
    Ok(Json(json!({ "filters": filters, "next": next, "total": shared.engine().totals().names })))
}

/// One filter.
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(user): Extension<Arc<User>>,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let name = name(uri.path());
    permit(&shared, &user, &[names::MF_INFO.as_bytes(), &name])?;
    let detail = shared.engine().detail(&name).ok_or_else(missing)?;
    Ok(Json(describe(&detail)))
}

#[derive(Debug, Deserialize)]
pub(super) struct Probe {
    items: Vec<Item>,
}

/// An item: text, or any bytes.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Item {
    Text(String),
    Bytes { base64: String },
}

/// Returns the answers of a filter for some items: `no`, `mayhap` or `not-ready`.
pub(super) async fn probe(
    State(shared): State<Arc<Shared>>,
    Extension(user): Extension<Arc<User>>,
    uri: Uri,
    Json(probe): Json<Probe>,
) -> Result<Json<Value>, Problem> {
    let path = uri.path().strip_suffix(PROBE);
    let path =
        path.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "POST needs a path that ends in /probe"))?;
    let name = name(path);
    if probe.items.is_empty() || probe.items.len() > MOST_ITEMS {
        let what = format!("{} items: a probe must have 1 to {MOST_ITEMS} items", probe.items.len());
        return Err(Problem::new(StatusCode::BAD_REQUEST, what));
    }
    let items: Result<Vec<Vec<u8>>, _> = probe
        .items
        .into_iter()
        .map(|item| match item {
            Item::Text(text) => Ok(text.into_bytes()),
            Item::Bytes { base64 } => STANDARD.decode(base64),
        })
        .collect();
    let items = items.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, format!("base64: {error}")))?;
    permit(&shared, &user, &[names::MF_MEXISTS.as_bytes(), &name, b""])?;
    let detail = shared.engine().detail(&name).ok_or_else(missing)?;
    if !detail.description.is_ready {
        return Ok(Json(json!({ "answers": vec!["not-ready"; items.len()] })));
    }
    let command = Held::lookup_of_type(detail.description.type_name);
    let cannot = || Problem::new(StatusCode::CONFLICT, "this type does not answer lookups of items");
    let command = table::find(command.as_bytes()).ok_or_else(cannot)?;
    let mut words: Vec<&[u8]> = vec![command.name.as_bytes(), &name];
    words.extend(items.iter().map(Vec::as_slice));
    permit(&shared, &user, &words)?;
    let mut replies = Vec::new();
    shared.engine().execute(&[Request { command, words: &words }], &mut Scratch::default(), &mut replies);
    let answers = match replies.pop() {
        Some(Reply::Refused(refusal)) => return refused(&refusal, items.len()),
        Some(reply) => answers(&reply).filter(|answers| answers.len() == items.len()),
        None => None,
    };
    Ok(Json(json!({ "answers": answers.ok_or_else(cannot)? })))
}

fn refused(refusal: &Refusal, items: usize) -> Result<Json<Value>, Problem> {
    let text = refusal.to_string();
    match text.starts_with("NOTREADY") {
        true => Ok(Json(json!({ "answers": vec!["not-ready"; items] }))),
        false => Err(Problem::new(StatusCode::CONFLICT, text)),
    }
}

fn answers(reply: &Reply) -> Option<Vec<&'static str>> {
    let say = |yes: bool| if yes { "mayhap" } else { "no" };
    match reply {
        Reply::Booleans(answers) => Some(answers.iter().map(say).collect()),
        Reply::Array(replies) => replies
            .iter()
            .map(|reply| match reply {
                Reply::Boolean(yes) => Some(say(*yes)),
                Reply::Integer(number) => Some(say(*number != 0)),
                Reply::Refused(refusal) if refusal.to_string().starts_with("NOTREADY") => Some("not-ready"),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

fn missing() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no filter with this name")
}

/// Decodes the name in a path.
fn name(path: &str) -> Vec<u8> {
    percent_decode_str(path.strip_prefix(PREFIX).unwrap_or_default()).collect()
}

/// Describes a name, which may be any bytes. A name that is not UTF-8 is shown with replacement characters,
/// and in full as base64.
fn describe(detail: &Detail) -> Value {
    let described = &detail.description;
    let mut value = json!({
        "name": String::from_utf8_lossy(&detail.name),
        "type": described.type_name,
        "kind": described.kind,
        "ready": described.is_ready,
        "keyed": described.keyed,
        "items": described.items,
        "inserted": described.items,
        "capacity": described.capacity,
        "load": described.load(),
        "fill": described.fill,
        "target_fpr": described.target_fpr,
        "expected_fpr": described.expected_fpr,
        "health": described.health.name(),
        "memory_bytes": described.memory_bytes,
        "bits_per_item": figures::bits_per(described.memory_bytes, described.capacity),
        "bits_per_inserted": figures::bits_per(described.memory_bytes, described.items),
        "total_bytes": detail.total_bytes,
        "layers": described.layers,
        "generation": described.generation,
        "age_secs": detail.age_secs,
        "idle_secs": detail.idle_secs,
        "hits": detail.hits,
        "misses": detail.misses,
        "ttl_ms": detail.ttl_ms,
    });
    if std::str::from_utf8(&detail.name).is_err() {
        value["name_base64"] = STANDARD.encode(&detail.name).into();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bytes() {
        assert_eq!(name("/api/v1/filters/seen"), b"seen");
        assert_eq!(name("/api/v1/filters/a%2Fb%20%FF/c"), b"a/b \xff/c");
    }

    #[test]
    fn answers_have_three_values() {
        let not_ready = Reply::Refused(Box::new(Refusal::NotFound));
        assert_eq!(answers(&Reply::Array(vec![not_ready])), None);
        let replies = Reply::Array(vec![Reply::Boolean(true), Reply::Integer(0)]);
        assert_eq!(answers(&replies).unwrap(), ["mayhap", "no"]);
    }
}
