//! Ctrl-C and SIGTERM, and SIGHUP (the terminal was closed) for a program with servers: the program checks for them
//! between steps, so that it can stop its servers before it ends.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

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

/// Handles SIGHUP as [`install`] does its signals, unless `nohup` has made the process ignore it.
pub fn install_for_hangup() -> io::Result<()> {
    match is_ignored(SIGHUP)? {
        true => Ok(()),
        false => handle(SIGHUP),
    }
}

fn handle(signal: i32) -> io::Result<()> {
    let flag = REQUESTED.get_or_init(|| Arc::new(AtomicBool::new(false)));
    // The order matters: the shutdown is registered first, so that it acts only from the second signal on.
    signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(flag))?;
    signal_hook::flag::register(signal, Arc::clone(flag))?;
    Ok(())
}

/// Whether this process ignores `signal`: the mask `SigIgn` of proc(5).
fn is_ignored(signal: i32) -> io::Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let mask = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    Ok(mask.is_some_and(|mask| mask & 1 << (signal - 1) != 0))
}

/// Fails if the user has asked to stop. Never fails without [`install`].
pub fn check() -> Result<(), Interrupted> {
    match REQUESTED.get() {
        Some(flag) if flag.load(Ordering::Relaxed) => Err(Interrupted),
        _ => Ok(()),
    }
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
