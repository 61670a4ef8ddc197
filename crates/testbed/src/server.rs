//! The server program of a system. All differences between MySQL and MariaDB are here: the program, the empty database,
//! the lines of the option file, the errors. The other code starts, kills and asks both in the same way.

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
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "MariaDB",
            Self::MySql => "MySQL",
        }
    }

    /// The suffix of the names of the data directories that are kept for it.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::MariaDb => "",
            Self::MySql => "-mysql",
        }
    }

    /// The path of the server program.
    pub fn program(self) -> Result<PathBuf, PackageError> {
        match self {
            Self::MariaDb => packages::mariadbd(),
            Self::MySql => packages::mysqld(),
        }
    }

    /// The line in which the server program tells its version.
    pub fn version_line(self) -> Result<String, PackageError> {
        let output = Command::new(self.program()?).arg("--version").output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        Ok(String::from_utf8_lossy(&text).trim().to_string())
    }

    /// The version of the server program, as a part of file names.
    pub fn version(self) -> Result<String, PackageError> {
        Ok(version_in(&self.version_line()?))
    }

    /// The command that makes an empty database in `dir`. It reads [`accounts`](Self::accounts) from its standard
    /// input.
    pub(crate) fn install_command(self, dir: &Path) -> Result<Command, PackageError> {
        let (program, arguments): (_, &[&str]) = match self {
            Self::MariaDb => (
                packages::install_db()?,
                &[
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                    // Makes root's accounts by address: a server that resolves no names ignores accounts by name.
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

    /// The statements that complete the accounts of an empty database: `root` without a password, from this machine
    /// only.
    pub(crate) fn accounts(self) -> &'static str {
        match self {
            Self::MariaDb => "",
            // The server resolves no names, and Group Replication's recovery connects by address.
            Self::MySql => {
                "CREATE USER root@'127.0.0.1';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"
            }
        }
    }

    /// The lines of the option file that give both servers the same defaults.
    pub(crate) fn default_lines(self) -> &'static str {
        match self {
            Self::MariaDb => "",
            // Its other protocol would take another port of this machine.
            Self::MySql => "mysqlx=OFF\nskip-log-bin\n",
        }
    }

    /// The server's own form of MariaDB's option `line`.
    pub(crate) fn option_line(self, line: &str) -> String {
        match (self, line.split_once('=')) {
            // MySQL divides the redo log into many files, so the option has another name.
            (Self::MySql, Some(("innodb-log-file-size", size))) => {
                format!("innodb-redo-log-capacity={size}")
            }
            _ => line.to_string(),
        }
    }

    /// The numbers of errors after which a client of a multi-primary cluster retries: deadlock or failed certification,
    /// record changed since last read, lock wait timeout, and the duplicate key of two nodes that delete and insert the
    /// same row.
    pub(crate) fn conflict_codes(self) -> &'static str {
        match self {
            Self::MariaDb => "1213,1020,1205,1062",
            // Group Replication reports a failed certification as an error or a rollback during COMMIT.
            Self::MySql => "1213,1020,1205,1062,1180,3101",
        }
    }
}

/// The word after `Ver`.
fn version_in(text: &str) -> String {
    let mut words = text.split_whitespace().skip_while(|word| *word != "Ver");
    let version = words.nth(1).unwrap_or("unknown");
    version.replace(
        |c: char| !c.is_ascii_alphanumeric() && !".+-".contains(c),
        "_",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_names_a_file() {
        let text =
            "mariadbd  Ver 10.11.14-MariaDB-0+deb12u2/x for debian-linux-gnu on x86_64 (Debian 12)";
        assert_eq!(version_in(text), "10.11.14-MariaDB-0+deb12u2_x");
        assert_eq!(version_in(""), "unknown");
    }

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
