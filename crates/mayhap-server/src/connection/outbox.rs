//! The replies of a connection that have not been sent yet: the socket has not accepted them, or they wait for
//! the disk.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use mayhap_engine::log::{Log, Policy, Refused};
use tokio::io::AsyncWrite;

use super::inbox::KEEP_OWN_BYTES;
use crate::worker::READ_BYTES;

/// An empty buffer of the worker is freed if it is larger than this.
const KEEP_BYTES: usize = 256 * 1024;
/// The number of bytes to write to one connection before others have their turn.
const SENT_BYTES: usize = 4 << 20;

/// Replies that have not been sent yet.
#[derive(Default)]
pub(super) struct Outbox {
    /// Replies that the socket has not accepted yet.
    unsent: Vec<u8>,
    /// The number of bytes at the start of `unsent` that have been sent since.
    sent: usize,
    /// Set while unsent replies wait for the disk.
    unsynced: Option<Unsynced>,
    /// Whether written bytes may still be in the stream, because a TLS stream buffers.
    unflushed: bool,
}

/// Replies that wait for the disk: the bytes of `unsent` from `safe` on must not be sent before the log records
/// below `next` are safe.
#[derive(Clone, Copy)]
struct Unsynced {
    next: u64,
    safe: usize,
    /// The number of replies.
    replies: usize,
    /// Whether other connections have had their turn. The log writes their changes together with ours.
    late: bool,
}

/// The log could not be synced. The waiting replies were removed, because changes that are not on the disk must
/// not be acknowledged.
#[derive(Debug)]
pub(super) struct NotSynced {
    pub(super) refused: Refused,
    /// The number of replies.
    pub(super) replies: usize,
}

/// The progress of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The socket accepted nothing.
    Stuck,
    /// The socket accepted some bytes, or there was nothing to send.
    Moving,
    /// The socket accepted all bytes.
    All,
}

impl Outbox {
    /// Returns the number of bytes that the client has not read.
    pub(super) const fn unread(&self) -> usize {
        self.unsent.len() - self.sent
    }

    /// Returns whether all replies have been sent, including the bytes in the stream's buffer.
    pub(super) const fn is_empty(&self) -> bool {
        self.unsent.is_empty() && !self.unflushed
    }

    /// Returns the memory of its buffer in bytes.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.unsent.capacity()
    }

    /// Returns the buffer, to add replies at its end.
    pub(super) const fn end(&mut self) -> &mut Vec<u8> {
        &mut self.unsent
    }

    /// Counts `answered` replies that were added at the end. They wait for the disk as the replies before them do.
    pub(super) const fn answered(&mut self, answered: usize) {
        if let Some(unsynced) = &mut self.unsynced {
            unsynced.replies += answered;
        }
    }

    /// Waits until the unsent replies may be sent.
    pub(super) fn poll_synced(
        &mut self,
        log: Option<&Log>,
        context: &Context<'_>,
    ) -> Poll<Result<(), NotSynced>> {
        let (Some(unsynced), Some(log)) = (&mut self.unsynced, log) else { return Poll::Ready(Ok(())) };
        if !std::mem::replace(&mut unsynced.late, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Unsynced { next, safe, replies, .. } = *unsynced;
        let Poll::Ready(synced) = log.poll_synced(next, context) else { return Poll::Pending };
        self.unsynced = None;
        Poll::Ready(synced.map_err(|refused| {
            self.unsent.truncate(safe);
            NotSynced { refused, replies }
        }))
    }

    /// Keeps `out`, which has `replies` replies, until the log records below `next` are safe.
    pub(super) fn hold(
        &mut self,
        out: &mut Vec<u8>,
        replies: usize,
        next: u64,
        log: Option<&Log>,
    ) -> io::Result<()> {
        let bytes = out.len();
        self.keep(out, 0)?;
        let late = log.is_some_and(|log| log.policy() == Policy::Always);
        self.unsynced = Some(Unsynced { next, safe: self.unsent.len() - bytes, replies, late });
        Ok(())
    }

    /// Writes `out`, and keeps the bytes that the socket does not accept.
    pub(super) fn write<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        out: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> io::Result<()> {
        let mut written = 0;
        while self.unsent.is_empty() && written < out.len() {
            match Pin::new(&mut *stream).poll_write(context, &out[written..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(taken) => written += taken?,
                Poll::Pending => break,
            }
        }
        self.unflushed |= written > 0;
        self.keep(out, written)?;
        self.flush(stream, context)
    }

    /// Keeps `out[from..]` until the socket accepts it.
    fn keep(&mut self, out: &mut Vec<u8>, from: usize) -> io::Result<()> {
        if from < out.len() {
            // Free the sent part here, because the buffer may never become empty.
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

    /// Writes unsent bytes until the socket accepts no more.
    pub(super) fn send<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> io::Result<Sent> {
        let before = self.sent;
        while self.sent < self.unsent.len() {
            match Pin::new(&mut *stream).poll_write(context, &self.unsent[self.sent..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(taken) => self.sent += taken?,
                Poll::Pending => return Ok(if self.sent > before { Sent::Moving } else { Sent::Stuck }),
            }
            self.unflushed = true;
            if self.sent - before > SENT_BYTES && self.sent < self.unsent.len() {
                // The client reads as fast as we write: let others have their turn.
                context.waker().wake_by_ref();
                return Ok(Sent::Moving);
            }
        }
        self.flush(stream, context)?;
        if self.sent == 0 {
            // There was nothing to send.
            return Ok(Sent::Moving);
        }
        self.sent = 0;
        self.unsent.clear();
        if self.unsent.capacity() > KEEP_OWN_BYTES {
            self.unsent = Vec::new();
        }
        Ok(Sent::All)
    }

    /// Makes the stream send its buffered bytes, as far as the socket accepts them.
    fn flush<S: AsyncWrite + Unpin>(&mut self, stream: &mut S, context: &mut Context<'_>) -> io::Result<()> {
        if self.unflushed
            && let Poll::Ready(flushed) = Pin::new(stream).poll_flush(context)
        {
            flushed?;
            self.unflushed = false;
        }
        Ok(())
    }
}
