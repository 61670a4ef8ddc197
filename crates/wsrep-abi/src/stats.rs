//! Status variables as `stats_get` returns them.

use std::ffi::c_char;

use crate::buf::slice_or_empty;

c_enum! {
    /// Type of a status variable (`wsrep_var_type_t`).
    VarType {
        /// NUL-terminated string.
        STRING = 0,
        /// Signed 64-bit integer.
        INT64 = 1,
        /// Double.
        DOUBLE = 2,
    }
}

/// Value of a status variable; its [`VarType`] says which field holds.
#[repr(C)]
#[derive(Clone, Copy)]
pub union VarValue {
    /// For [`VarType::INT64`].
    pub int64: i64,
    /// For [`VarType::DOUBLE`].
    pub double: f64,
    /// For [`VarType::STRING`].
    pub string: *const c_char,
}

/// One status variable (`wsrep_stats_var`); an array of them ends with a NULL `name`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StatsVar {
    /// Name without the server's `wsrep_` prefix; NULL ends the array.
    pub name: *const c_char,
    /// Which field of `value` holds.
    pub var_type: VarType,
    /// The value.
    pub value: VarValue,
}

impl StatsVar {
    /// Variables of an array, without the terminator. Empty for NULL.
    ///
    /// # Safety
    /// A non-NULL `array` must be terminated by an element whose `name` is NULL, and stay unchanged during `'a`.
    pub unsafe fn array<'a>(array: *const StatsVar) -> &'a [StatsVar] {
        let mut count = 0;
        // SAFETY: every element up to the terminator is readable.
        while !array.is_null() && unsafe { !(*array.add(count)).name.is_null() } {
            count += 1;
        }
        // SAFETY: `count` elements were just read.
        unsafe { slice_or_empty(array, count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_end_at_the_null_name() {
        let int = |name: *const c_char| StatsVar {
            name,
            var_type: VarType::INT64,
            value: VarValue { int64: 1 },
        };
        let vars = [
            int(c"a".as_ptr()),
            int(c"b".as_ptr()),
            int(std::ptr::null()),
            int(c"beyond".as_ptr()),
        ];
        // SAFETY: terminated, and NULL is allowed.
        unsafe {
            assert_eq!(StatsVar::array(vars.as_ptr()).len(), 2);
            assert!(StatsVar::array(std::ptr::null()).is_empty());
        }
    }
}
