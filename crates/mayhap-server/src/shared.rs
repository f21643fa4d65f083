//! What all threads of the server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mayhap_command::Environment;
use mayhap_command::overfull::Figures;
use mayhap_engine::log::Policy;
use mayhap_engine::{Engine, System};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::client::Clients;
use crate::counters::{Counters, Totals};
use crate::latency::Latency;
use crate::overfull::LastRound;
use crate::saving::{SaveError, Saving};
use crate::settings::Settings;
use crate::slow_log::SlowLog;
use crate::tls::{Tls, TlsError};
use crate::users::Users;

/// How long connections may take to end once the server was told to stop.
pub(crate) const GRACE: Duration = Duration::from_millis(1_200);

/// What all threads of the server share.
#[derive(Debug)]
pub struct Shared {
    settings: Settings,
    engine: Arc<Engine>,
    clients: Clients,
    counters: Mutex<Vec<Arc<Counters>>>,
    slow_log: SlowLog,
    latency: Latency,
    users: Users,
    tls: Option<Tls>,
    saving: Arc<Saving>,
    save_interval_secs: AtomicU64,
    idle_timeout_secs: AtomicU64,
    loading: AtomicBool,
    /// The true one, where any was asked for.
    port: AtomicU16,
    run_id: String,
    started: Instant,
    stopping: AtomicBool,
    /// Does it end even if what is not saved is lost?
    at_any_price: AtomicBool,
    stopped: Notify,
    /// What is paused, and until when, if anything is.
    pause: Mutex<Option<(Pause, Instant)>>,
    /// Is anything? To be read without the lock.
    paused: AtomicBool,
    overfull: LastRound,
}

impl Shared {
    pub(crate) fn new(
        settings: Settings,
        (users, tls): (Users, Option<Tls>),
        engine: Arc<Engine>,
        saving: Saving,
    ) -> Self {
        let (slow_log, latency) = (SlowLog::default(), Latency::default());
        slow_log.set_threshold_us(settings.slow_log_us);
        slow_log.set_max_len(settings.slow_log_entries);
        latency.set_threshold_ms(settings.latency_ms);
        engine.budget().set_limit(settings.max_memory.bytes());
        engine.set_parameters(|parameters| parameters.clone_from(&settings.parameters));
        let mut random = [0; 20];
        System.random(&mut random);
        Self {
            users,
            tls,
            saving: Arc::new(saving),
            save_interval_secs: AtomicU64::new(settings.save_interval_secs),
            loading: AtomicBool::new(true),
            port: AtomicU16::new(settings.port.unwrap_or(0)),
            clients: Clients::new(settings.max_clients),
            idle_timeout_secs: AtomicU64::new(settings.idle_timeout_secs),
            settings,
            engine,
            counters: Mutex::default(),
            slow_log,
            latency,
            run_id: random.iter().map(|byte| format!("{byte:02x}")).collect(),
            started: Instant::now(),
            stopping: AtomicBool::new(false),
            at_any_price: AtomicBool::new(false),
            pause: Mutex::default(),
            paused: AtomicBool::new(false),
            stopped: Notify::new(),
            overfull: LastRound::default(),
        }
    }

    /// What the server was told at its start.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The filters.
    #[must_use]
    pub const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Who is connected.
    #[must_use]
    pub const fn clients(&self) -> &Clients {
        &self.clients
    }

    /// What took long.
    #[must_use]
    pub const fn slow_log(&self) -> &SlowLog {
        &self.slow_log
    }

    /// What took how long.
    #[must_use]
    pub const fn latency(&self) -> &Latency {
        &self.latency
    }

    /// Filters that are past what they were made for, as the last look at all of them found.
    #[must_use]
    pub fn overfull(&self) -> Figures {
        *self.overfull.lock()
    }

    pub(crate) fn set_overfull(&self, figures: Figures) {
        *self.overfull.lock() = figures;
    }

    /// What keeps the data on disk.
    #[must_use]
    pub const fn saving(&self) -> &Arc<Saving> {
        &self.saving
    }

    /// How often a snapshot is written when something changed; zero: never.
    #[must_use]
    pub fn save_interval(&self) -> Duration {
        Duration::from_secs(self.save_interval_secs.load(Ordering::Relaxed))
    }

    /// From now on a snapshot is written so often.
    pub fn set_save_interval_secs(&self, secs: u64) {
        self.save_interval_secs.store(secs, Ordering::Relaxed);
    }

    /// When changes are safe from a power loss.
    #[must_use]
    pub fn fsync(&self) -> Policy {
        self.engine.log().map_or(self.settings.fsync, |log| log.policy())
    }

    /// From now on they are safe then.
    pub fn set_fsync(&self, policy: Policy) {
        if let Some(log) = self.engine.log() {
            log.set_policy(policy);
        }
    }

    /// How long a connection may ask for nothing before it is closed; `None`: for ever.
    #[must_use]
    pub fn idle_timeout(&self) -> Option<Duration> {
        match self.idle_timeout_secs.load(Ordering::Relaxed) {
            0 => None,
            secs => Some(Duration::from_secs(secs)),
        }
    }

    /// From now on a connection may ask for nothing for so long; 0: for ever.
    pub fn set_idle_timeout_secs(&self, secs: u64) {
        self.idle_timeout_secs.store(secs, Ordering::Relaxed);
    }

    /// How long a request may take to go on arriving; `None`: any time.
    #[must_use]
    pub fn request_timeout(&self) -> Option<Duration> {
        match self.settings.request_timeout_secs {
            0 => None,
            secs => Some(Duration::from_secs(secs)),
        }
    }

    /// Is the data still being read?
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Acquire)
    }

    pub(crate) fn loaded(&self) {
        self.loading.store(false, Ordering::Release);
    }

    /// The port for RESP: the true one, where any was asked for; 0 where there is none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    pub(crate) fn set_port(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
    }

    /// 40 digits that no other run of a server has.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// When it was started.
    #[must_use]
    pub const fn started(&self) -> Instant {
        self.started
    }

    /// Who may do what.
    #[must_use]
    pub const fn users(&self) -> &Users {
        &self.users
    }

    pub(crate) const fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Reads the certificates again: handshakes from now on use those. If anything is wrong, all stays as it is.
    ///
    /// # Errors
    /// A file cannot be read, or what is in it does not do.
    pub fn reload_certificates(&self) -> Result<(), TlsError> {
        let reloaded = self.tls.as_ref().map_or(Ok(()), Tls::reload);
        match &reloaded {
            Ok(()) => tracing::info!("certificates read"),
            Err(error) => tracing::error!(%error, "certificates not read, those before stay"),
        }
        reloaded
    }

    /// What all workers counted.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.counters.lock().iter().map(|counters| counters.totals()).fold(Totals::default(), |sum, one| {
            Totals {
                requests: sum.requests + one.requests,
                read_bytes: sum.read_bytes + one.read_bytes,
                written_bytes: sum.written_bytes + one.written_bytes,
                refused: sum.refused + one.refused,
            }
        })
    }

    /// Counters for one more worker.
    pub(crate) fn add_counters(&self) -> Arc<Counters> {
        let counters = Arc::new(Counters::default());
        self.counters.lock().push(Arc::clone(&counters));
        counters
    }

    /// For so long no request is run, or none that changes something. One that is under way is never made shorter, nor lesser.
    pub fn pause(&self, pause: Pause, duration: Duration) {
        let mut current = self.pause.lock();
        let until = Instant::now().checked_add(duration).unwrap_or_else(|| Instant::now() + FOREVER);
        *current = Some(match *current {
            Some((Pause::All, before)) if before > Instant::now() => (Pause::All, before.max(until)),
            Some((_, before)) => (pause, before.max(until)),
            None => (pause, until),
        });
        self.paused.store(true, Ordering::Release);
    }

    /// Ends a pause.
    pub fn unpause(&self) {
        let mut current = self.pause.lock();
        *current = None;
        self.paused.store(false, Ordering::Release);
    }

    /// What is paused now.
    #[must_use]
    pub fn paused(&self) -> Option<Pause> {
        if !self.paused.load(Ordering::Acquire) || self.is_stopping() {
            return None;
        }
        let mut current = self.pause.lock();
        match *current {
            Some((pause, until)) if until > Instant::now() => Some(pause),
            _ => {
                *current = None;
                self.paused.store(false, Ordering::Release);
                None
            }
        }
    }

    /// Was it told to stop?
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Begins to stop the server, and returns at once.
    pub fn stop(&self, ending: Ending) {
        self.at_any_price.fetch_or(ending == Ending::AtAnyPrice, Ordering::AcqRel);
        self.stopping.store(true, Ordering::Release);
        self.stopped.notify_waiters();
        self.clients.wake_all();
    }

    /// Does it end even if the last snapshot fails?
    pub(crate) fn ends_at_any_price(&self) -> bool {
        self.at_any_price.load(Ordering::Acquire)
    }

    /// It was told to stop and cannot without losing data: it serves again.
    pub(crate) fn resume(&self) {
        self.stopping.store(false, Ordering::Release);
    }

    /// Returns when the server was told to stop.
    pub async fn stopped(&self) {
        let stopped = self.stopped.notified();
        tokio::pin!(stopped);
        stopped.as_mut().enable();
        if !self.is_stopping() {
            stopped.await;
        }
    }
}

/// As good as for ever.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// What `CLIENT PAUSE` pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Requests that change something.
    Writes,
    /// All.
    All,
}

/// What is more important when the server stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The data: if it cannot be saved, the server serves on.
    IfSaved,
    /// The end: what cannot be saved is lost.
    AtAnyPrice,
}

/// Stops the server: nothing new is accepted, what was received is answered, then connections are closed.
#[derive(Clone, Debug)]
pub struct Stop {
    shared: Arc<Shared>,
}

impl Stop {
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    /// Begins to stop and returns at once; [`Running::wait`](crate::Running::wait) waits for the end.
    pub fn stop(&self) {
        self.shared.stop(Ending::AtAnyPrice);
    }

    /// Saves everything while it still serves, and then begins to stop. If it cannot be saved nothing changes: it serves on.
    ///
    /// # Errors
    /// What went wrong, which is in the log, too.
    pub fn stop_once_saved(&self) -> Result<(), SaveError> {
        let saved = self.shared.saving().can_end(self.shared.engine());
        match &saved {
            Ok(()) => self.shared.stop(Ending::IfSaved),
            Err(error) => {
                tracing::error!(%error, "it does not end, for what it has cannot be saved; asked once more it ends");
            }
        }
        saved
    }
}
