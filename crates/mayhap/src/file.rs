//! Filters in files: written so that a crash leaves the old file or the new one, opened through a memory map where they are large.
//!
//! The only module that touches the file system; without the feature `file` it is not there.
//!
//! ```
//! use mayhap::{Bloom, file};
//!
//! # let folder = std::env::temp_dir().join(format!("mayhap-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let path = folder.join("seen.mayhap");
//! let mut seen = Bloom::for_capacity(1_000, 0.01, 0)?;
//! seen.insert("a");
//! file::save(&seen, &path)?;
//!
//! let opened: Bloom = file::open(&path)?; // in bounded time, whatever the size
//! assert!(opened.may_contain("a"));
//! file::verify::<Bloom>(&path)?; // reads every byte
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backing;
mod source;

use std::cell::RefCell;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub use self::backing::{Backing, Change, survive_truncation};
use self::source::{FileSource, Words};
use crate::codec::{self, DecodeError, Source, Storable};
use crate::kind::Kind;

/// Why a file could not be written or opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The system refused.
    Io {
        /// What was being done: `open`, `write`, ….
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The file does not hold the filter it should.
    Decode {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        cause: DecodeError,
    },
    /// The file was changed while a filter was a view of it, so its answers may be wrong.
    Changed {
        /// Which file.
        path: PathBuf,
        /// What was done to it.
        change: Change,
    },
}

impl FileError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Io { action, path: path.to_owned(), cause }
    }

    fn decode(path: &Path) -> impl FnOnce(DecodeError) -> Self {
        move |cause| Self::Decode { path: path.to_owned(), cause }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, path, cause } => write!(f, "cannot {action} {}: {cause}", path.display()),
            Self::Decode { path, cause } => write!(f, "{}: {cause}", path.display()),
            Self::Changed { path, change } => write!(f, "{}: {change}", path.display()),
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { cause, .. } => Some(cause),
            Self::Decode { cause, .. } => Some(cause),
            Self::Changed { .. } => None,
        }
    }
}

/// Writes `filter` to `path`, replacing what was there in one step.
///
/// The bytes go to a new file beside it, which is synced to the disk and then renamed: after a crash at any moment `path` is
/// either the old file or the new one, whole. Programs that have the old file open keep it. A link is followed, the old file's
/// permissions are kept, and a new file with a secret key in it is for its owner only.
///
/// # Errors
/// [`FileError::Io`]. The file that was there is untouched then, but for the action `sync the folder of`: there the new file
/// is in place, and only its lasting through a power failure is not sure.
pub fn save<F: Storable>(filter: &F, path: impl AsRef<Path>) -> Result<(), FileError> {
    save_watched(filter, path, |_| Ok(()))
}

/// [`save`], telling `watch` how many bytes are written so far, from time to time, and when all are. If that is an error, nothing is saved.
///
/// # Errors
/// Those of [`save`], and what `watch` returned.
pub fn save_watched<F: Storable>(
    filter: &F,
    path: impl AsRef<Path>,
    watch: impl FnMut(u64) -> io::Result<()>,
) -> Result<(), FileError> {
    let readers = if filter.header().has_secret() { Readers::Owner } else { Readers::AsUsual };
    replace(path, readers, watch, |out| codec::encode_into(filter, out))
}

/// Who may read a file that was not there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Whoever may read the files this user makes.
    AsUsual,
    /// Nobody but its owner: there is a secret in it.
    Owner,
}

/// Replaces `path` by what `write` writes, in one step as [`save`] does: for filters in the formats of other programs. `watch` is
/// told how many bytes are written so far, at last of all of them; if that is an error, or `write` returns one, the old file stays.
///
/// # Errors
/// Those of [`save`], and what `watch` or `write` returned.
pub fn replace(
    path: impl AsRef<Path>,
    readers: Readers,
    watch: impl FnMut(u64) -> io::Result<()>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), FileError> {
    let path = path.as_ref();
    let (target, permissions) = target_of(path).map_err(FileError::io("replace", path))?;
    let (file, aside) = create_aside(&target, readers).map_err(FileError::io("write beside", path))?;
    let saved = write_synced(file, permissions, readers, watch, write)
        .map_err(FileError::io("write", path))
        .and_then(|()| fs::rename(&aside, &target).map_err(FileError::io("replace", path)));
    if let Err(error) = saved {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&aside);
        return Err(error);
    }
    sync_folder_of(&target).map_err(FileError::io("sync the folder of", path))
}

/// Where `path` leads, and what the file there may be used for if there is one.
fn target_of(path: &Path) -> io::Result<(PathBuf, Option<fs::Permissions>)> {
    if path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
    }
    match fs::metadata(path) {
        Ok(about) if about.is_file() => Ok((fs::canonicalize(path)?, Some(about.permissions()))),
        Ok(about) if about.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link that leads nowhere yet is followed, too.
            let led_to = fs::read_link(path).ok();
            let folder = path.parent().unwrap_or(Path::new(""));
            Ok((led_to.map_or_else(|| path.to_owned(), |target| folder.join(target)), None))
        }
        Err(error) => Err(error),
    }
}

/// A new, empty file beside `target`, on the same file system. Its name is short and random: nobody else's file is taken for it.
fn create_aside(target: &Path, readers: Readers) -> io::Result<(File, PathBuf)> {
    loop {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| io::Error::other("the system gave no random bytes"))?;
        let aside = target.with_file_name(format!(".mayhap-{:016x}.new", u64::from_le_bytes(random)));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if readers == Readers::Owner {
            use std::os::unix::fs::OpenOptionsExt as _;
            // From the first moment on.
            options.mode(0o600);
        }
        match options.open(&aside) {
            Ok(file) => return Ok((file, aside)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn write_synced(
    file: File,
    permissions: Option<fs::Permissions>,
    readers: Readers,
    watch: impl FnMut(u64) -> io::Result<()>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    match (permissions, readers) {
        (Some(permissions), _) => file.set_permissions(permissions)?,
        (None, Readers::Owner) => for_its_owner_only(&file)?,
        (None, Readers::AsUsual) => {}
    }
    let mut out = BufWriter::with_capacity(1 << 20, Watched { file, written: 0, watch });
    write(&mut out)?;
    out.flush()?;
    let mut out = out.into_inner()?;
    // The last chance to say that what was written is not to be.
    (out.watch)(out.written)?;
    out.file.sync_all()
}

/// Bytes written between two looks.
const WATCHED_BYTES: usize = 16 << 20;

/// A file whose writing somebody watches, and may end.
struct Watched<W> {
    file: File,
    written: u64,
    watch: W,
}

impl<W: FnMut(u64) -> io::Result<()>> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.watch)(self.written)?;
        let written = self.file.write(&bytes[..bytes.len().min(WATCHED_BYTES)])?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
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

/// Opens the filter in `path` in bounded time, whatever its size: one of more than 16 MiB through a memory map, reading only what is asked
/// about.
///
/// Up to that size it is copied into memory, every byte of it is checked, and what is done to the file afterwards does not matter. Of a larger
/// one the header is checked, the words are not; [`verify`] checks them. (A [`Quotient`](crate::Quotient) or [`Growing`](crate::Growing) filter is always
/// copied.) Inserting works and changes only this process's memory: [`save`] is what changes a file.
///
/// **A file that is mapped must not be cut or changed in place while the filter is used.** [`save`] never does: it puts a new file in its
/// place. But if another program does, the filter answers for other bits, so that a *no* is not certain any more, and where the file was
/// cut, the system ends the process (SIGBUS). Who cannot rule that out uses [`open_backed`], which notices both, or [`read`], which
/// copies a filter of any size.
///
/// # Errors
/// [`FileError`] if it cannot be read, or its header is not that of an `F`.
pub fn open<F: Storable>(path: impl AsRef<Path>) -> Result<F, FileError> {
    open_backed(path).map(|(filter, _)| filter)
}

/// [`open`], with the file that the filter is a view of: [`Backing::check_unchanged`] says whether the answers so far are those of the file as
/// it was opened. Call [`survive_truncation`] once before, so that a file that was cut is an error as well.
///
/// # Errors
/// Those of [`open`].
pub fn open_backed<F: Storable>(path: impl AsRef<Path>) -> Result<(F, Backing), FileError> {
    let path = path.as_ref();
    let source = FileSource::open_for_lookups(path).map_err(FileError::io("open", path))?;
    let filter = codec::decode_from(&source).map_err(FileError::decode(path))?;
    Ok((filter, Backing::of(&source, path)))
}

/// Reads the filter in `path` into memory of its own, checking every byte. Nothing that is done to the file afterwards matters.
///
/// # Errors
/// [`FileError`] if it cannot be read, or is not an intact `F`.
pub fn read<F: Storable>(path: impl AsRef<Path>) -> Result<F, FileError> {
    let path = path.as_ref();
    let source = FileSource::open(path, Words::Copied).map_err(FileError::io("open", path))?;
    codec::decode_from(&source).map_err(FileError::decode(path))
}

/// Checks every byte of the filter in `path`, however large, without a copy of it in memory.
///
/// # Errors
/// [`FileError`] if it cannot be read, is not an intact `F`, or was changed meanwhile.
pub fn verify<F: Storable>(path: impl AsRef<Path>) -> Result<(), FileError> {
    verify_watched::<F>(path, |_| Ok(()))
}

/// [`verify`], telling `watch` how many bytes are checked so far, from time to time. If that is an error, the rest is not checked.
///
/// # Errors
/// Those of [`verify`], and what `watch` returned.
pub fn verify_watched<F: Storable>(
    path: impl AsRef<Path>,
    watch: impl FnMut(u64) -> io::Result<()>,
) -> Result<(), FileError> {
    let path = path.as_ref();
    if cfg!(target_endian = "big") {
        // Words in a file are little-endian, so here they must be turned around, not mapped.
        return read::<F>(path).map(drop);
    }
    let checking = RefCell::new(Checking { bytes: 0, watch, refused: None });
    let source = FileSource::open(path, Words::Mapped).map_err(FileError::io("open", path))?;
    let checked = Backing::of(&source, path).verify_watched::<F>(&|bytes| checking.borrow_mut().add(bytes));
    match checking.into_inner().refused {
        Some(refused) => Err(FileError::io("check", path)(refused)),
        None => checked,
    }
}

/// What kind of filter is in `path`, judging by its header.
///
/// # Errors
/// [`FileError`] if it cannot be read, or does not begin with an intact header.
pub fn kind(path: impl AsRef<Path>) -> Result<Kind, FileError> {
    let path = path.as_ref();
    let source = FileSource::open(path, Words::Mapped).map_err(FileError::io("open", path))?;
    Ok(source.header_at(0).map_err(FileError::decode(path))?.kind)
}

/// Makes a rename last: the name is in the folder, and the folder has to reach the disk too.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// How far a check has come.
struct Checking<W> {
    bytes: u64,
    watch: W,
    /// What the watcher said when it had enough.
    refused: Option<io::Error>,
}

impl<W: FnMut(u64) -> io::Result<()>> Checking<W> {
    /// So many bytes more; from time to time the watcher hears of it.
    fn add(&mut self, bytes: u64) -> Result<(), DecodeError> {
        let before = self.bytes;
        self.bytes += bytes;
        if before / WATCHED_BYTES as u64 == self.bytes / WATCHED_BYTES as u64 {
            return Ok(());
        }
        (self.watch)(self.bytes).map_err(|refused| {
            self.refused = Some(refused);
            DecodeError::Unreadable { at: before }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bloom, HashScheme};
    use std::process;

    /// A folder of its own for every test, gone when the test is.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("mayhap-file-{name}-{}", process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn filled(capacity: u64) -> Bloom {
        let mut filter = Bloom::for_capacity(capacity, 0.01, 7).unwrap();
        (0..capacity).for_each(|item| {
            filter.insert(&item);
        });
        filter
    }

    #[test]
    fn what_was_saved_is_opened_read_and_verified() {
        let folder = Folder::new("saved");
        let path = folder.0.join("filter.mayhap");
        let filter = filled(10_000);
        save(&filter, &path).unwrap();
        let opened: Bloom = open(&path).unwrap();
        assert!((0..10_000_u64).all(|item| opened.may_contain(&item)));
        assert_eq!(opened.encode(), filter.encode());
        assert_eq!(read::<Bloom>(&path).unwrap().encode(), filter.encode());
        assert_eq!(kind(&path).unwrap(), Kind::Bloom);
        verify::<Bloom>(&path).unwrap();
    }

    #[test]
    fn inserting_into_an_opened_filter_leaves_the_file_alone() {
        let folder = Folder::new("private");
        let path = folder.0.join("filter.mayhap");
        save(&filled(1_000), &path).unwrap();
        let before = fs::read(&path).unwrap();
        let mut opened: Bloom = open(&path).unwrap();
        assert!(opened.insert("something new"));
        assert!(opened.may_contain("something new"));
        assert_eq!(fs::read(&path).unwrap(), before);
        save(&opened, &path).unwrap();
        assert!(open::<Bloom>(&path).unwrap().may_contain("something new"));
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "nothing is left aside");
    }

    #[test]
    fn a_failed_save_keeps_the_old_file_and_leaves_nothing_behind() {
        let folder = Folder::new("failed");
        let path = folder.0.join("a-folder-is-here");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), b"x").unwrap();
        let error = save(&filled(10), &path).unwrap_err();
        assert!(matches!(error, FileError::Io { action: "replace", .. }), "{error}");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
        assert!(matches!(open::<Bloom>(&path), Err(FileError::Io { .. })));
    }

    #[test]
    fn who_watches_sees_all_of_it_and_may_end_it() {
        let folder = Folder::new("watched");
        let path = folder.0.join("filter.mayhap");
        let filter = filled(1_000_000);
        let mut seen = Vec::new();
        save_watched(&filter, &path, |written| {
            seen.push(written);
            Ok(())
        })
        .unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(seen.is_sorted() && seen[0] == 0 && *seen.last().unwrap() == bytes.len() as u64);
        let at_the_end =
            |written| if written < bytes.len() as u64 { Ok(()) } else { Err(io::Error::other("no")) };
        assert!(save_watched(&filter, &path, at_the_end).is_err());
        let stop = |written| if written == 0 { Ok(()) } else { Err(io::Error::other("enough")) };
        let error = save_watched(&filled(2_000_000), &path, stop).unwrap_err();
        assert!(error.to_string().ends_with("enough"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "nothing is left aside");
    }

    #[test]
    fn a_check_is_watched_and_may_be_ended() {
        let folder = Folder::new("checked");
        let path = folder.0.join("filter.mayhap");
        save(&Bloom::for_capacity(30_000_000, 0.01, 7).unwrap(), &path).unwrap();
        let mut seen = Vec::new();
        verify_watched::<Bloom>(&path, |bytes| {
            seen.push(bytes);
            Ok(())
        })
        .unwrap();
        assert!(seen.len() >= 2 && seen.is_sorted(), "{seen:?}");
        assert!(*seen.last().unwrap() < fs::metadata(&path).unwrap().len());
        let error = verify_watched::<Bloom>(&path, |_| Err(io::Error::other("enough"))).unwrap_err();
        assert!(matches!(error, FileError::Io { action: "check", .. }), "{error}");
    }

    /// A filter that is large enough to be mapped, with a thousand numbers in it.
    fn large() -> Bloom {
        let mut filter = Bloom::for_capacity(15_000_000, 0.01, 7).unwrap();
        (0..1_000_u64).for_each(|item| {
            filter.insert(&item);
        });
        filter
    }

    fn write_at(path: &Path, at: u64, bytes: &[u8]) {
        use std::io::{Seek as _, SeekFrom};
        let mut file = OpenOptions::new().write(true).open(path).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(bytes).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_mapped_file_that_is_cut_is_an_error_and_no_signal() {
        let folder = Folder::new("cut");
        let path = folder.0.join("filter.mayhap");
        save(&large(), &path).unwrap();
        survive_truncation().unwrap();
        survive_truncation().unwrap();
        let (opened, backing) = open_backed::<Bloom>(&path).unwrap();
        assert!(backing.is_mapped());
        assert!((0..1_000_u64).all(|item| opened.may_contain(&item)));
        backing.check_unchanged().unwrap();
        backing.verify::<Bloom>().unwrap();
        let from = fs::metadata(&path).unwrap().len();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(4_096).unwrap();
        // Two threads, both on pages that are gone.
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..1_000_u64).filter(|item| opened.may_contain(item)).count());
            }
        });
        let changed = |error| matches!(error, FileError::Changed { change: Change::Cut { from: f, to: 4_096 }, .. } if f == from);
        assert!(changed(backing.check_unchanged().unwrap_err()));
        assert!(changed(backing.verify::<Bloom>().unwrap_err()));
        // Another filter is not affected.
        let other = folder.0.join("other.mayhap");
        save(&large(), &other).unwrap();
        drop(opened);
        let (opened, backing) = open_backed::<Bloom>(&other).unwrap();
        assert!((0..1_000_u64).all(|item| opened.may_contain(&item)));
        backing.check_unchanged().unwrap();
    }

    #[test]
    fn a_mapped_file_that_is_overwritten_is_an_error_and_a_renamed_one_is_none() {
        let folder = Folder::new("overwritten");
        let path = folder.0.join("filter.mayhap");
        let filter = large();
        save(&filter, &path).unwrap();
        let (opened, backing) = open_backed::<Bloom>(&path).unwrap();
        // Saving puts another file in its place, and so does removing it: the old one is still mapped.
        save(&filled(10), &path).unwrap();
        backing.check_unchanged().unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(opened.encode(), filter.encode());
        backing.check_unchanged().unwrap();
        backing.verify::<Bloom>().unwrap();

        save(&filter, &path).unwrap();
        let (_, backing) = open_backed::<Bloom>(&path).unwrap();
        write_at(&path, 5_000, &[0; 64]);
        let error = backing.check_unchanged().unwrap_err();
        assert!(matches!(error, FileError::Changed { change: Change::Overwritten, .. }), "{error}");
        assert!(matches!(backing.verify::<Bloom>(), Err(FileError::Changed { .. })));
    }

    #[test]
    fn small_files_and_tables_of_runs_are_copied_and_checked() {
        let folder = Folder::new("copied");
        let path = folder.0.join("filter.mayhap");
        save(&filled(10_000), &path).unwrap();
        let (opened, backing) = open_backed::<Bloom>(&path).unwrap();
        assert!(!backing.is_mapped());
        fs::write(&path, "cut").unwrap();
        assert!((0..10_000_u64).all(|item| opened.may_contain(&item)));
        backing.check_unchanged().unwrap();
        backing.verify::<Bloom>().unwrap();

        let mut runs = crate::Quotient::for_capacity(15_000_000, 0.01, 7).unwrap();
        runs.insert("a").unwrap();
        save(&runs, &path).unwrap();
        assert!(fs::metadata(&path).unwrap().len() > source::COPIED_BYTES);
        let (opened, backing) = open_backed::<crate::Quotient>(&path).unwrap();
        assert!(opened.may_contain("a") && !backing.is_mapped());

        save(&filled(10_000), &path).unwrap();
        write_at(&path, 500, &[0; 64]);
        for error in [open::<Bloom>(&path).unwrap_err(), read::<Bloom>(&path).unwrap_err()] {
            assert!(matches!(error, FileError::Decode { cause: DecodeError::PayloadDamaged, .. }), "{error}");
        }
    }

    /// The figures of `docs/decisions/0015-mapped-files.md`, in a release build:
    /// `cargo test --release -p mayhap --lib what_safety_costs -- --ignored --nocapture`.
    #[test]
    #[ignore = "measures, and takes long"]
    fn what_safety_costs() {
        use std::hint::black_box;
        use std::time::Instant;
        let folder = Folder::new("costs");
        let path = folder.0.join("filter.mayhap");
        let best = |work: &mut dyn FnMut()| {
            let mut took = (0..9).map(|_| {
                let start = Instant::now();
                work();
                start.elapsed().as_secs_f64()
            });
            let first = took.next().unwrap();
            took.fold(first, f64::min)
        };
        for mebibytes in [1_u64, 4, 16, 64, 512] {
            let items = mebibytes * 800_000;
            let mut filter = crate::BlockedBloom::for_capacity(items, 0.01, 7).unwrap();
            (0..items).for_each(|item| {
                filter.insert(&item);
            });
            save(&filter, &path).unwrap();
            let mapped = || {
                let source = FileSource::open(&path, Words::Mapped).unwrap();
                let filter: crate::BlockedBloom = codec::decode_from(&source).unwrap();
                (filter, Backing::of(&source, &path))
            };
            let map = best(&mut || drop(black_box(mapped())));
            let copy = best(&mut || drop(black_box(read::<crate::BlockedBloom>(&path).unwrap())));
            let (filter, backing) = mapped();
            let check = best(&mut || (0..1_000).for_each(|_| backing.check_unchanged().unwrap())) / 1_000.0;
            let asked: Vec<u64> = (0..4_000_000).map(|item| item * 7).collect();
            let (mut answers, mut ask) = (crate::Answers::new(), [f64::MAX; 2]);
            for round in 0..10 {
                let took = best(&mut || {
                    for block in asked.chunks(10_000) {
                        filter.may_contain_batch(block, &mut answers);
                        if round % 2 == 1 {
                            backing.check_unchanged().unwrap();
                        }
                    }
                });
                ask[round % 2] = ask[round % 2].min(took / asked.len() as f64);
            }
            println!(
                "{mebibytes:>4} MiB: open mapped {:.3} ms, copied {:.3} ms; check {:.0} ns; lookup {:.2} ns, with a check per 10,000 {:.2} ns, ratio {:.3}",
                map * 1e3,
                copy * 1e3,
                check * 1e9,
                ask[0] * 1e9,
                ask[1] * 1e9,
                ask[1] / ask[0],
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_permissions_kept_and_secrets_not_shown() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = Folder::new("permissions");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (real, link) = (folder.0.join("real.mayhap"), folder.0.join("link.mayhap"));
        save(&filled(10), &real).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&real, &link).unwrap();
        save(&filled(20), &link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((open::<Bloom>(&real).unwrap().capacity(), mode(&real)), (20, 0o640));

        let keyed = Bloom::for_capacity(10, 0.01, HashScheme::keyed_random().unwrap()).unwrap();
        let secret = folder.0.join("secret.mayhap");
        save(&keyed, &secret).unwrap();
        assert_eq!(mode(&secret), 0o600);
        // A name as long as the file system allows is no reason to fail.
        save(&keyed, folder.0.join("n".repeat(250))).unwrap();
        assert!(matches!(save(&keyed, ""), Err(FileError::Io { .. })));
    }

    #[test]
    fn what_is_no_filter_is_told_so() {
        let folder = Folder::new("foreign");
        let path = folder.0.join("text");
        fs::write(&path, "hello, this is a text").unwrap();
        for error in
            [open::<Bloom>(&path).unwrap_err(), read::<Bloom>(&path).unwrap_err(), kind(&path).unwrap_err()]
        {
            assert!(matches!(error, FileError::Decode { cause: DecodeError::BadMagic, .. }), "{error}");
        }
        assert!(matches!(read::<Bloom>(&folder.0), Err(FileError::Io { .. })));
    }

    #[test]
    fn damage_is_noticed_in_the_header_at_once_and_in_the_words_by_verify() {
        let folder = Folder::new("damage");
        let path = folder.0.join("filter.mayhap");
        save(&filled(1_000), &path).unwrap();
        let good = fs::read(&path).unwrap();
        for length in [0, 1, 191, 192, 193, good.len() - 1] {
            fs::write(&path, &good[..length]).unwrap();
            assert!(matches!(open::<Bloom>(&path), Err(FileError::Decode { .. })), "{length} bytes");
        }
        let mut damaged = good.clone();
        damaged[60] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert!(matches!(
            open::<Bloom>(&path),
            Err(FileError::Decode { cause: DecodeError::HeaderDamaged, .. })
        ));
        damaged = good;
        damaged[500] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert!(matches!(
            verify::<Bloom>(&path),
            Err(FileError::Decode { cause: DecodeError::PayloadDamaged, .. })
        ));
    }
}
