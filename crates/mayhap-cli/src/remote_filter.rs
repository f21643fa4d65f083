//! A filter that stays in its server and is asked there: one of the server's own, one in shards, one of Redisson's, or a bitmap that was made by hand.
//!
//! ```text
//! TYPE      MBbloom--, MBbloomCF, mayhap---   BF.*, CF.*, MF.*            (named)
//!           string  `mayhap-remote …`         one filter in many shards   (mayhap-remote)
//!           string, or none; NAME:config      Redisson's
//!           string                            nobody knows, unless --as says it
//! ```
//!
//! What a server can say of an item is *mayhap*, *no*, or that it cannot say: [`Answer`].

mod facts;
mod layout;
mod named;

use std::time::Duration;

use mayhap::advise::say;
use mayhap::codec::format::Format;
use mayhap::{Filter, Item as _, ItemEncoding};
use mayhap_remote::guava::{GuavaBitmap, GuavaShape};
use mayhap_remote::redis::{self, Value};
use mayhap_remote::{
    Access, Added, Additions, Answer, Answers, Backend, Link, LinkOptions, RedissonFilter, RemoteError,
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
use crate::remote::{Family, Remote, RemoteArgs, said_of};

/// How a descriptor of a filter in shards begins.
const DESCRIPTOR: &[u8] = b"mayhap-remote ";

/// A server, and what its filters are asked with.
pub(crate) struct Server {
    runtime: Runtime,
    link: Link,
    /// The filter as messages call it.
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

/// How full a filter is. The names of the fields are a promise.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Fullness {
    #[serde(skip)]
    pub(crate) items: u64,
    #[serde(skip)]
    pub(crate) capacity: u64,
    #[serde(skip)]
    pub(crate) target_fpr: f64,
    pub(crate) expected_fpr: f64,
    /// Whether that is too much, of a filter of the server's own.
    #[serde(skip)]
    pub(crate) server_says: Option<bool>,
}

impl Fullness {
    /// So much is in that it is wrong more often than it was made to be.
    pub(crate) fn is_over_capacity(&self) -> bool {
        self.server_says.unwrap_or(self.items > self.capacity && self.expected_fpr > self.target_fpr)
    }

    /// What is not as it was asked for.
    pub(crate) fn warning(&self) -> Option<String> {
        if self.server_says.is_some() {
            return self.health();
        }
        let (told, got) = (say::count(self.capacity), say::count(self.items));
        let (now, target) = (say::rate(self.expected_fpr), say::rate(self.target_fpr));
        self.is_over_capacity()
            .then(|| format!("told {told}, got {got} different or more: wrong for {now} instead of {target}"))
    }

    /// The same in the words that are used for a file.
    pub(crate) fn health(&self) -> Option<String> {
        let Self { items, capacity, expected_fpr, target_fpr, .. } = *self;
        self.is_over_capacity().then(|| health::over_capacity(items, capacity, expected_fpr, target_fpr))
    }
}

/// How long a server may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// As long as a cluster may take to replace a node that is gone.
    None,
    /// A few seconds: what is asked next is answered only then.
    Little,
    /// Next to nothing, because it did not answer before.
    Great,
}

/// How long requests are sent again where lines wait for their answers.
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

/// What a server said of some items, in their order.
pub(crate) struct Told<A> {
    pub(crate) answers: Vec<A>,
    /// Why the last of those is not ready that are not.
    pub(crate) why: Option<String>,
    /// It is because nobody answers, however long one waits.
    pub(crate) unreachable: bool,
}

impl<A> Told<A> {
    fn new(answers: Vec<A>, error: Option<&RemoteError>) -> Self {
        let unreachable = matches!(error, Some(RemoteError::Patience { .. } | RemoteError::Connect { .. }));
        Self { answers, why: error.map(ToString::to_string), unreachable }
    }
}

impl<A: Copy> Told<A> {
    /// The same for each of `items`, since there is no answer.
    pub(crate) fn not_ready(answer: A, items: usize, why: String) -> Self {
        Self { answers: vec![answer; items], why: Some(why), unreachable: true }
    }
}

impl Server {
    /// Connects to it.
    ///
    /// # Errors
    /// It is not there, or does not let us in.
    pub(crate) fn connect(remote: &Remote, args: &RemoteArgs) -> Result<Self, CliError> {
        Self::connect_in(Haste::None, remote, args)
    }

    fn connect_in(haste: Haste, remote: &Remote, args: &RemoteArgs) -> Result<Self, CliError> {
        let (info, certificates) = remote.login(args)?;
        let mut options = haste.options();
        options.certificates = certificates;
        // Threads of the program wait for answers; one more sees to it that they come.
        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|cause| CliError::Usage(format!("cannot start a thread ({cause})")))?;
        let address = remote.address().to_owned();
        let link = runtime.block_on(Link::open([info], options)).map_err(|cause| {
            match cli_error(&address, &cause) {
                CliError::Server { address, what } => {
                    CliError::Server { address, what: remote.with_ports(what) }
                }
                CliError::Away { address, what } => CliError::Away { address, what: remote.with_ports(what) },
                error => error,
            }
        })?;
        Ok(Self { runtime, link, shown: remote.shown(), name: remote.name().to_vec(), address })
    }

    /// What becomes of something that is asked of the server.
    pub(crate) fn wait<T>(&self, asked: impl Future<Output = Result<T, RemoteError>>) -> Result<T, CliError> {
        self.runtime.block_on(asked).map_err(|cause| self.cli_error(&cause))
    }

    /// [`wait`](Self::wait), for those who know what to do about some errors.
    pub(crate) fn attempt<T>(
        &self,
        asked: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        self.runtime.block_on(asked)
    }

    /// What `TYPE` says.
    pub(crate) fn type_of_name(&self) -> Result<String, CliError> {
        let reply = self.wait(self.link.ask_one(Request::read("TYPE", &self.name)))?;
        match reply {
            Value::SimpleString(kind) => Ok(kind),
            other => Err(self.cli_error(&RemoteError::reply("a type", &other))),
        }
    }

    /// The commands by which what `TYPE` calls so is asked, if it is a filter of the server's own.
    pub(crate) fn family_of_type(kind: &str) -> Option<Family> {
        Named::of_type(kind).map(|named| named.family())
    }

    /// Its name as text, for filters of Java's.
    pub(crate) fn name_as_text(&self) -> Result<&str, CliError> {
        let what = "the name is no text in UTF-8, as names in Java are";
        std::str::from_utf8(&self.name).map_err(|_| self.odd(what.into()))
    }

    pub(crate) const fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// How full a filter in shards is, if all of it says so.
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

    /// Which of these commands does it know, as far as it says?
    pub(crate) fn knows<const N: usize>(&self, commands: [&str; N]) -> Result<[bool; N], CliError> {
        let mut command = redis::cmd("COMMAND");
        command.arg("INFO").arg(&commands[..]);
        let known = self.wait(self.link.ask_one(Request::whole(command, &self.name, Access::Read)))?;
        let Value::Array(known) = known else { return Ok([true; N]) };
        Ok(std::array::from_fn(|index| known.get(index).is_some_and(|known| *known != Value::Nil)))
    }

    /// Can bitmaps of programs in Java be written to there?
    ///
    /// # Errors
    /// They cannot.
    pub(crate) fn check_for_bitmaps(&self) -> Result<(), CliError> {
        let [scripts] = self.knows(["EVAL"])?;
        let what = "this server has no scripts (EVAL), which bitmaps of Redisson and Guava are written by: a Redis or Valkey has them";
        if scripts { Ok(()) } else { Err(self.odd(what.into())) }
    }

    /// A bitmap that is longer than its measurements need has others: it would deny its items.
    fn check_length(&self, shape: GuavaShape) -> Result<(), CliError> {
        if self.type_of_name()? != "string" {
            return Ok(());
        }
        let Value::Int(bytes) = self.wait(self.link.ask_one(Request::read("STRLEN", &self.name)))? else {
            return Ok(());
        };
        // With the marker, whether it is looked at or not.
        let needed = (shape.bits() + 1).div_ceil(8);
        if bytes as u64 <= needed {
            return Ok(());
        }
        let words = shape.bits().next_multiple_of(64);
        Err(self.odd(format!(
            "has {} bytes, and a bitmap of {} bits has {}: its measurements are others; what `mayhap build` and `push` make has whole \
             words, as Guava's own ({} bits here), and they tell the words to ask with (--bits, --probes, --strategy)",
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

    /// Something about the filter.
    pub(crate) fn odd(&self, what: String) -> CliError {
        CliError::Filter { name: self.shown.clone(), what }
    }

    /// What one of these errors is to people.
    pub(crate) fn cli_error(&self, cause: &RemoteError) -> CliError {
        match cause {
            RemoteError::Connect { .. } | RemoteError::Patience { .. } => cli_error(&self.address, cause),
            RemoteError::Refused { code, text } if matches!(code.as_str(), "NOAUTH" | "WRONGPASS") => {
                let what = format!(
                    "does not let us in: {text} (a password is in the address, REDISCLI_AUTH or --password-file)"
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
            (said_of(cause, LinkOptions::default().connecting), is_io)
        }
        cause => (cause.to_string(), matches!(cause, RemoteError::Patience { .. })),
    };
    let address = address.to_owned();
    if may_come_back { CliError::Away { address, what } } else { CliError::Server { address, what } }
}

impl RemoteFilter {
    /// The filter of this name, told by what the server says of it, or as `layout` says.
    ///
    /// # Errors
    /// There is none, it is not told what it is or how its items become bytes, or the server does not answer.
    pub(crate) fn open(
        remote: &Remote,
        args: &RemoteArgs,
        layout: &LayoutArgs,
        items_as: Option<ItemEncoding>,
    ) -> Result<Self, CliError> {
        Self::open_in(Haste::None, remote, args, layout, items_as)
    }

    /// [`open`](Self::open) with so much haste.
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
                "holds a string: if it is a bitmap with Guava's placement, say so with --as guava, and its \
                         measurements with --bits and --probes or --expected-insertions and --fpp"
                    .into()
            }
            kind => format!("holds a {kind}, which is no filter"),
        }))
    }

    /// The whole filter out of the server, for those who look at its bits.
    ///
    /// # Errors
    /// It cannot be read, or is no filter: [`CliError::NotSuch`] if what came is damaged.
    pub(crate) fn fetch(
        &self,
        remote: &Remote,
        args: &RemoteArgs,
        progress: &Progress,
    ) -> Result<(Filter, Format), CliError> {
        let family = match &self.filter {
            Kind::Named(named) => named.family(),
            Kind::Sharded(_) => return Err(self.server.odd("is in shards, and in no single filter".into())),
            Kind::Redisson(_) | Kind::Guava(_) => {
                return Err(self.server.odd("is a bitmap of Java's, which stays where it is".into()));
            }
        };
        let mut connection = remote.connect(args)?;
        if !connection.has_command(family.dump_command())? {
            let what =
                format!("the server has no {}, so that it cannot be read whole", family.dump_command());
            return Err(self.server.odd(what));
        }
        let filter = fetch::filter(&mut connection, remote, family, progress)?;
        Ok((filter, family.format()))
    }

    /// Is all of it there? For what cannot be [fetched](Self::fetch): what is missing, and whose layout it is.
    ///
    /// # Errors
    /// The server does not say.
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

    /// Is it one filter of the server's own?
    pub(crate) const fn is_named(&self) -> bool {
        matches!(self.filter, Kind::Named(_))
    }

    /// The name of the shard that an item is in, where it is one of the server's own filters.
    pub(crate) fn shard_of(&self, item: &[u8]) -> Option<String> {
        let Kind::Sharded(filter) = &self.filter else { return None };
        let report = self.server.wait(filter.info()).ok()?;
        if report.measures().backend() == Backend::Plain {
            return None;
        }
        let keys = self.server.wait(filter.shard_keys(&[item])).ok()?;
        Some(String::from_utf8_lossy(keys.first()?).into_owned())
    }

    /// What lines are to it.
    pub(crate) fn form(&self) -> ItemForm {
        self.form
    }

    /// As messages call it.
    pub(crate) fn shown(&self) -> &str {
        &self.server.shown
    }

    /// Is it asked in great haste from now on?
    pub(crate) fn hurry(&self, hurried: bool) {
        self.server.link.set_hurried(hurried);
    }

    /// The answers for these items.
    pub(crate) fn ask(&self, items: &[LineItem<'_>]) -> Told<Answer> {
        let told = |answers: Answers| Told::new(answers.as_slice().to_vec(), answers.error());
        let runtime = &self.server.runtime;
        match &self.filter {
            Kind::Named(named) => runtime.block_on(named.ask(&self.server, items)),
            Kind::Sharded(filter) => told(runtime.block_on(filter.ask(&as_bytes(items)))),
            Kind::Redisson(filter) => told(runtime.block_on(filter.ask(items))),
            Kind::Guava(bitmap) => told(runtime.block_on(bitmap.ask(items))),
        }
    }

    /// Adds these items.
    pub(crate) fn add(&self, items: &[LineItem<'_>], copies: Copies) -> Told<Added> {
        let told = |added: Additions| Told::new(added.as_slice().to_vec(), added.error());
        let runtime = &self.server.runtime;
        match &self.filter {
            Kind::Named(named) => runtime.block_on(named.add(&self.server, items, copies)),
            Kind::Sharded(filter) => told(runtime.block_on(filter.add(&as_bytes(items)))),
            Kind::Redisson(filter) => told(runtime.block_on(filter.add(items))),
            Kind::Guava(bitmap) => told(runtime.block_on(bitmap.add(items))),
        }
    }

    /// Takes these items out, one by one. Was each in?
    pub(crate) fn remove(&self, items: &[&[u8]]) -> Vec<Result<bool, RemoteError>> {
        match &self.filter {
            Kind::Named(named) => self.server.runtime.block_on(named.remove(&self.server, items)),
            _ => Vec::new(),
        }
    }

    /// Can the server take items out of it?
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn check_for_removing(&self) -> Result<(), CliError> {
        let what = match &self.filter {
            Kind::Named(named) if named.family() != Family::Bloom => return Ok(()),
            Kind::Named(_) => {
                "a Bloom filter gives nothing out (BF.*): items can be removed from filters of CF.*, and of MF.* that were made for it"
            }
            Kind::Sharded(_) => {
                "a filter in shards gives nothing out: build it again without the items, with --force"
            }
            Kind::Redisson(_) | Kind::Guava(_) => {
                "a Bloom filter gives nothing out: build it again without the items, with --force"
            }
        };
        Err(self.server.odd(what.into()))
    }

    /// Can the server add to it?
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn check_for_adding(&self) -> Result<(), CliError> {
        match &self.filter {
            Kind::Redisson(_) | Kind::Guava(_) => self.server.check_for_bitmaps(),
            Kind::Named(_) | Kind::Sharded(_) => Ok(()),
        }
    }

    /// How full it is, where that and what it was made for is known.
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

    /// The same where that takes a request or two: not where the server has to count bits for it.
    pub(crate) fn quick_fullness(&self) -> Option<Fullness> {
        match &self.filter {
            Kind::Named(_) | Kind::Sharded(_) => self.fullness(),
            Kind::Redisson(_) | Kind::Guava(_) => None,
        }
    }

    /// What is known of it; how its items become bytes only if somebody says it.
    ///
    /// # Errors
    /// The server does not say.
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

/// Items as the bytes they are.
fn as_bytes(items: &[LineItem<'_>]) -> Vec<Vec<u8>> {
    items.iter().map(|item| item.with_bytes(<[u8]>::to_vec)).collect()
}

/// What becomes of an item that is mayhap in already, in a filter that counts copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    /// One more.
    Another,
    /// None more.
    NewOnly,
}

fn needs_encoding(
    server: &Server,
    whose: &str,
    items_as: Option<ItemEncoding>,
) -> Result<ItemEncoding, CliError> {
    items_as.ok_or_else(|| {
        server.odd(format!(
            "nothing in the server says how {whose} made bytes of items: give --items-as (kryo5 for Redisson's default, utf8, i64le, \
             …; docs/formats.md has the one for each)"
        ))
    })
}
