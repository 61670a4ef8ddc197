//! Appended entries that are not written, or not flushed yet. In: appended and dropped entries, ended flushes.
//! Out: writes and flushes of the storage, one at a time beside those for notes, and the position up to which entries are
//! durable.

use trireme_group::Position;
use trireme_log::{FlushDone, FlushJob, LogError};
use trireme_mutants::{Mutant, planted};

use crate::hang::Hang;
use crate::host::Host;
use crate::storage::Storage;

pub(crate) struct Flushes {
    /// True if an acknowledgement waits for the disk (`repl.durability=disk`).
    awaited: bool,
    /// True if the host runs flushes on a thread of their own.
    apart: bool,
    /// An entry was appended that every mode flushes before any message speaks of it (rule 4).
    at_once: bool,
    /// An entry was appended and is not handed to the operating system yet.
    unwritten: bool,
    /// The last entry appended that no flush covers yet.
    unflushed: Option<Position>,
    /// The last entry that the flush under way covers.
    flushing: Option<Position>,
    /// A flush is running that nothing waits for.
    writing_back: bool,
    /// The duration of the running flush.
    hang: Hang,
}

/// The end of a flush.
pub(crate) struct Flushed {
    /// Entries up to this position are durable now.
    pub(crate) position: Option<Position>,
    /// A message for the operator.
    pub(crate) note: Option<String>,
}

impl Flushes {
    pub(crate) fn new(awaited: bool, apart: bool) -> Flushes {
        Flushes {
            awaited,
            apart,
            at_once: false,
            unwritten: false,
            unflushed: None,
            flushing: None,
            writing_back: false,
            hang: Hang::default(),
        }
    }

    /// True if the host runs flushes on a thread of their own.
    pub(crate) fn are_apart(&self) -> bool {
        self.apart
    }

    /// Returns true if the flush under way takes longer than on a working disk.
    pub(crate) fn hangs(&self, now_ms: u64) -> bool {
        self.hang.is_long(now_ms)
    }

    /// Returns the message about a hanging flush that is due now. `dir`: the log's directory.
    pub(crate) fn hang_note(
        &mut self,
        now_ms: u64,
        dir: impl FnOnce() -> String,
    ) -> Option<String> {
        self.hang.is_due(now_ms, dir)
    }

    // ---- the log has changed ----

    /// An entry was appended. `at_once`: every mode flushes it before any message speaks of it.
    pub(crate) fn appended(&mut self, position: Position, at_once: bool) {
        self.at_once |= at_once;
        self.unwritten = true;
        if self.awaited {
            self.unflushed = Some(position);
        }
    }

    /// The end of a flush must not acknowledge entries that were dropped.
    pub(crate) fn truncated(&mut self, after: Position) {
        self.unflushed = self.unflushed.map(|position| position.min(after));
        self.flushing = self.flushing.map(|position| position.min(after));
    }

    /// Forgets the flushes of the old log, since the log begins anew.
    pub(crate) fn forget(&mut self, now_ms: u64) {
        (self.unflushed, self.flushing, self.writing_back) = (None, None, false);
        self.hang.ends(now_ms);
    }

    // ---- writes and flushes ----

    /// Writes the appended entries, and sees to their flush. Returns the position up to which entries have become
    /// durable.
    pub(crate) fn write(
        &mut self,
        storage: &mut Storage,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Result<Option<Position>, LogError> {
        let waits = self.unflushed.is_some();
        // One flush at a time: a file's error is reported only once, so two flushes would hide it from each other.
        // Entries that are appended meanwhile share the next flush.
        if self.flushing.is_some() {
            storage.write_out().map(|()| None)
        } else if self.at_once || waits && !self.apart {
            self.at_once = false;
            let flushed = storage.flush();
            match planted(Mutant::FlushNotAwaited) {
                true => Ok(self.unflushed.take()),
                false => flushed.map(|()| self.unflushed.take()),
            }
        } else if waits {
            let job = storage.begin_flush()?;
            self.flushing = self.unflushed.take();
            if let Some(job) = job {
                self.hang.begins(now_ms);
                host.flush(job);
            }
            Ok(self.flushing.filter(|_| planted(Mutant::FlushNotAwaited)))
        } else {
            storage.write_out()?;
            self.write_back(storage, now_ms, host).map(|()| None)
        }
    }

    /// Begins a flush when too many bytes wait for one.
    fn write_back(
        &mut self,
        storage: &mut Storage,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Result<(), LogError> {
        let enough = storage.unflushed_bytes() >= storage.thresholds().write_back_bytes;
        if self.awaited || self.writing_back || !enough {
            return Ok(());
        }
        if !self.apart {
            return storage.flush();
        }
        if let Some(job) = storage.begin_write_back()? {
            self.writing_back = true;
            self.hang.begins(now_ms);
            host.flush(job);
        }
        Ok(())
    }

    /// Returns true, once, if entries wait to be written.
    pub(crate) fn take_unwritten(&mut self) -> bool {
        std::mem::take(&mut self.unwritten)
    }

    /// Returns true, once, if entries must be written before their delivery. Entries that wait for a flush are not
    /// counted earlier.
    pub(crate) fn take_unwritten_for_delivery(&mut self) -> bool {
        !self.awaited
            && self.unwritten
            && !planted(Mutant::DeliveredBeforeWritten)
            && self.take_unwritten()
    }

    /// Extends a flush that has not begun to the entries appended since. Returns `None` if the flush has become
    /// needless.
    pub(crate) fn renew(
        &mut self,
        storage: &mut Storage,
        job: FlushJob,
    ) -> Result<Option<FlushJob>, LogError> {
        if self.unflushed.is_none() {
            return Ok(Some(job));
        }
        let renewed = storage.renew_flush(job)?;
        if renewed.is_some() {
            self.flushing = self.unflushed.take();
        }
        Ok(renewed)
    }

    /// Takes in the end of a flush. `None`: it was one of a log that was given up since.
    pub(crate) fn ended(
        &mut self,
        storage: &mut Storage,
        done: FlushDone,
        now_ms: u64,
    ) -> Result<Option<Flushed>, LogError> {
        if !storage.end_flush(done)? {
            return Ok(None);
        }
        self.writing_back = false;
        Ok(Some(Flushed {
            note: self.hang.ends(now_ms),
            position: self.flushing.take(),
        }))
    }
}
