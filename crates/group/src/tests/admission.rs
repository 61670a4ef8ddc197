//! Who is admitted, refused, removed; weights.

use super::cores::{Cores, HISTORY, member, replica, votes};
use crate::configuration::Member;
use crate::event::{Action, Event, Recovered};
use crate::ids::{Incarnation, Uuid};
use crate::message::{ComponentState, Join, Message};

fn join(member: Member) -> Join {
    Join {
        member,
        history: HISTORY,
        known_number: 0,
        overrides: Vec::new(),
    }
}

/// A third process; what it says itself is lost.
fn mute(cores: &mut Cores) -> usize {
    cores.cut.extend([(2, 0), (2, 1)]);
    cores.start(member(5), Recovered::default())
}

/// Another process of this node's replica.
fn start_another(cores: &mut Cores, node: usize, name: &str) -> usize {
    let another = Member {
        incarnation: Incarnation(Uuid([66; 16])),
        name: name.into(),
        ..member(node)
    };
    cores.start(another, Recovered::default())
}

/// Why `node` was refused.
fn refusal(cores: &Cores, node: usize) -> Option<&str> {
    refusals(cores, node).next()
}

/// All reasons that `node` was told.
fn refusals(cores: &Cores, node: usize) -> impl Iterator<Item = &str> {
    let actions = cores.nodes[node].actions.iter();
    actions.filter_map(|action| match action {
        Action::Refused { reason } => Some(reason.as_str()),
        _ => None,
    })
}

#[test]
fn a_fork_that_the_cluster_does_not_know_is_refused() {
    let mut cores = Cores::of(2);
    let stranger = mute(&mut cores);
    let forked = Join {
        overrides: vec![Uuid([3; 16])],
        ..join(member(5))
    };
    cores.say(stranger, 0, Message::Join(forked.clone()));
    let reason = refusal(&cores, stranger).expect("refused");
    assert!(reason.contains("to rejoin by a state snapshot"), "{reason}");
    // Another node of its branch would admit it again.
    let (_, then) = reason
        .split_once("first stop all nodes")
        .expect("the first step");
    assert!(then.contains("move grastate.dat"), "{reason}");
    assert_eq!(cores.members(0), ["node0", "node1"]);
    // Who has no history yet has no fork of it.
    let empty = Join {
        history: Uuid::NIL,
        overrides: Vec::new(),
        ..forked
    };
    cores.say(stranger, 0, Message::Join(empty));
    assert_eq!(cores.members(0), ["node0", "node1", "node5"]);
}

/// Found by the simulator: an operator who does what a minority says drops the branch that the others were to give way to.
#[test]
fn a_minority_refuses_nobody() {
    let mut cores = Cores::of(2);
    let stranger = mute(&mut cores);
    cores.kill(1);
    cores.pass_for(&[0], 10_000);
    assert_eq!(cores.component_state(0), ComponentState::NonPrimary);
    assert!(cores.nodes[0].group.is_leader());
    let forked = Join {
        overrides: vec![Uuid([3; 16])],
        ..join(member(5))
    };
    cores.say(stranger, 0, Message::Join(forked));
    assert_eq!(refusal(&cores, stranger), None);
}

/// A view of another cluster is no way back: it would never follow that one's log.
#[test]
fn who_has_a_history_neither_asks_nor_enters_another_cluster() {
    let mut cores = Cores::of(2);
    let other = cores.start(member(5), Recovered::default());
    cores.event(
        other,
        Event::Bootstrap {
            history: Uuid([8; 16]),
            overrides: Vec::new(),
            override_id: None,
        },
    );
    cores.kill(0);
    cores.pass(10_000);
    assert_eq!(cores.component_state(1), ComponentState::NonPrimary);
    let joins =
        |(to, message): &(usize, Message)| *to == other && matches!(message, Message::Join(_));
    assert!(!cores.arrived.iter().any(joins));
    cores.say(1, other, Message::Join(join(member(1))));
    assert_eq!(cores.members(other), ["node5"]);
    assert!(cores.arrived.iter().any(|(to, message)| matches!(message,
        Message::JoinRefused { reason } if *to == 1 && reason.contains("the cluster has"))));
}

#[test]
fn a_copied_data_directory_is_refused_while_its_duplicate_is_connected() {
    for (duplicate, text) in [
        (1, "member node1 () runs with the same"),
        (0, "is this node's own"),
    ] {
        let mut cores = Cores::of(2);
        let node = start_another(&mut cores, duplicate, "copy");
        cores.pass(1_000);
        // It has met the original, and falls silent. Its leader refuses it, too.
        let asks = join(cores.nodes[node].group.context.config().me.clone());
        cores.say(node, 0, Message::Join(asks));
        for text in [text, "which is in a view"] {
            let mut reasons = refusals(&cores, node);
            let told = reasons.any(|r| r.contains(text) && r.contains("copied data directory"));
            assert!(told, "{text}");
        }
        assert_eq!(cores.members(1), ["node0", "node1"]);
    }
    // Its duplicate is dead: it is the same node, started again.
    let mut cores = Cores::of(3);
    cores.kill(1);
    let node = start_another(&mut cores, 1, "again");
    cores.pass(1_000);
    assert_eq!(refusal(&cores, node), None);
    assert_eq!(cores.members(0), ["node0", "node2", "again"]);
}

/// The old connection may outlive its process: a refusal would tell the operator to remove data.
#[test]
fn a_process_beside_the_silent_one_of_its_replica_is_neither_refused_nor_admitted() {
    let mut cores = Cores::of(3);
    cores.nodes[0].group.config_mut().suspect_timeout_ms = 60_000;
    cores.cut.extend([(1, 0), (1, 2), (0, 1), (2, 1)]);
    cores.pass_for(&[0, 2], 2_000);
    let node = start_another(&mut cores, 1, "again");
    cores.cut.extend([(1, node), (node, 1)]);
    cores.pass_for(&[0, 2, node], 2_000);
    assert_eq!(refusal(&cores, node), None);
    assert_eq!(cores.members(0), ["node0", "node1", "node2"]);
    cores.kill(1);
    cores.pass_for(&[0, 2, node], 2_000);
    assert_eq!(cores.members(0), ["node0", "node2", "again"]);
}

/// A request for another weight may be lost, with a connection, a leader, or because the leader transfers leadership.
#[test]
fn a_lost_request_for_another_weight_is_repeated() {
    let mut cores = Cores::of(3);
    cores.cut.insert((1, 0));
    cores.event(1, Event::SetWeight { weight: 3 });
    cores.cut.clear();
    cores.pass(3_000);
    assert_eq!(cores.nodes[0].group.configuration().total_weight(), 5);
}

#[test]
fn who_is_in_a_view_is_not_refused_any_more() {
    let mut cores = Cores::of(2);
    let reason = "too late".to_owned();
    cores.say(0, 1, Message::JoinRefused { reason });
    assert_eq!(refusal(&cores, 1), None);
    assert_eq!(cores.component_state(1), ComponentState::Primary);
}

#[test]
fn a_join_counts_only_from_the_joiner_itself_and_at_the_leader() {
    let mut cores = Cores::of(2);
    let node = mute(&mut cores);
    cores.say(1, 0, Message::Join(join(member(5))));
    let borrowed = Member {
        replica: replica(9),
        ..member(5)
    };
    cores.say(node, 0, Message::Join(join(borrowed)));
    let another = Member {
        incarnation: Incarnation(Uuid([66; 16])),
        ..member(1)
    };
    cores.say(1, 0, Message::Join(join(another)));
    cores.say(node, 1, Message::Join(join(member(5))));
    assert_eq!(cores.members(0), ["node0", "node1"]);
    cores.say(node, 0, Message::Join(join(member(5))));
    assert_eq!(cores.members(0), ["node0", "node1", "node5"]);
}

#[test]
fn the_last_vote_cannot_be_given_away() {
    let mut cores = Cores::of(2);
    cores.event(1, Event::SetWeight { weight: 0 });
    assert_eq!(cores.nodes[0].group.configuration().total_weight(), 1);
    cores.event(0, Event::SetWeight { weight: 0 });
    assert_eq!(cores.nodes[0].group.configuration().total_weight(), 1);
    cores.submit(1, 1);
    assert_eq!(cores.delivered(1), 1);
    cores.event(0, Event::SetWeight { weight: 7 });
    assert_eq!(cores.nodes[1].group.configuration().total_weight(), 7);
}

/// `pc.ignore_sb`, `pc.ignore_quorum`: how many of how many are left, and whether they go on.
#[test]
fn who_was_told_to_ignore_a_lost_majority_goes_on_alone() {
    for (size, left, half, any, goes_on) in [
        (2, 1, false, false, false),
        (2, 1, true, false, true),
        (4, 2, true, false, true),
        (3, 1, true, false, false),
        (3, 1, false, true, true),
        (5, 2, false, true, true),
    ] {
        let mut cores = Cores::of(size);
        let (gone, stays): (Vec<_>, Vec<_>) = (0..size).partition(|node| *node < size - left);
        for node in &stays {
            let config = cores.nodes[*node].group.config_mut();
            (config.ignore_split_brain, config.ignore_quorum) = (half, any);
        }
        for node in gone {
            cores.kill(node);
        }
        cores.pass(4_000);
        let commits = cores.nodes[stays[0]].group.commit();
        cores.submit(stays[0], 1);
        assert_eq!(cores.nodes[stays[0]].group.commit(), commits, "too early");
        cores.pass(5_000);
        for node in stays {
            let what = format!("{left} of {size}, {half}, {any}");
            let expected = if goes_on { left } else { size };
            assert_eq!(cores.members(node).len(), expected, "{what}");
            let primary = cores.component_state(node) == ComponentState::Primary;
            assert_eq!(primary, goes_on, "{what}");
            let overrides = &cores.nodes[node].group.log.committed().overrides;
            assert_eq!(!overrides.is_empty(), goes_on, "{what}");
        }
    }
}

fn voteless(node: usize) -> Member {
    Member {
        full_weight: 0,
        ..member(node)
    }
}

/// The first has founded a cluster with the second.
fn founded_by(members: [Member; 2]) -> Cores {
    let mut cores = Cores::none();
    for me in members {
        cores.start(me, Recovered::default());
    }
    let founds = Event::Bootstrap {
        history: HISTORY,
        overrides: Vec::new(),
        override_id: None,
    };
    cores.event(0, founds);
    cores.pass(1_000);
    cores.all_joined();
    cores
}

/// With pc.weight=0 it has a vote only as long as nobody else has one: without any nothing could be committed.
#[test]
fn a_cluster_can_be_founded_by_a_node_without_weight() {
    let mut cores = founded_by([voteless(0), voteless(1)]);
    cores.submit(1, 1);
    assert_eq!((cores.delivered(0), cores.delivered(1)), (1, 1));
    assert_eq!(votes(&cores, 1), [1, 0]);
    cores.start(member(2), Recovered::default());
    cores.pass(1_000);
    cores.all_joined();
    cores.pass(1_000);
    assert_eq!(votes(&cores, 1), [0, 0, 1]);
    cores.submit(0, 1);
    assert_eq!(cores.delivered(2), 1);
}

/// The rest holds the whole log, and goes on.
#[test]
fn the_last_member_with_weight_may_leave() {
    let mut cores = founded_by([member(0), voteless(1)]);
    cores.submit(0, 1);
    cores.event(0, Event::Leave);
    cores.pass(2_000);
    assert_eq!(cores.members(1), ["node1"]);
    assert_eq!(votes(&cores, 1), [1]);
    cores.submit(1, 1);
    assert_eq!(cores.delivered(1), 2);
}

/// It asked while the leader heard no majority, and so could propose nothing.
#[test]
fn who_asked_for_admission_and_has_died_is_not_admitted() {
    let mut cores = Cores::of(2);
    let number = cores.nodes[0].group.configuration().number;
    cores.part(&[0], &[1]);
    cores.pass(1_000);
    let joiner = cores.start(member(5), Recovered::default());
    cores.cut.extend([(1, joiner), (joiner, 1)]);
    cores.pass(1_000);
    let leader = cores.nodes[0].group.role.leader();
    assert_eq!(leader.map(|leader| leader.changes.len()), Some(1));
    cores.kill(joiner);
    cores.pass(1_000);
    cores.cut.clear();
    cores.pass(10_000);
    assert_eq!(cores.members(0), ["node0", "node1"]);
    assert_eq!(cores.nodes[0].group.configuration().number, number);
}

/// Two voters, and a joiner that has no vote yet.
fn with_learner(voters: [Member; 2]) -> Cores {
    let mut cores = founded_by(voters);
    cores.start(member(2), Recovered::default());
    cores.pass(1_000);
    cores
}

/// These nodes die, and the others notice.
fn lose(cores: &mut Cores, nodes: &[usize]) {
    nodes.iter().for_each(|node| cores.kill(*node));
    cores.pass(12_000);
}

fn make_primary(cores: &mut Cores, node: usize) {
    let override_id = Uuid([3; 16]);
    cores.event(node, Event::ForcePrimary { override_id });
    cores.pass(1_000);
    assert_eq!(cores.component_state(node), ComponentState::Primary);
}

/// The learner alone has heard the last acknowledgement of a voter that is gone: it tells the leader, which cannot hear
/// a majority any more, that the entry is committed (simulator, seed 3600107389 of forks).
#[test]
fn a_learner_tells_the_leader_of_a_commit() {
    let mut cores = with_learner([member(0), member(1)]);
    cores.cut.extend([(1, 0), (2, 0)]);
    cores.submit(0, 1);
    cores.pass_for(&[1], 200);
    assert_eq!((cores.delivered(0), cores.delivered(2)), (0, 1));
    cores.kill(1);
    cores.cut.clear();
    cores.pass_for(&[2], 200);
    assert_eq!(cores.delivered(0), 1);
}

/// A joiner that waits for its SST cannot get it any more when its donor is gone, and ends.
#[test]
fn an_override_gives_a_learner_no_vote() {
    let mut cores = with_learner([member(0), member(1)]);
    assert_eq!(votes(&cores, 0), [1, 1, 0]);
    lose(&mut cores, &[1]);
    assert_eq!(cores.component_state(0), ComponentState::NonPrimary);
    make_primary(&mut cores, 0);
    assert_eq!(votes(&cores, 0), [1, 0]);
    lose(&mut cores, &[2]);
    assert_eq!(cores.component_state(0), ComponentState::Primary);
    assert_eq!(votes(&cores, 0), [1]);
}

/// The learner's log may be the best, and leads then: the vote stays with the member that had it.
#[test]
fn an_override_by_a_learner_gives_it_no_vote_beside_a_voter() {
    let mut cores = with_learner([member(0), member(1)]);
    lose(&mut cores, &[1]);
    make_primary(&mut cores, 2);
    assert_eq!(votes(&cores, 2), [1, 0]);
    assert_eq!(cores.component_state(0), ComponentState::Primary);
}

#[test]
fn an_operator_can_make_a_learner_that_is_alone_primary() {
    let mut cores = with_learner([member(0), member(1)]);
    lose(&mut cores, &[0, 1]);
    make_primary(&mut cores, 2);
    assert_eq!(votes(&cores, 2), [1]);
}

#[test]
fn a_learner_has_the_vote_beside_a_voter_without_weight() {
    let mut cores = with_learner([voteless(0), member(1)]);
    lose(&mut cores, &[1]);
    make_primary(&mut cores, 2);
    assert_eq!(votes(&cores, 2), [0, 1]);
}

#[test]
fn an_operator_can_make_a_node_without_weight_primary() {
    let mut cores = founded_by([member(0), voteless(1)]);
    lose(&mut cores, &[0]);
    assert_eq!(cores.component_state(1), ComponentState::NonPrimary);
    make_primary(&mut cores, 1);
    cores.submit(1, 1);
    assert_eq!((cores.delivered(1), votes(&cores, 1)), (1, vec![1]));
}
