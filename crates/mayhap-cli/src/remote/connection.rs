//! One connection to a server. Its replies are checked before they are used.

use std::time::Duration;

use redis::{Cmd, ConnectionInfo, ErrorKind, Pipeline, RedisError, TlsCertificates, Value};

use crate::error::{CliError, one_line};

/// The time limit for connecting.
const CONNECTING: Duration = Duration::from_secs(10);
/// The time limit for a reply.
const ANSWERING: Duration = Duration::from_secs(60);

/// The time limit for a request that puts a large filter in place.
const PUTTING_IN_PLACE: Duration = Duration::from_secs(3600);

/// A connection to a server.
pub(crate) struct Connection {
    connection: redis::Connection,
    address: String,
}

impl Connection {
    /// Opens a connection; with certificates, an encrypted one.
    pub(super) fn open(
        info: ConnectionInfo,
        certificates: Option<TlsCertificates>,
        address: String,
    ) -> Result<Self, CliError> {
        let client = match certificates {
            None => redis::Client::open(info),
            Some(certificates) => {
                // An error means that a previous connection installed it.
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
            Err(error) => Err(CliError::Server { what: error_text(&error, CONNECTING), address }),
        }
    }

    /// Sends a command and returns the reply.
    ///
    /// # Errors
    /// The server rejects the command or does not answer.
    pub(crate) fn ask(&mut self, command: &Cmd) -> Result<Value, CliError> {
        self.try_ask(command)?.map_err(|refusal| self.odd(&refusal))
    }

    /// Sends a command and returns the reply, or the text of the server's error.
    pub(crate) fn try_ask(&mut self, command: &Cmd) -> Result<Result<Value, String>, CliError> {
        match command.query::<Value>(&mut self.connection) {
            Ok(Value::ServerError(error)) => Ok(Err(with_code(error.code(), error.details()))),
            Ok(value) => Ok(Ok(value)),
            Err(error) => match refusal(&error) {
                Some(text) => Ok(Err(text)),
                None => Err(cli_error(&self.address, &error)),
            },
        }
    }

    /// [`ask`](Self::ask) for a command that may take the server minutes.
    pub(crate) fn ask_for_long(&mut self, command: &Cmd) -> Result<Value, CliError> {
        let waits = |connection: &redis::Connection, time| connection.set_read_timeout(Some(time));
        // A server that stops is still noticed: the connection closes.
        waits(&self.connection, PUTTING_IN_PLACE).map_err(|error| cli_error(&self.address, &error))?;
        let answer = self.ask(command);
        waits(&self.connection, ANSWERING).map_err(|error| cli_error(&self.address, &error))?;
        answer
    }

    /// Sends a command, over a new connection if this one is broken. Ignores a second failure.
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

    /// Returns the replies of a transaction; `None` if a watched name changed and the transaction was not run.
    pub(crate) fn at_once(&mut self, commands: &mut Pipeline) -> Result<Option<Vec<Value>>, CliError> {
        let answered = commands.atomic().query::<Option<Vec<Value>>>(&mut self.connection);
        answered.map_err(|error| match refusal(&error) {
            Some(text) => self.odd(&text),
            None => cli_error(&self.address, &error),
        })
    }

    /// Returns the `TYPE` of `name`: `none` if it does not exist.
    pub(crate) fn type_of(&mut self, name: &[u8]) -> Result<String, CliError> {
        match self.ask(redis::cmd("TYPE").arg(name))? {
            Value::SimpleString(kind) => Ok(kind),
            Value::BulkString(kind) => Ok(String::from_utf8_lossy(&kind).into_owned()),
            other => Err(self.unexpected("TYPE", &other)),
        }
    }

    /// Returns the cluster node that has `name`, if it is not this one.
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

    /// Whether the server has this command, according to `COMMAND INFO`.
    pub(crate) fn has_command(&mut self, name: &str) -> Result<bool, CliError> {
        let answer = self.try_ask(redis::cmd("COMMAND").arg("INFO").arg(name))?;
        Ok(!matches!(answer, Ok(Value::Array(known)) if known.iter().all(|known| *known == Value::Nil)))
    }

    /// An error for a reply of the wrong type.
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
        self.odd(&format!("unexpected reply to {command}: {what}"))
    }

    /// An error about the server or a request.
    pub(crate) fn odd(&self, what: &str) -> CliError {
        CliError::Server { address: self.address.clone(), what: what.to_owned() }
    }
}

/// The text of an error that the server sent.
fn refusal(error: &RedisError) -> Option<String> {
    let from_server = matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
    from_server.then(|| with_code(error.code().unwrap_or("ERR"), error.detail()))
}

/// Code and details as one text. `ERR` is left out, as redis-cli users are used to.
fn with_code(code: &str, details: Option<&str>) -> String {
    match (code, details) {
        ("ERR", Some(details)) => details.to_owned(),
        (code, Some(details)) => format!("{code} {details}"),
        (code, None) => code.to_owned(),
    }
}

fn cli_error(address: &str, error: &RedisError) -> CliError {
    CliError::Server { address: address.to_owned(), what: error_text(error, ANSWERING) }
}

/// Describes a connection error on one line; `waited` is the time limit that applied.
pub(crate) fn error_text(error: &RedisError, waited: Duration) -> String {
    match () {
        () if refusal(error).is_some() => refusal(error).unwrap_or_default(),
        () if error.kind() == ErrorKind::AuthenticationFailed => {
            format!("login refused: {}", error.detail().unwrap_or("the password is wrong"))
        }
        () if error.is_connection_refusal() => "no server listens there".to_owned(),
        () if error.is_timeout() => {
            format!("accepts the connection but does not answer within {} s", waited.as_secs())
        }
        () if error.is_connection_dropped() => "closed the connection".to_owned(),
        () if error.kind() == ErrorKind::Parse => "does not speak the Redis protocol".to_owned(),
        () => one_line(&error.to_string()),
    }
}
