//! Files behind a trait. Tests use disks that fail and tear writes.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder of files, addressed by name.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Creates a file, replacing one with the same name.
    ///
    /// # Errors
    /// Errors of the operating system, here and below.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Creates a file, replacing one with the same name, that is only appended to, by several threads.
    fn append(&self, name: &str) -> io::Result<Arc<dyn AppendFile>>;
    /// Opens a file for reading from its beginning.
    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>>;
    /// Renames a file atomically, replacing one with the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Syncs the folder: waits until created, renamed and removed names are safe.
    fn sync_dir(&self) -> io::Result<()>;
}

/// A file while it is written.
pub trait DiskFile: Write + Send {
    /// Waits until everything written is safe.
    ///
    /// # Errors
    /// Errors of the operating system. Earlier writes may be lost then.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that grows at its end. One thread may write while another syncs earlier writes.
pub trait AppendFile: Send + Sync {
    /// Appends bytes and returns the number appended.
    ///
    /// # Errors
    /// Errors of the operating system, here and below. A failed write may have appended some of the bytes.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Truncates the file to `bytes`.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Waits until everything written before the call is safe, including the length of the file. After an
    /// error, writes since the last success may be lost, whatever a second call returns.
    fn sync_data(&self) -> io::Result<()>;
    /// Checks that the file still has this name. Writes to a file that was removed are lost.
    fn is_called(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }
}

/// Real files in a folder.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
}

impl Files {
    /// Opens `folder`, and creates it if it does not exist.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&folder)?;
        Ok(Self { folder })
    }

    /// Removes the access of other users to our files, and to the folder if it contains nothing else. Returns
    /// what was changed, with the previous mode.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn restrict_to_owner(&self) -> io::Result<Vec<(String, u32)>> {
        let (mut changed, mut only_ours) = (Vec::new(), true);
        let mut close = |path: &Path, name: String, found: &fs::Metadata, mode: u32| {
            let had = found.permissions().mode() & 0o7777;
            if had & OTHERS != 0 {
                fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
                changed.push((name, had));
            }
            Ok::<(), io::Error>(())
        };
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let (name, found) = (entry.file_name().to_string_lossy().into_owned(), entry.metadata()?);
            if !found.is_file() || !OUR_FILES.iter().any(|prefix| name.starts_with(prefix)) {
                only_ours = false;
                continue;
            }
            close(&entry.path(), name, &found, FILE_MODE)?;
        }
        if only_ours {
            let name = self.folder.display().to_string();
            close(&self.folder, name, &fs::metadata(&self.folder)?, FOLDER_MODE)?;
        }
        Ok(changed)
    }
}

/// The files contain the keys of filters, so only their owner can read them.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// The mode bits of the group and of others.
const OTHERS: u32 = 0o077;
/// The prefixes of our file names.
const OUR_FILES: [&str; 5] = ["log-", "part-", "value-", "MANIFEST", "mayhap."];

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// A log file and its folder.
#[derive(Debug)]
struct InFolder {
    file: File,
    folder: PathBuf,
}

impl AppendFile for InFolder {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&mut &self.file).write(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn is_called(&self, name: &str) -> io::Result<()> {
        let gone = || {
            let what = format!("{name} is no longer in its folder: it was removed or replaced");
            Err(io::Error::new(io::ErrorKind::NotFound, what))
        };
        match (fs::symlink_metadata(self.folder.join(name)), self.file.metadata()) {
            (Ok(there), Ok(open)) if (there.dev(), there.ino()) != (open.dev(), open.ino()) => gone(),
            (Err(error), _)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
                gone()
            }
            // Other errors show at the next write or sync.
            _ => Ok(()),
        }
    }
}

impl Disk for Files {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let path = self.folder.join(name);
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(path)?;
        Ok(Box::new(file))
    }

    fn append(&self, name: &str) -> io::Result<Arc<dyn AppendFile>> {
        let path = self.folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => {
                let file = OpenOptions::new().append(true).create_new(true).mode(FILE_MODE).open(path)?;
                Ok(Arc::new(InFolder { file, folder: self.folder.clone() }))
            }
        }
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        let path = self.folder.join(name);
        // Checked before opening: a pipe would wait for a writer, and a device might never end.
        if !fs::metadata(&path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is not a regular file")));
        }
        Ok(Box::new(File::open(path)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.folder.join(from), self.folder.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.folder.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for file in fs::read_dir(&self.folder)? {
            names.extend(file?.file_name().into_string().ok());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}
