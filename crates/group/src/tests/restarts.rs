//! Processes that start with the logs of earlier ones.

use super::cores::{Cores, HISTORY, member, replica};
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::configuration::{Configuration, Member};
use crate::entry::{Body, Entry};
use crate::event::{Action, Event, Recovered, RecoveredLog};
use crate::group::Group;
use crate::ids::{Incarnation, Uuid};
use crate::message::ComponentState;

/// What the logs hold, but for the last entries.
fn recovered(cores: &Cores, lost: usize, amnesiac: bool) -> Recovered {
    let mut entries = cores.log_of(0);
    entries.truncate(entries.len() - lost);
    Recovered {
        amnesiac,
        lost_views: false,
        log: Some(RecoveredLog {
            checkpoint: Checkpoint {
                history: HISTORY,
                ..Checkpoint::default()
            },
            commit: entries.len() as u64 - 2,
            entries,
            left: 0,
        }),
        ..Recovered::default()
    }
}

fn again(node: usize) -> Member {
    Member {
        incarnation: Incarnation(Uuid([node as u8 + 50; 16])),
        ..member(node)
    }
}

fn notes(cores: &Cores, node: usize) -> Vec<&str> {
    let actions = cores.nodes[node].actions.iter();
    let notes = actions.filter_map(|action| match action {
        Action::Note { text } => Some(text.as_str()),
        _ => None,
    });
    notes.collect()
}

/// Rule 4: a majority has lost power in `os` mode, and may have forgotten what it acknowledged. It waits, and tells the
/// operator what may be missing and what to do.
#[test]
fn a_majority_that_may_have_forgotten_says_what_may_be_missing() {
    let mut before = Cores::of(3);
    (1..=6).for_each(|number| before.submit(0, number));
    let end = before.log_of(0).len();
    let mut cores = Cores::none();
    cores.start(again(0), recovered(&before, 4, true));
    cores.start(again(1), recovered(&before, 1, true));
    cores.pass(31_000);
    for node in 0..2 {
        assert_eq!(
            cores.component_state(node),
            ComponentState::NonPrimary,
            "node{node} waits"
        );
        let text = notes(&cores, node).pop().expect("it says so").to_owned();
        let (short, long) = (
            format!("node0 at {}", end - 4),
            format!("node1 at {}", end - 1),
        );
        for words in [
            "here are node0",
            "missing are node2",
            "may have forgotten",
            "repl.durability=os",
            &short,
            &long,
            "comes back by itself when all members are here: start node2",
            "are lost: to go on without them",
            "the grastate.dat of node1 (or of the node whose database has the highest recovered position",
            "Where the server of node1 answers",
            "pc.bootstrap=1' there",
        ] {
            assert!(text.contains(words), "no '{words}' in: {text}");
        }
    }
}

/// The same where all members are here, and cannot vouch for the views there were: it says that this is not a matter of waiting.
#[test]
fn where_all_are_here_it_says_when_an_operator_has_to_decide() {
    let mut before = Cores::of(3);
    (1..=6).for_each(|number| before.submit(0, number));
    let mut cores = Cores::none();
    for node in 0..3 {
        let mut recovered = recovered(&before, 1, true);
        recovered.lost_views = true;
        cores.start(again(node), recovered);
    }
    cores.pass(31_000);
    for node in 0..3 {
        let text = notes(&cores, node).pop().expect("it says so").to_owned();
        for words in [
            "All members are here",
            "removed views",
            "to go on without them",
        ] {
            assert!(text.contains(words), "no '{words}' in: {text}");
        }
    }
}

/// The same without a power loss: nothing may be missing, but for what only those have who may never come back.
#[test]
fn who_has_forgotten_nothing_waits_and_says_how_to_go_on_without_the_others() {
    let mut before = Cores::of(3);
    (1..=6).for_each(|number| before.submit(0, number));
    let mut cores = Cores::none();
    cores.start(again(0), recovered(&before, 4, false));
    cores.pass(11_000);
    let text = notes(&cores, 0)
        .pop()
        .expect("it says whom it waits for")
        .to_owned();
    assert!(text.contains("waiting for a majority"), "{text}");
    assert!(!text.contains("forgotten"), "{text}");
    assert!(text.contains("lost for good"), "{text}");
    assert!(text.contains("pc.bootstrap=1' on node0"), "{text}");
}

/// Rules 3 and 18: a disk is lost for good while a view is proposed in which it counts. Neither who proposed it nor who is
/// left out of it can go on; both say whom an operator has to make primary, and that helps.
#[test]
fn a_survivor_says_how_to_go_on_without_a_lost_disk() {
    let mut cores = Cores::of(3);
    cores.submit(0, 1);
    let before = recovered(&cores, 0, false);
    let end = cores.nodes[0].group.end();
    cores.part(&[0], &[1]);
    cores.kill(2);
    cores.refuses(2);
    cores.pass(50);
    assert!(cores.nodes[0].group.end() > end, "a view is proposed");
    cores.kill(1);
    let emptied = Member {
        replica: replica(8),
        ..again(1)
    };
    cores.start(emptied, Recovered::default());
    let back = cores.start(again(2), before);
    cores.pass(20_000);
    for node in [0, back] {
        assert_eq!(cores.component_state(node), ComponentState::NonPrimary);
        let text = notes(&cores, node).pop().expect("it says so").to_owned();
        for words in [
            "here are node0",
            "missing are node1",
            "a new data directory: 2",
            "lost for good",
            "pc.bootstrap=1' on node0, and nowhere else",
        ] {
            assert!(text.contains(words), "no '{words}' in: {text}");
        }
    }
    let override_id = Uuid([9; 16]);
    cores.event(0, Event::ForcePrimary { override_id });
    cores.pass(3_000);
    for node in [0, back] {
        assert_eq!(cores.component_state(node), ComponentState::Primary);
    }
}

/// One view is enough for a survivor and the process that has restarted: whoever of them orders it.
#[test]
fn a_restart_of_one_of_two_makes_one_view() {
    for restarted in 0..2 {
        let mut cores = Cores::of(2);
        let survivor = 1 - restarted;
        let number = |cores: &Cores| cores.nodes[survivor].group.configuration().number;
        let before = number(&cores);
        cores.kill(restarted);
        cores.pass(6_000);
        assert_eq!(cores.component_state(survivor), ComponentState::NonPrimary);
        let recovered = recovered(&cores, 0, false);
        let new = cores.start(again(restarted), recovered);
        cores.pass(3_000);
        for node in [survivor, new] {
            assert_eq!(cores.component_state(node), ComponentState::Primary);
        }
        assert_eq!(number(&cores), before + 1);
    }
}

/// Its log ends with a view that those who have gone on do not know. The one that admits it may have the same number, and
/// is enough (rule 2): it asks for admission once more before it has that, but for no further view.
#[test]
fn an_uncommitted_view_in_the_log_costs_no_further_one() {
    let mut cores = Cores::of(5);
    let admitted_in = cores.nodes[1].group.configuration().number + 1;
    cores.part(&[0, 4], &[1, 2, 3]);
    cores.event(4, Event::Leave);
    let log = cores.log_of(0);
    assert!(log.ends_with(&cores.log_of(4)));
    let pending = log.iter().rev().find_map(|entry| match &entry.body {
        Body::Configuration(configuration) => Some((entry.position, configuration.number)),
        _ => None,
    });
    let (position, number) = pending.expect("its founder's at least");
    assert_eq!(number, admitted_in, "the view without it is in its log");
    assert!(cores.nodes[4].group.commit() < position);
    cores.pass_for(&[0, 1, 2, 3], 1_000);
    assert!(cores.nodes[1].group.is_leader());

    cores.kill(4);
    cores.cut.clear();
    cores.part(&[0], &[1, 2, 3, 5]);
    cores.lines_ms.insert((1, 5), 1_000);
    let log = RecoveredLog {
        checkpoint: Checkpoint {
            history: HISTORY,
            ..Checkpoint::default()
        },
        entries: log,
        left: 0,
        commit: position - 1,
    };
    let recovered = Recovered {
        promised: cores.nodes[4].group.term(),
        log: Some(log),
        ..Recovered::default()
    };
    let back = cores.start(again(4), recovered);
    cores.pass(3_000); // nobody has been silent for long enough to be left out
    for node in [1, back] {
        assert_eq!(cores.component_state(node), ComponentState::Primary);
        assert_eq!(cores.nodes[node].group.configuration().number, admitted_in);
    }
}

/// A configuration, and data below it, may be pending when an override is put above it that nobody took up.
#[test]
fn what_lies_below_an_override_that_took_no_effect_is_not_committed() {
    for forced in [false, true] {
        let cores = Cores::of(3);
        let mut recovered = recovered(&cores, 0, false);
        let log = recovered.log.as_mut().expect("as made above");
        let agreed = log.entries.len() as u64;
        log.commit = agreed;
        let last = cores.nodes[0].group.configuration().clone();
        let term = cores.nodes[0].group.term();
        let next = Configuration {
            number: last.number + 1,
            ..last.clone()
        };
        let override_id = forced.then_some(Uuid([9; 16]));
        let newest = Configuration {
            number: last.number + 2,
            override_id,
            ..last
        };
        for body in [
            Body::Configuration(next),
            Body::TermStart,
            Body::Configuration(newest),
        ] {
            let position = log.entries.len() as u64 + 1;
            log.entries.push(Entry {
                position,
                term,
                body,
            });
        }
        let group = Group::new(Config::new(again(0)), recovered, 1);
        let proven = if forced { agreed } else { agreed + 1 };
        assert_eq!(group.commit(), proven);
    }
}

/// Its log says that it alone had a vote; it has no say, and raises no terms against those who have gone on.
#[test]
fn who_may_have_forgotten_that_others_have_a_vote_disturbs_nobody() {
    let mut before = Cores::of(1);
    (1..=6).for_each(|number| before.submit(0, number));
    let mut cores = Cores::none();
    let recovered = Recovered {
        lost_views: true,
        ..recovered(&before, 0, true)
    };
    cores.start(again(0), recovered);
    let promised = cores.nodes[0].group.vote.promised();
    cores.pass(10_000);
    assert_eq!(cores.nodes[0].group.vote.promised(), promised);
    assert_eq!(cores.component_state(0), ComponentState::NonPrimary);
}

#[test]
fn a_leaver_that_hears_no_majority_leaves_without_confirmation() {
    let mut cores = Cores::of(5);
    cores.part(&[0, 1, 2], &[3, 4]);
    cores.event(4, Event::Leave);
    cores.pass(1_000);
    assert_eq!(cores.component_state(4), ComponentState::Primary);
    cores.pass(10_000);
    assert_eq!(cores.component_state(4), ComponentState::Outside);
    let mut actions = cores.nodes[4].actions.iter();
    assert!(actions.any(|action| matches!(action, Action::Left)));
}
