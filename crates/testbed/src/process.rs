//! Operations on a process with a known id: whether it is ours and alive, signals, memory, processor time.

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// Whether process `pid` is alive and has `argument` in its command line. The system reuses ids, so an id from a file
/// alone proves nothing. A zombie has no command line and counts as dead. So does a process at the moment of its start:
/// for children of this process use [`has_ended`].
pub fn is_alive(pid: u32, argument: &str) -> bool {
    match fs::read(format!("/proc/{pid}/cmdline")) {
        Ok(cmdline) => cmdline
            .split(|byte| *byte == 0)
            .any(|arg| arg == argument.as_bytes()),
        Err(_) => false,
    }
}

/// Whether process `pid` has ended completely: all threads are done, files and ports are free. This is later than the
/// moment when [`is_alive`] becomes false, because a killed process loses its memory first.
pub fn has_ended(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    // The leading thread can be a zombie while other threads still end.
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, |tasks| tasks.count());
    let state = stat
        .rfind(')')
        .and_then(|end| stat[end + 1..].trim_start().chars().next());
    state == Some('Z') && threads <= 1
}

/// Sends `signal` to process `pid`. A process that has already ended is no error.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{pid} is no process id"),
        ));
    };
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Resident memory of process `pid` in bytes (`VmRSS`); `None` when it is gone.
pub fn rss_bytes(pid: u32) -> Option<u64> {
    parse_rss_bytes(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

/// User and system time that process `pid` has used, in milliseconds; `None` when it is gone.
pub fn cpu_ms(pid: u32) -> Option<u64> {
    // The kernel reports USER_HZ ticks, which is 100 per second on every Linux this runs on.
    cpu_ticks(
        &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?,
        OWN_TICKS,
    )
    .map(|ticks| ticks * 10)
}

/// The same for all children of this process that have ended, in milliseconds.
pub fn ended_children_cpu_ms() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    cpu_ticks(&stat, CHILDRENS_TICKS).map(|ticks| ticks * 10)
}

/// Returns true if this process ignores `signal`, as `nohup` makes it ignore SIGHUP (the mask `SigIgn` of proc(5)).
pub(crate) fn is_ignored(signal: i32) -> io::Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let mask = status_field(&status, "SigIgn:");
    let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok());
    Ok(mask.is_some_and(|mask| mask & 1 << (signal - 1) != 0))
}

/// The last `lines` lines of a text file; empty when it cannot be read.
pub fn tail(path: &Path, lines: usize) -> Vec<String> {
    let bytes = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..]
        .iter()
        .map(|line| line.to_string())
        .collect()
}

fn parse_rss_bytes(status: &str) -> Option<u64> {
    let size = status_field(status, "VmRSS:")?;
    let kib: u64 = size.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The value in the line of `/proc/PID/status` that begins with `key`.
fn status_field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = status.lines();
    lines.find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// The index of `utime`, which `stime` follows: proc(5) calls them fields 14 and 15, and the first after the name is
/// field 3.
const OWN_TICKS: usize = 11;

/// The index of `cutime`, which `cstime` follows.
const CHILDRENS_TICKS: usize = 13;

/// The sum of user and system time, which begin at the field `first` after the name.
fn cpu_ticks(stat: &str, first: usize) -> Option<u64> {
    // The second field, the name in brackets, may contain blanks and brackets.
    let after_name = &stat[stat.rfind(')')? + 1..];
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    Some(fields.get(first)?.parse::<u64>().ok()? + fields.get(first + 1)?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known_by_its_first_argument() {
        let own = std::env::args().next().unwrap();
        assert!(is_alive(std::process::id(), &own));
        assert!(!is_alive(std::process::id(), "--no-such-argument"));
    }

    #[test]
    fn a_zombie_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !has_ended(child.id()) && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(has_ended(child.id()));
        assert!(!has_ended(std::process::id()));
        child.wait().unwrap();
    }

    #[test]
    fn rss_of_this_process_is_read() {
        assert!(rss_bytes(std::process::id()).unwrap() > 100_000);
        assert_eq!(
            parse_rss_bytes("VmPeak: 7 kB\nVmRSS:\t  12 kB\n"),
            Some(12 * 1024)
        );
        assert_eq!(parse_rss_bytes("VmRSS: many"), None);
    }

    #[test]
    fn processor_time_survives_odd_names() {
        let stat = "7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 20 22 0 1 20";
        assert_eq!(cpu_ticks(stat, OWN_TICKS), Some(42));
        assert_eq!(cpu_ticks(stat, CHILDRENS_TICKS), Some(1));
        assert_eq!(cpu_ticks("7 (a) S 1", OWN_TICKS), None);
    }

    #[test]
    fn process_id_zero_is_refused() {
        // kill(0) would signal our whole process group.
        assert!(signal(0, Signal::CONT).is_err());
    }
}
