//! The arbitrator's directory: its log and its promises lie in it. One process holds its lock; a server's data
//! directory is refused.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use trireme_log::own_file;
use trireme_node::file_lock::try_lock;

/// The file that an arbitrator locks while it uses the directory.
const LOCK_FILE: &str = "trireme-arbitrator.lock";
/// Files that only a server's data directory has.
const OF_A_SERVER: [&str; 2] = ["grastate.dat", "ibdata1"];

/// The reason why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The operating system refused.
    #[error("directory '{}': {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another arbitrator uses the directory.
    #[error("directory '{}' is in use by another arbitrator", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The directory belongs to a database server.
    #[error("directory '{}' belongs to a server ({file} lies there): an arbitrator needs one of its own", path.display())]
    OfServer {
        /// The directory.
        path: PathBuf,
        /// The server's file in it.
        file: &'static str,
    },
}

/// A directory that no other arbitrator can use while this value lives.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    _lock: File,
    /// The directory is removed at the end.
    temporary: Option<TempDir>,
}

impl Directory {
    /// Locks this directory, and makes it if it does not exist. `None`: a new directory, removed at the end. An
    /// arbitrator without a directory of its own comes back as an unknown replica with an empty log.
    pub fn take(path: Option<&Path>) -> Result<Directory, DirectoryError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| DirectoryError::Io { path, source }
        };
        let temporary = match path {
            Some(_) => None,
            None => {
                let made = tempfile::Builder::new()
                    .prefix("trireme-arbitrator-")
                    .tempdir();
                Some(made.map_err(io(&std::env::temp_dir()))?)
            }
        };
        let path = match (&temporary, path) {
            (Some(made), _) => made.path().to_owned(),
            (None, given) => given.unwrap_or(Path::new(".")).to_owned(),
        };
        let mut maker = DirBuilder::new();
        maker.recursive(true).mode(0o700); // the log holds all data of the databases
        maker.create(&path).map_err(io(&path))?;
        for file in OF_A_SERVER {
            if path.join(file).exists() {
                return Err(DirectoryError::OfServer { path, file });
            }
        }
        let lock = own_file::open_or_make(&path.join(LOCK_FILE)).map_err(io(&path))?;
        if !try_lock(&lock).map_err(io(&path))? {
            return Err(DirectoryError::InUse { path });
        }
        Ok(Directory {
            path,
            _lock: lock,
            temporary,
        })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the directory is removed when the process ends.
    pub fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_directory_is_one_arbitrators_alone() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("made/if/need/be");
        let first = Directory::take(Some(&path)).unwrap();
        let second = Directory::take(Some(&path));
        assert!(
            matches!(second, Err(DirectoryError::InUse { .. })),
            "{second:?}"
        );
        drop(first);
        assert!(!Directory::take(Some(&path)).unwrap().is_temporary());
        let mode = fs::metadata(&path).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o700, "{mode:o}");
    }

    #[test]
    fn a_servers_directory_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("grastate.dat"), "").unwrap();
        let taken = Directory::take(Some(dir.path()));
        assert!(
            matches!(taken, Err(DirectoryError::OfServer { .. })),
            "{taken:?}"
        );
        assert!(!dir.path().join(LOCK_FILE).exists());
    }

    #[test]
    fn a_temporary_one_is_removed() {
        let directory = Directory::take(None).unwrap();
        let path = directory.path().to_owned();
        assert!(directory.is_temporary() && path.exists());
        drop(directory);
        assert!(!path.exists());
    }
}
