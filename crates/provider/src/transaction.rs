//! What `wsrep_ws_handle_t::opaque` points to.

use trireme_certification::{KeySetBuilder, KeyType};
use trireme_replicator::{ConnId, Owner, Seqno, TrxId, WriteSetDraft};

/// A handle is either an own transaction (allocated at its first key or data, freed by release())
/// or a write-set that is being applied (on the stack of its recv() thread).
pub enum Handle {
    /// An own transaction.
    Local(Transaction),
    /// A write-set that is being applied, by its seqno.
    Applied(Seqno),
}

/// What an own transaction has appended so far.
pub struct Transaction {
    id: TrxId,
    keys: KeySetBuilder,
    data: Vec<u8>,
}

impl Transaction {
    pub fn new(id: TrxId) -> Transaction {
        Transaction {
            id,
            keys: KeySetBuilder::new(),
            data: Vec::new(),
        }
    }

    pub fn append_key(&mut self, parts: &[&[u8]], key_type: KeyType) {
        self.keys.append(parts, key_type);
    }

    pub fn append_data(&mut self, data: &[u8]) {
        self.data.extend_from_slice(data);
    }

    /// Bytes that it would take on the wire, roughly.
    pub fn size_bytes(&self) -> usize {
        self.keys.bytes() + self.data.len()
    }

    /// Everything appended since the last call: a write-set, or the next fragment of a streaming transaction.
    pub fn take_draft(&mut self, flags: u32, conn: ConnId) -> WriteSetDraft {
        if self.keys.is_empty() {
            // Every write-set carries the server's own key, so that a server-wide one meets it.
            self.keys.append(&[], KeyType::Reference);
        }
        let draft = WriteSetDraft::new(flags, self.id, conn, &self.keys, &[&self.data]);
        self.keys.clear();
        self.data = Vec::new();
        draft
    }
}

impl Handle {
    /// Whose slot of the commit order it means.
    pub fn owner(&self) -> Owner {
        match self {
            Handle::Local(transaction) => Owner::Trx(transaction.id),
            Handle::Applied(seqno) => Owner::Applied(*seqno),
        }
    }
}
