//! Votes on apply errors.

use trireme_certification::KeyType;

use super::driver::Cluster;
use super::server::{Happened, Toi};
use crate::{Action, Code, Event};

/// Applying the next seqno ends so on these nodes; an own total-order action takes it.
fn vote(nodes: usize, errors: &[(usize, &str)]) -> Cluster {
    let mut cluster = Cluster::of(nodes);
    let seqno = cluster.nodes[0].replicator.last_seqno().unwrap() + 1;
    for (node, error) in errors {
        cluster.nodes[*node]
            .server
            .errors
            .insert(seqno, error.as_bytes().to_vec());
    }
    cluster.toi(0, 5);
    cluster.certify(0, "later", KeyType::Exclusive);
    cluster.settle();
    cluster
}

fn left(cluster: &Cluster) -> Vec<usize> {
    (0..cluster.nodes.len())
        .filter(|n| cluster.nodes[*n].closed)
        .collect()
}

#[test]
fn an_error_that_all_agree_on_is_no_error() {
    let mut cluster = vote(3, &[(0, "exists"), (1, "exists"), (2, "exists")]);
    assert_eq!(left(&cluster), []);
    assert_eq!(cluster.nodes[0].server.tois[&5].0, Toi::Done(Code::Ok));
    assert!(
        cluster.nodes[1]
            .logs
            .iter()
            .any(|l| l.contains("initiates vote on") && l.ends_with("exists"))
    );
    cluster.assert_settled();
    let trx = cluster.certify(1, "after", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(1, trx), Code::Ok);
    // Whoever gets it from the log gets a dummy.
    let seqno = cluster.nodes[0].replicator.last_seqno().unwrap() - 1;
    assert!(
        cluster.nodes[0]
            .records
            .by_seqno
            .range(..seqno)
            .any(|(_, r)| r.failed)
    );
}

#[test]
fn who_is_outvoted_leaves() {
    for (errors, gone) in [
        (vec![(1, "crashed table")], vec![1]),
        (vec![(0, "disk full")], vec![0]),
        (vec![(0, "exists"), (1, "exists")], vec![2]),
        (vec![(0, "exists"), (1, "another error")], vec![0, 1]),
    ] {
        let cluster = vote(3, &errors);
        assert_eq!(left(&cluster), gone, "{errors:?}");
        for node in gone {
            assert!(cluster.nodes[node].actions.contains(&Action::MarkCorrupt));
            assert_eq!(cluster.comment(node), "Inconsistent");
            assert!(
                cluster.nodes[node]
                    .logs
                    .iter()
                    .any(|l| l.contains("Inconsistent by consensus on"))
            );
            let actions = &cluster.nodes[node].actions;
            let after = actions.iter().skip_while(|a| **a != Action::MarkCorrupt);
            assert!(
                !after
                    .into_iter()
                    .any(|a| matches!(a, Action::SaveState { .. }))
            );
        }
        cluster.assert_settled();
    }
}

#[test]
fn of_two_the_one_that_succeeded_stays() {
    let cluster = vote(2, &[(1, "duplicate key")]);
    assert_eq!(left(&cluster), [1]);
    let last_view = cluster.nodes[1]
        .server
        .happened
        .iter()
        .rev()
        .find_map(|h| match h {
            Happened::View(view, _) => Some(view.members.len()),
            _ => None,
        });
    assert_eq!(last_view, Some(0));
    cluster.assert_settled();
}

#[test]
fn alone_there_is_nobody_to_disagree() {
    let cluster = vote(1, &[(0, "exists")]);
    assert_eq!(left(&cluster), []);
    assert_eq!(cluster.nodes[0].server.tois[&5].0, Toi::Done(Code::Ok));
}

#[test]
fn a_vote_does_not_wait_for_who_is_desynced() {
    let mut cluster = Cluster::of(2);
    let ticket = cluster.nodes[1].server.ticket();
    cluster.event(1, Event::Desync { ticket });
    cluster.settle();
    cluster.nodes[1].threads = 0;
    let seqno = cluster.nodes[0].replicator.last_seqno().unwrap() + 1;
    for node in 0..2 {
        cluster.nodes[node]
            .server
            .errors
            .insert(seqno, b"exists".to_vec());
    }
    cluster.toi(0, 5);
    cluster.settle();
    assert_eq!(cluster.nodes[0].server.tois[&5].0, Toi::Done(Code::Ok));
    // It comes to the same result later.
    cluster.nodes[1].threads = 1;
    cluster.settle();
    assert_eq!(left(&cluster), []);
    cluster.assert_settled();
}

#[test]
fn a_disconnect_does_not_wait_for_a_vote() {
    let mut cluster = Cluster::of(2);
    let seqno = cluster.nodes[0].replicator.last_seqno().unwrap() + 1;
    cluster.nodes[0]
        .server
        .errors
        .insert(seqno, b"exists".to_vec());
    cluster.nodes[1].threads = 0;
    cluster.toi(0, 5);
    cluster.settle();
    assert!(
        matches!(cluster.nodes[0].server.tois[&5].0, Toi::Ending(_)),
        "node 1 has not applied it"
    );
    cluster.event(0, Event::Disconnect);
    cluster.settle();
    assert_eq!(
        cluster.nodes[0].server.tois[&5].0,
        Toi::Done(Code::NodeFail)
    );
    assert!(cluster.nodes[0].closed);
}
