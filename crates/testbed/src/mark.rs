//! The mark that a killed server leaves in memory for its next start (docs/state-files.md, "The mark"). It goes with
//! the node's directory: otherwise marks would fill the memory of a machine that kills many servers.

use std::fs;
use std::path::Path;

/// The default `repl.mark_dir`.
const DIR: &str = "/dev/shm";

/// The file in the data directory that names the replica.
const VOTES: &str = "trireme.gvwstate.dat";

/// Removes the mark of the node with this data directory, if there is one. The node must not start again.
pub(crate) fn remove(datadir: &Path) {
    remove_from(Path::new(DIR), datadir);
}

fn remove_from(dir: &Path, datadir: &Path) {
    let votes = fs::read_to_string(datadir.join(VOTES)).unwrap_or_default();
    let replica = votes
        .lines()
        .find_map(|line| line.strip_prefix("replica: "));
    // The name of another file must not get in by a damaged file.
    let is_id = |id: &&str| id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    if let Some(replica) = replica.filter(is_id) {
        // Most nodes have none: a clean stop removes it.
        let _ = fs::remove_file(dir.join(format!("trireme-{replica}.mark")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_mark_of_the_node_goes() {
        let dir = tempfile::tempdir().unwrap();
        let [own, other] =
            ["trireme-0a-1.mark", "trireme-0b-1.mark"].map(|name| dir.path().join(name));
        for mark in [&own, &other] {
            fs::write(mark, "").unwrap();
        }
        remove_from(dir.path(), dir.path());
        assert!(own.exists());
        fs::write(
            dir.path().join(VOTES),
            "version: 2\nreplica: 0a-1\nkey: 07\n",
        )
        .unwrap();
        remove_from(dir.path(), dir.path());
        assert!(!own.exists() && other.exists());
    }
}
