//! A Redis server of our own on the loopback, and just enough of its protocol to talk to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Folder, PATIENCE, Running, find};

/// A server that keeps nothing and ends with this, and one connection to it.
#[derive(Debug)]
pub(crate) struct Redis {
    connection: BufReader<TcpStream>,
    _server: Running,
    _folder: Folder,
}

/// What the server answers; errors are panics.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Status(String),
    Integer(i64),
    /// `None`: there is no such key.
    Bytes(Option<Vec<u8>>),
    List(Vec<Reply>),
}

/// A command: a verb and its arguments.
pub(crate) type Words = Vec<Vec<u8>>;

pub(crate) fn command<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Words {
    words.into_iter().map(|word| word.as_ref().to_vec()).collect()
}

/// Commands sent before their replies are read. Both fit the buffers between the two programs, so neither waits for the other.
const AT_ONCE: usize = 200;

impl Redis {
    /// `None`: no such program here, and that was said.
    pub(crate) fn start() -> Option<Self> {
        let program = find("MAYHAP_TEST_REDIS_SERVER", "redis-server")?;
        // Somebody else may take a free port before the server does; then another one is tried.
        (0..5)
            .find_map(|_| Self::start_on(&program, free_port()))
            .or_else(|| panic!("{program:?} does not start"))
    }

    fn start_on(program: &Path, port: u16) -> Option<Self> {
        let folder = Folder::new("redis");
        let child = Command::new(program)
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"])
            .arg(folder.path())
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|cause| panic!("{program:?}: {cause}"));
        let mut server = Running(child);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let start = Instant::now();
        while start.elapsed() < PATIENCE && server.0.try_wait().unwrap().is_none() {
            let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_secs(5)) else {
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            stream.set_nodelay(true).unwrap();
            let ours = format!("process_id:{}\r\n", server.0.id());
            let mut redis = Self { connection: BufReader::new(stream), _server: server, _folder: folder };
            // On that port there may be a server that is not ours.
            let Reply::Bytes(Some(said)) = redis.ask(["INFO", "server"]) else { return None };
            return String::from_utf8_lossy(&said).contains(&ours).then_some(redis);
        }
        None
    }

    pub(crate) fn ask<W: AsRef<[u8]>>(&mut self, words: impl IntoIterator<Item = W>) -> Reply {
        self.ask_all(&[command(words)]).remove(0)
    }

    /// The replies to all these commands, in order.
    pub(crate) fn ask_all(&mut self, commands: &[Words]) -> Vec<Reply> {
        let mut replies = Vec::with_capacity(commands.len());
        for commands in commands.chunks(AT_ONCE) {
            let mut sent = Vec::new();
            for words in commands {
                write!(sent, "*{}\r\n", words.len()).unwrap();
                for word in words {
                    write!(sent, "${}\r\n", word.len()).unwrap();
                    sent.extend_from_slice(word);
                    sent.extend_from_slice(b"\r\n");
                }
            }
            replies.extend(self.ask_raw(&sent, commands.len()));
        }
        replies
    }

    /// The replies to commands that are in the protocol's form already.
    pub(crate) fn ask_raw(&mut self, sent: &[u8], commands: usize) -> Vec<Reply> {
        self.connection.get_mut().write_all(sent).unwrap();
        (0..commands).map(|_| self.reply()).collect()
    }

    fn reply(&mut self) -> Reply {
        let mut line = String::new();
        self.connection.read_line(&mut line).unwrap();
        let line = line.strip_suffix("\r\n").unwrap_or_else(|| panic!("the server ends in {line:?}"));
        let (kind, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().unwrap();
        match kind {
            "+" => Reply::Status(rest.to_owned()),
            ":" => Reply::Integer(number()),
            "*" => Reply::List((0..number()).map(|_| self.reply()).collect()),
            "$" => match usize::try_from(number()) {
                Ok(length) => {
                    let mut bytes = vec![0; length + 2];
                    self.connection.read_exact(&mut bytes).unwrap();
                    bytes.truncate(length);
                    Reply::Bytes(Some(bytes))
                }
                Err(_) => Reply::Bytes(None),
            },
            _ => panic!("the server answers {line:?}"),
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}
