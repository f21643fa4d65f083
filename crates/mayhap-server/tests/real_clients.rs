//! Clients of other projects, in many languages, talk to the real server with their default settings.
//!
//! The scripts are in `clients/`, one per client. A script stops at the first wrong answer and prints the
//! number of right answers. `tools/real-programs` installs the clients. If one is missing, its test prints so
//! and does nothing, unless `MAYHAP_REQUIRE_REAL=1`.
//!
//! No Java client is tested because Debian has none.

#[path = "../../mayhap-formats/tests/real/mod.rs"]
mod real;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use mayhap_server::{Running, Server, Settings};
use redis::bloom::{BloomFilterInfoType, BloomFilterScalingOptions};
use redis::{ErrorKind, ServerErrorKind, TypedCommands as _, Value};

use real::{find, run};

const PASSWORD: &str = "open sesame";

/// A server without a password, and one with a password.
struct Servers {
    open: Running,
    locked: Running,
}

impl Servers {
    fn start() -> Self {
        let start = |password: Option<&str>| {
            let password = password.map(Into::into);
            Server::start(Settings { port: Some(0), workers: 2, password, ..Settings::default() }).unwrap()
        };
        Self { open: start(None), locked: start(Some(PASSWORD)) }
    }

    fn port(server: &Running) -> String {
        server.addresses()[0].port().to_string()
    }

    /// Runs `command` with the addresses of the servers and `words` as arguments. It must print this number
    /// of checks.
    fn judge(&self, command: &mut Command, words: &[&str], checks: u32) {
        command.args([&Self::port(&self.open), &Self::port(&self.locked), PASSWORD]).args(words);
        let said = run(command, b"");
        let said = String::from_utf8_lossy(&said);
        // Some clients print more before that.
        assert_eq!(said.lines().last(), Some(&*format!("{checks} checks")), "{command:?}");
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

fn python(name: &str, words: &[&str], checks: u32) {
    let Some(python) = find("MAYHAP_TEST_PYTHON", "python3 with redis and valkey-glide") else { return };
    // Do not write folders of compiled scripts next to them.
    let mut command = Command::new(python);
    command.arg("-B").arg(script(name));
    Servers::start().judge(&mut command, words, checks);
}

fn node(name: &str, words: &[&str], checks: u32) {
    let Some(node) = find("MAYHAP_TEST_NODE", "node") else { return };
    if find_folder("MAYHAP_TEST_NODE_FOLDER", "redis, ioredis and iovalkey for Node").is_none() {
        return;
    }
    let mut command = Command::new(node);
    command.arg(script(name));
    Servers::start().judge(&mut command, words, checks);
}

/// As [`find`], for something that is not a program.
fn find_folder(variable: &str, what: &str) -> Option<PathBuf> {
    let found = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_dir());
    if found.is_none() {
        // Prints that it is missing, or fails.
        find(variable, what);
    }
    found
}

#[test]
fn redis_py_with_its_default_protocol() {
    python("python/redis_py.py", &[], 133);
}

#[test]
fn redis_py_with_the_old_protocol() {
    python("python/redis_py.py", &["2"], 133);
}

#[test]
fn valkey_glide() {
    python("python/glide_client.py", &[], 113);
}

#[test]
fn node_redis() {
    node("node/node_redis.mjs", &[], 120);
}

#[test]
fn ioredis() {
    node("node/ioredis.mjs", &["ioredis"], 111);
}

#[test]
fn iovalkey() {
    node("node/ioredis.mjs", &["iovalkey"], 57);
}

#[test]
fn redigo() {
    let Some(go) = find("MAYHAP_TEST_GO", "go") else { return };
    let Some(gopath) = find_folder("MAYHAP_TEST_GOPATH", "redigo for Go") else { return };
    let cache = env::var_os("MAYHAP_TEST_GO_CACHE")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"), PathBuf::from);
    let mut command = Command::new(go);
    command.env("GO111MODULE", "off").env("GOPATH", gopath).env("GOCACHE", cache).env("GOFLAGS", "");
    command.arg("run").arg(script("go/redigo.go"));
    Servers::start().judge(&mut command, &[], 49);
}

#[test]
fn redis_rb() {
    let Some(ruby) = find("MAYHAP_TEST_RUBY", "ruby with redis") else { return };
    let mut command = Command::new(ruby);
    command.arg(script("ruby/redis_rb.rb"));
    Servers::start().judge(&mut command, &[], 19);
}

#[test]
fn redis_of_perl() {
    let Some(perl) = find("MAYHAP_TEST_PERL", "perl with Redis") else { return };
    let mut command = Command::new(perl);
    command.arg(script("perl/redis.pl"));
    Servers::start().judge(&mut command, &[], 17);
}

/// Returns what redis-cli prints for one command.
fn cli(server: &Running, before: &[&str], words: &[&str]) -> String {
    let program = find("MAYHAP_TEST_REDIS_CLI", "redis-cli").unwrap();
    let mut command = Command::new(program);
    command.env_remove("REDISCLI_AUTH").args(["-p", &Servers::port(server)]).args(before).args(words);
    String::from_utf8(run(&mut command, b"")).unwrap().trim_end().to_owned()
}

#[test]
fn redis_cli() {
    if find("MAYHAP_TEST_REDIS_CLI", "redis-cli").is_none() {
        return;
    }
    let servers = Servers::start();
    let plain = |words: &str| cli(&servers.open, &[], &words.split(' ').collect::<Vec<_>>());
    let resp3 = |words: &str| {
        let words: Vec<_> = words.split(' ').collect();
        cli(&servers.open, &["-3", "--no-raw"], &words)
    };
    assert_eq!(plain("PING"), "PONG");
    assert_eq!(plain("BF.RESERVE seen 0.01 1000"), "OK");
    assert_eq!(plain("BF.MADD seen ada bob ada"), "1\n1\n0");
    assert_eq!(resp3("BF.MEXISTS seen ada nobody"), "1) (true)\n2) (false)");
    assert_eq!(resp3("BF.ADD seen cyd"), "(true)");
    assert_eq!(resp3("BF.CARD seen"), "(integer) 3");
    assert_eq!(
        resp3("BF.INFO seen"),
        "1# Capacity => (integer) 1000\n2# Size => (integer) 1480\n3# Number of filters => (integer) 1\n\
         4# Number of items inserted => (integer) 3\n5# Expansion rate => (integer) 2"
    );
    assert_eq!(plain("CF.INSERTNX have ITEMS ada ada"), "1\n0");
    assert_eq!(plain("CF.DEL have ada"), "1");
    assert_eq!(plain("TYPE have"), "MBbloomCF");
    assert_eq!(plain("DBSIZE"), "2");
    assert!(plain("INFO server").contains("redis_version:"));
    // redis-cli prints errors in the words of the server.
    assert!(plain("BF.RESERVE seen 0.01 1000").contains("ERR item exists"));
    assert!(plain("NOSUCH seen").contains("ERR unknown command"));
    // All names, by SCAN, and all sizes, by MEMORY USAGE.
    let mut names: Vec<String> = cli(&servers.open, &["--scan"], &[]).lines().map(str::to_owned).collect();
    names.sort();
    assert_eq!(names, ["have", "seen"]);
    assert!(cli(&servers.open, &["--memkeys"], &[]).contains("Biggest"), "memkeys");
    // Many commands through a pipe: redis-cli waits for the reply to an ECHO at the end.
    let program = find("MAYHAP_TEST_REDIS_CLI", "redis-cli").unwrap();
    let mut command = Command::new(&program);
    command.args(["-p", &Servers::port(&servers.open), "--pipe"]);
    let requests: String = (0..10_000).map(|item| format!("BF.ADD piped {item}\r\n")).collect();
    let said = String::from_utf8(run(&mut command, requests.as_bytes())).unwrap();
    assert!(said.contains("errors: 0, replies: 10000"), "{said}");
    // A password, on the command line and from the environment.
    assert!(cli(&servers.locked, &[], &["BF.ADD", "seen", "x"]).contains("NOAUTH"));
    let mut command = Command::new(&program);
    command.env("REDISCLI_AUTH", PASSWORD).args([
        "-p",
        &Servers::port(&servers.locked),
        "BF.ADD",
        "seen",
        "x",
    ]);
    assert_eq!(run(&mut command, b""), b"1\n");
    assert_eq!(
        cli(&servers.locked, &["--no-auth-warning", "-a", PASSWORD], &["BF.EXISTS", "seen", "x"]),
        "1"
    );
}

/// redis-rs, with its own functions where it has them.
fn redis_rs(servers: &Servers, protocol: &str) {
    let url = format!("redis://127.0.0.1:{}/?protocol={protocol}", Servers::port(&servers.open));
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_connection().unwrap();
    let () = redis::cmd("FLUSHALL").query(&mut connection).unwrap();
    let c = &mut connection;

    c.bf_reserve("seen", 0.01, 1000).unwrap();
    let again = c.bf_reserve("seen", 0.01, 1000).unwrap_err();
    assert_eq!(
        (again.kind(), again.detail()),
        (ErrorKind::Server(ServerErrorKind::ResponseError), Some("item exists"))
    );
    assert_eq!((c.bf_add("seen", "ada"), c.bf_add("seen", "ada")), (Ok(true), Ok(false)));
    assert_eq!(c.bf_madd("seen", &["ada", "bob", "cyd"]), Ok(vec![false, true, true]));
    assert_eq!((c.bf_exists("seen", "ada"), c.bf_exists("seen", "nobody")), (Ok(true), Ok(false)));
    assert_eq!(c.bf_mexists("seen", &["bob", "nobody"]), Ok(vec![true, false]));
    assert_eq!(c.bf_insert("made", &["x", "y", "x"]), Ok(vec![true, true, false]));
    assert_eq!(c.bf_card("seen"), Ok(3));
    let info = c.bf_info("seen").unwrap();
    assert_eq!((*info["Capacity"], *info["Size"], *info["Number of items inserted"]), (1000.0, 1480.0, 3.0));
    assert_eq!(*c.bf_info_type("seen", BloomFilterInfoType::Capacity).unwrap(), 1000.0);
    c.bf_reserve_options("fixed", 0.01, 100, BloomFilterScalingOptions::NonScaling).unwrap();

    // Chunks.
    let items: Vec<String> = (0..10_000).map(|item| item.to_string()).collect();
    c.bf_madd("seen", &items[..5_000]).unwrap();
    let mut iterator = 0;
    loop {
        let chunk = c.bf_scandump("seen", iterator).unwrap();
        iterator = chunk.iterator;
        if iterator == 0 {
            break;
        }
        c.bf_loadchunk("seen copy", chunk).unwrap();
    }
    assert_eq!(c.bf_mexists("seen copy", &items), c.bf_mexists("seen", &items));

    // It has no functions for cuckoo filters.
    let mut number = |words: &str| -> i64 {
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        words.for_each(|word| {
            command.arg(word);
        });
        match command.query(c).unwrap() {
            Value::Boolean(yes) => yes.into(),
            Value::Int(number) => number,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        [number("CF.ADD have ada"), number("CF.ADD have ada"), number("CF.COUNT have ada")],
        [1, 1, 2]
    );
    assert_eq!(
        [number("CF.ADDNX have ada"), number("CF.DEL have ada"), number("CF.EXISTS have ada")],
        [0, 1, 1]
    );

    // Pipelines and transactions.
    let mut pipeline = redis::pipe();
    for user in 0..500 {
        pipeline.bf_add(format!("user:{user}"), "x");
    }
    let added: Vec<bool> = pipeline.query(c).unwrap();
    assert!(added.len() == 500 && added.iter().all(|&new| new));
    let mut names: Vec<String> = c.scan_match::<_, String>("user:*").unwrap().map(Result::unwrap).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 500);
    let both: (bool, bool) =
        redis::pipe().atomic().bf_add("in one go", "x").bf_exists("in one go", "x").query(c).unwrap();
    assert_eq!(both, (true, true));
    let mut other = client.get_connection().unwrap();
    let mut tries = 0;
    let (new,): (bool,) = redis::transaction(c, &["in one go"], |c, pipeline| {
        tries += 1;
        if tries == 1 {
            other.bf_add("in one go", "from another client").unwrap();
        }
        pipeline.bf_add("in one go", "y").query(c)
    })
    .unwrap();
    assert_eq!((tries, new), (2, true), "the first try was disturbed");

    // Any bytes.
    let every: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    c.bf_madd(&b"\0\r\n\xff"[..], &every).unwrap();
    assert_eq!(c.bf_mexists(&b"\0\r\n\xff"[..], &every), Ok(vec![true; 256]));

    // A connection that the server has closed.
    let mine: i64 = redis::cmd("CLIENT").arg("ID").query(&mut other).unwrap();
    let killed: i64 = redis::cmd("CLIENT").arg("KILL").arg("ID").arg(mine).query(c).unwrap();
    assert_eq!(killed, 1);
    let ended = other.bf_add("seen", "x").unwrap_err();
    assert!(ended.is_connection_dropped() || ended.is_io_error(), "{ended:?}");
    assert_eq!(client.get_connection().unwrap().bf_exists("seen", "ada"), Ok(true));
}

#[test]
fn redis_rs_in_both_protocols() {
    let servers = Servers::start();
    redis_rs(&servers, "resp3");
    redis_rs(&servers, "resp2");
    let connect = |password: &str| {
        let url = format!("redis://:{password}@127.0.0.1:{}", Servers::port(&servers.locked));
        redis::Client::open(url).unwrap().get_connection()
    };
    assert_eq!(connect("wrong").err().map(|error| error.kind()), Some(ErrorKind::AuthenticationFailed));
    assert_eq!(connect("open%20sesame").unwrap().bf_add("seen", "x"), Ok(true));
}
