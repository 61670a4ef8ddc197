//! Total-order isolation, and the parts of the API that no MariaDB calls.

use std::ffi::{c_char, c_int};

use trireme_certification::{KeySetBuilder, KeyType};
use trireme_replicator::{Event, WriteSetDraft};
use trireme_wsrep_abi::{
    Buf, ConnId, Key, PoHandle, TrxMeta, Uuid, Wsrep, WsrepStatus, flag, slice_or_empty,
};

use super::writes::error_text;
use crate::border::guard;
use crate::convert::meta_of_answer;
use crate::recv;

/// The server's transaction id for actions that are no transaction.
const NO_TRX: u64 = u64::MAX;

/// A total-order action begins and ends with one call; only a non-blocking operation (NBO) begins with one and ends with another.
const WHOLE_ACTION: u32 = flag::TRX_START | flag::TRX_END;

pub unsafe extern "C" fn to_execute_start(
    wsrep: *mut Wsrep,
    conn: ConnId,
    keys: *const Key,
    keys_num: usize,
    action: *const Buf,
    count: usize,
    flags: u32,
    meta: *mut TrxMeta,
) -> WsrepStatus {
    // SAFETY: the server passes valid keys, buffers and room for the meta data.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            if flags & WHOLE_ACTION != WHOLE_ACTION {
                node.warn(
                    "refused a non-blocking operation (NBO), which Trireme does not have: set wsrep_OSU_method to TOI or RSU",
                );
                return WsrepStatus::NOT_IMPLEMENTED;
            }
            let mut set = KeySetBuilder::new();
            for key in slice_or_empty(keys, keys_num) {
                let parts: Vec<&[u8]> = key.parts().collect();
                set.append(&parts, KeyType::Exclusive);
            }
            if set.is_empty() {
                // Without a key the action concerns the whole server.
                set.append(&[], KeyType::Exclusive);
            }
            let data: Vec<&[u8]> = slice_or_empty(action, count)
                .iter()
                .map(|buffer| buffer.bytes())
                .collect();
            let draft = WriteSetDraft::new(flags, NO_TRX, conn, &set, &data);
            let mut own_id = trireme_group::Uuid::NIL;
            let answer = node.call(|core, ticket| {
                own_id = core.incarnation;
                Event::ToiStart {
                    ticket,
                    conn,
                    draft,
                }
            });
            if let Some(meta) = meta.as_mut() {
                *meta = if answer.gtid.seqno >= 0 {
                    meta_of_answer(&answer, own_id, NO_TRX, conn)
                } else {
                    TrxMeta::UNDEFINED
                };
            }
            recv::status(answer.code)
        })
    }
}

pub unsafe extern "C" fn to_execute_end(
    wsrep: *mut Wsrep,
    conn: ConnId,
    error: *const Buf,
) -> WsrepStatus {
    // SAFETY: the server passes null or a valid buffer.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            let error = error_text(error);
            recv::status(
                node.call(|_, ticket| Event::ToiEnd {
                    ticket,
                    conn,
                    error,
                })
                .code,
            )
        })
    }
}

pub unsafe extern "C" fn preordered_collect(
    _: *mut Wsrep,
    _: *mut PoHandle,
    _: *const Buf,
    _: usize,
    _: bool,
) -> WsrepStatus {
    WsrepStatus::NOT_IMPLEMENTED
}

pub unsafe extern "C" fn preordered_commit(
    _: *mut Wsrep,
    _: *mut PoHandle,
    _: *const Uuid,
    _: u32,
    _: c_int,
    _: bool,
) -> WsrepStatus {
    WsrepStatus::NOT_IMPLEMENTED
}

pub unsafe extern "C" fn lock(
    _: *mut Wsrep,
    _: *const c_char,
    _: bool,
    _: u64,
    _: i64,
) -> WsrepStatus {
    WsrepStatus::NOT_IMPLEMENTED
}

pub unsafe extern "C" fn unlock(_: *mut Wsrep, _: *const c_char, _: u64) -> WsrepStatus {
    WsrepStatus::NOT_IMPLEMENTED
}

pub unsafe extern "C" fn is_locked(
    _: *mut Wsrep,
    _: *const c_char,
    _: *mut u64,
    _: *mut Uuid,
) -> bool {
    false
}
