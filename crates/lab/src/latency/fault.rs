//! The faults of part `failover`.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use trireme_testbed::interrupt;
use trireme_testbed::packages::{self, PackageError};

use super::error::LatencyError;
use super::site::Site;

/// The length of a fault that ends.
const LENGTH: Duration = Duration::from_secs(10);

/// A fault of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// Killed with -9.
    Kill,
    /// Paused with SIGSTOP for 10 s.
    Pause,
    /// Cut off: its packets vanish, no connection is reset.
    Cut,
    /// Under FLUSH TABLES WITH READ LOCK for 10 s.
    Lock,
    /// Under mariabackup.
    Backup,
}

impl Fault {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill -9",
            Self::Pause => "SIGSTOP",
            Self::Cut => "cut off",
            Self::Lock => "read lock",
            Self::Backup => "mariabackup",
        }
    }

    /// Checks that all needed programs are installed.
    pub fn check(self) -> Result<(), PackageError> {
        match self {
            Self::Backup => packages::find("mariabackup", "mariadb-backup").map(drop),
            _ => Ok(()),
        }
    }

    /// Strikes node `victim` now, and ends a fault that has an end; returns at `end` or a little later.
    pub fn strike(self, site: &mut Site, victim: usize, end: Instant) -> Result<(), LatencyError> {
        let over = (Instant::now() + LENGTH).min(end);
        match self {
            Self::Kill => site.cluster.kill_node(victim)?,
            Self::Cut => site.network().cut(victim),
            Self::Pause => {
                site.cluster.pause_node(victim)?;
                sleep_until(over)?;
                site.cluster.resume_node(victim)?;
            }
            Self::Lock => {
                let mut sql = site.cluster.sql(victim)?;
                sql.exec("FLUSH TABLES WITH READ LOCK")?;
                sleep_until(over)?;
                sql.exec("UNLOCK TABLES")?;
            }
            Self::Backup => {
                Backup::start(site, victim)?.finish(end)?;
            }
        }
        sleep_until(end)
    }
}

/// Sleeps until `moment`. Fails soon after the user has asked to stop.
pub fn sleep_until(moment: Instant) -> Result<(), LatencyError> {
    Ok(interrupt::sleep(
        moment.saturating_duration_since(Instant::now()),
    )?)
}

/// A running mariabackup; dropping it kills it.
struct Backup {
    child: Child,
    log: std::path::PathBuf,
}

impl Backup {
    fn start(site: &Site, victim: usize) -> Result<Self, LatencyError> {
        let dir = site.dir(victim);
        let log = dir.join("backup.log");
        let io_error = |source| LatencyError::Io {
            path: log.clone(),
            source,
        };
        let output = File::create(&log).map_err(io_error)?;
        let child = Command::new(packages::find("mariabackup", "mariadb-backup")?)
            .arg(format!("--defaults-file={}", dir.join("my.cnf").display()))
            .args(["--backup", "--galera-info", "--user=root"])
            .arg(format!("--socket={}", dir.join("mysqld.sock").display()))
            .arg(format!("--target-dir={}", dir.join("backup").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .map_err(io_error)?;
        Ok(Self { child, log })
    }

    fn finish(mut self, end: Instant) -> Result<(), LatencyError> {
        while Instant::now() < end {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(_)) | Err(_) => {
                    let last = trireme_testbed::process::tail(&self.log, 1).concat();
                    return Err(LatencyError::Backup(last));
                }
                Ok(None) => interrupt::sleep(Duration::from_millis(50))?,
            }
        }
        // A long backup has not ended, but the window has seen its effects.
        Ok(())
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
