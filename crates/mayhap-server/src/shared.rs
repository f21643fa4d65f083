//! The state that all threads of the server share.

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

/// The time that connections have to end after the server was told to stop.
pub(crate) const GRACE: Duration = Duration::from_millis(1_200);

/// The state that all threads of the server share.
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
    /// The actual port, also if port 0 was set.
    port: AtomicU16,
    run_id: String,
    started: Instant,
    stopping: AtomicBool,
    /// Whether the server ends even if unsaved changes are lost.
    forced: AtomicBool,
    stopped: Notify,
    /// The current pause and its end, if any.
    pause: Mutex<Option<(ClientPause, Instant)>>,
    /// Whether there is a pause. Can be read without the lock.
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
            forced: AtomicBool::new(false),
            pause: Mutex::default(),
            paused: AtomicBool::new(false),
            stopped: Notify::new(),
            overfull: LastRound::default(),
        }
    }

    /// The settings of the start.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The engine, which holds the filters.
    #[must_use]
    pub const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The connected clients.
    #[must_use]
    pub const fn clients(&self) -> &Clients {
        &self.clients
    }

    /// The slow log.
    #[must_use]
    pub const fn slow_log(&self) -> &SlowLog {
        &self.slow_log
    }

    /// The latency events.
    #[must_use]
    pub const fn latency(&self) -> &Latency {
        &self.latency
    }

    /// Figures of overfull filters, from the last round over all filters.
    #[must_use]
    pub fn overfull(&self) -> Figures {
        *self.overfull.lock()
    }

    pub(crate) fn set_overfull(&self, figures: Figures) {
        *self.overfull.lock() = figures;
    }

    /// The data folder and its snapshots.
    #[must_use]
    pub const fn saving(&self) -> &Arc<Saving> {
        &self.saving
    }

    /// The time between snapshots, if there were changes; zero: never.
    #[must_use]
    pub fn save_interval(&self) -> Duration {
        Duration::from_secs(self.save_interval_secs.load(Ordering::Relaxed))
    }

    /// Sets the time between snapshots.
    pub fn set_save_interval_secs(&self, secs: u64) {
        self.save_interval_secs.store(secs, Ordering::Relaxed);
    }

    /// The fsync policy.
    #[must_use]
    pub fn fsync(&self) -> Policy {
        self.engine.log().map_or(self.settings.fsync, |log| log.policy())
    }

    /// Sets the fsync policy.
    pub fn set_fsync(&self, policy: Policy) {
        if let Some(log) = self.engine.log() {
            log.set_policy(policy);
        }
    }

    /// The time without requests after which a connection is closed; `None`: never.
    #[must_use]
    pub fn idle_timeout(&self) -> Option<Duration> {
        match self.idle_timeout_secs.load(Ordering::Relaxed) {
            0 => None,
            secs => Some(Duration::from_secs(secs)),
        }
    }

    /// Sets the time without requests after which a connection is closed; 0: never.
    pub fn set_idle_timeout_secs(&self, secs: u64) {
        self.idle_timeout_secs.store(secs, Ordering::Relaxed);
    }

    /// The time without progress after which a connection with a partial request is closed; `None`: never.
    #[must_use]
    pub fn request_timeout(&self) -> Option<Duration> {
        match self.settings.request_timeout_secs {
            0 => None,
            secs => Some(Duration::from_secs(secs)),
        }
    }

    /// Whether the data is still being loaded.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Acquire)
    }

    pub(crate) fn loaded(&self) {
        self.loading.store(false, Ordering::Release);
    }

    /// The port for RESP, also if port 0 was set; 0 if there is none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    pub(crate) fn set_port(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
    }

    /// A random id of this run, 40 digits.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// When the server started.
    #[must_use]
    pub const fn started(&self) -> Instant {
        self.started
    }

    /// The users and their rights.
    #[must_use]
    pub const fn users(&self) -> &Users {
        &self.users
    }

    pub(crate) const fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Reads the certificates again; later handshakes use them. If one is invalid, nothing changes.
    ///
    /// # Errors
    /// A file cannot be read, or its content is invalid.
    pub fn reload_certificates(&self) -> Result<(), TlsError> {
        let reloaded = self.tls.as_ref().map_or(Ok(()), Tls::reload);
        match &reloaded {
            Ok(()) => tracing::info!("certificates read"),
            Err(error) => tracing::error!(%error, "certificates not reloaded; the previous ones stay in use"),
        }
        reloaded
    }

    /// The sums of the counters of all workers.
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

    /// Adds counters for one more worker.
    pub(crate) fn add_counters(&self) -> Arc<Counters> {
        let counters = Arc::new(Counters::default());
        self.counters.lock().push(Arc::clone(&counters));
        counters
    }

    /// Pauses all requests, or those that change data, for `duration`. An existing pause is never shortened
    /// or weakened.
    pub fn pause(&self, pause: ClientPause, duration: Duration) {
        let mut current = self.pause.lock();
        let until = Instant::now().checked_add(duration).unwrap_or_else(|| Instant::now() + FOREVER);
        *current = Some(match *current {
            Some((ClientPause::All, before)) if before > Instant::now() => {
                (ClientPause::All, before.max(until))
            }
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

    /// The current pause, if any.
    #[must_use]
    pub fn paused(&self) -> Option<ClientPause> {
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

    /// Whether the server was told to stop.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Begins to stop the server and returns without waiting.
    pub fn stop(&self, ending: Ending) {
        self.forced.fetch_or(ending == Ending::Forced, Ordering::AcqRel);
        self.stopping.store(true, Ordering::Release);
        self.stopped.notify_waiters();
        self.clients.wake_all();
    }

    /// Whether the server ends even if unsaved changes are lost.
    pub(crate) fn is_forced(&self) -> bool {
        self.forced.load(Ordering::Acquire)
    }

    /// Resumes serving after a shutdown was aborted because data would have been lost.
    pub(crate) fn resume(&self) {
        self.stopping.store(false, Ordering::Release);
    }

    /// Waits until the server was told to stop.
    pub async fn stopped(&self) {
        let stopped = self.stopped.notified();
        tokio::pin!(stopped);
        stopped.as_mut().enable();
        if !self.is_stopping() {
            stopped.await;
        }
    }
}

/// Long enough to mean for ever.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The requests that `CLIENT PAUSE` pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientPause {
    /// Requests that change data.
    Writes,
    /// All requests.
    All,
}

/// What a stopping server does if data cannot be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It aborts the shutdown and keeps serving.
    IfSaved,
    /// It ends, and unsaved changes are lost.
    Forced,
}

/// Stops the server: it accepts no new connections, answers the requests it has received, then closes the
/// connections.
#[derive(Clone, Debug)]
pub struct Stop {
    shared: Arc<Shared>,
}

impl Stop {
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    /// Begins to stop the server and returns without waiting. [`Running::wait`](crate::Running::wait) waits
    /// for the end.
    pub fn stop(&self) {
        self.shared.stop(Ending::Forced);
    }

    /// Saves everything while the server still serves, then begins to stop it. If saving fails, the server
    /// keeps running.
    ///
    /// # Errors
    /// Saving failed. The error is also logged.
    pub fn stop_once_saved(&self) -> Result<(), SaveError> {
        let saved = self.shared.saving().can_end(self.shared.engine());
        match &saved {
            Ok(()) => self.shared.stop(Ending::IfSaved),
            Err(error) => {
                tracing::error!(
                    %error,
                    "shutdown aborted: unsaved changes could not be written; the server keeps running. \
                     Send the signal again to exit and lose them"
                );
            }
        }
        saved
    }
}
