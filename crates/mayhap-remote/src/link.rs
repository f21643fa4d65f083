//! A server, or all servers of a cluster: each request goes to the node that has its key.
//!
//! ```text
//! requests ─▶ by node ─▶ pipelines, all nodes at once ─▶ an answer each
//!                ▲                                        │ MOVED: the map is corrected   ┐
//!                └──────── only what has no answer ◀──────┤ ASK: there, behind an ASKING  │
//!                                                         └ busy, lost: ask who has what, wait
//! ```

mod ask;
mod heard;
mod node;
mod slots;
mod standing;
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
use self::node::{Node, place_of};
#[cfg(test)]
pub(crate) use self::slots::slot_of;
use self::slots::{Place, parse_slots};
use self::standing::Standing;
pub(crate) use self::swap::MOST_SWAPPED_BYTES;
use self::topology::Topology;
use crate::{RemoteError, Request};

/// A node that does not say by then who has what is left out of the question.
const LEARNING: Duration = Duration::from_secs(1);
/// How long a hurried link sends requests again.
const HURRIED: Duration = Duration::from_millis(100);

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
    /// certain only for what was added a while ago. In no cluster that is for those which [`Link::open`] is given beside their master.
    /// Default: no.
    pub read_from_replicas: bool,
    /// How many replicas must have a change before it counts as done: with none, a master that dies may take with it what it
    /// has just acknowledged. If there are more of them than that, one may take over that has it not. Default 0.
    pub replicas: u32,
    /// What to trust and to show over TLS; without it, what the system trusts.
    pub certificates: Option<TlsCertificates>,
    /// Does it begin [hurried](Link::set_hurried)? Default: no.
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

/// A server or a cluster. Clones share its connections.
#[derive(Clone)]
pub struct Link {
    inner: Arc<Inner>,
}

struct Inner {
    options: LinkOptions,
    hurried: AtomicBool,
    /// Where to begin, and how to log in everywhere.
    seeds: Vec<ConnectionInfo>,
    nodes: Mutex<HashMap<(Place, bool), Arc<Node>>>,
    topology: RwLock<Arc<Topology>>,
    /// One asks who has what, all others wait for that.
    refreshing: tokio::sync::Mutex<Refreshing>,
}

#[derive(Default)]
struct Refreshing {
    /// Counts, so that not always the same one is asked first.
    turn: usize,
    /// When the last attempt came to nothing, and why.
    failed: Option<(Instant, RemoteError)>,
}

impl Link {
    /// Connects to the first of `servers` that is there, and asks it whether it is part of a cluster, and of which. In no cluster it must be a master.
    ///
    /// # Errors
    /// One of them is not an address, none is there, or none is more than a replica.
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

    /// How it behaves.
    #[must_use]
    pub fn options(&self) -> &LinkOptions {
        &self.inner.options
    }

    /// From now on, and for all clones: a hurried link gives requests up after a few tries, and a server that says nothing for a second is
    /// not waited for. So who knows that servers are gone can ask now and then whether they are back, without waiting for
    /// [`patience`](LinkOptions::patience) each time.
    pub fn set_hurried(&self, hurried: bool) {
        self.inner.hurried.store(hurried, Ordering::Relaxed);
    }

    fn is_hurried(&self) -> bool {
        self.inner.hurried.load(Ordering::Relaxed)
    }

    /// How long requests are sent again, as things are.
    fn patience(&self) -> Duration {
        if self.is_hurried() { HURRIED } else { self.inner.options.patience }
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
    fn seed(&self, info: &ConnectionInfo, is_replica: bool) -> Result<Arc<Node>, RemoteError> {
        let key = (place_of(info.addr()), is_replica);
        let mut nodes = self.known_nodes();
        if let Some(node) = nodes.get(&key) {
            return Ok(node.clone());
        }
        let node = Node::new(info.clone(), is_replica, &self.inner.options)?;
        nodes.insert(key, node.clone());
        Ok(node)
    }

    /// Asks who has what, unless somebody has learned that since `version`.
    async fn refresh(&self, version: u64) -> Result<(), RemoteError> {
        let began_to_wait = Instant::now();
        let mut refreshing = self.inner.refreshing.lock().await;
        let known = self.topology();
        if known.version > version {
            return Ok(());
        }
        // All who waited for an attempt share what came of it: each with one of its own would wait for all before.
        if let Some((_, error)) = refreshing.failed.as_ref().filter(|(ended, _)| *ended >= began_to_wait) {
            return Err(error.clone());
        }
        refreshing.turn += 1;
        let refreshed = self.ask_around(&known, refreshing.turn).await;
        refreshing.failed = refreshed.as_ref().err().map(|error| (Instant::now(), error.clone()));
        refreshed
    }

    /// Asks one node after the other who has what, until one knows.
    async fn ask_around(&self, known: &Topology, turn: usize) -> Result<(), RemoteError> {
        /// After so long without an answer others are asked the next time.
        const ASKING: Duration = Duration::from_secs(3);
        let is_first = known.version == 0;
        let patient = if is_first && !self.is_hurried() { self.inner.options.connecting } else { LEARNING };
        let mut last = RemoteError::Address { what: "none is given".into() };
        let begun = Instant::now();
        for node in &self.candidates(known, turn)? {
            if !is_first && begun.elapsed() > ASKING {
                break;
            }
            match timeout(patient, self.learn(node)).await {
                Ok(Ok(Learned::Cluster(topology))) => {
                    self.adopt(topology);
                    return Ok(());
                }
                Ok(Ok(Learned::Server(standing))) => {
                    let replicas = self.replicas_of(node, &standing).await?;
                    self.adopt(Topology::single(node.clone(), replicas));
                    return Ok(());
                }
                Ok(Err(error)) => last = error,
                Err(_) => {
                    node.hang_up().await;
                    last = RemoteError::Patience { waited: patient, last: node.address() };
                }
            }
        }
        Err(last)
    }

    /// Whom to ask: those that are known, and those that were given.
    fn candidates(&self, known: &Topology, turn: usize) -> Result<Vec<Arc<Node>>, RemoteError> {
        let mut candidates: Vec<Arc<Node>> = Vec::new();
        if known.is_cluster() {
            candidates.extend(known.nodes().cloned());
        } else if known.version > 0 {
            candidates.extend(known.masters().cloned());
        }
        // Not always the same one first: it may be cut off from the rest, and know nothing new.
        let first = turn % candidates.len().max(1);
        candidates.rotate_left(first);
        for info in &self.inner.seeds {
            candidates.push(self.seed(info, false)?);
        }
        let mut are_in = HashSet::new();
        candidates.retain(|node| are_in.insert(Arc::as_ptr(node)));
        Ok(candidates)
    }

    fn adopt(&self, topology: Topology) {
        let places: Vec<Place> = topology.nodes().map(|node| node.place().clone()).collect();
        self.change_topology(|known| *known = topology.after(known));
        self.known_nodes().retain(|(place, _), _| places.contains(place));
    }

    /// What a node knows about who has what.
    async fn learn(&self, node: &Arc<Node>) -> Result<Learned, RemoteError> {
        let (standing, slots) = node.look().await?;
        let is_alone = match (standing.is_clustered, &slots) {
            (Some(is_clustered), _) => !is_clustered,
            // It knows no such command, or nothing of clusters; whoever is loading, or forbids it, may be part of one.
            (None, Value::ServerError(error)) => error.code() == "ERR",
            (None, _) => false,
        };
        if is_alone {
            return Ok(Learned::Server(standing));
        }
        if let Value::ServerError(error) = &slots {
            return Err(refused(error));
        }
        let ranges =
            parse_slots(&slots).ok_or_else(|| RemoteError::reply("slots and who has them", &slots))?;
        if ranges.is_empty() {
            return Err(RemoteError::reply("a cluster in which somebody has a slot", &slots));
        }
        let topology = Topology::cluster(&ranges, |place, is_replica| self.node_at(place, is_replica, node))?;
        Ok(Learned::Cluster(topology))
    }

    /// The replicas of a server in no cluster among those that were given, if they may be asked.
    async fn replicas_of(&self, master: &Node, standing: &Standing) -> Result<Vec<Arc<Node>>, RemoteError> {
        if !self.inner.options.read_from_replicas {
            return Ok(Vec::new());
        }
        let others = self.inner.seeds.iter().filter(|info| place_of(info.addr()) != *master.place());
        let others = others.map(|info| self.seed(info, true)).collect::<Result<Vec<_>, _>>()?;
        let follows = async |node: &Node| {
            let looked = timeout(LEARNING, node.look()).await;
            matches!(looked, Ok(Ok((other, _))) if other.follows(standing))
        };
        let follow = join_all(others.iter().map(|node| follows(node))).await;
        Ok(others.into_iter().zip(follow).filter_map(|(node, follows)| follows.then_some(node)).collect())
    }
}

/// What a node said about who has what.
enum Learned {
    /// Who has which slot.
    Cluster(Topology),
    /// It has everything itself.
    Server(Standing),
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

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("masters", &self.masters()).finish_non_exhaustive()
    }
}
