//! In clusters: names move, or masters die, while clients write to them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mayhap_testkit::host::{Cluster, Host, HostOptions, Talk, Wire, programs};

use crate::{digests, host};

fn cluster() -> Option<Cluster> {
    Cluster::start(3, 1, &HostOptions::new().our_module(&[]))
}

/// A client that follows redirections.
struct Client {
    ports: Vec<u16>,
    at: u16,
    open: BTreeMap<u16, Talk>,
}

impl Client {
    fn new(cluster: &Cluster) -> Self {
        let ports: Vec<u16> = cluster.nodes.iter().map(Host::port).collect();
        Self { at: ports[0], ports, open: BTreeMap::new() }
    }

    fn talk(&mut self, port: u16) -> io::Result<&mut Talk> {
        Ok(match self.open.entry(port) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(none) => none.insert(Talk::connect(port)?),
        })
    }

    fn port_in(text: &str) -> u16 {
        text.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    }

    /// Returns the reply, from whichever node gives it. Repeats the request while no node does.
    fn ask(&mut self, words: &[String]) -> Wire {
        let begun = Instant::now();
        let mut next = 0;
        loop {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody answers {words:?}");
            let at = self.at;
            match self.talk(at).and_then(|talk| talk.try_ask(words)) {
                Ok(Wire::Refused(text)) if text.starts_with("MOVED") => self.at = Self::port_in(&text),
                Ok(Wire::Refused(text)) if text.starts_with("ASK") => {
                    let there = Self::port_in(&text);
                    let asked = self.talk(there).and_then(|talk| {
                        talk.try_ask(&["ASKING"])?;
                        talk.try_ask(words)
                    });
                    match asked {
                        Ok(Wire::Refused(text)) if text.starts_with("TRYAGAIN") => {}
                        Ok(reply) => return reply,
                        Err(_) => drop(self.open.remove(&there)),
                    }
                }
                Ok(Wire::Refused(text))
                    if ["CLUSTERDOWN", "TRYAGAIN", "LOADING", "READONLY"]
                        .iter()
                        .any(|word| text.starts_with(word)) =>
                {
                    thread::sleep(Duration::from_millis(20));
                }
                Ok(reply) => return reply,
                Err(_) => {
                    self.open.remove(&at);
                    self.at = self.ports[next % self.ports.len()];
                    next += 1;
                    thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    fn line(&mut self, line: &str) -> Wire {
        self.ask(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    /// Returns how many replicas have everything that this client wrote to the node of its last write.
    fn replicas_that_have_it(&mut self) -> i64 {
        let at = self.at;
        match self.talk(at).and_then(|talk| talk.try_ask(&["WAIT", "1", "1000"])) {
            Ok(Wire::Integer(replicas)) => replicas,
            _ => 0,
        }
    }
}

/// One filter of each family, and the commands that add to it and look it up.
const FILTERS: [(&str, &str, &str, &str); 3] = [
    ("BF.RESERVE {t}b 0.001 1000", "BF.ADD", "BF.EXISTS", "{t}b"),
    ("CF.RESERVE {t}c 100000", "CF.ADD", "CF.EXISTS", "{t}c"),
    ("MF.RESERVE {t}m KIND scalable CAPACITY 1000", "MF.ADD", "MF.EXISTS", "{t}m"),
];

fn all_are_there(client: &mut Client, added: &[(usize, u64)]) {
    for &(filter, item) in added {
        let (_, _, exists, name) = FILTERS[filter];
        let held = client.line(&format!("{exists} {name} item{item}"));
        assert_eq!(held, Wire::Integer(1), "{name} has lost item {item}");
    }
}

/// Adds items to all filters until it is told to stop, and returns those that were acknowledged.
fn write(client: &mut Client, stop: &AtomicBool, waits: bool) -> Vec<(usize, u64)> {
    let mut added = Vec::new();
    for item in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut batch = Vec::new();
        let from = client.at;
        for (filter, (_, add, _, name)) in FILTERS.iter().enumerate() {
            if client.line(&format!("{add} {name} item{item}")) == Wire::Integer(1) {
                batch.push((filter, item));
            }
        }
        // After a redirection, `WAIT` asks a node other than the one that was written to: it proves nothing
        // about this write.
        if !waits || (client.at == from && client.replicas_that_have_it() >= 1) {
            added.extend(batch);
        }
    }
    added
}

#[test]
fn no_item_is_lost_while_a_slot_migrates() {
    let Some(cluster) = cluster() else { return };
    let mut client = Client::new(&cluster);
    for (make, ..) in FILTERS {
        assert_eq!(client.line(make), Wire::Simple("OK".into()));
    }
    let slot = cluster.slot("{t}");
    let stop = AtomicBool::new(false);
    let added = thread::scope(|scope| {
        let writer = scope.spawn(|| write(&mut Client::new(&cluster), &stop, false));
        for _ in 0..4 {
            let from = cluster.owner(0, slot);
            let to = (from + 1) % 3;
            cluster.begin_move(slot, from, to);
            // For a while some names are on one node and some on the other.
            let mut talk = cluster.nodes[from].talk();
            let names = talk.must(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), "10"]);
            for name in names.list() {
                let port = cluster.nodes[to].port().to_string();
                talk.must(&[
                    b"MIGRATE".as_slice(),
                    b"127.0.0.1",
                    port.as_bytes(),
                    name.bytes(),
                    b"0",
                    b"10000",
                ]);
                thread::sleep(Duration::from_millis(60));
            }
            cluster.end_move(slot, to);
            thread::sleep(Duration::from_millis(60));
            cluster.wait_until("all know who has it", |cluster| {
                (0..3).all(|node| cluster.owner(node, slot) == to)
            });
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(added.len() > 300, "{}", added.len());
    all_are_there(&mut client, &added);
    println!("{} items added while the slot moved four times", added.len());
}

/// Valkey 9 moves a slot as a whole if every module declares that it supports this.
#[test]
fn no_item_is_lost_during_an_atomic_slot_migration() {
    for program in programs() {
        let is_late = |host: &Host| host.talk().ask("INFO server").text().contains("valkey_version:9");
        if !Host::start(&HostOptions::new().program(&program)).is_some_and(|host| is_late(&host)) {
            continue;
        }
        let options = HostOptions::new().our_module(&[]).program(&program);
        let Some(cluster) = Cluster::start(2, 0, &options) else { return };
        let mut client = Client::new(&cluster);
        for (make, ..) in FILTERS {
            assert_eq!(client.line(make), Wire::Simple("OK".into()));
        }
        let (slot, stop) = (cluster.slot("{t}"), AtomicBool::new(false));
        let added = thread::scope(|scope| {
            let writer = scope.spawn(|| write(&mut Client::new(&cluster), &stop, false));
            for _ in 0..4 {
                thread::sleep(Duration::from_millis(200));
                let from = cluster.owner(0, slot);
                let (to, words) = (1 - from, slot.to_string());
                let words =
                    ["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", &words, &words, "NODE", &cluster.id(to)];
                cluster.nodes[from].talk().must(&words);
                cluster.wait_until("all know who has it", |cluster| {
                    (0..2).all(|node| cluster.owner(node, slot) == to)
                });
            }
            stop.store(true, Ordering::Relaxed);
            writer.join().unwrap()
        });
        assert!(added.len() > 300, "{}", added.len());
        all_are_there(&mut client, &added);
        println!("{} items added while the slot moved four times as a whole", added.len());
    }
}

#[test]
fn acknowledged_items_survive_a_failover() {
    let Some(mut cluster) = cluster() else { return };
    let mut client = Client::new(&cluster);
    for (make, ..) in FILTERS {
        assert_eq!(client.line(make), Wire::Simple("OK".into()));
    }
    let slot = cluster.slot("{t}");
    let master = cluster.owner(0, slot);
    let replica = cluster.replicas(master)[0];
    let stop = AtomicBool::new(false);
    let mut writing = Client::new(&cluster);
    let added = thread::scope(|scope| {
        let (writing, stop) = (&mut writing, &stop);
        let writer = scope.spawn(move || write(writing, stop, true));
        thread::sleep(Duration::from_millis(700));
        cluster.nodes[master].kill();
        let other = (0..3).find(|&node| node != master).unwrap();
        cluster.wait_until("the replica took over", |cluster| cluster.owner(other, slot) == replica);
        // The client goes on writing for a while.
        thread::sleep(Duration::from_millis(500));
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(added.len() > 100, "{}", added.len());
    let mut client = Client::new(&cluster);
    all_are_there(&mut client, &added);
    println!(
        "{} items acknowledged by a master and its replica, all there after the master died",
        added.len()
    );
}

#[test]
fn values_migrate_between_hosts() {
    let (Some(here), Some(there)) = (host(&[]), host(&[])) else { return };
    let mut talk = here.talk();
    talk.ask_all(crate::workload::Workload::new(51, false).take(2_000));
    let before = digests(&mut talk);
    assert!(before.len() >= 6);
    for (name, _) in &before {
        let port = there.port().to_string();
        talk.must(&["MIGRATE", "127.0.0.1", &port, name, "0", "10000"]);
    }
    assert_eq!(digests(&mut there.talk()), before);
    assert_eq!(talk.ask("DBSIZE").integer(), 0);
}
