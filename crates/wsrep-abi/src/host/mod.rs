//! The server's side of the ABI: a provider that this process has loaded, behind safe calls.
//!
//! [`Library`] is a loaded library, [`Loaded`] the provider after its initialisation, [`Application`] the server's side
//! towards a provider, [`Transaction`] the life of one local write-set. `abort_certification` is never called: an
//! application without locks has no victims. A library is trusted as a server trusts it: once it is loaded its code
//! runs in this process.

mod callbacks;
mod loaded;
mod transaction;

pub use callbacks::{Application, Applied};
pub use loaded::{HostError, Identity, Library, Loaded, Parameters};
pub use transaction::Transaction;

/// Calls a function of the table of `$owner`, whose presence `Library::open` has checked. The arguments are names: an expression
/// would be evaluated within `unsafe`.
macro_rules! call {
    ($owner:expr, $function:ident $(, $argument:ident)*) => {{
        let table = $owner.table();
        // SAFETY: `open` filled the table, and nobody writes it afterwards; the provider's functions may be called from any
        // thread, and the callers of this macro pass pointers to values that live through the call.
        unsafe {
            match (*table).$function {
                Some(function) => function(table $(, $argument)*),
                None => unreachable!(concat!("`open` refuses a table without ", stringify!($function))),
            }
        }
    }};
}
use call;
