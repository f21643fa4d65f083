//! One client's session: what it said about itself, and the commands that are about the connection or the server.
//!
//! ```text
//! words ─▶ sort ─▶ part of a batch, which the engine runs
//!               └▶ run apart: refused, queued by MULTI, or answered here
//! ```

mod access;
mod clients;
mod cluster;
mod commands;
mod handshake;
pub(crate) mod help;
mod operate;
mod slow;
mod transaction;

use std::sync::Arc;
use std::time::{Duration, Instant};

use mayhap_command::run::{Keyspace, Server};
use mayhap_command::server::{SessionRefusal, subcommand};
use mayhap_command::{Command, Refusal, Reply, Request, Run, Scratch, table};

use crate::client::Client;
use crate::counters::Counters;
use crate::resp::{Protocol, decode, encode};
use crate::shared::Shared;
use transaction::Transaction;

/// A request with more bytes than this keeps a worker busy for long.
const LARGE_BYTES: usize = 1 << 20;
/// Names of commands that are no longer than this are remembered.
const REMEMBERED: usize = 16;

/// Work that takes long: it is done on a thread of its own and gives the reply.
pub(crate) type Job = Box<dyn FnOnce() -> Reply + Send>;

/// What follows a request.
pub(crate) enum Next {
    /// The next one.
    Go,
    /// The next one, once the client has read what it asked for.
    Wait,
    /// Nothing, until this is done.
    Job(Job),
    /// Nothing, until the engine has run this request on a thread of its own.
    Long(&'static Command),
    /// The end.
    Close,
}

/// What a session command gives.
pub(crate) enum Answer {
    /// A reply.
    Reply(Reply),
    /// Nothing at all.
    Silence,
    /// A reply, and the end of the connection.
    Last(Reply),
    /// Work that takes long.
    Job(Job),
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

/// Who runs a request.
#[derive(Debug)]
pub(crate) enum Sorted {
    /// The engine, together with its neighbours.
    Batch(&'static Command),
    /// The session, or the engine at the session's order.
    Apart(&'static Command),
    /// Nobody.
    Refused(Refusal),
}

/// Whether requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    On,
    Off,
    /// The one that is run is not, the next one is.
    SkipThis,
    /// The next one is not.
    SkipNext,
}

/// One client's session.
#[derive(Debug)]
pub(crate) struct Session {
    client: Arc<Client>,
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    protocol: Protocol,
    authenticated: bool,
    answers: Answers,
    transaction: Transaction,
    /// When the last request was run.
    last_run: Instant,
    /// Is all as usual, so that requests for the engine need not be looked at one by one?
    plain: bool,
    /// The command's name that was looked up last, as it was spelled.
    last: ([u8; REMEMBERED], usize, Option<&'static Command>),
}

/// What a batch is run with.
#[derive(Debug)]
pub(crate) struct Tools<'a> {
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) replies: &'a mut Vec<Reply>,
    pub(crate) out: &'a mut Vec<u8>,
}

impl Session {
    pub(crate) fn new(client: Arc<Client>, shared: &Arc<Shared>, counters: &Arc<Counters>) -> Self {
        let mut session = Self {
            client,
            shared: Arc::clone(shared),
            counters: Arc::clone(counters),
            protocol: Protocol::default(),
            authenticated: shared.password().is_none(),
            answers: Answers::On,
            transaction: Transaction::default(),
            last_run: Instant::now(),
            plain: false,
            last: ([0; REMEMBERED], 0, None),
        };
        session.settle();
        session
    }

    /// When the last request was run.
    pub(crate) const fn last_run(&self) -> Instant {
        self.last_run
    }

    /// What a request of this client may hold.
    pub(crate) fn request_limits(&self) -> decode::Limits {
        decode::Limits { authenticated: self.authenticated, ..self.shared.settings().request_limits }
    }

    /// Who runs this request of so many bytes?
    pub(crate) fn sort(&mut self, words: &[&[u8]], bytes: usize) -> Sorted {
        let Some(command) = self.find(words[0]) else {
            return Sorted::Refused(Refusal::unknown_command(words));
        };
        if !command.arity.admits(words.len()) {
            self.shared.engine().statistics().rejected(command);
            return Sorted::Refused(Refusal::WrongArity { command: command.name });
        }
        if let Run::Server(server) = command.run {
            return match self.check_subcommand(server, command, words) {
                Ok(()) => Sorted::Apart(command),
                Err(refusal) => Sorted::Refused(refusal),
            };
        }
        match self.plain && !takes_long(command, bytes) {
            true => Sorted::Batch(command),
            false => Sorted::Apart(command),
        }
    }

    /// The command of this name. In a pipeline it mostly is the one before.
    fn find(&mut self, name: &[u8]) -> Option<&'static Command> {
        let (remembered, length, command) = &self.last;
        if command.is_some() && remembered[..*length] == *name {
            return *command;
        }
        let found = table::find(name);
        if let (Some(_), Some(remembered)) = (found, self.last.0.get_mut(..name.len())) {
            remembered.copy_from_slice(name);
            self.last.1 = name.len();
            self.last.2 = found;
        }
        found
    }

    /// A command with words of its own behind it wants one that it knows, and as many words as that one takes.
    fn check_subcommand(&self, server: Server, command: &Command, words: &[&[u8]]) -> Result<(), Refusal> {
        let has_some = matches!(
            server,
            Server::Acl
                | Server::Client
                | Server::Cluster
                | Server::Command
                | Server::Config
                | Server::Debug
                | Server::Latency
                | Server::Module
                | Server::SlowLog
        );
        let (true, Some(word)) = (has_some, words.get(1)) else { return Ok(()) };
        match subcommand(server, word) {
            None => Err(Refusal::UnknownSubcommand { command: upper(command.name), word: shown(word) }),
            Some(row) if row.arity.admits(words.len()) => Ok(()),
            Some(row) => Err(Refusal::WrongSubcommandArity { command: command.name, word: row.name }),
        }
    }

    /// Runs what is no part of a batch.
    pub(crate) fn run(
        &mut self,
        sorted: Sorted,
        words: &[&[u8]],
        bytes: usize,
        tools: &mut Tools<'_>,
    ) -> Next {
        if self.answers == Answers::SkipNext {
            self.answers = Answers::SkipThis;
        }
        let next = match self.decide(sorted, words, bytes) {
            Ok(Decided::Engine(command)) => {
                self.run_batch(&mut vec![Request { command, words }], tools);
                Next::Go
            }
            Ok(Decided::Long(command)) => Next::Long(command),
            Ok(Decided::Server(command, server)) => self.run_server(command, server, words, tools),
            Ok(Decided::Queued) => {
                self.write(&Reply::simple("QUEUED"), tools.out);
                Next::Go
            }
            Err(refusal) => {
                self.counters.refused();
                self.transaction.spoil();
                self.write(&Reply::from(refusal), tools.out);
                Next::Go
            }
        };
        if self.answers == Answers::SkipThis && !matches!(next, Next::Long(_) | Next::Job(_)) {
            self.answers = Answers::On;
        }
        self.settle();
        next
    }

    /// Is it run now, later or not at all?
    fn decide(&mut self, sorted: Sorted, words: &[&[u8]], bytes: usize) -> Result<Decided, Refusal> {
        let command = match sorted {
            Sorted::Batch(command) | Sorted::Apart(command) => command,
            Sorted::Refused(refusal) => return Err(refusal),
        };
        let server = match command.run {
            Run::Server(server) => Some(server),
            _ => None,
        };
        let for_strangers =
            matches!(server, Some(Server::Auth | Server::Hello | Server::Quit | Server::Reset));
        if !self.authenticated && !for_strangers {
            self.shared.engine().statistics().rejected(command);
            return Err(SessionRefusal::NoAuth.into());
        }
        let at_once = matches!(
            server,
            Some(
                Server::Exec | Server::Discard | Server::Multi | Server::Watch | Server::Quit | Server::Reset
            )
        );
        if self.transaction.is_open() && !at_once {
            self.transaction.queue(command, words, self.shared.settings().request_limits.word_bytes)?;
            return Ok(Decided::Queued);
        }
        Ok(match server {
            Some(server) => Decided::Server(command, server),
            None if takes_long(command, bytes) => Decided::Long(command),
            None => Decided::Engine(command),
        })
    }

    /// Runs a command that is about the connection or the server, and writes its reply.
    fn run_server(
        &mut self,
        command: &'static Command,
        server: Server,
        words: &[&[u8]],
        tools: &mut Tools<'_>,
    ) -> Next {
        let begun = Instant::now();
        self.client.identify(|identity| identity.command = command.name);
        let answer = match server {
            Server::Exec => self.exec(tools),
            _ => self.answer(server, words),
        };
        self.last_run = Instant::now();
        let took = self.last_run.saturating_duration_since(begun);
        self.ran(&[Request { command, words }], took);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.shared.engine().statistics().ran(command, 1, u64::from(answer.is_err()), nanos);
        match answer.unwrap_or_else(|refusal| Answer::Reply(refusal.into())) {
            Answer::Reply(reply) => {
                self.write(&reply, tools.out);
                Next::Go
            }
            Answer::Silence => Next::Go,
            Answer::Last(reply) => {
                self.write(&reply, tools.out);
                Next::Close
            }
            Answer::Job(job) => Next::Job(job),
        }
    }

    /// What a command that is about the connection or the server gives. `EXEC` is not among them.
    fn answer(&mut self, server: Server, words: &[&[u8]]) -> Result<Answer, Refusal> {
        match server {
            Server::Acl => self.acl(words).map(Answer::from),
            Server::Auth => self.auth(words).map(Answer::from),
            Server::BackgroundSave => self.background_save(words).map(Answer::from),
            Server::Client => self.client(words),
            Server::Cluster => self.cluster(words).map(Answer::from),
            Server::Command => commands::command(words).map(Answer::from),
            Server::Config => crate::config::config(&self.shared, words).map(Answer::from),
            Server::Debug => self.debug(words),
            Server::Discard => self.discard().map(Answer::from),
            Server::Echo => Ok(Reply::bulk(words[1]).into()),
            Server::Hello => self.hello(words).map(Answer::from),
            Server::Info => crate::info::info(&self.shared, words).map(Answer::from),
            Server::LastSave => Ok(self.last_save().into()),
            Server::Latency => self.latency(words).map(Answer::from),
            Server::Module => self.module(words).map(Answer::from),
            Server::Multi => self.multi().map(Answer::from),
            Server::Ping => handshake::ping(words).map(Answer::from),
            Server::Quit => Ok(Answer::Last(Reply::Ok)),
            Server::ReadOnly => Err(SessionRefusal::NoCluster.into()),
            Server::ReplicaOf => operate::replica_of(words).map(Answer::from),
            Server::Reset => Ok(self.reset().into()),
            Server::Role => Ok(operate::role().into()),
            Server::Save => Ok(self.save()),
            Server::Select => handshake::select(words).map(Answer::from),
            Server::Shutdown => self.shutdown(words),
            Server::SlowLog => self.slow_log(words).map(Answer::from),
            Server::Time => Ok(operate::time().into()),
            Server::Unwatch => Ok(self.unwatch().into()),
            Server::Watch => self.watch(words).map(Answer::from),
            _ => Err(Refusal::Syntax),
        }
    }

    /// Has the engine run `requests`, writes the replies, and empties them.
    pub(crate) fn run_batch(&mut self, requests: &mut Vec<Request<'_>>, tools: &mut Tools<'_>) {
        if requests.is_empty() {
            return;
        }
        let begun = Instant::now();
        self.shared.engine().run(requests, tools.scratch, tools.replies);
        self.last_run = Instant::now();
        self.ran(requests, self.last_run.saturating_duration_since(begun));
        requests.clear();
        for reply in tools.replies.drain(..) {
            self.write(&reply, tools.out);
        }
    }

    /// Counts `requests`, which took so long together.
    pub(crate) fn ran(&self, requests: &[Request<'_>], took: Duration) {
        self.counters.ran(requests.len());
        if self.shared.slow_log().wants(took) || self.shared.latency().wants(took) {
            self.took_long(requests, took);
        }
    }

    #[cold]
    fn took_long(&self, requests: &[Request<'_>], took: Duration) {
        let Some(longest) = requests.iter().max_by_key(|request| request.words.len()) else { return };
        let seconds = operate::seconds();
        if self.shared.slow_log().wants(took) && !matches!(longest.command.run, Run::Server(Server::Exec)) {
            let name = self.client.identity().name;
            self.shared.slow_log().add(seconds, took, longest.words, &self.client.address, name);
        }
        if self.shared.latency().wants(took) {
            let event = if longest.command.flags.fast { "fast-command" } else { "command" };
            self.shared.latency().add(event, seconds, took);
        }
    }

    /// Writes the reply of a job, which is done.
    pub(crate) fn finish(&mut self, reply: &Reply, out: &mut Vec<u8>) {
        self.write(reply, out);
        self.finished();
    }

    /// A request that was to be run later is done, and its reply is written.
    pub(crate) fn finished(&mut self) -> Next {
        if self.answers == Answers::SkipThis {
            self.answers = Answers::On;
        }
        self.settle();
        Next::Go
    }

    /// Writes a reply as this client wants it, if it wants any.
    fn write(&self, reply: &Reply, out: &mut Vec<u8>) {
        if matches!(self.answers, Answers::On | Answers::SkipNext) {
            encode::reply(reply, self.protocol, out);
        }
    }

    /// What was changed decides how the next requests are sorted, and is shown to others.
    fn settle(&mut self) {
        self.plain = self.authenticated && !self.transaction.is_open() && matches!(self.answers, Answers::On);
        self.client.speaks(self.protocol);
        self.client.in_transaction(self.transaction.queued(), self.transaction.watched());
    }
}

/// What is done with a request.
enum Decided {
    /// The engine runs it.
    Engine(&'static Command),
    /// The engine runs it on a thread of its own.
    Long(&'static Command),
    /// The session runs it.
    Server(&'static Command, Server),
    /// `EXEC` will run it.
    Queued,
}

/// Might it keep a worker, and so all its connections, busy for many milliseconds?
fn takes_long(command: &Command, bytes: usize) -> bool {
    bytes > LARGE_BYTES
        || match command.run {
            Run::Items(_) => false,
            Run::Gather(_) => true,
            Run::Keyspace(which) => {
                matches!(
                    which,
                    Keyspace::List | Keyspace::Flush | Keyspace::Dump | Keyspace::Restore | Keyspace::Copy
                )
            }
            Run::Change(_) | Run::Look(_) => {
                matches!(command.name, "mf.build" | "mf.load" | "mf.merge" | "mf.dump" | "cf.compact")
            }
            Run::Server(_) => false,
        }
}

/// A word as an error repeats it.
fn shown(word: &[u8]) -> String {
    String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned()
}

/// A command's name as `Try … HELP` has it.
fn upper(name: &'static str) -> &'static str {
    match name {
        "acl" => "ACL",
        "client" => "CLIENT",
        "cluster" => "CLUSTER",
        "command" => "COMMAND",
        "config" => "CONFIG",
        "debug" => "DEBUG",
        "latency" => "LATENCY",
        "module" => "MODULE",
        "slowlog" => "SLOWLOG",
        other => other,
    }
}

/// Is it this word, however it is spelled?
fn is(word: &[u8], expected: &str) -> bool {
    word.eq_ignore_ascii_case(expected.as_bytes())
}

/// A map of fixed names.
fn map<const N: usize>(pairs: [(&str, Reply); N]) -> Reply {
    Reply::Map(pairs.into_iter().map(|(name, value)| (Reply::bulk(name), value)).collect())
}

/// A list of strings.
fn list<T: Into<Vec<u8>>>(items: impl IntoIterator<Item = T>) -> Reply {
    Reply::Array(items.into_iter().map(Reply::bulk).collect())
}
