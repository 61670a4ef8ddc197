//! Variables of the server around this library, for what the wsrep API does not tell. In a program without them they
//! are false.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

/// Returns true if the server gives binary-log GTIDs to the cluster's transactions. The server gets the domain of these
/// GTIDs only from the script of a state transfer (MariaDB 10.5 and later, also after an IST).
pub fn gtid_mode_is_on() -> bool {
    is_set(c"wsrep_gtid_mode")
}

/// Returns true if the server has its data open: it does not begin replication first. That is so with
/// `wsrep_sst_method` mysqldump and skip, and if `wsrep_cluster_address` is set later on.
pub fn engines_are_up() -> bool {
    is_set(c"plugins_are_initialized")
}

/// Returns true if the server has started, and takes statements.
pub fn is_started() -> bool {
    is_set(c"mysqld_server_started")
}

/// Returns true if the server has taken a signal to stop.
pub fn stops() -> bool {
    is_set(c"abort_loop")
}

fn is_set(name: &CStr) -> bool {
    // SAFETY: a lookup by a C string; RTLD_DEFAULT is all that this process has loaded.
    let variable = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if variable.is_null() {
        return false;
    }
    // SAFETY: MariaDB exports a variable by this name, which lives as long as the process: one byte, or an integer
    // whose lowest byte comes first. The server may change it meanwhile, hence the atomic.
    let flag = unsafe { AtomicU8::from_ptr(variable.cast()) };
    flag.load(Ordering::Relaxed) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_the_variables_has_them_off() {
        let flags = [gtid_mode_is_on(), engines_are_up(), is_started(), stops()];
        assert_eq!(flags, [false; 4]);
    }
}
