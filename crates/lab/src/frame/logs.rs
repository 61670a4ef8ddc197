//! The remains of a failed cell: the logs, kept beside the directory of its servers, and its error on one line.

use std::fs;
use std::path::{Path, PathBuf};

/// Copies the `error.log` of each node below `dir` to `dir.failed/NODE.log`, and removes the logs of the last failure
/// there. Returns the directory of the copies; None if there are no logs. A log that cannot be copied is left out.
pub fn keep(dir: &Path) -> Option<PathBuf> {
    let nodes = fs::read_dir(dir).ok()?.flatten();
    let logs: Vec<(PathBuf, String)> = nodes
        .map(|node| (node.path().join("error.log"), node.file_name()))
        .filter(|(log, _)| log.exists())
        .map(|(log, name)| (log, format!("{}.log", name.to_string_lossy())))
        .collect();
    if logs.is_empty() {
        return None;
    }
    let kept = dir.with_extension("failed");
    let _ = fs::remove_dir_all(&kept);
    fs::create_dir_all(&kept).ok()?;
    for (log, name) in logs {
        let _ = fs::copy(log, kept.join(name));
    }
    Some(kept)
}

/// The first line of an error, and the cause among the lines of a server's log that follow.
pub fn one_line(error: &impl ToString) -> String {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    // A server that gives up says so last, after the cause.
    let is_cause = |line: &&str| line.contains("[ERROR]") && !line.ends_with("Aborting");
    let cause = lines.clone().rfind(is_cause).or(lines.next_back());
    cause.map_or(first.to_string(), |cause| format!("{first} {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logs_of_the_last_failure_stay() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("lab");
        let kept = parent.path().join("lab.failed");
        assert_eq!(keep(&dir), None);
        for (node, text) in [("node2", "first"), ("node1", "second")] {
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(dir.join(node)).unwrap();
            fs::write(dir.join(node).join("error.log"), text).unwrap();
            assert_eq!(keep(&dir), Some(kept.clone()));
        }
        assert_eq!(
            fs::read_to_string(kept.join("node1.log")).unwrap(),
            "second"
        );
        assert!(!kept.join("node2.log").exists());
    }

    #[test]
    fn the_cause_in_a_servers_log_is_part_of_the_note() {
        let log = "node1: the server ended; the end of /x:\n  1 [ERROR] port is used\n  2 [ERROR] Aborting\n";
        let expected = "node1: the server ended; the end of /x: 1 [ERROR] port is used";
        assert_eq!(one_line(&log), expected);
        assert_eq!(one_line(&"end of /x:\n  a\n  b"), "end of /x: b");
        assert_eq!(one_line(&"no such file"), "no such file");
    }
}
