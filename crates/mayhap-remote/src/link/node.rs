//! One server of a link: connected when first needed, and again when that was lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, Pipeline, Value};
use tokio::sync::Mutex;

use super::LinkOptions;
use super::slots::Place;
use super::standing::{Standing, questions};
use crate::RemoteError;

/// A server that did not take a connection is not tried again by everybody who waited meanwhile.
const NOT_AGAIN: Duration = Duration::from_millis(20);

/// A server.
pub(super) struct Node {
    place: Place,
    client: Client,
    config: AsyncConnectionConfig,
    /// Is it asked as a replica, which has to be told that stale answers will do?
    is_replica: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that the loss of an old one does not end a new one.
    number: u64,
    failed: Option<(Instant, RemoteError)>,
}

/// Why commands were not answered.
pub(super) struct Lost {
    pub(super) cause: RemoteError,
    /// Nobody knows what was run. Otherwise nothing was.
    pub(super) is_sent: bool,
}

impl Node {
    pub(super) fn new(
        info: ConnectionInfo,
        is_replica: bool,
        options: &LinkOptions,
    ) -> Result<Arc<Self>, RemoteError> {
        let place = place_of(info.addr());
        let address = shown(&place);
        let client = match (info.addr(), &options.certificates) {
            (ConnectionAddr::TcpTls { .. }, Some(certificates)) => {
                Client::build_with_tls(info, certificates.clone())
            }
            _ => Client::open(info),
        };
        let client = client.map_err(|cause| RemoteError::Connect { address, cause })?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(options.connecting))
            .set_response_timeout(Some(options.answering));
        Ok(Arc::new(Self { place, client, config, is_replica, state: Mutex::default() }))
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// As messages call it.
    pub(super) fn address(&self) -> String {
        shown(&self.place)
    }

    /// The answers to `commands`, each an error perhaps, and the number of the connection that they came by.
    pub(super) async fn send(&self, commands: Vec<Cmd>) -> Result<(Vec<Value>, u64), Lost> {
        let connected = self.connection().await;
        let (mut connection, number) = connected.map_err(|cause| Lost { cause, is_sent: false })?;
        let answered = send(&mut connection, commands).await;
        if answered.is_err() {
            self.let_go(number).await;
        }
        let answers = answered.map_err(|cause| Lost { cause: self.error(cause), is_sent: true })?;
        Ok((answers, number))
    }

    /// The answers by the connection of this number, and no other: `None`, if it was lost.
    pub(super) async fn send_by(&self, number: u64, commands: Vec<Cmd>) -> Option<Vec<Value>> {
        let connection = self.state.lock().await;
        let connection = connection.connection.clone().filter(|_| connection.number == number);
        let answers = send(&mut connection?, commands).await;
        if answers.is_err() {
            self.let_go(number).await;
        }
        answers.ok()
    }

    /// What it says it is, and its reply to the question who has which slot.
    pub(super) async fn look(&self) -> Result<(Standing, Value), RemoteError> {
        let (mut connection, number) = self.connection().await?;
        let slots = redis::cmd("CLUSTER").arg("SLOTS").take();
        let looked = send(&mut connection, questions().into_iter().chain([slots]).collect()).await;
        let looked = looked.map_err(|cause| self.error(cause)).and_then(|mut answers| {
            let slots = answers.pop().unwrap_or(Value::Nil);
            self.check(Standing::read(&answers)).map(|standing| (standing, slots))
        });
        if looked.is_err() {
            self.let_go(number).await;
        }
        looked
    }

    /// A connection that nobody else sends anything on, as transactions need one.
    pub(super) async fn own_connection(&self) -> Result<MultiplexedConnection, RemoteError> {
        let connected = self.client.get_multiplexed_async_connection_with_config(&self.config).await;
        let mut connection = connected.map_err(|cause| self.error(cause))?;
        if self.is_replica {
            // One that is no replica, or in no cluster, refuses; then there is nothing to be told.
            let told = send(&mut connection, vec![redis::cmd("READONLY")]).await;
            told.map_err(|cause| self.error(cause))?;
        } else {
            // It may have become a replica since it was asked last.
            let said = send(&mut connection, questions().into()).await;
            self.check(Standing::read(&said.map_err(|cause| self.error(cause))?))?;
        }
        Ok(connection)
    }

    /// A replica is asked as one, or not at all.
    fn check(&self, standing: Standing) -> Result<Standing, RemoteError> {
        if !self.is_replica && standing.is_lone_replica() {
            return Err(RemoteError::Replica { address: self.address() });
        }
        Ok(standing)
    }

    /// Ends a connection, unless there is another already.
    async fn let_go(&self, number: u64) {
        let mut state = self.state.lock().await;
        if state.number == number {
            state.connection = None;
        }
    }

    /// Ends the connection. A server that was given up in the middle of an answer is asked by a new one: the old one may be dead without a
    /// sign of it.
    pub(super) async fn hang_up(&self) {
        self.state.lock().await.connection = None;
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), RemoteError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((connection.clone(), state.number));
        }
        if let Some((_, error)) = state.failed.as_ref().filter(|(when, _)| when.elapsed() < NOT_AGAIN) {
            return Err(error.clone());
        }
        match self.own_connection().await {
            Ok(connection) => {
                state.connection = Some(connection.clone());
                state.number += 1;
                state.failed = None;
                Ok((connection, state.number))
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    fn error(&self, cause: redis::RedisError) -> RemoteError {
        RemoteError::Connect { address: self.address(), cause }
    }
}

/// The answers to `commands` on this connection.
pub(super) async fn send(
    connection: &mut MultiplexedConnection,
    commands: Vec<Cmd>,
) -> redis::RedisResult<Vec<Value>> {
    let count = commands.len();
    let mut pipeline = Pipeline::with_capacity(count);
    for command in commands {
        pipeline.add_command(command);
    }
    connection.send_packed_commands(&pipeline, 0, count).await
}

/// Where an address is; a socket in the file system has no port.
pub(super) fn place_of(address: &ConnectionAddr) -> Place {
    match address {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            Place { host: host.clone(), port: *port }
        }
        ConnectionAddr::Unix(path) => Place { host: path.display().to_string(), port: 0 },
        // The library may learn of more; they are told apart by how it shows them.
        other => Place { host: other.to_string(), port: 0 },
    }
}

fn shown(place: &Place) -> String {
    match place.port {
        0 => place.host.clone(),
        port if place.host.contains(':') => format!("[{}]:{port}", place.host),
        port => format!("{}:{port}", place.host),
    }
}
