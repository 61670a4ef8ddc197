//! Collects the facts for the checks: through SQL from all nodes, and from this machine.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use trireme_agent::{Database, Login};

use super::facts::{Facts, LONG_MS, Process, Seen, Tables};
use super::host;
use crate::address;
use crate::members;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::survey::Survey;

/// The time limit for each step of an answer. Queries about many tables take some time.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most rows of one answer.
const MAX_ROWS: usize = 500;

const NOW: &str = "SELECT UNIX_TIMESTAMP(NOW(6))";
/// The server's own threads come first: a user without PROCESS does not see them.
const USERS: &str = "SELECT USER FROM information_schema.PROCESSLIST GROUP BY USER ORDER BY USER <> 'system user', USER";
const WITHOUT_PRIMARY_KEY: &str = "SELECT t.NAME FROM information_schema.INNODB_SYS_INDEXES i \
    JOIN information_schema.INNODB_SYS_TABLES t ON t.TABLE_ID = i.TABLE_ID \
    WHERE i.NAME = 'GEN_CLUST_INDEX' AND t.NAME NOT LIKE 'mysql/%' AND t.NAME NOT LIKE 'sys/%'";
const NOT_INNODB: &str = "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME, ' (', ENGINE, ')') FROM information_schema.TABLES \
    WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE NOT IN ('InnoDB', 'SEQUENCE') \
    AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')";

/// Asks all members.
pub(super) fn collect(login: &Login) -> Result<Facts, Refusal> {
    let survey = Survey::take(login)?;
    let mut facts = Facts {
        without_address: survey.without_address(),
        absent: members::absent(&survey),
        silent: survey
            .silent()
            .map(|(endpoint, refusal)| (endpoint.to_string(), refusal.to_string()))
            .collect(),
        ..Facts::default()
    };
    thread::scope(|scope| {
        let mut asked = Vec::new();
        for member in survey.members() {
            if let Ok(node) = &member.answer {
                let login = Login {
                    endpoint: member.endpoint.clone(),
                    ..login.clone()
                };
                asked.push((member, scope.spawn(move || examine(login, node.clone()))));
            }
        }
        for (i, (member, seen)) in asked.into_iter().enumerate() {
            if member.endpoint == login.endpoint {
                facts.first = i;
            }
            facts.nodes.push(
                seen.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
    });
    facts.tables = tables(login);
    if address::is_here(&login.endpoint) {
        facts.host = facts.first().and_then(host::examine);
    }
    Ok(facts)
}

/// Asks one node. A node without a majority answers none of the queries: it refuses SELECT.
fn examine(login: Login, node: Node) -> Seen {
    let mut database = Database::new(login, TIMEOUT);
    let clock_ms = clock(&mut database);
    let users = users(&mut database);
    Seen {
        clock_ms,
        statements: users.as_ref().and_then(|_| statements(&mut database)),
        users,
        node,
    }
}

fn clock(database: &mut Database) -> Option<(f64, f64)> {
    // The first query opens the connection, so its time does not count.
    database.rows(NOW, 1).ok()?;
    let local = || {
        Some(
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .ok()?
                .as_secs_f64()
                * 1000.0,
        )
    };
    let (before, begin) = (local()?, Instant::now());
    let rows = database.rows(NOW, 1).ok()?;
    let took = begin.elapsed().as_secs_f64() * 1000.0;
    let there: f64 = rows.first()?.first()?.parse().ok()?;
    Some((there * 1000.0 - before - took / 2.0, took / 2.0))
}

/// The users of all connections. None without the privilege PROCESS: such a user sees only its own connections.
fn users(database: &mut Database) -> Option<Vec<String>> {
    let rows = database.rows(USERS, MAX_ROWS).ok()?;
    let users: Vec<String> = rows.into_iter().flatten().collect();
    users
        .iter()
        .any(|user| user == "system user")
        .then_some(users)
}

/// The long statements of clients. The server filters and sorts them, because it may have more connections than
/// `MAX_ROWS`.
fn statements(database: &mut Database) -> Option<Vec<Process>> {
    let query = format!(
        "SELECT ID, USER, TIME_MS, LEFT(INFO, 1000) FROM information_schema.PROCESSLIST \
         WHERE COMMAND IN ('Query', 'Execute') AND USER <> 'system user' AND TIME_MS >= {LONG_MS} ORDER BY TIME_MS DESC"
    );
    let rows = database.rows(&query, MAX_ROWS).ok()?;
    Some(rows.into_iter().filter_map(process).collect())
}

fn process(row: Vec<String>) -> Option<Process> {
    let [id, user, time_ms, statement] = row.try_into().ok()?;
    let seconds = time_ms.parse::<f64>().ok()? / 1000.0;
    Some(Process {
        id,
        user,
        seconds,
        statement,
    })
}

fn tables(login: &Login) -> Tables {
    let mut database = Database::new(login.clone(), TIMEOUT);
    let mut names = |query: &str| {
        let rows = database.rows(query, MAX_ROWS).ok()?;
        Some(
            rows.into_iter()
                .filter_map(|row| row.into_iter().next())
                .collect::<Vec<_>>(),
        )
    };
    Tables {
        without_primary_key: names(WITHOUT_PRIMARY_KEY).map(|names| {
            names
                .into_iter()
                .map(|name| name.replacen('/', ".", 1))
                .collect()
        }),
        not_innodb: names(NOT_INNODB),
    }
}
