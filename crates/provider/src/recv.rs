//! The body of a recv() thread: it takes work from the node, makes the callback into the server, and reports the
//! result. It never holds the node's lock during a callback.

use std::ffi::c_void;
use std::ptr;

use bytes::Bytes;
use trireme_node::{LINE_BYTES_MAX, Stage, monotonic_ns, one_line};
use trireme_replicator::{Apply, Code, Event, Task, View, Work};
use trireme_wsrep_abi::{
    self as abi, Buf, CbStatus, TrxMeta, ViewBuffer, ViewHeader, WsHandle, WsrepStatus,
};

use crate::CAPABILITIES;
use crate::convert::{gtid_to_abi, meta_of, uuid_to_abi};
use crate::core::Core;
use crate::node::Node;
use crate::transaction::Handle;

/// Runs recv(): returns when the node is closed, or when the server wants fewer appliers.
pub fn run(node: &Node, recv_ctx: *mut c_void) -> WsrepStatus {
    if !node.peek(Core::is_connected) {
        return WsrepStatus::FATAL;
    }
    node.enter();
    let mut done = None;
    loop {
        let Work { id, task } = node.next_work(done.take());
        let mut exit_loop = false;
        let event = match task {
            Task::Exit { code } => {
                node.exit();
                return WsrepStatus(code as i32);
            }
            Task::SstRequest => {
                let request = sst_request(node);
                Event::SstRequested { work: id, request }
            }
            Task::Donate {
                request,
                gtid,
                bypass,
            } => {
                let ok = donate(node, recv_ctx, &request, &gtid_to_abi(gtid), bypass);
                Event::Donated { work: id, ok }
            }
            Task::Connected(view) => Event::WorkDone {
                work: id,
                ok: connected(node, &view),
            },
            Task::View(view) => {
                let ok = install_view(node, recv_ctx, &view);
                if view.primary {
                    node.server.note_runs();
                }
                Event::WorkDone { work: id, ok }
            }
            Task::Synced => Event::WorkDone {
                work: id,
                ok: synced(node),
            },
            Task::Apply(apply) => {
                let ok = apply_one(node, recv_ctx, &apply, &mut exit_loop);
                Event::WorkDone { work: id, ok }
            }
        };
        if !exit_loop {
            done = Some(event);
        } else if node.leave(event) {
            return WsrepStatus::OK;
        } else {
            node.logger.warn("Refusing exit for the last slave thread.");
        }
    }
}

/// Calls apply() for a write-set; also from replay_trx().
pub fn apply_one(node: &Node, ctx: *mut c_void, apply: &Apply, exit_loop: &mut bool) -> bool {
    let Some(callback) = node.settings.callbacks.apply else {
        return false;
    };
    let ws_handle = WsHandle {
        trx_id: apply.trx,
        opaque: Handle::applied(apply.gtid.seqno),
    };
    let data = if apply.data.is_empty() {
        Buf::EMPTY
    } else {
        Buf::new(&apply.data)
    };
    let meta: TrxMeta = meta_of(apply);
    let began_ns = monotonic_ns();
    // SAFETY: all pointers are valid for the call; `ctx` is what the server gave to this thread.
    let status = unsafe { callback(ctx, &ws_handle, apply.flags, &data, &meta, exit_loop) };
    node.times.note_stage(Stage::Apply, began_ns);
    status == CbStatus::SUCCESS
}

/// Lays out a view for the server, which writes names and addresses to its error log and hands them to
/// `wsrep_notify_cmd`: they are cleaned as lines of this node's log are.
fn view_buffer(view: &View) -> ViewBuffer {
    let members: Vec<abi::Member> = view
        .members
        .iter()
        .map(|member| abi::Member {
            id: uuid_to_abi(member.incarnation.0),
            name: one_line(&member.name, LINE_BYTES_MAX),
            incoming: one_line(&member.incoming, LINE_BYTES_MAX),
        })
        .collect();
    let header = ViewHeader {
        state_id: gtid_to_abi(view.gtid),
        view: view.number,
        status: if view.primary {
            abi::ViewStatus::PRIMARY
        } else {
            abi::ViewStatus::NON_PRIMARY
        },
        capabilities: CAPABILITIES,
        my_idx: view.my_index,
        proto_ver: view.app_protocol,
    };
    ViewBuffer::new(&header, &members)
}

fn connected(node: &Node, view: &View) -> bool {
    let Some(callback) = node.settings.callbacks.connected else {
        return false;
    };
    let buffer = view_buffer(view);
    // SAFETY: the view is valid for the call; `app_ctx` is the server's own.
    unsafe { callback(node.settings.callbacks.app_ctx, buffer.as_ptr()) == CbStatus::SUCCESS }
}

fn install_view(node: &Node, recv_ctx: *mut c_void, view: &View) -> bool {
    let Some(callback) = node.settings.callbacks.view else {
        return false;
    };
    let buffer = view_buffer(view);
    // SAFETY: as above; `recv_ctx` belongs to this thread.
    let status = unsafe {
        callback(
            node.settings.callbacks.app_ctx,
            recv_ctx,
            buffer.as_ptr(),
            ptr::null(),
            0,
        )
    };
    status == CbStatus::SUCCESS
}

fn synced(node: &Node) -> bool {
    let Some(callback) = node.settings.callbacks.synced else {
        return false;
    };
    // SAFETY: `app_ctx` is the server's own.
    unsafe { callback(node.settings.callbacks.app_ctx) == CbStatus::SUCCESS }
}

fn sst_request(node: &Node) -> Option<Bytes> {
    let callback = node.settings.callbacks.sst_request?;
    let (mut request, mut len) = (ptr::null_mut(), 0);
    // SAFETY: the out parameters are valid.
    let status = unsafe { callback(node.settings.callbacks.app_ctx, &mut request, &mut len) };
    // SAFETY: on success the server has put `len` malloc'ed bytes there, or NULL.
    let bytes = unsafe {
        let bytes =
            Bytes::copy_from_slice(abi::slice_or_empty(request.cast_const().cast::<u8>(), len));
        libc::free(request);
        bytes
    };
    (status == CbStatus::SUCCESS).then_some(bytes)
}

fn donate(
    node: &Node,
    recv_ctx: *mut c_void,
    request: &[u8],
    gtid: &abi::Gtid,
    bypass: bool,
) -> bool {
    let Some(callback) = node.settings.callbacks.sst_donate else {
        return false;
    };
    if !is_readable(request) {
        (node.logger)
            .error("a joiner's state request is malformed: it gets no state; see the joiner's log");
        return false;
    }
    let request = Buf::new(request);
    // SAFETY: all pointers are valid for the call.
    let status = unsafe {
        callback(
            node.settings.callbacks.app_ctx,
            recv_ctx,
            &request,
            gtid,
            &Buf::EMPTY,
            bypass,
        )
    };
    status == CbStatus::SUCCESS
}

/// Returns true if the server can read the request: two C strings, of which it ends the second one itself. It may be
/// empty.
fn is_readable(request: &[u8]) -> bool {
    request.is_empty() || request.contains(&0)
}

/// Returns the status for the server.
pub fn status(code: Code) -> WsrepStatus {
    WsrepStatus(code as i32)
}

#[cfg(test)]
mod tests {
    use trireme_group::Member;
    use trireme_replicator::Gtid;

    use super::*;

    #[test]
    fn a_request_without_end_is_not_given_to_the_server() {
        assert!(is_readable(b"rsync\x00127.0.0.1:4444/rsync_sst\0") && is_readable(b""));
        assert!(!is_readable(b"rsync"));
    }

    #[test]
    fn a_members_texts_reach_the_server_as_one_plain_line() {
        let hostile = Member {
            name: "n1\n[ERROR] all is lost".to_owned(),
            incoming: "10.0.0.1\0\x1b[2J".to_owned(),
            ..Member::default()
        };
        let view = View {
            gtid: Gtid::UNDEFINED,
            number: 1,
            primary: true,
            my_index: Some(0),
            members: vec![hostile],
            app_protocol: 4,
        };
        let shown = view_buffer(&view).members()[0];
        assert_eq!(shown.name(), "n1 [ERROR] all is lost");
        assert_eq!(shown.incoming(), "10.0.0.1??[2J");
    }
}
