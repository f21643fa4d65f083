//! Files behind a trait: tests bring disks that fail, and tear what they were writing.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;
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
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }
}

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl AppendFile for File {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&mut &*self).write(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        Self::set_len(self, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        Self::sync_data(self)
    }
}

impl Disk for Files {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::create(self.folder.join(name))?))
    }

    fn append(&self, name: &str) -> io::Result<Arc<dyn AppendFile>> {
        let path = self.folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Arc::new(OpenOptions::new().append(true).create_new(true).open(path)?)),
        }
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(self.folder.join(name))?))
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
