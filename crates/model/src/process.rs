//! One process: the real core, its log, and the driver's memory. Each event is an [`Input`]; [`crate::driver`] turns
//! it into an [`Outcome`].

use std::collections::BTreeSet;
use std::sync::Arc;

use trireme_group::{
    Checkpoint, Config, Entry, Group, Incarnation, LogReader, Member, Message, NotNow, Position,
    Recovered, ReplicaId, SubmissionId, Term, TimeMs, Uuid,
};

use crate::bound::BEAT_MS;
use crate::breach::Breach;
use crate::fingerprint::Known;

/// The reading of every process's clock before each input (see [`Group::rebase`]).
pub const NOW_MS: TimeMs = 1_000_000;
/// Messages that arrive together, as one batch.
pub type BulkPayload = Known<Vec<Message>>;

/// An event for a process.
#[derive(Clone, Debug, Hash)]
pub enum Input {
    Bootstrap,
    Up(ReplicaId, Incarnation),
    Down(Incarnation),
    Dead(Incarnation),
    BulkPayload(Incarnation, Arc<BulkPayload>),
    /// The promise that was being written is on disk.
    Persisted,
    /// This much time passes, then the core checks its timers.
    Wait(TimeMs),
    /// A client submits a write.
    Submit,
}

/// The log, as the driver writes it.
#[derive(Clone, Debug, Default, Hash)]
pub struct Log {
    base: Position,
    entries: Vec<Arc<Known<Entry>>>,
}

impl Log {
    pub fn end(&self) -> Position {
        self.base + self.entries.len() as Position
    }

    /// Position below which the log has no entries.
    pub fn base(&self) -> Position {
        self.base
    }

    pub fn get(&self, position: Position) -> Option<&Arc<Known<Entry>>> {
        self.entries
            .get(position.checked_sub(self.base + 1)? as usize)
    }

    pub fn starting_at(base: Position) -> Log {
        Log {
            base,
            entries: Vec::new(),
        }
    }

    pub fn append(&mut self, entry: Entry) {
        self.entries.push(Arc::new(Known::new(entry)));
    }

    pub fn truncate(&mut self, after: Position) {
        let kept = after.saturating_sub(self.base) as usize;
        self.entries.truncate(kept);
    }
}

impl LogReader for Log {
    fn read(&self, position: Position) -> Result<Option<Entry>, NotNow> {
        Ok(self.get(position).map(|entry| entry.value.clone()))
    }
}

/// A fact that [`crate::truth`] checks, in the order of their occurrence.
#[derive(Clone, Debug)]
pub enum Fact {
    Committed {
        entry: Arc<Known<Entry>>,
        /// The process's term when it committed the entry.
        term: Term,
        delivered: bool,
    },
    Reset(Checkpoint),
    Withdrawn(SubmissionId),
    TookLeadership(Term, Log),
    Truncated,
    Breach(Breach),
}

/// The result of an input: the process afterwards, its messages, and its facts.
#[derive(Debug)]
pub struct Outcome {
    pub process: Arc<Known<Process>>,
    pub sent: Vec<(Incarnation, Arc<BulkPayload>)>,
    pub facts: Vec<Fact>,
}

/// A process.
#[derive(Clone, Debug, Hash)]
pub struct Process {
    pub incarnation: Incarnation,
    pub group: Group,
    pub log: Log,
    /// Last position whose commit [`crate::truth`] has been told.
    pub committed: Position,
    /// Members that have said that they are JOINED.
    pub joined: BTreeSet<Incarnation>,
    /// The promise on disk.
    pub persisted: Term,
    /// The promise that is being written; always None if the disk takes no time.
    pub writing: Option<Term>,
    pub slow_disk: bool,
    pub batched: bool,
    pub last_number: u64,
    pub saying_joined: bool,
}

impl Process {
    pub fn new(node: u8, start: u8, recovered: Recovered, settings: &Settings) -> Process {
        let member = Member {
            replica: replica(node),
            incarnation: incarnation(node, start),
            full_weight: 1,
            ..Member::default()
        };
        let config = Config {
            heartbeat_ms: BEAT_MS,
            suspect_timeout_ms: settings.suspect_timeout_ms,
            // Otherwise a removal would take more steps than the bounds have.
            removal_margin_ms: 0,
            // The model's clock does not measure a network's round trips.
            measures: false,
            ..Config::new(member)
        };
        Process {
            incarnation: incarnation(node, start),
            persisted: recovered.promised,
            group: Group::new(config, recovered, NOW_MS),
            log: Log::default(),
            committed: 0,
            joined: BTreeSet::new(),
            writing: None,
            slow_disk: settings.slow_disk,
            batched: settings.batched,
            last_number: 0,
            saying_joined: false,
        }
    }
}

/// Settings that all processes of a model share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// See [`Config::suspect_timeout_ms`].
    pub suspect_timeout_ms: TimeMs,
    /// Writing a promise takes time; a crash meanwhile may lose the promise.
    pub slow_disk: bool,
    /// The messages that one input makes a process send to one peer arrive as one batch.
    pub batched: bool,
}

/// The replica id of a node.
pub fn replica(node: u8) -> ReplicaId {
    ReplicaId(Uuid([0xa0 + node; 16]))
}

/// The incarnation of a node's process; the first start is 1.
pub fn incarnation(node: u8, start: u8) -> Incarnation {
    let mut bytes = [0xa0 + node; 16];
    bytes[1] = start;
    Incarnation(Uuid(bytes))
}
