//! Files that only this process's user can open, and that are never reached through a link: they hold data of the
//! database, or a key.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;

const OWNER_ONLY: u32 = 0o600;
const OTHERS: u32 = 0o077;

/// Opens for reading and writing, but follows no link. A pipe in the file's place does not block.
fn no_link() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    options.read(true).write(true).custom_flags(flags);
    options
}

/// Opens an existing file, for reading and writing.
pub fn open(path: &Path) -> io::Result<File> {
    no_link().open(path)
}

/// As [`open`], but makes an empty file if there is none.
pub fn open_or_make(path: &Path) -> io::Result<File> {
    match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path),
        opened => opened,
    }
}

/// Makes an empty file, for reading and writing. An old file is removed and not emptied: if it were a link, the bytes
/// would go elsewhere.
pub fn create(path: &Path) -> io::Result<File> {
    match make(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            make(path)
        }
        made => made,
    }
}

fn make(path: &Path) -> io::Result<File> {
    no_link().create_new(true).mode(OWNER_ONLY).open(path)
}

/// Removes the rights of other users; earlier versions granted some to the group. Fails for a file of another owner.
pub fn keep_others_out(file: &File) -> io::Result<()> {
    match file.metadata()?.mode() & OTHERS {
        0 => Ok(()),
        _ => file.set_permissions(Permissions::from_mode(OWNER_ONLY)),
    }
}
