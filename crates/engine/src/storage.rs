//! The write-set log, as the group and the replicator read it.

use std::cell::{Cell, RefCell};

use bytes::Bytes;
use trireme_group::{
    Body, Checkpoint, Delivery, ENTRY_HEAD_BYTES, Entry, LogReader, NotNow, OVERRIDES_MAX,
    PAYLOAD_MAX, ParcelId, Position, Uuid, decode_entry, encode_entry_parts,
};
use trireme_log::{
    Disk, Durability, FlushDone, FlushJob, Log, LogConfig, LogError, Lost, Outcome, Recovered,
};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{Gtid, History, LastAction, Recorded, Seqno, Unread};

use crate::recovery::{self, Recovery, encode_snapshot};
use crate::session::Session;
use crate::staging::Staging;

// Whatever the group lets into the order, the log takes: what it refused would end the part of all members.
const _: () =
    assert!(PAYLOAD_MAX as u64 + ENTRY_HEAD_BYTES as u64 <= trireme_log::MAX_PAYLOAD_BYTES);

/// Opens the directory of the log; each call gives another handle on it.
pub type OpenDisk = Box<dyn Fn() -> Box<dyn Disk> + Send>;

/// The log of one history; none before the node is in one.
pub struct Storage {
    config: LogConfig,
    disk: OpenDisk,
    log: Option<Log>,
    /// Payloads that are written ahead of their entries.
    staging: Staging,
    /// The history that the session is of.
    noted_in: Uuid,
    session: Session,
    /// Of the newest snapshot in the log.
    snapshot: Option<Position>,
    /// What an operator should know.
    notes: Vec<String>,
    /// Where the log of an earlier process was taken up.
    resumed: Option<Checkpoint>,
    /// What could not be read.
    read_error: RefCell<Option<LogError>>,
    /// The history of the log that lies there, if it was begun and never spoken of to anybody.
    unspoken: Option<Uuid>,
    /// Nothing up to here is served to others: it cannot be read.
    unreadable: Cell<Seqno>,
    /// The log that this replica acknowledged with last, as its data directory says; nil: it does not.
    last_log: Uuid,
}

impl Storage {
    /// Nothing is opened yet: which history it is is not known. `config.identity` is filled in then.
    /// `boot_id` names the time since the machine was started.
    pub fn new(config: LogConfig, disk: OpenDisk, boot_id: [u8; 16]) -> Storage {
        Storage {
            session: Session::new(config.durability, boot_id),
            config,
            disk,
            log: None,
            staging: Staging::default(),
            noted_in: Uuid::NIL,
            snapshot: None,
            notes: Vec::new(),
            resumed: None,
            read_error: RefCell::new(None),
            unspoken: None,
            unreadable: Cell::new(0),
            last_log: Uuid::NIL,
        }
    }

    /// Tells which log the data directory names ([`crate::Start::last_log`]), and the id of one that is begun.
    pub(crate) fn set_log_ids(&mut self, last: Uuid, next: Uuid) {
        (self.last_log, self.session.log) = (last, next);
    }

    /// Id of the log; None: there is none yet.
    pub(crate) fn log_id(&self) -> Option<Uuid> {
        self.log.as_ref().map(|_| self.session.log)
    }

    /// The state above which the log of an earlier process was taken up; None if the log began anew.
    pub fn resumed(&self) -> Option<&Checkpoint> {
        self.resumed.as_ref()
    }

    /// True if an earlier process may have been in a history, as far as the log and the database at this
    /// position tell.
    pub fn has_past(&self, local: Gtid) -> Result<bool, LogError> {
        let identity = Log::identity_on((self.disk)().as_ref())?;
        // A founder that died before it had said anything has left both like this.
        let just_begun = local.seqno == 0 && self.unspoken == Some(local.uuid);
        let has_history = !local.uuid.is_nil() && !just_begun;
        Ok(has_history || identity.is_some() && self.unspoken.is_none())
    }

    /// What an operator should know and was not told yet.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// What earlier processes noted of a database in this history: the last total-order action that
    /// began, and the overrides in its past.
    pub fn recall(&mut self, history: Uuid) -> Result<(LastAction, Vec<(Uuid, Seqno)>), LogError> {
        let state = Log::state_on((self.disk)().as_ref(), history.0)?;
        if let Some(session) = state.and_then(|bytes| Session::decode(&bytes)) {
            self.session.action = session.action_as_of(self.session.boot_id);
            self.session.overrides = session.overrides;
            self.noted_in = history;
        }
        Ok((self.session.action, self.session.overrides.clone()))
    }

    /// The total-order action that an earlier process had begun and not ended, which is why it left no
    /// position in grastate.dat; [`Gtid::UNDEFINED`]: there is none.
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

    /// Reads back the log of an earlier process. None: there is none, or none of use. `database`: the
    /// history that the database is in, nil if it is not known. Payloads beyond `held_bytes` are left in the log.
    pub fn recover(
        &mut self,
        database: Uuid,
        held_bytes: usize,
    ) -> Result<Option<Recovery>, LogError> {
        let Some(identity) = Log::identity_on((self.disk)().as_ref())? else {
            return Ok(None);
        };
        let history = Uuid(identity);
        // A log of another cluster than the database's is refused, untouched: one of them is misplaced.
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
        let damaged = may_have_forgotten(examined.found(), last.as_ref())
            && !planted(Mutant::DamageNotForgotten);
        if let Some(last) = last.as_ref().filter(|last| damaged && !last.amnesiac) {
            // The repair takes away what tells of the damage: should this process end before it has
            // noted anything else, the next one finds a log that merely ends (rule 4).
            let noted = Session {
                amnesiac: true,
                ..last.clone()
            };
            if !planted(Mutant::DamageRepairedFirst) {
                examined.save_state(&noted.encode())?;
            }
        }
        let (mut log, found) = examined.open()?;
        let damage = found.damage.iter().map(recovery::tell_damage);
        self.notes.extend(damage);
        if self.config.durability == Durability::Disk {
            // The process before may have died with entries on their way to the disk: they are
            // acknowledged anew.
            log.flush()?;
        }
        let (recovered, control) = match recovery::read(&log, held_bytes)? {
            Ok(read) => read,
            Err(reason) => {
                let unspoken = reason == recovery::NO_STATE && found.damage.is_empty();
                self.unspoken = unspoken.then_some(history);
                let dir = (self.disk)().path("");
                self.notes.push(format!(
                    "the write-set log in {} is not used: {reason}; the other nodes have what is in it",
                    dir.display()
                ));
                return Ok(None);
            }
        };
        let forgotten = last
            .as_ref()
            .is_none_or(|session| session.amnesiac || session.has_forgotten(self.session.boot_id));
        let id = last.as_ref().map_or(Uuid::NIL, |session| session.log);
        let is_other = !self.last_log.is_nil() && id != self.last_log;
        if is_other {
            self.notes.push(format!(
                "the write-set log in {} is not the one that this node has written last (was gcache.dir changed, and \
                 changed back?): until the others have brought it up to date, this node has no vote",
                (self.disk)().path("").display()
            ));
        }
        if !id.is_nil() {
            self.session.log = id;
        }
        let recovery = Recovery {
            history,
            control,
            first_seqno: log.first_seqno_kept(),
            last_seqno: log.last_seqno().unwrap_or(0),
            amnesiac: forgotten || damaged || is_other,
            log: recovered,
        };
        self.snapshot = Some(recovery.log.checkpoint.position);
        self.resumed = Some(recovery.log.checkpoint.clone());
        self.noted_in = history;
        self.session.amnesiac = recovery.amnesiac;
        if let Some(last) = last {
            self.session.action = last.action_as_of(self.session.boot_id);
            self.session.overrides = last.overrides;
        }
        self.log = Some(log);
        self.save_session()?;
        Ok(Some(recovery))
    }

    /// Notes, flushed, that a total-order action begins to execute, or has ended (rule 13);
    /// [`Gtid::UNDEFINED`]: nothing is to be concluded from one.
    pub fn note_action(&mut self, gtid: Gtid, ended: bool) -> Result<(), LogError> {
        self.session.action = LastAction {
            gtid,
            ended,
            same_boot: true,
        };
        self.save_session()
    }

    /// Notes, flushed, that the database's history is to include this override, above an unknown seqno.
    /// `in_log`: all that the group's log holds, which the database follows.
    pub fn note_override(&mut self, id: Uuid, in_log: &[Uuid]) -> Result<(), LogError> {
        let overrides = &mut self.session.overrides;
        if overrides.len() >= OVERRIDES_MAX {
            // Those that were dropped from the log again have come to nothing.
            overrides.retain(|(known, fork)| *fork != 0 || in_log.contains(known));
        }
        if overrides.iter().all(|(known, _)| *known != id) {
            overrides.push((id, 0));
        }
        self.save_session()
    }

    /// Notes, flushed, which overrides the database's history includes (rule 11).
    pub fn note_overrides(&mut self, overrides: Vec<(Uuid, Seqno)>) -> Result<(), LogError> {
        self.session.overrides = overrides;
        self.save_session()
    }

    /// Notes, flushed, whether entries that this replica acknowledged may be missing (rule 4). Costs
    /// nothing if it is noted already.
    pub fn note_amnesia(&mut self, amnesiac: bool) -> Result<(), LogError> {
        if self.session.amnesiac == amnesiac {
            return Ok(());
        }
        self.session.amnesiac = amnesiac;
        self.save_session()
    }

    /// The process lets go of the log, with everything flushed: the next one misses nothing. It can still be
    /// read.
    pub fn close(&mut self) -> Result<(), LogError> {
        if let Err(error) = self.flush() {
            // Who comes next would take what is lost for a torn end, which nobody had relied on.
            if error.is_of_flush() {
                self.note_failed_flush()?;
            }
            return Err(error);
        }
        self.session.clean = true;
        self.save_session()
    }

    /// A flush has failed: the operating system may have given up pages that it had taken. Where
    /// acknowledgements relied on those, this replica may have forgotten something.
    pub fn note_failed_flush(&mut self) -> Result<(), LogError> {
        match self.config.durability {
            Durability::Disk => Ok(()),
            Durability::Memory | Durability::Os => self.note_amnesia(true),
        }
    }

    /// Costs nothing if it is saved already.
    fn save_session(&mut self) -> Result<(), LogError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let bytes = self.session.encode();
        match log.state() == Some(bytes.as_slice()) {
            true => Ok(()),
            false => log.save_state(&bytes),
        }
    }

    /// A log that begins anew above `checkpoint`; what an earlier one holds is dropped.
    pub fn begin(&mut self, checkpoint: &Checkpoint, amnesiac: bool) -> Result<(), LogError> {
        let config = LogConfig {
            identity: checkpoint.history.0,
            ..self.config.clone()
        };
        self.staging = Staging::default();
        self.log = None;
        (self.snapshot, self.resumed) = (None, None);
        self.unreadable.set(0);
        let mut log = Log::create_on((self.disk)(), config)?;
        log.reset(checkpoint.position + 1)?;
        self.log = Some(log);
        if self.noted_in != checkpoint.history {
            // With the state of the other history it is gone.
            self.session = Session {
                log: self.session.log,
                ..Session::new(self.config.durability, self.session.boot_id)
            };
            self.noted_in = checkpoint.history;
        }
        self.session.amnesiac = amnesiac;
        self.save_session()
    }

    /// True if it is time for [`Storage::put_snapshot`].
    pub fn wants_snapshot(&self) -> bool {
        self.log.as_ref().is_some_and(Log::wants_snapshot)
    }

    /// Keeps the state from which the log can be read back, in each segment.
    pub fn put_snapshot(&mut self, state: &Checkpoint, control: &[u8]) -> Result<(), LogError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        log.put_snapshot(state.position, &encode_snapshot(state, control))?;
        self.snapshot = Some(state.position);
        Ok(())
    }

    /// Buffers an entry; [`Storage::write_out`] makes it survive the process.
    pub fn append(&mut self, entry: &Entry) -> Result<(), LogError> {
        match &mut self.log {
            Some(log) => {
                let (head, payload) = encode_entry_parts(entry);
                let id = entry.submission();
                (self.staging).append(log, entry.position, id, &head, &payload)
            }
            None => Ok(()),
        }
    }

    /// Writes a piece of a payload ahead of its entry.
    pub fn stage(&mut self, parcel: ParcelId, offset: u32, bytes: &[u8]) {
        if let Some(log) = &mut self.log {
            self.staging.write(log, parcel, offset, bytes);
        }
    }

    /// Payloads that are written ahead.
    pub(crate) fn staging(&mut self) -> &mut Staging {
        &mut self.staging
    }

    /// Hands everything appended to the operating system.
    pub fn write_out(&mut self) -> Result<(), LogError> {
        self.log.as_mut().map_or(Ok(()), Log::write_out)
    }

    /// Makes everything appended survive a power loss.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.log.as_mut().map_or(Ok(()), Log::flush)
    }

    /// Hands everything appended to the operating system; what is left to do of the flush, if there is a log.
    pub fn begin_flush(&mut self) -> Result<Option<FlushJob>, LogError> {
        self.log.as_mut().map(Log::begin_flush).transpose()
    }

    /// A flush has ended; false if it was one of an earlier log.
    pub fn end_flush(&mut self, done: FlushDone) -> Result<bool, LogError> {
        self.log
            .as_mut()
            .map_or(Ok(false), |log| log.end_flush(done))
    }

    /// What could not be read since this was asked last.
    pub fn take_read_error(&mut self) -> Option<LogError> {
        self.read_error.take()
    }

    /// Drops entries above `after`.
    pub fn truncate(&mut self, after: Position) -> Result<(), LogError> {
        self.log
            .as_mut()
            .map_or(Ok(()), |log| log.truncate_after(after))
    }

    /// Notes what became of an entry.
    pub fn set_outcome(&mut self, position: Position, outcome: Outcome) -> Result<(), LogError> {
        self.log
            .as_mut()
            .map_or(Ok(()), |log| log.set_outcome(position, outcome))
    }

    /// Entries from here on are never dropped for want of room, nor those that recovery needs.
    pub fn pin(&mut self, keep_from: Position) -> Result<(), LogError> {
        let keep_from = (self.snapshot).map_or(keep_from, |at| keep_from.min(at + 1));
        self.log
            .as_mut()
            .map_or(Ok(()), |log| log.set_pins(keep_from))
    }

    /// How much larger the log is than `gcache.size`.
    pub fn bytes_beyond_size(&self) -> u64 {
        let kept = self.log.as_ref().map_or(0, Log::bytes_kept);
        kept.saturating_sub(self.config.size_bytes)
    }

    /// Notes why something was not read. Inner Err: it cannot be read, now or later.
    fn unless_short<T>(&self, read: Result<T, LogError>) -> Result<Result<T, String>, NotNow> {
        let error = match read {
            Ok(read) => return Ok(Ok(read)),
            Err(error) => error,
        };
        let (is_short, text) = (error.is_shortage(), error.to_string());
        let mut noted = self.read_error.borrow_mut();
        // What is lost is not to go unsaid.
        if noted.as_ref().is_none_or(LogError::is_shortage) {
            *noted = Some(error);
        }
        match is_short {
            true => Err(NotNow),
            false => Ok(Err(text)),
        }
    }

    fn recorded(position: Position, payload: Vec<u8>, outcome: Outcome) -> Option<Recorded> {
        let entry = decode_entry(Bytes::from(payload)).ok()?;
        let delivery = delivery_of(entry.body)?;
        let failed = outcome.flags & (Outcome::FAILED | Outcome::SKIPPED) != 0;
        Some(Recorded {
            position,
            seqno: outcome.seqno,
            depends_on: outcome.depends_on,
            failed,
            delivery,
        })
    }
}

impl LogReader for Storage {
    fn read(&self, position: Position) -> Result<Option<Entry>, NotNow> {
        let Some(log) = &self.log else {
            return Ok(None);
        };
        let bytes = self.unless_short(log.read(position))?;
        let bytes = bytes.ok().flatten().map(Bytes::from);
        Ok(bytes.and_then(|bytes| decode_entry(bytes).ok()))
    }

    fn read_run(
        &self,
        from: Position,
        last: Position,
        max_bytes: usize,
    ) -> Result<Vec<Entry>, NotNow> {
        let Some(log) = &self.log else {
            return Ok(Vec::new());
        };
        let run = self.unless_short(log.read_between(from, last, max_bytes as u64))?;
        let entries = run.into_iter().flatten();
        let entries = entries.map(|item| decode_entry(Bytes::from(item.payload)).ok());
        Ok(entries.map_while(|entry| entry).collect())
    }
}

impl History for Storage {
    fn first_seqno(&self) -> Option<Seqno> {
        let first = self.log.as_ref()?.first_seqno()?;
        Some(first.max(self.unreadable.get() + 1))
    }

    fn read(&self, from: Seqno, max_bytes: usize) -> Result<Vec<Recorded>, NotNow> {
        let Some(log) = &self.log else {
            return Ok(Vec::new());
        };
        let run = self.unless_short(log.read_run_from_seqno(from, max_bytes as u64))?;
        let Ok(run) = run else {
            // Whoever asks learns by `first_seqno` that it must go elsewhere.
            self.unreadable.set(log.last_seqno().unwrap_or(from));
            return Ok(Vec::new());
        };
        let with_seqno = run.into_iter().filter_map(|item| {
            let outcome = item.outcome.filter(|outcome| outcome.seqno > 0)?;
            Storage::recorded(item.position, item.payload, outcome)
        });
        Ok(with_seqno.collect())
    }

    fn read_back(
        &self,
        first: Position,
        last: Position,
        max_bytes: usize,
    ) -> Result<Vec<(Position, Delivery)>, Unread> {
        let log = (self.log.as_ref()).ok_or_else(|| Unread::Lost("there is no log".into()))?;
        let run = self.unless_short(log.read_between(first, last, max_bytes as u64));
        let run = run
            .map_err(|NotNow| Unread::NotNow)?
            .map_err(Unread::Lost)?;
        let mut found = Vec::with_capacity(run.len());
        for item in run {
            let entry = decode_entry(Bytes::from(item.payload))
                .map_err(|error| Unread::Lost(error.to_string()))?;
            found.extend(delivery_of(entry.body).map(|delivery| (item.position, delivery)));
        }
        Ok(found)
    }
}

/// What an entry is to those it is delivered to.
fn delivery_of(body: Body) -> Option<Delivery> {
    match body {
        Body::Submission { id, payload } => Some(Delivery::Submission { id, payload }),
        Body::Configuration(configuration) => Some(Delivery::Configuration(configuration)),
        Body::BallotStart | Body::Void { .. } => None,
    }
}

/// Whether entries are gone that the process which saved `last` may have acknowledged.
fn may_have_forgotten(found: &Recovered, last: Option<&Session>) -> bool {
    // Some of the log's end was valid once, and is not there any more.
    let loses_the_end = || found.damage.iter().any(|damage| damage.lost == Lost::Newer);
    match last.map(|session| (session.clean, session.durability)) {
        // What was not flushed was not acknowledged.
        Some((false, Durability::Disk)) => found.may_have_forgotten(),
        // The process had written, or flushed, all that there was.
        Some((true, _)) => found.dropped_bytes > 0 || loses_the_end(),
        _ => loses_the_end(),
    }
}
