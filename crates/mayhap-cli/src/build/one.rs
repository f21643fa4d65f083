//! One filter under its name, in a server that is no cluster: what every client of that server can ask.
//!
//! ```text
//! MF.*   MF.BUILD NAME BEGIN, ADD …, COMMIT      beside the generation that serves, which goes on taking additions for both
//!        the same under a temporary name, RENAME where the name holds something else
//! BF.*   BF.LOADCHUNK …, RENAME                  built here; under a temporary name until it is whole
//!        BF.RESERVE, BF.MADD …, RENAME           where the server has no BF.LOADCHUNK
//! CF.*   CF.LOADCHUNK …, RENAME
//! ```
//!
//! All of it goes by one connection. A server that ends, or was replaced by a replica, ends that connection too, so that a filter that is
//! put in place has everything that was sent.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use mayhap::advise::Structure;
use mayhap::codec::format::Format;
use mayhap::{HashScheme, ItemHash};
use mayhap_remote::redis::{self, Cmd, Value};

use super::choice::{Choice, choose};
use super::far::{BackendName, Report};
use super::{Build, Built, DEFAULT_RATE, Work};
use crate::error::CliError;
use crate::kind_name::{self, KindName};
use crate::push::send::Goal;
use crate::remote::{Connection, Family, Remote, RemoteArgs, TemporaryName};
use crate::remote_filter::{Fullness, Server};
use crate::{interrupt, output};

/// Items of one command, and bytes of them.
const ITEMS_AT_ONCE: usize = 1_000;
const BYTES_AT_ONCE: usize = 1 << 19;
/// How often a temporary name is kept from going away.
const KEPT_EVERY: Duration = Duration::from_secs(60);
/// Memory of an item that was seen, in a hash table that may just have grown.
const SEEN_BYTES: u64 = 40;
/// The first guess for what grows by itself.
const FIRST_GUESS: u64 = 1_000;

/// What is to be made at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// One filter in many parts.
    Shards,
    /// One filter under its name, made so.
    One(Way),
}

/// How one filter is made in a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By `MF.BUILD`.
    Generation,
    /// Here, and loaded in pieces.
    Load(Family),
    /// By `BF.MADD`.
    Insert,
}

impl Build {
    /// What is to be made there: what the command line says, else what the name holds, else the best that the server has.
    pub(super) fn wanted(&self, server: &Server, there: &str) -> Result<Wanted, CliError> {
        let is_sharded = there == "string" && server.is_sharded()?;
        let says_shards = self.shards.is_some() || self.backend == Some(BackendName::Plain);
        if self.format.is_none() && (server.link().is_cluster() || says_shards || is_sharded) {
            return Ok(Wanted::Shards);
        }
        if is_sharded {
            let what =
                "is a filter in shards, which would be left over: take another name, or leave out --format";
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
            let what = "a filter of RedisBloom's is sized by --items and --fpr, and has no kind: leave out the rest, or --backend bf";
            return Err(CliError::Usage(what.into()));
        }
        Ok(Wanted::One(way))
    }

    /// Does it say something that only filters of ours can have?
    fn asks_for_a_kind(&self) -> bool {
        let asked = &self.asked;
        let others = [asked.grows, asked.window, asked.all_at_once, asked.untrusted, self.copies];
        let given =
            [self.kind.is_some(), self.seed.is_some(), asked.deletes.is_some(), asked.range.is_some()];
        let sized = [asked.memory.is_some(), asked.probes.is_some()];
        others.into_iter().chain(given).chain(sized).any(|given| given)
    }
}

/// What a server can have that has no such filters.
pub(super) fn lacks(family: &str) -> String {
    format!(
        "this server has no {family}.* commands: --backend plain makes shards of plain strings, --format redisson or guava a bitmap for \
         programs in Java; or load the module (`mayhap module` says how)"
    )
}

impl Work<'_> {
    pub(super) fn one_there(
        &self,
        remote: &Remote,
        server: &Server,
        there: &str,
        way: Way,
    ) -> Result<Report, CliError> {
        if there != "none" && !self.args.force {
            return Err(server.odd("is there already: --force replaces it".into()));
        }
        match way {
            Way::Load(family) => self.loaded_there(remote, there, family),
            Way::Generation | Way::Insert => self.filled_there(remote, there, way),
        }
    }

    /// A filter in RedisBloom's layout, built here.
    fn loaded_there(&self, remote: &Remote, there: &str, family: Family) -> Result<Report, CliError> {
        let format = if family == Family::Cuckoo { Format::RedisCuckoo } else { Format::RedisBloom };
        self.say_what_is_lost(remote, there);
        let Built { filter, read, target_fpr, .. } = self.foreign(format)?;
        let mut connection = remote.connect(&self.args.server)?;
        let goal = Goal { remote, args: &self.args.server, family, force: self.args.force };
        let name = self.target.name();
        let sent = goal.send(&mut connection, (&filter, format), Path::new(&name), self.progress)?;
        let mut report = Report::new(remote, layout(family), read, filter.capacity(), target_fpr);
        (report.kind, report.replaced) = (Some(filter.kind().name().into()), there != "none");
        report.bytes = Some(sent.bytes);
        Ok(report)
    }

    /// A filter that the server fills.
    fn filled_there(&self, remote: &Remote, there: &str, way: Way) -> Result<Report, CliError> {
        let choice = self.choice_there(way)?;
        if let Some(why) = choice.why.as_deref().filter(|_| way == Way::Generation) {
            self.args.say(why);
        }
        let in_place =
            way == Way::Generation && matches!(Server::family_of_type(there), Some(Family::Mayhap));
        let beside =
            (!in_place && (there != "none" || way == Way::Insert)).then(|| TemporaryName::new(remote));
        if beside.is_some() {
            self.say_what_is_lost(remote, there);
        }
        let mut connection = remote.connect(&self.args.server)?;
        // From here on there is something to be put right.
        let _polite = interrupt::polite();
        let mut making = Making {
            connection: &mut connection,
            remote,
            args: &self.args.server,
            way,
            beside,
            is_first: there == "none",
            stage: Stage::Nothing,
            kept: Instant::now(),
        };
        // A signal interrupts what the first thread waits for; the one that talks to the server must not be disturbed.
        let make = || self.make(&mut making, &choice);
        let made = thread::scope(|scope| scope.spawn(make).join().unwrap_or(Err(CliError::Interrupted)));
        if made.is_err() {
            making.give_up();
            interrupt::check()?;
        }
        let read = made?;
        let family = if way == Way::Generation { Family::Mayhap } else { Family::Bloom };
        let needs = &choice.needs;
        let mut report = Report::new(remote, layout(family), read, needs.items, needs.target_fpr);
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

    /// What is made, and of which numbers.
    fn choice_there(&self, way: Way) -> Result<Choice, CliError> {
        let (args, asked) = (self.args, &self.args.asked);
        let is_bitmap = args.kind == Some(KindName::Exactly(Structure::Bitmap));
        let possible = asked.range.map(|(low, high)| high.saturating_sub(low).saturating_add(1));
        let items = match asked.items {
            Some(items) => items,
            None if asked.window => {
                return Err(CliError::Usage(
                    "--window: say with --items how many of the last items count".into(),
                ));
            }
            None if args.copies => {
                return Err(CliError::Usage(
                    "--copies: say with --items how many there are, copies included".into(),
                ));
            }
            None if is_bitmap => 1,
            None if asked.grows && !args.reads_twice() => FIRST_GUESS,
            None => self.count_items("a filter in a server", "")?.max(1).min(possible.unwrap_or(u64::MAX)),
        };
        if way == Way::Insert {
            let needs = mayhap::advise::Needs::new(items, asked.fpr.unwrap_or(DEFAULT_RATE));
            return Ok(Choice { structure: Structure::ScalableBloom, needs, why: None });
        }
        let mut needs = args.needs(items)?;
        // Without --seed the server draws a secret key.
        needs.untrusted = args.seed.is_none();
        choose(args.kind, &needs)
    }

    fn make(&self, making: &mut Making<'_>, choice: &Choice) -> Result<u64, CliError> {
        making.begin(&words(choice, self.args.seed))?;
        if making.beside.is_none() && !making.is_first && !self.args.quiet {
            let shown = making.remote.shown();
            output::tell(format_args!("{shown}: building beside it: what is added from now on is in both"));
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

    /// A filter that is replaced takes additions of other clients until the swap; the new filter does not have them.
    fn say_what_is_lost(&self, remote: &Remote, there: &str) {
        if there != "none" && !self.args.quiet {
            output::tell(format_args!(
                "{}: building under another name: what is added to the present one meanwhile is not in the new one",
                remote.shown()
            ));
        }
    }
}

/// What `MF.BUILD … BEGIN` is told.
fn words(choice: &Choice, seed: Option<u64>) -> Vec<String> {
    let needs = &choice.needs;
    let mut words = vec!["KIND".to_owned(), kind_name::name_of(choice.structure)];
    let mut say = |name: &str, values: &[String]| {
        words.push(name.to_owned());
        words.extend_from_slice(values);
    };
    if let (Structure::Bitmap, mayhap::advise::ItemShape::IntegerRange { low, high }) =
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
                mayhap::advise::Deletes::UpTo(removals) => removals,
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

/// Items that came, by a hash that cannot be foreseen: one that is left out because it looks like another would be missing.
struct Seen {
    hashes: HashSet<ItemHash>,
    scheme: HashScheme,
    limit_bytes: u64,
}

impl Seen {
    fn new(limit_bytes: u64) -> Result<Self, CliError> {
        let scheme = HashScheme::keyed_random().map_err(mayhap::advise::CreateError::from)?;
        Ok(Self { hashes: HashSet::new(), scheme, limit_bytes })
    }

    fn is_new(&mut self, item: &[u8]) -> Result<bool, CliError> {
        if self.hashes.len() as u64 * SEEN_BYTES >= self.limit_bytes {
            let what = format!(
                "--hash-memory: more than {} different items do not fit; give more, or take every line with --copies",
                self.hashes.len()
            );
            return Err(CliError::Usage(what));
        }
        Ok(self.hashes.insert(self.scheme.hash(item)))
    }
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The server has nothing of it.
    Nothing,
    Begun,
    InPlace,
}

/// A filter that a server is filling.
struct Making<'a> {
    connection: &'a mut Connection,
    remote: &'a Remote,
    args: &'a RemoteArgs,
    way: Way,
    /// The name it is made under, where that is not its own.
    beside: Option<TemporaryName>,
    /// There was nothing of its name.
    is_first: bool,
    stage: Stage,
    kept: Instant,
}

impl Making<'_> {
    /// The name it is made under.
    fn name(&self) -> &[u8] {
        self.beside.as_ref().map_or(self.remote.name(), TemporaryName::as_bytes)
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
        if self.beside.is_some() || !self.is_first {
            self.connection.try_ask(&begin)?.map_err(|refusal| self.refused(refusal))?;
        } else {
            // What another program makes under this name meanwhile is not built upon.
            let taken = "was made by another program meanwhile: --force replaces it";
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
        match &self.beside {
            Some(beside) => beside.keep(self.connection),
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
                "{}: this line, or one of the {} from it on: {text}",
                self.remote.shown(),
                items.len()
            );
            Err(CliError::Input { name: place(), what })
        };
        match self.connection.try_ask(&add)? {
            Err(text) => return refused(text),
            // RedisBloom's end with the first item that is refused.
            Ok(Value::Array(added)) => {
                let error = added.iter().find_map(|added| match added {
                    Value::ServerError(error) => Some(error.details().unwrap_or("refused").to_owned()),
                    _ => None,
                });
                match error {
                    Some(text) => return refused(text),
                    None if added.len() != items.len() => return refused("some were not taken".into()),
                    None => {}
                }
            }
            Ok(_) => {}
        }
        if let Some(beside) = self.beside.as_ref().filter(|_| self.kept.elapsed() > KEPT_EVERY) {
            beside.keep(self.connection)?;
            self.kept = Instant::now();
        }
        Ok(())
    }

    fn put_in_place(&mut self, force: bool) -> Result<(), CliError> {
        if self.way == Way::Generation {
            let commit = self.step("COMMIT");
            self.connection.ask_for_long(&commit)?;
        }
        if let Some(beside) = &self.beside {
            beside.take_real(self.connection, self.remote, force)?;
        }
        self.stage = Stage::InPlace;
        Ok(())
    }

    /// Removes what the server has of it.
    fn give_up(&mut self) {
        if self.stage != Stage::Begun {
            return;
        }
        let connect = || self.remote.connect(self.args);
        match &self.beside {
            Some(beside) => beside.remove(self.connection, connect),
            None => {
                let abort = self.step("ABORT");
                self.connection.ask_or_by_another(&abort, connect);
            }
        }
    }

    fn refused(&self, what: String) -> CliError {
        CliError::Filter { name: self.remote.shown(), what }
    }

    /// What the server says of it.
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

/// What `MF.INFO` says.
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

/// A word or a number of a reply.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        Value::Double(number) => Some(number.to_string()),
        _ => None,
    }
}
