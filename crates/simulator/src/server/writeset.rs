//! The keys and data of a write-set.

use bytes::Bytes;
use trireme_certification::{KeySetBuilder, KeyType};
use trireme_replicator::{ConnId, TrxId, WriteSetDraft, flags};

use super::database::Writes;
use super::rows::Image;
use crate::seen::ClientTrx;

/// The server's transaction id of an action without a transaction (server-contract.md#to_execute_start).
const NO_TRX: TrxId = u64::MAX;
const ROW_BYTES: usize = 4 + 4 + 8;

/// Number of tables on every node.
pub const TABLES: u32 = 4;

/// The table of a row. Rows below the number of tables stand for the tables themselves.
pub fn table_of(key: u32) -> u32 {
    key % TABLES
}

/// The write-set of a transaction that updates rows, or of a fragment, as its flags say.
pub fn of_part(trx: TrxId, conn: ConnId, writes: &Writes, flags: u32) -> WriteSetDraft {
    let mut keys = KeySetBuilder::new();
    for (key, image) in &writes.rows {
        let table = table_of(*key).to_be_bytes();
        // The first write of a row creates it.
        let kind = if image.len == 1 {
            KeyType::Exclusive
        } else {
            KeyType::Update
        };
        keys.append(&[b"db", &table, &key.to_be_bytes()], kind);
    }
    WriteSetDraft::new(flags, trx, conn, &keys, &[&encode(writes)])
}

/// The effect of a statement of DDL when it is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ddl {
    /// It has an effect; a second execution fails, because it is done already.
    #[default]
    Once,
    /// It fails on all nodes alike.
    Fails,
    /// Each execution has an effect, as of a swap of names.
    Each,
}

/// The write-set of a total-order action on a table.
pub fn of_action(conn: ConnId, table: u32, writer: ClientTrx, ddl: Ddl) -> WriteSetDraft {
    let mut keys = KeySetBuilder::new();
    keys.append(&[b"db", &table.to_be_bytes()], KeyType::Exclusive);
    let image = Image {
        len: match ddl {
            Ddl::Once => 0,
            Ddl::Fails => 1,
            Ddl::Each => 2,
        },
        ..Image::default()
    };
    let rows = vec![(table, image)];
    let data = encode(&Writes { writer, rows });
    let both = flags::TRX_START | flags::TRX_END;
    WriteSetDraft::new(both, NO_TRX, conn, &keys, &[&data])
}

/// The table of an action, and what its statement does.
pub fn action(writes: &Writes) -> (u32, Ddl) {
    let (table, image) = writes.rows[0];
    let ddl = match image.len {
        0 => Ddl::Once,
        1 => Ddl::Fails,
        _ => Ddl::Each,
    };
    (table, ddl)
}

/// The error of a failed action: only the error's number, since texts depend on the locale
/// (server-contract-callbacks.md#error-votes).
pub fn action_error() -> Bytes {
    Bytes::from_static(b"1050")
}

/// The error of an action that was executed before a crash and is executed again.
pub fn done_already() -> Bytes {
    Bytes::from_static(b" Error_code: 1060;")
}

/// Encodes the writes in the server's own format.
pub fn encode(writes: &Writes) -> Vec<u8> {
    let mut data = Vec::with_capacity(8 + writes.rows.len() * ROW_BYTES);
    data.extend_from_slice(&writes.writer.to_le_bytes());
    for (key, image) in &writes.rows {
        data.extend_from_slice(&key.to_le_bytes());
        data.extend_from_slice(&image.len.to_le_bytes());
        data.extend_from_slice(&image.digest.to_le_bytes());
    }
    data
}

/// Decodes the writes; the server trusts its own encoding.
pub fn decode(data: &[u8]) -> Writes {
    let u64_at = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().expect("8 bytes"));
    let u32_at = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().expect("4 bytes"));
    assert!(
        data.len() >= 8 && (data.len() - 8) % ROW_BYTES == 0,
        "a write-set lost its data"
    );
    let writer = u64_at(0);
    let row = |at: usize| {
        let (key, len, digest) = (u32_at(at), u32_at(at + 4), u64_at(at + 8));
        let last = Some(writer);
        (key, Image { len, digest, last })
    };
    let rows = (8..data.len()).step_by(ROW_BYTES).map(row).collect();
    Writes { writer, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_come_back() {
        let writer = 77;
        let rows = vec![
            (3, Image::default().with(writer)),
            (9, Image::default().with(1).with(writer)),
        ];
        let writes = Writes { writer, rows };
        assert_eq!(decode(&encode(&writes)), writes);
    }
}
