//! `trireme conflicts`: the commits that lost a conflict, with the winners and the rows. Pure, but for reading the
//! state file.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::node::Node;
use crate::survey::Survey;
use crate::text::{self, bounded, clipped, shown, utc};
use trireme_agent::state_file;
use trireme_node::state_file::{ConflictLine, StateFile};

/// The most rows in the report; a state file has no more.
const ROWS: usize = 32;

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ConflictsError {
    /// The state file cannot be read.
    #[error("{0}")]
    File(String),
    /// The directory has no state file.
    #[error(
        "{} has no trireme-state.json: an older library, which keeps no conflicts (upgrade trireme-provider), or another directory \
         than base_dir", .0.display()
    )]
    Missing(PathBuf),
}

/// The report of `trireme conflicts`; `--json` prints it as it is. Within a version, fields are only added.
#[derive(Debug, Serialize)]
pub struct ConflictsReport {
    version: u32,
    nodes: Vec<Counts>,
    /// The conflicts in the state file of the first node, the newest first; `null` if no file was read.
    recent: Option<Vec<Row>>,
    notes: Vec<String>,
}

/// The numbers of conflicts since a node's start.
#[derive(Debug, Serialize)]
struct Counts {
    node: String,
    commits: Option<i64>,
    certification: i64,
    brute_force_abort: i64,
    replay: i64,
}

/// One lost commit.
#[derive(Debug, Serialize)]
struct Row {
    at: String,
    kind: String,
    table: Option<String>,
    /// The parts of the key in hexadecimal digits, separated by `/`.
    key: Option<String>,
    seqno: Option<i64>,
    winner: Option<String>,
    winner_seqno: Option<i64>,
    connection: Option<u64>,
}

impl ConflictsReport {
    /// Reports the counts of all nodes. Adds the recent conflicts of the first node, if its files are on this machine.
    pub fn of_cluster(survey: &Survey) -> Self {
        let (recent, mut notes) = match state_of_first(survey) {
            Ok(state) => (Some(recent(&state)), Vec::new()),
            Err(why) => (None, vec![why]),
        };
        notes.extend(
            survey
                .silent()
                .take(8)
                .map(|(_, refusal)| refusal.to_string()),
        );
        Self {
            version: 1,
            nodes: survey.nodes().map(counts).collect(),
            recent,
            notes,
        }
    }

    /// Reports the conflicts in the state file of `dir`; this works while SQL is closed, too.
    pub fn of_directory(dir: &Path) -> Result<Self, ConflictsError> {
        let state =
            state_file::read(dir).map_err(|error| ConflictsError::File(error.to_string()))?;
        let state = state.ok_or_else(|| ConflictsError::Missing(dir.to_owned()))?;
        Ok(Self::of_state(&state))
    }

    fn of_state(state: &StateFile) -> Self {
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Self {
            version: 1,
            nodes: vec![Counts {
                node: bounded(&state.node.name),
                commits: None,
                certification: count(state.conflicts.certification),
                brute_force_abort: count(state.conflicts.brute_force_abort),
                replay: count(state.conflicts.replay),
            }],
            recent: Some(recent(state)),
            notes: Vec::new(),
        }
    }

    /// The report as text for a terminal.
    pub fn text(&self) -> String {
        let mut out = "lost commits since each node's start\n".to_owned();
        let number =
            |number: Option<i64>| number.map_or("-".to_owned(), |number| number.to_string());
        let rows: Vec<Vec<String>> = self
            .nodes
            .iter()
            .map(|node| {
                vec![
                    clipped(&node.node, 16),
                    number(node.commits),
                    node.certification.to_string(),
                    node.brute_force_abort.to_string(),
                    node.replay.to_string(),
                ]
            })
            .collect();
        let header = [
            "node",
            "commits",
            "certification",
            "brute force",
            "replayed",
        ];
        out += &text::table(&header, &header[1..], &rows);
        if let Some(recent) = &self.recent {
            out += if recent.is_empty() {
                "\nno conflict is remembered\n"
            } else {
                "\n"
            };
            for row in recent {
                out += &text::wrapped(&row.sentence(), 2);
            }
        }
        for note in &self.notes {
            out += &text::wrapped(&format!("! {}", text::shown_words(note)), 2);
        }
        out
    }
}

impl Row {
    fn sentence(&self) -> String {
        let place = match (&self.table, &self.key) {
            (Some(table), Some(key)) if !key.is_empty() => {
                format!(" in {}, key {}", shown(table), clipped(key, 40))
            }
            (Some(table), _) => format!(" in {}", shown(table)),
            (None, _) => String::new(),
        };
        let winner = match (&self.winner, self.winner_seqno) {
            (Some(name), Some(seqno)) => format!(", against {} (seqno {seqno})", clipped(name, 24)),
            (Some(name), None) => format!(", against {}", clipped(name, 24)),
            (None, Some(seqno)) => format!(", against seqno {seqno}"),
            (None, None) => String::new(),
        };
        let connection = self
            .connection
            .map_or(String::new(), |id| format!(", connection {id}"));
        format!(
            "{} {}{place}{winner}{connection}",
            self.at,
            shown(&self.kind)
        )
    }
}

fn recent(state: &StateFile) -> Vec<Row> {
    let row = |conflict: &ConflictLine| Row {
        at: utc(conflict.at_unix_ms),
        kind: bounded(&conflict.kind),
        table: conflict.table.as_deref().map(bounded),
        key: conflict.key.as_deref().map(bounded),
        seqno: conflict.seqno,
        winner: conflict.winner.as_deref().map(bounded),
        winner_seqno: conflict.winner_seqno,
        connection: conflict.connection,
    };
    state.conflicts.recent.iter().take(ROWS).map(row).collect()
}

/// Reads the counts. An older library has the certification failures only under Galera's name.
fn counts(node: &Node) -> Counts {
    let of = |name: &str, older: &str| node.whole(name).or(node.whole(older)).unwrap_or(0);
    Counts {
        node: bounded(node.name()),
        commits: node.whole("wsrep_local_commits"),
        certification: of(
            "wsrep_trireme_conflicts_certification",
            "wsrep_local_cert_failures",
        ),
        brute_force_abort: of(
            "wsrep_trireme_conflicts_brute_force_abort",
            "wsrep_local_bf_aborts",
        ),
        replay: of("wsrep_trireme_conflicts_replay", "wsrep_local_replays"),
    }
}

/// Reads the state file of the node that was asked first, or returns the reason why there is none. Another node may
/// have the same data directory on its machine, so the name in the file must be that of the node.
fn state_of_first(survey: &Survey) -> Result<StateFile, String> {
    let name = survey.first().map_or("", Node::name);
    let elsewhere = || {
        format!(
            "the single conflicts are in the files of {0}: run `trireme conflicts` on the machine of {0}, by its socket or with --dir DATADIR",
            clipped(name, 40)
        )
    };
    let node = survey.first_here().ok_or_else(elsewhere)?;
    let dir = Path::new(node.variable("datadir")).join(node.option("base_dir"));
    if !dir.is_dir() {
        return Err(elsewhere());
    }
    match state_file::read(&dir) {
        Ok(Some(state)) if state.node.name == name => Ok(state),
        Ok(Some(_)) => Err(elsewhere()),
        Ok(None) => Err(ConflictsError::Missing(dir).to_string()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::node;
    use crate::survey::Member;
    use trireme_agent::Endpoint;
    use trireme_node::state_file::{Conflicts, NodeNames, STATE_FILE};

    fn state(conflict: ConflictLine) -> StateFile {
        StateFile {
            node: NodeNames {
                name: "n1".to_owned(),
                ..NodeNames::default()
            },
            conflicts: Conflicts {
                certification: 3,
                recent: vec![conflict; 100],
                ..Conflicts::default()
            },
            ..StateFile::default()
        }
    }

    #[test]
    fn a_conflict_is_a_sentence() {
        let report = ConflictsReport::of_state(&state(ConflictLine {
            at_unix_ms: 1_764_065_950_000,
            kind: "certification".to_owned(),
            table: Some("shop.orders".to_owned()),
            key: Some("80000001".to_owned()),
            winner: Some("n2".to_owned()),
            winner_seqno: Some(90_199),
            connection: Some(12),
            ..ConflictLine::default()
        }));
        let text = report.text();
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentence = "2025-11-25T10:19:10Z certification in shop.orders, key 80000001, against n2 (seqno 90199), connection 12";
        assert!(flat.contains(sentence), "{text}");
        assert_eq!(report.recent.unwrap().len(), ROWS);
    }

    #[test]
    fn nodes_that_tell_only_counts_tell_them() {
        let member = Member {
            endpoint: Endpoint::Socket("/s".into()),
            answer: Ok(node(
                "node1",
                &[
                    ("wsrep_local_cert_failures", "7"),
                    ("wsrep_local_commits", "100"),
                ],
            )),
        };
        let report = ConflictsReport::of_cluster(&Survey::of(vec![member], 0));
        let text = report.text();
        assert!(
            text.contains("node1      100              7            0         0"),
            "{text}"
        );
        assert!(text.contains("--dir DATADIR"), "{text}");
    }

    #[test]
    fn only_the_files_of_the_node_that_was_asked_are_read() {
        let temp = tempfile::tempdir().unwrap();
        let datadir = temp.path().to_str().unwrap();
        let file = state(ConflictLine::default()).encode();
        std::fs::write(temp.path().join(STATE_FILE), file).unwrap();
        let ask = |endpoint, name| {
            let answer = Ok(node(name, &[("@datadir", datadir), ("base_dir", "")]));
            let member = Member { endpoint, answer };
            ConflictsReport::of_cluster(&Survey::of(vec![member], 0))
        };
        let tcp = |host: &str| Endpoint::Tcp {
            host: host.to_owned(),
            port: 3306,
        };
        let socket = || Endpoint::Socket("/s".into());
        for endpoint in [socket(), tcp("127.0.0.1"), tcp("localhost")] {
            assert!(ask(endpoint, "n1").recent.is_some());
        }
        // The same path on another machine, and a tunnel or a container.
        for (endpoint, name) in [(tcp("192.0.2.2"), "n1"), (socket(), "n2")] {
            let report = ask(endpoint, name);
            assert!(report.recent.is_none());
            let place = format!("on the machine of {name}");
            assert!(report.notes[0].contains(&place), "{:?}", report.notes);
        }
    }

    #[test]
    fn hostile_keys_harm_no_terminal_and_a_storm_is_bounded() {
        let evil = "\u{1b}[2J\n<b>".repeat(20_000);
        let report = ConflictsReport::of_state(&state(ConflictLine {
            kind: evil.clone(),
            table: Some(evil.clone()),
            key: Some(evil.clone()),
            winner: Some(evil),
            ..ConflictLine::default()
        }));
        let text = report.text();
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(text.len() < 40_000, "{}", text.len());
        assert!(serde_json::to_string(&report).unwrap().len() < 100_000);
    }

    #[test]
    fn a_directory_without_the_file_says_why() {
        let temp = tempfile::tempdir().unwrap();
        let error = ConflictsReport::of_directory(temp.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains("upgrade trireme-provider"), "{error}");
    }
}
