//! Identifiers: UUID, GTID, source transaction id, write-set meta data.

use std::fmt;
use std::str::FromStr;

/// Sequence number of an ordered event; [`SEQNO_UNDEFINED`] if there is none.
pub type Seqno = i64;
/// The server's transaction id, unique on its node while the transaction lives.
pub type TrxId = u64;
/// The server's connection id.
pub type ConnId = u64;

/// The value for "no seqno".
pub const SEQNO_UNDEFINED: Seqno = -1;

/// 16 bytes that name a history, a group member or a replica (`wsrep_uuid_t`, a union with `size_t`, hence aligned).
#[repr(C, align(8))]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid {
    /// The bytes, in the order in which they are printed.
    pub bytes: [u8; 16],
}

/// The error of a text that is no UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a UUID of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")]
pub struct ParseUuidError(pub String);

impl Uuid {
    /// All zeros: "no UUID".
    pub const NIL: Uuid = Uuid { bytes: [0; 16] };

    /// Returns true if this is [`Uuid::NIL`].
    pub fn is_nil(&self) -> bool {
        *self == Uuid::NIL
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.bytes.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = ParseUuidError;

    /// Reads the 36-character form, in either case.
    fn from_str(text: &str) -> Result<Self, ParseUuidError> {
        let bad = || ParseUuidError(text.chars().take(64).collect());
        let text_bytes = text.as_bytes();
        if text_bytes.len() != 36 || [8, 13, 18, 23].iter().any(|&dash| text_bytes[dash] != b'-') {
            return Err(bad());
        }
        let mut digits = text_bytes
            .iter()
            .enumerate()
            .filter(|(i, _)| !matches!(i, 8 | 13 | 18 | 23))
            .map(|(_, &b)| char::from(b).to_digit(16));
        let mut bytes = [0_u8; 16];
        for byte in &mut bytes {
            match (digits.next().flatten(), digits.next().flatten()) {
                // Two hexadecimal digits are below 256.
                (Some(high), Some(low)) => *byte = (high * 16 + low) as u8,
                _ => return Err(bad()),
            }
        }
        Ok(Uuid { bytes })
    }
}

/// Global transaction id: a history and a place in it (`wsrep_gtid_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gtid {
    /// The history, that is the cluster's state UUID.
    pub uuid: Uuid,
    /// The place in it.
    pub seqno: Seqno,
}

impl Gtid {
    /// Nil UUID and undefined seqno. The server takes any other value, even with one undefined half, for "ordered".
    pub const UNDEFINED: Gtid = Gtid {
        uuid: Uuid::NIL,
        seqno: SEQNO_UNDEFINED,
    };
}

impl Default for Gtid {
    fn default() -> Self {
        Gtid::UNDEFINED
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uuid, self.seqno)
    }
}

/// The origin of a transaction: node, transaction and connection there (`wsrep_stid_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stid {
    /// Member id of the origin.
    pub node: Uuid,
    /// Transaction id there; `u64::MAX` for total-order-isolation actions.
    pub trx: TrxId,
    /// Connection id there.
    pub conn: ConnId,
}

impl Stid {
    /// The value for "no transaction".
    pub const UNDEFINED: Stid = Stid {
        node: Uuid::NIL,
        trx: TrxId::MAX,
        conn: ConnId::MAX,
    };
}

/// The meta data of an ordered write-set (`wsrep_trx_meta_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrxMeta {
    /// Its place in the order; [`Gtid::UNDEFINED`] if it was not ordered.
    pub gtid: Gtid,
    /// Its origin.
    pub stid: Stid,
    /// The last write-set that it must be applied after.
    pub depends_on: Seqno,
}

impl TrxMeta {
    /// Meta data of a write-set that was not ordered.
    pub const UNDEFINED: TrxMeta = TrxMeta {
        gtid: Gtid::UNDEFINED,
        stid: Stid::UNDEFINED,
        depends_on: SEQNO_UNDEFINED,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn uuid_prints_as_usual() {
        let text = "3b1c0f2e-0102-11ee-8b1c-00ff7f80a5c3";
        let uuid: Uuid = text.parse().unwrap();
        assert_eq!(uuid.bytes[0], 0x3b);
        assert_eq!(uuid.bytes[15], 0xc3);
        assert_eq!(uuid.to_string(), text);
        assert_eq!(text.to_uppercase().parse(), Ok(uuid));
        assert_eq!(
            Uuid::NIL.to_string(),
            "00000000-0000-0000-0000-000000000000"
        );
    }

    #[test]
    fn malformed_uuids_are_refused() {
        for text in [
            "",
            "3b1c0f2e",
            "3b1c0f2e-0102-11ee-8b1c-00ff7f80a5c",
            "3b1c0f2e-0102-11ee-8b1c-00ff7f80a5c33",
            "3b1c0f2e00102-11ee-8b1c-00ff7f80a5c3",
            "3b1c0f2g-0102-11ee-8b1c-00ff7f80a5c3",
            "+b1c0f2e-0102-11ee-8b1c-00ff7f80a5c3",
            "äb1c0f2e-0102-11ee-8b1c-00ff7f80a5c",
        ] {
            assert!(text.parse::<Uuid>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn uuid_round_trip(bytes: [u8; 16]) {
            prop_assert_eq!(Uuid { bytes }.to_string().parse(), Ok(Uuid { bytes }));
        }

        #[test]
        fn parsing_a_uuid_never_panics(text in ".{0,40}") {
            let _ = text.parse::<Uuid>();
        }
    }
}
