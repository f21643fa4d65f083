//! Real Redis and Valkey servers: started on loopback for a test, with our module or without, alone or as a cluster, and stopped with the test.

mod cluster;
mod scripted;
mod talk;
mod wire;

pub use cluster::Cluster;
pub use scripted::{Act, Scripted};
pub use talk::{Talk, request};
pub use wire::Wire;

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::real::{Folder, PATIENCE, Running, find};

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct HostOptions {
    program: Option<PathBuf>,
    module: Option<PathBuf>,
    module_words: Vec<String>,
    words: Vec<String>,
}

impl HostOptions {
    /// A server that saves nothing and loads no module.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this program instead of the one that `MAYHAP_TEST_REDIS_SERVER` names.
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// Loads this module.
    #[must_use]
    pub fn module(mut self, path: impl Into<PathBuf>) -> Self {
        self.module = Some(path.into());
        self
    }

    /// Loads our module with these arguments.
    #[must_use]
    pub fn our_module(mut self, words: &[&str]) -> Self {
        self.module = Some(module_path());
        self.module_words = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Adds these configuration words, such as `--appendonly yes`.
    #[must_use]
    pub fn words(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }
}

/// The path of our module. Cargo builds it next to the tests of every crate that has `mayhap-module` among its (development) dependencies.
///
/// # Panics
/// If it is missing, because the crate lacks that dependency.
pub fn module_path() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let name = format!("{}mayhap_module{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path = test.parent().unwrap().join(name);
    assert!(path.is_file(), "{} is missing: is mayhap-module a dependency of this test?", path.display());
    path
}

/// The programs for tests of the module: the Redis that `MAYHAP_TEST_REDIS_SERVER` names, and those of `MAYHAP_TEST_HOSTS`, separated by colons.
pub fn programs() -> Vec<PathBuf> {
    let others = std::env::var_os("MAYHAP_TEST_HOSTS").unwrap_or_default();
    let others = std::env::split_paths(&others).filter(|path| path.is_file()).collect::<Vec<_>>();
    find("MAYHAP_TEST_REDIS_SERVER", "redis-server").into_iter().chain(others).collect()
}

/// A server that is stopped when this is dropped.
#[derive(Debug)]
pub struct Host {
    program: PathBuf,
    options: HostOptions,
    port: u16,
    process: Option<Running>,
    folder: Folder,
}

impl Host {
    /// Starts a server. Returns `None`, after a message, if the program is missing.
    ///
    /// # Panics
    /// If it does not start; with its log.
    pub fn start(options: &HostOptions) -> Option<Self> {
        let program = match &options.program {
            Some(program) => program.clone(),
            None => find("MAYHAP_TEST_REDIS_SERVER", "redis-server")?,
        };
        let (options, folder) = (options.clone(), Folder::new("host"));
        let mut host = Self { program, options, port: 0, process: None, folder };
        // Another process may have taken the port that was free a moment ago.
        for _ in 0..8 {
            host.port = free_port();
            if host.run() {
                return Some(host);
            }
        }
        panic!("{} does not start:\n{}", host.program.display(), host.log());
    }

    /// Runs the program, and waits until it answers. Returns `false` if it exited.
    fn run(&mut self) -> bool {
        let mut command = Command::new(&self.program);
        command
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--protected-mode", "no"])
            .args(["--daemonize", "no", "--save", "", "--enable-debug-command", "yes"])
            .args(["--logfile", "log", "--dir"])
            .arg(self.folder.path())
            .args(&self.options.words);
        if let Some(module) = &self.options.module {
            command.arg("--loadmodule").arg(module).args(&self.options.module_words);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|cause| panic!("{}: {cause}", self.program.display()));
        let process = self.process.insert(Running(child));
        let begun = Instant::now();
        loop {
            if process.0.try_wait().unwrap().is_some() {
                self.process = None;
                return false;
            }
            if let Ok(mut talk) = Talk::connect(self.port)
                && talk.try_ask(&["PING"]).is_ok_and(|reply| reply == Wire::Simple("PONG".into()))
            {
                return true;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{} does not answer:\n{}",
                self.program.display(),
                self.log()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The port on loopback.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The address for clients.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The process id.
    ///
    /// # Panics
    /// If it is not running.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("it is running").0.id()
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Connects to the server.
    ///
    /// # Panics
    /// If it does not accept connections.
    #[track_caller]
    pub fn talk(&self) -> Talk {
        Talk::connect(self.port).unwrap_or_else(|cause| panic!("{cause}\n{}", self.log()))
    }

    /// Returns whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.0.try_wait().is_ok_and(|ended| ended.is_none()))
    }

    /// The contents of its log.
    pub fn log(&self) -> String {
        fs::read(self.folder.join("log")).map_or_else(
            |cause| format!("no log: {cause}"),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    /// Kills it immediately, like a crash.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Suspends it until [`resume`](Self::resume): connections are accepted, but get no replies.
    ///
    /// # Panics
    /// If that fails.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Resumes it.
    ///
    /// # Panics
    /// If that fails.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.pid().to_string()]).status();
        assert!(sent.is_ok_and(|sent| sent.success()), "kill {signal}");
    }

    /// Makes it a replica of `master`, and waits until it has caught up.
    ///
    /// # Panics
    /// If it does not catch up; with its log.
    #[track_caller]
    pub fn follow(&self, master: &Self) {
        let mut talk = self.talk();
        talk.must(&["REPLICAOF", "127.0.0.1", &master.port.to_string()]);
        let begun = Instant::now();
        while talk.info("master_link_status") != "up" {
            assert!(begun.elapsed() < PATIENCE, "no link:\n{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts it again, with the same files, on the same port.
    ///
    /// # Panics
    /// If it does not start; with its log.
    pub fn restart(&mut self) {
        self.kill();
        let begun = Instant::now();
        while !self.run() {
            assert!(begun.elapsed() < Duration::from_secs(10), "it did not start again:\n{}", self.log());
        }
    }

    /// Starts it again with other arguments. Returns `false` if it does not start.
    pub fn restart_with(&mut self, options: &HostOptions) -> bool {
        self.kill();
        self.options = options.clone();
        self.run()
    }
}

/// Prints the end of the server's log if the test failed.
impl Drop for Host {
    fn drop(&mut self) {
        const SHOWN: usize = 10_000;
        if thread::panicking() {
            let log = self.log();
            let from = (log.len().saturating_sub(SHOWN)..log.len()).find(|&at| log.is_char_boundary(at));
            eprintln!(
                "{} on {}, end of the log:\n{}",
                self.program.display(),
                self.port,
                &log[from.unwrap_or(0)..]
            );
        }
    }
}

/// Returns a free port such that the port ten thousand above it, which a cluster uses, is free too.
fn free_port() -> u16 {
    const FIRST: u16 = 21_000;
    const PORTS: u16 = 10_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    loop {
        // Tests that run at the same time start at different ports.
        let begin = (std::process::id() % 977) as u16 * 10;
        let port = FIRST + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS;
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
}
