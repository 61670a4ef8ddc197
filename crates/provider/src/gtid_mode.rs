//! `wsrep_gtid_mode` of the server around this library. The wsrep API does not tell it.

use std::sync::atomic::{AtomicU8, Ordering};

/// Returns true if the server gives binary-log GTIDs to the cluster's transactions. The server gets the domain of these
/// GTIDs only from the script of a state transfer (MariaDB 10.5 and later, also after an IST). False in a program
/// without that variable.
pub fn is_on() -> bool {
    // SAFETY: a lookup by a C string; RTLD_DEFAULT is all that this process has loaded.
    let variable = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"wsrep_gtid_mode".as_ptr()) };
    if variable.is_null() {
        return false;
    }
    // SAFETY: MariaDB exports a variable of one byte (`my_bool`) by this name, which lives as long as the process.
    // SET GLOBAL may change it meanwhile, hence the atomic.
    let mode = unsafe { AtomicU8::from_ptr(variable.cast()) };
    mode.load(Ordering::Relaxed) != 0
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_program_without_the_variable_has_the_mode_off() {
        assert!(!super::is_on());
    }
}
