//! Recovery after a restart: takes over the log and the notes of the node's earlier process, and judges whether this
//! replica is amnesiac (rule 4).

use trireme_group::Uuid;
use trireme_log::{Disk, Durability, Log, LogConfig, LogError};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{Gtid, LastAction, Seqno};

use crate::recovered_log::{self, Doubts, Recovery};
use crate::session::{self, Forgotten, Session, Trial, UNKNOWN_BOOT};
use crate::start::StartError;
use crate::storage::Storage;

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
    /// that began, and the overrides in the database's past. `last_log`: the log with which this replica acknowledged
    /// last; nil: none.
    pub fn recall(
        &mut self,
        history: Uuid,
        last_log: Uuid,
    ) -> Result<(LastAction, Vec<(Uuid, Seqno)>), LogError> {
        let state = Log::state_on((self.disk)().as_ref(), history.0)?;
        let noted = state.and_then(|bytes| Session::decode(&bytes));
        let is_noted = noted.is_some();
        let last = noted.filter(|session| speaks_of_database(session, last_log));
        // A replica with a log has noted something about its database: before that, the database was in no history.
        let is_lost = last.is_none() && !history.is_nil() && !last_log.is_nil();
        if let Some(session) = last {
            self.session.action = session.action_as_of(self.session.boot_id);
            self.session.overrides = session.overrides;
            self.session.diverged = session.diverged;
            self.noted_in = history;
        } else if is_lost && !planted(Mutant::LostNotesTrusted) {
            // The database may have gone another way than the others' (rule 11), or hold an action above its position
            // (rule 13).
            self.session.diverged = true;
            self.noted_in = history;
            let reason = match is_noted {
                true => {
                    "has notes of another write-set log than the one that this node has written last (was gcache.dir \
                     changed, and changed back, or an old copy put there?)"
                }
                false => {
                    "has no notes on this node's database, although this node had a write-set log (was gcache.dir \
                     emptied, changed, or is its volume not mounted?)"
                }
            };
            self.notes.push(format!(
                "trireme-state.log in {} {reason}: nobody knows whether the database is on the cluster's branch. A \
                 snapshot of another node replaces it, unless this node is bootstrapped",
                self.dir()
            ));
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
    /// the database, nil if unknown. Payloads beyond `held_bytes` stay in the log.
    pub fn recover(
        &mut self,
        database: Uuid,
        held_bytes: usize,
        doubts: Doubts,
    ) -> Result<Option<Recovery>, LogError> {
        let mut found = None;
        let last_log = doubts.last_log;
        let recovered = self.recover_log(database, held_bytes, doubts, &mut found);
        // A log that this replica did not acknowledge with last is not relied on anyway, and the mark is not its.
        found = found.filter(|id| !is_other(*id, last_log));
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
        doubts: Doubts,
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
        let damaged = recovered_log::may_have_forgotten(examined.found(), last.as_ref())
            && !planted(Mutant::DamageNotForgotten);
        // A power loss takes no flushed entry, and every mode flushes configurations.
        let was_clean = last.as_ref().is_some_and(|last| last.clean);
        let lost_views = damaged && (was_clean || examined.found().may_have_forgotten());
        if let Some(last) = last.as_ref().filter(|_| damaged) {
            recovered_log::note_damage(&mut examined, last, lost_views)?;
        }
        let (mut log, found) = examined.open()?;
        let damage = found.damage.iter().map(recovered_log::tell_damage);
        self.notes.extend(damage);
        // The earlier process may have died while entries were on their way to the disk, or because the disk refused
        // them. Write and flush again, in every mode: this process acknowledges them anew, and the operating system may
        // drop pages that it counts as written.
        match planted(Mutant::CacheCountsAsDisk) {
            true => log.flush()?,
            false => log.flush_anew()?,
        }
        let (recovered, control) =
            match recovered_log::read(&log, held_bytes, self.thresholds.recovery_bytes)? {
                Ok(read) => read,
                Err(reason) => {
                    let unspoken = reason == recovered_log::NO_STATE && found.damage.is_empty();
                    self.unspoken = unspoken.then_some(history);
                    self.tell_of_log(&format!(
                        "is not used: {reason}; the other nodes have what is in it"
                    ));
                    return Ok(None);
                }
            };
        let last_session = last.as_ref();
        let forgotten = self.missing(last_session, &log, damaged, lost_views, doubts);
        let recovery = Recovery {
            history,
            control,
            first_seqno: log.first_seqno_kept(),
            first_view: recovered_log::first_view(&log),
            last_seqno: log.last_seqno().unwrap_or(0),
            forgotten,
            log: recovered,
        };
        self.adopt(&recovery, log, last, doubts.last_log)?;
        Ok(Some(recovery))
    }

    /// Adds a line on the log for the operator.
    pub(super) fn tell_of_log(&mut self, text: &str) {
        let line = format!("the write-set log in {} {text}", self.dir());
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
        doubts: Doubts,
    ) -> Forgotten {
        let boot_id = self.session.boot_id;
        let forgotten =
            last.is_none_or(|session| session.forgotten.entries || session.has_forgotten(boot_id));
        let marked = (self.marker).examine(last, boot_id, log.written_end());
        let lost = match marked {
            Err(reason) => Some(reason),
            Ok(()) if doubts.volume_failed => {
                Some("the volume of the write-set log has failed".to_owned())
            }
            Ok(()) => None,
        };
        if let Some(reason) = &lost {
            let dir = self.dir();
            self.notes.push(format!(
                "{reason} ({dir}). This node has no vote until the others have brought it up to date"
            ));
        }
        let id = last.map_or(Uuid::NIL, |session| session.log);
        let is_other = is_other(id, doubts.last_log);
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

    /// Takes over the log: the session gets the notes of the last one. `last_log`: the log with which this replica
    /// acknowledged last.
    fn adopt(
        &mut self,
        recovery: &Recovery,
        log: Log,
        last: Option<Session>,
        last_log: Uuid,
    ) -> Result<(), LogError> {
        self.resumed = Some(recovery.log.checkpoint.clone());
        self.noted_in = recovery.history;
        self.session.forgotten = recovery.forgotten;
        let id = last.as_ref().map_or(Uuid::NIL, |last| last.log);
        self.owns_mark = !is_other(id, last_log);
        if let Some(last) = last {
            // Else the log keeps the id for a new one: other copies of it have ids that follow its old id.
            self.session.log = taken_up(last.log, last_log).unwrap_or(self.session.log);
            // Else those of [`Storage::recall`] hold.
            if speaks_of_database(&last, last_log) {
                self.session.action = last.action_as_of(self.session.boot_id);
                self.session.overrides = last.overrides;
                self.session.diverged = last.diverged;
            }
        }
        (self.log, self.had_log) = (Some(log), true);
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

/// Returns true if these notes are the last ones on this replica's database. Those beside another log say nothing of
/// what the database has done since.
fn speaks_of_database(session: &Session, last_log: Uuid) -> bool {
    !is_other(session.log, last_log) || planted(Mutant::OldNotesTrusted)
}

/// Returns true if the log with this id is not the one with which this replica acknowledged last. `last_log`: the id of
/// that log; nil: not known.
fn is_other(id: Uuid, last_log: Uuid) -> bool {
    !last_log.is_nil() && taken_up(id, last_log).is_none()
}

/// Returns the id that a log gets when another process takes it up, so that a copy of its files that was made before does
/// not count as this log. `last_log`: the id with which this replica acknowledged last; nil: not known. None: the log
/// has no id, or is not the one with that id.
fn taken_up(id: Uuid, last_log: Uuid) -> Option<Uuid> {
    if id.is_nil() {
        None
    } else if last_log.is_nil() || id == last_log {
        let is_kept = planted(Mutant::LogIdKept);
        Some(if is_kept {
            id
        } else {
            session::next_log_id(id)
        })
    } else {
        // The process before died after the note beside the log, and before the one beside the votes: no message refers
        // to this id.
        (id == session::next_log_id(last_log)).then_some(id)
    }
}
