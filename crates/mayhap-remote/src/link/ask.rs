//! Sends requests in rounds: requests without an answer go to the next round.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redis::{Cmd, ServerError, Value};
use tokio::time::{sleep, timeout};

use super::node::{Lost, Node};
use super::replica_ack::ReplicaAck;
use super::slots::{NodeAddress, parse_redirection, slot_of};
use super::topology::Topology;
use super::{Link, LinkOptions, SLOT_MAP_TIMEOUT};
use crate::{Access, RemoteError, Request};

/// The maximum number of requests in one pipeline.
const MOST_REQUESTS: usize = 1024;
/// The maximum number of bytes in one pipeline, unless a single request has more.
const MOST_BYTES: usize = 1 << 20;
/// The number of redirections that are followed without a wait. After that, something is wrong, and the
/// request waits.
const MOST_REDIRECTIONS: u32 = 8;
/// The first wait before a retry. It doubles each time.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(5);
/// The longest wait.
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(400);
/// How long one `WAIT` waits for replicas.
pub(super) const REPLICAS_MS: u64 = 1000;

/// A request without an answer.
#[derive(Clone)]
struct Open {
    /// Its index in the list of requests.
    index: usize,
    slot: u16,
    access: Access,
    /// The node to send it to after an `ASKING`, whatever the slot map says.
    asking: Option<Arc<Node>>,
    redirections: u32,
}

/// Requests that go to one node in one pipeline.
struct Batch {
    node: Arc<Node>,
    open: Vec<Open>,
    commands: Vec<Cmd>,
}

/// The outcome of one request in one round.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is answered.
    Done(Result<Value, RemoteError>),
    /// Its slot belongs to another node, permanently.
    Moved(u16, NodeAddress),
    /// Its key is on another node already, during a migration.
    Ask(NodeAddress),
    /// Retry later.
    Later(String),
    /// It may or may not have run, and must not run twice.
    Unsure(String),
}

impl Link {
    /// Sends requests and returns one result for each, in order.
    ///
    /// Every request goes to the node that has its key. There is one pipeline per node, or several for many
    /// requests, and all nodes work in parallel. Each request has its own result: an error of one does not
    /// affect the others. If a request was redirected, came too early or lost its connection, it alone is
    /// sent again, until [`patience`](LinkOptions::patience) ends.
    ///
    /// So a request may run twice, unless it has [`Access::Once`]. For setting bits that changes nothing,
    /// except that an item may be reported as *maybe before* because of its own first attempt.
    pub async fn ask(&self, requests: Vec<Request>) -> Vec<Result<Value, RemoteError>> {
        let mut results: Vec<Option<Result<Value, RemoteError>>> = vec![None; requests.len()];
        let one = |(index, request): (usize, &Request)| {
            let (slot, access) = (slot_of(request.key()), request.access());
            Open { index, slot, access, asking: None, redirections: 0 }
        };
        let mut open: Vec<Open> = requests.iter().enumerate().map(one).collect();
        let (mut wait, mut since) = (FIRST_WAIT, Instant::now());
        let mut has_refreshed = false;
        while !open.is_empty() {
            let round = self.round(&requests, open, &mut results).await;
            if round.is_progress {
                (wait, since) = (FIRST_WAIT, Instant::now());
            }
            open = round.open;
            let Some(last) = round.error else { continue };
            let waited = since.elapsed();
            if waited >= self.patience() {
                if !has_refreshed {
                    // The key of the next request may be on another node.
                    let _ = self.refresh(round.version).await;
                }
                for open in &open {
                    results[open.index] = Some(Err(RemoteError::Patience { waited, last: last.clone() }));
                }
                break;
            }
            // If the slot map cannot be read, the next round reports that.
            let _ = self.refresh(round.version).await;
            has_refreshed = true;
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        let nothing = || Err(RemoteError::Patience { waited: Duration::ZERO, last: "no answer".into() });
        results.into_iter().map(|result| result.unwrap_or_else(nothing)).collect()
    }

    async fn round(
        &self,
        requests: &[Request],
        open: Vec<Open>,
        results: &mut [Option<Result<Value, RemoteError>>],
    ) -> Round {
        let topology = self.topology();
        let mut round =
            Round { open: Vec::new(), error: None, is_progress: false, version: topology.version };
        let (by_node, unassigned) = batches(requests, open, &topology, self.options());
        if let Some(first) = unassigned.first() {
            round.error = Some(format!("no node has slot {}", first.slot));
            round.open.extend(unassigned);
        }
        let sent = join_all(by_node.into_iter().map(|batches| self.send_in_time(requests, batches))).await;
        let mut moved: HashMap<u16, Arc<Node>> = HashMap::new();
        for (mut open, outcome, node) in sent.into_iter().flatten() {
            let redirected = |address: &NodeAddress| self.node_at(address, false, &node);
            open.asking = None;
            match outcome {
                Outcome::Done(result) => {
                    round.is_progress = true;
                    results[open.index] = Some(result);
                    continue;
                }
                Outcome::Moved(slot, address) => match redirected(&address) {
                    Ok(node) => {
                        moved.insert(slot, node);
                        round.redirect(&mut open, || format!("MOVED to {}", address.host));
                    }
                    Err(error) => round.error = Some(error.to_string()),
                },
                Outcome::Ask(address) => match redirected(&address) {
                    Ok(node) => {
                        open.asking = Some(node);
                        round.redirect(&mut open, || format!("ASK {}", address.host));
                    }
                    Err(error) => round.error = Some(error.to_string()),
                },
                Outcome::Later(what) => round.error = Some(what),
                Outcome::Unsure(last) => {
                    results[open.index] = Some(Err(RemoteError::Unsure { last }));
                    continue;
                }
            }
            round.open.push(open);
        }
        if !moved.is_empty() {
            if !topology.is_cluster() {
                // The server was used as a single one, but is in a cluster.
                round.error.get_or_insert_with(|| "MOVED, by a server outside a cluster".into());
            }
            self.change_topology(|known| moved.iter().for_each(|(&slot, node)| known.moved(slot, node)));
        }
        round
    }

    /// [`send_all`](Self::send_all), with a limit of one second if the link is hurried.
    async fn send_in_time(
        &self,
        requests: &[Request],
        batches: Vec<Batch>,
    ) -> Vec<(Open, Outcome, Arc<Node>)> {
        if !self.is_hurried() {
            return self.send_all(requests, batches).await;
        }
        let of_batch =
            |batch: &Batch| batch.open.iter().map(|open| (open.clone(), batch.node.clone())).collect();
        let all: Vec<(Open, Arc<Node>)> = batches.iter().flat_map::<Vec<_>, _>(of_batch).collect();
        if let Ok(sent) = timeout(SLOT_MAP_TIMEOUT, self.send_all(requests, batches)).await {
            return sent;
        }
        // All batches are for one node.
        if let Some((_, node)) = all.first() {
            node.close_any().await;
        }
        let late = |(open, node): (Open, Arc<Node>)| {
            let what =
                format!("{} does not answer within {} s", node.display_address(), SLOT_MAP_TIMEOUT.as_secs());
            let outcome = open.unanswered(what);
            (open, outcome, node)
        };
        all.into_iter().map(late).collect()
    }

    /// Sends the batches of one node, one after another. After a lost batch it sends no more in this round,
    /// because each would wait as long.
    async fn send_all(&self, requests: &[Request], batches: Vec<Batch>) -> Vec<(Open, Outcome, Arc<Node>)> {
        let mut outcomes = Vec::with_capacity(batches.iter().map(|batch| batch.open.len()).sum());
        let mut lost: Option<String> = None;
        for Batch { node, open, commands } in batches {
            let of_batch = match &lost {
                Some(what) => open.iter().map(|_| Outcome::Later(what.clone())).collect(),
                None => match self.send_batch(&node, &open, commands, self.ack(requests, &open)).await {
                    Ok(outcomes) => outcomes,
                    Err(Lost { cause, is_sent }) => {
                        let what = lost.insert(cause.to_string());
                        let outcome = |open: &Open| match is_sent {
                            true => open.unanswered(what.clone()),
                            false => Outcome::Later(what.clone()),
                        };
                        open.iter().map(outcome).collect()
                    }
                },
            };
            outcomes
                .extend(open.into_iter().zip(of_batch).map(|(open, outcome)| (open, outcome, node.clone())));
        }
        outcomes
    }

    /// Sends one batch and returns the outcome of each request.
    async fn send_batch(
        &self,
        node: &Node,
        open: &[Open],
        mut commands: Vec<Cmd>,
        ack: Option<ReplicaAck>,
    ) -> Result<Vec<Outcome>, Lost> {
        commands.extend(ack.iter().flat_map(ReplicaAck::commands));
        let (mut answers, number) = node.send(commands).await?;
        let mut unacknowledged = ack.as_ref().and_then(|ack| ack.check(&mut answers));
        // Requests that must not be sent again can be acknowledged later, but only on the same connection: if
        // it was lost, the server may have lost the change.
        let (since, is_once) = (Instant::now(), open.iter().any(|open| open.access == Access::Once));
        while let (true, Some(Outcome::Later(_)), Some(ack)) = (is_once, &unacknowledged, &ack) {
            if since.elapsed() >= self.patience() {
                break;
            }
            sleep(FIRST_WAIT).await;
            let Some(mut answers) = node.send_by(number, ack.commands().collect()).await else { break };
            unacknowledged = ack.check(&mut answers);
        }
        let mut answers = answers.into_iter();
        let outcomes = open.iter().map(|open| {
            if open.asking.is_some() {
                // Skip the reply to the ASKING before it.
                answers.next();
            }
            let outcome = answers.next().map_or_else(|| open.unanswered("no answer".into()), outcome);
            match (&unacknowledged, outcome) {
                (Some(Outcome::Done(Err(error))), Outcome::Done(Ok(_))) if open.access != Access::Once => {
                    Outcome::Done(Err(error.clone()))
                }
                (Some(Outcome::Done(Err(error))), Outcome::Done(Ok(_))) => Outcome::Unsure(error.to_string()),
                (Some(Outcome::Later(what)), Outcome::Done(Ok(_))) => open.unanswered(what.clone()),
                (_, outcome) => outcome,
            }
        });
        Ok(outcomes.collect())
    }

    /// The acknowledgement to request from replicas, if these requests change anything.
    fn ack(&self, requests: &[Request], open: &[Open]) -> Option<ReplicaAck> {
        static TURN: AtomicUsize = AtomicUsize::new(0);
        let replicas = self.options().replicas;
        let changes = || open.iter().filter(|open| open.access.is_change());
        if replicas == 0 || changes().next().is_none() {
            return None;
        }
        // Use another key each time: the slot of one may be migrating, and then no new key can be written
        // there.
        let changed = changes().nth(TURN.fetch_add(1, Ordering::Relaxed) % changes().count())?;
        Some(ReplicaAck::new(requests[changed.index].key(), changed.asking.is_some(), replicas))
    }
}

impl Open {
    /// The outcome if it may have run.
    fn unanswered(&self, what: String) -> Outcome {
        if self.access == Access::Once { Outcome::Unsure(what) } else { Outcome::Later(what) }
    }
}

/// The outcome of a round.
struct Round {
    /// Requests without an answer.
    open: Vec<Open>,
    /// The reason for a missing answer that no redirection explains.
    error: Option<String>,
    is_progress: bool,
    /// The version of the slot map that was used.
    version: u64,
}

impl Round {
    fn redirect(&mut self, open: &mut Open, what: impl FnOnce() -> String) {
        open.redirections += 1;
        if open.redirections > MOST_REDIRECTIONS {
            open.redirections = 0;
            self.error = Some(what());
        }
    }
}

/// One list of batches for each node, and the requests whose slot has no node.
fn batches(
    requests: &[Request],
    open: Vec<Open>,
    topology: &Topology,
    options: &LinkOptions,
) -> (Vec<Vec<Batch>>, Vec<Open>) {
    let mut by_node: HashMap<*const Node, Vec<Batch>> = HashMap::new();
    let mut unassigned = Vec::new();
    let mut bytes: HashMap<*const Node, usize> = HashMap::new();
    for open in open {
        let request = &requests[open.index];
        let by_map = || topology.node(open.slot, request.access(), options.read_from_replicas);
        let Some(node) = open.asking.as_ref().or_else(by_map).cloned() else {
            unassigned.push(open);
            continue;
        };
        let key = Arc::as_ptr(&node);
        let (list, filled) = (by_node.entry(key).or_default(), bytes.entry(key).or_default());
        let size = bytes_of(request.command());
        let is_full = list.last().is_none_or(|batch| {
            batch.open.len() >= MOST_REQUESTS || filled.saturating_add(size) > MOST_BYTES
        });
        if is_full {
            list.push(Batch { node, open: Vec::new(), commands: Vec::new() });
            *filled = 0;
        }
        *filled += size;
        if let Some(batch) = list.last_mut() {
            if open.asking.is_some() {
                batch.commands.push(redis::cmd("ASKING"));
            }
            batch.commands.push(request.command().clone());
            batch.open.push(open);
        }
    }
    (by_node.into_values().collect(), unassigned)
}

/// The approximate size of a command, in bytes.
fn bytes_of(command: &Cmd) -> usize {
    command
        .args_iter()
        .map(|word| if let redis::Arg::Simple(word) = word { word.len() + 8 } else { 16 })
        .sum()
}

/// Returns a message if fewer than `replicas` replicas acknowledged the changes.
pub(super) fn too_few(waited: Option<&Value>, replicas: u32) -> Option<String> {
    match waited {
        Some(Value::Int(ack)) if *ack >= i64::from(replicas) => None,
        Some(Value::Int(ack)) => Some(format!("{ack} of {replicas} replicas have it")),
        _ => Some(format!("it is unknown whether {replicas} replicas have it")),
    }
}

/// The outcome that a reply means.
pub(super) fn outcome(value: Value) -> Outcome {
    let Value::ServerError(error) = value else { return Outcome::Done(Ok(value)) };
    let (code, text) = (error.code(), error.details().unwrap_or_default());
    let done = || Outcome::Done(Err(refused(&error)));
    match code {
        "MOVED" => parse_redirection(text).map_or_else(done, |(slot, address)| Outcome::Moved(slot, address)),
        "ASK" => parse_redirection(text).map_or_else(done, |(_, address)| Outcome::Ask(address)),
        "TRYAGAIN" | "LOADING" | "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" => {
            Outcome::Later(format!("{code} {text}"))
        }
        _ => done(),
    }
}

/// The error reply of a server, as an error.
pub(super) fn refused(error: &ServerError) -> RemoteError {
    RemoteError::Refused {
        code: error.code().to_owned(),
        text: error.details().unwrap_or_default().to_owned(),
    }
}
