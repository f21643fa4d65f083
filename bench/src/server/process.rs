//! A server, ours or Debian's Redis, started for the measurement and stopped after it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server on a loopback port, with its own folder.
pub(super) struct Process {
    child: Child,
    address: SocketAddr,
    folder: PathBuf,
}

/// The time a server may take until it accepts connections.
const PATIENCE: Duration = Duration::from_secs(20);

impl Process {
    /// Starts `mayhap serve` with this number of threads and this `fsync` policy.
    pub(super) fn mayhap(program: &Path, workers: usize, fsync: &str) -> io::Result<Self> {
        Self::start(program, |port, folder| {
            let (port, workers) = (port.to_string(), workers.to_string());
            let mut words: Vec<String> = [
                "serve",
                "--no-http",
                "--log-level",
                "error",
                "--port",
                &port,
                "--workers",
                &workers,
                "--fsync",
                fsync,
                "--dir",
            ]
            .map(str::to_owned)
            .to_vec();
            words.push(folder.display().to_string());
            words
        })
    }

    /// Starts a plain `redis-server` that saves nothing.
    pub(super) fn redis(program: &Path) -> io::Result<Self> {
        Self::redis_with(program, &[])
    }

    /// Starts a `redis-server` with a module loaded.
    pub(super) fn host(program: &Path, module: &Path) -> io::Result<Self> {
        // A server looks up a path without a folder among the system's libraries.
        Self::redis_with(program, &["--loadmodule".into(), fs::canonicalize(module)?.display().to_string()])
    }

    fn redis_with(program: &Path, more: &[String]) -> io::Result<Self> {
        Self::start(program, |port, folder| {
            let (port, folder) = (port.to_string(), folder.display().to_string());
            let words = [
                "--port",
                &port,
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
                "--dir",
                &folder,
            ];
            words.map(str::to_owned).into_iter().chain(more.iter().cloned()).collect()
        })
    }

    fn start(program: &Path, words: impl Fn(u16, &Path) -> Vec<String>) -> io::Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let folder = std::env::temp_dir().join(format!("mayhap-bench-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let child = Command::new(program)
            .args(words(port, &folder))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut process = Self { child, address: (Ipv4Addr::LOCALHOST, port).into(), folder };
        let begun = Instant::now();
        while process.connect().is_err() {
            if let Some(status) = process.child.try_wait()? {
                return Err(io::Error::other(format!("{} ended with {status}", program.display())));
            }
            if begun.elapsed() > PATIENCE {
                let text = format!("{} did not accept connections", program.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(process)
    }

    pub(super) fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// The folder of the server's data.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The CPU time of all its threads in nanoseconds, user and system.
    pub(super) fn cpu_ns(&self) -> io::Result<u64> {
        let mut spent = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread may end between the two calls.
            let Ok(said) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
            spent += said.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or_default();
        }
        Ok(spent)
    }

    /// The bytes of memory in use.
    pub(super) fn resident_bytes(&self) -> io::Result<u64> {
        let said = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = said.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
        Ok(kib * 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Killed without saving: it is our own process, and its data is not needed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
