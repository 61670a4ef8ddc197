//! Ctrl-C and SIGTERM, and SIGHUP (the terminal was closed) for a program with servers: the program checks for them
//! between steps, so that it can stop its servers before it ends.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::output::line;
use crate::process;

static REQUESTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The user has asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// From now on SIGINT and SIGTERM only set a flag, which [`check`] and [`sleep`] report. A second signal ends the
/// program at once.
pub fn install() -> io::Result<()> {
    handle(SIGINT)?;
    handle(SIGTERM)
}

/// From now on SIGHUP sets the flag, too, unless `nohup` has made the process ignore it. A second one changes nothing:
/// when a terminal is closed, both the shell and the kernel send one.
pub fn install_for_hangup() -> io::Result<()> {
    if !process::is_ignored(SIGHUP)? {
        signal_hook::flag::register(SIGHUP, Arc::clone(flag()))?;
    }
    Ok(())
}

fn handle(signal: i32) -> io::Result<()> {
    // The order matters: the shutdown is registered first, so that it acts only from the second signal on.
    signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(flag()))?;
    signal_hook::flag::register(signal, Arc::clone(flag()))?;
    Ok(())
}

fn flag() -> &'static Arc<AtomicBool> {
    REQUESTED.get_or_init(Arc::default)
}

/// Fails if the user has asked to stop. Never fails without [`install`].
pub fn check() -> Result<(), Interrupted> {
    match REQUESTED.get() {
        Some(flag) if flag.load(Ordering::Relaxed) => Err(Interrupted),
        _ => Ok(()),
    }
}

/// Prints this text once the user has asked to stop. A step that cannot be broken off may go on for a while.
pub fn announce(text: String) {
    thread::spawn(move || {
        while check().is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
        line(&text);
    });
}

/// Sleeps. Fails soon after the user has asked to stop.
pub fn sleep(duration: Duration) -> Result<(), Interrupted> {
    let end = Instant::now() + duration;
    loop {
        check()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(Duration::from_millis(50)));
    }
}
