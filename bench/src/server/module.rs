//! The module inside a host: CPU nanoseconds of the host process per item, compared with `GETBIT` and `PING` of the same host.
//!
//! ```text
//! 50 connections, N requests in one write each ─▶ host with module ─▶ CPU time; time inside commands as counted by the host
//! ```
//!
//! Rounds are interleaved, and so are the hosts if there is a rival; a ratio is the median of the ratios of the rounds. The table also shows
//! figures of RedisBloom that were measured elsewhere, in the same way, as ratios to the `GETBIT` of that machine.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use serde::Serialize;

use super::load::{Requests, Sort, read_lines};
use super::process::Process;
use super::{Args, Family, MANY, Room, command, fill};
use crate::record;
use crate::samples::Samples;

/// Connections, each with its own pipeline.
const CONNECTIONS: u64 = 50;
/// Bits of the string that `GETBIT` reads: larger than all caches, whatever the size of the filters.
const BITS: u64 = 1_000_000_000;
/// The `GETBIT` used as the unit reads the same bit again and again, like the one of the figures from elsewhere.
const ONE_BIT: u64 = 1;
/// Requests of depth 1 cost ten times as much, so fewer are sent.
const DEPTH_1_SHARE: usize = 10;

/// One line of the table, and of the record.
#[derive(Debug, Serialize)]
struct Row {
    module: &'static str,
    host: String,
    command: String,
    depth: usize,
    items: u64,
    /// CPU time of the host process per item: the median round and the tenth percentile.
    cpu_ns: f64,
    cpu_ns_p10: f64,
    /// Time inside the command, per item.
    inside_ns: f64,
    /// The ratio to the host's own `GETBIT`.
    of_getbit: f64,
    /// The ratio of RedisBloom, measured elsewhere.
    redisbloom_of_getbit: Option<f64>,
    /// The goal: at most this share of RedisBloom's ratio.
    bar: Option<f64>,
}

/// The load of the machine from other processes, as reported by the kernel: how far the figures can be trusted.
#[derive(Debug, Serialize)]
struct Load {
    load_before: String,
    load_after: String,
}

pub(super) fn measure(args: &Args, module: &Path) -> io::Result<()> {
    let items = args.thousand_items * 1_000;
    let mut hosts = vec![Host::start("mayhap", &args.redis, module, items)?];
    if let Some(rival) = &args.rival_module {
        hosts.push(Host::start("rival", &args.redis, rival, items)?);
    }
    let load_before = machine_load();
    let mut rows = Vec::new();
    for &depth in &args.depths {
        let sorts = sorts(items);
        let mut seen: Vec<Vec<Seen>> = hosts.iter().map(|_| vec![Seen::default(); sorts.len()]).collect();
        for round in 0..args.rounds {
            for place in 0..hosts.len() {
                // The order is reversed in every other round.
                let place = if round % 2 == 0 { place } else { hosts.len() - 1 - place };
                hosts[place].round(&sorts, depth, args.requests, &mut seen[place])?;
            }
        }
        heading(depth);
        for (host, seen) in hosts.iter().zip(&seen) {
            let made: Vec<Row> =
                sorts.iter().zip(seen).map(|(&sort, seen)| host.row(sort, depth, items, seen)).collect();
            made.iter().for_each(print);
            rows.extend(made);
        }
    }
    let load = Load { load_before, load_after: machine_load() };
    println!("\nload of the machine: {} before, {} after", load.load_before, load.load_after);
    if args.record {
        let date = record::today();
        let lines = rows.iter().map(record::line).chain([record::line(&load)]);
        let kept = record::append(&format!("module-{items}-{date}.jsonl"), lines, &date)?;
        println!("kept in {}", kept.display());
    }
    Ok(())
}

/// The sorts of requests to measure. The host's own come first; the others are compared with the second.
const fn sorts(items: u64) -> [Sort; 9] {
    [
        Sort::Ping,
        Sort::GetBit(ONE_BIT),
        Sort::GetBit(BITS),
        Sort::Exists(items),
        Sort::Add,
        Sort::ManyExist(MANY, items),
        Sort::ManyAdd(MANY),
        Sort::CuckooExists(items),
        Sort::CuckooAdd,
    ]
}
const GETBIT: usize = 1;

/// The samples of one sort of requests, one per round.
#[derive(Clone, Debug, Default)]
struct Seen {
    cpu: Samples,
    inside: Samples,
    of_getbit: Samples,
}

/// A server with a module and full filters in it.
struct Host {
    module: &'static str,
    process: Process,
    what: String,
    connections: Vec<TcpStream>,
    rooms: [Room; 2],
    /// The number of request streams so far: each has its own items.
    streams: u64,
}

impl Host {
    fn start(name: &'static str, program: &Path, module: &Path, items: u64) -> io::Result<Self> {
        let process = Process::host(program, module)?;
        let what = what(&mut process.connect()?)?;
        println!("{name} inside {what}");
        for (family, filter) in [(Family::Bloom, "seen"), (Family::Cuckoo, "seen.cf")] {
            let before = process.resident_bytes()?;
            let (cpu, seconds) = fill(&process, family, filter, items)?;
            println!(
                "  {family:?} of {items}: {:.2} million items per second, {:.0} ns CPU per item, {:.1} bits of memory per item",
                items as f64 / seconds / 1e6,
                cpu / items as f64,
                process.resident_bytes()?.saturating_sub(before) as f64 * 8.0 / items as f64,
            );
        }
        command(&process, &format!("SETBIT bits {} 1", BITS - 1))?;
        let rooms = [Room::new(&process, Family::Bloom, items)?, Room::new(&process, Family::Cuckoo, items)?];
        let connections = (0..CONNECTIONS).map(|_| process.connect()).collect::<io::Result<_>>()?;
        Ok(Self { module: name, process, what, connections, rooms, streams: 0 })
    }

    /// Measures every sort of requests once.
    fn round(&mut self, sorts: &[Sort], depth: usize, requests: usize, seen: &mut [Seen]) -> io::Result<()> {
        let mut cpu = Vec::new();
        for (&sort, seen) in sorts.iter().zip(seen.iter_mut()) {
            let requests = requests / sort.items() / if depth == 1 { DEPTH_1_SHARE } else { 1 };
            let (spent, inside) = self.spent(sort, depth, requests)?;
            seen.cpu.record(spent, 1);
            seen.inside.record(inside, 1);
            cpu.push(spent);
        }
        for (cpu_ns, seen) in cpu.iter().zip(seen) {
            seen.of_getbit.record(cpu_ns / cpu[GETBIT], 1);
        }
        Ok(())
    }

    /// Returns the CPU nanoseconds per item, and those inside the command.
    fn spent(&mut self, sort: Sort, depth: usize, requests: usize) -> io::Result<(f64, f64)> {
        let passes = requests.div_ceil(depth * self.connections.len());
        let requests = passes * depth * self.connections.len();
        for room in &mut self.rooms {
            room.make(&self.process, sort, requests)?;
        }
        command(&self.process, "CONFIG RESETSTAT")?;
        self.streams += 1;
        let before = self.process.cpu_ns()?;
        drive(&mut self.connections, sort, depth, passes, self.streams * CONNECTIONS)?;
        let spent = self.process.cpu_ns()? - before;
        let told = bulk(&mut self.process.connect()?, "INFO commandstats")?;
        let items = (requests * sort.items()) as f64;
        let micros = micros_inside(&told, sort.command(), requests as u64)?;
        Ok((spent as f64 / items, micros as f64 * 1e3 / items))
    }

    fn row(&self, sort: Sort, depth: usize, items: u64, seen: &Seen) -> Row {
        let middle = |samples: &Samples| samples.median().unwrap_or(f64::NAN);
        let redisbloom = elsewhere(sort, items).filter(|_| depth == ELSEWHERE_DEPTH);
        let is_ours = self.module == "mayhap";
        Row {
            module: self.module,
            host: self.what.clone(),
            command: name(sort),
            depth,
            items,
            cpu_ns: rounded(middle(&seen.cpu)),
            cpu_ns_p10: rounded(seen.cpu.p10().unwrap_or(f64::NAN)),
            inside_ns: rounded(middle(&seen.inside)),
            of_getbit: rounded(middle(&seen.of_getbit)),
            redisbloom_of_getbit: redisbloom.map(|micros| rounded(micros / ELSEWHERE_GETBIT)),
            bar: redisbloom.filter(|_| is_ours).map(|_| bar(sort, items)),
        }
    }
}

/// The name in the table, where two sorts would have the same name.
fn name(sort: Sort) -> String {
    match sort {
        Sort::GetBit(BITS) => format!("GETBIT in {} MB", BITS / 8_000_000),
        sort => sort.name(),
    }
}

/// Rounds to three decimals; more would be noise.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

/// Sends a pipeline on every connection, then reads from every connection.
fn drive(
    connections: &mut [TcpStream],
    sort: Sort,
    depth: usize,
    passes: usize,
    seed: u64,
) -> io::Result<()> {
    let mut requests: Vec<Requests> =
        (0..connections.len() as u64).map(|connection| Requests::new(seed + connection)).collect();
    let mut sent = Vec::new();
    for _ in 0..passes {
        for (stream, requests) in connections.iter_mut().zip(&mut requests) {
            sent.clear();
            (0..depth).for_each(|_| requests.write(sort, &mut sent));
            stream.write_all(&sent)?;
        }
        for stream in connections.iter_mut() {
            read_lines(stream, depth * sort.lines())?;
        }
    }
    Ok(())
}

/// Returns the microseconds that a server reports inside a command. The command must have been called exactly `calls` times.
fn micros_inside(told: &str, command: &str, calls: u64) -> io::Result<u64> {
    let wrong = |why: String| io::Error::other(format!("INFO commandstats: {why}"));
    let line = told
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_")?.strip_prefix(command)?.strip_prefix(':'))
        .ok_or_else(|| wrong(format!("no line for {command}")))?;
    let field = |name: &str| {
        let said = line.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        said.and_then(|number| number.parse::<u64>().ok())
            .ok_or_else(|| wrong(format!("no {name} in {line:?}")))
    };
    match field("calls")? {
        counted if counted == calls => field("usec"),
        counted => Err(wrong(format!("{command} was called {counted} times, expected {calls}"))),
    }
}

/// Requests one string.
fn bulk(stream: &mut TcpStream, line: &str) -> io::Result<String> {
    /// Larger than the longest reply of a server about itself.
    const MOST_BYTES: usize = 1 << 20;
    stream.write_all(format!("{line}\r\n").as_bytes())?;
    let (mut said, mut buffer) = (Vec::new(), [0; 16 << 10]);
    loop {
        let read = stream.read(&mut buffer)?;
        said.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&said);
        if let Some((length, rest)) = text.strip_prefix('$').and_then(|text| text.split_once("\r\n"))
            && length.parse::<usize>().is_ok_and(|length| rest.len() >= length + 2)
        {
            return Ok(rest.to_owned());
        }
        if read == 0 || said.starts_with(b"-") || said.len() > MOST_BYTES {
            return Err(io::Error::other(format!("unexpected reply: {text:?}")));
        }
    }
}

/// Returns the name of the server and its memory allocator.
fn what(stream: &mut TcpStream) -> io::Result<String> {
    let told = bulk(stream, "INFO server")? + &bulk(stream, "INFO memory")?;
    let field = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let version = match field("valkey_version") {
        Some(version) => format!("Valkey {version}"),
        None => format!("Redis {}", field("redis_version").unwrap_or("of unknown version")),
    };
    Ok(format!("{version}, {}", field("mem_allocator").unwrap_or("unknown memory")))
}

/// The load averages over one, five and fifteen minutes.
fn machine_load() -> String {
    let said = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    said.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn heading(depth: usize) {
    println!(
        "\n{:<8}{:<18}depth {depth:<4}{:>10}{:>10}{:>12}{:>24}{:>8}",
        "module", "command", "CPU ns", "inside", "of GETBIT", "RedisBloom, elsewhere", "of it"
    );
}

fn print(row: &Row) {
    let theirs = row.redisbloom_of_getbit.map_or(String::new(), |ratio| format!("{ratio:.2}"));
    let of_it =
        row.redisbloom_of_getbit.map_or(String::new(), |ratio| format!("{:.2}", row.of_getbit / ratio));
    let verdict = match (row.bar, row.redisbloom_of_getbit) {
        (Some(bar), Some(ratio)) if row.of_getbit <= bar * ratio => format!("  bar {bar:.2} met"),
        (Some(bar), Some(_)) => format!("  bar {bar:.2} MISSED"),
        _ => String::new(),
    };
    println!(
        "{:<8}{:<28}{:>10.0}{:>10.0}{:>12.2}{theirs:>24}{of_it:>8}{verdict}",
        row.module, row.command, row.cpu_ns, row.inside_ns, row.of_getbit
    );
}

/// The depth of the figures from elsewhere.
const ELSEWHERE_DEPTH: usize = 16;
/// Microseconds of CPU per `GETBIT` of Redis 7.0.15 there.
const ELSEWHERE_GETBIT: f64 = 0.91;

/// Microseconds of CPU per item of RedisBloom there, in a filter of this many items.
fn elsewhere(sort: Sort, items: u64) -> Option<f64> {
    let [million, hundred_million] = match sort {
        Sort::Exists(_) => [1.45, 1.83],
        Sort::Add => [1.31, 1.98],
        Sort::ManyExist(..) => [0.15, 0.49],
        Sort::ManyAdd(_) => [0.24, 0.51],
        Sort::CuckooExists(_) => [1.40, 1.66],
        Sort::CuckooAdd => [1.28, 1.69],
        Sort::Ping | Sort::GetBit(_) | Sort::SetBit(_) => return None,
    };
    match items {
        1_000_000 => Some(million),
        100_000_000 => Some(hundred_million),
        _ => None,
    }
}

/// The goals: never more than RedisBloom, and much less for multi-item commands in large filters, where memory access takes the time.
const fn bar(sort: Sort, items: u64) -> f64 {
    match sort {
        Sort::ManyExist(..) | Sort::ManyAdd(_) if items >= 100_000_000 => 0.7,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "# Commandstats\r\ncmdstat_bf.exists:calls=200,usec=90,usec_per_call=0.45\r\n\
        cmdstat_config|resetstat:calls=1,usec=4,usec_per_call=4.00\r\n";

    #[test]
    fn time_inside_is_read_from_the_line_of_the_command() {
        assert_eq!(micros_inside(TOLD, "bf.exists", 200).unwrap(), 90);
    }

    #[test]
    fn requests_of_other_clients_abort_the_measurement() {
        assert!(micros_inside(TOLD, "bf.exists", 199).is_err());
        assert!(micros_inside(TOLD, "bf.exist", 200).is_err());
        assert!(micros_inside(TOLD, "bf.add", 0).is_err());
    }

    #[test]
    fn figures_from_elsewhere_exist_for_two_sizes() {
        assert_eq!(elsewhere(Sort::Add, 1_000_000), Some(1.31));
        assert_eq!(elsewhere(Sort::Add, 2_000_000), None);
        assert_eq!(elsewhere(Sort::Ping, 1_000_000), None);
        assert_eq!((bar(Sort::ManyAdd(100), 100_000_000), bar(Sort::Add, 100_000_000)), (0.7, 1.0));
    }
}
