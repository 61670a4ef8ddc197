//! The clients' history: their transactions, reads and answers.

use std::fmt::Write as _;
use std::time::Duration;

/// A list in the table `crash.lists`.
pub type Key = u32;

/// An element of a list; each is appended by one transaction only.
pub type Id = u32;

/// How a transaction ended, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The server acknowledged the commit.
    Committed,
    /// The server reported a failure, or the client never sent COMMIT.
    Failed,
    /// COMMIT got no answer, or an answer that says neither.
    Unknown,
}

/// A list as one transaction saw it, before it appended anything itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Which list.
    pub key: Key,
    /// Its elements.
    pub list: Vec<Id>,
}

/// Money moved between two accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The account that lost it.
    pub from: u32,
    /// The account that got it.
    pub to: u32,
    /// How much.
    pub amount: i64,
}

/// One transaction of a client, as the client saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The client, from 0.
    pub client: usize,
    /// Its node, from 0.
    pub node: usize,
    /// Time when its first statement was sent, counted from the start of the load.
    pub began: Duration,
    /// Time when its last answer came.
    pub ended: Duration,
    /// Duration of START TRANSACTION and the first read together; None if it read no lists.
    pub first_read: Option<Duration>,
    /// The lists it saw.
    pub reads: Vec<Read>,
    /// The elements it appended, with their lists; at most one per list.
    pub appends: Vec<(Key, Id)>,
    /// The money it moved, always together with an append that tells whether the transaction is committed.
    pub transfer: Option<Transfer>,
    /// The sum of all accounts, if it read that.
    pub total: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// The error that ended it, if one did.
    pub error: String,
}

impl Transaction {
    /// A transaction that has done nothing yet.
    pub fn new(client: usize, node: usize, began: Duration) -> Self {
        Self {
            client,
            node,
            began,
            ended: began,
            first_read: None,
            reads: Vec::new(),
            appends: Vec::new(),
            transfer: None,
            total: None,
            outcome: Outcome::Failed,
            error: String::new(),
        }
    }

    /// True if the server acknowledged it.
    pub fn is_committed(&self) -> bool {
        self.outcome == Outcome::Committed
    }
}

/// The final tables of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tables {
    /// The lists that are not empty, by key.
    pub lists: std::collections::BTreeMap<Key, Vec<Id>>,
    /// The accounts.
    pub accounts: std::collections::BTreeMap<u32, i64>,
}

/// The history as text, one transaction per line, in the order of their ends.
pub fn text(history: &[Transaction]) -> String {
    let mut sorted: Vec<&Transaction> = history.iter().collect();
    sorted.sort_by_key(|t| t.ended);
    let mut out = "# began_ms..ended_ms node client outcome; r KEY [list], a KEY ID\n".to_string();
    for t in sorted {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "{:.3}..{:.3} node{} client{} {:?}",
            ms(t.began),
            ms(t.ended),
            t.node + 1,
            t.client,
            t.outcome
        );
        for read in &t.reads {
            let _ = write!(out, "; r {} {:?}", read.key, read.list);
        }
        for (key, id) in &t.appends {
            let _ = write!(out, "; a {key} {id}");
        }
        if let Some(transfer) = t.transfer {
            let _ = write!(
                out,
                "; {} from {} to {}",
                transfer.amount, transfer.from, transfer.to
            );
        }
        if let Some(total) = t.total {
            let _ = write!(out, "; total {total}");
        }
        if !t.error.is_empty() {
            let _ = write!(out, "; {}", t.error);
        }
        out.push('\n');
    }
    out
}

/// The final lists and accounts of a node as text.
pub fn tables_text(tables: &Tables) -> String {
    let mut out = String::new();
    for (key, list) in &tables.lists {
        let _ = writeln!(out, "list {key} {list:?}");
    }
    for (id, balance) in &tables.accounts {
        let _ = writeln!(out, "account {id} {balance}");
    }
    out
}
