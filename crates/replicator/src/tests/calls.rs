//! Calls that are cancelled, refused, or made at the wrong moment.

use bytes::Bytes;
use trireme_certification::KeyType;
use trireme_group::{Delivery, Fate, Incarnation, SubmissionId, Uuid};

use super::driver::{Cluster, draft, incarnation, member};
use super::server::{Applier, Toi};
use crate::{
    Action, Answer, Code, Event, GroupAction, Gtid, HostAction, NoHistory, Owner, Replicator, Task,
    Work,
};

/// What a replicator says to one event.
fn say(replicator: &mut Replicator, event: Event) -> Vec<Action> {
    let mut out = Vec::new();
    replicator.handle(0, event, &NoHistory, &mut out);
    out
}

/// Node 1's data are not the others'.
fn inconsistent() -> Cluster {
    let mut cluster = Cluster::of(2);
    let seqno = cluster.nodes[0].replicator.last_seqno().expect("in step") + 1;
    cluster.nodes[1]
        .server
        .errors
        .insert(seqno, b"disk".to_vec());
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.comment(1), "Inconsistent");
    cluster
}

#[test]
fn who_does_not_wait_for_its_read_any_more_gets_no_answer() {
    let mut cluster = Cluster::of(2);
    let asked = 901;
    let out = say(
        &mut cluster.nodes[1].replicator,
        Event::SyncWait {
            ticket: asked,
            upto: None,
        },
    );
    assert_eq!(out, [Action::Group(GroupAction::Read { token: asked })]);
    cluster.event(1, Event::CancelTicket { ticket: asked });
    cluster.event(
        1,
        Event::ReadPoint {
            token: asked,
            position: 0,
        },
    );
    cluster.event(1, Event::ReadFailed { token: asked });

    cluster.certify(0, "a", KeyType::Exclusive);
    let (undelivered, unapplied, heard) = (902, 903, 904);
    let read = |ticket| Event::SyncWait { ticket, upto: None };
    cluster.event(1, read(undelivered));
    cluster.event(
        1,
        Event::CancelTicket {
            ticket: undelivered,
        },
    );
    cluster.event(1, read(unapplied));
    cluster.event(1, read(heard));
    cluster.deliver(1);
    cluster.event(1, Event::CancelTicket { ticket: unapplied });
    cluster.settle();
    let mut answered = |ticket| cluster.nodes[1].server.take(ticket).is_some();
    assert_eq!(
        [asked, undelivered, unapplied, heard].map(&mut answered),
        [false, false, false, true]
    );
}

#[test]
fn a_read_that_the_group_cannot_answer_fails() {
    let mut replicator = Cluster::of(1).nodes.remove(0).replicator;
    let codes = |out: Vec<Action>| {
        let answers = out.into_iter().filter_map(|action| match action {
            Action::Host(HostAction::Answer { ticket, answer }) => Some((ticket, answer.code)),
            _ => None,
        });
        answers.collect::<Vec<_>>()
    };
    let read = |ticket| Event::SyncWait { ticket, upto: None };
    say(&mut replicator, read(1));
    let out = say(&mut replicator, Event::ReadFailed { token: 1 });
    assert_eq!(codes(out), [(1, Code::TrxFail)]);
    say(&mut replicator, read(2));
    let component = vec![member(0)];
    let out = say(&mut replicator, Event::NonPrimary { component });
    assert_eq!(codes(out), [(2, Code::TrxFail)]);
}

#[test]
fn a_desync_that_nobody_waits_for_is_taken_back() {
    let mut cluster = Cluster::of(2);
    let ticket = 901;
    cluster.event(0, Event::Desync { ticket });
    cluster.event(0, Event::CancelTicket { ticket });
    cluster.deliver(0);
    assert_eq!(
        cluster.status(0).desync_count,
        1,
        "it was ordered after all"
    );
    cluster.settle();
    assert_eq!(
        (cluster.comment(0), cluster.status(0).desync_count),
        ("Synced", 0)
    );
    assert_eq!(cluster.nodes[0].server.take(ticket), None);
}

#[test]
fn a_pause_that_nobody_waits_for_is_over() {
    let mut cluster = Cluster::of(2);
    let open = cluster.certify(0, "a", KeyType::Exclusive);
    cluster.deliver(0);
    let ticket = 901;
    cluster.event(0, Event::Pause { ticket });
    let later = cluster.certify(0, "b", KeyType::Exclusive);
    cluster.event(0, Event::CancelTicket { ticket });
    cluster.settle();
    assert_eq!(cluster.nodes[0].server.take(ticket), None);
    for trx in [open, later] {
        assert_eq!(cluster.outcome(0, trx), Code::Ok);
    }
    cluster.assert_settled();
}

#[test]
fn what_was_never_ordered_has_no_place_in_the_order() {
    let mut cluster = Cluster::of(1);
    let unknown = Owner::Trx(77);
    let in_flight = Owner::Trx(cluster.certify(0, "a", KeyType::Exclusive));
    for (owner, code) in [(unknown, Code::Ok), (in_flight, Code::ConnFail)] {
        let answer = cluster.call(0, |ticket| Event::CommitOrderEnter { ticket, owner });
        assert_eq!(answer, Some(Answer::unordered(code)));
        let answer = cluster.call(0, |ticket| Event::CommitOrderLeave {
            ticket,
            owner,
            error: Some(Bytes::from_static(b"of no seqno")),
        });
        assert_eq!(answer, Some(Answer::unordered(Code::Ok)));
    }
    let answer = cluster.call(0, |ticket| Event::ToiEnd {
        ticket,
        conn: 77,
        error: Some(Bytes::from_static(b"of no seqno")),
    });
    assert_eq!(answer, Some(Answer::unordered(Code::Ok)));
    let answer = cluster.call(0, |ticket| Event::Replay { ticket, trx: 77 });
    assert_eq!(answer, Some(Answer::unordered(Code::TrxFail)));
    let logs = cluster.nodes[0].logs.join("\n");
    assert!(logs.contains("commit order asked for unknown transaction 77"));
    assert!(logs.contains("transaction 77 has nothing to replay"));
    cluster.settle();
    cluster.assert_settled();
}

#[test]
fn a_victim_that_is_marked_before_it_certifies_is_forgotten_on_a_node_without_a_majority() {
    let mut cluster = Cluster::of(2);
    let victim = 77;
    cluster.call(0, |ticket| Event::Abort {
        ticket,
        bf_seqno: 5,
        victim,
        executing: true,
    });
    let component = vec![member(0)];
    cluster.event(0, Event::NonPrimary { component });
    let draft = draft(victim, "k", KeyType::Exclusive, b"x");
    let answer = cluster.call(0, |ticket| Event::Certify {
        ticket,
        trx: victim,
        conn: 1,
        draft,
    });
    assert_eq!(answer, Some(Answer::unordered(Code::ConnFail)));
    assert_eq!(cluster.status(0).open_transactions, 0);
}

#[test]
fn an_inconsistent_node_takes_no_writes() {
    let mut cluster = inconsistent();
    let trx = cluster.certify(1, "b", KeyType::Exclusive);
    cluster.toi(1, 5);
    cluster.settle();
    assert_eq!(cluster.outcome(1, trx), Code::NodeFail);
    assert_eq!(
        cluster.nodes[1].server.tois[&5].0,
        Toi::Done(Code::NodeFail)
    );
    cluster.assert_settled();
}

/// Its own write-sets are ordered behind the views that removed it and took it back.
#[test]
fn what_a_member_has_sent_is_void_once_it_must_join_again() {
    let mut cluster = Cluster::of(2);
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(1)));
    cluster.reconfigure(|c| c.members.push(member(1)));
    let before = cluster.nodes[0].replicator.last_seqno().expect("in step");
    // Node 1 has not heard of it yet.
    let trx = cluster.certify(1, "a", KeyType::Exclusive);
    cluster.toi(1, 5);
    let ticket = cluster.nodes[1].server.ticket();
    cluster.event(1, Event::Desync { ticket });
    cluster.settle();
    assert_eq!(cluster.outcome(1, trx), Code::ConnFail);
    assert_eq!(
        cluster.nodes[1].server.tois[&5].0,
        Toi::Done(Code::ConnFail)
    );
    let desync = cluster.nodes[1].server.take(ticket).expect("answered");
    assert_eq!(desync.code, Code::TrxFail);
    assert_eq!(cluster.comment(1), "Synced");
    assert_eq!(cluster.nodes[0].replicator.last_seqno(), Some(before + 2));
    cluster.assert_settled();
}

#[test]
fn a_submission_of_who_is_no_member_is_void() {
    let mut cluster = Cluster::of(2);
    let before = cluster.nodes[0].replicator.last_seqno();
    let payload = draft(1, "k", KeyType::Exclusive, b"x").finish(before.expect("in step"), 0, -1);
    let id = SubmissionId {
        incarnation: Incarnation(Uuid([99; 16])),
        number: 1,
    };
    cluster.append(Delivery::Submission { id, payload });
    cluster.settle();
    assert_eq!(cluster.nodes[0].replicator.last_seqno(), before);
    cluster.assert_settled();
}

#[test]
fn the_fate_of_another_incarnations_submission_is_not_ones_own() {
    let mut cluster = Cluster::of(2);
    let trx = cluster.certify(0, "a", KeyType::Exclusive);
    let id = SubmissionId {
        incarnation: incarnation(50),
        ..cluster.last_submission(0)
    };
    let fate = Fate::Withdrawn;
    cluster.event(0, Event::Failed { id, fate });
    cluster.settle();
    assert_eq!(cluster.outcome(0, trx), Code::Ok);
}

#[test]
fn a_server_that_refuses_a_callback_cannot_go_on() {
    type IsIt = fn(&Task) -> bool;
    fn next(cluster: &mut Cluster, is_it: IsIt) -> Work {
        for _ in 0..50 {
            let appliers = &cluster.nodes[0].server.appliers;
            for (index, applier) in appliers.iter().enumerate() {
                if let Applier::Started(work) = applier {
                    if is_it(&work.task) {
                        let work = work.clone();
                        cluster.nodes[0].server.appliers.remove(index);
                        return work;
                    }
                }
            }
            let low = cluster.nodes[0].replicator.last_committed().seqno;
            if let Some(event) = cluster.nodes[0].server.step_applier(0, low) {
                cluster.event(0, event);
            }
            cluster.deliver(0);
            cluster.take_work(0);
        }
        panic!("no such callback");
    }
    let callbacks: [(IsIt, &str); 3] = [
        (|t| matches!(t, Task::Connected(_)), "refused a callback"),
        (|t| matches!(t, Task::View(_)), "refused a view"),
        (|t| matches!(t, Task::Synced), "refused a callback"),
    ];
    for (is_it, text) in callbacks {
        let mut cluster = Cluster::new();
        let node = cluster.start();
        cluster.connect(node, Gtid::UNDEFINED, Some(super::driver::HISTORY), false);
        cluster.reconfigure(|c| c.members.push(member(node)));
        let work = next(&mut cluster, is_it).id;
        cluster.event(0, Event::WorkDone { work, ok: false });
        let fatal = cluster.nodes[0].fatal.as_ref().expect("fatal");
        assert!(fatal.ends_with(text), "{fatal}");
    }
}

/// An applier may fail before it has entered commit order, or inside.
#[test]
fn a_node_that_cannot_apply_uses_up_its_place_and_leaves() {
    for entered in [false, true] {
        let mut cluster = Cluster::of(2);
        let trx = cluster.certify(0, "a", KeyType::Exclusive);
        cluster.deliver(1);
        cluster.take_work(1);
        let Some(Applier::Started(work)) = cluster.nodes[1].server.appliers.pop() else {
            panic!("nothing to apply");
        };
        let seqno = cluster.nodes[1].replicator.last_seqno().expect("in step");
        if entered {
            let owner = Owner::Applied(seqno);
            let answer = cluster.call(1, |ticket| Event::CommitOrderEnter { ticket, owner });
            assert_eq!(answer.map(|a| a.code), Some(Code::Ok));
        }
        cluster.event(
            1,
            Event::WorkDone {
                work: work.id,
                ok: false,
            },
        );
        assert_eq!(cluster.nodes[1].replicator.last_committed().seqno, seqno);
        assert!(
            cluster.nodes[1]
                .actions
                .contains(&Action::Host(HostAction::MarkCorrupt))
        );
        cluster.settle();
        assert!(cluster.nodes[1].closed);
        let owner = Owner::Applied(seqno);
        let answer = cluster.call(1, |ticket| Event::CommitOrderEnter { ticket, owner });
        assert_eq!(
            answer.map(|a| a.code),
            Some(Code::NodeFail),
            "it is used up"
        );
        assert_eq!(cluster.outcome(0, trx), Code::Ok);
        cluster.assert_settled();
    }
}

/// It joins again with what its callers were told.
#[test]
fn a_member_that_was_removed_and_taken_back_is_still_desynced() {
    let mut cluster = Cluster::of(2);
    let granted = cluster.nodes[1].server.ticket();
    cluster.event(1, Event::Desync { ticket: granted });
    cluster.settle();
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(1)));
    cluster.reconfigure(|c| c.members.push(member(1)));
    cluster.settle();
    assert_eq!(
        (cluster.comment(1), cluster.status(1).desync_count),
        ("Donor/Desynced", 1)
    );
    cluster.call(1, |ticket| Event::Resync { ticket });
    cluster.settle();
    assert_eq!(cluster.comment(1), "Synced");
    cluster.assert_settled();
}

/// It is back as anybody else, unless it is held still: then it could not become Synced.
#[test]
fn a_desync_ends_with_the_primary_component_but_for_a_paused_node() {
    for paused in [false, true] {
        let mut cluster = Cluster::of(2);
        let granted = cluster.nodes[1].server.ticket();
        cluster.event(1, Event::Desync { ticket: granted });
        cluster.settle();
        if paused {
            cluster.call(1, |ticket| Event::Pause { ticket });
        }
        cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(1)));
        let component = vec![member(1)];
        cluster.event(1, Event::NonPrimary { component });
        cluster.reconfigure(|c| c.members.push(member(1)));
        cluster.settle();
        let state = (cluster.comment(1), cluster.status(1).desync_count);
        if paused {
            assert_eq!(state.1, 1);
            cluster.call(1, |ticket| Event::Resume { ticket });
            cluster.settle();
            let state = (cluster.comment(1), cluster.status(1).desync_count);
            assert_eq!(state, ("Synced", 0), "it ends with the pause");
        } else {
            assert_eq!(state, ("Synced", 0));
        }
        // Its server says it all the same.
        cluster.call(1, |ticket| Event::Resync { ticket });
        cluster.settle();
        let state = (cluster.comment(1), cluster.status(1).desync_count);
        assert_eq!(state, ("Synced", 0));
        cluster.assert_settled();
    }
}

#[test]
fn an_inconsistent_node_does_not_pause() {
    let mut cluster = inconsistent();
    let answer = cluster.call(1, |ticket| Event::Pause { ticket });
    assert_eq!(answer, Some(Answer::unordered(Code::ConnFail)));
}

#[test]
fn a_total_order_action_that_has_seen_too_little_runs_nowhere() {
    let mut cluster = Cluster::of_length(1, 2);
    let earlier = ["a", "b", "c"].map(|key| cluster.certify(0, key, KeyType::Exclusive));
    cluster.toi(0, 5);
    cluster.settle();
    assert_eq!(cluster.outcome(0, earlier[0]), Code::Ok);
    let last = cluster.nodes[0].replicator.last_seqno().expect("in step");
    assert!(cluster.nodes[0].records.by_seqno[&last].failed);
    assert!(!cluster.nodes[0].server.database.contains_key(&last));
    assert!(
        !cluster.nodes[0]
            .actions
            .contains(&Action::Host(HostAction::MarkUnsafe))
    );
    assert_eq!(cluster.status(0).local_cert_failures, 2);
    cluster.assert_settled();
}

/// Two RSUs at once: the second's desync is granted, and reads see it, while the first holds the node still.
#[test]
fn a_node_that_is_held_still_is_desynced_once_more() {
    let mut cluster = Cluster::of(2);
    let first = cluster.nodes[0].server.ticket();
    cluster.event(0, Event::Desync { ticket: first });
    cluster.settle();
    let paused = cluster.call(0, |ticket| Event::Pause { ticket });
    assert_eq!(paused.expect("nothing is under way").code, Code::Ok);
    let ticket = cluster.nodes[0].server.ticket();
    cluster.event(0, Event::Desync { ticket });
    cluster.settle_now();
    let answer = cluster.nodes[0].server.take(ticket);
    assert_eq!(answer.expect("it does not wait").code, Code::Ok);
    assert_eq!(cluster.status(0).desync_count, 2);
    // What others say of themselves is no obstacle.
    let vote = crate::message::Message::Vote {
        seqno: 1,
        ballot: 0,
        policy: 0,
        text: String::new(),
    };
    for message in [vote, crate::message::Message::Synced] {
        let id = trireme_group::SubmissionId {
            incarnation: incarnation(1),
            number: 1000,
        };
        let payload = message.encode();
        cluster.append(trireme_group::Delivery::Submission { id, payload });
    }
    let after = cluster.nodes[0].server.ticket();
    cluster.event(0, Event::Desync { ticket: after });
    cluster.settle_now();
    let answer = cluster.nodes[0].server.take(after);
    assert_eq!(answer.expect("it does not wait").code, Code::Ok);
    cluster.call(0, |ticket| Event::Resync { ticket });
    cluster.settle_now();
    assert_eq!(cluster.status(0).desync_count, 2);
    // A write-set waits, and all that comes behind it.
    cluster.certify(1, "a", KeyType::Exclusive);
    cluster.settle_now();
    let third = cluster.nodes[0].server.ticket();
    cluster.event(0, Event::Desync { ticket: third });
    cluster.settle_now();
    assert_eq!(
        (
            cluster.status(0).desync_count,
            cluster.status(0).local_recv_queue.now
        ),
        (2, 2)
    );
    cluster.call(0, |ticket| Event::Resume { ticket }).unwrap();
    cluster.settle_now();
    assert_eq!(cluster.status(0).desync_count, 3);
}
