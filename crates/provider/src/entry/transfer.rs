//! Current reads, positions, state transfer and pauses.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use trireme_replicator::{Code, Event, Ticket};
use trireme_wsrep_abi::{Buf, Gtid, Seqno, Wsrep, WsrepStatus};

use crate::border::guard;
use crate::convert::{gtid_from_abi, gtid_to_abi};
use crate::recv;

pub unsafe extern "C" fn sync_wait(
    wsrep: *mut Wsrep,
    upto: *mut Gtid,
    timeout_s: c_int,
    gtid: *mut Gtid,
) -> WsrepStatus {
    // SAFETY: the server passes null or valid positions.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            let upto = upto.as_ref().map(gtid_from_abi);
            let timeout = match u64::try_from(timeout_s) {
                Ok(seconds) => Duration::from_secs(seconds),
                Err(_) => node.causal_read_timeout(),
            };
            let answer = node.call_for(timeout, |_, ticket| Event::SyncWait { ticket, upto });
            let Some(answer) = answer else {
                return WsrepStatus::TRX_FAIL;
            };
            if answer.code == Code::Ok && !gtid.is_null() {
                gtid.write(gtid_to_abi(answer.gtid));
            }
            recv::status(answer.code)
        })
    }
}

pub unsafe extern "C" fn last_committed_id(wsrep: *mut Wsrep, gtid: *mut Gtid) -> WsrepStatus {
    // SAFETY: the server passes room for a position.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            if !gtid.is_null() {
                gtid.write(gtid_to_abi(
                    node.peek(|core| core.engine.replicator.last_committed()),
                ));
            }
            WsrepStatus::OK
        })
    }
}

pub unsafe extern "C" fn sst_sent(
    wsrep: *mut Wsrep,
    gtid: *const Gtid,
    rcode: c_int,
) -> WsrepStatus {
    // SAFETY: the server passes a valid position.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            let gtid = gtid
                .as_ref()
                .map_or(trireme_replicator::Gtid::UNDEFINED, gtid_from_abi);
            recv::status(
                node.call(|_, ticket| Event::SstSent {
                    ticket,
                    gtid,
                    rcode,
                })
                .code,
            )
        })
    }
}

pub unsafe extern "C" fn sst_received(
    wsrep: *mut Wsrep,
    gtid: *const Gtid,
    _state: *const Buf,
    rcode: c_int,
) -> WsrepStatus {
    // SAFETY: the server passes a valid position.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            let gtid = gtid
                .as_ref()
                .map_or(trireme_replicator::Gtid::UNDEFINED, gtid_from_abi);
            let answer = node.call(|_, ticket| Event::SstReceived {
                ticket,
                gtid,
                rcode,
            });
            if rcode == 0 && answer.code == Code::Ok {
                // The server has started its storage engines on what it received. It may be shown no view for long.
                node.server.note_runs();
            }
            recv::status(answer.code)
        })
    }
}

pub unsafe extern "C" fn snapshot(_: *mut Wsrep, _: *const Buf, _: *const c_char) -> WsrepStatus {
    WsrepStatus::NOT_IMPLEMENTED
}

pub unsafe extern "C" fn pause(wsrep: *mut Wsrep) -> Seqno {
    // SAFETY: the server's own table.
    unsafe {
        guard(wsrep, -Seqno::from(libc::EIO), |node| {
            let answer = node.call(|_, ticket| Event::Pause { ticket });
            match (answer.code, answer.gtid.seqno) {
                (Code::Ok, seqno) if seqno >= 0 => seqno,
                _ => -Seqno::from(libc::ENOTCONN), // -1 would hang the next pause: see the contract
            }
        })
    }
}

pub unsafe extern "C" fn resume(wsrep: *mut Wsrep) -> WsrepStatus {
    // SAFETY: the server's own table.
    unsafe { ask(wsrep, |ticket| Event::Resume { ticket }) }
}

pub unsafe extern "C" fn desync(wsrep: *mut Wsrep) -> WsrepStatus {
    // SAFETY: the server's own table.
    unsafe { ask(wsrep, |ticket| Event::Desync { ticket }) }
}

pub unsafe extern "C" fn resync(wsrep: *mut Wsrep) -> WsrepStatus {
    // SAFETY: the server's own table.
    unsafe { ask(wsrep, |ticket| Event::Resync { ticket }) }
}

/// Makes a call that has no argument, and no result but its code.
///
/// # Safety
/// As for [`guard`].
unsafe fn ask(wsrep: *mut Wsrep, event: impl FnOnce(Ticket) -> Event) -> WsrepStatus {
    // SAFETY: the caller's contract.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            recv::status(node.call(|_, ticket| event(ticket)).code)
        })
    }
}
