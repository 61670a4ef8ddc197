//! Large payloads that are written into files of the log as they come in, before they are entries.

use std::collections::BTreeMap;

use bytes::Bytes;
use trireme_group::{ENTRY_HEAD_BYTES, Incarnation, ParcelId, Position, SubmissionId};
use trireme_log::{Log, LogError, Staged};

/// A staged payload that was submitted.
struct Submitted {
    staged: Staged,
    /// So many bytes at its begin are others than those that were staged.
    head: usize,
    digest: u32,
}

/// What is staged in one log.
#[derive(Default)]
pub(crate) struct Staging {
    parcels: BTreeMap<ParcelId, Staged>,
    submitted: BTreeMap<SubmissionId, Submitted>,
}

impl Staging {
    /// Writes the next piece. What cannot be staged is appended as usual, which tells of the trouble if it lasts.
    pub(crate) fn write(&mut self, log: &mut Log, parcel: ParcelId, offset: u32, bytes: &[u8]) {
        if offset == 0 {
            self.parcels.remove(&parcel);
            if let Ok(staged) = log.stage(ENTRY_HEAD_BYTES) {
                self.parcels.insert(parcel, staged);
            }
        }
        let Some(staged) = self.parcels.get_mut(&parcel) else {
            return;
        };
        if staged.written_bytes() != u64::from(offset) || staged.write(bytes).is_err() {
            self.parcels.remove(&parcel);
        }
    }

    pub(crate) fn drop_parcel(&mut self, parcel: ParcelId) {
        self.parcels.remove(&parcel);
    }

    /// A parcel is the payload of this submission.
    pub(crate) fn submit(&mut self, parcel: ParcelId, id: SubmissionId, head: u32, digest: u32) {
        if let Some(staged) = self.parcels.remove(&parcel) {
            let submitted = Submitted {
                staged,
                head: head as usize,
                digest,
            };
            self.submitted.insert(id, submitted);
        }
    }

    /// Nothing of other origins will be appended any more.
    pub(crate) fn keep(&mut self, origins: &[Incarnation]) {
        self.parcels
            .retain(|parcel, _| origins.contains(&parcel.origin));
        self.submitted
            .retain(|id, _| origins.contains(&id.incarnation));
    }

    /// What was staged for a submission. The earlier ones of its origin come no more: an origin's are ordered in turn.
    fn take(&mut self, id: SubmissionId) -> Option<Submitted> {
        let staged = self.submitted.remove(&id);
        self.submitted
            .retain(|other, _| other.incarnation != id.incarnation || other.number > id.number);
        staged
    }

    /// Appends a submission, of which nothing is written again that was staged.
    pub(crate) fn append(
        &mut self,
        log: &mut Log,
        position: Position,
        id: Option<SubmissionId>,
        head: &Bytes,
        payload: &Bytes,
    ) -> Result<(), LogError> {
        let staged = id.and_then(|id| self.take(id));
        match staged.filter(|submitted| submitted.head <= payload.len()) {
            Some(Submitted {
                staged,
                head: first,
                digest,
            }) => log.append_staged(position, head, first, payload, digest, staged),
            None => log.append(position, &[head, payload]),
        }
    }
}
