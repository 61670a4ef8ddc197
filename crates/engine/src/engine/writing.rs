//! The times of the log's writes and flushes. Appended entries are written before messages leave the node, and before
//! entries are delivered. A flush follows where an acknowledgement needs one, one flush at a time. A failed write or
//! flush ends the node's part in the cluster, and is never retried (rule 23).

use bytes::Bytes;
use trireme_group::{self as group, BulkId};
use trireme_log::{FlushDone, FlushJob, LogError};
use trireme_replicator as replicator;

use crate::engine::{Engine, Failure};
use crate::host::{Host, NotKept};
use crate::staging::{StageDone, StageJob};
use crate::storage::Storage;

impl Engine {
    /// Writes the appended entries, and sees to their flush. Returns true if the group has learnt something by it.
    pub(super) fn write_log(&mut self, now_ms: u64, host: &mut dyn Host) -> bool {
        let Some(link) = &mut self.link else {
            return false;
        };
        let writes = link.flushes.take_unwritten();
        if writes {
            host.log_write_begins();
        }
        let result = link.flushes.write(&mut link.storage, now_ms, host);
        if writes {
            host.log_written();
        }
        match result {
            Ok(Some(position)) => {
                self.group(now_ms, group::Event::Appended { position });
                true
            }
            Ok(None) => false,
            Err(error) => {
                self.log_failed(&error);
                false
            }
        }
    }

    /// Extends a flush that [`Host::flush`] was given, and that has not begun, to the entries appended since.
    /// Returns `None` if the flush has become needless.
    pub fn renew_flush(&mut self, job: FlushJob) -> Option<FlushJob> {
        let link = self.link.as_mut().filter(|_| self.failed.is_none())?;
        let renewed = link.flushes.renew(&mut link.storage, job);
        renewed.unwrap_or_else(|error| {
            self.log_failed(&error);
            None
        })
    }

    /// Takes in the end of a flush that [`Host::flush`] was given.
    pub fn flushed(&mut self, now_ms: u64, done: FlushDone) {
        let Some(link) = self.link.as_mut().filter(|_| self.failed.is_none()) else {
            return;
        };
        match link.flushes.ended(&mut link.storage, done, now_ms) {
            Ok(Some(flushed)) => {
                self.notes.extend(flushed.note);
                if let Some(position) = flushed.position {
                    self.group(now_ms, group::Event::Appended { position });
                }
            }
            Ok(None) => {}
            Err(error) => self.log_failed(&error),
        }
    }

    /// Stages a piece of a large payload.
    pub(super) fn stage(
        &mut self,
        now_ms: u64,
        bulk: BulkId,
        offset: u32,
        bytes: Bytes,
        host: &mut dyn Host,
    ) {
        let Some(link) = &mut self.link else { return };
        let staged = link.storage.stage(bulk, offset, bytes);
        let staged = staged.unwrap_or_else(|error| {
            self.notes.push(not_ahead(&error));
            false
        });
        if !staged {
            return self.not_staged(now_ms, vec![bulk]);
        }
        let apart = link.flushes.are_apart();
        let mut job = link.storage.next_stage_job(bulk);
        if apart {
            job.into_iter().for_each(|job| host.stage(job));
            return;
        }
        while let Some(due) = job {
            job = self.staged(now_ms, due.run());
        }
    }

    /// Takes in the end of a job that [`Host::stage`] was given. Returns the next job of this payload, if one is
    /// due. Jobs of other payloads go first.
    pub fn staged(&mut self, now_ms: u64, done: StageDone) -> Option<StageJob> {
        let link = self.link.as_mut().filter(|_| self.failed.is_none())?;
        let bulk = done.bulk;
        let written = link.storage.staging().wrote(done)?;
        let until = written.unwrap_or_else(|error| {
            self.notes.push(not_ahead(&error));
            u32::MAX
        });
        let job = link.storage.next_stage_job(bulk);
        self.group(now_ms, group::Event::StagedUpTo { bulk, until });
        job
    }

    /// Tells the group that these payloads are appended as usual.
    pub(super) fn not_staged(&mut self, now_ms: u64, bulk_payloads: Vec<BulkId>) {
        for bulk in bulk_payloads {
            let until = u32::MAX;
            self.group(now_ms, group::Event::StagedUpTo { bulk, until });
        }
    }

    /// Writes the entries that this node acknowledges to itself, before they have any effect (rule 4): before messages
    /// are sent (see [`Engine::pump`]), and before entries are delivered.
    pub(super) fn write_before_delivery(&mut self, host: &mut dyn Host) -> bool {
        let Some(link) = &mut self.link else {
            return true;
        };
        if !link.flushes.take_unwritten_for_delivery() {
            return true;
        }
        host.log_write_begins();
        let result = link.storage.write_out();
        host.log_written();
        self.must_write(result);
        self.failed.is_none()
    }

    /// Ends this node's part in the cluster if the log cannot be written. A node that went on would acknowledge entries
    /// that it does not keep. A failed write is never retried (rule 23).
    pub(super) fn must_write(&mut self, result: Result<(), LogError>) {
        if let Err(error) = result {
            self.log_failed(&error);
        }
    }

    fn log_failed(&mut self, error: &LogError) {
        self.failed.get_or_insert_with(|| Failure {
            text: format!("the write-set log cannot be written: {error}"),
            is_lack: !error.is_of_volume(),
        });
    }

    /// Ends this node's part in the cluster because something beside the log cannot be written, as a failed write of
    /// the log does.
    pub(super) fn not_kept(&mut self, what: &str, error: &NotKept) {
        self.failed.get_or_insert_with(|| Failure {
            text: format!("{what}: {}", error.text),
            is_lack: error.is_lack,
        });
    }

    /// Remembers that the volume may have lost written bytes of this log, until the group finds this member intact
    /// again. This outlives the connection.
    pub(super) fn volume_fails(&mut self, storage: &mut Storage, is_lack: bool) {
        self.volume_failed |= storage.note_failure(is_lack);
    }

    /// Ends the connection after a failure. The node sends nothing more, and the others go on without it. It delivers
    /// nothing more; waiting clients get their answers, and the server gets its last view.
    pub(super) fn end_if_failed(&mut self, now_ms: u64, host: &mut dyn Host) {
        let Some(Failure { text, is_lack }) = self.failed.take() else {
            return;
        };
        let Some(mut storage) = self.take_link() else {
            return;
        };
        storage.drop_staged();
        host.fail(&format!(
            "{text}. Every acknowledged write-set was written before. This node leaves the cluster and its server \
             refuses statements; remove the cause, then restart it (or set wsrep_cluster_address again)"
        ));
        self.volume_fails(&mut storage, is_lack);
        let mut notes = Vec::new();
        storage.drain_notes(&mut notes);
        for note in notes {
            host.warn(&note);
        }
        self.ended_log = Some(storage);
        self.group_dirty = false;
        self.group_actions.clear();
        self.node(now_ms, replicator::Event::Left);
        self.carry_out(now_ms, host);
    }
}

fn not_ahead(error: &LogError) -> String {
    format!(
        "cannot write a large write-set to the log while its parts arrive: {error}; the write-sets behind it will wait \
         until it is written"
    )
}
