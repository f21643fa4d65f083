//! A connection to a server.

use std::io::{self, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use super::Wire;
use crate::real::PATIENCE;

/// A connection to a server that sends one request after the other.
#[derive(Debug)]
pub struct Talk(BufReader<TcpStream>);

/// Encodes a request.
pub fn request<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.as_ref().len()).as_bytes());
        bytes.extend_from_slice(word.as_ref());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

impl Talk {
    /// Connects to the server at this address.
    ///
    /// # Errors
    /// No server listens there.
    pub fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a request of these words, separated by blanks, and returns the reply.
    ///
    /// # Panics
    /// If there is no reply.
    #[track_caller]
    pub fn ask(&mut self, words: &str) -> Wire {
        self.ask_words(&words.split(' ').collect::<Vec<_>>())
    }

    /// Sends a request of these words, and returns the reply.
    ///
    /// # Panics
    /// If there is no reply.
    #[track_caller]
    pub fn ask_words<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Wire {
        self.try_ask(words).unwrap_or_else(|cause| panic!("{}: {cause}", shown(words)))
    }

    /// Sends a request, and returns a reply that is not an error.
    ///
    /// # Panics
    /// If the reply is an error.
    #[track_caller]
    pub fn must<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Wire {
        let reply = self.ask_words(words);
        assert!(!reply.is_refused(), "{}: {reply:?}", shown(words));
        reply
    }

    /// Sends a request, and returns the reply.
    ///
    /// # Errors
    /// There is no reply: the connection was closed, or the server timed out.
    pub fn try_ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<Wire> {
        self.send(&request(words))?;
        self.reply()
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The connection was closed.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Reads the next reply.
    ///
    /// # Errors
    /// As [`try_ask`](Self::try_ask).
    pub fn reply(&mut self) -> io::Result<Wire> {
        Wire::read(&mut self.0, &mut Vec::new())
    }

    /// Sends a request, and returns the bytes of the reply.
    ///
    /// # Panics
    /// If there is no reply.
    #[track_caller]
    pub fn raw<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Vec<u8> {
        let mut raw = Vec::new();
        let read = self.send(&request(words)).and_then(|()| Wire::read(&mut self.0, &mut raw));
        read.unwrap_or_else(|cause| panic!("{}: {cause}", shown(words)));
        raw
    }

    /// Sends many requests of the same kind, a few hundred per write, and returns the replies. Both fit the buffers between the two programs, so neither
    /// waits for the other.
    ///
    /// # Panics
    /// If there are no replies.
    #[track_caller]
    pub fn ask_all<W: AsRef<[u8]>>(&mut self, requests: impl IntoIterator<Item = Vec<W>>) -> Vec<Wire> {
        const AT_ONCE: usize = 200;
        let (mut replies, mut waiting, mut bytes) = (Vec::new(), 0, Vec::new());
        let mut requests = requests.into_iter().peekable();
        while let Some(words) = requests.next() {
            bytes.extend(request(&words));
            waiting += 1;
            if waiting == AT_ONCE || requests.peek().is_none() {
                self.send(&bytes).unwrap();
                replies.extend((0..waiting).map(|_| self.reply().unwrap()));
                (waiting, bytes) = (0, Vec::new());
            }
        }
        replies
    }

    /// Returns a field of `INFO`.
    ///
    /// # Panics
    /// If it is missing.
    #[track_caller]
    pub fn info(&mut self, field: &str) -> String {
        let text = self.ask_words(&["INFO", "everything"]).text();
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_else(|| panic!("no {field} in {text}")).trim_end().to_owned()
    }
}

/// A request as a line of text.
fn shown<W: AsRef<[u8]>>(words: &[W]) -> String {
    let mut shown =
        words.iter().map(|word| word.as_ref().escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
    shown.truncate(200);
    shown
}
