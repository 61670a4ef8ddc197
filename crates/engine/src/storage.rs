//! The write-set log, as the engine writes it. How it is read: reading; how it is taken up again: recovery; what is noted
//! beside it: noting; when it is written and flushed: writing.

use std::cell::{Cell, RefCell};

use bytes::Bytes;
use trireme_group::{
    Checkpoint, ENTRY_HEAD_BYTES, Entry, PAYLOAD_MAX, ParcelId, Position, Uuid, encode_entry_parts,
};
use trireme_log::{Disk, Durability, FlushDone, FlushJob, Log, LogConfig, LogError, Outcome};
use trireme_replicator::Seqno;

use crate::group_reads::LargeReads;
use crate::mark::{KeepMark, Marker};
use crate::session::{Forgotten, Session};
use crate::snapshot::encode_snapshot;
use crate::staging::{StageJob, Staging};
use crate::thresholds::{Counters, Thresholds};

// Whatever the group lets into the order, the log takes: what it refused would end the part of all members.
const _: () =
    assert!(PAYLOAD_MAX as u64 + ENTRY_HEAD_BYTES as u64 <= trireme_log::MAX_PAYLOAD_BYTES);

/// Opens the directory of the log; each call gives another handle on it.
pub type OpenDisk = Box<dyn Fn() -> Box<dyn Disk> + Send>;

/// The log of one history; none before the node is in one.
pub struct Storage {
    pub(crate) config: LogConfig,
    pub(crate) disk: OpenDisk,
    pub(crate) thresholds: Thresholds,
    /// Of logs that this one has replaced.
    pub(crate) counted: trireme_log::Counters,
    pub(crate) parts_read: Cell<u64>,
    pub(crate) log: Option<Log>,
    /// Payloads that are written ahead of their entries.
    pub(crate) staging: Staging,
    /// The history that the session is of.
    pub(crate) noted_in: Uuid,
    pub(crate) session: Session,
    /// Of the newest snapshot in the log.
    pub(crate) snapshot: Option<Position>,
    /// What an operator should know.
    pub(crate) notes: Vec<String>,
    /// Where the log of an earlier process was taken up.
    pub(crate) resumed: Option<Checkpoint>,
    /// What could not be read.
    pub(crate) read_error: RefCell<Option<LogError>>,
    /// Large entries that are read in parts.
    pub(crate) large_reads: RefCell<LargeReads>,
    /// The history of the log that lies there, if it was begun and never spoken of to anybody.
    pub(crate) unspoken: Option<Uuid>,
    /// Nothing up to here is served to others: it cannot be read.
    pub(crate) unreadable: Cell<Seqno>,
    /// The log that this replica acknowledged with last, as its data directory says; nil: it does not.
    pub(crate) last_log: Uuid,
    /// What is noted outside the log's volume.
    pub(crate) marker: Marker,
}

impl Storage {
    /// Nothing is opened yet: which history it is is not known. `config.identity` is filled in then.
    /// `boot_id` names the time since the machine was started. `mark`: where it is noted outside the log's volume how far the
    /// log reaches.
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
            parts_read: Cell::new(0),
            log: None,
            staging: Staging::default(),
            noted_in: Uuid::NIL,
            snapshot: None,
            notes: Vec::new(),
            resumed: None,
            read_error: RefCell::new(None),
            large_reads: RefCell::default(),
            unspoken: None,
            unreadable: Cell::new(0),
            last_log: Uuid::NIL,
            marker: Marker::new(mark),
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

    /// What an operator should know and was not told yet.
    pub fn take_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(self.marker.take_notes());
        notes
    }

    /// What was counted since the connection began.
    pub fn counters(&self) -> Counters {
        let mut log = self.counted;
        log.add(self.log.as_ref().map(Log::counters).unwrap_or_default());
        Counters {
            parts_read: self.parts_read.get(),
            log,
        }
    }

    /// A log that begins anew above `checkpoint`; what an earlier one holds is dropped. `forgotten`: what this
    /// replica may miss of it.
    pub fn begin(&mut self, checkpoint: &Checkpoint, forgotten: Forgotten) -> Result<(), LogError> {
        let config = LogConfig {
            identity: checkpoint.history.0,
            ..self.config.clone()
        };
        self.staging = Staging::default();
        self.counted = self.counters().log;
        self.log = None;
        (self.snapshot, self.resumed) = (None, None);
        self.unreadable.set(0);
        self.large_reads = RefCell::default();
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
        self.session.forgotten = forgotten;
        self.save_session()?;
        self.begin_mark();
        Ok(())
    }

    /// From here on the mark speaks of this log.
    pub(crate) fn begin_mark(&mut self) {
        if let Some(log) = &self.log {
            let Session {
                boot_id, log: id, ..
            } = self.session;
            (self.marker).begin(self.config.durability, boot_id, id, log.written_end());
        }
    }

    /// Outside the volume it is marked how far the log was written, before anything that is in it is acknowledged.
    fn mark_written(&mut self) {
        if let Some(log) = &self.log {
            self.marker.advance(log.written_end());
        }
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

    /// Takes in a piece of a payload, to be written ahead of its entry; false, or an error: it will not be.
    pub(crate) fn stage(
        &mut self,
        parcel: ParcelId,
        offset: u32,
        bytes: Bytes,
    ) -> Result<bool, LogError> {
        match &mut self.log {
            Some(log) => self.staging.take_in(log, parcel, offset, bytes),
            None => Ok(false),
        }
    }

    /// What is to be written next of a payload, if nothing of it is being written.
    pub(crate) fn next_stage_job(&mut self, parcel: ParcelId) -> Option<StageJob> {
        let flush_bytes = self.thresholds.stage_flush_bytes;
        self.staging.next_job(parcel, flush_bytes)
    }

    /// Payloads that are written ahead.
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

    /// Hands everything appended to the operating system; what is left to do of the flush, if there is a log.
    pub fn begin_flush(&mut self) -> Result<Option<FlushJob>, LogError> {
        let job = self.log.as_mut().map(Log::begin_flush).transpose()?;
        self.mark_written();
        Ok(job)
    }

    /// What is left to do of a flush that was handed out and not begun, with what was appended since; `None`: it was one
    /// of an earlier log.
    pub fn renew_flush(&mut self, job: FlushJob) -> Result<Option<FlushJob>, LogError> {
        self.log
            .as_mut()
            .map_or(Ok(None), |log| log.renew_flush(job))
    }

    /// Bytes that no flush covers.
    pub fn unflushed_bytes(&self) -> u64 {
        self.log.as_ref().map_or(0, Log::unflushed_bytes)
    }

    /// A flush that nothing waits for, if it can be made now.
    pub fn begin_write_back(&mut self) -> Result<Option<FlushJob>, LogError> {
        self.log.as_mut().map_or(Ok(None), Log::begin_write_back)
    }

    /// A flush has ended; false if it was one of an earlier log.
    pub fn end_flush(&mut self, done: FlushDone) -> Result<bool, LogError> {
        self.log
            .as_mut()
            .map_or(Ok(false), |log| log.end_flush(done))
    }

    /// Drops entries above `after`.
    pub fn truncate(&mut self, after: Position) -> Result<(), LogError> {
        self.large_reads.get_mut().truncate(after);
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

    /// How large the log is.
    pub fn log_bytes(&self) -> u64 {
        self.log.as_ref().map_or(0, Log::bytes_kept)
    }

    /// What an acknowledgement is worth (`repl.durability`).
    pub fn durability(&self) -> Durability {
        self.config.durability
    }

    /// How much larger the log is than `gcache.size`.
    pub fn bytes_beyond_size(&self) -> u64 {
        self.log_bytes().saturating_sub(self.config.size_bytes)
    }
}
