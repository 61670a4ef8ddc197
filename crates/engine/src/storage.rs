//! The write-set log, as the group and the replicator read it.

use bytes::Bytes;
use trireme_group::{
    Body, Checkpoint, Delivery, Entry, LogReader, Position, decode_entry, encode_entry,
};
use trireme_log::{Disk, Log, LogConfig, LogError, Outcome};
use trireme_replicator::{History, Recorded, Seqno};

/// Opens the directory of the log; each call gives another handle on it.
pub type OpenDisk = Box<dyn Fn() -> Box<dyn Disk> + Send>;

/// The log of one history; none before the node is in one.
pub struct Storage {
    config: LogConfig,
    disk: OpenDisk,
    log: Option<Log>,
}

impl Storage {
    /// Nothing is opened yet: which history it is is not known. `config.identity` is filled in then.
    pub fn new(config: LogConfig, disk: OpenDisk) -> Storage {
        Storage {
            config,
            disk,
            log: None,
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
        Ok(())
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
