//! Limits the processor time of chosen processes, by a control group of their own (version 1 or 2).
//!
//! A group begins without a limit. It owns its directory below the mounted controller. When it is dropped, its
//! processes return to the group of this process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The mount point of control groups.
const MOUNT: &str = "/sys/fs/cgroup";

/// The names of our groups begin with this; the id of this process and a name follow.
const PREFIX: &str = "trireme-";

/// The smallest quota that the kernel accepts.
const LEAST_QUOTA: Duration = Duration::from_millis(1);

/// The reason why processes cannot be limited.
#[derive(Debug, thiserror::Error)]
pub enum CpuShareError {
    /// The kernel offers no control groups for processor time, or has them mounted elsewhere.
    #[error(
        "no control group for processor time below {MOUNT}; needs a kernel with CONFIG_CFS_BANDWIDTH and the mounted controller: mount -t cgroup2 none {MOUNT}"
    )]
    Missing,
    /// The system refuses the limit.
    #[error("cannot limit processor time ({path}: {source}); needs root and control groups that can be written: run the same command with sudo, not in a container", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The share is smaller than the kernel can give.
    #[error(
        "{processors} of a processor is too little for periods of {period_ms} ms; take at least {least}"
    )]
    TooSmall {
        /// The wanted share.
        processors: f64,
        /// The length of a period.
        period_ms: u128,
        /// The smallest possible share.
        least: f64,
    },
}

/// The waits of a group's processes for their share: totals since the group was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttling {
    /// The periods in which a process wanted to run under a limit.
    pub periods: u64,
    /// The periods of these in which the share was used up.
    pub throttled_periods: u64,
    /// The time that processes waited, summed over all processors.
    pub throttled: Duration,
}

impl Throttling {
    /// The difference to `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled_periods: self
                .throttled_periods
                .saturating_sub(earlier.throttled_periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
        }
    }

    /// Reads `cpu.stat` of either version.
    fn parse(text: &str) -> Self {
        let number = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            value.and_then(|value| value.trim().parse::<u64>().ok())
        };
        let v1 = number("throttled_time ").map(Duration::from_nanos);
        let v2 = number("throttled_usec ").map(Duration::from_micros);
        Self {
            periods: number("nr_periods ").unwrap_or(0),
            throttled_periods: number("nr_throttled ").unwrap_or(0),
            throttled: v1.or(v2).unwrap_or_default(),
        }
    }
}

/// The version of the control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A group of processes with a share of the processors. Dropping it lifts the limit, and moves the remaining processes
/// back to the former group of this process.
#[derive(Debug)]
pub struct CpuShare {
    dir: PathBuf,
    home: PathBuf,
    version: Version,
}

impl CpuShare {
    /// Makes a group without processes and without a limit. The groups of one process need different names.
    pub fn new(name: &str) -> Result<Self, CpuShareError> {
        let (root, version) = root().ok_or(CpuShareError::Missing)?;
        clear(&root);
        if version == Version::Two {
            // The controller is usually enabled already. If it cannot be enabled, cpu.max is missing below, and that
            // error says so.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+cpu");
        }
        let dir = root.join(format!("{PREFIX}{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).map_err(io_error(&dir))?;
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let home = root.join(own_group(&groups, version).trim_start_matches('/'));
        let share = Self { dir, home, version };
        share.lift()?;
        Ok(share)
    }

    /// Moves process `pid` with all its threads into the group. Its future children will be in it, too.
    pub fn add(&self, pid: u32) -> Result<(), CpuShareError> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// From now on the processes together get `processors` (0.25: a quarter of one) in each `period`.
    pub fn limit(&self, processors: f64, period: Duration) -> Result<(), CpuShareError> {
        let quota = quota(processors, period)?;
        self.set(Some(quota), period)
    }

    /// Removes the limit.
    pub fn lift(&self) -> Result<(), CpuShareError> {
        // The period is the kernel's default.
        self.set(None, Duration::from_millis(100))
    }

    /// The waits of the processes so far.
    pub fn throttling(&self) -> Throttling {
        let text = fs::read_to_string(self.dir.join("cpu.stat"));
        Throttling::parse(&text.unwrap_or_default())
    }

    fn set(&self, quota: Option<Duration>, period: Duration) -> Result<(), CpuShareError> {
        let number =
            |none: &str| quota.map_or(none.to_string(), |quota| quota.as_micros().to_string());
        let period = period.as_micros();
        match self.version {
            Version::One => {
                // Without a limit any period is valid; with a limit the kernel checks the new value against the other
                // one.
                self.write("cpu.cfs_quota_us", "-1")?;
                self.write("cpu.cfs_period_us", &period.to_string())?;
                self.write("cpu.cfs_quota_us", &number("-1"))
            }
            Version::Two => self.write("cpu.max", &format!("{} {period}", number("max"))),
        }
    }

    fn write(&self, file: &str, text: &str) -> Result<(), CpuShareError> {
        let path = self.dir.join(file);
        fs::write(&path, text).map_err(io_error(&path))
    }
}

impl Drop for CpuShare {
    fn drop(&mut self) {
        let _ = self.lift();
        // The kernel removes only an empty group. Processes that have ended meanwhile cannot be moved, and need not be.
        let members = fs::read_to_string(self.dir.join("cgroup.procs")).unwrap_or_default();
        for pid in members.lines() {
            let _ = fs::write(self.home.join("cgroup.procs"), pid);
        }
        let _ = fs::remove_dir(&self.dir);
    }
}

/// The processor time in each period.
fn quota(processors: f64, period: Duration) -> Result<Duration, CpuShareError> {
    let quota = period.mul_f64(processors.max(0.0));
    if quota < LEAST_QUOTA {
        return Err(CpuShareError::TooSmall {
            processors,
            period_ms: period.as_millis(),
            least: LEAST_QUOTA.div_duration_f64(period),
        });
    }
    Ok(quota)
}

fn root() -> Option<(PathBuf, Version)> {
    let one = Path::new(MOUNT).join("cpu");
    if one.join("cgroup.procs").exists() {
        return Some((one, Version::One));
    }
    let two = PathBuf::from(MOUNT);
    let controllers = fs::read_to_string(two.join("cgroup.controllers")).ok()?;
    let has_cpu = controllers.split_whitespace().any(|name| name == "cpu");
    has_cpu.then_some((two, Version::Two))
}

/// The group of a process, from its `/proc/PID/cgroup` with lines `number:controllers:path`.
fn own_group(groups: &str, version: Version) -> &str {
    let mut lines = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_once(':')
    });
    let found = lines.find(|(controllers, _)| match version {
        Version::One => controllers.split(',').any(|name| name == "cpu"),
        Version::Two => controllers.is_empty(),
    });
    found.map_or("/", |(_, path)| path)
}

/// Removes the groups of programs that have ended. The kernel keeps the groups that still have processes.
fn clear(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let owner = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split_once('-')?.0.parse::<u32>().ok());
        let has_ended = |pid: u32| !Path::new("/proc").join(pid.to_string()).exists();
        if owner.is_some_and(has_ended) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> CpuShareError {
    let path = path.to_path_buf();
    move |source| CpuShareError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(5);

    #[test]
    fn a_quarter_of_five_milliseconds_is_the_quota() {
        assert_eq!(quota(0.25, PERIOD).unwrap(), Duration::from_micros(1250));
        assert_eq!(quota(1.5, PERIOD).unwrap(), Duration::from_micros(7500));
        let refused = quota(0.1, PERIOD).unwrap_err().to_string();
        assert!(refused.ends_with("take at least 0.2"), "{refused}");
        assert!(quota(-1.0, PERIOD).is_err());
    }

    #[test]
    fn the_statistics_of_both_versions_are_read() {
        let v1 = "nr_periods 10\nnr_throttled 4\nthrottled_time 2000000\nnr_bursts 0\n";
        let v2 = "usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2000\n";
        let expected = Throttling {
            periods: 10,
            throttled_periods: 4,
            throttled: Duration::from_millis(2),
        };
        assert_eq!(Throttling::parse(v1), expected);
        assert_eq!(Throttling::parse(v2), expected);
        assert_eq!(Throttling::parse(""), Throttling::default());
    }

    #[test]
    fn the_group_of_this_process_is_found() {
        let v1 = "9:name=systemd:/a\n2:cpuacct,cpu:/b/c\n0::/d\n";
        assert_eq!(own_group(v1, Version::One), "/b/c");
        assert_eq!(own_group(v1, Version::Two), "/d");
        assert_eq!(own_group("", Version::Two), "/");
    }

    /// Needs root and control groups; elsewhere it shows only that the error has a remedy.
    #[test]
    fn a_busy_process_is_held_to_its_share() {
        let share = match CpuShare::new("test") {
            Ok(share) => share,
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("sudo") || text.contains("mount"), "{text}");
                return;
            }
        };
        let mut busy = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let limited = share
            .add(busy.id())
            .and_then(|()| share.limit(0.25, PERIOD));
        std::thread::sleep(Duration::from_millis(300));
        let throttling = share.throttling();
        let dir = share.dir.clone();
        busy.kill().unwrap();
        busy.wait().unwrap();
        drop(share);
        limited.unwrap();
        assert!(throttling.throttled_periods > 10, "{throttling:?}");
        assert!(!dir.exists());
    }
}
