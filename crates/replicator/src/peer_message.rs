//! Peer messages, from replicator to replicator, outside the order (format: `docs/wire-replicator.md`).

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::Position;

use crate::history::{Recorded, RecordedPart};
use crate::message::MessageError;
use crate::wire::{Reader, put_bytes, put_count, put_recorded};

/// Version of the format of peer messages, and of the records in them.
const VERSION: u8 = 1;

/// A peer message. All state transfer is pulled: a joiner without an answer repeats its request, or asks another
/// member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PeerMessage {
    /// Send me your control state, at or above this position.
    SnapshotRequest { round: u64, at_least: Position },
    /// A part of the control state.
    SnapshotChunk(SnapshotChunk),
    /// I have no control state, or none that is recent enough yet.
    SnapshotRefused { round: u64 },
    /// Send me the entries from this seqno on.
    IstPull { from: Seqno },
    /// Here they are; none if the log does not have them.
    IstChunk { from: Seqno, records: Vec<Recorded> },
    /// Send me the entry with this seqno from this offset on: I have the bytes before.
    IstPullPart { from: Seqno, offset: u32 },
    /// A part of the requested entry.
    IstPart(RecordedPart),
    /// My apply queue is too long: do not write for a while (rule 15: a lease).
    FlowStop,
    /// Go on.
    FlowContinue,
    /// My apply queue grows: write no more than this for a while (a lease, as with a stop).
    FlowPace { per_second: u32 },
}

/// Encodes entries for a peer that has pulled them from `from` on.
pub fn ist_chunk(from: Seqno, records: Vec<Recorded>) -> Bytes {
    PeerMessage::IstChunk { from, records }.encode()
}

/// Encodes a part of a long entry for a peer that has pulled it.
pub fn ist_part(part: RecordedPart) -> Bytes {
    PeerMessage::IstPart(part).encode()
}

/// A part of a control state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SnapshotChunk {
    /// The round of the request.
    pub round: u64,
    /// Offset of the part.
    pub offset: u64,
    /// Size of the whole.
    pub total: u64,
    /// The part.
    pub part: Bytes,
}

impl PeerMessage {
    /// Returns true for a request that only members may make. Answers may come from any member that was asked.
    pub(crate) fn is_of_members(&self) -> bool {
        match self {
            PeerMessage::SnapshotRequest { .. }
            | PeerMessage::IstPull { .. }
            | PeerMessage::IstPullPart { .. }
            | PeerMessage::FlowStop
            | PeerMessage::FlowContinue
            | PeerMessage::FlowPace { .. } => true,
            PeerMessage::SnapshotChunk(_)
            | PeerMessage::SnapshotRefused { .. }
            | PeerMessage::IstChunk { .. }
            | PeerMessage::IstPart(_) => false,
        }
    }

    /// Returns true for entries, which mean the same only on one branch: nothing in them names the branch. A control
    /// state names its own.
    pub(crate) fn has_entries(&self) -> bool {
        matches!(self, PeerMessage::IstChunk { .. } | PeerMessage::IstPart(_))
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = vec![VERSION];
        match self {
            PeerMessage::SnapshotRequest { round, at_least } => {
                out.push(1);
                out.extend_from_slice(&round.to_le_bytes());
                out.extend_from_slice(&at_least.to_le_bytes());
            }
            PeerMessage::SnapshotChunk(chunk) => {
                out.push(2);
                for number in [chunk.round, chunk.offset, chunk.total] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
                put_bytes(&mut out, &chunk.part);
            }
            PeerMessage::SnapshotRefused { round } => {
                out.push(3);
                out.extend_from_slice(&round.to_le_bytes());
            }
            PeerMessage::IstPull { from } => {
                out.push(4);
                out.extend_from_slice(&from.to_le_bytes());
            }
            PeerMessage::IstChunk { from, records } => {
                out.push(5);
                out.extend_from_slice(&from.to_le_bytes());
                put_count(&mut out, records.len());
                for record in records {
                    put_recorded(&mut out, record);
                }
            }
            PeerMessage::FlowStop => out.push(6),
            PeerMessage::FlowContinue => out.push(7),
            PeerMessage::FlowPace { per_second } => {
                out.push(8);
                out.extend_from_slice(&per_second.to_le_bytes());
            }
            PeerMessage::IstPullPart { from, offset } => {
                out.push(9);
                out.extend_from_slice(&from.to_le_bytes());
                out.extend_from_slice(&offset.to_le_bytes());
            }
            PeerMessage::IstPart(part) => {
                out.push(10);
                put_recorded(&mut out, &part.record);
                for number in [part.len, part.digest, part.offset] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
                put_bytes(&mut out, &part.bytes);
            }
        }
        Bytes::from(out)
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<PeerMessage, MessageError> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            VERSION => {}
            other => return Err(MessageError::Version(other, VERSION)),
        }
        let message = match reader.u8()? {
            1 => PeerMessage::SnapshotRequest {
                round: reader.u64()?,
                at_least: reader.u64()?,
            },
            2 => PeerMessage::SnapshotChunk(SnapshotChunk {
                round: reader.u64()?,
                offset: reader.u64()?,
                total: reader.u64()?,
                part: reader.bytes()?,
            }),
            3 => PeerMessage::SnapshotRefused {
                round: reader.u64()?,
            },
            4 => PeerMessage::IstPull {
                from: reader.seqno()?,
            },
            5 => {
                let from = reader.seqno()?;
                let count = reader.count(30)?;
                let mut records = Vec::with_capacity(count);
                for _ in 0..count {
                    records.push(reader.recorded()?);
                }
                PeerMessage::IstChunk { from, records }
            }
            6 => PeerMessage::FlowStop,
            7 => PeerMessage::FlowContinue,
            8 => PeerMessage::FlowPace {
                per_second: reader.u32()?.max(1), // 0 would be a stop
            },
            9 => PeerMessage::IstPullPart {
                from: reader.seqno()?,
                offset: reader.u32()?,
            },
            10 => PeerMessage::IstPart(RecordedPart {
                record: reader.recorded()?,
                len: reader.u32()?,
                digest: reader.u32()?,
                offset: reader.u32()?,
                bytes: reader.bytes()?,
            }),
            other => return Err(MessageError::Kind(other)),
        };
        reader.end()?;
        Ok(message)
    }
}
