//! The function table that `wsrep_loader` fills.

use std::ffi::{c_char, c_int, c_void};

use crate::buf::{Buf, DataType, Key, KeyType, PoHandle, WsHandle};
use crate::ids::{ConnId, Gtid, Seqno, TrxId, TrxMeta, Uuid};
use crate::init::{EncKey, InitArgs};
use crate::stats::StatsVar;
use crate::status::WsrepStatus;

/// A provider as the server sees it (`struct wsrep_st`, `wsrep_t`). docs/server-contract.md#the-calls has, for each
/// call, its duty, its thread, and the server's reaction to its result.
#[repr(C)]
pub struct Wsrep {
    /// [`crate::INTERFACE_VERSION`].
    pub version: *const c_char,
    /// Configures the provider; once, before everything else.
    pub init: Option<unsafe extern "C" fn(*mut Wsrep, *const InitArgs) -> WsrepStatus>,
    /// Capability bits ([`crate::cap`]).
    pub capabilities: Option<unsafe extern "C" fn(*mut Wsrep) -> u32>,
    /// Sets provider options; NODE_FAIL for any that is refused.
    pub options_set: Option<unsafe extern "C" fn(*mut Wsrep, *const c_char) -> WsrepStatus>,
    /// All options as one malloc'ed string.
    pub options_get: Option<unsafe extern "C" fn(*mut Wsrep) -> *mut c_char>,
    /// Sets the encryption key.
    pub enc_set_key: Option<unsafe extern "C" fn(*mut Wsrep, *const EncKey) -> WsrepStatus>,
    /// Joins or bootstraps a cluster: name, address, preferred donors, bootstrap.
    pub connect: Option<
        unsafe extern "C" fn(
            *mut Wsrep,
            *const c_char,
            *const c_char,
            *const c_char,
            bool,
        ) -> WsrepStatus,
    >,
    /// Leaves the cluster.
    pub disconnect: Option<unsafe extern "C" fn(*mut Wsrep) -> WsrepStatus>,
    /// Lends the calling thread to the provider, to deliver events with.
    pub recv: Option<unsafe extern "C" fn(*mut Wsrep, *mut c_void) -> WsrepStatus>,
    /// Fixes a read view. Unused by MariaDB.
    pub assign_read_view:
        Option<unsafe extern "C" fn(*mut Wsrep, *mut WsHandle, *const Gtid) -> WsrepStatus>,
    /// Replicates and certifies a write-set: connection, handle, flags, meta data (in and out).
    pub certify: Option<
        unsafe extern "C" fn(*mut Wsrep, ConnId, *mut WsHandle, u32, *mut TrxMeta) -> WsrepStatus,
    >,
    /// Waits for the write-set's turn to commit.
    pub commit_order_enter:
        Option<unsafe extern "C" fn(*mut Wsrep, *const WsHandle, *const TrxMeta) -> WsrepStatus>,
    /// Passes the turn on; a non-empty buffer is an apply error to vote on.
    pub commit_order_leave: Option<
        unsafe extern "C" fn(
            *mut Wsrep,
            *const WsHandle,
            *const TrxMeta,
            *const Buf,
        ) -> WsrepStatus,
    >,
    /// Ends a transaction, or a fragment of one.
    pub release: Option<unsafe extern "C" fn(*mut Wsrep, *mut WsHandle) -> WsrepStatus>,
    /// Applies a brute-force aborted write-set again, with the given receive context.
    pub replay_trx:
        Option<unsafe extern "C" fn(*mut Wsrep, *const WsHandle, *mut c_void) -> WsrepStatus>,
    /// Brute-force aborts a victim: aborter's seqno, victim, victim's seqno (out, always written).
    pub abort_certification:
        Option<unsafe extern "C" fn(*mut Wsrep, Seqno, TrxId, *mut Seqno) -> WsrepStatus>,
    /// Sends a rollback fragment.
    pub rollback: Option<unsafe extern "C" fn(*mut Wsrep, TrxId, *const Buf) -> WsrepStatus>,
    /// Adds keys to a write-set: keys, count, type, whether to copy.
    pub append_key: Option<
        unsafe extern "C" fn(
            *mut Wsrep,
            *mut WsHandle,
            *const Key,
            usize,
            KeyType,
            bool,
        ) -> WsrepStatus,
    >,
    /// Adds data to a write-set: buffers, count, type, whether to copy.
    pub append_data: Option<
        unsafe extern "C" fn(
            *mut Wsrep,
            *mut WsHandle,
            *const Buf,
            usize,
            DataType,
            bool,
        ) -> WsrepStatus,
    >,
    /// Waits until a position (or the group's present end, if NULL) is visible here: position, timeout in seconds
    /// (-1: default), reached position (out, may be NULL).
    pub sync_wait:
        Option<unsafe extern "C" fn(*mut Wsrep, *mut Gtid, c_int, *mut Gtid) -> WsrepStatus>,
    /// The last position that is visible here.
    pub last_committed_id: Option<unsafe extern "C" fn(*mut Wsrep, *mut Gtid) -> WsrepStatus>,
    /// Forgets a connection. Unused by MariaDB.
    pub free_connection: Option<unsafe extern "C" fn(*mut Wsrep, ConnId) -> WsrepStatus>,
    /// Starts a total-order-isolation action: connection, keys, count, action, count, flags, meta data (out).
    pub to_execute_start: Option<
        unsafe extern "C" fn(
            *mut Wsrep,
            ConnId,
            *const Key,
            usize,
            *const Buf,
            usize,
            u32,
            *mut TrxMeta,
        ) -> WsrepStatus,
    >,
    /// Ends the action; a non-empty buffer is an error to vote on.
    pub to_execute_end: Option<unsafe extern "C" fn(*mut Wsrep, ConnId, *const Buf) -> WsrepStatus>,
    /// Collects a preordered event. Unused by MariaDB.
    pub preordered_collect: Option<
        unsafe extern "C" fn(*mut Wsrep, *mut PoHandle, *const Buf, usize, bool) -> WsrepStatus,
    >,
    /// Commits a preordered event. Unused by MariaDB.
    pub preordered_commit: Option<
        unsafe extern "C" fn(
            *mut Wsrep,
            *mut PoHandle,
            *const Uuid,
            u32,
            c_int,
            bool,
        ) -> WsrepStatus,
    >,
    /// The donor's script is done: position, 0 or a negative errno.
    pub sst_sent: Option<unsafe extern "C" fn(*mut Wsrep, *const Gtid, c_int) -> WsrepStatus>,
    /// The joiner has its SST: position, state (unused), 0 or a negative errno.
    pub sst_received:
        Option<unsafe extern "C" fn(*mut Wsrep, *const Gtid, *const Buf, c_int) -> WsrepStatus>,
    /// Requests a snapshot. Unused by MariaDB.
    pub snapshot:
        Option<unsafe extern "C" fn(*mut Wsrep, *const Buf, *const c_char) -> WsrepStatus>,
    /// Status variables, ended by one without name.
    pub stats_get: Option<unsafe extern "C" fn(*mut Wsrep) -> *mut StatsVar>,
    /// Frees the variables.
    pub stats_free: Option<unsafe extern "C" fn(*mut Wsrep, *mut StatsVar)>,
    /// Starts averages anew.
    pub stats_reset: Option<unsafe extern "C" fn(*mut Wsrep)>,
    /// Stops at a seqno and returns it; negative errno on failure.
    pub pause: Option<unsafe extern "C" fn(*mut Wsrep) -> Seqno>,
    /// Ends the pause.
    pub resume: Option<unsafe extern "C" fn(*mut Wsrep) -> WsrepStatus>,
    /// Leaves flow control (counted).
    pub desync: Option<unsafe extern "C" fn(*mut Wsrep) -> WsrepStatus>,
    /// Takes one desync back.
    pub resync: Option<unsafe extern "C" fn(*mut Wsrep) -> WsrepStatus>,
    /// Cluster-wide lock: name, shared, owner, timeout in ns. Unused by MariaDB.
    pub lock:
        Option<unsafe extern "C" fn(*mut Wsrep, *const c_char, bool, u64, i64) -> WsrepStatus>,
    /// Releases the lock. Unused by MariaDB.
    pub unlock: Option<unsafe extern "C" fn(*mut Wsrep, *const c_char, u64) -> WsrepStatus>,
    /// Returns true if the lock is held, and the holder (out). Unused by MariaDB.
    pub is_locked:
        Option<unsafe extern "C" fn(*mut Wsrep, *const c_char, *mut u64, *mut Uuid) -> bool>,
    /// The provider's name.
    pub provider_name: *const c_char,
    /// The provider's version.
    pub provider_version: *const c_char,
    /// The provider's vendor.
    pub provider_vendor: *const c_char,
    /// Ends the provider. Called twice: the second call must do nothing.
    pub free: Option<unsafe extern "C" fn(*mut Wsrep)>,
    /// The loader's `dlopen` handle: the provider must not touch it.
    pub dlh: *mut c_void,
    /// The provider's own pointer.
    pub ctx: *mut c_void,
}
