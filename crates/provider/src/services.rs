//! Optional services: symbols that the server looks up beside the function table.

use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trireme_transport::AllowAddress;
use trireme_wsrep_abi::{
    AllowlistKey, AllowlistServiceV1, Buf, ConfigServiceV1, ConnId, EventServiceV1,
    GetParametersCb, NodeIsolationMode, NodeIsolationResult, Parameter, ParameterValue, SeqCb,
    TrxMeta, WsHandle, Wsrep, WsrepStatus, param,
};

use crate::border::guard;
use crate::options::Typed;

/// The API has no instance argument here: the server has one allowlist per process.
static ALLOWLIST: Mutex<Allowlist> = Mutex::new(Allowlist {
    service: None,
    calls: 0,
});
/// The last of the calls has ended.
static NO_CALL: Condvar = Condvar::new();

/// The end of the service waits so long for calls. One that hangs longer waits for a lock in the server.
const LAST_CALLS: Duration = Duration::from_secs(3);

struct Allowlist {
    service: Option<AllowlistServiceV1>,
    /// Number of threads in the server's function.
    calls: usize,
}

fn lock_allowlist() -> MutexGuard<'static, Allowlist> {
    ALLOWLIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The isolation that the signal handler of a dying server has requested; see [`isolation_mode`].
static ISOLATION: AtomicI32 = AtomicI32::new(0);

/// # Safety
/// `service` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wsrep_init_allowlist_service_v1(
    service: *mut AllowlistServiceV1,
) -> c_int {
    // SAFETY: the caller's contract.
    lock_allowlist().service = unsafe { service.as_ref().copied() };
    0
}

/// Ends the service of [`wsrep_init_allowlist_service_v1`].
#[unsafe(no_mangle)]
pub extern "C" fn wsrep_deinit_allowlist_service_v1() {
    let mut allowlist = lock_allowlist();
    allowlist.service = None;
    let _ = NO_CALL.wait_timeout_while(allowlist, LAST_CALLS, |a| a.calls > 0);
}

/// Returns the server's allowlist; `None` if it has none, and every address may connect.
pub fn allowlist() -> Option<AllowAddress> {
    let service = lock_allowlist().service;
    service.map(|_| -> AllowAddress { Arc::new(allowed) })
}

/// Asks the server whether a peer may connect. May take long, and hangs while a session locks the table: called without
/// any lock held, in a thread for this alone.
fn allowed(address: &str) -> bool {
    // MariaDB reads the address as a C string.
    let Ok(text) = CString::new(address) else {
        return false;
    };
    let value = Buf::new(text.as_bytes());
    let mut allowlist = lock_allowlist();
    let Some(AllowlistServiceV1 {
        allowlist_cb: Some(callback),
        context,
    }) = allowlist.service
    else {
        return true;
    };
    allowlist.calls += 1;
    drop(allowlist);
    // SAFETY: the service is valid until it is deinitialised, and its end waits for this call. A call that hangs longer
    // is in the server's own code, this thread owns the address, and this library is never unloaded (build.rs).
    let status = unsafe { callback(context, AllowlistKey::IP, &value) };
    lock_allowlist().calls -= 1;
    NO_CALL.notify_all();
    status == WsrepStatus::OK
}

/// # Safety
/// `service` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wsrep_init_event_service_v1(_service: *mut EventServiceV1) -> c_int {
    // Progress events are optional for the server; this provider sends none.
    0
}

/// Ends the service of [`wsrep_init_event_service_v1`].
#[unsafe(no_mangle)]
pub extern "C" fn wsrep_deinit_event_service_v1() {}

/// Gives the server the function that lists the options (MariaDB 11.8 makes system variables of them).
///
/// # Safety
/// `service` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wsrep_init_config_service_v1(service: *mut ConfigServiceV1) -> c_int {
    // SAFETY: the caller's contract.
    match unsafe { service.as_mut() } {
        Some(service) => {
            service.get_parameters = Some(get_parameters);
            0
        }
        None => libc::EINVAL,
    }
}

/// Ends the service of [`wsrep_init_config_service_v1`].
#[unsafe(no_mangle)]
pub extern "C" fn wsrep_deinit_config_service_v1() {}

unsafe extern "C" fn get_parameters(
    wsrep: *mut Wsrep,
    callback: Option<GetParametersCb>,
    context: *mut std::ffi::c_void,
) -> WsrepStatus {
    // SAFETY: the server passes its table, and a callback that takes one parameter at a time.
    unsafe {
        guard(wsrep, WsrepStatus::FATAL, |node| {
            let Some(callback) = callback else {
                return WsrepStatus::FATAL;
            };
            let options = node
                .options
                .lock()
                .unwrap_or_else(|e| e.into_inner())
                .clone();
            for option in options.visible() {
                let Ok(name) = CString::new(option.name) else {
                    continue;
                };
                let (kind, text) = match &option.value {
                    Typed::Str(text) => (0, CString::new(text.as_str()).unwrap_or_default()),
                    Typed::Bool(_) => (param::TYPE_BOOL, CString::default()),
                    Typed::Int(_) => (param::TYPE_INTEGER, CString::default()),
                    Typed::Double(_) | Typed::Duration(_) => {
                        (param::TYPE_DOUBLE, CString::default())
                    }
                };
                let value = match &option.value {
                    Typed::Str(_) => ParameterValue {
                        as_string: text.as_ptr(),
                    },
                    Typed::Bool(value) => ParameterValue { as_bool: *value },
                    Typed::Int(value) => ParameterValue { as_integer: *value },
                    Typed::Double(value) => ParameterValue { as_double: *value },
                    Typed::Duration(value) => ParameterValue {
                        as_double: value.as_secs_f64(),
                    },
                };
                let mut flags = kind;
                if option.deprecated {
                    flags |= param::DEPRECATED;
                }
                if option.read_only {
                    flags |= param::READONLY;
                }
                let parameter = Parameter {
                    flags,
                    name: name.as_ptr(),
                    value,
                };
                if callback(&parameter, context) != WsrepStatus::OK {
                    node.logger.error(format!(
                        "the server does not take the option '{}'",
                        option.name
                    ));
                    return WsrepStatus::FATAL;
                }
            }
            WsrepStatus::OK
        })
    }
}

/// certify() with a callback that is called when the write-set's place in the local order is fixed. No MariaDB passes
/// one so far. The callback is called before the write-set is sent, which is a place in that order.
///
/// # Safety
/// As certify().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wsrep_certify_v1(
    wsrep: *mut Wsrep,
    conn: ConnId,
    handle: *mut WsHandle,
    flags: u32,
    meta: *mut TrxMeta,
    sequenced: *const SeqCb,
) -> WsrepStatus {
    // SAFETY: the server passes null or a valid callback.
    unsafe {
        if let Some(SeqCb {
            ctx,
            callback: Some(callback),
        }) = sequenced.as_ref()
        {
            callback(*ctx);
        }
        crate::entry::certify(wsrep, conn, handle, flags, meta)
    }
}

/// Called from the handler of a fatal signal: only stores the mode.
#[unsafe(no_mangle)]
pub extern "C" fn wsrep_node_isolation_mode_set_v1(mode: NodeIsolationMode) -> NodeIsolationResult {
    if !(0..=2).contains(&mode.0) {
        return NodeIsolationResult::INVALID_VALUE;
    }
    ISOLATION.store(mode.0, Ordering::Release);
    NodeIsolationResult::SUCCESS
}

/// Returns true if a dying server has requested isolation.
pub fn isolated_by_signal() -> bool {
    ISOLATION.load(Ordering::Acquire) != 0
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use super::*;

    unsafe extern "C" fn takes_one(
        _: *mut c_void,
        key: AllowlistKey,
        value: *const Buf,
    ) -> WsrepStatus {
        // SAFETY: the caller's value is valid during the call.
        let address = unsafe { (*value).bytes() };
        match key == AllowlistKey::IP && address == b"192.0.2.1" {
            true => WsrepStatus::OK,
            false => WsrepStatus::NOT_ALLOWED,
        }
    }

    #[test]
    fn the_servers_allowlist_judges_addresses_while_it_is_there() {
        assert!(
            allowlist().is_none(),
            "without a service nobody waits for a verdict"
        );
        let mut service = AllowlistServiceV1 {
            allowlist_cb: Some(takes_one),
            context: std::ptr::null_mut(),
        };
        // SAFETY: the service is valid.
        assert_eq!(unsafe { wsrep_init_allowlist_service_v1(&mut service) }, 0);
        let list = allowlist().unwrap();
        assert!(list("192.0.2.1") && !list("192.0.2.2"));
        wsrep_deinit_allowlist_service_v1();
        assert!(allowlist().is_none());
    }
}
