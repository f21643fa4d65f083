//! A real server on a free port, with requests as raw bytes.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::Duration;

use mayhap_server::{Running, Server, Settings};

fn start() -> Running {
    Server::start(Settings { port: Some(0), workers: 2, ..Settings::default() }).unwrap()
}

fn connect(server: &Running) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.addresses()[0].port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Sends `bytes`, closes the sending side, and reads everything.
fn exchange(server: &Running, bytes: &[u8]) -> String {
    let mut stream = connect(server);
    stream.write_all(bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut replies = Vec::new();
    stream.read_to_end(&mut replies).unwrap();
    String::from_utf8(replies).unwrap()
}

#[test]
fn a_pipeline_of_data_and_session_commands_is_answered_in_order() {
    let server = start();
    assert_eq!(
        exchange(&server, b"BF.ADD seen a\r\n*3\r\n$9\r\nBF.EXISTS\r\n$4\r\nseen\r\n$1\r\na\r\nPING\r\nBF.EXISTS seen b\r\nBF.EXISTS\r\nQUIT\r\nPING\r\n"),
        ":1\r\n:1\r\n+PONG\r\n:0\r\n-ERR wrong number of arguments for 'bf.exists' command\r\n+OK\r\n"
    );
}

#[test]
fn invalid_bytes_are_refused_after_the_requests_before_them_are_answered() {
    let server = start();
    assert_eq!(
        exchange(&server, b"PING\r\n*1\r\n!4\r\nPING\r\n"),
        "+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n"
    );
}

#[test]
fn a_web_page_cannot_run_commands() {
    let server = start();
    let post = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\nPING\r\n";
    assert_eq!(exchange(&server, post), "");
    assert_eq!(exchange(&server, b"PING\r\nhost: localhost\r\nPING\r\n"), "+PONG\r\n");
}

#[test]
fn a_file_at_the_path_of_the_socket_is_kept() {
    let path = std::env::temp_dir().join(format!("mayhap-precious-{}", std::process::id()));
    std::fs::write(&path, "precious").unwrap();
    let settings = || Settings { port: None, unix_socket: Some(path.clone()), ..Settings::default() };
    assert!(Server::start(settings()).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    // A socket that no server listens on is replaced.
    std::fs::remove_file(&path).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(Server::start(settings()).unwrap());
    assert!(!path.exists());
}

#[test]
fn a_stopping_server_answers_received_requests_and_ends_soon() {
    let server = start();
    let mut clients: Vec<TcpStream> = (0..8).map(|_| connect(&server)).collect();
    for client in &mut clients {
        client.write_all(b"PING\r\n").unwrap();
        let mut pong = [0; 7];
        client.read_exact(&mut pong).unwrap();
        client.write_all(&b"PING\r\n".repeat(1_000)).unwrap();
    }
    let stop = server.stop_handle();
    let begun = std::time::Instant::now();
    stop.stop();
    for client in &mut clients {
        let mut replies = Vec::new();
        client.read_to_end(&mut replies).unwrap();
        assert_eq!(replies, b"+PONG\r\n".repeat(1_000));
    }
    drop(clients);
    server.wait().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}
