//! Atomic replacement: a file is written completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::FileError;

/// The permissions of a written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Keeps the permissions of a replaced file. A new file has the user's default permissions.
    AsUsual,
    /// Keeps the permissions of a replaced file. Only its owner can read a new file, because it contains a secret.
    Owner,
    /// Only the owner can read the file, whatever the permissions of a replaced file.
    OnlyOwner,
}

/// A file being written that replaces another in one step.
///
/// The bytes go to a new file in the same folder. [`finish`](Self::finish) syncs it to the disk and then renames it. After
/// a crash at any moment, the name leads to the whole old file or the whole new one. Programs that have the old file open
/// keep it. Symbolic links are followed. Dropping the value before `finish` keeps the old file and removes the new one.
///
/// Writes are not buffered: write large pieces, or use a [`BufWriter`](io::BufWriter). To write filters, use
/// [`save`](super::save) or [`replace`](super::replace).
///
/// ```
/// use std::io::Write as _;
///
/// use mayhap::file::{Readers, Replacement};
///
/// # let folder = std::env::temp_dir().join(format!("mayhap-doc-replacement-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let path = folder.join("notes");
/// let mut notes = Replacement::begin(&path, Readers::AsUsual)?;
/// notes.write_all(b"complete")?;
/// assert!(!path.exists());
/// notes.finish()?;
/// assert_eq!(std::fs::read(&path)?, b"complete");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Replacement {
    file: File,
    /// The new file.
    aside: PathBuf,
    /// The file to replace: `path` with its links followed.
    target: PathBuf,
    /// The name that errors show.
    path: PathBuf,
}

impl Replacement {
    /// Creates an empty file beside `path`, with the permissions it will have.
    ///
    /// # Errors
    /// [`FileError::Io`] if `path` exists and is not a regular file, or if its folder does not exist or the file cannot be
    /// created there.
    pub fn begin(path: impl AsRef<Path>, readers: Readers) -> Result<Self, FileError> {
        let path = path.as_ref();
        let (target, permissions) = target_of(path).map_err(FileError::io("replace", path))?;
        let (file, aside) = create_aside(&target, readers).map_err(FileError::io("write beside", path))?;
        let replacement = Self { file, aside, target, path: path.to_owned() };
        replacement.set_permissions(permissions, readers).map_err(FileError::io("write", path))?;
        Ok(replacement)
    }

    fn set_permissions(&self, permissions: Option<fs::Permissions>, readers: Readers) -> io::Result<()> {
        match (permissions, readers) {
            (Some(permissions), Readers::AsUsual | Readers::Owner) => self.file.set_permissions(permissions),
            (None, Readers::AsUsual) => Ok(()),
            // The user's umask does not matter.
            (None, Readers::Owner) | (_, Readers::OnlyOwner) => for_its_owner_only(&self.file),
        }
    }

    /// Replaces the old file with the new one.
    ///
    /// # Errors
    /// [`FileError::Io`]. The old file is then unchanged, with one exception: if the action is `sync the folder of`, the new
    /// file is in place, but may not survive a power failure.
    pub fn finish(self) -> Result<(), FileError> {
        self.file.sync_all().map_err(FileError::io("write", &self.path))?;
        fs::rename(&self.aside, &self.target).map_err(FileError::io("replace", &self.path))?;
        sync_folder_of(&self.target).map_err(FileError::io("sync the folder of", &self.path))
    }

    /// Gives the new file its name, in one step, but never replaces a file.
    ///
    /// # Errors
    /// Those of [`finish`](Self::finish), and [`io::ErrorKind::AlreadyExists`] with the action `create` if a file has the
    /// name.
    pub fn finish_new(self) -> Result<(), FileError> {
        self.file.sync_all().map_err(FileError::io("write", &self.path))?;
        // Unlike a rename, a hard link never replaces a file.
        fs::hard_link(&self.aside, &self.target).map_err(FileError::io("create", &self.path))?;
        sync_folder_of(&self.target).map_err(FileError::io("sync the folder of", &self.path))
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // Best effort, for an unfinished file. After a rename this name does not exist.
        let _ = fs::remove_file(&self.aside);
    }
}

/// Returns the file that `path` leads to, and its permissions if it exists.
fn target_of(path: &Path) -> io::Result<(PathBuf, Option<fs::Permissions>)> {
    if path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
    }
    match fs::metadata(path) {
        Ok(about) if about.is_file() => Ok((fs::canonicalize(path)?, Some(about.permissions()))),
        Ok(about) if about.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Also follow a link to a file that does not exist yet.
            let led_to = fs::read_link(path).ok();
            let folder = path.parent().unwrap_or(Path::new(""));
            Ok((led_to.map_or_else(|| path.to_owned(), |target| folder.join(target)), None))
        }
        Err(error) => Err(error),
    }
}

/// Creates an empty file in the folder of `target`, so that both are on the same file system. Its name is short, and
/// random to avoid collisions.
#[cfg_attr(not(unix), expect(unused_variables, reason = "only Unix has modes of files"))]
fn create_aside(target: &Path, readers: Readers) -> io::Result<(File, PathBuf)> {
    loop {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| io::Error::other("the system returned no random bytes"))?;
        let aside = target.with_file_name(format!(".mayhap-{:016x}.new", u64::from_le_bytes(random)));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if readers != Readers::AsUsual {
            use std::os::unix::fs::OpenOptionsExt as _;
            // The file has these permissions before the first byte is written.
            options.mode(0o600);
        }
        match options.open(&aside) {
            Ok(file) => return Ok((file, aside)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(unix)]
fn for_its_owner_only(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn for_its_owner_only(_: &File) -> io::Result<()> {
    Ok(())
}

/// Makes the creation, the renaming or the removal of the file `path` durable. The folder stores the names, so it must be
/// synced as well.
///
/// # Errors
/// The folder cannot be opened or synced.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::Folder;

    fn begin(path: &Path) -> Replacement {
        Replacement::begin(path, Readers::AsUsual).unwrap()
    }

    #[test]
    fn a_file_is_replaced_when_finished_and_not_before() {
        let folder = Folder::new("replaced");
        let path = folder.0.join("file");
        fs::write(&path, "old").unwrap();
        let mut dropped = begin(&path);
        dropped.write_all(b"half").unwrap();
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
        drop(dropped);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "no temporary file remains");
        let mut finished = begin(&path);
        finished.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        finished.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
        assert!(matches!(
            Replacement::begin(folder.0.join("no/file"), Readers::AsUsual),
            Err(FileError::Io { action: "write beside", .. })
        ));
    }

    #[test]
    fn a_new_file_never_replaces_another() {
        let folder = Folder::new("new-only");
        let path = folder.0.join("file");
        let (mut first, mut second) = (begin(&path), begin(&path));
        first.write_all(b"first").unwrap();
        second.write_all(b"second").unwrap();
        first.finish_new().unwrap();
        let error = second.finish_new().unwrap_err();
        let exists = |cause: &io::Error| cause.kind() == io::ErrorKind::AlreadyExists;
        assert!(matches!(&error, FileError::Io { action: "create", cause, .. } if exists(cause)), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "no temporary file remains");
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_kept_unless_only_the_owner_may_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::new("readers");
        let path = folder.0.join("file");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        for (before, readers, after) in [
            (None, Readers::Owner, 0o600),
            (None, Readers::OnlyOwner, 0o600),
            (Some(0o640), Readers::AsUsual, 0o640),
            (Some(0o640), Readers::Owner, 0o640),
            (Some(0o640), Readers::OnlyOwner, 0o600),
        ] {
            let _ = fs::remove_file(&path);
            if let Some(before) = before {
                fs::write(&path, "old").unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(before)).unwrap();
            }
            Replacement::begin(&path, readers).unwrap().finish().unwrap();
            assert_eq!(mode(), after, "{before:?} {readers:?}");
        }
    }
}
