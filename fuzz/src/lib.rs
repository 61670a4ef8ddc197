//! What every fuzz target shares.
//!
//! A target is one file in `src/bin`: `#![no_main]`, then `trireme_fuzz::fuzz!(|bytes| { ... })`. It must neither panic
//! nor allocate by a length that it only read in its input: one allocation of more than [`ALLOCATION_LIMIT_BYTES`]
//! counts as a crash.

use std::alloc::{GlobalAlloc, Layout, System};

pub use libfuzzer_sys;

/// Inputs are some KiB long, so no honest decoder asks for this much at once.
pub const ALLOCATION_LIMIT_BYTES: usize = 64 << 20;

/// Defines a target: an expression with `bytes: &[u8]` in scope, run on each input.
#[macro_export]
macro_rules! fuzz {
    (|$bytes:ident| $body:expr) => {
        $crate::libfuzzer_sys::fuzz_target!(|$bytes: &[u8]| { $body });
    };
}

struct LimitedAllocator;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator;

fn check(size: usize) {
    if size > ALLOCATION_LIMIT_BYTES {
        // No panic: its message would allocate. libFuzzer turns the abort into a crash report with the input.
        std::process::abort();
    }
}

// SAFETY: every call goes to the system's allocator unchanged, after a check that touches no memory.
unsafe impl GlobalAlloc for LimitedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's contract is System's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's contract is System's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is System's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        check(new_size);
        // SAFETY: the caller's contract is System's.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
