//! Compares our server with Debian's Redis in one run: CPU nanoseconds of the server process per request and per item.
//!
//! ```text
//! load (N requests in one write) ─▶ server process ─▶ its CPU time before and after ─▶ ns per request
//! ```
//!
//! Servers take turns, round by round; the table shows the medians. One bit in Redis (`GETBIT`, `SETBIT`) is compared with one item in our server:
//! a Bloom filter on a plain Redis needs one such command per probe. With `--module` the module is measured, and compared with the commands of the
//! server it is loaded into.

mod durability;
mod load;
mod module;
mod process;

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Parser;

use self::load::{Requests, Sort, exchange, item, read_lines, read_some};
use self::process::Process;
use crate::samples::Samples;

/// Settings of the measurement.
#[derive(Parser)]
pub(crate) struct Args {
    /// The program `mayhap`, built with --release.
    #[arg(long, default_value = "target/release/mayhap")]
    mayhap: PathBuf,
    /// Debian's redis-server.
    #[arg(long, default_value = "redis-server")]
    redis: PathBuf,
    /// Items in the queried filter, in thousands.
    #[arg(long, default_value_t = 1_000)]
    thousand_items: u64,
    /// Rounds of every measurement.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Requests per measurement.
    #[arg(long, default_value_t = 200_000)]
    requests: usize,
    /// Connections, each with its own pipeline.
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// Requests in one write; may be given several times.
    #[arg(long = "depth", default_values_t = [1, 16, 64])]
    depths: Vec<usize>,
    /// Also measure both servers with redis-benchmark (50 connections, depth 16).
    #[arg(long)]
    redis_benchmark: bool,
    /// Measure only the cost of durability: every change is logged, with and without syncs.
    #[arg(long)]
    durability: bool,
    /// Measure only this module, inside the server given by --redis, always with 50 connections.
    #[arg(long, value_name = "PATH", conflicts_with = "durability")]
    module: Option<PathBuf>,
    /// Another module with the same commands, measured in the same rounds inside a second server.
    #[arg(long, value_name = "PATH", requires = "module")]
    rival_module: Option<PathBuf>,
    /// Keep the rows of --module in bench/record/.
    #[arg(long, requires = "module")]
    record: bool,
}

/// The defaults.
const FSYNC: &str = "everysec";
/// Items per multi-item command.
const MANY: usize = 100;
/// Items per command while a filter is filled.
const BULK: usize = 1_000;
/// Bits of the Redis string per item of the filter: the size of a filter at 1 %.
const BITS_PER_ITEM: u64 = 10;

pub(crate) fn run(args: &Args) -> ExitCode {
    let measured = match &args.module {
        Some(module) => module::measure(args, module),
        None if args.durability => durability::measure(args),
        None => measure(args),
    };
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
    let (ours_fill, seconds) = fill(&ours, Family::Bloom, "seen", items)?;
    println!(
        "{items} items by BF.MADD x{BULK}: {:.2} million items per second, {:.0} ns CPU per item, {:.1} bits of memory per item",
        items as f64 / seconds / 1e6,
        ours_fill / items as f64,
        (ours.resident_bytes()? - before) as f64 * 8.0 / items as f64,
    );
    let mut room = Room::new(&ours, Family::Bloom, items)?;
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
                room.make(&ours, sort, requests + args.connections * depth)?;
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

/// The commands that create and fill a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Family {
    Bloom,
    Cuckoo,
}

impl Family {
    fn reserve(self, name: &str, items: u64) -> String {
        match self {
            Self::Bloom => format!("BF.RESERVE {name} 0.01 {items}"),
            Self::Cuckoo => format!("CF.RESERVE {name} {items}"),
        }
    }

    /// The request up to its items, for this number of items.
    fn bulk(self, name: &str, items: usize) -> String {
        let length = name.len();
        match self {
            Self::Bloom => format!("*{}\r\n$7\r\nBF.MADD\r\n${length}\r\n{name}\r\n", items + 2),
            Self::Cuckoo => {
                format!("*{}\r\n$9\r\nCF.INSERT\r\n${length}\r\n{name}\r\n$5\r\nITEMS\r\n", items + 3)
            }
        }
    }

    /// Returns whether this sort of requests adds items to filters of the family.
    const fn grows_by(self, sort: Sort) -> bool {
        match self {
            Self::Bloom => matches!(sort, Sort::Add | Sort::ManyAdd(_)),
            Self::Cuckoo => matches!(sort, Sort::CuckooAdd),
        }
    }
}

/// Creates a filter and fills it. Returns the CPU nanoseconds of the server and the elapsed seconds.
fn fill(server: &Process, family: Family, name: &str, items: u64) -> io::Result<(f64, f64)> {
    reserve(server, family, name, items)?;
    let (begun, before) = (Instant::now(), server.cpu_ns()?);
    add(server, family, name, 0..items)?;
    Ok(((server.cpu_ns()? - before) as f64, begun.elapsed().as_secs_f64()))
}

/// Adds the items with these numbers as fast as possible.
fn add(server: &Process, family: Family, name: &str, numbers: Range<u64>) -> io::Result<()> {
    let mut stream = server.connect()?;
    let mut sent = Vec::new();
    let mut waiting = 0;
    for first in numbers.clone().step_by(BULK) {
        let some = BULK.min((numbers.end - first) as usize);
        sent.clear();
        sent.extend_from_slice(family.bulk(name, some).as_bytes());
        (first..first + some as u64).for_each(|number| item(number, &mut sent));
        io::Write::write_all(&mut stream, &sent)?;
        waiting += some + 1;
        // Four commands are in flight at any time.
        while waiting > 3 * (BULK + 1) {
            waiting = waiting.saturating_sub(read_some(&mut stream)?);
        }
    }
    read_lines(&mut stream, waiting)
}

fn reserve(server: &Process, family: Family, name: &str, items: u64) -> io::Result<()> {
    command(server, &family.reserve(name, items))
}

/// Sends a one-line command and reads a one-line reply.
fn command(server: &Process, line: &str) -> io::Result<()> {
    let mut stream = server.connect()?;
    io::Write::write_all(&mut stream, format!("{line}\r\n").as_bytes())?;
    read_lines(&mut stream, 1)
}

/// A filter that items are added to: as large as the queried filter, and never overfull. Names are `new` and `new.cf`.
struct Room {
    family: Family,
    capacity: u64,
    left: u64,
}

impl Room {
    /// The number of items that a large filter gets first, so that all its memory is mapped before the measurement.
    const TOUCHES: Range<u64> = (1 << 61)..(1 << 61) + 1_000_000;
    /// The capacity from which filters are prefilled.
    const LARGE: u64 = 10_000_000;

    fn new(server: &Process, family: Family, capacity: u64) -> io::Result<Self> {
        let mut room = Self { family, capacity, left: 0 };
        room.begin(server)?;
        Ok(room)
    }

    const fn name(&self) -> &'static str {
        match self.family {
            Family::Bloom => "new",
            Family::Cuckoo => "new.cf",
        }
    }

    fn begin(&mut self, server: &Process) -> io::Result<()> {
        reserve(server, self.family, self.name(), self.capacity)?;
        // Past half of its capacity, a cuckoo filter of two slots per bucket grows, which changes what is measured.
        self.left = if self.family == Family::Cuckoo { self.capacity / 2 } else { self.capacity };
        if self.capacity >= Self::LARGE {
            add(server, self.family, self.name(), Self::TOUCHES)?;
            self.left -= Self::TOUCHES.end - Self::TOUCHES.start;
        }
        Ok(())
    }

    /// Starts with an empty filter if this number of requests would overfill the current one.
    fn make(&mut self, server: &Process, sort: Sort, requests: usize) -> io::Result<()> {
        if !self.family.grows_by(sort) {
            return Ok(());
        }
        let items = (requests * sort.items()) as u64;
        if self.left < items {
            command(server, &format!("DEL {}", self.name()))?;
            self.begin(server)?;
        }
        self.left = self.left.saturating_sub(items);
        Ok(())
    }
}

/// Returns the CPU nanoseconds of the server per request.
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

/// Measures the gain of a second thread: requests that both threads together answer in a second of CPU time each.
fn scaling(args: &Args, items: u64) -> io::Result<()> {
    println!();
    let servers = [Process::mayhap(&args.mayhap, 1, FSYNC)?, Process::mayhap(&args.mayhap, 2, FSYNC)?];
    for server in &servers {
        fill(server, Family::Bloom, "seen", items.min(1_000_000))?;
        reserve(server, Family::Bloom, "new", 100_000_000)?;
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
            "{} depth 64: one thread {one:.0} ns CPU per request, two threads {two:.0}: two cores do {:.2} times the work of one",
            sort.name(),
            2.0 * one / two
        );
    }
    Ok(())
}

/// Measures the same requests with Redis's own tool.
fn redis_benchmark(ours: &Process, redis: &Process, bits: u64) -> io::Result<()> {
    const REQUESTS: usize = 500_000;
    println!(
        "\nredis-benchmark, 50 connections, depth 16: server CPU ns per request (GETBIT always reads the same bit)"
    );
    let range = bits.to_string();
    for (name, server, words) in [
        // Its random numbers begin with zeros, which Redis does not accept as a bit offset.
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
