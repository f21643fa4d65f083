//! Limits on connections: slow HTTP connections, web pages of other sites, and connections that have sent
//! nothing yet.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use mayhap_server::{Running, Server, Settings};

const PATIENCE: Duration = Duration::from_secs(20);

fn settings() -> Settings {
    let log_level = mayhap_server::logging::Level::Error;
    Settings { port: Some(0), http_port: Some(0), workers: 1, log_level, ..Settings::default() }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn resp(server: &Running, bytes: &[u8]) -> TcpStream {
    let mut stream = connect(server.addresses()[0]);
    stream.write_all(bytes).unwrap();
    stream
}

/// Reads everything until the other side closes.
fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4_096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("still open: {error}"),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn pong(stream: &mut TcpStream) {
    let mut reply = [0; 7];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");
}

/// The status of a request with these headers.
fn status(server: &Running, request: &str, headers: &str) -> u16 {
    let mut stream = connect(server.http_addresses()[0]);
    write!(stream, "{request} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n").unwrap();
    let reply = rest(stream);
    reply.split(' ').nth(1).unwrap_or_else(|| panic!("{reply:?}")).parse().unwrap()
}

#[test]
fn slow_http_connections_are_closed() {
    let settings = Settings { request_timeout_secs: 1, http_max_clients: 6, ..settings() };
    let server = Server::start(settings).unwrap();
    let http = server.http_addresses()[0];
    let ask = format!("GET /health HTTP/1.1\r\nHost: {http}\r\n\r\n");
    let begun = Instant::now();
    let silent = connect(http);
    let mut half = connect(http);
    half.write_all(&ask.as_bytes()[..20]).unwrap();
    let mut kept = connect(http);
    kept.write_all(ask.as_bytes()).unwrap();
    let drip = |head: String| {
        let mut stream = connect(http);
        let mut other = stream.try_clone().unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        // One byte at a time, for longer than the timeout.
        thread::spawn(move || {
            while other.write_all(b"a").is_ok() {
                thread::sleep(Duration::from_millis(50));
            }
        });
        stream
    };
    let head = drip(format!("GET /health HTTP/1.1\r\nHost: {http}\r\nX-Slow: "));
    let body = drip(format!(
        "POST /api/v1/plan HTTP/1.1\r\nHost: {http}\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n"
    ));
    let mut open = [silent, half, kept, head, body].map(Some);
    thread::sleep(Duration::from_millis(200));
    assert_eq!(server.shared().clients().http(), 5);
    let _sixth = connect(http);
    let full = rest(connect(http));
    assert!(full.starts_with("HTTP/1.1 503 ") && full.contains("max number of clients"), "{full}");
    let mut ping = resp(&server, b"PING\r\n");
    pong(&mut ping);
    for (number, stream) in open.iter_mut().enumerate() {
        let said = rest(stream.take().unwrap());
        assert_eq!(said.starts_with("HTTP/1.1 200 "), number == 2, "{number}: {said}");
    }
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(900) && took < Duration::from_secs(5), "{took:?}");
    assert!(server.shared().clients().overdue() >= 5);
    assert_eq!(status(&server, "GET /health", &format!("Host: {http}\r\n")), 200, "there is room again");
}

#[test]
fn web_pages_of_other_sites_are_refused() {
    let settings = Settings { http_hosts: vec!["filters.example.org".into()], ..settings() };
    let server = Server::start(settings).unwrap();
    let http = server.http_addresses()[0];
    let port = http.port();
    let get = |headers: &str| status(&server, "GET /api/v1/filters", headers);
    for ours in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("LOCALHOST:{port}"),
        format!("[::1]:{port}"),
        "filters.example.org".to_owned(),
        "filters.example.org:8443".to_owned(),
    ] {
        assert_eq!(get(&format!("Host: {ours}\r\n")), 200, "{ours}");
        assert_eq!(
            get(&format!("Host: {ours}\r\nOrigin: http://{ours}\r\nSec-Fetch-Site: same-origin\r\n")),
            200
        );
    }
    for other in [
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("127.0.0.1:{}", port ^ 1),
        "localhost".to_owned(),
        format!("192.0.2.7:{port}"),
        "localhost:no".to_owned(),
    ] {
        for path in ["/api/v1/filters", "/metrics", "/health"] {
            assert_eq!(
                status(&server, &format!("GET {path}"), &format!("Host: {other}\r\n")),
                421,
                "{other}"
            );
        }
    }
    assert_eq!(
        status(&server, &format!("GET http://evil.example:{port}/health"), &format!("Host: {http}\r\n")),
        421
    );
    assert_eq!(get(""), 400);
    assert_eq!(get(&format!("Host: {http}\r\nHost: {http}\r\n")), 400);
    for page in [
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://localhost",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ] {
        assert_eq!(get(&format!("Host: {http}\r\n{page}\r\n")), 403, "{page}");
    }
    assert_eq!(get(&format!("Host: {http}\r\nSec-Fetch-Site: none\r\n")), 200);
}

#[test]
fn http_on_the_resp_port_is_closed() {
    let server = Server::start(settings()).unwrap();
    for line in [
        "PUT / HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "HEAD / HTTP/1.0",
        "DELETE /x HTTP/1.1",
        "PATCH /x HTTP/1.1",
        "CONNECT a:1 HTTP/1.1",
        "TRACE / HTTP/1.1",
        "GET / HTTP/1.1",
        "get /x HTTP/2",
        "EHLO me",
        "HELO me",
        "host: x",
    ] {
        let said = rest(resp(&server, format!("{line}\r\nPING\r\n").as_bytes()));
        assert_eq!(said, "", "{line}");
    }
    // The command GET still works.
    let mut stream = resp(&server, b"GET HTTP/1.1\r\nPING\r\n");
    let mut null = [0; 5];
    stream.read_exact(&mut null).unwrap();
    assert_eq!(&null, b"$-1\r\n");
    pong(&mut stream);
}

#[test]
fn an_idle_connection_may_wait_but_a_partial_request_may_not() {
    let password = Some("secret".into());
    let server = Server::start(Settings { request_timeout_secs: 1, password, ..settings() }).unwrap();
    let mut pooled = resp(&server, b"");
    let mut unknown = resp(&server, b"PING\r\n");
    let half = resp(&server, b"*2\r\n$4\r\nAUTH\r\n$6\r\nsec");
    let begun = Instant::now();
    rest(half);
    assert!(begun.elapsed() > Duration::from_millis(700), "{:?}", begun.elapsed());
    thread::sleep(Duration::from_millis(1_200));
    for stream in [&mut pooled, &mut unknown] {
        stream.write_all(b"AUTH secret\r\nPING\r\nQUIT\r\n").unwrap();
    }
    assert_eq!(rest(pooled), "+OK\r\n+PONG\r\n+OK\r\n");
    assert!(rest(unknown).ends_with("+OK\r\n+PONG\r\n+OK\r\n"));
}

#[test]
fn an_overlong_line_before_authentication_is_refused_without_waiting() {
    let password = Some("secret".into());
    let server = Server::start(Settings { password, ..settings() }).unwrap();
    for (bytes, text) in [
        (vec![b'a'; 17 * 1_024 + 1], "too big inline request"),
        (vec![b'a'; 20_000], "too big inline request"),
        (vec![b'a'; 64 * 1_024], "too big inline request"),
        ([&b"*"[..], &[b'1'; 20_000]].concat(), "too big mbulk count string"),
        ([&b"*2\r\n$"[..], &[b'1'; 20_000]].concat(), "too big bulk count string"),
    ] {
        let begun = Instant::now();
        let said = rest(resp(&server, &bytes));
        assert_eq!(said, format!("-ERR Protocol error: {text}\r\n"), "{} bytes", bytes.len());
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
}
