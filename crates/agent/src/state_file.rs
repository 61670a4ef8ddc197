//! Reads a node's state-and-event file (docs/state-and-event-file.md). A library of this or of an earlier release has
//! written it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use trireme_node::state_file::STALE_MS;
use trireme_node::state_file::{ReadError, STATE_FILE, StateFile, VERSION};

/// The most bytes to read: four times the writer's limit.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The reason why a state file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    /// The system refuses to read the file.
    #[error("{} cannot be read: {source}; be root, or the server's user", .path.display())]
    #[allow(missing_docs)]
    Io { path: PathBuf, source: io::Error },
    /// The file is incomplete, or is no state file.
    #[error("{} is no state file: {reason}; the running node writes it anew within a minute", .path.display())]
    #[allow(missing_docs)]
    Malformed { path: PathBuf, reason: String },
    /// A later library wrote the file.
    #[error("{} has version {version}, this program reads version {VERSION}: upgrade the package trireme", .path.display())]
    #[allow(missing_docs)]
    Version { path: PathBuf, version: u64 },
}

/// Returns the age of the file by the file system's clock, because the node's own clock may be wrong; None if there is
/// no file.
pub fn age_ms(dir: &Path) -> Option<u64> {
    let modified = std::fs::metadata(dir.join(STATE_FILE)).and_then(|file| file.modified());
    let age = SystemTime::now()
        .duration_since(modified.ok()?)
        .unwrap_or_default();
    Some(u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
}

/// Says in a sentence for people what the node does.
pub(crate) fn sentence(state: &StateFile) -> String {
    match &state.waits_for {
        Some(waits) => waits.text.clone(),
        None => format!(
            "{}, {}",
            state.state.component, state.state.node_state_comment
        ),
    }
}

/// Reads the state file of a data directory; None if there is none, because an older library writes none.
pub fn read(dir: &Path) -> Result<Option<StateFile>, StateFileError> {
    let path = dir.join(STATE_FILE);
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(_) => parse(&bytes, &path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StateFileError::Io { path, source }),
    }
}

fn parse(bytes: &[u8], path: &Path) -> Result<StateFile, StateFileError> {
    let path = path.to_owned();
    StateFile::decode(bytes).map_err(|error| match error {
        ReadError::Version(version) => StateFileError::Version { path, version },
        ReadError::Format(format) => StateFileError::Malformed {
            path,
            reason: format!("its format is {format:?}"),
        },
        ReadError::Damaged(error) => StateFileError::Malformed {
            path,
            reason: error.to_string(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<StateFile, StateFileError> {
        parse(text.as_bytes(), Path::new("/x/trireme-state.json"))
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
