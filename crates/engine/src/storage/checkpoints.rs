//! Log checkpoints: the states of group and replicator in the log, from which a restart goes on. A checkpoint that is
//! larger than the log takes is left out, and tried again when the log has grown by as much.

use trireme_group::Checkpoint;
use trireme_log::{Log, LogError};

use crate::snapshot::encode_snapshot;
use crate::storage::Storage;

impl Storage {
    /// Returns true if it is time for [`Storage::put_snapshot`].
    pub fn wants_snapshot(&self) -> bool {
        let is_due = |log: &&Log| log.written_end() >= self.no_checkpoint_below;
        (self.log.as_ref().filter(is_due)).is_some_and(Log::wants_snapshot)
    }

    /// Puts a log checkpoint into the log, at most one into each segment.
    pub fn put_snapshot(&mut self, state: &Checkpoint, control: &[u8]) -> Result<(), LogError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let bytes = encode_snapshot(state, control);
        let (size, limit) = (bytes.len() as u64, self.thresholds.checkpoint_bytes_max);
        if size <= limit {
            return log.put_snapshot(state.position, &bytes);
        }
        // All members have this state: if none could go on without a checkpoint, the whole cluster would end.
        self.no_checkpoint_below = log.written_end() + size;
        self.tell_of_log(&format!(
            "gets no checkpoint: the cluster's state takes {} MiB, and a record of the log at most {} MiB. The log \
             keeps all write-sets since its last checkpoint, whatever gcache.size says, and a restart reads them all. \
             The state has the keys of the write-sets that some node has not applied yet: let lagging nodes catch up, \
             or leave, and change fewer rows in one transaction. The next attempt comes when the log has grown by as \
             much",
            size >> 20,
            limit >> 20,
        ));
        Ok(())
    }
}
