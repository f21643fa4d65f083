//! A filter that stays in its server and is queried there. It is one of the server's own filters, a sharded filter, a Redisson filter, or a
//! bitmap that an application writes itself.
//!
//! ```text
//! TYPE      MBbloom--, MBbloomCF, mayhap---   BF.*, CF.*, MF.*            (named)
//!           string  `mayhap-remote …`         one filter in many shards   (mayhap-remote)
//!           string, or none; NAME:config      Redisson
//!           string                            unknown, unless --as names the layout
//! ```
//!
//! The server answers *maybe*, *no* or *not ready* for each item: [`Answer`].

mod facts;
mod layout;
mod named;

use std::time::Duration;

use mayhap::{Filter, Item as _, ItemEncoding, say};
use mayhap_formats::Format;
use mayhap_remote::guava::{GuavaBitmap, GuavaShape};
use mayhap_remote::redis::{self, Value};
use mayhap_remote::{
    Access, Answer, Answers, Backend, Inserted, Insertions, Link, LinkOptions, RedissonFilter, RemoteError,
    Request, ShardedFilter,
};
use serde::Serialize;
use tokio::runtime::{self, Runtime};

pub(crate) use self::facts::ServerFacts;
pub(crate) use self::layout::{AskedWith, Layout, LayoutArgs};
use self::named::Named;

use crate::error::CliError;
use crate::health;
use crate::item_form::{ItemForm, LineItem};
use crate::progress::Progress;
use crate::pull::fetch;
use crate::remote::{Family, Remote, RemoteArgs, error_text};

/// The first bytes of the descriptor of a sharded filter.
const DESCRIPTOR: &[u8] = b"mayhap-remote ";

/// A connection to a server, and the name of the filter on it.
pub(crate) struct Server {
    runtime: Runtime,
    link: Link,
    /// The filter as messages name it.
    shown: String,
    name: Vec<u8>,
    address: String,
}

/// A filter in a server.
pub(crate) struct RemoteFilter {
    server: Server,
    filter: Kind,
    form: ItemForm,
}

enum Kind {
    Named(Named),
    Sharded(ShardedFilter),
    Redisson(RedissonFilter),
    Guava(GuavaBitmap),
}

/// How full a filter is. The field names are those of `--json` and must not change.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Fullness {
    #[serde(skip)]
    pub(crate) items: u64,
    #[serde(skip)]
    pub(crate) capacity: u64,
    #[serde(skip)]
    pub(crate) target_fpr: f64,
    pub(crate) expected_fpr: f64,
    /// Whether the server itself reports the filter as over capacity; `None` if the server does not know the filter.
    #[serde(skip)]
    pub(crate) server_says: Option<bool>,
}

impl Fullness {
    /// Whether the filter holds more items than its target rate allows.
    pub(crate) fn is_over_capacity(&self) -> bool {
        self.server_says.unwrap_or(self.items > self.capacity && self.expected_fpr > self.target_fpr)
    }

    /// Returns a warning if the filter is over its capacity.
    pub(crate) fn warning(&self) -> Option<String> {
        if self.server_says.is_some() {
            return self.health();
        }
        let (asked, got) = (say::count(self.capacity), say::count(self.items));
        let (now, target) = (say::rate(self.expected_fpr), say::rate(self.target_fpr));
        self.is_over_capacity().then(|| {
            format!("sized for {asked}, got {got} or more distinct items: FPR {now} instead of {target}")
        })
    }

    /// Returns the warning in the words used for files.
    pub(crate) fn health(&self) -> Option<String> {
        let Self { items, capacity, expected_fpr, target_fpr, .. } = *self;
        self.is_over_capacity().then(|| health::over_capacity(items, capacity, expected_fpr, target_fpr))
    }
}

/// The time limit for requests to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// As long as a cluster may take to replace a failed node.
    None,
    /// A few seconds, because later lines wait for the answer.
    Little,
    /// Almost no time, because the server did not answer before.
    Great,
}

/// The time during which a request is retried while lines wait for its answer.
const LINES_WAIT: Duration = Duration::from_secs(5);

impl Haste {
    fn options(self) -> LinkOptions {
        let mut options = LinkOptions::default();
        if self != Self::None {
            (options.patience, options.answering) = (LINES_WAIT, LINES_WAIT);
        }
        options.hurried = self == Self::Great;
        options
    }
}

/// The answers of a server for a batch of items, in their order.
pub(crate) struct Replies<A> {
    pub(crate) answers: Vec<A>,
    /// The reason of the last *not ready*, if there is one.
    pub(crate) why: Option<String>,
    /// The server cannot be reached; waiting longer does not help.
    pub(crate) unreachable: bool,
}

impl<A> Replies<A> {
    fn new(answers: Vec<A>, error: Option<&RemoteError>) -> Self {
        let unreachable = matches!(error, Some(RemoteError::Patience { .. } | RemoteError::Connect { .. }));
        Self { answers, why: error.map(ToString::to_string), unreachable }
    }
}

impl<A: Copy> Replies<A> {
    /// The same answer for each of `items`, because the server does not answer.
    pub(crate) fn not_ready(answer: A, items: usize, why: String) -> Self {
        Self { answers: vec![answer; items], why: Some(why), unreachable: true }
    }
}

impl Server {
    /// Connects to the server.
    ///
    /// # Errors
    /// The server cannot be reached or refuses the login.
    pub(crate) fn connect(remote: &Remote, args: &RemoteArgs) -> Result<Self, CliError> {
        Self::connect_in(Haste::None, remote, args)
    }

    fn connect_in(haste: Haste, remote: &Remote, args: &RemoteArgs) -> Result<Self, CliError> {
        let (info, certificates) = remote.login(args)?;
        let mut options = haste.options();
        options.certificates = certificates;
        // Threads of the program wait for answers; one more thread drives the connection.
        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|cause| CliError::Usage(format!("cannot start a thread ({cause})")))?;
        let address = remote.address().to_owned();
        let link = runtime.block_on(Link::open([info], options)).map_err(|cause| {
            match cli_error(&address, &cause) {
                CliError::Server { address, what } => {
                    CliError::Server { address, what: remote.with_ports(what) }
                }
                CliError::Unreachable { address, what } => {
                    CliError::Unreachable { address, what: remote.with_ports(what) }
                }
                error => error,
            }
        })?;
        Ok(Self { runtime, link, shown: remote.shown(), name: remote.name().to_vec(), address })
    }

    /// Waits for the result of a request.
    pub(crate) fn wait<T>(&self, asked: impl Future<Output = Result<T, RemoteError>>) -> Result<T, CliError> {
        self.runtime.block_on(asked).map_err(|cause| self.cli_error(&cause))
    }

    /// [`wait`](Self::wait), for callers that handle some errors themselves.
    pub(crate) fn attempt<T>(
        &self,
        asked: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        self.runtime.block_on(asked)
    }

    /// Returns the reply to `TYPE`.
    pub(crate) fn type_of_name(&self) -> Result<String, CliError> {
        let reply = self.wait(self.link.ask_one(Request::read("TYPE", &self.name)))?;
        match reply {
            Value::SimpleString(kind) => Ok(kind),
            other => Err(self.cli_error(&RemoteError::reply("a type", &other))),
        }
    }

    /// Returns the command family for a `TYPE` reply, if it is the type of one of the server's own filters.
    pub(crate) fn family_of_type(kind: &str) -> Option<Family> {
        Named::of_type(kind).map(|named| named.family())
    }

    /// The name as text, for filters of Java programs.
    pub(crate) fn name_as_text(&self) -> Result<&str, CliError> {
        let what = "the name is not valid UTF-8, as names in Java are";
        std::str::from_utf8(&self.name).map_err(|_| self.odd(what.into()))
    }

    pub(crate) const fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns how full a sharded filter is, if all shards report it.
    pub(crate) fn fullness(&self, filter: &ShardedFilter) -> Option<Fullness> {
        let report = self.wait(filter.info()).ok()?;
        Some(Fullness {
            items: report.inserted(),
            capacity: report.measures().capacity(),
            target_fpr: report.measures().target_fpr(),
            expected_fpr: report.expected_fpr(),
            server_says: None,
        })
    }

    /// Returns which of these commands the server has, according to `COMMAND INFO`.
    pub(crate) fn knows<const N: usize>(&self, commands: [&str; N]) -> Result<[bool; N], CliError> {
        let mut command = redis::cmd("COMMAND");
        command.arg("INFO").arg(&commands[..]);
        let known = self.wait(self.link.ask_one(Request::whole(command, &self.name, Access::Read)))?;
        let Value::Array(known) = known else { return Ok([true; N]) };
        Ok(std::array::from_fn(|index| known.get(index).is_some_and(|known| *known != Value::Nil)))
    }

    /// Checks that the server can write bitmaps of Java programs.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn check_for_bitmaps(&self) -> Result<(), CliError> {
        let [scripts] = self.knows(["EVAL"])?;
        let what = "this server has no scripts (EVAL), which are needed to write bitmaps of Redisson and Guava; Redis and Valkey have them";
        if scripts { Ok(()) } else { Err(self.odd(what.into())) }
    }

    /// Rejects a bitmap that is longer than its dimensions need: the dimensions are wrong, and lookups would miss members.
    fn check_length(&self, shape: GuavaShape) -> Result<(), CliError> {
        if self.type_of_name()? != "string" {
            return Ok(());
        }
        let Value::Int(bytes) = self.wait(self.link.ask_one(Request::read("STRLEN", &self.name)))? else {
            return Ok(());
        };
        // Including the marker bit, whether it is read or not.
        let needed = (shape.bits() + 1).div_ceil(8);
        if bytes as u64 <= needed {
            return Ok(());
        }
        let words = shape.bits().next_multiple_of(64);
        Err(self.odd(format!(
            "has {} bytes, but a bitmap of {} bits has {}: the dimensions are wrong. Bitmaps from `mayhap build` and `push` have whole \
             words, like Guava's own ({} bits here); both commands print the flags to query with (--bits, --probes, --strategy)",
            say::count(bytes as u64),
            say::count(shape.bits()),
            say::count(needed),
            say::count(words),
        )))
    }

    pub(crate) fn is_sharded(&self) -> Result<bool, CliError> {
        let begin = Request::read("GETRANGE", &self.name).arg(0).arg(DESCRIPTOR.len() - 1);
        let begin = self.wait(self.link.ask_one(begin))?;
        Ok(matches!(begin, Value::BulkString(bytes) if bytes == DESCRIPTOR))
    }

    pub(crate) fn has_redisson_config(&self) -> Result<bool, CliError> {
        match std::str::from_utf8(&self.name) {
            Ok(name) => self.wait(RedissonFilter::is_there(&self.link, name)),
            Err(_) => Ok(false),
        }
    }

    /// An error about the filter.
    pub(crate) fn odd(&self, what: String) -> CliError {
        CliError::Filter { name: self.shown.clone(), what }
    }

    /// Turns a remote error into an error message.
    pub(crate) fn cli_error(&self, cause: &RemoteError) -> CliError {
        match cause {
            RemoteError::Connect { .. } | RemoteError::Patience { .. } => cli_error(&self.address, cause),
            RemoteError::Refused { code, text } if matches!(code.as_str(), "NOAUTH" | "WRONGPASS") => {
                let what = format!(
                    "login refused: {text} (give the password in the address, in REDISCLI_AUTH or with --password-file)"
                );
                CliError::Server { address: self.address.clone(), what }
            }
            cause => self.odd(cause.to_string()),
        }
    }
}

fn cli_error(address: &str, cause: &RemoteError) -> CliError {
    let (what, may_come_back) = match cause {
        RemoteError::Connect { cause, .. } => {
            let is_io = cause.is_io_error() || cause.is_timeout() || cause.is_connection_dropped();
            (error_text(cause, LinkOptions::default().connecting), is_io)
        }
        cause => (cause.to_string(), matches!(cause, RemoteError::Patience { .. })),
    };
    let address = address.to_owned();
    if may_come_back { CliError::Unreachable { address, what } } else { CliError::Server { address, what } }
}

impl RemoteFilter {
    /// Opens the filter of this name. Detects its type from the server's replies, unless `layout` names it.
    ///
    /// # Errors
    /// There is no filter of this name, its type or its item encoding is unknown, or the server does not answer.
    pub(crate) fn open(
        remote: &Remote,
        args: &RemoteArgs,
        layout: &LayoutArgs,
        items_as: Option<ItemEncoding>,
    ) -> Result<Self, CliError> {
        Self::open_in(Haste::None, remote, args, layout, items_as)
    }

    /// [`open`](Self::open) with this time limit.
    pub(crate) fn open_in(
        haste: Haste,
        remote: &Remote,
        args: &RemoteArgs,
        layout: &LayoutArgs,
        items_as: Option<ItemEncoding>,
    ) -> Result<Self, CliError> {
        let server = Server::connect_in(haste, remote, args)?;
        let form = items_as.map_or(ItemForm::Bytes, ItemForm::of_encoding);
        if let Some(Layout::Guava) = layout.named {
            let (shape, items) = (layout.shape()?, needs_encoding(&server, "Guava's funnel", items_as)?);
            server.check_length(shape)?;
            let bitmap = GuavaBitmap::new(&server.link, server.name_as_text()?, shape, items);
            let filter = Kind::Guava(if layout.marker { bitmap.with_marker() } else { bitmap });
            return Ok(Self { server, filter, form });
        }
        let kind = server.type_of_name()?;
        if let Some(named) = Named::of_type(&kind).filter(|_| layout.named.is_none()) {
            return Ok(Self { server, filter: Kind::Named(named), form: ItemForm::Bytes });
        }
        if kind == "string" && layout.named.is_none() && server.is_sharded()? {
            let filter = Kind::Sharded(server.wait(ShardedFilter::open(&server.link, &server.name))?);
            return Ok(Self { server, filter, form: ItemForm::Bytes });
        }
        if layout.named == Some(Layout::Redisson) || server.has_redisson_config()? {
            let items = needs_encoding(&server, "Redisson's codec", items_as)?;
            let opened = RedissonFilter::open(&server.link, server.name_as_text()?, items);
            let filter = Kind::Redisson(server.wait(opened)?);
            return Ok(Self { server, filter, form });
        }
        Err(server.odd(match kind.as_str() {
            "none" => remote.with_ports("there is no filter of this name".into()),
            "string" => {
                "holds a string: if it is a bitmap with Guava's placement, pass --as guava and its dimensions \
                         (--bits and --probes, or --expected-insertions and --fpp)"
                    .into()
            }
            kind => format!("holds a {kind}, which is not a filter"),
        }))
    }

    /// Reads the whole filter from the server, for commands that look at its bits.
    ///
    /// # Errors
    /// It cannot be read or is not a filter; [`CliError::WrongFormat`] if the data is damaged.
    pub(crate) fn fetch(
        &self,
        remote: &Remote,
        args: &RemoteArgs,
        progress: &Progress,
    ) -> Result<(Filter, Format), CliError> {
        let family = match &self.filter {
            Kind::Named(named) => named.family(),
            Kind::Sharded(_) => return Err(self.server.odd("is sharded; it is not a single filter".into())),
            Kind::Redisson(_) | Kind::Guava(_) => {
                return Err(self
                    .server
                    .odd("is a bitmap of a Java program, which cannot be read as a filter".into()));
            }
        };
        let mut connection = remote.connect(args)?;
        if !connection.has_command(family.dump_command())? {
            let what = format!("the server has no {}, so the filter cannot be read", family.dump_command());
            return Err(self.server.odd(what));
        }
        let filter = fetch::filter(&mut connection, remote, family, progress)?;
        Ok((filter, family.format()))
    }

    /// For filters that cannot be [fetched](Self::fetch): returns the name of the layout, and which parts are missing.
    ///
    /// # Errors
    /// The server does not report it.
    pub(crate) fn missing(&self) -> Result<(&'static str, Option<String>), CliError> {
        let server = &self.server;
        match &self.filter {
            Kind::Named(_) => Ok(("", None)),
            Kind::Sharded(filter) => {
                let report = server.wait(filter.info())?;
                let (missing, of) = (report.missing().count(), report.measures().shards());
                Ok(("shards", (missing > 0).then(|| format!("{missing} of {of} shards are not ready"))))
            }
            Kind::Redisson(filter) => server.wait(filter.ones()).map(|_| ("redisson", None)),
            Kind::Guava(bitmap) => server.wait(bitmap.estimated_items()).map(|_| ("guava", None)),
        }
    }

    /// Whether it is one of the server's own filters.
    pub(crate) const fn is_named(&self) -> bool {
        matches!(self.filter, Kind::Named(_))
    }

    /// The name of the shard that stores `item`, if the shards are filters of the server's own.
    pub(crate) fn shard_of(&self, item: &[u8]) -> Option<String> {
        let Kind::Sharded(filter) = &self.filter else { return None };
        let report = self.server.wait(filter.info()).ok()?;
        if report.measures().backend() == Backend::Plain {
            return None;
        }
        let keys = self.server.wait(filter.shard_keys(&[item])).ok()?;
        Some(String::from_utf8_lossy(keys.first()?).into_owned())
    }

    /// How lines are turned into items of this filter.
    pub(crate) fn form(&self) -> ItemForm {
        self.form
    }

    /// The filter as messages name it.
    pub(crate) fn shown(&self) -> &str {
        &self.server.shown
    }

    /// Sets whether later requests get almost no time.
    pub(crate) fn hurry(&self, hurried: bool) {
        self.server.link.set_hurried(hurried);
    }

    /// Looks up these items.
    pub(crate) fn ask(&self, items: &[LineItem<'_>]) -> Replies<Answer> {
        let replies = |answers: Answers| Replies::new(answers.as_slice().to_vec(), answers.error());
        let runtime = &self.server.runtime;
        match &self.filter {
            Kind::Named(named) => runtime.block_on(named.ask(&self.server, items)),
            Kind::Sharded(filter) => replies(runtime.block_on(filter.may_contain(&as_bytes(items)))),
            Kind::Redisson(filter) => replies(runtime.block_on(filter.may_contain(items))),
            Kind::Guava(bitmap) => replies(runtime.block_on(bitmap.may_contain(items))),
        }
    }

    /// Adds these items.
    pub(crate) fn add(&self, items: &[LineItem<'_>], copies: Copies) -> Replies<Inserted> {
        let replies = |inserted: Insertions| Replies::new(inserted.as_slice().to_vec(), inserted.error());
        let runtime = &self.server.runtime;
        match &self.filter {
            Kind::Named(named) => runtime.block_on(named.add(&self.server, items, copies)),
            Kind::Sharded(filter) => replies(runtime.block_on(filter.insert(&as_bytes(items)))),
            Kind::Redisson(filter) => replies(runtime.block_on(filter.insert(items))),
            Kind::Guava(bitmap) => replies(runtime.block_on(bitmap.insert(items))),
        }
    }

    /// Removes these items, one by one. Returns whether each was a member.
    pub(crate) fn remove(&self, items: &[&[u8]]) -> Vec<Result<bool, RemoteError>> {
        match &self.filter {
            Kind::Named(named) => self.server.runtime.block_on(named.remove(&self.server, items)),
            _ => Vec::new(),
        }
    }

    /// Checks that the server can remove items from it.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn check_for_removing(&self) -> Result<(), CliError> {
        let what = match &self.filter {
            Kind::Named(named) if named.family() != Family::Bloom => return Ok(()),
            Kind::Named(_) => {
                "cannot remove items from a Bloom filter (BF.*); CF.* filters and the MF.* kinds for removals can"
            }
            Kind::Sharded(_) => {
                "cannot remove items from a sharded filter: build it again without the items, with --force"
            }
            Kind::Redisson(_) | Kind::Guava(_) => {
                "cannot remove items from a Bloom filter: build it again without the items, with --force"
            }
        };
        Err(self.server.odd(what.into()))
    }

    /// Checks that the server can add items to it.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn check_for_adding(&self) -> Result<(), CliError> {
        match &self.filter {
            Kind::Redisson(_) | Kind::Guava(_) => self.server.check_for_bitmaps(),
            Kind::Named(_) | Kind::Sharded(_) => Ok(()),
        }
    }

    /// Returns how full it is, if its contents and its capacity are known.
    pub(crate) fn fullness(&self) -> Option<Fullness> {
        let server = &self.server;
        match &self.filter {
            Kind::Sharded(filter) => server.fullness(filter),
            Kind::Redisson(filter) => {
                let config = server.wait(filter.config()).ok()?;
                let fill = server.wait(filter.ones()).ok()? as f64 / config.size() as f64;
                Some(Fullness {
                    items: server.wait(filter.count()).ok()?,
                    capacity: config.expected_insertions(),
                    target_fpr: config.false_probability(),
                    expected_fpr: fill.powi(config.hash_iterations() as i32),
                    server_says: None,
                })
            }
            Kind::Named(named) => named.facts(server).ok()?.fullness(),
            Kind::Guava(_) => None,
        }
    }

    /// [`fullness`](Self::fullness), but only if one or two requests are enough and the server need not count bits.
    pub(crate) fn quick_fullness(&self) -> Option<Fullness> {
        match &self.filter {
            Kind::Named(_) | Kind::Sharded(_) => self.fullness(),
            Kind::Redisson(_) | Kind::Guava(_) => None,
        }
    }

    /// Returns what is known about the filter; `items_as` is the item encoding, if a flag gave it.
    ///
    /// # Errors
    /// The server does not report it.
    pub(crate) fn facts(&self, items_as: Option<ItemEncoding>) -> Result<ServerFacts, CliError> {
        let mut facts = match &self.filter {
            Kind::Named(named) => named.facts(&self.server)?,
            Kind::Sharded(filter) => facts::of_sharded(&self.server, filter)?,
            Kind::Redisson(filter) => facts::of_redisson(&self.server, filter)?,
            Kind::Guava(bitmap) => facts::of_guava(&self.server, bitmap)?,
        };
        facts.file = self.server.shown.clone();
        if let Some(items_as) = items_as {
            facts.add("items_as", items_as.name());
            (facts.items_as, facts.items_as_unknown) = (Some(items_as.name()), false);
        }
        facts.complete();
        let fullness = match &self.filter {
            Kind::Named(_) => facts.fullness(),
            Kind::Sharded(_) | Kind::Redisson(_) | Kind::Guava(_) => self.fullness(),
        };
        facts.over_capacity = fullness.map(|full| full.is_over_capacity()).or(facts.over_capacity);
        facts.warnings.extend(fullness.and_then(|full| full.health()));
        Ok(facts)
    }
}

/// The bytes of each item.
fn as_bytes(items: &[LineItem<'_>]) -> Vec<Vec<u8>> {
    items.iter().map(|item| item.with_bytes(<[u8]>::to_vec)).collect()
}

/// What to do with an item that may be a member already, in a filter that counts copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    /// Add another copy.
    Another,
    /// Add only new items.
    NewOnly,
}

fn needs_encoding(
    server: &Server,
    whose: &str,
    items_as: Option<ItemEncoding>,
) -> Result<ItemEncoding, CliError> {
    items_as.ok_or_else(|| {
        server.odd(format!(
            "the server does not store how {whose} encoded the items: give --items-as (kryo5 for Redisson's default, utf8, i64le, \
             …; docs/formats.md lists the encodings)"
        ))
    })
}
