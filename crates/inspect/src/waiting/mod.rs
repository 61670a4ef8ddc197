//! `trireme why-waiting`: the reason why a node waits, from its data directory alone, because SQL is closed while it
//! waits.

mod evidence;
mod verdict;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::text::{self, age, shown};
use evidence::{Evidence, Server};

/// The most events of a node's file in the report.
const EVENTS: usize = 5;

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum WaitingError {
    /// The directory does not exist, or cannot be read.
    #[error("cannot read {}: {source}; name the data directory (datadir), and be root or the server's user", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The directory is not a node's data directory.
    #[error("{} is no data directory of a Trireme node: it has neither grastate.dat nor trireme-state.json", .path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
}

/// The report of `trireme why-waiting`; `--json` prints it as it is. Within a version, fields are only added.
#[derive(Debug, Serialize)]
pub struct WaitingReport {
    version: u32,
    /// The cause in one line.
    cause: String,
    /// The remedy.
    remedy: String,
    /// The reason in the state file; `null` if there is none, or the node waits for nothing.
    reason: Option<String>,
    waits: bool,
    waits_s: Option<f64>,
    missing: Vec<Place>,
    progress_percent: Option<f64>,
    process_id: Option<u32>,
    state_file_age_s: Option<f64>,
    /// The replica id: votes are counted by it.
    replica: Option<String>,
    database: Option<Position>,
    /// The write-set log; its members are `null` if its directory is unknown or cannot be read.
    log: LogFiles,
    events: Vec<Event>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Place {
    name: String,
    address: String,
}

#[derive(Debug, Serialize)]
struct Position {
    uuid: String,
    seqno: i64,
    safe_to_bootstrap: bool,
    #[serde(skip)]
    left_last: bool,
}

#[derive(Debug, Serialize)]
struct LogFiles {
    segments: Option<usize>,
    bytes: Option<u64>,
    damaged: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Event {
    at: String,
    level: String,
    text: String,
}

impl WaitingReport {
    /// Examines a data directory.
    pub fn of_directory(dir: &Path, error_log: Option<&Path>) -> Result<Self, WaitingError> {
        let path = dir.to_owned();
        let evidence = match evidence::collect(dir, error_log) {
            Ok(evidence) => evidence,
            Err(source) => return Err(WaitingError::Directory { path, source }),
        };
        match evidence.state.is_none() && evidence.unreadable.is_none() && evidence.saved.is_none()
        {
            true => Err(WaitingError::Foreign { path }),
            false => Ok(Self::of(&evidence)),
        }
    }

    fn of(evidence: &Evidence) -> Self {
        let verdict = verdict::verdict(evidence);
        let state = evidence.state.as_ref();
        let waits = state
            .and_then(|state| state.waits_for.as_ref())
            .filter(|_| verdict.waits);
        let events = state.map(|state| state.events.iter().rev().take(EVENTS).rev());
        let mut notes = Vec::new();
        notes.extend(evidence.unreadable.clone());
        if state.is_none() && evidence.unreadable.is_none() {
            notes.push("no trireme-state.json: an older library, or the node has not started since; this is from its other files".to_owned());
        }
        if !evidence.has_error_log && (state.is_none() || evidence.server == Server::Down) {
            notes.push("no error log was found: see `journalctl -u mariadb`, or name it with --error-log FILE".to_owned());
        }
        if state.is_some_and(|state| state.state.amnesiac) {
            notes.push("this replica may lack entries that it acknowledged: it has no vote until it has caught up".to_owned());
        }
        if let Some(gtid) = state.and_then(|state| state.lost_from.as_ref()) {
            notes.push(format!("acknowledged commits from {gtid} on may be lost"));
        }
        if let Some(views) = state
            .map(|state| state.forced_views.len())
            .filter(|views| *views > 0)
        {
            notes.push(format!(
                "{views} view(s) of this history were forced by an operator (pc.bootstrap)"
            ));
        }
        let damaged = evidence.log.as_ref().map(|log| log.damaged.len());
        if damaged.is_some_and(|damaged| damaged > 0) {
            notes.push("damaged parts of the log were set aside (trireme-damaged-*): look into the disk's health".to_owned());
        }
        Self {
            version: 1,
            cause: verdict.cause,
            remedy: verdict.remedy,
            reason: waits.map(|waits| waits.reason.clone()),
            waits: verdict.waits,
            waits_s: state
                .zip(waits)
                .map(|(state, waits)| verdict::waits_s(evidence, state, waits)),
            missing: waits.map_or(Vec::new(), |waits| {
                let place = |peer: &trireme_node::state_file::Peer| Place {
                    name: text::bounded(&peer.name),
                    address: text::bounded(&peer.address),
                };
                waits
                    .missing
                    .iter()
                    .take(crate::MAX_MEMBERS)
                    .map(place)
                    .collect()
            }),
            progress_percent: state
                .and_then(|state| state.progress.as_ref())
                .map(|progress| progress.percent),
            process_id: match evidence.server {
                Server::Up(pid) | Server::Paused(pid) => Some(pid),
                Server::Down | Server::Unknown => None,
            },
            state_file_age_s: state.map(|_| evidence.state_age_ms as f64 / 1000.0),
            replica: evidence.replica.as_deref().map(text::bounded),
            database: evidence.saved.as_ref().map(|saved| Position {
                uuid: text::bounded(&saved.uuid),
                seqno: saved.seqno,
                safe_to_bootstrap: saved.safe_to_bootstrap,
                left_last: saved.left_last(),
            }),
            log: LogFiles {
                segments: evidence.log.as_ref().map(|log| log.segments),
                bytes: evidence.log.as_ref().map(|log| log.bytes),
                damaged,
            },
            events: events
                .into_iter()
                .flatten()
                .map(|event| Event {
                    at: text::utc(event.at_unix_ms),
                    level: text::bounded(&event.level),
                    text: text::bounded(&event.text),
                })
                .collect(),
            notes,
        }
    }

    /// The report as text for a terminal.
    pub fn text(&self) -> String {
        let mut out = text::wrapped(&text::shown_words(&self.cause), 2);
        if !self.remedy.is_empty() {
            out += &text::wrapped(&format!("-> {}", text::shown_words(&self.remedy)), 3);
        }
        out.push('\n');
        if let Some(seconds) = self.waits_s {
            out += &format!("waits for      {}\n", age(seconds));
        }
        for place in self.missing.iter().take(8) {
            let name = if place.name.is_empty() {
                "?"
            } else {
                &place.name
            };
            out += &text::wrapped(
                &format!(
                    "missing        {} at {}",
                    shown(name),
                    shown(&place.address)
                ),
                15,
            );
        }
        if let Some(pid) = self.process_id {
            out += &format!("process        {pid}\n");
        }
        if let Some(seconds) = self.state_file_age_s {
            out += &format!("state file     {} old\n", age(seconds));
        }
        if let Some(saved) = &self.database {
            let safe = if saved.left_last { ", left last" } else { "" };
            out += &text::wrapped(
                &format!(
                    "grastate.dat   {}:{}{safe}",
                    shown(&saved.uuid),
                    saved.seqno
                ),
                15,
            );
        }
        out += &match (self.log.segments, self.log.bytes) {
            (Some(segments), Some(bytes)) => {
                format!("write-set log  {segments} file(s), {} MiB\n", bytes >> 20)
            }
            _ => {
                "write-set log  not in this directory (gcache.dir?), or not to be read\n".to_owned()
            }
        };
        for event in &self.events {
            let text = format!(
                "{} {} {}",
                event.at,
                shown(&event.level),
                text::shown_words(&event.text)
            );
            out += &text::wrapped(&text, 2);
        }
        for note in &self.notes {
            out += &text::wrapped(&format!("! {}", text::shown_words(note)), 2);
        }
        out
    }
}

#[cfg(test)]
mod tests;
