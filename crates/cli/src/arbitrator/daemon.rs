//! Runs the arbitrator in the background. The command starts a second process, apart from the terminal, and waits until
//! that process has started its work or has failed.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::error::CommandError;

/// The environment variable that marks the process in the background.
const CHILD: &str = "TRIREME_ARBITRATOR_DAEMON";
/// The line that the background process prints when it is at work. Any other line is an error.
const READY: &str = "ready";

/// Whether this is the process in the background.
pub(super) fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Starts the process in the background, and returns when it is at work.
pub(super) fn start() -> Result<(), CommandError> {
    let mut args = env::args_os();
    let name = args.next().unwrap_or_default();
    let mut child = Command::new(env::current_exe().map_err(CommandError::Daemon)?)
        .arg0(name)
        .args(args)
        .env(CHILD, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(CommandError::Daemon)?;
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        let read = BufReader::new(stdout).read_line(&mut said);
        read.map_err(CommandError::Daemon)?;
    }
    match said.trim() {
        READY => Ok(()),
        "" => Err(CommandError::Told("the daemon has ended at once".into())),
        error => Err(CommandError::Told(error.into())),
    }
}

/// In the background: leaves the terminal, and reports success or the error to the parent process.
pub(super) fn answered<T>(begun: Result<T, CommandError>) -> Result<T, CommandError> {
    if is_child() {
        // setsid fails only for the leader of a process group, and this process is none.
        let _ = rustix::process::setsid();
        let said = match &begun {
            Ok(_) => READY.to_owned(),
            Err(error) => error.to_string(),
        };
        // The parent process may have ended: that is no reason to end.
        let _ = writeln!(std::io::stdout(), "{said}");
    }
    begun
}
