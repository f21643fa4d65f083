//! Who has which slot, as far as is known.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::node::Node;
use super::slots::{Place, SLOTS, SlotRange};
use crate::{Access, RemoteError};

/// No cluster has more masters than this.
const MOST_OWNERS: usize = 2048;
/// In the table: nobody has this slot.
const NOBODY: u16 = u16::MAX;
const _: () = assert!(MOST_OWNERS < NOBODY as usize);

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
    /// For every slot its owner. Empty: the one server has everything.
    table: Vec<u16>,
    /// Counts what was learned, so that nobody asks for what is known already.
    pub(super) version: u64,
}

impl Topology {
    /// One server in no cluster, and replicas that follow it.
    pub(super) fn single(master: Arc<Node>, replicas: Vec<Arc<Node>>) -> Self {
        Self { owners: vec![Owner { master, replicas }], table: Vec::new(), version: 0 }
    }

    /// A cluster; `node` gives the node of a place, as a replica or as a master.
    pub(super) fn cluster(
        ranges: &[SlotRange],
        mut node: impl FnMut(&Place, bool) -> Result<Arc<Node>, RemoteError>,
    ) -> Result<Self, RemoteError> {
        let mut owners: Vec<Owner> = Vec::new();
        let mut known: HashMap<&Place, u16> = HashMap::new();
        let mut table = vec![NOBODY; usize::from(SLOTS)];
        for range in ranges {
            let number = match known.get(&range.master) {
                Some(&number) => number,
                None if owners.len() >= MOST_OWNERS => continue,
                None => {
                    let replicas = range.replicas.iter().map(|place| node(place, true));
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

    /// This, learned after `known`.
    pub(super) fn after(self, known: &Self) -> Self {
        Self { version: known.version + 1, ..self }
    }

    pub(super) fn is_cluster(&self) -> bool {
        !self.table.is_empty()
    }

    /// The master of a slot, or one of its replicas in turn if that will do.
    pub(super) fn node(&self, slot: u16, access: Access, replicas_too: bool) -> Option<&Arc<Node>> {
        static TURN: AtomicUsize = AtomicUsize::new(0);
        let number = if self.is_cluster() { *self.table.get(usize::from(slot))? } else { 0 };
        let owner = self.owners.get(usize::from(number))?;
        if access == Access::Read && replicas_too && !owner.replicas.is_empty() {
            return owner.replicas.get(TURN.fetch_add(1, Ordering::Relaxed) % owner.replicas.len());
        }
        Some(&owner.master)
    }

    /// A slot is somebody else's.
    pub(super) fn moved(&mut self, slot: u16, node: &Arc<Node>) {
        if !self.is_cluster() {
            return;
        }
        let known = self.owners.iter().position(|owner| owner.master.place() == node.place());
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

    /// Every node that is known: masters first.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        let replicas = self.owners.iter().flat_map(|owner| &owner.replicas);
        self.owners.iter().map(|owner| &owner.master).chain(replicas)
    }

    /// Every master.
    pub(super) fn masters(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.owners.iter().map(|owner| &owner.master)
    }
}
