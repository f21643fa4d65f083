//! Replaces a value in one step, unless another client changed it.

use std::time::Instant;

use redis::{Cmd, Value};
use tokio::time::sleep;

use super::Link;
use super::ask::{FIRST_WAIT, LONGEST_WAIT, Outcome, REPLICAS_MS, outcome, too_few};
use super::node::{Node, send};
use super::slots::slot_of;
use crate::{Access, RemoteError};

/// The maximum length of a swapped value.
pub(crate) const MOST_SWAPPED_BYTES: usize = 4096;

/// The outcome of one attempt.
enum Tried {
    /// The new value is there, and we wrote it.
    Swapped,
    /// The key holds another value.
    Other,
    /// Retry later, or at another node.
    Again(Outcome),
}

impl Link {
    /// Replaces `from` by `to` at `key`; `None` means no value. Returns `false` if the key holds something
    /// else.
    ///
    /// `to` must differ from every earlier value: after a lost connection, a client that finds it there
    /// assumes that it wrote it.
    ///
    /// # Errors
    /// The server refuses, or no server answers.
    pub(crate) async fn swap(
        &self,
        key: &[u8],
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<bool, RemoteError> {
        let (slot, since, mut wait) = (slot_of(key), Instant::now(), FIRST_WAIT);
        loop {
            let topology = self.topology();
            let node = topology.node(slot, Access::Write, false).cloned();
            let tried = match &node {
                Some(node) => self.try_swap(node, key, from, to).await,
                None => Tried::Again(Outcome::Later(format!("no node has slot {slot}"))),
            };
            let what = match (tried, &node) {
                (Tried::Swapped, _) => return Ok(true),
                (Tried::Other, _) => return Ok(false),
                (Tried::Again(Outcome::Done(Err(error))), _) => return Err(error),
                (Tried::Again(Outcome::Done(Ok(value))), _) => {
                    return Err(RemoteError::reply("a transaction", &value));
                }
                (Tried::Again(Outcome::Moved(slot, address)), Some(source)) => {
                    let node = self.node_at(&address, false, source)?;
                    self.change_topology(|known| known.moved(slot, &node));
                    format!("MOVED to {}", node.display_address())
                }
                // Wait until the key has migrated.
                (Tried::Again(Outcome::Ask(address) | Outcome::Moved(_, address)), _) => {
                    format!("ASK {}", address.host)
                }
                (Tried::Again(Outcome::Later(what) | Outcome::Unsure(what)), _) => {
                    let _ = self.refresh(topology.version).await;
                    what
                }
            };
            let waited = since.elapsed();
            if waited >= self.patience() {
                return Err(RemoteError::Patience { waited, last: what });
            }
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    async fn try_swap(&self, node: &Node, key: &[u8], from: Option<&[u8]>, to: Option<&[u8]>) -> Tried {
        let later = |error: &dyn std::fmt::Display| Tried::Again(Outcome::Later(error.to_string()));
        let mut connection = match node.own_connection().await {
            Ok(connection) => connection,
            Err(error) => return later(&error),
        };
        let watch = redis::cmd("WATCH").arg(key).take();
        let look = redis::cmd("GETRANGE").arg(key).arg(0).arg(MOST_SWAPPED_BYTES).take();
        let answers = match send(&mut connection, vec![watch, look]).await {
            Ok(answers) => answers,
            Err(error) => return later(&error),
        };
        let mut there = Vec::new();
        for answer in answers {
            match outcome(answer) {
                Outcome::Done(Ok(Value::BulkString(bytes))) => there = bytes,
                Outcome::Done(Ok(_)) => {}
                other => return Tried::Again(other),
            }
        }
        let replicas = self.options().replicas;
        let is_done = there == to.unwrap_or_default();
        if is_done && replicas == 0 {
            return Tried::Swapped;
        }
        if !is_done && there != from.unwrap_or_default() {
            return Tried::Other;
        }
        let answers = match send(&mut connection, transaction(key, to, replicas)).await {
            Ok(answers) => answers,
            Err(error) => return later(&error),
        };
        check(answers, replicas)
    }
}

fn transaction(key: &[u8], to: Option<&[u8]>, replicas: u32) -> Vec<Cmd> {
    let change = match to {
        Some(to) => redis::cmd("SET").arg(key).arg(to).take(),
        None => redis::cmd("DEL").arg(key).take(),
    };
    let mut commands = vec![redis::cmd("MULTI"), change, redis::cmd("EXEC")];
    if replicas > 0 {
        commands.push(redis::cmd("WAIT").arg(replicas).arg(REPLICAS_MS).take());
    }
    commands
}

/// The outcome of a transaction, from its replies.
fn check(mut answers: Vec<Value>, replicas: u32) -> Tried {
    let unacknowledged =
        (replicas > 0).then(|| answers.pop()).and_then(|waited| too_few(waited.as_ref(), replicas));
    // The error of a queued command comes before the EXEC that it aborts, and has the reason.
    for answer in answers {
        match (outcome(answer), &unacknowledged) {
            (Outcome::Done(Ok(Value::Array(_))), None) => return Tried::Swapped,
            (Outcome::Done(Ok(Value::Array(_))), Some(what)) => {
                return Tried::Again(Outcome::Later(what.clone()));
            }
            // The value changed after the WATCH. The next attempt reads the new value.
            (Outcome::Done(Ok(Value::Nil)), _) => {
                return Tried::Again(Outcome::Later("changed by another client".into()));
            }
            (Outcome::Done(Ok(_)), _) => {}
            (other, _) => return Tried::Again(other),
        }
    }
    Tried::Again(Outcome::Later("no answer".into()))
}
