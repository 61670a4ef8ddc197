//! One server without replication: the reference.

use super::{Durability, System, add, innodb};
use crate::settings::Settings;

/// One server without replication.
pub(super) struct Plain;

impl System for Plain {
    fn name(&self) -> &str {
        "plain"
    }

    fn about(&self) -> &'static str {
        "one MariaDB server without replication and without a binary log"
    }

    fn nodes(&self, _wanted: usize) -> usize {
        1
    }

    fn configure(&self, durability: Durability, settings: &mut Settings) {
        add(settings, &[innodb(durability)]);
    }
}
