//! Large write-sets: a majority holds them before they take their number.

use trireme_certification::KeyType;

use super::driver::{Cluster, draft, member};
use super::server::Toi;
use crate::{Code, Event, Options};

/// Everything is large on node 1.
fn cluster() -> Cluster {
    let mut cluster = Cluster::of(2);
    set_large(&mut cluster, 10);
    cluster
}

fn set_large(cluster: &mut Cluster, large_bytes: usize) {
    let options = Options {
        large_bytes,
        ..Options::default()
    };
    cluster.event(1, Event::SetOptions(options));
}

fn spread(cluster: &mut Cluster, bulk: u64) {
    cluster.event(1, Event::Spread { bulk });
    cluster.settle();
}

#[test]
fn small_ones_of_the_same_node_go_first() {
    let mut cluster = cluster();
    let large = cluster.certify(1, "a", KeyType::Exclusive);
    set_large(&mut cluster, 1 << 20);
    let small = cluster.certify(1, "b", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(1, small), Code::Ok);
    assert!(cluster.nodes[1].bulk_payloads.contains_key(&1));
    spread(&mut cluster, 1);
    assert_eq!(cluster.outcome(1, large), Code::Ok);
    cluster.assert_settled();
}

/// No log takes more, with what comes around it.
#[test]
fn what_is_longer_than_any_log_takes_is_refused() {
    let mut cluster = Cluster::of(2);
    let most = trireme_group::PAYLOAD_MAX as usize;
    for (len_bytes, is_taken) in [(most, true), (most + 1, false)] {
        let trx = len_bytes as u64;
        let draft = draft(trx, "a", KeyType::Exclusive, b"").claims(len_bytes);
        let call = |draft| {
            move |ticket| Event::Certify {
                ticket,
                trx,
                conn: trx,
                draft,
            }
        };
        let answer = cluster.call(1, call(draft.clone()));
        assert_eq!(answer.is_none(), is_taken, "{len_bytes}");
        let action = |ticket| Event::ToiStart {
            ticket,
            conn: trx,
            draft,
        };
        let action = cluster.call(1, action);
        assert_eq!(action.is_none(), is_taken, "{len_bytes}");
        for answer in answer.into_iter().chain(action) {
            assert_eq!(answer.code, Code::SizeExceeded);
        }
    }
}

/// It may have travelled for long: what it has seen is sampled when it gets its number.
#[test]
fn what_was_applied_meanwhile_it_has_seen() {
    let mut cluster = cluster();
    let large = cluster.certify(1, "a", KeyType::Exclusive);
    let meanwhile = cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(0, meanwhile), Code::Ok);
    spread(&mut cluster, 1);
    assert_eq!(cluster.outcome(1, large), Code::Ok);
    cluster.assert_settled();
}

#[test]
fn a_victim_that_travels_is_aborted_at_once() {
    let mut cluster = cluster();
    let victim = cluster.certify(1, "a", KeyType::Exclusive);
    assert_eq!(cluster.abort(1, victim, 99), Code::Ok);
    assert!(cluster.nodes[1].bulk_payloads.is_empty(), "it is recalled");
    cluster.settle();
    assert_eq!(cluster.outcome(1, victim), Code::ConnFail);
    spread(&mut cluster, 1); // too late
    cluster.assert_settled();
}

#[test]
fn what_travels_fails_for_good_when_the_majority_is_lost() {
    let mut cluster = cluster();
    let travels = cluster.certify(1, "a", KeyType::Exclusive);
    cluster.toi(1, 5);
    cluster.nodes[1].primary = false;
    let component = vec![member(1)];
    cluster.event(1, Event::NonPrimary { component });
    cluster.step_session(1, travels);
    cluster.step_toi(1, 5);
    assert_eq!(cluster.outcome(1, travels), Code::ConnFail);
    assert_eq!(
        cluster.nodes[1].server.tois[&5].0,
        Toi::Done(Code::ConnFail)
    );
    assert!(cluster.nodes[1].bulk_payloads.is_empty());
}

#[test]
fn a_large_action_is_executed_everywhere() {
    let mut cluster = cluster();
    cluster.toi(1, 5);
    spread(&mut cluster, 1);
    assert_eq!(cluster.nodes[1].server.tois[&5].0, Toi::Done(Code::Ok));
}

#[test]
fn flow_control_holds_what_has_travelled() {
    let mut cluster = cluster();
    let stop = Options {
        fc_limit: 0,
        ..Options::default()
    };
    let large = cluster.certify(1, "a", KeyType::Exclusive);
    cluster.event(0, Event::SetOptions(stop));
    cluster.nodes[0].threads = 0;
    set_large(&mut cluster, 1 << 20);
    cluster.certify(1, "b", KeyType::Exclusive);
    cluster.outlast_a_stumble();
    assert!(cluster.status(1).flow_control_active);
    cluster.event(1, Event::Spread { bulk: 1 });
    assert!(
        cluster.nodes[1].bulk_payloads.contains_key(&1),
        "it is held"
    );
    let victim = large;
    cluster.nodes[1].primary = false;
    let component = vec![member(1)];
    cluster.event(1, Event::NonPrimary { component });
    cluster.step_session(1, victim);
    assert_eq!(cluster.outcome(1, victim), Code::ConnFail);
    assert!(cluster.nodes[1].bulk_payloads.is_empty(), "and recalled");
}
