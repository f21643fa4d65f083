//! Rounds of sending: whatever has no answer is in the next one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redis::{Cmd, ServerError, Value};
use tokio::time::{sleep, timeout};

use super::heard::Heard;
use super::node::{Lost, Node};
use super::slots::{Place, parse_redirection, slot_of};
use super::topology::Topology;
use super::{LEARNING, Link, LinkOptions};
use crate::{Access, RemoteError, Request};

/// Requests of one pipeline.
const MOST_REQUESTS: usize = 1024;
/// Bytes of one pipeline, unless a single request has more.
const MOST_BYTES: usize = 1 << 20;
/// Redirections that are followed at once; then there is something wrong, and time is given to it.
const MOST_REDIRECTIONS: u32 = 8;
/// The first wait before sending again, which doubles every time.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(5);
/// The longest wait.
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(400);
/// How long replicas are waited for in one go.
pub(super) const REPLICAS_MS: u64 = 1000;

/// A request that has no answer yet.
#[derive(Clone)]
struct Open {
    /// Its place among all requests.
    index: usize,
    slot: u16,
    access: Access,
    /// The node that it is to be sent to behind an `ASKING`, whatever the map says.
    asking: Option<Arc<Node>>,
    redirections: u32,
}

/// Requests that go to one node together.
struct Batch {
    node: Arc<Node>,
    open: Vec<Open>,
    commands: Vec<Cmd>,
}

/// What became of one request in one round.
#[derive(Debug)]
pub(super) enum Fate {
    /// It is answered.
    Done(Result<Value, RemoteError>),
    /// Its slot is somebody else's for good.
    Moved(u16, Place),
    /// Its key is somebody else's already.
    Ask(Place),
    /// Not now.
    Later(String),
    /// Nobody knows whether it was done, and it may not be done twice.
    Unsure(String),
}

impl Link {
    /// What the servers answer, one result for each request, in order.
    ///
    /// Every request goes to the node that has its key, in one pipeline per node (several, if there are many requests), to all
    /// nodes at once. Each has its own result: what goes wrong with one is no matter to the others. Requests that were moved,
    /// came too early or whose connection was lost are sent again, those alone, until
    /// [`patience`](LinkOptions::patience) ends.
    ///
    /// So a request may run twice, unless it is one of [`Access::Once`]. For bits that are set that changes nothing, but an item may be called
    /// *mayhap there already* because of its own first attempt.
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
                    // Who asks next may have to ask another node.
                    let _ = self.refresh(round.version).await;
                }
                for open in &open {
                    results[open.index] = Some(Err(RemoteError::Patience { waited, last: last.clone() }));
                }
                break;
            }
            // If nobody knows who has what, the next round will say so.
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
        let (by_node, homeless) = batches(requests, open, &topology, self.options());
        if let Some(first) = homeless.first() {
            round.error = Some(format!("no node has slot {}", first.slot));
            round.open.extend(homeless);
        }
        let sent = join_all(by_node.into_iter().map(|batches| self.send_in_time(requests, batches))).await;
        let mut moved: HashMap<u16, Arc<Node>> = HashMap::new();
        for (mut open, fate, node) in sent.into_iter().flatten() {
            let redirected = |place: &Place| self.node_at(place, false, &node);
            open.asking = None;
            match fate {
                Fate::Done(result) => {
                    round.is_progress = true;
                    results[open.index] = Some(result);
                    continue;
                }
                Fate::Moved(slot, place) => match redirected(&place) {
                    Ok(node) => {
                        moved.insert(slot, node);
                        round.redirect(&mut open, || format!("MOVED to {}", place.host));
                    }
                    Err(error) => round.error = Some(error.to_string()),
                },
                Fate::Ask(place) => match redirected(&place) {
                    Ok(node) => {
                        open.asking = Some(node);
                        round.redirect(&mut open, || format!("ASK {}", place.host));
                    }
                    Err(error) => round.error = Some(error.to_string()),
                },
                Fate::Later(what) => round.error = Some(what),
                Fate::Unsure(last) => {
                    results[open.index] = Some(Err(RemoteError::Unsure { last }));
                    continue;
                }
            }
            round.open.push(open);
        }
        if !moved.is_empty() {
            if !topology.is_cluster() {
                // It was taken for a single server, and is one of a cluster.
                round.error.get_or_insert_with(|| "MOVED, by a server in no cluster".into());
            }
            self.change_topology(|known| moved.iter().for_each(|(&slot, node)| known.moved(slot, node)));
        }
        round
    }

    /// [`send_all`](Self::send_all); if the link is hurried, for no longer than a second.
    async fn send_in_time(&self, requests: &[Request], batches: Vec<Batch>) -> Vec<(Open, Fate, Arc<Node>)> {
        if !self.is_hurried() {
            return self.send_all(requests, batches).await;
        }
        let of_batch =
            |batch: &Batch| batch.open.iter().map(|open| (open.clone(), batch.node.clone())).collect();
        let all: Vec<(Open, Arc<Node>)> = batches.iter().flat_map::<Vec<_>, _>(of_batch).collect();
        if let Ok(sent) = timeout(LEARNING, self.send_all(requests, batches)).await {
            return sent;
        }
        // All batches are of one node.
        if let Some((_, node)) = all.first() {
            node.hang_up().await;
        }
        let late = |(open, node): (Open, Arc<Node>)| {
            let what = format!("{} does not answer within {} s", node.address(), LEARNING.as_secs());
            let fate = open.not_heard(what);
            (open, fate, node)
        };
        all.into_iter().map(late).collect()
    }

    /// Sends the batches of one node, one after the other; after one that is lost no more in this round, or each would wait as long.
    async fn send_all(&self, requests: &[Request], batches: Vec<Batch>) -> Vec<(Open, Fate, Arc<Node>)> {
        let mut fates = Vec::with_capacity(batches.iter().map(|batch| batch.open.len()).sum());
        let mut lost: Option<String> = None;
        for Batch { node, open, commands } in batches {
            let of_batch = match &lost {
                Some(what) => open.iter().map(|_| Fate::Later(what.clone())).collect(),
                None => match self.send_batch(&node, &open, commands, self.heard(requests, &open)).await {
                    Ok(fates) => fates,
                    Err(Lost { cause, is_sent }) => {
                        let what = lost.insert(cause.to_string());
                        let fate = |open: &Open| match is_sent {
                            true => open.not_heard(what.clone()),
                            false => Fate::Later(what.clone()),
                        };
                        open.iter().map(fate).collect()
                    }
                },
            };
            fates.extend(open.into_iter().zip(of_batch).map(|(open, fate)| (open, fate, node.clone())));
        }
        fates
    }

    /// What becomes of each request of a batch.
    async fn send_batch(
        &self,
        node: &Node,
        open: &[Open],
        mut commands: Vec<Cmd>,
        heard: Option<Heard>,
    ) -> Result<Vec<Fate>, Lost> {
        commands.extend(heard.iter().flat_map(Heard::commands));
        let (mut answers, number) = node.send(commands).await?;
        let mut unheard = heard.as_ref().and_then(|heard| heard.judge(&mut answers));
        // What may not be sent again can be heard of later: by the same connection, since a server that was lost meanwhile may have lost it.
        let (since, is_once) = (Instant::now(), open.iter().any(|open| open.access == Access::Once));
        while let (true, Some(Fate::Later(_)), Some(heard)) = (is_once, &unheard, &heard) {
            if since.elapsed() >= self.patience() {
                break;
            }
            sleep(FIRST_WAIT).await;
            let Some(mut answers) = node.send_by(number, heard.commands().collect()).await else { break };
            unheard = heard.judge(&mut answers);
        }
        let mut answers = answers.into_iter();
        let fates = open.iter().map(|open| {
            if open.asking.is_some() {
                // What it says to the ASKING in front is no matter.
                answers.next();
            }
            let fate = answers.next().map_or_else(|| open.not_heard("no answer".into()), fate);
            match (&unheard, fate) {
                (Some(Fate::Done(Err(error))), Fate::Done(Ok(_))) if open.access != Access::Once => {
                    Fate::Done(Err(error.clone()))
                }
                (Some(Fate::Done(Err(error))), Fate::Done(Ok(_))) => Fate::Unsure(error.to_string()),
                (Some(Fate::Later(what)), Fate::Done(Ok(_))) => open.not_heard(what.clone()),
                (_, fate) => fate,
            }
        });
        Ok(fates.collect())
    }

    /// What replicas must hear of if these requests change anything.
    fn heard(&self, requests: &[Request], open: &[Open]) -> Option<Heard> {
        static TURN: AtomicUsize = AtomicUsize::new(0);
        let replicas = self.options().replicas;
        let changes = || open.iter().filter(|open| open.access.is_change());
        if replicas == 0 || changes().next().is_none() {
            return None;
        }
        // Another one every time: the slot of one may be on its way, where nothing new can be written.
        let beside = changes().nth(TURN.fetch_add(1, Ordering::Relaxed) % changes().count())?;
        Some(Heard::new(requests[beside.index].key(), beside.asking.is_some(), replicas))
    }
}

impl Open {
    /// What becomes of it if it may have run.
    fn not_heard(&self, what: String) -> Fate {
        if self.access == Access::Once { Fate::Unsure(what) } else { Fate::Later(what) }
    }
}

/// What became of a round.
struct Round {
    /// What has no answer.
    open: Vec<Open>,
    /// Why something is not answered that no redirection will help.
    error: Option<String>,
    is_progress: bool,
    /// Of the map that was used.
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

/// One list of batches for each node, and the requests whose slot nobody has.
fn batches(
    requests: &[Request],
    open: Vec<Open>,
    topology: &Topology,
    options: &LinkOptions,
) -> (Vec<Vec<Batch>>, Vec<Open>) {
    let mut by_node: HashMap<*const Node, Vec<Batch>> = HashMap::new();
    let mut homeless = Vec::new();
    let mut bytes: HashMap<*const Node, usize> = HashMap::new();
    for open in open {
        let request = &requests[open.index];
        let by_map = || topology.node(open.slot, request.access(), options.read_from_replicas);
        let Some(node) = open.asking.as_ref().or_else(by_map).cloned() else {
            homeless.push(open);
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
    (by_node.into_values().collect(), homeless)
}

/// Bytes of a command, more or less.
fn bytes_of(command: &Cmd) -> usize {
    command
        .args_iter()
        .map(|word| if let redis::Arg::Simple(word) = word { word.len() + 8 } else { 16 })
        .sum()
}

/// Have fewer replicas than wanted heard of the changes?
pub(super) fn too_few(waited: Option<&Value>, replicas: u32) -> Option<String> {
    match waited {
        Some(Value::Int(heard)) if *heard >= i64::from(replicas) => None,
        Some(Value::Int(heard)) => Some(format!("{heard} of {replicas} replicas have it")),
        _ => Some(format!("nobody knows whether {replicas} replicas have it")),
    }
}

/// What a reply says is to be done.
pub(super) fn fate(value: Value) -> Fate {
    let Value::ServerError(error) = value else { return Fate::Done(Ok(value)) };
    let (code, text) = (error.code(), error.details().unwrap_or_default());
    let done = || Fate::Done(Err(refused(&error)));
    match code {
        "MOVED" => parse_redirection(text).map_or_else(done, |(slot, place)| Fate::Moved(slot, place)),
        "ASK" => parse_redirection(text).map_or_else(done, |(_, place)| Fate::Ask(place)),
        "TRYAGAIN" | "LOADING" | "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" => {
            Fate::Later(format!("{code} {text}"))
        }
        _ => done(),
    }
}

/// A server's error reply.
pub(super) fn refused(error: &ServerError) -> RemoteError {
    RemoteError::Refused {
        code: error.code().to_owned(),
        text: error.details().unwrap_or_default().to_owned(),
    }
}
