//! Real programs of others: found, run with a timeout, and given temporary folders.
//!
//! Each is named by an environment variable or found on the path; `tools/real-programs` installs them and prints the variables. If a program is missing, a
//! test reports that and does nothing, unless `MAYHAP_REQUIRE_REAL=1`: then it fails.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The timeout for every program of these tests, even on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the file that the variable names, or else the program of this name on the path. Returns `None`, after a message, if the program is missing and
/// not required.
///
/// # Panics
/// If it is missing and `MAYHAP_REQUIRE_REAL=1` requires it.
pub fn find(variable: &str, name: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from);
    let on_path = || {
        env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
    };
    let found = named.or_else(on_path).filter(|path| path.is_file());
    if found.is_none() {
        let what = format!("{name} not found ({variable} names it; tools/real-programs installs it)");
        let required = env::var_os("MAYHAP_REQUIRE_REAL").is_some_and(|value| value == "1");
        assert!(!required, "{what}");
        // Bypasses the test harness, which hides the output of tests that pass.
        let _ = writeln!(io::stderr(), "not run: {what}");
    }
    found
}

/// A temporary folder, removed with its contents when it is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a folder with `name` in its name. Its path is short enough for a socket, which is limited to about a hundred bytes.
    ///
    /// # Panics
    /// If it cannot be created.
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("mayhap-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of an entry of this name in the folder.
    pub fn join(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.0.join(name.as_ref())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A program that is killed when this is dropped.
#[derive(Debug)]
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the program with these bytes as its input and returns its output. Panics with the program's error output if it fails or takes longer than
/// [`PATIENCE`].
///
/// # Panics
/// See above.
pub fn run(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let said = format!("{command:?}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|cause| panic!("{said}: {cause}"));
    let mut running = Running(child);
    let (stdin, stdout, stderr) =
        (running.0.stdin.take().unwrap(), running.0.stdout.take().unwrap(), running.0.stderr.take().unwrap());
    thread::scope(|scope| {
        // A program that does not read all its input breaks the pipe; its exit status tells whether that is a failure.
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

/// Waits for the program, and returns whether it succeeded.
fn wait(child: &mut Child, said: &str) -> bool {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if start.elapsed() > PATIENCE {
            // Closes its pipes too, which ends the threads that read them.
            let _ = child.kill();
            panic!("{said} took longer than {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}
