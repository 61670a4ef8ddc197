//! Messages that members submit to the order (format: `docs/wire-replicator.md`).

use bytes::Bytes;
use trireme_certification::{DecodeError, KeySetError, Seqno};
use trireme_group::{Incarnation, Uuid};

use crate::gtid::Gtid;
use crate::wire::{Reader, put_bytes};
use crate::writeset::WriteSet;

/// Version of the format of submissions.
pub(crate) const VERSION: u8 = 1;
pub(crate) const KIND_WRITE_SET: u8 = 1;
const KIND_STATE_REQUEST: u8 = 2;
const KIND_JOINED: u8 = 3;
const KIND_SYNCED: u8 = 4;
const KIND_DONATED: u8 = 5;
const KIND_DESYNC: u8 = 6;
const KIND_RESYNC: u8 = 7;
const KIND_APPLIED: u8 = 8;
const KIND_VOTE: u8 = 9;
const KIND_LEAVE_OUT: u8 = 10;
const KIND_CAUGHT_UP: u8 = 11;
const KIND_IN_DOUBT: u8 = 12;
const KIND_SCRIPT_REQUEST: u8 = 13;

/// The reason why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    #[error("format version {0}, this node knows version {1}")]
    Version(u8, u8),
    #[error("unknown kind {0}")]
    Kind(u8),
    #[error("ends too early")]
    Truncated,
    #[error("{0} more bytes follow")]
    Trailing(usize),
    #[error("impossible {0}: {1}")]
    Value(&'static str, u64),
    #[error("a text is not UTF-8")]
    Utf8,
    #[error(transparent)]
    Keys(#[from] KeySetError),
    #[error(transparent)]
    Certification(#[from] DecodeError),
    #[error("the digest does not match")]
    Digest,
}

/// The payload of a submission. Only a write-set takes a seqno.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    WriteSet(WriteSet),
    /// A joiner requests an SST, or a script that passes the joiner's own position on.
    StateRequest {
        /// The server's request, for the donor's server.
        request: Bytes,
        /// The position of the joiner's database.
        local: Gtid,
        /// `wsrep_sst_donor`.
        preference: String,
        /// The joiner has all entries that it needs, or will get them by IST. It only lacks the report of the donor's
        /// script on `local`.
        bypass: bool,
    },
    /// A joiner has its state.
    Joined,
    /// A member has caught up.
    Synced,
    /// A donor has finished; not 0: it failed.
    Donated {
        rcode: i32,
    },
    Desync,
    Resync,
    /// The sender's applied watermark: everything that it submits from now on has seen at least this seqno.
    Applied(Seqno),
    /// This member holds up the sender's writers, or is the sender, and would: leave it out of flow control.
    LeaveOut(Incarnation),
    /// A member that was left out has caught up.
    CaughtUp,
    /// A joiner's database is at this seqno, and may hold a total-order action above it (rule 13).
    InDoubt(Seqno),
    /// The sender's ballot on the outcome of a seqno: 0, or a digest of the error, with its text for the logs. If the
    /// message opens the vote: the number of successes that decide it at once (0: the majority decides).
    Vote {
        seqno: Seqno,
        ballot: u64,
        policy: u8,
        text: String,
    },
}

impl Message {
    /// Returns the wire form of every message but a write-set.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = vec![VERSION];
        match self {
            Message::WriteSet(_) => unreachable!("write-sets are encoded by WriteSetDraft"),
            Message::StateRequest {
                request,
                local,
                preference,
                bypass,
            } => {
                out.push(match bypass {
                    true => KIND_SCRIPT_REQUEST,
                    false => KIND_STATE_REQUEST,
                });
                out.extend_from_slice(&local.uuid.0);
                out.extend_from_slice(&local.seqno.to_le_bytes());
                put_bytes(&mut out, preference.as_bytes());
                put_bytes(&mut out, request);
            }
            Message::Joined => out.push(KIND_JOINED),
            Message::Synced => out.push(KIND_SYNCED),
            Message::Donated { rcode } => {
                out.push(KIND_DONATED);
                out.extend_from_slice(&rcode.to_le_bytes());
            }
            Message::Desync => out.push(KIND_DESYNC),
            Message::Resync => out.push(KIND_RESYNC),
            Message::Applied(seqno) => {
                out.push(KIND_APPLIED);
                out.extend_from_slice(&seqno.to_le_bytes());
            }
            Message::LeaveOut(member) => {
                out.push(KIND_LEAVE_OUT);
                out.extend_from_slice(&member.0.0);
            }
            Message::CaughtUp => out.push(KIND_CAUGHT_UP),
            Message::InDoubt(seqno) => {
                out.push(KIND_IN_DOUBT);
                out.extend_from_slice(&seqno.to_le_bytes());
            }
            Message::Vote {
                seqno,
                ballot,
                policy,
                text,
            } => {
                out.push(KIND_VOTE);
                out.extend_from_slice(&seqno.to_le_bytes());
                out.extend_from_slice(&ballot.to_le_bytes());
                out.push(*policy);
                put_bytes(&mut out, text.as_bytes());
            }
        }
        Bytes::from(out)
    }

    /// Returns true if this payload gives the server of the node `is_own` no work, even if it is for this node: it only
    /// changes states of members. `may_donate`: a joiner's request may be for this node.
    pub(crate) fn needs_no_server(payload: &[u8], is_own: bool, may_donate: bool) -> bool {
        match payload {
            [VERSION, KIND_WRITE_SET, ..] => false,
            [VERSION, KIND_STATE_REQUEST, ..] => !may_donate,
            // The node is told that it is synced.
            [VERSION, KIND_SYNCED | KIND_CAUGHT_UP, ..] => !is_own,
            _ => true,
        }
    }

    pub(crate) fn decode(payload: &Bytes) -> Result<Message, MessageError> {
        let mut reader = Reader::new(payload.clone());
        match reader.u8()? {
            VERSION => {}
            other => return Err(MessageError::Version(other, VERSION)),
        }
        let message = match reader.u8()? {
            KIND_WRITE_SET => return WriteSet::parse(payload).map(Message::WriteSet),
            kind @ (KIND_STATE_REQUEST | KIND_SCRIPT_REQUEST) => {
                let uuid: Uuid = reader.uuid()?;
                let local = Gtid {
                    uuid,
                    seqno: reader.seqno()?,
                };
                let preference = reader.string()?;
                Message::StateRequest {
                    request: reader.bytes()?,
                    local,
                    preference,
                    bypass: kind == KIND_SCRIPT_REQUEST,
                }
            }
            KIND_JOINED => Message::Joined,
            KIND_SYNCED => Message::Synced,
            KIND_DONATED => Message::Donated {
                rcode: reader.i32()?,
            },
            KIND_DESYNC => Message::Desync,
            KIND_RESYNC => Message::Resync,
            KIND_APPLIED => Message::Applied(reader.seqno()?),
            KIND_LEAVE_OUT => Message::LeaveOut(reader.incarnation()?),
            KIND_CAUGHT_UP => Message::CaughtUp,
            KIND_IN_DOUBT => Message::InDoubt(reader.seqno()?),
            KIND_VOTE => Message::Vote {
                seqno: reader.seqno()?,
                ballot: reader.u64()?,
                policy: reader.u8()?,
                text: reader.string()?,
            },
            other => return Err(MessageError::Kind(other)),
        };
        reader.end()?;
        Ok(message)
    }
}
