//! Reads the state-and-event file of a node (docs/state-and-event-file.md). Pure, but for [`read`] and [`age_ms`].

#![allow(missing_docs)] // members are described on the page of the format

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

/// Its name, in `base_dir`.
pub const FILE_NAME: &str = "trireme-state.json";
const FORMAT: &str = "trireme state and events";
const VERSION: u64 = 1;
/// A running node writes its file once a second; one that is slow, at least so often.
pub const STALE_MS: u64 = 70_000;
/// Four times what a writer writes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why a file says nothing.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    #[error("{} cannot be read: {source}; be root, or the server's user", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is no state file: {reason}; the running node writes it anew within a minute", .path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error("{} has version {version}, this program reads version {VERSION}: upgrade the package trireme", .path.display())]
    Version { path: PathBuf, version: u64 },
}

/// Members that the reports use; others are skipped.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StateFile {
    pub written_at_unix_ms: u64,
    pub process: Process,
    pub node: Peer,
    pub state: State,
    pub waits_for: Option<WaitsFor>,
    pub progress: Option<Progress>,
    pub members: Vec<Peer>,
    pub forced_views: Vec<serde_json::Value>,
    pub lost_from: Option<String>,
    pub conflicts: Conflicts,
    pub events: Vec<Event>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Process {
    pub pid: u32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Peer {
    pub name: String,
    pub address: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct State {
    pub component: String,
    pub node_state_comment: String,
    pub server_running: bool,
    pub last_committed: i64,
    pub lag_seqnos: u64,
    pub amnesiac: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WaitsFor {
    pub reason: String,
    pub text: String,
    pub since_unix_ms: u64,
    pub missing: Vec<Peer>,
    pub donor: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
    pub percent: f64,
    pub left_s: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Conflicts {
    pub certification: u64,
    pub brute_force_abort: u64,
    pub replay: u64,
    pub recent: Vec<Conflict>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Conflict {
    pub at_unix_ms: u64,
    pub kind: String,
    pub seqno: Option<i64>,
    pub table: Option<String>,
    pub key: Option<String>,
    pub winner_seqno: Option<i64>,
    pub winner: Option<String>,
    pub connection: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event {
    pub at_unix_ms: u64,
    pub level: String,
    pub text: String,
}

/// How old the file is, by the file system's clock: the node's own may be wrong. `None`: there is none.
pub fn age_ms(dir: &Path) -> Option<u64> {
    let modified = std::fs::metadata(dir.join(FILE_NAME)).and_then(|file| file.modified());
    let age = SystemTime::now()
        .duration_since(modified.ok()?)
        .unwrap_or_default();
    Some(u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
}

impl StateFile {
    /// What the node does, for people.
    pub fn sentence(&self) -> String {
        match &self.waits_for {
            Some(waits) => waits.text.clone(),
            None => format!(
                "{}, {}",
                self.state.component, self.state.node_state_comment
            ),
        }
    }
}

/// The state file of a data directory; `None` if there is none: an older library writes none.
pub fn read(dir: &Path) -> Result<Option<StateFile>, StateFileError> {
    let path = dir.join(FILE_NAME);
    let mut text = String::new();
    let read =
        File::open(&path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_string(&mut text));
    match read {
        Ok(_) => parse(&text, &path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StateFileError::Io { path, source }),
    }
}

fn parse(text: &str, path: &Path) -> Result<StateFile, StateFileError> {
    #[derive(Deserialize)]
    struct Head {
        format: String,
        version: u64,
    }
    let path = path.to_owned();
    let malformed = |reason: String| StateFileError::Malformed {
        path: path.clone(),
        reason,
    };
    // `null` stands for a missing member.
    let mut value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
    drop_nulls(&mut value);
    let head = Head::deserialize(&value).map_err(|error| malformed(error.to_string()))?;
    match head {
        Head { format, .. } if format != FORMAT => {
            Err(malformed(format!("its format is {format:?}")))
        }
        Head { version, .. } if version > VERSION => Err(StateFileError::Version { path, version }),
        _ => StateFile::deserialize(&value).map_err(|error| malformed(error.to_string())),
    }
}

/// Members that are `null` are as good as missing. The depth is bounded by the parser.
fn drop_nulls(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<StateFile, StateFileError> {
        parse(text, Path::new("/x/trireme-state.json"))
    }

    #[test]
    fn the_page_of_the_format_has_an_example_that_is_read() {
        let page = include_str!("../../../docs/state-and-event-file.md");
        let (_, rest) = page.split_once("```json\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let state = parsed(example).unwrap();
        assert_eq!(state.node.name, "n1");
        let waits = state.waits_for.unwrap();
        assert_eq!(
            (waits.reason.as_str(), waits.missing.len()),
            ("majority", 2)
        );
        assert_eq!(state.conflicts.recent[0].winner.as_deref(), Some("n2"));
    }

    #[test]
    fn members_may_be_missing_null_or_new() {
        let state = parsed(
            r#"{"format":"trireme state and events","version":1,"node":null,"news":[1],"state":{"last_committed":null}}"#,
        );
        assert_eq!(state.unwrap().state.last_committed, 0);
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        let error = |text| parsed(text).unwrap_err().to_string();
        assert!(error("").contains("is no state file"));
        assert!(error(r#"{"format":"x","version":1}"#).contains("its format is"));
        assert!(
            error(r#"{"format":"trireme state and events","version":2}"#)
                .contains("upgrade the package")
        );
        assert!(
            error(r#"{"format":"trireme state and events","version":1,"members":7}"#)
                .contains("is no state file")
        );
        assert!(error(&"[".repeat(100_000)).contains("is no state file"));
    }
}
