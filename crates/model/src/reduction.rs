//! Which actions of a state must be explored (a persistent set).
//!
//! What happens at one process and what happens at another commute: each changes its own process and
//! adds to the ends of its own channels. So if nothing that the others do, now or later, can give a
//! process anything new to choose from, it is enough to let it go first, in each way that it can:
//! every other order of the same events leads to the same state, and [`crate::truth`] judges all
//! orders alike. That is so as long as something is under way on each channel to it that can still
//! bring something: what others send goes behind it.
//!
//! An exploration has no cycles along which a process could be put off for ever: every action uses
//! up a message or something of the bound.

use crate::actions::{Action, input_of};
use crate::bound::Bound;
use crate::memo::Memo;
use crate::network::{NODES, Phase};
use crate::system::System;

/// Leaves out of everything that is possible what need not be explored.
pub fn reduce(system: &System, bound: &Bound, memo: &Memo, actions: &mut Vec<Action>) {
    let count = |node: usize| {
        actions
            .iter()
            .filter(|action| action.node() == Some(node))
            .count()
    };
    let first = (0..NODES)
        .filter(|node| count(*node) > 0 && goes_first(system, bound, *node, actions))
        .filter(|node| stays_within(system, bound, memo, *node, actions))
        .min_by_key(|node| count(*node));
    if let Some(first) = first {
        actions.retain(|action| action.node() == Some(first));
    }
}

/// Nothing that happens elsewhere can give `node` anything new to do before it has done something.
fn goes_first(system: &System, bound: &Bound, node: usize, actions: &[Action]) -> bool {
    if system.nodes[node].process.is_none() {
        return false;
    }
    let spent = &system.spent;
    let may_crash = |other: usize| {
        bound.crashes[other] && spent.crashes == 0 && system.nodes[other].process.is_some()
    };
    let may_break = |other: usize| {
        let pair = (node.min(other), node.max(other));
        bound.breaks.contains(&pair) && spent.breaks < bound.breaks_total
    };
    let may_restart = spent.restarts < bound.restarts;
    // Both use up the one crash.
    let crash_is_open = actions.contains(&Action::Crash(node));
    (0..NODES).filter(|other| *other != node).all(|other| {
        if may_break(other) || (crash_is_open && may_crash(other)) {
            return false;
        }
        match system.network.channel(other, node).phase {
            Phase::Open => system.network.has_arrivals(other, node) && !may_crash(other),
            Phase::Broken => true,
            Phase::Closed => system.nodes[other].process.is_none() && !may_restart,
        }
    })
}

/// None of the node's actions leads out of the bound, where it would not be followed.
fn stays_within(
    system: &System,
    bound: &Bound,
    memo: &Memo,
    node: usize,
    actions: &[Action],
) -> bool {
    let process = system.nodes[node].process.as_ref();
    let own = actions.iter().filter(|action| action.node() == Some(node));
    own.filter_map(|action| input_of(system, *action))
        .all(|input| {
            process
                .is_some_and(|process| bound.includes(&memo.handle(process, input).process.value))
        })
}
