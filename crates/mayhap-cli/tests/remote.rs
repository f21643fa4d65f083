//! `push` and `pull` through the program, against the real server. A fake server sends the replies that no correct server sends.

mod program;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use mayhap_server::{Running, Server, Settings};
use serde_json::json;

use program::{empty_folder, error_line, mayhap_in, names, run, said};

/// The number of items in a filter.
const ITEMS: usize = 100_000;
/// The time limit for any step, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn serve(password: Option<&str>) -> Running {
    let password = password.map(Into::into);
    Server::start(Settings { port: Some(0), workers: 2, password, ..Settings::default() }).unwrap()
}

fn port(server: &Running) -> u16 {
    server.addresses()[0].port()
}

fn address(server: &Running, name: &str) -> String {
    format!("redis://127.0.0.1:{}/{name}", port(server))
}

fn connect(server: &Running) -> redis::Connection {
    redis::Client::open(format!("redis://127.0.0.1:{}", port(server))).unwrap().get_connection().unwrap()
}

/// Returns the server's reply to `words`, separated by spaces.
fn ask<T: redis::FromRedisValue>(connection: &mut redis::Connection, words: &str) -> redis::RedisResult<T> {
    let mut command = redis::Cmd::new();
    words.split(' ').for_each(|word| {
        command.arg(word);
    });
    command.query(connection)
}

/// All names in the server.
fn all_names(connection: &mut redis::Connection) -> Vec<String> {
    let mut names: Vec<String> = ask(connection, "KEYS *").unwrap();
    names.sort();
    names
}

/// Writes `members.txt`, and `asked.txt`: the members and as many non-members.
fn write_items(folder: &Path) {
    let lines = |what: &str| (0..ITEMS).map(|item| format!("{what} {item}\n")).collect::<String>();
    fs::write(folder.join("members.txt"), lines("member")).unwrap();
    fs::write(folder.join("asked.txt"), lines("member") + &lines("other")).unwrap();
}

/// Output of a run that succeeds.
fn well(folder: &Path, words: &[&str]) -> (String, String) {
    let (code, out, error) = run(folder, words);
    assert_eq!(code, 0, "{words:?}: {error}");
    (out, error)
}

fn build(folder: &Path, file: &str, more: &[&str]) {
    let mut words = vec!["build", file, "members.txt", "--quiet"];
    words.extend_from_slice(more);
    well(folder, &words);
}

#[test]
fn every_kind_survives_push_and_pull_and_answers_the_same_in_the_server() {
    let folder = empty_folder("remote", "round trips");
    write_items(&folder);
    let server = serve(None);
    let mut connection = connect(&server);
    let kinds: [(&str, &[&str]); 9] = [
        ("redis-bloom", &["--format", "redis-bloom"]),
        ("redis-cuckoo", &["--format", "redis-cuckoo"]),
        ("bloom", &["--kind", "bloom"]),
        ("blocked-bloom", &["--kind", "blocked-bloom"]),
        ("cuckoo", &["--kind", "cuckoo"]),
        ("scalable-bloom", &["--kind", "scalable-bloom", "--items", "1000"]),
        ("quotient", &["--kind", "quotient"]),
        ("binary-fuse", &["--kind", "binary-fuse"]),
        ("ribbon", &["--kind", "ribbon"]),
    ];
    let asked: Vec<String> =
        fs::read_to_string(folder.join("asked.txt")).unwrap().lines().map(str::to_owned).collect();
    for (kind, options) in kinds {
        build(&folder, kind, options);
        let there = address(&server, kind);
        let (_, said) = well(&folder, &["push", kind, &there]);
        assert!(said.contains(&format!("/{kind}: a")) && said.contains(" items is there"), "{kind}: {said}");
        let back = format!("{kind}.back");
        well(&folder, &["pull", &there, &back]);
        let (of_file, _) = well(&folder, &["check", kind, "asked.txt"]);
        let (of_back, _) = well(&folder, &["check", &back, "asked.txt"]);
        assert!(of_file == of_back, "{kind}: the file that came back answers otherwise");
        // And in the server.
        let family = if kind == "redis-bloom" {
            "BF"
        } else if kind == "redis-cuckoo" {
            "CF"
        } else {
            "MF"
        };
        let answers: Vec<bool> =
            redis::cmd(&format!("{family}.MEXISTS")).arg(kind).arg(&asked).query(&mut connection).unwrap();
        let told: String =
            asked.iter().zip(answers).filter(|(_, yes)| *yes).map(|(item, _)| format!("{item}\n")).collect();
        assert!(told == of_file, "{kind}: the server answers otherwise");
        assert!(told.lines().filter(|line| line.starts_with("member ")).count() == ITEMS, "{kind}");
    }
    let mut expected: Vec<_> = kinds.map(|(kind, _)| kind.to_owned()).into();
    expected.sort();
    assert_eq!(all_names(&mut connection), expected, "temporary names remain");
    let ttl: i64 = ask(&mut connection, "TTL redis-bloom").unwrap();
    assert_eq!(ttl, -1, "the expiry of the temporary name remains");
    // RedisBloom's own dump is pulled byte for byte.
    for kind in ["redis-bloom", "redis-cuckoo"] {
        well(&folder, &["pull", &address(&server, kind), "dump", "--format", "redisbloom", "--force"]);
        assert!(fs::read(folder.join("dump")).unwrap() == fs::read(folder.join(kind)).unwrap(), "{kind}");
    }
    let refused =
        error_line(&folder, &["pull", &address(&server, "bloom"), "b.bf", "--format", "redisbloom"]);
    assert!(refused.contains("b.bf") || refused.contains("bloom"), "{refused}");
    assert!(!folder.join("b.bf").exists());
}

#[test]
fn reports_are_json_and_say_what_was_done() {
    let folder = empty_folder("remote", "reports");
    write_items(&folder);
    build(&folder, "seen.bf", &["--format", "redis-bloom"]);
    let server = serve(None);
    let there = address(&server, "seen");
    let told = |words: &[&str]| -> serde_json::Value {
        let (out, error) = well(&folder, words);
        assert_eq!(error, "", "{words:?}");
        serde_json::from_str(&out).unwrap()
    };
    let report = told(&["push", "seen.bf", &there, "--json"]);
    assert_eq!(
        json!([report["to"], report["kind"], report["command"], report["replaced"]]),
        json!([there, "scalable-bloom", "BF.LOADCHUNK", false])
    );
    assert_eq!(report["bytes"], fs::metadata(folder.join("seen.bf")).unwrap().len());
    assert!(report["inserted"].as_u64().unwrap() > 99_000);
    assert_eq!(told(&["push", "seen.bf", &there, "--json", "--force"])["replaced"], true);
    let pulled = told(&["pull", &there, "back.mayhap", "--json"]);
    assert_eq!(
        json!([pulled["from"], pulled["out"], pulled["format"], pulled["inserted"]]),
        json!([there, "back.mayhap", "mayhap", report["inserted"]])
    );
}

#[test]
fn an_existing_name_is_replaced_only_with_force() {
    let folder = empty_folder("remote", "taken");
    write_items(&folder);
    build(&folder, "seen.bf", &["--format", "redis-bloom"]);
    build(&folder, "seen.mayhap", &["--kind", "blocked-bloom"]);
    let server = serve(None);
    let mut connection = connect(&server);
    let () = ask(&mut connection, "CF.RESERVE seen 1000").unwrap();
    for file in ["seen.bf", "seen.mayhap"] {
        let refused = error_line(&folder, &["push", file, &address(&server, "seen")]);
        assert!(refused.contains("/seen: exists already; --force replaces it"), "{refused}");
    }
    let kind = |connection: &mut redis::Connection| ask::<String>(connection, "TYPE seen").unwrap();
    assert_eq!(kind(&mut connection), "MBbloomCF");
    assert_eq!(all_names(&mut connection), ["seen"]);
    well(&folder, &["push", "seen.bf", &address(&server, "seen"), "--force"]);
    assert_eq!(kind(&mut connection), "MBbloom--");
    well(&folder, &["push", "seen.mayhap", &address(&server, "seen"), "--force"]);
    assert_eq!(kind(&mut connection), "mayhap---");
    assert_eq!(all_names(&mut connection), ["seen"]);
    let file = fs::read(folder.join("seen.bf")).unwrap();
    let taken = error_line(&folder, &["pull", &address(&server, "seen"), "seen.bf"]);
    assert!(taken.contains("exists already"), "{taken}");
    assert_eq!(fs::read(folder.join("seen.bf")).unwrap(), file);
}

#[test]
fn impossible_moves_are_errors_with_the_address() {
    let folder = empty_folder("remote", "troubles");
    write_items(&folder);
    build(&folder, "seen.mayhap", &["--kind", "bloom"]);
    let server = serve(None);
    let missing = error_line(&folder, &["pull", &address(&server, "missing"), "out"]);
    assert!(missing.contains("/missing: there is no filter of this name"), "{missing}");
    let mut connection = connect(&server);
    let _: redis::Value = ask(&mut connection, "SETBIT bits 7 1").unwrap();
    let bits = error_line(&folder, &["pull", &address(&server, "bits"), "out"]);
    assert!(bits.contains("/bits: holds a string, which is not a filter"), "{bits}");
    // An empty cuckoo filter has no chunks, but can be pulled.
    let () = ask(&mut connection, "CF.RESERVE empty 1000").unwrap();
    well(&folder, &["pull", &address(&server, "empty"), "empty.mayhap"]);
    assert_eq!(run(&folder, &["check", "empty.mayhap", "--item", "x"]).0, 1);
    well(&folder, &["push", "empty.mayhap", &address(&server, "empty too")]);

    let gone = address(&server, "seen");
    drop((connection, server));
    for words in [&["push", "seen.mayhap", &gone][..], &["pull", &gone, "out"]] {
        let refused = error_line(&folder, words);
        assert!(
            refused.contains("redis://127.0.0.1:") && refused.contains("no server listens there"),
            "{refused}"
        );
    }
    let unknown = error_line(&folder, &["push", "seen.mayhap", "redis://no-such-host.invalid/seen"]);
    assert!(unknown.contains("redis://no-such-host.invalid"), "{unknown}");
    for wrong in ["seen", "http://localhost/seen", "redis://localhost", "rediss://localhost/seen#insecure"] {
        let refused = error_line(&folder, &["push", "seen.mayhap", wrong]);
        assert!(refused.contains(wrong), "{refused}");
    }
    assert!(error_line(&folder, &["push", "members.txt", &gone]).contains("members.txt"));
    assert!(!names(&folder).contains(&"out".to_owned()));
}

/// A self-signed certificate for `localhost`.
fn certificate(folder: &Path) {
    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap();
    fs::write(folder.join("server.pem"), parameters.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
}

#[test]
fn filters_move_over_tls_and_pull_needs_permission_to_dump() {
    let folder = empty_folder("remote", "tls");
    write_items(&folder);
    build(&folder, "seen.mayhap", &["--kind", "bloom"]);
    certificate(&folder);
    let users = [
        "default off",
        "writer on >word ~* +@all -@dump",
        "reader on >word ~* +@read +@connection +@transaction",
        "mover on >word ~* +@read +@connection +@transaction +@dump",
    ];
    let server = Server::start(Settings {
        port: None,
        tls_port: Some(0),
        tls_cert: Some(folder.join("server.pem")),
        tls_key: Some(folder.join("server.key")),
        user: users.map(str::to_owned).to_vec(),
        workers: 1,
        ..Settings::default()
    })
    .unwrap();
    let port = server.tls_addresses()[0].port();
    let there = |user: &str| format!("rediss://{user}:word@localhost:{port}/seen");
    // The certificate is not trusted.
    let refused = error_line(&folder, &["push", "seen.mayhap", &there("writer")]);
    assert!(refused.contains("rediss://localhost") && !refused.contains("word"), "{refused}");
    let trusted = ["--tls-ca", "server.pem"];
    well(&folder, &[&["push", "seen.mayhap", &there("writer")][..], &trusted].concat());
    for user in ["writer", "reader"] {
        let refused = error_line(&folder, &[&["pull", &there(user), "out.mayhap"][..], &trusted].concat());
        assert!(refused.contains("NOPERM"), "{user}: {refused}");
    }
    well(&folder, &[&["pull", &there("mover"), "out.mayhap"][..], &trusted].concat());
    assert_eq!(fs::read(folder.join("out.mayhap")).unwrap(), fs::read(folder.join("seen.mayhap")).unwrap());
}

#[test]
fn a_password_comes_from_the_address_a_file_or_the_environment() {
    let folder = empty_folder("remote", "passwords");
    write_items(&folder);
    build(&folder, "seen.mayhap", &["--kind", "bloom"]);
    fs::write(folder.join("right"), "open sesame\n").unwrap();
    fs::write(folder.join("empty"), "\n").unwrap();
    let server = serve(Some("open sesame"));
    let there = address(&server, "seen");
    let refused = error_line(&folder, &["push", "seen.mayhap", &there]);
    assert!(refused.contains("NOAUTH"), "{refused}");
    well(&folder, &["push", "seen.mayhap", &there, "--password-file", "right"]);
    let with = there.replace("redis://", "redis://:open%20sesame@");
    well(&folder, &["pull", &with, "by-address"]);
    let with_user = there.replace("redis://", "redis://default:open%20sesame@");
    well(&folder, &["pull", &with_user, "by-user"]);
    let by_variable =
        mayhap_in(&folder).env("REDISCLI_AUTH", "open sesame").args(["pull", &there, "out"]).output();
    assert_eq!(said(&by_variable.unwrap()).0, 0);
    let wrong = there.replace("redis://", "redis://:wrong%20word@");
    let refused = error_line(&folder, &["pull", &wrong, "nothing"]);
    assert!(!refused.contains("wrong word") && !refused.contains("wrong%20word"), "{refused}");
    assert!(refused.contains(&format!("redis://127.0.0.1:{}", port(&server))), "{refused}");
    assert!(
        error_line(&folder, &["pull", &there, "nothing", "--password-file", "empty"]).contains("empty: ")
    );
    assert!(!folder.join("nothing").exists());
}

#[test]
fn a_unix_socket_can_be_used() {
    let folder = empty_folder("remote", "socket");
    write_items(&folder);
    build(&folder, "seen.bf", &["--format", "redis-bloom"]);
    // The path is short enough for a socket, whose limit is about a hundred bytes.
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("s");
    let settings =
        Settings { port: None, unix_socket: Some(socket.clone()), workers: 1, ..Settings::default() };
    let _server = Server::start(settings).unwrap();
    let there = format!("redis+unix://{}?name=seen%20it", socket.display());
    well(&folder, &["push", "seen.bf", &there]);
    well(&folder, &["pull", &there, "back.bf", "--format", "redisbloom"]);
    assert!(fs::read(folder.join("back.bf")).unwrap() == fs::read(folder.join("seen.bf")).unwrap());
}

/// A proxy between the program and the server. It passes this many bytes of requests, reports it, and waits until it may continue.
struct Gate {
    port: u16,
    reached: Receiver<()>,
    go_on: Sender<()>,
}

impl Gate {
    fn before(server: &Running, bytes: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (gate_port, server_port) = (listener.local_addr().unwrap().port(), port(server));
        let (reach, reached) = mpsc::channel();
        let (go_on, told) = mpsc::channel::<()>();
        thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, server_port)).unwrap();
            let (mut answers, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || {
                let _ = std::io::copy(&mut answers, &mut to_client);
                let _ = to_client.shutdown(Shutdown::Both);
            });
            let _ = std::io::copy(&mut (&mut client).take(bytes as u64), &mut server);
            let _ = reach.send(());
            if told.recv_timeout(PATIENCE).is_ok() {
                let _ = std::io::copy(&mut client, &mut server);
            }
            let _ = server.shutdown(Shutdown::Both);
        });
        Self { port: gate_port, reached, go_on }
    }
}

/// Ends the program while half a filter is sent. Returns the output of the child, and the server.
fn interrupted(
    test: &str,
    file: &str,
    format: &[&str],
    end: impl FnOnce(&mut Child, &Gate) -> i32,
) -> (i32, Running) {
    let folder = empty_folder("remote", test);
    write_items(&folder);
    // Several megabytes, so several pieces.
    build(&folder, file, &[format, &["--items", "3000000"]].concat());
    let server = serve(None);
    let mut connection = connect(&server);
    let () = ask(&mut connection, "BF.RESERVE seen 0.01 1000").unwrap();
    let _: bool = ask(&mut connection, "BF.ADD seen old").unwrap();
    let gate = Gate::before(&server, 5 << 19);
    let there = format!("redis://127.0.0.1:{}/seen", gate.port);
    let mut command = mayhap_in(&folder);
    command.args(["push", file, &there, "--force"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    gate.reached.recv_timeout(PATIENCE).expect("half of it goes through");
    let code = end(&mut child, &gate);
    // In every case the old filter answers.
    assert_eq!(ask::<String>(&mut connection, "TYPE seen").unwrap(), "MBbloom--");
    assert!(ask::<bool>(&mut connection, "BF.EXISTS seen old").unwrap());
    assert_eq!(ask::<u64>(&mut connection, "BF.CARD seen").unwrap(), 1);
    (code, server)
}

fn ctrl_c(child: &mut Child, gate: &Gate) -> i32 {
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    // The signal arrives before the reply that the program waits for.
    thread::sleep(Duration::from_millis(200));
    gate.go_on.send(()).unwrap();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    panic!("it does not end");
}

#[test]
fn ctrl_c_leaves_the_old_filter_and_nothing_else() {
    for (file, format) in [("seen.bf", ["--format", "redis-bloom"]), ("seen.mayhap", ["--kind", "bloom"])] {
        let (code, server) = interrupted("ctrl-c", file, &format, ctrl_c);
        assert_eq!(code, 130, "{file}");
        assert_eq!(all_names(&mut connect(&server)), ["seen"], "{file}");
    }
}

#[test]
fn half_a_filter_of_a_killed_program_is_not_visible_and_expires() {
    let kinds = [("seen.bf", ["--format", "redis-bloom"], "BF"), ("seen.mayhap", ["--kind", "bloom"], "MF")];
    for (file, format, family) in kinds {
        let (_, server) = interrupted("killed", file, &format, |child, _| {
            child.kill().unwrap();
            child.wait().unwrap();
            0
        });
        let mut connection = connect(&server);
        let names = all_names(&mut connection);
        assert!(names.len() == 2 && names[1].starts_with("{seen}:loading:"), "{names:?}");
        for command in ["EXISTS", "ADD"] {
            let refused = ask::<redis::Value>(&mut connection, &format!("{family}.{command} {} x", names[1]));
            assert_eq!(refused.unwrap_err().code(), Some("NOTREADY"), "{file}");
        }
        let ttl: i64 = ask(&mut connection, &format!("TTL {}", names[1])).unwrap();
        assert!((1..=600).contains(&ttl), "it expires in {ttl} s");
    }
}

/// A fake server that replies with `answer`, command by command; after a reply that is cut off it stops.
fn false_server(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut requests = BufReader::new(stream.try_clone().unwrap());
            while let Some(command) = request(&mut requests) {
                let answer = if command == "CLIENT" { b"+OK\r\n".to_vec() } else { answer(&command) };
                if stream.write_all(&answer).is_err() || !answer.ends_with(b"\r\n") {
                    break;
                }
            }
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
    format!("redis://127.0.0.1:{port}/seen")
}

/// The first word of the next request.
fn request(requests: &mut impl BufRead) -> Option<String> {
    let number = |requests: &mut dyn BufRead| -> Option<usize> {
        let mut line = String::new();
        requests.read_line(&mut line).ok()?;
        line.get(1..)?.trim().parse().ok()
    };
    let words = number(requests)?;
    let mut first = None;
    for _ in 0..words {
        let mut word = vec![0; number(requests)? + 2];
        requests.read_exact(&mut word).ok()?;
        first.get_or_insert_with(|| String::from_utf8_lossy(&word[..word.len() - 2]).into_owned());
    }
    first
}

#[test]
fn invalid_replies_are_errors() {
    let folder = empty_folder("remote", "hostile");
    write_items(&folder);
    build(&folder, "seen.bf", &["--format", "redis-bloom"]);
    build(&folder, "seen.mayhap", &["--kind", "bloom"]);
    let dump = fs::read(folder.join("seen.bf")).unwrap();
    let header = &dump[..73];
    let piece = |next: i64, bytes: &[u8]| {
        [format!("*2\r\n:{next}\r\n${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
    };
    // A header of 2^60 bytes.
    let mut vast = header.to_vec();
    vast[20..28].copy_from_slice(&(1_u64 << 60).to_le_bytes());
    vast[28..36].copy_from_slice(&(1_u64 << 63).to_le_bytes());
    let pieces: [(&str, Vec<u8>); 14] = [
        ("MBbloom--", b":5\r\n".to_vec()),
        ("MBbloom--", b"$-1\r\n".to_vec()),
        ("MBbloom--", b"-NOTREADY half of it\r\n".to_vec()),
        ("MBbloom--", b"*2\r\n:1\r\n:1\r\n".to_vec()),
        ("MBbloom--", b"*3\r\n:1\r\n$1\r\nx\r\n:1\r\n".to_vec()),
        ("MBbloom--", piece(0, b"")),
        ("MBbloom--", piece(1, b"junk")),
        ("MBbloom--", piece(1, header)),
        ("MBbloom--", piece(1, &vast)),
        ("MBbloomCF", piece(1, &[0xff; 38])),
        ("mayhap---", piece(0, b"junk")),
        ("mayhap---", piece(7, b"")),
        ("mayhap---", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
        ("mayhap---", b"*2\r\n:1\r\n$9999999999999\r\nx".to_vec()),
    ];
    for (kind, answer) in pieces {
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(40)]).into_owned();
        let there = false_server(move |command| match command {
            "TYPE" => format!("+{kind}\r\n").into_bytes(),
            "BF.SCANDUMP" | "CF.SCANDUMP" | "MF.DUMP" => answer.clone(),
            _ => Vec::new(),
        });
        let said = error_line(&folder, &["pull", &there, "out"]);
        assert!(said.contains("127.0.0.1"), "{shown}: {said}");
        assert!(!folder.join("out").exists(), "{shown}");
    }
    let ends = false_server(|_| Vec::new());
    assert!(error_line(&folder, &["pull", &ends, "out"]).contains("127.0.0.1"));

    // A server that accepts everything and stores nothing; one without the commands; one with a wrong count.
    let forgets = false_server(|command| match command {
        "TYPE" => b"+none\r\n".to_vec(),
        "BF.CARD" => b":0\r\n".to_vec(),
        "EXPIRE" | "DEL" => b":1\r\n".to_vec(),
        _ => b"+OK\r\n".to_vec(),
    });
    let said = error_line(&folder, &["push", "seen.bf", &forgets]);
    assert!(said.contains("counts 0 items instead of"), "{said}");
    let said = error_line(&folder, &["push", "seen.mayhap", &forgets]);
    assert!(said.contains("unexpected reply to MF.LOAD: a text"), "{said}");
    let knows_nothing = false_server(|command| match command {
        "TYPE" => b"+none\r\n".to_vec(),
        "DEL" => b":0\r\n".to_vec(),
        _ => format!("-ERR unknown command '{command}', with args beginning with: \r\n").into_bytes(),
    });
    let said = error_line(&folder, &["push", "seen.bf", &knows_nothing]);
    assert!(
        said.contains("has no BF.LOADCHUNK: it is neither mayhap's server nor a Redis with a module for it"),
        "{said}"
    );
    let said = error_line(&folder, &["push", "seen.mayhap", &knows_nothing]);
    assert!(said.contains("has no MF.LOAD") && said.contains("bloom filter has another"), "{said}");
}

/// `BF.*` and `CF.*` filters with a secret key have no chunks: they are pulled with `DUMP`, including the key. Queries and additions work
/// as for any other filter.
#[test]
fn keyed_bf_and_cf_filters_are_pulled_and_queried() {
    let folder = empty_folder("remote", "keyed");
    fs::write(folder.join("asked.txt"), "1\n2\nnobody\n").unwrap();
    fs::write(folder.join("more.txt"), "7\n8\n").unwrap();
    let server = serve(None);
    let mut connection = connect(&server);
    let _: String = ask(&mut connection, "CONFIG SET bf-hash keyed cf-hash keyed").unwrap();
    let _: Vec<bool> = ask(&mut connection, "BF.MADD b 1 2 3").unwrap();
    let _: Vec<bool> = ask(&mut connection, "CF.INSERT c ITEMS 1 2 3").unwrap();
    for name in ["b", "c"] {
        let place = address(&server, name);
        let (report, _) = well(&folder, &["pull", &place, &format!("{name}.mayhap"), "--json"]);
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!((&report["command"], &report["inserted"]), (&json!("DUMP"), &json!(3)), "{name}");
        for filter in [&format!("{name}.mayhap"), &place] {
            let (out, _) = well(&folder, &["check", filter, "asked.txt"]);
            assert_eq!(out, "1\n2\n", "{filter}");
        }
        well(&folder, &["add", &place, "more.txt", "--quiet"]);
        let (out, _) = well(&folder, &["check", &place, "more.txt"]);
        assert_eq!(out, "7\n8\n", "{name}");
        // Never as a RedisBloom dump.
        let (code, _, error) = run(&folder, &["pull", &place, "x.dump", "--format", "redisbloom"]);
        assert!(code == 2 && error.contains("keyed"), "{name}: {error}");
    }
}
