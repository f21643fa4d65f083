//! `HELLO`, `AUTH`, `PING`, `SELECT`, `RESET`.

use mayhap_command::server::SessionRefusal;
use mayhap_command::{Refusal, Reply, Request, args};

use super::{Answers, Session, is, map, shown};
use crate::REDIS_VERSION;
use crate::resp::Protocol;
use crate::users::DEFAULT;

impl Session {
    /// `HELLO [protover [AUTH username password] [SETNAME clientname]]`. Changes everything or nothing.
    pub(super) fn hello(&mut self, words: &[&[u8]]) -> Result<Reply, Refusal> {
        let protocol = match words.get(1) {
            None => self.protocol,
            Some(word) => match args::integer(word).ok_or(SessionRefusal::BadProtocol)? {
                2 => Protocol::Resp2,
                3 => Protocol::Resp3,
                _ => return Err(SessionRefusal::UnsupportedProtocol.into()),
            },
        };
        let mut name = None;
        let mut user = None;
        let mut rest = words.get(2..).unwrap_or_default();
        while let [option, after @ ..] = rest {
            rest = match after {
                [name, password, rest @ ..] if is(option, "auth") => {
                    user = Some(self.authenticate(words[0], name, password)?);
                    rest
                }
                [given, rest @ ..] if is(option, "setname") => {
                    name = Some(client_name(given)?);
                    rest
                }
                _ => return Err(SessionRefusal::HelloOption(shown(option)).into()),
            };
        }
        match user {
            Some(user) => self.become_user(user),
            None if self.authenticated => {}
            None => return Err(SessionRefusal::HelloNoAuth.into()),
        }
        self.protocol = protocol;
        if let Some(name) = name {
            self.client.identify(|identity| identity.name = name);
        }
        Ok(map([
            ("server", Reply::bulk("mayhap")),
            ("version", Reply::bulk(REDIS_VERSION)),
            ("proto", Reply::Integer(protocol.number())),
            ("id", Reply::count(self.client.id)),
            ("mode", Reply::bulk("standalone")),
            ("role", Reply::bulk("master")),
            ("modules", super::operate::modules()),
        ]))
    }

    /// `AUTH [username] password`.
    pub(super) fn auth(&mut self, words: &[&[u8]]) -> Result<Reply, Refusal> {
        let (user, password) = match words {
            [_, _] if self.shared.users().default_user().is_open() => {
                return Err(SessionRefusal::NoPassword.into());
            }
            [_, password] => (DEFAULT, *password),
            [_, user, password] => (*user, *password),
            _ => return Err(Refusal::Syntax),
        };
        let user = self.authenticate(words[0], user, password)?;
        self.become_user(user);
        Ok(Reply::Ok)
    }

    /// `RESET`: returns the session to its initial state.
    pub(super) fn reset(&mut self) -> Reply {
        self.protocol = Protocol::default();
        self.become_default();
        self.answers = Answers::On;
        self.transaction.end();
        self.client.identify(|identity| identity.name.clear());
        Reply::simple("RESET")
    }
}

/// `PING [message]`.
pub(super) fn ping(Request { command, words }: Request<'_>) -> Result<Reply, Refusal> {
    match words {
        [_] => Ok(Reply::simple("PONG")),
        [_, message] => Ok(Reply::bulk(*message)),
        _ => Err(Refusal::WrongArity { command: command.name }),
    }
}

/// `SELECT index`.
pub(super) fn select(words: &[&[u8]]) -> Result<Reply, Refusal> {
    match args::integer(words[1]).filter(|index| i32::try_from(*index).is_ok()) {
        Some(0) => Ok(Reply::Ok),
        Some(_) => Err(Refusal::NoSuchDatabase),
        None => Err(Refusal::NotAnInteger),
    }
}

/// Checks the name of a connection, which must fit into a line of `CLIENT LIST`.
pub(super) fn client_name(name: &[u8]) -> Result<Vec<u8>, Refusal> {
    match is_printable(name) {
        true => Ok(name.to_vec()),
        false => Err(SessionRefusal::ClientName.into()),
    }
}

/// Whether the text is printable and short enough for a line.
pub(super) fn is_printable(text: &[u8]) -> bool {
    text.len() <= 64 * 1024 && text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}
