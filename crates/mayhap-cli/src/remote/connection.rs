//! One connection to a server, whose answers are checked before they are believed.

use std::time::Duration;

use redis::{Cmd, ConnectionInfo, ErrorKind, Pipeline, RedisError, TlsCertificates, Value};

use crate::error::{CliError, one_line};

/// A server that has not taken a connection by then is not there.
const CONNECTING: Duration = Duration::from_secs(10);
/// A server that says nothing for so long has stopped.
const ANSWERING: Duration = Duration::from_secs(60);

/// How long it may take to put something large in place.
const PUTTING_IN_PLACE: Duration = Duration::from_secs(3600);

/// A connection to a server.
pub(crate) struct Connection {
    connection: redis::Connection,
    address: String,
}

impl Connection {
    /// With certificates, if it is to be encrypted.
    pub(super) fn open(
        info: ConnectionInfo,
        certificates: Option<TlsCertificates>,
        address: String,
    ) -> Result<Self, CliError> {
        let client = match certificates {
            None => redis::Client::open(info),
            Some(certificates) => {
                // It is there already if this is the second connection.
                let _ = rustls::crypto::ring::default_provider().install_default();
                redis::Client::build_with_tls(info, certificates)
            }
        };
        let opened = client.and_then(|client| {
            let connection = client.get_connection_with_timeout(CONNECTING)?;
            connection.set_read_timeout(Some(ANSWERING))?;
            connection.set_write_timeout(Some(ANSWERING))?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => Ok(Self { connection, address }),
            Err(error) => Err(CliError::Server { what: said_of(&error, CONNECTING), address }),
        }
    }

    /// What the server answers.
    ///
    /// # Errors
    /// It refuses, or does not answer at all.
    pub(crate) fn ask(&mut self, command: &Cmd) -> Result<Value, CliError> {
        self.try_ask(command)?.map_err(|refusal| self.odd(&refusal))
    }

    /// What the server answers, or the text it refuses with.
    pub(crate) fn try_ask(&mut self, command: &Cmd) -> Result<Result<Value, String>, CliError> {
        match command.query::<Value>(&mut self.connection) {
            Ok(Value::ServerError(error)) => Ok(Err(said(error.code(), error.details()))),
            Ok(value) => Ok(Ok(value)),
            Err(error) => match refusal(&error) {
                Some(text) => Ok(Err(text)),
                None => Err(cli_error(&self.address, &error)),
            },
        }
    }

    /// [`ask`](Self::ask) for what may take the server minutes.
    pub(crate) fn ask_for_long(&mut self, command: &Cmd) -> Result<Value, CliError> {
        let waits = |connection: &redis::Connection, time| connection.set_read_timeout(Some(time));
        // A server that ends is noticed all the same.
        waits(&self.connection, PUTTING_IN_PLACE).map_err(|error| cli_error(&self.address, &error))?;
        let answer = self.ask(command);
        waits(&self.connection, ANSWERING).map_err(|error| cli_error(&self.address, &error))?;
        answer
    }

    /// Has it done, through another connection where this one is broken; if that fails, too, it is not done.
    pub(crate) fn ask_or_by_another(
        &mut self,
        command: &Cmd,
        connect: impl FnOnce() -> Result<Self, CliError>,
    ) {
        if self.try_ask(command).is_err()
            && let Ok(mut another) = connect()
        {
            let _ = another.ask(command);
        }
    }

    /// The answers to all commands of a transaction; `None`: something that was watched has changed, and nothing was done.
    pub(crate) fn at_once(&mut self, commands: &mut Pipeline) -> Result<Option<Vec<Value>>, CliError> {
        let answered = commands.atomic().query::<Option<Vec<Value>>>(&mut self.connection);
        answered.map_err(|error| match refusal(&error) {
            Some(text) => self.odd(&text),
            None => cli_error(&self.address, &error),
        })
    }

    /// What `TYPE` says of `name`: `none` if there is nothing.
    pub(crate) fn type_of(&mut self, name: &[u8]) -> Result<String, CliError> {
        match self.ask(redis::cmd("TYPE").arg(name))? {
            Value::SimpleString(kind) => Ok(kind),
            Value::BulkString(kind) => Ok(String::from_utf8_lossy(&kind).into_owned()),
            other => Err(self.unexpected("TYPE", &other)),
        }
    }

    /// The node of the cluster that has `name`, where it is not this one.
    pub(super) fn moved(&mut self, name: &[u8]) -> Result<Option<(String, u16)>, CliError> {
        let Err(refusal) = self.try_ask(redis::cmd("TYPE").arg(name))? else { return Ok(None) };
        let mut words = refusal.split(' ');
        if words.next() != Some("MOVED") {
            return Err(self.odd(&refusal));
        }
        let place = words.nth(1).and_then(|place| place.rsplit_once(':'));
        let place = place.and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
        place.map(Some).ok_or_else(|| self.odd(&refusal))
    }

    /// Does the server know this command, as far as it says?
    pub(crate) fn has_command(&mut self, name: &str) -> Result<bool, CliError> {
        let answer = self.try_ask(redis::cmd("COMMAND").arg("INFO").arg(name))?;
        Ok(!matches!(answer, Ok(Value::Array(known)) if known.iter().all(|known| *known == Value::Nil)))
    }

    /// The server said something that makes no sense.
    pub(crate) fn unexpected(&self, command: &str, value: &Value) -> CliError {
        let what = match value {
            Value::Nil => "nothing",
            Value::Int(_) => "a number",
            Value::BulkString(_) | Value::SimpleString(_) | Value::VerbatimString { .. } | Value::Okay => {
                "a text"
            }
            Value::Array(_) | Value::Set(_) | Value::Map(_) => "a list",
            _ => "something",
        };
        self.odd(&format!("answers {command} with {what} that makes no sense"))
    }

    /// Something is wrong with the server, or with what it was asked.
    pub(crate) fn odd(&self, what: &str) -> CliError {
        CliError::Server { address: self.address.clone(), what: what.to_owned() }
    }
}

/// The text of an error that the server sent.
fn refusal(error: &RedisError) -> Option<String> {
    let from_server = matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
    from_server.then(|| said(error.code().unwrap_or("ERR"), error.detail()))
}

/// As one text, `ERR` left out as redis-cli's readers know it.
fn said(code: &str, details: Option<&str>) -> String {
    match (code, details) {
        ("ERR", Some(details)) => details.to_owned(),
        (code, Some(details)) => format!("{code} {details}"),
        (code, None) => code.to_owned(),
    }
}

fn cli_error(address: &str, error: &RedisError) -> CliError {
    CliError::Server { address: address.to_owned(), what: said_of(error, ANSWERING) }
}

/// What is wrong with a server, which was given so long to answer, on one line.
pub(crate) fn said_of(error: &RedisError, waited: Duration) -> String {
    match () {
        () if refusal(error).is_some() => refusal(error).unwrap_or_default(),
        () if error.kind() == ErrorKind::AuthenticationFailed => {
            format!("does not let us in: {}", error.detail().unwrap_or("the password is wrong"))
        }
        () if error.is_connection_refusal() => "no server listens there".to_owned(),
        () if error.is_timeout() => {
            format!("takes the connection and does not answer within {} s", waited.as_secs())
        }
        () if error.is_connection_dropped() => "closed the connection".to_owned(),
        () if error.kind() == ErrorKind::Parse => "does not speak the protocol of Redis".to_owned(),
        () => one_line(&error.to_string()),
    }
}
