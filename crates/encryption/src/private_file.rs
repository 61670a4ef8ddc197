//! Creates and replaces files and directories so that no other user can read them or redirect the write.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// The mode of keys and secrets.
pub(crate) const PRIVATE: u32 = 0o600;
/// The mode of certificates and configurations.
pub(crate) const PUBLIC: u32 = 0o644;

/// Writes a file that must not exist yet, and syncs it to the disk. If that fails, no file is left.
pub(crate) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true) // O_EXCL: it does not follow a link that another user has placed
        .mode(mode)
        .open(path)?;
    fill(file, path, bytes)
}

/// Fills a new file. If that fails (the disk is full, say), removes the file: it would refuse the next attempt.
fn fill(mut file: File, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let filled = file.write_all(bytes).and_then(|()| file.sync_all());
    if filled.is_err() {
        if_there(fs::remove_file(path))?;
    }
    filled
}

/// Writes a new file beside the old one and renames it over the old one: readers see one of the two, complete. The
/// owner, the group and the mode of the old one stay, so that a server can still read what root replaces.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    if_there(fs::remove_file(&new))?;
    write_new(&new, bytes, mode)?;
    if let Err(error) = take_place(&new, path, mode) {
        if_there(fs::remove_file(&new))?;
        return Err(error);
    }
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => File::open(dir)?.sync_all(),
        _ => Ok(()),
    }
}

/// Gives the new file the owner, the group and the mode of the old one, if there is one, and then its name.
fn take_place(new: &Path, old: &Path, mode: u32) -> io::Result<()> {
    if let Ok(old) = fs::metadata(old) {
        let file = File::open(new)?;
        let now = file.metadata()?;
        if (old.uid(), old.gid()) != (now.uid(), now.gid()) {
            fchown(&file, Some(old.uid()), Some(old.gid()))?;
        }
        // The group may read a secret (root:mysql, 0640), others never.
        let mode = old.mode() & (mode | 0o040);
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    fs::rename(new, old)
}

/// Removes a directory with its content, if it exists.
pub(crate) fn remove_dir(path: &Path) -> io::Result<()> {
    if_there(fs::remove_dir_all(path))
}

/// Takes "not found" for a success: the file is gone, as wanted.
fn if_there(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes a directory that only its owner can enter, and its parents.
pub(crate) fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_filled_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        write_new(&path, b"", PRIVATE).unwrap();
        // The write fails, as it does on a full disk.
        let unwritable = File::open(&path).unwrap();
        assert!(fill(unwritable, &path, b"secret").is_err());
        write_new(&path, b"secret", PRIVATE).unwrap();
    }

    #[test]
    fn a_replaced_file_stays_readable_for_its_server() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        for (before, wanted) in [(0o640, 0o640), (0o600, 0o600), (0o664, 0o640)] {
            if_there(fs::remove_file(&path)).unwrap();
            write_new(&path, b"old", PRIVATE).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            // Only root may give a file to another group.
            let group = if std::os::unix::fs::chown(&path, None, Some(1)).is_ok() {
                1
            } else {
                fs::metadata(&path).unwrap().gid()
            };
            replace(&path, b"new", PRIVATE).unwrap();
            let now = fs::metadata(&path).unwrap();
            assert_eq!((now.mode() & 0o777, now.gid()), (wanted, group));
            assert_eq!(fs::read(&path).unwrap(), b"new");
        }
    }
}
