//! Keeps the logs of a failed cell beside the directory of its servers.

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
}
