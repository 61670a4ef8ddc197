//! Files of this process's user alone, which no link leads elsewhere: they hold what was written to the database, or a key.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;

const OWNER_ONLY: u32 = 0o600;
const OTHERS: u32 = 0o077;

/// Reads and writes a file, but not what a link leads to. A pipe in its place makes nobody wait.
fn no_link() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    options.read(true).write(true).custom_flags(flags);
    options
}

/// Opens a file that is there, for reading and writing.
pub fn open(path: &Path) -> io::Result<File> {
    no_link().open(path)
}

/// The same; makes an empty one if there is none.
pub fn open_or_make(path: &Path) -> io::Result<File> {
    match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path),
        opened => opened,
    }
}

/// Makes an empty file, for reading and writing. The old one goes rather than being emptied: a link in its place would lead
/// what is written elsewhere.
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

/// Takes away what earlier versions allowed the group. Fails for a file of another owner.
pub fn keep_others_out(file: &File) -> io::Result<()> {
    match file.metadata()?.mode() & OTHERS {
        0 => Ok(()),
        _ => file.set_permissions(Permissions::from_mode(OWNER_ONLY)),
    }
}
