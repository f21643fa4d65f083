//! One connection: reads the bytes that have arrived, executes all requests, writes all replies.
//!
//! ```text
//! Inbox: read ─▶ decode ─▶ dispatch ─▶ execute (session, engine) ─▶ reply ─▶ Outbox: write, or wait for the disk
//!        └──────────────────────── one turn (turn) ─────────────────────┘
//! ```

mod inbox;
mod long;
mod outbox;
mod turn;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use mayhap_command::Reply;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::client::Client;
use crate::session::Session;
use crate::shared::Shared;
use crate::worker::WorkerBuffers;
use inbox::{Inbox, RequestSource};
use outbox::Outbox;
use turn::Turn;

/// The time a connection with data in its buffers waits when all buffers together exceed the limit.
const PAUSE: Duration = Duration::from_millis(20);
/// The time a stopping server waits for bytes that are in the socket but have not been reported yet.
const LAST_LOOK: Duration = Duration::from_millis(20);
/// The time a client has to see the end of a connection that the server closes.
const LINGER: Duration = Duration::from_millis(200);

struct Connection<'a, S> {
    stream: S,
    client: &'a Client,
    shared: &'a Arc<Shared>,
    session: Session,
    inbox: Inbox,
    outbox: Outbox,
    /// Run no more requests; close when all replies are sent.
    closing: bool,
    /// Whether the connection has a deadline.
    due: bool,
    /// Set when the connection notices that the server is stopping.
    stopping: Option<Stopping>,
}

/// A connection of a server that is stopping.
#[derive(Clone, Copy)]
struct Stopping {
    since: Instant,
    /// Whether the socket has been read for the last time.
    looked: bool,
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
        inbox: Inbox::default(),
        outbox: Outbox::default(),
        closing: false,
        due: false,
        stopping: None,
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
                let Ok((kept, reply)) = tokio::task::spawn_blocking(|| long.execute()).await else { break };
                connection.inbox.kept = kept;
                let answered = !reply.is_empty();
                let end = connection.outbox.end();
                match end.is_empty() {
                    true => *end = reply,
                    false => end.extend_from_slice(&reply),
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

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<'_, S> {
    /// Bytes of all buffers of this connection.
    fn held(&self) -> usize {
        self.inbox.memory_bytes() + self.outbox.memory_bytes() + self.session.held_bytes()
    }

    /// Reports the size of the buffers.
    fn account(&self) {
        self.client.holds(self.held(), self.shared.clients());
    }

    /// Sets or clears the deadline.
    fn set_due(&mut self, due: bool) {
        if due || self.due {
            self.client.due(self.shared.request_timeout().filter(|_| due));
        }
        (self.due, self.inbox.arrived) = (due, 0);
    }

    /// Writes the reply of a request that did not finish within a turn.
    fn finish(&mut self, reply: Reply) {
        self.session.finish(reply, self.outbox.end());
        let answered = self.session.take_answered();
        self.go_on(answered);
    }

    /// Continues with the next requests after `answered` more replies were added to those that wait for the
    /// disk.
    fn go_on(&mut self, answered: usize) {
        self.outbox.answered(answered);
        self.account();
        self.inbox.source = RequestSource::Kept;
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
