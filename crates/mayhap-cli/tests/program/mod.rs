//! Runs the program as users do: in a separate directory, without a terminal.

// Every test binary compiles this module separately and uses a part of it.
#![allow(dead_code)]

pub(crate) mod server;
pub(crate) mod talk;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A new empty directory for one test of a suite.
pub(crate) fn empty_folder(suite: &str, test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(suite).join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The program in this directory, independent of the environment of the tests.
pub(crate) fn mayhap_in(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayhap"));
    command.current_dir(folder).env_remove("CLICOLOR_FORCE").env_remove("COLUMNS").stdin(Stdio::null());
    command
}

/// Exit code, standard output, standard error.
pub(crate) fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Runs the program. Returns exit code, standard output and standard error.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    said(&mayhap_in(folder).args(arguments).output().expect("the program starts"))
}

/// The one-line error of a command that must fail.
pub(crate) fn error_line(folder: &Path, arguments: &[&str]) -> String {
    let (code, out, error) = run(folder, arguments);
    assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {error}");
    assert!(error.starts_with("mayhap: ") && error.lines().count() == 1, "{arguments:?}: {error}");
    error
}

/// The names of all files in a directory, including hidden ones.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}
