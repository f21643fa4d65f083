//! One file, or the standard input.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::CliError;
use crate::progress::Reading;

/// Something to read, which was there when it was looked at.
pub(super) struct Source {
    /// As messages call it.
    pub(super) name: String,
    /// How many bytes there are to read, where the system says so.
    pub(super) bytes: Option<u64>,
    /// None: the standard input.
    path: Option<PathBuf>,
}

/// A source while it is read.
pub(super) struct OpenSource {
    file: Arc<File>,
    may_wait: bool,
}

/// All of them in order; the standard input where there are none.
pub(super) fn find_all(files: &[PathBuf]) -> Result<Vec<Source>, CliError> {
    if files.is_empty() {
        return Ok(vec![standard_input()]);
    }
    let is_standard_input = |file: &&PathBuf| *file == Path::new("-");
    if files.iter().filter(is_standard_input).count() > 1 {
        return Err(CliError::Usage(
            "the standard input (-) is named twice, but can be read only once".into(),
        ));
    }
    files
        .iter()
        .map(|file| if is_standard_input(&file) { Ok(standard_input()) } else { find(file) })
        .collect()
}

/// Files are opened to see whether they can be, and closed again: there may be more of them than can be open at once. A pipe
/// is opened when it is its turn: it can be opened only once.
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

/// What is left of the file that the standard input is, where it is one.
fn left_of_standard_input() -> io::Result<Option<u64>> {
    let mut file = file_of_standard_input()?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Ok(None);
    }
    Ok(Some(about.len().saturating_sub(file.stream_position()?)))
}

/// Without the buffer that the standard library puts before it: what is in there could not be seen to be there.
fn file_of_standard_input() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

impl Source {
    /// Whether reading it may have to wait for somebody who writes it.
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
    /// Its bytes, which are counted in `reading` as they are read, whatever they unpack to.
    pub(super) fn bytes(&self, reading: Reading) -> Box<dyn Read + Send> {
        Box::new(Counted { file: Arc::clone(&self.file), reading })
    }

    /// Nothing is there right now: to read is to wait.
    pub(super) fn would_wait(&self) -> bool {
        self.may_wait && !is_ready(self.file.as_fd())
    }
}

/// `false` where the system cannot say.
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
