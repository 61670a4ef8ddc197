//! Buffers, keys and handles, and reading them from raw pointers.

use std::ffi::c_void;
use std::ptr;

use crate::ids::TrxId;

/// A borrowed run of bytes (`wsrep_buf_t`). `ptr` may be NULL when `len` is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Buf {
    /// First byte.
    pub ptr: *const c_void,
    /// Length in bytes.
    pub len: usize,
}

impl Buf {
    /// NULL and 0: the data of an event without data.
    pub const EMPTY: Buf = Buf {
        ptr: ptr::null(),
        len: 0,
    };

    /// Borrows `bytes`; an empty slice gives [`Buf::EMPTY`]. The result must not outlive `bytes`.
    pub fn new(bytes: &[u8]) -> Buf {
        if bytes.is_empty() {
            Buf::EMPTY
        } else {
            Buf {
                ptr: bytes.as_ptr().cast(),
                len: bytes.len(),
            }
        }
    }

    /// The bytes; empty for a NULL pointer, whatever its length says.
    ///
    /// # Safety
    /// A non-NULL `ptr` must point to `len` readable bytes that nobody writes during `'a`.
    pub unsafe fn bytes<'a>(&self) -> &'a [u8] {
        // SAFETY: the caller's contract is that of `slice_or_empty`.
        unsafe { slice_or_empty(self.ptr.cast::<u8>(), self.len) }
    }
}

/// A key of a write-set: parts from the coarsest (database) to the finest (row) (`wsrep_key_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Array of parts.
    pub parts: *const Buf,
    /// Number of parts.
    pub parts_num: usize,
}

impl Key {
    /// The parts' bytes, in order.
    ///
    /// # Safety
    /// `parts` must point to `parts_num` buffers (or be NULL), each as [`Buf::bytes`] demands, all unchanged during
    /// `'a`.
    pub unsafe fn parts<'a>(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        // SAFETY: the caller's contract.
        let parts: &'a [Buf] = unsafe { slice_or_empty(self.parts, self.parts_num) };
        // SAFETY: the caller's contract, for each of the buffers.
        parts.iter().map(|part| unsafe { part.bytes() })
    }
}

c_enum! {
    /// How a transaction uses a key, from weak to strong (`wsrep_key_type_t`).
    KeyType {
        /// Read, in a way that only conflicts with a later exclusive use.
        SHARED = 0,
        /// Referenced, as a foreign key's parent row is.
        REFERENCE = 1,
        /// Updated without a change of the key itself.
        UPDATE = 2,
        /// Inserted, deleted, or the key itself changed.
        EXCLUSIVE = 3,
    }
}

c_enum! {
    /// Kind of write-set data (`wsrep_data_type_t`). MariaDB only appends ordered data.
    DataType {
        /// Applied in order.
        ORDERED = 0,
        /// Executed at any time.
        UNORDERED = 1,
        /// For humans.
        ANNOTATION = 2,
    }
}

/// The server's handle of a transaction (`wsrep_ws_handle_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct WsHandle {
    /// The server's transaction id.
    pub trx_id: TrxId,
    /// The provider's own pointer, kept by the server between calls; NULL until the provider sets it.
    pub opaque: *mut c_void,
}

/// Handle of a preordered event (`wsrep_po_handle_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoHandle {
    /// The provider's own pointer.
    pub opaque: *mut c_void,
}

/// `count` elements at `ptr`; empty if `ptr` is NULL or `count` 0.
///
/// # Safety
/// A non-NULL `ptr` must be aligned and point to `count` initialised elements that nobody writes during `'a`.
pub unsafe fn slice_or_empty<'a, T>(ptr: *const T, count: usize) -> &'a [T] {
    if ptr.is_null() || count == 0 {
        &[]
    } else {
        // SAFETY: not NULL, and the rest is the caller's contract.
        unsafe { std::slice::from_raw_parts(ptr, count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_buffers_read_as_empty() {
        let odd = Buf {
            ptr: ptr::null(),
            len: 7,
        };
        // SAFETY: NULL pointers are allowed by the contract.
        unsafe {
            assert!(odd.bytes().is_empty());
            assert!(Buf::EMPTY.bytes().is_empty());
            assert_eq!(
                Key {
                    parts: ptr::null(),
                    parts_num: 3
                }
                .parts()
                .len(),
                0
            );
        }
        assert!(Buf::new(b"").ptr.is_null());
    }

    #[test]
    fn key_parts_come_in_order() {
        let parts = [Buf::new(b"db"), Buf::new(b"table"), Buf::new(b"\0\x01row")];
        let key = Key {
            parts: parts.as_ptr(),
            parts_num: parts.len(),
        };
        // SAFETY: the array lives until the end of the test.
        let read: Vec<&[u8]> = unsafe { key.parts() }.collect();
        assert_eq!(read, [b"db".as_slice(), b"table", b"\0\x01row"]);
    }
}
