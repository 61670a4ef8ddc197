//! Reads the state-and-event file of a node (docs/state-and-event-file.md). Pure, but for [`read`].

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Its name, in `base_dir`.
pub(crate) const FILE_NAME: &str = "trireme-state.json";
const FORMAT: &str = "trireme state and events";
const VERSION: u64 = 1;
/// Four times what a writer writes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why a file says nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateFileError {
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
pub(crate) struct StateFile {
    pub(crate) written_at_unix_ms: u64,
    pub(crate) process: Process,
    pub(crate) node: Peer,
    pub(crate) state: State,
    pub(crate) waits_for: Option<WaitsFor>,
    pub(crate) progress: Option<Progress>,
    pub(crate) members: Vec<Peer>,
    pub(crate) forced_views: Vec<serde_json::Value>,
    pub(crate) lost_from: Option<String>,
    pub(crate) conflicts: Conflicts,
    pub(crate) events: Vec<Event>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Process {
    pub(crate) pid: u32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) address: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    pub(crate) component: String,
    pub(crate) node_state_comment: String,
    pub(crate) server_running: bool,
    pub(crate) last_committed: i64,
    pub(crate) lag_seqnos: u64,
    pub(crate) amnesiac: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WaitsFor {
    pub(crate) reason: String,
    pub(crate) text: String,
    pub(crate) since_unix_ms: u64,
    pub(crate) missing: Vec<Peer>,
    pub(crate) donor: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Progress {
    pub(crate) done: u64,
    pub(crate) total: u64,
    pub(crate) percent: f64,
    pub(crate) left_s: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Conflicts {
    pub(crate) certification: u64,
    pub(crate) brute_force_abort: u64,
    pub(crate) replay: u64,
    pub(crate) recent: Vec<Conflict>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Conflict {
    pub(crate) at_unix_ms: u64,
    pub(crate) kind: String,
    pub(crate) seqno: Option<i64>,
    pub(crate) table: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) winner_seqno: Option<i64>,
    pub(crate) winner: Option<String>,
    pub(crate) connection: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Event {
    pub(crate) at_unix_ms: u64,
    pub(crate) level: String,
    pub(crate) text: String,
}

/// The state file of a data directory; `None` if there is none: an older library writes none.
pub(crate) fn read(dir: &Path) -> Result<Option<StateFile>, StateFileError> {
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
