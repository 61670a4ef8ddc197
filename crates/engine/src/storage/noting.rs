//! Notes for the next process, kept beside the log in its state file: the last total-order action, overrides, lost
//! acknowledged data, and the trial of the server. A note is flushed when its function returns.

use trireme_group::{OVERRIDES_MAX, Uuid};
use trireme_log::{Durability, Log, LogError};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{Gtid, LastAction, NOT_DELIVERED, Seqno};

use crate::session::Forgotten;
use crate::storage::Storage;

impl Storage {
    /// Notes, flushed, that a total-order action begins to execute, or has ended (rule 13);
    /// [`Gtid::UNDEFINED`]: the database is not suspected to hold any action.
    pub fn note_action(&mut self, gtid: Gtid, ended: bool) -> Result<(), LogError> {
        self.session.action = LastAction {
            gtid,
            ended,
            same_boot: true,
        };
        self.save_session()
    }

    /// Notes, flushed, that the server begins to apply the entries above its starting position. If the server dies of
    /// them again and again, a later start refuses to give them to it. Only the first apply of a process costs a write.
    pub fn note_applying(&mut self) -> Result<(), LogError> {
        match &mut self.session.trial {
            Some(trial) if !trial.begun => trial.begun = true,
            _ => return Ok(()),
        }
        self.save_session()
    }

    /// Notes, flushed, whether the database differs from the cluster's state. Costs nothing if the note is there
    /// already.
    pub fn note_diverged(&mut self, diverged: bool) -> Result<(), LogError> {
        self.session.diverged = diverged;
        self.save_session()
    }

    /// Returns true if the database differs from the cluster's state ([`Storage::recall`]).
    pub(crate) fn has_diverged(&self) -> bool {
        self.session.diverged
    }

    /// Returns the notes on the database: the last total-order action that began, and the overrides in its past.
    pub(crate) fn noted(&self) -> (LastAction, Vec<(Uuid, Seqno)>) {
        (self.session.action, self.session.overrides.clone())
    }

    /// Notes, flushed, that the database's history will include this override, above a seqno that its delivery tells.
    /// `in_log`: all overrides in the group's log, which the database follows.
    pub fn note_override(&mut self, id: Uuid, in_log: &[Uuid]) -> Result<(), LogError> {
        let overrides = &mut self.session.overrides;
        if overrides.len() >= OVERRIDES_MAX {
            // Overrides that were dropped from the log again never took effect (their seqno was 0 before November 2026).
            overrides.retain(|(known, fork)| *fork > 0 || in_log.contains(known));
        }
        if overrides.iter().all(|(known, _)| *known != id) {
            overrides.push((id, NOT_DELIVERED));
        }
        self.save_session()
    }

    /// Drops, flushed, the notes of overrides that were only ordered here, and that the log has lost since: the database
    /// may have gone another way (rule 11). `in_log`: all overrides in the log. Costs nothing if there is no such note.
    pub fn drop_lost_overrides(&mut self, in_log: &[Uuid]) -> Result<(), LogError> {
        drop_lost(&mut self.session.overrides, in_log);
        self.save_session()
    }

    /// Notes, flushed, the overrides that the database's history includes (rule 11).
    pub fn note_overrides(&mut self, overrides: Vec<(Uuid, Seqno)>) -> Result<(), LogError> {
        self.session.overrides = overrides;
        self.save_session()
    }

    /// Notes, flushed, what the founder of this log did not come to note: the overrides in the database's past. No message
    /// has spoken of the log then, so this replica has `forgotten` nothing.
    pub(crate) fn note_unsaved(
        &mut self,
        overrides: Vec<(Uuid, Seqno)>,
        forgotten: &mut Forgotten,
    ) -> Result<(), LogError> {
        // Without notes of an earlier process it is not known whether a message has.
        if !self.has_diverged() && !planted(Mutant::FounderStaysAmnesiac) {
            *forgotten = Forgotten::default();
            self.session.forgotten = Forgotten::default();
        }
        self.note_overrides(overrides)
    }

    /// Notes, flushed, which acknowledged data this replica may lack (rule 4). Costs nothing if the note is there
    /// already.
    pub fn note_forgotten(&mut self, forgotten: Forgotten) -> Result<(), LogError> {
        if self.session.forgotten == forgotten {
            return Ok(());
        }
        self.session.forgotten = forgotten;
        self.save_session()
    }

    /// Ends the use of the log, with everything flushed: the next process will lack nothing. The log can still be read,
    /// unless it was not published: then the next process finds the earlier one.
    pub fn close(&mut self) -> Result<(), LogError> {
        self.drop_staged();
        if self.is_given_up {
            return Ok(()); // the files left are unknown
        }
        // Without a log this process has nothing to flush. An earlier log keeps its session and its mark.
        if self.published().is_none() && !planted(Mutant::MarkRemovedUnread) {
            self.log = None;
            return Ok(());
        }
        self.flush()?;
        self.session.clean = true;
        self.save_session()?;
        self.marker.end();
        Ok(())
    }

    /// Notes that the log's volume has failed. Returns true if the volume may have lost bytes that acknowledgements
    /// relied on: this replica may be amnesiac. The note goes beside the log, where the write may fail too, and outside
    /// the log's volume. `is_lack`: only room, descriptors or memory were lacking; then a flush tells whether the
    /// volume keeps everything. A log that was given up for one that could not be begun cannot be flushed any more.
    pub(crate) fn note_failure(&mut self, is_lack: bool) -> bool {
        let kept = planted(Mutant::FailureNotNoted)
            || self.config.durability == Durability::Disk
            || !self.had_log
            || is_lack
                && self
                    .log
                    .as_mut()
                    .map(Log::flush_written)
                    .is_some_and(|flushed| flushed.is_ok());
        if kept {
            return false;
        }
        // The mark comes first: a write to the failed volume may block. A log that the data directory does not name yet
        // was not acknowledged with: the mark stays as it is.
        if self.owns_mark {
            self.marker.fail(self.session.boot_id, self.session.log);
        }
        // Entries that were flushed before, such as configurations, are still there.
        let Forgotten { entries, views } = self.session.forgotten;
        let forgotten = Forgotten {
            entries: true,
            views: entries && views,
        };
        if let Err(error) = self.note_forgotten(forgotten) {
            self.notes.push(format!(
                "cannot note beside the write-set log that this node may lack entries that it acknowledged: {error}"
            ));
        }
        true
    }

    /// Saves the session. Costs nothing if it is saved already. The session of a log that is not published is saved by
    /// [`Storage::publish`]. Beside a log that could not be begun anew, the server still applies its queued entries:
    /// the next process finds the notes on them.
    pub(crate) fn save_session(&mut self) -> Result<(), LogError> {
        let bytes = self.session.encode();
        if self.is_given_up {
            let disk = (self.disk)();
            return Log::save_state_on(disk.as_ref(), self.noted_in.0, &bytes);
        }
        let Some(log) = self.published() else {
            return Ok(());
        };
        match log.state() == Some(bytes.as_slice()) {
            true => Ok(()),
            false => log.save_state(&bytes),
        }
    }
}

/// Drops the notes of overrides that were only ordered, and are not in the log.
pub(crate) fn drop_lost(noted: &mut Vec<(Uuid, Seqno)>, in_log: &[Uuid]) {
    let is_kept = |(id, fork): &(Uuid, Seqno)| *fork != NOT_DELIVERED || in_log.contains(id);
    noted.retain(|note| is_kept(note) || planted(Mutant::LostOverrideNoteKept));
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;
    use std::sync::{Arc, Mutex};

    use trireme_group::{Checkpoint, Configuration, Numbers, Term};
    use trireme_log::{LogConfig, MemoryDisk};

    use crate::mark::{KeepMark, MARK_BYTES};
    use crate::recovered_log::Doubts;
    use crate::session::Session;

    use super::*;

    const HISTORY: Uuid = Uuid([7; 16]);

    #[derive(Clone, Default)]
    struct Mark(Arc<Mutex<Option<Vec<u8>>>>);

    impl KeepMark for Mark {
        fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
            Ok(self.0.lock().unwrap().clone())
        }

        fn store(&mut self, bytes: &[u8; MARK_BYTES]) -> io::Result<()> {
            *self.0.lock().unwrap() = Some(bytes.to_vec());
            Ok(())
        }

        fn remove(&mut self) -> io::Result<()> {
            *self.0.lock().unwrap() = None;
            Ok(())
        }

        fn place(&self) -> String {
            "memory".to_owned()
        }
    }

    fn storage(disk: &MemoryDisk, mark: &Mark, durability: Durability) -> Storage {
        let config = LogConfig::new(PathBuf::new(), 1 << 20, HISTORY.0, durability);
        let disk = disk.clone();
        let open = Box::new(move || Box::new(disk.clone()) as Box<dyn trireme_log::Disk>);
        Storage::new(config, open, [3; 16], Some(Box::new(mark.clone())))
    }

    /// The old log is given up when a new one is begun: if that fails, nothing is left that a flush could ask.
    #[test]
    fn a_volume_that_fails_while_the_log_begins_anew_is_remembered() {
        type Begin = fn(&mut Storage) -> Result<(), LogError>;
        let begin: Begin = |storage| storage.begin(&checkpoint(), Forgotten::default());
        let found: Begin = |storage| storage.found(HISTORY);
        for durability in [Durability::Os, Durability::Memory, Durability::Disk] {
            for anew in [begin, found] {
                let (disk, mark) = (MemoryDisk::new(), Mark::default());
                let mut storage = storage(&disk, &mark, durability);
                assert!(!storage.note_failure(false), "no log, nothing to forget");
                begin(&mut storage).unwrap();
                storage.note_named();
                disk.fail_device();
                let error = anew(&mut storage).unwrap_err();
                assert!(error.is_of_volume(), "{error}");
                let may_forget = durability != Durability::Disk;
                assert_eq!(storage.note_failure(false), may_forget, "{durability:?}");
                let noted = mark.0.lock().unwrap().clone();
                let has_failed = noted.is_some_and(|bytes| bytes[12] & 1 != 0);
                assert_eq!(has_failed, may_forget, "{durability:?}");
            }
        }
    }

    /// The volume of a log is not mounted while a process runs, or begins another log.
    #[test]
    fn the_mark_outlives_a_process_that_the_data_directory_names_no_log_of() {
        let (disk, mark) = (MemoryDisk::new(), Mark::default());
        let mut first = storage(&disk, &mark, Durability::Os);
        first.begin(&checkpoint(), Forgotten::default()).unwrap();
        first.note_named();
        first.note_failure(false);
        drop(first);
        let accusation = mark.0.lock().unwrap().clone();
        assert!(accusation.is_some());
        let kept = || *mark.0.lock().unwrap() == accusation;

        let unmounted = MemoryDisk::new();
        let mut second = storage(&unmounted, &mark, Durability::Os);
        second.close().unwrap();
        assert!(kept(), "it had no log");
        let mut third = storage(&unmounted, &mark, Durability::Os);
        third.set_log_id(Uuid([9; 16]));
        third.begin(&checkpoint(), Forgotten::default()).unwrap();
        assert!(kept(), "the votes name the earlier log");
        third.note_failure(false);
        assert!(kept(), "nor was this one acknowledged with");
        third.note_named();
        assert!(!kept());
        third.close().unwrap();
        assert_eq!(*mark.0.lock().unwrap(), None);
    }

    /// The server goes on with its queued entries, DDL among them.
    #[test]
    fn notes_are_kept_beside_a_log_that_could_not_be_begun_anew() {
        let gtid = Gtid {
            uuid: HISTORY,
            seqno: 6,
        };
        let begin = |storage: &mut Storage| storage.begin(&checkpoint(), Forgotten::default());
        for shortage in [true, false] {
            let (disk, mark) = (MemoryDisk::new(), Mark::default());
            let mut storage = storage(&disk, &mark, Durability::Os);
            begin(&mut storage).unwrap();
            match shortage {
                true => disk.set_room(Some(0)),
                false => disk.fail_device(),
            }
            begin(&mut storage).unwrap_err();
            let noted = storage.note_action(gtid, false);
            assert_eq!(noted.is_ok(), shortage, "{noted:?}");
            if shortage {
                storage.close().unwrap();
                assert_eq!(Storage::interrupted_action(&disk).unwrap(), gtid);
                let state = Log::state_on(&disk, HISTORY.0).unwrap().unwrap();
                assert!(!Session::decode(&state).unwrap().clean);
            }
        }
    }

    /// The new log's notes are no proof of anything, if the process dies before a snapshot has come.
    #[test]
    fn lost_notes_stay_lost_in_the_notes_of_a_new_log() {
        let (disk, mark) = (MemoryDisk::new(), Mark::default());
        let (lost, new) = (Uuid([4; 16]), Uuid([5; 16]));
        let recalled = |last_log| {
            let mut storage = storage(&disk, &mark, Durability::Os);
            storage.set_log_id(new);
            storage.recall(HISTORY, last_log).unwrap();
            storage
        };
        let mut first = recalled(lost);
        assert!(first.has_diverged());
        first.begin(&checkpoint(), Forgotten::default()).unwrap();
        drop(first);
        let mut second = recalled(new);
        assert!(second.has_diverged());
        second.begin(&checkpoint(), Forgotten::default()).unwrap();
        second.note_diverged(false).unwrap(); // an SST
        drop(second);
        assert!(!recalled(new).has_diverged());
    }

    /// An older log was put back: its notes do not tell what the database has done since.
    #[test]
    fn notes_beside_another_log_count_as_lost() {
        let (disk, mark) = (MemoryDisk::new(), Mark::default());
        let id = |last: u8| Uuid([[5; 15].as_slice(), &[last]].concat().try_into().unwrap());
        let diverged = |last_log: Uuid| {
            let mut next = storage(&disk, &mark, Durability::Os);
            let (_, overrides) = next.recall(HISTORY, last_log).unwrap();
            let doubts = Doubts {
                volume_failed: false,
                last_log,
            };
            next.recover(HISTORY, 0, doubts).unwrap().unwrap();
            let mut notes = Vec::new();
            next.drain_notes(&mut notes);
            let told = notes.iter().any(|note| note.contains("notes of another"));
            assert_eq!(told, next.has_diverged(), "{notes:?}");
            assert_eq!(next.noted().1.is_empty(), overrides.is_empty());
            assert_eq!(overrides.is_empty(), next.has_diverged());
            next.has_diverged()
        };
        let begin = |log: Uuid| {
            let mut first = storage(&disk, &mark, Durability::Os);
            first.set_log_id(log);
            first.begin(&checkpoint(), Forgotten::default()).unwrap();
            first.put_snapshot(&checkpoint(), &[]).unwrap();
            first.note_overrides(vec![(Uuid([6; 16]), 3)]).unwrap();
            first.close().unwrap();
        };
        for (log, last_log, is_lost) in [
            (id(1), id(1), false),
            (id(2), id(1), false), // killed before the data directory named it
            (id(1), Uuid::NIL, false),
            (Uuid::NIL, Uuid::NIL, false), // an earlier version's
            (id(1), id(2), true),
            (Uuid::NIL, id(1), true),
        ] {
            begin(log);
            assert_eq!(diverged(last_log), is_lost, "{log} after {last_log}");
        }
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            position: 5,
            term: Term::default(),
            history: HISTORY,
            overrides: Vec::new(),
            configuration: Configuration::default(),
            numbers: Numbers::default(),
        }
    }
}
