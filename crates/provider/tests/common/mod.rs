//! A host program without a database: it loads the provider through its C API, as a server does, several times in one
//! process. The server's part is played by `Server` (with callbacks and recv() threads) and `Transaction` (a client's
//! thread).

// Each test binary uses its part.
#![allow(dead_code)]

mod app;
mod callbacks;
pub mod server;
pub mod transaction;

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

/// Acts at the end of a scope, also when a test has failed: `thread::scope` waits for its threads, and they for this.
pub struct AtEnd<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
