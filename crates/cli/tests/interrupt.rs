//! A command that asks a silent server ends at the first signal.

use std::io;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Well below the time limit for an answer of the server.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Time for the program to start and connect, on a busy machine.
const START: Duration = Duration::from_secs(30);

/// Asks again and again until there is an answer, for at most `limit`.
fn until<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    loop {
        let is_last = begin.elapsed() > limit;
        let answer = ask();
        if answer.is_some() || is_last {
            return answer;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_command_that_waits_for_a_server_ends_at_the_first_signal() -> io::Result<()> {
    let silent = TcpListener::bind("127.0.0.1:0")?;
    silent.set_nonblocking(true)?;
    let port = silent.local_addr()?.port().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_trireme"))
        .args(["status", "--host", "127.0.0.1", "--port", &port])
        .stderr(Stdio::null())
        .spawn()?;
    let waits = until(START, || silent.accept().ok());
    kill_process(Pid::from_child(&command), Signal::TERM)?;
    let status = until(AT_ONCE, || command.try_wait().ok().flatten());
    command.kill()?;
    command.wait()?;
    assert!(waits.is_some(), "the command asks nobody");
    let signal = status.and_then(|status| status.signal());
    assert_eq!(signal, Some(Signal::TERM.as_raw()), "{status:?}");
    Ok(())
}
