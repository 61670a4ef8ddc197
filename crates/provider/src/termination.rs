//! SIGTERM before the server takes it: a server blocks its signals until it has started, and one that is to found a
//! cluster, or was in one whose others are not back, starts when they are there.

/// True if somebody wants the process to end.
pub fn is_wanted() -> bool {
    // SAFETY: the set is filled in by sigpending before it is looked at.
    unsafe {
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&mut pending) == 0 && libc::sigismember(&pending, libc::SIGTERM) == 1
    }
}

/// Lets the signal end the process. Only while the server has opened nothing; to the log it is a kill, which loses
/// nothing that was acknowledged.
pub fn let_it() {
    // SAFETY: the set is filled in before it is used; the default action runs none of our code.
    unsafe {
        let mut term: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut term);
        libc::sigaddset(&mut term, libc::SIGTERM);
        libc::signal(libc::SIGTERM, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &term, std::ptr::null_mut());
    }
}
