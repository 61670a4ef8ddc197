//! An override made one branch, others went on without it, and their logs meet in an election (rule 11).

use super::cores::{Cores, HISTORY, member, replica};

use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::configuration::{Configuration, Member};
use crate::event::{Action, Event, Recovered, RecoveredLog};
use crate::ids::{Incarnation, Position, Term, Uuid};
use crate::message::{ComponentState, Message, Promise, Proof, Status, Summary};

pub(super) const OVERRIDE: Uuid = Uuid([3; 16]);

pub(super) fn force(cores: &mut Cores, node: usize) {
    let override_id = OVERRIDE;
    cores.event(node, Event::ForcePrimary { override_id });
    // What waits for the disk leaves with the next batch.
    (0..4).for_each(|_| cores.settle());
}

pub(super) fn all_primary(cores: &Cores, nodes: &[usize]) -> bool {
    let primary = |node: &usize| cores.component_state(*node) == ComponentState::Primary;
    nodes.iter().all(primary)
}

/// Nodes 0 and 1 are primary by an override, the other three have gone on without them, and much further.
pub(super) fn forked() -> Cores {
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
    assert_eq!(cores.nodes[4].group.log.committed().overrides, [OVERRIDE]);
}

/// Of two that an operator made primary, node 0 alone knows that the override's view is committed, and not node 1, which
/// has leadership: acknowledgements are lost.
fn one_knows_first() -> Cores {
    let mut cores = Cores::of(5);
    cores.part(&[0, 1, 2, 3, 4], &[2, 3, 4]);
    cores.pass(12_000);
    cores.lost = |message| match message {
        Message::Status(status) => !status.overrides.is_empty(),
        _ => matches!(message, Message::Ack { .. }),
    };
    force(&mut cores, 1);
    cores.pass_for(&[1], 400);
    cores
}

/// What node 0 begins with when it is started again.
pub(super) fn comes_back(cores: &Cores, commit: Position) -> (Member, Recovered) {
    let again = Member {
        incarnation: Incarnation(Uuid([50; 16])),
        ..member(0)
    };
    let log = RecoveredLog {
        checkpoint: Checkpoint {
            history: HISTORY,
            ..Checkpoint::default()
        },
        commit,
        entries: cores.log_of(0),
        left: 0,
    };
    let recovered = Recovered {
        log: Some(log),
        ..Recovered::default()
    };
    (again, recovered)
}

/// The other of two that an override made primary knows alone that its view is committed, and has sought leadership since, in
/// vain. The leader lacks its word, and has to hear that it is promised to a higher term.
#[test]
fn who_waits_for_the_word_on_an_override_hears_of_a_higher_term() {
    let mut cores = one_knows_first();
    assert_eq!(cores.nodes[0].group.checkpoint().overrides, [OVERRIDE]);
    assert_eq!(cores.nodes[1].group.checkpoint().overrides, []);
    cores.lost = |message| matches!(message, Message::Ack { .. } | Message::Prepare { .. });
    let (number, forced) = (cores.nodes[0].group.term().number + 1, None);
    cores.say(1, 0, Message::TakeLeadership { number, forced });
    assert_eq!(cores.nodes[0].group.term().replica, replica(0));
    cores.arrived.clear();
    cores.pass_for(&[1], 200);
    let hears = |(to, message): &(usize, Message)| {
        *to == 1
            && matches!(message, Message::Refuse { promised } if promised.replica == replica(0))
    };
    assert!(cores.arrived.iter().any(hears));
}

/// The other of two that an override made primary knew it first that its view is committed, and died. The
/// leader still has it in its log only, and needs the other's word for it.
#[test]
fn who_knows_an_override_to_be_committed_helps_to_commit_it() {
    let mut cores = one_knows_first();
    let ahead = cores.nodes[0].group.checkpoint().clone();
    assert_eq!(ahead.overrides, [OVERRIDE]);
    assert_eq!(cores.nodes[1].group.checkpoint().overrides, []);
    let (again, recovered) = comes_back(&cores, ahead.position);
    cores.kill(0);
    cores.lost = |_| false;
    cores.cut.clear();
    // It keeps nothing in memory of what is committed.
    let config = Config {
        tail_bytes: 0,
        ..Config::new(again)
    };
    let again = cores.start_with(config, recovered);
    cores.pass(5_000);
    assert!(all_primary(&cores, &[1, 2, 3, 4, again]));
    assert_eq!(cores.nodes[1].group.log.committed().overrides, [OVERRIDE]);
}

/// Of two that an override made primary one is back, alone, beside those who have gone on without it: they would give way if
/// both were there, so that it does not take their word at once.
#[test]
fn who_is_refused_by_another_branch_waits_for_its_own_for_a_while() {
    let mut cores = forked();
    let commit = cores.nodes[0].group.commit();
    let (again, recovered) = comes_back(&cores, commit);
    (0..2).for_each(|node| cores.kill(node));
    cores.cut.clear();
    let again = cores.start(again, recovered);
    let refused = |cores: &Cores| {
        let mut actions = cores.nodes[again].actions.iter();
        actions.any(|action| matches!(action, Action::Refused { .. }))
    };
    cores.pass(9_500);
    assert!(!refused(&cores));
    cores.pass(2_000);
    assert!(refused(&cores));
    assert!(all_primary(&cores, &[2, 3, 4]));
}

/// It has seen nothing of what came before the override, and committed nothing beside it: the others' databases may need
/// what its log has.
#[test]
fn who_is_behind_an_override_keeps_its_log() {
    let mut cores = Cores::of(3);
    cores.part(&[2], &[0, 1]);
    (1..=5).for_each(|number| cores.submit(0, number));
    let kept = cores.log_of(2);
    assert!(cores.nodes[0].group.commit() > cores.nodes[2].group.end());
    cores.kill(1);
    cores.pass(12_000);
    force(&mut cores, 0);
    cores.cut.clear();
    cores.pass(5_000);
    assert!(all_primary(&cores, &[0, 2]));
    assert!(cores.log_of(2).starts_with(&kept), "its log began anew");
}

#[test]
fn a_peer_shares_the_branch_when_it_has_committed_the_override() {
    let mut cores = Cores::of(3);
    let shares = |cores: &Cores, node: usize, other: usize| {
        let group = &cores.nodes[node].group;
        group.shares_branch(cores.incarnation(other))
    };
    assert!(shares(&cores, 0, 1) && shares(&cores, 1, 2));
    cores.part(&[0], &[1, 2]);
    cores.pass(12_000);
    force(&mut cores, 0);
    cores.pass(2_000);
    assert!(all_primary(&cores, &[0]) && all_primary(&cores, &[1, 2]));
    assert!(!shares(&cores, 0, 1) && shares(&cores, 1, 2));
    cores.cut.clear();
    cores.pass(5_000);
    assert!(all_primary(&cores, &[0, 1, 2]));
    assert!(shares(&cores, 0, 1) && shares(&cores, 1, 0) && shares(&cores, 1, 2));
}

/// What a node noted last.
fn last_note(cores: &Cores, node: usize) -> &str {
    let mut actions = cores.nodes[node].actions.iter().rev();
    let text = actions.find_map(|action| match action {
        Action::Note { text } => Some(text.as_str()),
        _ => None,
    });
    text.unwrap_or_default()
}

/// Of two that an override made primary only the follower is left when it meets a majority of the last view: nobody goes on,
/// and what an operator does as told works, either way.
#[test]
fn a_majority_waits_beside_an_override_and_says_so() {
    for (keeps_override, went_on) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut cores = Cores::of(5);
        if went_on {
            cores.part(&[0, 1], &[2, 3, 4]);
            cores.pass(12_000);
            (1..=50).for_each(|number| cores.submit(2, number));
        }
        cores.part(&[0, 1, 2, 3, 4], &[2, 3, 4]);
        cores.pass(12_000);
        force(&mut cores, 0);
        cores.pass_for(&[0, 1], 1_000);
        assert!(all_primary(&cores, &[0, 1]));
        cores.kill(0);
        cores.pass(500);
        cores.cut.clear();
        cores.part(&[2, 3, 4], &[2, 3, 4]);
        cores.pass(500);
        cores.cut.clear();
        cores.pass(25_000);
        for node in 1..5 {
            assert_eq!(cores.component_state(node), ComponentState::NonPrimary);
            let told = last_note(&cores, node);
            // A view without it knows no name.
            let name = match went_on && node > 1 {
                true => cores.incarnation(1).to_string(),
                false => "node1".to_owned(),
            };
            let bootstrap = "execute SET GLOBAL wsrep_provider_options='pc.bootstrap=1' on";
            assert!(told.contains(&format!("{bootstrap} {name}")), "{told}");
            let join = "give way to it. To join them: stop this node";
            let others_went_on = node == 1 && went_on;
            assert_eq!(told.contains(join), others_went_on, "{told}");
            assert_eq!(
                told.contains(&format!("stop {name}")),
                node > 1,
                "the way back without it: {told}"
            );
        }
        if keeps_override {
            let override_id = Uuid([4; 16]);
            cores.event(1, Event::ForcePrimary { override_id });
            cores.pass(10_000);
            assert!(all_primary(&cores, &[1, 2, 3, 4]));
            let overrides = &cores.nodes[4].group.log.committed().overrides;
            assert_eq!(overrides, &[OVERRIDE, override_id]);
        } else {
            cores.kill(1);
            cores.pass(10_000);
            assert!(all_primary(&cores, &[2, 3, 4]));
        }
    }
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
        component_state: ComponentState::NonPrimary,
        history: HISTORY,
        overrides: vec![OVERRIDE],
        ..Status::default()
    };
    cores.say(1, 2, Message::Status(status));
    let term = stand(&mut cores, 2, 1);
    let promise = Promise {
        term,
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
        lost_views: false,
        proof: Proof::default(),
        withdrawn: Vec::new(),
    };
    cores.say(1, 2, Message::Promise(promise));
    assert!(!cores.nodes[2].group.is_leader());
}

/// A node seeks leadership, with a pre-vote of another one's; its term.
fn stand(cores: &mut Cores, node: usize, voter: usize) -> Term {
    for _ in 0..100 {
        let before = cores.nodes[node].group.term();
        let term = Term {
            number: before.number + 1,
            replica: replica(node),
        };
        let granted = true;
        cores.say(voter, node, Message::PreVoteReply { term, granted });
        let now = cores.nodes[node].group.term();
        if now > before {
            (0..4).for_each(|_| cores.settle());
            return now;
        }
        cores.pass_for(&[node], 50);
    }
    panic!("it does not stand");
}

/// What a node's operator was told that needs one.
pub(super) fn alarms(cores: &Cores, node: usize) -> Vec<&str> {
    let actions = cores.nodes[node].actions.iter();
    let texts = actions.filter_map(|action| match action {
        Action::Alarm { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The two halves of four are primary, each by an override of its own, and still apart.
fn overridden_twice() -> Cores {
    let mut cores = Cores::of(4);
    cores.part(&[0, 1], &[2, 3]);
    cores.pass(12_000);
    for (node, id) in [(0, OVERRIDE), (2, Uuid([4; 16]))] {
        cores.event(node, Event::ForcePrimary { override_id: id });
        cores.pass(1_000);
    }
    assert!(all_primary(&cores, &[0, 1, 2, 3]));
    cores
}

#[test]
fn two_overrides_that_meet_are_told_on_both_sides_and_again() {
    // By heartbeats that cross, too.
    for line_ms in [0, 70] {
        let mut cores = overridden_twice();
        (0..4).for_each(|node| assert_eq!(alarms(&cores, node), [] as [&str; 0]));
        for (a, b) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
            cores
                .lines_ms
                .extend([((a, b), line_ms), ((b, a), line_ms)]);
        }
        cores.cut.clear();
        cores.pass(1_000);
        for (node, own, other, names) in [
            (0, 3, 4, ["node0 at", "node2 at"]),
            (1, 3, 4, ["node1 at", "node3 at"]),
            (2, 4, 3, ["node2 at", "node0 at"]),
            (3, 4, 3, ["node3 at", "node1 at"]),
        ] {
            let told = alarms(&cores, node);
            assert_eq!(told.len(), 1, "{told:?}");
            let (here, there) = told[0].split_once("; there").expect("two sides");
            for (side, id, name) in [(here, own, names[0]), (there, other, names[1])] {
                assert!(side.contains(&Uuid([id; 16]).to_string()), "{side}");
                assert!(side.contains("primary, committed up to position"), "{side}");
                // The first heartbeat that comes says so.
                assert!(node % 2 == 1 || side.contains(name), "{side}");
            }
            assert!(
                here.starts_with("split brain") && here.contains("made at position"),
                "{here}"
            );
            // A node whose files were moved away asks every leader for admission.
            let (_, remedy) = there
                .split_once("First stop all nodes")
                .expect("the first step");
            assert!(remedy.contains("move grastate.dat"), "{remedy}");
        }
        cores.pass(30_000);
        for node in 0..4 {
            let told = alarms(&cores, node);
            assert_eq!(told.len(), 4, "each ten seconds: {told:?}");
            assert!(told[3].contains("node0 at") && told[3].contains("node3 at"));
        }
        assert!(all_primary(&cores, &[0, 1, 2, 3]));
    }
}

#[test]
fn nobody_is_alarmed_by_a_side_that_gives_way() {
    let mut cores = forked();
    cores.lines_ms.extend([((0, 1), 40), ((1, 0), 40)]);
    cores.cut.clear();
    cores.pass(10_000);
    assert!(all_primary(&cores, &[0, 1, 2, 3, 4]));
    (0..5).for_each(|node| assert_eq!(alarms(&cores, node), [] as [&str; 0]));
}

/// It has heard of a later override on its own branch, and is about to take it over: those who made it know better.
#[test]
fn who_gives_way_alarms_nobody() {
    let mut cores = overridden_twice();
    (cores.nodes[0].group.forced_views).heed(&[OVERRIDE, Uuid([5; 16])]);
    cores.cut.clear();
    cores.pass(1_000);
    let told = |node| alarms(&cores, node).len();
    assert_eq!((told(0), told(1), told(2)), (0, 1, 1));
}
