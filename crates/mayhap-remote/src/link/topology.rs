//! The slot map: which node has which slot.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::node::Node;
use super::slots::{NodeAddress, SLOTS, SlotRange};
use crate::{Access, RemoteError};

/// The maximum number of masters of a cluster.
const MOST_OWNERS: usize = 2048;
/// An entry of the table: no node has this slot.
const NO_OWNER: u16 = u16::MAX;
const _: () = assert!(MOST_OWNERS < NO_OWNER as usize);

/// A master and its replicas.
#[derive(Clone)]
struct Owner {
    master: Arc<Node>,
    replicas: Vec<Arc<Node>>,
}

/// One server, or the nodes of a cluster and their slots.
#[derive(Clone)]
pub(super) struct Topology {
    owners: Vec<Owner>,
    /// The owner of every slot. Empty: the single server has all keys.
    table: Vec<u16>,
    /// Counts the reads of the map, so that tasks do not read a map again that is newer than theirs.
    pub(super) version: u64,
}

impl Topology {
    /// A server outside a cluster, and its replicas.
    pub(super) fn single(master: Arc<Node>, replicas: Vec<Arc<Node>>) -> Self {
        Self { owners: vec![Owner { master, replicas }], table: Vec::new(), version: 0 }
    }

    /// A cluster. `node` returns the node at an address, as a replica or as a master.
    pub(super) fn cluster(
        ranges: &[SlotRange],
        mut node: impl FnMut(&NodeAddress, bool) -> Result<Arc<Node>, RemoteError>,
    ) -> Result<Self, RemoteError> {
        let mut owners: Vec<Owner> = Vec::new();
        let mut known: HashMap<&NodeAddress, u16> = HashMap::new();
        let mut table = vec![NO_OWNER; usize::from(SLOTS)];
        for range in ranges {
            let number = match known.get(&range.master) {
                Some(&number) => number,
                None if owners.len() >= MOST_OWNERS => continue,
                None => {
                    let replicas = range.replicas.iter().map(|address| node(address, true));
                    let replicas = replicas.collect::<Result<_, _>>()?;
                    owners.push(Owner { master: node(&range.master, false)?, replicas });
                    let number = (owners.len() - 1) as u16;
                    known.insert(&range.master, number);
                    number
                }
            };
            table[usize::from(range.from)..=usize::from(range.to)].fill(number);
        }
        Ok(Self { owners, table, version: 0 })
    }

    /// This map, with the version after that of `known`.
    pub(super) fn after(self, known: &Self) -> Self {
        Self { version: known.version + 1, ..self }
    }

    pub(super) fn is_cluster(&self) -> bool {
        !self.table.is_empty()
    }

    /// The master of a slot; or one of its replicas, in turn, if the request allows that.
    pub(super) fn node(&self, slot: u16, access: Access, replicas_too: bool) -> Option<&Arc<Node>> {
        static TURN: AtomicUsize = AtomicUsize::new(0);
        let number = if self.is_cluster() { *self.table.get(usize::from(slot))? } else { 0 };
        let owner = self.owners.get(usize::from(number))?;
        if access == Access::Read && replicas_too && !owner.replicas.is_empty() {
            return owner.replicas.get(TURN.fetch_add(1, Ordering::Relaxed) % owner.replicas.len());
        }
        Some(&owner.master)
    }

    /// Records that a slot belongs to another node.
    pub(super) fn moved(&mut self, slot: u16, node: &Arc<Node>) {
        if !self.is_cluster() {
            return;
        }
        let known = self.owners.iter().position(|owner| owner.master.address() == node.address());
        let number = match known {
            Some(number) => number,
            None if self.owners.len() >= MOST_OWNERS => return,
            None => {
                self.owners.push(Owner { master: node.clone(), replicas: Vec::new() });
                self.owners.len() - 1
            }
        };
        if let Some(entry) = self.table.get_mut(usize::from(slot)) {
            *entry = number as u16;
        }
    }

    /// All known nodes, masters first.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        let replicas = self.owners.iter().flat_map(|owner| &owner.replicas);
        self.owners.iter().map(|owner| &owner.master).chain(replicas)
    }

    /// Every master.
    pub(super) fn masters(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.owners.iter().map(|owner| &owner.master)
    }
}
