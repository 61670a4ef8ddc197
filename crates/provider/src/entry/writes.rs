//! The calls of a transaction's life: keys and data, certification, commit order, release, abort, replay.

use std::ffi::c_void;

use trireme_certification::KeyType;
use trireme_mutants::{Mutant, planted};
use trireme_node::{Stage, monotonic_ns};
use trireme_replicator::{Event, Owner};
use trireme_wsrep_abi::{
    self as abi, Buf, ConnId, DataType, Gtid, Key, Seqno, TrxId, TrxMeta, WsHandle, Wsrep,
    WsrepStatus, slice_or_empty,
};

use crate::border::{guard, guard_applier};
use crate::convert::{gtid_to_abi, meta_of_answer};
use crate::node::Node;
use crate::recv;
use crate::transaction::{Handle, Transaction};

/// The largest payload in the order. append_data() refuses early, by the data and a guess of the keys; certify() checks
/// the whole.
const LARGEST_BYTES: usize = trireme_group::PAYLOAD_MAX as usize;

/// Calls `body` with the transaction behind a handle, which is made at its first use; `None`: the handle has none. The
/// reference ends with `body`, because release() frees the transaction.
///
/// # Safety
/// `handle` must be valid; its opaque pointer null or set by this function.
unsafe fn with_transaction<T>(
    node: &Node,
    handle: *mut WsHandle,
    body: impl FnOnce(&mut Transaction) -> T,
) -> Option<T> {
    // SAFETY: the caller's contract; a local handle is used by one thread at a time.
    unsafe {
        let handle = handle.as_mut()?;
        if handle.opaque.is_null() {
            let id = handle.trx_id;
            handle.opaque = Handle::local(Transaction::new(id));
            node.executing
                .lock()
                .unwrap_or_else(|e| e.into_inner())
                .insert(id);
        }
        match Handle::of(handle.opaque) {
            Some(Handle::Local(transaction)) => Some(body(transaction)),
            _ => None,
        }
    }
}

/// # Safety
/// As for [`with_transaction`].
unsafe fn owner(handle: *const WsHandle) -> Option<Owner> {
    // SAFETY: the caller's contract.
    unsafe { Handle::of(handle.as_ref()?.opaque).map(|handle| handle.owner()) }
}

fn key_type(raw: abi::KeyType) -> KeyType {
    match raw {
        abi::KeyType::SHARED => KeyType::Shared,
        abi::KeyType::REFERENCE => KeyType::Reference,
        abi::KeyType::UPDATE => KeyType::Update,
        _ => KeyType::Exclusive,
    }
}

pub unsafe extern "C" fn append_key(
    wsrep: *mut Wsrep,
    handle: *mut WsHandle,
    keys: *const Key,
    count: usize,
    raw_type: abi::KeyType,
    _copy: bool,
) -> WsrepStatus {
    // SAFETY: the server passes `count` valid keys and its own handle.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            let append = |transaction: &mut Transaction| {
                for key in slice_or_empty(keys, count) {
                    let parts: Vec<&[u8]> = key.parts().collect();
                    let raw_type = match planted(Mutant::KeysAreShared) {
                        true => abi::KeyType::SHARED,
                        false => raw_type,
                    };
                    transaction.append_key(&parts, key_type(raw_type));
                }
                WsrepStatus::OK
            };
            with_transaction(node, handle, append).unwrap_or(WsrepStatus::TRX_MISSING)
        })
    }
}

pub unsafe extern "C" fn append_data(
    wsrep: *mut Wsrep,
    handle: *mut WsHandle,
    data: *const Buf,
    count: usize,
    data_type: DataType,
    _copy: bool,
) -> WsrepStatus {
    // SAFETY: the server passes `count` valid buffers and its own handle.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            let append = |transaction: &mut Transaction| {
                if data_type != DataType::ORDERED {
                    return WsrepStatus::OK;
                }
                let limit = node.max_ws_bytes.load(std::sync::atomic::Ordering::Relaxed) as usize;
                let limit = limit.min(LARGEST_BYTES);
                for buffer in slice_or_empty(data, count) {
                    let bytes = buffer.bytes();
                    if let Err(over) = transaction.append_data(bytes, limit) {
                        node.warn(&format!(
                            "Maximum writeset size exceeded by {over}: repl.max_ws_size is {limit}"
                        ));
                        return WsrepStatus::SIZE_EXCEEDED;
                    }
                }
                WsrepStatus::OK
            };
            with_transaction(node, handle, append).unwrap_or(WsrepStatus::TRX_MISSING)
        })
    }
}

pub unsafe extern "C" fn assign_read_view(
    _: *mut Wsrep,
    _: *mut WsHandle,
    _: *const Gtid,
) -> WsrepStatus {
    WsrepStatus::NOT_IMPLEMENTED
}

pub unsafe extern "C" fn certify(
    wsrep: *mut Wsrep,
    conn: ConnId,
    handle: *mut WsHandle,
    flags: u32,
    meta: *mut TrxMeta,
) -> WsrepStatus {
    // SAFETY: the server passes its own handle and room for the meta data.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            let set_meta = |value| {
                if let Some(meta) = meta.as_mut() {
                    *meta = value;
                }
            };
            set_meta(TrxMeta::UNDEFINED);
            let Some(ws_handle) = handle.as_ref() else {
                return WsrepStatus::TRX_MISSING;
            };
            let Some(Handle::Local(transaction)) = Handle::of(ws_handle.opaque) else {
                // Nothing was appended, so there is nothing to replicate.
                return WsrepStatus::OK;
            };
            if transaction.is_too_large() && !planted(Mutant::TooLargeReplicated) {
                // The server commits although append_data() refused the data.
                return WsrepStatus::SIZE_EXCEEDED;
            }
            let trx = ws_handle.trx_id;
            let draft = transaction.take_draft(flags, conn);
            let mut own_id = trireme_group::Uuid::NIL;
            let asked_ns = monotonic_ns();
            let answer = node.call(|core, ticket| {
                own_id = core.incarnation;
                core.commit_clock.asked(trx, asked_ns);
                node.executing
                    .lock()
                    .unwrap_or_else(|e| e.into_inner())
                    .remove(&trx);
                Event::Certify {
                    ticket,
                    trx,
                    conn,
                    draft,
                }
            });
            if answer.gtid.seqno >= 0 {
                node.times.note_commit(asked_ns);
                set_meta(meta_of_answer(&answer, own_id, trx, conn));
            }
            recv::status(answer.code)
        })
    }
}

pub unsafe extern "C" fn commit_order_enter(
    wsrep: *mut Wsrep,
    handle: *const WsHandle,
    _meta: *const TrxMeta,
) -> WsrepStatus {
    // SAFETY: the server passes a handle that it got from here.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            let Some(owner) = owner(handle) else {
                return WsrepStatus::OK;
            };
            let began_ns = monotonic_ns();
            let answer = node.call(|_, ticket| Event::CommitOrderEnter { ticket, owner });
            node.times.note_stage(Stage::CommitOrder, began_ns);
            recv::status(answer.code)
        })
    }
}

pub unsafe extern "C" fn commit_order_leave(
    wsrep: *mut Wsrep,
    handle: *const WsHandle,
    _meta: *const TrxMeta,
    error: *const Buf,
) -> WsrepStatus {
    // SAFETY: the server passes a handle that it got from here, and null or a valid buffer.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            let Some(owner) = owner(handle) else {
                return WsrepStatus::OK;
            };
            let error = error_text(error);
            recv::status(
                node.call(|_, ticket| Event::CommitOrderLeave {
                    ticket,
                    owner,
                    error,
                })
                .code,
            )
        })
    }
}

/// # Safety
/// `error` must be null or a valid buffer.
pub unsafe fn error_text(error: *const Buf) -> Option<bytes::Bytes> {
    // SAFETY: the caller's contract.
    let bytes = unsafe { error.as_ref()?.bytes() };
    (!bytes.is_empty()).then(|| bytes::Bytes::copy_from_slice(bytes))
}

/// The server also calls it after each fragment of a streaming transaction, which keeps its handle.
pub unsafe extern "C" fn release(wsrep: *mut Wsrep, handle: *mut WsHandle) -> WsrepStatus {
    // SAFETY: the server passes its own handle, and uses its opaque pointer as it finds it afterwards.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            let Some(handle) = handle.as_mut() else {
                return WsrepStatus::OK;
            };
            let Some(Handle::Local(transaction)) = Handle::of(handle.opaque) else {
                return WsrepStatus::OK;
            };
            let trx = handle.trx_id;
            let mut answer = node.call(|_, ticket| {
                node.executing
                    .lock()
                    .unwrap_or_else(|e| e.into_inner())
                    .remove(&trx);
                Event::Release { ticket, trx }
            });
            if let Some(loss) = answer.loss.take() {
                node.note_loss(*loss, transaction);
            }
            if !answer.lives_on {
                Handle::free(handle.opaque);
                handle.opaque = std::ptr::null_mut();
            }
            recv::status(answer.code)
        })
    }
}

pub unsafe extern "C" fn replay_trx(
    wsrep: *mut Wsrep,
    handle: *const WsHandle,
    ctx: *mut c_void,
) -> WsrepStatus {
    // SAFETY: the server passes its own handle and the context of the replaying thread.
    unsafe {
        guard_applier(wsrep, WsrepStatus::FATAL, |node| {
            let Some(handle) = handle.as_ref() else {
                return WsrepStatus::TRX_MISSING;
            };
            let trx = handle.trx_id;
            let answer = node.call(|_, ticket| Event::Replay { ticket, trx });
            match answer.replay {
                Some(apply) => {
                    let mut exit_loop = false;
                    if recv::apply_one(node, ctx, &apply, &mut exit_loop) {
                        WsrepStatus::OK
                    } else {
                        node.call(|_, ticket| Event::ReplayFailed { ticket, trx });
                        WsrepStatus::FATAL
                    }
                }
                None => recv::status(answer.code),
            }
        })
    }
}

pub unsafe extern "C" fn abort_certification(
    wsrep: *mut Wsrep,
    bf_seqno: Seqno,
    victim: TrxId,
    victim_seqno: *mut Seqno,
) -> WsrepStatus {
    // SAFETY: the server passes room for the victim's seqno.
    unsafe {
        if !victim_seqno.is_null() {
            victim_seqno.write(abi::SEQNO_UNDEFINED);
        }
        guard(wsrep, WsrepStatus::NOT_ALLOWED, |node| {
            let answer = node.call(|_, ticket| {
                let executing = node
                    .executing
                    .lock()
                    .unwrap_or_else(|e| e.into_inner())
                    .contains(&victim);
                Event::Abort {
                    ticket,
                    bf_seqno,
                    victim,
                    executing,
                }
            });
            if let Some(seqno) = victim_seqno.as_mut() {
                *seqno = gtid_to_abi(answer.gtid).seqno;
            }
            recv::status(answer.code)
        })
    }
}

/// Rolls a streaming transaction back. Its client calls it, or a thread that aborts it, or the synced callback: it
/// waits for nothing.
pub unsafe extern "C" fn rollback(wsrep: *mut Wsrep, trx: TrxId, _data: *const Buf) -> WsrepStatus {
    // SAFETY: the server's own table.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            recv::status(node.call(|_, ticket| Event::Rollback { ticket, trx }).code)
        })
    }
}
