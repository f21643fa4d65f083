//! A server that does as it is told: for what real ones do too seldom.

use std::io::{self, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::Wire;

/// What it does with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Replies with this line, or with these.
    Say(String),
    /// Ends the connection.
    HangUp,
    /// Nothing: whoever asked may wait.
    BeSilent,
}

impl Act {
    /// A line, such as `+OK`.
    pub fn line(line: &str) -> Self {
        Self::Say(format!("{line}\r\n"))
    }

    /// A string of bytes.
    pub fn text(text: &str) -> Self {
        Self::Say(format!("${}\r\n{text}\r\n", text.len()))
    }

    /// What a Redis says to the requests that clients begin with: a master that is alone, or in a cluster. `None`: it is none of those.
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
    /// Starts one that does with every request what `act` says.
    ///
    /// # Panics
    /// If there is no port for it.
    pub fn start(act: impl Fn(&[String]) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
        let (act, notes) = (Arc::new(act), heard.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (act, notes) = (act.clone(), notes.clone());
                // Whoever is gone needs no reply.
                thread::spawn(move || drop(serve(&stream, &*act, &notes)));
            }
        });
        Self { port, heard }
    }

    /// Where it listens.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its address as clients have it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// How many requests came that begin with this word.
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
        // A request has the form of a list.
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
