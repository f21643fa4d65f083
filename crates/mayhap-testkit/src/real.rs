//! Programs that are not ours: found, run for a limited time, and fed in folders that go away again.
//!
//! Each is named by an environment variable or is on the path; `tools/real-programs` installs them and prints the variables. Where one is not
//! there, a test says so and does nothing, unless `MAYHAP_REQUIRE_REAL=1`: then that is a failure.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// No program of these tests takes longer, however slow the machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The file the variable names, or else the program of this name on the path. `None`: it is not there, that was said, and it need not be.
///
/// # Panics
/// If it is not there, and `MAYHAP_REQUIRE_REAL=1` says that it must be.
pub fn find(variable: &str, name: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from);
    let on_path = || {
        env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
    };
    let found = named.or_else(on_path).filter(|path| path.is_file());
    if found.is_none() {
        let what = format!("{name} is not there ({variable} names it; tools/real-programs installs it)");
        let required = env::var_os("MAYHAP_REQUIRE_REAL").is_some_and(|value| value == "1");
        assert!(!required, "{what}");
        // Past the test harness, which shows nothing of tests that pass.
        let _ = writeln!(io::stderr(), "not run: {what}");
    }
    found
}

/// A folder of its own, removed with everything in it when it is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new one, with `name` in its name. Its path is short enough for the name of a socket, which is some hundred bytes.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("mayhap-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where something of this name in it is.
    pub fn join(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.0.join(name.as_ref())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A program that runs until this is dropped.
#[derive(Debug)]
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the program with these bytes as its input and hands back what it printed. One that fails, or takes longer than [`PATIENCE`], is a panic
/// with what it had to say.
///
/// # Panics
/// As said.
pub fn run(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let said = format!("{command:?}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|cause| panic!("{said}: {cause}"));
    let mut running = Running(child);
    let (stdin, stdout, stderr) =
        (running.0.stdin.take().unwrap(), running.0.stdout.take().unwrap(), running.0.stderr.take().unwrap());
    thread::scope(|scope| {
        // A program that does not read to the end breaks the pipe; whether it may is for its answer to say.
        scope.spawn(move || {
            let mut stdin = stdin;
            let _ = stdin.write_all(input);
        });
        let printed = scope.spawn(move || all_of(stdout));
        let complained = scope.spawn(move || all_of(stderr));
        let status = wait(&mut running.0, &said);
        let (printed, complained) = (printed.join().unwrap(), complained.join().unwrap());
        assert!(status, "{said}\n{}", String::from_utf8_lossy(&complained));
        printed
    })
}

fn all_of(mut stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

/// Did it end well?
fn wait(child: &mut Child, said: &str) -> bool {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if start.elapsed() > PATIENCE {
            // Ends its pipes too, and with them the threads that read them.
            let _ = child.kill();
            panic!("{said} took longer than {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}
