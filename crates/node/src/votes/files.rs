//! The two files that take turns under the name of the file of promises. Both are kept open, and so is their directory: a
//! promise must not depend on a free descriptor, since a node that cannot promise has to leave its cluster.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, OFlags, RenameFlags, renameat, renameat_with, statat};
use rustix::io::Errno;

use super::FILE_NAME;

/// Name of the file that is written next.
const SPARE_NAME: &str = "trireme.gvwstate.dat.tmp";

/// The files hold a key.
const OWNER_ONLY: u32 = 0o600;
const OTHERS: u32 = 0o077;

/// Writes a file, but not what a link leads to.
fn no_link() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW.bits() as i32;
    options.write(true).custom_flags(flags);
    options
}

/// Opens a file that is there; one of an earlier version, which let the group read it, becomes its owner's alone.
fn open_own(path: &Path) -> io::Result<File> {
    let file = no_link().open(path)?;
    if file.metadata()?.mode() & OTHERS != 0 {
        file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
    }
    Ok(file)
}

/// The directory and the files in it.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    dir: File,
    /// Under [`SPARE_NAME`]; None: it is still to be made.
    spare: Option<File>,
    /// The file itself; None: there is none yet.
    current: Option<File>,
}

impl Files {
    pub(super) fn open(path: &Path) -> io::Result<Files> {
        let mut files = Files {
            path: path.to_path_buf(),
            dir: File::open(path)?,
            spare: None,
            // Written next but one: it too must not need a descriptor then.
            current: open_own(&path.join(FILE_NAME)).ok(),
        };
        files.prepare_spare();
        Ok(files)
    }

    /// For the next time; if it fails now, it is tried again then.
    fn prepare_spare(&mut self) {
        self.spare = self.make_spare().ok();
    }

    fn make_spare(&self) -> io::Result<File> {
        let path = self.path.join(SPARE_NAME);
        let make = || {
            let mut options = no_link();
            options.create_new(true).mode(OWNER_ONLY).open(&path)
        };
        match make() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&path)?;
                make()
            }
            made => made,
        }
    }

    /// The file to be written next. One that has lost its name, to a script that cleans the directory, is of no use.
    fn take_spare(&mut self) -> io::Result<File> {
        if let Some(spare) = self.spare.take() {
            let about = spare.metadata()?;
            let named = statat(&self.dir, SPARE_NAME, AtFlags::SYMLINK_NOFOLLOW);
            if named.is_ok_and(|n| (n.st_dev, n.st_ino) == (about.dev(), about.ino())) {
                return Ok(spare);
            }
        }
        self.make_spare()
    }

    /// Puts these bytes in the place of the file, atomically and flushed. Err: the file is as it was, or has them.
    pub(super) fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let spare = self.take_spare()?;
        let written = (|| {
            spare.write_all_at(bytes, 0)?;
            spare.set_len(bytes.len() as u64)?;
            spare.sync_all()
        })();
        if let Err(error) = written {
            self.spare = Some(spare);
            return Err(error);
        }
        let (dir, names) = (&self.dir, (SPARE_NAME, FILE_NAME));
        let exchanged = match &self.current {
            Some(_) => renameat_with(dir, names.0, dir, names.1, RenameFlags::EXCHANGE),
            None => Err(Errno::NOENT),
        };
        match exchanged {
            Ok(()) => self.spare = self.current.replace(spare),
            // It is the first time, somebody has removed the file, or the file system cannot do it.
            Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                renameat(dir, names.0, dir, names.1)?;
                self.current = Some(spare);
                self.prepare_spare();
            }
            Err(error) => {
                self.spare = Some(spare);
                return Err(error.into());
            }
        }
        // The new name is durable only once the directory is.
        self.dir.sync_all()
    }
}
