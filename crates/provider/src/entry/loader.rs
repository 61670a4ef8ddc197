//! The symbols that the server looks up, and the function table.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use trireme_wsrep_abi::{INTERFACE_VERSION, Wsrep};

use super::{life, toi, transfer, writes};

/// A C string that the server may read from any thread.
#[repr(transparent)]
pub struct Text(*const c_char);
// SAFETY: points to a constant.
unsafe impl Sync for Text {}

/// The server compares it with its own version before it calls anything.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static wsrep_interface_version: Text = Text(INTERFACE_VERSION.as_ptr());

const NAME: &CStr = c"Trireme";
/// MariaDB's suites compare the last two numbers with Galera's releases to decide which tests apply to a provider; the
/// first number is the wsrep API's.
const VERSION: &CStr = c"26.4.26(trireme 0.1.0)";
const VENDOR: &CStr = c"The Trireme authors";

/// Fills the server's function table.
///
/// # Safety
/// `wsrep` must be valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wsrep_loader(wsrep: *mut Wsrep) -> c_int {
    if wsrep.is_null() {
        return libc::EINVAL;
    }
    let table = Wsrep {
        version: INTERFACE_VERSION.as_ptr(),
        init: Some(life::init),
        capabilities: Some(life::capabilities),
        options_set: Some(life::options_set),
        options_get: Some(life::options_get),
        enc_set_key: Some(life::enc_set_key),
        connect: Some(life::connect),
        disconnect: Some(life::disconnect),
        recv: Some(life::recv),
        assign_read_view: Some(writes::assign_read_view),
        certify: Some(writes::certify),
        commit_order_enter: Some(writes::commit_order_enter),
        commit_order_leave: Some(writes::commit_order_leave),
        release: Some(writes::release),
        replay_trx: Some(writes::replay_trx),
        abort_certification: Some(writes::abort_certification),
        rollback: Some(writes::rollback),
        append_key: Some(writes::append_key),
        append_data: Some(writes::append_data),
        sync_wait: Some(transfer::sync_wait),
        last_committed_id: Some(transfer::last_committed_id),
        free_connection: Some(life::free_connection),
        to_execute_start: Some(toi::to_execute_start),
        to_execute_end: Some(toi::to_execute_end),
        preordered_collect: Some(toi::preordered_collect),
        preordered_commit: Some(toi::preordered_commit),
        sst_sent: Some(transfer::sst_sent),
        sst_received: Some(transfer::sst_received),
        snapshot: Some(transfer::snapshot),
        stats_get: Some(life::stats_get),
        stats_free: Some(life::stats_free),
        stats_reset: Some(life::stats_reset),
        pause: Some(transfer::pause),
        resume: Some(transfer::resume),
        desync: Some(transfer::desync),
        resync: Some(transfer::resync),
        lock: Some(toi::lock),
        unlock: Some(toi::unlock),
        is_locked: Some(toi::is_locked),
        provider_name: NAME.as_ptr(),
        provider_version: VERSION.as_ptr(),
        provider_vendor: VENDOR.as_ptr(),
        free: Some(life::free),
        dlh: ptr::null_mut(),
        ctx: ptr::null_mut(),
    };
    // SAFETY: the caller's contract.
    unsafe { wsrep.write(table) };
    0
}
