//! `trireme arbitrator`: the process of the arbitrator. Called by the name `garbd`, it has the command line of Galera's
//! `garbd`.

mod args;
mod config_file;
mod daemon;
mod error;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGHUP;
use signal_hook::flag;
use trireme_arbitrator::{Arbitrator, Directory, Log, Request};

pub use args::ArbitratorArgs;
pub use error::CommandError;

use trireme_testbed::interrupt;

/// The name under which the program is the arbitrator.
pub const GARBD: &str = "garbd";

/// Whether the program was called by the name of Galera's arbitrator.
pub fn is_garbd(argv0: &Path) -> bool {
    argv0.file_name().is_some_and(|name| name == GARBD)
}

/// Runs until SIGINT or SIGTERM, and then leaves the cluster. As a daemon, returns when the background process is at
/// work. SIGHUP makes it read the certificates or the secret again, and open its log
/// file again.
///
/// Err: the message for standard error. Later errors are in the log.
pub fn run(args: ArbitratorArgs) -> Result<(), CommandError> {
    let args = args.completed()?;
    if args.daemon && !daemon::is_child() {
        // Errors in the settings are reported here, while the terminal is still there.
        args.settings()?;
        return daemon::start();
    }
    let reload = reload_requests(&args)?;
    daemon::answered(open(&args))?
        .run(|| match interrupt::check() {
            Err(_) => Some(Request::Stop),
            Ok(()) => reload
                .swap(false, Ordering::Relaxed)
                .then_some(Request::Reload),
        })
        .map_err(CommandError::Ended)
}

/// Returns the flag that SIGHUP sets. SIGHUP ends a process that logs to a terminal, because the terminal is gone. Such
/// a process needs a handler only if it has a temporary directory to remove.
fn reload_requests(args: &ArbitratorArgs) -> Result<Arc<AtomicBool>, CommandError> {
    let is_asked = Arc::<AtomicBool>::default();
    if args.log.is_some() || !std::io::stderr().is_terminal() {
        flag::register(SIGHUP, Arc::clone(&is_asked)).map_err(CommandError::Signal)?;
    } else if args.dir.is_none() {
        interrupt::install_for_hangup().map_err(CommandError::Signal)?;
    }
    Ok(is_asked)
}

fn open(args: &ArbitratorArgs) -> Result<Arbitrator, CommandError> {
    let settings = args.settings()?;
    let log = match &args.log {
        Some(path) => Log::to_file(path)?,
        None if args.daemon => Log::to_syslog()?,
        None => Log::to_stderr(),
    };
    let directory = Directory::take(args.dir.as_deref())?;
    Ok(Arbitrator::open(&settings, directory, log)?)
}
