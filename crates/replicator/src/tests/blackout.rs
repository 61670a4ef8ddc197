//! All are killed while a total-order action is under way: whoever reads it back first, and fails, presumes
//! that it fails everywhere, and asks as soon as there is anybody to ask (rule 22).

use trireme_certification::Seqno;

use super::driver::{Cluster, incarnation, member};
use crate::{Action, Connect, Event, HostAction};

/// Two nodes are killed when an action is ordered and neither has it; they come back, and it fails on
/// these. The server of `slow` does nothing yet. The second: its seqno.
fn action_read_back(fails_on: &[usize], slow: Option<usize>) -> (Cluster, Seqno) {
    let mut cluster = Cluster::of(2);
    let next = cluster.order.len();
    let action = cluster.nodes[0].replicator.last_committed().seqno + 1;
    cluster.toi(0, 5);
    let before = std::mem::take(&mut cluster.nodes);
    cluster.configuration.members.clear();
    for (index, node) in before.into_iter().enumerate() {
        cluster.start();
        let me = trireme_group::Member {
            incarnation: incarnation(10 + index),
            ..member(index)
        };
        let at = &mut cluster.nodes[index];
        (at.incarnation, at.next, at.threads) = (me.incarnation, next, 4);
        at.records = node.records;
        (at.server.database, at.server.commits) = (node.server.database, node.server.commits);
        if fails_on.contains(&index) {
            at.server.errors.insert(action, b"exists".to_vec());
        }
        let connect = Connect {
            incarnation: me.incarnation,
            me: me.clone(),
            local: node.replicator.last_committed(),
            last_action: crate::LastAction::NONE,
            bootstrap: None,
            server_running: false,
            control: node.replicator.control_snapshot(),
            overrides: Vec::new(),
        };
        cluster.event(index, Event::Connect(Box::new(connect)));
        cluster.configuration.members.push(me);
    }
    if let Some(node) = slow {
        cluster.nodes[node].threads = 0;
    }
    cluster.reconfigure(|_| ());
    cluster.settle();
    (cluster, action)
}

/// How often the database was said to be unreliable, less how often it was said to be good again.
pub(super) fn doubts(cluster: &Cluster, node: usize) -> i32 {
    let actions = cluster.nodes[node].actions.iter();
    let weigh = |action: &Action| match action {
        Action::Host(HostAction::MarkUnsafe) => 1,
        Action::Host(HostAction::MarkSafe) => -1,
        _ => 0,
    };
    actions.map(weigh).sum()
}

#[test]
fn an_action_that_fails_everywhere_costs_no_database() {
    let (cluster, action) = action_read_back(&[0, 1], None);
    for node in 0..2 {
        assert_eq!(cluster.comment(node), "Synced");
        assert_eq!(doubts(&cluster, node), 0);
        let votes = format!("initiates vote on {}:{action},", super::driver::HISTORY);
        let logs = &cluster.nodes[node].logs;
        assert!(logs.iter().any(|log| log.contains(&votes)), "{logs:?}");
        assert!(cluster.nodes[node].records.by_seqno[&action].failed);
    }
    cluster.assert_settled();
}

/// Whoever is in step first decides alone, if nobody else is: the other must not stay with what it has
/// made of the action, whether it has done so before the vote or after.
#[test]
fn nobody_stays_with_another_outcome() {
    for (wrong, slow) in [(0, None), (1, None), (0, Some(1)), (1, Some(0))] {
        let (mut cluster, _) = action_read_back(&[wrong], slow);
        if let Some(node) = slow {
            cluster.nodes[node].threads = 4;
        }
        cluster.settle();
        let comments = [0, 1].map(|node| cluster.comment(node));
        let text = format!("{comments:?} if {wrong} fails and {slow:?} is slow");
        assert!(comments.contains(&"Synced"), "{text}");
        assert!(comments.contains(&"Inconsistent"), "{text}");
    }
}

#[test]
fn an_action_that_succeeds_everywhere_is_not_voted_on() {
    let (cluster, action) = action_read_back(&[], None);
    for node in 0..2 {
        assert_eq!(cluster.comment(node), "Synced");
        assert_eq!(doubts(&cluster, node), 0);
        assert!(!cluster.nodes[node].records.by_seqno[&action].failed);
    }
    cluster.assert_settled();
}
