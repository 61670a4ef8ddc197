//! The arguments of `init`: the server's settings and its callbacks.

use std::ffi::{c_char, c_int, c_void};
use std::path::PathBuf;

use crate::buf::{Buf, WsHandle};
use crate::ids::{Gtid, TrxMeta};
use crate::memory::{cstr_to_path, cstr_to_string};
use crate::status::{CbStatus, LogLevel};
use crate::view::ViewInfoHeader;

/// Takes a log line; any thread may call it.
pub type LogCb = unsafe extern "C" fn(level: LogLevel, message: *const c_char);
/// Tells of the first primary view after a connect, before anything else.
pub type ConnectedCb =
    unsafe extern "C" fn(app_ctx: *mut c_void, view: *const ViewInfoHeader) -> CbStatus;
/// Installs a view. `state` is unused by MariaDB: NULL and 0.
pub type ViewCb = unsafe extern "C" fn(
    app_ctx: *mut c_void,
    recv_ctx: *mut c_void,
    view: *const ViewInfoHeader,
    state: *const c_char,
    state_len: usize,
) -> CbStatus;
/// Requests a state transfer request; the provider frees it with `free(3)`. NULL and 0 mean "no SST, IST only".
pub type SstRequestCb = unsafe extern "C" fn(
    app_ctx: *mut c_void,
    request: *mut *mut c_void,
    request_len: *mut usize,
) -> CbStatus;
/// Applies an ordered write-set; may set `exit_loop` to end the calling `recv`.
pub type ApplyCb = unsafe extern "C" fn(
    recv_ctx: *mut c_void,
    ws_handle: *const WsHandle,
    flags: u32,
    data: *const Buf,
    meta: *const TrxMeta,
    exit_loop: *mut bool,
) -> CbStatus;
/// Executes unordered data. MariaDB passes NULL.
pub type UnorderedCb = unsafe extern "C" fn(recv_ctx: *mut c_void, data: *const Buf) -> CbStatus;
/// Starts giving an SST (or, with `bypass`, only the position) to the node that sent `request`.
pub type SstDonateCb = unsafe extern "C" fn(
    app_ctx: *mut c_void,
    recv_ctx: *mut c_void,
    request: *const Buf,
    state_id: *const Gtid,
    state: *const Buf,
    bypass: bool,
) -> CbStatus;
/// Tells that the node is in step with the group.
pub type SyncedCb = unsafe extern "C" fn(app_ctx: *mut c_void) -> CbStatus;

/// Encryption key: bytes (`wsrep_enc_key_t`).
pub type EncKey = Buf;
/// Encryption initialisation vector.
pub type EncIv = [c_char; 32];

/// State of an encryption in progress (`wsrep_enc_ctx_t`).
#[repr(C)]
#[derive(Debug)]
pub struct EncCtx {
    /// Key.
    pub key: *const EncKey,
    /// Initialisation vector.
    pub iv: *const EncIv,
    /// The encryptor's own pointer.
    pub ctx: *mut c_void,
}

c_enum! {
    /// Direction of an encryption (`wsrep_enc_direction_t`).
    EncDirection {
        /// Encrypt.
        ENCRYPT = 0,
        /// Decrypt.
        DECRYPT = 1,
    }
}

/// Encrypts or decrypts cached data. MariaDB passes NULL.
pub type EncryptCb = unsafe extern "C" fn(
    app_ctx: *mut c_void,
    enc_ctx: *mut EncCtx,
    input: *const Buf,
    output: *mut c_void,
    direction: EncDirection,
    last: bool,
) -> c_int;

/// Arguments of `init` (`struct wsrep_init_args`). Everything it points to is only valid during the call, except the
/// target of `app_ctx`: copy it with [`InitSettings::copy_from`].
#[repr(C)]
pub struct InitArgs {
    /// Passed to most callbacks.
    pub app_ctx: *mut c_void,
    /// Name of the node.
    pub node_name: *const c_char,
    /// Address of the node, perhaps with a port.
    pub node_address: *const c_char,
    /// Address for clients.
    pub node_incoming: *const c_char,
    /// Directory for the provider's files.
    pub data_dir: *const c_char,
    /// Provider options.
    pub options: *const c_char,
    /// Highest application protocol that the server speaks.
    pub proto_ver: c_int,
    /// The server's own position.
    pub state_id: *const Gtid,
    /// Unused by MariaDB: NULL.
    pub state: *const Buf,
    /// See [`LogCb`].
    pub logger_cb: Option<LogCb>,
    /// See [`ConnectedCb`].
    pub connected_cb: Option<ConnectedCb>,
    /// See [`ViewCb`].
    pub view_cb: Option<ViewCb>,
    /// See [`SstRequestCb`].
    pub sst_request_cb: Option<SstRequestCb>,
    /// See [`EncryptCb`].
    pub encrypt_cb: Option<EncryptCb>,
    /// See [`ApplyCb`].
    pub apply_cb: Option<ApplyCb>,
    /// See [`UnorderedCb`].
    pub unordered_cb: Option<UnorderedCb>,
    /// See [`SstDonateCb`].
    pub sst_donate_cb: Option<SstDonateCb>,
    /// See [`SyncedCb`].
    pub synced_cb: Option<SyncedCb>,
}

/// The server's callbacks and the context that they take.
#[derive(Clone, Copy, Debug)]
pub struct Callbacks {
    /// Passed to most callbacks.
    pub app_ctx: *mut c_void,
    /// See [`LogCb`].
    pub logger: Option<LogCb>,
    /// See [`ConnectedCb`].
    pub connected: Option<ConnectedCb>,
    /// See [`ViewCb`].
    pub view: Option<ViewCb>,
    /// See [`SstRequestCb`].
    pub sst_request: Option<SstRequestCb>,
    /// See [`ApplyCb`].
    pub apply: Option<ApplyCb>,
    /// See [`UnorderedCb`].
    pub unordered: Option<UnorderedCb>,
    /// See [`SstDonateCb`].
    pub sst_donate: Option<SstDonateCb>,
    /// See [`SyncedCb`].
    pub synced: Option<SyncedCb>,
}

// SAFETY: the API lets callbacks be called from any of the threads that the server gave to the provider, and the
// context is never dereferenced on this side.
unsafe impl Send for Callbacks {}
// SAFETY: as above; the struct itself is never changed.
unsafe impl Sync for Callbacks {}

/// An owned copy of [`InitArgs`].
#[derive(Clone, Debug)]
pub struct InitSettings {
    /// Name of the node; not unique.
    pub node_name: String,
    /// Address of the node, perhaps with a port.
    pub node_address: String,
    /// Address for clients.
    pub node_incoming: String,
    /// Directory for the provider's files, perhaps relative.
    pub data_dir: PathBuf,
    /// Provider options.
    pub options: String,
    /// Highest application protocol that the server speaks.
    pub proto_ver: i32,
    /// The server's own position; undefined if it gave none.
    pub state_id: Gtid,
    /// The server's callbacks.
    pub callbacks: Callbacks,
}

impl InitSettings {
    /// Copies the server's arguments; NULL strings become empty.
    ///
    /// # Safety
    /// Every non-NULL pointer of `args` must be valid for reads during the call, strings NUL-terminated.
    pub unsafe fn copy_from(args: &InitArgs) -> InitSettings {
        // SAFETY: the caller's contract.
        unsafe {
            InitSettings {
                node_name: cstr_to_string(args.node_name),
                node_address: cstr_to_string(args.node_address),
                node_incoming: cstr_to_string(args.node_incoming),
                data_dir: cstr_to_path(args.data_dir),
                options: cstr_to_string(args.options),
                proto_ver: args.proto_ver,
                state_id: args.state_id.as_ref().copied().unwrap_or_default(),
                callbacks: Callbacks {
                    app_ctx: args.app_ctx,
                    logger: args.logger_cb,
                    connected: args.connected_cb,
                    view: args.view_cb,
                    sst_request: args.sst_request_cb,
                    apply: args.apply_cb,
                    unordered: args.unordered_cb,
                    sst_donate: args.sst_donate_cb,
                    synced: args.synced_cb,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Uuid;

    unsafe extern "C" fn synced(_: *mut c_void) -> CbStatus {
        CbStatus::SUCCESS
    }

    #[test]
    fn settings_are_copied_and_nulls_become_empty() {
        // SAFETY: all-zero is a valid InitArgs: NULL pointers, 0 and `None` callbacks.
        let mut args: InitArgs = unsafe { std::mem::zeroed() };
        // SAFETY: NULL pointers are allowed.
        let empty = unsafe { InitSettings::copy_from(&args) };
        assert_eq!(
            (empty.node_name.as_str(), empty.state_id),
            ("", Gtid::UNDEFINED)
        );

        let gtid = Gtid {
            uuid: Uuid { bytes: [1; 16] },
            seqno: 6,
        };
        args.node_name = c"node1".as_ptr();
        args.options = c"pc.weight=2".as_ptr();
        args.state_id = &gtid;
        args.proto_ver = 4;
        args.synced_cb = Some(synced);
        // SAFETY: literals and a local.
        let settings = unsafe { InitSettings::copy_from(&args) };
        assert_eq!(
            (settings.node_name.as_str(), settings.options.as_str()),
            ("node1", "pc.weight=2")
        );
        assert_eq!((settings.state_id, settings.proto_ver), (gtid, 4));
        assert!(settings.callbacks.synced.is_some() && settings.callbacks.apply.is_none());
    }
}
