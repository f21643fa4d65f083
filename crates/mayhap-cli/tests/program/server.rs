//! `mayhap serve` as a running process, on free ports.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::mayhap_in;

/// Longer than anything takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The program, independent of the environment of the tests.
pub(crate) fn serve(folder: &Path) -> Command {
    let mut command = mayhap_in(folder);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MAYHAP_") {
            command.env_remove(name);
        }
    }
    command.arg("serve");
    command
}

/// A running server, and the lines it printed when it was ready.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) greeting: String,
    _out: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("  try ") {
            if out.read_line(&mut greeting).unwrap() == 0 {
                let mut error = String::new();
                child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
                panic!("it ended: {greeting}{error}");
            }
        }
        Self { child, greeting, _out: out }
    }

    /// On free ports, with data in `folder/data`.
    pub(crate) fn in_folder(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = serve(folder);
        command.args(["--port", "0", "--http-port", "0", "--dir", "data"]).args(arguments);
        Self::start(command)
    }

    pub(crate) fn address(&self, what: &str) -> String {
        let line = self.greeting.lines().find_map(|line| line.strip_prefix(&format!("  {what}  ")));
        let line = line.unwrap_or_else(|| panic!("no {what} in {}", self.greeting));
        line.trim_start_matches("http://").trim_end_matches("/metrics").to_owned()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address("RESP")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a line and reads until the server closes the connection.
    pub(crate) fn ask(&self, line: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(format!("{line}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply.strip_suffix("+OK\r\n").unwrap_or_else(|| panic!("{line}: {reply}")).to_owned()
    }

    /// Status and body.
    pub(crate) fn http(&self, request: &str, headers: &str, body: &str) -> (u16, String) {
        let host = self.address("HTTP");
        let mut stream = TcpStream::connect(&host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let request = format!(
            "{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub(crate) fn get(&self, path: &str) -> serde_json::Value {
        let (status, body) = self.http(&format!("GET {path}"), "", "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, serde_json::Value) {
        let (status, body) = self.http(&format!("POST {path}"), "Content-Type: application/json\r\n", body);
        (status, serde_json::from_str(&body).unwrap_or_default())
    }

    pub(crate) fn signal(&self, signal: &str) {
        let killed = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }

    /// Sends SIGTERM. Returns its exit code, its log, and the time it took to end.
    pub(crate) fn stop(mut self) -> (i32, String, Duration) {
        let begun = Instant::now();
        self.signal("-TERM");
        let status = self.child.wait().unwrap();
        let took = begun.elapsed();
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (status.code().unwrap_or(-1), log, took)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
