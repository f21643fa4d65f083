//! What a server says of a filter. The field names are those of `--json`, and a promise.

use std::io::{self, Write};

use mayhap::advise::say;
use mayhap::codec::format::Format;
use mayhap_command::Health;
use mayhap_remote::guava::GuavaBitmap;
use mayhap_remote::redis::Value;
use mayhap_remote::{RedissonFilter, ShardedFilter};
use serde::Serialize;
use serde_json::{Map, json};

use super::{Fullness, Server};
use crate::error::CliError;
use crate::output::{self, HEADING};
use crate::remote::Family;

/// What is known of a filter in a server: first the fields that a file has, in their order, empty where a server does not say it; then what
/// only a server says.
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
    pub(super) target_fpr: Option<f64>,
    pub(super) expected_fpr: Option<f64>,
    pub(super) over_capacity: Option<bool>,
    pub(super) fill: Option<f64>,
    pub(super) fill_of: Option<&'static str>,
    pub(super) estimated_items: Option<u64>,
    pub(super) fpr_from_fill: Option<f64>,
    pub(super) fill_not_counted: bool,
    /// A server has no file of it.
    file_bytes: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
    bits_per_item: Option<f64>,
    bits_per_inserted: Option<f64>,
    bound_bits_per_item: Option<f64>,
    /// Nothing says it but the kind.
    can: Option<()>,
    pub(super) warnings: Vec<String>,
    /// What it is there.
    layout: String,
    /// What the server, or the layout, says of it.
    fields: Map<String, serde_json::Value>,
    /// The fields in the order in which they were told.
    #[serde(skip)]
    order: Vec<String>,
    /// Those that the lines before them have said.
    #[serde(skip)]
    said: Vec<&'static str>,
}

/// Columns of the names in front, as in the description of a file.
const NAMES: usize = 15;

impl ServerFacts {
    pub(super) fn new(layout: &str, format: &'static str) -> Self {
        Self { layout: layout.to_owned(), format, ..Self::default() }
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

    /// A number that was told, which the lines for all sources say.
    pub(super) fn number(&mut self, name: &'static str) -> Option<f64> {
        let number = match self.fields.get(name)? {
            serde_json::Value::String(text) => text.parse().ok()?,
            number => number.as_f64()?,
        };
        self.said.push(name);
        Some(number)
    }

    pub(super) fn count(&mut self, name: &'static str) -> Option<u64> {
        self.number(name).filter(|number| *number >= 0.0).map(|number| number as u64)
    }

    /// A word that was told, which the lines for all sources say.
    pub(super) fn word(&mut self, name: &'static str) -> Option<String> {
        let word = match self.fields.get(name)? {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => return None,
            other => other.to_string(),
        };
        self.said.push(name);
        Some(word)
    }

    /// What follows from the numbers.
    pub(super) fn complete(&mut self) {
        self.inserted_unknown = self.inserted.is_none();
        let bits = self.memory_bytes.map(|bytes| bytes as f64 * 8.0);
        let per = |items: Option<u64>| Some(bits? / items.filter(|items| *items > 0)? as f64);
        (self.bits_per_item, self.bits_per_inserted) = (per(self.capacity), per(self.inserted));
        self.bound_bits_per_item = self.target_fpr.filter(|rate| *rate > 0.0).map(|rate| rate.recip().log2());
        let items = self.inserted.or(self.estimated_items);
        self.over_capacity = match (items, self.capacity, self.expected_fpr, self.target_fpr) {
            (Some(items), Some(capacity), Some(now), Some(target)) => Some(items > capacity && now > target),
            _ => None,
        };
    }

    /// For people: the lines of a file in their order, then what only a server says.
    pub(crate) fn write(&self, out: &mut dyn Write, width: usize) -> io::Result<()> {
        writeln!(out, "{HEADING}{}{HEADING:#}", self.file)?;
        let others: Vec<(&String, &serde_json::Value)> = self
            .order
            .iter()
            .filter(|name| !self.said.contains(&name.as_str()))
            .filter_map(|name| Some((name, self.fields.get(name)?)))
            .collect();
        let mut line = |name: &str, wide: usize, text: &str| {
            output::paragraph(out, text, &format!("  {name:<wide$}"), width)
        };
        for (name, text) in self.lines() {
            line(name, NAMES, &text)?;
        }
        line("is", NAMES, &self.layout)?;
        let wide = others.iter().map(|(name, _)| name.chars().count() + 2).max().unwrap_or(0).max(NAMES);
        for (name, value) in others {
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
            line(name, wide, &said)?;
        }
        for warning in &self.warnings {
            line("warning", NAMES, warning)?;
        }
        Ok(())
    }

    /// The lines that a file has, too: `mayhap info` of a file gives them these names and this order.
    fn lines(&self) -> impl Iterator<Item = (&'static str, String)> {
        let kind = self.kind.as_ref().map(|kind| match &self.shape {
            Some(shape) => format!("{kind}: {shape}"),
            None => kind.clone(),
        });
        let items = match (self.items_as, self.items_as_unknown) {
            (_, true) => {
                "the server does not say how items became bytes: `check` needs --items-as".to_owned()
            }
            (Some(encoding), _) => format!("as {encoding}"),
            (None, _) => "bytes as they are".to_owned(),
        };
        let made_for = self.capacity.map(|capacity| match self.target_fpr {
            Some(rate) if rate > 0.0 => format!("{} at a rate of {}", say::items(capacity), say::rate(rate)),
            Some(_) => format!("{} numbers, never wrong", say::count(capacity)),
            None => say::items(capacity),
        });
        let holds = self.inserted.map(|inserted| match self.capacity.filter(|capacity| *capacity > 0) {
            Some(capacity) => {
                let share = inserted as f64 / capacity as f64 * 100.0;
                format!("{} by its own count ({share:.1}%)", say::items(inserted))
            }
            None => format!("{} by its own count", say::items(inserted)),
        });
        let wrong = self.expected_fpr.filter(|_| self.target_fpr != Some(0.0)).map(|rate| {
            let by = if self.inserted.is_some() { "by the count" } else { "by the bits" };
            match say::rate(rate) {
                said if said.ends_with('%') => format!("{said} of the non-members, {by}"),
                said if rate > 0.0 => format!("{said} non-members, {by}"),
                said => format!("{said}, {by}"),
            }
        });
        let fill = self.fill.map(|fill| {
            let of = self.fill_of.map(|of| format!(" of the {of}")).unwrap_or_default();
            let speaks =
                self.estimated_items.map(|items| format!(", which speaks of about {}", say::items(items)));
            format!("{:.1}%{of}{}", fill * 100.0, speaks.unwrap_or_default())
        });
        let size = self.memory_bytes.map(|bytes| format!("{} in memory", say::bytes(bytes)));
        let bits = self.bits_per_item.map(|full| match self.bits_per_inserted {
            Some(now) => format!("{full:.2} when full; {now:.2} now"),
            None => format!("{full:.2} when full"),
        });
        let lines = [
            ("kind", kind),
            ("format", Some(self.format.to_owned())),
            ("hash", self.hash.map(str::to_owned)),
            ("items", Some(items)),
            ("made for", made_for),
            ("holds", holds),
            ("wrong now", wrong),
            ("fill", fill),
            ("size", size),
            ("bits per item", bits),
        ];
        lines.into_iter().filter_map(|(name, text)| Some((name, text?)))
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

pub(super) fn of_sharded(server: &Server, filter: &ShardedFilter) -> Result<ServerFacts, CliError> {
    let report = server.wait(filter.info())?;
    let measures = report.measures();
    let mut facts = ServerFacts::new("one filter in shards, which mayhap spreads over the servers", "shards");
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
        "Redisson's RBloomFilter: a bitmap, and a config beside it",
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
        ServerFacts::new("a bitmap with Guava's placement, as the command line says", Format::Guava.name());
    facts.add("bits", bitmap.shape().bits());
    facts.add("probes", bitmap.shape().probes());
    facts.add("estimated_items", server.wait(bitmap.estimated_items())?);
    facts.of_bitmap(bitmap.shape().bits(), bitmap.shape().probes());
    facts.estimated_items = bitmap_items(&facts);
    Ok(facts)
}

/// A count that stays in the list of what the server says.
fn bitmap_items(facts: &ServerFacts) -> Option<u64> {
    facts.fields.get("estimated_items")?.as_u64()
}

impl ServerFacts {
    /// A bitmap of Java's: how items become bytes is known only to who says it.
    fn of_bitmap(&mut self, bits: u64, probes: u32) {
        self.kind = Some(mayhap::Kind::Bloom.name().to_owned());
        self.shape = Some(format!("{} bits, {probes} probes", say::count(bits)));
        self.memory_bytes = Some(bits.div_ceil(8));
        self.items_as_unknown = true;
    }

    /// One of the server's own, by what its `INFO` says.
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
                self.said.push("bits_per_item");
            }
            Family::Bloom => {
                self.kind = Some(mayhap::Kind::ScalableBloom.name().to_owned());
                self.placement = Some("redis-bloom".to_owned());
                (self.capacity, self.memory_bytes) = (self.count("Capacity"), self.count("Size"));
                self.inserted = self.count("Number of items inserted");
                // valkey-bloom says it.
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
