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

use mayhap_command::{Command, Reply, Request, Run, Scratch, table};
use mayhap_engine::Engine;
use mayhap_engine::log::Policy;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use crate::client::Client;
use crate::durable;
use crate::resp::{Decoder, Protocol, encode};
use crate::session::{self, Job, Next, Session, Sorted, Tools};
use crate::shared::{Pause, Shared};
use crate::users::User;
use crate::worker::{Desk, READ_BYTES, empty_requests, empty_words};

/// The most that is read at once in the midst of a long word.
const LONG_READ_BYTES: usize = 1 << 20;
/// A buffer of the desk larger than this is given back when it is empty.
const KEEP_BYTES: usize = 256 * 1024;
/// The same of a connection's own: there are many.
const KEEP_OWN_BYTES: usize = 16 * 1024;
/// The most that is read at once from a stranger.
const STRANGER_READ_BYTES: usize = 4 * 1024;
/// Replies that are written before more requests are run.
const WRITE_BYTES: usize = 1 << 20;
/// What is written to one before others have their turn.
const PAID_BYTES: usize = 4 << 20;
/// A request that goes on arriving has brought so much since somebody last looked at the clock.
const PROGRESS_BYTES: usize = 16 * 1024;
/// How long a connection waits that has something, when all together have too much.
const PAUSE: Duration = Duration::from_millis(20);
/// Requests whose replies may be long that are run at once.
const AT_ONCE: usize = 16;
/// Requests about items that are run at once, before somebody looks at the clock: one that adds to a chain of a thousand filters takes 0.4 ms.
const ITEMS_AT_ONCE: usize = 64;
/// How long a connection runs requests before others have their turn.
const LONGEST_TURN: Duration = Duration::from_millis(20);
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
    /// Records of the log below `next` must be safe before what is owed behind `safe` may leave.
    unsynced: Option<Unsynced>,
    /// Was something written that the stream may still hold back? One that encrypts does.
    unflushed: bool,
    /// No more requests: close when nothing is owed.
    closing: bool,
    /// Is it closed unless something happens soon?
    due: bool,
    /// Bytes of a request that came since that was decided.
    came: usize,
    /// When it was first seen that the server stops.
    stopping_since: Option<Instant>,
    /// Has it been looked for a last time whether something came?
    looked: bool,
}

/// Replies that wait for the disk.
#[derive(Clone, Copy)]
struct Unsynced {
    next: u64,
    safe: usize,
    /// How many there are.
    replies: usize,
    /// Have others had their turn? What they change is written together with ours.
    late: bool,
}

/// Why a connection's turn is over.
enum Turn {
    /// There is more to do, after the others had their turn.
    More,
    /// The server stops, and there seems to be nothing to read.
    LastLook,
    /// All connections together have too much, and this one has some of it; or everybody has to wait.
    Crowded,
    /// Something that takes long.
    Job(Job),
    /// A request that takes long.
    Long(Long),
    /// A reply that has to wait.
    Pause(Box<session::Pause>),
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
    /// How the reply is written, if it is.
    protocol: Option<Protocol>,
    /// Whose request it is.
    user: Arc<User>,
}

impl Long {
    /// Bytes its reply may have, as a value and as it is written.
    fn reply_bytes(&self) -> usize {
        if !has_long_reply(self.command) {
            return 0;
        }
        let name = self.words.get(1).map_or(&[][..], |word| &self.input[word.clone()]);
        usize::try_from(self.engine.bytes_of(name)).unwrap_or(usize::MAX).saturating_mul(2)
    }

    /// Gives back the input behind it, and the reply as it is written: one of many megabytes takes its time as well.
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
        unsynced: None,
        unflushed: false,
        closing: false,
        due: false,
        came: 0,
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
                match connection.owed.is_empty() {
                    true => connection.owed = reply,
                    false => connection.owed.extend_from_slice(&reply),
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

/// Does this command have to wait?
fn is_paused(pause: Pause, name: &[u8]) -> bool {
    let changes = |command: &Command| command.changes() || command.name == "exec";
    pause == Pause::All || table::find(name).is_some_and(changes)
}

/// Has this command to wait until less is kept for all connections? One that was given nothing yet could still ask for a megabyte.
fn is_crowded_out(name: &[u8]) -> bool {
    table::find(name).is_some_and(|command| has_long_reply(command) || command.name == "exec")
}

/// Might one reply be as long as a whole string, or a piece of a filter?
fn has_long_reply(command: &Command) -> bool {
    matches!(
        command.name,
        "get"
            | "getdel"
            | "getex"
            | "getrange"
            | "getset"
            | "mget"
            | "substr"
            | "scan"
            | "dump"
            | "bf.scandump"
            | "cf.scandump"
            | "mf.dump"
    )
}

/// Does a browser talk? A page of a stranger can make it send anything to a port of this machine, but for how an HTTP request begins.
///
/// `GET` is a command as well, so it takes the version at the end of the line to tell.
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
    /// Reads, runs and writes until there is nothing to read, or it is somebody else's turn.
    fn poll_turn(&mut self, context: &mut Context<'_>, desk: &mut Desk) -> Poll<io::Result<Turn>> {
        loop {
            // Its user may be gone.
            self.session.refresh();
            if self.client.is_killed() {
                return Poll::Ready(Ok(Turn::Closed));
            }
            if self.poll_synced(context).is_pending() {
                return Poll::Pending;
            }
            let progress = self.pay(context)?;
            if self.closing {
                if self.owed.is_empty() && !self.unflushed {
                    return Poll::Ready(Ok(Turn::Closed));
                }
                // It may take its time to read, but not for ever.
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
            let mut desk_bytes = 0;
            if !std::mem::take(&mut self.waiting) {
                // Half a request has a limit; a connection that has sent nothing, or all it wanted, has none.
                let half = !self.input.is_empty();
                if half != self.due {
                    self.set_due(half);
                }
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
                self.came += read;
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

    /// Waits until what is owed may leave. If the disk fails, nothing that it should have kept is acknowledged: the client gets errors in
    /// place of such replies.
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
                self.owed.truncate(unsynced.safe);
                self.session.refuse(durable::refusal(refused), unsynced.replies, &mut self.owed);
            }
        }
        self.unsynced = None;
        Poll::Ready(())
    }

    /// Reads into the desk if nothing waits for its end, and behind what waits otherwise.
    fn poll_read(&mut self, context: &mut Context<'_>, desk: &mut Desk) -> Poll<io::Result<usize>> {
        let known = self.session.request_limits().authenticated;
        if self.input.is_empty() {
            let most = if known { READ_BYTES } else { STRANGER_READ_BYTES };
            let mut buffer = ReadBuf::new(&mut desk.input[..most]);
            let read = Pin::new(&mut self.stream).poll_read(context, &mut buffer);
            return read.map_ok(|()| buffer.filled().len());
        }
        let missing = self.decoder.wanted(self.input.len());
        let least = if known { READ_BYTES / 4 } else { STRANGER_READ_BYTES };
        let wanted = missing.clamp(least, LONG_READ_BYTES);
        if self.input.capacity() - self.input.len() < wanted {
            // Twice as much each time, but no more than is missing.
            let more = wanted.max(missing.min(self.input.len()));
            self.input.try_reserve_exact(more).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        }
        let read = std::pin::pin!(self.stream.read_buf(&mut self.input));
        read.poll(context)
    }

    /// Bytes of replies that it has not read.
    const fn unread(&self) -> usize {
        self.owed.len() - self.paid
    }

    /// How many those may be. A stranger reads every reply before it gets the next.
    fn unread_limit(&self) -> usize {
        match self.session.request_limits().authenticated {
            true => self.shared.settings().output_limit,
            false => 0,
        }
    }

    /// Bytes that are kept for it.
    fn held(&self) -> usize {
        self.input.capacity() + self.owed.capacity() + self.decoder.memory_bytes() + self.session.held_bytes()
    }

    /// Lets all know how many bytes are kept for it.
    fn account(&self) {
        self.client.holds(self.held(), self.shared.clients());
    }

    /// Do all connections together have too much, or will they?
    fn is_crowded(&self) -> bool {
        self.shared.clients().expected_bytes() > self.shared.settings().buffers_limit
    }

    /// Something must happen soon, or it is closed; or it may take its time.
    fn set_due(&mut self, due: bool) {
        if due || self.due {
            self.client.due(self.shared.request_timeout().filter(|_| due));
        }
        (self.due, self.came) = (due, 0);
    }

    /// Runs all whole requests: those in the desk's first `desk_bytes` bytes, or in `input` if there are none.
    fn run(
        &mut self,
        context: &mut Context<'_>,
        desk: &mut Desk,
        desk_bytes: usize,
    ) -> io::Result<Option<Turn>> {
        let begun = Instant::now();
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
                    let at_once = match command.run {
                        Run::Items(_) => ITEMS_AT_ONCE,
                        _ if has_long_reply(command) => 1,
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
            if self.input.is_empty() && self.input.capacity() > KEEP_OWN_BYTES {
                self.input = Vec::new();
            }
        }
        if done > 0 {
            if self.due {
                self.set_due(false);
            }
        } else if self.came >= PROGRESS_BYTES && self.session.request_limits().authenticated {
            self.set_due(true);
        }
        // Half a request of a stranger waits for more bytes: running it again would read none.
        let more = !self.input.is_empty() && (!all || most == 1 && done > 0);
        let replies = self.session.take_answered();
        match self.session.take_unsynced() {
            None => self.write(context, desk)?,
            Some(next) => {
                let bytes = desk.out.len();
                desk.counters.wrote(bytes);
                self.owe(desk, 0)?;
                let late = self.shared.engine().log().is_some_and(|log| log.policy() == Policy::Always);
                self.unsynced = Some(Unsynced { next, safe: self.owed.len() - bytes, replies, late });
            }
        }
        self.client.active(self.session.last_run(), self.input.len(), self.unread());
        self.account();
        if self.shared.is_stopping() {
            let since = *self.stopping_since.get_or_insert_with(Instant::now);
            self.closing |= since.elapsed() > LAST_WORDS;
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
        self.unflushed |= written > 0;
        self.owe(desk, written)?;
        self.flush(context)
    }

    /// Keeps `out` from here on until the socket takes it.
    fn owe(&mut self, desk: &mut Desk, from: usize) -> io::Result<()> {
        let out = &mut desk.out;
        if from < out.len() {
            // What was paid is not kept for ever just because something is always owed.
            if self.paid > self.owed.len() / 2 {
                self.owed.drain(..self.paid);
                self.paid = 0;
            }
            let more = self.owed.try_reserve(out.len() - from);
            more.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            self.owed.extend_from_slice(&out[from..]);
        }
        out.clear();
        if out.capacity() > KEEP_BYTES {
            *out = Vec::with_capacity(READ_BYTES);
        }
        Ok(())
    }

    /// Writes what is owed, as far as the socket takes it. Did it take anything?
    fn pay(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let before = self.paid;
        while self.paid < self.owed.len() {
            match Pin::new(&mut self.stream).poll_write(context, &self.owed[self.paid..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(taken) => self.paid += taken?,
                Poll::Pending => return Ok(self.paid > before),
            }
            self.unflushed = true;
            if self.paid - before > PAID_BYTES && self.paid < self.owed.len() {
                // It reads as fast as we write: others have their turn in between.
                context.waker().wake_by_ref();
                return Ok(true);
            }
        }
        self.flush(context)?;
        if self.paid > 0 {
            self.paid = 0;
            self.owed.clear();
            if self.owed.capacity() > KEEP_OWN_BYTES {
                self.owed = Vec::new();
            }
            self.account();
            self.client.active(self.session.last_run(), self.input.len(), 0);
        }
        Ok(true)
    }

    /// Has the stream send what it holds back, as far as the socket takes it.
    fn flush(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.unflushed
            && let Poll::Ready(flushed) = Pin::new(&mut self.stream).poll_flush(context)
        {
            flushed?;
            self.unflushed = false;
        }
        Ok(())
    }

    /// Writes the reply of what was not done in a turn.
    fn finish(&mut self, reply: Reply) {
        self.session.finish(reply, &mut self.owed);
        let answered = self.session.take_answered();
        self.go_on(answered);
    }

    /// So many replies were written behind those that wait for the disk; now it is the turn of the requests behind.
    fn go_on(&mut self, answered: usize) {
        if let Some(unsynced) = &mut self.unsynced {
            unsynced.replies += answered;
        }
        self.account();
        self.waiting = true;
    }

    /// Waits, unless it is closed or the server stops meanwhile. The thread has time for others.
    async fn wait(&self, wait: Duration) {
        let mut over = std::pin::pin!(tokio::time::sleep(wait));
        poll_fn(|context| match self.client.is_killed() || self.shared.is_stopping() {
            true => Poll::Ready(()),
            false => over.as_mut().poll(context),
        })
        .await;
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
