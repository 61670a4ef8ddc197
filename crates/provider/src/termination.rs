//! The ends of the process that the server does not make: the node has no usable state, or SIGTERM comes before the
//! server handles it. A server blocks its signals until it has started. A server that lacks others (a component, founders, a
//! majority, a donor) only starts when they are there.

use std::thread::sleep;
use std::time::Duration;

use crate::{server_flags, threads};

/// Time that a disk gets at the end of a server that waits: less than a container's manager gives to a stop (10 s).
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns true if a server that has not started is to end: a SIGTERM is pending, or the server has taken one. With its
/// storage engines up it takes signals before its first view, but stops only after that view (measured).
pub fn is_wanted() -> bool {
    // In this order: a server that has started and then stops must not be taken for one that stops before its start.
    (is_pending() || server_flags::stops()) && !server_flags::is_started()
}

fn is_pending() -> bool {
    // SAFETY: the set is filled in by sigpending before it is looked at.
    unsafe {
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&mut pending) == 0 && libc::sigismember(&pending, libc::SIGTERM) == 1
    }
}

/// Ends the process as SIGTERM does. Call it only while the server has taken no statement. For log and database this is
/// a kill, which loses nothing that was acknowledged.
pub fn let_it() -> ! {
    end_by(libc::SIGTERM)
}

/// Ends the process as [`let_it`] does, after `close`: the log is closed as at any other stop, so that the next process
/// lacks nothing after a restart of the machine. A disk that hangs holds up the end for `timeout` only.
pub fn let_it_after(timeout: Duration, close: impl FnOnce()) -> ! {
    let ends_in_time = threads::spawn("trireme-end", move || {
        sleep(timeout);
        let_it()
    });
    // Without that thread the process might hang: it ends as by a kill.
    if ends_in_time.is_ok() {
        close();
    }
    let_it()
}

/// Ends the process because its node cannot go on; the reason has been logged. It aborts as Galera does, so that a
/// supervisor sees a failure. The server's crash report and a core dump would only hide the cause, which is no bug.
pub fn end_process() -> ! {
    // SAFETY: both calls take values only.
    unsafe {
        let no_core = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
        // A core that is piped to a program is not subject to the limit.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    end_by(libc::SIGABRT)
}

/// Ends the process by the signal's default action, which runs none of the server's code. The first process of a
/// container gets no such action from the kernel (pid_namespaces(7)): it exits with the status that a shell reports for
/// the signal.
fn end_by(signal: libc::c_int) -> ! {
    // SAFETY: the set is filled in before it is used; neither the default action nor _exit runs code of this process.
    unsafe {
        let mut unblocked: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut unblocked);
        libc::sigaddset(&mut unblocked, signal);
        libc::signal(signal, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &unblocked, std::ptr::null_mut());
        libc::raise(signal);
        libc::_exit(128 + signal)
    }
}

#[cfg(test)]
pub(crate) mod tests;
