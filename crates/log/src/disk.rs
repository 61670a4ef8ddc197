//! The few file operations that the log needs, as traits, so that the simulator and tests can bring a disk that fails.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::own_file;

/// One directory of files.
pub trait Disk: Send + Sync {
    /// Names of the regular files in the directory, in any order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Creates an empty file, in place of an existing one.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Opens an existing file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Renames a file, replacing any file with the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync_directory(&self) -> io::Result<()>;
    /// Returns the path of a file, for messages; the directory itself for an empty name.
    fn path(&self, name: &str) -> PathBuf;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Returns the length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Fills `buf` from `offset`, or fails.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Cuts the file to `length` bytes.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Flushes the file's data (and length) to stable storage.
    fn sync_data(&self) -> io::Result<()>;
}

/// A directory of the operating system.
pub struct OsDisk {
    dir: PathBuf,
    /// The directory itself, kept open: a flush must not depend on a free descriptor.
    handle: OnceLock<File>,
}

impl OsDisk {
    /// Returns the directory at `dir`.
    pub fn new(dir: &Path) -> Self {
        OsDisk {
            dir: dir.to_path_buf(),
            handle: File::open(dir).map(OnceLock::from).unwrap_or_default(),
        }
    }
}

impl Disk for OsDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            // A name that is not UTF-8 is not of this log.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(own_file::create(&self.path(name))?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = own_file::open(&self.path(name))?;
        // A file of another owner keeps its mode.
        let _ = own_file::keep_others_out(&file);
        Ok(Box::new(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        if self.handle.get().is_none() {
            let _ = self.handle.set(File::open(&self.dir)?);
        }
        self.handle.get().map_or(Ok(()), File::sync_all)
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() {
            self.dir.clone()
        } else {
            self.dir.join(name)
        }
    }
}

impl DiskFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buf, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn files_are_their_owners_also_those_of_earlier_versions() {
        let dir = tempfile::tempdir().unwrap();
        let disk = OsDisk::new(dir.path());
        disk.create("new").unwrap().write_all_at(b"x", 0).unwrap();
        assert_eq!(mode(&dir.path().join("new")), 0o600);
        fs::set_permissions(dir.path().join("new"), Permissions::from_mode(0o640)).unwrap();
        assert_eq!(disk.open("new").unwrap().length().unwrap(), 1);
        assert_eq!(mode(&dir.path().join("new")), 0o600);
        assert_eq!(disk.create("new").unwrap().length().unwrap(), 0);
    }

    #[test]
    fn a_link_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let disk = OsDisk::new(dir.path());
        let victim = dir.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, dir.path().join("link")).unwrap();
        assert!(disk.open("link").is_err());
        disk.create("link").unwrap().write_all_at(b"x", 0).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(mode(&dir.path().join("link")), 0o600);
    }
}
