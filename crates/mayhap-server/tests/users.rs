//! Users on a real server: what they may and may not do, by every route.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mayhap_server::{Running, Server, Settings, StartError};

const NO_NAME: &str = "-NOPERM No permissions to access a key\r\n";
const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

fn no_command(user: &str, command: &str) -> String {
    format!("-NOPERM User {user} has no permissions to run the '{command}' command\r\n")
}

fn start(settings: Settings) -> Running {
    Server::start(Settings { port: Some(0), workers: 1, ..settings }).unwrap()
}

fn with_users(users: &[&str]) -> Settings {
    Settings { user: users.iter().map(ToString::to_string).collect(), ..Settings::default() }
}

struct Talk(TcpStream, u32);

impl Talk {
    fn to(server: &Running) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.addresses()[0].port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self(stream, 0)
    }

    fn of(server: &Running, user: &str) -> Self {
        let mut talk = Self::to(server);
        talk.says(&format!("AUTH {user} pw"), "+OK\r\n");
        talk
    }

    /// Sends lines and expects exactly these replies.
    fn says(&mut self, line: &str, expected: &str) {
        self.0.write_all(format!("{line}\r\n").as_bytes()).unwrap();
        self.reads(expected, line);
    }

    fn reads(&mut self, expected: &str, line: &str) {
        let mut reply = vec![0; expected.len()];
        self.0.read_exact(&mut reply).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(String::from_utf8_lossy(&reply), expected, "{line}");
    }

    /// Returns everything that a line is answered with.
    fn asks(&mut self, line: &str) -> String {
        // A new mark each time, because some commands show earlier requests.
        self.1 += 1;
        let mark = format!("end-{}-of-it\r\n", self.1);
        self.0.write_all(format!("{line}\r\nECHO {mark}").as_bytes()).unwrap();
        let mut reply = Vec::new();
        let mut byte = [0];
        while !reply.ends_with(mark.as_bytes()) {
            self.0.read_exact(&mut byte).unwrap();
            reply.push(byte[0]);
        }
        String::from_utf8_lossy(&reply).into_owned()
    }
}

/// A file that is deleted on drop.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mayhap-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn permissions_are_checked_per_request_in_pipelines_and_transactions() {
    let server = start(with_users(&["ada on >pw ~a:* %R~pub:* +@read +@write +@connection +@transaction"]));
    let mut ada = Talk::of(&server, "ada");
    ada.says("ACL WHOAMI", &no_command("ada", "acl|whoami"));
    ada.says("BF.ADD a:f x", ":1\r\n");
    ada.says("BF.ADD pub:f x", NO_NAME);
    ada.says("BF.EXISTS pub:f x", ":0\r\n");
    ada.says("FLUSHALL", NO_NAME);
    ada.says("CONFIG GET port", &no_command("ada", "config|get"));
    ada.says("DUMP a:f", &no_command("ada", "dump"));
    // The requests of a pipeline are checked one by one and answered in order.
    ada.says(
        "BF.ADD a:f y\r\nBF.ADD b:f y\r\nBF.EXISTS a:f y\r\nSAVE\r\nBF.EXISTS a:f x\r\nDEL a:f b:f\r\nBF.EXISTS a:f x",
        &format!(":1\r\n{NO_NAME}:1\r\n{}:1\r\n{NO_NAME}:1\r\n", no_command("ada", "save")),
    );
    // A refused request makes the transaction fail.
    ada.says(
        "MULTI\r\nBF.ADD a:f z\r\nBF.ADD b:f z\r\nEXEC\r\nBF.EXISTS a:f z",
        &format!("+OK\r\n+QUEUED\r\n{NO_NAME}-EXECABORT Transaction discarded because of previous errors.\r\n:0\r\n"),
    );
    ada.says("WATCH b:f", NO_NAME);
    // Long requests run on another thread.
    ada.says("COPY a:f b:f", NO_NAME);
    ada.says("COPY pub:f a:g", ":0\r\n");
    let mut default_client = Talk::to(&server);
    // Names that a user may not access are not shown.
    default_client.says("BF.ADD b:f x\r\nBF.ADD pub:f x\r\nDBSIZE", ":1\r\n:1\r\n:3\r\n");
    for line in ["KEYS *", "SCAN 0 COUNT 100000", "MULTI\r\nKEYS *\r\nSCAN 0 COUNT 100000\r\nEXEC"] {
        let told = ada.asks(line);
        assert!(told.contains("a:f") && told.contains("pub:f"), "{told}");
        assert!(!told.contains("$3\r\nb:f\r\n"), "{line}: {told}");
        assert!(default_client.asks(line).contains("$3\r\nb:f\r\n"), "{line}");
    }
    for _ in 0..20 {
        assert!(!ada.asks("RANDOMKEY").contains("$3\r\nb:f\r\n"));
    }
    let log = default_client.asks("ACL LOG 1");
    assert!(log.contains("copy") || log.contains("b:f"), "{log}");
    assert!(default_client.asks("CLIENT LIST").contains(" user=ada "));
    default_client.says("CLIENT KILL USER ada", ":1\r\n");
}

#[test]
fn changes_of_users_apply_to_the_next_request() {
    let server = start(with_users(&["ada on >pw ~* +@all"]));
    let (mut ada, mut admin) = (Talk::of(&server, "ada"), Talk::to(&server));
    ada.says("BF.ADD f x", ":1\r\n");
    admin.says("ACL SETUSER ada -bf.add", "+OK\r\n");
    ada.says("BF.ADD f y\r\nBF.EXISTS f x", &format!("{}:1\r\n", no_command("ada", "bf.add")));
    // A change between queueing and EXEC.
    ada.says("MULTI\r\nBF.EXISTS f x\r\nBF.CARD f\r\nPING", "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    admin.says("ACL SETUSER ada -bf.exists -ping", "+OK\r\n");
    let changed = "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
                   command is no longer allowed for the following reason: User ada has no permissions to run the";
    ada.says("EXEC", &format!("*3\r\n{changed} 'bf.exists' command\r\n:1\r\n{changed} 'ping' command\r\n"));
    // A change inside the user's own pipeline.
    admin.says("ACL SETUSER ada +@all", "+OK\r\n");
    ada.says(
        "BF.ADD f a\r\nACL SETUSER ada -bf.add\r\nBF.ADD f b",
        &format!(":1\r\n+OK\r\n{}", no_command("ada", "bf.add")),
    );
    // Connections of a removed user are closed, even if a new user gets the same name.
    admin.says("ACL DELUSER ada", ":1\r\n");
    admin.says("ACL SETUSER ada on >pw ~* +@all", "+OK\r\n");
    let ended = ada.0.write_all(b"PING\r\n").and_then(|()| ada.0.read(&mut [0; 16]));
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    // The same holds for the default user, before authentication.
    admin.says("ACL SETUSER default -@dangerous", "+OK\r\n");
    admin.says("ACL SETUSER default +@all", &no_command("default", "acl|setuser"));
    let mut ada = Talk::of(&server, "ada");
    ada.says("CONFIG SET requirepass new", "+OK\r\n");
    Talk::to(&server).says("PING", "-NOAUTH Authentication required.\r\n");
}

/// The race itself: no request that is sent after a change was acknowledged runs with the old permissions.
#[test]
fn nothing_runs_with_removed_permissions() {
    let server =
        Server::start(Settings { port: Some(0), workers: 2, ..with_users(&["ada on >pw ~* +@all"]) })
            .unwrap();
    let (mut ada, mut admin) = (Talk::of(&server, "ada"), Talk::to(&server));
    for round in 0..200 {
        admin.says("ACL SETUSER ada -bf.add", "+OK\r\n");
        let line = format!("BF.EXISTS f {round}\r\nBF.ADD f {round}");
        ada.says(&line, &format!(":0\r\n{}", no_command("ada", "bf.add")));
        admin.says("ACL SETUSER ada +bf.add", "+OK\r\n");
        ada.says(&line, ":0\r\n:1\r\n");
    }
}

#[test]
fn replies_to_wrong_passwords_are_delayed_and_other_clients_are_not() {
    let server = start(Settings { password: Some("secret".into()), ..with_users(&["ada off >pw +@all"]) });
    let mut other = Talk::to(&server);
    other.says("AUTH secret", "+OK\r\n");
    let mut guesser = Talk::to(&server);
    let begun = Instant::now();
    for guess in 0..4 {
        guesser.says(&format!("AUTH wrong{guess}"), WRONG);
    }
    // 25 + 50 + 100 + 200 ms.
    assert!(begun.elapsed() >= Duration::from_millis(375), "{:?}", begun.elapsed());
    // They are delayed in a transaction as well, and ten attempts are the limit, even if the right password
    // follows.
    let mut many = Talk::to(&server);
    many.says("AUTH secret", "+OK\r\n");
    let guesses: String = (0..12).map(|guess| format!("AUTH wrong{guess}\r\n")).collect();
    let queued = "+QUEUED\r\n".repeat(13);
    many.says(&format!("MULTI\r\n{guesses}AUTH secret"), &format!("+OK\r\n{queued}"));
    let begun = Instant::now();
    many.says("EXEC", &format!("*13\r\n{}", WRONG.repeat(13)));
    assert!(begun.elapsed() >= Duration::from_millis(1_500), "{:?}", begun.elapsed());
    assert_eq!(many.0.read(&mut [0; 1]).unwrap_or(0), 0, "the connection is closed");
    // The same holds for a transaction that runs on a thread of its own.
    let mut long = Talk::to(&server);
    long.says("AUTH secret", "+OK\r\n");
    long.says("MULTI\r\nKEYS *\r\nAUTH wrong", "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
    let begun = Instant::now();
    long.says("EXEC", &format!("*2\r\n*0\r\n{WRONG}"));
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    // The only worker stays free: the guess is sent, and its reply is delayed.
    guesser.0.write_all(b"AUTH default again\r\nPING\r\n").unwrap();
    other.says("PING", "+PONG\r\n");
    guesser.0.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(guesser.0.read(&mut [0; 1]).is_err(), "the reply was not delayed");
    guesser.0.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    guesser.reads(&format!("{WRONG}-NOAUTH Authentication required.\r\n"), "the request after it");
    // The right password on a new connection is delayed as well. A disabled user can never log in.
    let begun = Instant::now();
    let mut late = Talk::to(&server);
    late.says("AUTH secret", "+OK\r\n");
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    Talk::to(&server).says("AUTH ada pw", WRONG);
    let log = other.asks("ACL LOG");
    assert!(log.contains("auth") && log.contains("AUTH"), "{log}");
    assert!(!log.contains("wrong") && !log.contains("again") && !log.contains("secret"), "{log}");
}

#[test]
fn passwords_are_never_shown() {
    let server = start(Settings { slow_log_us: 0, ..with_users(&["ada on >pw +@all"]) });
    let mut talk = Talk::to(&server);
    talk.says("ACL SETUSER bob on >bobs-word", "+OK\r\n");
    talk.says("CONFIG SET requirepass common-word", "+OK\r\n");
    talk.says("AUTH default common-word", "+OK\r\n");
    talk.asks("HELLO 3 AUTH default common-word");
    talk.says("HELLO 2 SETNAME x AUTH bob bobs-word", "*14\r\n");
    let mut admin = Talk::to(&server);
    admin.says("AUTH common-word", "+OK\r\n");
    for line in
        ["SLOWLOG GET -1", "ACL LIST", "ACL GETUSER bob", "CLIENT LIST", "CONFIG GET *", "INFO", "ACL LOG"]
    {
        let shown = admin.asks(line);
        assert!(!shown.contains("bobs-word") && !shown.contains("common-word"), "{line}: {shown}");
    }
    let log = admin.asks("SLOWLOG GET -1");
    assert!(log.matches("(redacted)").count() >= 5, "{log}");
    let settings = format!("{:?}", with_users(&[]));
    assert!(!settings.contains("pw"), "{settings}");
}

#[test]
fn disabled_commands_are_disabled_for_all_users() {
    let server = start(Settings::default());
    Talk::to(&server)
        .says("DEBUG SLEEP 0", "-ERR DEBUG command not allowed. The server allows it with --enable.\r\n");
    Talk::to(&server)
        .says("DEBUG RELOAD", "-ERR DEBUG command not allowed. The server allows it with --enable.\r\n");
    let enable = vec!["debug".to_owned()];
    let server = start(Settings { enable: enable.clone(), ..Settings::default() });
    Talk::to(&server).says("DEBUG SLEEP 0", "+OK\r\n");
    Talk::to(&server).says("BF.ADD f x\r\nEXPIRE f 1000\r\nDEBUG RELOAD", ":1\r\n:1\r\n+OK\r\n");
    Talk::to(&server).says("BF.MEXISTS f x y\r\nTTL f", "*2\r\n:1\r\n:0\r\n:1000\r\n");
    Talk::to(&server).says("DEBUG RELOAD NOSAVE\r\nDEBUG RELOAD MERGE", "+OK\r\n-ERR syntax error\r\n");
    let disable = vec!["flushall".to_owned(), "@dump".to_owned()];
    let server = start(Settings { enable, disable, ..Settings::default() });
    let mut talk = Talk::to(&server);
    let off = |command: &str| {
        format!("-ERR {command} command not allowed. The server was told to --disable it.\r\n")
    };
    talk.says("BF.ADD f x\r\nFLUSHALL\r\nBF.EXISTS f x", &format!(":1\r\n{}:1\r\n", off("FLUSHALL")));
    talk.says("BF.SCANDUMP f 0\r\nDUMP f", &(off("BF.SCANDUMP") + &off("DUMP")));
    talk.says("MULTI\r\nFLUSHALL", &format!("+OK\r\n{}", off("FLUSHALL")));
}

#[test]
fn a_file_of_users_is_read_saved_and_read_again() {
    let file = File::new("users.acl", "# people\n\nuser ada on >pw ~a:* +@read\nuser default off\n");
    let settings = || Settings { users: Some(file.0.clone()), ..Settings::default() };
    let server = start(settings());
    Talk::to(&server).says("PING", "-NOAUTH Authentication required.\r\n");
    let mut ada = Talk::of(&server, "ada");
    ada.says("ACL LIST", &no_command("ada", "acl|list"));
    fs::write(&file.0, "user ada on >pw ~a:* +@read +@admin\nuser bob on >pw\n").unwrap();
    drop(server);
    let server = start(settings());
    // The file has no default user: it is the same as without a file.
    let (mut ada, mut bob, mut default_client) =
        (Talk::of(&server, "ada"), Talk::of(&server, "bob"), Talk::to(&server));
    ada.says("ACL SETUSER cyd on >pw %R~c:* +bf.exists", "+OK\r\n");
    ada.says("ACL SAVE", "+OK\r\n");
    let saved = fs::read_to_string(&file.0).unwrap();
    let hash = "30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";
    assert!(
        saved.contains(&format!("user cyd on #{hash} %R~c:* resetchannels -@all +bf.exists\n")),
        "{saved}"
    );
    assert!(saved.contains("user default on nopass ~* &* +@all\n") && !saved.contains(">"), "{saved}");
    assert_eq!(fs::metadata(&file.0).unwrap().permissions().mode() & 0o777, 0o600);
    // A file with an invalid line is rejected as a whole.
    fs::write(&file.0, "user bob on >pw +@all\nuser eve on +nosuch\n").unwrap();
    let refused =
        format!("-ERR {}: line 2: +nosuch: Unknown command or category name in ACL\r\n", file.0.display());
    ada.says("ACL LOAD", &refused);
    bob.says("PING", &no_command("bob", "ping"));
    fs::write(&file.0, "user ada on >pw +@admin\nuser default on >other ~* +@all\n").unwrap();
    ada.says("ACL LOAD", "+OK\r\n");
    // Connections of users that are gone are closed. Others stay, with their new permissions.
    let ended = bob.0.read(&mut [0; 16]);
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    default_client.says("PING", "+PONG\r\n");
    Talk::to(&server).says("PING", "-NOAUTH Authentication required.\r\n");
    drop(server);
    // The password in the settings overrides the file.
    let server = start(Settings { password: Some("mine".into()), ..settings() });
    Talk::to(&server).says("AUTH other", WRONG);
    Talk::to(&server).says("AUTH mine", "+OK\r\n");
    drop(server);
    for (text, error) in [
        ("user ada on\nuser ada off\n", "line 2: user ada is defined twice"),
        ("user default on\nusr ada\n", "line 2: a line must begin with the word user and a name"),
        ("user ada <pw\n", "line 1: <(redacted): The password you are trying to remove"),
    ] {
        fs::write(&file.0, text).unwrap();
        let refused = Server::start(Settings { port: Some(0), ..settings() }).unwrap_err();
        assert!(matches!(refused, StartError::Users(_)) && refused.to_string().contains(error), "{refused}");
    }
}

/// Sends one HTTP request and returns the status and the body.
fn http(server: &Running, path: &str, authorization: &str) -> (u16, String) {
    let host = server.http_addresses()[0];
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{authorization}\r\n")
        .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let status = reply.split(' ').nth(1).unwrap().parse().unwrap();
    (status, reply)
}

#[test]
fn http_has_the_same_users() {
    let settings = with_users(&["ada on >pw ~a:* +@read +info", "default on >secret ~* +@all"]);
    let server = start(Settings { http_port: Some(0), ..settings });
    let mut talk = Talk::to(&server);
    talk.says("AUTH secret\r\nBF.ADD a:f x\r\nBF.ADD b:f x", "+OK\r\n:1\r\n:1\r\n");
    let (anonymous, ada) = ("", "Authorization: Basic YWRhOnB3\r\n");
    let (default, wrong) = ("Authorization: Bearer secret\r\n", "Authorization: Bearer secrets\r\n");
    for path in ["/health", "/ready"] {
        assert_eq!(http(&server, path, anonymous).0, 200, "{path}");
    }
    for path in ["/metrics", "/api/v1/server", "/api/v1/filters", "/api/v1/filters/a:f"] {
        assert_eq!(http(&server, path, anonymous).0, 401, "{path}");
        assert_eq!(http(&server, path, default).0, 200, "{path}");
        assert_eq!(http(&server, path, ada).0, 200, "{path}");
    }
    assert_eq!(http(&server, "/metrics", wrong).0, 401);
    assert_eq!(http(&server, "/api/v1/filters/b:f", ada).0, 403);
    assert_eq!(http(&server, "/api/v1/filters/b:f", default).0, 200);
    let list = http(&server, "/api/v1/filters", ada).1;
    assert!(list.contains("a:f") && !list.contains("b:f"), "{list}");
    talk.says("ACL SETUSER ada -info -scan", "+OK\r\n");
    assert_eq!(http(&server, "/metrics", ada).0, 403);
    assert_eq!(http(&server, "/api/v1/filters", ada).0, 403);
}

#[test]
fn a_server_reachable_from_other_machines_requires_passwords() {
    let bind = vec!["0.0.0.0".parse().unwrap()];
    let exposed =
        |settings: Settings| Server::start(Settings { port: Some(0), bind: bind.clone(), ..settings });
    assert!(matches!(exposed(Settings::default()), Err(StartError::Exposed { .. })));
    let open = exposed(with_users(&["default off", "ada on nopass +@all"])).unwrap_err();
    assert!(matches!(open, StartError::Users(_)), "{open}");
    let server = exposed(with_users(&["default on >pw ~* +@all"])).unwrap();
    let mut talk = Talk::of(&server, "default");
    let refused = "-ERR the server accepts connections from other machines: every enabled user needs a password, unless the server runs with \
                   --unprotected\r\n";
    talk.says("ACL SETUSER ada on nopass", refused);
    talk.says("ACL SETUSER default nopass", refused);
    talk.says("ACL SETUSER ada off nopass", "+OK\r\n");
    talk.says("ACL SETUSER ada on", refused);
    let asked = talk.asks("CONFIG SET requirepass \"\"");
    assert!(asked.starts_with("-ERR CONFIG SET failed"), "{asked}");
    Talk::to(&server).says("PING", "-NOAUTH Authentication required.\r\n");
}
