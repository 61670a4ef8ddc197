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

#[test]
fn a_command_that_waits_for_a_server_ends_at_the_first_signal() -> io::Result<()> {
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let port = silent.local_addr()?.port().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_trireme"))
        .args(["status", "--host", "127.0.0.1", "--port", &port])
        .stderr(Stdio::null())
        .spawn()?;
    let _waits = silent.accept()?;
    kill_process(Pid::from_child(&command), Signal::TERM)?;
    let signalled = Instant::now();
    let status = loop {
        match command.try_wait()? {
            Some(status) => break Some(status),
            None if signalled.elapsed() > AT_ONCE => break None,
            None => thread::sleep(Duration::from_millis(10)),
        }
    };
    command.kill()?;
    command.wait()?;
    let signal = status.and_then(|status| status.signal());
    assert_eq!(signal, Some(Signal::TERM.as_raw()), "{status:?}");
    Ok(())
}
