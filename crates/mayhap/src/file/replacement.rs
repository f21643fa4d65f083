//! Files that are written completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::FileError;

/// Who may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// The permissions of the file that is replaced; for a new file, the default permissions of this user.
    AsUsual,
    /// The permissions of the file that is replaced; a new file can be read only by its owner, because it contains a
    /// secret.
    Owner,
    /// Only the owner, whatever the permissions of the file that is replaced.
    OnlyOwner,
}

/// A file being written that takes the place of another in one step.
///
/// The bytes go to a new file in the same folder. [`finish`](Self::finish) syncs it to the disk and then renames it. After
/// a crash at any moment the name leads to the whole old file or the whole new one. Programs that have the old file open
/// keep it. Symbolic links are followed. If the value is dropped before, the old file stays and the new one is removed.
///
/// Nothing is buffered here; write large pieces or use a [`BufWriter`](io::BufWriter). To write filters, use
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
    /// The file to replace: `path` after its links were followed.
    target: PathBuf,
    /// The name that errors show.
    path: PathBuf,
}

impl Replacement {
    /// Creates an empty file beside `path`, with the permissions it will have.
    ///
    /// # Errors
    /// [`FileError::Io`] if `path` is a folder or another thing that is not a regular file, or if its folder does not
    /// exist or takes no new file.
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
            // Whatever the user's umask is.
            (None, Readers::Owner) | (_, Readers::OnlyOwner) => for_its_owner_only(&self.file),
        }
    }

    /// Puts the new file in the place of the old one.
    ///
    /// # Errors
    /// [`FileError::Io`]. The old file is unchanged then, with one exception: if the action is `sync the folder of`, the new
    /// file is in place, but it may not survive a power failure.
    pub fn finish(self) -> Result<(), FileError> {
        self.file.sync_all().map_err(FileError::io("write", &self.path))?;
        fs::rename(&self.aside, &self.target).map_err(FileError::io("replace", &self.path))?;
        sync_folder_of(&self.target).map_err(FileError::io("sync the folder of", &self.path))
    }

    /// Puts the new file in place if no file has the name, in one step.
    ///
    /// # Errors
    /// Those of [`finish`](Self::finish), and an [`io::ErrorKind::AlreadyExists`] with the action `create` if there is a
    /// file.
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
        // Best effort, for what was not finished: after a rename the name is gone.
        let _ = fs::remove_file(&self.aside);
    }
}

/// The file that `path` leads to, and its permissions if it exists.
fn target_of(path: &Path) -> io::Result<(PathBuf, Option<fs::Permissions>)> {
    if path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
    }
    match fs::metadata(path) {
        Ok(about) if about.is_file() => Ok((fs::canonicalize(path)?, Some(about.permissions()))),
        Ok(about) if about.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link to a file that does not exist yet is followed, too.
            let led_to = fs::read_link(path).ok();
            let folder = path.parent().unwrap_or(Path::new(""));
            Ok((led_to.map_or_else(|| path.to_owned(), |target| folder.join(target)), None))
        }
        Err(error) => Err(error),
    }
}

/// A new, empty file in the folder of `target`, on the same file system. Its name is short and random, so that it does
/// not collide with another file.
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
            // Before the first byte is written.
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

/// Makes the creation, the renaming or the removal of the file `path` durable: names are stored in the folder, and the
/// folder must reach the disk too.
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
