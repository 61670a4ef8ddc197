//! The calls from init to free: options, connection, status.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use trireme_wsrep_abi::{
    ConnId, EncKey, InitArgs, InitSettings, StatsVar, Wsrep, WsrepStatus, cstr_to_string,
    malloc_cstr,
};

use crate::border::{context, guard, guard_applier};
use crate::node::Node;
use crate::{CAPABILITIES, connect as connection, recv as applier, runtime, stats, status};

pub unsafe extern "C" fn init(wsrep: *mut Wsrep, args: *const InitArgs) -> WsrepStatus {
    // SAFETY: the server passes its table and arguments that are valid during the call.
    unsafe {
        let (Some(context), Some(args)) = (context(wsrep), args.as_ref()) else {
            return WsrepStatus::NODE_FAIL;
        };
        let settings = InitSettings::copy_from(args);
        match catch_unwind(AssertUnwindSafe(|| runtime::start(settings))) {
            Ok(Some(node)) => {
                let node = Box::into_raw(Box::new(Arc::new(node)));
                context.store(node.cast(), Ordering::Release);
                WsrepStatus::OK
            }
            _ => WsrepStatus::NODE_FAIL,
        }
    }
}

/// The server calls it twice: the second call finds no instance. All threads are joined here, since the library may be
/// closed right after. It stays in the process all the same, for threads that hang (build.rs).
pub unsafe extern "C" fn free(wsrep: *mut Wsrep) {
    // SAFETY: the server's own table; `ctx` was leaked by init().
    unsafe {
        // Leaving may need callbacks, which call back: until then the instance stays in its place.
        guard(wsrep, (), |node| {
            connection::disconnect(node);
            connection::close(node);
            let reporter = node
                .reporter
                .lock()
                .unwrap_or_else(|e| e.into_inner())
                .take();
            drop(reporter);
        });
        let Some(context) = context(wsrep) else {
            return;
        };
        let ctx = context.swap(ptr::null_mut(), Ordering::AcqRel);
        if !ctx.is_null() {
            let node = Box::from_raw(ctx.cast::<Arc<Node>>());
            let _ = catch_unwind(AssertUnwindSafe(|| drop(node)));
        }
    }
}

pub unsafe extern "C" fn capabilities(_: *mut Wsrep) -> u32 {
    CAPABILITIES
}

pub unsafe extern "C" fn options_set(wsrep: *mut Wsrep, text: *const c_char) -> WsrepStatus {
    // SAFETY: the server passes null or a C string.
    unsafe {
        guard(
            wsrep,
            WsrepStatus::NODE_FAIL,
            |node| match runtime::set_options(node, &cstr_to_string(text)) {
                Ok(()) => WsrepStatus::OK,
                Err(error) => {
                    node.logger.warn(&error);
                    WsrepStatus::NODE_FAIL
                }
            },
        )
    }
}

pub unsafe extern "C" fn options_get(wsrep: *mut Wsrep) -> *mut c_char {
    // SAFETY: the server's own table; it frees the text with free(3).
    unsafe {
        guard(wsrep, ptr::null_mut(), |node| {
            malloc_cstr(
                &node
                    .options
                    .lock()
                    .unwrap_or_else(|e| e.into_inner())
                    .to_string(),
            )
        })
    }
}

pub unsafe extern "C" fn enc_set_key(_: *mut Wsrep, _: *const EncKey) -> WsrepStatus {
    WsrepStatus::NOT_IMPLEMENTED
}

pub unsafe extern "C" fn connect(
    wsrep: *mut Wsrep,
    cluster_name: *const c_char,
    cluster_url: *const c_char,
    state_donor: *const c_char,
    bootstrap: bool,
) -> WsrepStatus {
    // SAFETY: the server passes C strings.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            let (name, url) = (cstr_to_string(cluster_name), cstr_to_string(cluster_url));
            match connection::connect(node, &name, &url, &cstr_to_string(state_donor), bootstrap) {
                Ok(()) => WsrepStatus::OK,
                Err(error) => {
                    node.logger.error(format!(
                        "Failed to open channel '{name}' at '{url}': {error}"
                    ));
                    WsrepStatus::NODE_FAIL
                }
            }
        })
    }
}

pub unsafe extern "C" fn disconnect(wsrep: *mut Wsrep) -> WsrepStatus {
    // SAFETY: the server's own table.
    unsafe {
        guard(wsrep, WsrepStatus::NODE_FAIL, |node| {
            connection::disconnect(node);
            WsrepStatus::OK
        })
    }
}

pub unsafe extern "C" fn recv(wsrep: *mut Wsrep, recv_ctx: *mut c_void) -> WsrepStatus {
    // SAFETY: the server gives this thread and its context to the provider.
    unsafe {
        guard_applier(wsrep, WsrepStatus::FATAL, |node| {
            applier::run(node, recv_ctx)
        })
    }
}

pub unsafe extern "C" fn free_connection(_: *mut Wsrep, _: ConnId) -> WsrepStatus {
    WsrepStatus::OK
}

pub unsafe extern "C" fn stats_get(wsrep: *mut Wsrep) -> *mut StatsVar {
    // SAFETY: the server's own table; it gives the block back to stats_free().
    unsafe {
        guard(wsrep, ptr::null_mut(), |node| {
            status::collect(node).to_vars()
        })
    }
}

pub unsafe extern "C" fn stats_free(_: *mut Wsrep, block: *mut StatsVar) {
    // SAFETY: null or from stats_get().
    unsafe { stats::free_vars(block) }
}

pub unsafe extern "C" fn stats_reset(wsrep: *mut Wsrep) {
    // SAFETY: the server's own table.
    unsafe {
        guard(wsrep, (), |node| {
            node.with(|core| {
                core.engine.replicator.reset_counters();
                core.commit_clock.reset();
            });
            node.times.reset();
        })
    }
}
