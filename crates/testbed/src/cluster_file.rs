//! `cluster.json` in a cluster's directory: its settings, ports and processes, for later invocations.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cluster_error::{ClusterError, io_error};
use crate::node::Node;
use crate::settings::Settings;

/// The format version of the cluster file.
const VERSION: u32 = 1;

/// The content of the cluster file.
#[derive(Deserialize)]
pub struct Record {
    version: u32,
    /// The settings that the cluster was made with.
    pub settings: Settings,
    /// Whether the cluster has ever been up.
    pub formed: bool,
    /// The nodes.
    pub nodes: Vec<Node>,
}

/// The same content, borrowed for writing.
#[derive(Serialize)]
struct RecordRef<'a> {
    version: u32,
    settings: &'a Settings,
    formed: bool,
    nodes: &'a [Node],
}

/// The path of the cluster file in `dir`.
pub fn path(dir: &Path) -> PathBuf {
    dir.join("cluster.json")
}

/// Reads the file of the cluster in `dir`.
pub fn read(dir: &Path) -> Result<Record, ClusterError> {
    let path = path(dir);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(ClusterError::NotFound(dir.to_path_buf()));
        }
        Err(e) => return Err(io_error("read", &path)(e)),
    };
    parse_record(&text).map_err(|reason| ClusterError::BadFile { path, reason })
}

/// Writes a new file and renames it, so that another invocation never reads half of it.
pub fn write(
    dir: &Path,
    settings: &Settings,
    formed: bool,
    nodes: &[Node],
) -> Result<(), ClusterError> {
    let path = path(dir);
    let new = path.with_extension("json.new");
    let record = RecordRef {
        version: VERSION,
        settings,
        formed,
        nodes,
    };
    let text = serde_json::to_string_pretty(&record).map_err(|e| ClusterError::BadFile {
        path: path.clone(),
        reason: e.to_string(),
    })?;
    fs::write(&new, text + "\n").map_err(io_error("write", &new))?;
    fs::rename(&new, &path).map_err(io_error("write", &path))
}

fn parse_record(text: &str) -> Result<Record, String> {
    let record: Record = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if record.nodes.is_empty() {
        return Err("no nodes".to_string());
    }
    if record.version != VERSION {
        return Err(format!("version {}", record.version));
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::NodePorts;

    fn written() -> (tempfile::TempDir, Settings) {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::new(dir.path(), 1, Some("/lib/p.so".into()));
        let ports = NodePorts {
            host: std::net::Ipv4Addr::LOCALHOST,
            mysql: 1000,
            group: 1001,
            sst: 1003,
        };
        let node = Node::new(
            "node1".to_string(),
            dir.path().join("node1"),
            ports,
            settings.server,
        );
        write(dir.path(), &settings, true, &[node]).unwrap();
        (dir, settings)
    }

    #[test]
    fn what_was_written_is_read() {
        let (dir, settings) = written();
        let record = read(dir.path()).unwrap();
        assert_eq!((record.settings, record.formed), (settings, true));
        assert_eq!((record.nodes.len(), record.nodes[0].ports.group), (1, 1001));
    }

    #[test]
    fn foreign_files_are_refused() {
        let (dir, _) = written();
        let text = fs::read_to_string(path(dir.path())).unwrap();
        let newer = text.replace("\"version\": 1", "\"version\": 2");
        assert_eq!(
            parse_record(&newer).map(|_| ()),
            Err("version 2".to_string())
        );
        for bad in ["", "{}", "not json", "[1]", &text[..text.len() / 2]] {
            fs::write(path(dir.path()), bad).unwrap();
            assert!(
                matches!(read(dir.path()), Err(ClusterError::BadFile { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_directory_without_cluster_says_so() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(read(dir.path()), Err(ClusterError::NotFound(_))));
    }
}
