//! Messages and logs that once ended a process: what decodes and comes from a peer never does.

use super::cores::{Cores, HISTORY, member, replica};
use crate::branches::OVERRIDES_MAX;
use crate::codec::{decode, encode};
use crate::configuration::{Configuration, Member};
use crate::entry::{Body, Entry};
use crate::event::{Event, RecoveredLog};
use crate::ids::{Incarnation, Position, ReplicaId, SubmissionId, Term, Uuid};
use crate::limits::NUMBER_STEP_MAX;
use crate::message::{Append, ComponentState, Join, Message, Status, Summary, WireBody, WireEntry};
use crate::tail::SUMMARY_RUNS_SENT;

/// The longest frame of a process that is no member (docs/wire-transport.md).
const STRANGERS_FRAME_BYTES: usize = 64 << 10;

fn term_of_0(number: u64) -> Term {
    Term {
        number,
        replica: replica(0),
    }
}

/// Order records of node 0 behind the log of node 1, which has the same end.
fn append(cores: &Cores, terms: impl Iterator<Item = u64>, body: &Body) -> Append {
    let group = &cores.nodes[1].group;
    let (end, end_term) = (group.end(), group.term());
    let entry = |(number, position)| WireEntry {
        position,
        term: term_of_0(number),
        body: WireBody::Full(body.clone()),
    };
    let entries: Vec<_> = terms.zip(end + 1..).map(entry).collect();
    Append {
        term: entries.last().map_or(end_term, |last| last.term),
        prev_position: end,
        prev_term: end_term,
        entries,
        ack: 0,
        commit: 0,
    }
}

/// What node 1 tells node 0 of its log.
fn summary_told(cores: &Cores) -> Option<Summary> {
    let told = |(to, message): &(usize, Message)| match message {
        Message::Summary { summary, .. } if *to == 0 => Some(summary.clone()),
        _ => None,
    };
    cores.arrived.iter().rev().find_map(told)
}

#[test]
fn order_records_that_wait_for_a_payload_are_bounded() {
    let mut cores = Cores::of(2);
    cores.part(&[0], &[1]);
    cores.nodes[1]
        .group
        .config_mut()
        .thresholds
        .incoming_records = 4;
    let number = cores.nodes[1].group.term().number;
    let numbers = std::iter::repeat_n(number, 10);
    let mut record = append(&cores, numbers, &Body::TermStart);
    for (entry, number) in record.entries.iter_mut().zip(1..) {
        let id = SubmissionId {
            incarnation: cores.incarnation(0),
            number,
        };
        let (len, digest) = (1, 0);
        entry.body = WireBody::Reference { id, len, digest };
    }
    let end = record.prev_position;
    cores.say(0, 1, Message::Append(record));
    let group = &cores.nodes[1].group;
    assert_eq!(
        (group.matching.incoming().len(), group.matching.agreed()),
        (4, end + 4)
    );
}

/// Each promise that waits for the disk lists configurations: megabytes, if many wait.
#[test]
fn promises_that_are_overtaken_before_they_are_on_disk_are_forgotten() {
    let mut cores = Cores::of(2);
    let from = cores.incarnation(0);
    let group = &mut cores.nodes[1].group;
    let first = group.term().number + 1;
    for number in first..first + 1_000 {
        let message = Message::Prepare {
            term: term_of_0(number),
            forced: None,
        };
        group.handle(1_000, Event::Message { from, message });
    }
    assert_eq!(group.term(), term_of_0(first + 999));
    assert_eq!(group.vote.held(), 1);
}

#[test]
fn a_log_of_more_terms_than_a_list_has_room_for_is_summed_up() {
    let mut cores = Cores::of(2);
    cores.part(&[0], &[1]); // node 0 itself says nothing of this
    let count = 65_545;
    let first = cores.nodes[1].group.term().number + 1;
    let mut record = append(&cores, first..first + count, &Body::TermStart);
    let end = record.prev_position + count;
    cores.say(0, 1, Message::Append(record.clone()));
    assert_eq!(cores.nodes[1].group.end(), end);
    cores.cut.clear();
    // A gap: node 1 tells what it has.
    record.prev_position = end + 5;
    record.entries.clear();
    cores.pass_for(&[1], 1_000);
    cores.arrived.clear();
    cores.say(0, 1, Message::Append(record));
    let summary = summary_told(&cores).expect("it asks for what it lacks");
    assert_eq!((summary.end, summary.runs.len()), (end, SUMMARY_RUNS_SENT));
    let term = term_of_0(first);
    let message = Message::Summary { term, summary };
    let bytes = encode(&message);
    // Otherwise a process that comes back could never be heard.
    assert!(bytes.len() < STRANGERS_FRAME_BYTES);
    assert_eq!(decode(bytes), Ok(message.clone()));
    // What is not told may be there: nothing is voided for its absence (rule 7).
    let Message::Summary { summary, .. } = message else {
        unreachable!("made above")
    };
    let told = summary.runs[0].1;
    assert!(summary.may_have(told - 1, term) && !summary.may_have(told, term));
    assert!(!summary.may_have(end + 1, term_of_0(first + count)));
}

#[test]
fn a_peer_does_not_talk_this_member_up_to_the_last_term() {
    let mut cores = Cores::of(3);
    let before = cores.nodes[1].group.term().number;
    for step in 1..100 {
        let number = before + step * NUMBER_STEP_MAX;
        let promised = Term {
            number,
            replica: replica(2),
        };
        cores.say(2, 1, Message::Refuse { promised });
        let nodes = 3;
        cores.say(2, 1, Message::Expects { nodes, promised });
        let summary = Summary::default();
        let term = promised;
        cores.say(2, 1, Message::Summary { term, summary });
    }
    let seen = cores.nodes[1].group.vote.number_seen();
    assert!(seen <= before + NUMBER_STEP_MAX, "{seen}");
    for number in [u64::MAX, u64::MAX - 1, 1 << 63, 1 << 62] {
        let term = Term {
            number,
            replica: replica(2),
        };
        let status = Status {
            term,
            leader: true,
            ..Status::default()
        };
        for message in [
            Message::Refuse { promised: term },
            Message::PreVote { term },
            Message::Prepare { term, forced: None },
            Message::TakeLeadership {
                number,
                forced: None,
            },
            Message::Expects {
                nodes: 3,
                promised: term,
            },
            Message::Status(status),
        ] {
            cores.say(2, 1, message);
        }
    }
    let group = &cores.nodes[1].group;
    assert!(group.term().number <= before + 2 * NUMBER_STEP_MAX);
    assert!(group.vote.number_seen() <= before + 2 * NUMBER_STEP_MAX);
}

/// The number of the highest term that node 1 believes, in a term of this node.
fn far_term(cores: &Cores, node: usize) -> Term {
    Term {
        number: cores.nodes[1].group.term().number + NUMBER_STEP_MAX,
        replica: replica(node),
    }
}

/// The leader dies, and one of the other two must lead within this time.
fn elect_another(cores: &mut Cores, within_ms: u64) {
    cores.kill(0);
    cores.pass_for(&[1, 2], within_ms);
    assert!((1..3).any(|node| cores.nodes[node].group.is_leader()));
}

/// The number that a peer made this member see must be one that all others believe.
#[test]
fn a_peer_that_talks_of_high_terms_stops_no_election() {
    let mut cores = Cores::of(3);
    let promised = far_term(&cores, 2);
    for node in [0, 1] {
        cores.say(2, node, Message::Refuse { promised });
    }
    cores.say(1, 2, Message::Refuse { promised });
    elect_another(&mut cores, 10_000);
}

/// The same if only one member has promised the number: the others pass it step by step.
#[test]
fn a_peer_that_is_promised_a_high_term_stops_no_election() {
    let mut cores = Cores::of(3);
    let term = far_term(&cores, 5);
    let stranger = cores.start(member(5), Default::default());
    cores
        .cut
        .extend([(0, stranger), (stranger, 0), (2, stranger), (stranger, 2)]);
    cores.say(stranger, 1, Message::Prepare { term, forced: None });
    assert_eq!(cores.nodes[1].group.term(), term);
    cores.kill(stranger);
    elect_another(&mut cores, 20_000);
}

/// A new node joins the cluster all the same, although it has promised nothing yet: the number is a step above its own.
#[test]
fn a_peer_that_is_promised_a_high_term_locks_no_new_node_out() {
    let mut cores = Cores::of(3);
    let term = far_term(&cores, 5);
    let stranger = cores.start(member(5), Default::default());
    cores.say(stranger, 1, Message::Prepare { term, forced: None });
    cores.kill(stranger);
    cores.pass(20_000);
    assert!(cores.nodes[0].group.term().number > NUMBER_STEP_MAX);
    let joiner = cores.start(member(6), Default::default());
    cores.pass(5_000);
    assert!(cores.members(joiner).contains(&"node6"));
    assert_eq!(cores.component_state(joiner), ComponentState::Primary);
}

/// Only a leader's number counts without bound, and only for a process that has no history to lose.
#[test]
fn a_new_node_believes_a_far_number_of_a_leader_only() {
    let mut cores = Cores::none();
    let liar = cores.start(member(5), Default::default());
    let new = cores.start(member(6), Default::default());
    let (number, replica) = (2 * NUMBER_STEP_MAX, replica(5));
    let term = Term { number, replica };
    let status = |leader| {
        Message::Status(Status {
            term,
            leader,
            component_state: ComponentState::Primary,
            history: HISTORY,
            ..Status::default()
        })
    };
    cores.say(liar, new, Message::Prepare { term, forced: None });
    cores.say(liar, new, status(false));
    let group = &cores.nodes[new].group;
    assert_eq!(group.term(), Term::default());
    let heard = group.peers.status_of(cores.incarnation(liar));
    assert!(heard.is_none_or(|status| status.term == Term::default()));
    cores.say(liar, new, status(true));
    assert_eq!(cores.nodes[new].group.term(), term);
}

/// A member that lags behind would take its long frames for a stranger's, and drop the link again and again.
#[test]
fn a_leader_that_the_own_view_does_not_list_sends_long_frames() {
    let mut cores = Cores::of(2);
    let sources = |cores: &Cores| cores.nodes[1].group.log_sources().collect::<Vec<_>>();
    assert!(!sources(&cores).contains(&replica(5)));
    let leader = cores.start(member(5), Default::default());
    let number = cores.nodes[1].group.term().number + 1;
    let term = Term {
        number,
        replica: replica(5),
    };
    cores.say(leader, 1, Message::Prepare { term, forced: None });
    assert!(sources(&cores).contains(&replica(5)));
}

fn without_vote() -> Configuration {
    Configuration {
        number: 9,
        members: vec![member(0), member(1)],
        ..Configuration::default()
    }
}

#[test]
fn configurations_that_could_commit_nothing_are_not_taken_in() {
    let mut cores = Cores::of(2);
    let number = cores.nodes[1].group.term().number;
    let end = cores.nodes[1].group.end();
    let mut doubled = cores.nodes[1].group.configuration().clone();
    doubled.members.push(doubled.members[0].clone());
    let mut endless = cores.nodes[1].group.configuration().clone();
    endless.number = u64::MAX;
    for bad in [without_vote(), doubled, endless] {
        let record = append(&cores, number..=number, &Body::Configuration(bad));
        cores.say(0, 1, Message::Append(record));
        assert_eq!(cores.nodes[1].group.end(), end);
    }
    let good = cores.nodes[1].group.configuration().clone();
    let record = append(&cores, number..=number, &Body::Configuration(good));
    cores.say(0, 1, Message::Append(record));
    assert_eq!(cores.nodes[1].group.end(), end + 1);
}

#[test]
fn a_history_has_no_more_overrides_than_may_be_noted() {
    let mut cores = Cores::of(2);
    cores.part(&[0], &[1]);
    let number = cores.nodes[1].group.term().number;
    let configuration = cores.nodes[1].group.configuration().clone();
    for round in 0..2 * OVERRIDES_MAX as u64 {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&round.to_le_bytes());
        let next = Configuration {
            override_id: Some(Uuid(id)),
            ..configuration.clone()
        };
        let mut record = append(&cores, number..=number, &Body::Configuration(next));
        record.ack = record.prev_position + 1;
        record.commit = record.ack;
        cores.say(0, 1, Message::Append(record));
    }
    let group = &cores.nodes[1].group;
    assert_eq!(group.overrides_in_log().len(), OVERRIDES_MAX);
}

#[test]
fn of_those_who_come_and_go_without_a_seat_nothing_is_kept() {
    let mut cores = Cores::of(2);
    cores.part(&[0], &[1]);
    cores.pass(1_000); // node 0 leads, and can propose nothing
    let term = cores.nodes[1].group.term();
    for stranger in 0..1_000u64 {
        let mut id = [9; 16];
        id[..8].copy_from_slice(&stranger.to_le_bytes());
        let (replica, incarnation) = (ReplicaId(Uuid(id)), Incarnation(Uuid(id)));
        let up = Event::PeerUp {
            replica,
            incarnation,
        };
        let member = Member {
            replica,
            incarnation,
            ..member(5)
        };
        let messages = [
            Message::Ack {
                term,
                position: 1,
                commit: 0,
            },
            Message::Leave,
            Message::Weight { weight: 1 },
            Message::Join(Join {
                member,
                history: HISTORY,
                known_number: 0,
                overrides: Vec::new(),
            }),
        ];
        for node in [0, 1] {
            cores.event(node, up.clone());
            for message in &messages {
                let (from, message) = (incarnation, message.clone());
                cores.event(node, Event::Message { from, message });
            }
            cores.event(node, Event::PeerDown { incarnation });
        }
    }
    for node in [0, 1] {
        let group = &cores.nodes[node].group;
        let kept = [
            group.acks.len(),
            group.peers.names().len(),
            group.role.leader().map_or(0, |leader| leader.changes.len()),
        ];
        assert!(kept.iter().all(|kept| *kept <= 2), "node {node}: {kept:?}");
    }
}

/// The replicas and processes of which this node keeps something.
fn kept(cores: &Cores, node: usize) -> [usize; 2] {
    let group = &cores.nodes[node].group;
    [group.acks.len(), group.peers.names().len()]
}

/// Their data directories go with them: each has new ids.
#[test]
fn of_members_that_die_nothing_is_kept_once_a_view_is_without_them() {
    let mut cores = Cores::of(3);
    for node in 3..8 {
        cores.start(member(node), Default::default());
        cores.pass(1_000);
        cores.all_joined();
        cores.pass(1_000);
        assert_eq!(cores.members(0).len(), 4);
        cores.kill(node);
        cores.refuses(node);
        cores.pass(1_000);
        assert_eq!(cores.members(0).len(), 3);
    }
    for node in 0..3 {
        assert_eq!(kept(&cores, node), [2, 2], "node {node}");
    }
}

/// It disconnects while its view is pending, and the next leader does not have that view.
#[test]
fn of_a_joiner_whose_view_is_dropped_nothing_is_kept_after_the_next_view() {
    let mut cores = Cores::of(3);
    cores.lost = |message| matches!(message, Message::Append(_));
    let joiner = cores.start(member(5), Default::default());
    cores.part(&[joiner], &[1, 2]);
    cores.pass(500);
    let listed = |cores: &Cores| {
        let latest = cores.nodes[0].group.log.latest();
        latest.member(member(5).incarnation).is_some()
    };
    assert!(listed(&cores), "the view is pending");
    cores.kill(joiner);
    cores.part(&[0], &[1, 2]);
    cores.lost = |_| false;
    cores.pass(2_000);
    cores.cut.clear();
    cores.pass(5_000);
    assert!(!listed(&cores) && !cores.nodes[0].group.is_leader());
    cores.start(member(6), Default::default());
    cores.pass(5_000);
    assert_eq!(cores.members(0).len(), 4);
    assert_eq!(kept(&cores, 0), [3, 3]);
}

fn log(bodies: Vec<(Position, u64, Body)>) -> RecoveredLog {
    let entry = |(position, number, body)| Entry {
        position,
        term: term_of_0(number),
        body,
    };
    RecoveredLog {
        entries: bodies.into_iter().map(entry).collect(),
        ..RecoveredLog::default()
    }
}

#[test]
fn only_a_log_that_a_member_can_have_written_is_sound() {
    let start = || Body::TermStart;
    let void = |number| Body::Voided {
        id: SubmissionId {
            number,
            incarnation: member(0).incarnation,
        },
    };
    let good = log(vec![(1, 1, start()), (2, 1, void(7)), (3, 2, start())]);
    assert_eq!(good.check(), Ok(()));
    for (what, bad) in [
        ("terms fall", vec![(1, 2, start()), (2, 1, start())]),
        ("a gap", vec![(1, 1, start()), (3, 1, start())]),
        ("terms end", vec![(1, u64::MAX, start())]),
        ("numbers end", vec![(1, 1, void(u64::MAX))]),
        ("no vote", vec![(1, 1, Body::Configuration(without_vote()))]),
    ] {
        assert!(log(bad).check().is_err(), "{what}");
    }
    let ahead = RecoveredLog { commit: 4, ..good };
    assert!(ahead.check().is_err(), "committed beyond its end");
}
