//! Files behind a trait: tests bring disks that fail, and tear what they were writing.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One folder of files, which are called by their names alone.
pub trait Disk: fmt::Debug + Send + Sync {
    /// A new file in place of any of that name.
    ///
    /// # Errors
    /// Whatever the system answers, here and everywhere below.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// A new file in place of any of that name, which is written to behind its end only, and by several threads.
    fn append(&self, name: &str) -> io::Result<Arc<dyn AppendFile>>;
    /// A file from its beginning.
    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>>;
    /// Gives a file another name, in place of any of that name, all at once.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Waits until names that were made, changed and removed are safe.
    fn sync_dir(&self) -> io::Result<()>;
}

/// A file that is being written.
pub trait DiskFile: Write + Send {
    /// Waits until all that was written is safe.
    ///
    /// # Errors
    /// Whatever the system answers. What was written before may be lost then.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that grows at its end. One thread may write while another waits for what was written before to be safe.
pub trait AppendFile: Send + Sync {
    /// Puts bytes behind the end, and says how many of them.
    ///
    /// # Errors
    /// Whatever the system answers, here and below. A failed write may have put some of the bytes there.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Cuts off what is behind the first `bytes`.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Waits until all that was written when this was called is safe, and the length of the file with it.
    /// After an error what was written since the last success may be lost, whatever a second call answers.
    fn sync_data(&self) -> io::Result<()>;
    /// Is it the file of this name? Whatever is written to a file that was removed is lost.
    fn is_called(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }
}

/// The real ones, in a folder.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
}

impl Files {
    /// The files of `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// Whatever the system answers.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&folder)?;
        Ok(Self { folder })
    }

    /// Takes from other users the rights to our files, and to the folder if nothing else is in it. Answers what was changed, and the mode it had.
    ///
    /// # Errors
    /// Whatever the system answers.
    pub fn close_to_others(&self) -> io::Result<Vec<(String, u32)>> {
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

/// The files of a folder hold the keys of filters: only their owner reads them.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// What the group and all others may do.
const OTHERS: u32 = 0o077;
/// How the names of our files begin.
const OUR_FILES: [&str; 5] = ["log-", "part-", "value-", "MANIFEST", "mayhap."];

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// A file of the log, and the folder that has it.
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
            let what = format!("{name} is not in its folder any more: it was removed or replaced");
            Err(io::Error::new(io::ErrorKind::NotFound, what))
        };
        match (fs::symlink_metadata(self.folder.join(name)), self.file.metadata()) {
            (Ok(there), Ok(open)) if (there.dev(), there.ino()) != (open.dev(), open.ino()) => gone(),
            (Err(error), _)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
                gone()
            }
            // Whatever else is wrong, the next write or sync tells.
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
        // Asked before it is opened: a pipe would wait for a writer, and a device might never end.
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
