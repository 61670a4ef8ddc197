//! New files and directories that nobody else may read or redirect.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Of a key or a secret.
pub(crate) const PRIVATE: u32 = 0o600;
/// Of a certificate or a configuration.
pub(crate) const PUBLIC: u32 = 0o644;

/// Writes a file that must not be there yet, and brings it to the disk.
pub(crate) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true) // O_EXCL: a link that somebody has laid is not followed
        .mode(mode)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Writes beside the file, and puts that in its place: a reader sees the old or the new one, whole.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    if_there(fs::remove_file(&new))?;
    write_new(&new, bytes, mode)?;
    fs::rename(&new, path)?;
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => File::open(dir)?.sync_all(),
        _ => Ok(()),
    }
}

/// Removes a directory, if it is there, with all that is in it.
pub(crate) fn remove_dir(path: &Path) -> io::Result<()> {
    if_there(fs::remove_dir_all(path))
}

/// What was not there has been removed, too.
fn if_there(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes a directory of its owner's alone, and those above it.
pub(crate) fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
