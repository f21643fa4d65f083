//! The data folder: only one server uses it at a time, and no other user can read it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use mayhap_server::saving::LOCK_FILE;
use mayhap_server::{Running, Server, Settings, StartError};
use tempfile::TempDir;

fn start(folder: &Path) -> Result<Running, StartError> {
    Server::start(Settings { port: Some(0), workers: 1, dir: Some(folder.to_owned()), ..Settings::default() })
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_deleted_lock_file_lets_no_second_server_in() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let server = start(&data).unwrap();
    fs::remove_file(data.join(LOCK_FILE)).unwrap();
    let refused = start(&data).unwrap_err().to_string();
    assert!(refused.contains("the data folder is in use by another server"), "{refused}");
    drop(server);
    drop(start(&data).unwrap());
}

#[test]
fn a_symbolic_link_as_lock_file_overwrites_nothing() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let precious = folder.path().join("precious");
    fs::write(&precious, "mine").unwrap();
    fs::create_dir(&data).unwrap();
    symlink(&precious, data.join(LOCK_FILE)).unwrap();
    let refused = start(&data).unwrap_err().to_string();
    assert!(refused.ends_with("mayhap.lock is a symbolic link: remove it"), "{refused}");
    assert_eq!(fs::read_to_string(precious).unwrap(), "mine");
}

#[test]
fn no_other_user_can_read_the_data_and_wider_modes_are_repaired() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let server = start(&data).unwrap();
    server.shared().saving().save(server.shared().engine()).unwrap();
    let closed = |when: &str| {
        assert_eq!(mode(&data), 0o700, "{when}");
        assert!(files(&data).len() >= 3, "{when}");
        files(&data).iter().for_each(|file| assert_eq!(mode(file), 0o600, "{when}: {}", file.display()));
    };
    closed("a new folder");
    drop(server);
    // As earlier versions created them.
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    files(&data)
        .iter()
        .for_each(|file| fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap());
    drop(start(&data).unwrap());
    closed("an older folder");
    // A folder with other files keeps its mode, and so do those files.
    let other = data.join("notes.txt");
    fs::write(&other, "").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    drop(start(&data).unwrap());
    assert_eq!((mode(&data), mode(&other)), (0o755, 0o644));
}

#[test]
fn a_log_that_is_a_pipe_is_refused_without_waiting() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    drop(start(&data).unwrap());
    let log =
        files(&data).into_iter().find(|file| file.file_name().unwrap().to_string_lossy().starts_with("log-"));
    let log = log.unwrap();
    fs::remove_file(&log).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&log).status().unwrap().success());
    let refused = start(&data).unwrap_err();
    let cause = std::error::Error::source(&refused).map(ToString::to_string).unwrap_or_default();
    assert!(format!("{refused} {cause}").contains("is not a regular file"), "{refused}: {cause}");
}
