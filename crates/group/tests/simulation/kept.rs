//! What a data directory keeps of the log when its process ends.

use trireme_group::{Body, Checkpoint, Entry, Position, RecoveredLog};

use crate::plan::Plan;
use crate::process::Process;
use crate::random::Random;

/// A log that the next process finds.
#[derive(Clone, Debug)]
pub struct Kept {
    pub log: RecoveredLog,
    /// The machine lost power, and with it what was only written.
    pub amnesiac: bool,
}

/// Entries between two snapshots of the group's state.
const SNAPSHOT_ENTRIES: Position = 40;

impl Process {
    /// Begins with the log that an earlier process left.
    pub fn resume(&mut self, kept: &RecoveredLog) {
        self.log.reset(&kept.checkpoint);
        self.log.left = kept.left;
        for entry in &kept.entries {
            self.log.append(entry.clone());
        }
        self.committed = kept.checkpoint.position;
        self.durable = self.log.end();
        self.snapshot = kept.checkpoint.clone();
    }

    /// Now and then the group's state is noted beside the log.
    pub fn note_snapshot(&mut self) {
        let state = self.group.checkpoint();
        if state.position >= self.snapshot.position + SNAPSHOT_ENTRIES
            || self.snapshot.history.is_nil()
        {
            self.snapshot = state.clone();
        }
    }

    /// What is left of the log; None: nothing of use.
    pub fn keep(&self, plan: &Plan, random: &mut Random) -> Option<Kept> {
        if !random.percent(plan.kept_percent) || self.snapshot.history.is_nil() {
            return None;
        }
        let checkpoint: Checkpoint = self.snapshot.clone();
        let mut entries: Vec<Entry> = self.log.above(checkpoint.position).cloned().collect();
        let end = checkpoint.position + entries.len() as Position;
        // An acknowledgement that waits for the disk is worth what was flushed, the others what was written.
        let certain = self.durable.clamp(checkpoint.position, end);
        let mut kept = random.within(certain..=end);
        let power_loss = plan.append_is_durable && random.percent(plan.power_loss_percent);
        if power_loss {
            // Views are flushed in every mode.
            let is_view = |entry: &&Entry| matches!(entry.body, Body::Configuration(_));
            let view = entries.iter().rev().find(is_view).map(|v| v.position);
            kept = random.within(view.unwrap_or(checkpoint.position)..=end);
        }
        entries.truncate((kept - checkpoint.position) as usize);
        let mut held_bytes: usize = entries.iter().map(Entry::payload_bytes).sum();
        let is_left = |entry: &&Entry| {
            let is_beyond = held_bytes > plan.tail_bytes;
            held_bytes -= entry.payload_bytes();
            is_beyond
        };
        let left = entries.iter().take_while(is_left).count();
        let known = self.committed.clamp(checkpoint.position, kept);
        let commit = random.within(checkpoint.position..=known);
        Some(Kept {
            log: RecoveredLog {
                left: checkpoint.position + left as Position,
                checkpoint,
                entries,
                commit,
            },
            amnesiac: power_loss || self.group.is_amnesiac(),
        })
    }
}
