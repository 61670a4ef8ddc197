//! Recovery after a restart. In: the log and the notes of the node's earlier process. Out: a [`Recovery`], with the
//! state from which group and replicator go on, and the verdict whether this replica is amnesiac (rule 4).

use bytes::Bytes;
use trireme_group::{
    Body, Configuration, Entry, Position, RecoveredLog, ReplicaId, Uuid, decode_entry,
};
use trireme_log::{Damage, Disk, Durability, Examined, Log, LogConfig, LogError, Lost, Recovered};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{Gtid, LastAction, Seqno};

use crate::session::{Forgotten, Session, Trial, UNKNOWN_BOOT};
use crate::snapshot::decode_snapshot;
use crate::start_error::StartError;
use crate::storage::Storage;

/// The log was begun, and its process ended before it had put the first log checkpoint into it.
const NO_STATE: &str = "it has no snapshot of the cluster's state";

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
    /// The view with seqno 1, which the founder of the history made; None if the log does not go back so far.
    pub first_view: Option<Configuration>,
    /// Highest seqno in the log that is known to be committed.
    pub last_seqno: Seqno,
    /// The kinds of acknowledged data that this replica may lack.
    pub forgotten: Forgotten,
}

impl Recovery {
    /// Returns true if this is the log of the replica that founded the history without any past, from the first entry
    /// on.
    pub fn was_founded_by(&self, replica: ReplicaId) -> bool {
        let alone = |c: &Configuration| {
            c.number == 1
                && c.override_id.is_none()
                && matches!(&c.members[..], [member] if member.replica == replica)
        };
        self.first_view.as_ref().is_some_and(alone)
    }

    /// Returns true if this log alone can bring a database at this seqno up to date.
    pub fn reaches(&self, seqno: Seqno) -> bool {
        let behind = seqno < self.last_seqno;
        let next_is_here = self.first_seqno.is_some_and(|first| first <= seqno + 1);
        seqno == self.last_seqno || behind && next_is_here
    }
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
fn read(
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

/// Returns the configuration that was ordered as seqno 1, if the log has it and can read it; the newest checkpoint may
/// be far beyond.
fn first_view(log: &Log) -> Option<Configuration> {
    let run = log.read_run(log.position_of_seqno(1)?, 1).ok()?;
    let payload = run.into_iter().next()?.payload;
    match decode_entry(Bytes::from(payload)).ok()?.body {
        Body::Configuration(configuration) => Some(configuration),
        _ => None,
    }
}

/// Returns a line about one damaged place.
fn tell_damage(damage: &Damage) -> String {
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

impl Storage {
    /// Returns true if an earlier process may have been in a history, as far as the log and the database at this
    /// position tell.
    pub fn has_past(&self, local: Gtid) -> Result<bool, LogError> {
        let identity = Log::identity_on((self.disk)().as_ref())?;
        // A founder that died before it had sent any message leaves log and database like this.
        let just_begun = local.seqno == 0 && self.unspoken == Some(local.uuid);
        let has_history = !local.uuid.is_nil() && !just_begun;
        Ok(has_history || identity.is_some() && self.unspoken.is_none())
    }

    /// Takes over the notes of earlier processes on a database in this history. Returns the last total-order action
    /// that began, and the overrides in the database's past.
    pub fn recall(&mut self, history: Uuid) -> Result<(LastAction, Vec<(Uuid, Seqno)>), LogError> {
        let state = Log::state_on((self.disk)().as_ref(), history.0)?;
        if let Some(session) = state.and_then(|bytes| Session::decode(&bytes)) {
            self.session.action = session.action_as_of(self.session.boot_id);
            self.session.overrides = session.overrides;
            self.session.diverged = session.diverged;
            self.noted_in = history;
        }
        Ok((self.session.action, self.session.overrides.clone()))
    }

    /// Begins the trial of a server that starts with its database at this position, and will apply the log above it.
    /// Err: the server has died of the next entry too often. Notes nothing before [`Storage::recover`] has taken up the
    /// log.
    pub fn begin_trial(&mut self, local: Gtid, apply_again: Seqno) -> Result<(), StartError> {
        if !local.is_known() {
            return Ok(());
        }
        let state = Log::state_on((self.disk)().as_ref(), local.uuid.0)?;
        let last = state.and_then(|bytes| Session::decode(&bytes));
        let none = Session::new(self.config.durability, UNKNOWN_BOOT);
        let trial = Trial::after(&last.unwrap_or(none), local.seqno);
        let next = local.seqno.saturating_add(1);
        if trial.deaths >= Trial::DEATHS_MAX && apply_again != next {
            return Err(StartError::DiesApplying {
                local,
                next,
                deaths: trial.deaths,
            });
        }
        self.session.trial = Some(trial);
        Ok(())
    }

    /// Returns the history of the log that an earlier process has left; None: there is no log.
    pub fn history_on(disk: &dyn Disk) -> Result<Option<Uuid>, LogError> {
        Ok(Log::identity_on(disk)?.map(Uuid))
    }

    /// Returns the total-order action that an earlier process began and did not end, so that it left no position in
    /// grastate.dat; [`Gtid::UNDEFINED`]: there is none.
    pub fn interrupted_action(disk: &dyn Disk) -> Result<Gtid, LogError> {
        let Some(history) = Log::identity_on(disk)? else {
            return Ok(Gtid::UNDEFINED);
        };
        let state = Log::state_on(disk, history)?;
        let session = state.and_then(|bytes| Session::decode(&bytes));
        let action = session.map_or(LastAction::NONE, |session| session.action);
        Ok(match action.ended {
            true => Gtid::UNDEFINED,
            false => action.gtid,
        })
    }

    /// Reads back the log of an earlier process. None: there is no log, or no useful one. `database`: the history of
    /// the database, nil if unknown. Payloads beyond `held_bytes` stay in the log. `volume_failed`: an earlier
    /// connection of this process has seen the log's volume fail.
    pub fn recover(
        &mut self,
        database: Uuid,
        held_bytes: usize,
        volume_failed: bool,
    ) -> Result<Option<Recovery>, LogError> {
        let mut found = None;
        let recovered = self.recover_log(database, held_bytes, volume_failed, &mut found);
        // The volume may have lost entries that the cache still gives back: the next process must not rely on them.
        if let (Err(error), Some(id)) = (&recovered, found) {
            let may_lose = error.is_of_volume() && !error.is_of_read();
            if may_lose && !planted(Mutant::MarkBegunFirst) {
                self.marker.fail(self.session.boot_id, id);
            }
        }
        recovered
    }

    /// Recovers the log. `found`: set to the id of the log that `os` mode acknowledged with.
    fn recover_log(
        &mut self,
        database: Uuid,
        held_bytes: usize,
        volume_failed: bool,
        found_log: &mut Option<Uuid>,
    ) -> Result<Option<Recovery>, LogError> {
        let Some(identity) = Log::identity_on((self.disk)().as_ref())? else {
            return Ok(None);
        };
        let history = Uuid(identity);
        // A log of another cluster than the database's is refused, and not touched: one of the two is misplaced.
        let identity = match database.is_nil() {
            true => identity,
            false => database.0,
        };
        let config = LogConfig {
            identity,
            ..self.config.clone()
        };
        let mut examined = Log::examine_on((self.disk)(), config)?;
        let last = examined.state().and_then(Session::decode);
        *found_log = (last.as_ref())
            .filter(|last| last.durability == Durability::Os && !last.clean)
            .map(|last| last.log);
        let damaged = may_have_forgotten(examined.found(), last.as_ref())
            && !planted(Mutant::DamageNotForgotten);
        // A power loss takes no flushed entry, and every mode flushes configurations.
        let was_clean = last.as_ref().is_some_and(|last| last.clean);
        let lost_views = damaged && (was_clean || examined.found().may_have_forgotten());
        if let Some(last) = last.as_ref().filter(|_| damaged) {
            note_damage(&mut examined, last, lost_views)?;
        }
        let (mut log, found) = examined.open()?;
        let damage = found.damage.iter().map(tell_damage);
        self.notes.extend(damage);
        if self.config.durability == Durability::Disk {
            // The earlier process may have died while entries were on their way to the disk, or because the disk
            // refused them. Flush again: this process acknowledges them anew.
            match planted(Mutant::CacheCountsAsDisk) {
                true => log.flush()?,
                false => log.flush_anew()?,
            }
        }
        let (recovered, control) = match read(&log, held_bytes, self.thresholds.recovery_bytes)? {
            Ok(read) => read,
            Err(reason) => {
                let unspoken = reason == NO_STATE && found.damage.is_empty();
                self.unspoken = unspoken.then_some(history);
                self.tell_of_log(&format!(
                    "is not used: {reason}; the other nodes have what is in it"
                ));
                return Ok(None);
            }
        };
        let last_session = last.as_ref();
        let forgotten = self.missing(last_session, &log, damaged, lost_views, volume_failed);
        let recovery = Recovery {
            history,
            control,
            first_seqno: log.first_seqno_kept(),
            first_view: first_view(&log),
            last_seqno: log.last_seqno().unwrap_or(0),
            forgotten,
            log: recovered,
        };
        self.adopt(&recovery, log, last)?;
        Ok(Some(recovery))
    }

    /// Adds a line on the log for the operator.
    fn tell_of_log(&mut self, text: &str) {
        let dir = (self.disk)().path("");
        let line = format!("the write-set log in {} {text}", dir.display());
        self.notes.push(line);
    }

    /// Returns the kinds of acknowledged data that this replica may lack (rule 4). `last`: the session that wrote the
    /// log. `damaged`: the log itself shows that entries are lost; with `lost_views`, configurations, too.
    fn missing(
        &mut self,
        last: Option<&Session>,
        log: &Log,
        damaged: bool,
        lost_views: bool,
        volume_failed: bool,
    ) -> Forgotten {
        let boot_id = self.session.boot_id;
        let forgotten =
            last.is_none_or(|session| session.forgotten.entries || session.has_forgotten(boot_id));
        let marked = (self.marker).examine(last, boot_id, log.written_end());
        let lost = match marked {
            Err(reason) => Some(reason),
            Ok(()) if volume_failed => {
                Some("the volume of the write-set log has failed".to_owned())
            }
            Ok(()) => None,
        };
        if let Some(reason) = &lost {
            self.notes.push(format!(
                "{reason} ({}). This node has no vote until the others have brought it up to date",
                (self.disk)().path("").display()
            ));
        }
        let id = last.map_or(Uuid::NIL, |session| session.log);
        let is_other = !self.last_log.is_nil() && id != self.last_log;
        if is_other {
            self.tell_of_log(
                "is not the one that this node has written last (was gcache.dir changed, and changed back?): until the \
                 others have brought it up to date, this node has no vote",
            );
        }
        let entries =
            forgotten || damaged || is_other || lost.is_some() && !planted(Mutant::MarkNotHeeded);
        let noted = last.is_none_or(|last| last.forgotten.views);
        let views = entries && (lost_views || is_other || lost.is_some() || noted);
        Forgotten { entries, views }
    }

    /// Takes over the log: the session gets the notes of the last one.
    fn adopt(
        &mut self,
        recovery: &Recovery,
        log: Log,
        last: Option<Session>,
    ) -> Result<(), LogError> {
        self.snapshot = Some(recovery.log.checkpoint.position);
        self.resumed = Some(recovery.log.checkpoint.clone());
        self.noted_in = recovery.history;
        self.session.forgotten = recovery.forgotten;
        if let Some(last) = last {
            if !last.log.is_nil() {
                self.session.log = last.log;
            }
            self.session.action = last.action_as_of(self.session.boot_id);
            self.session.overrides = last.overrides;
            self.session.diverged = last.diverged;
        }
        self.log = Some(log);
        if planted(Mutant::MarkBegunFirst) {
            self.begin_mark();
        }
        // Save again, even if the session is unchanged.
        if let Some(log) = &mut self.log {
            log.save_state(&self.session.encode())?;
        }
        // Not earlier: the warning of the old mark must be noted in the session first.
        self.begin_mark();
        Ok(())
    }
}

/// Notes the damage before the repair removes the signs of it. Otherwise, if this process ended before its next note,
/// the next one would find a log that merely ends (rule 4).
fn note_damage(examined: &mut Examined, last: &Session, lost_views: bool) -> Result<(), LogError> {
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
fn may_have_forgotten(found: &Recovered, last: Option<&Session>) -> bool {
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
    use trireme_log::MemoryDisk;

    use super::*;
    use crate::snapshot::encode_snapshot;

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
