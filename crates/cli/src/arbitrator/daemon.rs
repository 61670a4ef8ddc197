//! Running in the background: the command starts itself anew, apart from the terminal, and waits until that process
//! has begun its work or failed to.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::error::CommandError;

/// Set in the environment of the process in the background.
const CHILD: &str = "TRIREME_ARBITRATOR_DAEMON";
/// What it says on its standard output when it is at work; anything else is an error.
const READY: &str = "ready";

/// Whether this is the process in the background.
pub(super) fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Starts the process in the background; returns when it is at work.
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

/// In the background: leaves the terminal, and tells who has started this process how it goes.
pub(super) fn answered<T>(begun: Result<T, CommandError>) -> Result<T, CommandError> {
    if is_child() {
        // Fails for the leader of a group of processes, which this is not.
        let _ = rustix::process::setsid();
        let said = match &begun {
            Ok(_) => READY.to_owned(),
            Err(error) => error.to_string(),
        };
        // Nobody listens any more: no reason to end.
        let _ = writeln!(std::io::stdout(), "{said}");
    }
    begun
}
