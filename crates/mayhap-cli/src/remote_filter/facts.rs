//! What a server says of a filter. The field names are those of `--json`, and a promise.

use std::io::{self, Write};

use mayhap::advise::say;
use mayhap_command::Health;
use mayhap_remote::guava::GuavaBitmap;
use mayhap_remote::redis::Value;
use mayhap_remote::{RedissonFilter, ShardedFilter};
use serde::Serialize;
use serde_json::{Map, json};

use super::{Fullness, Server};
use crate::output::{self, HEADING};
use crate::trouble::Trouble;

/// What is known of a filter in a server.
#[derive(Debug, Serialize)]
pub(crate) struct ServerFacts {
    /// Its address.
    pub(super) filter: String,
    /// What it is.
    layout: String,
    /// What the server, or the layout, says of it.
    fields: Map<String, serde_json::Value>,
    /// The fields in the order in which they were told.
    #[serde(skip)]
    order: Vec<String>,
    /// Whether it is wrong more often than it was made to be, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) over_capacity: Option<bool>,
    pub(super) warnings: Vec<String>,
}

impl ServerFacts {
    pub(super) fn new(layout: &str) -> Self {
        Self {
            filter: String::new(),
            layout: layout.to_owned(),
            fields: Map::new(),
            order: Vec::new(),
            over_capacity: None,
            warnings: Vec::new(),
        }
    }

    /// How full it is, by what the server says; `None` where it does not say what the filter was made for.
    pub(super) fn fullness(&self) -> Option<Fullness> {
        let number = |name: &str| match self.fields.get(name)? {
            serde_json::Value::Number(number) => number.as_f64(),
            serde_json::Value::String(text) => text.parse().ok(),
            _ => None,
        };
        let (target_fpr, expected_fpr) = (number("target_fpr")?, number("expected_fpr")?);
        let is_over = match self.fields.get("health").and_then(serde_json::Value::as_str) {
            Some(health) => health != Health::Ok.name(),
            None => Health::of(target_fpr, expected_fpr) != Health::Ok,
        };
        Some(Fullness {
            items: number("inserted")? as u64,
            capacity: number("capacity")? as u64,
            target_fpr,
            expected_fpr,
            server_says: Some(is_over),
        })
    }

    pub(super) fn add(&mut self, name: &str, value: impl Into<serde_json::Value>) {
        self.order.push(name.to_owned());
        self.fields.insert(name.to_owned(), value.into());
    }

    /// A field as the server has it.
    pub(super) fn add_reply(&mut self, name: &Value, value: &Value) {
        let name = match name {
            Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::SimpleString(text) => text.clone(),
            _ => return,
        };
        self.add(&name, readable(value));
    }

    /// For people.
    pub(crate) fn write(&self, out: &mut dyn Write, width: usize) -> io::Result<()> {
        writeln!(out, "{HEADING}{}{HEADING:#}", self.filter)?;
        let wide =
            self.fields.keys().map(|name| name.chars().count()).max().unwrap_or(0).max("warning".len()) + 2;
        output::paragraph(out, &self.layout, &format!("  {:<wide$}", "is"), width)?;
        for (name, value) in self.order.iter().filter_map(|name| Some((name, self.fields.get(name)?))) {
            let is_rate = name.ends_with("_fpr") || name.ends_with("probability");
            let said = match value {
                serde_json::Value::Number(rate) if is_rate => {
                    rate.as_f64().map_or(rate.to_string(), say::rate)
                }
                serde_json::Value::Number(number) => number.as_u64().map_or(number.to_string(), say::count),
                serde_json::Value::Array(list) if list.is_empty() => "none".into(),
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Null => "-".into(),
                other => other.to_string(),
            };
            output::paragraph(out, &said, &format!("  {name:<wide$}"), width)?;
        }
        for warning in &self.warnings {
            output::paragraph(out, warning, &format!("  {:<wide$}", "warning"), width)?;
        }
        Ok(())
    }
}

/// A reply as JSON. Nothing in it is deeper than lists of lists.
fn readable(value: &Value) -> serde_json::Value {
    match value {
        Value::Int(number) => json!(number),
        Value::Double(number) => json!(number),
        Value::Boolean(yes) => json!(yes),
        Value::BulkString(bytes) => json!(String::from_utf8_lossy(bytes)),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => json!(text),
        Value::Okay => json!("OK"),
        Value::Array(list) | Value::Set(list) => list.iter().map(readable).collect(),
        _ => serde_json::Value::Null,
    }
}

pub(super) fn of_sharded(server: &Server, filter: &ShardedFilter) -> Result<ServerFacts, Trouble> {
    let report = server.wait(filter.info())?;
    let measures = report.measures();
    let mut facts = ServerFacts::new("one filter in shards, which mayhap spreads over the servers");
    facts.add("backend", measures.backend().name());
    facts.add("shards", measures.shards());
    facts.add("shards_not_ready", report.missing().count());
    facts.add("capacity", measures.capacity());
    facts.add("target_fpr", measures.target_fpr());
    facts.add("items", report.inserted());
    facts.add("expected_fpr", report.expected_fpr());
    facts.add("worst_shard_fpr", measures.worst_shard_fpr());
    facts.add("fullest_shard_items", report.fullest());
    facts.add("shard_capacity", measures.shard_capacity());
    facts.add("generation", report.generation());
    facts.add("generations_being_built", report.building());
    Ok(facts)
}

pub(super) fn of_redisson(server: &Server, filter: &RedissonFilter) -> Result<ServerFacts, Trouble> {
    let config = server.wait(filter.config())?;
    let ones = server.wait(filter.ones())?;
    let mut facts = ServerFacts::new("Redisson's RBloomFilter: a bitmap, and a config beside it");
    facts.add("size", config.size());
    facts.add("hash_iterations", config.hash_iterations());
    facts.add("expected_insertions", config.expected_insertions());
    facts.add("false_probability", config.false_probability());
    facts.add("bits_set", ones);
    facts.add("estimated_items", server.wait(filter.count())?);
    let fill = ones as f64 / config.size() as f64;
    facts.add("expected_fpr", fill.powi(config.hash_iterations() as i32));
    Ok(facts)
}

pub(super) fn of_guava(server: &Server, bitmap: &GuavaBitmap) -> Result<ServerFacts, Trouble> {
    let mut facts = ServerFacts::new("a bitmap with Guava's placement, as the command line says");
    facts.add("bits", bitmap.shape().bits());
    facts.add("probes", bitmap.shape().probes());
    facts.add("estimated_items", server.wait(bitmap.estimated_items())?);
    Ok(facts)
}
