//! `ACL`: users, and the permissions of the session's user.

use std::sync::Arc;
use std::time::Duration;

use mayhap_command::run::Keyspace;
use mayhap_command::server::SessionRefusal;
use mayhap_command::{Command, Environment as _, Refusal, Reply, Request, Run, Touch, args, table};
use mayhap_engine::System;

use super::{Answer, Session, help, is, list, map, shown};
use crate::users::acts::Act;
use crate::users::back_off::LAST;
use crate::users::category::{self, CATEGORIES};
use crate::users::refusals::{Reason, Refused};
use crate::users::{ChangeError, DEFAULT, Denied, User, Users, hex, line};

/// The default number of bits for `ACL GENPASS`.
const BITS: i64 = 256;
const MOST_BITS: i64 = 4_096;
/// The default number of entries of `ACL LOG`.
const ENTRIES: usize = 10;

/// Removes names that `user` may not see from the reply of a command that lists names.
pub(crate) fn conceal(user: &User, command: &Command, reply: Reply) -> Reply {
    let Run::Keyspace(which @ (Keyspace::Scan | Keyspace::List | Keyspace::Random)) = command.run else {
        return reply;
    };
    if user.has_all_names() {
        return reply;
    }
    let is_open = |reply: &Reply| match reply {
        Reply::Bulk(name) => user.may_touch(name, Touch::Notice),
        _ => true,
    };
    match (which, reply) {
        (Keyspace::List, Reply::Array(names)) => Reply::Array(names.into_iter().filter(is_open).collect()),
        (Keyspace::Scan, Reply::Array(mut page)) => {
            // A page is the cursor and the names.
            if let Some(Reply::Array(names)) = page.get_mut(1) {
                names.retain(is_open);
            }
            Reply::Array(page)
        }
        (Keyspace::Random, name) if !is_open(&name) => Reply::Null,
        (_, reply) => reply,
    }
}

impl Session {
    /// If users have changed, looks up the session's user again. Ends the session if that user is gone.
    pub(crate) fn refresh(&mut self) {
        if self.shared.users().epoch() != self.epoch {
            self.take_user_again();
        }
    }

    #[cold]
    fn take_user_again(&mut self) {
        let users = self.shared.users();
        self.epoch = users.epoch();
        if self.authenticated {
            match users.get(self.user.name()).filter(|user| user.id == self.user.id) {
                Some(user) => self.user = user,
                None => {
                    self.authenticated = false;
                    self.client.kill();
                }
            }
        } else {
            self.become_default();
        }
        self.settle();
    }

    /// Begins as the default user, authenticated if that user needs no password.
    pub(super) fn become_default(&mut self) {
        self.user = self.shared.users().default_user();
        self.authenticated = self.user.is_open();
    }

    /// Makes this user the user of the session.
    pub(super) fn become_user(&mut self, user: Arc<User>) {
        self.user = user;
        self.authenticated = true;
    }

    /// Checks that the command is enabled and that the session's user may run it.
    pub(super) fn permit(&self, command: &'static Command, words: &[&[u8]]) -> Result<(), Refusal> {
        if let Some(why) = self.shared.users().off().why(command) {
            let command = command.name.to_ascii_uppercase();
            return Err(SessionRefusal::Off { command, why }.into());
        }
        // Commands for authentication are always allowed.
        if command.traits.needs_no_authentication {
            return Ok(());
        }
        let denied = match self.user.may(&Request { command, words }) {
            Ok(()) => return Ok(()),
            Err(denied) => denied,
        };
        let (reason, object) = match &denied {
            Denied::Command(name) => (Reason::Command, name.clone().into_bytes()),
            Denied::Name(name) => (Reason::Name, name.clone()),
        };
        self.log_refused(reason, object, self.user.name().to_vec());
        Err(match denied {
            Denied::Command(command) => SessionRefusal::NoCommand { user: self.user.shown(), command },
            Denied::Name(_) => SessionRefusal::NoName,
        }
        .into())
    }

    /// As [`conceal`], for the session's user.
    pub(crate) fn conceal(&self, command: &Command, reply: Reply) -> Reply {
        conceal(&self.user, command, reply)
    }

    /// The user of the session.
    pub(crate) const fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Adds an entry to `ACL LOG`.
    fn log_refused(&self, reason: Reason, object: Vec<u8>, user: Vec<u8>) {
        let in_transaction = self.transaction.is_open();
        let refused = Refused { reason, in_transaction, object, user };
        self.shared.users().refusals().add(refused, self.client.line(), System.now_ms());
    }

    /// Returns the user with this name if the password is right. After many wrong passwords the reply is
    /// delayed.
    pub(super) fn authenticate(
        &mut self,
        command: &[u8],
        name: &[u8],
        password: &[u8],
    ) -> Result<Arc<User>, Refusal> {
        let users = self.shared.users();
        let now = std::time::Instant::now();
        // A connection has no more attempts than these, whichever command they come in.
        let may_guess = self.wrong_passwords < LAST;
        if let Some(user) = users.authenticate(name, password).filter(|_| may_guess) {
            let wait = users.back_off().right(self.client.source(), now);
            // A wrong password earlier in the same transaction may already require a longer wait.
            self.wait = self.wait.max(wait);
            return Ok(user);
        }
        self.wrong_passwords = self.wrong_passwords.saturating_add(1);
        let wait = users.back_off().wrong(self.client.source(), self.wrong_passwords, now);
        self.wait = self.wait.max(wait);
        // A user may have typed the password in place of the name: do not log it.
        let name = if users.get(name).is_some() { name } else { b"(unknown)" };
        tracing::warn!(
            client = self.client.id,
            address = self.client.address,
            user = %String::from_utf8_lossy(name),
            wrong = self.wrong_passwords,
            "wrong password"
        );
        self.log_refused(Reason::Auth, command.to_vec(), name.to_vec());
        Err(SessionRefusal::WrongPass.into())
    }

    /// Takes the delay of the reply, if there is one.
    pub(super) fn take_wait(&mut self) -> Option<Duration> {
        let wait = std::mem::take(&mut self.wait);
        (!wait.is_zero()).then_some(wait)
    }

    /// As [`take_wait`](Self::take_wait), for a reply that is written but not sent. Also returns whether to
    /// close the connection after it.
    pub(crate) fn take_pause(&mut self) -> Option<(Duration, bool)> {
        self.take_wait().map(|wait| (wait, self.wrong_passwords >= LAST))
    }

    /// Runs `ACL subcommand …`. The subcommand exists and the number of words is right.
    pub(super) fn acl(&mut self, request: Request<'_>) -> Result<Answer, Refusal> {
        let Request { command, words } = request;
        let users = self.shared.users();
        Ok(Answer::Reply(match words[1].to_ascii_lowercase().as_slice() {
            b"whoami" => Reply::bulk(self.user.name()),
            b"users" => list(users.all().keys().cloned()),
            b"list" => list(users.all().values().map(|user| line(user))),
            b"cat" => cat(request)?,
            b"getuser" => users.get(words[2]).map_or(Reply::Null, |user| show(&user)),
            b"setuser" => {
                users.change(words[2], &words[3..]).map_err(|error| match error {
                    ChangeError::Name => SessionRefusal::UserName,
                    ChangeError::Rule { rule, error } => SessionRefusal::Rule { rule, why: error.text() },
                    ChangeError::Exposes => SessionRefusal::WouldExpose,
                })?;
                tracing::info!(client = self.client.id, user = shown(words[2]), "user changed");
                Reply::Ok
            }
            b"deluser" => return self.remove_users(&words[2..]),
            b"dryrun" => dry_run(users, &words[2..])?,
            b"genpass" => generate(request)?,
            b"log" => self.log(request)?,
            b"save" | b"load" if !users.has_file() => return Err(SessionRefusal::NoUsersFile.into()),
            b"save" => {
                let shared = Arc::clone(&self.shared);
                return Ok(Answer::Job(Box::new(move || match shared.users().save() {
                    Ok(()) => Reply::Ok,
                    Err(error) => Refusal::from(SessionRefusal::UsersFile(error.to_string())).into(),
                })));
            }
            b"load" => {
                users.load().map_err(|error| SessionRefusal::UsersFile(error.to_string()))?;
                tracing::info!(client = self.client.id, users = users.all().len(), "users loaded");
                // Sessions whose user is gone notice it when they wake up.
                self.shared.clients().wake_all();
                Reply::Ok
            }
            _ => help::of(command),
        }))
    }

    /// `ACL DELUSER name …`: closes the connections of these users.
    fn remove_users(&self, names: &[&[u8]]) -> Result<Answer, Refusal> {
        if names.contains(&DEFAULT) {
            return Err(SessionRefusal::DefaultUser.into());
        }
        let removed = self.shared.users().remove(names);
        let mut others = Vec::new();
        let mut ours = false;
        for client in self.shared.clients().list() {
            if !names.contains(&client.identity().user.as_slice()) {
                continue;
            }
            if client.id == self.client.id {
                ours = true;
            } else {
                client.kill();
                others.push(client.id);
            }
        }
        tracing::info!(client = self.client.id, removed, "users removed");
        let reply = Reply::count(removed);
        Ok(if ours { Answer::Last(reply) } else { self.once_closed(others, reply) })
    }

    /// `ACL LOG [count | RESET]`.
    fn log(&self, Request { command, words }: Request<'_>) -> Result<Reply, Refusal> {
        let refusals = self.shared.users().refusals();
        let most = match words[2..] {
            [] => ENTRIES,
            [word] if is(word, "reset") => {
                refusals.reset();
                return Ok(Reply::Ok);
            }
            [count] => {
                let count = args::integer(count).ok_or(Refusal::NotAnInteger)?;
                usize::try_from(count).unwrap_or(0)
            }
            _ => return Err(Refusal::WrongSubcommandArity { command: command.name, word: "log" }),
        };
        Ok(refusals.get(most, System.now_ms()))
    }
}

/// `ACL GETUSER`.
fn show(user: &User) -> Reply {
    map([
        ("flags", Reply::Set(user.flags().into_iter().map(Reply::bulk).collect())),
        ("passwords", list(user.hashes())),
        ("commands", Reply::bulk(user.command_rules())),
        ("keys", Reply::bulk(user.name_rules())),
        ("channels", Reply::bulk(user.channel_rules())),
        ("selectors", list::<&str>([])),
    ])
}

/// `ACL CAT [category]`.
fn cat(Request { command, words }: Request<'_>) -> Result<Reply, Refusal> {
    match words[2..] {
        [] => Ok(list(CATEGORIES)),
        [category] => {
            let known =
                category::find(category).ok_or_else(|| SessionRefusal::UnknownCategory(shown(category)))?;
            Ok(list(category::commands(known).map(|command| command.name)))
        }
        _ => Err(Refusal::WrongSubcommandArity { command: command.name, word: "cat" }),
    }
}

/// `ACL DRYRUN username command [arg …]`.
fn dry_run(users: &Users, words: &[&[u8]]) -> Result<Reply, Refusal> {
    let user = users.get(words[0]).ok_or_else(|| SessionRefusal::UserNotFound(shown(words[0])))?;
    let words = &words[1..];
    let command = table::find(words[0]).ok_or_else(|| SessionRefusal::CommandNotFound(shown(words[0])))?;
    if !command.arity.admits(words.len()) {
        return Err(Refusal::WrongArity { command: command.name });
    }
    let request = Request { command, words };
    Ok(match user.may(&request) {
        Ok(()) => Reply::Ok,
        Err(Denied::Command(_)) => {
            let command = Act::of(command, words).name();
            let text = SessionRefusal::NoCommand { user: user.shown(), command }.to_string();
            Reply::bulk(text.strip_prefix("NOPERM ").unwrap_or(&text))
        }
        Err(Denied::Name(name)) => {
            Reply::bulk(SessionRefusal::NoSuchName { user: user.shown(), name: shown(&name) }.to_string())
        }
    })
}

/// `ACL GENPASS [bits]`.
fn generate(Request { command, words }: Request<'_>) -> Result<Reply, Refusal> {
    let bits = match words[2..] {
        [] => BITS,
        [bits] => args::integer(bits).ok_or(Refusal::NotAnInteger)?,
        _ => return Err(Refusal::WrongSubcommandArity { command: command.name, word: "genpass" }),
    };
    if !(1..=MOST_BITS).contains(&bits) {
        return Err(SessionRefusal::PasswordBits.into());
    }
    // Four bits per digit.
    let digits = usize::try_from(bits).unwrap_or_default().div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    System.random(&mut bytes);
    let mut text = hex(&bytes);
    text.truncate(digits);
    Ok(Reply::bulk(text))
}
