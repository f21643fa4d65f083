//! A connection to a server, with one request line at a time.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

pub(crate) struct Talk(pub(crate) BufReader<TcpStream>);

impl Talk {
    /// Uses this connection. No reply may take longer than `patience`.
    pub(crate) fn over(stream: TcpStream, patience: Duration) -> Self {
        stream.set_read_timeout(Some(patience)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Sends a line and reads the first line of the reply.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes());
        self.line()
    }

    /// A field of `INFO`.
    pub(crate) fn info(&mut self, field: &str) -> u64 {
        let length: usize = self.ask("INFO")[1..].parse().unwrap();
        let mut text = vec![0; length + 2];
        self.0.read_exact(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_else(|| panic!("no {field} in {text}")).parse().unwrap()
    }
}
