//! One connection: read what is there, run all of it, write all replies.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use mayhap_command::{Command, Reply, Request, Run, Scratch};
use mayhap_engine::Engine;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use crate::client::Client;
use crate::resp::{Decoder, encode};
use crate::session::{Job, Next, Session, Sorted, Tools};
use crate::shared::Shared;
use crate::worker::{Desk, READ_BYTES, empty_requests, empty_words};

/// The most that is read at once in the midst of a long word.
const LONG_READ_BYTES: usize = 1 << 20;
/// A buffer larger than this is given back when it is empty.
const KEEP_BYTES: usize = 256 * 1024;
/// Requests whose replies may be long that are run at once.
const AT_ONCE: usize = 16;
/// How long a server that stops reads on from a client that does not pause.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long a server that stops waits for bytes that are on their way from the socket to us, before it takes silence for silence.
const LAST_LOOK: Duration = Duration::from_millis(20);
/// How long the client may take to see the end of a connection that we close.
const LINGER: Duration = Duration::from_millis(200);

struct Connection<'a, S> {
    stream: S,
    client: &'a Client,
    shared: &'a Arc<Shared>,
    session: Session,
    decoder: Decoder,
    /// The beginning of a request whose end has not come, or requests that have to wait.
    input: Vec<u8>,
    /// Are there whole requests in `input` that may be run now?
    waiting: bool,
    /// Replies the socket did not take.
    owed: Vec<u8>,
    /// How many bytes of `owed` it took since.
    paid: usize,
    /// No more requests: close when nothing is owed.
    closing: bool,
    /// When it was first seen that the server stops.
    stopping_since: Option<Instant>,
    /// Has it been looked for a last time whether something came?
    looked: bool,
}

/// Why a connection's turn is over.
enum Turn {
    /// There is more to do, after the others had their turn.
    More,
    /// The server stops, and there seems to be nothing to read.
    LastLook,
    /// Something that takes long.
    Job(Job),
    /// A request that takes long.
    Long(Long),
    /// The end: ours, or the client's.
    Closed,
}

/// A request that takes long, with all input of its connection: it is the first one in there.
struct Long {
    engine: Arc<Engine>,
    command: &'static Command,
    input: Vec<u8>,
    /// Where its words are.
    words: Vec<Range<usize>>,
    /// How long it is.
    length: usize,
}

impl Long {
    /// Gives back the input behind it, and the reply.
    fn run(mut self) -> (Vec<u8>, Reply) {
        let words: Vec<&[u8]> = self.words.iter().map(|word| &self.input[word.clone()]).collect();
        let mut replies = Vec::new();
        let request = Request { command: self.command, words: &words };
        self.engine.run(&[request], &mut Scratch::default(), &mut replies);
        self.input.drain(..self.length);
        (self.input, replies.pop().unwrap_or(Reply::Null))
    }
}

/// Serves one connection until its end.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    client: &Arc<Client>,
    desk: &Rc<RefCell<Desk>>,
    shared: &Arc<Shared>,
) {
    let mut connection = Connection {
        stream,
        client,
        shared,
        session: Session::new(Arc::clone(client), shared, &desk.borrow().counters),
        decoder: Decoder::default(),
        input: Vec::new(),
        waiting: false,
        owed: Vec::new(),
        paid: 0,
        closing: false,
        stopping_since: None,
        looked: false,
    };
    poll_fn(|context| {
        client.set_waker(context.waker());
        Poll::Ready(())
    })
    .await;
    loop {
        let turn = poll_fn(|context| connection.poll_turn(context, &mut desk.borrow_mut())).await;
        match turn {
            Ok(Turn::More) => tokio::task::yield_now().await,
            Ok(Turn::LastLook) => tokio::time::sleep(LAST_LOOK).await,
            Ok(Turn::Job(job)) => {
                let Ok(reply) = tokio::task::spawn_blocking(job).await else { break };
                connection.session.finish(&reply, &mut connection.owed);
                connection.waiting = true;
            }
            Ok(Turn::Long(long)) => {
                let Ok((input, reply)) = tokio::task::spawn_blocking(|| long.run()).await else { break };
                connection.input = input;
                connection.session.finish(&reply, &mut connection.owed);
                connection.waiting = true;
            }
            Ok(Turn::Closed) | Err(_) => break,
        }
    }
    if connection.closing {
        connection.end().await;
    }
}

/// Does a browser talk? A page of a stranger can make it send anything to a port of this machine, but for how an HTTP request begins.
fn is_http(command: &[u8]) -> bool {
    command.eq_ignore_ascii_case(b"POST") || command.eq_ignore_ascii_case(b"Host:")
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<'_, S> {
    /// Reads, runs and writes until there is nothing to read, or it is somebody else's turn.
    fn poll_turn(&mut self, context: &mut Context<'_>, desk: &mut Desk) -> Poll<io::Result<Turn>> {
        loop {
            if self.client.is_killed() {
                return Poll::Ready(Ok(Turn::Closed));
            }
            self.pay(context)?;
            if self.closing {
                return match self.owed.is_empty() {
                    true => Poll::Ready(Ok(Turn::Closed)),
                    false => Poll::Pending,
                };
            }
            if self.owed.len() - self.paid > self.shared.settings().output_limit {
                return Poll::Pending;
            }
            let mut filled = true;
            let mut desk_bytes = 0;
            if !std::mem::take(&mut self.waiting) {
                let room =
                    if self.input.is_empty() { READ_BYTES } else { self.decoder.wanted(self.input.len()) };
                let read = match self.poll_read(context, desk) {
                    Poll::Ready(read) => read?,
                    Poll::Pending if self.shared.is_stopping() => {
                        // What the kernel has may not have been announced to us yet.
                        if !std::mem::replace(&mut self.looked, true) {
                            return Poll::Ready(Ok(Turn::LastLook));
                        }
                        self.closing = true;
                        continue;
                    }
                    Poll::Pending => return Poll::Pending,
                };
                if read == 0 {
                    // It sends no more, but may still read what it asked for.
                    self.closing = true;
                    continue;
                }
                desk.counters.read(read);
                filled = read >= room;
                desk_bytes = if self.input.is_empty() { read } else { 0 };
            }
            match self.run(context, desk, desk_bytes)? {
                Some(turn) => return Poll::Ready(Ok(turn)),
                None if filled => return Poll::Ready(Ok(Turn::More)),
                None => {}
            }
        }
    }

    /// Reads into the desk if nothing waits for its end, and behind what waits otherwise.
    fn poll_read(&mut self, context: &mut Context<'_>, desk: &mut Desk) -> Poll<io::Result<usize>> {
        if self.input.is_empty() {
            let mut buffer = ReadBuf::new(&mut desk.input);
            let read = Pin::new(&mut self.stream).poll_read(context, &mut buffer);
            return read.map_ok(|()| buffer.filled().len());
        }
        let wanted = self.decoder.wanted(self.input.len()).clamp(READ_BYTES / 4, LONG_READ_BYTES);
        self.input.reserve(wanted);
        let read = std::pin::pin!(self.stream.read_buf(&mut self.input));
        read.poll(context)
    }

    /// Runs all whole requests: those in the desk's first `desk_bytes` bytes, or in `input` if there are none.
    fn run(
        &mut self,
        context: &mut Context<'_>,
        desk: &mut Desk,
        desk_bytes: usize,
    ) -> io::Result<Option<Turn>> {
        let limits = self.session.request_limits();
        // What a stranger may send changes in the midst of a pipeline, with the password.
        let most = if limits.authenticated { usize::MAX } else { 1 };
        let buffer = if desk_bytes > 0 { &desk.input[..desk_bytes] } else { &self.input[..] };
        let outcome = self.decoder.read(buffer, &limits, most);

        let mut words = empty_words(std::mem::take(&mut desk.words));
        words.extend(self.decoder.words(buffer));
        let mut requests = empty_requests(std::mem::take(&mut desk.requests));
        let frames = self.decoder.frames();
        let mut tools = Tools { scratch: &mut desk.scratch, replies: &mut desk.replies, out: &mut desk.out };
        let mut done = 0;
        let mut next = Next::Go;
        let mut long = None;
        for frame in frames {
            if self.owed.len() + tools.out.len() > self.shared.settings().output_limit {
                next = Next::Wait;
                break;
            }
            let words: &[&[u8]] = &words[frame.words.clone()];
            done += 1;
            if is_http(words[0]) {
                tracing::warn!(
                    client = self.client.id,
                    address = self.client.address,
                    "closed: it speaks HTTP, mayhap a web page that tries to give commands"
                );
                next = Next::Close;
                break;
            }
            let bytes = frame.end - frame.start;
            match self.session.sort(words, bytes) {
                Sorted::Batch(command) => {
                    requests.push(Request { command, words });
                    // Replies of any length: no more of them at once than needed.
                    if !matches!(command.run, Run::Items(_)) && requests.len() >= AT_ONCE {
                        self.session.run_batch(&mut requests, &mut tools);
                    }
                }
                sorted => {
                    self.session.run_batch(&mut requests, &mut tools);
                    next = self.session.run(sorted, words, bytes, &mut tools);
                    if let Next::Long(command) = next {
                        long = self.decoder.spans(frame).map(|spans| (command, spans, bytes));
                        if long.is_none() {
                            // Typed by hand: it waits for nobody, and nobody for it.
                            self.session.run_batch(&mut vec![Request { command, words }], &mut tools);
                            next = self.session.finished();
                        }
                    }
                    if !matches!(next, Next::Go) {
                        break;
                    }
                }
            }
        }
        self.session.run_batch(&mut requests, &mut tools);
        let all = done == frames.len();
        desk.requests = empty_requests(requests);
        desk.words = empty_words(words);

        if let (Err(error), true, Next::Go) = (&outcome, all, &next) {
            encode::error(error, &mut desk.out);
            next = Next::Close;
        }
        // A request that takes long stays at the front of the input.
        let cut = self.decoder.cut(done - usize::from(long.is_some()));
        if desk_bytes > 0 {
            self.input.extend_from_slice(&desk.input[cut..desk_bytes]);
        } else {
            self.input.drain(..cut);
            if self.input.is_empty() && self.input.capacity() > KEEP_BYTES {
                self.input = Vec::new();
            }
        }
        let more = !self.input.is_empty() && (!all || most == 1);
        self.write(context, desk)?;
        self.client.active(self.session.last_run(), self.input.len(), self.owed.len());
        if self.shared.is_stopping() {
            let since = *self.stopping_since.get_or_insert_with(Instant::now);
            self.closing |= since.elapsed() > LAST_WORDS;
        }
        Ok(match next {
            Next::Job(job) => Some(Turn::Job(job)),
            Next::Long(_) => long.map(|(command, words, length)| {
                let engine = Arc::clone(self.shared.engine());
                Turn::Long(Long { engine, command, input: std::mem::take(&mut self.input), words, length })
            }),
            Next::Close => {
                self.closing = true;
                None
            }
            Next::Go | Next::Wait => {
                self.waiting = more;
                more.then_some(Turn::More)
            }
        })
    }

    /// Writes `out`, and keeps what the socket does not take.
    fn write(&mut self, context: &mut Context<'_>, desk: &mut Desk) -> io::Result<()> {
        let out = &mut desk.out;
        desk.counters.wrote(out.len());
        let mut written = 0;
        while self.owed.is_empty() && written < out.len() {
            match Pin::new(&mut self.stream).poll_write(context, &out[written..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(taken) => written += taken?,
                Poll::Pending => break,
            }
        }
        self.owed.extend_from_slice(&out[written..]);
        out.clear();
        if out.capacity() > KEEP_BYTES {
            *out = Vec::with_capacity(READ_BYTES);
        }
        Ok(())
    }

    /// Writes what is owed, as far as the socket takes it.
    fn pay(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while self.paid < self.owed.len() {
            match Pin::new(&mut self.stream).poll_write(context, &self.owed[self.paid..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(taken) => self.paid += taken?,
                Poll::Pending => return Ok(()),
            }
        }
        if self.paid > 0 {
            self.paid = 0;
            self.owed.clear();
            if self.owed.capacity() > KEEP_BYTES {
                self.owed = Vec::new();
            }
        }
        Ok(())
    }

    /// Closes our side and waits a little for the other: closing with bytes unread would take the last replies away from the
    /// client.
    async fn end(&mut self) {
        let drain = async {
            self.stream.shutdown().await?;
            let mut rest = [0; 4_096];
            while self.stream.read(&mut rest).await? > 0 {}
            io::Result::Ok(())
        };
        let _ = tokio::time::timeout(LINGER, drain).await;
    }
}
