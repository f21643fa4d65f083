//! `--load dump.rdb`: the keys of a Redis server are loaded before the first client connects, and an
//! incomplete import is never served.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mayhap_fuzz::mutate::{Field, ModuleValue, module_id};
use mayhap_fuzz::seal;
use mayhap_server::import::{ImportError, MARK_FILE};
use mayhap_server::{Running, Server, Settings, StartError};
use tempfile::TempDir;

/// A file that a real RedisBloom saved: `bloom3`, `fixed` and `cuckoo`.
fn redisbloom_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../mayhap-formats/tests/vectors/redisbloom_rdb/redisbloom.rdb")
}

fn start(folder: &Path, load: Option<PathBuf>) -> Result<Running, StartError> {
    Server::start(Settings {
        port: Some(0),
        workers: 1,
        dir: Some(folder.to_owned()),
        load,
        ..Settings::default()
    })
}

/// Returns the replies to all lines.
fn ask(server: &Running, lines: &[&str]) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.addresses()[0].port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(format!("{}\r\nQUIT\r\n", lines.join("\r\n")).as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply.strip_suffix("+OK\r\n").unwrap().to_owned()
}

fn stop(server: Running) {
    server.stop_handle().stop();
    server.wait().unwrap();
}

const MEMBERS: [&str; 4] =
    ["BF.EXISTS bloom3 vector-499", "BF.EXISTS fixed vector-199", "CF.EXISTS cuckoo vector-199", "DBSIZE"];

#[test]
fn filters_of_a_real_redisbloom_are_served_and_kept() {
    let folder = TempDir::new().unwrap();
    let server = start(folder.path(), Some(redisbloom_file())).unwrap();
    assert_eq!(ask(&server, &MEMBERS), ":1\r\n:1\r\n:1\r\n:3\r\n");
    assert_eq!(ask(&server, &["BF.ADD bloom3 new", "BF.EXISTS fixed non-member-0"]), ":1\r\n:0\r\n");
    assert!(!folder.path().join(MARK_FILE).exists());
    stop(server);
    // They are in the folder now: the file is not needed again, and loading it again is refused.
    let refused = start(folder.path(), Some(redisbloom_file())).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "--load needs an empty data folder, this one holds 3 names: choose another --dir, or start without --load"
    );
    let server = start(folder.path(), None).unwrap();
    assert_eq!(ask(&server, &MEMBERS), ":1\r\n:1\r\n:1\r\n:3\r\n");
    assert_eq!(ask(&server, &["BF.EXISTS bloom3 new"]), ":1\r\n");
}

#[test]
fn an_incomplete_import_is_not_served_and_can_begin_again() {
    let folder = TempDir::new().unwrap();
    stop(start(folder.path(), Some(redisbloom_file())).unwrap());
    // As if the process had ended before the last key: the mark exists, and so do some keys.
    fs::write(folder.path().join(MARK_FILE), "dump.rdb").unwrap();
    let refused = start(folder.path(), None).unwrap_err();
    assert!(matches!(refused, StartError::Import(ImportError::Unfinished { .. })), "{refused}");
    let server = start(folder.path(), Some(redisbloom_file())).unwrap();
    assert_eq!(ask(&server, &MEMBERS), ":1\r\n:1\r\n:1\r\n:3\r\n");
    assert!(!folder.path().join(MARK_FILE).exists());
}

#[test]
fn a_damaged_file_is_refused_before_anything_is_loaded() {
    let folder = TempDir::new().unwrap();
    let damaged = folder.path().join("dump.rdb");
    let mut bytes = fs::read(redisbloom_file()).unwrap();
    // In the bits of a filter: only the checksum at the end of the file shows the damage.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&damaged, &bytes).unwrap();
    let data = folder.path().join("data");
    for (path, message) in [
        (
            damaged.clone(),
            format!("{}: rdb file is damaged: its checksum does not match its bytes", damaged.display()),
        ),
        (folder.path().to_owned(), format!("{} is not a regular file", folder.path().display())),
        (folder.path().join("none"), format!("cannot open {}", folder.path().join("none").display())),
    ] {
        assert_eq!(start(&data, Some(path)).unwrap_err().to_string(), message);
    }
    let server = start(&data, None).unwrap();
    assert_eq!(ask(&server, &["DBSIZE"]), ":0\r\n");
}

/// A file with one key, in Redis's format.
fn file_with(value: &ModuleValue) -> Vec<u8> {
    let mut file = b"REDIS0009".to_vec();
    file.extend([0xfe, 0]);
    let value = value.to_bytes();
    file.extend([value[0], 1, b'k']);
    file.extend_from_slice(&value[1..]);
    file.push(0xff);
    let checksum = seal::crc64(&file);
    file.extend_from_slice(&checksum.to_le_bytes());
    file
}

#[test]
fn unsupported_values_are_refused_or_skipped_by_name() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("dump.rdb");
    // A filter of a later RedisBloom: starting without it would answer no for its items.
    let value = ModuleValue { id: module_id("MBbloom--", 5), fields: vec![Field::Unsigned(1)] };
    fs::write(&path, file_with(&value)).unwrap();
    let refused = start(&folder.path().join("newer"), Some(path.clone())).unwrap_err().to_string();
    assert_eq!(
        refused,
        "key k cannot be loaded: ERR Bad data format: module type MBbloom-- has encoding version 5, \
         the newest this program reads is 4"
    );
    // A key that is not a filter is skipped and logged.
    for name in ["TDIS-TYPE", "TopK-TYPE", "CMSk-TYPE"] {
        let fields = vec![Field::Double(100.0), Field::Unsigned(u64::MAX), Field::String(vec![7; 9])];
        fs::write(&path, file_with(&ModuleValue { id: module_id(name, 0), fields })).unwrap();
        let server = start(&folder.path().join(name), Some(path.clone())).unwrap();
        assert_eq!(ask(&server, &["DBSIZE"]), ":0\r\n", "{name}");
    }
}

/// A Redis server that is stopped on drop.
struct Redis(Child, PathBuf);

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Redis {
    /// `None` if the program is missing and the tests may be skipped.
    fn start(folder: &Path) -> Option<Self> {
        let Some(program) = std::env::var_os("MAYHAP_TEST_REDIS_SERVER") else {
            assert!(
                std::env::var_os("MAYHAP_REQUIRE_REAL").is_none(),
                "no redis-server: run tools/real-programs"
            );
            return None;
        };
        let socket = folder.join("socket");
        let child = Command::new(program)
            .args(["--port", "0", "--save", "", "--dir"])
            .arg(folder)
            .arg("--unixsocket")
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self(child, socket))
    }

    fn ask(&self, lines: &[&str]) -> String {
        let begun = Instant::now();
        let mut stream = loop {
            match std::os::unix::net::UnixStream::connect(&self.1) {
                Ok(stream) => break stream,
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(30), "{error}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        stream.write_all(format!("{}\r\nQUIT\r\n", lines.join("\r\n")).as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }
}

#[test]
fn a_file_saved_by_a_real_redis_is_read_to_its_end() {
    let folder = TempDir::new().unwrap();
    let Some(redis) = Redis::start(folder.path()) else { return };
    let long = "x".repeat(5_000);
    let lines = [
        "SET text hello",
        "SET number 12345",
        &format!("SET packed {long}"),
        "SETBIT bits 100 1",
        "SET gone soon PX 1",
        "SET later v PXAT 4102444800000",
        "RPUSH list a b 3",
        &format!("RPUSH long-list {long} {long} {long}"),
        "SADD numbers 1 2 3",
        "SADD words a b c",
        &format!("SADD long-set {long} b"),
        "ZADD zset 1.5 a 2 b",
        &format!("ZADD long-zset 1.5 {long} +inf b"),
        "HSET hash a 1 b 2",
        &format!("HSET long-hash a {long}"),
        "XADD stream 1-1 a 1 b 2",
        "XADD stream 2-1 a 1 b 2",
        "XGROUP CREATE stream group 0",
        "XREADGROUP GROUP group me COUNT 1 STREAMS stream >",
        "SELECT 2",
        "SET elsewhere v",
    ];
    let told = redis.ask(&lines);
    assert!(!told.contains("-ERR"), "{told}");
    std::thread::sleep(Duration::from_millis(5));
    assert!(redis.ask(&["SAVE"]).starts_with("+OK"));
    let data = folder.path().join("data");
    let server = start(&data, Some(folder.path().join("dump.rdb"))).unwrap();
    assert_eq!(
        ask(
            &server,
            &["GET text", "GET number", "STRLEN packed", "GETBIT bits 100", "EXISTS gone elsewhere list"]
        ),
        "$5\r\nhello\r\n$5\r\n12345\r\n:5000\r\n:1\r\n:0\r\n"
    );
    assert_eq!(ask(&server, &["PEXPIRETIME later", "DBSIZE"]), ":4102444800000\r\n:5\r\n");
}
