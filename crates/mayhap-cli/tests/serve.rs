//! `mayhap serve` as an operator uses it: started as a process, configured by flags, files and variables, queried over sockets.

mod program;

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use program::server::{PATIENCE, Server, serve};
use program::{error_line, said};

fn folder(test: &str) -> PathBuf {
    program::empty_folder("serve", test)
}

#[test]
fn serve_prints_its_addresses_answers_and_keeps_its_data() {
    let folder = folder("keeps");
    let server = Server::in_folder(&folder, &[]);
    assert!(server.greeting.contains("data  data (0 filters loaded)"), "{}", server.greeting);
    assert!(server.greeting.contains("try   redis-cli -p "), "{}", server.greeting);
    assert_eq!(server.ask("PING"), "+PONG\r\n");
    assert_eq!(server.ask("BF.ADD seen ada"), ":1\r\n");
    assert_eq!(server.ask("CF.ADD cuckoos ada"), ":1\r\n");
    let (code, log, _) = server.stop();
    assert_eq!(code, 0, "{log}");
    // Everything is in the log; no snapshot is needed.
    assert!(!log.contains("snapshot saved") && log.contains("stopped"), "{log}");

    let server = Server::in_folder(&folder, &[]);
    assert!(server.greeting.contains("(2 filters loaded)"), "{}", server.greeting);
    assert_eq!(server.ask("BF.MEXISTS seen ada bob"), "*2\r\n:1\r\n:0\r\n");
    assert_eq!(server.ask("CF.EXISTS cuckoos ada"), ":1\r\n");
    assert!(server.ask("INFO persistence").contains("log_state:writing"));
    assert_eq!(server.stop().0, 0);
}

#[test]
fn snapshots_are_taken_on_request_and_periodically_and_nothing_is_lost_without() {
    let folder = folder("saves");
    let snapshot = folder.join("data/MANIFEST");
    let server = Server::in_folder(&folder, &[]);
    let saves = || {
        let info = server.ask("INFO persistence");
        let line = info.lines().find_map(|line| line.strip_prefix("rdb_saves:")).unwrap();
        line.parse::<u64>().unwrap()
    };
    server.ask("BF.ADD seen ada");
    assert!(!snapshot.exists());
    assert_eq!(server.ask("SAVE"), "+OK\r\n");
    assert!(snapshot.exists());
    for (line, reply) in [
        ("BGSAVE", "+Background saving started\r\n"),
        ("BGREWRITEAOF", "+Background append only file rewriting started\r\n"),
    ] {
        let before = saves();
        assert_eq!(server.ask(line), reply);
        wait_for(line, || saves() > before);
        wait_for("its end", || server.ask("INFO persistence").contains("rdb_bgsave_in_progress:0"));
    }
    server.ask("BF.ADD seen bob");
    assert!(server.ask("INFO persistence").contains("rdb_changes_since_last_save:1\r\n"));
    let before = saves();
    assert_eq!(server.ask("CONFIG SET save \"1 1\""), "+OK\r\n");
    wait_for("the timer", || saves() > before);
    server.ask("CONFIG SET save \"\"");
    server.ask("BF.ADD other ada");
    let mut stream = server.connect();
    stream.write_all(b"SHUTDOWN NOSAVE\r\n").unwrap();
    let mut nothing = Vec::new();
    stream.read_to_end(&mut nothing).unwrap();
    assert_eq!(nothing, b"");
    assert_eq!(server.stop().0, 0, "it ended by itself");
    // The last change is in no snapshot, but in the log.
    let server = Server::in_folder(&folder, &[]);
    assert!(server.greeting.contains("(2 filters loaded)"), "{}", server.greeting);
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn flags_override_variables_and_variables_override_the_file() {
    let folder = folder("layers");
    fs::write(folder.join("m.toml"), "port = 1\nmax-clients = 2\nworkers = 3\nbf-error-rate = 0.001\n")
        .unwrap();
    let print = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut command = serve(&folder);
        command.args(["--config", "m.toml", "--print-config"]).args(flags);
        let (code, out, error) = said(&command.envs(variables.iter().copied()).output().unwrap());
        assert_eq!((code, error.as_str()), (0, ""));
        out
    };
    let has = |text: &str, line: &str| text.lines().any(|had| had == line);
    let file = print(&[], &[]);
    for line in ["port = 1", "max-clients = 2", "workers = 3", "bf-error-rate = 0.001", "http-port = 6390"] {
        assert!(has(&file, line), "{line} is not in\n{file}");
    }
    let variables = [("MAYHAP_MAX_CLIENTS", "4"), ("MAYHAP_WORKERS", "5"), ("MAYHAP_BIND", "127.0.0.1,::1")];
    let both = print(&[], &variables);
    for line in ["port = 1", "max-clients = 4", "workers = 5", "bind = [\"127.0.0.1\", \"::1\"]"] {
        assert!(has(&both, line), "{line} is not in\n{both}");
    }
    let all = print(&["--workers", "6", "--max-memory", "4GiB", "--no-http", "--unprotected"], &variables);
    for line in [
        "workers = 6",
        "max-clients = 4",
        "max-memory = \"4GiB\"",
        "http-port = \"off\"",
        "unprotected = true",
    ] {
        assert!(has(&all, line), "{line} is not in\n{all}");
    }
    // The printed settings can be read back.
    fs::write(folder.join("again.toml"), &all).unwrap();
    let (code, again, error) =
        said(&serve(&folder).args(["--config", "again.toml", "--print-config"]).output().unwrap());
    assert_eq!((code, again, error), (0, all, String::new()));
    let secret = print(&[], &[("MAYHAP_PASSWORD", "tell nobody")]);
    assert!(!secret.contains("tell nobody"));
}

#[test]
fn start_errors_are_printed_in_one_line() {
    let folder = folder("wrong");
    fs::write(folder.join("key.toml"), "prot = 7\n").unwrap();
    fs::write(folder.join("value.toml"), "max-memory = \"4 bananas\"\n").unwrap();
    fs::write(folder.join("syntax.toml"), "port = 1\nbind = [\n").unwrap();
    fs::write(folder.join("empty"), "\n").unwrap();
    for (arguments, parts) in [
        (vec!["--port", "70000"], vec!["--port", "\"70000\"", "65535"]),
        (vec!["--max-memory", "lots"], vec!["--max-memory", "\"lots\"", "4GiB"]),
        (vec!["--bind", "nowhere"], vec!["--bind", "\"nowhere\"", "127.0.0.1"]),
        (vec!["--log-level", "loud"], vec!["--log-level", "\"loud\"", "debug"]),
        (vec!["--config", "key.toml"], vec!["key.toml", "\"prot\"", "did you mean \"port\"?"]),
        (vec!["--config", "value.toml"], vec!["value.toml: max-memory", "\"4 bananas\"", "4GiB"]),
        (vec!["--config", "syntax.toml"], vec!["syntax.toml: line 2"]),
        (vec!["--config", "missing.toml"], vec!["cannot read missing.toml: no such file"]),
        (vec!["--password-file", "empty"], vec!["empty: the first line must be the password"]),
        (vec!["--bind", "0.0.0.0", "--port", "0"], vec!["0.0.0.0:0", "--password-file", "--unprotected"]),
        (vec!["--prot", "7"], vec!["'--prot'", "tip", "'--port'"]),
        (vec!["--bf-error-rate", "2"], vec!["--bf-error-rate", "\"2\"", "between 0 and 1"]),
        (vec!["--cf-max-iterations", "0"], vec!["--cf-max-iterations", "from 1 to 65535"]),
        (vec!["--port", "off", "--no-http"], vec!["nothing to listen on", "--unix-socket"]),
        (
            vec!["--dir", "/proc/nowhere", "--port", "0", "--no-http"],
            vec!["/proc/nowhere: cannot use the data folder: "],
        ),
    ] {
        let line: Vec<&str> = ["serve"].into_iter().chain(arguments).collect();
        let error = error_line(&folder, &line);
        for part in parts {
            assert!(error.contains(part), "{line:?}: {part:?} is not in {error}");
        }
    }
}

#[test]
fn a_directory_and_a_port_have_only_one_server() {
    let folder = folder("one");
    let server = Server::in_folder(&folder, &[]);
    let error = error_line(&folder, &["serve", "--port", "0", "--no-http", "--dir", "data"]);
    let expected = format!(
        "data: the data folder is in use by another server (process {}): choose another --dir\n",
        server.child.id()
    );
    assert_eq!(error, format!("mayhap: {expected}"));
    let address = server.address("RESP");
    let port = address.rsplit(':').next().unwrap();
    let error = error_line(&folder, &["serve", "--port", port, "--no-http", "--dir", "other"]);
    assert_eq!(error, format!("mayhap: cannot listen on {address}: address already in use\n"));
    assert_eq!(server.ask("PING"), "+PONG\r\n");
}

#[test]
fn a_damaged_snapshot_is_rejected_and_left_unchanged() {
    let folder = folder("damaged");
    let (data, snapshot) = (folder.join("data"), folder.join("data/mayhap.snapshot"));
    fs::create_dir(&data).unwrap();
    fs::write(&snapshot, "not a snapshot at all, but long enough to be one").unwrap();
    // Permissions that need no repair, so that the error is the only line.
    fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(&snapshot, Permissions::from_mode(0o600)).unwrap();
    let error = error_line(&folder, &["serve", "--port", "0", "--no-http", "--dir", "data"]);
    assert!(error.starts_with("mayhap: data: mayhap.snapshot is not a snapshot"), "{error}");
    assert!(error.contains("mayhap repair"), "{error}");
    assert!(fs::read_to_string(snapshot).unwrap().starts_with("not a snapshot"));
}

/// Eight connections send without a pause. Each gets an answer for everything the server accepted, and the server ends soon.
#[test]
fn shutdown_under_load_is_quick_and_answers_accepted_requests() {
    let folder = folder("term");
    let server = Server::in_folder(&folder, &[]);
    let clients: Vec<_> = (0..8)
        .map(|client| {
            let mut stream = server.connect();
            std::thread::spawn(move || {
                let mut sent = 0_u64;
                let mut answered = 0;
                let mut buffer = [0; 4_096];
                let pipeline = format!("BF.ADD load:{client} x\r\n").repeat(64);
                // One pipeline after another, each after the answers to the previous one.
                'all: loop {
                    if stream.write_all(pipeline.as_bytes()).is_err() {
                        break;
                    }
                    sent += 64;
                    while answered < sent {
                        match stream.read(&mut buffer) {
                            Ok(0) | Err(_) => break 'all,
                            Ok(read) => {
                                answered +=
                                    buffer[..read].iter().filter(|byte| **byte == b'\n').count() as u64;
                            }
                        }
                    }
                }
                // A pipeline that arrived in time is answered completely, one that arrived too late not at all.
                (answered, answered % 64)
            })
        })
        .collect();
    wait_for("load", || server.ask("DBSIZE") == ":8\r\n");
    let (code, log, took) = server.stop();
    assert_eq!(code, 0, "{log}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    for client in clients {
        let (answered, rest) = client.join().unwrap();
        assert!(answered >= 64 && rest == 0, "{answered} answers");
    }
    let server = Server::in_folder(&folder, &[]);
    assert!(server.greeting.contains("(8 filters loaded)"), "{}", server.greeting);
}

#[test]
fn http_errors_are_json() {
    let folder = folder("http_errors");
    let server = Server::in_folder(&folder, &[]);
    for (request, headers, body, status) in [
        ("GET /no/such", "", "", 404),
        ("GET /api/v1/filters/none", "", "", 404),
        ("DELETE /api/v1/server", "", "", 405),
        ("GET /api/v1/plan", "", "", 405),
        ("GET /api/v1/filters?count=many", "", "", 400),
        ("GET /api/v1/filters/%zz", "", "", 400),
        ("GET /api/v1/filters?match=%", "", "", 400),
        ("POST /api/v1/plan", "", "{}", 415),
        ("POST /api/v1/plan", "Content-Type: application/json\r\n", "{", 400),
        ("POST /api/v1/plan", "Content-Type: application/json\r\n", "{}", 422),
    ] {
        let (got, text) = server.http(request, headers, body);
        let error: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let says = error["error"].as_str().is_some_and(|error| !error.is_empty());
        assert!(got == status && says, "{request}: {got} {text}");
    }
    let large = "x".repeat((1 << 20) + 1);
    let (got, text) = server.http("POST /api/v1/plan", "Content-Type: application/json\r\n", &large);
    assert!(got == 413 && text.starts_with("{\"error\":"), "{got} {text}");
}

/// The directory is replaced by a file: nothing can be saved any longer, even as root.
fn break_folder(folder: &Path) {
    fs::rename(folder.join("data"), folder.join("moved")).unwrap();
    fs::write(folder.join("data"), "").unwrap();
}

fn mend_folder(folder: &Path) {
    fs::remove_file(folder.join("data")).unwrap();
    fs::rename(folder.join("moved"), folder.join("data")).unwrap();
}

#[test]
fn without_its_directory_snapshots_and_changes_fail_but_lookups_work() {
    let folder = folder("unsaved");
    let server = Server::in_folder(&folder, &[]);
    server.ask("BF.ADD seen ada");
    assert_eq!(server.http("GET /ready", "", "").0, 200);
    break_folder(&folder);
    assert!(server.ask("SAVE").starts_with("-ERR "));
    let stats = server.ask("INFO commandstats");
    let of_save = stats.lines().find(|line| line.starts_with("cmdstat_save:calls=1,")).unwrap();
    assert!(of_save.ends_with("failed_calls=1"), "{of_save}");
    let (status, body) = server.http("GET /ready", "", "");
    assert!(status == 503 && body.contains("\"snapshots fail\""), "{body}");
    // Within a second the server notices that its open log is no longer in its place, so new changes would be lost.
    let begun = Instant::now();
    let mut acknowledged = false;
    while !server.ask("BF.ADD seen bob").starts_with("-READONLY ") {
        acknowledged = true;
        assert!(begun.elapsed() < PATIENCE, "changes are acknowledged though the folder is gone");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.ask("BF.EXISTS seen ada"), ":1\r\n");
    drop(server);
    mend_folder(&folder);
    let server = Server::in_folder(&folder, &[]);
    assert!(server.greeting.contains("(1 filter loaded)"), "{}", server.greeting);
    assert_eq!(server.ask("BF.EXISTS seen ada"), ":1\r\n");
    // The log was moved with the directory, so it has the acknowledged changes.
    assert!(!acknowledged || server.ask("BF.EXISTS seen bob") == ":1\r\n");
    assert_eq!(server.ask("SAVE"), "+OK\r\n");
}

#[test]
fn a_socket_file_and_a_password() {
    let folder = folder("password");
    fs::write(folder.join("pw"), "open sesame\n").unwrap();
    let mut command = serve(&folder);
    command.args(["--port", "0", "--http-port", "0", "--unix-socket", "m.sock", "--password-file", "pw"]);
    let server = Server::start(command);
    assert!(server.greeting.contains("-a PASSWORD"), "{}", server.greeting);
    let mut stream = UnixStream::connect(folder.join("m.sock")).unwrap();
    stream
        .write_all(
            b"PING\r\nAUTH wrong\r\nAUTH \"open sesame\"\r\nPING\r\nCONFIG GET requirepass\r\nQUIT\r\n",
        )
        .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let lines: Vec<&str> = reply.lines().collect();
    assert!(lines[0].starts_with("-NOAUTH") && lines[1].starts_with("-WRONGPASS"), "{reply}");
    assert_eq!(lines[2..4], ["+OK", "+PONG"], "{reply}");
    assert!(!reply.contains("sesame"), "{reply}");
    assert_eq!(server.http("GET /health", "", "").0, 200);
    assert_eq!(server.http("GET /ready", "", "").0, 200);
    for path in ["/metrics", "/api/v1/server", "/api/v1/filters"] {
        assert_eq!(server.http(&format!("GET {path}"), "", "").0, 401, "{path}");
        assert_eq!(server.http(&format!("GET {path}"), "Authorization: Bearer no\r\n", "").0, 401, "{path}");
        assert_eq!(server.http(&format!("GET {path}"), "Authorization: Bearer open sesame\r\n", "").0, 200);
    }
    let (code, log, _) = server.stop();
    assert!(code == 0 && !log.contains("sesame"), "{log}");
    assert!(!folder.join("m.sock").exists());
    assert!(folder.join("mayhap-data/mayhap.lock").exists(), "the usual folder");
}

#[test]
fn info_has_the_fields_that_clients_read() {
    let folder = folder("info");
    let server = Server::in_folder(&folder, &["--max-memory", "1GiB"]);
    server.ask("BF.MADD seen a b c");
    server.ask("BF.ADD");
    let info = |words: &str| {
        let reply = server.ask(words);
        let text = reply.split_once("\r\n").unwrap().1.to_owned();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
            assert!(line.split_once(':').is_some_and(|(name, _)| !name.is_empty()), "{line}");
        }
        text
    };
    let usual = info("INFO");
    for line in [
        "# Server",
        "redis_version:",
        "redis_mode:standalone",
        "server_name:mayhap",
        "tcp_port:",
        "run_id:",
        "# Clients",
        "connected_clients:",
        "# Memory",
        "maxmemory:1073741824",
        "# Persistence",
        "loading:0",
        "aof_enabled:1",
        "# Stats",
        "# Replication",
        "role:master",
        "# CPU",
        "# Modules",
        "# Cluster",
        "cluster_enabled:0",
        "# Keyspace",
        "db0:keys=1,expires=0",
        "# Mayhap",
        "items:3",
        "filters:1",
    ] {
        assert!(usual.lines().any(|had| had.starts_with(line)), "{line} is not in\n{usual}");
    }
    assert!(!usual.contains("# Commandstats"));
    let all = info("INFO ALL");
    assert!(all.contains("cmdstat_bf.madd:calls=1,") && all.contains("# Commandstats"), "{all}");
    let some = info("INFO replication KEYSPACE nonsense");
    let sections: Vec<&str> = some.lines().filter(|line| line.starts_with("# ")).collect();
    assert_eq!(sections, ["# Replication", "# Keyspace"]);
    let port = server.address("RESP").rsplit(':').next().unwrap().to_owned();
    assert!(usual.contains(&format!("tcp_port:{port}\r\n")));
}

#[test]
fn config_get_and_set_are_all_or_nothing_and_rewrite_writes_the_file() {
    let folder = folder("config");
    fs::write(folder.join("m.toml"), "port = 0\nhttp-port = \"off\"\nmax-memory = \"1GiB\"\n").unwrap();
    let mut command = serve(&folder);
    command.args(["--config", "m.toml"]);
    let server = Server::start(command);
    assert_eq!(server.ask("CONFIG GET maxmemory"), "*2\r\n$9\r\nmaxmemory\r\n$10\r\n1073741824\r\n");
    assert_eq!(
        server.ask("CONFIG GET SAVE appendonly"),
        "*4\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n$4\r\nsave\r\n$0\r\n\r\n"
    );
    assert_eq!(server.ask("CONFIG GET bf-err*"), "*2\r\n$13\r\nbf-error-rate\r\n$4\r\n0.01\r\n");
    assert_eq!(server.ask("CONFIG GET nothing"), "*0\r\n");
    for (line, error) in [
        ("maxmemory 2gb no-such 1", "Unknown option or number of arguments for CONFIG SET - 'no-such'"),
        (
            "maxmemory 2gb port 1",
            "CONFIG SET failed (possibly related to argument 'port') - can't set immutable config",
        ),
        (
            "maxmemory 2gb maxmemory 3gb",
            "CONFIG SET failed (possibly related to argument 'maxmemory') - duplicate parameter",
        ),
        (
            "maxmemory 2gb slowlog-max-len x",
            "CONFIG SET failed (possibly related to argument 'slowlog-max-len') - argument couldn't be parsed into an integer",
        ),
        (
            "bf-error-rate 0.5 maxmemory lots",
            "CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value",
        ),
    ] {
        assert_eq!(server.ask(&format!("CONFIG SET {line}")), format!("-ERR {error}\r\n"));
    }
    assert!(server.ask("CONFIG SET maxmemory 2gb bf-error-rate 7").starts_with("-ERR CONFIG SET failed"));
    assert!(server.ask("CONFIG GET maxmemory").contains("1073741824"), "nothing of it was done");
    assert!(server.ask("CONFIG GET bf-error-rate").contains("0.01"), "nothing of it was done");
    assert_eq!(
        server.ask("CONFIG SET maxmemory 2gb bf-error-rate 0.001 appendonly yes appendfsync always"),
        "+OK\r\n"
    );
    // The file may hold passwords: its permissions stay, and nothing is left beside it.
    fs::set_permissions(folder.join("m.toml"), Permissions::from_mode(0o640)).unwrap();
    assert_eq!(server.ask("CONFIG REWRITE"), "+OK\r\n");
    assert_eq!(fs::metadata(folder.join("m.toml")).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(!folder.join("m.toml.new").exists());
    let file = fs::read_to_string(folder.join("m.toml")).unwrap();
    assert!(file.contains("fsync = \"always\""), "{file}");
    assert!(file.contains("max-memory = \"2GiB\"") && file.contains("bf-error-rate = 0.001"), "{file}");
    assert!(server.ask("INFO commandstats").contains("cmdstat_config"));
    assert_eq!(server.ask("CONFIG RESETSTAT"), "+OK\r\n");
    drop(server);
    let mut command = serve(&folder);
    command.args(["--config", "m.toml"]);
    assert!(Server::start(command).ask("CONFIG GET maxmemory").contains("2147483648"));
    let other = Server::in_folder(&folder, &[]);
    assert_eq!(other.ask("CONFIG REWRITE"), "-ERR The server is running without a config file\r\n");
}

#[test]
fn http_reports_health_and_lists_filters() {
    let folder = folder("http");
    let server = Server::in_folder(&folder, &[]);
    assert_eq!(server.http("GET /health", "", ""), (200, "ok\n".into()));
    let ready = server.get("/ready");
    assert_eq!(ready, serde_json::json!({ "ready": true, "reasons": [] }));
    server.ask("BF.RESERVE seen 0.01 1000");
    server.ask("BF.MADD seen ada bob");
    server.ask("BF.EXISTS seen ada");
    server.ask("BF.ADD \"a/b \\xff\" x");
    server.ask("EXPIRE \"a/b \\xff\" 1000");

    let about = server.get("/api/v1/server");
    assert_eq!((about["filters"].as_u64(), about["items"].as_u64()), (Some(2), Some(3)));
    let list = server.get("/api/v1/filters?count=1000");
    assert_eq!(list["filters"].as_array().unwrap().len(), 2);
    assert!(list["next"].is_null());
    let some = server.get("/api/v1/filters?match=se*&count=1000");
    assert_eq!(some["filters"][0]["name"], "seen");
    let seen = server.get("/api/v1/filters/seen");
    for (field, value) in [("items", 2), ("capacity", 1_000), ("layers", 1), ("hits", 1), ("misses", 0)] {
        assert_eq!(seen[field].as_u64(), Some(value), "{field}: {seen}");
    }
    assert_eq!((seen["type"].as_str(), seen["target_fpr"].as_f64()), (Some("MBbloom--"), Some(0.01)));
    assert!(seen["ttl_ms"].is_null() && seen["memory_bytes"].as_u64().unwrap() > 1_000);
    let bytes = server.get("/api/v1/filters/a%2Fb%20%FF");
    assert_eq!(bytes["name_base64"], "YS9iIP8=");
    assert!(bytes["ttl_ms"].as_u64().is_some_and(|millis| millis <= 1_000_000));
    assert_eq!(server.http("GET /api/v1/filters/none", "", "").0, 404);

    let probe = r#"{"items": ["ada", {"base64": "Ym9i"}, "eve"]}"#;
    let (status, answers) = server.post("/api/v1/filters/seen/probe", probe);
    assert_eq!((status, answers), (200, serde_json::json!({ "answers": ["mayhap", "mayhap", "no"] })));
    assert_eq!(server.post("/api/v1/filters/none/probe", probe).0, 404);
    assert_eq!(server.post("/api/v1/filters/seen/probe", r#"{"items": []}"#).0, 400);
    assert_eq!(server.post("/api/v1/filters/seen/probe", "nonsense").0, 400);
    assert_eq!(server.post("/api/v1/filters/seen", probe).0, 404);
    assert_eq!(server.http("POST /api/v1/plan", "", "{}").0, 415, "a page of another site cannot send JSON");
    let large = format!(r#"{{"items": ["{}"]}}"#, "x".repeat(1 << 20));
    let (status, _) = server.post("/api/v1/filters/seen/probe", &large);
    assert_eq!(status, 413);

    let (status, plan) = server.post("/api/v1/plan", r#"{"items": 1000000, "target_fpr": 0.01}"#);
    assert_eq!(status, 200, "{plan}");
    assert!(plan["recommended"].is_string() && plan["prices"].as_array().unwrap().len() > 10, "{plan}");
    assert_eq!(server.post("/api/v1/plan", r#"{"items": 0, "target_fpr": 0.01}"#).0, 422);
    assert_eq!(server.post("/api/v1/plan", r#"{"items": 5, "target_fpr": 0.01, "colour": 1}"#).0, 422);
    assert_eq!(server.http("GET /nothing", "", "").0, 404);
}

/// A hundred thousand filters give as many lines as three.
#[test]
fn metrics_do_not_grow_with_the_number_of_filters() {
    let folder = folder("metrics");
    let server = Server::in_folder(&folder, &["--save-interval", "0"]);
    let fill = |from: u32, to: u32| {
        let mut stream = server.connect();
        let requests: String = (from..to).map(|number| format!("BF.RESERVE f:{number} 0.1 10\r\n")).collect();
        let mut write = stream.try_clone().unwrap();
        let writer = std::thread::spawn(move || write.write_all(format!("{requests}QUIT\r\n").as_bytes()));
        let mut replies = String::new();
        stream.read_to_string(&mut replies).unwrap();
        writer.join().unwrap().unwrap();
        assert_eq!(replies.matches("+OK\r\n").count() as u32, to - from + 1);
    };
    let metrics = || {
        let (status, page) = server.http("GET /metrics", "", "");
        assert_eq!(status, 200);
        page
    };
    fill(0, 3);
    let few = metrics();
    for line in few.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let name = name.split('{').next().unwrap().trim_end_matches("_sum").trim_end_matches("_count");
        assert!(few.contains(&format!("# TYPE {name} ")), "{line}");
    }
    assert!(few.contains("mayhap_filters{type=\"MBbloom--\"} 3\n"), "{few}");
    assert!(
        few.contains("mayhap_commands_total{command=\"bf.reserve\",family=\"bloom\",outcome=\"ok\"} 3\n"),
        "{few}"
    );
    fill(3, 100_000);
    let many = metrics();
    assert!(many.contains("mayhap_filters{type=\"MBbloom--\"} 100000\n"), "{many}");
    assert_eq!(many.lines().count(), few.lines().count());
    assert!(many.len() < few.len() + 1_000, "{} bytes, {} before", many.len(), few.len());
}

#[test]
fn the_log_is_json_on_request() {
    let folder = folder("log");
    let server = Server::in_folder(&folder, &["--log-format", "json", "--log-level", "debug"]);
    server.ask("BF.ADD seen ada");
    let (_, log, _) = server.stop();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |message: &str| lines.iter().find(|line| line["message"] == message);
    assert_eq!(said("ready").unwrap()["level"], "INFO", "{log}");
    assert_eq!(said("data loaded").unwrap()["filters"], 0, "{log}");
    assert_eq!(said("connected").unwrap()["level"], "DEBUG", "{log}");
    assert!(said("disconnected").is_some() && said("stopped").is_some(), "{log}");
    let quiet = Server::in_folder(&folder, &["--log-level", "error"]);
    assert_eq!(quiet.stop().1, "");
}
