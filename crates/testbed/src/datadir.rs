//! Data directories: one empty database made by `mariadb-install-db`, and copies of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::{self, PackageError};

/// Why there is no data directory.
#[derive(Debug, thiserror::Error)]
pub enum DatadirError {
    /// A program is missing.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// `mariadb-install-db` failed.
    #[error("mariadb-install-db failed in {dir}: {output}", dir = dir.display())]
    Install {
        /// The directory it was to fill.
        dir: PathBuf,
        /// The end of what it said.
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

/// Makes an empty database in `dir`: `root` without a password, from this machine only.
pub fn install(dir: &Path) -> Result<(), DatadirError> {
    let mut command = Command::new(packages::install_db()?);
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", dir.display()))
        .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
        // Root's accounts by address: servers that resolve no names ignore others.
        .arg("--skip-name-resolve");
    if rustix::process::getuid().is_root() {
        command.arg("--user=root");
    }
    let failed = |output: String| DatadirError::Install {
        dir: dir.to_path_buf(),
        output,
    };
    let output = command
        .output()
        .map_err(|error| failed(error.to_string()))?;
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

/// Copies a data directory with all below it. `to` must not exist, or be empty.
pub fn copy(from: &Path, to: &Path) -> Result<(), DatadirError> {
    copy_tree(from, to).map_err(|source| DatadirError::Copy {
        from: from.to_path_buf(),
        to: to.to_path_buf(),
        source,
    })
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
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
    fn a_tree_is_copied_whole() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/f"), "text").unwrap();
        copy(&dir.path().join("a"), &dir.path().join("c")).unwrap();
        assert_eq!(
            fs::read_to_string(dir.path().join("c/b/f")).unwrap(),
            "text"
        );
    }

    #[test]
    fn a_missing_source_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = copy(&dir.path().join("none"), &dir.path().join("c")).unwrap_err();
        assert!(error.to_string().contains("none"));
    }
}
