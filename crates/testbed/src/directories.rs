//! The directories of clusters: each belongs to one user, and is removed with its content.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use crate::cluster_error::{ClusterError, io_error};

/// Removes `dir` with its content, if it exists.
pub(crate) fn remove_dir(dir: &Path) -> Result<(), ClusterError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error("remove", dir)(error))
        }
        _ => Ok(()),
    }
}

/// Makes `dir` for this user only, or takes one that is.
pub fn make_private_dir(dir: &Path) -> Result<(), ClusterError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(io_error("create", dir))?;
    check_private(dir)
}

/// Refuses a directory in which another user (of /tmp) could replace the programs, or plant a file that names some.
pub(crate) fn check_private(dir: &Path) -> Result<(), ClusterError> {
    let is = fs::metadata(dir).map_err(io_error("look at", dir))?;
    let refused = |reason: &str| {
        let text = format!("{} {reason}", dir.display());
        Err(ClusterError::Settings(text))
    };
    if is.uid() != rustix::process::getuid().as_raw() {
        return refused("belongs to another user; choose another --dir");
    }
    if is.mode() & 0o022 != 0 {
        return refused("may be written by others: chmod go-w it, or choose another --dir");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_that_others_may_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |mode| {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
            make_private_dir(dir.path()).err().map(|e| e.to_string())
        };
        assert_eq!(refused(0o700), None);
        assert_eq!(refused(0o755), None);
        for mode in [0o770, 0o707] {
            let reason = refused(mode).unwrap();
            assert!(reason.contains("may be written by others"), "{reason}");
        }
    }
}
