//! Who is connected: what one connection lets the others know.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Instant;

use parking_lot::Mutex;

use crate::resp::Protocol;

/// One connection, as others see it.
#[derive(Debug)]
pub struct Client {
    /// Its number, never used twice.
    pub id: u64,
    /// Where it comes from, as `CLIENT LIST` writes it.
    pub address: String,
    /// Where it came to.
    pub local_address: String,
    descriptor: i64,
    connected: Instant,
    identity: Mutex<Identity>,
    /// Milliseconds after `connected`.
    last_active_ms: AtomicU64,
    resp3: AtomicBool,
    /// Requests in its transaction; -1: there is none.
    queued: AtomicI64,
    watched: AtomicUsize,
    waiting_input: AtomicUsize,
    waiting_output: AtomicUsize,
    killed: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// What a client says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `CLIENT SETNAME`.
    pub name: Vec<u8>,
    /// `CLIENT SETINFO LIB-NAME`.
    pub library: Vec<u8>,
    /// `CLIENT SETINFO LIB-VER`.
    pub library_version: Vec<u8>,
    /// The command it sent last that is not about filters, or one of a batch that is.
    pub command: &'static str,
}

impl Client {
    /// Closes it, from any thread.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::Release);
        self.wake();
    }

    /// What it said about itself.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity.lock().clone()
    }

    pub(crate) fn identify(&self, change: impl FnOnce(&mut Identity)) {
        change(&mut self.identity.lock());
    }

    /// What `CLIENT LIST` says of it: one line, without its end.
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
        // Writing to memory does not fail.
        let _ = write!(
            rest,
            " age={} idle={} flags={} db=0 sub=0 psub=0 ssub=0 multi={queued} watch={} qbuf={input} qbuf-free=0 argv-mem=0 \
             multi-mem=0 rbs=0 rbp=0 obl={output} oll=0 omem={output} tot-mem={} events=r cmd={} user=default redir=-1 \
             resp={resp} lib-name=",
            age.as_secs(),
            idle / 1_000,
            if queued >= 0 { "x" } else { "N" },
            self.watched.load(Ordering::Relaxed),
            input + output,
            identity.command,
        );
        line.extend_from_slice(rest.as_bytes());
        line.extend_from_slice(&identity.library);
        line.extend_from_slice(b" lib-ver=");
        line.extend_from_slice(&identity.library_version);
        line
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// Something of it was run at `now`; so much waits to be run, and so much to be read by it.
    pub(crate) fn active(&self, now: Instant, input: usize, output: usize) {
        let since = now.saturating_duration_since(self.connected);
        self.last_active_ms.store(u64::try_from(since.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.waiting_input.store(input, Ordering::Relaxed);
        self.waiting_output.store(output, Ordering::Relaxed);
    }

    pub(crate) fn speaks(&self, protocol: Protocol) {
        self.resp3.store(protocol == Protocol::Resp3, Ordering::Relaxed);
    }

    pub(crate) fn in_transaction(&self, queued: Option<usize>, watched: usize) {
        let queued = queued.map_or(-1, |queued| i64::try_from(queued).unwrap_or(i64::MAX));
        self.queued.store(queued, Ordering::Relaxed);
        self.watched.store(watched, Ordering::Relaxed);
    }

    /// The task's waker is the same for all its life: once is enough.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        *self.waker.lock() = Some(waker.clone());
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.lock() {
            waker.wake_by_ref();
        }
    }
}

/// All connections.
#[derive(Debug, Default)]
pub struct Clients {
    last: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    pub(crate) fn add(&self, address: String, local_address: String, descriptor: i64) -> Arc<Client> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client {
            id,
            address,
            local_address,
            descriptor,
            connected: Instant::now(),
            identity: Mutex::default(),
            last_active_ms: AtomicU64::new(0),
            resp3: AtomicBool::new(false),
            queued: AtomicI64::new(-1),
            watched: AtomicUsize::new(0),
            waiting_input: AtomicUsize::new(0),
            waiting_output: AtomicUsize::new(0),
            killed: AtomicBool::new(false),
            waker: Mutex::new(None),
        });
        self.all.lock().insert(id, Arc::clone(&client));
        client
    }

    pub(crate) fn remove(&self, id: u64) {
        self.all.lock().remove(&id);
    }

    /// All of them, in the order they came.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<Client>> {
        self.all.lock().values().cloned().collect()
    }

    /// The one with this number.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.all.lock().get(&id).cloned()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.lock().len()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many there ever were.
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
