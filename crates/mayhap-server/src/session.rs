//! The session of one client: its state, and the commands about the connection or the server.
//!
//! ```text
//! words ─▶ dispatch ─▶ part of a batch, which the engine executes
//!                   └▶ executed apart: refused, queued by MULTI, or answered here
//! ```

mod access;
mod clients;
mod cluster;
mod commands;
mod handshake;
pub(crate) mod help;
mod long;
mod operate;
mod redact;
mod slow;
mod transaction;

use std::sync::Arc;
use std::time::{Duration, Instant};

use mayhap_command::run::Server;
use mayhap_command::server::SessionRefusal;
use mayhap_command::traits::InTransaction;
use mayhap_command::{Command, Refusal, Reply, Request, Run, Scratch, table};

use crate::client::Client;
use crate::counters::Counters;
use crate::durable;
use crate::resp::{Protocol, decode, encode};
use crate::shared::Shared;
use crate::users::User;
use crate::users::back_off::LAST;
pub(crate) use access::conceal;
use long::takes_long;
use transaction::{Later, Transaction};

/// The maximum length of a command name that is remembered.
const REMEMBERED: usize = 16;

/// Work that takes long. It runs on a thread of its own and returns the reply.
pub(crate) type Job = Box<dyn FnOnce() -> Reply + Send>;

/// What the connection does after a request.
pub(crate) enum Next {
    /// Runs the next request.
    Go,
    /// Runs the next request after the client has read its replies.
    Wait,
    /// Runs the same request again after a pause.
    Hold,
    /// Waits until this job is done.
    Job(Job),
    /// Waits until the engine has run this request on a thread of its own.
    Long(&'static Command),
    /// Delays this reply, then runs the next request or closes the connection.
    Pause(Box<DelayedReply>),
    /// Closes the connection.
    Close,
}

/// A reply that is sent after a wait, as after a wrong password.
#[derive(Debug)]
pub(crate) struct DelayedReply {
    pub(crate) reply: Reply,
    pub(crate) wait: Duration,
    pub(crate) close: bool,
}

/// The result of a session command.
pub(crate) enum Answer {
    /// A reply.
    Reply(Reply),
    /// No reply.
    Silence,
    /// A reply, after which the connection is closed.
    Last(Reply),
    /// Work that takes long.
    Job(Job),
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

/// The place where a request is executed.
#[derive(Debug)]
pub(crate) enum Dispatch {
    /// In the engine, in a batch with neighbouring requests.
    Batch(&'static Command),
    /// In the session, or in the engine as a single request.
    Apart(&'static Command),
    /// Nowhere: it is refused.
    Refused(Refusal),
}

/// Whether requests get replies (`CLIENT REPLY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    On,
    Off,
    /// The current request gets none, the next one does.
    SkipThis,
    /// The next request gets none.
    SkipNext,
}

/// The session of one client.
#[derive(Debug)]
pub(crate) struct Session {
    client: Arc<Client>,
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    protocol: Protocol,
    authenticated: bool,
    /// The user of the requests, after authentication.
    user: Arc<User>,
    /// The value of [`Users::epoch`](crate::users::Users::epoch) when the user was looked up.
    epoch: u64,
    /// The id of the user that is shown to others.
    told: Option<u64>,
    /// The number of wrong passwords.
    wrong_passwords: u32,
    /// The delay of the reply to a password.
    wait: Duration,
    answers: Answers,
    transaction: Transaction,
    /// When the last request ran.
    last_run: Instant,
    /// The command of the running job, and when it began.
    job: Option<(&'static Command, Instant)>,
    /// The work after the job, if it belongs to a transaction.
    later: Option<Later>,
    /// Whether no request for the engine needs a check of its own.
    plain: bool,
    /// Log records below this number must be safe before the last replies may leave.
    unsynced: Option<u64>,
    /// The number of replies written since [`take_answered`](Self::take_answered).
    answered: usize,
    /// As `plain`, except that the user is restricted.
    limited: bool,
    /// The command name that was looked up last, as it was spelled.
    last: ([u8; REMEMBERED], usize, Option<&'static Command>),
}

/// Buffers for running a batch.
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
            authenticated: false,
            user: shared.users().default_user(),
            epoch: shared.users().epoch(),
            told: None,
            wrong_passwords: 0,
            wait: Duration::ZERO,
            answers: Answers::On,
            transaction: Transaction::default(),
            last_run: Instant::now(),
            job: None,
            later: None,
            plain: false,
            unsynced: None,
            answered: 0,
            limited: false,
            last: ([0; REMEMBERED], 0, None),
        };
        session.become_default();
        session.settle();
        session
    }

    /// When the last request ran.
    pub(crate) const fn last_run(&self) -> Instant {
        self.last_run
    }

    /// The limits for a request of this client.
    pub(crate) fn request_limits(&self) -> decode::Limits {
        decode::Limits { authenticated: self.authenticated, ..self.shared.settings().request_limits }
    }

    /// Bytes of its transaction.
    pub(crate) fn held_bytes(&self) -> usize {
        self.transaction.bytes()
    }

    /// Decides where a request of `bytes` bytes runs.
    pub(crate) fn dispatch(&mut self, words: &[&[u8]], bytes: usize) -> Dispatch {
        let Some(command) = self.find(words[0]) else {
            return Dispatch::Refused(Refusal::unknown_command(words));
        };
        if !command.arity.admits(words.len()) {
            self.shared.engine().statistics().rejected(command);
            return Dispatch::Refused(Refusal::WrongArity { command: command.name });
        }
        if let Run::Server(_) = command.run {
            return match check_subcommand(command, words) {
                Ok(()) => Dispatch::Apart(command),
                Err(refusal) => Dispatch::Refused(refusal),
            };
        }
        let is_long = takes_long(&Request { command, words }, bytes, self.shared.engine());
        if self.plain && !is_long {
            return Dispatch::Batch(command);
        }
        if self.limited
            && let Err(refusal) = self.permit(command, words)
        {
            self.shared.engine().statistics().rejected(command);
            return Dispatch::Refused(refusal);
        }
        match self.limited && !is_long {
            true => Dispatch::Batch(command),
            false => Dispatch::Apart(command),
        }
    }

    /// Returns the command with this name. In a pipeline it is usually the same as before.
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

    /// Runs a request that is not part of a batch.
    pub(crate) fn execute_apart(
        &mut self,
        dispatch: Dispatch,
        words: &[&[u8]],
        bytes: usize,
        tools: &mut Tools<'_>,
    ) -> Next {
        if self.answers == Answers::SkipNext {
            self.answers = Answers::SkipThis;
        }
        let next = match self.decide(dispatch, words, bytes) {
            Ok(Decided::Engine(command)) => {
                self.execute_batch(&mut vec![Request { command, words }], tools);
                Next::Go
            }
            Ok(Decided::Long(command)) => Next::Long(command),
            Ok(Decided::Server(command, server)) => self.execute_server(command, server, words, tools),
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
        if self.answers == Answers::SkipThis && !matches!(next, Next::Long(_) | Next::Job(_) | Next::Pause(_))
        {
            self.answers = Answers::On;
        }
        self.refresh();
        self.settle();
        next
    }

    /// Decides whether a request runs now, is queued or is refused.
    fn decide(&mut self, dispatch: Dispatch, words: &[&[u8]], bytes: usize) -> Result<Decided, Refusal> {
        let command = match dispatch {
            Dispatch::Batch(command) | Dispatch::Apart(command) => command,
            Dispatch::Refused(refusal) => return Err(refusal),
        };
        let server = match command.run {
            Run::Server(server) => Some(server),
            _ => None,
        };
        if !self.authenticated && !command.traits.needs_no_authentication {
            self.shared.engine().statistics().rejected(command);
            return Err(SessionRefusal::NoAuth.into());
        }
        if let Err(refusal) = self.permit(command, words) {
            self.shared.engine().statistics().rejected(command);
            return Err(refusal);
        }
        if self.transaction.is_open() && command.traits.in_transaction != InTransaction::AtOnce {
            self.transaction.queue(command, words, self.shared.settings().request_limits.request_bytes)?;
            return Ok(Decided::Queued);
        }
        Ok(match server {
            Some(server) => Decided::Server(command, server),
            None if takes_long(&Request { command, words }, bytes, self.shared.engine()) => {
                Decided::Long(command)
            }
            None => Decided::Engine(command),
        })
    }

    /// Runs a command about the connection or the server, and writes its reply.
    fn execute_server(
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
            _ => self.answer(server, Request { command, words }),
        };
        self.last_run = Instant::now();
        let took = self.last_run.saturating_duration_since(begun);
        self.count_requests(&[Request { command, words }], took);
        if let Ok(Answer::Job(_)) = answer {
            // The outcome is known when the job is done.
            self.job = Some((command, begun));
        } else {
            self.count(command, answer.is_err(), took);
        }
        let answer = answer.unwrap_or_else(|refusal| Answer::Reply(refusal.into()));
        let wait = self.take_wait();
        let last = matches!(answer, Answer::Last(_));
        match answer {
            Answer::Reply(reply) | Answer::Last(reply) if wait.is_some() => {
                Next::Pause(Box::new(DelayedReply {
                    reply,
                    wait: wait.unwrap_or_default(),
                    close: last || self.wrong_passwords >= LAST,
                }))
            }
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

    /// Counts one call of a command that the engine does not run.
    fn count(&self, command: &'static Command, failed: bool, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.shared.engine().statistics().ran(command, 1, u64::from(failed), nanos);
    }

    /// Runs a command about the connection or the server, except `EXEC`.
    fn answer(&mut self, server: Server, request: Request<'_>) -> Result<Answer, Refusal> {
        let words = request.words;
        match server {
            Server::Acl => self.acl(request),
            Server::Auth => self.auth(words).map(Answer::from),
            Server::RewriteLog => self.rewrite_log().map(Answer::from),
            Server::BackgroundSave => self.background_save(words).map(Answer::from),
            Server::Client => self.client(request),
            Server::Cluster => self.cluster(words).map(Answer::from),
            Server::Command => commands::command(request).map(Answer::from),
            Server::Config => crate::config::config(&self.shared, request).map(Answer::from),
            Server::Debug => self.debug(request),
            Server::Discard => self.discard().map(Answer::from),
            Server::Echo => Ok(Reply::bulk(words[1]).into()),
            Server::Hello => self.hello(words).map(Answer::from),
            Server::Info => crate::info::info(&self.shared, words).map(Answer::from),
            Server::LastSave => Ok(self.last_save().into()),
            Server::Latency => self.latency(request).map(Answer::from),
            Server::Module => self.module(request).map(Answer::from),
            Server::Multi => self.multi().map(Answer::from),
            Server::Ping => handshake::ping(request).map(Answer::from),
            Server::Quit => Ok(Answer::Last(Reply::Ok)),
            Server::ReadOnly => Err(SessionRefusal::NoCluster.into()),
            Server::ReplicaOf => operate::replica_of(words).map(Answer::from),
            Server::Reset => Ok(self.reset().into()),
            Server::Role => Ok(operate::role().into()),
            Server::Save => Ok(self.save()),
            Server::Select => handshake::select(words).map(Answer::from),
            Server::Shutdown => self.shutdown(words),
            Server::SlowLog => self.slow_log(request).map(Answer::from),
            Server::Time => Ok(operate::time().into()),
            Server::Unwatch => Ok(self.unwatch().into()),
            Server::Watch => self.watch(words),
            _ => Err(Refusal::Syntax),
        }
    }

    /// Runs `requests` in the engine, writes the replies and empties `requests`.
    pub(crate) fn execute_batch(&mut self, requests: &mut Vec<Request<'_>>, tools: &mut Tools<'_>) {
        if requests.is_empty() {
            return;
        }
        // One check for all of them.
        if self.shared.users().epoch() != self.epoch {
            return self.execute_after_user_change(requests, tools);
        }
        let begun = Instant::now();
        self.shared.engine().execute(requests, tools.scratch, tools.replies);
        self.unsynced = durable::commit(self.shared.engine(), requests, tools.replies).or(self.unsynced);
        self.last_run = Instant::now();
        self.count_requests(requests, self.last_run.saturating_duration_since(begun));
        if !self.user.is_unlimited() {
            for (reply, request) in tools.replies.iter_mut().zip(requests.iter()) {
                let whole = std::mem::replace(reply, Reply::Null);
                *reply = self.conceal(request.command, whole);
            }
        }
        requests.clear();
        for reply in tools.replies.drain(..) {
            self.write(&reply, tools.out);
        }
    }

    /// Returns the number below which log records must be safe before the written replies may leave, and
    /// clears it.
    pub(crate) const fn take_unsynced(&mut self) -> Option<u64> {
        self.unsynced.take()
    }

    /// Returns the number of replies written since the last call.
    pub(crate) const fn take_answered(&mut self) -> usize {
        std::mem::replace(&mut self.answered, 0)
    }

    /// Runs `requests` after users were changed: permissions are checked again.
    #[cold]
    fn execute_after_user_change(&mut self, requests: &mut Vec<Request<'_>>, tools: &mut Tools<'_>) {
        self.refresh();
        for request in std::mem::take(requests) {
            // The user is gone, and the connection is being closed.
            if self.client.is_killed() {
                return;
            }
            let permitted = match self.authenticated {
                true => self.permit(request.command, request.words),
                false => Err(SessionRefusal::NoAuth.into()),
            };
            match permitted {
                Ok(()) => self.execute_batch(&mut vec![request], tools),
                Err(refusal) => {
                    self.counters.refused();
                    self.shared.engine().statistics().rejected(request.command);
                    self.write(&Reply::from(refusal), tools.out);
                }
            }
        }
    }

    /// Counts `requests`, which together took `took`.
    pub(crate) fn count_requests(&self, requests: &[Request<'_>], took: Duration) {
        self.counters.ran(requests.len());
        if self.shared.slow_log().wants(took) || self.shared.latency().wants(took) {
            self.took_long(requests, took);
        }
    }

    #[cold]
    fn took_long(&self, requests: &[Request<'_>], took: Duration) {
        let Some(longest) = requests.iter().max_by_key(|request| request.words.len()) else { return };
        let seconds = operate::seconds();
        if self.shared.slow_log().wants(took) && !longest.command.traits.skips_slow_log {
            let name = self.client.identity().name;
            let words = redact::redacted(longest.command, longest.words);
            self.shared.slow_log().add(seconds, took, &words, &self.client.address, name);
        }
        if self.shared.latency().wants(took) {
            let event = if longest.command.flags.fast { "fast-command" } else { "command" };
            self.shared.latency().add(event, seconds, took);
        }
    }

    /// Writes the reply of a finished job.
    pub(crate) fn finish(&mut self, reply: Reply, out: &mut Vec<u8>) {
        let reply = match self.later.take() {
            Some(later) => self.end_transaction(later, reply),
            None => reply,
        };
        if let Some((command, begun)) = self.job.take() {
            self.count(command, matches!(reply, Reply::Refused(_)), begun.elapsed());
        }
        self.write(&reply, out);
        self.finished();
    }

    /// The protocol for the reply to the current request; `None` if it gets no reply.
    pub(crate) fn answers_in(&self) -> Option<Protocol> {
        matches!(self.answers, Answers::On | Answers::SkipNext).then_some(self.protocol)
    }

    /// Ends a request that ran on a thread of its own. Its reply is written.
    pub(crate) fn finished(&mut self) -> Next {
        if self.answers == Answers::SkipThis {
            self.answers = Answers::On;
        }
        self.settle();
        Next::Go
    }

    /// Writes a refusal in place of each of `replies` replies.
    pub(crate) fn refuse(&self, refusal: Refusal, replies: usize, out: &mut Vec<u8>) {
        let reply = Reply::from(refusal);
        (0..replies).for_each(|_| encode::reply(&reply, self.protocol, out));
    }

    /// Writes a reply in the client's protocol, unless it wants none.
    fn write(&mut self, reply: &Reply, out: &mut Vec<u8>) {
        if let Some(protocol) = self.answers_in() {
            encode::reply(reply, protocol, out);
            self.answered += 1;
        }
    }

    /// Updates how the next requests are sorted and what others see of this client.
    fn settle(&mut self) {
        let usual = self.authenticated && !self.transaction.is_open() && matches!(self.answers, Answers::On);
        let free = self.user.is_unlimited() && !self.shared.users().off().any_of_engine();
        self.plain = usual && free;
        self.limited = usual && !free;
        if self.told != Some(self.user.id) {
            self.told = Some(self.user.id);
            self.client.identify(|identity| identity.user = self.user.name().to_vec());
        }
        self.client.speaks(self.protocol);
        self.client.in_transaction(self.transaction.queued(), self.transaction.watched());
    }
}

/// What happens with a request.
enum Decided {
    /// The engine runs it.
    Engine(&'static Command),
    /// The engine runs it on a thread of its own.
    Long(&'static Command),
    /// The session runs it.
    Server(&'static Command, Server),
    /// It is queued for `EXEC`.
    Queued,
}

/// Checks that a command with subcommands has a known one and the right number of words.
fn check_subcommand(command: &Command, words: &[&[u8]]) -> Result<(), Refusal> {
    let (false, Some(word)) = (command.traits.subcommands.is_empty(), words.get(1)) else { return Ok(()) };
    match command.subcommand(word) {
        None => Err(Refusal::UnknownSubcommand { command: command.name, word: shown(word) }),
        Some(row) if row.arity.admits(words.len()) => Ok(()),
        Some(row) => Err(Refusal::WrongSubcommandArity { command: command.name, word: row.name }),
    }
}

/// A word as it is repeated in errors.
fn shown(word: &[u8]) -> String {
    String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned()
}

/// Whether `word` is `name`, ignoring case.
fn is(word: &[u8], expected: &str) -> bool {
    word.eq_ignore_ascii_case(expected.as_bytes())
}

/// A map with fixed keys.
fn map<const N: usize>(pairs: [(&str, Reply); N]) -> Reply {
    Reply::Map(pairs.into_iter().map(|(name, value)| (Reply::bulk(name), value)).collect())
}

/// A list of strings.
fn list<T: Into<Vec<u8>>>(items: impl IntoIterator<Item = T>) -> Reply {
    Reply::Array(items.into_iter().map(Reply::bulk).collect())
}
