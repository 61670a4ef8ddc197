//! The outputs of the parts that disseminate, fetch and serve bulk payloads. [`crate::dissemination`] carries them out.

use bytes::Bytes;

use crate::ids::{BulkId, Incarnation, SubmissionId};
use crate::message::Message;

/// A request of one of these parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BulkOutput {
    Send(Vec<Incarnation>, Message),
    /// The log may write these bytes ahead of their entry.
    Stage {
        bulk: BulkId,
        offset: u32,
        bytes: Bytes,
    },
    /// Drop the staged bytes: nobody wants this bulk payload any more.
    Unstage(BulkId),
    /// An own bulk payload may be submitted: a majority and the leader hold it, or the majority is lost.
    MaySubmit(u64),
    /// A bulk payload of another member has come in completely from its origin.
    Fetched,
    /// This is the payload of a submission. The staged bytes are the same, except the first `head` bytes.
    Ready {
        bulk: BulkId,
        id: SubmissionId,
        head: u32,
        digest: u32,
        payload: Bytes,
    },
    /// As `Ready`, but the payload came from the leader's log.
    ReadyFromLog {
        bulk: BulkId,
        id: SubmissionId,
        digest: u32,
        payload: Bytes,
    },
    /// The process that was asked no longer has the payload: only a log checkpoint may be left of it.
    AskAnew(Incarnation),
}
