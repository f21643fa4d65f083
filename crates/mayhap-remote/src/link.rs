//! A server, or all servers of a cluster: each request goes to the node that has its key.
//!
//! ```text
//! requests ─▶ by node ─▶ pipelines, all nodes in parallel ─▶ one answer per request
//!                ▲                                        │ MOVED: correct the slot map
//!                └──────── only unanswered requests ◀─────┤ ASK: send to that node, after an ASKING
//!                                                         └ busy, lost: read the slot map again, wait
//! ```

mod ask;
mod node;
mod node_role;
mod replica_ack;
mod slots;
mod swap;
mod topology;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates, Value};
use tokio::time::timeout;

use self::ask::refused;
use self::node::{Node, node_address};
use self::node_role::NodeRole;
#[cfg(test)]
pub(crate) use self::slots::slot_of;
use self::slots::{NodeAddress, parse_slots};
pub(crate) use self::swap::MOST_SWAPPED_BYTES;
use self::topology::Topology;
use crate::{RemoteError, Request};

/// A node that does not return the slot map within this time is skipped.
const SLOT_MAP_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a hurried link retries requests.
const HURRIED_PATIENCE: Duration = Duration::from_millis(100);

/// Options of a link.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LinkOptions {
    /// How long requests are retried while none of them is answered. Default 15 s.
    pub patience: Duration,
    /// How long a server may take to accept a connection. Default 5 s.
    pub connecting: Duration,
    /// How long a server may take to answer. Default 10 s.
    pub answering: Duration,
    /// Allows replicas to answer reads. A replica may lack the latest insertions, so *no* is certain only for
    /// items that were not inserted recently. Without a cluster, this uses the replicas that [`Link::open`]
    /// is given together with their master. Default: off.
    pub read_from_replicas: bool,
    /// How many replicas must have a change before it counts as done. With 0, a master that dies may lose
    /// changes that it has just acknowledged. If there are more replicas than this number, one without the
    /// change may take over. Default 0.
    pub replicas: u32,
    /// The certificates to trust and to present over TLS. Without them, the certificates that the system
    /// trusts.
    pub certificates: Option<TlsCertificates>,
    /// Makes the link start [hurried](Link::set_hurried). Default: off.
    pub hurried: bool,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(15),
            connecting: Duration::from_secs(5),
            answering: Duration::from_secs(10),
            read_from_replicas: false,
            replicas: 0,
            certificates: None,
            hurried: false,
        }
    }
}

/// A connection to a server or a cluster. Clones share its sockets.
#[derive(Clone)]
pub struct Link {
    inner: Arc<Inner>,
}

struct Inner {
    options: LinkOptions,
    hurried: AtomicBool,
    /// The given servers. Their first login is used for all nodes.
    seeds: Vec<ConnectionInfo>,
    nodes: Mutex<HashMap<(NodeAddress, bool), Arc<Node>>>,
    topology: RwLock<Arc<Topology>>,
    /// One task reads the slot map; all others wait for it.
    refreshing: tokio::sync::Mutex<Refreshing>,
}

#[derive(Default)]
struct Refreshing {
    /// Counts the attempts, so that each begins with another node.
    turn: usize,
    /// The time and the error of the last attempt, if it failed.
    failed: Option<(Instant, RemoteError)>,
}

impl Link {
    /// Connects to the first of `servers` that answers, and asks it whether it is in a cluster and which
    /// nodes that has. A server outside a cluster must be a master.
    ///
    /// # Errors
    /// An address is invalid, no server answers, or only replicas do.
    pub async fn open(
        servers: impl IntoIterator<Item = impl IntoConnectionInfo>,
        options: LinkOptions,
    ) -> Result<Self, RemoteError> {
        let infos = servers.into_iter().map(|server| {
            let info = server.into_connection_info();
            info.map_err(|error| RemoteError::Address { what: error.to_string() })
        });
        let seeds = infos.collect::<Result<Vec<ConnectionInfo>, _>>()?;
        for seed in &seeds {
            check(seed.addr())?;
        }
        let none = || RemoteError::Address { what: "no address given".into() };
        let first = Node::new(seeds.first().ok_or_else(none)?.clone(), false, &options)?;
        let inner = Inner {
            hurried: AtomicBool::new(options.hurried),
            options,
            seeds,
            nodes: Mutex::default(),
            topology: RwLock::new(Arc::new(Topology::single(first, Vec::new()))),
            refreshing: tokio::sync::Mutex::default(),
        };
        let link = Self { inner: Arc::new(inner) };
        link.refresh(0).await?;
        Ok(link)
    }

    /// The options of the link.
    #[must_use]
    pub fn options(&self) -> &LinkOptions {
        &self.inner.options
    }

    /// Switches this link and all its clones to hurried, or back. A hurried link gives up after a few
    /// attempts, and waits at most a second for a server that does not answer. A caller that knows that
    /// servers are down can test from time to time whether they are back, without waiting for
    /// [`patience`](LinkOptions::patience) each time.
    pub fn set_hurried(&self, hurried: bool) {
        self.inner.hurried.store(hurried, Ordering::Relaxed);
    }

    fn is_hurried(&self) -> bool {
        self.inner.hurried.load(Ordering::Relaxed)
    }

    /// How long requests are retried at present.
    fn patience(&self) -> Duration {
        if self.is_hurried() { HURRIED_PATIENCE } else { self.inner.options.patience }
    }

    /// Is it a cluster?
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.topology().is_cluster()
    }

    /// The addresses of the known masters.
    #[must_use]
    pub fn masters(&self) -> Vec<String> {
        self.topology().masters().map(|node| node.display_address()).collect()
    }

    /// Sends one request and returns the answer.
    ///
    /// # Errors
    /// The server refuses, or no server answers.
    pub async fn ask_one(&self, request: Request) -> Result<Value, RemoteError> {
        let mut answers = self.ask(vec![request]).await;
        answers.pop().unwrap_or(Err(RemoteError::Patience { waited: Duration::ZERO, last: "nothing".into() }))
    }

    fn topology(&self) -> Arc<Topology> {
        self.inner.topology.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change_topology(&self, change: impl FnOnce(&mut Topology)) {
        let mut topology = self.inner.topology.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut topology));
    }

    fn known_nodes(&self) -> MutexGuard<'_, HashMap<(NodeAddress, bool), Arc<Node>>> {
        self.inner.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node at `address`. An address without a host means the host of `source`, the node that gave it.
    fn node_at(
        &self,
        address: &NodeAddress,
        is_replica: bool,
        source: &Node,
    ) -> Result<Arc<Node>, RemoteError> {
        let host = if address.host.is_empty() { &source.address().host } else { &address.host };
        let address = NodeAddress { host: host.clone(), port: address.port };
        let mut nodes = self.known_nodes();
        if let Some(node) = nodes.get(&(address.clone(), is_replica)) {
            return Ok(node.clone());
        }
        let like = &self.inner.seeds[0];
        let connection_addr = match like.addr() {
            ConnectionAddr::TcpTls { insecure, .. } => ConnectionAddr::TcpTls {
                host: address.host.clone(),
                port: address.port,
                insecure: *insecure,
                tls_params: None,
            },
            _ => ConnectionAddr::Tcp(address.host.clone(), address.port),
        };
        let node = Node::new(like.clone().set_addr(connection_addr), is_replica, &self.inner.options)?;
        nodes.insert((address, is_replica), node.clone());
        Ok(node)
    }

    /// The node of a seed.
    fn seed(&self, info: &ConnectionInfo, is_replica: bool) -> Result<Arc<Node>, RemoteError> {
        let key = (node_address(info.addr()), is_replica);
        let mut nodes = self.known_nodes();
        if let Some(node) = nodes.get(&key) {
            return Ok(node.clone());
        }
        let node = Node::new(info.clone(), is_replica, &self.inner.options)?;
        nodes.insert(key, node.clone());
        Ok(node)
    }

    /// Reads the slot map, unless another task has read it since `version`.
    async fn refresh(&self, version: u64) -> Result<(), RemoteError> {
        let began_to_wait = Instant::now();
        let mut refreshing = self.inner.refreshing.lock().await;
        let known = self.topology();
        if known.version > version {
            return Ok(());
        }
        // All tasks that waited for an attempt share its result. If each made its own, it would wait for all
        // before it.
        if let Some((_, error)) = refreshing.failed.as_ref().filter(|(ended, _)| *ended >= began_to_wait) {
            return Err(error.clone());
        }
        refreshing.turn += 1;
        let refreshed = self.fetch_slot_map(&known, refreshing.turn).await;
        refreshing.failed = refreshed.as_ref().err().map(|error| (Instant::now(), error.clone()));
        refreshed
    }

    /// Asks one node after another for the slot map, until one answers.
    async fn fetch_slot_map(&self, known: &Topology, turn: usize) -> Result<(), RemoteError> {
        /// After this time without an answer, the attempt ends. The next one begins with other nodes.
        const ATTEMPT: Duration = Duration::from_secs(3);
        let is_first = known.version == 0;
        let patient =
            if is_first && !self.is_hurried() { self.inner.options.connecting } else { SLOT_MAP_TIMEOUT };
        let mut last = RemoteError::Address { what: "no address given".into() };
        let begun = Instant::now();
        for node in &self.candidates(known, turn)? {
            if !is_first && begun.elapsed() > ATTEMPT {
                break;
            }
            match timeout(patient, self.learn(node)).await {
                Ok(Ok(Learned::Cluster(topology))) => {
                    self.adopt(topology);
                    return Ok(());
                }
                Ok(Ok(Learned::Server(role))) => {
                    let replicas = self.replicas_of(node, &role).await?;
                    self.adopt(Topology::single(node.clone(), replicas));
                    return Ok(());
                }
                Ok(Err(error)) => last = error,
                Err(_) => {
                    node.close_any().await;
                    last = RemoteError::Patience { waited: patient, last: node.display_address() };
                }
            }
        }
        Err(last)
    }

    /// The nodes to ask: the known ones, and the given ones.
    fn candidates(&self, known: &Topology, turn: usize) -> Result<Vec<Arc<Node>>, RemoteError> {
        let mut candidates: Vec<Arc<Node>> = Vec::new();
        if known.is_cluster() {
            candidates.extend(known.nodes().cloned());
        } else if known.version > 0 {
            candidates.extend(known.masters().cloned());
        }
        // Begin with another node each time: one may be cut off from the rest and have an old map.
        let first = turn % candidates.len().max(1);
        candidates.rotate_left(first);
        for info in &self.inner.seeds {
            candidates.push(self.seed(info, false)?);
        }
        let mut seen = HashSet::new();
        candidates.retain(|node| seen.insert(Arc::as_ptr(node)));
        Ok(candidates)
    }

    fn adopt(&self, topology: Topology) {
        let addresses: Vec<NodeAddress> = topology.nodes().map(|node| node.address().clone()).collect();
        self.change_topology(|known| *known = topology.after(known));
        self.known_nodes().retain(|(address, _), _| addresses.contains(address));
    }

    /// Reads the slot map from a node.
    async fn learn(&self, node: &Arc<Node>) -> Result<Learned, RemoteError> {
        let (role, slots) = node.look().await?;
        let is_alone = match (role.is_clustered, &slots) {
            (Some(is_clustered), _) => !is_clustered,
            // The server has no such command, or has clusters disabled. One that is loading, or denies the
            // command, may be in a cluster.
            (None, Value::ServerError(error)) => error.code() == "ERR",
            (None, _) => false,
        };
        if is_alone {
            return Ok(Learned::Server(role));
        }
        if let Value::ServerError(error) = &slots {
            return Err(refused(error));
        }
        let ranges = parse_slots(&slots).ok_or_else(|| RemoteError::reply("a slot map", &slots))?;
        if ranges.is_empty() {
            return Err(RemoteError::reply("a cluster with assigned slots", &slots));
        }
        let topology =
            Topology::cluster(&ranges, |address, is_replica| self.node_at(address, is_replica, node))?;
        Ok(Learned::Cluster(topology))
    }

    /// For a server outside a cluster: the given servers that are its replicas, if the options allow them.
    async fn replicas_of(&self, master: &Node, role: &NodeRole) -> Result<Vec<Arc<Node>>, RemoteError> {
        if !self.inner.options.read_from_replicas {
            return Ok(Vec::new());
        }
        let others = self.inner.seeds.iter().filter(|info| node_address(info.addr()) != *master.address());
        let others = others.map(|info| self.seed(info, true)).collect::<Result<Vec<_>, _>>()?;
        let follows = async |node: &Node| {
            let looked = timeout(SLOT_MAP_TIMEOUT, node.look()).await;
            matches!(looked, Ok(Ok((other, _))) if other.follows(role))
        };
        let follow = join_all(others.iter().map(|node| follows(node))).await;
        Ok(others.into_iter().zip(follow).filter_map(|(node, follows)| follows.then_some(node)).collect())
    }
}

/// The answer of a node to the question for the slot map.
enum Learned {
    /// The slot map of a cluster.
    Cluster(Topology),
    /// The server is not in a cluster and has all keys.
    Server(NodeRole),
}

/// Rejects addresses that turn certificate checks off: an unchecked certificate protects against no attacker.
fn check(address: &ConnectionAddr) -> Result<(), RemoteError> {
    match address {
        ConnectionAddr::TcpTls { insecure: true, .. } => {
            Err(RemoteError::Address { what: "the server's certificate is always checked".into() })
        }
        ConnectionAddr::TcpTls { .. } => {
            // This fails if another link has installed it already.
            let _ = rustls::crypto::ring::default_provider().install_default();
            Ok(())
        }
        _ => Ok(()),
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("masters", &self.masters()).finish_non_exhaustive()
    }
}
