//! Connected clients: the state of each connection that other threads see.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::resp::Protocol;
use crate::users::back_off::Source;

/// One connection, as other threads see it.
#[derive(Debug)]
pub struct Client {
    /// A unique number, never used twice.
    pub id: u64,
    /// The address of the client, as in `CLIENT LIST`.
    pub address: String,
    /// The local address.
    pub local_address: String,
    /// The source that wrong passwords are counted for.
    source: Source,
    descriptor: i64,
    connected: Instant,
    identity: Mutex<Identity>,
    /// Milliseconds after `connected`.
    last_active_ms: AtomicU64,
    resp3: AtomicBool,
    /// Requests in its transaction; -1 if it has none.
    queued: AtomicI64,
    watched: AtomicUsize,
    waiting_input: AtomicUsize,
    waiting_output: AtomicUsize,
    /// Bytes of all its buffers: partial requests, its transaction, unread replies.
    held: AtomicUsize,
    /// When it is closed unless something happens, in milliseconds after `connected`; `u64::MAX`: never.
    due_ms: AtomicU64,
    killed: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// The properties that a client sets about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `CLIENT SETNAME`.
    pub name: Vec<u8>,
    /// The user of the connection.
    pub user: Vec<u8>,
    /// `CLIENT SETINFO LIB-NAME`.
    pub library: Vec<u8>,
    /// `CLIENT SETINFO LIB-VER`.
    pub library_version: Vec<u8>,
    /// The last command that is not about filters, or one of the last batch of filter commands.
    pub command: &'static str,
}

impl Client {
    /// Closes the connection. May be called from any thread.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) const fn source(&self) -> Source {
        self.source
    }

    /// Returns the properties that the client set about itself.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity.lock().clone()
    }

    pub(crate) fn identify(&self, change: impl FnOnce(&mut Identity)) {
        change(&mut self.identity.lock());
    }

    /// Returns the line of `CLIENT LIST`, without a line break.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let identity = self.identity();
        let age = self.connected.elapsed();
        let idle = age.as_millis().saturating_sub(u128::from(self.last_active_ms.load(Ordering::Relaxed)));
        let mut line = format!(
            "id={} addr={} laddr={} fd={} name=",
            self.id, self.address, self.local_address, self.descriptor
        )
        .into_bytes();
        line.extend_from_slice(&identity.name);
        let queued = self.queued.load(Ordering::Relaxed);
        let input = self.waiting_input.load(Ordering::Relaxed);
        let output = self.waiting_output.load(Ordering::Relaxed);
        let resp = if self.resp3.load(Ordering::Relaxed) { 3 } else { 2 };
        let mut rest = String::new();
        // Writing to a vector does not fail.
        let _ = write!(
            rest,
            " age={} idle={} flags={} db=0 sub=0 psub=0 ssub=0 multi={queued} watch={} qbuf={input} qbuf-free=0 argv-mem=0 \
             multi-mem=0 rbs=0 rbp=0 obl={output} oll=0 omem={output} tot-mem={} events=r cmd={} user=",
            age.as_secs(),
            idle / 1_000,
            if queued >= 0 { "x" } else { "N" },
            self.watched.load(Ordering::Relaxed),
            input + output,
            identity.command,
        );
        line.extend_from_slice(rest.as_bytes());
        line.extend_from_slice(&identity.user);
        line.extend_from_slice(format!(" redir=-1 resp={resp} lib-name=").as_bytes());
        line.extend_from_slice(&identity.library);
        line.extend_from_slice(b" lib-ver=");
        line.extend_from_slice(&identity.library_version);
        line
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// Records activity at `now`, with the bytes that wait to be run and to be read by the client.
    pub(crate) fn active(&self, now: Instant, input: usize, output: usize) {
        let since = now.saturating_duration_since(self.connected);
        self.last_active_ms.store(u64::try_from(since.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.waiting_input.store(input, Ordering::Relaxed);
        self.waiting_output.store(output, Ordering::Relaxed);
    }

    /// Sets the number of bytes in its buffers. Only the thread of the connection calls this.
    pub(crate) fn holds(&self, bytes: usize, all: &Clients) {
        let before = self.held.swap(bytes, Ordering::Relaxed);
        if bytes > before {
            all.held.fetch_add(bytes - before, Ordering::Relaxed);
        } else if bytes < before {
            all.held.fetch_sub(before - bytes, Ordering::Relaxed);
        }
    }

    /// Sets the deadline: the connection is closed after `patience` unless something happens. `None`: no
    /// deadline.
    pub(crate) fn due(&self, patience: Option<Duration>) {
        let due = patience.map_or(u64::MAX, |patience| self.age_ms().saturating_add(millis(patience)));
        self.due_ms.store(due, Ordering::Relaxed);
    }

    /// Whether its deadline has passed, or it has sent no request for `idle`.
    fn is_due(&self, idle: Option<Duration>) -> bool {
        let age = self.age_ms();
        let quiet = age.saturating_sub(self.last_active_ms.load(Ordering::Relaxed));
        age >= self.due_ms.load(Ordering::Relaxed) || idle.is_some_and(|idle| quiet >= millis(idle))
    }

    fn age_ms(&self) -> u64 {
        millis(self.connected.elapsed())
    }

    pub(crate) fn speaks(&self, protocol: Protocol) {
        self.resp3.store(protocol == Protocol::Resp3, Ordering::Relaxed);
    }

    pub(crate) fn in_transaction(&self, queued: Option<usize>, watched: usize) {
        let queued = queued.map_or(-1, |queued| i64::try_from(queued).unwrap_or(i64::MAX));
        self.queued.store(queued, Ordering::Relaxed);
        self.watched.store(watched, Ordering::Relaxed);
    }

    /// Sets the waker of the task, which stays the same for the life of the connection.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        *self.waker.lock() = Some(waker.clone());
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.lock() {
            waker.wake_by_ref();
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A reply that is being made. Its bytes count while this lives.
#[derive(Debug)]
pub(crate) struct Expected<'a> {
    all: &'a Clients,
    bytes: usize,
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.all.made.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// All connections.
#[derive(Debug)]
pub struct Clients {
    last: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// The maximum number of connections.
    most: AtomicUsize,
    /// The number of rejected connections.
    rejected: AtomicU64,
    /// Bytes of all client buffers.
    held: AtomicUsize,
    /// Bytes of replies that are being made.
    made: AtomicUsize,
    /// The number of connections closed because of a timeout.
    overdue: AtomicU64,
    /// The number of connections closed because of their buffers.
    overfull: AtomicU64,
    /// The number of HTTP connections, which are not in `all`.
    http: AtomicUsize,
}

impl Clients {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            last: AtomicU64::new(0),
            all: Mutex::default(),
            most: AtomicUsize::new(most),
            rejected: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            overdue: AtomicU64::new(0),
            overfull: AtomicU64::new(0),
            http: AtomicUsize::new(0),
        }
    }

    /// The maximum number of connections.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Sets the maximum number of connections. Existing ones stay.
    pub fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Whether there is room for one more connection. Counts a rejection if not.
    pub(crate) fn has_room(&self) -> bool {
        let room = self.len() < self.most();
        self.rejected.fetch_add(u64::from(!room), Ordering::Relaxed);
        room
    }

    /// Adds an HTTP connection if there are fewer than `most`. Counts a rejection if not.
    pub(crate) fn enter_http(&self, most: usize) -> bool {
        let room = self.http.fetch_add(1, Ordering::Relaxed) < most;
        if !room {
            self.leave_http();
            self.rejected.fetch_add(1, Ordering::Relaxed);
        }
        room
    }

    pub(crate) fn leave_http(&self) {
        self.http.fetch_sub(1, Ordering::Relaxed);
    }

    /// The number of HTTP connections.
    #[must_use]
    pub fn http(&self) -> usize {
        self.http.load(Ordering::Relaxed)
    }

    /// Counts an HTTP connection that was closed because of a timeout.
    pub(crate) fn http_overdue(&self) {
        self.overdue.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of rejected connections.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// The number of connections closed because of a timeout.
    #[must_use]
    pub fn overdue(&self) -> u64 {
        self.overdue.load(Ordering::Relaxed)
    }

    /// The number of connections closed because of their buffers.
    #[must_use]
    pub fn overfull(&self) -> u64 {
        self.overfull.load(Ordering::Relaxed)
    }

    /// Bytes of all client buffers: partial requests, transactions, unread replies.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// As [`held_bytes`](Self::held_bytes), plus replies that are being made. Those close no connection, but
    /// make others wait.
    pub(crate) fn expected_bytes(&self) -> usize {
        self.held_bytes().saturating_add(self.made.load(Ordering::Relaxed))
    }

    /// Counts a reply of about `bytes` bytes that is being made, until the returned value is dropped.
    pub(crate) fn expect(&self, bytes: usize) -> Expected<'_> {
        // Keeps the sum from overflowing.
        let bytes = bytes.min(isize::MAX.unsigned_abs() / 1_024);
        self.made.fetch_add(bytes, Ordering::Relaxed);
        Expected { all: self, bytes }
    }

    /// Closes connections whose deadline has passed or that have sent no request for `idle`.
    pub(crate) fn close_overdue(&self, idle: Option<Duration>) {
        for client in self.list().into_iter().filter(|client| !client.is_killed() && client.is_due(idle)) {
            tracing::debug!(
                client = client.id,
                address = client.address,
                "connection closed: request-timeout or idle-timeout exceeded"
            );
            self.overdue.fetch_add(1, Ordering::Relaxed);
            client.kill();
        }
    }

    /// Closes the connections with the largest buffers until all together have at most `limit` bytes.
    pub(crate) fn close_overfull(&self, limit: usize) {
        let mut held = self.held_bytes();
        if held <= limit {
            return;
        }
        let bytes = |client: &Arc<Client>| client.held.load(Ordering::Relaxed);
        let mut clients: Vec<_> = self.list().into_iter().map(|client| (bytes(&client), client)).collect();
        clients.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        for (bytes, client) in clients {
            if held <= limit || bytes == 0 {
                return;
            }
            held = held.saturating_sub(bytes);
            if !client.is_killed() {
                tracing::warn!(
                    client = client.id,
                    address = client.address,
                    bytes,
                    limit,
                    "connection closed: all client buffers together exceed max-buffers, and this client has the largest"
                );
                self.overfull.fetch_add(1, Ordering::Relaxed);
                client.kill();
            }
        }
    }

    pub(crate) fn add(
        &self,
        address: String,
        local_address: String,
        source: Source,
        descriptor: i64,
    ) -> Arc<Client> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client {
            id,
            address,
            local_address,
            source,
            descriptor,
            connected: Instant::now(),
            identity: Mutex::default(),
            last_active_ms: AtomicU64::new(0),
            resp3: AtomicBool::new(false),
            queued: AtomicI64::new(-1),
            watched: AtomicUsize::new(0),
            waiting_input: AtomicUsize::new(0),
            waiting_output: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            due_ms: AtomicU64::new(u64::MAX),
            killed: AtomicBool::new(false),
            waker: Mutex::new(None),
        });
        self.all.lock().insert(id, Arc::clone(&client));
        client
    }

    pub(crate) fn remove(&self, id: u64) {
        let removed = self.all.lock().remove(&id);
        if let Some(client) = removed {
            client.holds(0, self);
        }
    }

    /// All connections, in the order they came.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<Client>> {
        self.all.lock().values().cloned().collect()
    }

    /// Returns the connection with this number.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.all.lock().get(&id).cloned()
    }

    /// The number of connections.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.lock().len()
    }

    /// Whether there are no connections.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of connections since the start.
    #[must_use]
    pub fn ever(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    pub(crate) fn wake_all(&self) {
        for client in self.list() {
            client.wake();
        }
    }
}
