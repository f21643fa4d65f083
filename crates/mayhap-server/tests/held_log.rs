//! Runs every command of the table while the log's sync is blocked. A reply that acknowledges a change waits until
//! the log has the change; no other reply waits. `CLIENT PAUSE WRITE` must delay the same commands.
//!
//! A row without a sample request fails the test, so a new command cannot be forgotten.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use mayhap_command::{Changes, Command, Limits, Reply, Request, Scratch, table};
use mayhap_engine::log::Policy;
use mayhap_engine::{AppendFile, Disk, DiskFile, Engine, Files, System};
use mayhap_fuzz::resp::encode;
use mayhap_server::{Running, Server, Settings};

/// A reply that does not arrive within this time counts as held. Another client of the same worker must get two
/// replies first.
const HELD: Duration = Duration::from_millis(20);

/// A gate for syncs: they wait while it is shut.
#[derive(Debug, Default)]
struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn shut(&self, is_shut: bool) {
        *self.is_shut.lock().unwrap() = is_shut;
        self.opened.notify_all();
    }

    fn pass(&self) {
        drop(self.opened.wait_while(self.is_shut.lock().unwrap(), |is_shut| *is_shut).unwrap());
    }
}

/// A folder that syncs its log only while the gate is open.
#[derive(Debug)]
struct Gated {
    files: Files,
    gate: Arc<Gate>,
}

struct GatedFile {
    file: Arc<dyn AppendFile>,
    gate: Arc<Gate>,
}

impl AppendFile for GatedFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass();
        self.file.sync_data()
    }
}

impl Disk for Gated {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.files.create(name)
    }

    fn append(&self, name: &str) -> io::Result<Arc<dyn AppendFile>> {
        Ok(Arc::new(GatedFile { file: self.files.append(name)?, gate: Arc::clone(&self.gate) }))
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn io::Read + Send>> {
        self.files.read(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.files.sync_dir()
    }
}

/// A server with one worker. Its log syncs after every change, when the gate is open.
struct Stage {
    server: Running,
    engine: Arc<Engine>,
    gate: Arc<Gate>,
    _folder: tempfile::TempDir,
}

impl Drop for Stage {
    /// A failed test must not wait for its own gate.
    fn drop(&mut self) {
        self.gate.shut(false);
    }
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let gate = Arc::new(Gate::default());
        let disk = Gated { files: Files::open(folder.path()).unwrap(), gate: Arc::clone(&gate) };
        let engine = Arc::new(Engine::new(Limits::default(), Arc::new(System)));
        engine.recover(Arc::new(disk), Policy::Always).unwrap();
        let settings = Settings {
            port: Some(0),
            workers: 1,
            enable: vec!["debug".to_owned()],
            log_level: mayhap_server::logging::Level::Error,
            ..Settings::default()
        };
        let server = Server::start_with(settings, Arc::clone(&engine)).unwrap();
        Self { server, engine, gate, _folder: folder }
    }

    fn talk(&self) -> Talk {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.server.addresses()[0].port())).unwrap();
        stream.set_nodelay(true).unwrap();
        Talk(BufReader::new(stream))
    }

    /// Returns the number of records in the log.
    fn records(&self) -> u64 {
        self.engine.log().unwrap().next()
    }

    /// Runs a request that changes nothing, without a connection.
    fn look(&self, line: &str) -> Reply {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let command = table::find(words[0]).unwrap();
        let mut replies = Vec::new();
        self.engine.execute(&[Request { command, words: &words }], &mut Scratch::default(), &mut replies);
        replies.pop().unwrap()
    }

    /// Returns the words of a line. A word such as `=DUMP_f` stands for the reply to the request `DUMP f`, or for
    /// the reply's second part.
    fn words(&self, line: &str) -> Vec<Vec<u8>> {
        let word = |word: &str| match word.strip_prefix('=') {
            None => word.as_bytes().to_vec(),
            Some(line) => match self.look(&line.replace('_', " ")) {
                Reply::Bulk(bytes) => bytes,
                Reply::Array(mut parts) => match parts.pop() {
                    Some(Reply::Bulk(bytes)) => bytes,
                    other => panic!("{line}: {other:?}"),
                },
                other => panic!("{line}: {other:?}"),
            },
        };
        line.split(' ').map(word).collect()
    }
}

/// A connection that reads complete replies.
struct Talk(BufReader<TcpStream>);

impl Talk {
    fn send(&mut self, words: &[Vec<u8>]) {
        self.0.get_mut().write_all(&encode(words)).unwrap();
    }

    /// Returns whether a reply arrives within `wait`.
    fn is_answered(&mut self, wait: Duration) -> bool {
        self.0.get_ref().set_read_timeout(Some(wait)).unwrap();
        match self.0.fill_buf() {
            Ok(bytes) => !bytes.is_empty(),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Reads a whole reply, and returns its first line.
    fn reply(&mut self) -> String {
        self.0.get_ref().set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        self.part()
    }

    fn part(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a reply");
        let line = line.trim_end().to_owned();
        let number = || line[1..].parse::<i64>().unwrap_or_else(|_| panic!("no length: {line:?}"));
        let parts = match line.as_bytes()[0] {
            b'$' if number() >= 0 => {
                self.0.read_exact(&mut vec![0; usize::try_from(number()).unwrap() + 2]).unwrap();
                0
            }
            b'*' => number().max(0),
            _ => 0,
        };
        (0..parts).for_each(|_| drop(self.part()));
        line
    }

    fn ask(&mut self, words: &[Vec<u8>]) -> String {
        self.send(words);
        self.reply()
    }
}

/// A typical request of a command.
struct Sample {
    /// The requests that run first, on the same connection.
    before: &'static str,
    line: &'static str,
    /// Whether the reply is an error, because the command is refused here.
    is_refused: bool,
}

/// The sample of each command: the requests that run first, separated by semicolons, and the request itself.
#[rustfmt::skip]
const SAMPLES: &[(&str, &str)] = &[
    ("", "BF.RESERVE n 0.01 100"),
    ("", "BF.ADD n a"),
    ("", "BF.MADD n a b"),
    ("", "BF.INSERT n ITEMS a b"),
    ("BF.ADD n a", "BF.EXISTS n a"),
    ("BF.ADD n a", "BF.MEXISTS n a b"),
    ("BF.ADD n a", "BF.CARD n"),
    ("BF.ADD n a", "BF.INFO n"),
    ("BF.ADD n a", "BF.DEBUG n"),
    ("BF.ADD n a", "BF.SCANDUMP n 0"),
    ("BF.ADD f a", "BF.LOADCHUNK n 1 =BF.SCANDUMP_f_0"),
    ("", "CF.RESERVE n 100"),
    ("", "CF.ADD n a"),
    ("", "CF.ADDNX n a"),
    ("", "CF.INSERT n ITEMS a b"),
    ("", "CF.INSERTNX n ITEMS a b"),
    ("CF.ADD n a", "CF.EXISTS n a"),
    ("CF.ADD n a", "CF.MEXISTS n a b"),
    ("CF.ADD n a", "CF.COUNT n a"),
    ("CF.ADD n a", "CF.DEL n a"),
    // Delete only a few items: more deletions would compact the filter automatically.
    ("CF.RESERVE n 8 BUCKETSIZE 2 EXPANSION 1;\
      CF.INSERT n ITEMS 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 \
      20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39;\
      CF.DEL n 0;CF.DEL n 1;CF.DEL n 2", "CF.COMPACT n"),
    ("CF.ADD n a", "CF.INFO n"),
    ("CF.ADD n a", "CF.DEBUG n"),
    ("CF.ADD n a", "CF.SCANDUMP n 0"),
    ("CF.ADD f a", "CF.LOADCHUNK n 1 =CF.SCANDUMP_f_0"),
    ("", "MF.RESERVE n CAPACITY 100"),
    ("MF.RESERVE n CAPACITY 100", "MF.ADD n a"),
    ("MF.RESERVE n CAPACITY 100", "MF.MADD n a b"),
    ("", "MF.INSERT n CAPACITY 100 ITEMS a b"),
    ("MF.RESERVE n CAPACITY 100", "MF.EXISTS n a"),
    ("MF.RESERVE n CAPACITY 100", "MF.MEXISTS n a b"),
    ("MF.RESERVE n KIND cuckoo CAPACITY 100;MF.ADD n a", "MF.DEL n a"),
    ("MF.RESERVE n KIND counting CAPACITY 100;MF.ADD n a", "MF.COUNT n a"),
    ("MF.RESERVE n CAPACITY 100", "MF.CARD n"),
    ("MF.RESERVE n CAPACITY 100;MF.ADD n a", "MF.CLEAR n"),
    ("MF.RESERVE n CAPACITY 100", "MF.INFO n"),
    ("MF.RESERVE n CAPACITY 100 KEYLESS;MF.RESERVE f CAPACITY 100 KEYLESS;MF.ADD f a", "MF.MERGE n f"),
    ("", "MF.PLAN 100 0.01"),
    ("MF.RESERVE n CAPACITY 100", "MF.EXPLAIN n a"),
    ("MF.RESERVE n CAPACITY 100", "MF.DUMP n 0"),
    ("MF.RESERVE f CAPACITY 100 KEYLESS", "MF.LOAD n 0 =MF.DUMP_f_0"),
    ("", "MF.BUILD n BEGIN KIND ribbon FPR 0.01"),
    ("", "SETBIT n 1 1"),
    ("SET n text", "GETBIT n 1"),
    ("SET n text", "BITCOUNT n"),
    ("SET n text", "BITPOS n 1"),
    ("SET f text", "BITOP NOT n f"),
    ("", "BITFIELD n SET u8 0 1"),
    ("SET n text", "BITFIELD_RO n GET u8 0"),
    ("SET n text", "GET n"),
    ("", "SET n text"),
    ("SET n text", "GETDEL n"),
    ("SET n text", "STRLEN n"),
    ("SET n text", "GETRANGE n 0 1"),
    ("", "SETRANGE n 1 text"),
    ("", "APPEND n text"),
    ("SET n text", "DEL n"),
    ("SET n text", "UNLINK n"),
    ("SET n text", "EXISTS n"),
    ("SET n text", "TOUCH n"),
    ("SET n text", "TYPE n"),
    ("SET n text", "RENAME n f"),
    ("SET n text", "RENAMENX n f"),
    ("SET n text", "COPY n f"),
    ("SET n text", "MOVE n 1"),
    ("SET n text", "SCAN 0"),
    ("SET n text", "KEYS *"),
    ("SET n text", "RANDOMKEY"),
    ("SET n text", "DBSIZE"),
    ("SET n text", "FLUSHDB"),
    ("SET n text", "FLUSHALL"),
    ("SET n text", "EXPIRE n 1000"),
    ("SET n text", "PEXPIRE n 1000000"),
    ("SET n text", "EXPIREAT n 9999999999"),
    ("SET n text", "PEXPIREAT n 9999999999999"),
    ("SET n text", "TTL n"),
    ("SET n text", "PTTL n"),
    ("SET n text", "EXPIRETIME n"),
    ("SET n text", "PEXPIRETIME n"),
    ("SET n text EX 1000", "PERSIST n"),
    ("SET n text", "DUMP n"),
    ("SET f text", "RESTORE n 0 =DUMP_f"),
    ("SET n text", "MEMORY USAGE n"),
    ("SET n text", "OBJECT ENCODING n"),
    ("", "WAIT 0 0"),
    ("SET n text", "SAVE"),
    ("SET n text", "BGSAVE"),
    ("SET n text", "BGREWRITEAOF"),
    ("", "LASTSAVE"),
    ("", "HELLO 2"),
    ("", "AUTH any"),
    ("", "PING"),
    ("", "ECHO text"),
    ("", "QUIT"),
    ("", "RESET"),
    ("", "SELECT 0"),
    ("", "CLIENT ID"),
    ("", "MULTI"),
    ("MULTI;SET n text;GET n", "EXEC"),
    ("MULTI;SET n text", "DISCARD"),
    ("", "WATCH n"),
    ("WATCH n", "UNWATCH"),
    ("", "COMMAND COUNT"),
    ("", "INFO"),
    ("", "CONFIG GET port"),
    ("", "SLOWLOG LEN"),
    ("", "LATENCY LATEST"),
    ("", "CLUSTER INFO"),
    ("", "DEBUG SLEEP 0"),
    // A real shutdown would end the server.
    ("", "SHUTDOWN ABORT"),
    ("", "TIME"),
    ("", "ROLE"),
    ("", "REPLICAOF NO ONE"),
    ("", "SLAVEOF NO ONE"),
    ("", "READONLY"),
    ("", "READWRITE"),
    ("", "ASKING"),
    ("", "MODULE LIST"),
    ("", "ACL WHOAMI"),
];

/// Commands that are not possible here, or that refuse their sample.
const REFUSED: [&str; 9] =
    ["auth", "asking", "bgrewriteaof", "bgsave", "move", "readonly", "readwrite", "save", "shutdown"];

/// Returns the samples by command, exactly one for each row of the table.
fn samples() -> BTreeMap<&'static str, Sample> {
    let mut samples = BTreeMap::new();
    for &(before, line) in SAMPLES {
        let name = line.split(' ').next().unwrap();
        let command = table::find(name.as_bytes()).unwrap_or_else(|| panic!("{name} is not in the table"));
        let is_refused = REFUSED.contains(&command.name);
        let twice = samples.insert(command.name, Sample { before, line, is_refused });
        assert!(twice.is_none(), "{name} has two samples");
    }
    for command in table::all() {
        assert!(samples.contains_key(command.name), "{} has no sample: add one", command.name);
    }
    samples
}

/// Brings the server into the state before a sample, and syncs everything.
fn prepare(stage: &Stage, sample: &Sample) -> (Talk, Vec<Vec<u8>>) {
    let mut talk = stage.talk();
    for line in std::iter::once("FLUSHALL").chain(sample.before.split(';').filter(|line| !line.is_empty())) {
        let reply = talk.ask(&stage.words(line));
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
    let words = stage.words(sample.line);
    stage.engine.log().unwrap().sync().unwrap();
    (talk, words)
}

/// Returns whether the sample gets a reply while changes are held back. Another client must get its replies.
fn is_answered(stage: &Stage, talk: &mut Talk, words: &[Vec<u8>], expected: bool) -> bool {
    let mut other = stage.talk();
    talk.send(words);
    for _ in 0..2 {
        assert_eq!(other.ask(&stage.words("PING")), "+PONG");
    }
    talk.is_answered(if expected { Duration::from_secs(60) } else { HELD })
}

fn check_reply(command: &Command, sample: &Sample, reply: &str) {
    let is_error = reply.starts_with('-');
    assert_eq!(is_error, sample.is_refused, "{}: {reply}", command.name);
}

#[test]
fn no_change_is_answered_before_the_log_has_it() {
    let stage = Stage::new();
    let (mut held, mut answered) = (0, 0);
    for (name, sample) in samples() {
        let command = table::find(name.as_bytes()).unwrap();
        let (mut talk, words) = prepare(&stage, &sample);
        let before = stage.records();
        stage.gate.shut(true);
        let expected = !command.may_change() || sample.is_refused;
        let is_answered = is_answered(&stage, &mut talk, &words, expected);
        let has_changed = stage.records() > before;
        stage.gate.shut(false);
        // The row must agree with the command's effect.
        assert_eq!(has_changed, !expected, "{name}: its row says {:?}", command.flags.changes);
        assert_eq!(is_answered, !has_changed, "{name}: {has_changed}");
        check_reply(command, &sample, &talk.reply());
        *(if is_answered { &mut answered } else { &mut held }) += 1;
    }
    println!("{held} commands were held, {answered} answered");
    assert!(held > 40 && answered > 60, "{held} {answered}");
}

#[test]
fn a_pause_of_writes_holds_all_that_may_change_something() {
    let stage = Stage::new();
    let mut operator = stage.talk();
    for (name, sample) in samples() {
        let command = table::find(name.as_bytes()).unwrap();
        let (mut talk, words) = prepare(&stage, &sample);
        let before = stage.records();
        assert_eq!(operator.ask(&stage.words("CLIENT PAUSE 100000 WRITE")), "+OK");
        let expected = command.flags.changes == Changes::Nothing;
        let is_answered = is_answered(&stage, &mut talk, &words, expected);
        assert_eq!(is_answered, expected, "{name}");
        assert_eq!(stage.records(), before, "{name}: something changed during a pause");
        assert_eq!(operator.ask(&stage.words("CLIENT UNPAUSE")), "+OK");
        check_reply(command, &sample, &talk.reply());
    }
}

/// `COMMAND` declares this command read-only although it changes a value.
#[test]
fn a_compaction_waits_for_the_log_and_for_a_pause() {
    let stage = Stage::new();
    let samples = samples();
    let sample = &samples["cf.compact"];
    let (mut talk, words) = prepare(&stage, sample);
    let before = stage.records();
    stage.gate.shut(true);
    assert!(!is_answered(&stage, &mut talk, &words, false), "answered before the log has it");
    assert_eq!(stage.records(), before + 1);
    stage.gate.shut(false);
    assert_eq!(talk.reply(), "+OK");

    let (mut talk, words) = prepare(&stage, sample);
    let mut operator = stage.talk();
    assert_eq!(operator.ask(&stage.words("CLIENT PAUSE 100000 WRITE")), "+OK");
    assert!(!is_answered(&stage, &mut talk, &words, false), "run during a pause");
    assert_eq!(operator.ask(&stage.words("CLIENT UNPAUSE")), "+OK");
    assert_eq!(talk.reply(), "+OK");
    // Clients see the same flags as from RedisBloom.
    talk.send(&stage.words("COMMAND INFO cf.compact"));
    let mut entry = String::new();
    talk.0.get_ref().set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    while !entry.contains("+readonly") {
        talk.0.read_line(&mut entry).unwrap();
    }
    assert!(!entry.contains("+write"));
}
