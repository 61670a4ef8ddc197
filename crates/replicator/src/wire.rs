//! Reads and writes the primitives of the wire formats. Every length is checked before it is used.

use bytes::{Buf, Bytes};
use trireme_certification::Seqno;
use trireme_group::{Configuration, Delivery, Incarnation, Member, ReplicaId, SubmissionId, Uuid};

use crate::history::Recorded;
use crate::message::MessageError;

/// Length of a member without its texts: two ids, six small values, the application protocol, and the lengths of three
/// texts.
const MEMBER_FIXED_BYTES: usize = 2 * 16 + 6 + 4 + 3 * 4;

/// Takes values off the front of a byte string.
pub(crate) struct Reader {
    bytes: Bytes,
}

impl Reader {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Reader { bytes }
    }

    fn need(&self, count: usize) -> Result<(), MessageError> {
        if self.bytes.len() < count {
            Err(MessageError::Truncated)
        } else {
            Ok(())
        }
    }

    pub(crate) fn u8(&mut self) -> Result<u8, MessageError> {
        self.need(1)?;
        Ok(self.bytes.get_u8())
    }

    pub(crate) fn bool(&mut self) -> Result<bool, MessageError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(MessageError::Value("bool", u64::from(other))),
        }
    }

    pub(crate) fn u32(&mut self) -> Result<u32, MessageError> {
        self.need(4)?;
        Ok(self.bytes.get_u32_le())
    }

    pub(crate) fn i32(&mut self) -> Result<i32, MessageError> {
        Ok(self.u32()? as i32)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, MessageError> {
        self.need(8)?;
        Ok(self.bytes.get_u64_le())
    }

    /// Reads a seqno: -1, or a value that counting can reach, so that later code need not check for others.
    pub(crate) fn seqno(&mut self) -> Result<Seqno, MessageError> {
        let seqno = self.u64()?;
        match is_seqno(seqno as i64) {
            true => Ok(seqno as i64),
            false => Err(MessageError::Value("seqno", seqno)),
        }
    }

    pub(crate) fn uuid(&mut self) -> Result<Uuid, MessageError> {
        self.need(16)?;
        let mut raw = [0; 16];
        self.bytes.copy_to_slice(&mut raw);
        Ok(Uuid(raw))
    }

    pub(crate) fn incarnation(&mut self) -> Result<Incarnation, MessageError> {
        self.uuid().map(Incarnation)
    }

    /// Reads bytes with a length in front; a slice, not a copy.
    pub(crate) fn bytes(&mut self) -> Result<Bytes, MessageError> {
        let len = self.u32()? as usize;
        self.need(len)?;
        Ok(self.bytes.split_to(len))
    }

    pub(crate) fn string(&mut self) -> Result<String, MessageError> {
        let bytes = self.bytes()?;
        std::str::from_utf8(&bytes)
            .map(str::to_owned)
            .map_err(|_| MessageError::Utf8)
    }

    /// Reads a number of elements of at least `min_bytes` each, and checks it against the remaining length: fixed parts
    /// of the elements cannot be cut short then.
    pub(crate) fn count(&mut self, min_bytes: usize) -> Result<usize, MessageError> {
        let count = self.u32()? as usize;
        if count.saturating_mul(min_bytes) > self.bytes.len() {
            return Err(MessageError::Truncated);
        }
        Ok(count)
    }

    pub(crate) fn rest(self) -> Bytes {
        self.bytes
    }

    pub(crate) fn end(self) -> Result<(), MessageError> {
        match self.bytes.len() {
            0 => Ok(()),
            more => Err(MessageError::Trailing(more)),
        }
    }

    pub(crate) fn configuration(&mut self) -> Result<Configuration, MessageError> {
        let number = self.u64()?;
        let forked = self.bool()?;
        let (override_id, fork_after) = match forked {
            true => (Some(self.uuid()?), self.u64()?),
            false => (None, 0),
        };
        let count = self.count(MEMBER_FIXED_BYTES)?;
        let mut members = Vec::with_capacity(count);
        for _ in 0..count {
            members.push(self.member()?);
        }
        Ok(Configuration {
            number,
            members,
            override_id,
            fork_after,
        })
    }

    /// Reads a member as [`put_configuration`] writes it. The group's messages and the log have another layout
    /// (`trireme_group`, `codec/types.rs`).
    fn member(&mut self) -> Result<Member, MessageError> {
        Ok(Member {
            replica: ReplicaId(self.uuid()?),
            incarnation: self.incarnation()?,
            weight: self.u8()?,
            full_weight: self.u8()?,
            voter: self.bool()?,
            segment: self.u8()?,
            arbitrator: self.bool()?,
            never_donor: self.bool()?,
            app_protocol: self.i32()?,
            name: self.string()?,
            incoming: self.string()?,
            address: self.string()?,
        })
    }

    pub(crate) fn recorded(&mut self) -> Result<Recorded, MessageError> {
        let (position, seqno, depends_on) = (self.u64()?, self.seqno()?, self.seqno()?);
        let failed = self.bool()?;
        let delivery = match self.u8()? {
            0 => {
                let id = SubmissionId {
                    incarnation: self.incarnation()?,
                    number: self.u64()?,
                };
                Delivery::Submission {
                    id,
                    payload: self.bytes()?,
                }
            }
            1 => Delivery::Configuration(self.configuration()?),
            other => return Err(MessageError::Value("delivery", u64::from(other))),
        };
        Ok(Recorded {
            position,
            seqno,
            depends_on,
            failed,
            delivery,
        })
    }
}

/// Returns true for -1, and for values that counting can reach.
pub(crate) fn is_seqno(seqno: Seqno) -> bool {
    (-1..1 << 62).contains(&seqno)
}

/// Appends bytes with their length in front.
///
/// # Panics
/// Above 4 GiB; no field comes near (a write-set is limited to 2 GiB).
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).expect("no field is longer than 4 GiB");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}

pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("no list is longer than 4 G");
    out.extend_from_slice(&count.to_le_bytes());
}

/// Writes a configuration.
pub(crate) fn put_configuration(out: &mut Vec<u8>, configuration: &Configuration) {
    out.extend_from_slice(&configuration.number.to_le_bytes());
    out.push(u8::from(configuration.override_id.is_some()));
    if let Some(id) = configuration.override_id {
        out.extend_from_slice(&id.0);
        out.extend_from_slice(&configuration.fork_after.to_le_bytes());
    }
    put_count(out, configuration.members.len());
    for member in &configuration.members {
        put_member(out, member);
    }
}

fn put_member(out: &mut Vec<u8>, member: &Member) {
    // All fields by name, so that the compiler asks for a new one.
    let Member {
        replica,
        incarnation,
        weight,
        full_weight,
        voter,
        name,
        incoming,
        address,
        segment,
        arbitrator,
        never_donor,
        app_protocol,
    } = member;
    out.extend_from_slice(&replica.0.0);
    out.extend_from_slice(&incarnation.0.0);
    out.extend_from_slice(&[*weight, *full_weight, u8::from(*voter), *segment]);
    out.extend_from_slice(&[u8::from(*arbitrator), u8::from(*never_donor)]);
    out.extend_from_slice(&app_protocol.to_le_bytes());
    for text in [name, incoming, address] {
        put_bytes(out, text.as_bytes());
    }
}

pub(crate) fn put_recorded(out: &mut Vec<u8>, record: &Recorded) {
    out.extend_from_slice(&record.position.to_le_bytes());
    out.extend_from_slice(&record.seqno.to_le_bytes());
    out.extend_from_slice(&record.depends_on.to_le_bytes());
    out.push(u8::from(record.failed));
    match &record.delivery {
        Delivery::Submission { id, payload } => {
            out.push(0);
            out.extend_from_slice(&id.incarnation.0.0);
            out.extend_from_slice(&id.number.to_le_bytes());
            put_bytes(out, payload);
        }
        Delivery::Configuration(configuration) => {
            out.push(1);
            put_configuration(out, configuration);
        }
    }
}
