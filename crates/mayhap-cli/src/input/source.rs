//! One input: a file or standard input.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::CliError;
use crate::progress::Reading;

/// An input that existed when it was checked.
pub(super) struct Source {
    /// The name for messages.
    pub(super) name: String,
    /// The bytes left to read, if the operating system reports them.
    pub(super) bytes: Option<u64>,
    /// `None` for standard input.
    path: Option<PathBuf>,
}

/// A source while it is read.
pub(super) struct OpenSource {
    file: Arc<File>,
    may_wait: bool,
}

/// All inputs in order; standard input if no file is named.
pub(super) fn find_all(files: &[PathBuf]) -> Result<Vec<Source>, CliError> {
    if files.is_empty() {
        return Ok(vec![standard_input()]);
    }
    let is_standard_input = |file: &&PathBuf| *file == Path::new("-");
    if files.iter().filter(is_standard_input).count() > 1 {
        return Err(CliError::Usage("standard input (-) is named twice, but can be read only once".into()));
    }
    files
        .iter()
        .map(|file| if is_standard_input(&file) { Ok(standard_input()) } else { find(file) })
        .collect()
}

/// Opens each file to check that it can be read, and closes it again, because there may be more files than can be open
/// at the same time. A pipe is opened later, when its turn comes, because it can be opened only once.
fn find(path: &Path) -> Result<Source, CliError> {
    let name = path.display().to_string();
    let cli_error = |cause| CliError::Read { name: name.clone(), cause };
    let about = fs::metadata(path).map_err(cli_error)?;
    if about.is_dir() {
        return Err(cli_error(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    if about.is_file() {
        File::open(path).map_err(cli_error)?;
    }
    Ok(Source { name, bytes: about.is_file().then_some(about.len()), path: Some(path.to_owned()) })
}

fn standard_input() -> Source {
    let name = "standard input".into();
    Source { name, bytes: left_of_standard_input().ok().flatten(), path: None }
}

/// The bytes left to read, if standard input is a file.
fn left_of_standard_input() -> io::Result<Option<u64>> {
    let mut file = file_of_standard_input()?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Ok(None);
    }
    Ok(Some(about.len().saturating_sub(file.stream_position()?)))
}

/// Standard input without the buffer of the standard library, because buffered bytes would be invisible to `poll`.
fn file_of_standard_input() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

impl Source {
    /// Returns `true` if a read may have to wait for a writer.
    pub(super) fn may_wait(&self) -> bool {
        self.bytes.is_none()
    }

    /// Opens it.
    pub(super) fn open(&self) -> Result<OpenSource, CliError> {
        let opened = match &self.path {
            None => file_of_standard_input(),
            Some(path) => File::open(path),
        };
        let file = opened.map_err(|cause| CliError::Read { name: self.name.clone(), cause })?;
        Ok(OpenSource { file: Arc::new(file), may_wait: self.may_wait() })
    }
}

impl OpenSource {
    /// Its bytes. They are counted in `reading` as they are read, before unpacking.
    pub(super) fn bytes(&self, reading: Reading) -> Box<dyn Read + Send> {
        Box::new(Counted { file: Arc::clone(&self.file), reading })
    }

    /// Returns `true` if a read would wait now.
    pub(super) fn would_wait(&self) -> bool {
        self.may_wait && !is_ready(self.file.as_fd())
    }
}

/// Returns `false` if the operating system cannot tell.
fn is_ready(file: BorrowedFd<'_>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::from_borrowed_fd(file, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

struct Counted {
    file: Arc<File>,
    reading: Reading,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&*self.file).read(buffer)?;
        self.reading.add(read as u64);
        Ok(read)
    }
}
