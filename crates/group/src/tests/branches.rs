//! An override made one branch, others went on without it, and their logs meet in an election (rule 11).

use super::cores::{Cores, HISTORY, member, replica};
use crate::checkpoint::Checkpoint;
use crate::configuration::{Configuration, Member};
use crate::event::{Event, Recovered, RecoveredLog};
use crate::group::Config;
use crate::ids::{Ballot, Incarnation, Uuid};
use crate::message::{Message, Promise, Standing, Status, Summary};

const OVERRIDE: Uuid = Uuid([3; 16]);

fn force(cores: &mut Cores, node: usize) {
    let override_id = OVERRIDE;
    cores.event(node, Event::ForcePrimary { override_id });
    // What waits for the disk leaves with the next batch.
    (0..4).for_each(|_| cores.settle());
}

fn all_primary(cores: &Cores, nodes: &[usize]) -> bool {
    let primary = |node: &usize| cores.standing(*node) == Standing::Primary;
    nodes.iter().all(primary)
}

/// Nodes 0 and 1 are primary by an override, the other three have gone on without them, and much further.
fn forked() -> Cores {
    let mut cores = Cores::of(5);
    cores.part(&[0, 1], &[2, 3, 4]);
    cores.pass(12_000);
    assert!(all_primary(&cores, &[2, 3, 4]));
    (1..=50).for_each(|number| cores.submit(2, number));
    force(&mut cores, 0);
    cores.pass(1_000);
    assert_eq!(cores.members(0), ["node0", "node1"]);
    assert!(all_primary(&cores, &[0, 1]));
    assert!(cores.nodes[2].group.commit() > cores.nodes[0].group.end());
    cores
}

/// One of them is about to be admitted to the override's branch, and its promise comes before those that count.
/// What it has committed, and its view, are no matter of this branch.
#[test]
fn the_log_of_another_branch_decides_no_election() {
    let mut cores = forked();
    cores.lines_ms.extend([((0, 1), 40), ((1, 0), 40)]);
    cores.cut.clear();
    cores.pass(10_000);
    assert!(all_primary(&cores, &[0, 1, 2, 3, 4]));
    assert_eq!(cores.nodes[4].group.committed.overrides, [OVERRIDE]);
}

/// The other of two that an override made primary knows alone that its view is committed, and has sought the office since, in
/// vain. The sequencer lacks its word, and has to hear that it is promised to a higher ballot.
#[test]
fn who_waits_for_the_word_on_an_override_hears_of_a_higher_ballot() {
    let mut cores = Cores::of(5);
    cores.part(&[0, 1, 2, 3, 4], &[2, 3, 4]);
    cores.pass(12_000);
    cores.lost = |message| matches!(message, Message::Ack { .. });
    force(&mut cores, 1);
    cores.pass_for(&[1], 400);
    assert_eq!(cores.nodes[0].group.checkpoint().overrides, [OVERRIDE]);
    assert_eq!(cores.nodes[1].group.checkpoint().overrides, []);
    cores.lost = |message| matches!(message, Message::Ack { .. } | Message::Prepare { .. });
    let (number, forced) = (cores.nodes[0].group.ballot().number + 1, None);
    cores.say(1, 0, Message::TakeOffice { number, forced });
    assert_eq!(cores.nodes[0].group.ballot().replica, replica(0));
    cores.arrived.clear();
    cores.pass_for(&[1], 200);
    let hears = |(to, message): &(usize, Message)| {
        *to == 1
            && matches!(message, Message::Refuse { promised } if promised.replica == replica(0))
    };
    assert!(cores.arrived.iter().any(hears));
}

/// The other of two that an override made primary knew it first that its view is committed, and died. The
/// sequencer still has it in its log only, and needs the other's word for it.
#[test]
fn who_knows_an_override_to_be_committed_helps_to_commit_it() {
    let mut cores = Cores::of(5);
    cores.part(&[0, 1, 2, 3, 4], &[2, 3, 4]);
    cores.pass(12_000);
    cores.lost = |message| matches!(message, Message::Ack { .. });
    force(&mut cores, 1);
    cores.pass_for(&[1], 400);
    let ahead = cores.nodes[0].group.checkpoint().clone();
    assert_eq!(ahead.overrides, [OVERRIDE]);
    assert_eq!(cores.nodes[1].group.checkpoint().overrides, []);
    let log = RecoveredLog {
        checkpoint: Checkpoint {
            history: HISTORY,
            ..Checkpoint::default()
        },
        commit: ahead.position,
        entries: cores.log_of(0),
    };
    cores.kill(0);
    cores.lost = |_| false;
    cores.cut.clear();
    let again = Member {
        incarnation: Incarnation(Uuid([50; 16])),
        ..member(0)
    };
    let recovered = Recovered {
        log: Some(log),
        ..Recovered::default()
    };
    // It keeps nothing in memory of what is committed.
    let config = Config {
        tail_bytes: 0,
        ..Config::new(again)
    };
    let again = cores.start_with(config, recovered);
    cores.pass(5_000);
    assert!(all_primary(&cores, &[1, 2, 3, 4, again]));
    assert_eq!(cores.nodes[1].group.committed.overrides, [OVERRIDE]);
}

/// A candidate that has missed an override is not elected by the word of one that has committed it: that one's
/// view is not the one in force here.
#[test]
fn who_knows_of_an_override_elects_nobody_without_it() {
    let mut cores = Cores::of(3);
    cores.part(&[0, 1, 2], &[0, 1, 2]);
    cores.pass_for(&[2], 2_000);
    let seat = Member {
        weight: 1,
        voter: true,
        ..member(1)
    };
    let status = Status {
        standing: Standing::NonPrimary,
        history: HISTORY,
        overrides: vec![OVERRIDE],
        ..Status::default()
    };
    cores.say(1, 2, Message::Status(status));
    let ballot = stand(&mut cores, 2, 1);
    let promise = Promise {
        ballot,
        summary: Summary {
            commit: 1_000,
            end: 1_000,
            ..Summary::default()
        },
        configurations: vec![(
            1_000,
            Configuration {
                number: 9,
                members: vec![seat],
                ..Configuration::default()
            },
        )],
        amnesiac: false,
        withdrawn: Vec::new(),
    };
    cores.say(1, 2, Message::Promise(promise));
    assert!(!cores.nodes[2].group.is_sequencer());
}

/// A node seeks the office, with a pre-vote of another one's; its ballot.
fn stand(cores: &mut Cores, node: usize, voter: usize) -> Ballot {
    for _ in 0..100 {
        let before = cores.nodes[node].group.ballot();
        let ballot = Ballot {
            number: before.number + 1,
            replica: replica(node),
        };
        let granted = true;
        cores.say(voter, node, Message::PreVoteReply { ballot, granted });
        let now = cores.nodes[node].group.ballot();
        if now > before {
            (0..4).for_each(|_| cores.settle());
            return now;
        }
        cores.pass_for(&[node], 50);
    }
    panic!("it does not stand");
}
