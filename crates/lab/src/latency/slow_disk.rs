//! A server with a slow disk, by a small library that is loaded into it.

use std::path::PathBuf;
use std::time::Duration;

use trireme_testbed::Node;
use trireme_testbed::cluster::Cluster;
use trireme_testbed::preload::{self, PreloadError};

/// What each flush, and each write past the page cache, takes longer.
const DELAY: Duration = Duration::from_millis(20);

/// The library.
const LIBRARY: &str = "slow_disk";
const SOURCE: &str = include_str!("slow_disk.c");

/// The disk of one node, which can be made slow while the server runs.
pub struct SlowDisk {
    control: PathBuf,
}

impl SlowDisk {
    /// Prepares node `i` of a cluster that is not started yet; its disk is as fast as it is.
    pub fn prepare(cluster: &mut Cluster, i: usize) -> Result<(), PreloadError> {
        preload::into(cluster, [i], LIBRARY, SOURCE)?;
        let disk = Self::of(cluster.node(i));
        cluster.set_environment(i, "TRIREME_SLOW_DISK", &disk.control);
        disk.lift()
    }

    /// The disk of a node that was prepared.
    pub fn of(node: &Node) -> Self {
        let control = node.dir.join("slow_disk");
        Self { control }
    }

    /// From now on the disk is slow.
    pub fn apply(&self) -> Result<(), PreloadError> {
        self.set(DELAY)
    }

    /// From now on the disk is as fast as it is.
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
            start.elapsed().as_millis()
        };
        assert!(flush_ms(700) >= 700);
        assert!(flush_ms(0) < 700);
    }
}
