//! A server with a slow disk, by a small library that is loaded into it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::packages::{self, PackageError};

/// What each flush, and each write past the page cache, takes longer.
const DELAY: Duration = Duration::from_millis(20);

/// The library's source.
const SOURCE: &str = include_str!("slow_disk.c");

/// Why a disk cannot be slowed down.
#[derive(Debug, thiserror::Error)]
pub enum SlowDiskError {
    /// No compiler.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The library does not compile.
    #[error("cc cannot compile the slow disk's library: {0}")]
    Compile(String),
    /// A file made trouble.
    #[error("cannot write {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// The disk of one node, which can be made slow while the server runs.
pub struct SlowDisk {
    control: PathBuf,
}

impl SlowDisk {
    /// Prepares node `i` of a cluster that is not started yet; its disk is as fast as it is.
    pub fn prepare(cluster: &mut Cluster, i: usize) -> Result<Self, SlowDiskError> {
        let cc = packages::find("cc", "gcc")?;
        let dir = cluster.node(i).dir.clone();
        let [source, library, control] =
            ["slow_disk.c", "slow_disk.so", "slow_disk"].map(|name| dir.join(name));
        write(&source, SOURCE.as_bytes())?;
        let output = Command::new(cc)
            .args(["-O2", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .output()
            .map_err(|error| SlowDiskError::Compile(error.to_string()))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let first = text.lines().next().unwrap_or_default();
            return Err(SlowDiskError::Compile(first.to_string()));
        }
        let disk = Self { control };
        disk.set(Duration::ZERO)?;
        cluster.set_environment(i, "LD_PRELOAD", &library);
        cluster.set_environment(i, "TRIREME_SLOW_DISK", &disk.control);
        // Writes that the kernel carries out by itself are not seen by the library.
        let arguments = &mut cluster.settings_mut().mariadbd_args;
        arguments.push("--innodb-use-native-aio=OFF".to_string());
        Ok(disk)
    }

    /// From now on the disk is slow.
    pub fn apply(&self) -> Result<(), SlowDiskError> {
        self.set(DELAY)
    }

    /// From now on the disk is as fast as it is.
    pub fn lift(&self) -> Result<(), SlowDiskError> {
        self.set(Duration::ZERO)
    }

    fn set(&self, delay: Duration) -> Result<(), SlowDiskError> {
        // In place: the server has mapped the file.
        write(&self.control, &(delay.as_micros() as u32).to_ne_bytes())
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), SlowDiskError> {
    fs::write(path, bytes).map_err(|source| SlowDiskError::Io {
        path: path.to_path_buf(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_reaches_a_program_that_flushes() {
        let (Ok(cc), Ok(dd)) = (
            packages::find("cc", "gcc"),
            packages::find("dd", "coreutils"),
        ) else {
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("s.c"), SOURCE).unwrap();
        let compiled = Command::new(cc)
            .args(["-shared", "-fPIC", "-o"])
            .args([path("s.so"), path("s.c")])
            .arg("-ldl")
            .status();
        assert!(compiled.unwrap().success());
        let disk = SlowDisk {
            control: path("control"),
        };
        let flush_ms = |delay_ms| {
            disk.set(Duration::from_millis(delay_ms)).unwrap();
            let start = std::time::Instant::now();
            let status = Command::new(&dd)
                .args([
                    "if=/dev/zero",
                    "bs=1",
                    "count=1",
                    "conv=fsync",
                    "status=none",
                ])
                .arg(format!("of={}", path("file").display()))
                .env("LD_PRELOAD", path("s.so"))
                .env("TRIREME_SLOW_DISK", &disk.control)
                .status();
            assert!(status.unwrap().success());
            start.elapsed().as_millis()
        };
        assert!(flush_ms(700) >= 700);
        assert!(flush_ms(0) < 700);
    }
}
