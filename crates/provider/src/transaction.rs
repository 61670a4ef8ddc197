//! The object behind `wsrep_ws_handle_t::opaque`: an own transaction with the keys and data that it has appended, or a
//! write-set that is being applied.

use std::ffi::c_void;
use std::ptr;

use trireme_certification::{KeySetBuilder, KeyType};
use trireme_replicator::{ConnId, Owner, Seqno, TrxId, WriteSetDraft};

use crate::key_log::KeyLog;

/// The meaning of an opaque pointer.
pub enum Handle<'a> {
    /// An own transaction, allocated at its first key or data, and freed by release().
    Local(&'a mut Transaction),
    /// A write-set that is being applied. Its seqno is all that the pointer holds: the server may pass it on when apply()
    /// has returned (an applier that could not store a fragment rolls it back as it ends).
    Applied(Seqno),
}

/// The bit by which an opaque pointer to nothing, a seqno, differs from one to a [`Transaction`].
const IS_APPLIED: usize = 1;
const _: () = assert!(align_of::<Transaction>() > IS_APPLIED);
const _: () = assert!(size_of::<usize>() == size_of::<Seqno>());

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

impl Handle<'_> {
    /// Returns the opaque pointer of a new transaction.
    pub fn local(transaction: Transaction) -> *mut c_void {
        Box::into_raw(Box::new(transaction)).cast()
    }

    /// Returns the opaque pointer of a write-set that is being applied.
    pub fn applied(seqno: Seqno) -> *mut c_void {
        ptr::without_provenance_mut((seqno as usize) << 1 | IS_APPLIED)
    }

    /// Returns the meaning of an opaque pointer; None: it was not set.
    ///
    /// # Safety
    /// `opaque` must be null, or made by [`Self::local`] or [`Self::applied`]; a transaction must not be freed, nor
    /// used elsewhere as long as the result lives.
    pub unsafe fn of<'a>(opaque: *mut c_void) -> Option<Handle<'a>> {
        if opaque.addr() & IS_APPLIED != 0 {
            return Some(Handle::Applied((opaque.addr() as Seqno) >> 1));
        }
        // SAFETY: the caller's contract.
        unsafe { opaque.cast::<Transaction>().as_mut() }.map(Handle::Local)
    }

    /// Frees the transaction behind an opaque pointer.
    ///
    /// # Safety
    /// `opaque` must be made by [`Self::local`], and not be used any more.
    pub unsafe fn free(opaque: *mut c_void) {
        // SAFETY: the caller's contract.
        drop(unsafe { Box::from_raw(opaque.cast::<Transaction>()) });
    }

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

    #[test]
    fn an_opaque_pointer_is_a_transaction_or_a_seqno() {
        let owner = |opaque| {
            // SAFETY: `opaque` is made below, and nothing else uses it.
            unsafe { Handle::of(opaque) }.map(|handle| handle.owner())
        };
        assert_eq!(owner(ptr::null_mut()), None);
        for seqno in [-1, 0, 1, 1 << 61] {
            assert_eq!(owner(Handle::applied(seqno)), Some(Owner::Applied(seqno)));
        }
        let opaque = Handle::local(Transaction::new(7));
        assert_eq!(owner(opaque), Some(Owner::Trx(7)));
        // SAFETY: it was made by `local`, and is not used any more.
        unsafe { Handle::free(opaque) };
    }

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
