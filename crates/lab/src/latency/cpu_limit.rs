//! A server with a tenth of a processor, by a control group (version 1 or 2).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Microseconds of a processor per period of 100 ms.
const QUOTA_US: u32 = 10_000;

/// The length of a period, the kernel's default.
const PERIOD_US: u32 = 100_000;

/// How our groups are called, with the id of this process behind.
const PREFIX: &str = "trireme-bench-";

/// Why a server cannot be held back.
#[derive(Debug, thiserror::Error)]
pub enum CpuLimitError {
    /// The kernel offers none, or not here.
    #[error(
        "no control group for processor time below /sys/fs/cgroup; needs a kernel with CONFIG_CFS_BANDWIDTH and the mounted controller: mount -t cgroup2 none /sys/fs/cgroup"
    )]
    Missing,
    /// Refused.
    #[error("cannot write {path}: {source}; needs root: sudo trireme bench latency --part slow", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// A group whose processes together have a tenth of a processor while it is in force. Dropping it lifts the limit, and
/// removes the group if its processes have ended.
pub struct CpuLimit {
    dir: PathBuf,
    version: Version,
}

#[derive(Clone, Copy)]
enum Version {
    One,
    Two,
}

impl CpuLimit {
    /// Puts process `pid` into a group of its own, without limit so far.
    pub fn new(pid: u32) -> Result<Self, CpuLimitError> {
        let (root, version) = root().ok_or(CpuLimitError::Missing)?;
        clear(&root);
        if matches!(version, Version::Two) {
            // Enabled already where it matters, or else the next file is missing and says so.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+cpu");
        }
        let dir = root.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(io_error(&dir))?;
        let limit = Self { dir, version };
        limit.set(None)?;
        limit.write("cgroup.procs", &pid.to_string())?;
        Ok(limit)
    }

    /// From now on the process has a tenth of a processor.
    pub fn apply(&self) -> Result<(), CpuLimitError> {
        self.set(Some(QUOTA_US))
    }

    /// From now on it has what it wants.
    pub fn lift(&self) -> Result<(), CpuLimitError> {
        self.set(None)
    }

    fn set(&self, quota_us: Option<u32>) -> Result<(), CpuLimitError> {
        let number = |none: &str| quota_us.map_or(none.to_string(), |us| us.to_string());
        match self.version {
            Version::One => {
                self.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
                self.write("cpu.cfs_quota_us", &number("-1"))
            }
            Version::Two => self.write("cpu.max", &format!("{} {PERIOD_US}", number("max"))),
        }
    }

    fn write(&self, file: &str, text: &str) -> Result<(), CpuLimitError> {
        let path = self.dir.join(file);
        fs::write(&path, text).map_err(io_error(&path))
    }
}

impl Drop for CpuLimit {
    fn drop(&mut self) {
        let _ = self.set(None);
        let _ = fs::remove_dir(&self.dir);
    }
}

fn root() -> Option<(PathBuf, Version)> {
    let one = Path::new("/sys/fs/cgroup/cpu");
    if one.join("cgroup.procs").exists() {
        return Some((one.to_path_buf(), Version::One));
    }
    let two = Path::new("/sys/fs/cgroup");
    let controllers = fs::read_to_string(two.join("cgroup.controllers")).ok()?;
    let has_cpu = controllers.split_whitespace().any(|name| name == "cpu");
    has_cpu.then(|| (two.to_path_buf(), Version::Two))
}

/// Removes groups of earlier invocations whose processes have ended; the kernel keeps the others.
fn clear(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> CpuLimitError {
    let path = path.to_path_buf();
    move |source| CpuLimitError::Io { path, source }
}
