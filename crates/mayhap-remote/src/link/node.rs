//! One server of a link. It is connected when first needed, and again after the connection is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, Pipeline, Value};
use tokio::sync::Mutex;

use super::LinkOptions;
use super::node_role::{NodeRole, questions};
use super::slots::NodeAddress;
use crate::RemoteError;

/// After a failed connection, tasks that waited for it do not try again for this time.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// A server.
pub(super) struct Node {
    address: NodeAddress,
    client: Client,
    config: AsyncConnectionConfig,
    /// Is it used as a replica? Then it must be switched to allow stale reads.
    is_replica: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that the loss of an old one does not close a new one.
    number: u64,
    failed: Option<(Instant, RemoteError)>,
}

/// Why commands have no answer.
pub(super) struct Lost {
    pub(super) cause: RemoteError,
    /// `true`: the commands may have run. `false`: none has run.
    pub(super) is_sent: bool,
}

impl Node {
    pub(super) fn new(
        info: ConnectionInfo,
        is_replica: bool,
        options: &LinkOptions,
    ) -> Result<Arc<Self>, RemoteError> {
        let address = node_address(info.addr());
        let shown = display(&address);
        let client = match (info.addr(), &options.certificates) {
            (ConnectionAddr::TcpTls { .. }, Some(certificates)) => {
                Client::build_with_tls(info, certificates.clone())
            }
            _ => Client::open(info),
        };
        let client = client.map_err(|cause| RemoteError::Connect { address: shown, cause })?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(options.connecting))
            .set_response_timeout(Some(options.answering));
        Ok(Arc::new(Self { address, client, config, is_replica, state: Mutex::default() }))
    }

    pub(super) fn address(&self) -> &NodeAddress {
        &self.address
    }

    /// The address for messages.
    pub(super) fn display_address(&self) -> String {
        display(&self.address)
    }

    /// Sends `commands`. Returns the replies, which may be errors, and the number of the connection.
    pub(super) async fn send(&self, commands: Vec<Cmd>) -> Result<(Vec<Value>, u64), Lost> {
        let connected = self.connection().await;
        let (mut connection, number) = connected.map_err(|cause| Lost { cause, is_sent: false })?;
        let answered = send(&mut connection, commands).await;
        if answered.is_err() {
            self.close(number).await;
        }
        let answers = answered.map_err(|cause| Lost { cause: self.error(cause), is_sent: true })?;
        Ok((answers, number))
    }

    /// Sends `commands` on the connection with this number only. `None` if it was lost.
    pub(super) async fn send_by(&self, number: u64, commands: Vec<Cmd>) -> Option<Vec<Value>> {
        let connection = self.state.lock().await;
        let connection = connection.connection.clone().filter(|_| connection.number == number);
        let answers = send(&mut connection?, commands).await;
        if answers.is_err() {
            self.close(number).await;
        }
        answers.ok()
    }

    /// Reads its role, and its reply to `CLUSTER SLOTS`.
    pub(super) async fn look(&self) -> Result<(NodeRole, Value), RemoteError> {
        let (mut connection, number) = self.connection().await?;
        let slots = redis::cmd("CLUSTER").arg("SLOTS").take();
        let looked = send(&mut connection, questions().into_iter().chain([slots]).collect()).await;
        let looked = looked.map_err(|cause| self.error(cause)).and_then(|mut answers| {
            let slots = answers.pop().unwrap_or(Value::Nil);
            self.check(NodeRole::read(&answers)).map(|role| (role, slots))
        });
        if looked.is_err() {
            self.close(number).await;
        }
        looked
    }

    /// Opens a connection that is not shared, as transactions need one.
    pub(super) async fn own_connection(&self) -> Result<MultiplexedConnection, RemoteError> {
        let connected = self.client.get_multiplexed_async_connection_with_config(&self.config).await;
        let mut connection = connected.map_err(|cause| self.error(cause))?;
        if self.is_replica {
            // A server that is not a replica, or not in a cluster, returns an error. Then there is nothing to
            // switch.
            let switched = send(&mut connection, vec![redis::cmd("READONLY")]).await;
            switched.map_err(|cause| self.error(cause))?;
        } else {
            // It may have become a replica since the last check.
            let said = send(&mut connection, questions().into()).await;
            self.check(NodeRole::read(&said.map_err(|cause| self.error(cause))?))?;
        }
        Ok(connection)
    }

    /// Fails for a replica outside a cluster that is not used as a replica.
    fn check(&self, role: NodeRole) -> Result<NodeRole, RemoteError> {
        if !self.is_replica && role.is_lone_replica() {
            return Err(RemoteError::Replica { address: self.display_address() });
        }
        Ok(role)
    }

    /// Closes the connection with this number, unless there is a newer one.
    async fn close(&self, number: u64) {
        let mut state = self.state.lock().await;
        if state.number == number {
            state.connection = None;
        }
    }

    /// Closes the connection. If a server did not answer in time, the next request needs a new connection:
    /// the old one may be dead without a sign of it.
    pub(super) async fn close_any(&self) {
        self.state.lock().await.connection = None;
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), RemoteError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((connection.clone(), state.number));
        }
        if let Some((_, error)) = state.failed.as_ref().filter(|(when, _)| when.elapsed() < RETRY_AFTER) {
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
        RemoteError::Connect { address: self.display_address(), cause }
    }
}

/// Sends `commands` on this connection and returns the replies.
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

/// The host and port of an address. For a socket in the file system, the port is 0.
pub(super) fn node_address(addr: &ConnectionAddr) -> NodeAddress {
    match addr {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            NodeAddress { host: host.clone(), port: *port }
        }
        ConnectionAddr::Unix(path) => NodeAddress { host: path.display().to_string(), port: 0 },
        // The library may add more kinds. Their text tells them apart.
        other => NodeAddress { host: other.to_string(), port: 0 },
    }
}

fn display(address: &NodeAddress) -> String {
    match address.port {
        0 => address.host.clone(),
        port if address.host.contains(':') => format!("[{}]:{port}", address.host),
        port => format!("{}:{port}", address.host),
    }
}
