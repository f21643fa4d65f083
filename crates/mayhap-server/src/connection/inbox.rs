//! The input of a connection: whole requests, and the beginning of the next one.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use crate::resp::Decoder;
use crate::worker::{READ_BYTES, WorkerBuffers};

/// The maximum number of bytes per read inside a long word.
const LONG_READ_BYTES: usize = 1 << 20;
/// The maximum number of bytes per read from an unauthenticated client.
const UNAUTHENTICATED_READ_BYTES: usize = 4 * 1024;
/// An empty buffer of a connection is freed if it is larger than this, because there are many connections.
pub(super) const KEEP_OWN_BYTES: usize = 16 * 1024;

/// Received bytes that have not been executed as requests yet.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) decoder: Decoder,
    /// The beginning of a partial request, or requests that must wait. It is empty while a connection is idle,
    /// because connections read into the worker's buffer.
    pub(super) kept: Vec<u8>,
    /// The source of the next requests.
    pub(super) source: RequestSource,
    /// The number of bytes of a request that have arrived since the deadline was set.
    pub(super) arrived: usize,
}

/// The source of a connection's next requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RequestSource {
    /// They must be read from the socket.
    #[default]
    Socket,
    /// `kept` has complete requests that may run now.
    Kept,
}

/// The buffer that contains the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// The connection's `kept`.
    Kept,
    /// The first bytes of the worker's buffer.
    Worker(usize),
}

impl Inbox {
    /// Reads into the worker's buffer, or appends to `kept` if it has a partial request. Returns the
    /// number of bytes, and whether there may be more to read.
    pub(super) fn poll_read<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        authenticated: bool,
        buffers: &mut WorkerBuffers,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(usize, bool)>> {
        if self.kept.is_empty() {
            let most = if authenticated { READ_BYTES } else { UNAUTHENTICATED_READ_BYTES };
            let mut buffer = ReadBuf::new(&mut buffers.input[..most]);
            let read = Pin::new(stream).poll_read(context, &mut buffer);
            return read.map_ok(|()| (buffer.filled().len(), buffer.filled().len() >= READ_BYTES));
        }
        let missing = self.decoder.wanted(self.kept.len());
        let least = if authenticated { READ_BYTES / 4 } else { UNAUTHENTICATED_READ_BYTES };
        let wanted = missing.clamp(least, LONG_READ_BYTES);
        if self.kept.capacity() - self.kept.len() < wanted {
            // Doubles each time, but allocates no more than is missing.
            let more = wanted.max(missing.min(self.kept.len()));
            self.kept.try_reserve_exact(more).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        }
        let read = std::pin::pin!(stream.read_buf(&mut self.kept));
        read.poll(context).map_ok(|read| (read, read >= missing))
    }

    /// Records that `read` bytes were read, and returns the buffer that contains them.
    pub(super) const fn received(&mut self, read: usize, was_empty: bool) -> Received {
        self.arrived += read;
        if was_empty { Received::Worker(read) } else { Received::Kept }
    }

    /// Keeps the bytes after the first `cut` bytes.
    pub(super) fn keep_rest(&mut self, received: Received, cut: usize, buffers: &WorkerBuffers) {
        match received {
            Received::Worker(bytes) => self.kept.extend_from_slice(&buffers.input[cut..bytes]),
            Received::Kept => {
                self.kept.drain(..cut);
                if self.kept.is_empty() && self.kept.capacity() > KEEP_OWN_BYTES {
                    self.kept = Vec::new();
                }
            }
        }
    }

    /// Returns the memory of its buffers in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.kept.capacity() + self.decoder.memory_bytes()
    }
}

impl Received {
    /// Returns the received bytes.
    pub(super) fn bytes<'a>(self, kept: &'a [u8], worker: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Kept => kept,
            Self::Worker(bytes) => &worker[..bytes],
        }
    }
}

/// Returns the words of one request, which are at these positions of its bytes.
pub(super) fn words_at<'a>(bytes: &'a [u8], spans: &[Range<usize>]) -> Vec<&'a [u8]> {
    spans.iter().map(|span| &bytes[span.clone()]).collect()
}
