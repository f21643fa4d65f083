//! One connection: reads the bytes that have arrived, runs all requests, writes all replies.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use mayhap_command::{Command, Reply, Request, Run, Scratch, table};
use mayhap_engine::Engine;
use mayhap_engine::log::Policy;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use crate::client::Client;
use crate::durable;
use crate::resp::{Decoder, Protocol, encode};
use crate::session::{self, Job, Next, Session, Sorted, Tools};
use crate::shared::{ClientPause, Shared};
use crate::users::User;
use crate::worker::{READ_BYTES, WorkerBuffers, empty_requests, empty_words};

/// The maximum number of bytes per read inside a long word.
const LONG_READ_BYTES: usize = 1 << 20;
/// An empty buffer of the worker is freed if it is larger than this.
const KEEP_BYTES: usize = 256 * 1024;
/// An empty buffer of a connection is freed if it is larger than this. There are many connections.
const KEEP_OWN_BYTES: usize = 16 * 1024;
/// The maximum number of bytes per read from an unauthenticated client.
const UNAUTHENTICATED_READ_BYTES: usize = 4 * 1024;
/// Bytes of replies after which they are written before more requests run.
const WRITE_BYTES: usize = 1 << 20;
/// Bytes written to one connection before others have their turn.
const SENT_BYTES: usize = 4 << 20;
/// Bytes of a request that must arrive for its deadline to be extended.
const PROGRESS_BYTES: usize = 16 * 1024;
/// The time a connection with data in its buffers waits when all buffers together exceed the limit.
const PAUSE: Duration = Duration::from_millis(20);
/// The maximum number of requests in a batch, for replies that may be long.
const AT_ONCE: usize = 16;
/// The maximum number of item requests in a batch, after which the time is checked. A request that inserts
/// into a chain of a thousand filters takes 0.4 ms.
const ITEMS_AT_ONCE: usize = 64;
/// The time a connection runs requests before others have their turn.
const LONGEST_TURN: Duration = Duration::from_millis(20);
/// The time a stopping server keeps reading from a client that does not pause.
const STOPPING_READ: Duration = Duration::from_millis(500);
/// The time a stopping server waits for bytes that are in the socket but have not been reported yet.
const LAST_LOOK: Duration = Duration::from_millis(20);
/// The time a client has to see the end of a connection that the server closes.
const LINGER: Duration = Duration::from_millis(200);

struct Connection<'a, S> {
    stream: S,
    client: &'a Client,
    shared: &'a Arc<Shared>,
    session: Session,
    decoder: Decoder,
    /// The beginning of a partial request, or requests that have to wait.
    input: Vec<u8>,
    /// Whether `input` has complete requests that may run now.
    waiting: bool,
    /// Replies that the socket has not accepted yet.
    unsent: Vec<u8>,
    /// The number of bytes of `unsent` that have been sent since.
    sent: usize,
    /// Set while unsent replies wait for the disk.
    unsynced: Option<Unsynced>,
    /// Whether written bytes may still be in the stream. A TLS stream buffers.
    unflushed: bool,
    /// Run no more requests; close when all replies are sent.
    closing: bool,
    /// Whether the connection has a deadline.
    due: bool,
    /// Bytes of a request that arrived since the deadline was set.
    arrived: usize,
    /// When the connection first noticed that the server is stopping.
    stopping_since: Option<Instant>,
    /// Whether the socket has been read for a last time.
    looked: bool,
}

/// Replies that wait for the disk: those in `unsent` from `safe` on must not leave before the log records
/// below `next` are safe.
#[derive(Clone, Copy)]
struct Unsynced {
    next: u64,
    safe: usize,
    /// The number of replies.
    replies: usize,
    /// Whether other connections have had their turn. Their changes are written together with ours.
    late: bool,
}

/// Why the turn of a connection is over.
enum Turn {
    /// There is more to do after others had their turn.
    More,
    /// The server is stopping, and there seems to be nothing to read.
    LastLook,
    /// All buffers together exceed the limit and this connection has a part of them, or requests are paused.
    Crowded,
    /// A job that takes long.
    Job(Job),
    /// A request that takes long.
    Long(Long),
    /// A reply that has to wait.
    Pause(Box<session::DelayedReply>),
    /// The connection is closed, by the server or by the client.
    Closed,
}

/// A request that takes long, with all input of its connection. It is the first request of the input.
struct Long {
    engine: Arc<Engine>,
    command: &'static Command,
    input: Vec<u8>,
    /// The positions of its words.
    words: Vec<Range<usize>>,
    /// Its length in bytes.
    length: usize,
    /// The protocol for the reply; `None` if the client wants no reply.
    protocol: Option<Protocol>,
    /// The user of the request.
    user: Arc<User>,
}

impl Long {
    /// The possible size of the reply in bytes, both as a value and encoded.
    fn reply_bytes(&self) -> usize {
        if !self.command.traits.long_reply {
            return 0;
        }
        let name = self.words.get(1).map_or(&[][..], |word| &self.input[word.clone()]);
        usize::try_from(self.engine.bytes_of(name)).unwrap_or(usize::MAX).saturating_mul(2)
    }

    /// Runs the request. Returns the rest of the input and the encoded reply: encoding many megabytes takes
    /// long as well.
    fn run(mut self) -> (Vec<u8>, Vec<u8>) {
        let words: Vec<&[u8]> = self.words.iter().map(|word| &self.input[word.clone()]).collect();
        let mut replies = Vec::new();
        let request = Request { command: self.command, words: &words };
        self.engine.run_long(request, &mut Scratch::default(), &mut replies);
        durable::commit_and_wait(&self.engine, &[request], &mut replies);
        self.input.drain(..self.length);
        let mut out = Vec::new();
        if let Some(protocol) = self.protocol {
            let reply = replies.pop().unwrap_or(Reply::Null);
            encode::reply(&session::conceal(&self.user, self.command, reply), protocol, &mut out);
        }
        (self.input, out)
    }
}

/// Serves one connection until its end.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    client: &Arc<Client>,
    buffers: &Rc<RefCell<WorkerBuffers>>,
    shared: &Arc<Shared>,
) {
    let mut connection = Connection {
        stream,
        client,
        shared,
        session: Session::new(Arc::clone(client), shared, &buffers.borrow().counters),
        decoder: Decoder::default(),
        input: Vec::new(),
        waiting: false,
        unsent: Vec::new(),
        sent: 0,
        unsynced: None,
        unflushed: false,
        closing: false,
        due: false,
        arrived: 0,
        stopping_since: None,
        looked: false,
    };
    poll_fn(|context| {
        client.set_waker(context.waker());
        Poll::Ready(())
    })
    .await;
    loop {
        let turn = poll_fn(|context| connection.poll_turn(context, &mut buffers.borrow_mut())).await;
        match turn {
            Ok(Turn::More) => tokio::task::yield_now().await,
            Ok(Turn::LastLook) => tokio::time::sleep(LAST_LOOK).await,
            Ok(Turn::Crowded) => tokio::time::sleep(PAUSE).await,
            Ok(Turn::Job(job)) => {
                connection.set_due(false);
                let Ok(reply) = tokio::task::spawn_blocking(job).await else { break };
                connection.finish(reply);
                // A transaction may have had a wrong password in it.
                if let Some((wait, close)) = connection.session.take_pause() {
                    connection.wait(wait).await;
                    connection.closing |= close;
                }
            }
            Ok(Turn::Long(long)) => {
                connection.set_due(false);
                let _replies = shared.clients().expect(long.reply_bytes());
                let Ok((input, reply)) = tokio::task::spawn_blocking(|| long.run()).await else { break };
                connection.input = input;
                let answered = !reply.is_empty();
                match connection.unsent.is_empty() {
                    true => connection.unsent = reply,
                    false => connection.unsent.extend_from_slice(&reply),
                }
                connection.session.finished();
                connection.go_on(usize::from(answered));
            }
            Ok(Turn::Pause(pause)) => {
                connection.wait(pause.wait).await;
                connection.closing |= pause.close;
                connection.finish(pause.reply);
            }
            Ok(Turn::Closed) | Err(_) => break,
        }
    }
    if connection.closing {
        connection.end().await;
    }
}

/// Whether `CLIENT PAUSE` holds this command.
fn is_paused(pause: ClientPause, name: &[u8]) -> bool {
    pause == ClientPause::All || table::find(name).is_some_and(Command::may_change)
}

/// Whether this command must wait while all buffers together exceed the limit. Even a client with empty
/// buffers could ask for a megabyte.
fn is_crowded_out(name: &[u8]) -> bool {
    table::find(name).is_some_and(|command| command.traits.long_reply)
}

/// Whether the words are the beginning of an HTTP request. A web page can make a browser send anything to a
/// port of this machine, but it cannot change how an HTTP request begins.
///
/// `GET` is also a command, so the HTTP version at the end of the line must match as well.
fn is_http(words: &[&[u8]]) -> bool {
    const FIRST: [&[u8]; 11] = [
        b"POST", b"Host:", b"PUT", b"OPTIONS", b"HEAD", b"DELETE", b"PATCH", b"CONNECT", b"TRACE", b"EHLO",
        b"HELO",
    ];
    let is = |word: &[u8], name: &[u8]| word.eq_ignore_ascii_case(name);
    match words {
        [first, ..] if FIRST.iter().any(|name| is(first, name)) => true,
        [first, _, version] => is(first, b"GET") && version.starts_with(b"HTTP/"),
        _ => false,
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<'_, S> {
    /// Reads, runs and writes until there is nothing to read or the turn is over.
    fn poll_turn(
        &mut self,
        context: &mut Context<'_>,
        buffers: &mut WorkerBuffers,
    ) -> Poll<io::Result<Turn>> {
        loop {
            // The user may have been removed.
            self.session.refresh();
            if self.client.is_killed() {
                return Poll::Ready(Ok(Turn::Closed));
            }
            if self.poll_synced(context).is_pending() {
                return Poll::Pending;
            }
            let progress = self.send_unsent(context)?;
            if self.closing {
                if self.unsent.is_empty() && !self.unflushed {
                    return Poll::Ready(Ok(Turn::Closed));
                }
                // A client that does not read its last replies has a deadline.
                if progress || !self.due {
                    self.set_due(true);
                }
                return Poll::Pending;
            }
            if self.unread() > self.unread_limit() {
                self.set_due(false);
                return Poll::Pending;
            }
            if self.is_crowded() && self.held() > READ_BYTES {
                return Poll::Ready(Ok(Turn::Crowded));
            }
            let mut filled = true;
            let mut worker_bytes = 0;
            if !std::mem::take(&mut self.waiting) {
                // Only a partial request has a deadline.
                let half = !self.input.is_empty();
                if half != self.due {
                    self.set_due(half);
                }
                let room =
                    if self.input.is_empty() { READ_BYTES } else { self.decoder.wanted(self.input.len()) };
                let read = match self.poll_read(context, buffers) {
                    Poll::Ready(read) => read?,
                    Poll::Pending if self.shared.is_stopping() => {
                        // The kernel may have bytes that have not been reported yet.
                        if !std::mem::replace(&mut self.looked, true) {
                            return Poll::Ready(Ok(Turn::LastLook));
                        }
                        self.closing = true;
                        continue;
                    }
                    Poll::Pending => return Poll::Pending,
                };
                if read == 0 {
                    // The client sends no more, but may still read its replies.
                    self.closing = true;
                    continue;
                }
                buffers.counters.read(read);
                self.arrived += read;
                filled = read >= room;
                worker_bytes = if self.input.is_empty() { read } else { 0 };
            }
            match self.run(context, buffers, worker_bytes)? {
                Some(turn) => return Poll::Ready(Ok(turn)),
                None if filled => return Poll::Ready(Ok(Turn::More)),
                None => {}
            }
        }
    }

    /// Waits until unsent replies may leave. If the disk fails, the client gets errors in place of the
    /// replies that waited for it: changes that are not on the disk are not acknowledged.
    fn poll_synced(&mut self, context: &Context<'_>) -> Poll<()> {
        let (Some(unsynced), Some(log)) = (&mut self.unsynced, self.shared.engine().log()) else {
            return Poll::Ready(());
        };
        if !std::mem::replace(&mut unsynced.late, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let unsynced = *unsynced;
        match log.poll_synced(unsynced.next, context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(refused)) => {
                self.unsent.truncate(unsynced.safe);
                self.session.refuse(durable::refusal(refused), unsynced.replies, &mut self.unsent);
            }
        }
        self.unsynced = None;
        Poll::Ready(())
    }

    /// Reads into the buffer of the worker, or appends to `input` if that has a partial request.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffers: &mut WorkerBuffers,
    ) -> Poll<io::Result<usize>> {
        let known = self.session.request_limits().authenticated;
        if self.input.is_empty() {
            let most = if known { READ_BYTES } else { UNAUTHENTICATED_READ_BYTES };
            let mut buffer = ReadBuf::new(&mut buffers.input[..most]);
            let read = Pin::new(&mut self.stream).poll_read(context, &mut buffer);
            return read.map_ok(|()| buffer.filled().len());
        }
        let missing = self.decoder.wanted(self.input.len());
        let least = if known { READ_BYTES / 4 } else { UNAUTHENTICATED_READ_BYTES };
        let wanted = missing.clamp(least, LONG_READ_BYTES);
        if self.input.capacity() - self.input.len() < wanted {
            // Doubles each time, but allocates no more than is missing.
            let more = wanted.max(missing.min(self.input.len()));
            self.input.try_reserve_exact(more).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        }
        let read = std::pin::pin!(self.stream.read_buf(&mut self.input));
        read.poll(context)
    }

    /// Bytes of replies that the client has not read.
    const fn unread(&self) -> usize {
        self.unsent.len() - self.sent
    }

    /// The limit for `unread`. An unauthenticated client must read each reply before the next request runs.
    fn unread_limit(&self) -> usize {
        match self.session.request_limits().authenticated {
            true => self.shared.settings().output_limit,
            false => 0,
        }
    }

    /// Bytes of all buffers of this connection.
    fn held(&self) -> usize {
        self.input.capacity()
            + self.unsent.capacity()
            + self.decoder.memory_bytes()
            + self.session.held_bytes()
    }

    /// Reports the size of the buffers.
    fn account(&self) {
        self.client.holds(self.held(), self.shared.clients());
    }

    /// Whether all buffers together exceed the limit, or will with the replies that are being made.
    fn is_crowded(&self) -> bool {
        self.shared.clients().expected_bytes() > self.shared.settings().buffers_limit
    }

    /// Sets or clears the deadline.
    fn set_due(&mut self, due: bool) {
        if due || self.due {
            self.client.due(self.shared.request_timeout().filter(|_| due));
        }
        (self.due, self.arrived) = (due, 0);
    }

    /// Runs all complete requests: those in the first `worker_bytes` bytes of the worker's input buffer, or
    /// those in `input` if that is 0.
    fn run(
        &mut self,
        context: &mut Context<'_>,
        buffers: &mut WorkerBuffers,
        worker_bytes: usize,
    ) -> io::Result<Option<Turn>> {
        let begun = Instant::now();
        let limits = self.session.request_limits();
        // `AUTH` inside a pipeline changes the limits for the requests after it.
        let most = if limits.authenticated { usize::MAX } else { 1 };
        let buffer = if worker_bytes > 0 { &buffers.input[..worker_bytes] } else { &self.input[..] };
        let outcome = self.decoder.read(buffer, &limits, most);

        let mut words = empty_words(std::mem::take(&mut buffers.words));
        words.extend(self.decoder.words(buffer));
        let mut requests = empty_requests(std::mem::take(&mut buffers.requests));
        let frames = self.decoder.frames();
        let mut tools =
            Tools { scratch: &mut buffers.scratch, replies: &mut buffers.replies, out: &mut buffers.out };
        let mut done = 0;
        let mut next = Next::Go;
        let mut long = None;
        let (pause, crowded) = (self.shared.paused(), self.is_crowded());
        for frame in frames {
            let name = words[frame.words.start];
            if pause.is_some_and(|pause| is_paused(pause, name)) || crowded && is_crowded_out(name) {
                next = Next::Hold;
                break;
            }
            if tools.out.len() > WRITE_BYTES {
                next = Next::Wait;
                break;
            }
            let words: &[&[u8]] = &words[frame.words.clone()];
            done += 1;
            if is_http(words) {
                tracing::warn!(
                    client = self.client.id,
                    address = self.client.address,
                    "connection closed: HTTP request on the RESP port (possible cross-protocol attack from a web page)"
                );
                next = Next::Close;
                break;
            }
            let bytes = frame.end - frame.start;
            match self.session.sort(words, bytes) {
                Sorted::Batch(command) => {
                    requests.push(Request { command, words });
                    // Long replies: keep few of them in memory together.
                    let at_once = match command.run {
                        Run::Items(_) => ITEMS_AT_ONCE,
                        _ if command.traits.long_reply => 1,
                        _ => AT_ONCE,
                    };
                    if requests.len() >= at_once {
                        self.session.run_batch(&mut requests, &mut tools);
                        if begun.elapsed() > LONGEST_TURN {
                            next = Next::Wait;
                            break;
                        }
                    }
                }
                sorted => {
                    self.session.run_batch(&mut requests, &mut tools);
                    next = self.session.run(sorted, words, bytes, &mut tools);
                    if let Next::Long(command) = next {
                        long = self.decoder.spans(frame).map(|spans| (command, spans, bytes));
                        if long.is_none() {
                            // An inline request with quotes, typed by a person: run it here.
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
        buffers.requests = empty_requests(requests);
        buffers.words = empty_words(words);

        if let (Err(error), true, Next::Go) = (&outcome, all, &next) {
            encode::error(error, &mut buffers.out);
            next = Next::Close;
        }
        // A request that takes long stays at the front of the input.
        let cut = self.decoder.cut(done - usize::from(long.is_some()));
        if worker_bytes > 0 {
            self.input.extend_from_slice(&buffers.input[cut..worker_bytes]);
        } else {
            self.input.drain(..cut);
            if self.input.is_empty() && self.input.capacity() > KEEP_OWN_BYTES {
                self.input = Vec::new();
            }
        }
        if done > 0 {
            if self.due {
                self.set_due(false);
            }
        } else if self.arrived >= PROGRESS_BYTES && self.session.request_limits().authenticated {
            self.set_due(true);
        }
        // A partial request of an unauthenticated client needs more bytes: running again would read none.
        let more = !self.input.is_empty() && (!all || most == 1 && done > 0);
        let replies = self.session.take_answered();
        match self.session.take_unsynced() {
            None => self.write(context, buffers)?,
            Some(next) => {
                let bytes = buffers.out.len();
                buffers.counters.wrote(bytes);
                self.keep_unsent(buffers, 0)?;
                let late = self.shared.engine().log().is_some_and(|log| log.policy() == Policy::Always);
                self.unsynced = Some(Unsynced { next, safe: self.unsent.len() - bytes, replies, late });
            }
        }
        self.client.active(self.session.last_run(), self.input.len(), self.unread());
        self.account();
        if self.shared.is_stopping() {
            let since = *self.stopping_since.get_or_insert_with(Instant::now);
            self.closing |= since.elapsed() > STOPPING_READ;
        }
        Ok(match next {
            Next::Job(job) => Some(Turn::Job(job)),
            Next::Pause(pause) => Some(Turn::Pause(pause)),
            Next::Long(_) => long.map(|(command, words, length)| {
                let engine = Arc::clone(self.shared.engine());
                let (input, protocol) = (std::mem::take(&mut self.input), self.session.answers_in());
                let user = Arc::clone(self.session.user());
                Turn::Long(Long { engine, command, input, words, length, protocol, user })
            }),
            Next::Close => {
                self.closing = true;
                None
            }
            Next::Hold => {
                self.set_due(false);
                self.waiting = true;
                Some(Turn::Crowded)
            }
            Next::Go | Next::Wait => {
                self.waiting = more;
                more.then_some(Turn::More)
            }
        })
    }

    /// Writes `out`, and keeps what the socket does not accept.
    fn write(&mut self, context: &mut Context<'_>, buffers: &mut WorkerBuffers) -> io::Result<()> {
        let out = &mut buffers.out;
        buffers.counters.wrote(out.len());
        let mut written = 0;
        while self.unsent.is_empty() && written < out.len() {
            match Pin::new(&mut self.stream).poll_write(context, &out[written..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(taken) => written += taken?,
                Poll::Pending => break,
            }
        }
        self.unflushed |= written > 0;
        self.keep_unsent(buffers, written)?;
        self.flush(context)
    }

    /// Keeps `out[from..]` until the socket accepts it.
    fn keep_unsent(&mut self, buffers: &mut WorkerBuffers, from: usize) -> io::Result<()> {
        let out = &mut buffers.out;
        if from < out.len() {
            // Free the sent part, even if there are always unsent bytes after it.
            if self.sent > self.unsent.len() / 2 {
                self.unsent.drain(..self.sent);
                self.sent = 0;
            }
            let more = self.unsent.try_reserve(out.len() - from);
            more.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            self.unsent.extend_from_slice(&out[from..]);
        }
        out.clear();
        if out.capacity() > KEEP_BYTES {
            *out = Vec::with_capacity(READ_BYTES);
        }
        Ok(())
    }

    /// Writes unsent bytes until the socket accepts no more. Returns whether it accepted any.
    fn send_unsent(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let before = self.sent;
        while self.sent < self.unsent.len() {
            match Pin::new(&mut self.stream).poll_write(context, &self.unsent[self.sent..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(taken) => self.sent += taken?,
                Poll::Pending => return Ok(self.sent > before),
            }
            self.unflushed = true;
            if self.sent - before > SENT_BYTES && self.sent < self.unsent.len() {
                // The client reads as fast as we write: let others have their turn.
                context.waker().wake_by_ref();
                return Ok(true);
            }
        }
        self.flush(context)?;
        if self.sent > 0 {
            self.sent = 0;
            self.unsent.clear();
            if self.unsent.capacity() > KEEP_OWN_BYTES {
                self.unsent = Vec::new();
            }
            self.account();
            self.client.active(self.session.last_run(), self.input.len(), 0);
        }
        Ok(true)
    }

    /// Makes the stream send its buffered bytes, as far as the socket accepts them.
    fn flush(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.unflushed
            && let Poll::Ready(flushed) = Pin::new(&mut self.stream).poll_flush(context)
        {
            flushed?;
            self.unflushed = false;
        }
        Ok(())
    }

    /// Writes the reply of a request that did not finish within a turn.
    fn finish(&mut self, reply: Reply) {
        self.session.finish(reply, &mut self.unsent);
        let answered = self.session.take_answered();
        self.go_on(answered);
    }

    /// Continues with the next requests after `answered` more replies were added to those that wait for the
    /// disk.
    fn go_on(&mut self, answered: usize) {
        if let Some(unsynced) = &mut self.unsynced {
            unsynced.replies += answered;
        }
        self.account();
        self.waiting = true;
    }

    /// Waits without blocking the thread. Ends early if the connection is closed or the server stops.
    async fn wait(&self, wait: Duration) {
        let mut over = std::pin::pin!(tokio::time::sleep(wait));
        poll_fn(|context| match self.client.is_killed() || self.shared.is_stopping() {
            true => Poll::Ready(()),
            false => over.as_mut().poll(context),
        })
        .await;
    }

    /// Closes our side and waits briefly for the other side. Closing with unread input would make the client
    /// lose the last replies.
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
