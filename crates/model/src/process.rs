//! One process: the real core, its log, and what its driver remembers. Everything that happens to it
//! is an [`Input`]; what comes of it ([`crate::driver`]) is an [`Outcome`].

use std::collections::BTreeSet;
use std::sync::Arc;

use trireme_group::{
    Ballot, Checkpoint, Config, Entry, Group, Incarnation, LogReader, Member, Message, NotNow,
    Position, Recovered, ReplicaId, SubmissionId, TimeMs, Uuid,
};

use crate::bound::BEAT_MS;
use crate::breach::Breach;
use crate::fingerprint::Known;

/// What every process's clock reads before each input (see [`Group::rebase`]).
pub const NOW_MS: TimeMs = 1_000_000;
/// Messages that arrive together.
pub type Parcel = Known<Vec<Message>>;

/// What can happen to a process.
#[derive(Clone, Debug, Hash)]
pub enum Input {
    Bootstrap,
    Up(ReplicaId, Incarnation),
    Down(Incarnation),
    Dead(Incarnation),
    Parcel(Incarnation, Arc<Parcel>),
    /// The promise under way is on disk.
    Persisted,
    /// This much time passes, then the timers are looked at.
    Wait(TimeMs),
    /// A client commits something.
    Submit,
}

/// The log as the driver writes it.
#[derive(Clone, Debug, Default, Hash)]
pub struct Log {
    base: Position,
    entries: Vec<Arc<Known<Entry>>>,
}

impl Log {
    pub fn end(&self) -> Position {
        self.base + self.entries.len() as Position
    }

    /// Position below which entries are unknown.
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

/// What the judge has to know of, in the order in which it happened.
#[derive(Clone, Debug)]
pub enum Fact {
    Committed {
        entry: Arc<Known<Entry>>,
        /// Ballot in force where it was.
        ballot: Ballot,
        delivered: bool,
    },
    Reset(Checkpoint),
    Withdrawn(SubmissionId),
    TookLeadership(Ballot, Log),
    Truncated,
    Breach(Breach),
}

/// What comes of an input.
#[derive(Debug)]
pub struct Outcome {
    pub process: Arc<Known<Process>>,
    pub sent: Vec<(Incarnation, Arc<Parcel>)>,
    pub facts: Vec<Fact>,
}

/// A process.
#[derive(Clone, Debug, Hash)]
pub struct Process {
    pub incarnation: Incarnation,
    pub group: Group,
    pub log: Log,
    /// The judge knows of everything up to here.
    pub committed: Position,
    /// Members that have said "joined".
    pub joined: BTreeSet<Incarnation>,
    /// Promise on disk.
    pub persisted: Ballot,
    /// Promise on its way to the disk; None with a disk that takes no time.
    pub writing: Option<Ballot>,
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
            // Time does not pass there as it does in a network.
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

/// What all processes of a model share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// See [`Config::suspect_timeout_ms`].
    pub suspect_timeout_ms: TimeMs,
    /// A promise takes its time to get to the disk, and may be lost in a crash meanwhile.
    pub slow_disk: bool,
    /// What one input makes a process send to another arrives together, as one batch.
    pub batched: bool,
}

/// Data directory of a node.
pub fn replica(node: u8) -> ReplicaId {
    ReplicaId(Uuid([0xa0 + node; 16]))
}

/// A node's process: the first start is 1.
pub fn incarnation(node: u8, start: u8) -> Incarnation {
    let mut bytes = [0xa0 + node; 16];
    bytes[1] = start;
    Incarnation(Uuid(bytes))
}
