//! Memory that crosses the border: memory that the server frees with `free(3)` must come from `malloc(3)`.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Copies a C string; NULL gives an empty string, bytes that are not UTF-8 are replaced.
///
/// # Safety
/// A non-NULL `text` must point to a NUL-terminated string that nobody writes during the call.
pub unsafe fn cstr_to_string(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not NULL, and the rest is the caller's contract.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// Copies a C string that is a path, byte by byte; NULL gives an empty path.
///
/// # Safety
/// As for [`cstr_to_string`].
pub(crate) unsafe fn cstr_to_path(text: *const c_char) -> PathBuf {
    if text.is_null() {
        return PathBuf::new();
    }
    // SAFETY: not NULL, and the rest is the caller's contract.
    OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()).into()
}

/// Returns a malloc'ed, NUL-terminated copy of `text` up to its first NUL, for a caller that will `free(3)` it. Returns
/// NULL when memory is out, which the server takes for an error.
pub fn malloc_cstr(text: &str) -> *mut c_char {
    let bytes = text.as_bytes();
    let len = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    match CBlock::new(len + 1) {
        Some(mut block) => {
            block.bytes_mut()[..len].copy_from_slice(&bytes[..len]);
            block.into_raw().cast()
        }
        None => std::ptr::null_mut(),
    }
}

/// A zeroed block of `malloc(3)` memory, freed on drop unless handed over with [`CBlock::into_raw`].
#[derive(Debug)]
pub struct CBlock {
    ptr: *mut u8,
    len_bytes: usize,
}

// SAFETY: the block is owned, as a `Box<[u8]>` is; malloc and free may be called from any thread.
unsafe impl Send for CBlock {}

impl CBlock {
    /// Allocates `len_bytes` zeroed bytes, aligned for any C type. `None` when memory is out.
    pub fn new(len_bytes: usize) -> Option<CBlock> {
        // SAFETY: calloc has no preconditions. At least one byte, so that NULL always means "out of memory".
        let ptr = unsafe { libc::calloc(1, len_bytes.max(1)) }.cast::<u8>();
        (!ptr.is_null()).then_some(CBlock { ptr, len_bytes })
    }

    /// Takes over a block that the server malloc'ed (a state transfer request). `None` for NULL.
    ///
    /// # Safety
    /// A non-NULL `ptr` must come from `malloc(3)`, hold `len_bytes` initialised bytes, and be owned by nobody else.
    pub unsafe fn from_raw(ptr: *mut c_void, len_bytes: usize) -> Option<CBlock> {
        (!ptr.is_null()).then_some(CBlock {
            ptr: ptr.cast(),
            len_bytes,
        })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `ptr` is owned, not NULL and holds `len_bytes` initialised bytes.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len_bytes) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len_bytes) }
    }

    /// The block's address, for pointers into it. Valid as long as the block is not freed.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.ptr
    }

    /// Gives the block away; the new owner must `free(3)` it.
    pub fn into_raw(self) -> *mut c_void {
        let ptr = self.ptr;
        std::mem::forget(self);
        ptr.cast()
    }
}

impl Drop for CBlock {
    fn drop(&mut self) {
        // SAFETY: `ptr` comes from malloc or calloc and is owned.
        unsafe { libc::free(self.ptr.cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_strings_go_out_and_come_back() {
        for (text, expected) in [
            ("", ""),
            ("gcs.fc_limit = 16; ", "gcs.fc_limit = 16; "),
            ("a\0b", "a"),
        ] {
            let raw = malloc_cstr(text);
            assert!(!raw.is_null());
            // SAFETY: a string just made, freed once.
            unsafe {
                assert_eq!(cstr_to_string(raw), expected);
                libc::free(raw.cast());
            }
        }
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { cstr_to_string(std::ptr::null()) }, "");
        // SAFETY: a literal.
        assert_eq!(unsafe { cstr_to_string(c"a\xffb".as_ptr()) }, "a\u{fffd}b");
    }

    #[test]
    fn a_block_of_the_server_is_taken_over() {
        // SAFETY: strdup gives malloc'ed memory of 6 bytes, NUL included.
        let block = unsafe { CBlock::from_raw(libc::strdup(c"rsync".as_ptr()).cast(), 6) };
        assert_eq!(block.expect("strdup").bytes(), b"rsync\0");
        // SAFETY: NULL is allowed.
        assert!(unsafe { CBlock::from_raw(std::ptr::null_mut(), 0) }.is_none());
        assert_eq!(CBlock::new(0).expect("calloc").bytes(), b"");
    }
}
