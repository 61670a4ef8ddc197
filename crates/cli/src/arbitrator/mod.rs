//! `trireme arbitrator`, and the same under the name and with the command line of Galera's `garbd`.

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

/// The program is this when it is called so.
pub const GARBD: &str = "garbd";

/// Whether the program was called by the name of Galera's arbitrator.
pub fn is_garbd(argv0: &Path) -> bool {
    argv0.file_name().is_some_and(|name| name == GARBD)
}

/// Runs until SIGINT or SIGTERM, and then leaves the cluster; as a daemon, returns when that is under way. SIGHUP has it read
/// certificates or the secret again.
///
/// Err: what is to be told on standard error. What goes wrong later is in the log.
pub fn run(args: ArbitratorArgs) -> Result<(), CommandError> {
    let args = args.completed()?;
    if args.daemon && !daemon::is_child() {
        // Whatever can be seen to be wrong now is said here.
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

/// Set by SIGHUP. One that writes to a terminal ends instead: the terminal is gone.
fn reload_requests(args: &ArbitratorArgs) -> Result<Arc<AtomicBool>, CommandError> {
    let is_asked = Arc::<AtomicBool>::default();
    if args.log.is_some() || !std::io::stderr().is_terminal() {
        flag::register(SIGHUP, Arc::clone(&is_asked)).map_err(CommandError::Signal)?;
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
