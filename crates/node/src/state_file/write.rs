//! Puts the file into place atomically: a reader sees the old file or the new one. Nothing is flushed.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::STATE_FILE;

/// The group may read the file, others not: keys of conflicts are data of the database.
const MODE: u32 = 0o640;

/// The reason why the file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    path: PathBuf,
    source: io::Error,
}

/// Writes the file of one data directory.
#[derive(Debug)]
pub struct StateWriter {
    path: PathBuf,
    new_path: PathBuf,
}

impl StateWriter {
    /// Returns the writer for `base_dir`.
    pub fn new(base_dir: &Path) -> StateWriter {
        StateWriter {
            path: base_dir.join(STATE_FILE),
            new_path: base_dir.join(format!("{STATE_FILE}.new")),
        }
    }

    /// Replaces the file.
    pub fn write(&self, bytes: &[u8]) -> Result<(), WriteError> {
        let written = self.write_new(bytes);
        let placed = written.and_then(|()| fs::rename(&self.new_path, &self.path));
        placed.map_err(|source| {
            // A partial file only takes room. If it cannot be removed, the next write overwrites it.
            let _ = fs::remove_file(&self.new_path);
            WriteError {
                path: self.path.clone(),
                source,
            }
        })
    }

    fn write_new(&self, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(MODE);
        options.open(&self.new_path)?.write_all(bytes)
    }
}
