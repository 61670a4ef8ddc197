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

/// Makes `dir` for this user only. Refuses a directory of another user (in /tmp), who could replace the programs in it.
pub fn make_private_dir(dir: &Path) -> Result<(), ClusterError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(io_error("create", dir))?;
    let owner = fs::metadata(dir).map_err(io_error("look at", dir))?.uid();
    if owner != rustix::process::getuid().as_raw() {
        return Err(ClusterError::Settings(format!(
            "{} belongs to another user; choose another --dir",
            dir.display()
        )));
    }
    Ok(())
}
