//! The lengths of restarts, from the server's error log. Pure.

use crate::error_log::is_start;

/// Returns the longest restart in seconds: from a server's last line until the node was synced again; None if the log
/// shows no restart.
pub(crate) fn longest_outage_s(error_log: &str) -> Option<f64> {
    let mut last: Option<i64> = None;
    let mut went: Option<i64> = None;
    let mut longest: Option<i64> = None;
    for line in error_log.lines() {
        let Some(at) = seconds(line) else { continue };
        if is_start(line) {
            went = went.or(last);
        }
        if line.contains("Server status change joined -> synced")
            || line.contains("Synchronized with group")
        {
            if let Some(went) = went.take() {
                longest = longest.max(Some(at - went));
            }
        }
        last = Some(at);
    }
    longest
        .filter(|seconds| *seconds >= 0)
        .map(|seconds| seconds as f64)
}

/// Converts `2026-11-25 10:38:13 ...` to seconds since a fixed moment.
fn seconds(line: &str) -> Option<i64> {
    let date = line.get(..19)?;
    let number = |from: usize, to: usize| date.get(from..to)?.trim_start().parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || !(0..=9999).contains(&year) {
        return None;
    }
    // The days of the civil calendar. Years begin in March here, so that a leap day is the last day of a year.
    let (years, months) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
2026-11-25 10:00:00 0 [Note] WSREP: Server status change joined -> synced
2026-11-25 11:00:00 0 [Note] /usr/sbin/mariadbd: Shutdown complete
2026-11-25 11:00:40 0 [Note] Starting MariaDB 10.11.19-MariaDB source revision as process 7
nonsense
2026-11-25 11:00:41 0 [Note] /usr/sbin/mariadbd (server 10.11.19) starting as process 7 ...
2026-11-25 11:02:00 0 [Note] WSREP: Server status change joined -> synced
2026-11-25 23:59:50 0 [Note] x
2026-11-26  0:00:10 0 [Note] /usr/sbin/mariadbd (server 10.11.19) starting as process 8 ...
2026-11-26  0:00:20 0 [Note] WSREP: Server status change joined -> synced
";

    #[test]
    fn the_longest_restart_counts() {
        assert_eq!(longest_outage_s(LOG), Some(120.0));
        assert_eq!(longest_outage_s(""), None);
        assert_eq!(
            longest_outage_s("\u{1b}\u{fffd} hostile é starting as process 7"),
            None
        );
    }
}
