//! Ends of processes. A test runs itself once more, as a process that blocks SIGTERM as a starting server does.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

/// Set in the process that is to end.
const IN_CHILD: &str = "TRIREME_TEST_TERMINATION";
/// What the process says before it ends: a test is skipped where the program before it fails.
const RUNS: &str = "the process runs";

/// The process ends within milliseconds, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs this test of this program in a child, behind `before` (a program that starts it). None: `before` may not.
pub(crate) fn run_again(before: &[&str], test: &str) -> Option<ExitStatus> {
    let program = std::env::current_exe().unwrap();
    let own = [program.to_str().unwrap(), test, "--exact", "--nocapture"];
    let mut line = before.iter().copied().chain(own);
    let mut command = Command::new(line.next().unwrap());
    // SAFETY: between fork and exec the closure only makes system calls, and allocates nothing.
    unsafe {
        command.pre_exec(|| {
            let mut term: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut term);
            libc::sigaddset(&mut term, libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, &term, std::ptr::null_mut());
            Ok(())
        });
    }
    command.args(line).env(IN_CHILD, "1");
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("unshare is in every Debian");
    let until = Instant::now() + TIMEOUT;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() >= until {
            child.kill().unwrap();
            panic!("{test}: the process has not ended");
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    if !String::from_utf8_lossy(&output.stdout).contains(RUNS) {
        eprintln!("{test}: skipped, {before:?} did not start it");
        return None;
    }
    Some(output.status)
}

/// Asserts that a process ends by the signal, and the first process of a container with the status of that signal.
fn assert_ends_by(signal: libc::c_int, test: &str) {
    let status = run_again(&[], test).expect("nothing is before it");
    assert_eq!(status.signal(), Some(signal), "{status}");
    let first_process = ["unshare", "--user", "--pid", "--fork", "--kill-child"];
    if let Some(status) = run_again(&first_process, test) {
        assert_eq!(status.code(), Some(128 + signal), "{status}");
    }
}

/// Returns true in the process that is to end.
pub(crate) fn is_child() -> bool {
    let is_child = std::env::var_os(IN_CHILD).is_some();
    if is_child {
        println!("{RUNS}");
    }
    is_child
}

/// Sends this process a SIGTERM, which stays pending.
pub(crate) fn terminate() {
    // SAFETY: the call takes values only.
    unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
    assert!(is_wanted());
}

#[test]
fn sigterm_ends_a_process_that_waits() {
    if is_child() {
        terminate();
        let_it();
    }
    assert_ends_by(
        libc::SIGTERM,
        "termination::tests::sigterm_ends_a_process_that_waits",
    );
}

#[test]
fn a_disk_that_hangs_does_not_keep_a_process_that_waits() {
    if is_child() {
        terminate();
        let_it_after(Duration::from_millis(100), || {
            loop {
                thread::park();
            }
        });
    }
    assert_ends_by(
        libc::SIGTERM,
        "termination::tests::a_disk_that_hangs_does_not_keep_a_process_that_waits",
    );
}

#[test]
fn a_node_that_cannot_go_on_ends_as_a_failure() {
    if is_child() {
        end_process();
    }
    assert_ends_by(
        libc::SIGABRT,
        "termination::tests::a_node_that_cannot_go_on_ends_as_a_failure",
    );
}
