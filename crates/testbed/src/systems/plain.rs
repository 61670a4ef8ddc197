//! One server without replication: the reference. MySQL with replication is compared with MySQL without.

use super::{Durability, System, add, innodb, sync_binlog};
use crate::server::Server;
use crate::settings::Settings;

/// One server without replication.
pub(super) enum Plain {
    /// MariaDB, without a binary log, as in clusters.
    MariaDb,
    /// MariaDB with a binary log, as a server has it that can be restored to any moment, or get replicas.
    MariaDbWithBinlog,
    /// MySQL, without a binary log.
    MySql,
}

impl System for Plain {
    fn name(&self) -> &str {
        match self {
            Self::MariaDb => "plain",
            Self::MariaDbWithBinlog => "plain-binlog",
            Self::MySql => "plain-mysql",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::MariaDb => "one MariaDB server without replication and without a binary log",
            Self::MariaDbWithBinlog => {
                "one MariaDB server without replication, with a binary log of rows (sync_binlog=1 where commits are flushed)"
            }
            Self::MySql => "one MySQL server without replication and without a binary log",
        }
    }

    fn server(&self) -> Server {
        match self {
            Self::MariaDb | Self::MariaDbWithBinlog => Server::MariaDb,
            Self::MySql => Server::MySql,
        }
    }

    fn nodes(&self, _wanted: usize) -> usize {
        1
    }

    fn configure(&self, durability: Durability, settings: &mut Settings) {
        add(settings, &[innodb(durability)]);
        if matches!(self, Self::MariaDbWithBinlog) {
            add(settings, &["--log-bin=binlog", sync_binlog(durability)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_log_is_flushed_as_innodb_is() {
        for (durability, flush, sync) in [
            (Durability::Lazy, "=0", "--sync-binlog=0"),
            (Durability::Origin, "=1", "--sync-binlog=1"),
        ] {
            let mut settings = Settings::new("/nonexistent", 1, None);
            Plain::MariaDbWithBinlog.configure(durability, &mut settings);
            let flush = format!("--innodb-flush-log-at-trx-commit{flush}");
            assert_eq!(settings.mariadbd_args, [&flush, "--log-bin=binlog", sync]);
            let mut without = Settings::new("/nonexistent", 1, None);
            Plain::MariaDb.configure(durability, &mut without);
            assert_eq!(without.mariadbd_args, [flush]);
        }
    }
}
