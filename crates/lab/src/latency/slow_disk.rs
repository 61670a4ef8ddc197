//! Makes the disk of a server slow, by a small library that is loaded into the server.

use std::path::PathBuf;
use std::time::Duration;

use trireme_testbed::Node;
use trireme_testbed::cluster::Cluster;
use trireme_testbed::preload::{self, PreloadError};

/// The additional time of each flush, and of each write past the page cache.
const DELAY: Duration = Duration::from_millis(20);

/// The name of the library.
const LIBRARY: &str = "slow_disk";
const SOURCE: &str = include_str!("slow_disk.c");

/// The disk of one node. It can be made slow while the server runs.
pub struct SlowDisk {
    control: PathBuf,
}

impl SlowDisk {
    /// Prepares node `i` of a cluster that has not started yet. Its disk is not slow at first.
    pub fn prepare(cluster: &mut Cluster, i: usize) -> Result<(), PreloadError> {
        preload::into(cluster, [i], LIBRARY, SOURCE)?;
        let disk = Self::of(cluster.node(i));
        cluster.set_environment(i, "TRIREME_SLOW_DISK", &disk.control);
        disk.lift()
    }

    /// The disk of a prepared node.
    pub fn of(node: &Node) -> Self {
        let control = node.dir.join("slow_disk");
        Self { control }
    }

    /// From now on the disk is slow.
    pub fn apply(&self) -> Result<(), PreloadError> {
        self.set(DELAY)
    }

    /// From now on the disk is not slow.
    pub fn lift(&self) -> Result<(), PreloadError> {
        self.set(Duration::ZERO)
    }

    fn set(&self, delay: Duration) -> Result<(), PreloadError> {
        preload::write(&self.control, &(delay.as_micros() as u32).to_ne_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use trireme_testbed::packages;

    /// Longer than a real flush takes on a busy machine.
    const LONG_MS: u64 = 3_000;

    #[test]
    fn the_delay_reaches_a_program_that_flushes() {
        let (Ok(_), Ok(dd)) = (
            packages::find("cc", "gcc"),
            packages::find("dd", "coreutils"),
        ) else {
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let library = preload::compile(dir.path(), LIBRARY, SOURCE).unwrap();
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
                .env("LD_PRELOAD", &library)
                .env("TRIREME_SLOW_DISK", &disk.control)
                .status();
            assert!(status.unwrap().success());
            start.elapsed().as_millis() as u64
        };
        assert!(flush_ms(LONG_MS) >= LONG_MS);
        assert!(flush_ms(0) < LONG_MS);
    }
}
