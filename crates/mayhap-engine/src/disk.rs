//! Files behind a trait: tests bring disks that fail, and tear what they were writing.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// One folder of files, which are called by their names alone.
pub trait Disk: fmt::Debug + Send + Sync {
    /// A new file in place of any of that name.
    ///
    /// # Errors
    /// Whatever the system answers, here and everywhere below.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// A file that is written to behind its end; a new one if there is none.
    fn append(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
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

impl Disk for Files {
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::create(self.folder.join(name))?))
    }

    fn append(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().append(true).create(true).open(self.folder.join(name))?))
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
