//! One value in place of another in one step, only if nobody else did that meanwhile.

use std::time::Instant;

use redis::{Cmd, Value};
use tokio::time::sleep;

use super::Link;
use super::ask::{FIRST_WAIT, Fate, LONGEST_WAIT, REPLICAS_MS, fate, too_few};
use super::node::{Node, send};
use super::slots::slot_of;
use crate::{Access, RemoteError};

/// Longer values are nothing that is swapped here.
pub(crate) const MOST_SWAPPED_BYTES: usize = 4096;

/// What became of one try.
enum Tried {
    /// It is so now, and that was us.
    Swapped,
    /// Something else is there.
    Other,
    /// Not now, or not here.
    Again(Fate),
}

impl Link {
    /// Puts `to` in place of `from` at `key` (`None`: nothing there). `false`: something else is there.
    ///
    /// `to` must be unlike every value before it: who finds it there after a lost connection takes it for its own.
    ///
    /// # Errors
    /// The server refuses, or nobody answers.
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
                None => Tried::Again(Fate::Later(format!("no node has slot {slot}"))),
            };
            let what = match (tried, &node) {
                (Tried::Swapped, _) => return Ok(true),
                (Tried::Other, _) => return Ok(false),
                (Tried::Again(Fate::Done(Err(error))), _) => return Err(error),
                (Tried::Again(Fate::Done(Ok(value))), _) => {
                    return Err(RemoteError::reply("a transaction", &value));
                }
                (Tried::Again(Fate::Moved(slot, place)), Some(teller)) => {
                    let node = self.node_at(&place, false, teller)?;
                    self.change_topology(|known| known.moved(slot, &node));
                    format!("MOVED to {}", node.address())
                }
                // A key on its way is waited for.
                (Tried::Again(Fate::Ask(place) | Fate::Moved(_, place)), _) => format!("ASK {}", place.host),
                (Tried::Again(Fate::Later(what) | Fate::Unsure(what)), _) => {
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
        let later = |error: &dyn std::fmt::Display| Tried::Again(Fate::Later(error.to_string()));
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
            match fate(answer) {
                Fate::Done(Ok(Value::BulkString(bytes))) => there = bytes,
                Fate::Done(Ok(_)) => {}
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
        judge(answers, replicas)
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

/// What the answers to a transaction say.
fn judge(mut answers: Vec<Value>, replicas: u32) -> Tried {
    let unheard = (replicas > 0).then(|| answers.pop()).and_then(|waited| too_few(waited.as_ref(), replicas));
    // A refusal of what is in it comes before the EXEC that was aborted by it, and says why.
    for answer in answers {
        match (fate(answer), &unheard) {
            (Fate::Done(Ok(Value::Array(_))), None) => return Tried::Swapped,
            (Fate::Done(Ok(Value::Array(_))), Some(what)) => return Tried::Again(Fate::Later(what.clone())),
            // Changed since it was watched: the next look says by whom.
            (Fate::Done(Ok(Value::Nil)), _) => return Tried::Again(Fate::Later("changed meanwhile".into())),
            (Fate::Done(Ok(_)), _) => {}
            (other, _) => return Tried::Again(other),
        }
    }
    Tried::Again(Fate::Later("no answer".into()))
}
