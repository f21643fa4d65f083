//! `CLIENT`: the properties of this connection, and the list of all connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mayhap_command::server::SessionRefusal;
use mayhap_command::{Refusal, Reply, Request, args};

use super::handshake::{client_name, is_printable};
use super::{Answer, Answers, Session, help, is, shown};
use crate::client::Client;
use crate::shared::ClientPause;
use crate::users::Users;

impl Session {
    /// Runs `CLIENT subcommand …`. The subcommand exists and the number of words is right.
    pub(super) fn client(&mut self, Request { command, words }: Request<'_>) -> Result<Answer, Refusal> {
        let subcommand = words[1].to_ascii_lowercase();
        Ok(Answer::Reply(match subcommand.as_slice() {
            b"id" => Reply::count(self.client.id),
            b"getname" => match self.client.identity().name {
                name if name.is_empty() => Reply::Null,
                name => Reply::Bulk(name),
            },
            b"setname" => {
                let name = client_name(words[2])?;
                self.client.identify(|identity| identity.name = name);
                Reply::Ok
            }
            b"setinfo" => self.set_info(words[2], words[3])?,
            b"info" => text([self.client.line()]),
            b"list" => self.list(&words[2..])?,
            b"kill" => return self.kill(&words[2..]),
            b"no-evict" | b"no-touch" if is(words[2], "on") || is(words[2], "off") => Reply::Ok,
            b"reply" => return self.set_answers(words[2]),
            // There is no client tracking.
            b"getredir" => Reply::Integer(-1),
            b"pause" => self.pause(&words[2..])?,
            b"unpause" => {
                self.shared.unpause();
                Reply::Ok
            }
            b"unblock" => unblock(&words[2..])?,
            b"help" => help::of(command),
            _ => return Err(Refusal::Syntax),
        }))
    }

    /// `CLIENT PAUSE timeout [WRITE|ALL]`.
    fn pause(&self, words: &[&[u8]]) -> Result<Reply, Refusal> {
        let millis = args::integer(words[0]).ok_or(Refusal::BadTimeout)?;
        let millis = u64::try_from(millis).map_err(|_| Refusal::NegativeTimeout)?;
        let pause = match words[1..] {
            [] => ClientPause::All,
            [which] if is(which, "all") => ClientPause::All,
            [which] if is(which, "write") => ClientPause::Writes,
            _ => return Err(Refusal::Syntax),
        };
        self.shared.pause(pause, Duration::from_millis(millis));
        Ok(Reply::Ok)
    }

    /// `CLIENT SETINFO LIB-NAME|LIB-VER value`.
    fn set_info(&self, option: &[u8], value: &[u8]) -> Result<Reply, Refusal> {
        let (what, library) = match option {
            option if is(option, "lib-name") => ("lib-name", true),
            option if is(option, "lib-ver") => ("lib-ver", false),
            other => return Err(SessionRefusal::ClientInfoOption(shown(other)).into()),
        };
        if !is_printable(value) {
            return Err(SessionRefusal::ClientInfo(what).into());
        }
        self.client.identify(|identity| match library {
            true => identity.library = value.to_vec(),
            false => identity.library_version = value.to_vec(),
        });
        Ok(Reply::Ok)
    }

    /// `CLIENT LIST [TYPE type] [ID id …]`.
    fn list(&self, options: &[&[u8]]) -> Result<Reply, Refusal> {
        let clients = match options {
            [] => self.shared.clients().list(),
            [option, kind] if is(option, "type") => match is_normal(kind)? {
                true => self.shared.clients().list(),
                false => Vec::new(),
            },
            [option, ids @ ..] if is(option, "id") && !ids.is_empty() => {
                let ids = ids.iter().map(|id| args::integer(id).ok_or(SessionRefusal::BadClientId));
                let ids: Vec<i64> = ids.collect::<Result<_, _>>()?;
                let get = |id: i64| self.shared.clients().get(u64::try_from(id).ok()?);
                ids.into_iter().filter_map(get).collect()
            }
            _ => return Err(Refusal::Syntax),
        };
        Ok(text(clients.iter().map(|client| client.line())))
    }

    /// `CLIENT KILL address` or `CLIENT KILL [ID id] [ADDR address] …`.
    fn kill(&self, options: &[&[u8]]) -> Result<Answer, Refusal> {
        if let [address] = options {
            let of_address = |client: &&Arc<Client>| client.address.as_bytes() == *address;
            let clients = self.shared.clients().list();
            let found = clients.iter().find(of_address).ok_or(SessionRefusal::NoSuchClient)?;
            if found.id == self.client.id {
                return Ok(Answer::Last(Reply::Ok));
            }
            found.kill();
            return Ok(self.once_closed(vec![found.id], Reply::Ok));
        }
        let filter = Filter::read(options, self.shared.users())?;
        let mut killed = 0;
        let mut others = Vec::new();
        let mut ours = false;
        for client in self.shared.clients().list() {
            if !filter.matches(&client) {
                continue;
            }
            if client.id != self.client.id {
                client.kill();
                others.push(client.id);
            } else if filter.skip_me {
                continue;
            } else {
                ours = true;
            }
            killed += 1;
        }
        let reply = Reply::Integer(killed);
        Ok(if ours { Answer::Last(reply) } else { self.once_closed(others, reply) })
    }

    /// Replies after these connections are closed, so that the client does not see one of them afterwards.
    /// Each is closed by its own worker thread, soon unless that thread is busy. Waits at most 200 ms.
    pub(super) fn once_closed(&self, ids: Vec<u64>, reply: Reply) -> Answer {
        const PATIENCE: Duration = Duration::from_millis(200);
        if ids.is_empty() {
            return reply.into();
        }
        let shared = Arc::clone(&self.shared);
        Answer::Job(Box::new(move || {
            let begun = Instant::now();
            while ids.iter().any(|&id| shared.clients().get(id).is_some()) && begun.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
            reply
        }))
    }

    /// `CLIENT REPLY ON|OFF|SKIP`: only `ON` is answered.
    fn set_answers(&mut self, how: &[u8]) -> Result<Answer, Refusal> {
        if is(how, "on") {
            self.answers = Answers::On;
            return Ok(Reply::Ok.into());
        }
        self.answers = match () {
            () if is(how, "off") => Answers::Off,
            () if is(how, "skip") && self.answers == Answers::Off => Answers::Off,
            () if is(how, "skip") => Answers::SkipNext,
            () => return Err(Refusal::Syntax),
        };
        Ok(Answer::Silence)
    }
}

/// The connections that `CLIENT KILL` closes.
#[derive(Debug)]
struct Filter<'a> {
    id: Option<i64>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    user: Option<&'a [u8]>,
    normal: bool,
    skip_me: bool,
}

impl<'a> Filter<'a> {
    fn read(options: &[&'a [u8]], users: &Users) -> Result<Self, Refusal> {
        let mut filter =
            Self { id: None, address: None, local_address: None, user: None, normal: true, skip_me: true };
        for pair in options.chunks(2) {
            let [option, value] = pair else { return Err(Refusal::Syntax) };
            match option.to_ascii_lowercase().as_slice() {
                b"id" => {
                    let id = args::integer(value).filter(|id| *id > 0);
                    filter.id = Some(id.ok_or(SessionRefusal::ClientIdPositive)?);
                }
                b"type" => filter.normal = is_normal(value)?,
                b"addr" => filter.address = Some(value),
                b"laddr" => filter.local_address = Some(value),
                b"user" if users.get(value).is_some() => filter.user = Some(value),
                b"user" => return Err(SessionRefusal::NoSuchUser(shown(value)).into()),
                b"skipme" if is(value, "yes") => filter.skip_me = true,
                b"skipme" if is(value, "no") => filter.skip_me = false,
                _ => return Err(Refusal::Syntax),
            }
        }
        Ok(filter)
    }

    fn matches(&self, client: &Client) -> bool {
        self.normal
            && self.id.is_none_or(|id| u64::try_from(id) == Ok(client.id))
            && self.address.is_none_or(|address| address == client.address.as_bytes())
            && self.user.is_none_or(|user| user == client.identity().user)
            && self.local_address.is_none_or(|address| address == client.local_address.as_bytes())
    }
}

/// All connections have the type `normal`. Redis's other types exist, but have no connections here.
fn is_normal(kind: &[u8]) -> Result<bool, Refusal> {
    match kind.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(true),
        b"master" | b"replica" | b"slave" | b"pubsub" => Ok(false),
        _ => Err(SessionRefusal::UnknownClientType(shown(kind)).into()),
    }
}

/// `CLIENT UNBLOCK client-id [TIMEOUT|ERROR]`: no client is ever blocked.
fn unblock(words: &[&[u8]]) -> Result<Reply, Refusal> {
    match words {
        [_] => {}
        [_, how] if is(how, "timeout") || is(how, "error") => {}
        [_, _] => {
            return Err(Refusal::Syntax);
        }
        _ => return Err(Refusal::Syntax),
    }
    args::integer(words[0]).ok_or(Refusal::NotAnInteger)?;
    Ok(Reply::Integer(0))
}

/// Lines for a person. They may contain text from clients, so they are bytes if they are not UTF-8.
fn text(lines: impl IntoIterator<Item = Vec<u8>>) -> Reply {
    let mut bytes = Vec::new();
    for line in lines {
        bytes.extend_from_slice(&line);
        bytes.push(b'\n');
    }
    match String::from_utf8(bytes) {
        Ok(text) => Reply::Text(text),
        Err(bytes) => Reply::Bulk(bytes.into_bytes()),
    }
}
