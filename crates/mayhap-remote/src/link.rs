//! A server, or all servers of a cluster: each request goes to the node that has its key.
//!
//! ```text
//! requests ─▶ by node ─▶ pipelines, all nodes at once ─▶ an answer each
//!                ▲                                        │ MOVED: the map is corrected   ┐
//!                └──────── only what has no answer ◀──────┤ ASK: there, behind an ASKING  │
//!                                                         └ busy, lost: ask who has what, wait
//! ```

mod ask;
mod node;
mod slots;
mod swap;
mod topology;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates, Value};
use tokio::time::timeout;

use self::node::{Node, place_of};
#[cfg(test)]
pub(crate) use self::slots::slot_of;
use self::slots::{Place, parse_slots};
pub(crate) use self::swap::MOST_SWAPPED_BYTES;
use self::topology::Topology;
use crate::{RemoteError, Request};

/// How a link behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LinkOptions {
    /// How long requests are sent again without any of them being answered, before they are given up. Default 15 s.
    pub patience: Duration,
    /// How long a server may take to accept a connection. Default 5 s.
    pub connecting: Duration,
    /// How long a server may take to answer. Default 10 s.
    pub answering: Duration,
    /// May requests that only look go to replicas? They may not have heard of the latest additions, so that an *absent* is
    /// certain only for what was added a while ago. Default: no.
    pub read_from_replicas: bool,
    /// How many replicas must have a change before it counts as done: with none, a master that dies may take with it what it
    /// has just acknowledged. Default 0.
    pub replicas: u32,
    /// What to trust and to show over TLS; without it, what the system trusts.
    pub certificates: Option<TlsCertificates>,
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
        }
    }
}

/// A server or a cluster. Clones share its connections.
#[derive(Clone)]
pub struct Link {
    inner: Arc<Inner>,
}

struct Inner {
    options: LinkOptions,
    /// Where to begin, and how to log in everywhere.
    seeds: Vec<ConnectionInfo>,
    nodes: Mutex<HashMap<(Place, bool), Arc<Node>>>,
    topology: RwLock<Arc<Topology>>,
    /// One asks who has what, all others wait for that; it counts whom to ask first.
    refreshing: tokio::sync::Mutex<usize>,
}

impl Link {
    /// Connects to the first of `servers` that is there, and asks it whether it is part of a cluster, and of which.
    ///
    /// # Errors
    /// One of them is not an address, or none is there.
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
        let none = || RemoteError::Address { what: "none is given".into() };
        let first = Node::new(seeds.first().ok_or_else(none)?.clone(), false, &options)?;
        let inner = Inner {
            options,
            seeds,
            nodes: Mutex::default(),
            topology: RwLock::new(Arc::new(Topology::single(first))),
            refreshing: tokio::sync::Mutex::new(0),
        };
        let link = Self { inner: Arc::new(inner) };
        link.refresh(0).await?;
        Ok(link)
    }

    /// How it behaves.
    #[must_use]
    pub fn options(&self) -> &LinkOptions {
        &self.inner.options
    }

    /// Is it a cluster?
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.topology().is_cluster()
    }

    /// The addresses of the servers that take changes, as far as is known.
    #[must_use]
    pub fn masters(&self) -> Vec<String> {
        self.topology().masters().map(|node| node.address()).collect()
    }

    /// What the server answers to one request.
    ///
    /// # Errors
    /// It refuses, or nobody answers.
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

    fn known_nodes(&self) -> MutexGuard<'_, HashMap<(Place, bool), Arc<Node>>> {
        self.inner.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node at `place`; a place without a host is on that of `teller`.
    fn node_at(&self, place: &Place, is_replica: bool, teller: &Node) -> Result<Arc<Node>, RemoteError> {
        let host = if place.host.is_empty() { &teller.place().host } else { &place.host };
        let place = Place { host: host.clone(), port: place.port };
        let mut nodes = self.known_nodes();
        if let Some(node) = nodes.get(&(place.clone(), is_replica)) {
            return Ok(node.clone());
        }
        let like = &self.inner.seeds[0];
        let address = match like.addr() {
            ConnectionAddr::TcpTls { insecure, .. } => ConnectionAddr::TcpTls {
                host: place.host.clone(),
                port: place.port,
                insecure: *insecure,
                tls_params: None,
            },
            _ => ConnectionAddr::Tcp(place.host.clone(), place.port),
        };
        let node = Node::new(like.clone().set_addr(address), is_replica, &self.inner.options)?;
        nodes.insert((place, is_replica), node.clone());
        Ok(node)
    }

    /// The node of a seed.
    fn seed(&self, info: &ConnectionInfo) -> Result<Arc<Node>, RemoteError> {
        let key = (place_of(info.addr()), false);
        let mut nodes = self.known_nodes();
        if let Some(node) = nodes.get(&key) {
            return Ok(node.clone());
        }
        let node = Node::new(info.clone(), false, &self.inner.options)?;
        nodes.insert(key, node.clone());
        Ok(node)
    }

    /// Asks who has what, unless somebody has learned that since `version`.
    async fn refresh(&self, version: u64) -> Result<(), RemoteError> {
        /// A node that does not say by then who has what is left out of the question.
        const ANSWERING: Duration = Duration::from_secs(1);
        /// After so long without an answer others are asked the next time.
        const ASKING: Duration = Duration::from_secs(3);
        let mut turn = self.inner.refreshing.lock().await;
        let known = self.topology();
        if known.version > version {
            return Ok(());
        }
        let mut candidates: Vec<Arc<Node>> = known.nodes().cloned().collect();
        let seeds = self.inner.seeds.iter().map(|info| self.seed(info)).collect::<Result<Vec<_>, _>>()?;
        if known.version == 0 {
            candidates = seeds;
        } else {
            // Not always the same one first: it may be cut off from the rest, and know nothing new.
            *turn += 1;
            let first = *turn % candidates.len().max(1);
            candidates.rotate_left(first);
            candidates.extend(seeds);
        }
        let patient = if known.version == 0 { self.inner.options.connecting } else { ANSWERING };
        let mut last = RemoteError::Address { what: "none is given".into() };
        let (mut second_best, begun) = (None, Instant::now());
        for node in &candidates {
            if known.version > 0 && begun.elapsed() > ASKING {
                break;
            }
            match timeout(patient, self.learn(node)).await {
                Ok(Ok(Learned { topology, is_master: true })) => return self.adopt(topology),
                Ok(Ok(Learned { topology, .. })) => second_best = second_best.or(Some(topology)),
                Ok(Err(error)) => last = error,
                Err(_) => last = RemoteError::Patience { waited: patient, last: node.address() },
            }
        }
        match second_best {
            Some(topology) => self.adopt(topology),
            None => Err(last),
        }
    }

    fn adopt(&self, topology: Topology) -> Result<(), RemoteError> {
        let places: Vec<Place> = topology.nodes().map(|node| node.place().clone()).collect();
        self.change_topology(|known| *known = topology.after(known));
        self.known_nodes().retain(|(place, _), _| places.contains(place));
        Ok(())
    }

    /// What a node knows about who has what.
    async fn learn(&self, node: &Arc<Node>) -> Result<Learned, RemoteError> {
        let info = |section: &str| redis::cmd("INFO").arg(section).take();
        let questions = vec![info("cluster"), info("replication"), redis::cmd("CLUSTER").arg("SLOTS").take()];
        let answers = node.send(questions).await?;
        let [cluster, replication, slots] = answers.as_slice() else {
            return Err(RemoteError::reply("three answers", &Value::Array(answers)));
        };
        // Who may not ask for INFO may still ask for the slots.
        let says_none = text(cluster).is_some_and(|text| text.contains("cluster_enabled:0"));
        if says_none || matches!(slots, Value::ServerError(_)) {
            let is_master = !text(replication).is_some_and(|text| text.contains("role:slave"));
            return Ok(Learned { topology: Topology::single(node.clone()), is_master });
        }
        let ranges = parse_slots(slots).ok_or_else(|| RemoteError::reply("slots and who has them", slots))?;
        if ranges.is_empty() {
            return Err(RemoteError::reply("a cluster in which somebody has a slot", slots));
        }
        let topology = Topology::cluster(&ranges, |place, is_replica| self.node_at(place, is_replica, node))?;
        Ok(Learned { topology, is_master: true })
    }
}

/// What a node said about who has what.
struct Learned {
    topology: Topology,
    /// Does it take changes? In a cluster it does not matter who says.
    is_master: bool,
}

/// A certificate that nobody looks at protects from nobody.
fn check(address: &ConnectionAddr) -> Result<(), RemoteError> {
    match address {
        ConnectionAddr::TcpTls { insecure: true, .. } => {
            Err(RemoteError::Address { what: "the server's certificate is always checked".into() })
        }
        ConnectionAddr::TcpTls { .. } => {
            // It is there already if this is the second link.
            let _ = rustls::crypto::ring::default_provider().install_default();
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A reply of text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.clone()),
        _ => None,
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("masters", &self.masters()).finish_non_exhaustive()
    }
}
