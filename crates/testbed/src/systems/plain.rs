//! One server without replication: the reference. MySQL with replication is compared with MySQL without.

use super::{Durability, System, add, innodb};
use crate::server::Server;
use crate::settings::Settings;

/// One server without replication.
pub(super) struct Plain(pub Server);

impl System for Plain {
    fn name(&self) -> &str {
        match self.0 {
            Server::MariaDb => "plain",
            Server::MySql => "plain-mysql",
        }
    }

    fn about(&self) -> &'static str {
        match self.0 {
            Server::MariaDb => "one MariaDB server without replication and without a binary log",
            Server::MySql => "one MySQL server without replication and without a binary log",
        }
    }

    fn server(&self) -> Server {
        self.0
    }

    fn nodes(&self, _wanted: usize) -> usize {
        1
    }

    fn configure(&self, durability: Durability, settings: &mut Settings) {
        add(settings, &[innodb(durability)]);
    }
}
