//! One turn of a connection: the work it does before other connections have their turn.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use mayhap_command::{Command, Request, Run, table};
use tokio::io::{AsyncRead, AsyncWrite};

use super::inbox::{Received, RequestSource};
use super::long::Long;
use super::outbox::{NotSynced, Sent};
use super::{Connection, Stopping};
use crate::durable;
use crate::resp::encode;
use crate::session::{DelayedReply, Dispatch, Job, Next, Tools};
use crate::shared::ClientPause;
use crate::worker::{READ_BYTES, WorkerBuffers, empty_requests, empty_words};

/// Replies of this many bytes are written before more requests run.
const WRITE_BYTES: usize = 1 << 20;
/// The number of bytes of a request that must arrive for its deadline to be extended.
const PROGRESS_BYTES: usize = 16 * 1024;
/// The maximum number of requests in a batch, for replies that may be long.
const AT_ONCE: usize = 16;
/// The maximum number of item requests in a batch. The time is checked after each batch. A request that inserts
/// into a chain of a thousand filters takes 0.4 ms.
const ITEMS_AT_ONCE: usize = 64;
/// The time a connection runs requests before others have their turn.
const LONGEST_TURN: Duration = Duration::from_millis(20);
/// The time for which a stopping server keeps reading from a client that does not pause.
const STOPPING_READ: Duration = Duration::from_millis(500);

/// The reason why the turn of a connection is over.
pub(super) enum Turn {
    /// More work remains. Others have their turn first.
    More,
    /// The server is stopping, and there seems to be nothing to read.
    LastLook,
    /// All buffers together exceed the limit and this connection uses some of them, or requests are paused.
    Crowded,
    /// A long job must run.
    Job(Job),
    /// A long request must run.
    Long(Long),
    /// A reply must wait.
    Pause(Box<DelayedReply>),
    /// The connection is closed, by the server or by the client.
    Closed,
}

/// Returns whether `CLIENT PAUSE` delays this command.
fn is_paused(pause: ClientPause, name: &[u8]) -> bool {
    pause == ClientPause::All || table::find(name).is_some_and(Command::may_change)
}

/// Returns whether this command must wait while all buffers together exceed the limit. Even a client with
/// empty buffers could request a megabyte.
fn is_crowded_out(name: &[u8]) -> bool {
    table::find(name).is_some_and(|command| command.traits.long_reply)
}

/// Returns whether the words begin an HTTP request. A web page can make a browser send anything to a
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

/// Returns the maximum number of such requests in a batch.
const fn most_at_once(command: &Command) -> usize {
    match command.run {
        Run::Ask(_) | Run::Add(_) => ITEMS_AT_ONCE,
        // Keep only few long replies in memory at the same time.
        _ if command.traits.long_reply => 1,
        _ => AT_ONCE,
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<'_, S> {
    /// Reads, executes and replies until there is nothing to read or the turn is over.
    pub(super) fn poll_turn(
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
            let sent = self.outbox.send(&mut self.stream, context)?;
            if sent == Sent::All {
                self.account();
                self.client.active(self.session.last_run(), self.inbox.kept.len(), 0);
            }
            if self.closing {
                if self.outbox.is_empty() {
                    return Poll::Ready(Ok(Turn::Closed));
                }
                // A client that does not read its last replies has a deadline.
                if sent != Sent::Stuck || !self.due {
                    self.set_due(true);
                }
                return Poll::Pending;
            }
            if self.outbox.unread() > self.unread_limit() {
                self.set_due(false);
                return Poll::Pending;
            }
            if self.is_crowded() && self.held() > READ_BYTES {
                return Poll::Ready(Ok(Turn::Crowded));
            }
            let (received, may_have_more) = match std::mem::take(&mut self.inbox.source) {
                RequestSource::Kept => (Received::Kept, true),
                RequestSource::Socket => {
                    // Only a partial request has a deadline.
                    let half = !self.inbox.kept.is_empty();
                    if half != self.due {
                        self.set_due(half);
                    }
                    let known = self.session.request_limits().authenticated;
                    match self.inbox.poll_read(&mut self.stream, known, buffers, context) {
                        // The client has finished sending, but may still read its replies.
                        Poll::Ready(Ok((0, _))) => {
                            self.closing = true;
                            continue;
                        }
                        Poll::Ready(Ok((read, may_have_more))) => {
                            buffers.counters.read(read);
                            (self.inbox.received(read, !half), may_have_more)
                        }
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending if self.shared.is_stopping() => {
                            // The kernel may have received bytes that it has not reported yet.
                            if !std::mem::replace(&mut self.stopping().looked, true) {
                                return Poll::Ready(Ok(Turn::LastLook));
                            }
                            self.closing = true;
                            continue;
                        }
                        Poll::Pending => return Poll::Pending,
                    }
                }
            };
            match self.serve_received(context, buffers, received)? {
                Some(turn) => return Poll::Ready(Ok(turn)),
                None if may_have_more => return Poll::Ready(Ok(Turn::More)),
                None => {}
            }
        }
    }

    /// Waits until the unsent replies may be sent. If the disk fails, the client gets errors in place of the
    /// waiting replies, because changes that are not on the disk are not acknowledged.
    fn poll_synced(&mut self, context: &Context<'_>) -> Poll<()> {
        let log = self.shared.engine().log().map(|log| &**log);
        match self.outbox.poll_synced(log, context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(NotSynced { refused, replies })) => {
                self.session.refuse(durable::refusal(refused), replies, self.outbox.end());
            }
        }
        Poll::Ready(())
    }

    /// Returns the limit for unread replies. An unauthenticated client must read each reply before the next request
    /// runs.
    fn unread_limit(&self) -> usize {
        match self.session.request_limits().authenticated {
            true => self.shared.settings().output_limit,
            false => 0,
        }
    }

    /// Returns whether all buffers together exceed the limit, or will do so with the current replies.
    fn is_crowded(&self) -> bool {
        self.shared.clients().expected_bytes() > self.shared.settings().buffers_limit
    }

    fn stopping(&mut self) -> &mut Stopping {
        self.stopping.get_or_insert_with(|| Stopping { since: Instant::now(), looked: false })
    }

    /// Decodes, dispatches and executes all complete requests, and sends their replies.
    fn serve_received(
        &mut self,
        context: &mut Context<'_>,
        buffers: &mut WorkerBuffers,
        received: Received,
    ) -> io::Result<Option<Turn>> {
        let begun = Instant::now();
        let limits = self.session.request_limits();
        // `AUTH` inside a pipeline changes the limits for the requests after it.
        let most = if limits.authenticated { usize::MAX } else { 1 };
        let bytes = received.bytes(&self.inbox.kept, &buffers.input);
        let outcome = self.inbox.decoder.read(bytes, &limits, most);

        let mut words = empty_words(std::mem::take(&mut buffers.words));
        words.extend(self.inbox.decoder.words(bytes));
        let mut requests = empty_requests(std::mem::take(&mut buffers.requests));
        let frames = self.inbox.decoder.frames();
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
            match self.session.dispatch(words, bytes) {
                Dispatch::Batch(command) => {
                    requests.push(Request { command, words });
                    if requests.len() >= most_at_once(command) {
                        self.session.execute_batch(&mut requests, &mut tools);
                        if begun.elapsed() > LONGEST_TURN {
                            next = Next::Wait;
                            break;
                        }
                    }
                }
                apart => {
                    self.session.execute_batch(&mut requests, &mut tools);
                    next = self.session.execute_apart(apart, words, bytes, &mut tools);
                    if let Next::Long(command) = next {
                        long = self.inbox.decoder.spans(frame).map(|spans| (command, spans, bytes));
                        if long.is_none() {
                            // An inline request with quotes, which a person typed: run it here.
                            self.session.execute_batch(&mut vec![Request { command, words }], &mut tools);
                            next = self.session.finished();
                        }
                    }
                    if !matches!(next, Next::Go) {
                        break;
                    }
                }
            }
        }
        self.session.execute_batch(&mut requests, &mut tools);
        let all = done == frames.len();
        buffers.requests = empty_requests(requests);
        buffers.words = empty_words(words);

        if let (Err(error), true, Next::Go) = (&outcome, all, &next) {
            encode::error(error, &mut buffers.out);
            next = Next::Close;
        }
        // A long request stays at the front of the input.
        let cut = self.inbox.decoder.cut(done - usize::from(long.is_some()));
        self.inbox.keep_rest(received, cut, buffers);
        if done > 0 {
            if self.due {
                self.set_due(false);
            }
        } else if self.inbox.arrived >= PROGRESS_BYTES && self.session.request_limits().authenticated {
            self.set_due(true);
        }
        // A partial request of an unauthenticated client needs more bytes. Running it again would read none.
        let more = !self.inbox.kept.is_empty() && (!all || most == 1 && done > 0);
        self.reply(context, buffers)?;
        if self.shared.is_stopping() {
            let since = self.stopping().since;
            self.closing |= since.elapsed() > STOPPING_READ;
        }
        Ok(match next {
            Next::Job(job) => Some(Turn::Job(job)),
            Next::Pause(pause) => Some(Turn::Pause(pause)),
            Next::Long(_) => long.map(|(command, words, length)| {
                let engine = Arc::clone(self.shared.engine());
                let (input, protocol) = (std::mem::take(&mut self.inbox.kept), self.session.answers_in());
                let user = Arc::clone(self.session.user());
                Turn::Long(Long { engine, command, input, words, length, protocol, user })
            }),
            Next::Close => {
                self.closing = true;
                None
            }
            Next::Hold => {
                self.set_due(false);
                self.inbox.source = RequestSource::Kept;
                Some(Turn::Crowded)
            }
            Next::Go | Next::Wait => {
                self.inbox.source = if more { RequestSource::Kept } else { RequestSource::Socket };
                more.then_some(Turn::More)
            }
        })
    }

    /// Sends the replies in the worker's buffer, or keeps them until their changes are on the disk.
    fn reply(&mut self, context: &mut Context<'_>, buffers: &mut WorkerBuffers) -> io::Result<()> {
        let replies = self.session.take_answered();
        buffers.counters.wrote(buffers.out.len());
        match self.session.take_unsynced() {
            None => self.outbox.write(&mut self.stream, &mut buffers.out, context)?,
            Some(next) => {
                let log = self.shared.engine().log().map(|log| &**log);
                self.outbox.hold(&mut buffers.out, replies, next, log)?;
            }
        }
        self.client.active(self.session.last_run(), self.inbox.kept.len(), self.outbox.unread());
        self.account();
        Ok(())
    }
}
