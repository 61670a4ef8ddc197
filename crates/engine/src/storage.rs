//! The write-set log, as the group and the replicator read it.

use bytes::Bytes;
use trireme_group::{
    Body, Checkpoint, Delivery, Entry, LogReader, Position, Uuid, decode_entry, encode_entry,
};
use trireme_log::{Disk, Log, LogConfig, LogError, Outcome};
use trireme_replicator::{Gtid, History, Recorded, Seqno};

use crate::session::Session;

/// Opens the directory of the log; each call gives another handle on it.
pub type OpenDisk = Box<dyn Fn() -> Box<dyn Disk> + Send>;

/// The log of one history; none before the node is in one.
pub struct Storage {
    config: LogConfig,
    disk: OpenDisk,
    log: Option<Log>,
    /// The history that the following notes are of.
    noted_in: Uuid,
    /// The last total-order action that began (rule 13).
    action: Gtid,
    /// Overrides in the database's past, each above this seqno (rule 11).
    overrides: Vec<(Uuid, Seqno)>,
}

impl Storage {
    /// Nothing is opened yet: which history it is is not known. `config.identity` is filled in then.
    pub fn new(config: LogConfig, disk: OpenDisk) -> Storage {
        Storage {
            config,
            disk,
            log: None,
            noted_in: Uuid::NIL,
            action: Gtid::UNDEFINED,
            overrides: Vec::new(),
        }
    }

    /// What earlier processes noted of a database in this history: the last total-order action that
    /// began, and the overrides in its past.
    pub fn recall(&mut self, history: Uuid) -> Result<(Gtid, Vec<(Uuid, Seqno)>), LogError> {
        let state = Log::state_on((self.disk)().as_ref(), history.0)?;
        if let Some(session) = state.and_then(|bytes| Session::decode(&bytes)) {
            (self.action, self.overrides) = (session.action, session.overrides);
            self.noted_in = history;
        }
        Ok((self.action, self.overrides.clone()))
    }

    /// Notes, flushed, that a total-order action begins to execute (rule 13);
    /// [`Gtid::UNDEFINED`]: the database holds none above its position.
    pub fn note_action(&mut self, action: Gtid) -> Result<(), LogError> {
        self.action = action;
        self.save_session()
    }

    /// Notes, flushed, that the database's history is to include this override, above an unknown seqno.
    pub fn note_override(&mut self, id: Uuid) -> Result<(), LogError> {
        if self.overrides.iter().all(|(known, _)| *known != id) {
            self.overrides.push((id, 0));
        }
        self.save_session()
    }

    /// Notes, flushed, which overrides the database's history includes (rule 11).
    pub fn note_overrides(&mut self, overrides: Vec<(Uuid, Seqno)>) -> Result<(), LogError> {
        self.overrides = overrides;
        self.save_session()
    }

    /// Costs nothing if it is saved already.
    fn save_session(&mut self) -> Result<(), LogError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let is_empty = self.action == Gtid::UNDEFINED && self.overrides.is_empty();
        if is_empty && log.state().is_none() {
            return Ok(());
        }
        let session = Session {
            clean: false,
            durability: self.config.durability,
            boot_id: [0; 16],
            action: self.action,
            overrides: self.overrides.clone(),
        };
        let bytes = session.encode();
        match log.state() == Some(bytes.as_slice()) {
            true => Ok(()),
            false => log.save_state(&bytes),
        }
    }

    /// A log that begins anew above `checkpoint`.
    pub fn begin(&mut self, checkpoint: &Checkpoint) -> Result<(), LogError> {
        let config = LogConfig {
            identity: checkpoint.history.0,
            ..self.config.clone()
        };
        // Until recovery is built, what an earlier process left is not trusted.
        self.log = None;
        let mut log = Log::create_on((self.disk)(), config)?;
        log.reset(checkpoint.position + 1)?;
        self.log = Some(log);
        if self.noted_in != checkpoint.history {
            // With the state of the other history it is gone.
            (self.action, self.overrides) = (Gtid::UNDEFINED, Vec::new());
            self.noted_in = checkpoint.history;
        }
        self.save_session()
    }

    /// Buffers an entry; [`Storage::write_out`] makes it survive the process.
    pub fn append(&mut self, entry: &Entry) -> Result<(), LogError> {
        match &mut self.log {
            Some(log) => log.append(entry.position, &[&encode_entry(entry)]),
            None => Ok(()),
        }
    }

    /// Hands everything appended to the operating system.
    pub fn write_out(&mut self) -> Result<(), LogError> {
        self.log.as_mut().map_or(Ok(()), Log::write_out)
    }

    /// Makes everything appended survive a power loss.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.log.as_mut().map_or(Ok(()), Log::flush)
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

    /// Entries from here on are never dropped for want of room.
    pub fn pin(&mut self, keep_from: Position) -> Result<(), LogError> {
        self.log
            .as_mut()
            .map_or(Ok(()), |log| log.set_pins(keep_from))
    }

    fn recorded(position: Position, payload: Vec<u8>, outcome: Outcome) -> Option<Recorded> {
        let entry = decode_entry(Bytes::from(payload)).ok()?;
        let delivery = match entry.body {
            Body::Submission { id, payload } => Delivery::Submission { id, payload },
            Body::Configuration(configuration) => Delivery::Configuration(configuration),
            Body::BallotStart | Body::Void { .. } => return None,
        };
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
    fn read(&self, position: Position) -> Option<Entry> {
        let bytes = self.log.as_ref()?.read(position).ok()??;
        decode_entry(Bytes::from(bytes)).ok()
    }
}

impl History for Storage {
    fn first_seqno(&self) -> Option<Seqno> {
        self.log.as_ref()?.first_seqno()
    }

    fn read(&self, from: Seqno, max_bytes: usize) -> Vec<Recorded> {
        let Some(log) = &self.log else {
            return Vec::new();
        };
        let Ok(run) = log.read_run_from_seqno(from, max_bytes as u64) else {
            return Vec::new();
        };
        let with_seqno = run.into_iter().filter_map(|item| {
            let outcome = item.outcome.filter(|outcome| outcome.seqno > 0)?;
            Storage::recorded(item.position, item.payload, outcome)
        });
        with_seqno.collect()
    }
}
