//! What all threads of the server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mayhap_command::Environment;
use mayhap_engine::{Engine, System};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::client::Clients;
use crate::counters::{Counters, Totals};
use crate::latency::Latency;
use crate::saving::Saving;
use crate::settings::Settings;
use crate::slow_log::SlowLog;

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
    password: RwLock<Option<String>>,
    saving: Arc<Saving>,
    save_interval_secs: AtomicU64,
    loading: AtomicBool,
    /// The true one, where any was asked for.
    port: AtomicU16,
    run_id: String,
    started: Instant,
    stopping: AtomicBool,
    stopped: Notify,
}

impl Shared {
    pub(crate) fn new(settings: Settings, engine: Arc<Engine>, saving: Saving) -> Self {
        let (slow_log, latency) = (SlowLog::default(), Latency::default());
        slow_log.set_threshold_us(settings.slow_log_us);
        slow_log.set_max_len(settings.slow_log_entries);
        latency.set_threshold_ms(settings.latency_ms);
        engine.budget().set_limit(settings.max_memory_bytes);
        engine.set_parameters(|parameters| parameters.clone_from(&settings.parameters));
        let mut random = [0; 20];
        System.random(&mut random);
        Self {
            password: RwLock::new(settings.password.clone()),
            saving: Arc::new(saving),
            save_interval_secs: AtomicU64::new(settings.save_interval_secs),
            loading: AtomicBool::new(true),
            port: AtomicU16::new(settings.port.unwrap_or(0)),
            settings,
            engine,
            clients: Clients::default(),
            counters: Mutex::default(),
            slow_log,
            latency,
            run_id: random.iter().map(|byte| format!("{byte:02x}")).collect(),
            started: Instant::now(),
            stopping: AtomicBool::new(false),
            stopped: Notify::new(),
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

    /// The password, if one is needed.
    #[must_use]
    pub fn password(&self) -> Option<String> {
        self.password.read().clone()
    }

    /// From now on this password is needed, or none. Who is known already stays so.
    pub fn set_password(&self, password: Option<String>) {
        *self.password.write() = password;
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

    /// Was it told to stop?
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Begins to stop the server, and returns at once.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.stopped.notify_waiters();
        self.clients.wake_all();
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
        self.shared.stop();
    }
}
