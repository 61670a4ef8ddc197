//! The two files that take turns under the name of the file of promises. Both are kept open, and so is their directory:
//! a promise must not depend on a free descriptor, since a node that cannot promise has to leave its cluster.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, RenameFlags, renameat, renameat_with, statat};
use rustix::io::Errno;
use trireme_log::own_file;

use super::FILE_NAME;

/// Name of the file that is written next.
const SPARE_NAME: &str = "trireme.gvwstate.dat.tmp";

/// Opens an existing file. It holds a key, so a file that others can read, and that cannot be closed to them, is
/// refused.
fn open_own(path: &Path) -> io::Result<File> {
    let file = own_file::open(path)?;
    own_file::keep_others_out(&file)?;
    Ok(file)
}

/// The directory and the files in it.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    dir: File,
    /// The file under [`SPARE_NAME`]; None: it must still be made.
    spare: Option<File>,
    /// The present file; None: there is none yet.
    current: Option<File>,
}

impl Files {
    pub(super) fn open(path: &Path) -> io::Result<Files> {
        let mut files = Files {
            path: path.to_path_buf(),
            dir: File::open(path)?,
            spare: None,
            // This file is written next but one, and must not need a descriptor then either.
            current: open_own(&path.join(FILE_NAME)).ok(),
        };
        files.prepare_spare();
        Ok(files)
    }

    /// Makes the spare file for the next write. If that fails now, the next write tries again.
    fn prepare_spare(&mut self) {
        self.spare = self.make_spare().ok();
    }

    fn make_spare(&self) -> io::Result<File> {
        own_file::create(&self.path.join(SPARE_NAME))
    }

    /// Takes the file for the next write. A file that has lost its name, to a script that cleans the directory, is
    /// useless.
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

    /// Replaces the content of the file, atomically and flushed. Err: the file has the old bytes, or the new ones.
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
            // It is the first write, or somebody has removed the file, or the file system cannot exchange names.
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
        // The new name is durable only when the directory is.
        self.dir.sync_all()
    }
}
