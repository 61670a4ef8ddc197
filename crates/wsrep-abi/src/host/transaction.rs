//! A local write-set: collected, certified, committed in its order, released.

use super::call;
use super::loaded::{HostError, Loaded};
use crate::{
    Buf, ConnId, DataType, Key, KeyType, Seqno, TrxId, TrxMeta, WsHandle, WsrepStatus, flag,
};

/// A local transaction. After certification it must go through commit order, if it has a seqno, and it must be
/// released.
pub struct Transaction<'a> {
    loaded: &'a Loaded,
    connection: ConnId,
    handle: WsHandle,
    meta: TrxMeta,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(loaded: &'a Loaded, connection: ConnId, id: TrxId) -> Self {
        Self {
            loaded,
            connection,
            handle: WsHandle {
                trx_id: id,
                opaque: std::ptr::null_mut(),
            },
            meta: TrxMeta::UNDEFINED,
        }
    }

    /// Adds a key: its parts from the coarsest to the finest.
    pub fn append_key(&mut self, parts: &[&[u8]], key_type: KeyType) -> Result<(), HostError> {
        let parts: Vec<Buf> = parts.iter().map(|part| Buf::new(part)).collect();
        let key = Key {
            parts: parts.as_ptr(),
            parts_num: parts.len(),
        };
        let (handle, key, count, copy) = (&mut self.handle, &key, 1, true);
        let status = call!(self.loaded, append_key, handle, key, count, key_type, copy);
        HostError::check("append_key", status)
    }

    /// Adds data that the other nodes apply.
    pub fn append_data(&mut self, data: &[u8]) -> Result<(), HostError> {
        let (handle, data) = (&mut self.handle, &Buf::new(data));
        let (count, data_type, copy) = (1, DataType::ORDERED, true);
        let status = call!(
            self.loaded,
            append_data,
            handle,
            data,
            count,
            data_type,
            copy
        );
        HostError::check("append_data", status)
    }

    /// Replicates and certifies the write-set: `Ok(false)` if it lost a conflict.
    pub fn certify(&mut self) -> Result<bool, HostError> {
        let (handle, flags) = (&mut self.handle, flag::TRX_START | flag::TRX_END);
        let (connection, meta) = (self.connection, &mut self.meta);
        match call!(self.loaded, certify, connection, handle, flags, meta) {
            WsrepStatus::OK => Ok(true),
            WsrepStatus::TRX_FAIL => Ok(false),
            status => Err(HostError::Call {
                call: "certify",
                status,
            }),
        }
    }

    /// Returns the write-set's place in the order, after certification and if it got one.
    pub fn seqno(&self) -> Option<Seqno> {
        let gtid = self.meta.gtid;
        (gtid.seqno > 0).then_some(gtid.seqno)
    }

    /// Waits for the write-set's turn to commit.
    pub fn commit_order_enter(&self) -> Result<(), HostError> {
        let (handle, meta) = (&self.handle, &self.meta);
        let status = call!(self.loaded, commit_order_enter, handle, meta);
        HostError::check("commit_order_enter", status)
    }

    /// Passes the turn on.
    pub fn commit_order_leave(&self) -> Result<(), HostError> {
        let (handle, meta, no_error) = (&self.handle, &self.meta, &Buf::EMPTY);
        let status = call!(self.loaded, commit_order_leave, handle, meta, no_error);
        HostError::check("commit_order_leave", status)
    }

    /// Ends the transaction: from now on other transactions may rely on its commit.
    pub fn release(mut self) -> Result<(), HostError> {
        let handle = &mut self.handle;
        HostError::check("release", call!(self.loaded, release, handle))
    }
}
