//! Our server beside Debian's Redis: CPU nanoseconds of the server's process per request and per item, in one run.
//!
//! ```text
//! load (so many requests in one write) ─▶ server process ─▶ its CPU time before and after ─▶ ns per request
//! ```
//!
//! Servers take turns, round by round; the table has the medians. What Redis does for one bit (`GETBIT`, `SETBIT`) is set beside
//! what we do for one item, for a Bloom filter kept on a plain Redis takes that once per probe.

mod durability;
mod load;
mod process;

use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Parser;

use self::load::{Requests, Sort, exchange, item, read_lines, read_some};
use self::process::Process;
use crate::samples::Samples;

/// What to measure.
#[derive(Parser)]
pub(crate) struct Args {
    /// The program `mayhap`, built with --release.
    #[arg(long, default_value = "target/release/mayhap")]
    mayhap: PathBuf,
    /// Debian's redis-server.
    #[arg(long, default_value = "redis-server")]
    redis: PathBuf,
    /// Items of the filter that is asked, in thousands.
    #[arg(long, default_value_t = 1_000)]
    thousand_items: u64,
    /// Rounds of every measurement.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Requests of one measurement.
    #[arg(long, default_value_t = 200_000)]
    requests: usize,
    /// Connections, each with its own pipeline.
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// Requests in one write; as often as wanted.
    #[arg(long = "depth", default_values_t = [1, 16, 64])]
    depths: Vec<usize>,
    /// Also lets redis-benchmark drive both servers (50 connections, depth 16).
    #[arg(long)]
    redis_benchmark: bool,
    /// Measures only what it costs that every change is kept.
    #[arg(long)]
    durability: bool,
}

/// What the program does unless it is told otherwise.
const FSYNC: &str = "everysec";
/// Items of a command of many.
const MANY: usize = 100;
/// Items of a command while a filter is filled.
const BULK: usize = 1_000;
/// Bits of Redis's string per item of the filter: what a filter at 1 % takes.
const BITS_PER_ITEM: u64 = 10;

pub(crate) fn run(args: &Args) -> ExitCode {
    let measured = if args.durability { durability::measure(args) } else { measure(args) };
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mayhap-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args) -> io::Result<()> {
    let items = args.thousand_items * 1_000;
    let bits = items * BITS_PER_ITEM;
    let ours = Process::mayhap(&args.mayhap, 1, FSYNC)?;
    let redis = Process::redis(&args.redis)?;
    let before = ours.resident_bytes()?;
    let (ours_fill, seconds) = fill(&ours, "seen", items)?;
    println!(
        "{items} items by BF.MADD x{BULK}: {:.2} million items a second, {:.0} ns CPU an item, {:.1} bits of memory an item",
        items as f64 / seconds / 1e6,
        ours_fill / items as f64,
        (ours.resident_bytes()? - before) as f64 * 8.0 / items as f64,
    );
    let mut room = Room::new(&ours, items)?;
    for server in [&ours, &redis] {
        command(server, &format!("SETBIT bits {} 1", bits - 1))?;
    }
    println!(
        "\n{:<18}{:>6}{:>16}{:>13}{:>16}{:>12}",
        "command", "depth", "ns/request", "ns/item", "Redis GETBIT", "ratio"
    );
    let sorts = [Sort::Ping, Sort::GetBit(bits), Sort::SetBit(bits), Sort::Exists(items), Sort::Add];
    let many = [Sort::ManyExist(MANY, items), Sort::ManyAdd(MANY)];
    for &depth in &args.depths {
        let mut theirs: Vec<Samples> = vec![Samples::default(); 3];
        let mut mine: Vec<Samples> = vec![Samples::default(); sorts.len() + many.len()];
        for round in 0..args.rounds {
            for (index, &sort) in sorts.iter().chain(&many).enumerate() {
                let requests = args.requests / sort.items() / if depth == 1 { 10 } else { 1 };
                let seed = (round * 100 + index + depth * 10_000) as u64;
                room.make(sort, requests + args.connections * depth)?;
                mine[index].record(cpu(&ours, sort, depth, requests, args.connections, seed)?, 1);
                if index < theirs.len() {
                    theirs[index].record(cpu(&redis, sort, depth, requests, args.connections, seed)?, 1);
                }
            }
        }
        let middle = |samples: &Samples| samples.median().unwrap_or(f64::NAN);
        let getbit = middle(&theirs[1]);
        for (sort, samples) in sorts.iter().zip(&theirs) {
            let ns = middle(samples);
            println!(
                "{:<18}{depth:>6}{ns:>16.0}{ns:>13.0}{:>16}{:>12}",
                format!("Redis {}", sort.name()),
                "",
                ""
            );
        }
        for (sort, samples) in sorts.iter().chain(&many).zip(&mine) {
            let (ns, per_item) = (middle(samples), middle(samples) / sort.items() as f64);
            println!(
                "{:<18}{depth:>6}{ns:>16.0}{per_item:>13.0}{getbit:>16.0}{:>12.2}",
                sort.name(),
                per_item / getbit
            );
        }
    }
    scaling(args, items)?;
    if args.redis_benchmark {
        redis_benchmark(&ours, &redis, bits)?;
    }
    Ok(())
}

/// Makes a filter and fills it; the CPU nanoseconds of the server and the seconds it took.
fn fill(server: &Process, name: &str, items: u64) -> io::Result<(f64, f64)> {
    reserve(server, name, items)?;
    let (begun, before) = (Instant::now(), server.cpu_ns()?);
    let mut stream = server.connect()?;
    let mut sent = Vec::new();
    let mut waiting = 0;
    for first in (0..items).step_by(BULK) {
        let some = BULK.min((items - first) as usize);
        sent.clear();
        sent.extend_from_slice(
            format!("*{}\r\n$7\r\nBF.MADD\r\n${}\r\n{name}\r\n", some + 2, name.len()).as_bytes(),
        );
        (first..first + some as u64).for_each(|number| item(number, &mut sent));
        io::Write::write_all(&mut stream, &sent)?;
        waiting += some + 1;
        // Four commands are on their way at any time.
        while waiting > 3 * (BULK + 1) {
            waiting = waiting.saturating_sub(read_some(&mut stream)?);
        }
    }
    read_lines(&mut stream, waiting)?;
    Ok(((server.cpu_ns()? - before) as f64, begun.elapsed().as_secs_f64()))
}

fn reserve(server: &Process, name: &str, items: u64) -> io::Result<()> {
    command(server, &format!("BF.RESERVE {name} 0.01 {items}"))
}

/// One command of one line, answered by one line.
fn command(server: &Process, line: &str) -> io::Result<()> {
    let mut stream = server.connect()?;
    io::Write::write_all(&mut stream, format!("{line}\r\n").as_bytes())?;
    read_lines(&mut stream, 1)
}

/// The filter `new` that items are added to: as large as the one that is asked, and never more than full.
struct Room<'a> {
    server: &'a Process,
    capacity: u64,
    left: u64,
}

impl<'a> Room<'a> {
    fn new(server: &'a Process, capacity: u64) -> io::Result<Self> {
        reserve(server, "new", capacity)?;
        Ok(Self { server, capacity, left: capacity })
    }

    /// Begins with an empty one if so many requests of this sort would overfill it.
    fn make(&mut self, sort: Sort, requests: usize) -> io::Result<()> {
        let items = (requests * sort.items()) as u64;
        if !matches!(sort, Sort::Add | Sort::ManyAdd(_)) {
            return Ok(());
        }
        if self.left < items {
            command(self.server, "DEL new")?;
            reserve(self.server, "new", self.capacity)?;
            self.left = self.capacity;
        }
        self.left = self.left.saturating_sub(items);
        Ok(())
    }
}

/// CPU nanoseconds of the server per request.
fn cpu(
    server: &Process,
    sort: Sort,
    depth: usize,
    requests: usize,
    connections: usize,
    seed: u64,
) -> io::Result<f64> {
    let each = requests.div_ceil(connections).next_multiple_of(depth);
    let before = server.cpu_ns()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections as u64)
            .map(|connection| scope.spawn(move || drive(server, sort, depth, each, seed * 64 + connection)))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a load thread panicked")))
        })
    })?;
    Ok((server.cpu_ns()? - before) as f64 / (each * connections) as f64)
}

fn drive(server: &Process, sort: Sort, depth: usize, requests: usize, seed: u64) -> io::Result<()> {
    let mut stream = server.connect()?;
    let (mut stream_of, mut sent) = (Requests::new(seed), Vec::new());
    for _ in 0..requests / depth {
        sent.clear();
        (0..depth).for_each(|_| stream_of.write(sort, &mut sent));
        exchange(&mut stream, &sent, sort, depth)?;
    }
    Ok(())
}

/// What a second thread brings: requests that both threads together answer in a second of their CPU time each.
fn scaling(args: &Args, items: u64) -> io::Result<()> {
    println!();
    let servers = [Process::mayhap(&args.mayhap, 1, FSYNC)?, Process::mayhap(&args.mayhap, 2, FSYNC)?];
    for server in &servers {
        fill(server, "seen", items.min(1_000_000))?;
        reserve(server, "new", 100_000_000)?;
    }
    for sort in [Sort::Exists(items.min(1_000_000)), Sort::Add] {
        let mut samples = [Samples::default(), Samples::default()];
        for round in 0..args.rounds {
            for (server, samples) in servers.iter().zip(&mut samples) {
                samples
                    .record(cpu(server, sort, 64, args.requests, args.connections, 7_000 + round as u64)?, 1);
            }
        }
        let [one, two] = samples.map(|samples| samples.median().unwrap_or(f64::NAN));
        println!(
            "{} depth 64: one thread {one:.0} ns CPU a request, two threads {two:.0}: two cores do {:.2} times what one does",
            sort.name(),
            2.0 * one / two
        );
    }
    Ok(())
}

/// The same question put by Redis's own tool.
fn redis_benchmark(ours: &Process, redis: &Process, bits: u64) -> io::Result<()> {
    const REQUESTS: usize = 500_000;
    println!(
        "\nredis-benchmark, 50 connections, depth 16: server CPU ns per request (GETBIT of always the same bit)"
    );
    let range = bits.to_string();
    for (name, server, words) in [
        // Its random numbers begin with zeros, which Redis does not take for the offset of a bit.
        ("Redis GETBIT", redis, ["GETBIT", "bits", "12345"]),
        ("BF.EXISTS", ours, ["BF.EXISTS", "seen", "__rand_int__"]),
        ("BF.ADD", ours, ["BF.ADD", "new", "__rand_int__"]),
    ] {
        let before = server.cpu_ns()?;
        let status = Command::new("redis-benchmark")
            .args(["-p", &server.port().to_string(), "-P", "16", "-c", "50", "-q", "-r", &range])
            .args(["-n", &REQUESTS.to_string()])
            .args(words)
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(io::Error::other(format!("redis-benchmark ended with {status}")));
        }
        println!("{name:<18}{:>10.0}", (server.cpu_ns()? - before) as f64 / REQUESTS as f64);
    }
    Ok(())
}
