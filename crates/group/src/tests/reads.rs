//! Current reads (rule 17).

use super::cores::{Cores, HISTORY, member};
use crate::checkpoint::Checkpoint;
use crate::configuration::Member;
use crate::event::{Action, Event, Recovered, RecoveredLog};
use crate::ids::{Incarnation, Position, Uuid};
use crate::message::{ComponentState, Message};

/// Positions that a reader on node 0 was told.
fn points(cores: &Cores, reader: u64) -> Vec<Position> {
    let actions = cores.nodes[0].actions.iter();
    let points = actions.filter_map(|action| match action {
        Action::ReadPoint { token, position } if *token == reader => Some(*position),
        _ => None,
    });
    points.collect()
}

/// Node 0, the leader, has what node 4 has submitted, and nobody else; all others have answered its reader 7.
fn suffix() -> (Cores, Position) {
    let mut cores = Cores::of(5);
    cores.part(&[4], &[1, 2, 3]);
    cores.lost = |message| matches!(message, Message::Append(_));
    let before = cores.nodes[0].group.end();
    (1..=20).for_each(|number| cores.submit(4, number));
    assert_eq!(cores.nodes[0].group.end(), before + 20);
    cores.event(0, Event::Read { token: 7 });
    (cores, before)
}

#[test]
fn a_read_point_is_told_when_it_is_committed() {
    let (mut cores, before) = suffix();
    assert_eq!(points(&cores, 7), []);
    cores.lost = |_| false;
    cores.pass(1_000);
    assert_eq!(points(&cores, 7), [before + 20]);
}

/// It answers before the voters do: no log is as long as it says.
#[test]
fn a_log_end_of_a_process_without_a_vote_stops_no_read() {
    let mut cores = Cores::of(3);
    let stranger = cores.start(member(5), Recovered::default());
    cores.lost = |message| matches!(message, Message::LogEnd { .. });
    cores.event(0, Event::Read { token: 7 });
    let (round, term, end) = (1, cores.nodes[0].group.term(), 1 << 61);
    cores.say(stranger, 0, Message::LogEndReply { round, term, end });
    cores.lost = |_| false;
    cores.pass(1_000);
    assert_eq!(points(&cores, 7), [cores.nodes[0].group.commit()]);
}

/// The origin of the suffix dies, and the next leader does not have it: nothing is ordered any more.
#[test]
fn a_read_whose_point_lies_in_a_dropped_suffix_asks_again() {
    let (mut cores, before) = suffix();
    cores.kill(4);
    cores.part(&[0], &[1, 2, 3]);
    cores.lost = |_| false;
    cores.pass(2_000);
    assert!(cores.nodes[1].group.is_leader());
    assert_eq!(points(&cores, 7), []);
    cores.cut.clear();
    cores.pass(1_000);
    let end = cores.nodes[0].group.commit();
    assert!(end < before + 20, "the suffix is gone");
    let points = points(&cores, 7);
    assert!(matches!(points[..], [point] if point <= end), "{points:?}");
}

/// Without a majority nobody waits.
#[test]
fn a_read_whose_point_is_not_committed_fails_with_the_majority() {
    let (mut cores, _) = suffix();
    cores.part(&[0], &[1, 2, 3, 4]);
    cores.pass(10_000);
    let failed = |action: &Action| matches!(action, Action::ReadFailed { token: 7 });
    assert!(cores.nodes[0].actions.iter().any(failed));
    assert_eq!(points(&cores, 7), []);
}

/// A member that was started again acknowledges under its new name before a view seats that: it answers readers, too
/// (found by `reads-end`, seed 41072 of profile arbitrators).
#[test]
fn a_process_that_no_view_seats_yet_answers_for_its_replica() {
    let mut cores = Cores::of(3);
    cores.submit(0, 1);
    cores.settle();
    cores.kill(2);
    let entries = cores.log_of(0);
    let log = RecoveredLog {
        checkpoint: Checkpoint {
            history: HISTORY,
            ..Checkpoint::default()
        },
        commit: entries.len() as u64,
        entries,
        left: 0,
    };
    cores.lost = |message| matches!(message, Message::Join(_));
    let again = Member {
        incarnation: Incarnation(Uuid([52; 16])),
        ..member(2)
    };
    let recovered = Recovered {
        log: Some(log),
        ..Recovered::default()
    };
    let again = cores.start(again, recovered);
    cores.pass(300);
    assert!(cores.acked(0, 2) > 0, "it acknowledges for its replica");
    cores.part(&[1], &[0, again]);
    cores.event(0, Event::Read { token: 7 });
    cores.pass(300);
    assert_eq!(points(&cores, 7).len(), 1);
}

/// It gives way to an operator's forced view. A member that has not heard of that view asks where the leader's log ends.
#[test]
fn a_leader_that_has_given_way_tells_no_log_end() {
    let mut cores = Cores::of(4);
    cores.part(&[3], &[0, 1, 2]);
    cores.pass(12_000);
    // Its term is higher than that of the forced view: it goes on with its own.
    let (number, forced) = (5, None);
    cores.say(0, 1, Message::TakeLeadership { number, forced });
    cores.pass(1_000);
    assert!(cores.nodes[1].group.is_leader());
    let override_id = Uuid([3; 16]);
    cores.event(3, Event::ForcePrimary { override_id });
    cores.pass(1_000);
    cores.cut.remove(&(3, 1));
    while cores.component_state(1) == ComponentState::Primary {
        cores.pass(50);
    }
    cores.arrived.clear();
    cores.say(0, 1, Message::LogEnd { round: 7 });
    let is_reply = |(_, message): &(usize, Message)| matches!(message, Message::LogEndReply { .. });
    assert!(!cores.arrived.iter().any(is_reply));
}
