//! Messages out of turn: late ones, lost ones, and those that no correct member sends.

use super::cores::{Cores, member, replica};
use crate::entry::Body;
use crate::event::{Action, Event, Recovered};
use crate::ids::{Incarnation, Term, Uuid};
use crate::message::{Append, Message, Status, Summary, WireBody, WireEntry};

/// The next order of node 0, whose leadership it is.
fn next_append(cores: &Cores, ahead: u64) -> Append {
    let group = &cores.nodes[0].group;
    let term = group.term();
    let prev_position = group.end() + ahead;
    Append {
        term,
        prev_position,
        prev_term: term,
        entries: vec![WireEntry {
            position: prev_position + 1,
            term,
            body: WireBody::Full(Body::TermStart),
        }],
        ack: 0,
        commit: 0,
    }
}

#[test]
fn who_is_not_connected_is_not_heard() {
    let mut cores = Cores::of(2);
    let before = cores.nodes[1].group.clone();
    let stranger = Incarnation(Uuid([77; 16]));
    let message = Message::Append(next_append(&cores, 0));
    let event = Event::Message {
        from: stranger,
        message,
    };
    cores.event(1, event);
    assert_eq!(cores.nodes[1].group.end(), before.end());
    assert_eq!(cores.nodes[1].group.term(), before.term());
}

#[test]
fn an_order_that_follows_nothing_known_is_asked_for_again() {
    let mut cores = Cores::of(2);
    let end = cores.nodes[1].group.end();
    cores.arrived.clear();
    cores.say(0, 1, Message::Append(next_append(&cores, 3)));
    assert_eq!(cores.nodes[1].group.end(), end);
    let asked = |(to, message): &(usize, Message)| {
        *to == 0 && matches!(message, Message::Summary { summary, .. } if summary.end == end)
    };
    assert!(cores.arrived.iter().any(asked));
}

#[test]
fn only_its_owner_speaks_for_a_term() {
    let mut cores = Cores::of(3);
    let term = Term {
        number: cores.nodes[1].group.term().number + 1,
        replica: replica(2),
    };
    let claim = |term| Append {
        term,
        prev_position: 0,
        prev_term: Term::default(),
        entries: Vec::new(),
        ack: 0,
        commit: 0,
    };
    let before = cores.nodes[1].group.term();
    // Node 0 claims node 2's term; somebody claims node 1's own.
    cores.say(0, 1, Message::Append(claim(term)));
    cores.say(0, 1, Message::Prepare { term, forced: None });
    let own = Term {
        replica: replica(1),
        ..term
    };
    let copy = crate::configuration::Member {
        incarnation: Incarnation(Uuid([66; 16])),
        ..member(1)
    };
    let node = cores.start(copy, Recovered::default());
    cores.say(node, 1, Message::Append(claim(own)));
    assert_eq!(cores.nodes[1].group.term(), before);
    // An old term is answered with the one in force.
    cores.arrived.clear();
    let old = Term {
        number: 0,
        replica: replica(2),
    };
    cores.say(2, 1, Message::Append(claim(old)));
    let refused = (2, Message::Refuse { promised: before });
    assert!(cores.arrived.contains(&refused));
}

#[test]
fn an_answer_to_nothing_changes_nothing() {
    let mut cores = Cores::of(3);
    let term = cores.nodes[1].group.term();
    let position = cores.nodes[1].group.end();
    for message in [
        Message::PreVoteReply {
            term,
            granted: true,
        },
        Message::Refuse { promised: term },
        Message::Leave,
        Message::Weight { weight: 9 },
        Message::Summary {
            term,
            summary: Summary::default(),
        },
        Message::LogEndReply {
            round: 99,
            term,
            end: 1,
        },
        Message::LogEndReply {
            round: 99,
            term: Term::default(),
            end: 1,
        },
    ] {
        cores.say(2, 1, message);
    }
    cores.pass(1_000);
    let group = &cores.nodes[1].group;
    assert_eq!((group.term(), group.end()), (term, position));
    assert_eq!(group.configuration().total_weight(), 3);
}

#[test]
fn what_no_correct_member_sends_is_noted_and_ignored() {
    let mut cores = Cores::of(2);
    let group = &cores.nodes[0].group;
    let (term, end) = (group.term(), group.end());
    let absurd = Term {
        number: u64::MAX,
        ..term
    };
    let gap = Append {
        entries: vec![WireEntry {
            position: end + 5,
            term,
            body: WireBody::Full(Body::TermStart),
        }],
        ..next_append(&cores, 0)
    };
    let checkpoint = crate::checkpoint::Checkpoint::default();
    let wrong = [
        Message::Status(Status {
            term,
            end: u64::MAX,
            ..Status::default()
        }),
        Message::Append(gap),
        Message::Install {
            term,
            checkpoint,
            intact_at: 0,
        },
        Message::Summary {
            term,
            summary: Summary {
                end: u64::MAX,
                ..Summary::default()
            },
        },
        Message::PreVote { term: absurd },
        Message::Refuse { promised: absurd },
        Message::TakeLeadership {
            number: u64::MAX,
            forced: None,
        },
        Message::LogEndReply {
            round: 1,
            term,
            end: u64::MAX,
        },
    ];
    for (count, message) in wrong.into_iter().enumerate() {
        cores.say(0, 1, message);
        let ignored =
            |a: &&Action| matches!(a, Action::Note { text } if text.contains("no correct member"));
        let notes = cores.nodes[1].actions.iter().filter(ignored).count();
        assert_eq!(notes, count + 1);
        cores.pass(10_000); // a peer is complained of so often
    }
    let group = &cores.nodes[1].group;
    assert_eq!((group.term(), group.end()), (term, end));
}

fn noted(cores: &Cores, node: usize, what: &str) -> usize {
    let says = |a: &&Action| matches!(a, Action::Note { text } if text.contains(what));
    cores.nodes[node].actions.iter().filter(says).count()
}

/// Below the sender's term lies another one than in the recipient's log, at an entry that is committed there.
#[test]
fn an_order_that_contradicts_what_is_committed_is_refused() {
    for back in 0..2 {
        let mut cores = Cores::of(3);
        cores.submit(0, 1);
        let group = &cores.nodes[2].group;
        let (term, commit) = (group.term(), group.commit());
        let own = Term {
            number: term.number + 1,
            replica: replica(1),
        };
        let entry = |position| WireEntry {
            position,
            term: Term::default(),
            body: WireBody::Full(Body::TermStart),
        };
        let first = commit + 1 - back;
        let append = Append {
            term: own,
            prev_position: first - 1,
            prev_term: Term::default(),
            entries: (first..=commit + 1).map(entry).collect(),
            ack: 0,
            commit: 0,
        };
        cores.lost = |_| true;
        for _ in 0..3 {
            cores.say(1, 2, Message::Append(append.clone()));
        }
        let group = &cores.nodes[2].group;
        assert_eq!((group.end(), group.commit()), (commit, commit));
        assert_eq!(noted(&cores, 2, "histories are not the same"), 1);
        // Nobody goes on so: the others are followed again.
        cores.lost = |_| false;
        cores.pass(3_000);
        cores.submit(0, 2);
        cores.pass(1_000);
        assert_eq!([0, 1, 2].map(|node| cores.delivered(node)), [2, 2, 2]);
    }
}

/// A leader whose history is another one under the same name: this node is not primary under it.
#[test]
fn who_cannot_follow_its_leader_is_not_primary() {
    let mut cores = Cores::of(3);
    cores.submit(0, 1);
    let group = &cores.nodes[2].group;
    let (term, commit) = (group.term(), group.commit());
    let entries = Vec::new();
    let append = Append {
        term,
        prev_position: commit,
        prev_term: Term::default(),
        entries,
        ack: 0,
        commit,
    };
    cores.lost = |message| matches!(message, Message::Append(_));
    for _ in 0..100 {
        cores.say(0, 2, Message::Append(append.clone()));
        cores.pass(100);
    }
    assert_eq!(
        cores.component_state(2),
        crate::message::ComponentState::NonPrimary
    );
    assert_eq!(cores.nodes[2].group.commit(), commit);
}

/// It has asked both for admission while it had no history, and is in one of them by now.
#[test]
fn a_joiner_between_two_clusters_is_in_one() {
    let mut cores = Cores::of(2);
    let other = cores.start(member(5), Recovered::default());
    let history = Uuid([8; 16]);
    cores.event(
        other,
        Event::Bootstrap {
            history,
            overrides: Vec::new(),
            override_id: None,
        },
    );
    cores.pass(1_000);
    // The other one's word comes late.
    let joiner = cores.nodes.len();
    cores
        .lines_ms
        .extend([((joiner, other), 60), ((other, joiner), 60)]);
    let joiner = cores.start(member(6), Recovered::default());
    cores.pass(20_000);
    assert_eq!(cores.members(0), ["node0", "node1", "node6"]);
    assert_eq!(cores.members(joiner), ["node0", "node1", "node6"]);
    assert_eq!(cores.members(other), ["node5"]);
    let group = &cores.nodes[joiner].group;
    let (term, end) = (group.term(), group.end());
    assert_eq!(group.history(), super::cores::HISTORY);
    let foreign = Term {
        number: term.number + 10,
        replica: replica(5),
    };
    let forced = None;
    let checkpoint = crate::checkpoint::Checkpoint {
        position: end + 5,
        ..cores.nodes[other].group.checkpoint().clone()
    };
    for message in [
        Message::Prepare {
            term: foreign,
            forced,
        },
        Message::Append(Append {
            term: foreign,
            prev_position: end,
            prev_term: term,
            entries: Vec::new(),
            ack: 0,
            commit: 0,
        }),
        Message::Install {
            term: foreign,
            checkpoint,
            intact_at: 0,
        },
    ] {
        cores.say(other, joiner, message);
    }
    let group = &cores.nodes[joiner].group;
    assert_eq!((group.term(), group.end()), (term, end));
    assert_eq!(noted(&cores, joiner, "which is in the cluster"), 1);
}
