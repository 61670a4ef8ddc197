//! A host program without a database: it loads the provider through its C API, as a server does, several times in one
//! process. What is checked is the contract between server and provider (docs/server-contract.md); the
//! server's part is played by `Server` (with callbacks and recv() threads) and `Transaction` (a client's thread).

mod app;
mod arbitrator;
mod callbacks;
mod cluster;
mod costs;
mod errors;
mod flood;
mod left_out;
mod secret;
mod server;
mod single;
mod stranger;
mod told;
mod transaction;

// Nothing else here names the library, which would then not be linked.
use trireme as _;

/// Provider functions are `Option`s, which are all set: `call!(server, pause)`, `call!(server, recv, ctx)`.
macro_rules! call {
    ($server:expr, $function:ident $(, $argument:expr)*) => {{
        let table = $server.table();
        // SAFETY: the loader has filled the table; the arguments are valid during the call.
        unsafe { ((*table).$function.expect("the loader sets every function"))(table $(, $argument)*) }
    }};
}
pub(crate) use call;

/// For tests that measure the whole process: its memory, descriptors and time are theirs alone.
pub static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
