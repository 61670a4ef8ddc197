//! Names and numbers: UUIDs, replicas, incarnations, terms, submissions, bulk payloads.

use std::fmt;
use std::str::FromStr;

/// Index of an entry in the replicated log; the first entry is 1. It is not the seqno of a GTID: every entry has a
/// position, but only write-sets, TOI actions and primary views have a seqno.
pub type Position = u64;

/// Milliseconds on the driver's monotonic clock (CLOCK_BOOTTIME in the provider, simulated time
/// in the simulator).
pub type TimeMs = u64;

/// 16 bytes printed in the usual 8-4-4-4-12 form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The undefined uuid: all zero.
    pub const NIL: Uuid = Uuid([0; 16]);

    /// True for [`Uuid::NIL`].
    pub fn is_nil(&self) -> bool {
        *self == Self::NIL
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The error for a text that is no UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a uuid: '{0}' (expected the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx)")]
pub struct InvalidUuid(pub String);

impl FromStr for Uuid {
    type Err = InvalidUuid;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidUuid(text.chars().take(64).collect());
        let raw = text.as_bytes();
        if raw.len() != 36 || [8, 13, 18, 23].iter().any(|&at| raw[at] != b'-') {
            return Err(invalid());
        }
        let mut nibbles = raw
            .iter()
            .enumerate()
            .filter(|(at, _)| !matches!(at, 8 | 13 | 18 | 23))
            .map(|(_, &c)| (c as char).to_digit(16));
        let mut bytes = [0; 16];
        for byte in &mut bytes {
            let high = nibbles.next().flatten().ok_or_else(invalid)?;
            let low = nibbles.next().flatten().ok_or_else(invalid)?;
            *byte = (high * 16 + low) as u8;
        }
        Ok(Uuid(bytes))
    }
}

/// Identity of a data directory, made once and kept. Votes are counted by it (rule 14).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ReplicaId(pub Uuid);

/// Identity of one connect() of one process: the wsrep member id (rule 14).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Incarnation(pub Uuid);

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A term. Ordered by number, then replica.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Term {
    /// Rises with each candidacy.
    pub number: u64,
    /// The leader's (or candidate's) replica: only this one may lead in the term.
    pub replica: ReplicaId,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.number, self.replica)
    }
}

/// The id of one submission, for ever: nothing is ordered twice under one id (rule 9).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SubmissionId {
    /// The origin.
    pub incarnation: Incarnation,
    /// The number of the submission: the origin counts from 1, without gaps.
    pub number: u64,
}

impl SubmissionId {
    pub(crate) fn of(incarnation: Incarnation, number: u64) -> SubmissionId {
        SubmissionId {
            incarnation,
            number,
        }
    }
}

/// The id of a bulk payload on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BulkId {
    /// The origin of the payload.
    pub origin: Incarnation,
    /// The number of the bulk payload: the origin counts these, too.
    pub number: u64,
}

impl fmt::Display for SubmissionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.incarnation, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_round_trips_and_rejects_garbage() {
        let text = "3b1c0d9e-0a0b-11ef-8000-0123456789ab";
        assert_eq!(text.parse::<Uuid>().unwrap().to_string(), text);
        for bad in [
            "",
            "3b1c",
            "3b1c0d9e-0a0b-11ef-8000-0123456789ag",
            "gb1c0d9e-0a0b-11ef-8000-0123456789ab",
            "é3b1c0d9-0a0b-11ef-8000-0123456789a",
        ] {
            assert!(bad.parse::<Uuid>().is_err(), "{bad}");
        }
    }

    #[test]
    fn terms_order_by_number_first() {
        let low = Term {
            number: 1,
            replica: ReplicaId(Uuid([9; 16])),
        };
        let high = Term {
            number: 2,
            replica: ReplicaId(Uuid([1; 16])),
        };
        assert!(low < high);
    }
}
