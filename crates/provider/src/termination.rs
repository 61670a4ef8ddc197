//! The ends of the process that the server does not make: the node has no usable state, or SIGTERM comes before the
//! server handles it. A server blocks its signals until it has started. A server that founds a cluster with others, or
//! whose last view is not back, only starts when the others are there.

/// Returns true if a SIGTERM is pending.
pub fn is_wanted() -> bool {
    // SAFETY: the set is filled in by sigpending before it is looked at.
    unsafe {
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&mut pending) == 0 && libc::sigismember(&pending, libc::SIGTERM) == 1
    }
}

/// Lets the signal end the process. Call it only while the server has opened nothing. For the log this is a kill, which
/// loses nothing that was acknowledged.
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

/// Ends the process because its node cannot go on; the reason has been logged. It aborts as Galera does, so that a
/// supervisor sees a failure. The server's crash report and a core dump would only hide the cause, which is no bug.
pub fn end_process() -> ! {
    // SAFETY: both calls take values only; the default action runs none of the server's code.
    unsafe {
        let no_core = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
        // A core that is piped to a program is not subject to the limit.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::signal(libc::SIGABRT, libc::SIG_DFL);
    }
    std::process::abort();
}
