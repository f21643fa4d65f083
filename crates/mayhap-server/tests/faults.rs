//! Published vulnerabilities of similar servers, as requests to a real server. Expected: a clean error or a
//! right answer, no memory kept, and no other client waits. The rows are in `faults/rows.txt`. After them,
//! all commands of the table run with all numbers at which sizes overflow.
//!
//! A word of a row that begins with `=` is generated: pieces joined by `+`, such as `u64:5`, `f64:0.1`,
//! `zeros:64`, `times:100:*a`, `count` (of a pipeline), or one of
//!
//! * `edit:n:at=field,…`: the payload of [`payloads::value`] with some fields replaced: `u5`, `dnan`, `s16`
//!   (zeros)
//! * `cut:n:length`, `sealed:hex`, `module:letters,version,fields…`: other payloads, with valid checksums
//! * `many:n:text`, `numbers:n`: n words, all equal, or the numbers from 0 on
//! * `header:at=number`: the header of a `.mayhap` file with one number replaced, and nothing after it

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mayhap_command::{Access, Family, table};
use mayhap_fuzz::mutate::{Field, ModuleValue, module_id};
use mayhap_fuzz::requests::{self, Word};
use mayhap_fuzz::resp::encode;
use mayhap_fuzz::{payloads, seal};
use mayhap_server::{Running, Server, Settings};
use mayhap_testkit::alloc_meter::AllocMeter;

#[global_allocator]
static METER: AllocMeter = AllocMeter;

/// One test at a time: memory is that of the process, and the worker is found by its name.
static ALONE: Mutex<()> = Mutex::new(());

/// The memory that a row may leave allocated.
const GROWTH_BYTES: i64 = 1 << 20;
/// The time that the worker may be busy before it answers another client.
const STALL: Duration = Duration::from_millis(100);
/// The maximum number of runs of a row until it meets that limit.
const ATTEMPTS: usize = 4;

fn start(settings: Settings) -> Running {
    let log_level = mayhap_server::logging::Level::Error;
    Server::start(Settings { port: Some(0), workers: 1, log_level, ..settings }).unwrap()
}

/// A connection that reads complete replies.
struct Talk(BufReader<TcpStream>);

impl Talk {
    fn to(server: &Running) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.addresses()[0].port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// Returns the first line of a reply with its type, plus the beginning of a bulk string.
    fn reply(&mut self) -> String {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line).expect("a reply");
        assert!(line.ends_with(b"\r\n"), "no reply: {:?}", line.escape_ascii().to_string());
        line.truncate(line.len() - 2);
        let text = String::from_utf8_lossy(&line).into_owned();
        let number = || text[1..].parse::<i64>().unwrap_or_else(|_| panic!("no length: {text:?}"));
        let nested = match line[0] {
            b'$' | b'=' => {
                if number() >= 0 {
                    let mut bulk = vec![0; number() as usize + 2];
                    self.0.read_exact(&mut bulk).expect("all of a string");
                    assert!(bulk.ends_with(b"\r\n"));
                }
                0
            }
            b'*' | b'~' | b'>' => number().max(0),
            b'%' => 2 * number(),
            b'+' | b'-' | b':' | b'#' | b'_' | b',' | b'(' => 0,
            _ => panic!("no reply: {text:?}"),
        };
        for _ in 0..nested {
            self.reply();
        }
        text
    }

    fn ask(&mut self, words: &[impl AsRef<[u8]>]) -> String {
        self.send(&encode(words));
        self.reply()
    }
}

/// Another client, which sends `PING` all the time. The CPU time of the worker between request and reply is
/// the time this client had to wait, whatever else the machine does.
struct Bystander {
    stop: Arc<AtomicBool>,
    longest_ns: Arc<AtomicU64>,
    thread: Option<JoinHandle<u64>>,
}

/// The file in which the system counts the CPU time of the worker's thread.
fn worker() -> String {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let is_worker = |name: &String| {
        std::fs::read_to_string(format!("{name}/comm")).is_ok_and(|comm| comm.trim() == "worker-0")
    };
    let mut tasks = tasks.map(|path| path.to_string_lossy().into_owned()).filter(is_worker);
    let worker = tasks.next().expect("the worker's thread has a name");
    assert_eq!(tasks.next(), None, "there is one worker");
    format!("{worker}/schedstat")
}

fn ran_ns(file: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

impl Bystander {
    fn beside(server: &Running) -> Self {
        let (stop, longest_ns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut talk = Talk::to(server);
        assert_eq!(talk.ask(&["PING"]), "+PONG");
        let file = worker();
        let (stopped, longest) = (Arc::clone(&stop), Arc::clone(&longest_ns));
        let thread = std::thread::spawn(move || {
            let mut asked = 0;
            while !stopped.load(Ordering::Relaxed) {
                let before = ran_ns(&file);
                assert_eq!(talk.ask(&["PING"]), "+PONG");
                longest.fetch_max(ran_ns(&file).saturating_sub(before), Ordering::Relaxed);
                asked += 1;
                std::thread::sleep(Duration::from_micros(500));
            }
            asked
        });
        Self { stop, longest_ns, thread: Some(thread) }
    }

    /// The longest wait since the last call.
    fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest_ns.swap(0, Ordering::Relaxed))
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            assert!(thread.join().expect("the bystander got all replies") > 0);
        }
    }
}

fn field(text: &str) -> Field {
    let (kind, value) = text.split_at(1);
    match kind {
        "u" => Field::Unsigned(value.parse().unwrap()),
        "d" => Field::Double(value.parse().unwrap()),
        "s" => Field::String(vec![0; value.parse().unwrap()]),
        _ => panic!("not a field: {text}"),
    }
}

/// Generates one piece of a word.
fn piece(text: &str, count: usize) -> Vec<u8> {
    let (what, value) = text.split_once(':').unwrap_or((text, ""));
    match what {
        "u8" => vec![value.parse().unwrap()],
        "u16" => value.parse::<u16>().unwrap().to_le_bytes().to_vec(),
        "u32" => value.parse::<u32>().unwrap().to_le_bytes().to_vec(),
        "u64" => value.parse::<u64>().unwrap().to_le_bytes().to_vec(),
        "f64" => value.parse::<f64>().unwrap().to_le_bytes().to_vec(),
        "zeros" => vec![0; value.parse().unwrap()],
        "text" => value.into(),
        "count" => count.to_string().into_bytes(),
        "times" => {
            let (times, text) = value.split_once(':').unwrap();
            text.as_bytes().repeat(times.parse().unwrap())
        }
        "edit" => {
            let (number, edits) = value.split_once(':').unwrap();
            let mut made = payloads::value(number.parse().unwrap());
            for edit in edits.split(',') {
                let (at, new) = edit.split_once('=').unwrap();
                made.fields[at.parse::<usize>().unwrap()] = field(new);
            }
            seal::redis_payload(&made.to_bytes())
        }
        "cut" => {
            let (number, length) = value.split_once(':').unwrap();
            let made = payloads::value(number.parse().unwrap()).to_bytes();
            seal::redis_payload(&made[..length.parse().unwrap()])
        }
        "module" => {
            let mut parts = value.split(',');
            let letters = parts.next().unwrap();
            let id = module_id(letters, parts.next().unwrap().parse().unwrap());
            seal::redis_payload(&ModuleValue { id, fields: parts.map(field).collect() }.to_bytes())
        }
        "sealed" => {
            let hex = |at: usize| u8::from_str_radix(&value[2 * at..2 * at + 2], 16).unwrap();
            seal::redis_payload(&(0..value.len() / 2).map(hex).collect::<Vec<_>>())
        }
        "header" => {
            let mut file = mayhap::Bloom::for_capacity(100, 0.01, 7).unwrap().encode();
            let (at, number) = value.split_once('=').unwrap();
            let at: usize = at.parse().unwrap();
            // Sealed with its payload, but only the header is sent.
            file[at..at + 8].copy_from_slice(&number.parse::<u64>().unwrap().to_le_bytes());
            seal::mayhap(&mut file);
            file.truncate(seal::MAYHAP_HEADER);
            file
        }
        _ => panic!("not a piece: {text}"),
    }
}

fn words(line: &str, count: usize) -> Vec<Vec<u8>> {
    let some = |word: &str| -> Vec<Vec<u8>> {
        let Some(made) = word.strip_prefix('=') else { return vec![word.into()] };
        if let Some((times, text)) = made.strip_prefix("many:").and_then(|many| many.split_once(':')) {
            return vec![text.into(); times.parse().unwrap()];
        }
        if let Some(numbers) = made.strip_prefix("numbers:") {
            return (0..numbers.parse::<u32>().unwrap()).map(|number| number.to_string().into()).collect();
        }
        vec![made.split('+').flat_map(|text| piece(text, count)).collect()]
    };
    line.split(' ').flat_map(some).collect()
}

enum Step<'a> {
    /// A request that must not be refused.
    Do(&'a str),
    /// A number of requests, and the expected reply of the last one.
    Send { times: usize, line: &'a str, want: &'a str },
    /// Raw bytes on a connection of their own.
    Bytes { bytes: Vec<u8>, want: &'a str },
}

struct Row<'a> {
    id: &'a str,
    steps: Vec<Step<'a>>,
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let Some(line) = lines.next() {
        if let Some(id) = line.strip_prefix('[') {
            rows.push(Row { id: id.split_once(']').unwrap().0, steps: Vec::new() });
            continue;
        }
        let steps = &mut rows.last_mut().expect("a row begins with its id").steps;
        let (what, rest) = line.split_once(' ').unwrap();
        let mut want = || {
            lines
                .next()
                .and_then(|line| line.strip_prefix("want "))
                .unwrap_or_else(|| panic!("{line}: the expected reply is missing"))
        };
        let unescaped = |text: &str| text.replace("\\r", "\r").replace("\\n", "\n").into_bytes();
        steps.push(match what.split_once('*') {
            None if what == "do" => Step::Do(rest),
            None if what == "send" => Step::Send { times: 1, line: rest, want: want() },
            None if what == "bytes" => Step::Bytes { bytes: unescaped(rest), want: want() },
            Some(("bytes", "")) => {
                let (times, text) = rest.split_once(' ').unwrap();
                Step::Bytes { bytes: unescaped(text).repeat(times.parse().unwrap()), want: want() }
            }
            Some(("send", times)) => Step::Send { times: times.parse().unwrap(), line: rest, want: want() },
            _ => panic!("not a step: {line}"),
        });
    }
    rows
}

/// Whether `reply` is the expected one.
fn suits(reply: &str, want: &str) -> bool {
    let (class, beginning) = want.split_once(' ').unwrap_or((want, ""));
    let (is_error, text) = match reply.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, reply),
    };
    // RedisBloom's errors have no error code, and clients expect them without one.
    let is_clean = !is_error || (text.len() > 4 && !text.contains(char::is_control));
    let right_class = match class {
        "error" => is_error,
        "ok" => !is_error,
        "any" => true,
        _ => panic!("unknown class {class}"),
    };
    is_clean && right_class && text.starts_with(beginning)
}

/// Sends a pipeline in pieces and reads replies in between.
fn pipeline(talk: &mut Talk, times: usize, line: &str) -> String {
    const AT_ONCE: usize = 1_000;
    let mut last = String::new();
    for from in (0..times).step_by(AT_ONCE) {
        let some = from..(from + AT_ONCE).min(times);
        let bytes: Vec<u8> = some.clone().flat_map(|count| encode(&words(line, count))).collect();
        talk.send(&bytes);
        for _ in some {
            last = talk.reply();
        }
    }
    last
}

/// Returns everything that comes back for invalid bytes, until the connection is closed.
fn exchange(server: &Running, bytes: &[u8]) -> String {
    let mut stream = Talk::to(server).0.into_inner();
    let mut sender = stream.try_clone().unwrap();
    let bytes = bytes.to_vec();
    // The server may close before it has read everything.
    let sending = std::thread::spawn(move || {
        let _ = sender.write_all(&bytes).and_then(|()| sender.shutdown(Shutdown::Write));
    });
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    sending.join().unwrap();
    String::from_utf8_lossy(&reply).into_owned()
}

#[test]
fn published_vulnerabilities_are_refused_and_affect_no_other_client() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = start(Settings::default());
    let engine = Arc::clone(server.shared().engine());
    engine.budget().set_limit(1 << 30);
    let rows = rows(include_str!("faults/rows.txt"));
    assert!(rows.len() > 25, "{} rows", rows.len());
    let bystander = Bystander::beside(&server);
    let mut talk = Talk::to(&server);
    // Allocate everything that is kept for ever before measuring.
    for line in
        ["FLUSHALL", "COMMAND LIST FILTERBY PATTERN x", "CONFIG GET *", "SCAN 0", "BF.ADD x a", "FLUSHALL"]
    {
        talk.ask(&words(line, 0));
    }
    let (mut sent, mut worst) = (0, Duration::ZERO);
    for row in &rows {
        // A busy machine only makes times longer: the shortest of several counts.
        let mut shortest = Duration::MAX;
        for _ in 0..ATTEMPTS {
            talk.ask(&["FLUSHALL"]);
            std::thread::sleep(Duration::from_millis(2));
            let held = || AllocMeter::process().held + i64::try_from(engine.budget().used()).unwrap();
            let (before, began) = (held(), Instant::now());
            bystander.longest();
            sent += row.steps.iter().map(|step| run_step(&server, &mut talk, row.id, step)).sum::<usize>();
            let stalled = bystander.longest();
            // The buffers of the connection are freed with it.
            talk = Talk::to(&server);
            talk.ask(&["PING"]);
            std::thread::sleep(Duration::from_millis(2));
            let growth = held() - before;
            println!(
                "{:<26} {growth:>9} bytes more, {:>9.1?}, others waited {stalled:?}",
                row.id,
                began.elapsed()
            );
            assert!(growth < GROWTH_BYTES, "{}: {growth} bytes more", row.id);
            shortest = shortest.min(stalled);
            if shortest < STALL {
                break;
            }
        }
        assert!(shortest < STALL, "{}: others waited {shortest:?}", row.id);
        worst = worst.max(shortest);
    }
    println!("{} rows, {sent} requests, others waited {worst:?} at most", rows.len());
}

/// Runs a step and returns the number of its requests.
fn run_step(server: &Running, talk: &mut Talk, id: &str, step: &Step<'_>) -> usize {
    let sent = match step {
        Step::Do(line) => {
            let reply = talk.ask(&words(line, 0));
            assert!(suits(&reply, "ok"), "{id}: {line}: {reply}");
            1
        }
        Step::Send { times, line, want } => {
            let reply = pipeline(talk, *times, line);
            assert!(suits(&reply, want), "{id}: {line:.200}: {reply}, wanted {want}");
            *times
        }
        Step::Bytes { bytes, want } => {
            let beginning = want.strip_prefix("closed").expect("bytes end with the connection").trim();
            let reply = exchange(server, bytes);
            assert!(reply.starts_with(beginning), "{id}: {reply:?}");
            // Nothing of it was run.
            let lines = reply.matches("\r\n").count();
            assert_eq!(lines, usize::from(!beginning.is_empty()), "{id}: {reply:?}");
            1
        }
    };
    assert_eq!(talk.ask(&["PING"]), "+PONG", "{id}");
    sent
}

#[test]
fn an_unauthenticated_client_is_refused_before_many_bytes_arrived() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = start(Settings { password: Some("secret".into()), ..Settings::default() });
    let before = AllocMeter::process().held;
    for bytes in [&b"*11\r\n"[..], b"*1\r\n$16385\r\n", b"*2147483648\r\n", b"*1\r\n$536870912\r\n"] {
        let reply = exchange(&server, bytes);
        assert!(reply.starts_with("-ERR Protocol error: "), "{}: {reply:?}", bytes.escape_ascii());
    }
    for line in ["BF.ADD x a", "RESTORE x 0 y", "FLUSHALL", "CONFIG GET *", "DUMP x", "SHUTDOWN"] {
        let reply = exchange(&server, &encode(&words(line, 0)));
        assert!(reply.starts_with("-NOAUTH "), "{line}: {reply:?}");
    }
    let growth = AllocMeter::process().held - before;
    assert!(growth < GROWTH_BYTES, "{growth} bytes more");
}

/// The values a name may hold when a command comes; the last one deletes it.
const STATES: [&str; 5] =
    ["BF.RESERVE n 0.01 100", "CF.RESERVE n 100", "MF.RESERVE n CAPACITY 100", "SET n text", "DEL n"];

#[test]
fn every_number_in_every_place_of_every_command_is_answered() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let limit = 64 << 20;
    let settings = Settings { max_filter_bytes: 4 << 20, ..Settings::default() };
    let server = start(settings);
    server.shared().engine().budget().set_limit(limit);
    let bystander = Bystander::beside(&server);
    let mut talk = Talk::to(&server);
    let extremes: Vec<&str> = requests::INTEGERS.iter().chain(&requests::FRACTIONS).copied().collect();
    AllocMeter::forget_peak();
    let before = AllocMeter::process().held;
    let (mut asked, mut commands) = (0_u64, 0);
    // These end the connection or the server, or are meant to take long. Repeated wrong passwords cause
    // delays.
    const OTHERS: [&str; 4] = ["quit", "shutdown", "debug", "auth"];
    for command in table::all().filter(|command| !OTHERS.contains(&command.name)) {
        commands += 1;
        let states = match command.family {
            Family::Connection | Family::Server => &STATES[4..],
            _ if command.flags.declared == Access::Neither => &STATES[4..],
            _ => &STATES[..],
        };
        let says_password = |shape: &Vec<Word>| shape.contains(&Word::Token("AUTH".to_owned()));
        for shape in requests::shapes(command).into_iter().filter(|shape| !says_password(shape)) {
            let values: Vec<usize> =
                (0..shape.len()).filter(|&at| matches!(shape[at], Word::Value(_))).collect();
            for state in states {
                let mut requests = vec![words("FLUSHALL", 0), words(state, 0)];
                for (&at, extreme) in
                    values.iter().flat_map(|at| extremes.iter().map(move |extreme| (at, extreme)))
                {
                    let word = |(place, word): (usize, &Word)| match word {
                        Word::Token(token) => token.clone().into_bytes(),
                        Word::Name => b"n".to_vec(),
                        Word::Value(_) if place == at => extreme.as_bytes().to_vec(),
                        Word::Value(name) => requests::sensible(name).to_vec(),
                    };
                    let mut request = vec![command.name.as_bytes().to_vec()];
                    request.extend(shape.iter().enumerate().map(word));
                    requests.push(request);
                }
                requests.push(words("RESET", 0));
                requests.push(words("ECHO end", 0));
                let bytes: Vec<u8> = requests.iter().flat_map(|request| encode(request)).collect();
                talk.send(&bytes);
                let replies: Vec<String> = requests.iter().map(|_| talk.reply()).collect();
                assert_eq!(replies.last().map(String::as_str), Some("$3"), "{} {shape:?}", command.name);
                asked += requests.len() as u64;
                let stalled = bystander.longest();
                assert!(stalled < STALL, "{} {shape:?}, {state}: others waited {stalled:?}", command.name);
            }
        }
        let used = server.shared().engine().budget().used();
        assert!(used <= limit, "{}: {used} bytes", command.name);
    }
    assert_eq!(talk.ask(&["FLUSHALL"]), "+OK");
    let most = AllocMeter::process().most - before;
    println!("{commands} commands, {asked} requests, {most} bytes more at most");
    // Memory stays far below the limits: filters, replies and requests.
    assert!(most < 2 * limit as i64, "{most} bytes more at most");
}
