//! Bodies, names and queries of the HTTP interface, sent to a server on loopback: every response is JSON, and none is a server error.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::LazyLock;
use std::time::Duration;

use mayhap_command::{Request, Scratch, table};
use mayhap_server::{Running, Server, Settings};

use crate::input::Input;

static SERVER: LazyLock<Running> = LazyLock::new(|| {
    let settings = Settings {
        port: Some(0),
        http_port: Some(0),
        workers: 1,
        log_level: mayhap_server::logging::Level::Error,
        ..Settings::default()
    };
    let server = Server::start(settings).expect("the server can listen on loopback");
    let engine = server.shared().engine();
    for line in
        ["bf.add bloom a", "cf.add cuckoo a", "mf.reserve mayhap capacity 10", "set text a", "set a%/b 1"]
    {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let command = table::find(words[0]).expect("a command");
        engine.execute(&[Request { command, words: &words }], &mut Scratch::default(), &mut Vec::new());
    }
    server
});

thread_local! {
    static CONNECTION: RefCell<Option<BufReader<TcpStream>>> = const { RefCell::new(None) };
}

fn connect() -> BufReader<TcpStream> {
    let stream = TcpStream::connect(SERVER.http_addresses()[0]).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
    stream.set_nodelay(true).expect("no delay");
    BufReader::new(stream)
}

/// Returns the status and the body of the response. Reconnects if the server closed the connection.
fn exchange(request: &[u8]) -> (u16, Vec<u8>) {
    CONNECTION.with_borrow_mut(|connection| {
        let mut stream = connection.take().unwrap_or_else(connect);
        stream.get_mut().write_all(request).expect("the server reads the request");
        let mut line = String::new();
        stream.read_line(&mut line).expect("the server answers");
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("not a status: {line:?}"));
        let (mut length, mut closes) = (0, false);
        loop {
            line.clear();
            stream.read_line(&mut line).expect("a header");
            let header = line.trim_end().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length: ") {
                length = value.parse().expect("a length");
            }
            closes |= header == "connection: close";
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("a body");
        if !closes {
            *connection = Some(stream);
        }
        (status, body)
    })
}

/// Characters that need no escape in a path or a query.
fn plain(bytes: &[u8]) -> String {
    let escape = |&byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'%' | b'.' | b'-' | b'=' | b'&' | b'+' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    bytes.iter().map(escape).collect()
}

/// Runs the target. The first byte chooses the request.
///
/// # Panics
/// If a guarantee is broken.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let route = input.below(5);
    let path = match route {
        0 => "/api/v1/plan".to_owned(),
        1 => {
            format!("/api/v1/filters/{}/probe", ["bloom", "cuckoo", "mayhap", "text", "none"][input.below(5)])
        }
        2 => format!("/api/v1/filters/{}/probe", plain(input.string())),
        3 => format!("/api/v1/filters/{}", plain(input.string())),
        _ => format!("/api/v1/filters?{}", plain(input.string())),
    };
    let body = if route < 3 { input.rest() } else { &[] };
    let method = if route < 3 { "POST" } else { "GET" };
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    let (status, answer) = exchange(&request);
    assert!((200..500).contains(&status), "{status} to {path}: {:?}", answer.escape_ascii());
    if status == 200 {
        let first = answer.first();
        assert!(matches!(first, Some(b'{')), "{path}: {:?}", answer.escape_ascii());
    }
}
