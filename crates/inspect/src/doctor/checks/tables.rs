//! Checks for tables that are bad for replication.

use crate::doctor::facts::{Facts, list};
use crate::doctor::finding::Finding;

pub(crate) fn primary_keys(facts: &Facts) -> Finding {
    match &facts.tables.without_primary_key {
        None => Finding::unknown(
            "the user lacks the privilege PROCESS (trireme agent grant --doctor), or there is no majority",
        ),
        Some(tables) if tables.is_empty() => Finding::ok("every InnoDB table has a primary key"),
        Some(tables) => Finding::warning(
            format!("tables without primary key: {}", list(tables)),
            "ALTER TABLE ... ADD PRIMARY KEY: applying a change of a row reads the whole table, on every node",
        ),
    }
}

pub(crate) fn engines(facts: &Facts) -> Finding {
    match &facts.tables.not_innodb {
        None => Finding::unknown("the user may not see the tables, or there is no majority"),
        Some(tables) if tables.is_empty() => {
            Finding::ok("every table that the user may see is InnoDB")
        }
        Some(tables) => Finding::failed(
            format!(
                "tables that are not replicated, since they are not InnoDB: {}",
                list(tables)
            ),
            "ALTER TABLE ... ENGINE=InnoDB",
        ),
    }
}
