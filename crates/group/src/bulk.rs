//! Bulk payloads on their way: what the parts that spread, fetch and serve them ask for.

use bytes::Bytes;

use crate::ids::{Incarnation, ParcelId, SubmissionId};
use crate::message::Message;

/// What is to be done for a bulk payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BulkOutput {
    Send(Vec<Incarnation>, Message),
    /// The log may write these bytes ahead of their entry.
    Stage {
        parcel: ParcelId,
        offset: u32,
        bytes: Bytes,
    },
    /// It is not wanted any more.
    Unstage(ParcelId),
    /// An own one may be submitted: a majority and the leader hold it, or the majority is lost.
    MaySubmit(u64),
    /// All of one has come from its origin.
    Fetched,
    /// This is the payload of a submission: what was staged as the parcel, but for its first bytes.
    Ready {
        parcel: ParcelId,
        id: SubmissionId,
        head: u32,
        digest: u32,
        payload: Bytes,
    },
    /// The same, out of the leader's log.
    ReadyFromLog {
        parcel: ParcelId,
        id: SubmissionId,
        digest: u32,
        payload: Bytes,
    },
    /// This process, which was asked, has it no more: a checkpoint may be all that is left.
    AskAnew(Incarnation),
}
