//! Filters in files. Saving is atomic: after a crash, the file is the old one or the new one. Large files are opened
//! through a memory map.
//!
//! This is the only module that touches the file system. It needs the feature `file`.
//!
//! ```
//! use mayhap::{Bloom, file};
//!
//! # let folder = std::env::temp_dir().join(format!("mayhap-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let path = folder.join("seen.mayhap");
//! let mut seen = Bloom::new(1_000, 0.01)?;
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
mod replacement;
mod source;

use std::cell::RefCell;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub use self::backing::{Backing, Change, survive_truncation};
pub use self::replacement::{Readers, Replacement, sync_folder_of};
use self::source::{FileSource, Words};
use crate::codec::{self, DecodeError, Source, Storable};
use crate::kind::Kind;

/// Why a file could not be written or opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// A system call failed.
    Io {
        /// The action that failed: `open`, `write`, ….
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// The file does not contain an intact filter of the expected kind.
    Decode {
        /// The file.
        path: PathBuf,
        /// The error in its contents.
        cause: DecodeError,
    },
    /// The file was changed while a filter had it mapped, so answers may be wrong.
    Changed {
        /// The file.
        path: PathBuf,
        /// What happened to it.
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

/// The cause alone, for callers whose errors name the file themselves.
impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { cause, .. } => cause,
            error => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

/// Writes `filter` to `path` and replaces the previous file atomically.
///
/// The bytes go to a new file in the same folder, which is synced to the disk and then renamed. After a crash at any
/// moment `path` is the whole old file or the whole new one. Programs that have the old file open keep it. Symbolic links
/// are followed, and the permissions of the old file are kept. If the filter has a secret key and the file is new, only
/// its owner can read it.
///
/// # Errors
/// [`FileError::Io`]. The previous file is unchanged then, with one exception: if the action is `sync the folder of`, the
/// new file is in place, but it may not survive a power failure.
pub fn save<F: Storable>(filter: &F, path: impl AsRef<Path>) -> Result<(), FileError> {
    save_watched(filter, path, |_| Ok(()))
}

/// [`save`] that calls `watch` from time to time, and at the end, with the number of bytes written so far. If `watch`
/// returns an error, nothing is saved.
///
/// # Errors
/// Those of [`save`], and the error that `watch` returned.
pub fn save_watched<F: Storable>(
    filter: &F,
    path: impl AsRef<Path>,
    watch: impl FnMut(u64) -> io::Result<()>,
) -> Result<(), FileError> {
    replace(path, readers_of(filter), watch, |out| codec::encode_into(filter, out))
}

/// Writes `filter` to `path` if no file has this name, in one step and otherwise like [`save`].
///
/// # Errors
/// Those of [`save`], and an [`io::ErrorKind::AlreadyExists`] with the action `create` if there is a file.
pub fn save_new<F: Storable>(filter: &F, path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    let new = Replacement::begin(path, readers_of(filter))?;
    let written = write_watched(new, |_| Ok(()), |out| codec::encode_into(filter, out));
    written.map_err(FileError::io("write", path))?.finish_new()
}

fn readers_of<F: Storable>(filter: &F) -> Readers {
    if filter.header().has_secret() { Readers::Owner } else { Readers::AsUsual }
}

/// Replaces the contents of `path` with what `write` writes, atomically as in [`save`]: for filters in the formats of
/// other programs. Calls `watch` with the number of bytes written so far, the last time with all of them. If `watch` or
/// `write` returns an error, the old file stays.
///
/// # Errors
/// Those of [`save`], and the error that `watch` or `write` returned.
pub fn replace(
    path: impl AsRef<Path>,
    readers: Readers,
    watch: impl FnMut(u64) -> io::Result<()>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), FileError> {
    let path = path.as_ref();
    let new = Replacement::begin(path, readers)?;
    write_watched(new, watch, write).map_err(FileError::io("write", path))?.finish()
}

/// Writes the contents of `new`, and returns it complete.
fn write_watched(
    new: Replacement,
    watch: impl FnMut(u64) -> io::Result<()>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Replacement> {
    let mut out = BufWriter::with_capacity(1 << 20, Watched { new, written: 0, watch });
    write(&mut out)?;
    out.flush()?;
    let mut out = out.into_inner()?;
    // The last chance to cancel.
    (out.watch)(out.written)?;
    Ok(out.new)
}

/// Bytes written between two calls of `watch`.
const WATCHED_BYTES: usize = 16 << 20;

/// A file that calls `watch` as it is written. An error of `watch` cancels the writing.
struct Watched<W> {
    new: Replacement,
    written: u64,
    watch: W,
}

impl<W: FnMut(u64) -> io::Result<()>> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.watch)(self.written)?;
        let written = self.new.write(&bytes[..bytes.len().min(WATCHED_BYTES)])?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.new.flush()
    }
}

/// Opens the filter in `path` in bounded time, whatever its size. A file of more than 16 MiB is mapped, and a lookup reads
/// only the parts it needs.
///
/// A file of up to 16 MiB is copied into memory and every byte is checked; later changes of the file have no effect. For a
/// larger file only the header is checked; [`verify`] checks the rest. (A [`Quotient`](crate::Quotient) or
/// [`Growing`](crate::Growing) filter is always copied.) Inserting works and changes only the memory of this process; use
/// [`save`] to change the file.
///
/// **A mapped file must not be truncated or changed in place while the filter is in use.** [`save`] never does that: it
/// puts a new file in its place. If another program does, lookups read other bits, and a *no* is no longer certain. If the
/// file was truncated, the system ends the process (SIGBUS). If you cannot rule that out, use [`open_backed`], which
/// detects both, or [`read`], which copies a filter of any size.
///
/// # Errors
/// [`FileError`] if the file cannot be read, or its header is not that of an `F`.
pub fn open<F: Storable>(path: impl AsRef<Path>) -> Result<F, FileError> {
    open_backed(path).map(|(filter, _)| filter)
}

/// [`open`] that also returns the file the filter is a view of. [`Backing::check_unchanged`] tells whether the answers so
/// far are those of the file as it was opened. Call [`survive_truncation`] once before, so that a truncated file is an
/// error as well.
///
/// # Errors
/// Those of [`open`].
pub fn open_backed<F: Storable>(path: impl AsRef<Path>) -> Result<(F, Backing), FileError> {
    let path = path.as_ref();
    let source = FileSource::open_for_lookups(path).map_err(FileError::io("open", path))?;
    let filter = codec::decode_from(&source).map_err(FileError::decode(path))?;
    Ok((filter, Backing::of(&source, path)))
}

/// Reads the filter in `path` into memory and checks every byte. Later changes of the file have no effect.
///
/// # Errors
/// [`FileError`] if the file cannot be read, or is not an intact `F`.
pub fn read<F: Storable>(path: impl AsRef<Path>) -> Result<F, FileError> {
    let path = path.as_ref();
    let source = FileSource::open(path, Words::Copied).map_err(FileError::io("open", path))?;
    codec::decode_from(&source).map_err(FileError::decode(path))
}

/// Checks every byte of the filter in `path`, whatever its size, without copying it into memory.
///
/// # Errors
/// [`FileError`] if the file cannot be read, is not an intact `F`, or was changed during the check.
pub fn verify<F: Storable>(path: impl AsRef<Path>) -> Result<(), FileError> {
    verify_watched::<F>(path, |_| Ok(()))
}

/// [`verify`] that calls `watch` from time to time with the number of bytes checked so far. If `watch` returns an error,
/// the check stops.
///
/// # Errors
/// Those of [`verify`], and the error that `watch` returned.
pub fn verify_watched<F: Storable>(
    path: impl AsRef<Path>,
    watch: impl FnMut(u64) -> io::Result<()>,
) -> Result<(), FileError> {
    let path = path.as_ref();
    if cfg!(target_endian = "big") {
        // Words in a file are little-endian, so this machine must copy and swap them; it cannot map them.
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

/// The kind of the filter in `path`, according to its header.
///
/// # Errors
/// [`FileError`] if the file cannot be read, or does not begin with an intact header.
pub fn kind(path: impl AsRef<Path>) -> Result<Kind, FileError> {
    let path = path.as_ref();
    let source = FileSource::open(path, Words::Mapped).map_err(FileError::io("open", path))?;
    Ok(source.header_at(0).map_err(FileError::decode(path))?.kind)
}

/// The progress of a check.
struct Checking<W> {
    bytes: u64,
    watch: W,
    /// The error of the watcher that stopped the check.
    refused: Option<io::Error>,
}

impl<W: FnMut(u64) -> io::Result<()>> Checking<W> {
    /// Adds `bytes` to the progress, and calls the watcher once per [`WATCHED_BYTES`].
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
    use std::fs::{self, OpenOptions};
    use std::process;

    /// A separate folder for every test, removed when the test ends.
    pub(super) struct Folder(pub(super) PathBuf);

    impl Folder {
        pub(super) fn new(name: &str) -> Self {
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
    fn a_saved_filter_can_be_opened_read_and_verified() {
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
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "no temporary file remains");
    }

    #[test]
    fn a_failed_save_keeps_the_old_file_and_leaves_no_temporary_file() {
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
    fn a_watcher_sees_every_byte_written_and_can_cancel() {
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
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "no temporary file remains");
    }

    #[test]
    fn a_watcher_sees_a_check_and_can_cancel_it() {
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

    /// A filter that is large enough to be mapped, with a thousand numbers inserted.
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
    fn truncating_a_mapped_file_is_an_error_and_not_a_signal() {
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
        // Two threads, both reading pages that no longer exist.
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
    fn overwriting_a_mapped_file_is_an_error_but_renaming_it_is_not() {
        let folder = Folder::new("overwritten");
        let path = folder.0.join("filter.mayhap");
        let filter = large();
        save(&filter, &path).unwrap();
        let (opened, backing) = open_backed::<Bloom>(&path).unwrap();
        // Saving puts another file in its place. The old file stays mapped, also after it is removed.
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
    fn small_files_and_run_tables_are_copied_and_checked() {
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
    /// `cargo test --release -p mayhap --lib cost_of_mapped_file_checks -- --ignored --nocapture`.
    #[test]
    #[ignore = "measurement, takes long"]
    fn cost_of_mapped_file_checks() {
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
    fn links_are_followed_permissions_kept_and_secrets_private() {
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
        // A file name of the maximum length works.
        save(&keyed, folder.0.join("n".repeat(250))).unwrap();
        assert!(matches!(save(&keyed, ""), Err(FileError::Io { .. })));
    }

    #[test]
    fn a_file_without_a_filter_is_rejected() {
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
    fn header_damage_is_found_on_open_and_payload_damage_by_verify() {
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
