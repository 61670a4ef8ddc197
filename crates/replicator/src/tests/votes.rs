//! Votes on apply errors.

use trireme_certification::KeyType;
use trireme_group::Incarnation;

use super::driver::{Cluster, incarnation, member};
use super::server::{Happened, Toi};
use crate::votes::{Ballot, Origin, Votes, ballot};
use crate::wire::Reader;
use crate::{Action, Code, Event, Gtid, HostAction, Options, Seqno};

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

pub(super) fn left(cluster: &Cluster) -> Vec<usize> {
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
            assert!(
                cluster.nodes[node]
                    .actions
                    .contains(&Action::Host(HostAction::MarkCorrupt))
            );
            assert_eq!(cluster.comment(node), "Inconsistent");
            assert!(
                cluster.nodes[node]
                    .logs
                    .iter()
                    .any(|l| l.contains("Inconsistent by consensus on")
                        || l.contains("Vote 0 (success) on"))
            );
            let actions = &cluster.nodes[node].actions;
            let after = actions
                .iter()
                .skip_while(|a| **a != Action::Host(HostAction::MarkCorrupt));
            assert!(
                !after
                    .into_iter()
                    .any(|a| matches!(a, Action::Host(HostAction::SaveState { .. })))
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

/// Its client has been told of the success, and nobody else who votes knows of it.
#[test]
fn a_vote_waits_for_the_origin_of_a_ddl_although_that_is_desynced() {
    let mut cluster = Cluster::of(2);
    let ticket = cluster.nodes[0].server.ticket();
    cluster.event(0, Event::Desync { ticket });
    cluster.settle();
    let seqno = cluster.nodes[0].replicator.last_seqno().unwrap() + 1;
    let errors = &mut cluster.nodes[1].server.errors;
    errors.insert(seqno, b"disk full".to_vec());
    cluster.toi(0, 5);
    cluster.settle();
    assert_eq!(left(&cluster), [1]);
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
    assert_eq!(cluster.nodes[0].server.tois[&5].0, Toi::Done(Code::Ok));
    assert!(cluster.nodes[0].closed);
}

/// Who has left can neither vote nor be waited for, but has committed what it sent (found by the simulator).
#[test]
fn the_origin_of_a_write_set_counts_as_a_success_if_nobody_waits_for_it() {
    let [origin, voter, other] = [0, 1, 2].map(incarnation);
    let decide = |voters: &[(Incarnation, Seqno)], ballots: &[(Incarnation, Ballot)]| {
        let mut votes = Votes::default();
        for (from, ballot) in ballots {
            votes.cast(10, *from, *ballot, 0);
        }
        let voters = voters.iter().copied().collect();
        votes.decide(&voters, |_| Some(Origin::HasCommitted(origin)), 0)
    };
    // Success wins the tie with the only voter's error.
    assert_eq!(decide(&[(voter, 9)], &[(voter, 7)]), [(10, 0)]);
    // Two agree on an error against the silent origin.
    let both = [(voter, 7), (other, 7)];
    assert_eq!(decide(&[(voter, 9), (other, 9)], &both), [(10, 7)]);
    // An origin that votes, or is waited for, is not counted twice.
    let three = [(voter, 7), (origin, 7)];
    assert_eq!(decide(&[(voter, 9)], &three), [(10, 7)]);
    assert_eq!(decide(&[(voter, 9), (origin, 9)], &[(voter, 7)]), []);
}

#[test]
fn who_has_applied_more_without_a_word_has_had_no_error() {
    let [one, two] = [0, 1].map(incarnation);
    let mut votes = Votes::default();
    votes.cast(10, one, 7, 0);
    let voters = |applied| [(one, 9), (two, applied)].into();
    assert_eq!(votes.decide(&voters(9), |_| None, 0), []);
    assert_eq!(votes.decide(&voters(10), |_| None, 0), [(10, 0)]);
    // Only so many results are kept for who votes late.
    for seqno in 11..100 {
        votes.cast(seqno, one, 7, 0);
        votes.decide(&[(one, 9)].into(), |_| None, 0);
    }
    assert_eq!((votes.result(35), votes.result(36)), (None, Some(7)));
}

/// Behind the floor the origin is not known any more (found by the simulator: a lone voter's own error won).
#[test]
fn a_vote_on_what_all_had_applied_counts_their_success() {
    let one = incarnation(0);
    let decide = |applied_by_all| {
        let mut votes = Votes::default();
        votes.cast(10, one, 7, 0);
        votes.decide(&[(one, 9)].into(), |_| None, applied_by_all)
    };
    assert_eq!(decide(9), [(10, 7)]);
    assert_eq!(decide(10), [(10, 0)]);
}

/// Node 2 applies what has been ordered, and its ballot does not get out.
fn cut_off(cluster: &mut Cluster) {
    cluster.deliver(2);
    cluster.nodes[2].primary = false;
    let component = vec![member(2)];
    cluster.event(2, Event::NonPrimary { component });
    while cluster.take_work(2) || cluster.step_applier(2, 0) {}
}

/// The log of node 2 begins anew, and it is admitted again.
fn come_back(cluster: &mut Cluster) {
    cluster.nodes[2].primary = true;
    cluster.reset(2);
    cluster.reconfigure(|c| {
        let mut back = member(2);
        (back.weight, back.voter) = (0, false);
        c.members.push(back);
    });
}

/// A member that waits for a vote is cut off, and its log begins anew.
#[test]
fn who_was_away_while_its_error_was_voted_on_learns_the_result() {
    for agreed in [true, false] {
        let mut cluster = Cluster::of(3);
        let seqno = cluster.nodes[0].replicator.last_seqno().unwrap() + 1;
        for node in if agreed { 0..3 } else { 2..3 } {
            let errors = &mut cluster.nodes[node].server.errors;
            errors.insert(seqno, b"exists".to_vec());
        }
        cluster.toi(0, 5);
        cut_off(&mut cluster);
        assert!(
            cluster.nodes[2]
                .actions
                .contains(&Action::Host(HostAction::MarkUnsafe))
        );
        cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(2)));
        cluster.settle();
        assert_eq!(cluster.nodes[0].server.tois[&5].0, Toi::Done(Code::Ok));
        come_back(&mut cluster);
        cluster.settle();
        assert_eq!(left(&cluster).is_empty(), agreed);
        let comment = if agreed { "Synced" } else { "Inconsistent" };
        assert_eq!(cluster.comment(2), comment);
        cluster.assert_settled();
    }
}

/// It has applied an action that failed at the others. They decide while it is away, and its log begins anew. What
/// failed everywhere before does not count against it.
#[test]
fn who_was_away_while_others_failed_on_what_it_applied_has_diverged() {
    for failed_elsewhere in [false, true] {
        let mut cluster = vote(3, &[(0, "exists"), (1, "exists"), (2, "exists")]);
        let seqno = cluster.nodes[0].replicator.last_seqno().unwrap() + 1;
        for node in if failed_elsewhere { 0..2 } else { 0..0 } {
            let errors = &mut cluster.nodes[node].server.errors;
            errors.insert(seqno, b"exists".to_vec());
        }
        cluster.toi(0, 6);
        cut_off(&mut cluster);
        cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(2)));
        cluster.settle();
        come_back(&mut cluster);
        cluster.settle();
        let comment = if failed_elsewhere {
            "Inconsistent"
        } else {
            "Synced"
        };
        assert_eq!(cluster.comment(2), comment);
        assert_eq!(left(&cluster).is_empty(), !failed_elsewhere);
        cluster.assert_settled();
    }
}

/// Its log begins anew, and it stays a member. Nobody has voted yet: it votes when it is in step again.
#[test]
fn an_error_beside_a_log_that_begins_anew_is_voted_on() {
    for (agreed, after_reset) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut cluster = Cluster::of(3);
        let seqno = cluster.nodes[0].replicator.last_seqno().unwrap() + 1;
        for node in if agreed { 0..3 } else { 2..3 } {
            let errors = &mut cluster.nodes[node].server.errors;
            errors.insert(seqno, b"exists".to_vec());
        }
        cluster.toi(0, 5);
        cluster.deliver(2);
        cluster.nodes[2].primary = after_reset;
        while !after_reset && (cluster.take_work(2) || cluster.step_applier(2, 0)) {}
        cluster.nodes[2].primary = true;
        cluster.reset(2);
        cluster.reconfigure(|_| ());
        while cluster.take_work(2) || cluster.step_applier(2, 0) {}
        cluster.settle();
        assert_eq!(left(&cluster).is_empty(), agreed, "{after_reset}");
        let comment = if agreed { "Synced" } else { "Inconsistent" };
        assert_eq!(cluster.comment(2), comment, "{after_reset}");
        cluster.assert_settled();
    }
}

/// It has more to pull than it queues behind the entry that failed: it votes before it has caught up.
#[test]
fn an_error_that_holds_up_what_is_pulled_is_voted_on() {
    for agreed in [true, false] {
        let mut cluster = Cluster::of(3);
        let seqno = cluster.nodes[0].replicator.last_seqno().unwrap() + 1;
        for node in if agreed { 0..3 } else { 2..3 } {
            let errors = &mut cluster.nodes[node].server.errors;
            errors.insert(seqno, b"exists".to_vec());
        }
        let mut options = Options::default();
        (options.ist_chunk_bytes, options.thresholds.pulled_entries) = (1, 1);
        cluster.event(2, Event::SetOptions(options));
        cluster.toi(0, 5);
        cluster.deliver(2);
        for key in ["a", "b", "c", "d"] {
            cluster.certify(1, key, KeyType::Exclusive);
        }
        cluster.deliver(0);
        cluster.deliver(1);
        cluster.reset(2);
        cluster.reconfigure(|_| ());
        cluster.settle();
        assert_eq!(left(&cluster).is_empty(), agreed);
        let comment = if agreed { "Synced" } else { "Inconsistent" };
        assert_eq!(cluster.comment(2), comment);
        cluster.assert_settled();
    }
}

/// A member takes a snapshot from one that is ahead: the vote over an action that failed, and is within the
/// snapshot, comes to it later (found by the simulator: seed 1246 of profile bulk-payloads).
#[test]
fn who_got_a_failed_action_with_its_snapshot_stays() {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    // Deliveries to the joiner are late from here on.
    cluster.nodes[joiner].primary = false;
    let seqno = cluster.nodes[0].replicator.last_seqno().unwrap() + 1;
    for node in 0..2 {
        let errors = &mut cluster.nodes[node].server.errors;
        errors.insert(seqno, b"exists".to_vec());
    }
    cluster.toi(0, 5);
    cluster.settle();
    assert_eq!(cluster.nodes[0].server.tois[&5].0, Toi::Done(Code::Ok));
    cluster.certify(0, "later", KeyType::Exclusive);
    cluster.settle();
    cluster.snapshot_from(0, joiner);
    cluster.nodes[joiner].primary = true;
    cluster.settle();
    assert_eq!(left(&cluster), []);
    assert_eq!(cluster.comment(joiner), "Synced");
    cluster.assert_settled();
}

/// gcs.vote_policy: so many who applied it are enough, whatever the others say, and nobody is waited for.
#[test]
fn so_many_successes_as_the_policy_asks_for_decide_at_once() {
    let [one, two, three, four] = [0, 1, 2, 3].map(incarnation);
    let decide = |policy, ballots: &[(Incarnation, Ballot)], applied: &[(Incarnation, Seqno)]| {
        let mut votes = Votes::default();
        for (from, ballot) in ballots {
            votes.cast(10, *from, *ballot, policy);
        }
        // It goes with the votes to a joiner.
        let mut bytes = Vec::new();
        votes.encode(&mut bytes);
        let mut votes = Votes::decode(&mut Reader::new(bytes.into())).unwrap();
        let voters = applied.iter().copied().collect();
        votes.decide(&voters, |_| None, 0)
    };
    let errors = [(one, 7), (two, 7)];
    let all = |applied| [(one, 9), (two, 9), (three, applied), (four, 9)];
    assert_eq!(
        decide(0, &errors, &all(10)),
        [],
        "the fourth may say the same"
    );
    assert_eq!(decide(1, &errors, &all(10)), [(10, 0)]);
    assert_eq!(decide(1, &errors, &all(9)), []);
    assert_eq!(decide(2, &errors, &all(10)), []);
    let ballots = [(one, 7), (two, 7), (four, 0)];
    assert_eq!(decide(2, &ballots, &all(10)), [(10, 0)]);
    // With fewer than that it is as without a policy.
    let ballots = [(one, 7), (two, 7), (four, 7)];
    assert_eq!(decide(2, &ballots, &all(10)), [(10, 7)]);
}

#[test]
fn the_policy_of_who_opens_a_vote_counts() {
    let [one, two] = [0, 1].map(incarnation);
    for (policies, winner) in [([1, 0], 0), ([0, 1], 7)] {
        let mut votes = Votes::default();
        votes.cast(10, one, 7, policies[0]);
        votes.cast(10, two, 7, policies[1]);
        let voters = [(one, 9), (two, 9), (incarnation(2), 10)].into();
        assert_eq!(votes.decide(&voters, |_| None, 0), [(10, winner)]);
    }
}

/// What MariaDB 10.11 hands over, in two languages and after a total-order action.
#[test]
fn ballots_are_on_the_numbers_of_errors_and_not_on_their_texts() {
    let ballot_of = |text: &'static str| ballot(5, &text.as_bytes().into());
    let english = ballot_of(" Duplicate entry '1' for key 'PRIMARY', Error_code: 1062;\0");
    let french = ballot_of(" Duplicata du champ '1' pour la clef 'PRIMARY', Error_code: 1062;\0");
    assert_eq!(english, french);
    assert_eq!(english, ballot_of(" Error_code: 1062;\0"));
    let two = ballot_of(" a, Error_code: 1062; b, Error_code: 1026;\0");
    let others = [
        ballot_of(" Error_code: 1050;\0"),
        ballot_of(" a, Error_code: 1026; b, Error_code: 1062;\0"),
        ballot_of("Error_code: "),
        ballot_of("a failure without a number"),
        ballot_of("another failure without a number"),
        ballot(6, &" Error_code: 1062;\0".as_bytes().into()),
        two,
        english,
    ];
    let distinct: std::collections::BTreeSet<_> = others.iter().collect();
    assert_eq!(distinct.len(), others.len());
}
