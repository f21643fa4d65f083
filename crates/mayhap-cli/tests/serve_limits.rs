//! Limits on the memory and time that clients can make `mayhap serve` use. A real process, to measure its memory.
//!
//! `MAYHAP_LIMITS=long` (`just limits`) uses the promised sizes; without it they are smaller, for `./test`.

mod program;

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use program::talk::Talk;
use program::{empty_folder, mayhap_in};

const PATIENCE: Duration = Duration::from_secs(60);
const MIB: u64 = 1 << 20;

/// One of two sizes: for `./test`, and the promised one.
fn size(short: usize, long: usize) -> usize {
    if std::env::var("MAYHAP_LIMITS").is_ok_and(|value| value == "long") { long } else { short }
}

struct Server {
    child: Child,
    address: String,
    /// The HTTP address; empty without `--http-port`.
    http: String,
    _out: BufReader<ChildStdout>,
    _alone: MutexGuard<'static, ()>,
}

/// One server at a time, so that other tests are not measured.
static ALONE: Mutex<()> = Mutex::new(());

impl Server {
    fn start(test: &str, arguments: &[&str]) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = empty_folder("serve_limits", test);
        let mut command = mayhap_in(&folder);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("MAYHAP_") {
                command.env_remove(name);
            }
        }
        command.args(["serve", "--port", "0", "--dir", "data", "--workers", "2"]).args(arguments);
        if !arguments.contains(&"--http-port") {
            command.arg("--no-http");
        }
        command.args(["--log-level", "error"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("  try ") {
            assert!(out.read_line(&mut greeting).unwrap() > 0, "it ended: {greeting}");
        }
        let address = greeting.lines().find_map(|line| line.strip_prefix("  RESP  ")).unwrap().to_owned();
        let http = greeting.lines().find_map(|line| line.strip_prefix("  HTTP  http://")).unwrap_or_default();
        let http = http.split('/').next().unwrap_or_default().to_owned();
        Self { child, address, http, _out: out, _alone: alone }
    }

    fn connect(&self) -> Talk {
        Talk::over(TcpStream::connect(&self.address).unwrap(), PATIENCE)
    }

    /// The memory it uses, in bytes.
    fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1_024
    }

    /// [`resident`](Self::resident) once it is stable, because requests may still be in progress.
    fn settled(&self) -> u64 {
        const STILL: u32 = 5;
        let (mut last, mut same) = (self.resident(), 0);
        let begun = Instant::now();
        while same < STILL && begun.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(50));
            let now = self.resident();
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
        last
    }

    fn is_alive(&self) -> bool {
        self.connect().ask("PING") == "+PONG"
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Talk {
    /// Sends while the other side accepts bytes, until it accepts none within `pause`.
    fn stuff(&mut self, bytes: &[u8], pause: Duration) -> usize {
        let stream = self.0.get_mut();
        stream.set_write_timeout(Some(pause)).unwrap();
        let mut sent = 0;
        while sent < bytes.len() {
            match stream.write(&bytes[sent..]) {
                Ok(0) => break,
                Ok(count) => sent += count,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(_) => break,
            }
        }
        sent
    }

    /// Returns `true` if it is closed within `patience`.
    fn is_closed_within(&mut self, patience: Duration) -> bool {
        let stream = self.0.get_mut();
        stream.set_read_timeout(Some(patience.max(Duration::from_millis(1)))).unwrap();
        let mut rest = [0; 4_096];
        loop {
            match stream.read(&mut rest) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return false;
                }
                Err(_) => return true,
            }
        }
    }
}

/// Waits until a condition holds.
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A client that sends a thousand PINGs per second and measures the 99th percentile and the maximum of the time.
struct Pinger {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Vec<Duration>>,
}

impl Pinger {
    fn start(server: &Server) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut talk, stopped) = (server.connect(), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut took = Vec::new();
            // At least once, however soon it is stopped.
            loop {
                let begun = Instant::now();
                assert_eq!(talk.ask("PING"), "+PONG");
                took.push(begun.elapsed());
                if stopped.load(Ordering::Relaxed) {
                    return took;
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        Self { stop, thread }
    }

    fn stop(self) -> (Duration, Duration) {
        self.stop.store(true, Ordering::Relaxed);
        let mut took = self.thread.join().unwrap();
        took.sort_unstable();
        (took[took.len() * 99 / 100], *took.last().unwrap())
    }

    /// The same without other load, on this machine and now.
    fn alone(server: &Server) -> (Duration, Duration) {
        let pinger = Self::start(server);
        thread::sleep(Duration::from_millis(300));
        pinger.stop()
    }
}

#[test]
fn a_slow_reader_costs_little_and_gets_every_reply() {
    let replies = size(200, 1_000);
    let server = Server::start("slow_reader", &[]);
    let mut talk = server.connect();
    assert_eq!(talk.ask("SETRANGE s 1048575 x"), ":1048576");
    assert_eq!(talk.ask("STRLEN s"), ":1048576");
    let (bare, _) = Pinger::alone(&server);
    let before = server.resident();
    let pinger = Pinger::start(&server);
    talk.send("GET s\r\n".repeat(replies).as_bytes());
    thread::sleep(Duration::from_millis(size(700, 3_000) as u64));
    let growth = server.resident().saturating_sub(before);
    let (p99, _) = pinger.stop();
    println!(
        "{replies} replies of 1 MiB unread: {} MiB more; ping p99 {p99:?}, alone {bare:?}",
        growth / MIB
    );
    assert!(growth <= 64 * MIB, "{growth}");
    // Ten are promised, on a machine without other load.
    assert!(p99 < Duration::from_millis(size(100, 10) as u64).max(bare * 5), "{p99:?}, alone {bare:?}");
    let mut value = vec![0; (1 << 20) + 2];
    for _ in 0..replies {
        assert_eq!(talk.line(), "$1048576");
        talk.0.read_exact(&mut value).unwrap();
        assert_eq!(value[(1 << 20) - 1], b'x');
    }
    assert_eq!(talk.ask("PING"), "+PONG");
    wait_for("the memory to be given back", || server.connect().info("mem_clients_normal") < 4 * MIB);
}

#[test]
fn slow_readers_with_the_largest_buffers_are_closed_first() {
    let readers = size(40, 200);
    let server = Server::start("slow_readers", &["--max-buffers", "32MiB", "--max-unread", "8MiB"]);
    let mut talk = server.connect();
    talk.ask("SETRANGE s 1048575 x");
    let before = server.resident();
    let mut talks: Vec<Talk> = (0..readers).map(|_| server.connect()).collect();
    for talk in &mut talks {
        talk.send("GET s\r\n".repeat(100).as_bytes());
    }
    let mut watcher = server.connect();
    wait_for("too much", || watcher.info("client_query_buffer_limit_disconnections") > 0);
    wait_for("enough to be closed", || watcher.info("mem_clients_normal") <= 32 * MIB);
    let growth = server.resident().saturating_sub(before);
    println!("{readers} readers of 100 MiB each that do not read: {} MiB more", growth / MIB);
    // The limit, plus freed memory that the allocator keeps, whatever the number of readers.
    let most = (32 + 96) * MIB;
    assert!(growth <= most, "{growth} of {most}");
    assert!(server.is_alive());
}

#[test]
fn half_a_request_is_closed_and_slow_or_silent_clients_are_not() {
    let connections = size(300, 9_000);
    // The default is 25: connections are checked twice per second, so all are closed after 30.
    let seconds = size(2, 25) as u64;
    let timeout = seconds.to_string();
    let server = Server::start("half", &["--request-timeout", &timeout, "--max-clients", "20000"]);
    let mut patient = server.connect();
    assert_eq!(patient.ask("PING"), "+PONG");
    let mut silent = server.connect();
    let mut halves: Vec<Talk> = (0..connections)
        .map(|_| {
            let mut talk = server.connect();
            talk.send(b"PING\r\n*3\r\n$6\r\nBF.ADD\r\n$1\r\nf");
            talk
        })
        .collect();
    let begun = Instant::now();
    let mut watcher = server.connect();
    let closed = thread::spawn(move || {
        wait_for("all to be closed", || watcher.info("overdue_disconnections") >= connections as u64);
        begun.elapsed()
    });
    // It sends 32 KiB at a time, and takes longer in total than a client may be silent.
    let mut slow = server.connect();
    let pieces = 8;
    slow.send(format!("*2\r\n$4\r\nPING\r\n${}\r\n", pieces * 32_768).as_bytes());
    for _ in 0..pieces {
        slow.send(&[b'x'; 32_768]);
        thread::sleep(Duration::from_millis(seconds * 1_000 / 6));
    }
    slow.send(b"\r\n");
    assert_eq!(slow.line(), format!("${}", pieces * 32_768));
    let last = begun + Duration::from_secs(seconds) + Duration::from_secs(10);
    for talk in &mut halves {
        assert!(talk.is_closed_within(last.saturating_duration_since(Instant::now())), "still open");
    }
    let closed = closed.join().unwrap();
    println!("{connections} half requests closed {closed:?} after the last of them");
    assert!(closed <= Duration::from_secs(seconds + 5), "{closed:?}");
    assert_eq!(patient.ask("PING"), "+PONG", "asking for nothing is no offence");
    assert_eq!(silent.ask("PING"), "+PONG", "nor is connecting ahead");
    assert!(patient.info("overdue_disconnections") >= connections as u64);
    assert_eq!(patient.ask("CONFIG SET timeout 1"), "+OK");
    assert!(patient.is_closed_within(Duration::from_secs(10)));
}

/// Silent HTTP connections, and ones that send a byte now and then, slow no RESP client down and are closed in time.
#[test]
fn slow_http_connections_are_closed_and_delay_no_resp_client() {
    let (silent, dripping) = (size(120, 1_200), size(300, 5_000));
    let seconds = size(2, 25) as u64;
    let timeout = seconds.to_string();
    let arguments = ["--http-port", "0", "--http-max-clients", "10000", "--request-timeout", &timeout];
    let server = Server::start("slow_http", &arguments);
    let (bare, _) = Pinger::alone(&server);
    let pinger = Pinger::start(&server);
    let open = || TcpStream::connect(&server.http).unwrap();
    let silent: Vec<TcpStream> = (0..silent).map(|_| open()).collect();
    let mut drips: Vec<TcpStream> = (0..dripping).map(|_| open()).collect();
    let begun = Instant::now();
    let head = format!("GET /health HTTP/1.1\r\nHost: {}\r\nX-Slow: ", server.http);
    for stream in &mut drips {
        stream.set_nonblocking(true).unwrap();
        let _ = stream.write(head.as_bytes());
    }
    // A byte of every request each second, until all are closed.
    let last = Duration::from_secs(seconds + 5);
    while !drips.is_empty() {
        assert!(begun.elapsed() < last, "{} of {dripping} are open after {last:?}", drips.len());
        thread::sleep(Duration::from_millis(size(100, 1_000) as u64));
        drips.retain_mut(|stream| {
            let mut rest = [0; 256];
            let is_open =
                matches!(stream.read(&mut rest), Err(error) if error.kind() == ErrorKind::WouldBlock);
            is_open && stream.write(b"a").is_ok()
        });
    }
    let closed = begun.elapsed();
    let count = silent.len();
    for stream in silent {
        let left = last.saturating_sub(begun.elapsed());
        assert!(Talk::over(stream, PATIENCE).is_closed_within(left), "a silent connection is open");
    }
    let (p99, longest) = pinger.stop();
    println!(
        "{count} silent and {dripping} dripping HTTP connections closed after {closed:?}; \
         ping p99 {p99:?}, longest {longest:?}, alone {bare:?}"
    );
    assert!(p99 < Duration::from_millis(size(100, 10) as u64).max(bare * 5), "{p99:?}, alone {bare:?}");
    assert!(server.is_alive());
}

#[test]
fn clients_without_a_password_cost_almost_nothing() {
    let non_members = size(200, 1_000);
    let server = protected();
    let mut known = server.connect();
    assert_eq!(known.ask("AUTH secret"), "+OK");
    let before = server.resident();
    let mut talks: Vec<Talk> = (0..non_members).map(|_| server.connect()).collect();
    // The most a client may send without completing a request, in four ways.
    let password = [&b"*2\r\n$4\r\nAUTH\r\n$16000\r\n"[..], &[b'a'; 15_999]].concat();
    let line = [b'a'; 16_000];
    let pings = b"PING\r\n".repeat(20_000);
    let words =
        [&b"*10\r\n"[..], &b"$1500\r\n"[..], &[b'b'; 1_500], b"\r\n$1500\r\n", &[b'b'; 1_499]].concat();
    for (number, talk) in talks.iter_mut().enumerate() {
        let bytes: &[u8] = [&password[..], &line, &pings, &words][number % 4];
        talk.stuff(bytes, Duration::from_millis(20));
    }
    let growth = server.settled().saturating_sub(before);
    println!("{non_members} non-members: {} KiB more, {} each", growth / 1_024, growth / non_members as u64);
    let most = 32 * MIB * non_members as u64 / 1_000 + 8 * MIB * u64::from(non_members < 1_000);
    assert!(growth <= most, "{growth} of {most}");
    // A million requests whose replies are not read.
    let before = server.settled();
    let sent = server.connect().stuff(&b"PING\r\n".repeat(1_000_000), Duration::from_millis(500));
    let growth = server.resident().saturating_sub(before);
    println!("{sent} bytes of PING from a non-member that does not read: {} KiB more", growth / 1_024);
    assert!(growth <= 2 * MIB, "{growth}");
    assert_eq!(known.ask("PING"), "+PONG");
}

fn protected() -> Server {
    let folder = empty_folder("serve_limits", "password");
    fs::write(folder.join("pw"), "secret\n").unwrap();
    let file = folder.join("pw");
    Server::start("protected", &["--password-file", file.to_str().unwrap(), "--max-clients", "20000"])
}

#[test]
fn twice_the_memory_is_rejected_even_for_concurrent_requests() {
    let server = Server::start("memory", &["--max-memory", "256MiB"]);
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let mut talk = server.connect();
            thread::spawn(move || {
                let mut made = 0;
                for round in 0..8 {
                    // 9.6 bits for each of seven million items: 8 MiB, and 64 such filters.
                    let reply = match round % 2 {
                        0 => talk.ask(&format!("BF.RESERVE f{number}.{round} 0.01 7000000")),
                        _ => talk.ask(&format!("MF.RESERVE f{number}.{round} CAPACITY 7M FPR 1%")),
                    };
                    assert!(
                        reply == "+OK" || reply.starts_with("-OOM ") || reply.starts_with("-ERR "),
                        "{reply}"
                    );
                    made += u64::from(reply == "+OK");
                }
                made
            })
        })
        .collect();
    let made: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let mut talk = server.connect();
    let used = talk.info("used_memory");
    println!("{made} of 64 filters of 8 MiB in 256 MiB, {} MiB used", used / MIB);
    assert!(used <= 256 * MIB && (20..=32).contains(&made), "{made}, {used}");
    // Copies and merges that exceed the memory are rejected, too.
    for number in 0..64 {
        let reply = talk.ask(&format!("COPY f0.0 copy{number}"));
        assert!(reply == ":1" || reply.starts_with("-OOM "), "{reply}");
    }
    assert!(talk.info("used_memory") <= 256 * MIB);
    assert!(talk.info("maxmemory") == 256 * MIB && server.is_alive());
}

/// Limits the address space of a process; `None` for no limit.
fn limit_memory(server: &Server, bytes: Option<u64>) {
    let limit = bytes.map_or_else(|| "unlimited".to_owned(), |bytes| bytes.to_string());
    let process = server.child.id().to_string();
    let set = Command::new("prlimit").args(["--pid", &process, &format!("--as={limit}:unlimited")]).status();
    assert!(set.expect("prlimit, of util-linux").success());
}

/// A reply that does not fit in memory is an error. It used to abort the process.
#[test]
fn a_reply_that_does_not_fit_in_memory_is_an_error() {
    let server = Server::start("no_memory", &["--max-memory", "4GiB", "--max-unread", "1GiB"]);
    let bytes = size(80, 400) as u64 * MIB;
    let mut talk = server.connect();
    assert_eq!(talk.ask(&format!("SETRANGE s {} x", bytes - 1)), format!(":{bytes}"));
    assert_eq!(talk.ask(&format!("BF.RESERVE f 0.01 {}", bytes * 8 * 100 / 959)), "+OK");
    assert_eq!(talk.ask("BF.ADD f a"), ":1");
    assert_eq!(
        talk.ask(&format!("MF.RESERVE m KIND bloom FPR 1% CAPACITY {}", bytes * 8 * 100 / 959)),
        "+OK"
    );
    assert_eq!(talk.ask("MF.ADD m a"), ":1");
    // The threads for long requests exist from now on.
    assert_eq!(talk.ask("BITCOUNT s"), ":4");
    let addressed = {
        let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1_024
    };
    for (room, lines) in [
        (
            32 * MIB,
            &[
                "GET s",
                "GETRANGE s 0 -1",
                "GETDEL s",
                "SET s x GET",
                "DUMP s",
                "DUMP f",
                "DUMP m",
                "MF.DUMP m 0",
            ][..],
        ),
        // Room for the value, but not for the reply.
        (bytes + 32 * MIB, &["GET s", "GETRANGE s 0 -1"][..]),
        (8 * MIB, &["BF.SCANDUMP f 1"][..]),
    ] {
        limit_memory(&server, Some(addressed + room));
        for line in lines {
            let reply = talk.ask(line);
            if reply == "*2" {
                // Memory freed by other requests was enough for one chunk of a dump.
                talk.line();
                let bytes: usize = talk.line()[1..].parse().unwrap();
                talk.0.read_exact(&mut vec![0; bytes + 2]).unwrap();
                continue;
            }
            assert!(reply.starts_with("-ERR ") || reply.starts_with("-OOM "), "{line}: {reply}");
            assert_eq!(talk.ask("PING"), "+PONG", "{line}");
        }
    }
    limit_memory(&server, None);
    assert_eq!(talk.ask("GET s"), format!("${bytes}"));
    let mut value = vec![0; bytes as usize + 2];
    talk.0.read_exact(&mut value).unwrap();
    assert_eq!(value[bytes as usize - 1], b'x');
    assert!(server.is_alive());
}

#[test]
fn default_limits_are_a_share_of_the_machines_memory() {
    let server = Server::start("share", &[]);
    let mut talk = server.connect();
    let (limit, all) = (talk.info("maxmemory"), talk.info("total_system_memory"));
    assert!(limit > all / 100 * 79 && limit < all / 100 * 81, "{limit} of {all}");
    // Larger than the machine: 1.2 bytes for each item.
    for capacity in [1_u64 << 40, 1 << 45] {
        let reply = talk.ask(&format!("MF.RESERVE f{capacity} CAPACITY {capacity} FPR 0.01"));
        assert!(reply.starts_with("-OOM ") || reply.starts_with("-ERR "), "{reply}");
    }
    assert!(server.is_alive());
}

#[test]
fn transactions_have_a_limit() {
    let server = Server::start("multi", &["--max-unread", "4MiB", "--max-request", "8MiB"]);
    let mut talk = server.connect();
    talk.ask("SETRANGE s 1048575 x");
    let before = server.resident();
    assert_eq!(talk.ask("MULTI"), "+OK");
    for _ in 0..100 {
        assert_eq!(talk.ask("GET s"), "+QUEUED");
    }
    assert_eq!(talk.ask("BF.ADD f a"), "+QUEUED");
    assert_eq!(talk.ask("EXEC"), "*101");
    let growth = server.resident().saturating_sub(before);
    let (mut whole, mut value) = (0, vec![0; (1 << 20) + 2]);
    for _ in 0..100 {
        match talk.line().as_str() {
            "$1048576" => {
                talk.0.read_exact(&mut value).unwrap();
                whole += 1;
            }
            refused => {
                assert!(refused.starts_with("-ERR the replies of a transaction may take "), "{refused}");
            }
        }
    }
    assert_eq!((talk.line().as_str(), whole), (":1", 3));
    assert!(growth < 32 * MIB, "{growth}");
    // The queued commands have a limit, too.
    assert_eq!(talk.ask("MULTI"), "+OK");
    let set = [&b"*3\r\n$3\r\nSET\r\n$1\r\nt\r\n$1000000\r\n"[..], &[b'y'; 1_000_000], b"\r\n"].concat();
    let queued = (0..20).map(|_| {
        talk.send(&set);
        talk.line()
    });
    let queued = queued.take_while(|reply| reply == "+QUEUED").count();
    assert_eq!(queued, 8);
    assert!(talk.ask("EXEC").starts_with("-EXECABORT"));
    assert_eq!(talk.ask("PING"), "+PONG");
}

/// The slowest commands, each next to a client that sends PINGs: no client waits for another client's work.
#[test]
fn no_command_delays_other_clients() {
    let scale = size(1, 4);
    let server = Server::start("stall", &["--max-memory", "8GiB"]);
    let mut talk = server.connect();
    let mega = (64 * scale) << 20;
    // The values they work on.
    for line in [
        format!("SETRANGE s {} x", mega - 1),
        format!("MF.RESERVE m1 KIND bloom CAPACITY {} FPR 0.01 KEYLESS", 40_000_000 * scale),
        format!("MF.RESERVE m2 KIND bloom CAPACITY {} FPR 0.01 KEYLESS", 40_000_000 * scale),
        "MF.ADD m1 a".to_owned(),
        "MF.ADD m2 b".to_owned(),
        "BF.RESERVE wide 0.01 5000 EXPANSION 32768".to_owned(),
        "BF.RESERVE b 0.01 1000".to_owned(),
    ] {
        let reply = talk.ask(&line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
    let fill = format!("BF.MADD wide{}", (0..6_000).map(|item| format!(" {item}")).collect::<String>());
    let fill = as_request(&fill);
    let many_names = format!("DEL{}", (0..200_000).map(|item| format!(" n{item}")).collect::<String>());
    let many_names = as_request(&many_names);
    let some_items =
        format!("BF.MADD wide{}", (0..2_000).map(|item| format!(" w{item}")).collect::<String>());
    let some_items = as_request(&some_items);
    let lines = [
        "BITCOUNT s".to_owned(),
        "BITPOS s 1".to_owned(),
        "BITOP NOT t s".to_owned(),
        "GET s".to_owned(),
        format!("SETBIT far {}", (mega as u64) * 8 - 1) + " 1",
        "COPY s u".to_owned(),
        "COPY m1 m3".to_owned(),
        "MF.MERGE m2 m1".to_owned(),
        "MF.CLEAR m2".to_owned(),
        "MF.DUMP m1 0".to_owned(),
        "MF.INFO m1".to_owned(),
        "DUMP b".to_owned(),
        "SCAN 0 COUNT 100000000".to_owned(),
        "KEYS *".to_owned(),
        "COMMAND DOCS".to_owned(),
        "INFO all".to_owned(),
        "CLIENT LIST".to_owned(),
        "MULTI\r\nBITCOUNT s\r\nMF.MERGE m2 m1\r\nEXEC".to_owned(),
        "DEL s t u m1 m2 m3 far".to_owned(),
    ];
    let inline = lines.into_iter().map(|line| (line.clone(), format!("{line}\r\n").into_bytes()));
    let large =
        [("BF.MADD that grows", fill), ("BF.MADD into new memory", some_items), ("DEL of many", many_names)];
    let all: Vec<(String, Vec<u8>)> =
        large.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).chain(inline).collect();
    let (_, bare) = Pinger::alone(&server);
    let limit = Duration::from_millis(100).max(bare * 4);
    for (name, bytes) in all {
        // Enough connections to have one on each worker.
        let pingers = [Pinger::start(&server), Pinger::start(&server)];
        let begun = Instant::now();
        let mut worker = server.connect();
        worker.send(&bytes);
        worker.send(b"QUIT\r\n");
        worker.0.get_mut().set_read_timeout(Some(PATIENCE)).unwrap();
        let mut replies = Vec::new();
        worker.0.read_to_end(&mut replies).unwrap();
        assert!(
            replies.ends_with(b"+OK\r\n"),
            "{name}: {}",
            String::from_utf8_lossy(&replies[..replies.len().min(200)])
        );
        let took = begun.elapsed();
        let longest = pingers.map(Pinger::stop).map(|(_, longest)| longest).into_iter().max().unwrap();
        println!("{name:.40}: {took:.2?}, others waited for {longest:.2?} (alone {bare:.2?})");
        assert!(longest < limit, "{name}: others waited for {longest:?}, alone {bare:?}");
    }
}

/// A line as a request with lengths, because inline requests have a separate limit.
fn as_request(line: &str) -> Vec<u8> {
    let words: Vec<&str> = line.split(' ').collect();
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    request
}

#[test]
fn connections_beyond_the_limit_are_rejected() {
    let server = Server::start("connections", &["--max-clients", "3"]);
    let mut talks: Vec<Talk> = (0..3).map(|_| server.connect()).collect();
    for talk in &mut talks {
        assert_eq!(talk.ask("PING"), "+PONG");
    }
    assert_eq!(server.connect().line(), "-ERR max number of clients reached");
    assert_eq!(talks[0].info("rejected_connections"), 1);
    assert_eq!(talks[0].ask("CONFIG SET maxclients 5"), "+OK");
    assert_eq!(server.connect().ask("PING"), "+PONG");
    assert_eq!(talks[0].info("maxclients"), 5);
}
