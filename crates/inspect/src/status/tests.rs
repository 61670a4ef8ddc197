use super::*;
use crate::node::Node;
use crate::node::testing::node;
use crate::refusal::Refusal;
use crate::survey::Member;
use crate::survey::testing::member;
use trireme_agent::{DatabaseError, Endpoint};

fn report(nodes: Vec<Node>) -> StatusReport {
    StatusReport::new(&Survey::of(nodes.into_iter().map(member).collect(), 0))
}

#[test]
fn a_healthy_cluster_in_eighty_columns() {
    let nodes = vec![
        node("node1", &[]),
        node("node2", &[("wsrep_last_committed", "990")]),
        node("node3", &[]),
    ];
    let report = report(nodes);
    let text = report.text();
    assert!(
        text.starts_with("cluster shop: Primary, 3 member(s), leader node1\n"),
        "{text}"
    );
    assert!(
        text.contains("survives the loss of 1 member(s) now: 3 votes, a majority is 2"),
        "{text}"
    );
    assert!(text.contains("\nnode1*  Synced    0"), "{text}");
    assert!(text.contains("\nnode2   Synced   10"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(report.missing.is_empty());
}

#[test]
fn what_the_provider_tells_is_shown() {
    let told = [
        ("wsrep_trireme_lag_seqnos", "5"),
        ("wsrep_trireme_commit_ordering_p50_us", "300"),
        ("wsrep_trireme_commit_majority_p50_us", "12"),
        ("wsrep_trireme_commit_ordering_p99_us", "12400"),
        ("wsrep_trireme_is_leader", "1"),
        ("wsrep_trireme_term", "7"),
        ("wsrep_local_cached_downto", "401"),
        ("wsrep_replicated", "3600"),
        ("wsrep_received", "0"),
    ];
    let text = report(vec![node("node1", &told)]).text();
    assert!(text.contains("leader node1 (term 7)"), "{text}");
    assert!(text.contains("5      -    0.3/12.4  10 min"), "{text}");
    assert!(!text.contains("older library"), "{text}");
}

/// After a restart or FLUSH STATUS the rate of commits is unknown, and the log may lack most of them.
#[test]
fn a_log_whose_rate_is_unknown_has_not_all() {
    let idle = [
        ("wsrep_local_cached_downto", "501"),
        ("wsrep_replicated", "0"),
        ("wsrep_received", "0"),
    ];
    let report = report(vec![node("node1", &idle), node("node2", &[])]);
    let text = report.text();
    let cells = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (first, second) = (cells("node1").unwrap(), cells("node2").unwrap());
    assert!(first.contains(" 500 ws 192.0.2.1:3306"), "{text}");
    assert!(second.contains(" all 192.0.2.2:3306"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["members"][0]["log_has_all"], false);
    assert_eq!(json["members"][0]["log_minutes"], serde_json::Value::Null);
    assert_eq!(json["members"][1]["log_has_all"], true);
}

/// The counters begin anew at FLUSH STATUS, but the uptime does not.
#[test]
fn the_rate_of_commits_is_since_flush_status() {
    let flushed = [
        ("wsrep_local_cached_downto", "401"),
        ("wsrep_replicated", "60"),
        ("wsrep_received", "0"),
        ("uptime", "360000"),
        ("uptime_since_flush_status", "60"),
    ];
    let text = report(vec![node("node1", &flushed)]).text();
    assert!(text.contains("10 min"), "{text}");
}

#[test]
fn an_earlier_version_names_the_leader_by_the_variables_old_name() {
    let told = [
        ("wsrep_trireme_leader", ""),
        ("wsrep_trireme_sequencer", "node2"),
    ];
    let text = report(vec![node("node1", &told)]).text();
    assert!(text.contains("leader node2"), "{text}");
}

#[test]
fn the_missing_and_the_silent_are_named() {
    let mut members = vec![member(node("node1", &[])), member(node("node2", &[]))];
    members.push(Member {
        endpoint: Endpoint::Tcp {
            host: "192.0.2.9".to_owned(),
            port: 3306,
        },
        answer: Err(Refusal::Database(DatabaseError::Refused(
            1045,
            "Access denied".to_owned(),
        ))),
    });
    let report = StatusReport::new(&Survey::of(members, 0));
    let text = report.text();
    // The silent member's group address is unknown, so it may be this one.
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "not here, unless it is a member under another address: 192.0.2.3:4567";
    assert!(flat.contains(words), "{text}");
    assert!(text.contains("?       no answer"), "{text}");
    assert!(text.contains("Access denied"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["losses"]["survives"], 1);
    assert_eq!(json["perhaps_missing"][0], "192.0.2.3:4567");
    assert_eq!(json["members"][2]["state"], serde_json::Value::Null);
}

#[test]
fn a_node_that_catches_up_is_named_beside_one_that_is_left_out() {
    let left_out = ("wsrep_trireme_left_out", "node3");
    let catches_up = ("wsrep_trireme_catching_up", "120 of 4000 write-sets");
    let notes = report(vec![
        node("node1", &[left_out]),
        node("node2", &[left_out, catches_up]),
        node("node3", &[left_out]),
    ])
    .notes;
    let text = notes.join(" ");
    assert!(text.contains("node2 catches up: 120 of 4000"), "{text}");
    let left_out = notes.iter().filter(|note| note.starts_with("left out"));
    assert_eq!(left_out.count(), 1, "{text}");
}

/// Two nodes and an arbitrator: no node tells the arbitrator's address.
#[test]
fn a_dead_node_beside_an_arbitrator_is_doubtful() {
    let two = [
        ("wsrep_cluster_size", "2"),
        ("wsrep_cluster_weight", "2"),
        ("@wsrep_cluster_address", "gcomm://192.0.2.1,192.0.2.2"),
    ];
    let survey = Survey::of(vec![member(node("node1", &two))], 1);
    let report = StatusReport::new(&survey);
    let flat = report.notes.join(" ");
    let line = "not here, unless it is the arbitrator or listens for clients on loopback only: 192.0.2.2:4567";
    assert!(flat.contains(line), "{flat}");
    assert!(report.losses.why.contains("bring back a missing member"));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["perhaps_missing"][0], "192.0.2.2:4567");
    assert_eq!(json["missing"].as_array().unwrap().len(), 0);
}

/// No member tells an address for clients, the asked one neither.
#[test]
fn servers_on_loopback_count_like_others() {
    let alone = member(node("node1", &[("wsrep_incoming_addresses", ",,")]));
    let report = StatusReport::new(&Survey::of(vec![alone], 2));
    assert_eq!(report.losses.survives, 1, "{}", report.losses.why);
    let flat = report
        .text()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let words = "3 member(s), 2 of them without an address for clients";
    assert!(flat.contains(words), "{flat}");
}

/// The heading is about the node that was asked, which is not the first of its view.
#[test]
fn the_asked_node_is_the_one_that_is_reported() {
    let cut_off = [
        ("wsrep_cluster_status", "non-Primary"),
        ("wsrep_cluster_size", "1"),
    ];
    let nodes = [
        node("node1", &[]),
        node("node2", &[]),
        node("node3", &cut_off),
    ];
    let survey = Survey::with_first(nodes.map(member).into(), 2);
    let text = StatusReport::new(&survey).text();
    assert!(
        text.starts_with("cluster shop: non-Primary, 1 member(s)"),
        "{text}"
    );
}

#[test]
fn lost_commits_come_with_the_remedy() {
    let lost = [("wsrep_trireme_lost_from", "uuid:7")];
    let notes = report(vec![node("node1", &lost)]).notes.join(" ");
    assert!(
        notes.contains("from uuid:7 on may be lost: compare"),
        "{notes}"
    );
    assert!(notes.contains("docs/guarantees.md"), "{notes}");
}

#[test]
fn without_a_majority_the_next_command_is_named() {
    let alone = [
        ("wsrep_cluster_status", "non-Primary"),
        ("wsrep_cluster_weight", "0"),
    ];
    let report = report(vec![node("node1", &alone)]);
    assert_eq!(report.losses.survives, 0);
    assert!(report.text().contains("why-waiting"), "{}", report.text());
    assert!(report.text().contains("no majority"));
}

#[test]
fn a_node_that_has_left_waits_for_no_majority() {
    let left = [
        ("wsrep_cluster_status", "Disconnected"),
        ("wsrep_cluster_weight", "0"),
    ];
    let report = report(vec![node("node1", &left)]);
    let text = report.text();
    assert!(text.starts_with("cluster shop: Disconnected"), "{text}");
    assert!(text.contains("node1*  has left"), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("this node has left the cluster"), "{text}");
    assert!(flat.contains("systemctl restart mariadb"), "{text}");
    assert!(!flat.contains("no majority"), "{text}");
}

#[test]
fn hostile_names_do_no_harm() {
    let name = format!("\u{1b}]0;x\u{7}{}", "n".repeat(100_000));
    let changes = [
        ("@wsrep_node_name", name.as_str()),
        ("@wsrep_cluster_name", name.as_str()),
        ("wsrep_trireme_leader", name.as_str()),
        ("wsrep_trireme_left_out", name.as_str()),
    ];
    let report = report(vec![node("node1", &changes)]);
    let text = report.text();
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{7}'),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let json = serde_json::to_string(&report).unwrap();
    assert!(
        text.len() + json.len() < 20_000,
        "{} {}",
        text.len(),
        json.len()
    );
    assert!(!json.contains('\u{1b}'));
}
