//! Builds one filter under its name, on a server that is not a cluster. All clients of that server can query it.
//!
//! ```text
//! MF.*   MF.BUILD NAME BEGIN, ADD …, COMMIT      next to the current generation; other clients' additions go into both
//!        the same under a temporary name, RENAME if the name holds something else
//! BF.*   BF.LOADCHUNK …, RENAME                  built here, sent under a temporary name until it is complete
//!        BF.RESERVE, BF.MADD …, RENAME           if the server has no BF.LOADCHUNK
//! CF.*   CF.LOADCHUNK …, RENAME
//! ```
//!
//! All commands use one connection. If the server ends or is replaced by a replica, the connection ends too. So a filter
//! that is put in place contains everything that was sent.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use mayhap::{HashScheme, ItemHash};
use mayhap_advise::Structure;
use mayhap_formats::Format;
use mayhap_remote::redis::{self, Cmd, Value};

use super::choice::{Choice, choose};
use super::far::{BackendName, RemoteBuildReport};
use super::{Build, Built, DEFAULT_RATE, Work};
use crate::error::CliError;
use crate::kind_name::{self, KindName};
use crate::push::send::Goal;
use crate::remote::{Connection, Family, Remote, RemoteArgs, TemporaryName};
use crate::remote_filter::{Fullness, Server};
use crate::{interrupt, output};

/// The most items of one command, and the most bytes of them.
const ITEMS_AT_ONCE: usize = 1_000;
const BYTES_AT_ONCE: usize = 1 << 19;
/// The interval at which the expiry of a temporary name is extended.
const KEPT_EVERY: Duration = Duration::from_secs(60);
/// The memory for one item that was seen, in a hash table that may just have grown.
const SEEN_BYTES: u64 = 40;
/// The first capacity of a filter that grows.
const FIRST_GUESS: u64 = 1_000;

/// What to build at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A sharded filter.
    Shards,
    /// One filter under its name, built in this way.
    One(Way),
}

/// How one filter is built on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// With `MF.BUILD`.
    Generation,
    /// Here, and loaded in chunks.
    Load(Family),
    /// With `BF.MADD`.
    Insert,
}

impl Build {
    /// What to build: as the command line says, else as the name's current value, else the best that the server supports.
    pub(super) fn wanted(&self, server: &Server, there: &str) -> Result<Wanted, CliError> {
        let is_sharded = there == "string" && server.is_sharded()?;
        let says_shards = self.shards.is_some() || self.backend == Some(BackendName::Plain);
        if self.format.is_none() && (server.link().is_cluster() || says_shards || is_sharded) {
            return Ok(Wanted::Shards);
        }
        if is_sharded {
            let what = "is a sharded filter, and its shards would be left over: choose another name, or omit --format";
            return Err(server.odd(what.into()));
        }
        let [mf, load, insert, cuckoo] =
            server.knows(["MF.BUILD", "BF.LOADCHUNK", "BF.MADD", "CF.LOADCHUNK"])?;
        let bloom = if load { Way::Load(Family::Bloom) } else { Way::Insert };
        let of_there = Server::family_of_type(there).filter(|_| !self.asks_for_a_kind());
        let way = match (self.format, self.backend, of_there) {
            (Some(Format::RedisCuckoo), ..) => Way::Load(Family::Cuckoo),
            (Some(_), ..) | (None, Some(BackendName::Bf), _) => bloom,
            (None, Some(_), _) => Way::Generation,
            (None, None, Some(Family::Bloom)) => bloom,
            (None, None, Some(Family::Cuckoo)) => Way::Load(Family::Cuckoo),
            (None, None, _) if !mf && insert && !self.asks_for_a_kind() => bloom,
            (None, None, _) => Way::Generation,
        };
        let (has, family) = match way {
            Way::Generation => (mf, "MF"),
            Way::Load(Family::Cuckoo) => (cuckoo, "CF"),
            Way::Load(_) => (load, "BF"),
            Way::Insert => (insert, "BF"),
        };
        if !has {
            return Err(server.odd(lacks(family)));
        }
        if way != Way::Generation && self.asks_for_a_kind() {
            let what = "a RedisBloom filter supports only --items and --fpr: omit the other options, or omit --backend bf";
            return Err(CliError::Usage(what.into()));
        }
        Ok(Wanted::One(way))
    }

    /// Returns `true` if an option is given that only mayhap's own filters support.
    fn asks_for_a_kind(&self) -> bool {
        let asked = &self.asked;
        let others = [asked.grows, asked.window, asked.all_at_once, asked.untrusted, self.copies];
        let given =
            [self.kind.is_some(), self.seed.is_some(), asked.deletes.is_some(), asked.range.is_some()];
        let sized = [asked.memory.is_some(), asked.probes.is_some()];
        others.into_iter().chain(given).chain(sized).any(|given| given)
    }
}

/// The error for a server without these commands, with the alternatives.
pub(super) fn lacks(family: &str) -> String {
    format!(
        "this server has no {family}.* commands; alternatives: --backend plain (shards of plain strings), --format redisson or guava (a \
         bitmap for Java programs), or load the module (see `mayhap module`)"
    )
}

impl Work<'_> {
    pub(super) fn one_on_server(
        &self,
        remote: &Remote,
        server: &Server,
        there: &str,
        way: Way,
    ) -> Result<RemoteBuildReport, CliError> {
        if there != "none" && !self.args.force {
            return Err(server.odd("exists already; --force replaces it".into()));
        }
        match way {
            Way::Load(family) => self.loaded_on_server(remote, there, family),
            Way::Generation | Way::Insert => self.filled_on_server(remote, there, way),
        }
    }

    /// Builds a filter in RedisBloom's layout here and loads it.
    fn loaded_on_server(
        &self,
        remote: &Remote,
        there: &str,
        family: Family,
    ) -> Result<RemoteBuildReport, CliError> {
        let format = if family == Family::Cuckoo { Format::RedisCuckoo } else { Format::RedisBloom };
        self.say_what_is_lost(remote, there);
        let Built { filter, read, target_fpr, .. } = self.foreign(format)?;
        let mut connection = remote.connect(&self.args.server)?;
        let goal = Goal { remote, args: &self.args.server, family, force: self.args.force };
        let name = self.target.name();
        let sent = goal.send(&mut connection, (&filter, format), Path::new(&name), self.progress)?;
        let mut report = RemoteBuildReport::new(remote, layout(family), read, filter.capacity(), target_fpr);
        (report.kind, report.replaced) = (Some(filter.kind().name().into()), there != "none");
        report.bytes = Some(sent.bytes);
        Ok(report)
    }

    /// Builds a filter by sending the items to the server.
    fn filled_on_server(
        &self,
        remote: &Remote,
        there: &str,
        way: Way,
    ) -> Result<RemoteBuildReport, CliError> {
        let choice = self.choice_on_server(way)?;
        if let Some(why) = choice.why.as_deref().filter(|_| way == Way::Generation) {
            self.args.say(why);
        }
        let in_place =
            way == Way::Generation && matches!(Server::family_of_type(there), Some(Family::Mayhap));
        let temporary =
            (!in_place && (there != "none" || way == Way::Insert)).then(|| TemporaryName::new(remote));
        if temporary.is_some() {
            self.say_what_is_lost(remote, there);
        }
        let mut connection = remote.connect(&self.args.server)?;
        // From here on, a failure must be cleaned up on the server.
        let _polite = interrupt::polite();
        let mut making = Making {
            connection: &mut connection,
            remote,
            args: &self.args.server,
            way,
            temporary,
            is_first: there == "none",
            stage: Stage::Nothing,
            kept: Instant::now(),
        };
        // A signal interrupts system calls of the main thread. The thread that talks to the server must not be
        // interrupted.
        let make = || self.make(&mut making, &choice);
        let made = thread::scope(|scope| scope.spawn(make).join().unwrap_or(Err(CliError::Interrupted)));
        if made.is_err() {
            making.give_up();
            interrupt::check()?;
        }
        let read = made?;
        let family = if way == Way::Generation { Family::Mayhap } else { Family::Bloom };
        let needs = &choice.needs;
        let mut report = RemoteBuildReport::new(remote, layout(family), read, needs.items, needs.target_fpr);
        report.replaced = there != "none";
        if way == Way::Generation {
            let facts = making.facts()?;
            report.kind = facts.text("kind");
            report.generation = facts.count("generation");
            report.capacity = facts.count("capacity").unwrap_or(report.capacity);
            report.fullness = facts.fullness();
            report.over_capacity = report.fullness.is_some_and(|full| full.is_over_capacity());
        }
        Ok(report)
    }

    /// The kind to build, and its numbers.
    fn choice_on_server(&self, way: Way) -> Result<Choice, CliError> {
        let (args, asked) = (self.args, &self.args.asked);
        let is_bitmap = args.kind == Some(KindName::Exactly(Structure::Bitmap));
        let possible = asked.range.map(|(low, high)| high.saturating_sub(low).saturating_add(1));
        let items = match asked.items {
            Some(items) => items,
            None if asked.window => {
                return Err(CliError::Usage(
                    "--window needs --items: the number of latest items to keep".into(),
                ));
            }
            None if args.copies => {
                return Err(CliError::Usage(
                    "--copies needs --items: the number of items, copies included".into(),
                ));
            }
            None if is_bitmap => 1,
            None if asked.grows && !args.reads_twice() => FIRST_GUESS,
            None => self.count_items("a filter on a server", "")?.max(1).min(possible.unwrap_or(u64::MAX)),
        };
        if way == Way::Insert {
            let needs = mayhap_advise::Needs::new(items, asked.fpr.unwrap_or(DEFAULT_RATE));
            return Ok(Choice { structure: Structure::ScalableBloom, needs, why: None });
        }
        let mut needs = args.needs(items)?;
        // Without --seed, the server chooses a secret random key.
        needs.untrusted = args.seed.is_none();
        choose(args.kind, &needs)
    }

    fn make(&self, making: &mut Making<'_>, choice: &Choice) -> Result<u64, CliError> {
        making.begin(&words(choice, self.args.seed))?;
        if making.temporary.is_none() && !making.is_first && !self.args.quiet {
            let shown = making.remote.shown();
            output::tell(format_args!(
                "{shown}: building the new filter next to it; items added from now on go into both"
            ));
        }
        let mut seen = match choice.counts_copies() && !self.args.copies {
            true => Some(Seen::new(self.args.hash_memory)?),
            false => None,
        };
        let mut read = 0;
        let mut blocks = self.args.input.open(self.progress)?;
        while let Some(block) = blocks.next()? {
            let mut at = 0;
            while at < block.len() {
                interrupt::check()?;
                let (first, mut bytes, mut items) = (at, 0, Vec::new());
                while at < block.len() && items.len() < ITEMS_AT_ONCE && bytes < BYTES_AT_ONCE {
                    let item = block.item(at);
                    if seen.as_mut().map_or(Ok(true), |seen| seen.is_new(item))? {
                        items.push(item);
                        bytes += item.len();
                    }
                    at += 1;
                }
                if !items.is_empty() {
                    making.add(&items, || block.place(first))?;
                }
            }
            read += block.len() as u64;
            self.progress.add_items(block.len() as u64);
            blocks.reuse(block);
        }
        interrupt::check()?;
        self.progress.phase("putting in place", None);
        making.put_in_place(self.args.force)?;
        Ok(read)
    }

    /// Prints that additions of other clients before the swap will not be in the new filter.
    fn say_what_is_lost(&self, remote: &Remote, there: &str) {
        if there != "none" && !self.args.quiet {
            output::tell(format_args!(
                "{}: building under another name; items that are added to the current filter before the swap will be lost",
                remote.shown()
            ));
        }
    }
}

/// The arguments of `MF.BUILD … BEGIN`.
fn words(choice: &Choice, seed: Option<u64>) -> Vec<String> {
    let needs = &choice.needs;
    let mut words = vec!["KIND".to_owned(), kind_name::name_of(choice.structure)];
    let mut say = |name: &str, values: &[String]| {
        words.push(name.to_owned());
        words.extend_from_slice(values);
    };
    if let (Structure::Bitmap, mayhap_advise::ItemShape::IntegerRange { low, high }) =
        (choice.structure, needs.item)
    {
        say("RANGE", &[low.to_string(), high.to_string()]);
    } else {
        say("CAPACITY", &[needs.items.to_string()]);
        say("FPR", &[needs.target_fpr.to_string()]);
    }
    match choice.structure {
        Structure::DualBloom => {
            let removals = match needs.deletes {
                mayhap_advise::Deletes::UpTo(removals) => removals,
                _ => (needs.items / 10).max(1),
            };
            say("DELETES", &[removals.to_string()]);
        }
        Structure::ScalableBloom | Structure::Growing => {
            if let Some(limit) = needs.memory_limit_bytes {
                say("MEMORY", &[limit.to_string()]);
            }
        }
        _ => {}
    }
    if let Some(probes) = needs.probes {
        say("PROBES", &[probes.to_string()]);
    }
    if let Some(seed) = seed {
        say("KEYLESS", &[]);
        say("SEED", &[seed.to_string()]);
    }
    words
}

const fn layout(family: Family) -> &'static str {
    match family {
        Family::Mayhap => "mf",
        Family::Bloom => "bf",
        Family::Cuckoo => "cf",
    }
}

/// The items seen so far, by a keyed hash. An attacker cannot craft a collision, which would drop an item.
struct Seen {
    hashes: HashSet<ItemHash>,
    scheme: HashScheme,
    limit_bytes: u64,
}

impl Seen {
    fn new(limit_bytes: u64) -> Result<Self, CliError> {
        let scheme = HashScheme::keyed_random().map_err(mayhap_advise::CreateError::from)?;
        Ok(Self { hashes: HashSet::new(), scheme, limit_bytes })
    }

    fn is_new(&mut self, item: &[u8]) -> Result<bool, CliError> {
        if self.hashes.len() as u64 * SEEN_BYTES >= self.limit_bytes {
            let what = format!(
                "--hash-memory: full after {} distinct items; raise it, or add --copies to skip the check for duplicates",
                self.hashes.len()
            );
            return Err(CliError::Usage(what));
        }
        Ok(self.hashes.insert(self.scheme.hash(item)))
    }
}

/// The progress on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The server has no part of it yet.
    Nothing,
    Begun,
    InPlace,
}

/// A filter that is being built on a server.
struct Making<'a> {
    connection: &'a mut Connection,
    remote: &'a Remote,
    args: &'a RemoteArgs,
    way: Way,
    /// The temporary name under which it is built, if any.
    temporary: Option<TemporaryName>,
    /// The name was free.
    is_first: bool,
    stage: Stage,
    kept: Instant,
}

impl Making<'_> {
    /// The name under which it is built.
    fn name(&self) -> &[u8] {
        self.temporary.as_ref().map_or(self.remote.name(), TemporaryName::as_bytes)
    }

    fn step(&self, step: &str) -> Cmd {
        redis::cmd("MF.BUILD").arg(self.name()).arg(step).take()
    }

    fn begin(&mut self, words: &[String]) -> Result<(), CliError> {
        let begin = match self.way {
            Way::Generation => self.step("BEGIN").arg(words).take(),
            _ => {
                // `KIND …` comes first, then the capacity and the rate.
                let number = |name: &str| {
                    let at = words.iter().position(|word| word == name);
                    at.and_then(|at| words.get(at + 1)).cloned().unwrap_or_default()
                };
                redis::cmd("BF.RESERVE").arg(self.name()).arg(number("FPR")).arg(number("CAPACITY")).take()
            }
        };
        if self.temporary.is_some() || !self.is_first {
            self.connection.try_ask(&begin)?.map_err(|refusal| self.refused(refusal))?;
        } else {
            // If another program creates this name first, do not add to its filter.
            let taken = "was created by another program during the build; --force replaces it";
            self.connection.ask(redis::cmd("WATCH").arg(self.remote.name()))?;
            if self.connection.type_of(self.remote.name())? != "none" {
                return Err(self.refused(taken.into()));
            }
            let mut commands = redis::pipe();
            commands.add_command(begin);
            if self.connection.at_once(&mut commands)?.is_none() {
                return Err(self.refused(taken.into()));
            }
        }
        self.stage = Stage::Begun;
        match &self.temporary {
            Some(temporary) => temporary.keep(self.connection),
            None => Ok(()),
        }
    }

    fn add(&mut self, items: &[&[u8]], place: impl FnOnce() -> String) -> Result<(), CliError> {
        let add = match self.way {
            Way::Generation => self.step("ADD").arg(items).take(),
            _ => redis::cmd("BF.MADD").arg(self.name()).arg(items).take(),
        };
        let refused = |text: String| {
            let what = format!(
                "{}: this line, or one of the {} lines beginning with it, was rejected: {text}",
                self.remote.shown(),
                items.len()
            );
            Err(CliError::Input { name: place(), what })
        };
        match self.connection.try_ask(&add)? {
            Err(text) => return refused(text),
            // RedisBloom's reply ends with the first item that is rejected.
            Ok(Value::Array(added)) => {
                let error = added.iter().find_map(|added| match added {
                    Value::ServerError(error) => Some(error.details().unwrap_or("refused").to_owned()),
                    _ => None,
                });
                match error {
                    Some(text) => return refused(text),
                    None if added.len() != items.len() => return refused("the reply is incomplete".into()),
                    None => {}
                }
            }
            Ok(_) => {}
        }
        if let Some(temporary) = self.temporary.as_ref().filter(|_| self.kept.elapsed() > KEPT_EVERY) {
            temporary.keep(self.connection)?;
            self.kept = Instant::now();
        }
        Ok(())
    }

    fn put_in_place(&mut self, force: bool) -> Result<(), CliError> {
        if self.way == Way::Generation {
            let commit = self.step("COMMIT");
            self.connection.ask_for_long(&commit)?;
        }
        if let Some(temporary) = &self.temporary {
            temporary.take_real(self.connection, self.remote, force)?;
        }
        self.stage = Stage::InPlace;
        Ok(())
    }

    /// Removes the unfinished filter from the server.
    fn give_up(&mut self) {
        if self.stage != Stage::Begun {
            return;
        }
        let connect = || self.remote.connect(self.args);
        match &self.temporary {
            Some(temporary) => temporary.remove(self.connection, connect),
            None => {
                let abort = self.step("ABORT");
                self.connection.ask_or_by_another(&abort, connect);
            }
        }
    }

    fn refused(&self, what: String) -> CliError {
        CliError::Filter { name: self.remote.shown(), what }
    }

    /// The server's description of it.
    fn facts(&mut self) -> Result<Facts, CliError> {
        let info = self.connection.ask(redis::cmd("MF.INFO").arg(self.remote.name()))?;
        let pairs: Vec<(Value, Value)> = match info {
            Value::Array(list) => {
                list.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
            }
            Value::Map(pairs) => pairs,
            other => return Err(self.connection.unexpected("MF.INFO", &other)),
        };
        let pairs = pairs.iter().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        Ok(Facts(pairs.collect()))
    }
}

/// The fields of `MF.INFO`.
struct Facts(HashMap<String, String>);

impl Facts {
    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.parse().ok()
    }

    fn rate(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.parse().ok()
    }

    fn fullness(&self) -> Option<Fullness> {
        Some(Fullness {
            items: self.count("inserted")?,
            capacity: self.count("capacity")?,
            target_fpr: self.rate("target_fpr")?,
            expected_fpr: self.rate("expected_fpr")?,
            server_says: None,
        })
    }
}

/// A string or a number of a reply, as text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        Value::Double(number) => Some(number.to_string()),
        _ => None,
    }
}
