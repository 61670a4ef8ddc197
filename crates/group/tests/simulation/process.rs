//! A process: a real group core, its log, and what its driver and clients remember.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use trireme_group::{
    Checkpoint, ComponentState, Config, Configuration, Delivery, Entry, Group, Incarnation,
    LogReader, Member, NotNow, Position, Recovered, ReplicaId, Term, TimeMs,
};

use crate::plan::Plan;

/// The log, in memory.
#[derive(Debug, Default)]
pub struct MemoryLog {
    base: Position,
    entries: VecDeque<Entry>,
    /// Which write put each entry there.
    writes: VecDeque<u64>,
    last_write: u64,
    retention: usize,
    /// All that its process has left in it can be read.
    pub left: Position,
}

impl MemoryLog {
    pub fn end(&self) -> Position {
        self.base + self.entries.len() as Position
    }

    pub fn get(&self, position: Position) -> Option<&Entry> {
        self.entries
            .get(position.checked_sub(self.base + 1)? as usize)
    }

    /// Returns the number of the write.
    pub fn append(&mut self, entry: Entry) -> u64 {
        assert_eq!(
            entry.position,
            self.end() + 1,
            "harness: the log is contiguous"
        );
        self.last_write += 1;
        self.entries.push_back(entry);
        self.writes.push_back(self.last_write);
        self.last_write
    }

    /// True if the entry at `position` is still the one of this write.
    pub fn holds(&self, position: Position, write: u64) -> bool {
        let index = position.checked_sub(self.base + 1);
        index.and_then(|index| self.writes.get(index as usize)) == Some(&write)
    }

    pub fn truncate(&mut self, after: Position) {
        let kept = after.saturating_sub(self.base) as usize;
        self.entries.truncate(kept);
        self.writes.truncate(kept);
    }

    pub fn reset(&mut self, checkpoint: &Checkpoint) {
        self.base = checkpoint.position;
        self.entries.clear();
        self.writes.clear();
    }

    pub fn above(&self, position: Position) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .skip(position.saturating_sub(self.base) as usize)
    }
}

impl LogReader for MemoryLog {
    fn read(&self, position: Position) -> Result<Option<Entry>, NotNow> {
        let served = position.saturating_add(self.retention as Position) > self.end();
        let kept = served || position <= self.left;
        Ok(self.get(position).filter(|_| kept).cloned())
    }
}

/// What became of a submission, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Waiting,
    /// Failed for good.
    Withdrawn,
    /// Failed, and may be delivered yet.
    Unknown,
}

/// One process of a node.
#[derive(Debug)]
pub struct Process {
    pub name: String,
    pub incarnation: Incarnation,
    pub group: Group,
    pub log: MemoryLog,
    /// The process's clock is ahead of the world's by this.
    pub clock_ms: TimeMs,
    pub paused_until: TimeMs,
    /// When a tick is scheduled.
    pub tick_at: Option<TimeMs>,

    /// Judged up to here.
    pub committed: Position,
    /// State from which an earlier process's log is read back.
    pub snapshot: Checkpoint,
    /// Delivered in this batch.
    pub deliveries: Vec<(Position, Delivery)>,
    /// View of a checkpoint just installed: to be delivered next, if this process is in it.
    pub entrance: Option<Configuration>,
    pub durable: Position,
    pub persisted: Term,
    /// When the flush under way, and the one that waits, are done.
    flushes: [TimeMs; 2],

    pub last_number: u64,
    /// Submissions that are not delivered.
    pub submissions: BTreeMap<u64, Answer>,
    /// Reads that wait, and the position that each must reach.
    pub reads: BTreeMap<u64, Position>,
    pub last_token: u64,
    /// Members that have said "joined", as replicated.
    pub joined: BTreeSet<Incarnation>,
    pub saying_joined: bool,

    /// Holds its vote, by its own delivered configuration.
    pub voter: bool,
    /// Nothing that this replica ever acknowledged is missing.
    pub intact: bool,
    pub leaving: bool,
    pub component_state: ComponentState,
}

impl Process {
    pub fn new(
        plan: &Plan,
        name: String,
        me: (ReplicaId, Incarnation, u8),
        mut recovered: Recovered,
        now: TimeMs,
        clock_ms: TimeMs,
    ) -> Process {
        let (replica, incarnation, full_weight) = me;
        let member = Member {
            replica,
            incarnation,
            full_weight,
            name: name.clone(),
            ..Member::default()
        };
        let config = Config {
            suspect_timeout_ms: plan.suspect_timeout_ms,
            append_is_durable: plan.append_is_durable,
            tail_bytes: plan.tail_bytes,
            window_bytes: plan.window_bytes,
            ..Config::new(member)
        };
        let (persisted, intact) = (recovered.promised, !recovered.amnesiac);
        let kept = recovered.log.clone();
        if let Some(log) = &mut recovered.log {
            let left = log.entries.iter_mut();
            let left = left.take_while(|entry| entry.position <= log.left);
            left.for_each(Entry::drop_payload);
        }
        let mut process = Process {
            name,
            incarnation,
            group: Group::new(config, recovered, now + clock_ms),
            log: MemoryLog {
                retention: plan.retention,
                ..MemoryLog::default()
            },
            clock_ms,
            paused_until: 0,
            tick_at: None,
            committed: 0,
            snapshot: Checkpoint::default(),
            deliveries: Vec::new(),
            entrance: None,
            durable: 0,
            persisted,
            flushes: [0; 2],
            last_number: 0,
            submissions: BTreeMap::new(),
            reads: BTreeMap::new(),
            last_token: 0,
            joined: BTreeSet::new(),
            saying_joined: false,
            voter: false,
            intact,
            leaving: false,
            component_state: ComponentState::Outside,
        };
        if let Some(kept) = kept {
            process.resume(&kept);
        }
        process
    }

    pub fn waiting(&self) -> usize {
        self.submissions
            .values()
            .filter(|answer| **answer == Answer::Waiting)
            .count()
    }

    /// When what is written now is flushed: with the flush that starts once the current one is done.
    pub fn disk(&mut self, now: TimeMs, takes_ms: TimeMs) -> TimeMs {
        let [mut current, mut next] = self.flushes;
        if now >= current && next > current {
            current = next;
        }
        if now >= current {
            current = now + takes_ms;
            next = current;
        } else if next <= current {
            next = current + takes_ms;
        }
        self.flushes = [current, next];
        next
    }
}
