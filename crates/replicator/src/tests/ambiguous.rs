//! Databases that are not what their position says: they may hold a total-order action above it
//! (rule 13), or are beyond an override that the cluster does not know (rule 11).

use trireme_certification::{KeyType, Seqno};
use trireme_group::Uuid;

use super::driver::*;
use super::server::Happened;
use crate::action::{Action, HostAction, Level, Note};
use crate::gtid::Gtid;
use crate::last_action::LastAction;

fn notes(cluster: &Cluster, node: usize) -> Vec<Gtid> {
    let actions = cluster.nodes[node].actions.iter();
    let notes = actions.filter_map(|action| match action {
        Action::Note(Note::Action { gtid, .. }) => Some(*gtid),
        _ => None,
    });
    notes.collect()
}

/// A third node with the database as it was before node 0's action; and where that action is.
fn behind_an_action() -> (Cluster, usize, Gtid, Gtid) {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.start();
    let (database, commits) = (
        cluster.nodes[0].server.database.clone(),
        cluster.nodes[0].server.commits.clone(),
    );
    let behind = cluster.nodes[0].replicator.last_committed();
    let server = &mut cluster.nodes[joiner].server;
    (server.database, server.commits) = (database, commits);
    server.sst_request = Some(b"rsync".to_vec());
    cluster.toi(0, 5);
    cluster.settle();
    let action = notes(&cluster, 0)[0];
    (cluster, joiner, behind, action)
}

fn begun(gtid: Gtid) -> LastAction {
    LastAction {
        gtid,
        ended: false,
        same_boot: true,
    }
}

fn asks_for_a_snapshot(cluster: &Cluster, node: usize) -> bool {
    let happened = &cluster.nodes[node].server.happened;
    happened.iter().any(|h| matches!(h, Happened::SstRequest))
}

#[test]
fn an_action_is_noted_before_it_begins_on_its_origin_and_elsewhere() {
    let (cluster, _, behind, action) = behind_an_action();
    assert_eq!(action.seqno, behind.seqno + 1);
    for node in 0..2 {
        // The second node joined with a snapshot.
        assert_eq!(notes(&cluster, node).last(), Some(&action), "node {node}");
        let actions = &cluster.nodes[node].actions;
        let at = |wanted: &Action| actions.iter().position(|action| action == wanted);
        let note = |ended| {
            Action::Note(Note::Action {
                gtid: action,
                ended,
            })
        };
        let noted = at(&note(false)).unwrap();
        assert_eq!(actions[noted + 1], Action::Host(HostAction::MarkUnsafe));
        let ended = at(&note(true)).unwrap();
        assert_eq!(
            actions[ended - 1],
            Action::Host(HostAction::MarkSafe),
            "the file has a history before nothing excuses its lack"
        );
    }
}

#[test]
fn a_write_set_is_not_noted() {
    let mut cluster = Cluster::of(2);
    let before = [0, 1].map(|node| notes(&cluster, node));
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    assert_eq!([0, 1].map(|node| notes(&cluster, node)), before);
}

#[test]
fn a_database_that_may_hold_an_action_above_its_position_is_replaced() {
    let (mut cluster, joiner, behind, action) = behind_an_action();
    cluster.nodes[joiner].last_action = begun(action);
    cluster.join(joiner, behind, false);
    cluster.settle();
    assert!(asks_for_a_snapshot(&cluster, joiner));
    cluster.snapshot_from(0, joiner);
    cluster.settle();
    assert_eq!(
        notes(&cluster, joiner).last(),
        Some(&Gtid::UNDEFINED),
        "it is another database now"
    );
    cluster.assert_settled();
}

#[test]
fn an_action_at_the_position_or_of_another_history_is_no_matter() {
    let stranger = |action: Gtid| Gtid {
        uuid: Uuid([9; 16]),
        ..action
    };
    let reached = |action: Gtid| Gtid {
        seqno: action.seqno - 1,
        ..action
    };
    for harmless in [reached, stranger] {
        let (mut cluster, joiner, behind, action) = behind_an_action();
        cluster.nodes[joiner].last_action = LastAction {
            same_boot: false,
            ended: true,
            gtid: harmless(action),
        };
        cluster.join(joiner, behind, false);
        cluster.settle();
        assert!(!asks_for_a_snapshot(&cluster, joiner));
        cluster.assert_settled();
    }
}

#[test]
fn a_founder_counts_as_being_at_its_last_action() {
    let at = |seqno| Gtid {
        uuid: HISTORY,
        seqno,
    };
    for (noted, first_view) in [(at(9), 10), (at(5), 6), (Gtid::UNDEFINED, 6)] {
        let mut cluster = Cluster::new();
        let node = cluster.start();
        cluster.nodes[node].last_action = begun(noted);
        cluster.connect(node, at(5), Some(HISTORY), false);
        cluster.reconfigure(|c| c.members.push(member(node)));
        cluster.settle();
        assert_eq!(
            cluster.nodes[node].replicator.last_committed(),
            at(first_view)
        );
        let warns = cluster.nodes[node].actions.iter().any(|action| {
            matches!(action, Action::Host(HostAction::Log { level: Level::Warn, text })
                if text.contains(&noted.to_string()) && text.contains(&at(5).to_string()))
        });
        assert_eq!(warns, noted == at(9));
    }
}

fn noted_overrides(cluster: &Cluster, node: usize) -> Option<&Vec<(Uuid, Seqno)>> {
    let mut actions = cluster.nodes[node].actions.iter().rev();
    actions.find_map(|action| match action {
        Action::Note(Note::Overrides { overrides }) => Some(overrides),
        _ => None,
    })
}

#[test]
fn an_override_is_noted_before_its_view_is_shown() {
    let mut cluster = Cluster::of(2);
    let id = Uuid([3; 16]);
    let fork = cluster.nodes[0].replicator.last_committed().seqno;
    let above = cluster.order.last().expect("two have joined").0;
    cluster.reconfigure(|c| (c.override_id, c.fork_after) = (Some(id), above));
    for node in 0..2 {
        cluster.nodes[node].actions.clear();
        cluster.deliver(node);
        assert_eq!(noted_overrides(&cluster, node), Some(&vec![(id, fork)]));
        let committed = cluster.nodes[node].replicator.last_committed().seqno;
        assert_eq!(committed, fork, "node {node}");
    }
}

/// Found by the simulator: a node made primary alone came back from a crash, and got what the others had
/// done without it on top of what it had done itself.
#[test]
fn a_database_beyond_an_override_that_the_cluster_does_not_know_is_replaced() {
    for (fork_below, is_replaced) in [(1, true), (0, false)] {
        let (mut cluster, joiner, behind, _) = behind_an_action();
        let fork = (Uuid([3; 16]), behind.seqno - fork_below);
        cluster.nodes[joiner].overrides = vec![fork];
        cluster.join(joiner, behind, false);
        cluster.settle();
        assert_eq!(asks_for_a_snapshot(&cluster, joiner), is_replaced);
        if is_replaced {
            cluster.snapshot_from(0, joiner);
            cluster.settle();
        }
        assert_eq!(noted_overrides(&cluster, joiner), Some(&vec![]));
        cluster.assert_settled();
    }
}

#[test]
fn a_founder_takes_the_overrides_in_its_past_along() {
    let mut cluster = Cluster::new();
    let node = cluster.start();
    let (past, lost) = ((Uuid([3; 16]), 4), (Uuid([4; 16]), 7));
    cluster.nodes[node].overrides = vec![past, lost];
    let local = Gtid {
        uuid: HISTORY,
        seqno: 5,
    };
    cluster.connect(node, local, Some(HISTORY), false);
    cluster.reconfigure(|c| c.members.push(member(node)));
    cluster.settle();
    assert_eq!(noted_overrides(&cluster, node), Some(&vec![past]));
}
