//! Joining by a snapshot while the order changes: the log begins anew, the majority is lost, or an override forks the
//! history.

use trireme_certification::KeyType;
use trireme_group::{Delivery, SubmissionId, Uuid};

use super::clients::kinds;
use super::driver::{Cluster, HISTORY, incarnation, member};
use crate::message::Message;
use crate::peer_message::PeerMessage;
use crate::{Action, Event, Gtid, HostAction, Note};

/// Node 0 goes one step, and the joiner hears of it.
fn hear(cluster: &mut Cluster, joiner: usize) {
    cluster.deliver(0);
    cluster.take_work(0);
    cluster.step_applier(0, 0);
    cluster.deliver(joiner);
    cluster.receive(0);
    cluster.receive(joiner);
}

/// The joiner's server goes one step.
fn act(cluster: &mut Cluster, joiner: usize) {
    cluster.take_work(joiner);
    cluster.step_applier(joiner, 0);
    cluster.pass(100);
}

/// Found by the simulator: the joiner forgot that its server was inside sst_request, and showed it views.
#[test]
fn a_snapshot_survives_that_the_joiners_log_begins_anew() {
    for (steps, brought_at_once) in [(0, false), (1, false), (2, false), (2, true)] {
        let mut cluster = Cluster::new();
        cluster.found();
        let joiner = cluster.add(Gtid::UNDEFINED);
        cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
        for _ in 0..30 {
            // Until the server is asked, has answered, or a donor sends.
            if kinds(&cluster, joiner).len() == 1 + steps.min(1) && steps < 2 {
                break;
            }
            hear(&mut cluster, joiner);
            act(&mut cluster, joiner);
        }
        cluster.take_work(joiner);
        cluster.certify(0, "a", KeyType::Exclusive);
        if steps == 0 {
            let component = vec![member(joiner)];
            cluster.event(joiner, Event::NonPrimary { component });
        }
        let donates = kinds(&cluster, 0)
            .last()
            .is_some_and(|k| k.starts_with("donate"));
        assert_eq!(donates, steps == 2);
        cluster.reset(joiner);
        cluster.reconfigure(|_| ());
        if brought_at_once {
            cluster.snapshot_from(0, joiner);
            cluster.settle();
        } else {
            cluster.settle();
            assert_eq!(kinds(&cluster, joiner)[1..], ["sst_request"], "{steps}");
            cluster.snapshot_from(0, joiner);
            cluster.settle();
        }
        assert_eq!(cluster.comment(joiner), "Synced", "{steps}");
        let shown = kinds(&cluster, joiner);
        let asked = shown.iter().filter(|k| *k == "sst_request").count();
        assert_eq!(asked, 1, "{steps}");
        // The order may take the first request, and one that repeats it: nobody lacks a donor then.
        let mut logs = cluster.nodes.iter().flat_map(|node| &node.logs);
        assert!(
            logs.all(|log| !log.contains("impossible to select")),
            "{steps}"
        );
        cluster.assert_settled();
    }
}

/// Found by the simulator: a request that was withdrawn here had been ordered by the others, whose donor sent what an
/// override had dropped by then (rule 11).
#[test]
fn a_request_given_up_before_a_fork_may_bring_a_snapshot_of_the_other_branch() {
    for begins_anew in [true, false] {
        let mut cluster = Cluster::new();
        cluster.found();
        let joiner = cluster.add(Gtid::UNDEFINED);
        cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
        for _ in 0..30 {
            // Until the server is asked; what it answers is not ordered here.
            if kinds(&cluster, joiner).contains(&"sst_request".to_string()) {
                break;
            }
            hear(&mut cluster, joiner);
            cluster.nodes[joiner].primary = kinds(&cluster, joiner).is_empty();
            act(&mut cluster, joiner);
        }
        assert_eq!(
            cluster.comment(joiner),
            "Joining: State Transfer request failed"
        );
        cluster.nodes[joiner].primary = true;
        cluster.reconfigure(|c| c.override_id = Some(trireme_group::Uuid([3; 16])));
        if begins_anew {
            cluster.reset(joiner);
            cluster.reconfigure(|c| c.override_id = None);
        }
        cluster.settle();
        let fatal = cluster.nodes[joiner].fatal.as_deref();
        assert!(
            fatal.is_some_and(|text| text.contains("forked")),
            "{fatal:?}"
        );
    }
}

/// Another branch may order the request, and its donor send, while the order here chooses another one (seed 72049 of
/// `mistakes`). Once the order here has chosen, that donor's report counts.
#[test]
fn a_joiner_whose_request_is_not_ordered_when_the_majority_is_lost_ends() {
    for is_ordered in [false, true] {
        let mut cluster = Cluster::of(1);
        let joiner = cluster.add(Gtid::UNDEFINED);
        cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
        while !kinds(&cluster, joiner).contains(&"sst_request".to_string()) {
            while cluster.deliver(0) | cluster.deliver(joiner) {}
            while cluster.receive(0) | cluster.receive(joiner) {}
            act(&mut cluster, joiner);
        }
        cluster.step_applier(joiner, 0);
        while is_ordered && cluster.deliver(joiner) {}
        let component = vec![member(joiner)];
        cluster.event(joiner, Event::NonPrimary { component });
        let fatal = cluster.nodes[joiner].fatal.as_deref();
        let is_told = fatal.is_some_and(|text| text.contains("The majority was lost before"));
        assert_eq!(is_told, !is_ordered, "{fatal:?}");
    }
}

/// It knows one override more, which it was to give up (found by the simulator: seed 1295 of profile mistakes, with other
/// code).
#[test]
fn a_member_that_has_still_to_yield_gives_nobody_its_state() {
    for yields in [true, false] {
        let mut cluster = Cluster::of(1);
        let joiner = cluster.add(Gtid::UNDEFINED);
        while cluster.deliver(0) {}
        if yields {
            let mut alone = cluster.configuration.clone();
            (alone.override_id, alone.number) = (Some(Uuid([3; 16])), alone.number + 1);
            cluster.append(Delivery::Configuration(alone));
            assert!(cluster.deliver(0));
            cluster.order.pop();
        }
        while cluster.deliver(joiner) {}
        for _ in 0..10 {
            while cluster.receive(0) | cluster.receive(joiner) {}
            cluster.pass(100);
        }
        let mut logs = cluster.nodes[joiner].logs.iter();
        let taken = logs.any(|line| line.contains("control state at position"));
        assert_eq!(taken, !yields);
    }
}

/// A snapshot that was given up was forgotten: the next view began an incremental transfer in an order that had no
/// beginning, "seqno 6 added after -1" (`liar node`, seed 107000 and 1010084191 of their day).
#[test]
fn after_a_fork_in_a_snapshot_the_next_view_begins_nothing() {
    let mut cluster = Cluster::new();
    cluster.found();
    let seqno = cluster.nodes[0].replicator.last_seqno().expect("in step");
    // The joiner's database is ahead at first.
    let joiner = cluster.add(Gtid {
        uuid: HISTORY,
        seqno: seqno + 4,
    });
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    cluster.nodes[joiner].primary = false;
    for key in ["a", "b", "c", "d", "e"] {
        cluster.certify(0, key, KeyType::Exclusive);
    }
    cluster.reconfigure(|c| {
        c.override_id = Some(trireme_group::Uuid([3; 16]));
        c.fork_after = 1000;
    });
    cluster.settle();
    cluster.nodes[joiner].primary = true;
    cluster.reset(joiner);
    cluster.reconfigure(|c| c.override_id = None);
    while cluster.deliver(0) | cluster.deliver(joiner) | cluster.receive(0) {}
    cluster.reconfigure(|c| c.members[0].name.push('x'));
    cluster.deliver(joiner);
    let before = cluster.nodes[joiner].actions.len();
    cluster.receive(joiner);
    let fatal = cluster.nodes[joiner].fatal.as_deref();
    assert!(
        fatal.is_some_and(|text| text.contains("forked")),
        "{fatal:?}"
    );
    for _ in 0..10 {
        cluster.pass(100);
        while cluster.receive(0) | cluster.receive(joiner) {}
    }
    let actions = &cluster.nodes[joiner].actions[before..];
    let begins = |action: &&Action| matches!(action, Action::Note(Note::Overrides { .. }));
    assert_eq!(actions.iter().find(begins), None);
}

/// Found by the simulator: the group waited for ever for a donor whose log began anew before it had begun.
#[test]
fn a_donation_that_a_reset_has_swallowed_is_given_up() {
    let mut cluster = Cluster::of(2);
    (cluster.nodes[0].threads, cluster.nodes[1].threads) = (0, 0);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    let donates = |cluster: &Cluster, node: usize| {
        let control = cluster.nodes[joiner].replicator.context().control();
        control.expect("in step").members.states()[&incarnation(node)]
            .donates_to
            .is_some()
    };
    let donor = (0..2).find(|node| donates(&cluster, *node));
    let donor = donor.expect("one is chosen");
    cluster.reset(donor);
    cluster.reconfigure(|_| ());
    (cluster.nodes[0].threads, cluster.nodes[1].threads) = (4, 4);
    cluster.settle();
    assert!((0..2).all(|node| !donates(&cluster, node)));
    assert_eq!(cluster.comment(donor), "Synced");
    let fatal = cluster.nodes[joiner].fatal.as_deref();
    assert!(fatal.is_some_and(|text| text.contains("Need to abort")));
}

/// A snapshot arrives while the joiner is cut off, from a donor that has gone on. The joiner's log then goes on with an
/// override, without the donor: entries of the snapshot are dropped there, or are other ones.
#[test]
fn a_snapshot_whose_donor_is_not_of_the_overrides_branch_is_not_used() {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    cluster.nodes[joiner].primary = false;
    let component = vec![member(joiner)];
    cluster.event(joiner, Event::NonPrimary { component });
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    cluster.snapshot_from(0, joiner);
    assert_eq!(
        cluster.comment(joiner),
        "Initialized",
        "the donor's report is not ordered here"
    );
    cluster.believes = false; // the branches have other control states at one position
    let last = cluster.nodes[joiner].next - 1;
    let mut alone = cluster.configuration.clone();
    alone.members.retain(|m| m.incarnation != incarnation(0));
    alone.override_id = Some(Uuid([3; 16]));
    alone.fork_after = cluster.order[last].0;
    alone.number += 1;
    let position = alone.fork_after + 1;
    let delivery = Delivery::Configuration(alone);
    cluster.hand(joiner, (position, delivery), true);
    let fatal = cluster.nodes[joiner].fatal.as_deref();
    assert!(
        fatal.is_some_and(|text| text.contains("no longer in the group")),
        "{fatal:?}"
    );
}

/// A process that was killed in between restarted with a position, and with the notes on the database that was replaced.
#[test]
fn grastate_dat_vouches_for_a_snapshot_only_when_its_notes_are_kept() {
    let mut cluster = Cluster::of(1);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    let before = cluster.nodes[joiner].actions.len();
    cluster.snapshot_from(0, joiner);
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    let actions = &cluster.nodes[joiner].actions[before..];
    let is_vouched = |action: &Action| {
        use HostAction::{MarkSafe, MarkUncorrupt, SaveState};
        matches!(
            action,
            Action::Host(MarkUncorrupt | MarkSafe | SaveState { .. })
        )
    };
    let is_note = |action: &Action| {
        matches!(
            action,
            Action::Note(Note::Action { .. } | Note::Overrides { .. })
        )
    };
    let vouched = actions.iter().position(is_vouched);
    let noted = actions.iter().rposition(is_note);
    assert!(noted.is_some() && noted < vouched, "{noted:?} {vouched:?}");
}

/// The member that lent the control state was on another branch, which had another entry without a seqno. An SST replaces
/// the database, and not the control state.
#[test]
fn a_joiner_keeps_no_control_state_of_another_branch() {
    for is_of_another in [true, false] {
        let mut cluster = Cluster::of(1);
        let joiner = cluster.add(Gtid::UNDEFINED);
        cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
        let view = cluster.order.last().expect("it is admitted").0;
        let (incarnation, number) = (incarnation(0), 1_000);
        let id = SubmissionId {
            incarnation,
            number,
        };
        let payload = Message::Applied(0).encode();
        cluster.append(Delivery::Submission { id, payload });
        cluster.settle();
        let last = cluster.order.last().expect("a donor is chosen").0;
        assert_eq!(cluster.comment(joiner), "Joining: receiving State Transfer");
        cluster.reconfigure(|c| {
            c.override_id = Some(Uuid([3; 16]));
            c.fork_after = if is_of_another { view } else { last };
        });
        cluster.settle();
        let fatal = cluster.nodes[joiner].fatal.as_deref();
        let is_told = fatal.is_some_and(|text| text.contains("has forked the history"));
        assert_eq!(is_told, is_of_another, "{fatal:?}");
    }
}

/// The joiner's log may never come so far: the other branch can stay idle.
#[test]
fn a_control_state_ahead_of_an_override_is_asked_for_again() {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.add(Gtid::UNDEFINED);
    while cluster.deliver(0) | cluster.deliver(joiner) {}
    for key in ["a", "b", "c", "d", "e"] {
        cluster.certify(0, key, KeyType::Exclusive);
    }
    while cluster.deliver(0) {}
    cluster.receive(0);
    cluster.receive(joiner);
    cluster.nodes[1].inbox.clear();
    cluster.pass(10_000);
    assert!(!is_asked_for_control_state(&mut cluster, 1), "it has come");
    cluster.believes = false; // the branches have other control states at one position
    let mut alone = cluster.configuration.clone();
    alone.members.retain(|m| m.incarnation != incarnation(0));
    alone.override_id = Some(Uuid([3; 16]));
    alone.fork_after = cluster.order[cluster.nodes[joiner].next - 1].0;
    alone.number += 1;
    let position = alone.fork_after + 1;
    let delivery = Delivery::Configuration(alone);
    cluster.hand(joiner, (position, delivery), true);
    assert!(is_asked_for_control_state(&mut cluster, 1));
}

fn is_asked_for_control_state(cluster: &mut Cluster, node: usize) -> bool {
    let decoded = |(_, bytes)| PeerMessage::decode(bytes).expect("of a node");
    let is_request = |message| matches!(message, PeerMessage::SnapshotRequest { .. });
    let mut inbox = cluster.nodes[node].inbox.drain(..).map(decoded);
    inbox.any(is_request)
}
