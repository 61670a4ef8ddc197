//! The callbacks of a provider: they turn pointers into values, and call the [`Application`].

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use super::call;
use super::loaded::HostError;
use crate::{
    Buf, CBlock, CbStatus, Gtid, InitArgs, LogLevel, Seqno, TrxMeta, ViewInfoHeader, ViewStatus,
    WsHandle, Wsrep, WsrepStatus, cstr_to_string, flag,
};

/// The server's side towards a provider. All calls but [`Application::log`] come on threads that are in `receive`.
pub trait Application: Send + Sync {
    /// A view: its history and seqno, whether it is primary, and the number of its members. A primary view takes a place in
    /// the order.
    fn view(&self, position: Gtid, is_primary: bool, members: usize);

    /// Returns the joiner's request for a donor. Once it has the donor's state, the caller must call
    /// `Loaded::state_received`.
    fn state_request(&self) -> Vec<u8>;

    /// Hands the donor's state at `position` to the joiner that has sent `request`. Returns true if it has succeeded.
    fn donate(&self, request: &[u8], position: Gtid) -> bool;

    /// Applies a remote write-set: the implementation must call [`Applied::in_commit_order`] once.
    fn apply(&self, write_set: Applied<'_>) -> Result<(), HostError>;

    /// Tells that the node is in step with the group.
    fn synced(&self);
}

/// A remote write-set.
pub struct Applied<'a> {
    /// Its place in the order.
    pub seqno: Seqno,
    /// True if it commits; a write-set that failed certification only takes its place.
    pub commits: bool,
    /// The data that its origin appended; empty if it failed certification.
    pub data: &'a [u8],
    table: *mut Wsrep,
    handle: *const WsHandle,
    meta: *const TrxMeta,
}

impl Applied<'_> {
    /// Waits for the write-set's turn to commit, calls `commit`, and passes the turn on.
    pub fn in_commit_order(self, commit: impl FnOnce()) -> Result<(), HostError> {
        // The provider's pointers stay valid until the apply callback returns, and the lifetime of `self` ends before.
        let (handle, meta) = (self.handle, self.meta);
        let entered = call!(self, commit_order_enter, handle, meta);
        HostError::check("commit_order_enter", entered)?;
        commit();
        let no_error = &Buf::EMPTY;
        let left = call!(self, commit_order_leave, handle, meta, no_error);
        HostError::check("commit_order_leave", left)
    }

    fn table(&self) -> *mut Wsrep {
        self.table
    }
}

/// The context that the provider passes back, both for calls of the application and of an applier.
pub(super) struct Context {
    application: Arc<dyn Application>,
    table: *mut Wsrep,
}

impl Context {
    pub fn new(application: Arc<dyn Application>, table: *mut Wsrep) -> Self {
        Self { application, table }
    }

    fn table(&self) -> *mut Wsrep {
        self.table
    }
}

/// Sets all callbacks.
pub(super) fn enter(args: &mut InitArgs) {
    args.logger_cb = Some(log);
    args.connected_cb = Some(connected);
    args.view_cb = Some(view);
    args.sst_request_cb = Some(sst_request);
    args.apply_cb = Some(apply);
    args.sst_donate_cb = Some(sst_donate);
    args.synced_cb = Some(synced);
}

/// # Safety
/// `pointer` must be what `Library::start` or `Loaded::receive` gave to the provider.
unsafe fn context<'a>(pointer: *mut c_void) -> &'a Context {
    // SAFETY: the caller's contract; the context is never freed.
    unsafe { &*pointer.cast::<Context>() }
}

fn status(succeeded: bool) -> CbStatus {
    match succeeded {
        true => CbStatus::SUCCESS,
        false => CbStatus::FAILURE,
    }
}

/// Writes the provider's messages to standard error, since this callback has no context. Omits debug messages.
unsafe extern "C" fn log(level: LogLevel, message: *const c_char) {
    if level != LogLevel::DEBUG {
        // SAFETY: a C string of the provider.
        eprintln!("{level:?}: {}", unsafe { cstr_to_string(message) });
    }
}

unsafe extern "C" fn connected(_app_ctx: *mut c_void, _view: *const ViewInfoHeader) -> CbStatus {
    CbStatus::SUCCESS
}

unsafe extern "C" fn view(
    app_ctx: *mut c_void,
    _recv_ctx: *mut c_void,
    view: *const ViewInfoHeader,
    _state: *const c_char,
    _state_len: usize,
) -> CbStatus {
    // SAFETY: what `start` gave, and a view.
    let (context, view) = unsafe { (context(app_ctx), &*view) };
    let is_primary = view.status == ViewStatus::PRIMARY;
    let members = usize::try_from(view.memb_num).unwrap_or(0);
    context.application.view(view.state_id, is_primary, members);
    CbStatus::SUCCESS
}

unsafe extern "C" fn sst_request(
    app_ctx: *mut c_void,
    request: *mut *mut c_void,
    request_len: *mut usize,
) -> CbStatus {
    // SAFETY: what `start` gave.
    let bytes = unsafe { context(app_ctx) }.application.state_request();
    let Some(mut block) = CBlock::new(bytes.len()) else {
        return CbStatus::FAILURE;
    };
    block.bytes_mut().copy_from_slice(&bytes);
    // SAFETY: room for the results; the provider frees the block with free(3), and it comes from calloc(3).
    unsafe { (*request, *request_len) = (block.into_raw(), bytes.len()) };
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
    // SAFETY: what `receive` gave, and pointers that are valid until this returns.
    let (context, write_set) = unsafe {
        let context = context(recv_ctx);
        let write_set = Applied {
            seqno: (*meta).gtid.seqno,
            commits: flags & flag::ROLLBACK == 0,
            data: data.as_ref().map_or(&[], |data| data.bytes()),
            table: context.table,
            handle,
            meta,
        };
        (context, write_set)
    };
    let seqno = write_set.seqno;
    let applied = context.application.apply(write_set);
    if let Err(error) = &applied {
        eprintln!("ERROR: write-set {seqno} could not be applied: {error}");
    }
    status(applied.is_ok())
}

unsafe extern "C" fn sst_donate(
    app_ctx: *mut c_void,
    _recv_ctx: *mut c_void,
    request: *const Buf,
    state_id: *const Gtid,
    _state: *const Buf,
    _bypass: bool,
) -> CbStatus {
    // SAFETY: what `start` gave, a request and a GTID.
    let (context, request, position) = unsafe { (context(app_ctx), (*request).bytes(), *state_id) };
    if !context.application.donate(request, position) {
        return CbStatus::FAILURE;
    }
    // The API lets sst_sent be called within this callback.
    let succeeded = 0;
    status(call!(context, sst_sent, state_id, succeeded) == WsrepStatus::OK)
}

unsafe extern "C" fn synced(app_ctx: *mut c_void) -> CbStatus {
    // SAFETY: what `start` gave.
    unsafe { context(app_ctx) }.application.synced();
    CbStatus::SUCCESS
}
