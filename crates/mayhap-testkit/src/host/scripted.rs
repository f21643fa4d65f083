//! A server with programmable replies, for situations that are rare with real servers.

use std::io::{self, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::Wire;

/// The reaction to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Sends these bytes as the reply.
    Say(String),
    /// Closes the connection.
    HangUp,
    /// Does nothing: the client keeps waiting.
    BeSilent,
}

impl Act {
    /// A line, such as `+OK`.
    pub fn line(line: &str) -> Self {
        Self::Say(format!("{line}\r\n"))
    }

    /// A bulk string.
    pub fn text(text: &str) -> Self {
        Self::Say(format!("${}\r\n{text}\r\n", text.len()))
    }

    /// The reply of a Redis to the first requests of clients, as a standalone master or in a cluster. `None` for any other request.
    pub fn of_a_master(words: &[String], is_clustered: bool) -> Option<Self> {
        let mode = if is_clustered { "cluster" } else { "standalone" };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(match words.as_slice() {
            ["CLIENT", ..] => Self::line("+OK"),
            ["HELLO"] => Self::Say(format!(
                "*4\r\n$4\r\nmode\r\n${}\r\n{mode}\r\n$4\r\nrole\r\n$6\r\nmaster\r\n",
                mode.len()
            )),
            ["INFO", "cluster"] => Self::text(&format!("cluster_enabled:{}\r\n", u8::from(is_clustered))),
            ["INFO", "replication"] => Self::text("role:master\r\nmaster_replid:7a\r\n"),
            ["CLUSTER", "SLOTS"] if !is_clustered => {
                Self::line("-ERR This instance has cluster support disabled")
            }
            _ => return None,
        })
    }
}

/// A server on loopback. Its threads end with the process.
#[derive(Debug)]
pub struct Scripted {
    port: u16,
    heard: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Scripted {
    /// Starts a server that reacts to every request as `act` returns.
    ///
    /// # Panics
    /// If there is no free port.
    pub fn start(act: impl Fn(&[String]) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
        let (act, notes) = (Arc::new(act), heard.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (act, notes) = (act.clone(), notes.clone());
                // A client that disconnected needs no reply.
                thread::spawn(move || drop(serve(&stream, &*act, &notes)));
            }
        });
        Self { port, heard }
    }

    /// The port it listens on.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The address for clients.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The number of requests that begin with this word.
    pub fn heard(&self, word: &str) -> usize {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.iter().filter(|words| words.first().is_some_and(|first| first == word)).count()
    }
}

fn serve(
    stream: &TcpStream,
    act: &dyn Fn(&[String]) -> Act,
    notes: &Mutex<Vec<Vec<String>>>,
) -> io::Result<()> {
    let (mut from, mut to) = (BufReader::new(stream), stream);
    loop {
        // A request is an array.
        let request = Wire::read(&mut from, &mut Vec::new())?;
        let words: Vec<String> = request.list().iter().map(Wire::text).collect();
        notes.lock().unwrap_or_else(PoisonError::into_inner).push(words.clone());
        match act(&words) {
            Act::Say(reply) => to.write_all(reply.as_bytes())?,
            Act::HangUp => return Ok(()),
            Act::BeSilent => {}
        }
    }
}
