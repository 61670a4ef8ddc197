//! The callbacks that init() gets.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

use trireme_wsrep_abi::{
    Buf, CbStatus, Gtid, InitArgs, LogLevel, MemberInfo, TrxMeta, ViewInfoHeader, ViewStatus,
    WsHandle, WsrepStatus, cstr_to_string, flag,
};

use super::app::{AT_LINE, App, Applier, LOG, SNAPSHOTS, Snapshot};
use super::call;

/// Enters all of them.
pub fn enter(args: &mut InitArgs) {
    args.logger_cb = Some(log);
    args.connected_cb = Some(connected);
    args.view_cb = Some(view);
    args.sst_request_cb = Some(sst_request);
    args.apply_cb = Some(apply);
    args.sst_donate_cb = Some(sst_donate);
    args.synced_cb = Some(synced);
}

/// # Safety
/// `app_ctx` must be what `Server::start` gave to init().
unsafe fn app(app_ctx: *mut c_void) -> Arc<App> {
    // SAFETY: the caller's contract; the server outlives its provider.
    unsafe {
        Arc::increment_strong_count(app_ctx.cast::<App>());
        Arc::from_raw(app_ctx.cast::<App>())
    }
}

/// # Safety
/// `recv_ctx` must be an [`Applier`].
unsafe fn applier<'a>(recv_ctx: *mut c_void) -> &'a Applier {
    // SAFETY: the caller's contract.
    unsafe { &*recv_ctx.cast::<Applier>() }
}

unsafe extern "C" fn log(level: LogLevel, message: *const c_char) {
    // SAFETY: a C string.
    let line = unsafe { cstr_to_string(message) };
    let due = (AT_LINE.lock().unwrap()).take_if(|(text, ..)| line.contains(text.as_str()));
    LOG.lock().unwrap().push((level, line));
    if let Some((_, app, options)) = due {
        let status = call!(app, options_set, options.as_ptr());
        app.check(status == WsrepStatus::OK, || {
            format!("options_set: {status:?}")
        });
    }
}

unsafe extern "C" fn connected(app_ctx: *mut c_void, view: *const ViewInfoHeader) -> CbStatus {
    // SAFETY: what init() got, and a view with its members right behind it.
    let (app, header, id) = unsafe {
        let app = app(app_ctx);
        let header = *view;
        let members = view.add(1).cast::<MemberInfo>();
        let index = usize::try_from(header.my_idx).unwrap_or(0);
        (app, header, (*members.add(index)).id)
    };
    app.check(
        header.status == ViewStatus::PRIMARY && (0..header.memb_num).contains(&header.my_idx),
        || format!("connected to {header:?}"),
    );
    app.change(|state| state.id = id);
    CbStatus::SUCCESS
}

unsafe extern "C" fn view(
    app_ctx: *mut c_void,
    recv_ctx: *mut c_void,
    view: *const ViewInfoHeader,
    _state: *const c_char,
    _state_len: usize,
) -> CbStatus {
    // SAFETY: what init() got, and a view.
    let (app, header) = unsafe { (app(app_ctx), *view) };
    app.check(!recv_ctx.is_null(), || "a view without recv_ctx".into());
    let seqno = header.state_id.seqno;
    if header.status == ViewStatus::PRIMARY {
        let committed = app.last_committed().seqno;
        app.check(committed < seqno, || {
            format!("{committed} is committed in view {seqno}")
        });
        // A running server that connects anew is shown where it stands before what it missed.
        if app.state().position != header.state_id {
            app.enter(seqno, None);
        }
        app.change(|state| state.position = header.state_id);
    }
    app.change(|state| state.views.push((header.status, seqno, header.memb_num)));
    CbStatus::SUCCESS
}

/// As MariaDB: a server that has its data already asks for nothing (IST only).
unsafe extern "C" fn sst_request(
    app_ctx: *mut c_void,
    request: *mut *mut c_void,
    request_len: *mut usize,
) -> CbStatus {
    // SAFETY: what init() got.
    let app = unsafe { app(app_ctx) };
    let text = format!("host\0{} {:p}", app.name, app_ctx).into_bytes();
    let is_running = app.state().position != Gtid::UNDEFINED;
    // SAFETY: room for the results; the provider frees the block.
    unsafe {
        (*request, *request_len) = (ptr::null_mut(), 0);
        if !is_running {
            let block = libc::malloc(text.len());
            ptr::copy_nonoverlapping(text.as_ptr(), block.cast(), text.len());
            (*request, *request_len) = (block, text.len());
        }
    }
    if !is_running {
        app.spawn(move |app| app.receive(&text));
    }
    CbStatus::SUCCESS
}

unsafe extern "C" fn sst_donate(
    app_ctx: *mut c_void,
    _recv_ctx: *mut c_void,
    request: *const Buf,
    gtid: *const Gtid,
    _state: *const Buf,
    bypass: bool,
) -> CbStatus {
    // SAFETY: what init() got; the arguments are valid during the call.
    let (app, request, position) = unsafe { (app(app_ctx), (*request).bytes().to_vec(), *gtid) };
    let snapshot = Snapshot {
        position,
        rows: app.state().rows.clone(),
    };
    let (own, committed) = (app.state().position, app.last_committed());
    app.check(own == position && committed == position, || {
        format!("asked to send {position} when {own} is applied, {committed} committed")
    });
    app.change(|state| state.donated.push(bypass));
    app.spawn(move |app| {
        let mut snapshots = SNAPSHOTS.lock().unwrap();
        snapshots.get_or_insert_default().insert(request, snapshot);
        drop(snapshots);
        let status = call!(app, sst_sent, &position, 0);
        app.check(status == WsrepStatus::OK, || {
            format!("sst_sent: {status:?}")
        });
    });
    CbStatus::SUCCESS
}

unsafe extern "C" fn synced(app_ctx: *mut c_void) -> CbStatus {
    // SAFETY: what init() got.
    unsafe { app(app_ctx) }.change(|state| state.synced += 1);
    CbStatus::SUCCESS
}

unsafe extern "C" fn apply(
    recv_ctx: *mut c_void,
    handle: *const WsHandle,
    flags: u32,
    data: *const Buf,
    meta: *const TrxMeta,
    _exit_loop: *mut bool,
) -> CbStatus {
    // SAFETY: an applier's context; the arguments are valid during the call.
    let (applier, data, meta) = unsafe { (applier(recv_ctx), (*data).bytes(), *meta) };
    let (app, seqno) = (&applier.app, meta.gtid.seqno);
    let data = String::from_utf8_lossy(data).into_owned();
    app.check(flags & !flag::MASK == 0 && meta.depends_on < seqno, || {
        format!("flags {flags:#x}, {meta:?}")
    });
    app.change(|state| {
        state.applied_flags.push(flags);
        state.at_gate |= state.gate.as_deref() == Some(data.as_str());
    });
    let opened = app.comes(|state| state.gate.as_deref() != Some(data.as_str()));
    app.check(opened, || "the gate stayed shut".into());
    let handle = applier.replays.unwrap_or(handle);
    let entered = call!(app, commit_order_enter, handle, &meta);
    app.enter(seqno, (flags & flag::ROLLBACK == 0).then_some(data));
    let left = call!(app, commit_order_leave, handle, &meta, &Buf::EMPTY);
    app.check(
        (entered, left) == (WsrepStatus::OK, WsrepStatus::OK),
        || format!("commit order of {seqno}: {entered:?}, {left:?}"),
    );
    CbStatus::SUCCESS
}
