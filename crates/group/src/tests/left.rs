//! Processes that begin with a log whose payloads they have left where they are.

use bytes::Bytes;

use super::cores::{Cores, HISTORY, member};
use crate::checkpoint::Checkpoint;
use crate::configuration::Member;
use crate::entry::{Body, Entry};
use crate::event::{Action, Recovered, RecoveredLog};
use crate::ids::{Incarnation, Position, Uuid};
use crate::message::ComponentState;

/// The node is killed, and started again with this log: up to `left` the payloads are not in memory.
fn starts_again(cores: &mut Cores, node: usize, log: &[Entry], left: usize) -> usize {
    let me = Member {
        incarnation: Incarnation(Uuid([node as u8 + 50; 16])),
        ..member(node)
    };
    let checkpoint = Checkpoint {
        history: HISTORY,
        ..Checkpoint::default()
    };
    let recovered = Recovered {
        promised: cores.nodes[node].group.term(),
        amnesiac: false,
        lost_views: false,
        log: Some(RecoveredLog {
            checkpoint,
            entries: log.to_vec(),
            left: left as Position,
            commit: 0,
        }),
        ..Recovered::default()
    };
    cores.kill(node);
    cores.start(me, recovered)
}

fn submissions(log: Vec<Entry>) -> Vec<Bytes> {
    let payload = |entry: Entry| match entry.body {
        Body::Submission { payload, .. } => Some(payload),
        _ => None,
    };
    log.into_iter().filter_map(payload).collect()
}

/// Positions that a node has delivered from its log.
fn from_log(cores: &Cores, node: usize) -> Vec<Position> {
    let runs = cores.nodes[node].actions.iter();
    let runs = runs.filter_map(|action| match action {
        Action::DeliverFromLog { first, last } => Some(*first..=*last),
        _ => None,
    });
    runs.flatten().collect()
}

#[test]
fn what_was_left_is_delivered_from_the_log_and_fed_to_others() {
    for kept in [0, 3] {
        let mut cores = Cores::of(3);
        (1..=20).for_each(|number| cores.submit(0, number));
        let log = cores.log_of(0);
        let is_submission = |entry: &&Entry| entry.submission().is_some();
        let all: Vec<_> = log
            .iter()
            .filter(is_submission)
            .map(|e| e.position)
            .collect();
        let end = log.len();
        cores.kill(2);
        // The longest log leads; another one lacks the last ten.
        let first = starts_again(&mut cores, 0, &log, end - kept);
        let second = starts_again(&mut cores, 1, &log[..end - 10], 0);
        let held = cores.nodes[first].group.payload_bytes();
        assert_eq!(held == 0, kept == 0);
        cores.pass(5_000);
        assert_eq!(cores.component_state(first), ComponentState::Primary);
        assert_eq!(from_log(&cores, first), all[..all.len() - kept]);
        assert_eq!(cores.delivered(first), kept as u64);
        assert_eq!(from_log(&cores, second), []);
        assert_eq!(cores.log_of(second), cores.log_of(first));
        assert_eq!(cores.log_of(first)[..end], log[..]);
    }
}

/// What a new leader voids, and appends again behind that, has to be read first.
#[test]
fn what_is_appended_again_is_read_before() {
    for busy in [false, true] {
        let mut cores = Cores::of(2);
        cores.cut.insert((0, 1));
        (1..=3).for_each(|number| cores.submit(1, number));
        (1..=2).for_each(|number| cores.submit(0, number));
        let log = cores.log_of(0);
        let all = ["1/1", "1/2", "1/3", "0/1", "0/2"];
        assert_eq!(submissions(log.clone()), all);
        cores.pass(20_000);
        assert_eq!(cores.component_state(1), ComponentState::NonPrimary);
        cores.cut.clear();
        let again = starts_again(&mut cores, 0, &log, log.len());
        cores.nodes[again].log.busy = busy;
        cores.pass(3_000);
        if busy {
            assert_eq!(cores.log_of(again), log, "nothing is done without it");
            cores.nodes[again].log.busy = false;
            cores.pass(5_000);
        }
        assert!(cores.nodes[again].group.is_leader());
        assert_eq!(submissions(cores.log_of(again)), ["0/1", "0/2"]);
        assert!(cores.log_of(again).ends_with(&cores.log_of(1)));
        assert_eq!(cores.delivered(1), 2);
    }
}
