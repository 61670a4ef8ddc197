//! The C ABI between a MariaDB server and a wsrep provider: API version 26.
//!
//! Only types, constants, the function table and thin safe wrappers live here; no replication logic.
//! C names lose their `wsrep_` prefix (`wsrep_trx_meta_t` is [`TrxMeta`]) unless that would leave a word too common
//! ([`WsrepStatus`]). C enums are integer newtypes ([`KeyType`], [`LogLevel`], ...), because a C caller may hand over
//! any integer, which a Rust enum must never hold.
//!
//! Every size and offset is asserted at compile time in `layout.rs`.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the layouts of the wsrep ABI are only written down for 64-bit targets");

/// Declares a C enum as a transparent integer newtype with named constants and a `Debug` that prints the name.
macro_rules! c_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $value:expr),+ $(,)? }) => {
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name(pub std::ffi::c_int);

        impl $name {
            $($(#[$vmeta])* pub const $variant: $name = $name($value);)+
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match *self {
                    $($name::$variant => f.write_str(stringify!($variant)),)+
                    $name(other) => write!(f, "{}({other})", stringify!($name)),
                }
            }
        }
    };
}

mod buf;
mod flags;
#[cfg(feature = "host")]
pub mod host;
mod ids;
mod init;
mod layout;
mod memory;
mod services;
mod stats;
mod status;
mod table;
mod view;

pub use buf::{Buf, DataType, Key, KeyType, PoHandle, WsHandle, slice_or_empty};
pub use flags::{cap, flag};
pub use ids::{ConnId, Gtid, ParseUuidError, SEQNO_UNDEFINED, Seqno, Stid, TrxId, TrxMeta, Uuid};
pub use init::{
    ApplyCb, Callbacks, ConnectedCb, EncCtx, EncDirection, EncIv, EncKey, EncryptCb, InitArgs,
    InitSettings, LogCb, SstDonateCb, SstRequestCb, SyncedCb, UnorderedCb, ViewCb,
};
pub use memory::{CBlock, cstr_to_string, malloc_cstr};
pub use services::{
    AllowlistCb, AllowlistKey, AllowlistServiceV1, ConfigServiceV1, EventCb, EventServiceV1,
    GetParametersCb, GetParametersFn, NodeIsolationMode, NodeIsolationResult, Parameter,
    ParameterValue, SeqCb, param,
};
pub use stats::{StatsVar, VarType, VarValue};
pub use status::{CbStatus, LogLevel, MemberStatus, ViewStatus, WsrepStatus};
pub use table::Wsrep;
pub use view::{
    INCOMING_LEN_BYTES, MEMBER_NAME_LEN_BYTES, Member, MemberInfo, ViewBuffer, ViewHeader,
    ViewInfoHeader,
};

/// The interface version that MariaDB 10.11 and 11.8 demand, as they compare it.
pub const INTERFACE_VERSION: &std::ffi::CStr = c"26";
