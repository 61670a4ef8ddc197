//! The border between the server and this library: no panic crosses it.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use trireme_wsrep_abi::Wsrep;

use crate::node::Node;

/// Returns the instance behind the server's handle; None before init() and after free().
///
/// # Safety
/// `wsrep` must be the table that the loader filled, and must not be freed meanwhile.
pub unsafe fn node(wsrep: *mut Wsrep) -> Option<Arc<Node>> {
    // SAFETY: the caller's contract; `ctx` is null or a leaked `Box<Arc<Node>>` (see life::init).
    unsafe {
        let ctx = context(wsrep)?.load(Ordering::Acquire);
        ctx.cast::<Arc<Node>>().as_ref().cloned()
    }
}

/// Returns the place of the instance in the table. free() takes the instance out in one step: of two simultaneous
/// calls, only one finds it.
///
/// # Safety
/// As for [`node`]; no other code may change the field meanwhile.
pub unsafe fn context<'a>(wsrep: *mut Wsrep) -> Option<&'a AtomicPtr<c_void>> {
    // SAFETY: the caller's contract; the field is aligned, and the table outlives the library.
    unsafe { (!wsrep.is_null()).then(|| AtomicPtr::from_ptr(&raw mut (*wsrep).ctx)) }
}

/// Runs `body`. On a panic returns `failed`, or ends the process if the panic has broken the core: a lost seqno would
/// hang the cluster silently.
///
/// # Safety
/// As for [`node`].
pub unsafe fn guard<T>(wsrep: *mut Wsrep, failed: T, body: impl FnOnce(&Arc<Node>) -> T) -> T {
    // SAFETY: the caller's contract.
    let Some(node) = (unsafe { node(wsrep) }) else {
        return failed;
    };
    match caught(&node, body) {
        Some(result) => result,
        None if node.is_broken() => std::process::abort(),
        None => failed,
    }
}

/// As [`guard`], for a thread that has a write-set in hand: every panic ends the process, because the write-set's seqno
/// would never pass.
///
/// # Safety
/// As for [`node`].
pub unsafe fn guard_applier<T>(
    wsrep: *mut Wsrep,
    failed: T,
    body: impl FnOnce(&Arc<Node>) -> T,
) -> T {
    // SAFETY: the caller's contract.
    let Some(node) = (unsafe { node(wsrep) }) else {
        return failed;
    };
    caught(&node, body).unwrap_or_else(|| std::process::abort())
}

/// Runs `body`; None after a panic, which it logs.
fn caught<T>(node: &Arc<Node>, body: impl FnOnce(&Arc<Node>) -> T) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(|| body(node)));
    if result.is_err() {
        node.logger
            .error("panic in the provider (the message is on standard error); please report it");
    }
    result.ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use trireme_wsrep_abi::{InitArgs, InitSettings};

    use super::*;
    use crate::runtime;

    /// The data directory for the process that a test below starts.
    const DIR: &str = "TRIREME_TEST_DIR_OF_A_BROKEN_CORE";

    /// Returns the arguments of init() for this data directory.
    pub(crate) fn settings(dir: &Path) -> InitSettings {
        let data_dir = CString::new(dir.as_os_str().as_bytes()).unwrap();
        // SAFETY: all-zero is a valid `InitArgs`: NULL pointers and `None`.
        let mut args: InitArgs = unsafe { std::mem::zeroed() };
        args.data_dir = data_dir.as_ptr();
        // SAFETY: the arguments are valid during the call.
        unsafe { InitSettings::copy_from(&args) }
    }

    /// Returns a new node with this data directory.
    pub(crate) fn new_node(dir: &Path) -> Arc<Node> {
        Arc::new(runtime::start(settings(dir)).unwrap())
    }

    /// Runs `body` behind the border of a new node; a panic returns 0.
    fn behind_the_border(dir: &Path, body: impl FnOnce(&Arc<Node>) -> u32) -> u32 {
        // SAFETY: all-zero is a valid table: NULL pointers and `None`.
        let mut table: Wsrep = unsafe { std::mem::zeroed() };
        let mut node = new_node(dir);
        table.ctx = (&raw mut node).cast();
        // SAFETY: the table is this test's own, and its instance outlives the call.
        unsafe { guard(&mut table, 0, body) }
    }

    #[test]
    fn a_panic_is_a_failed_call() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(behind_the_border(dir.path(), |_| 7), 7);
        let panics = |_: &Arc<Node>| -> u32 { panic!("this panic is part of the test") };
        assert_eq!(behind_the_border(dir.path(), panics), 0);
    }

    #[test]
    fn a_panic_that_breaks_the_core_ends_the_process() {
        if let Some(dir) = std::env::var_os(DIR) {
            let panics = |node: &Arc<Node>| -> u32 {
                node.with(|_| panic!("this panic is part of the test"))
            };
            behind_the_border(Path::new(&dir), panics);
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let this_test = "border::tests::a_panic_that_breaks_the_core_ends_the_process";
        let status = Command::new(std::env::current_exe().unwrap())
            .args([this_test, "--exact"])
            .env(DIR, dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(libc::SIGABRT), "{status}");
    }
}
