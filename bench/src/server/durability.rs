//! The cost of durability: CPU time with and without syncs, and the number of changes that share one sync.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use super::load::Sort;
use super::process::Process;
use super::{Args, Family, cpu, reserve};
use crate::samples::Samples;

/// Requests in one write.
const DEPTH: usize = 64;
/// Clients that wait for the disk at the same time.
const WAITING: usize = 50;
/// The number of pieces in which each client adds its items.
const ADDED: usize = 400;
/// Items in one piece.
const WAITING_DEPTHS: [usize; 2] = [1, 16];
/// How long the bare disk is measured.
const SYNCING: Duration = Duration::from_secs(3);

pub(super) fn measure(args: &Args) -> io::Result<()> {
    let policies = ["no", "everysec"];
    let mut servers = Vec::new();
    for policy in policies {
        let server = Process::mayhap(&args.mayhap, 1, policy)?;
        reserve(&server, Family::Bloom, "new", 100_000_000)?;
        servers.push(server);
    }
    let mut samples = [Samples::default(), Samples::default()];
    for round in 0..args.rounds {
        for (server, samples) in servers.iter().zip(&mut samples) {
            samples
                .record(cpu(server, Sort::Add, DEPTH, args.requests, args.connections, round as u64 + 1)?, 1);
        }
    }
    let [no, everysec] = samples.map(|samples| samples.median().unwrap_or(f64::NAN));
    println!(
        "BF.ADD, depth {DEPTH}: {no:.0} ns CPU with --fsync no, {everysec:.0} with everysec: {:.2} times as much",
        everysec / no
    );
    drop(servers);

    let [always, no] = ["always", "no"].map(|policy| Process::mayhap(&args.mayhap, 0, policy));
    let (always, no) = (always?, no?);
    for server in [&always, &no] {
        reserve(server, Family::Bloom, "new", 100_000_000)?;
    }
    let mut syncs = Samples::default();
    let mut adds = WAITING_DEPTHS.map(|_| [Samples::default(), Samples::default()]);
    for round in 0..args.rounds {
        syncs.record(syncs_a_second(always.folder())?, 1);
        for (&depth, samples) in WAITING_DEPTHS.iter().zip(&mut adds) {
            for (server, samples) in [&always, &no].into_iter().zip(samples) {
                let (begun, requests) = (Instant::now(), WAITING * ADDED * depth);
                cpu(server, Sort::Add, depth, requests, WAITING, (round * 100 + depth) as u64 + 1_000)?;
                samples.record(requests as f64 / begun.elapsed().as_secs_f64(), 1);
            }
        }
    }
    let syncs = syncs.median().unwrap_or(f64::NAN);
    println!("Bare disk: {syncs:.0} syncs per second");
    for (depth, samples) in WAITING_DEPTHS.iter().zip(adds) {
        let [always, no] = samples.map(|samples| samples.median().unwrap_or(f64::NAN));
        println!(
            "BF.ADD, {WAITING} clients, depth {depth}: {always:.0} per second with --fsync always ({:.1} per sync of the bare disk), {no:.0} with no ({:.1})",
            always / syncs,
            no / syncs
        );
    }
    Ok(())
}

/// Returns how many times per second a few bytes can be appended to a file and synced.
fn syncs_a_second(folder: &Path) -> io::Result<f64> {
    let path = folder.join("bare");
    let mut file = File::create(&path)?;
    let (begun, mut syncs) = (Instant::now(), 0);
    while begun.elapsed() < SYNCING {
        file.write_all(&[7; 64])?;
        file.sync_data()?;
        syncs += 1;
    }
    std::fs::remove_file(path)?;
    Ok(f64::from(syncs) / begun.elapsed().as_secs_f64())
}
