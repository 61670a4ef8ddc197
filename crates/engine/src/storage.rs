//! The write-set log of one history, as the engine writes it. The files below have its reads (`reading`), its recovery
//! (`recovering`), its checkpoints (`checkpoints`), and the notes beside it (`noting`). [`crate::flushes`] chooses the
//! times of writes and flushes.

mod checkpoints;
mod noting;
mod reading;
mod recovering;

use bytes::Bytes;
use trireme_group::{
    BulkId, Checkpoint, ENTRY_HEAD_BYTES, Entry, PAYLOAD_MAX, Position, Uuid, encode_entry_parts,
};
use trireme_log::{Disk, Durability, FlushDone, FlushJob, Log, LogConfig, LogError, Outcome};
use trireme_mutants::{Mutant, planted};

use crate::findings::Findings;
use crate::mark::{KeepMark, Marker};
use crate::session::{Forgotten, Session};
use crate::staging::{StageJob, Staging};
use crate::thresholds::{Counters, Thresholds};

pub(crate) use noting::drop_lost;
pub(crate) use reading::{delivery_of, recorded, with_outcome};

// The log takes every payload that the group admits to the order: a payload that the log refused would stop all
// members.
const _: () =
    assert!(PAYLOAD_MAX as u64 + ENTRY_HEAD_BYTES as u64 <= trireme_log::MAX_PAYLOAD_BYTES);

/// Opens the directory of the log; each call returns another handle.
pub type OpenDisk = Box<dyn Fn() -> Box<dyn Disk> + Send>;

/// The log of one history; none before the node is in one.
pub struct Storage {
    config: LogConfig,
    disk: OpenDisk,
    thresholds: Thresholds,
    /// Counters of the logs that this one has replaced.
    counted: trireme_log::Counters,
    log: Option<Log>,
    /// A log was open in this connection: acknowledgements may rely on it, even if it was given up since.
    had_log: bool,
    /// A log was given up for one that could not be begun.
    is_given_up: bool,
    /// Address of the log below which no checkpoint is due, because the last one was too large; 0: none was.
    no_checkpoint_below: u64,
    /// Payloads that are written ahead of their entries.
    staging: Staging,
    /// The history of the session.
    noted_in: Uuid,
    session: Session,
    /// Messages for the operator.
    notes: Vec<String>,
    /// The checkpoint from which the log of an earlier process was taken up.
    resumed: Option<Checkpoint>,
    /// The findings of the log's reads.
    findings: Findings,
    /// The history of the log on the disk, if no message ever spoke of that log.
    unspoken: Option<Uuid>,
    /// The mark outside the log's volume.
    marker: Marker,
    /// The mark may be replaced: it speaks of this log, or the data directory names this log, and no other, as the one
    /// that this replica acknowledges with.
    owns_mark: bool,
}

impl Storage {
    /// Returns a storage without an open log: the history is unknown, and `config.identity` is filled in later.
    /// `boot_id`: the id of this boot of the machine. `mark`: keeps the mark of the log's end, outside the log's
    /// volume.
    pub fn new(
        config: LogConfig,
        disk: OpenDisk,
        boot_id: [u8; 16],
        mark: Option<Box<dyn KeepMark>>,
    ) -> Storage {
        Storage {
            session: Session::new(config.durability, boot_id),
            config,
            disk,
            thresholds: Thresholds::default(),
            counted: trireme_log::Counters::default(),
            log: None,
            had_log: false,
            is_given_up: false,
            no_checkpoint_below: 0,
            staging: Staging::default(),
            noted_in: Uuid::NIL,
            notes: Vec::new(),
            resumed: None,
            findings: Findings::default(),
            unspoken: None,
            marker: Marker::new(mark),
            owns_mark: false,
        }
    }

    /// Sets the sizes that switch to another way of working.
    pub(crate) fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }

    /// Returns the sizes that switch to another way of working.
    pub(crate) fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// Returns the log's directory, for messages.
    pub(crate) fn dir(&self) -> String {
        (self.disk)().path("").display().to_string()
    }

    /// Sets the id for a new log.
    pub(crate) fn set_log_id(&mut self, id: Uuid) {
        self.session.log = id;
    }

    /// Returns the id of the log; None: there is no log yet.
    pub(crate) fn log_id(&self) -> Option<Uuid> {
        self.log.as_ref().map(|_| self.session.log)
    }

    /// Returns the checkpoint above which the log of an earlier process was taken up; None if the log began anew.
    pub fn resumed(&self) -> Option<&Checkpoint> {
        self.resumed.as_ref()
    }

    /// Moves the messages that the operator has not got yet to the end of `notes`.
    pub fn drain_notes(&mut self, notes: &mut Vec<String>) {
        notes.append(&mut self.notes);
        self.marker.drain_notes(notes);
    }

    /// Returns the counts since the connection began.
    pub fn counters(&self) -> Counters {
        let mut log = self.counted;
        log.add(self.log.as_ref().map(Log::counters).unwrap_or_default());
        Counters {
            parts_read: self.findings.parts_read(),
            log,
        }
    }

    /// Begins a log anew above `checkpoint`, and drops the entries of an earlier one. `forgotten`: the kinds of
    /// acknowledged data that this replica may lack.
    pub fn begin(&mut self, checkpoint: &Checkpoint, forgotten: Forgotten) -> Result<(), LogError> {
        self.give_up_log();
        let log = self.create(checkpoint.history, checkpoint.position + 1)?;
        self.take_new(log, checkpoint.history, forgotten)
    }

    /// Begins the log anew, for the founder of this history. The history's earlier log, if there is one, stays until
    /// [`Storage::publish`]: without it no log would vouch for the database if the process ended before the first log
    /// checkpoint.
    pub fn found(&mut self, history: Uuid) -> Result<(), LogError> {
        const FIRST: Position = 1;
        let is_its_own = self.noted_in == history && !planted(Mutant::OldLogRemovedFirst);
        let log = match self.give_up_log().filter(|_| is_its_own) {
            Some(log) => log.begin_beside(FIRST)?,
            None => self.create(history, FIRST)?,
        };
        self.take_new(log, history, Forgotten::default())
    }

    /// Makes the log that [`Storage::found`] has begun survive a power loss, in place of the earlier one. The caller has
    /// put everything into it that a restart needs.
    pub fn publish(&mut self) -> Result<(), LogError> {
        let session = self.session.encode();
        let log = self.log.as_mut();
        log.map_or(Ok(()), |log| log.publish(&session))?;
        self.begin_mark();
        Ok(())
    }

    /// Ends the use of the log, which another one replaces.
    fn give_up_log(&mut self) -> Option<Log> {
        self.drop_staged();
        self.counted = self.counters().log;
        (self.resumed, self.no_checkpoint_below) = (None, 0);
        self.findings.forget();
        self.is_given_up |= self.published().is_some();
        self.log.take()
    }

    /// Creates a log of this history, in place of any earlier one.
    fn create(&mut self, history: Uuid, next_position: Position) -> Result<Log, LogError> {
        let config = LogConfig {
            identity: history.0,
            ..self.config.clone()
        };
        let disk = (self.disk)();
        let found = Log::identity_on(disk.as_ref())?;
        let mut log = Log::create_on(disk, config)?;
        if let Some(other) = found.map(Uuid).filter(|found| *found != history) {
            self.tell_of_log(&format!(
                "was that of another cluster ({other}): it is kept there as trireme-damaged-*.log; remove these files \
                 when nobody needs them"
            ));
        }
        log.reset(next_position)?;
        Ok(log)
    }

    /// Takes a log that was just begun.
    fn take_new(&mut self, log: Log, history: Uuid, forgotten: Forgotten) -> Result<(), LogError> {
        (self.log, self.had_log, self.is_given_up) = (Some(log), true, false);
        if self.noted_in != history {
            // The notes of another history are gone with its state.
            self.session = Session {
                log: self.session.log,
                ..Session::new(self.config.durability, self.session.boot_id)
            };
            self.noted_in = history;
        }
        self.session.forgotten = forgotten;
        self.save_session()?;
        self.begin_mark();
        Ok(())
    }

    /// Returns the log, if the next process finds it. Until then the session beside it and the mark are those of the
    /// earlier log.
    pub(crate) fn published(&mut self) -> Option<&mut Log> {
        self.log.as_mut().filter(|log| log.is_published())
    }

    /// Notes that the data directory names this log from now on: a mark of another log says nothing about this replica
    /// any more, since it counts as amnesiac on that log.
    pub(crate) fn note_named(&mut self) {
        self.owns_mark = true;
        self.begin_mark();
    }

    /// Begins the mark of this log. The mark of another log stays until [`Storage::note_named`]: if the process ended
    /// before, the next one might find that log again.
    fn begin_mark(&mut self) {
        if !self.owns_mark && !planted(Mutant::UnnamedLogMarked) {
            return;
        }
        if let Some(end) = self.published().map(|log| log.written_end()) {
            let Session { boot_id, log, .. } = self.session;
            (self.marker).begin(self.config.durability, boot_id, log, end);
        }
    }

    /// Moves the mark, outside the volume, to the end of the written log, before any entry up to there is acknowledged.
    fn mark_written(&mut self) {
        if let Some(end) = self.published().map(|log| log.written_end()) {
            self.marker.advance(end);
        }
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

    /// Takes in a piece of a payload, to write it ahead of its entry. False, or an error: the payload will not be
    /// staged.
    pub(crate) fn stage(
        &mut self,
        bulk: BulkId,
        offset: u32,
        bytes: Bytes,
    ) -> Result<bool, LogError> {
        match &mut self.log {
            Some(log) => self.staging.take_in(log, bulk, offset, bytes),
            None => Ok(false),
        }
    }

    /// Returns the next job of a payload, unless one is running or no piece waits.
    pub(crate) fn next_stage_job(&mut self, bulk: BulkId) -> Option<StageJob> {
        let flush_bytes = self.thresholds.stage_flush_bytes;
        self.staging.next_job(bulk, flush_bytes)
    }

    /// Drops the payloads that are written ahead.
    pub(crate) fn drop_staged(&mut self) {
        self.staging = Staging::default();
    }

    /// Returns the payloads that are written ahead.
    pub(crate) fn staging(&mut self) -> &mut Staging {
        &mut self.staging
    }

    /// Hands everything appended to the operating system.
    pub fn write_out(&mut self) -> Result<(), LogError> {
        self.log.as_mut().map_or(Ok(()), Log::write_out)?;
        self.mark_written();
        Ok(())
    }

    /// Makes everything appended survive a power loss.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.log.as_mut().map_or(Ok(()), Log::flush)?;
        self.mark_written();
        Ok(())
    }

    /// Flushes the log before a note that presumes its entries. If all nodes lost power after the note alone, no log
    /// could bring up the databases that may hold a total-order action (rule 13), or no log would count an override as
    /// committed that a database has in its past (rule 11). In `disk` mode a majority has flushed them.
    pub(crate) fn flush_before_note(&mut self) -> Result<(), LogError> {
        let is_flushed = self.config.durability == Durability::Disk;
        match is_flushed || planted(Mutant::NoteAheadOfLog) {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Hands everything appended to the operating system. Returns the rest of the flush; None without a log.
    pub fn begin_flush(&mut self) -> Result<Option<FlushJob>, LogError> {
        let job = self.log.as_mut().map(Log::begin_flush).transpose()?;
        self.mark_written();
        Ok(job)
    }

    /// Extends a flush that was handed out and not begun to the entries appended since. Returns the job; `None`: it was
    /// one of an earlier log.
    pub fn renew_flush(&mut self, job: FlushJob) -> Result<Option<FlushJob>, LogError> {
        self.log
            .as_mut()
            .map_or(Ok(None), |log| log.renew_flush(job))
    }

    /// Returns the number of bytes that no flush covers.
    pub fn unflushed_bytes(&self) -> u64 {
        self.log.as_ref().map_or(0, Log::unflushed_bytes)
    }

    /// Begins a flush that nothing waits for, if one can be made now.
    pub fn begin_write_back(&mut self) -> Result<Option<FlushJob>, LogError> {
        self.log.as_mut().map_or(Ok(None), Log::begin_write_back)
    }

    /// Takes in the end of a flush. Returns false if it was one of an earlier log.
    pub fn end_flush(&mut self, done: FlushDone) -> Result<bool, LogError> {
        self.log
            .as_mut()
            .map_or(Ok(false), |log| log.end_flush(done))
    }

    /// Drops entries above `after`.
    pub fn truncate(&mut self, after: Position) -> Result<(), LogError> {
        self.findings.truncate(after);
        self.log
            .as_mut()
            .map_or(Ok(()), |log| log.truncate_after(after))
    }

    /// Notes the outcome of an entry.
    pub fn set_outcome(&mut self, position: Position, outcome: Outcome) -> Result<(), LogError> {
        self.log
            .as_mut()
            .map_or(Ok(()), |log| log.set_outcome(position, outcome))
    }

    /// Pins entries: those from `keep_from` on are never dropped for want of room.
    pub fn pin(&mut self, keep_from: Position) -> Result<(), LogError> {
        self.log
            .as_mut()
            .map_or(Ok(()), |log| log.set_pins(keep_from))
    }

    /// Returns the size of the log in bytes.
    pub fn log_bytes(&self) -> u64 {
        self.log.as_ref().map_or(0, Log::bytes_kept)
    }

    /// Returns the guarantee behind an acknowledgement (`repl.durability`).
    pub fn durability(&self) -> Durability {
        self.config.durability
    }

    /// Returns by how many bytes the log exceeds `gcache.size`.
    pub fn bytes_beyond_size(&self) -> u64 {
        self.log_bytes().saturating_sub(self.config.size_bytes)
    }
}
