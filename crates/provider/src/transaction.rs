//! The object behind `wsrep_ws_handle_t::opaque`: an own transaction with the keys and data that it has appended, or a
//! write-set that is being applied.

use trireme_certification::{KeySetBuilder, KeyType};
use trireme_replicator::{ConnId, Owner, Seqno, TrxId, WriteSetDraft};

use crate::key_log::KeyLog;

/// A handle is either an own transaction (allocated at its first key or data, freed by release())
/// or a write-set that is being applied (on the stack of its recv() thread).
pub enum Handle {
    /// An own transaction.
    Local(Transaction),
    /// A write-set that is being applied, by its seqno.
    Applied(Seqno),
}

/// Bytes that count for a write-set beside its data, and for each distinct key, where its size is limited. Galera 26.4
/// counts in the same way (measured; `galera.MDEV-26597` relies on it), so `repl.max_ws_size` means the same.
const FRAME_BYTES: usize = 184;
const KEY_BYTES: usize = 8;

/// The keys and data that an own transaction has appended so far.
pub struct Transaction {
    id: TrxId,
    keys: KeySetBuilder,
    data: Vec<u8>,
    /// The names of its keys, of all fragments.
    key_log: KeyLog,
    /// The server's connection, from certify() on.
    conn: Option<ConnId>,
    /// Some data was refused: the rest must not be replicated.
    too_large: bool,
}

impl Transaction {
    pub fn new(id: TrxId) -> Transaction {
        Transaction {
            id,
            keys: KeySetBuilder::new(),
            data: Vec::new(),
            key_log: KeyLog::default(),
            conn: None,
            too_large: false,
        }
    }

    pub fn append_key(&mut self, parts: &[&[u8]], key_type: KeyType) {
        self.keys.append(parts, key_type);
        self.key_log.add(parts, key_type);
    }

    /// Returns the names of its keys.
    pub fn key_log(&self) -> &KeyLog {
        &self.key_log
    }

    /// Returns the server's connection; None: the transaction never came to certify().
    pub fn conn(&self) -> Option<ConnId> {
        self.conn
    }

    /// Appends data. Err: the number of bytes above the limit. The server may commit all the same
    /// ([`Transaction::is_too_large`]).
    pub fn append_data(&mut self, data: &[u8], limit_bytes: usize) -> Result<(), usize> {
        let size = self.size_bytes().saturating_add(data.len());
        if size > limit_bytes {
            self.too_large = true;
            return Err(size - limit_bytes);
        }
        self.data.extend_from_slice(data);
        Ok(())
    }

    /// Returns true if data was refused: a commit would lose this data on all other nodes.
    pub fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// Returns its size as `repl.max_ws_size` limits it.
    pub fn size_bytes(&self) -> usize {
        FRAME_BYTES + KEY_BYTES * self.keys.len() + self.data.len()
    }

    /// Takes everything appended since the last call: a write-set, or the next fragment of a streaming transaction.
    pub fn take_draft(&mut self, flags: u32, conn: ConnId) -> WriteSetDraft {
        self.conn = Some(conn);
        if self.keys.is_empty() {
            // Every write-set carries the server's own key, so that a server-wide key conflicts with it.
            self.keys.append(&[], KeyType::Reference);
        }
        let draft = WriteSetDraft::new(flags, self.id, conn, &self.keys, &[&self.data]);
        self.keys.clear();
        self.data = Vec::new();
        draft
    }
}

impl Handle {
    /// Returns the owner of the handle's slot in the commit order.
    pub fn owner(&self) -> Owner {
        match self {
            Handle::Local(transaction) => Owner::Trx(transaction.id),
            Handle::Applied(seqno) => Owner::Applied(*seqno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of data, rows inserted into one table, and the size by which Galera judges the write-set.
    #[test]
    fn size_is_what_galera_limits() {
        for (data, rows, size) in [(133, 1, 349), (154, 2, 378), (280, 8, 552), (448, 16, 784)] {
            let mut transaction = Transaction::new(1);
            for row in 0..rows {
                let parts: [&[u8]; 3] = [b"test", b"t3", &[row]];
                transaction.append_key(&parts, KeyType::Exclusive);
            }
            let data = vec![0; data];
            assert_eq!(transaction.append_data(&data, size - 1), Err(1));
            assert!(transaction.is_too_large());
            assert_eq!(transaction.append_data(&data, size), Ok(()));
            assert_eq!(transaction.size_bytes(), size);
            assert!(transaction.is_too_large(), "once and for all");
        }
    }
}
