//! Clusters that are founded without choosing a node (`pc.bootstrap_expect`).

use super::cores::{Cores, HISTORY, member, replica};
use crate::config::Config;
use crate::configuration::Member;
use crate::event::{Action, Event, Recovered};
use crate::ids::{Incarnation, Term, Uuid};
use crate::message::ComponentState;

/// A blank process on a data directory, which may have promised something.
fn blank(cores: &mut Cores, seat: usize, process: u8, promised: Term) -> usize {
    let me = Member {
        incarnation: Incarnation(Uuid([seat as u8 + 1 + 10 * process; 16])),
        ..member(seat)
    };
    let config = Config {
        expect: 3,
        ..Config::new(me)
    };
    let recovered = Recovered {
        promised,
        ..Recovered::default()
    };
    cores.start_with(config, recovered)
}

fn three(cores: &mut Cores) {
    for seat in 0..3 {
        blank(cores, seat, 0, Term::default());
    }
    cores.settle();
}

/// These processes answer at the addresses that `node` has listed.
fn list(cores: &mut Cores, node: usize, members: &[usize]) {
    let members = members.iter().map(|m| cores.incarnation(*m)).collect();
    let missing = Vec::new();
    cores.event(node, Event::Listed { members, missing });
}

/// Who was told to found, in this order.
fn founders(cores: &Cores) -> Vec<usize> {
    let nodes = 0..cores.nodes.len();
    let founds = |node: &usize| {
        cores.nodes[*node]
            .actions
            .iter()
            .any(|a| matches!(a, Action::Found))
    };
    nodes.filter(founds).collect()
}

fn found(cores: &mut Cores, node: usize) {
    cores.event(
        node,
        Event::Bootstrap {
            history: HISTORY,
            overrides: Vec::new(),
            override_id: None,
        },
    );
}

fn term(number: u64, seat: usize) -> Term {
    Term {
        number,
        replica: replica(seat),
    }
}

#[test]
fn all_that_are_expected_found_one_cluster() {
    let mut cores = Cores::none();
    three(&mut cores);
    for node in [2, 0] {
        list(&mut cores, node, &[0, 1, 2]);
    }
    cores.pass(1_000);
    assert_eq!(
        founders(&cores),
        [0; 0],
        "not everybody has found the others"
    );
    list(&mut cores, 1, &[0, 1, 2]);
    cores.pass(50);
    assert_eq!(founders(&cores), [0], "the lowest replica id");
    assert_eq!(cores.nodes[2].group.term(), term(1, 0));
    found(&mut cores, 0);
    cores.pass(1_000);
    for node in 0..3 {
        assert_eq!(cores.component_state(node), ComponentState::Primary);
        assert_eq!(cores.members(node).len(), 3);
        assert!(!cores.nodes[node].group.is_blank());
    }
}

#[test]
fn nobody_founds_without_all_of_one_mind() {
    let mut cores = Cores::none();
    blank(&mut cores, 0, 0, Term::default());
    blank(&mut cores, 1, 0, Term::default());
    let other = Config {
        expect: 2,
        ..Config::new(member(2))
    };
    cores.start_with(other, Recovered::default());
    cores.start(member(3), Recovered::default()); // without the option
    for set in [&[0, 1][..], &[0, 1, 2], &[0, 1, 3], &[1, 2, 3], &[0, 1, 1]] {
        for node in 0..3 {
            list(&mut cores, node, set);
        }
        cores.pass(500);
        assert_eq!(founders(&cores), [0; 0], "{set:?}");
    }
    cores.pass(11_000);
    let said = cores.nodes[0].actions.iter().any(|action| {
        matches!(action, Action::Note { text } if text.contains("pc.bootstrap_expect=2: it must be"))
    });
    assert!(said, "what is wrong is said");
}

#[test]
fn nobody_founds_beside_a_history() {
    let mut cores = Cores::none();
    let old = cores.start(member(9), Recovered::default());
    found(&mut cores, old);
    let nodes: Vec<_> = (0..3)
        .map(|seat| blank(&mut cores, seat, 0, Term::default()))
        .collect();
    for node in &nodes {
        list(&mut cores, *node, &nodes);
    }
    assert_eq!(founders(&cores), [0; 0]);
    cores.pass(2_000);
    assert_eq!(cores.members(old).len(), 4, "they join it");
}

/// Node 0 has the support of both others, and nobody knows whether it has heard of that.
fn supported() -> Cores {
    let mut cores = Cores::none();
    three(&mut cores);
    cores.cut.extend([(1, 0), (2, 0)]);
    for node in 0..3 {
        list(&mut cores, node, &[0, 1, 2]);
    }
    for node in 0..3 {
        assert_eq!(cores.nodes[node].group.term(), term(1, 0));
    }
    assert_eq!(founders(&cores), [0; 0]);
    (0..3).for_each(|node| cores.kill(node));
    cores
}

#[test]
fn support_is_kept_across_restarts_and_for_other_lists() {
    let mut cores = supported();
    let promised = term(1, 0);
    // An operator puts another node in the place of the one that is gone.
    let [one, two] = [1, 2].map(|seat| blank(&mut cores, seat, 1, promised));
    let other = blank(&mut cores, 3, 1, Term::default());
    for node in [one, two, other] {
        list(&mut cores, node, &[one, two, other]);
    }
    cores.pass(11_000);
    assert_eq!(founders(&cores), [0; 0], "node 0 may have founded");
    let said = cores.nodes[one].actions.iter().any(
        |action| matches!(action, Action::Note { text } if text.contains("promised its support")),
    );
    assert!(said, "whom it waits for is said");
    // It had not: with the support that it has it does.
    let zero = blank(&mut cores, 0, 1, promised);
    list(&mut cores, zero, &[zero, one, two]);
    assert_eq!(founders(&cores), [zero]);
}

#[test]
fn one_that_stood_and_is_listed_no_more_gives_way() {
    let mut cores = supported();
    let promised = term(1, 0);
    let [zero, one, two] = [0, 1, 2].map(|seat| blank(&mut cores, seat, 1, promised));
    let other = blank(&mut cores, 3, 1, Term::default());
    for node in [one, two, other, zero] {
        list(&mut cores, node, &[one, two, other]);
    }
    cores.pass(500);
    assert_eq!(founders(&cores), [one]);
    assert_eq!(cores.nodes[other].group.term(), term(2, 1));
}

#[test]
fn a_promise_that_has_not_reached_everybody_is_no_support() {
    let mut cores = Cores::none();
    three(&mut cores);
    cores.cut.insert((2, 0));
    for node in 0..3 {
        list(&mut cores, node, &[0, 1, 2]);
    }
    cores.pass(1_000);
    assert_eq!(founders(&cores), [0; 0], "two of three are not enough");
    cores.cut.clear();
    cores.pass(200);
    assert_eq!(founders(&cores), [0], "said again with every heartbeat");
}
