//! Files that are no filters (pictures, pages, reports): there whole, or not at all.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use mayhap::file::{self, Readers};

use crate::interrupt;
use crate::trouble::Trouble;

/// Do both names lead to one file? What is not there yet is the same if the names are.
pub(crate) fn is_same(path: &Path, other: &Path) -> bool {
    match (fs::metadata(path), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => path == other,
    }
}

/// Writes `bytes` to `path`, in one step where that is a file. A pipe or a device just takes them.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Trouble> {
    let takes_bytes = fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir());
    if takes_bytes {
        let written = OpenOptions::new().write(true).open(path).and_then(|mut out| out.write_all(bytes));
        return written.map_err(|cause| Trouble::NoPlace { path: path.to_owned(), cause });
    }
    let _polite = interrupt::polite();
    let written = file::replace(path, Readers::AsUsual, |_| Ok(()), |out| out.write_all(bytes));
    interrupt::check()?;
    Ok(written?)
}
