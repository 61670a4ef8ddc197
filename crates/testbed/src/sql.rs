//! One SQL connection, with statements as text or [`Prepared`]: just enough to drive and check a server.

mod prepared;

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Value};

pub use prepared::{FromRow, Params, Prepared};

/// The most prepared statements of a connection. Beyond that the client closes the oldest.
const PREPARED_STATEMENTS: usize = 128;

/// A row as text; `None` is NULL.
pub type Row = Vec<Option<String>>;

/// The failure of a statement or a connection.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The server answered with an error.
    #[error("server error {code}: {message}")]
    Server {
        /// MariaDB's error number: 1213 is a deadlock or a failed certification, 1047 a node that is not ready.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// The connection failed or broke: the fate of the running statement is unknown.
    #[error("connection: {0}")]
    Connection(String),
    /// The answer lacks the expected row or column.
    #[error("unexpected answer to {0:?}")]
    Answer(String),
}

impl SqlError {
    /// The server's error number, if the server answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Server { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the transaction lost against another one and may be retried: deadlock or failed certification (1213),
    /// record changed since last read (1020), lock wait timeout (1205). Under Group Replication a failed certification
    /// rolls back during the commit (3101), or is a deadlock (error 149) during it (1180).
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Server { code, message } => match code {
                1213 | 1020 | 1205 | 3101 => true,
                1180 => message.contains("error 149 "),
                _ => false,
            },
            Self::Connection(_) | Self::Answer(_) => false,
        }
    }
}

impl From<mysql::Error> for SqlError {
    fn from(error: mysql::Error) -> Self {
        match error {
            mysql::Error::MySqlError(e) => Self::Server {
                code: e.code,
                message: e.message,
            },
            other => Self::Connection(other.to_string()),
        }
    }
}

/// A connection as `root` without a password: the account in the data directories that we make.
pub struct Sql {
    conn: Conn,
}

impl Sql {
    /// Connects to 127.0.0.1:`port`. Each read and write of the connection fails after `timeout`.
    pub fn connect_tcp(port: u16, timeout: Duration) -> Result<Self, SqlError> {
        let opts = OptsBuilder::new()
            .ip_or_hostname(Some(Ipv4Addr::LOCALHOST.to_string()))
            .tcp_port(port)
            .tcp_connect_timeout(Some(timeout));
        Self::connect(opts, timeout)
    }

    /// Connects through a unix socket. Each read and write of the connection fails after `timeout`.
    pub fn connect_socket(socket: &Path, timeout: Duration) -> Result<Self, SqlError> {
        let opts = OptsBuilder::new().socket(Some(socket.to_string_lossy()));
        Self::connect(opts, timeout)
    }

    fn connect(opts: OptsBuilder, timeout: Duration) -> Result<Self, SqlError> {
        let opts = opts
            .user(Some("root"))
            .prefer_socket(false)
            // A given value saves the query for it.
            .max_allowed_packet(Some(16 << 20))
            .stmt_cache_size(Some(PREPARED_STATEMENTS))
            .read_timeout(Some(timeout))
            .write_timeout(Some(timeout));
        Ok(Self {
            conn: Conn::new(opts)?,
        })
    }

    /// Runs a statement; returns the number of rows that it changed.
    pub fn exec(&mut self, statement: &str) -> Result<u64, SqlError> {
        let mut result = self.conn.query_iter(statement)?;
        let affected = result.affected_rows();
        while let Some(set) = result.iter() {
            for row in set {
                row?;
            }
        }
        Ok(affected)
    }

    /// Runs a query; returns all rows of its first result.
    pub fn query(&mut self, query: &str) -> Result<Vec<Row>, SqlError> {
        let result = self.conn.query_iter(query)?;
        let mut rows = Vec::new();
        for row in result {
            rows.push(row?.unwrap().into_iter().map(text).collect());
        }
        Ok(rows)
    }

    /// The columns of a query's first row with their names; empty without a row.
    pub fn named_row(&mut self, query: &str) -> Result<Vec<(String, Option<String>)>, SqlError> {
        let result = self.conn.query_iter(query)?;
        let names: Vec<String> = result
            .columns()
            .as_ref()
            .iter()
            .map(|column| column.name_str().into_owned())
            .collect();
        let mut first = None;
        for row in result {
            let row = row?;
            first.get_or_insert_with(|| row.unwrap().into_iter().map(text).collect::<Vec<_>>());
        }
        Ok(names.into_iter().zip(first.unwrap_or_default()).collect())
    }

    /// The first column of a query's only row.
    pub fn value(&mut self, query: &str) -> Result<Option<String>, SqlError> {
        match <[Row; 1]>::try_from(self.query(query)?) {
            Ok([row]) if !row.is_empty() => Ok(row.into_iter().next().flatten()),
            _ => Err(SqlError::Answer(query.to_string())),
        }
    }

    /// A global status variable, such as `wsrep_last_committed`; None if the server has none of that name.
    pub fn status(&mut self, name: &str) -> Result<Option<String>, SqlError> {
        self.second_column(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))
    }

    /// A global system variable; None if the server has none of that name.
    pub fn variable(&mut self, name: &str) -> Result<Option<String>, SqlError> {
        self.second_column(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))
    }

    fn second_column(&mut self, query: &str) -> Result<Option<String>, SqlError> {
        Ok(self
            .query(query)?
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().nth(1).flatten()))
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        // The text protocol, which queries without parameters use, sends only strings and NULL.
        other => Some(other.as_sql(true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_told_from_other_errors() {
        let server = |code| SqlError::Server {
            code,
            message: String::new(),
        };
        assert!(server(1213).is_conflict());
        assert!(server(1205).is_conflict());
        assert!(server(3101).is_conflict());
        assert!(!server(1047).is_conflict());
        let during_commit = |message: &str| SqlError::Server {
            code: 1180,
            message: message.to_string(),
        };
        let lost = "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT";
        assert!(during_commit(lost).is_conflict());
        let too_large = "Got error 90 \"Message too long\" during COMMIT";
        assert!(!during_commit(too_large).is_conflict());
        assert!(!SqlError::Connection("gone".to_string()).is_conflict());
    }

    #[test]
    fn values_become_text() {
        assert_eq!(text(Value::NULL), None);
        assert_eq!(text(Value::Bytes(b"abc".to_vec())), Some("abc".to_string()));
    }

    #[test]
    fn nobody_at_the_port_is_a_connection_error() {
        let port = crate::ports::find_free(1).unwrap()[0].mysql;
        let result = Sql::connect_tcp(port, Duration::from_secs(1));
        assert!(matches!(result, Err(SqlError::Connection(_))));
    }
}
