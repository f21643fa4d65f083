//! Real servers of Redis and Valkey: started on loopback for a test, with our module or without, alone or as a cluster, and ended with it.

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
    /// A server that keeps nothing and knows no module.
    pub fn new() -> Self {
        Self::default()
    }

    /// This program, rather than the one that `MAYHAP_TEST_REDIS_SERVER` names.
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// With this module.
    #[must_use]
    pub fn module(mut self, path: impl Into<PathBuf>) -> Self {
        self.module = Some(path.into());
        self
    }

    /// With our module, and these words behind its path.
    #[must_use]
    pub fn our_module(mut self, words: &[&str]) -> Self {
        self.module = Some(module_path());
        self.module_words = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// With these words of configuration as well, such as `--appendonly yes`.
    #[must_use]
    pub fn words(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }
}

/// Our module, which cargo makes beside the tests of every crate that has `mayhap-module` among its (development) dependencies.
///
/// # Panics
/// If it is not there: then the crate has not.
pub fn module_path() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let name = format!("{}mayhap_module{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path = test.parent().unwrap().join(name);
    assert!(path.is_file(), "{} is not there: is mayhap-module a dependency of this test?", path.display());
    path
}

/// The programs with which what is about the module is tested: the Redis that `MAYHAP_TEST_REDIS_SERVER` names, and those of
/// `MAYHAP_TEST_HOSTS`, with colons between them.
pub fn programs() -> Vec<PathBuf> {
    let others = std::env::var_os("MAYHAP_TEST_HOSTS").unwrap_or_default();
    let others = std::env::split_paths(&others).filter(|path| path.is_file()).collect::<Vec<_>>();
    find("MAYHAP_TEST_REDIS_SERVER", "redis-server").into_iter().chain(others).collect()
}

/// A server that ends with this.
#[derive(Debug)]
pub struct Host {
    program: PathBuf,
    options: HostOptions,
    port: u16,
    process: Option<Running>,
    folder: Folder,
}

impl Host {
    /// Starts one. `None`: no such program here, and that was said.
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
        // A port that was free a moment ago may be somebody else's by now.
        for _ in 0..8 {
            host.port = free_port();
            if host.run() {
                return Some(host);
            }
        }
        panic!("{} does not start:\n{}", host.program.display(), host.log());
    }

    /// Runs the program, and waits until it answers. `false`: it ended.
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

    /// Where it listens, on loopback.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its address as clients have it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its number as a process.
    ///
    /// # Panics
    /// If it does not run.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("it runs").0.id()
    }

    /// Where it keeps its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A connection to it.
    ///
    /// # Panics
    /// If it takes none.
    #[track_caller]
    pub fn talk(&self) -> Talk {
        Talk::connect(self.port).unwrap_or_else(|cause| panic!("{cause}\n{}", self.log()))
    }

    /// Is the process still there?
    pub fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.0.try_wait().is_ok_and(|ended| ended.is_none()))
    }

    /// Everything it said.
    pub fn log(&self) -> String {
        fs::read(self.folder.join("log")).map_or_else(
            |cause| format!("no log: {cause}"),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Has it stand still, until it is [`resume`](Self::resume)d: it takes connections and answers nobody.
    ///
    /// # Panics
    /// If that cannot be done.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Has it go on.
    ///
    /// # Panics
    /// If that cannot be done.
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
    /// If that does not come to pass; with its log.
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

    /// Runs it again, with the same files, on the same port.
    ///
    /// # Panics
    /// If it does not start; with its log.
    pub fn restart(&mut self) {
        self.kill();
        let begun = Instant::now();
        while !self.run() {
            assert!(begun.elapsed() < Duration::from_secs(10), "it does not start again:\n{}", self.log());
        }
    }

    /// Runs it again with other words; `false`: it does not start.
    pub fn restart_with(&mut self, options: &HostOptions) -> bool {
        self.kill();
        self.options = options.clone();
        self.run()
    }
}

/// A test that failed shows what the server said last.
impl Drop for Host {
    fn drop(&mut self) {
        const SHOWN: usize = 10_000;
        if thread::panicking() {
            let log = self.log();
            let from = (log.len().saturating_sub(SHOWN)..log.len()).find(|&at| log.is_char_boundary(at));
            eprintln!(
                "{} on {} said last:\n{}",
                self.program.display(),
                self.port,
                &log[from.unwrap_or(0)..]
            );
        }
    }
}

/// A port that nobody has, and nor has anybody the one that is ten thousand above it, which is a cluster's.
fn free_port() -> u16 {
    const FIRST: u16 = 21_000;
    const PORTS: u16 = 10_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    loop {
        // Tests that run at the same time begin at different places.
        let begin = (std::process::id() % 977) as u16 * 10;
        let port = FIRST + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS;
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
}
