//! The directories of the schedules, and the tables that every cluster begins with.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::client::{ACCOUNTS, BALANCE, KEYS};
use super::schedule::NODES;
use super::{CrashError, Plan, io_error};
use trireme_testbed::Server;
use trireme_testbed::cluster::Cluster;
use trireme_testbed::directories::make_private_dir;
use trireme_testbed::settings::{Settings, default_dir};
use trireme_testbed::systems::Wsrep;
use trireme_testbed::template::Template;

/// Small redo logs are copied faster.
const REDO_LOG: &str = "--innodb-log-file-size=16M";

/// The directory of all schedules of this user.
pub struct Stage {
    dir: PathBuf,
    /// Locked while this lives: another invocation would kill the servers of this one.
    _lock: File,
}

impl Stage {
    /// Makes the directory. Fails if another invocation uses it.
    pub fn open() -> Result<Self, CrashError> {
        let mut name = default_dir().into_os_string();
        name.push("-crash");
        let dir = PathBuf::from(name);
        make_private_dir(&dir)?;
        Ok(Self {
            _lock: lock(&dir)?,
            dir,
        })
    }

    /// Lays out a cluster in a directory called `name`. First removes the files and servers that an earlier
    /// invocation left there. `adapt` may change the settings.
    pub fn cluster(
        &self,
        name: &str,
        plan: &Plan,
        system: &Wsrep,
        adapt: impl FnOnce(&mut Settings),
    ) -> Result<Cluster, CrashError> {
        let dir = self.dir.join(name);
        Cluster::clear(&dir)?;
        let mut settings = Settings::new(&dir, NODES, system.provider.clone());
        settings.template = Some(self.template()?);
        settings.mariadbd_args.push(REDO_LOG.to_string());
        if !system.is_galera() {
            settings.provider_options = format!("repl.durability={}", plan.durability());
        }
        adapt(&mut settings);
        Ok(Cluster::create(settings, |_| {})?)
    }

    /// A data directory with the tables, which is made once and kept.
    fn template(&self) -> Result<PathBuf, CrashError> {
        let template = Template {
            dir: &self.dir,
            name: "crash",
            server: Server::MariaDb,
            arguments: &[REDO_LOG],
        };
        template.make(|_| {}, fill)
    }
}

/// Takes the lock that allows only one invocation at a time in `dir`. It ends with its process.
fn lock(dir: &Path) -> Result<File, CrashError> {
    let path = dir.join("lock");
    let file = File::create(&path).map_err(io_error(&path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(CrashError::Busy(path)),
        Err(error) => Err(io_error(&path)(error.into())),
    }
}

/// Makes the tables, and stops the server.
fn fill(cluster: &mut Cluster) -> Result<(), CrashError> {
    cluster.start()?;
    let mut sql = cluster.sql(0)?;
    for statement in tables() {
        sql.exec(&statement)?;
    }
    drop(sql);
    Ok(cluster.stop()?)
}

fn tables() -> [String; 5] {
    [
        "CREATE DATABASE crash".to_string(),
        "CREATE TABLE crash.lists (k INT PRIMARY KEY, v TEXT NOT NULL) ENGINE=InnoDB".to_string(),
        format!(
            "INSERT INTO crash.lists SELECT seq, '' FROM crash.seq_0_to_{}",
            KEYS - 1
        ),
        "CREATE TABLE crash.accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL) ENGINE=InnoDB"
            .to_string(),
        format!(
            "INSERT INTO crash.accounts SELECT seq, {BALANCE} FROM crash.seq_0_to_{}",
            ACCOUNTS - 1
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_invocation_at_a_time_has_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let first = lock(dir.path()).unwrap();
        assert!(matches!(lock(dir.path()), Err(CrashError::Busy(_))));
        drop(first);
        assert!(lock(dir.path()).is_ok());
    }
}
