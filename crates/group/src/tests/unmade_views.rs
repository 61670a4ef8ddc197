//! Forced views that were begun and never made, and members that have left: they keep nobody from going on (rules 4, 11).

use super::branches::{all_primary, force};
use super::cores::{Cores, HISTORY, member, replica};
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::configuration::{Configuration, Member};
use crate::entry::{Body, Entry};
use crate::event::{Event, Recovered, RecoveredLog};
use crate::ids::{Incarnation, Position, Term, Uuid};
use crate::message::{ComponentState, DatabaseProof, Message, Proof};
use crate::yielding::marked_as_automatic;

/// What a node comes back with.
#[derive(Clone)]
pub(super) struct Left {
    log: Vec<Entry>,
    commit: Position,
    amnesiac: bool,
    /// Forced views below the log.
    pub(super) overrides: Vec<Uuid>,
    /// The log is known to be committed up to this seqno.
    pub(super) known: u64,
    /// The seqno of the database.
    pub(super) database: u64,
}

impl Left {
    fn append(&mut self, number: u64, node: usize, bodies: impl IntoIterator<Item = Body>) {
        for body in bodies {
            let position = self.log.len() as u64 + 1;
            let term = Term {
                number,
                replica: replica(node),
            };
            self.log.push(Entry {
                position,
                term,
                body,
            });
        }
    }

    /// The node is made primary in this term with these nodes, and dies before any of them has the view.
    fn begin_view(&mut self, number: u64, node: usize, nodes: &[usize]) {
        let mut forced = self.view_of(nodes);
        forced.override_id = Some(Uuid([node as u8 + 1; 16]));
        self.append(number, node, [Body::TermStart, Body::Configuration(forced)]);
    }

    /// The next view, of these nodes.
    fn view_of(&self, nodes: &[usize]) -> Configuration {
        let views = self.log.iter().rev().find_map(|entry| match &entry.body {
            Body::Configuration(view) => Some(view.clone()),
            _ => None,
        });
        let mut next = views.expect("the log has its founder's view");
        (next.members).retain(|m| nodes.iter().any(|node| m.replica == replica(*node)));
        next.number += 1;
        next
    }

    pub(super) fn comes_back(self, cores: &mut Cores, node: usize) {
        let again = Member {
            incarnation: Incarnation(Uuid([node as u8 + 50; 16])),
            ..member(node)
        };
        let recovered = Recovered {
            amnesiac: self.amnesiac,
            log: Some(RecoveredLog {
                checkpoint: Checkpoint {
                    history: HISTORY,
                    overrides: self.overrides,
                    ..Checkpoint::default()
                },
                commit: self.commit,
                entries: self.log,
                left: 0,
            }),
            ..Recovered::default()
        };
        let proof = Proof {
            known: self.known,
            database: DatabaseProof::UpTo {
                seqno: self.database,
            },
        };
        let config = Config {
            proof,
            ..Config::new(again)
        };
        cores.start_with(config, recovered);
    }
}

/// So many nodes with one log die; it is known to be committed up to two entries before its end.
pub(super) fn all_die(nodes: usize, amnesiac: bool) -> Left {
    let mut cores = Cores::of(nodes);
    (1..=6).for_each(|number| cores.submit(0, number));
    cores.pass(500);
    let log = cores.log_of(0);
    let commit = log.len() as u64 - 2;
    Left {
        log,
        commit,
        amnesiac,
        overrides: Vec::new(),
        known: 5,
        database: 5,
    }
}

/// The number of nodes that are primary in the end.
fn primary(cores: &mut Cores) -> usize {
    cores.pass(120_000);
    let states = (0..cores.nodes.len()).map(|node| cores.component_state(node));
    states.filter(|s| *s == ComponentState::Primary).count()
}

#[test]
fn two_that_were_begun_keep_nobody_waiting() {
    for amnesiac in [false, true] {
        let left = all_die(3, amnesiac);
        let mut cores = Cores::none();
        for node in 0..3 {
            let mut left = left.clone();
            if node > 0 {
                left.begin_view(50 + node as u64, node, &[0, node]);
            }
            left.comes_back(&mut cores, node);
        }
        assert_eq!(primary(&mut cores), 3, "amnesiac: {amnesiac}");
    }
}

/// Node 0 has begun a view with node 1, in a lower or a higher term than that in which the others have gone on.
#[test]
fn one_that_was_begun_takes_no_commit_away() {
    for (amnesiac, number) in [(false, 50), (true, 50), (false, 70), (true, 70)] {
        let before = all_die(5, amnesiac);
        let mut cores = Cores::none();
        let mut others = before.clone();
        others.append(60, 2, (0..8).map(|_| Body::TermStart));
        others.commit += 6;
        for node in 0..5 {
            let mut left = if node < 2 {
                before.clone()
            } else {
                others.clone()
            };
            if node == 0 {
                left.begin_view(number, 0, &[0, 1]);
            }
            left.comes_back(&mut cores, node);
        }
        let what = format!("term {number}, amnesiac: {amnesiac}");
        assert_eq!(primary(&mut cores), 5, "{what}");
        for node in 0..5 {
            let log = cores.log_of(node);
            let kept = log
                .iter()
                .any(|entry| entry.position == others.commit && entry.term.number == 60);
            assert!(
                kept || log[0].position > others.commit,
                "{what}: node {node}"
            );
        }
    }
}

/// Node 0 has begun a view with node 1. Its log is the best without that view, so it is elected; node 1 dies or stays.
#[test]
fn one_that_was_begun_is_dropped_by_the_elected() {
    for dies in [false, true] {
        let mut best = all_die(5, false);
        let mut others = best.clone();
        others.log.pop();
        others.commit -= 1;
        best.begin_view(50, 0, &[0, 1]);
        let mut cores = Cores::none();
        for node in 0..5 {
            let left = if node == 0 { &best } else { &others };
            left.clone().comes_back(&mut cores, node);
        }
        while !cores.nodes[0].group.is_leader() {
            cores.pass(50);
            assert!(cores.now < 60_000, "another one leads");
        }
        if dies {
            cores.kill(1);
        }
        cores.pass(60_000);
        for node in (0..5).filter(|node| !dies || *node != 1) {
            let (state, group) = (cores.component_state(node), &cores.nodes[node].group);
            assert_eq!(state, ComponentState::Primary, "node {node}, {dies}");
            assert!(group.overrides_in_log().is_empty());
        }
    }
}

/// Node 0 has begun a view with node 1, which is out of reach since it promised. The others meet node 0 again: they wait for
/// node 1, which may have that view. But they have not elected node 0, and take nothing from it.
#[test]
fn the_leader_of_one_that_is_pending_leads_nobody_else() {
    let mut cores = Cores::of(5);
    let all = [0, 1, 2, 3, 4];
    all.iter().for_each(|node| cores.part(&[*node], &all));
    cores.pass(12_000);
    cores.cut.remove(&(0, 1));
    cores.cut.remove(&(1, 0));
    cores.pass(1_000);
    // Node 1 promises, and hears no more.
    cores.lost = |message| matches!(message, Message::Append(_));
    let override_id = Uuid([9; 16]);
    cores.event(0, Event::ForcePrimary { override_id });
    while !cores.nodes[0].group.is_leader() {
        cores.pass(50);
        assert!(cores.now < 60_000, "it leads in its view");
    }
    cores.part(&[1], &all);
    cores.lost = |_| false;
    let logs = [2, 3, 4].map(|node| cores.log_of(node));
    cores.cut.retain(|(from, to)| *from == 1 || *to == 1);
    cores.pass(20_000);
    assert!([2, 3, 4].map(|node| cores.log_of(node)) == logs);
    cores.cut.clear();
    cores.pass(20_000);
    for node in all {
        assert_eq!(cores.component_state(node), ComponentState::Primary);
        assert!(cores.nodes[node].group.overrides_in_log().is_empty());
    }
}

/// Nodes 0 and 1 went on without node 2, which knows more of their commits than they do after a power loss.
#[test]
fn one_that_has_left_and_knows_more_keeps_nobody_waiting() {
    for knows in [false, true] {
        let mut stay = all_die(3, true);
        let view = stay.view_of(&[0, 1]);
        stay.append(40, 0, [Body::TermStart, Body::Configuration(view)]);
        let mut gone = stay.clone();
        gone.append(40, 0, (0..10).map(|_| Body::TermStart));
        let position = if knows {
            gone.log.len()
        } else {
            stay.log.len() - 1
        };
        (gone.commit, gone.known, gone.database) = (position as u64, 9, 9);
        gone.amnesiac = false;
        let mut cores = Cores::none();
        stay.clone().comes_back(&mut cores, 0);
        stay.comes_back(&mut cores, 1);
        gone.comes_back(&mut cores, 2);
        assert_eq!(primary(&mut cores), 3, "it knows more: {knows}");
    }
}

/// Node 0 was made primary by hand, and asked another member for its better log before that one was primary again.
#[test]
fn a_late_request_to_lead_with_an_override_is_not_obeyed() {
    let mut cores = Cores::of(5);
    cores.part(&[0], &[2, 3, 4]);
    cores.pass(12_000);
    let leader = (1..5).find(|node| cores.nodes[*node].group.is_leader());
    let leader = leader.expect("they have a leader");
    let asked = if leader == 1 { 2 } else { 1 };
    // The leader is too far away to outbid the one that is asked.
    for other in (1..5).filter(|node| *node != asked) {
        cores
            .lines_ms
            .extend([((asked, other), 200), ((other, asked), 200)]);
    }
    cores.pass(3_000);
    (1..=20).for_each(|number| cores.submit(leader, number));
    cores.pass(100);
    let committed = cores.nodes[leader].group.commit();
    let number = cores.nodes[asked].group.term().number + 1;
    let forced = Some(Uuid([77; 16]));
    cores.say(0, asked, Message::TakeLeadership { number, forced });
    cores.pass(20_000);
    assert!(cores.nodes[leader].group.commit() >= committed);
    assert!(cores.nodes[leader].group.overrides_in_log().is_empty());
}

/// Node 0's log ends with a view without it, which was never committed. Node 2 is here, too, with a shorter log.
fn voted_out_with_the_best_log(amnesiac: bool) -> Cores {
    let shorter = all_die(3, amnesiac);
    let mut longer = shorter.clone();
    let without_it = longer.view_of(&[1, 2]);
    longer.append(9, 1, [Body::TermStart, Body::Configuration(without_it)]);
    let mut cores = Cores::none();
    longer.comes_back(&mut cores, 0);
    shorter.comes_back(&mut cores, 2);
    cores.pass(1_000);
    cores
}

/// An operator's view commits the one below it, which lacks the leader. The leader leads on, and is intact.
#[test]
fn who_is_voted_out_below_its_own_forced_view_leads_on() {
    for amnesiac in [false, true] {
        let mut cores = voted_out_with_the_best_log(amnesiac);
        force(&mut cores, 1);
        cores.pass(800);
        let group = &cores.nodes[0].group;
        assert!(group.is_leader() && all_primary(&cores, &[0]));
        assert!(!group.is_amnesiac());
    }
}

/// A member that may be voted out does not go on alone, also not for another that ignores the quorum.
#[test]
fn who_may_be_voted_out_does_not_lead_for_who_ignores_the_quorum() {
    let by_operator = Uuid([7; 16]);
    for (forced, leads) in [
        (marked_as_automatic(by_operator), false),
        (by_operator, true),
    ] {
        let mut cores = voted_out_with_the_best_log(false);
        let number = cores.nodes[0].group.term().number + 1;
        let forced = Some(forced);
        cores.say(1, 0, Message::TakeLeadership { number, forced });
        assert_eq!(cores.nodes[0].group.term().number == number, leads);
    }
}

/// All lose power. The two that the last view lacks have older logs, in which they have a seat: they stand, and ask the
/// owner of the best evidence to go on.
#[test]
fn who_was_removed_keeps_no_voter_from_going_on() {
    for stagger_ms in [0, 100, 400] {
        let removed = all_die(5, true);
        let mut voters = removed.clone();
        let view = voters.view_of(&[0, 2, 4]);
        voters.append(9, 0, [Body::TermStart, Body::Configuration(view)]);
        voters.commit = voters.log.len() as u64;
        let mut cores = Cores::none();
        for node in [1, 3, 0, 2, 4] {
            let left = if node % 2 == 0 { &voters } else { &removed };
            left.clone().comes_back(&mut cores, node);
            cores.pass(stagger_ms);
        }
        cores.pass(20_000);
        assert!(all_primary(&cores, &[0, 1, 2, 3, 4]), "{stagger_ms}");
    }
}
