//! The SQL client: one connection to the server, opened anew after an error. Queries go in, text or a [`DatabaseError`]
//! comes out.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Value};

use crate::sample::Sample;

/// `max_allowed_packet` of the connection: more than any answer needs.
const MAX_PACKET_BYTES: usize = 1 << 20;

/// The place where a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Its Unix socket.
    Socket(PathBuf),
    /// Its TCP port.
    Tcp {
        /// Its name or address, without brackets.
        host: String,
        /// The port.
        port: u16,
    },
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(f),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// The server's endpoint and the user to log in as.
#[derive(Clone, Debug)]
pub struct Login {
    /// The server's endpoint.
    pub endpoint: Endpoint,
    /// The SQL user.
    pub user: String,
    /// The user's password. None: the server knows the user by the owner of this process.
    pub password: Option<String>,
}

/// The reason why a query has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// The server answers with an error: its number and text.
    #[error("the server refuses: {1} (error {0})")]
    Refused(u16, String),
    /// The server does not answer.
    #[error("no answer at {endpoint}: {reason}")]
    Silent {
        /// The server's socket or address.
        endpoint: String,
        /// The error of the system or of the protocol.
        reason: String,
    },
}

/// A client with at most one connection.
pub struct Database {
    login: Login,
    timeout: Duration,
    conn: Option<Conn>,
}

impl Database {
    /// Makes a client, which connects at its first query. `timeout` limits each step of an answer.
    pub fn new(login: Login, timeout: Duration) -> Self {
        Self {
            login,
            timeout,
            conn: None,
        }
    }

    /// Reads all global status and system variables.
    pub fn whole_sample(&mut self) -> Result<Sample, DatabaseError> {
        self.ask(|conn| {
            Ok(Sample::new(
                conn.query("SHOW GLOBAL STATUS")?,
                conn.query("SHOW GLOBAL VARIABLES")?,
            ))
        })
    }

    /// Runs a query and returns its first `limit` rows as text; NULL becomes an empty text.
    pub fn rows(&mut self, query: &str, limit: usize) -> Result<Vec<Vec<String>>, DatabaseError> {
        self.ask(|conn| {
            let rows = conn.query_iter(query)?.take(limit);
            rows.map(|row| Ok(row?.unwrap().iter().map(text).collect()))
                .collect()
        })
    }

    /// Reads the variables that concern the node.
    pub(crate) fn sample(&mut self) -> Result<Sample, DatabaseError> {
        self.ask(|conn| {
            Ok(Sample::new(
                conn.query(r"SHOW GLOBAL STATUS LIKE 'wsrep\_%'")?,
                conn.query(
                    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'read_only', 'wsrep_on', \
                     'wsrep_cluster_name', 'wsrep_node_name', 'wsrep_reject_queries')",
                )?,
            ))
        })
    }

    /// Waits until this node has applied everything that the cluster had committed at the time of the call.
    pub(crate) fn catch_up(&mut self) -> Result<(), DatabaseError> {
        self.ask(|conn| {
            conn.query_drop("SET SESSION wsrep_sync_wait = 1")?;
            conn.query_drop("SELECT 1")
        })
    }

    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut Conn) -> mysql::Result<T>,
    ) -> Result<T, DatabaseError> {
        let answer = match self.conn.take() {
            Some(conn) => Ok(conn),
            None => self.connect(),
        }
        .and_then(|mut conn| {
            let answer = question(&mut conn)?;
            // After an error the connection is not kept, because its state is unknown.
            self.conn = Some(conn);
            Ok(answer)
        });
        answer.map_err(|error| match error {
            mysql::Error::MySqlError(error) => DatabaseError::Refused(error.code, error.message),
            other => DatabaseError::Silent {
                endpoint: self.login.endpoint.to_string(),
                reason: other.to_string(),
            },
        })
    }

    fn connect(&self) -> mysql::Result<Conn> {
        let options = match &self.login.endpoint {
            Endpoint::Socket(path) => OptsBuilder::new().socket(Some(path.to_string_lossy())),
            Endpoint::Tcp { host, port } => OptsBuilder::new()
                .ip_or_hostname(Some(host))
                .tcp_port(*port)
                .tcp_connect_timeout(Some(self.timeout)),
        };
        let options = options
            .prefer_socket(false)
            .user(Some(&self.login.user))
            .pass(self.login.password.as_deref())
            // A given value saves the query for it, which a node without a majority might refuse.
            .max_allowed_packet(Some(MAX_PACKET_BYTES))
            .read_timeout(Some(self.timeout))
            .write_timeout(Some(self.timeout));
        Conn::new(options)
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::NULL => String::new(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        // The text protocol sends only strings and NULL; any other value is written as an SQL literal.
        other => other.as_sql(true),
    }
}

#[cfg(test)]
mod tests {
    use super::Endpoint;

    #[test]
    fn an_address_of_ipv6_is_shown_in_brackets() {
        let at = |host: &str| Endpoint::Tcp {
            host: host.to_owned(),
            port: 3306,
        };
        assert_eq!(at("db1").to_string(), "db1:3306");
        assert_eq!(at("::1").to_string(), "[::1]:3306");
    }
}
