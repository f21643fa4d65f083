//! A cluster: masters and their replicas.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use super::{Host, HostOptions, Talk, Wire};
use crate::real::PATIENCE;

/// The number of slots of a cluster.
const SLOTS: usize = 16_384;

/// Servers that share all names among them. They are stopped when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    /// The initial masters, then their replicas.
    pub nodes: Vec<Host>,
    masters: usize,
}

impl Cluster {
    /// Starts this many masters, each with this many replicas. Returns `None`, after a message, if the program is missing.
    ///
    /// # Panics
    /// If the cluster does not form.
    pub fn start(masters: usize, replicas_each: usize, options: &HostOptions) -> Option<Self> {
        let options = options.clone().words(&[
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            "2000",
            "--cluster-replica-validity-factor",
            "0",
            "--repl-diskless-sync-delay",
            "0",
            "--repl-ping-replica-period",
            "1",
        ]);
        let nodes: Option<Vec<Host>> =
            (0..masters * (1 + replicas_each)).map(|_| Host::start(&options)).collect();
        let cluster = Self { nodes: nodes?, masters };
        cluster.meet();
        cluster.share_slots();
        cluster.wait_until("all nodes know each other", |cluster| {
            cluster.nodes.iter().all(|node| nodes_of(&mut node.talk()).len() == cluster.nodes.len())
        });
        for (number, replica) in cluster.nodes.iter().enumerate().skip(masters) {
            let master = cluster.id(number % masters);
            replica.talk().must(&["CLUSTER", "REPLICATE", &master]);
        }
        cluster.wait_until("the cluster state is ok", |cluster| {
            cluster.nodes.iter().all(|node| {
                node.talk().ask("CLUSTER INFO").text().contains("cluster_state:ok")
                    && (node.talk().info("role") == "master"
                        || node.talk().info("master_link_status") == "up")
            }) && cluster.replicas_known() == cluster.nodes.len() - masters
        });
        Some(cluster)
    }

    fn meet(&self) {
        let mut first = self.nodes[0].talk();
        for node in &self.nodes[1..] {
            first.must(&["CLUSTER", "MEET", "127.0.0.1", &node.port().to_string()]);
        }
    }

    fn share_slots(&self) {
        for (number, node) in self.nodes[..self.masters].iter().enumerate() {
            let from = number * SLOTS / self.masters;
            let to = (number + 1) * SLOTS / self.masters - 1;
            node.talk().must(&["CLUSTER", "ADDSLOTSRANGE", &from.to_string(), &to.to_string()]);
        }
    }

    /// The number of replicas whose master every node knows.
    fn replicas_known(&self) -> usize {
        let known =
            |node: &Host| nodes_of(&mut node.talk()).values().filter(|known| known.is_replica).count();
        self.nodes.iter().map(known).min().unwrap_or(0)
    }

    /// Waits for a condition.
    ///
    /// # Panics
    /// If it is not met in time.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < PATIENCE, "not met after {PATIENCE:?}: {what}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The addresses of all nodes.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Host::url).collect()
    }

    /// The id of a node in the cluster.
    pub fn id(&self, node: usize) -> String {
        self.nodes[node].talk().ask("CLUSTER MYID").text()
    }

    /// The slot of a name.
    pub fn slot(&self, name: &str) -> u16 {
        let slot = self.nodes[0].talk().ask_words(&["CLUSTER", "KEYSLOT", name]).integer();
        u16::try_from(slot).unwrap()
    }

    /// Returns the running master of a slot, according to `asked`.
    ///
    /// # Panics
    /// If the slot has no master.
    #[track_caller]
    pub fn owner(&self, asked: usize, slot: u16) -> usize {
        let slots = self.nodes[asked].talk().ask("CLUSTER SLOTS");
        let port = slots.list().iter().find_map(|range| {
            let range = range.list();
            let has = (range[0].integer()..=range[1].integer()).contains(&slot.into());
            has.then(|| range[2].list()[1].integer())
        });
        let port = port.unwrap_or_else(|| panic!("slot {slot} has no master"));
        self.nodes.iter().position(|node| i64::from(node.port()) == port).unwrap()
    }

    /// Returns the replicas of a master, according to itself.
    pub fn replicas(&self, master: usize) -> Vec<usize> {
        let id = self.id(master);
        let known = nodes_of(&mut self.nodes[master].talk());
        let ports: Vec<u16> =
            known.values().filter(|known| known.master == id).map(|known| known.port).collect();
        (0..self.nodes.len()).filter(|&node| ports.contains(&self.nodes[node].port())).collect()
    }

    /// Begins to move a slot: from now on, names that are no longer at `from` are redirected to `to`.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        self.nodes[to].talk().must(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.id(from)]);
        self.nodes[from].talk().must(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.id(to)]);
    }

    /// Moves the existing names of a slot.
    pub fn move_names(&self, slot: u16, from: usize, to: usize) -> usize {
        let (mut talk, slot, to) =
            (self.nodes[from].talk(), slot.to_string(), self.nodes[to].port().to_string());
        let names = talk.must(&["CLUSTER", "GETKEYSINSLOT", &slot, "100000"]);
        for name in names.list() {
            talk.must(&[b"MIGRATE".as_slice(), b"127.0.0.1", to.as_bytes(), name.bytes(), b"0", b"60000"]);
        }
        names.list().len()
    }

    /// Ends the move of a slot: informs all nodes.
    pub fn end_move(&self, slot: u16, to: usize) {
        let (slot, id) = (slot.to_string(), self.id(to));
        // The new owner first; otherwise the slot has no owner for a moment.
        for node in std::iter::once(to).chain((0..self.masters).filter(|&node| node != to)) {
            if let Ok(mut talk) = Talk::connect(self.nodes[node].port()) {
                let told = talk.ask_words(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
                // A node that became a replica in the meantime rejects the command.
                assert!(!told.is_refused() || talk.info("role") == "slave", "{told:?}");
            }
        }
    }

    /// Moves a slot with all its names.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to);
        self.move_names(slot, from, to);
        self.end_move(slot, to);
    }
}

/// A node as another node sees it.
struct Known {
    port: u16,
    is_replica: bool,
    /// The id of its master, or `-`.
    master: String,
}

/// Returns all nodes that this server knows, by id.
fn nodes_of(talk: &mut Talk) -> BTreeMap<String, Known> {
    let Wire::Bulk(text) = talk.ask("CLUSTER NODES") else { return BTreeMap::new() };
    let text = String::from_utf8_lossy(&text).into_owned();
    let known = text.lines().filter(|line| !line.contains("handshake")).filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let port = words.get(1)?.split('@').next()?.rsplit(':').next()?.parse().ok()?;
        let is_replica = words.get(2)?.contains("slave");
        Some((words[0].to_owned(), Known { port, is_replica, master: (*words.get(3)?).to_owned() }))
    });
    known.collect()
}
