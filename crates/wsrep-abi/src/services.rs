//! Optional services that the server offers or asks for through extra exported symbols.
//!
//! The thread, TLS and connection monitor services are left out: MariaDB never passes them
//! (server-contract-reference.md#never-offered).

use std::ffi::{c_char, c_int, c_void};

use crate::buf::Buf;
use crate::status::WsrepStatus;
use crate::table::Wsrep;

c_enum! {
    /// The subject of an allowlist question (`wsrep_allowlist_key_t`).
    AllowlistKey {
        /// The value is an IP address as text, without port.
        IP = 0,
        /// The value is a certificate subject. Unused.
        SSL = 1,
    }
}

/// Asks whether a peer may connect: OK or NOT_ALLOWED. `value` must be followed by a NUL byte, since MariaDB reads it
/// as a C string. May take long; never call it with a lock held that a commit needs.
pub type AllowlistCb =
    unsafe extern "C" fn(context: *mut c_void, key: AllowlistKey, value: *const Buf) -> WsrepStatus;

/// Argument of `wsrep_init_allowlist_service_v1`: copy it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllowlistServiceV1 {
    /// The question.
    pub allowlist_cb: Option<AllowlistCb>,
    /// First argument of the question.
    pub context: *mut c_void,
}

/// Takes an event: a name ("progress", "event") and a JSON value. Any thread may call it.
pub type EventCb =
    unsafe extern "C" fn(context: *mut c_void, name: *const c_char, value: *const c_char);

/// Argument of `wsrep_init_event_service_v1`. It lies on the caller's stack: copy it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EventServiceV1 {
    /// The receiver of events.
    pub event_cb: Option<EventCb>,
    /// First argument of the receiver.
    pub context: *mut c_void,
}

// SAFETY: the server allows these callbacks from any thread; the contexts are never dereferenced on this side.
unsafe impl Send for AllowlistServiceV1 {}
// SAFETY: as above.
unsafe impl Sync for AllowlistServiceV1 {}
// SAFETY: as above.
unsafe impl Send for EventServiceV1 {}
// SAFETY: as above.
unsafe impl Sync for EventServiceV1 {}

/// Flags of a [`Parameter`]; without one of the three types it is a string.
pub mod param {
    /// The option is deprecated.
    pub const DEPRECATED: i32 = 1 << 0;
    /// The option cannot be set at run time.
    pub const READONLY: i32 = 1 << 1;
    /// The value is a boolean.
    pub const TYPE_BOOL: i32 = 1 << 2;
    /// The value is a 64-bit integer.
    pub const TYPE_INTEGER: i32 = 1 << 3;
    /// The value is a double (durations in seconds too).
    pub const TYPE_DOUBLE: i32 = 1 << 4;
}

/// Value of a [`Parameter`]; its flags say which field holds.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ParameterValue {
    /// For [`param::TYPE_BOOL`].
    pub as_bool: bool,
    /// For [`param::TYPE_INTEGER`].
    pub as_integer: i64,
    /// For [`param::TYPE_DOUBLE`].
    pub as_double: f64,
    /// Without a type flag; never NULL.
    pub as_string: *const c_char,
}

/// One provider option (`wsrep_parameter_t`).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Parameter {
    /// See [`param`].
    pub flags: c_int,
    /// The option's name.
    pub name: *const c_char,
    /// Its value now.
    pub value: ParameterValue,
}

/// Receives one option; anything but OK ends the enumeration.
pub type GetParametersCb =
    unsafe extern "C" fn(parameter: *const Parameter, context: *mut c_void) -> WsrepStatus;
/// Calls `cb` once per visible option.
pub type GetParametersFn = unsafe extern "C" fn(
    wsrep: *mut Wsrep,
    cb: Option<GetParametersCb>,
    context: *mut c_void,
) -> WsrepStatus;

/// Argument of `wsrep_init_config_service_v1`: the provider fills it in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConfigServiceV1 {
    /// The provider's enumeration of its options.
    pub get_parameters: Option<GetParametersFn>,
}

c_enum! {
    /// Argument of `wsrep_node_isolation_mode_set_v1`, which a fatal signal handler calls.
    NodeIsolationMode {
        /// Talk to peers.
        NOT_ISOLATED = 0,
        /// Neither send nor receive.
        ISOLATED = 1,
        /// Drop the connections.
        FORCE_DISCONNECT = 2,
    }
}

c_enum! {
    /// Result of `wsrep_node_isolation_mode_set_v1`.
    NodeIsolationResult {
        /// Done.
        SUCCESS = 0,
        /// Unknown mode.
        INVALID_VALUE = 1,
    }
}

/// Argument of `wsrep_certify_v1`: to be called once the write-set's place in the local send order is fixed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SeqCb {
    /// Argument of the function.
    pub ctx: *mut c_void,
    /// The function.
    pub callback: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
}
