//! The server's error log: where a process begins in it.

/// The part of a start's line that all versions print: "Starting MariaDB ... as process 7" (10.11.19 of Debian,
/// measured), or "mariadbd (server 10.11.18) starting as process 7 ...".
const START: &str = " as process ";

/// Returns true for a line with which a server begins.
pub(crate) fn is_start(line: &str) -> bool {
    line.contains(START)
}

/// Returns the part that the last process has written.
pub(crate) fn since_last_start(log: &str) -> &str {
    log.rsplit_once(START).map_or(log, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_says_that_it_starts() {
        for line in [
            "2026-11-30 16:05:07 0 [Note] Starting MariaDB 10.11.19-MariaDB-0+deb12u1 source revision x server_uid y as process 9",
            "2026-11-25 11:00:41 0 [Note] /usr/sbin/mariadbd (server 10.11.18) starting as process 8 ...",
        ] {
            assert!(is_start(line));
            let log = format!("before\n{line}\nafter");
            assert!(since_last_start(&log).ends_with("\nafter"));
            assert!(!since_last_start(&log).contains("before"));
        }
        assert_eq!(since_last_start("without"), "without");
    }
}
