//! Passwords, transactions, large requests and large replies, on a real server.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::Duration;

use mayhap_server::{Running, Server, Settings};

fn start(settings: Settings) -> Running {
    Server::start(Settings { port: Some(0), workers: 1, ..settings }).unwrap()
}

struct Talk(TcpStream);

impl Talk {
    fn to(server: &Running) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.addresses()[0].port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self(stream)
    }

    /// Sends a line and expects exactly this reply.
    fn says(&mut self, line: &str, expected: &str) {
        self.0.write_all(format!("{line}\r\n").as_bytes()).unwrap();
        let mut reply = vec![0; expected.len()];
        self.0.read_exact(&mut reply).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(String::from_utf8_lossy(&reply), expected, "{line}");
    }
}

/// Reads everything until the other side closes.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn without_the_password_nothing_is_answered() {
    let server = start(Settings { password: Some("secret".into()), ..Settings::default() });
    let mut talk = Talk::to(&server);
    let refused = "-NOAUTH Authentication required.\r\n";
    talk.says("PING", refused);
    talk.says("BF.ADD f a", refused);
    talk.says("BF.ADD f", "-ERR wrong number of arguments for 'bf.add' command\r\n");
    talk.says("AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    talk.says("AUTH default secre", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    talk.says("HELLO 3", "-NOAUTH HELLO must be called with the client already authenticated");
    let mut talk = Talk::to(&server);
    // A password inside a pipeline applies to the requests after it.
    talk.says("PING\r\nAUTH secret\r\nPING", &format!("{refused}+OK\r\n+PONG\r\n"));
    talk.says("RESET\r\nPING", &format!("+RESET\r\n{refused}"));
    let mut talk = Talk::to(&server);
    talk.says("HELLO 3 AUTH default secret SETNAME me", "%7\r\n$6\r\nserver\r\n$6\r\nmayhap\r\n");
}

#[test]
fn an_unauthenticated_client_has_small_limits() {
    let server = start(Settings { password: Some("secret".into()), ..Settings::default() });
    let mut talk = Talk::to(&server);
    talk.says("*100", "-ERR Protocol error: unauthenticated multibulk length\r\n");
    assert_eq!(rest(talk.0), b"");
}

#[test]
fn a_transaction_does_nothing_if_a_watched_name_was_changed() {
    let server = start(Settings::default());
    let (mut one, mut other) = (Talk::to(&server), Talk::to(&server));
    one.says("WATCH f", "+OK\r\n");
    one.says("WATCH g", "+OK\r\n");
    other.says("BF.ADD f a", ":1\r\n");
    one.says("MULTI\r\nBF.ADD f b\r\nEXEC", "+OK\r\n+QUEUED\r\n*-1\r\n");
    // EXEC ends the watch.
    one.says(
        "MULTI\r\nBF.ADD f b\r\nPING\r\nBF.EXISTS f a\r\nEXEC",
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:1\r\n+PONG\r\n:1\r\n",
    );
    one.says("WATCH f", "+OK\r\n");
    other.says("BF.ADD f a", ":0\r\n");
    one.says("MULTI\r\nBF.EXISTS f b\r\nEXEC", "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    one.says("WATCH f", "+OK\r\n");
    other.says("BF.ADD f c", ":1\r\n");
    one.says("UNWATCH\r\nMULTI\r\nBF.EXISTS f c\r\nEXEC", "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    one.says("BF.EXISTS f never", ":0\r\n");
}

#[test]
fn a_client_is_killed_from_another_connection() {
    let server = start(Settings::default());
    let (mut one, mut other) = (Talk::to(&server), Talk::to(&server));
    one.says("CLIENT SETNAME victim", "+OK\r\n");
    other.says("CLIENT ID", ":2\r\n");
    other.says("CLIENT KILL ID 1", ":1\r\n");
    assert_eq!(rest(one.0), b"");
    other.says("CLIENT KILL ID 1", ":0\r\n");
    other.says("CLIENT KILL ID 2 SKIPME no", ":1\r\n");
    assert_eq!(rest(other.0), b"");
}

#[test]
fn a_pause_delays_requests_and_loses_none() {
    let server = start(Settings::default());
    let (mut one, mut other) = (Talk::to(&server), Talk::to(&server));
    one.says("CLIENT PAUSE 60000 WRITE", "+OK\r\n");
    other.says("PING\r\nBF.EXISTS f a", "+PONG\r\n:0\r\n");
    other.0.write_all(b"BF.EXISTS f a\r\nBF.ADD f a\r\nBF.EXISTS f a\r\n").unwrap();
    let mut reply = [0; 12];
    other.0.read_exact(&mut reply[..4]).unwrap();
    one.says("BF.EXISTS f a", ":0\r\n");
    one.says("CLIENT UNPAUSE", "+OK\r\n");
    other.0.read_exact(&mut reply[4..]).unwrap();
    assert_eq!(&reply, b":0\r\n:1\r\n:1\r\n");
    one.says("CLIENT PAUSE 300 ALL", "+OK\r\n");
    let begun = std::time::Instant::now();
    other.says("PING", "+PONG\r\n");
    assert!(begun.elapsed() >= Duration::from_millis(200), "{:?}", begun.elapsed());
    one.says("CLIENT PAUSE x", "-ERR timeout is not an integer or out of range\r\n");
    one.says("CLIENT PAUSE -1", "-ERR timeout is negative\r\n");
}

#[test]
fn a_large_request_inside_a_pipeline_keeps_its_place() {
    let server = start(Settings::default());
    let items = 300_000;
    let mut bytes = b"PING\r\n".to_vec();
    bytes.extend_from_slice(format!("*{}\r\n$7\r\nBF.MADD\r\n$1\r\nf\r\n", items + 2).as_bytes());
    for item in 0..items {
        bytes.extend_from_slice(format!("$6\r\n{item:06}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"ECHO a\r\nBF.EXISTS f 299999\r\nBF.EXISTS f never\r\nkeys *\r\n");
    let mut stream = Talk::to(&server).0;
    let mut sender = stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        // In pieces that end at any byte.
        bytes.chunks(70_001).for_each(|piece| sender.write_all(piece).unwrap());
        sender.shutdown(Shutdown::Write).unwrap();
    });
    let mut replies = Vec::new();
    stream.read_to_end(&mut replies).unwrap();
    sending.join().unwrap();
    let text = String::from_utf8(replies).unwrap();
    let (head, tail) = (format!("+PONG\r\n*{items}\r\n"), "$1\r\na\r\n:1\r\n:0\r\n*1\r\n$1\r\nf\r\n");
    assert!(text.starts_with(&head) && text.ends_with(tail), "{}", text[text.len() - 60..].escape_default());
    assert_eq!(text.len(), head.len() + 4 * items + tail.len());
}

#[test]
fn unread_replies_stop_reading_from_that_client_only() {
    let server = start(Settings { output_limit: 1 << 20, ..Settings::default() });
    let mut greedy = Talk::to(&server).0;
    let times = 400;
    greedy.write_all(&b"COMMAND\r\n".repeat(times)).unwrap();
    greedy.shutdown(Shutdown::Write).unwrap();
    Talk::to(&server).says("PING", "+PONG\r\n");
    std::thread::sleep(Duration::from_millis(200));
    // Apart from bytes in the sockets, its unread replies are little more than the limit.
    let owed =
        server.shared().clients().list().iter().map(|client| client.line()).collect::<Vec<_>>().concat();
    let owed = String::from_utf8(owed).unwrap();
    let most = owed
        .split("omem=")
        .skip(1)
        .map(|rest| rest.split(' ').next().unwrap().parse::<usize>().unwrap())
        .max();
    assert!(most.unwrap() < 2 << 20, "{owed}");
    let one = rest({
        let mut stream = Talk::to(&server).0;
        stream.write_all(b"COMMAND\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream
    });
    assert_eq!(rest(greedy).len(), times * one.len());
}

/// `BF.INSERT … NOCREATE` joins batches. Its replies do not show this, in either protocol.
#[test]
fn insertions_without_creation_reply_as_other_additions_do() {
    let server = start(Settings::default());
    let mut talk = Talk::to(&server);
    for (protocol, [yes, no]) in [(2, [":1", ":0"]), (3, ["#t", "#f"])] {
        talk.0.write_all(format!("HELLO {protocol}\r\nFLUSHALL\r\nECHO begin\r\n").as_bytes()).unwrap();
        read_to(&mut talk, b"$5\r\nbegin\r\n");
        talk.says("BF.INSERT f NOCREATE ITEMS a", "-ERR not found\r\n");
        talk.says("SET f text\r\nBF.INSERT f NOCREATE ITEMS a", "+OK\r\n-WRONGTYPE ");
        let _ = read_to(&mut talk, b"\r\n");
        talk.says(
            "DEL f\r\nBF.RESERVE f 0.01 100\r\nBF.INSERT f NOCREATE ITEMS",
            ":1\r\n+OK\r\n-ERR wrong number ",
        );
        let _ = read_to(&mut talk, b"\r\n");
        talk.says(
            "BF.INSERT f NOCREATE ITEMS a b\r\nBF.INSERT f nocreate items b c\r\nBF.INSERT f NOCREATE ITEMS c",
            &format!("*2\r\n{yes}\r\n{yes}\r\n*2\r\n{no}\r\n{yes}\r\n*1\r\n{no}\r\n"),
        );
        // First while the filter has room, then while it is full.
        talk.says("BF.RESERVE one 0.01 50 NONSCALING\r\nBF.RESERVE two 0.01 50 NONSCALING", "+OK\r\n+OK\r\n");
        let mut full = 0;
        for from in 0..12 {
            let items: String = (from * 7..from * 7 + 9).map(|item| format!(" {item}")).collect();
            let replies = [format!("BF.MADD one{items}"), format!("BF.INSERT two NOCREATE ITEMS{items}")]
                .map(|line| {
                    talk.0.write_all(format!("{line}\r\nECHO end\r\n").as_bytes()).unwrap();
                    read_to(&mut talk, b"$3\r\nend\r\n")
                });
            assert_eq!(replies[0].escape_ascii().to_string(), replies[1].escape_ascii().to_string());
            full += usize::from(replies[0].windows(5).any(|part| part == b"-ERR "));
        }
        assert!((4..8).contains(&full), "{full} requests met the full filter");
    }
}

/// Reads up to `end`, and returns the bytes before it.
fn read_to(talk: &mut Talk, end: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end) {
        let mut byte = [0];
        talk.0.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    bytes.truncate(bytes.len() - end.len());
    bytes
}
