//! The facts about a filter in a server. The field names are those of `--json` and must not change.

use std::io::{self, Write};

use mayhap::{figures, say};
use mayhap_command::Health;
use mayhap_formats::Format;
use mayhap_remote::guava::GuavaBitmap;
use mayhap_remote::redis::Value;
use mayhap_remote::{RedissonFilter, ShardedFilter};
use serde::Serialize;
use serde_json::{Map, json};

use super::{Fullness, Server};
use crate::error::CliError;
use crate::info::lines::{Figures, Storage};
use crate::output::{self, HEADING};
use crate::remote::Family;

/// The facts about a filter in a server: first the fields that a file has, in the same order and empty where the server does not report them;
/// then the fields that only a server has.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ServerFacts {
    /// Its address.
    pub(super) file: String,
    pub(super) format: &'static str,
    pub(super) kind: Option<String>,
    pub(super) shape: Option<String>,
    pub(super) hash: Option<&'static str>,
    pub(super) secret_key: Option<bool>,
    pub(super) placement: Option<String>,
    pub(super) items_as: Option<&'static str>,
    pub(super) items_as_unknown: bool,
    pub(super) capacity: Option<u64>,
    pub(super) inserted: Option<u64>,
    pub(super) inserted_unknown: bool,
    load: Option<f64>,
    pub(super) target_fpr: Option<f64>,
    pub(super) expected_fpr: Option<f64>,
    /// Servers report the higher of the rates from the count and from the bits; only shards are counted here.
    fpr_from_count: Option<f64>,
    pub(super) over_capacity: Option<bool>,
    pub(super) fill: Option<f64>,
    pub(super) fill_of: Option<&'static str>,
    pub(super) estimated_items: Option<u64>,
    pub(super) fpr_from_fill: Option<f64>,
    pub(super) fill_not_counted: bool,
    /// Always `None`: a server has no file.
    file_bytes: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
    bits_per_item: Option<f64>,
    bits_per_inserted: Option<f64>,
    bound_bits_per_item: Option<f64>,
    /// Always `None`: the server reports only the kind.
    can: Option<()>,
    pub(super) warnings: Vec<String>,
    /// The type of the filter in the server.
    layout: String,
    /// The fields that the server or the layout reports.
    fields: Map<String, serde_json::Value>,
    /// The names of the fields, in the order in which they were reported.
    #[serde(skip)]
    order: Vec<String>,
    /// The fields that the shared lines already show.
    #[serde(skip)]
    in_shared_lines: Vec<&'static str>,
}

/// The format of a sharded filter.
const SHARDS: &str = "shards";
/// Columns that the names of the lines take, as in the description of a file.
const NAMES: usize = 15;

impl ServerFacts {
    pub(super) fn new(layout: &str, format: &'static str) -> Self {
        Self { layout: layout.to_owned(), format, ..Self::default() }
    }

    /// How full it is, as the server reports it; `None` if the server does not report the capacity.
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

    /// Adds a field as the server reports it.
    pub(super) fn add_reply(&mut self, name: &Value, value: &Value) {
        let name = match name {
            Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::SimpleString(text) => text.clone(),
            _ => return,
        };
        self.add(&name, readable(value));
    }

    /// Returns a reported number, and marks it as shown by the shared lines.
    pub(super) fn number(&mut self, name: &'static str) -> Option<f64> {
        let number = match self.fields.get(name)? {
            serde_json::Value::String(text) => text.parse().ok()?,
            number => number.as_f64()?,
        };
        self.in_shared_lines.push(name);
        Some(number)
    }

    pub(super) fn count(&mut self, name: &'static str) -> Option<u64> {
        self.number(name).filter(|number| *number >= 0.0).map(|number| number as u64)
    }

    /// Returns a reported word, and marks it as shown by the shared lines.
    pub(super) fn word(&mut self, name: &'static str) -> Option<String> {
        let word = match self.fields.get(name)? {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => return None,
            other => other.to_string(),
        };
        self.in_shared_lines.push(name);
        Some(word)
    }

    /// Fills in the fields that follow from others.
    pub(super) fn complete(&mut self) {
        self.inserted_unknown = self.inserted.is_none();
        let per = |items: Option<u64>| figures::bits_per(self.memory_bytes?, items?);
        (self.bits_per_item, self.bits_per_inserted) = (per(self.capacity), per(self.inserted));
        self.bound_bits_per_item = self.target_fpr.and_then(figures::bound_bits_per_item);
        self.load =
            self.capacity.zip(self.inserted).map(|(capacity, inserted)| figures::load(inserted, capacity));
        self.fpr_from_count = self.expected_fpr.filter(|_| self.inserted.is_some() && self.format == SHARDS);
        let items = self.inserted.or(self.estimated_items);
        self.over_capacity = match (items, self.capacity, self.expected_fpr, self.target_fpr) {
            (Some(items), Some(capacity), Some(now), Some(target)) => Some(items > capacity && now > target),
            _ => None,
        };
    }

    /// Prints the lines that files have too, then those that only a server has.
    pub(crate) fn write(&self, out: &mut dyn Write, width: usize) -> io::Result<()> {
        writeln!(out, "{HEADING}{}{HEADING:#}", self.file)?;
        let others: Vec<(&String, &serde_json::Value)> = self
            .order
            .iter()
            .filter(|name| !self.in_shared_lines.contains(&name.as_str()))
            .filter_map(|name| Some((name, self.fields.get(name)?)))
            .collect();
        let mut line = |name: &str, wide: usize, text: &str| {
            output::paragraph(out, text, &format!("  {name:<wide$}"), width)
        };
        for (name, text) in self.figures().lines() {
            line(name, NAMES, &text)?;
        }
        line("type", NAMES, &self.layout)?;
        let wide = others.iter().map(|(name, _)| name.chars().count() + 2).max().unwrap_or(0).max(NAMES);
        for (name, value) in others {
            let is_rate = name.ends_with("_fpr") || name.ends_with("probability");
            let text = match value {
                serde_json::Value::Number(rate) if is_rate => {
                    rate.as_f64().map_or(rate.to_string(), say::rate)
                }
                serde_json::Value::Number(number) => number.as_u64().map_or(number.to_string(), say::count),
                serde_json::Value::Array(list) if list.is_empty() => "none".into(),
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Null => "-".into(),
                other => other.to_string(),
            };
            line(name, wide, &text)?;
        }
        for warning in &self.warnings {
            line("warning", NAMES, warning)?;
        }
        Ok(())
    }

    /// The figures of the lines that files and servers share.
    fn figures(&self) -> Figures<'_> {
        // A sharded filter is assessed here, from its count; for the other filters the server reports the rate.
        let counted_here = self.format == SHARDS;
        let from_fill = if self.inserted.is_none() { self.expected_fpr } else { None };
        Figures {
            storage: Storage::Server,
            kind: self.kind.as_deref(),
            shape: self.shape.as_deref(),
            format: self.format,
            placement: self.placement.as_deref(),
            hash: self.hash,
            items_as: self.items_as,
            items_as_unknown: self.items_as_unknown,
            capacity: self.capacity,
            inserted: self.inserted,
            inserted_unknown: self.inserted_unknown,
            target_fpr: self.target_fpr,
            fpr_from_count: self.fpr_from_count,
            fpr_from_fill: from_fill,
            fpr_reported: self.expected_fpr.filter(|_| self.inserted.is_some() && !counted_here),
            fill: self.fill,
            fill_of: self.fill_of,
            estimated_items: self.estimated_items,
            fill_not_counted: self.fill_not_counted,
            file_bytes: self.file_bytes,
            memory_bytes: self.memory_bytes,
            bits_per_item: self.bits_per_item,
            bits_per_inserted: self.bits_per_inserted,
            bound_bits_per_item: self.bound_bits_per_item,
        }
    }
}

/// A reply as JSON. Replies are at most lists of lists.
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

pub(super) fn of_sharded(server: &Server, filter: &ShardedFilter) -> Result<ServerFacts, CliError> {
    let report = server.wait(filter.info())?;
    let measures = report.measures();
    let mut facts = ServerFacts::new("one filter in shards, spread over the servers", SHARDS);
    facts.kind = Some(format!("{} shards of {}", measures.shards(), measures.backend().name()));
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
    (facts.capacity, facts.inserted) = (facts.count("capacity"), facts.count("items"));
    (facts.target_fpr, facts.expected_fpr) = (facts.number("target_fpr"), facts.number("expected_fpr"));
    Ok(facts)
}

pub(super) fn of_redisson(server: &Server, filter: &RedissonFilter) -> Result<ServerFacts, CliError> {
    let config = server.wait(filter.config())?;
    let ones = server.wait(filter.ones())?;
    let mut facts = ServerFacts::new(
        "Redisson's RBloomFilter: a bitmap with a config next to it",
        Format::Redisson.name(),
    );
    let fill = ones as f64 / config.size() as f64;
    facts.add("size", config.size());
    facts.add("hash_iterations", config.hash_iterations());
    facts.add("expected_insertions", config.expected_insertions());
    facts.add("false_probability", config.false_probability());
    facts.add("bits_set", ones);
    facts.add("estimated_items", server.wait(filter.count())?);
    facts.add("expected_fpr", fill.powi(config.hash_iterations() as i32));
    facts.of_bitmap(config.size(), config.hash_iterations());
    (facts.fill, facts.fill_of) = (Some(fill), Some("bits"));
    (facts.capacity, facts.target_fpr) =
        (facts.count("expected_insertions"), facts.number("false_probability"));
    facts.estimated_items = facts.count("estimated_items");
    facts.expected_fpr = facts.number("expected_fpr");
    facts.fpr_from_fill = facts.expected_fpr;
    Ok(facts)
}

pub(super) fn of_guava(server: &Server, bitmap: &GuavaBitmap) -> Result<ServerFacts, CliError> {
    let mut facts =
        ServerFacts::new("a bitmap with Guava's placement, as given by flags", Format::Guava.name());
    facts.add("bits", bitmap.shape().bits());
    facts.add("probes", bitmap.shape().probes());
    facts.add("estimated_items", server.wait(bitmap.estimated_items())?);
    facts.of_bitmap(bitmap.shape().bits(), bitmap.shape().probes());
    facts.estimated_items = bitmap_items(&facts);
    Ok(facts)
}

/// An estimate that stays in the list of what the server reports.
fn bitmap_items(facts: &ServerFacts) -> Option<u64> {
    facts.fields.get("estimated_items")?.as_u64()
}

impl ServerFacts {
    /// Fills in the facts of a bitmap of a Java program. Its item encoding is not stored.
    fn of_bitmap(&mut self, bits: u64, probes: u32) {
        self.kind = Some(mayhap::Kind::Bloom.name().to_owned());
        self.shape = Some(format!("{} bits, {probes} probes", say::count(bits)));
        self.memory_bytes = Some(bits.div_ceil(8));
        self.items_as_unknown = true;
    }

    /// Fills in the facts of one of the server's own filters from its `INFO`.
    pub(super) fn of_family(&mut self, family: Family) {
        match family {
            Family::Mayhap => {
                self.kind = self.word("kind");
                let keyed = self.word("keyed").map(|keyed| matches!(keyed.as_str(), "1" | "true"));
                let placement = self.word("placement");
                self.hash = match (keyed, placement.as_deref()) {
                    (Some(true), _) => Some("SipHash-1-3-128 with a secret key"),
                    (Some(false), Some("mayhap")) => Some("XXH3-128"),
                    _ => None,
                };
                (self.secret_key, self.placement) = (keyed, placement);
                (self.capacity, self.inserted) = (self.count("capacity"), self.count("inserted"));
                (self.target_fpr, self.expected_fpr) =
                    (self.number("target_fpr"), self.number("expected_fpr"));
                (self.fill, self.memory_bytes) = (self.number("fill"), self.count("memory_bytes"));
                self.in_shared_lines.extend(["bits_per_item", "bits_per_inserted", "load"]);
            }
            Family::Bloom => {
                self.kind = Some(mayhap::Kind::ScalableBloom.name().to_owned());
                self.placement = Some("redis-bloom".to_owned());
                (self.capacity, self.memory_bytes) = (self.count("Capacity"), self.count("Size"));
                self.inserted = self.count("Number of items inserted");
                // Only valkey-bloom reports it.
                self.target_fpr = self.number("Error rate");
            }
            Family::Cuckoo => {
                self.kind = Some(mayhap::Kind::ScalableCuckoo.name().to_owned());
                self.placement = Some("redis-bloom".to_owned());
                self.memory_bytes = self.count("Size");
                self.inserted = self.count("Number of items inserted");
            }
        }
    }
}
