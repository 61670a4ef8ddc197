//! The server program below a system. This file owns all in which MySQL differs from MariaDB: the program, the empty database,
//! lines of the option file, errors. The same code starts, kills and asks both.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::packages::{self, PackageError};

/// A server program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Server {
    /// The distribution's MariaDB.
    #[default]
    MariaDb,
    /// MySQL from the root that `scripts/mysql-root.sh` makes.
    MySql,
}

impl Server {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "MariaDB",
            Self::MySql => "MySQL",
        }
    }

    /// The end of the names of its data directories that are kept.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::MariaDb => "",
            Self::MySql => "-mysql",
        }
    }

    /// The program that serves.
    pub fn program(self) -> Result<PathBuf, PackageError> {
        match self {
            Self::MariaDb => packages::mariadbd(),
            Self::MySql => packages::mysqld(),
        }
    }

    /// The command that makes an empty database in `dir` and reads [`accounts`](Self::accounts) from its standard input.
    pub(crate) fn install_command(self, dir: &Path) -> Result<Command, PackageError> {
        let (program, arguments): (_, &[&str]) = match self {
            Self::MariaDb => (
                packages::install_db()?,
                &[
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                    // Root's accounts by address: servers that resolve no names ignore others.
                    "--skip-name-resolve",
                ],
            ),
            Self::MySql => (
                packages::mysqld()?,
                &["--initialize-insecure", "--init-file=/dev/stdin"],
            ),
        };
        let mut command = Command::new(program);
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", dir.display()))
            .args(arguments);
        if rustix::process::getuid().is_root() {
            command.arg("--user=root");
        }
        Ok(command)
    }

    /// Statements that complete the accounts of an empty database: `root` without a password, from this machine only.
    pub(crate) fn accounts(self) -> &'static str {
        match self {
            Self::MariaDb => "",
            // The server resolves no names, and Group Replication's recovery connects by address.
            Self::MySql => {
                "CREATE USER root@'127.0.0.1';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"
            }
        }
    }

    /// Lines of its option file by which both servers have the same defaults.
    pub(crate) fn default_lines(self) -> &'static str {
        match self {
            Self::MariaDb => "",
            // Its other protocol would take a port of this machine.
            Self::MySql => "mysqlx=OFF\nskip-log-bin\n",
        }
    }

    /// Its name for an option that MariaDB calls `line`, with the value.
    pub(crate) fn option_line(self, line: &str) -> String {
        match (self, line.split_once('=')) {
            // MariaDB's one log file is what MySQL divides into many.
            (Self::MySql, Some(("innodb-log-file-size", size))) => {
                format!("innodb-redo-log-capacity={size}")
            }
            _ => line.to_string(),
        }
    }

    /// Numbers of the errors that a client of a multi-primary cluster answers by trying again: deadlock or failed
    /// certification, record changed since last read, lock wait timeout, and the duplicate key of two nodes that delete and
    /// insert the same row.
    pub(crate) fn conflict_codes(self) -> &'static str {
        match self {
            Self::MariaDb => "1213,1020,1205,1062",
            // Group Replication reports failed certification as an error during COMMIT or a rollback during it.
            Self::MySql => "1213,1020,1205,1062,1180,3101",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mysql_has_its_own_name_for_the_size_of_the_redo_log() {
        let size = "innodb-log-file-size=300M";
        assert_eq!(
            Server::MySql.option_line(size),
            "innodb-redo-log-capacity=300M"
        );
        assert_eq!(Server::MariaDb.option_line(size), size);
        assert_eq!(Server::MySql.option_line("skip-x"), "skip-x");
    }
}
