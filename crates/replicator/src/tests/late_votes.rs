//! Members that come to an entry long after the others have voted on it. The control state has forgotten the result.

use super::clients::copy;
use super::driver::Cluster;
use super::votes::left;
use crate::votes::REMEMBERED;
use crate::{Event, Gtid, Seqno};

/// Total-order actions that fail on node 0, and on these other nodes: there the first one fails only if
/// `first_fails_late`.
fn fail_many(cluster: &mut Cluster, others: &[usize], first_fails_late: bool) {
    for number in 0..=REMEMBERED as u64 {
        let seqno: Seqno = cluster.nodes[0].replicator.last_seqno().unwrap() + 1;
        let others = others.iter().filter(|_| number > 0 || first_fails_late);
        for node in others.chain([&0]) {
            let errors = &mut cluster.nodes[*node].server.errors;
            errors.insert(seqno, b"exists".to_vec());
        }
        cluster.toi(0, 5 + number);
        cluster.settle();
    }
    assert_eq!(left(cluster), []);
}

/// A desynced member applies nothing meanwhile. It has agreed with the others, or it has to leave.
#[test]
fn who_is_desynced_heeds_every_vote_that_it_missed() {
    for agrees in [true, false] {
        let mut cluster = Cluster::of(2);
        let ticket = cluster.nodes[1].server.ticket();
        cluster.event(1, Event::Desync { ticket });
        cluster.settle();
        cluster.nodes[1].threads = 0;
        fail_many(&mut cluster, &[1], agrees);
        cluster.nodes[1].threads = 1;
        cluster.settle();
        let expected: &[usize] = if agrees { &[] } else { &[1] };
        assert_eq!(left(&cluster), expected);
        cluster.assert_settled();
    }
}

/// A joiner waits for its snapshot meanwhile.
#[test]
fn who_joins_heeds_every_vote_behind_its_snapshot() {
    for agrees in [true, false] {
        let mut cluster = Cluster::of(1);
        let joiner = cluster.start();
        let behind = copy(&mut cluster, joiner);
        cluster.join(joiner, Gtid::UNDEFINED, false);
        cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
        cluster.settle();
        fail_many(&mut cluster, &[joiner], agrees);
        cluster.snapshot_ends(0, joiner, behind);
        cluster.settle();
        let expected: &[usize] = if agrees { &[] } else { &[joiner] };
        assert_eq!(left(&cluster), expected);
    }
}
