//! What a node waits for is named in the first line.

use super::evidence::{Evidence, Saved, Server, Told};
use super::*;
use trireme_node::state_file::{self, NodeNames, Peer, StateFile, Wait};

const NOW: u64 = 1_764_066_000_000;

fn state(waits: Option<Wait>) -> StateFile {
    StateFile {
        written_at_unix_ms: NOW - 500,
        node: NodeNames {
            name: "n1".to_owned(),
            address: "192.0.2.1:4567".to_owned(),
            ..NodeNames::default()
        },
        waits_for: waits,
        ..StateFile::default()
    }
}

fn waits(reason: &str) -> Option<Wait> {
    Some(Wait {
        reason: reason.to_owned(),
        text: "as the node says".to_owned(),
        since_unix_ms: NOW - 42_000,
        missing: vec![Peer {
            name: "n2".to_owned(),
            address: "192.0.2.2:4567".to_owned(),
        }],
        donor: Some("n3".to_owned()),
        ..Wait::default()
    })
}

fn running(state: StateFile) -> Evidence {
    Evidence {
        state_age_ms: 500,
        state: Some(state),
        server: Server::Up(4711),
        free_bytes: Some(1 << 40),
        ..Evidence::default()
    }
}

#[track_caller]
fn assert_cause(evidence: &Evidence, cause: &str, remedy: &str) {
    let report = WaitingReport::of(evidence);
    assert!(report.cause.contains(cause), "{}", report.cause);
    assert!(report.remedy.contains(remedy), "{}", report.remedy);
    let first = report.text();
    assert!(
        first.lines().all(|line| line.chars().count() <= 80),
        "{first}"
    );
}

#[test]
fn each_reason_is_one_line() {
    let cases = [
        (
            "majority",
            "n1 has waited 42 s for a majority: missing are n2 (192.0.2.2:4567)",
            "start mariadb there",
        ),
        (
            "founders",
            "to found the cluster: missing are n2",
            "start mariadb there",
        ),
        (
            "component",
            "no answer at n2 (192.0.2.2:4567)",
            "wsrep_cluster_address",
        ),
        (
            "state-transfer",
            "a full snapshot (SST) for 42 s from n3",
            "let it go on",
        ),
        (
            "incremental-transfer",
            "has caught up for 42 s",
            "let it go on",
        ),
        (
            "donor",
            "waited 42 s for a donor: as the node says",
            "Synced",
        ),
        (
            "disk",
            "disk of n1 is slow: a flush of the write-set log has not ended for 47 s",
            "iostat",
        ),
        ("refused", "refused by the cluster: as the node says", ""),
        (
            "failed",
            "cannot go on: as the node says",
            "waiting does not help",
        ),
        (
            "of tomorrow",
            "waits (of tomorrow) for 42 s: as the node says",
            "",
        ),
    ];
    for (reason, cause, remedy) in cases {
        assert_cause(&running(state(waits(reason))), cause, remedy);
    }
}

#[test]
fn a_node_that_waits_for_nothing_says_so() {
    let mut idle = state(None);
    idle.state.component = "primary".to_owned();
    idle.state.node_state_comment = "Synced".to_owned();
    let report = WaitingReport::of(&running(idle));
    assert_eq!(
        report.cause,
        "n1 waits for nothing: in the primary component, Synced"
    );
    assert!(!report.waits);
    assert_eq!(report.reason, None);
}

#[test]
fn a_node_that_has_left_says_why() {
    let mut left = state(None);
    left.state.component = "closed".to_owned();
    left.events = ["error", "info"]
        .map(|level| state_file::Event {
            level: level.to_owned(),
            text: format!("{level}: No space left"),
            ..Default::default()
        })
        .into();
    assert_cause(
        &running(left),
        "n1 has left the cluster: error: No space left",
        "systemctl restart mariadb",
    );
}

#[test]
fn what_stops_a_node_altogether_comes_first() {
    let mut paused = running(state(waits("majority")));
    paused.server = Server::Paused(7);
    assert_cause(&paused, "process 7 was stopped by a signal", "kill -CONT 7");
    let mut full = running(state(None));
    full.free_bytes = Some(0);
    assert_cause(&full, "the disk of n1 is full", "make room");
    let mut silent = running(state(None));
    silent.state_age_ms = 600_000;
    assert_cause(&silent, "has told nothing for 10 min", "dmesg");
}

#[test]
fn a_server_that_is_down_tells_its_last_error() {
    let mut down = running(state(waits("majority")));
    down.server = Server::Down;
    assert_cause(
        &down,
        "n1 does not run, and last wrote 0 s ago",
        "systemctl start mariadb",
    );
    down.told.error = Some("WSREP: the disk is full".to_owned());
    assert_cause(
        &down,
        "its last error: WSREP: the disk is full",
        "mend the cause",
    );
    assert!(!WaitingReport::of(&down).waits);
    let mut last = Evidence {
        saved: Some(Saved {
            uuid: "6f2c1a4e-0000-0000-0000-000000000001".to_owned(),
            safe_to_bootstrap: true,
            ..Saved::default()
        }),
        server: Server::Down,
        ..Evidence::default()
    };
    assert_cause(&last, "the node does not run", "galera_new_cluster");
    last.state = Some(state(None));
    assert_plain_start(&last); // a Trireme cluster needs no node to begin
    last.state = None;
    last.saved.as_mut().unwrap().uuid = "00000000-0000-0000-0000-000000000000".to_owned();
    assert_plain_start(&last); // killed within its first state transfer
}

#[track_caller]
fn assert_plain_start(evidence: &Evidence) {
    let report = WaitingReport::of(evidence);
    assert_eq!(report.remedy, "systemctl start mariadb");
}

#[test]
fn who_waits_for_a_majority_names_the_node_with_the_longest_log() {
    let mut waits = waits("majority").unwrap();
    waits.text =
        "missing are n2. Start them. If lost: to go on without them, execute X on n3".to_owned();
    let cause = "for a majority: missing are n2";
    assert_cause(&running(state(Some(waits))), cause, "execute X on n3");
}

#[test]
fn without_a_state_file_the_error_log_is_asked() {
    let mut old = Evidence {
        server: Server::Up(7),
        told: Told {
            wait: Some("waiting for a majority: missing are n2".to_owned()),
            error: None,
        },
        ..Evidence::default()
    };
    assert_cause(
        &old,
        "the node waits: waiting for a majority",
        "upgrade trireme-provider",
    );
    assert!(
        WaitingReport::of(&old)
            .text()
            .contains("no trireme-state.json")
    );
    old.told = Told::default();
    assert_cause(&old, "its files do not tell of a wait", "error log");
    old.unreadable = Some("x has version 9: upgrade the package trireme".to_owned());
    assert!(
        WaitingReport::of(&old)
            .text()
            .contains("upgrade the package")
    );
}

/// Debian's server has no error log in a file.
#[test]
fn without_an_error_log_the_journal_is_named() {
    let mut down = running(state(None));
    down.server = Server::Down;
    let text = |evidence: &Evidence| WaitingReport::of(evidence).text();
    assert!(text(&down).contains("journalctl -u mariadb"));
    down.has_error_log = true;
    assert!(!text(&down).contains("journalctl"));
    assert!(!text(&running(state(None))).contains("journalctl"));
}

#[test]
fn a_log_that_was_not_found_is_not_empty() {
    let mut evidence = running(state(None));
    let report = WaitingReport::of(&evidence);
    let text = report.text();
    assert!(
        text.contains("write-set log  not in this directory"),
        "{text}"
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["log"]["segments"], serde_json::Value::Null);
    evidence.log = Some(crate::local::LogFiles {
        segments: 2,
        bytes: 3 << 20,
        damaged: Vec::new(),
    });
    let report = WaitingReport::of(&evidence);
    assert!(report.text().contains("write-set log  2 file(s), 3 MiB"));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["log"]["bytes"], 3 << 20);
}

#[test]
fn a_hostile_file_harms_no_terminal() {
    let mut hostile = state(waits("majority"));
    let evil = "\u{1b}]0;owned\u{7} ".repeat(5_000);
    hostile.node.name = evil.clone();
    let waits = hostile.waits_for.as_mut().unwrap();
    waits.text = evil.clone();
    let peer = Peer {
        name: evil.clone(),
        address: evil.clone(),
    };
    waits.missing = vec![peer; 5_000];
    hostile.events = vec![
        state_file::Event {
            text: evil.clone(),
            level: evil,
            at_unix_ms: u64::MAX,
        };
        1_000
    ];
    let report = WaitingReport::of(&running(hostile));
    let text = report.text();
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let json = serde_json::to_string(&report).unwrap();
    assert!(
        text.len() < 20_000 && json.len() < 100_000,
        "{} {}",
        text.len(),
        json.len()
    );
}

#[test]
fn a_directory_of_something_else_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let error = WaitingReport::of_directory(temp.path(), None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no data directory of a Trireme node"),
        "{error}"
    );
    let error = WaitingReport::of_directory(Path::new("/nonexistent"), None)
        .unwrap_err()
        .to_string();
    assert!(error.contains("name the data directory"), "{error}");
}
