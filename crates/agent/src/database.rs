//! The SQL client: one connection to the server, opened anew after an error. Queries go in, text or a [`DatabaseError`]
//! comes out.

use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Value};

use crate::sample::Sample;

/// `max_allowed_packet` of the connection: more than any answer needs.
const MAX_PACKET_BYTES: usize = 1 << 20;

/// Added to the time limit of a connection: where the server takes the connection and then falls silent, the driver's
/// own time limit comes first, and says more.
const DRIVER_FIRST: Duration = Duration::from_millis(300);

/// The server's errors that end a connection: shutdown, an idle time, KILL.
const ENDS: [u16; 3] = [1053, 1159, 1927];

/// A global `wsrep_sync_wait` may make SHOW and SELECT wait for the cluster: on a node that lags for longer than the
/// time limit, and without a majority until they fail. These are the nodes whose state is wanted.
const NO_WAIT: &str = "SET SESSION wsrep_sync_wait = 0";

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
    /// The connection that a thread still tries to make.
    attempt: Option<Receiver<mysql::Result<Conn>>>,
}

impl Database {
    /// Makes a client, which connects at its first query. `timeout` limits each step of an answer.
    pub fn new(login: Login, timeout: Duration) -> Self {
        Self {
            login,
            timeout,
            conn: None,
            attempt: None,
        }
    }

    /// Reads all global status and system variables.
    pub fn whole_sample(&mut self) -> Result<Sample, DatabaseError> {
        self.ask(|conn| {
            let status = conn.query("SHOW GLOBAL STATUS")?;
            let mut variables: Vec<(String, String)> = conn.query("SHOW GLOBAL VARIABLES")?;
            variables.extend(whole_options(conn)?); // the last one of a name counts
            Ok(Sample::new(status, variables))
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

    /// Waits until this node has applied everything that the cluster had committed at the time of the call. The node
    /// asks the leader for that position, and so uses its links.
    pub fn catch_up(&mut self) -> Result<(), DatabaseError> {
        self.ask(|conn| {
            conn.query_drop("SET SESSION wsrep_sync_wait = 1")?;
            conn.query_drop("SELECT 1")?;
            conn.query_drop(NO_WAIT)
        })
    }

    /// Asks on the kept connection, or else on a new one. The server may have ended the kept one since its last use (an
    /// idle time, a restart): then the question is asked once more, on a new one.
    fn ask<T>(
        &mut self,
        question: impl Fn(&mut Conn) -> mysql::Result<T>,
    ) -> Result<T, DatabaseError> {
        if let Some(mut conn) = self.conn.take() {
            let begin = Instant::now();
            match question(&mut conn) {
                // An ended connection shows at once. After a time limit, a second wait would be in vain.
                Err(error) if is_end(&error) && begin.elapsed() < self.timeout / 2 => {}
                answer => return self.done(conn, answer),
            }
        }
        let mut conn = self.connect()?;
        let answer = question(&mut conn);
        self.done(conn, answer)
    }

    /// Keeps the connection, but not after an error, because its state is unknown then.
    fn done<T>(&mut self, conn: Conn, answer: mysql::Result<T>) -> Result<T, DatabaseError> {
        let answer = answer.map_err(|error| self.failed(error))?;
        self.conn = Some(conn);
        Ok(answer)
    }

    fn connect(&mut self) -> Result<Conn, DatabaseError> {
        let mut conn = self.open()?;
        match conn.query_drop(NO_WAIT) {
            // A server without wsrep does not know the variable.
            Ok(()) | Err(mysql::Error::MySqlError(_)) => Ok(conn),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn open(&mut self) -> Result<Conn, DatabaseError> {
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
        match self.login.endpoint {
            Endpoint::Socket(_) => self.connect_bounded(options),
            Endpoint::Tcp { .. } => Conn::new(options).map_err(|error| self.failed(error)),
        }
    }

    /// Connects on a thread of its own: the driver connects to a Unix socket without a time limit, and waits for ever
    /// while the queue of a stopped server is full. A later call waits for the same thread, so there is at most one.
    fn connect_bounded(&mut self, options: OptsBuilder) -> Result<Conn, DatabaseError> {
        let attempt = match self.attempt.take() {
            Some(attempt) => attempt,
            None => self.begin_attempt(options)?,
        };
        match attempt.recv_timeout(self.timeout + DRIVER_FIRST) {
            Ok(ended) => ended.map_err(|error| self.failed(error)),
            Err(RecvTimeoutError::Timeout) => {
                self.attempt = Some(attempt);
                Err(self.silent(
                    "it takes no connection: the process is stopped or overloaded (its queue of connections may be full)",
                ))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.silent("the connecting thread broke off"))
            }
        }
    }

    fn begin_attempt(
        &self,
        options: OptsBuilder,
    ) -> Result<Receiver<mysql::Result<Conn>>, DatabaseError> {
        let (result, attempt) = sync_channel(1);
        thread::Builder::new()
            .name("connect".to_owned())
            .spawn(move || {
                let _ = result.send(Conn::new(options)); // fails if nobody waits any more
            })
            .map_err(|error| self.silent(format!("cannot start a thread: {error}")))?;
        Ok(attempt)
    }

    fn failed(&self, error: mysql::Error) -> DatabaseError {
        match error {
            mysql::Error::MySqlError(error) => DatabaseError::Refused(error.code, error.message),
            other => self.silent(other.to_string()),
        }
    }

    fn silent(&self, reason: impl Into<String>) -> DatabaseError {
        DatabaseError::Silent {
            endpoint: self.login.endpoint.to_string(),
            reason: reason.into(),
        }
    }
}

/// Whether the connection has ended, so that a new one may have an answer.
fn is_end(error: &mysql::Error) -> bool {
    match error {
        mysql::Error::MySqlError(error) => ENDS.contains(&error.code),
        _ => true,
    }
}

/// The provider's options, which SHOW VARIABLES cuts at 2048 characters (MariaDB 10.11 before 10.11.7). None if the
/// server refuses.
fn whole_options(conn: &mut Conn) -> mysql::Result<Option<(String, String)>> {
    const NAME: &str = "wsrep_provider_options";
    match conn.query_first::<Option<String>, _>(format!("SELECT @@GLOBAL.{NAME}")) {
        Ok(options) => Ok(options.flatten().map(|options| (NAME.to_owned(), options))),
        Err(mysql::Error::MySqlError(_)) => Ok(None),
        Err(error) => Err(error),
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
mod tests;
