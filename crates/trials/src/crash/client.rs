//! One client: runs short transactions on its own node, one after the other, and records reads and answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::history::{Id, Key, Outcome, Read, Transaction, Transfer};
use super::load::Shared;
use super::random::Random;
use trireme_testbed::sql::{Sql, SqlError};

/// Time limit for a statement; after it the statement counts as failed.
const ANSWER: Duration = Duration::from_secs(10);

/// Number of lists in the table; all are empty at first.
pub const KEYS: u32 = 4_000;

/// Number of lists in use at a time.
const WINDOW: u32 = 24;

/// Number of appends after which the window moves on by one list, so that no list grows long.
const APPENDS_PER_KEY: u32 = 40;

/// Number of accounts of the bank.
pub const ACCOUNTS: u32 = 10;

/// The initial balance of each account.
pub const BALANCE: i64 = 1_000;

/// The isolation settings of a client's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isolation {
    /// `innodb_snapshot_isolation=ON`.
    pub snapshot: bool,
    /// `wsrep_sync_wait=1`.
    pub current: bool,
}

impl Isolation {
    /// The statement that sets them.
    fn statement(self) -> String {
        let on_off = if self.snapshot { "ON" } else { "OFF" };
        let wait = u8::from(self.current);
        format!("SET SESSION innodb_snapshot_isolation={on_off}, wsrep_sync_wait={wait}")
    }
}

/// Why a transaction was not acknowledged.
enum Failure {
    /// COMMIT was not sent.
    Before(SqlError),
    /// The client had sent COMMIT, or the statement commits by itself.
    AtCommit(SqlError),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Before(error)
    }
}

/// One client.
pub struct Client {
    number: usize,
    node: usize,
    socket: PathBuf,
    isolation: Isolation,
    random: Random,
    shared: Arc<Shared>,
    history: Vec<Transaction>,
}

impl Client {
    /// Client `number`, of node `node`, which listens on `socket`.
    pub fn new(
        number: usize,
        node: usize,
        socket: &Path,
        isolation: Isolation,
        seed: u64,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            number,
            node,
            socket: socket.to_path_buf(),
            isolation,
            random: Random::new(seed ^ (number as u64 + 1)),
            shared,
            history: Vec::new(),
        }
    }

    /// Runs transactions until it is told to stop, even while the server is down.
    pub fn run(mut self) -> Vec<Transaction> {
        let mut connection: Option<Sql> = None;
        while !self.shared.stop.load(Ordering::Relaxed) {
            let Some(mut sql) = connection.take().or_else(|| self.connect()) else {
                thread::sleep(Duration::from_millis(20));
                continue;
            };
            let transaction = self.transaction(&mut sql);
            let committed = transaction.is_committed();
            let usable = committed || sql.exec("ROLLBACK").is_ok();
            self.history.push(transaction);
            connection = usable.then_some(sql);
            // A steady load, not the heaviest: the machine has other work, too.
            thread::sleep(Duration::from_millis(if committed { 1 } else { 4 }));
        }
        self.history
    }

    fn connect(&self) -> Option<Sql> {
        let mut sql = Sql::connect_socket(&self.socket, ANSWER).ok()?;
        sql.exec(&self.isolation.statement()).ok()?;
        Some(sql)
    }

    fn transaction(&mut self, sql: &mut Sql) -> Transaction {
        let mut record = Transaction::new(self.number, self.node, self.shared.now());
        let kind = self.random.below(100);
        let result = match kind {
            0..=59 => self.lists(sql, &mut record),
            60..=74 => self.single_append(sql, &mut record),
            75..=92 => self.transfer(sql, &mut record),
            _ => total(sql, &mut record),
        };
        record.ended = self.shared.now();
        match result {
            Ok(()) => {
                record.outcome = Outcome::Committed;
                if !record.appends.is_empty() {
                    self.shared.note_commit(self.node, record.began);
                }
            }
            Err(Failure::Before(error)) => record.error = error.to_string(),
            Err(Failure::AtCommit(error)) => {
                if !error.is_conflict() {
                    record.outcome = Outcome::Unknown;
                }
                record.error = format!("at COMMIT: {error}");
            }
        }
        record
    }

    /// Reads some lists, then appends to some lists, perhaps the same ones.
    fn lists(&mut self, sql: &mut Sql, record: &mut Transaction) -> Result<(), Failure> {
        let mut keys: Vec<Key> = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let key = self.key();
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let mut reads = Vec::new();
        let mut appends = Vec::new();
        for key in keys {
            match self.random.below(3) {
                0 => reads.push(key),
                1 => appends.push(key),
                _ => {
                    reads.push(key);
                    appends.push(key);
                }
            }
        }
        sql.exec("START TRANSACTION")?;
        if !reads.is_empty() {
            record.reads = read_lists(sql, &reads)?;
            record.first_read = Some(self.shared.now() - record.began);
        }
        for key in appends {
            let id = self.shared.next_id();
            record.appends.push((key, id));
            sql.exec(&append(key, id))?;
        }
        sql.exec("COMMIT").map_err(Failure::AtCommit)?;
        Ok(())
    }

    /// Runs one autocommit append: the server may repeat such a statement (`wsrep_retry_autocommit`).
    fn single_append(&mut self, sql: &mut Sql, record: &mut Transaction) -> Result<(), Failure> {
        let (key, id) = (self.key(), self.shared.next_id());
        record.appends.push((key, id));
        sql.exec(&append(key, id)).map_err(Failure::AtCommit)?;
        Ok(())
    }

    /// Moves money. An append in the same transaction tells later whether it is committed.
    fn transfer(&mut self, sql: &mut Sql, record: &mut Transaction) -> Result<(), Failure> {
        let from = self.random.below(u64::from(ACCOUNTS)) as u32;
        let to = (from + 1 + self.random.below(u64::from(ACCOUNTS) - 1) as u32) % ACCOUNTS;
        let amount = 1 + self.random.below(50) as i64;
        record.transfer = Some(Transfer { from, to, amount });
        let (key, id) = (self.key(), self.shared.next_id());
        record.appends.push((key, id));
        sql.exec("START TRANSACTION")?;
        sql.exec(&append(key, id))?;
        for (account, change) in [(from, -amount), (to, amount)] {
            sql.exec(&format!(
                "UPDATE crash.accounts SET balance = balance + {change} WHERE id = {account}"
            ))?;
        }
        sql.exec("COMMIT").map_err(Failure::AtCommit)?;
        Ok(())
    }

    /// Picks one of the lists in use now.
    fn key(&mut self) -> Key {
        let first = self.shared.appends_so_far() / APPENDS_PER_KEY;
        (first + self.random.below(u64::from(WINDOW)) as u32) % KEYS
    }
}

/// Reads the sum of all accounts.
fn total(sql: &mut Sql, record: &mut Transaction) -> Result<(), Failure> {
    let sum = sql.value("SELECT SUM(balance) FROM crash.accounts")?;
    record.total = sum.and_then(|sum| sum.parse().ok());
    Ok(())
}

fn append(key: Key, id: Id) -> String {
    format!("UPDATE crash.lists SET v = CONCAT(v, ',{id}') WHERE k = {key}")
}

fn read_lists(sql: &mut Sql, keys: &[Key]) -> Result<Vec<Read>, SqlError> {
    let names: Vec<String> = keys.iter().map(Key::to_string).collect();
    let query = format!(
        "SELECT k, v FROM crash.lists WHERE k IN ({})",
        names.join(",")
    );
    let lists = parse_lists(&sql.query(&query)?).ok_or_else(|| SqlError::Answer(query.clone()))?;
    Ok(lists
        .into_iter()
        .map(|(key, list)| Read { key, list })
        .collect())
}

/// Rows of a key and its list, written as `,1,7,3`.
pub fn parse_lists(rows: &[trireme_testbed::sql::Row]) -> Option<Vec<(Key, Vec<Id>)>> {
    let parse = |row: &trireme_testbed::sql::Row| match row.as_slice() {
        [Some(key), Some(list)] => {
            let ids = list.split(',').filter(|id| !id.is_empty()).map(str::parse);
            Some((key.parse().ok()?, ids.collect::<Result<_, _>>().ok()?))
        }
        _ => None,
    };
    rows.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_from_their_text() {
        let row = |key: &str, list: &str| vec![Some(key.to_string()), Some(list.to_string())];
        let rows = [row("3", ",10,7"), row("4", "")];
        let lists = parse_lists(&rows).unwrap();
        assert_eq!(lists, [(3, vec![10, 7]), (4, vec![])]);
        assert_eq!(parse_lists(&[row("3", ",x")]), None);
        assert_eq!(parse_lists(&[vec![None, None]]), None);
    }
}
