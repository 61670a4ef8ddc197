//! Data directories: the server's own program makes one empty database, and nodes get copies of it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::cluster_error::{ClusterError, io_error};
use crate::directories::remove_dir;
use crate::packages::PackageError;
use crate::server::Server;

/// The reason why there is no data directory.
#[derive(Debug, thiserror::Error)]
pub enum DatadirError {
    /// A program is missing.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The server's install program failed.
    #[error("cannot make an empty database for {server} in {dir}: {output}", dir = dir.display())]
    Install {
        /// The server's name.
        server: &'static str,
        /// The target directory.
        dir: PathBuf,
        /// The end of the program's output.
        output: String,
    },
    /// Copying failed.
    #[error("cannot copy {from} to {to}: {source}", from = from.display(), to = to.display())]
    Copy {
        /// The directory copied.
        from: PathBuf,
        /// The copy.
        to: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// Makes the data directory `dir`: a copy of `source`, or an empty database. It gets its name only when it is complete;
/// one that is there stays as it is.
pub(crate) fn make(server: Server, source: Option<&Path>, dir: &Path) -> Result<(), ClusterError> {
    if dir.exists() {
        return Ok(());
    }
    let new = dir.with_extension("new");
    // One that a killed program left.
    remove_dir(&new)?;
    match source {
        Some(source) => copy(source, &new)?,
        None => install(server, &new)?,
    }
    fs::rename(&new, dir).map_err(io_error("make", dir))
}

/// Makes an empty database in `dir`: `root` without a password, from this machine only.
pub fn install(server: Server, dir: &Path) -> Result<(), DatadirError> {
    let failed = |output: String| DatadirError::Install {
        server: server.name(),
        dir: dir.to_path_buf(),
        output,
    };
    let output = run_install(server, dir)?.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(5)
        .collect();
    Err(failed(lines.join(" / ")))
}

fn run_install(server: Server, dir: &Path) -> Result<io::Result<Output>, PackageError> {
    let mut command = server.install_command(dir)?;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(command.spawn().and_then(|mut child| {
        if let Some(mut input) = child.stdin.take() {
            // If the program ends without reading this, its own error says why.
            let _ = input.write_all(server.accounts().as_bytes());
        }
        child.wait_with_output()
    }))
}

/// Copies a data directory with its content, but without the identity of its server. `to` must be empty or not exist.
pub fn copy(from: &Path, to: &Path) -> Result<(), DatadirError> {
    copy_tree(from, to).map_err(|source| DatadirError::Copy {
        from: from.to_path_buf(),
        to: to.to_path_buf(),
        source,
    })
}

/// The file with the identity of a MySQL server. The server makes a new one if it is missing.
const IDENTITY: &str = "auto.cnf";

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() == IDENTITY {
            continue;
        }
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_copied_without_the_servers_identity() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/f"), "text").unwrap();
        fs::write(dir.path().join("a/auto.cnf"), "server-uuid").unwrap();
        copy(&dir.path().join("a"), &dir.path().join("c")).unwrap();
        assert_eq!(
            fs::read_to_string(dir.path().join("c/b/f")).unwrap(),
            "text"
        );
        assert!(!dir.path().join("c/auto.cnf").exists());
    }

    #[test]
    fn a_directory_that_was_half_made_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let [source, half, data] = ["source", "data.new", "data"].map(|name| dir.path().join(name));
        for (dir, file) in [(&source, "whole"), (&half, "half")] {
            fs::create_dir_all(dir).unwrap();
            fs::write(dir.join(file), "").unwrap();
        }
        make(Server::MariaDb, Some(&source), &data).unwrap();
        assert!(data.join("whole").exists() && !data.join("half").exists());
        // Its database may be in use by now.
        fs::write(source.join("later"), "").unwrap();
        make(Server::MariaDb, Some(&source), &data).unwrap();
        assert!(!data.join("later").exists());
    }

    #[test]
    fn a_missing_source_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = copy(&dir.path().join("none"), &dir.path().join("c")).unwrap_err();
        assert!(error.to_string().contains("none"));
    }
}
