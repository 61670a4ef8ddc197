//! What a node's log keeps for a member that pulls.

use trireme_certification::{KeyType, Seqno};
use trireme_group::Position;

use super::driver::{Cluster, incarnation, peer_message};
use crate::peer_message::PeerMessage;
use crate::{Action, LogAction};

/// From here on node 0 keeps its log for itself and for those that pull, as it said last.
fn kept_from(cluster: &Cluster) -> Position {
    let mut said = cluster.nodes[0].actions.iter().rev();
    let kept_from = said.find_map(|action| match action {
        Action::Log(LogAction::Pin { keep_from, .. }) => Some(*keep_from),
        _ => None,
    });
    kept_from.expect("it has said so")
}

fn write(cluster: &mut Cluster, count: usize) {
    for number in 0..count {
        cluster.certify(0, &format!("key {number}"), KeyType::Exclusive);
        cluster.settle();
    }
}

fn pull(cluster: &mut Cluster, from: Seqno) {
    let bytes = PeerMessage::IstPull { from }.encode();
    cluster.event(0, peer_message(incarnation(1), bytes));
}

/// Its log was replaced in place: its own word says that it holds everything up to there, and it is no joiner.
#[test]
fn a_synced_member_that_pulls_is_given_the_rest() {
    let mut cluster = Cluster::of_length(2, 4);
    let next = cluster.nodes[0].replicator.last_seqno().expect("in step") + 1;
    cluster.nodes[1].primary = false;
    write(&mut cluster, 20);
    let position = cluster.nodes[0].records.by_seqno[&next].position;
    assert!(kept_from(&cluster) > position, "nothing is pulled");
    pull(&mut cluster, next);
    assert_eq!(kept_from(&cluster), position);
    write(&mut cluster, 1);
    assert_eq!(kept_from(&cluster), position, "it goes on");
    cluster.nodes[1].primary = true;
    cluster.settle();
    write(&mut cluster, 1);
    assert!(kept_from(&cluster) > position, "it has applied it");
}
