//! The state-and-event file, which shows a node's state while SQL is closed (docs/state-and-event-file.md).
//!
//! [`StateFile`] is the content, [`Events`] the ring of recent lines, and [`StateWriter`] puts the file into place. The
//! caller fills in raw text; [`StateFile::encode`] cleans all texts, and bounds the whole.

mod events;
#[cfg(test)]
mod tests;
mod write;

use serde::{Deserialize, Serialize};

use crate::text::one_line;
pub use events::Events;
pub use write::{StateWriter, WriteError};

/// Name of the file, at the top of `base_dir`.
pub const STATE_FILE: &str = "trireme-state.json";
/// Value of the member `format`.
pub const FORMAT: &str = "trireme state and events";
/// The version that is written.
pub const VERSION: u32 = 1;
/// The age from which readers consider the file out of date, in ms. The writer replaces it before
/// (provider/src/reporter.rs), if its disk does not hang.
pub const STALE_MS: u64 = 70_000;
/// Maximum size of the file.
pub const BYTES_MAX: usize = 256 * 1024;

/// Maximum of members listed.
const MEMBERS_MAX: usize = 64;
/// Maximum of forced views listed, the newest.
const FORCED_VIEWS_MAX: usize = 64;
/// Maximum of conflicts listed.
pub const CONFLICTS_MAX: usize = 32;
/// Maximum length of a name, an address or a key.
const NAME_BYTES_MAX: usize = 256;
/// Maximum length of a line for people.
const TEXT_BYTES_MAX: usize = 2_000;

/// The content of the file. Each field is the member of the same name in docs/state-and-event-file.md.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct StateFile {
    pub format: String,
    pub version: u32,
    pub written_at_unix_ms: u64,
    pub process: Process,
    pub node: NodeNames,
    pub cluster: Cluster,
    pub state: State,
    pub waits_for: Option<Wait>,
    pub progress: Option<CatchUp>,
    pub leader: Option<Leader>,
    pub members: Vec<MemberLine>,
    pub log: Option<LogSizes>,
    pub flow_control: FlowControl,
    pub forced_views: Vec<ForcedView>,
    pub lost_from: Option<String>,
    pub conflicts: Conflicts,
    pub commit_us: Option<CommitTimes>,
    pub events: Vec<Event>,
}

/// The process that writes the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Process {
    pub pid: u32,
    pub provider: String,
    pub started_at_unix_ms: u64,
}

/// The names of the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct NodeNames {
    pub name: String,
    pub incoming: String,
    pub address: String,
    pub member_id: String,
    pub segment: u8,
    pub weight: u8,
    pub log_dir: Option<String>,
}

/// The cluster that the node should be in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Cluster {
    pub name: String,
    pub address: String,
    pub uuid: String,
}

/// The state of the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct State {
    pub component: String,
    pub node_state: i64,
    pub node_state_comment: String,
    pub server_running: bool,
    pub view: Option<u64>,
    pub last_committed: i64,
    pub lag_seqnos: u64,
    pub lag_ms: Option<u64>,
    pub amnesiac: bool,
}

/// The thing that the node waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Wait {
    pub reason: String,
    pub text: String,
    pub since_unix_ms: u64,
    pub here: Vec<Peer>,
    pub missing: Vec<Peer>,
    pub donor: Option<String>,
}

/// A node that is connected, or missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Peer {
    pub name: String,
    pub address: String,
}

/// The catch-up progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct CatchUp {
    pub done: u64,
    pub total: u64,
    pub percent: f64,
    pub per_second: Option<f64>,
    pub left_s: Option<u64>,
}

/// The leader.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Leader {
    pub name: String,
    pub is_me: bool,
    pub term: u64,
    pub changes: u64,
}

/// A member of the last view.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct MemberLine {
    pub name: String,
    pub incoming: String,
    pub address: String,
    pub member_id: String,
    pub replica_id: String,
    pub segment: u8,
    pub weight: u8,
    pub arbitrator: bool,
    pub is_me: bool,
    pub here: bool,
    pub left_out: bool,
}

/// The write-set log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct LogSizes {
    pub durability: String,
    pub bytes: u64,
    pub pinned_bytes: u64,
    pub first_seqno: Option<i64>,
}

/// Flow control.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct FlowControl {
    pub stopped: bool,
    pub asked_for: bool,
    pub paused_ns: u64,
    pub paced_ns: u64,
    pub apply_queue: u64,
    pub send_queue: u64,
}

/// A view without a majority.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct ForcedView {
    pub id: String,
    pub seqno_before: i64,
    pub unvouched: bool,
}

/// Own transactions that lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Conflicts {
    pub certification: u64,
    pub brute_force_abort: u64,
    pub replay: u64,
    pub recent: Vec<ConflictLine>,
}

/// One own transaction that lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct ConflictLine {
    pub at_unix_ms: u64,
    pub kind: String,
    pub seqno: Option<i64>,
    pub table: Option<String>,
    pub key: Option<String>,
    pub winner_seqno: Option<i64>,
    pub winner: Option<String>,
    pub winner_member_id: Option<String>,
    pub connection: Option<u64>,
}

/// The stages of a commit that have samples, by name.
pub type CommitTimes = std::collections::BTreeMap<String, StageTimes>;

/// The times of a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct StageTimes {
    pub count: u64,
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

/// A log line of the library.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Event {
    pub at_unix_ms: u64,
    pub level: String,
    pub text: String,
}

/// The reason why a text is not a state file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text is not JSON, or its members have other types.
    #[error("it is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    /// Another value of `format`.
    #[error("it is no state file of Trireme: its format is '{0}'")]
    Format(String),
    /// The file of a later release.
    #[error(
        "it has version {0}, this program knows version {VERSION}: use the program of the same release as the library"
    )]
    Version(u64),
}

/// The members that are read first: a later version may have others.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: String,
    version: Option<u64>,
}

impl StateFile {
    /// Reads the content of a file. Members may be missing, `null` (which is the same) or new.
    pub fn decode(bytes: &[u8]) -> Result<StateFile, ReadError> {
        let mut value: serde_json::Value = serde_json::from_slice(bytes)?;
        drop_nulls(&mut value);
        let head = Head::deserialize(&value)?;
        if head.format != FORMAT {
            return Err(ReadError::Format(one_line(&head.format, NAME_BYTES_MAX)));
        }
        match head.version {
            None => Err(ReadError::Damaged(serde::de::Error::missing_field(
                "version",
            ))),
            Some(version) if version > VERSION.into() => Err(ReadError::Version(version)),
            Some(_) => Ok(StateFile::deserialize(&value)?),
        }
    }

    /// Returns the bytes of the file: texts cleaned, lists and the whole bounded. The oldest and least needed parts are
    /// dropped first.
    pub fn encode(mut self) -> Vec<u8> {
        (self.format, self.version) = (FORMAT.to_owned(), VERSION);
        self.clean();
        loop {
            // Cannot fail: keys of maps are text, and numbers are finite.
            let bytes = serde_json::to_vec(&self).unwrap_or_default();
            let lists = (self.events.len(), self.conflicts.recent.len());
            match lists {
                _ if bytes.len() <= BYTES_MAX => return bytes,
                (events @ 1.., _) => drop(self.events.drain(..events.div_ceil(2))),
                (0, conflicts @ 1..) => self.conflicts.recent.truncate(conflicts / 2),
                (0, 0) => self.members.truncate(self.members.len() / 2),
            }
        }
    }

    fn clean(&mut self) {
        let name = |text: &mut String| *text = one_line(text, NAME_BYTES_MAX);
        let line = |text: &mut String| *text = one_line(text, TEXT_BYTES_MAX);
        for text in [
            &mut self.node.name,
            &mut self.node.incoming,
            &mut self.node.address,
            &mut self.cluster.name,
        ] {
            name(text);
        }
        line(&mut self.cluster.address);
        self.node.log_dir.as_mut().map(line);
        self.members.truncate(MEMBERS_MAX);
        for member in &mut self.members {
            for text in [&mut member.name, &mut member.incoming, &mut member.address] {
                name(text);
            }
        }
        if let Some(leader) = &mut self.leader {
            name(&mut leader.name);
        }
        if let Some(wait) = &mut self.waits_for {
            line(&mut wait.text);
            wait.here.truncate(MEMBERS_MAX);
            wait.missing.truncate(MEMBERS_MAX);
            for peer in wait.here.iter_mut().chain(&mut wait.missing) {
                name(&mut peer.name);
                name(&mut peer.address);
            }
            wait.donor.as_mut().map(name);
        }
        let surplus = self.forced_views.len().saturating_sub(FORCED_VIEWS_MAX);
        self.forced_views.drain(..surplus);
        self.conflicts.recent.truncate(CONFLICTS_MAX);
        for conflict in &mut self.conflicts.recent {
            conflict.table.as_mut().map(name);
            conflict.key.as_mut().map(name);
            conflict.winner.as_mut().map(name);
        }
        self.events
            .iter_mut()
            .for_each(|event| line(&mut event.text));
    }
}

/// Removes members that are `null`. The parser bounds the depth.
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
