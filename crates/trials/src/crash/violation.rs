//! The broken promises that the checks can find.

use super::history::{Id, Key};

/// One broken promise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// An acknowledged append is missing.
    #[error("LOST: append {id} to list {key}, acknowledged by {node} at {at_ms} ms")]
    Lost {
        /// The list.
        key: Key,
        /// The element.
        id: Id,
        /// The client's node.
        node: String,
        /// Time of the acknowledgement.
        at_ms: u128,
    },
    /// An append that a client read is missing.
    #[error("SEEN AND LOST: append {id} to list {key}, read on {node}")]
    SeenAndLost {
        /// The list.
        key: Key,
        /// The element.
        id: Id,
        /// The reader's node.
        node: String,
    },
    /// An append is in its list more than once.
    #[error("TWICE: append {id} is in list {key} {times} times")]
    Twice {
        /// The list.
        key: Key,
        /// The element.
        id: Id,
        /// Number of times.
        times: usize,
    },
    /// An append exists although its client was told that it failed, or although no client made it.
    #[error("PHANTOM: append {id} to list {key} ({told})")]
    Phantom {
        /// The list.
        key: Key,
        /// The element.
        id: Id,
        /// The answer that its client got.
        told: String,
    },
    /// Only some appends of one transaction exist.
    #[error("TORN: of one transaction {there:?} are there, {missing:?} are not")]
    Torn {
        /// The appends that exist.
        there: Vec<Id>,
        /// The appends that are missing.
        missing: Vec<Id>,
    },
    /// A client read an append of a transaction that failed.
    #[error("DIRTY READ: of append {id} to list {key} on {node}")]
    DirtyRead {
        /// The list.
        key: Key,
        /// The element.
        id: Id,
        /// The reader's node.
        node: String,
    },
    /// A read list is no prefix of the final list.
    #[error("ORDER: list {key} was read on {node} as {read:?}, and is {found:?} in the end")]
    Order {
        /// The list.
        key: Key,
        /// The reader's node.
        node: String,
        /// The last elements of the read list.
        read: Vec<Id>,
        /// The final list's elements at the same places.
        found: Vec<Id>,
    },
    /// Two nodes hold different rows.
    #[error("DIFFERENT: {0}")]
    Different(String),
    /// The balances do not match the transfers.
    #[error("MONEY: {0}")]
    Money(String),
    /// A read missed an append that was acknowledged before its transaction began.
    #[error(
        "STALE READ: list {key} on {node}, transaction begun at {began_ms} ms, lacks append {id}, acknowledged at {at_ms} ms"
    )]
    StaleRead {
        /// The list.
        key: Key,
        /// The missing element.
        id: Id,
        /// The reader's node.
        node: String,
        /// Time when the reading transaction began.
        began_ms: u128,
        /// Time when the append was acknowledged.
        at_ms: u128,
    },
    /// A transaction read a list and appended to it, but another append came between.
    #[error("LOST UPDATE: append {id} to list {key} was made on a list of {read}, and is at {at}")]
    LostUpdate {
        /// The list.
        key: Key,
        /// The element.
        id: Id,
        /// Length of the list that was read.
        read: usize,
        /// The element's place in the list.
        at: usize,
    },
    /// No order of snapshots explains these transactions.
    #[error("NO SNAPSHOT ISOLATION: {0}")]
    Cycle(String),
    /// The cluster did not serve in time.
    #[error("NOT SERVING within {within_s} s of the last start: {states}")]
    NotServing {
        /// The time limit.
        within_s: u64,
        /// The states that the nodes report.
        states: String,
    },
    /// An operator would have had to intervene.
    #[error("HUMAN ACTION: {0}")]
    HumanAction(String),
    /// The schedule was not played to its end.
    #[error("BROKEN OFF: {0}")]
    BrokenOff(String),
}

impl Violation {
    /// The violation's name in the summary.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Lost { .. } => "lost appends",
            Self::SeenAndLost { .. } => "seen and lost",
            Self::Twice { .. } => "appended twice",
            Self::Phantom { .. } => "phantoms",
            Self::Torn { .. } => "torn transactions",
            Self::DirtyRead { .. } => "dirty reads",
            Self::Order { .. } => "reads out of order",
            Self::Different(_) => "nodes differing",
            Self::Money(_) => "money errors",
            Self::StaleRead { .. } => "stale reads",
            Self::LostUpdate { .. } => "lost updates",
            Self::Cycle(_) => "isolation cycles",
            Self::NotServing { .. } => "not serving in time",
            Self::HumanAction(_) => "human actions",
            Self::BrokenOff(_) => "broken off",
        }
    }

    /// All names, in the order of the summary.
    pub const KINDS: [&'static str; 15] = [
        "lost appends",
        "seen and lost",
        "appended twice",
        "phantoms",
        "torn transactions",
        "dirty reads",
        "reads out of order",
        "nodes differing",
        "money errors",
        "stale reads",
        "lost updates",
        "isolation cycles",
        "not serving in time",
        "human actions",
        "broken off",
    ];
}
