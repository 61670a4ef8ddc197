//! Reads back the log of an earlier process. In: the log, and the session that wrote it. Out: the states from which group
//! and replicator go on, and the signs that acknowledged entries are lost (rule 4). [`crate::Storage::recover`] makes a
//! [`Recovery`] of them.

use bytes::Bytes;
use trireme_group::{
    Body, Configuration, Entry, Position, RecoveredLog, ReplicaId, Uuid, decode_entry,
};
use trireme_log::{Damage, Durability, Examined, Log, LogError, Lost, Recovered};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{Fork, Gtid, Seqno, forks_of};

use crate::session::{Forgotten, Session};
use crate::snapshot::decode_snapshot;

/// The log was begun, and its process ended before it had put the first log checkpoint into it.
pub(crate) const NO_STATE: &str = "it has no snapshot of the cluster's state";

/// Above the size of any view.
const VIEW_BYTES_MAX: u32 = 1 << 20;

/// Reasons outside the log to doubt that it has all entries that this replica acknowledged (rule 4).
#[derive(Clone, Copy, Debug, Default)]
pub struct Doubts {
    /// An earlier connection of this process has seen the log's volume fail.
    pub volume_failed: bool,
    /// The log with which this replica acknowledged last, by its data directory ([`crate::Start::last_log`]); nil:
    /// unknown.
    pub last_log: Uuid,
}

/// A log that was read back.
pub struct Recovery {
    /// The cluster's uuid.
    pub history: Uuid,
    /// The group's part.
    pub log: RecoveredLog,
    /// The replicator's part: the control state at the log's checkpoint, or above.
    pub control: Bytes,
    /// Lowest seqno in the log.
    pub first_seqno: Option<Seqno>,
    /// The view with which the log begins, and its seqno; None if the log begins with another entry.
    pub first_view: Option<(Seqno, Configuration)>,
    /// Highest seqno in the log that is known to be committed.
    pub last_seqno: Seqno,
    /// The kinds of acknowledged data that this replica may lack.
    pub forgotten: Forgotten,
}

impl Recovery {
    /// Returns the seqno at which this replica's database counts, if the replica has founded this log, and died before
    /// its database had kept the first view. The log has everything above that seqno. `local`: the database's position;
    /// `untouched`: it has never had one. `action`, `overrides`: the notes on the database.
    pub(crate) fn founder_counts_at(
        &self,
        replica: ReplicaId,
        (local, untouched): (Gtid, bool),
        action: Gtid,
        overrides: &[(Uuid, Seqno)],
    ) -> Option<Seqno> {
        let (first_seqno, view) = self.first_view.as_ref()?;
        let counted = first_seqno - 1;
        let is_from_here =
            |(id, fork): &(Uuid, Seqno)| view.override_id == Some(*id) && *fork == local.seqno;
        let counts = match view.override_id {
            None => untouched && !local.is_known() && view.number == 1,
            Some(_) if planted(Mutant::FoundersActionForgotten) => false,
            // It was bootstrapped at an action that it may hold above its position (rule 13).
            Some(_) => {
                local.precedes(action)
                    && action.seqno == counted
                    && overrides.iter().any(is_from_here)
            }
        };
        let counts = counts && is_alone(view, replica) && self.history == local.uuid;
        counts.then_some(counted)
    }

    /// Returns the notes on the database that this log's founder did not come to save: they come last, after the log has
    /// taken the place of the earlier one. Only for a database that still is where the override was made. `noted`: the
    /// notes that are there. None: they are complete, or are not this log's.
    pub(crate) fn unsaved_overrides(
        &self,
        replica: ReplicaId,
        local: Gtid,
        noted: &[Fork],
    ) -> Option<Vec<Fork>> {
        let (_, view) = self.first_view.as_ref()?;
        let made = view.override_id.filter(|_| is_alone(view, replica))?;
        if self.history != local.uuid || noted.iter().any(|(id, _)| *id == made) {
            return None;
        }
        let mut forks = forks_of(self.control.clone())?;
        let at = forks.iter().position(|fork| *fork == (made, local.seqno))?;
        forks.truncate(at + 1);
        Some(forks)
    }

    /// Returns the overrides that the log knows, oldest first.
    pub(crate) fn overrides(&self) -> Vec<Uuid> {
        let in_entries = self
            .log
            .entries
            .iter()
            .filter_map(|entry| match &entry.body {
                Body::Configuration(made) => made.override_id,
                _ => None,
            });
        let before = self.log.checkpoint.overrides.iter().copied();
        before.chain(in_entries).collect()
    }

    /// Returns true if this log alone can bring a database at this seqno up to date.
    pub fn reaches(&self, seqno: Seqno) -> bool {
        let behind = seqno < self.last_seqno;
        let next_is_here = self.first_seqno.is_some_and(|first| first <= seqno + 1);
        seqno == self.last_seqno || behind && next_is_here
    }
}

/// Returns true if this replica has made the view alone.
fn is_alone(view: &Configuration, replica: ReplicaId) -> bool {
    matches!(&view.members[..], [member] if member.replica == replica)
}

/// Entries in the order of the log. The payloads of the newest are kept in memory, within a bound: other members may
/// need them.
struct Entries {
    all: Vec<Entry>,
    held_bytes: usize,
    /// Number of entries without their payloads.
    left: usize,
}

impl Entries {
    fn push(&mut self, entry: Entry, held_bytes_max: usize) {
        self.held_bytes += entry.payload_bytes();
        self.all.push(entry);
        while self.held_bytes > held_bytes_max && !planted(Mutant::RestartReadsAll) {
            let oldest = &mut self.all[self.left]; // some of them have payloads
            self.held_bytes -= oldest.payload_bytes();
            oldest.drop_payload();
            self.left += 1;
        }
    }
}

/// Reads the log from its newest checkpoint on, `run_bytes` at a time, and keeps `held_bytes` of payloads. Err: the
/// reason why the log is of no use.
pub(crate) fn read(
    log: &Log,
    held_bytes: usize,
    run_bytes: u64,
) -> Result<Result<(RecoveredLog, Bytes), &'static str>, LogError> {
    let Some((position, snapshot)) = log.snapshot_at(u64::MAX)? else {
        return Ok(Err(NO_STATE));
    };
    let Some((checkpoint, control)) = decode_snapshot(Bytes::from(snapshot)) else {
        return Ok(Err("its snapshot of the cluster's state cannot be read"));
    };
    if checkpoint.position != position {
        return Ok(Err("its snapshot is of another position"));
    }
    let mut entries = Entries {
        all: Vec::new(),
        held_bytes: 0,
        left: 0,
    };
    let mut next = position + 1;
    // Not the position of the last entry: damage may have left a checkpoint alone in a segment that begins far above
    // it.
    let end = log.next_position().map_or(position, |next| next - 1);
    while next <= end {
        let run = log.read_run(next, run_bytes)?;
        let Some(last) = run.last() else {
            return Ok(Err("entries above its snapshot are missing"));
        };
        next = last.position + 1;
        for item in run {
            match decode_entry(Bytes::from(item.payload)) {
                Ok(entry) if entry.position == item.position => entries.push(entry, held_bytes),
                _ => return Ok(Err("an entry cannot be read")),
            }
        }
    }
    let outcome = log
        .last_seqno()
        .and_then(|seqno| log.position_of_seqno(seqno));
    let recovered = RecoveredLog {
        commit: outcome.map_or(position, |at: Position| at.max(position)),
        checkpoint,
        left: position + entries.left as Position,
        entries: entries.all,
    };
    Ok(recovered.check().map(|()| (recovered, control)))
}

/// Returns the view with which the log begins, and its seqno; the newest checkpoint may be far beyond. None: the log
/// begins with another entry, or cannot be read.
pub(crate) fn first_view(log: &Log) -> Option<(Seqno, Configuration)> {
    let seqno = log.first_seqno_kept()?;
    let position = log.position_of_seqno(seqno)?;
    log.len_at(position).filter(|len| *len <= VIEW_BYTES_MAX)?; // no start reads a large write-set for this
    let run = log.read_run(position, 1).ok()?;
    let payload = run.into_iter().next()?.payload;
    match decode_entry(Bytes::from(payload)).ok()?.body {
        Body::Configuration(configuration) => Some((seqno, configuration)),
        _ => None,
    }
}

/// Returns a line about one damaged place.
pub(crate) fn tell_damage(damage: &Damage) -> String {
    let aside: Vec<_> = (damage.set_aside.iter())
        .map(|file| file.display().to_string())
        .collect();
    let how = match damage.was_flushed {
        true => " (it had been flushed: check the disk)",
        false => "",
    };
    let lost = match damage.lost {
        Lost::Older => "older entries are given up",
        Lost::Newer => "the entries from there on are taken from the other nodes",
    };
    format!(
        "the write-set log is damaged in {} at offset {}: {}{how}; {lost}; the unusable part was moved to {}, which \
         may be removed",
        damage.file.display(),
        damage.offset,
        damage.reason,
        aside.join(", "),
    )
}

/// Notes the damage before the repair removes the signs of it. Otherwise, if this process ended before its next note,
/// the next one would find a log that merely ends (rule 4).
pub(crate) fn note_damage(
    examined: &mut Examined,
    last: &Session,
    lost_views: bool,
) -> Result<(), LogError> {
    let is_noted = last.forgotten.entries && last.forgotten.views >= lost_views;
    if is_noted || planted(Mutant::DamageRepairedFirst) {
        return Ok(());
    }
    let noted = Session {
        forgotten: Forgotten {
            entries: true,
            views: lost_views || last.forgotten.entries && last.forgotten.views,
        },
        ..last.clone()
    };
    examined.save_state(&noted.encode())
}

/// Returns true if entries are lost that the process which saved `last` may have acknowledged.
pub(crate) fn may_have_forgotten(found: &Recovered, last: Option<&Session>) -> bool {
    // Some entries at the log's end were valid once, and are lost.
    let loses_the_end = || found.damage.iter().any(|damage| damage.lost == Lost::Newer);
    match last.map(|session| (session.clean, session.durability)) {
        // That process acknowledged only flushed entries.
        Some((false, Durability::Disk)) => found.may_have_forgotten(),
        // That process had written, or flushed, everything.
        Some((true, _)) => found.dropped_bytes > 0 || loses_the_end(),
        _ => loses_the_end(),
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::{Checkpoint, Term, encode_entry};
    use trireme_log::{LogConfig, MemoryDisk};
    use trireme_replicator::NOT_DELIVERED;

    use super::*;
    use crate::snapshot::encode_snapshot;

    /// It was bootstrapped at 7 and counted as being at 9, where it may hold DDL: its log begins with the view at 10.
    #[test]
    fn a_founders_database_counts_again_only_while_it_is_where_it_was() {
        let [history, id, other] = [1, 2, 3].map(|fill| Uuid([fill; 16]));
        let [founder, another] = [7, 8].map(|fill| ReplicaId(Uuid([fill; 16])));
        let at = |uuid, seqno| Gtid { uuid, seqno };
        let counts = |local: Gtid, override_id, replica, action, forks: &[(Uuid, Seqno)]| {
            let member = trireme_group::Member {
                replica: founder,
                ..Default::default()
            };
            let view = Configuration {
                number: 1,
                members: vec![member],
                override_id,
                ..Configuration::default()
            };
            let recovery = Recovery {
                history,
                log: RecoveredLog::default(),
                control: Bytes::new(),
                first_seqno: Some(10),
                first_view: Some((10, view)),
                last_seqno: 10,
                forgotten: Forgotten::default(),
            };
            recovery.founder_counts_at(replica, (local, false), at(history, action), forks)
        };
        let forks = [(other, 3), (id, 7)];
        assert_eq!(
            counts(at(history, 7), Some(id), founder, 9, &forks),
            Some(9)
        );
        for (local, override_id, replica, action, forks) in [
            (at(history, 6), Some(id), founder, 9, &forks[..]), // an older backup
            (at(history, 7), Some(id), founder, 9, &[(id, 1)]), // nobody vouched for it
            (at(history, 9), Some(id), founder, 9, &forks),
            (at(history, 7), Some(id), founder, 8, &forks), // another action
            (at(history, -1), Some(id), founder, 9, &forks),
            (at(other, 7), Some(id), founder, 9, &forks),
            (at(history, 7), Some(id), another, 9, &forks), // another node's log
            (at(history, 7), Some(id), founder, 9, &[(id, NOT_DELIVERED)]),
            (at(history, 7), Some(id), founder, 9, &[]),
            (at(history, 7), None, founder, 9, &forks),
        ] {
            let counted = counts(local, override_id, replica, action, forks);
            assert_eq!(counted, None, "{local} {override_id:?} {forks:?}");
        }
    }

    /// Of 87 to 189, and of what followed, damage has left a snapshot of before (seed 622968).
    #[test]
    fn a_log_that_goes_on_far_above_its_snapshot_is_of_no_use() {
        let config = LogConfig::new("".into(), 1 << 20, [1; 16], Durability::Disk);
        for (next, is_used) in [(87, true), (88, false), (190, false)] {
            let mut log = Log::create_on(Box::new(MemoryDisk::new()), config.clone()).unwrap();
            let checkpoint = Checkpoint {
                position: 86,
                ..Checkpoint::default()
            };
            log.reset(next).unwrap();
            log.put_snapshot(86, &encode_snapshot(&checkpoint, b"control"))
                .unwrap();
            assert_eq!(
                read(&log, 1 << 20, 4 << 20).unwrap().is_ok(),
                is_used,
                "{next}"
            );
        }
    }

    /// Checksums say that the bytes are as they were written, not that a member has written them.
    #[test]
    fn a_log_whose_terms_fall_is_of_no_use() {
        let config = LogConfig::new("".into(), 1 << 20, [1; 16], Durability::Disk);
        for (numbers, is_used) in [([1, 2], true), ([2, 1], false), ([1, u64::MAX], false)] {
            let mut log = Log::create_on(Box::new(MemoryDisk::new()), config.clone()).unwrap();
            log.put_snapshot(0, &encode_snapshot(&Checkpoint::default(), b"control"))
                .unwrap();
            for (position, number) in (1..).zip(numbers) {
                let entry = Entry {
                    position,
                    term: Term {
                        number,
                        replica: ReplicaId::default(),
                    },
                    body: Body::TermStart,
                };
                log.append(position, &[&encode_entry(&entry)]).unwrap();
            }
            assert_eq!(
                read(&log, 1 << 20, 4 << 20).unwrap().is_ok(),
                is_used,
                "{numbers:?}"
            );
        }
    }
}
