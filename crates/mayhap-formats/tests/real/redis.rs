//! A Redis server of our own, and just enough of its protocol to talk to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Folder, PATIENCE, Running, find};

/// A server that saves nothing, stopped when this is dropped.
///
/// It listens on a socket file in its own folder: another process may take a port before the server does.
#[derive(Debug)]
pub(crate) struct Server {
    socket: PathBuf,
    _process: Running,
    _folder: Folder,
}

impl Server {
    /// Starts a server. `None`, after a message, if the program is missing.
    pub(crate) fn start() -> Option<Self> {
        let program = find("MAYHAP_TEST_REDIS_SERVER", "redis-server")?;
        let folder = Folder::new("redis");
        let socket = folder.path().join("socket");
        let child = Command::new(&program)
            .args(["--port", "0", "--databases", "1", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(folder.path())
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|cause| panic!("{program:?}: {cause}"));
        let mut process = Running(child);
        let start = Instant::now();
        while let Err(cause) = UnixStream::connect(&socket) {
            let ended = process.0.try_wait().unwrap();
            assert!(ended.is_none(), "{program:?} exited immediately: {ended:?}");
            assert!(start.elapsed() < PATIENCE, "{program:?} does not listen on {socket:?}: {cause}");
            thread::sleep(Duration::from_millis(10));
        }
        Some(Self { socket, _process: process, _folder: folder })
    }

    /// A connection that does not wait for ever.
    pub(crate) fn connect(&self) -> BufReader<UnixStream> {
        connect(&self.socket)
    }
}

/// A connection to the server on `socket`, with a timeout.
pub(crate) fn connect(socket: &Path) -> BufReader<UnixStream> {
    let stream = UnixStream::connect(socket).unwrap_or_else(|cause| panic!("{socket:?}: {cause}"));
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    BufReader::new(stream)
}

/// A server of our own and one connection to it.
#[derive(Debug)]
pub(crate) struct Redis {
    connection: BufReader<UnixStream>,
    _server: Server,
}

/// The reply of the server; errors panic.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Status(String),
    Integer(i64),
    /// `None`: the key does not exist.
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
    /// `None`, after a message, if the program is missing.
    pub(crate) fn start() -> Option<Self> {
        let server = Server::start()?;
        Some(Self { connection: server.connect(), _server: server })
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

    /// Sends encoded commands, and returns the replies.
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
